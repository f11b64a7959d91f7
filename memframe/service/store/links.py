"""Which memories stand under which tags: rows that a filter by tags goes by.

The same stands in the memory's own row, as JSON, and the database reads it from there. A new memory and its
links go to PostgreSQL in one statement: what a create costs there is above all how often it goes and comes.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, BigInteger, ColumnElement, Insert, Text, bindparam, delete, func, insert, select

from memframe.service.store.schema import memories, memory_tags
from memframe.service.store.statements import Statement

_PLACE = bindparam("place", type_=BigInteger)
_TAG_IDS = bindparam("tag_ids", type_=Text)
_EACH_IN_SQLITE = func.json_each(_TAG_IDS).table_valued("value").c.value
_EACH_IN_POSTGRESQL = func.json_array_elements_text(_TAG_IDS.cast(JSON)).column_valued("tag_id")


def _linking(tag_id: ColumnElement[str], place: ColumnElement[int]) -> Insert:
    return insert(memory_tags).from_select(["tag_id", "memory_seq"], select(tag_id, place))


LINK = Statement(_linking(_EACH_IN_SQLITE, _PLACE), postgresql=_linking(_EACH_IN_POSTGRESQL, _PLACE))
"""Put the memory at a ``place`` under the tags of its ``tag_ids``."""

UNLINK = Statement(delete(memory_tags).where(memory_tags.c.memory_seq == _PLACE))
"""Take the memory at a ``place`` from under all its tags."""


def adding(memory: Insert) -> dict[str, tuple[Statement, ...]]:
    """The statements, by dialect, that make a memory and put it under its tags."""
    added: Any = memory.returning(memories.c.seq).cte("added")
    return {
        "sqlite": (Statement(memory), Statement(_linking(_EACH_IN_SQLITE, func.last_insert_rowid()))),
        "postgresql": (Statement(_linking(_EACH_IN_POSTGRESQL, added.c.seq)),),
    }
