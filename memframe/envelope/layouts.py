"""Layouts of sealed content: ours, joined bytes, parts between colons or in JSON, compact JWE, Fernet, and two without
authentication.

A layout is bound to a key when it is made. It never raises for content: what it cannot open is None,
as a page with one damaged row is the common case, and the reason is worked out in `memframe.envelope.detect`.

Layouts without authentication (AES-CBC, OpenSSL) are read only by name and never written: anybody who can write to
the store can change single characters of such content without the key, and a wrong key is noticed by chance alone
(the padding must be right and the result UTF-8).
"""

from __future__ import annotations

import hashlib
import os
import re
from abc import ABC, abstractmethod
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple, Protocol

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7

from memframe.envelope.alphabets import (
    BASE64,
    BASE64URL,
    BASE64URL_BARE,
    HEX,
    HEX_UPPER,
    Alphabet,
    decode_base64,
    decode_base64_all,
    spelling,
    spellings,
)
from memframe.errors import SealError
from memframe.secret import Secret

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
        True if a text in this layout can be recognized without the key.
    """

    marked = False

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<layout {self.name}>"

    @abstractmethod
    def fits(self, text: str, /) -> bool:
        """Return True if the text could be in this layout, judged without the key."""

    @abstractmethod
    def open(self, text: str, /) -> bytes | None:
        """Open a text; None if it is not in this layout or does not authenticate."""

    def open_all(self, texts: Sequence[str | None], _like: str, /) -> list[bytes | None]:
        """Open many texts; the second argument is a text that did open.

        May leave out rows spelled in another way.
        """
        return [None if text is None else self.open(text) for text in texts]

    def objection(self, _text: str, /) -> str | None:
        """Explain, as far as this layout can, why it did not open a text."""
        return None


class Authenticated(Layout):
    """A layout in which every change of the sealed text is noticed; only such are written."""

    @abstractmethod
    def seal(self, plain: bytes, like: str | None, /) -> str:
        """Seal under a fresh nonce, spelled like a given sealed text."""


def decrypt(cipher: Aead, iv: bytes, sealed: bytes, bound: bytes | None = None) -> bytes | None:
    """Decrypt and authenticate; None if that fails."""
    try:
        return cipher.decrypt(iv, sealed, bound)
    except InvalidTag:
        return None


def associated_data(user_id: str, key_version: int) -> bytes:
    """Return what our own layout binds to the content without storing it: mark, user, key version."""
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
        """Return alphabet and nonce size of a text that this layout opens."""
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
        """Open a well-formed column; the first text that is malformed raises."""
        unseal = self._cipher.decrypt
        return [unseal(raw[:size], raw[size:], None) for raw in decode_base64_all(texts)]

    def seal(self, plain: bytes, like: str | None, /) -> str:
        alphabet, size = self._form_of(like) if like else (BASE64, self._iv_sizes[0])
        nonce = os.urandom(size)
        sealed = self._cipher.encrypt(nonce, plain, None)
        if not self._tag_last:
            sealed = sealed[-TAG_BYTES:] + sealed[:-TAG_BYTES]
        return alphabet.encode(nonce + sealed)


_IV_SIZES = (IV_BYTES, 16)


class Parts(NamedTuple):
    """Nonce, ciphertext and tag, each as text."""

    iv: str
    data: str
    tag: str


Alphabets = tuple[Alphabet, Alphabet, Alphabet]
"""Those of `Parts`, in the same order."""


class Form(NamedTuple):
    """Parsed text: parts, and how they were spelled."""

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
        """Split a text into its three parts; None if it has another form."""

    @abstractmethod
    def _join(self, parts: Parts, like: str | None, /) -> str:
        """Join three parts to a text."""

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
    """List alphabets and bytes of the parts for every reading in which nonce and tag have their sizes.

    A short part may be base64 and hexadecimal at once, and only the tag can tell. Parts in one alphabet
    come first: most writers use one, and so does what is written after them.
    """
    ways = product(*(list(spellings(part)) for part in parts))
    fitting = [way for way in ways if len(way[0].raw) in _IV_SIZES and len(way[2].raw) == TAG_BYTES]
    fitting.sort(key=lambda way: len({read.alphabet.name for read in way}))
    readings = [tuple(zip(*way, strict=True)) for way in fitting]
    return [(alphabets, raws) for alphabets, raws in readings if _agree(alphabets)]


def _agree(alphabets: Alphabets) -> bool:
    """Return True if one writer can have used these together: one case of digits, padding in all or none.

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
    """Read the texts of a JSON object; empty for anything else."""
    if not (text.startswith("{") and text.endswith("}")) or "\r" in text:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.DecodeError, UnicodeEncodeError):
        return {}


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
    """Explain why a compact JWE with this header cannot be read."""
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
    """List nonce and ciphertext for every alphabet in which both are whole blocks."""
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
        """Derive key and nonce by EVP_BytesToKey: chained digests, until there are 32 + 16 bytes."""
        digests = [b""]
        for _ in range(3):
            material = digests[-1] + self._passphrase + salt
            digests.append(hashlib.md5(material, usedforsecurity=False).digest())  # the format's choice
        return b"".join(digests)


_DIGITS = 64
_ADVICE = "fetch the credentials again and pass their encryption_key as it came"
_NEED = f"need {_DIGITS} hexadecimal characters (256 bits)"
_SHORTER = {32: "128", 48: "192"}

DERIVATIONS: dict[str, Callable[[str], bytes]] = {
    "": bytes.fromhex,
    "ascii": lambda text: text[:32].encode("ascii"),
    "sha256": lambda text: hashlib.sha256(text.encode("ascii")).digest(),
}
"""How 32 bytes come from the text. All but the first are read only when a format names them."""


def check_key(key: Secret) -> None:
    """Refuse a key that is not fit for use.

    Parameters
    ----------
    key : Secret
        64 hexadecimal characters; capitals are accepted.

    Raises
    ------
    SealError
        Where the text is anything else; the message says what, and never quotes it.

    Examples
    --------
    >>> check_key(Secret("0x" + "5f" * 32))
    Traceback (most recent call last):
    memframe.errors.SealError: the encryption key begins with 0x; need 64 hexadecimal characters (256 bits)
    without it
    """
    fault = _fault(key.reveal())  # the text is in no variable of a frame that raises
    if fault:
        raise SealError(f"the encryption key {fault}")


def is_fit(key: Secret) -> bool:
    """Return True for a key that `check_key` accepts."""
    return _fault(key.reveal()) is None


def _fault(text: str) -> str | None:
    if not text:
        return f"is empty; {_ADVICE}"
    if text[:2] in ("0x", "0X"):
        return f"begins with 0x; {_NEED} without it"
    if any(sign.isspace() for sign in text):
        return f"contains spaces or line ends; {_NEED} and nothing else"
    if not re.fullmatch("[0-9a-fA-F]+", text):
        return _not_hexadecimal(text)
    return _wrong_size(text) or _predictable(text)


def _not_hexadecimal(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9+/_-]{43}=?", text):
        return f"looks like base64; {_NEED}: decode it and pass .hex() of the bytes"
    return f"contains characters that are not hexadecimal; {_ADVICE}"


def _wrong_size(text: str) -> str | None:
    n_digits = len(text)
    if n_digits in _SHORTER:
        return f"has {_SHORTER[n_digits]} bits ({n_digits} hexadecimal characters); {_NEED}"
    if n_digits != _DIGITS:
        odd = ", an odd number" if n_digits % 2 else ""
        return f"has {n_digits} characters{odd}; {_NEED}; {_ADVICE}"
    return None


def _predictable(text: str) -> str | None:
    if len(set(bytes.fromhex(text))) == 1:
        return f"is one byte repeated, which protects nothing; {_ADVICE}"
    return None
