"""List the changes of a plan for a file, for the client of the system that the file is from: deletes, and texts to set.

Some files are only exports, so that changing them has no effect: Letta's agents, data of ChatGPT and Claude, archives.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
from msgspec import Struct

from memframe.archive.formats import csv_of
from memframe.audit.evidence import labels_of
from memframe.audit.sarif import files_and_lines
from memframe.errors import ConfigError, FrameError, PlanError
from memframe.files import expand_path, write_own_file
from memframe.frames import READ
from memframe.plan import Plan

CHANGES_FORMAT = "memframe-changes/1"


class Deletion(Struct, frozen=True, kw_only=True):
    """One memory to delete; ``id`` is that of its system, or None, so that only file and line identify it."""

    id: str | None
    memory: str
    """Title or first words, with secrets masked."""
    file: str | None
    line: int | None
    reason: str | None


class NewText(Deletion, frozen=True, kw_only=True):
    """One field of a memory to set."""

    field: str
    text: Any
    """New value: tags are a list, and None clears the field."""


class ChangeLists(Struct, frozen=True, kw_only=True):
    """The changes of a plan."""

    format: str = CHANGES_FORMAT
    read_as: str | None
    delete: list[Deletion]
    set: list[NewText]


def list_changes(plan: Plan, memories: pd.DataFrame) -> ChangeLists:
    """List the changes of a plan for a file; ``memories`` are the audited ones, ``audit.memories``.

    Raises `PlanError` if the plan is for a service, which `apply_plan` changes.

    >>> from memframe.audit import audit_memories
    >>> from memframe.cleanup import plan_cleanup
    >>> from memframe.readers import read_memories
    >>> rows = '[{"id": "7", "memory": "Door code: 2580#", "hash": "x"}, {"id": "8", "memory": "Rows", "hash": "y"}]'
    >>> audit = audit_memories(read_memories(rows))
    >>> [(each.id, each.field, each.text) for each in list_changes(plan_cleanup(audit), audit.memories).set]
    [('7', 'content', 'Door code: [redacted: access code]')]
    """
    if plan.file is None:
        raise PlanError("this plan is for a service: apply it with apply_plan(access, plan)")
    ids = {str(change.id) for change in plan.writes}
    known = memories[memories["id"].isin(ids)]
    labels, places = labels_of(memories, ids), files_and_lines(known)
    origins = dict(zip(known["id"], known["origin_id"], strict=True)) if "origin_id" in known.columns else {}
    deleted, new = [], []
    for change in plan.writes:
        memory_id = str(change.id)
        origin, (file, line) = origins.get(memory_id), places.get(memory_id, (None, None))
        row: dict[str, Any] = {
            "id": origin if isinstance(origin, str) else None,
            "memory": labels.get(memory_id, ""),
            "file": file,
            "line": line,
            "reason": change.reason,
        }
        if change.action == "delete":
            deleted.append(Deletion(**row))
        new += [NewText(**row, field=name, text=value) for name, value in change.after.items()]
    return ChangeLists(read_as=memories.attrs.get(READ, {}).get("format"), delete=deleted, set=new)


def write_changes(
    plan: Plan, memories: pd.DataFrame, path: str | PathLike[str], *, force: bool = False
) -> None:
    """Write the changes of a plan for a file as JSON or, for spreadsheets, as CSV, readable only by you.

    The extension of the path decides on the format: .json or .csv. CSV has a row for each change; texts that a
    spreadsheet would run as a formula begin with an apostrophe. An earlier list is replaced, any other file only with
    ``force``.

    Raises
    ------
    PlanError
        The plan is for a service.
    ConfigError
        The extension is neither .json nor .csv.
    FrameError
        The file cannot be written, or is something else.
    """
    lists, suffix = list_changes(plan, memories), expand_path(path).suffix.lower()
    if suffix not in (".json", ".csv"):
        raise ConfigError(f"{Path(path).name} ends with {suffix or 'no extension'}: choose .json or .csv")
    data = msgspec.json.format(msgspec.json.encode(lists)) if suffix == ".json" else _csv_of(lists)
    write_own_file(path, data, "list of changes", error=FrameError, force=force)


_COLUMNS = ("action", "id", "field", "text", "memory", "file", "line", "reason")


def _csv_of(lists: ChangeLists) -> bytes:
    rows = [{"action": "delete", **msgspec.to_builtins(each)} for each in lists.delete]
    rows += [{"action": "set", **msgspec.to_builtins(each)} for each in lists.set]
    cells = {name: [_text_of(row.get(name)) for row in rows] for name in _COLUMNS}
    return csv_of(pa.table({name: pa.array(column, pa.string()) for name, column in cells.items()}))


def _text_of(value: Any) -> str | None:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return None if value is None else str(value)
