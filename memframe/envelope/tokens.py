"""Layouts that follow a standard of their own: compact JWE and Fernet."""

from __future__ import annotations

import os
from base64 import urlsafe_b64encode
from functools import lru_cache

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.fernet import Fernet, InvalidToken

from memframe.envelope.alphabets import BASE64URL, BASE64URL_BARE
from memframe.envelope.layouts import IV_BYTES, TAG_BYTES, Aead, Authenticated

_HEADER = BASE64URL_BARE.encode(b'{"alg":"dir","enc":"A256GCM"}')
_encode, _decode = BASE64URL_BARE.encode, BASE64URL_BARE.decode


class Jwe(Authenticated):
    """Compact JWE (RFC 7516) with the key used directly: ``alg`` is ``dir``, ``enc`` is ``A256GCM``.

    Compression and critical extensions are refused; other header fields are authenticated and kept.
    """

    marked = True

    def __init__(self, name: str, cipher: Aead) -> None:
        super().__init__(name)
        self._cipher = cipher

    def fits(self, text: str, /) -> bool:
        return text.startswith("eyJ") and text.count(".") == 4

    def open(self, text: str, /) -> bytes | None:
        if not self.fits(text) or _fault_of(_header_of(text)):
            return None
        header, key, *sealed = text.split(".")
        try:
            iv, data, tag = (_decode(part) for part in sealed)
            if key or len(iv) != IV_BYTES or len(tag) != TAG_BYTES:
                return None
            return self._cipher.decrypt(iv, data + tag, header.encode("ascii"))
        except (ValueError, InvalidTag):  # not base64url, or changed: said by the None
            return None

    def seal(self, plain: bytes, like: str | None, /) -> str:
        header = _header_of(like) if like else _HEADER
        nonce = os.urandom(IV_BYTES)
        sealed = self._cipher.encrypt(nonce, plain, header.encode("ascii"))
        return ".".join(
            (header, "", _encode(nonce), _encode(sealed[:-TAG_BYTES]), _encode(sealed[-TAG_BYTES:]))
        )

    def objection(self, text: str, /) -> str | None:
        return _fault_of(_header_of(text)) if self.fits(text) else None


def _header_of(text: str) -> str:
    return text.partition(".")[0]


@lru_cache(maxsize=16)  # a writer has one header for all its content
def _fault_of(encoded: str) -> str | None:
    """What keeps a compact JWE with this header from being read here."""
    try:
        header = msgspec.json.decode(_decode(encoded), type=dict[str, object])
    except (ValueError, msgspec.DecodeError):
        return "looks like jwe, but its header is damaged"
    if (header.get("alg"), header.get("enc")) != ("dir", "A256GCM"):
        return 'looks like jwe with another algorithm; only alg "dir" with enc "A256GCM" is read'
    extra = sorted({"zip", "crit"} & header.keys())
    return f"looks like jwe with {' and '.join(extra)}, which is not read" if extra else None


class FernetToken(Authenticated):
    """A Fernet token, which has a time in it; the time is not judged."""

    marked = True

    def __init__(self, name: str, key: bytes) -> None:
        super().__init__(name)
        self._fernet = Fernet(urlsafe_b64encode(key))

    def fits(self, text: str, /) -> bool:
        return text.startswith("gAAAAA")

    def open(self, text: str, /) -> bytes | None:
        try:
            BASE64URL.decode(text)  # Fernet's own decoder is lenient
            return self._fernet.decrypt(text)
        except (ValueError, InvalidToken):  # not base64url, or changed: said by the None
            return None

    def seal(self, plain: bytes, _like: str | None, /) -> str:
        return self._fernet.encrypt(plain).decode()
