"""The run directory: where journals are, which runs are unfinished, and when journals are removed.

Journals are in the folder ``runs`` of the user's state folder, unless the caller names a path. For each run a note
records the path of its journal: in ``runs/open`` until the run is finished, then in ``runs/plans``. An interrupted
run is therefore found again, and no plan is applied twice. A note outlives its journal, which may be on a disk that
is not connected: only `purge_runs` removes it.

A note is named by owner (a digest of service and user), plan and run, so that even a note that cannot be read blocks
only this plan and this user.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pandas as pd

from memframe.client.responses import canonical_id
from memframe.errors import ConfigError, JournalError
from memframe.files import atomic_file, expand_path, private_folder, process_lock, raise_os_errors_as
from memframe.frames import TIME_DTYPE
from memframe.journal.journal import KNOWN_RUNS, SETTLED, STATUSES, Header, Journal, remove
from memframe.keystore import LocalCipher, state_folder

JOURNAL_SUFFIX = ".journal"
KEPT_DAYS = 30


class RunNote(NamedTuple):
    """The note on a run: the ids of the run, and the path of its journal."""

    file: Path
    """Path of the note."""
    owner: str = ""
    """Digest of service and user; like ``plan_id`` and ``run_id`` it is read from the name of the note."""
    plan_id: str = ""
    run_id: str = ""
    journal: Path | None = None
    """Path of the journal; None if the note cannot be read."""
    base_url: str | None = None
    user_id: str | None = None
    created_at: datetime | None = None
    """Time at which the run began."""
    is_purged: bool = False
    """True if the journal was removed because of its age; the note stays, so that the plan is not applied again."""

    @property
    def place(self) -> Path:
        """Path of the journal, or of the note if that cannot be read."""
        return self.journal or self.file


class RunDirectory:
    """The journals of this user on this machine, and the notes on them.

    Raises `JournalError` if the folder cannot be made.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = _absolute(state_folder() / "runs" if folder is None else folder)
        self._open, self._plans = self.folder / "open", self.folder / "plans"
        what = f"nothing is sent without a journal, and the folder {self.folder} cannot be used"
        with raise_os_errors_as(JournalError, what, "correct its permissions"):
            for each in (self.folder, self._open, self._plans):
                private_folder(each)

    def path_of(self, header: Header) -> Path:
        """Return the default place of the journal of a run."""
        name = f"{header.created_at:%Y%m%dT%H%M%SZ}-{header.plan_id[:12]}-{header.run_id[:8]}{JOURNAL_SUFFIX}"
        return self.folder / name

    def of_plan(self, plan_id: str) -> RunNote | None:
        """Return the note on a run of this plan, if there was one; for a journal without a note, only its path."""
        journals = self.folder.glob(f"*-{plan_id[:12]}-*{JOURNAL_SUFFIX}")
        without_note = (RunNote(path, journal=path) for path in journals)
        return next(self.notes(f"*.{plan_id}.*"), None) or next(without_note, None)

    def lock_user(self, user_id: str) -> AbstractContextManager[None]:
        """Lock the memories of one user, so that one process of this machine writes them at a time."""
        digest = hashlib.sha256(user_id.encode()).hexdigest()
        what = f"the right to write the memories of user {user_id}"
        return process_lock(self.folder / f"{digest[:16]}.lock", what=what)

    def mark_unfinished(self, header: Header, path: Path) -> None:
        """Record that a run begins or resumes, and where its journal is; on the disk when this returns.

        Raises `JournalError` if the note cannot be written.
        """
        fields = {
            "journal": str(_absolute(path)),
            "base_url": header.base_url,
            "user_id": header.user_id,
            "created_at": header.created_at.isoformat(),
        }
        self._write(self._open / _name_of(header), fields)

    def mark_finished(self, header: Header) -> None:
        """Record that nothing of the run is left to do."""
        name = _name_of(header)
        with suppress(FileNotFoundError):  # another process has forgotten the run
            (self._open / name).replace(self._plans / name)

    def notes(self, pattern: str = "*.*.*") -> Iterator[RunNote]:
        """Read the notes whose names fit, those on unfinished runs first."""
        for file in (*sorted(self._open.glob(pattern)), *sorted(self._plans.glob(pattern))):
            owner, plan_id, run_id = file.name.split(".")[:3]
            is_temporary = not owner  # left by a process that was killed while it wrote
            if not is_temporary and (note := self._read(RunNote(file, owner, plan_id, run_id))):
                yield note

    def unfinished(self, base_url: str, user_id: str) -> list[RunNote]:
        """Return the notes on unfinished runs of one user at one service."""
        notes = self.notes(f"{owner_of(base_url, user_id)}.*.*")
        return [note for note in notes if note.file.parent == self._open and not note.is_purged]

    def is_finished(self, note: RunNote) -> bool:
        """Return True if nothing is left to do of the run of a note."""
        return note.file.parent == self._plans

    def places(self) -> dict[Path, RunNote | None]:
        """Return the paths of all known journals, present or not, each with its note."""
        noted = {note.place: note for note in self.notes() if not note.is_purged}
        return dict.fromkeys(self.folder.glob(f"*{JOURNAL_SUFFIX}")) | noted

    def journals(self) -> list[Path]:
        """Return every journal that exists, the oldest first."""
        changed_at = {path: at for path in self.places() if (at := _changed_at(path))}
        others = (path for path in changed_at if path.parent not in {self._open, self._plans})
        return sorted(others, key=changed_at.__getitem__)

    def list_runs(self) -> pd.DataFrame:
        """List the runs, as `memframe.list_runs` does."""
        return _frame(self._entries())

    def purge_runs(
        self,
        now: datetime,
        older_than_days: float = KEPT_DAYS,
        *,
        journals: Iterable[str | os.PathLike[str]] | None = None,
    ) -> pd.DataFrame:
        """Remove journals and the notes on them, as `memframe.purge_runs` does."""
        if not older_than_days >= 0:
            raise ConfigError(f"older_than_days={older_than_days!r}: give a number of days from 0")
        limit = now - timedelta(days=min(older_than_days, now.toordinal() - 1))  # dates begin in year 1
        if journals is not None:
            purged = [self._entry_at(path) for path in journals]
        else:
            own_folders = {self.folder, self._open, self._plans}
            old = [one for one in self._entries() if one["created_at"] <= limit]
            purged = [
                one for one in old if one["journal"].parent in own_folders and one["state"] != "running"
            ]
        for entry in purged:
            self.forget(entry["journal"])
        for note in self.notes() if journals is None else ():
            if note.is_purged and (_changed_at(note.file) or limit) <= limit:
                note.file.unlink(missing_ok=True)
        return _frame(purged)

    def forget(self, path: Path) -> None:
        """Remove a journal, if it exists, and the notes on its runs.

        Raises `JournalError` if it cannot be removed.
        """
        what = f"{path} cannot be removed"
        with raise_os_errors_as(JournalError, what, "correct the permissions of its folder"):
            remove(path)
            for note in self.notes():
                if path in {note.journal, note.file}:
                    note.file.unlink(missing_ok=True)

    def purge_finished(self, before: datetime) -> None:
        """Remove old journals of finished runs from this folder; their notes then no longer name the user."""
        # a journal that another process has just removed is not old
        old = [
            path for path in self.folder.glob(f"*{JOURNAL_SUFFIX}") if (_changed_at(path) or before) < before
        ]
        notes = self.places() if old else {}
        for path in old:
            note = notes.get(path)
            entry = _entry(path, note)
            if entry and entry["state"] == "finished" and entry["created_at"] < before:
                if note:
                    self._write(note.file, {"journal": str(path), "is_purged": True})
                with suppress(OSError):  # on Windows, if another process reads it: the next run tries again
                    remove(path)

    def _entries(self) -> list[dict[str, Any]]:
        """Return the rows of `list_runs`, the oldest first."""
        found = [entry for path, note in self.places().items() if (entry := _entry(path, note))]
        return sorted(found, key=lambda entry: entry["created_at"])

    def _entry_at(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Return the run whose journal is, or was, at a path."""
        place, places = _absolute(expand_path(path)), self.places()
        entry = _entry(place, places.get(place))
        if entry is None or (place not in places and entry["state"] == "unreadable"):
            raise JournalError(f"no run is known that has its journal at {path}", hint=KNOWN_RUNS)
        if entry["state"] == "running":
            raise JournalError(
                f"the run of {path} is running in another process: wait until it ends, or stop it"
            )
        return entry

    def _write(self, file: Path, fields: dict[str, Any]) -> None:
        what = f"nothing is sent, as {self.folder} cannot be written"
        with raise_os_errors_as(JournalError, what, "free some space there"), atomic_file(file) as note:
            note.write(json.dumps(fields).encode())

    def _read(self, note: RunNote) -> RunNote | None:
        """Read a note; None if another process has removed it meanwhile."""
        try:
            fields = json.loads(note.file.read_bytes())
            journal, begun = Path(fields.pop("journal")), fields.pop("created_at", None)
            if not journal.is_absolute() or "\0" in str(journal):
                raise ValueError("a note without a path")
            created_at = None if begun is None else datetime.fromisoformat(begun)
            return note._replace(journal=journal, created_at=created_at, **fields)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, LookupError, AttributeError):
            # empty after a power cut, damaged, or malformed
            journals = self.folder.glob(f"*-{note.plan_id[:12]}-{note.run_id[:8]}{JOURNAL_SUFFIX}")
            return note._replace(journal=next(journals, None))


def _absolute(path: str | os.PathLike[str]) -> Path:
    """Return an absolute path without "..", which `Path.absolute` would keep; links are not followed."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - as the docstring says


def owner_of(base_url: str, user_id: str) -> str:
    """Return the digest that names the owner of a run, equal if `same_service` and `same_id` are True."""
    parts = urlsplit(base_url)
    service = f"http:{parts.path}" if parts.scheme == "http" else base_url
    return hashlib.sha256(f"{service}\0{canonical_id(user_id)}".encode("utf-8", "surrogatepass")).hexdigest()[
        :32
    ]


def _name_of(header: Header) -> str:
    return f"{owner_of(header.base_url, header.user_id)}.{header.plan_id}.{header.run_id}"


def _changed_at(path: Path) -> datetime | None:
    """Return the time at which a file was last written; None if it is gone."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        return None


def list_runs() -> pd.DataFrame:
    """List the runs of this user on this machine, oldest first.

    Returns
    -------
    DataFrame
        One row per run: ``run created_at base_url user_id``, the number of changes in each status (``done
        recovered rejected conflict unknown planned``), ``state`` and ``journal``. The state is ``finished``;
        ``open`` if some changes are planned or unknown and the run should be resumed; ``running`` in another
        process; ``unreadable``; or ``missing`` if the journal is not at its path, for example because a disk is
        not connected. For the last three, the numbers are missing.

    Examples
    --------
    >>> runs = list_runs()
    >>> unfinished = runs[runs.state == "open"].journal
    >>> list(runs.columns[:4])
    ['run', 'created_at', 'base_url', 'user_id']
    """
    return RunDirectory().list_runs()


def purge_runs(
    older_than_days: float = KEPT_DAYS, *, journals: Iterable[str | os.PathLike[str]] | None = None
) -> pd.DataFrame:
    """Remove journals, and with them the sealed copies of what was changed and deleted.

    These runs can then no longer be undone or resumed, and their plans could be applied a second time. Purging
    by age leaves out runs that are running, and journals that are stored elsewhere. Journals of finished runs older
    than 30 days are removed automatically when a new run begins.

    Parameters
    ----------
    older_than_days : float
        Days since the run began; 0 removes all.
    journals : iterable of paths, optional
        Remove these instead, regardless of age and place, including journals that are lost or unreadable.

    Returns
    -------
    DataFrame
        The runs that were removed, as `list_runs` shows them.

    Raises
    ------
    JournalError
        One of ``journals`` is running, or belongs to no known run.

    Examples
    --------
    >>> len(purge_runs(older_than_days=90))
    0
    """
    return RunDirectory().purge_runs(datetime.now(UTC), older_than_days, journals=journals)


def _entry(path: Path, note: RunNote | None) -> dict[str, Any] | None:
    """Return one row of `list_runs` without opening sealed values; None if neither journal nor note exists."""
    try:
        with Journal.open(path, LocalCipher(())) as journal:
            counts, header = journal.counts(), journal.header
    except JournalError as fault:
        written_at = _changed_at(path)
        began = (note and note.created_at) or written_at or (note and _changed_at(note.file))
        if began is None:
            return None
        state = "missing" if written_at is None else "unreadable"
        if fault.errno == errno.EBUSY:
            state = "running"
        known = {"run": note.run_id, "base_url": note.base_url, "user_id": note.user_id} if note else {}
        return {**known, "created_at": began, "state": state, "journal": path}
    counts["unknown"] = counts.get("unknown", 0) + counts.pop("sending", 0)
    return {
        "run": header.run_id,
        "created_at": header.created_at,
        "base_url": header.base_url,
        "user_id": header.user_id,
        **{status: counts.get(status, 0) for status in STATUSES},
        "state": "open" if any(counts[state] for state in counts.keys() - SETTLED) else "finished",
        "journal": path,
    }


def _frame(entries: list[dict[str, Any]]) -> pd.DataFrame:
    dtypes: dict[str, str] = {
        "run": "str",
        "created_at": TIME_DTYPE,
        **dict.fromkeys(("base_url", "user_id"), "str"),
        **dict.fromkeys(STATUSES, "Int64"),
        "state": "str",
        "journal": "object",
    }
    columns = {
        name: pd.Series([entry.get(name) for entry in entries], dtype=dtype) for name, dtype in dtypes.items()
    }
    return pd.DataFrame(columns)
