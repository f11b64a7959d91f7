"""Import memories and tags from elsewhere, with their times; content is plain text."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, Protocol, runtime_checkable

import msgspec
from msgspec import Meta, Struct

from memframe.errors import InvalidError
from memframe.service import validation
from memframe.service.clock import format_instant
from memframe.service.deployment import Deployment
from memframe.service.store.memories import TAG_COLOR

Moment = Annotated[datetime, Meta(tz=True)]
"""A time with a zone."""


class ForeignMemory(Struct, frozen=True, kw_only=True):
    """Imported fields of a memory; ids are made anew."""

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
    """Import memories and tags of a user, all or none.

    Parameters
    ----------
    deployment : Deployment
    user_id : str
        Their new owner.
    memories, tags : DataFrame, or iterable of object
        Rows such as `memframe.load_memories` and `memframe.load_tags` give, the same as
        ``frame.to_dict("records")``, or objects with attributes. They are named like the fields of `ForeignMemory` and
        `ForeignTag`; others are ignored, as are ``id`` and ``user_id``: the memories get new ids, and become this
        user's. Times are aware datetimes, or ISO 8601 text with a zone; none is now. What is missing in a frame (None,
        NaN, NaT, NA) is missing.

    Raises
    ------
    InvalidError
        A record is not of that form: the message says which, and what is wrong with it.
    """
    with deployment.store.owned(user_id) as mine:
        envelope = deployment.keyring(user_id, mine).present.envelope
        for name, record in _records(tags, "tag"):
            with _naming(name):
                tag = msgspec.convert(record, ForeignTag, from_attributes=True)
                mine.tags.add(_tag_columns(tag, deployment.now()))
        for name, record in _records(memories, "memory"):
            with _naming(name):
                memory = msgspec.convert(record, ForeignMemory, from_attributes=True)
                sealed = {"content": envelope.seal(validation.check_text(memory.content, "content"))}
                mine.add(
                    _columns(memory, deployment.now()) | sealed, validation.check_tag_names(memory.tags or ())
                )


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
