"""The course of a run: reconcile what is unknown, send what is due, look again, until nothing is left to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from memframe.access import Access, with_state
from memframe.apply.books import Books
from memframe.apply.crew import Crew
from memframe.apply.dispatch import Dispatch
from memframe.apply.groups import Groups
from memframe.apply.interrupts import Interrupts
from memframe.apply.reconcile import Reconciliation, Traces, described
from memframe.apply.run import Verification
from memframe.apply.sender import Found, Sender
from memframe.apply.signs import Seen
from memframe.apply.start import refuse_rekeyed
from memframe.apply.verify import Keep, read_back
from memframe.client.retry import RateLimiter
from memframe.errors import AccessError, AuthError, MemframeError, StalePlanError
from memframe.journal import Header, Operation


@dataclass(frozen=True)
class Job:
    """What is to be carried out, and with what.

    Attributes
    ----------
    access : Access
        With the credentials of this moment.
    keep : callable
        Takes what was written and how it read back.
    header : Header
    books : Books
    traces : Traces
    workers : int
    settle_s : float
    read_at : float or None
        When all memories of the plan were read; None where that is long ago.
    """

    access: Access
    keep: Keep
    header: Header
    books: Books
    traces: Traces
    workers: int
    settle_s: float
    read_at: float | None = None


class Engine:
    """Carries out one run.

    Parameters
    ----------
    job : Job
    """

    def __init__(self, job: Job) -> None:
        runtime = job.access.client.runtime
        sleep, clock = runtime.sleep, runtime.clock
        self._access, self._header, self._books = job.access, job.header, job.books
        self._read_back = partial(
            read_back,
            books=job.books,
            traces=job.traces,
            settle_s=job.settle_s,
            sleep=sleep,
            keep=job.keep,
        )
        self._groups = Groups(job.books)
        self._reconciliation = Reconciliation(job.books, job.traces, settle_s=job.settle_s, sleep=sleep)
        self._crew: Crew[Seen | Found] = Crew(job.workers)
        self._dispatch = Dispatch(
            books=job.books,
            traces=job.traces,
            groups=self._groups,
            sender=Sender(job.access, job.header.run_id),
            pace=RateLimiter(job.workers, clock=clock, sleep=sleep, chance=runtime.chance),
            crew=self._crew,
            clock=clock,
            read_at={} if job.read_at is None else dict.fromkeys((op.n for op in job.books), job.read_at),
            watch=self._watch_key,
            interrupts=Interrupts(puts_off=job.workers > 1),
        )
        self._left_unknown: set[int] = set()
        self._moved: StalePlanError | None = None

    def carry_out(self) -> tuple[Verification, MemframeError | None]:
        """Do all that can be done; how it read back, and what ended it early."""
        self._compare_key(self._access)
        with self._crew:
            self._reconcile()
            while not self._dispatch.stopped and (due := self._due()):
                self._dispatch.send(due)
                self._reconcile()
            if self._dispatch.stopped:  # perhaps since: nothing is going to be read before it is sent again
                self._reconcile()
        self._note_held_back()
        if not self._dispatch.barred:
            self._watch_key()
        if self._dispatch.barred:
            return Verification(failure="nothing more may be read"), self._reason()
        return self._read_back(self._access), self._reason()

    # -- what is due

    def _due(self) -> list[Operation]:
        due = self._sendable()
        if due:
            return due
        try:
            return self._sendable() if self._groups.read_again(self._access) else []
        except MemframeError as error:
            self._stop(error)
            return []

    def _sendable(self) -> list[Operation]:
        untouched = self._books.those("planned")
        in_doubt = self._books.those("unknown", actions=("patch", "delete"))  # each is read before it is sent
        return [op for op in untouched + in_doubt if self._may_be_sent(op)]

    def _may_be_sent(self, operation: Operation) -> bool:
        is_due = self._groups.is_due(operation) and self._groups.held_back(operation) is None
        return is_due and self._dispatch.may_try(operation)

    def _note_held_back(self) -> None:
        reasons = {
            op.n: (op.standing, self._groups.reason_to_wait(op)) for op in self._books.those("planned")
        }
        self._books.write({n: replace(standing, error=why) for n, (standing, why) in reasons.items() if why})

    # -- what is unknown

    def _reconcile(self) -> None:
        """Settle what may have been carried out, as far as that can be seen."""
        if self._dispatch.stopped and not self._dispatch.barred:
            self._watch_key()
        if self._dispatch.barred:
            return
        unknown = self._books.those("unknown")
        creates = [op for op in unknown if op.action == "create" and op.n not in self._left_unknown]
        others = [op for op in unknown if op.action != "create" and not self._goes_on(op)]
        try:
            if creates:
                self._reconciliation.settle(self._access, creates, rekeyed=self._moved is not None)
            if others:
                self._reconciliation.read_again(self._access, others)
        except MemframeError as error:
            self._leave_unknown(creates + others, described(error))
            if isinstance(error, AccessError | AuthError):
                self._stop(error)
        self._left_unknown |= {op.n for op in creates if self._books[op.n].state == "unknown"}
        self._give_up([self._books[op.n] for op in creates])

    def _goes_on(self, operation: Operation) -> bool:
        """Whether an operation is going to be read and sent once more anyway."""
        may_go_on = not self._dispatch.stopped and self._groups.held_back(operation) is None
        return may_go_on and self._dispatch.may_try(operation)

    def _leave_unknown(self, operations: Iterable[Operation], why: str) -> None:
        left = [self._books[op.n] for op in operations if self._books[op.n].state == "unknown"]
        self._books.write({op.n: replace(op.standing, error=why) for op in left})

    def _give_up(self, creates: Iterable[Operation]) -> None:
        """What was sent too often stays in doubt, though nobody sees it: it may come late."""
        tired = [op for op in creates if op.state == "planned" and not self._dispatch.may_try(op)]
        self._books.write({op.n: replace(op.standing, state="unknown") for op in tired})
        self._left_unknown |= {op.n for op in tired}

    # -- what ends a run early

    def _stop(self, error: MemframeError) -> None:
        self._dispatch.stop(error, barred=isinstance(error, AccessError | AuthError))

    def _watch_key(self) -> None:
        """Ask whether the key is still the one that content was sealed under; that access may be refused shows, too."""
        try:
            renewed = self._access.renew()
        except (AccessError, AuthError) as refused:
            self._stop(refused)
        except MemframeError:
            return  # whoever cannot be reached now will not take writes either, and says so there
        else:
            self._compare_key(renewed)

    def _compare_key(self, access: Access) -> None:
        try:
            refuse_rekeyed(access, self._header.key_version)
        except StalePlanError as moved:
            self._access, self._moved = access, moved
            self._dispatch.stop(moved)

    def _reason(self) -> MemframeError | None:
        """Why the run ended early: another key explains any refusal; a refusal itself does not say in which state
        the request for access is.
        """
        stopped = self._moved or self._dispatch.stopped
        if not isinstance(stopped, AccessError):
            return stopped
        try:
            return with_state(self._access.client, self._access.request_id, stopped)
        except MemframeError:
            return stopped
