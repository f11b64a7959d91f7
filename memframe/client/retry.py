"""Repeats of reads: which refusals are asked again, how often, and after what wait.

How fast a service is asked: how many requests at a time, when the next one may leave, and when to give up.

On a 429 the number of requests in flight is halved, and with every success it grows by a part of one, until
all workers are busy again. Waiting is as the service asks, else longer each time, with full jitter.

Repeats are paid from a budget, which only success fills again: a service that is down costs some 35 repeats
in all, not four a row.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Protocol, TypeVar

from urllib3 import HTTPHeaderDict, HTTPResponse
from urllib3.exceptions import InvalidHeader
from urllib3.util import Retry

MAX_RETRY_AFTER_S = 300


class ReadRetry(Retry):
    """urllib3's policy, but garbage in Retry-After counts as nothing said instead of ending the read."""

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        """Whether it is for us: urllib3 would also repeat what asks for it and is not on our list."""
        return status_code in self.status_forcelist and super().is_retry(method, status_code, has_retry_after)

    def waited(self, headers: HTTPHeaderDict) -> ReadRetry:
        """The policy for what is left to try after a refusal, whose wait is over."""
        refusal = HTTPResponse(headers=headers)
        left = self.increment("GET", response=refusal)
        left.sleep(refusal)
        return left

    def parse_retry_after(self, retry_after: str) -> float:
        """Seconds to wait, from 0 to ``retry_after_max``."""
        return retry_after_s({"Retry-After": retry_after}) or 0


def read_retry() -> ReadRetry:
    """The policy for refusals: at most 5 repeats of a GET, from 0.3 s doubling to 20 s, or as Retry-After says."""
    return ReadRetry(
        total=5,
        connect=0,
        read=0,
        other=0,
        allowed_methods={"GET"},
        status_forcelist={429, 502, 503, 504},
        backoff_factor=0.3,
        backoff_max=20,
        backoff_jitter=0.2,
        retry_after_max=MAX_RETRY_AFTER_S,
        redirect=False,
        raise_on_status=False,
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long an answer asks to be left alone, from 0 to `MAX_RETRY_AFTER_S`; None where it says nothing.

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
COST_OF_TROUBLE = 14.0
COST_OF_THROTTLING = 5.0
GAIN = 1.0
"""What the success of a first attempt brings; that of a later one gives back what its repeats took."""

TROUBLE_S = 0.2, 5.0
THROTTLING_S = 1.0, 20.0
"""The first wait that a service does not ask for itself, and the longest."""

TOO_MANY = 429


class Pace:
    """The pace of one run; for one thread at a time.

    Parameters
    ----------
    workers : int
        The most requests in flight.
    clock, sleep, chance : callable
        Seconds that only grow; waits so many of them; a number from 0 to 1.

    Examples
    --------
    >>> pace = Pace(8, clock=lambda: 0.0)
    >>> pace.throttled(wait_s=2)
    True
    >>> pace.limit, pace.hold_s
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
        self._free_at = clock()
        self._budget = BUDGET
        self._n_failures = 0

    @property
    def limit(self) -> int:
        """How many requests may be in flight."""
        return int(self._limit)

    @property
    def hold_s(self) -> float:
        """Seconds until the next request may leave."""
        return max(0.0, self._free_at - self._clock())

    def wait(self) -> None:
        """Sleep until the next request may leave."""
        if hold_s := self.hold_s:
            self.sleep(hold_s)
            self._free_at = self._clock()  # whatever a clock makes of fractions

    def throttled(self, wait_s: float | None) -> bool:
        """Slow down; whether the budget has a repeat left."""
        if not self.hold_s:  # those in flight at the same time say the same thing
            self._limit = max(1.0, self._limit / 2)
        return self._trouble(wait_s, THROTTLING_S, COST_OF_THROTTLING)

    def failed(self, wait_s: float | None) -> bool:
        """Leave the service alone for a moment; whether the budget has a repeat left."""
        return self._trouble(wait_s, TROUBLE_S, COST_OF_TROUBLE)

    def succeeded(self, n_throttled: int = 0, n_failed: int = 0) -> None:
        """A request is through, after so many repeats."""
        self._n_failures = 0
        self._limit = min(float(self._workers), self._limit + 1 / self._limit)
        paid = n_throttled * COST_OF_THROTTLING + n_failed * COST_OF_TROUBLE
        self._budget = min(BUDGET, self._budget + (paid or GAIN))

    def _trouble(self, wait_s: float | None, bounds_s: tuple[float, float], cost: float) -> bool:
        if wait_s is None:
            first_s, longest_s = bounds_s
            wait_s = self._chance() * min(longest_s, first_s * 2**self._n_failures)
        self._n_failures = min(self._n_failures + 1, 10)
        self._free_at = max(self._free_at, self._clock() + wait_s)
        if self._budget < cost:
            return False
        self._budget -= cost
        return True


class Answered(Protocol):
    """As much of an answer as pacing looks at."""

    @property
    def status(self) -> int: ...


A = TypeVar("A", bound=Answered)


class Gate:
    """Lets the threads of one run ask one service, as many at a time as its pace allows.

    Parameters
    ----------
    pace : Pace
        Which nobody else uses.
    """

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._changed = threading.Condition()
        self._n_inside = 0

    def ask(self, send: Callable[[], A], wait_s: Callable[[A], float | None]) -> A:
        """The answer to a request, which is sent again while it is 429 and the budget lasts.

        Parameters
        ----------
        send : callable
            Sends the request once.
        wait_s : callable
            How long an answer asks to be left alone; None where it does not say.
        """
        for n_throttled in count():
            with self._inside():
                answer = send()
            with self._changed:
                if answer.status != TOO_MANY:
                    self._pace.succeeded(n_throttled)
                elif self._pace.throttled(wait_s(answer)):
                    continue
                self._changed.notify_all()
                return answer
        raise AssertionError("counting has an end")

    @contextmanager
    def _inside(self) -> Iterator[None]:
        with self._changed:
            while self._n_inside >= self._pace.limit:
                self._changed.wait()
            self._n_inside += 1
        try:
            while hold_s := self._pace.hold_s:  # which others may have made longer meanwhile
                self._pace.sleep(hold_s)
            yield
        finally:
            with self._changed:
                self._n_inside -= 1
                self._changed.notify()
