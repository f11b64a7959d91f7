"""What the log hears of a database that fails: what is away, every few seconds that it is, and when it is back.

Each call that meets it is told 503 anyway. A line for each of them, with the way that it took through the code,
would fill the disk while the operator looks for the one that matters.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from threading import Lock

from sqlalchemy.exc import DBAPIError

from memframe.service.store import cause_of, is_away
from memframe.service.times import Clock

EVERY = timedelta(seconds=5)

_log = logging.getLogger("memframe.service")


class Outage:
    """Counts the calls that a database could not serve, and tells of them now and then.

    Parameters
    ----------
    database : str
        Its address, without a password.
    now : Clock
        What tells the time.
    """

    def __init__(self, database: str, *, now: Clock) -> None:
        self._database = database
        self._now = now
        self._lock = Lock()
        self._told_at: datetime | None = None
        self._away_since: datetime | None = None
        self._n_refused = 0

    def refused(self, error: DBAPIError) -> None:
        """A call was answered 503 because of this error."""
        moment = self._now()
        with self._lock:
            self._n_refused += 1
            if self._away_since is None and is_away(error):
                self._away_since = moment
            if self._told_at is None or moment - self._told_at >= EVERY:
                self._told_at = moment
                self._tell(cause_of(error))

    def connected(self) -> None:
        """The database has let somebody in."""
        with self._lock:
            if self._away_since is None:
                return
            seconds = (self._now() - self._away_since).total_seconds()
            _log.warning("%s is back after %.0f s; %s answered 503", self._database, seconds, self._counted())
            self._away_since = self._told_at = None
            self._n_refused = 0

    def _tell(self, cause: str) -> None:
        if self._away_since is None:
            _log.error("%s cannot be used: %s; %s answered 503", self._database, cause, self._counted())
            self._n_refused = 0
        else:
            _log.error("%s is away: %s; %s answered 503", self._database, cause, self._counted())

    def _counted(self) -> str:
        return f"{self._n_refused:,} {'call was' if self._n_refused == 1 else 'calls were'}"
