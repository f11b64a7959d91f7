"""Writes, as many to a transaction as are waiting: seeing a commit through to the disk is what costs.

Each write has a savepoint of its own: one that is refused takes nothing of the others with it. All are
answered when their transaction is on the disk, and if that fails, all are told.

Threads share the users among them, so that the writes of one user stay in line. SQLite has one writer at a
time, and one thread; in PostgreSQL a user whose row is locked holds up only the users of the same thread.
Within a transaction users come in the order of their ids, so that two of them never wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError

from memframe.service.store.engine import writing
from memframe.service.store.statements import Queries, Statement

MAX_BATCH = 64
LANES = {"sqlite": 1, "postgresql": 4}
"""Threads that write."""

Result = TypeVar("Result")


_SAVEPOINT, _RELEASE, _ROLLBACK = (
    Statement(text(f"{words} a_write"))
    for words in ("SAVEPOINT", "RELEASE SAVEPOINT", "ROLLBACK TO SAVEPOINT")
)


class Write(NamedTuple):
    """Something to be done for a user, and whoever waits for the outcome."""

    user_id: str
    run: Callable[[Queries], Any]
    answer: Future[Any]


class Outcome(NamedTuple):
    """What came of a write: its result, or why there is none."""

    result: Any = None
    error: Exception | None = None


class Writers:
    """The writing threads of one store; they start with the first write.

    Parameters
    ----------
    engine : Engine
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lanes: list[_Lane] = []
        self._lock = Lock()

    def submit(self, user_id: str, run: Callable[[Queries], Result]) -> Future[Result]:
        """Have something written; the future has its result once it is on the disk."""
        answer: Future[Result] = Future()
        with self._lock:
            if not self._lanes:
                self._lanes = [_Lane(self._engine) for _ in range(LANES[self._engine.dialect.name])]
            lane = self._lanes[crc32(user_id.encode()) % len(self._lanes)]
            lane.queue.put(Write(user_id, run, answer))
        return answer

    def close(self) -> None:
        """Let everything be written that was submitted, and end the threads."""
        with self._lock:
            lanes, self._lanes = self._lanes, []
        for lane in lanes:
            lane.queue.put(None)
        for lane in lanes:
            lane.thread.join()


class _Lane:
    """One thread and the writes that wait for it; None ends it."""

    def __init__(self, engine: Engine) -> None:
        self.queue: SimpleQueue[Write | None] = SimpleQueue()
        self._engine = engine
        self.thread = Thread(target=self._work, name="memframe-writer", daemon=True)
        self.thread.start()

    def _work(self) -> None:
        goes_on = True
        while goes_on:
            waiting = self._waiting()
            goes_on = None not in waiting
            writes = [write for write in waiting if write and write.answer.set_running_or_notify_cancel()]
            if writes:
                self._commit(sorted(writes, key=lambda write: write.user_id))

    def _waiting(self) -> list[Write | None]:
        """The next write, and what else waits already."""
        found = [self.queue.get()]
        try:
            while len(found) < MAX_BATCH and found[-1]:
                found.append(self.queue.get_nowait())
        except Empty:
            pass
        return found

    def _commit(self, writes: list[Write]) -> None:
        try:
            with writing(self._engine) as connection:
                outcomes = _outcomes(Queries.of(connection), writes)
        except Exception as error:  # whatever it was, nothing is on the disk
            outcomes = [Outcome(error=error)] * len(writes)
        for write, outcome in zip(writes, outcomes, strict=True):
            if outcome.error is None:
                write.answer.set_result(outcome.result)
            else:
                write.answer.set_exception(outcome.error)


def _outcomes(queries: Queries, writes: list[Write]) -> list[Outcome]:
    """What comes of each write; a user who cannot be written for at the moment is not tried again."""
    if len(writes) == 1:  # if it is refused, so is the transaction
        return [Outcome(writes[0].run(queries))]
    outcomes: list[Outcome] = []
    unavailable: dict[str, Outcome] = {}
    for write in writes:
        outcome = unavailable.get(write.user_id) or _attempted(queries, write)
        if isinstance(outcome.error, OperationalError):
            unavailable[write.user_id] = outcome
        outcomes.append(outcome)
    return outcomes


def _attempted(queries: Queries, write: Write) -> Outcome:
    queries.run(_SAVEPOINT)
    try:
        outcome = Outcome(write.run(queries))
    except Exception as error:  # it is told to whoever waits for this write, and nobody else
        queries.run(_ROLLBACK)
        outcome = Outcome(error=error)
    queries.run(_RELEASE)
    return outcome
