"""Access requests and the grants they become; authorization codes and the tokens that are issued for them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Update,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)

from memframe.errors import ConflictError, NotFoundError
from memframe.service.logs import log_event
from memframe.service.store.accounts import find_key_version
from memframe.service.store.engine import Queries, Records, SqlStatement, fetch_all, fetch_one, writing
from memframe.service.store.schema import (
    access_requests,
    authorization_codes,
    connections,
    developers,
    user_tokens,
    users,
)
from memframe.service.validation import MAX_PENDING, MAX_REQUESTS, invalid, states_before, wrong_state
from memframe.wire import Status

Page = tuple[list["StoredRequest"], int, bool]
"""Requests, the number of all, and True where more follow."""

_USED_CODE_KEPT = timedelta(minutes=10)


class StoredRequest(Struct, frozen=True):
    """An access request; `generation` is that of the developer's memory key for the user."""

    id: str
    developer_id: str
    developer_name: str
    user_id: str
    reason: str
    status: Status
    created_at: datetime
    updated_at: datetime
    generation: int


_CONNECTED = (connections.c.user_id == access_requests.c.user_id) & (
    connections.c.developer_id == access_requests.c.developer_id
)
_JOINED = {"developer_name": developers.c.name, "generation": connections.c.generation}
_REQUESTS = (
    select(*(access_requests.c[name] for name in StoredRequest.__struct_fields__ if name not in _JOINED))
    .add_columns(*(column.label(name) for name, column in _JOINED.items()))
    .join(developers, developers.c.id == access_requests.c.developer_id)
    .join(connections, _CONNECTED)
)


def grant_of(
    developer_id: ColumnElement[str], epoch: ColumnElement[int], user_id: ColumnElement[str]
) -> Select[Any]:
    """Select the user's key version where the memories are open to the developer, and the token's epoch is live."""
    return (
        select(users.c.key_version)
        .select_from(access_requests)
        .join(users, users.c.id == access_requests.c.user_id)
        .join(developers, developers.c.id == access_requests.c.developer_id)
        .where(access_requests.c.developer_id == developer_id)
        .where(access_requests.c.user_id == user_id)
        .where(access_requests.c.status == "approved")
        .where(users.c.disabled.is_(False), developers.c.disabled.is_(False))
        .where(developers.c.token_epoch == epoch)
        .limit(1)
    )


GRANT = grant_of(bindparam("developer_id"), bindparam("epoch"), bindparam("user_id"))
_GRANTED_KEYS = GRANT.join(connections, _CONNECTED).add_columns(connections.c.generation)
_GRANTED = SqlStatement(_GRANTED_KEYS)
_GRANTED_LOCKED = SqlStatement(_GRANTED_KEYS.with_for_update(of=(users, access_requests), key_share=True))


def find_granted_keys(queries: Queries, *, lock: bool, **grant: Any) -> tuple[int, int] | None:
    """Return the version of the user's key and the generation of the memory key; None without a grant.

    With `lock`, PostgreSQL locks the rows of the user and the request until the transaction ends: writes of one user
    are serialized, and a revocation comes before or after one. SQLite has but one writer at a time.
    """
    if lock:
        key = ("grant", *map(str, grant.values()))
        row = queries.cached(key, lambda: queries.row(_GRANTED_LOCKED, **grant))
    else:
        row = queries.row(_GRANTED, **grant)
    return None if row is None else (int(row[0]), int(row[1]))


class AccessRequests(Records):
    """Queries on access requests; a decision is one conditional UPDATE, so that of two at once one wins."""

    def add(self, *, developer_id: str, user_id: str, reason: str) -> StoredRequest:
        """Add a pending request; `ConflictError` where the two have too many.

        Beyond the bound the oldest decided requests that give no access are deleted.
        """
        pair, now = {"developer_id": developer_id, "user_id": user_id}, self._now()
        new = {
            "id": str(uuid4()),
            "reason": reason,
            "status": "pending",
            "created_at": now,
            "updated_at": now,
        }
        with writing(self._engine) as connection:
            find_key_version(connection, user_id, lock=True)
            _make_room(connection, pair)
            connection.execute(insert(access_requests).values(**new, **pair))
            return _get_request(connection, str(new["id"]))

    def get(self, request_id: str) -> StoredRequest:
        """Return a request; `NotFoundError` where there is none."""
        with self._engine.connect() as connection:
            return _get_request(connection, request_id)

    def of_developer(self, developer_id: str, *, after: str | None = None, limit: int) -> Page:
        """Return a page of a developer's requests, oldest first, behind the one with the id `after`."""
        theirs = access_requests.c.developer_id == developer_id
        return self._page(theirs, theirs, after, limit, newest_first=False)

    def of_user(self, user_id: str, *statuses: Status, before: str | None = None, limit: int) -> Page:
        """Return a page of the requests to a user, newest first, behind the one with the id `before`."""
        theirs = access_requests.c.user_id == user_id
        chosen = theirs & access_requests.c.status.in_(statuses)
        return self._page(theirs, chosen, before, limit, newest_first=True)

    def _page(
        self,
        theirs: ColumnElement[bool],
        chosen: ColumnElement[bool],
        behind: str | None,
        limit: int,
        *,
        newest_first: bool,
    ) -> Page:
        seq = access_requests.c.seq
        query = _REQUESTS.where(chosen).order_by(seq.desc() if newest_first else seq).limit(limit + 1)
        with self._engine.connect() as connection:
            if behind is not None:
                place = connection.scalar(select(seq).where(theirs, access_requests.c.id == behind))
                if place is None:
                    raise invalid(
                        "the cursor does not belong to this list; start again without it", "invalid_cursor"
                    )
                query = query.where(seq < place if newest_first else seq > place)
            found = fetch_all(connection, StoredRequest, query)
            total = connection.scalar(select(func.count()).where(chosen))
        return found[:limit], int(total or 0), len(found) > limit

    def is_approved(self, *, developer_id: str, user_id: str) -> bool:
        """Return True where a user's memories are open to a developer."""
        pair = (sa.literal(developer_id), developers.c.token_epoch, sa.literal(user_id))
        return self._scalar(grant_of(*pair)) is not None

    def decide(self, request_id: str, status: Status, *, user_id: str | None = None) -> StoredRequest:
        """Change the status of a request, as its user, or as the operator (`user_id` None).

        `ConflictError` where its present status does not allow that; `NotFoundError` for another user's request.
        """
        change = (
            update(access_requests)
            .where(access_requests.c.id == request_id, access_requests.c.status.in_(states_before(status)))
            .values(status=status, updated_at=self._now())
        )
        with writing(self._engine) as connection:
            if user_id not in (None, _get_request(connection, request_id).user_id):
                raise _no_request()
            changed = connection.execute(change).rowcount == 1
            decided = _get_request(connection, request_id)
            if not changed:
                raise wrong_state(decided.status, status)
        by = "operator" if user_id is None else "user"
        pair = {"developer_id": decided.developer_id, "user_id": decided.user_id}
        log_event(f"access {status}", request_id=request_id, **pair, by=by)
        return decided


def _make_room(connection: Connection, pair: dict[str, str]) -> None:
    """Keep the number of requests of a user and a developer within bounds, so that one can be added."""
    status, seq = access_requests.c.status, access_requests.c.seq
    counted = connection.execute(select(status, func.count()).filter_by(**pair).group_by(status))
    numbers: dict[str, int] = {row[0]: row[1] for row in counted}
    if numbers.get("pending", 0) >= MAX_PENDING:
        message = (
            f"{MAX_PENDING} of your requests are waiting for this user's decision; wait before you send more"
        )
        raise ConflictError(message, status=409, code="too_many_pending")
    surplus = sum(numbers.values()) + 1 - MAX_REQUESTS
    if surplus > numbers.get("rejected", 0) + numbers.get("revoked", 0):
        message = f"this user has approved {MAX_REQUESTS} of your requests; use one of them"
        raise ConflictError(message, status=409, code="too_many_requests")
    if surplus > 0:
        oldest = select(seq).filter_by(**pair).where(status.in_(("rejected", "revoked"))).order_by(seq)
        connection.execute(delete(access_requests).where(seq.in_(oldest.limit(surplus))))


def _get_request(connection: Connection, request_id: str) -> StoredRequest:
    request = fetch_one(connection, StoredRequest, _REQUESTS.where(access_requests.c.id == request_id))
    if request is None:
        raise _no_request()
    return request


def _no_request() -> NotFoundError:
    return NotFoundError("there is no access request with this id", status=404, code="not_found")


class AuthorizationCode(Struct, frozen=True):
    """A code and what its exchange must repeat; `redirect_uri` is None where the request left it out."""

    id: str
    developer_id: str
    user_id: str
    redirect_uri: str | None
    code_challenge: str | None
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None


class UserToken(Struct, frozen=True):
    token_hash: str
    kind: str
    code_id: str
    developer_id: str
    user_id: str
    expires_at: datetime
    revoked_at: datetime | None = None


class Authorizations(Records):
    """Queries on codes and tokens, which are known by their hashes.

    Whatever was issued for one code, by refreshing too, has the code's id: all of it is revoked when a code or a
    refresh token is used a second time.
    """

    def add_code(self, **columns: Any) -> None:
        """Add a code, and delete codes and tokens that have expired.

        A code is kept as long as a token of it, so that its second use is noticed; and a while after it expired, as it
        may be being exchanged.
        """
        now = self._now()
        with writing(self._engine) as connection:
            connection.execute(delete(user_tokens).where(user_tokens.c.expires_at <= now))
            has_tokens = sa.exists().where(user_tokens.c.code_id == authorization_codes.c.id)
            outdated = authorization_codes.c.expires_at <= now - _USED_CODE_KEPT
            connection.execute(delete(authorization_codes).where(outdated, ~has_tokens))
            new = {"id": str(uuid4()), "created_at": now, **columns}
            connection.execute(insert(authorization_codes).values(**new))

    def code(self, **known: str) -> AuthorizationCode | None:
        """Return the code with this ``id`` or ``code_hash``, used or not; None once it was deleted."""
        columns = (authorization_codes.c[name] for name in AuthorizationCode.__struct_fields__)
        return self._one(AuthorizationCode, select(*columns).filter_by(**known))

    def token(self, token_hash: str) -> UserToken | None:
        """Return a token, valid or not."""
        columns = (user_tokens.c[name] for name in UserToken.__struct_fields__)
        return self._one(UserToken, select(*columns).where(user_tokens.c.token_hash == token_hash))

    def redeem_code(self, code_id: str, issued: tuple[UserToken, ...]) -> bool:
        """Use a code and add its tokens, both or neither; False, with all revoked, if it was used before."""
        codes, now = authorization_codes.c, self._now()
        unused = update(authorization_codes).where(codes.id == code_id, codes.used_at.is_(None))
        return self._redeem(unused.where(codes.expires_at > now).values(used_at=now), code_id, issued)

    def redeem_token(self, token: UserToken, issued: tuple[UserToken, ...]) -> bool:
        """Replace a refresh token; False, with all revoked, if it was replaced or revoked before."""
        unused = update(user_tokens).filter_by(token_hash=token.token_hash, revoked_at=None)
        return self._redeem(unused.values(revoked_at=self._now()), token.code_id, issued)

    def revoke_tokens(self, code_id: str) -> None:
        """Revoke everything that was issued for a code."""
        with writing(self._engine) as connection:
            connection.execute(self._revocation(code_id))

    def _redeem(self, use: Update, code_id: str, issued: tuple[UserToken, ...]) -> bool:
        rows = [asdict(token) | {"created_at": self._now()} for token in issued]
        with writing(self._engine) as connection:
            if connection.execute(use).rowcount != 1:
                connection.execute(self._revocation(code_id))
                return False
            connection.execute(insert(user_tokens), rows)
        return True

    def _revocation(self, code_id: str) -> Update:
        return update(user_tokens).filter_by(code_id=code_id, revoked_at=None).values(revoked_at=self._now())
