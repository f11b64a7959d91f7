"""Seal and open one user's content: always with the present version of the user's key."""

from __future__ import annotations

import re
from functools import cached_property
from threading import Lock

from cachetools import LRUCache, cached

from memframe.envelope import Envelope
from memframe.envelope.detect import bind
from memframe.envelope.rekeying import Rekeying
from memframe.errors import ConflictError
from memframe.secret import Secret
from memframe.service.master_key import MasterKey
from memframe.service.store.accounts import UserKeys

KNOWN_LAYOUTS = ("memframe", "gcm-iv-ct-tag", "gcm-iv:tag:ct")
"""Layouts of sealed content that a write may bring; such content is stored as it came."""

MAX_UNWRAPPED = 1000
"""Users' keys that stay unwrapped in memory."""

_SEALED_SPELLING = re.compile(r"[A-Za-z0-9+/=_:.-]+", re.ASCII)
"""Characters of these layouts: a text with any other, such as a blank, is plain for certain."""


class UserKey:
    """One version of a user's encryption key, unwrapped; `key` is its hexadecimal text, as credentials give it."""

    def __init__(self, version: int, key: Secret, user_id: str) -> None:
        self.version = version
        self.key = key
        self._user_id = user_id
        self._layouts = [bind(name, key, user_id, version) for name in KNOWN_LAYOUTS]

    @cached_property
    def envelope(self) -> Envelope:
        """Envelope that seals with this key, and opens each of `KNOWN_LAYOUTS`."""
        return Envelope(
            self.key,
            user_id=self._user_id,
            key_version=self.version,
            content_format=list(KNOWN_LAYOUTS),
            write_format=KNOWN_LAYOUTS[0],
        )

    def opens(self, content: str) -> bool:
        """Return True where content is sealed with this key."""
        return any(layout.open(content) is not None for layout in self._layouts)


class KeyUnwrapper:
    """Unwrap users' keys; those used last stay in memory."""

    def __init__(self, master_key: MasterKey) -> None:
        self.master_key = master_key
        cache: LRUCache[tuple[str, int], UserKey] = LRUCache(MAX_UNWRAPPED)
        self.unwrap = cached(cache, key=lambda user_id, version, _: (user_id, version), lock=Lock())(
            self._unwrap
        )

    def _unwrap(self, user_id: str, version: int, keys: UserKeys) -> UserKey:
        return self.unwrap_new(user_id, version, keys.wrapped(version))

    def unwrap_new(self, user_id: str, version: int, wrapped: bytes) -> UserKey:
        """Unwrap a key without keeping it: its transaction may be rolled back."""
        raw = self.master_key.unwrap(wrapped, user_id=user_id, version=version)
        return UserKey(version, Secret(raw.hex()), user_id)


class UserKeyring:
    """The versions of one user's key, for the length of one transaction.

    Attributes
    ----------
    present : UserKey
        The version that content is sealed with.
    """

    def __init__(self, unwrapper: KeyUnwrapper, user_id: str, keys: UserKeys) -> None:
        self._unwrapper = unwrapper
        self._user_id = user_id
        self._keys = keys
        self.present = unwrapper.unwrap(user_id, keys.present, keys)

    def seal(self, content: str) -> str:
        """Return content as it is stored.

        Content that is sealed with the present key in one of `KNOWN_LAYOUTS` is kept byte for byte; what an earlier
        key opens is refused with `ConflictError`; everything else is plain text, and sealed here.
        """
        if _SEALED_SPELLING.fullmatch(content):
            if self.present.opens(content):
                return content
            for version in range(self._keys.present - 1, 0, -1):
                if self._unwrapper.unwrap(self._user_id, version, self._keys).opens(content):
                    raise _key_version_changed(version, self._keys.present)
        return self.present.envelope.seal(content)

    def rotate(self) -> Rekeying:
        """Add a version and make it the present one; return what converts content to it."""
        before, version = self.present, self._keys.present + 1
        wrapped = self._unwrapper.master_key.new_user_key(user_id=self._user_id, version=version)
        self._keys.add(wrapped)
        self.present = self._unwrapper.unwrap_new(self._user_id, version, wrapped)
        return Rekeying(
            (before.version, before.key),
            (version, self.present.key),
            user_id=self._user_id,
            layouts=KNOWN_LAYOUTS,
        )


def _key_version_changed(version: int, present: int) -> ConflictError:
    message = (
        f"the content is sealed with version {version} of the user's key, and the present one is {present}; "
        "fetch the credentials again and seal it with the new key"
    )
    return ConflictError(message, status=409, code="key_version_changed")
