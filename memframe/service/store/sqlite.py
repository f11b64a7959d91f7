"""SQLite as the store uses it: one file, written ahead (WAL), every commit seen through to the disk.

What is deleted is overwritten with zeros, whatever the library was built to do by itself.

Write transactions take the lock at their beginning: what was read inside one still holds when it is written.
Whoever waits for SQLite's lock looks again from time to time, and of many who do some may never find it
free; so threads of one process wait in line for a lock of their own, and only processes compete, who look
often.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import URL, Connection, Engine, event
from sqlalchemy.exc import OperationalError

from memframe.errors import ConfigError

IN_USE = "the database is in use; stop the service and whatever else is connected to it, and try again"
BUSY_TIMEOUT_MS = 10_000
BUSY_ROUND_MS = 3


def sqlite_url(path: Path) -> str:
    """The address of a SQLite file."""
    return f"sqlite:///{path}"


def prepare_sqlite(engine: Engine) -> None:
    """Have every connection set up, and every transaction begin as it is to go on."""
    engine.update_execution_options(turn=Lock())
    _make_private(engine.url)

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, record: object) -> None:  # noqa: ARG001 - the event's signature
        connection.isolation_level = None  # the driver's own BEGIN comes too late for our transactions
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get("writes", False):
            _begin_to_write(connection)
        else:
            connection.exec_driver_sql("BEGIN")


@contextmanager
def alone(connection: Connection) -> Iterator[None]:
    """A transaction on a file that no other connection is open to.

    As long as one is, SQLite does not leave the mode in which every connection of ours opens a file; and none can
    enter it again while the transaction is under way.
    """
    driver: Any = connection.connection.driver_connection
    driver.execute("PRAGMA busy_timeout=0")
    try:
        driver.execute("PRAGMA journal_mode=DELETE")
        with connection.begin():
            if driver.execute("PRAGMA journal_mode").fetchone() != ("delete",):
                raise ConfigError(IN_USE)
            driver.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
            yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise
        raise ConfigError(IN_USE) from None


def _make_private(url: URL) -> None:
    """A new file is closed to other users, wherever it is; SQLite gives the files beside it the same mode."""
    if url.database and url.database != ":memory:" and "uri" not in url.query:
        with suppress(OSError):  # it is there already, or SQLite meets the same and names it
            Path(url.database).touch(mode=0o600, exist_ok=False)


def _begin_to_write(connection: Connection) -> None:
    """Take SQLite's lock, asking often: by itself it waits longer and longer, while others come and go."""
    connection.exec_driver_sql(f"PRAGMA busy_timeout={BUSY_ROUND_MS}")
    try:
        for _ in range(BUSY_TIMEOUT_MS // BUSY_ROUND_MS):
            if _has_begun(connection):
                return
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")


def _has_begun(connection: Connection) -> bool:
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    except OperationalError as error:
        if getattr(error.orig, "sqlite_errorcode", None) != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True
