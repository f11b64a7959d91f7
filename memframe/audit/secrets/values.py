"""Classify values as secrets by their characters alone: drawn at random, strong as a password, or a plain word."""

from __future__ import annotations

import re
from collections import Counter
from math import log2

from memframe.audit.rules import load_rules, load_words

_WORDS = load_words("secrets")
_PATTERN = {rule.group: rule.regex for rule in load_rules("secret_values").rules}
_FUNCTION_WORDS = _WORDS["function"] | _WORDS["elsewhere"]
_PLAIN_WORDS = frozenset().union(*(words for name, words in _WORDS.items() if name != "placeholders"))

_PLACEHOLDER_OPENINGS = ("<", "{", "[", "${", "$(", "%(", "@{")
_HIDDEN = frozenset("*•·.xX-_?")


_SIGN = re.compile(r"[!@#$%^&*+=~?|\\_]")
_SHORTEST_MIXED, _SHORTEST_STRONG = 4, 6

_SEGMENT = re.compile(r"[A-Za-z0-9]{5,}")
_CHANGE = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])")
_RARE_SIGNS = frozenset("!@#$%^&*()+=~?|")
_MIN_MIXED = 0.6
"""Share of characters in stretches of letters with digits; names of things have words of their own between signs."""

_MIN_CHANGES, _MIN_CHANGES_OF_LONG = 0.15, 0.25
"""Changes a character between small letters, capitals and digits: 0.3 to 0.5 in random text, less than 0.1 in words."""

WIDE_STOPS = r"\u3001\u3002\u300c\u300d\u3010\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
"""Punctuation of Chinese and Japanese, which ends a value without a space; within a class of characters."""

_LONG = 20
_SHORTEST_DRAWN = 8
_SHORTEST_PHRASE, _SHORTEST_NUMBER = 4, 9
"""Words, and digits, from which on nothing else reads the same by chance; eight digits may be a day."""

_MIN_ENTROPY_OF_TOKEN = 2.8


def is_placeholder(value: str) -> bool:
    """Return True if a value stands where a secret should be and is none.

    >>> is_placeholder("<your-api-key>"), is_placeholder("AKIAIOSFODNN7EXAMPLE"), is_placeholder("q7Rk0pVw")
    (True, True, False)
    """
    small = value.lower()
    return (
        small.startswith(_PLACEHOLDER_OPENINGS)
        or small in _WORDS["placeholders"]
        or _PATTERN["placeholder"].search(small) is not None
        or _PATTERN["public_key"].match(small) is not None
    )


def is_elided(text: str, end: int) -> bool:
    """Return True if a text shows only the beginning of what ends at a place: "sk-ant-api03-qY...".

    >>> is_elided("key `sk-ant-qY`... of Ada", 14), is_elided("it is hunter2.", 13)
    (True, False)
    """
    return text.startswith(("...", "…", "`...", "`…"), end)


def closes_code(text: str, place: int) -> bool:
    """Return True if a backtick ends a piece of code that began on its line, so that it quotes nothing behind it.

    >>> text = "`PASSWORD=` and `gog auth list`"
    >>> [closes_code(text, place) for place, letter in enumerate(text) if letter == "`"]
    [False, True, False, True]
    """
    return text[place] == "`" and text.count("`", text.rfind("\n", 0, place) + 1, place) % 2 == 1


def is_function_word(word: str) -> bool:
    """Return True if a word only holds a sentence together.

    >>> is_function_word("every"), is_function_word("horse")
    (True, False)
    """
    return word.lower() in _FUNCTION_WORDS


def is_plain(word: str) -> bool:
    """Return True if a word describes passwords and is none: a closed class, most with an ending of their own.

    >>> [is_plain(word) for word in ("expired", "on", "top-secret", "Bitwarden", "swordfish", "x7!king")]
    [True, True, True, True, False, False]
    """
    word = word.lower()
    return (
        word in _PLAIN_WORDS
        or word.rpartition("-")[2] in _PLAIN_WORDS
        or _PATTERN["plain_ending"].fullmatch(word) is not None
    )


def may_be_password(value: str) -> bool:
    """Return True if nothing speaks against a value: no placeholder, plain word, address, path or variable."""
    return not (
        _HIDDEN.issuperset(value)
        or is_placeholder(value)
        or is_plain(value)
        or _PATTERN["no_value"].match(value)
    )


def is_published(value: str, around: str) -> bool:
    """Return True if the words around a value call it a default, an example or, if it is not drawn, a trial.

    >>> is_published("123456", "the default login is admin/123456"), is_published("Blue$kies1", "login ada/Blue$kies1")
    (True, False)
    """
    is_on_trial = _PATTERN["on_trial"].search(around) is not None and not looks_drawn(value)
    return is_on_trial or _PATTERN["published"].search(around) is not None


def is_public_address(value: str) -> bool:
    """Return True if a value is the address of an account on a blockchain, which everybody may know.

    >>> is_public_address("7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU"), is_public_address("tG7kQ2xVb9LmZ4pR")
    (True, False)
    """
    return _PATTERN["public_address"].fullmatch(value) is not None


def is_amount(value: str) -> bool:
    """Return True if a value is a number of something: "128GB", "12th".

    >>> is_amount("128GB"), is_amount("R2D2")
    (True, False)
    """
    return _PATTERN["amount"].fullmatch(value) is not None


def is_mixed(value: str) -> bool:
    """Return True if letters come with digits or signs, and are no amount."""
    if len(value) < _SHORTEST_MIXED or is_amount(value) or not any(map(str.isalpha, value)):
        return False
    return any(map(str.isdecimal, value)) or _SIGN.search(value.strip("*_~").rstrip("!?*_~).:")) is not None


def is_strong(value: str) -> bool:
    """Return True if a value can hardly be anything but a password: letters with digits or signs, six and more.

    >>> is_strong("hunter2"), is_strong("Rechnung!0815"), is_strong("hunter"), is_strong("12th")
    (True, True, False, False)
    """
    return len(value) >= _SHORTEST_STRONG and is_mixed(value) and may_be_password(value)


def is_identifier(value: str) -> bool:
    """Return True if a value looks like a name of a program: words joined by dots, low lines, hyphens or slashes.

    >>> is_identifier("state.server?.settings"), is_identifier("Corporate_Wireless"), is_identifier("plumTree_77")
    (True, True, False)
    """
    return _PATTERN["identifier"].fullmatch(value) is not None


def names_a_thing(value: str) -> bool:
    """Return True if a value with digits or signs is an address, amount, standard, model, file or field.

    >>> [names_a_thing(value) for value in ("src/a.py", "4096-QAM", "+airport+gift", "Rechnung!0815")]
    [True, True, True, False]
    """
    return _PATTERN["thing"].fullmatch(value) is not None


def looks_drawn(value: str) -> bool:
    """Return True if a value can hardly be a word, a name or a number of anything, whatever stands beside it.

    >>> [looks_drawn(value) for value in ("~lmlyD2zM*9", "Xk%9wQe!mvSG42", "hunter2boat", "v2.23.14-rc1")]
    [True, True, False, False]
    """
    if (
        len(value) < _SHORTEST_DRAWN
        or is_identifier(value)
        or names_a_thing(value)
        or not may_be_password(value)
    ):
        return False
    n_kinds = sum(
        any(map(kind, value)) for kind in (str.islower, str.isupper, str.isdecimal, _RARE_SIGNS.__contains__)
    )
    return n_kinds == 4 or (is_random(value) and (n_kinds == 3 or len(value) >= _LONG))


def is_distinctive(value: str) -> bool:
    """Return True if a value that stands elsewhere is the same secret: no word, no short number, no date.

    >>> [is_distinctive(value) for value in ("blau77hd", "83920174650182", "4711", "sunflower", "20261123")]
    [True, True, False, False, False]
    """
    words = value.split()
    if len(words) > 1:
        return len(words) >= _SHORTEST_PHRASE or any(map(is_distinctive, words))
    if value.isdecimal():
        return len(value) >= _SHORTEST_NUMBER
    return is_strong(value) and (looks_drawn(value) or is_random(value) or not names_a_thing(value))


def is_token(value: str) -> bool:
    """Return True if a token with a maker's beginning goes on as drawn ones do, and not in words.

    >>> is_token("sk-proj-your-project-key"), is_token("sk-proj-4Jt0wZkQ9aB2x7")
    (False, True)
    """
    segments = re.split(r"[^A-Za-z0-9]+", value)
    n_in_words = sum(len(segment) for segment in segments if segment.islower() and segment.isalpha())
    return (
        n_in_words <= len(value) / 2 and entropy(value) >= _MIN_ENTROPY_OF_TOKEN and not is_placeholder(value)
    )


def is_random(value: str, *, min_entropy: float = 3.0) -> bool:
    """Return True if the characters of a value look drawn at random: varied, mixed, and with digits among them.

    Parameters
    ----------
    value : str
        Of any length; below ten characters nothing looks random for sure.
    min_entropy : float
        Bits a character.

    >>> is_random("tG7kQ2xVb9LmZ4pR"), is_random("timetable-diff-2021"), is_random("getUserProfileById")
    (True, False, False)
    """
    n = len(value)
    mixed = [part for part in _SEGMENT.findall(value) if not part.isalpha() and not part.isdecimal()]
    n_changes = sum(len(_CHANGE.findall(part)) for part in mixed)
    is_even = sum(map(len, mixed)) >= _MIN_MIXED * n and n_changes >= _MIN_CHANGES * n
    has_all = all(any(map(kind, value)) for kind in (str.islower, str.isupper, str.isdecimal))
    is_restless = has_all and n >= _LONG and len(_CHANGE.findall(value)) >= _MIN_CHANGES_OF_LONG * n
    is_strewn = n >= 16 and len(set(value) & _RARE_SIGNS) >= 3 and any(map(str.isdecimal, value))
    return (is_even or is_restless or is_strewn) and entropy(value) >= min_entropy


def entropy(value: str) -> float:
    """Count bits a character, by how often each occurs.

    >>> entropy("aaaa"), entropy("abcd")
    (0.0, 2.0)
    """
    n = len(value)
    return sum(count / n * log2(n / count) for count in Counter(value).values())
