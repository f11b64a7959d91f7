"""Promising pairs: of the candidates those that are worth laying side by side, told by counting words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memframe.audit.language.lexicon import MONTHS
from memframe.audit.language.resemblance import class_of
from memframe.audit.language.words import Words
from memframe.audit.likeness.bags import Bags
from memframe.audit.likeness.bands import Rows
from memframe.audit.likeness.candidates import Candidates

_MOST_PARTNERS = 3
_LOOSE_AT_MOST = 1 << 21
_MONTHS = frozenset(map(class_of, MONTHS))


class _Counted(NamedTuple):
    """Pairs of texts, and what the numbers of their words tell."""

    left: Rows
    right: Rows
    holds: NDArray[np.bool_]
    """Whether the one may hold the other one."""
    changed: NDArray[np.bool_]
    """Whether they may be the same text with another value."""
    alike: NDArray[np.float64]

    def those(self, chosen: NDArray[np.bool_]) -> _Counted:
        return _Counted._make(column[chosen] for column in self)


_NONE = _Counted(*(np.zeros(0, dtype) for dtype in (np.int64, np.int64, bool, bool, np.float64)))


def promising_pairs(words: Words, candidates: Candidates) -> tuple[Rows, Rows]:
    """Pairs that may be one text that holds the other one, or the same text with another value; in order.

    Only words that carry a value are counted: in both, and in one only. A word of a single text may be a typing
    error, and does not count against a pair. Of texts with another value each has its closest few, as thousands may
    share a template.
    """
    counting, closest = _Counting(words), _Closest(candidates.place)
    found = []
    for left, right in candidates.pairs():
        counted = counting.promising(left, right)
        found.append(counted.those(counted.holds)[:2])
        closest.add(counted.those(counted.changed))
    found.append(closest.pairs())
    left, right = (np.concatenate(side) for side in zip(*found, strict=True))
    order = np.lexsort((right, left))
    return left[order], right[order]


class _Counting:
    """Tells by numbers of words whether two texts may say the same."""

    def __init__(self, words: Words) -> None:
        self._bags, self._dated = Bags(words), _dated(words)

    def promising(self, left: Rows, right: Rows) -> _Counted:
        """Those of the pairs that may be told as near or changed."""
        left, right = self._of_like_size(left, right)
        for n_in_both in (self._bags.most_in_both, self._bags.n_in_both):
            counted = self._counted(left, right, n_in_both(left, right))
            counted = counted.those(counted.holds | counted.changed)
            left, right = counted[:2]
        return counted

    def _of_like_size(self, left: Rows, right: Rows) -> tuple[Rows, Rows]:
        a, b = self._bags.sizes[left], self._bags.sizes[right]
        kept = np.maximum(a, b) <= 1 + 2.5 * np.minimum(a, b) + self._n_rare(left, right)
        return left[kept], right[kept]

    def _counted(self, left: Rows, right: Rows, shared: Rows) -> _Counted:
        """The more words are taken to be in both, the more pairs hold or are changed."""
        a, b = self._bags.sizes[left], self._bags.sizes[right]
        known = shared + self._n_rare(left, right)
        less_left, more_left = np.minimum(a, b) - known, np.maximum(a, b) - known
        holds = (less_left <= 1 + shared / 20) & (more_left <= 1 + 1.5 * shared)
        dated = self._dated[left] & self._dated[right]
        changed = ~holds & (more_left <= 2.5 + 0.5 * dated + shared / 8)
        return _Counted(left, right, holds, changed, shared / (shared + np.maximum(more_left, 0) + 1))

    def _n_rare(self, left: Rows, right: Rows) -> Rows:
        n_rare: Rows = self._bags.n_rare[left] + self._bags.n_rare[right]
        return n_rare


class _Closest:
    """Pairs as they are found; those stay that are among the closest few of one of their texts."""

    def __init__(self, place: Rows) -> None:
        self._place = place
        self._found = [_NONE]
        """First those that stay so far."""

    def add(self, pairs: _Counted) -> None:
        self._found.append(pairs)
        if sum(len(some.left) for some in self._found[1:]) > _LOOSE_AT_MOST:
            self._tidy()

    def pairs(self) -> tuple[Rows, Rows]:
        self._tidy()
        return self._found[0].left, self._found[0].right

    def _tidy(self) -> None:
        pairs = _Counted._make(map(np.concatenate, zip(*self._found, strict=True)))
        stays = np.zeros(len(pairs.left), bool)
        for row, other in ((pairs.left, pairs.right), (pairs.right, pairs.left)):
            order = np.lexsort((self._place[other], -pairs.alike, row))
            first = np.searchsorted(row[order], row[order])
            stays[order[np.arange(len(order)) - first < _MOST_PARTNERS]] = True
        self._found = [pairs.those(stays)]


def _dated(words: Words) -> NDArray[np.bool_]:
    """Which texts name a month, so that three words may be one value."""
    months = np.array([name in _MONTHS for name in words.classes], bool)
    return words.n_of(months) > 0
