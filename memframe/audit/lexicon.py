"""Lexicon: which words carry a value, which say the same or the opposite, and which are another one mistyped.

The words themselves are in ``rules/lexicon.txt`` and ``rules/known_words.txt``; those lists are short on purpose, and
everything that is in none of them is taken for a word that carries a value.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from itertools import combinations, permutations

from rapidfuzz.distance import OSA

from memframe.audit.rules import load_fragment, load_words

DECIMAL, MINUTES, MONTH = "·", "¦", "¤"
"""Stand in words for the point of a decimal, the colon of a time of day, and before the number of a month."""


def without_accents(word: str) -> str:
    """Return a word without the marks on its letters."""
    if word.isascii():
        return word
    letters = unicodedata.normalize("NFKD", word)
    return "".join(letter for letter in letters if not unicodedata.combining(letter)) or word


_SECTIONS = load_words("lexicon")


def _groups(*sections: str) -> list[list[str]]:
    return [group.split("/") for section in sections for group in sorted(_SECTIONS[section])]


def _numbered(fragment: str, n: int) -> dict[str, int]:
    """Number names that are listed in order, language after language, from 0 on."""
    return {without_accents(name): place % n for place, name in enumerate(load_fragment(fragment))}


MONTHS, WEEKDAYS = _numbered("month_names", 12), _numbered("weekday_names", 7)
"""Names of months and days of the week, by their numbers from 0 on."""

NEGATIONS = _SECTIONS["negations"]
EMPTY = _SECTIONS["empty"] - NEGATIONS
"""Words that add nothing: they may be missing, or stand for each other."""
WEAK = _SECTIONS["weak"] - NEGATIONS
"""Words that may be missing, but not stand for each other."""
STRONG = _SECTIONS["strong"] - NEGATIONS
"""Words that carry no value, and change what is said."""
LIGHT = EMPTY | WEAK | STRONG
"""Words that carry no value by themselves."""
QUALIFYING = _SECTIONS["qualifying"]
"""Words that may be missing in a copy, of which a merge loses none: they say how sure or how lasting something is."""
UNITS = frozenset(word for group in _groups("units") for word in group)
CALENDAR = frozenset([*MONTHS, *WEEKDAYS])
TIMES = CALENDAR | _SECTIONS["times"]
"""Words of which another one means another time."""

_ALIKE = {word: group[0] for group in _groups("alike") for word in group}

CLASSES: Mapping[str, str] = {
    **{word: f"={group[0]}" for group in _groups("units", "same") for word in group},
    **{word: f"=month{number}" for word, number in MONTHS.items()},
    **{word: f"=day{number}" for word, number in WEEKDAYS.items()},
    **{f"{MONTH}{n + 1:{width}}": f"=month{n}" for n in range(12) for width in ("", "02")},
    **{word: group[0] for group in _groups("numbers") for word in group},
    **dict.fromkeys(NEGATIONS, "=not"),
}
"""Words that say the same, by the name of what they say."""

# ---- what says the same


@lru_cache(maxsize=1 << 16)
def class_of(word: str) -> str:
    """Return the name of all words that say the same as this one; a past is another word than its present.

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
    return _stem(word)


_HALVES_OF_DAY = {"am": 0, "pm": 12}


def _plain_number(word: str) -> str:
    """Drop the leading zero of a day or an hour, empty decimals and minutes; count the hours of a day from 0 to 24."""
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
    """Take the endings of the English present away; the same for all of its forms, and of use for nothing else."""
    stem = word
    if word.endswith("ies"):
        stem = word[:-3] + "y"
    elif word.endswith("ing"):
        stem = word[:-3]
    elif word.endswith("s") and word[-2:-1] not in "asui":
        stem = word[:-1]
    if not stem.endswith("te") or is_common(stem):  # «wohnte» is not «wohnt»
        stem = stem.rstrip("e")
    if stem[-2:-1] == stem[-1:]:
        stem = stem[:-1]
    return stem if len(stem) > 2 and not set("aeiouy").isdisjoint(stem) else word


@lru_cache(maxsize=1 << 16)
def is_number(word: str) -> bool:
    """Return True if a word is a number, in digits or spelled out.

    >>> is_number("7"), is_number("seven"), is_number("even")
    (True, True, False)
    """
    return class_of(word)[0].isdigit()


def is_date(word: str) -> bool:
    """Return True if a word is a time of the calendar or the day."""
    return word in TIMES or word[0] == MONTH or MINUTES in word


def weak_name(word: str) -> str:
    """Return the name of the weak words that may stand for this one: «I», «my», «user»."""
    return _ALIKE.get(word, word)


# ---- what is right as it is written


@lru_cache(maxsize=1 << 16)
def is_known(word: str) -> bool:
    """Return True if a word is right as it is written, whatever a store says.

    >>> is_known("daniela"), is_known("walking"), is_known("danielo"), is_known("wlaking")
    (True, True, False, False)
    """
    is_form = any(word.endswith(end) and word.removesuffix(end) in _known_words()[1] for end in ("ed", "ing"))
    return is_name(word) or is_common(word) or is_common(word.removesuffix("s")) or is_form


def is_name(word: str) -> bool:
    """Return True if a word is a name of a person or a place."""
    return word in load_words("known_words")["names"] or is_place(word)


def is_place(word: str) -> bool:
    """Return True if a word is a name of a place."""
    return word in load_words("known_words")["places"]


def is_common(word: str) -> bool:
    """Return True if a word is a common one, in just this form."""
    return word in _known_words()[0]


@cache
def _known_words() -> tuple[frozenset[str], frozenset[str]]:
    """Return the common words, and those to which «ed» and «ing» may be added.

    Two thousand common ones are those that people write seed phrases with.
    """
    bases = files("memframe.audit").joinpath("rules", "seed_words.txt").read_text("ascii").split()
    verbs = frozenset(word.removesuffix("e") if len(word) > 4 else word for word in bases)
    return load_words("known_words")["words"].union(LIGHT, CLASSES, bases), verbs


TOPICS = {class_of(word): f"@{topic}" for topic, *words in _groups("topics") for word in words}
"""Topics of which people have one at a time, by the words that speak of them: who moved to Ghent lives there."""

# ---- opposites


def are_opposed(a: str, b: str) -> bool:
    """Return True if two words say the opposite of each other.

    >>> are_opposed("loves", "hates"), are_opposed("happy", "unhappy"), are_opposed("import", "export")
    (True, True, True)
    """
    return _opposed_name(b) in _opposed().get(_opposed_name(a), ()) or (
        a[-3:] == b[-3:] and _begin_opposed(a, b)
    )


def _begin_opposed(a: str, b: str) -> bool:
    shorter, longer = sorted((a, b), key=len)
    if len(shorter) < 4 or shorter in LIGHT:
        return False
    prefix = longer.removesuffix(shorter)
    if prefix in _SECTIONS["denying_prefixes"] and not shorter.startswith(prefix):
        return True
    return any(
        a.startswith(one) and b.startswith(other) and a[len(one) :] == b[len(other) :]
        for group in _groups("opposed_prefixes")
        for one, other in permutations(group, 2)
    )


@lru_cache(maxsize=1 << 16)
def _opposed_name(word: str) -> str:
    """Name all forms of a word, so that all have its opposites; not so light words and denials, whose form counts."""
    return word if word in LIGHT or word in NEGATIONS else class_of(word)


@cache
def _opposed() -> Mapping[str, Collection[str]]:
    opposed: dict[str, set[str]] = defaultdict(set)
    for one, other in (pair for group in _groups("opposites") for pair in combinations(group, 2)):
        opposed[_opposed_name(one)].add(_opposed_name(other))
        opposed[_opposed_name(other)].add(_opposed_name(one))
    return opposed


# ---- typing errors

_LETTERS_FOR_TWO = 8
"""Fewest letters of a word that may have two typing errors."""
_PLACE_OF_KEY = {
    key: (row, at)
    for row, keys in enumerate(("qwertyuiop", "asdfghjkl", "zxcvbnm"))
    for at, key in enumerate(keys)
}


def is_slip(a: str, n_a: int, b: str, n_b: int, *, careless: bool = False) -> bool:
    """Return True if one word is the other with a typing error, given how often each stands in the store.

    A typing error makes a word that hardly any text has out of one that others have, or that is known to be right.
    Two words that both stand in several texts, or that are both known, are two words, however close.

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
    may_be_two = known and not careless and a[0] == b[0] and longer >= _LETTERS_FOR_TWO
    if OSA.distance(a, b, score_cutoff=2) > (2 if may_be_two else 1):
        return False
    if known and (longer >= 6 or (longer > 3 and is_common(b))):
        return True
    if longer >= 8 and a[-1] == b[-1]:
        return True
    return (known or longer >= 8 or (longer >= 6 and a[0] == b[0])) and _likely_slip(a, b)


def _are_two_words(a: str, b: str) -> bool:
    """Return True if two words, the rarer first, are never each other's slip."""
    if a in LIGHT or a in NEGATIONS or a in CALENDAR or (b in NEGATIONS and len(b) < 5):
        return True
    if a[:-1] == b[:-1] and {a[-1], b[-1]} == {"o", "a"}:
        return True  # «hijo», «hija»
    if {a, b} == {a.rstrip("e"), a.rstrip("e") + "e"} and a.rstrip("e").endswith("t"):
        return True  # «wohnt», «wohnte»
    return (is_number(a) and is_number(b)) or are_opposed(a, b)


def _likely_slip(a: str, b: str) -> bool:
    """Return True if short words differ by letters left out, doubled or swapped, or by a neighbouring key."""
    if len(a) != len(b) or sorted(a) == sorted(b):
        return max(len(a), len(b)) > 2
    if len(a) < 4 or not all(x == y or {x, y} <= _PLACE_OF_KEY.keys() for x, y in zip(a, b, strict=True)):
        return False
    keys = [(_PLACE_OF_KEY[x], _PLACE_OF_KEY[y]) for x, y in zip(a, b, strict=True) if x != y]
    return all(
        abs(row - other_row) <= 1 and abs(at - other_at) <= 1 for (row, at), (other_row, other_at) in keys
    )
