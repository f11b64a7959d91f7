"""Reader: compares the texts of one store, two at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memframe.audit.closeness import Comparison
from memframe.audit.difference import LIGHT_WEIGHT, Difference, heavy
from memframe.audit.layout import lay_out
from memframe.audit.words import Words


class Reader:
    """Compares the texts of one store, two at a time.

    For speed a text is a string with one character for each class of words; so it is C that lays them side by side.
    """

    def __init__(self, words: Words) -> None:
        self.words = words
        counts = np.bincount(words.tokens, minlength=len(words.vocabulary)).tolist()
        self.n_times: dict[str, int] = dict(zip(words.vocabulary, counts, strict=True))
        total = np.concatenate([[0.0], np.cumsum(np.where(words.heavy(), 1.0, LIGHT_WEIGHT))])
        self._weights = (total[words.starts[1:]] - total[words.starts[:-1]]).tolist()
        self._starts = words.starts.tolist()
        self._letters = lettered(words.said)

    def difference(self, row: int, other: int) -> Difference:
        """What two texts differ in."""
        a, b = self._text(row), self._text(other)
        if a == b:
            return Difference("near", "spelling", 1.0)
        layout = lay_out(a, b, self.words.tokens_of(row), self.words.tokens_of(other), self.words.vocabulary)
        if not layout.left and not layout.right:
            return layout.same_words(self.words.of(row), self.words.of(other))
        return Comparison(layout, self._weights[row], self.n_times).judged()

    def fullness(self, row: int) -> tuple[int, int]:
        """How much a text says: its words that carry a value, and how many of them other texts have too."""
        words = heavy(self.words.of(row))
        return len(words), sum(self.n_times[word] > 1 for word in words)

    def _text(self, row: int) -> str:
        """The classes of the words of a text, one character each."""
        return self._letters[self._starts[row] : self._starts[row + 1]]


def lettered(numbers: NDArray[Any]) -> str:
    """Numbers as characters, without those that are no characters by themselves."""
    return (numbers + np.where(numbers >= 0xD800, 0x800, 0)).astype("<u4").tobytes().decode("utf-32-le")
