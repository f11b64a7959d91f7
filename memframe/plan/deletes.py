"""Memories to delete: read once more, so that the plan shows, and a backup can hold, what goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from memframe.access import Access
from memframe.errors import PlanError, check_kind
from memframe.plan.cells import differs_in, parse_times, read_cell
from memframe.plan.change import FIELDS, Change, Fields, Label, same_value
from memframe.plan.changes import Conflicts, OnConflict, explain_difference
from memframe.plan.current import CurrentMemory, read_current
from memframe.plan.edited_frame import EditedFrame, RowErrors
from memframe.plan.plan import Plan, plan_of


class JudgedState(NamedTuple):
    """The fields of a memory by which it was chosen; with ``updated_at`` of the row where it was not loaded here."""

    fields: Fields
    row_at: np.datetime64 | None = None
    is_loaded: bool = True


def plan_deletes(
    access: Access,
    frame_or_ids: pd.DataFrame | pd.Series[Any] | Iterable[str] | str,
    *,
    on_conflict: OnConflict = "raise",
) -> Plan:
    """Plan to delete memories; the specification has no way to restore them.

    `plan_undo` creates deleted memories again. They keep their ids and times only if the service can restore
    them, as the embedded one does for 30 days; otherwise they get new ids and the date of the undo. Each
    display of the plan says which applies.

    Each memory is read again, and the plan holds all of it. A memory that has changed at the service since the
    frame was loaded is a conflict. Ids alone do not show what was loaded, so those memories are deleted in
    their current state.

    Parameters
    ----------
    access : Access
    frame_or_ids : DataFrame, Series, iterable of str, or str
        Rows of memories, one row of them, ids, or one id. A repeated id counts once.
    on_conflict : {"raise", "mark", "mine", "theirs"}
        How to treat memories that have changed since: as an error; as a change with action "conflict", which
        cannot be applied; delete them; or keep them.

    Returns
    -------
    Plan

    Raises
    ------
    PlanError
        An id is none, or unknown to the service; or there is a conflict.

    Examples
    --------
    >>> from memframe import load_memories
    >>> memories = load_memories(access)
    >>> plan_deletes(access, memories[memories.tags.map(len) == 0].head(3)).counts
    {'delete': 3}
    """
    check_kind("access", access, Access)
    conflicts, errors = Conflicts(on_conflict), RowErrors()
    frame, is_frame = _frame_of(frame_or_ids)
    frame.check_users(access, errors)
    frame.check_ids(errors, once=False)
    first_of: dict[str, int] = {}
    for row, memory_id in enumerate(frame.ids):
        first_of.setdefault(memory_id, row)
        if memory_id is None:
            errors.add(frame.name(row), "it has no id")
    errors.raise_if_any("the deletes")
    rows = list(first_of.values())
    moment, baseline = access.client.runtime.now(), access.baseline()
    now = read_current(access, [frame.ids[row] for row in rows], n_known=len(baseline) or None)
    for row in rows:
        if frame.ids[row] not in now:
            errors.add(frame.name(row), f"there is no memory with the id {frame.ids[row]}")
    errors.raise_if_any("the deletes")
    seen = _judged_states(frame, rows, baseline, now) if is_frame else [JudgedState({})] * len(rows)
    records = [
        _delete(frame.label(row), now[frame.ids[row]], judged, conflicts)
        for row, judged in zip(rows, seen, strict=True)
    ]
    conflicts.raise_if_any()
    return plan_of(access, filter(None, records), created_at=moment)


def _frame_of(given: Any) -> tuple[EditedFrame, bool]:
    """Return what was given as a frame, and whether it holds more than ids."""
    if isinstance(given, pd.Series) and "id" in given.index:
        given = given.to_frame().T
    if isinstance(given, pd.DataFrame):
        return EditedFrame(given, needed=("id",)), True
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, Iterable) or isinstance(given, bytes | Mapping) or hasattr(given, "to_pandas"):
        check_kind("what to delete, if not ids,", given, pd.DataFrame, error=PlanError)
    ids: pd.Series[Any] = given if isinstance(given, pd.Series) else pd.Series([*given], dtype=object)
    kinds = {type(cell) for cell in ids}  # of a mask, and of records, each row would be called a wrong id
    if kinds and kinds <= {bool, np.bool}:
        raise PlanError("a mask does not identify the frame: pass the rows, memories[mask]")
    if kinds == {dict}:
        check_kind("what to delete, if not ids,", ids.to_list(), pd.DataFrame, error=PlanError)
    return EditedFrame(ids.astype(object).to_frame("id"), has_labels=ids is given), False


def _judged_states(
    frame: EditedFrame, rows: list[int], baseline: pd.DataFrame, now: Mapping[str, CurrentMemory]
) -> Iterable[JudgedState]:
    """Return the state in which each memory was chosen: the baseline, else the row itself."""
    ids = [frame.ids[row] for row in rows]
    at = baseline.index.get_indexer(pd.Index(ids, dtype=object))
    loaded = {name: baseline[name].take(at.clip(0)).astype(object).array for name in FIELDS if len(baseline)}
    cells = {name: frame.cells(name, rows) for name in frame.fields}
    is_own, is_of_now = at >= 0, np.zeros(len(rows), dtype=bool)
    row_at: Sequence[np.datetime64 | None] = [None] * len(rows)
    if "updated_at" in frame:
        mine = frame.column("updated_at", rows)
        if len(baseline):
            is_own &= ~differs_in("updated_at", mine, baseline.updated_at.take(at.clip(0)))
        row_times = parse_times(mine)
        row_at = list(row_times)
        is_of_now = row_times == parse_times([now[memory_id].blob.updated_at for memory_id in ids])
    for number in range(len(rows)):
        if is_own[number]:
            yield JudgedState(
                {name: read_cell(name, column[number]).value for name, column in loaded.items()}
            )
        elif is_of_now[number]:
            yield JudgedState({})
        else:
            row = {name: column[number] for name, column in cells.items()}
            given = {name: cell.value for name, cell in row.items() if not cell.is_null}
            yield JudgedState(given, row_at[number], is_loaded=False)


def _delete(row: Label, memory: CurrentMemory, seen: JudgedState, conflicts: Conflicts) -> Change | None:
    theirs = {name: memory.value(name) for name in FIELDS}
    changed = [name for name, value in seen.fields.items() if not same_value(name, value, theirs[name])]
    if not changed or conflicts.winner == "mine":
        return delete_of(row, memory)
    if conflicts.winner == "theirs":
        return None
    reason = f"{', '.join(changed)} changed at the service since it was loaded"
    if not seen.is_loaded:
        reason = explain_difference(changed, seen.row_at, parse_times([memory.blob.updated_at])[0])
    before = {name: theirs[name] for name in changed}
    return conflicts.add(Change(action="conflict", row=row, id=memory.id, before=before, reason=reason))


def delete_of(row: Label, memory: CurrentMemory) -> Change:
    """Make the change that deletes a memory as it is now."""
    is_closed = memory.content is None and memory.blob.content is not None
    theirs = {name: memory.value(name) for name in FIELDS if not (is_closed and name == "content")}
    return Change(
        action="delete",
        row=row,
        id=memory.id,
        before=theirs,
        reason=f"its content cannot be shown: {memory.error}" if is_closed else None,
        sealed=memory.sealed_digest if is_closed else None,
    )
