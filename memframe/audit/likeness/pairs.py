"""Pairs: texts that are alike, two by two, and what they are to each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memframe.audit.likeness.difference import Difference, Verdict
from memframe.audit.likeness.reader import Reader

_PAIRS_AT_ONCE = 1 << 16

_KINDS: tuple[tuple[Verdict, str], ...] = (
    *(("near", kind) for kind in ("spelling", "order", "typing", "truncated", "extended")),
    *(("changed", kind) for kind in ("number", "date", "word", "polarity", "order")),
)
_NUMBER = {kind: number for number, kind in enumerate(_KINDS)}


class Pair(NamedTuple):
    """Two texts and what they differ in."""

    left: int
    right: int
    difference: Difference


class Pairs(NamedTuple):
    """Many pairs, a column for each thing that is known of them, but for the words in which they differ.

    Those are asked of the reader again, for the few pairs of which they are told.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    kind: NDArray[np.int8]
    score: NDArray[np.float64]
    n_places: NDArray[np.int32]

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> Pairs:
        """The columns of pairs that are near or changed."""
        left, right, differences = zip(*pairs, strict=True) if pairs else ((), (), ())
        return cls(
            np.array(left, np.int64),
            np.array(right, np.int64),
            np.array([_NUMBER[one.verdict, one.kind] for one in differences], np.int8),
            np.array([one.score for one in differences], np.float64),
            np.array([one.n_places for one in differences], np.int32),
        )

    def those(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> Pairs:
        """Some of them."""
        return Pairs._make(column[chosen] for column in self)

    def are(self, verdict: Verdict, *kinds: str) -> NDArray[np.bool_]:
        """Which of them have this verdict, and are of one of these kinds if there are any.

        >>> near = Pair(0, 1, Difference("near", "order", 0.9))
        >>> Pairs.of([near, Pair(0, 2, Difference("changed", "order", 0.9))]).are("near").tolist()
        [True, False]
        """
        wanted = [_NUMBER[kind] for kind in _KINDS if kind[0] == verdict and (not kinds or kind[1] in kinds)]
        return np.isin(self.kind, wanted)

    def that_are(self, verdict: Verdict, *kinds: str) -> Pairs:
        """Those that have this verdict, and are of one of these kinds if there are any."""
        return self.those(self.are(verdict, *kinds))

    def each(self) -> Iterator[Pair]:
        """One after the other."""
        for left, right, kind, score, n_places in zip(*(column.tolist() for column in self), strict=True):
            verdict, name = _KINDS[kind]
            yield Pair(left, right, Difference(verdict, name, score, n_places))


def compared(reader: Reader, left: NDArray[np.int64], right: NDArray[np.int64]) -> Pairs:
    """Those pairs of texts that are near, or changed."""
    parts = [Pairs.of([])]
    for start in range(0, len(left), _PAIRS_AT_ONCE):
        rows, others = (side[start : start + _PAIRS_AT_ONCE].tolist() for side in (left, right))
        found = (Pair(a, b, reader.difference(a, b)) for a, b in zip(rows, others, strict=True))
        parts.append(Pairs.of([pair for pair in found if pair.difference.verdict != "apart"]))
    return Pairs._make(map(np.concatenate, zip(*parts, strict=True)))
