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

_BANDS, _BANDS_AT_START, _ROWS_A_BAND = 14, 8, 3
"""Of all words, of the first ones: weighted Jaccard 0.3 is found in 45 of 100 cases, 0.5 in 95, 0.6 in 99."""
_WORDS_AT_START = 12
"""What a truncation leaves: a text and its first half are alike in these."""
_NEAREST_IN_BAND, _NEAREST_IN_ORDER, _WORDS_IN_ORDER = 8, 3, 12
_TEXTS_AT_ONCE = 1 << 15
_MOST_PARTNERS = 3
_LOOSE_AT_MOST = 1 << 21
_SKETCHES, _BITS = 2, 64
"""Enough bits a text that of ten pairs which share too little nine show it in them."""
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
    candidates, counter = Candidates(words, owners), _Counter(words)
    closest = _Closest(candidates.place)
    found = []
    for left, right in candidates.pairs():
        counted = counter.promising(left, right)
        found.append(counted.those(counted.holds)[:2])
        closest.add(counted.those(counted.changed))
    found.append(closest.pairs())
    left, right = (np.concatenate(side) for side in zip(*found, strict=True))
    order = np.lexsort((right, left))
    return left[order], right[order]


# ---- candidates


class _Chain(NamedTuple):
    """Texts in an order: after each the next that has the same key, and how many of those are near."""

    following: NDArray[np.int32]
    n_near: int


class Candidates:
    """Pairs of texts of one owner that stand beside each other in some order.

    Of each order only the text that comes next is kept, and pairs are yielded a part at a time: there are dozens for
    each text.
    """

    def __init__(self, words: Words, owners: Rows) -> None:
        hashes = _hashes_of(words)
        bags = _of_owners(words.fold(np.add, hashes), owners)
        self._texts = _sequence(words, hashes, bags, owners, from_end=False)
        self.place = np.zeros(len(words), np.int64)
        """The place of each text in an order that depends on the texts alone; zero for one without words."""
        self.place[self._texts] = np.arange(len(self._texts))
        backward = self.place[_sequence(words, hashes, bags, owners, from_end=True)]
        owners = owners[self._texts]
        orders = np.arange(len(owners)), backward, backward[::-1]
        self._chains = [_chain(order, owners, _NEAREST_IN_ORDER) for order in orders]
        self._chains += [_band_chain(keys[self._texts], owners) for keys in _band_keys(words, hashes)]

    def pairs(self) -> Iterator[tuple[Rows, Rows]]:
        """Yield rows of pairs, the smaller first and each pair once, some at a time."""
        for start in range(0, len(self._texts), _TEXTS_AT_ONCE):
            places = np.arange(start, min(start + _TEXTS_AT_ONCE, len(self._texts)))
            codes = distinct(
                np.concatenate([codes for chain in self._chains for codes in _near(chain, places)])
            )
            one, other = self._texts[codes >> 32], self._texts[codes & 0xFFFFFFFF]
            yield np.minimum(one, other), np.maximum(one, other)


def _band_chain(keys: Hashes, owners: Rows) -> _Chain:
    """Chain texts of one owner that have the same key, but for those without one."""
    filled = np.flatnonzero(keys)
    keys = _of_owners(keys, owners)
    return _chain(filled[np.argsort(keys[filled], kind="stable")], keys, _NEAREST_IN_BAND)


def _chain(order: Rows, keys: NDArray[Any], n_near: int) -> _Chain:
    """Chain texts in an order in which those with the same key are neighbours; the last is followed by itself."""
    following = np.arange(len(keys), dtype=np.int32)
    before, after = order[:-1], order[1:]
    same = keys[before] == keys[after]
    following[before[same]] = after[same]
    return _Chain(following, n_near)


def _near(chain: _Chain, places: Rows) -> Iterator[Rows]:
    """Yield for each place those near it that come later in the first order, as numbers of two halves."""
    before, after = places, places
    for _ in range(chain.n_near):
        following = chain.following[after]
        goes_on = following != after
        before, after = before[goes_on], following[goes_on]
        later = after > before
        yield before[later] << 32 | after[later]


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Sort, and drop repeats; `numpy.unique` hashes, which takes ten times as long."""
    values = np.sort(values)
    return values[np.concatenate([[True], values[1:] != values[:-1]])] if len(values) else values


def _of_owners(keys: Hashes, owners: Rows) -> Hashes:
    return _mix(keys + _mix(owners.astype(np.uint64) + np.uint64(1)))


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


class _Kept(NamedTuple):
    """The words of all texts that count, one text after another."""

    said: NDArray[np.int32]
    ends: Rows
    """Where each text ends in ``said``, after a zero."""


def _band_keys(words: Words, hashes: Hashes) -> Iterator[Hashes]:
    """Yield for each band one key for each text; zero where a text has no word that another one has."""
    n_times = words.n_times()
    rate = (1.0 / (1.0 + np.log2(np.maximum(n_times, 1)))).astype(np.float32)
    is_kept = words.heavy_classes() & (n_times > 1)
    kept = _Kept(words.said[is_kept[words.said]], np.concatenate([[0], np.cumsum(words.n_of(is_kept))]))
    places = kept.ends[:-1, None] + np.arange(_WORDS_AT_START)
    early = places < kept.ends[1:, None]
    first = _Kept(kept.said[places[early]], np.concatenate([[0], np.cumsum(early.sum(axis=1))]))
    for band in range(_BANDS + _BANDS_AT_START):
        yield _band(kept if band < _BANDS else first, hashes, rate, band)


def _band(kept: _Kept, hashes: Hashes, rate: NDArray[np.float32], band: int) -> Hashes:
    filled = kept.ends[1:] > kept.ends[:-1]
    key = np.zeros(int(filled.sum()), np.uint64)
    for number in range(band * _ROWS_A_BAND, (band + 1) * _ROWS_A_BAND):
        # each word waits for its turn, exponentially, so that the first of a text is drawn by weight
        seed = np.uint64((number + 1) * _GOLDEN % 2**64)
        uniform = (_mix(hashes + seed) >> np.uint64(40)).astype(np.float32)
        waits = -np.log((uniform + np.float32(0.5)) * np.float32(2.0**-24)) / rate
        first = np.minimum.reduceat(waits[kept.said], kept.ends[:-1][filled]) if len(key) else waits[:0]
        key = _mix(key ^ first.view(np.uint32))
    keys = np.zeros(len(filled), np.uint64)
    keys[filled] = key | np.uint64(1)
    return keys


def _hashes_of(words: Words) -> Hashes:
    """Return one number for each class of words, the same in whichever order the texts come."""
    return pd.util.hash_array(np.array(words.classes, dtype=object))


def _mix(values: Hashes) -> Hashes:
    """Apply the finaliser of splitmix64."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


# ---- counting the words that both texts have


class Bags:
    """The heavy words of each text, by class: how many they are, and how many of them two texts have in common."""

    def __init__(self, words: Words) -> None:
        heavy = words.heavy_classes()
        self.sizes = words.n_of(heavy)
        self.n_rare = words.n_of(heavy & (words.n_times() == 1))
        """How many of them no other text has."""
        self._letters = Letters((_sorted_classes(part, heavy) for part in words.parts()), self.sizes)
        places = _hashes_of(words) % np.uint64(_SKETCHES * _BITS)
        bits = heavy.astype(np.uint64) << places % np.uint64(_BITS)
        self._sketches = [
            words.fold(np.bitwise_or, np.where(places // np.uint64(_BITS) == n, bits, 0))
            for n in range(_SKETCHES)
        ]

    def most_in_both(self, left: Rows, right: Rows) -> Rows:
        """Return no less than `n_in_both`, and quickly: a bit that one text has alone is a word of its own."""
        most: Rows = self.sizes[left]
        most_of_other: Rows = self.sizes[right]
        for sketch in self._sketches:
            bits, others = sketch[left], sketch[right]
            most -= np.bitwise_count(bits & ~others)
            most_of_other -= np.bitwise_count(others & ~bits)
        return np.minimum(most, most_of_other)

    def n_in_both(self, left: Rows, right: Rows) -> Rows:
        """Count the words that two texts have in common: of sorted ones that is their longest common subsequence."""
        texts, others = (list(map(self._letters.of, rows.tolist())) for rows in (left, right))
        counts = process.cpdist(texts, others, scorer=LCSseq.similarity, dtype=np.int32)
        return np.asarray(counts, np.int64)


def _sorted_classes(words: Words, heavy: NDArray[np.bool_]) -> Rows:
    """Return the heavy classes of each text, one text after another, in the order of their numbers."""
    kept, n_classes = heavy[words.said], max(len(heavy), 1)
    return np.sort(words.rows()[kept] * n_classes + words.said[kept]) % n_classes


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


class _Counter:
    """Decides by numbers of words whether two texts may say the same."""

    def __init__(self, words: Words) -> None:
        self._bags = Bags(words)
        months = {class_of(month) for month in MONTHS}
        self._dated = words.n_of(np.array([name in months for name in words.classes], bool)) > 0

    def promising(self, left: Rows, right: Rows) -> _Counted:
        """Choose those of the pairs that may be near or changed."""
        a, b = self._bags.sizes[left], self._bags.sizes[right]
        of_like_size = np.maximum(a, b) <= 1 + 2.5 * np.minimum(a, b) + self._n_rare(left, right)
        left, right = left[of_like_size], right[of_like_size]
        for n_in_both in (self._bags.most_in_both, self._bags.n_in_both):
            counted = self._counted(left, right, n_in_both(left, right))
            counted = counted.those(counted.holds | counted.changed)
            left, right = counted[:2]
        return counted

    def _counted(self, left: Rows, right: Rows, shared: Rows) -> _Counted:
        """The more words are taken to be in both, the more pairs hold or are changed."""
        a, b = self._bags.sizes[left], self._bags.sizes[right]
        known = shared + self._n_rare(left, right)
        less_left, more_left = np.minimum(a, b) - known, np.maximum(a, b) - known
        holds = (less_left <= 1 + shared / 20) & (more_left <= 1 + 1.5 * shared)
        dated = self._dated[left] & self._dated[right]  # a day, a month and a year may be one value
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
            self._drop_others()

    def pairs(self) -> tuple[Rows, Rows]:
        self._drop_others()
        return self._found[0].left, self._found[0].right

    def _drop_others(self) -> None:
        pairs = _Counted._make(map(np.concatenate, zip(*self._found, strict=True)))
        stays = np.zeros(len(pairs.left), bool)
        for row, other in ((pairs.left, pairs.right), (pairs.right, pairs.left)):
            order = np.lexsort((self._place[other], -pairs.alike, row))
            first = np.searchsorted(row[order], row[order])
            stays[order[np.arange(len(order)) - first < _MOST_PARTNERS]] = True
        self._found = [pairs.those(stays)]
