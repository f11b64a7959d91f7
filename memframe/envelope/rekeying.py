"""From one key to the next: sealed content under another key, in the layout and spelling that it had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from memframe.envelope.detect import LAYOUTS, OWN, KeyBinding
from memframe.envelope.layouts import Aead, Authenticated, check_key
from memframe.errors import ConfigError
from memframe.secret import Secret

REKEYED = (OWN, "jwe", "gcm-json", "gcm-iv-ct-tag", "gcm-iv-tag-ct", "gcm-iv:tag:ct", "gcm-iv:ct:tag")
"""Layouts that can be carried over: those of AES-GCM."""


class _KeyChange(NamedTuple):
    """A cipher that opens with the old key and seals with the new one."""

    old: Aead
    new: Aead

    def encrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None) -> bytes:
        return self.new.encrypt(nonce, data, associated_data)

    def decrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None) -> bytes:
        return self.old.decrypt(nonce, data, associated_data)


class Rekeying:
    """Reseal one user's content from one key version to the next.

    Parameters
    ----------
    old, new : tuple of int and Secret
        A ``key_version`` and its ``encryption_key``.
    user_id : str
    layouts : sequence of str, optional
        Layouts in which the content may be, out of `REKEYED`; tried in this order.

    Examples
    --------
    >>> old, new = (1, Secret("0f1e" * 16)), (2, Secret("2d3c" * 16))
    >>> rekeying = Rekeying(old, new, user_id="4f0c")
    >>> rekeying.reseal("mf1.1.AAAA") is None
    True
    """

    def __init__(
        self,
        old: tuple[int, Secret],
        new: tuple[int, Secret],
        *,
        user_id: str,
        layouts: Sequence[str] = REKEYED,
    ) -> None:
        before, after = _bind_key(*old, user_id), _bind_key(*new, user_id)
        changing = before._replace(gcm=_KeyChange(before.gcm, after.gcm))
        self._pairs = [
            (_layout(name, before), _layout(name, after)) if name == OWN else (_layout(name, changing),) * 2
            for name in layouts
        ]

    def reseal(self, sealed: str) -> str | None:
        """Seal content under the new key; None if the old one does not open it."""
        for opener, sealer in self._pairs:
            plain = opener.open(sealed)
            if plain is not None:
                return sealer.seal(plain, sealed)
        return None


def _bind_key(version: int, key: Secret, user_id: str) -> KeyBinding:
    check_key(key)
    raw = bytes.fromhex(key.reveal())
    return KeyBinding(key.reveal(), raw, AESGCM(raw), user_id, version)


def _layout(name: str, binding: KeyBinding) -> Authenticated:
    layout = LAYOUTS[name](name, binding) if name in REKEYED else None
    if not isinstance(layout, Authenticated):
        raise ConfigError(
            f"content in {name!r} cannot be carried to another key; in {', '.join(REKEYED)} it can"
        )
    return layout
