"""The journal of one run: an SQLite file with every intent on the disk before its request leaves, contents sealed.

In the open are states, counts, addresses, and the ids of the run, its plan, its access request and its user. Changes
with the ids of memories, requests, backups and errors are sealed with the local data key, each bound to its place and
to the header of its run. The memory key and the token are never in it: they are put in when a request leaves.
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
"""Outcome of an operation; ``recovered`` is done by a request whose answer got lost."""

STATUSES: tuple[Status, ...] = get_args(Status)

JournalState = Literal[Status, "sending"]
"""The same while a run goes on: ``sending`` is an operation whose intent is on the disk and whose answer is not."""

SETTLED: frozenset[JournalState] = frozenset({"done", "recovered", "rejected", "conflict"})
"""States that are final."""

WRITTEN: frozenset[JournalState] = frozenset({"done", "recovered"})
"""States in which the service holds what was to be written."""


class Header(Struct, frozen=True, kw_only=True):
    """The run that a journal records."""

    run_id: str
    """Idempotency keys begin with it."""
    base_url: str
    user_id: str
    request_id: str
    """Access request by which the run writes."""
    key_version: int
    """Version of the key under which content was sealed."""
    plan_id: str
    created_at: datetime
    """UTC."""
    memframe: str
    """Version of memframe that began the run."""
    n_changes: int
    """Number of operations."""
    encrypt: bool = True
    """True if content goes out sealed; False for a service that seals plain text by itself."""


class OperationState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of an operation that changes during a run."""

    state: JournalState = "planned"
    new_id: str | None = None
    """Id of the memory that a create has made."""
    attempts: int = 0
    """Requests that left for the service, or were about to."""
    ambiguous: bool = False
    """True if one of them may have been carried out though its answer got lost."""
    http_status: int | None = None
    """HTTP status of the last response."""
    error: str | None = None
    """Reason in words for people why it is not done."""
    normalized: dict[str, Value] = {}
    """Fields that the service stores in its own way, such as tags in small letters, as it answered."""


class Operation(OperationState, frozen=True, kw_only=True):
    """One write of a run: its place ``n``, the change that was planned, and what has become of it."""

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
        """The state as an outcome: whether an operation was carried out that is being sent is unknown."""
        return "unknown" if self.state == "sending" else self.state

    @property
    def restores(self) -> str | None:
        """Id of the deleted memory that a create brings back.

        Where ``id`` is the same, the service has restored that one, else it has made a new one, dated of the day of
        the run.
        """
        return self.change.restores


# -- the journal


Connect = Callable[..., sqlite3.Connection]
"""`sqlite3.connect`, or what a test has in its place."""

Entry = tuple[Change, bytes | None, MemoryBlob | None]
"""A change, the body of its request but for the memory key (None for a delete), and the memory as it was read before
(None for a create)."""

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
"""States, which change often, are apart from what is large: SQLite writes a whole row again for one of its cells.
The details of an operation that was not begun are missing."""


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
        """Create a journal with all operations planned, on the disk when this returns.

        Raises `JournalError` if there is something at the path already, or it cannot be written.
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
            with _open_database(connect, path, writes=True) as database:
                journal = cls(path, header, cipher, database, header_bytes)
                journal._fill(entries, ids_before, header_bytes)
                return journal
        except BaseException as fault:  # Ctrl-C as well: what was never begun is not left behind
            remove(path)
            if not isinstance(fault, JournalError) or fault.hint is None:
                raise
            cause = str(fault).removesuffix(fault.hint.python)
            refusal = JournalError(f"{cause}apply the plan again, of which nothing was sent")
            refusal.errno = fault.errno
            raise refusal from None

    @classmethod
    def open(
        cls, path: Path, cipher: LocalCipher, *, writes: bool = False, connect: Connect = sqlite3.connect
    ) -> Self:
        """Open a journal; with a cipher without keys only what is not sealed can be read.

        Raises `JournalError` if it is none, damaged, in use, sealed with a key that is not here, or its header was
        changed.
        """
        if not _size_of(path):  # perhaps being made just now: a lock on it would stop that
            raise _never_began(path)
        with _open_database(connect, path, writes=writes) as database:
            header, header_bytes = _read_header(database, path)
            journal = cls(path, header, cipher, database, header_bytes)
            if cipher.keys:  # everything sealed here is bound to this very header
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
        """Close the file; nothing is lost by leaving that out."""
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
        """Read the bodies of requests, to the byte as they were frozen; that of a delete is missing."""
        query = (
            "SELECT n, request FROM entries "
            "WHERE n IN (SELECT value FROM json_each(?)) AND request IS NOT NULL"
        )
        rows = self._read(query, json.dumps([*places]))
        return {n: SecretBytes(self._open(sealed, "request", n)) for n, sealed in rows}

    def backup(self, n: int) -> MemoryBlob | None:
        """Read a memory whole, as it was before its write left."""
        found = self._read("SELECT backup FROM entries WHERE n = ? AND backup IS NOT NULL", n)
        return self._decode(found[0][0], MemoryBlob, "backup", n) if found else None

    @property
    def ids_before(self) -> frozenset[str]:
        """Ids of all memories that were there before the first create left; empty for a run without creates."""
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

        Raises `JournalError` if it could not be written; nothing of it was.
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
        with self._writing() as database:
            for statement in JOURNAL_TABLES:
                database.execute(statement)
            database.executemany("INSERT INTO header VALUES (?, ?)", head)
            database.executemany("INSERT INTO entries VALUES (?, ?, ?, ?)", sealed)
            database.execute("INSERT INTO operations SELECT n, 'planned', NULL FROM entries")

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        if os.getpid() != self._process:
            raise JournalError(
                f"{self.path} was opened by process {self._process}: a fork of it cannot write to it"
            )
        with _sqlite_errors(self.path):
            try:
                self._database.execute("BEGIN IMMEDIATE")
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:  # Ctrl-C as well: all of it is written, or nothing
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    # -- sealing

    def _place(self, what: str, n: int | None) -> str:
        """Name the place of a sealed value: at another one, or in another run, it does not open."""
        return f"run {self.header.run_id}, {what}" + ("" if n is None else f" of change {n}")

    def _open(self, sealed: bytes, what: str, n: int | None) -> bytes:
        return self._cipher.open(
            sealed, associated_data=self._place(what, n), extra_associated_data=self._header_digest
        )

    def _seal(self, value: object, what: str, n: int | None = None) -> bytes:
        """Seal bytes, or the JSON of something else; half of a surrogate pair in it is kept as it came."""
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
        raise fault  # out here, as what it came from may quote the record


# -- the file


def remove(path: Path) -> None:
    """Remove a journal, with the files that SQLite keeps beside it."""
    for ending in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


@contextmanager
def _open_database(connect: Connect, path: Path, *, writes: bool) -> Iterator[sqlite3.Connection]:
    """Open the database, which must be there, and close it if the block fails; to write, it is locked while open."""
    place = path.absolute().as_posix()
    root = "" if place[0] == "/" else "/"  # before the letter of a drive
    # else SQLite makes one that was just removed
    address = f"file://{root}{quote(os.fsencode(place))}?mode=rw"
    with _sqlite_errors(path):
        database = connect(address, timeout=0, isolation_level=None, uri=True)
        try:
            if writes:
                database.execute("PRAGMA locking_mode = EXCLUSIVE")
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = FULL")
            yield database
        except BaseException:  # Ctrl-C as well: nobody else could open what is held
            database.close()
            raise


def _read_header(database: sqlite3.Connection, path: Path) -> tuple[Header, bytes]:
    """Read the header of a database that is whole and of the known format, and its bytes to authenticate."""
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
        raise _damaged(path, "cut short")  # SQLite reads zeros for what is missing of its last page
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
        f"{path} is not a journal of memframe, or of a run that never began and sent nothing: check the path"
    )


KNOWN_RUNS = Hint("list_runs() shows those of this user", "memframe runs shows those of this user")


def _absent(path: Path) -> JournalError:
    return JournalError(f"there is no journal {path}: check the path", hint=KNOWN_RUNS)


def _damaged(path: Path, how: str) -> JournalError:
    return JournalError(
        f"the journal {path} is damaged ({how}), so nothing is sent from it: restore a copy, or load the memories "
        "and plan again from what is there"
    )


_REASONS = {
    "SQLITE_FULL": (errno.ENOSPC, "the disk is full: free some space"),
    "SQLITE_IOERR": (errno.EIO, "the disk fails or is full: free some space, or move the journal"),
    "SQLITE_READONLY": (errno.EROFS, "it is read-only: correct its permissions"),
    "SQLITE_CANTOPEN": (errno.EACCES, "it cannot be opened: correct the folder's permissions"),
    "SQLITE_BUSY": (errno.EBUSY, "another process uses it: wait until that ends"),
}
"""Error numbers and words, by how the name of SQLite's error begins."""


@contextmanager
def _sqlite_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into `JournalError`."""
    try:
        yield
    except sqlite3.Error as fault:
        name = getattr(fault, "sqlite_errorname", "")
        if name.startswith("SQLITE_CANTOPEN") and not path.exists():
            raise _absent(path) from None
        for beginning, (number, words) in _REASONS.items():
            if name.startswith(beginning):
                refusal = JournalError(
                    f"the journal {path} cannot be written or read: {words}; then", hint=resume_hint(path)
                )
                refusal.errno = number
                raise refusal from None
        if name == "SQLITE_NOTADB":
            raise JournalError(
                f"{path} is not a journal, or its beginning is damaged, so nothing is sent from it: check the path, or "
                "restore a copy"
            ) from None
        raise _damaged(path, str(fault)) from None
