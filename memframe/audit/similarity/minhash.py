"""Candidate pairs of texts that may be similar, found without comparing all texts with all.

Texts are sorted in several orders, in each of which similar texts are neighbours, and each text is paired with the next
few. One is the order in which the texts are given; the others are bands of MinHash over the words that carry a value,
in which words of many texts have less weight. The number of pairs is therefore proportional to that of the texts, even
if thousands share a template. Most of the pairs are then ruled out by the number of words that both texts have.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import LCSseq

from memframe.audit.lexicon import MONTHS, class_of
from memframe.audit.text import Rows
from memframe.audit.tokenize import Letters, Words

Flags = NDArray[np.bool_]
Hashes = NDArray[np.uint64]

_BANDS, _ROWS_A_BAND = 10, 2
"""Bands, and hashes of each band. A pair with weighted Jaccard similarity 0.3 is found in 61 of 100 cases, with 0.5 in
94, with 0.6 in 99."""
_NEAREST = 8
"""Neighbours in each order with which a text is paired."""
_MAX_PARTNERS = 3
"""Most similar texts with another value that each text is paired with."""
_GOLDEN = 0x9E3779B97F4A7C15
"""2**64 divided by the golden ratio: the distance of the seeds of hashes."""


def promising_pairs(words: Words, owners: Rows) -> tuple[Rows, Rows]:
    """Return sorted candidate pairs: one text may contain the other, or both may be one statement with two values.

    Only words that carry a value are counted. A word that only one text has may be a typing error, and does not count
    against a pair. A text is paired with only a few others that have another value, because thousands may share a
    template.

    Parameters
    ----------
    words : Words
        Words of texts that are sorted, forwards or backwards.
    owners : array of int
        Number of the owner of each text; texts of different owners are never paired.
    """
    hashes = pd.util.hash_array(np.array(words.classes, dtype=object))
    counter, codes = _Counter(words, hashes), np.zeros(0, np.int64)
    for keys in chain([np.ones(len(words), np.uint64)], _band_keys(words, hashes)):
        filled = np.flatnonzero(keys)
        bands = _mix(keys[filled] + _mix(owners[filled].astype(np.uint64) + np.uint64(1)))
        order = filled[np.argsort(bands, kind="stable")]
        bands.sort()
        for step in range(1, _NEAREST + 1):
            near = np.flatnonzero(bands[step:] == bands[:-step])
            if not len(near):
                break  # equal bands are consecutive, so that no larger step finds any
            left, right = order[near], order[near + step]
            may_be = counter.may_be_alike(left, right)
            codes = np.concatenate([codes, left[may_be] << 32 | right[may_be]])
        codes = distinct(codes)
    return counter.choose(codes >> 32, codes & 0xFFFFFFFF)


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Sort values and drop repeats; `numpy.unique` uses a hash table, which takes ten times as long."""
    values = np.sort(values)
    return values[np.concatenate([[True], values[1:] != values[:-1]])] if len(values) else values


def _band_keys(words: Words, hashes: Hashes) -> Iterator[Hashes]:
    """Yield for each band the key of each text; zero for a text without a word that other texts have."""
    n_times = words.n_times()
    rate = (1.0 / (1.0 + np.log2(np.maximum(n_times, 1)))).astype(np.float32)
    is_kept = words.heavy_classes() & (n_times > 1)
    class_ids = words.class_ids[is_kept[words.class_ids]]
    ends = np.concatenate([[0], np.cumsum(words.n_of(is_kept))])
    filled = ends[1:] > ends[:-1]
    for band in range(_BANDS):
        key = np.zeros(int(filled.sum()), np.uint64)
        for number in range(band * _ROWS_A_BAND, (band + 1) * _ROWS_A_BAND):
            # each word gets an exponential random time with its weight as rate: the first one is drawn by weight
            seed = np.uint64((number + 1) * _GOLDEN % 2**64)
            uniform = (_mix(hashes + seed) >> np.uint64(40)).astype(np.float32)
            waits = -np.log((uniform + np.float32(0.5)) * np.float32(2.0**-24)) / rate
            first = np.minimum.reduceat(waits[class_ids], ends[:-1][filled]) if len(key) else waits[:0]
            key = _mix(key ^ first.view(np.uint32))
        keys = np.zeros(len(filled), np.uint64)
        keys[filled] = key | np.uint64(1)  # never zero, which is the key of texts without such words
        yield keys


def _mix(values: Hashes) -> Hashes:
    """Apply the finaliser of splitmix64."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


class _Counter:
    """Tests pairs of texts by the numbers of words with a value that each has, and that both have."""

    def __init__(self, words: Words, hashes: Hashes) -> None:
        heavy = words.heavy_classes()
        self._sizes = words.n_of(heavy)
        self._n_rare = words.n_of(heavy & (words.n_times() == 1))
        n_classes, is_heavy = max(len(heavy), 1), heavy[words.class_ids]
        by_class = np.sort(words.rows()[is_heavy] * n_classes + words.class_ids[is_heavy]) % n_classes
        self._letters = Letters(by_class, self._sizes)
        self._sketch = words.fold(np.bitwise_or, heavy.astype(np.uint64) << hashes % np.uint64(64))
        months = {class_of(month) for month in MONTHS}
        self._dated = words.n_of(np.array([name in months for name in words.classes], bool)) > 0

    def may_be_alike(self, left: Rows, right: Rows) -> Flags:
        """Return False for pairs that are ruled out by their sketches, a prefilter of `choose`.

        A sketch has one bit for each word, so that a bit which only one text has means a word that only it has.
        """
        bits, others = self._sketch[left], self._sketch[right]
        max_shared: Rows = np.minimum(
            self._sizes[left] - np.bitwise_count(bits & ~others),
            self._sizes[right] - np.bitwise_count(others & ~bits),
        )
        may_contain, may_be_changed, _ = self._weigh(left, right, max_shared)
        return may_contain | may_be_changed

    def choose(self, left: Rows, right: Rows) -> tuple[Rows, Rows]:
        """Choose pairs by the number of words that both have.

        The words of each text are sorted, so that this number is the length of their longest common subsequence.
        """
        texts, others = (list(map(self._letters.of, rows.tolist())) for rows in (left, right))
        shared = np.asarray(process.cpdist(texts, others, scorer=LCSseq.similarity, dtype=np.int32), np.int64)
        is_chosen, may_be_changed, similarity = self._weigh(left, right, shared)
        changed = np.flatnonzero(may_be_changed & ~is_chosen)
        for row, other in ((left[changed], right[changed]), (right[changed], left[changed])):
            order = np.lexsort((other, -similarity[changed], row))
            first = np.searchsorted(row[order], row[order])
            is_chosen[changed[order[np.arange(len(order)) - first < _MAX_PARTNERS]]] = True
        return left[is_chosen], right[is_chosen]

    def _weigh(self, left: Rows, right: Rows, shared: Rows) -> tuple[Flags, Flags, NDArray[np.float64]]:
        """Return which pairs may contain one another, which may differ in a value, and the similarity of each pair."""
        n_explained = shared + self._n_rare[left] + self._n_rare[right]
        n_shorter = np.minimum(self._sizes[left], self._sizes[right]) - n_explained
        n_longer = np.maximum(self._sizes[left], self._sizes[right]) - n_explained
        dated = self._dated[left] & self._dated[right]  # a day, a month and a year may be one value
        may_contain = (n_shorter <= 1 + shared / 20) & (n_longer <= 1 + 1.5 * shared)
        may_be_changed = n_longer <= 2.5 + 0.5 * dated + shared / 8
        return may_contain, may_be_changed, shared / (shared + np.maximum(n_longer, 0) + 1)
