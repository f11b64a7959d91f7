"""Comparison: what two texts differ in, once everything is taken away that says nothing.

Two texts are laid side by side, word by word, by class: km is kilometres. Words that both have in another place, typing
errors and the stump at which a text was cut do not count. The texts are near if what is left adds nothing (articles,
fillers), if words that carry no value are missing in one of them but none stands for another («he», «she»), and if the
one goes on where the other ends. Everything else is a value: one that was exchanged makes a changed text, a denial on
one side turns it around, and all else sets the texts apart. It is better to leave two copies than to merge two facts.

A text repeats another one, for a person to decide, if the other one has all its words that carry a value: it says
nothing new, but nobody can tell what was left out on purpose.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, product
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from memframe.audit.lexicon import (
    EMPTY,
    LIGHT,
    NEGATIONS,
    STRONG,
    TIMES,
    UNITS,
    WEAK,
    are_opposed,
    class_of,
    is_date,
    is_known,
    is_number,
    is_slip,
    weak_name,
)
from memframe.audit.rules import load_words
from memframe.audit.tokenize import Letters, Words

Relation = Literal["near", "repeats", "changed", "apart"]
"""Of two texts: they say the same; a person may find that they do; they differ in one value; they say other things."""

Tokens = NDArray[np.int32]

_LIGHT_WEIGHT = 0.25
"""What a word that carries no value counts beside one that does."""
_MAX_SLIPS, _MAX_OPPOSED = 2, 4
_MAX_LOOSE_PAIRS = 10_000
"""Pairs of words, one of each text, that are compared; texts that differ in more say different things."""
_MIN_REPEATED = 5
"""Words with a value that a shortened text has at least: with fewer («Emil likes tea», «Emil's son likes tea») one more
turns it into another fact."""
_MIN_SCORE = 0.8
"""Of texts that say the same: of a few words, several light ones more say something else."""
_LONG = 8
"""Words from which on a text may be the beginning of another one without breaking off."""
_BROKEN_OFF, _WHOLE = 0.2, 0.5
"""Least share of the whole that its beginning is: where it breaks off, and where it may be a sentence of its own."""
_BREAKS_OFF = ("...", "\u2026", ",", "-", "\u2013")
_WORD = re.compile(r"[^\W_]+")

_NO_VALUES, _LIGHT_OR_DENYING = EMPTY | WEAK, LIGHT | NEGATIONS

_WORDS = load_words("lexicon")
_JOINING, _DETERMINERS, _UNFINISHED, _TELLING = (
    _WORDS[name] for name in ("joining", "determiners", "unfinished", "telling")
)


class Difference(NamedTuple):
    """Relation of two texts."""

    relation: Relation
    kind: str = ""
    """Of near texts: spelling, order, typing, truncated; of repeats: shortened; of changed ones: number, date, word,
    polarity."""
    score: float = 0.0
    """Share of the words, by weight, that both texts have."""
    n_shared: int = 0
    """How many words that carry a value both have."""
    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    """The words that were exchanged."""


APART = Difference("apart")


class Comparer:
    """Compares the texts of one store, two at a time.

    For speed a text is a string with one character for each class of words; so it is C that aligns them.
    """

    def __init__(self, words: Words, texts: pa.Array) -> None:
        self.words, self._texts = words, texts
        self._letters = Letters(words.class_ids, np.diff(words.starts))
        counts = np.bincount(words.tokens, minlength=len(words.vocabulary))
        self._n_times: dict[str, int] = dict(zip(words.vocabulary, counts.tolist(), strict=True))
        self._weights = words.fold(np.add, np.where(words.heavy_classes(), 1.0, _LIGHT_WEIGHT)).tolist()
        heavy = np.fromiter((word not in LIGHT for word in words.vocabulary), bool, len(words.vocabulary))
        self._fullness = np.column_stack(
            [words.n_of(chosen, by="tokens") for chosen in (heavy, heavy & (counts > 1))]
        )

    def compare(self, row: int, other: int) -> Difference:
        """Decide what two texts are to each other."""
        a, b = self._letters.of(row), self._letters.of(other)
        if a == b:
            return Difference("near", "spelling", 1.0)
        tokens, others = self.words.tokens_of(row), self.words.tokens_of(other)
        alignment = _Alignment(a, b, tokens, others, self.words.vocabulary, self._weights[row], self._n_times)
        if not alignment.is_promising():
            return APART
        difference = alignment.decide()
        if difference is None:
            part = row if len(a) <= len(b) else other
            difference = alignment.decide_part(str(self._texts[part]))
        is_turned = (
            difference.relation != "apart"
            and alignment.n_moved
            and _order_matters(self.words.of(row), self.words.of(other))
        )
        return APART if is_turned else difference

    def n_slips(self, row: int) -> int:
        """Count the words of a text that may be typing errors: no other text has them, and nobody else knows them."""
        words = self.words.of(row)
        return sum(self._n_times[word] == 1 and not is_known(word) for word in words)

    def classes_of(self, row: int) -> str:
        """Return the words of a text by class, as one character each."""
        return self._letters.of(row)

    def fullness(self, row: int) -> tuple[int, int]:
        """Count how much a text says: its words that carry a value, and how many of them other texts have too."""
        n_heavy, n_known = self._fullness[row].tolist()
        return n_heavy, n_known


def _weigh(words: Sequence[str]) -> float:
    return len(words) - (1.0 - _LIGHT_WEIGHT) * sum(map(LIGHT.__contains__, words))


class _Alignment:
    """Two different texts side by side, while their relation is decided."""

    def __init__(
        self,
        a: str,
        b: str,
        tokens: Tokens,
        others: Tokens,
        vocabulary: Sequence[str],
        weight: float,
        n_times: Mapping[str, int],
    ) -> None:
        runs = _runs(a, b)
        self._places = [
            ([vocabulary[t] for t in tokens[i:j].tolist()], [vocabulary[t] for t in others[k:m].tolist()])
            for i, j, k, m in runs
        ]
        before, after = ([word for place in self._places for word in place[side]] for side in (0, 1))
        left = "".join(a[run[0] : run[1]] for run in runs)
        right = "".join(b[run[2] : run[3]] for run in runs)
        self._left, self._right = _loose(before, left, right), _loose(after, right, left)
        """The words of each that found no equal, in their order."""
        self._n_placed = len(before), len(after)
        self.n_moved = len(before) - len(self._left)
        """How many words of the one stand somewhere else in the other."""
        self._n_words = min(len(a), len(b))
        end = runs[-1]
        self._is_open = end[1] == len(a) and end[3] == len(b)
        """Whether the texts differ at their ends."""
        self._ends = (
            before[-1] if end[1] == len(a) and before else "",
            after[-1] if end[3] == len(b) and after else "",
        )
        """The last word of each text, if it lies in one of the places."""
        self._n_times, self._shared = n_times, weight - _weigh(self._left)
        self._n_slips, self._is_cut = 0, False

    def is_promising(self) -> bool:
        """Return True if the texts differ in few enough words to be compared."""
        n_left, n_right = (
            len(side) - sum(map(LIGHT.__contains__, side)) for side in (self._left, self._right)
        )
        n_pairs = len(self._left) * len(self._right)
        return min(n_left, n_right) <= _MAX_SLIPS + self._shared / 4 and n_pairs <= _MAX_LOOSE_PAIRS

    def decide(self) -> Difference | None:
        """Decide by the words alone; None if one text may be the beginning of the other one."""
        if self._left and self._right:
            self._settle_cut(self._left, self._right, *self._ends)
            self._settle_cut(self._right, self._left, *reversed(self._ends))
            self._settle_slips(careless=False)
            self._settle_slips(careless=self._n_slips > 0)
        places = self._loose_places()
        if any(map(_exchange_weak, places)):
            return self._polarity() or APART
        valued = [
            place for place in ((_values(before), _values(after)) for before, after in places) if any(place)
        ]
        if not valued:
            if self._score() <= _MIN_SCORE and not self._is_cut:
                return APART
            kind = "typing" if self._n_slips else "order" if self.n_moved else "spelling"
            return Difference("near", "truncated" if self._is_cut else kind, self._score())
        exchanged = [place for place in valued if all(place)]
        if len(valued) == len(exchanged) == 1:
            return self._polarity() or self._changed(*exchanged[0])
        return self._polarity() or (APART if exchanged else None)

    def decide_part(self, part: str) -> Difference:
        """Decide whether the shorter text is the beginning of the other one, which alone goes on, or a part of it."""
        places = self._loose_places()
        if all(any(_values(place[side]) for place in places) for side in (0, 1)):
            return APART  # each says something that the other one does not
        *others, (before, after) = places
        if (
            not self._is_open
            or (before and after)
            or any(_values(side) for place in others for side in place)
        ):
            return self._shortened()
        more, ends = before or after, _WORD.findall(part[-60:].lower())[-1:]
        share = self._shared / (self._shared + _weigh(more))
        breaks_off = part.rstrip().endswith(_BREAKS_OFF) or not _UNFINISHED.isdisjoint(ends)
        if not (self._is_cut or breaks_off) and (
            self._n_words < _LONG or share < _WHOLE or not (_TELLING | NEGATIONS).isdisjoint(more)
        ):
            return self._shortened()
        return Difference("near", "truncated", share) if share >= _BROKEN_OFF and self._shared >= 1 else APART

    def _shortened(self) -> Difference:
        """Return that one text repeats a part of the other one, if it says enough and nothing of it is denied."""
        is_turned = not NEGATIONS.isdisjoint((*self._left, *self._right))
        is_enough = self._shared >= _MIN_REPEATED and self._score() >= _BROKEN_OFF
        return APART if is_turned or not is_enough else Difference("repeats", "shortened", self._score())

    def _settle_slips(self, *, careless: bool) -> None:
        """Take words of both sides away that stand in the same place and are the same but for a typing error."""

        def is_the_same(word: str, other: str) -> bool:
            n, n_other = self._n_times[word], self._n_times[other]
            may_be = abs(len(word) - len(other)) <= 2 and min(n, n_other) <= 1 + max(n, n_other) // 20
            return may_be and is_slip(word, n, other, n_other, careless=careless)

        for before, after in self._places:
            near = after[: len(before) + 2]
            for word in sorted(before, key=LIGHT.__contains__) if near else ():
                if word[0].isdigit() or word not in self._left:
                    continue
                others = (one for one in near if one in self._right and is_the_same(word, one))
                if other := next(others, None):
                    self._left.remove(word)
                    self._right.remove(other)
                    self._shared += max(_weigh([word]), _weigh([other]))
                    self._n_slips += 1

    def _settle_cut(self, side: list[str], other_side: list[str], end: str, other_end: str) -> None:
        """Take the last word of a text away that ends in its middle; if the other one ends there, it is no word."""
        if not end or not side or side[-1] != end:
            return
        before, after = self._places[-1]
        whole = next((word for word in (after if before[-1:] == [end] else before) if word in other_side), "")
        if not whole.startswith(end):
            return
        goes_on, is_long = other_end != whole, self._n_words >= _LONG
        if end[0].isdigit():
            is_stump = goes_on and is_long
        elif goes_on:
            is_stump = is_long or not is_known(end)
        else:
            is_near = is_long or len(whole) - len(end) <= 2
            is_stump = is_near and not is_known(end) and self._n_times[end] == 1
        if is_stump:
            side.pop()
            other_side.remove(whole)
            self._shared += _weigh([whole])
            self._is_cut = True

    def _loose_places(self) -> list[tuple[list[str], list[str]]]:
        """Return the places with those of their words alone that found no equal."""
        if (len(self._left), len(self._right)) == self._n_placed:
            return self._places
        left, right = Counter(self._left), Counter(self._right)
        return [(_take(left, before), _take(right, after)) for before, after in self._places]

    def _score(self) -> float:
        return self._shared / (self._shared + _weigh(self._left) + _weigh(self._right))

    def _polarity(self) -> Difference | None:
        """Return that one text says the opposite of the other, if nothing else of theirs differs."""
        others = {*self._left, *self._right} - _LIGHT_OR_DENYING
        if len(others) > _MAX_OPPOSED or self._shared < 1:
            return None
        opposed = {word for two in product(self._left, self._right) if are_opposed(*two) for word in two}
        denials = [sum(word in NEGATIONS for word in side) for side in (self._left, self._right)]
        if not others <= opposed or (not opposed and denials[0] == denials[1]):
            return None
        return Difference(
            "changed", "polarity", self._score(), int(self._shared), tuple(self._left), tuple(self._right)
        )

    def _changed(self, before: list[str], after: list[str]) -> Difference:
        """Return that one value was exchanged for another one of its kind."""
        words = (*before, *after)
        are_dates, are_numbers = (
            all(any(map(tell, side)) for side in (before, after)) for tell in (is_date, is_number)
        )
        if are_dates and all(is_date(word) or is_number(word) for word in words):
            kind, most = "date", 4
        elif are_numbers and all(is_number(word) or word in UNITS for word in words):
            kind, most = "number", 2
        else:
            kind, most = "word", 0 if are_numbers else 3
        if max(len(before), len(after)) > most or self._shared < 1 or not STRONG.isdisjoint(words):
            return APART
        score = self._shared / (self._shared + 1)
        return Difference("changed", kind, score, int(self._shared), tuple(before), tuple(after))


# ---- words of two texts


def _runs(a: str, b: str) -> list[tuple[int, int, int, int]]:
    """Find the stretches in which two texts differ: from and to in the one, from and to in the other."""
    runs: list[tuple[int, int, int, int]] = []
    for op in Levenshtein.opcodes(a, b):
        if op.tag == "equal":
            continue
        start, other_start = op.src_start, op.dest_start
        if runs and runs[-1][1] == start and runs[-1][3] == other_start:
            start, _, other_start, _ = runs.pop()
        runs.append((start, op.src_end, other_start, op.dest_end))
    return runs


def _loose(words: Sequence[str], classes: str, others: str) -> list[str]:
    """Choose words, in order, of which the other side has too few; of equal ones the last."""
    shared = set(classes).intersection(others)
    if not shared:
        return list(words)
    too_many = {name: classes.count(name) - others.count(name) for name in shared}
    chosen = []
    for word, name in zip(reversed(words), reversed(classes), strict=True):
        n_left = too_many.get(name, 1)  # a class that the other side does not have
        if n_left > 0:
            chosen.append(word)
            if name in too_many:
                too_many[name] = n_left - 1
    return chosen[::-1]


def _take(left: Counter[str], words: Iterable[str], name: Callable[[str], str] = str) -> list[str]:
    """Choose words as often as they are left, by name, and count them down."""
    taken = []
    for word in words:
        if left[name(word)] > 0:
            left[name(word)] -= 1
            taken.append(word)
    return taken


def _values(words: Iterable[str]) -> list[str]:
    """Choose words that may neither be missing nor be exchanged."""
    return [word for word in words if word not in _NO_VALUES]


def _exchange_weak(place: tuple[list[str], list[str]]) -> bool:
    """Return True if words that carry no value stand for others: «he» for «she», «is» for «was»."""
    if any(map(WEAK.isdisjoint, place)):
        return False
    before, after = ({weak_name(word) for word in side if word in WEAK} for side in place)
    return bool(before - after) and bool(after - before)


# ---- order


def _order_matters(words: Sequence[str], others: Sequence[str]) -> bool:
    """Return True if of two texts the words that both have say something else by their order.

    >>> _order_matters("from leeds to ghent".split(), "from ghent to leeds".split())
    True
    >>> _order_matters("likes hiking and chess".split(), "likes chess and hiking".split())
    False
    """
    shared = Counter(map(class_of, words)) & Counter(map(class_of, others))
    words, others = (_take(Counter(shared), some, class_of) for some in (words, others))
    if _values_changed_places(words, others):
        return True
    if not NEGATIONS.isdisjoint(words):
        there, here, back = _count_denied(words), _count_denied(others), _count_denied(others[::-1])
        if there != here and (there != back or _count_denied(words[::-1]) != here):
            return True
    pairs, turned = (  # of numbers that follow each other: «3/5», «5/3»
        {(class_of(x), class_of(y)) for x, y in pairwise(some) if is_number(x) and is_number(y)}
        for some in (words, others)
    )
    return any((y, x) in turned and (y, x) not in pairs for x, y in pairs)


def _count_denied(words: Sequence[str]) -> Counter[str]:
    heavy = [word for word in words if word not in LIGHT]
    return Counter(class_of(other) for word, other in pairwise(heavy) if word in NEGATIONS)


def _values_changed_places(a: Sequence[str], b: Sequence[str]) -> bool:
    """Return True if two values changed places around words that stayed; the parts of a list may."""
    before, after = list(map(class_of, a)), list(map(class_of, b))
    differs = [place for place, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]
    if not differs:
        return False
    start, end = differs[0], differs[-1] + 1
    before, after = before[start:end], after[start:end]
    for n_first, n_last in product((1, 2), repeat=2):
        first, between, last = before[:n_first], before[n_first:-n_last], before[-n_last:]
        if not between or [*last, *between, *first] != after or set(between) <= _JOINING:
            continue
        values = a[start : start + n_first], a[end - n_last : end]
        is_time = [not TIMES.isdisjoint(value) for value in values]
        if all(map(_may_be_value, values)) and is_time[0] == is_time[1]:
            return True
    return False


def _may_be_value(words: Sequence[str]) -> bool:
    """Return True if words may be a value, rather than a phrase that may stand anywhere: «since 2019», «in Graz»."""
    if len(words) == 1:
        return words[0] not in LIGHT or words[0] in {"user", "users", "i"}
    return not LIGHT.issuperset(words) and (words[0] not in LIGHT or words[0] in _DETERMINERS)
