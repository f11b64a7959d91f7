"""How often, and how many at once, callers may do something: counted in memory, one count a process.

Time is counted by a clock that only goes forward: a correction of the machine's time neither locks anybody out nor
lets anybody in.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from ipaddress import IPv6Network
from threading import Lock
from typing import Any, TypeVar

from litestar import Request

from memframe.errors import RateLimitError
from memframe.service.times import Seconds

ACCOUNTS_AN_ADDRESS = 10
"""Behind one address there may be a few accounts, but not a crowd that tries keys."""

MAX_ADDRESS_CHARS = 64

SEARCH_THREADS = 2
SEARCHES_PER_DEVELOPER = 8
"""Searches of one developer that run or wait at the same moment."""

Result = TypeVar("Result")


class Throttle:
    """At most ``limit`` calls a key within any ``window_s`` seconds.

    Parameters
    ----------
    limit : int
        Calls that pass within the window.
    window_s : float, default 60
    seconds : Seconds, optional
        The clock.

    Examples
    --------
    >>> throttle = Throttle(2, seconds=lambda: 0)
    >>> [throttle.seconds_to_wait("10.0.0.7") for _ in range(3)]
    [0, 0, 60]
    """

    def __init__(self, limit: int, window_s: float = 60, *, seconds: Seconds = time.monotonic) -> None:
        self._limit = limit
        self._window_s = window_s
        self._seconds = seconds
        self._calls: dict[object, deque[float]] = {}
        self._lock = Lock()
        self._next_sweep = seconds() + window_s

    def seconds_to_wait(self, key: object, *, counts: bool = True) -> int:
        """0 where the call may pass, and is counted unless it is not to be; else after how many seconds."""
        now = self._seconds()
        with self._lock:
            self._sweep(now)
            calls = self._calls.setdefault(key, deque())
            self._drop_old(calls, now)
            if len(calls) < self._limit:
                if counts:
                    calls.append(now)
                return 0
            return max(1, math.ceil(calls[0] + self._window_s - now))

    def check(self, key: object, *, counts: bool = True) -> None:
        """Let a call pass, or raise `RateLimitError` that says how long to wait."""
        seconds = self.seconds_to_wait(key, counts=counts)
        if seconds:
            raise TooManyCallsError(seconds)

    def _drop_old(self, calls: deque[float], now: float) -> None:
        while calls and calls[0] <= now - self._window_s:
            calls.popleft()

    def _sweep(self, now: float) -> None:
        """Forget callers who have been silent for a window, so that memory stays bounded."""
        if now < self._next_sweep:
            return
        self._next_sweep = now + self._window_s
        for calls in self._calls.values():
            self._drop_old(calls, now)
        self._calls = {key: calls for key, calls in self._calls.items() if calls}


def address_of(request: Request[Any, Any, Any]) -> str:
    """The address that a request is counted for; of IPv6 the first half, as a site has all of the second."""
    host = request.client.host[:MAX_ADDRESS_CHARS] if request.client else ""
    try:
        return str(IPv6Network((host.partition("%")[0], 64), strict=False))
    except ValueError:  # of IPv4, or whatever a proxy has passed on
        return host


class TokenCalls:
    """How often tokens are given out: so often to one account at one address, and ten times that to an address.

    Parameters
    ----------
    per_minute : int
        Calls for one account from one address.
    seconds : Seconds, optional
    """

    def __init__(self, per_minute: int, *, seconds: Seconds = time.monotonic) -> None:
        self._of_account = Throttle(per_minute, seconds=seconds)
        self._of_address = Throttle(ACCOUNTS_AN_ADDRESS * per_minute, seconds=seconds)

    def seconds_to_wait(self, address: str, account: str) -> int:
        """0 where the call may pass; else after how many seconds one may."""
        return self._of_address.seconds_to_wait(address) or self._of_account.seconds_to_wait(
            (address, account)
        )


class Turnstile:
    """Lets few do something at the same moment, and few more wait for it; the next one is sent away.

    Parameters
    ----------
    at_once : int
    waiting : int
    """

    def __init__(self, at_once: int, waiting: int) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._room = at_once + waiting

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """A block for one at a time of those; `TooManyCallsError` where too many wait already."""
        if self._room == 0:
            raise TooManyCallsError(1)
        self._room -= 1
        try:
            async with self._free:
                yield
        finally:
            self._room += 1


class Searches:
    """Run searches in threads of their own, few at once for each developer.

    They take long: in the threads that sign people in, revoke and tell readiness, some dozens would keep all of
    that waiting.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(SEARCH_THREADS, "memframe-search")
        self._under_way: Counter[str] = Counter()

    async def run(self, developer_id: str, search: Callable[[], Result]) -> Result:
        """Return what a search finds; `TooManyCallsError` where the developer has too many under way."""
        if self._under_way[developer_id] >= SEARCHES_PER_DEVELOPER:
            raise TooManyCallsError(1)
        self._under_way[developer_id] += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, search)
        finally:
            self._under_way -= Counter([developer_id])  # which forgets those who have none

    def close(self) -> None:
        """Wait for the searches that run, and drop those that wait."""
        self._threads.shutdown(cancel_futures=True)


class TooManyCallsError(RateLimitError):
    """429 that knows when to come again.

    Attributes
    ----------
    retry_after_s : int
        What goes into the header ``Retry-After``.
    """

    def __init__(self, retry_after_s: int) -> None:
        message = f"too many attempts; try again in {retry_after_s} second{'s' if retry_after_s > 1 else ''}"
        super().__init__(message, status=429, code="too_many_requests")
        self.retry_after_s = retry_after_s
