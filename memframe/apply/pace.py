"""How fast a run goes: how many requests at a time, when the next one may leave, and when to give up.

On a 429 the number of requests in flight is halved, and with every success it grows by a part of one, until
the workers are all busy again. Waiting is as the service asks, else longer each time, with full jitter.

Repeats are paid from a budget, which only success fills again: a service that is down costs some 35 repeats
in all, not four a row.
"""

from __future__ import annotations

from memframe.apply.surroundings import Surroundings

BUDGET = 500.0
COST_OF_TROUBLE = 14.0
COST_OF_THROTTLING = 5.0
GAIN = 1.0
"""What the success of a first attempt brings; that of a later one gives back what its repeats took."""

TROUBLE_S = 0.2, 5.0
THROTTLING_S = 1.0, 20.0
"""The first wait that a service does not ask for itself, and the longest."""


class Pace:
    """The pace of one run.

    Parameters
    ----------
    workers : int
        The most requests in flight.
    surroundings : Surroundings

    Examples
    --------
    >>> pace = Pace(8, Surroundings(clock=lambda: 0.0))
    >>> pace.throttled(wait_s=2)
    True
    >>> pace.limit, pace.hold_s
    (4, 2.0)
    """

    def __init__(self, workers: int, surroundings: Surroundings) -> None:
        self._workers = workers
        self._limit = float(workers)
        self._surroundings = surroundings
        self._free_at = surroundings.clock()
        self._budget = BUDGET
        self._n_failures = 0

    @property
    def limit(self) -> int:
        """How many requests may be in flight."""
        return int(self._limit)

    @property
    def hold_s(self) -> float:
        """Seconds until the next request may leave."""
        return max(0.0, self._free_at - self._surroundings.clock())

    def wait(self) -> None:
        """Sleep until the next request may leave."""
        if self.hold_s:
            self._surroundings.sleep(self.hold_s)
            self._free_at = self._surroundings.clock()  # whatever a clock makes of fractions

    def throttled(self, wait_s: float | None) -> bool:
        """Slow down; whether the budget has a repeat left."""
        if not self.hold_s:  # those in flight at the same time say the same thing
            self._limit = max(1.0, self._limit / 2)
        return self._trouble(wait_s, THROTTLING_S, COST_OF_THROTTLING)

    def failed(self, wait_s: float | None) -> bool:
        """Leave the service alone for a moment; whether the budget has a repeat left."""
        return self._trouble(wait_s, TROUBLE_S, COST_OF_TROUBLE)

    def succeeded(self, n_throttled: int, n_failed: int) -> None:
        """A write is through, after so many repeats."""
        self._n_failures = 0
        self._limit = min(float(self._workers), self._limit + 1 / self._limit)
        paid = n_throttled * COST_OF_THROTTLING + n_failed * COST_OF_TROUBLE
        self._budget = min(BUDGET, self._budget + (paid or GAIN))

    def _trouble(self, wait_s: float | None, bounds_s: tuple[float, float], cost: float) -> bool:
        if wait_s is None:
            first_s, longest_s = bounds_s
            wait_s = self._surroundings.chance() * min(longest_s, first_s * 2**self._n_failures)
        self._n_failures = min(self._n_failures + 1, 10)
        self._free_at = max(self._free_at, self._surroundings.clock() + wait_s)
        if self._budget < cost:
            return False
        self._budget -= cost
        return True
