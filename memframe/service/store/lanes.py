"""Threads with a line before each: what waits there is done together, as much of it as is waiting.

Nobody waits for company: what comes alone is done alone, and what comes meanwhile is done together.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, Protocol, TypeVar

MAX_BATCH = 64


class Waiting(Protocol):
    """Something to be done, and whoever waits for the outcome."""

    @property
    def answer(self) -> Future[Any]: ...


Item = TypeVar("Item", bound=Waiting)
Result = TypeVar("Result")


def settle(answer: Future[Result], find: Callable[[], Result]) -> None:
    """Answer with what is found, or with the error that came instead."""
    try:
        answer.set_result(find())
    except Exception as error:  # whatever it is, it is for whoever waits for this answer alone
        answer.set_exception(error)


class Lanes(Generic[Item]):
    """Some such threads; they start with the first item.

    Parameters
    ----------
    name : str
        Of the threads.
    work : callable
        Does some items, at most `MAX_BATCH`, and answers each of them; an error answers those that are left.
    n_lanes : int
    """

    def __init__(self, name: str, work: Callable[[list[Item]], None], *, n_lanes: int = 1) -> None:
        self._name, self._work, self._n_lanes = name, work, n_lanes
        self._lanes: list[_Lane[Item]] = []
        self._lock = Lock()

    def put(self, item: Item, *, place: int = 0) -> None:
        """Have something done; what has the same place stays in line."""
        with self._lock:
            if not self._lanes:
                self._lanes = [_Lane(self._name, self._work) for _ in range(self._n_lanes)]
            self._lanes[place % self._n_lanes].queue.put(item)

    def close(self) -> None:
        """Let everything be done that is in line, and end the threads."""
        with self._lock:
            lanes, self._lanes = self._lanes, []
        for lane in lanes:
            lane.queue.put(None)
        for lane in lanes:
            lane.thread.join()


class _Lane(Generic[Item]):
    """One thread and what waits for it; None ends it."""

    def __init__(self, name: str, work: Callable[[list[Item]], None]) -> None:
        self.queue: SimpleQueue[Item | None] = SimpleQueue()
        self._work = work
        self.thread = Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        goes_on = True
        while goes_on:
            waiting = self._waiting()
            goes_on = None not in waiting
            due = [item for item in waiting if item and item.answer.set_running_or_notify_cancel()]
            if due:
                self._do(due)

    def _do(self, due: list[Item]) -> None:
        try:
            self._work(due)
        except Exception as error:  # whatever it is, whoever waits is told, and the thread goes on
            for item in due:
                if not item.answer.done():
                    item.answer.set_exception(error)

    def _waiting(self) -> list[Item | None]:
        """The next item, and what else waits already."""
        found = [self.queue.get()]
        try:
            while len(found) < MAX_BATCH and found[-1]:
                found.append(self.queue.get_nowait())
        except Empty:
            pass
        return found
