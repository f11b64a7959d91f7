"""The journal of one run: an SQLite file with every intent on the disk before its request leaves, contents sealed.

In the open are states, counts, ids and addresses. Changes, requests, backups and errors are sealed with the local data
key, each bound to its run and place. The memory key and the token are never in it: they are put in when a request
leaves.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import starmap
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from memframe.client.responses import decode
from memframe.errors import Hint, JournalError, ProtocolError, resume_hint
from memframe.files import raise_os_errors_as
from memframe.journal.operation import STATUSES, Header, Operation, State
from memframe.keystore import LocalCipher
from memframe.plan.change import Change, Value
from memframe.secret import SecretBytes
from memframe.wire import MemoryBlob

T = TypeVar("T")

Connect = Callable[..., sqlite3.Connection]
"""`sqlite3.connect`, or what a test has in its place."""

Entry = tuple[Change, bytes | None, MemoryBlob | None]
"""A change, the body of its request but for the memory key (None for a delete), and the memory as it was read before
(None for a create)."""

APPLICATION_ID = 0x6D66_726A  # "mfrj", in the head of the file
FORMAT = 2
FORMATS = {1, FORMAT}
"""Formats that are read; in the first the header was not authenticated."""

_IN_STATES = f"CHECK (state IN {(*STATUSES, 'sending')})"

TABLES = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
    "CREATE TABLE header (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    f"CREATE TABLE operations (n INTEGER PRIMARY KEY, state TEXT NOT NULL {_IN_STATES}, standing BLOB NOT NULL)",
    "CREATE TABLE drafts (n INTEGER PRIMARY KEY, change BLOB NOT NULL, request BLOB, backup BLOB)",
)
"""States, which change often, are apart from what is large: SQLite writes a whole row again for one of its cells."""

_READ_REQUESTS = (
    "SELECT n, request FROM drafts WHERE n IN (SELECT value FROM json_each(?)) AND request IS NOT NULL"
)
_READ_ALL = "SELECT n, state, standing, change FROM operations LEFT JOIN drafts USING (n) ORDER BY n"


class _Standing(
    Struct,
    frozen=True,
    omit_defaults=True,
    rename={"new_id": "id", "ambiguous": "in_doubt", "normalized": "kept"},
):
    """The sealed part of an operation's row, by the names of the file's format."""

    state: State = "planned"
    new_id: str | None = None
    attempts: int = 0
    ambiguous: bool = False
    http_status: int | None = None
    error: str | None = None
    normalized: dict[str, Value] = {}


class Journal:
    """The journal of one run, open. Made by `create` and `open`; used by one thread."""

    def __init__(
        self,
        path: Path,
        header: Header,
        cipher: LocalCipher,
        database: sqlite3.Connection,
        text: bytes | None,
    ) -> None:
        self.path, self.header = path, header
        self._cipher, self._database, self._process = cipher, database, os.getpid()
        self._bound = b"" if text is None else b"\0" + hashlib.sha256(text).digest()

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

        Raises
        ------
        JournalError
            There is something at the path already, or it cannot be written.
        """
        _make_file(path)
        try:
            with _sqlite_errors(path):
                text = msgspec.json.encode(header)
                journal = cls(path, header, cipher, _connect(connect, path, writes=True), text)
                with ExitStack() as unless_filled:
                    unless_filled.callback(journal.close)
                    journal._fill(entries, ids_before, text)
                    unless_filled.pop_all()
                return journal
        except BaseException:  # Ctrl-C as well: what was never begun is not left behind
            remove(path)
            raise

    @classmethod
    def open(
        cls, path: Path, cipher: LocalCipher, *, writes: bool = False, connect: Connect = sqlite3.connect
    ) -> Self:
        """Open a journal; with a cipher without keys only what is not sealed can be read.

        Raises
        ------
        JournalError
            It is none, damaged, in use, or sealed with a key that is not here; or its header was changed.
        """
        if not _size_of(path):  # perhaps being made just now: a lock on it would stop that
            raise _never_began(path)
        with _sqlite_errors(path):
            database = _connect(connect, path, writes=writes)
            try:
                header, text = _read_header(database, path)
                journal = cls(path, header, cipher, database, text)
                journal._check_header()
                return journal
            except BaseException:  # Ctrl-C as well: nobody else could open a journal that is held
                database.close()
                raise

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
        with _sqlite_errors(self.path):
            rows = self._database.execute(_READ_ALL).fetchall()
        if len(rows) != self.header.n_changes:
            raise _damaged(self.path, f"{len(rows):,} of {self.header.n_changes:,} changes are there")
        return [self._operation(*row) for row in rows]

    def requests(self, places: Iterable[int]) -> dict[int, SecretBytes]:
        """Read the bodies of requests, to the byte as they were frozen; that of a delete is missing."""
        with _sqlite_errors(self.path):
            rows = self._database.execute(_READ_REQUESTS, (json.dumps([*places]),)).fetchall()
        return {n: self._open(sealed, "request", n) for n, sealed in rows}

    def backup(self, n: int) -> MemoryBlob | None:
        """Read a memory whole, as it was before its write left."""
        sealed = self._one("SELECT backup FROM drafts WHERE n = ?", n)
        return None if sealed is None else self._decode(sealed, MemoryBlob, "backup", n)

    @property
    def ids_before(self) -> frozenset[str]:
        """Ids of all memories that were there before the first create left; empty for a run without creates."""
        sealed = self._one("SELECT value FROM header WHERE name = ?", "ids_before")
        return frozenset(self._decode(sealed, list[str], "ids before"))

    def counts(self) -> dict[State, int]:
        """Count the operations in each state, as they are on the disk."""
        with _sqlite_errors(self.path):
            rows = self._database.execute("SELECT state, count(*) FROM operations GROUP BY state").fetchall()
        return dict(rows)

    # -- writing

    def record(
        self, operations: Iterable[Operation], backups: Mapping[int, MemoryBlob] | None = None
    ) -> None:
        """Write where operations stand, and newer backups, in one commit; on the disk when this returns.

        Raises
        ------
        JournalError
            It could not be written; nothing of it was.
        """
        rows = [(op.state, self._seal(_standing(op), "standing", op.n), op.n) for op in operations]
        records = [(self._seal(blob, "backup", n), n) for n, blob in (backups or {}).items()]
        with self._writing() as database:
            database.executemany("UPDATE operations SET state = ?, standing = ? WHERE n = ?", rows)
            if records:
                database.executemany("UPDATE drafts SET backup = ? WHERE n = ?", records)

    def _fill(self, entries: Iterable[Entry], ids_before: Iterable[str], text: bytes) -> None:
        head = [
            ("header", text),
            ("mark", self._cipher.seal(b"", associated_data=self._place("header", None), beside=self._bound)),
            ("ids_before", self._seal(list(ids_before), "ids before")),
        ]
        with self._writing() as database:
            for statement in TABLES:
                database.execute(statement)
            database.executemany("INSERT INTO header VALUES (?, ?)", head)
            database.executemany(
                "INSERT INTO drafts VALUES (?, ?, ?, ?)", starmap(self._row, enumerate(entries))
            )
            planned = _Standing()
            rows = (
                (n, planned.state, self._seal(planned, "standing", n)) for n in range(self.header.n_changes)
            )
            database.executemany("INSERT INTO operations VALUES (?, ?, ?)", rows)

    def _row(self, n: int, entry: Entry) -> tuple[int, bytes, bytes | None, bytes | None]:
        change, body, memory = entry
        place = self._place("request", n)
        request = body and self._cipher.seal(body, associated_data=place, beside=self._bound)
        backup = None if memory is None else self._seal(memory, "backup", n)
        return n, self._seal(change, "change", n), request, backup

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

    def _check_header(self) -> None:
        """Refuse a header that is not the one to which all that is sealed here is bound."""
        if not self._bound or not self._cipher.keys:
            return
        mark = self._one("SELECT value FROM header WHERE name = ?", "mark")
        if mark is None:
            raise _damaged(self.path, "its header cannot be authenticated")
        try:
            self._open(mark, "header", None)
        except JournalError as fault:
            refusal = JournalError(
                f"the journal {self.path} cannot be trusted, so nothing is sent from it: {fault}"
            )
        else:
            return
        raise refusal

    def _operation(self, n: int, state: str, standing: bytes, change: bytes | None) -> Operation:
        if change is None:
            raise _damaged(self.path, f"change {n} is missing")
        planned = self._decode(change, Change, "change", n)
        found = self._decode(standing, _Standing, "standing", n)
        if found.state != state:
            raise _damaged(self.path, f"the state of change {n} was changed")
        return Operation(n=n, change=planned, **asdict(found))

    def _one(self, query: str, key: object) -> Any:
        with _sqlite_errors(self.path):
            row = self._database.execute(query, (key,)).fetchone()
        return row and row[0]

    def _place(self, what: str, n: int | None) -> str:
        """Name the place of a sealed value: at another one, or in another run, it does not open."""
        return f"run {self.header.run_id}, {what}" + ("" if n is None else f" of change {n}")

    def _open(self, sealed: bytes, what: str, n: int | None) -> SecretBytes:
        return SecretBytes(
            self._cipher.open(sealed, associated_data=self._place(what, n), beside=self._bound)
        )

    def _seal(self, value: object, what: str, n: int | None = None) -> bytes:
        return self._cipher.seal(_encode(value), associated_data=self._place(what, n), beside=self._bound)

    def _decode(self, sealed: bytes, kind: type[T], what: str, n: int | None = None) -> T:
        try:
            return decode(self._open(sealed, what, n), kind, what=what)
        except ProtocolError:
            fault = f"its {what} is of another form"
        raise _damaged(self.path, fault)


def _standing(operation: Operation) -> _Standing:
    return _Standing(
        operation.state,
        operation.new_id,
        operation.attempts,
        operation.ambiguous,
        operation.http_status,
        operation.error,
        operation.normalized,
    )


def _encode(value: object) -> bytes:
    """Encode JSON, also of a record with half of a surrogate pair in it, which is kept as it came."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value)).encode()


# -- the file


def remove(path: Path) -> None:
    """Remove a journal, with the files that SQLite keeps beside it."""
    for ending in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _make_file(path: Path) -> None:
    """Create an empty file where there is none, for its owner alone."""
    what = f"nothing is sent without a journal, and no journal can be made at {path}"
    with raise_os_errors_as(JournalError, what, "correct the folder, or pass another journal="):
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise JournalError(
                f"{path} is there already", hint=resume_hint(path) + "; a new run needs another path"
            ) from None


def _connect(connect: Connect, path: Path, *, writes: bool) -> sqlite3.Connection:
    """Open the database, which must be there; to write, it is locked until it is closed."""
    place = path.absolute().as_posix()
    root = "" if place[0] == "/" else "/"  # before the letter of a drive
    address = (
        f"file://{root}{quote(os.fsencode(place))}?mode=rw"  # else SQLite makes one that was just removed
    )
    database = connect(address, timeout=0, isolation_level=None, uri=True)
    try:
        if writes:
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
    except BaseException:  # Ctrl-C as well: nobody else could open what is held
        database.close()
        raise
    return database


def _read_header(database: sqlite3.Connection, path: Path) -> tuple[Header, bytes | None]:
    """Read the header of a database that is whole and of a known format, and its bytes to authenticate."""
    application, form = (
        database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    if application != APPLICATION_ID:
        raise _never_began(path)
    if form not in FORMATS:
        raise JournalError(
            f"{path} is a journal of format {form}, this memframe reads {FORMAT} at most: use that which wrote it"
        )
    if _size_of(path) % database.execute("PRAGMA page_size").fetchone()[0]:
        raise _damaged(path, "cut short")  # SQLite reads zeros for what is missing of its last page
    found = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise _damaged(path, found)
    text = database.execute("SELECT value FROM header WHERE name = 'header'").fetchone()
    try:
        return msgspec.json.decode(text[0], type=Header), text[0] if form > 1 else None
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
        f"{path} is not a journal of memframe, or of a run that never began and sent nothing: delete it"
    )


KNOWN_RUNS = Hint("list_runs() shows those of this user", "memframe runs shows those of this user")


def _absent(path: Path) -> JournalError:
    return JournalError(f"there is no journal {path}: check the path", hint=KNOWN_RUNS)


def _damaged(path: Path, how: str) -> JournalError:
    return JournalError(
        f"the journal {path} is damaged ({how}), so nothing is sent from it: restore a copy, or load the memories "
        "and plan anew from what is there"
    )


_REASONS = {
    "SQLITE_FULL": (errno.ENOSPC, "the disk is full: make room"),
    "SQLITE_IOERR": (errno.EIO, "the disk fails or is full: make room, or move the journal"),
    "SQLITE_READONLY": (errno.EROFS, "it is read-only: correct its permissions"),
    "SQLITE_CANTOPEN": (errno.EACCES, "it cannot be opened: correct the folder's permissions"),
    "SQLITE_BUSY": (errno.EBUSY, "another process uses it: wait until that is done"),
}
"""Error numbers and words, by how the name of SQLite's error begins."""


@contextmanager
def _sqlite_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into `JournalError`."""
    try:
        yield
    except sqlite3.Error as fault:
        refusal = _error_of(path, fault)
    else:
        return
    raise refusal


def _error_of(path: Path, fault: sqlite3.Error) -> JournalError:
    name = getattr(fault, "sqlite_errorname", "")
    if name.startswith("SQLITE_CANTOPEN") and not path.exists():
        return _absent(path)
    for beginning, (number, words) in _REASONS.items():
        if name.startswith(beginning):
            refusal = JournalError(
                f"the journal {path} cannot be written or read: {words}; then", hint=resume_hint(path)
            )
            refusal.errno = number
            return refusal
    return _damaged(path, str(fault))
