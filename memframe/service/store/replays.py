"""Creates that came with an ``Idempotency-Key``: the same key and body once more make no second record."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct
from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.exc import IntegrityError

from memframe.errors import ConflictError, InvalidError
from memframe.service.store.schema import idempotency_keys

KEPT = timedelta(hours=24)
"""How long a key is remembered."""


class Attempt(Struct, frozen=True):
    """One request under an idempotency key: hashes of the key and of the body."""

    key_hash: str
    body_hash: str


class Replays:
    """The idempotency keys of one developer, inside the transaction that creates."""

    def __init__(self, connection: Connection, developer_id: str, *, now: datetime) -> None:
        self._connection = connection
        self._developer_id = developer_id
        self._now = now

    def recall(self, attempt: Attempt) -> str | None:
        """Id of the record that this key has created, or None for a new key."""
        forgotten = idempotency_keys.c.created_at <= self._now - KEPT
        self._connection.execute(delete(idempotency_keys).where(forgotten))
        row = self._connection.execute(
            select(idempotency_keys.c.body_hash, idempotency_keys.c.memory_id)
            .where(idempotency_keys.c.developer_id == self._developer_id)
            .where(idempotency_keys.c.key_hash == attempt.key_hash)
        ).one_or_none()
        if row is None:
            return None
        if row.body_hash != attempt.body_hash:
            message = "this Idempotency-Key came with another body before; use a new key for a new record"
            raise InvalidError(message, status=422, code="idempotency_key_reused")
        return str(row.memory_id)

    def remember(self, attempt: Attempt, memory_id: str) -> None:
        """Note what a key has created, unless another process has just done so for another user."""
        new = {
            "developer_id": self._developer_id,
            "key_hash": attempt.key_hash,
            "body_hash": attempt.body_hash,
            "memory_id": memory_id,
            "created_at": self._now,
        }
        try:
            self._connection.execute(insert(idempotency_keys).values(**new))
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
