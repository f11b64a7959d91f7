"""Run the statements of every call as precompiled text on the driver's cursor.

SQLAlchemy builds the statements, knows the dialects and keeps the connections. Executing through it costs several
times what SQLite takes to answer: ``tests/benchmarks/service.py``, rows "get" and "create", shows the difference.
Rows are the driver's tuples; errors are SQLAlchemy's, as everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, Delete, Dialect, Insert, Select, Update
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError

from memframe.service.store.engine import is_shutdown

Row = tuple[Any, ...]
Clause = Select[Any] | Insert | Update | Delete
Result = TypeVar("Result")


class CompiledSql(NamedTuple):
    """The text of a statement in one dialect, and its constant parameters."""

    text: str
    constants: dict[str, Any]


class SqlStatement:
    """A statement with named parameters, compiled once for each dialect.

    Parameters
    ----------
    clause : Select, Insert, Update or Delete
    postgresql : the same, optional
        A variant for PostgreSQL.

    Examples
    --------
    >>> from sqlalchemy import bindparam, column, create_engine, select, table
    >>> named = SqlStatement(select(column("id")).select_from(table("tags")).where(column("name") == bindparam("name")))
    >>> print(named.compile(create_engine("sqlite://").dialect).text)
    SELECT id FROM tags WHERE name = :name
    """

    def __init__(self, clause: Clause, *, postgresql: Clause | None = None) -> None:
        self._clause = clause
        self._variants = {} if postgresql is None else {"postgresql": postgresql}
        self._compiled: dict[str, CompiledSql] = {}

    def compile(self, dialect: Dialect) -> CompiledSql:
        """Return the statement for a dialect."""
        if dialect.name not in self._compiled:
            kind: Any = type(dialect)
            named = dialect if dialect.paramstyle == "pyformat" else kind(paramstyle="named")
            compiled = self._variants.get(dialect.name, self._clause).compile(dialect=named)
            constants = {name: value for name, value in compiled.params.items() if value is not None}
            self._compiled[dialect.name] = CompiledSql(str(compiled), constants)
        return self._compiled[dialect.name]


class Queries:
    """Run statements on one connection.

    Parameters
    ----------
    connection : Connection
        SQLAlchemy's, in whatever transaction it is.
    caches : bool
        True where what is read holds as long as this object lives: in a transaction that has locked it.

    Attributes
    ----------
    dialect : Dialect
    broken : bool
        True once the connection was lost.
    """

    def __init__(self, connection: Connection, *, caches: bool = False) -> None:
        self.dialect = connection.dialect
        self._driver: Any = connection.dialect.loaded_dbapi
        self._cache: dict[tuple[str, ...], Any] | None = {} if caches else None
        self._use(connection)

    def _use(self, connection: Connection) -> None:
        self._connection = driver_connection(connection)
        self._cursor = self._connection.cursor()
        self.broken = False

    def cached(self, key: tuple[str, ...], find: Callable[[], Result]) -> Result:
        """Return the result of `find`, from the cache where there is one."""
        if self._cache is None:
            return find()
        if key not in self._cache:
            self._cache[key] = find()
        found: Result = self._cache[key]
        return found

    def rows(self, statement: SqlStatement, **parameters: Any) -> list[Row]:
        """Fetch all rows."""
        self._execute(statement, parameters)
        return list(self._cursor.fetchall())

    def rows_within(
        self, statement: SqlStatement, *, max_chars: int, texts: Sequence[int], **parameters: Any
    ) -> tuple[list[Row], bool]:
        """Fetch rows until the texts in the columns `texts` reach `max_chars`; True where rows are left.

        This bounds memory only where the driver fetches rows one by one, as SQLite's does.
        """
        self._execute(statement, parameters)
        rows: list[Row] = []
        n_chars = 0
        try:
            for row in iter(self._cursor.fetchone, None):
                if n_chars >= max_chars:
                    self._cursor.close()  # which ends the statement
                    self._cursor = self._connection.cursor()
                    return rows, True
                rows.append(row)
                for place in texts:
                    n_chars += len(row[place] or "")
        except self._driver.Error as error:
            raise self._translate(error) from None
        return rows, False

    def row(self, statement: SqlStatement, **parameters: Any) -> Row | None:
        """Fetch the first row, or None."""
        found = self.rows(statement, **parameters)
        return found[0] if found else None

    def run(self, statement: SqlStatement, **parameters: Any) -> int:
        """Run a statement; return the number of changed rows."""
        self._execute(statement, parameters)
        return self._cursor.rowcount

    def run_many(self, statement: SqlStatement, rows: Sequence[dict[str, Any]]) -> None:
        """Run a statement once for each set of parameters."""
        if rows:
            try:
                self._cursor.executemany(statement.compile(self.dialect).text, rows)
            except self._driver.Error as error:
                raise self._translate(error) from None

    def _execute(self, statement: SqlStatement, parameters: dict[str, Any]) -> None:
        text, constants = statement.compile(self.dialect)
        try:
            self._cursor.execute(text, {**constants, **parameters} if constants else parameters)
        except self._driver.Error as error:
            raise self._translate(error) from None

    def _translate(self, error: Any) -> BaseException:
        """Return the error of SQLAlchemy for one of the driver."""
        self.broken = is_shutdown(error) or self.dialect.is_disconnect(error, self._connection, self._cursor)
        translated: BaseException = DBAPIError.instance(
            None, None, error, self._driver.Error, hide_parameters=True
        )
        return translated


def driver_connection(connection: Connection) -> DBAPIConnection:
    """Return the driver's connection below SQLAlchemy's."""
    driver = connection.connection.dbapi_connection
    assert driver is not None, "a connection that is in use has one"  # noqa: S101 - for the types
    return driver
