"""Pairs of texts that are worth comparing, found without comparing all with all.

Texts are put into several orders, in each of which those that may be alike stand beside each other, and each text is
compared with its nearest few: in the order of their words from the first on, and from the last back (what a truncation
or an unknown wrapper leaves); and by bands of MinHash over the words that carry a value, weighted so that a word counts
the less the more texts it stands in. So where thousands share a template, their number is not squared. Most of those
pairs are then ruled out by counting the words that both have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import LCSseq

from memframe.audit.lexicon import MONTHS, class_of
from memframe.audit.tokenize import Letters, Words

Rows = NDArray[np.int64]
Hashes = NDArray[np.uint64]

_BANDS, _ROWS_A_BAND = 14, 3
"""Weighted Jaccard 0.3 is found in 32 of 100 cases, 0.5 in 85, 0.6 in 97."""
_NEAREST_IN_BAND, _NEAREST_IN_ORDER, _WORDS_IN_ORDER = 8, 3, 12
_TEXTS_AT_ONCE = 1 << 15
_MOST_PARTNERS = 3
_LOOSE_AT_MOST = 1 << 21
_GOLDEN = 0x9E3779B97F4A7C15


def promising_pairs(words: Words, owners: Rows) -> tuple[Rows, Rows]:
    """Return pairs that may be one text that holds the other one, or the same text with another value; in order.

    Only words that carry a value are counted. A word of a single text may be a typing error, and does not count
    against a pair. Of texts with another value each has its closest few, as thousands may share a template.

    Parameters
    ----------
    owners
        A number for the owner of each text; texts of different owners are never a pair.
    """
    hashes = hash_classes(words)
    bags = _with_owners(words.fold(np.add, hashes), owners)
    texts = _sequence(words, hashes, bags, owners, from_end=False)
    place = np.zeros(len(words), np.int64)  # of each text in an order that depends on the texts alone
    place[texts] = np.arange(len(texts))
    backward = place[_sequence(words, hashes, bags, owners, from_end=True)]
    owners = owners[texts]
    chains = [
        (_following(order, owners), _NEAREST_IN_ORDER)
        for order in (np.arange(len(owners)), backward, backward[::-1])
    ]
    for keys in _band_keys(words, hashes):
        filled, band = np.flatnonzero(keys[texts]), _with_owners(keys[texts], owners)
        order = filled[np.argsort(band[filled], kind="stable")]
        chains.append((_following(order, band), _NEAREST_IN_BAND))
    counter, holding, loose = _Counter(words), [], [_NONE]
    for start in range(0, len(texts), _TEXTS_AT_ONCE):  # there are dozens for each text
        places = np.arange(start, min(start + _TEXTS_AT_ONCE, len(texts)))
        near = [codes for following, n_near in chains for codes in _near(following, n_near, places)]
        codes = distinct(np.concatenate(near))
        one, other = texts[codes >> 32], texts[codes & 0xFFFFFFFF]
        counted = counter.promising(np.minimum(one, other), np.maximum(one, other))
        holding.append(counted.those(counted.holds))
        loose = [*loose, counted.those(~counted.holds)]
        if sum(len(some.left) for some in loose[1:]) > _LOOSE_AT_MOST:
            loose = [_closest(loose, place)]
    found = [*holding, _closest(loose, place)]
    left, right = (np.concatenate([some[side] for some in found]) for side in (0, 1))
    order = np.lexsort((right, left))
    return left[order], right[order]


# ---- texts of one owner that stand beside each other in some order


def _following(order: Rows, keys: NDArray[Any]) -> NDArray[np.int32]:
    """Return after each text the next with the same key in an order in which those are neighbours; or itself."""
    following = np.arange(len(keys), dtype=np.int32)
    before, after = order[:-1], order[1:]
    same = keys[before] == keys[after]
    following[before[same]] = after[same]
    return following


def _near(following: NDArray[np.int32], n_near: int, places: Rows) -> Iterator[Rows]:
    """Yield for each place those near it that come later in the first order, as numbers of two halves."""
    before, after = places, places
    for _ in range(n_near):
        goes_on = following[after] != after
        before, after = before[goes_on], following[after][goes_on]
        later = after > before
        yield before[later] << 32 | after[later]


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Sort, and drop repeats; `numpy.unique` hashes, which takes ten times as long."""
    values = np.sort(values)
    return values[np.concatenate([[True], values[1:] != values[:-1]])] if len(values) else values


def _sequence(words: Words, hashes: Hashes, bags: Hashes, owners: Rows, *, from_end: bool) -> Rows:
    """Order the texts with any words by their words, from the first on or from the last back."""
    lengths = np.diff(words.starts)
    keys: list[NDArray[Any]] = [bags, lengths]
    for place in reversed(range(_WORDS_IN_ORDER)):
        at = words.starts[1:] - 1 - place if from_end else words.starts[:-1] + place
        there = lengths > place
        key = np.zeros(len(words), np.uint32)
        key[there] = hashes[words.said[at[there]]] >> np.uint64(32) | np.uint64(1)
        keys.append(key)
    rows = np.lexsort([*keys, owners])
    return rows[lengths[rows] > 0]


# ---- MinHash


def _band_keys(words: Words, hashes: Hashes) -> Iterator[Hashes]:
    """Yield for each band one key for each text; zero where a text has no word that another one has."""
    n_times = words.n_times()
    rate = (1.0 / (1.0 + np.log2(np.maximum(n_times, 1)))).astype(np.float32)
    is_kept = words.heavy_classes() & (n_times > 1)
    said = words.said[is_kept[words.said]]
    ends = np.concatenate([[0], np.cumsum(words.n_of(is_kept))])
    filled = ends[1:] > ends[:-1]
    for band in range(_BANDS):
        key = np.zeros(int(filled.sum()), np.uint64)
        for number in range(band * _ROWS_A_BAND, (band + 1) * _ROWS_A_BAND):
            # each word waits for its turn, exponentially, so that the first of a text is drawn by weight
            seed = np.uint64((number + 1) * _GOLDEN % 2**64)
            uniform = (_mix(hashes + seed) >> np.uint64(40)).astype(np.float32)
            waits = -np.log((uniform + np.float32(0.5)) * np.float32(2.0**-24)) / rate
            first = np.minimum.reduceat(waits[said], ends[:-1][filled]) if len(key) else waits[:0]
            key = _mix(key ^ first.view(np.uint32))
        keys = np.zeros(len(filled), np.uint64)
        keys[filled] = key | np.uint64(1)
        yield keys


def hash_classes(words: Words) -> Hashes:
    """Return one number for each class of words, the same in whichever order the texts come."""
    return pd.util.hash_array(np.array(words.classes, dtype=object))


def _with_owners(keys: Hashes, owners: Rows) -> Hashes:
    return _mix(keys + _mix(owners.astype(np.uint64) + np.uint64(1)))


def _mix(values: Hashes) -> Hashes:
    """Apply the finaliser of splitmix64."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


# ---- counting the words that both texts have


class _Counted(NamedTuple):
    """Pairs of texts, and what the numbers of their words tell."""

    left: Rows
    right: Rows
    holds: NDArray[np.bool_]
    """Whether the one may hold the other one; otherwise they may be the same text with another value."""
    alike: NDArray[np.float64]

    def those(self, chosen: NDArray[np.bool_]) -> _Counted:
        return _Counted._make(column[chosen] for column in self)


_NONE = _Counted(*(np.zeros(0, dtype) for dtype in (np.int64, np.int64, bool, np.float64)))


class _Counter:
    """Decides by the numbers of heavy words that two texts have, and have in common, whether they may say the same."""

    def __init__(self, words: Words) -> None:
        heavy = words.heavy_classes()
        self._sizes = words.n_of(heavy)
        self._n_rare = words.n_of(heavy & (words.n_times() == 1))
        n_classes, some = max(len(heavy), 1), heavy[words.said]
        by_class = np.sort(words.rows()[some] * n_classes + words.said[some]) % n_classes
        self._letters = Letters(by_class, self._sizes)
        self._sketch = words.fold(
            np.bitwise_or, heavy.astype(np.uint64) << hash_classes(words) % np.uint64(64)
        )
        months = {class_of(month) for month in MONTHS}
        self._dated = words.n_of(np.array([name in months for name in words.classes], bool)) > 0

    def promising(self, left: Rows, right: Rows) -> _Counted:
        """Choose those of the pairs that may be near or changed; the fewer words are in both, the fewer may."""
        sizes, n_rare = self._sizes, self._n_rare
        less, more = np.minimum(sizes[left], sizes[right]), np.maximum(sizes[left], sizes[right])
        is_promising = more <= 1 + 2.5 * less + n_rare[left] + n_rare[right]
        for n_in_both in (self._most_in_both, self._n_in_both):
            left, right = left[is_promising], right[is_promising]
            shared = n_in_both(left, right)
            n_known = shared + n_rare[left] + n_rare[right]
            less = np.minimum(sizes[left], sizes[right]) - n_known
            more = np.maximum(sizes[left], sizes[right]) - n_known
            dated = self._dated[left] & self._dated[right]  # a day, a month and a year may be one value
            holds = (less <= 1 + shared / 20) & (more <= 1 + 1.5 * shared)
            is_promising = holds | (more <= 2.5 + 0.5 * dated + shared / 8)
        alike = shared / (shared + np.maximum(more, 0) + 1)
        return _Counted(left, right, holds, alike).those(is_promising)

    def _most_in_both(self, left: Rows, right: Rows) -> Rows:
        """Return no less than `_n_in_both`, and quickly: a bit that one text has alone is a word of its own."""
        bits, others = self._sketch[left], self._sketch[right]
        most: Rows = np.minimum(
            self._sizes[left] - np.bitwise_count(bits & ~others),
            self._sizes[right] - np.bitwise_count(others & ~bits),
        )
        return most

    def _n_in_both(self, left: Rows, right: Rows) -> Rows:
        """Count the words that two texts have in common: of sorted ones that is their longest common subsequence."""
        texts, others = (list(map(self._letters.of, rows.tolist())) for rows in (left, right))
        counts = process.cpdist(texts, others, scorer=LCSseq.similarity, dtype=np.int32)
        return np.asarray(counts, np.int64)


def _closest(parts: list[_Counted], place: Rows) -> _Counted:
    """Keep those pairs that are among the closest few of one of their texts."""
    pairs = _Counted._make(map(np.concatenate, zip(*parts, strict=True)))
    stays = np.zeros(len(pairs.left), bool)
    for row, other in ((pairs.left, pairs.right), (pairs.right, pairs.left)):
        order = np.lexsort((place[other], -pairs.alike, row))
        first = np.searchsorted(row[order], row[order])
        stays[order[np.arange(len(order)) - first < _MOST_PARTNERS]] = True
    return pairs.those(stays)
