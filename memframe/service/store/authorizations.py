"""What the authorization server hands out: codes, the user's tokens, and sessions of the dashboard.

All are stored as hashes. A code is consumed by one conditional UPDATE, so that of many exchanges at
the same moment one wins; the losers are told the code's id, to revoke what it gave.
"""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4

from msgspec import Struct
from sqlalchemy import Engine, delete, insert, select, update

from memframe.service.store.engine import columns_of, fetch_one, writing
from memframe.service.store.schema import authorization_codes, sessions, user_tokens
from memframe.service.times import Clock


class AuthorizationCode(Struct, frozen=True):
    """A code as it was bound when the user consented."""

    id: str
    developer_id: str
    user_id: str
    redirect_uri: str
    code_challenge: str | None
    expires_at: datetime
    used_at: datetime | None


class UserToken(Struct, frozen=True):
    """An access or refresh token of a user."""

    kind: str
    code_id: str
    developer_id: str
    user_id: str
    expires_at: datetime
    revoked_at: datetime | None


class Session(Struct, frozen=True):
    """A browser at the dashboard; without ``user_id`` nobody has signed in yet."""

    token_hash: str
    user_id: str | None
    csrf_secret: str
    expires_at: datetime


class Authorizations:
    """Queries on authorization codes and the tokens that came of them."""

    def __init__(self, engine: Engine, *, now: Clock) -> None:
        self._engine = engine
        self._now = now

    def add_code(
        self,
        *,
        code_hash: str,
        developer_id: str,
        user_id: str,
        redirect_uri: str,
        code_challenge: str | None,
        expires_at: datetime,
    ) -> None:
        """Note a code that a user's consent gave."""
        new = {
            "id": str(uuid4()),
            "code_hash": code_hash,
            "developer_id": developer_id,
            "user_id": user_id,
            "redirect_uri": redirect_uri,
            "code_challenge": code_challenge,
            "created_at": self._now(),
            "expires_at": expires_at,
        }
        with writing(self._engine) as connection:
            connection.execute(insert(authorization_codes).values(**new))

    def code(self, code_hash: str) -> AuthorizationCode | None:
        """The code with this hash, used or not."""
        columns = [authorization_codes.c[name] for name in AuthorizationCode.__struct_fields__]
        query = select(*columns).where(authorization_codes.c.code_hash == code_hash)
        with self._engine.connect() as connection:
            return fetch_one(connection, AuthorizationCode, query)

    def use_code(self, code_id: str) -> bool:
        """Consume a code: True for the one who came first and in time."""
        now = self._now()
        change = (
            update(authorization_codes)
            .where(authorization_codes.c.id == code_id, authorization_codes.c.used_at.is_(None))
            .where(authorization_codes.c.expires_at > now)
            .values(used_at=now)
        )
        with writing(self._engine) as connection:
            return connection.execute(change).rowcount == 1

    def add_token(self, token_hash: str, token: UserToken) -> None:
        """Note a user's token."""
        new = {**columns_of(token), "token_hash": token_hash, "created_at": self._now()}
        with writing(self._engine) as connection:
            connection.execute(insert(user_tokens).values(**new))

    def token(self, token_hash: str) -> UserToken | None:
        """The token with this hash, whether it still holds or not."""
        columns = [user_tokens.c[name] for name in UserToken.__struct_fields__]
        query = select(*columns).where(user_tokens.c.token_hash == token_hash)
        with self._engine.connect() as connection:
            return fetch_one(connection, UserToken, query)

    def revoke_tokens(self, code_id: str) -> int:
        """Revoke everything that one code gave; how many tokens that were."""
        change = (
            update(user_tokens)
            .where(user_tokens.c.code_id == code_id, user_tokens.c.revoked_at.is_(None))
            .values(revoked_at=self._now())
        )
        with writing(self._engine) as connection:
            return connection.execute(change).rowcount


class Sessions:
    """Queries on the dashboard's sessions."""

    def __init__(self, engine: Engine, *, now: Clock) -> None:
        self._engine = engine
        self._now = now

    def add(self, session: Session) -> None:
        """Note a session, and forget those that are over."""
        now = self._now()
        with writing(self._engine) as connection:
            connection.execute(delete(sessions).where(sessions.c.expires_at <= now))
            connection.execute(insert(sessions).values(**columns_of(session), created_at=now))

    def get(self, token_hash: str) -> Session | None:
        """The session with this hash, unless it is over."""
        columns = [sessions.c[name] for name in Session.__struct_fields__]
        query = select(*columns).where(
            sessions.c.token_hash == token_hash, sessions.c.expires_at > self._now()
        )
        with self._engine.connect() as connection:
            return fetch_one(connection, Session, query)

    def end(self, token_hash: str) -> None:
        """Forget a session."""
        with writing(self._engine) as connection:
            connection.execute(delete(sessions).where(sessions.c.token_hash == token_hash))
