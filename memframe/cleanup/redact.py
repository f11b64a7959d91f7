"""Redaction: replace secrets in texts by a short mark.

Offsets count characters of the audited text. What the audit found in one field of a memory is removed from all its
fields: a password in the content is often in the title, or a tag, as well.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from memframe.audit.evidence import FINDERS
from memframe.audit.findings import Check, findings_frame, join_findings
from memframe.audit.similarity.cluster import Clusters
from memframe.audit.text import TEXT_FIELDS, redaction_mark
from memframe.plan.change import Fields, Value

_FIELDS = (*TEXT_FIELDS, "source", "tags")
"""Fields in which a secret may stand; only the texts are searched for one."""

_MIN_ALONE = 4
"""Characters from which on a secret without a digit is looked for in the rest of its memory, too."""

_MAX_ROUNDS = 5

Memories = Mapping[str, Fields]
"""The fields of memories, by id."""


class Stretch(NamedTuple):
    """Part of a text to redact, up to and without ``end``."""

    start: int
    end: int
    kind: str
    score: float = 1.0


Found = Mapping[str, Sequence[Stretch]]
"""What was found in a memory, by field."""


class Redacted(NamedTuple):
    """The fields of a memory that have changed, and what was cut out of it."""

    values: dict[str, Value]
    secrets: frozenset[str]


def redact_memories(
    findings: pd.DataFrame,
    memories: Memories,
    *,
    searched: pd.DataFrame,
    apart: Iterable[frozenset[str]] = (),
) -> dict[str, Redacted]:
    """Cut out what was found, and return the memories that change.

    The redacted texts are searched again: of two findings that share characters an audit names only one, and the rest
    of the other must not remain. What this search already finds in the original text without being asked for remains.

    Different texts stay different: if only the secrets distinguished them, their marks are numbered.

    `searched` is what `search_memories` has found in these memories, and `apart` are pairs of memories that are known
    to differ in a value.
    """
    redactions = {
        i: _Redaction(memories[i], by_field) for i, by_field in _read_stretches(findings, memories).items()
    }
    checks = [check for check in FINDERS if (findings["check"] == check).any()]
    known = searched[searched["check"].isin(checks) & searched["id"].isin(redactions)]
    spared = {
        i: _name_secrets(by_field, memories[i]) for i, by_field in _select_visible(known, memories).items()
    }
    for alike in _group_alike(redactions, apart):
        _number_marks(alike)  # before the next rounds, whose places are those behind these marks
    left = set(redactions)
    for _ in range(_MAX_ROUNDS):
        values = {i: redactions[i].values() for i in sorted(left)}
        found = _select_visible(search_memories(values, checks), values)
        new = {i: some for i in found if (some := _leave_out(found[i], values[i], spared.get(i, {})))}
        for i, some in new.items():
            redactions[i].add(some)
        left = set(new)  # the others are done
    done = {i: redaction.result() for i, redaction in redactions.items()}
    return {i: some for i, some in done.items() if some.values}


def search_memories(memories: Memories, checks: Iterable[Check] = tuple(FINDERS)) -> pd.DataFrame:
    """Return what an audit finds in titles, summaries and contents that may have to be cut out."""
    if not memories:
        return findings_frame(id=[])
    texts = {name: [memory.get(name) for memory in memories.values()] for name in TEXT_FIELDS}
    frame = pd.DataFrame({"id": list(memories), **texts}, dtype="str")
    return join_findings(FINDERS[check](frame) for check in checks)


def cut(text: str, stretches: Iterable[Stretch]) -> str:
    """Replace each stretch of a text by a mark; stretches that share characters become one.

    >>> cut("pin 4711, or 4711#", [Stretch(4, 8, "pin"), Stretch(13, 17, "pin"), Stretch(13, 18, "access_code", 0.5)])
    'pin [redacted: pin], or [redacted: pin]'
    """
    apart: list[Stretch] = []
    for stretch in sorted(stretches):
        end = stretch.end
        while end < len(text) and (unicodedata.category(text[end])[0] == "M" or text[end] == "\u200d"):
            end += 1  # accents and variants belong to the last character
        one = stretch._replace(end=end)
        if apart and one.start < apart[-1].end:
            other = apart.pop()
            surest = max(other, one, key=lambda some: (some.score, some.end - some.start))
            one = surest._replace(start=other.start, end=max(other.end, end))
        apart.append(one)
    done, place = [], 0
    for one in apart:
        done += [text[place : one.start], redaction_mark(one.kind)]
        place = one.end
    return "".join([*done, text[place:]])


class _Redaction:
    """Redaction of one memory in rounds: what was found in each, and the name of each mark."""

    def __init__(self, memory: Fields, found: Found) -> None:
        self.memory = memory
        self.rounds = [(found, _name_secrets(found, memory))]
        self._values: dict[str, Value] | None = None

    def values(self) -> Fields:
        """Return all fields, without what was found in them, and without the same wherever else it stands."""
        if self._values is None:
            self._values = dict(self.memory)
            for found, names in self.rounds:
                self._values = _cut_all(self._values, found, names)
        return self._values

    def add(self, found: Found) -> None:
        """Cut out what was found in the values as they are."""
        self.rounds.append((found, _name_secrets(found, self.values())))
        self._values = None

    def result(self) -> Redacted:
        changed = {name: value for name, value in self.values().items() if value != self.memory[name]}
        return Redacted(changed, frozenset(secret for _, names in self.rounds for secret in names))

    def number(self, numbers: Mapping[str, Mapping[str, int]]) -> None:
        """Number the marks of kinds of which there are several secrets."""
        for _, names in self.rounds:
            names |= {s: f"{kind} {numbers[kind][s]}" for s, kind in names.items() if len(numbers[kind]) > 1}
        self._values = None


def _name_secrets(found: Found, memory: Fields) -> dict[str, str]:
    """Return the texts that are to go, and of which kind each is."""
    stretches = [(stretch, str(memory[field])) for field, some in found.items() for stretch in some]
    return {
        text[stretch.start : stretch.end]: stretch.kind
        for stretch, text in sorted(stretches, key=lambda pair: pair[0].score)
    }


def _cut_all(memory: Fields, found: Found, names: Mapping[str, str]) -> dict[str, Value]:
    new: dict[str, Value] = dict(memory)
    for field in _FIELDS:
        value = memory.get(field)
        if isinstance(value, str):
            here = [one._replace(kind=names[value[one.start : one.end]]) for one in found.get(field, ())]
            new[field] = cut(value, [*here, *_find_again(value, names)])
        elif isinstance(value, tuple):
            new[field] = tuple(dict.fromkeys(cut(tag, _find_again(tag, names)) for tag in value))
    return new


def _find_again(text: str, secrets: Mapping[str, str]) -> Iterator[Stretch]:
    """Find secrets as separate words: next to no letter, digit or underscore.

    >>> [stretch.start for stretch in _find_again("4711, 47110, «4711»", {"4711": "pin"})]
    [0, 14]
    """
    for secret, kind in secrets.items():
        bare = secret.strip()
        if len(bare) < _MIN_ALONE and not any(map(str.isdecimal, bare)):
            continue
        start = text.find(bare)
        while start >= 0:
            end = start + len(bare)
            beside = (*text[max(0, start - 1) : start], *text[end : end + 1])
            is_alone = not any(sign.isalnum() or sign == "_" for sign in beside)
            if is_alone:
                yield Stretch(start, end, kind)
            start = text.find(bare, end if is_alone else start + 1)


def _leave_out(found: Found, memory: Fields, spared: Container[str]) -> dict[str, list[Stretch]]:
    """Return what was found but for some texts."""
    new = {
        field: [one for one in stretches if str(memory[field])[one.start : one.end] not in spared]
        for field, stretches in found.items()
    }
    return {field: stretches for field, stretches in new.items() if stretches}


def _group_alike(
    redactions: Mapping[str, _Redaction], apart: Iterable[frozenset[str]]
) -> list[list[_Redaction]]:
    """Group memories that redaction may make equal, or that are known to differ in a value."""
    ids = list(redactions)
    place = {memory_id: number for number, memory_id in enumerate(ids)}
    clusters, first_with = Clusters(len(ids)), dict[Value, int]()
    for number, memory_id in enumerate(ids):
        clusters.join(first_with.setdefault(redactions[memory_id].values()["content"], number), number)
    for pair in apart:
        if pair <= place.keys():
            clusters.join(*(place[memory_id] for memory_id in pair))
    return [[redactions[ids[member]] for member in sorted(group)] for group in clusters.groups()]


def _number_marks(alike: Sequence[_Redaction]) -> None:
    """Give different secrets of one kind different names."""
    numbers: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for names in (names for redaction in alike for _, names in redaction.rounds):
        for secret, kind in names.items():
            numbers[kind].setdefault(secret, len(numbers[kind]) + 1)
    for redaction in alike:
        redaction.number(numbers)


def _read_stretches(findings: pd.DataFrame, memories: Memories) -> dict[str, dict[str, list[Stretch]]]:
    """Return what was found by memory and field, as far as it lies within a text."""
    found: defaultdict[str, dict[str, list[Stretch]]] = defaultdict(dict)
    spans = findings.dropna(subset=["start", "end"])
    columns = (spans[name] for name in ("id", "field", "start", "end", "kind", "score"))
    for memory_id, field, start, end, kind, score in zip(*columns, strict=True):
        text = memories[memory_id].get(field)
        if isinstance(text, str) and 0 <= start < end <= len(text):
            found[memory_id].setdefault(field, []).append(Stretch(int(start), int(end), kind, score))
    return dict(found)


def _select_visible(found: pd.DataFrame, memories: Memories) -> dict[str, dict[str, list[Stretch]]]:
    """Return what should not be seen in the open, by memory and field."""
    return _read_stretches(found[found["action"] != "none"], memories)
