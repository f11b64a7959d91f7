"""The operations of a run: their states in memory and journal, the next commit, and groups that hold together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from memframe.access import Access
from memframe.apply.decisions import state_unsent
from memframe.errors import JournalError
from memframe.journal import SETTLED, STATUSES, WRITTEN, Journal, JournalState, Operation, Status
from memframe.plan import broken_dependencies
from memframe.plan.change import Action
from memframe.plan.current import read_current
from memframe.progress import Progress
from memframe.secret import SecretBytes
from memframe.wire import MemoryBlob


class OperationLog:
    """The operations of one run; each new state is written to the journal first, and then kept here."""

    def __init__(self, journal: Journal, operations: Iterable[Operation], bar: Progress) -> None:
        self._journal, self._bar = journal, bar
        self.header, self.ids_before = journal.header, journal.ids_before
        self._operations = {operation.n: operation for operation in operations}
        self._settled: Counter[JournalState] = Counter()
        self._show(self)

    def __getitem__(self, n: int) -> Operation:
        return self._operations[n]

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._operations.values())

    def requests(self, places: Iterable[int]) -> dict[int, SecretBytes]:
        """Read the frozen bodies of requests, by the number of the operation; deletes have none."""
        return self._journal.requests(places)

    def with_state(
        self, *states: JournalState, actions: Iterable[Action] = ("create", "patch", "delete")
    ) -> list[Operation]:
        """Return the operations of some actions that are in one of some states."""
        return [op for op in self if op.state in states and op.action in actions]

    def write(self, operations: Iterable[Operation], backups: Mapping[int, MemoryBlob] | None = None) -> None:
        """Write new states of operations, in one commit."""
        moved = list(operations)
        if not moved and not backups:
            return
        self._journal.record(moved, backups)
        self._show(op for op in moved if self._operations[op.n].state not in SETTLED)
        self._operations |= {operation.n: operation for operation in moved}

    def _show(self, moved: Iterable[Operation]) -> None:
        settled = Counter(op.state for op in moved if op.state in SETTLED)
        if settled:
            self._settled += settled
            counts = (f"{n:,} {status}" for status in STATUSES if (n := self._settled[status]))
            self._bar.text = f"changes ({', '.join(counts)})"
            self._bar.step(settled.total())

    def balance(self) -> dict[Status, int]:
        """Count how many operations ended in each status.

        Raises `JournalError` if the journal does not have the same counts.
        """
        counts, on_disk = Counter(op.status for op in self), Counter(self._journal.counts())
        on_disk["unknown"] += on_disk.pop("sending", 0)
        if +counts != +on_disk or counts.total() != self._journal.header.n_changes:
            raise JournalError(
                f"the journal {self._journal.path} has {dict(+on_disk)}, the run {dict(counts)}: they must be the "
                "same. Keep the journal, load the memories and compare"
            )
        return {status: counts[status] for status in STATUSES}


class PendingCommit:
    """The next commit of the journal: operations in new states, and backups of memories that are about to change."""

    def __init__(self, log: OperationLog) -> None:
        self._log = log
        self._moved: dict[int, Operation] = {}
        self._backups: dict[int, MemoryBlob] = {}

    def __bool__(self) -> bool:
        return bool(self._moved)

    def latest(self, n: int) -> Operation:
        """Return the newest state of an operation, whether it is committed or not."""
        return self._moved.get(n, self._log[n])

    def add(self, moved: Operation) -> None:
        """Add the new state of an operation."""
        self._moved[moved.n] = moved

    def add_backup(self, n: int, memory: MemoryBlob) -> None:
        """Add a memory in its state before an operation changes it."""
        self._backups[n] = memory

    def add_intent(self, n: int) -> None:
        """Add the intent to send an operation after this commit."""
        operation = self.latest(n)
        self.add(replace(operation, state="sending", attempts=operation.attempts + 1))

    def withdraw_intent(self, n: int) -> None:
        """Withdraw the committed intent of an operation that was not sent after all."""
        operation = self._log[n]
        if operation.state == "sending":
            self.add(
                replace(operation, state=state_unsent(operation.ambiguous), attempts=operation.attempts - 1)
            )

    def write(self) -> None:
        """Write it all, in one commit."""
        self._log.write(self._moved.values(), self._backups)
        self._moved, self._backups = {}, {}


class Groups:
    """The groups of a run, whose members hold together.

    The deletes of a group wait until its other members are done and were read back as written, and until the memories
    that they depend on were read as expected. As soon as one member cannot be done, those not yet sent stay planned.
    """

    def __init__(self, log: OperationLog) -> None:
        self._log = log
        self._members: dict[int, list[int]] = defaultdict(list)
        self._reasons: dict[int, str] = {}
        """Reason why a group is held back; the first one counts."""
        self._verified: set[int] = set()
        """Groups whose deletes may be sent, because all that they wait for was read as expected."""
        for operation in log:
            if operation.change.group is not None:
                self._members[operation.change.group].append(operation.n)

    def block_reason(self, operation: Operation) -> str | None:
        """Return the reason why a member of a group must not be sent any more; None if it may be sent."""
        group = operation.change.group
        if group is None:
            return None
        if group not in self._reasons:
            for member in self._of(group):
                if member.state in {"rejected", "conflict"}:
                    self.note_failure(member)
        return self._reasons.get(group)

    def note_failure(self, operation: Operation) -> bool:
        """Block the group of an operation that cannot be done, if it has one."""
        self._block(operation, f"{operation.change.label} of its group is in state {operation.state}")
        return operation.change.group is not None

    def wait_reason(self, operation: Operation) -> str | None:
        """Return the reason why a member of a group was never sent."""
        reason, group = self.block_reason(operation), operation.change.group
        if reason is None and group is not None:
            undone = [op for op in self._prerequisites(group) if op.state not in WRITTEN]
            return f"held back until {undone[0].change.label} of its group is done" if undone else None
        return reason

    def is_due(self, operation: Operation) -> bool:
        """Return True if a member may be sent; a delete may be sent once its group is verified."""
        group = operation.change.group
        return group is None or operation.action != "delete" or group in self._verified

    def verify(self, access: Access) -> bool:
        """Read what deletes wait for in the groups in which all of it is done; return True if a delete became due."""
        ready = [
            group
            for group in self._members.keys() - self._verified - self._reasons.keys()
            if all(op.state in WRITTEN for op in self._prerequisites(group))
        ]
        prerequisites = [op for group in ready for op in self._prerequisites(group)]
        dependents = [op for group in ready for op in self._of(group) if op.change.depends_on]
        ids = {str(op.id) for op in prerequisites}.union(*(op.change.depends_on for op in dependents))
        current = read_current(access, ids) if ids else {}
        for op in prerequisites:
            memory = current.get(str(op.id))
            if memory is None or memory.find_differences(op.change.after):
                self._block(op, f"{op.change.label} of its group does not read back as it was written")
        for op in dependents:
            for memory_id, fields in broken_dependencies(op.change, current):
                self._block(op, f"memory {memory_id}, which it depends on, was changed ({', '.join(fields)})")
        due = {group for group in ready if group not in self._reasons}
        self._verified |= due
        return bool(due)

    def _block(self, operation: Operation, why: str) -> None:
        if operation.change.group is not None:
            self._reasons.setdefault(operation.change.group, f"held back, as {why}")

    def _of(self, group: int) -> list[Operation]:
        return [self._log[n] for n in self._members[group]]

    def _prerequisites(self, group: int) -> list[Operation]:
        return [op for op in self._of(group) if op.action != "delete"]
