"""The shelf of journals: where they stand, which runs are not finished, and when they go.

Journals stand in the folder ``runs`` of the user's state folder, unless the caller names a place. A note in
``runs/open`` says of each run that has not come to its end where its journal is, wherever that is: it is
written before the journal, and goes when nothing is left to do. So a run that was cut short is found again.
Another note, in ``runs/plans``, stays as long as a journal that the caller keeps elsewhere: so no plan is carried
out twice.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd

from memframe.errors import ConfigError, JournalError
from memframe.frames import TIME_DTYPE
from memframe.journal.disk import remove
from memframe.journal.file import Journal
from memframe.journal.records import SETTLED, STATUSES, Header
from memframe.private_file import private_folder
from memframe.single_holder import holding
from memframe.vault import Vault, state_folder

ENDING = ".journal"
KEPT_DAYS = 30


class Shelf:
    """The journals of this user on this machine.

    Parameters
    ----------
    folder : Path, optional
        In the place of ``runs`` in the user's state folder.

    Raises
    ------
    JournalError
        The folder cannot be made.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = state_folder() / "runs" if folder is None else folder
        self._open, self._plans = self.folder / "open", self.folder / "plans"
        try:
            for each in (self.folder, self._open, self._plans):
                private_folder(each)
        except OSError as fault:
            raise JournalError(
                f"the folder {self.folder} cannot be used ({fault.strerror}), and nothing is sent without a journal: "
                "mend its permissions"
            ) from None

    def path_of(self, header: Header) -> Path:
        """Where the journal of a run stands, unless the caller names a place."""
        return (
            self.folder
            / f"{header.created_at:%Y%m%dT%H%M%SZ}-{header.plan_id[:12]}-{header.run_id[:8]}{ENDING}"
        )

    def of_plan(self, plan_id: str) -> Path | None:
        """The journal of a run of this plan, if there is one, here or elsewhere."""
        here = self.folder.glob(f"*-{plan_id[:12]}-*{ENDING}")
        return next(here, None) or next(iter(_noted(self._plans.glob(plan_id))), None)

    def writing_to(self, user_id: str) -> AbstractContextManager[None]:
        """The right to write one user's memories, which one process of this machine has at a time."""
        digest = hashlib.sha256(user_id.encode()).hexdigest()
        return holding(
            self.folder / f"{digest[:16]}.lock", what=f"the right to write the memories of user {user_id}"
        )

    def note_open(self, run_id: str, plan_id: str, path: Path) -> None:
        """A run of a plan begins whose journal is there."""
        notes = [self._open / run_id]
        if path.absolute().parent != self.folder.absolute():
            notes.append(self._plans / plan_id)
        try:
            for note in notes:
                note.write_text(str(path.absolute()), "utf-8")
        except OSError as fault:
            raise JournalError(
                f"{self.folder} cannot be written ({fault.strerror}), so nothing is sent: make room there"
            ) from None

    def note_closed(self, run_id: str) -> None:
        """Nothing of the run is left to do."""
        (self._open / run_id).unlink(missing_ok=True)

    def open_runs(self) -> list[Path]:
        """Journals of runs that have not come to their end; notes of journals that are gone go as well."""
        return _noted(sorted(self._open.iterdir()))

    def journals(self) -> list[Path]:
        """Every journal that is known here, the oldest first."""
        return sorted(
            {*self.folder.glob(f"*{ENDING}"), *self.open_runs(), *_noted(self._plans.iterdir())},
            key=lambda path: path.stat().st_mtime,
        )


def _noted(notes: Iterable[Path]) -> list[Path]:
    """The journals that notes speak of; notes of journals that are gone go as well."""
    found = []
    for note in notes:
        path = Path(note.read_text("utf-8"))
        if path.exists():
            found.append(path)
        else:
            note.unlink(missing_ok=True)
    return found


def list_runs(*, folder: Path | None = None) -> pd.DataFrame:
    """The runs of this user on this machine, the oldest first.

    Parameters
    ----------
    folder : Path, optional
        Where the journals stand, unless the caller named a place; by default in the user's state folder.

    Returns
    -------
    DataFrame
        One row a run: ``run created_at base_url user_id``, the number of its changes in each status (``done
        recovered rejected conflict unknown planned``), ``state`` and ``journal``. The state is ``finished``;
        ``open`` where some are planned or unknown, to be resumed; ``running`` in a process of this moment; or
        ``unreadable``, and the numbers of the last two are missing.

    Examples
    --------
    >>> runs = list_runs()
    >>> unfinished = runs[runs.state == "open"].journal
    >>> list(runs.columns[:4])
    ['run', 'created_at', 'base_url', 'user_id']
    """
    return _frame([_entry(path) for path in Shelf(folder).journals()])


def purge_runs(
    older_than_days: float = KEPT_DAYS, *, folder: Path | None = None, now: datetime | None = None
) -> pd.DataFrame:
    """Remove journals, and with them the sealed copies of what was changed and deleted.

    What they recorded can neither be undone nor resumed any more. Journals that the caller keeps elsewhere are
    left alone, and so is one that is running.

    Parameters
    ----------
    older_than_days : float
        Since the run began; 0 removes all.
    folder, now : optional
        For tests.

    Returns
    -------
    DataFrame
        The runs that were removed, as `list_runs` shows them.

    Examples
    --------
    >>> len(purge_runs(older_than_days=90))
    0
    """
    if not older_than_days >= 0:
        raise ConfigError(f"older_than_days={older_than_days!r}: give a number of days from 0")
    limit = (now or datetime.now(UTC)) - timedelta(days=older_than_days)
    shelf = Shelf(folder)
    entries = [_entry(path) for path in shelf.journals() if path.parent == shelf.folder]
    old = [entry for entry in entries if entry["created_at"] <= limit and entry["state"] != "running"]
    for entry in old:
        remove(entry["journal"])
    shelf.open_runs()
    return _frame(old)


_COUNTS = STATUSES
_COLUMNS = ("run", "created_at", "base_url", "user_id", *_COUNTS, "state", "journal")


def _entry(path: Path) -> dict[str, Any]:
    """One row of `list_runs`; nothing sealed is opened for it."""
    try:
        with Journal.open(path, Vault(())) as journal:
            counts, header = journal.counts(), journal.header
    except JournalError as fault:
        began = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        state = "running" if fault.errno == errno.EBUSY else "unreadable"
        return {"created_at": began, "state": state, "journal": path}
    counts["unknown"] = counts.get("unknown", 0) + counts.pop("sending", 0)
    return {
        "run": header.run_id,
        "created_at": header.created_at,
        "base_url": header.base_url,
        "user_id": header.user_id,
        **{status: counts.get(status, 0) for status in _COUNTS},
        "state": "open" if any(counts[state] for state in counts.keys() - SETTLED) else "finished",
        "journal": path,
    }


def _frame(entries: list[dict[str, Any]]) -> pd.DataFrame:
    dtypes: dict[str, str] = {
        "created_at": TIME_DTYPE,
        "journal": "object",
        **dict.fromkeys(_COUNTS, "Int64"),
    }
    columns = {
        name: pd.Series([entry.get(name) for entry in entries], dtype=dtypes.get(name, "str"))
        for name in _COLUMNS
    }
    return pd.DataFrame(columns)
