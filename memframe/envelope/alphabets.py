"""Strict encoding and decoding of hexadecimal and base64, and of UTF-8.

Lenient decoders skip foreign characters, ignore the unused bits of a last base64 character and accept both cases of
hexadecimal digits. With them, sealed content would still open after such a change of its text.
"""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pybase64 import b64decode, b64encode_as_string


class Alphabet(NamedTuple):
    """One spelling of bytes as text; ``decode`` raises ValueError for any other spelling."""

    name: str
    encode: Callable[[bytes], str]
    decode: Callable[[str], bytes]

    def decode_all(self, texts: Sequence[str]) -> list[bytes]:
        """Decode many texts; base64, the most frequent spelling, in one loop without Python calls."""
        if self.decode is not decode_base64:
            return list(map(self.decode, texts))
        raws = [b64decode(text, None, True) for text in texts]
        for tail in {text[-3:] for text in texts if text[-1:] == "="}:
            _check_tail(tail)
        return raws


_WHOLE_TWO = frozenset(f"{last}=" for last in "AEIMQUYcgkosw048")
_WHOLE_THREE = frozenset(f"{last}==" for last in "AQgw")
"""Ends of padded base64 whose unused bits are zero, as every encoder writes them."""


def _check_tail(text: str) -> None:
    if text[-1:] == "=" and text[-2:] not in _WHOLE_TWO and text[-3:] not in _WHOLE_THREE:
        raise ValueError("unused bits of the last base64 character are set")


def decode_base64(text: str) -> bytes:
    """Decode padded base64 in the standard alphabet.

    >>> decode_base64("aGk=")
    b'hi'
    >>> decode_base64("aGl=")
    Traceback (most recent call last):
    ValueError: unused bits of the last base64 character are set
    """
    raw = b64decode(text, validate=True)
    _check_tail(text)
    return raw


def _decode_url(text: str) -> bytes:
    if "+" in text or "/" in text:  # the decoder would accept both spellings of the digits 62 and 63
        raise ValueError("a character of the other base64 alphabet")
    raw = b64decode(text, altchars=b"-_", validate=True)
    _check_tail(text)
    return raw


def _encode_url(raw: bytes) -> str:
    return b64encode_as_string(raw, altchars=b"-_")


def _decode_bare(text: str) -> bytes:
    if text.endswith("="):
        raise ValueError("padding in base64 without padding")
    return _decode_url(text + "=" * (-len(text) % 4))


def _hexadecimal(name: str, case: Callable[[str], str]) -> Alphabet:
    def decode(text: str) -> bytes:
        if text != case(text):
            raise ValueError("both cases of hexadecimal digits")
        return unhexlify(text)

    return Alphabet(name, lambda raw: case(raw.hex()), decode)


HEX, HEX_UPPER = _hexadecimal("hex", str.lower), _hexadecimal("HEX", str.upper)
BASE64 = Alphabet("base64", b64encode_as_string, decode_base64)
BASE64URL = Alphabet("base64url", _encode_url, _decode_url)
BASE64URL_BARE = Alphabet("base64url without padding", lambda raw: _encode_url(raw).rstrip("="), _decode_bare)

ALPHABETS = (HEX, HEX_UPPER, BASE64, BASE64URL, BASE64URL_BARE)
"""Alphabets in the order in which they are tried. Hexadecimal comes first, because hexadecimal text is often valid
base64, but sealed content in base64 never consists of hexadecimal digits by chance."""


def spellings(text: str, alphabets: Sequence[Alphabet] = ALPHABETS) -> Iterator[tuple[Alphabet, bytes]]:
    """Yield the readings of a text in strict alphabets, the likeliest first.

    >>> [(alphabet.name, raw) for alphabet, raw in spellings("QUI=")]
    [('base64', b'AB'), ('base64url', b'AB')]
    """
    if " " in text:  # prose, recognised without decoding
        return
    for alphabet in alphabets:
        try:
            raw = alphabet.decode(text)
        except ValueError:
            continue
        yield alphabet, raw


def utf8_of(text: str) -> bytes | None:
    """Encode a text as UTF-8; None if it holds half a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def is_utf8(plain: bytes) -> bool:
    """Return True for bytes that are UTF-8.

    >>> is_utf8(b"tea"), is_utf8(b"\\xff")
    (True, False)
    """
    try:
        plain.decode()
    except UnicodeDecodeError:
        return False
    return True
