"""Preflight of a run: refuse what must not run, read the service again, and freeze the bodies for the journal."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from memframe.access import Access
from memframe.address import same_service
from memframe.audit.policy import Limits, Policy
from memframe.client.responses import same_id
from memframe.client.validation import refuse_unsendable
from memframe.display import number_of
from memframe.envelope import Envelope
from memframe.errors import ConfigError, Hint, JournalError, PlanError, StalePlanError, resume_hint
from memframe.journal import WRITTEN, Header, Journal, Operation, RunDirectory, RunNote
from memframe.keystore import LocalCipher
from memframe.plan import Plan
from memframe.plan.change import FIELDS, Change, format_counts, list_some
from memframe.plan.current import CurrentMemory, count_current, iter_current, read_current
from memframe.plan.permitted import check_limits, refuse_forbidden
from memframe.plan.plan import OF_FILE

MAX_WORKERS = 16


def check_options(workers: object, settle_s: object) -> None:
    """Refuse invalid options of a run."""
    if not isinstance(workers, int) or isinstance(workers, bool) or not 1 <= workers <= MAX_WORKERS:
        raise ConfigError(f"workers={workers!r}: give a whole number from 1 to {MAX_WORKERS}")
    if isinstance(settle_s, bool) or not isinstance(settle_s, int | float) or not 0 <= settle_s < math.inf:
        raise ConfigError(f"settle_s={settle_s!r}: give seconds from 0")


def check_plan(access: Access, plan: Plan, confirm: object, confirm_losses: object) -> None:
    """Raise `PlanError` if a plan is for another user or service, or has conflicts, unconfirmed deletes or losses."""
    refuse_elsewhere(access, "plan", plan.base_url, plan.user_id)
    not_writable = [change for change in plan.records if change.action in {"conflict", "invalid"}]
    if not_writable:
        rows = list_some([f"{change.label}: {change.reason}" for change in not_writable], "; ")
        raise PlanError(f"the plan has {format_counts(plan.counts)}: resolve them and plan again: {rows}")
    n_deletes = plan.counts.get("delete", 0)
    if confirm is None and n_deletes:
        memories = number_of(n_deletes, "memory", "memories")
        n_lost = len(plan.losses)
        values = number_of(n_lost, "value", "values")
        lost = f", and with them {values} that no other memory holds" if n_lost else ""
        raise PlanError(
            f"the plan deletes {memories}{lost}",
            hint=Hint(
                f"to continue, pass confirm={n_deletes}. ", f"to continue, give --confirm {n_deletes}. "
            )
            + (plan.undo_note or ""),
        )
    if confirm is not None and (confirm != n_deletes or isinstance(confirm, bool)):
        raise PlanError(
            f"the plan deletes {n_deletes:,}, and {confirm!r} was confirmed",
            hint=Hint("review plan.changes", "review the plan"),
        )
    _check_losses(plan, confirm_losses, is_confirmed=confirm is not None)


def _check_losses(plan: Plan, confirm_losses: object, *, is_confirmed: bool) -> None:
    """Raise `PlanError` if the values that deletes and merges lose are not confirmed.

    A confirmed number of deletes covers what they lose, because the message that asks for it names the losses. What a
    patch loses is an edit that somebody made; it must be confirmed only in a merge, whose text nobody may have seen.
    """
    if confirm_losses is None:
        deleted = {change.id for change in plan.writes if change.action == "delete"}
        groups = {change.group for change in plan.writes if change.action == "delete"} - {None}
        merged = {change.id for change in plan.writes if change.group in groups} - deleted
        asked = merged if is_confirmed else merged | deleted
        n_asked = int(plan.losses.id.isin(asked).sum()) if asked else 0
        if n_asked:
            n_all = len(plan.losses)
            raise PlanError(
                f"the plan loses {number_of(n_all, 'value', 'values')} that no other memory holds",
                hint=Hint(
                    f"review plan.losses, then pass confirm_losses={n_all}",
                    f"review the plan, then give --confirm-losses {n_all}",
                ),
            )
        return
    n_lost = len(plan.losses)
    if confirm_losses != n_lost or isinstance(confirm_losses, bool):
        raise PlanError(
            f"the plan loses {number_of(n_lost, 'value', 'values')} that no other memory holds, and "
            f"{confirm_losses!r} was confirmed",
            hint=Hint("review plan.losses", "review the plan"),
        )


def refuse_elsewhere(access: Access, what: str, base_url: str, user_id: str) -> None:
    """Raise `PlanError` for a plan or journal that is for a file, or for another user or service than the access."""
    if base_url.startswith(OF_FILE):
        raise PlanError(
            f"this {what} is for {base_url.removeprefix(OF_FILE)}, which no service holds",
            hint=Hint(
                "apply it with clean_file(path, plan=plan)", "apply it with memframe clean PATH --plan PLAN"
            ),
        )
    if not same_id(user_id, access.user_id):
        raise PlanError(
            f"this {what} is for user {user_id}, and the access for user {access.user_id}: open the access "
            f"for {user_id}"
        )
    if not same_service(base_url, access.client.base_url):
        raise PlanError(
            f"this {what} is for the service {base_url}, and the access for {access.client.base_url}: "
            f"connect to {base_url}"
        )


def refuse_repeated(directory: RunDirectory, cipher: LocalCipher, plan: Plan) -> None:
    """Refuse changes that an earlier run has begun, because a second run would create memories twice.

    Raises `PlanError`, which names the journal of that run, or `JournalError` if the journal of an unfinished run of
    the same user is missing or damaged, so that nobody knows what it has written.
    """
    note = directory.of_plan(plan.id)
    if note is not None:
        begun, away = "this plan was already applied, or its run was interrupted", _explain_absence(note)
        again = "to repeat it instead, make a new plan"
        if note.is_purged:
            raise PlanError(
                "this plan was already applied, and the journal of its run was purged since: to repeat it, make a new "
                "plan"
            )
        if away is None and directory.is_finished(note):
            path = str(note.place)
            undo = Hint(
                f"plan_undo(access, {path!r}) plans to undo it",
                f"memframe undo {shlex.quote(path)} plans to undo it",
            )
            raise PlanError("this plan was already applied", hint=undo + f"; {again}")
        if away is None:
            raise PlanError(begun, hint=resume_hint(note.place) + f"; {again}")
        look = "; if it is lost, check the memories first, as all or part of it may have been written; then "
        hint = resume_hint(note.journal or "PATH") + look + _forget_hint(note)
        raise PlanError(f"{begun}, and {away}", hint=hint)
    targets = {_target_key(change) for change in plan.writes}
    for note in directory.unfinished(plan.base_url, plan.user_id):
        shared = [
            change for change in _unsettled_changes(note, cipher, plan) if _target_key(change) in targets
        ]
        if shared:
            raise PlanError(
                f"an earlier run was interrupted, and {len(shared):,} changes of this plan were or may be made by it, "
                f"such as {shared[0].label}",
                hint=resume_hint(note.place) + "; or " + _forget_hint(note) + ", if they may exist twice",
            )


def _explain_absence(note: RunNote) -> str | None:
    """Say why a journal cannot be opened at its place, and what to do; None if it is there."""
    if note.journal is None:
        return (
            f"the note {note.file} on it, which says where its journal is, cannot be read: find the journal"
        )
    if note.journal.exists():
        return None
    return f"its journal is not at {note.journal}: bring it back, for example by connecting its disk"


def _forget_hint(note: RunNote) -> Hint:
    path = str(note.place)
    return Hint(
        f"purge_runs(journals=[{path!r}]) forgets that run",
        f"memframe runs --forget {shlex.quote(path)} forgets that run",
    )


def _unsettled_changes(note: RunNote, cipher: LocalCipher, plan: Plan) -> list[Change]:
    """Find the changes that a second run could repeat: creates that were or may be made, other writes that may be."""
    try:
        with Journal.open(note.place, cipher) as journal:
            operations = journal.operations()
    except JournalError as fault:
        unread = f"its journal cannot be read ({fault}): move it to another folder, or restore a copy of it"
        refusal = JournalError(
            f"a run for user {plan.user_id} at {plan.base_url} was interrupted, and {_explain_absence(note) or unread}",
            hint=resume_hint("PATH")
            + "; "
            + _forget_hint(note)
            + ", but what it wrote may then be written twice",
        )
        refusal.errno = fault.errno
        raise refusal from None
    return [
        op.change
        for op in operations
        if op.state in {"sending", "unknown"}
        or (op.action == "create" and op.state not in {"rejected", "conflict"})
    ]


def _target_key(change: Change) -> bytes:
    """Identify a change by its memory, or by the values of a new one."""
    return msgspec.json.encode(change.id or change.after, order="sorted")


def read_service_state(access: Access, plan: Plan) -> tuple[Access, dict[str, CurrentMemory], frozenset[str]]:
    """Read the state of the service, which must still be the one from which the plan was made.

    Returns
    -------
    access : Access
        The access with fresh credentials.
    current : dict of str to CurrentMemory
        The memories of the plan's patches and deletes, and those that they depend on.
    ids_before : frozenset of str
        Ids of all memories if the plan creates some, otherwise empty.

    Raises `StalePlanError` if the memories or the key have changed, and `AccessError` if the request is no longer
    approved.
    """
    access = access.renew()
    refuse_rekeyed(access, plan.key_version)
    ids = {i for change in plan.writes for i in (change.id, *change.depends_on) if i is not None}
    ids_before: set[str] = set()
    if any(change.action == "create" for change in plan.writes):
        current = {}
        for memory in iter_current(access):
            ids_before.add(memory.id)
            if memory.id in ids:
                current[memory.id] = memory
    else:
        with_content = any(change.compares_content for change in plan.writes)
        current = read_current(access, ids, with_content=with_content)
    plan.refuse_stale(current)
    restored = [f"memory {change.restores}" for change in plan.writes if change.restores in ids_before]
    if restored:
        raise StalePlanError(
            f"this plan restores memories that exist again: {list_some(restored)}; make a new plan"
        )
    return access, current, frozenset(ids_before)


def check_policy(access: Access, plan: Plan, policy: Policy, current: Mapping[str, CurrentMemory]) -> None:
    """Raise `PlanError` if a plan breaks a policy, for memories as the service has them or as they were loaded."""
    loaded = access.baseline().drop(columns="id")

    def states(memory_id: str) -> tuple[Mapping[str, Any], ...]:
        memory = current.get(memory_id)
        present = () if memory is None else ({name: memory.value(name) for name in FIELDS},)
        return (*present, dict(loaded.loc[memory_id])) if memory_id in loaded.index else present

    refuse_forbidden(plan, policy, states)
    check_limits(plan, policy.limits, lambda: count_current(access))


def check_rest(access: Access, operations: Sequence[Operation], policy: Policy, header: Header) -> None:
    """Raise `PlanError` if the unfinished part of a run breaks a policy; its limits apply to the whole run."""
    every = tuple(operation.change for operation in operations)
    rest = tuple(one.change for one in operations if one.status in {"planned", "unknown"})
    if not rest:
        return
    plan = Plan(
        records=rest,
        base_url=header.base_url,
        user_id=header.user_id,
        key_version=header.key_version,
        created_at=header.created_at,
    )
    current = read_current(access, [change.id for change in rest if change.id], with_content=False)
    n_gone = sum(one.action == "delete" and one.state in WRITTEN for one in operations)
    check_policy(access, plan, msgspec.structs.replace(policy, limits=Limits()), current)
    check_limits(
        msgspec.structs.replace(plan, records=every), policy.limits, lambda: count_current(access) + n_gone
    )


def refuse_rekeyed(access: Access, key_version: int) -> None:
    """Raise `StalePlanError` if content was or would be sealed under another key than the user's present one."""
    present = access.credentials.key_version
    if present != key_version:
        raise StalePlanError(
            f"the user's key has version {present} now, and the plan version {key_version}: open the access "
            "again, load, and make a new plan"
        )


def freeze_body(change: Change, user_id: str, envelope: Envelope | None) -> bytes | None:
    """Encode the body of a request without its memory key; seal content if there is an envelope.

    >>> freeze_body(Change(action="patch", id="m1", after={"title": "Tea", "summary": None}), "u1", None)
    b'{"user_id":"u1","title":"Tea","summary":null}'
    >>> freeze_body(Change(action="create", after={"content": "Likes tea", "summary": None}), "u1", None)
    b'{"user_id":"u1","content":"Likes tea"}'
    """
    if change.action == "delete":
        return None
    fields = {
        name: value for name, value in change.after.items() if value is not None or change.action == "patch"
    }
    refuse_unsendable(fields)
    if envelope is not None and "content" in fields and not change.verbatim:
        fields["content"] = envelope.seal(str(fields["content"]))
    return msgspec.json.encode({"user_id": user_id, **fields})
