"""Words that are right as they are written: common words, names of people and of places."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.resources import files

from memframe.audit.language.lexicon import CLASSES, LIGHT
from memframe.audit.language.vocabulary import read_vocabulary


@lru_cache(maxsize=1 << 16)
def is_known(word: str) -> bool:
    """Whether a word is right as it is written, whatever a store says.

    >>> is_known("daniela"), is_known("walking"), is_known("danielo"), is_known("wlaking")
    (True, True, False, False)
    """
    return is_name(word) or is_common(word) or is_common(word.removesuffix("s")) or _is_form_of_verb(word)


def is_name(word: str) -> bool:
    """Whether a word is a name of a person or a place."""
    return word in _listed()["names"] or is_place(word)


def is_place(word: str) -> bool:
    """Whether a word is a name of a place."""
    return word in _listed()["places"]


def is_common(word: str) -> bool:
    """Whether a word is a common one, in just this form."""
    return word in _common()


def _is_form_of_verb(word: str) -> bool:
    return any(word.endswith(end) and word.removesuffix(end) in _verbs() for end in ("ed", "ing"))


@cache
def _listed() -> dict[str, frozenset[str]]:
    return read_vocabulary(__package__, "known_words.txt")


@cache
def _bases() -> frozenset[str]:
    """The list of words that people write seed phrases with: two thousand common ones."""
    return frozenset(files("memframe.audit").joinpath("rules", "seed_words.txt").read_text("ascii").split())


@cache
def _common() -> frozenset[str]:
    return _listed()["words"].union(LIGHT, CLASSES, _bases())


@cache
def _verbs() -> frozenset[str]:
    """Words to which «ed» and «ing» may be added."""
    return frozenset(word.removesuffix("e") if len(word) > 4 else word for word in _bases())
