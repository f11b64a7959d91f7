"""Bank accounts: international numbers (IBAN) of the right length for their country, with the right check digits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memframe.audit.text import Span

_LENGTHS = {
    code: length
    for length, codes in {
        15: "NO",
        16: "BE",
        18: "DK FI FO GL NL SD",
        19: "MK SI",
        20: "AT BA EE KZ LT LU MN XK",
        21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA",
        23: "AE GI IL IQ OM SO TL",
        24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST",
        26: "IS TR",
        27: "BI DJ FR GR IT MC MR SM",
        28: "AL AZ BY CY DO GT HU LB NI PL SV",
        29: "BR EG PS QA UA",
        30: "JO KW MU YE",
        31: "MT SC",
        32: "LC",
        33: "RU",
    }.items()
    for code in codes.split()
}
"""Characters of an account number, by country (ISO 13616 registry)."""

_CANDIDATE = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}(?:[ \u00a0-]?[A-Za-z0-9]){10,36}")
_SPACE = re.compile(r"[ \u00a0-]")

MARKS = r"(?i)\b[a-z]{2}[0-9]{2}[ \x{a0}-]?[a-z0-9]{2}"
"""A pattern of RE2 that every text with such a number matches."""


def find_ibans(text: str) -> Iterator[Span]:
    """Account numbers, in one piece or in groups.

    >>> text = "IBAN DE89 3704 0044 0532 0130 00 or so"
    >>> [text[span.start : span.end] for span in find_ibans(text)]
    ['DE89 3704 0044 0532 0130 00']
    """
    for match in _CANDIDATE.finditer(text):
        length = _LENGTHS.get(match[0][:2].upper())
        end = length and _end_of(match[0], length)
        if end and _passes_mod_97(_SPACE.sub("", match[0][:end]).upper()):
            yield Span("iban", match.start(), match.start() + end, 1.0)


def _end_of(candidate: str, length: int) -> int | None:
    """Where that many letters and digits end; None where another follows at once."""
    places = [place for place, letter in enumerate(candidate) if letter.isalnum()]
    if len(places) < length or candidate[places[length - 1] + 1 : places[length - 1] + 2].isalnum():
        return None
    return places[length - 1] + 1


def _passes_mod_97(number: str) -> bool:
    """The country and check digits go to the end, letters become numbers from 10, and the rest by 97 is 1."""
    return int("".join(str(int(letter, 36)) for letter in number[4:] + number[:4])) % 97 == 1
