"""What the service keeps: one database, asked by short queries in one place a subject."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from sqlalchemy import delete, event

from memframe.errors import AccessError, ConfigError, ServiceError
from memframe.service.store.accounts import Accounts, Developer, User, lock_user
from memframe.service.store.authorizations import AuthorizationCode, Authorizations, UserToken
from memframe.service.store.engine import (
    OTHER_KEY,
    alone,
    cause_of,
    check_key,
    name_of,
    naming_database_errors,
    open_engine,
    read_meta,
    snapshots_of,
    write_meta,
    writing,
)
from memframe.service.store.lookups import Lookups
from memframe.service.store.memories import RESTORABLE, Memories, granted_memory
from memframe.service.store.postgresql import is_away
from memframe.service.store.readers import Readers
from memframe.service.store.requests import AccessRequests, StoredRequest, granted_keys
from memframe.service.store.schema import meta
from memframe.service.store.sessions import Sessions
from memframe.service.store.sqlite import sqlite_url
from memframe.service.store.statements import Queries
from memframe.service.store.user_keys import Rewrap, rewrap_keys
from memframe.service.store.writers import Writers
from memframe.service.times import Clock, utc_now
from memframe.service.tokens import bad_token
from memframe.wire import MemoryBlob

__all__ = [
    "RESTORABLE",
    "AccessRequests",
    "Accounts",
    "AuthorizationCode",
    "Authorizations",
    "Developer",
    "Memories",
    "Sessions",
    "Store",
    "StoredRequest",
    "User",
    "UserToken",
    "cause_of",
    "is_away",
    "sqlite_url",
]

Result = TypeVar("Result")


class Store:
    """The database of one service.

    Parameters
    ----------
    url : str
        A SQLAlchemy address; `sqlite_url` gives the one of a file.
    now : Clock, optional
        What tells the time.

    Attributes
    ----------
    accounts : Accounts
    requests : AccessRequests
    authorizations : Authorizations
    sessions : Sessions
    lookups : Lookups or None
        For reads of single memories; None where the database is in this process, and there is no waiting.

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
        self._engine = open_engine(url)
        self._snapshots = snapshots_of(self._engine)
        self._readers = Readers(self._engine)
        self.lookups = Lookups(self._readers) if self._readers.threads else None
        self._writers = Writers(self._engine)
        self._now = now
        self.accounts = Accounts(self._engine, now=now)
        self.requests = AccessRequests(self._engine, now=now)
        self.authorizations = Authorizations(self._engine, now=now)
        self.sessions = Sessions(self._engine, now=now)

    def granted(self, *, developer_id: str, user_id: str) -> Memories:
        """One user's memories for reads of a statement each; `AccessError` unless the grant holds right now."""
        return self._granted(self._readers.queries(), developer_id, user_id)

    def memory(self, memory_id: str, *, developer_id: str, user_id: str) -> MemoryBlob:
        """One of a user's memories; `AccessError` unless the grant holds, `NotFoundError` if there is none."""
        asked = {"developer_id": developer_id, "user_id": user_id}
        found = granted_memory(self._readers.queries(), memory_id, **asked)
        if found is None:
            raise self._no_grant(developer_id)
        return found

    @contextmanager
    def snapshot(self, *, developer_id: str, user_id: str) -> Iterator[Memories]:
        """The same for several statements that are to see one moment."""
        with self._snapshots.connect() as connection, connection.begin():
            yield self._granted(Queries(connection), developer_id, user_id)

    def write(self, do: Callable[[Memories], Result], *, developer_id: str, user_id: str) -> Future[Result]:
        """Have something done to one user's memories, if the grant holds then; all of it or nothing."""

        def run(queries: Queries) -> Result:
            return do(self._granted(queries, developer_id, user_id, lock=True))

        return self._writers.submit(user_id, run)

    @contextmanager
    def owned(self, user_id: str) -> Iterator[Memories]:
        """One user's memories for one transaction of the operator, who needs no grant.

        A database that locks rows keeps the user's, so that the user's other writes come before or after.
        """
        with writing(self._engine) as connection:
            key_version = lock_user(connection, user_id)
            yield self._memories(Queries(connection, remembers=True), "", user_id, key_version)

    def naming_errors(self) -> AbstractContextManager[None]:
        """A block in which an error of the database becomes a `ConfigError`, for whoever runs the service."""
        return naming_database_errors(self._engine)

    @property
    def name(self) -> str:
        """What the database is called in messages."""
        return name_of(self._engine)

    def when_connected(self, do: Callable[[], None]) -> None:
        """Have something done whenever a new connection to the database was made."""
        event.listen(self._engine, "connect", lambda *_: do())

    @property
    def reading_threads(self) -> Executor | None:
        """Where short reads are to run; None where the database is in this process, and there is no waiting."""
        return self._readers.threads

    def sqlite_file(self) -> Path | None:
        """The database's file, if it is SQLite's."""
        name = self._engine.url.database
        return Path(name) if self._engine.dialect.name == "sqlite" and name else None

    def is_bound(self, fingerprint: str | None = None) -> bool:
        """Return True where the data belongs to a master key already, or to the one with this fingerprint."""
        with self._engine.connect() as connection:
            bound_to = read_meta(connection, "master_key")
        return bound_to is not None and fingerprint in {None, bound_to}

    def bind(self, fingerprint: str) -> str | None:
        """Tie the data to the master key with this fingerprint; return the first one, wrapped, if it is another.

        Data of another key is refused, now and whenever a connection is made: a process that has lost all of its
        connections does not go on with a key that was replaced meanwhile.
        """
        with writing(self._engine) as connection:
            bound_to = read_meta(connection, "master_key")
            if bound_to is None:
                write_meta(connection, "master_key", fingerprint)
            elif bound_to != fingerprint:
                raise ConfigError(OTHER_KEY)
            first = read_meta(connection, "first_master_key")
        event.listen(self._engine, "connect", partial(check_key, fingerprint))
        return first

    def replace_master_key(
        self, fingerprint: str, first: str, rewrap: Rewrap, save: Callable[[], None]
    ) -> int:
        """Wrap all keys of users anew and tie the data to another master key, all at once; the number of keys.

        Parameters
        ----------
        fingerprint : str
            Of the new master key.
        first : str
            The first master key, wrapped by the new one.
        rewrap : callable
            Makes the new wrapping of a key out of the old one, for a user's id and a version.
        save : callable
            Writes the new master key down, before the transaction ends.

        Raises
        ------
        ConfigError
            Another process is connected to the database.
        """
        with alone(self._engine) as connection:
            n_keys = rewrap_keys(connection, rewrap)
            connection.execute(delete(meta).where(meta.c.name.in_(["master_key", "first_master_key"])))
            write_meta(connection, "master_key", fingerprint)
            write_meta(connection, "first_master_key", first)
            save()
        return n_keys

    def close(self) -> None:
        """Finish what is being written, and give all connections back."""
        self._writers.close()
        if self.lookups:
            self.lookups.close()
        self._readers.close()
        self._engine.dispose()

    def _granted(self, queries: Queries, developer_id: str, user_id: str, *, lock: bool = False) -> Memories:
        granted = granted_keys(queries, developer_id=developer_id, user_id=user_id, lock=lock)
        if granted is None:
            raise self._no_grant(developer_id)
        return self._memories(queries, developer_id, user_id, *granted)

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

    def _no_grant(self, developer_id: str) -> ServiceError:
        developer = self.accounts.developer(developer_id)
        if developer is None or developer.disabled:
            return bad_token()
        return AccessError(
            "this user has not approved an access request of yours, or has revoked it",
            status=403,
            code="no_grant",
        )
