"""Memories to delete: read once more, so that the plan shows, and a backup can hold, what goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from memframe.access import Access
from memframe.change import FIELDS, Change, Label, Value, same_value
from memframe.current import Stored, read_stored
from memframe.errors import PlanError, check_kind
from memframe.plan.cells import read_cell
from memframe.plan.compare import instants, moved
from memframe.plan.conflicts import Conflicts, OnConflict, differing
from memframe.plan.faults import Faults
from memframe.plan.plan import Plan, plan_of
from memframe.plan.sheet import Sheet


class Seen(NamedTuple):
    """The fields of a memory that were looked at; with ``updated_at`` of the row where it was not loaded here."""

    fields: Mapping[str, Value]
    row_at: np.datetime64 | None = None
    is_loaded: bool = True


def plan_deletes(
    access: Access,
    frame_or_ids: pd.DataFrame | pd.Series[Any] | Iterable[str] | str,
    *,
    on_conflict: OnConflict = "raise",
) -> Plan:
    """Plan to delete memories; the specification knows no way to bring one back.

    `plan_undo` creates again what a run has deleted. Only where the service offers to restore, as the embedded one
    does for 30 days, does a memory have its id and times again; elsewhere it has a new id, and is dated of the day of
    the undo. Each display of the plan says which.

    Each is read once more, and the plan holds all of it. What was seen in a frame and has changed at the
    service since is a conflict: somebody went on writing what was decided to be deleted. Ids alone say
    nothing about what was seen, and are deleted as they are.

    Parameters
    ----------
    access : Access
    frame_or_ids : DataFrame, Series, iterable of str, or str
        Rows of memories, one row of them, ids, or one id. A repeated id counts once.
    on_conflict : {"raise", "mark", "mine", "theirs"}
        What becomes of memories that were changed since: an error; a change of action "conflict", which
        cannot be applied; deleted nevertheless; or kept.

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
    conflicts, faults = Conflicts(on_conflict), Faults()
    sheet, is_frame = _sheet_of(frame_or_ids)
    _check(sheet, access, faults)
    first_of: dict[str, int] = {}
    for row, memory_id in enumerate(sheet.ids):
        first_of.setdefault(memory_id, row)
    rows = list(first_of.values())
    moment, baseline = access.client.runtime.now(), access.baseline()
    now = read_stored(access, [sheet.ids[row] for row in rows], n_known=len(baseline) or None)
    for row in rows:
        if sheet.ids[row] not in now:
            faults.add(sheet.name(row), f"there is no memory with the id {sheet.ids[row]}")
    faults.refuse("the deletes")
    seen = _seen(sheet, rows, baseline, now) if is_frame else (Seen({}) for _ in rows)
    records = [
        _delete(sheet.label(row), now[sheet.ids[row]], looked_at, conflicts)
        for row, looked_at in zip(rows, seen, strict=True)
    ]
    conflicts.refuse()
    return plan_of(access, filter(None, records), created_at=moment)


def _sheet_of(given: Any) -> tuple[Sheet, bool]:
    """What was given as a frame, and whether its rows were looked at."""
    if isinstance(given, pd.Series) and "id" in given.index:
        given = given.to_frame().T
    if isinstance(given, pd.DataFrame):
        return Sheet(given, needed=("id",)), True
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, Iterable) or isinstance(given, bytes | Mapping) or hasattr(given, "to_pandas"):
        check_kind("what to delete, if not ids,", given, pd.DataFrame, error=PlanError)
    ids: pd.Series[Any] = given if isinstance(given, pd.Series) else pd.Series([*given], dtype=object)
    _refuse_no_ids(ids)
    return Sheet(ids.astype(object).to_frame("id"), labelled=ids is given), False


def _refuse_no_ids(ids: pd.Series[Any]) -> None:
    """Refuse a mask, and records, before each of their rows is called a wrong id."""
    kinds = {type(cell) for cell in ids}
    if kinds and kinds <= {bool, np.bool}:
        raise PlanError("a mask says which rows to delete, not of which frame: pass the rows, memories[mask]")
    if kinds == {dict}:
        check_kind("what to delete, if not ids,", ids.to_list(), pd.DataFrame, error=PlanError)


def _check(sheet: Sheet, access: Access, faults: Faults) -> None:
    sheet.check_users(access, faults)
    sheet.check_ids(faults, once=False)
    for row, memory_id in enumerate(sheet.ids):
        if memory_id is None:
            faults.add(sheet.name(row), "it has no id")
    faults.refuse("the deletes")


def _seen(sheet: Sheet, rows: list[int], baseline: pd.DataFrame, now: Mapping[str, Stored]) -> Iterator[Seen]:
    """What of each memory was looked at before it was decided to delete it: the baseline, else the row itself."""
    ids = [sheet.ids[row] for row in rows]
    at = baseline.index.get_indexer(pd.Index(ids, dtype=object))
    loaded = {name: baseline[name].take(at.clip(0)).astype(object).array for name in FIELDS if len(baseline)}
    cells = {name: sheet.cells(name, rows) for name in sheet.fields}
    is_own, is_of_now = at >= 0, np.zeros(len(rows), dtype=bool)
    row_at: Sequence[np.datetime64 | None] = [None] * len(rows)
    if "updated_at" in sheet:
        mine = sheet.column("updated_at", rows)
        if len(baseline):
            is_own &= ~moved("updated_at", mine, baseline.updated_at.take(at.clip(0)))
        said_at = instants(mine)
        row_at = list(said_at)
        is_of_now = said_at == instants([now[memory_id].blob.updated_at for memory_id in ids])
    for number in range(len(rows)):
        if is_own[number]:
            yield Seen({name: read_cell(name, column[number]).value for name, column in loaded.items()})
        elif is_of_now[number]:
            yield Seen({})
        else:
            said = {name: column[number] for name, column in cells.items()}
            given = {name: cell.value for name, cell in said.items() if not cell.is_null}
            yield Seen(given, row_at[number], is_loaded=False)


def _delete(row: Label, stored: Stored, seen: Seen, conflicts: Conflicts) -> Change | None:
    theirs = {name: stored.value(name) for name in FIELDS}
    changed = [name for name, value in seen.fields.items() if not same_value(name, value, theirs[name])]
    if changed and conflicts.winner == "theirs":
        return None
    if changed and not conflicts.winner:
        reason = f"{', '.join(changed)} changed at the service since it was loaded"
        if not seen.is_loaded:
            reason = differing(changed, seen.row_at, instants([stored.blob.updated_at])[0])
        return conflicts.met(
            Change(
                action="conflict",
                row=row,
                id=stored.id,
                before={name: theirs[name] for name in changed},
                reason=reason,
            )
        )
    return delete_of(row, stored)


def delete_of(row: Label, stored: Stored) -> Change:
    """The change that deletes a memory as it is stored."""
    is_closed = stored.content is None and stored.blob.content is not None
    theirs = {name: stored.value(name) for name in FIELDS if not (is_closed and name == "content")}
    return Change(
        action="delete",
        row=row,
        id=stored.id,
        before=theirs,
        reason=f"its content cannot be shown: {stored.error}" if is_closed else None,
        sealed=stored.sealed_digest if is_closed else None,
    )
