"""The edited frame: checked as a whole, then compared with the baselines for rows that may change a memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Any

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
from memframe.plan.cells import LIST_TYPES, Cell, Mask, cells_of, column_times, differs_in, read_cell
from memframe.plan.change import FIELDS, Label, Value, list_some

Rows = NDArray[np.intp]

MAX_CAUSES = 8
"""Causes that a message names before it counts the others."""


class RowErrors:
    """Collect the rows that no plan can be made of, by cause, to name them all at once.

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
        """Raise if there are any.

        Raises `PlanError`, which names rows and causes.
        """
        if not self._rows_of:
            return
        causes = [
            f"{'row' if len(rows) == 1 else 'rows'} {list_some([str(row) for row in rows])}: {cause}"
            for cause, rows in self._rows_of.items()
        ]
        n_more = len(causes) - MAX_CAUSES
        more = f"; and {number_of(n_more, 'more cause', 'more causes')}" if n_more > 0 else ""
        raise PlanError(f"{what} cannot be planned: {'; '.join(causes[:MAX_CAUSES])}{more}")


_READ_ONLY = "created_at", "tag_ids", "content_error"
"""Columns of the service or of the load; ``id``, ``user_id`` and ``updated_at`` are checked apart."""


_USUAL_ID = re.compile(r"[\w-]+", re.ASCII)
"""Ids that need no closer check."""


class EditedFrame:
    """A frame of memories that was edited: its columns by name, its ids, the labels of its rows.

    Raises `PlanError` where it is no frame, or its columns are repeated or misspelled.
    """

    def __init__(
        self, frame: pd.DataFrame, *, needed: Sequence[str] = ("id", *FIELDS), has_labels: bool = True
    ) -> None:
        check_kind("the frame", frame, pd.DataFrame, error=PlanError)
        _check_columns(frame, needed)
        self._frame = frame
        self._has_labels = has_labels
        self.fields = tuple(name for name in FIELDS if name in frame.columns)
        self.read_only = tuple(name for name in _READ_ONLY if name in frame.columns)
        self.unknown = tuple(name for name in map(str, frame.columns) if name not in MEMORY_KINDS)

    def __contains__(self, name: str) -> bool:
        return name in self._frame.columns

    def column(self, name: str, rows: NDArray[Any] | Sequence[int]) -> pd.Series[Any]:
        """Return some rows of a column."""
        column: pd.Series[Any] = self._frame[name]
        return column if len(rows) == len(column) else column.take(rows)

    def label(self, row: int) -> Label:
        """Return the label of a row for its change; None where the caller has given no frame."""
        return self.name(row) if self._has_labels else None

    def name(self, row: int) -> Label:
        """Return the label of a row for messages."""
        return label_of(self._frame.index[row])

    def cells(self, name: str, rows: NDArray[Any] | Sequence[int]) -> list[Cell]:
        """Read some cells of a column."""
        return [read_cell(name, cell) for cell in cells_of(self.column(name, rows))]

    def is_given(self, name: str, rows: NDArray[Any]) -> NDArray[np.bool]:
        """Find the cells of a column that hold anything; an empty list is nothing."""
        cells = cells_of(self.column(name, rows))
        given = (len(cell) > 0 if isinstance(cell, LIST_TYPES) else not pd.isna(cell) for cell in cells)
        return np.fromiter(given, dtype=bool, count=len(cells))

    @cached_property
    def ids(self) -> list[Any]:
        """Ids as they are, None where there is none."""
        if "id" not in self:
            return [None] * len(self._frame)
        column = self._frame["id"]
        return column.astype(object).where(column.notna(), None).tolist()

    def check_ids(self, errors: RowErrors, *, once: bool = True, of: Sequence[bool] | None = None) -> None:
        """Add rows whose id is none and, if each may be there but once, rows that share one.

        ``of`` chooses the rows, by default all.
        """
        chosen = self.ids
        if of is not None:
            chosen = [one if is_own else None for one, is_own in zip(chosen, of, strict=True)]
        n_of = Counter(memory_id for memory_id in chosen if isinstance(memory_id, str))
        for row, memory_id in enumerate(chosen):
            error = None if memory_id is None else _id_error(memory_id)
            if error is None and once and memory_id is not None and n_of[memory_id] > 1:
                error = f"the id {memory_id} occurs {n_of[memory_id]} times; keep one row"
            if error is not None:
                errors.add(self.name(row), error)

    def is_own(self, access: Access) -> list[bool]:
        """Find the rows that are of the user of an access, or do not say whose they are."""
        if "user_id" not in self:
            return [True] * len(self._frame)
        column = self._frame["user_id"]
        foreign = {user for user in column.dropna().unique() if not same_id(str(user), access.user_id)}
        return (~column.isin(foreign)).tolist()

    def check_users(self, access: Access, errors: RowErrors) -> None:
        """Add rows of another user."""
        for row, is_own in enumerate(self.is_own(access)):
            if not is_own:
                errors.add(self.name(row), f"it is of another user than {access.user_id}")


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
        raise PlanError("id is the index of the frame, where a plan does not look: call reset_index() first")
    for name in names:
        if name in MEMORY_KINDS:
            continue
        meant = _guess_column(name, [known for known in needed if known not in names])
        if meant:
            raise PlanError(f"the frame has a column {name!r} and no {meant!r}: rename it, or drop it")
        meant = _misspelled(name) if len(needed) > 1 else None
        if meant:
            raise PlanError(
                f"the frame has a column {name!r}, which is not written; {meant!r} may be meant: put the values "
                "there, and rename or drop this one"
            )
    if len(frame) and not MEMORY_KINDS.keys() & {*names}:
        raise PlanError(
            f"the frame has none of the columns of memories; it has {list_some(names) or 'no columns'}: rename those "
            f"that are meant to {', '.join(needed)}"
        )


def _guess_column(name: str, missing: Sequence[str]) -> str | None:
    """Guess the missing column that a name is meant for.

    >>> _guess_column("Titel", ["id", "title"]), _guess_column("tags_x", ["tags"])
    ('title', 'tags')
    """
    plain = name.strip().lower().removesuffix("_x").removesuffix("_y").removeprefix("memory_")
    swapped = (known for known in missing if sorted(known) == sorted(plain))
    return next(swapped, None) or next(iter(get_close_matches(plain, missing, n=1, cutoff=0.85)), None)


def _misspelled(name: str) -> str | None:
    """Return the column of a memory that a name is but one letter away from, or two that changed places.

    >>> _misspelled("titel"), _misspelled("Content"), _misspelled("tag"), _misspelled("title2"), _misspelled("n_tags")
    ('title', 'content', 'tags', None, None)
    """
    plain = name.strip().lower()
    near = (known for known in MEMORY_KINDS if len(known) > len("id") and OSA.distance(plain, known) <= 1)
    return None if plain[-1:].isdigit() else next(near, None)


class Edit(Struct, frozen=True, kw_only=True):
    """One row that may change a memory."""

    row: Label
    """Its label."""
    id: str
    cells: dict[str, Cell]
    """That may have been edited."""
    base: dict[str, Value] | None = None
    """The same fields as they were last loaded; None where the row is of a state that was not loaded."""
    times: dict[str, np.datetime64] = {}
    """``updated_at`` and ``created_at`` of such a row, where it has them."""
    read_only: dict[str, Cell] = {}
    """``tag_ids`` and ``content_error`` of such a row, where it has the columns."""


def find_edits(frame: EditedFrame, states: pd.DataFrame, errors: RowErrors) -> list[Edit]:
    """Find the rows with an id that differ from what was loaded, or are of a state that was not.

    What can be no edit is added to the errors: read-only cells that changed, cells of another type.
    """
    newest = states.drop_duplicates("id", keep="last")
    superseded = states.drop(newest.index) if len(newest) < len(states) else newest.head(0)
    ids = pd.Series(frame.ids, dtype=object)
    has_id = ids.notna().to_numpy()
    at = np.where(has_id, pd.Index(newest.id).get_indexer(pd.Index(ids)), -1)
    loaded = np.flatnonzero(at >= 0)
    needed = [name for name in MEMORY_KINDS if name in frame or name in ("created_at", "content_error")]
    base = newest[needed]
    if len(loaded) < len(base) or (at[loaded] != np.arange(len(loaded))).any():
        base = base.take(at[loaded])
    edits = [*_edits_of_loaded(frame, loaded, base, superseded, errors)]
    edits += _edits_without_baseline(frame, np.flatnonzero(has_id & (at < 0)))
    for edit in edits:
        for cell in edit.cells.values():
            if cell.error:
                errors.add(edit.row, cell.error)
    return edits


def _edits_of_loaded(
    frame: EditedFrame, rows: Rows, base: pd.DataFrame, superseded: pd.DataFrame, errors: RowErrors
) -> Iterator[Edit]:
    """Compare rows with the newest state of their memories: those of a loaded state by field, others as a whole."""
    differs = {name: differs_in(name, frame.column(name, rows), base[name]) for name in frame.fields}
    is_known, is_odd = np.ones(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
    if "updated_at" in frame:  # of the state that was loaded last, and of none that was
        mine = frame.column("updated_at", rows)
        at = column_times(mine)
        is_known = ~differs_in("updated_at", mine, base["updated_at"])
        is_odd = (at > column_times(base["updated_at"])) | (at < column_times(base["created_at"]))
    is_newest = is_known.all()
    _refuse_read_only(frame, rows[is_known], base if is_newest else base[is_known], errors)
    if len(superseded) and not is_newest:  # cells equal to an earlier state that was loaded are no edits
        places = np.flatnonzero(~is_known)
        ids = pd.Series(frame.ids, dtype=object).take(rows[places])
        known = pd.MultiIndex.from_arrays([superseded.id.astype(object), column_times(superseded.updated_at)])
        earlier = known.get_indexer(pd.MultiIndex.from_arrays([ids, at[places]]))
        found, older = places[earlier >= 0], superseded.take(earlier[earlier >= 0])
        for name, mask in differs.items():
            mask[found] &= differs_in(name, frame.column(name, rows[found]), older[name])
        _refuse_read_only(frame, rows[found], older, errors)
        is_known[found] = True
    is_edited = np.logical_or.reduce([np.zeros(len(rows), dtype=bool), *differs.values()])
    for row in rows[is_edited & base["content_error"].notna().to_numpy()]:
        cause = "its content could not be decrypted (see content_error): it can be deleted, but not changed"
        errors.add(frame.name(row), cause)
    yield from _edits_with_baseline(frame, rows, base, differs, np.flatnonzero(is_edited & is_known))
    yield from _edits_without_baseline(frame, rows[(is_edited | is_odd) & ~is_known])


def _refuse_read_only(frame: EditedFrame, rows: Rows, base: pd.DataFrame, errors: RowErrors) -> None:
    for name in frame.read_only:
        for row in rows[differs_in(name, frame.column(name, rows), base[name])]:
            cause = f"{name} is read-only; give it its old value, or drop the column"
            errors.add(frame.name(row), cause)


def _edits_with_baseline(
    frame: EditedFrame, rows: Rows, base: pd.DataFrame, differs: Mapping[str, Mask], places: Rows
) -> Iterator[Edit]:
    edited = {name: mask for name, mask in differs.items() if mask[places].any()}
    cells = {name: frame.cells(name, rows[places]) for name in edited}
    was = {name: base[name].take(places).astype(object).array for name in edited}
    for number, (place, row) in enumerate(zip(places, rows[places].tolist(), strict=True)):
        names = [name for name, mask in edited.items() if mask[place]]
        yield Edit(
            row=frame.label(row),
            id=frame.ids[row],
            cells={name: cells[name][number] for name in names},
            base={name: read_cell(name, was[name][number]).value for name in names},
        )


def _edits_without_baseline(frame: EditedFrame, rows: Rows) -> Iterator[Edit]:
    """Return rows of a state that was not loaded: all of their cells may have been edited."""
    if not len(rows):
        return
    cells = {name: frame.cells(name, rows) for name in frame.fields}
    moments = {
        name: column_times(frame.column(name, rows)) for name in ("created_at", "updated_at") if name in frame
    }
    read_only = {name: frame.cells(name, rows) for name in ("tag_ids", "content_error") if name in frame}
    for number, row in enumerate(rows.tolist()):
        yield Edit(
            row=frame.label(row),
            id=frame.ids[row],
            cells={name: column[number] for name, column in cells.items()},
            times={name: at[number] for name, at in moments.items() if not np.isnat(at[number])},
            read_only={name: column[number] for name, column in read_only.items()},
        )
