"""Letters: texts with one character for each number of a word, so that it is C that compares them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Letters:
    """Numbers of words as texts of one character each.

    >>> letters = Letters([np.array([65, 66]), np.array([67])], lengths=np.array([0, 1, 2]))
    >>> letters.of(0), letters.of(1), letters.of(2)
    ('', 'A', 'BC')
    """

    def __init__(self, numbers: Iterable[NDArray[Any]], lengths: NDArray[np.int64]) -> None:
        self._all = "".join(map(_lettered, numbers))
        self._ends = [0, *np.cumsum(lengths).tolist()]

    def of(self, row: int) -> str:
        """One text."""
        return self._all[self._ends[row] : self._ends[row + 1]]


def _lettered(numbers: NDArray[Any]) -> str:
    """Numbers as characters, without those that are no characters by themselves."""
    characters = numbers.astype("<u4")
    characters[characters >= 0xD800] += 0x800
    return characters.tobytes().decode("utf-32-le")
