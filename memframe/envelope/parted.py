"""Layouts that write nonce, ciphertext and tag apart: between colons, or as the fields of a JSON object."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from memframe.envelope.alphabets import HEX, HEX_UPPER, Alphabet, Spelled, spellings
from memframe.envelope.layouts import IV_BYTES, TAG_BYTES, Aead, Layout, decrypt


class Parts(NamedTuple):
    """Nonce, ciphertext and tag, each as text."""

    iv: str
    data: str
    tag: str


class Reading(NamedTuple):
    """What stood in `Parts`, and the alphabets that they were written in."""

    plain: bytes
    iv_size: int
    alphabets: tuple[Alphabet, Alphabet, Alphabet]


class Parted(Layout):
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
        return (
            parts is not None
            and self._frame_of(parts) is not None
            and bool(spellings(parts.data) or not parts.data)
        )

    def _frame_of(self, parts: Parts) -> tuple[Spelled, Spelled] | None:
        """Nonce and tag, whose sizes leave no doubt about their alphabets."""
        iv = next((read for read in spellings(parts.iv) if len(read.raw) in (IV_BYTES, 16)), None)
        tag = next((read for read in spellings(parts.tag) if len(read.raw) == TAG_BYTES), None)
        return (iv, tag) if iv and tag else None

    def _read(self, text: str) -> Reading | None:
        parts = self._split(text)
        frame = parts and self._frame_of(parts)
        if not parts or not frame:
            return None
        (iv_alphabet, iv), (tag_alphabet, tag) = frame
        # A short ciphertext may be base64 and hexadecimal at once: its tag decides, the tag's alphabet first.
        for alphabet, data in sorted(
            spellings(parts.data), key=lambda read: read.alphabet is not tag_alphabet
        ):
            alphabets = (iv_alphabet, alphabet, tag_alphabet)
            plain = decrypt(self._cipher, iv, data + tag)
            if plain is not None and _one_case(parts, alphabets):
                return Reading(plain, len(iv), alphabets)
        return None

    def open(self, text: str, /) -> bytes | None:
        read = self._read(text)
        return read and read.plain

    def seal(self, plain: bytes, like: str | None, /) -> str:
        form = (like and self._read(like)) or Reading(b"", IV_BYTES, (HEX, HEX, HEX))
        nonce = os.urandom(form.iv_size)
        sealed = self._cipher.encrypt(nonce, plain, None)
        raws = (nonce, sealed[:-TAG_BYTES], sealed[-TAG_BYTES:])
        texts = (alphabet.encode(raw) for alphabet, raw in zip(form.alphabets, raws, strict=True))
        return self._join(Parts(*texts), like)


def _one_case(parts: Parts, alphabets: Sequence[Alphabet]) -> bool:
    """Whether all hexadecimal parts together keep to one case; a part by itself may have digits only."""
    hexadecimal = "".join(
        part for part, alphabet in zip(parts, alphabets, strict=True) if alphabet in (HEX, HEX_UPPER)
    )
    return hexadecimal in (hexadecimal.lower(), hexadecimal.upper())


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
