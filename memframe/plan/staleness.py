"""Whether what a plan was made from has moved: judged by the fields in the plan, never by ``updated_at``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from memframe.change import FIELDS, WRITES, Change, same_value
from memframe.current import Stored
from memframe.display import number_of
from memframe.errors import StalePlanError
from memframe.plan.wording import UTC_MINUTE, listed, name_of

if TYPE_CHECKING:
    from memframe.plan.plan import Plan

GONE = "id"
"""Stands for the fields of a memory that is there no more."""


def differs(change: Change, stored: Stored | None) -> tuple[str, ...]:
    """Fields of a change whose state it was made from is not the service's any more.

    Parameters
    ----------
    change : Change
    stored : Stored or None
        The memory as it is now; None where it is gone.

    Returns
    -------
    tuple of str
        Names of fields; ``("id",)`` where the memory is gone, nothing for a create.

    Examples
    --------
    >>> from memframe.wire import MemoryBlob
    >>> change = Change(action="patch", id="m1", before={"title": "tea"}, after={"title": "Tea"})
    >>> differs(change, Stored(MemoryBlob(id="m1", user_id="u1", title="coffee")))
    ('title',)
    >>> differs(change, None)
    ('id',)
    """
    if change.id is None:
        return ()
    if stored is None:
        return (GONE,)
    moved = {name for name, value in change.before.items() if not same_value(name, stored.value(name), value)}
    if change.sealed is not None:
        moved = moved - {"content"} if change.sealed == stored.sealed_digest else moved | {"content"}
    return tuple(name for name in FIELDS if name in moved)


def leaning(change: Change, now: Mapping[str, Stored]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Memories that a change relies on and that are not as it needs them: ids, and names of fields or ``("id",)``.

    >>> change = Change(action="delete", id="m2", relies_on={"m1": {"content": "Likes tea"}})
    >>> list(leaning(change, {}))
    [('m1', ('id',))]
    """
    for memory_id, needed in change.relies_on.items():
        fields = differs(Change(action="patch", id=memory_id, before=needed), now.get(memory_id))
        if fields:
            yield memory_id, fields


def refuse_stale(plan: Plan, now: Mapping[str, Stored]) -> None:
    """Refuse a plan of whose fields the service holds others than it did.

    Raises
    ------
    StalePlanError
        It names the first rows and fields.
    """
    moved = list(_moved(plan, now))
    if not moved:
        return
    n_moved = sum(n_fields for _, n_fields in moved)
    n_fields = sum(_n_fields(change) for change in plan.writes if change.id is not None)
    raise StalePlanError(
        f"this plan is stale: {n_moved:,} of its {number_of(n_fields, 'field', 'fields')} changed since "
        f"{plan.created_at.strftime(UTC_MINUTE)}: {listed([said for said, _ in moved])}; make a new plan"
    )


def _moved(plan: Plan, now: Mapping[str, Stored]) -> Iterator[tuple[str, int]]:
    """What moved in words, and of how many fields."""
    for change in plan.records:
        if change.action in WRITES and change.id is not None:
            fields = differs(change, now.get(change.id))
            if fields == (GONE,):
                yield f"{name_of(change)} is gone", _n_fields(change)
            elif fields:
                yield f"{name_of(change)} {', '.join(fields)}", len(fields)
            for memory_id, fields in leaning(change, now):
                what = "is gone" if fields == (GONE,) else ", ".join(fields)
                yield f"memory {memory_id}, which {name_of(change)} relies on, {what}", len(fields)


def _n_fields(change: Change) -> int:
    n_needed = sum(map(len, change.relies_on.values()))
    return n_needed + len(change.before.keys() | ({"content"} if change.sealed is not None else set()))
