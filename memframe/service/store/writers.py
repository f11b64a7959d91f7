"""Writes, as many to a transaction as are waiting: seeing a commit through to the disk is what costs.

Nobody waits for company: a write that comes alone is done alone, and those that come meanwhile are done
together. All are answered when their transaction is on the disk. One that fails takes nothing of the others
with it: the transaction has not happened then, and the others come again without it.

Threads share the users among them, so that the writes of one user stay in line. SQLite has one writer at a
time, and one thread; in PostgreSQL a user whose row is locked holds up only the users of the same thread.
Within a transaction users come in the order of their ids, so that two of them never wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from memframe.service.store.engine import writing
from memframe.service.store.lanes import Lanes
from memframe.service.store.statements import Queries

LANES = {"sqlite": 1, "postgresql": 4}
"""Threads that write."""

Result = TypeVar("Result")


class Write(NamedTuple):
    """Something to be done for a user, and whoever waits for the outcome."""

    user_id: str
    run: Callable[[Queries], Any]
    answer: Future[Any]


class Writers:
    """The writing threads of one store; they start with the first write.

    Parameters
    ----------
    engine : Engine
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lanes = Lanes("memframe-writer", self._commit, n_lanes=LANES[engine.dialect.name])

    def submit(self, user_id: str, run: Callable[[Queries], Result]) -> Future[Result]:
        """Have something written; the future has its result once it is on the disk."""
        answer: Future[Result] = Future()
        self._lanes.put(Write(user_id, run, answer), place=crc32(user_id.encode()))
        return answer

    def close(self) -> None:
        """Let everything be written that was submitted, and end the threads."""
        self._lanes.close()

    def _commit(self, writes: list[Write]) -> None:
        """All in one transaction, and all answered."""
        writes = sorted(writes, key=lambda write: write.user_id)
        try:
            with writing(self._engine) as connection:
                results = _results(Queries(connection, remembers=True), writes)
        except _WriteFailedError as failed:
            self._commit_around(failed, writes)
        except Exception as error:  # of the transaction as a whole; it may even have happened
            for write in writes:
                write.answer.set_exception(error)
        else:
            for write, result in zip(writes, results, strict=True):
                write.answer.set_result(result)

    def _commit_around(self, failed: _WriteFailedError, writes: list[Write]) -> None:
        """Those before and behind the one that failed, and that one alone: what it had seen is undone.

        A user for whom the database fails, as somebody holds the lock, is not tried again.
        """
        place, error = failed.place, failed.error
        if len(writes) == 1 or isinstance(error, OperationalError):
            user_id = writes[place].user_id
            for write in writes:
                if write.user_id == user_id:
                    write.answer.set_exception(error)
            parts = [[write for write in writes if write.user_id != user_id]]
        else:
            parts = [writes[:place], writes[place : place + 1], writes[place + 1 :]]
        for part in filter(None, parts):
            self._commit(part)


class _WriteFailedError(Exception):
    """One of several writes has failed: which one, and why."""

    def __init__(self, place: int, error: Exception) -> None:
        self.place = place
        self.error = error


def _results(queries: Queries, writes: list[Write]) -> list[Any]:
    results: list[Any] = []
    for write in writes:
        try:
            results.append(write.run(queries))
        except Exception as error:  # whatever it is, whoever waits for this write is told
            raise _WriteFailedError(len(results), error) from error
    return results
