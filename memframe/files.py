"""Private files, atomic folders, a process lock.

A lock is a small SQLite file with an open transaction. The operating system ends it with the process, so that a
lock never has to be removed manually, and other processes can read which process holds it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Literal, NamedTuple

from memframe.errors import ConfigError, Hint, JournalError, MemframeError, check_kind


@contextmanager
def raise_os_errors_as(kind: type[MemframeError], what: str, advice: str) -> Iterator[None]:
    """Raise an `OSError` of the block as an error of memframe that states the system's reason.

    Examples
    --------
    >>> with raise_os_errors_as(JournalError, "the journal cannot be read", "check the path"):
    ...     _ = Path("nowhere/run.journal").read_bytes()
    Traceback (most recent call last):
    memframe.errors.JournalError: the journal cannot be read (No such file or directory): check the path
    """
    try:
        yield
    except MemframeError:  # some are an OSError as well, but have their own message
        raise
    except OSError as error:
        raise kind(f"{what} ({error.strerror or error}): {advice}") from error


@contextmanager
def atomic_file(path: Path, *, may_replace: bool = True, mode: int = 0o600) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` once all of it is on the disk.

    Until then, and if anything fails, a file at `path` stays unchanged. The new file has mode 0600 from its first
    byte on, whatever the umask, and ``mode`` once it is complete. If several processes write the same path without
    ``may_replace``, one succeeds, and the others get a `FileExistsError`.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> with atomic_file(folder / "notes.txt") as file:
    ...     _ = file.write(b"for me alone")
    >>> (folder / "notes.txt").read_bytes()
    b'for me alone'
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode != 0o600:
            Path(name).chmod(mode)
        if may_replace:
            Path(name).replace(path)
        else:
            Path(path).hardlink_to(name)  # creates the name in one step, or fails if it exists
            Path(name).unlink()
    except BaseException:  # Ctrl-C as well: no partial file stays behind
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


OwnKind = Literal["report", "audit", "plan", "SARIF file", "list of changes"]

REPORT_MARK = "<!-- a report of memframe -->"
"""Second line of a report, by which it is recognised."""

FIRST_BYTES: Mapping[OwnKind, re.Pattern[bytes]] = MappingProxyType(
    {
        # the first reports had no mark, but always this policy and title
        "report": re.compile(
            rb"<!DOCTYPE html>\n(?:%b|(?s:<html lang=\"en\"><head>.{,200}default-src &#39;none&#39;.{,400}"
            rb"<title>Audit of ))" % re.escape(REPORT_MARK.encode())
        ),
        "audit": re.compile(rb'\s*\{\s*"format":\s*"memframe-audit/'),
        "plan": re.compile(rb"memframe plan "),
        "list of changes": re.compile(
            rb'\s*\{\s*"format":\s*"memframe-changes/|"action","id","field","text",'
        ),
        "SARIF file": re.compile(
            rb'\{\s*"\$schema": "[^"]{,200}",[^}]{,200}"driver": \{\s*"name": "memframe"'
        ),
    }
)
"""Beginnings of the files that memframe writes to a path of a person's choice; each is replaced only by its kind."""

_N_FIRST = 1024


def check_replaceable(path: Path, kind: OwnKind, *, error: type[MemframeError], force: bool = False) -> None:
    """Refuse to replace a file of another kind than the one to be written, unless by ``force``.

    An empty file may be replaced, as nothing is lost. Broken links, folders, pipes and devices are never replaced.

    Examples
    --------
    >>> script = Path(tempfile.mkdtemp()) / "clean.py"
    >>> _ = script.write_text("print(1)")
    >>> check_replaceable(script, "report", error=JournalError)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    memframe.errors.JournalError: ...clean.py is not a report and is not replaced: choose another path, or delete it
    """
    if not os.path.lexists(path):
        return
    if not path.is_file():
        raise error(f"{path} cannot be written, as it is not a file: choose another path")
    if not (force or path.stat().st_size == 0 or is_own(path, kind)):
        article = "an" if kind == "audit" else "a"
        ways = "choose another path, or delete it", "choose another path, or give --force"
        raise error(
            f"{path} is not {article} {kind} and is not replaced",
            hint=Hint(ways[0], ways[0] if kind == "plan" else ways[1]),
        )


def is_own(path: Path, kind: OwnKind) -> bool:
    """Return True if a file begins like those of a kind."""
    with path.open("rb") as file:
        return FIRST_BYTES[kind].match(file.read(_N_FIRST)) is not None


def write_own_file(
    path: str | PathLike[str],
    data: bytes,
    kind: OwnKind,
    *,
    error: type[MemframeError],
    force: bool = False,
) -> None:
    """Write a file to a path of a person's choice; replace a file of the same kind or, by ``force``, any file."""
    target = expand_path(path)
    with raise_os_errors_as(error, f"{target} cannot be written", "choose another path, or correct this one"):
        check_replaceable(target, kind, error=error, force=force)
        with atomic_file(target) as file:
            file.write(data)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Make a folder that replaces `path` once it is filled. Mode 0700.

    On Linux and macOS the two folders are exchanged in one step if the file system can do so. Otherwise the old
    folder is first renamed, to a name that begins with a dot, so that for a moment there is none at `path`.
    """
    fresh = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    before = fresh.with_name(f"{fresh.name}.before")
    try:
        yield fresh
        for folder in (*filter(Path.is_dir, fresh.iterdir()), fresh):
            _sync_folder(folder)
        if path.exists() and _exchange(fresh, path):
            before = fresh
        else:
            if path.exists():
                path.rename(before)
            fresh.rename(path)
    except BaseException:  # Ctrl-C as well: one of the two folders stays at `path`, complete
        if before.exists() and not path.exists():
            before.rename(path)
        for leftover in (fresh, before):
            shutil.rmtree(leftover, ignore_errors=True)  # the error of the block is the one to report
        raise
    _sync_folder(path.parent)
    if before.exists():
        shutil.rmtree(before)


def link_or_copy(source: Path, target: Path) -> None:
    """Link `target` to the file at `source`; copy it if the file system has no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step if the system can; Python has no call for it."""
    if os.name != "posix":
        return False
    system = ctypes.CDLL(None)
    names = os.fsencode(one), os.fsencode(other)
    if hasattr(system, "renameat2"):  # Linux
        failed: int = system.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE)
    elif hasattr(system, "renamex_np"):  # macOS
        failed = system.renamex_np(*names, _EXCHANGE)
    else:
        failed = -1
    return not failed


_AT_FDCWD, _EXCHANGE = -100, 2


def _sync_folder(folder: Path) -> None:
    """Flush a folder to the disk, if the system can open folders."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def expand_path(path: str | PathLike[str]) -> Path:
    """Check a path, and expand a leading ``~`` to the home folder; an unknown ``~name`` stays unchanged.

    Raises `ConfigError` if it is not a path.

    >>> expand_path("~/a.journal") == Path.home() / "a.journal"
    True
    """
    check_kind("path", path, str, PathLike)
    text = os.fsdecode(path)
    if "\0" in text:
        raise ConfigError(f"path is {text[:80]!r}, and no path has a NUL in it: correct it")
    expanded = Path(os.path.expanduser(text))  # noqa: PTH111 - Path.expanduser raises a RuntimeError for "~name"
    try:
        expanded.stat()
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            raise ConfigError(
                f"path is {text[:80]!r}, which no file can have ({error.strerror}): correct it"
            ) from None
    return expanded


def private_folder(path: Path) -> Path:
    """Make the folder at `path` if needed, and close it to other users: mode 0700."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if is_open_to_others(path):
        path.chmod(0o700)
    return path


def is_open_to_others(path: Path, *, system: str = os.name) -> bool:
    """Return True if the mode bits admit other users; only POSIX systems have them."""
    return system == "posix" and bool(path.stat().st_mode & 0o077)


class LockHolder(NamedTuple):
    """Process that holds a lock."""

    pid: int
    host: str
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


@contextmanager
def process_lock(path: Path, *, what: str, wait_s: float = 0) -> Iterator[None]:
    """Hold the lock at `path` during a ``with`` block; wait for it at most ``wait_s`` seconds.

    Its file is not removed, because that could let in a second holder. Messages call the locked thing ``what``.

    Raises
    ------
    JournalError
        Another process, or another thread of this one, holds it; the message names it.

    Examples
    --------
    >>> path = Path(tempfile.mkdtemp()) / "lock"
    >>> with process_lock(path, what="the run"), process_lock(path, what="the run"):  # doctest: +ELLIPSIS
    ...     pass
    Traceback (most recent call last):
    memframe.errors.JournalError: the run is in use by process ... Wait until that ends, or stop it
    """
    try:
        path.touch(mode=0o600)
        opened = sqlite3.connect(path, timeout=wait_s, isolation_level=None)
    except (OSError, sqlite3.Error) as fault:
        raise JournalError(
            f"the lock {path} cannot be opened: {fault}. Correct the folder's permissions"
        ) from None
    with closing(opened) as lock:
        this = LockHolder(os.getpid(), socket.gethostname(), f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")
        try:
            for statement in _TAKE:
                lock.execute(statement, this if "?" in statement else ())
        except sqlite3.Error as fault:
            raise _refusal(lock, what, path, fault) from None
        yield


_TAKE = (
    "PRAGMA journal_mode = MEMORY",
    "PRAGMA synchronous = OFF",
    "BEGIN IMMEDIATE",
    "CREATE TABLE IF NOT EXISTS holder (pid INTEGER, host TEXT, since TEXT)",
    "DELETE FROM holder",
    "INSERT INTO holder VALUES (?, ?, ?)",
    "COMMIT",
    "BEGIN IMMEDIATE",  # fails if another process took the lock since the commit; the error names it
)
"""Record this process and keep a transaction open; durability is not needed."""


def _refusal(lock: sqlite3.Connection, what: str, path: Path, fault: sqlite3.Error) -> JournalError:
    if not getattr(fault, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
        return JournalError(
            f"the lock {path} cannot be used ({fault}): free some space there, or delete it if it is not a lock"
        )
    try:
        holder = str(LockHolder(*lock.execute("SELECT pid, host, since FROM holder").fetchone()))
    except (sqlite3.Error, TypeError):  # its holder has not written its name yet
        holder = f"another process, see the lock {path}"
    return JournalError(f"{what} is in use by {holder}. Wait until that ends, or stop it")
