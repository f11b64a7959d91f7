"""Count how many memories of a user each developer reads, creates, patches and deletes, by day.

Counts are kept in memory and added to the database every few seconds, so that a call costs no statement. A killed
process loses the counts of its last `FLUSH_EVERY_S`; a stopped one, or one whose database is unreachable for a while,
loses none.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from threading import Event, Lock, Thread
from typing import Literal

from msgspec import Struct
from sqlalchemy import Engine, select, text
from sqlalchemy.exc import DBAPIError

from memframe.service.clock import Clock
from memframe.service.store.engine import Records, writing
from memframe.service.store.schema import access_counts, developers

FLUSH_EVERY_S = 5.0

AccessKind = Literal["reads", "creates", "patches", "deletes"]
ACCESS_KINDS: tuple[AccessKind, ...] = ("reads", "creates", "patches", "deletes")

_COUNTED = ", ".join(f":{kind}" for kind in ACCESS_KINDS)
_SUMS = ", ".join(f"{kind} = access_counts.{kind} + excluded.{kind}" for kind in ACCESS_KINDS)
_ADD = text(
    f"INSERT INTO access_counts (user_id, day, developer_id, {', '.join(ACCESS_KINDS)}) "  # noqa: S608 - our own names
    # selected from the users, so that nothing is added for one who was erased meanwhile
    f"SELECT id, :day, :developer_id, {_COUNTED} FROM users WHERE id = :user_id "
    f"ON CONFLICT (user_id, day, developer_id) DO UPDATE SET {_SUMS}"
)


class DayOfAccess(Struct, frozen=True):
    """Memories that one developer has read and changed on one day (UTC)."""

    day: str
    developer_id: str
    developer_name: str
    reads: int
    creates: int
    patches: int
    deletes: int


class ActivityLog(Records):
    """Counts by user, day and developer."""

    def __init__(self, engine: Engine, *, now: Clock) -> None:
        super().__init__(engine, now=now)
        self._counts: dict[tuple[str, int, str], dict[AccessKind, int]] = {}
        """Counts that are not stored yet, by user, ordinal of the day (UTC) and developer."""
        self._lock = Lock()
        """Guards the counts; held only briefly, because every request waits for it."""
        self._flush_lock = Lock()
        """Held while counts are stored, so that two threads never store at once."""
        self._closing = Event()
        self._thread: Thread | None = None

    def count(self, user_id: str, developer_id: str, action: AccessKind, n: int = 1) -> None:
        """Count memories that a developer has read or changed."""
        if not n:
            return
        key = (user_id, self._now().toordinal(), developer_id)
        with self._lock:
            counted = self._counts.get(key)
            if counted is None:
                counted = self._counts[key] = dict.fromkeys(ACCESS_KINDS, 0)
            counted[action] += n
            if self._thread is None:
                self._thread = Thread(target=self._flush_at_times, name="memframe-activity", daemon=True)
                self._thread.start()

    def flush(self) -> None:
        """Add what was counted to the database; on an error it stays counted."""
        with self._flush_lock:
            with self._lock:
                counts, self._counts = self._counts, {}
            if not counts:
                return
            rows = [
                {
                    "user_id": user_id,
                    "day": date.fromordinal(day).isoformat(),
                    "developer_id": developer_id,
                    **counted,
                }
                for (user_id, day, developer_id), counted in sorted(counts.items())
            ]
            try:
                with writing(self._engine) as connection:
                    connection.execute(_ADD, rows)
            except BaseException:  # Ctrl-C as well: what is not stored is counted again
                with self._lock:
                    for key, counted in counts.items():
                        since = self._counts.get(key, {})
                        self._counts[key] = {name: n + since.get(name, 0) for name, n in counted.items()}
                raise

    def of_user(self, user_id: str, *, offset: int, limit: int) -> tuple[list[DayOfAccess], bool]:
        """Return a page of what developers did with a user's memories, latest first; True if more follow."""
        self.flush()
        shown = [access_counts.c[name] for name in ("day", "developer_id", *ACCESS_KINDS)]
        query = (
            select(*shown, developers.c.name.label("developer_name"))
            .join(developers, developers.c.id == access_counts.c.developer_id)
            .where(access_counts.c.user_id == user_id)
            .order_by(access_counts.c.day.desc(), access_counts.c.developer_id)
            .offset(offset)
            .limit(limit + 1)
        )
        found = self._all(DayOfAccess, query)
        return found[:limit], len(found) > limit

    def close(self) -> None:
        """End the thread, and add what is left to the database."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()

    def _flush_at_times(self) -> None:
        while True:
            is_last = self._closing.wait(FLUSH_EVERY_S)
            with suppress(DBAPIError):  # the database is unreachable, which the calls to the API log
                self.flush()
            if is_last:
                return
