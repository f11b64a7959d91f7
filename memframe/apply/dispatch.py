"""Sending what is due: intents on the disk, requests in flight, answers taken in, one step of the journal a round.

The thread that called does all of the bookkeeping; the crew only exchanges. Each round writes what came back
together with the intents of what leaves next, so that a write costs one synchronised commit, not two.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from memframe.apply.books import Books
from memframe.apply.crew import Crew
from memframe.apply.groups import Groups
from memframe.apply.interrupts import Interrupts
from memframe.apply.reconcile import Traces
from memframe.apply.sender import Found, Sender
from memframe.apply.signs import Seen
from memframe.apply.verdicts import Move, after_answer, after_reading
from memframe.client.retry import RateLimiter
from memframe.errors import JournalError, MemframeError, ProtocolError
from memframe.journal import Operation, Standing
from memframe.wire import MemoryBlob

MAX_ATTEMPTS = 4
"""Requests for one operation in one run, those that were throttled apart."""

FRESH_S = 30.0
"""A memory that was read longer ago is read again before it is patched or deleted."""

WATCH_S = 5.0
"""How often to look for what ends a run without a word: what is sent after a change of key is sealed with a key
that the service no longer hands out."""

DRAIN_S = 5.0
"""How long Ctrl-C waits for what is in flight; what is not back by then counts as unknown."""

PATIENCE_S = 0.5
"""How long to wait for an answer before looking around; on Windows no longer wait can be interrupted."""


class Dispatch:
    """Sends the operations of one run.

    Parameters
    ----------
    books : Books
    traces : Traces
    groups : Groups
    sender : Sender
    pace : RateLimiter
    crew : Crew
    clock : callable
        Seconds that only grow.
    read_at : dict of int to float
        When the memories of operations were read, by that clock.
    watch : callable
        Called again and again, `WATCH_S` apart: looks for what ends a run.
    interrupts : Interrupts

    Attributes
    ----------
    stopped : MemframeError or None
        Why nothing more is sent.
    barred : bool
        Whether nothing more may be read either.
    """

    def __init__(
        self,
        *,
        books: Books,
        traces: Traces,
        groups: Groups,
        sender: Sender,
        pace: RateLimiter,
        crew: Crew[Seen | Found],
        clock: Callable[[], float],
        read_at: dict[int, float],
        watch: Callable[[], None],
        interrupts: Interrupts,
    ) -> None:
        self._books, self._groups, self._sender = books, groups, sender
        self._pace, self._crew, self._clock = pace, crew, clock
        self._read_at, self._watch, self._watched_at = read_at, watch, clock()
        self._interrupts = interrupts
        self._sealed = traces.digest_of.keys()
        self._ids = {*traces.before, *(op.standing.id for op in books if op.standing.id)}
        self._throttled: Counter[int] = Counter()
        self._failed: Counter[int] = Counter()
        self._paid: Counter[int] = Counter()
        self._news: dict[int, Standing] = {}
        self._backups: dict[int, MemoryBlob] = {}
        self.stopped: MemframeError | None = None
        self.barred = False

    def may_try(self, operation: Operation) -> bool:
        """Whether this run has not tried an operation too often."""
        return self._failed[operation.n] < MAX_ATTEMPTS

    def stop(self, reason: MemframeError | None, *, barred: bool = False) -> None:
        """Send nothing more; the first reason counts."""
        self.stopped = self.stopped or reason
        self.barred = self.barred or barred

    def send(self, due: Iterable[Operation]) -> None:
        """Send operations and take in what comes back, until all are through or the run has stopped.

        After Ctrl-C nothing more leaves; what is in flight is waited for a moment, then the interrupt goes on
        its way. A second one does not wait.
        """
        queue = deque(operation.n for operation in due)
        with self._interrupts.put_off():
            try:
                while queue or self._crew.n_busy:
                    self._interrupts.heed()
                    self._round(queue)
            except KeyboardInterrupt:
                self._drain()
                self._write({})
                raise
            except JournalError:
                self._drain()  # whoever goes on with the run must not meet these on the way
                raise

    def _round(self, queue: deque[int]) -> None:
        self._take_in(queue, self._patience(queue))
        if self._clock() - self._watched_at >= WATCH_S:
            with self._interrupts.welcome():
                self._watch()
            self._watched_at = self._clock()
        if self.stopped:
            queue.clear()
        elif queue and not self._crew.n_busy:
            with self._interrupts.welcome():
                self._pace.wait()
        leaving = list(self._leaving(queue))
        intents = {n: self._intent(n) for n in leaving if self._is_fresh(n)}
        self._write(intents)
        for n in leaving:
            self._crew.start(n, self._sending(n) if n in intents else self._reading(n))

    def _intent(self, n: int) -> Standing:
        standing = self._news.get(n, self._books[n].standing)
        return replace(standing, state="sending", attempts=standing.attempts + 1)

    def _patience(self, queue: deque[int]) -> float:
        """How long to wait for what is in flight: no longer than until something else may leave."""
        has_room = queue and self._crew.n_busy < self._pace.limit
        return min(PATIENCE_S, self._pace.hold_s) if has_room else PATIENCE_S

    def _leaving(self, queue: deque[int]) -> Iterable[int]:
        room = 0 if self._pace.hold_s else self._pace.limit - self._crew.n_busy
        while queue and room > 0:
            n = queue.popleft()
            if self._groups.held_back(self._books[n]) is None:
                room -= 1
                yield n

    def _is_fresh(self, n: int) -> bool:
        """Whether we know the memory as it is: a create has none, and after a doubt nobody does."""
        operation = self._books[n]
        read_at = self._read_at.get(n)
        return operation.action == "create" or (read_at is not None and self._clock() - read_at < FRESH_S)

    def _reading(self, n: int) -> Callable[[], Seen | Found]:
        operation, sender = self._books[n], self._sender
        return lambda: sender.read(operation)

    def _sending(self, n: int) -> Callable[[], Seen | Found]:
        operation, body, sender = self._books[n], self._books.request(n), self._sender
        return lambda: sender.send(operation, body)

    def _take_in(self, queue: deque[int], timeout_s: float) -> None:
        for n, result in self._crew.finished(timeout_s):
            move = self._judge(n, result)
            if move in {"again", "send"} and self.may_try(self._books[n]):
                queue.appendleft(n)

    def _judge(self, n: int, result: Seen | Found) -> Move:
        """Decide what follows, and note it for the next step of the journal."""
        operation = self._books[n]
        if isinstance(result, Found):
            move, standing = after_reading(operation, result.stored)
            if move == "send" and result.stored is not None:
                self._read_at[n] = self._clock()
                self._backups[n] = result.stored.blob
                return move
            if move == "recovered":
                self._is_through(n)
        else:
            result = self._believed(operation, result)
            move, standing = after_answer(operation, result)
            self._keep_pace(n, result, move)
            if standing.in_doubt:
                self._read_at.pop(n, None)
        self._news[n] = standing
        return move

    def _believed(self, operation: Operation, seen: Seen) -> Seen:
        """A create is answered with an id that no memory had; only what knows plain text may join equal ones."""
        if operation.action != "create" or seen.id is None:
            return seen
        if seen.id in self._ids and operation.n in self._sealed:
            return seen._replace(sign="foreign", id=None, error=_foreign_id(operation, seen.id))
        self._ids.add(seen.id)
        return seen

    def _keep_pace(self, n: int, seen: Seen, move: Move) -> None:
        if move in {"done", "recovered"}:
            self._is_through(n)
        elif move == "stop":
            self.stop(seen.error, barred=seen.sign != "rekeyed")
        elif seen.sign == "throttled":
            self._throttled[n] += 1
            self._stop_unless(self._pace.throttled(seen.wait_s), seen)
        elif move in {"again", "unknown"}:
            self._failed[n] += 1
            if seen.is_trouble:
                self._paid[n] += 1
                self._stop_unless(self._pace.failed(seen.wait_s), seen)

    def _is_through(self, n: int) -> None:
        self._failed.pop(n, None)
        self._pace.succeeded(self._throttled.pop(n, 0), self._paid.pop(n, 0))

    def _stop_unless(self, in_budget: bool, seen: Seen) -> None:
        if not in_budget:
            self.stop(seen.error)

    def _write(self, intents: dict[int, Standing]) -> None:
        """One step of the journal: what came back, and what is going to leave."""
        self._books.write(self._news | intents, self._backups)
        self._news, self._backups = {}, {}

    def _drain(self) -> None:
        deadline = self._clock() + DRAIN_S
        while self._crew.n_busy and (left_s := deadline - self._clock()) > 0:
            self._take_in(deque(), left_s)


def _foreign_id(operation: Operation, memory_id: str) -> ProtocolError:
    return ProtocolError(
        f"the create of row {operation.change.row} was answered with the id of another memory, {memory_id}: nothing "
        "more is sent. Ask the operator of the service to look at it"
    )
