"""Two texts laid side by side: where they differ, and which words of each found no equal in the other one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein, Opcode

from memframe.audit.language.lexicon import LIGHT, NEGATIONS, TIMES, USERS
from memframe.audit.language.resemblance import class_of, is_number
from memframe.audit.likeness.difference import heavy

Places = list[tuple[list[str], list[str]]]

Exchanged = tuple[tuple[str, ...], tuple[str, ...]]

_BEFORE_NOUNS = "a an the my your his her its our their der die das den dem ein eine le la les el los"
_DETERMINERS = frozenset(_BEFORE_NOUNS.split())
_JOINING = {"and", "or", "und", "oder", "et", "ou", "y", "e", "o"}


class Layout(NamedTuple):
    """Two texts laid side by side."""

    places: Places
    """Where they differ: words of the one, words of the other."""
    left: list[str]
    right: list[str]
    """The words of each that found no equal in the other one, in their order."""
    n_words: tuple[int, int]
    n_moved: int
    """How many words of the one stand somewhere else in the other."""
    common_start: int
    """How many words at the beginning are the same."""
    ends: tuple[str, str]
    """The last word of each text, if it lies in one of the places."""


def lay_out(
    a: str, b: str, tokens: NDArray[np.int32], other_tokens: NDArray[np.int32], vocabulary: Sequence[str]
) -> Layout:
    """Lay two different texts side by side, given as one character for the class of each word, and as words."""
    runs = _runs(Levenshtein.opcodes(a, b))
    places = [
        (
            [vocabulary[t] for t in tokens[start:end].tolist()],
            [vocabulary[t] for t in other_tokens[from_:to].tolist()],
        )
        for start, end, from_, to in runs
    ]
    left, right = "".join(a[run[0] : run[1]] for run in runs), "".join(b[run[2] : run[3]] for run in runs)
    before, after = ([word for place in places for word in place[side]] for side in (0, 1))
    loose = _loose(before, left, right, after)
    return Layout(
        places,
        loose,
        _loose(after, right, left, before),
        n_words=(len(a), len(b)),
        n_moved=len(before) - len(loose),
        common_start=runs[0][0],
        ends=(
            before[-1] if runs[-1][1] == len(a) and before else "",
            after[-1] if runs[-1][3] == len(b) and after else "",
        ),
    )


def _runs(opcodes: Iterable[Opcode]) -> list[tuple[int, int, int, int]]:
    """Stretches in which two texts differ: from and to in the one, from and to in the other."""
    runs: list[tuple[int, int, int, int]] = []
    for op in opcodes:
        if op.tag == "equal":
            continue
        start, other_start = op.src_start, op.dest_start
        if runs and runs[-1][1] == start and runs[-1][3] == other_start:
            start, _, other_start, _ = runs.pop()
        runs.append((start, op.src_end, other_start, op.dest_end))
    return runs


def _loose(words: Sequence[str], classes: str, others: str, other_words: Sequence[str]) -> list[str]:
    """Words, in order, of which the other side has none or not as many; first those that it has not as they are."""
    if set(classes).isdisjoint(others):
        return list(words)
    loose = Counter(classes)
    loose.subtract(others)
    chosen = set()
    for as_it_is in (False, True):
        for place in reversed(range(len(words))):
            if (
                loose[classes[place]] > 0
                and place not in chosen
                and (words[place] in other_words) == as_it_is
            ):
                loose[classes[place]] -= 1
                chosen.add(place)
    return [words[place] for place in sorted(chosen)]


def exchanged_values(a: Sequence[str], b: Sequence[str]) -> Exchanged | None:
    """Values that changed places, of two texts with the same words: all words from the first to the last of them."""
    return _exchanged_places(a, b) or _exchanged_numbers(a, b)


def _exchanged_places(a: Sequence[str], b: Sequence[str]) -> Exchanged | None:
    """Two values that changed places around words that stayed: «from Leeds to Ghent», «from Ghent to Leeds»."""
    start, end = 0, len(a)
    while start < end and a[start] == b[start]:
        start += 1
    while start < end and a[end - 1] == b[end - 1]:
        end -= 1
    before, after = list(a[start:end]), list(b[start:end])
    for n_first in (1, 2):
        for n_last in (1, 2):
            first, between, last = before[:n_first], before[n_first:-n_last], before[-n_last:]
            exchanged = between and [*last, *between, *first] == after and not set(between) <= _JOINING
            if exchanged and _is_value(first) and _is_value(last) and _is_time(first) == _is_time(last):
                return tuple(before), tuple(after)
    return None


def _is_value(words: Sequence[str]) -> bool:
    """Whether words may be a value, rather than a phrase that may stand anywhere: «since 2019», «in Graz»."""
    if len(words) == 1 and words[0] in USERS:
        return True
    return bool(heavy(words)) and (len(words) == 1 or words[0] not in LIGHT or words[0] in _DETERMINERS)


def _is_time(words: Sequence[str]) -> bool:
    return any(word in TIMES for word in words)


def in_both(words: Sequence[str], others: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of two texts that both have, by class, as often as both have them; the first ones of them."""
    shared = Counter(map(class_of, words)) & Counter(map(class_of, others))
    return _first_of(words, shared), _first_of(others, shared)


def _first_of(words: Sequence[str], shared: Mapping[str, int]) -> list[str]:
    left, kept = Counter(shared), []
    for word in words:
        name = class_of(word)
        if left[name] > 0:
            left[name] -= 1
            kept.append(word)
    return kept


def denies_another(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether of two texts with the same words one denies another word, also if it is read backwards.

    >>> denies_another("can not have wheat allergic".split(), "can have wheat not allergic".split())
    True
    """
    backwards, others_backwards = words[::-1], others[::-1]
    return _denied(words) != _denied(others) and (
        _denied(words) != _denied(others_backwards) or _denied(backwards) != _denied(others)
    )


def _denied(words: Sequence[str]) -> Counter[str]:
    """The words, by class, that follow the denials of a text."""
    said = heavy(words)
    return Counter(class_of(other) for word, other in pairwise(said) if word in NEGATIONS)


def _exchanged_numbers(a: Sequence[str], b: Sequence[str]) -> Exchanged | None:
    """Numbers that changed places with each other, of two texts with the same words: «3/5» and «5/3»."""
    before, after = _beside_numbers(a), _beside_numbers(b)
    turned = {
        number: None
        for number, others in before.items()
        for side, other in others - after[number]
        if is_number(other) and (-side, other) in after[number]
    }
    moved = {
        number: None
        for number, others in before.items()
        if {word for _, word in others}.isdisjoint(word for _, word in after[number])
    }
    found = tuple(turned) or (tuple(moved) if len(moved) > 1 else ())
    return (found, tuple(number for number in after if number in found)) if found else None


def _beside_numbers(words: Sequence[str]) -> dict[str, set[tuple[int, str]]]:
    """For each number the words that carry a value before (-1) and after it (1), all by class."""
    beside: dict[str, set[tuple[int, str]]] = defaultdict(set)
    if sum(map(is_number, words)) < 2:
        return beside
    valued = [class_of(word) for word in heavy(words)]
    for place, word in enumerate(valued):
        if is_number(word):
            beside[word] |= {
                (side, valued[place + side]) for side in (-1, 1) if 0 <= place + side < len(valued)
            }
    return beside
