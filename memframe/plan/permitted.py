"""Check a plan against a policy: refuse what it forbids, leave out what it protects or does not allow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pandas as pd

from memframe.access import Access
from memframe.audit.planted import without_hidden
from memframe.audit.policy import Allow, Limits, Policy, Protect, Step
from memframe.display import number_of
from memframe.errors import Hint, PlanError
from memframe.plan.change import FIELDS, Change, list_some, same_value
from memframe.plan.corrections import key_of
from memframe.plan.current import count_current, current_of, read_current
from memframe.plan.losses import count_redactions
from memframe.plan.plan import Plan

HeldFields = Mapping[str, Any]
States = Callable[[str], tuple[HeldFields, ...]]
"""(id of a memory) -> all its known states, such as the current one and the one that was loaded."""


def refuse_forbidden(plan: Plan, policy: Policy, states: States) -> None:
    """Raise `PlanError` if a plan would delete, redact or retag what a policy protects; it names memories and rules."""
    forbidden = _find_protected(plan, policy.protect, states)
    if forbidden:
        some = [f"memory {memory_id} is protected by {reason}" for memory_id, reason in forbidden.items()]
        raise PlanError(
            f"the plan breaks the policy: {list_some(some, '; ')}",
            hint=Hint(
                "leave them out with plan.leave_out(ids), or change [protect] in the policy",
                "plan again with --policy, which leaves them out, or change [protect] in the policy",
            ),
        )


def leave_out_protected(plan: Plan, policy: Policy, states: States) -> Plan:
    """Leave out the changes of a plan that a policy forbids, together with their groups."""
    for memory_id, reason in _find_protected(plan, policy.protect, states).items():
        if any(change.id == memory_id for change in plan.records):  # not yet left out with its group
            plan = plan.leave_out(
                memory_id, reason=f"protected by {reason}, or in one merge with such a memory"
            )
    return plan


def keep_policy(given: Access | pd.DataFrame, plan: Plan, policy: Policy) -> Plan:
    """Leave out changes of what a policy protects at this moment; raise `PlanError` if the plan exceeds its limits.

    For a file, pass the memories that were read from it instead of the access.
    """
    ids = [change.id for change in plan.writes if change.id]
    if isinstance(given, Access):
        current = read_current(given, ids, with_content=False)
    else:
        current = current_of(given[given["id"].isin(ids)])

    def states(memory_id: str) -> tuple[HeldFields, ...]:
        memory = current.get(memory_id)
        return () if memory is None else ({name: memory.value(name) for name in FIELDS},)

    plan = leave_out_protected(plan, policy, states)
    check_limits(
        plan, policy.limits, lambda: count_current(given) if isinstance(given, Access) else len(given)
    )
    return plan


def _find_protected(plan: Plan, protect: Protect, states: States) -> dict[str, str]:
    """Find the protected memories that a plan would change in a forbidden way, with the reason."""
    found: dict[str, str] = {}
    for change in plan.writes:
        if change.id is None:
            continue
        for state in (*states(change.id), change.before):
            reason = protect.find_reason(change.id, state)
            if reason is not None and (done := _describe_breach(change, protect, state)):
                found[change.id] = f"{reason} and would be {done}"
                break
    return found


def _describe_breach(change: Change, protect: Protect, state: HeldFields) -> str | None:
    if change.action == "delete":
        return "deleted"
    if "tags" in change.after and not same_value("tags", change.after["tags"], state.get("tags")):
        return "retagged"
    if any(_redacts(change, name) for name in FIELDS):
        return "redacted"
    if protect.find_reason(change.id, {**state, **change.after}) is None:
        return "left without protection"
    return None


def _redacts(change: Change, name: str) -> bool:
    return count_redactions(change.after.get(name)) > count_redactions(change.before.get(name))


def _strips(change: Change, name: str) -> bool:
    before = change.before.get(name)
    return isinstance(before, str) and change.after[name] == without_hidden(before) != before


def check_limits(plan: Plan, limits: Limits, count_memories: Callable[[], int]) -> None:
    """Raise `PlanError` if a plan does more than a policy allows; memories are counted only for a share."""
    n_writes = len(plan.writes)
    n_deletes = sum(change.action == "delete" for change in plan.writes)
    over = []
    if limits.changes is not None and n_writes > limits.changes:
        over.append(f"{number_of(n_writes, 'change', 'changes')} (changes = {limits.changes:,})")
    if limits.deletes is not None and n_deletes > limits.deletes:
        over.append(f"{number_of(n_deletes, 'delete', 'deletes')} (deletes = {limits.deletes:,})")
    if limits.delete_share is not None and n_deletes:
        n_memories = count_memories()
        if n_deletes > limits.delete_share * n_memories:
            over.append(
                f"deletes of {n_deletes:,} of {number_of(n_memories, 'memory', 'memories')} "
                f"(delete_share = {limits.delete_share:g})"
            )
    if over:
        raise PlanError(
            f"the plan exceeds [limits] of the policy: {', '.join(over)}",
            hint=Hint(
                "plan less, such as with plan.only(ids), or change the policy",
                "plan less, or change the policy",
            ),
        )


def leave_out_unallowed(plan: Plan, policy: Policy) -> Plan:
    """Leave out what a policy does not allow without a person, and what would lose a value that no other memory holds.

    For unattended jobs. `Plan.left` says why each change is left out.
    """
    lossy = {*plan.losses["id"]}
    merging = {change.group for change in plan.records if change.action == "patch"} - {None}
    deleting = {change.group for change in plan.records if change.action == "delete"} - {None}
    ids_of: defaultdict[str, list[str]] = defaultdict(list)
    refuses_creates = False
    for change in plan.records:
        steps = find_steps(change, is_merge=change.group in merging & deleting)
        reason = _explain_refusal(change, steps, policy.allow)
        if reason is None and change.id in lossy:
            reason = "would lose a value that no other memory holds"
        if reason is not None and (memory_id := key_of(change)):
            ids_of[reason].append(memory_id)
        elif reason is not None:
            refuses_creates = True
    cut = plan.without("create") if refuses_creates else plan
    for reason, ids in ids_of.items():
        remaining = {*map(key_of, cut.records)}  # some were left out with their groups
        cut = cut.leave_out([memory_id for memory_id in ids if memory_id in remaining], reason=reason)
    # again after a cut, because a change that was left out may have held a value that another one loses
    return plan if cut is plan else leave_out_unallowed(cut, policy)


def _explain_refusal(change: Change, steps: Collection[Step], allow: Allow) -> str | None:
    if unknown := sorted({*steps} - {*allow.actions}):
        return f"not in actions of [allow]: {', '.join(unknown)}"
    if not steps:
        return f"not to be applied: {change.action}"
    if allow.checks is None:
        return None
    others = sorted({*change.checks} - {*allow.checks})
    if others or not change.checks:
        return f"not in checks of [allow]: {', '.join(others) or 'planned by hand'}"
    return None


def find_steps(change: Change, *, is_merge: bool) -> tuple[Step, ...]:
    """Name what a change does, in the words of a policy.

    >>> find_steps(Change(action="patch", id="m1", after={"tags": ("tea",)}), is_merge=False)
    ('retag',)
    """
    if change.action == "create":
        return ("create",)
    if change.action == "delete":
        return ("merge",) if is_merge else ("delete",)
    if change.action != "patch":
        return ()
    steps: dict[Step, None] = {}
    for name in change.after:
        if _redacts(change, name):
            steps["redact"] = None
        elif is_merge:
            steps["merge"] = None
        elif _strips(change, name):
            steps["strip"] = None
        elif name == "tags":
            steps["retag"] = None
        elif name == "importance" and "scores" in change.checks:
            steps["rescale"] = None
        else:
            steps["edit"] = None
    return tuple(sorted(steps))
