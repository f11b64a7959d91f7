"""The file of one run: SQLite, every intent on the disk before its request leaves, contents sealed.

What stands in it in the open are states, counts, ids and addresses; changes, requests, backups and errors are
sealed by the vault, each bound to its run and its place. The memory key and the token are never in it: they
are put in when a request leaves.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

from memframe.change import Change
from memframe.client.responses import decode
from memframe.errors import JournalError, ProtocolError
from memframe.journal.disk import (
    TABLES,
    Connect,
    checked_header,
    damaged,
    make_file,
    never_began,
    opened,
    remove,
    size_of,
    told,
)
from memframe.journal.records import Draft, Header, Operation, Standing, State
from memframe.keystore import LocalCipher
from memframe.secret import SecretBytes
from memframe.wire import MemoryBlob

T = TypeVar("T")

_READ_ALL = """
SELECT n, state, standing, change FROM operations LEFT JOIN drafts USING (n) ORDER BY n
"""


class Journal:
    """The journal of one run, open. Made by `create` and `open`; used by one thread.

    Attributes
    ----------
    path : Path
    header : Header
    """

    def __init__(
        self, path: Path, header: Header, vault: LocalCipher, database: sqlite3.Connection, text: bytes | None
    ) -> None:
        self.path, self.header = path, header
        self._vault, self._database, self._process = vault, database, os.getpid()
        self._bound = b"" if text is None else b"\0" + hashlib.sha256(text).digest()

    def __repr__(self) -> str:
        return f"<memframe journal {self.path}>"

    @classmethod
    def create(
        cls,
        path: Path,
        header: Header,
        drafts: Iterable[Draft],
        vault: LocalCipher,
        *,
        ids_before: Iterable[str] = (),
        connect: Connect = sqlite3.connect,
    ) -> Self:
        """A new journal with all operations planned, on the disk when this returns.

        Raises
        ------
        JournalError
            There is something at the path already, or it cannot be written.
        """
        make_file(path)
        try:
            with told(path):
                text = msgspec.json.encode(header)
                journal = cls(path, header, vault, opened(connect, path, writes=True), text)
                with ExitStack() as unless_filled:
                    unless_filled.callback(journal.close)
                    journal._fill(drafts, ids_before, text)
                    unless_filled.pop_all()
                return journal
        except BaseException:  # Ctrl-C as well: what was never begun is not left behind
            remove(path)
            raise

    @classmethod
    def open(
        cls, path: Path, vault: LocalCipher, *, writes: bool = False, connect: Connect = sqlite3.connect
    ) -> Self:
        """A journal that is there; with a vault that has no keys only what is not sealed can be read.

        Raises
        ------
        JournalError
            It is none, damaged, in use, or sealed with a key that is not here; or its header was changed.
        """
        if not size_of(path):  # perhaps being made just now: a lock on it would stop that
            raise never_began(path)
        with told(path):
            database = opened(connect, path, writes=writes)
            try:
                header, text = checked_header(database, path)
                journal = cls(path, header, vault, database, text)
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
        """All operations in the order of the plan, each as it stands."""
        with told(self.path):
            rows = self._database.execute(_READ_ALL).fetchall()
        if len(rows) != self.header.n_changes:
            raise damaged(self.path, f"{len(rows):,} of {self.header.n_changes:,} changes are there")
        return [self._operation(*row) for row in rows]

    def request(self, n: int) -> SecretBytes | None:
        """The body of a request, to the byte as it was frozen."""
        sealed = self._one("SELECT request FROM drafts WHERE n = ?", n)
        return None if sealed is None else self._opened(sealed, "request", n)

    def backup(self, n: int) -> MemoryBlob | None:
        """A memory whole, as it was read before its write left."""
        sealed = self._one("SELECT backup FROM drafts WHERE n = ?", n)
        return None if sealed is None else self._unsealed(sealed, MemoryBlob, "backup", n)

    @property
    def ids_before(self) -> frozenset[str]:
        """Ids of all memories that were there before the first create left; empty for a run without creates."""
        sealed = self._one("SELECT value FROM header WHERE name = ?", "ids_before")
        return frozenset(self._unsealed(sealed, list[str], "ids before"))

    def counts(self) -> dict[State, int]:
        """How many operations are in each state, by the book on the disk."""
        with told(self.path):
            rows = self._database.execute("SELECT state, count(*) FROM operations GROUP BY state").fetchall()
        return dict(rows)

    # -- writing

    def record(
        self, operations: Iterable[Operation], backups: Mapping[int, MemoryBlob] | None = None
    ) -> None:
        """Where operations stand now, and backups that are newer, in one step; on the disk when this returns.

        Raises
        ------
        JournalError
            It could not be written; nothing of it was.
        """
        rows = [(op.state, self._sealed(op.standing, "standing", op.n), op.n) for op in operations]
        records = [(self._sealed(blob, "backup", n), n) for n, blob in (backups or {}).items()]
        with self._writing() as database:
            database.executemany("UPDATE operations SET state = ?, standing = ? WHERE n = ?", rows)
            database.executemany("UPDATE drafts SET backup = ? WHERE n = ?", records)

    def _fill(self, drafts: Iterable[Draft], ids_before: Iterable[str], text: bytes) -> None:
        before = self._sealed(list(ids_before), "ids before")
        with self._writing() as database:
            for statement in TABLES:
                database.execute(statement)
            mark = self._vault.seal(b"", bound_to=self._place("header", None), beside=self._bound)
            head = [("header", text), ("mark", mark), ("ids_before", before)]
            database.executemany("INSERT INTO header VALUES (?, ?)", head)
            for n, draft in enumerate(drafts):
                standing = Standing()
                row = (n, standing.state, self._sealed(standing, "standing", n))
                database.execute("INSERT INTO operations VALUES (?, ?, ?)", row)
                database.execute("INSERT INTO drafts VALUES (?, ?, ?, ?)", self._row(n, draft))

    def _row(self, n: int, draft: Draft) -> tuple[int, bytes, bytes | None, bytes | None]:
        change = self._sealed(draft.change, "change", n)
        place = self._place("request", n)
        request = draft.request and self._vault.seal(draft.request, bound_to=place, beside=self._bound)
        backup = None if draft.backup is None else self._sealed(draft.backup, "backup", n)
        return n, change, request, backup

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        if os.getpid() != self._process:
            raise JournalError(
                f"{self.path} was opened by process {self._process}: a fork of it cannot write to it"
            )
        with told(self.path):
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
        if not self._bound or not self._vault.keys:
            return
        mark = self._one("SELECT value FROM header WHERE name = ?", "mark")
        if mark is None:
            raise damaged(self.path, "its header cannot be authenticated")
        try:
            self._opened(mark, "header", None)
        except JournalError as fault:
            refusal = JournalError(
                f"the journal {self.path} cannot be trusted, so nothing is sent from it: {fault}"
            )
        else:
            return
        raise refusal

    def _operation(self, n: int, state: str, standing: bytes, change: bytes | None) -> Operation:
        if change is None:
            raise damaged(self.path, f"change {n} is missing")
        found = Operation(
            n,
            self._unsealed(change, Change, "change", n),
            self._unsealed(standing, Standing, "standing", n),
        )
        if found.state != state:
            raise damaged(self.path, f"the state of change {n} was changed")
        return found

    def _one(self, query: str, key: object) -> Any:
        with told(self.path):
            row = self._database.execute(query, (key,)).fetchone()
        return row and row[0]

    def _place(self, what: str, n: int | None) -> str:
        """What a sealed value belongs to: in another run, or at another place of this one, it does not open."""
        return f"run {self.header.run_id}, {what}" + ("" if n is None else f" of change {n}")

    def _opened(self, sealed: bytes, what: str, n: int | None) -> SecretBytes:
        return SecretBytes(self._vault.open(sealed, bound_to=self._place(what, n), beside=self._bound))

    def _sealed(self, value: object, what: str, n: int | None = None) -> bytes:
        return self._vault.seal(_encoded(value), bound_to=self._place(what, n), beside=self._bound)

    def _unsealed(self, sealed: bytes, kind: type[T], what: str, n: int | None = None) -> T:
        try:
            return decode(self._opened(sealed, what, n), kind, what=what)
        except ProtocolError:
            fault = f"its {what} is of another form"
        raise damaged(self.path, fault)


def _encoded(value: object) -> bytes:
    """JSON, also of a record with half of a surrogate pair in it, which is kept as it came."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value)).encode()
