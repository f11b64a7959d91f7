"""Pages of memories: behind a seq, in both orders, by an index alone; the cursors between them.

Without offset or count, the cost of a page does not depend on the size of the table. The index is ``memories_by_user``,
which has the importance, too, and under a tag the key of ``memory_tags``.

A cursor holds the seq of the last record of a page, sealed with AES-SIV (RFC 5297) for one user and one filter. It
reveals nothing about how many records the service holds; altered ones, and those of another user or filter, do not
open. AES-SIV needs no nonce, so that the same place always gives the same cursor.
"""

from __future__ import annotations

import base64
import binascii
from functools import cache
from typing import Any, NamedTuple

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from msgspec import Struct
from sqlalchemy import (
    BigInteger,
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

from memframe.errors import InvalidError
from memframe.service.store.engine import Queries, Row, SqlStatement
from memframe.service.store.schema import memories, memory_tags
from memframe.service.validation import invalid

MAX_PAGE_BYTES = 16 * 2**20
"""A page ends with the memory that makes it this large."""

CURSOR_KEY_BYTES = 64

_MAX_SEQ = 2**63 - 1
_SEQ_BYTES = 8
_SMALL_PAGE = 16  # fetched without asking for sizes first
_TEXTS = ("title", "summary", "source", "content")

_AFTER = bindparam("after", type_=BigInteger)
_LIMIT = bindparam("limit", type_=Integer)
_USER = bindparam("user_id", type_=memories.c.user_id.type)
_IMPORTANT = memories.c.importance >= bindparam("min_importance")
_SIZE = sum(
    (func.coalesce(func.octet_length(memories.c[name]), 0) for name in _TEXTS[:-1]),
    start=func.octet_length(memories.c.content),
).label("size")  # PostgreSQL knows the length of a long text without reading it


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
) -> tuple[list[Row], bool]:
    """Return `seq` and columns of the memories behind a seq, and True where more follow."""
    shape = _PageShape(len(tag_ids), chosen.min_importance is not None, chosen.newest_first)
    given: dict[str, Any] = {f"tag_{number}": tag_id for number, tag_id in enumerate(tag_ids)}
    given |= {"user_id": chosen.user_id, "after": after}
    if shape.has_importance:
        given["min_importance"] = chosen.min_importance
    if queries.dialect.name == "postgresql":  # whose driver fetches all rows at once
        if limit > _SMALL_PAGE:
            ((n_rows,),) = queries.rows(_count_within(shape), limit=limit, max_bytes=MAX_PAGE_BYTES, **given)
            limit = max(1, n_rows)
        rows = queries.rows(_page_of(columns, shape), limit=limit + 1, **given)
        return rows[:limit], len(rows) > limit
    texts = [1 + columns.index(name) for name in _TEXTS if name in columns]
    rows, has_more = queries.rows_within(
        _page_of(columns, shape), max_chars=MAX_PAGE_BYTES, texts=texts, limit=limit + 1, **given
    )
    return rows[:limit], has_more or len(rows) > limit


class _PageShape(NamedTuple):
    """Shape of a page: all that its statement depends on."""

    n_tags: int
    has_importance: bool
    is_descending: bool
    in_postgresql: bool = False

    def behind(self, owner: Column[str], value: ColumnElement[str], seq: Column[int]) -> ColumnElement[bool]:
        """Compare owner and seq with ``after``.

        For PostgreSQL as one comparison of two columns, which one index answers: it would else scan by seq alone, and
        read everybody's memories, where it believes that the user has a good share of the table.
        """
        if not self.in_postgresql:
            return (owner == value) & (seq < _AFTER if self.is_descending else seq > _AFTER)
        row, place = tuple_(owner, seq), tuple_(value, _AFTER)
        return (row < place) & (owner >= value) if self.is_descending else (row > place) & (owner <= value)

    def order_by(self, *columns: Column[Any]) -> list[ColumnElement[Any]]:
        return [column.desc() if self.is_descending else column for column in columns]


@cache  # of few columns, and of the numbers of tags that a filter can have
def _page_of(columns: tuple[str, ...], shape: _PageShape) -> SqlStatement:
    chosen = [memories.c[name] for name in columns]
    in_postgresql = _select_page(chosen, shape._replace(in_postgresql=True))
    return SqlStatement(_select_page(chosen, shape), postgresql=in_postgresql)


@cache
def _count_within(shape: _PageShape) -> SqlStatement:
    """Count the rows of a page up to the one with which they reach ``max_bytes``; for PostgreSQL."""
    rows = _select_page([_SIZE], shape._replace(in_postgresql=True)).subquery()
    in_order = rows.c.seq.desc() if shape.is_descending else rows.c.seq
    before = func.sum(rows.c.size).over(order_by=in_order) - rows.c.size
    sums = select(before.label("before")).subquery()
    return SqlStatement(select(func.count()).select_from(sums).where(sums.c.before < bindparam("max_bytes")))


def _select_page(columns: list[Any], shape: _PageShape) -> Select[Any]:
    rows = select(memories.c.seq, *columns).limit(_LIMIT)
    if shape.n_tags:
        tagged = union(*(_select_tagged(f"tag_{number}", shape) for number in range(shape.n_tags)))
        found = select(tagged.subquery().c.memory_seq)  # of the user, as the tags are
        return rows.where(memories.c.seq.in_(found)).order_by(*shape.order_by(memories.c.seq))
    rows = rows.where(shape.behind(memories.c.user_id, _USER, memories.c.seq))
    rows = rows.where(_IMPORTANT) if shape.has_importance else rows
    return rows.order_by(*shape.order_by(memories.c.user_id, memories.c.seq))


def _select_tagged(parameter: str, shape: _PageShape) -> Select[Any]:
    """Select the first memories behind ``after`` under one tag; each tag for itself, as its index is ordered."""
    tag_id, seq = bindparam(parameter, type_=memory_tags.c.tag_id.type), memory_tags.c.memory_seq
    found = select(seq).where(shape.behind(memory_tags.c.tag_id, tag_id, seq))
    if shape.has_importance:
        found = found.join(memories, memories.c.seq == seq).where(memories.c.user_id == _USER, _IMPORTANT)
    first = found.order_by(*shape.order_by(memory_tags.c.tag_id, seq)).limit(_LIMIT)
    return select(first.subquery().c.memory_seq)  # SQLite allows no LIMIT in an arm of a union


class CursorCipher:
    """Seal and open cursors, with a key of `CURSOR_KEY_BYTES`.

    >>> cursors = CursorCipher(bytes(range(64)))
    >>> everything = MemoryFilter("u-1")
    >>> cursors.open(cursors.seal(4711, everything), everything)
    4711
    """

    def __init__(self, key: bytes) -> None:
        self._cipher = AESSIV(key)

    def seal(self, seq: int, chosen: MemoryFilter) -> str:
        """Make the cursor of the page after a seq."""
        sealed = self._cipher.encrypt(seq.to_bytes(_SEQ_BYTES), [msgspec.json.encode(chosen)])
        return base64.urlsafe_b64encode(sealed).decode()

    def open(self, cursor: str | None, chosen: MemoryFilter) -> int:
        """Return the seq in a cursor that was made for this filter, or its start; `InvalidError` for any other."""
        if not cursor:
            return chosen.start
        try:
            sealed = base64.b64decode(cursor, altchars=b"-_", validate=True)
            seq = int.from_bytes(self._cipher.decrypt(sealed, [msgspec.json.encode(chosen)]))
        except (binascii.Error, ValueError, InvalidTag):
            raise _bad_cursor() from None
        if self.seal(seq, chosen) != cursor:  # another spelling of the same bytes
            raise _bad_cursor()
        return seq


def _bad_cursor() -> InvalidError:
    return invalid(
        "the cursor was not made for this user and these filters; repeat the call that gave it "
        "with the same parameters, or start without a cursor",
        "invalid_cursor",
    )
