"""Spelling: what two texts write differently where the difference may be a fact of its own.

Copies are found by their words alone, without capitals, accents, signs and punctuation. Those also decide whether a
copy may go: «papa» is not «papá», «C» not «C#», «3-4» not «3 4», «dogs'» not «dog's», a sentence not its question.
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
"""Bullets, marks of headings, quotations and tables around a line of Markdown, and rules between lines."""
_EMPHASIS = re.compile(
    r"(?<!\w)(?:(\*{1,3}|`)(?=\S)([^\n]{1,300}?)(?<=\S)\1|_(?=\S)([^_\n]{1,300})(?<=\S)_)(?!\w)"
)
"""Words in bold, in italics or in the letters of code."""
_QUOTED = re.compile(r'"([^"]*)"')
"""A text that is one quotation."""
_STARTS = re.compile(r"(?:^|[.!?]\s)\W{0,3}\w", re.MULTILINE)
"""The first letter of a line or sentence."""
_ENDS = re.compile(r"(?<![.?!])(?:\.|!+)\s*\Z")
"""Marks at the end of a text that say nothing: neither a question mark nor what breaks off."""
_ONE_SIGN = (
    dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"), "-")
    | dict.fromkeys(map(ord, "\u2018\u2019\u201a\u2039\u203a"), "'")
    | dict.fromkeys(map(ord, "\u201c\u201d\u201e\u00ab\u00bb"), '"')
    | {0xA0: " ", 0x202F: " ", 0x3000: " ", 0x3002: ".", 0x2026: "..."}
    | {0xFF01 + place: chr(0x21 + place) for place in range(94)}
)
"""Characters that are one sign in several forms: dashes, quotes, blanks, and those of full width."""
_PUNCTUATION = ".,:;!\u3001\u060c\u061b"
"""Marks behind a word that may belong to other words: «tea, just so you know»."""
_AROUND = "\"'()[]{}"
"""Quotes and brackets, which stand around other words where one is added."""
_SPELLED_OUT = "\u20ac$\u00a3%"
"""Signs that are words where words are compared (``symbols`` in spelling.toml)."""
_UNIT_LETTERS = 3
"""Letters of a word behind a number that may be a unit, of which capitals are another one: «5 mW», «5 MW»."""
_THOUSANDS = re.compile(r"(?<=\d)[.,'](?=\d{3}(?!\d))")
"""Marks of thousands: 1,500 is 1500, but 1.500 is not 1,500."""
_ADDRESS = frozenset("/@\\.")


def find_respelled(removed: str, kept: str, *, breaks_off: bool = False) -> list[str]:
    """Find words that one text spells otherwise than another one, so that they may say something else.

    Texts of the same letters and digits are the same if they differ in blanks, markup, capitals at the beginning of a
    sentence, and a mark at the end; of a text that has no capitals or nothing else, other capitals say nothing either.
    Where whole words differ, which others compare, marks behind words do not count, nor which of the words are in
    brackets. A removed text that `breaks_off` is the beginning of the kept one.

    >>> find_respelled("Quiere a su papa", "Quiere a su papá"), find_respelled("- Likes tea", "likes tea.")
    (['papa'], [])
    >>> find_respelled("Likes tea?", "Likes tea"), find_respelled("x < 5", "x > 5")
    (['tea?'], ['<'])
    """
    if removed == kept or not removed.strip():
        return []
    is_folded = removed in (removed.upper(), removed.lower())
    plain, kept_plain = (_write_plainly(text, is_folded=is_folded) for text in (removed, kept))
    if plain == kept_plain:
        return []
    if _letters_of(plain) == _letters_of(kept_plain):
        return _compare_marks(plain, kept_plain)
    words, kept_words = _split_words(plain), _split_words(kept_plain)
    alone, kept_alone = Counter(words) - Counter(kept_words), Counter(kept_words) - Counter(words)
    kept_by_letters: defaultdict[str, list[str]] = defaultdict(list)
    for word in kept_alone:
        kept_by_letters[_letters_of(word)].append(word)
    found = [word for word in alone if _is_respelled(word, kept_by_letters[_letters_of(word)])]
    # one text joins two words with a number that the other one has apart
    joined, kept_joined = _join_numbers(words), _join_numbers(kept_words)
    found += [word for word in alone if _letters_of(word) in kept_joined and word not in found]
    found += [word for word in kept_alone if _letters_of(word) in joined]
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
    """Return True for a sign, and for a word that is not one of the others, which have the same letters."""
    return not _letters_of(word) or any(not _without_thousands(word, other) for other in others)


def _count_around(text: str) -> Counter[str]:
    return Counter(filter(_AROUND.__contains__, text))


def _find_half_address(words: Sequence[str], kept_words: Sequence[str]) -> list[str]:
    """Find the last word of a text that breaks off, if it is the beginning of an address in the whole one."""
    half = words[-1] if words else ""
    is_address = half not in kept_words and not _ADDRESS.isdisjoint(half)
    return [half] if is_address and any(word.startswith(half) for word in kept_words) else []


def _write_plainly(text: str, *, is_folded: bool) -> str:
    """Write a text without markup, each sign in one form, without what its beginning and its end may have."""
    text = _MARKUP.sub("", unicodedata.normalize("NFC", text).translate(_ONE_SIGN))
    text = _EMPHASIS.sub(r"\2\3", _EMPHASIS.sub(r"\2\3", text))  # one may stand in another one
    text = text.casefold() if is_folded else _STARTS.sub(lambda start: start[0].lower(), text)
    text = " ".join(text.split())
    quoted = _QUOTED.fullmatch(text)
    return _ENDS.sub("", quoted[1] if quoted else text)


def _split_words(text: str) -> list[str]:
    """Return the words of a text as they are written, without the marks behind them."""
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
    """Return what two words with a digit would be if they were one: «3-4» and «5a» of «3 4» and «5 a»."""
    joined = (_letters_of(one + other) for one, other in pairwise(words))
    return {word for word in joined if any(map(str.isdigit, word))}


def _letters_of(word: str) -> str:
    return "".join(filter(str.isalnum, without_accents(unicodedata.normalize("NFKC", word)).casefold()))


def _without_thousands(text: str, other: str) -> bool:
    """Return True if two texts differ in marks of thousands that one of them leaves out."""
    return other == _THOUSANDS.sub("", text) or text == _THOUSANDS.sub("", other)
