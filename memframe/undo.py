"""Journal to the inverse plan: what a run has written, taken back.

A patch is undone by the old values, a delete by a new memory (a service cannot bring the old id back), and a
create by a delete. Like every plan it is compared three ways: what somebody else changed since the run is a
conflict, to be looked at, and not overwritten. What is as it was before is left out. Nothing is written here;
`apply_plan` carries the plan out, and its run can be undone in turn.

A deleted memory is made anew as often as its delete is undone: whether an equal memory was made by an earlier
undo cannot be told from one that was always there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from memframe.access import Access
from memframe.apply import Run, StrPath, Surroundings, path_in
from memframe.apply.start import refuse_elsewhere
from memframe.apply.verdicts import unlike
from memframe.change import Change, Value
from memframe.current import Stored, read_stored
from memframe.errors import PlanError
from memframe.journal import WRITTEN, Journal, Operation
from memframe.plan import Plan, plan_of
from memframe.plan.deletes import delete_of
from memframe.plan.sheet import label_of
from memframe.plan.wording import listed, name_of


def plan_undo(
    access: Access,
    journal_or_run: StrPath | Run,
    *,
    rows: Iterable[object] | None = None,
    surroundings: Surroundings | None = None,
) -> Plan:
    """The plan that takes back what a run has written.

    Parameters
    ----------
    access : Access
        To the same user's memories.
    journal_or_run : path or Run
        The record of the run.
    rows : iterable of labels, optional
        Rows of the run's plan to undo; None undoes all of it.
    surroundings : Surroundings, optional
        Time and places, for tests.

    Returns
    -------
    Plan
        Each change names its row of the run, and the reason. Deletes in it, of memories that the run has
        created, are confirmed as usual: ``apply_plan(access, plan, confirm=n)``. What somebody else changed
        since is a change of action "conflict", and what cannot be made anew one of action "invalid": choose
        other ``rows``, or take ``plan.without("conflict", "invalid")``.

    Raises
    ------
    PlanError
        Changes of the run are unknown, so that it must be resumed before; a row is not one of the run; or the
        run is of another user or service.
    JournalError
        The journal is damaged, in use, or sealed with a key that is not here.

    Examples
    --------
    >>> plan = plan_undo(access, run)  # doctest: +SKIP
    >>> apply_plan(access, plan, confirm=plan.counts.get("delete"))  # doctest: +SKIP
    """
    surroundings = surroundings or Surroundings()
    path = path_in(journal_or_run)
    with Journal.open(path, surroundings.open_vault(), connect=surroundings.connect) as journal:
        header = journal.header
        refuse_elsewhere(access, "journal", header.base_url, header.user_id)
        written = [op for op in _chosen(journal.operations(), rows, path) if op.state in WRITTEN]
    moment = surroundings.now()
    stored = read_stored(access, [str(op.id) for op in written])
    inverse = (_inverse(op, stored.get(str(op.id)), header.run_id) for op in written)
    return plan_of(access, filter(None, inverse), clock=lambda: moment)


def _chosen(operations: list[Operation], rows: Iterable[object] | None, path: object) -> list[Operation]:
    if rows is not None:
        wanted = [label_of(row) for row in rows]
        missing = set(wanted) - {op.change.row for op in operations}
        if missing:
            raise PlanError(
                f"the run has no {listed([f'row {row}' for row in sorted(missing, key=str)])}: see run.outcomes"
            )
        operations = [op for op in operations if op.change.row in wanted]
    unknown = [name_of(op.change) for op in operations if op.state in {"sending", "unknown"}]
    if unknown:
        raise PlanError(
            f"of {listed(unknown)} nobody knows whether it was written: resume_run(access, {str(path)!r}) before, then "
            "undo"
        )
    return operations


def _inverse(operation: Operation, stored: Stored | None, run_id: str) -> Change | None:
    """What takes an operation back; None where nothing is left of it."""
    inverse = {"create": _uncreate, "patch": _unpatch, "delete": _undelete}[operation.action]
    change = inverse(operation, stored)
    return change and replace(
        change,
        row=operation.change.row,
        group=operation.change.group,
        reason=change.reason or f"undoes run {run_id}",
    )


def _uncreate(operation: Operation, stored: Stored | None) -> Change | None:
    if stored is None:
        return None
    moved = unlike(operation.change.after, stored)
    return _conflict(operation, stored, moved) if moved else delete_of(None, stored)


def _unpatch(operation: Operation, stored: Stored | None) -> Change | None:
    change = operation.change
    old = {name: change.before[name] for name in change.after if name in change.before}
    if len(old) < len(change.after) and change.sealed is None:
        return _invalid(operation, "the journal does not hold what stood there before")
    written = {name: change.after[name] for name in old}
    if stored is None:
        return _conflict(operation, None, ())
    mine = {name: value for name, value in old.items() if unlike({name: value}, stored)}
    moved = unlike({name: written[name] for name in mine}, stored)
    if moved:
        return _conflict(operation, stored, moved)
    return (
        Change(action="patch", id=change.id, before={name: written[name] for name in mine}, after=mine)
        if mine
        else None
    )


def _undelete(operation: Operation, stored: Stored | None) -> Change | None:
    change = operation.change
    if stored is not None:
        return _conflict(operation, stored, ())
    if change.before.get("content") is None:
        return _invalid(operation, "its content could not be opened when it was deleted")
    after: dict[str, Value] = {
        name: value for name, value in change.before.items() if value not in (None, ())
    }
    return Change(action="create", after=after, reason=f"was memory {change.id}, which was deleted")


def _conflict(operation: Operation, stored: Stored | None, moved: Iterable[str]) -> Change:
    told = (
        f"{', '.join(moved)} changed"
        if moved
        else ("it was deleted" if stored is None else "it is there again")
    )
    seen: Mapping[str, Value] = {} if stored is None else {name: stored.value(name) for name in moved}
    return Change(
        action="conflict", id=operation.id, before=dict(seen), reason=f"{told} at the service since the run"
    )


def _invalid(operation: Operation, why: str) -> Change:
    return Change(action="invalid", id=operation.id, reason=f"cannot be undone: {why}")
