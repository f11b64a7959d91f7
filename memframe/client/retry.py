"""Retries of reads, and the rate limiter of a run of writes or of a fleet.

On a 429 the limiter halves the number of requests in flight; every success raises it by a fraction, up to the number
of workers. After a 429 or a failure it waits as long as the service asks, else longer each time, with full jitter.
Retries are paid from a budget that a success refills: a service that is down costs about 35 retries in a run instead of
four for each row, and a slow one does not stop a run.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, TypeVar

from urllib3.exceptions import InvalidHeader
from urllib3.util import Retry

logger = logging.getLogger("memframe")
"""Logger of the whole package: retries, slow-downs and results of reconciliations, but never an id or a text."""

MAX_RETRY_AFTER_S = 300
"""Longest wait that a Retry-After header can cause; a longer one is cut."""

TOO_MANY = 429
"""HTTP status "Too Many Requests": the request may be sent again later."""

SERVER_ERROR = 500
"""Lowest HTTP status of a failure of the service rather than of the request."""


def read_retry() -> Retry:
    """Make the policy for refused reads: at most 5 retries.

    Waits as Retry-After says, else 0.3 s, doubled each time up to 20 s.
    """
    return Retry(
        total=5,
        status_forcelist={TOO_MANY, 502, 503, 504},
        backoff_factor=0.3,
        backoff_max=20,
        backoff_jitter=0.2,
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a Retry-After header, from 0 to `MAX_RETRY_AFTER_S`; None without a valid one.

    >>> [retry_after_s({"Retry-After": text}) for text in ("7", "86400", "soon")]
    [7.0, 300.0, None]
    """
    text = headers.get("Retry-After")
    try:
        return None if text is None else float(_WAITING.parse_retry_after(text))
    except (InvalidHeader, ValueError, OverflowError):
        return None


_WAITING = Retry(retry_after_max=MAX_RETRY_AFTER_S)


BUDGET = 500.0
"""Points for retries; a success restores them all."""

COST_OF_FAILURE = 14.0
"""Points that a retry after a failure costs: the budget pays for 35 without a success between them."""

COST_OF_THROTTLING = 5.0
"""Points that a retry after a 429 costs: the budget pays for 100 without a success between them."""

FAILURE_S = 0.2, 5.0
"""First and longest wait after a failure, if the service asks for none."""

THROTTLING_S = 1.0, 20.0
"""First and longest wait after a 429, if the service asks for none."""


class RateLimiter:
    """Rate limit of one run: requests in flight, waits, and the budget of retries. Not thread-safe.

    >>> limiter = RateLimiter(8, clock=lambda: 0.0)
    >>> limiter.slow_down(wait_s=2)
    True
    >>> limiter.limit, limiter.delay_s
    (4, 2.0)
    """

    def __init__(
        self,
        workers: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._workers = workers
        self._limit = float(workers)
        self._clock, self.sleep, self._chance = clock, sleep, chance
        self._next_at = clock()
        self._budget = BUDGET
        self._n_failures = 0

    @property
    def limit(self) -> int:
        """Most requests in flight."""
        return int(self._limit)

    @property
    def is_at_full_speed(self) -> bool:
        """True if all workers may have a request in flight."""
        return self.limit == self._workers

    @property
    def delay_s(self) -> float:
        """Seconds until the next request may leave."""
        return max(0.0, self._next_at - self._clock())

    def wait(self) -> None:
        """Sleep until the next request may leave."""
        if delay_s := self.delay_s:
            self.sleep(delay_s)
            self._next_at = self._clock()  # a sleep that ends a little early is long enough

    def slow_down(self, wait_s: float | None) -> bool:
        """Slow down after a 429; return False once the budget is spent."""
        if not self.delay_s:  # several 429s of requests sent together count once
            self._limit = max(1.0, self._limit / 2)
        return self._delay(wait_s, THROTTLING_S, COST_OF_THROTTLING, "429")

    def back_off(self, wait_s: float | None) -> bool:
        """Wait before the next request; return False once the budget is spent."""
        return self._delay(wait_s, FAILURE_S, COST_OF_FAILURE, "failed")

    def speed_up(self) -> None:
        """Speed up after a success."""
        self._n_failures = 0
        self._limit = min(float(self._workers), self._limit + 1 / self._limit)
        self._budget = BUDGET

    def _delay(self, wait_s: float | None, bounds_s: tuple[float, float], cost: float, why: str) -> bool:
        if wait_s is None:
            first_s, longest_s = bounds_s
            wait_s = self._chance() * min(longest_s, first_s * 2**self._n_failures)
        self._n_failures = min(self._n_failures + 1, 10)
        self._next_at = max(self._next_at, self._clock() + wait_s)
        logger.info(
            "Slowing down (%s): at most %d requests in flight, the next in %.1f s.", why, self.limit, wait_s
        )
        if self._budget < cost:
            return False
        self._budget -= cost
        return True


class HasStatus(Protocol):
    """A response, as far as the rate limiter reads it."""

    @property
    def status(self) -> int: ...


R = TypeVar("R", bound=HasStatus)


class SharedRateLimiter:
    """Thread-safe access to a rate limiter for the threads of one run; nothing else may use that limiter."""

    def __init__(self, limiter: RateLimiter) -> None:
        self._limiter = limiter
        self._changed = threading.Condition()
        self._n_inside = 0

    def call(self, send: Callable[[], R], wait_s: Callable[[R], float | None]) -> R:
        """Call `send` until its response is not a 429 or the budget is spent, and return the response.

        After a failure of the service (5xx) the next requests of all threads wait; the caller decides whether to repeat
        the failed one. ``wait_s`` returns the seconds that a response asks to wait, or None.
        """
        while True:
            with self._slot():
                response = send()
            with self._changed:
                if response.status == TOO_MANY:
                    if self._limiter.slow_down(wait_s(response)):
                        continue
                elif response.status >= SERVER_ERROR:
                    self._limiter.back_off(wait_s(response))
                else:
                    self._limiter.speed_up()
                self._changed.notify_all()
                return response

    @contextmanager
    def _slot(self) -> Iterator[None]:
        with self._changed:
            while self._n_inside >= self._limiter.limit:
                self._changed.wait()
            self._n_inside += 1
        try:
            while delay_s := self._limiter.delay_s:  # other threads may extend it meanwhile
                self._limiter.sleep(delay_s)
            yield
        finally:
            with self._changed:
                self._n_inside -= 1
                self._changed.notify()
