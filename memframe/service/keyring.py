"""Content at rest: always sealed with the present version of the user's key, whatever a write brings."""

from __future__ import annotations

import re
from functools import cached_property

from memframe.envelope import Envelope
from memframe.envelope.detect import bind
from memframe.envelope.rekeying import Rekeying
from memframe.errors import ConflictError
from memframe.secret import Secret
from memframe.service.keys import MasterKey
from memframe.service.recent import Recent
from memframe.service.store.user_keys import UserKeys

KNOWN_LAYOUTS = ("memframe", "gcm-iv-ct-tag", "gcm-iv:tag:ct")
"""Sealed content that a write may bring; it is kept as it came."""

_SEALED_SPELLING = re.compile(r"[A-Za-z0-9+/=_:.-]+", re.ASCII)
"""Characters of the layouts that we know: a text with any other, such as a blank, is plain for certain."""


class UserKey:
    """One version of a user's encryption key, in the open.

    Attributes
    ----------
    version : int
    key : Secret
        Its hexadecimal text, as credentials give it.
    """

    def __init__(self, version: int, key: Secret, user_id: str) -> None:
        self.version = version
        self.key = key
        self._user_id = user_id
        self._layouts = [bind(name, key, user_id, version) for name in KNOWN_LAYOUTS]

    @cached_property
    def envelope(self) -> Envelope:
        """Seals content with this key, and opens it in each of `KNOWN_LAYOUTS`."""
        return Envelope(
            self.key,
            user_id=self._user_id,
            key_version=self.version,
            content_format=list(KNOWN_LAYOUTS),
            write_format=KNOWN_LAYOUTS[0],
        )

    def opens(self, content: str) -> bool:
        """Whether content is sealed with this key."""
        return any(layout.open(content) is not None for layout in self._layouts)


HeldKeys = Recent[tuple[str, int], UserKey]
"""Users' keys that stay unwrapped in memory, by user and version: what a version is never changes."""


class Keyring:
    """The versions of one user's key, for the length of one transaction.

    Parameters
    ----------
    master_key : MasterKey
    held : HeldKeys
    user_id : str
    keys : UserKeys

    Attributes
    ----------
    present : UserKey
        What content is sealed with.
    """

    def __init__(self, master_key: MasterKey, held: HeldKeys, user_id: str, keys: UserKeys) -> None:
        self._master_key = master_key
        self._held = held
        self._user_id = user_id
        self._keys = keys
        self.present = self._key(keys.present)

    def as_stored(self, content: str) -> str:
        """What is stored of the content that a write brings.

        Content that is sealed with the present key already, in one of `KNOWN_LAYOUTS`, stays byte for
        byte. What an earlier key opens is refused, so that whoever seals learns of the new one. Everything
        else is taken for plain text and sealed here.
        """
        if _SEALED_SPELLING.fullmatch(content):
            if self.present.opens(content):
                return content
            self._refuse_earlier(content)
        return self.present.envelope.seal(content)

    def rotate(self) -> Rekeying:
        """Put a new version of the key in the place of the present one; what carries content over to it.

        The new one is held for nobody else, as it may come to nothing with its transaction.
        """
        before, version = self.present, self._keys.present + 1
        wrapped = self._master_key.new_user_key(user_id=self._user_id, version=version)
        self._keys.add(wrapped)
        self.present = self._unwrapped(version, wrapped)
        return Rekeying(
            (before.version, before.key),
            (version, self.present.key),
            user_id=self._user_id,
            layouts=KNOWN_LAYOUTS,
        )

    def _refuse_earlier(self, content: str) -> None:
        for version in range(self._keys.present - 1, 0, -1):
            if self._key(version).opens(content):
                raise _sealed_before(version, self._keys.present)

    def _key(self, version: int) -> UserKey:
        """A version of the user's key, from memory if it is there."""
        return self._held.get(
            (self._user_id, version), lambda: self._unwrapped(version, self._keys.wrapped(version))
        )

    def _unwrapped(self, version: int, wrapped: bytes) -> UserKey:
        raw = self._master_key.unwrap(wrapped, user_id=self._user_id, version=version)
        return UserKey(version, Secret(raw.hex()), self._user_id)


def _sealed_before(version: int, present: int) -> ConflictError:
    message = (
        f"the content is sealed with version {version} of the user's key, and the present one is {present}; "
        "fetch the credentials again and seal it with the new key"
    )
    return ConflictError(message, status=409, code="key_version_changed")
