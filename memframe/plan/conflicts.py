"""Conflicts: what was decided here, and changed at the service meanwhile."""

from __future__ import annotations

from typing import Literal

from memframe.change import Change
from memframe.errors import PlanError
from memframe.plan.options import check_option
from memframe.plan.wording import listed, name_of
from memframe.showing import number_of

OnConflict = Literal["raise", "mark", "mine", "theirs"]


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
