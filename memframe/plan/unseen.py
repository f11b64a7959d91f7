r"""Text of strangers made fit to be looked at: what would not be seen, or would steer the display, is spelled out.

Control characters, which a terminal obeys; the marks that turn the direction of writing, by which a text can
read otherwise than it is; and characters without a shape, in which instructions to a language model hide.
"""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls but tab and line end
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction
    "\u200b\u2028\u2029\u2060-\u2064\ufeff"  # no width, other line ends
    "\ud800-\udfff\U000e0000-\U000e0fff]"  # halves of pairs, tags
)


def visible(text: str) -> str:
    r"""The text with such characters as Python would write them.

    >>> print(visible("done\x1b[2J, \u202eeman"))
    done\x1b[2J, \u202eeman
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
