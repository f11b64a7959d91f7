"""Comparison: the difference of two texts, after all differences without a meaning are removed.

Two texts are aligned word by word, by class: km and kilometres are one class. Words that both have in different places,
typing errors, and the rest of a word at which a text was cut do not count. The texts are near if the remaining words
add nothing (articles, fillers), if one text lacks words without a value but none is exchanged («he», «she»), or if one
text goes on where the other ends. All other words are values: one exchanged value makes a changed text, a negation in
one text makes an opposite, and any other difference sets the texts apart. Two copies that stay are a smaller error than
two facts that are merged.

A text repeats another one if that has all its words with a value. This is for a person to decide, because the missing
words may have been left out on purpose.
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
"""Relation of two texts: near-duplicates ("near"), one repeats a part of the other ("repeats"), one statement with two
values ("changed"), different statements ("apart")."""

_LIGHT_WEIGHT = 0.25
"""Weight of a word without a value; a word with a value has 1."""
_MAX_SLIPS = 2
"""Most typing errors in a short text; a longer one may have more (`_is_promising`)."""
_MAX_OPPOSED = 4
"""Most words in which a text and its opposite differ."""
_MAX_LOOSE_PAIRS = 10_000
"""Most pairs of words, one of each text, that are compared; texts that differ in more are apart."""
_MIN_REPEATED = 5
"""Fewest words with a value of a shortened text; in a shorter one («Emil likes tea», «Emil's son likes tea») one more
word makes another fact."""
_MIN_SCORE = 0.8
"""Score above which texts are near: a few words with several light ones more may be another statement."""
_LONG = 8
"""Fewest words of a text that may be the beginning of another one although it does not end like a cut one."""
_CUT_ENDINGS = ("...", "\u2026", ",", "-", "\u2013")
"""Endings of a text that was cut."""
_MIN_SHARE_IF_CUT = 0.2
"""Least share of the whole text that a text has if it ends like a cut one."""
_MIN_SHARE_IF_WHOLE = 0.5
"""Least share of the whole text that a text has if it may be a sentence of its own."""
_WORD = re.compile(r"[^\W_]+")

_NO_VALUES, _LIGHT_OR_DENYING = EMPTY | WEAK, LIGHT | NEGATIONS

_WORDS = load_words("lexicon")
_JOINING, _DETERMINERS, _UNFINISHED, _TELLING, _ONLY = (
    _WORDS[name] for name in ("joining", "determiners", "unfinished", "telling", "only")
)


class Difference(NamedTuple):
    """Relation of two texts, and the words in which they differ."""

    relation: Relation
    kind: str = ""
    """Kind of near texts: spelling, order, typing, truncated; of repeats: shortened; of changed ones: number, date,
    word, polarity."""
    score: float = 0.0
    """Share of the words, by weight, that both texts have."""
    n_shared: int = 0
    """Number of words with a value that both have."""
    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    """Exchanged words."""


APART = Difference("apart")


class Comparer:
    """Compares the texts of one store in pairs.

    A text is a string with one character for each class of words, so that rapidfuzz can align two of them in C.
    """

    def __init__(self, words: Words, texts: pa.Array) -> None:
        self.words, self._texts = words, texts
        self._words_of = lru_cache(maxsize=1024)(
            words.of
        )  # a text is in several pairs that follow each other
        self._letters = Letters(words.class_ids, np.diff(words.starts))
        counts = np.bincount(words.tokens, minlength=len(words.vocabulary))
        self._n_times: dict[str, int] = dict(zip(words.vocabulary, counts.tolist(), strict=True))
        self._weights = words.fold(np.add, np.where(words.heavy_classes(), 1.0, _LIGHT_WEIGHT)).tolist()
        heavy = np.fromiter((word not in LIGHT for word in words.vocabulary), bool, len(words.vocabulary))
        self._fullness = np.column_stack(
            [words.n_of(chosen, by="tokens") for chosen in (heavy, heavy & (counts > 1))]
        )

    def compare(self, row: int, other: int) -> Difference:
        """Return the difference of two texts."""
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
        """Count the words of a text that may be typing errors: they occur once in the store and are in no list."""
        words = self.words.of(row)
        return sum(self._n_times[word] == 1 and not is_known(word) for word in words)

    def classes_of(self, row: int) -> str:
        """Return the classes of the words of a text, as one character each."""
        return self._letters.of(row)

    def fullness(self, row: int) -> tuple[int, int]:
        """Count the words of a text that carry a value, and those of them that are not unique in the store."""
        n_heavy, n_known = self._fullness[row].tolist()
        return n_heavy, n_known


def _count_light(words: Iterable[str]) -> int:
    """Count the words without a value."""
    return sum(map(LIGHT.__contains__, words))  # runs in C, because each comparison counts several times


def _weigh(words: Sequence[str]) -> float:
    """Return the weight of words."""
    return len(words) - (1.0 - _LIGHT_WEIGHT) * _count_light(words)


Place = tuple[list[str], list[str]]
"""Words in which the first and the second text differ at one place of the alignment."""


class _Aligned(NamedTuple):
    """Alignment of two different texts."""

    places: list[Place]
    """Places at which the texts differ, in their order."""
    left: list[str]
    """Words of the first text that the second one does not have anywhere, in their order."""
    right: list[str]
    n_placed: tuple[int, int]
    """Number of words of each text in the places."""
    n_words: int
    """Number of words of the shorter text."""
    ends: tuple[str, str]
    """The last word of each text, if it is in the last place."""
    differ_at_end: bool
    """True if the last place is at the end of both texts."""

    @property
    def n_moved(self) -> int:
        """Number of words of the first text that the second one has in another place."""
        return self.n_placed[0] - len(self.left)


@dataclass(slots=True)
class _Rest:
    """Remaining differences of two texts, from which those without a meaning are removed step by step."""

    left: list[str]
    right: list[str]
    shared: float
    """Weight of the words that both texts have."""
    n_slips: int = 0
    is_cut: bool = False

    def score(self) -> float:
        """Return the share of the words, by weight, that both texts have."""
        return self.shared / (self.shared + _weigh(self.left) + _weigh(self.right))


# ---- the steps: align, remove differences without a meaning, decide


def _align(a: str, b: str, words: list[str], others: list[str]) -> _Aligned:
    """Align two texts, given as classes and as words.

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
    """Return True if the texts differ in so few words that they may be near, changed or repeats."""
    # one text may go on for long, so the text with fewer own words with a value decides
    n_heavy = min(len(rest.left) - _count_light(rest.left), len(rest.right) - _count_light(rest.right))
    max_heavy = _MAX_SLIPS + rest.shared / 4  # longer texts may have more typing errors
    return n_heavy <= max_heavy and len(rest.left) * len(rest.right) <= _MAX_LOOSE_PAIRS


def _drop_stumps(aligned: _Aligned, rest: _Rest, n_times: Mapping[str, int]) -> None:
    """Drop the last word of a text if it is the beginning of a word in the other text, and drop that word."""
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
    """Return True if the last word of a text is a cut one, and not a word of its own.

    `goes_on` is True if the other text has words after the whole word, `is_long` if both texts are long.
    """
    if end[0].isdigit():
        return goes_on and is_long  # a number that was cut is a number as well
    if goes_on:
        return is_long or not is_known(end)
    lacks_little = is_long or len(whole) - len(end) <= 2
    return lacks_little and not is_known(end) and n_times[end] == 1


def _drop_slips(aligned: _Aligned, rest: _Rest, n_times: Mapping[str, int]) -> None:
    """Drop words at the same place of both texts that are the same word with a typing error.

    If there is one, the text is careless, and typing errors that make another known word are dropped as well.
    """
    for careless in (False, True):
        for before, after in aligned.places:
            near = after[: len(before) + 2]  # both spellings are at nearly the same position
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
    # a typing error is rare compared with the word itself; of two frequent words neither is one
    return min(n, n_other) <= 1 + max(n, n_other) // 20 and is_slip(
        word, n, other, n_other, careless=careless
    )


def _loose_places(aligned: _Aligned, rest: _Rest) -> list[Place]:
    """Return the places with only the words that remain."""
    if (len(rest.left), len(rest.right)) == aligned.n_placed:
        return aligned.places
    left, right = Counter(rest.left), Counter(rest.right)
    return [(_take(left, before, before), _take(right, after, after)) for before, after in aligned.places]


def _decide(aligned: _Aligned, rest: _Rest, places: Sequence[Place]) -> Difference | None:
    """Return the difference by the remaining words; None if one text may be the beginning or a part of the other one.

    ===============================  ==================================================================
    remaining words                  the texts are
    ===============================  ==================================================================
    exchanged weak words             opposites, or apart: «he», «she»
    no values                        near, if they share enough: «he is», «is»
    one exchanged value              changed, if both values are of one kind: «640», «665»
    several exchanged values         opposites, or apart
    values in one text only          opposites, or one may be a part of the other one: None
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
    if opposite := _polarity(rest):
        return opposite
    if len(valued) == len(exchanged) == 1:
        return _changed(rest, *exchanged[0])
    return APART if exchanged else None


def _decide_part(aligned: _Aligned, rest: _Rest, places: Sequence[Place], part: str) -> Difference:
    """Return the difference of two texts of which the shorter may be the beginning ("near") or a part ("repeats")."""
    if all(any(_values(place[side]) for place in places) for side in (0, 1)):
        return APART  # each text has a value that the other one lacks
    *others, (before, after) = places
    if (
        not aligned.differ_at_end
        or (before and after)
        or any(_values(side) for place in others for side in place)
    ):
        return _shortened(rest)
    more, last_word = before or after, _WORD.findall(part[-60:].lower())[-1:]
    share = rest.shared / (rest.shared + _weigh(more))
    breaks_off = part.rstrip().endswith(_CUT_ENDINGS) or not _UNFINISHED.isdisjoint(last_word)
    if not (rest.is_cut or breaks_off) and (
        aligned.n_words < _LONG
        or share < _MIN_SHARE_IF_WHOLE
        or not (_TELLING | NEGATIONS).isdisjoint(more)
        # a text with «only» excludes what the longer one adds; in scripts without blanks it is a character
        or not _ONLY.isdisjoint((*_WORD.findall(part.lower()), *part))
    ):
        return _shortened(rest)
    if share < _MIN_SHARE_IF_CUT or rest.shared < 1:
        return APART
    return Difference("near", "truncated", share)


def _shortened(rest: _Rest) -> Difference:
    """Return "repeats" if the texts share enough words and do not differ in a negation, else "apart"."""
    is_negated = not NEGATIONS.isdisjoint((*rest.left, *rest.right))
    is_enough = rest.shared >= _MIN_REPEATED and rest.score() >= _MIN_SHARE_IF_CUT
    return APART if is_negated or not is_enough else Difference("repeats", "shortened", rest.score())


def _polarity(rest: _Rest) -> Difference | None:
    """Return a changed polarity if the texts differ only in opposites and negations; else None."""
    others = {*rest.left, *rest.right} - _LIGHT_OR_DENYING
    if len(others) > _MAX_OPPOSED or rest.shared < 1:
        return None
    opposed = {word for pair in product(rest.left, rest.right) if are_opposed(*pair) for word in pair}
    if not others <= opposed:
        return None
    n_left, n_right = (sum(map(NEGATIONS.__contains__, side)) for side in (rest.left, rest.right))
    if not opposed and n_left == n_right:
        return None
    return Difference(
        "changed", "polarity", rest.score(), int(rest.shared), tuple(rest.left), tuple(rest.right)
    )


def _changed(rest: _Rest, before: list[str], after: list[str]) -> Difference:
    """Return the kind of one exchanged value, or "apart" if the two values are not of one kind.

    A value has few words: a date at most four («3 May 2026, Sunday»), a number two («640 euros»), others three. More
    words are another statement.
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
    """Return the runs of characters in which two texts differ: start and end in the first, and in the second text."""
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
    """Choose the words that the other side lacks or has less often; of several equal ones the last."""
    surplus = {name: classes.count(name) - others.count(name) for name in shared}
    chosen = []
    for word, name in zip(reversed(words), reversed(classes), strict=True):
        n_due = surplus.get(name, 1)  # 1 for a class that the other side lacks
        if n_due > 0:
            chosen.append(word)
            if name in surplus:
                surplus[name] = n_due - 1
    return chosen[::-1]


def _take(available: Counter[str], words: Iterable[str], names: Iterable[str]) -> list[str]:
    """Choose each word as often as its name is available, and count the names down."""
    taken = []
    for word, name in zip(words, names, strict=True):
        n_due = available.get(name, 0)  # `available[name]` takes three times as long for a missing name
        if n_due > 0:
            available[name] = n_due - 1
            taken.append(word)
    return taken


def _values(words: Iterable[str]) -> list[str]:
    """Choose the words that neither text may lack."""
    return [word for word in words if word not in _NO_VALUES]


def _exchange_weak(place: tuple[list[str], list[str]]) -> bool:
    """Return True if weak words are exchanged at a place: «he» for «she», «is» for «was»."""
    if any(map(WEAK.isdisjoint, place)):
        return False
    before, after = ({weak_name(word) for word in side if word in WEAK} for side in place)
    return bool(before - after) and bool(after - before)


# ---- order


def _order_matters(words: Sequence[str], others: Sequence[str]) -> bool:
    """Return True if two texts have words in common whose order changes the meaning.

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
        # «not tea but coffee», «coffee but not tea»: the same words are negated if one text is reversed
        is_reversed = denied == _count_denied(others[::-1]) and _count_denied(words[::-1]) == other_denied
        if denied != other_denied and not is_reversed:
            return True
    pairs, turned = (  # of numbers that follow each other: «3/5», «5/3»
        {(class_of(x), class_of(y)) for x, y in pairwise(some) if is_number(x) and is_number(y)}
        for some in (words, others)
    )
    return any((y, x) in turned and (y, x) not in pairs for x, y in pairs)


def _count_denied(words: Sequence[str]) -> Counter[str]:
    """Count the words with a value directly after a negation, by class."""
    heavy = [word for word in words if word not in LIGHT]
    return Counter(class_of(other) for word, other in pairwise(heavy) if word in NEGATIONS)


def _values_changed_places(a: Sequence[str], b: Sequence[str]) -> bool:
    """Return True if two values changed places, with other words than those of a list between them."""
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
    """Return True if words may be a value, and are no phrase that may have any place: «since 2019», «in Graz»."""
    if len(words) == 1:
        return words[0] not in LIGHT or words[0] in {"user", "users", "i"}
    return not LIGHT.issuperset(words) and (words[0] not in LIGHT or words[0] in _DETERMINERS)
