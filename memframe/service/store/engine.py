"""The database behind the store: how it is opened, and which transactions it runs.

PostgreSQL serves several processes and machines. A write there locks the user's row first, so that writes of
one user come one after the other.

SQLite writes ahead (WAL) and sees every commit through to the disk (``synchronous=FULL``). Its write
transactions take the lock at their beginning: what was read inside one still holds when it is written.
Whoever waits for SQLite's lock looks again from time to time, and of many who do some may never find it
free; so threads of one process wait in line for a lock of their own, and only processes compete, who look
often.

Queries that every call needs are built once, as constants beside the code that runs them: building
one costs more than SQLite takes to answer it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from threading import Lock
from typing import Any, TypeVar

from msgspec import Struct
from sqlalchemy import URL, Connection, Engine, Select, create_engine, event, func, insert, make_url, select
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, NoSuchModuleError, OperationalError

from memframe.errors import ConfigError
from memframe.service.store.schema import SCHEMA_VERSION, meta, metadata

BUSY_TIMEOUT_MS = 10_000
BUSY_ROUND_MS = 3
SCHEMA_LOCK = 0x6D656D66
"""Any number will do that nobody else locks in the same database."""

Record = TypeVar("Record", bound=Struct)
Parameters = Mapping[str, Any]


def sqlite_url(path: Path) -> str:
    """The address of a SQLite file."""
    return f"sqlite:///{path}"


def open_engine(url: str) -> Engine:
    """The engine for a database address; its tables are made or checked."""
    try:
        engine = create_engine(
            _with_driver(url),
            hide_parameters=True,  # an error must not quote what was to be stored
            max_overflow=-1,  # the web framework's threads are the bound
        )
        prepare = {"sqlite": _prepare_sqlite, "postgresql": _prepare_postgresql}
        if engine.dialect.name in prepare:
            prepare[engine.dialect.name](engine)
    except ModuleNotFoundError as error:
        install = "'memframe[postgres]'" if error.name == "psycopg" else error.name
        raise ConfigError(
            f"the database address needs the library {error.name}, which is not installed: pip install {install}"
        ) from None
    except (ArgumentError, NoSuchModuleError) as error:
        raise ConfigError(
            f"the database address is not understood ({type(error).__name__}): write it as SQLAlchemy does, "
            "such as sqlite:////folder/file.db"
        ) from None
    try:
        with naming_database_errors(engine):
            _create_tables(engine)
    except BaseException:  # whatever it was, the database is let go
        engine.dispose()
        raise
    return engine


@contextmanager
def naming_database_errors(engine: Engine) -> Iterator[None]:
    """Turn an error of the database into a `ConfigError` that names the database and the cause."""
    try:
        yield
    except DBAPIError as error:
        place = engine.url.render_as_string(hide_password=True)
        cause = str(error.orig).partition("\n")[0]  # further lines may quote what was to be stored
        message = f"the database {place} cannot be opened or used: {cause}; if it is busy, try again"
        raise ConfigError(message) from None


def _with_driver(url: str) -> URL:
    """An address as it is, but PostgreSQL's, as other programs write it, with the driver that is ours."""
    address = make_url(url)
    if address.drivername in {"postgres", "postgresql"}:
        return address.set(drivername="postgresql+psycopg")
    return address


def snapshots_of(engine: Engine) -> Engine:
    """An engine for reads of several queries that are to see the same moment.

    SQLite's transactions always do.
    """
    if engine.dialect.name == "postgresql":
        return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return engine


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that will write: commits at the end, rolls back on an error."""
    turn = engine.get_execution_options().get("turn") or nullcontext()
    with turn, engine.connect().execution_options(writes=True) as connection, connection.begin():
        yield connection


def fetch_one(
    connection: Connection, record: type[Record], query: Select[Any], parameters: Parameters | None = None
) -> Record | None:
    """The one row that a query finds, or None."""
    row = connection.execute(query, parameters).mappings().one_or_none()
    return None if row is None else record(**row)


def fetch_all(
    connection: Connection, record: type[Record], query: Select[Any], parameters: Parameters | None = None
) -> list[Record]:
    """All rows that a query finds."""
    return [record(**row) for row in connection.execute(query, parameters).mappings()]


def columns_of(record: Struct) -> dict[str, Any]:
    """A record as the values of an INSERT."""
    return {name: getattr(record, name) for name in record.__struct_fields__}


def _prepare_sqlite(engine: Engine) -> None:
    engine.update_execution_options(turn=Lock())

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, record: object) -> None:  # noqa: ARG001 - the event's signature
        connection.isolation_level = None  # the driver's own BEGIN comes too late for our transactions
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get("writes", False):
            _begin_to_write(connection)
        else:
            connection.exec_driver_sql("BEGIN")


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


def _prepare_postgresql(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def set_up(connection: Any, record: object) -> None:  # noqa: ARG001 - the event's signature
        connection.execute(f"SET lock_timeout = {BUSY_TIMEOUT_MS}")
        connection.commit()

    @event.listens_for(engine, "checkout")
    def check(connection: Any, record: object, proxy: object) -> None:  # noqa: ARG001 - the event's signature
        if _is_readable(connection):
            raise DisconnectionError  # the pool makes another one


def _is_readable(connection: Any) -> bool:
    """Whether the server has said something on an idle connection, which it does when it takes its leave."""
    with DefaultSelector() as selector:
        selector.register(connection, EVENT_READ)
        return bool(selector.select(timeout=0))


def _create_tables(engine: Engine) -> None:
    with writing(engine) as connection:
        if engine.dialect.name == "postgresql":  # of several processes that start, one makes the tables
            connection.execute(select(func.pg_advisory_xact_lock(SCHEMA_LOCK)))
        metadata.create_all(connection)
        version = read_meta(connection, "schema_version")
        if version is None:
            write_meta(connection, "schema_version", str(SCHEMA_VERSION))
        elif int(version) != SCHEMA_VERSION:
            raise ConfigError(
                f"the database is of schema version {version}, this memframe reads {SCHEMA_VERSION}; "
                "install the version of memframe that wrote it"
            )


def read_meta(connection: Connection, name: str) -> str | None:
    """One setting of the database itself."""
    return connection.scalar(select(meta.c.value).where(meta.c.name == name))


def write_meta(connection: Connection, name: str, value: str) -> None:
    """Note a setting of the database, once."""
    connection.execute(insert(meta).values(name=name, value=value))
