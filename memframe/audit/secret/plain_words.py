"""Plain words: what stands after "the password is" when no password follows.

A password that somebody tells may be a word like any other, "swordfish". What tells it from "the password is
expired" is grammar: after a password the clause ends, and the words that describe passwords are a closed
class, most of them with an ending of their own.
"""

from __future__ import annotations

import re

from memframe.audit.language.vocabulary import read_vocabulary

_WORDS = read_vocabulary(__package__, "plain_words.txt")
_FUNCTION_WORDS = _WORDS["function"] | _WORDS["elsewhere"]
_ALL_WORDS = frozenset().union(*(words for name, words in _WORDS.items() if name != "placeholders"))

_ENDING = re.compile(
    r"(?:[^\W\d_]|['’-]){2,}(?:ed|ing|able|ible|less|ful|ive|ous|ly|ised|ized|ary|ory|ical|proof|bound|based|only|free|iert"
    r"|lich)"
)


def is_function(word: str) -> bool:
    """Whether a word only holds a sentence together.

    >>> is_function("every"), is_function("horse")
    (True, False)
    """
    return word.lower() in _FUNCTION_WORDS


def is_plain(word: str) -> bool:
    """Whether a word describes passwords rather than being one.

    >>> [is_plain(word) for word in ("expired", "on", "top-secret", "Bitwarden", "swordfish", "x7!king")]
    [True, True, True, True, False, False]
    """
    word = word.lower()
    last = word.rpartition("-")[2]
    return word in _ALL_WORDS or last in _ALL_WORDS or _ENDING.fullmatch(word) is not None
