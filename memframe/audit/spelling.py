"""Spelling: words that two texts write differently where the difference may be a fact of its own.

Copies are found by their words alone, without capitals, accents, signs and punctuation. Those also decide whether a
copy may go: «papa» is not «papá», «C» not «C#», «x < 5» not «x > 5», a sentence not its question.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator

from memframe.audit.lexicon import without_accents

_MARKUP = re.compile(r"^[ \t]*(?:(?:[-*+>|\u2022]|#{1,6})[ \t]+)+", re.MULTILINE)
"""Bullets, and marks of headings and quotations, before a line of Markdown."""
_ORNAMENTS = "\"'\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a()[]{}*_`\u2026"
_BEFORE = _ORNAMENTS + "\u00a1"
_BEHIND = _ORNAMENTS + ".,:;!\u3002\uff0c\u3001\uff1a\uff1b\uff01\u060c\u061b"
"""Characters around a word that say nothing; a question mark is not one of them, nor is a sign before a word."""
_ALONE = frozenset("\"'*_`.,;!&|-\u2026\u2022\u3002\uff0c\u3001")
"""Characters that say nothing where they stand without a word."""
_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"), "-") | {
    0xA0: " ",
    0x202F: " ",
}
_WITHIN = re.compile(r"(?<=[^\W\d_])['\u2018\u2019-](?=[^\W\d_])")
"""Apostrophes and hyphens within a word: «dont», «e-mail»."""
_SPELLED_OUT = "\u20ac$\u00a3%"
"""Signs that are words where words are compared (``symbols`` in spelling.toml)."""
_UNIT_LETTERS = 3
"""Letters of a word behind a number that may be a unit, of which capitals are another one: «5 mW», «5 MW»."""
_ADDRESS = frozenset("/@\\.")


def find_respelled(removed: str, kept: str, *, breaks_off: bool = False) -> list[str]:
    """Find words that one text spells otherwise than another one, so that they may say something else.

    Words that one of them does not have are none of it, nor are capitals at the beginning of a word; of a text that has
    no capitals or nothing else, neither are others. A removed text that `breaks_off` is the beginning of the kept one.

    >>> find_respelled("Quiere a su papa", "Quiere a su papá"), find_respelled("- Likes tea", "likes tea.")
    (['papa'], [])
    >>> find_respelled("Likes tea?", "Likes tea"), find_respelled("x < 5", "x > 5")
    (['tea?'], ['<', '>'])
    """
    if removed == kept:
        return []
    is_plain = removed in (removed.upper(), removed.lower())
    words, kept_words = ([*_written_words(text, is_folded=is_plain)] for text in (removed, kept))
    own, others = Counter(words), Counter(kept_words)
    of_letters: defaultdict[str, list[str]] = defaultdict(list)
    for word in others - own:
        of_letters[_letters_of(word)].append(word)
    found = []
    for word in own - others:
        letters = _letters_of(word)
        if not letters or any(_is_other(word, one) for one in of_letters.get(letters, ())):
            found.append(word)
    if not breaks_off:
        return found + of_letters.get("", [])
    half = words[-1] if words else ""
    is_half_address = half not in others and not _ADDRESS.isdisjoint(half)
    return found + [half] * (is_half_address and any(one.startswith(half) for one in others))


def _written_words(text: str, *, is_folded: bool) -> Iterator[str]:
    """Yield the words of a text as they are written, without what is around them."""
    before = ""
    for part in _MARKUP.sub("", unicodedata.normalize("NFC", text)).translate(_DASHES).split():
        word = part.lstrip(_BEFORE + _SPELLED_OUT).rstrip(_BEHIND + _SPELLED_OUT)
        if not any(map(str.isalnum, word)):
            word = "" if _ALONE.issuperset(part) or not part.strip(_SPELLED_OUT) else part
        elif _ADDRESS.isdisjoint(word):
            word = _WITHIN.sub("", word)
            if is_folded:
                word = word.casefold()
            elif not (before[-1:].isdigit() and word.isalpha() and len(word) <= _UNIT_LETTERS):
                word = word[0].lower() + word[1:]
        if word:
            yield word
        before = word or before


def _letters_of(word: str) -> str:
    return "".join(filter(str.isalnum, without_accents(unicodedata.normalize("NFKC", word)).casefold()))


def _is_other(word: str, one: str) -> bool:
    """Return True unless both are one number, written with and without the marks of thousands."""
    return not (word.isdecimal() or one.isdecimal()) or not {*word, *one}.issubset("0123456789.,'")
