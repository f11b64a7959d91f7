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
from functools import cache
from typing import Any, NamedTuple
from uuid import uuid4

import msgspec
from msgspec import Struct, structs
from sqlalchemy import (
    JSON,
    BigInteger,
    BindParameter,
    Column,
    ColumnClause,
    ColumnElement,
    Insert,
    Integer,
    Text,
    any_,
    bindparam,
    column,
    delete,
    func,
    insert,
    literal_column,
    select,
    true,
    update,
)
from sqlalchemy.exc import IntegrityError

from memframe.errors import ConflictError, InvalidError, NotFoundError
from memframe.service.clock import format_instant
from memframe.service.store.access import GRANT, grant_of
from memframe.service.store.accounts import UserKeys
from memframe.service.store.imports import Imports
from memframe.service.store.keyset import ASCENDING, DESCENDING, Columns, count_within, page_of
from memframe.service.store.schema import idempotency_keys, memories, memory_tags, tags, tombstones, users
from memframe.service.store.statements import Queries, Row, SqlStatement
from memframe.service.validation import MAX_USER_TAGS
from memframe.wire import MemoryBlob, MemoryBlobResponse, Tag

MAX_PAGE_BYTES = 16 * 2**20
"""A page ends with the memory that makes it this large."""

RESTORABLE = timedelta(days=30)
"""How long a deleted memory can be restored."""

IDEMPOTENT = timedelta(hours=24)
"""How long an idempotency key is kept."""

TAG_COLOR = "#6b7280"
"""Of tags that a write has created: a neutral grey."""

MAX_SEQ = 2**63 - 1

_SMALL_PAGE = 16  # fetched without asking for sizes first

Page = tuple[list[tuple[int, MemoryBlob]], bool]

_ANSWERED = MemoryBlobResponse.__struct_fields__
_STORED = (*_ANSWERED, "content")
_TEXTS = ("title", "summary", "source", "content")
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

_texts = msgspec.json.Decoder(tuple[str, ...]).decode


def _select_many_granted() -> SqlStatement:
    """Select memories by developer, epoch, user and id, each under its own grant; for PostgreSQL.

    The keys are one JSON parameter: PostgreSQL then plans the statement once, with arrays each time anew.
    """
    given = bindparam("wanted", type_=Text).cast(JSON)
    names = ("developer_id", "user_id", "memory_id")
    columns: list[Any] = [
        column("place", Integer),
        column("epoch", Integer),
        *(column(name, Text) for name in names),
    ]
    wanted = func.json_to_recordset(given).table_valued(*columns).render_derived("wanted", with_types=True)
    granted = grant_of(wanted.c.developer_id, wanted.c.epoch, wanted.c.user_id)
    this = (memories.c.user_id == users.c.id) & (memories.c.id == wanted.c.memory_id)
    one = granted.with_only_columns(*_COLUMNS).join(memories, this).lateral("one")
    return SqlStatement(select(wanted.c.place, one).join_from(wanted, one, true()))


GRANTED_MANY = _select_many_granted()


class MemoryFilter(Struct, frozen=True):
    """Filter of a list call, and its order: that of creation, or the reverse."""

    user_id: str
    tags: tuple[str, ...] = ()
    search: str = ""
    min_importance: float | None = None
    newest_first: bool = False

    @property
    def start(self) -> int:
        """The seq before the first page."""
        return MAX_SEQ if self.newest_first else 0


class Tombstone(NamedTuple):
    """Keyed digest and stored times of a deleted memory."""

    digest: str
    created_at: str
    updated_at: str
    deleted_at: str


class Memories:
    """The memories and tags of one user.

    Attributes
    ----------
    tags : Tags
    keys : UserKeys
    imports : Imports
    idempotency : IdempotencyKeys
        Of the developer.
    key_generation : int
        Of the developer's memory key for the user.
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
        self._now = format_instant(now)
        self._began_at = now
        self.tags = Tags(queries, user_id, now=self._now)
        self.keys = UserKeys(queries, user_id, present=key_version, now=now)
        self.imports = Imports(queries, user_id, now=now)
        self.idempotency = IdempotencyKeys(queries, developer_id, now=now)

    def page(self, chosen: MemoryFilter, *, after: int, limit: int) -> Page:
        """Return memories with their `seq`, in the order of creation, behind the seq `after`; True where more follow.

        A page also ends with the memory with which its texts reach `MAX_PAGE_BYTES`.
        """
        rows, has_more = self._list(_STORED, chosen, after, limit)
        return [(row[0], as_memory(row[1:])) for row in rows], has_more

    def texts(self, chosen: MemoryFilter, *, after: int, limit: int) -> tuple[list[Row], bool]:
        """Return seq, title, summary and sealed content, bounded like a page."""
        return self._list(_SEARCHED, chosen, after, limit)

    def at(self, seq: int) -> MemoryBlob:
        """Return the memory at a seq."""
        ((row),) = self._queries.rows(_AT, user_id=self._user_id, seq=seq)
        return as_memory(row)

    def get(self, memory_id: str) -> MemoryBlob:
        """Return a memory; `NotFoundError` where the user has none with this id."""
        row = self._queries.row(_ONE, user_id=self._user_id, memory_id=memory_id)
        if row is None:
            raise _no_memory()
        return as_memory(row)

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
            "user_id": self._user_id,
        }
        for statement in _ADD[self._queries.dialect.name]:
            self._queries.run(statement, **new)
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
        new = {**fields, **times, "id": memory_id, "user_id": self._user_id}
        return _as_added(new, self.tags.ids_of(tag_names))

    def change(
        self, memory_id: str, fields: Mapping[str, Any], tag_names: Sequence[str] | None
    ) -> MemoryBlobResponse:
        """Set fields and, unless None, the whole list of tags; an empty change leaves ``updated_at``."""
        tag_ids = None if tag_names is None else self.tags.ensure(tag_names)
        new = {**fields, **({} if tag_ids is None else _tag_columns(tag_ids))}
        if not new:
            found = structs.asdict(self.get(memory_id))
            return MemoryBlobResponse(**{name: found[name] for name in _ANSWERED})
        new["updated_at"] = self._now
        parameters = {f"new_{name}": value for name, value in new.items()}
        this = {"user_id": self._user_id, "memory_id": memory_id}
        row = self._queries.row(_update_of(frozenset(new)), **this, **parameters)
        if row is None:
            raise _no_memory()
        if tag_ids is not None:
            self._queries.run(_UNLINK, seq=row[0])
            self._queries.run(_LINK, seq=row[0], tag_ids=new["tag_ids"])
        return _as_answered(row[1:])

    def updated_at(self, memory_id: str) -> str | None:
        """Return when a memory was changed last; None where the user has none with this id."""
        row = self._queries.row(_UPDATED_AT, user_id=self._user_id, memory_id=memory_id)
        return None if row is None else str(row[0])

    def delete(self, memory_id: str) -> MemoryBlob:
        """Delete a memory and return it; `NotFoundError` where the user has none with this id."""
        row = self._queries.row(_DELETE, user_id=self._user_id, memory_id=memory_id)
        if row is None:
            raise _no_memory()
        return as_memory(row)

    def add_tombstone(self, deleted: MemoryBlob, digest: str) -> None:
        """Add the tombstone of a deleted memory."""
        self._delete_old_tombstones()
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
        """Remove and return the tombstone of a memory that this developer deleted; `ConflictError` if it exists."""
        this = {"user_id": self._user_id, "memory_id": memory_id}
        if self._queries.row(_ONE, **this) is not None:
            message = f"the memory {memory_id} exists and was not restored again"
            raise ConflictError(message, status=409, code="memory_exists")
        row = self._queries.row(_TAKE_TOMBSTONE, **this, developer_id=self._developer_id)
        tombstone = Tombstone(*row) if row else None
        return tombstone if tombstone and tombstone.deleted_at > self._restorable_after() else None

    def _restorable_after(self) -> str:
        return format_instant(self._began_at - RESTORABLE)

    def _delete_old_tombstones(self) -> None:
        """Delete outdated tombstones of all users, once a transaction."""
        self._queries.cached(
            ("old tombstones",),
            lambda: self._queries.run(_DELETE_OLD_TOMBSTONES, until=self._restorable_after()),
        )

    def count(self) -> int:
        """Return the number of memories."""
        ((number,),) = self._queries.rows(_COUNT, user_id=self._user_id)
        return int(number)

    def delete_all(self) -> int:
        """Delete all memories, tags and tombstones; return the number of memories."""
        number = self._queries.run(_DELETE_ALL, user_id=self._user_id)
        for statement in (_DELETE_ALL_TAGS, _DELETE_ALL_TOMBSTONES):
            self._queries.run(statement, user_id=self._user_id)
        return number

    def contents(self, *, batch_size: int) -> Iterator[list[Row]]:
        """Yield seq and sealed content of all memories."""
        after, has_more = 0, True
        while has_more:
            batch, has_more = self._list(("content",), MemoryFilter(self._user_id), after, batch_size)
            if batch:
                yield batch
                after = batch[-1][0]

    def replace_contents(self, sealed: Mapping[int, str]) -> None:
        """Replace sealed content by seq, and nothing else."""
        self._queries.run_many(_RESEAL, [{"seq_": seq, "sealed": content} for seq, content in sealed.items()])

    def _list(self, columns: Columns, chosen: MemoryFilter, after: int, limit: int) -> tuple[list[Row], bool]:
        tag_ids = tuple(self.tags.ids_of(chosen.tags).values())
        if chosen.tags and not tag_ids:
            return [], False
        has_importance = chosen.min_importance is not None
        order = DESCENDING if chosen.newest_first else ASCENDING
        statement = page_of(columns, len(tag_ids), order, has_importance=has_importance)
        given: dict[str, Any] = {f"tag_{number}": tag_id for number, tag_id in enumerate(tag_ids)}
        given |= {"min_importance": chosen.min_importance} if has_importance else {}
        given |= {"user_id": chosen.user_id, "after": after}
        if self._queries.dialect.name == "postgresql":  # whose driver fetches all rows at once
            if limit > _SMALL_PAGE:
                count = count_within(len(tag_ids), order, has_importance=has_importance)
                ((n_rows,),) = self._queries.rows(count, limit=limit, max_bytes=MAX_PAGE_BYTES, **given)
                limit = max(1, n_rows)
            rows = self._queries.rows(statement, limit=limit + 1, **given)
            return rows[:limit], len(rows) > limit
        texts = [1 + columns.index(name) for name in _TEXTS if name in columns]
        rows, has_more = self._queries.rows_within(
            statement, max_chars=MAX_PAGE_BYTES, texts=texts, limit=limit + 1, **given
        )
        return rows[:limit], has_more or len(rows) > limit


def read_granted(queries: Queries, memory_id: str, **grant: Any) -> MemoryBlob | None:
    """Read a memory and its grant in one statement; None without a grant.

    `NotFoundError` where the user has no memory with this id.
    """
    row = queries.row(_GRANTED_ONE, **grant, memory_id=memory_id)
    if row is None:
        return None
    if row[1] is None:
        raise _no_memory()
    return as_memory(row[1:])


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


def _tag_columns(tag_ids: Mapping[str, str]) -> dict[str, str]:
    columns = {"tags": list(tag_ids), "tag_ids": list(tag_ids.values())}
    return {name: msgspec.json.encode(texts).decode() for name, texts in columns.items()}


def _as_added(new: Mapping[str, Any], tag_ids: Mapping[str, str]) -> MemoryBlobResponse:
    shown: dict[str, Any] = {name: new.get(name) for name in _ANSWERED}
    return MemoryBlobResponse(**shown | {"tags": tuple(tag_ids), "tag_ids": tuple(tag_ids.values())})


def _as_answered(row: Row) -> MemoryBlobResponse:
    """Convert a row of `_ANSWERED`."""
    fields = dict(zip(_ANSWERED, row, strict=True))
    return MemoryBlobResponse(**fields | {name: _texts(fields[name]) for name in ("tags", "tag_ids")})


def _no_memory() -> NotFoundError:
    return NotFoundError("this user has no memory with this id", status=404, code="not_found")


@cache  # of the sets of fields that a write can change
def _update_of(names: frozenset[str]) -> SqlStatement:
    values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in sorted(names)}
    answered = [memories.c[name] for name in _ANSWERED]
    return SqlStatement(update(memories).where(_THIS).values(values).returning(memories.c.seq, *answered))


# Deleting what is outdated, and tombstones

_ctid: ColumnClause[Any] = literal_column("ctid")  # of a row in PostgreSQL


def _delete_until(time: Column[Any]) -> SqlStatement:
    """Delete the rows of a table whose time is not after ``until``.

    In PostgreSQL rows that another process is deleting are skipped: the two could deadlock.
    """
    over = time <= bindparam("until")
    unlocked = select(_ctid).select_from(time.table).where(over).with_for_update(skip_locked=True)
    return SqlStatement(
        delete(time.table).where(over),
        postgresql=delete(time.table).where(_ctid == any_(func.array(unlocked.scalar_subquery()))),
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

_SEQ = bindparam("seq", type_=BigInteger)
_TAG_IDS = bindparam("tag_ids", type_=Text)
_EACH_IN_SQLITE = func.json_each(_TAG_IDS).table_valued("value").c.value
_EACH_IN_POSTGRESQL = func.json_array_elements_text(_TAG_IDS.cast(JSON)).column_valued("tag_id")


def _link(tag_id: ColumnElement[str], seq: ColumnElement[int]) -> Insert:
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
    names: list[BindParameter[str]] = [bindparam(f"name_{number}") for number in range(n_names)]
    return SqlStatement(select(tags.c.name, tags.c.id).where(_TAGS_OF_USER, tags.c.name.in_(names)))


class Tags:
    """The tags of one user."""

    def __init__(self, queries: Queries, user_id: str, *, now: str) -> None:
        self._queries = queries
        self._user_id = user_id
        self._now = now

    def all(self) -> list[Tag]:
        """Return all tags, by name."""
        return [_as_tag(row) for row in self._queries.rows(_ALL_TAGS, user_id=self._user_id)]

    def get(self, tag_id: str) -> Tag:
        """Return a tag; `NotFoundError` where the user has none with this id."""
        row = self._queries.row(_ONE_TAG, user_id=self._user_id, tag_id=tag_id)
        if row is None:
            raise NotFoundError("this user has no tag with this id", status=404, code="not_found")
        return _as_tag(row)

    def add(self, fields: dict[str, Any]) -> str:
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
            known[name] = self.add({"name": name})
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


class IdempotencyKeys:
    """The idempotency keys of one developer, inside the transaction that creates."""

    def __init__(self, queries: Queries, developer_id: str, *, now: datetime) -> None:
        self._queries = queries
        self._developer_id = developer_id
        self._now = now

    def find(self, request: IdempotentRequest) -> str | None:
        """Return the id of the memory that this key has created; `InvalidError` if it came with another body."""
        until = format_instant(self._now - IDEMPOTENT)
        self._queries.cached(("old keys",), lambda: self._queries.run(_DELETE_OLD_KEYS, until=until))
        row = self._queries.row(_FIND_KEY, developer_id=self._developer_id, key_hash=request.key_hash)
        if row is None:
            return None
        body_hash, memory_id = row
        if body_hash != request.body_hash:
            message = "this Idempotency-Key was used with a different body; use a new key for a new record"
            raise InvalidError(message, status=422, code="idempotency_key_reused")
        return str(memory_id)

    def add(self, request: IdempotentRequest, memory_id: str) -> None:
        """Store a key; `ConflictError` where another process has just stored it for another user."""
        try:
            self._queries.run(
                _ADD_KEY,
                developer_id=self._developer_id,
                key_hash=request.key_hash,
                body_hash=request.body_hash,
                memory_id=memory_id,
                created_at=format_instant(self._now),
            )
        except IntegrityError:
            raise still_in_flight() from None


def still_in_flight() -> ConflictError:
    """Make the 409 of a request whose key belongs to another one that is being processed."""
    message = "a request with this Idempotency-Key is still under way; send it again in a moment"
    return ConflictError(message, status=409, code="idempotency_key_in_flight")
