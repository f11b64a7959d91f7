"""Spelling: differences between two texts with the same words that may change the meaning.

Copies are found by their words, without capitals, accents, signs and punctuation. Before one is merged, these are
compared as well: «papa» is not «papá», «C» not «C#», «3-4» not «3 4», «dogs'» not «dog's», a sentence not its question.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from memframe.audit.lexicon import without_accents

_MARKUP = re.compile(
    r"^[ \t]*(?:(?:[-*+>|\u2022]|#{1,6})[ \t]+)+|(?<!\s)[ \t]{1,9}\|[ \t]{0,9}$|^[-*_]{3,99}[ \t]{0,9}$",
    re.MULTILINE,
)
"""Marks of Markdown around a line, for lists, headings, quotations and tables, and rules between lines."""
_EMPHASIS = re.compile(
    r"(?<!\w)(?:(\*{1,3}|`)(?=\S)([^\n]{1,300}?)(?<=\S)\1|_(?=\S)([^_\n]{1,300})(?<=\S)_)(?!\w)"
)
"""Words in bold, in italics or as code."""
_QUOTED = re.compile(r'"([^"]*)"')
"""A text that is a single quotation."""
_STARTS = re.compile(r"(?:^|[.!?]\s)\W{0,3}\w", re.MULTILINE)
"""The first letter of a line or sentence."""
_ENDS = re.compile(r"(?<![.?!])(?:\.|!+)\s*\Z")
"""Marks at the end of a text that do not change its meaning; a question mark and an ellipsis do."""
_ONE_SIGN = (
    dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"), "-")
    | dict.fromkeys(map(ord, "\u2018\u2019\u201a\u2039\u203a"), "'")
    | dict.fromkeys(map(ord, "\u201c\u201d\u201e\u00ab\u00bb"), '"')
    | {0xA0: " ", 0x202F: " ", 0x3000: " ", 0x3002: ".", 0x2026: "..."}
    | {0xFF01 + place: chr(0x21 + place) for place in range(94)}
)
"""Characters that are forms of one sign: dashes, quotes, blanks, and characters of full width."""
_PUNCTUATION = ".,:;!\u3001\u060c\u061b"
"""Marks behind a word that added words may bring with them: «tea, just so you know»."""
_AROUND = "\"'()[]{}"
"""Quotes and brackets around words; added words may be within them."""
_SPELLED_OUT = "\u20ac$\u00a3%"
"""Signs that are compared as words (``symbols`` in spelling.toml)."""
_UNIT_LETTERS = 3
"""Most letters of a word behind a number that may be a unit, so that its capitals count: «5 mW», «5 MW»."""
_THOUSANDS = re.compile(r"(?<=\d)[.,'](?=\d{3}(?!\d))")
"""Marks of thousands: 1,500 is 1500, but 1.500 is not 1,500."""
_ADDRESS = frozenset("/@\\.")
"""Signs within addresses and paths."""


def find_respelled(removed: str, kept: str, *, breaks_off: bool = False) -> list[str]:
    """Find words of a removed text that the kept text spells otherwise, so that their meaning may differ.

    These differences do not count: blanks, markup, capitals at the beginning of a sentence, a mark at the end and, if
    the removed text is all in capitals or all in small letters, any capitals. If the texts also differ in whole words,
    which other functions compare, marks behind words do not count either, nor the words that are in brackets. A removed
    text that `breaks_off` is the beginning of the kept one.

    >>> find_respelled("Quiere a su papa", "Quiere a su papá"), find_respelled("- Likes tea", "likes tea.")
    (['papa'], [])
    >>> find_respelled("Likes tea?", "Likes tea"), find_respelled("x < 5", "x > 5")
    (['tea?'], ['<'])
    """
    if removed == kept or not removed.strip():
        return []
    ignore_case = removed in (removed.upper(), removed.lower())
    plain, kept_plain = (_write_plainly(text, ignore_case=ignore_case) for text in (removed, kept))
    if plain == kept_plain:
        return []
    if _letters_of(plain) == _letters_of(kept_plain):
        return _compare_marks(plain, kept_plain)
    words, kept_words = _split_words(plain), _split_words(kept_plain)
    only_removed, only_kept = Counter(words) - Counter(kept_words), Counter(kept_words) - Counter(words)
    kept_by_letters: defaultdict[str, list[str]] = defaultdict(list)
    for word in only_kept:
        kept_by_letters[_letters_of(word)].append(word)
    found = [word for word in only_removed if _is_respelled(word, kept_by_letters[_letters_of(word)])]
    # one text joins two words with a number, such as «3-4», and the other one does not
    joined, kept_joined = _join_numbers(words), _join_numbers(kept_words)
    found += [word for word in only_removed if _letters_of(word) in kept_joined and word not in found]
    found += [word for word in only_kept if _letters_of(word) in joined]
    around, kept_around = _count_around(plain), _count_around(kept_plain)
    found += around - kept_around
    if breaks_off:
        return found + _find_half_address(words, kept_words)
    return found + kept_by_letters[""] + list(kept_around - around)


def _compare_marks(plain: str, kept_plain: str) -> list[str]:
    """Find the words of two texts with the same letters that differ in a mark, other than marks of thousands."""
    if _without_thousands(plain, kept_plain):
        return []
    differing = Counter(plain.split()) - Counter(kept_plain.split())
    return list(differing) or [plain]


def _is_respelled(word: str, others: Iterable[str]) -> bool:
    """Return True for a sign, and for a word that is spelled otherwise than the others, which have its letters."""
    return not _letters_of(word) or any(not _without_thousands(word, other) for other in others)


def _count_around(text: str) -> Counter[str]:
    return Counter(filter(_AROUND.__contains__, text))


def _find_half_address(words: Sequence[str], kept_words: Sequence[str]) -> list[str]:
    """Return the last word of a text that breaks off if it is the beginning of an address in the kept text."""
    half = words[-1] if words else ""
    is_address = half not in kept_words and not _ADDRESS.isdisjoint(half)
    return [half] if is_address and any(word.startswith(half) for word in kept_words) else []


def _write_plainly(text: str, *, ignore_case: bool) -> str:
    """Write a text without markup, capitals at the beginning and marks at the end, with one form of each sign."""
    text = _MARKUP.sub("", unicodedata.normalize("NFC", text).translate(_ONE_SIGN))
    text = _EMPHASIS.sub(r"\2\3", _EMPHASIS.sub(r"\2\3", text))  # twice, because bold may be within italics
    text = text.casefold() if ignore_case else _STARTS.sub(lambda start: start[0].lower(), text)
    text = " ".join(text.split())
    quoted = _QUOTED.fullmatch(text)
    return _ENDS.sub("", quoted[1] if quoted else text)


def _split_words(text: str) -> list[str]:
    """Return the words of a text as they are written, but without marks behind them and without a first capital.

    Words that may be units keep their capitals.
    """
    words = []
    before = ""
    for part in text.split():
        word = part.lstrip(_SPELLED_OUT + _AROUND).rstrip(_PUNCTUATION + _SPELLED_OUT + _AROUND)
        if not any(map(str.isalnum, word)):
            word = part.strip(_PUNCTUATION + _SPELLED_OUT + _AROUND + "-")
        elif _ADDRESS.isdisjoint(word) and not (
            before[-1:].isdigit() and word.isalpha() and len(word) <= _UNIT_LETTERS
        ):
            word = word[0].lower() + word[1:]
        if word:
            words.append(word)
        before = word or before
    return words


def _join_numbers(words: list[str]) -> set[str]:
    """Return the letters of each two consecutive words of which one has a digit: «34» for «3 4», «5a» for «5 a»."""
    joined = (_letters_of(one + other) for one, other in pairwise(words))
    return {word for word in joined if any(map(str.isdigit, word))}


def _letters_of(word: str) -> str:
    return "".join(filter(str.isalnum, without_accents(unicodedata.normalize("NFKC", word)).casefold()))


def _without_thousands(text: str, other: str) -> bool:
    """Return True if two texts differ only in marks of thousands, which one of them leaves out."""
    return other == _THOUSANDS.sub("", text) or text == _THOUSANDS.sub("", other)
