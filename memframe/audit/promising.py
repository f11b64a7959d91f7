"""Promising pairs: of the candidates those that are worth laying side by side, told by counting words."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import LCSseq

from memframe.audit.lexicon import MONTHS
from memframe.audit.reader import lettered
from memframe.audit.resemblance import class_of
from memframe.audit.words import Words

_PAIRS_AT_ONCE = 250_000
_MOST_PARTNERS = 3
_MONTHS = frozenset(map(class_of, MONTHS))

Rows = NDArray[np.int64]


def promising_pairs(words: Words, left: Rows, right: Rows, place: Rows) -> Rows:
    """Which pairs may be one text that holds the other one, or the same text with another value.

    Only words that carry a value are counted: in both, and in one only. A word of a single text may be a typing
    error, and does not count against a pair.

    Parameters
    ----------
    place
        The place of each text among all in an order that hangs on the texts alone.
    """
    bags, sizes, rare = _heavy_bags(words)
    less, more = np.minimum(sizes[left], sizes[right]), np.maximum(sizes[left], sizes[right])
    kept = np.flatnonzero(more <= 1 + 2.5 * less + rare[left] + rare[right])
    left, right, less, more = left[kept], right[kept], less[kept], more[kept]
    shared = _in_both(bags, left, right)
    slips = rare[left] + rare[right]
    less_left, more_left = less - shared - slips, more - shared - slips
    holds = (less_left <= 1 + shared / 20) & (more_left <= 1 + 1.5 * shared)
    dated = _dated(words)
    changed = ~holds & (more_left <= 2.5 + 0.5 * (dated[left] & dated[right]) + shared / 8)
    alike = shared / (shared + np.maximum(more_left, 0) + 1)
    changed[changed] = _closest(left[changed], right[changed], alike[changed], place)
    promising: Rows = kept[holds | changed]
    return promising


def _heavy_bags(words: Words) -> tuple[list[str], Rows, Rows]:
    """The heavy words of each text as characters in the order of their classes, how many, how many of them rare."""
    heavy = words.heavy()
    said, rows = words.said[heavy], words.rows()[heavy]
    n_times = np.bincount(words.said, minlength=len(words.classes))
    sizes = np.bincount(rows, minlength=len(words))
    rare = np.bincount(rows[n_times[said] == 1], minlength=len(words))
    size = max(len(words.classes), 1)
    letters = lettered(np.sort(rows * size + said) % size)
    starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    return [letters[start:end] for start, end in pairwise(starts)], sizes, rare


def _dated(words: Words) -> NDArray[np.bool_]:
    """Which texts name a month, so that three words may be one value."""
    months = np.array([name in _MONTHS for name in words.classes], bool)
    dated = np.zeros(len(words), bool)
    dated[words.rows()[months[words.said]]] = True
    return dated


def _in_both(bags: list[str], left: Rows, right: Rows) -> NDArray[Any]:
    """How many words two bags have in common: of sorted bags that is their longest common subsequence."""
    counts = [np.zeros(0, np.int32)]
    for start in range(0, len(left), _PAIRS_AT_ONCE):
        a, b = (
            [bags[row] for row in side[start : start + _PAIRS_AT_ONCE].tolist()] for side in (left, right)
        )
        counts.append(process.cpdist(a, b, scorer=LCSseq.similarity, dtype=np.int32))
    return np.concatenate(counts)


def _closest(left: Rows, right: Rows, alike: NDArray[np.float64], place: Rows) -> NDArray[np.bool_]:
    """Pairs that are among the closest few of one of their rows: where thousands share a template, not all."""
    kept = np.zeros(len(left), bool)
    for row, other in ((left, right), (right, left)):
        order = np.lexsort((place[other], -alike, row))
        first = np.searchsorted(row[order], row[order])
        kept[order[np.arange(len(order)) - first < _MOST_PARTNERS]] = True
    return kept
