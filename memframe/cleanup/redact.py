"""Redaction: replace secrets in texts by a short mark.

Offsets count characters of the audited text. A secret that the audit found in one field of a memory is removed from all
its fields, because a password in the content is often in the title or a tag as well.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

import pandas as pd

from memframe.audit.duplicates import find_near_duplicates
from memframe.audit.evidence import FINDERS
from memframe.audit.findings import Check, findings_frame, join_findings
from memframe.audit.secrets.values import is_distinctive, looks_drawn
from memframe.audit.similarity.cluster import Clusters
from memframe.audit.text import find_marks, fold, redaction_mark, with_all_columns
from memframe.fields import MEMORY_FIELDS, TEXT_FIELDS
from memframe.plan.change import Fields, Value

_FIELDS = tuple(
    field.name for field in MEMORY_FIELDS if field.is_editable and field.kind in ("text", "names")
)
"""Fields that are redacted; only texts are searched for further secrets."""

_MIN_ALONE = 4
"""Fewest characters of a secret without a digit that is also redacted in other places; a shorter one may be a word."""

_MAX_ROUNDS = 5
"""Most searches of redacted texts for what earlier rounds left."""

FieldsById = Mapping[str, Fields]
"""The fields of memories, by id."""


class Stretch(NamedTuple):
    """Part of a text to redact; ``end`` is exclusive."""

    start: int
    end: int
    kind: str
    score: float = 1.0


Stretches = Mapping[str, Sequence[Stretch]]
"""Parts of a memory to redact, by field."""


class Redacted(NamedTuple):
    """Changed fields of a memory, and the secrets that were cut out of it."""

    values: dict[str, Value]
    secrets: frozenset[str]


def redact_memories(
    findings: pd.DataFrame,
    memories: FieldsById,
    *,
    searched: pd.DataFrame,
    apart: Iterable[frozenset[str]] = (),
    others: FieldsById = MappingProxyType({}),
) -> dict[str, Redacted]:
    """Cut out the values of findings, and return the memories that change.

    The redacted texts are searched again, because an audit lists only one of two overlapping findings, and the rest of
    the other must not remain. Values that are found in the original texts, but are not among the findings, stay.

    If only the secrets distinguish two texts, their marks are numbered, so that the next audit does not take them for
    copies.

    Parameters
    ----------
    findings : DataFrame
        Findings to redact.
    memories : mapping
        Fields of the memories, by id.
    searched : DataFrame
        Result of `search_memories` for these memories.
    apart : iterable of frozenset
        Groups of memories that differ in a value.
    others : mapping
        Memories with marks of an earlier redaction.
    """
    by_memory = _read_stretches(findings, memories)
    in_tags = dict.fromkeys(findings["id"][findings["field"] == "tags"])
    everywhere = _name_distinctive(by_memory, memories) if in_tags else {}
    redactions = {
        memory_id: _Redaction(
            memories[memory_id], by_memory.get(memory_id, {}), everywhere if memory_id in in_tags else {}
        )
        for memory_id in (*by_memory, *(in_tags.keys() - by_memory.keys()))
    }
    checks = [check for check in FINDERS if (findings["check"] == check).any()]
    known = searched[searched["check"].isin(checks) & searched["id"].isin(redactions)]
    spared = {
        memory_id: _name_secrets(stretches, memories[memory_id])
        for memory_id, stretches in _select_visible(known, memories).items()
    }
    # before the next rounds, because their offsets count the characters of these marks
    _number_marks(redactions, apart, others)
    changed = set(redactions)
    for _ in range(_MAX_ROUNDS):
        if not changed:
            break
        texts = {memory_id: redactions[memory_id].fields() for memory_id in sorted(changed)}
        visible = _select_visible(search_memories(texts, checks), texts)
        changed = set()
        for memory_id, stretches in visible.items():
            if rest := _leave_out(stretches, texts[memory_id], spared.get(memory_id, {})):
                redactions[memory_id].add(rest)
                changed.add(memory_id)
    results = {memory_id: redaction.result() for memory_id, redaction in redactions.items()}
    return {memory_id: result for memory_id, result in results.items() if result.values}


def search_memories(memories: FieldsById, checks: Iterable[Check] = tuple(FINDERS)) -> pd.DataFrame:
    """Return the findings of the `FINDERS` in titles, summaries and contents."""
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
            end += 1  # combining accents and joiners belong to the last character
        whole = stretch._replace(end=end)
        if apart and whole.start < apart[-1].end:
            other = apart.pop()
            surest = max(other, whole, key=lambda one: (one.score, one.end - one.start))
            whole = surest._replace(start=other.start, end=max(other.end, end))
        apart.append(whole)
    parts, n_copied = [], 0
    for stretch in apart:
        parts += [text[n_copied : stretch.start], redaction_mark(stretch.kind)]
        n_copied = stretch.end
    return "".join([*parts, text[n_copied:]])


class _Redaction:
    """Redaction of one memory in rounds, each with its stretches and the names of their marks."""

    def __init__(self, memory: Fields, stretches: Stretches, known: Mapping[str, str]) -> None:
        self.memory = memory
        self.kinds = {**known, **_name_secrets(stretches, memory)}
        self.rounds = [(stretches, self.kinds)]
        self._fields: dict[str, Value] | None = None

    def fields(self) -> Fields:
        """Return all fields without the stretches, and without other occurrences of the same secrets."""
        if self._fields is None:
            self._fields = dict(self.memory)
            for stretches, names in self.rounds:
                self._fields = _cut_all(self._fields, stretches, names)
        return self._fields

    def add(self, stretches: Stretches) -> None:
        """Add a round with stretches of the fields as they are after the earlier rounds."""
        self.rounds.append((stretches, _name_secrets(stretches, self.fields())))
        self._fields = None

    def result(self) -> Redacted:
        """Return the changed fields and the secrets of all rounds."""
        changed = {name: value for name, value in self.fields().items() if value != self.memory[name]}
        return Redacted(changed, frozenset(secret for _, names in self.rounds for secret in names))

    def number(self, numbers: Mapping[str, Mapping[str, int]]) -> None:
        """Number the marks of some kinds; called before further rounds are added."""
        names = {
            secret: f"{kind} {numbers[kind][secret]}" if kind in numbers else kind
            for secret, kind in self.kinds.items()
        }
        self.rounds = [(self.rounds[0][0], names)]
        self._fields = None


def _name_secrets(stretches: Stretches, memory: Fields) -> dict[str, str]:
    """Return the secrets in stretches, each with its kind; of several kinds that of the highest score."""
    pairs = [(stretch, str(memory[field])) for field, in_field in stretches.items() for stretch in in_field]
    return {
        text[stretch.start : stretch.end]: stretch.kind
        for stretch, text in sorted(pairs, key=lambda pair: pair[0].score)
    }


def _name_distinctive(by_memory: Mapping[str, Stretches], memories: FieldsById) -> dict[str, str]:
    """Return the secrets of all memories that are searched in tags of other memories, each with its kind."""
    named = (_name_secrets(stretches, memories[memory_id]) for memory_id, stretches in by_memory.items())
    return {
        fold(secret).text: kind
        for names in named
        for secret, kind in names.items()
        if is_distinctive(fold(secret).text)
    }


def _cut_all(memory: Fields, stretches: Stretches, names: Mapping[str, str]) -> dict[str, Value]:
    """Return the fields of a memory without the stretches and other occurrences of the named secrets."""
    new: dict[str, Value] = dict(memory)
    for field in _FIELDS:
        value = memory.get(field)
        if isinstance(value, str):
            named = [one._replace(kind=names[value[one.start : one.end]]) for one in stretches.get(field, ())]
            new[field] = cut(value, [*named, *_find_again(value, names)])
        elif isinstance(value, tuple):
            new[field] = tuple(dict.fromkeys(cut(tag, _find_again(tag, names)) for tag in value))
    return new


def _find_again(text: str, secrets: Mapping[str, str]) -> Iterator[Stretch]:
    """Find occurrences of secrets without a letter, digit or underscore next to them; of random ones, all occurrences.

    >>> [stretch.start for stretch in _find_again("4711, 47110, «4711»", {"4711": "pin"})]
    [0, 14]
    """
    for secret, kind in secrets.items():
        bare = secret.strip()
        if len(bare) < _MIN_ALONE and not any(map(str.isdecimal, bare)):
            continue
        is_drawn, start = looks_drawn(bare), text.find(bare)
        while start >= 0:
            end = start + len(bare)
            neighbours = (*text[max(0, start - 1) : start], *text[end : end + 1])
            is_alone = is_drawn or not any(sign.isalnum() or sign == "_" for sign in neighbours)
            if is_alone:
                yield Stretch(start, end, kind)
            start = text.find(bare, end if is_alone else start + 1)


def _leave_out(stretches: Stretches, memory: Fields, spared: Container[str]) -> dict[str, list[Stretch]]:
    """Return the stretches whose text is not spared."""
    rest = {
        field: [one for one in in_field if str(memory[field])[one.start : one.end] not in spared]
        for field, in_field in stretches.items()
    }
    return {field: in_field for field, in_field in rest.items() if in_field}


def _number_marks(
    redactions: Mapping[str, _Redaction], apart: Iterable[frozenset[str]], others: FieldsById
) -> None:
    """Number the marks of different secrets of one kind, if memories would otherwise look alike.

    A secret has the same number in all memories, because two marks for one secret would make its memories differ. The
    numbers of earlier redactions are not used again. Numbering may make further copies: a text that is the beginning of
    several texts becomes a copy once it is the beginning of a single one. So it is repeated until nothing changes.
    """
    contents = [str(memory["content"]) for memory in others.values()]
    if not _find_ambiguous(redactions.values(), contents):  # a quick test, because grouping takes long
        return
    numbers = _MarkNumbers(contents)
    n_before = -1
    while n_before < len(numbers):
        n_before = len(numbers)
        for group in _group_alike(redactions, apart, others):
            own = [redactions[memory_id] for memory_id in group if memory_id in redactions]
            marked = [str(others[memory_id]["content"]) for memory_id in group if memory_id not in redactions]
            for kind, secrets in _find_ambiguous(own, marked).items():
                numbers.give(kind, secrets)
        for redaction in redactions.values():
            redaction.number(numbers.complete(redaction.kinds))


class _MarkNumbers:
    """Numbers of secrets by kind, above those of earlier marks."""

    def __init__(self, contents: Iterable[str]) -> None:
        self._highest: dict[str, int] = {}
        for kind, number in (mark for content in contents for mark in find_marks(content)):
            self._highest[kind] = max(self._highest.get(kind, 0), number)
        self._numbers: defaultdict[str, dict[str, int]] = defaultdict(dict)

    def __len__(self) -> int:
        return sum(map(len, self._numbers.values()))

    def give(self, kind: str, secrets: Iterable[str]) -> None:
        """Give each secret of a kind a number, unless it has one."""
        numbers = self._numbers[kind]
        for secret in secrets:
            numbers.setdefault(secret, self._highest.get(kind, 0) + len(numbers) + 1)

    def complete(self, kinds: Mapping[str, str]) -> dict[str, dict[str, int]]:
        """Return the numbers of one memory, given its secrets and their kinds.

        If one of its secrets has a number, all of that kind get one, because a mark without a number would look like
        that of another secret.
        """
        needed = {kind for secret, kind in kinds.items() if secret in self._numbers[kind]}
        for kind in needed:
            self.give(kind, [secret for secret, own in kinds.items() if own == kind])
        return {kind: self._numbers[kind] for kind in needed}


def _find_ambiguous(redactions: Iterable[_Redaction], marked: Iterable[str]) -> dict[str, list[str]]:
    """Return the kinds of which several secrets would have one mark, each with its secrets."""
    known = {kind for text in marked for kind, _ in find_marks(text)}
    secrets: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for redaction in redactions:
        for secret, kind in redaction.kinds.items():
            secrets[kind][secret] = None
    return {kind: list(own) for kind, own in secrets.items() if len(own) > 1 or kind in known}


def _group_alike(
    redactions: Mapping[str, _Redaction], apart: Iterable[frozenset[str]], others: FieldsById
) -> Iterator[list[str]]:
    """Group memories that look like copies after the redaction, or that differ in a value."""
    fields = {memory_id: redaction.fields() for memory_id, redaction in redactions.items()}
    fields |= {memory_id: memory for memory_id, memory in others.items() if memory_id not in redactions}
    ids = list(fields)
    place = {memory_id: number for number, memory_id in enumerate(ids)}
    clusters, first_with = Clusters(len(ids)), dict[Value, int]()
    for memory_id, number in place.items():
        clusters.join(first_with.setdefault(fields[memory_id]["content"], number), number)
    texts = {name: [memory.get(name) for memory in fields.values()] for name in TEXT_FIELDS}
    copies = find_near_duplicates(
        with_all_columns(pd.DataFrame({"id": ids, **texts}, dtype="str")).dropna(subset="content")
    )
    copies = copies[copies["action"] == "merge"]
    for alike in (*zip(copies["id"], copies["related_id"], strict=True), *apart):
        for one, other in pairwise(sorted(place[member] for member in alike if member in place)):
            clusters.join(one, other)
    for group in clusters.groups():
        yield [ids[member] for member in sorted(group)]


def _read_stretches(findings: pd.DataFrame, memories: FieldsById) -> dict[str, dict[str, list[Stretch]]]:
    """Return the spans of findings as stretches, by memory and field; spans beyond the end of a text are left out."""
    stretches: defaultdict[str, dict[str, list[Stretch]]] = defaultdict(dict)
    spans = findings.dropna(subset=["start", "end"])
    columns = (spans[name] for name in ("id", "field", "start", "end", "kind", "score"))
    for memory_id, field, start, end, kind, score in zip(*columns, strict=True):
        text = memories[memory_id].get(field)
        if isinstance(text, str) and 0 <= start < end <= len(text):
            stretches[memory_id].setdefault(field, []).append(Stretch(int(start), int(end), kind, score))
    return dict(stretches)


def _select_visible(findings: pd.DataFrame, memories: FieldsById) -> dict[str, dict[str, list[Stretch]]]:
    """Return the stretches of findings with a proposal, by memory and field."""
    return _read_stretches(findings[findings["action"] != "none"], memories)
