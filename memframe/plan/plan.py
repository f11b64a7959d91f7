"""Plan: the writes that shall happen to one user's memories, to be looked at before they do."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from os import PathLike
from typing import Any

import msgspec
import pandas as pd
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from memframe.access import Access
from memframe.change import FIELDS, WRITES, Action, Change, masked
from memframe.current import Stored
from memframe.errors import PlanError
from memframe.keystore import open_local_cipher
from memframe.plan.file import load_sealed, save_sealed
from memframe.plan.staleness import refuse_stale
from memframe.plan.table import html_of
from memframe.plan.terminal import diff_of, wants_colour
from memframe.plan.wording import counted, listed, summary_of, undo_note


class Plan(Struct, frozen=True, kw_only=True, dict=True, omit_defaults=True):
    """The writes that shall happen to one user's memories. Made by `plan_changes` and its like.

    A plan is only looked at, saved, added to another, or given to `apply_plan`. Its length is the number of
    its changes, so that an empty one is false.

    Attributes
    ----------
    records : tuple of Change
    base_url : str
        Of the service.
    user_id : str
        Whose memories.
    key_version : int
        Of the key under which content is going to be sealed.
    created_at : datetime
        UTC: when the state was read that the plan was made from.
    notes : tuple of str
        Sentences for the reader, such as what the plan leaves out. Every display begins with them; a sum of plans
        has those of both, each once.
    restore_days : int, optional
        For how many days the service restores deleted memories under their ids and times; 0 where it does not.

    Raises
    ------
    PlanError
        Two of the changes are about the same memory.

    Examples
    --------
    >>> change = Change(action="patch", id="m1", row=7, before={"title": "Tea"}, after={"title": "Green tea"})
    >>> from datetime import UTC
    >>> made_at = datetime(2026, 11, 21, 14, 2, tzinfo=UTC)
    >>> plan = Plan(
    ...     records=(change,), base_url="https://m/api/v1", user_id="4f0c", key_version=1, created_at=made_at
    ... )
    >>> plan
    <memframe.Plan: 1 patch>
    >>> plan.changes[["action", "row", "id", "fields"]]
      action row  id    fields
    0  patch   7  m1  (title,)
    >>> print(plan.diff(color=False))
    patch memory m1 (row 7)
    @@ title @@
    -Tea
    +Green tea
    <BLANKLINE>
    1 patch
    """

    records: tuple[Change, ...]
    base_url: str
    user_id: str
    key_version: int
    created_at: datetime
    notes: tuple[str, ...] = ()  # a default that is not encoded: ids of plans without notes stay as they were
    restore_days: int | UnsetType = (
        UNSET  # left out of the JSON: the id of a plan of before stays what it was
    )

    def __post_init__(self) -> None:
        ids = (change.id or change.restores for change in self.records)
        n_of = Counter(memory_id for memory_id in ids if isinstance(memory_id, str))
        repeated = [memory_id for memory_id, n_times in n_of.items() if n_times > 1]
        if repeated:
            raise PlanError(
                f"two changes of one plan are about the same memory: {listed(repeated)}; plan them in two steps"
            )

    def __repr__(self) -> str:
        return f"<memframe.Plan: {counted(self.counts)}>"

    def __str__(self) -> str:
        return summary_of(self)

    def _repr_html_(self) -> str:
        return html_of(self)

    def __len__(self) -> int:
        return len(self.records)

    def __add__(self, other: Plan) -> Plan:
        """Both plans as one; groups stay apart, and the older state counts.

        Raises
        ------
        PlanError
            They are for different users, services or keys, or both change the same memory.
        """
        if not isinstance(other, Plan):
            return NotImplemented
        for name in ("base_url", "user_id", "key_version"):
            if getattr(self, name) != getattr(other, name):
                raise PlanError(
                    f"plans for two different values of {name} do not add up: apply them one by one"
                )
        taken = 1 + max((change.group for change in self.records if change.group is not None), default=-1)
        moved = tuple(_regrouped(change, taken) for change in other.records)
        return replace(
            self,
            records=self.records + moved,
            created_at=min(self.created_at, other.created_at),
            notes=tuple(dict.fromkeys(self.notes + other.notes)),
        )

    @cached_property
    def id(self) -> str:
        """SHA-256, hexadecimal, of everything in the plan."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    @property
    def counts(self) -> dict[str, int]:
        """How many changes of each action."""
        return dict(Counter(change.action for change in self.records))

    @property
    def writes(self) -> tuple[Change, ...]:
        """The changes that send something; the others are conflicts and what is invalid."""
        return tuple(change for change in self.records if change.action in WRITES)

    def without(self, *actions: Action) -> Plan:
        """The plan without changes of some actions, such as conflicts; what holds together with one goes, too."""
        dropped = {
            change.group for change in self.records if change.action in actions and change.group is not None
        }
        kept = [c for c in self.records if c.action not in actions and c.group not in dropped]
        return replace(self, records=tuple(kept))

    @property
    def changes(self) -> pd.DataFrame:
        """One row a change: ``action row id fields before after reason group``, fit to be shown."""
        shown = [masked(change) for change in self.records]
        columns: Mapping[str, tuple[Sequence[Any], str]] = {
            "action": ([change.action for change in shown], "str"),
            "row": ([change.row for change in shown], "object"),
            "id": ([change.id for change in shown], "str"),
            "fields": ([_fields_of(change) for change in shown], "object"),
            "before": ([change.before for change in shown], "object"),
            "after": ([change.after for change in shown], "object"),
            "reason": ([change.reason for change in shown], "str"),
            "group": ([change.group for change in shown], "Int64"),
        }
        return pd.DataFrame({name: pd.Series(cells, dtype=dtype) for name, (cells, dtype) in columns.items()})

    def diff(self, *, color: bool | None = None, limit: int | None = None) -> str:
        """All changes as lines that go and lines that come, long ones shortened around the difference.

        Parameters
        ----------
        color : bool, optional
            Whether with the colours of a terminal; by default if standard output is one.
        limit : int, optional
            Of more changes show only so many, conflicts and what is invalid first; the others are counted.
        """
        return diff_of(self, color=wants_colour() if color is None else color, limit=limit)

    def to_json(self) -> str:
        """The plan for other programs: what it is for, its counts, and its changes, fit to be shown."""
        document = {
            "id": self.id,
            "base_url": self.base_url,
            "user_id": self.user_id,
            "key_version": self.key_version,
            "created_at": self.created_at,
            "notes": self.notes,
            "counts": self.counts,
            "undo": undo_note(self),
            "changes": [_document_of(masked(change)) for change in self.records],
        }
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plan to a file, sealed: only this user on this machine can load it.

        Parameters
        ----------
        path : str or path
            A plan that is there is replaced, another file is not.

        Raises
        ------
        PlanError
            The file cannot be written, or is something else.
        """
        save_sealed(path, self, open_local_cipher())

    @staticmethod
    def load(path: str | PathLike[str]) -> Plan:
        """A plan that was saved.

        Raises
        ------
        PlanError
            There is none.
        JournalError
            It was changed, or saved by another user or on another machine.
        """
        return load_sealed(path, Plan, open_local_cipher())

    def refuse_stale(self, current: Mapping[str, Stored]) -> None:
        """Refuse to go on if what the plan was made from has moved.

        Parameters
        ----------
        current : mapping of str to Stored
            The memories of the plan as they are, by id; one that is missing is gone.

        Raises
        ------
        StalePlanError
        """
        refuse_stale(self, current)


def plan_of(
    access: Access,
    records: Iterable[Change],
    *,
    notes: Iterable[str] = (),
    created_at: datetime | None = None,
) -> Plan:
    """A plan for the user of an access.

    Parameters
    ----------
    access : Access
    records : iterable of Change
    notes : iterable of str
        As `Plan.notes`.
    created_at : datetime, optional
        By default this moment.
    """
    return Plan(
        records=tuple(records),
        base_url=access.client.base_url,
        user_id=access.user_id,
        key_version=access.credentials.key_version,
        created_at=created_at or access.client.runtime.now(),
        notes=tuple(dict.fromkeys(notes)),
        restore_days=access.client.restore_days,
    )


def _fields_of(change: Change) -> tuple[str, ...]:
    """In the order of the frames; a delete sends none."""
    return tuple(name for name in FIELDS if name in change.after)


def _document_of(change: Change) -> dict[str, Any]:
    shown = ("action", "row", "id", "before", "after", "reason", "group")
    return {name: getattr(change, name) for name in shown} | {"fields": _fields_of(change)}


def _regrouped(change: Change, taken: int) -> Change:
    return change if change.group is None else replace(change, group=change.group + taken)
