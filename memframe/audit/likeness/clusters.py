"""Clusters: texts that say the same, grown from pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from memframe.audit.likeness.difference import PARTIAL
from memframe.audit.likeness.pairs import Pairs
from memframe.audit.likeness.reader import Reader

_AS_MUCH = 0.02
_MOST_RIVALS = 3


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

    def numbers(self) -> NDArray[np.int64]:
        """The number of the cluster of each row."""
        return np.array(self._of, np.int64)

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


def near_clusters(reader: Reader, pairs: Pairs, n_rows: int) -> Clusters:
    """Texts that say the same, none of them beside one that has another value.

    First come pairs that say all of each other, the likest first; two of them stay apart where as many texts of their
    clusters have another value as say the same: «3/5» says as much as «3 May», and as much as «5 March». Then a text
    that is a part of another one joins it. A part that stands with one whole already joins no other that says something
    else; one that is as much a part of two such joins the larger cluster, since it adds nothing to either; a stump of
    three or more joins none.
    """
    clusters, links = Clusters(n_rows), _Links(pairs, n_rows)
    near = pairs.that_are("near")
    is_part = near.are("near", *PARTIAL)
    for left, right, _ in _likest_first(near.those(~is_part)).each():
        if links.agree(clusters, left, right):
            clusters.join(left, right)
    _join_parts(reader, clusters, links, near.those(is_part))
    return clusters


def _likest_first(pairs: Pairs) -> Pairs:
    return pairs.those(np.lexsort((pairs.right, pairs.left, -pairs.score)))


class _Links:
    """Which texts say the same as a text, and which have another number or date, or deny it.

    Only texts that another one is near can come to a cluster, and are linked.
    """

    def __init__(self, pairs: Pairs, n_rows: int) -> None:
        self._near: dict[int, list[int]] = defaultdict(list)
        self._changed: dict[int, list[int]] = defaultdict(list)
        near = pairs.are("near")
        is_near = np.zeros(n_rows, bool)
        is_near[pairs.left[near]] = is_near[pairs.right[near]] = True
        linked = is_near[pairs.left] & is_near[pairs.right]
        linked &= ~pairs.are("changed", "word")  # which may be a synonym
        for left, right, difference in pairs.those(linked).each():
            links = self._near if difference.verdict == "near" else self._changed
            links[left].append(right)
            links[right].append(left)

    def agree(self, clusters: Clusters, row: int, other: int) -> bool:
        """Whether more texts of the two clusters say the same than have another value."""
        n_near, n_changed = (self._n(links, clusters, row, other) for links in (self._near, self._changed))
        return n_changed < max(1, n_near)

    def contradict(self, clusters: Clusters, row: int, other: int) -> bool:
        """Whether any text of the two clusters has another value."""
        return self._n(self._changed, clusters, row, other) > 0

    def _n(self, links: Mapping[int, list[int]], clusters: Clusters, row: int, other: int) -> int:
        few, many = sorted((clusters.members(row), clusters.members(other)), key=len)
        number = clusters.of(many[0])
        return sum(clusters.of(linked) == number for member in few for linked in links.get(member, ()))


def _join_parts(reader: Reader, clusters: Clusters, links: _Links, partial: Pairs) -> None:
    """Let each part stand with a text that it is a part of."""
    wholes: dict[int, int] = {}
    for part, whole, _ in _decided(reader, clusters, partial):
        a, b = clusters.of(part), clusters.of(whole)
        if (
            a != b
            and (a not in wholes or _agree(reader, clusters, wholes[a], whole))
            and not links.contradict(clusters, part, whole)
        ):
            stands_with = wholes.get(b, whole)
            clusters.join(part, whole)
            wholes[clusters.of(whole)] = stands_with


def _decided(reader: Reader, clusters: Clusters, partial: Pairs) -> Iterator[tuple[int, int, float]]:
    """Parts with the texts that they are parts of and how much of those they are, the likest first."""
    wholes: dict[int, list[tuple[int, int, float]]] = defaultdict(list)
    for left, right, difference in partial.each():
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
