"""When two words say the same: inflections, abbreviations, spellings of a number or a moment."""

from __future__ import annotations

from functools import lru_cache

from memframe.audit.language.lexicon import CLASSES, DECIMAL, LIGHT, MINUTES

_HALVES_OF_DAY = {"am": 0, "pm": 12}


@lru_cache(maxsize=1 << 16)
def class_of(word: str) -> str:
    """The name of all words that say the same as this one.

    >>> class_of("kilometres") == class_of("km"), class_of("working") == class_of("works"), class_of("03")
    (True, True, '3')
    """
    known = CLASSES.get(word)
    if known is not None:
        return known
    if word[0].isdigit():
        return _plain_number(word)
    if not word.isascii() or word in LIGHT:
        return word
    stem = _stem(word)
    return _CLASS_OF_STEM.get(stem, stem)


def _plain_number(word: str) -> str:
    """Without the leading zero of a day or an hour, empty decimals or minutes; the hours of a day from 0 to 24."""
    hour, *rest = word.split(MINUTES)
    if rest and rest[-1] in _HALVES_OF_DAY and 1 <= int(hour) <= 12:
        word = MINUTES.join([str(int(hour) % 12 + _HALVES_OF_DAY[rest.pop()]), *rest])
    whole, mark, minutes = word.partition(MINUTES)
    if mark:
        word = whole if minutes == "00" else word
    elif DECIMAL in word:
        word = word.rstrip("0").rstrip(DECIMAL)
    return word[1:] if word[0] == "0" and word[1:2].isdigit() and len(whole) == 2 else word


def _stem(word: str) -> str:
    """Without the commonest endings of English; the same for all forms of a word, and of use for nothing else."""
    stem = word
    if word.endswith(("ies", "ied")):
        stem = word[:-3] + "y"
    elif word.endswith("ing"):
        stem = word[:-3]
    elif word.endswith("ed"):
        stem = word[:-2]
    elif word.endswith("s") and word[-2:-1] not in "asui":
        stem = word[:-1]
    stem = stem.rstrip("e")
    if stem[-2:-1] == stem[-1:]:
        stem = stem[:-1]
    return stem if len(stem) > 2 and not set("aeiouy").isdisjoint(stem) else word


_CLASS_OF_STEM = {
    stem: name
    for word, name in CLASSES.items()
    for stem in (_stem(word),)
    if len(word) > 3 and any(CLASSES.get(base) == name for base in (stem, stem + "e", stem + stem[-1]))
}
"""So that a class need not list every form of its words: that of «pay» has «paying», that of «called» not «call»."""


def is_digits(word: str) -> bool:
    """Whether the word begins with a digit: a number, a time of day."""
    return word[0].isdigit()


@lru_cache(maxsize=1 << 16)
def is_number(word: str) -> bool:
    """Whether the word is a number, in digits or spelled out.

    >>> is_number("7"), is_number("seven"), is_number("even")
    (True, True, False)
    """
    return class_of(word)[0].isdigit()


def same_moment(a: str, b: str) -> bool:
    """Whether two numbers are a time of day, written with and without a colon.

    >>> same_moment("7¦20", "720"), same_moment("640", "64")
    (True, False)
    """
    return (MINUTES in a) != (MINUTES in b) and a.replace(MINUTES, "").lstrip("0") == b.replace(
        MINUTES, ""
    ).lstrip("0")
