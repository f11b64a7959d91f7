"""Filters of the queue for all desks: by values, with counts of each, and by words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import pandas as pd
from msgspec import Struct

from memframe.review.desk import Review
from memframe.review.proposals import Proposal

FACETS = ("decision", "check", "kind", "source", "tag", "year")
"""Properties by whose values proposals are filtered."""

STATE_WORDS = {
    "": "open",
    "accepted": "accepted",
    "edited": "edited",
    "rejected": "rejected",
    "later": "later",
}
"""Values of the facet of decisions."""

Chosen = Mapping[str, Sequence[str]]
"""Wanted values by facet; a proposal must have one of them in each facet."""


class _Columns(Struct):
    """Columns of the audited memories by which proposals are filtered."""

    source: list[str]
    tag: list[tuple[str, ...]]
    year: list[str]
    searched: list[str]


class Filters:
    """Filters of the queue of a review; the values of proposals are cached until these are grouped anew.

    >>> import pandas as pd
    >>> from memframe import audit_memories
    >>> from memframe.review import review
    >>> memories = pd.DataFrame({"id": ["m1", "m2", "m3"], "content": ["Likes tea", "Likes tea", "Door code: 2580#"]})
    >>> filters = Filters(review(audit_memories(memories)))
    >>> [one.first.check for one in filters.find({}, "DOOR")], [one.first.check for one in filters.find({}, "secret/")]
    (['secret'], ['secret'])
    >>> sorted(filters.count({}, "")["check"].items())
    [('exact_duplicate', 1), ('secret', 1)]
    """

    def __init__(self, review: Review) -> None:
        self._review = review
        self._grouped = review.proposals_by_id
        self._known: dict[str, dict[str, set[str]]] = {}

    def find(self, chosen: Chosen, search: str) -> list[Proposal]:
        """Return the proposals that have the values and all the words, in the order of the queue.

        Words are searched in the memories, their sources, and in check and kind, such as ``stale/expired``.
        """
        words = search.casefold().split()
        return [
            one
            for one in self._review.proposals
            if not (chosen and self._misses(one, chosen)) and (not words or self._has_words(one, words))
        ]

    def count(self, chosen: Chosen, search: str) -> dict[str, Counter[str]]:
        """Count proposals by facet and value, among those that the other facets select."""
        words = search.casefold().split()
        counts: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
        for one in self._review.proposals_by_id.values():
            missed = self._misses(one, chosen)
            if len(missed) > 1 or (words and not self._has_words(one, words)):
                continue
            for name, values in self._values(one).items():
                if not missed or name in missed:
                    counts[name].update(values)
        return counts

    def _misses(self, one: Proposal, chosen: Chosen) -> list[str]:
        """Return the facets in which a proposal has none of the wanted values."""
        values = self._values(one) if chosen else {}
        return [name for name, wanted in chosen.items() if values[name].isdisjoint(wanted)]

    def _values(self, one: Proposal) -> dict[str, set[str]]:
        if self._grouped is not self._review.proposals_by_id:
            self._grouped = self._review.proposals_by_id
            self._known.clear()
        known = self._known.get(one.id)
        if known is None:
            places = list(self._places(one.ids))
            columns = self._columns
            known = self._known[one.id] = {
                "check": {one.first.check},
                "kind": {one.first.kind},
                "source": {columns.source[place] for place in places} - {""},
                "tag": {tag for place in places for tag in columns.tag[place]},
                "year": {columns.year[place] for place in places} - {""},
            }
        return known | {"decision": {STATE_WORDS[self._review.state(one)]}}

    def _has_words(self, one: Proposal, words: Iterable[str]) -> bool:
        texts = [self._columns.searched[place] for place in self._places((*one.ids, *one.keeps))]
        texts = texts or [" ".join(self._review.texts.sides(one)).casefold()]
        texts.append(f"{one.first.check}/{one.first.kind}".casefold())
        return all(any(word in text for text in texts) for word in words)

    def _places(self, ids: Iterable[str]) -> Iterable[int]:
        return (place for i in ids if (place := self._review.texts.place_of(i)) is not None)

    @cached_property
    def _columns(self) -> _Columns:
        frame = self._review.texts.memories

        def column(name: str) -> list[Any]:
            return frame[name].tolist() if name in frame.columns else [None] * len(frame)

        times = (str(time)[:4] if not pd.isna(time) else "" for time in column("created_at"))
        texts = zip(*(column(name) for name in ("title", "summary", "content", "source")), strict=True)
        return _Columns(
            [source if isinstance(source, str) else "" for source in column("source")],
            [tuple(map(str, tags)) if isinstance(tags, Sequence) and not isinstance(tags, str) else ()
             for tags in column("tags")],
            list(times),
            [" ".join(text for text in row if isinstance(text, str)).casefold() for row in texts],
        )  # fmt: skip
