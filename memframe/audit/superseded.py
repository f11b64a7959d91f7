"""Superseded facts: an older memory that a newer one says no longer holds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memframe.audit.claims import Claim, claims_of
from memframe.audit.evidence import Delicate, shown
from memframe.audit.exact_duplicate import owners_of
from memframe.audit.findings import findings_frame
from memframe.audit.keeper import age_order
from memframe.audit.language.cues import ANY_CUE, ANY_HINT, cue_in
from memframe.audit.language.statements import common_words, words_said
from memframe.audit.language.timewords import looks_back
from memframe.audit.language.words import Words
from memframe.audit.likeness.older import Older, Search
from memframe.audit.likeness.similar import Relations, SimilarPairs, similar_pairs
from memframe.audit.succession import Asked, Judge, Succession, Weights
from memframe.audit.text import text_column

Rows = NDArray[np.int64]

_LIKELY = 0.45
_SUGGESTIONS = 3
_CANDIDATES = 9
_STRONG = 0.8
_ABOUT_AS_WELL = 0.85

_VALUES = frozenset({"number", "date", "word"})
_PRESENT = """
    is are am has have lives works drives uses prefers takes drinks plays goes studies keeps costs weighs pays earns
    wants likes eats speaks wears owns rents shares sleeps starts begins opens teaches leads ist sind hat wohnt arbeitet
    kostet est sont habite travaille es son tiene vive trabaja
"""
_STATES = frozenset(_PRESENT.split())
"""Verbs in the present: what they say holds until something else does."""


class _Suggestion(NamedTuple):
    """An older and a newer text, and why the newer one may replace the older."""

    older: int
    newer: int
    kind: str
    score: float
    evidence: str


class _Told(NamedTuple):
    """The memories that the relations are of."""

    texts: pa.Array
    contents: list[str]
    age: Rows
    owners: Rows


def find_superseded(
    memories: pd.DataFrame, *, now: pd.Timestamp | None = None, pairs: SimilarPairs | None = None
) -> pd.DataFrame:
    """Older memories that a newer one of the same user may replace: suggestions, never more.

    One row a suggestion: ``id`` is the older memory, ``related_id`` the newer one, ``group`` all suggestions of one
    newer memory, the likest first and at most three; ``score`` is how likely it is. From 0.45 on the action is
    ``review``; the others, from 0.25 on, are there to be ranked. An older memory is named once, with what replaces it
    best. The kind is that of the cue: ``no_longer``, ``used_to``, ``instead``, ``replaced``, ``switched``, ``moved``,
    ``ended``, ``fulfilled`` (what was to come), ``correction``, ``denied``, ``now``; or ``uncued``: the same statement
    with another value and nothing that says so, at half the score.

    It looks at what the newer one says was so before («no longer X», «from X to Y»), at what both are about, the
    rarer a word the more, and at whom they name.

    On corpora that nobody had seen who wrote the rules, precision is 0.89 of what is named and recall 0.18 (0.31 where
    the newer memory has a cue, 0.075 of those for ``review``); on real memories precision is 0.33, and 3 of 21 known
    contradictions were found. Cues are heard (53 of 68); what fails is to find the older memory. It does not know that
    a vegetarian eats no steak: a fact that a newer one merely contradicts, in other words and without a cue, is not
    found.

    Parameters
    ----------
    memories : DataFrame
        Columns as `load_memories` has them; rows without content are left out.
    now : Timestamp, optional
        Leaves out what memories created later would replace.
    pairs : SimilarPairs, optional
        Of the same frame, where other checks have them already.

    Examples
    --------
    >>> from memframe.frames import MEMORY_KINDS
    >>> texts = ["Ada lives in Leeds.", "Ada no longer lives in Leeds.", "Ada likes tea."]
    >>> memories = pd.DataFrame({"id": ["m1", "m2", "m3"], "content": texts}, columns=list(MEMORY_KINDS))
    >>> find_superseded(memories)[["kind", "id", "related_id", "action"]]
            kind  id related_id  action
    0  no_longer  m1         m2  review
    """
    pairs = similar_pairs(memories) if pairs is None else pairs
    return superseded_among(memories, relations=pairs.relations, now=now)


def superseded_among(
    memories: pd.DataFrame, *, relations: Relations, now: pd.Timestamp | None = None
) -> pd.DataFrame:
    """What `find_superseded` finds, by what is known of the texts already."""
    chosen = memories.iloc[relations.rows]
    told = _Told(
        text_column(chosen, "content"), chosen["content"].tolist(), age_order(chosen), owners_of(chosen)
    )
    found = [*_cued(told, relations), *_uncued(told, relations)]
    if now is not None:
        known = (chosen["created_at"].isna() | (chosen["created_at"] <= now)).to_numpy()
        found = [suggestion for suggestion in found if known[suggestion.newer]]
    ids = chosen["id"].tolist()
    found.sort(
        key=lambda suggestion: (str(ids[suggestion.newer]), -suggestion.score, str(ids[suggestion.older]))
    )
    likely = [suggestion.score >= _LIKELY for suggestion in found]
    newer = [suggestion.newer for suggestion in found]
    return findings_frame(
        check="superseded",
        kind=[suggestion.kind for suggestion in found],
        severity=["low" if is_likely else "info" for is_likely in likely],
        id=[ids[suggestion.older] for suggestion in found],
        field="content",
        related_id=[ids[place] for place in newer],
        group=pd.factorize(np.array(newer, np.int64))[0].tolist(),
        score=[suggestion.score for suggestion in found],
        evidence=[suggestion.evidence for suggestion in found],
        action=["review" if is_likely else "none" for is_likely in likely],
    )


def _cued(told: _Told, relations: Relations) -> Iterator[_Suggestion]:
    delicate = Delicate(told.texts)
    for older, newer, score, cue, shared in _once_each(_successions(told, relations), told.age):
        if delicate.any_of(older, newer):
            evidence = "the newer one says that something has changed"
        else:
            about = shown(words_said(told.contents[older], shared), delicate=False)
            evidence = f"the newer one says «{cue.quote}»; both speak of {about}"
        yield _Suggestion(older, newer, cue.kind, score, evidence)


def _once_each(found: Iterable[Succession], age: Rows) -> Iterator[Succession]:
    """Each older memory once, with what replaces it best; of two that do so about as well, the earlier."""
    by_older: dict[int, list[Succession]] = defaultdict(list)
    for succession in found:
        by_older[succession.older].append(succession)
    for successions_of_one in by_older.values():
        enough = _ABOUT_AS_WELL * max(succession.score for succession in successions_of_one)
        good = (succession for succession in successions_of_one if succession.score >= enough)
        yield min(good, key=lambda succession: age[succession.newer])


def _uncued(told: _Told, relations: Relations) -> Iterator[_Suggestion]:
    """The older of two memories that state the same with another value, where no others do and neither looks back."""
    contents, age = told.contents, told.age
    found = relations.changed
    n_partners = Counter(place for pair in found for place in pair[:2])
    for left, right, difference in found:
        older, newer = sorted((left, right), key=age.__getitem__)
        alone = n_partners[left] == 1 == n_partners[right] and difference.n_places == 1
        states = difference.kind in _VALUES and all(_states(contents[place]) for place in (older, newer))
        if alone and states and cue_in(contents[newer]) is None:
            evidence = (
                f"the newer one has another {difference.kind}, and does not say that anything has changed"
            )
            yield _Suggestion(older, newer, "uncued", difference.score / 2, evidence)


def _states(text: str) -> bool:
    return not looks_back(text) and not _STATES.isdisjoint(text.lower().split())


def _successions(told: _Told, relations: Relations) -> Iterator[Succession]:
    """For each memory with a cue the older ones that it may replace, the likest first and at most three."""
    age, contents = told.age, told.contents
    first = _oldest_alike(relations, age)
    weights = Weights(relations.words)
    asked = list(_asked(told, relations.words, weights, first))
    involved = {row for one in asked for row in (one.newer, *one.older)}
    judge = Judge(weights, common_words(contents[row] for row in involved))
    found: dict[int, list[Succession]] = {one.newer: [] for one in asked}
    for succession in judge.successions(asked, contents):
        found[succession.newer].append(succession)
    for several in found.values():
        several.sort(key=lambda succession: (-succession.score, -age[succession.older]))
        yield from [one for one in several if one.score >= several[0].score / 2][:_SUGGESTIONS]


def _asked(told: _Told, words: Words, weights: Weights, first: Rows) -> Iterator[Asked]:
    """Memories that say that something has changed, from the oldest, and the older ones that they may mean."""
    hinted, cued = _speaking(told.texts, ANY_HINT, ANY_CUE)
    # what only repeats an older memory replaces nothing
    hinted, cued = (rows[first[rows] == rows] for rows in (hinted, cued))
    older = Older(words, told.age, told.owners, hinted)
    cued = cued[np.argsort(told.age[cued])]
    all_claims = claims_of([told.contents[newer] for newer in cued.tolist()])
    claimed = [(newer, claims) for newer, claims in zip(cued.tolist(), all_claims, strict=True) if claims]
    searches = [Search(newer, _wanted(claims, weights), _n_candidates(claims)) for newer, claims in claimed]
    for (newer, claims), likest in zip(claimed, older.likest(searches), strict=True):
        yield Asked(newer, claims, [row for row in likest if first[row] != newer])


def _speaking(texts: pa.Array, *patterns: str) -> Iterator[Rows]:
    """For each pattern of RE2 the texts in which it occurs, once they are in lower case."""
    lower = pc.utf8_lower(texts)
    for pattern in patterns:
        yield np.flatnonzero(pc.match_substring_regex(lower, pattern).to_numpy(zero_copy_only=False))


def _n_candidates(claims: list[Claim]) -> int:
    strong = max(claim.cue.strength for claim in claims) >= _STRONG
    return _CANDIDATES if strong else _CANDIDATES // 3


def _wanted(claims: list[Claim], weights: Weights) -> dict[str, float]:
    """What older memories are looked for by: most of all what was so before."""
    wanted: dict[str, float] = {}
    for part, factor in (("beside", 0.5), ("about", 1.0), ("old", 2.0)):
        for claim in claims:
            wanted |= {name: factor * weights[name] for name in getattr(claim, part)}
    return wanted


def _oldest_alike(relations: Relations, age: Rows) -> Rows:
    """For each text the oldest that says the same."""
    return np.array(
        [min(relations.clusters.members(row), key=age.__getitem__) for row in range(len(age))], np.int64
    )
