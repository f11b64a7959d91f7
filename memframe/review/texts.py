"""The texts of a review: those of the audited memories, or of the changes of a plan."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import PurePath
from types import MappingProxyType

import numpy as np
import pandas as pd

from memframe.audit import Audit
from memframe.audit.sarif import files_and_lines, name_place
from memframe.audit.text import redaction_mark
from memframe.cleanup.redact import search_memories
from memframe.display import printable
from memframe.plan import Plan
from memframe.plan.change import FIELDS, Value, mask
from memframe.plan.losses import MemoryValues
from memframe.review.proposals import LAST_EFFECTS, Point, Proposal
from memframe.secret import MASK

MAX_QUEUE_CHARS = 200
"""Characters of a text that the queue shows; `memframe.review.detail` shows all of it."""


class ReviewTexts:
    """The texts of an audit or of a plan, and the secrets in them.

    Attributes
    ----------
    memories : DataFrame
        The audited memories; empty for a plan.
    """

    def __init__(self, origin: Audit | Plan, items: Sequence[Point]) -> None:
        self._origin = origin
        self.memories = origin.memories if isinstance(origin, Audit) else pd.DataFrame({"id": []})
        self._items = items
        self._searched: dict[str, frozenset[str]] = {}
        self._parts: dict[str, list[str]] = {}

    @cached_property
    def _place_of(self) -> dict[str, int]:
        ids = self.memories["id"].tolist()
        return dict(zip(ids, range(len(ids)), strict=True))

    @cached_property
    def _contents(self) -> list[object]:
        return self.memories["content"].tolist() if "content" in self.memories.columns else []

    @cached_property
    def _found(self) -> defaultdict[str, set[str]]:
        """The secrets that the audit found, by memory."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for item in self._items:
            is_secret = item.check == "secret" or (item.check == "personal_data" and item.severity == "high")
            if item.id and is_secret:
                found[item.id].add(item.text)
        return found

    @cached_property
    def values(self) -> MemoryValues:
        """The values of the memories, for finding losses."""
        return MemoryValues(self.memories)

    @cached_property
    def _places(self) -> dict[str, tuple[str, int | None]]:
        places = files_and_lines(self.memories)
        files = {file for file, _ in places.values()}
        names = {file: PurePath(file).name for file in files}
        if len({*names.values()}) < len(files):  # only the folders tell them apart
            return places
        return {memory_id: (names[file], line) for memory_id, (file, line) in places.items()}

    def name_of(self, memory_id: str) -> str:
        """Return the name of the file and the line of a memory, or its id if it is from no file."""
        return name_place(self._places, memory_id)

    def find_spans(self, points: Iterable[Point], field: str, text: str) -> list[tuple[int, int]]:
        """Return the parts of a field of one memory that findings are about; none where it is the whole text."""
        found = (self._spans[point.row] for point in points)
        return [(start, end) for name, start, end in found if name == field and 0 < end - start < len(text)]

    @cached_property
    def _spans(self) -> list[tuple[str, int, int]]:
        """The field and the part of it that each finding is about; an empty part where there is none."""
        if not isinstance(self._origin, Audit):
            return []
        findings = self._origin.findings
        edges = (findings[name].fillna(0).astype(int).tolist() for name in ("start", "end"))
        return list(zip(findings["field"].tolist(), *edges, strict=True))

    def place_of(self, memory_id: str) -> int | None:
        """Return the row of an audited memory; None for any other."""
        return self._place_of.get(memory_id)

    def fields_of(self, memory_id: str) -> dict[str, Value]:
        """Return the fields and times of an audited memory, without empty ones."""
        place = self.place_of(memory_id)
        if place is None:
            return {}
        fields: dict[str, Value] = {}
        for name in (*FIELDS, "created_at", "updated_at"):
            if name in self.memories.columns:
                cell = self.memories[name].iloc[place]
                if isinstance(cell, tuple | list | np.ndarray):
                    fields[name] = tuple(map(str, cell))
                elif not pd.isna(cell):
                    plain = cell.item() if isinstance(cell, np.generic) else cell
                    fields[name] = str(cell) if name.endswith("_at") else plain
        return fields

    def hidden_of(self, ids: Iterable[str], *, following: Iterable[str] = ()) -> dict[str, frozenset[str]]:
        """Return the secrets in memories: those that the audit found, and those that a search of the texts finds now.

        If a memory has to be searched, the `following` ones are searched with it, because that takes no longer.
        """
        chosen = list(dict.fromkeys(ids))
        if self._searched.keys() >= {*chosen}:
            return {memory_id: self._searched[memory_id] for memory_id in chosen}
        fields = {
            memory_id: dict.fromkeys(FIELDS) | self.fields_of(memory_id)
            for memory_id in dict.fromkeys([*chosen, *following])
            if memory_id not in self._searched
        }
        found = search_memories(fields)
        found = found[
            ((found["action"] == "redact") | (found["severity"] == "high")) & found["start"].notna()
        ]
        hidden = {memory_id: {*self._found.get(memory_id, ())} for memory_id in fields}
        for memory_id, field, start, end in zip(
            *(found[name] for name in ("id", "field", "start", "end")), strict=True
        ):
            hidden[memory_id].add(str(fields[memory_id][field])[int(start) : int(end)])
        self._searched |= {memory_id: frozenset(filter(None, texts)) for memory_id, texts in hidden.items()}
        return {memory_id: self._searched[memory_id] for memory_id in chosen}

    def sides(self, one: Proposal) -> tuple[str, str]:
        """Return the text of the first memory before and after the change, shortened and masked."""
        if isinstance(self._origin, Plan):
            change = mask(self._origin.records[one.first.row])
            before, after = ("; ".join(map(str, side.values())) for side in (change.before, change.after))
            return printable(before, MAX_QUEUE_CHARS), printable(after, MAX_QUEUE_CHARS)
        memory_id = one.first.id or ""
        place = self.place_of(memory_id)
        text = self._contents[place] if self._contents and place is not None else None
        if not isinstance(text, str):
            return "", ""
        shown = printable(self._mask(memory_id, text), MAX_QUEUE_CHARS)
        if one.action in LAST_EFFECTS:
            return shown, ""
        if one.action != "redact":
            return shown, printable(one.first.reason, MAX_QUEUE_CHARS)
        redacted = self._mask(memory_id, text, {one.first.text: redaction_mark(one.first.kind)})
        return shown, printable(redacted, MAX_QUEUE_CHARS)

    def _mask(self, memory_id: str, text: str, marks: Mapping[str, str] = MappingProxyType({})) -> str:
        """Replace the secrets of a content, and the texts that have marks of their own by these."""
        parts = self._split(memory_id, text)
        for value, mark in marks.items():
            parts[::2] = [part.replace(value, mark) if value else part for part in parts[::2]]
        parts[1::2] = [marks.get(secret, MASK) for secret in parts[1::2]]
        return "".join(parts)

    def _split(self, memory_id: str, text: str) -> list[str]:
        """Split a content at its secrets, which are every second part."""
        secrets = sorted(filter(None, self._found.get(memory_id, ())), key=len, reverse=True)
        if not secrets:
            return [text]
        if memory_id not in self._parts:  # searched once, as each of hundreds of secrets is a proposal
            self._parts[memory_id] = re.split(f"({'|'.join(map(re.escape, secrets))})", text)
        return [*self._parts[memory_id]]
