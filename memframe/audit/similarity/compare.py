"""Comparison: what two texts differ in, once everything is taken away that says nothing.

Two texts are laid side by side, word by word, by class: km is kilometres. Words that both have in another place, typing
errors and the stump at which a text was cut do not count. The texts are near if what is left adds nothing (articles,
fillers), if words that carry no value are missing in one of them but none stands for another («he», «she»), and if the
one goes on where the other ends. Everything else is a value: one that was exchanged makes a changed text, a denial on
one side turns it around, and all else sets the texts apart. It is better to leave two copies than to merge two facts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
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
    TELLING,
    TIMES,
    UNITS,
    WEAK,
    are_opposed,
    class_of,
    is_date,
    is_digits,
    is_known,
    is_number,
    is_slip,
    may_deny,
    weak_name,
)
from memframe.audit.tokenize import Letters, Words

Verdict = Literal["near", "changed", "apart"]
Places = list[tuple[list[str], list[str]]]

_LIGHT_WEIGHT = 0.25
"""What a word that carries no value counts beside one that does."""
_MAX_SLIPS, _MAX_OPPOSED = 2, 4
_MAX_LOOSE_PAIRS = 10_000
"""Pairs of words, one of each text, that are compared; texts that differ in more say different things."""
_MIN_SCORE = 0.8
"""Of texts that say the same: of a few words, several light ones more say something else."""
_LONG = 8
"""Words from which on a text may be the beginning of another one without breaking off."""
_BROKEN_OFF, _BEGINNING, _MOST = 0.2, 0.4, 0.6
"""Least share of the whole that a part is: where it breaks off; where it is long; where it may be a sentence of it."""


class Difference(NamedTuple):
    """Relation of two texts."""

    verdict: Verdict
    kind: str = ""
    """Of near texts: spelling, order, typing, truncated; of changed ones: number, date, word, polarity."""
    score: float = 0.0
    """Share of the words, by weight, that both texts have."""
    n_shared: int = 0
    """How many words that carry a value both have."""
    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    """The words that were exchanged."""


APART = Difference("apart")


def weigh(words: Iterable[str]) -> float:
    """Add up what words tell: those that carry a value count one each."""
    return sum(_LIGHT_WEIGHT if word in LIGHT else 1.0 for word in words)


class Comparer:
    """Compares the texts of one store, two at a time.

    For speed a text is a string with one character for each class of words; so it is C that aligns them.
    """

    def __init__(self, words: Words, texts: pa.Array) -> None:
        self.words, self._texts = words, texts
        self._letters = Letters((part.said for part in words.parts()), np.diff(words.starts))
        counts = np.bincount(words.tokens, minlength=len(words.vocabulary))
        self.n_times: dict[str, int] = dict(zip(words.vocabulary, counts.tolist(), strict=True))
        self._once = counts == 1
        self._weights = words.fold(np.add, np.where(words.heavy_classes(), 1.0, _LIGHT_WEIGHT)).tolist()
        heavy = np.fromiter((word not in LIGHT for word in words.vocabulary), bool, len(words.vocabulary))
        self._fullness = np.column_stack(
            [words.n_of(some, by="tokens") for some in (heavy, heavy & (counts > 1))]
        )

    def compare(self, row: int, other: int) -> Difference:
        """Decide what two texts are to each other."""
        a, b = self._letters.of(row), self._letters.of(other)
        if a == b:
            return Difference("near", "spelling", 1.0)
        layout = TextLayout(
            a, b, self.words.tokens_of(row), self.words.tokens_of(other), self.words.vocabulary
        )
        comparison = _TextComparison(layout, self._weights[row], self.n_times)
        if not comparison.is_promising():
            return APART
        difference = comparison.decide()
        if difference is None:
            part, whole = sorted((row, other), key=lambda place: len(self._letters.of(place)))
            difference = comparison.decide_part(str(self._texts[part]), str(self._texts[whole]))
        if difference.verdict != "apart" and layout.n_moved:
            turned = _order_matters(*_in_both(self.words.of(row), self.words.of(other)))
            return APART if turned else difference
        return difference

    def is_same(self, row: int, other: int) -> bool:
        """Tell whether two texts have the same words, by class, in the same order."""
        return self._letters.of(row) == self._letters.of(other)

    def fullness(self, row: int) -> tuple[int, int]:
        """Count how much a text says: its words that carry a value, and how many of them other texts have too."""
        n_said, n_known = self._fullness[row].tolist()
        return n_said, n_known

    def n_slips(self, row: int) -> int:
        """Count the words of a text that may be typing errors: no other text has them, and nobody else knows them."""
        tokens = self.words.tokens_of(row)
        once = tokens[self._once[tokens]].tolist()
        return sum(not is_known(self.words.vocabulary[token]) for token in once)


# ---- laying two texts side by side


class TextLayout:
    """Two different texts side by side: where they differ, and which words of each found no equal in the other."""

    def __init__(
        self, a: str, b: str, tokens: NDArray[np.int32], others: NDArray[np.int32], vocabulary: Sequence[str]
    ) -> None:
        runs = _runs(a, b)
        self.places: Places = [
            ([vocabulary[t] for t in tokens[i:j].tolist()], [vocabulary[t] for t in others[k:m].tolist()])
            for i, j, k, m in runs
        ]
        before, after = ([word for place in self.places for word in place[side]] for side in (0, 1))
        left = "".join(a[run[0] : run[1]] for run in runs)
        right = "".join(b[run[2] : run[3]] for run in runs)
        self.left, self.right = _loose(before, left, right, after), _loose(after, right, left, before)
        """The words of each that found no equal, in their order."""
        self.n_placed = len(before), len(after)
        """How many words of each stand in the places."""
        self.n_moved = len(before) - len(self.left)
        """How many words of the one stand somewhere else in the other."""
        self.n_words = len(a), len(b)
        end = runs[-1]
        self.ends = (
            before[-1] if end[1] == len(a) and before else "",
            after[-1] if end[3] == len(b) and after else "",
        )
        """The last word of each text, if it lies in one of the places."""
        self.is_open = end[1] == len(a) and end[3] == len(b)
        """Whether the texts differ at their ends."""


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


def _loose(words: Sequence[str], classes: str, others: str, other_words: Sequence[str]) -> list[str]:
    """Choose words, in order, of which the other side has too few; first those that it has in another form."""
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


# ---- order


def _in_both(words: Sequence[str], others: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of two texts that both have, by class, as often as both have them."""
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


def _order_matters(words: Sequence[str], others: Sequence[str]) -> bool:
    """Tell whether of two texts with the same words one says something else by their order.

    >>> _order_matters("from leeds to ghent".split(), "from ghent to leeds".split())
    True
    >>> _order_matters("likes hiking and chess".split(), "likes chess and hiking".split())
    False
    """
    return (
        _values_changed_places(words, others)
        or _denies_another(words, others)
        or _numbers_turned(words, others)
    )


_JOINING = {"and", "or", "und", "oder", "et", "ou", "y", "e", "o"}
_DETERMINERS = frozenset(
    [
        "a",
        "an",
        "the",
        "my",
        "your",
        "his",
        "her",
        "its",
        "our",
        "their",
        "der",
        "die",
        "das",
        "den",
        "dem",
        "ein",
        "eine",
        "le",
        "la",
        "les",
        "el",
        "los",
    ]
)
_USERS = frozenset({"user", "users", "i"})


def _values_changed_places(a: Sequence[str], b: Sequence[str]) -> bool:
    """Tell whether two values changed places around words that stayed."""
    start, end = 0, len(a)
    while start < end and class_of(a[start]) == class_of(b[start]):
        start += 1
    while start < end and class_of(a[end - 1]) == class_of(b[end - 1]):
        end -= 1
    before, after = list(map(class_of, a[start:end])), list(map(class_of, b[start:end]))
    for n_first in (1, 2):
        for n_last in (1, 2):
            first, between, last = before[:n_first], before[n_first:-n_last], before[-n_last:]
            if not between or [*last, *between, *first] != after or set(between) <= _JOINING:
                continue
            values = a[start : start + n_first], a[end - n_last : end]
            is_time = [any(word in TIMES for word in value) for value in values]
            if all(map(_may_be_value, values)) and is_time[0] == is_time[1]:
                return not _are_items(a[start:end])
    return False


def _may_be_value(words: Sequence[str]) -> bool:
    """Tell whether words may be a value, rather than a phrase that may stand anywhere: «since 2019», «in Graz»."""
    if len(words) == 1 and words[0] in _USERS:
        return True
    is_heavy = any(word not in LIGHT for word in words)
    return is_heavy and (len(words) == 1 or words[0] not in LIGHT or words[0] in _DETERMINERS)


def _are_items(words: Sequence[str]) -> bool:
    """Tell whether words are a list of single words with one conjunction: «Leeds, Ghent and Graz»."""
    return (
        len(words) > 3
        and words[-2] in _JOINING
        and not any(word in LIGHT for word in (*words[:-2], words[-1]))
    )


def _denies_another(words: Sequence[str], others: Sequence[str]) -> bool:
    """Tell whether of two texts with the same words one denies another word, also if it is read backwards."""
    if NEGATIONS.isdisjoint(words):
        return False
    return _denied(words) != _denied(others) and (
        _denied(words) != _denied(others[::-1]) or _denied(words[::-1]) != _denied(others)
    )


def _denied(words: Sequence[str]) -> Counter[str]:
    said = [word for word in words if word not in LIGHT]
    return Counter(class_of(other) for word, other in pairwise(said) if word in NEGATIONS)


def _numbers_turned(words: Sequence[str], others: Sequence[str]) -> bool:
    """Tell whether two numbers that follow each other do so the other way round in the other text: «3/5», «5/3»."""
    pairs, turned = (
        {(class_of(x), class_of(y)) for x, y in pairwise(some) if is_number(x) and is_number(y)}
        for some in (words, others)
    )
    return any((y, x) in turned and (y, x) not in pairs for x, y in pairs)


# ---- verdicts


class _TextComparison:
    """Two texts laid side by side, on the way to a verdict."""

    def __init__(self, layout: TextLayout, weight: float, n_times: Mapping[str, int]) -> None:
        self._layout, self._n_times = layout, n_times
        self._left, self._right = layout.left, layout.right
        self._shared = weight - weigh(layout.left)
        self._n_slips = 0
        self._is_cut = False

    def is_promising(self) -> bool:
        """Tell whether the texts differ in few enough words to be compared, and not in numbers of several places."""
        n_left, n_right = (sum(word not in LIGHT for word in side) for side in (self._left, self._right))
        if (
            min(n_left, n_right) > _MAX_SLIPS + self._shared / 4
            or len(self._left) * len(self._right) > _MAX_LOOSE_PAIRS
        ):
            return False
        if len(self._layout.places) == 1 or not any(map(is_digits, self._right)):
            return True
        numbers = {word for word in self._left if is_digits(word)}
        return sum(not numbers.isdisjoint(before) for before, _ in self._layout.places) <= 1

    def decide(self) -> Difference | None:
        """Decide by the words alone; None where one text may be the beginning of the other one."""
        if self._left and self._right:
            self._settle_cut(self._left, self._right, *self._layout.ends)
            self._settle_cut(self._right, self._left, *reversed(self._layout.ends))
            self._settle_slips()
            self._settle_slips(careless=self._n_slips > 0)
        places = self._loose_places()
        if any(map(_exchange_weak, places)):
            return self._polarity() or APART
        valued = [(_values(before), _values(after)) for before, after in places]
        valued = [place for place in valued if place != ([], [])]
        if not valued:
            if self._score() <= _MIN_SCORE and not self._is_cut:
                return APART
            kind = "typing" if self._n_slips else "order" if self._layout.n_moved else "spelling"
            return Difference("near", "truncated" if self._is_cut else kind, self._score())
        exchanged = [place for place in valued if all(place)]
        if len(valued) == len(exchanged) == 1:
            return self._polarity() or self._changed(*exchanged[0])
        return self._polarity() or (APART if exchanged else None)

    def decide_part(self, part: str, whole: str) -> Difference:
        """Decide whether one text is the beginning of the other one, by the words in which alone the other goes on."""
        *others, (before, after) = self._loose_places()
        is_last = self._layout.is_open and not any(_values(side) for place in others for side in place)
        if not is_last or (before and after):
            return APART
        more, n_words = before or after, min(self._layout.n_words)
        share = self._shared / (self._shared + weigh(more))
        if self._is_cut or _breaks_off(part):
            least = _BROKEN_OFF
        else:
            least = _BEGINNING
            if n_words < _LONG or _goes_on_otherwise(part, whole, more, is_short=share < _MOST):
                return APART
        if share < least or self._shared < 1:
            return APART
        return Difference("near", "truncated", share)

    def _settle_slips(self, *, careless: bool = False) -> None:
        """Take words of both sides away that stand in the same place and are the same but for a typing error."""
        for before, after in self._layout.places:
            near = after[: len(before) + 2]
            for word in sorted(before, key=LIGHT.__contains__) if near else ():
                if is_digits(word) or word not in self._left:
                    continue
                others = (
                    one for one in near if one in self._right and self._is_slip(word, one, careless=careless)
                )
                if other := next(others, None):
                    self._left.remove(word)
                    self._right.remove(other)
                    self._shared += max(weigh([word]), weigh([other]))
                    self._n_slips += 1

    def _is_slip(self, word: str, other: str, *, careless: bool) -> bool:
        if abs(len(word) - len(other)) > 2:
            return False
        n, n_other = self._n_times[word], self._n_times[other]
        return min(n, n_other) <= 1 + max(n, n_other) // 20 and is_slip(
            word, n, other, n_other, careless=careless
        )

    def _settle_cut(self, side: list[str], other_side: list[str], end: str, other_end: str) -> None:
        """Take the last word of a text away that ends in its middle."""
        if not end or not side or side[-1] != end:
            return
        before, after = self._layout.places[-1]
        whole = next((word for word in (after if before[-1:] == [end] else before) if word in other_side), "")
        if whole.startswith(end) and self._is_stump(end, whole, goes_on=other_end != whole):
            side.pop()
            other_side.remove(whole)
            self._shared += weigh([whole])
            self._is_cut = True

    def _is_stump(self, end: str, whole: str, *, goes_on: bool) -> bool:
        """Tell whether a text breaks off in a word; if the other one ends there, too, it has to be no word."""
        is_long = min(self._layout.n_words) >= _LONG
        if is_digits(end):
            return goes_on and is_long
        if goes_on:
            return is_long or not is_known(end)
        return not is_known(end) and self._n_times[end] == 1 and (is_long or len(whole) - len(end) <= 2)

    def _loose_places(self) -> Places:
        """Return the places with those of their words alone that found no equal."""
        if (len(self._left), len(self._right)) == self._layout.n_placed:
            return self._layout.places
        left, right = Counter(self._left), Counter(self._right)
        return [(_take(left, before), _take(right, after)) for before, after in self._layout.places]

    def _score(self) -> float:
        return self._shared / (self._shared + weigh(self._left) + weigh(self._right))

    def _polarity(self) -> Difference | None:
        """Return that one text says the opposite of the other, if nothing else of theirs differs."""
        others = {w for w in (*self._left, *self._right) if w not in LIGHT and w not in NEGATIONS}
        if len(others) > _MAX_OPPOSED or self._shared < 1:
            return None
        opposed = {w for x in self._left for y in self._right if are_opposed(x, y) for w in (x, y)}
        denials = [sum(word in NEGATIONS for word in side) for side in (self._left, self._right)]
        if not others <= opposed or (not opposed and denials[0] == denials[1]):
            return None
        return Difference(
            "changed", "polarity", self._score(), int(self._shared), tuple(self._left), tuple(self._right)
        )

    def _changed(self, before: list[str], after: list[str]) -> Difference:
        """One value that was exchanged for another one of its kind."""
        longest = max(len(before), len(after))
        words = (*before, *after)
        if (
            any(map(is_date, before))
            and any(map(is_date, after))
            and all(is_date(w) or is_number(w) for w in words)
        ):
            kind, most = "date", 4
        elif any(map(is_number, before)) and any(map(is_number, after)):
            kind, most = "number", 2
            if not all(is_number(word) or word in UNITS for word in words):
                return APART
        else:
            kind, most = "word", 3
        if longest > most or self._shared < 1 or not STRONG.isdisjoint(words):
            return APART
        score = self._shared / (self._shared + 1)
        return Difference("changed", kind, score, int(self._shared), tuple(before), tuple(after))


def _take(left: Counter[str], words: Iterable[str]) -> list[str]:
    taken = []
    for word in words:
        if left[word] > 0:
            left[word] -= 1
            taken.append(word)
    return taken


def _values(words: Iterable[str]) -> list[str]:
    """Choose words that may neither be missing nor be exchanged."""
    return [word for word in words if word not in EMPTY and word not in WEAK]


def _exchange_weak(place: tuple[list[str], list[str]]) -> bool:
    """Tell whether words that carry no value stand for others: «he» for «she», «is» for «was»."""
    before, after = ({weak_name(word) for word in side if word in WEAK} for side in place)
    return bool(before - after) and bool(after - before)


# ---- where a text breaks off

_WORD = re.compile(r"[^\W_]+")
_BREAKS_OFF = ("...", "\u2026", ",", "-", "\u2013")
_SENTENCE_END = re.compile(r"[.!?;](?:\s|$)|\n")
_ENDS_NO_SENTENCE = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "and",
        "or",
        "to",
        "from",
        "in",
        "on",
        "at",
        "for",
        "with",
        "by",
        "is",
        "are",
        "was",
        "were",
        "as",
        "has",
        "have",
        "had",
        "will",
        "would",
        "can",
        "could",
        "that",
        "which",
        "who",
        "his",
        "her",
        "their",
        "my",
        "your",
        "our",
        "be",
        "been",
        "not",
        "la",
        "el",
        "le",
        "les",
        "der",
        "die",
        "das",
        "und",
        "de",
        "en",
    ]
)
_TERMS = TELLING | {
    "but",
    "if",
    "when",
    "whenever",
    "unless",
    "until",
    "except",
    "would",
    "could",
    "wenn",
    "falls",
    "si",
}


def _breaks_off(part: str) -> bool:
    """Tell whether a text ends in the middle of a sentence, as far as it shows: in dots, or in a light word."""
    words = _WORD.findall(part[-60:])
    return part.rstrip().endswith(_BREAKS_OFF) or bool(words and words[-1].lower() in _ENDS_NO_SENTENCE)


def _goes_on_otherwise(part: str, whole: str, more: Sequence[str], *, is_short: bool) -> bool:
    """Tell whether a longer text takes back or limits what a shorter one says, or merely begins with that sentence.

    >>> whole = "Ada likes tea. She lives in Graz."
    >>> _goes_on_otherwise("Ada likes tea", whole, ["lives", "graz"], is_short=True)
    True
    >>> _goes_on_otherwise("Works on Monday", "Works on Monday only", ["only"], is_short=False)
    True
    """
    words = _WORD.findall(part[-80:])
    found = (
        re.search(rf"\b{re.escape(words[-1])}\b", whole[max(0, len(part) - 80) :], re.IGNORECASE)
        if words
        else None
    )
    if found is None:
        return may_deny(more) or not _TERMS.isdisjoint(more)
    tail = found.string[found.end() :]
    end = _SENTENCE_END.search(tail)
    if end and not _WORD.search(tail[: end.start()]):
        return is_short
    following = [word.lower() for word in _WORD.findall(tail[: end.start()] if end else tail)]
    return may_deny(following) or not _TERMS.isdisjoint(following)
