"""Plan deletes: memories are read again, so that the plan shows and a backup can hold what is deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from memframe.access import Access
from memframe.display import printable
from memframe.errors import PlanError, check_kind
from memframe.plan.cells import cells_of, differs_in, read_cell
from memframe.plan.change import FIELDS, Change, Label
from memframe.plan.changes import OnConflict, check_option, explain_difference, refuse_conflicts
from memframe.plan.current import CurrentMemory, read_current
from memframe.plan.edited_frame import EditedFrame, RowErrors
from memframe.plan.plan import Plan, plan_of


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
        An id is missing, invalid or unknown to the service, or there is a conflict.

    Examples
    --------
    >>> from memframe import load_memories
    >>> memories = load_memories(access)
    >>> plan_deletes(access, memories[memories.tags.map(len) == 0].head(3)).counts
    {'delete': 3}
    """
    check_kind("access", access, Access)
    check_option("on_conflict", on_conflict, OnConflict)
    errors = RowErrors()
    frame, given_as = _frame_of(frame_or_ids)
    frame.check_users(access, errors)
    frame.check_ids(errors, is_unique=False)
    for row, memory_id in enumerate(frame.ids):
        if memory_id is None:
            errors.add(frame.label(row), "it has no id")
    errors.raise_if_any("the deletes")
    first_of: dict[str, int] = {}
    for row, memory_id in enumerate(frame.ids):
        first_of.setdefault(memory_id, row)
    now, baseline = access.client.runtime.now(), access.baseline()
    current = read_current(access, first_of, n_known=len(baseline) or None)
    for memory_id, row in first_of.items():
        if memory_id not in current:
            errors.add(frame.label(row), f"there is no memory with the id {printable(memory_id, 80)}")
    errors.raise_if_any("the deletes")
    reasons = _find_changed(frame, first_of, baseline, current) if given_as == "rows" and first_of else {}
    records = []
    for memory_id, row in first_of.items():
        change = delete_of(None if given_as == "ids" else frame.label(row), current[memory_id])
        if memory_id in reasons and on_conflict in ("raise", "mark"):
            names, reason = reasons[memory_id]
            before = {name: current[memory_id].value(name) for name in names}
            change = Change(action="conflict", row=change.row, id=memory_id, before=before, reason=reason)
        if memory_id not in reasons or on_conflict != "theirs":
            records.append(change)
    refuse_conflicts(records, on_conflict)
    return plan_of(access, records, created_at=now)


def _frame_of(given: Any) -> tuple[EditedFrame, Literal["rows", "labelled ids", "ids"]]:
    """Convert the argument to a frame, and say what it was: rows of memories, ids with labels, or ids alone."""
    if isinstance(given, pd.Series) and "id" in given.index:
        given = given.to_frame().T
    if isinstance(given, pd.DataFrame):
        return EditedFrame(given, needed=("id",)), "rows"
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, Iterable) or isinstance(given, bytes | Mapping) or hasattr(given, "to_pandas"):
        check_kind("what to delete, if not ids,", given, pd.DataFrame, error=PlanError)
    ids: pd.Series[Any] = given if isinstance(given, pd.Series) else pd.Series([*given], dtype=object)
    kinds = {type(cell) for cell in ids}  # a mask or records would be reported as a wrong id in each row
    if kinds and kinds <= {bool, np.bool}:
        raise PlanError("a mask does not identify the frame: pass the rows, memories[mask]")
    if kinds == {dict}:
        check_kind("what to delete, if not ids,", ids.to_list(), pd.DataFrame, error=PlanError)
    return EditedFrame(ids.astype(object).to_frame("id")), "labelled ids" if ids is given else "ids"


def _find_changed(
    frame: EditedFrame,
    row_of: Mapping[str, int],
    baseline: pd.DataFrame,
    current: Mapping[str, CurrentMemory],
) -> dict[str, tuple[tuple[str, ...], str]]:
    """Find memories that changed since they were chosen, by id: the changed fields, and the reason of the conflict.

    They are compared with the baseline; if it does not fit, with the row itself, unless its time is the current one.
    """
    ids, rows = [*row_of], np.array([*row_of.values()])
    at = baseline.index.get_indexer(pd.Index(ids, dtype=object))
    is_loaded, base = at >= 0, baseline.take(at.clip(0)) if len(baseline) else baseline
    if "updated_at" in frame and len(baseline):
        is_loaded &= ~differs_in("updated_at", frame.column("updated_at", rows), base.updated_at)
    loaded = {name: cells_of(base[name]) for name in FIELDS}
    cells = {name: frame.cells(name, rows) for name in frame.fields}
    row_at, service_at = frame.times(
        "updated_at", rows, [current[memory_id].blob.updated_at for memory_id in ids]
    )
    found = {}
    for n, memory_id in enumerate(ids):
        if is_loaded[n]:
            seen = {name: read_cell(name, column[n]).value for name, column in loaded.items()}
        elif row_at[n] == service_at[n]:
            continue
        else:
            seen = {name: column[n].value for name, column in cells.items() if not column[n].is_null}
        names = current[memory_id].find_differences(seen)
        reason = f"{', '.join(names)} changed at the service since it was loaded"
        if names and not is_loaded[n]:
            reason = explain_difference(names, row_at[n], service_at[n])
        if names:
            found[memory_id] = names, reason
    return found


def delete_of(row: Label, memory: CurrentMemory) -> Change:
    """Make the change that deletes a memory in its current state."""
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
