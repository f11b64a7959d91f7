"""Bags: the words of each text that carry a value, counted without being laid side by side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import LCSseq

from memframe.audit.language.letters import Letters
from memframe.audit.language.words import Words
from memframe.audit.likeness.bands import Rows, hashes_of

_SKETCHES, _BITS = 2, 64
"""Enough bits a text that of ten pairs which share too little nine show it in them."""


class Bags:
    """The heavy words of each text, by class: how many they are, and how many of them two texts have in common."""

    def __init__(self, words: Words) -> None:
        heavy = words.heavy_classes()
        self.sizes = words.n_of(heavy)
        self.n_rare = words.n_of(heavy & (words.n_times() == 1))
        """How many of them no other text has."""
        self._letters = Letters((_in_order(part, heavy) for part in words.parts()), self.sizes)
        self._sketches = _sketches(words, heavy)

    def most_in_both(self, left: Rows, right: Rows) -> Rows:
        """No less than `n_in_both`, and quick: a bit that only one text has is a word that the other one has not."""
        most: Rows = self.sizes[left]
        most_of_other: Rows = self.sizes[right]
        for sketch in self._sketches:
            bits, others = sketch[left], sketch[right]
            most -= np.bitwise_count(bits & ~others)
            most_of_other -= np.bitwise_count(others & ~bits)
        return np.minimum(most, most_of_other)

    def n_in_both(self, left: Rows, right: Rows) -> Rows:
        """How many words two texts have in common: of sorted ones that is their longest common subsequence."""
        texts, others = (list(map(self._letters.of, rows.tolist())) for rows in (left, right))
        counts: Rows = process.cpdist(texts, others, scorer=LCSseq.similarity, dtype=np.int32).astype(
            np.int64
        )
        return counts


def _in_order(words: Words, heavy: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The heavy classes of each text, one text after another, in the order of their numbers."""
    kept, n_classes = heavy[words.said], max(len(heavy), 1)
    return np.sort(words.rows()[kept] * n_classes + words.said[kept]) % n_classes


def _sketches(words: Words, heavy: NDArray[np.bool_]) -> list[NDArray[np.uint64]]:
    """For each text some bits, one for each of its heavy words, in as many numbers as they take."""
    places = hashes_of(words) % np.uint64(_SKETCHES * _BITS)
    bits = heavy.astype(np.uint64) << places % np.uint64(_BITS)
    return [words.unions(np.where(places // np.uint64(_BITS) == n, bits, 0)) for n in range(_SKETCHES)]
