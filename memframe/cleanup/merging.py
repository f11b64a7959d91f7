"""Merging: of memories that say the same one is kept, and holds afterwards what all of them held.

What one memory cannot hold stays in two: a second source, a word of a title, a name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from msgspec import Struct

from memframe.audit.keeper import precedence
from memframe.audit.language.plainness import oddness
from memframe.audit.likeness.clusters import Clusters
from memframe.cleanup.values import Said, Store, Texts, lost
from memframe.frames import MEMORY_KINDS
from memframe.plan.cells import normalize
from memframe.plan.change import Value, same_value

_TEXTS = ("title", "summary", "content")
_FILLED = ("title", "summary", "source", "importance", "confidence")
"""Fields that a keeper takes over from the others where it has none."""

_RANKS = {"near_duplicate": 0, "exact_duplicate": 1, "junk": 2}
"""Whose keeper is kept where checks have chosen several: that of the check which compares most."""

_LAST, _MANY = 9, 1000

Values = Mapping[str, Value]


class Copy(NamedTuple):
    """What an audit said of one memory that another one says, too."""

    id: str
    keeper: str
    check: str
    kind: str
    action: str


class Merge(Struct, frozen=True, kw_only=True):
    """One memory that is kept, and those that are in it from then on.

    Attributes
    ----------
    keeper : str
    copies : tuple of str
    values : dict of str to value
        Of the keeper, afterwards.
    """

    keeper: str
    copies: tuple[str, ...]
    values: dict[str, Value]


class Merging:
    """Finds what can be merged without a loss.

    Parameters
    ----------
    memories : DataFrame
        All that were audited.
    values : mapping
        The fields of each memory that may take part, by its id, as they are going to be.
    taken : collection of str
        "delete" where copies go that hold nothing of their own, "merge" where others are merged.
    apart : collection of set of str
        Pairs of memories that differ in a value.
    """

    def __init__(
        self,
        memories: pd.DataFrame,
        values: Mapping[str, Values],
        *,
        taken: Collection[str],
        apart: Collection[frozenset[str]],
    ) -> None:
        self._memories = memories
        self._values = values
        self._taken = taken
        self._apart_from: defaultdict[str, set[str]] = defaultdict(set)
        for one, other in map(sorted, apart):
            self._apart_from[one].add(other)
            self._apart_from[other].add(one)
        self._store = Store(memories)
        self._copies: dict[str, Copy] = {}
        self._texts = Texts({})

    def merges(self, copies: Iterable[Copy]) -> Iterator[Merge]:
        """What becomes of memories that say the same; those that have to stay are in none of the merges."""
        found = sorted({copy for copy in copies if copy.id != copy.keeper}, key=_rank_of, reverse=True)
        self._copies = {copy.id: copy for copy in found}  # of several the one that compares most
        clusters = [[i for i in cluster if i in self._values] for cluster in _clusters(found)]
        members = [member for cluster in clusters for member in cluster]
        self._texts = Texts(
            {(i, name): str(self._values[i].get(name) or "") for i in members for name in _TEXTS}
        )
        order = self._order(members, found)
        for cluster in clusters:
            yield from self._of_cluster(sorted(cluster, key=order.__getitem__))

    def _order(self, members: Sequence[str], copies: Sequence[Copy]) -> dict[str, tuple[int, int]]:
        """Who is kept rather than whom: what the checks chose, then whoever says most."""
        chosen = {(copy.keeper, copy.check) for copy in copies} - {(copy.id, copy.check) for copy in copies}
        rank: dict[str, int] = {}
        for keeper, check in chosen:
            rank[keeper] = min(rank.get(keeper, _LAST), _RANKS.get(check, _LAST))
        rows = self._memories.drop_duplicates("id").set_index("id", drop=False).reindex(list(members))
        says = np.array([self._texts.n_values((member, "content")) for member in members], np.float64)
        odd = oddness([str(self._values[member].get("content") or "") for member in members])
        places = precedence(rows.reindex(columns=list(MEMORY_KINDS)), says - np.floor(odd) / _MANY, odd)
        return {i: (rank.get(i, _LAST), place) for i, place in zip(members, places.tolist(), strict=True)}

    def _of_cluster(self, members: Sequence[str]) -> Iterator[Merge]:
        """The first takes in what it can hold; what is left may still be one text several times."""
        left, is_first = list(members), True
        while left:
            keeper, *others = left
            content = self._values[keeper]["content"]
            holder = _Holder(keeper, self._values[keeper])
            self._fill(holder, [i for i in others if is_first or self._values[i]["content"] == content])
            if len(holder.members) > 1:
                yield Merge(keeper=keeper, copies=tuple(holder.members)[1:], values=holder.values)
            left, is_first = [i for i in others if i not in holder.members], False

    def _fill(self, holder: _Holder, waiting: Sequence[str]) -> None:
        """Take in what can be held, again and again, as what was taken in may hold more."""
        n_before = 0
        while len(holder.members) > n_before:
            n_before = len(holder.members)
            for member in waiting:
                if member not in holder.members and self._may_go(member, holder):
                    self._take_in(member, holder)

    def _may_go(self, member: str, holder: _Holder) -> bool:
        """Whether that is asked for, and no value known in which the two differ."""
        values, copy = self._values[member], self._copies.get(member)
        is_plain = values["content"] == holder.values["content"] and not holder.gains(values)
        is_asked = "merge" in self._taken and (not is_plain or (copy is not None and copy.action == "merge"))
        is_asked |= is_plain and "delete" in self._taken
        return is_asked and holder.members.keys().isdisjoint(self._apart_from[member])

    def _take_in(self, member: str, holder: _Holder) -> None:
        values, copy = self._values[member], self._copies.get(member)
        gains = holder.gains(values)
        grown = {**holder.values, **gains}
        if not _can_hold(grown, values, gains):
            return
        written = {**holder.written, **dict.fromkeys(gains, member)}
        if any(values.get(name) not in (None, grown[name]) for name in _TEXTS):
            breaks_off = copy is not None and copy.kind == "truncated"
            doomed, kept = self._said(dict.fromkeys(_TEXTS, member)), self._said(written)
            if lost(doomed, kept, self._store, breaks_off=breaks_off):
                return
        holder.take(member, gains, written)

    def _said(self, written: Mapping[str, str]) -> Said:
        """What three texts say together, each given by the memory whose it is."""
        return Said.of(self._texts.said((written[name], name)) for name in _TEXTS)


def _can_hold(grown: Values, other: Values, gains: Values) -> bool:
    """Whether there is one source for both, and a service takes what is taken over."""
    is_sendable = all(normalize(name, value) == (value, None, False) for name, value in gains.items())
    return is_sendable and (_is_empty(other.get("source")) or other.get("source") == grown["source"])


class _Holder:
    """A memory that is kept, on its way to hold others."""

    def __init__(self, memory_id: str, values: Values) -> None:
        self.members = {memory_id: None}
        """Itself, and in their order the memories that are in it."""
        self.values = dict(values)
        self.written: dict[str, str] = dict.fromkeys(_TEXTS, memory_id)
        """Of which memory each field is."""

    def gains(self, other: Values) -> dict[str, Value]:
        """What it would take over from another one."""
        gains = {name: other.get(name) for name in _FILLED if _is_empty(self.values.get(name))}
        gains = {name: value for name, value in gains.items() if not _is_empty(value)}
        tags = tuple(dict.fromkeys([*_tags(self.values), *_tags(other)]))
        if not same_value("tags", tags, self.values.get("tags")):
            gains["tags"] = tags
        return gains

    def take(self, member: str, gains: Values, written: dict[str, str]) -> None:
        """Hold another one from now on."""
        self.members[member] = None
        self.values |= gains
        self.written = written


def _rank_of(copy: Copy) -> tuple[int, str, str, str]:
    return _RANKS.get(copy.check, _LAST), copy.id, copy.keeper, copy.kind


def _clusters(copies: Sequence[Copy]) -> list[list[str]]:
    """Memories that say the same, with whatever says the same as one of them."""
    ids = sorted({memory_id for copy in copies for memory_id in (copy.id, copy.keeper)})
    place = {memory_id: number for number, memory_id in enumerate(ids)}
    clusters = Clusters(len(ids))
    for copy in copies:
        clusters.join(place[copy.id], place[copy.keeper])
    return sorted(sorted(ids[member] for member in group) for group in clusters.groups())


def _is_empty(value: Value) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _tags(values: Values) -> tuple[str, ...]:
    tags = values.get("tags")
    return tags if isinstance(tags, tuple) else ()
