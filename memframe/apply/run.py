"""Run: the outcomes of all changes of a plan, and what reading them back has shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from msgspec import Struct

from memframe.display import notebook_html, printable, tag
from memframe.errors import Hint, IncompleteRunError, MemframeError, StalePlanError, resume_hint
from memframe.journal import STATUSES, WRITTEN, Operation
from memframe.plan.change import list_some
from memframe.plan.render import count_more, wide_table

MAX_SHOWN_ROWS = 20
"""Most rows of a run that a notebook shows."""

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
    """The result of reading back what was written.

    Attributes
    ----------
    n_checked : int
        Number of written changes that were read back.
    missing : tuple of str
        Ids of memories that were written but do not exist.
    unlike : tuple of str
        Ids of memories that differ from what was written, because the service stores values in its own form or somebody
        has written since; also of deleted memories that exist.
    undone : tuple of str
        Ids of memories that an earlier process of the run has written, but that are as before it: the run was undone.
    duplicates : tuple of tuple of str
        Ids of the memories that one create has made: something between here and the service delivered it twice, or the
        first request was executed after its repetition.
    failure : str or None
        Reason why nothing was read back.
    """

    n_checked: int = 0
    missing: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()
    duplicates: tuple[tuple[str, ...], ...] = ()
    failure: str | None = None

    @property
    def is_clean(self) -> bool:
        """True if everything was read back as written, without duplicates."""
        return not (self.missing or self.unlike or self.undone or self.duplicates or self.failure)

    def __str__(self) -> str:
        if self.failure is not None:
            return f"not read back: {self.failure}"
        found = {
            "missing": self.missing,
            "read back differently": self.unlike,
            "reverted since, to what they were before the run": self.undone,
            "duplicated": [" = ".join(ids) for ids in self.duplicates],
        }
        parts = [f"{len(ids):,} {what} ({list_some(ids)})" for what, ids in found.items() if ids]
        return f"{self.n_checked:,} read back: {'; '.join(parts) or 'all as written'}"


class Run(Struct, frozen=True, kw_only=True):
    """Outcomes of a plan. Made by `apply_plan` and `resume_run`.

    Attributes
    ----------
    results : tuple of Operation
        One for each change, in the order of the plan.
    journal : Path or None
        Path of the journal, which is needed to resume or undo the run; None if there was nothing to do.
    verification : Verification
    stopped : MemframeError or None
        The error that ended the run early.
    notes : tuple of str
        Notes of the plan that `push_memories` made and applied at once.

    Examples
    --------
    >>> Run(results=(), journal=None)
    <memframe.Run: nothing to do>
    """

    results: tuple[Operation, ...]
    journal: Path | None
    verification: Verification = Verification()
    stopped: MemframeError | None = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<memframe.Run: {'; '.join(self._summary())}>"

    def __len__(self) -> int:
        return len(self.results)

    @property
    def counts(self) -> dict[str, int]:
        """Number of changes in each status; ``attempted`` are all but the planned ones."""
        n_of = Counter(result.status for result in self.results)
        return {"attempted": len(self.results) - n_of["planned"], **{name: n_of[name] for name in STATUSES}}

    @property
    def outcomes(self) -> pd.DataFrame:
        """One row per change: ``row action id status http_status attempts error``.

        If the run brings deleted memories back, ``restores`` has their old ids.
        """
        columns = {name: [getattr(result, name) for result in self.results] for name in COLUMNS}
        if not any(columns["restores"]):
            del columns["restores"]
        return pd.DataFrame(
            {name: pd.Series(values, dtype=COLUMNS[name]) for name, values in columns.items()}
        )

    @property
    def is_complete(self) -> bool:
        """True if every change was written and verified."""
        return not self._unwritten and self.verification.is_clean and self.stopped is None

    def raise_for_failures(self) -> None:
        """Raise an error unless every change was written and verified.

        Raises
        ------
        IncompleteRunError
            The message counts what is left, names the first rows and says how to continue.
        """
        if not self.is_complete:
            raise IncompleteRunError("; ".join(self._summary()), run=self, hint=self._advice)

    @property
    def _unwritten(self) -> list[Operation]:
        return [result for result in self.results if result.status not in WRITTEN]

    @property
    def _advice(self) -> Hint:
        if isinstance(self.stopped, StalePlanError) and self.verification.unlike:
            keep = "only the former key opens what was sealed with it: keep it, "
            return Hint(
                f"{keep}open the access again, and plan_reseal(access, old_keys=[former.credentials.encryption_key]) "
                "seals it with the newest",
                f"{keep}and memframe reseal --old-keys FILE seals it with the newest",
            )
        if self.verification.undone:
            return Hint(*["the run was undone since; to repeat it, make a new plan"] * 2)
        if {"planned", "unknown"} & {result.status for result in self.results}:
            return resume_hint(self.journal)
        if self._unwritten:
            return (
                Hint("run.outcomes says why", "--json says why")
                + "; make a new plan for what is still to be written"
            )
        look = "everything was written: check these memories before you write more; "
        return Hint(f"{look}run.verification has their ids", f"{look}--json has their ids")

    def _summary(self) -> list[str]:
        if not self.results:
            return ["nothing to do", *map(printable, self.notes)]
        counts = ", ".join(
            f"{n:,} {status}" for status, n in self.counts.items() if n and status != "attempted"
        )
        stopped = [f"stopped: {self.stopped}"] if self.stopped else []
        notes = map(printable, self.notes)
        made = [one for one in self.results if one.restores and one.status in WRITTEN]
        n_same = sum(one.id == one.restores for one in made)
        restored = {
            "restored with their ids and dates": n_same,
            "brought back with new ids and today's date": len(made) - n_same,
        }
        parts = [f"{n:,} {what}" for what, n in restored.items() if n]
        return [counts, *parts, str(self.verification), *stopped, *notes]

    def _repr_html_(self) -> str:
        unwritten = self._unwritten
        cells = ((one.status, one.row, one.action, one.id, one.error) for one in unwritten[:MAX_SHOWN_ROWS])
        counts, *rest = self._summary()
        return notebook_html(
            tag("b", counts),
            *(tag("div", line) for line in rest),
            wide_table(
                {"status": "7.5em", "row": "6em", "action": "6em", "memory": "12em", "why": "auto"},
                [tag("tr", *(tag("td", cell) for cell in row), class_="first") for row in cells],
            ),
            count_more(len(unwritten) - MAX_SHOWN_ROWS, "run.outcomes"),
            self.journal and tag("div", f"journal: {self.journal}", class_="quiet"),
        )
