"""Authorization codes and users' tokens in the database: issued once, redeemed once, revoked together.

All are known only by their hashes. Everything that was issued from one code, by refreshing too, carries
the code's id: it is the family that falls when a code or a refresh token comes a second time.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import uuid4

from msgspec import Struct
from sqlalchemy import Connection, Engine, Update, delete, exists, insert, select, update

from memframe.service.store.engine import columns_of, fetch_one, writing
from memframe.service.store.schema import authorization_codes, user_tokens
from memframe.service.times import Clock

_KEPT = timedelta(minutes=10)


class AuthorizationCode(Struct, frozen=True):
    """A code as it was bound when the user consented."""

    id: str
    developer_id: str
    user_id: str
    redirect_uri: str | None  # None: the client left it out, as it has only one
    code_challenge: str | None
    expires_at: datetime
    used_at: datetime | None = None


class UserToken(Struct, frozen=True):
    """An access or refresh token of a user."""

    token_hash: str
    kind: str
    code_id: str
    developer_id: str
    user_id: str
    expires_at: datetime
    revoked_at: datetime | None = None


class Authorizations:
    """Queries on authorization codes and on the tokens that came of them."""

    def __init__(self, engine: Engine, *, now: Clock) -> None:
        self._engine = engine
        self._now = now

    def add_code(
        self,
        *,
        code_hash: str,
        developer_id: str,
        user_id: str,
        redirect_uri: str | None,
        code_challenge: str | None,
        expires_at: datetime,
    ) -> None:
        """Note a code that a user's consent gave; what is over for good is forgotten on this occasion."""
        now = self._now()
        new = {
            "id": str(uuid4()),
            "code_hash": code_hash,
            "developer_id": developer_id,
            "user_id": user_id,
            "redirect_uri": redirect_uri,
            "code_challenge": code_challenge,
            "created_at": now,
            "expires_at": expires_at,
        }
        with writing(self._engine) as connection:
            _forget_spent(connection, now)
            connection.execute(insert(authorization_codes).values(**new))

    def code(self, code_hash: str) -> AuthorizationCode | None:
        """The code with this hash, used or not."""
        columns = [authorization_codes.c[name] for name in AuthorizationCode.__struct_fields__]
        query = select(*columns).where(authorization_codes.c.code_hash == code_hash)
        with self._engine.connect() as connection:
            return fetch_one(connection, AuthorizationCode, query)

    def issued_at(self, code_id: str) -> datetime | None:
        """Return when a user gave the consent that a code came of; None once the code is forgotten."""
        query = select(authorization_codes.c.created_at).where(authorization_codes.c.id == code_id)
        with self._engine.connect() as connection:
            return connection.scalar(query)

    def token(self, token_hash: str) -> UserToken | None:
        """The token with this hash, whether it still holds or not."""
        columns = [user_tokens.c[name] for name in UserToken.__struct_fields__]
        query = select(*columns).where(user_tokens.c.token_hash == token_hash)
        with self._engine.connect() as connection:
            return fetch_one(connection, UserToken, query)

    def redeem_code(self, code_id: str, issued: tuple[UserToken, ...]) -> bool:
        """Use a code up and note the tokens that are given for it; both or neither.

        False if it was used before: what was issued then is revoked.
        """
        codes = authorization_codes.c
        unused = (codes.id == code_id) & codes.used_at.is_(None) & (codes.expires_at > self._now())
        use = update(authorization_codes).where(unused).values(used_at=self._now())
        return self._redeem(use, code_id, issued)

    def redeem_token(self, token: UserToken, issued: tuple[UserToken, ...]) -> bool:
        """Replace a refresh token; False if it was replaced or revoked before: its family falls."""
        unused = (user_tokens.c.token_hash == token.token_hash) & user_tokens.c.revoked_at.is_(None)
        use = update(user_tokens).where(unused).values(revoked_at=self._now())
        return self._redeem(use, token.code_id, issued)

    def revoke_tokens(self, code_id: str) -> None:
        """Revoke everything that came of one code."""
        with writing(self._engine) as connection:
            connection.execute(self._revocation(code_id))

    def _redeem(self, use: Update, code_id: str, issued: tuple[UserToken, ...]) -> bool:
        rows = [columns_of(token) | {"created_at": self._now()} for token in issued]
        with writing(self._engine) as connection:
            if connection.execute(use).rowcount != 1:
                connection.execute(self._revocation(code_id))
                return False
            connection.execute(insert(user_tokens), rows)
        return True

    def _revocation(self, code_id: str) -> Update:
        holds = (user_tokens.c.code_id == code_id) & user_tokens.c.revoked_at.is_(None)
        return update(user_tokens).where(holds).values(revoked_at=self._now())


def _forget_spent(connection: Connection, now: datetime) -> None:
    """Delete tokens that have run out, and codes of which no token is left.

    A code stays as long as a token of its family does: until then, coming again revokes the family. It
    stays a while after its time, too, as it may be being exchanged at this moment.
    """
    connection.execute(delete(user_tokens).where(user_tokens.c.expires_at <= now))
    alive = exists().where(user_tokens.c.code_id == authorization_codes.c.id)
    connection.execute(
        delete(authorization_codes).where(authorization_codes.c.expires_at <= now - _KEPT, ~alive)
    )
