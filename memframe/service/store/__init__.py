"""The database of a service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, delete, event, select, update
from sqlalchemy.exc import OperationalError

from memframe.errors import AccessError, ConfigError, ServiceError
from memframe.service.clock import Clock, utc_now
from memframe.service.keys import MasterKey
from memframe.service.store.accounts import (
    AccessRequests,
    Accounts,
    Authorizations,
    find_granted_keys,
    find_key_version,
)
from memframe.service.store.activity import ActivityLog
from memframe.service.store.batching import GroupCommit, LookupBatcher, ReadConnections
from memframe.service.store.engine import (
    Queries,
    naming_database_errors,
    read_meta,
    write_meta,
    writing,
    writing_alone,
)
from memframe.service.store.memories import Memories, read_granted
from memframe.service.store.schema import meta, user_keys
from memframe.service.tokens import Bearer, bad_token
from memframe.wire import MemoryBlob

OTHER_KEY = "this database belongs to another master key; restore the key file that was beside it"

Result = TypeVar("Result")


class Store:
    """The database of one service (`open_engine` opens it), and the master key over it.

    For a database server, `lookups` batches the reads of single memories, and `reading_threads` run other short reads.
    Both are None for SQLite, which answers in this process at once.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from memframe.service.store.engine import open_engine, sqlite_url
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(open_engine(sqlite_url(Path(folder, "service.db"))), MasterKey.generate())
    ...     store.accounts.developers()
    ...     store.close()
    []
    """

    def __init__(self, engine: Engine, master_key: MasterKey, *, now: Clock = utc_now) -> None:
        self.engine = engine
        self.master_key = master_key
        self._now = now
        self._snapshots = self.engine  # its transactions read one snapshot, as SQLite's always do
        if self.engine.dialect.name == "postgresql":
            snapshot = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
            self._snapshots = self.engine.execution_options(**snapshot)
        self._readers = ReadConnections(self.engine)
        self.reading_threads: Executor | None = self._readers.threads
        self.lookups = LookupBatcher(self._readers) if self.reading_threads else None
        self._writes = GroupCommit(self.engine)
        self.accounts = Accounts(self.engine, now=now)
        self.requests = AccessRequests(self.engine, now=now)
        self.authorizations = Authorizations(self.engine, now=now)
        self.activity = ActivityLog(self.engine, now=now)

    def memories_of(self, bearer: Bearer, user_id: str) -> Memories:
        """Return a user's memories for reads of one statement each; `AccessError` without a live grant."""
        return self._find_memories(self._readers.queries(), bearer, user_id)

    def memory(self, memory_id: str, bearer: Bearer, user_id: str) -> MemoryBlob:
        """Return a memory; `AccessError` without a live grant, `NotFoundError` if there is none."""
        found = read_granted(self._readers.queries(), memory_id, **bearer._asdict(), user_id=user_id)
        if found is None:
            raise self._no_grant(bearer)
        return found

    @contextmanager
    def reading(self, bearer: Bearer, user_id: str, *, in_snapshot: bool) -> Iterator[Memories]:
        """Open a user's memories for one statement, or for several that read one snapshot."""
        if in_snapshot:
            with self._snapshots.connect() as connection, connection.begin():
                yield self._find_memories(Queries(connection), bearer, user_id)
        else:
            yield self.memories_of(bearer, user_id)

    def write(self, do: Callable[[Memories], Result], bearer: Bearer, user_id: str) -> Future[Result]:
        """Run `do` on a user's memories in a write transaction; `AccessError` if the grant is not live in it."""

        def run(queries: Queries) -> Result:
            return do(self._find_memories(queries, bearer, user_id, lock=True))

        return self._writes.submit(user_id, run)

    @contextmanager
    def transaction_of(self, user_id: str) -> Iterator[Memories]:
        """Open a user's memories for one write transaction, without a grant; the user is locked."""
        with writing(self.engine) as connection:
            yield self._without_grant(connection, user_id, lock=True)

    @contextmanager
    def snapshot_of(self, user_id: str) -> Iterator[Memories]:
        """Open one snapshot of a user's memories, without a grant; `NotFoundError` if there is no such user."""
        with self._snapshots.connect() as connection, connection.begin():
            yield self._without_grant(connection, user_id, lock=False)

    def _find_memories(
        self, queries: Queries, bearer: Bearer, user_id: str, *, lock: bool = False
    ) -> Memories:
        granted = find_granted_keys(queries, lock=lock, **bearer._asdict(), user_id=user_id)
        if granted is None:
            raise self._no_grant(bearer)
        version, generation = granted
        return Memories(
            queries,
            self.master_key,
            bearer.developer_id,
            user_id,
            now=self._now(),
            key_version=version,
            key_generation=generation,
        )

    def _without_grant(self, connection: Connection, user_id: str, *, lock: bool) -> Memories:
        version = find_key_version(connection, user_id, lock=lock)
        queries = Queries(connection, caches=lock)
        return Memories(queries, self.master_key, "", user_id, now=self._now(), key_version=version)

    def check_bearer(self, bearer: Bearer) -> None:
        """Raise `AuthError` if the account is disabled, or has been disabled since the token was issued."""
        developer = self.accounts.developer(id=bearer.developer_id)
        if developer is None or developer.disabled or developer.token_epoch != bearer.epoch:
            raise bad_token()

    def _no_grant(self, bearer: Bearer) -> ServiceError:
        self.check_bearer(bearer)
        message = "this user has not approved an access request of yours, or has revoked it"
        return AccessError(message, status=403, code="no_grant")

    def naming_errors(self) -> AbstractContextManager[None]:
        """Turn errors of the database inside a block into a `ConfigError` for the operator."""
        return naming_database_errors(self.engine)

    def replace_master_key(self, new: MasterKey, key_file: Path) -> int:
        """Wrap all user keys with another master key, in one transaction; return their number.

        The new key is written beside the file of the old one before the transaction ends. `ConfigError` if another
        process is connected to the database.
        """
        old = self.master_key
        with writing_alone(self.engine) as connection:
            names = ("user_id", "version", "wrapped_key")
            rows = connection.execute(select(*(user_keys.c[name] for name in names))).all()
            for user_id, version, wrapped in rows:
                this = {"user_id": user_id, "version": version}
                rewrapped = new.wrap(old.unwrap(bytes(wrapped), **this), **this)
                connection.execute(update(user_keys).filter_by(**this).values(wrapped_key=rewrapped))
            connection.execute(delete(meta).where(meta.c.name.in_(["master_key", "first_master_key"])))
            write_meta(connection, "master_key", new.fingerprint())
            write_meta(connection, "first_master_key", new.wrap_first(old))
            new.save_for_rotation(key_file)
        return len(rows)

    def close(self) -> None:
        """Finish queued writes, and close all connections."""
        self._writes.close()
        if self.lookups:
            self.lookups.close()
        self._readers.close()
        self.activity.close()
        self.engine.dispose()


def is_bound(engine: Engine, fingerprint: str | None = None) -> bool:
    """Return True if the data is bound to a master key, to any or to the one with this fingerprint."""
    with engine.connect() as connection:
        bound_to = read_meta(connection, "master_key")
    return bound_to is not None and fingerprint in {None, bound_to}


def bind_to_key(engine: Engine, master_key: MasterKey) -> None:
    """Bind the data to a master key, and load the first master key into it.

    `ConfigError` if the data belongs to another key. Every new connection checks this again, so that a process that
    reconnects does not continue with a key that was replaced meanwhile.
    """
    fingerprint = master_key.fingerprint()
    with writing(engine) as connection:
        bound_to = read_meta(connection, "master_key")
        if bound_to is None:
            write_meta(connection, "master_key", fingerprint)
        elif bound_to != fingerprint:
            raise ConfigError(OTHER_KEY)
        first = read_meta(connection, "first_master_key")
    if first is not None:
        master_key.unwrap_first(first)

    @event.listens_for(engine, "connect")
    def check_key(connection: Any, _: object) -> None:
        query = "SELECT value FROM meta WHERE name = 'master_key'"
        (bound_to,) = connection.execute(query).fetchone()
        connection.commit()
        if bound_to != fingerprint:
            connection.close()  # SQLAlchemy does not close a connection that an event refuses
            raise OperationalError(None, None, ConfigError(OTHER_KEY))
