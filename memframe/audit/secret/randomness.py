"""Randomness: whether characters were drawn by a machine, or written by somebody to be read."""

from __future__ import annotations

import re
from collections import Counter
from math import log2

_PLACEHOLDER = re.compile(
    r"example|placeholder|redacted|change_?me|your[_ -]|xxxx|\*\*\*|\.\.\.|…|•••|fixme"
    r"|(?<![^\W_])(?:insert|replace|removed|dummy|sample|todo|foobar|foo)(?![^\W_])"
)
_OPENINGS = ("<", "{", "[", "${", "$(", "%(", "@{")
_NOTHING = frozenset(
    [
        "none",
        "null",
        "nil",
        "undefined",
        "true",
        "false",
        "string",
        "secret",
        "password",
        "token",
        "test",
        "key",
    ]
)
_REPEATED = re.compile(r"(.)\1{6}")
_SEGMENT = re.compile(r"[A-Za-z0-9]{6,}")
_CHANGE = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])")

MIN_MIXED = 0.6
"""Share of characters in stretches of letters with digits; names of things have words of their own between signs."""

MIN_CHANGES = 0.15
"""Changes a character between small letters, capitals and digits: 0.3 to 0.5 in random text, less than 0.1 in words."""


def is_placeholder(value: str) -> bool:
    """Whether a value stands where a secret should be and is none.

    >>> is_placeholder("<your-api-key>"), is_placeholder("AKIAIOSFODNN7EXAMPLE"), is_placeholder("q7Rk0pVw")
    (True, True, False)
    """
    small = value.lower()
    return (
        small.startswith(_OPENINGS)
        or small in _NOTHING
        or _PLACEHOLDER.search(small) is not None
        or _REPEATED.search(small) is not None
    )


def looks_random(value: str, *, min_entropy: float = 3.0) -> bool:
    """Whether the characters of a value look drawn at random: varied, mixed, and with digits among them.

    Parameters
    ----------
    value : str
        Of any length; below ten characters nothing looks random for sure.
    min_entropy : float
        Bits a character.

    >>> looks_random("tG7kQ2xVb9LmZ4pR"), looks_random("timetable-diff-2021"), looks_random("getUserProfileById")
    (True, False, False)
    """
    mixed = [
        segment for segment in _SEGMENT.findall(value) if not segment.isalpha() and not segment.isdecimal()
    ]
    n_changes = sum(len(_CHANGE.findall(segment)) for segment in mixed)
    return (
        sum(map(len, mixed)) >= MIN_MIXED * len(value)
        and n_changes >= MIN_CHANGES * len(value)
        and entropy(value) >= min_entropy
    )


def entropy(value: str) -> float:
    """Bits a character, by how often each occurs.

    >>> entropy("aaaa"), entropy("abcd")
    (0.0, 2.0)
    """
    n = len(value)
    return sum(count / n * log2(n / count) for count in Counter(value).values())
