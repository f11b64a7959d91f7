"""Values: what follows a keyword and may be the secret itself, with what stands around it."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Link = Literal["is", "colon", "set", "dash", "comma", "beside", "named", "reversed"]
"""What stands between keyword and value: a verb, a colon or equals sign, "changed to", a dash, a comma; nothing, or
names and then a verb ("password Netflix is"); or the value stands first."""


class Value(NamedTuple):
    """What may be a secret, in its surroundings."""

    rest: str
    """Text from the value on."""
    quoted: str | None
    """What stands between quotation marks; None where there are none."""
    link: Link
    keyword: str
    """In small letters, as are purpose and before."""
    purpose: str
    """Words between keyword and link: what the secret is for."""
    before: str
    """Text before the keyword."""


class Judged(NamedTuple):
    """The secret within the rest: from where to where, and how sure that is."""

    start: int
    end: int
    score: float


LOOSE = frozenset({"beside", "dash", "named", "reversed"})
"""Links after which words of all kinds may stand, so that a secret must show by itself that it is one."""

_UNIT = re.compile(
    r"\s*+(?:\+\s*+)?(?:(?:or|to|bis|oder)\s++(?:more|[0-9]+|mehr)\s*+)?(?:-\s*+)?(?:char|digit|letter|symbol|word|day"
    r"|week|month"
    r"|year|minute|hour|time|bit|attempt|tries|people|user|zeichen|stellen|ziffern|tage|caract|tekens"
    r"|dollars?|m\b|mm\b|cm\b|km\b|kg\b"
    r"|euros?|%)",
    re.IGNORECASE,
)
"""Blanks are taken once and not given back: of many, the ways to share them out would be without number."""


def is_amount(value: Value, end: int) -> bool:
    """Whether what ends there is a number of something: "12 characters", "90 days"."""
    return _UNIT.match(value.rest, end) is not None
