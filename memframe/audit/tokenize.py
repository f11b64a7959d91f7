"""Texts as words: every word becomes a number, and what of its spelling says nothing is gone.

Case, punctuation, accents, wrappers such as «Note:», contractions and the marks of thousands vanish; a decimal, a
time of day or a word stays one word, a digit beside a letter becomes its own, and where a script writes no spaces
each character is a word. It runs in Arrow (RE2), a column at a time; Python sees each word of the vocabulary once.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memframe.audit.lexicon import DECIMAL, LIGHT, MINUTES, MONTH, class_of, without_accents
from memframe.audit.rules import load_fragment, one_of

SPLIT_WORD = re.compile(r"[^\W_]+(?:[.,:]\d+)*")
"""A word as it is written, with the decimals or minutes of a number."""

_ROWS_AT_ONCE = 50_000


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
        """Return the words of one text."""
        return [self.vocabulary[token] for token in self.tokens_of(row).tolist()]

    def tokens_of(self, row: int) -> NDArray[np.int32]:
        """Return the numbers of the words of one text."""
        return self.tokens[self.starts[row] : self.starts[row + 1]]

    def rows(self) -> NDArray[np.int64]:
        """Return to which text each of ``tokens`` belongs."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def heavy(self) -> NDArray[np.bool_]:
        """Return which of ``tokens`` carry a value."""
        return self.heavy_classes()[self.said]

    def heavy_classes(self) -> NDArray[np.bool_]:
        """Return which of ``classes`` carry a value."""
        return np.fromiter((name not in LIGHT for name in self.classes), bool, len(self.classes))

    def n_times(self) -> NDArray[np.int64]:
        """Count how often each of ``classes`` stands in the texts."""
        return np.bincount(self.said, minlength=len(self.classes))

    def n_of(self, chosen: NDArray[np.bool_], *, by: Literal["said", "tokens"] = "said") -> NDArray[np.int64]:
        """Count how many words of each text are of the chosen classes, or of the chosen ones of the vocabulary."""
        return self.fold(np.add, chosen.astype(np.int64), by=by)

    def fold(self, fold: np.ufunc, values: NDArray[Any], *, by: str = "said") -> NDArray[Any]:
        """Add up for each text a value that each class has, or join its bits; of no words it is zero."""
        folded, filled = np.zeros(len(self), values.dtype), np.diff(self.starts) > 0
        if filled.any():
            folded[filled] = fold.reduceat(values[getattr(self, by)], self.starts[:-1][filled])
        return folded

    def take(self, rows: NDArray[np.int64]) -> Words:
        """Return some of the texts; counts of words then are counts in these."""
        lengths = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(starts[-1]) - np.repeat(starts[:-1] - self.starts[rows], lengths)
        return Words(self.tokens[places], self.said[places], starts, self.vocabulary, self.classes)


def words_of(texts: pa.Array) -> Words:
    """Turn a column of text into words.

    >>> words = words_of(pa.array(["Note: the rent isn't €1,250.", "The rent is not 1250 EUR"]))
    >>> words.of(0)
    ['the', 'rent', 'is', 'not', 'euro', '1250']
    """
    numbers: dict[str, int] = {}
    tokens, lengths = [], []
    for start in range(0, max(len(texts), 1), _ROWS_AT_ONCE):
        some = texts.slice(start, _ROWS_AT_ONCE)
        words = pc.split_pattern_regex(normalize(some), _BETWEEN_WORDS)
        coded = pc.dictionary_encode(words.flatten())
        plain = map(without_accents, coded.dictionary.to_pylist())
        places = [
            numbers.setdefault(word, len(numbers)) if word else -1 for word in plain
        ]  # "" stands at the edges
        found = np.array(places, np.int32)[coded.indices.to_numpy(zero_copy_only=False)]
        kept = found >= 0
        rows = np.repeat(np.arange(len(some)), words.value_lengths().to_numpy(zero_copy_only=False))
        tokens.append(found[kept])
        lengths.append(np.bincount(rows[kept], minlength=len(some)))
    starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    classes: dict[str, int] = {}
    said = np.array([classes.setdefault(class_of(word), len(classes)) for word in numbers], np.int32)
    all_tokens = np.concatenate(tokens)
    return Words(all_tokens, said[all_tokens], starts, list(numbers), list(classes))


class Letters:
    """Numbers of words as texts of one character each, so that it is C that compares them.

    >>> letters = Letters(np.array([65, 66, 67]), lengths=np.array([0, 1, 2]))
    >>> letters.of(0), letters.of(1), letters.of(2)
    ('', 'A', 'BC')
    """

    def __init__(self, numbers: NDArray[Any], lengths: NDArray[np.int64]) -> None:
        characters = numbers.astype("<u4")
        characters[characters >= 0xD800] += 0x800  # those in between are no characters by themselves
        self._all = characters.tobytes().decode("utf-32-le")
        self._ends = [0, *np.cumsum(lengths).tolist()]

    def of(self, row: int) -> str:
        """Return one text."""
        return self._all[self._ends[row] : self._ends[row + 1]]


# ---- spelling, as pairs of a pattern of RE2 and what stands instead


def _wrapper(name: str) -> str:
    return one_of(*load_fragment(name, "wrappers"))


_TELLER = rf"{_wrapper('teller')} (?:(?:{_wrapper('hedge')}) )*"
_LISTENERS = rf"(?: {_wrapper('listener')})*"
_BODY = r"(?:(?: to| for me to| me to)? (?:remember|note|know|recall|save|record|keep in mind))?"
_ABOUT = r"(?: (?:to (?:self|me|myself)|(?:about|from|for) (?:the )?user|noted|saved))?(?: ?#\d+)?"
_END = r"(?: that\b|[\])!]| *[:,\x{2013}\x{2014}]| *- )"
WRAPPER = (
    rf"^(?:[^\pL\pN]*(?:{_TELLER}{_wrapper('telling')}{_LISTENERS}{_BODY}{_END}"
    rf"|{_TELLER}(?:told|tells|informed|reminded|asked) (?:me|us|you)\b"
    rf"|{_TELLER}(?:said|says|mentioned|mentions|stated|states|noted|confirmed|shared) (?:i|he|she|they|we)\b"
    rf"|{_wrapper('label')}{_ABOUT}{_END}|{_wrapper('elsewhere')}))+[^\pL\pN]*"
)
"""What may stand before a text without adding to it, for texts in lower case."""
WRAPPER_AFTER = (
    rf"[^\pL\pN]+(?:(?:or so |as )?{_TELLER}{_wrapper('telling')}{_LISTENERS}(?: so| this| that| it)?"
    rf"|{_wrapper('after')})[^\pL\pN]*$"
)

_BETWEEN_WORDS = rf"[^\pL\pN\pM{DECIMAL}{MINUTES}{MONTH}]+"
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
_APOSTROPHE = r"[\x{2019}\x{2018}\x{201b}\x{2bc}\x{2032}\x{b4}`]"
_SYMBOLS = {
    "€": " euro ",
    "$": " dollar ",
    "£": " pound ",
    "%": " percent ",
    "&": " and ",
    "ß": "ss",
    "👎": " not ",
    "🚫": " not ",
    "❌": " not ",
}
_FILLING = (
    r"\b(?:of course|as far as (?:i know|we know|is known|known)|in fact|by the way|you know|kind of|sort of|"
    r"to be honest|for sure|in general|at the moment|right now|as of now|as it happens|it seems(?: that)?|i think)\b"
)
_WHOLE = r"(?:all|none|no|(?:any|every|no)(?:thing|one|body|where)?)"
_EXCEPT = r"(?:but(?: not)?|bar|apart from|aside from|other than|except for|excluding|save for)"
_SPELLINGS = (
    (
        (r"[\x{ad}\x{200b}-\x{200d}\x{2060}\x{feff}]", ""),  # nobody sees them
        (r"\s+", " "),
        (r"\be-mail", "email"),
        (r"\bc\+\+", "cplusplus "),
        (r"(^|[\s(])[\x{2212}-](\d)", r"\1minus \2"),
        (r"\b(ab|[abo])\+", r"\1 positive "),
        (r"\b(ab|[abo])[\x{2212}-]($|[^\pL\pN])", r"\1 negative\2"),
    ),
    (
        (_FILLING, " "),
        (rf"\b({_WHOLE}(?: (?:of )?(?:the |his |her |their |my )?\pL+)?),? {_EXCEPT} ", r"\1 except "),
        (r"\bcan(?:'t|not)\b", "can not"),
        (r"\b(do|does|did|is|are|was|were|would|should|could|have|has|had|ai|wo)n'?t\b", r"\1 not"),
        (r"'(?:s|re|ve|ll|d|m)\b", ""),
        (r"\bn(?:e |')(\pL+) plus\b", r"not \1"),
        (r"\b[cdjlmnst]'(\pL\pL)", r"\1"),
        (r"\bany more(\W*$|[.,;!?])", r"anymore\1"),
        (r"\b(?:no more than|up to)\b", "at most"),
        (r"\bno (?:less|fewer) than\b", "at least"),
    ),
    (
        (r"(\d|\b[ap]\.?m\.?) ?(cet|est)\b", r"\1 \2zone"),  # which are light words of French
        (r"\b(\d{4})-(\d\d)-(\d\d)\b", rf"\3 {MONTH}\2 \1"),
        # of the dates in digits those of which it is certain which number is the month
        (r"\b(\d\d?)\. ?(\d\d?)\. ?(\d{4})\b", rf"\1 {MONTH}\2 \3"),
        (r"\b(1[3-9]|2\d|3[01])/(0?[1-9]|1[0-2])/(\d{4})\b", rf"\1 {MONTH}\2 \3"),
        (r"\b(0?[1-9]|1[0-2])/(1[3-9]|2\d|3[01])/(\d{4})\b", rf"\2 {MONTH}\1 \3"),
        (r"(\d) *([ap])\.? ?m\b\.?", rf"\1{MINUTES}\2m"),
        (rf"(\d)[.:](\d\d){MINUTES}([ap]m)", rf"\1{MINUTES}\2{MINUTES}\3"),
    ),
    (
        (r"\b([1-9]\d?\d?)\.(\d\d\d)\b", r"\1\2"),
        (r"(\d)[,\x{202f}\x{a0}](\d\d\d)\b", r"\1\2"),
        (r"(\d)[,\x{202f}\x{a0}](\d\d\d)\b", r"\1\2"),  # once more, as the groups of 1,234,567 share a digit
        (r"(\d)[.,](\d)k\b", r"\1\200"),
        (r"(\d)k\b", r"\1000"),
        (r"(\d)[.,](\d)", rf"\1{DECIMAL}\2"),
        (r"(\d):(\d\d)", rf"\1{MINUTES}\2"),
        (r"(\d)[ -]second\b", r"\1 seconds"),
        (r"(\d)(\pL)", r"\1 \2"),
        (r"(\pL)(\d)", r"\1 \2"),
    ),
)
"""Signs, contractions, moments and numbers: all of one group in the texts in which any of it finds something."""


def normalize(texts: pa.Array) -> pa.Array:
    """Write texts in lower case, without wrappers, contractions written out, words apart.

    >>> normalize(pa.array(["Note: the rent isn't 1,250, it's due at 3 PM"])).to_pylist()
    ['the rent is not 1250, it due at 3¦pm']
    """
    texts = pc.replace_substring_regex(pc.utf8_lower(pc.utf8_normalize(texts, "NFKC")), _APOSTROPHE, "'")
    for symbol, name in _SYMBOLS.items():
        texts = pc.replace_substring(texts, symbol, name)
    for wrapper in (WRAPPER, WRAPPER_AFTER):
        bare = pc.replace_substring_regex(texts, wrapper, "")
        texts = pc.if_else(pc.match_substring_regex(bare, r"[\pL\pN]"), bare, texts)  # not of mere wrappers
    for rules in _SPELLINGS:
        either = "|".join(f"(?:{pattern})" for pattern, _ in rules)
        found = pc.fill_null(pc.match_substring_regex(texts, either), False)
        some = texts.filter(found)
        for pattern, replacement in rules:
            some = pc.replace_substring_regex(some, pattern, replacement)
        texts = pc.replace_with_mask(texts, found, some)
    return pc.replace_substring_regex(texts, f"([{_UNSPACED}])", r" \1 ")
