"""Templates: sentences that many memories fill in their own way, and pairs of which only the value differs.

That Ada likes tea, and jazz, and Graz, are three facts; that her rent is 640, and that it is 665, is one that changed.
What tells them apart is how many memories share all that the two have in common.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from memframe.audit.language.lexicon import CALENDAR
from memframe.audit.language.resemblance import class_of
from memframe.audit.language.words import Words
from memframe.audit.likeness.candidates import distinct
from memframe.audit.likeness.clusters import Clusters
from memframe.audit.likeness.pairs import Pair, Pairs

_MOST_PARTNERS = 3
_MOST_FILLING = 6
_LOOKS = (0, 64, 1024)
"""Texts with a word are looked at up to these: of a template the first few will do."""

_ALMOST_ALL = 0.8
_DAYS = frozenset(map(class_of, CALENDAR))


def changed_pairs(words: Words, owners: NDArray[np.int64], pairs: Pairs, clusters: Clusters) -> list[Pair]:
    """Pairs of texts that differ in a value, one for each two clusters, and of each text the closest few.

    A sentence that many memories fill in their own way is a list, a log or a template, and no changed fact; what a
    memory denies is one all the same. Where values differ in more than one place the pair counts only if almost all
    else is the same, neither text has a closer partner, and no other memory has that sentence.
    """
    closest = _closest(pairs.that_are("changed"), clusters.numbers())
    templates = _Templates(words, owners, clusters)
    in_one_place = closest.n_places == 1
    single = np.zeros(len(words), bool)
    single[closest.left[in_one_place]] = single[closest.right[in_one_place]] = True
    return _best_of_each([pair for pair in closest.each() if _counts(pair, single, templates)])


def _closest(pairs: Pairs, cluster: NDArray[np.int64]) -> Pairs:
    """Of the pairs between the same two clusters the closest."""
    a, b = cluster[pairs.left], cluster[pairs.right]
    one, other = np.minimum(a, b), np.maximum(a, b)
    order = np.lexsort((pairs.right, pairs.left, -pairs.score, pairs.n_places, other, one))
    one, other = one[order], other[order]
    is_first = (np.diff(one, prepend=-1) != 0) | (np.diff(other, prepend=-1) != 0)
    return pairs.those(order[is_first & (one != other)])


def _counts(pair: Pair, single: NDArray[np.bool_], templates: _Templates) -> bool:
    if pair.difference.kind in {"polarity", "order"}:
        return True
    if pair.difference.n_places == 1:
        return templates.n_filling(pair) <= _MOST_FILLING
    is_close = pair.difference.score >= _ALMOST_ALL and not (single[pair.left] or single[pair.right])
    return is_close and templates.n_filling(pair, values=False) == 2


def _closeness(pair: Pair) -> tuple[int, float, int, int]:
    return pair.difference.n_places, -pair.difference.score, pair.left, pair.right


def _best_of_each(found: list[Pair]) -> list[Pair]:
    taken: Counter[int] = Counter()
    kept = []
    for pair in sorted(found, key=_closeness):
        if min(taken[pair.left], taken[pair.right]) < _MOST_PARTNERS:
            taken.update(pair[:2])
            kept.append(pair)
    return kept


class _Templates:
    """Which texts have which words, so that it is quickly told how many have all of some."""

    def __init__(self, words: Words, owners: NDArray[np.int64], clusters: Clusters) -> None:
        self._words, self._owners, self._clusters = words, owners, clusters
        heavy = words.heavy()
        n_rows = max(len(words), 1)
        codes = distinct(words.said[heavy].astype(np.int64) * n_rows + words.rows()[heavy])
        self._rows = codes % n_rows
        self._n_times = np.bincount(codes // n_rows, minlength=len(words.classes))
        self._starts = np.concatenate([[0], np.cumsum(self._n_times)])
        self._are_values = np.array([name[0].isdigit() or name in _DAYS for name in words.classes], bool)

    def n_filling(self, pair: Pair, *, values: bool = True) -> int:
        """How many clusters of the user's texts have all the words that both have, or all but their numbers and days.

        Counted no further than it matters.
        """
        shared = self._shared(pair, values=values)
        clusters = {self._clusters.of(row) for row in pair[:2]}
        rows = self._having(shared[0]) if len(shared) else np.zeros(0, np.int64)
        for start, end in pairwise((*_LOOKS, len(rows))):
            others = rows[start:end]
            filling = self._with_all(others[(others != pair.left) & (others != pair.right)], shared[1:])
            own = filling[self._owners[filling] == self._owners[pair.left]]
            clusters.update(map(self._clusters.of, own.tolist()))
            if len(clusters) > _MOST_FILLING or end >= len(rows):
                break
        return len(clusters)

    def _with_all(self, rows: NDArray[np.int64], names: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the rows that have all of these words."""
        for name in names:
            if not len(rows):
                break
            others = self._having(name)
            places = np.minimum(np.searchsorted(others, rows), len(others) - 1)
            rows = rows[others[places] == rows]
        return rows

    def _shared(self, pair: Pair, *, values: bool) -> NDArray[np.int64]:
        """The classes of words of both texts that carry a value, the rarest first."""
        left, right = (
            self._words.said[self._words.starts[row] : self._words.starts[row + 1]] for row in pair[:2]
        )
        shared = np.array(sorted(set(left.tolist()) & set(right.tolist())), np.int64)
        shared = shared[(self._n_times[shared] > 0) & (values | ~self._are_values[shared])]
        return shared[np.argsort(self._n_times[shared], kind="stable")]

    def _having(self, name: int) -> NDArray[np.int64]:
        return self._rows[self._starts[name] : self._starts[name + 1]]
