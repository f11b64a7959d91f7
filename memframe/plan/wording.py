"""Words for counts, rows and times of a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from memframe.change import FIELDS, Change
from memframe.display import number_of
from memframe.plan.unseen import visible

if TYPE_CHECKING:
    from memframe.plan.plan import Plan

UTC_MINUTE = "%Y-%m-%d %H:%M UTC"

MAX_NAMED = 5
"""Rows that a message names before it counts the others."""

_NOUNS = {
    "patch": ("patch", "patches"),
    "create": ("create", "creates"),
    "delete": ("delete", "deletes"),
    "conflict": ("conflict", "conflicts"),
    "invalid": ("invalid", "invalid"),
}


def counted(n_of: Mapping[str, int]) -> str:
    """Counts of actions as people say them.

    >>> counted({"create": 3, "patch": 1200})
    '1,200 patches, 3 creates'
    >>> counted({})
    'nothing to do'
    """
    parts = [number_of(n_of[name], *noun) for name, noun in _NOUNS.items() if n_of.get(name)]
    return ", ".join(parts) or "nothing to do"


def summary_of(plan: Plan) -> str:
    """A plan in a few lines, without what stands in it."""
    n_of = Counter(name for change in plan.writes for name in change.after)
    fields = ", ".join(f"{name} {n_of[name]:,}" for name in FIELDS if n_of[name])
    return "\n".join(
        [
            f"Plan: {counted(plan.counts)}",
            *("  note: " + visible(note).replace("\n", r"\n") for note in plan.notes),
            *([f"  fields to write: {fields}"] if fields else []),
            f"  for user {plan.user_id} at {plan.base_url}, as of {plan.created_at.strftime(UTC_MINUTE)}",
            *([f"  {note}"] if (note := undo_note(plan)) else []),
        ]
    )


def undo_note(plan: Plan) -> str | None:
    """Say what an undo of the deletes of a plan brings back, before it is too late; None where it has none."""
    if not plan.counts.get("delete"):
        return None
    if plan.restore_days:
        days = number_of(plan.restore_days, "day", "days")
        return f"An undo within {days} brings deleted memories back with their ids and dates."
    return (
        "An undo brings deleted memories back with new ids and the date of that day: this service does not restore "
        "them."
    )


def name_of(change: Change) -> str:
    """The row as the caller knows it, else the memory.

    >>> name_of(Change(action="delete", id="m1", row=7)), name_of(Change(action="delete", id="m1"))
    ('row 7', 'memory m1')
    """
    return f"memory {change.id}" if change.row is None else f"row {change.row}"


def listed(parts: Sequence[str], between: str = ", ") -> str:
    """The first few of many.

    >>> listed(["row 1", "row 2"])
    'row 1, row 2'
    >>> listed([f"row {number}" for number in range(1200)])
    'row 0, row 1, row 2, row 3, row 4 and 1,195 more'
    """
    n_more = len(parts) - MAX_NAMED
    return between.join(parts[:MAX_NAMED]) + (f" and {n_more:,} more" if n_more > 0 else "")
