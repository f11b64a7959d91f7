"""Developers, users and what connects them: memory keys, access requests and grants, codes and tokens, sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import Connection, Update, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from memframe.errors import ConflictError, NotFoundError
from memframe.service.logs import log_event
from memframe.service.store import schema
from memframe.service.store.engine import (
    Queries,
    Records,
    SqlStatement,
    empty_write_ahead_log,
    fetch_all,
    fetch_one,
    lock_schema,
    writing,
)
from memframe.service.store.schema import (
    access_requests,
    authorization_codes,
    connections,
    developers,
    sessions,
    user_keys,
    user_tokens,
    users,
)
from memframe.service.validation import MAX_PENDING, invalid, states_before, wrong_state
from memframe.wire import RequestStatus

SESSION_LIFETIME = timedelta(hours=12)
_USED_CODE_KEPT = timedelta(minutes=10)

Page = tuple[list["StoredRequest"], int, bool]
"""Requests, the number of all, and True if more follow."""


class Developer(Struct, frozen=True):
    """An application that asks for access; bearer tokens of an earlier `token_epoch` are not valid."""

    id: str
    name: str
    api_key_hash: str
    client_id: str
    client_secret_hash: str
    redirect_uris: tuple[str, ...]
    disabled: bool
    created_at: datetime
    token_epoch: int = 0


class User(Struct, frozen=True):
    """A person whose memories are kept."""

    id: str
    email: str
    password_hash: str
    key_version: int
    disabled: bool
    created_at: datetime
    must_change_password: bool = False


class Accounts(Records):
    def add_developer(self, *, only_first: bool = False, **columns: Any) -> Developer:
        """Add an application; with `only_first`, `ConflictError` if there is one already."""
        developer = Developer(id=str(uuid4()), disabled=False, created_at=self._now(), **columns)
        with writing(self._engine) as connection:
            if only_first:
                lock_schema(connection)
                if connection.scalar(select(developers.c.id).limit(1)) is not None:
                    message = "a developer already exists; `memframe service list` shows all"
                    raise ConflictError(message, status=409, code="developer_exists")
            connection.execute(insert(developers).values(**asdict(developer)))
        return developer

    def developer(self, **known: str) -> Developer | None:
        """Return the developer with this ``id``, ``api_key_hash`` or ``client_id``."""
        return self._one(Developer, select(developers).filter_by(**known))

    def developers(self) -> list[Developer]:
        return self._all(Developer, select(developers).order_by(developers.c.created_at, developers.c.id))

    def set_developer_secret(self, developer_id: str, **hashes: str) -> None:
        with writing(self._engine) as connection:
            connection.execute(update(developers).where(developers.c.id == developer_id).values(**hashes))

    def add_user(self, *, email: str, wrapped_key: bytes, **columns: Any) -> User:
        """Add a user and the first version of the encryption key; `ConflictError` if the e-mail is taken."""
        user = User(email=email.casefold(), key_version=1, disabled=False, created_at=self._now(), **columns)
        key = {"user_id": user.id, "version": 1, "wrapped_key": wrapped_key, "created_at": user.created_at}
        try:
            with writing(self._engine) as connection:
                connection.execute(insert(users).values(**asdict(user)))
                connection.execute(insert(user_keys).values(**key))
        except IntegrityError:
            message = f"the user {user.email} already exists; choose another e-mail address"
            raise ConflictError(message, status=409, code="user_exists") from None
        return user

    def user(self, user_id: str) -> User | None:
        return self._one(User, select(users).where(users.c.id == user_id))

    def user_by_email(self, email: str) -> User | None:
        """Return a user by e-mail address, ignoring case."""
        return self._one(User, select(users).where(users.c.email == email.casefold()))

    def users(self) -> list[User]:
        return self._all(User, select(users).order_by(users.c.created_at, users.c.id))

    def set_password(self, user_id: str, password_hash: str, *, must_change: bool) -> None:
        """Replace a user's password, and end all sessions."""
        values = {"password_hash": password_hash, "must_change_password": must_change}
        with writing(self._engine) as connection:
            connection.execute(update(users).where(users.c.id == user_id).values(**values))
            connection.execute(delete(sessions).where(sessions.c.user_id == user_id))

    def set_disabled(self, kind: type[Developer | User], account_id: str, *, disabled: bool) -> None:
        """Disable or enable an account, from the next call on.

        Disabling ends sessions, codes and tokens: none of them is valid after the account is enabled again.
        """
        accounts, owner = (developers, "developer_id") if kind is Developer else (users, "user_id")
        values: dict[str, Any] = {"disabled": disabled}
        if disabled and kind is Developer:
            values["token_epoch"] = developers.c.token_epoch + 1
        with writing(self._engine) as connection:
            connection.execute(update(accounts).where(accounts.c.id == account_id).values(values))
            if disabled and kind is User:
                connection.execute(delete(sessions).where(sessions.c.user_id == account_id))
            if disabled:
                self._end_codes(connection, **{owner: account_id})
        log_event("account closed" if disabled else "account opened", **{owner: account_id})

    def erase_user(self, user_id: str, digest: str, *, expected: int | None = None) -> dict[str, int]:
        """Delete everything of a user in one transaction, and keep a digest; return the number of rows by table.

        `ConflictError`, with nothing deleted, if the number of memories is not `expected`. The user's rows are deleted
        from every table with a ``user_id``; in PostgreSQL, deleted rows stay on the disk until it vacuums.
        """
        with writing(self._engine) as connection:
            lock = select(users.c.id).where(users.c.id == user_id).with_for_update()
            if connection.scalar(lock) is None:
                raise _no_user(user_id)
            erased = {}
            # memories first, because they refer to tags
            for table in (schema.memories, *reversed(schema.metadata.sorted_tables)):
                if "user_id" in table.c and table.name not in erased:
                    gone = connection.execute(delete(table).where(table.c.user_id == user_id))
                    erased[table.name] = gone.rowcount
            if expected not in (None, erased["memories"]):
                message = (
                    f"the account has {erased['memories']:,} memories, not {expected:,}; look at it again"
                )
                raise ConflictError(message, status=409, code="other_number")
            connection.execute(delete(users).where(users.c.id == user_id))
            connection.execute(insert(schema.erasures).values(digest=digest, erased_at=self._now()))
        empty_write_ahead_log(self._engine)
        log_event("account erased", receipt=digest)
        return erased

    def connect(self, *, user_id: str, developer_id: str, key_hash: Callable[[int], str]) -> int:
        """Store that a developer has a user's memory key; return the generation of the key.

        Connecting again changes nothing; after `disconnect` it increases the generation by one. The user's row is
        locked, so that of two exchanges at once the second sees the first. `key_hash` returns the hash of the memory
        key of a generation.
        """
        pair = {"user_id": user_id, "developer_id": developer_id}
        with writing(self._engine) as connection:
            find_key_version(connection, user_id, lock=True)
            query = select(connections.c.generation, connections.c.ended_at).filter_by(**pair)
            known = connection.execute(query).one_or_none()
            if known and known.ended_at is None:
                return int(known.generation)
            generation = int(known.generation) + 1 if known else 1
            new = {"generation": generation, "memory_key_hash": key_hash(generation)}
            new |= {"created_at": self._now(), "ended_at": None}
            change = update(connections).filter_by(**pair) if known else insert(connections).values(**pair)
            connection.execute(change.values(**new))
        return generation

    def disconnect(self, *, user_id: str, developer_id: str) -> None:
        """End a developer's memory key, access, requests, codes and tokens for a user.

        `NotFoundError` if the two are not connected.
        """
        pair, now = {"user_id": user_id, "developer_id": developer_id}, self._now()
        requests = access_requests
        with writing(self._engine) as connection:
            find_key_version(connection, user_id, lock=True)
            ending = update(connections).filter_by(**pair, ended_at=None).values(ended_at=now)
            if connection.execute(ending).rowcount != 1:
                message = "this application is not connected to your account"
                raise NotFoundError(message, status=404, code="not_found")
            for before, after in (("pending", "rejected"), ("approved", "revoked")):
                ending = update(requests).filter_by(**pair, status=before)
                connection.execute(ending.values(status=after, updated_at=now))
            self._end_codes(connection, **pair)
        log_event("disconnected", **pair)

    def connected_developers(self, user_id: str) -> Sequence[Any]:
        """Return id, name and time of the developers with a memory key of the user, by name."""
        query = (
            select(developers.c.id, developers.c.name, connections.c.created_at)
            .join(connections, connections.c.developer_id == developers.c.id)
            .where(connections.c.user_id == user_id, connections.c.ended_at.is_(None))
            .order_by(developers.c.name, developers.c.id)
        )
        with self._engine.connect() as connection:
            return connection.execute(query).all()

    def connected_user(self, *, developer_id: str, memory_key_hash: str) -> str | None:
        """Return the id of the user to whom a memory key of this developer belongs."""
        query = (
            select(connections.c.user_id)
            .filter_by(memory_key_hash=memory_key_hash, developer_id=developer_id, ended_at=None)
            .join(users, users.c.id == connections.c.user_id)
            .where(users.c.disabled.is_(False))
        )
        with self._engine.connect() as connection:
            return connection.scalar(query)

    def _end_codes(self, connection: Connection, **owners: str) -> None:
        """End the authorization codes and tokens of a developer, a user or a pair of them."""
        now = self._now()
        for table, ended_at in ((authorization_codes, "used_at"), (user_tokens, "revoked_at")):
            valid = update(table).filter_by(**owners, **{ended_at: None})
            connection.execute(valid.values({ended_at: now}))

    # Sessions of signed-in users, by the hash of their cookie

    def open_session(self, *, token_hash: str, user_id: str) -> None:
        """Open a session, and delete all that have expired."""
        now = self._now()
        new = {"token_hash": token_hash, "user_id": user_id, "created_at": now}
        with writing(self._engine) as connection:
            connection.execute(delete(sessions).where(sessions.c.expires_at <= now))
            connection.execute(insert(sessions).values(**new, expires_at=now + SESSION_LIFETIME))

    def session_user(self, token_hash: str) -> User | None:
        """Return the user of a session that is open."""
        query = (
            select(users)
            .join(sessions, sessions.c.user_id == users.c.id)
            .where(sessions.c.token_hash == token_hash, sessions.c.expires_at > self._now())
            .where(users.c.disabled.is_(False))
        )
        return self._one(User, query)

    def end_session(self, token_hash: str) -> None:
        with writing(self._engine) as connection:
            connection.execute(delete(sessions).where(sessions.c.token_hash == token_hash))


def find_key_version(connection: Connection, user_id: str, *, lock: bool = False) -> int:
    """Return the version of a user's key; `NotFoundError` for no such user.

    With `lock` the user's row is locked until the transaction ends.
    """
    query = select(users.c.key_version).where(users.c.id == user_id)
    key_version = connection.scalar(query.with_for_update(key_share=True) if lock else query)
    if key_version is None:
        raise _no_user(user_id)
    return int(key_version)


def _no_user(user_id: str) -> NotFoundError:
    return NotFoundError(f"there is no user {user_id}", status=404, code="not_found")


# Access requests and the grants they become


class StoredRequest(Struct, frozen=True):
    """An access request; `generation` is that of the developer's memory key for the user."""

    id: str
    developer_id: str
    developer_name: str
    user_id: str
    reason: str
    status: RequestStatus
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


def select_granted(columns: str, joins: str = "") -> str:
    """Write a query that finds a row if a user's memories are open to a developer and the token's epoch is current."""
    return f"""SELECT {columns} FROM access_requests
    JOIN users ON users.id = access_requests.user_id
    JOIN developers ON developers.id = access_requests.developer_id {joins}
    WHERE access_requests.developer_id = :developer_id AND access_requests.user_id = :user_id
    AND access_requests.status = 'approved' AND NOT users.disabled AND NOT developers.disabled
    AND developers.token_epoch = :epoch LIMIT 1"""  # noqa: S608 - our own names


_GRANTED_KEYS = select_granted(
    "users.key_version, connections.generation",
    "JOIN connections ON connections.user_id = users.id AND connections.developer_id = developers.id",
)
_GRANTED = SqlStatement(_GRANTED_KEYS)
_GRANTED_LOCKED = SqlStatement(
    _GRANTED_KEYS, postgresql=f"{_GRANTED_KEYS} FOR NO KEY UPDATE OF users, access_requests"
)


def find_granted_keys(queries: Queries, *, lock: bool, **grant: Any) -> tuple[int, int] | None:
    """Return the version of the user's key and the generation of the memory key; None without a grant.

    With `lock`, PostgreSQL locks the rows of the user and the request until the transaction ends: writes of one user
    are serialized, and a revocation comes before or after a write. SQLite has only one writer at a time.
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
        """Add a pending request; `ConflictError` if the two have too many."""
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
            waiting = select(func.count()).select_from(access_requests).filter_by(**pair, status="pending")
            if int(connection.scalar(waiting) or 0) >= MAX_PENDING:
                message = (
                    f"{MAX_PENDING} of your requests wait for this user's decision; wait before you send more"
                )
                raise ConflictError(message, status=409, code="too_many_pending")
            connection.execute(insert(access_requests).values(**new, **pair))
            return _get_request(connection, str(new["id"]))

    def get(self, request_id: str) -> StoredRequest:
        """Return a request; `NotFoundError` if there is none."""
        with self._engine.connect() as connection:
            return _get_request(connection, request_id)

    def page(
        self,
        *statuses: RequestStatus,
        behind: str | None,
        limit: int,
        newest_first: bool = False,
        **owner: str,
    ) -> Page:
        """Return a page of the requests of a ``developer_id`` or to a ``user_id``, after the request with an id.

        `behind` is that id. Requests of all statuses are returned, unless some are named.
        """
        requests, seq = access_requests.c, access_requests.c.seq
        theirs = chosen = [requests[name] == value for name, value in owner.items()]
        if statuses:
            chosen = [*theirs, requests.status.in_(statuses)]
        query = _REQUESTS.where(*chosen).order_by(seq.desc() if newest_first else seq).limit(limit + 1)
        with self._engine.connect() as connection:
            if behind is not None:
                place = connection.scalar(select(seq).where(*theirs, requests.id == behind))
                if place is None:
                    raise invalid(
                        "the cursor does not belong to this list; start again without it", "invalid_cursor"
                    )
                query = query.where(seq < place if newest_first else seq > place)
            found = fetch_all(connection, StoredRequest, query)
            total = connection.scalar(select(func.count()).where(*chosen))
        return found[:limit], int(total or 0), len(found) > limit

    def is_approved(self, *, developer_id: str, user_id: str) -> bool:
        """Return True if a user's memories are open to a developer."""
        query = select_granted("1").replace(":epoch", "developers.token_epoch")
        with self._engine.connect() as connection:
            pair = {"developer_id": developer_id, "user_id": user_id}
            return connection.scalar(sa.text(query), pair) is not None

    def decide(self, request_id: str, status: RequestStatus, *, user_id: str | None = None) -> StoredRequest:
        """Change the status of a request, as its user, or as the operator (`user_id` None).

        `ConflictError` if its present status does not allow that; `NotFoundError` for another user's request.
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


def _get_request(connection: Connection, request_id: str) -> StoredRequest:
    request = fetch_one(connection, StoredRequest, _REQUESTS.where(access_requests.c.id == request_id))
    if request is None:
        raise _no_request()
    return request


def _no_request() -> NotFoundError:
    return NotFoundError("there is no access request with this id", status=404, code="not_found")


class AuthorizationCode(Struct, frozen=True):
    """A code and what its exchange must repeat; `redirect_uri` is None if the request left it out."""

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
    """Queries on codes and tokens, which are found by their hashes.

    Every token that was issued for a code, also by refreshing, has the code's id. All of them are revoked when the code
    or one of the refresh tokens is used a second time.
    """

    def add_code(self, **columns: Any) -> None:
        """Add a code, and delete codes and tokens that have expired.

        A code is kept as long as one of its tokens, so that a second use is noticed. It is also kept for
        `_USED_CODE_KEPT` after its expiry, because its exchange may be in progress.
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

    def redeem(self, used: AuthorizationCode | UserToken, issued: tuple[UserToken, ...]) -> bool:
        """Use up a code or refresh token and add its tokens, both or neither.

        If it was used up or expired before, revoke all tokens of the code and return False.
        """
        now, codes = self._now(), authorization_codes
        if isinstance(used, UserToken):
            code_id, unused = used.code_id, {"token_hash": used.token_hash, "revoked_at": None}
            use = update(user_tokens).filter_by(**unused).values(revoked_at=now)
        else:
            code_id, unused = used.id, {"id": used.id, "used_at": None}
            use = update(codes).filter_by(**unused).where(codes.c.expires_at > now).values(used_at=now)
        with writing(self._engine) as connection:
            if connection.execute(use).rowcount != 1:
                connection.execute(self._revocation(code_id))
                return False
            connection.execute(insert(user_tokens), [asdict(token) | {"created_at": now} for token in issued])
        return True

    def revoke_tokens(self, code_id: str) -> None:
        """Revoke everything that was issued for a code."""
        with writing(self._engine) as connection:
            connection.execute(self._revocation(code_id))

    def _revocation(self, code_id: str) -> Update:
        return update(user_tokens).filter_by(code_id=code_id, revoked_at=None).values(revoked_at=self._now())
