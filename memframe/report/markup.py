"""Markup: text of memories as it may stand in a page, which shows all of it and obeys none."""

from __future__ import annotations

import re
from html import escape

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls but tab and line end
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction
    "\u200b\u2028\u2029\u2060-\u2064\ufeff"  # no width, other line ends
    "\ud800-\udfff\U000e0000-\U000e0fff]"  # halves of pairs, tags
)


def escaped(text: str) -> str:
    """Return text for HTML: no tags, nothing invisible.

    >>> escaped("<b>5 $</b>")
    '&lt;b&gt;5 $&lt;/b&gt;'
    """
    return escape(_visible(text))


def attribute(text: str) -> str:
    """Text for the value of an attribute between double quotation marks."""
    return escape(_visible(text))


def _visible(text: str) -> str:
    r"""Text without characters that turn, hide or break what stands around them.

    >>> _visible("a\u202eb\x00c\nd")
    'a�b�c d'
    """
    return " ".join(_UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text).split())
