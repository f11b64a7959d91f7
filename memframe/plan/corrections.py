"""Correct a plan: choose changes by id, always whole groups, and edit the values that a change writes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from msgspec.structs import replace

from memframe.errors import PlanError, find_nearest
from memframe.plan.cells import normalize_field, read_cell
from memframe.plan.change import CHANGE_ACTIONS, FIELDS, Change, Value, in_order, list_some, same_value

EDITED = "edited by hand"
"""Words that are added to the reason of an edited change."""


def check_actions(actions: Iterable[str]) -> None:
    """Raise `PlanError` if there is no such action."""
    for name in actions:
        if name not in CHANGE_ACTIONS:
            raise PlanError(
                f"there is no action {name!r}: the nearest is {find_nearest(name, CHANGE_ACTIONS)!r} "
                f"(there is {', '.join(CHANGE_ACTIONS)})"
            )


def read_ids(ids: Any) -> tuple[str, ...]:
    """Read ids: one, several, or those of the rows of a frame.

    >>> read_ids("m1"), read_ids(["m1", "m2", "m1"]), read_ids(pd.DataFrame({"id": ["m3"]}))
    (('m1',), ('m1', 'm2'), ('m3',))
    """
    if isinstance(ids, str):
        return (ids,)
    if isinstance(ids, pd.DataFrame) and "id" in ids.columns:
        ids = ids["id"]
    if not isinstance(ids, Iterable) or isinstance(ids, pd.DataFrame | Mapping | bytes):
        raise PlanError(f"pass ids of memories, or rows with a column id, not {type(ids).__name__}")
    given = list(ids)
    other = next((one for one in given if not isinstance(one, str)), None)
    if other is not None or any(one is None for one in given):
        raise PlanError(
            f"{other!r} is not the id of a memory; a create has none: without('create') leaves out all creates; to "
            "leave out some, make a new plan"
        )
    return tuple(dict.fromkeys(map(str, given)))


def key_of(change: Change) -> str | None:
    """Return the id by which a change is chosen: of its memory, or of the one that it restores."""
    return change.id or change.restores


def select(records: Sequence[Change], ids: Collection[str]) -> list[bool]:
    """Mark the changes of some memories, and all changes of their groups.

    Raises `PlanError`, which names the ids that are not in the plan.
    """
    unknown = [one for one in ids if one not in {*map(key_of, records)}]
    if unknown:
        raise PlanError(f"not in this plan: {list_some(unknown)}; plan.changes lists the ids")
    chosen = [key_of(change) in {*ids} for change in records]
    groups = {change.group for change, is_chosen in zip(records, chosen, strict=True) if is_chosen} - {None}
    return [is_chosen or change.group in groups for change, is_chosen in zip(records, chosen, strict=True)]


def edit_records(records: Sequence[Change], memory_id: str, fields: Mapping[str, Any]) -> tuple[Change, ...]:
    """Set fields that a plan writes to a memory.

    Raises `PlanError` if the plan does not write to it, or the value cannot be sent.
    """
    if not fields:
        raise PlanError(f"name the fields to edit, such as content=...; there is {', '.join(FIELDS)}")
    change = _find_change(records, memory_id)
    is_grouped = change.group is not None
    waiting = [
        one for one in records if is_grouped and one.group == change.group and memory_id in one.depends_on
    ]
    known = {name: value for one in waiting for name, value in one.depends_on[memory_id].items()}
    edited = _set_fields(change, {name: _read(memory_id, name, cell) for name, cell in fields.items()}, known)
    if not edited.after and not waiting:
        raise PlanError(
            f"memory {memory_id} already holds that, so nothing would change: leave the change out with "
            f"plan.leave_out([{memory_id!r}])"
        )
    # the deletes of a merge depend on all fields of its keeper but those that the keeper's own patch compares
    settled = {name: value for name, value in (known | change.before).items() if name not in edited.after}
    content = edited.after.get("content", settled.get("content"))
    changed = [edited] if change not in records and edited.after else []
    for one in records:
        if one is change:
            changed += [edited] if edited.after else []
        elif one in waiting:
            keeps = one.keeps | ({memory_id: str(content or "")} if memory_id in one.keeps else {})
            changed.append(replace(one, depends_on={**one.depends_on, memory_id: settled}, keeps=keeps))
        else:
            changed.append(one)
    return tuple(changed)


def _set_fields(change: Change, values: Mapping[str, Value], known: Mapping[str, Value]) -> Change:
    """Set fields of a change; a patch keeps only the fields that differ from the memory."""
    before, after = {**change.before}, {**change.after}
    for name, value in values.items():
        after[name] = value
        if change.action == "create" or name in change.after:
            continue
        if name not in known:
            raise PlanError(
                f"the plan does not change {name} of memory {change.id}, and does not know what it holds: edit it in "
                "the frame, and add plan_changes(access, edited)"
            )
        before[name] = known[name]
    same = {name for name in after if name in before and same_value(name, before[name], after[name])}
    return replace(
        change,
        before=in_order({name: value for name, value in before.items() if name not in same}),
        after=in_order({name: value for name, value in after.items() if name not in same}),
        reason=change.reason
        if EDITED in (change.reason or "")
        else "; ".join(filter(None, [change.reason, EDITED])),
    )


def _read(memory_id: str, name: str, cell: Any) -> Value:
    if name not in FIELDS:
        raise PlanError(
            f"{name} is not a field that can be written: the nearest is {find_nearest(name, FIELDS)!r} "
            f"(there is {', '.join(FIELDS)})"
        )
    read = read_cell(name, cell)
    value, error, _ = normalize_field(name, read.value)
    error = read.error or error
    if name == "content" and value is None:
        error = error or "content cannot be cleared: leave the change out, or plan to delete the memory"
    if error:
        raise PlanError(f"memory {memory_id} cannot be edited: {error}")
    return value


def _find_change(records: Sequence[Change], memory_id: str) -> Change:
    """Find the change of a memory that can be edited; make an empty patch for one that a merge keeps unchanged."""
    change = next((one for one in records if key_of(one) == memory_id), None)
    if change is None:
        merged = [one for one in records if memory_id in one.keeps and one.group is not None]
        if not merged:
            raise PlanError(f"not in this plan: {memory_id}; plan.changes lists the ids")
        hidden = tuple(sorted({text for one in merged for text in one.hidden}))
        return Change(action="patch", id=memory_id, group=merged[0].group, hidden=hidden)
    if change.action == "delete":
        keeper = next(iter(change.keeps), None)
        way = f", or edit memory {keeper}, which keeps what it says" if keeper else ""
        raise PlanError(
            f"the plan deletes memory {memory_id}, so there is nothing to edit: leave it out with "
            f"plan.leave_out([{memory_id!r}]) and edit it in the frame{way}"
        )
    if change.action not in ("patch", "create") or change.verbatim:
        what = "its content is sealed" if change.verbatim else f"it is {change.action!r}"
        raise PlanError(f"the change of memory {memory_id} cannot be edited, as {what}: {change.reason}")
    return change
