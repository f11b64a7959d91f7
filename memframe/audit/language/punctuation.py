"""Punctuation: what commas and full stops tell of two texts, and their words do not."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"[^\W_]+")
_BETWEEN_ITEMS = re.compile(r"[,;/&+]|\b(?:and|or|und|oder|et|ou|y|e|o)\b")
_BREAKS_OFF = ("...", "\u2026")


def is_enumerated(words: Sequence[str], text: str, other: str) -> bool:
    """Whether words are items of a list in both texts, and the same items, so that their order says nothing.

    Parameters
    ----------
    words
        All in which the order differs, as they stand in ``text``.

    Examples
    --------
    >>> is_enumerated(["Leeds", "Ghent", "Graz"], "Likes Leeds, Ghent and Graz", "Likes Graz, Ghent and Leeds")
    True
    >>> is_enumerated(["Tom", "likes", "Ann"], "Tom likes Ann", "Ann likes Tom")
    False
    """
    first, last = words[0].lower(), words[-1].lower()
    lists = _items(text, first, last), _items(other, last, first)
    return len(lists[0]) > 1 and lists[0] == lists[1]


def _items(text: str, first: str, last: str) -> list[list[str]]:
    found = re.search(rf"\b{re.escape(first)}\b.*\b{re.escape(last)}\b", text.lower(), re.DOTALL)
    return sorted(_WORD.findall(item) for item in _BETWEEN_ITEMS.split(found[0])) if found else []


def ends_sentence(part: str, whole: str) -> bool:
    """Whether a text ends where a sentence of a longer one ends, so that it may well be a text of its own.

    >>> whole = "Ada likes tea. She lives in Graz."
    >>> [ends_sentence(part, whole) for part in ("Ada likes tea", "Ada likes", "Ada likes tea...")]
    [True, False, False]
    """
    words = _WORD.findall(part)
    if not words or part.rstrip().endswith(_BREAKS_OFF):
        return False
    end = rf"\b{re.escape(words[-1])}\b[^\w\n]*?(?:[.!?;]\s|\n)"
    return re.search(end, whole, re.IGNORECASE) is not None
