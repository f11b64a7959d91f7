"""Plans made from what is stored: the inverse of a run, from its journal, and content to reseal with the newest key.

The comparison is three-way, as for edits: a field that others have changed since the run is a conflict in the plan and
is never overwritten. A field that already has its value from before the run needs no change.

A deleted memory keeps its id and times if the service can restore it (`Client.restore_days`). Otherwise it is created
again, with a new id and the date of the undo, because no client can set a time. The reason of the change names the old
id and date.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import replace

from memframe.access import Access
from memframe.address import same_service
from memframe.apply import Run, StrPath, journal_path, refuse_elsewhere
from memframe.client.responses import same_id
from memframe.envelope import Envelope
from memframe.errors import Hint, JournalError, PlanError, SealError, check_kind
from memframe.journal import WRITTEN, Journal, Operation, RunDirectory
from memframe.keystore import open_local_cipher
from memframe.plan import Plan, plan_of
from memframe.plan.cells import parse_times
from memframe.plan.change import FIELDS, Action, Change, Value, list_some, same_value
from memframe.plan.current import CurrentMemory, iter_current, read_current
from memframe.plan.edited_frame import label_of
from memframe.plan.plan import UTC_MINUTE
from memframe.secret import Secret, as_secret
from memframe.wire import MemoryBlob


def plan_undo(access: Access, journal_or_run: StrPath | Run, *, rows: Iterable[object] | None = None) -> Plan:
    """Plan to undo a run, completely or in part. Nothing is written.

    Parameters
    ----------
    access : Access
        Access to the same user's memories.
    journal_or_run : Path or Run
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
    {'restore': 2}
    >>> apply_plan(access, back).raise_for_failures()
    """
    check_kind("access", access, Access)
    runtime = access.client.runtime
    now = runtime.now()
    if isinstance(journal_or_run, Run) and not len(journal_or_run):
        return plan_of(access, (), created_at=now)  # a run without rows has no journal
    with Journal.open(
        journal_path(journal_or_run), runtime.open_local_cipher(), connect=runtime.connect
    ) as journal:
        refuse_elsewhere(access, "journal", journal.header.base_url, journal.header.user_id)
        undone = _written_operations(journal.operations(), rows)
        current = read_current(access, [str(operation.id) for operation in undone])
        age, window = now - journal.header.created_at, timedelta(days=access.client.restore_days)
        inverse = []
        for op in undone:
            memory = current.get(str(op.id))
            if op.action == "patch":
                inverse.append(_undo_patch(op, memory))
            elif op.action == "create" and memory is not None:
                inverse.append(_undo_create(op, memory))
            elif op.action == "delete" and memory is None:  # otherwise it exists again under its own id
                inverse.append(_undo_delete(op.change, journal.backup(op.n), restores=age < window))
    changes = without_repeats(access, filter(None, inverse))
    return plan_of(access, changes, created_at=now)


def plan_id_of(journal: StrPath | Run) -> str:
    """Return the id of the plan that a run has carried out."""
    with Journal.open(journal_path(journal), open_local_cipher()) as record:
        return record.header.plan_id


def _written_operations(operations: list[Operation], rows: Iterable[object] | None) -> list[Operation]:
    """Return the operations of the rows asked for that were carried out."""
    if rows is not None:
        labels = {label_of(row) for row in rows}
        missing = labels - {operation.change.row for operation in operations}
        if missing:
            named = [f"row {label}" for label in sorted(missing, key=str)]
            raise PlanError(f"the run has no {list_some(named)}: run.outcomes.row has the labels of its rows")
        operations = [operation for operation in operations if operation.change.row in labels]
    unknown = [op.change.label for op in operations if op.status == "unknown"]
    if unknown:
        raise PlanError(
            f"it is not known yet whether {list_some(unknown)} was written",
            hint=Hint("resume_run() finds out, then undo", "memframe resume finds out, then undo"),
        )
    return [operation for operation in operations if operation.state in WRITTEN]


def _undo_patch(operation: Operation, memory: CurrentMemory | None) -> Change | None:
    """Make the patch that sets the old values, or a conflict if the memory was changed since; None if it has them."""
    done = operation.change
    old = {name: done.before[name] for name in done.after if name in done.before}
    if memory is None:
        return _make_change(done, "conflict", {}, old, "deleted since the run")
    old = {name: old[name] for name in memory.find_differences(old)}
    present = {name: memory.value(name) for name in old}
    moved = _explain_changes(operation, memory, old)
    if moved:
        return _make_change(done, "conflict", present, old, moved)
    return _make_change(done, "patch", present, old, "undoes a patch") if old else None


def _undo_create(operation: Operation, memory: CurrentMemory) -> Change:
    """Make the delete of a memory that the run created, or a conflict if the memory was changed since."""
    done = operation.change
    held = {name: memory.value(name) for name in FIELDS if name != "content" or memory.error is None}
    moved = _explain_changes(operation, memory, done.plain)
    if moved:
        return _make_change(done, "conflict", held, {}, moved, id=memory.id)
    sealed = None if memory.error is None else memory.sealed_digest
    return _make_change(done, "delete", held, {}, "undoes a create", id=memory.id, sealed=sealed)


def _undo_delete(done: Change, blob: MemoryBlob | None, *, restores: bool) -> Change:
    """Make the create of a memory that the run deleted; content that no key opened is sent as it was stored."""
    held: dict[str, Value] = {
        name: value for name, value in done.before.items() if value is not None and value != ()
    }
    is_sealed = done.sealed is not None
    if is_sealed:
        held["content"] = None if blob is None else blob.content
    if held.get("content") is None:
        why = "it held no content, which a memory needs"
        return _make_change(done, "conflict", {}, held, why)
    (created_at,) = parse_times([blob.created_at if blob else None])
    date = format_date(created_at)
    reason = (
        f"created again: it was memory {done.id}, created {date}; it gets a new id and the date of the undo"
    )
    if restores:
        reason = f"restores memory {done.id}, created {date}, with its id and dates"
    return _make_change(done, "create", {}, held, reason, id=None, verbatim=is_sealed, restores=done.id)


def format_date(at: np.datetime64) -> str:
    """Format a time for the reason of a change."""
    return "at an unknown time" if np.isnat(at) else pd.Timestamp(at).strftime(UTC_MINUTE)


def _make_change(
    done: Change, action: Action, before: dict[str, Value], after: dict[str, Value], reason: str, **more: Any
) -> Change:
    """Make a change of the same memory, in the same group and with the same texts hidden."""
    same = {"row": done.row, "id": done.id, "group": done.group, "hidden": done.hidden, "name": done.name}
    return Change(action=action, before=before, after=after, reason=reason, **(same | more))


def _explain_changes(operation: Operation, memory: CurrentMemory, names: Iterable[str]) -> str | None:
    """Name the fields that no longer hold what the run wrote, as it was sent or as the service normalized it."""
    written, kept = operation.change.after, operation.normalized
    moved = [
        name
        for name in memory.find_differences({name: written[name] for name in names})
        if not (name in kept and same_value(name, memory.value(name), kept[name]))
    ]
    return f"changed since the run: {', '.join(moved)}" if moved else None


def without_repeats(access: Access, changes: Iterable[Change]) -> list[Change]:
    """Leave out restores of memories that an earlier run created again under new ids."""
    changes = list(changes)
    sought = {change.restores for change in changes if change.restores}
    made: dict[str, list[str]] = defaultdict(list)
    for operation in _earlier_creates(access) if sought else ():
        if operation.restores in sought and operation.id:
            made[operation.restores].append(operation.id)
    restored = read_current(access, [memory_id for ids in made.values() for memory_id in ids])
    return [change for change in changes if restored.keys().isdisjoint(made.get(change.restores or "", ()))]


def _earlier_creates(access: Access) -> Iterator[Operation]:
    """Yield the creates that runs of this user have carried out, as far as their journals are kept.

    Runs of other users and services are skipped, because ids that are plain numbers occur in several of them.
    """
    runtime, operations = access.client.runtime, []
    cipher = runtime.open_local_cipher()
    for path in RunDirectory(runtime.folder).journals():
        try:
            with Journal.open(path, cipher) as journal:
                header = journal.header
                is_ours = same_id(header.user_id, access.user_id) and same_service(
                    header.base_url, access.client.base_url
                )
                operations = journal.operations() if is_ours else []
        except JournalError:
            # damaged or in use: skip it, because the caller did not ask for this journal
            continue
        yield from (op for op in operations if op.action == "create" and op.state in WRITTEN)


# -- after a change of key

_VERSION = re.compile(r"mf1\.(0|[1-9][0-9]{0,8})\.")
"""Beginning of our own layout, the only one that names the version of its key."""

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
    now = access.client.runtime.now()
    keys = [*_with_versions(old_keys)]

    @functools.cache
    def envelope_of(number: int, version: int) -> Envelope:
        return access.envelope.rekey(keys[number][1], version)

    for number in range(len(keys)):  # refuses a malformed key before anything is read
        try:
            envelope_of(number, 0)
        except SealError as refused:
            raise SealError(f"number {number + 1} of the older keys: {refused}") from None
    missing = "none of the older keys opens it either" if keys else "pass the older key in old_keys"
    records = []
    for memory in iter_current(access):
        sealed = memory.blob.content
        if memory.content is not None or sealed is None:
            continue
        named = _VERSION.match(sealed)
        default = int(named[1]) if named else access.credentials.key_version
        opened = (
            envelope_of(number, default if version is None else version).open_many([sealed]).plain[0]
            for number, (version, _) in enumerate(keys)
        )
        content = next((plain.decode() for plain in opened if plain is not None), None)
        change = Change(
            action="patch",
            id=memory.id,
            after={} if content is None else {"content": content},
            reason="sealed with an older key",
            sealed=memory.sealed_digest,
        )
        if content is None:
            change = replace(change, action="invalid", reason=f"{memory.error}; {missing}")
        records.append(change)
    return plan_of(access, records, created_at=now)


def _with_versions(old_keys: OldKeys | None) -> Iterator[tuple[int | None, Secret]]:
    if isinstance(old_keys, str | Secret):
        raise PlanError("old_keys is a single key: pass a list of keys, or a mapping of versions to keys")
    if isinstance(old_keys, Mapping):
        yield from ((version, as_secret(key)) for version, key in old_keys.items())
    else:
        yield from ((None, as_secret(key)) for key in old_keys or ())
