"""Developers and users in the database: who they are, and the hashes and keys they are known by."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import uuid4

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Engine, Table, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from memframe.errors import ConflictError, NotFoundError
from memframe.service.logs import log_event
from memframe.service.store.engine import columns_of, fetch_all, fetch_one, writing
from memframe.service.store.postgresql import lock_schema
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
from memframe.service.times import Clock

_DEVELOPER_BY = {
    name: select(developers).where(developers.c[name] == bindparam(name))
    for name in ("id", "api_key_hash", "client_id")
}


class Developer(Struct, frozen=True):
    """An application that asks for access."""

    id: str
    name: str
    api_key_hash: str
    client_id: str
    client_secret_hash: str
    redirect_uris: tuple[str, ...]
    disabled: bool
    created_at: datetime


class User(Struct, frozen=True):
    """A person whose memories are kept."""

    id: str
    email: str
    password_hash: str
    key_version: int
    disabled: bool
    created_at: datetime
    password_of_operator: bool = False


class ConnectedDeveloper(Struct, frozen=True):
    """An application that has a memory key of a user's."""

    id: str
    name: str
    created_at: datetime


_LOCKED_USER = (
    select(users.c.key_version).where(users.c.id == bindparam("user_id")).with_for_update(key_share=True)
)


class Accounts:
    """Queries on developers, users, users' keys and the connections between the two."""

    def __init__(self, engine: Engine, *, now: Clock) -> None:
        self._engine = engine
        self._now = now

    def add_developer(
        self,
        *,
        name: str,
        api_key_hash: str,
        client_id: str,
        client_secret_hash: str,
        redirect_uris: tuple[str, ...],
        only_first: bool = False,
    ) -> Developer:
        """Add an application; `ConflictError` where it is to be the first and there is one already."""
        developer = Developer(
            id=str(uuid4()),
            name=name,
            api_key_hash=api_key_hash,
            client_id=client_id,
            client_secret_hash=client_secret_hash,
            redirect_uris=redirect_uris,
            disabled=False,
            created_at=self._now(),
        )
        with writing(self._engine) as connection:
            if only_first:
                if self._engine.dialect.name == "postgresql":  # SQLite has but one writer anyway
                    lock_schema(connection)
                if connection.scalar(select(developers.c.id).limit(1)) is not None:
                    message = "there is a developer already; `memframe service list` shows all"
                    raise ConflictError(message, status=409, code="developer_exists")
            connection.execute(insert(developers).values(**columns_of(developer)))
        return developer

    def developer(self, developer_id: str) -> Developer | None:
        """The application with an id."""
        return self._developer(id=developer_id)

    def developer_by_api_key(self, api_key_hash: str) -> Developer | None:
        """The application whose API key has this hash."""
        return self._developer(api_key_hash=api_key_hash)

    def developer_by_client_id(self, client_id: str) -> Developer | None:
        """The application as OAuth knows it."""
        return self._developer(client_id=client_id)

    def developers(self) -> list[Developer]:
        """All applications, oldest first."""
        with self._engine.connect() as connection:
            query = select(developers).order_by(developers.c.created_at, developers.c.id)
            return fetch_all(connection, Developer, query)

    def set_developer_secret(self, developer_id: str, **hashes: str) -> None:
        """Replace ``api_key_hash`` or ``client_secret_hash``; the old one is refused from the next call on."""
        with writing(self._engine) as connection:
            connection.execute(update(developers).where(developers.c.id == developer_id).values(**hashes))

    def add_user(
        self,
        *,
        user_id: str,
        email: str,
        password_hash: str,
        wrapped_key: bytes,
        password_of_operator: bool = False,
    ) -> User:
        """Add a person with the first version of the encryption key; the e-mail ignores case."""
        user = User(
            user_id,
            email.casefold(),
            password_hash,
            1,
            disabled=False,
            created_at=self._now(),
            password_of_operator=password_of_operator,
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
        """The person with an id."""
        return self._user(users.c.id == user_id)

    def user_by_email(self, email: str) -> User | None:
        """The person with an e-mail address, whatever its case."""
        return self._user(users.c.email == email.casefold())

    def set_password(self, user_id: str, password_hash: str, *, of_operator: bool) -> None:
        """Give a person another password, and sign the person out everywhere.

        ``of_operator`` notes that somebody else knows it, which the dashboard says until it is changed.
        """
        values = {"password_hash": password_hash, "password_of_operator": of_operator}
        with writing(self._engine) as connection:
            connection.execute(update(users).where(users.c.id == user_id).values(**values))
            connection.execute(delete(sessions).where(sessions.c.user_id == user_id))

    def set_disabled(self, kind: type[Developer | User], account_id: str, *, disabled: bool) -> None:
        """Close an application's or a person's account, or open it again; it holds for the next call.

        Sessions, codes and tokens end with the closing: none of them comes back when the account is opened again.
        """
        accounts = developers if kind is Developer else users
        column = "developer_id" if kind is Developer else "user_id"
        with writing(self._engine) as connection:
            connection.execute(update(accounts).where(accounts.c.id == account_id).values(disabled=disabled))
            if disabled and kind is User:
                connection.execute(delete(sessions).where(sessions.c.user_id == account_id))
            ending = ((authorization_codes, "used_at"), (user_tokens, "revoked_at")) if disabled else ()
            for table, ended in ending:
                holds = (table.c[column] == account_id) & table.c[ended].is_(None)
                connection.execute(update(table).where(holds).values({ended: self._now()}))
        log_event("account closed" if disabled else "account opened", **{column: account_id})

    def users(self) -> list[User]:
        """All people, oldest first."""
        with self._engine.connect() as connection:
            return fetch_all(connection, User, select(users).order_by(users.c.created_at, users.c.id))

    def connect(self, *, user_id: str, developer_id: str, key_hash: Callable[[int], str]) -> int:
        """Note that a developer is given a user's memory key; return the generation of the key.

        A second time changes nothing. After `disconnect` the generation is the next one. A database that locks
        rows keeps the user's: of two exchanges at once, the second sees the first.

        Parameters
        ----------
        user_id, developer_id : str
        key_hash : callable
            Gives the hash of the memory key of a generation.
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
        """End all that a developer has of a user: memory key, access, requests, codes and tokens.

        `NotFoundError` where the two are not connected. The next exchange gives another memory key.
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
        """Return the applications that have a memory key of the user's, by name."""
        query = (
            select(developers.c.id, developers.c.name, connections.c.created_at)
            .join(connections, connections.c.developer_id == developers.c.id)
            .where(connections.c.user_id == user_id, connections.c.ended_at.is_(None))
            .order_by(developers.c.name, developers.c.id)
        )
        with self._engine.connect() as connection:
            return fetch_all(connection, ConnectedDeveloper, query)

    def connected_user(self, *, developer_id: str, memory_key_hash: str) -> str | None:
        """The user behind a memory key, if it was given to this developer and the user is there."""
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
        """The developer of whom one column is known."""
        (name,) = known
        with self._engine.connect() as connection:
            return fetch_one(connection, Developer, _DEVELOPER_BY[name], known)

    def _user(self, condition: Any) -> User | None:
        with self._engine.connect() as connection:
            return fetch_one(connection, User, select(users).where(condition))


def lock_user(connection: Connection, user_id: str) -> int:
    """Keep a user's row until the transaction ends; the version of the key.

    `NotFoundError` where there is no such user.
    """
    key_version = connection.scalar(_LOCKED_USER, {"user_id": user_id})
    if key_version is None:
        raise NotFoundError(f"there is no user {user_id}", status=404, code="not_found")
    return int(key_version)
