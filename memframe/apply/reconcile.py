"""What became of creates whose answer got lost: looked for in complete listings, a page at a time.

Absent is what two complete listings do not show that begin at least ``settle_s`` apart. Only then are the same
bytes sent again, with the same idempotency key.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from memframe.access import Access
from memframe.apply.books import Books
from memframe.apply.matching import Matches, Sought, match
from memframe.apply.verdicts import after_reading
from memframe.client.responses import decode
from memframe.current import Stored, digest_of, iter_stored, read_stored
from memframe.errors import MemframeError
from memframe.journal import WRITTEN, Operation, Standing


class Traces(NamedTuple):
    """By what the creates of a run are known again.

    Attributes
    ----------
    before : frozenset of str
        Ids of the memories that were there before.
    digest_of : dict of int to str
        Digests of contents as they were sent, by the place of the create in the run; none for plain text.
    """

    before: frozenset[str]
    digest_of: dict[int, str]

    def listed(self, access: Access, also: Container[str] = ()) -> list[Stored]:
        """All memories that were not there before, by one complete listing, and those of some ids."""
        return [stored for stored in iter_stored(access) if stored.id not in self.before or stored.id in also]


class _Content(msgspec.Struct):
    content: str


def traces_of(books: Books, before: frozenset[str], *, encrypt: bool) -> Traces:
    """The traces that the creates in the books leave at the service."""
    creates = [operation.n for operation in books if operation.action == "create"] if encrypt else []
    bodies = ((n, books.request(n)) for n in creates)
    contents = {n: decode(body, _Content, what="the journal").content for n, body in bodies if body}
    return Traces(before, {n: digest_of(content) for n, content in contents.items()})


class Reconciliation:
    """Settles the unknown creates of one run.

    Parameters
    ----------
    books : Books
    traces : Traces
    settle_s : float
    sleep : callable
    """

    def __init__(
        self, books: Books, traces: Traces, *, settle_s: float, sleep: Callable[[float], None]
    ) -> None:
        self._books, self._traces = books, traces
        self._settle_s, self._sleep = settle_s, sleep

    def settle(self, access: Access, unknown: Sequence[Operation], *, rekeyed: bool = False) -> None:
        """Find what the unknown creates have made; the others are planned again, or stay unknown.

        Parameters
        ----------
        access : Access
        unknown : sequence of Operation
        rekeyed : bool
            Whether the service has sealed everything anew since, so that plain text alone tells.

        Raises
        ------
        MemframeError
            A listing did not come to its end; nothing follows from it.
        """
        sought = [
            Sought(op.n, op.change, None if rekeyed else self._traces.digest_of.get(op.n)) for op in unknown
        ]
        left = self._adopt(sought, self._look(access, sought, rekeyed))
        if left:
            self._sleep(self._settle_s)
            matches = self._look(access, left, rekeyed)
            self._release(self._adopt(left, matches), matches.undecided)

    def read_again(self, access: Access, unknown: Sequence[Operation]) -> None:
        """Settle patches and deletes that are not going to be sent once more, where reading them tells.

        Raises
        ------
        MemframeError
            They cannot be read.
        """
        stored = read_stored(access, [str(op.id) for op in unknown])
        judged = {op.n: after_reading(op, stored.get(str(op.id))) for op in unknown}
        self._books.write({n: standing for n, (move, standing) in judged.items() if move != "send"})

    def _look(self, access: Access, sought: Sequence[Sought], rekeyed: bool) -> Matches:
        taken = {op.standing.id for op in self._books if op.state in WRITTEN and op.standing.id}
        ours = frozenset() if rekeyed else frozenset(self._traces.digest_of.values())
        return match(sought, self._traces.listed(access), taken=taken, ours=ours)

    def _adopt(self, sought: Sequence[Sought], matches: Matches) -> list[Sought]:
        """Take over the memories that were found; what is left was not."""
        self._books.write(
            {
                n: replace(self._books[n].standing, state="recovered", id=memory_id, error=None)
                for n, memory_id in matches.found.items()
            }
        )
        return [one for one in sought if one.n not in matches.found]

    def _release(self, absent: Sequence[Sought], undecided: frozenset[int]) -> None:
        self._books.write({one.n: self._released(one.n, one.n in undecided) for one in absent})

    def _released(self, n: int, is_undecided: bool) -> Standing:
        standing = self._books[n].standing
        if not is_undecided:
            return replace(standing, state="planned")
        return replace(
            standing, error="new memories are there that cannot be opened: this may be one of them"
        )


def described(error: MemframeError) -> str:
    """Why it stays unknown, for the outcome of a row."""
    return f"it could not be found out whether it was written: {error}"
