"""The database of a service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from sqlalchemy import delete, event

from memframe.errors import AccessError, ConfigError, ServiceError
from memframe.service.clock import Clock, utc_now
from memframe.service.store.access import (
    AccessRequests,
    AuthorizationCode,
    Authorizations,
    StoredRequest,
    UserToken,
    find_granted_keys,
)
from memframe.service.store.accounts import (
    Accounts,
    Developer,
    Rewrap,
    Sessions,
    User,
    find_key_version,
    lock_user,
    rewrap_keys,
)
from memframe.service.store.activity import ActivityLog
from memframe.service.store.batching import GroupCommit, LookupBatcher, ReadConnections
from memframe.service.store.engine import (
    OTHER_KEY,
    check_key,
    name_of,
    naming_database_errors,
    open_engine,
    read_meta,
    snapshots_of,
    sqlite_url,
    write_meta,
    writing,
    writing_alone,
)
from memframe.service.store.memories import RESTORABLE, Memories, read_granted
from memframe.service.store.schema import meta
from memframe.service.store.statements import Queries
from memframe.service.tokens import Bearer, bad_token
from memframe.wire import MemoryBlob

__all__ = [
    "RESTORABLE",
    "AuthorizationCode",
    "Developer",
    "Memories",
    "Store",
    "StoredRequest",
    "User",
    "UserToken",
    "sqlite_url",
]

Result = TypeVar("Result")


class Store:
    """The database of one service.

    Parameters
    ----------
    url : str
        A SQLAlchemy address; `sqlite_url` gives that of a file.
    now : Clock, optional

    Attributes
    ----------
    engine : Engine
    accounts : Accounts
    requests : AccessRequests
    authorizations : Authorizations
    sessions : Sessions
    activity : ActivityLog
    lookups : LookupBatcher or None
        For reads of single memories from a database server; None for SQLite.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(sqlite_url(Path(folder, "service.db")))
    ...     store.accounts.developers()
    ...     store.close()
    []
    """

    def __init__(self, url: str, *, now: Clock = utc_now) -> None:
        self.engine = open_engine(url)
        self._snapshots = snapshots_of(self.engine)
        self._readers = ReadConnections(self.engine)
        self.lookups = LookupBatcher(self._readers) if self._readers.threads else None
        self._writes = GroupCommit(self.engine)
        self._now = now
        self.accounts = Accounts(self.engine, now=now)
        self.requests = AccessRequests(self.engine, now=now)
        self.authorizations = Authorizations(self.engine, now=now)
        self.sessions = Sessions(self.engine, now=now)
        self.activity = ActivityLog(self.engine, now=now)

    def granted(self, bearer: Bearer, user_id: str) -> Memories:
        """Return a user's memories for reads of one statement each; `AccessError` without a live grant."""
        return self._granted(self._readers.queries(), bearer, user_id)

    def memory(self, memory_id: str, bearer: Bearer, user_id: str) -> MemoryBlob:
        """Return a memory; `AccessError` without a live grant, `NotFoundError` if there is none."""
        found = read_granted(self._readers.queries(), memory_id, **bearer._asdict(), user_id=user_id)
        if found is None:
            raise self._no_grant(bearer)
        return found

    @contextmanager
    def snapshot(self, bearer: Bearer, user_id: str) -> Iterator[Memories]:
        """Open a user's memories for several statements that read one snapshot."""
        with self._snapshots.connect() as connection, connection.begin():
            yield self._granted(Queries(connection), bearer, user_id)

    def write(self, do: Callable[[Memories], Result], bearer: Bearer, user_id: str) -> Future[Result]:
        """Run `do` on a user's memories in a transaction, if the grant is live then."""

        def run(queries: Queries) -> Result:
            return do(self._granted(queries, bearer, user_id, lock=True))

        return self._writes.submit(user_id, run)

    @contextmanager
    def owned(self, user_id: str) -> Iterator[Memories]:
        """Open a user's memories for one transaction of the operator, who needs no grant; the user is locked."""
        with writing(self.engine) as connection:
            key_version = lock_user(connection, user_id)
            yield self._memories(Queries(connection, caches=True), "", user_id, key_version)

    @contextmanager
    def own(self, user_id: str) -> Iterator[Memories]:
        """Open a user's memories for the user, who reads one snapshot of them; `NotFoundError` for no such user."""
        with self._snapshots.connect() as connection, connection.begin():
            key_version = find_key_version(connection, user_id)
            yield self._memories(Queries(connection), "", user_id, key_version)

    def naming_errors(self) -> AbstractContextManager[None]:
        """Turn errors of the database inside a block into a `ConfigError` for the operator."""
        return naming_database_errors(self.engine)

    @property
    def name(self) -> str:
        """Name of the database in messages."""
        return name_of(self.engine)

    @property
    def reading_threads(self) -> Executor | None:
        """Threads for short reads; None for SQLite, which answers in this process at once."""
        return self._readers.threads

    def sqlite_file(self) -> Path | None:
        """Return the database file, if it is SQLite's."""
        name = self.engine.url.database
        return Path(name) if self.engine.dialect.name == "sqlite" and name else None

    def is_bound(self, fingerprint: str | None = None) -> bool:
        """Return True where the data belongs to a master key, or to the one with this fingerprint."""
        with self.engine.connect() as connection:
            bound_to = read_meta(connection, "master_key")
        return bound_to is not None and fingerprint in {None, bound_to}

    def bind(self, fingerprint: str) -> str | None:
        """Bind the data to a master key; return the first master key, wrapped, where it is another one.

        Data of another key is refused, now and by every new connection: a process that has lost its connections does
        not go on with a key that was replaced meanwhile.
        """
        with writing(self.engine) as connection:
            bound_to = read_meta(connection, "master_key")
            if bound_to is None:
                write_meta(connection, "master_key", fingerprint)
            elif bound_to != fingerprint:
                raise ConfigError(OTHER_KEY)
            first = read_meta(connection, "first_master_key")
        event.listen(self.engine, "connect", partial(check_key, fingerprint))
        return first

    def replace_master_key(
        self, fingerprint: str, first: str, rewrap: Rewrap, save: Callable[[], None]
    ) -> int:
        """Wrap all user keys with another master key, in one transaction; return their number.

        Parameters
        ----------
        fingerprint : str
            Of the new master key.
        first : str
            The first master key, wrapped by the new one.
        rewrap : callable
        save : callable
            Writes the new master key to a file, before the transaction ends.

        Raises
        ------
        ConfigError
            Another process is connected to the database.
        """
        with writing_alone(self.engine) as connection:
            n_keys = rewrap_keys(connection, rewrap)
            connection.execute(delete(meta).where(meta.c.name.in_(["master_key", "first_master_key"])))
            write_meta(connection, "master_key", fingerprint)
            write_meta(connection, "first_master_key", first)
            save()
        return n_keys

    def close(self) -> None:
        """Finish queued writes, and close all connections."""
        self._writes.close()
        if self.lookups:
            self.lookups.close()
        self._readers.close()
        self.activity.close()
        self.engine.dispose()

    def _granted(self, queries: Queries, bearer: Bearer, user_id: str, *, lock: bool = False) -> Memories:
        granted = find_granted_keys(queries, lock=lock, **bearer._asdict(), user_id=user_id)
        if granted is None:
            raise self._no_grant(bearer)
        return self._memories(queries, bearer.developer_id, user_id, *granted)

    def _memories(
        self, queries: Queries, developer_id: str, user_id: str, key_version: int, key_generation: int = 1
    ) -> Memories:
        return Memories(
            queries,
            developer_id=developer_id,
            user_id=user_id,
            key_version=key_version,
            key_generation=key_generation,
            now=self._now(),
        )

    def check_bearer(self, bearer: Bearer) -> None:
        """Raise `AuthError` where the account is disabled, or was since the token was issued."""
        developer = self.accounts.developer(bearer.developer_id)
        if developer is None or developer.disabled or developer.token_epoch != bearer.epoch:
            raise bad_token()

    def _no_grant(self, bearer: Bearer) -> ServiceError:
        self.check_bearer(bearer)
        return AccessError(
            "this user has not approved an access request of yours, or has revoked it",
            status=403,
            code="no_grant",
        )
