"""The edited frame as the planner reads it: its columns by name, its ids, the labels of its rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rapidfuzz.distance import OSA

from memframe.access import Access
from memframe.change import FIELDS, Label
from memframe.client.responses import same_id
from memframe.client.validation import check_id
from memframe.errors import ConfigError, PlanError, check_kind
from memframe.frames import MEMORY_KINDS
from memframe.plan.cells import LIST_TYPES, Cell, cells_of, read_cell
from memframe.plan.faults import Faults

_READ_ONLY = "created_at", "tag_ids", "content_error"
"""Columns that are the service's or the load's; beside them ``id``, ``user_id`` and ``updated_at``, looked at apart."""


_USUAL_ID = re.compile(r"[\w-]+", re.ASCII)
"""Which no closer look is needed at."""


class Sheet:
    """A frame of memories that somebody edited.

    Raises
    ------
    PlanError
        It is no frame, or its columns do not say what they are.
    """

    def __init__(
        self, frame: pd.DataFrame, *, needed: Sequence[str] = ("id", *FIELDS), labelled: bool = True
    ) -> None:
        check_kind("the frame", frame, pd.DataFrame, error=PlanError)
        _check_columns(frame, needed)
        self._frame = frame
        self._labelled = labelled
        self.fields = tuple(name for name in FIELDS if name in frame.columns)
        self.read_only = tuple(name for name in _READ_ONLY if name in frame.columns)
        self.unknown = tuple(name for name in map(str, frame.columns) if name not in MEMORY_KINDS)

    def __contains__(self, name: str) -> bool:
        return name in self._frame.columns

    def column(self, name: str, rows: NDArray[Any] | Sequence[int]) -> pd.Series[Any]:
        """Some cells of a column."""
        column: pd.Series[Any] = self._frame[name]
        return column if len(rows) == len(column) else column.take(rows)

    def label(self, row: int) -> Label:
        """What a change calls a row; nothing where the caller has given no frame."""
        return self.name(row) if self._labelled else None

    def name(self, row: int) -> Label:
        """What a message calls a row."""
        return label_of(self._frame.index[row])

    def cells(self, name: str, rows: NDArray[Any] | Sequence[int]) -> list[Cell]:
        """What some cells of a column say."""
        return [read_cell(name, cell) for cell in cells_of(self.column(name, rows))]

    def is_given(self, name: str, rows: NDArray[Any]) -> NDArray[np.bool]:
        """Find the cells of a column that hold anything; an empty list is nothing."""
        cells = cells_of(self.column(name, rows))
        given = (len(cell) > 0 if isinstance(cell, LIST_TYPES) else not pd.isna(cell) for cell in cells)
        return np.fromiter(given, dtype=bool, count=len(cells))

    @cached_property
    def ids(self) -> list[Any]:
        """Ids as they stand there, None where there is none."""
        if "id" not in self:
            return [None] * len(self._frame)
        column = self._frame["id"]
        return column.astype(object).where(column.notna(), None).tolist()

    def check_ids(self, faults: Faults, *, once: bool = True) -> None:
        """Note ids that are none, and, if each may be there but once, rows that have the same one."""
        n_of = Counter(memory_id for memory_id in self.ids if isinstance(memory_id, str))
        for row, memory_id in enumerate(self.ids):
            if memory_id is None:
                continue
            fault = _fault_of_id(memory_id)
            if fault:
                faults.add(self.name(row), fault)
            elif once and n_of[memory_id] > 1:
                faults.add(
                    self.name(row), f"the id {memory_id} is there {n_of[memory_id]} times; keep one row"
                )

    def check_users(self, access: Access, faults: Faults) -> None:
        """Note rows of somebody else."""
        if "user_id" not in self:
            return
        column = self._frame["user_id"]
        foreign = {user for user in column.dropna().unique() if not same_id(str(user), access.user_id)}
        for row in column.isin(foreign).to_numpy().nonzero()[0] if foreign else ():
            faults.add(self.name(int(row)), f"it is of another user than {access.user_id}")


def _fault_of_id(memory_id: object) -> str | None:
    if isinstance(memory_id, str) and _USUAL_ID.fullmatch(memory_id):
        return None
    try:
        check_id("id", memory_id)
    except ConfigError as refused:
        return f"{refused}; or leave it missing for a new memory"
    return "id holds the character NUL" if "\0" in str(memory_id) else None


def label_of(label: object) -> Label:
    """The label of a row as JSON has it.

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
        meant = _meant(name, [known for known in needed if known not in names])
        if meant:
            raise PlanError(f"the frame has a column {name!r} and no {meant!r}: rename it, or drop it")
        meant = _misspelled(name) if len(needed) > 1 else None
        if meant:
            raise PlanError(
                f"the frame has a column {name!r}, which is not written; {meant!r} may be meant: put the values "
                "there, and rename or drop this one"
            )


def _meant(name: str, missing: Sequence[str]) -> str | None:
    """Which column that the frame has not a name may be meant for.

    >>> _meant("Titel", ["id", "title"]), _meant("tags_x", ["tags"]), _meant("n_tags", ["id", "tags"])
    ('title', 'tags', None)
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
