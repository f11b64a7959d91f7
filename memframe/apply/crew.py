"""Who does the waiting: one worker in this thread, or several in threads of their own.

Threads only exchange; they decide nothing and know no journal. They are daemons, as a program that is told to
end twice must not wait for a service that is silent.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Generic, NamedTuple, Self, TypeVar

T = TypeVar("T")


class Finished(NamedTuple, Generic[T]):
    """A task that is through: what it was about, and what came of it."""

    n: int
    result: T


class Crew(Generic[T]):
    """Does tasks: with one worker at once, with more of them at the same time.

    Parameters
    ----------
    workers : int

    Examples
    --------
    >>> with Crew(1) as crew:
    ...     crew.start(7, lambda: "seven")
    ...     crew.finished(timeout_s=1)
    [Finished(n=7, result='seven')]
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._threads: list[threading.Thread] = []
        self._tasks: SimpleQueue[tuple[int, Callable[[], T]] | None] = SimpleQueue()
        self._results: SimpleQueue[Finished[T | BaseException]] = SimpleQueue()
        self.n_busy = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        for _ in self._threads:
            self._tasks.put(None)

    def start(self, n: int, task: Callable[[], T]) -> None:
        """Begin a task; with one worker it is through when this returns."""
        if self._workers == 1:
            self._results.put(Finished(n, task()))
            self.n_busy += 1
            return
        self.n_busy += 1
        if len(self._threads) < min(self._workers, self.n_busy):
            thread = threading.Thread(target=self._work, name="memframe-write", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._tasks.put((n, task))

    def finished(self, timeout_s: float) -> list[Finished[T]]:
        """Tasks that are through: at least one where some are under way, unless the time is over before.

        What broke a task breaks this call.
        """
        found: list[Finished[T]] = []
        is_first = True
        while self.n_busy:
            try:
                n, result = self._results.get(block=is_first, timeout=timeout_s)
            except Empty:
                break
            self.n_busy -= 1
            is_first = False
            if isinstance(result, BaseException):
                raise result
            found.append(Finished(n, result))
        return found

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            n, do = task
            try:
                self._results.put(Finished(n, do()))
            except BaseException as broken:  # it is raised where the run is
                self._results.put(Finished(n, broken))
