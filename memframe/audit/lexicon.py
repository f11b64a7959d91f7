"""Lexicon: words that carry a value, words of the same and of opposite meaning, and typing errors.

The words are in ``rules/lexicon.txt`` and ``rules/known_words.txt``. These lists are short, because every word that is
in none of them counts as one that carries a value.
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
"""Marks within normalized words: for a decimal point, for the colon of a time of day, before the number of a month."""


def without_accents(word: str) -> str:
    """Return a word without the marks on its letters."""
    if word.isascii():
        return word
    letters = unicodedata.normalize("NFKD", word)
    return "".join(letter for letter in letters if not unicodedata.combining(letter)) or word


_SECTIONS = load_words("lexicon")


def _groups(*sections: str) -> list[list[str]]:
    return [group.split("/") for section in sections for group in sorted(_SECTIONS[section])]


def _number_names(fragment: str, n: int) -> dict[str, int]:
    """Number names from 0; they are listed in order, language after language, `n` of each."""
    return {without_accents(name): place % n for place, name in enumerate(load_fragment(fragment))}


MONTHS, WEEKDAYS = _number_names("month_names", 12), _number_names("weekday_names", 7)
"""Numbers of months and days of the week, from 0, by name."""

NEGATIONS = _SECTIONS["negations"]
EMPTY = _SECTIONS["empty"] - NEGATIONS
"""Words without a meaning of their own: a copy may lack one, or have another one in its place."""
WEAK = _SECTIONS["weak"] - NEGATIONS
"""Words that a copy may lack, but not exchange for another one."""
STRONG = _SECTIONS["strong"] - NEGATIONS
"""Words that carry no value, but change the meaning of a sentence: a copy may neither lack nor exchange one."""
LIGHT = EMPTY | WEAK | STRONG
"""Words that carry no value by themselves."""
QUALIFYING = _SECTIONS["qualifying"]
"""Words for how sure or how lasting something is: near-duplicates may differ in them, but no merge drops one."""
UNITS = frozenset(word for group in _groups("units") for word in group)
CALENDAR = frozenset([*MONTHS, *WEEKDAYS])
"""Names of months and days of the week."""
TIMES = CALENDAR | _SECTIONS["times"]
"""Words that name a time, so that exchanging one changes the time."""

_ALIKE = {word: group[0] for group in _groups("alike") for word in group}

CLASSES: Mapping[str, str] = {
    **{word: f"={group[0]}" for group in _groups("units", "same") for word in group},
    **{word: f"=month{number}" for word, number in MONTHS.items()},
    **{word: f"=day{number}" for word, number in WEEKDAYS.items()},
    **{f"{MONTH}{n + 1:{width}}": f"=month{n}" for n in range(12) for width in ("", "02")},
    **{word: group[0] for group in _groups("numbers") for word in group},
    **dict.fromkeys(NEGATIONS, "=not"),
}
"""Class of each word that has words of the same meaning."""

# ---- words of the same meaning


@lru_cache(maxsize=1 << 16)
def class_of(word: str) -> str:
    """Return the class of a word: words of one class have the same meaning; past and present are different classes.

    >>> class_of("kilometres") == class_of("km"), class_of("working") == class_of("works"), class_of("03")
    (True, True, '3')
    """
    if (listed := CLASSES.get(word)) is not None:
        return listed
    if word[0].isdigit():
        return _plain_number(word)
    if not word.isascii() or word in LIGHT:
        return word
    return _stem(word)


_HALVES_OF_DAY = {"am": 0, "pm": 12}


def _plain_number(word: str) -> str:
    """Write a number plainly: hours from 0 to 24, without a leading zero, empty decimals and minutes."""
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
    """Cut off the endings of the English present; the result is the same for all forms, but need not be a word."""
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
    """Return the name of the weak words that may be exchanged for this one: «I», «my», «user»."""
    return _ALIKE.get(word, word)


# ---- words that are spelled right


@lru_cache(maxsize=1 << 16)
def is_known(word: str) -> bool:
    """Return True if a word is spelled right, so that it is no typing error, however rare it is in a store.

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
    """Return True if a word is a common one in this very form."""
    return word in _known_words()[0]


@cache
def _known_words() -> tuple[frozenset[str], frozenset[str]]:
    """Return the common words, and those to which «ed» and «ing» may be added.

    The 2,048 words of seed phrases are among the common ones.
    """
    bases = files("memframe.audit").joinpath("rules", "seed_words.txt").read_text("ascii").split()
    verbs = frozenset(word.removesuffix("e") if len(word) > 4 else word for word in bases)
    return load_words("known_words")["words"].union(LIGHT, CLASSES, bases), verbs


TOPICS = {class_of(word): f"@{topic}" for topic, *words in _groups("topics") for word in words}
"""Topics by word, for what people have one of at a time, such as a home: «moved to Ghent» and «lives in Ghent»."""

# ---- opposites


def are_opposed(a: str, b: str) -> bool:
    """Return True if two words are opposites.

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
    """Return the class of a word, so that all its forms have its opposites; light words and negations by their form."""
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
"""Fewest letters of a word that may have two typing errors; in a shorter one they make another word."""
_PLACE_OF_KEY = {
    key: (row, column)
    for row, keys in enumerate(("qwertyuiop", "asdfghjkl", "zxcvbnm"))
    for column, key in enumerate(keys)
}
"""Row and column of each letter on a keyboard."""


def is_slip(a: str, n_a: int, b: str, n_b: int, *, careless: bool = False) -> bool:
    """Return True if one word is the other with a typing error, given how often each occurs in the store.

    The mistyped word is rare, and the other one is frequent or known. Two words that are both frequent, or both known,
    are different words, however close.

    Parameters
    ----------
    a, n_a, b, n_b
        The words, each with the number of its occurrences.
    careless
        True if the text has other typing errors; then a known word may be one as well, unless it is a name.

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
        return False  # «Preact» is not «React», however frequent that is
    # below, shorter words need more evidence for an error, because they are close to many other words
    is_right, n_letters = n_b > 2 * n_a or is_known(b), max(len(a), len(b))
    may_have_two = is_right and not careless and a[0] == b[0] and n_letters >= _LETTERS_FOR_TWO
    if OSA.distance(a, b, score_cutoff=2) > (2 if may_have_two else 1):
        return False
    if is_right and (n_letters >= 6 or (n_letters > 3 and is_common(b))):
        return True
    if n_letters >= 8 and a[-1] == b[-1]:
        return True
    return (is_right or n_letters >= 8 or (n_letters >= 6 and a[0] == b[0])) and _is_likely_slip(a, b)


def _are_two_words(a: str, b: str) -> bool:
    """Return True if two words, the rarer first, are different words although they are close."""
    if a in LIGHT or a in NEGATIONS or a in CALENDAR or (b in NEGATIONS and len(b) < 5):
        return True
    if a[:-1] == b[:-1] and {a[-1], b[-1]} == {"o", "a"}:
        return True  # «hijo», «hija»
    if {a, b} == {a.rstrip("e"), a.rstrip("e") + "e"} and a.rstrip("e").endswith("t"):
        return True  # «wohnt», «wohnte»
    return (is_number(a) and is_number(b)) or are_opposed(a, b)


def _is_likely_slip(a: str, b: str) -> bool:
    """Return True if two words differ by a letter more or less, by swapped letters, or by a neighbouring key."""
    if len(a) != len(b) or sorted(a) == sorted(b):
        return max(len(a), len(b)) > 2
    if len(a) < 4 or not all(x == y or {x, y} <= _PLACE_OF_KEY.keys() for x, y in zip(a, b, strict=True)):
        return False
    keys = [(_PLACE_OF_KEY[x], _PLACE_OF_KEY[y]) for x, y in zip(a, b, strict=True) if x != y]
    return all(
        abs(row - other_row) <= 1 and abs(column - other_column) <= 1
        for (row, column), (other_row, other_column) in keys
    )
