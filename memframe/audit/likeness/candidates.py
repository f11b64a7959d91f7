"""Pairs of texts that are worth comparing, found without comparing all with all.

Texts are put into several orders, in each of which those that may be alike stand beside each other, and each text is
compared with its nearest few: in the order of their words from the first on, and from the last back (what a truncation
or an unknown wrapper leaves); and by bands of MinHash over the words that carry a value. So where thousands share a
template, their number is not squared.

Of each order only the text that comes next is kept, and pairs are told a part at a time: there are dozens for each
text, and hardly any of them says something.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memframe.audit.language.words import Words
from memframe.audit.likeness.bands import Hashes, Rows, band_keys, hashes_of, mixed

_NEAREST_IN_BAND = 8
_NEAREST_IN_ORDER = 3
_WORDS_IN_ORDER = 12
_TEXTS_AT_ONCE = 1 << 15


class _Chain(NamedTuple):
    """Texts in an order: after each the next that has the same key, and how many of those are near."""

    following: NDArray[np.int32]
    n_near: int


class Candidates:
    """Pairs of texts of one owner that may say the same.

    Parameters
    ----------
    owners
        A number for the owner of each text; texts of different owners are never a pair.
    """

    def __init__(self, words: Words, owners: Rows) -> None:
        hashes = hashes_of(words)
        bags = _of_owners(words.sums(hashes), owners)
        self._texts = _sequence(words, hashes, bags, owners, from_end=False)
        self.place = np.zeros(len(words), np.int64)
        """The place of each text in an order that hangs on the texts alone; zero for one without words."""
        self.place[self._texts] = np.arange(len(self._texts))
        backward = self.place[_sequence(words, hashes, bags, owners, from_end=True)]
        owners = owners[self._texts]
        forward = np.arange(len(owners))
        orders = forward, backward, backward[::-1]
        self._chains = [_chain(order, owners, _NEAREST_IN_ORDER) for order in orders]
        self._chains += [_in_band(keys[self._texts], owners) for keys in band_keys(words, hashes)]

    def pairs(self) -> Iterator[tuple[Rows, Rows]]:
        """Rows of pairs, the smaller first and each pair once, some at a time."""
        for start in range(0, len(self._texts), _TEXTS_AT_ONCE):
            places = np.arange(start, min(start + _TEXTS_AT_ONCE, len(self._texts)))
            found = [codes for chain in self._chains for codes in _near(chain, places)]
            codes = distinct(np.concatenate(found))
            one, other = self._texts[codes >> 32], self._texts[codes & 0xFFFFFFFF]
            yield np.minimum(one, other), np.maximum(one, other)


def _in_band(keys: Hashes, owners: Rows) -> _Chain:
    """Texts of one owner that have the same key, but for those without one."""
    filled = np.flatnonzero(keys)
    keys = _of_owners(keys, owners)
    return _chain(filled[np.argsort(keys[filled], kind="stable")], keys, _NEAREST_IN_BAND)


def _chain(order: Rows, keys: NDArray[Any], n_near: int) -> _Chain:
    """Texts in an order in which those with the same key stand beside each other; the last is followed by itself."""
    following = np.arange(len(keys), dtype=np.int32)
    before, after = order[:-1], order[1:]
    same = keys[before] == keys[after]
    following[before[same]] = after[same]
    return _Chain(following, n_near)


def _near(chain: _Chain, places: Rows) -> Iterator[Rows]:
    """For each place those near it that come later in the first order, as numbers of two halves."""
    before, after = places, places
    for _ in range(chain.n_near):
        following = chain.following[after]
        goes_on = following != after
        before, after = before[goes_on], following[goes_on]
        later = after > before
        yield before[later] << 32 | after[later]


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Sorted, each once; `numpy.unique` hashes, which takes ten times as long."""
    values = np.sort(values)
    return values[np.concatenate([[True], values[1:] != values[:-1]])] if len(values) else values


def _of_owners(keys: Hashes, owners: Rows) -> Hashes:
    return mixed(keys + mixed(owners.astype(np.uint64) + np.uint64(1)))


def _sequence(words: Words, hashes: Hashes, bags: Hashes, owners: Rows, *, from_end: bool) -> Rows:
    """The texts with any words, in the order of their words, from the first on or from the last back."""
    lengths = np.diff(words.starts)
    keys: list[NDArray[Any]] = [bags, lengths]
    for place in reversed(range(_WORDS_IN_ORDER)):
        at = words.starts[1:] - 1 - place if from_end else words.starts[:-1] + place
        keys.append(_hash_at(words, hashes, at, lengths > place))
    rows = np.lexsort([*keys, owners])
    return rows[lengths[rows] > 0]


def _hash_at(words: Words, hashes: Hashes, at: Rows, there: NDArray[np.bool_]) -> NDArray[np.uint32]:
    result = np.zeros(len(words), np.uint32)
    result[there] = hashes[words.said[at[there]]] >> np.uint64(32) | np.uint64(1)
    return result
