"""Which older memory a newer one may replace: found by what it says was so before, and by what it is about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from math import log2
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memframe.audit.candidates import distinct
from memframe.audit.cues import Cue, cue_in, has_cue, rules_for
from memframe.audit.resemblance import class_of
from memframe.audit.statements import TOPICS, Statement, said_in, sentences_of, statement_of, statements_of
from memframe.audit.words import Words, without_accents

_WORDS = 16
_CLAIMS = 3
_RECENT = 150
"""Of a word that many memories have, only as many of the older ones are looked at, the latest first."""

_TOPIC_WEIGHT = 0.3
_WEAK = frozenset({"now", "moved", "denied"})

_BY_TELLING = (0.3, 0.85, 1.0)
"""What a likeness counts by how many words are shared that are neither a name nor a mere topic."""

_ANOTHER_PERSON = 0.3
_HALF = 0.5
_OF_RELATIVE = re.compile(
    r"\W*(?:the )?(?:\w+['\u2019]s|my|his|her|their) (?:(?:best|old|elder|younger|little|big) )?"
    r"(sister|brother|mother|father|mum|mom|dad|parents|son|daughter|wife|husband|aunt|uncle|cousin|nephew|niece|friend|"
    r"neighbou?r|colleague|roommate|flatmate|grandmother|grandfather|in-laws)s?\b(?! and)",
    re.IGNORECASE,
)
_OF_USER = re.compile(r"\W*(?:the )?(?:user|i|my|we|our)\b", re.IGNORECASE)

Rows = NDArray[np.int64]


class Succession(NamedTuple):
    """That a newer memory may replace an older one."""

    older: int
    newer: int
    score: float
    cue: Cue
    shared: tuple[str, ...]
    """Classes of words that both have, the rarest first."""


class Claim(NamedTuple):
    """What a statement with a cue says: of before, of now, and what it is about."""

    cue: Cue
    statement: Statement
    old: frozenset[str]
    new: frozenset[str]
    about: frozenset[str]
    beside: frozenset[str]
    """What the rest of the memory speaks of."""


class Weights(dict[str, float]):
    """How much each class of words tells: the less, the more often the store has it."""

    def __init__(self, words: Words) -> None:
        counts = np.bincount(words.said, minlength=len(words.classes)).tolist()
        super().__init__(
            (name, 1.0 / (1.0 + log2(n))) for name, n in zip(words.classes, counts, strict=True) if n
        )
        self.update(dict.fromkeys(TOPICS.values(), _TOPIC_WEIGHT))

    def __missing__(self, name: str) -> float:
        return 1.0

    def sum(self, names: frozenset[str]) -> float:
        """The weight of all of them together."""
        return sum(map(self.__getitem__, names))

    def share(self, part: frozenset[str], whole: frozenset[str]) -> float:
        """How much of the part is in the whole; of nothing it is nothing."""
        return self.sum(part & whole) / self.sum(part) if part else 0.0


def claims_of(text: str) -> list[Claim]:
    """What the statements of a text claim to have changed, the surest few."""
    rules = rules_for(text)
    cued = [
        (sentence, cue) for sentence in sentences_of(text) if (cue := cue_in(sentence, rules)) is not None
    ]
    everything = said_in(text) if cued else frozenset()
    claims = [_claim(cue, statement_of(sentence), everything) for sentence, cue in cued]
    return sorted(claims, key=lambda claim: -claim.cue.strength)[:_CLAIMS]


def _claim(cue: Cue, statement: Statement, everything: frozenset[str]) -> Claim:
    old = said_in(cue.old) & statement.said
    new = frozenset(name for name in said_in(cue.new) & statement.said if name[0] != "@") - old
    return Claim(cue, statement, old, new, statement.said - old - new, everything - statement.said)


class Judge:
    """Tells how likely a newer text replaces an older one.

    Parameters
    ----------
    common
        Words that the store writes in lower case, and that are no names at the beginning of a sentence.
    """

    def __init__(self, weights: Weights, common: set[str]) -> None:
        self._weights, self._common = weights, common
        self._common_classes = frozenset(map(class_of, common))
        self._names_of: dict[str, list[str]] = {}

    def successions(
        self, older: Iterable[int], newer: int, claims: Sequence[Claim], contents: Sequence[str]
    ) -> Iterator[Succession]:
        """For each of the older texts the best reason for which the newer one may replace it, if there is any."""
        for row in older:
            reasons = [reason for claim in claims for reason in self._reasons(claim, contents[row])]
            if reasons:
                score, cue, shared = max(reasons, key=lambda reason: reason[0])
                rarest = tuple(sorted(shared, key=lambda name: (-self._weights[name], name)))
                same = self._same_person(contents[row], contents[newer], cue)
                yield Succession(row, newer, score * same, cue, rarest)

    def _reasons(self, claim: Claim, old_text: str) -> Iterator[tuple[float, Cue, frozenset[str]]]:
        topic = claim.old | claim.about
        for statement in statements_of(old_text):
            shared = topic & statement.said
            if shared:
                score = self._likely(claim, statement, shared)
                if claim.cue.kind in _WEAK and has_cue(statement.text, claim.cue.kind):
                    score /= 2  # what both say the same way is no change between them
                if score > 0:
                    yield score, claim.cue, shared

    def _likely(self, claim: Claim, statement: Statement, shared: frozenset[str]) -> float:
        """How likely a claim is about a statement, from 0 to 1, by the words that both have."""
        weights = self._weights
        # values that only one of them has are what has changed, not what they are about
        about = claim.about - (claim.statement.values(self._common_classes) - statement.said)
        said = statement.said - (statement.values(self._common_classes) - claim.statement.said - claim.beside)
        covered = min(1.0, (weights.sum(shared) + weights.sum(claim.beside & said) / 2) / weights.sum(said))
        of_about = weights.share(about, statement.said)
        if claim.old:
            score = 0.45 * weights.share(claim.old, statement.said) + 0.25 * of_about + 0.3 * covered
        else:
            score = 0.5 * of_about + 0.5 * covered
        if claim.cue.kind == "denied":
            score *= covered
        score -= 0.3 * weights.share(claim.new, statement.said)
        if all(name[0] == "@" for name in shared) and covered < _HALF:
            score /= 2  # a mere topic, of which the older one says something else
        return score * claim.cue.strength * _BY_TELLING[min(self._n_telling(claim, shared), 2)]

    def _n_telling(self, claim: Claim, shared: frozenset[str]) -> int:
        """How many of the shared words are no mere names, all topics together counting as one."""
        names = claim.statement.values(self._common_classes) - claim.old
        return len({name if name[0] != "@" else "@" for name in shared if name not in names})

    def _same_person(self, old_text: str, new_text: str, cue: Cue) -> float:
        """Less than one where the texts name somebody, and not the same, or the newer one speaks of a relative."""
        relative = _OF_RELATIVE.match(new_text)
        if relative and relative[1].lower() not in old_text.lower():
            return _ANOTHER_PERSON
        exchanged = set(without_accents(f"{cue.old} {cue.new}").split())  # of them it speaks, they are nobody
        old, new = (self._names(text) for text in (old_text, new_text))
        new = [name for name in new if name not in exchanged]
        return 1.0 if not old or not new or old[0] in new or new[0] in old else _ANOTHER_PERSON

    def _names(self, text: str) -> list[str]:
        if text not in self._names_of:
            names = (name for statement in statements_of(text) for name in statement.names)
            user = ["user"] if _OF_USER.match(text) else []
            self._names_of[text] = [*user, *(name for name in names if name not in self._common)]
        return self._names_of[text]


class Older:
    """For a memory the older ones of the same user that have most in common with it.

    Parameters
    ----------
    age, owners
        The place of each text in time, and the number of its owner.
    newer
        The texts that will be asked about.
    """

    def __init__(self, words: Words, age: Rows, owners: Rows, newer: Rows) -> None:
        self._age, self._owners = age, owners
        topics = sorted(set(TOPICS.values()))
        names = [*words.classes, *topics]
        self._number = {name: number for number, name in enumerate(names)}
        said, rows = _with_topics(
            words, [self._number.get(TOPICS.get(name, ""), -1) for name in words.classes]
        )
        wanted, is_newer = np.zeros(len(names), bool), np.zeros(len(words), bool)
        is_newer[newer] = True
        wanted[said[is_newer[rows]]] = True
        said, rows = said[wanted[said]], rows[wanted[said]]
        self._n_names, self._n_texts = len(names), max(len(words), 1)
        # sorted by owner, word and age, so that what is older than a text is what stands before it
        self._keys = distinct((owners[rows] * self._n_names + said) * self._n_texts + age[rows])
        self._of_age = np.argsort(age)

    def like(self, newer: int, weights: dict[str, float], most: int) -> list[int]:
        """The likest few, by the weight of the words that they have."""
        known = sorted((-weight, name) for name, weight in weights.items() if name in self._number)[:_WORDS]
        keys = self._owners[newer] * self._n_names + np.array(
            [self._number[name] for _, name in known], np.int64
        )
        starts = np.searchsorted(self._keys, keys * self._n_texts)
        ends = np.searchsorted(self._keys, keys * self._n_texts + self._age[newer])
        starts = np.maximum(starts, ends - _RECENT)
        ages = np.concatenate([keys[:0], *(self._keys[a:b] for a, b in zip(starts, ends, strict=True))])
        shared = np.repeat([-weight for weight, _ in known], ends - starts)
        return self._likest(ages % self._n_texts, shared)[:most]

    def _likest(self, ages: Rows, shared: NDArray[np.float64]) -> list[int]:
        """Texts of these ages, the one that shares most first, of two that share as much the newer one."""
        if not len(ages):
            return []
        order = np.argsort(ages, kind="stable")
        ages = ages[order]
        begin = np.flatnonzero(np.diff(ages, prepend=-1))
        totals = np.add.reduceat(shared[order], begin)
        likest: list[int] = self._of_age[ages[begin][np.lexsort((-ages[begin], -totals))]].tolist()
        return likest


def _with_topics(words: Words, topic_of: list[int]) -> tuple[Rows, Rows]:
    """The classes of all heavy words and the topics that they speak of, and the text of each."""
    heavy = words.heavy()
    said, rows = words.said[heavy].astype(np.int64), words.rows()[heavy]
    topics = np.array(topic_of, np.int64)[said]
    return np.concatenate([said, topics[topics >= 0]]), np.concatenate([rows, rows[topics >= 0]])
