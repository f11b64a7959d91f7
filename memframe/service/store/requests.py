"""Access requests in the database: asked by developers, decided by users."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import uuid4

from msgspec import Struct
from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Select,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)

from memframe.errors import ConflictError, NotFoundError
from memframe.service.logs import log_event
from memframe.service.rules import MAX_PENDING, MAX_REQUESTS, invalid, states_before, wrong_state
from memframe.service.store.accounts import lock_user
from memframe.service.store.engine import fetch_all, fetch_one, writing
from memframe.service.store.schema import access_requests, connections, developers, users
from memframe.service.store.statements import Queries, Statement
from memframe.service.times import Clock
from memframe.wire import Status

Id = ColumnElement[str]


class StoredRequest(Struct, frozen=True):
    """An access request, with the name of the application that asks."""

    id: str
    developer_id: str
    developer_name: str
    user_id: str
    reason: str
    status: Status
    created_at: datetime
    updated_at: datetime
    generation: int
    """Of the memory key that the developer has for the user."""


_CONNECTED = (connections.c.user_id == access_requests.c.user_id) & (
    connections.c.developer_id == access_requests.c.developer_id
)
_FOREIGN = {"developer_name": developers.c.name, "generation": connections.c.generation}
_REQUESTS = (
    select(*(access_requests.c[name] for name in StoredRequest.__struct_fields__ if name not in _FOREIGN))
    .add_columns(*(column.label(name) for name, column in _FOREIGN.items()))
    .join(developers, developers.c.id == access_requests.c.developer_id)
    .join(connections, _CONNECTED)
)
_REQUEST = _REQUESTS.where(access_requests.c.id == bindparam("request_id"))


def grant_of(developer_id: Id, user_id: Id) -> Select[Any]:
    """The query for the version of a user's key, if the user's memories are open to a developer."""
    return (
        select(users.c.key_version)
        .select_from(access_requests)
        .join(users, users.c.id == access_requests.c.user_id)
        .join(developers, developers.c.id == access_requests.c.developer_id)
        .where(access_requests.c.developer_id == developer_id)
        .where(access_requests.c.user_id == user_id)
        .where(access_requests.c.status == "approved")
        .where(users.c.disabled.is_(False), developers.c.disabled.is_(False))
        .limit(1)
    )


GRANT = grant_of(bindparam("developer_id"), bindparam("user_id"))
_GRANTED_KEYS = GRANT.join(connections, _CONNECTED).add_columns(connections.c.generation)
_GRANTED = Statement(_GRANTED_KEYS)
_GRANTED_LOCKED = Statement(_GRANTED_KEYS.with_for_update(of=(users, access_requests), key_share=True))


class AccessRequests:
    """Queries on access requests; a decision is one conditional UPDATE, so that of two one wins."""

    def __init__(self, engine: Engine, *, now: Clock) -> None:
        self._engine = engine
        self._now = now

    def add(self, *, developer_id: str, user_id: str, reason: str) -> StoredRequest:
        """Add a request, pending; `ConflictError` where the two have too many.

        Of the decided ones that are beyond the bound, the oldest that give no access are dropped.
        """
        pair = (access_requests.c.developer_id == developer_id) & (access_requests.c.user_id == user_id)
        now = self._now()
        request_id = str(uuid4())
        new = {
            "id": request_id,
            "developer_id": developer_id,
            "user_id": user_id,
            "reason": reason,
            "status": "pending",
            "created_at": now,
            "updated_at": now,
        }
        with writing(self._engine) as connection:
            lock_user(connection, user_id)
            _make_room(connection, pair)
            connection.execute(insert(access_requests).values(**new))
            return _one(connection, request_id)

    def get(self, request_id: str) -> StoredRequest:
        """The request with an id; `NotFoundError` where there is none."""
        with self._engine.connect() as connection:
            return _one(connection, request_id)

    def of_developer(
        self, developer_id: str, *, after: str | None = None, limit: int
    ) -> tuple[list[StoredRequest], int, bool]:
        """Return what a developer has asked for, oldest first: a page, the number of all, and True if more follow.

        ``after`` is the id of the last request on the page before; `InvalidError` where it is none of theirs.
        """
        theirs = access_requests.c.developer_id == developer_id
        with self._engine.connect() as connection:
            chosen = theirs
            if after is not None:
                chosen &= access_requests.c.seq > _place(connection, theirs, after)
            query = _REQUESTS.where(chosen).order_by(access_requests.c.seq).limit(limit + 1)
            found = fetch_all(connection, StoredRequest, query)
            total = connection.scalar(select(func.count()).where(theirs))
        return found[:limit], int(total or 0), len(found) > limit

    def of_user(
        self, user_id: str, *statuses: Status, before: str | None = None, limit: int
    ) -> tuple[list[StoredRequest], int, bool]:
        """Return what a user was asked for, by status, the latest first: a page, as `of_developer` does."""
        theirs = (access_requests.c.user_id == user_id) & access_requests.c.status.in_(statuses)
        with self._engine.connect() as connection:
            chosen = theirs
            if before is not None:
                place = _place(connection, access_requests.c.user_id == user_id, before)
                chosen &= access_requests.c.seq < place
            query = _REQUESTS.where(chosen).order_by(access_requests.c.seq.desc()).limit(limit + 1)
            found = fetch_all(connection, StoredRequest, query)
            total = connection.scalar(select(func.count()).where(theirs))
        return found[:limit], int(total or 0), len(found) > limit

    def is_approved(self, *, developer_id: str, user_id: str) -> bool:
        """Return True where a user's memories are open to a developer."""
        pair = {"developer_id": developer_id, "user_id": user_id}
        with self._engine.connect() as connection:
            return connection.scalar(GRANT, pair) is not None

    def decide(self, request_id: str, status: Status, *, user_id: str | None = None) -> StoredRequest:
        """Move a request on, as its user or as whoever runs the service (``user_id`` None).

        `ConflictError` where the state machine has no such move; `NotFoundError` for another's request.
        """
        change = (
            update(access_requests)
            .where(access_requests.c.id == request_id, access_requests.c.status.in_(states_before(status)))
            .values(status=status, updated_at=self._now())
        )
        with writing(self._engine) as connection:
            request = _one(connection, request_id)
            if user_id not in (None, request.user_id):
                raise _unknown()
            if connection.execute(change).rowcount != 1:
                raise wrong_state(_one(connection, request_id).status, status)
            decided = _one(connection, request_id)
        by = "operator" if user_id is None else "user"
        pair = {"developer_id": decided.developer_id, "user_id": decided.user_id}
        log_event(f"access {status}", request_id=request_id, **pair, by=by)
        return decided


def granted_keys(queries: Queries, *, developer_id: str, user_id: str, lock: bool) -> tuple[int, int] | None:
    """Return the version of the user's key and the generation of the memory key; None without a grant.

    With ``lock``, a database that locks rows keeps the user's and the request's until the transaction
    ends: writes of one user come one after the other, and a revocation falls before or after, never
    between. SQLite has but one writer at a time.
    """
    pair = {"developer_id": developer_id, "user_id": user_id}
    if lock:
        row = queries.remembered(("grant", *pair.values()), lambda: queries.row(_GRANTED_LOCKED, **pair))
    else:
        row = queries.row(_GRANTED, **pair)
    return None if row is None else (int(row[0]), int(row[1]))


def _make_room(connection: Connection, pair: ColumnElement[bool]) -> None:
    """Keep the requests of a user and a developer within bounds, so that one more can be added."""
    status, seq = access_requests.c.status, access_requests.c.seq
    counted = connection.execute(select(status, func.count()).where(pair).group_by(status))
    numbers: dict[str, int] = {row[0]: row[1] for row in counted}
    if numbers.get("pending", 0) >= MAX_PENDING:
        message = (
            f"{MAX_PENDING} requests of yours wait for this user's decision; wait for it before you send more"
        )
        raise ConflictError(message, status=409, code="too_many_pending")
    surplus = sum(numbers.values()) + 1 - MAX_REQUESTS
    if surplus > numbers.get("rejected", 0) + numbers.get("revoked", 0):
        message = f"this user has approved {MAX_REQUESTS} requests of yours; use one of them"
        raise ConflictError(message, status=409, code="too_many_requests")
    if surplus > 0:
        oldest = select(seq).where(pair, status.in_(("rejected", "revoked"))).order_by(seq).limit(surplus)
        connection.execute(delete(access_requests).where(seq.in_(oldest)))


def _place(connection: Connection, theirs: ColumnElement[bool], request_id: str) -> int:
    """Return the place of a request that ended a page."""
    place = connection.scalar(select(access_requests.c.seq).where(theirs, access_requests.c.id == request_id))
    if place is None:
        raise invalid("the cursor is not one of this list; start again without it", "invalid_cursor")
    return int(place)


def _one(connection: Connection, request_id: str) -> StoredRequest:
    request = fetch_one(connection, StoredRequest, _REQUEST, {"request_id": request_id})
    if request is None:
        raise _unknown()
    return request


def _unknown() -> NotFoundError:
    return NotFoundError("there is no access request with this id", status=404, code="not_found")
