"""One user's memories and tags, inside one transaction and behind a live grant.

`granted` is the only way to a `Memories`: it asks the database whether the user's memories are open
to the developer at this moment, and every query of a `Memories` is bound to that one user.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, Select, delete, insert, select, update

from memframe.errors import NotFoundError
from memframe.service.cursors import Filter
from memframe.service.store.engine import fetch_all
from memframe.service.store.replays import Replays
from memframe.service.store.schema import memories, memory_tags, tags, user_keys, users
from memframe.service.times import instant_text
from memframe.wire import MemoryBlob, MemoryBlobResponse, Tag

TAG_COLOR = "#6b7280"
"""Of tags that a write has created: a neutral grey, until the user chooses."""

_FIELDS = (
    "id",
    "user_id",
    "title",
    "summary",
    "importance",
    "confidence",
    "source",
    "created_at",
    "updated_at",
)
_COLUMNS = (*_FIELDS, "content")


class Memories:
    """The memories and tags of one user, for the length of one transaction.

    Attributes
    ----------
    replays : Replays
        What the developer has created under an idempotency key.
    """

    def __init__(self, connection: Connection, *, developer_id: str, user_id: str, now: datetime) -> None:
        self._connection = connection
        self._user_id = user_id
        self._now = instant_text(now)
        self.replays = Replays(connection, developer_id, now=now)

    def wrapped_key(self) -> tuple[int, bytes]:
        """Version and wrapped form of the user's present encryption key."""
        row = self._connection.execute(
            select(user_keys.c.version, user_keys.c.wrapped_key)
            .join(users, (users.c.id == user_keys.c.user_id) & (users.c.key_version == user_keys.c.version))
            .where(users.c.id == self._user_id)
        ).one()
        return row.version, row.wrapped_key

    def page(self, chosen: Filter, *, after: int, limit: int) -> list[tuple[int, MemoryBlob]]:
        """Records behind a place in the order of their creation, each with its own place."""
        query = self._mine().where(memories.c.seq > after).order_by(memories.c.seq).limit(limit)
        if chosen.min_importance is not None:
            query = query.where(memories.c.importance >= chosen.min_importance)
        if chosen.tags:
            query = query.where(memories.c.seq.in_(self._tagged(chosen.tags)))
        return self._with_tags(self._connection.execute(query).all())

    def get(self, memory_id: str) -> MemoryBlob:
        """One record; `NotFoundError` where the user has none with this id."""
        return self._one(memory_id)[1]

    def add(self, fields: dict[str, Any], tag_names: Sequence[str]) -> MemoryBlobResponse:
        """A new record of columns by name, with its tags; times among the columns count as they are."""
        new = {
            "created_at": self._now,
            "updated_at": self._now,
            **fields,
            "id": str(uuid4()),
            "user_id": self._user_id,
        }
        seq = self._connection.execute(insert(memories).values(**new).returning(memories.c.seq)).scalar_one()
        tag_ids = self._set_tags(seq, tag_names)
        shown: dict[str, Any] = {name: new.get(name) for name in _FIELDS}
        return MemoryBlobResponse(tags=tuple(tag_names), tag_ids=tag_ids, **shown)

    def change(
        self, memory_id: str, fields: dict[str, Any], tag_names: Sequence[str] | None
    ) -> MemoryBlobResponse:
        """Set columns by name and, unless None, the whole list of tags; nothing given changes nothing."""
        seq, _ = self._one(memory_id)
        if fields or tag_names is not None:
            change = update(memories).where(memories.c.seq == seq).values(**fields, updated_at=self._now)
            self._connection.execute(change)
        if tag_names is not None:
            self._connection.execute(delete(memory_tags).where(memory_tags.c.memory_seq == seq))
            self._set_tags(seq, tag_names)
        return without_content(self.get(memory_id))

    def delete(self, memory_id: str) -> None:
        """Remove a record for good; `NotFoundError` where the user has none with this id."""
        mine = (memories.c.id == memory_id) & (memories.c.user_id == self._user_id)
        if self._connection.execute(delete(memories).where(mine)).rowcount != 1:
            raise _unknown("memory")

    def tags(self) -> list[Tag]:
        """All tags of the user, by name."""
        return fetch_all(self._connection, Tag, self._my_tags().order_by(tags.c.name, tags.c.id))

    def add_tag(self, fields: dict[str, Any]) -> None:
        """A new tag of columns by name."""
        self._connection.execute(insert(tags).values(id=str(uuid4()), user_id=self._user_id, **fields))

    def tag(self, tag_id: str) -> Tag:
        """One tag; `NotFoundError` where the user has none with this id."""
        found = fetch_all(self._connection, Tag, self._my_tags().where(tags.c.id == tag_id))
        if not found:
            raise _unknown("tag")
        return found[0]

    def _mine(self) -> Select[Any]:
        return select(memories.c.seq, *(memories.c[name] for name in _COLUMNS)).where(
            memories.c.user_id == self._user_id
        )

    def _my_tags(self) -> Select[Any]:
        return select(*(tags.c[name] for name in Tag.__struct_fields__)).where(
            tags.c.user_id == self._user_id
        )

    def _tagged(self, names: Sequence[str]) -> Select[Any]:
        wanted = select(tags.c.id).where(tags.c.user_id == self._user_id, tags.c.name.in_(names))
        return select(memory_tags.c.memory_seq).where(memory_tags.c.tag_id.in_(wanted))

    def _one(self, memory_id: str) -> tuple[int, MemoryBlob]:
        rows = self._connection.execute(self._mine().where(memories.c.id == memory_id)).all()
        if not rows:
            raise _unknown("memory")
        return self._with_tags(rows)[0]

    def _with_tags(self, rows: Sequence[Any]) -> list[tuple[int, MemoryBlob]]:
        """Rows as records; the tags of all of them take two queries."""
        if not rows:
            return []
        ids = self._tags_between(rows[0].seq, rows[-1].seq)
        names = self._tag_names()  # asked last: it knows every tag that was linked
        return [
            (
                seq,
                MemoryBlob(
                    tags=tuple([names[tag_id] for tag_id in ids[seq]]),
                    tag_ids=tuple(ids[seq]),
                    **dict(zip(_COLUMNS, values, strict=True)),
                ),
            )
            for seq, *values in rows
        ]

    def _tags_between(self, first: int, last: int) -> dict[int, list[str]]:
        """Ids of the tags of all records between two places, in their order."""
        query = (
            select(memory_tags.c.memory_seq, memory_tags.c.tag_id)
            .where(memory_tags.c.user_id == self._user_id)
            .where(memory_tags.c.memory_seq.between(first, last))
            .order_by(memory_tags.c.memory_seq, memory_tags.c.position)
        )
        ids: dict[int, list[str]] = defaultdict(list)
        for seq, tag_id in self._connection.execute(query).all():
            ids[seq].append(tag_id)
        return ids

    def _tag_names(self) -> dict[str, str]:
        query = select(tags.c.id, tags.c.name).where(tags.c.user_id == self._user_id)
        return {row.id: row.name for row in self._connection.execute(query)}

    def _set_tags(self, seq: int, names: Sequence[str]) -> tuple[str, ...]:
        """Link a record to its tags in their order; names that the user has no tag for are created."""
        if not names:
            return ()
        known = self._tag_ids(names)
        self._create_tags(name for name in names if name not in known)
        known = self._tag_ids(names)
        links = [
            {"user_id": self._user_id, "memory_seq": seq, "position": position, "tag_id": known[name]}
            for position, name in enumerate(names)
        ]
        self._connection.execute(insert(memory_tags), links)
        return tuple(known[name] for name in names)

    def _tag_ids(self, names: Sequence[str]) -> dict[str, str]:
        query = select(tags.c.name, tags.c.id).where(tags.c.user_id == self._user_id, tags.c.name.in_(names))
        return {row.name: row.id for row in self._connection.execute(query)}

    def _create_tags(self, names: Iterable[str]) -> None:
        new = [
            {
                "id": str(uuid4()),
                "user_id": self._user_id,
                "name": name,
                "color": TAG_COLOR,
                "description": "",
                "created_at": self._now,
                "updated_at": self._now,
            }
            for name in names
        ]
        if new:
            self._connection.execute(insert(tags), new)


def without_content(memory: MemoryBlob) -> MemoryBlobResponse:
    """A record as create and update answer it."""
    return MemoryBlobResponse(
        **{name: getattr(memory, name) for name in MemoryBlobResponse.__struct_fields__}
    )


def _unknown(thing: str) -> NotFoundError:
    return NotFoundError(f"this user has no {thing} with this id", status=404, code="not_found")
