"""Developers, users, their keys and sessions, and which developer has a memory key of which user."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from msgspec import Struct
from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Table,
    bindparam,
    delete,
    insert,
    literal,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.exc import IntegrityError

from memframe.errors import ConflictError, NotFoundError
from memframe.service.clock import Clock, format_instant
from memframe.service.logs import log_event
from memframe.service.store.engine import (
    columns_of,
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
    erasures,
    idempotency_keys,
    memories,
    metadata,
    sessions,
    tombstones,
    user_keys,
    user_tokens,
    users,
)
from memframe.service.store.statements import Queries, SqlStatement

SESSION_LIFETIME = timedelta(hours=12)
REWRAP_BATCH = 1000

Rewrap = Callable[[str, int, bytes], bytes]
"""Wraps a user's key with another master key: takes user id, version and the old wrapping."""

_DEVELOPER_BY = {
    name: select(developers).where(developers.c[name] == bindparam(name))
    for name in ("id", "api_key_hash", "client_id")
}
_KEY_VERSION = select(users.c.key_version).where(users.c.id == bindparam("user_id"))
_LOCK_USER = _KEY_VERSION.with_for_update(key_share=True)

_MEMORY_IDS = ((memories, memories.c.id), (tombstones, tombstones.c.memory_id))


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


class ConnectedDeveloper(Struct, frozen=True):
    """An application that has a memory key of a user."""

    id: str
    name: str
    created_at: datetime


class Accounts:
    """Queries on developers, users and the connections between them."""

    def __init__(self, engine: Engine, *, now: Clock) -> None:
        self._engine = engine
        self._now = now

    def add_developer(self, *, only_first: bool = False, **columns: Any) -> Developer:
        """Add an application; with `only_first`, `ConflictError` where there is one already."""
        developer = Developer(id=str(uuid4()), disabled=False, created_at=self._now(), **columns)
        with writing(self._engine) as connection:
            if only_first:
                lock_schema(connection)
                if connection.scalar(select(developers.c.id).limit(1)) is not None:
                    message = "there is a developer already; `memframe service list` shows all"
                    raise ConflictError(message, status=409, code="developer_exists")
            connection.execute(insert(developers).values(**columns_of(developer)))
        return developer

    def developer(self, developer_id: str) -> Developer | None:
        """Return a developer by id."""
        return self._developer(id=developer_id)

    def developer_by_api_key(self, api_key_hash: str) -> Developer | None:
        """Return a developer by the hash of the API key."""
        return self._developer(api_key_hash=api_key_hash)

    def developer_by_client_id(self, client_id: str) -> Developer | None:
        """Return a developer by the client_id of OAuth."""
        return self._developer(client_id=client_id)

    def developers(self) -> list[Developer]:
        """Return all developers, oldest first."""
        with self._engine.connect() as connection:
            query = select(developers).order_by(developers.c.created_at, developers.c.id)
            return fetch_all(connection, Developer, query)

    def set_developer_secret(self, developer_id: str, **hashes: str) -> None:
        """Replace ``api_key_hash`` or ``client_secret_hash``."""
        with writing(self._engine) as connection:
            connection.execute(update(developers).where(developers.c.id == developer_id).values(**hashes))

    def add_user(
        self,
        *,
        user_id: str,
        email: str,
        password_hash: str,
        wrapped_key: bytes,
        must_change_password: bool = False,
    ) -> User:
        """Add a user and the first version of the encryption key; `ConflictError` where the e-mail is taken."""
        user = User(
            user_id,
            email.casefold(),
            password_hash,
            1,
            disabled=False,
            created_at=self._now(),
            must_change_password=must_change_password,
        )
        try:
            with writing(self._engine) as connection:
                connection.execute(insert(users).values(**columns_of(user)))
                key = {"user_id": user_id, "version": 1, "wrapped_key": wrapped_key}
                connection.execute(insert(user_keys).values(**key, created_at=user.created_at))
        except IntegrityError:
            message = f"there is a user {user.email} already; choose another e-mail address"
            raise ConflictError(message, status=409, code="user_exists") from None
        return user

    def user(self, user_id: str) -> User | None:
        """Return a user by id."""
        return self._user(users.c.id == user_id)

    def user_by_email(self, email: str) -> User | None:
        """Return a user by e-mail address, ignoring case."""
        return self._user(users.c.email == email.casefold())

    def users(self) -> list[User]:
        """Return all users, oldest first."""
        with self._engine.connect() as connection:
            return fetch_all(connection, User, select(users).order_by(users.c.created_at, users.c.id))

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
        accounts = developers if kind is Developer else users
        owner = "developer_id" if kind is Developer else "user_id"
        with writing(self._engine) as connection:
            values: dict[str, Any] = {"disabled": disabled}
            if disabled and kind is Developer:
                values["token_epoch"] = developers.c.token_epoch + 1
            connection.execute(update(accounts).where(accounts.c.id == account_id).values(values))
            if disabled and kind is User:
                connection.execute(delete(sessions).where(sessions.c.user_id == account_id))
            ended = ((authorization_codes, "used_at"), (user_tokens, "revoked_at")) if disabled else ()
            for table, ended_at in ended:
                valid = (table.c[owner] == account_id) & table.c[ended_at].is_(None)
                connection.execute(update(table).where(valid).values({ended_at: self._now()}))
        log_event("account closed" if disabled else "account opened", **{owner: account_id})

    def erase_user(self, user_id: str, digest: str, *, expected: int | None = None) -> dict[str, int]:
        """Delete everything of a user in one transaction, and keep a digest; return the number of rows by table.

        `ConflictError`, with nothing deleted, where the user has not as many memories as expected.
        Every table with a ``user_id`` is emptied of the user. What PostgreSQL has deleted stays on its disk until it
        vacuums.
        """
        with writing(self._engine) as connection:
            lock = select(users.c.id).where(users.c.id == user_id).with_for_update()
            if connection.scalar(lock) is None:
                raise _no_user(user_id)
            known = [select(column).where(table.c.user_id == user_id) for table, column in _MEMORY_IDS]
            keys = idempotency_keys.c.memory_id
            connection.execute(delete(idempotency_keys).where(or_(*(keys.in_(ids) for ids in known))))
            erased = {}
            for table in (memories, *reversed(metadata.sorted_tables)):  # tags are in use by memories
                if "user_id" in table.c and table.name not in erased:
                    gone = connection.execute(delete(table).where(table.c.user_id == user_id))
                    erased[table.name] = gone.rowcount
            if expected not in (None, erased["memories"]):
                message = (
                    f"the account has {erased['memories']:,} memories, not {expected:,}; look at it again"
                )
                raise ConflictError(message, status=409, code="other_number")
            connection.execute(delete(users).where(users.c.id == user_id))
            connection.execute(insert(erasures).values(digest=digest, erased_at=self._now()))
        empty_write_ahead_log(self._engine)
        log_event("account erased", receipt=digest)
        return erased

    def connect(self, *, user_id: str, developer_id: str, key_hash: Callable[[int], str]) -> int:
        """Store that a developer gets a user's memory key; return the generation of the key.

        Connecting again changes nothing; after `disconnect` the generation is the next one. The user's row is locked,
        so that of two exchanges at once the second sees the first.

        Parameters
        ----------
        user_id, developer_id : str
        key_hash : callable
            Returns the hash of the memory key of a generation.
        """
        pair = {"user_id": user_id, "developer_id": developer_id}
        this = (connections.c.user_id == user_id) & (connections.c.developer_id == developer_id)
        with writing(self._engine) as connection:
            lock_user(connection, user_id)
            query = select(connections.c.generation, connections.c.ended_at).where(this)
            known = connection.execute(query).one_or_none()
            if known and known.ended_at is None:
                return int(known.generation)
            generation = known.generation + 1 if known else 1
            new = {
                "generation": generation,
                "memory_key_hash": key_hash(generation),
                "created_at": self._now(),
                "ended_at": None,
            }
            if known:
                connection.execute(update(connections).where(this).values(**new))
            else:
                connection.execute(insert(connections).values(**pair, **new))
            return int(generation)

    def disconnect(self, *, user_id: str, developer_id: str) -> None:
        """End a developer's memory key, access, requests, codes and tokens of a user.

        `NotFoundError` where the two are not connected.
        """
        now = self._now()
        with writing(self._engine) as connection:
            lock_user(connection, user_id)

            def end(table: Table, condition: ColumnElement[bool], **values: object) -> int:
                pair = (table.c.user_id == user_id) & (table.c.developer_id == developer_id)
                return connection.execute(update(table).where(pair, condition).values(**values)).rowcount

            if end(connections, connections.c.ended_at.is_(None), ended_at=now) != 1:
                message = "this application is not connected to your account"
                raise NotFoundError(message, status=404, code="not_found")
            for before, after in (("pending", "rejected"), ("approved", "revoked")):
                end(access_requests, access_requests.c.status == before, status=after, updated_at=now)
            end(authorization_codes, authorization_codes.c.used_at.is_(None), used_at=now)
            end(user_tokens, user_tokens.c.revoked_at.is_(None), revoked_at=now)
        log_event("disconnected", user_id=user_id, developer_id=developer_id)

    def connected_developers(self, user_id: str) -> list[ConnectedDeveloper]:
        """Return the developers with a memory key of the user, by name."""
        query = (
            select(developers.c.id, developers.c.name, connections.c.created_at)
            .join(connections, connections.c.developer_id == developers.c.id)
            .where(connections.c.user_id == user_id, connections.c.ended_at.is_(None))
            .order_by(developers.c.name, developers.c.id)
        )
        with self._engine.connect() as connection:
            return fetch_all(connection, ConnectedDeveloper, query)

    def connected_user(self, *, developer_id: str, memory_key_hash: str) -> str | None:
        """Return the id of the user of a memory key that this developer has."""
        query = (
            select(connections.c.user_id)
            .join(users, users.c.id == connections.c.user_id)
            .where(connections.c.memory_key_hash == memory_key_hash)
            .where(connections.c.developer_id == developer_id, users.c.disabled.is_(False))
            .where(connections.c.ended_at.is_(None))
        )
        with self._engine.connect() as connection:
            return connection.scalar(query)

    def _developer(self, **known: str) -> Developer | None:
        (name,) = known
        with self._engine.connect() as connection:
            return fetch_one(connection, Developer, _DEVELOPER_BY[name], known)

    def _user(self, condition: Any) -> User | None:
        with self._engine.connect() as connection:
            return fetch_one(connection, User, select(users).where(condition))


def lock_user(connection: Connection, user_id: str) -> int:
    """Lock a user's row until the transaction ends; return the key version. `NotFoundError` for no such user."""
    return find_key_version(connection, user_id, lock=True)


def find_key_version(connection: Connection, user_id: str, *, lock: bool = False) -> int:
    """Return the version of a user's key; `NotFoundError` for no such user."""
    key_version = connection.scalar(_LOCK_USER if lock else _KEY_VERSION, {"user_id": user_id})
    if key_version is None:
        raise _no_user(user_id)
    return int(key_version)


def _no_user(user_id: str) -> NotFoundError:
    return NotFoundError(f"there is no user {user_id}", status=404, code="not_found")


class Sessions:
    """Sessions of signed-in users, by the hash of their cookie."""

    def __init__(self, engine: Engine, *, now: Clock) -> None:
        self._engine = engine
        self._now = now

    def open(self, *, token_hash: str, user_id: str) -> None:
        """Open a session, and delete all that have expired."""
        now = self._now()
        new = {"token_hash": token_hash, "user_id": user_id, "created_at": now}
        with writing(self._engine) as connection:
            connection.execute(delete(sessions).where(sessions.c.expires_at <= now))
            connection.execute(insert(sessions).values(**new, expires_at=now + SESSION_LIFETIME))

    def user(self, token_hash: str) -> User | None:
        """Return the user of a session that is open."""
        query = (
            select(*(users.c[name] for name in User.__struct_fields__))
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


_WRAPPED = SqlStatement(
    select(user_keys.c.wrapped_key)
    .where(user_keys.c.user_id == bindparam("user_id"))
    .where(user_keys.c.version == bindparam("version"))
)
_ADD_KEY = SqlStatement(insert(user_keys))
_SET_KEY_VERSION = SqlStatement(
    update(users).where(users.c.id == bindparam("user_id")).values(key_version=bindparam("version"))
)


class UserKeys:
    """The wrapped encryption keys of one user, inside one transaction.

    All versions are kept, so that content sealed with an earlier one is recognised; only the present one is given out.

    Attributes
    ----------
    present : int
        The version that content is sealed with.
    """

    def __init__(self, queries: Queries, user_id: str, *, present: int, now: datetime) -> None:
        self.present = present
        self._queries = queries
        self._user_id = user_id
        self._now = now

    def wrapped(self, version: int) -> bytes:
        """Return a version, wrapped."""
        ((wrapped,),) = self._queries.rows(_WRAPPED, user_id=self._user_id, version=version)
        return bytes(wrapped)

    def add(self, wrapped: bytes) -> None:
        """Add a version and make it the present one."""
        self.present += 1
        this = {"user_id": self._user_id, "version": self.present}
        self._queries.run(_ADD_KEY, **this, wrapped_key=wrapped, created_at=format_instant(self._now))
        self._queries.run(_SET_KEY_VERSION, **this)


def rewrap_keys(connection: Connection, rewrap: Rewrap) -> int:
    """Replace the wrapping of all keys of all users; return their number."""
    n_keys, place = 0, tuple_(user_keys.c.user_id, user_keys.c.version)
    some = select(user_keys.c.user_id, user_keys.c.version, user_keys.c.wrapped_key).order_by(
        user_keys.c.user_id, user_keys.c.version
    )
    rows = connection.execute(some.limit(REWRAP_BATCH)).all()
    while rows:
        for user_id, version, wrapped in rows:
            this = (user_keys.c.user_id == user_id) & (user_keys.c.version == version)
            new = rewrap(user_id, version, bytes(wrapped))
            connection.execute(update(user_keys).where(this).values(wrapped_key=new))
        n_keys += len(rows)
        after = place > tuple_(literal(rows[-1][0]), literal(rows[-1][1]))
        rows = connection.execute(some.where(after).limit(REWRAP_BATCH)).all()
    return n_keys
