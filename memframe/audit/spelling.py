"""Spelling: what two texts write differently where the difference may be a fact of its own.

Copies are found by their words alone, without capitals, accents, signs and punctuation. Those also decide whether a
copy may go: «papa» is not «papá», «C» not «C#», «3-4» not «3 4», «dogs'» not «dog's», a sentence not its question.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
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
_QUOTED = re.compile(r'"([^"]*)"')
_STARTS = re.compile(r"(?:^|[.!?]\s)\W{0,3}\w", re.MULTILINE)
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
_ADDRESS = frozenset("/@\\.")


def find_respelled(removed: str, kept: str, *, breaks_off: bool = False) -> list[str]:
    """Find words that one text spells otherwise than another one, so that they may say something else.

    Texts of the same letters and digits are the same if they differ in blanks, markup, capitals at the beginning of a
    sentence, and a mark at the end; of a text that has no capitals or nothing else, other capitals say nothing either.
    Where words differ, which is not looked at here, marks behind words do not count, nor does it matter which words are
    in brackets. A removed text that `breaks_off` is the beginning of the kept one.

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
        if _without_thousands(plain, kept_plain):
            return []
        differing = Counter(plain.split()) - Counter(kept_plain.split())
        return list(differing) or [plain]
    words, kept_words = (_split_words(text) for text in (plain, kept_plain))
    own, others = Counter(words), Counter(kept_words)
    of_letters: defaultdict[str, list[str]] = defaultdict(list)
    for word in others - own:
        of_letters[_letters_of(word)].append(word)
    joined, kept_joined = (_join_numbers(text) for text in (words, kept_words))
    found = []
    for word in own - others:
        letters = _letters_of(word)
        if (
            not letters
            or letters in kept_joined
            or any(not _without_thousands(word, one) for one in of_letters.get(letters, ()))
        ):
            found.append(word)
    found += [word for letters, some in of_letters.items() if letters in joined for word in some]
    around, kept_around = (Counter(filter(_AROUND.__contains__, text)) for text in (plain, kept_plain))
    found += around - kept_around
    if not breaks_off:
        return found + of_letters.get("", []) + list(kept_around - around)
    half = words[-1] if words else ""
    is_half_address = half not in others and not _ADDRESS.isdisjoint(half)
    return found + [half] * (is_half_address and any(one.startswith(half) for one in others))


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
