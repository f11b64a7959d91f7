"""What the service keeps: one database, asked by short queries in one place a subject."""

from __future__ import annotations

from collections.abc import Callable

from memframe.errors import ConfigError
from memframe.service.store.accounts import Accounts, Developer, User
from memframe.service.store.authorizations import AuthorizationCode, Authorizations, UserToken
from memframe.service.store.engine import open_engine, read_meta, sqlite_url, write_meta, writing
from memframe.service.store.requests import AccessRequests, StoredRequest
from memframe.service.store.sessions import Sessions
from memframe.service.times import Clock, utc_now

__all__ = [
    "AccessRequests",
    "Accounts",
    "AuthorizationCode",
    "Authorizations",
    "Developer",
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
        self.accounts = Accounts(self._engine, now=now)
        self.requests = AccessRequests(self._engine, now=now)
        self.authorizations = Authorizations(self._engine, now=now)
        self.sessions = Sessions(self._engine, now=now)

    def bind(self, fingerprint: str, *, may_claim: Callable[[], bool] = lambda: True) -> None:
        """Tie the data to the master key with this fingerprint; data of another key is refused."""
        with writing(self._engine) as connection:
            bound_to = read_meta(connection, "master_key")
            if bound_to is None and may_claim():
                write_meta(connection, "master_key", fingerprint)
            elif bound_to != fingerprint:
                raise ConfigError(
                    "this database belongs to another master key; restore the key file that was beside it"
                )

    def close(self) -> None:
        """Give all connections back."""
        self._engine.dispose()
