"""The disk under a journal: the SQLite file made, opened and checked, and its refusals in words."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from memframe.errors import Hint, JournalError, resume_hint
from memframe.journal.records import STATUSES, Header

APPLICATION_ID = 0x6D66_726A  # "mfrj", in the head of the file
FORMAT = 2
FORMATS = {1, FORMAT}
"""Formats that are read; in the first the header was not authenticated."""

Connect = Callable[..., sqlite3.Connection]
"""`sqlite3.connect`, or what a test has in its place."""

_IN_STATES = f"CHECK (state IN {(*STATUSES, 'sending')})"

TABLES = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
    "CREATE TABLE header (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    f"CREATE TABLE operations (n INTEGER PRIMARY KEY, state TEXT NOT NULL {_IN_STATES}, standing BLOB NOT NULL)",
    "CREATE TABLE drafts (n INTEGER PRIMARY KEY, change BLOB NOT NULL, request BLOB, backup BLOB)",
)
"""What changes often is apart from what is large: SQLite writes a whole row again for one of its cells."""

BESIDE = ("", "-wal", "-shm", "-journal")
"""Endings of the files that are one database."""


def make_file(path: Path) -> None:
    """An empty file where there was none, for its owner alone."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise JournalError(
            f"{path} is there already", hint=resume_hint(path) + "; a new run needs another path"
        ) from None
    except OSError as fault:
        raise JournalError(
            f"no journal can be made at {path} ({fault.strerror}), and nothing is sent without one: "
            "mend the folder, or pass another journal="
        ) from None


def opened(connect: Connect, path: Path, *, writes: bool) -> sqlite3.Connection:
    """The database, which must be there; to write, it is for one process until it is closed."""
    place = path.absolute().as_posix()
    root = "" if place[0] == "/" else "/"  # before the letter of a drive
    there = f"file://{root}{quote(os.fsencode(place))}?mode=rw"  # else SQLite makes one that was just removed
    database = connect(there, timeout=0, isolation_level=None, uri=True)
    try:
        if writes:
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
    except BaseException:  # Ctrl-C as well: nobody else could open what is held
        database.close()
        raise
    return database


def checked_header(database: sqlite3.Connection, path: Path) -> tuple[Header, bytes | None]:
    """Return the header of a database that is whole and of a format that we read, and its bytes to authenticate."""
    marks = [database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
    if marks[0] != APPLICATION_ID:
        raise never_began(path)
    if marks[1] not in FORMATS:
        raise JournalError(
            f"{path} is a journal of format {marks[1]}, this memframe reads {FORMAT} at most: use that which wrote it"
        )
    if size_of(path) % database.execute("PRAGMA page_size").fetchone()[0]:
        raise damaged(path, "cut short")  # SQLite reads zeros for what is missing of its last page
    found = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise damaged(path, found)
    text = database.execute("SELECT value FROM header WHERE name = 'header'").fetchone()
    try:
        return msgspec.json.decode(text[0], type=Header), text[0] if marks[1] > 1 else None
    except (msgspec.MsgspecError, TypeError, ValueError):
        raise damaged(path, "its header cannot be read") from None


def size_of(path: Path) -> int:
    """Return the bytes of a journal, which another process may have removed."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        raise absent(path) from None


def never_began(path: Path) -> JournalError:
    """Return what to say of a file that holds nothing of a run."""
    return JournalError(
        f"{path} is not a journal of memframe, or of a run that never began and sent nothing: delete it"
    )


KNOWN_RUNS = Hint("list_runs() shows those of this user", "memframe runs shows those of this user")


def absent(path: Path) -> JournalError:
    """Return what to say of a journal that is not there."""
    return JournalError(f"there is no journal {path}: check the path", hint=KNOWN_RUNS)


def damaged(path: Path, how: str) -> JournalError:
    """What to say of a journal that is not as it was written."""
    return JournalError(
        f"the journal {path} is damaged ({how}), so nothing is sent from it: restore a copy, or load the memories "
        "and plan anew from what is there"
    )


class _Reason(NamedTuple):
    errno: int
    words: str


_REASONS = {
    "SQLITE_FULL": _Reason(errno.ENOSPC, "the disk is full: make room"),
    "SQLITE_IOERR": _Reason(errno.EIO, "the disk fails or is full: make room, or move the journal"),
    "SQLITE_READONLY": _Reason(errno.EROFS, "it is read-only: mend its permissions"),
    "SQLITE_CANTOPEN": _Reason(errno.EACCES, "it cannot be opened: mend the folder's permissions"),
    "SQLITE_BUSY": _Reason(errno.EBUSY, "another process uses it: wait until that is done"),
}
"""By how the name of SQLite's error begins."""


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turns what SQLite refuses into a message."""
    try:
        yield
    except sqlite3.Error as fault:
        refusal = _refusal(path, fault)
    else:
        return
    raise refusal


def _refusal(path: Path, fault: sqlite3.Error) -> JournalError:
    name = getattr(fault, "sqlite_errorname", "")
    if name.startswith("SQLITE_CANTOPEN") and not path.exists():
        return absent(path)
    for beginning, reason in _REASONS.items():
        if name.startswith(beginning):
            refusal = JournalError(
                f"the journal {path} cannot be written or read: {reason.words}; then", hint=resume_hint(path)
            )
            refusal.errno = reason.errno
            return refusal
    return damaged(path, str(fault))


def remove(path: Path) -> None:
    """The database away, with what SQLite keeps beside it."""
    for ending in BESIDE:
        path.with_name(path.name + ending).unlink(missing_ok=True)
