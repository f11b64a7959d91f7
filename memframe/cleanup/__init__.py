"""From findings to a plan: what an audit proposes, for review before anything is written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from os import PathLike
from typing import Any, overload

import pandas as pd

from memframe.access import Access
from memframe.audit import Audit
from memframe.audit.evidence import values_of
from memframe.audit.merge import Relations, read_relations
from memframe.audit.policy import Policy, PolicyOption, read_policy
from memframe.audit.text import MemoryTexts
from memframe.cleanup.lists import write_changes
from memframe.cleanup.plan import AuditedMemories, CleanupBuilder, make_draft
from memframe.cleanup.proposals import (
    MAX_SHARE,
    PLANNED,
    Actions,
    ChosenActions,
    audit_again,
    check_share,
    read_actions,
    unstored_error,
)
from memframe.errors import ConfigError, PlanError, check_kind
from memframe.frames import gc_paused
from memframe.plan import Plan, plan_of
from memframe.plan.change import Change
from memframe.plan.changes import OnConflict, check_option, refuse_conflicts
from memframe.plan.permitted import check_limits, leave_out_protected

__all__ = ["audit_again", "plan_cleanup", "write_changes"]


@overload
def plan_cleanup(
    access: Access | None,
    audit: Audit | str | PathLike[str],
    *,
    actions: Actions = None,
    on_conflict: OnConflict = "raise",
    max_share: float | None = None,
    policy: PolicyOption = None,
) -> Plan: ...
@overload
def plan_cleanup(
    access: Audit,
    audit: None = None,
    *,
    actions: Actions = None,
    on_conflict: OnConflict = "raise",
    max_share: float | None = None,
    policy: PolicyOption = None,
) -> Plan: ...
def plan_cleanup(
    access: Access | Audit | None,
    audit: Audit | str | PathLike[str] | None = None,
    *,
    actions: Actions = None,
    on_conflict: OnConflict = "raise",
    max_share: float | None = None,
    policy: PolicyOption = None,
) -> Plan:
    """Plan what an audit proposes. Nothing is written until `apply_plan`.

    ``plan_cleanup(audit)`` plans for the file that the memories were read from: `clean_file` carries it out.

    `plan_undo` reverses it, except for times: every patch leaves a new ``updated_at``, and a deleted memory
    keeps its id and dates only if the service can restore it, as the displays of the plan say.

    - delete: copies that add nothing, empty rows and heartbeats. Findings that rest on wording (all other junk,
      versions and stale facts) are for review, and deleted only on request, such as ``actions={"junk": "delete"}``.
    - merge: near-duplicates, repeats, and copies with more fields than the memory that is kept. It takes over
      all tags, and missing titles, summaries, sources and scores. A memory is left alone if a name, a number, a
      date, a source or any other value would be lost.
    - redact: secrets, in any field, are replaced by a mark such as ``[redacted: password]``; personal data only on
      request, by ``actions={"personal_data": "redact"}``.
    - strip: characters that hide text or break words are removed; visible text stays.
    - retag: near-identical names get one spelling; disabled tags are removed.
    - rescale: importance from 1 to 5 is converted to 0 to 1. If both scales are in use, a 1 remains a 1: review
      those that the audit calls ambiguous first, as they cannot be distinguished afterwards.

    Each memory has at most one change. It is deleted if any finding proposes that, otherwise merged into
    another one; memories that remain are redacted, retagged and rescaled in one patch. A copy is not deleted if
    the memory that it repeats is deleted. Memories whose content could not be opened are left alone;
    ``{"sealed": "delete"}`` deletes them. The patch of the memory that is kept and the deletes of its copies
    form one group, which is stale as soon as that memory changes.

    To leave out findings, use ``dataclasses.replace(audit, findings=chosen)``.

    Parameters
    ----------
    access : Access
        Left out for an audit of a file.
    audit : Audit, str or Path
        An audit of this user's memories; other users' memories in it are ignored. Given the path of a saved
        audit (`Audit.to_json`), the memories are audited again, and findings that no longer apply are left out.
    actions : list of str or mapping, optional
        Only these actions: ``["delete", "merge"]``. Or actions by check, in place of the proposed ones:
        ``{"personal_data": "redact", "junk": "delete"}``; findings without a proposal ("none") stay without.
    on_conflict : {"raise", "mark", "mine", "theirs"}
        How to treat memories that were changed or deleted since the audit: as an error, or as a change with
        action "conflict", which cannot be applied. "theirs" leaves them alone; "mine" is not allowed, because
        their current state was not audited.
    max_share : float, optional
        The largest share of the user's audited memories, from 0 to 1, that may be deleted on wording alone; by
        default the ``delete_share`` of the policy, else 0.05. If a plan exceeds it, the error states the
        ``max_share`` that confirms the plan.
    policy : Policy, Path or None
        Protection and limits. Changes of protected memories are left out with their groups, and named in
        ``Plan.left``; a plan beyond the limits is refused.

    Returns
    -------
    Plan
        The reason of each change names its findings, with masked evidence. ``left`` names the proposals
        that it leaves out, with the reasons.

    Raises
    ------
    ConfigError
        The action or check does not exist, the action is not available for that check, ``max_share`` is not
        between 0 and 1, or the policy cannot be read.
    PlanError
        A memory was changed since the audit; the audit is of a file but there is an access, or the other way round;
        all its memories are other users'; its frame holds one memory in two states; more than ``max_share`` would be
        deleted on wording alone; or the plan exceeds the limits of the policy.

    Examples
    --------
    >>> from memframe import apply_plan, audit_memories, load_memories
    >>> audit = audit_memories(load_memories(access))
    >>> plan = plan_cleanup(access, audit, actions=["delete"])
    >>> sorted(plan.counts)
    ['delete']
    >>> run = apply_plan(access, plan, confirm=plan.counts["delete"])
    """
    service_access, given = _read_arguments(access, audit)
    asked, rules = read_actions(actions), read_policy(policy)
    check_option("on_conflict", on_conflict, OnConflict)
    if on_conflict == "mine":
        raise PlanError(
            "on_conflict='mine': the changes since the audit were not audited; give 'raise', 'mark' or 'theirs'"
        )
    if max_share is None:
        share = rules.limits.delete_share if rules else None
        max_share = MAX_SHARE if share is None else share
    if not 0 <= max_share <= 1:
        raise ConfigError(f"max_share={max_share!r}: a share is a number from 0 to 1, such as 0.31")
    current: Audit = given if isinstance(given, Audit) else audit_again(service_access, given).audit
    return _plan_findings(
        service_access, current, asked, on_conflict=on_conflict, max_share=max_share, rules=rules
    )


def plan_accepted(access: Access | None, audit: Audit, merged: Collection[str]) -> Plan:
    """Plan findings that a person has accepted, by their ``action``; copies in `merged` go although values are lost."""
    return _plan_findings(access, audit, read_actions(None), merged=merged)


def change_accepted(
    findings: pd.DataFrame,
    audited: AuditedMemories,
    texts: MemoryTexts,
    *,
    relations: Relations,
    merged: Collection[str],
) -> list[Change]:
    """Return the changes that `plan_accepted` would plan for some findings, given the memories as of the audit."""
    rows = audited.read({*findings["id"], *findings["related_id"].dropna()})
    concerned = audited.memories[audited.memories["id"].isin(rows.keys())]
    known = _known_secrets(concerned, findings)
    draft = make_draft(
        findings, rows, texts, taken=PLANNED, relations=relations, known=known, accepted=merged
    )
    return CleanupBuilder(draft, findings).changes()


def _plan_findings(
    access: Access | None,
    audit: Audit,
    asked: ChosenActions,
    *,
    on_conflict: OnConflict = "raise",
    max_share: float = 1.0,
    rules: Policy | None = None,
    merged: Collection[str] = (),
) -> Plan:
    now = access.client.runtime.now() if access else None
    if access is None and audit.is_stored:
        raise PlanError(
            "None is not an Access, and the audit is of memories of a service: plan_cleanup(access, audit), "
            "with access = mf.open_access(client, request_id)"
        )
    if access is not None and not audit.is_stored:
        raise unstored_error()
    audited = AuditedMemories(access, audit.memories)
    findings = _select_known(asked.of(audit.findings), audited)
    rows = audited.read({*findings["id"], *findings["related_id"].dropna()})
    relations, known = read_relations(audit.findings), _known_secrets(audited.memories, audit.findings)
    with gc_paused():
        draft = make_draft(
            findings, rows, MemoryTexts.of(audited.memories),
            taken=asked.taken, relations=relations, known=known, accepted=merged,
        )  # fmt: skip
    check_share(findings, draft.deletes, len(audited), max_share)
    builder = CleanupBuilder(draft, findings)
    conflicts = [] if on_conflict == "theirs" else [*builder.conflicts()]
    refuse_conflicts(conflicts, on_conflict)
    left = builder.left_out(audit.findings[audit.findings["id"].map(audited.__contains__).astype(bool)])
    shown = {change.id for change in conflicts}
    plan = plan_of(
        access or audited.memories,
        [*conflicts, *builder.changes()],
        notes=builder.notes(audited.memories),
        left=[one for one in left if one.id not in shown],
        created_at=now,
    )
    if rules is None:
        return plan
    states = {row.id: (row.audited, row.current) for row in rows.values()}
    plan = leave_out_protected(plan, rules, lambda memory_id: states.get(memory_id, ()))
    check_limits(plan, rules.limits, lambda: len(audited))
    return plan


def _read_arguments(access: Any, audit: Any) -> tuple[Any, Any]:
    """Return access and audit; for a file, the audit is the only argument, and the access is None."""
    access, audit = (None, access) if audit is None else (access, audit)
    if access is not None:
        check_kind("access", access, Access)
    check_kind("audit", audit, *([Audit] if access is None else [Audit, str, PathLike]), error=PlanError)
    return access, audit


def _select_known(findings: pd.DataFrame, audited: AuditedMemories) -> pd.DataFrame:
    """Return the findings whose memories are this user's."""
    is_known = findings["id"].map(audited.__contains__).astype(bool)
    related = findings["related_id"]
    return findings[is_known & (related.isna() | related.map(audited.__contains__).astype(bool))]


def _known_secrets(memories: pd.DataFrame, findings: pd.DataFrame) -> dict[str, frozenset[str]]:
    """Return the secrets that an audit found, by memory."""
    known: defaultdict[str, set[str]] = defaultdict(set)
    for memory_id, value, _ in values_of(memories, findings[findings["check"] == "secret"]):
        if memory_id is not None:
            known[memory_id].add(value)
    return {memory_id: frozenset(values) for memory_id, values in known.items()}
