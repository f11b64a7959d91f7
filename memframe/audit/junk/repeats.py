"""Repeats: statements that came back again and again, word for word or nearly so."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

MIN_COPIES = 5
"""Equal memories from which on repetition is no accident of a few conversations."""

TIMES_USUAL = 3
"""How many times as many copies as nearly all statements of the store have; in some stores everything comes often."""

MIN_SHARED = 0.75
"""Share of words that a variant has in common with what is repeated, of the words of both."""

_N_FIRST = 4
"""Words at the beginning by which variants find each other."""

_WORD = re.compile(r"\w+")


class Repeat(NamedTuple):
    """One memory of a statement that came back."""

    row: int
    first: int
    """Row of the oldest of the copies."""
    n_copies: int
    group: int
    is_exact: bool
    """The same text as the first, apart from blanks and a full stop: signs and capitals may carry a value."""


def find_repeats(rows: Sequence[int], texts: Sequence[str], owners: Sequence[str]) -> Iterator[Repeat]:
    """Statements with unusually many copies, which differ in case and signs at most, and their variants.

    Parameters
    ----------
    rows : sequence of int
        From the oldest memory to the newest.
    texts : sequence of str
        Of these rows.
    owners : sequence of str
        Whose memory each of them is: what different people have in common is no repeat.
    """
    # a statement is kept as one text: words of their own would take ten times the memory
    copies: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    beginnings: defaultdict[tuple[str, ...], set[tuple[str, str]]] = defaultdict(set)
    for row, text, owner in zip(rows, texts, owners, strict=True):
        words = _WORD.findall(text.casefold())
        said = owner, " ".join(words)
        copies[said].append(row)
        beginnings[owner, *words[:_N_FIRST]].add(said)
    at_least = max(MIN_COPIES, TIMES_USUAL * _usual(list(map(len, copies.values()))))
    repeated = [(said, same) for said, same in copies.items() if len(same) >= at_least and said[1]]
    taken = {said for said, _ in repeated}
    text_of = dict(zip(rows, texts, strict=True))
    for group, ((owner, text), same) in enumerate(repeated):
        plain = _plain(text_of[same[0]])
        for row in same:
            yield Repeat(row, same[0], len(same), group, is_exact=_plain(text_of[row]) == plain)
        words = text.split()
        for variant in sorted(beginnings[owner, *words[:_N_FIRST]] - taken):
            if len(words) > _N_FIRST and _share(words, variant[1].split()) >= MIN_SHARED:
                taken.add(variant)
                yield from (Repeat(row, same[0], len(same), group, is_exact=False) for row in copies[variant])


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(".")


def _usual(counts: list[int]) -> int:
    """How many copies nineteen of twenty statements have at most, that with most of them left out."""
    others = sorted(counts)[:-1]
    return others[int(0.95 * (len(others) - 1))] if others else 0


def _share(words: Iterable[str], others: Iterable[str]) -> float:
    """Share of common words; none where numbers differ, which makes another fact."""
    one, two = set(words), set(others)
    is_counted = any(map(str.isdecimal, "".join(one ^ two)))
    return 0.0 if is_counted else len(one & two) / max(1, len(one | two))
