"""Connections for reads of one statement: kept open, one a thread, and without a transaction around each.

A single statement sees one moment by itself. Taking a connection from the pool, beginning, rolling back and
giving it back would cost several times the statement.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock, local
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError

from memframe.service.store.statements import Queries, Statement, driver_connection

N_THREADS = 4


class Readers:
    """The reading connections of one store.

    Attributes
    ----------
    threads : ThreadPoolExecutor or None
        Where to read from a database that is waited for: few, as they take turns at the interpreter anyway.
    """

    def __init__(self, engine: Engine) -> None:
        local_file = engine.dialect.name == "sqlite"
        self.threads = None if local_file else ThreadPoolExecutor(N_THREADS, "memframe-reader")
        self._engine = engine
        self._of_thread = local()
        self._open: list[DBAPIConnection] = []
        self._lock = Lock()

    def queries(self) -> Queries:
        """This thread's."""
        queries: Queries | None = getattr(self._of_thread, "queries", None)
        if queries is None:
            queries = self._of_thread.queries = _Reading(self._connected)
        return queries

    def close(self) -> None:
        """Close all connections, once what is being read is there; who reads afterwards opens a new one."""
        if self.threads:
            self.threads.shutdown()
        with self._lock:
            done, self._open = self._open, []
            self._of_thread = local()
        for connection in done:
            connection.close()

    def _connected(self) -> Connection:
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.detach()  # from the pool: it stays with its thread
        with self._lock:
            self._open.append(driver_connection(connection))
        return connection


class _Reading(Queries):
    """Queries that ask once more, on a new connection, when theirs turns out to be lost.

    They only read, and a statement at a time, so that nothing happens twice.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        super().__init__(connect())
        self._connect = connect

    def _execute(self, statement: Statement, parameters: dict[str, Any]) -> None:
        try:
            super()._execute(statement, parameters)
        except DBAPIError:
            if not self.broken:
                raise
            self._use(self._connect())
            super()._execute(statement, parameters)
