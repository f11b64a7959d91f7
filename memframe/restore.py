"""Plans made from an archive: restore what is missing at the service, and write nothing twice.

A row of the user's own archive is matched by its id. A row whose id the service does not have is matched by its fields
with the memories that no row has by id: it may have been restored before under a new id, or come from another account,
whose ids mean nothing here. So restoring a second time writes nothing.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from os import PathLike
from typing import NamedTuple

import numpy as np
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from memframe.access import Access
from memframe.archive import is_sealed, load_archive, missing_columns
from memframe.archive.sealing import Key
from memframe.audit.personal_data import find_personal_data
from memframe.audit.secrets import find_secrets
from memframe.display import number_of
from memframe.errors import PlanError, check_kind
from memframe.fields import TEXT_FIELDS
from memframe.plan import Plan, plan_of
from memframe.plan.cells import Cell, column_times, is_held, normalize_field, parse_times
from memframe.plan.change import FIELDS, Change, Label, Value, in_order, list_some
from memframe.plan.changes import OnConflict, check_option, refuse_conflicts
from memframe.plan.current import CurrentMemory, iter_current, read_current
from memframe.plan.edited_frame import EditedFrame, RowErrors
from memframe.undo import format_date, without_repeats

Archive = str | PathLike[str] | pd.DataFrame
"""Path of an archive that `export_memories` wrote, or a frame of memories."""


def plan_restore(
    access: Access,
    archive: Archive,
    *,
    key: Key | None = None,
    on_conflict: OnConflict = "theirs",
    as_of: str | date | None = None,
) -> Plan:
    """Plan to restore what an archive contains and the service lacks. Nothing is written.

    Parameters
    ----------
    access : Access
    archive : Path or DataFrame
        An archive from `export_memories`, sealed or not, or a frame of memories. It may come from another
        account: its memories are matched by content and get new ids.
    key : str, Secret, Credentials, Access, or dict of int to key, optional
        The key to a sealed archive, as in `load_archive`; by default that of the access.
    on_conflict : {"raise", "mark", "mine", "theirs"}
        How to treat memories that differ from the archive: as an error; as a change with action "conflict",
        which can be reviewed but not applied; by taking the archive's version; or, by default, by keeping the
        service's.
    as_of : str, datetime or date, optional
        Restore a past state of an archive that keeps them, as in `load_archive`.

    Returns
    -------
    Plan
        Creates. A memory keeps its id and dates if the service can restore it, as the embedded one does for 30
        days after a delete; otherwise it gets a new id and the date of the run. ``plan.notes`` says which, and
        counts what is left alone. Memories that cannot be created have the action "invalid" and a reason;
        ``plan.without("conflict", "invalid")`` restores the rest.

    Raises
    ------
    PlanError
        The frame does not contain memories, an id occurs twice, or there is a conflict.
    FrameError, SealError
        As in `load_archive`.

    Examples
    --------
    >>> from memframe import apply_plan, export_memories, load_memories, plan_deletes
    >>> n_rows = export_memories(access, folder / "backup.parquet")
    >>> gone = plan_deletes(access, load_memories(access, limit=2))
    >>> apply_plan(access, gone, confirm=2).raise_for_failures()
    >>> back = plan_restore(access, folder / "backup.parquet")
    >>> back
    <memframe.Plan: 2 restores>
    >>> apply_plan(access, back).raise_for_failures()
    """
    check_kind("access", access, Access)
    check_option("on_conflict", on_conflict, OnConflict)
    now = access.client.runtime.now()
    frame = _read(access, archive, key, as_of)
    found = _match(access, _memories_of(access, frame), frame.fields)
    asked = [_create(memory) for memory in found.gone]
    changes = without_repeats(access, asked)
    differing = [_reconcile(archived, memory, on_conflict) for archived, memory in found.differing]
    refuse_conflicts(filter(None, differing), on_conflict)
    n_unchanged = {
        "as archived": found.n_same,
        "with another id": found.n_renamed + len(asked) - len(changes),
        "different from the archive": differing.count(None),
        "not in the archive": found.n_others,
    }
    unchanged = [f"{number_of(n, 'memory', 'memories')} {what}" for what, n in n_unchanged.items() if n]
    notes = [
        *_iter_notes(access, changes, frame.unknown),
        *([f"Not changed: {', '.join(unchanged)}."] if unchanged else []),
    ]
    changes += filter(None, differing)
    return plan_of(access, hide_secrets(changes), notes=notes, created_at=now)


class ArchivedMemory(Struct, frozen=True, kw_only=True):
    """One row of an archive."""

    row: Label
    """Label of the row."""
    id: str | None
    """Id of the memory; None if the row has none, or comes from another account."""
    cells: dict[str, Cell]
    """Fields of the memory, without content that could not be opened when it was archived."""
    created_at: np.datetime64
    updated_at: np.datetime64
    tag_ids: frozenset[str] | None = None
    """Ids of its tags; None if the archive has no such column."""
    error: str | None = None
    """Reason why there is no content."""

    @property
    def is_dated(self) -> bool:
        """True if the archive has the time of the last write."""
        return not np.isnat(self.updated_at)

    def find_differences(self, memory: CurrentMemory) -> tuple[str, ...]:
        """Find the fields whose values differ at the service."""
        return tuple(name for name, cell in self.cells.items() if not is_held(name, cell, memory.value(name)))

    def values(self, names: Iterable[str]) -> tuple[dict[str, Value], list[str]]:
        """Return the values to send, and the reasons why others cannot be sent."""
        cells = {name: normalize_field(name, self.cells[name].value) for name in names}
        values = in_order({name: cell.value for name, cell in cells.items() if not cell.error})
        return values, [cell.error for cell in cells.values() if cell.error]


def _read(access: Access, archive: Archive, key: Key | None, as_of: str | date | None = None) -> EditedFrame:
    check_kind("the archive, if no path,", archive, pd.DataFrame, str, PathLike, error=PlanError)
    if isinstance(archive, pd.DataFrame):
        if key is not None:
            raise PlanError("key= opens a sealed archive, and this is a frame: leave it out")
        if as_of is not None:
            raise PlanError(
                "as_of= is about an archive that keeps its past, and this is a frame: leave it out"
            )
        return EditedFrame(archive)
    loaded = load_archive(archive, key=access if key is None and is_sealed(archive) else key, as_of=as_of)
    # a column that the archive lacks says nothing: its nulls would clear fields
    return EditedFrame(loaded.drop(columns=missing_columns(archive)))


def _memories_of(access: Access, frame: EditedFrame) -> list[ArchivedMemory]:
    """Return the rows of an archive; raise `PlanError` if it has an id twice, or cells of a wrong type."""
    rows, errors = np.arange(len(frame.ids)), RowErrors()
    is_own = frame.find_own(access)
    frame.check_ids(errors, is_checked=is_own)
    read_only = [name for name in frame.read_only if name != "created_at"]
    cells = {name: frame.cells(name, rows) for name in (*frame.fields, *read_only)}
    no_times = np.full(len(rows), np.datetime64("NaT", "ns"))
    times = ("created_at", "updated_at")
    created_at, updated_at = (
        column_times(frame.column(name, rows)) if name in frame else no_times for name in times
    )
    memories = []
    for row in rows.tolist():
        of_row = {name: column[row] for name, column in cells.items()}
        tag_ids, error = of_row.pop("tag_ids", None), of_row.pop("content_error", Cell(None)).value
        if error is not None:
            of_row.pop("content", None)
        for cell in of_row.values():
            if cell.error:
                errors.add(frame.label(row), cell.error)
        memories.append(
            ArchivedMemory(
                row=frame.label(row),
                id=frame.ids[row] if is_own[row] else None,
                cells=of_row,
                created_at=created_at[row],
                updated_at=updated_at[row],
                tag_ids=None if tag_ids is None else frozenset(tag_ids.value or ()),  # type: ignore[arg-type]  # names
                error=None if error is None else str(error),
            )
        )
    errors.raise_if_any("the archive")
    return memories


class _ArchiveMatch(NamedTuple):
    """Rows of an archive, matched with the memories that the service lists."""

    gone: list[ArchivedMemory]
    differing: list[tuple[ArchivedMemory, CurrentMemory]]
    n_same: int
    n_renamed: int
    """Rows that the service has under other ids."""
    n_others: int
    """Memories that match no row."""


def _match(access: Access, archived: Sequence[ArchivedMemory], fields: Sequence[str]) -> _ArchiveMatch:
    """Match rows with memories: by id, then by all fields, and then, for rows of another account, by content."""
    rows_by_id = {memory.id: memory for memory in archived if memory.id is not None}
    differing, n_same, free = [], 0, _FreeMemories(fields)
    for memory in iter_current(access):
        row = rows_by_id.pop(memory.id, None)
        if row is None:
            free.add(memory)
        elif row.find_differences(memory):
            differing.append((row, memory))
        else:
            n_same += 1
    missing = [row for row in archived if row.id is None or row.id in rows_by_id]
    rest = [
        row
        for row in missing
        if not free.take({n: normalize_field(n, c.value).value for n, c in row.cells.items()})
    ]
    n_renamed, match_of = len(missing) - len(rest), {}
    for place, row in enumerate(rest):
        content = {name: cell.value for name, cell in row.cells.items() if name == "content"}
        if row.id is None and (memory_id := free.take(content)):
            match_of[place] = memory_id
    current = read_current(access, match_of.values())
    pairs = [(rest[place], current[one]) for place, one in match_of.items() if one in current]
    unequal = [(row, memory) for row, memory in pairs if row.find_differences(memory)]
    return _ArchiveMatch(
        gone=[row for place, row in enumerate(rest) if match_of.get(place) not in current],
        differing=differing + unequal,
        n_same=n_same,
        n_renamed=n_renamed + len(pairs) - len(unequal),
        n_others=free.n_added - n_renamed - len(pairs),
    )


class _FreeMemories:
    """Memories that match no row by id, found by their fields; each is taken once."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = fields
        self._ids_of: dict[bytes, list[str]] = defaultdict(list)
        self._taken: set[str] = set()
        self.n_added = 0

    def add(self, memory: CurrentMemory) -> None:
        self.n_added += 1
        if memory.content is not None:
            values = {name: memory.value(name) for name in self._fields}
            for key in {_digest(values), _digest({"content": memory.content})}:
                self._ids_of[key].append(memory.id)

    def take(self, values: Mapping[str, Value]) -> str | None:
        """Take a memory that is equal in all fields, or in content if only that is given, and return its id."""
        free = self._ids_of[_digest(values)] if values.get("content") is not None else []
        found = next((memory_id for memory_id in free if memory_id not in self._taken), None)
        if found is not None:
            self._taken.add(found)
        return found


def _digest(values: Mapping[str, Value]) -> bytes:
    """Compute a digest that is equal for values that are the same to `same_value`."""
    plain: dict[str, object] = dict(values)
    for name, value in values.items():
        if isinstance(value, tuple):
            plain[name] = sorted({*value}) or None
        elif isinstance(value, int | float):
            plain[name] = float(value)
    return hashlib.sha256(repr(sorted(plain.items())).encode()).digest()


# -- changes


def _create(memory: ArchivedMemory) -> Change:
    """Make the change that creates a missing memory; if it cannot be created, an invalid one with the reason."""
    given = [name for name, cell in memory.cells.items() if cell.value not in (None, ())]
    values, errors = memory.values(given)
    if memory.error is not None:
        errors.append(f"the archive has no content that opens: {memory.error}")
    elif "content" not in given:
        errors.append("it has no content, which a memory needs")
    if errors:
        return Change(action="invalid", row=memory.row, id=memory.id, after=values, reason="; ".join(errors))
    what = "has no id of this account" if memory.id is None else f"brings back memory {memory.id}"
    reason = f"{what}, created {format_date(memory.created_at)}"
    return Change(action="create", row=memory.row, after=values, reason=reason, restores=memory.id)


def _reconcile(archived: ArchivedMemory, memory: CurrentMemory, on_conflict: OnConflict) -> Change | None:
    """Make the change for a memory that differs from the archive; None if the service's version is kept."""
    if on_conflict == "theirs":
        return None
    names = archived.find_differences(memory)
    values, errors = archived.values(names)
    before = in_order({name: memory.value(name) for name in names})
    (service_at,) = parse_times([memory.blob.updated_at])
    reason = (
        f"{', '.join(names)} not as archived; the archive's state was written {format_date(archived.updated_at)}, the "
        f"service's {format_date(service_at)}"
    )
    change = Change(
        action="conflict", row=archived.row, id=memory.id, before=before, after=values, reason=reason
    )
    if on_conflict != "mine":
        return change
    if "content" in values and values["content"] is None:
        errors.append("content cannot be cleared")
    if memory.error is not None:
        errors.append(f"it could not be decrypted ({memory.error})")
    if errors:
        return replace(change, action="invalid", reason="; ".join(errors))
    return replace(change, action="patch")


def hide_secrets(changes: Sequence[Change]) -> list[Change]:
    """Hide from displays what an audit calls a secret, because an archive may hold what was redacted since."""
    sides = [(place, fields) for place, one in enumerate(changes) for fields in (one.before, one.after)]
    texts = {name: [fields.get(name) for _, fields in sides] for name in TEXT_FIELDS}
    frame = pd.DataFrame({"id": [str(number) for number in range(len(sides))], **texts}, dtype="str")
    found = pd.concat([find_secrets(frame), find_personal_data(frame)])
    found = found[(found["action"] == "redact") | (found["severity"] == "high")]
    hidden: defaultdict[int, set[str]] = defaultdict(set)
    for number, field, start, end in zip(*(found[n] for n in ("id", "field", "start", "end")), strict=True):
        place, fields = sides[int(number)]
        hidden[place].add(str(fields[field])[int(start) : int(end)])
    return [replace(one, hidden=tuple(sorted(hidden[place]))) for place, one in enumerate(changes)]


def _iter_notes(access: Access, changes: Iterable[Change], unknown: Sequence[str]) -> Iterator[str]:
    creates = [change for change in changes if change.action == "create"]
    days = access.client.restore_days
    if any(change.restores for change in creates):
        yield (
            f"A memory deleted within {number_of(days, 'day', 'days')} keeps its id and dates; any other "
            "gets a new id and the date of the run."
            if days
            else "Memories are created with new ids and the date of the run: this service cannot restore them."
        )
    if not all(change.restores for change in creates):
        yield "Memories with no id of this account get new ids and the date of the run."
    if unknown:
        yield f"Not written, as a memory has no such columns: {list_some(unknown)}"


# -- the rehearsal


class ArchiveCheck(Struct, frozen=True, kw_only=True):
    """Comparison of an archive with the memories that the service lists.

    Attributes
    ----------
    n_listed, n_archived : int
        Memories of the service, and rows of the archive.
    missing : tuple of str
        Ids that the service lists and the archive does not hold.
    differing : dict of str to tuple of str
        Fields that differ, by id; ``content`` also if either content cannot be opened.
    gone : tuple of str
        Ids that only the archive holds: they can be restored.
    n_rewritten : int
        Memories that differ from the archive only in ``updated_at``, for instance after an edit and its undo.
    """

    n_listed: int
    n_archived: int
    missing: tuple[str, ...] = ()
    differing: dict[str, tuple[str, ...]] = {}
    gone: tuple[str, ...] = ()
    n_rewritten: int = 0

    @property
    def is_whole(self) -> bool:
        """True if the archive holds all memories that the service lists, unchanged."""
        return not (self.missing or self.differing)

    def __str__(self) -> str:
        listed = number_of(self.n_listed, "memory", "memories")
        differing = [f"{memory_id} in {', '.join(names)}" for memory_id, names in self.differing.items()]
        parts = [
            f"the archive contains all of the {listed} that the service lists, as they are"
            if self.is_whole
            else f"the archive does not contain all of the {listed} that the service lists",
            *([f"{len(self.missing):,} missing: {list_some(self.missing)}"] if self.missing else []),
            *([f"{len(differing):,} differing: {list_some(differing, '; ')}"] if differing else []),
            *([f"{len(self.gone):,} only in the archive: {list_some(self.gone)}"] if self.gone else []),
            *([f"{self.n_rewritten:,} as archived, but with a new updated_at"] if self.n_rewritten else []),
        ]
        return "\n".join(parts)


def check_archive(access: Access, archive: Archive, *, key: Key | None = None) -> ArchiveCheck:
    """Compare an archive with all that the service lists: ids, fields and times. Nothing is written.

    Parameters
    ----------
    access, archive, key
        As in `plan_restore`.

    Examples
    --------
    >>> from memframe import export_memories
    >>> n_rows = export_memories(access, folder / "backup.parquet", sealed=True)
    >>> check_archive(access, folder / "backup.parquet").is_whole
    True
    """
    check_kind("access", access, Access)
    frame = _read(access, archive, key)
    memories = _memories_of(access, frame)
    rows_by_id = {memory.id: memory for memory in memories if memory.id is not None}
    missing, differing, n_listed, n_rewritten = [], {}, 0, 0
    for memory in iter_current(access):
        n_listed += 1
        archived = rows_by_id.pop(memory.id, None)
        if archived is None:
            missing.append(memory.id)
        elif (names := tuple(_find_unproven(archived, memory))) == ("updated_at",) and archived.is_dated:
            n_rewritten += 1
        elif names:
            differing[memory.id] = names
    return ArchiveCheck(
        n_listed=n_listed,
        n_archived=len(memories),
        missing=tuple(missing),
        differing=differing,
        gone=tuple(rows_by_id),
        n_rewritten=n_rewritten,
    )


def _find_unproven(archived: ArchivedMemory, memory: CurrentMemory) -> Iterator[str]:
    """Find the columns in which the archive is not proven to hold what the service lists."""
    unequal = archived.find_differences(memory)
    for name in FIELDS:
        is_closed = name == "content" and memory.error is not None
        if name not in archived.cells or is_closed or name in unequal:
            yield name
    if archived.tag_ids is not None and archived.tag_ids != {*(memory.blob.tag_ids or ())}:
        yield "tag_ids"
    held = parse_times([memory.blob.created_at, memory.blob.updated_at])
    archived_at = (archived.created_at, archived.updated_at)
    for name, archived_time, held_time in zip(("created_at", "updated_at"), archived_at, held, strict=True):
        if archived_time != held_time and not (np.isnat(archived_time) and np.isnat(held_time)):
            yield name
