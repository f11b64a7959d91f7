"""What the service keeps: one database, asked by short queries in one place a subject."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from memframe.errors import AccessError, ConfigError
from memframe.service.store.accounts import Accounts, Developer, User, lock_user
from memframe.service.store.authorizations import AuthorizationCode, Authorizations, UserToken
from memframe.service.store.engine import (
    naming_database_errors,
    open_engine,
    read_meta,
    sqlite_url,
    write_meta,
    writing,
)
from memframe.service.store.memories import Memories
from memframe.service.store.requests import AccessRequests, StoredRequest, has_grant
from memframe.service.store.sessions import Sessions
from memframe.service.times import Clock, utc_now

__all__ = [
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
    "sqlite_url",
]


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
        self._now = now
        self.accounts = Accounts(self._engine, now=now)
        self.requests = AccessRequests(self._engine, now=now)
        self.authorizations = Authorizations(self._engine, now=now)
        self.sessions = Sessions(self._engine, now=now)

    @contextmanager
    def granted(self, *, developer_id: str, user_id: str, writes: bool = False) -> Iterator[Memories]:
        """One user's memories for one transaction; `AccessError` unless the grant holds right now."""
        with writing(self._engine) if writes else self._engine.connect() as connection:
            if not has_grant(connection, developer_id=developer_id, user_id=user_id, lock=writes):
                raise AccessError(
                    "this user has not approved an access request of yours, or has revoked it",
                    status=403,
                    code="no_grant",
                )
            yield Memories(connection, developer_id=developer_id, user_id=user_id, now=self._now())

    @contextmanager
    def owned(self, user_id: str) -> Iterator[Memories]:
        """One user's memories for one transaction of the operator, who needs no grant.

        A database that locks rows keeps the user's, so that the user's other writes come before or after.
        """
        with writing(self._engine) as connection:
            lock_user(connection, user_id)
            yield Memories(connection, developer_id="", user_id=user_id, now=self._now())

    def naming_errors(self) -> AbstractContextManager[None]:
        """A block in which an error of the database becomes a `ConfigError`, for whoever runs the service."""
        return naming_database_errors(self._engine)

    def sqlite_file(self) -> Path | None:
        """The database's file, if it is SQLite's."""
        name = self._engine.url.database
        return Path(name) if self._engine.dialect.name == "sqlite" and name else None

    def is_bound(self) -> bool:
        """Whether the data belongs to a master key already."""
        with self._engine.connect() as connection:
            return read_meta(connection, "master_key") is not None

    def bind(self, fingerprint: str) -> None:
        """Tie the data to the master key with this fingerprint; data of another key is refused."""
        with writing(self._engine) as connection:
            bound_to = read_meta(connection, "master_key")
            if bound_to is None:
                write_meta(connection, "master_key", fingerprint)
            elif bound_to != fingerprint:
                raise ConfigError(
                    "this database belongs to another master key; restore the key file that was beside it"
                )

    def close(self) -> None:
        """Give all connections back."""
        self._engine.dispose()
