"""Reading back what a run has written, and looking for what was made twice."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from memframe.access import Access
from memframe.apply.books import Books
from memframe.apply.reconcile import Traces
from memframe.apply.run import Verification
from memframe.apply.verdicts import unlike
from memframe.current import Stored, read_stored
from memframe.errors import MemframeError
from memframe.journal import WRITTEN, Operation

Keep = Callable[[Sequence[Operation], Mapping[str, Stored]], None]
"""Takes what was written and how it read back."""


def read_back(
    access: Access,
    books: Books,
    traces: Traces,
    *,
    settle_s: float,
    sleep: Callable[[float], None],
    keep: Keep,
) -> Verification:
    """What the service holds of what was written.

    After a create that was sent twice it waits for ``settle_s`` before: its first request may come late. And it
    looks again after ``settle_s`` where something is not as it was written: a replica may lag behind.
    """
    written = books.those(*WRITTEN)
    if any(op.action == "create" and op.standing.in_doubt for op in written):
        sleep(settle_s)
    try:
        stored = _read(access, written, traces)
        found = _compared(written, stored, traces)
        if found.missing or found.unlike:
            sleep(settle_s)
            stored = _read(access, written, traces)
            found = _compared(written, stored, traces)
    except MemframeError as error:
        return Verification(failure=str(error))
    keep(written, stored)
    return found


def _read(access: Access, written: Sequence[Operation], traces: Traces) -> dict[str, Stored]:
    """What was written and, after creates, whatever else is new."""
    ids = {str(op.id) for op in written}
    if any(op.action == "create" for op in written):
        return {one.id: one for one in traces.listed(access, ids)}
    return read_stored(access, ids)


def _compared(written: Sequence[Operation], stored: Mapping[str, Stored], traces: Traces) -> Verification:
    creates = [op for op in written if op.action == "create"]
    fresh = [one for one in stored.values() if one.id not in traces.before] if creates else []
    missing, otherwise = [], []
    for op in written:
        there = stored.get(str(op.id))
        if there is None:
            missing += [str(op.id)] if op.action != "delete" else []
        elif op.action == "delete" or unlike(op.change.legible, there):
            otherwise.append(str(op.id))
    return Verification(
        n_checked=len(written),
        missing=tuple(missing),
        unlike=tuple(otherwise),
        duplicates=tuple(_duplicates(creates, fresh, traces.digest_of)),
    )


def _duplicates(
    creates: Sequence[Operation], fresh: Sequence[Stored], digest_of: Mapping[int, str]
) -> Iterable[tuple[str, ...]]:
    """Ids of memories that one create has made, or more memories of one content than were created."""
    ours = {digest_of[op.n] for op in creates if op.n in digest_of}
    by_digest: dict[str, list[str]] = defaultdict(list)
    for stored in fresh:
        if stored.sealed_digest in ours:
            by_digest[stored.sealed_digest].append(stored.id)
    if by_digest:
        return [tuple(ids) for ids in by_digest.values() if len(ids) > 1]
    n_made = Counter(str(op.change.after["content"]) for op in creates)
    by_text: dict[str, list[str]] = defaultdict(list)
    for stored in fresh:
        if stored.content is not None and stored.content in n_made:
            by_text[stored.content].append(stored.id)
    return [tuple(ids) for text, ids in by_text.items() if len(ids) > n_made[text]]
