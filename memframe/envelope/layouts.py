"""Layouts of sealed content: ours, joined bytes, parts between colons or in JSON, compact JWE, Fernet, two without
authentication, and user-defined codecs.

A layout is bound to a key when it is made. It never raises for content that it cannot open but returns None, because
pages with a damaged row are common; `memframe.envelope.detect` finds the reason.

Layouts without authentication (AES-CBC, OpenSSL) are read only by name and never written. Anybody who can write to the
store can change single characters of such content without the key, and a wrong key is noticed only if the padding is
wrong or the result is not UTF-8.
"""

from __future__ import annotations

import hashlib
import os
import re
from abc import ABC, abstractmethod
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple, Protocol

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7

from memframe.envelope.alphabets import (
    ALPHABETS,
    BASE64,
    BASE64URL,
    BASE64URL_BARE,
    HEX,
    HEX_UPPER,
    Alphabet,
    decode_base64,
    spellings,
    utf8_of,
)
from memframe.errors import SealError

IV_BYTES = 12
TAG_BYTES = 16


class Aead(Protocol):
    """An authenticated cipher of ``cryptography``, its key inside."""

    def encrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None) -> bytes: ...

    def decrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None) -> bytes: ...


class Spelling(NamedTuple):
    """Spelling of a sealed text, so that the next one can be written in the same way.

    ``frame`` holds the rest of the text: the keys of JSON, the header of a JWE.
    """

    alphabets: tuple[Alphabet, ...] = ()
    iv_bytes: int = IV_BYTES
    frame: Any = None


class OpenedText(NamedTuple):
    """An opened text, and its spelling."""

    plain: bytes
    spelling: Spelling = Spelling()


class Layout(ABC):
    """One way to write sealed bytes as text; one that is ``marked`` can be recognised without the key."""

    marked = False

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<layout {self.name}>"

    @abstractmethod
    def fits(self, text: str, /) -> bool:
        """Return True if the text could be in this layout, judged without the key."""

    @abstractmethod
    def read(self, text: str, /) -> OpenedText | None:
        """Open a text; None if it is not in this layout or does not authenticate."""

    def open(self, text: str, /) -> bytes | None:
        """Open a text; None as in `read`."""
        read = self.read(text)
        return read and read.plain

    def open_all(self, texts: Sequence[str | None], _spelling: Spelling, /) -> list[bytes | None]:
        """Open many texts; those in another spelling may be left out, as None."""
        return [None if text is None else self.open(text) for text in texts]

    def objection(self, _text: str, /) -> str | None:
        """Explain, as far as this layout can, why it did not open a text."""
        return None


class Authenticated(Layout):
    """A layout in which every change of the sealed text is noticed; only these layouts are written."""

    @abstractmethod
    def seal(self, plain: bytes, spelling: Spelling | None = None, /) -> str:
        """Seal under a fresh nonce, in the spelling of a text that was opened."""


class SealedParts(NamedTuple):
    """Bytes of a text in one of its possible forms; ``data`` ends with the tag."""

    spelling: Spelling
    iv: bytes
    data: bytes


class AeadLayout(Authenticated):
    """A layout of nonce, ciphertext and tag."""

    usual = Spelling()
    """Spelling to write if no text was read."""

    def __init__(self, name: str, cipher: Aead) -> None:
        super().__init__(name)
        self._cipher = cipher

    @abstractmethod
    def _readings(self, text: str) -> Iterable[SealedParts]:
        """Yield the bytes of a text for each spelling that it can be in."""

    @abstractmethod
    def _write(self, spelling: Spelling, iv: bytes, data: bytes, tag: bytes) -> str:
        """Write the parts as text."""

    def _bound(self, _spelling: Spelling) -> bytes | None:
        """Return the associated data."""
        return None

    def fits(self, text: str, /) -> bool:
        return any(self._readings(text))

    def read(self, text: str, /) -> OpenedText | None:
        for spelling, iv, data in self._readings(text):
            try:
                return OpenedText(self._cipher.decrypt(iv, data, self._bound(spelling)), spelling)
            except InvalidTag:
                continue
        return None

    def seal(self, plain: bytes, spelling: Spelling | None = None, /) -> str:
        spelling = spelling or self.usual
        nonce = os.urandom(spelling.iv_bytes)
        sealed = self._cipher.encrypt(nonce, plain, self._bound(spelling))
        return self._write(spelling, nonce, sealed[:-TAG_BYTES], sealed[-TAG_BYTES:])


class Joined(AeadLayout):
    """Nonce, ciphertext and tag joined to one run of bytes, in base64 or hexadecimal.

    Padding may be missing if the text can be base64url, because its writers differ in that; it carries no content.
    """

    _head = ""
    _associated_data: bytes | None = None

    def __init__(
        self, name: str, cipher: Aead, *, tag_last: bool = True, iv_sizes: Sequence[int] = (IV_BYTES, 16)
    ) -> None:
        super().__init__(name, cipher)
        self._tag_last = tag_last
        self._iv_sizes = iv_sizes
        self._alphabets: Sequence[Alphabet] = ALPHABETS
        self.usual = Spelling((BASE64,), iv_sizes[0])

    def _bound(self, _spelling: Spelling) -> bytes | None:
        return self._associated_data

    def _readings(self, text: str) -> Iterator[SealedParts]:
        if not text.startswith(self._head):
            return
        alphabet, raw = next(spellings(text[len(self._head) :], self._alphabets), (BASE64, b""))
        for size in self._iv_sizes:
            if len(raw) >= size + TAG_BYTES:
                end = size if self._tag_last else size + TAG_BYTES
                yield SealedParts(Spelling((alphabet,), size), raw[:size], raw[end:] + raw[size:end])

    def open_all(self, texts: Sequence[str | None], spelling: Spelling, /) -> list[bytes | None]:
        present = [text for text in texts if text is not None]
        if len(present) < len(texts):
            opened = iter(self.open_all(present, spelling))
            return [None if text is None else next(opened) for text in texts]
        head, size, end = self._head, spelling.iv_bytes, spelling.iv_bytes + TAG_BYTES
        unseal, bound = self._cipher.decrypt, self._associated_data
        try:  # a well-formed column, without a Python call for each text
            if head and not all(text.startswith(head) for text in present):
                raise ValueError("another layout")
            raws = spelling.alphabets[0].decode_all([text[len(head) :] for text in present])
            if self._tag_last:
                return [unseal(raw[:size], raw[size:], bound) for raw in raws]
            return [unseal(raw[:size], raw[end:] + raw[size:end], bound) for raw in raws]
        except (ValueError, InvalidTag):  # one is spelled in another way, or changed
            return super().open_all(present, spelling)

    def _write(self, spelling: Spelling, iv: bytes, data: bytes, tag: bytes) -> str:
        return self._head + spelling.alphabets[0].encode(iv + (data + tag if self._tag_last else tag + data))


def associated_data(user_id: str, key_version: int) -> bytes:
    """Return what our own layout binds to the content without storing it: mark, user, key version."""
    fields = (b"mf1", user_id.lower().encode(), str(key_version).encode())
    return b"".join(len(field).to_bytes(4, "big") + field for field in fields)


class Own(Joined):
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

    def __init__(self, name: str, cipher: Aead, user_id: str, key_version: int) -> None:
        super().__init__(name, cipher, iv_sizes=(IV_BYTES,))
        self._key_version = key_version
        self._head = f"mf1.{key_version}."
        self._associated_data = associated_data(user_id, key_version)
        self._alphabets = (BASE64,)

    def fits(self, text: str, /) -> bool:
        return text.startswith("mf1.")

    def objection(self, text: str, /) -> str | None:
        named = re.match(r"mf1\.(0|[1-9][0-9]*)\.", text)
        if named and named[1] != str(self._key_version):
            return f"sealed with key_version {named[1]}, these credentials hold {self._key_version}"
        return None


Parts = tuple[Sequence[str], Any]
"""Nonce, ciphertext and tag, each as text; and the rest of the sealed text."""


class Parted(AeadLayout):
    """Nonce, ciphertext and tag written apart, each in an alphabet of its own.

    ``split`` finds the parts of a text, if it has them, and ``join`` writes them.
    """

    def __init__(
        self,
        name: str,
        cipher: Aead,
        split: Callable[[str], Parts | None],
        join: Callable[[Sequence[str], Any], str],
        *,
        marked: bool = False,
    ) -> None:
        super().__init__(name, cipher)
        self._split, self._join, self.marked = split, join, marked
        self.usual = Spelling((HEX, HEX, HEX))

    def _readings(self, text: str) -> list[SealedParts]:
        """List the bytes of the parts for every reading in which nonce and tag have their sizes.

        A short part may be base64 and hexadecimal at once; then only the tag tells which. Readings in one alphabet
        come first, because most writers use one, and new texts get the alphabets of the reading that opened.
        """
        texts, frame = self._split(text) or ((), None)
        found = []
        for iv, data, tag in product(*(list(spellings(part)) for part in texts)) if texts else ():
            alphabets = iv[0], data[0], tag[0]
            if (
                len(iv[1]) in (IV_BYTES, 16)
                and len(tag[1]) == TAG_BYTES
                and _can_be_of_one_writer({*alphabets})
            ):
                found.append(SealedParts(Spelling(alphabets, len(iv[1]), frame), iv[1], data[1] + tag[1]))
        return sorted(found, key=lambda sealed: len({*sealed.spelling.alphabets}))

    def open_all(self, texts: Sequence[str | None], spelling: Spelling, /) -> list[bytes | None]:
        opened: list[bytes | None] = []
        for text in texts:
            parts, _ = (None if text is None else self._split(text)) or (("", "", ""), None)
            plain = None
            with suppress(ValueError, InvalidTag):  # spelled in another way, or changed
                iv, data, tag = (
                    spelled.decode(part) for spelled, part in zip(spelling.alphabets, parts, strict=True)
                )
                if len(tag) == TAG_BYTES:
                    plain = self._cipher.decrypt(iv, data + tag, None)
            opened.append(plain)
        return opened

    def _write(self, spelling: Spelling, iv: bytes, data: bytes, tag: bytes) -> str:
        spelled = zip(spelling.alphabets, (iv, data, tag), strict=True)
        return self._join([alphabet.encode(part) for alphabet, part in spelled], spelling.frame)


def _can_be_of_one_writer(used: set[Alphabet]) -> bool:
    """Return True if one writer can have used these together: one case of digits, padding in all or none.

    Otherwise a text would still open after the case of its digits was changed, or padding was cut off.
    """
    return not {HEX, HEX_UPPER} <= used and (BASE64URL_BARE not in used or len(used) == 1)


def colon_layout(name: str, cipher: Aead, *, tag_last: bool) -> Parted:
    """Make the layout ``iv:tag:ct`` or ``iv:ct:tag``."""

    def split(text: str) -> Parts | None:
        parts = text.split(":", 3)
        return (ordered(parts), None) if len(parts) == 3 else None

    def ordered(parts: Sequence[str]) -> Sequence[str]:
        return parts if tag_last else (parts[0], parts[2], parts[1])

    return Parted(name, cipher, split, lambda parts, _frame: ":".join(ordered(parts)))


_JSON_KEYS = (
    ("iv", "nonce"),
    ("data", "ciphertext", "content", "encrypted", "encryptedData", "ct"),
    ("tag", "authTag", "auth_tag"),
)
_ALGORITHMS = ("aes-256-gcm", "AES-256-GCM", "AES-GCM", "A256GCM")
_JSON_CONSTANTS: dict[str, tuple[str | int, ...]] = {
    "alg": _ALGORITHMS,
    "algorithm": _ALGORITHMS,
    "v": (1, "1"),
    "version": (1, "1"),
}


def json_layout(name: str, cipher: Aead) -> Parted:
    """Make the layout of a JSON object with nonce, ciphertext and tag, and perhaps algorithm and version 1.

    Other keys, white space around the object and carriage returns are refused, because nothing would notice a
    change of them. The frame holds the keys in their order, algorithm and version.
    """
    return Parted(name, cipher, _split_json, _join_json, marked=True)


def _split_json(text: str) -> Parts | None:
    if not (text.startswith("{") and text.endswith("}")) or "\r" in text:
        return None
    try:
        fields = msgspec.json.decode(text, type=dict[str, str | int])
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    named = [[key for key in keys if key in fields] for keys in _JSON_KEYS]
    constants = {key: fields[key] for key, known in _JSON_CONSTANTS.items() if fields.get(key) in known}
    if any(len(keys) != 1 for keys in named) or len(fields) != len(named) + len(constants):
        return None
    texts = [value for (key,) in named if isinstance(value := fields[key], str)]
    return (texts, dict.fromkeys(fields, "") | constants) if len(texts) == len(named) else None


def _join_json(texts: Sequence[str], frame: dict[str, str | int] | None) -> str:
    frame = frame or {keys[0]: "" for keys in _JSON_KEYS}
    sealed = {key: text for keys, text in zip(_JSON_KEYS, texts, strict=True) for key in keys}
    return msgspec.json.encode({key: sealed.get(key, text) for key, text in frame.items()}).decode()


class Jwe(AeadLayout):
    """Compact JWE (RFC 7516) with the key used directly: ``alg`` is ``dir``, ``enc`` is ``A256GCM``.

    Compression and critical extensions are refused; other header fields are authenticated and kept.
    """

    marked = True
    usual = Spelling(frame=BASE64URL_BARE.encode(b'{"alg":"dir","enc":"A256GCM"}'))

    def fits(self, text: str, /) -> bool:
        return text.startswith("eyJ") and text.count(".") == 4

    def _bound(self, spelling: Spelling) -> bytes:
        header: str = spelling.frame
        return header.encode("ascii")

    def _readings(self, text: str) -> Iterator[SealedParts]:
        if not self.fits(text) or self.objection(text):
            return
        header, key, *sealed = text.split(".")
        try:
            iv, data, tag = map(BASE64URL_BARE.decode, sealed)
        except ValueError:
            return
        if not key and len(iv) == IV_BYTES and len(tag) == TAG_BYTES:
            yield SealedParts(Spelling(frame=header), iv, data + tag)

    def _write(self, spelling: Spelling, iv: bytes, data: bytes, tag: bytes) -> str:
        return ".".join((spelling.frame, "", *map(BASE64URL_BARE.encode, (iv, data, tag))))

    def objection(self, text: str, /) -> str | None:
        return _fault_of_header(text.partition(".")[0]) if self.fits(text) else None


@lru_cache(maxsize=16)  # a writer has one header for all its content
def _fault_of_header(encoded: str) -> str | None:
    """Explain why a compact JWE with this header cannot be read."""
    try:
        header = msgspec.json.decode(BASE64URL_BARE.decode(encoded), type=dict[str, object])
    except (ValueError, msgspec.DecodeError):
        return "looks like jwe, but its header is damaged"
    if (header.get("alg"), header.get("enc")) != ("dir", "A256GCM"):
        return 'looks like jwe with another algorithm; only alg "dir" with enc "A256GCM" is read'
    extra = sorted({"zip", "crit"} & header.keys())
    return f"looks like jwe with {' and '.join(extra)}, which is not read" if extra else None


class FernetToken(Authenticated):
    """A Fernet token; the time in it is not checked."""

    marked = True

    def __init__(self, name: str, key: bytes) -> None:
        super().__init__(name)
        self._fernet = Fernet(urlsafe_b64encode(key))

    def fits(self, text: str, /) -> bool:
        return text.startswith("gAAAAA")

    def read(self, text: str, /) -> OpenedText | None:
        try:
            BASE64URL.decode(text)  # Fernet's own decoder is lenient
            return OpenedText(self._fernet.decrypt(text))
        except (ValueError, InvalidToken):  # not base64url, or changed
            return None

    def seal(self, plain: bytes, _spelling: Spelling | None = None, /) -> str:
        return self._fernet.encrypt(plain).decode()


_BLOCK_BYTES = 16


class CbcColon(Layout):
    """AES-256-CBC with PKCS#7 padding as ``iv:ct``, each in hexadecimal or base64."""

    def __init__(self, name: str, key: bytes) -> None:
        super().__init__(name)
        self._aes = AES(key)

    def fits(self, text: str, /) -> bool:
        return any(self._readings(text))

    def _readings(self, text: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield nonce and ciphertext for every alphabet in which both are whole blocks."""
        iv_text, colon, data_text = text.partition(":")
        for (_, iv), (_, data) in product(spellings(iv_text), spellings(data_text)) if colon else ():
            if len(iv) == _BLOCK_BYTES and data and len(data) % _BLOCK_BYTES == 0:
                yield iv, data

    def read(self, text: str, /) -> OpenedText | None:
        opened = (_decrypt_cbc(self._aes, iv, data) for iv, data in self._readings(text))
        return next(filter(None, opened), None)


def _decrypt_cbc(aes: AES, iv: bytes, data: bytes) -> OpenedText | None:
    decryptor, unpadder = Cipher(aes, CBC(iv)).decryptor(), PKCS7(8 * _BLOCK_BYTES).unpadder()
    padded = decryptor.update(data) + decryptor.finalize()
    try:
        plain = unpadder.update(padded) + unpadder.finalize()
        plain.decode()
    except ValueError:  # wrong padding or UTF-8, so the key or the data is wrong
        return None
    return OpenedText(plain)


class OpenSsl(Layout):
    """``openssl enc -aes-256-cbc -a`` and CryptoJS: base64 of ``Salted__``, salt, ciphertext.

    The passphrase is the hexadecimal text of the key; key and nonce are derived from it by one round of MD5 (CryptoJS
    and OpenSSL before 1.1) or of SHA-256.
    """

    marked = True

    def __init__(self, name: str, key_text: str) -> None:
        super().__init__(name)
        self._passphrase = key_text.encode("ascii")

    def fits(self, text: str, /) -> bool:
        return text.startswith("U2FsdGVkX1")

    def read(self, text: str, /) -> OpenedText | None:
        try:
            raw = decode_base64(text.replace("\n", ""))
        except ValueError:
            return None
        mark, salt, data = raw[:8], raw[8:16], raw[16:]
        if mark != b"Salted__" or not data or len(data) % _BLOCK_BYTES:
            return None
        for digest_name in ("md5", "sha256"):
            derived = digest = b""
            while len(derived) < 48:  # EVP_BytesToKey: chained digests
                salted = digest + self._passphrase + salt
                digest = hashlib.new(digest_name, salted, usedforsecurity=False).digest()
                derived += digest
            if read := _decrypt_cbc(AES(derived[:32]), derived[32:48], data):
                return read
        return None


class Codec(Protocol):
    """User-defined sealing and opening of content."""

    def seal(self, text: str) -> str: ...

    def open(self, text: str) -> str: ...


class CodecLayout(Authenticated):
    """A `Codec` used as a layout; its author promises that it detects changes.

    Messages name only the types of its errors, because their text may hold content.
    """

    def __init__(self, codec: Codec) -> None:
        super().__init__("codec")
        self._codec = codec

    def fits(self, _text: str, /) -> bool:
        return True

    def read(self, text: str, /) -> OpenedText | None:
        plain = _run(self._codec.open, text)
        raw = utf8_of(plain) if isinstance(plain, str) else None
        return None if raw is None else OpenedText(raw)

    def seal(self, plain: bytes, _spelling: Spelling | None = None, /) -> str:
        sealed = _run(self._codec.seal, plain.decode())
        if isinstance(sealed, str):
            return sealed
        raise SealError(f"content cannot be sealed: the codec {_describe(sealed)}")

    def objection(self, text: str, /) -> str | None:
        return f"the codec {_describe(_run(self._codec.open, text))}"


def _run(method: Callable[[str], str], text: str) -> object:
    try:
        return method(text)
    except Exception as error:  # a codec may raise anything
        return error


def _describe(outcome: object) -> str:
    kind = type(outcome).__name__
    if isinstance(outcome, Exception):
        return f"raised {kind}"
    return "returned text that is not Unicode" if isinstance(outcome, str) else f"returned {kind}, not str"
