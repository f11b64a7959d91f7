"""When two words are the same word: inflections, abbreviations, spellings of a number, typing errors.

A typing error makes a word that hardly any text has out of one that others have; two words that both stand in
several texts are two words, however close («Marta», «Maria»).
"""

from __future__ import annotations

from functools import lru_cache

from rapidfuzz.distance import OSA

from memframe.audit.lexicon import CALENDAR, CLASSES, DECIMAL, LIGHT, MINUTES, MONTHS, NEGATIONS

_KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_DENYING_PREFIXES = frozenset({"un", "in", "im", "il", "ir", "dis", "non", "mis", "a", "de", "anti"})
_OPPOSITE_PREFIXES = (
    ("hyper", "hypo"),
    ("pre", "post"),
    ("inter", "intra"),
    ("macro", "micro"),
    ("over", "under"),
    ("in", "out"),
    ("in", "de"),
    ("in", "ex"),
    ("im", "ex"),
    ("en", "de"),
    ("up", "down"),
)
_PLACE_OF_KEY = {key: (row, at) for row, keys in enumerate(_KEYBOARD) for at, key in enumerate(keys)}


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
    """Without the leading zero of a day or an hour, without empty decimals or minutes."""
    whole, mark, rest = word.partition(MINUTES)
    if mark:
        word = whole if rest == "00" else word
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


def is_number(word: str) -> bool:
    """Whether the word begins with a digit: a number, a time of day."""
    return word[0].isdigit()


def same_moment(a: str, b: str) -> bool:
    """Whether a month or a time of day is written as a number in one of two texts.

    >>> same_moment("june", "06"), same_moment("7¦20", "720"), same_moment("640", "64")
    (True, True, False)
    """
    if is_number(a) and is_number(b):
        return (MINUTES in a) != (MINUTES in b) and a.replace(MINUTES, "").lstrip("0") == b.replace(
            MINUTES, ""
        ).lstrip("0")
    month, number = (a, b) if is_number(b) else (b, a)
    return month in MONTHS and number.lstrip("0") == str(MONTHS[month])


def is_slip(a: str, n_a: int, b: str, n_b: int) -> bool:
    """Whether one word is the other with a typing error, given how often each of them stands in the store.

    >>> is_slip("bokoed", 1, "booked", 12), is_slip("marta", 31, "maria", 40), is_slip("possible", 9, "impossible", 1)
    (True, False, False)
    """
    if n_a > n_b or (n_a == n_b and a in LIGHT):
        a, n_a, b, n_b = b, n_b, a, n_a
    if n_a > 1 + n_b // 20 or abs(len(a) - len(b)) > 2 or not (a + b).isalpha() or _are_two_words(a, b):
        return False
    longer = max(len(a), len(b))
    distance = OSA.distance(a, b, score_cutoff=2)
    if distance > (2 if longer >= 8 and a[0] == b[0] else 1):
        return False
    known = n_b > 2 * n_a
    return (known and longer >= 6) or ((known or longer >= 6) and _likely_slip(a, b))


def _are_two_words(a: str, b: str) -> bool:
    """Whether two words, the rarer first, are never each other's slip: numbers, days, denials, opposites."""
    if a in LIGHT or a in NEGATIONS or a in CALENDAR or (b in NEGATIONS and len(b) < 5):
        return True
    if is_number(class_of(a)) and is_number(class_of(b)):
        return True
    shorter, longer = sorted((a, b), key=len)
    prefix = longer[: len(longer) - len(shorter)]
    if longer.endswith(shorter) and prefix in _DENYING_PREFIXES and not shorter.startswith(prefix):
        return True
    return any(
        a.startswith(one) and b.startswith(other) and a[len(one) :] == b[len(other) :]
        for pair in _OPPOSITE_PREFIXES
        for one, other in (pair, pair[::-1])
    )


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
