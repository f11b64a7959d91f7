"""PostgreSQL as the store uses it: for several processes and machines, and a server that may go away.

A write locks the user's row first, so that writes of one user come one after the other. Whoever waits for a
lock, or for a server that does not answer, gives up in time and is told to come again. A connection that the
server has ended, because it was started again, is replaced before anybody is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from selectors import EVENT_READ, DefaultSelector
from typing import Any

from sqlalchemy import URL, Connection, Engine, event, func, select, text
from sqlalchemy.exc import DBAPIError, DisconnectionError

from memframe.errors import ConfigError

LOCK_TIMEOUT_MS = 10_000
NETWORK_TIMEOUTS = {"connect_timeout": 10, "tcp_user_timeout": 10_000}
"""Parameters of the driver, in seconds and in milliseconds; those that an address names are its own."""

LEAVING_ROUNDS = 20

SCHEMA_LOCK = 0x6D656D66
"""Any number will do that nobody else locks in the same database."""

_SHUTDOWNS = "57P"
"""How the codes begin of errors with which the server takes its leave, told to stop or crashed."""


_NO_CONNECTION = (_SHUTDOWNS, "08", "53300")
"""The same of errors without a connection: it is lost, or the server has too many already."""


def with_driver(address: URL) -> URL:
    """An address as it is, but PostgreSQL's, as other programs write it, with the driver that is ours."""
    if address.drivername in {"postgres", "postgresql"}:
        return address.set(drivername="postgresql+psycopg")
    return address


def prepare_postgresql(engine: Engine) -> None:
    """Have every connection set up, and looked at before it is used again."""

    @event.listens_for(engine, "do_connect")
    def bound(dialect: object, record: object, words: object, parameters: dict[str, Any]) -> None:  # noqa: ARG001 - the event's signature
        for name, value in NETWORK_TIMEOUTS.items():
            parameters.setdefault(name, value)
        parameters["client_encoding"] = "utf8"  # whatever the environment says: any text may come

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, record: object) -> None:  # noqa: ARG001 - the event's signature
        connection.execute(f"SET lock_timeout = {LOCK_TIMEOUT_MS}")
        connection.commit()

    @event.listens_for(engine, "checkout")
    def look(connection: Any, record: object, proxy: object) -> None:  # noqa: ARG001 - the event's signature
        if connection.closed or _is_readable(connection):
            raise DisconnectionError  # the pool makes another one


def _is_readable(connection: Any) -> bool:
    """Whether the server has said something on an idle connection, which it does when it takes its leave."""
    with DefaultSelector() as selector:
        selector.register(connection, EVENT_READ)
        return bool(selector.select(timeout=0))


def is_leave(error: Exception) -> bool:
    """Whether the server has said that it ends the connection, which may not have been seen to end yet."""
    return str(getattr(error, "sqlstate", None)).startswith(_SHUTDOWNS)


def is_away(error: DBAPIError) -> bool:
    """Whether there is no connection to be had: the driver says so with no code at all, or with one of these."""
    code = getattr(error.orig, "sqlstate", "")  # which errors of SQLite have not
    return code is None or code.startswith(_NO_CONNECTION)


def check_encoding(connection: Connection, name: str) -> None:
    """Refuse a database that cannot keep every text; ``name`` is what it is called in messages."""
    encoding = connection.scalar(text("SHOW server_encoding"))
    if encoding != "UTF8":
        raise ConfigError(
            f"{name} is in the encoding {encoding}, which cannot keep every text; make one in UTF8, and name it: "
            "CREATE DATABASE memframe_utf8 ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0"
        )


@contextmanager
def alone(connection: Connection) -> Iterator[None]:
    """A transaction during which nobody else has a session in the database, or gets further than to its door."""
    others = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename IS NOT NULL "
        "AND pid <> pg_backend_pid()"
    )
    with connection.begin():
        connection.execute(text("LOCK TABLE meta IN ACCESS EXCLUSIVE MODE"))
        for _ in range(LEAVING_ROUNDS):  # a session lasts a moment longer than its client
            if not connection.scalar(others):
                break
            connection.execute(text("SELECT pg_stat_clear_snapshot(), pg_sleep(0.1)"))
        else:
            raise ConfigError(
                "the database is in use; stop the service and whatever else is connected to it, and try again"
            )
        yield


def lock_schema(connection: Connection) -> None:
    """Of several processes that start at the same time, let one make the tables."""
    connection.execute(select(func.pg_advisory_xact_lock(SCHEMA_LOCK)))
