"""Groups: what must hold together fails together.

The deletes of a group wait until everything else of it is done and was read again as it was written, and what they
rely on as it has to be. As soon as one member cannot be done, those that have not been sent stay planned.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from memframe.access import Access
from memframe.apply.books import Books
from memframe.apply.verdicts import unlike
from memframe.current import Stored, read_stored
from memframe.journal import WRITTEN, Operation
from memframe.plan import leaning
from memframe.plan.wording import name_of

_FAILED = frozenset({"rejected", "conflict"})


class Groups:
    """The groups of one run.

    Parameters
    ----------
    books : Books
    """

    def __init__(self, books: Books) -> None:
        self._books = books
        self._members: dict[int, list[int]] = defaultdict(list)
        self._reasons: dict[int, str] = {}
        self._read: set[int] = set()
        for operation in books:
            if operation.change.group is not None:
                self._members[operation.change.group].append(operation.n)

    def held_back(self, operation: Operation) -> str | None:
        """Why a member of a group must not be sent any more; None where nothing speaks against it."""
        group = operation.change.group
        if group is None:
            return None
        broken = [op for op in self._of(group) if op.state in _FAILED]
        if broken and group not in self._reasons:
            self._reasons[group] = (
                f"held back, as {name_of(broken[0].change)} of its group is in state {broken[0].state}"
            )
        return self._reasons.get(group)

    def is_due(self, operation: Operation) -> bool:
        """Whether a member's turn has come: of a delete, when all others are done and were read again."""
        group = operation.change.group
        return group is None or operation.action != "delete" or group in self._read

    def read_again(self, access: Access) -> bool:
        """Look at what the deletes wait for, where all of it is done; whether any turn has come by it."""
        ready = [
            group
            for group in self._members.keys() - self._read - self._reasons.keys()
            if self._is_ready(group)
        ]
        keepers = [op for group in ready for op in self._keepers(group)]
        leaners = [op for group in ready for op in self._of(group) if op.change.relies_on]
        ids = [str(op.id) for op in keepers] + [
            memory_id for op in leaners for memory_id in op.change.relies_on
        ]
        stored = read_stored(access, ids) if ids else {}
        self._hold_back_unkept(keepers, stored)
        self._hold_back_forlorn(leaners, stored)
        self._read |= {group for group in ready if group not in self._reasons}
        return any(group in self._read for group in ready)

    def _hold_back_unkept(self, keepers: Iterable[Operation], stored: Mapping[str, Stored]) -> None:
        for op in keepers:
            there = stored.get(str(op.id))
            if there is None or unlike(op.change.after, there):
                reason = (
                    f"held back, as {name_of(op.change)} of its group does not read back as it was written"
                )
                self._reasons.setdefault(int(op.change.group or 0), reason)

    def _hold_back_forlorn(self, leaners: Iterable[Operation], stored: Mapping[str, Stored]) -> None:
        for op in leaners:
            for memory_id, fields in leaning(op.change, stored):
                reason = (
                    f"held back, as memory {memory_id}, which it relies on, was changed ({', '.join(fields)})"
                )
                self._reasons.setdefault(int(op.change.group or 0), reason)

    def reason_to_wait(self, operation: Operation) -> str | None:
        """Why a member of a group was never sent, in words."""
        group = operation.change.group
        if group is None:
            return None
        held_back = self.held_back(operation)
        if held_back is None and (undone := [op for op in self._keepers(group) if op.state not in WRITTEN]):
            return f"held back until {name_of(undone[0].change)} of its group is done"
        return held_back

    def _of(self, group: int) -> Iterable[Operation]:
        return (self._books[n] for n in self._members[group])

    def _keepers(self, group: int) -> list[Operation]:
        return [op for op in self._of(group) if op.action != "delete"]

    def _is_ready(self, group: int) -> bool:
        return all(op.state in WRITTEN for op in self._keepers(group))
