"""Correct a plan by what a person wrote: the text that is kept, or tags, title and scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from msgspec.structs import replace

from memframe.access import Access
from memframe.errors import PlanError
from memframe.plan import Plan, plan_changes
from memframe.plan.cells import normalize, read_cell
from memframe.plan.change import FIELDS, Change, Value, in_order

EDITED = "edited in the review"


def check_fields(fields: Mapping[str, Any]) -> dict[str, Value]:
    """Check edited fields as cells of an edited frame are; return them as plans hold them.

    >>> check_fields({"content": "Lives in Leipzig since 2024.", "tags": ["home"]})
    {'content': 'Lives in Leipzig since 2024.', 'tags': ('home',)}
    """
    if not fields:
        raise PlanError(f"name what to edit, such as content=...; there is {', '.join(FIELDS)}")
    values = {}
    for name, cell in fields.items():
        if name not in FIELDS:
            raise PlanError(f"there is no field {name!r} to edit; there is {', '.join(FIELDS)}")
        read = read_cell(name, cell)
        value, error, _ = normalize(name, read.value)
        error = read.error or error
        if name == "content" and not value:
            error = error or "content cannot be emptied: reject the proposal, or accept the delete"
        if error:
            raise PlanError(f"{name}: {error}")
        values[name] = value
    return values


def correct_plan(
    plan: Plan, access: Access, memories: pd.DataFrame, memory_id: str, fields: Mapping[str, Value]
) -> Plan:
    """Return the plan with fields of one memory as they were edited, whatever else it does to them.

    Raises `PlanError` if the plan deletes the memory.
    """
    row = memories[memories["id"] == memory_id].head(1)
    cells = {name: pd.Series([value], index=row.index, dtype=object) for name, value in fields.items()}
    edit = plan_changes(access, row[["id"]].assign(**cells) if len(row) else row, on_null="null")
    done = {change.id: change for change in plan.records}
    known = done.get(memory_id)
    if known is not None and known.action == "delete":
        raise PlanError(
            f"memory {memory_id} was edited in one proposal, and its delete was accepted in another: reset one of the two"
        )
    waiting = [change for change in plan.records if memory_id in change.depends_on]
    group = next((change.group for change in waiting), None)
    records = [
        _release(change, memory_id, fields) if memory_id in change.depends_on else change
        for change in plan.records
        if change is not known
    ]
    patch = _override(known, edit.records, fields)
    if patch is not None:
        group = group if known is None else known.group
        reason = "; ".join(filter(None, [known and known.reason, EDITED]))
        records.append(replace(patch, group=group, reason=reason))
    return replace(plan, records=tuple(records))


def _override(
    known: Change | None, edited: tuple[Change, ...], fields: Mapping[str, Value]
) -> Change | None:
    """Return one patch of what was planned and what was edited; None if nothing remains to be changed."""
    change = next(iter(edited), None)
    if known is None:
        return change
    after = {name: value for name, value in known.after.items() if name not in fields}
    before = {name: known.before[name] for name in after if name in known.before}
    if change is not None:
        after, before = {**after, **change.after}, {**before, **change.before}
    return replace(known, before=in_order(before), after=in_order(after)) if after else None


def _release(change: Change, memory_id: str, fields: Mapping[str, Value]) -> Change:
    """Leave out of what a delete depends on the fields that the keeper's own patch compares."""
    rest = {name: value for name, value in change.depends_on[memory_id].items() if name not in fields}
    return replace(change, depends_on={**change.depends_on, memory_id: rest})
