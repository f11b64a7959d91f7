"""Texts as words: every word becomes a number.

It runs in Arrow, a column at a time; Python only sees each word of the vocabulary once.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memframe.audit.language.lexicon import DECIMAL, LIGHT, MINUTES, MONTH
from memframe.audit.language.resemblance import class_of
from memframe.audit.language.spelling import plain

_ROWS_AT_ONCE = 50_000

_BETWEEN_WORDS = rf"[^\pL\pN\pM{DECIMAL}{MINUTES}{MONTH}]+"


class Words(NamedTuple):
    """Texts as numbers of words, one text after another."""

    tokens: NDArray[np.int32]
    said: NDArray[np.int32]
    """The class of each of ``tokens``: which of the words that say the same it is one of."""
    starts: NDArray[np.int64]
    """Where each text begins in ``tokens``; one more than there are texts."""
    vocabulary: list[str]
    classes: list[str]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def of(self, row: int) -> list[str]:
        """The words of one text."""
        return [self.vocabulary[token] for token in self.tokens_of(row).tolist()]

    def tokens_of(self, row: int) -> NDArray[np.int32]:
        """The numbers of the words of one text."""
        return self.tokens[self.starts[row] : self.starts[row + 1]]

    def rows(self) -> NDArray[np.int64]:
        """To which text each of ``tokens`` belongs."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def heavy(self) -> NDArray[np.bool_]:
        """Which of ``tokens`` carry a value."""
        return self.heavy_classes()[self.said]

    def heavy_classes(self) -> NDArray[np.bool_]:
        """Which of ``classes`` carry a value."""
        return np.fromiter((name not in LIGHT for name in self.classes), bool, len(self.classes))

    def n_times(self) -> NDArray[np.int64]:
        """How often each of ``classes`` stands in the texts."""
        n_times = np.zeros(len(self.classes), np.int64)
        for part in self.parts():
            n_times += np.bincount(part.said, minlength=len(self.classes))
        return n_times

    def n_of(self, chosen: NDArray[np.bool_], *, by: Literal["said", "tokens"] = "said") -> NDArray[np.int64]:
        """How many words of each text are of the chosen classes, or of the chosen ones of the vocabulary."""
        return self._folded(np.add, chosen.astype(np.int64), by)

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """For each text the sum of a value that each class has; of no words it is zero."""
        return self._folded(np.add, values, "said")

    def unions(self, bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """For each text the bits that any of the classes of its words has."""
        return self._folded(np.bitwise_or, bits, "said")

    def _folded(self, fold: np.ufunc, values: NDArray[Any], by: str) -> NDArray[Any]:
        parts = []
        for part in self.parts():
            filled = np.diff(part.starts) > 0
            parts.append(np.zeros(len(part), values.dtype))
            if filled.any():
                parts[-1][filled] = fold.reduceat(values[getattr(part, by)], part.starts[:-1][filled])
        return np.concatenate(parts)

    def parts(self) -> Iterator[Words]:
        """The same texts, some at a time: for work that would take much memory if it were done on all at once."""
        for first in range(0, max(len(self), 1), _ROWS_AT_ONCE):
            starts = self.starts[first : first + _ROWS_AT_ONCE + 1]
            here = slice(starts[0], starts[-1])
            yield Words(self.tokens[here], self.said[here], starts - starts[0], self.vocabulary, self.classes)


def words_of(texts: pa.Array) -> Words:
    """The words of a column of text.

    >>> words = words_of(pa.array(["Note: the rent isn't €1,250.", "The rent is not 1250 EUR"]))
    >>> words.of(0)
    ['the', 'rent', 'is', 'not', 'euro', '1250']
    """
    numbers: dict[str, int] = {}
    tokens, lengths = [], []
    for some in _slices(texts):
        words = pc.split_pattern_regex(plain(some), _BETWEEN_WORDS)
        coded = pc.dictionary_encode(words.flatten())
        places = _places_in(numbers, coded.dictionary.to_pylist())
        found = places[coded.indices.to_numpy(zero_copy_only=False)]
        kept = found >= 0
        rows = np.repeat(np.arange(len(some)), words.value_lengths().to_numpy(zero_copy_only=False))
        tokens.append(found[kept])
        lengths.append(np.bincount(rows[kept], minlength=len(some)))
    starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    classes: dict[str, int] = {}
    said = np.array([classes.setdefault(class_of(word), len(classes)) for word in numbers], np.int32)
    all_tokens = np.concatenate(tokens)
    return Words(all_tokens, said[all_tokens], starts, list(numbers), list(classes))


def _slices(texts: pa.Array) -> Iterator[pa.Array]:
    for start in range(0, max(len(texts), 1), _ROWS_AT_ONCE):
        yield texts.slice(start, _ROWS_AT_ONCE)


def _places_in(numbers: dict[str, int], words: list[str]) -> NDArray[np.int32]:
    """The number of each word, new ones at the end; -1 for the empty word, which splitting leaves at the edges."""
    plain = map(without_accents, words)
    return np.array([numbers.setdefault(word, len(numbers)) if word else -1 for word in plain], np.int32)


def without_accents(word: str) -> str:
    if word.isascii():
        return word
    letters = unicodedata.normalize("NFKD", word)
    return "".join(letter for letter in letters if not unicodedata.combining(letter)) or word
