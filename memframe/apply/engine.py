"""The engine of a run: reconcile what is unknown, send what is due, read again, until nothing is left to do.

What follows from each response is in the tables of `memframe.apply.decisions`. The thread that called decides and
writes the journal; workers only exchange. One commit holds what came back and the intents of what leaves next. Those
of `AHEAD` operations for each worker are committed together, so that no worker waits for the disk; what was not sent
after all, because the run stops or slows down, is taken back.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice

from msgspec.structs import replace

from memframe.access import Access, explain_refusal
from memframe.apply.decisions import Decision, decide, decide_after_reading, state_unsent
from memframe.apply.operations import Groups, OperationLog
from memframe.apply.preflight import refuse_rekeyed
from memframe.apply.reconcile import Reconciliation
from memframe.apply.responses import Sender, WriteResponse, classify_error
from memframe.apply.run import Verification
from memframe.apply.workers import Interrupts, WorkerPool
from memframe.client.retry import RateLimiter, logger
from memframe.errors import AccessError, AuthError, JournalError, MemframeError, ProtocolError, StalePlanError
from memframe.journal import WRITTEN, Operation
from memframe.plan.current import CurrentMemory, read_current
from memframe.secret import SecretBytes
from memframe.wire import MemoryBlob

AHEAD = 4
"""Operations for each worker whose intents are on the disk at a time: more of them, fewer commits."""

MAX_ATTEMPTS = 4
"""Requests for one operation in one run, those that were throttled apart."""

FRESH_S = 30.0
"""A memory that was read longer ago is read again before it is patched or deleted."""

READ_AHEAD = 100
"""Memories that are read again together: few enough to be still fresh when their writes leave."""

WATCH_S = 5.0
"""Seconds between two looks for what ends a run without a refusal: after a change of key, what is sent is sealed with a
key that the service no longer hands out."""

DRAIN_S = 5.0
"""Seconds that Ctrl-C waits for what is in flight; what is not back by then counts as unknown."""

PATIENCE_S = 0.5
"""Longest wait for an answer; on Windows no longer wait can be interrupted."""

FLUSH_S = 0.05
"""Longest wait of answers for others, to be written to the journal with them."""

Result = WriteResponse | None
"""Of a task; None if nothing was sent after all."""


class Engine:
    """Carries out one run; `read_at` is when all memories of its plan were read, None if that is long ago."""

    def __init__(
        self,
        access: Access,
        log: OperationLog,
        *,
        workers: int,
        settle_s: float,
        read_at: float | None = None,
    ) -> None:
        runtime = access.client.runtime
        self._access, self._log, self._workers = access, log, workers
        self._reconciliation = Reconciliation(log, settle_s=settle_s, sleep=runtime.sleep)
        self._groups = Groups(log)
        self._sender = Sender(access, log.header.run_id)
        self._pool: WorkerPool[Result] = WorkerPool(workers)
        self._interrupts = Interrupts(defers=workers > 1)
        self._clock = runtime.clock
        self._pace = RateLimiter(workers, clock=runtime.clock, sleep=runtime.sleep, chance=runtime.chance)
        self._read_at = {} if read_at is None else dict.fromkeys((op.n for op in log), read_at)
        self._watched_at = runtime.clock()
        self._queue: deque[int] = deque()
        self._moved: dict[int, Operation] = {}
        """Operations that have moved on and are not in the journal yet."""
        self._backups: dict[int, MemoryBlob] = {}
        self._undecided: set[int] = set()
        """Operations whose response is not plain success, until it was looked at: no worker begins another task."""
        self._failed: Counter[int] = Counter()
        self._ids = {*log.ids_before, *(op.new_id for op in log if op.new_id)}
        self._left_unknown: set[int] = set()
        self._rekeyed: StalePlanError | None = None
        self._stopped: MemframeError | None = None
        self._is_denied = False

    def run(self) -> tuple[Verification, dict[str, CurrentMemory], MemframeError | None]:
        """Do all that can be done; return how it read back, and what ended it early."""
        self._compare_key(self._access)
        with self._pool:
            self._reconcile()
            while not self._stopped and (due := self._due()):
                self._send(due)
                self._reconcile()
            if self._stopped:  # perhaps since: nothing is going to be read before it is sent again
                self._reconcile()
        waiting = ((op, self._groups.wait_reason(op)) for op in self._log.with_state("planned"))
        self._log.write([replace(op, error=why) for op, why in waiting if why])
        if not self._is_denied:
            self._watch_key()
        if self._is_denied:
            return Verification(failure="nothing more may be read"), {}, self._reason()
        return *self._reconciliation.read_back(self._access), self._reason()

    # -- what is due

    def _due(self) -> list[Operation]:
        due = self._sendable()
        if due:
            return due
        try:
            return self._sendable() if self._groups.verify(self._access) else []
        except MemframeError as error:
            self._stop(error)
            return []

    def _sendable(self) -> list[Operation]:
        planned = self._log.with_state("planned")
        # an unknown patch or delete that is still here was read, and is as it was before
        planned += self._log.with_state("unknown", actions=("patch", "delete"))
        due = (op for op in planned if self._groups.is_due(op) and self._groups.block_reason(op) is None)
        return [op for op in due if self._may_try(op.n)]

    def _may_try(self, n: int) -> bool:
        return self._failed[n] < MAX_ATTEMPTS

    # -- sending

    def _send(self, due: Iterable[Operation]) -> None:
        """Send operations and take in what comes back, until all are through or the run has stopped.

        After Ctrl-C nothing more leaves; what is in flight is waited for a moment, then the interrupt goes on
        its way. A second one does not wait.
        """
        self._queue = deque(operation.n for operation in due)
        with self._interrupts.defer():
            try:
                while self._queue or self._pool.n_busy:
                    self._interrupts.raise_if_any()
                    self._step()
            except KeyboardInterrupt:
                self._drain()
                self._commit([])
                raise
            except JournalError:
                self._drain()  # the next operation of the journal must not meet these on the way
                raise

    def _step(self) -> None:
        n_taken = self._take_results(self._patience())
        if self._clock() - self._watched_at >= WATCH_S:
            with self._interrupts.allow():
                self._watch_key()
            self._watched_at = self._clock()
        if self._stopped:
            self._take_back(self._pool.recall())
            self._queue.clear()
        elif self._queue and not self._pool.n_busy:
            with self._interrupts.allow():
                self._pace.wait()
        leaving = self._leaving()
        if leaving or not n_taken or not self._pool.n_busy:
            self._commit(leaving)
        bodies = self._log.requests(leaving) if leaving else {}
        for n in leaving:
            self._pool.submit(n, partial(self._send_if_fresh, self._log[n], bodies.get(n)))

    def _patience(self) -> float:
        """Return how long to wait for results: no longer than until something else may leave, or be written."""
        if self._moved:
            return FLUSH_S
        has_room = self._queue and self._pool.n_busy < self._pace.limit
        return min(PATIENCE_S, self._pace.hold_s) if has_room else PATIENCE_S

    def _leaving(self) -> list[int]:
        """Take from the queue what may leave now: as many as are ahead of the workers once few of those are left."""
        leaving: list[int] = []
        if self._pace.hold_s or self._undecided:
            return leaving
        n_busy, room = self._pool.n_busy, self._pace.limit - self._pool.n_busy
        if 1 < self._workers == self._pace.limit:
            is_low = n_busy <= self._workers + self._workers // 4
            room = AHEAD * self._workers - n_busy if is_low else 0
        if room > 0 and not all(map(self._is_fresh, islice(self._queue, room))) and not self._refresh_queue():
            return leaving
        while self._queue and len(leaving) < room:
            n = self._queue.popleft()
            if self._groups.block_reason(self._log[n]) is None:
                leaving.append(n)
        return leaving

    def _refresh_queue(self) -> bool:
        """Read again what is at the front of the queue; what is not to be sent any more leaves it.

        Return False if it could not be read: it stays in the queue, and the run waits or has stopped.
        """
        front = [self._queue.popleft() for _ in range(min(READ_AHEAD, len(self._queue)))]
        try:
            with self._interrupts.allow():
                self._refresh([self._operation(n) for n in front if not self._is_fresh(n)])
        except MemframeError as error:
            self._queue.extendleft(reversed(front))
            kind = classify_error(error).kind
            slow_down = self._pace.slow_down if kind == "throttled" else self._pace.back_off
            if kind not in {"throttled", "unsent", "unclear"} or not slow_down(None):
                self._stop(error)
            return False
        self._queue.extendleft(n for n in reversed(front) if self._is_fresh(n))
        return True

    def _refresh(self, operations: Sequence[Operation]) -> None:
        """Read the memories of patches and deletes as they are now, and note what follows for the journal.

        Raises `MemframeError` if they cannot be read.
        """
        with_content = any(op.change.compares_content for op in operations)
        current = read_current(self._access, [str(op.id) for op in operations], with_content=with_content)
        for op in operations:
            memory = current.get(str(op.id))
            decision, moved = decide_after_reading(op, memory)
            if decision == "send" and memory is not None:
                self._read_at[op.n] = self._clock()
                self._backups[op.n] = memory.blob
            else:
                self._note(moved)

    def _operation(self, n: int) -> Operation:
        """Return an operation as it will be in the journal."""
        return self._moved.get(n, self._log[n])

    def _is_fresh(self, n: int) -> bool:
        """Return True if the memory is known as it is: a create has none, and after a doubt it is not known."""
        read_at = self._read_at.get(n)
        return self._log[n].action == "create" or (read_at is not None and self._clock() - read_at < FRESH_S)

    def _send_if_fresh(self, operation: Operation, body: SecretBytes | None) -> Result:
        """Send an operation, in a worker, unless it should not be sent any more."""
        if self._undecided or not self._is_fresh(operation.n):  # it waited for a worker
            return None
        response = self._sender.send(operation, body)
        if response.kind != "done":
            self._undecided.add(operation.n)
        return response

    def _commit(self, leaving: Iterable[int]) -> None:
        """Write what came back and the intents of what leaves, in one step of the journal."""
        for n in leaving:
            operation = self._operation(n)
            self._moved[n] = replace(operation, state="sending", attempts=operation.attempts + 1)
        self._log.write(self._moved.values(), self._backups)
        self._moved, self._backups = {}, {}

    def _take_back(self, unsent: list[int]) -> None:
        """Put what was not sent after all to the front of the queue again."""
        for n in reversed(unsent):
            operation = self._log[n]
            if operation.state == "sending":
                state = state_unsent(operation.ambiguous)
                self._moved[n] = replace(operation, state=state, attempts=operation.attempts - 1)
            self._queue.appendleft(n)

    def _drain(self) -> None:
        """Wait for what is in flight, for a moment; nothing more leaves."""
        self._take_back(self._pool.recall())
        self._queue.clear()
        deadline = self._clock() + DRAIN_S
        while self._pool.n_busy and (left_s := deadline - self._clock()) > 0:
            self._take_results(left_s)
        self._queue.clear()

    # -- results

    def _take_results(self, timeout_s: float) -> int:
        completed = self._pool.completed(timeout_s)
        for n, result in completed:
            if result is None:
                self._take_back([n])
            elif self._decide(n, result) == "again" and self._may_try(n):
                self._queue.appendleft(n)
            self._undecided.discard(n)
        if self._pace.hold_s or self._pace.limit < self._workers:
            self._take_back(self._pool.recall())
        return len(completed)

    def _decide(self, n: int, response: WriteResponse) -> Decision:
        """Decide what follows, and note it for the next step of the journal."""
        operation = self._log[n]
        if operation.action == "create":
            response = self._check_new_id(operation, response)
        decision, moved = decide(operation, response)
        if moved.ambiguous:
            self._read_at.pop(n, None)
        in_budget = True
        if decision == "stop":
            self._stop(response.error, is_denied=response.kind != "key_changed")
        elif response.kind == "throttled":
            in_budget = self._pace.slow_down(response.wait_s)
        elif decision in {"again", "unknown"}:
            self._failed[n] += 1
            if response.is_failure:
                in_budget = self._pace.back_off(response.wait_s)
        if not in_budget:
            self._stop(response.error)
        self._note(moved)
        return decision

    def _note(self, moved: Operation) -> None:
        """Note an operation for the next step of the journal, and what it means for others."""
        self._moved[moved.n] = moved
        if moved.state in WRITTEN:
            self._failed.pop(moved.n, None)
            self._pace.speed_up()
        elif moved.state in {"rejected", "conflict"} and self._groups.note_failure(moved):
            self._take_back(self._pool.recall())  # others of the group may be among them

    def _check_new_id(self, operation: Operation, response: WriteResponse) -> WriteResponse:
        """Refuse an id that another memory had; only a service that knows plain text may merge equal ones."""
        if response.id in self._ids and self._log.header.encrypt:
            error = ProtocolError(
                f"the create of row {operation.row} was answered with the id of another memory, {response.id}: nothing "
                "more is sent. Ask the operator of the service to look at it"
            )
            return response._replace(kind="wrong_record", id=None, error=error)
        if response.id is not None:
            self._ids.add(response.id)
        return response

    # -- what is unknown

    def _reconcile(self) -> None:
        """Settle what may have been carried out, as far as that can be seen."""
        if self._stopped and not self._is_denied:
            self._watch_key()
        if self._is_denied:
            return
        unknown = self._log.with_state("unknown")
        creates = [op for op in unknown if op.action == "create" and op.n not in self._left_unknown]
        others = [op for op in unknown if op.action != "create"]
        try:
            if creates:
                rekeyed = self._rekeyed is not None
                self._reconciliation.settle_creates(self._access, creates, rekeyed=rekeyed)
            if others:
                self._refresh(others)
                self._commit([])
        except MemframeError as error:
            why = f"it could not be found out whether it was written: {error}"
            left = [self._log[op.n] for op in creates + others]
            self._log.write([replace(op, error=why) for op in left if op.state == "unknown"])
            if isinstance(error, AccessError | AuthError):
                self._stop(error)
        creates, others = ([self._log[op.n] for op in some] for some in (creates, others))
        if creates or others:
            found = Counter(op.state for op in creates + others)
            counts = ", ".join(f"{n:,} {state}" for state, n in found.items())
            logger.info("Looked for writes that had no answer: %s.", counts)
        # What was sent too often stays unknown, though no listing shows it: it may come late.
        exhausted = [op for op in creates if op.state == "planned" and not self._may_try(op.n)]
        self._log.write([replace(op, state="unknown") for op in exhausted])
        self._left_unknown |= {op.n for op in creates if op.state == "unknown"} | {op.n for op in exhausted}

    # -- what ends a run early

    def _stop(self, error: MemframeError | None, *, is_denied: bool | None = None) -> None:
        """Send nothing more, and read nothing more where access is denied; the first reason counts."""
        self._stopped = self._stopped or error
        self._is_denied |= isinstance(error, AccessError | AuthError) if is_denied is None else is_denied

    def _watch_key(self) -> None:
        """Ask whether the key is still the one that content was sealed under; a refusal of access shows, too."""
        try:
            self._compare_key(self._access.renew())
        except (AccessError, AuthError) as refused:
            self._stop(refused)
        except MemframeError:
            return  # a service that cannot be reached now will not take writes either, and they say so

    def _compare_key(self, access: Access) -> None:
        try:
            refuse_rekeyed(access, self._log.header.key_version)
        except StalePlanError as rekeyed:
            self._access, self._rekeyed = access, rekeyed
            self._stop(rekeyed)

    def _reason(self) -> MemframeError | None:
        """Return why the run ended early.

        Another key explains any refusal; a refusal itself does not say in which state the request for access is.
        """
        stopped = self._rekeyed or self._stopped
        if not isinstance(stopped, AccessError):
            return stopped
        try:
            return explain_refusal(self._access.client, self._access.request_id, stopped)
        except MemframeError:
            return stopped
