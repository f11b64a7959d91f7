"""Columns of a frame as plain arrays, with clear words where the frame is not one of memories."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from memframe.errors import FrameError, check_kind


def times(memories: pd.DataFrame, name: str) -> NDArray[np.datetime64]:
    """A column of times in UTC, ``NaT`` where there is none."""
    column = _column(memories, name)
    try:
        moments = pd.to_datetime(column, utc=True, format="ISO8601")
    except (TypeError, ValueError) as error:
        raise _unreadable(name, "times") from error
    return moments.dt.tz_localize(None).to_numpy("datetime64[us]")


def numbers(memories: pd.DataFrame, name: str) -> NDArray[np.float64]:
    """A column of numbers, ``NaN`` where there is none."""
    column = _column(memories, name)
    try:
        return pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise _unreadable(name, "numbers") from error


def texts(memories: pd.DataFrame, name: str) -> pd.Series[str]:
    """A column of text, missing where there is none."""
    return _column(memories, name).astype("str")


def name_cells(memories: pd.DataFrame, name: str) -> list[Collection[str]]:
    """A column of tuples of names, the empty tuple where there is none."""
    return [cell if _is_names(cell) else _no_names(name, cell) for cell in _column(memories, name)]


class Ranking(NamedTuple):
    """The distinct values of a column, the most frequent first."""

    names: list[str]
    counts: list[int]
    place: NDArray[np.int64]
    """Of each row: which of the names it holds."""


def ranked(column: pd.Series[str]) -> Ranking:
    """Distinct values by count, equals by name; no value may be missing.

    >>> ranking = ranked(pd.Series(["chat", "mail", "mail"], dtype="str"))
    >>> ranking.names, ranking.counts, ranking.place
    (['mail', 'chat'], [2, 1], array([1, 0, 0]))
    """
    codes, values = pd.factorize(column)
    counts = np.bincount(codes, minlength=len(values))
    names = values.tolist()
    order = sorted(range(len(names)), key=lambda code: (-counts[code], names[code]))
    return Ranking([names[code] for code in order], counts[order].tolist(), np.argsort(order)[codes])


def _is_names(cell: Any) -> bool:
    return isinstance(cell, tuple | list | np.ndarray)


def _no_names(name: str, cell: Any) -> tuple[str, ...]:
    if pd.isna(cell):
        return ()
    raise _unreadable(name, "tuples of names")


def _column(memories: pd.DataFrame, name: str) -> pd.Series[Any]:
    check_kind("memories", memories, pd.DataFrame, error=FrameError)
    if name not in memories.columns:
        raise FrameError(
            f"the frame has no column {name!r}, which is needed here; "
            "pass memories as load_memories returns them, with that column kept"
        )
    return memories[name]


def _unreadable(name: str, expected: str) -> FrameError:
    return FrameError(
        f"column {name!r} does not hold {expected}; "
        "pass memories as load_memories or load_archive returns them"
    )
