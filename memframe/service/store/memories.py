"""One user's memories and tags, read and written under a live grant.

`Store.granted` and `Store.write` are a developer's only ways to a `Memories`: the database decides there whether the
user's memories are open to the developer now. The operator uses `Store.owned`, which needs no grant. Every query is
bound to the one user.

A memory's tags are stored as JSON in its row, as they are answered; the table ``memory_tags`` is for filters.

A deleted memory leaves a tombstone for `RESTORABLE`: its id, its times and a keyed digest of its fields, no text. With
it the developer who deleted the memory can create it again under its id and times. No time comes from the client, so
none can be forged; a memory restored with other fields counts as updated now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache, cached_property
from typing import Any, NamedTuple
from uuid import uuid4

import msgspec
import sqlalchemy as sa
from msgspec import Struct, structs
from sqlalchemy import bindparam, column, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from memframe.envelope import Envelope
from memframe.errors import ConflictError, InvalidError, NotFoundError
from memframe.service.clock import format_instant
from memframe.service.store import listing
from memframe.service.store.accounts import GRANT, grant_of
from memframe.service.store.engine import Queries, Row, SqlStatement
from memframe.service.store.listing import MemoryFilter
from memframe.service.store.schema import (
    idempotency_keys,
    memories,
    memory_tags,
    tags,
    tombstones,
    user_keys,
    users,
)
from memframe.service.validation import MAX_USER_TAGS
from memframe.wire import MemoryBlob, MemoryBlobResponse, Tag

RESTORABLE = timedelta(days=30)
"""How long a deleted memory can be restored."""

IDEMPOTENT = timedelta(hours=24)
"""How long an idempotency key is kept."""

TAG_COLOR = "#6b7280"
"""Of tags that a write has created: a neutral grey."""

BATCH = 1000
"""Memories that are read at a time, where all of them are."""

Page = tuple[list[tuple[int, MemoryBlob]], bool]

_ANSWERED = MemoryBlobResponse.__struct_fields__
_STORED = (*_ANSWERED, "content")
_SEARCHED = ("title", "summary", "content")

_OF_USER = memories.c.user_id == bindparam("user_id")
_THIS = _OF_USER & (memories.c.id == bindparam("memory_id"))
_COLUMNS = [memories.c[name] for name in _STORED]
_ONE = SqlStatement(select(*_COLUMNS).where(_THIS))
_UPDATED_AT = SqlStatement(select(memories.c.updated_at).where(_THIS))
_AT = SqlStatement(select(*_COLUMNS).where(_OF_USER, memories.c.seq == bindparam("seq")))
_GRANTED_ONE = SqlStatement(
    GRANT.add_columns(*_COLUMNS).outerjoin(
        memories, (memories.c.user_id == users.c.id) & (memories.c.id == bindparam("memory_id"))
    )
)
_DELETE = SqlStatement(delete(memories).where(_THIS).returning(*_COLUMNS))
_COUNT = SqlStatement(select(func.count()).select_from(memories).where(_OF_USER))
_DELETE_ALL, _DELETE_ALL_TAGS, _DELETE_ALL_TOMBSTONES = (
    SqlStatement(delete(table).where(table.c.user_id == bindparam("user_id")))
    for table in (memories, tags, tombstones)
)
_RESEAL = SqlStatement(
    update(memories).where(memories.c.seq == bindparam("seq_")).values(content=bindparam("sealed"))
)

_WRAPPED_KEY = SqlStatement(
    select(user_keys.c.wrapped_key)
    .where(user_keys.c.user_id == bindparam("user_id"))
    .where(user_keys.c.version == bindparam("version"))
)
_ADD_USER_KEY = SqlStatement(insert(user_keys))
_SET_KEY_VERSION = SqlStatement(
    update(users).where(users.c.id == bindparam("user_id")).values(key_version=bindparam("version"))
)

_texts = msgspec.json.Decoder(tuple[str, ...]).decode


def _select_many_granted() -> SqlStatement:
    """Select memories by developer, epoch, user and id, each under its own grant; for PostgreSQL.

    The keys are one JSON parameter: PostgreSQL then plans the statement once, with arrays each time anew.
    """
    given = bindparam("wanted", type_=sa.Text).cast(sa.JSON)
    types = dict.fromkeys(("place", "epoch"), sa.Integer) | dict.fromkeys(
        ("developer_id", "user_id", "memory_id"), sa.Text
    )
    columns: list[Any] = [column(name, kind) for name, kind in types.items()]
    wanted = func.json_to_recordset(given).table_valued(*columns).render_derived("wanted", with_types=True)
    granted = grant_of(wanted.c.developer_id, wanted.c.epoch, wanted.c.user_id)
    this = (memories.c.user_id == users.c.id) & (memories.c.id == wanted.c.memory_id)
    one = granted.with_only_columns(*_COLUMNS).join(memories, this).lateral("one")
    return SqlStatement(select(wanted.c.place, one).join_from(wanted, one, sa.true()))


GRANTED_MANY = _select_many_granted()


class Tombstone(NamedTuple):
    """Keyed digest and stored times of a deleted memory."""

    digest: str
    created_at: str
    updated_at: str
    deleted_at: str


class Memories:
    """The memories and tags of one user, in a transaction that began `now`.

    `key_generation` is that of the developer's memory key for the user.
    """

    def __init__(
        self,
        queries: Queries,
        developer_id: str,
        user_id: str,
        *,
        now: datetime,
        key_version: int,
        key_generation: int = 1,
    ) -> None:
        self.queries = queries
        self.user_id = user_id
        self.now = now
        self.key_version = key_version
        self.key_generation = key_generation
        self._developer_id = developer_id
        self._now = format_instant(now)

    @cached_property
    def tags(self) -> Tags:
        return Tags(self.queries, self.user_id, now=self._now)

    def wrapped_key(self, version: int) -> bytes:
        """Return a version of the user's encryption key, wrapped; all versions are kept, to recognise content."""
        ((wrapped,),) = self.queries.rows(_WRAPPED_KEY, user_id=self.user_id, version=version)
        return bytes(wrapped)

    def add_key(self, version: int, wrapped: bytes) -> None:
        """Add a version of the user's encryption key and make it the present one."""
        this = {"user_id": self.user_id, "version": version}
        self.queries.run(_ADD_USER_KEY, **this, wrapped_key=wrapped, created_at=self._now)
        self.queries.run(_SET_KEY_VERSION, **this)

    def page(self, chosen: MemoryFilter, *, after: int, limit: int) -> Page:
        """Return memories with their `seq`, in the order of creation, behind the seq `after`; True where more follow.

        A page also ends with the memory with which its texts reach `listing.MAX_PAGE_BYTES`.
        """
        rows, has_more = self._list(_STORED, chosen, after, limit)
        return [(row[0], as_memory(row[1:])) for row in rows], has_more

    def search(self, envelope: Envelope, chosen: MemoryFilter, *, after: int, limit: int) -> Page:
        """Return a page of the memories whose title, summary or content has the (case-folded) search text.

        Batches are opened and searched in order until the page is full. Content that the envelope does not open has no
        text. Nothing that was opened is kept.
        """
        words, ascii_words = chosen.search, chosen.search.encode()
        found: list[tuple[int, MemoryBlob]] = []
        n_bytes, has_more = 0, True
        while has_more:
            batch, has_more = self._list(_SEARCHED, chosen, after, BATCH)
            contents = envelope.open_many([content for *_, content in batch]).plain
            for (seq, title, summary, sealed), content in zip(batch, contents, strict=True):
                if not (
                    (content and _contains(content, words, ascii_words))
                    or (title and words in title.casefold())
                    or (summary and words in summary.casefold())
                ):
                    continue
                if len(found) == limit or n_bytes >= listing.MAX_PAGE_BYTES:
                    return found, True
                ((row),) = self.queries.rows(_AT, user_id=self.user_id, seq=seq)
                found.append((seq, as_memory(row)))
                n_bytes += len(sealed) + len(title or "") + len(summary or "")
            after = batch[-1][0] if batch else after
        return found, False

    def get(self, memory_id: str) -> MemoryBlob:
        """Return a memory; `NotFoundError` where the user has none with this id."""
        return as_memory(_existing(self.queries.row(_ONE, **self._this(memory_id))))

    def add(self, fields: Mapping[str, Any], tag_names: Sequence[str]) -> MemoryBlobResponse:
        """Add a memory; id and times are made unless `fields` has them."""
        self._delete_old_tombstones()
        tag_ids = self.tags.ensure(tag_names)
        new = {
            **dict.fromkeys(_STORED),
            "id": str(uuid4()),
            "created_at": self._now,
            "updated_at": self._now,
            **fields,
            **_tag_columns(tag_ids),
            "user_id": self.user_id,
        }
        for statement in _ADD[self.queries.dialect.name]:
            self.queries.run(statement, **new)
        return _as_added(new, tag_ids)

    def repeat_added(
        self, memory_id: str, fields: Mapping[str, Any], tag_names: Sequence[str], *, was_restored: bool
    ) -> MemoryBlobResponse:
        """Return the result of `add` for the same request again; `ConflictError` where the memory was deleted since.

        The update time of a restored memory is its present one, as it differs from the time of creation.
        """
        try:
            found = self.get(memory_id)
        except NotFoundError:
            message = "this Idempotency-Key has created a memory that was deleted since; use a new key"
            raise ConflictError(message, status=409, code="idempotency_key_spent") from None
        updated_at = found.updated_at if was_restored else found.created_at
        times = {"created_at": found.created_at, "updated_at": updated_at}
        new = {**fields, **times, "id": memory_id, "user_id": self.user_id}
        return _as_added(new, self.tags.ids_of(tag_names))

    def change(
        self, memory_id: str, fields: Mapping[str, Any], tag_names: Sequence[str] | None
    ) -> MemoryBlobResponse:
        """Set fields and, unless None, the whole list of tags; an empty change leaves ``updated_at``."""
        tag_ids = None if tag_names is None else self.tags.ensure(tag_names)
        new = {**fields, **({} if tag_ids is None else _tag_columns(tag_ids))}
        if not new:
            return _as_answered(_existing(self.queries.row(_ONE, **self._this(memory_id))))
        new["updated_at"] = self._now
        parameters = {f"new_{name}": value for name, value in new.items()}
        row = _existing(self.queries.row(_update_of(frozenset(new)), **self._this(memory_id), **parameters))
        if tag_ids is not None:
            self.queries.run(_UNLINK, seq=row[-1])
            self.queries.run(_LINK, seq=row[-1], tag_ids=new["tag_ids"])
        return _as_answered(row)

    def updated_at(self, memory_id: str) -> str | None:
        """Return when a memory was changed last; None where the user has none with this id."""
        row = self.queries.row(_UPDATED_AT, **self._this(memory_id))
        return None if row is None else str(row[0])

    def delete(self, memory_id: str) -> MemoryBlob:
        """Delete a memory and return it; `NotFoundError` where the user has none with this id."""
        return as_memory(_existing(self.queries.row(_DELETE, **self._this(memory_id))))

    def add_tombstone(self, deleted: MemoryBlob, digest: str) -> None:
        self._delete_old_tombstones()
        times = {"created_at": deleted.created_at, "updated_at": deleted.updated_at, "deleted_at": self._now}
        this = {**self._this(deleted.id), "developer_id": self._developer_id}
        self.queries.run(_ADD_TOMBSTONE, **this, **times, digest=digest)

    def take_tombstone(self, memory_id: str) -> Tombstone | None:
        """Remove and return the tombstone of a memory that this developer deleted; `ConflictError` if it exists."""
        this = self._this(memory_id)
        if self.queries.row(_ONE, **this) is not None:
            message = f"the memory {memory_id} exists and was not restored again"
            raise ConflictError(message, status=409, code="memory_exists")
        row = self.queries.row(_TAKE_TOMBSTONE, **this, developer_id=self._developer_id)
        tombstone = Tombstone(*row) if row else None
        return tombstone if tombstone and tombstone.deleted_at > self._restorable_after() else None

    def _restorable_after(self) -> str:
        return format_instant(self.now - RESTORABLE)

    def _delete_old_tombstones(self) -> None:
        """Delete outdated tombstones of all users, once a transaction."""
        self.queries.cached(
            ("old tombstones",),
            lambda: self.queries.run(_DELETE_OLD_TOMBSTONES, until=self._restorable_after()),
        )

    def find_repeated(self, request: IdempotentRequest) -> str | None:
        """Return the id of the memory that this key has created; `InvalidError` if it came with another body."""
        until = format_instant(self.now - IDEMPOTENT)
        self.queries.cached(("old keys",), lambda: self.queries.run(_DELETE_OLD_KEYS, until=until))
        row = self.queries.row(_FIND_KEY, developer_id=self._developer_id, key_hash=request.key_hash)
        if row is None:
            return None
        body_hash, memory_id = row
        if body_hash != request.body_hash:
            message = "this Idempotency-Key was used with a different body; use a new key for a new record"
            raise InvalidError(message, status=422, code="idempotency_key_reused")
        return str(memory_id)

    def remember_request(self, request: IdempotentRequest, memory_id: str) -> None:
        """Store an idempotency key; `ConflictError` where another process has just stored it for another user."""
        new = {"developer_id": self._developer_id, "memory_id": memory_id, **structs.asdict(request)}
        try:
            self.queries.run(_ADD_KEY, **new, created_at=self._now)
        except IntegrityError:
            message = "a request with this Idempotency-Key is still under way; send it again in a moment"
            raise ConflictError(message, status=409, code="idempotency_key_in_flight") from None

    def count(self) -> int:
        ((number,),) = self.queries.rows(_COUNT, user_id=self.user_id)
        return int(number)

    def delete_all(self) -> int:
        """Delete all memories, tags and tombstones; return the number of memories."""
        number = self.queries.run(_DELETE_ALL, user_id=self.user_id)
        for statement in (_DELETE_ALL_TAGS, _DELETE_ALL_TOMBSTONES):
            self.queries.run(statement, user_id=self.user_id)
        return number

    def contents(self) -> Iterator[list[Row]]:
        """Yield seq and sealed content of all memories, in batches."""
        after, has_more = 0, True
        while has_more:
            batch, has_more = self._list(("content",), MemoryFilter(self.user_id), after, BATCH)
            if batch:
                yield batch
                after = batch[-1][0]

    def replace_contents(self, sealed: Mapping[int, str]) -> None:
        """Replace sealed content by seq, and nothing else."""
        self.queries.run_many(_RESEAL, [{"seq_": seq, "sealed": content} for seq, content in sealed.items()])

    def _this(self, memory_id: str) -> dict[str, str]:
        return {"user_id": self.user_id, "memory_id": memory_id}

    def _list(
        self, columns: tuple[str, ...], chosen: MemoryFilter, after: int, limit: int
    ) -> tuple[list[Row], bool]:
        tag_ids = tuple(self.tags.ids_of(chosen.tags).values()) if chosen.tags else ()
        if chosen.tags and not tag_ids:
            return [], False
        return listing.list_rows(self.queries, columns, chosen, tag_ids, after=after, limit=limit)


def read_granted(queries: Queries, memory_id: str, **grant: Any) -> MemoryBlob | None:
    """Read a memory and its grant in one statement; None without a grant.

    `NotFoundError` where the user has no memory with this id.
    """
    row = queries.row(_GRANTED_ONE, **grant, memory_id=memory_id)
    if row is None:
        return None
    return as_memory(_existing(row[1:] if row[1] is not None else None))


def as_memory(row: Row) -> MemoryBlob:
    """Convert a row of `_STORED`; spelled out, because a page has a thousand of them."""
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


def _contains(content: bytes, words: str, encoded: bytes) -> bool:
    """Search in UTF-8, ignoring case; ASCII without decoding it."""
    if content.isascii():
        return encoded in content.lower()
    return words in content.decode().casefold()


def _tag_columns(tag_ids: Mapping[str, str]) -> dict[str, str]:
    columns = {"tags": list(tag_ids), "tag_ids": list(tag_ids.values())}
    return {name: msgspec.json.encode(texts).decode() for name, texts in columns.items()}


def _as_added(new: Mapping[str, Any], tag_ids: Mapping[str, str]) -> MemoryBlobResponse:
    shown: dict[str, Any] = {name: new.get(name) for name in _ANSWERED}
    return MemoryBlobResponse(**shown | {"tags": tuple(tag_ids), "tag_ids": tuple(tag_ids.values())})


def _as_answered(row: Row) -> MemoryBlobResponse:
    fields = dict(zip(_ANSWERED, row, strict=False))
    fields["tags"], fields["tag_ids"] = _texts(fields["tags"]), _texts(fields["tag_ids"])
    return MemoryBlobResponse(**fields)


def _existing(row: Row | None) -> Row:
    if row is None:
        raise NotFoundError("this user has no memory with this id", status=404, code="not_found")
    return row


@cache  # of the sets of fields that a write can change
def _update_of(names: frozenset[str]) -> SqlStatement:
    values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in sorted(names)}
    answered = [memories.c[name] for name in _ANSWERED]
    return SqlStatement(update(memories).where(_THIS).values(values).returning(*answered, memories.c.seq))


# Deleting what is outdated, and tombstones

_ctid: sa.ColumnClause[Any] = sa.literal_column("ctid")  # of a row in PostgreSQL


def _delete_until(time: sa.Column[Any]) -> SqlStatement:
    """Delete the rows of a table whose time is not after ``until``.

    In PostgreSQL rows that another process is deleting are skipped: the two could deadlock.
    """
    over = time <= bindparam("until")
    unlocked = select(_ctid).select_from(time.table).where(over).with_for_update(skip_locked=True)
    return SqlStatement(
        delete(time.table).where(over),
        postgresql=delete(time.table).where(_ctid == sa.any_(func.array(unlocked.scalar_subquery()))),
    )


_ADD_TOMBSTONE = SqlStatement(insert(tombstones))
_TAKE_TOMBSTONE = SqlStatement(
    delete(tombstones)
    .where(tombstones.c.memory_id == bindparam("memory_id"), tombstones.c.user_id == bindparam("user_id"))
    .where(tombstones.c.developer_id == bindparam("developer_id"))
    .returning(*(tombstones.c[name] for name in Tombstone._fields))
)
_DELETE_OLD_TOMBSTONES = _delete_until(tombstones.c.deleted_at)


# Tags

_SEQ = bindparam("seq", type_=sa.BigInteger)
_TAG_IDS = bindparam("tag_ids", type_=sa.Text)
_EACH_IN_SQLITE = func.json_each(_TAG_IDS).table_valued("value").c.value
_EACH_IN_POSTGRESQL = func.json_array_elements_text(_TAG_IDS.cast(sa.JSON)).column_valued("tag_id")


def _link(tag_id: sa.ColumnElement[str], seq: sa.ColumnElement[int]) -> sa.Insert:
    return insert(memory_tags).from_select(["tag_id", "memory_seq"], select(tag_id, seq))


def _add_and_link() -> dict[str, tuple[SqlStatement, ...]]:
    """Insert a memory and its rows in ``memory_tags``: in PostgreSQL as one statement, which is one round trip."""
    memory = insert(memories).values({name: bindparam(name) for name in _STORED})
    added: Any = memory.returning(memories.c.seq).cte("added")
    in_sqlite = _link(_EACH_IN_SQLITE, func.last_insert_rowid())
    return {
        "sqlite": (SqlStatement(memory), SqlStatement(in_sqlite)),
        "postgresql": (SqlStatement(_link(_EACH_IN_POSTGRESQL, added.c.seq)),),
    }


_ADD = _add_and_link()
_LINK = SqlStatement(_link(_EACH_IN_SQLITE, _SEQ), postgresql=_link(_EACH_IN_POSTGRESQL, _SEQ))
_UNLINK = SqlStatement(delete(memory_tags).where(memory_tags.c.memory_seq == _SEQ))

_TAG = [tags.c[name] for name in Tag.__struct_fields__]
_TAGS_OF_USER = tags.c.user_id == bindparam("user_id")
_ALL_TAGS = SqlStatement(select(*_TAG).where(_TAGS_OF_USER).order_by(tags.c.name, tags.c.id))
_ONE_TAG = SqlStatement(select(*_TAG).where(_TAGS_OF_USER, tags.c.id == bindparam("tag_id")))
_COUNT_TAGS = SqlStatement(select(func.count()).where(_TAGS_OF_USER))
_ADD_TAG = SqlStatement(insert(tags))
_SET_ENABLED = SqlStatement(
    update(tags)
    .where(_TAGS_OF_USER, tags.c.name == bindparam("tag_name"))
    .values(is_enabled=bindparam("enabled"), updated_at=bindparam("now"))
    .returning(*_TAG)
)


@cache  # of the numbers of tags that a memory can have
def _tag_ids_by_name(n_names: int) -> SqlStatement:
    names: list[sa.BindParameter[str]] = [bindparam(f"name_{number}") for number in range(n_names)]
    return SqlStatement(select(tags.c.name, tags.c.id).where(_TAGS_OF_USER, tags.c.name.in_(names)))


class Tags:
    def __init__(self, queries: Queries, user_id: str, *, now: str) -> None:
        self._queries = queries
        self._user_id = user_id
        self._now = now

    def all(self) -> list[Tag]:
        return [_as_tag(row) for row in self._queries.rows(_ALL_TAGS, user_id=self._user_id)]

    def get(self, tag_id: str) -> Tag:
        """Return a tag; `NotFoundError` where the user has none with this id."""
        row = self._queries.row(_ONE_TAG, user_id=self._user_id, tag_id=tag_id)
        if row is None:
            raise NotFoundError("this user has no tag with this id", status=404, code="not_found")
        return _as_tag(row)

    def add(self, **fields: Any) -> str:
        """Add a tag; return its id."""
        new = {
            "color": TAG_COLOR,
            "description": "",
            "is_enabled": True,
            "created_at": self._now,
            "updated_at": self._now,
            **fields,
            "id": str(uuid4()),
            "user_id": self._user_id,
        }
        self._queries.run(_ADD_TAG, **new)
        return str(new["id"])

    def ids_of(self, names: Sequence[str]) -> dict[str, str]:
        """Return the ids of existing tags by name, in the order of the names."""
        if not names:
            return {}
        given = {f"name_{number}": name for number, name in enumerate(names)}
        rows = self._queries.rows(_tag_ids_by_name(len(names)), user_id=self._user_id, **given)
        found: dict[str, str] = dict(rows)
        return {name: found[name] for name in names if name in found}

    def ensure(self, names: Sequence[str]) -> dict[str, str]:
        """Return the ids of tags by name; those that do not exist are added."""
        known: dict[str, str] = self._queries.cached(("tags", self._user_id), dict)
        known |= self.ids_of([name for name in names if name not in known])
        new = [name for name in names if name not in known]
        if new:
            ((number,),) = self._queries.rows(_COUNT_TAGS, user_id=self._user_id)
            if number + len(new) > MAX_USER_TAGS:
                message = f"a user has at most {MAX_USER_TAGS} tags, and this one has {number}; use tags that are there"
                raise ConflictError(message, status=409, code="too_many_tags")
        for name in new:
            known[name] = self.add(name=name)
        return {name: known[name] for name in names}

    def set_enabled(self, name: str, *, enabled: bool) -> Tag:
        """Enable or disable a tag; `NotFoundError` where the user has none of this name."""
        change = {"tag_name": name, "enabled": enabled, "now": self._now}
        row = self._queries.row(_SET_ENABLED, user_id=self._user_id, **change)
        if row is None:
            raise NotFoundError(f"this user has no tag {name}", status=404, code="not_found")
        return _as_tag(row)


def _as_tag(row: Row) -> Tag:
    fields = dict(zip(Tag.__struct_fields__, row, strict=True))
    return Tag(**fields | {"is_enabled": bool(fields["is_enabled"])})  # SQLite has no booleans


# Idempotency keys

_DELETE_OLD_KEYS = _delete_until(idempotency_keys.c.created_at)
_FIND_KEY = SqlStatement(
    select(idempotency_keys.c.body_hash, idempotency_keys.c.memory_id)
    .where(idempotency_keys.c.developer_id == bindparam("developer_id"))
    .where(idempotency_keys.c.key_hash == bindparam("key_hash"))
)
_ADD_KEY = SqlStatement(insert(idempotency_keys))


class IdempotentRequest(Struct, frozen=True):
    """Keyed hashes of an idempotency key and of the body that came with it."""

    key_hash: str
    body_hash: str
