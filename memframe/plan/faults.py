"""Faults: rows that no plan can be made of, gathered and named all at once."""

from __future__ import annotations

from memframe.change import Label
from memframe.display import number_of
from memframe.errors import PlanError
from memframe.plan.wording import listed

MAX_CAUSES = 8
"""Causes that a message names before it counts the others."""


class Faults:
    """Rows by what is wrong with them, in the order in which they were found.

    Examples
    --------
    >>> faults = Faults()
    >>> for row in (3, 7):
    ...     faults.add(row, "importance is text, not a number")
    >>> faults.refuse("the frame")
    Traceback (most recent call last):
    memframe.errors.PlanError: the frame cannot be planned: rows 3, 7: importance is text, not a number
    """

    def __init__(self) -> None:
        self._rows_of: dict[str, list[Label]] = {}

    def add(self, row: Label, cause: str) -> None:
        """Note one."""
        self._rows_of.setdefault(cause, []).append(row)

    def refuse(self, what: str) -> None:
        """Raise if there are any.

        Raises
        ------
        PlanError
            It names rows and causes.
        """
        if not self._rows_of:
            return
        causes = [f"{_rows(rows)}: {cause}" for cause, rows in self._rows_of.items()]
        n_more = len(causes) - MAX_CAUSES
        more = f"; and {number_of(n_more, 'more cause', 'more causes')}" if n_more > 0 else ""
        raise PlanError(f"{what} cannot be planned: {'; '.join(causes[:MAX_CAUSES])}{more}")


def _rows(rows: list[Label]) -> str:
    return f"{'row' if len(rows) == 1 else 'rows'} {listed([str(row) for row in rows])}"
