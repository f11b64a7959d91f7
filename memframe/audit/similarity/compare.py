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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
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
"""Relation of two texts: they say the same; a person may find so; they differ in one value; they say other things."""

_LIGHT_WEIGHT = 0.25
"""Weight of a word that carries no value; one that does has 1."""
_MAX_SLIPS = 2
"""Typing errors that a text may hold; a longer one may hold more (`_is_promising`)."""
_MAX_OPPOSED = 4
"""Words that may differ between a text and its opposite."""
_MAX_LOOSE_PAIRS = 10_000
"""Pairs of words, one of each text, that are compared; texts that differ in more say different things."""
_MIN_REPEATED = 5
"""Words with a value that a shortened text has at least: with fewer («Emil likes tea», «Emil's son likes tea») one more
turns it into another fact."""
_MIN_SCORE = 0.8
"""Lowest score of texts that say the same: of a few words, several light ones more say something else."""
_LONG = 8
"""A text of so many words may be the beginning of another one, although it does not end as one that was cut."""
_CUT_ENDINGS = ("...", "\u2026", ",", "-", "\u2013")
"""Endings of a text that was cut."""
_MIN_SHARE_IF_CUT = 0.2
"""Share of the whole that a text must be which ends as one that was cut."""
_MIN_SHARE_IF_WHOLE = 0.5
"""Share of the whole that a text must be which may be a sentence of its own."""
_WORD = re.compile(r"[^\W_]+")

_NO_VALUES, _LIGHT_OR_DENYING = EMPTY | WEAK, LIGHT | NEGATIONS

_WORDS = load_words("lexicon")
_JOINING, _DETERMINERS, _UNFINISHED, _TELLING, _ONLY = (
    _WORDS[name] for name in ("joining", "determiners", "unfinished", "telling", "only")
)


class Difference(NamedTuple):
    """Relation of two texts."""

    relation: Relation
    kind: str = ""
    """Kind of near texts: spelling, order, typing, truncated; of repeats: shortened; of changed ones: number, date,
    word, polarity."""
    score: float = 0.0
    """Share of the words, by weight, that both texts have."""
    n_shared: int = 0
    """Number of words that carry a value which both have."""
    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    """The words that were exchanged."""


APART = Difference("apart")


class Comparer:
    """Compares the texts of one store, two at a time.

    For speed a text is a string with one character for each class of words; so that rapidfuzz can align them in C.
    """

    def __init__(self, words: Words, texts: pa.Array) -> None:
        self.words, self._texts = words, texts
        self._words_of = lru_cache(maxsize=1024)(words.of)  # a text is compared with several others in turn
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
        words, others = self._words_of(row), self._words_of(other)
        aligned = _align(a, b, words, others)
        rest = _Rest([*aligned.left], [*aligned.right], self._weights[row] - _weigh(aligned.left))
        if not _is_promising(rest):
            return APART
        if rest.left and rest.right:
            _drop_stumps(aligned, rest, self._n_times)
            _drop_slips(aligned, rest, self._n_times)
        places = _loose_places(aligned, rest)
        difference = _decide(aligned, rest, places)
        if difference is None:
            part = row if len(a) <= len(b) else other
            difference = _decide_part(aligned, rest, places, str(self._texts[part]))
        is_turned = difference.relation != "apart" and aligned.n_moved and _order_matters(words, others)
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


def _count_light(words: Iterable[str]) -> int:
    return sum(map(LIGHT.__contains__, words))  # in C: each comparison counts several times


def _weigh(words: Sequence[str]) -> float:
    return len(words) - (1.0 - _LIGHT_WEIGHT) * _count_light(words)


Place = tuple[list[str], list[str]]
"""Words in which two texts differ at one place: of the one, and of the other."""


class _Aligned(NamedTuple):
    """Two different texts side by side."""

    places: list[Place]
    left: list[str]
    """Words of the one that found no equal in the other, in their order."""
    right: list[str]
    n_placed: tuple[int, int]
    """Number of words of each that stand in the places."""
    n_words: int
    """Number of words of the shorter text."""
    ends: tuple[str, str]
    """The last word of each text, if it lies in the last place."""
    differ_at_end: bool

    @property
    def n_moved(self) -> int:
        """Number of words of the one that stand somewhere else in the other."""
        return self.n_placed[0] - len(self.left)


@dataclass(slots=True)
class _Rest:
    """Differences of two texts, while all that says nothing is taken away."""

    left: list[str]
    right: list[str]
    shared: float
    """Weight of the words that both have."""
    n_slips: int = 0
    is_cut: bool = False

    def score(self) -> float:
        """Return the share of the words, by weight, that both have."""
        return self.shared / (self.shared + _weigh(self.left) + _weigh(self.right))


# ---- the steps: align, take away what says nothing, decide


def _align(a: str, b: str, words: list[str], others: list[str]) -> _Aligned:
    """Lay two texts side by side, given as classes and as words.

    >>> tea, two = "ada likes green tea".split(), "ada drinks green tea".split()
    >>> _align("abcd", "axcd", tea, two).places
    [(['likes'], ['drinks'])]
    """
    runs = _runs(a, b)
    places = [(words[i:j], others[k:m]) for i, j, k, m in runs]
    if len(runs) == 1:
        (before, after), (i, j, k, m) = places[0], runs[0]
        left, right = a[i:j], b[k:m]
    else:
        before, after = ([word for place in places for word in place[side]] for side in (0, 1))
        left, right = "".join([a[i:j] for i, j, _, _ in runs]), "".join([b[k:m] for _, _, k, m in runs])
    _, end, _, other_end = runs[-1]
    is_end, is_other_end = end == len(a), other_end == len(b)
    moved = set(left).intersection(right)
    return _Aligned(
        places,
        _loose(before, left, right, moved) if moved else before,
        _loose(after, right, left, moved) if moved else after,
        (len(before), len(after)),
        min(len(a), len(b)),
        (before[-1] if is_end and before else "", after[-1] if is_other_end and after else ""),
        is_end and is_other_end,
    )


def _is_promising(rest: _Rest) -> bool:
    """Return True if the texts differ in few enough words to be compared."""
    # the side with fewer words with a value: the other one may go on for long
    n_heavy = min(len(rest.left) - _count_light(rest.left), len(rest.right) - _count_light(rest.right))
    allowed = _MAX_SLIPS + rest.shared / 4  # longer texts may hold more typing errors
    return n_heavy <= allowed and len(rest.left) * len(rest.right) <= _MAX_LOOSE_PAIRS


def _drop_stumps(aligned: _Aligned, rest: _Rest, n_times: Mapping[str, int]) -> None:
    """Drop the last word of a text that was cut within it, and the whole word in the other text."""
    is_long = aligned.n_words >= _LONG
    for side, other_side, (end, other_end) in (
        (rest.left, rest.right, aligned.ends),
        (rest.right, rest.left, aligned.ends[::-1]),
    ):
        if not end or not side or side[-1] != end:
            continue
        before, after = aligned.places[-1]
        opposite = after if before[-1:] == [end] else before
        whole = next((word for word in opposite if word in other_side), "")
        goes_on = other_end != whole
        if whole.startswith(end) and _is_stump(end, whole, n_times, goes_on=goes_on, is_long=is_long):
            side.pop()
            other_side.remove(whole)
            rest.shared += _weigh([whole])
            rest.is_cut = True


def _is_stump(end: str, whole: str, n_times: Mapping[str, int], *, goes_on: bool, is_long: bool) -> bool:
    """Return True if the last word of a text is the beginning of a longer one, and not a word of its own.

    `goes_on` is True if the other text has words after the whole one.
    """
    if end[0].isdigit():
        return goes_on and is_long
    if goes_on:
        return is_long or not is_known(end)
    is_near = is_long or len(whole) - len(end) <= 2
    return is_near and not is_known(end) and n_times[end] == 1


def _drop_slips(aligned: _Aligned, rest: _Rest, n_times: Mapping[str, int]) -> None:
    """Drop words that stand in the same place of both texts and are the same but for a typing error.

    If there is one, the texts are searched again for typing errors that make another word.
    """
    for careless in (False, True):
        for before, after in aligned.places:
            near = after[: len(before) + 2]  # a typing error stays where its word is
            if not near:
                continue
            for word in sorted(before, key=lambda word: word in LIGHT):  # words with a value first
                if word[0].isdigit() or word not in rest.left:
                    continue
                for other in near:
                    if other in rest.right and _is_same_word(word, other, n_times, careless=careless):
                        rest.left.remove(word)
                        rest.right.remove(other)
                        rest.shared += max(_weigh([word]), _weigh([other]))
                        rest.n_slips += 1
                        break
        if not rest.n_slips:
            return


def _is_same_word(word: str, other: str, n_times: Mapping[str, int], *, careless: bool) -> bool:
    if abs(len(word) - len(other)) > 2:
        return False
    n, n_other = n_times[word], n_times[other]
    # a typing error is rare beside the word itself: of two that are both frequent, neither is one
    return min(n, n_other) <= 1 + max(n, n_other) // 20 and is_slip(
        word, n, other, n_other, careless=careless
    )


def _loose_places(aligned: _Aligned, rest: _Rest) -> list[Place]:
    """Return the places with those of their words alone that found no equal."""
    if (len(rest.left), len(rest.right)) == aligned.n_placed:
        return aligned.places
    left, right = Counter(rest.left), Counter(rest.right)
    return [(_take(left, before, before), _take(right, after, after)) for before, after in aligned.places]


def _decide(aligned: _Aligned, rest: _Rest, places: Sequence[Place]) -> Difference | None:
    """Decide by the words that are left; None if one text may be the beginning of the other one.

    ===============================  ==================================================================
    in some place                    the texts are
    ===============================  ==================================================================
    weak words stand for others      opposites, or apart: «he», «she»
    nothing that may be a value      near, if they share enough: «he is», «is»
    one value for one other          changed, if the two are of one kind: «640», «665»
    several values for others        opposites, or apart
    values in one text alone         opposites, or one may be a part of the other one: None
    ===============================  ==================================================================
    """
    if any(map(_exchange_weak, places)):
        return _polarity(rest) or APART
    valued = [
        place for place in ((_values(before), _values(after)) for before, after in places) if any(place)
    ]
    if not valued:
        score = rest.score()
        if score <= _MIN_SCORE and not rest.is_cut:
            return APART
        kind = "spelling"
        if rest.is_cut:
            kind = "truncated"
        elif rest.n_slips:
            kind = "typing"
        elif aligned.n_moved:
            kind = "order"
        return Difference("near", kind, score)
    exchanged = [place for place in valued if all(place)]
    opposite = _polarity(rest)
    if len(valued) == len(exchanged) == 1:
        return opposite or _changed(rest, *exchanged[0])
    return opposite or (APART if exchanged else None)


def _decide_part(aligned: _Aligned, rest: _Rest, places: Sequence[Place], part: str) -> Difference:
    """Decide whether the shorter text is the beginning of the other one, which alone goes on, or a part of it."""
    if all(any(_values(place[side]) for place in places) for side in (0, 1)):
        return APART  # each says something that the other one does not
    *others, (before, after) = places
    if (
        not aligned.differ_at_end
        or (before and after)
        or any(_values(side) for place in others for side in place)
    ):
        return _shortened(rest)
    more, ends = before or after, _WORD.findall(part[-60:].lower())[-1:]
    share = rest.shared / (rest.shared + _weigh(more))
    breaks_off = part.rstrip().endswith(_CUT_ENDINGS) or not _UNFINISHED.isdisjoint(ends)
    if not (rest.is_cut or breaks_off) and (
        aligned.n_words < _LONG
        or share < _MIN_SHARE_IF_WHOLE
        or not (_TELLING | NEGATIONS).isdisjoint(more)
        or not _ONLY.isdisjoint(
            (*_WORD.findall(part.lower()), *part)
        )  # more of a list is more than that alone
    ):
        return _shortened(rest)
    return (
        Difference("near", "truncated", share) if share >= _MIN_SHARE_IF_CUT and rest.shared >= 1 else APART
    )


def _shortened(rest: _Rest) -> Difference:
    """Return that one text repeats a part of the other one, if it says enough and nothing of it is denied."""
    is_turned = not NEGATIONS.isdisjoint((*rest.left, *rest.right))
    is_enough = rest.shared >= _MIN_REPEATED and rest.score() >= _MIN_SHARE_IF_CUT
    return APART if is_turned or not is_enough else Difference("repeats", "shortened", rest.score())


def _polarity(rest: _Rest) -> Difference | None:
    """Return that one text says the opposite of the other, if nothing else of theirs differs."""
    others = {*rest.left, *rest.right} - _LIGHT_OR_DENYING
    if len(others) > _MAX_OPPOSED or rest.shared < 1:
        return None
    opposed = {word for two in product(rest.left, rest.right) if are_opposed(*two) for word in two}
    if not others <= opposed:
        return None
    denials = [sum(map(NEGATIONS.__contains__, side)) for side in (rest.left, rest.right)]
    if not opposed and denials[0] == denials[1]:
        return None
    return Difference(
        "changed", "polarity", rest.score(), int(rest.shared), tuple(rest.left), tuple(rest.right)
    )


def _changed(rest: _Rest, before: list[str], after: list[str]) -> Difference:
    """Return that one value was exchanged for another one of its kind.

    A value has few words: a date four at most («3 May 2026, Sunday»), a number two («640 euros»), others three. More
    words are another sentence.
    """
    words = (*before, *after)
    are_dates = any(map(is_date, before)) and any(map(is_date, after))
    are_numbers = any(map(is_number, before)) and any(map(is_number, after))
    if are_dates and all(is_date(word) or is_number(word) for word in words):
        kind, max_words = "date", 4
    elif are_numbers and all(is_number(word) or word in UNITS for word in words):
        kind, max_words = "number", 2
    elif are_numbers:
        return APART  # numbers with other words around them
    else:
        kind, max_words = "word", 3
    if max(len(before), len(after)) > max_words or rest.shared < 1 or not STRONG.isdisjoint(words):
        return APART
    score = rest.shared / (rest.shared + 1)
    return Difference("changed", kind, score, int(rest.shared), tuple(before), tuple(after))


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


def _loose(words: Sequence[str], classes: str, others: str, shared: Iterable[str]) -> list[str]:
    """Choose words, in order, of which the other side has too few; of equal ones the last."""
    too_many = {name: classes.count(name) - others.count(name) for name in shared}
    chosen = []
    for word, name in zip(reversed(words), reversed(classes), strict=True):
        n_left = too_many.get(name, 1)  # a class that the other side does not have
        if n_left > 0:
            chosen.append(word)
            if name in too_many:
                too_many[name] = n_left - 1
    return chosen[::-1]


def _take(left: Counter[str], words: Iterable[str], names: Iterable[str]) -> list[str]:
    """Choose words as often as their names are left, and count these down."""
    taken = []
    for word, name in zip(words, names, strict=True):
        n_left = left.get(name, 0)  # by an index, a missing name costs three times as much
        if n_left > 0:
            left[name] = n_left - 1
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
    classes, other_classes = list(map(class_of, words)), list(map(class_of, others))
    shared = Counter(classes) & Counter(other_classes)
    words, others = _take(shared.copy(), words, classes), _take(shared, others, other_classes)
    if _values_changed_places(words, others):
        return True
    if not NEGATIONS.isdisjoint(words):
        denied, other_denied = _count_denied(words), _count_denied(others)
        # «not tea but coffee», «coffee but not tea»: the same is denied if one of them is read from its end
        is_reversed = denied == _count_denied(others[::-1]) and _count_denied(words[::-1]) == other_denied
        if denied != other_denied and not is_reversed:
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
