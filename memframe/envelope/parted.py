"""Layouts that write nonce, ciphertext and tag apart: between colons, or as the fields of a JSON object."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import msgspec
from cryptography.exceptions import InvalidTag

from memframe.envelope.alphabets import BASE64URL_BARE, HEX, HEX_UPPER, Alphabet, spellings
from memframe.envelope.layouts import IV_BYTES, TAG_BYTES, Aead, Authenticated, decrypt

_IV_SIZES = (IV_BYTES, 16)


class Parts(NamedTuple):
    """Nonce, ciphertext and tag, each as text."""

    iv: str
    data: str
    tag: str


Alphabets = tuple[Alphabet, Alphabet, Alphabet]
"""Those of `Parts`, in the same order."""


class Form(NamedTuple):
    """What stood in a text, and how it was spelled."""

    plain: bytes
    iv_size: int
    alphabets: Alphabets


class Parted(Authenticated):
    """Nonce, ciphertext and tag written apart, each in an alphabet of its own."""

    def __init__(self, name: str, cipher: Aead) -> None:
        super().__init__(name)
        self._cipher = cipher

    @abstractmethod
    def _split(self, text: str) -> Parts | None:
        """The three parts, or None where the text is not built like that."""

    @abstractmethod
    def _join(self, parts: Parts, like: str | None, /) -> str:
        """The text of three parts."""

    def fits(self, text: str, /) -> bool:
        parts = self._split(text)
        return parts is not None and bool(_readings(parts))

    def open(self, text: str, /) -> bytes | None:
        form = self._form_of(text)
        return form and form.plain

    def open_all(self, texts: Sequence[str | None], like: str, /) -> list[bytes | None]:
        form = self._form_of(like)
        if form is None:
            return super().open_all(texts, like)
        return [None if text is None else self._open_in(text, form.alphabets) for text in texts]

    def _open_in(self, text: str, alphabets: Alphabets) -> bytes | None:
        parts = self._split(text)
        if parts is None:
            return None
        try:
            iv, data, tag = (alphabet.decode(part) for alphabet, part in zip(alphabets, parts, strict=True))
            return self._cipher.decrypt(iv, data + tag, None) if len(tag) == TAG_BYTES else None
        except (ValueError, InvalidTag):  # spelled in another way, or changed
            return None

    def _form_of(self, text: str) -> Form | None:
        parts = self._split(text)
        for alphabets, (iv, data, tag) in _readings(parts) if parts else ():
            plain = decrypt(self._cipher, iv, data + tag)
            if plain is not None:
                return Form(plain, len(iv), alphabets)
        return None

    def seal(self, plain: bytes, like: str | None, /) -> str:
        form = (like and self._form_of(like)) or Form(b"", IV_BYTES, (HEX, HEX, HEX))
        nonce = os.urandom(form.iv_size)
        sealed = self._cipher.encrypt(nonce, plain, None)
        raws = (nonce, sealed[:-TAG_BYTES], sealed[-TAG_BYTES:])
        texts = (alphabet.encode(raw) for alphabet, raw in zip(form.alphabets, raws, strict=True))
        return self._join(Parts(*texts), like)


def _readings(parts: Parts) -> list[tuple[Alphabets, tuple[bytes, bytes, bytes]]]:
    """Alphabets and bytes of the parts in every way that gives nonce and tag their sizes.

    A short part may be base64 and hexadecimal at once, and only the tag can tell. Parts in one alphabet
    come first: most writers use one, and so does what is written after them.
    """
    ways = product(*(list(spellings(part)) for part in parts))
    fitting = [way for way in ways if len(way[0].raw) in _IV_SIZES and len(way[2].raw) == TAG_BYTES]
    fitting.sort(key=lambda way: len({read.alphabet.name for read in way}))
    readings = [tuple(zip(*way, strict=True)) for way in fitting]
    return [(alphabets, raws) for alphabets, raws in readings if _agree(alphabets)]


def _agree(alphabets: Alphabets) -> bool:
    """Whether one writer can have used these together: one case of digits, padding everywhere or nowhere.

    Otherwise a capital made small, or padding cut off, would open just the same.
    """
    used = {*alphabets}
    return not {HEX, HEX_UPPER} <= used and (BASE64URL_BARE not in used or len(used) == 1)


class Colons(Parted):
    """``iv:tag:ct`` or ``iv:ct:tag``."""

    def __init__(self, name: str, cipher: Aead, *, tag_last: bool) -> None:
        super().__init__(name, cipher)
        self._tag_last = tag_last

    def _split(self, text: str) -> Parts | None:
        parts = text.split(":", 3)
        if len(parts) != 3:
            return None
        iv, *others = parts
        data, tag = others if self._tag_last else reversed(others)
        return Parts(iv, data, tag)

    def _join(self, parts: Parts, _like: str | None, /) -> str:
        order = (parts.iv, parts.data, parts.tag) if self._tag_last else (parts.iv, parts.tag, parts.data)
        return ":".join(order)


_IV_KEYS = ("iv", "nonce")
_DATA_KEYS = ("data", "ciphertext", "content", "encrypted", "encryptedData", "ct")
_TAG_KEYS = ("tag", "authTag", "auth_tag")
_ALGORITHM_KEYS = ("alg", "algorithm")
_ALGORITHMS = ("aes-256-gcm", "AES-256-GCM", "AES-GCM", "A256GCM")


class Json(Parted):
    """A JSON object with nonce, ciphertext and tag, and perhaps the name of the algorithm.

    Any other key, and white space that some writer does not put there, is refused: nothing would notice
    its change.
    """

    marked = True

    def _split(self, text: str) -> Parts | None:
        fields = _fields_of(text)
        named = [[key for key in keys if key in fields] for keys in (_IV_KEYS, _DATA_KEYS, _TAG_KEYS)]
        algorithms = [key for key in _ALGORITHM_KEYS if fields.get(key) in _ALGORITHMS]
        if any(len(keys) != 1 for keys in named) or len(fields) != len(named) + len(algorithms):
            return None
        return Parts(*(fields[key] for (key,) in named))

    def _join(self, parts: Parts, like: str | None) -> str:
        values = zip((_IV_KEYS, _DATA_KEYS, _TAG_KEYS), parts, strict=True)
        sealed = {key: value for keys, value in values for key in keys}
        form = _fields_of(like) if like else dict.fromkeys((_IV_KEYS[0], _DATA_KEYS[0], _TAG_KEYS[0]), "")
        return msgspec.json.encode({key: sealed.get(key, value) for key, value in form.items()}).decode()


def _fields_of(text: str) -> dict[str, str]:
    """Keys and texts of a JSON object; none where it is something else."""
    if not (text.startswith("{") and text.endswith("}")) or "\r" in text:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.DecodeError, UnicodeEncodeError):
        return {}
