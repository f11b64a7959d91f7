"""Payment cards: digits that begin as an issuer's do, in one of its lengths, and end in the right check digit."""

from __future__ import annotations

import re

SHORTEST = 12
"""Digits of the shortest numbers."""

_ISSUERS = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})"  # Visa
    r"|(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"  # Mastercard
    r"|3[47][0-9]{13}"  # American Express
    r"|3(?:0[0-59]|[689][0-9])[0-9]{11,16}"  # Diners Club
    r"|(?:6011|64[4-9][0-9]|65[0-9]{2})[0-9]{12,15}"  # Discover
    r"|35(?:2[89]|[3-8][0-9])[0-9]{12,15}|(?:2131|1800)[0-9]{11}"  # JCB
    r"|62[0-9]{14,17}|81[0-9]{14,17}"  # UnionPay
    r"|220[0-4][0-9]{12,15}"  # Mir
    r"|(?:50|5[6-9]|67)[0-9]{10,17}|(?:6304|6390)[0-9]{8,15}"  # Maestro, of 12 to 19 digits
    r"|60[0-9]{14}"  # RuPay
)
_GROUPS = re.compile(
    r"[0-9]{12,19}|[0-9]{4}(?:([ .-])[0-9]{4}){2}\1[0-9]{1,4}(?:\1[0-9]{1,3})?|[0-9]{4}([ .-])[0-9]{6}\2[0-9]{4,5}"
)
_DOUBLED = str.maketrans("0123456789", "0246813579")


def is_card(text: str, *, is_told: bool = False) -> bool:
    """Whether a text is the number of a card, in one piece or in the usual groups.

    Where it `is_told` that it is one, the check digit is enough: the list of issuers grows.

    >>> is_card("4111 1111 1111 1111"), is_card("4111 1111 1111 1112"), is_card("41 11 11 11 11 11 11 11")
    (True, False, False)
    """
    digits = re.sub("[ .-]", "", text)
    return (
        _GROUPS.fullmatch(text) is not None
        and (is_told or _ISSUERS.fullmatch(digits) is not None)
        and passes_luhn(digits)
    )


def passes_luhn(digits: str) -> bool:
    """Whether the last digit is the check digit of the others (ISO/IEC 7812).

    >>> passes_luhn("79927398713"), passes_luhn("79927398710")
    (True, False)
    """
    doubled = digits[-2::-2].translate(_DOUBLED)
    return (sum(map(int, digits[::-2])) + sum(map(int, doubled))) % 10 == 0
