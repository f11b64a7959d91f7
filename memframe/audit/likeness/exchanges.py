"""Exchanges: of two texts the words of one that stand where the other one has others, and how many values they are."""

from __future__ import annotations

from collections.abc import Sequence

from memframe.audit.language.lexicon import ARTICLES, CALENDAR, LIGHT, MONTH, NEGATIONS, TIMES, UNITS, USERS
from memframe.audit.language.resemblance import is_number
from memframe.audit.likeness.difference import heavy

_STANDING_IN = ARTICLES | USERS | {"i"}
_TITLES = frozenset({"mr", "mrs", "ms", "dr"})


def valued(side: list[str], other: list[str]) -> list[str]:
    """Words that carry a value; beside a number or a letter «a» does, too («type A», «a dog»), beside a name «user»."""
    words = heavy(side)
    if words:
        return words
    beside_letter = any(is_number(word) or (len(word) == 1 and word not in LIGHT) for word in other)
    standing_in = _STANDING_IN if beside_letter else USERS if heavy(other) else frozenset()
    return [word for word in side if word in standing_in]


def n_values(words: Sequence[str]) -> int:
    """How many values some words are: a day, its month and its year are one, as is a length; a denial is none.

    >>> n_values(["3", "july", "2025"]), n_values(["3", "km"]), n_values(["3", "cats"]), n_values(["not", "cats"])
    (1, 1, 2, 1)
    """
    said = [word for word in words if word not in NEGATIONS]
    if len(said) < 2:
        return len(said)
    measured = [word for word in said if is_number(word) or _belongs_to_number(word)]
    return len(said) - len(measured[1:]) if any(map(_belongs_to_number, measured)) else len(said)


def n_light(words: Sequence[str]) -> int:
    """How many of the words carry no value, a title beside a name apart."""
    return sum(word in LIGHT and word not in _TITLES for word in words)


def is_amount(place: tuple[list[str], list[str]]) -> bool:
    """Whether a number and what it counts were both exchanged, which are two values, not one as a date or a length."""
    return all(
        any(map(is_number, side)) and not all(is_number(word) or _belongs_to_number(word) for word in side)
        for side in place
    )


def kind_of(left: Sequence[str], right: Sequence[str]) -> str:
    """What was exchanged: a date, a number or a word."""
    if any(word in TIMES or word[0] == MONTH for word in (*left, *right)):
        return "date"
    if any(map(is_number, left)) and any(map(is_number, right)):
        return "number"
    return "word"


def _belongs_to_number(word: str) -> bool:
    return word in CALENDAR or word in UNITS or word[0] == MONTH
