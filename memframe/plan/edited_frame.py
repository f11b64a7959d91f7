"""The edited frame: check it as a whole, then compare it with the loaded states to find what may change a memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from msgspec import Struct
from numpy.typing import NDArray
from rapidfuzz.distance import OSA

from memframe.access import Access
from memframe.client.responses import same_id
from memframe.client.validation import check_id
from memframe.display import number_of
from memframe.errors import ConfigError, PlanError, check_kind
from memframe.frames import MEMORY_KINDS
from memframe.plan.cells import Cell, Mask, cells_of, column_times, differs_in, parse_times, read_cell
from memframe.plan.change import FIELDS, Label, Value, list_some

Positions = NDArray[np.intp]
Times = NDArray[np.datetime64]

MAX_CAUSES = 8
"""Causes that a message names before it counts the others."""


class RowErrors:
    """Collect the rows from which no plan can be made, by cause, so that one message names them all.

    Examples
    --------
    >>> errors = RowErrors()
    >>> for row in (3, 7):
    ...     errors.add(row, "importance is text, not a number")
    >>> errors.raise_if_any("the frame")
    Traceback (most recent call last):
    memframe.errors.PlanError: the frame cannot be planned: rows 3, 7: importance is text, not a number
    """

    def __init__(self) -> None:
        self._rows_of: dict[str, list[Label]] = {}

    def add(self, row: Label, cause: str) -> None:
        """Add a row with what is wrong with it."""
        self._rows_of.setdefault(cause, []).append(row)

    def raise_if_any(self, what: str) -> None:
        """Raise `PlanError` if rows were added; it names rows and causes."""
        if not self._rows_of:
            return
        causes = [
            f"{'row' if len(rows) == 1 else 'rows'} {list_some([str(row) for row in rows])}: {cause}"
            for cause, rows in self._rows_of.items()
        ]
        n_more = len(causes) - MAX_CAUSES
        more = f"; and {number_of(n_more, 'more cause', 'more causes')}" if n_more > 0 else ""
        raise PlanError(f"{what} cannot be planned: {'; '.join(causes[:MAX_CAUSES])}{more}")


READ_ONLY = "created_at", "tag_ids", "content_error"
"""Columns that nobody may edit; ``id``, ``user_id`` and ``updated_at`` have checks of their own."""


_USUAL_ID = re.compile(r"[\w-]+", re.ASCII)
"""Ids that need no closer check."""


class EditedFrame:
    """A frame of memories that was edited: its columns by name, its ids, the labels of its rows.

    Raises `PlanError` if the argument is not a frame, or its columns are repeated or misspelled.
    """

    def __init__(self, frame: pd.DataFrame, *, needed: Sequence[str] = ("id", *FIELDS)) -> None:
        check_kind("the frame", frame, pd.DataFrame, error=PlanError)
        _check_columns(frame, needed)
        self._frame = frame
        self.fields = tuple(name for name in FIELDS if name in frame.columns)
        self.read_only = tuple(name for name in READ_ONLY if name in frame.columns)
        self.unknown = tuple(name for name in map(str, frame.columns) if name not in MEMORY_KINDS)

    def __contains__(self, name: str) -> bool:
        return name in self._frame.columns

    def column(self, name: str, rows: NDArray[Any] | Sequence[int]) -> pd.Series[Any]:
        """Return rows of a column, in the order given; without a copy for all rows in the order of the frame."""
        column: pd.Series[Any] = self._frame[name]
        return column if np.array_equal(rows, np.arange(len(column))) else column.take(rows)

    def label(self, row: int) -> Label:
        """Return the label of a row, for its change and for messages."""
        return label_of(self._frame.index[row])

    def cells(self, name: str, rows: NDArray[Any] | Sequence[int]) -> list[Cell]:
        """Read some cells of a column."""
        return [read_cell(name, cell) for cell in cells_of(self.column(name, rows))]

    def times(self, name: str, rows: Positions, held: Sequence[str | None]) -> tuple[Times, Times]:
        """Return the times of rows in the frame, NaT if it lacks the column, and those that the service holds.

        A time that equals the service's cut to milliseconds is replaced by it, as some file formats keep no more.
        """
        service = parse_times(held)
        if name not in self:
            return np.full_like(service, "NaT"), service
        in_frame = column_times(self.column(name, rows))
        is_cut = in_frame == service.astype("datetime64[ms]")
        return np.where(is_cut, service, in_frame), service

    @cached_property
    def ids(self) -> list[Any]:
        """Ids as they are in the frame; None for a missing one."""
        if "id" not in self:
            return [None] * len(self._frame)
        column = self._frame["id"]
        return column.astype(object).where(column.notna(), None).tolist()

    def check_ids(
        self, errors: RowErrors, *, is_unique: bool = True, is_checked: Sequence[bool] | None = None
    ) -> None:
        """Report rows whose id is invalid and, if ``is_unique``, rows that share an id.

        A missing id is fine: the row is a new memory. ``is_checked`` chooses rows, by default all.
        """
        checked = [row for row in range(len(self.ids)) if is_checked is None or is_checked[row]]
        n_rows_of = Counter(self.ids[row] for row in checked if isinstance(self.ids[row], str))
        for row in checked:
            memory_id = self.ids[row]
            if memory_id is None:
                continue
            error = _id_error(memory_id)
            if error is None and is_unique and n_rows_of[memory_id] > 1:
                error = f"the id {memory_id} occurs {n_rows_of[memory_id]} times; keep one row"
            if error is not None:
                errors.add(self.label(row), error)

    def find_own(self, access: Access) -> list[bool]:
        """Return True for each row that belongs to the user of an access, or names no user."""
        if "user_id" not in self:
            return [True] * len(self._frame)
        users = self._frame["user_id"].map(str, na_action="ignore")  # a cell may hold anything, a list too
        foreign = {user for user in users.dropna().unique() if not same_id(user, access.user_id)}
        return (~users.isin(foreign)).tolist()

    def check_users(self, access: Access, errors: RowErrors) -> None:
        """Report rows that belong to another user."""
        for row, is_own in enumerate(self.find_own(access)):
            if not is_own:
                errors.add(self.label(row), f"it belongs to another user than {access.user_id}")


def _id_error(memory_id: object) -> str | None:
    if isinstance(memory_id, str) and _USUAL_ID.fullmatch(memory_id):
        return None
    try:
        check_id("id", memory_id)
    except ConfigError as refused:
        return f"{refused}; or leave it missing for a new memory"
    return "id contains the character NUL" if "\0" in str(memory_id) else None


def label_of(label: object) -> Label:
    """Convert the label of a row to what JSON can hold.

    >>> label_of(pd.RangeIndex(3)[2]), label_of(("a", 1)), label_of(pd.Timestamp("2026-01-01"))
    (2, "('a', 1)", '2026-01-01 00:00:00')
    """
    if isinstance(label, int | np.integer) and not isinstance(label, bool):
        return int(label)
    if isinstance(label, float | np.floating) and np.isfinite(label):
        return float(label)
    return str(label)


def _check_columns(frame: pd.DataFrame, needed: Sequence[str]) -> None:
    names = [str(name) for name in frame.columns]
    twice = [name for name, n_times in Counter(names).items() if n_times > 1 and name in MEMORY_KINDS]
    if twice:
        raise PlanError(f"the frame has several columns named {', '.join(twice)}: drop or rename all but one")
    if "id" not in names and "id" in frame.index.names:
        raise PlanError("id is the index of the frame: call reset_index() first, so that it is a column")
    for name in names:
        meant = _guess_column(name, needed, names)
        if meant in names:
            raise PlanError(
                f"the frame has a column {name!r}, which is not written; {meant!r} may be meant: put the values "
                "there, and rename or drop this one"
            )
        if meant:
            raise PlanError(f"the frame has a column {name!r} and no {meant!r}: rename it, or drop it")
    if len(frame) and not MEMORY_KINDS.keys() & {*names}:
        raise PlanError(
            f"the frame has none of the columns of memories; it has {list_some(names) or 'no columns'}: rename those "
            f"that are meant to {', '.join(needed)}"
        )


def _guess_column(name: str, needed: Sequence[str], names: Sequence[str]) -> str | None:
    """Guess the column of a memory that an unknown name is meant for.

    >>> _guess_column("Titel", FIELDS, ["Titel"]), _guess_column("tags_x", ["tags"], ["tags_x"])
    ('title', 'tags')
    >>> _guess_column("tag", FIELDS, ["tag", "tags"]), _guess_column("title2", FIELDS, ["title", "title2"])
    ('tags', None)
    """
    if name in MEMORY_KINDS:
        return None
    plain = name.strip().lower()
    bare = plain.removesuffix("_x").removesuffix("_y").removeprefix("memory_")
    needs_ids_only = len(needed) == 1  # then other columns may be called anything
    for known in MEMORY_KINDS:
        if bare == known and known in needed and known not in names:
            return known
        is_numbered = known in names and plain[-1:].isdigit()  # such as title2 beside title
        if needs_ids_only or known == "id" or is_numbered:
            continue
        if OSA.distance(plain, known) <= 1:  # one typing error
            return known
    return None


class Edit(Struct, frozen=True):
    """One row that creates a memory, or may change one."""

    position: int
    """Position of the row in the frame."""
    row: Label
    """Label of the row."""
    id: str | None
    cells: dict[str, Cell]
    """Cells that may have been edited, by column."""
    base: dict[str, Value] | None = None
    """Values of these fields when last loaded; None if the row is new, or of a state that was not loaded."""


RowRelation = Literal["of a loaded state", "of another state", "not loaded", "new"]
"""Relation of a row to the loaded states, as in the table of `find_edits`."""


class RowStates(NamedTuple):
    """The loaded states of the rows of a frame; all arrays are in the order of the rows."""

    relations: NDArray[Any]
    """The `RowRelation` of each row."""
    newest: pd.DataFrame
    """Newest loaded state of each memory."""
    newest_of: Positions
    """Positions in ``newest``, -1 for rows of memories that were not loaded."""
    older: pd.DataFrame
    """States that were loaded before the newest."""
    older_of: Positions
    """Positions in ``older``, -1 for rows that are of no older state."""

    def rows_that_are(self, relation: RowRelation) -> Positions:
        """Return the rows with this relation to the loaded states."""
        return np.flatnonzero(self.relations == relation)


def find_edits(frame: EditedFrame, states: pd.DataFrame, errors: RowErrors) -> list[Edit]:
    """Find the rows that create a memory, or may change one.

    ===============================================  ============================================
    row                                              is an edit
    ===============================================  ============================================
    of a loaded state, going by ``updated_at``       if a cell differs from it and the newest
    of another state of a memory that was loaded     if a cell differs from the newest
    of a memory that was not loaded                  possibly: the service is asked
    new, without an id                               always
    ===============================================  ============================================

    Read-only cells that were changed, and cells of a wrong type, are added to the errors.
    """
    row_states = _classify_rows(frame, states)
    edits = [
        *_edits_of_loaded_states(frame, row_states, errors),
        *_edits_of_other_states(frame, row_states, errors),
        *_read_rows(frame, row_states.rows_that_are("not loaded")),
        *_read_rows(frame, row_states.rows_that_are("new")),
    ]
    for edit in edits:
        for cell in edit.cells.values():
            if cell.error:
                errors.add(edit.row, cell.error)
    return edits


def _classify_rows(frame: EditedFrame, states: pd.DataFrame) -> RowStates:
    """Find the loaded states of each row by id and ``updated_at``; without that column the newest state counts."""
    newest = states.drop_duplicates("id", keep="last")
    older = states.drop(newest.index) if len(newest) < len(states) else newest.head(0)
    ids = pd.Series(frame.ids, dtype=object)
    newest_of = pd.Index(newest["id"]).get_indexer(pd.Index(ids))
    older_of = np.full(len(ids), -1)
    has_loaded_memory = newest_of >= 0
    is_loaded_state = has_loaded_memory.copy()
    if "updated_at" in frame:
        rows = np.flatnonzero(has_loaded_memory)
        times = frame.column("updated_at", rows)
        is_newest = ~differs_in("updated_at", times, newest["updated_at"].take(newest_of[rows]))
        is_loaded_state[rows] = is_newest
        other_rows = rows[~is_newest]
        if len(older) and len(other_rows):
            loaded_states = pd.MultiIndex.from_arrays(
                [older["id"].astype(object), column_times(older["updated_at"])]
            )
            states_of_rows = pd.MultiIndex.from_arrays([ids[other_rows], column_times(times)[~is_newest]])
            older_of[other_rows] = loaded_states.get_indexer(states_of_rows)
            is_loaded_state |= older_of >= 0
    by_condition: dict[RowRelation, Mask] = {  # the first condition that is True decides
        "new": ids.isna().to_numpy(),
        "not loaded": ~has_loaded_memory,
        "of a loaded state": is_loaded_state,
    }
    relations = np.select([*by_condition.values()], [*by_condition], default="of another state")
    # only the compared columns: `take` copies every column if the rows of the frame were reordered
    compared = [
        *frame.fields,
        *frame.read_only,
        *{"created_at", "updated_at", "content_error"} - {*frame.read_only},
    ]
    return RowStates(relations, newest[compared], newest_of, older[compared], older_of)


def _edits_of_loaded_states(frame: EditedFrame, states: RowStates, errors: RowErrors) -> list[Edit]:
    """Find the rows with a cell that differs both from the state that they are of and from the newest."""
    rows = states.rows_that_are("of a loaded state")
    newest = _take(states.newest, states.newest_of[rows])
    differs = _compare(frame, rows, newest)
    is_of_older = states.older_of[rows] >= 0
    of_newest, of_older = np.flatnonzero(~is_of_older), np.flatnonzero(is_of_older)
    _refuse_read_only(frame, rows[of_newest], _take(newest, of_newest), errors)
    if len(of_older):
        older = states.older.take(states.older_of[rows[of_older]])
        # a cell of an earlier load that was not touched is no edit, though the memory has changed since
        for name, mask in _compare(frame, rows[of_older], older).items():
            differs[name][of_older] &= mask
        _refuse_read_only(frame, rows[of_older], older, errors)
    is_edited = _any_of(differs, len(rows))
    _refuse_undecrypted(frame, rows[is_edited], newest["content_error"][is_edited], errors)
    cells: dict[int, dict[str, Cell]] = {row: {} for row in rows[is_edited].tolist()}
    base: dict[int, dict[str, Value]] = {row: {} for row in cells}
    for name, mask in differs.items():
        edited = rows[mask]
        loaded = cells_of(newest[name].take(np.flatnonzero(mask)))
        for row, cell, value in zip(edited.tolist(), frame.cells(name, edited), loaded, strict=True):
            cells[row][name] = cell
            base[row][name] = read_cell(name, value).value
    return [Edit(row, frame.label(row), frame.ids[row], cells[row], base[row]) for row in cells]


def _edits_of_other_states(frame: EditedFrame, states: RowStates, errors: RowErrors) -> Iterator[Edit]:
    """Find the rows of no loaded state that differ from the newest; all of their cells may have been edited."""
    rows = states.rows_that_are("of another state")
    newest = _take(states.newest, states.newest_of[rows])
    is_edited = _any_of(_compare(frame, rows, newest), len(rows))
    if len(rows):
        # a time after the newest loaded state or before the creation: plan the row, so that the service is asked, and
        # a time that the memory never had is refused
        times = column_times(frame.column("updated_at", rows))
        is_edited |= times > column_times(newest["updated_at"])
        is_edited |= times < column_times(newest["created_at"])
    _refuse_undecrypted(frame, rows[is_edited], newest["content_error"][is_edited], errors)
    return _read_rows(frame, rows[is_edited])


def _take(states: pd.DataFrame, places: Positions) -> pd.DataFrame:
    """Take rows of states; without a copy for all rows in order, as in a frame that was not sorted or filtered."""
    return states if np.array_equal(places, np.arange(len(states))) else states.take(places)


def _compare(frame: EditedFrame, rows: Positions, states: pd.DataFrame) -> dict[str, Mask]:
    """Find by column the cells of rows that differ from the states, which are in the order of the rows."""
    return {name: differs_in(name, frame.column(name, rows), states[name]) for name in frame.fields}


def _any_of(differs: Mapping[str, Mask], n_rows: int) -> Mask:
    """Find the rows with at least one cell that differs."""
    return np.asarray(np.logical_or.reduce([np.zeros(n_rows, dtype=bool), *differs.values()]))


def _refuse_read_only(frame: EditedFrame, rows: Positions, states: pd.DataFrame, errors: RowErrors) -> None:
    for name in frame.read_only:
        for row in rows[differs_in(name, frame.column(name, rows), states[name])]:
            errors.add(frame.label(row), f"{name} is read-only; give it its old value, or drop the column")


def _refuse_undecrypted(
    frame: EditedFrame, rows: Positions, causes: pd.Series[Any], errors: RowErrors
) -> None:
    for row in rows[causes.notna().to_numpy()]:
        cause = "its content could not be decrypted (see content_error): it can be deleted, but not changed"
        errors.add(frame.label(row), cause)


def _read_rows(frame: EditedFrame, rows: Positions) -> Iterator[Edit]:
    """Read all cells of rows that have no loaded state to compare them with."""
    cells = {name: frame.cells(name, rows) for name in frame.fields}
    for n, row in enumerate(rows.tolist()):
        yield Edit(row, frame.label(row), frame.ids[row], {name: column[n] for name, column in cells.items()})
