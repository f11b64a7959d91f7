"""Masks: what may be shown of a secret (its first characters at most, and its length), and marks where one was."""

from __future__ import annotations

import re

_SHOWN = ((24, 4), (12, 2))
"""From how many characters on, how many are shown; what is shorter could be guessed from any."""


def masked(text: str) -> str:
    """The first characters of a long text and its length; of a short one the length alone.

    >>> masked("sk-live-0123456789abcdefghijklm"), masked("4821")
    ('sk-l… (31 characters)', '(4 characters)')
    """
    n_shown = next((n_shown for at_least, n_shown in _SHOWN if len(text) >= at_least), 0)
    shown = "".join(letter if letter.isprintable() else "·" for letter in text[:n_shown])
    return f"{shown}… ({len(text):,} characters)" if shown else f"({len(text):,} characters)"


_REDACTED = re.compile(r"\[redacted: (?P<kind>[a-z ]{1,30})(?: \d+)?\]")
_STAND_INS = {"pin": "4829", "access code": "2580#", "one time code": "482913"}
_STAND_IN = "Zx9!kQ7v"


def redacted(kind: str) -> str:
    """What stands in a text where a secret was.

    >>> redacted("recovery_code")
    '[redacted: recovery code]'
    """
    return f"[redacted: {kind.replace('_', ' ')}]"


def with_stand_ins(text: str) -> str:
    """The text as long as it is, with something like a secret where there was one: it is read as it was.

    >>> with_stand_ins("the pin is [redacted: pin].")
    'the pin is 4829           .'
    """
    if "[redacted: " not in text:
        return text
    return _REDACTED.sub(lambda mark: _STAND_INS.get(mark["kind"], _STAND_IN).ljust(len(mark[0])), text)


def redacted_places(text: str) -> list[tuple[int, int]]:
    """Where secrets were."""
    return [mark.span() for mark in _REDACTED.finditer(text)] if "[redacted: " in text else []
