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
_MASKED = frozenset("*•·.xX-_?")
"""Characters of which a masked secret consists: "xxxx-xxxx"."""


_SIGN = re.compile(r"[!@#$%^&*+=~?|\\_]")
_MIN_MIXED_CHARS = 4
"""Fewest characters of a mixed value."""
_MIN_STRONG_CHARS = 6
"""Fewest characters of a strong value."""

_SEGMENT = re.compile(r"[A-Za-z0-9]{5,}")
"""Segment of a value between signs."""
_CHANGE = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])")
"""Character before a change between small letters, capitals and digits."""
_RARE_SIGNS = frozenset("!@#$%^&*()+=~?|")
_MIN_MIXED = 0.6
"""Least share of the characters in segments with letters and digits; segments of names are words or numbers."""

_MIN_CHANGES, _MIN_CHANGES_OF_LONG = 0.15, 0.25
"""Least number of changes per character, and that of a long value without such segments. Random text has 0.3 to 0.5,
words have less than 0.1."""

WIDE_STOPS = r"\u3001\u3002\u300c\u300d\u3010\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
"""Punctuation of Chinese and Japanese, which ends a value without a blank; for a class of a pattern."""

_LONG = 20
"""Fewest characters of a long value."""
_MIN_DRAWN_CHARS = 8
"""Fewest characters of a value that looks drawn at random."""
_MIN_PHRASE_WORDS = 4
"""Fewest words of a phrase that another text hardly has by chance."""
_MIN_NUMBER_DIGITS = 9
"""Fewest digits of a number that another text hardly has by chance; eight digits may be a date."""

_MIN_ENTROPY_OF_TOKEN = 2.8
"""Least entropy of a token, in bits per character."""


def is_placeholder(value: str) -> bool:
    """Return True if a value is a placeholder or an example in the place of a secret.

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
    """Return True if the value that ends at a place is followed by an ellipsis: "sk-ant-api03-qY...".

    >>> is_elided("key `sk-ant-qY`... of Ada", 14), is_elided("it is hunter2.", 13)
    (True, False)
    """
    return text.startswith(("...", "…", "`...", "`…"), end)


def closes_code(text: str, place: int) -> bool:
    """Return True if a backtick closes code that began on its line, so that it does not open a quotation.

    >>> text = "`PASSWORD=` and `gog auth list`"
    >>> [closes_code(text, place) for place, letter in enumerate(text) if letter == "`"]
    [False, True, False, True]
    """
    return text[place] == "`" and text.count("`", text.rfind("\n", 0, place) + 1, place) % 2 == 1


def is_function_word(word: str) -> bool:
    """Return True for a function word, such as an article or a pronoun.

    >>> is_function_word("every"), is_function_word("horse")
    (True, False)
    """
    return word.lower() in _FUNCTION_WORDS


def is_plain(word: str) -> bool:
    """Return True if a word describes a password and is none, by a list of words and endings.

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
    """Return True if a value is no placeholder, masked secret, plain word, address, path or variable."""
    return not (
        _MASKED.issuperset(value)
        or is_placeholder(value)
        or is_plain(value)
        or _PATTERN["no_value"].match(value)
    )


def is_published(value: str, around: str) -> bool:
    """Return True if the words around a value call it a default or an example; or a trial, if it does not look drawn.

    >>> is_published("123456", "the default login is admin/123456"), is_published("Blue$kies1", "login ada/Blue$kies1")
    (True, False)
    """
    is_on_trial = _PATTERN["on_trial"].search(around) is not None and not looks_drawn(value)
    return is_on_trial or _PATTERN["published"].search(around) is not None


def is_public_address(value: str) -> bool:
    """Return True if a value is the address of an account on a blockchain, which is no secret.

    >>> is_public_address("7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU"), is_public_address("tG7kQ2xVb9LmZ4pR")
    (True, False)
    """
    return _PATTERN["public_address"].fullmatch(value) is not None


def is_amount(value: str) -> bool:
    """Return True if a value is a number with a unit or an ending: "128GB", "12th".

    >>> is_amount("128GB"), is_amount("R2D2")
    (True, False)
    """
    return _PATTERN["amount"].fullmatch(value) is not None


def is_mixed(value: str) -> bool:
    """Return True if a value has letters with digits or signs, and is no amount."""
    if len(value) < _MIN_MIXED_CHARS or is_amount(value) or not any(map(str.isalpha, value)):
        return False
    return any(map(str.isdecimal, value)) or _SIGN.search(value.strip("*_~").rstrip("!?*_~).:")) is not None


def is_strong(value: str) -> bool:
    """Return True if a value may be a password and has six or more characters, letters with digits or signs.

    >>> is_strong("hunter2"), is_strong("Rechnung!0815"), is_strong("hunter"), is_strong("12th")
    (True, True, False, False)
    """
    return len(value) >= _MIN_STRONG_CHARS and is_mixed(value) and may_be_password(value)


def is_identifier(value: str) -> bool:
    """Return True if a value looks like an identifier: words joined by dots, underscores, hyphens or slashes.

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
    """Return True if a value looks drawn at random, so that it is no word, name or number in any text.

    >>> [looks_drawn(value) for value in ("~lmlyD2zM*9", "Xk%9wQe!mvSG42", "hunter2boat", "v2.23.14-rc1")]
    [True, True, False, False]
    """
    if (
        len(value) < _MIN_DRAWN_CHARS
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
    """Return True if another occurrence of a secret is the same secret: it is no word, short number or date.

    >>> [is_distinctive(value) for value in ("blau77hd", "83920174650182", "4711", "sunflower", "20261123")]
    [True, True, False, False, False]
    """
    words = value.split()
    if len(words) > 1:
        return len(words) >= _MIN_PHRASE_WORDS or any(map(is_distinctive, words))
    if value.isdecimal():
        return len(value) >= _MIN_NUMBER_DIGITS
    return is_strong(value) and (looks_drawn(value) or is_random(value) or not names_a_thing(value))


def is_token(value: str) -> bool:
    """Return True if a token with a maker's beginning is drawn at random, and is not made of words.

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

    The result is unreliable for fewer than ten characters.

    Parameters
    ----------
    value : str
    min_entropy : float
        Least entropy, in bits per character.

    >>> is_random("tG7kQ2xVb9LmZ4pR"), is_random("timetable-diff-2021"), is_random("getUserProfileById")
    (True, False, False)
    """
    n = len(value)
    mixed = [part for part in _SEGMENT.findall(value) if not part.isalpha() and not part.isdecimal()]
    n_changes = sum(len(_CHANGE.findall(part)) for part in mixed)
    has_mixed_segments = sum(map(len, mixed)) >= _MIN_MIXED * n and n_changes >= _MIN_CHANGES * n
    has_all_kinds = all(any(map(kind, value)) for kind in (str.islower, str.isupper, str.isdecimal))
    changes_often = has_all_kinds and n >= _LONG and len(_CHANGE.findall(value)) >= _MIN_CHANGES_OF_LONG * n
    has_rare_signs = n >= 16 and len(set(value) & _RARE_SIGNS) >= 3 and any(map(str.isdecimal, value))
    return (has_mixed_segments or changes_often or has_rare_signs) and entropy(value) >= min_entropy


def entropy(value: str) -> float:
    """Return the entropy of the characters of a value, in bits per character.

    >>> entropy("aaaa"), entropy("abcd")
    (0.0, 2.0)
    """
    n = len(value)
    return sum(count / n * log2(n / count) for count in Counter(value).values())
