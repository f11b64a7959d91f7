"""Statements that every call needs: compiled once, then run as text on the driver's own cursor.

SQLAlchemy builds them, knows the dialects and keeps the connections. Running a statement through it costs
ten times what SQLite takes to answer, so that the few that every call needs go to the driver directly. Their
rows are tuples as the driver gives them; their errors are SQLAlchemy's, as everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, Delete, Dialect, Insert, Select, Update
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError

from memframe.service.store.postgresql import is_leave

Row = tuple[Any, ...]
Clause = Select[Any] | Insert | Update | Delete
Found = TypeVar("Found")


class Compiled(NamedTuple):
    """A statement in one dialect: its text, and the constants in it by the names that they were given."""

    text: str
    constants: dict[str, Any]


class Statement:
    """A statement with parameters by name, compiled once for each dialect in which it is asked for.

    Parameters
    ----------
    clause : Select, Insert, Update or Delete
    postgresql : the same, optional
        Another one that finds the same, where PostgreSQL is better asked in another way.

    Examples
    --------
    >>> from sqlalchemy import bindparam, column, create_engine, select, table
    >>> named = Statement(select(column("id")).select_from(table("tags")).where(column("name") == bindparam("name")))
    >>> print(named.compiled(create_engine("sqlite://").dialect).text)
    SELECT id FROM tags WHERE name = :name
    """

    def __init__(self, clause: Clause, *, postgresql: Clause | None = None) -> None:
        self._clause = clause
        self._variants = {} if postgresql is None else {"postgresql": postgresql}
        self._compiled: dict[str, Compiled] = {}

    def compiled(self, dialect: Dialect) -> Compiled:
        """The statement in a dialect."""
        if dialect.name not in self._compiled:
            self._compiled[dialect.name] = self._compile(dialect)
        return self._compiled[dialect.name]

    def _compile(self, dialect: Dialect) -> Compiled:
        kind: Any = type(dialect)
        named = dialect if dialect.paramstyle == "pyformat" else kind(paramstyle="named")
        compiled = self._variants.get(dialect.name, self._clause).compile(dialect=named)
        given = {name: value for name, value in compiled.params.items() if value is not None}
        return Compiled(str(compiled), given)


class Queries:
    """Runs statements on one connection.

    Parameters
    ----------
    connection : Connection
        SQLAlchemy's, in whatever transaction it is.
    remembers : bool
        Whether what is read stays true as long as this lives: in a transaction that has locked it.

    Attributes
    ----------
    dialect : Dialect
    broken : bool
        Whether the connection was lost.
    """

    def __init__(self, connection: Connection, *, remembers: bool = False) -> None:
        self.dialect = connection.dialect
        self._memory: dict[tuple[str, ...], Any] | None = {} if remembers else None
        self._use(connection)

    def _use(self, connection: Connection) -> None:
        self._connection = driver_connection(connection)
        self._cursor = self._connection.cursor()
        self.broken = False

    def remembered(self, key: tuple[str, ...], find: Callable[[], Found]) -> Found:
        """What `find` found the first time, where what is read stays true; else what it finds now."""
        if self._memory is None:
            return find()
        if key not in self._memory:
            self._memory[key] = find()
        found: Found = self._memory[key]
        return found

    def rows(self, statement: Statement, **parameters: Any) -> list[Row]:
        """What a statement finds."""
        self._execute(statement, parameters)
        return list(self._cursor.fetchall())

    def rows_within(
        self, statement: Statement, *, max_chars: int, texts: Sequence[int], **parameters: Any
    ) -> tuple[list[Row], bool]:
        """Return the first rows that a statement finds, and True where there are more of them.

        They end with the one whose texts, in the columns at the places ``texts``, reach ``max_chars``. That bounds
        the memory that they take only where the driver fetches rows one by one, as SQLite's does.
        """
        self._execute(statement, parameters)
        rows: list[Row] = []
        n_chars = 0
        with self._naming_errors():
            for row in iter(self._cursor.fetchone, None):
                if n_chars >= max_chars:
                    self._cursor.close()  # which ends the statement
                    self._cursor = self._connection.cursor()
                    return rows, True
                rows.append(row)
                for place in texts:
                    n_chars += len(row[place] or "")
        return rows, False

    def row(self, statement: Statement, **parameters: Any) -> Row | None:
        """The first that a statement finds, or None."""
        found = self.rows(statement, **parameters)
        return found[0] if found else None

    def run(self, statement: Statement, **parameters: Any) -> int:
        """How many rows a statement has changed."""
        self._execute(statement, parameters)
        return self._cursor.rowcount

    def run_many(self, statement: Statement, rows: Sequence[dict[str, Any]]) -> None:
        """A statement once for each row."""
        if rows:
            with self._naming_errors():
                self._cursor.executemany(statement.compiled(self.dialect).text, rows)

    def _execute(self, statement: Statement, parameters: dict[str, Any]) -> None:
        text, constants = statement.compiled(self.dialect)
        with self._naming_errors():
            self._cursor.execute(text, {**constants, **parameters} if constants else parameters)

    @contextmanager
    def _naming_errors(self) -> Iterator[None]:
        driver = self.dialect.loaded_dbapi
        try:
            yield
        except driver.Error as error:
            self.broken = is_leave(error) or self.dialect.is_disconnect(error, self._connection, self._cursor)
            raise DBAPIError.instance(None, None, error, driver.Error, hide_parameters=True) from None


def driver_connection(connection: Connection) -> DBAPIConnection:
    """The driver's own below one of SQLAlchemy's."""
    driver = connection.connection.dbapi_connection
    assert driver is not None, "a connection that is in use has one"  # noqa: S101 - for the types
    return driver
