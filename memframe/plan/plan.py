"""Plan: planned writes to one user's memories, to be reviewed, saved, and checked for staleness.

A saved plan is sealed with the data key of this user on this machine, as it holds texts that no display shows.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from memframe.access import Access
from memframe.display import number_of
from memframe.errors import PlanError, StalePlanError
from memframe.files import raise_os_errors_as, write_own_file
from memframe.keystore import open_local_cipher
from memframe.plan.change import FIELDS, WRITES, Action, Change, format_counts, list_some, mask
from memframe.plan.current import CurrentMemory
from memframe.plan.render import count_actions, on_one_line, render_diff, render_plan_html
from memframe.versions import package_version

UTC_MINUTE = "%Y-%m-%d %H:%M UTC"
BEGINNING = b"memframe plan "
MARK = BEGINNING + b"2\n"
"""Of a saved plan."""

SEALED_FOR = "the saved plan"
UNDO_NOTE = "An undo"
"""Beginning of the note on what an undo of deletes brings back."""

_COLUMNS = {
    "action": "str",
    "row": "object",
    "id": "str",
    "fields": "object",
    "before": "object",
    "after": "object",
    "reason": "str",
    "group": "Int64",
}


class Plan(Struct, frozen=True, kw_only=True, dict=True, omit_defaults=True):
    """Planned writes to one user's memories. Made by `plan_changes` and similar functions.

    A plan can be reviewed, saved, added to another plan, or passed to `apply_plan`. Its length is the number of
    changes, so an empty plan is false.

    Attributes
    ----------
    records : tuple of Change
    base_url : str
        Of the service.
    user_id : str
        Whose memories.
    key_version : int
        Version of the key with which content will be sealed.
    created_at : datetime
        UTC: when the state was read that the plan was made from.
    notes : tuple of str
        Sentences for the reader, such as what the plan leaves out and what an undo of its deletes restores.
        Every display begins with them; a sum of plans has the notes of both.

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
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        ids = (change.id or change.restores for change in self.records)
        n_of = Counter(filter(None, ids))
        repeated = [memory_id for memory_id, n_times in n_of.items() if n_times > 1]
        if repeated:
            raise PlanError(
                f"two changes of one plan concern the same memory: {list_some(repeated)}; make two plans"
            )

    def __repr__(self) -> str:
        return f"<memframe.Plan: {format_counts(count_actions(self.records))}>"

    def __str__(self) -> str:
        n_of = Counter(name for change in self.writes for name in change.after)
        fields = ", ".join(f"{name} {n_of[name]:,}" for name in FIELDS if n_of[name])
        return "\n".join(
            [
                f"Plan: {format_counts(count_actions(self.records))}",
                *(f"  note: {on_one_line(note)}" for note in self.notes),
                *([f"  fields to write: {fields}"] if fields else []),
                f"  {self._made}",
            ]
        )

    def _repr_html_(self) -> str:
        return render_plan_html(self.records, self.notes, self._made)

    def __len__(self) -> int:
        return len(self.records)

    @property
    def _made(self) -> str:
        return f"for user {self.user_id} at {self.base_url}, as of {self.created_at.strftime(UTC_MINUTE)}"

    @property
    def undo_note(self) -> str | None:
        """The note on what an undo of the deletes restores; None without deletes."""
        return next((note for note in self.notes if note.startswith(UNDO_NOTE)), None)

    def __add__(self, other: Plan) -> Plan:
        """Combine two plans; groups stay apart, and the older state counts.

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
                    f"plans for two different values of {name} cannot be combined: apply them one by one"
                )
        taken = 1 + max((change.group for change in self.records if change.group is not None), default=-1)
        moved = (
            change if change.group is None else replace(change, group=change.group + taken)
            for change in other.records
        )
        return replace(
            self,
            records=(*self.records, *moved),
            created_at=min(self.created_at, other.created_at),
            notes=tuple(dict.fromkeys(self.notes + other.notes)),
        )

    @cached_property
    def id(self) -> str:
        """SHA-256, hexadecimal, of the whole plan."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    @property
    def counts(self) -> dict[str, int]:
        """Number of changes of each action."""
        return dict(Counter(change.action for change in self.records))

    @cached_property
    def writes(self) -> tuple[Change, ...]:
        """The changes that send something; the others are conflicts and what is invalid."""
        return tuple(change for change in self.records if change.action in WRITES)

    def without(self, *actions: Action) -> Plan:
        """Return the plan without changes of some actions, such as conflicts; changes of the same group are
        also removed.
        """
        dropped = {change.group for change in self.records if change.action in actions} - {None}
        kept = [c for c in self.records if c.action not in actions and c.group not in dropped]
        has_deletes = any(change.action == "delete" for change in kept)
        notes = tuple(note for note in self.notes if has_deletes or note != self.undo_note)
        return replace(self, records=tuple(kept), notes=notes)

    @property
    def changes(self) -> pd.DataFrame:
        """One row per change: ``action row id fields before after reason group``, masked for display."""
        rows = [_document_of(change) for change in self.records]
        columns = {
            name: pd.Series([row[name] for row in rows], dtype=kind) for name, kind in _COLUMNS.items()
        }
        return pd.DataFrame(columns)

    def diff(self, *, color: bool | None = None, limit: int | None = None) -> str:
        """Return all changes as removed and added lines; long lines are shortened around the difference.

        Parameters
        ----------
        color : bool, optional
            Use terminal colours; by default if standard output is a terminal.
        limit : int, optional
            Show at most this many changes, conflicts and invalid ones first; the others are counted.
        """
        if color is None:  # https://no-color.org
            is_terminal = sys.stdout and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
            color = bool(is_terminal and not os.environ.get("NO_COLOR"))
        return render_diff(self.records, self.notes, color=color, limit=limit)

    def to_json(self) -> str:
        """Return the plan as JSON for other programs: its target, its counts, and its changes, masked for display."""
        names = ("id", "base_url", "user_id", "key_version", "created_at", "notes", "counts")
        document = {name: getattr(self, name) for name in names} | {
            "undo": self.undo_note,
            "changes": [_document_of(change) for change in self.records],
        }
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()

    def save(self, path: str | PathLike[str]) -> None:
        """Save the plan to a sealed file that only this user on this machine can load.

        Parameters
        ----------
        path : str or path
            An existing plan is replaced, any other file is not.

        Raises
        ------
        PlanError
            The file cannot be written, or is something else.
        """
        sealed = open_local_cipher().seal(msgspec.json.encode(self), associated_data=SEALED_FOR)
        write_own_file(path, MARK + sealed, "plan", error=PlanError)

    @staticmethod
    def load(path: str | PathLike[str]) -> Plan:
        """Load a plan that was saved.

        Raises
        ------
        PlanError
            There is none.
        JournalError
            The file was changed, or saved by another user or on another machine.
        """
        source = Path(path).expanduser()
        with raise_os_errors_as(PlanError, f"the plan {source} cannot be read", "check the path"):
            stored = source.read_bytes()
        if not stored.startswith(BEGINNING):
            raise PlanError(f"{source} is not a saved plan: check the path")
        refusal = PlanError(
            f"{source} was saved by another version of memframe ({package_version()} cannot read it): use that "
            "version, or plan again and save again"
        )
        if not stored.startswith(MARK):
            raise refusal
        data = open_local_cipher().open(stored.removeprefix(MARK), associated_data=SEALED_FOR)
        try:
            return msgspec.json.decode(data, type=Plan)
        except (msgspec.MsgspecError, ValueError):
            pass
        raise refusal  # out here, as what it came from may quote the plan

    def refuse_stale(self, current: Mapping[str, CurrentMemory]) -> None:
        """Raise an error if the memories have changed since the plan was made.

        Raises `StalePlanError`, which names the first rows and fields.
        """
        n_fields, n_moved, moved = 0, 0, []
        for change in self.writes:
            n_own = len(change.before.keys() | ({"content"} if change.sealed is not None else set()))
            n_own += sum(map(len, change.depends_on.values()))
            n_fields += n_own
            fields = find_stale_fields(change, current.get(change.id or ""))
            if fields:
                n_moved += n_own if fields == GONE else len(fields)
                moved.append(f"{change.label} {'is gone' if fields == GONE else ', '.join(fields)}")
            for memory_id, fields in broken_dependencies(change, current):
                n_moved += len(fields)
                what = "is gone" if fields == GONE else ", ".join(fields)
                moved.append(f"memory {memory_id}, which {change.label} depends on, {what}")
        if moved:
            raise StalePlanError(
                f"this plan is stale: {n_moved:,} of its {number_of(n_fields, 'field', 'fields')} changed since "
                f"{self.created_at.strftime(UTC_MINUTE)}: {list_some(moved)}; make a new plan"
            )


def plan_of(
    access: Access,
    records: Iterable[Change],
    *,
    notes: Iterable[str] = (),
    created_at: datetime | None = None,
) -> Plan:
    """Make a plan for the user of an access."""
    records = tuple(records)
    if any(change.action == "delete" for change in records):
        notes = [*notes, undo_note(access.client.restore_days)]
    return Plan(
        records=records,
        base_url=access.client.base_url,
        user_id=access.user_id,
        key_version=access.credentials.key_version,
        created_at=created_at or access.client.runtime.now(),
        notes=tuple(dict.fromkeys(notes)),
    )


def undo_note(restore_days: int) -> str:
    """Describe what an undo of deletes brings back."""
    if restore_days:
        days = number_of(restore_days, "day", "days")
        return f"{UNDO_NOTE} within {days} brings deleted memories back with their ids and dates."
    return (
        f"{UNDO_NOTE} brings deleted memories back with new ids and the date of that day: this service does not "
        "restore them."
    )


def _document_of(change: Change) -> dict[str, Any]:
    """Show a change as the columns of `Plan.changes`, with its hidden texts masked."""
    fields = tuple(name for name in FIELDS if name in change.after)
    masked = mask(change)
    return {name: fields if name == "fields" else getattr(masked, name) for name in _COLUMNS}


# -- staleness: judged by the fields in the plan, never by ``updated_at``

GONE = ("id",)
"""Takes the place of fields for a memory that was deleted."""


def find_stale_fields(change: Change, memory: CurrentMemory | None) -> tuple[str, ...]:
    """Find the fields of a change that differ at the service from the state that it was made from.

    ``("id",)`` stands for a memory that is gone; a create has none.

    Examples
    --------
    >>> from memframe.wire import MemoryBlob
    >>> change = Change(action="patch", id="m1", before={"title": "tea"}, after={"title": "Tea"})
    >>> find_stale_fields(change, CurrentMemory(MemoryBlob(id="m1", user_id="u1", title="coffee")))
    ('title',)
    >>> find_stale_fields(change, None)
    ('id',)
    """
    if change.id is None:
        return ()
    if memory is None:
        return GONE
    moved = {*memory.find_differences(change.before)}
    if change.sealed is not None:
        moved = moved - {"content"} if change.sealed == memory.sealed_digest else moved | {"content"}
    return tuple(name for name in FIELDS if name in moved)


def broken_dependencies(
    change: Change, current: Mapping[str, CurrentMemory]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Find memories that a change depends on and that are not as it needs them: ids, and fields or ``("id",)``.

    >>> change = Change(action="delete", id="m2", depends_on={"m1": {"content": "Likes tea"}})
    >>> list(broken_dependencies(change, {}))
    [('m1', ('id',))]
    """
    for memory_id, needed in change.depends_on.items():
        fields = find_stale_fields(
            Change(action="patch", id=memory_id, before=needed), current.get(memory_id)
        )
        if fields:
            yield memory_id, fields
