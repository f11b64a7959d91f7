"""Creates that came with an ``Idempotency-Key``: the same key and body once more make no second record.

Keys that are over are forgotten by whoever comes next. In PostgreSQL nobody waits for another process that is
about to forget the same ones: the two might wait for each other.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from sqlalchemy import Column, ColumnClause, any_, bindparam, delete, func, insert, literal_column, select
from sqlalchemy.exc import IntegrityError

from memframe.errors import ConflictError, InvalidError
from memframe.service.store.schema import idempotency_keys
from memframe.service.store.statements import Queries, Statement
from memframe.service.times import instant_text

KEPT = timedelta(hours=24)
"""How long a key is remembered."""

_ctid: ColumnClause[Any] = literal_column("ctid")
"""Of a row in PostgreSQL: the way to just those rows that were found and could be locked."""


def forgetting(time: Column[Any]) -> Statement:
    """Return the statement that deletes the rows of a table whose time is not after ``until``."""
    over = time <= bindparam("until")
    unlocked = select(_ctid).select_from(time.table).where(over).with_for_update(skip_locked=True)
    return Statement(
        delete(time.table).where(over),
        postgresql=delete(time.table).where(_ctid == any_(func.array(unlocked.scalar_subquery()))),
    )


_FORGET = forgetting(idempotency_keys.c.created_at)
_RECALL = Statement(
    select(idempotency_keys.c.body_hash, idempotency_keys.c.memory_id)
    .where(idempotency_keys.c.developer_id == bindparam("developer_id"))
    .where(idempotency_keys.c.key_hash == bindparam("key_hash"))
)
_REMEMBER = Statement(insert(idempotency_keys))


class Attempt(Struct, frozen=True):
    """One request under an idempotency key: hashes of the key and of the body."""

    key_hash: str
    body_hash: str


class Replays:
    """The idempotency keys of one developer, inside the transaction that creates."""

    def __init__(self, queries: Queries, developer_id: str, *, now: datetime) -> None:
        self._queries = queries
        self._developer_id = developer_id
        self._now = now

    def recall(self, attempt: Attempt) -> str | None:
        """Id of the record that this key has created, or None for a new key."""
        until = instant_text(self._now - KEPT)
        self._queries.remembered(("forgotten",), lambda: self._queries.run(_FORGET, until=until))
        key = {"developer_id": self._developer_id, "key_hash": attempt.key_hash}
        row = self._queries.row(_RECALL, **key)
        if row is None:
            return None
        body_hash, memory_id = row
        if body_hash != attempt.body_hash:
            message = "this Idempotency-Key came with another body before; use a new key for a new record"
            raise InvalidError(message, status=422, code="idempotency_key_reused")
        return str(memory_id)

    def remember(self, attempt: Attempt, memory_id: str) -> None:
        """Note what a key has created, unless another process has just done so for another user."""
        try:
            self._queries.run(
                _REMEMBER,
                developer_id=self._developer_id,
                key_hash=attempt.key_hash,
                body_hash=attempt.body_hash,
                memory_id=memory_id,
                created_at=instant_text(self._now),
            )
        except IntegrityError:
            raise still_in_flight() from None


def still_in_flight() -> ConflictError:
    """The 409 of a request whose key belongs to another one that is still under way."""
    message = "a request with this Idempotency-Key is still under way; send it again in a moment"
    return ConflictError(message, status=409, code="idempotency_key_in_flight")


def spent() -> ConflictError:
    """The 409 of a key whose record is no more."""
    message = "this Idempotency-Key has created a memory that was deleted since; use a new key"
    return ConflictError(message, status=409, code="idempotency_key_spent")
