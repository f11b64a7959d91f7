"""From the key as the service hands it out, hexadecimal text, to the bytes of a cipher."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

from memframe.errors import SealError
from memframe.secret import Secret

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
    """Whether `check_key` has nothing against it."""
    return _fault(key.reveal()) is None


def _fault(text: str) -> str | None:
    if not text:
        return f"is empty; {_ADVICE}"
    if text[:2] in ("0x", "0X"):
        return f"begins with 0x; {_NEED} without it"
    if any(sign.isspace() for sign in text):
        return f"holds spaces or line ends; {_NEED} and nothing else"
    if not re.fullmatch("[0-9a-fA-F]+", text):
        return _not_hexadecimal(text)
    return _wrong_size(text) or _predictable(text)


def _not_hexadecimal(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9+/_-]{43}=?", text):
        return f"looks like base64; {_NEED}: decode it and pass .hex() of the bytes"
    return f"holds characters that are not hexadecimal; {_ADVICE}"


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
