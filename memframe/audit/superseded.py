"""Superseded facts: an older memory that a newer one says no longer holds."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from memframe.audit.candidates import Cue, Nearest, find_cues, nearest_older
from memframe.audit.evidence import SensitiveTexts, quote_words
from memframe.audit.keeper import age_order
from memframe.audit.lexicon import CALENDAR, LIGHT, class_of, is_name, is_place, without_accents
from memframe.audit.similarity.cluster import Link, SimilarPairs
from memframe.audit.similarity.minhash import distinct
from memframe.audit.text import Memories, MemoryTexts, Rows
from memframe.audit.tokenize import SPLIT_WORD, Words, words_of

_CANDIDATES, _MIN_COSINE = 5, 0.08
_MAX_CHARACTERS = 300
"""Most characters of a memory that states something: in longer ones, which are documents, a cue takes back a detail."""
_MIN_SCORE = 0.6
_MIN_OLD = 0.6
"""Share of what was so before that stands in the older memory, by weight."""
_MIN_CORRECTED = 0.5
_MAX_SHARE = 0.03
"""Share of the user's memories that may have a word which counts as rare; a few always may."""
_FEW_TEXTS = 50
"""Texts below which it tells little that two of them have a word."""
_MAX_OTHERS, _MAX_NEW = 2, 0.5
_CALENDAR = frozenset(map(class_of, CALENDAR))
_ENDED = "ended"
"""Cues of an end: two memories that both tell of one tell of two things, however alike they are."""

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_OPEN = re.compile(
    r"\b(?:could|would|should|might|may|if|consider\w*|plan(?:s|ned|ning)? to|want(?:s|ed)? to|hop(?:es|ing)|going to|"
    r"will|let's|rather than|do not|don't|always|never|make sure|please|must)\b"
    r"|(?<!,)\s(?:that|which|who)(?:['’]s| is| are| was| were)? no longer\b",
    re.IGNORECASE,
)
"""Words of a wish, a rule, a possibility or a kind of things («files that are no longer used»), of no change."""


class _Replacement(NamedTuple):
    """An older and a newer text, and why the newer one replaces the older."""

    older: int
    newer: int
    cue: Cue
    score: float
    shared: frozenset[str]


class _Claim(NamedTuple):
    """Change that a newer text states: the words, by class, of before and now, and of the sentence that says so."""

    newer: int
    cue: Cue
    old: frozenset[str]
    new: frozenset[str]
    about: frozenset[str]
    """Words of the sentence, without those and the cue itself."""
    names: frozenset[str]
    """People of whom the text speaks, without those that it exchanges."""


class _Weights:
    """Weights of words: the more memories have a word, the less it weighs."""

    def __init__(self, words: Words) -> None:
        n_classes, n_texts = len(words.classes), max(_FEW_TEXTS, len(words))
        having = distinct(words.rows() * n_classes + words.class_ids) % max(1, n_classes)
        n_having = np.bincount(having, minlength=n_classes)
        self._weights = dict(
            zip(words.classes, np.log((n_texts + 1) / (n_having + 0.5)).tolist(), strict=True)
        )
        is_rare = n_having <= max(5, _MAX_SHARE * n_texts)
        self.rare = frozenset(
            name for name, rarely in zip(words.classes, is_rare.tolist(), strict=True) if rarely
        )

    def share(self, part: frozenset[str], whole: frozenset[str]) -> float:
        """Return how much of the part is in the whole; of nothing it is nothing."""
        weight = self._weigh(part)
        return self._weigh(part & whole) / weight if weight else 0.0

    def _weigh(self, names: frozenset[str]) -> float:
        """Add up weights, to the same last bit in whichever order a set is walked."""
        return fsum(self._weights.get(name, 1.0) for name in names)


def find_replacements(chosen: Memories, pairs: SimilarPairs) -> list[Link]:
    """Find texts that a newer one of the same user says no longer hold, each with the one that says so.

    It says little: what was so before has to stand in both memories, in a word that few others have. A fact that a
    newer one merely contradicts («vegetarian», «steak»), or that it changes in other words, is not found.
    """
    prepared = MemoryTexts.of(chosen)
    texts, age = prepared.column("content"), age_order(prepared)
    lists = _name_lists(prepared)
    changes = (
        change
        for change in _find_replacements(texts, age, pairs)
        if lists[change.older] is None or lists[change.older] != lists[change.newer]
    )
    sensitive = SensitiveTexts(texts)
    return [
        Link(
            change.older, change.newer, "replaced", change.score, _describe_evidence(change, texts, sensitive)
        )
        for change in _best_of_each(changes, age)
    ]


def _describe_evidence(change: _Replacement, texts: pa.Array, sensitive: SensitiveTexts) -> str:
    if sensitive.any_of(change.older, change.newer):
        return "the newer one says that something has changed"
    words = dict.fromkeys(SPLIT_WORD.findall(texts[change.older].as_py()))
    both = [word for word in words if class_of(without_accents(word.lower())) in change.shared][:3]
    spoken_of = f"; both speak of {quote_words(both, sensitive=False)}" if both else ""
    return f"the newer one says «{change.cue.quote}»{spoken_of}"


def _name_lists(prepared: MemoryTexts) -> list[tuple[pd.Timestamp, str] | None]:
    """Name the list that each memory is an item of, by its moment and its heading: items do not replace each other."""
    moments, contents = prepared.memories["created_at"].tolist(), prepared.column("content").to_pylist()
    return [
        (moment, heading) if colon and not pd.isna(moment) else None
        for moment, text in zip(moments, contents, strict=True)
        for heading, colon, _ in (text.partition(":"),)
    ]


def _best_of_each(found: Iterator[_Replacement], age: Rows) -> list[_Replacement]:
    """Keep of each newer memory, and for each older one, the best change; of two as good the earlier."""
    kept: list[_Replacement] = []
    taken: set[tuple[str, int]] = set()
    for change in sorted(found, key=lambda one: (-one.score, age[one.newer], age[one.older])):
        ends = {("older", change.older), ("newer", change.newer)}
        if taken.isdisjoint(ends):
            taken |= ends
            kept.append(change)
    return kept


def _find_replacements(texts: pa.Array, age: Rows, pairs: SimilarPairs) -> Iterator[_Replacement]:
    words, contents, oldest = pairs.comparer.words, texts.to_pylist(), _oldest_alike(pairs, age)
    cues = {
        row: strong
        for row, cues_of_text in find_cues(texts)
        if oldest[row] == row
        and len(contents[row]) <= _MAX_CHARACTERS
        and (strong := [cue for cue in cues_of_text if cue.strength >= 1])
    }
    claims = _read_claims(cues, contents)
    newer = np.array([*cues], np.int64)
    near = (
        nearest_older(words, pairs.owners, age, n=_CANDIDATES, min_score=_MIN_COSINE, newer=newer)
        if len(newer)
        else _NONE
    )
    weights = _Weights(words)
    for row, older in zip(near.newer.tolist(), near.older.tolist(), strict=True):
        if oldest[older] != row and len(contents[older]) <= _MAX_CHARACTERS:
            terms, names = _heavy(words, older), find_names(contents[older])
            taken_back = frozenset().union(*(claim.old for claim in claims.get(older, ())))
            has_ended = any(cue.kind == _ENDED for cue in cues.get(older, ()))
            found = [
                _decide(claim, older, terms - taken_back, weights)
                for claim in claims[row]
                if (not claim.names or not names or claim.names & names)
                and not (has_ended and claim.cue.kind == _ENDED)
            ]
            yield from (one for one in found if one is not None)


_NONE = Nearest(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


def _oldest_alike(pairs: SimilarPairs, age: Rows) -> Rows:
    """Return for each text the oldest that says the same: what only repeats an older memory replaces nothing."""
    oldest = np.arange(len(age))
    for group in pairs.clusters.groups():
        oldest[group] = min(group, key=age.__getitem__)
    return oldest


def _read_claims(cues: Mapping[int, list[Cue]], contents: Sequence[str]) -> dict[int, list[_Claim]]:
    """Read what the cued texts say, but for those of a wish, a rule or a possibility; all at once, as Arrow does."""
    found = [
        (row, cue, sentence)
        for row, cues_of_text in cues.items()
        for cue in cues_of_text
        for sentence in (_sentence_of(cue, contents[row]),)
        if not _OPEN.search(sentence)
    ]
    claims: dict[int, list[_Claim]] = defaultdict(list)
    if not found:
        return claims
    texts = [text for _, cue, sentence in found for text in (cue.old, cue.new, cue.quote, sentence)]
    words = words_of(pa.array(texts, pa.large_string()))
    for place, (row, cue, _) in enumerate(found):
        old, new, quote, sentence = (_heavy(words, 4 * place + part) for part in range(4))
        names = find_names(contents[row]) - find_names(f"{cue.old} {cue.new}")
        claims[row].append(_Claim(row, cue, old, new - old, sentence - old - new - quote, names))
    return claims


def _sentence_of(cue: Cue, text: str) -> str:
    return next((part for part in _SENTENCE.split(text) if cue.quote in part), text)


def _decide(claim: _Claim, older: int, terms: frozenset[str], weights: _Weights) -> _Replacement | None:
    """Decide whether a claim is about an older text, given the words of that."""
    shared = terms & (claim.old | claim.about)
    covered = weights.share(terms, shared)
    if not shared & weights.rare or weights.share(claim.new, terms) > _MAX_NEW:
        return None
    if claim.old:
        share = weights.share(claim.old, terms)
        if share < _MIN_OLD or (claim.about.isdisjoint(terms) and claim.about and not terms <= claim.old):
            return None
        score = 0.6 * share + 0.4 * covered
    else:
        named = frozenset(word for word in terms if not word[0].isdigit() and word not in _CALENDAR)
        others, covered = named - shared, weights.share(named, shared)
        is_all = claim.about <= terms and len(others) <= 1
        if not is_all and (len(shared) < 2 or covered < _MIN_CORRECTED or len(others) > _MAX_OTHERS):
            return None
        score = 0.5 + 0.5 * covered
    return _Replacement(older, claim.newer, claim.cue, score, shared) if score >= _MIN_SCORE else None


def _heavy(words: Words, row: int) -> frozenset[str]:
    """Return the words of one text that carry a value, by class."""
    names = (words.classes[class_id] for class_id in words.class_ids_of(row).tolist())
    return frozenset(name for name in names if name not in LIGHT and name != "=not")


def find_names(text: str) -> frozenset[str]:
    """Return the names of people that a text has."""
    words = (word for word in SPLIT_WORD.findall(text) if word[0].isupper())
    return frozenset(word for word in map(str.lower, words) if is_name(word) and not is_place(word))
