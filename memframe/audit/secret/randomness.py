"""Randomness: whether characters were drawn by a machine, or written by somebody to be read."""

from __future__ import annotations

import re
from collections import Counter
from math import log2

from memframe.audit.language.vocabulary import read_vocabulary

_PLACEHOLDER = re.compile(
    r"example|placeholder|redacted|change_?me|your[_ -]|xxxx|\*\*\*|\.\.\.|…|•••|fixme|goes[_ -]here"
    r"|(?<![^\W_])(?:insert|replace|removed|dummy|sample|todo|foobar|foo)(?![^\W_])"
)
_PUBLIC = re.compile(r"pk_(?:live|test|prod)_|pk\.eyj|ssh-(?:rsa|ed25519)")
"""How keys begin that are meant for everybody."""

_OPENINGS = ("<", "{", "[", "${", "$(", "%(", "@{")
_NOTHING = read_vocabulary(__package__, "plain_words.txt")["placeholders"]
_ROW = re.compile(r"(.)\1{6,}")
_IN_ORDER = ("0123456789abcdef", "1234567890abcdef", "abcdefghijklmnopqrstuvwxyz", "12345678901234567890")
_SEGMENT = re.compile(r"[A-Za-z0-9]{5,}")
_CHANGE = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])")

_MAX_ROW, _LONG_ORDER = 3, 8
"""A third of one and the same character is no secret; nor are eight in the order of the keyboard or alphabet."""

MIN_MIXED = 0.6
"""Share of characters in stretches of letters with digits; names of things have words of their own between signs."""

MIN_DRAWN = 2.8
"""Bits a character of a token."""

_LONG, MIN_TURNS = 20, 0.25
"""Changes a character of a value with signs in it."""

_RARE_SIGNS, _MANY_SIGNS = frozenset("!@#$%^&*()+=~?|"), 3

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
        or _PUBLIC.match(small) is not None
        or any(len(row[0]) * _MAX_ROW >= len(small) for row in _ROW.finditer(small))
        or any(small in order for order in _IN_ORDER if len(small) >= _LONG_ORDER)
    )


def is_drawn(token: str) -> bool:
    """Whether a token with a maker's beginning goes on as drawn ones do, and not in words: "xoxb-my-bot-token".

    >>> is_drawn("sk-proj-your-project-key"), is_drawn("sk-proj-4Jt0wZkQ9aB2x7")
    (False, True)
    """
    segments = re.split(r"[^A-Za-z0-9]+", token)
    n_in_words = sum(len(segment) for segment in segments if segment.islower() and segment.isalpha())
    return n_in_words <= len(token) / 2 and entropy(token) >= MIN_DRAWN


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
    is_mixed = sum(map(len, mixed)) >= MIN_MIXED * len(value) and n_changes >= MIN_CHANGES * len(value)
    return (is_mixed or _is_restless(value) or _is_strewn(value)) and entropy(value) >= min_entropy


def _is_restless(value: str) -> bool:
    """Whether small letters, capitals and digits take turns all through a long value, whatever signs are between."""
    kinds = (any(map(kind, value)) for kind in (str.islower, str.isupper, str.isdecimal))
    return len(value) >= _LONG and all(kinds) and len(_CHANGE.findall(value)) >= MIN_TURNS * len(value)


def _is_strewn(value: str) -> bool:
    """Whether signs that no name has are strewn among letters and digits: "gC6Q(%vn@r0nG)#r@a^g3"."""
    signs = set(value) & _RARE_SIGNS
    return len(value) >= _LONG_ORDER * 2 and len(signs) >= _MANY_SIGNS and any(map(str.isdecimal, value))


def entropy(value: str) -> float:
    """Bits a character, by how often each occurs.

    >>> entropy("aaaa"), entropy("abcd")
    (0.0, 2.0)
    """
    n = len(value)
    return sum(count / n * log2(n / count) for count in Counter(value).values())
