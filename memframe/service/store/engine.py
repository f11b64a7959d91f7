"""The database behind the store: how it is opened, and which transactions it runs.

Queries that every call needs are built once, as constants beside the code that runs them: building
one costs more than SQLite takes to answer it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

from msgspec import Struct
from sqlalchemy import (
    Connection,
    Engine,
    Select,
    create_engine,
    insert,
    inspect,
    make_url,
    select,
    text,
    update,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError
from sqlalchemy.schema import CreateTable

from memframe.errors import ConfigError
from memframe.service.store import postgresql, sqlite
from memframe.service.store.postgresql import check_encoding, lock_schema, prepare_postgresql, with_driver
from memframe.service.store.schema import SCHEMA_VERSION, UPGRADED, meta, metadata
from memframe.service.store.sqlite import prepare_sqlite

_PREPARE = {"sqlite": prepare_sqlite, "postgresql": prepare_postgresql}

OTHER_KEY = "this database belongs to another master key; restore the key file that was beside it"

_SHUT_OUT = {"sqlite": sqlite.alone, "postgresql": postgresql.alone}

Record = TypeVar("Record", bound=Struct)
Parameters = Mapping[str, Any]


def open_engine(url: str) -> Engine:
    """The engine for a database address; its tables are made or checked."""
    engine = _engine_for(url)
    try:
        with naming_database_errors(engine):
            _create_tables(engine)
    except BaseException:  # whatever it was, the database is let go
        engine.dispose()
        raise
    return engine


def _engine_for(url: str) -> Engine:
    try:
        engine = create_engine(
            with_driver(make_url(url)),
            hide_parameters=True,  # an error must not quote what was to be stored
            max_overflow=-1,  # the web framework's threads are the bound
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
    if engine.dialect.name not in _PREPARE:
        raise ConfigError(f"the service keeps its data in SQLite or PostgreSQL, not in {engine.dialect.name}")
    _PREPARE[engine.dialect.name](engine)
    return engine


@contextmanager
def naming_database_errors(engine: Engine) -> Iterator[None]:
    """Turn an error of the database into a `ConfigError` that names the database and the cause."""
    try:
        yield
    except DBAPIError as error:
        message = f"{name_of(engine)} cannot be opened or used: {cause_of(error)}; if it is busy, try again"
        raise ConfigError(message) from None


def name_of(engine: Engine) -> str:
    """Return what a database is called in messages: its address, passwords in the query masked, too."""
    masked = {name: "***" for name in engine.url.query if "password" in name.lower()}
    shown = engine.url.update_query_dict(masked).render_as_string(hide_password=True)
    return f"the database {shown.replace('%2A%2A%2A', '***')}"


def cause_of(error: DBAPIError) -> str:
    """What the database says of an error, in one line: further ones may quote what was to be stored."""
    return str(error.orig).partition("\n")[0]


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


@contextmanager
def alone(engine: Engine) -> Iterator[Connection]:
    """A transaction that will write, and during which no other process is connected to the database.

    Whoever connects meanwhile waits for its end, and reads then what it wrote.
    """
    engine.dispose()  # our own idle connections are not another process
    turn = engine.get_execution_options().get("turn") or nullcontext()
    with turn, engine.connect().execution_options(writes=True) as connection:
        try:
            shut_others_out = _SHUT_OUT[engine.dialect.name]
            with shut_others_out(connection):
                yield connection
        finally:
            connection.invalidate()  # it was set up for this alone


def check_key(fingerprint: str, connection: Any, record: object) -> None:  # noqa: ARG001 - the event's signature
    """Refuse a new connection to data that was tied to another master key since."""
    (bound_to,) = connection.execute("SELECT value FROM meta WHERE name = 'master_key'").fetchone()
    connection.commit()
    if bound_to != fingerprint:
        connection.close()  # SQLAlchemy forgets one that an event has refused
        raise OperationalError(None, None, ConfigError(OTHER_KEY))


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


def _create_tables(engine: Engine) -> None:
    with writing(engine) as connection:
        if engine.dialect.name == "postgresql":
            check_encoding(connection, name_of(engine))
            lock_schema(connection)
        metadata.create_all(connection)
        version = read_meta(connection, "schema_version")
        if version is None:
            write_meta(connection, "schema_version", str(SCHEMA_VERSION))
        elif int(version) in UPGRADED:
            _add_missing_columns(connection)
            connection.execute(
                update(meta).where(meta.c.name == "schema_version").values(value=str(SCHEMA_VERSION))
            )
        elif int(version) != SCHEMA_VERSION:
            raise ConfigError(
                f"the database is of schema version {version}, this memframe reads {SCHEMA_VERSION}; "
                "install the version of memframe that wrote it"
            )


def _add_missing_columns(connection: Connection) -> None:
    """Add the columns and indexes that tables of an earlier schema lack; columns are nullable or have a default."""
    quote = connection.dialect.identifier_preparer.format_table
    for table in metadata.tables.values():
        compiler = connection.dialect.ddl_compiler(connection.dialect, CreateTable(table))
        known = {column["name"] for column in inspect(connection).get_columns(table.name)}
        for column in table.columns:
            if column.name not in known:
                spelled = compiler.get_column_specification(column)
                connection.execute(text(f"ALTER TABLE {quote(table)} ADD COLUMN {spelled}"))
        for index in table.indexes:
            index.create(connection, checkfirst=True)


def read_meta(connection: Connection, name: str) -> str | None:
    """One setting of the database itself."""
    return connection.scalar(select(meta.c.value).where(meta.c.name == name))


def write_meta(connection: Connection, name: str, value: str) -> None:
    """Note a setting of the database, once."""
    connection.execute(insert(meta).values(name=name, value=value))
