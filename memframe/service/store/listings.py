"""The statements behind lists and searches: pages of one user's memories in the order of their creation.

Each goes on behind a place by an index (no offset, no count), so that its cost is that of the page, whatever
else is in the table: the user's memories by ``memories_by_user``, in which scores are looked at without the
memory itself, and those under a tag by the key of ``memory_tags``, each tag for itself, as only then they
come in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Integer, Select, bindparam, select, union

from memframe.service.cursors import Filter
from memframe.service.store.schema import memories, memory_tags
from memframe.service.store.statements import Statement

Columns = tuple[str, ...]

_AFTER = bindparam("after", type_=BigInteger)
_LIMIT = bindparam("limit", type_=Integer)


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


@cache  # of few columns, and of the numbers of tags that a filter can have
def _listing(columns: Columns, n_tags: int, *, has_importance: bool) -> Statement:
    wanted = memories.c.user_id == bindparam("user_id")
    if has_importance:
        wanted &= memories.c.importance >= bindparam("min_importance")
    rows = select(memories.c.seq, *(memories.c[name] for name in columns))
    if n_tags:
        arms = [_tagged(f"tag_{number}", wanted) for number in range(n_tags)]
        rows = rows.where(memories.c.seq.in_(select(union(*arms).subquery().c.memory_seq)))
    else:
        rows = rows.where(wanted, memories.c.seq > _AFTER)
    return Statement(rows.order_by(memories.c.seq).limit(_LIMIT))


def _tagged(parameter: str, wanted: ColumnElement[bool]) -> Select[Any]:
    """The first places behind the present one of memories under one tag."""
    places = (
        select(memory_tags.c.memory_seq)
        .join(memories, memories.c.seq == memory_tags.c.memory_seq)
        .where(memory_tags.c.tag_id == bindparam(parameter), memory_tags.c.memory_seq > _AFTER, wanted)
        .order_by(memory_tags.c.memory_seq)
        .limit(_LIMIT)
    )
    return select(places.subquery().c.memory_seq)  # SQLite limits no arm of a union by itself
