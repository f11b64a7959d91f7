"""Open the database, run transactions and statements: SQLite and PostgreSQL behind one interface.

SQLite: one file in WAL mode, every commit synced, deleted content overwritten. Write transactions take the lock when
they begin, so that what they read still holds when they write. SQLite's own busy handler backs off and may starve a
waiter. So the threads of a process first queue for a lock in the process; only processes compete for SQLite's lock,
and poll often.

PostgreSQL: a write locks the user's row first, so that writes of one user are serialized. Lock and network waits are
bounded. Connections that the server has closed, because it was restarted, are replaced before they are used.

There are two ways to the data. Write a new query in the first way, unless every call to the API runs it.

=========  ======================================  =====================================================
way        used for                                gives
=========  ======================================  =====================================================
`Records`  accounts, access requests and tokens    structs, from expressions of SQLAlchemy
`Queries`  memories and tags, in calls to the API  tuples of the driver, from SQL for SQLite and PostgreSQL
=========  ======================================  =====================================================

The second way is for speed: with SQLAlchemy, a whole "create" or "get" on SQLite would take 1.3 times the processor
time, and a "list of 100" 1.9 times (``benchmarks/service.py``). Both raise SQLAlchemy's errors.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from operator import attrgetter
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from threading import Lock
from typing import Any, TypeVar

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection, Engine, Select, event
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, NoSuchModuleError, OperationalError

from memframe.errors import ConfigError, describe_install
from memframe.service.clock import Clock
from memframe.service.store.schema import REVISION, alembic_version, meta, metadata

IN_USE = "the database is in use; stop the service and everything else that is connected to it, and try again"

BUSY_TIMEOUT_MS = 10_000
"""Longest wait for SQLite's lock."""

BUSY_POLL_MS = 3
"""Time between two attempts to take SQLite's lock; it does not grow, so that no process is starved."""

LOCK_TIMEOUT_MS = 10_000
"""Longest wait for a lock of PostgreSQL."""

NETWORK_TIMEOUTS = {"connect_timeout": 10, "tcp_user_timeout": 10_000}
"""Parameters of psycopg, in seconds and in milliseconds; the address may set others."""

SESSION_END_POLLS = 20
"""Checks for PostgreSQL sessions that are about to end, a tenth of a second apart."""

SCHEMA_LOCK = 0x6D656D66  # any number that nobody else locks in the same database

_SHUTDOWN = "57P"
"""Prefix of SQLSTATEs with which PostgreSQL closes connections when it stops or has crashed."""

Record = TypeVar("Record", bound=Struct)
Result = TypeVar("Result")
Row = tuple[Any, ...]


def sqlite_url(path: Path) -> str:
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
        address = sa.make_url(url)
        if address.drivername in {"postgres", "postgresql"}:
            address = address.set(drivername="postgresql+psycopg")
        engine = sa.create_engine(
            address,
            hide_parameters=True,  # an error must not quote what was to be stored
            max_overflow=-1,  # bounded by the threads of the web framework
        )
    except ModuleNotFoundError as error:
        install = describe_install("postgres") if error.name == "psycopg" else f"pip install {error.name}"
        raise ConfigError(
            f"the database address needs the library {error.name}, which is not installed: {install}"
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
        with suppress(OSError):  # the file exists; or SQLite fails in the same way, and names it
            Path(url.database).touch(mode=0o600, exist_ok=False)  # SQLite copies the mode to -wal and -shm

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _: object) -> None:
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

    It uses the driver's connection: through SQLAlchemy, the three statements would cost as much as those of a write.
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
    def add_parameters(_: object, __: object, ___: object, parameters: dict[str, Any]) -> None:
        for name, value in NETWORK_TIMEOUTS.items():
            parameters.setdefault(name, value)
        parameters["client_encoding"] = "utf8"  # whatever the environment says

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _: object) -> None:
        connection.execute(f"SET lock_timeout = {LOCK_TIMEOUT_MS}")
        connection.commit()

    @event.listens_for(engine, "checkout")
    def check(connection: Any, _: object, __: object) -> None:
        with DefaultSelector() as selector:
            selector.register(connection, EVENT_READ)
            # a server that closes an idle connection sends a message on it
            if connection.closed or selector.select(timeout=0):
                raise DisconnectionError  # the pool makes another one


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
    url = engine.url.update_query_dict(masked)
    database = url.database and url.database.encode(errors="replace").decode()  # a path may not be UTF-8
    shown = url.set(database=database).render_as_string(hide_password=True)
    return f"the database {shown.replace('%2A%2A%2A', '***')}"


def cause_of(error: DBAPIError) -> str:
    """Return the first line of a database's message; further lines could quote what was to be stored."""
    return str(error.orig).partition("\n")[0]


# Transactions


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Run a write transaction: it commits at the end of the block, and rolls back on an error."""
    lock = engine.get_execution_options().get("write_lock") or nullcontext()
    with lock, engine.connect().execution_options(writes=True) as connection, connection.begin():
        yield connection


@contextmanager
def writing_alone(engine: Engine) -> Iterator[Connection]:
    """Run a write transaction during which no other process is connected; `ConfigError` if one is."""
    engine.dispose()  # idle connections of this process
    lock = engine.get_execution_options().get("write_lock") or nullcontext()
    exclusive = _exclusive_in_sqlite if engine.dialect.name == "sqlite" else _exclusive_in_postgresql
    with lock, engine.connect().execution_options(writes=True) as connection:
        try:
            with exclusive(connection):
                yield connection
        finally:
            connection.invalidate()  # keeps it out of the pool: its settings are for this transaction only


@contextmanager
def _exclusive_in_sqlite(connection: Connection) -> Iterator[None]:
    # SQLite leaves WAL mode only if no other connection is open; during a transaction no connection can enable it
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
    others = sa.text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename IS NOT NULL "
        "AND pid <> pg_backend_pid()"
    )
    with connection.begin():
        connection.execute(sa.text("LOCK TABLE meta IN ACCESS EXCLUSIVE MODE"))  # new processes wait for it
        for _ in range(SESSION_END_POLLS):  # a session outlasts its client by a moment
            if not connection.scalar(others):
                break
            connection.execute(sa.text("SELECT pg_stat_clear_snapshot(), pg_sleep(0.1)"))
        else:
            raise ConfigError(IN_USE)
        yield


def empty_write_ahead_log(engine: Engine) -> None:
    """Move SQLite's write-ahead log into the database, without waiting: not while somebody reads from the log."""
    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.execute("PRAGMA busy_timeout=0")
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            driver.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")


# Schema


def _prepare_schema(engine: Engine) -> None:
    with writing(engine) as connection:
        if engine.dialect.name == "postgresql":
            encoding = connection.scalar(sa.text("SHOW server_encoding"))
            if encoding != "UTF8":
                raise ConfigError(
                    f"{name_of(engine)} is in the encoding {encoding}, which cannot keep every text; make one in UTF8, "
                    "and name it: CREATE DATABASE memframe_utf8 ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0"
                )
        lock_schema(connection)
        if not sa.inspect(connection).has_table(meta.name):
            metadata.create_all(connection)
            alembic_version.create(connection)
            connection.execute(sa.insert(alembic_version).values(version_num=REVISION))
            write_meta(connection, "schema_version", "4")  # versions of memframe before alembic refuse it
            return
        if sa.inspect(connection).has_table(alembic_version.name):
            found = str(connection.scalar(sa.select(alembic_version.c.version_num)))
        else:  # from a version before alembic
            found = str(read_meta(connection, "schema_version"))
        if found != REVISION:
            # alembic takes half a second to import
            from memframe.service.store.migrations import upgrade_schema  # noqa: PLC0415

            upgrade_schema(connection, found)


def lock_schema(connection: Connection) -> None:
    """Let one process at a time set up the database; SQLite's write transactions always do."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(SCHEMA_LOCK)))


def read_meta(connection: Connection, name: str) -> str | None:
    return connection.scalar(sa.select(meta.c.value).where(meta.c.name == name))


def write_meta(connection: Connection, name: str, value: str) -> None:
    connection.execute(sa.insert(meta).values(name=name, value=value))


# Records, through SQLAlchemy


class Records:
    """Queries on some tables, each in its own transaction."""

    def __init__(self, engine: Engine, *, now: Clock) -> None:
        self._engine = engine
        self._now = now

    def _one(self, record: type[Record], query: Select[Any]) -> Record | None:
        with self._engine.connect() as connection:
            return fetch_one(connection, record, query)

    def _all(self, record: type[Record], query: Select[Any]) -> list[Record]:
        with self._engine.connect() as connection:
            return fetch_all(connection, record, query)


def fetch_one(connection: Connection, record: type[Record], query: Select[Any]) -> Record | None:
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else record(**row)


def fetch_all(connection: Connection, record: type[Record], query: Select[Any]) -> list[Record]:
    """Fetch all rows as records."""
    return [record(**row) for row in connection.execute(query).mappings()]


# Statements, on the driver


_PARAMETER = re.compile(r":([a-z_0-9]+)", re.ASCII)


class SqlStatement:
    """A statement with named parameters and, maybe, a variant for PostgreSQL, in the spelling of each driver.

    >>> SqlStatement("SELECT id FROM tags WHERE name = :name").postgresql
    'SELECT id FROM tags WHERE name = %(name)s'
    """

    def __init__(self, text: str, *, postgresql: str | None = None) -> None:
        self.sqlite = text
        self.postgresql = _PARAMETER.sub(r"%(\1)s", postgresql or text)


def insert_into(table: sa.Table) -> SqlStatement:
    names = table.columns.keys()
    parameters = ", ".join(f":{name}" for name in names)
    return SqlStatement(f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({parameters})")  # noqa: S608 - our own names


class Queries:
    """Run statements on one connection.

    With ``caches=True``, `cached` keeps what was read, so use it only in a transaction that holds the lock. `broken` is
    True once the connection was lost.
    """

    def __init__(self, connection: Connection, *, caches: bool = False) -> None:
        self.dialect = connection.dialect
        self._text_of = attrgetter(connection.dialect.name)
        self._driver: Any = connection.dialect.loaded_dbapi
        self._cache: dict[tuple[str, ...], Any] | None = {} if caches else None
        self._use(connection)

    def _use(self, connection: Connection) -> None:
        driver: Any = connection.connection.dbapi_connection
        self._connection = driver
        self._cursor = self._connection.cursor()
        self.broken = False

    def cached(self, key: tuple[str, ...], find: Callable[[], Result]) -> Result:
        """Return the result of `find`, from the cache if there is one."""
        if self._cache is None:
            return find()
        if key not in self._cache:
            self._cache[key] = find()
        found: Result = self._cache[key]
        return found

    def run_once(self, statement: SqlStatement, **parameters: Any) -> None:
        """Run a statement, with ``caches=True`` only the first time: once in a transaction."""
        self.cached((statement.sqlite,), lambda: self.run(statement, **parameters))

    def rows(self, statement: SqlStatement, **parameters: Any) -> list[Row]:
        self._execute(statement, parameters)
        return list(self._cursor.fetchall())

    def rows_within(
        self, statement: SqlStatement, *, max_chars: int, texts: Sequence[int], **parameters: Any
    ) -> tuple[list[Row], bool]:
        """Fetch rows until the texts in the columns `texts` reach `max_chars`; True if rows are left.

        This bounds memory only where the driver fetches rows one by one, as SQLite's does.
        """
        self._execute(statement, parameters)
        rows: list[Row] = []
        n_chars = 0
        try:
            for row in iter(self._cursor.fetchone, None):
                if n_chars >= max_chars:
                    self._cursor.close()  # ends the statement
                    self._cursor = self._connection.cursor()
                    return rows, True
                rows.append(row)
                for place in texts:
                    n_chars += len(row[place] or "")
        except self._driver.Error as error:
            raise self._translate(error) from None
        return rows, False

    def row(self, statement: SqlStatement, **parameters: Any) -> Row | None:
        found = self.rows(statement, **parameters)
        return found[0] if found else None

    def run(self, statement: SqlStatement, **parameters: Any) -> int:
        """Run a statement; return the number of changed rows."""
        self._execute(statement, parameters)
        return int(self._cursor.rowcount)

    def run_many(self, statement: SqlStatement, rows: Sequence[dict[str, Any]]) -> None:
        if rows:
            try:
                self._cursor.executemany(self._text_of(statement), rows)
            except self._driver.Error as error:
                raise self._translate(error) from None

    def _execute(self, statement: SqlStatement, parameters: dict[str, Any]) -> None:
        try:
            self._cursor.execute(self._text_of(statement), parameters)
        except self._driver.Error as error:
            raise self._translate(error) from None

    def _translate(self, error: Any) -> BaseException:
        """Return SQLAlchemy's error for one of the driver."""
        closes = str(getattr(error, "sqlstate", None)).startswith(_SHUTDOWN)  # may not look closed yet
        self.broken = closes or self.dialect.is_disconnect(error, self._connection, self._cursor)
        translated: BaseException = DBAPIError.instance(
            None, None, error, self._driver.Error, hide_parameters=True
        )
        return translated
