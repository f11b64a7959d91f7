"""Read what a run has written: find unknown creates, read everything back, update baselines.

A create is absent if two complete listings that begin at least ``settle_s`` apart do not show it. Only then are the
same bytes sent again, with the same idempotency key.

Sealed content is unique because of its random nonce. If the service stores it unchanged, equal bytes prove that a
create was carried out, and a complete listing without them proves that it was not. If the service seals content again,
or was sent plain text, plain text is compared among the memories that did not exist before the run, and counted: two
equal creates need two memories.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

import msgspec
import pandas as pd
from msgspec.structs import replace

from memframe.access import Access
from memframe.apply.operations import OperationLog
from memframe.apply.run import Verification
from memframe.client.responses import decode
from memframe.errors import MemframeError
from memframe.frames import TIME
from memframe.journal import WRITTEN, Operation
from memframe.plan.current import CurrentMemory, digest_of, iter_current, read_current

N_TOGETHER = 500
"""Number of bodies that are read from the journal at a time."""


class _Content(msgspec.Struct):
    content: str


class Reconciliation:
    """Settle the unknown operations of one run, and read back the others."""

    def __init__(self, log: OperationLog, *, settle_s: float, sleep: Callable[[float], None]) -> None:
        self._log, self._settle_s, self._sleep = log, settle_s, sleep
        self._digest_of: dict[int, str] = {}
        """Digests of sealed contents, by the number of the create; empty for plain text."""
        creates = [op.n for op in log if op.action == "create"] if log.header.encrypt else []
        for first in range(0, len(creates), N_TOGETHER):
            for n, body in log.requests(creates[first : first + N_TOGETHER]).items():
                self._digest_of[n] = digest_of(decode(body, _Content, what="the journal").content)
        self._earlier = {op.n for op in log.with_state(*WRITTEN)}
        """Operations that an earlier process wrote: if their memories are as before, they were undone since."""

    def settle_creates(self, access: Access, unknown: Sequence[Operation], *, rekeyed: bool) -> None:
        """Find the memories that unknown creates have made; other creates are planned again, or stay unknown.

        If the user was ``rekeyed``, the service has sealed everything again, so that only plain text can be compared.
        Raises `MemframeError` if a listing is incomplete, because nothing follows from it.
        """
        digest_of = {} if rekeyed else self._digest_of
        unmatched, _ = self._match_listed(access, unknown, digest_of)
        if not unmatched:
            return
        self._sleep(self._settle_s)
        unmatched, undecided = self._match_listed(access, unmatched, digest_of)
        doubt = "there are new memories that cannot be decrypted: this may be one of them"
        self._log.write(
            replace(op, error=doubt) if op.n in undecided else replace(op, state="planned")
            for op in unmatched
        )

    def read_back(self, access: Access) -> tuple[Verification, dict[str, CurrentMemory]]:
        """Read what was written, compare it, and look for duplicates.

        If a create was sent twice, wait ``settle_s`` first, because its first request may be carried out late. If
        something is not as it was written, read once more after ``settle_s``, because a replica may lag behind.
        """
        written = self._log.with_state(*WRITTEN)
        if any(op.action == "create" and op.ambiguous for op in written):
            self._sleep(self._settle_s)
        try:
            found, current = self._verify(access, written)
            if found.missing or found.unlike or found.undone:
                self._sleep(self._settle_s)
                found, current = self._verify(access, written)
        except MemframeError as error:
            return Verification(failure=str(error)), {}
        return found, current

    def _list_new(self, access: Access, also: Container[str] = ()) -> list[CurrentMemory]:
        """List all memories that did not exist before the run, and those with the ids ``also``."""
        before = self._log.ids_before
        return [memory for memory in iter_current(access) if memory.id not in before or memory.id in also]

    def _match_listed(
        self, access: Access, unknown: Sequence[Operation], digest_of: Mapping[int, str]
    ) -> tuple[list[Operation], set[int]]:
        """Match creates with the memories of a listing; return unmatched creates, and the numbers of undecided ones."""
        taken = {op.new_id for op in self._log if op.state in WRITTEN and op.new_id}
        found, undecided = match(unknown, self._list_new(access), digest_of=digest_of, taken=taken)
        self._log.write(
            replace(self._log[n], state="recovered", new_id=memory_id, error=None)
            for n, memory_id in found.items()
        )
        return [op for op in unknown if op.n not in found], undecided

    def _verify(
        self, access: Access, written: Sequence[Operation]
    ) -> tuple[Verification, dict[str, CurrentMemory]]:
        ids = {str(op.id) for op in written}
        creates = [op for op in written if op.action == "create"]
        if creates:  # with all other new memories, among which duplicates may be
            current = {memory.id: memory for memory in self._list_new(access, ids)}
        else:
            with_content = any(op.change.compares_content for op in written)
            current = read_current(access, ids, with_content=with_content)
        found: dict[str, list[str]] = {"missing": [], "unlike": [], "undone": []}
        for op in written:
            memory = current.get(str(op.id))
            if _is_as_written(op, memory):
                continue
            if op.n in self._earlier and _is_as_before(op, memory):
                found["undone"].append(str(op.id))
            else:
                found["missing" if memory is None else "unlike"].append(str(op.id))
        new = [memory for memory in current.values() if memory.id not in self._log.ids_before]
        return Verification(
            n_checked=len(written),
            duplicates=tuple(_duplicates(creates, new, self._digest_of)),
            **{what: tuple(ids) for what, ids in found.items()},  # type: ignore[arg-type]  # fields of ids
        ), current


def _is_as_written(op: Operation, memory: CurrentMemory | None) -> bool:
    """Return True if a memory is as an operation has written it; a deleted one must be gone."""
    if memory is None:
        return op.action == "delete"
    return op.action != "delete" and not memory.find_differences(op.change.plain)


def _is_as_before(op: Operation, memory: CurrentMemory | None) -> bool:
    """Return True if a memory is as it was before an operation; a created one must be gone."""
    if memory is None:
        return op.action == "create"
    return op.action != "create" and not memory.find_differences(op.change.before)


def match(
    unknown: Sequence[Operation],
    new: Sequence[CurrentMemory],
    *,
    digest_of: Mapping[int, str],
    taken: Iterable[str],
) -> tuple[dict[int, str], set[int]]:
    """Match unknown creates with the memories that are new since the run began and not taken by other creates.

    If one digest of the run is found, the service stores contents as they were sent.

    Returns
    -------
    found : dict of int to str
        Ids of the memories that creates have made, by the number of the create.
    undecided : set of int
        Numbers of creates that cannot be decided, because some new memories cannot be read.
    """
    taken = set(taken)
    n_of = {digest_of[op.n]: op.n for op in unknown if op.n in digest_of}
    found: dict[int, str] = {}
    for memory in new if n_of else ():
        n = n_of.get(memory.sealed_digest)
        if n is not None and memory.id not in taken:
            found.setdefault(n, memory.id)
    rest = [op for op in unknown if op.n not in found]
    ours = frozenset(digest_of.values())
    if not rest or any(memory.sealed_digest in ours for memory in new):
        return found, set()
    free = [memory for memory in new if memory.id not in taken | set(found.values())]
    found |= _match_by_text(rest, free)
    is_legible = all(memory.error is None for memory in free)
    return found, set() if is_legible else {op.n for op in rest if op.n not in found}


def _match_by_text(unknown: Sequence[Operation], free: Sequence[CurrentMemory]) -> dict[int, str]:
    """Match creates by all fields first, then by content alone, because a service may normalise other fields."""
    of_content: dict[str | None, list[CurrentMemory]] = defaultdict(list)
    for memory in free:
        of_content[memory.content].append(memory)
    found: dict[int, str] = {}
    for is_exact in (True, False):
        for op in unknown:
            candidates = of_content[str(op.change.after["content"])]
            fitting = (m for m in candidates if not (is_exact and m.find_differences(op.change.plain)))
            if op.n not in found and (made := next(fitting, None)):
                found[op.n] = made.id
                candidates.remove(made)
    return found


def _duplicates(
    creates: Sequence[Operation], new: Sequence[CurrentMemory], digest_of: Mapping[int, str]
) -> Iterator[tuple[str, ...]]:
    """Find memories that one create has made, or memories with one content if there are more than its creates."""
    n_of = Counter(digest_of[op.n] for op in creates if op.n in digest_of)
    key_of: Callable[[CurrentMemory], str | None] = attrgetter("sealed_digest")
    if not any(memory.sealed_digest in n_of for memory in new):  # sealed again by the service, or plain text
        n_of, key_of = Counter(str(op.change.after["content"]) for op in creates), attrgetter("content")
    ids_of: dict[str, list[str]] = defaultdict(list)
    for memory in new:
        if (key := key_of(memory)) is not None and key in n_of:
            ids_of[key].append(memory.id)
    yield from (tuple(ids) for key, ids in ids_of.items() if len(ids) > n_of[key])


def update_baseline(
    access: Access, written: Sequence[Operation], current: Mapping[str, CurrentMemory]
) -> None:
    """Update the baselines of patched memories, in the fields that were written and in no other.

    Then editing the same frame once more does not conflict with the user's own run. What somebody else has written
    meanwhile was read back, but the user has not seen it, so it stays a conflict. Frames that were loaded before keep
    their own baseline, found by their older ``updated_at``.
    """
    patched = {str(op.id): op.change.plain for op in written if op.action == "patch" and op.id in current}
    if not patched or not access.has_baselines:
        return
    baseline = access.baseline()
    rows = baseline.loc[baseline.index.isin(patched)].copy()
    if rows.empty:
        return
    fields = [patched[memory_id] for memory_id in rows.index]
    for name in {name for after in fields for name in after}:
        cells = rows[name].astype(object).tolist()
        values = [after.get(name, cell) for after, cell in zip(fields, cells, strict=True)]
        rows[name] = pd.Series(values, index=rows.index, dtype=rows[name].dtype)
    times = TIME.join([TIME.chunk([current[memory_id].blob.updated_at for memory_id in rows.index])])
    access.keep_baseline(rows.assign(updated_at=times.array).reset_index(drop=True))
