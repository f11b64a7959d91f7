"""The queue of a run: the operations that wait to be sent, the times when their memories were read, and failures."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from memframe.apply.operations import OperationLog

MAX_ATTEMPTS = 4
"""Most failed requests for one operation in one run; throttled requests are not counted."""

FRESH_S = 30.0
"""Age in seconds from which a memory is read again before it is patched or deleted."""


class SendQueue:
    """The operations that wait to be sent, by number, with the last readings of their memories and their failures.

    ``read_at`` is the time when all memories of the plan were read; None if that is long ago.
    """

    def __init__(
        self, log: OperationLog, *, clock: Callable[[], float], read_at: float | None = None
    ) -> None:
        self._log, self._clock = log, clock
        self._waiting: deque[int] = deque()
        self._read_at = {} if read_at is None else dict.fromkeys((op.n for op in log), read_at)
        self._n_failures: Counter[int] = Counter()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def fill(self, numbers: Iterable[int]) -> None:
        """Replace the waiting operations."""
        self._waiting = deque(numbers)

    def clear(self) -> None:
        """Remove all waiting operations; the journal still has them as planned."""
        self._waiting.clear()

    def take(self, n_most: int) -> list[int]:
        """Take operations from the front."""
        return [self._waiting.popleft() for _ in range(min(n_most, len(self._waiting)))]

    def put_back(self, numbers: Sequence[int]) -> None:
        """Put operations to the front again, in their order."""
        self._waiting.extendleft(reversed(numbers))

    # -- memories as they are known

    def is_fresh(self, n: int) -> bool:
        """Return True for a create, and if the memory was read less than `FRESH_S` ago and not doubted since."""
        read_at = self._read_at.get(n)
        return self._log[n].action == "create" or (read_at is not None and self._clock() - read_at < FRESH_S)

    def is_front_fresh(self, n_front: int) -> bool:
        """Return True if the first operations are all fresh."""
        return all(map(self.is_fresh, islice(self._waiting, n_front)))

    def note_read(self, n: int) -> None:
        """Note that the memory of an operation was read now, and is as planned."""
        self._read_at[n] = self._clock()

    def note_doubt(self, n: int) -> None:
        """Note that the memory of an operation may have changed."""
        self._read_at.pop(n, None)

    # -- failures

    def may_try(self, n: int) -> bool:
        """Return False once an operation has failed too often."""
        return self._n_failures[n] < MAX_ATTEMPTS

    def note_failure(self, n: int) -> None:
        """Note a request that failed."""
        self._n_failures[n] += 1

    def note_success(self, n: int) -> None:
        """Note that an operation was written."""
        self._n_failures.pop(n, None)
