"""Text of memories as it may stand in a picture: plain, short, and in fonts that have its letters."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Any

import matplotlib as mpl
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

MAX_CHARS = 24

_FALLBACKS = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Noto Sans JP",
    "Hiragino Sans",
    "PingFang SC",
    "Yu Gothic",
    "Microsoft YaHei",
    "Malgun Gothic",
    "Apple SD Gothic Neo",
    "WenQuanYi Zen Hei",
    "Noto Sans Arabic",
    "Noto Sans Devanagari",
    "Noto Emoji",
    "Segoe UI Emoji",
    "Symbola",
)
"""Outline fonts that are common on some system; matplotlib cannot draw the colour bitmaps of others."""

_MISSING = "□"


def plain_text() -> dict[str, Any]:
    """Properties of a ``Text`` that holds foreign words: ``$`` and TeX mean nothing in it."""
    return {"parse_math": False, "usetex": False, "fontfamily": list(_families(_own_families()))}


def label(text: str, max_chars: int = MAX_CHARS) -> str:
    r"""One line of at most `max_chars` characters, without anything invisible.

    Letters for which no font is installed become an open square here, where matplotlib would warn.

    >>> label("recipes\n\u202efor winter")
    'recipes for winter'
    >>> label("everything that has to do with soup", 12)
    'everything …'
    >>> label(" ")
    '(empty)'
    """
    spaced = "".join(" " if letter.isspace() else letter for letter in text[: 20 * max_chars])
    visible = "".join(letter for letter in spaced if unicodedata.category(letter)[0] != "C")
    return _drawable(_shortened(" ".join(visible.split()), max_chars)) or "(empty)"


def labels(texts: Iterable[str], max_chars: int = MAX_CHARS) -> list[str]:
    """`label` for each of several texts."""
    return [label(text, max_chars) for text in texts]


def _shortened(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def _drawable(text: str) -> str:
    if text.isascii():
        return text
    letters = _letters(_families(_own_families()))
    return "".join(letter if ord(letter) in letters else _MISSING for letter in text)


def _own_families() -> tuple[str, ...]:
    return tuple(mpl.rcParams["font.family"])


@cache
def _families(own: tuple[str, ...]) -> tuple[str, ...]:
    installed = set(fontManager.get_font_names())
    return (*own, *(name for name in _FALLBACKS if name in installed))


@cache
def _letters(families: tuple[str, ...]) -> frozenset[int]:
    fonts = (get_font(findfont(FontProperties(family=[name]))) for name in families)
    return frozenset().union(*(font.get_charmap() for font in fonts))
