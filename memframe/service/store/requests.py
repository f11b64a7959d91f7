"""Access requests in the database: asked by developers, decided by users."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import uuid4

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Engine, Select, bindparam, insert, select, update

from memframe.errors import NotFoundError
from memframe.service.logs import log_event
from memframe.service.rules import states_before, wrong_state
from memframe.service.store.engine import fetch_all, fetch_one, writing
from memframe.service.store.schema import access_requests, developers, users
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


_REQUESTS = (
    select(*(access_requests.c[name] for name in StoredRequest.__struct_fields__ if name != "developer_name"))
    .add_columns(developers.c.name.label("developer_name"))
    .join(developers, developers.c.id == access_requests.c.developer_id)
    .order_by(access_requests.c.seq)
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
_GRANTED = Statement(GRANT)
_GRANTED_LOCKED = Statement(GRANT.with_for_update(of=(users, access_requests), key_share=True))


class AccessRequests:
    """Queries on access requests; a decision is one conditional UPDATE, so that of two one wins."""

    def __init__(self, engine: Engine, *, now: Clock) -> None:
        self._engine = engine
        self._now = now

    def add(self, *, developer_id: str, user_id: str, reason: str) -> StoredRequest:
        """A new request, pending."""
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
            connection.execute(insert(access_requests).values(**new))
            return _one(connection, request_id)

    def get(self, request_id: str) -> StoredRequest:
        """The request with an id; `NotFoundError` where there is none."""
        with self._engine.connect() as connection:
            return _one(connection, request_id)

    def of_developer(self, developer_id: str) -> list[StoredRequest]:
        """What a developer has asked for, oldest first."""
        return self._many(_REQUESTS.where(access_requests.c.developer_id == developer_id))

    def of_user(self, user_id: str) -> list[StoredRequest]:
        """What a user was asked for, oldest first."""
        return self._many(_REQUESTS.where(access_requests.c.user_id == user_id))

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

    def _many(self, query: Select[Any]) -> list[StoredRequest]:
        with self._engine.connect() as connection:
            return fetch_all(connection, StoredRequest, query)


def granted_key_version(queries: Queries, *, developer_id: str, user_id: str, lock: bool) -> int | None:
    """The version of the user's key, if the memories are open to the developer at this moment; else None.

    With ``lock``, a database that locks rows keeps the user's and the request's until the transaction
    ends: writes of one user come one after the other, and a revocation falls before or after, never
    between. SQLite has but one writer at a time.
    """
    pair = {"developer_id": developer_id, "user_id": user_id}
    if lock:
        row = queries.remembered(("grant", *pair.values()), lambda: queries.row(_GRANTED_LOCKED, **pair))
    else:
        row = queries.row(_GRANTED, **pair)
    return None if row is None else int(row[0])


def _one(connection: Connection, request_id: str) -> StoredRequest:
    request = fetch_one(connection, StoredRequest, _REQUEST, {"request_id": request_id})
    if request is None:
        raise _unknown()
    return request


def _unknown() -> NotFoundError:
    return NotFoundError("there is no access request with this id", status=404, code="not_found")
