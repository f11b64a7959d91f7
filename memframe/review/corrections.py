"""Correct a plan by the fields that a person wrote: the text that is kept, or tags, title and scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from memframe.access import Access
from memframe.errors import PlanError, find_nearest
from memframe.plan import Plan, plan_changes, plan_of
from memframe.plan.cells import normalize_field, read_cell
from memframe.plan.change import FIELDS, Change, Value, in_order
from memframe.plan.current import current_of
from memframe.plan.edited_frame import label_of

EDITED_IN_REVIEW = "edited in the review"


class Edited(Struct, frozen=True):
    """Fields that a person wrote in place of a proposal."""

    id: str
    fields: dict[str, Value]


def check_fields(fields: Mapping[str, Any]) -> dict[str, Value]:
    """Check edited fields like cells of an edited frame, and return their values as in a plan.

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


def correct_plan(plan: Plan, access: Access | None, memories: pd.DataFrame, edits: Iterable[Edited]) -> Plan:
    """Return the plan with the edited fields, which replace what it would write to them.

    If one field was edited twice, the later edit counts. Without an access, the memories are from a file.

    Raises `PlanError` if the plan deletes such a memory.
    """
    known = {change.id: change for change in plan.records if change.id is not None}
    fields_of: dict[str, dict[str, Value]] = {}
    for edit in edits:
        change = known.get(edit.id)
        if change is not None and change.action == "delete":
            raise PlanError(
                f"memory {edit.id} was edited in one proposal, and its delete was accepted in another: reset one of "
                "them"
            )
        if any(edit.id in one.depends_on for one in plan.records):
            plan = plan.edit(edit.id, **edit.fields)
        else:
            own = {} if change is None else change.after
            fields_of[edit.id] = {**fields_of.get(edit.id, own), **edit.fields}
    if not fields_of:
        return plan
    if replaced := [memory_id for memory_id in fields_of if memory_id in known]:
        # these patches are replaced below; `leave_out` counts anew which other memories hold their values
        plan = replace(plan.leave_out(replaced), left_out=plan.left_out, notes=plan.notes)
    for patch in _plan_patches(access, memories, fields_of, plan.created_at):
        plan += replace(
            patch, records=tuple(_explain(change, known.get(str(change.id))) for change in patch.records)
        )
    return plan


def _explain(change: Change, known: Change | None) -> Change:
    """Return a change with the reason and the hidden texts of the one that it replaces, and a note on the edit."""
    reason = "; ".join(filter(None, [known.reason if known else None, EDITED_IN_REVIEW]))
    return replace(change, reason=reason, hidden=() if known is None else known.hidden)


def _plan_patches(
    access: Access | None,
    memories: pd.DataFrame,
    fields_of: Mapping[str, Mapping[str, Value]],
    created_at: datetime,
) -> Iterator[Plan]:
    """Yield plans that set fields of memories, one for each set of fields, because each plan reads from the service."""
    rows = memories[memories["id"].isin(fields_of)].drop_duplicates("id")
    if access is None:
        yield plan_of(memories, _patches_of(rows, fields_of), created_at=created_at)
        return
    ids_of: dict[tuple[str, ...], list[str]] = {}
    for memory_id, fields in fields_of.items():
        ids_of.setdefault(tuple(in_order(fields)), []).append(memory_id)
    for names, ids in ids_of.items():
        same = rows[rows["id"].isin(ids)]
        cells = {
            name: pd.Series([fields_of[one][name] for one in same["id"]], same.index, dtype=object)
            for name in names
        }
        yield plan_changes(access, same[["id"]].assign(**cells), on_null="null")


def _patches_of(rows: pd.DataFrame, fields_of: Mapping[str, Mapping[str, Value]]) -> Iterator[Change]:
    """Yield patches that set fields of memories from a file, for memories with a field that differs."""
    for label, (memory_id, current) in zip(rows.index, current_of(rows).items(), strict=True):
        fields = fields_of[memory_id]
        if names := current.find_differences(fields):
            yield Change(
                action="patch",
                row=label_of(label),
                id=memory_id,
                before={name: current.value(name) for name in names},
                after={name: fields[name] for name in names},
            )
