"""Opposites: words of which one turns around what a sentence says with the other one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache

from memframe.audit.language.lexicon import LIGHT, NEGATIONS, OPPOSITES
from memframe.audit.language.resemblance import class_of

_DENYING_PREFIXES = frozenset({"un", "in", "im", "il", "ir", "dis", "non", "mis", "a", "de", "anti"})
_PREFIXES = (
    ("hyper", "hypo"),
    ("pre", "post"),
    ("inter", "intra"),
    ("intro", "extro"),
    ("macro", "micro"),
    ("over", "under"),
    ("in", "out"),
    ("in", "de"),
    ("in", "ex"),
    ("im", "ex"),
    ("en", "de"),
    ("en", "dis"),
    ("up", "down"),
)

_BOTH_WAYS = (*_PREFIXES, *(pair[::-1] for pair in _PREFIXES))
_LEAST_LETTERS = 4


def are_opposed(a: str, b: str) -> bool:
    """Whether two words say the opposite of each other.

    >>> are_opposed("loves", "hated"), are_opposed("happy", "unhappy"), are_opposed("import", "export")
    (True, True, True)
    """
    return _name(b) in _OPPOSED.get(_name(a), ()) or (a[-3:] == b[-3:] and _begin_opposed(a, b))


def _begin_opposed(a: str, b: str) -> bool:
    shorter, longer = sorted((a, b), key=len)
    if len(shorter) < _LEAST_LETTERS or shorter in LIGHT:
        return False
    prefix = longer[: len(longer) - len(shorter)]
    if longer.endswith(shorter) and prefix in _DENYING_PREFIXES and not shorter.startswith(prefix):
        return True
    return any(
        a.startswith(one) and b.startswith(other) and a[len(one) :] == b[len(other) :]
        for one, other in _BOTH_WAYS
    )


@lru_cache(maxsize=1 << 16)
def _name(word: str) -> str:
    """By class, so that all forms of a word have its opposites; not so light words and denials, whose form counts."""
    return word if word in LIGHT or word in NEGATIONS else class_of(word)


def _by_name(pairs: Iterable[tuple[str, str]]) -> Mapping[str, set[str]]:
    opposed: dict[str, set[str]] = defaultdict(set)
    for one, other in pairs:
        opposed[_name(one)].add(_name(other))
        opposed[_name(other)].add(_name(one))
    return dict(opposed)


_OPPOSED = _by_name(OPPOSITES)
