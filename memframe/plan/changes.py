"""Edited frame to plan: each field as it was loaded, as it was edited, and as the service holds it now.

==========  ==========  =============  ====================================
edited      service     both           outcome
==========  ==========  =============  ====================================
same        any                        not sent
changed     same                       sent
changed     changed     to the same    not sent, as it is so already
changed     changed     differently    conflict
==========  ==========  =============  ====================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, get_args

import numpy as np
import pandas as pd
from msgspec.structs import replace

from memframe.access import Access
from memframe.display import number_of
from memframe.errors import Hint, PlanError, check_kind
from memframe.plan.cells import Cell, is_rounded, normalize, parse_times
from memframe.plan.change import WRITES, Change, Fields, Label, Value, in_order, list_some, same_value
from memframe.plan.current import CurrentMemory, read_current
from memframe.plan.edited_frame import Edit, EditedFrame, RowErrors, find_edits
from memframe.plan.plan import Plan, plan_of

OnNull = Literal["raise", "null", "skip"]
OnConflict = Literal["raise", "mark", "mine", "theirs"]


def plan_changes(
    access: Access,
    edited: pd.DataFrame,
    *,
    on_null: OnNull = "raise",
    on_conflict: OnConflict = "raise",
    max_changes: int | None = None,
) -> Plan:
    """Plan to write an edited frame: only the fields that were edited, and nothing else.

    Rows are identified by ``id``; the index is used only in messages. A field is sent if it differs from the
    baseline (the memory as last loaded) and if the service still holds the baseline's value. Rows without
    ``id`` become new memories. Rows that are missing from the frame are left alone; to delete, use
    `plan_deletes`. Nothing is written, and the frame is not modified.

    Rows that were not loaded through this access, or not in this state, are compared with the service: a
    difference is a change if the row's ``updated_at`` equals that of the service, otherwise a conflict. If the
    frame has no ``updated_at`` column (a table of ids and texts), cells with a value are changes relative to
    the current state, and missing cells are ignored unless ``on_null="null"``.

    Parameters
    ----------
    access : Access
    edited : DataFrame
        Any of the columns of `load_memories`. Other columns are not written, and are named in the notes of the
        plan; a name that is nearly that of a column of memories is an error.
    on_null : {"raise", "null", "skip"}
        How to treat a cell that was emptied: as an error, as a request to clear the field, or as no change.
        `NULL` in a cell always clears. Content cannot be cleared.
    on_conflict : {"raise", "mark", "mine", "theirs"}
        How to treat fields that were changed both here and at the service: as an error; as a change with action
        "conflict", which can be reviewed but not applied; or by keeping one of the two versions. A memory that
        was deleted in the meantime is also a conflict, in which "mine" cannot win.
    max_changes : int, optional
        Refuse to plan more.

    Returns
    -------
    Plan

    Raises
    ------
    PlanError
        The message names the rows by their labels and says what is wrong with each; nothing was written.

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
    conflicts, errors = Conflicts(on_conflict), RowErrors()
    frame, builder = EditedFrame(edited), ChangeBuilder(on_null, conflicts, errors)
    frame.check_ids(errors)
    frame.check_users(access, errors)
    errors.raise_if_any("the frame")
    states = access.states()
    edits = find_edits(frame, states, errors)
    creates = list(builder.creates(frame))
    mine = [None if edit.base is None else builder.values(edit.row, edit.cells, edit.base) for edit in edits]
    errors.raise_if_any("the frame")
    moment = access.client.runtime.now()
    now = read_current(access, [edit.id for edit in edits], n_known=len(states) or None)
    patches = list(builder.changes(edits, mine, now))
    errors.raise_if_any("the frame")
    conflicts.raise_if_any()
    records = patches + creates
    check_size(records, max_changes)
    return plan_of(access, records, notes=_notes(frame, builder), created_at=moment)


def _notes(frame: EditedFrame, builder: ChangeBuilder) -> Iterator[str]:
    """Name what the frame holds and no plan can write."""
    if frame.unknown:
        yield f"Not written, as a memory has no such columns: {list_some(frame.unknown)}"
    new = np.flatnonzero([memory_id is None for memory_id in frame.ids])
    columns = [name for name in (*frame.read_only, "updated_at") if name in frame] if len(new) else []
    given = {name: frame.is_given(name, new) for name in columns}
    names = [name for name, mask in given.items() if mask.any()]
    if names:
        n_new = int(np.logical_or.reduce([given[name] for name in names]).sum())
        them = "it" if len(names) == 1 else "them"
        of_new = number_of(n_new, "new memory", "new memories")
        times = "; times are those of the run" if any(name.endswith("_at") for name in names) else ""
        yield f"Not written, as the service sets {them}: {', '.join(names)} of {of_new}{times}"
    why = {"tag_ids": "the service sets it by the tags", "content_error": "only loading sets it"}
    for name, n in builder.n_ignored.items():
        yield f"Not written, as {why[name]}: {name} of {number_of(n, 'memory', 'memories')}"


def check_size(records: Iterable[Change], max_changes: int | None) -> None:
    """Refuse more writes than somebody has allowed, by a `PlanError`."""
    n_writes = sum(change.action in WRITES for change in records)
    if max_changes is not None and n_writes > max_changes:
        raise PlanError(
            f"the plan would change {number_of(n_writes, 'row', 'rows')}, and {max_changes:,} are allowed",
            hint=Hint(
                "look at what was given, or allow more by max_changes",
                "look at what was given, or allow more by --max-changes",
            ),
        )


def check_option(name: str, value: object, kind: object) -> None:
    """Refuse a word that is none of the choices, by a `PlanError`."""
    choices = get_args(kind)
    if value not in choices:
        raise PlanError(f"{name}={value!r}: give one of {', '.join(map(repr, choices))}")


def three_way(mine: Fields, base: Fields | None, theirs: Fields) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Decide field by field, by the table of this module; without a base whatever differs is a conflict.

    Returns
    -------
    sent, conflicts : tuple of str
        Names of fields.

    Examples
    --------
    >>> was = {"title": "tea", "source": "chat", "summary": None}
    >>> three_way(was | {"title": "Tea", "source": "mail"}, was, was | {"source": "phone", "summary": "new"})
    (('title',), ('source',))
    """
    sent, conflicts = [], []
    for name, value in mine.items():
        if same_value(name, value, theirs[name]):
            continue
        if base is None or not same_value(name, base[name], theirs[name]):
            if base is None or not same_value(name, value, base[name]):
                conflicts.append(name)
        else:
            sent.append(name)
    return tuple(sent), tuple(conflicts)


def explain_difference(names: Sequence[str], row_at: np.datetime64 | None, service_at: np.datetime64) -> str:
    """Say which fields of a row that was not loaded differ, where only ``updated_at`` tells that something moved.

    >>> explain_difference(["source"], np.datetime64("2026-03-01T08:30"), np.datetime64("2026-03-01T09:00"))
    'source differs from what the service holds: the memory was written there at 2026-03-01 09:00:00 UTC, after the \
state of this row (2026-03-01 08:30:00 UTC); which side changed it cannot be told'
    """
    verb, what = ("differs", "it") if len(names) == 1 else ("differ", "them")
    written = "" if np.isnat(service_at) else f" at {pd.Timestamp(service_at)} UTC"
    since = ""
    if row_at is not None and not np.isnat(row_at):
        since = f", after the state of this row ({pd.Timestamp(row_at)} UTC)"
    return (
        f"{', '.join(names)} {verb} from what the service holds: the memory was written there{written}{since}; which "
        f"side changed {what} cannot be told"
    )


class Conflicts:
    """Collect conflicts, to be raised all at once or to be marked in the plan; where one side wins there are none."""

    def __init__(self, on_conflict: OnConflict) -> None:
        check_option("on_conflict", on_conflict, OnConflict)
        self.winner = None if on_conflict in ("raise", "mark") else on_conflict
        self._raises = on_conflict == "raise"
        self._found: list[Change] = []

    def add(self, change: Change) -> Change:
        """Add a conflict and return it."""
        self._found.append(change)
        return change

    def raise_if_any(self) -> None:
        """Raise if there are any that are not to be marked in the plan.

        Raises `PlanError`, which names the rows and what moved.
        """
        if self._found and self._raises:
            rows = [f"{change.label}: {change.reason}" for change in self._found]
            raise PlanError(
                f"{number_of(len(rows), 'row conflicts', 'rows conflict')} with what the service "
                f"holds now: {list_some(rows, '; ')}",
                hint=Hint(
                    "look at both sides with on_conflict='mark', or decide by 'mine' or 'theirs'",
                    "look at both sides with --on-conflict mark, or decide by --on-conflict mine or theirs",
                ),
            )


class ChangeBuilder:
    """Build changes of edits and of the current state of their memories; what cannot be sent is added to the errors."""

    def __init__(self, on_null: OnNull, conflicts: Conflicts, errors: RowErrors) -> None:
        self._on_null, self._conflicts, self._errors = on_null, conflicts, errors
        self.n_ignored: Counter[str] = Counter()
        """Memories whose read-only columns were edited, by column."""

    def values(self, row: Label, cells: Mapping[str, Cell], base: Mapping[str, Value]) -> dict[str, Value]:
        """Return the values to send, by what an emptied cell means."""
        values = {}
        for name, cell in cells.items():
            # a CSV of pandas has a missing cell for both
            was_empty = base.get(name) == "" and self._on_null == "raise"
            if cell.is_null and (self._on_null == "skip" or was_empty):
                continue
            value, error, _ = normalize(name, cell.value)
            if name == "content" and value is None:
                error = "content cannot be cleared: put the text back, or delete the memory instead"
            elif cell.is_null and self._on_null == "raise":
                error = (
                    f"{name} was emptied: say by on_null (--on-null) what that means, or write memframe.NULL"
                )
            if error and not cell.error:
                self._errors.add(row, error)
            values[name] = value
        return values

    def creates(self, frame: EditedFrame) -> Iterator[Change]:
        """Make a create of each row without an id; what is missing in it is not sent."""
        rows = np.flatnonzero([memory_id is None for memory_id in frame.ids])
        cells = {name: frame.cells(name, rows) for name in frame.fields} if len(rows) else {}
        for number, row in enumerate(rows.tolist()):
            label, given = frame.label(row), {}
            for name, column in cells.items():
                cell = column[number]
                if cell.error:
                    self._errors.add(label, cell.error)
                if cell.error or cell.value not in (None, ()):
                    given[name] = cell
            if "content" not in given:
                self._errors.add(label, "a new memory needs content")
            yield Change(action="create", row=label, after=in_order(self.values(label, given, {})))

    def changes(
        self,
        edits: Iterable[Edit],
        values: Iterable[dict[str, Value] | None],
        now: Mapping[str, CurrentMemory],
    ) -> Iterator[Change]:
        """Make the changes of edits, with the values of those that have a baseline."""
        created_at, updated_at = (
            dict(zip(now, parse_times([getattr(memory.blob, name) for memory in now.values()]), strict=True))
            for name in ("created_at", "updated_at")
        )
        for edit, mine in zip(edits, values, strict=True):
            memory = now.get(edit.id)
            if memory is None:
                change = self._gone(edit, mine)
            else:
                change = self._merge(edit, mine, memory, created_at[edit.id], updated_at[edit.id])
            if change is not None:
                yield change

    def _merge(
        self,
        edit: Edit,
        mine: dict[str, Value] | None,
        memory: CurrentMemory,
        created_at: np.datetime64,
        updated_at: np.datetime64,
    ) -> Change | None:
        theirs = {name: memory.value(name) for name in edit.cells}
        base: Mapping[str, Value] | None = edit.base
        if mine is None:
            is_of_now = self._is_of_now(edit, created_at, updated_at)
            base = theirs if is_of_now else None
            if is_of_now and "updated_at" in edit.times:
                self.n_ignored.update(_read_only_edits(edit, memory))
            mine = self._values_without_baseline(edit, theirs, is_of_now=is_of_now)
        sent, conflicts = three_way(mine, base, theirs)
        is_conflict = bool(conflicts) and not self._conflicts.winner
        names = conflicts if is_conflict else sent + conflicts if self._conflicts.winner == "mine" else sent
        if not names:
            return None
        change = Change(
            action="patch",
            row=edit.row,
            id=edit.id,
            before=in_order({name: theirs[name] for name in names}),
            after=in_order({name: mine[name] for name in names}),
        )
        if is_conflict:
            reason = f"{', '.join(names)} changed at the service since it was loaded"
            if edit.base is None:
                reason = explain_difference(names, edit.times.get("updated_at"), updated_at)
            return self._conflicts.add(replace(change, action="conflict", reason=reason))
        if memory.error:
            error = (
                f"it could not be decrypted ({memory.error}); after a change of key, open the access again"
            )
            self._errors.add(edit.row, error)
        return change

    def _is_of_now(self, edit: Edit, created_at: np.datetime64, updated_at: np.datetime64) -> bool:
        """Tell whether a row without a baseline is of the state that the service holds."""
        created = _as_held(edit.times.get("created_at"), created_at)  # of NaT all comparisons are false
        updated = _as_held(edit.times.get("updated_at"), updated_at)
        if created is not None and (created < created_at or created > created_at):
            self._errors.add(edit.row, "created_at is read-only, and not the service's")
        if updated is not None and (updated < created_at or updated > updated_at):
            self._errors.add(edit.row, "updated_at is read-only, and of no state that the memory was in")
        return updated is None or bool(updated == updated_at)

    def _values_without_baseline(
        self, edit: Edit, theirs: Mapping[str, Value], *, is_of_now: bool
    ) -> dict[str, Value]:
        """Return what a row without a baseline has otherwise than the service."""
        is_silent = self._on_null == "skip" or (self._on_null == "raise" and "updated_at" not in edit.times)
        cells = {
            name: cell
            for name, cell in edit.cells.items()
            if not (is_held(name, cell, theirs[name]) or (cell.is_null and is_silent))
        }
        if is_of_now or self._conflicts.winner == "mine":
            return self.values(edit.row, cells, theirs)
        return {name: cell.value for name, cell in cells.items()}  # all of them conflicts

    def _gone(self, edit: Edit, mine: dict[str, Value] | None) -> Change | None:
        """Refuse an edit of a memory that the service does not have, or mark it as a conflict."""
        gone, unknown = (
            "it was deleted at the service since it was loaded",
            f"there is no memory with the id {edit.id}",
        )
        if mine is None and not edit.times:
            self._errors.add(edit.row, unknown)
        elif self._conflicts.winner == "mine":
            self._errors.add(edit.row, f"{gone}: remove the row, or empty its id to create it again")
        elif not self._conflicts.winner:
            reason = f"{unknown}, or it was deleted" if mine is None else gone
            after = in_order(mine or {})
            conflict = Change(action="conflict", row=edit.row, id=edit.id, after=after, reason=reason)
            return self._conflicts.add(conflict)
        return None


def _as_held(time: np.datetime64 | None, held: np.datetime64) -> np.datetime64 | None:
    """Replace a time in whole milliseconds, which is all that some formats keep, by the service's."""
    return held if time is not None and time == held.astype("datetime64[ms]") else time


def _read_only_edits(edit: Edit, memory: CurrentMemory) -> Iterator[str]:
    """Find read-only columns in which a row differs from the very state that it is of."""
    tag_ids, error = edit.read_only.get("tag_ids"), edit.read_only.get("content_error")
    names = tag_ids.value if tag_ids and not tag_ids.is_null else None
    if isinstance(names, tuple) and set(names) != set(memory.blob.tag_ids or ()):
        yield "tag_ids"
    if error and (error.value is None) != (memory.error is None):
        yield "content_error"


def is_held(name: str, cell: Cell, held: Value) -> bool:
    """Tell whether a cell is what the service holds, but for decimals that a file has cut."""
    is_score = isinstance(cell.value, float) and isinstance(held, float | int)
    return same_value(name, cell.value, held) or (is_score and bool(is_rounded(cell.value, held)))  # type: ignore[arg-type]
