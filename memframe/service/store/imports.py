"""Remember what was imported from files: so that a repeated import doubles nothing, and a run can be undone.

A row is known by a keyed digest of its origin and text. It is stored in the transaction that creates the memory.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import uuid4

from msgspec import Struct
from sqlalchemy import Engine, bindparam, delete, func, insert, select, update

from memframe.service.clock import format_instant
from memframe.service.store.engine import fetch_all
from memframe.service.store.schema import imported_memories, imports
from memframe.service.store.statements import Queries, SqlStatement

_OF_USER = imported_memories.c.user_id == bindparam("user_id")
_OF_RUN = imported_memories.c.import_id == bindparam("import_id")
_DIGESTS = SqlStatement(select(imported_memories.c.digest).where(_OF_USER))
_ROWS = SqlStatement(
    select(imported_memories.c.digest, imported_memories.c.memory_id, imported_memories.c.updated_at).where(
        _OF_USER, _OF_RUN
    )
)
_KNOWN = SqlStatement(
    select(imported_memories.c.import_id).where(_OF_USER, imported_memories.c.digest == bindparam("digest"))
)
_ADD = SqlStatement(insert(imported_memories))
_FORGET = SqlStatement(
    delete(imported_memories).where(_OF_USER, imported_memories.c.digest == bindparam("digest"))
)
_UNFINISHED = SqlStatement(
    select(imports.c.id)
    .where(imports.c.user_id == bindparam("user_id"), imports.c.file_digest == bindparam("file_digest"))
    .where(imports.c.finished_at.is_(None))
)
_BEGIN = SqlStatement(insert(imports))
_FINISH = SqlStatement(
    update(imports).where(imports.c.id == bindparam("import_id")).values(finished_at=bindparam("now"))
)
_FORGET_RUN = SqlStatement(delete(imports).where(imports.c.id == bindparam("import_id")))


class ImportedRow(NamedTuple):
    """A row of a file, the memory that it became, and when that was changed last by then."""

    digest: str
    memory_id: str
    updated_at: str


class StoredImport(Struct, frozen=True):
    """A run of an import, with the number of memories that it created."""

    id: str
    user_id: str
    started_at: datetime
    finished_at: datetime | None
    n_memories: int


def list_imports(engine: Engine) -> list[StoredImport]:
    """Return all imports that can be undone, the latest first."""
    number = func.count(imported_memories.c.digest).label("n_memories")
    shown = [imports.c[name] for name in ("id", "user_id", "started_at", "finished_at")]
    query = (
        select(*shown, number)
        .outerjoin(imported_memories, imported_memories.c.import_id == imports.c.id)
        .group_by(*shown)
        .order_by(imports.c.started_at.desc(), imports.c.id)
    )
    with engine.connect() as connection:
        return fetch_all(connection, StoredImport, query)


class Imports:
    """The imports of one user, inside the transaction that creates or deletes the memories."""

    def __init__(self, queries: Queries, user_id: str, *, now: datetime) -> None:
        self._queries = queries
        self._user_id = user_id
        self._now = now

    def digests(self) -> set[str]:
        """Return the digests of all rows that were imported."""
        return {digest for (digest,) in self._queries.rows(_DIGESTS, user_id=self._user_id)}

    def knows(self, digest: str) -> bool:
        """Return True where a row with this digest was imported."""
        return self._queries.row(_KNOWN, user_id=self._user_id, digest=digest) is not None

    def begin(self, file_digest: str) -> str:
        """Return the id of an import of a file: of the one that was broken off, or a new one."""
        row = self._queries.row(_UNFINISHED, user_id=self._user_id, file_digest=file_digest)
        if row is not None:
            return str(row[0])
        new = {"id": str(uuid4()), "user_id": self._user_id, "file_digest": file_digest}
        self._queries.run(_BEGIN, **new, started_at=format_instant(self._now), finished_at=None)
        return new["id"]

    def add(self, import_id: str, row: ImportedRow) -> None:
        """Store that a row became a memory."""
        self._queries.run(_ADD, **row._asdict(), import_id=import_id, user_id=self._user_id)

    def finish(self, import_id: str) -> None:
        """Store that all rows of a file are imported."""
        self._queries.run(_FINISH, import_id=import_id, now=format_instant(self._now))

    def rows(self, import_id: str) -> list[ImportedRow]:
        """Return the rows of an import."""
        return [
            ImportedRow(*row) for row in self._queries.rows(_ROWS, user_id=self._user_id, import_id=import_id)
        ]

    def forget(self, row: ImportedRow) -> None:
        """Drop a row, which can then be imported again."""
        self._queries.run(_FORGET, user_id=self._user_id, digest=row.digest)

    def forget_run(self, import_id: str) -> None:
        """Drop an import that has no rows left."""
        self._queries.run(_FORGET_RUN, import_id=import_id)
