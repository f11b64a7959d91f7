"""Developers, users, their keys and sessions, and which developer has a memory key of which user."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from memframe.errors import ConflictError, NotFoundError
from memframe.service.logs import log_event
from memframe.service.store import schema
from memframe.service.store.engine import (
    Records,
    empty_write_ahead_log,
    lock_schema,
    writing,
)
from memframe.service.store.schema import connections, developers, sessions, user_keys, users

SESSION_LIFETIME = timedelta(hours=12)
REWRAP_BATCH = 1000

Rewrap = Callable[[str, int, bytes], bytes]
"""Wraps a user's key with another master key: takes user id, version and the old wrapping."""


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


class Accounts(Records):
    def add_developer(self, *, only_first: bool = False, **columns: Any) -> Developer:
        """Add an application; with `only_first`, `ConflictError` where there is one already."""
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
        """Add a user and the first version of the encryption key; `ConflictError` where the e-mail is taken."""
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

        `ConflictError`, with nothing deleted, where the user has not as many memories as expected.
        Every table with a ``user_id`` is emptied of the user. What PostgreSQL has deleted stays on its disk until it
        vacuums.
        """
        memories, tombstones, keys = schema.memories, schema.tombstones, schema.idempotency_keys
        with writing(self._engine) as connection:
            lock = select(users.c.id).where(users.c.id == user_id).with_for_update()
            if connection.scalar(lock) is None:
                raise _no_user(user_id)
            of_memory = sa.or_(
                keys.c.memory_id.in_(select(memories.c.id).where(memories.c.user_id == user_id)),
                keys.c.memory_id.in_(select(tombstones.c.memory_id).where(tombstones.c.user_id == user_id)),
            )
            connection.execute(delete(keys).where(of_memory))
            erased = {}
            for table in (memories, *reversed(schema.metadata.sorted_tables)):  # tags are in use by memories
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
        """Store that a developer gets a user's memory key; return the generation of the key.

        Connecting again changes nothing; after `disconnect` the generation is the next one. The user's row is locked,
        so that of two exchanges at once the second sees the first. `key_hash` returns the hash of the memory key of a
        generation.
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
        """End a developer's memory key, access, requests, codes and tokens of a user.

        `NotFoundError` where the two are not connected.
        """
        pair, now = {"user_id": user_id, "developer_id": developer_id}, self._now()
        requests = schema.access_requests
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

    def connected_developers(self, user_id: str) -> list[ConnectedDeveloper]:
        """Return the developers with a memory key of the user, by name."""
        query = (
            select(developers.c.id, developers.c.name, connections.c.created_at)
            .join(connections, connections.c.developer_id == developers.c.id)
            .where(connections.c.user_id == user_id, connections.c.ended_at.is_(None))
            .order_by(developers.c.name, developers.c.id)
        )
        return self._all(ConnectedDeveloper, query)

    def connected_user(self, *, developer_id: str, memory_key_hash: str) -> str | None:
        """Return the id of the user of a memory key that this developer has."""
        query = (
            select(connections.c.user_id)
            .filter_by(memory_key_hash=memory_key_hash, developer_id=developer_id, ended_at=None)
            .join(users, users.c.id == connections.c.user_id)
            .where(users.c.disabled.is_(False))
        )
        user_id: str | None = self._scalar(query)
        return user_id

    def _end_codes(self, connection: Connection, **owners: str) -> None:
        """End the authorization codes and tokens of a developer, a user or a pair of them."""
        now = self._now()
        for table, ended_at in ((schema.authorization_codes, "used_at"), (schema.user_tokens, "revoked_at")):
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


def rewrap_keys(connection: Connection, rewrap: Rewrap) -> int:
    """Replace the wrapping of all keys of all users; return their number."""
    n_keys, place = 0, sa.tuple_(user_keys.c.user_id, user_keys.c.version)
    some = select(user_keys.c.user_id, user_keys.c.version, user_keys.c.wrapped_key).order_by(*place)
    rows = connection.execute(some.limit(REWRAP_BATCH)).all()
    while rows:
        for user_id, version, wrapped in rows:
            new = rewrap(user_id, version, bytes(wrapped))
            this = update(user_keys).filter_by(user_id=user_id, version=version)
            connection.execute(this.values(wrapped_key=new))
        n_keys += len(rows)
        after = place > sa.tuple_(sa.literal(rows[-1][0]), sa.literal(rows[-1][1]))
        rows = connection.execute(some.where(after).limit(REWRAP_BATCH)).all()
    return n_keys
