"""Import memories and tags from elsewhere, with their times; content is plain text.

`import_memories` takes over records in one transaction, as often as it is called. `run_import` takes over the rows of a
file, some at a time while the service goes on: each row once, however often the file is imported, and under the id of a
run that `undo_import` takes back.
"""

from __future__ import annotations

import hmac
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, NamedTuple, Protocol, runtime_checkable

import msgspec
from msgspec import Meta, Struct

from memframe.errors import InvalidError
from memframe.service import validation
from memframe.service.clock import format_instant
from memframe.service.deployment import Deployment
from memframe.service.logs import log_event
from memframe.service.store.imports import ImportedRow, StoredImport
from memframe.service.store.memories import TAG_COLOR, Memories

IMPORT_BATCH = 500
"""Rows of a transaction, after which other writers have their turn."""

Moment = Annotated[datetime, Meta(tz=True)]
"""A time with a zone."""


class ForeignMemory(Struct, frozen=True, kw_only=True):
    """Imported fields of a memory; ids are made anew."""

    content: str
    origin_id: str | None = None
    title: str | None = None
    summary: str | None = None
    tags: tuple[str, ...] | None = None
    importance: float | None = None
    confidence: float | None = None
    source: str | None = None
    created_at: Moment | None = None
    updated_at: Moment | None = None


class ForeignTag(Struct, frozen=True, kw_only=True):
    """Imported fields of a tag."""

    name: str
    color: str | None = None
    description: str | None = None
    is_enabled: bool = True
    created_at: Moment | None = None
    updated_at: Moment | None = None


def import_memories(
    deployment: Deployment, user_id: str, memories: Iterable[object], tags: Iterable[object] = ()
) -> None:
    """Import memories and tags of a user, all or none: see `LocalService.import_memories`.

    Fields that `ForeignMemory` and `ForeignTag` have not are ignored, as are ``id`` and ``user_id``. A time that is
    missing is now; what is missing in a frame (None, NaN, NaT, NA) is missing.
    """
    with deployment.store.owned(user_id) as mine:
        envelope = deployment.keyring(user_id, mine).present.envelope
        for name, record in _records(tags, "tag"):
            with _naming(name):
                tag = msgspec.convert(record, ForeignTag, from_attributes=True)
                mine.tags.add(_tag_columns(tag, deployment.now()))
        for row in _check_memories(deployment, user_id, memories):
            mine.add({**row.columns, "content": envelope.seal(row.content)}, row.tags)


class CheckedMemory(NamedTuple):
    """A record that can be imported; its digest is of owner, origin, text and time of creation."""

    columns: dict[str, Any]
    content: str
    tags: tuple[str, ...]
    digest: str


def _check_memories(
    deployment: Deployment, user_id: str, memories: Iterable[object]
) -> Iterator[CheckedMemory]:
    hash_key = deployment.master_key.first.derive("imports")
    for name, record in _records(memories, "memory"):
        with _naming(name):
            memory = msgspec.convert(record, ForeignMemory, from_attributes=True)
            content = validation.check_text(memory.content, "content")
            known = [user_id, memory.origin_id, content, memory.created_at]
            yield CheckedMemory(
                _columns(memory, deployment.now()),
                content,
                validation.check_tag_names(memory.tags or ()),
                hmac.digest(hash_key, msgspec.json.encode(known), "sha256").hex(),
            )


# Runs


class ImportRun(Struct, frozen=True):
    """Result or preview of an import; `id` is None where nothing was written."""

    id: str | None
    n_rows: int
    n_new: int
    n_known: int


def preview_import(deployment: Deployment, user_id: str, memories: Iterable[object]) -> ImportRun:
    """Check all rows, and count those that `run_import` would create; `InvalidError` names a row that is none."""
    checked = list(_check_memories(deployment, user_id, memories))
    with deployment.store.own(user_id) as mine:
        n_new = len({row.digest for row in checked} - mine.imports.digests())
    return ImportRun(None, len(checked), n_new, len(checked) - n_new)


def run_import(deployment: Deployment, user_id: str, memories: Iterable[object]) -> ImportRun:
    """Create the memories of a file that were not imported before.

    All rows are checked before the first is written. A run that is broken off goes on under its id when the same file
    is imported again.
    """
    rows = list(_check_memories(deployment, user_id, memories))
    checked = {row.digest: row for row in rows}
    hash_key = deployment.master_key.first.derive("imports")
    file_digest = hmac.digest(hash_key, "".join(sorted(checked)).encode(), "sha256").hex()
    with deployment.store.owned(user_id) as mine:
        known = mine.imports.digests()
        new = [row for digest, row in checked.items() if digest not in known]
        if not new:
            return ImportRun(None, len(rows), 0, len(rows))
        import_id = mine.imports.begin(file_digest)
    n_created = 0
    for first in range(0, len(new), IMPORT_BATCH):
        batch = new[first : first + IMPORT_BATCH]
        with deployment.store.owned(user_id) as mine:
            n_created += _import_batch(deployment, mine, user_id, import_id, batch)
    with deployment.store.owned(user_id) as mine:
        mine.imports.finish(import_id)
    log_event("memories imported", user_id=user_id, import_id=import_id)
    return ImportRun(import_id, len(rows), n_created, len(rows) - n_created)


def _import_batch(
    deployment: Deployment, mine: Memories, user_id: str, import_id: str, batch: Iterable[CheckedMemory]
) -> int:
    """Create memories; return the number of those that no other process has imported meanwhile."""
    envelope = deployment.keyring(user_id, mine).present.envelope
    number = 0
    for row in batch:
        if not mine.imports.knows(row.digest):
            created = mine.add({**row.columns, "content": envelope.seal(row.content)}, row.tags)
            mine.imports.add(import_id, ImportedRow(row.digest, created.id, str(created.updated_at)))
            number += 1
    return number


class UndoneImport(Struct, frozen=True):
    """Numbers of the memories that an undone import had created.

    Attributes
    ----------
    id : str
    n_deleted, n_changed, n_gone : int
        Deleted now; changed since, and so kept; deleted before.
    """

    id: str
    n_deleted: int
    n_changed: int
    n_gone: int


def undo_import(deployment: Deployment, run: StoredImport) -> UndoneImport:
    """Delete the memories of an import that nobody has changed since, in one transaction."""
    deleted = changed = gone = 0
    with deployment.store.owned(run.user_id) as mine:
        for row in mine.imports.rows(run.id):
            updated_at = mine.updated_at(row.memory_id)
            if updated_at not in (None, row.updated_at):
                changed += 1
                continue
            mine.imports.forget(row)
            if updated_at is None:
                gone += 1
            else:
                mine.delete(row.memory_id)
                deleted += 1
        if not changed:
            mine.imports.forget_run(run.id)
    log_event("import undone", user_id=run.user_id, import_id=run.id)
    return UndoneImport(run.id, deleted, changed, gone)


# Records


def _records(given: Any, kind: str) -> Iterator[tuple[str, object]]:
    """Yield each record with its name for messages: rows of a frame go by their labels."""
    if hasattr(given, "to_pandas"):
        raise validation.invalid(f"a {_type_of(given)} is no pandas frame: pass it on with .to_pandas()")
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise validation.invalid(
            f"a {_type_of(given)} is no list of records: pass a DataFrame, or its to_dict('records')"
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

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        """Return the rows."""


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
def _naming(record: str) -> Iterator[None]:
    """Name the record in errors."""
    try:
        yield
    except (msgspec.ValidationError, InvalidError) as error:
        raise validation.invalid(f"{record} cannot be taken over: {error}") from None


def _columns(memory: ForeignMemory, now: datetime) -> dict[str, Any]:
    texts = {name: getattr(memory, name) for name in ("title", "summary", "source")}
    scores = {
        name: validation.check_score(getattr(memory, name), name) for name in ("importance", "confidence")
    }
    checked = {name: text and validation.check_text(text, name) for name, text in texts.items()}
    return checked | scores | _times(memory, now)


def _tag_columns(tag: ForeignTag, now: datetime) -> dict[str, Any]:
    (name,) = validation.check_tag_names([tag.name])
    described = {"color": tag.color or TAG_COLOR, "description": tag.description or ""}
    return {"name": name, "is_enabled": tag.is_enabled, **described, **_times(tag, now)}


def _times(record: ForeignMemory | ForeignTag, now: datetime) -> dict[str, str]:
    created_at = record.created_at or now
    times = {"created_at": created_at, "updated_at": record.updated_at or created_at}
    return {name: format_instant(moment) for name, moment in times.items()}
