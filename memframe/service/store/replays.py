"""Creates that came with an ``Idempotency-Key``: the same key and body once more make no second record."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, insert, select

from memframe.errors import InvalidError
from memframe.service.store.schema import idempotency_keys

KEPT = timedelta(hours=24)
"""How long a key is remembered."""


class Replays:
    """The idempotency keys of one developer, inside the transaction that creates."""

    def __init__(self, connection: Connection, developer_id: str, *, now: datetime) -> None:
        self._connection = connection
        self._developer_id = developer_id
        self._now = now

    def recall(self, key_hash: str, body_hash: str) -> str | None:
        """Id of the record that this key has created, or None for a new key."""
        forgotten = idempotency_keys.c.created_at <= self._now - KEPT
        self._connection.execute(delete(idempotency_keys).where(forgotten))
        row = self._connection.execute(
            select(idempotency_keys.c.body_hash, idempotency_keys.c.memory_id)
            .where(idempotency_keys.c.developer_id == self._developer_id)
            .where(idempotency_keys.c.key_hash == key_hash)
        ).one_or_none()
        if row is None:
            return None
        if row.body_hash != body_hash:
            message = "this Idempotency-Key came with another body before; use a new key for a new record"
            raise InvalidError(message, status=422, code="idempotency_key_reused")
        return str(row.memory_id)

    def remember(self, key_hash: str, body_hash: str, memory_id: str) -> None:
        """Note what a key has created."""
        new = {"key_hash": key_hash, "body_hash": body_hash, "memory_id": memory_id, "created_at": self._now}
        self._connection.execute(insert(idempotency_keys).values(developer_id=self._developer_id, **new))
