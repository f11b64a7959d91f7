"""Typing errors: when a word is another one, mistyped.

A typing error makes a word that hardly any text has out of one that others have, or that is known to be right; two
words that both stand in several texts, or that are both known, are two words, however close («Marta», «Maria»).
"""

from __future__ import annotations

from functools import lru_cache

from rapidfuzz.distance import OSA

from memframe.audit.language.known_words import is_common, is_known, is_name
from memframe.audit.language.lexicon import CALENDAR, LIGHT, NEGATIONS
from memframe.audit.language.opposites import are_opposed
from memframe.audit.language.resemblance import is_number

_KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_DENIALS = tuple(sorted(word for word in NEGATIONS if len(word) > 4))
_PLACE_OF_KEY = {key: (row, at) for row, keys in enumerate(_KEYBOARD) for at, key in enumerate(keys)}


def is_slip(a: str, n_a: int, b: str, n_b: int, *, careless: bool = False) -> bool:
    """Whether one word is the other with a typing error, given how often each of them stands in the store.

    Parameters
    ----------
    careless
        The text has other typing errors, so that one of them may have made another word, though no name.

    Examples
    --------
    >>> is_slip("bokoed", 1, "booked", 12), is_slip("marta", 31, "maria", 40), is_slip("possible", 9, "impossible", 1)
    (True, False, False)
    >>> is_slip("studio", 1, "study", 12)
    False
    >>> is_slip("log", 1, "long", 12), is_slip("log", 1, "long", 12, careless=True)
    (False, True)
    """
    if n_a > n_b or (n_a == n_b and is_known(a)):
        a, n_a, b, n_b = b, n_b, a, n_a
    if n_a > 1 + n_b // 20 or abs(len(a) - len(b)) > 2 or not (a + b).isalpha() or _are_two_words(a, b):
        return False
    if (is_known(a) and (not careless or is_name(a))) or (a[:1] != b[:1] and not is_known(b)):
        return False  # «Preact» is not «React», however often the store speaks of that
    known, longer = n_b > 2 * n_a or is_known(b), max(len(a), len(b))
    may_be_two = known and not careless and a[0] == b[0] and longer >= _letters_for_two(a, b)
    if OSA.distance(a, b, score_cutoff=2) > (2 if may_be_two else 1):
        return False
    if known and (longer >= 6 or (longer > 3 and is_common(b))):
        return True
    if longer >= 8 and a[-1] == b[-1]:
        return True
    return (known or longer >= 8 or (longer >= 6 and a[0] == b[0])) and _likely_slip(a, b)


@lru_cache(maxsize=1 << 12)
def may_deny(word: str) -> bool:
    """Whether a word may be a mistyped denial.

    >>> may_deny("nevr"), may_deny("harrdly"), may_deny("fever"), may_deny("tea")
    (True, True, False, False)
    """
    return not is_known(word) and any(OSA.distance(word, denial, score_cutoff=1) <= 1 for denial in _DENIALS)


def _letters_for_two(a: str, b: str) -> int:
    """Return from how many letters on a word may have two typing errors: «studio» is not «study»."""
    return 6 if a[-1] == b[-1] and is_known(b) and not is_name(b) else 8


def _are_two_words(a: str, b: str) -> bool:
    """Whether two words, the rarer first, are never each other's slip: light ones, numbers, days, opposites."""
    if a in LIGHT or a in NEGATIONS or a in CALENDAR or (b in NEGATIONS and len(b) < 5):
        return True
    if a[:-1] == b[:-1] and {a[-1], b[-1]} == {"o", "a"}:
        return True  # «hijo», «hija»
    return (is_number(a) and is_number(b)) or are_opposed(a, b)


def _likely_slip(a: str, b: str) -> bool:
    """Of short words: letters left out, doubled or swapped, or a key beside the right one."""
    if len(a) != len(b) or sorted(a) == sorted(b):
        return max(len(a), len(b)) > 2
    return len(a) > 3 and all(_beside(x, y) for x, y in zip(a, b, strict=True) if x != y)


def _beside(x: str, y: str) -> bool:
    if x not in _PLACE_OF_KEY or y not in _PLACE_OF_KEY:
        return False
    (row, at), (other_row, other_at) = _PLACE_OF_KEY[x], _PLACE_OF_KEY[y]
    return abs(row - other_row) <= 1 and abs(at - other_at) <= 1
