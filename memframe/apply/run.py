"""Run: what happened to every change of a plan, and what reading it back showed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from msgspec import Struct

from memframe.apply.outcome import Outcome
from memframe.apply.table import html_of
from memframe.display import printable
from memframe.errors import IncompleteRunError, MemframeError, StalePlanError
from memframe.plan.wording import listed

COLUMNS: Mapping[str, str] = {
    "row": "object",
    "action": "str",
    "id": "str",
    "status": "str",
    "http_status": "Int64",
    "attempts": "int64",
    "error": "str",
    "restores": "str",
}
"""Columns of `Run.outcomes` and their dtypes."""


class Verification(Struct, frozen=True, kw_only=True):
    """What reading back showed.

    Attributes
    ----------
    n_checked : int
        Changes that were done and looked at.
    missing : tuple of str
        Ids that were written and are not there.
    unlike : tuple of str
        Ids that hold something else than was written: the service stores it in its own way, or somebody wrote
        since. Of a delete: it is there.
    duplicates : tuple of tuple of str
        Ids that one create has made: something between here and the service delivered it twice, or it was
        carried out so late that it had been sent again.
    failure : str or None
        Why there was no reading back.
    """

    n_checked: int = 0
    missing: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()
    duplicates: tuple[tuple[str, ...], ...] = ()
    failure: str | None = None

    @property
    def is_clean(self) -> bool:
        """Whether everything was looked at and found as it was written, once."""
        return not (self.missing or self.unlike or self.duplicates or self.failure)

    def __str__(self) -> str:
        if self.failure is not None:
            return f"not read back: {self.failure}"
        found = {
            "missing": self.missing,
            "reading back otherwise": self.unlike,
            "there more than once": [" = ".join(ids) for ids in self.duplicates],
        }
        parts = [f"{len(ids):,} {what} ({listed(ids)})" for what, ids in found.items() if ids]
        return f"{self.n_checked:,} read back: {'; '.join(parts) or 'all as written'}"


class Run(Struct, frozen=True, kw_only=True):
    """What happened to a plan. Made by `apply_plan` and `resume_run`.

    Attributes
    ----------
    results : tuple of Outcome
        One for each change that was to be written, in the order of the plan.
    journal : Path or None
        To resume from, and to undo by; None where there was nothing to do.
    verification : Verification
    stopped : MemframeError or None
        What ended the run before its end.
    notes : tuple of str
        Those of a plan that nobody has seen, as `push_memories` made it and carried it out at once.

    Examples
    --------
    >>> Run(results=(), journal=None)
    <memframe.Run: nothing to do>
    """

    results: tuple[Outcome, ...]
    journal: Path | None
    verification: Verification = Verification()
    stopped: MemframeError | None = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<memframe.Run: {'; '.join(self._told())}>"

    def __len__(self) -> int:
        return len(self.results)

    @property
    def counts(self) -> dict[str, int]:
        """How many changes ended in each status, and ``attempted``, which is all but the planned ones."""
        found: dict[str, int] = dict.fromkeys(
            ("attempted", "done", "recovered", "rejected", "conflict", "unknown", "planned"), 0
        )
        for result in self.results:
            found[result.status] += 1
        return found | {"attempted": len(self.results) - found["planned"]}

    @property
    def outcomes(self) -> pd.DataFrame:
        """One row a change: ``row action id status http_status attempts error restores``."""
        columns = {name: [getattr(result, name) for result in self.results] for name in COLUMNS}
        return pd.DataFrame({name: pd.Series(columns[name], dtype=dtype) for name, dtype in COLUMNS.items()})

    @property
    def is_complete(self) -> bool:
        """Whether every change was written, and read back as it was."""
        return not self._unwritten and self.verification.is_clean and self.stopped is None

    def raise_for_failures(self) -> None:
        """Raise unless every change was written, and read back as it was.

        Raises
        ------
        IncompleteRunError
            It counts what is left, names the first rows and says how to go on.
        """
        if not self.is_complete:
            raise IncompleteRunError(f"{'; '.join(self._told())}. {self._advice}", run=self)

    @property
    def _unwritten(self) -> list[Outcome]:
        return [result for result in self.results if result.status not in {"done", "recovered"}]

    @property
    def _advice(self) -> str:
        if isinstance(self.stopped, StalePlanError) and self.verification.unlike:
            return (
                "What was still sealed with the former key only that one opens: keep it, open the access again, and "
                "plan_reseal(access, old_keys=[former.credentials.encryption_key]) seals it with the newest"
            )
        if {"planned", "unknown"} & {result.status for result in self.results}:
            return f"resume_run(access, {str(self.journal)!r}) goes on"
        if self._unwritten:
            return "run.outcomes says why; make a new plan for what is to be written still"
        return "All was written: look at these memories before you write more; run.verification has their ids"

    def _told(self) -> list[str]:
        if not self.results:
            return ["nothing to do", *map(printable, self.notes)]
        counts = ", ".join(
            f"{n:,} {status}" for status, n in self.counts.items() if n and status != "attempted"
        )
        stopped = [f"stopped: {self.stopped}"] if self.stopped else []
        notes = map(printable, self.notes)
        return [counts, *self._told_of_restored(), str(self.verification), *stopped, *notes]

    def _told_of_restored(self) -> list[str]:
        """Count the deleted memories that came back, by how they did."""
        made = [one for one in self.results if one.restores and one.status in {"done", "recovered"}]
        n_same = sum(one.id == one.restores for one in made)
        parts = {
            "restored with their ids and dates": n_same,
            "brought back with new ids and today's date": len(made) - n_same,
        }
        return [f"{n:,} {what}" for what, n in parts.items() if n]

    def _repr_html_(self) -> str:
        return html_of(self._told(), self._unwritten, self.journal)
