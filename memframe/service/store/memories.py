"""One user's memories and tags, read and written under a live grant.

A developer gets a `Memories` only by `Store.reading` and `Store.write`: there the database decides whether the user's
memories are open to the developer now. The operator and the user, who need no grant, get one by `Store.transaction_of`
and `Store.snapshot_of`. Every query is bound to the one user.

Content is stored sealed with the user's key. A memory's tags are stored as JSON in its row, in the form that responses
need; the table ``memory_tags`` is for filters.

A memory that its developer deletes leaves a tombstone for `RESTORABLE`: its id, its times and a keyed digest of its
fields, but no text. With it that developer can create the memory again under its id and times. The client sends no
times, so that it cannot forge them; a memory restored with other fields counts as updated now.
"""

# ruff: noqa: S608 - statements are made of our own names; values are parameters

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache, cached_property
from typing import Any, TypeVar
from uuid import uuid4

import msgspec
from msgspec import Struct, structs
from sqlalchemy.exc import IntegrityError

from memframe.envelope.detect import Rekeying
from memframe.errors import AccessError, ConflictError, InvalidError, NotFoundError
from memframe.fields import MEMORY_FIELDS, NAMES_FIELDS, TEXT_FIELDS
from memframe.secret import Secret
from memframe.service.clock import format_instant
from memframe.service.keys import KNOWN_LAYOUTS, SEALED_SPELLING, MasterKey, UserKey
from memframe.service.store import listing
from memframe.service.store.accounts import select_granted
from memframe.service.store.engine import Queries, Row, SqlStatement, insert_into
from memframe.service.store.listing import MemoryFilter
from memframe.service.store.schema import idempotency_keys, tags, tombstones, user_keys
from memframe.service.validation import MAX_USER_TAGS, PLAIN_TEXTS
from memframe.wire import MAX_SCORES, MemoryBlob, MemoryBlobResponse, MemoryPage, Tag

Columns = TypeVar("Columns", bound=Sequence[Any])

RESTORABLE = timedelta(days=30)
"""Time for which a deleted memory can be restored."""

IDEMPOTENT = timedelta(hours=24)
"""Time for which an idempotency key is kept."""

TAG_COLOR = "#6b7280"
"""Colour of tags that a write has created: a neutral grey."""

MEMORIES_PER_QUERY = 1000
"""Memories per query, when all memories of a user are needed."""

# -- Statements


_RESPONSE_FIELDS = MemoryBlobResponse.__struct_fields__
_COLUMN_NAMES = MemoryBlob.__struct_fields__
_LIST_POSITIONS = tuple(map(_COLUMN_NAMES.index, NAMES_FIELDS))
_SEARCHED_COLUMNS = tuple(name for name in TEXT_FIELDS if name != "content")
_LATER_FIELDS = {field.name for field in MEMORY_FIELDS if field.since > 1}
"""Fields that memories did not have when the first tombstones were written."""

_COLUMNS = ", ".join(f"memories.{name}" for name in _COLUMN_NAMES)
_WHERE_THIS = "memories.user_id = :user_id AND memories.id = :memory_id"

_SELECT_ONE = SqlStatement(f"SELECT {_COLUMNS} FROM memories WHERE {_WHERE_THIS}")
_SELECT_BY_SEQ = SqlStatement(f"SELECT {_COLUMNS} FROM memories WHERE user_id = :user_id AND seq = :seq")
_SELECT_GRANTED = SqlStatement(
    select_granted(
        f"users.key_version, {_COLUMNS}",
        "LEFT JOIN memories ON memories.user_id = users.id AND memories.id = :memory_id",
    )
)
_JOIN_WANTED = "JOIN memories ON memories.user_id = users.id AND memories.id = :memory_id"
SELECT_GRANTED_MANY = SqlStatement(
    "SELECT wanted.place, one.* FROM json_to_recordset(CAST(:wanted AS json)) AS wanted(place integer, "
    "developer_id text, epoch integer, user_id text, memory_id text), "
    f"LATERAL ({select_granted(_COLUMNS, _JOIN_WANTED).replace(':', 'wanted.')}) AS one"
)
"""Memories by developer, epoch, user and id, each under its own grant; for PostgreSQL.

The parameters of the query for one memory become columns of `wanted`, so that query must hold no other colon. The keys
are one JSON parameter because PostgreSQL then plans the statement once; with arrays it would plan it each time.
"""

_DELETE_ONE = SqlStatement(f"DELETE FROM memories WHERE {_WHERE_THIS} RETURNING {_COLUMNS}")
_DELETE_ALL, _DELETE_ALL_TAGS, _DELETE_ALL_TOMBSTONES = (
    SqlStatement(f"DELETE FROM {table} WHERE user_id = :user_id")
    for table in ("memories", "tags", "tombstones")
)
_COUNT_MEMORIES = SqlStatement("SELECT count(*) FROM memories WHERE user_id = :user_id")
_SET_CONTENT = SqlStatement("UPDATE memories SET content = :sealed WHERE seq = :seq")

_PARAMETERS = ", ".join(f":{name}" for name in _COLUMN_NAMES)
_INSERT_MEMORY = f"INSERT INTO memories ({', '.join(_COLUMN_NAMES)}) VALUES ({_PARAMETERS})"
_INSERT_LINKS = "INSERT INTO memory_tags (tag_id, memory_seq) SELECT"
_EACH_TAG = "json_array_elements_text(CAST(CAST(:tag_ids AS text) AS json)) AS tag_id"
_ADD_MEMORY = {
    "sqlite": (
        SqlStatement(_INSERT_MEMORY),
        SqlStatement(f"{_INSERT_LINKS} value, last_insert_rowid() FROM json_each(:tag_ids)"),
    ),
    "postgresql": (  # one statement is one round trip
        SqlStatement(
            f"WITH added AS ({_INSERT_MEMORY} RETURNING seq) {_INSERT_LINKS} tag_id, seq FROM added, {_EACH_TAG}"
        ),
    ),
}
_DELETE_LINKS = SqlStatement("DELETE FROM memory_tags WHERE memory_seq = :seq")
_ADD_LINKS = SqlStatement(
    f"{_INSERT_LINKS} value, :seq FROM json_each(:tag_ids)",
    postgresql=f"{_INSERT_LINKS} tag_id, CAST(:seq AS bigint) FROM {_EACH_TAG}",
)

_WRAPPED_KEY = SqlStatement(
    "SELECT wrapped_key FROM user_keys WHERE user_id = :user_id AND version = :version"
)
_ADD_KEY = insert_into(user_keys)
_SET_KEY_VERSION = SqlStatement("UPDATE users SET key_version = :version WHERE id = :user_id")

_TAG_COLUMNS = ", ".join(Tag.__struct_fields__)
_SELECT_TAGS = SqlStatement(f"SELECT {_TAG_COLUMNS} FROM tags WHERE user_id = :user_id ORDER BY name, id")
_SELECT_TAG = SqlStatement(f"SELECT {_TAG_COLUMNS} FROM tags WHERE user_id = :user_id AND id = :tag_id")
_COUNT_TAGS = SqlStatement("SELECT count(*) FROM tags WHERE user_id = :user_id")
_ADD_TAG = insert_into(tags)
_ENABLE_TAG = SqlStatement(
    "UPDATE tags SET is_enabled = :enabled, updated_at = :now WHERE user_id = :user_id AND name = :name "
    f"RETURNING {_TAG_COLUMNS}"
)


def _delete_until(table: str, time: str) -> SqlStatement:
    """Delete the rows of a table whose time is not after ``until``.

    In PostgreSQL, rows that another process is deleting are skipped, because the two could deadlock.
    """
    unlocked = f"SELECT ctid FROM {table} WHERE {time} <= :until FOR UPDATE SKIP LOCKED"
    return SqlStatement(
        f"DELETE FROM {table} WHERE {time} <= :until",
        postgresql=f"DELETE FROM {table} WHERE ctid = ANY(ARRAY({unlocked}))",
    )


_DELETE_OLD_TOMBSTONES = _delete_until("tombstones", "deleted_at")
_ADD_TOMBSTONE = insert_into(tombstones)
_TAKE_TOMBSTONE = SqlStatement(
    "DELETE FROM tombstones WHERE memory_id = :memory_id AND user_id = :user_id AND developer_id = :developer_id "
    "RETURNING digest, created_at, updated_at, deleted_at"
)
_DELETE_OLD_REQUESTS = _delete_until("idempotency_keys", "created_at")
_ADD_REQUEST = insert_into(idempotency_keys)
_FIND_REQUEST = SqlStatement(
    "SELECT body_hash, memory_id FROM idempotency_keys "
    "WHERE developer_id = :developer_id AND key_hash = :key_hash"
)


@cache  # bounded: one statement for each set of fields that a write can change
def _update_of(names: frozenset[str]) -> SqlStatement:
    changes = ", ".join(f"{name} = :new_{name}" for name in sorted(names))
    return SqlStatement(f"UPDATE memories SET {changes} WHERE {_WHERE_THIS} RETURNING {_COLUMNS}, seq")


@cache  # bounded: one statement for each number of tags that a memory can have
def _tag_ids_by_name(n_names: int) -> SqlStatement:
    names = ", ".join(f":name_{number}" for number in range(n_names))
    return SqlStatement(f"SELECT name, id FROM tags WHERE user_id = :user_id AND name IN ({names})")


class IdempotentRequest(Struct, frozen=True):
    """Keyed hashes of an idempotency key and of the body that came with it."""

    key_hash: str
    body_hash: str


class Memories:
    """The memories and tags of one user, in a transaction that began `now`.

    `key_generation` is that of the developer's memory key for the user.
    """

    def __init__(
        self,
        queries: Queries,
        master_key: MasterKey,
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
        self._key_generation = key_generation
        self._master_key = master_key
        self._developer_id = developer_id
        self._now = format_instant(now)

    # Keys

    def check_memory_key(self, sent: Secret) -> None:
        """Raise `AccessError` unless this is the developer's memory key for the user."""
        pair = {"developer_id": self._developer_id, "user_id": self.user_id}
        if self._master_key.memory_key(**pair, generation=self._key_generation) != sent:
            raise wrong_key_error()

    @cached_property
    def key(self) -> UserKey:
        """The present version of the user's encryption key."""
        return self._key(self.key_version)

    def _key(self, version: int) -> UserKey:
        return self._master_key.user_key(self.user_id, version, self._load_key)

    def _load_key(self, version: int) -> bytes:
        ((wrapped,),) = self.queries.rows(_WRAPPED_KEY, user_id=self.user_id, version=version)
        return bytes(wrapped)

    def seal(self, content: str) -> str:
        """Return content as it is stored.

        Content that is sealed with the present key in one of `KNOWN_LAYOUTS` is kept byte for byte. Content that an
        earlier key opens is refused with `ConflictError`. Everything else is plain text, and is sealed.
        """
        if SEALED_SPELLING.fullmatch(content):
            if self.key.opens(content):
                return content
            for version in range(self.key_version - 1, 0, -1):
                if self._key(version).opens(content):
                    message = (
                        f"the content is sealed with version {version} of the user's key, and the current one is "
                        f"{self.key_version}; fetch the credentials again and seal it with the new key"
                    )
                    raise ConflictError(message, status=409, code="key_version_changed")
        return self.key.envelope.seal(content)

    def open_contents(self, found: Sequence[MemoryBlob]) -> list[str | None]:
        """Open the content of memories; None if the present key does not open it."""
        opened = self.key.envelope.open_many([memory.content or "" for memory in found])
        return [None if content is None else content.decode() for content in opened.plain]

    def rotate_key(self) -> tuple[int, int]:
        """Make a new version of the key the present one; seal the content again.

        Return the number of memories that were sealed again, and of those that the old key did not open.
        """
        old = self.key
        version = self.key_version + 1
        wrapped = self._master_key.new_user_key(user_id=self.user_id, version=version)
        self.queries.run(
            _ADD_KEY, user_id=self.user_id, version=version, wrapped_key=wrapped, created_at=self._now
        )
        self.queries.run(_SET_KEY_VERSION, user_id=self.user_id, version=version)
        self.key_version = version
        # replaces the cached property
        self.key = self._master_key.open_user_key(self.user_id, version, wrapped)
        rekeying = Rekeying(
            (old.version, old.key), (version, self.key.key), user_id=self.user_id, layouts=KNOWN_LAYOUTS
        )
        n_sealed = n_unopened = 0
        for batch in self.contents():
            resealed = {seq: rekeying.reseal(content) for seq, content in batch}
            sealed = {seq: content for seq, content in resealed.items() if content is not None}
            self.replace_contents(sealed)
            n_sealed += len(sealed)
            n_unopened += len(batch) - len(sealed)
        return n_sealed, n_unopened

    # Reading

    def page(
        self, chosen: MemoryFilter, *, cursor: str | None = None, limit: int, max_bytes: int | None = None
    ) -> MemoryPage:
        """Return a page of the memories that a filter chooses; `InvalidError` for the cursor of another filter.

        A page also ends with the memory that makes its texts reach `max_bytes`, by default and for every search
        `listing.MAX_PAGE_BYTES`.
        """
        after = self._master_key.cursors.open(cursor, chosen) if cursor else chosen.start
        if chosen.search:
            rows, has_more = self._search(chosen, after, limit)
        else:
            rows, has_more = self._list(_COLUMN_NAMES, chosen, after, limit, max_bytes)
        further = self._master_key.cursors.seal(rows[-1][0], chosen) if has_more else None
        return MemoryPage([as_memory(columns) for _, *columns in rows], further)

    def _search(self, chosen: MemoryFilter, after: int, limit: int) -> tuple[list[Row], bool]:
        """Find the memories whose content or other searched texts contain the (case-folded) search text.

        Batches are opened and searched in order until the page is full. Content that the key does not open is not
        searched. Opened content is not kept.
        """
        found: list[Row] = []
        n_bytes, has_more = 0, True
        while has_more:
            batch, has_more = self._list((*_SEARCHED_COLUMNS, "content"), chosen, after, MEMORIES_PER_QUERY)
            contents = self.key.envelope.open_many([content for *_, content in batch]).plain
            for (seq, *texts, sealed), content in zip(batch, contents, strict=True):
                in_content = content and _holds(content, chosen.search)
                if not in_content and not any(text and chosen.search in text.casefold() for text in texts):
                    continue
                if len(found) == limit or n_bytes >= listing.MAX_PAGE_BYTES:
                    return found, True
                ((row),) = self.queries.rows(_SELECT_BY_SEQ, user_id=self.user_id, seq=seq)
                found.append((seq, *row))
                n_bytes += len(sealed) + sum(len(text or "") for text in texts)
            if batch:
                after = batch[-1][0]
        return found, False

    def _list(
        self,
        columns: tuple[str, ...],
        chosen: MemoryFilter,
        after: int,
        limit: int,
        max_bytes: int | None = None,
    ) -> tuple[list[Row], bool]:
        tag_ids = tuple(self._tag_ids(chosen.tags).values())
        if chosen.tags and not tag_ids:
            return [], False
        return listing.list_rows(
            self.queries, columns, chosen, tag_ids, after=after, limit=limit, max_bytes=max_bytes
        )

    def contents(self) -> Iterator[list[Row]]:
        """Yield seq and sealed content of all memories, in batches."""
        after, has_more = 0, True
        while has_more:
            batch, has_more = self._list(("content",), MemoryFilter(self.user_id), after, MEMORIES_PER_QUERY)
            if batch:
                yield batch
                after = batch[-1][0]

    def replace_contents(self, sealed: Mapping[int, str]) -> None:
        """Replace sealed content by seq, and nothing else."""
        self.queries.run_many(
            _SET_CONTENT, [{"seq": seq, "sealed": content} for seq, content in sealed.items()]
        )

    def get(self, memory_id: str) -> MemoryBlob:
        """Return a memory; `NotFoundError` if the user has none with this id."""
        return as_memory(_require_found(self.queries.row(_SELECT_ONE, **self._this(memory_id))))

    def count(self) -> int:
        ((number,),) = self.queries.rows(_COUNT_MEMORIES, user_id=self.user_id)
        return int(number)

    # Writing

    def create(
        self,
        content: str,
        fields: Mapping[str, Any],
        tag_names: Sequence[str],
        *,
        request: IdempotentRequest | None = None,
        restores: str | None = None,
    ) -> tuple[MemoryBlobResponse, bool]:
        """Add a memory, or restore a deleted one; return it, and False if the request is a repetition.

        `ConflictError` if the memory to restore exists, or the memory that the first request created was deleted since.
        """
        memory_id = self.find_created(request) if request else None
        if memory_id is not None:
            return self._repeat(memory_id, fields, tag_names, was_restored=memory_id == restores), False
        new = {**fields, "content": self.seal(content)}
        if restores:
            new |= self._restore(restores, {**new, "tags": tag_names})
        created = self.add(new, tag_names)
        if request:
            self.remember_request(request, created.id)
        return created, True

    def add(self, fields: Mapping[str, Any], tag_names: Sequence[str]) -> MemoryBlobResponse:
        """Add a memory with sealed content; id and times are made unless `fields` has them."""
        self._delete_old(_DELETE_OLD_TOMBSTONES, RESTORABLE)
        tag_ids = self._make_tags(tag_names)
        new = {
            **dict.fromkeys(_COLUMN_NAMES),  # every column is a parameter, also of fields that were not sent
            "id": str(uuid4()),
            "created_at": self._now,
            "updated_at": self._now,
            **fields,
            **_encode_tags(tag_ids),
            "user_id": self.user_id,
        }
        for statement in _ADD_MEMORY[self.queries.dialect.name]:
            self.queries.run(statement, **new)
        return _created_response(new, tag_ids)

    def find_created(self, request: IdempotentRequest) -> str | None:
        """Return the id of the memory that this key created; `InvalidError` if the key came with another body."""
        self._delete_old(_DELETE_OLD_REQUESTS, IDEMPOTENT)
        row = self.queries.row(_FIND_REQUEST, developer_id=self._developer_id, key_hash=request.key_hash)
        if row is None:
            return None
        body_hash, memory_id = row
        if body_hash != request.body_hash:
            message = "this Idempotency-Key was used with a different body; use a new key for a new record"
            raise InvalidError(message, status=422, code="idempotency_key_reused")
        return str(memory_id)

    def remember_request(self, request: IdempotentRequest, memory_id: str) -> None:
        """Store an idempotency key; `ConflictError` if another process has just stored it for another user."""
        owner = {"developer_id": self._developer_id, "user_id": self.user_id}
        new = {**owner, "memory_id": memory_id, **structs.asdict(request)}
        try:
            self.queries.run(_ADD_REQUEST, **new, created_at=self._now)
        except IntegrityError:
            message = "a request with this Idempotency-Key is still under way; send it again in a moment"
            raise ConflictError(message, status=409, code="idempotency_key_in_flight") from None

    def _repeat(
        self, memory_id: str, fields: Mapping[str, Any], tag_names: Sequence[str], *, was_restored: bool
    ) -> MemoryBlobResponse:
        """Return the first answer again.

        For a new memory, ``updated_at`` was its ``created_at``, whatever has changed it since. For a restored one, the
        first ``updated_at`` is not stored, so the present one is returned.
        """
        row = self.queries.row(_SELECT_ONE, **self._this(memory_id))
        if row is None:
            message = "this Idempotency-Key has created a memory that was deleted since; use a new key"
            raise ConflictError(message, status=409, code="idempotency_key_spent")
        found = as_memory(row)
        updated_at = found.updated_at if was_restored else found.created_at
        times = {"created_at": found.created_at, "updated_at": updated_at}
        return _created_response(
            {**fields, **times, "id": memory_id, "user_id": self.user_id}, self._tag_ids(tag_names)
        )

    def change(
        self, memory_id: str, fields: Mapping[str, Any], tag_names: Sequence[str] | None
    ) -> MemoryBlobResponse:
        """Set fields and, unless None, the whole list of tags; an empty change leaves ``updated_at``."""
        tag_ids = None if tag_names is None else self._make_tags(tag_names)
        new = dict(fields)
        if tag_ids is not None:
            new |= _encode_tags(tag_ids)
        if not new:
            return _changed_response(_require_found(self.queries.row(_SELECT_ONE, **self._this(memory_id))))
        new["updated_at"] = self._now
        parameters = {f"new_{name}": value for name, value in new.items()}
        row = self.queries.row(_update_of(frozenset(new)), **self._this(memory_id), **parameters)
        *columns, seq = _require_found(row)
        if tag_ids is not None:
            self.queries.run(_DELETE_LINKS, seq=seq)
            self.queries.run(_ADD_LINKS, seq=seq, tag_ids=new["tag_ids"])
        return _changed_response(columns)

    def delete(self, memory_id: str, *, is_restorable: bool = False) -> None:
        """Delete a memory, and leave a tombstone if it can be restored; `NotFoundError` for an unknown id."""
        deleted = as_memory(_require_found(self.queries.row(_DELETE_ONE, **self._this(memory_id))))
        if is_restorable:
            self._delete_old(_DELETE_OLD_TOMBSTONES, RESTORABLE)
            self.queries.run(
                _ADD_TOMBSTONE,
                **self._this(memory_id),
                developer_id=self._developer_id,
                digest=self._digest(memory_id, structs.asdict(deleted)),
                created_at=deleted.created_at,
                updated_at=deleted.updated_at,
                deleted_at=self._now,
            )

    def delete_all(self) -> int:
        """Delete all memories, tags and tombstones; return the number of memories."""
        number = self.queries.run(_DELETE_ALL, user_id=self.user_id)
        for statement in (_DELETE_ALL_TAGS, _DELETE_ALL_TOMBSTONES):
            self.queries.run(statement, user_id=self.user_id)
        return number

    def _restore(self, memory_id: str, columns: Mapping[str, Any]) -> dict[str, str]:
        """Take the tombstone of a memory that this developer deleted; return the id and times of the new one."""
        this = self._this(memory_id)
        if self.queries.row(_SELECT_ONE, **this) is not None:
            message = f"the memory {memory_id} exists and was not restored again"
            raise ConflictError(message, status=409, code="memory_exists")
        row = self.queries.row(_TAKE_TOMBSTONE, **this, developer_id=self._developer_id)
        if row is None:
            return {}
        digest, created_at, updated_at, deleted_at = row
        if deleted_at <= format_instant(self.now - RESTORABLE):
            return {}
        is_same = digest == self._digest(memory_id, columns)
        return {"id": memory_id, "created_at": created_at, "updated_at": updated_at if is_same else self._now}

    def _digest(self, memory_id: str, columns: Mapping[str, Any]) -> str:
        """Make a keyed digest of a memory's fields, which does not depend on how the content is sealed.

        Fields added later are included only if they are filled, so that tombstones of earlier versions still match.
        """
        plain = self.key.envelope.open_many([columns["content"]]).plain[0]
        scores = {name: columns.get(name) for name in MAX_SCORES}
        values = {name: columns.get(name) for name in PLAIN_TEXTS} | {
            name: None if score is None else float(score) for name, score in scores.items()
        }
        fields = [
            memory_id,  # so that equal memories have different digests
            columns["content"] if plain is None else plain.decode(),
            *(value for name, value in values.items() if name not in _LATER_FIELDS),
            *sorted(columns["tags"]),
            *((name, value) for name, value in values.items() if name in _LATER_FIELDS and value is not None),
        ]
        return self._master_key.digest("tombstones", msgspec.json.encode(fields))

    def _delete_old(self, statement: SqlStatement, lifetime: timedelta) -> None:
        """Delete outdated rows of all users, once per transaction, however many memories it writes."""
        self.queries.run_once(statement, until=format_instant(self.now - lifetime))

    def _this(self, memory_id: str) -> dict[str, str]:
        return {"user_id": self.user_id, "memory_id": memory_id}

    # Tags

    def all_tags(self) -> list[Tag]:
        """Return the tags by name."""
        return [_as_tag(row) for row in self.queries.rows(_SELECT_TAGS, user_id=self.user_id)]

    def get_tag(self, tag_id: str) -> Tag:
        """Return a tag; `NotFoundError` if the user has none with this id."""
        row = self.queries.row(_SELECT_TAG, user_id=self.user_id, tag_id=tag_id)
        if row is None:
            raise NotFoundError("this user has no tag with this id", status=404, code="not_found")
        return _as_tag(row)

    def add_tag(self, **fields: Any) -> str:
        """Add a tag; return its id."""
        new = {
            "color": TAG_COLOR,
            "description": "",
            "is_enabled": True,
            "created_at": self._now,
            "updated_at": self._now,
            **fields,
            "id": str(uuid4()),
            "user_id": self.user_id,
        }
        self.queries.run(_ADD_TAG, **new)
        return str(new["id"])

    def enable_tag(self, name: str, *, enabled: bool) -> Tag:
        """Enable or disable a tag; `NotFoundError` if the user has none of this name."""
        change = {"user_id": self.user_id, "name": name, "enabled": enabled, "now": self._now}
        row = self.queries.row(_ENABLE_TAG, **change)
        if row is None:
            raise NotFoundError(f"this user has no tag {name}", status=404, code="not_found")
        return _as_tag(row)

    def _tag_ids(self, names: Sequence[str]) -> dict[str, str]:
        """Return the ids of existing tags by name, in the order of the names."""
        if not names:
            return {}
        given = {f"name_{number}": name for number, name in enumerate(names)}
        found: dict[str, str] = dict(
            self.queries.rows(_tag_ids_by_name(len(names)), user_id=self.user_id, **given)
        )
        return {name: found[name] for name in names if name in found}

    def _make_tags(self, names: Sequence[str]) -> dict[str, str]:
        """Return the ids of tags by name; those that do not exist are added."""
        known: dict[str, str] = self.queries.cached(("tags", self.user_id), dict)
        known.update(self._tag_ids([name for name in names if name not in known]))  # kept for the transaction
        new = [name for name in names if name not in known]
        if new:
            ((number,),) = self.queries.rows(_COUNT_TAGS, user_id=self.user_id)
            if number + len(new) > MAX_USER_TAGS:
                message = (
                    f"a user has at most {MAX_USER_TAGS} tags, and this one has {number}; use existing tags"
                )
                raise ConflictError(message, status=409, code="too_many_tags")
        for name in new:
            known[name] = self.add_tag(name=name)
        return {name: known[name] for name in names}


def wrong_key_error() -> AccessError:
    """Make the refusal of a memory key that is not this developer's for this user."""
    message = "the memory key was not issued to you for this user"
    return AccessError(message, status=403, code="wrong_memory_key")


def read_granted(queries: Queries, memory_id: str, **grant: Any) -> MemoryBlob | None:
    """Read a memory and its grant in one statement; None without a grant.

    `NotFoundError` if the user has no memory with this id.
    """
    row = queries.row(_SELECT_GRANTED, **grant, memory_id=memory_id)
    if row is None:
        return None
    _key_version, *columns = row
    has_memory = columns[0] is not None  # the join leaves all columns null where there is none
    return as_memory(_require_found(columns if has_memory else None))


_decode_names = msgspec.json.Decoder(tuple[str, ...]).decode


def as_memory(columns: Sequence[Any]) -> MemoryBlob:
    """Convert the columns of a memory; by position, because a page has a thousand of them."""
    values = list(columns)
    for position in _LIST_POSITIONS:
        values[position] = _decode_names(values[position])
    return MemoryBlob(*values)


def _holds(content: bytes, search: str) -> bool:
    """Return True if UTF-8 contains a case-folded text, in any case; ASCII is searched without decoding it."""
    if content.isascii():
        return search.encode() in content.lower()
    return search in content.decode().casefold()


def _encode_tags(tag_ids: Mapping[str, str]) -> dict[str, str]:
    """Encode the tags of a memory (ids by name) for its row: two lists in JSON."""
    columns = {"tags": list(tag_ids), "tag_ids": list(tag_ids.values())}
    return {name: msgspec.json.encode(names).decode() for name, names in columns.items()}


def _created_response(new: Mapping[str, Any], tag_ids: Mapping[str, str]) -> MemoryBlobResponse:
    """Answer with the fields of a new memory; those that were not sent are null."""
    shown: dict[str, Any] = {name: new.get(name) for name in _RESPONSE_FIELDS}
    shown["tags"] = tuple(tag_ids)
    shown["tag_ids"] = tuple(tag_ids.values())
    return MemoryBlobResponse(**shown)


def _changed_response(columns: Sequence[Any]) -> MemoryBlobResponse:
    """Answer with the columns of a memory that the response has."""
    fields = dict(zip(_COLUMN_NAMES, columns, strict=True))
    shown = {name: fields[name] for name in _RESPONSE_FIELDS}
    for name in NAMES_FIELDS:
        shown[name] = _decode_names(shown[name])
    return MemoryBlobResponse(**shown)


def _require_found(row: Columns | None) -> Columns:
    if row is None:
        raise NotFoundError("this user has no memory with this id", status=404, code="not_found")
    return row


def _as_tag(row: Row) -> Tag:
    fields = dict(zip(Tag.__struct_fields__, row, strict=True))
    fields["is_enabled"] = bool(fields["is_enabled"])  # SQLite has no booleans
    return Tag(**fields)
