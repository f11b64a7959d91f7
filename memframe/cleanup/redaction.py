"""Redaction: secrets cut out of texts where they stand, with a short mark left in their place.

Offsets are of Python's characters, in the text that was audited. What the audit found of one memory goes from all of
its fields: a password in the content stands in the title, or as a tag, as often as not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

import pandas as pd

from memframe.audit.findings import findings_frame, joined
from memframe.audit.likeness.clusters import Clusters
from memframe.audit.personal_data import find_personal_data
from memframe.audit.secrets import find_secrets
from memframe.change import Value
from memframe.cleanup.cutting import Cutting, Found, Redacted, Stretch, secrets_in

_FINDERS: Mapping[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "secret": find_secrets,
    "personal_data": find_personal_data,
}
TEXTS = ("title", "summary", "content")
"""Fields that are searched; what is found there is cut out of all."""

Memories = Mapping[str, Mapping[str, Value]]
"""The fields of memories, by id."""

_MOST_ROUNDS = 5


class Search:
    """Looks for what should not be seen in the open; in the same texts once."""

    def __init__(self) -> None:
        self._found: dict[tuple[Value, ...], Found] = {}

    def open_in(self, memories: Memories, checks: Iterable[str]) -> dict[str, Found]:
        """What stands in the open in each of some memories, in which there is any."""
        found: defaultdict[str, dict[str, list[Stretch]]] = defaultdict(dict)
        for check in checks:
            key_of = {i: (check, *map(memory.get, TEXTS)) for i, memory in memories.items()}
            self._look({i: memories[i] for i, key in key_of.items() if key not in self._found}, check)
            for memory_id, key in key_of.items():
                for field, stretches in self._found[key].items():
                    found[memory_id].setdefault(field, []).extend(stretches)
        return dict(found)

    def _look(self, memories: Memories, check: str) -> None:
        found = _open(searched_in(memories, [check]), memories)
        self._found |= {(check, *map(memory.get, TEXTS)): found.get(i, {}) for i, memory in memories.items()}


def redact(
    findings: pd.DataFrame,
    memories: Memories,
    *,
    apart: Iterable[frozenset[str]] = (),
    searched: pd.DataFrame | None = None,
    search: Search | None = None,
) -> dict[str, Redacted]:
    """Cut out what was found.

    Once cut, the texts are searched again: of two findings that shared characters an audit names but one, and the
    rest of the other must not stay. What the same search finds in the text as it was, and nobody asked for, stays.

    Texts that were different stay so: where nothing but the secrets told them apart, their marks are numbered.

    Parameters
    ----------
    findings : DataFrame
        With ``check kind id field start end score``; of one check, or of several.
    memories : mapping
        The fields of each memory, by its id.
    apart : iterable of set of str
        Pairs of memories that are known to differ in a value.
    searched : DataFrame, optional
        What `searched_in` has found in these memories, and maybe others, where it was asked before.
    search : Search, optional
        That has looked at some of what becomes of them before.

    Returns
    -------
    dict of str to Redacted
        For the memories that change.
    """
    cuttings = {i: Cutting(memories[i], by_field) for i, by_field in _stretches(findings, memories).items()}
    checks = [check for check in _FINDERS if (findings["check"] == check).any()]
    known = searched_in({i: memories[i] for i in cuttings}, checks) if searched is None else searched
    known = known[known["check"].isin(checks) & known["id"].isin(cuttings)]
    spared = {i: secrets_in(by_field, memories[i]) for i, by_field in _open(known, memories).items()}
    for alike in _alike(cuttings, apart):
        _number(alike)  # before the next rounds, whose places are those behind these marks
    search, left = search or Search(), set(cuttings)
    for _ in range(_MOST_ROUNDS):
        values = {i: cuttings[i].values() for i in sorted(left)}
        found = search.open_in(values, checks)
        new = {i: some for i in found if (some := _without(found[i], values[i], spared.get(i, {})))}
        for i, some in new.items():
            cuttings[i].go_on(some)
        left = set(new)  # the others are done
    done = {i: cutting.redacted() for i, cutting in cuttings.items()}
    return {i: some for i, some in done.items() if some.values}


def _without(found: Found, memory: Mapping[str, Value], spared: Container[str]) -> dict[str, list[Stretch]]:
    """What was found but for some texts."""
    new = {
        field: [one for one in stretches if str(memory[field])[one.start : one.end] not in spared]
        for field, stretches in found.items()
    }
    return {field: stretches for field, stretches in new.items() if stretches}


def _alike(cuttings: Mapping[str, Cutting], apart: Iterable[frozenset[str]]) -> list[list[Cutting]]:
    """Memories that nothing may tell apart any more, or that are known to differ in a value."""
    ids = list(cuttings)
    place = {memory_id: number for number, memory_id in enumerate(ids)}
    clusters, first_with = Clusters(len(ids)), dict[Value, int]()
    for number, memory_id in enumerate(ids):
        clusters.join(first_with.setdefault(cuttings[memory_id].values()["content"], number), number)
    for pair in apart:
        if pair <= place.keys():
            clusters.join(*(place[memory_id] for memory_id in pair))
    return [[cuttings[ids[member]] for member in sorted(group)] for group in clusters.groups()]


def _number(alike: Sequence[Cutting]) -> None:
    """Give different secrets of one kind different names."""
    numbers: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for some in (some for cutting in alike for some in cutting.rounds):
        for secret, kind in some.names.items():
            numbers[kind].setdefault(secret, len(numbers[kind]) + 1)
    for cutting in alike:
        cutting.number(numbers)


def _stretches(findings: pd.DataFrame, memories: Memories) -> dict[str, dict[str, list[Stretch]]]:
    """What was found by memory and field, as far as it lies within a text."""
    found: defaultdict[str, dict[str, list[Stretch]]] = defaultdict(dict)
    spans = findings.dropna(subset=["start", "end"])
    columns = (spans[name] for name in ("id", "field", "start", "end", "kind", "score"))
    for memory_id, field, start, end, kind, score in zip(*columns, strict=True):
        text = memories[memory_id].get(field)
        if isinstance(text, str) and 0 <= start < end <= len(text):
            found[memory_id].setdefault(field, []).append(Stretch(int(start), int(end), kind, score))
    return dict(found)


def searched_in(memories: Memories, checks: Iterable[str] = tuple(_FINDERS)) -> pd.DataFrame:
    """What an audit finds in titles, summaries and contents of memories that may have to be cut out."""
    if not memories:
        return findings_frame(id=[])
    texts = {name: _column(name, memories) for name in TEXTS}
    frame = pd.DataFrame({"id": pd.Series(list(memories), dtype="str"), **texts})
    return joined(_FINDERS[check](frame) for check in checks)


def _open(found: pd.DataFrame, memories: Memories) -> dict[str, dict[str, list[Stretch]]]:
    """What should not be seen in the open, by memory and field."""
    return _stretches(found[found["action"] != "none"], memories)


def _column(name: str, memories: Memories) -> pd.Series[str]:
    return pd.Series([memory.get(name) for memory in memories.values()], dtype="str")
