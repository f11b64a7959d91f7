"""The databases under a service, and what tests of both have to know of each."""

import sqlite3
from contextlib import closing, contextmanager

from sqlalchemy import create_engine, text


class Sqlite:
    """A file in the data folder: what a service takes unless it is told otherwise."""

    name = "sqlite"

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
        return engine.get_execution_options()["turn"].locked()


class Postgresql:
    """A database of a server that the tests have started."""

    name = "postgresql"

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

    def drop_database(self, engine):
        """Take a database away from those who use it."""
        other = create_engine(engine.url.set(database="postgres"), isolation_level="AUTOCOMMIT")
        with other.connect() as connection:
            connection.execute(text(f"DROP DATABASE {engine.url.database} WITH (FORCE)"))
        other.dispose()
