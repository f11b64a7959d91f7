"""Open the database, run transactions, fetch records: SQLite and PostgreSQL behind one interface.

SQLite: one file in WAL mode, every commit synced, deleted content overwritten. Write transactions take the lock when
they begin, so what they read still holds when they write. SQLite's own busy handler backs off and may starve a waiter;
so threads of a process queue for a lock of this process, and only processes compete, polling often.

PostgreSQL: a write locks the user's row first, so that writes of one user are serialized. Lock and network waits are
bounded. Connections that the server has closed, because it was restarted, are replaced before they are used.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from threading import Lock
from typing import Any, TypeVar

from msgspec import Struct
from sqlalchemy import (
    Connection,
    Engine,
    Select,
    create_engine,
    event,
    func,
    insert,
    inspect,
    make_url,
    select,
    text,
)
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    DisconnectionError,
    NoSuchModuleError,
    OperationalError,
)

from memframe.errors import ConfigError
from memframe.service.store.schema import REVISION, alembic_version, meta, metadata

OTHER_KEY = "this database belongs to another master key; restore its key file"
IN_USE = "the database is in use; stop the service and everything else that is connected to it, and try again"

BUSY_TIMEOUT_MS = 10_000
BUSY_POLL_MS = 3

LOCK_TIMEOUT_MS = 10_000
NETWORK_TIMEOUTS = {"connect_timeout": 10, "tcp_user_timeout": 10_000}
"""Parameters of psycopg, in seconds and in milliseconds; the address may set others."""

SESSION_END_POLLS = 20
SCHEMA_LOCK = 0x6D656D66  # any number that nobody else locks in the same database

_SHUTDOWN = "57P"
"""Prefix of SQLSTATEs with which PostgreSQL closes connections when it stops or has crashed."""

_NO_CONNECTION = (_SHUTDOWN, "08", "53300")
"""Prefixes of SQLSTATEs without a connection: lost, or too many already."""

Record = TypeVar("Record", bound=Struct)
Parameters = Mapping[str, Any]


def sqlite_url(path: Path) -> str:
    """Return the SQLAlchemy URL of a SQLite file."""
    return f"sqlite:///{path}"


def open_engine(url: str) -> Engine:
    """Open a database; create its tables or upgrade them."""
    engine = _create_engine(url)
    try:
        with naming_database_errors(engine):
            _prepare_schema(engine)
    except BaseException:  # Ctrl-C as well: nobody else could close the connections
        engine.dispose()
        raise
    return engine


def _create_engine(url: str) -> Engine:
    try:
        address = make_url(url)
        if address.drivername in {"postgres", "postgresql"}:
            address = address.set(drivername="postgresql+psycopg")
        engine = create_engine(
            address,
            hide_parameters=True,  # an error must not quote what was to be stored
            max_overflow=-1,  # bounded by the threads of the web framework
        )
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
    if engine.dialect.name == "sqlite":
        _prepare_sqlite(engine)
    elif engine.dialect.name == "postgresql":
        _prepare_postgresql(engine)
    else:
        raise ConfigError(f"the service keeps its data in SQLite or PostgreSQL, not in {engine.dialect.name}")
    return engine


def _prepare_sqlite(engine: Engine) -> None:
    engine.update_execution_options(write_lock=Lock())
    url = engine.url
    if url.database and url.database != ":memory:" and "uri" not in url.query:
        with suppress(OSError):  # it exists, or SQLite fails likewise and names it
            Path(url.database).touch(mode=0o600, exist_ok=False)  # SQLite copies the mode to -wal and -shm

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, record: object) -> None:  # noqa: ARG001 - the event's signature
        connection.isolation_level = None  # the driver's own BEGIN comes too late
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get("writes", False):
            _begin_immediate(connection)
        else:
            connection.exec_driver_sql("BEGIN")


def _begin_immediate(connection: Connection) -> None:
    """Take SQLite's write lock, polling at a fixed short interval.

    On the driver's connection: through SQLAlchemy the three statements cost as much as those of a write.
    """
    driver: Any = connection.connection.driver_connection
    driver.execute(f"PRAGMA busy_timeout={BUSY_POLL_MS}")
    try:
        for left in range(BUSY_TIMEOUT_MS // BUSY_POLL_MS, -1, -1):
            try:
                driver.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if not left or error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                    raise OperationalError(None, None, error, hide_parameters=True) from None
    finally:
        driver.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")


def _prepare_postgresql(engine: Engine) -> None:
    @event.listens_for(engine, "do_connect")
    def add_parameters(dialect: object, record: object, words: object, parameters: dict[str, Any]) -> None:  # noqa: ARG001 - the event's signature
        for name, value in NETWORK_TIMEOUTS.items():
            parameters.setdefault(name, value)
        parameters["client_encoding"] = "utf8"  # whatever the environment says

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, record: object) -> None:  # noqa: ARG001 - the event's signature
        connection.execute(f"SET lock_timeout = {LOCK_TIMEOUT_MS}")
        connection.commit()

    @event.listens_for(engine, "checkout")
    def check(connection: Any, record: object, proxy: object) -> None:  # noqa: ARG001 - the event's signature
        with DefaultSelector() as selector:
            selector.register(connection, EVENT_READ)
            # a server that closes an idle connection says so on it
            if connection.closed or selector.select(timeout=0):
                raise DisconnectionError  # the pool makes another one


def is_shutdown(error: Exception) -> bool:
    """Return True where PostgreSQL announced that it closes the connection, which may not look closed yet."""
    return str(getattr(error, "sqlstate", None)).startswith(_SHUTDOWN)


def is_unreachable(error: DBAPIError) -> bool:
    """Return True where no connection can be had; psycopg has no SQLSTATE then, or one of `_NO_CONNECTION`."""
    code = getattr(error.orig, "sqlstate", "")  # errors of SQLite have none
    return code is None or code.startswith(_NO_CONNECTION)


@contextmanager
def naming_database_errors(engine: Engine) -> Iterator[None]:
    """Turn an error of the database into a `ConfigError` with the database and the cause."""
    try:
        yield
    except DBAPIError as error:
        message = f"{name_of(engine)} cannot be opened or used: {cause_of(error)}; if it is busy, try again"
        raise ConfigError(message) from None


def name_of(engine: Engine) -> str:
    """Return the address of a database for messages, with passwords masked."""
    masked = {name: "***" for name in engine.url.query if "password" in name.lower()}
    shown = engine.url.update_query_dict(masked).render_as_string(hide_password=True)
    return f"the database {shown.replace('%2A%2A%2A', '***')}"


def cause_of(error: DBAPIError) -> str:
    """Return the first line of a database's message: further ones may quote what was to be stored."""
    return str(error.orig).partition("\n")[0]


def snapshots_of(engine: Engine) -> Engine:
    """Return an engine whose transactions read one snapshot, as SQLite's always do."""
    if engine.dialect.name == "postgresql":
        return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return engine


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Run a write transaction: it commits at the end of the block, and rolls back on an error."""
    lock = engine.get_execution_options().get("write_lock") or nullcontext()
    with lock, engine.connect().execution_options(writes=True) as connection, connection.begin():
        yield connection


def empty_write_ahead_log(engine: Engine) -> None:
    """Move what is in SQLite's write-ahead log into the database, unless somebody reads from it; nothing waits."""
    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.execute("PRAGMA busy_timeout=0")
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            driver.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")


@contextmanager
def writing_alone(engine: Engine) -> Iterator[Connection]:
    """Run a write transaction during which no other process is connected; `ConfigError` where one is."""
    engine.dispose()  # idle connections of this process
    lock = engine.get_execution_options().get("write_lock") or nullcontext()
    exclusive = _exclusive_in_sqlite if engine.dialect.name == "sqlite" else _exclusive_in_postgresql
    with lock, engine.connect().execution_options(writes=True) as connection:
        try:
            with exclusive(connection):
                yield connection
        finally:
            connection.invalidate()  # its settings are for this alone


@contextmanager
def _exclusive_in_sqlite(connection: Connection) -> Iterator[None]:
    # SQLite leaves WAL mode only while no other connection is open, and none can enter it during a transaction
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


@contextmanager
def _exclusive_in_postgresql(connection: Connection) -> Iterator[None]:
    others = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename IS NOT NULL "
        "AND pid <> pg_backend_pid()"
    )
    with connection.begin():
        connection.execute(text("LOCK TABLE meta IN ACCESS EXCLUSIVE MODE"))  # new processes wait for it
        for _ in range(SESSION_END_POLLS):  # a session outlasts its client by a moment
            if not connection.scalar(others):
                break
            connection.execute(text("SELECT pg_stat_clear_snapshot(), pg_sleep(0.1)"))
        else:
            raise ConfigError(IN_USE)
        yield


def check_key(fingerprint: str, connection: Any, record: object) -> None:  # noqa: ARG001 - the event's signature
    """Refuse a new connection to data that belongs to another master key by now."""
    (bound_to,) = connection.execute("SELECT value FROM meta WHERE name = 'master_key'").fetchone()
    connection.commit()
    if bound_to != fingerprint:
        connection.close()  # SQLAlchemy forgets a connection that an event has refused
        raise OperationalError(None, None, ConfigError(OTHER_KEY))


def fetch_one(
    connection: Connection, record: type[Record], query: Select[Any], parameters: Parameters | None = None
) -> Record | None:
    """Fetch at most one row as a record."""
    row = connection.execute(query, parameters).mappings().one_or_none()
    return None if row is None else record(**row)


def fetch_all(
    connection: Connection, record: type[Record], query: Select[Any], parameters: Parameters | None = None
) -> list[Record]:
    """Fetch all rows as records."""
    return [record(**row) for row in connection.execute(query, parameters).mappings()]


def columns_of(record: Struct) -> dict[str, Any]:
    """Return a record as the values of an INSERT."""
    return {name: getattr(record, name) for name in record.__struct_fields__}


def read_meta(connection: Connection, name: str) -> str | None:
    """Read a setting of the database."""
    return connection.scalar(select(meta.c.value).where(meta.c.name == name))


def write_meta(connection: Connection, name: str, value: str) -> None:
    """Insert a setting of the database."""
    connection.execute(insert(meta).values(name=name, value=value))


def lock_schema(connection: Connection) -> None:
    """Let one process at a time set up the database; SQLite's write transactions always do."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(SCHEMA_LOCK)))


def _prepare_schema(engine: Engine) -> None:
    with writing(engine) as connection:
        if engine.dialect.name == "postgresql":
            _check_encoding(connection, name_of(engine))
        lock_schema(connection)
        if not inspect(connection).has_table(meta.name):
            metadata.create_all(connection)
            alembic_version.create(connection)
            connection.execute(insert(alembic_version).values(version_num=REVISION))
            write_meta(connection, "schema_version", "4")  # versions of memframe before alembic refuse it
        elif (found := _find_revision(connection)) != REVISION:
            # alembic takes half a second to import
            from memframe.service.store.migrations import upgrade_schema  # noqa: PLC0415

            upgrade_schema(connection, found)


def _find_revision(connection: Connection) -> str:
    """Return the alembic revision of a database; before alembic, its schema version in four digits."""
    if inspect(connection).has_table(alembic_version.name):
        return str(connection.scalar(select(alembic_version.c.version_num)))
    return f"{read_meta(connection, 'schema_version'):0>4}"


def _check_encoding(connection: Connection, name: str) -> None:
    """Refuse a database that cannot store every text."""
    encoding = connection.scalar(text("SHOW server_encoding"))
    if encoding != "UTF8":
        raise ConfigError(
            f"{name} is in the encoding {encoding}, which cannot keep every text; make one in UTF8, and name it: "
            "CREATE DATABASE memframe_utf8 ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0"
        )
