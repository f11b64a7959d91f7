"""Plans made of what is stored: the inverse of a run, from its journal; and content to seal with the newest key.

Three-way again: what somebody else has changed since the run is a conflict in the plan, never overwritten. What
is already as it was before the run needs nothing.

A deleted memory comes back with its id and times where the service offers that (`Client.restore_days`). Otherwise
it is made anew: with a new id, and dated of the day of the undo, as no client can set a time. The reason of the
change names the old id and date.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

import pandas as pd

from memframe.access import Access
from memframe.address import same_service
from memframe.apply import Run, StrPath, path_in, refuse_elsewhere
from memframe.client.responses import same_id
from memframe.envelope import Envelope
from memframe.errors import Hint, JournalError, PlanError, SealError, check_kind
from memframe.journal import WRITTEN, Header, Journal, Operation, RunDirectory
from memframe.plan import Plan, plan_of
from memframe.plan.cells import parse_times
from memframe.plan.change import FIELDS, Action, Change, Label, Value, list_some, same_value
from memframe.plan.current import CurrentMemory, iter_current, read_current
from memframe.plan.edited_frame import label_of
from memframe.plan.plan import UTC_MINUTE
from memframe.secret import Secret, as_secret
from memframe.wire import MemoryBlob

Fields = dict[str, Value]

_MADE_ANEW = "created again: it was memory "
"""Beginning of the reason in which journals of before `Change.restores` name the memory that a create brings back."""


class Source(NamedTuple):
    """The journal of the run that is undone, and whether the service offers to restore what it deleted."""

    journal: Journal
    restores: bool


def plan_undo(
    access: Access,
    journal_or_run: StrPath | Run,
    *,
    rows: Iterable[object] | None = None,
) -> Plan:
    """Plan to undo a run, completely or in part. Nothing is written.

    Parameters
    ----------
    access : Access
        To the same user's memories.
    journal_or_run : path or Run
        The journal of the run: ``run.journal``, or a path from `list_runs`.
    rows : iterable of labels, optional
        Labels of the rows to undo, as in ``run.outcomes.row``; by default all.

    Returns
    -------
    Plan
        Creates are undone by deletes, whose number `apply_plan` asks you to confirm. Deletes are undone by
        creates: the memory keeps its id and times if the service can restore it, as the embedded one does for
        30 days; otherwise it gets a new id and the date of the undo. ``changes.reason`` says which, with the
        old date, and ``run.outcomes`` shows the result. Undoing a patch sets ``updated_at`` to the time of the
        undo. Memories that have changed since the run have the action "conflict"; ``plan.without("conflict")``
        leaves them alone.

    Raises
    ------
    PlanError
        The run belongs to another user or service, or the result of a row is unknown: resume the run first.
    JournalError
        The journal is damaged, in use, or sealed with a key that is not here.

    Examples
    --------
    >>> from memframe import apply_plan, load_memories, plan_deletes
    >>> run = apply_plan(access, plan_deletes(access, load_memories(access, limit=2)), confirm=2)
    >>> back = plan_undo(access, run)
    >>> back.counts
    {'create': 2}
    >>> apply_plan(access, back).raise_for_failures()
    """
    check_kind("access", access, Access)
    runtime = access.client.runtime
    moment = runtime.now()
    if isinstance(journal_or_run, Run) and not len(journal_or_run):
        return plan_of(access, (), created_at=moment)  # it had nothing to do, and has no journal
    with Journal.open(
        path_in(journal_or_run), runtime.open_local_cipher(), connect=runtime.connect
    ) as journal:
        refuse_elsewhere(access, "journal", journal.header.base_url, journal.header.user_id)
        undone = _written_operations(journal.operations(), rows)
        now = read_current(access, [str(operation.id) for operation in undone])
        age, window = moment - journal.header.created_at, timedelta(days=access.client.restore_days)
        source = Source(journal, restores=age < window)
        inverse = [_INVERSE[op.action](op, now.get(str(op.id)), source) for op in undone]
    changes = without_repeats(access, filter(None, inverse))
    return plan_of(access, changes, created_at=moment)


def _written_operations(operations: list[Operation], rows: Iterable[object] | None) -> list[Operation]:
    """Return the operations that were carried out, of the rows that are asked for."""
    wanted = operations if rows is None else _of_rows(operations, [label_of(row) for row in rows])
    unknown = [op.change.label for op in wanted if op.status == "unknown"]
    if unknown:
        raise PlanError(
            f"it is not known yet whether {list_some(unknown)} was written",
            hint=Hint("resume_run() finds out, then undo", "memframe resume finds out, then undo"),
        )
    return [operation for operation in wanted if operation.state in WRITTEN]


def _of_rows(operations: list[Operation], labels: list[Label]) -> list[Operation]:
    missing = set(labels) - {operation.change.row for operation in operations}
    if missing:
        named = [f"row {label}" for label in sorted(missing, key=str)]
        raise PlanError(f"the run has no {list_some(named)}: run.outcomes.row has the labels of its rows")
    return [operation for operation in operations if operation.change.row in labels]


def _undo_patch(operation: Operation, now: CurrentMemory | None, _: Source) -> Change | None:
    """Set the old values, where the service still holds what the run has written."""
    done = operation.change
    old = {name: done.before[name] for name in done.after if name in done.before}
    if now is None:
        return _conflict(done, {}, old, "deleted since the run by someone else")
    old = {name: value for name, value in old.items() if not _holds(now, name, value)}
    present = {name: now.value(name) for name in old}
    moved = [name for name in old if not _is_of_the_run(operation, now, name)]
    if moved:
        return _conflict(done, present, old, _changed_since(moved))
    return _inverse(done, "patch", present, old, "undoes a patch", id=done.id) if old else None


def _undo_create(operation: Operation, now: CurrentMemory | None, _: Source) -> Change | None:
    """Delete what the run has made, unless somebody went on writing it."""
    done = operation.change
    if now is None:
        return None
    held = {name: now.value(name) for name in FIELDS if name != "content" or now.error is None}
    moved = [name for name in done.plain if not _is_of_the_run(operation, now, name)]
    if moved:
        return _conflict(done, held, {}, _changed_since(moved), made=now.id)
    sealed = None if now.error is None else now.sealed_digest
    return _inverse(done, "delete", held, {}, "undoes a create", id=now.id, sealed=sealed)


def _undo_delete(operation: Operation, now: CurrentMemory | None, source: Source) -> Change | None:
    """A create of all that the deleted memory held; content that no key has opened as it was stored."""
    done = operation.change
    if now is not None:
        return None  # it is there under its own id
    held: Fields = {name: value for name, value in done.before.items() if value is not None and value != ()}
    blob = source.journal.backup(operation.n)
    if done.sealed is not None:
        held["content"] = None if blob is None else blob.content
    if held.get("content") is None:
        return _conflict(done, {}, held, "it held no content, without which a memory cannot be made")
    reason = _restore_reason(done.id, blob, restores=source.restores)
    is_sealed = done.sealed is not None
    return _inverse(done, "create", {}, held, reason, verbatim=is_sealed, restores=done.id)


_INVERSE: Mapping[Action, Callable[[Operation, CurrentMemory | None, Source], Change | None]] = {
    "patch": _undo_patch,
    "create": _undo_create,
    "delete": _undo_delete,
}


def _inverse(done: Change, action: Action, before: Fields, after: Fields, reason: str, **more: Any) -> Change:
    """Make the change that takes another one back, in the same group and with the same texts hidden."""
    return Change(
        action=action,
        row=done.row,
        before=before,
        after=after,
        reason=reason,
        group=done.group,
        hidden=done.hidden,
        **more,
    )


def _conflict(done: Change, before: Fields, after: Fields, why: str, *, made: str | None = None) -> Change:
    return _inverse(done, "conflict", before, after, why, id=made or done.id)


def _restore_reason(memory_id: str | None, blob: MemoryBlob | None, *, restores: bool) -> str:
    """Say how a deleted memory comes back, with its old date, which no field of the change shows."""
    (created_at,) = parse_times([blob.created_at if blob else None])
    date = "at an unknown time" if pd.isna(created_at) else pd.Timestamp(created_at).strftime(UTC_MINUTE)
    if restores:
        return f"restores memory {memory_id}, created {date}, with its id and dates"
    return (
        f"created again: it was memory {memory_id}, created {date}; it gets a new id and the date of the undo"
    )


def _holds(now: CurrentMemory, name: str, value: Value) -> bool:
    return same_value(name, now.value(name), value)


def _is_of_the_run(operation: Operation, now: CurrentMemory, name: str) -> bool:
    """Tell whether a field holds what the run has written, or what the service has answered that it made of it."""
    kept = operation.normalized
    return _holds(now, name, operation.change.after[name]) or (name in kept and _holds(now, name, kept[name]))


def _changed_since(moved: list[str]) -> str:
    return f"changed since the run by someone else: {', '.join(moved)}"


def without_repeats(access: Access, changes: Iterable[Change]) -> list[Change]:
    """Leave out restores that an earlier run has made, of memories that are there again under new ids."""
    changes = list(changes)
    sought = {change.restores for change in changes if change.restores}
    made: dict[str, list[str]] = defaultdict(list)
    for operation in _earlier_creates(access) if sought else ():
        deleted = _deleted_of(operation.change)
        if deleted and deleted in sought and operation.id:
            made[deleted].append(operation.id)
    there = read_current(access, [memory_id for ids in made.values() for memory_id in ids])
    return [change for change in changes if there.keys().isdisjoint(made.get(change.restores or "", ()))]


def _deleted_of(change: Change) -> str | None:
    """Return the id of the deleted memory that a create brings back."""
    reason = change.reason or ""
    return change.restores or (reason.removeprefix(_MADE_ANEW) if reason.startswith(_MADE_ANEW) else None)


def _earlier_creates(access: Access) -> Iterator[Operation]:
    """Return the creates that runs of this user have done, as far as their journals are kept.

    Of no other user or service: where ids are mere numbers, one id is a memory of each.
    """
    runtime = access.client.runtime
    cipher = runtime.open_local_cipher()
    for path in RunDirectory(runtime.folder).journals():
        try:
            with Journal.open(path, cipher) as journal:
                operations = journal.operations() if _is_of(access, journal.header) else []
        except (
            JournalError
        ):  # damaged or in use: it says nothing, and another run's journal is not what was asked for
            continue
        yield from (op for op in operations if op.action == "create" and op.state in WRITTEN)


def _is_of(access: Access, header: Header) -> bool:
    return same_id(header.user_id, access.user_id) and same_service(header.base_url, access.client.base_url)


# -- after a change of key

_VERSION = re.compile(r"mf1\.(0|[1-9][0-9]{0,8})\.")
"""Beginning of our own layout, which alone binds the version of its key."""

OldKeys = Mapping[int, Secret | str] | Iterable[Secret | str]


def plan_reseal(access: Access, *, old_keys: OldKeys | None = None) -> Plan:
    """Plan to seal again, with the newest key, all content that is sealed with older keys.

    For services that leave this to the application when a key changes. Open the access after the change.
    Content that is already sealed with the newest key, or is not sealed at all, is left alone, so planning
    again after an interrupted run covers the rest.

    Parameters
    ----------
    access : Access
    old_keys : mapping of int to Secret, or iterable of Secret, optional
        The older keys by version, or a collection of all of them; as hexadecimal text.

    Returns
    -------
    Plan
        A patch of the content of each such memory. If no key opens the content, the change has the action
        "invalid" and a reason, and cannot be applied: ``plan.without("invalid")`` leaves these out.

    Raises
    ------
    SealError
        A key is not of the known form.

    Examples
    --------
    >>> plan_reseal(access).counts  # all of it is under the newest key
    {}
    """
    check_kind("access", access, Access)
    moment = access.client.runtime.now()
    keys = _OlderKeys(access.envelope, old_keys, newest=access.credentials.key_version)
    records = [_reseal(memory, keys) for memory in iter_current(access) if _is_unopened(memory)]
    return plan_of(access, records, created_at=moment)


def _is_unopened(memory: CurrentMemory) -> bool:
    return memory.content is None and memory.blob.content is not None


def _reseal(memory: CurrentMemory, keys: _OlderKeys) -> Change:
    content = keys.open(memory.blob.content or "")
    if content is None:
        return Change(
            action="invalid",
            id=memory.id,
            reason=f"{memory.error}; {keys.failure}",
            sealed=memory.sealed_digest,
        )
    return Change(
        action="patch",
        id=memory.id,
        after={"content": content},
        reason="sealed with an older key",
        sealed=memory.sealed_digest,
    )


class _OlderKeys:
    """The older keys, each as the envelope that it opens."""

    def __init__(self, envelope: Envelope, old_keys: OldKeys | None, *, newest: int) -> None:
        self._keys = [*_with_versions(old_keys)]
        self._newest = newest
        self._envelope = functools.cache(
            lambda number, version: envelope.rekey(self._keys[number][1], version)
        )
        for number in range(len(self._keys)):  # a key of another form is refused before anything is read
            try:
                self._envelope(number, 0)
            except SealError as refused:
                raise SealError(f"number {number + 1} of the older keys: {refused}") from None

    @property
    def failure(self) -> str:
        """Say why none opened a text, beside what the newest key says of it."""
        return "none of the older keys opens it either" if self._keys else "pass the older key in old_keys"

    def open(self, sealed: str) -> str | None:
        """Open content with whichever key fits; None where none does."""
        named = _VERSION.match(sealed)
        default = int(named[1]) if named else self._newest
        for number, (version, _) in enumerate(self._keys):
            envelope = self._envelope(number, default if version is None else version)
            plain = envelope.open_many([sealed]).plain[0]
            if plain is not None:
                return plain.decode()
        return None


def _with_versions(old_keys: OldKeys | None) -> Iterator[tuple[int | None, Secret]]:
    if isinstance(old_keys, str | Secret):
        raise PlanError("old_keys is a single key: pass a list of keys, or a mapping of versions to keys")
    if isinstance(old_keys, Mapping):
        yield from ((version, as_secret(key)) for version, key in old_keys.items())
    else:
        yield from ((None, as_secret(key)) for key in old_keys or ())
