"""Words for counts, rows and times of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memframe.change import ACTIONS, Change

UTC_MINUTE = "%Y-%m-%d %H:%M UTC"

MAX_NAMED = 5
"""Rows that a message names before it counts the others."""

_NOUNS = {
    "create": ("create", "creates"),
    "patch": ("patch", "patches"),
    "delete": ("delete", "deletes"),
    "conflict": ("conflict", "conflicts"),
    "invalid": ("invalid", "invalid"),
}


def counted(n_of: Mapping[str, int]) -> str:
    """Counts of actions as people say them.

    >>> counted({"create": 3, "patch": 1200})
    '3 creates, 1,200 patches'
    >>> counted({})
    'nothing to do'
    """
    parts = [f"{n_of[name]:,} {_NOUNS[name][n_of[name] != 1]}" for name in ACTIONS if n_of.get(name)]
    return ", ".join(parts) or "nothing to do"


def name_of(change: Change) -> str:
    """The row as the caller knows it, else the memory.

    >>> name_of(Change(action="delete", id="m1", row=7)), name_of(Change(action="delete", id="m1"))
    ('row 7', 'memory m1')
    """
    return f"memory {change.id}" if change.row is None else f"row {change.row}"


def listed(parts: Sequence[str]) -> str:
    """The first few of many.

    >>> listed(["row 1", "row 2"])
    'row 1, row 2'
    >>> listed([f"row {number}" for number in range(1200)])
    'row 0, row 1, row 2, row 3, row 4 and 1,195 more'
    """
    n_more = len(parts) - MAX_NAMED
    return ", ".join(parts[:MAX_NAMED]) + (f" and {n_more:,} more" if n_more > 0 else "")
