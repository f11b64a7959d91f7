"""One process at a time: a lock that says who holds it, and that ends with its holder.

It is a small SQLite file in which a transaction stays open. The operating system ends it with the process,
however that ends, so that nobody has to remove a lock by hand; and others may read who holds it.
"""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from memframe.errors import JournalError


class Holder(NamedTuple):
    """Who holds a lock."""

    pid: int
    host: str
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


def this_process() -> Holder:
    """Who we are, and from now on."""
    return Holder(os.getpid(), socket.gethostname(), f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")


@contextmanager
def holding(path: Path, *, what: str, wait_s: float = 0) -> Iterator[None]:
    """The lock at `path`, for the length of a ``with`` block.

    Parameters
    ----------
    path : Path
        Of the lock's own file, which stays: whoever removed it could let two in.
    what : str
        What is held, for the message.
    wait_s : float
        How long to wait for another holder.

    Raises
    ------
    JournalError
        Another process, or another thread of this one, holds it; the message names it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "lock"
    >>> with holding(path, what="the run"), holding(path, what="the run"):  # doctest: +ELLIPSIS
    ...     pass
    Traceback (most recent call last):
    memframe.errors.JournalError: the run is in use by process ... Wait until that is done, or end it
    """
    with closing(_opened(path, wait_s)) as lock:
        try:
            _take(lock)
        except sqlite3.Error as fault:
            raise _refusal(lock, what, path, fault) from None
        yield


def _opened(path: Path, wait_s: float) -> sqlite3.Connection:
    try:
        path.touch(mode=0o600)
        return sqlite3.connect(path, timeout=wait_s, isolation_level=None)
    except (OSError, sqlite3.Error) as fault:
        raise JournalError(
            f"the lock {path} cannot be opened: {fault}. Mend the folder's permissions"
        ) from None


def _take(lock: sqlite3.Connection) -> None:
    """Write down who we are, and keep a transaction open on it; of a power cut nobody needs to know that."""
    lock.execute("PRAGMA journal_mode = MEMORY")
    lock.execute("PRAGMA synchronous = OFF")
    lock.execute("BEGIN IMMEDIATE")
    lock.execute("CREATE TABLE IF NOT EXISTS holder (pid INTEGER, host TEXT, since TEXT)")
    lock.execute("DELETE FROM holder")
    lock.execute("INSERT INTO holder VALUES (?, ?, ?)", this_process())
    lock.execute("COMMIT")
    lock.execute("BEGIN IMMEDIATE")  # whoever comes between the two keeps it, and is named


def _refusal(lock: sqlite3.Connection, what: str, path: Path, fault: sqlite3.Error) -> JournalError:
    if not getattr(fault, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
        return JournalError(
            f"the lock {path} cannot be used ({fault}): make room there, or delete it if it is none"
        )
    try:
        holder = str(Holder(*lock.execute("SELECT pid, host, since FROM holder").fetchone()))
    except (sqlite3.Error, TypeError):  # its holder has not written its name yet
        holder = f"another process, see the lock {path}"
    return JournalError(f"{what} is in use by {holder}. Wait until that is done, or end it")
