"""Findings to a plan: what an audit proposes, to be looked at before any of it is done."""

from __future__ import annotations

from os import PathLike

import pandas as pd

from memframe.access import Access
from memframe.audit import Audit
from memframe.cleanup.plan import Rows, Writer, draft_of
from memframe.cleanup.proposals import MAX_SHARE, Actions, audit_again, check_share, read_actions, unstored
from memframe.errors import ConfigError, PlanError, check_kind
from memframe.frames import gc_paused
from memframe.plan import Plan, plan_of
from memframe.plan.changes import Conflicts, OnConflict

__all__ = ["audit_again", "plan_cleanup"]


def plan_cleanup(
    access: Access,
    audit: Audit | str | PathLike[str],
    *,
    actions: Actions = None,
    on_conflict: OnConflict = "raise",
    max_share: float = MAX_SHARE,
) -> Plan:
    """Plan what an audit proposes. Nothing is written: that is for `apply_plan`.

    `plan_undo` takes it back, except for times: every patch leaves a new ``updated_at``, and a deleted memory has its
    id and dates again only where the service restores it, which the displays of the plan say.

    - delete: copies of a text that hold nothing of their own, empty rows and heartbeats. What is told by wording (all
      other junk, superseded and stale facts) is for review, and deleted only where
      ``actions={"junk": "delete"}`` or the like asks for it.
    - merge: near-duplicates, repeats, and copies that hold more than their keeper. It gets all tags, and the title,
      summary, source and scores of the others where it has none. A memory of which a name, a number, a date, a source
      or any other word that carries a value would be lost is left as it is.
    - redact: secrets, wherever they stand in their memory, with a mark such as ``[redacted: password]`` in their
      place. Personal data only where ``actions={"personal_data": "redact"}`` asks for it.
    - retag: near-identical names become one spelling, disabled ones come off.
    - rescale: importance from 1 to 5 becomes importance from 0 to 1. Where both scales are in use a 1 stays a 1: look
      at those that the audit calls ambiguous before, as afterwards nothing tells them apart.

    A memory has one change at most. It is deleted, if anything proposes that; else it is merged into another one; and
    only what stays is redacted, tagged anew and rescaled, all in one patch, before it takes in others. A memory that
    goes because another one says the same stays if that one goes. Memories whose content could not be opened are left
    alone; ``{"sealed": "delete"}`` deletes those and nothing else. The patch of a keeper and the deletes of its copies
    are one group, and stale as soon as the keeper says something else.

    Leave out findings that you do not agree with: ``dataclasses.replace(audit, findings=chosen)``.

    Parameters
    ----------
    access : Access
    audit : Audit, str or path
        An audit of this user's memories; those of others in it are left out. The path of a saved one
        (`Audit.to_json`) is audited again, and what is found no more is left out: texts may have moved.
    actions : list of str or mapping, optional
        Only these: ``["delete", "merge"]``. Or what to do about checks instead of what is proposed:
        ``{"personal_data": "redact", "junk": "delete"}``; what proposes nothing ("none") stays so.
    on_conflict : {"raise", "mark", "mine", "theirs"}
        What becomes of memories that were changed or deleted since the audit: an error, or a change of action
        "conflict", which cannot be applied. "theirs" leaves them as they are; "mine" is no choice here, as nobody has
        judged what they hold now.
    max_share : float
        The largest share of the user's audited memories deleted on wording alone, from 0 to 1. The error that names the
        share of a larger one names the ``max_share`` that confirms it, too.

    Returns
    -------
    Plan
        The reason of each change names its findings, with their evidence masked as in the audit. Where not all that is
        proposed can be done, its ``notes`` say of how many memories, and why.

    Raises
    ------
    ConfigError
        There is no such action or check, it cannot be had for that check, or ``max_share`` is no share.
    PlanError
        A memory was changed since the audit; the audit is of a file, or of other users alone; its frame holds one
        memory in two states; or more than ``max_share`` would be deleted on wording alone.

    Examples
    --------
    >>> from memframe import apply_plan, audit_memories, load_memories
    >>> audit = audit_memories(load_memories(access))
    >>> plan = plan_cleanup(access, audit, actions=["delete"])
    >>> sorted(plan.counts)
    ['delete']
    >>> run = apply_plan(access, plan, confirm=plan.counts["delete"])
    """
    check_kind("access", access, Access)
    check_kind("audit", audit, Audit, str, PathLike, error=PlanError)
    asked, conflicts = read_actions(actions), _settling(on_conflict)
    if not 0 <= max_share <= 1:
        raise ConfigError(f"max_share={max_share!r}: a share is a number from 0 to 1, such as 0.31")
    moment = access.client.runtime.now()
    audit = audit if isinstance(audit, Audit) else audit_again(access, audit).audit
    if not audit.is_stored:
        raise unstored()
    rows = Rows(access, audit.memories)
    findings = _known(asked.of(audit.findings), rows)
    related = findings["related_id"].dropna()
    named = rows.read({*findings["id"], *related})
    apart = _changed_pairs(audit.findings)
    with gc_paused():
        draft = draft_of(findings, named, rows.memories, taken=asked.taken, apart=apart)
    check_share(findings, draft.deletes, len(rows), max_share)
    writer = Writer(draft, findings)
    met = [conflicts.add(change) for change in writer.conflicts()] if on_conflict != "theirs" else []
    conflicts.raise_if_any()
    notes = writer.notes(audit.findings[audit.findings["id"].map(rows.__contains__).astype(bool)])
    return plan_of(access, [*met, *writer.changes()], notes=notes, created_at=moment)


def _settling(on_conflict: OnConflict) -> Conflicts:
    conflicts = Conflicts(on_conflict)
    if on_conflict == "mine":
        raise PlanError(
            "on_conflict='mine': nobody has judged what was written since; give 'raise', 'mark' or 'theirs'"
        )
    return conflicts


def _known(findings: pd.DataFrame, rows: Rows) -> pd.DataFrame:
    """Findings about memories of this user."""
    is_known = findings["id"].map(rows.__contains__).astype(bool)
    related = findings["related_id"]
    return findings[is_known & (related.isna() | related.map(rows.__contains__).astype(bool))]


def _changed_pairs(findings: pd.DataFrame) -> set[frozenset[str]]:
    found = findings[(findings["check"] == "changed_value") & findings["related_id"].notna()]
    return {frozenset(pair) for pair in zip(found["id"], found["related_id"], strict=True)}
