"""Echoes: which other memory already says all that a text says."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from memframe.audit.language.vocabulary import read_vocabulary

_WORDS = read_vocabulary(__package__, "machine_words.txt")
_EMPTY = _WORDS["recital"] | _WORDS["recited"] | _WORDS["light"]
_WORD = re.compile(r"[^\W_]+")


def words_told(text: str) -> frozenset[str]:
    """Words of a text that tell something, without endings of the plural and of verbs.

    >>> sorted(words_told("The assistant remembers that the user likes window seats"))
    ['like', 'seat', 'window']
    """
    words = frozenset(_WORD.findall(text.casefold())) - _EMPTY
    return frozenset(map(_without_ending, words)) - {""}


def _without_ending(word: str) -> str:
    return word.removesuffix("s")


def tellers(told: Mapping[int, frozenset[str]], others: Sequence[tuple[int, str]]) -> dict[int, int]:
    """For rows whose words some other text holds all of: the row of the first such text.

    Parameters
    ----------
    told : mapping of row to words
        What to look for; rows of which nothing is told are left out.
    others : sequence of (row, text)
        Where to look, in order.
    """
    wanted = frozenset[str]().union(*told.values())
    forms = wanted.union(f"{word}s" for word in wanted) - _EMPTY
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for row, text in others if wanted else ():
        said = forms.intersection(_WORD.findall(text.casefold()))
        for word in wanted.intersection(map(_without_ending, said)):
            holders[word].append(row)
    found = {}
    for row, words in told.items():
        counts = Counter(holder for word in words for holder in holders[word])
        full = [holder for holder, n in counts.items() if n == len(words)]
        if words and full:
            found[row] = full[0]
    return found
