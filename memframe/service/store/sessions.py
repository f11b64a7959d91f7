"""Sessions of signed-in users in the database, known only by the hash of their cookie."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Engine, delete, insert, select

from memframe.service.store.accounts import User
from memframe.service.store.engine import fetch_one, writing
from memframe.service.store.schema import sessions, users
from memframe.service.times import Clock

SESSION_LIFETIME = timedelta(hours=12)


class Sessions:
    """Queries on sessions."""

    def __init__(self, engine: Engine, *, now: Clock) -> None:
        self._engine = engine
        self._now = now

    def open(self, *, token_hash: str, user_id: str) -> None:
        """Note that a user has signed in; sessions that have run out are forgotten on this occasion."""
        now = self._now()
        row = {
            "token_hash": token_hash,
            "user_id": user_id,
            "created_at": now,
            "expires_at": now + SESSION_LIFETIME,
        }
        with writing(self._engine) as connection:
            connection.execute(delete(sessions).where(sessions.c.expires_at <= now))
            connection.execute(insert(sessions).values(**row))

    def user(self, token_hash: str) -> User | None:
        """Who is signed in with a cookie of this hash, if the session still runs."""
        columns = [users.c[name] for name in User.__struct_fields__]
        query = (
            select(*columns)
            .join(sessions, sessions.c.user_id == users.c.id)
            .where(sessions.c.token_hash == token_hash, sessions.c.expires_at > self._now())
            .where(users.c.disabled.is_(False))
        )
        with self._engine.connect() as connection:
            return fetch_one(connection, User, query)

    def end(self, token_hash: str) -> None:
        """End a session."""
        with writing(self._engine) as connection:
            connection.execute(delete(sessions).where(sessions.c.token_hash == token_hash))
