"""Edited frame to plan: each field as it was loaded, as it was edited, and as the service holds it now.

==========  ==========  =============  ====================================
edited      service     both           outcome
==========  ==========  =============  ====================================
same        any                        not sent
changed     same                       sent
changed     changed     to the same    not sent, as nothing differs
changed     changed     differently    conflict
==========  ==========  =============  ====================================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, get_args

import numpy as np
import pandas as pd

from memframe.access import Access
from memframe.display import number_of, printable
from memframe.errors import Hint, PlanError, check_kind
from memframe.plan.cells import Cell, is_held, normalize_field
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
        plan; a name that resembles a column of memories is an error.
    on_null : {"raise", "null", "skip"}
        How to treat a cell that was emptied: as an error, as a request to clear the field, or as no change.
        `NULL` in a cell always clears. Content cannot be cleared.
    on_conflict : {"raise", "mark", "mine", "theirs"}
        How to treat fields that were changed both here and at the service: as an error; as a change with action
        "conflict", which can be reviewed but not applied; or by keeping one of the two versions. A memory that
        was deleted in the meantime is also a conflict, in which "mine" cannot win.
    max_changes : int, optional
        Largest number of changes; a plan with more is an error.

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
    # Loses nothing that no other memory holds.
    <BLANKLINE>
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
    check_option("on_conflict", on_conflict, OnConflict)
    frame, errors = EditedFrame(edited), RowErrors()
    builder = ChangeBuilder(frame, on_null, on_conflict, errors)
    frame.check_ids(errors)
    frame.check_users(access, errors)
    errors.raise_if_any("the frame")
    states = access.states()
    found = find_edits(frame, states, errors)
    creates = [builder.create(edit) for edit in found if edit.id is None]
    edits = [(edit, builder.values(edit)) for edit in found if edit.id is not None]
    errors.raise_if_any("the frame")
    now = access.client.runtime.now()
    current = read_current(access, [str(edit.id) for edit, _ in edits], n_known=len(states) or None)
    records = [*builder.changes(edits, current), *creates]
    errors.raise_if_any("the frame")
    refuse_conflicts(records, on_conflict)
    check_n_changes(records, max_changes)
    notes = [*_iter_notes(frame, [edit.position for edit in found if edit.id is None]), *builder.notes]
    return plan_of(access, records, notes=notes, created_at=now)


def _iter_notes(frame: EditedFrame, new: Sequence[int]) -> Iterator[str]:
    """Name the values of the frame that no plan can write; ``new`` are the positions of new memories."""
    if frame.unknown:
        yield f"Not written, as a memory has no such columns: {list_some(frame.unknown)}"
    columns = [name for name in (*frame.read_only, "updated_at") if new and name in frame]
    given = {name: [cell.is_given for cell in frame.cells(name, new)] for name in columns}
    names = [name for name in columns if any(given[name])]
    if names:
        n_new = sum(map(any, zip(*given.values(), strict=True)))
        them = "it" if len(names) == 1 else "them"
        of_new = number_of(n_new, "new memory", "new memories")
        times = "; times are those of the run" if any(name.endswith("_at") for name in names) else ""
        yield f"Not written, as the service sets {them}: {', '.join(names)} of {of_new}{times}"


def check_n_changes(records: Iterable[Change], max_changes: int | None) -> None:
    """Raise `PlanError` if there are more writes than allowed."""
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
    """Raise `PlanError` if a value is not one of the choices."""
    choices = get_args(kind)
    if value not in choices:
        raise PlanError(f"{name}={value!r}: give one of {', '.join(map(repr, choices))}")


def refuse_conflicts(records: Iterable[Change], on_conflict: OnConflict) -> None:
    """Raise `PlanError` if there are conflicts that are not to be marked in the plan; it names rows and reasons."""
    rows = [f"{change.label}: {change.reason}" for change in records if change.action == "conflict"]
    if rows and on_conflict != "mark":
        raise PlanError(
            f"{number_of(len(rows), 'row conflicts', 'rows conflict')} with what the service "
            f"holds now: {list_some(rows, '; ')}",
            hint=Hint(
                "look at both sides with on_conflict='mark', or decide by 'mine' or 'theirs'",
                "look at both sides with --on-conflict mark, or decide by --on-conflict mine or theirs",
            ),
        )


def three_way(mine: Fields, base: Fields | None, theirs: Fields) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Decide by the table of this module which fields to send, and which conflict.

    Without a base, every field that differs from the service conflicts.

    >>> was = {"title": "tea", "source": "chat", "summary": None}
    >>> three_way(was | {"title": "Tea", "source": "mail"}, was, was | {"source": "phone", "summary": "new"})
    (('title',), ('source',))
    """
    differing = [name for name, value in mine.items() if not same_value(name, value, theirs[name])]
    if base is None:
        return (), tuple(differing)
    edited = [name for name in differing if not same_value(name, mine[name], base[name])]
    moved = {name for name in edited if not same_value(name, base[name], theirs[name])}
    return tuple(name for name in edited if name not in moved), tuple(
        name for name in edited if name in moved
    )


def explain_difference(names: Sequence[str], row_at: np.datetime64, service_at: np.datetime64) -> str:
    """Explain the conflict of a row that was not loaded: only ``updated_at`` shows that the memory has changed.

    >>> explain_difference(["source"], np.datetime64("2026-03-01T08:30"), np.datetime64("2026-03-01T09:00"))
    'source differs from what the service holds: the memory was written there at 2026-03-01 09:00:00 UTC, after the \
state of this row (2026-03-01 08:30:00 UTC); it is not known which side changed it'
    """
    verb, what = ("differs", "it") if len(names) == 1 else ("differ", "them")
    written = "" if np.isnat(service_at) else f" at {pd.Timestamp(service_at)} UTC"
    since = "" if np.isnat(row_at) else f", after the state of this row ({pd.Timestamp(row_at)} UTC)"
    return (
        f"{', '.join(names)} {verb} from what the service holds: the memory was written there{written}{since}; it is "
        f"not known which side changed {what}"
    )


class ChangeBuilder:
    """Build changes from edits and the current state of their memories; collect errors for what cannot be sent."""

    def __init__(
        self, frame: EditedFrame, on_null: OnNull, on_conflict: OnConflict, errors: RowErrors
    ) -> None:
        self._frame, self._on_null, self._on_conflict, self._errors = frame, on_null, on_conflict, errors
        self.notes: list[str] = []
        """Sentences on edits that cannot be written."""

    def values(self, edit: Edit) -> dict[str, Value] | None:
        """Return the values that an edit of a loaded row sends; None for other rows, which the service decides."""
        return None if edit.base is None else self._values(edit.row, edit.cells, edit.base)

    def _values(self, row: Label, cells: Mapping[str, Cell], base: Fields) -> dict[str, Value]:
        values = {}
        for name, cell in cells.items():
            # a CSV of pandas has a missing cell for empty text as well
            was_empty = base.get(name) == "" and self._on_null == "raise"
            if cell.is_null and (self._on_null == "skip" or was_empty):
                continue
            value, error, _ = normalize_field(name, cell.value)
            if name == "content" and value is None:
                error = "content cannot be cleared: put the text back, or delete the memory instead"
            elif cell.is_null and self._on_null == "raise":
                error = f"{name} was emptied: say with on_null (--on-null) what that means, or write memframe.NULL"
            if error and not cell.error:
                self._errors.add(row, error)
            values[name] = value
        return values

    def create(self, edit: Edit) -> Change:
        """Make the create for a row without an id; missing cells are not sent."""
        given = {name: cell for name, cell in edit.cells.items() if cell.is_given}
        if "content" not in given:
            self._errors.add(edit.row, "a new memory needs content")
        return Change(action="create", row=edit.row, after=in_order(self._values(edit.row, given, {})))

    def changes(
        self, edits: Sequence[tuple[Edit, dict[str, Value] | None]], current: Mapping[str, CurrentMemory]
    ) -> Iterator[Change]:
        """Make the changes of edits; each comes with the values to send if its row was loaded."""
        times, impossible = self._compare_times(
            [edit for edit, mine in edits if mine is None and edit.id in current], current
        )
        for edit, mine in edits:
            memory = current.get(str(edit.id))
            if memory is None:
                change = self._gone(edit, mine)
            elif mine is None:
                change = self._merge_unloaded(edit, memory, *times[memory.id])
            else:
                change = self._merge_loaded(edit, mine, memory)
            if change is not None:
                yield change
            elif edit.position in impossible and self._on_conflict != "theirs":
                # nothing but the time was edited
                cause = "updated_at is read-only, and belongs to no known state of the memory"
                self._errors.add(edit.row, cause)

    def _compare_times(
        self, edits: Sequence[Edit], current: Mapping[str, CurrentMemory]
    ) -> tuple[dict[str, tuple[np.datetime64, np.datetime64]], set[int]]:
        """Return ``updated_at`` of rows that were not loaded and of their memories, by id.

        Return also the positions of rows with a time that no state of their memories can have.
        """
        if not edits:
            return {}, set()
        places = np.array([edit.position for edit in edits])
        blobs = [current[str(edit.id)].blob for edit in edits]
        created, created_at = self._frame.times("created_at", places, [blob.created_at for blob in blobs])
        updated, updated_at = self._frame.times("updated_at", places, [blob.updated_at for blob in blobs])
        for place in places[(created < created_at) | (created > created_at)]:  # both are False for NaT
            self._errors.add(
                self._frame.label(place), "created_at is read-only, and differs from the service's"
            )
        is_impossible = (updated > updated_at) | ((updated < created_at) & (updated < updated_at))
        if "tag_ids" in self._frame:
            cells = self._frame.cells("tag_ids", places)
            n = sum(
                isinstance(cell.value, tuple)
                and not cell.is_null
                and {*cell.value} != {*(blob.tag_ids or ())}
                for cell, blob, is_of_now in zip(cells, blobs, updated == updated_at, strict=True)
                if is_of_now
            )
            if n:
                memories = number_of(n, "memory", "memories")
                self.notes.append(
                    f"Not written, as the service derives it from the tags: tag_ids of {memories}"
                )
        times = zip(updated, updated_at, strict=True)
        return dict(zip((blob.id for blob in blobs), times, strict=True)), {*places[is_impossible].tolist()}

    def _merge_loaded(self, edit: Edit, mine: dict[str, Value], memory: CurrentMemory) -> Change | None:
        sent, conflicts = three_way(mine, edit.base, {name: memory.value(name) for name in mine})
        reason = f"{', '.join(conflicts)} changed at the service since it was loaded"
        return self._make_change(edit, mine, memory, sent, conflicts, reason)

    def _merge_unloaded(
        self, edit: Edit, memory: CurrentMemory, row_at: np.datetime64, service_at: np.datetime64
    ) -> Change | None:
        """Merge a row of a state that was not loaded: all its cells that differ from the service may be edits."""
        theirs = {name: memory.value(name) for name in edit.cells}
        is_of_now, is_dated = np.isnat(row_at) or row_at == service_at, not np.isnat(row_at)
        skips = self._on_null == "skip" or (self._on_null == "raise" and not is_dated)
        cells = {
            name: cell
            for name, cell in edit.cells.items()
            if not (is_held(name, cell, theirs[name]) or (cell.is_null and skips))
        }
        if is_of_now or self._on_conflict == "mine":
            mine = self._values(edit.row, cells, theirs)
        else:
            mine = {name: cell.value for name, cell in cells.items()}  # all of them will conflict
        sent, conflicts = three_way(mine, theirs if is_of_now else None, theirs)
        reason = explain_difference(conflicts, row_at, service_at) if conflicts else None
        return self._make_change(edit, mine, memory, sent, conflicts, reason)

    def _make_change(
        self,
        edit: Edit,
        mine: Mapping[str, Value],
        memory: CurrentMemory,
        sent: tuple[str, ...],
        conflicts: tuple[str, ...],
        reason: str | None,
    ) -> Change | None:
        is_conflict = bool(conflicts) and self._on_conflict in ("raise", "mark")
        names = sent
        if is_conflict:
            names = conflicts
        elif self._on_conflict == "mine":
            names = sent + conflicts
        if not names:
            return None
        if memory.error and not is_conflict:
            cause = (
                f"it could not be decrypted ({memory.error}); after a change of key, open the access again"
            )
            self._errors.add(edit.row, cause)
        return Change(
            action="conflict" if is_conflict else "patch",
            row=edit.row,
            id=edit.id,
            before=in_order({name: memory.value(name) for name in names}),
            after=in_order({name: mine[name] for name in names}),
            reason=reason if is_conflict else None,
        )

    def _gone(self, edit: Edit, mine: dict[str, Value] | None) -> Change | None:
        """Refuse an edit of a memory that the service does not have, or mark it as a conflict."""
        gone = "it was deleted at the service since it was loaded"
        unknown = f"there is no memory with the id {printable(str(edit.id), 80)}"
        dates = (name for name in ("updated_at", "created_at") if name in self._frame)
        if mine is None and not any(self._frame.cells(name, [edit.position])[0].is_given for name in dates):
            self._errors.add(edit.row, unknown)
        elif self._on_conflict == "mine":
            self._errors.add(edit.row, f"{gone}: remove the row, or empty its id to create it again")
        elif self._on_conflict != "theirs":
            reason = f"{unknown}, or it was deleted" if mine is None else gone
            return Change(
                action="conflict", row=edit.row, id=edit.id, after=in_order(mine or {}), reason=reason
            )
        return None
