"""The journal of one run: an SQLite file that has every intent on the disk before its request is sent.

States, counts, addresses, and the ids of the run, its plan, its access request and its user are not sealed. Changes
with the ids of memories, requests, backups and errors are sealed with the local data key, each bound to its place and
to the header of its run. The journal never holds the memory key or the token, which are added when a request is sent.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, get_args
from urllib.parse import quote

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from memframe.client.responses import decode
from memframe.errors import Hint, JournalError, ProtocolError, resume_hint
from memframe.files import raise_os_errors_as
from memframe.keystore import LocalCipher
from memframe.plan.change import Action, Change, Label, Value
from memframe.secret import SecretBytes
from memframe.wire import MemoryBlob

T = TypeVar("T")

Status = Literal["done", "recovered", "rejected", "conflict", "unknown", "planned"]
"""Outcome of an operation; ``recovered`` means done by a request whose answer got lost."""

STATUSES: tuple[Status, ...] = get_args(Status)

JournalState = Literal[Status, "sending"]
"""State of an operation in the journal; ``sending`` if its intent is on the disk, but not its answer."""

SETTLED: frozenset[JournalState] = frozenset({"done", "recovered", "rejected", "conflict"})
"""States that are final."""

WRITTEN: frozenset[JournalState] = frozenset({"done", "recovered"})
"""States in which the operation was carried out."""


class Header(Struct, frozen=True, kw_only=True):
    """The run that a journal records."""

    run_id: str
    """Id of the run; idempotency keys begin with it."""
    base_url: str
    user_id: str
    request_id: str
    """Id of the access request by which the run writes."""
    key_version: int
    """Version of the key under which content was sealed."""
    plan_id: str
    created_at: datetime
    """Time at which the run began, in UTC."""
    memframe: str
    """Version of memframe that began the run."""
    n_changes: int
    """Number of operations."""
    encrypt: bool = True
    """True if content is sent sealed; False for a service that seals plain text by itself."""


class OperationState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of an operation that changes during a run."""

    state: JournalState = "planned"
    new_id: str | None = None
    """Id of the memory that a create has made."""
    attempts: int = 0
    """Number of requests that were sent, or were about to be."""
    ambiguous: bool = False
    """True if a request may have been carried out although its answer got lost."""
    http_status: int | None = None
    """HTTP status of the last response."""
    error: str | None = None
    """Reason why it is not done, in words for people."""
    normalized: dict[str, Value] = {}
    """Fields that the service stores in its own form, such as tags in small letters, as it returned them."""


class Operation(OperationState, frozen=True, kw_only=True):
    """One write of a run: its number ``n``, the planned change, and its state."""

    n: int
    change: Change

    def __repr__(self) -> str:
        return f"<{self.action} {self.n}: {self.state}>"

    @property
    def action(self) -> Action:
        """create, patch or delete."""
        return self.change.action

    @property
    def id(self) -> str | None:
        """Id of the memory; the new one for a create that is done."""
        return self.change.id or self.new_id

    @property
    def row(self) -> Label:
        """Label of the row, as in the plan."""
        return self.change.row

    @property
    def status(self) -> Status:
        """The state as an outcome: an operation that is being sent counts as unknown."""
        return "unknown" if self.state == "sending" else self.state

    @property
    def restores(self) -> str | None:
        """Id of the deleted memory that a create brings back.

        If ``id`` is the same, the service has restored that memory; otherwise it has made a new one, with the date of
        the run.
        """
        return self.change.restores


# -- the journal


Connect = Callable[..., sqlite3.Connection]
"""`sqlite3.connect`, or its replacement in a test."""

Entry = tuple[Change, bytes | None, MemoryBlob | None]
"""A change, the body of its request without the memory key (None for a delete), and the memory before the change (None
for a create)."""

APPLICATION_ID = 0x6D66_726A  # "mfrj", in the head of the file
JOURNAL_FORMAT = 3

_OPERATIONS = (
    f"n INTEGER PRIMARY KEY, state TEXT NOT NULL CHECK (state IN {(*STATUSES, 'sending')}), details BLOB"
)
JOURNAL_TABLES = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {JOURNAL_FORMAT}",
    "CREATE TABLE header (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    f"CREATE TABLE operations ({_OPERATIONS})",
    "CREATE TABLE entries (n INTEGER PRIMARY KEY, change BLOB NOT NULL, request BLOB, backup BLOB)",
)
"""States change often and have a table without large values, because SQLite rewrites a whole row for one of its cells.
``details`` is NULL for an operation that was not begun."""


class Journal:
    """The journal of one run, open. Made by `create` and `open`; used by one thread."""

    def __init__(
        self,
        path: Path,
        header: Header,
        cipher: LocalCipher,
        database: sqlite3.Connection,
        header_bytes: bytes,
    ) -> None:
        self.path, self.header = path, header
        self._cipher, self._database, self._process = cipher, database, os.getpid()
        self._header_digest = b"\0" + hashlib.sha256(header_bytes).digest()

    def __repr__(self) -> str:
        return f"<memframe journal {self.path}>"

    @classmethod
    def create(
        cls,
        path: Path,
        header: Header,
        entries: Iterable[Entry],
        cipher: LocalCipher,
        *,
        ids_before: Iterable[str] = (),
        connect: Connect = sqlite3.connect,
    ) -> Self:
        """Create a journal in which all operations are planned; it is on the disk when this returns.

        Raises `JournalError` if the path exists already, or cannot be written.
        """
        what = f"nothing is sent without a journal, and no journal can be made at {path}"
        with raise_os_errors_as(JournalError, what, "correct the folder, or pass another journal="):
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except FileExistsError:
                hint = resume_hint(path) + "; a new run needs another path"
                raise JournalError(f"{path} already exists", hint=hint) from None
        try:
            header_bytes = msgspec.json.encode(header)
            with _open_database(connect, path, writes=True, hint=NOTHING_SENT) as database:
                journal = cls(path, header, cipher, database, header_bytes)
                journal._fill(entries, ids_before, header_bytes)
                return journal
        except BaseException:  # Ctrl-C as well: no journal of a run that never began stays behind
            remove(path)
            raise

    @classmethod
    def open(
        cls, path: Path, cipher: LocalCipher, *, writes: bool = False, connect: Connect = sqlite3.connect
    ) -> Self:
        """Open a journal; if the cipher has no keys, only what is not sealed can be read.

        Raises `JournalError` if the file is not a journal, is damaged or in use, if it was sealed with a key that is
        not here, or if its header was changed.
        """
        if not _size_of(path):  # another process may be creating it just now: a lock on it would stop that
            raise _never_began(path)
        with _open_database(connect, path, writes=writes) as database:
            header, header_bytes = _read_header(database, path)
            journal = cls(path, header, cipher, database, header_bytes)
            if cipher.keys:  # all sealed values are bound to this header, so it is authenticated first
                mark = journal._read("SELECT value FROM header WHERE name = 'mark'")
                if not mark:
                    raise _damaged(path, "its header cannot be authenticated")
                try:
                    journal._open(mark[0][0], "header", None)
                except JournalError as fault:
                    raise JournalError(
                        f"the journal {path} cannot be trusted, so nothing is sent from it: {fault}"
                    ) from None
            return journal

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; nothing is lost if this is not called."""
        self._database.close()

    # -- reading

    def operations(self) -> list[Operation]:
        """Read all operations in the order of the plan."""
        query = "SELECT n, state, details, change FROM operations LEFT JOIN entries USING (n) ORDER BY n"
        rows = self._read(query)
        if len(rows) != self.header.n_changes:
            raise _damaged(self.path, f"{len(rows):,} of {self.header.n_changes:,} changes are there")
        operations = []
        for n, state, details, sealed in rows:
            if sealed is None:
                raise _damaged(self.path, f"change {n} is missing")
            change = self._decode(sealed, Change, "change", n)
            found = OperationState()
            if details is not None:
                found = self._decode(details, OperationState, "state", n)
            if found.state != state:
                raise _damaged(self.path, f"the state of change {n} was changed")
            operations.append(Operation(n=n, change=change, **asdict(found)))
        return operations

    def requests(self, places: Iterable[int]) -> dict[int, SecretBytes]:
        """Read the bodies of requests, byte for byte as they were frozen, by number; deletes have none."""
        query = (
            "SELECT n, request FROM entries "
            "WHERE n IN (SELECT value FROM json_each(?)) AND request IS NOT NULL"
        )
        rows = self._read(query, json.dumps([*places]))
        return {n: SecretBytes(self._open(sealed, "request", n)) for n, sealed in rows}

    def backup(self, n: int) -> MemoryBlob | None:
        """Read the whole memory of an operation, as it was before its request was sent."""
        found = self._read("SELECT backup FROM entries WHERE n = ? AND backup IS NOT NULL", n)
        return self._decode(found[0][0], MemoryBlob, "backup", n) if found else None

    @property
    def ids_before(self) -> frozenset[str]:
        """Ids of all memories that existed before the first create was sent; empty for a run without creates."""
        ((sealed,),) = self._read("SELECT value FROM header WHERE name = 'ids_before'")
        return frozenset(self._decode(sealed, list[str], "ids before"))

    def counts(self) -> dict[JournalState, int]:
        """Count the operations in each state, as they are on the disk."""
        return dict(self._read("SELECT state, count(*) FROM operations GROUP BY state"))

    def _read(self, query: str, *parameters: object) -> list[Any]:
        with _sqlite_errors(self.path):
            return self._database.execute(query, parameters).fetchall()

    # -- writing

    def record(
        self, operations: Iterable[Operation], backups: Mapping[int, MemoryBlob] | None = None
    ) -> None:
        """Write the states of operations, and newer backups, in one commit; on the disk when this returns.

        Raises `JournalError` if they could not be written; then none of them was.
        """
        rows = []
        for op in operations:
            details = OperationState(**{name: getattr(op, name) for name in OperationState.__struct_fields__})
            rows.append((op.state, self._seal(details, "state", op.n), op.n))
        copies = [(self._seal(blob, "backup", n), n) for n, blob in (backups or {}).items()]
        with self._writing() as database:
            database.executemany("UPDATE operations SET state = ?, details = ? WHERE n = ?", rows)
            if copies:
                database.executemany("UPDATE entries SET backup = ? WHERE n = ?", copies)

    def _fill(self, entries: Iterable[Entry], ids_before: Iterable[str], text: bytes) -> None:
        head = [
            ("header", text),
            ("mark", self._seal(b"", "header")),
            ("ids_before", self._seal([*ids_before], "ids before")),
        ]
        sealed = (
            (
                n,
                self._seal(change, "change", n),
                None if body is None else self._seal(body, "request", n),
                None if memory is None else self._seal(memory, "backup", n),
            )
            for n, (change, body, memory) in enumerate(entries)
        )
        with self._writing(NOTHING_SENT) as database:
            for statement in JOURNAL_TABLES:
                database.execute(statement)
            database.executemany("INSERT INTO header VALUES (?, ?)", head)
            database.executemany("INSERT INTO entries VALUES (?, ?, ?, ?)", sealed)
            database.execute("INSERT INTO operations SELECT n, 'planned', NULL FROM entries")

    @contextmanager
    def _writing(self, hint: Hint | None = None) -> Iterator[sqlite3.Connection]:
        if os.getpid() != self._process:
            raise JournalError(
                f"{self.path} was opened by process {self._process}: a fork of that process cannot write to it"
            )
        with _sqlite_errors(self.path, hint):
            try:
                self._database.execute("BEGIN IMMEDIATE")
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:  # Ctrl-C as well: all of it is written, or none
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    # -- sealing

    def _place(self, what: str, n: int | None) -> str:
        """Name the place of a sealed value, which does not open at another place or in another run."""
        return f"run {self.header.run_id}, {what}" + ("" if n is None else f" of change {n}")

    def _open(self, sealed: bytes, what: str, n: int | None) -> bytes:
        return self._cipher.open(
            sealed, associated_data=self._place(what, n), extra_associated_data=self._header_digest
        )

    def _seal(self, value: object, what: str, n: int | None = None) -> bytes:
        """Seal bytes, or the JSON of another value, in which half of a surrogate pair is kept."""
        try:
            data = value if isinstance(value, bytes) else msgspec.json.encode(value)
        except UnicodeEncodeError:
            data = json.dumps(msgspec.to_builtins(value)).encode()
        return self._cipher.seal(
            data, associated_data=self._place(what, n), extra_associated_data=self._header_digest
        )

    def _decode(self, sealed: bytes, kind: type[T], what: str, n: int | None = None) -> T:
        try:
            return decode(SecretBytes(self._open(sealed, what, n)), kind, what=what)
        except ProtocolError:
            fault = _damaged(self.path, f"its {what} is of another form")
        raise fault  # outside of except, because the cause may quote the record


# -- the file


def remove(path: Path) -> None:
    """Remove a journal, with the files that SQLite keeps beside it."""
    for ending in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


@contextmanager
def _open_database(
    connect: Connect, path: Path, *, writes: bool, hint: Hint | None = None
) -> Iterator[sqlite3.Connection]:
    """Open an existing database, and close it if the block fails; if it ``writes``, it is locked while open."""
    place = path.absolute().as_posix()
    root = "" if place[0] == "/" else "/"  # before the letter of a drive
    # mode=rw, because SQLite would create a file that was just removed
    address = f"file://{root}{quote(os.fsencode(place))}?mode=rw"
    with _sqlite_errors(path, hint):
        database = connect(address, timeout=0, isolation_level=None, uri=True)
        try:
            if writes:
                database.execute("PRAGMA locking_mode = EXCLUSIVE")
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = FULL")
            yield database
        except BaseException:  # Ctrl-C as well: an open database would stay locked
            database.close()
            raise


def _read_header(database: sqlite3.Connection, path: Path) -> tuple[Header, bytes]:
    """Check that a database is whole and of the known format; return its header, and the header's bytes."""
    application, form = (
        database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    if application != APPLICATION_ID:
        raise _never_began(path)
    if form != JOURNAL_FORMAT:
        raise JournalError(
            f"{path} is a journal of format {form}, this version of memframe reads {JOURNAL_FORMAT}: use the version "
            "that wrote it"
        )
    if _size_of(path) % database.execute("PRAGMA page_size").fetchone()[0]:
        raise _damaged(path, "cut short")  # SQLite would read the missing part of the last page as zeros
    found = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise _damaged(path, found)
    row = database.execute("SELECT value FROM header WHERE name = 'header'").fetchone()
    try:
        return msgspec.json.decode(row[0], type=Header), row[0]
    except (msgspec.MsgspecError, TypeError, ValueError):
        raise _damaged(path, "its header cannot be read") from None


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # perhaps removed by another process
        raise _absent(path) from None


# -- errors


def _never_began(path: Path) -> JournalError:
    return JournalError(
        f"{path} is not a journal of memframe, or its run never began and sent nothing: check the path"
    )


NOTHING_SENT = Hint(*["apply the plan again: nothing was sent"] * 2)
KNOWN_RUNS = Hint("list_runs() shows those of this user", "memframe runs shows those of this user")


def _absent(path: Path) -> JournalError:
    return JournalError(f"there is no journal {path}: check the path", hint=KNOWN_RUNS)


def _damaged(path: Path, how: str) -> JournalError:
    return JournalError(
        f"the journal {path} is damaged ({how}), so nothing is sent from it: restore a copy, or load the memories "
        "and make a new plan"
    )


_REASONS = {
    "SQLITE_FULL": (errno.ENOSPC, "the disk is full: free some space"),
    "SQLITE_IOERR": (errno.EIO, "the disk fails or is full: free some space, or move the journal"),
    "SQLITE_READONLY": (errno.EROFS, "it is read-only: correct its permissions, or copy it to another disk"),
    "SQLITE_CANTOPEN": (errno.EACCES, "it cannot be opened: correct the folder's permissions"),
    "SQLITE_BUSY": (errno.EBUSY, "another process uses it: wait until that ends"),
}
"""Error numbers and words, by the beginning of the name of SQLite's error."""


def _is_on_read_only_disk(path: Path) -> bool:
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except (OSError, AttributeError):  # Windows cannot tell
        return False


@contextmanager
def _sqlite_errors(path: Path, hint: Hint | None = None) -> Iterator[None]:
    """Turn errors of SQLite into `JournalError`, with the next step after the cause; by default, to resume the run."""
    try:
        yield
    except sqlite3.Error as fault:
        name = getattr(fault, "sqlite_errorname", "")
        if name.startswith("SQLITE_CANTOPEN") and not path.exists():
            raise _absent(path) from None
        if name.startswith(("SQLITE_CANTOPEN", "SQLITE_IOERR")) and _is_on_read_only_disk(path):
            name = "SQLITE_READONLY"
        for beginning, (number, words) in _REASONS.items():
            if name.startswith(beginning):
                refusal = JournalError(
                    f"the journal {path} cannot be written or read: {words}; then",
                    hint=hint or resume_hint(path),
                )
                refusal.errno = number
                raise refusal from None
        if name == "SQLITE_NOTADB":
            raise JournalError(
                f"{path} is not a journal, or its beginning is damaged, so nothing is sent from it: check the path, or "
                "restore a copy"
            ) from None
        raise _damaged(path, str(fault)) from None
