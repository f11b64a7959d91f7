"""Superseded facts: older memories that no longer hold, as a newer memory states."""

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

_CANDIDATES = 5
"""Older memories that are compared with each claim."""
_MIN_COSINE = 0.08
"""Least cosine similarity of these."""
_MAX_CHARACTERS = 300
"""Most characters of a memory that is compared; in a longer one, a document, a cue is about a detail."""
_MIN_SCORE = 0.6
"""Least score of a replacement."""
_MIN_OLD = 0.6
"""Least share, by weight, of the words of the former state that the older memory has."""
_MIN_CORRECTED = 0.5
"""Least share, by weight, of the words of the older memory that a claim without a former state has."""
_MAX_OTHERS = 2
"""Most words of the older memory that such a claim lacks."""
_MAX_NEW = 0.5
"""Most of the words of the new state, by weight, that the older memory may have; with more it states the same."""
_MAX_SHARE = 0.03
"""Largest share of the user's memories with a word that counts as rare; a word of up to five memories always does."""
_FEW_TEXTS = 50
"""Least number of texts for which weights are computed: in a smaller store, a shared word means little."""
_CALENDAR = frozenset(map(class_of, CALENDAR))
_ENDED = "ended"
"""Kind of cues of an end: if two memories have one, two different things ended, however similar they are."""

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_OPEN = re.compile(
    r"\b(?:could|would|should|might|may|if|consider\w*|plan(?:s|ned|ning)? to|want(?:s|ed)? to|hop(?:es|ing)|going to|"
    r"will|let's|rather than|do not|don't|always|never|make sure|please|must)\b"
    r"|(?<!,)\s(?:that|which|who)(?:['’]s| is| are| was| were)? no longer\b",
    re.IGNORECASE,
)
"""Words of sentences without a change: a wish, a rule, a possibility, a kind of things («files that are no longer
used»)."""


class _Replacement(NamedTuple):
    """An older and a newer text, and the cue and the shared words by which the newer one replaces the older."""

    older: int
    newer: int
    cue: Cue
    score: float
    shared: frozenset[str]


class _Claim(NamedTuple):
    """Change that a newer text states; words are given by class."""

    newer: int
    cue: Cue
    old: frozenset[str]
    """Words of the former state."""
    new: frozenset[str]
    """Words of the present state that are not in the former one."""
    about: frozenset[str]
    """Other words of the sentence, without the cue."""
    names: frozenset[str]
    """Names of people in the text, without those in the former or present state."""


class _Weights:
    """Weights of words, which are lower for words of more memories."""

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
        """Return the share of a part, by weight, that is in a whole; 0 for an empty part."""
        weight = self._weigh(part)
        return self._weigh(part & whole) / weight if weight else 0.0

    def _weigh(self, names: frozenset[str]) -> float:
        """Add up weights exactly, so that the order of a set does not matter."""
        return fsum(self._weights.get(name, 1.0) for name in names)


def find_replacements(chosen: Memories, pairs: SimilarPairs) -> list[Link]:
    """Find texts that no longer hold, each with the newer text of the same user that states it.

    Precision comes first: both memories must have a rare word of the former state. A fact that a newer memory merely
    contradicts («vegetarian», «steak»), or changes in other words, is not found.
    """
    prepared = MemoryTexts.of(chosen)
    texts, age = prepared.column("content"), age_order(prepared)
    list_of = _find_lists(prepared)
    changes = (
        change
        for change in _find_replacements(texts, age, pairs)
        if list_of[change.older] is None or list_of[change.older] != list_of[change.newer]
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
    shared = [word for word in words if class_of(without_accents(word.lower())) in change.shared][:3]
    about = f"; both speak of {quote_words(shared, sensitive=False)}" if shared else ""
    return f"the newer one says «{change.cue.quote}»{about}"


def _find_lists(prepared: MemoryTexts) -> list[tuple[pd.Timestamp, str] | None]:
    """Return moment and heading of the list of each memory, None without one: items do not replace each other."""
    moments, contents = prepared.memories["created_at"].tolist(), prepared.column("content").to_pylist()
    return [
        (moment, heading) if colon and not pd.isna(moment) else None
        for moment, text in zip(moments, contents, strict=True)
        for heading, colon, _ in (text.partition(":"),)
    ]


def _best_of_each(found: Iterator[_Replacement], age: Rows) -> list[_Replacement]:
    """Choose changes, best first, so that no memory is the older text of two of them, or the newer text of two."""
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
            former = frozenset().union(*(claim.old for claim in claims.get(older, ())))
            has_ended = any(cue.kind == _ENDED for cue in cues.get(older, ()))
            found = [
                _apply_claim(claim, older, terms - former, weights)
                for claim in claims[row]
                if (not claim.names or not names or claim.names & names)
                and not (has_ended and claim.cue.kind == _ENDED)
            ]
            yield from (change for change in found if change is not None)


_NONE = Nearest(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


def _oldest_alike(pairs: SimilarPairs, age: Rows) -> Rows:
    """Return for each text the oldest near-duplicate: a text that repeats an older one replaces nothing."""
    oldest = np.arange(len(age))
    for group in pairs.clusters.groups():
        oldest[group] = min(group, key=age.__getitem__)
    return oldest


def _read_claims(cues: Mapping[int, list[Cue]], contents: Sequence[str]) -> dict[int, list[_Claim]]:
    """Read the claims of texts with cues, without sentences of a wish, a rule or a possibility.

    The words of all sentences are read at once, because `words_of` is slow for single texts.
    """
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


def _apply_claim(claim: _Claim, older: int, terms: frozenset[str], weights: _Weights) -> _Replacement | None:
    """Return the replacement of an older text with these words, if the claim is about it."""
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
    """Return the names of people in a text."""
    words = (word for word in SPLIT_WORD.findall(text) if word[0].isupper())
    return frozenset(word for word in map(str.lower, words) if is_name(word) and not is_place(word))
