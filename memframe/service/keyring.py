"""Content at rest: always sealed with the present version of the user's key, whatever a write brings."""

from __future__ import annotations

import re

from memframe.envelope import Envelope
from memframe.envelope.rekeying import Rekeying
from memframe.errors import ConflictError, SealError
from memframe.secret import Secret
from memframe.service.keys import MasterKey
from memframe.service.store.user_keys import UserKeys, WrappedKey

KNOWN_LAYOUTS = ("memframe", "gcm-iv-ct-tag", "gcm-iv:tag:ct")
"""Sealed content that a write may bring; it is kept as it came."""

_SEALED_SPELLING = re.compile(r"[A-Za-z0-9+/=_:.-]+", re.ASCII)
"""Characters of the layouts that we know: a text with any other, such as a blank, is plain for certain."""


class Keyring:
    """One user's encryption key in the open, for the length of one transaction.

    Attributes
    ----------
    version : int
        Of the present key.
    key : Secret
        Its hexadecimal text, as credentials give it.
    envelope : Envelope
        Seals and opens content with it.
    """

    def __init__(self, master_key: MasterKey, user_id: str, keys: UserKeys) -> None:
        self._master_key = master_key
        self._user_id = user_id
        self._keys = keys
        self.version, self.key = self._unwrapped(keys.present())
        self.envelope = self._envelope(self.version, self.key)

    def as_stored(self, content: str) -> str:
        """What is stored of the content that a write brings.

        Content that is sealed with the present key already, in one of `KNOWN_LAYOUTS`, stays byte for
        byte. What an earlier key opens is refused, so that whoever seals learns of the new one. Everything
        else is taken for plain text and sealed here.
        """
        if not _SEALED_SPELLING.fullmatch(content):
            return self.envelope.seal(content)
        if _opens(self.envelope, content):
            return content
        for wrapped in self._keys.earlier():
            if _opens(self._envelope(*self._unwrapped(wrapped)), content):
                raise _sealed_before(wrapped.version, self.version)
        return self.envelope.seal(content)

    def rotate(self) -> Rekeying:
        """Put a new version of the key in the place of the present one; what carries content over to it."""
        before = (self.version, self.key)
        wrapped = self._master_key.new_user_key(user_id=self._user_id, version=self.version + 1)
        new = WrappedKey(self.version + 1, wrapped)
        self._keys.replace(new)
        self.version, self.key = self._unwrapped(new)
        self.envelope = self._envelope(self.version, self.key)
        return Rekeying(before, (self.version, self.key), user_id=self._user_id, layouts=KNOWN_LAYOUTS)

    def _unwrapped(self, key: WrappedKey) -> tuple[int, Secret]:
        raw = self._master_key.unwrap(key.wrapped, user_id=self._user_id, version=key.version)
        return key.version, Secret(raw.hex())

    def _envelope(self, version: int, key: Secret) -> Envelope:
        return Envelope(
            key,
            user_id=self._user_id,
            key_version=version,
            content_format=list(KNOWN_LAYOUTS),
            write_format=KNOWN_LAYOUTS[0],
        )


def _opens(envelope: Envelope, content: str) -> bool:
    try:
        envelope.open(content)
    except SealError:
        return False
    return True


def _sealed_before(version: int, present: int) -> ConflictError:
    message = (
        f"the content is sealed with version {version} of the user's key, and the present one is {present}; "
        "fetch the credentials again and seal it with the new key"
    )
    return ConflictError(message, status=409, code="key_version_changed")
