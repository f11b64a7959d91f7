"""Edited frame to plan: what its rows say, beside what was loaded and what the service holds now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import numpy as np
import pandas as pd

from memframe.access import Access
from memframe.change import FIELDS, WRITES, Change, Label, Value, same_value
from memframe.current import Stored, read_stored
from memframe.display import number_of
from memframe.errors import PlanError, check_kind
from memframe.plan.cells import Cell, sendable
from memframe.plan.compare import instants, is_cut
from memframe.plan.conflicts import Conflicts, OnConflict, differing
from memframe.plan.edits import Edit, find_edits
from memframe.plan.faults import Faults
from memframe.plan.merge import three_way
from memframe.plan.options import check_option
from memframe.plan.plan import Plan, plan_of
from memframe.plan.sheet import Sheet
from memframe.plan.wording import listed

OnNull = Literal["raise", "null", "skip"]

_GONE = "it was deleted at the service since it was loaded"


def plan_changes(
    access: Access,
    edited: pd.DataFrame,
    *,
    on_null: OnNull = "raise",
    on_conflict: OnConflict = "raise",
    max_changes: int | None = None,
) -> Plan:
    """What an edited frame asks to be written: only the fields that were edited, and nothing else.

    Rows are known by ``id`` alone; the index only names them in messages. A field is sent if it differs from
    the baseline, that is, from the memory as it was last loaded, and if the service still holds that. Rows
    without ``id`` become new memories. Rows that are not in the frame are left alone: deleting is
    `plan_deletes`. Nothing is written, and the frame is not modified.

    Rows that this access has not loaded, or not in this state, are compared with the service: what differs is
    a change if the row's ``updated_at`` is the service's, else a conflict. Where the frame has no
    ``updated_at`` at all (a table of ids and texts), cells that are not missing are changes against the state
    of this moment, and missing ones say nothing unless ``on_null="null"``.

    Parameters
    ----------
    access : Access
    edited : DataFrame
        Any of the columns of `load_memories`. Other columns are not written, and named in the notes of the plan;
        one that is spelled nearly like a column of memories is an error.
    on_null : {"raise", "null", "skip"}
        What a cell means that was emptied: an error, that the field is cleared, or nothing. `NULL` in a cell
        always clears. Content cannot be cleared.
    on_conflict : {"raise", "mark", "mine", "theirs"}
        What becomes of fields that were changed here and at the service: an error; a change of action
        "conflict", which is there to be looked at and cannot be applied, or one of the two sides wins.
        A memory that was deleted meanwhile is a conflict, too, in which "mine" cannot win.
    max_changes : int, optional
        Refuse to plan more.

    Returns
    -------
    Plan

    Raises
    ------
    PlanError
        It names the rows, by their labels, and what is wrong with each; nothing was written.

    Examples
    --------
    >>> from memframe import Access, Credentials, Secret, connect
    >>> from memframe.envelope import Envelope
    >>> keys = Credentials("4f0c", Secret("mk_example"), Secret("0f1e" * 16), key_version=1)
    >>> client = connect("http://127.0.0.1:8000/api/v1", api_key="mf_key_of_this_example")
    >>> access = Access(client, "r1", keys, Envelope(keys.encryption_key, user_id="4f0c", key_version=1))
    >>> new = pd.DataFrame({"content": ["Ada likes tea"], "tags": [["food"]]})
    >>> print(plan_changes(access, new).diff(color=False))
    create a new memory (row 0)
    @@ content @@
    +Ada likes tea
    @@ tags @@
    +food
    <BLANKLINE>
    1 create
    """
    check_kind("access", access, Access)
    check_option("on_null", on_null, OnNull)
    conflicts, faults = Conflicts(on_conflict), Faults()
    sheet = Sheet(edited)
    sheet.check_ids(faults)
    sheet.check_users(access, faults)
    faults.refuse("the frame")
    states = access.states()
    edits = find_edits(sheet, states, faults)
    settle = Settling(on_null, faults)
    creates = list(_creates(sheet, settle))
    mine = [None if edit.base is None else settle.values(edit.row, edit.cells, edit.base) for edit in edits]
    faults.refuse("the frame")
    moment = access.client.runtime.now()
    now = read_stored(access, [edit.id for edit in edits], n_known=len(states) or None)
    merging = Merging(now, conflicts, settle)
    patches = [merging.change(edit, own) for edit, own in zip(edits, mine, strict=True)]
    faults.refuse("the frame")
    conflicts.refuse()
    records = [change for change in patches if change] + creates
    check_size(records, max_changes)
    return plan_of(access, records, notes=_notes(sheet, merging), created_at=moment)


def _notes(sheet: Sheet, merging: Merging) -> Iterator[str]:
    """Name what the frame holds and no plan can write."""
    if sheet.unknown:
        yield f"Not written, as a memory has no such columns: {listed(sheet.unknown)}"
    new = np.flatnonzero([memory_id is None for memory_id in sheet.ids])
    given = {name: sheet.is_given(name, new) for name in (*sheet.read_only, "updated_at") if name in sheet}
    names = [name for name, mask in given.items() if mask.any()]
    if names:
        n_new = int(np.logical_or.reduce([given[name] for name in names]).sum())
        them = "it" if len(names) == 1 else "them"
        of_new = number_of(n_new, "new memory", "new memories")
        yield f"Not written, as the service sets {them}: {', '.join(names)} of {of_new}"
    if merging.n_other_tag_ids:
        of_memories = number_of(merging.n_other_tag_ids, "memory", "memories")
        yield f"Not written, as the service sets it by the tags: tag_ids of {of_memories}"


def check_size(records: Iterable[Change], max_changes: int | None) -> None:
    """Refuse more writes than somebody has allowed.

    Raises
    ------
    PlanError
    """
    n_writes = sum(change.action in WRITES for change in records)
    if max_changes is not None and n_writes > max_changes:
        raise PlanError(
            f"the plan would change {number_of(n_writes, 'row', 'rows')}, max_changes={max_changes:,}: look at "
            "what was given, or allow more"
        )


class Settling:
    """What cells mean to send, once it is said what an emptied one means."""

    def __init__(self, on_null: OnNull, faults: Faults) -> None:
        self.on_null = on_null
        self.faults = faults

    def values(self, row: Label, cells: Mapping[str, Cell], base: Mapping[str, Value]) -> dict[str, Value]:
        """Values to send; what cannot be sent is noted as a fault."""
        settled = {}
        for name, cell in cells.items():
            if cell.is_null and (self.on_null == "skip" or self._was_empty(base.get(name))):
                continue
            value, fault, _ = sendable(name, cell.value)
            if name == "content" and value is None:
                fault = "content cannot be cleared: put the text back, or delete the memory instead"
            elif cell.is_null and self.on_null == "raise":
                fault = (
                    f"{name} was emptied: say by on_null= what that means, or write memframe.NULL to clear it"
                )
            if fault and not cell.fault:
                self.faults.add(row, fault)
            settled[name] = value
        return settled

    def _was_empty(self, before: Value) -> bool:
        """Tell text that had nothing in it, for which a CSV of pandas has a missing cell, from text that went."""
        return before == "" and self.on_null == "raise"


def _creates(sheet: Sheet, settle: Settling) -> Iterator[Change]:
    """Rows without an id; what is missing in them is not sent."""
    rows = np.flatnonzero([memory_id is None for memory_id in sheet.ids])
    cells = {name: sheet.cells(name, rows) for name in sheet.fields}
    for number, row in enumerate(rows.tolist()):
        label = sheet.label(row)
        said = {name: column[number] for name, column in cells.items()}
        given = {name: cell for name, cell in said.items() if cell.fault or cell.value not in (None, ())}
        for cell in given.values():
            if cell.fault:
                settle.faults.add(label, cell.fault)
        if "content" not in given:
            settle.faults.add(label, "a new memory needs content")
        yield Change(action="create", row=label, after=_ordered(settle.values(label, given, {})))


class Merging:
    """Edits beside the service's state of now."""

    def __init__(self, now: Mapping[str, Stored], conflicts: Conflicts, settle: Settling) -> None:
        self._now = now
        self._settle = settle
        self._conflicts = conflicts
        self.n_other_tag_ids = 0
        self._created_at, self._updated_at = (
            dict(zip(now, instants([getattr(stored.blob, name) for stored in now.values()]), strict=True))
            for name in ("created_at", "updated_at")
        )

    def change(self, edit: Edit, mine: dict[str, Value] | None) -> Change | None:
        """The change that an edit comes to, if any."""
        stored = self._now.get(edit.id)
        if stored is None:
            return self._gone(edit, mine)
        theirs = {name: stored.value(name) for name in edit.cells}
        base: Mapping[str, Value] | None = edit.base
        if mine is None:
            is_of_now = self._is_of_now(edit)
            base = theirs if is_of_now else None
            self.n_other_tag_ids += is_of_now and _has_other_tag_ids(edit, stored)
            mine = self._strange_values(edit, theirs, is_of_now=is_of_now)
        merged = three_way(mine, base, theirs)
        sent = merged.sent + (merged.conflicts if self._conflicts.winner == "mine" else ())
        if merged.conflicts and not self._conflicts.winner:
            return self._conflict(edit, merged.conflicts, mine, theirs)
        if not sent:
            return None
        if stored.error:
            said = f"it could not be read as it is now ({stored.error})"
            self._settle.faults.add(edit.row, f"{said}; after a change of key, open the access again")
        return Change(
            action="patch",
            row=edit.row,
            id=edit.id,
            before=_ordered({name: theirs[name] for name in sent}),
            after=_ordered({name: mine[name] for name in sent}),
        )

    def _is_of_now(self, edit: Edit) -> bool:
        """Whether the row, of which there is no baseline, is of the state that the service holds."""
        created_at, updated_at = self._created_at[edit.id], self._updated_at[edit.id]  # perhaps NaT, beside
        created = _as_held(edit.times.get("created_at"), created_at)  # which all is false
        updated = _as_held(edit.times.get("updated_at"), updated_at)
        if created is not None and (created < created_at or created > created_at):
            self._settle.faults.add(edit.row, "created_at is read-only, and not the service's")
        if updated is not None and (updated < created_at or updated > updated_at):
            self._settle.faults.add(
                edit.row, "updated_at is read-only, and of no state that the memory was in"
            )
        return updated is None or bool(updated == updated_at)

    def _strange_values(
        self, edit: Edit, theirs: Mapping[str, Value], *, is_of_now: bool
    ) -> dict[str, Value]:
        """What a row without a baseline says that the service does not."""
        on_null = self._settle.on_null
        is_silent = on_null == "skip" or (on_null == "raise" and "updated_at" not in edit.times)
        cells = {
            name: cell
            for name, cell in edit.cells.items()
            if not (_is_held(name, cell, theirs[name]) or (cell.is_null and is_silent))
        }
        if is_of_now or self._conflicts.winner == "mine":
            return self._settle.values(edit.row, cells, theirs)
        return {name: cell.value for name, cell in cells.items()}  # all of them conflicts

    def _gone(self, edit: Edit, mine: dict[str, Value] | None) -> Change | None:
        """A memory that the service has not; whether it ever had, a row without a time does not say."""
        if mine is None and not edit.times:
            self._settle.faults.add(edit.row, f"there is no memory with the id {edit.id}")
        elif self._conflicts.winner == "mine":
            self._settle.faults.add(edit.row, f"{_GONE}: drop the row, or empty its id to create it anew")
        elif not self._conflicts.winner:
            reason = _GONE if mine is not None else f"there is no memory with the id {edit.id}, or no more"
            after = _ordered(mine or {})
            return self._conflicts.met(
                Change(action="conflict", row=edit.row, id=edit.id, after=after, reason=reason)
            )
        return None

    def _conflict(
        self, edit: Edit, names: tuple[str, ...], mine: Mapping[str, Value], theirs: Mapping[str, Value]
    ) -> Change:
        at = edit.times.get("updated_at")
        if edit.base is None:
            reason = differing(names, at, self._updated_at[edit.id])
        else:
            reason = f"{', '.join(names)} changed at the service since it was loaded"
        return self._conflicts.met(
            Change(
                action="conflict",
                row=edit.row,
                id=edit.id,
                before=_ordered({name: theirs[name] for name in names}),
                after=_ordered({name: mine[name] for name in names}),
                reason=reason,
            )
        )


def _as_held(said: np.datetime64 | None, held: np.datetime64) -> np.datetime64 | None:
    """The service's time where a row says it in whole milliseconds, which is all that some formats keep."""
    return held if said is not None and said == held.astype("datetime64[ms]") else said


def _has_other_tag_ids(edit: Edit, stored: Stored) -> bool:
    """Tell whether a row has other ids of tags than the very state which it says that it is of."""
    if not isinstance(edit.tag_ids, tuple) or "updated_at" not in edit.times:
        return False
    return set(edit.tag_ids) != set(stored.blob.tag_ids or ())


def _is_held(name: str, cell: Cell, held: Value) -> bool:
    is_score = isinstance(cell.value, float) and isinstance(held, float | int)
    return same_value(name, cell.value, held) or (is_score and bool(is_cut(cell.value, held)))  # type: ignore[arg-type]


def _ordered(values: Mapping[str, Value]) -> dict[str, Value]:
    return {name: values[name] for name in FIELDS if name in values}
