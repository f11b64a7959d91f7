"""Similar pairs and their clusters: which memories of one person say the same, or the same with another value.

What the checks on near-duplicates and versions share, so that it is found once.
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


class Pair(NamedTuple):
    """Two texts and what they differ in."""

    left: int
    right: int
    difference: Difference


class Link(NamedTuple):
    """An older text, a newer version of it, and why they are taken for versions of one memory."""

    older: int
    newer: int
    kind: str
    score: float
    evidence: str
    span: tuple[int, int] | None = None
    """Place of the value in the older text."""
    severity: Severity = "low"


_KINDS: tuple[tuple[Relation, str], ...] = (
    *(("near", kind) for kind in ("spelling", "order", "typing", "truncated")),
    ("repeats", "shortened"),
    *(("changed", kind) for kind in ("number", "date", "word", "polarity")),
)


class Pairs(NamedTuple):
    """Many pairs, a column for each thing that is known of them, but for the words in which they differ."""

    left: Rows
    right: Rows
    kind: NDArray[np.int8]
    score: NDArray[np.float64]
    n_shared: NDArray[np.int32]

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> Pairs:
        """Build the columns of pairs that are not apart."""
        left, right, differences = zip(*pairs, strict=True) if pairs else ((), (), ())
        return cls(
            np.array(left, np.int64),
            np.array(right, np.int64),
            np.array([_KINDS.index((one.relation, one.kind)) for one in differences], np.int8),
            np.array([one.score for one in differences], np.float64),
            np.array([one.n_shared for one in differences], np.int32),
        )

    def those(self, chosen: NDArray[np.bool_] | Rows) -> Pairs:
        """Choose some of them."""
        return Pairs._make(column[chosen] for column in self)

    def that_are(self, relation: Relation) -> Pairs:
        """Choose those that have this relation."""
        return self.those(np.isin(self.kind, [n for n, kind in enumerate(_KINDS) if kind[0] == relation]))

    def each(self) -> Iterator[Pair]:
        """Yield one after the other."""
        for left, right, kind, score, n_shared in zip(*(column.tolist() for column in self), strict=True):
            relation, name = _KINDS[kind]
            yield Pair(left, right, Difference(relation, name, score, n_shared))


@dataclass(frozen=True, eq=False)
class SimilarPairs:
    """Texts, pairs of them that are alike, and clusters of those that say the same."""

    rows: Rows
    """The row of the frame for each text. Of memories with the same text it is the one to keep."""
    owners: Rows
    """A number for the user of each text."""
    pairs: Pairs
    """Pairs of places in ``rows``; of texts with the same words the first alone."""
    clusters: Clusters
    repeats: dict[int, Pair]
    """Pair of each text that repeats a fuller one (``left``), where that is for a person to decide."""
    comparer: Comparer

    @cached_property
    def near(self) -> dict[tuple[int, int], Difference]:
        """Difference of each pair that says the same, in the order of the pairs."""
        return {(left, right): difference for left, right, difference in self.pairs.that_are("near").each()}

    def compare(self, row: int, other: int) -> Difference:
        """Decide what two texts are to each other; of those that say the same it is known."""
        two = min(row, other), max(row, other)
        return self.near.get(two) or self.comparer.compare(*two)

    def is_repeated(self, row: int, other: int) -> bool:
        """Return True if two texts are copies, or the one repeats the other: what says nothing new is no version."""
        return self.clusters.of(row) == self.clusters.of(other) or any(
            one in self.repeats and self.clusters.of(self.repeats[one].left) == self.clusters.of(two)
            for one, two in ((row, other), (other, row))
        )


def similar_pairs(memories: Memories) -> SimilarPairs:
    """Compare each memory with those of the same user that may say the same.

    Time and memory grow with the number of memories, not with its square, also where thousands share a template.
    What is found does not depend on the order of the rows.

    Parameters
    ----------
    memories : DataFrame
        Columns as `load_memories` has them; rows without content are left out.
    """
    prepared = MemoryTexts.of(memories)
    rows = np.flatnonzero(copies_of(without_long_contents(prepared)) == np.arange(len(prepared)))
    owners, texts = owners_of(prepared)[rows], prepared.column("content").take(pa.array(rows))
    order = pc.array_sort_indices(texts, order="descending").to_numpy()  # so that what begins alike is close
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
    """Sets of rows that grow together; each row begins alone."""

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
        """Make one cluster of two, under the number of the larger."""
        if self._of[row] == self._of[other]:
            return
        kept, gone = sorted((self.members(row), self.members(other)), key=len, reverse=True)
        number = self._of[kept[0]]
        self._members.pop(self._of[gone[0]], None)
        self._members[number] = kept + gone
        for member in gone:
            self._of[member] = number


def _join_same_words(owners: Rows, comparer: Comparer, clusters: Clusters) -> Rows:
    """Join texts of one owner with the same words in the same order, and return the first of each such cluster."""
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
    """Join texts that say the same, but no two clusters of which two texts have another value.

    First come pairs that say all of each other, the most similar first. Then the beginning of a longer text joins that,
    if all texts that it may be the beginning of are one cluster.
    """
    near, changed = pairs.that_are("near"), pairs.that_are("changed")
    rows = np.union1d(near.left, near.right)  # only these can come to a cluster
    differing: dict[int, list[int]] = defaultdict(list)
    for left, right, difference in changed.those(
        np.isin(changed.left, rows) & np.isin(changed.right, rows)
    ).each():
        if difference.kind != "word":
            differing[left].append(right)
            differing[right].append(left)

    def join(row: int, other: int) -> None:
        few, many = sorted((clusters.members(row), clusters.members(other)), key=len)
        number = clusters.of(many[0])
        if not any(clusters.of(one) == number for member in few for one in differing.get(member, ())):
            clusters.join(row, other)

    parts: dict[int, list[int]] = defaultdict(list)
    for left, right, difference in near.those(np.lexsort((near.right, near.left, -near.score))).each():
        if difference.kind != "truncated":
            join(left, right)
        else:
            part, whole = sorted((left, right), key=comparer.fullness)
            parts[part].append(whole)
    for part in sorted(parts, key=lambda row: (comparer.fullness(row), row), reverse=True):
        wholes = parts[part]
        if len({clusters.of(whole) for whole in wholes} - {clusters.of(part)}) == 1 or all(
            comparer.compare(*sorted(two)).relation == "near" for two in pairwise(wholes)
        ):
            for whole in wholes:
                join(part, whole)


def _find_repeats(comparer: Comparer, pairs: Pairs, clusters: Clusters) -> dict[int, Pair]:
    """Find for each text that is no copy the fuller one that it repeats most of, of several the fullest."""
    repeats: dict[int, Pair] = {}
    for pair in pairs.that_are("repeats").each():
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
    return pair.difference.score, max(map(comparer.fullness, pair[:2]))
