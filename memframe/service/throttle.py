"""Limit how often, and how many at once, callers may do something.

Sign-ins and token calls are counted in the database, for all workers together, under keyed hashes of e-mail and
network address. Counts use the wall clock, because workers on several machines share them. If a clock was set back, a
count from the future starts again, so that it locks nobody out.

Searches, downloads and password checks are limited per process, because they use its threads and memory.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from ipaddress import IPv6Network
from typing import Any, NamedTuple, TypeVar

from litestar import Request
from msgspec import Struct
from sqlalchemy import Connection, Engine, delete, select, text, update

from memframe.errors import RateLimitError
from memframe.service.clock import Clock, format_instant
from memframe.service.store.engine import fetch_all, writing
from memframe.service.store.schema import attempts

MAX_ADDRESS_CHARS = 64

SEARCH_THREADS = 2
SEARCHES_PER_DEVELOPER = 8
"""Most searches of one developer that run or wait at a time."""

DOWNLOAD_THREADS = 2
DOWNLOADS_PER_USER = 2
"""Most downloads of one person at a time."""

PASSWORD_THREADS = 2
PASSWORD_CHECKS = 52
"""Most password checks that run or wait at a time; argon2id takes much memory and time by design."""

MAX_WAIT = timedelta(minutes=15)
KEPT = timedelta(days=1)
"""Time for which a count without new attempts is kept."""

CLOCK_LEEWAY = timedelta(minutes=1)
"""Largest difference between the clocks of workers."""

Result = TypeVar("Result")


class Limit(NamedTuple):
    """A limit of attempts within a window.

    Attributes
    ----------
    n : int
        Attempts that pass.
    window : timedelta
        Time from the first attempt after which counting starts again.
    wait : timedelta, optional
        Pause after the last attempt once the limit is reached. It doubles with each further attempt, up to
        `MAX_WAIT`. Without it, further attempts wait for the end of the window.
    """

    n: int
    window: timedelta = timedelta(minutes=1)
    wait: timedelta | None = None


PER_ADDRESS_AND_EMAIL = Limit(20, timedelta(hours=1), wait=timedelta(minutes=1))
PER_ADDRESS = Limit(100, timedelta(hours=1), wait=timedelta(minutes=1))
PER_EMAIL = Limit(1000, timedelta(hours=1), wait=timedelta(minutes=1))
"""Limit for all addresses. Browsers in which the person has signed in are exempt, so that strangers lock nobody out."""

ACCOUNTS_PER_ADDRESS = 10
"""Ratio of the limits of token calls: from one address for all accounts, and for one account."""


class AttemptCount(Struct, frozen=True):
    """Attempts under one key."""

    key_hash: str
    n: int
    began_at: datetime
    last_at: datetime

    def is_over(self, limit: Limit, now: datetime) -> bool:
        """Return True if counting starts again: after the window and the wait, or after the clock was set back."""
        return now < self.last_at - CLOCK_LEEWAY or (
            now >= self.began_at + limit.window and not self._wait_s(limit, now)
        )

    def seconds_to_wait(self, limit: Limit, now: datetime) -> int:
        """Return the seconds until another attempt is allowed, 0 if it is allowed now.

        >>> noon = datetime(2026, 3, 1, 12)
        >>> AttemptCount("", 60, noon, noon).seconds_to_wait(Limit(60), noon + timedelta(seconds=20))
        40
        >>> AttemptCount("", 22, noon, noon).seconds_to_wait(PER_ADDRESS_AND_EMAIL, noon)
        240
        """
        return 0 if self.is_over(limit, now) else self._wait_s(limit, now)

    def _wait_s(self, limit: Limit, now: datetime) -> int:
        if self.n < limit.n:
            return 0
        if limit.wait is None:
            until = self.began_at + limit.window
        else:
            doubled = limit.wait * 2 ** min(self.n - limit.n, 16)
            until = self.last_at + min(doubled, MAX_WAIT)
        return max(0, math.ceil((until - now).total_seconds()))


Keys = dict[tuple[str, ...], Limit]
"""Counts to which an attempt is added, by kind and name, each with its limit."""


_ADD = text(
    "INSERT INTO attempts (key_hash, n, began_at, last_at) VALUES (:key, 0, :now, :now) ON CONFLICT DO NOTHING"
)


class Throttle:
    """Counts of attempts in the database, under keyed digests."""

    def __init__(self, engine: Engine, digest: Callable[[bytes], str], *, now: Clock) -> None:
        self._engine = engine
        self._digest = digest
        self._now = now

    def count(self, keys: Keys) -> None:
        """Count an attempt under each key, or raise `TooManyCallsError` and count it under none.

        Counting before the attempt, in one transaction, enforces the limit also for concurrent attempts.
        """
        limits = self._hash(keys)
        with self._engine.connect() as connection:  # a refusal needs no write lock
            self._check(_read(connection, limits), limits)
        with writing(self._engine) as connection:
            now = self._now()
            # rows that another process is deleting are skipped, because the two could deadlock
            old = select(attempts.c.key_hash).where(attempts.c.last_at <= now - KEPT)
            unlocked = old.with_for_update(skip_locked=True)
            connection.execute(delete(attempts).where(attempts.c.key_hash.in_(unlocked)))
            # missing rows are added first, so that there are rows to lock
            connection.execute(_ADD, [{"key": key, "now": format_instant(now)} for key in limits])
            counts = _read(connection, limits, lock=True)
            self._check(counts, limits)
            for count in counts:
                over = count.is_over(limits[count.key_hash], now)
                values = {"n": 1, "began_at": now} if over else {"n": count.n + 1}
                this = attempts.c.key_hash == count.key_hash
                connection.execute(update(attempts).where(this).values(**values, last_at=now))

    def forgive(self, reset: Keys, take_back: Keys) -> None:
        """Drop the counts of some keys after a success, and take the attempt back from those of others."""
        with writing(self._engine) as connection:
            connection.execute(delete(attempts).where(attempts.c.key_hash.in_(self._hash(reset))))
            others = attempts.c.key_hash.in_(self._hash(take_back))
            connection.execute(update(attempts).where(others, attempts.c.n > 0).values(n=attempts.c.n - 1))

    def _check(self, counts: list[AttemptCount], limits: dict[str, Limit]) -> None:
        now = self._now()
        wait_s = max([count.seconds_to_wait(limits[count.key_hash], now) for count in counts], default=0)
        if wait_s:
            raise TooManyCallsError(wait_s)

    def _hash(self, keys: Keys) -> dict[str, Limit]:
        """Return the limits by keyed hash, sorted: transactions lock the rows in this order."""
        encoded = {"\0".join(key).encode("utf-8", "surrogatepass"): limit for key, limit in keys.items()}
        return dict(sorted((self._digest(key), limit) for key, limit in encoded.items()))


def _read(connection: Connection, key_hashes: Iterable[str], *, lock: bool = False) -> list[AttemptCount]:
    query = select(attempts).where(attempts.c.key_hash.in_(list(key_hashes))).order_by(attempts.c.key_hash)
    return fetch_all(connection, AttemptCount, query.with_for_update() if lock else query)


def address_of(request: Request[Any, Any, Any]) -> str:
    """Return the network address for which a request counts; for IPv6 the /64, which belongs to one site."""
    return group_address(request.client.host if request.client else "")


def group_address(host: str) -> str:
    """Return the address under which a host is counted, for IPv6 its /64.

    >>> group_address("2001:db8::7"), group_address("192.0.2.7")
    ('2001:db8::/64', '192.0.2.7')
    """
    host = host[:MAX_ADDRESS_CHARS]
    try:
        return str(IPv6Network((host.partition("%")[0], 64), strict=False))
    except ValueError:  # IPv4, or whatever a proxy has passed on
        return host


class BoundedPool:
    """Run long tasks in separate threads, and refuse callers that have too many running or waiting.

    In the shared threads, some dozens of searches would delay sign-ins, revocations and the readiness check.
    """

    def __init__(
        self, name: str, *, n_threads: int, per_caller: int, refusal: str = "too many attempts"
    ) -> None:
        self._threads = ThreadPoolExecutor(n_threads, name)
        self._per_caller, self._refusal = per_caller, refusal
        self._running: Counter[str] = Counter()

    @contextmanager
    def admit(self, caller: str) -> Iterator[None]:
        """Count a task of a caller while the block runs; `TooManyCallsError` if it is one too many."""
        if self._running[caller] >= self._per_caller:
            raise TooManyCallsError(1, self._refusal)
        self._running[caller] += 1
        try:
            yield
        finally:
            self._running -= Counter([caller])  # -= also drops callers at zero

    async def run(self, caller: str, do: Callable[[], Result]) -> Result:
        """Return the result of `do`; `TooManyCallsError` if too many tasks of the caller are running or waiting."""
        with self.admit(caller):
            return await asyncio.get_running_loop().run_in_executor(self._threads, do)

    async def iterate(self, pieces: Iterator[Result]) -> AsyncIterator[Result]:
        """Yield the items of an iterator, each made in a thread when it is needed."""
        make = partial(next, pieces, None)
        while (piece := await asyncio.get_running_loop().run_in_executor(self._threads, make)) is not None:
            yield piece

    def close(self) -> None:
        """Wait for running tasks, and drop waiting ones."""
        self._threads.shutdown(cancel_futures=True)


class TooManyCallsError(RateLimitError):
    """429 with the seconds for ``Retry-After``."""

    def __init__(self, retry_after_s: int, refusal: str = "too many attempts") -> None:
        message = f"{refusal}; try again in {retry_after_s} second{'s' if retry_after_s > 1 else ''}"
        super().__init__(message, status=429, code="too_many_requests")
        self.retry_after_s = retry_after_s
