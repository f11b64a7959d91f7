"""The engine of a run: reconcile what is unknown, send what is due, read again, until nothing is left to do.

What follows from each response is in the tables of `memframe.apply.decisions`. The thread that called decides and
writes the journal; workers only send requests and return responses. A step of the loop:

1. take the results that came back, and decide what follows from each;
2. take from the queue the operations that may be sent now, after reading their memories again where that is due;
3. write the results and the intents of these operations in one commit of the journal;
4. hand the operations to the workers.

The intents of `INTENTS_PER_WORKER` operations for each worker are committed together, so that no worker waits for the
disk. Operations that were not sent after all, because the run stops or slows down, are put back into the queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

from msgspec.structs import replace

from memframe.access import Access
from memframe.apply.decisions import Decision, decide, decide_after_reading
from memframe.apply.early_end import EarlyEnd
from memframe.apply.operations import Groups, OperationLog, PendingCommit
from memframe.apply.queue import SendQueue
from memframe.apply.reconcile import Reconciliation
from memframe.apply.responses import Sender, WriteResponse, classify_error
from memframe.apply.run import Verification
from memframe.apply.workers import Interrupts, WorkerPool
from memframe.client.retry import RateLimiter, logger
from memframe.errors import AccessError, AuthError, JournalError, MemframeError, ProtocolError
from memframe.journal import WRITTEN, Operation
from memframe.plan.current import CurrentMemory, read_current
from memframe.secret import SecretBytes

INTENTS_PER_WORKER = 4
"""Intents that are committed together, for each worker; the more they are, the fewer commits are needed."""

READ_AHEAD = 100
"""Memories that are read again together: few enough that they are still fresh when their writes are sent."""

DRAIN_S = 5.0
"""Seconds that Ctrl-C waits for requests in flight; those without an answer by then count as unknown."""

LONGEST_WAIT_S = 0.5
"""Longest single wait for an answer, because on Windows Ctrl-C takes effect only after a wait."""

FLUSH_S = 0.05
"""Longest time that a result waits to share a commit of the journal."""

SendResult = WriteResponse | None
"""Response to an operation; None if it was not sent after all."""


class Engine:
    """Carry out one run; all memories of its plan were read at ``read_at``, or must be read again if it is None."""

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
        self._log, self._clock = log, runtime.clock
        self._groups = Groups(log)
        self._queue = SendQueue(log, clock=runtime.clock, read_at=read_at)
        self._pending = PendingCommit(log)
        self._reconciliation = Reconciliation(log, settle_s=settle_s, sleep=runtime.sleep)
        self._end = EarlyEnd(access, log.header.key_version)
        self._sender = Sender(access, log.header.run_id)
        self._pool: WorkerPool[SendResult] = WorkerPool(workers)
        self._pace = RateLimiter(workers, clock=runtime.clock, sleep=runtime.sleep, chance=runtime.chance)
        self._interrupts = Interrupts(defers=workers > 1)
        self._undecided: set[int] = set()
        """Operations without a plain success that await their decision; workers begin nothing meanwhile."""
        self._ids = {*log.ids_before, *(op.new_id for op in log if op.new_id)}
        """Ids of existing memories, which the service must not give to a new one."""
        self._left_unknown: set[int] = set()
        """Creates that stay unknown, because they cannot be told from others or may still be carried out late."""

    def run(self) -> tuple[Verification, dict[str, CurrentMemory], MemframeError | None]:
        """Carry out all that is possible; return what was read back, and the error that ended the run early."""
        with self._pool:
            self._reconcile()
            while not self._end and (due := self._find_due()):
                self._send(due)
                self._reconcile()
            if self._end:  # no further round will read what is still unknown, so it is settled now
                self._reconcile()
        waiting = ((op, self._groups.wait_reason(op)) for op in self._log.with_state("planned"))
        self._log.write([replace(op, error=why) for op, why in waiting if why])
        if not self._end.is_denied:
            self._end.recheck()
        if self._end.is_denied:
            return Verification(failure="access is denied"), {}, self._end.explain()
        return *self._reconciliation.read_back(self._end.access), self._end.explain()

    # -- what is due

    def _find_due(self) -> list[Operation]:
        due = self._find_sendable()
        if due:
            return due
        # a delete of a merge becomes due once what it waits for was read back as it was written
        try:
            has_verified = self._groups.verify(self._end.access)
        except MemframeError as error:
            self._end.note(error)
            return []
        return self._find_sendable() if has_verified else []

    def _find_sendable(self) -> list[Operation]:
        planned = self._log.with_state("planned")
        # a patch or delete that is still unknown was read again: its memory is as it was before
        planned += self._log.with_state("unknown", actions=("patch", "delete"))
        due = (op for op in planned if self._groups.is_due(op) and self._groups.block_reason(op) is None)
        return [op for op in due if self._queue.may_try(op.n)]

    # -- sending

    def _send(self, due: Iterable[Operation]) -> None:
        """Send operations and take their results, until all are done or the run has stopped.

        After Ctrl-C nothing more is sent, and `KeyboardInterrupt` is raised after a short wait for the requests in
        flight. A second Ctrl-C ends that wait.
        """
        self._queue.fill(operation.n for operation in due)
        with self._interrupts.defer():
            try:
                while self._queue or self._pool.n_busy:
                    self._interrupts.raise_if_any()
                    self._step()
            except KeyboardInterrupt:
                self._drain()
                self._pending.write()
                raise
            except JournalError:
                self._drain()  # so that a run resumed from the journal does not overlap with requests in flight
                raise

    def _step(self) -> None:
        n_taken = self._take_results(self._result_timeout_s())
        if self._end.is_recheck_due:
            with self._interrupts.allow():
                self._end.recheck()
        if self._end:
            self._recall()
            self._queue.clear()
        elif self._queue and not self._pool.n_busy:
            with self._interrupts.allow():
                self._pace.wait()
        leaving = self._take_sendable()
        for n in leaving:
            self._pending.add_intent(n)
        # results wait for others that may come soon, so that one commit takes them all; intents never wait
        may_gain_results = n_taken and self._pool.n_busy
        if leaving or not may_gain_results:
            self._pending.write()
        bodies = self._log.requests(leaving) if leaving else {}
        for n in leaving:
            self._pool.submit(n, partial(self._send_if_fresh, self._log[n], bodies.get(n)))

    def _result_timeout_s(self) -> float:
        """Return how long to wait for results, at most until something else may be sent or must be written."""
        if self._pending:
            return FLUSH_S
        has_room = self._queue and self._pool.n_busy < self._pace.limit
        return min(LONGEST_WAIT_S, self._pace.delay_s) if has_room else LONGEST_WAIT_S

    def _count_room(self) -> int:
        """Count the operations that may be sent now; none while a response without success awaits its decision."""
        n_busy, limit = self._pool.n_busy, self._pace.limit
        if self._pace.delay_s or self._undecided:
            return 0
        if not self._pace.is_at_full_speed or limit == 1:
            # one for each worker: more would have to be recalled if the pace slows down again
            return limit - n_busy
        # more only when few wait for a worker, so that many intents share one commit
        few_wait = n_busy <= limit + limit // 4
        return INTENTS_PER_WORKER * limit - n_busy if few_wait else 0

    def _take_sendable(self) -> list[int]:
        """Take from the queue the operations that may be sent now."""
        room = self._count_room()
        if room <= 0:
            return []
        if not self._queue.is_front_fresh(room) and not self._refresh_queue():
            return []
        leaving: list[int] = []
        while self._queue and len(leaving) < room:
            (n,) = self._queue.take(1)
            if self._groups.block_reason(self._log[n]) is None:
                leaving.append(n)
        return leaving

    def _refresh_queue(self) -> bool:
        """Read the memories at the front of the queue again; operations that must not be sent any more leave the queue.

        Return False if they could not be read: they stay in the queue, and the run waits or has stopped.
        """
        front = self._queue.take(READ_AHEAD)
        try:
            with self._interrupts.allow():
                self._refresh([self._pending.latest(n) for n in front if not self._queue.is_fresh(n)])
        except MemframeError as error:
            self._queue.put_back(front)
            if not self._may_read_again(error):
                self._end.note(error)
            return False
        self._queue.put_back([n for n in front if self._queue.is_fresh(n)])
        return True

    def _may_read_again(self, error: MemframeError) -> bool:
        """Slow down after a read that failed; return False if reading is refused for good, or the budget is spent."""
        match classify_error(error).kind:
            case "throttled":
                return self._pace.slow_down(None)
            case "unsent" | "unclear":
                return self._pace.back_off(None)
            case _:
                return False

    def _refresh(self, operations: Sequence[Operation]) -> None:
        """Read the memories of patches and deletes as they are now, and note what follows for the journal.

        Raises `MemframeError` if they cannot be read.
        """
        with_content = any(op.change.compares_content for op in operations)
        current = read_current(self._end.access, [str(op.id) for op in operations], with_content=with_content)
        for op in operations:
            memory = current.get(str(op.id))
            decision, moved = decide_after_reading(op, memory)
            if decision == "send" and memory is not None:
                self._queue.note_read(op.n)
                self._pending.add_backup(op.n, memory.blob)
            else:
                self._note(moved)

    def _send_if_fresh(self, operation: Operation, body: SecretBytes | None) -> SendResult:
        """Send an operation, in a worker, unless it should not be sent any more."""
        # the state may have changed while it waited for a worker
        if self._end or self._undecided or not self._queue.is_fresh(operation.n):
            return None
        response = self._sender.send(operation, body)
        if response.kind != "done":
            self._undecided.add(operation.n)
        return response

    def _requeue(self, unsent: Sequence[int]) -> None:
        """Put operations that were not sent after all back to the front of the queue."""
        for n in unsent:
            self._pending.withdraw_intent(n)
        self._queue.put_back(unsent)

    def _recall(self) -> None:
        """Requeue the operations that no worker has begun."""
        self._requeue(self._pool.recall())

    def _drain(self) -> None:
        """Wait up to `DRAIN_S` for the requests in flight, and send nothing more."""
        self._recall()
        self._queue.clear()
        deadline = self._clock() + DRAIN_S
        while self._pool.n_busy and (remaining_s := deadline - self._clock()) > 0:
            self._take_results(remaining_s)
        self._queue.clear()

    # -- results

    def _take_results(self, timeout_s: float) -> int:
        completed = self._pool.completed(timeout_s)
        for n, result in completed:
            if result is None:
                self._requeue([n])
            elif self._decide(n, result) == "again" and self._queue.may_try(n):
                self._queue.put_back([n])
            self._undecided.discard(n)
        if self._pace.delay_s or not self._pace.is_at_full_speed:
            self._recall()
        return len(completed)

    def _decide(self, n: int, response: WriteResponse) -> Decision:
        """Decide what follows, and note it for the next commit."""
        operation = self._log[n]
        if operation.action == "create":
            response = self._check_new_id(operation, response)
        decision, moved = decide(operation, response)
        if moved.ambiguous:
            self._queue.note_doubt(n)
        may_continue = True
        if decision == "stop":
            self._end.note(response.error, is_denied=response.kind != "key_changed")
        elif response.kind == "throttled":
            may_continue = self._pace.slow_down(response.wait_s)
        elif decision in {"again", "unknown"}:
            self._queue.note_failure(n)
            if response.is_http_failure:
                may_continue = self._pace.back_off(response.wait_s)
        if not may_continue:
            self._end.note(response.error)
        self._note(moved)
        return decision

    def _note(self, moved: Operation) -> None:
        """Note an operation in its new state for the next commit, and its effect on queue, pace and group."""
        self._pending.add(moved)
        if moved.state in WRITTEN:
            self._queue.note_success(moved.n)
            self._pace.speed_up()
        elif moved.state in {"rejected", "conflict"} and self._groups.note_failure(moved):
            self._recall()  # others of the group may be among them

    def _check_new_id(self, operation: Operation, response: WriteResponse) -> WriteResponse:
        """Refuse the id of another memory, as a service that sees no plain text cannot have merged equal memories."""
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
        """Settle the operations that may have been carried out, as far as the service shows it."""
        if self._end and not self._end.is_denied:
            self._end.recheck()
        if self._end.is_denied:
            return
        unknown = self._log.with_state("unknown")
        creates = [op for op in unknown if op.action == "create" and op.n not in self._left_unknown]
        others = [op for op in unknown if op.action != "create"]
        try:
            if creates:
                rekeyed = self._end.is_rekeyed
                self._reconciliation.settle_creates(self._end.access, creates, rekeyed=rekeyed)
            if others:
                self._refresh(others)
                self._pending.write()
        except MemframeError as error:
            why = f"could not find out whether it was written: {error}"
            unsettled = [self._log[op.n] for op in creates + others]
            self._log.write([replace(op, error=why) for op in unsettled if op.state == "unknown"])
            if isinstance(error, AccessError | AuthError):
                self._end.note(error)
        creates = [self._log[op.n] for op in creates]  # in their new states
        others = [self._log[op.n] for op in others]
        if creates or others:
            found = Counter(op.state for op in creates + others)
            counts = ", ".join(f"{n:,} {state}" for state, n in found.items())
            logger.info("Looked for writes that had no answer: %s.", counts)
        # a create that spent its attempts stays unknown even if no listing shows it: a late request may still succeed
        exhausted = [op for op in creates if op.state == "planned" and not self._queue.may_try(op.n)]
        self._log.write([replace(op, state="unknown") for op in exhausted])
        self._left_unknown |= {op.n for op in creates if op.state == "unknown"} | {op.n for op in exhausted}
