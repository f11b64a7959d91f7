"""Frame to service in one call, for people who just want rows written: a plan, carried out at once."""

from __future__ import annotations

from typing import TypedDict, Unpack

import pandas as pd
from msgspec.structs import replace

from memframe.access import Access
from memframe.apply import Run, StrPath, apply_plan
from memframe.change import Label
from memframe.display import number_of
from memframe.errors import PlanError
from memframe.plan import plan_changes
from memframe.plan.changes import OnNull
from memframe.plan.conflicts import OnConflict
from memframe.plan.sheet import Sheet
from memframe.plan.wording import listed
from memframe.progress import ProgressOption


class WriteOptions(TypedDict, total=False):
    """What `apply_plan` takes beside the plan."""

    journal: StrPath | None
    workers: int
    progress: ProgressOption
    settle_s: float
    encrypt: bool


def push_memories(
    access: Access,
    frame: pd.DataFrame,
    *,
    on_null: OnNull = "raise",
    on_conflict: OnConflict = "raise",
    max_changes: int | None = None,
    **options: Unpack[WriteOptions],
) -> Run:
    """Write the edited and the new rows of a frame: `plan_changes` and `apply_plan` in one.

    Rows with ``id`` are changed where they were edited, rows without one become new memories, and rows that are
    not in the frame are left alone.

    Parameters
    ----------
    access : Access
    frame : DataFrame
    on_null, on_conflict, max_changes
        As in `plan_changes`.
    **options
        ``journal workers progress settle_s encrypt``, as in `apply_plan`.

    Returns
    -------
    Run
        With one outcome for each row that was to be written, and none for the others; its notes name the columns
        that were not.

    Raises
    ------
    PlanError
        The frame cannot be written as it is; nothing was.
    StalePlanError, AccessError, JournalError
        As in `apply_plan`.

    Examples
    --------
    >>> from memframe import load_memories
    >>> memories = load_memories(access)
    >>> run = push_memories(access, memories.assign(importance=memories.importance.clip(upper=0.9)))
    >>> run.raise_for_failures()
    """
    plan = plan_changes(access, frame, on_null=on_null, on_conflict=on_conflict, max_changes=max_changes)
    return replace(apply_plan(access, plan, **options), notes=plan.notes)


def create_memories(access: Access, frame: pd.DataFrame, **options: Unpack[WriteOptions]) -> Run:
    """Make a new memory of every row.

    Parameters
    ----------
    access : Access
    frame : DataFrame
        With ``content``, and without ids.
    **options
        As in `apply_plan`.

    Returns
    -------
    Run
        ``run.outcomes.id`` has the new ids, in the order of the rows.

    Raises
    ------
    PlanError
        A row has an id: it is there already.

    Examples
    --------
    >>> import pandas as pd
    >>> run = create_memories(access, pd.DataFrame({"title": ["Tea"], "content": ["Likes green tea."]}))
    >>> run.outcomes[["action", "status"]]
       action status
    0  create   done
    """
    sheet = Sheet(frame)
    _refuse(
        [sheet.name(row) for row, memory_id in enumerate(sheet.ids) if memory_id is not None],
        "an id, so that they are there already: update_memories() changes them, push_memories() does both",
    )
    return push_memories(access, frame, **options)


def update_memories(
    access: Access,
    frame: pd.DataFrame,
    *,
    on_null: OnNull = "raise",
    on_conflict: OnConflict = "raise",
    max_changes: int | None = None,
    **options: Unpack[WriteOptions],
) -> Run:
    """Change the memories of a frame where its rows were edited.

    Parameters
    ----------
    access : Access
    frame : DataFrame
        With an ``id`` in every row.
    on_null, on_conflict, max_changes
        As in `plan_changes`.
    **options
        As in `apply_plan`.

    Returns
    -------
    Run
        With one outcome for each row that was edited.

    Raises
    ------
    PlanError
        A row has no id, or as in `push_memories`.

    Examples
    --------
    >>> from memframe import load_memories
    >>> oldest = load_memories(access, limit=1)
    >>> update_memories(access, oldest.assign(title="Who Ilka was")).outcomes[["action", "status"]]
      action status
    0  patch   done
    """
    sheet = Sheet(frame)
    _refuse(
        [sheet.name(row) for row, memory_id in enumerate(sheet.ids) if memory_id is None],
        "no id, so that nobody knows what to change: create_memories() makes them, push_memories() does both",
    )
    return push_memories(
        access, frame, on_null=on_null, on_conflict=on_conflict, max_changes=max_changes, **options
    )


def _refuse(rows: list[Label], why: str) -> None:
    if rows:
        told = number_of(len(rows), "row has", "rows have")
        raise PlanError(f"{told} {why} ({listed([f'row {row}' for row in rows])})")
