"""Masks: what may be shown of a secret, which is its first characters at most, and its length."""

from __future__ import annotations

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
