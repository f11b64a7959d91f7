"""Connections for reads of one statement: kept open, one a thread, and without a transaction around each.

A single statement sees one moment by itself. Taking a connection from the pool, beginning, rolling back and
giving it back would cost several times the statement.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Lock, local
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.engine.interfaces import DBAPIConnection

from memframe.service.store.statements import Queries

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
        """This thread's; one whose connection was lost is replaced."""
        queries: Queries | None = getattr(self._of_thread, "queries", None)
        if queries is None or queries.broken:
            queries = self._of_thread.queries = self._connected()
        return queries

    def close(self) -> None:
        """Close all connections, once what is being read is there; who reads afterwards opens a new one."""
        if self.threads:
            self.threads.shutdown()
        with self._lock:
            lost, self._open = self._open, []
            self._of_thread = local()
        for connection in lost:
            connection.close()

    def _connected(self) -> Queries:
        pooled = self._engine.raw_connection()
        connection: Any = pooled.dbapi_connection
        pooled.detach()  # it stays with its thread
        if self._engine.dialect.name == "postgresql":
            connection.autocommit = True
        with self._lock:
            self._open.append(connection)
        return Queries(connection, self._engine.dialect)
