"""Correct a plan by what a person wrote: the text that is kept, or tags, title and scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from msgspec.structs import replace

from memframe.access import Access
from memframe.errors import PlanError, find_nearest
from memframe.plan import Plan, plan_changes, plan_of
from memframe.plan.cells import normalize_field, read_cell
from memframe.plan.change import FIELDS, Change, Value
from memframe.plan.current import current_of
from memframe.plan.edited_frame import label_of

EDITED_IN_REVIEW = "edited in the review"


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
            raise PlanError(f"there is no field {name!r}: the nearest is {find_nearest(name, FIELDS)!r}")
        read = read_cell(name, cell)
        value, error, _ = normalize_field(name, read.value)
        error = read.error or error
        if name == "content" and not value:
            error = error or "it cannot be emptied: reject the proposal, or accept the delete"
        if error:
            raise PlanError(f"{name} cannot be edited: {error}")
        values[name] = value
    return values


def correct_plan(
    plan: Plan, access: Access | None, memories: pd.DataFrame, memory_id: str, fields: Mapping[str, Value]
) -> Plan:
    """Return the plan with fields of one memory as they were edited, whatever else it does to them.

    Without an access, the memories are those of a file.

    Raises `PlanError` if the plan deletes the memory.
    """
    known = next((change for change in plan.records if change.id == memory_id), None)
    if known is not None and known.action == "delete":
        raise PlanError(
            f"memory {memory_id} was edited in one proposal, and its delete was accepted in another: reset one of them"
        )
    if any(memory_id in change.depends_on for change in plan.records):
        return plan.edit(memory_id, **fields)
    own = {} if known is None else {name: value for name, value in known.after.items() if name not in fields}
    row = memories[memories["id"] == memory_id].head(1)
    if access is None:
        patch = plan_of(memories, _patches_of(row, {**own, **fields}), created_at=plan.created_at)
    else:
        cells = {
            name: pd.Series([value], index=row.index, dtype=object)
            for name, value in {**own, **fields}.items()
        }
        patch = plan_changes(access, row[["id"]].assign(**cells), on_null="null")
    reason = "; ".join(filter(None, [known.reason if known else None, EDITED_IN_REVIEW]))
    hidden = () if known is None else known.hidden
    edited = replace(
        patch, records=tuple(replace(change, reason=reason, hidden=hidden) for change in patch.records)
    )
    if known is None:
        return plan + edited
    # nothing depends on it, so that it goes alone; what else holds its values is counted again
    return replace(plan.leave_out(memory_id), left_out=plan.left_out, notes=plan.notes) + edited


def _patches_of(row: pd.DataFrame, fields: Mapping[str, Value]) -> Iterator[Change]:
    """Yield the patch that sets fields of a memory of a file, if one of them is another now."""
    for label, (memory_id, current) in zip(row.index, current_of(row).items(), strict=True):
        if names := current.find_differences(fields):
            yield Change(
                action="patch",
                row=label_of(label),
                id=memory_id,
                before={name: current.value(name) for name in names},
                after={name: fields[name] for name in names},
            )
