"""Edits: the rows of a frame that may change a memory, found beside the states that were loaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from msgspec import Struct
from numpy.typing import NDArray

from memframe.change import Label, Value
from memframe.plan.cells import Cell, read_cell
from memframe.plan.compare import Mask, moved, times
from memframe.plan.faults import Faults
from memframe.plan.sheet import Sheet

Rows = NDArray[np.intp]

UNREADABLE = "it could not be read as it is (see content_error): it can be deleted, but not changed"


class Edit(Struct, frozen=True, kw_only=True):
    """One row that may change a memory.

    Attributes
    ----------
    row : str, int, float or None
        Its label.
    id : str
    cells : dict of str to Cell
        What may have been edited.
    base : dict of str to value, optional
        The same fields as they were last loaded; None where the row is of a state that was not loaded.
    times : dict of str to datetime64
        ``updated_at`` and ``created_at`` of such a row, where it has them.
    tag_ids : tuple of str, optional
        Of such a row, where it has them.
    """

    row: Label
    id: str
    cells: dict[str, Cell]
    base: dict[str, Value] | None = None
    times: dict[str, np.datetime64] = {}
    tag_ids: Value = None


class Beside(NamedTuple):
    """Chosen rows of a frame of memories, to compare others with."""

    memories: pd.DataFrame
    at: Rows

    def column(self, name: str) -> pd.Series[Any]:
        """A column of them."""
        column: pd.Series[Any] = self.memories[name]
        is_whole = len(self.at) == len(column) and bool((self.at == np.arange(len(column))).all())
        return column if is_whole else column.take(self.at)


def find_edits(sheet: Sheet, states: pd.DataFrame, faults: Faults) -> list[Edit]:
    """Rows with an id that differ from what was loaded, or are of a state that was not.

    Parameters
    ----------
    sheet : Sheet
    states : DataFrame
        Everything that was loaded, as `Access.states` has it.
    faults : Faults
        Takes what can be no edit: read-only cells that changed, cells of another type.
    """
    newest = states.drop_duplicates("id", keep="last")
    superseded = states.drop(newest.index) if len(newest) < len(states) else newest.head(0)
    ids = pd.Series(sheet.ids, dtype=object)
    has_id = ids.notna().to_numpy()
    at = np.where(has_id, pd.Index(newest.id).get_indexer(pd.Index(ids)), -1)
    loaded = np.flatnonzero(at >= 0)
    edits = [*_LoadedRows(sheet, loaded, Beside(newest, at[loaded]), faults).edits(superseded)]
    edits += _edits_of_strange(sheet, np.flatnonzero(has_id & (at < 0)))
    for edit in edits:
        for cell in edit.cells.values():
            if cell.fault:
                faults.add(edit.row, cell.fault)
    return edits


class _LoadedRows:
    """Rows whose memory was loaded, beside its newest state."""

    def __init__(self, sheet: Sheet, rows: Rows, newest: Beside, faults: Faults) -> None:
        self._sheet = sheet
        self._rows = rows
        self._newest = newest
        self._faults = faults
        self._moved = {name: self._moved_in(name, slice(None), newest) for name in sheet.fields}

    def _moved_in(self, name: str, places: slice | Rows, beside: Beside) -> Mask:
        return moved(name, self._sheet.column(name, self._rows[places]), beside.column(name))

    def edits(self, superseded: pd.DataFrame) -> Iterator[Edit]:
        """Those of a state that was loaded field by field, others whole."""
        is_known, is_odd = self._versions()
        self._refuse_read_only(np.flatnonzero(is_known), self._newest_at(is_known))
        is_known[self._untouched_since(superseded, ~is_known)] = True
        is_moved = np.logical_or.reduce([np.zeros(len(self._rows), dtype=bool), *self._moved.values()])
        self._refuse_unreadable(is_moved)
        yield from self._edits_at(np.flatnonzero(is_moved & is_known))
        yield from _edits_of_strange(self._sheet, self._rows[(is_moved | is_odd) & ~is_known])

    def _newest_at(self, mask: Mask) -> Beside:
        return self._newest if mask.all() else self._newest._replace(at=self._newest.at[mask])

    def _versions(self) -> tuple[Mask, Mask]:
        """Which rows are of the state that was loaded last, and which cannot be of an earlier one."""
        if "updated_at" not in self._sheet:
            return np.ones(len(self._rows), dtype=bool), np.zeros(len(self._rows), dtype=bool)
        mine, base = self._sheet.column("updated_at", self._rows), self._newest.column("updated_at")
        at, created_at = times(mine), times(self._newest.column("created_at"))
        return ~moved("updated_at", mine, base), (at > times(base)) | (at < created_at)

    def _untouched_since(self, superseded: pd.DataFrame, is_other: Mask) -> Rows:
        """Rows of an earlier state that was loaded: what they still say of it is no edit."""
        places = np.flatnonzero(is_other)
        if not len(superseded) or not len(places):
            return places[:0]
        ids, mine = pd.Series(self._sheet.ids, dtype=object), self._sheet.column("updated_at", self._rows)
        known = pd.MultiIndex.from_arrays([superseded.id.astype(object), times(superseded.updated_at)])
        asked = pd.MultiIndex.from_arrays([ids.take(self._rows[places]), times(mine)[places]])
        at = known.get_indexer(asked)
        found, older = places[at >= 0], Beside(superseded, at[at >= 0])
        for name, mask in self._moved.items():
            mask[found] &= self._moved_in(name, found, older)
        self._refuse_read_only(found, older)
        return found

    def _refuse_read_only(self, places: Rows, beside: Beside) -> None:
        for name in self._sheet.read_only:
            for row in self._rows[places][self._moved_in(name, places, beside)]:
                cause = f"{name} is read-only; give it its old value, or drop the column"
                self._faults.add(self._sheet.name(row), cause)

    def _refuse_unreadable(self, is_moved: Mask) -> None:
        for row in self._rows[is_moved & self._newest.column("content_error").notna().to_numpy()]:
            self._faults.add(self._sheet.name(row), UNREADABLE)

    def _edits_at(self, places: Rows) -> Iterator[Edit]:
        rows = self._rows[places]
        cells = {name: self._sheet.cells(name, rows) for name in self._moved}
        base = {name: self._newest.column(name).take(places).astype(object).array for name in self._moved}
        for number, (place, row) in enumerate(zip(places, rows.tolist(), strict=True)):
            names = [name for name, mask in self._moved.items() if mask[place]]
            yield Edit(
                row=self._sheet.label(row),
                id=self._sheet.ids[row],
                cells={name: cells[name][number] for name in names},
                base={name: read_cell(name, base[name][number]).value for name in names},
            )


def _edits_of_strange(sheet: Sheet, rows: Rows) -> Iterator[Edit]:
    """Rows of a state that was not loaded: all of their cells may have been edited."""
    cells = {name: sheet.cells(name, rows) for name in sheet.fields}
    moments = {
        name: times(sheet.column(name, rows)) for name in ("created_at", "updated_at") if name in sheet
    }
    tag_ids = sheet.cells("tag_ids", rows) if "tag_ids" in sheet else [None] * len(rows)
    for number, (row, cell) in enumerate(zip(rows.tolist(), tag_ids, strict=True)):
        yield Edit(
            row=sheet.label(row),
            id=sheet.ids[row],
            cells={name: column[number] for name, column in cells.items()},
            times={name: at[number] for name, at in moments.items() if not np.isnat(at[number])},
            tag_ids=None if cell is None or cell.is_null else cell.value,
        )
