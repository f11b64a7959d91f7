"""One user's memories and tags, inside one transaction and behind a live grant.

`Store.granted` is a developer's only way to a `Memories`: it asks the database whether the user's
memories are open to the developer at this moment. The operator comes by `Store.owned`, which asks for no
grant. Every query of a `Memories` is bound to that one user.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, Integer, Select, bindparam, delete, insert, select, update

from memframe.errors import NotFoundError
from memframe.service.cursors import Filter
from memframe.service.store.engine import fetch_all, fetch_one
from memframe.service.store.replays import Replays, spent
from memframe.service.store.schema import memories, memory_tags, tags
from memframe.service.store.user_keys import UserKeys
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

_OF_USER = memories.c.user_id == bindparam("user_id")
_MINE = select(memories.c.seq, *(memories.c[name] for name in _COLUMNS)).where(_OF_USER)
_MEMORY = _MINE.where(memories.c.id == bindparam("memory_id"))
_PAGE = (
    _MINE.where(memories.c.seq > bindparam("after"))
    .order_by(memories.c.seq)
    .limit(bindparam("limit", type_=Integer))
)
_ADD = insert(memories).returning(memories.c.seq)
_LINK = insert(memory_tags)
_LINKS = (
    select(memory_tags.c.memory_seq, memory_tags.c.tag_id)
    .where(memory_tags.c.user_id == bindparam("user_id"))
    .order_by(memory_tags.c.memory_seq, memory_tags.c.position)
)
_LINKS_BETWEEN = _LINKS.where(memory_tags.c.memory_seq.between(bindparam("first"), bindparam("last")))
_LINKS_OF = _LINKS.where(memory_tags.c.memory_seq.in_(bindparam("places", expanding=True)))
_MY_TAGS = (
    select(*(tags.c[name] for name in Tag.__struct_fields__))
    .where(tags.c.user_id == bindparam("user_id"))
    .order_by(tags.c.name, tags.c.id)
)
_TAG = _MY_TAGS.where(tags.c.id == bindparam("tag_id"))
_CONTENTS = (
    select(memories.c.seq, memories.c.content)
    .where(_OF_USER, memories.c.seq > bindparam("after"))
    .order_by(memories.c.seq)
    .limit(bindparam("limit", type_=Integer))
)
_REPLACE_CONTENT = (
    update(memories).where(memories.c.seq == bindparam("place")).values(content=bindparam("sealed"))
)
_TAG_NAMES = select(tags.c.id, tags.c.name).where(tags.c.user_id == bindparam("user_id"))
_NAMED_TAGS = _TAG_NAMES.where(tags.c.name.in_(bindparam("names", expanding=True)))


class Memories:
    """The memories and tags of one user, for the length of one transaction.

    Attributes
    ----------
    keys : UserKeys
    replays : Replays
        What the developer has created under an idempotency key.
    """

    def __init__(self, connection: Connection, *, developer_id: str, user_id: str, now: datetime) -> None:
        self._connection = connection
        self._user_id = user_id
        self._now = instant_text(now)
        self.keys = UserKeys(connection, user_id, now=now)
        self.replays = Replays(connection, developer_id, now=now)

    def page(self, chosen: Filter, *, after: int, limit: int) -> list[tuple[int, MemoryBlob]]:
        """Records behind a place in the order of their creation, each with its own place."""
        query = _PAGE
        if chosen.min_importance is not None:
            query = query.where(memories.c.importance >= chosen.min_importance)
        if chosen.tags:
            query = query.where(memories.c.seq.in_(self._tagged(chosen.tags)))
        place = {"user_id": self._user_id, "after": after, "limit": limit}
        rows = self._connection.execute(query, place).all()
        return self._with_tags(rows, all_between=query is _PAGE)

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
        seq = self._connection.execute(_ADD, new).scalar_one()
        return _as_added(new, self._set_tags(seq, tag_names))

    def as_added(
        self, memory_id: str, fields: dict[str, Any], tag_names: Sequence[str]
    ) -> MemoryBlobResponse:
        """What `add` answered, which was given the same; `ConflictError` where the record is no more."""
        try:
            created_at = self.get(memory_id).created_at
        except NotFoundError:
            raise spent() from None
        times = {"created_at": created_at, "updated_at": created_at}
        new = {**fields, **times, "id": memory_id, "user_id": self._user_id}
        ids = self._known_tags(tag_names)
        return _as_added(new, {name: ids[name] for name in tag_names})

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

    def contents(self, *, at_a_time: int) -> Iterator[list[tuple[int, str]]]:
        """Place and sealed content of every record, in batches."""
        after = 0
        while True:
            place = {"user_id": self._user_id, "after": after, "limit": at_a_time}
            batch = [(row.seq, row.content) for row in self._connection.execute(_CONTENTS, place)]
            if not batch:
                return
            yield batch
            after = batch[-1][0]

    def replace_contents(self, sealed: Mapping[int, str]) -> None:
        """Other sealed content for records by their places; nothing else of them changes."""
        if sealed:
            rows = [{"place": place, "sealed": content} for place, content in sealed.items()]
            self._connection.execute(_REPLACE_CONTENT, rows)

    def tags(self) -> list[Tag]:
        """All tags of the user, by name."""
        return fetch_all(self._connection, Tag, _MY_TAGS, {"user_id": self._user_id})

    def add_tag(self, fields: dict[str, Any]) -> None:
        """A new tag of columns by name."""
        self._connection.execute(insert(tags).values(id=str(uuid4()), user_id=self._user_id, **fields))

    def set_tag_enabled(self, name: str, *, enabled: bool) -> Tag:
        """Switch the tag of a name on or off; `NotFoundError` where the user has none of that name."""
        mine = (tags.c.user_id == self._user_id) & (tags.c.name == name)
        change = update(tags).where(mine).values(is_enabled=enabled, updated_at=self._now)
        tag_id = self._connection.scalar(change.returning(tags.c.id))
        if tag_id is None:
            raise NotFoundError(f"this user has no tag {name}", status=404, code="not_found")
        return self.tag(tag_id)

    def tag(self, tag_id: str) -> Tag:
        """One tag; `NotFoundError` where the user has none with this id."""
        tag = fetch_one(self._connection, Tag, _TAG, {"user_id": self._user_id, "tag_id": tag_id})
        if tag is None:
            raise _unknown("tag")
        return tag

    def _tagged(self, names: Sequence[str]) -> Select[Any]:
        wanted = select(tags.c.id).where(tags.c.user_id == self._user_id, tags.c.name.in_(names))
        return select(memory_tags.c.memory_seq).where(memory_tags.c.tag_id.in_(wanted))

    def _one(self, memory_id: str) -> tuple[int, MemoryBlob]:
        rows = self._connection.execute(_MEMORY, {"user_id": self._user_id, "memory_id": memory_id}).all()
        if not rows:
            raise _unknown("memory")
        return self._with_tags(rows)[0]

    def _with_tags(self, rows: Sequence[Any], *, all_between: bool = True) -> list[tuple[int, MemoryBlob]]:
        """Rows as records; the tags of all of them take two queries.

        Rows that are all which the user has between the first and the last are asked for as a range.
        """
        if not rows:
            return []
        if all_between:
            ids = self._links(_LINKS_BETWEEN, first=rows[0].seq, last=rows[-1].seq)
        else:
            ids = self._links(_LINKS_OF, places=[row.seq for row in rows])
        names = self._tag_names()  # asked last: it knows every tag that was linked
        return [_placed(row, ids[row[0]], names) for row in rows]

    def _links(self, query: Select[Any], **chosen: Any) -> dict[int, list[str]]:
        """Ids of the tags of chosen records by their places, in their order."""
        ids: dict[int, list[str]] = defaultdict(list)
        for seq, tag_id in self._connection.execute(query, {"user_id": self._user_id, **chosen}).all():
            ids[seq].append(tag_id)
        return ids

    def _tag_names(self) -> dict[str, str]:
        rows = self._connection.execute(_TAG_NAMES, {"user_id": self._user_id})
        return {row.id: row.name for row in rows}

    def _set_tags(self, seq: int, names: Sequence[str]) -> dict[str, str]:
        """Link a record to its tags in their order; names that the user has no tag for are created."""
        if not names:
            return {}
        ids = self._known_tags(names)
        ids |= self._create_tags([name for name in names if name not in ids])
        links = [
            {"user_id": self._user_id, "memory_seq": seq, "position": position, "tag_id": ids[name]}
            for position, name in enumerate(names)
        ]
        self._connection.execute(_LINK, links)
        return {name: ids[name] for name in names}

    def _known_tags(self, names: Sequence[str]) -> dict[str, str]:
        """Ids by name of those tags that the user has."""
        rows = self._connection.execute(_NAMED_TAGS, {"user_id": self._user_id, "names": names})
        return {row.name: row.id for row in rows}

    def _create_tags(self, names: Sequence[str]) -> dict[str, str]:
        """New tags; their ids by name."""
        ids = {name: str(uuid4()) for name in names}
        common = {"user_id": self._user_id, "color": TAG_COLOR, "description": ""}
        times = {"created_at": self._now, "updated_at": self._now}
        if ids:
            new = [{"id": tag_id, "name": name, **common, **times} for name, tag_id in ids.items()]
            self._connection.execute(insert(tags), new)
        return ids


def _as_added(new: Mapping[str, Any], tag_ids: dict[str, str]) -> MemoryBlobResponse:
    shown: dict[str, Any] = {name: new.get(name) for name in _FIELDS}
    return MemoryBlobResponse(tags=tuple(tag_ids), tag_ids=tuple(tag_ids.values()), **shown)


def _placed(row: Sequence[Any], tag_ids: Sequence[str], names: dict[str, str]) -> tuple[int, MemoryBlob]:
    """A row of `_MINE` as a place and a record; spelled out, as a page has a thousand of them."""
    seq, memory_id, user_id, title, summary, importance, confidence, source, created, updated, content = row
    memory = MemoryBlob(
        id=memory_id,
        user_id=user_id,
        content=content,
        title=title,
        summary=summary,
        tags=tuple([names[tag_id] for tag_id in tag_ids]),
        tag_ids=tuple(tag_ids),
        importance=importance,
        confidence=confidence,
        source=source,
        created_at=created,
        updated_at=updated,
    )
    return seq, memory


def without_content(memory: MemoryBlob) -> MemoryBlobResponse:
    """A record as create and update answer it."""
    return MemoryBlobResponse(
        **{name: getattr(memory, name) for name in MemoryBlobResponse.__struct_fields__}
    )


def _unknown(thing: str) -> NotFoundError:
    return NotFoundError(f"this user has no {thing} with this id", status=404, code="not_found")
