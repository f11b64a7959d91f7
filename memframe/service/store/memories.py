"""One user's memories, on one connection and behind a live grant.

`Store.granted` and `Store.write` are a developer's only ways to a `Memories`: they ask the database whether
the user's memories are open to the developer at this moment. The operator comes by `Store.owned`, which asks
for no grant. Every query of a `Memories` is bound to that one user.

A memory's tags stand in its row, as they are answered; `memory_tags` is there to find memories by them.

A deleted memory leaves a tombstone for `RESTORABLE`: its id, its times and a keyed digest of its fields, no text.
With it the developer who deleted the memory can create it again under its id, dated as before. As no time comes
from the client, none can be forged; and what comes back with other fields is dated as updated now, so that deleting
and restoring does no more than an update does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple
from uuid import uuid4

import msgspec
from sqlalchemy import bindparam, delete, insert, select, update

from memframe.errors import ConflictError, NotFoundError
from memframe.service.cursors import Filter
from memframe.service.store.links import LINK, UNLINK, adding
from memframe.service.store.listings import counting, listing
from memframe.service.store.replays import Replays, forgetting, spent
from memframe.service.store.requests import GRANT
from memframe.service.store.schema import memories, tombstones, users
from memframe.service.store.statements import Queries, Row, Statement
from memframe.service.store.tags import Tags
from memframe.service.store.user_keys import UserKeys
from memframe.service.times import instant_text
from memframe.wire import MemoryBlob, MemoryBlobResponse

MAX_PAGE_BYTES = 16 * 2**20
"""A page ends with the memory that makes it so large: a thousand of the largest would be a gigabyte."""

_FEW = 16
"""Memories that are fetched without asking for their sizes first, as they cannot be much more."""

_FIELDS = (
    "id",
    "user_id",
    "title",
    "summary",
    "tags",
    "tag_ids",
    "importance",
    "confidence",
    "source",
    "created_at",
    "updated_at",
)
_STORED = (*_FIELDS, "content")
_TEXTS = ("title", "summary", "source", "content")
_SEARCHED = ("title", "summary", "content")

_OF_USER = memories.c.user_id == bindparam("user_id")
_THIS = _OF_USER & (memories.c.id == bindparam("memory_id"))
COLUMNS = [memories.c[name] for name in _STORED]
_ONE = Statement(select(*COLUMNS).where(_THIS))
_AT = Statement(select(*COLUMNS).where(_OF_USER, memories.c.seq == bindparam("place")))
_GRANTED = Statement(
    GRANT.add_columns(*COLUMNS).outerjoin(
        memories, (memories.c.user_id == users.c.id) & (memories.c.id == bindparam("memory_id"))
    )
)
_ADD = adding(insert(memories).values({name: bindparam(name) for name in _STORED}))
_DELETE = Statement(delete(memories).where(_THIS).returning(*COLUMNS))
_ADD_TOMBSTONE = Statement(insert(tombstones))
_TAKE_TOMBSTONE = Statement(
    delete(tombstones)
    .where(tombstones.c.memory_id == bindparam("memory_id"), tombstones.c.user_id == bindparam("user_id"))
    .where(tombstones.c.developer_id == bindparam("developer_id"))
    .returning(*(tombstones.c[name] for name in ("digest", "created_at", "updated_at", "deleted_at")))
)
_FORGET = forgetting(tombstones.c.deleted_at)
_RESEAL = Statement(
    update(memories).where(memories.c.seq == bindparam("place")).values(content=bindparam("sealed"))
)

RESTORABLE = timedelta(days=30)
"""How long a deleted memory can be restored."""

_texts = msgspec.json.Decoder(tuple[str, ...]).decode


class Tombstone(NamedTuple):
    """The record of a deleted memory: a keyed digest of its fields, and its times as they are stored."""

    digest: str
    created_at: str
    updated_at: str
    deleted_at: str


@cache  # of the sets of fields that a write can change
def _change(names: frozenset[str]) -> Statement:
    values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in sorted(names)}
    return Statement(update(memories).where(_THIS).values(values).returning(memories.c.seq, *COLUMNS))


class Memories:
    """The memories and tags of one user.

    Attributes
    ----------
    tags : Tags
    keys : UserKeys
    replays : Replays
        What the developer has created under an idempotency key.
    key_generation : int
        Of the memory key that the developer has for the user.
    """

    def __init__(
        self,
        queries: Queries,
        *,
        developer_id: str,
        user_id: str,
        key_version: int,
        now: datetime,
        key_generation: int = 1,
    ) -> None:
        self.key_generation = key_generation
        self._queries = queries
        self._user_id = user_id
        self._developer_id = developer_id
        self._now = instant_text(now)
        self._moment = now
        self.tags = Tags(queries, user_id, now=self._now)
        self.keys = UserKeys(queries, user_id, present=key_version, now=now)
        self.replays = Replays(queries, developer_id, now=now)

    def page(self, chosen: Filter, *, after: int, limit: int) -> tuple[list[tuple[int, MemoryBlob]], bool]:
        """Return records behind a place in the order of their creation, each with its own place.

        At most ``limit``, and no more after one with which they reach `MAX_PAGE_BYTES`; True where there are more.
        """
        rows, are_more = self._listed(_STORED, chosen, after, limit)
        return [(row[0], as_memory(row[1:])) for row in rows], are_more

    def texts(self, chosen: Filter, *, after: int, limit: int) -> tuple[list[Row], bool]:
        """Return place, title, summary and sealed content of records behind a place, bounded like a page."""
        return self._listed(_SEARCHED, chosen, after, limit)

    def at(self, place: int) -> MemoryBlob:
        """The record at a place that a listing gave."""
        ((row),) = self._queries.rows(_AT, user_id=self._user_id, place=place)
        return as_memory(row)

    def get(self, memory_id: str) -> MemoryBlob:
        """One record; `NotFoundError` where the user has none with this id."""
        row = self._queries.row(_ONE, user_id=self._user_id, memory_id=memory_id)
        if row is None:
            raise _unknown()
        return as_memory(row)

    def add(self, fields: Mapping[str, Any], tag_names: Sequence[str]) -> MemoryBlobResponse:
        """A new record of columns by name, with its tags; times and an id among the columns count as they are."""
        self._forget_tombstones()
        tag_ids = self.tags.ensured(tag_names)
        new = {
            **dict.fromkeys(_STORED),
            "id": str(uuid4()),
            "created_at": self._now,
            "updated_at": self._now,
            **fields,
            **_tag_columns(tag_ids),
            "user_id": self._user_id,
        }
        for statement in _ADD[self._queries.dialect.name]:
            self._queries.run(statement, **new)
        return _as_added(new, tag_ids)

    def as_added(
        self,
        memory_id: str,
        fields: Mapping[str, Any],
        tag_names: Sequence[str],
        *,
        was_restored: bool = False,
    ) -> MemoryBlobResponse:
        """Repeat the answer of `add` to the same request; `ConflictError` where the record is no more.

        A restored record was updated at another time than it was created: its present one stands for it.
        """
        try:
            found = self.get(memory_id)
        except NotFoundError:
            raise spent() from None
        updated_at = found.updated_at if was_restored else found.created_at
        times = {"created_at": found.created_at, "updated_at": updated_at}
        new = {**fields, **times, "id": memory_id, "user_id": self._user_id}
        return _as_added(new, self.tags.ids_of(tag_names))

    def change(
        self, memory_id: str, fields: Mapping[str, Any], tag_names: Sequence[str] | None
    ) -> MemoryBlobResponse:
        """Set columns by name and, unless None, the whole list of tags; nothing given changes nothing."""
        tag_ids = None if tag_names is None else self.tags.ensured(tag_names)
        new = {**fields, **({} if tag_ids is None else _tag_columns(tag_ids))}
        if not new:
            return without_content(self.get(memory_id))
        new["updated_at"] = self._now
        parameters = {f"new_{name}": value for name, value in new.items()}
        this = {"user_id": self._user_id, "memory_id": memory_id}
        row = self._queries.row(_change(frozenset(new)), **this, **parameters)
        if row is None:
            raise _unknown()
        if tag_ids is not None:
            self._queries.run(UNLINK, place=row[0])
            self._queries.run(LINK, place=row[0], tag_ids=new["tag_ids"])
        return without_content(as_memory(row[1:]))

    def delete(self, memory_id: str) -> MemoryBlob:
        """Remove a record for good, and return it; `NotFoundError` where the user has none with this id."""
        row = self._queries.row(_DELETE, user_id=self._user_id, memory_id=memory_id)
        if row is None:
            raise _unknown()
        return as_memory(row)

    def add_tombstone(self, deleted: MemoryBlob, digest: str) -> None:
        """Keep the tombstone of a record that was deleted."""
        self._forget_tombstones()
        self._queries.run(
            _ADD_TOMBSTONE,
            memory_id=deleted.id,
            user_id=self._user_id,
            developer_id=self._developer_id,
            digest=digest,
            created_at=deleted.created_at,
            updated_at=deleted.updated_at,
            deleted_at=self._now,
        )

    def take_tombstone(self, memory_id: str) -> Tombstone | None:
        """Take the tombstone of a record that this developer has deleted, so that it counts once.

        `ConflictError` where the record is there: whoever restores it a second time would double it.
        """
        this = {"user_id": self._user_id, "memory_id": memory_id}
        if self._queries.row(_ONE, **this) is not None:
            message = f"the memory {memory_id} is there, and was not restored once more"
            raise ConflictError(message, status=409, code="memory_exists")
        row = self._queries.row(_TAKE_TOMBSTONE, **this, developer_id=self._developer_id)
        tombstone = Tombstone(*row) if row else None
        return tombstone if tombstone and tombstone.deleted_at > self._until() else None

    def _forget_tombstones(self) -> None:
        """Delete those that are over, of all users, on the occasion of a create or delete."""
        self._queries.remembered(
            ("tombstones forgotten",), lambda: self._queries.run(_FORGET, until=self._until())
        )

    def _until(self) -> str:
        return instant_text(self._moment - RESTORABLE)

    def contents(self, *, at_a_time: int) -> Iterator[list[Row]]:
        """Place and sealed content of every record, in batches."""
        after, everything, are_more = 0, Filter(self._user_id), True
        while are_more:
            batch, are_more = self._listed(("content",), everything, after, at_a_time)
            if batch:
                yield batch
                after = batch[-1][0]

    def replace_contents(self, sealed: Mapping[int, str]) -> None:
        """Other sealed content for records by their places; nothing else of them changes."""
        rows = [{"place": place, "sealed": content} for place, content in sealed.items()]
        self._queries.run_many(_RESEAL, rows)

    def _listed(
        self, columns: tuple[str, ...], chosen: Filter, after: int, limit: int
    ) -> tuple[list[Row], bool]:
        tag_ids = tuple(self.tags.ids_of(chosen.tags).values())
        if chosen.tags and not tag_ids:
            return [], False
        statement, parameters = listing(columns, chosen, tag_ids)
        parameters["after"] = after
        if self._queries.dialect.name == "postgresql":  # whose driver fetches all rows at once
            if limit > _FEW:
                count, _ = counting(chosen, tag_ids)
                ((n_rows,),) = self._queries.rows(count, limit=limit, max_bytes=MAX_PAGE_BYTES, **parameters)
                limit = max(1, n_rows)
            rows = self._queries.rows(statement, limit=limit + 1, **parameters)
            return rows[:limit], len(rows) > limit
        texts = [1 + columns.index(name) for name in _TEXTS if name in columns]
        rows, are_more = self._queries.rows_within(
            statement, max_chars=MAX_PAGE_BYTES, texts=texts, limit=limit + 1, **parameters
        )
        return rows[:limit], are_more or len(rows) > limit


def granted_memory(queries: Queries, memory_id: str, *, developer_id: str, user_id: str) -> MemoryBlob | None:
    """One record, asked for in one statement with the grant; None where that does not hold.

    `NotFoundError` where the user has no record with this id.
    """
    row = queries.row(_GRANTED, developer_id=developer_id, user_id=user_id, memory_id=memory_id)
    if row is None:
        return None
    if row[1] is None:
        raise _unknown()
    return as_memory(row[1:])


def as_memory(row: Row) -> MemoryBlob:
    """A row of `_STORED` as a record; spelled out, as a page has a thousand of them."""
    (
        memory_id,
        user_id,
        title,
        summary,
        tags,
        tag_ids,
        importance,
        confidence,
        source,
        created,
        updated,
        content,
    ) = row
    return MemoryBlob(
        id=memory_id,
        user_id=user_id,
        content=content,
        title=title,
        summary=summary,
        tags=_texts(tags),
        tag_ids=_texts(tag_ids),
        importance=importance,
        confidence=confidence,
        source=source,
        created_at=created,
        updated_at=updated,
    )


def _tag_columns(tag_ids: Mapping[str, str]) -> dict[str, str]:
    """Names and ids of a memory's tags as they stand in its row."""
    columns = {"tags": list(tag_ids), "tag_ids": list(tag_ids.values())}
    return {name: msgspec.json.encode(texts).decode() for name, texts in columns.items()}


def _as_added(new: Mapping[str, Any], tag_ids: Mapping[str, str]) -> MemoryBlobResponse:
    shown: dict[str, Any] = {name: new.get(name) for name in _FIELDS}
    return MemoryBlobResponse(**shown | {"tags": tuple(tag_ids), "tag_ids": tuple(tag_ids.values())})


def without_content(memory: MemoryBlob) -> MemoryBlobResponse:
    """A record as create and update answer it."""
    return MemoryBlobResponse(
        **{name: getattr(memory, name) for name in MemoryBlobResponse.__struct_fields__}
    )


def _unknown() -> NotFoundError:
    return NotFoundError("this user has no memory with this id", status=404, code="not_found")
