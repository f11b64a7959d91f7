"""Clusters: texts that say the same, grown from pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memframe.audit.difference import Difference
from memframe.audit.reader import Reader

_PARTIAL = frozenset({"truncated", "extended"})
_AS_MUCH = 0.02
_MOST_RIVALS = 3


class Pair(NamedTuple):
    """Two texts and what they differ in."""

    left: int
    right: int
    difference: Difference


class Clusters:
    """Sets of rows that grow together; each row begins alone."""

    def __init__(self, n_rows: int) -> None:
        self._of = list(range(n_rows))
        self._members: dict[int, list[int]] = {}

    def copy(self) -> Clusters:
        """The same clusters, to grow further."""
        other = Clusters(len(self._of))
        other._of, other._members = list(self._of), dict(self._members)
        return other

    def groups(self) -> Iterator[list[int]]:
        """The clusters of more than one row."""
        yield from self._members.values()

    def of(self, row: int) -> int:
        """The number of the cluster of a row."""
        return self._of[row]

    def members(self, row: int) -> list[int]:
        """The rows of the cluster of a row."""
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


def near_clusters(reader: Reader, pairs: Iterable[Pair], n_rows: int) -> Clusters:
    """Texts that say the same, none of them beside one that has another value.

    First come pairs that say all of each other. Then a text that is a part of another one joins it, the likest
    first. A part that stands with one whole already joins no other that says something else; one that is as much a
    part of two such joins the larger cluster, since it adds nothing to either; a stump of three or more joins none.
    """
    clusters = Clusters(n_rows)
    partial = []
    for pair in pairs:
        if pair.difference.verdict == "near":
            if pair.difference.kind in _PARTIAL:
                partial.append(pair)
            else:
                clusters.join(pair.left, pair.right)
    wholes: dict[int, int] = {}
    for part, whole, _ in _decided(reader, clusters, partial):
        a, b = clusters.of(part), clusters.of(whole)
        if a != b and (a not in wholes or _agree(reader, clusters, wholes[a], whole)):
            stands_with = wholes.get(b, whole)
            clusters.join(part, whole)
            wholes[clusters.of(whole)] = stands_with
    return clusters


def _decided(reader: Reader, clusters: Clusters, partial: Iterable[Pair]) -> Iterator[tuple[int, int, float]]:
    """Parts with the texts that they are parts of and how much of those they are, the likest first."""
    wholes: dict[int, list[tuple[int, int, float]]] = defaultdict(list)
    for left, right, difference in partial:
        part, whole = sorted((left, right), key=reader.fullness)
        wholes[part].append((part, whole, difference.score))
    chosen: list[tuple[int, int, float]] = []
    for edges in wholes.values():
        best = max(score for _, _, score in edges)
        likest = [edge for edge in edges if edge[2] > best - _AS_MUCH]
        likest.sort(key=lambda edge: (-len(clusters.members(edge[1])), edge[1]))
        rivals: list[tuple[int, int, float]] = []
        for edge in likest:
            if not any(_agree(reader, clusters, edge[1], rival[1]) for rival in rivals):
                rivals.append(edge)
        if len(rivals) < _MOST_RIVALS:
            chosen += [rivals[0], *(edge for edge in edges if edge not in rivals)]
    yield from sorted(chosen, key=lambda edge: (-edge[2], edge[0], edge[1]))


def _agree(reader: Reader, clusters: Clusters, row: int, other: int) -> bool:
    return clusters.of(row) == clusters.of(other) or reader.difference(row, other).verdict == "near"
