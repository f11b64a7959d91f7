"""Comparison: what two texts differ in, once everything is taken away that says nothing.

Of two texts the words that are in both are gone already, by class: km is kilometres. Then go typing errors, words
written together, and the stump at which a text was cut. What is left on one side only is more said or less said;
what is left on both sides, and in the same place, is a value that was exchanged; and a denial on one side turns
the sentence around.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from memframe.audit.language.known_words import is_known
from memframe.audit.language.lexicon import (
    CHANGING,
    INTENDING,
    LIGHT,
    LIMITING,
    MINUTES,
    NEGATIONS,
    UNLIKE,
)
from memframe.audit.language.opposites import are_opposed
from memframe.audit.language.resemblance import is_digits, is_number, same_moment
from memframe.audit.language.slips import is_slip, may_deny
from memframe.audit.likeness.difference import APART, Difference, heavy, weight_of
from memframe.audit.likeness.exchanges import is_amount, kind_of, n_light, n_values, valued
from memframe.audit.likeness.layout import Layout, Places
from memframe.audit.likeness.voice import is_on_terms, is_other_voice, is_over_in_one

_MOST_SLIPS, _MOST_EXCHANGED = 2, 2.5
_MOST_LOOSE_PAIRS = 10_000
"""Pairs of words, one of each text, that are compared; texts that differ in more say different things."""
_LONG = 8
"""Words from which on a text may be cut by its length."""
_SHORT = 3
"""Words that may tell of a change as an end of the sentence, rather than of something else."""

_TELLING = CHANGING | INTENDING | LIMITING | UNLIKE


class Comparison:
    """Two texts laid side by side, on the way to a verdict.

    Parameters
    ----------
    weight
        Of all words of the one text.
    n_times
        How often each word stands in the store.
    """

    def __init__(self, layout: Layout, weight: float, n_times: Mapping[str, int]) -> None:
        self._layout, self._n_times = layout, n_times
        self._left, self._right = layout.left, layout.right
        self._shared = weight - weight_of(layout.left)
        self._settled: set[str] = set()
        self._way = "spelling"

    def judged(self) -> Difference:
        """What the two are to each other; to be asked once."""
        if min(len(heavy(self._left)), len(heavy(self._right))) > _MOST_SLIPS + self._shared:
            return APART
        if len(self._left) * len(self._right) > _MOST_LOOSE_PAIRS:
            return APART
        if self._left and self._right:
            self._settle()
        left, right = self._valued()
        most = _MOST_EXCHANGED + self._shared / 8
        if min(len(left), len(right)) > most and min(n_values(left), n_values(right)) > most:
            return APART
        opposites = self._opposites()
        if opposites or self._denied():
            return self._turned(left, right, opposites)
        if is_other_voice(self._left, self._right) or is_over_in_one(self._layout.places):
            return APART
        if not left and not right:
            return Difference(
                "near", self._way, self._shared / (self._shared + weight_of(self._left + self._right))
            )
        if self._layout.n_moved > 1 + self._layout.n_words[0] // 10:
            return self._in_another_order(left, right)
        exchanges = self._exchanges()
        return self._exchanged(exchanges, left, right) if exchanges else self._part(left, right)

    def _settle(self) -> None:
        """Take away words of both sides that are the same, however they are written."""
        if self._may_settle():
            self._settle_slips()
            if self._way == "typing":
                self._settle_slips(careless=True)
        if len(self._left) != len(self._right):
            self._settle_joined(self._left, self._right)
            self._settle_joined(self._right, self._left)
        self._settle_cut(self._left, self._right, *self._layout.ends)
        self._settle_cut(self._right, self._left, *reversed(self._layout.ends))

    def _settle_slips(self, *, careless: bool = False) -> None:
        """Take away words that are the same but for a slip, or another spelling of a moment."""
        for word in sorted(self._left, key=LIGHT.__contains__):
            other = next(
                (other for other in self._right if self._slipped(word, other, careless=careless)), None
            )
            if other is not None:
                self._left.remove(word)
                self._right.remove(other)
                self._settled |= {word, other}
                self._shared += max(weight_of([word]), weight_of([other]))
                self._way = "typing"

    def _may_settle(self) -> bool:
        """Whether a word of them is rare beside the others, or a moment: all that may be a slip."""
        words = self._left + self._right
        counts = [self._n_times[word] for word in words]
        return min(counts) <= 1 + max(counts) // 20 or any(MINUTES in word for word in words)

    def _slipped(self, word: str, other: str, *, careless: bool) -> bool:
        n, n_other = self._n_times[word], self._n_times[other]
        if is_digits(word) or is_digits(other):
            return is_digits(word) and is_digits(other) and same_moment(word, other)
        return min(n, n_other) <= 1 + max(n, n_other) // 20 and is_slip(
            word, n, other, n_other, careless=careless
        )

    def _settle_joined(self, some: list[str], whole: list[str]) -> None:
        """Take away words that are written together on one side: «over night», «DE89 3704» and «DE893704»."""
        for word in [word for word in whole if len(word) > 3]:
            for start, first in enumerate(some[:-1]):
                end = _end_of_join(some, start, word) if word.startswith(first) else 0
                if end:
                    self._shared += weight_of(some[start:end])
                    self._settled |= {word, *some[start:end]}
                    del some[start:end]
                    whole.remove(word)
                    break

    def _settle_cut(self, side: list[str], other_side: list[str], end: str, other_end: str) -> None:
        """Take away the last word of a text that ends in its middle."""
        if end and side and side[-1] == end:
            whole = next((word for word in self._beyond(end) if word in other_side), "")
            if whole.startswith(end) and self._is_stump(end, whole, goes_on=other_end != whole):
                self._settled |= {side.pop(), whole}
                other_side.remove(whole)

    def _beyond(self, end: str) -> list[str]:
        """What the other text has from where one of them ends."""
        before, after = self._layout.places[-1]
        return after if before[-1:] == [end] else before

    def _is_stump(self, end: str, whole: str, *, goes_on: bool) -> bool:
        """Whether a text breaks off in a word; if the other one ends there, too, it has to be no word of its own."""
        is_long = min(self._layout.n_words) >= _LONG
        if goes_on:
            return is_long or not is_known(end)
        return not is_known(end) and self._n_times[end] == 1 and (is_long or len(whole) - len(end) <= 2)

    def _valued(self) -> tuple[list[str], list[str]]:
        """What is left and carries a value."""
        return valued(self._left, self._right), valued(self._right, self._left)

    def _opposites(self) -> set[str]:
        """Words of one side of which the other side has the opposite."""
        pairs = ((word, other) for word in self._left for other in self._right)
        return {word for pair in pairs if are_opposed(*pair) for word in pair}

    def _denied(self) -> bool:
        """Whether one side denies what both say."""
        denies, denied = (any(word in NEGATIONS for word in side) for side in (self._left, self._right))
        return denies != denied and self._denied_inside(self._right if denied else self._left)

    def _denied_inside(self, loose: list[str]) -> bool:
        """Whether a text denies what both say, rather than adding a denial of its own."""
        for before, after in self._layout.places:
            for added, replaced in ((after, before), (before, after)):
                if any(word in NEGATIONS and word in loose for word in added):
                    others = [word for word in heavy(added) if word not in NEGATIONS]
                    return len(others) - len(heavy(replaced)) <= 1
        return False

    def _exchanges(self) -> Places:
        """Of the places those where both texts have words that carry a value and are not the same."""
        loose = (
            [[w for w in side if w not in self._settled] for side in place] for place in self._layout.places
        )
        sides = ((valued(before, after), valued(after, before)) for before, after in loose)
        return [(before, after) for before, after in sides if before and after]

    def _exchanged(self, exchanges: Places, left: list[str], right: list[str]) -> Difference:
        """Values that were exchanged, where hardly anything else differs."""
        before = [word for place, _ in exchanges for word in place]
        after = [word for _, place in exchanges for word in place]
        n_elsewhere = max(0, len(left) - len(before)) + max(0, len(right) - len(after))
        if n_elsewhere > 1 + self._shared / 8 or len(exchanges) > 2 + self._shared // 16:
            return APART
        kind = kind_of(before, after)
        if kind == "word" and (
            n_elsewhere > self._shared / 8 or not self._is_clean(len(exchanges), before, after)
        ):
            return APART
        n_places = len(exchanges) + sum(map(is_amount, exchanges))
        return self._changed(kind, before, after, n_places)

    def _is_clean(self, n_places: int, before: list[str], after: list[str]) -> bool:
        """Whether words were exchanged for words, rather than one way of saying for another one."""
        left, right = (set(side) for side in (before, after))
        n_beside = sum(
            n_light(a) + n_light(b)
            for a, b in self._layout.places
            if not left.isdisjoint(a) or not right.isdisjoint(b)
        )
        return max(len(before), len(after)) <= 1 + 2 * n_places and n_beside <= n_places

    def _part(self, left: list[str], right: list[str]) -> Difference:
        """A text that is a part of the other one, or has one value another in another place."""
        less, more = sorted((left, right), key=len)
        if less and len(less) == len(more):
            return self._changed(kind_of(left, right), left, right, len(more))
        if len(less) > 1 + self._shared // 20 or any(is_number(word) or word in _TELLING for word in less):
            return APART
        return self._held(more, 0.75 if less else 0.6)

    def _in_another_order(self, left: list[str], right: list[str]) -> Difference:
        less, more = sorted((left, right), key=len)
        if not less:
            return self._held(more, 0.85)
        if len(more) <= 2 and (len(less) == len(more) or any(map(is_number, less))):
            return self._changed(kind_of(left, right), left, right, len(more))
        return APART

    def _turned(self, left: list[str], right: list[str], opposites: set[str]) -> Difference:
        """The opposite, where nothing else is exchanged for something else, or hardly anything."""
        turning = opposites | NEGATIONS
        others = [[word for word in side if word not in turning] for side in (left, right)]
        if any(turning.isdisjoint([*before, *after]) for before, after in self._exchanges()):
            return APART
        if any(others):
            return self._changed("polarity", left, right, 1, is_less=self._denies_less(*others))
        if self._shared < 1:
            return APART
        return Difference(
            "changed", "polarity", self._shared / (self._shared + 1), 1, tuple(left), tuple(right)
        )

    def _denies_less(self, left: list[str], right: list[str]) -> bool:
        """Whether one text denies, and says nothing besides, what the other one tells more of."""
        return any(
            more and not less and not NEGATIONS.isdisjoint(side)
            for side, less, more in ((self._left, left, right), (self._right, right, left))
        )

    def _changed(
        self, kind: str, left: list[str], right: list[str], n_places: int, *, is_less: bool = False
    ) -> Difference:
        n_exchanged = max(n_values(left), n_values(right))
        n_told = (
            1.5 if kind == "word" and n_places == 1 and n_exchanged == 2 else max(n_exchanged, 1)
        )  # «pad thai»
        score = self._shared / (self._shared + n_told)
        least_shared, least_score = (1.0, 0.5) if kind in {"number", "date"} else (1.25, 0.55)
        if self._shared < least_shared or score < (0.5 if is_less else least_score):
            return APART
        most = 3 if is_less else 1 if kind == "polarity" else _MOST_EXCHANGED
        if n_exchanged > most + self._shared / 8:
            return APART
        return Difference("changed", kind, score, n_places, tuple(left), tuple(right))

    def _held(self, more: list[str], needed: float) -> Difference:
        """One text that holds the other one, of which it has to be this share."""
        if self._tells_of_change(more) or any(map(may_deny, more)):
            return APART
        share = self._shared / (self._shared + weight_of(more))
        n_left = min(self._layout.n_words) - self._layout.common_start
        is_start = n_left == 0 or (n_left == 1 and not self._settled.isdisjoint(self._layout.ends))
        if share < (0.4 if is_start and self._shared > 4 else needed) or self._shared < 1:
            return APART
        if not is_start and (self._goes_to_number(more) or is_on_terms(self._layout)):
            return APART
        return Difference("near", "truncated" if is_start else "extended", share)

    def _tells_of_change(self, more: list[str]) -> bool:
        """Whether the text that says more tells of a change or of an intention, and not only far beyond it."""
        places = self._layout.places
        if any(self._layout.ends) and max(len(heavy(side)) for side in places[-1]) > _SHORT:
            places = places[:-1]
        return any(word in _TELLING and word in more for place in places for side in place for word in side)

    def _goes_to_number(self, more: list[str]) -> bool:
        """Whether the text that says more goes on to another number: «from 900 to 960»."""
        pairs = (pair for place in self._layout.places for side in place for pair in pairwise(side))
        return any(word == "to" and is_number(number) and number in more for word, number in pairs)


def _end_of_join(parts: Sequence[str], start: int, whole: str) -> int:
    """Where the parts from ``start`` on have become the whole word; 0 where they never do."""
    joined = parts[start]
    for end in range(start + 1, len(parts)):
        joined += parts[end]
        if joined == whole:
            return end + 1
        if not whole.startswith(joined):
            return 0
    return 0
