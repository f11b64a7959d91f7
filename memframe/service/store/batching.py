"""Batch waiting work: group commit of writes, single-memory reads in one statement, connections kept open.

No item is delayed to fill a batch: items that arrive while one batch is being processed form the next.

Cost of a request without each technique, measured with 16 clients (``benchmarks/service.py``):

- Group commit ("create", "patch"): 2.4 to 2.8 times the processor time and 0.3 to 0.5 times the requests per second on
  SQLite, where each commit then has its own sync; 3.3 to 3.5 times and 0.2 times on PostgreSQL.
- Batched lookups ("get" on PostgreSQL): 1.6 times and 0.7 times, because each read is then a round trip and two thread
  switches.
- Open connections ("get", "list of 100" on SQLite): the pool and an empty transaction cost several times the query.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from threading import Lock, Thread, local
from typing import Any, Generic, NamedTuple, TypeVar
from zlib import crc32

import msgspec
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, OperationalError

from memframe.service.store.engine import Queries, SqlStatement, writing
from memframe.service.store.memories import SELECT_GRANTED_MANY, as_memory
from memframe.wire import MemoryBlob

MAX_BATCH = 64
N_READERS = 4
N_WRITERS = {"sqlite": 1, "postgresql": 4}

Result = TypeVar("Result")
Task = TypeVar("Task")


class Item(NamedTuple, Generic[Task]):
    """A task of a batch, and the future of its result."""

    task: Task
    answer: Future[Any]


class BatchWorkers(Generic[Task]):
    """Threads with one queue each, started by the first task.

    The `_work` of a subclass processes up to `MAX_BATCH` tasks and answers each; if it raises an error, that error
    answers the remaining ones.
    """

    def __init__(self, name: str, *, n_workers: int = 1) -> None:
        self._name, self._n_workers = name, n_workers
        self._queues: list[SimpleQueue[Item[Task] | None]] = []
        self._threads: list[Thread] = []
        self._lock = Lock()

    def _work(self, batch: list[Item[Task]]) -> None:
        raise NotImplementedError

    def _put(self, task: Task, *, key: int = 0) -> Future[Any]:
        """Queue a task; tasks with the same key keep their order."""
        item: Item[Task] = Item(task, Future())
        with self._lock:
            if not self._queues:
                self._queues = [SimpleQueue() for _ in range(self._n_workers)]
                for queue in self._queues:
                    thread = Thread(target=self._run, args=(queue,), name=self._name, daemon=True)
                    self._threads.append(thread)
                    thread.start()
            self._queues[key % self._n_workers].put(item)
        return item.answer

    def close(self) -> None:
        """Finish queued tasks, and end the threads."""
        with self._lock:
            queues, self._queues = self._queues, []
            threads, self._threads = self._threads, []
        for queue in queues:
            queue.put(None)
        for thread in threads:
            thread.join()

    def _run(self, queue: SimpleQueue[Item[Task] | None]) -> None:
        goes_on = True
        while goes_on:
            batch = [queue.get()]
            try:
                while len(batch) < MAX_BATCH and batch[-1]:
                    batch.append(queue.get_nowait())
            except Empty:
                pass
            goes_on = None not in batch
            due = [item for item in batch if item and item.answer.set_running_or_notify_cancel()]
            if due:
                _answering_errors(self._work, due)


def _answering_errors(work: Callable[[list[Item[Task]]], None], batch: list[Item[Task]]) -> None:
    """Process a batch; an error goes to the callers, and the thread continues."""
    try:
        work(batch)
    except Exception as error:  # raised again where each answer is awaited
        for item in batch:
            if not item.answer.done():
                item.answer.set_exception(error)


class Write(NamedTuple):
    user_id: str
    run: Callable[[Queries], Any]


class GroupCommit(BatchWorkers[Write]):
    """Run the waiting writes in one transaction, and answer them once it is on the disk.

    A failing write does not affect the others: the transaction is rolled back, and they run again without it. Each
    user is assigned to one thread, so that the user's writes stay in order. A transaction processes users in the order
    of their ids, so that two transactions never wait for each other. SQLite has one writer at a time, so one thread is
    enough; in PostgreSQL a locked user delays only the users of the same thread.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__("memframe-writer", n_workers=N_WRITERS[engine.dialect.name])
        self._engine = engine

    def submit(self, user_id: str, run: Callable[[Queries], Result]) -> Future[Result]:
        """Queue a write; the future has its result once it is on the disk."""
        return self._put(Write(user_id, run), key=crc32(user_id.encode()))

    def _work(self, batch: list[Item[Write]]) -> None:
        batch = sorted(batch, key=lambda item: item.task.user_id)
        results: list[Any] = []
        failed = False
        try:
            with writing(self._engine) as connection:
                queries = Queries(connection, caches=True)
                for item in batch:
                    try:
                        results.append(item.task.run(queries))
                    except Exception:
                        failed = True  # this write has failed, not the transaction
                        raise
        except Exception as error:
            if not failed:  # the transaction has failed; it may even have been committed
                raise
            self._redo(batch, len(results), error)
        else:
            for item, result in zip(batch, results, strict=True):
                item.answer.set_result(result)

    def _redo(self, batch: list[Item[Write]], place: int, error: Exception) -> None:
        """Run the writes before and after a failed one again, and that one alone: what it had read was rolled back."""
        if len(batch) == 1 or isinstance(error, OperationalError):
            # do not repeat the writes of a user for whom the database fails, such as one locked by another process
            user_id = batch[place].task.user_id
            for item in batch:
                if item.task.user_id == user_id:
                    item.answer.set_exception(error)
            parts = [[item for item in batch if item.task.user_id != user_id]]
        else:
            parts = [batch[:place], batch[place : place + 1], batch[place + 1 :]]
        for part in filter(None, parts):
            _answering_errors(self._work, part)  # each part in its own transaction


class ReadConnections:
    """Connections for reads of one statement: one per thread, kept open, in autocommit mode.

    `threads` are for reads from a database server; None for SQLite, which answers in this process at once.
    """

    def __init__(self, engine: Engine) -> None:
        is_local = engine.dialect.name == "sqlite"
        self.threads = None if is_local else ThreadPoolExecutor(N_READERS, "memframe-reader")
        self._engine = engine
        self._of_thread = local()
        self._open: list[Any] = []
        self._lock = Lock()

    def queries(self) -> Queries:
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
            self._open.append(connection.connection.dbapi_connection)
        return connection


class _ReconnectingQueries(Queries):
    """Reads of one statement, repeated once on a new connection if the connection was lost."""

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


class LookupBatcher(BatchWorkers[dict[str, Any]]):
    """Run waiting reads of single memories in one statement, each under its own live grant.

    The statement begins after all of its lookups were queued, so that none succeeds under a grant revoked before.
    """

    def __init__(self, readers: ReadConnections) -> None:
        super().__init__("memframe-lookup")
        self._readers = readers

    def submit(self, memory_id: str, **grant: Any) -> Future[MemoryBlob | None]:
        """Queue a read; the future has None if there is no memory or no grant."""
        return self._put({**grant, "memory_id": memory_id})

    def _work(self, batch: list[Item[dict[str, Any]]]) -> None:
        wanted = [{"place": place, **item.task} for place, item in enumerate(batch)]
        rows = self._readers.queries().rows(SELECT_GRANTED_MANY, wanted=msgspec.json.encode(wanted).decode())
        found = {row[0]: row[1:] for row in rows}
        for place, item in enumerate(batch):
            try:
                item.answer.set_result(as_memory(found[place]) if place in found else None)
            except msgspec.MsgspecError as error:  # a damaged row fails only its own lookup
                item.answer.set_exception(error)


class WakeUps:
    """Let coroutines wait for the futures of threads, and wake the event loop once for all answered ones.

    `asyncio.wrap_future` wakes it once for each, by a system call, which is a good part of the cost of a batched write.
    """

    def __init__(self) -> None:
        self._answered: deque[tuple[asyncio.Future[Any], Future[Any]]] = deque()
        self._is_waking = False

    async def wait(self, answer: Future[Result]) -> Result:
        """Return the result of a future; cancel it if the waiting coroutine is cancelled."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Result] = loop.create_future()

        def note(answer: Future[Result]) -> None:
            if loop.is_closed():
                return
            self._answered.append((waiter, answer))
            if not self._is_waking:
                self._is_waking = True
                loop.call_soon_threadsafe(self._pass_on)

        answer.add_done_callback(note)
        try:
            return await waiter
        finally:
            answer.cancel()

    def _pass_on(self) -> None:
        # reset before the loop: an answer that arrives after the loop must wake the event loop again
        self._is_waking = False
        while self._answered:
            waiter, answer = self._answered.popleft()
            if waiter.done():
                continue
            if (error := answer.exception()) is not None:
                waiter.set_exception(error)
            else:
                waiter.set_result(answer.result())
