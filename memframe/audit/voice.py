"""Voice and tense: whether two texts tell of one thing as done and as suffered, as it is and as it was or should be."""

from __future__ import annotations

from collections.abc import Sequence

from memframe.audit.difference import heavy
from memframe.audit.layout import Places

_MODALS = frozenset({"should", "could", "might", "ought"})
_AUXILIARIES = frozenset({"is", "are", "was", "were", "been", "be", "got"})
_NOW, _THEN = frozenset({"am", "is", "are", "has", "have"}), frozenset({"was", "were", "had"})


def is_other_voice(left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether one text says what should be, or what was done by somebody rather than by whom it names.

    Parameters
    ----------
    left, right
        The words of the one text, and of the other one, that are not in both.

    Examples
    --------
    >>> is_other_voice(["was", "by"], []), is_other_voice(["the"], [])
    (True, False)
    """
    return any(
        not _MODALS.isdisjoint(side) or ("by" in side and not _AUXILIARIES.isdisjoint(side))
        for side in (left, right)
    ) and not any(map(heavy, (left, right)))


def is_over_in_one(places: Places) -> bool:
    """Whether one text says of what is, what the other one says of what was; it has been moved as it was moved.

    >>> is_over_in_one([(["is"], ["was"])]), is_over_in_one([(["has", "been"], ["was"])])
    (True, False)
    """
    return any(
        not _NOW.isdisjoint(one) and "been" not in one and not _THEN.isdisjoint(other)
        for place in places
        for one, other in (place, place[::-1])
    )
