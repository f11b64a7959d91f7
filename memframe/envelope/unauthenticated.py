"""Layouts in which a change goes unnoticed: read when the caller names them, never written.

Whoever can write to the store can change single characters of such content without the key. What
guards against a wrong key is chance alone: the padding must be right and the result UTF-8.
"""

from __future__ import annotations

import hashlib

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7

from memframe.envelope.alphabets import decode_base64, spellings
from memframe.envelope.layouts import Layout

_BLOCK_BYTES = 16


class CbcColon(Layout):
    """AES-256-CBC with PKCS#7 padding as ``iv:ct``, each in hexadecimal or base64."""

    def __init__(self, name: str, key: bytes) -> None:
        super().__init__(name)
        self._aes = AES(key)

    def fits(self, text: str, /) -> bool:
        return bool(_cbc_readings(text))

    def open(self, text: str, /) -> bytes | None:
        opened = (_decrypt_cbc(self._aes, iv, data) for iv, data in _cbc_readings(text))
        return next((plain for plain in opened if plain is not None), None)


def _cbc_readings(text: str) -> list[tuple[bytes, bytes]]:
    """Nonce and ciphertext in every alphabet that makes whole blocks of both."""
    iv_text, colon, data_text = text.partition(":")
    ivs = {raw for _, raw in spellings(iv_text) if colon and len(raw) == _BLOCK_BYTES}
    bodies = {raw for _, raw in spellings(data_text) if raw and len(raw) % _BLOCK_BYTES == 0}
    return [(iv, body) for iv in ivs for body in bodies]


def _decrypt_cbc(aes: AES, iv: bytes, data: bytes) -> bytes | None:
    decryptor, unpadder = Cipher(aes, CBC(iv)).decryptor(), PKCS7(8 * _BLOCK_BYTES).unpadder()
    padded = decryptor.update(data) + decryptor.finalize()
    try:
        plain = unpadder.update(padded) + unpadder.finalize()
        plain.decode()
    except ValueError:  # padding or UTF-8 is wrong, thus the key or the data is
        return None
    return plain


class OpenSsl(Layout):
    """``openssl enc -aes-256-cbc -md md5 -a`` and CryptoJS: base64 of ``Salted__``, salt, ciphertext.

    The passphrase is the hexadecimal text of the key; one round of MD5 makes key and nonce of it.
    """

    marked = True

    def __init__(self, name: str, key_text: str) -> None:
        super().__init__(name)
        self._passphrase = key_text.encode("ascii")

    def fits(self, text: str, /) -> bool:
        return text.startswith("U2FsdGVkX1")

    def open(self, text: str, /) -> bytes | None:
        try:
            raw = decode_base64(text.replace("\n", ""))
        except ValueError:
            return None
        mark, salt, data = raw[:8], raw[8:16], raw[16:]
        if mark != b"Salted__" or not data or len(data) % _BLOCK_BYTES:
            return None
        derived = self._derive(salt)
        return _decrypt_cbc(AES(derived[:32]), derived[32:], data)

    def _derive(self, salt: bytes) -> bytes:
        """EVP_BytesToKey: each digest takes the one before it, until 32 + 16 bytes are there."""
        digests = [b""]
        for _ in range(3):
            material = digests[-1] + self._passphrase + salt
            digests.append(hashlib.md5(material, usedforsecurity=False).digest())  # the format's choice
        return b"".join(digests)
