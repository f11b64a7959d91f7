"""Whole columns compared with the baseline, cell by cell, at the speed of Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_not
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memframe.change import same_value
from memframe.frames import MEMORY_KINDS, NAMES, NUMBER, TIME
from memframe.plan.cells import FEWER_BITS, cells_of, read_cell

_TIME = pd.DatetimeTZDtype("us", "UTC")

Mask = NDArray[np.bool_]


def moved(name: str, mine: pd.Series[Any], base: pd.Series[Any]) -> Mask:
    """Where a column of an edited frame says something else than the baseline beside it.

    Missing is missing, however it is spelled; what the column cannot mean at all counts as moved.

    >>> moved("tags", pd.Series([["a", "b"], None, "a"]), pd.Series([("b", "a"), (), ("a",)]))
    array([False, False,  True])
    """
    kind = MEMORY_KINDS[name]
    if kind is NAMES:
        return _moved_names(mine, base)
    if kind is TIME:
        return _moved_numbers(times(mine), times(base))
    if kind is NUMBER:
        return _moved_scores(name, mine, base)
    return _moved_texts(name, mine, base)


def times(column: pd.Series[Any]) -> NDArray[np.datetime64]:
    """A column of times, or of text that says them, in UTC."""
    if not isinstance(column.dtype, pd.DatetimeTZDtype):
        column = pd.to_datetime(column, format="ISO8601", utc=True, errors="coerce")
    return np.asarray(column.astype(_TIME).to_numpy(dtype="datetime64[us]"))


def instants(said: Sequence[str | None] | pd.Series[Any]) -> NDArray[np.datetime64]:
    """Times as the service spells them, or as a frame holds them."""
    return times(said if isinstance(said, pd.Series) else TIME.join([TIME.chunk(said)]))


def _moved_numbers(mine: NDArray[Any], base: NDArray[Any]) -> Mask:
    return np.asarray((mine != base) & ~(pd.isna(mine) & pd.isna(base)))


def _moved_scores(name: str, mine: pd.Series[Any], base: pd.Series[Any]) -> Mask:
    if not pd.api.types.is_numeric_dtype(mine.dtype) or pd.api.types.is_bool_dtype(mine.dtype):
        return _moved_cells(name, mine, base)
    numbers = mine.to_numpy(dtype="float64", na_value=np.nan)
    beside = base.to_numpy(dtype="float64")
    if str(mine.dtype) in FEWER_BITS:  # as exact as the column is, no more
        beside = beside.astype(str(mine.dtype)).astype("float64")
    return _moved_numbers(numbers, beside) & ~np.asarray(is_cut(numbers, beside))


def is_cut(mine: NDArray[Any] | float, held: NDArray[Any] | float) -> Mask | np.bool:
    """Find scores that are those held, cut to ten decimals: `DataFrame.to_json` writes no more.

    >>> is_cut(np.array([0.3333333333, 0.333, 0.5]), np.array([1 / 3, 1 / 3, np.nan]))
    array([ True, False, False])
    """
    cut: Mask | np.bool = (np.abs(np.subtract(mine, held)) < 1.01e-10) & (np.round(mine, 10) == mine)
    return cut


def _moved_texts(name: str, mine: pd.Series[Any], base: pd.Series[Any]) -> Mask:
    try:
        texts = pa.array(mine, type=pa.large_string(), from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):  # some cell is no text, or a category is
        return _moved_cells(name, mine, base)
    beside = pa.array(base, type=pa.large_string(), from_pandas=True)
    both_missing = pc.and_(pc.is_null(texts), pc.is_null(beside))
    same = pc.or_(pc.fill_null(pc.equal(texts, beside), False), both_missing)
    return ~np.asarray(same)


def _moved_names(mine: pd.Series[Any], base: pd.Series[Any]) -> Mask:
    cells, beside = cells_of(mine), cells_of(base)
    differ = np.fromiter(map(is_not, cells, beside), dtype=bool, count=len(cells))
    for place in differ.nonzero()[0]:  # untouched cells are the very tuples of the baseline
        differ[place] = not _same_names(cells[place], beside[place])
    return differ


def _same_names(cell: Any, was: tuple[str, ...]) -> bool:
    names = cell.tolist() if isinstance(cell, np.ndarray) else cell
    if isinstance(names, list | tuple) and all(type(name) is str for name in names) and tuple(names) == was:
        return True
    return _same_cell("tags", cell, was)


def _moved_cells(name: str, mine: pd.Series[Any], base: pd.Series[Any]) -> Mask:
    pairs = zip(cells_of(mine), cells_of(base), strict=True)
    return np.fromiter((not _same_cell(name, cell, was) for cell, was in pairs), dtype=bool, count=len(mine))


def _same_cell(name: str, cell: object, was: object) -> bool:
    read = read_cell(name, cell)
    return read.fault is None and same_value(name, read.value, read_cell(name, was).value)
