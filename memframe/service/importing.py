"""Memories and tags from elsewhere, with the times that they had there; content comes in the open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from memframe.service import rules
from memframe.service.deployment import Deployment
from memframe.service.store.tags import TAG_COLOR
from memframe.service.times import instant_text

Moment = Annotated[datetime, Meta(tz=True)]
"""A time that says which zone it is in: without one nobody knows when it was."""

Record = TypeVar("Record", bound=Struct)


class ForeignMemory(Struct, frozen=True, kw_only=True):
    """What is taken over of a memory; ids are made anew."""

    content: str
    title: str | None = None
    summary: str | None = None
    tags: tuple[str, ...] | None = None
    importance: float | None = None
    confidence: float | None = None
    source: str | None = None
    created_at: Moment | None = None
    updated_at: Moment | None = None


class ForeignTag(Struct, frozen=True, kw_only=True):
    """What is taken over of a tag."""

    name: str
    color: str | None = None
    description: str | None = None
    is_enabled: bool = True
    created_at: Moment | None = None
    updated_at: Moment | None = None


def import_memories(
    deployment: Deployment, user_id: str, memories: Iterable[object], tags: Iterable[object] = ()
) -> None:
    """Give a user memories and tags from elsewhere, all or none.

    Parameters
    ----------
    deployment : Deployment
    user_id : str
        Whose they become.
    memories, tags : iterable of object
        Mappings, or objects with attributes, named like the fields of `ForeignMemory` and `ForeignTag`;
        others are ignored. Times are aware datetimes, or ISO 8601 text with a zone; none is now.

    Raises
    ------
    InvalidError
        A record is not of that form: the message says which, and what is wrong with it.
    """
    with deployment.store.owned(user_id) as mine:
        envelope = deployment.keyring(user_id, mine).present.envelope
        for tag in _checked(tags, ForeignTag, "tag"):
            mine.tags.add(_tag_columns(tag, deployment.now()))
        for memory in _checked(memories, ForeignMemory, "memory"):
            sealed = {"content": envelope.seal(rules.checked_text(memory.content, "content"))}
            mine.add(_columns(memory, deployment.now()) | sealed, rules.tag_names(memory.tags or ()))


def _checked(records: Iterable[object], kind: type[Record], name: str) -> Iterator[Record]:
    for place, record in enumerate(records):
        try:
            yield msgspec.convert(record, kind, from_attributes=True)
        except msgspec.ValidationError as error:
            raise rules.invalid(f"{name} {place} cannot be taken over: {error}") from None


def _columns(memory: ForeignMemory, now: datetime) -> dict[str, Any]:
    texts = {name: getattr(memory, name) for name in ("title", "summary", "source")}
    scores = {name: rules.score(getattr(memory, name), name) for name in ("importance", "confidence")}
    checked = {name: text and rules.checked_text(text, name) for name, text in texts.items()}
    return checked | scores | _times(memory, now)


def _tag_columns(tag: ForeignTag, now: datetime) -> dict[str, Any]:
    (name,) = rules.tag_names([tag.name])
    described = {"color": tag.color or TAG_COLOR, "description": tag.description or ""}
    return {"name": name, "is_enabled": tag.is_enabled, **described, **_times(tag, now)}


def _times(record: ForeignMemory | ForeignTag, now: datetime) -> dict[str, str]:
    created_at = record.created_at or now
    times = {"created_at": created_at, "updated_at": record.updated_at or created_at}
    return {name: instant_text(moment) for name, moment in times.items()}
