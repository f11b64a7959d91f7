"""Edits: the rows of a frame that may change a memory, found beside the baseline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

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
        The same fields when they were loaded; None where memframe has no baseline of this state.
    loaded_at : datetime64, optional
        ``updated_at`` of a row without a baseline; None where it has none.
    """

    row: Label
    id: str
    cells: dict[str, Cell]
    base: dict[str, Value] | None = None
    loaded_at: np.datetime64 | None = None


def find_edits(sheet: Sheet, baseline: pd.DataFrame, faults: Faults) -> list[Edit]:
    """Rows with an id that differ from their baseline, or have none.

    Parameters
    ----------
    sheet : Sheet
    baseline : DataFrame
        Rows as they were loaded, indexed by id.
    faults : Faults
        Takes what can be no edit: read-only cells that changed, cells of another type.
    """
    has_id = np.fromiter((id is not None for id in sheet.ids), dtype=bool, count=len(sheet))
    at = baseline.index.get_indexer(pd.Index([id or "" for id in sheet.ids], dtype=object))
    loaded = np.flatnonzero(at >= 0)
    edits = [*_edits_of_loaded(sheet, loaded, Beside(baseline, at[loaded]), faults)]
    edits += _edits_of_strange(sheet, np.flatnonzero(has_id & (at < 0)))
    for edit in edits:
        for cell in edit.cells.values():
            if cell.fault:
                faults.add(edit.row, cell.fault)
    return edits


class Beside(NamedTuple):
    """The baseline of some rows, in their order."""

    baseline: pd.DataFrame
    at: Rows

    def column(self, name: str) -> pd.Series:
        """A column of it."""
        column: pd.Series = self.baseline[name]
        is_whole = len(self.at) == len(column) and bool((self.at == np.arange(len(column))).all())
        return column if is_whole else column.take(self.at)


def _edits_of_loaded(sheet: Sheet, rows: Rows, beside: Beside, faults: Faults) -> Iterator[Edit]:
    moved_of = {name: moved(name, sheet.column(name, rows), beside.column(name)) for name in sheet.fields}
    is_own, is_later = _versions(sheet, rows, beside)
    _refuse_read_only(sheet, rows, beside, is_own, faults)
    is_touched = np.logical_or.reduce([np.zeros(len(rows), dtype=bool), *moved_of.values()])
    _refuse_unreadable(sheet, rows[is_touched & beside.column("content_error").notna().to_numpy()], faults)
    ours = np.flatnonzero(is_touched & is_own)
    yield from _edits_of(sheet, rows, ours, moved_of, beside)
    yield from _edits_of_strange(sheet, rows[(is_touched | is_later) & ~is_own])


def _versions(sheet: Sheet, rows: Rows, beside: Beside) -> tuple[Mask, Mask]:
    """Which rows are of the state that was loaded last, and which say that they are of a later one."""
    if "updated_at" not in sheet:
        return np.ones(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
    mine, base = sheet.column("updated_at", rows), beside.column("updated_at")
    return ~moved("updated_at", mine, base), times(mine) > times(base)


def _refuse_read_only(sheet: Sheet, rows: Rows, beside: Beside, is_own: Mask, faults: Faults) -> None:
    for name in sheet.read_only:
        changed = is_own & moved(name, sheet.column(name, rows), beside.column(name))
        for row in rows[changed]:
            faults.add(sheet.label(row), f"{name} is read-only; give it its old value, or drop the column")


def _refuse_unreadable(sheet: Sheet, rows: Rows, faults: Faults) -> None:
    for row in rows:
        faults.add(sheet.label(row), UNREADABLE)


UNREADABLE = "its content could not be opened (see content_error): it can be deleted, but not changed"


def _edits_of(
    sheet: Sheet, rows: Rows, ours: Rows, moved_of: dict[str, Mask], beside: Beside
) -> Iterator[Edit]:
    cells = {name: sheet.cells(name, rows[ours]) for name in moved_of}
    base = {name: beside.column(name).take(ours).astype(object).array for name in moved_of}
    for number, place in enumerate(ours):
        names = [name for name, mask in moved_of.items() if mask[place]]
        row = int(rows[place])
        yield Edit(
            row=sheet.label(row),
            id=sheet.ids[row],
            cells={name: cells[name][number] for name in names},
            base={name: read_cell(name, base[name][number]).value for name in names},
        )


def _edits_of_strange(sheet: Sheet, rows: Rows) -> Iterator[Edit]:
    """Rows that memframe has not loaded, or not in this state: all of their cells may have been edited."""
    cells = {name: sheet.cells(name, rows) for name in sheet.fields}
    loaded_at = times(sheet.column("updated_at", rows)) if "updated_at" in sheet else None
    for number, row in enumerate(rows.tolist()):
        at = None if loaded_at is None or np.isnat(loaded_at[number]) else loaded_at[number]
        yield Edit(
            row=sheet.label(row),
            id=sheet.ids[row],
            cells={name: cells[name][number] for name in cells},
            loaded_at=at,
        )
