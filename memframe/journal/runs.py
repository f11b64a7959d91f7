"""The run directory: where journals are, which runs are not finished, and when they go.

Journals are in the folder ``runs`` of the user's state folder, unless the caller names a place. A note on each
run says where its journal is, wherever that is: in ``runs/open`` until nothing is left to do, then in
``runs/plans``. So a run that was cut short is found again, and no plan is carried out twice. A note outlives its
journal, which may be on a disk that is away: only `purge_runs` removes it.

A note is named by owner (a digest of service and user), plan and run. So one that cannot be read any more still
stops this plan and this user, and nobody else. Notes of earlier versions are named by run or plan alone, and hold
no more than the path.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pandas as pd

from memframe.client.responses import same_id
from memframe.errors import ConfigError, JournalError
from memframe.files import atomic_file, private_folder, process_lock, raise_os_errors_as
from memframe.frames import TIME_DTYPE
from memframe.journal.journal import KNOWN_RUNS, Journal, remove
from memframe.journal.operation import SETTLED, STATUSES, Header
from memframe.keystore import LocalCipher, state_folder

ENDING = ".journal"
KEPT_DAYS = 30


class RunNote(NamedTuple):
    """The note on a run: which it is, and where its journal is.

    Attributes
    ----------
    file : Path
        The note itself.
    owner : str or None
        Digest of service and user; None in notes of earlier versions.
    plan_id, run_id : str or None
        From the name of the note.
    journal : Path or None
        Where the journal was put; None where the note cannot be read.
    base_url, user_id : str or None
    created_at : datetime or None
        When the run began.
    is_purged : bool
        Whether the journal went by age, without being asked: the note alone stays, so that the plan is not
        carried out once more.
    """

    file: Path
    owner: str | None = None
    plan_id: str | None = None
    run_id: str | None = None
    journal: Path | None = None
    base_url: str | None = None
    user_id: str | None = None
    created_at: datetime | None = None
    is_purged: bool = False

    @property
    def place(self) -> Path:
        """Of the journal, or of the note where it does not say."""
        return self.journal or self.file


class RunDirectory:
    """The journals of this user on this machine, and the notes on them.

    Raises
    ------
    JournalError
        The folder cannot be made.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = _absolute(state_folder() / "runs" if folder is None else folder)
        self._open, self._plans = self.folder / "open", self.folder / "plans"
        what = f"nothing is sent without a journal, and the folder {self.folder} cannot be used"
        with raise_os_errors_as(JournalError, what, "mend its permissions"):
            for each in (self.folder, self._open, self._plans):
                private_folder(each)

    def path_of(self, header: Header) -> Path:
        """Return the default place of the journal of a run."""
        return (
            self.folder
            / f"{header.created_at:%Y%m%dT%H%M%SZ}-{header.plan_id[:12]}-{header.run_id[:8]}{ENDING}"
        )

    def of_plan(self, plan_id: str) -> RunNote | None:
        """Return the note on a run of this plan, if there was one; of a journal without a note, its path alone."""
        here = (RunNote(path, journal=path) for path in self.folder.glob(f"*-{plan_id[:12]}-*{ENDING}"))
        return next(self.notes(lambda note: note.plan_id == plan_id), None) or next(here, None)

    def writing_to(self, user_id: str) -> AbstractContextManager[None]:
        """Hold the right to write one user's memories, which one process of this machine has at a time."""
        digest = hashlib.sha256(user_id.encode()).hexdigest()
        return process_lock(
            self.folder / f"{digest[:16]}.lock", what=f"the right to write the memories of user {user_id}"
        )

    def mark_open(self, header: Header, path: Path) -> None:
        """Record that a run begins or goes on, and where its journal is; on the disk when this returns.

        Raises
        ------
        JournalError
            The note cannot be written.
        """
        fields = {
            "journal": str(_absolute(path)),
            "base_url": header.base_url,
            "user_id": header.user_id,
            "created_at": header.created_at.isoformat(),
        }
        self._write(self._open / _name_of(header), fields)

    def mark_closed(self, header: Header) -> None:
        """Record that nothing of the run is left to do."""
        name = _name_of(header)
        with suppress(FileNotFoundError):  # given up by another process
            (self._open / name).replace(self._plans / name)
        (self._open / header.run_id).unlink(missing_ok=True)  # of an earlier version

    def notes(self, wanted: Callable[[RunNote], object] = lambda _: True) -> Iterator[RunNote]:
        """Read the notes, those on unfinished runs first, of which the names are wanted."""
        for file in (*sorted(self._open.iterdir()), *sorted(self._plans.iterdir())):
            named = self._named(file)
            if file.name[0] != "." and wanted(named) and (note := self._read(named)):
                yield note

    def unfinished(self, base_url: str, user_id: str) -> list[RunNote]:
        """Return the notes on unfinished runs of one user at one service, and on those that do not say whose."""
        owners = {owner_of(base_url, user_id), None}
        found = self.notes(lambda note: note.file.parent == self._open and note.owner in owners)
        return [note for note in found if not note.is_purged]

    def places(self) -> dict[Path, RunNote | None]:
        """Return where every journal is or was that is known here, with the note on it."""
        noted = {note.place: note for note in self.notes() if not note.is_purged}
        return dict.fromkeys(self.folder.glob(f"*{ENDING}")) | noted

    def keeps(self, path: Path) -> bool:
        """Return whether a journal, or a note in its place, stands here and not where a caller keeps it."""
        return path.parent in {self.folder, self._open, self._plans}

    def journals(self) -> list[Path]:
        """Return every journal that is there, the oldest first."""
        changed_at = {path: at for path in self.places() if (at := _changed_at(path))}
        there = (path for path in changed_at if path.parent not in {self._open, self._plans})
        return sorted(there, key=changed_at.__getitem__)

    def give_up(self, path: Path) -> None:
        """Remove a journal, if it is there, and the notes on its runs.

        Raises
        ------
        JournalError
            It cannot be removed.
        """
        with raise_os_errors_as(
            JournalError, f"{path} cannot be removed", "correct the permissions of its folder"
        ):
            remove(path)
            for note in self.notes():
                if path in {note.journal, note.file}:
                    note.file.unlink(missing_ok=True)

    def purge_finished(self, before: datetime) -> None:
        """Remove the journals here of finished runs that began before; their notes no longer say whose they were."""
        old = [path for path in self.folder.glob(f"*{ENDING}") if (_changed_at(path) or before) < before]
        notes = self.places() if old else {}
        for path in old:
            note = notes.get(path)
            entry = _entry(path, note)
            if entry and entry["state"] == "finished" and entry["created_at"] < before:
                if note and note.owner:
                    self._write(note.file, {"journal": str(path), "is_purged": True})
                with suppress(OSError):  # Windows keeps what another process reads: the next run tries again
                    remove(path)

    def _write(self, file: Path, fields: dict[str, Any]) -> None:
        what = f"nothing is sent, as {self.folder} cannot be written"
        with raise_os_errors_as(JournalError, what, "make room there"), atomic_file(file) as note:
            note.write(json.dumps(fields).encode())

    def _named(self, file: Path) -> RunNote:
        """Return what the name of a note says."""
        owner, _, rest = file.name.partition(".")
        plan_id, _, run_id = rest.partition(".")
        if run_id:
            return RunNote(file, owner, plan_id, run_id)
        return (
            RunNote(file, run_id=file.name) if file.parent == self._open else RunNote(file, plan_id=file.name)
        )

    def _read(self, note: RunNote) -> RunNote | None:
        """Read a note; None, where another process has removed it meanwhile."""
        try:
            return note._replace(**_parse_note(note.file.read_text("utf-8")))
        except FileNotFoundError:
            return None
        except (
            OSError,
            ValueError,
            TypeError,
            LookupError,
        ):  # empty after a power cut, damaged, of another form
            here = self.folder.glob(f"*-{(note.plan_id or '')[:12]}*-{(note.run_id or '')[:8]}*{ENDING}")
            return note._replace(journal=next(here, None))


def _absolute(path: str | os.PathLike[str]) -> Path:
    """Return a path without "..", which `Path.absolute` would leave; no link is followed."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - as the docstring says


def owner_of(base_url: str, user_id: str) -> str:
    """Return the digest that names the owner of a run: the same where `same_service` and `same_id` see the same."""
    parts = urlsplit(base_url)
    service = f"http:{parts.path}" if parts.scheme == "http" else base_url
    lower = user_id.lower()
    user = lower if same_id(user_id, lower) else user_id
    return hashlib.sha256(f"{service}\0{user}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _name_of(header: Header) -> str:
    return f"{owner_of(header.base_url, header.user_id)}.{header.plan_id}.{header.run_id}"


def _parse_note(text: str) -> dict[str, Any]:
    """Read the text of a note: JSON, or the path alone, which is what earlier versions wrote.

    >>> _parse_note("/home/me/run.journal")["journal"].name
    'run.journal'
    """
    fields = json.loads(text) if text.startswith("{") else {"journal": text}
    if not Path(fields["journal"]).is_absolute() or "\0" in fields["journal"]:
        raise ValueError("a note without a path")
    begun = fields.get("created_at")
    return {
        **{name: fields[name] for name in ("base_url", "user_id", "is_purged") if name in fields},
        "journal": Path(fields["journal"]),
        "created_at": None if begun is None else datetime.fromisoformat(begun),
    }


def _changed_at(path: Path) -> datetime | None:
    """Return when a file was last written; None, where it is gone, be it since a moment."""
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
    return _list_runs(RunDirectory())


def _list_runs(directory: RunDirectory) -> pd.DataFrame:
    return _frame(_entries(directory))


def purge_runs(
    older_than_days: float = KEPT_DAYS, *, journals: Iterable[str | os.PathLike[str]] | None = None
) -> pd.DataFrame:
    """Remove journals, and with them the sealed copies of what was changed and deleted.

    These runs can then no longer be undone or resumed, and their plans could be applied a second time. Purging
    by age leaves alone running ones and journals that are stored elsewhere. Journals of finished runs older
    than 30 days are removed automatically when a new run begins.

    Parameters
    ----------
    older_than_days : float
        Since the run began; 0 removes all.
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
    return _purge_runs(RunDirectory(), datetime.now(UTC), older_than_days, journals=journals)


def _purge_runs(
    directory: RunDirectory,
    now: datetime,
    older_than_days: float = KEPT_DAYS,
    *,
    journals: Iterable[str | os.PathLike[str]] | None = None,
) -> pd.DataFrame:
    if not older_than_days >= 0:
        raise ConfigError(f"older_than_days={older_than_days!r}: give a number of days from 0")
    limit = now - timedelta(days=older_than_days)
    if journals is not None:
        going = [_entry_at(directory, path) for path in journals]
    else:
        going = [
            entry
            for entry in _entries(directory)
            if directory.keeps(entry["journal"])
            and entry["created_at"] <= limit
            and entry["state"] != "running"
        ]
    for entry in going:
        directory.give_up(entry["journal"])
    for note in directory.notes() if journals is None else ():
        if note.is_purged and (_changed_at(note.file) or limit) <= limit:
            note.file.unlink(missing_ok=True)
    return _frame(going)


def _entry_at(directory: RunDirectory, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the run that has its journal at a path, or had."""
    place, places = _absolute(Path(path).expanduser()), directory.places()
    entry = _entry(place, places.get(place))
    if entry is None or (place not in places and entry["state"] == "unreadable"):
        raise JournalError(f"no run is known that has its journal at {path}", hint=KNOWN_RUNS)
    if entry["state"] == "running":
        raise JournalError(
            f"the run of {path} is running in another process: wait until that is done, or end it"
        )
    return entry


_COUNTS = STATUSES
_COLUMNS = ("run", "created_at", "base_url", "user_id", *_COUNTS, "state", "journal")


def _entries(directory: RunDirectory) -> list[dict[str, Any]]:
    """Return the rows of `list_runs`, the oldest first."""
    found = [entry for path, note in directory.places().items() if (entry := _entry(path, note))]
    return sorted(found, key=lambda entry: entry["created_at"])


def _entry(path: Path, note: RunNote | None) -> dict[str, Any] | None:
    """Return one row of `list_runs`; None, where neither journal nor note is there. Nothing sealed is opened for it."""
    try:
        with Journal.open(path, LocalCipher(())) as journal:
            counts, header = journal.counts(), journal.header
    except JournalError as fault:
        return _closed_entry(path, note, is_running=fault.errno == errno.EBUSY)
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


def _closed_entry(path: Path, note: RunNote | None, *, is_running: bool) -> dict[str, Any] | None:
    """Return the row of a run whose journal does not open, with what its note says."""
    written_at = _changed_at(path)
    began = (note and note.created_at) or written_at or (note and _changed_at(note.file))
    if began is None:
        return None
    state = "running" if is_running else "missing" if written_at is None else "unreadable"
    fields = {} if note is None else {"run": note.run_id, "base_url": note.base_url, "user_id": note.user_id}
    return {**fields, "created_at": began, "state": state, "journal": path}


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
