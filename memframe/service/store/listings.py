"""The statements behind lists and searches: pages of one user's memories in the order of their creation.

Each goes on behind a place by an index (no offset, no count), so that its cost is that of the page, whatever
else is in the table: the user's memories by ``memories_by_user``, in which scores are looked at without the
memory itself, and those under a tag by the key of ``memory_tags``, each tag for itself, as only then they
come in order.

PostgreSQL is asked in another way than SQLite: whose they are and where they go on as one comparison of two
columns, which one index alone can answer. Otherwise it takes the places alone where it believes that a user
has a good share of the table, and reads everybody's memories until it comes to those of the user.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Column,
    ColumnElement,
    Integer,
    Select,
    bindparam,
    func,
    select,
    tuple_,
    union,
)

from memframe.service.cursors import Filter
from memframe.service.store.schema import memories, memory_tags
from memframe.service.store.statements import Statement

Columns = tuple[str, ...]
Conditions = Sequence[ColumnElement[bool]]
Behind = Callable[[Column[str], BindParameter[str], Column[int]], ColumnElement[bool]]

_AFTER = bindparam("after", type_=BigInteger)
_LIMIT = bindparam("limit", type_=Integer)
_USER = bindparam("user_id", type_=memories.c.user_id.type)
_IMPORTANT = memories.c.importance >= bindparam("min_importance")


_SIZE = sum(
    (func.coalesce(func.octet_length(memories.c[name]), 0) for name in ("title", "summary", "source")),
    start=func.octet_length(memories.c.content),
).label("size")
"""Bytes of a memory's texts, which PostgreSQL knows without reading long ones."""


def listing(columns: Columns, chosen: Filter, tag_ids: Sequence[str]) -> tuple[Statement, dict[str, Any]]:
    """The statement for a filter, and the parameters that the filter gives it.

    Further parameters are ``after``, the place behind which it goes on, and ``limit``. Rows begin with
    their place.
    """
    parameters: dict[str, Any] = {f"tag_{number}": tag_id for number, tag_id in enumerate(tag_ids)}
    if chosen.min_importance is not None:
        parameters["min_importance"] = chosen.min_importance
    statement = _listing(columns, len(tag_ids), has_importance=chosen.min_importance is not None)
    return statement, {"user_id": chosen.user_id, **parameters}


def counting(chosen: Filter, tag_ids: Sequence[str]) -> tuple[Statement, dict[str, Any]]:
    """Return the statement that counts the rows of a listing up to the one with which they reach ``max_bytes``.

    Further parameters are those of `listing`, and ``max_bytes``. It is for PostgreSQL.
    """
    _, parameters = listing(("size",), chosen, tag_ids)
    return _counting(len(tag_ids), has_importance=chosen.min_importance is not None), parameters


@cache
def _counting(n_tags: int, *, has_importance: bool) -> Statement:
    rows = _listed(("size",), n_tags, [_IMPORTANT] if has_importance else [], _behind_as_row).subquery()
    before = func.sum(rows.c.size).over(order_by=rows.c.seq) - rows.c.size
    sums = select(before.label("before")).subquery()
    return Statement(select(func.count()).select_from(sums).where(sums.c.before < bindparam("max_bytes")))


@cache  # of few columns, and of the numbers of tags that a filter can have
def _listing(columns: Columns, n_tags: int, *, has_importance: bool) -> Statement:
    listed = partial(_listed, columns, n_tags, [_IMPORTANT] if has_importance else [])
    return Statement(listed(_behind), postgresql=listed(_behind_as_row))


def _listed(columns: Columns, n_tags: int, important: Conditions, behind: Behind) -> Select[Any]:
    rows = select(memories.c.seq, *(_SIZE if name == "size" else memories.c[name] for name in columns)).limit(
        _LIMIT
    )
    if n_tags:
        arms = [_tagged(f"tag_{number}", important, behind) for number in range(n_tags)]
        found = select(union(*arms).subquery().c.memory_seq)  # the user's, as the tags are
        return rows.where(memories.c.seq.in_(found)).order_by(memories.c.seq)
    mine = behind(memories.c.user_id, _USER, memories.c.seq)
    return rows.where(mine, *important).order_by(memories.c.user_id, memories.c.seq)


def _tagged(parameter: str, important: Conditions, behind: Behind) -> Select[Any]:
    """The first places behind the present one of memories under one tag."""
    tag_id, place = bindparam(parameter, type_=memory_tags.c.tag_id.type), memory_tags.c.memory_seq
    places = select(place).where(behind(memory_tags.c.tag_id, tag_id, place))
    if important:
        places = places.join(memories, memories.c.seq == place).where(memories.c.user_id == _USER, *important)
    first = places.order_by(memory_tags.c.tag_id, place).limit(_LIMIT)
    return select(first.subquery().c.memory_seq)  # SQLite limits no arm of a union by itself


def _behind(column: Column[str], value: BindParameter[str], place: Column[int]) -> ColumnElement[bool]:
    """Rows that have a value in one column and, in another, a place behind the present one."""
    return (column == value) & (place > _AFTER)


def _behind_as_row(column: Column[str], value: BindParameter[str], place: Column[int]) -> ColumnElement[bool]:
    return (tuple_(column, place) > tuple_(value, _AFTER)) & (column <= value)
