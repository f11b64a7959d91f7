"""Select pages of memories: behind a seq, in both orders, by an index alone.

Without offset or count, the cost of a page does not depend on the size of the table. The index is ``memories_by_user``,
which has the importance, too, and under a tag the key of ``memory_tags``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

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

from memframe.service.store.schema import memories, memory_tags
from memframe.service.store.statements import SqlStatement

Columns = tuple[str, ...]
Conditions = Sequence[ColumnElement[bool]]
Behind = Callable[[Column[str], BindParameter[str], Column[int]], ColumnElement[bool]]


class Order(NamedTuple):
    """Order of a page: conditions on what is behind a seq, for SQLite and for PostgreSQL."""

    in_sqlite: Behind
    in_postgresql: Behind
    is_descending: bool

    def by(self, *columns: Column[Any]) -> list[ColumnElement[Any]]:
        """Return the terms of ORDER BY."""
        return [column.desc() if self.is_descending else column for column in columns]


_AFTER = bindparam("after", type_=BigInteger)
_LIMIT = bindparam("limit", type_=Integer)
_USER = bindparam("user_id", type_=memories.c.user_id.type)
_IMPORTANT = memories.c.importance >= bindparam("min_importance")
_SIZE = sum(
    (func.coalesce(func.octet_length(memories.c[name]), 0) for name in ("title", "summary", "source")),
    start=func.octet_length(memories.c.content),
).label("size")  # PostgreSQL knows the length of a long text without reading it


def _after(owner: Column[str], value: BindParameter[str], seq: Column[int]) -> ColumnElement[bool]:
    return (owner == value) & (seq > _AFTER)


def _before(owner: Column[str], value: BindParameter[str], seq: Column[int]) -> ColumnElement[bool]:
    return (owner == value) & (seq < _AFTER)


# as one comparison of two columns, which one index answers: PostgreSQL would else scan by seq alone, and read
# everybody's memories, where it believes that the user has a good share of the table


def _after_as_row(owner: Column[str], value: BindParameter[str], seq: Column[int]) -> ColumnElement[bool]:
    return (tuple_(owner, seq) > tuple_(value, _AFTER)) & (owner <= value)


def _before_as_row(owner: Column[str], value: BindParameter[str], seq: Column[int]) -> ColumnElement[bool]:
    return (tuple_(owner, seq) < tuple_(value, _AFTER)) & (owner >= value)


ASCENDING = Order(_after, _after_as_row, is_descending=False)
DESCENDING = Order(_before, _before_as_row, is_descending=True)


@cache  # of few columns, and of the numbers of tags that a filter can have
def page_of(columns: Columns, n_tags: int, order: Order, *, has_importance: bool) -> SqlStatement:
    """Select the columns of a page, `seq` first."""
    listed = partial(_select_page, columns, n_tags, [_IMPORTANT] if has_importance else [], order)
    return SqlStatement(listed(order.in_sqlite), postgresql=listed(order.in_postgresql))


@cache
def count_within(n_tags: int, order: Order, *, has_importance: bool) -> SqlStatement:
    """Count the rows of a page up to the one with which they reach ``max_bytes``; for PostgreSQL."""
    important = [_IMPORTANT] if has_importance else []
    rows = _select_page(("size",), n_tags, important, order, order.in_postgresql).subquery()
    in_order = rows.c.seq.desc() if order.is_descending else rows.c.seq
    before = func.sum(rows.c.size).over(order_by=in_order) - rows.c.size
    sums = select(before.label("before")).subquery()
    return SqlStatement(select(func.count()).select_from(sums).where(sums.c.before < bindparam("max_bytes")))


def _select_page(
    columns: Columns, n_tags: int, important: Conditions, order: Order, behind: Behind
) -> Select[Any]:
    chosen = [_SIZE if name == "size" else memories.c[name] for name in columns]
    rows = select(memories.c.seq, *chosen).limit(_LIMIT)
    if n_tags:
        arms = [_select_tagged(f"tag_{number}", important, order, behind) for number in range(n_tags)]
        found = select(union(*arms).subquery().c.memory_seq)  # of the user, as the tags are
        return rows.where(memories.c.seq.in_(found)).order_by(*order.by(memories.c.seq))
    mine = behind(memories.c.user_id, _USER, memories.c.seq)
    return rows.where(mine, *important).order_by(*order.by(memories.c.user_id, memories.c.seq))


def _select_tagged(parameter: str, important: Conditions, order: Order, behind: Behind) -> Select[Any]:
    """Select the first memories behind ``after`` under one tag; each tag for itself, as its index is ordered."""
    tag_id, seq = bindparam(parameter, type_=memory_tags.c.tag_id.type), memory_tags.c.memory_seq
    found = select(seq).where(behind(memory_tags.c.tag_id, tag_id, seq))
    if important:
        found = found.join(memories, memories.c.seq == seq).where(memories.c.user_id == _USER, *important)
    first = found.order_by(*order.by(memory_tags.c.tag_id, seq)).limit(_LIMIT)
    return select(first.subquery().c.memory_seq)  # SQLite allows no LIMIT in an arm of a union
