"""The databases under a service, and what tests of both have to know of each."""

import sqlite3
from contextlib import closing, contextmanager

from sqlalchemy import create_engine, text


class Sqlite:
    """A file in the data folder: what a service takes unless it is told otherwise."""

    name = "sqlite"
    lock_timeout = "memframe.service.store.engine.BUSY_TIMEOUT_MS"

    def new_database(self):
        return None

    @contextmanager
    def holding_writes(self, engine, user_id):
        """A block in which another process keeps a user's writes waiting."""
        with closing(sqlite3.connect(engine.url.database)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield

    def is_somebody_waiting(self, engine):
        """Whether a write has come as far as that."""
        return engine.get_execution_options()["write_lock"].locked()


class Postgresql:
    """A database of a server that the tests have started."""

    name = "postgresql"
    lock_timeout = "memframe.service.store.engine.LOCK_TIMEOUT_MS"

    def __init__(self, server):
        self.new_database = server.new_database

    @contextmanager
    def holding_writes(self, engine, user_id):
        other = create_engine(engine.url)
        with other.begin() as connection:
            connection.execute(text("SELECT id FROM users WHERE id = :id FOR UPDATE"), {"id": user_id})
            yield
        other.dispose()

    def is_somebody_waiting(self, engine):
        waiting = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        with engine.connect() as connection:
            return connection.scalar(waiting) > 0

    @contextmanager
    def away(self, engine):
        """A block in which the database ends every connection and takes no new one."""
        name = engine.url.database
        with self._beside(engine) as connection:
            connection.execute(text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false"))
            self._end_connections(connection, name)
            yield
            connection.execute(text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true"))

    def end_connections(self, engine):
        """What a restart does to connections."""
        with self._beside(engine) as connection:
            self._end_connections(connection, engine.url.database)

    def _end_connections(self, connection, name):
        ended = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = :name"
        connection.execute(text(ended), {"name": name})

    @contextmanager
    def _beside(self, engine):
        """A connection to another database of the same server."""
        other = create_engine(engine.url.set(database="postgres"), isolation_level="AUTOCOMMIT")
        with other.connect() as connection:
            yield connection
        other.dispose()
