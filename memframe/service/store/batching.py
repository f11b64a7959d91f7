"""Batch what is waiting: group commit of writes, single-memory reads in one statement, connections kept open.

Nothing waits for company: an item that comes alone is done alone; items that come while one is being done are done
together, next. ``tests/benchmarks/service.py`` (16 clients) shows what it is worth, in these rows:

- "create", "patch" on SQLite: group commit; syncing each commit for itself bounds writes by the disk.
- "get" on PostgreSQL: batched lookups; a round trip and two thread switches cost several times the query.
- "get", "list of 100" on SQLite: open connections; the pool and an empty transaction cost several times the query.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from threading import Lock, Thread, local
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from zlib import crc32

import msgspec
from sqlalchemy import Connection, Engine
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, OperationalError

from memframe.service.store.engine import writing
from memframe.service.store.memories import GRANTED_MANY, as_memory
from memframe.service.store.statements import Queries, SqlStatement, driver_connection
from memframe.wire import MemoryBlob

MAX_BATCH = 64
N_READERS = 4
N_WRITERS = {"sqlite": 1, "postgresql": 4}

Result = TypeVar("Result")


class HasAnswer(Protocol):
    """An item of a batch and the future of its result."""

    @property
    def answer(self) -> Future[Any]: ...


Item = TypeVar("Item", bound=HasAnswer)


class BatchWorkers(Generic[Item]):
    """Threads with a queue each, which are started by the first item.

    Parameters
    ----------
    name : str
        Of the threads.
    work : callable
        Does up to `MAX_BATCH` items and answers each; an error that it raises answers those that are left.
    n_workers : int
    """

    def __init__(self, name: str, work: Callable[[list[Item]], None], *, n_workers: int = 1) -> None:
        self._name, self._work, self._n_workers = name, work, n_workers
        self._queues: list[SimpleQueue[Item | None]] = []
        self._threads: list[Thread] = []
        self._lock = Lock()

    def put(self, item: Item, *, key: int = 0) -> None:
        """Queue an item; items of one key keep their order."""
        with self._lock:
            if not self._queues:
                self._queues = [SimpleQueue() for _ in range(self._n_workers)]
                self._threads = [
                    Thread(target=self._run, args=(queue,), name=self._name, daemon=True)
                    for queue in self._queues
                ]
                for thread in self._threads:
                    thread.start()
            self._queues[key % self._n_workers].put(item)

    def close(self) -> None:
        """Finish what is queued, and end the threads."""
        with self._lock:
            queues, self._queues = self._queues, []
            threads, self._threads = self._threads, []
        for queue in queues:
            queue.put(None)
        for thread in threads:
            thread.join()

    def _run(self, queue: SimpleQueue[Item | None]) -> None:
        goes_on = True
        while goes_on:
            batch = _next_batch(queue)
            goes_on = None not in batch
            due = [item for item in batch if item and item.answer.set_running_or_notify_cancel()]
            try:
                if due:
                    self._work(due)
            except Exception as error:  # the callers get it, and the thread goes on
                for item in due:
                    if not item.answer.done():
                        item.answer.set_exception(error)


def _next_batch(queue: SimpleQueue[Item | None]) -> list[Item | None]:
    """Wait for an item; take it and what else is queued, up to None, which ends the thread."""
    batch = [queue.get()]
    try:
        while len(batch) < MAX_BATCH and batch[-1]:
            batch.append(queue.get_nowait())
    except Empty:
        pass
    return batch


class Write(NamedTuple):
    """A write for one user, and the future of its result."""

    user_id: str
    run: Callable[[Queries], Any]
    answer: Future[Any]


class GroupCommit:
    """Run the writes that are waiting in one transaction, and answer them once it is on the disk.

    A write that fails does not affect the others: the transaction is rolled back, and they run again without it.
    Users are assigned to threads, so that the writes of one stay in order; within a transaction users come in the
    order of their ids, so that two transactions never wait for each other. SQLite has one writer at a time, and one
    thread; in PostgreSQL a locked user delays only the users of the same thread.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._workers = BatchWorkers(
            "memframe-writer", self._commit, n_workers=N_WRITERS[engine.dialect.name]
        )

    def submit(self, user_id: str, run: Callable[[Queries], Result]) -> Future[Result]:
        """Queue a write; the future has its result once it is on the disk."""
        answer: Future[Result] = Future()
        self._workers.put(Write(user_id, run, answer), key=crc32(user_id.encode()))
        return answer

    def close(self) -> None:
        """Finish the queued writes, and end the threads."""
        self._workers.close()

    def _commit(self, writes: list[Write]) -> None:
        writes = sorted(writes, key=lambda write: write.user_id)
        results: list[Any] = []
        failed: Exception | None = None
        try:
            with writing(self._engine) as connection:
                queries = Queries(connection, caches=True)
                for write in writes:
                    try:
                        results.append(write.run(queries))
                    except Exception as error:  # which write it was decides what becomes of the others
                        failed = error
                        raise
        except Exception as error:
            if failed is None:  # of the transaction as a whole; it may even have been committed
                raise
            self._commit_others(writes, len(results), error)
        else:
            for write, result in zip(writes, results, strict=True):
                write.answer.set_result(result)

    def _commit_others(self, writes: list[Write], place: int, error: Exception) -> None:
        """Run the writes before and after a failed one again, and that one by itself, as its reads were undone."""
        if len(writes) == 1 or isinstance(error, OperationalError):
            # a user for whom the database fails, being locked by another process, is not tried again
            user_id = writes[place].user_id
            for write in writes:
                if write.user_id == user_id:
                    write.answer.set_exception(error)
            parts = [[write for write in writes if write.user_id != user_id]]
        else:
            parts = [writes[:place], writes[place : place + 1], writes[place + 1 :]]
        for part in filter(None, parts):
            try:
                self._commit(part)
            except Exception as failure:  # each part has a transaction, and an outcome, of its own
                for write in part:
                    if not write.answer.done():
                        write.answer.set_exception(failure)


class ReadConnections:
    """Connections for reads of one statement: one a thread, kept open, in autocommit mode.

    Attributes
    ----------
    threads : ThreadPoolExecutor or None
        Threads for reads from a database server. None for SQLite, which answers in this process at once.
    """

    def __init__(self, engine: Engine) -> None:
        is_local = engine.dialect.name == "sqlite"
        self.threads = None if is_local else ThreadPoolExecutor(N_READERS, "memframe-reader")
        self._engine = engine
        self._of_thread = local()
        self._open: list[DBAPIConnection] = []
        self._lock = Lock()

    def queries(self) -> Queries:
        """Return the queries of this thread's connection."""
        queries: Queries | None = getattr(self._of_thread, "queries", None)
        if queries is None:
            queries = self._of_thread.queries = _ReconnectingQueries(self._connect)
        return queries

    def close(self) -> None:
        """Close all connections once the current reads are done."""
        if self.threads:
            self.threads.shutdown()
        with self._lock:
            done, self._open = self._open, []
            self._of_thread = local()
        for connection in done:
            connection.close()

    def _connect(self) -> Connection:
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.detach()  # from the pool
        with self._lock:
            self._open.append(driver_connection(connection))
        return connection


class _ReconnectingQueries(Queries):
    """Reads of one statement, which are repeated once on a new connection when theirs is lost."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        super().__init__(connect())
        self._connect = connect

    def _execute(self, statement: SqlStatement, parameters: dict[str, Any]) -> None:
        try:
            super()._execute(statement, parameters)
        except DBAPIError:
            if not self.broken:
                raise
            self._use(self._connect())
            super()._execute(statement, parameters)


class Lookup(NamedTuple):
    """A read of one memory under a grant, and the future of its result."""

    keys: dict[str, Any]
    answer: Future[MemoryBlob | None]


class LookupBatcher:
    """Read the single memories that are waiting in one statement, each under its own live grant.

    The statement begins after all of its lookups have come, so that none passes under a grant revoked before.
    """

    def __init__(self, readers: ReadConnections) -> None:
        self._readers = readers
        self._workers = BatchWorkers("memframe-lookup", self._look_up)

    def submit(self, memory_id: str, **grant: Any) -> Future[MemoryBlob | None]:
        """Queue a read; the future has None where there is no memory or no grant."""
        lookup = Lookup({**grant, "memory_id": memory_id}, Future())
        self._workers.put(lookup)
        return lookup.answer

    def close(self) -> None:
        """Answer the queued reads, and end the thread."""
        self._workers.close()

    def _look_up(self, lookups: list[Lookup]) -> None:
        wanted = [{"place": place, **lookup.keys} for place, lookup in enumerate(lookups)]
        rows = self._readers.queries().rows(GRANTED_MANY, wanted=msgspec.json.encode(wanted).decode())
        found = {row[0]: row[1:] for row in rows}
        for place, lookup in enumerate(lookups):
            try:
                lookup.answer.set_result(as_memory(found[place]) if place in found else None)
            except msgspec.MsgspecError as error:  # a damaged row fails its reader alone
                lookup.answer.set_exception(error)
