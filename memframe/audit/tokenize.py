"""Texts as words: each word becomes a number, and differences of spelling without a meaning are removed.

Case, punctuation, accents, wrappers such as «Note:» and marks of thousands are removed, and contractions are written
out. A decimal or a time of day is one word, digits and letters are separate words, and in scripts without blanks each
character is a word. All this runs in Arrow (RE2) on whole columns; Python handles each word of the vocabulary once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from numpy.typing import NDArray

from memframe.audit.lexicon import DECIMAL, LIGHT, MINUTES, MONTH, class_of, without_accents
from memframe.audit.rules import load_fragments, read_table
from memframe.audit.text import MARK, MAX_CHARACTERS, MemoryTexts, Rows

SPLIT_WORD = re.compile(r"[^\W_]+(?:[.,:]\d+)*")
"""A word as it is written, with the decimals or minutes of a number."""

_ROWS_AT_ONCE = 50_000
"""Texts that are split into words at once, which bounds the memory that it takes."""


class Words(NamedTuple):
    """Texts as numbers of words, one text after another."""

    tokens: NDArray[np.int32]
    class_ids: NDArray[np.int32]
    """The class of each of ``tokens``: words of one class have the same meaning."""
    starts: NDArray[np.int64]
    """Start of each text in ``tokens``, and at the end the number of tokens."""
    vocabulary: list[str]
    classes: list[str]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def of(self, row: int) -> list[str]:
        """Return the words of one text."""
        return [self.vocabulary[token] for token in self.tokens_of(row).tolist()]

    def tokens_of(self, row: int) -> NDArray[np.int32]:
        """Return the numbers of the words of one text."""
        return self.tokens[self.starts[row] : self.starts[row + 1]]

    def class_ids_of(self, row: int) -> NDArray[np.int32]:
        """Return the classes of the words of one text, as places in ``classes``."""
        return self.class_ids[self.starts[row] : self.starts[row + 1]]

    def rows(self) -> NDArray[np.int64]:
        """Return the text of each of ``tokens``."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def heavy(self) -> NDArray[np.bool_]:
        """Return which of ``tokens`` carry a value."""
        return self.heavy_classes()[self.class_ids]

    def heavy_classes(self) -> NDArray[np.bool_]:
        """Return which of ``classes`` carry a value."""
        return np.fromiter((name not in LIGHT for name in self.classes), bool, len(self.classes))

    def n_times(self) -> NDArray[np.int64]:
        """Count the occurrences of each of ``classes`` in all texts."""
        return np.bincount(self.class_ids, minlength=len(self.classes))

    def n_of(
        self, chosen: NDArray[np.bool_], *, by: Literal["class_ids", "tokens"] = "class_ids"
    ) -> NDArray[np.int64]:
        """Count the words of each text that are of the chosen classes or, by tokens, chosen words of the vocabulary."""
        return self.fold(np.add, chosen.astype(np.int64), by=by)

    def fold(self, fold: np.ufunc, values: NDArray[Any], *, by: str = "class_ids") -> NDArray[Any]:
        """Reduce the values of the words of each text with a function such as `numpy.add`; zero for no words.

        `values` has one value for each of ``classes`` or, by tokens, for each of ``vocabulary``.
        """
        folded, filled = np.zeros(len(self), values.dtype), np.diff(self.starts) > 0
        if filled.any():
            folded[filled] = fold.reduceat(values[getattr(self, by)], self.starts[:-1][filled])
        return folded

    def take(self, rows: NDArray[np.int64]) -> Words:
        """Return some of the texts, for which alone words are counted then."""
        lengths = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(starts[-1]) - np.repeat(starts[:-1] - self.starts[rows], lengths)
        return Words(self.tokens[places], self.class_ids[places], starts, self.vocabulary, self.classes)

    def compact(self) -> Words:
        """Number words and classes in the order of their first occurrence, as `words_of` does for these texts alone.

        Results then do not depend on the other texts of a store from which these were taken.
        """
        chosen, first, tokens = _number_by_first(self.tokens, len(self.vocabulary))
        class_of_chosen = self.class_ids[first]
        chosen_classes, _, class_of_token = _number_by_first(class_of_chosen, len(self.classes))
        vocabulary = [self.vocabulary[token] for token in chosen.tolist()]
        classes = [self.classes[class_id] for class_id in chosen_classes.tolist()]
        return Words(tokens, class_of_token[tokens], self.starts, vocabulary, classes)

    def join(self, others: Words) -> Words:
        """Return these texts, followed by others."""
        numbers, classes = (
            {name: number for number, name in enumerate(names)} for names in (self.vocabulary, self.classes)
        )
        number_of, class_of_other = (
            np.array([known.setdefault(name, len(known)) for name in names], np.int32)
            for known, names in ((numbers, others.vocabulary), (classes, others.classes))
        )
        return Words(
            np.concatenate([self.tokens, number_of[others.tokens]]),
            np.concatenate([self.class_ids, class_of_other[others.class_ids]]),
            np.concatenate([self.starts, self.starts[-1] + others.starts[1:]]),
            list(numbers),
            list(classes),
        )


def _number_by_first(
    numbers: NDArray[np.int32], n_numbers: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Number values by their first places: return the old numbers in the new order, their places, the new values.

    >>> [each.tolist() for each in _number_by_first(np.array([3, 1, 3], np.int32), 4)]
    [[3, 1], [0, 1], [0, 1, 0]]
    """
    n_places = len(numbers)
    first = np.full(n_numbers, n_places)
    first[numbers[::-1]] = np.arange(n_places)[
        ::-1
    ]  # reversed, because the last of several assignments counts
    chosen = np.argsort(first, kind="stable")[: np.count_nonzero(first < n_places)]
    new = np.zeros(n_numbers, np.int32)
    new[chosen] = np.arange(len(chosen))
    return chosen, first[chosen], new[numbers]


def words_of(texts: pa.Array) -> Words:
    """Turn a column of text into words.

    >>> words = words_of(pa.array(["Note: the rent isn't €1,250.", "The rent is not 1250 EUR"]))
    >>> words.of(0)
    ['the', 'rent', 'is', 'not', 'euro', '1250']
    """
    numbers: dict[str, int] = {}
    tokens, lengths = [], []
    for start in range(0, max(len(texts), 1), _ROWS_AT_ONCE):
        part = texts.slice(start, _ROWS_AT_ONCE)
        words = pc.split_pattern_regex(normalize(part), fit_pattern(_BETWEEN_WORDS, is_ascii=are_ascii(part)))
        coded = pc.dictionary_encode(words.flatten())
        plain = map(without_accents, coded.dictionary.to_pylist())
        # splitting yields "" at the ends of a text
        places = [numbers.setdefault(word, len(numbers)) if word else -1 for word in plain]
        token_ids = np.array(places, np.int32)[coded.indices.to_numpy(zero_copy_only=False)]
        is_word = token_ids >= 0
        rows = np.repeat(np.arange(len(part)), words.value_lengths().to_numpy(zero_copy_only=False))
        tokens.append(token_ids[is_word])
        lengths.append(np.bincount(rows[is_word], minlength=len(part)))
    starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    classes: dict[str, int] = {}
    class_of_token = np.array(
        [classes.setdefault(class_of(word), len(classes)) for word in numbers], np.int32
    )
    all_tokens = np.concatenate(tokens)
    return Words(all_tokens, class_of_token[all_tokens], starts, list(numbers), list(classes))


class Contents(NamedTuple):
    """Contents of memories as words, each distinct text once."""

    words: Words
    """Words of the distinct contents; those that are too long are left out."""
    numbers: Rows
    """Place in ``words`` of the content of each row; -1 if it has none there."""


def contents_of(texts: MemoryTexts) -> Contents:
    """Turn contents into words; the words of texts that were taken from others are reused.

    >>> import pandas as pd
    >>> texts = MemoryTexts.of(pd.DataFrame({"content": ["Likes tea", None, "Likes tea"]}))
    >>> words, numbers = contents_of(texts)
    >>> len(words), numbers.tolist()
    (1, [0, -1, 0])
    """
    if texts.source is not None:
        words, numbers = texts.source.once(contents_of)
        return Contents(words, numbers if texts.rows is None else numbers[texts.rows])
    column = texts.column("content")
    is_read = pc.less_equal(pc.utf8_length(column), MAX_CHARACTERS)
    encoded = pc.dictionary_encode(pc.if_else(is_read, column, None))
    return Contents(
        words_of(encoded.dictionary), pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64)
    )


class Letters:
    """Words as characters, one for each number, so that texts can be aligned in C.

    >>> letters = Letters(np.array([65, 66, 67]), lengths=np.array([0, 1, 2]))
    >>> letters.of(0), letters.of(1), letters.of(2)
    ('', 'A', 'BC')
    """

    def __init__(self, numbers: NDArray[Any], lengths: NDArray[np.int64]) -> None:
        characters = numbers.astype("<u4")
        characters[characters >= 0xD800] += 0x800  # skip the surrogates, which are no characters
        self._all = characters.tobytes().decode("utf-32-le")
        self._ends = [0, *np.cumsum(lengths).tolist()]

    def of(self, row: int) -> str:
        """Return the characters of one text."""
        return self._all[self._ends[row] : self._ends[row + 1]]


# ---- spelling, from rules/spelling.toml and rules/wrappers.toml


class _SpellingTable(Struct):
    symbols: dict[str, str]
    group: list[dict[str, list[tuple[str, str]]]]


_SPELLING = msgspec.toml.decode(read_table("spelling.toml"), type=_SpellingTable)
WRAPPER, WRAPPER_AFTER = (load_fragments("wrappers")[name] for name in ("before", "after"))
"""Patterns of wrappers, which are words around a text without a meaning of their own, for texts in lower case."""

_BETWEEN_WORDS = rf"[^\pL\pN\pM{DECIMAL}{MINUTES}{MONTH}]+"
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
_APOSTROPHE = r"[\x{2019}\x{2018}\x{201b}\x{2bc}\x{2032}\x{b4}`]"


def normalize(texts: pa.Array) -> pa.Array:
    """Write texts in lower case, without wrappers, with contractions written out and words separated.

    >>> normalize(pa.array(["Note: the rent isn't 1,250, it's due at 3 PM"])).to_pylist()
    ['the rent is not 1250, it due at 3¦pm']
    """
    is_ascii = are_ascii(texts)
    if not is_ascii:
        texts = pc.replace_substring_regex(pc.utf8_normalize(texts, "NFKC"), _APOSTROPHE, "'")
    texts = _name_marks(pc.replace_substring(pc.utf8_lower(texts), "`", "'"))
    for symbol, name in _SPELLING.symbols.items():
        texts = pc.replace_substring(texts, symbol, name)
    for wrapper in (WRAPPER, WRAPPER_AFTER):
        texts = _rewrite(texts, [(wrapper, "")], _unless_empty, is_ascii=is_ascii)
    for group in _SPELLING.group:
        texts = _rewrite(texts, group["patterns"], is_ascii=is_ascii)
    return texts if is_ascii else pc.replace_substring_regex(texts, f"([{_UNSPACED}])", r" \1 ")


def _name_marks(texts: pa.Array) -> pa.Array:
    """Replace each mark of a redaction by a word of its own, because its number is none of the text.

    The words are made of digests, so that no two of them look like one word with a typing error.

    >>> _name_marks(pa.array(["pin [redacted: pin]", "pin [redacted: pin 2]"])).to_pylist()
    ['pin  glbnmmpbalpf ', 'pin  jmmgmhpmhnio ']
    """
    is_marked = pc.fill_null(pc.match_substring(texts, "[redacted: "), False)
    marked = texts.filter(is_marked)
    if not len(marked):
        return texts

    def name(found: re.Match[str]) -> str:
        return f" {sha256(found[0].encode()).hexdigest()[:12].translate(_LETTERS)} "

    named = pa.array([MARK.sub(name, text) for text in marked.to_pylist()], texts.type)
    return pc.replace_with_mask(texts, is_marked, named)


_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")


def _unless_empty(written: pa.Array, before: pa.Array) -> pa.Array:
    """Return the texts as they were before for those of which no word is left."""
    return pc.if_else(pc.match_substring_regex(written, r"[\pL\pN]"), written, before)


def _rewrite(
    texts: pa.Array,
    rules: Sequence[tuple[str, str]],
    choose: Callable[[pa.Array, pa.Array], pa.Array] = lambda written, _: written,
    *,
    is_ascii: bool,
) -> pa.Array:
    """Apply patterns with their replacements to the texts that any of the patterns may match."""
    either = widen("|".join(f"(?:{pattern})" for pattern, _ in rules))
    is_matching = pc.fill_null(pc.match_substring_regex(texts, fit_pattern(either, is_ascii=is_ascii)), False)
    matching = written = texts.filter(is_matching)
    if not len(matching):
        return texts
    for pattern, replacement in rules:
        written = pc.replace_substring_regex(written, fit_pattern(pattern, is_ascii=is_ascii), replacement)
    return pc.replace_with_mask(texts, is_matching, choose(written, matching))


def are_ascii(texts: pa.Array) -> bool:
    """Return True if no text of a column has a character beyond ASCII."""
    return pc.all(pc.string_is_ascii(texts)).as_py() is not False


def fit_pattern(pattern: str, *, is_ascii: bool) -> str:
    r"""Restrict a pattern of RE2 to the letters and digits of ASCII, if the texts have no others.

    The matches are the same, and RE2 takes milliseconds to compile the classes of Unicode.

    >>> fit_pattern(r"[^\pL\pN]+(\pL)", is_ascii=True), fit_pattern(r"\pL", is_ascii=False)
    ('[^A-Za-z0-9]+([A-Za-z])', '\\pL')
    """
    if not is_ascii:
        return pattern
    within_classes = _CLASS.sub(lambda found: _ascii_class(found[0]), pattern)
    return within_classes.replace(r"\pL", "[A-Za-z]")


_CLASS = re.compile(r"\[[^\]]*\]")


def _ascii_class(pattern: str) -> str:
    return pattern.replace(r"\pL", "A-Za-z").replace(r"\pN", "0-9").replace(r"\pM", "")


def widen(pattern: str) -> str:
    """Widen a pattern of RE2 to one that compiles faster and matches at least as much, for a first test of texts.

    RE2 takes milliseconds to compile a class of Unicode, and microseconds for one of ASCII.
    """
    return pattern.replace(r"[^\pL\pN]", "[^0-9A-Za-z]")
