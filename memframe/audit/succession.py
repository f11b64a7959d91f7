"""Whether a newer memory replaces an older one: told by what it says was so before, and by what it is about."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import fsum, log2
from typing import NamedTuple

from memframe.audit.claims import Claim
from memframe.audit.language.cues import Cue, has_cue
from memframe.audit.language.known_words import is_common, is_name
from memframe.audit.language.resemblance import class_of
from memframe.audit.language.statements import (
    TOPICS,
    Statement,
    names_in,
    said_in,
    statements_of,
)
from memframe.audit.language.words import Words, without_accents

LEAST_SCORE = 0.25
"""What is less likely is not told."""

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
_OF_THE_PAST = re.compile(
    r"\bfrom (?:19|20)\d\d (?:to|until|till) (?:19|20)\d\d\b|\b(?:19|20)\d\d ?[–-] ?(?:19|20)\d\d\b",
    re.IGNORECASE,
)
"""What an older memory tells of as over, so that nothing replaces it."""

_INTENDED = re.compile(
    r"\b(?:will|going to|plans?|planning|wants?|hop(?:es|ing)|intends?|looking for|search(?:es|ing) for"
    r"|appl(?:ies|ying) for|waiting|sav(?:es|ing) for|training for|stud(?:ies|ying) for|engaged|pregnant"
    r"|expecting|due|upcoming|next)\b",
    re.IGNORECASE,
)
"""What is still to come, and is over once it was done."""

_FIELD = re.compile(r"\W{0,3}([^\W_][\w .'’-]{0,30}?)\s?[:=]")
_OF_ONE_FIELD = 0.7
"""How likely the value of a field replaces an older one of the same field, where a cue says so."""

_LABEL = re.compile(
    r"\W*(?:correction|update|edit|erratum|note|korrektur|corrección|correction)\W+", re.IGNORECASE
)
_OF_USER = re.compile(
    r"\W*(?:the |der |die |el |la |l['\u2019])?"
    r"(?:user|customer|client|i|my|we|our|nutzer(?:in)?|benutzer(?:in)?|ich|wir|utilisat(?:eur|rice)|je|nous|usuari[oa]|yo)\b",
    re.IGNORECASE,
)


class Succession(NamedTuple):
    """That a newer memory may replace an older one."""

    older: int
    newer: int
    score: float
    cue: Cue
    shared: tuple[str, ...]
    """Classes of words that both have, the rarest first."""


class Asked(NamedTuple):
    """A newer text, what it claims to have changed, and the older ones that it may mean, the likest first."""

    newer: int
    claims: list[Claim]
    older: list[int]


class Weights(dict[str, float]):
    """How much each class of words tells: the less, the more often the store has it."""

    def __init__(self, words: Words) -> None:
        counted = zip(words.classes, words.n_times().tolist(), strict=True)
        super().__init__((name, 1.0 / (1.0 + log2(n))) for name, n in counted if n)
        self.update(dict.fromkeys(TOPICS.values(), _TOPIC_WEIGHT))

    def __missing__(self, name: str) -> float:
        return 1.0

    def sum(self, names: frozenset[str]) -> float:
        """The weight of all of them together, the same to the last bit in whichever order a set is walked."""
        return fsum(map(self.__getitem__, names))

    def share(self, part: frozenset[str], whole: frozenset[str]) -> float:
        """How much of the part is in the whole; of nothing it is nothing."""
        return self.sum(part & whole) / self.sum(part) if part else 0.0


class _Newer(NamedTuple):
    """A newer text, as it is compared with one older text after the other."""

    row: int
    claims: list[tuple[Claim, frozenset[str], frozenset[str]]]
    """Each with all that it is about, and the values of its statement."""
    names: list[str]
    relative: str
    """Of whom the text speaks: sister, brother."""


class Judge:
    """Tells how likely newer texts replace older ones.

    Parameters
    ----------
    common
        Words that the store writes in lower case, and that are no names at the beginning of a sentence.
    """

    def __init__(self, weights: Weights, common: set[str]) -> None:
        self._weights, self._common = weights, common
        self._common_classes = frozenset(map(class_of, common))

    def successions(self, asked: Sequence[Asked], contents: Sequence[str]) -> Iterator[Succession]:
        """For each newer text and each older one the best reason for which it may replace that, if there is any.

        They come by older text, so that each of those is read once, and none is kept.
        """
        by_older: dict[int, list[_Newer]] = defaultdict(list)
        for one in asked:
            newer = self._newer(one, contents[one.newer])
            for row in one.older:
                by_older[row].append(newer)
        for row, several in by_older.items():
            yield from self._replacing(row, contents[row], several)

    def _newer(self, asked: Asked, text: str) -> _Newer:
        claims = [
            (claim, claim.old | claim.about, claim.statement.values(self._common_classes))
            for claim in asked.claims
        ]
        relative = _OF_RELATIVE.match(text)
        return _Newer(asked.newer, claims, self._names(text), relative[1].lower() if relative else "")

    def _replacing(self, row: int, text: str, several: Sequence[_Newer]) -> Iterator[Succession]:
        """Those of several newer texts that may replace an older one."""
        statements = statements_of(text)
        reasons = [
            (newer, max(found, key=lambda reason: reason[0]))
            for newer in several
            if (found := [reason for claim in newer.claims for reason in self._reasons(*claim, statements)])
        ]
        names = self._names(text) if reasons else []
        for newer, (score, cue, shared) in reasons:
            is_field = any(_is_same_field(claim.statement.text, text) for claim, *_ in newer.claims)
            is_same = is_field or (
                newer.relative in text.lower() and _may_be_same(names, _besides(newer.names, cue))
            )
            likely = score * (1.0 if is_same else _ANOTHER_PERSON)
            if likely >= LEAST_SCORE:
                rarest = tuple(sorted(shared, key=lambda name: (-self._weights[name], name)))
                yield Succession(row, newer.row, likely, cue, rarest)

    def _reasons(
        self, claim: Claim, topic: frozenset[str], values: frozenset[str], statements: Sequence[Statement]
    ) -> Iterator[tuple[float, Cue, frozenset[str]]]:
        for statement in statements:
            shared = topic & statement.said
            if shared and _may_end(statement.text, claim.cue):
                score = self._likely(claim, values, statement, shared)
                is_weak = score >= LEAST_SCORE and claim.cue.kind in _WEAK
                if is_weak and has_cue(statement.text, claim.cue.kind):
                    score /= 2  # what both say the same way is no change between them
                if _is_same_field(claim.statement.text, statement.text):
                    score = max(score, _OF_ONE_FIELD * claim.cue.strength)
                if score >= LEAST_SCORE:
                    yield score, claim.cue, shared

    def _likely(
        self, claim: Claim, values: frozenset[str], statement: Statement, shared: frozenset[str]
    ) -> float:
        """How likely a claim is about a statement, from 0 to 1, by the words that both have."""
        is_end = claim.cue.kind == "ended" and not claim.old  # «Sam died»: of whom is told by his name alone
        telling = shared if is_end else shared - values | shared & claim.old
        trust = _BY_TELLING[min(_n_telling(telling), 2)]
        if trust * claim.cue.strength < LEAST_SCORE:
            return 0.0
        weights, old_values = self._weights, statement.values(self._common_classes)
        old_said = statement.said
        if claim.cue.kind == "fulfilled":  # that it was to come is what has changed
            old_said -= said_in(" ".join(_INTENDED.findall(statement.text)))
        # values that only one of them has are what has changed, not what they are about
        about = claim.about - (values - old_said)
        said = old_said - (old_values - claim.statement.said - claim.beside)
        told = weights.sum(shared) + weights.sum(claim.beside & said) / 2
        covered = min(1.0, told / weights.sum(said)) if said else 1.0  # of a mere plan nothing else is left
        of_about = weights.share(about, old_said)
        if claim.old:
            score = 0.45 * weights.share(claim.old, old_said) + 0.25 * of_about + 0.3 * covered
        else:
            score = 0.5 * of_about + 0.5 * covered
        if claim.cue.kind == "denied":
            score *= covered
        score -= 0.3 * weights.share(claim.new, old_said)
        if all(name[0] == "@" for name in shared) and covered < _HALF:
            score /= 2  # a mere topic, of which the older one says something else
        return score * claim.cue.strength * trust

    def _names(self, text: str) -> list[str]:
        label = _LABEL.match(text)
        text = text[label.end() :] if label else text
        user = ["user"] if _OF_USER.match(text) else []
        return [*user, *filter(self._may_be_name, names_in(text))]

    def _may_be_name(self, word: str) -> bool:
        """Whether a word is no common one that only begins a sentence."""
        return word not in self._common and (is_name(word) or not is_common(word))


def _may_end(text: str, cue: Cue) -> bool:
    """Whether what a text says may be over by what a cue tells of: nothing that is past, and only plans by a deed."""
    if cue.kind == "fulfilled" and not _INTENDED.search(text):
        return False
    return not _is_past(text)


@lru_cache(maxsize=1 << 12)
def _is_past(text: str) -> bool:
    return _OF_THE_PAST.search(text) is not None


def _is_same_field(text: str, other: str) -> bool:
    """Whether two texts begin with the name of the same field: «city: Hull», «city: Leeds, was Hull»."""
    field = _field_of(text)
    return bool(field) and field == _field_of(other)


@lru_cache(maxsize=1 << 15)
def _field_of(text: str) -> str:
    field = None if _LABEL.match(text) else _FIELD.match(text)
    return field[1].lower() if field else ""


def _n_telling(names: frozenset[str]) -> int:
    """How many words these are, all topics together counting as one."""
    return len({name if name[0] != "@" else "@" for name in names})


def _besides(names: Sequence[str], cue: Cue) -> list[str]:
    """Without what the cue exchanges: the text speaks of it, but it is nobody."""
    exchanged = set(without_accents(f"{cue.old} {cue.new}").split())
    return [name for name in names if name not in exchanged]


def _may_be_same(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether texts that name these may speak of one person."""
    return not old or not new or old[0] in new or new[0] in old
