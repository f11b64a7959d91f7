"""Reader: compares the texts of one store, two at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memframe.audit.closeness import Comparison
from memframe.audit.difference import APART, LIGHT_WEIGHT, Difference
from memframe.audit.known_words import is_known
from memframe.audit.layout import denies_another, exchanged_values, in_both, lay_out
from memframe.audit.lexicon import LIGHT
from memframe.audit.punctuation import ends_sentence, is_enumerated
from memframe.audit.words import Words

_MOST_OF_IT = 0.6


class Reader:
    """Compares the texts of one store, two at a time.

    For speed a text is a string with one character for each class of words; so it is C that lays them side by side.
    """

    def __init__(self, words: Words, texts: NDArray[Any]) -> None:
        self.words, self._texts = words, texts
        self._counts = np.bincount(words.tokens, minlength=len(words.vocabulary))
        self.n_times: dict[str, int] = dict(zip(words.vocabulary, self._counts.tolist(), strict=True))
        total = np.concatenate([[0.0], np.cumsum(np.where(words.heavy(), 1.0, LIGHT_WEIGHT))])
        self._weights = (total[words.starts[1:]] - total[words.starts[:-1]]).tolist()
        self._starts = words.starts.tolist()
        self._letters = lettered(words.said)
        light = np.fromiter((word in LIGHT for word in words.vocabulary), bool, len(words.vocabulary))
        said = ~light[words.tokens]
        shared = said & (self._counts > 1)[words.tokens]
        self._heavy = np.pad(np.cumsum([said, shared], axis=1), ((0, 0), (1, 0))).T

    def difference(self, row: int, other: int) -> Difference:
        """What two texts differ in."""
        a, b = self._text(row), self._text(other)
        if a == b:
            return Difference("near", "spelling", 1.0)
        layout = lay_out(a, b, self.words.tokens_of(row), self.words.tokens_of(other), self.words.vocabulary)
        if not layout.left and not layout.right:
            return self._in_another_order(row, other) or Difference("near", "order", 0.99)
        difference = Comparison(layout, self._weights[row], self.n_times).judged()
        if difference.verdict == "near" and layout.n_moved:
            difference = self._in_another_order(row, other) or difference
        return APART if self._is_sentence(difference, row, other) else difference

    def _in_another_order(self, row: int, other: int) -> Difference | None:
        """What two texts are if the order of the words that both have turns around what they say."""
        words, others = in_both(self.words.of(row), self.words.of(other))
        if denies_another(words, others):
            return Difference("changed", "polarity", 0.99, 1)
        exchanged = exchanged_values(words, others)
        if exchanged and not is_enumerated(exchanged[0], self._texts[row], self._texts[other]):
            return Difference("changed", "order", 0.99, 1, *exchanged)
        return None

    def _is_sentence(self, difference: Difference, row: int, other: int) -> bool:
        """Whether the one is a sentence of the other, which says much more, rather than what is left of it."""
        if difference.kind != "truncated" or difference.score >= _MOST_OF_IT:
            return False
        part, whole = sorted((row, other), key=lambda place: self._starts[place + 1] - self._starts[place])
        return ends_sentence(self._texts[part], self._texts[whole])

    def fullness(self, row: int) -> tuple[int, int]:
        """How much a text says: its words that carry a value, and how many of them other texts have too."""
        (start, known_start), (end, known_end) = (
            self._heavy[self._starts[row]],
            self._heavy[self._starts[row + 1]],
        )
        return int(end - start), int(known_end - known_start)

    def n_slips(self, row: int) -> int:
        """How many words of a text may be typing errors: no other text has them, and nobody else knows them."""
        tokens = self.words.tokens_of(row)
        once = tokens[self._counts[tokens] == 1].tolist()
        return sum(not is_known(self.words.vocabulary[token]) for token in once)

    def _text(self, row: int) -> str:
        """The classes of the words of a text, one character each."""
        return self._letters[self._starts[row] : self._starts[row + 1]]


def lettered(numbers: NDArray[Any]) -> str:
    """Numbers as characters, without those that are no characters by themselves."""
    return (numbers + np.where(numbers >= 0xD800, 0x800, 0)).astype("<u4").tobytes().decode("utf-32-le")
