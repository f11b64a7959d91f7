"""Duplicates: memories of one person with equal texts, and with nearly equal ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from memframe.audit.evidence import SensitiveTexts, describe_difference
from memframe.audit.findings import Finding, Proposal, list_findings
from memframe.audit.keeper import FILLED, copies_of, precedence, wording_penalty
from memframe.audit.similarity.cluster import SimilarPairs, similar_pairs
from memframe.audit.similarity.compare import Difference
from memframe.audit.text import Memories, MemoryTexts

# ---- equal texts


def find_exact_duplicates(memories: Memories) -> pd.DataFrame:
    """Find memories of one user with the same content, character for character, each group with the one to keep.

    There is one row per memory. The keeper is the memory with most fields and tags filled (then: the one updated last,
    the one with the smallest id). It has the kind ``keeper``, the action ``none`` and no ``related_id``. The others
    have the kind ``copy``, the keeper as ``related_id`` and the action ``delete``, or ``merge`` if they have a tag,
    title, summary, source or score that the keeper lacks.

    Titles, tags and scores are not compared. Texts that differ in a blank are for `find_near_duplicates`.

    Parameters
    ----------
    memories : DataFrame
        Frame with the columns of `load_memories`; rows without content are left out.

    Examples
    --------
    >>> from memframe.frames import MEMORY_KINDS
    >>> memories = pd.DataFrame({"id": ["m1", "m2"], "content": "Ada likes tea."}, columns=list(MEMORY_KINDS))
    >>> find_exact_duplicates(memories)[["kind", "id", "related_id", "action"]]
         kind  id related_id  action
    0  keeper  m1        NaN    none
    1    copy  m2         m1  delete
    """
    texts = MemoryTexts.of(memories)
    copies = copies_of(texts)
    rows = np.flatnonzero(copies >= 0)
    keepers = copies[rows]
    n_copies = np.bincount(keepers, minlength=len(texts))
    rows, keepers = rows[n_copies[keepers] > 1], keepers[n_copies[keepers] > 1]
    if not len(rows):
        return list_findings(())
    ids = texts.ids
    order = np.lexsort((rows, rows != keepers, keepers))
    rows, keepers = rows[order], keepers[order]
    group, found = -1, []
    actions = _actions(texts.memories, rows, keepers)
    for row, keeper, action in zip(rows.tolist(), keepers.tolist(), actions, strict=True):
        is_kept, n = row == keeper, n_copies[keeper]
        group += is_kept
        found.append(
            Finding(
                check="exact_duplicate",
                kind="keeper" if is_kept else "copy",
                severity="info" if is_kept else "low",
                id=ids[row],
                field="content",
                related_id=None if is_kept else ids[keeper],
                group=group,
                score=1.0,
                evidence=f"kept: {n} memories have this text"
                if is_kept
                else f"one of {n} with the same text",
                action=action,
            )
        )
    return list_findings(found)


def _actions(memories: pd.DataFrame, rows: NDArray[np.int64], keepers: NDArray[np.int64]) -> list[Proposal]:
    """Return the proposal for each row: a copy with a field or a tag that its keeper lacks is merged."""
    cells, place_of = memories.iloc[rows], {row: place for place, row in enumerate(rows.tolist())}
    kept = [place_of[keeper] for keeper in keepers.tolist()]
    filled = np.array(
        [
            [bool(cell.strip()) if isinstance(cell, str) else pd.notna(cell) for cell in cells[name]]
            for name in FILLED
        ],
        bool,
    ).T
    tags = [frozenset(cell) if isinstance(cell, Sequence) else frozenset() for cell in cells["tags"]]
    fills = np.asarray((filled & ~filled[kept]).any(axis=1), bool).tolist()
    actions: list[Proposal] = []
    for place, (keeper, has_more) in enumerate(zip(kept, fills, strict=True)):
        if place == keeper:
            actions.append("none")
        elif has_more or not tags[place] <= tags[keeper]:
            actions.append("merge")
        else:
            actions.append("delete")
    return actions


# ---- nearly equal texts

_SAME = {
    "keeper": "kept: it says most of {n} that say the same",
    "spelling": "the same words but for case, punctuation or spelling",
    "order": "the same words in another order",
    "typing": "the same words but for typing errors",
    "truncated": "the beginning of the kept text, which goes on",
    "shortened": "all of it stands in the other text, which says more",
}


class _Member(NamedTuple):
    """One text of a cluster, with its keeper and the kind of its difference from that."""

    place: int
    keeper: int
    n_members: int
    kind: str
    score: float


def find_near_duplicates(memories: Memories, *, pairs: SimilarPairs | None = None) -> pd.DataFrame:
    """Find memories of one user with the same statement, in clusters, each with the one to keep.

    There is one row per memory. The keeper has the fullest text (then: a plain one, neither wrapped nor mistyped, most
    fields and tags filled, the plainest wording, the latest update, the smallest id). It has the kind ``keeper``, the
    action ``none`` and no ``related_id``; the others have the keeper as ``related_id`` and the action ``merge``. Their
    kinds are ``spelling``, ``order``, ``typing`` and ``truncated`` (the keeper goes on). A text that is no such copy,
    but whose words with a value are all in the keeper, has the kind ``shortened`` and the action ``review``, because
    words may have been left out on purpose. Of memories with equal texts, only the keeper of `find_exact_duplicates` is
    compared. ``score`` is the share of words that both have, by weight.

    It finds copies that differ in case, punctuation, accents, spelling, common abbreviations and synonyms, typing
    errors, wrappers («The user said that»), the order of clauses or words, or fillers, and copies that break off. Two
    texts are never merged if one has an additional word that may be a value, or if they differ in «he» and «she», «and»
    and «or», or «starts», «started» and «may start», because two copies that stay are a smaller error than two facts
    that are merged. Copies that differ in a sign, an accent or a capital are for review in an audit (`find_respelled`).

    Not found are paraphrases, for which `memframe.audit.candidates` ranks candidates; synonyms that are not in the
    short list; typing errors that make another word («house», «hose») or change a name; and copies that are cut to less
    than half at the end of a sentence.

    Parameters
    ----------
    memories : DataFrame
        Frame with the columns of `load_memories`; rows without content are left out.
    pairs : SimilarPairs, optional
        Similar pairs of the same frame, if other checks have computed them.

    Examples
    --------
    >>> from memframe.frames import MEMORY_KINDS
    >>> texts = ["Ada is allergic to penicillin.", "Note: Ada is alergic to penicillin", "Ada likes tea."]
    >>> memories = pd.DataFrame({"id": ["m1", "m2", "m3"], "content": texts}, columns=list(MEMORY_KINDS))
    >>> find_near_duplicates(memories)[["kind", "id", "related_id", "action"]]
         kind  id related_id action
    0  keeper  m1        NaN   none
    1  typing  m2         m1  merge
    """
    texts = MemoryTexts.of(memories)
    pairs = similar_pairs(texts) if pairs is None else pairs
    rows = pairs.rows.tolist()
    copies = list(_find_members(texts, pairs))
    members = sorted(
        [*copies, *_find_repetitions(copies, pairs)],
        key=lambda one: (rows[one.keeper], one.kind != "keeper", -one.score, rows[one.place]),
    )
    if not members:
        return list_findings(())
    words_of = pairs.comparer.words.of
    sensitive = SensitiveTexts(texts.column("content").take(pa.array(pairs.rows)))
    group, found = -1, []
    for member in members:
        is_keeper = member.kind == "keeper"
        evidence = _SAME[member.kind].format(n=member.n_members)
        if member.kind == "shortened" and not sensitive.any_of(member.place, member.keeper):
            evidence += describe_difference(words_of(member.place), words_of(member.keeper))
        group += is_keeper
        found.append(
            Finding(
                check="near_duplicate",
                kind=member.kind,
                severity="info" if is_keeper else "low",
                id=texts.ids[rows[member.place]],
                field="content",
                related_id=None if is_keeper else texts.ids[rows[member.keeper]],
                group=group,
                score=member.score,
                evidence=evidence,
                action=_NEAR_ACTIONS.get(member.kind, "merge"),
            )
        )
    return list_findings(found)


_NEAR_ACTIONS: Mapping[str, Proposal] = {"keeper": "none", "shortened": "review"}
"""Proposals for the kinds that are not merged."""


def _find_members(texts: MemoryTexts, pairs: SimilarPairs) -> Iterator[_Member]:
    """Yield the texts of all clusters; the keeper is the plainest of the fullest texts."""
    comparer = pairs.comparer
    groups = [sorted(group) for group in pairs.clusters.groups()]
    if not groups:
        return
    as_full: list[int] = []
    for group in groups:
        most = max(group, key=lambda place: (comparer.fullness(place), -place))
        differences = ((place, pairs.compare(place, most)) for place in group)
        as_full += [
            place
            for place, difference in differences
            if place == most or (difference.relation == "near" and difference.kind != "truncated")
        ]
    rows = texts.memories.iloc[pairs.rows[as_full]]
    penalty = wording_penalty(rows["content"].tolist()) + [comparer.n_slips(place) for place in as_full]
    rank_of = dict(zip(as_full, precedence(rows, -np.floor(penalty), penalty).tolist(), strict=True))
    best: dict[int, Difference] = {}
    for two, difference in pairs.near.items():
        for place in two:
            if place not in best or difference.score > best[place].score:
                best[place] = difference
    for group in groups:
        keeper = min((place for place in group if place in rank_of), key=rank_of.__getitem__)
        yield _Member(keeper, keeper, len(group), "keeper", 1.0)
        for place in group:
            if place != keeper:
                difference = pairs.compare(place, keeper)
                if (
                    difference.relation != "near"
                ):  # it is near another member, and through that one the keeper
                    difference = best.get(place, difference)
                kind = difference.kind if difference.relation == "near" else "spelling"
                yield _Member(place, keeper, len(group), kind, difference.score)


def _find_repetitions(copies: Sequence[_Member], pairs: SimilarPairs) -> Iterator[_Member]:
    """Yield the texts that repeat a fuller one, and the fuller ones that are not in a cluster."""
    keeper_of = {member.place: member.keeper for member in copies}
    repeated: dict[int, list[_Member]] = {}
    for place, pair in pairs.repeats.items():
        whole = pair.left
        while whole in pairs.repeats:  # each step leads to a fuller text
            whole = pairs.repeats[whole].left
        keeper = keeper_of.get(whole, whole)
        member = _Member(place, keeper, 0, pair.difference.kind, pair.difference.score)
        repeated.setdefault(keeper, []).append(member)
    for keeper, members in repeated.items():
        if keeper not in keeper_of:
            yield _Member(keeper, keeper, len(members) + 1, "keeper", 1.0)
        yield from members
