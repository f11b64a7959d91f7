"""What two texts are to each other: near, the same with a value changed, or apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from memframe.audit.language.lexicon import LIGHT

Verdict = Literal["near", "changed", "apart"]

PARTIAL = "truncated", "extended"
"""Kinds of near texts of which one is a part of the other one."""

LIGHT_WEIGHT = 0.25
"""What a word that carries no value counts beside one that does."""


class Difference(NamedTuple):
    """What two texts are to each other."""

    verdict: Verdict
    kind: str = ""
    """Of near ones: spelling, order, typing, truncated, extended; of changed ones: number, date, word, polarity,
    order."""
    score: float = 0.0
    """Share of the words, by weight, that both texts have."""
    n_places: int = 0
    """In how many places values were exchanged."""
    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    """The words that were exchanged, as they stand in the one and in the other text."""


APART = Difference("apart")


def weight_of(words: Iterable[str]) -> float:
    """Words by what they tell: those that carry a value one each."""
    return sum(LIGHT_WEIGHT if word in LIGHT else 1.0 for word in words)


def heavy(words: Iterable[str]) -> list[str]:
    """The words that carry a value."""
    return [word for word in words if word not in LIGHT]
