"""The books of a run: where each operation stands, in memory and in the journal, always both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from memframe.change import Action
from memframe.errors import JournalError
from memframe.journal import SETTLED, STATUSES, Journal, Operation, Standing, State, Status
from memframe.progress import Progress
from memframe.secret import SecretBytes
from memframe.wire import MemoryBlob


class Books:
    """Two books that must agree.

    Parameters
    ----------
    journal : Journal
    operations : iterable of Operation
        As the journal has them.
    bar : Progress
        Shows how many are settled, and how.
    """

    def __init__(self, journal: Journal, operations: Iterable[Operation], bar: Progress) -> None:
        self._journal, self._bar = journal, bar
        self._operations = {operation.n: operation for operation in operations}
        self._settled: Counter[State] = Counter()
        self._show(self)

    def __getitem__(self, n: int) -> Operation:
        return self._operations[n]

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._operations.values())

    def request(self, n: int) -> SecretBytes | None:
        """The body of a request as it was frozen."""
        return self._journal.request(n)

    def those(
        self, *states: State, actions: Iterable[Action] = ("create", "patch", "delete")
    ) -> list[Operation]:
        """Operations of these kinds that are in one of these states."""
        return [op for op in self if op.state in states and op.action in actions]

    def write(
        self, standings: Mapping[int, Standing], backups: Mapping[int, MemoryBlob] | None = None
    ) -> None:
        """Where operations stand now: first on the disk, then here."""
        if not standings and not backups:
            return
        moved = [Operation(n, self._operations[n].change, standing) for n, standing in standings.items()]
        self._journal.record(moved, backups)
        self._show(op for op in moved if self._operations[op.n].state not in SETTLED)
        self._operations |= {operation.n: operation for operation in moved}

    def _show(self, moved: Iterable[Operation]) -> None:
        settled = Counter(op.state for op in moved if op.state in SETTLED)
        if settled:
            self._settled += settled
            told = ", ".join(
                f"{self._settled[status]:,} {status}" for status in STATUSES if self._settled[status]
            )
            self._bar.text = f"changes ({told})"
            self._bar.step(settled.total())

    def balance(self) -> dict[Status, int]:
        """How many operations ended in each status; what is still under way counts as unknown.

        Raises
        ------
        JournalError
            The two books do not agree.
        """
        counts = counted(op.state for op in self)
        on_disk = counted(state for state, n in self._journal.counts().items() for _ in range(n))
        attempted = sum(n for status, n in counts.items() if status != "planned")
        if counts != on_disk or attempted + counts["planned"] != self._journal.header.n_changes:
            raise JournalError(
                f"the journal {self._journal.path} has {on_disk}, the run {counts}: they must be the same. Keep the "
                "journal, load the memories and compare"
            )
        return counts


def counted(states: Iterable[State]) -> dict[Status, int]:
    """How many of each status, in their order.

    >>> counted(["done", "sending", "done"])
    {'done': 2, 'recovered': 0, 'rejected': 0, 'conflict': 0, 'unknown': 1, 'planned': 0}
    """
    found = Counter("unknown" if state == "sending" else state for state in states)
    return {status: found[status] for status in STATUSES}
