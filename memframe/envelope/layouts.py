"""What a layout of sealed content is, our own, and the plainest of the others: one joined run of bytes.

A layout is bound to a key when it is made. It never raises for content: what it cannot open is None,
as a page with one damaged row is the common case and the reason is worked out apart.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

from cryptography.exceptions import InvalidTag

from memframe.envelope.alphabets import BASE64, Alphabet, decode_base64, decode_base64_all, spelling

IV_BYTES = 12
TAG_BYTES = 16


class Aead(Protocol):
    """An authenticated cipher of ``cryptography``, its key inside."""

    def encrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None) -> bytes: ...

    def decrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None) -> bytes: ...


class Layout(ABC):
    """One way to write sealed bytes as text.

    Attributes
    ----------
    name : str
        As in ``content_format``.
    marked : bool
        Whether a text in this layout can be told from every other by looking at it.
    """

    marked = False

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<layout {self.name}>"

    @abstractmethod
    def fits(self, text: str, /) -> bool:
        """Whether the text could be in this layout, judged without the key."""

    @abstractmethod
    def open(self, text: str, /) -> bytes | None:
        """What was sealed, or None where it is not in this layout or did not authenticate."""

    def open_all(self, texts: Sequence[str | None], _like: str, /) -> list[bytes | None]:
        """`open` for many; the second argument is a text that did open.

        May leave out rows spelled in another way.
        """
        return [None if text is None else self.open(text) for text in texts]

    def objection(self, _text: str, /) -> str | None:
        """What the layout itself can say about a text that it did not open."""
        return None


class Authenticated(Layout):
    """A layout in which every change of the sealed text is noticed; only such are written."""

    @abstractmethod
    def seal(self, plain: bytes, like: str | None, /) -> str:
        """Seal under a fresh nonce, spelled like another sealed text where one is given."""


def decrypt(cipher: Aead, iv: bytes, sealed: bytes, bound: bytes | None = None) -> bytes | None:
    """What the cipher vouches for, or None."""
    try:
        return cipher.decrypt(iv, sealed, bound)
    except InvalidTag:
        return None


def associated_data(user_id: str, key_version: int) -> bytes:
    """What our own layout binds to the content without storing it: the mark, the user, the key version."""
    fields = (b"mf1", user_id.lower().encode(), str(key_version).encode())
    return b"".join(len(field).to_bytes(4, "big") + field for field in fields)


class Own(Authenticated):
    """Our own layout, which names the key version and binds user and key version to the content.

    The text is ``mf1.VERSION.BODY``, all ASCII:

    - ``mf1`` is the mark of this format;
    - VERSION is the key version in decimal digits, without leading zeros;
    - BODY is padded base64 in the standard alphabet (RFC 4648 section 4) of
      ``nonce (12 bytes) | ciphertext | tag (16 bytes)``.

    Cipher: AES-256-GCM; the key is the hexadecimal key text decoded; the plaintext is UTF-8. The
    associated data is the concatenation of three fields: ``mf1``, the user id in small letters, and
    VERSION, each as UTF-8 and preceded by its length in bytes as four bytes, most significant first.
    A reader refuses any other spelling: unused bits of the last character that are set, missing
    padding, white space.
    """

    marked = True
    _form = re.compile(r"mf1\.(0|[1-9][0-9]*)\.")

    def __init__(self, name: str, cipher: Aead, user_id: str, key_version: int) -> None:
        super().__init__(name)
        self._cipher = cipher
        self._key_version = key_version
        self._head = f"mf1.{key_version}."
        self._bound = associated_data(user_id, key_version)

    def fits(self, text: str, /) -> bool:
        return text.startswith("mf1.")

    def open(self, text: str, /) -> bytes | None:
        return self.open_all([text], text)[0]

    def open_all(self, texts: Sequence[str | None], _like: str, /) -> list[bytes | None]:
        unseal, head, bound, start = self._cipher.decrypt, self._head, self._bound, len(self._head)
        opened: list[bytes | None] = []
        for text in texts:
            plain = None
            if text is not None and text.startswith(head):
                try:
                    raw = decode_base64(text[start:])
                    plain = unseal(raw[:IV_BYTES], raw[IV_BYTES:], bound)
                except (ValueError, InvalidTag):  # not base64, too short, or changed: said by the None
                    plain = None
            opened.append(plain)
        return opened

    def seal(self, plain: bytes, _like: str | None, /) -> str:
        nonce = os.urandom(IV_BYTES)
        return self._head + BASE64.encode(nonce + self._cipher.encrypt(nonce, plain, self._bound))

    def objection(self, text: str, /) -> str | None:
        named = self._form.match(text)
        if named and named[1] != str(self._key_version):
            return f"sealed with key_version {named[1]}, these credentials hold {self._key_version}"
        return None


class Joined(Authenticated):
    """Nonce, ciphertext and tag joined to one run of bytes, in base64 or hexadecimal.

    Padding may be missing where the text can be base64url, as its writers differ; it carries no content.
    """

    def __init__(self, name: str, cipher: Aead, *, tag_last: bool, iv_sizes: Sequence[int]) -> None:
        super().__init__(name)
        self._cipher = cipher
        self._tag_last = tag_last
        self._iv_sizes = iv_sizes

    def fits(self, text: str, /) -> bool:
        read = spelling(text)
        return read is not None and len(read.raw) >= min(self._iv_sizes) + TAG_BYTES

    def open(self, text: str, /) -> bytes | None:
        read = spelling(text)
        if read is None:
            return None
        return next(
            (plain for size in self._iv_sizes if (plain := self._open_raw(read.raw, size)) is not None), None
        )

    def _open_raw(self, raw: bytes, iv_size: int) -> bytes | None:
        if len(raw) < iv_size + TAG_BYTES:
            return None
        iv, sealed = raw[:iv_size], raw[iv_size:]
        if not self._tag_last:
            sealed = sealed[TAG_BYTES:] + sealed[:TAG_BYTES]
        return decrypt(self._cipher, iv, sealed)

    def _form_of(self, text: str) -> tuple[Alphabet, int]:
        """Alphabet and nonce size of a text that this layout opens."""
        read = spelling(text)
        if read is None:
            return BASE64, self._iv_sizes[0]
        sizes = (size for size in self._iv_sizes if self._open_raw(read.raw, size) is not None)
        return read.alphabet, next(sizes, self._iv_sizes[0])

    def open_all(self, texts: Sequence[str | None], like: str, /) -> list[bytes | None]:
        alphabet, size = self._form_of(like)
        if alphabet is BASE64 and self._tag_last:
            try:
                return self._open_column(texts, size)  # type: ignore[arg-type]  # a missing one raises
            except (ValueError, TypeError, InvalidTag):
                pass  # one is missing, spelled in another way or changed: look at each
        decode, unseal, tag_last = alphabet.decode, self._cipher.decrypt, self._tag_last
        tag_end = size + TAG_BYTES
        opened: list[bytes | None] = []
        for text in texts:
            plain = None
            if text is not None:
                try:
                    raw = decode(text)
                    sealed = raw[size:] if tag_last else raw[tag_end:] + raw[size:tag_end]
                    plain = unseal(raw[:size], sealed, None)
                except (ValueError, InvalidTag):  # spelled in another way, too short, or changed
                    plain = None
            opened.append(plain)
        return opened

    def _open_column(self, texts: Sequence[str], size: int) -> list[bytes | None]:
        """All of a column that is as it should be; the first text that is not raises."""
        unseal = self._cipher.decrypt
        return [unseal(raw[:size], raw[size:], None) for raw in decode_base64_all(texts)]

    def seal(self, plain: bytes, like: str | None, /) -> str:
        alphabet, size = self._form_of(like) if like else (BASE64, self._iv_sizes[0])
        nonce = os.urandom(size)
        sealed = self._cipher.encrypt(nonce, plain, None)
        if not self._tag_last:
            sealed = sealed[-TAG_BYTES:] + sealed[:-TAG_BYTES]
        return alphabet.encode(nonce + sealed)
