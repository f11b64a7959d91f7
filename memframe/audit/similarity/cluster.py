"""Similar pairs and their clusters: memories of one person with the same statement, or with another value in it.

The checks on near-duplicates and on versions both use them, so they are computed once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memframe.audit.findings import Severity
from memframe.audit.keeper import copies_of, owners_of
from memframe.audit.similarity.compare import Comparer, Difference, Relation
from memframe.audit.similarity.minhash import promising_pairs
from memframe.audit.text import Memories, MemoryTexts, Rows, without_long_contents
from memframe.audit.tokenize import contents_of
from memframe.frames import gc_paused

_PAIRS_AT_ONCE = 1 << 16
"""Pairs that are compared before their results are packed into arrays, which bounds the memory."""


class Pair(NamedTuple):
    """Two texts and their difference."""

    left: int
    right: int
    difference: Difference


class Link(NamedTuple):
    """An older text and a newer version of it, with the kind and the evidence of the finding."""

    older: int
    newer: int
    kind: str
    score: float
    evidence: str
    span: tuple[int, int] | None = None
    """Span of the value in the older text."""
    severity: Severity = "low"


_KINDS: tuple[tuple[Relation, str], ...] = (
    *(("near", kind) for kind in ("spelling", "order", "typing", "truncated")),
    ("repeats", "shortened"),
    *(("changed", kind) for kind in ("number", "date", "word", "polarity")),
)


class Pairs(NamedTuple):
    """Pairs as columns, without the words in which they differ."""

    left: Rows
    right: Rows
    kind: NDArray[np.int8]
    score: NDArray[np.float64]
    n_shared: NDArray[np.int32]

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> Pairs:
        """Build columns from pairs whose relation is not "apart"."""
        left, right, differences = zip(*pairs, strict=True) if pairs else ((), (), ())
        return cls(
            np.array(left, np.int64),
            np.array(right, np.int64),
            np.array([_KINDS.index((one.relation, one.kind)) for one in differences], np.int8),
            np.array([one.score for one in differences], np.float64),
            np.array([one.n_shared for one in differences], np.int32),
        )

    def select(self, chosen: NDArray[np.bool_] | Rows) -> Pairs:
        """Return the pairs of a mask, or at some places."""
        return Pairs._make(column[chosen] for column in self)

    def select_relation(self, relation: Relation) -> Pairs:
        """Return the pairs with this relation."""
        return self.select(np.isin(self.kind, [n for n, kind in enumerate(_KINDS) if kind[0] == relation]))

    def each(self) -> Iterator[Pair]:
        """Yield each pair."""
        for left, right, kind, score, n_shared in zip(*(column.tolist() for column in self), strict=True):
            relation, name = _KINDS[kind]
            yield Pair(left, right, Difference(relation, name, score, n_shared))


@dataclass(frozen=True, eq=False)
class SimilarPairs:
    """Distinct texts, pairs of similar ones, and clusters of near-duplicates."""

    rows: Rows
    """Row of the frame for each text; of memories with the same text, that of the one to keep."""
    owners: Rows
    """Number of the user and entity of each text."""
    pairs: Pairs
    """Pairs of places in ``rows``; of texts with the same words, only the first is in pairs."""
    clusters: Clusters
    repeats: dict[int, Pair]
    """Pair of each text that repeats a fuller one (``left``), which is for a person to decide."""
    comparer: Comparer

    @cached_property
    def near(self) -> dict[tuple[int, int], Difference]:
        """Difference of each pair of near-duplicates, in the order of the pairs."""
        near = self.pairs.select_relation("near")
        return {(left, right): difference for left, right, difference in near.each()}

    def compare(self, row: int, other: int) -> Difference:
        """Return the difference of two texts; that of near-duplicates is not computed again."""
        ordered = min(row, other), max(row, other)
        return self.near.get(ordered) or self.comparer.compare(*ordered)

    def is_repeated(self, row: int, other: int) -> bool:
        """Return True if two texts are near-duplicates, or if one repeats the other, so that neither is a version."""
        return self.clusters.of(row) == self.clusters.of(other) or any(
            one in self.repeats and self.clusters.of(self.repeats[one].left) == self.clusters.of(two)
            for one, two in ((row, other), (other, row))
        )


def similar_pairs(memories: Memories) -> SimilarPairs:
    """Compare each memory with candidates of the same user that may have the same statement.

    Time and memory are proportional to the number of memories, even if thousands share a template. The result does not
    depend on the order of the rows.

    Parameters
    ----------
    memories : DataFrame
        Frame with the columns of `load_memories`; rows without content are left out.
    """
    prepared = MemoryTexts.of(memories)
    rows = np.flatnonzero(copies_of(without_long_contents(prepared)) == np.arange(len(prepared)))
    owners, texts = owners_of(prepared)[rows], prepared.column("content").take(pa.array(rows))
    order = pc.array_sort_indices(
        texts, order="descending"
    ).to_numpy()  # texts that begin alike are neighbours
    order = order[np.argsort(owners[order], kind="stable")].astype(np.int64)
    rows, owners, texts = rows[order], owners[order], texts.take(pa.array(order))
    with gc_paused():
        words_of_all, numbers = prepared.once(contents_of)
        words = words_of_all.take(numbers[rows]).compact()
        comparer, clusters = Comparer(words, texts), Clusters(len(rows))
        first = _join_same_words(owners, comparer, clusters)
        left, right = (first[side] for side in promising_pairs(words.take(first), owners[first]))
        parts = [Pairs.of([])]
        for start in range(0, len(left), _PAIRS_AT_ONCE):
            sides = (side[start : start + _PAIRS_AT_ONCE].tolist() for side in (left, right))
            found = (
                Pair(one, other, comparer.compare(one, other)) for one, other in zip(*sides, strict=True)
            )
            parts.append(Pairs.of([pair for pair in found if pair.difference.relation != "apart"]))
        pairs = Pairs._make(map(np.concatenate, zip(*parts, strict=True)))
        _join_near(comparer, pairs, clusters)
        repeats = _find_repeats(comparer, pairs, clusters)
    return SimilarPairs(rows, owners, pairs, clusters, repeats, comparer)


class Clusters:
    """Disjoint sets of rows that can be joined; at first each row is alone."""

    def __init__(self, n_rows: int) -> None:
        self._of = list(range(n_rows))
        self._members: dict[int, list[int]] = {}

    def groups(self) -> Iterator[list[int]]:
        """Yield the clusters of more than one row."""
        yield from self._members.values()

    def of(self, row: int) -> int:
        """Return the number of the cluster of a row."""
        return self._of[row]

    def members(self, row: int) -> list[int]:
        """Return the rows of the cluster of a row."""
        return self._members.get(self._of[row], [row])

    def join(self, row: int, other: int) -> None:
        """Join the clusters of two rows; the result has the number of the larger one."""
        if self._of[row] == self._of[other]:
            return
        larger, smaller = sorted((self.members(row), self.members(other)), key=len, reverse=True)
        number = self._of[larger[0]]
        self._members.pop(self._of[smaller[0]], None)
        self._members[number] = larger + smaller
        for member in smaller:
            self._of[member] = number


def _join_same_words(owners: Rows, comparer: Comparer, clusters: Clusters) -> Rows:
    """Join texts of one owner with the same words in the same order, and return the first text of each cluster."""
    first_of: dict[tuple[int, str], int] = {}
    first = []
    for row, owner in enumerate(owners.tolist()):
        classes = comparer.classes_of(row)
        if not classes or first_of.setdefault((owner, classes), row) == row:
            first.append(row)
        else:
            clusters.join(first_of[owner, classes], row)
    return np.array(first, np.int64)


def _join_near(comparer: Comparer, pairs: Pairs, clusters: Clusters) -> None:
    """Join near-duplicates, but never two clusters with a pair of texts that differ in a value.

    Pairs of whole texts are joined first, the most similar ones before the others. Then a text that is the beginning of
    longer ones is joined with them, if these are in one cluster or near-duplicates.
    """
    near, changed = pairs.select_relation("near"), pairs.select_relation("changed")
    rows = np.union1d(near.left, near.right)  # only these can be joined
    between = changed.select(np.isin(changed.left, rows) & np.isin(changed.right, rows))
    differing: dict[int, list[int]] = defaultdict(list)
    for left, right, difference in between.each():
        if difference.kind != "word":
            differing[left].append(right)
            differing[right].append(left)

    def join(row: int, other: int) -> None:
        smaller, larger = sorted((clusters.members(row), clusters.members(other)), key=len)
        number = clusters.of(larger[0])
        differ = any(
            clusters.of(changed_row) == number
            for member in smaller
            for changed_row in differing.get(member, ())
        )
        if not differ:
            clusters.join(row, other)

    wholes_of: dict[int, list[int]] = defaultdict(list)
    for left, right, difference in near.select(np.lexsort((near.right, near.left, -near.score))).each():
        if difference.kind != "truncated":
            join(left, right)
        else:
            beginning, whole = sorted((left, right), key=comparer.fullness)
            wholes_of[beginning].append(whole)
    for beginning in sorted(wholes_of, key=lambda row: (comparer.fullness(row), row), reverse=True):
        wholes = wholes_of[beginning]
        is_one_cluster = len({clusters.of(whole) for whole in wholes} - {clusters.of(beginning)}) == 1
        if is_one_cluster or all(
            comparer.compare(*sorted(pair)).relation == "near" for pair in pairwise(wholes)
        ):
            for whole in wholes:
                join(beginning, whole)


def _find_repeats(comparer: Comparer, pairs: Pairs, clusters: Clusters) -> dict[int, Pair]:
    """Find for each text without near-duplicates the fuller text that it repeats; of several the most similar one."""
    repeats: dict[int, Pair] = {}
    for pair in pairs.select_relation("repeats").each():
        whole, part = sorted(
            pair[:2],
            key=lambda row: (*comparer.fullness(row), len(clusters.members(row)), -row),
            reverse=True,
        )
        best = repeats.get(part)
        if len(clusters.members(part)) > 1 or (best and _rank(comparer, best) >= _rank(comparer, pair)):
            continue
        repeats[part] = Pair(whole, part, pair.difference)
    return repeats


def _rank(comparer: Comparer, pair: Pair) -> tuple[float, tuple[int, int]]:
    """Return the score of a pair, and for equal scores the fullness of the fuller text."""
    return pair.difference.score, max(map(comparer.fullness, pair[:2]))
