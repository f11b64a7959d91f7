"""How often a caller may do something: a sliding window in memory, one a process."""

from __future__ import annotations

import math
from collections import deque
from datetime import datetime, timedelta
from threading import Lock

from memframe.errors import RateLimitError
from memframe.service.times import Clock


class Throttle:
    """At most ``limit`` calls a key within any ``window_s`` seconds.

    Parameters
    ----------
    limit : int
        Calls that pass within the window.
    window_s : float, default 60
    now : Clock
        What tells the time.

    Examples
    --------
    >>> from datetime import UTC
    >>> throttle = Throttle(2, now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    >>> [throttle.seconds_to_wait("10.0.0.7") for _ in range(3)]
    [0, 0, 60]
    """

    def __init__(self, limit: int, window_s: float = 60, *, now: Clock) -> None:
        self._limit = limit
        self._window = timedelta(seconds=window_s)
        self._now = now
        self._calls: dict[object, deque[datetime]] = {}
        self._lock = Lock()
        self._next_sweep = now() + self._window

    def seconds_to_wait(self, key: object) -> int:
        """0 where the call may pass, and is counted; else after how many seconds one may."""
        now = self._now()
        with self._lock:
            self._sweep(now)
            calls = self._calls.setdefault(key, deque())
            self._drop_old(calls, now)
            if len(calls) < self._limit:
                calls.append(now)
                return 0
            return max(1, math.ceil((calls[0] + self._window - now).total_seconds()))

    def check(self, key: object) -> None:
        """Count a call, or raise `RateLimitError` that says how long to wait."""
        seconds = self.seconds_to_wait(key)
        if seconds:
            raise TooManyCallsError(seconds)

    def _drop_old(self, calls: deque[datetime], now: datetime) -> None:
        while calls and calls[0] <= now - self._window:
            calls.popleft()

    def _sweep(self, now: datetime) -> None:
        """Forget callers who have been silent for a window, so that memory stays bounded."""
        if now < self._next_sweep:
            return
        self._next_sweep = now + self._window
        for calls in self._calls.values():
            self._drop_old(calls, now)
        self._calls = {key: calls for key, calls in self._calls.items() if calls}


class TooManyCallsError(RateLimitError):
    """429 that knows when to come again.

    Attributes
    ----------
    retry_after_s : int
        What goes into the header ``Retry-After``.
    """

    def __init__(self, retry_after_s: int) -> None:
        message = f"too many attempts; try again in {retry_after_s} seconds"
        super().__init__(message, status=429, code="too_many_requests")
        self.retry_after_s = retry_after_s
