"""Rows to service in one call: a plan of what a frame asks for, carried out at once."""

from __future__ import annotations

from os import PathLike
from typing import Literal, TypedDict, Unpack

import pandas as pd

from memframe.access import Access
from memframe.apply import Run, apply_plan
from memframe.errors import PlanError
from memframe.plan import plan_changes
from memframe.plan.changes import OnNull
from memframe.plan.wording import listed
from memframe.progress import ProgressOption


class RunOptions(TypedDict, total=False):
    """How a run is carried out; see `apply_plan`."""

    journal: str | PathLike[str] | None
    workers: int
    progress: ProgressOption
    settle_s: float
    encrypt: bool


def push_memories(
    access: Access,
    frame: pd.DataFrame,
    *,
    on_null: OnNull = "raise",
    on_conflict: Literal["raise", "mine", "theirs"] = "raise",
    max_changes: int | None = None,
    **options: Unpack[RunOptions],
) -> Run:
    """Write what a frame asks for: rows without ``id`` as new memories, of the others what was edited.

    `plan_changes` and `apply_plan` in one call, without a look at the plan in between. Nothing is deleted.

    Parameters
    ----------
    access : Access
    frame : DataFrame
    on_null, on_conflict, max_changes
        As in `plan_changes`; there is no "mark", as nobody would see the marks.
    **options
        ``journal workers progress settle_s encrypt``, as in `apply_plan`.

    Returns
    -------
    Run
        What happened to each row; ``run.raise_for_failures()`` raises unless all were written.

    Raises
    ------
    PlanError
        A row cannot be written as it is; the labels of all such rows are named, and nothing was sent.
    StalePlanError, AccessError, JournalError
        As in `apply_plan`.

    Examples
    --------
    >>> run = push_memories(access, edited)  # doctest: +SKIP
    >>> run.raise_for_failures()  # doctest: +SKIP
    """
    if on_conflict not in ("raise", "mine", "theirs"):
        raise PlanError(f"on_conflict={on_conflict!r}: give one of 'raise', 'mine', 'theirs'")
    plan = plan_changes(access, frame, on_null=on_null, on_conflict=on_conflict, max_changes=max_changes)
    return apply_plan(access, plan, **options)


def create_memories(access: Access, frame: pd.DataFrame, **options: Unpack[RunOptions]) -> Run:
    """Write every row of a frame as a new memory.

    Parameters
    ----------
    access : Access
    frame : DataFrame
        With ``content``, and any of ``title summary tags importance confidence source``. Rows that have an
        ``id`` are refused: they are memories already.
    **options
        As in `push_memories`.

    Returns
    -------
    Run
        ``run.outcomes.id`` are the new ids, in the order of the rows.

    Examples
    --------
    >>> notes = pd.DataFrame({"content": ["Likes tea"], "tags": [("drinks",)]})
    >>> run = create_memories(access, notes)  # doctest: +SKIP
    """
    known = _has_id(frame)
    if known.any():
        raise PlanError(
            f"{_labels(known)} have an id, so they are memories already: update_memories() writes their edits; to "
            "copy them, drop the column id first"
        )
    return push_memories(access, frame, **options)


def update_memories(access: Access, frame: pd.DataFrame, **options: Unpack[RunOptions]) -> Run:
    """Write what was edited in a frame of memories.

    Parameters
    ----------
    access : Access
    frame : DataFrame
        With ``id``; rows without one are refused.
    **options
        As in `push_memories`.

    Returns
    -------
    Run

    Examples
    --------
    >>> run = update_memories(access, memories.assign(source="import"))  # doctest: +SKIP
    """
    unknown = ~_has_id(frame)
    if unknown.any():
        raise PlanError(f"{_labels(unknown)} have no id: create_memories() writes new ones")
    return push_memories(access, frame, **options)


def _has_id(frame: pd.DataFrame) -> pd.Series[bool]:
    return frame["id"].notna() if "id" in frame else pd.Series(False, index=frame.index)


def _labels(rows: pd.Series[bool]) -> str:
    return f"rows {listed([str(label) for label in rows.index[rows]])}"
