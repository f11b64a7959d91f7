"""Texts as words: spelling that says nothing is taken away, and every word becomes a number.

Case, punctuation, accents, wrappers such as «Note:», contractions and the marks of thousands vanish;
a decimal, a time of day or a word stays one word, a digit beside a letter becomes its own, and where a script
writes no spaces each character is a word. All of it runs in Arrow, a column at a time; Python only sees each
word of the vocabulary once.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memframe.audit.lexicon import DECIMAL, LIGHT, MINUTES, MONTH
from memframe.audit.resemblance import class_of
from memframe.audit.wrappers import WRAPPER, WRAPPER_AFTER

_ROWS_AT_ONCE = 50_000

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"

_SYMBOLS = {
    "€": " euro ",
    "$": " dollar ",
    "£": " pound ",
    "%": " percent ",
    "&": " and ",
    "\u2019": "'",
    "\u00b4": "'",
    "👎": " not ",
    "🚫": " not ",
    "❌": " not ",
}
_NAMES_WITH_SYMBOLS = (
    (r"\b([cfj])#", r"\1sharp "),
    (r"\bc\+\+", "cplusplus "),
    (r"(^|[\s(])[\x{2212}-](\d)", r"\1minus \2"),
    (r"\b(ab|[abo])\+", r"\1 positive "),
    (r"\b(ab|[abo])[\x{2212}-]($|[^\pL\pN])", r"\1 negative\2"),
    (r"\bused to (\pL)", r"formerly \1"),
)
_FILLERS = (
    r"\b(?:of course|as far as (?:i know|we know|is known|known)|in fact|by the way|you know|kind of|sort of|"
    r"to be honest|for sure|in general|at the moment|right now|as of now|as it happens|it seems(?: that)?|i think)\b"
)
_CONTRACTIONS = (
    (r"\bcan(?:'t|not)\b", "can not"),
    (r"\b(do|does|did|is|are|was|were|would|should|could|have|has|had|ai|wo)n'?t\b", r"\1 not"),
    (r"'(?:s|re|ve|ll|d|m)\b", ""),
)
_DATES = (
    (r"\b(\d{4})-(\d\d)-(\d\d)\b", rf"\3 {MONTH}\2 \1"),
    (r"\b(\d\d?)\. ?(\d\d?)\. ?(\d{4})\b", rf"\1 {MONTH}\2 \3"),
    (r"\b(1[3-9]|2\d|3[01])/(0?[1-9]|1[0-2])/(\d{4})\b", rf"\1 {MONTH}\2 \3"),
    (r"\b(0?[1-9]|1[0-2])/(1[3-9]|2\d|3[01])/(\d{4})\b", rf"\2 {MONTH}\1 \3"),
)
"""Of the dates in digits those of which it is certain which number is the month."""
_NUMBERS = (
    (r"(\d) ?([ap])\.? ?m\b\.?", rf"\1{MINUTES}\2m"),
    (rf"(\d)[.:](\d\d){MINUTES}([ap]m)", rf"\1{MINUTES}\2{MINUTES}\3"),
    (r"\b([1-9]\d?\d?)\.(\d\d\d)\b", r"\1\2"),
    (r"(\d)[,\x{202f}\x{a0}](\d\d\d)\b", r"\1\2"),
    (r"(\d)[,\x{202f}\x{a0}](\d\d\d)\b", r"\1\2"),
    (r"(\d)[.,](\d)k\b", r"\1\200"),
    (r"(\d)k\b", r"\1000"),
    (r"(\d)[.,](\d)", rf"\1{DECIMAL}\2"),
    (r"(\d):(\d\d)", rf"\1{MINUTES}\2"),
    (r"(\d)(\pL)", r"\1 \2"),
    (r"(\pL)(\d)", r"\1 \2"),
)
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
        light = np.fromiter((name in LIGHT for name in self.classes), bool, len(self.classes))
        return ~light[self.said]


def words_of(texts: pa.Array) -> Words:
    """The words of a column of text.

    >>> words = words_of(pa.array(["Note: the rent isn't €1,250.", "The rent is not 1250 EUR"]))
    >>> words.of(0)
    ['the', 'rent', 'is', 'not', 'euro', '1250']
    """
    numbers: dict[str, int] = {}
    tokens, lengths = [], []
    for some in _slices(texts):
        words = pc.split_pattern_regex(_plain(some), _BETWEEN_WORDS)
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


def _plain(texts: pa.Array) -> pa.Array:
    """Lower case, wrappers off, contractions written out, words apart."""
    texts = pc.utf8_lower(pc.utf8_normalize(texts, "NFKC"))
    for symbol, name in _SYMBOLS.items():
        texts = pc.replace_substring(texts, symbol, name)
    for pattern in (WRAPPER, WRAPPER_AFTER):
        texts = _unless_empty(pc.replace_substring_regex(texts, pattern, ""), texts)
    for pattern, replacement in (*_NAMES_WITH_SYMBOLS, (_FILLERS, " "), *_CONTRACTIONS, *_DATES, *_NUMBERS):
        texts = pc.replace_substring_regex(texts, pattern, replacement)
    return pc.replace_substring_regex(texts, f"([{_UNSPACED}])", r" \1 ")


def _unless_empty(texts: pa.Array, before: pa.Array) -> pa.Array:
    """A text that is nothing but wrapper stays."""
    return pc.if_else(pc.match_substring_regex(texts, r"[\pL\pN]"), texts, before)


def _places_in(numbers: dict[str, int], words: list[str]) -> NDArray[np.int32]:
    """The number of each word, new ones at the end; -1 for the empty word, which splitting leaves at the edges."""
    plain = map(without_accents, words)
    return np.array([numbers.setdefault(word, len(numbers)) if word else -1 for word in plain], np.int32)


def without_accents(word: str) -> str:
    if word.isascii():
        return word
    letters = unicodedata.normalize("NFKD", word)
    return "".join(letter for letter in letters if not unicodedata.combining(letter)) or word
