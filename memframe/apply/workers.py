"""Threads of a run, which only send requests and return responses, and the interrupts of the thread that decides."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class WorkerPool(Generic[T]):
    """Threads that run tasks; with one worker a task runs in the calling thread.

    Not a `ThreadPoolExecutor`, because its threads are joined when the interpreter ends, and after a second Ctrl-C a
    program must not wait for a silent service. These threads are daemons.

    Examples
    --------
    >>> with WorkerPool(1) as pool:
    ...     pool.submit(7, lambda: "seven")
    ...     pool.completed(timeout_s=1)
    [(7, 'seven')]
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._threads: list[threading.Thread] = []
        self._tasks: SimpleQueue[tuple[int, Callable[[], T]] | None] = SimpleQueue()
        self._results: SimpleQueue[tuple[int, Callable[[], T]]] = SimpleQueue()
        self.n_busy = 0
        """Number of tasks that were submitted and whose results were not taken."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.recall()
        for _ in self._threads:
            self._tasks.put(None)

    def submit(self, n: int, task: Callable[[], T]) -> None:
        """Begin a task; with one worker it is complete when this returns."""
        if self._workers == 1:
            result = task()
            self._results.put((n, lambda: result))
        else:
            self._tasks.put((n, task))
        self.n_busy += 1
        if len(self._threads) < min(self._workers, self.n_busy) and self._workers > 1:
            thread = threading.Thread(target=self._work, name="memframe-write", daemon=True)
            self._threads.append(thread)
            thread.start()

    def completed(self, timeout_s: float) -> list[tuple[int, T]]:
        """Return results with their operations; if tasks are running, wait for at least one, up to ``timeout_s``.

        An exception of a task is raised here.
        """
        found: list[tuple[int, T]] = []
        while self.n_busy:
            try:
                n, result_of = self._results.get(block=not found, timeout=timeout_s)
            except Empty:
                break
            self.n_busy -= 1
            found.append((n, result_of()))
        return found

    def recall(self) -> list[int]:
        """Cancel the tasks that no thread has begun, and return their operations in the order of submission."""
        recalled = []
        with suppress(Empty):
            while item := self._tasks.get_nowait():
                recalled.append(item[0])
        self.n_busy -= len(recalled)
        return recalled

    def _work(self) -> None:
        while (item := self._tasks.get()) is not None:
            n, task = item
            future: Future[T] = Future()
            try:
                future.set_result(task())
            except BaseException as broken:  # `completed` raises it in the thread of the run
                future.set_exception(broken)
            self._results.put((n, future.result))
            del future, task, item  # so that a waiting thread holds no body of a request


class Interrupts:
    """Ctrl-C, deferred until nothing is lost by it; a second Ctrl-C interrupts at once.

    Python interrupts the main thread anywhere, also between receiving an answer and noting it. The outcome of that
    request would then be unknown until the run is resumed.

    Ctrl-C is deferred only in the main thread, because no other thread is interrupted, and only if the program has no
    handler of its own. With ``defers=False`` it is not deferred, because nothing could be lost.

    Examples
    --------
    >>> interrupts = Interrupts()
    >>> try:
    ...     with interrupts.defer():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("noted")
    ...         interrupts.raise_if_any()
    ... except KeyboardInterrupt:
    ...     print("stopped")
    noted
    stopped
    """

    def __init__(self, *, defers: bool = True) -> None:
        self._defers = defers
        self._n_asked = 0
        self._is_allowed = False

    @contextmanager
    def defer(self) -> Iterator[None]:
        """Defer Ctrl-C within the block, at most to its end."""
        is_main = threading.current_thread() is threading.main_thread()
        if not (self._defers and is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler):
            yield
            return
        before = signal.signal(signal.SIGINT, self._note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
        self.raise_if_any()

    @contextmanager
    def allow(self) -> Iterator[None]:
        """Let Ctrl-C, also one that was deferred before, interrupt the block at once, because it may take long."""
        self._is_allowed = True
        try:
            self.raise_if_any()
            yield
        finally:
            self._is_allowed = False

    def raise_if_any(self) -> None:
        """Raise KeyboardInterrupt if one was deferred."""
        if self._n_asked:
            raise KeyboardInterrupt

    def _note(self, *_: object) -> None:
        self._n_asked += 1
        if self._is_allowed or self._n_asked > 1:
            raise KeyboardInterrupt
