"""Conflicts: what was decided here, and changed at the service meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd

from memframe.change import Change
from memframe.display import number_of
from memframe.errors import PlanError
from memframe.plan.options import check_option
from memframe.plan.wording import listed, name_of

OnConflict = Literal["raise", "mark", "mine", "theirs"]


def differing(names: Sequence[str], row_at: np.datetime64 | None, service_at: np.datetime64) -> str:
    """Say which fields of a row that was not loaded differ, where only ``updated_at`` tells that something moved.

    >>> differing(["source"], np.datetime64("2026-03-01T08:30"), np.datetime64("2026-03-01T09:00"))
    'source differs from what the service holds: the memory was written there at 2026-03-01 09:00:00 UTC, after the \
state of this row (2026-03-01 08:30:00 UTC); which side changed it cannot be told'
    """
    verb, what = ("differs", "it") if len(names) == 1 else ("differ", "them")
    written = "" if np.isnat(service_at) else f" at {pd.Timestamp(service_at)} UTC"
    since = ""
    if row_at is not None and not np.isnat(row_at):
        since = f", after the state of this row ({pd.Timestamp(row_at)} UTC)"
    return (
        f"{', '.join(names)} {verb} from what the service holds: the memory was written there{written}{since}; which "
        f"side changed {what} cannot be told"
    )


class Conflicts:
    """Where one side wins there are none; else they are gathered, to be raised all at once or to be looked at."""

    def __init__(self, on_conflict: OnConflict) -> None:
        check_option("on_conflict", on_conflict, OnConflict)
        self.winner = None if on_conflict in ("raise", "mark") else on_conflict
        self._raises = on_conflict == "raise"
        self._met: list[Change] = []

    def met(self, change: Change) -> Change:
        """Note one; the change itself."""
        self._met.append(change)
        return change

    def refuse(self) -> None:
        """Raise if there are any that nobody asked to see in the plan.

        Raises
        ------
        PlanError
            It names the rows and what moved.
        """
        if self._met and self._raises:
            said = [f"{name_of(change)}: {change.reason}" for change in self._met]
            raise PlanError(
                f"{number_of(len(said), 'row conflicts', 'rows conflict')} with what the service "
                f"holds now: {listed(said, '; ')}. Look at both sides with on_conflict='mark', or decide by "
                "'mine' or 'theirs'"
            )
