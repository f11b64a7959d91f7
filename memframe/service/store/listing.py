"""List pages of memories after a seq, in both orders, by an index alone.

The queries have neither an offset nor a count, so that the cost of a page does not depend on the size of the table. The
index is ``memories_by_user``, which includes the importance, and with tags the primary key of ``memory_tags``.
"""

# ruff: noqa: S608 - statements are made of our own names; values are parameters

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from msgspec import Struct

from memframe.fields import MEMORY_FIELDS
from memframe.service.store.engine import Queries, Row, SqlStatement

MAX_PAGE_BYTES = 16 * 2**20
"""A page ends with the memory that makes it this large."""

_MAX_SEQ = 2**63 - 1
_SMALL_PAGE = 16  # fetched without asking for sizes first
_TEXTS = tuple(field.name for field in MEMORY_FIELDS if field.is_editable and field.kind == "text")
_SIZE = " + ".join(f"coalesce(octet_length({name}), 0)" for name in _TEXTS) + " AS size"
"""PostgreSQL knows the length of a long text without reading it."""


class MemoryFilter(Struct, frozen=True):
    """Filter of a list call, and its order: that of creation, or the reverse."""

    user_id: str
    tags: tuple[str, ...] = ()
    search: str = ""
    min_importance: float | None = None
    newest_first: bool = False

    @property
    def start(self) -> int:
        return _MAX_SEQ if self.newest_first else 0


def list_rows(
    queries: Queries,
    columns: tuple[str, ...],
    chosen: MemoryFilter,
    tag_ids: tuple[str, ...],
    *,
    after: int,
    limit: int,
    max_bytes: int | None = None,
) -> tuple[list[Row], bool]:
    """Return `seq` and columns of the memories after a seq, and True if more follow."""
    max_bytes = MAX_PAGE_BYTES if max_bytes is None else max_bytes
    shape = _PageShape(len(tag_ids), chosen.min_importance is not None, chosen.newest_first)
    given: dict[str, Any] = {f"tag_{number}": tag_id for number, tag_id in enumerate(tag_ids)}
    given |= {"user_id": chosen.user_id, "after": after, "min_importance": chosen.min_importance}
    if queries.dialect.name == "postgresql":  # its driver fetches all rows at once
        if limit > _SMALL_PAGE:
            ((n_rows,),) = queries.rows(_count_within(shape), limit=limit, max_bytes=max_bytes, **given)
            limit = max(1, n_rows)
        rows = queries.rows(_page_of(columns, shape), limit=limit + 1, **given)
        return rows[:limit], len(rows) > limit
    texts = [1 + columns.index(name) for name in _TEXTS if name in columns]
    rows, has_more = queries.rows_within(
        _page_of(columns, shape), max_chars=max_bytes, texts=texts, limit=limit + 1, **given
    )
    return rows[:limit], has_more or len(rows) > limit


class _PageShape(NamedTuple):
    """Everything on which the statement of a page depends."""

    n_tags: int
    has_importance: bool
    is_descending: bool

    @property
    def order(self) -> str:
        return "DESC" if self.is_descending else "ASC"

    def select(self, columns: str, *, in_postgresql: bool) -> str:
        """Write the query of a page; with tags, it first selects the memories of each, because the index is by tag."""
        order, important = self.order, " AND importance >= :min_importance" if self.has_importance else ""

        def behind(owner: str, value: str, seq: str) -> str:
            sign, bound = ("<", ">=") if self.is_descending else (">", "<=")
            if not in_postgresql:
                return f"{owner} = {value} AND {seq} {sign} :after"
            # Both columns are compared at once, so that PostgreSQL uses their index. Otherwise it would scan by seq
            # alone, and read everybody's memories, if it estimates that the user has a large share of the table.
            row = f"({owner}, {seq}) {sign} ({value}, CAST(:after AS bigint))"
            return f"{row} AND {owner} {bound} {value}"

        page = f"SELECT seq, {columns} FROM memories WHERE "
        if not self.n_tags:
            condition = behind("user_id", ":user_id", "seq") + important
            return f"{page}{condition} ORDER BY user_id {order}, seq {order} LIMIT :limit"
        join = f"JOIN memories ON seq = memory_seq AND user_id = :user_id{important}" if important else ""
        tagged = " UNION ".join(  # SQLite allows no LIMIT in an arm of a union
            f"SELECT memory_seq FROM (SELECT memory_seq FROM memory_tags {join} "
            f"WHERE {behind('tag_id', f':tag_{number}', 'memory_seq')} "
            f"ORDER BY tag_id {order}, memory_seq {order} LIMIT :limit) AS tagged_{number}"
            for number in range(self.n_tags)
        )
        # no condition on the user: the tags are the user's, and so are their memories
        return f"{page}seq IN ({tagged}) ORDER BY seq {order} LIMIT :limit"


@cache  # bounded: there are few sets of columns, and few shapes of filters
def _page_of(columns: tuple[str, ...], shape: _PageShape) -> SqlStatement:
    names = ", ".join(columns)
    in_postgresql = shape.select(names, in_postgresql=True)
    return SqlStatement(shape.select(names, in_postgresql=False), postgresql=in_postgresql)


@cache
def _count_within(shape: _PageShape) -> SqlStatement:
    """Count the rows of a page up to the one with which they reach ``max_bytes``; for PostgreSQL."""
    return SqlStatement(
        f"SELECT count(*) FROM (SELECT sum(size) OVER (ORDER BY seq {shape.order}) - size AS before "
        f"FROM ({shape.select(_SIZE, in_postgresql=True)}) AS page) AS sums WHERE before < :max_bytes"
    )
