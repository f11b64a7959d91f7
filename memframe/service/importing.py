"""Import memories and tags from elsewhere, with their times; content is plain text.

`import_memories` imports records in one transaction; a second call imports them again. `run_import` imports the rows of
a file in batches while the service continues to run. It imports each row once, however often the file is imported,
because it stores a keyed digest of origin and text in the transaction that creates the memory. `undo_import` reverts
a run by its id, also in batches.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, NamedTuple, Protocol, cast, runtime_checkable
from uuid import uuid4

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace
from sqlalchemy import func, select

from memframe.errors import InvalidError, NotFoundError
from memframe.service import validation
from memframe.service.clock import format_instant
from memframe.service.deployment import Deployment
from memframe.service.logs import log_event
from memframe.service.store.engine import SqlStatement, fetch_all, insert_into
from memframe.service.store.memories import TAG_COLOR, Memories
from memframe.service.store.schema import imported_memories, imports
from memframe.wire import MAX_SCORES

IMPORT_BATCH = 500
"""Rows per transaction; other writers have their turn between two transactions."""

ZonedTime = Annotated[datetime, Meta(tz=True)]
"""A time with a zone."""


class ForeignRecord(Struct, frozen=True, kw_only=True):
    """Imported fields of a memory that are not stored unchanged; the memory gets a new id."""

    content: str
    origin_id: str | None = None
    tags: tuple[str, ...] | None = None
    created_at: ZonedTime | None = None
    updated_at: ZonedTime | None = None


ForeignMemory = msgspec.defstruct(
    "ForeignMemory",
    [
        *((name, str | None, None) for name in validation.PLAIN_TEXTS),
        *((name, float | None, None) for name in MAX_SCORES),
    ],
    bases=(ForeignRecord,),
    frozen=True,
    kw_only=True,
)
"""All imported fields of a memory."""


class ForeignTag(Struct, frozen=True, kw_only=True):
    """Imported fields of a tag."""

    name: str
    color: str | None = None
    description: str | None = None
    is_enabled: bool = True
    created_at: ZonedTime | None = None
    updated_at: ZonedTime | None = None


def import_memories(
    deployment: Deployment, user_id: str, memories: Iterable[object], tags: Iterable[object] = ()
) -> None:
    """Import memories and tags of a user, all or none: see `LocalService.import_memories`.

    Fields that `ForeignMemory` and `ForeignTag` do not have, such as ``id`` and ``user_id``, are ignored. A missing
    time is replaced by the present one. In a frame, None, NaN, NaT and NA count as missing.
    """
    with deployment.store.transaction_of(user_id) as user_store:
        for name, record in _iter_records(tags, "tag"):
            with _name_errors(name):
                tag = msgspec.convert(record, ForeignTag, from_attributes=True)
                (tag_name,) = validation.check_tag_names([tag.name])
                described = {"color": tag.color or TAG_COLOR, "description": tag.description or ""}
                times = _format_times(tag, deployment.now())
                user_store.add_tag(name=tag_name, is_enabled=tag.is_enabled, **described, **times)
        for row in _check_memories(deployment, user_id, _iter_records(memories, "memory")):
            user_store.add({**row.columns, "content": user_store.key.envelope.seal(row.content)}, row.tags)


class CheckedMemory(NamedTuple):
    """A record that can be imported; its digest is of owner, origin, text and time of creation."""

    columns: dict[str, Any]
    content: str
    tags: tuple[str, ...]
    digest: str


def _check_memories(
    deployment: Deployment, user_id: str, records: Iterable[tuple[str, object]]
) -> Iterator[CheckedMemory]:
    for name, record in records:
        with _name_errors(name):
            memory = cast("ForeignRecord", msgspec.convert(record, ForeignMemory, from_attributes=True))
            content = validation.check_text(memory.content, "content")
            known = [user_id, memory.origin_id, content, memory.created_at]
            tags = validation.check_tag_names(memory.tags or ())
            columns = validation.check_columns(memory) | _format_times(memory, deployment.now())
            digest = deployment.master_key.digest("imports", msgspec.json.encode(known))
            yield CheckedMemory(columns, content, tags, digest)


def _format_times(record: ForeignRecord | ForeignTag, now: datetime) -> dict[str, str]:
    created_at = record.created_at or now
    times = {"created_at": created_at, "updated_at": record.updated_at or created_at}
    return {name: format_instant(moment) for name, moment in times.items()}


# Runs

_DIGESTS = SqlStatement("SELECT digest FROM imported_memories WHERE user_id = :user_id")
_FIND_ROW = SqlStatement(
    "SELECT import_id FROM imported_memories WHERE user_id = :user_id AND digest = :digest"
)
_ADD_ROW = insert_into(imported_memories)
_FORGET_ROW = SqlStatement("DELETE FROM imported_memories WHERE user_id = :user_id AND digest = :digest")
_ROWS_OF_RUN = SqlStatement(
    "SELECT digest, memory_id, updated_at FROM imported_memories "
    "WHERE user_id = :user_id AND import_id = :import_id"
)
_ROW_OF_RUN = SqlStatement("SELECT digest FROM imported_memories WHERE import_id = :import_id LIMIT 1")
_UNFINISHED = SqlStatement(
    "SELECT id FROM imports WHERE user_id = :user_id AND file_digest = :file_digest AND finished_at IS NULL"
)
_BEGIN = insert_into(imports)
_FINISH = SqlStatement("UPDATE imports SET finished_at = :now WHERE id = :import_id")
_FORGET_RUN = SqlStatement("DELETE FROM imports WHERE id = :import_id")


class StoredImport(Struct, frozen=True):
    """A run of an import, with the number of memories that it created."""

    id: str
    user_id: str
    started_at: datetime
    finished_at: datetime | None
    n_memories: int


def list_imports(deployment: Deployment) -> list[StoredImport]:
    number = func.count(imported_memories.c.digest).label("n_memories")
    shown = [imports.c[name] for name in ("id", "user_id", "started_at", "finished_at")]
    query = (
        select(*shown, number)
        .outerjoin(imported_memories, imported_memories.c.import_id == imports.c.id)
        .group_by(*shown)
        .order_by(imports.c.started_at.desc(), imports.c.id)
    )
    with deployment.store.engine.connect() as connection:
        return fetch_all(connection, StoredImport, query)


class ImportRun(Struct, frozen=True, kw_only=True):
    """Result or preview of an import; `id` is None if nothing was written.

    Each row is new, known from an earlier import, repeated in the file, or outdated as its source says.
    """

    id: str | None = None
    n_rows: int
    n_new: int
    n_known: int
    n_repeated: int
    n_outdated: int
    n_undated: int
    """New rows without a time of creation; they get the time of the import."""
    not_stored: dict[str, int]
    """Columns for which a memory has no field, and the number of new rows that fill them."""


def run_import(
    deployment: Deployment,
    user_id: str,
    memories: Iterable[object],
    *,
    applies: bool = True,
    with_outdated: bool = False,
) -> ImportRun:
    """Create the memories of a file that were not imported before, or only count them unless it `applies`.

    Rows whose column ``outdated`` says why their source considers them outdated are left out unless `with_outdated`.
    All rows are checked before the first is written. An interrupted run continues under its id when the same file is
    imported again.
    """
    given = list(_iter_records(memories, "memory"))
    records = [(name, record) for name, record in given if with_outdated or not _is_outdated(record)]
    rows = list(_check_memories(deployment, user_id, records))
    digests = "".join(sorted({row.digest for row in rows}))
    file_digest = deployment.master_key.digest("imports", digests.encode())
    with deployment.store.transaction_of(user_id) as user_store:
        known = {digest for (digest,) in user_store.queries.rows(_DIGESTS, user_id=user_store.user_id)}
        # reversed, so that the first of equal rows remains
        first_of = {row.digest: number for number, row in reversed([*enumerate(rows)])}
        chosen = sorted(number for digest, number in first_of.items() if digest not in known)
        new = [rows[number] for number in chosen]
        n_known = sum(row.digest in known for row in rows)
        preview = ImportRun(
            n_rows=len(given),
            n_new=len(new),
            n_known=n_known,
            n_repeated=len(rows) - n_known - len(new),
            n_outdated=len(given) - len(records),
            n_undated=sum(_cell(records[number][1], "created_at") is None for number in chosen),
            not_stored=_count_not_stored(records[number][1] for number in chosen),
        )
        if not (new and applies):
            return preview
        this = {"user_id": user_id, "file_digest": file_digest}
        if (broken_off := user_store.queries.row(_UNFINISHED, **this)) is not None:
            import_id = str(broken_off[0])
        else:
            import_id, started_at = str(uuid4()), format_instant(user_store.now)
            user_store.queries.run(_BEGIN, id=import_id, **this, started_at=started_at, finished_at=None)
    n_created = 0
    for first in range(0, len(new), IMPORT_BATCH):
        with deployment.store.transaction_of(user_id) as user_store:
            n_created += _import_batch(user_store, import_id, new[first : first + IMPORT_BATCH])
    with deployment.store.transaction_of(user_id) as user_store:
        user_store.queries.run(_FINISH, import_id=import_id, now=format_instant(user_store.now))
    log_event("memories imported", user_id=user_id, import_id=import_id)
    n_meanwhile = len(new) - n_created
    return replace(preview, id=import_id, n_new=n_created, n_known=preview.n_known + n_meanwhile)


_OURS = {*ForeignMemory.__struct_fields__, "id", "user_id", "tag_ids", "place", "file", "line", "outdated"}
"""Columns for which a memory has a field, or that say where the row is in its file."""


def _cell(record: object, name: str) -> object:
    return record.get(name) if isinstance(record, Mapping) else getattr(record, name, None)


def _is_outdated(record: object) -> bool:
    return _cell(record, "outdated") not in (None, "")


def _count_not_stored(records: Iterable[object]) -> dict[str, int]:
    """Count the cells whose value is in no field of a memory, by column."""
    counts: Counter[str] = Counter()
    for record in records:
        if isinstance(record, Mapping):
            others = {
                name: cell for name, cell in record.items() if name not in _OURS and cell not in (None, "")
            }
            held = {str(record.get(name)) for name in _OURS} if others else set()
            counts.update(str(name) for name, cell in others.items() if str(cell) not in held)
    return dict(counts.most_common())


def _import_batch(user_store: Memories, import_id: str, batch: Iterable[CheckedMemory]) -> int:
    """Create the memories that no other process has imported meanwhile; return their number."""
    number = 0
    for row in batch:
        this = {"user_id": user_store.user_id, "digest": row.digest}
        if user_store.queries.row(_FIND_ROW, **this) is None:
            new = user_store.add(
                {**row.columns, "content": user_store.key.envelope.seal(row.content)}, row.tags
            )
            created = {"memory_id": new.id, "updated_at": str(new.updated_at)}
            user_store.queries.run(_ADD_ROW, **this, **created, import_id=import_id)
            number += 1
    return number


class UndoneImport(Struct, frozen=True):
    """Numbers of the memories that an undone import had created.

    They were deleted by the undo, kept because they had been changed, or already gone.
    """

    id: str
    n_deleted: int
    n_changed: int
    n_gone: int


def undo_import(deployment: Deployment, run: StoredImport) -> UndoneImport:
    """Delete the memories of an import that nobody has changed since, in batches while the service continues.

    A memory and the record of its import are deleted in one transaction. After an interruption, `list_imports` counts
    the memories that are left, and a second call deletes them.
    """
    this = {"user_id": run.user_id, "import_id": run.id}
    with deployment.store.snapshot_of(run.user_id) as user_store:
        rows = user_store.queries.rows(_ROWS_OF_RUN, **this)
    numbers: Counter[str] = Counter()
    for first in range(0, len(rows), IMPORT_BATCH):
        with deployment.store.transaction_of(run.user_id) as user_store:
            numbers.update(_undo_row(user_store, *row) for row in rows[first : first + IMPORT_BATCH])
    with deployment.store.transaction_of(run.user_id) as user_store:
        if user_store.queries.row(_ROW_OF_RUN, import_id=run.id) is None:
            user_store.queries.run(_FORGET_RUN, import_id=run.id)
    log_event("import undone", **this)
    return UndoneImport(run.id, *(numbers[name] for name in ("deleted", "changed", "gone")))


def _undo_row(user_store: Memories, digest: str, memory_id: str, imported_at: str) -> str:
    """Delete one imported memory unless it was changed, and forget its import; return what became of it."""
    try:
        is_changed = user_store.get(memory_id).updated_at != imported_at
    except NotFoundError:
        outcome = "gone"
    else:
        if is_changed:
            return "changed"
        user_store.delete(memory_id)
        outcome = "deleted"
    user_store.queries.run(_FORGET_ROW, user_id=user_store.user_id, digest=digest)
    return outcome


# Records


def _iter_records(given: Any, kind: str) -> Iterator[tuple[str, object]]:
    """Yield each record with its name for messages; rows of a frame are named by their labels."""
    if hasattr(given, "to_pandas"):
        raise validation.invalid(f"a {_type_of(given)} is not a pandas frame: convert it with .to_pandas()")
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise validation.invalid(
            f"a {_type_of(given)} is not a list of records: pass a DataFrame, or its to_dict('records')"
        )
    records: Iterable[object] = given
    names: Iterable[str] = (f"{kind} {place}" for place in itertools.count())
    if isinstance(given, _Frame):
        names = (f"the {kind} in row {label}" for label in given.index)
        records = given.to_dict("records")
    for name, record in zip(names, records, strict=False):
        yield name, _to_python(record) if isinstance(record, Mapping) else record


@runtime_checkable
class _Frame(Protocol):
    """A pandas DataFrame; the service does not import pandas."""

    index: Iterable[object]

    def to_dict(self, orient: str) -> list[dict[str, Any]]: ...


def _type_of(given: object) -> str:
    return f"{type(given).__module__.partition('.')[0]}.{type(given).__name__}".removeprefix("builtins.")


def _to_python(record: Mapping[str, Any]) -> dict[str, Any]:
    """Convert cells to Python types, without those that are missing."""
    cells = {
        name: cell.tolist() if hasattr(cell, "tolist") else cell  # of NumPy
        for name, cell in record.items()
        if type(cell).__name__ not in ("NaTType", "NAType")
    }
    return {
        name: cell.to_pydatetime(warn=False) if hasattr(cell, "to_pydatetime") else cell
        for name, cell in cells.items()
        if not (isinstance(cell, float) and math.isnan(cell))
    }


@contextmanager
def _name_errors(record: str) -> Iterator[None]:
    try:
        yield
    except (msgspec.ValidationError, InvalidError) as error:
        raise validation.invalid(f"{record} cannot be imported: {error}") from None
