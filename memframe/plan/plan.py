"""Plan: planned writes to one user's memories, to be reviewed, saved, and checked for staleness.

A saved plan is sealed with the data key of this user on this machine, because it holds texts that no display shows.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from memframe.access import Access
from memframe.audit.evidence import labels_of
from memframe.audit.text import with_all_columns
from memframe.display import number_of
from memframe.errors import PlanError, StalePlanError
from memframe.files import expand_path, raise_os_errors_as, write_own_file
from memframe.frames import READ
from memframe.keystore import open_local_cipher
from memframe.plan.change import FIELDS, WRITES, Action, Change, format_counts, list_some, mask
from memframe.plan.corrections import check_actions, edit_records, key_of, read_ids, select
from memframe.plan.current import CurrentMemory
from memframe.plan.losses import Loss, count_holders, find_keys, find_losses, known_texts, texts_besides
from memframe.plan.render import (
    count_actions,
    describe_equal,
    describe_losses,
    has_texts,
    on_one_line,
    render_diff,
    render_plan_html,
)
from memframe.runtime import utc_now
from memframe.versions import package_version

OF_FILE = "file:"
"""Beginning of `Plan.base_url` of a plan for a file; the path follows."""

UTC_MINUTE = "%Y-%m-%d %H:%M UTC"
MAGIC_STEM = b"memframe plan "
PLAN_MAGIC = MAGIC_STEM + b"3\n"
"""First bytes of a saved plan."""
READABLE_MAGICS = (PLAN_MAGIC, MAGIC_STEM + b"2\n")
"""First bytes of plans that can be loaded; plans of version 2 do not name what they leave out."""

PLAN_CONTEXT = "the saved plan"
UNDO_NOTE = "An undo"
"""Beginning of the note on what an undo of deletes brings back."""

COUNT_NOTE = "In memories: of "
"""Beginning of the note that counts proposals, and why some are left out; it is counted again when a plan is cut."""

MAX_NAMED, NAMING_CHARS = 500, 300
"""Most memories that a plan names, and characters from which a name is made, after a search for secrets in them."""

LEFT_OUT = "left out"
"""Default reason of changes that were cut from a plan."""

Ids = str | Iterable[str] | pd.DataFrame

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


class LeftOut(Struct, frozen=True):
    """Something that a plan leaves out.

    Attributes
    ----------
    id : str or None
        Id of the memory; None for a create.
    action : str
        The action that was proposed.
    reason : str
        Reason why it is not in the plan, in words for people.
    """

    id: str | None
    action: str
    reason: str


class Plan(Struct, frozen=True, kw_only=True, dict=True, omit_defaults=True):
    """Planned writes to one user's memories. Made by `plan_changes` and similar functions.

    A plan can be reviewed, saved, added to another plan, or passed to `apply_plan`. Its length is the number of
    changes, so an empty plan is false.

    Attributes
    ----------
    records : tuple of Change
    base_url : str
        Address of the service; for a file its path, after ``file:``.
    user_id : str
        Id of the user whose memories these are; empty for a file.
    key_version : int
        Version of the key with which content will be sealed.
    created_at : datetime
        Time at which the state was read from which the plan was made, in UTC.
    notes : tuple of str
        Sentences for the reader, such as what the plan leaves out and what an undo of its deletes restores.
        Every display begins with them; a sum of plans has the notes of both.
    left_out : tuple of LeftOut
        Proposals that are not in the plan; `left` has them as a frame.
    held : dict of str to int
        Number of texts outside the plan that hold a value of its memories, by value; counted when it was made, for
        `losses`.
    n_compared : int
        Number of memories whose texts were counted: those that the access had loaded.

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
    # Loses nothing that no other memory holds.
    <BLANKLINE>
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
    left_out: tuple[LeftOut, ...] = ()
    held: dict[str, int] = {}
    n_compared: int = 0

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
                *(f"  note: {on_one_line(note)}" for note in self._notes_of(with_texts=False)),
                *([f"  fields to write: {fields}"] if fields else []),
                *(f"    {on_one_line(line)}" for line in describe_equal(self.records)),
                f"  {self._made}",
            ]
        )

    def _repr_html_(self) -> str:
        return render_plan_html(self.records, self.remarks, self._made)

    def __len__(self) -> int:
        return len(self.records)

    @property
    def file(self) -> str | None:
        """The path of the file that the plan is for; None if it is for a service."""
        return self.base_url.removeprefix(OF_FILE) if self.base_url.startswith(OF_FILE) else None

    @property
    def _made(self) -> str:
        whose = f"user {self.user_id} at {self.base_url}" if self.file is None else self.file
        return f"for {whose}, as of {self.created_at.strftime(UTC_MINUTE)}"

    @property
    def undo_note(self) -> str | None:
        """The note on what an undo of the deletes restores; None without deletes."""
        return next((note for note in self.notes if note.startswith(UNDO_NOTE)), None)

    def __add__(self, other: Plan) -> Plan:
        """Combine two plans; groups stay apart, and the earlier ``created_at`` is kept.

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
                    f"plans with different values of {name} cannot be combined: apply them one by one"
                )
        taken = 1 + max((change.group for change in self.records if change.group is not None), default=-1)
        moved = (
            change if change.group is None else replace(change, group=change.group + taken)
            for change in other.records
        )
        records, left_out = (*self.records, *moved), self.left_out + other.left_out
        return replace(
            self,
            records=records,
            created_at=min(self.created_at, other.created_at),
            notes=keep_true_notes(self.notes + other.notes, records, left_out),
            left_out=left_out,
            held=self._held_without(other) | other._held_without(self),
            n_compared=max(self.n_compared, other.n_compared),
        )

    def _held_without(self, other: Plan) -> dict[str, int]:
        """Count the texts that hold the values of this plan, without those that the other plan changes."""
        theirs = count_holders(self.held, [*known_texts(other.records).values()])
        return {key: n - theirs.get(key, 0) for key, n in self.held.items() if n > theirs.get(key, 0)}

    @cached_property
    def id(self) -> str:
        """SHA-256, hexadecimal, of the whole plan."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    @property
    def counts(self) -> dict[str, int]:
        """Number of changes of each action; creates that bring back a deleted memory count as ``restore``."""
        return count_actions(self.records)

    @cached_property
    def writes(self) -> tuple[Change, ...]:
        """The changes that send a request; the others are conflicts and invalid changes."""
        return tuple(change for change in self.records if change.action in WRITES)

    def without(self, *actions: Action) -> Plan:
        """Return the plan without changes of some actions, such as conflicts.

        Changes of the same group go along. `left` names what was left out.

        Raises
        ------
        PlanError
            There is no such action.
        """
        check_actions(actions)
        ids = {id(change) for change in self.records if change.action in actions}
        groups = {change.group for change in self.records if id(change) in ids} - {None}
        return self._cut([id(change) in ids or change.group in groups for change in self.records])

    def leave_out(self, ids: Ids, *, reason: str = LEFT_OUT) -> Plan:
        """Return the plan without the changes of some memories; changes of the same group go along.

        Parameters
        ----------
        ids : str, iterable of str, or DataFrame
            Ids of memories, or rows that have them, such as rows of `changes`.
        reason : str
            Reason to be shown by `left`.

        Raises
        ------
        PlanError
            The plan does not change one of the memories.

        Examples
        --------
        >>> from memframe import load_memories, plan_changes
        >>> memories = load_memories(access)
        >>> plan = plan_changes(access, memories.head(3).assign(source="notes"))
        >>> cut = plan.leave_out(memories.id[:1])
        >>> len(cut), cut.left.reason.tolist()
        (2, ['left out'])
        """
        return self._cut(select(self.records, read_ids(ids)), reason)

    def only(self, ids: Ids) -> Plan:
        """Return the plan with only the changes of some memories, and those of the same groups.

        Parameters
        ----------
        ids
            As in `leave_out`.

        Raises
        ------
        PlanError
            The plan does not change one of the memories.
        """
        return self._cut([not is_chosen for is_chosen in select(self.records, read_ids(ids))])

    def edit(self, memory_id: str, **fields: Any) -> Plan:
        """Return the plan with other values for fields that it writes, such as the text of a merge.

        A merge is edited by the id of the memory that is kept. Its other fields stay as planned, and hidden texts stay
        hidden.

        Parameters
        ----------
        memory_id : str
        **fields
            ``content title summary tags importance confidence source``, checked like edited cells; None clears
            a field.

        Raises
        ------
        PlanError
            The plan does not write to this memory, or deletes it, or the value cannot be sent.

        Examples
        --------
        >>> from memframe import load_memories, plan_changes
        >>> memories = load_memories(access)
        >>> plan = plan_changes(access, memories.head(1).assign(title="Tea"))
        >>> plan.edit(memories.id[0], title="Green tea").records[0].after
        {'title': 'Green tea'}
        """
        records = edit_records(self.records, memory_id, fields)
        return replace(self, records=records, notes=keep_true_notes(self.notes, records, self.left_out))

    def _cut(self, is_cut: Sequence[bool], reason: str = LEFT_OUT) -> Plan:
        """Move changes to ``left_out``; their memories then count as holding what they hold now."""
        if not any(is_cut):
            return self
        cut = [change for change, is_one in zip(self.records, is_cut, strict=True) if is_one]
        kept = [change for change, is_one in zip(self.records, is_cut, strict=True) if not is_one]
        keys = find_keys(kept)
        held = Counter({key: n for key, n in self.held.items() if key in keys})
        held.update(count_holders(keys, [*known_texts(cut).values()]))
        left_out = (*self.left_out, *(LeftOut(key_of(change), change.action, reason) for change in cut))
        notes = keep_true_notes(self.notes, kept, left_out)
        return replace(self, records=tuple(kept), notes=notes, left_out=left_out, held=dict(held))

    @property
    def remarks(self) -> list[str]:
        """Lines with which displays begin: what would be lost, then the notes, then what was cut."""
        return self._notes_of(with_texts=True)

    def _notes_of(self, *, with_texts: bool) -> list[str]:
        """Return `remarks`, with the lost values or only their number."""
        is_counted = not self.left_out or any(note.startswith(COUNT_NOTE) for note in self.notes)
        cut = [] if is_counted else [count_proposals(len(self.records), self.left_out)]
        lost = [describe_losses(self._losses, self.n_compared, with_texts=with_texts)] if self.records else []
        return [*lost, *self.notes, *cut]

    def compare_with(self, memories: pd.DataFrame) -> Plan:
        """Return the plan with its losses looked for in these memories instead of those that the access had loaded.

        Parameters
        ----------
        memories : DataFrame
            With ``id title summary content``, such as all frames of `iter_memories` together.
        """
        held = count_holders(find_keys(self.records), texts_besides(memories, self.records))
        return replace(self, held=held, n_compared=len(memories))

    @cached_property
    def _losses(self) -> tuple[Loss, ...]:
        return tuple(find_losses(self.records, self.held).values())

    @property
    def losses(self) -> pd.DataFrame:
        """One row for each value that no memory would hold any more: ``value kind field id``, masked for display.

        Values are numbers, dates, times, amounts, names, addresses and quotations in titles, summaries and contents.
        They are looked for in the texts that the plan writes, and in those that the access had loaded when the plan
        was made (``n_compared`` memories); nothing is read from the service. Without a load, other memories are not
        known, and may hold what is listed. Another spelling of the same value is no loss, nor is what is redacted.
        Your own edits are listed, too; `apply_plan` asks to confirm what deletes and merges lose.
        """
        return _frame_of(self._losses, Loss)

    @property
    def changes(self) -> pd.DataFrame:
        """One row per change: ``action row id fields before after reason group``, masked for display."""
        rows = [_document_of(change) for change in self.records]
        columns = {
            name: pd.Series([row[name] for row in rows], dtype=kind) for name, kind in _COLUMNS.items()
        }
        return pd.DataFrame(columns)

    @property
    def left(self) -> pd.DataFrame:
        """One row for each proposal that the plan leaves out: ``id action reason``."""
        return _frame_of(self.left_out, LeftOut)

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
        return render_diff(self.records, self.remarks, color=color, limit=limit)

    def to_json(self) -> str:
        """Return the plan as JSON for other programs: its target, its counts, and its changes, masked for display."""
        names = ("id", "base_url", "user_id", "key_version", "created_at", "notes", "counts")
        document = {name: getattr(self, name) for name in names} | {
            "undo": self.undo_note,
            "losses": self._losses,
            "left": self.left_out,
            "changes": [
                _document_of(change) | ({"keeps": mask(change).keeps} if change.keeps else {})
                for change in self.records
            ],
        }
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()

    def save(self, path: str | PathLike[str]) -> None:
        """Save the plan to a sealed file that only this user on this machine can load.

        Parameters
        ----------
        path : str or Path
            An existing plan is replaced, any other file is not.

        Raises
        ------
        PlanError
            The file cannot be written, or is not a plan.
        """
        sealed = open_local_cipher().seal(msgspec.json.encode(self), associated_data=PLAN_CONTEXT)
        write_own_file(path, PLAN_MAGIC + sealed, "plan", error=PlanError)

    @staticmethod
    def load(path: str | PathLike[str]) -> Plan:
        """Load a plan that was saved.

        Raises
        ------
        PlanError
            The file cannot be read, or is not a plan that this version can load.
        JournalError
            The file was changed, or saved by another user or on another machine.
        """
        source = expand_path(path)
        with (
            raise_os_errors_as(PlanError, f"the plan {source} cannot be read", "check the path"),
            source.open("rb") as file,
        ):
            stored = file.read(len(MAGIC_STEM))
            if stored != MAGIC_STEM:  # what is no plan may have no end, as a device
                raise PlanError(f"{source} is not a saved plan: check the path")
            stored += file.read()
        refusal = PlanError(
            f"{source} was saved by another version of memframe ({package_version()} cannot read it): use that "
            "version, or plan again and save again"
        )
        mark = next(filter(stored.startswith, READABLE_MAGICS), None)
        if mark is None:
            raise refusal
        data = open_local_cipher().open(stored.removeprefix(mark), associated_data=PLAN_CONTEXT)
        try:
            return msgspec.json.decode(data, type=Plan)
        except (msgspec.MsgspecError, ValueError):
            pass
        raise refusal  # outside of except, because the cause may quote the plan

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


class Target(NamedTuple):
    """Memories that a plan is for: those of a user of a service, or of a file."""

    base_url: str
    user_id: str
    key_version: int
    restore_days: int | None
    """Days for which the service can restore a deleted memory; None for a file."""
    known: Callable[[], pd.DataFrame | None]
    """Returns the memories in which values are looked for that the plan could lose."""
    now: Callable[[], datetime]


def target_of(given: Access | pd.DataFrame) -> Target:
    """Return the target of an access; or of memories that were read from a file."""
    if isinstance(given, Access):
        client = given.client
        return Target(
            client.base_url,
            given.user_id,
            given.credentials.key_version,
            client.restore_days,
            given.baseline,
            client.runtime.now,
        )
    file = given.attrs.get(READ, {}).get("file", "a frame")
    file = str(Path(file).absolute()) if Path(file).exists() else file
    return Target(f"{OF_FILE}{file}", "", 0, None, lambda: with_all_columns(given), utc_now)


def plan_of(
    given: Access | pd.DataFrame,
    records: Iterable[Change],
    *,
    notes: Iterable[str] = (),
    left: Iterable[LeftOut] = (),
    created_at: datetime | None = None,
) -> Plan:
    """Make a plan for the user of an access, or for the file of memories; ``left`` is what it leaves out.

    Values that the plan could lose are looked for in all memories that the access has loaded, or that the file holds.
    """
    target = target_of(given)
    records = _add_names(records, target)
    if target.restore_days is not None and any(change.action == "delete" for change in records):
        notes = [*notes, undo_note(target.restore_days)]
    keys = find_keys(records)
    baseline = target.known() if keys else None
    others = () if baseline is None else texts_besides(baseline, records)
    return Plan(
        records=records,
        base_url=target.base_url,
        user_id=target.user_id,
        key_version=target.key_version,
        created_at=created_at or target.now(),
        notes=keep_true_notes(notes, records, ()),
        left_out=tuple(left),
        held=count_holders(keys, others),
        n_compared=0 if baseline is None else len(baseline),
    )


def _add_names(records: Iterable[Change], target: Target) -> tuple[Change, ...]:
    """Name the memories of changes without texts, as far as they are known."""
    records = tuple(records)
    textless = (change.id for change in records if change.id and not change.name and not has_texts(change))
    nameless = set(islice(textless, MAX_NAMED))
    known = target.known() if nameless else None
    if known is None or known.empty:
        return records
    concerned = known[known["id"].isin(nameless)]
    beginnings = {name: concerned[name].str.slice(0, NAMING_CHARS) for name in ("title", "content")}
    labels = labels_of(pd.DataFrame({"id": concerned["id"], **beginnings}), nameless)
    return tuple(
        replace(change, name=labels[change.id]) if change.id in nameless and labels.get(change.id) else change
        for change in records
    )


def keep_true_notes(
    notes: Iterable[str], records: Iterable[Change], left_out: Sequence[LeftOut]
) -> tuple[str, ...]:
    """Return the notes that hold for these changes: each once, counts updated, on an undo only if there are deletes."""
    records = list(records)
    has_deletes = any(change.action == "delete" for change in records)
    kept = []
    for note in dict.fromkeys(notes):
        if note.startswith(COUNT_NOTE) and left_out:
            kept.append(count_proposals(len(records), left_out))
        elif has_deletes or not note.startswith(UNDO_NOTE):
            kept.append(note)
    return tuple(kept)


def count_proposals(n_changes: int, left_out: Sequence[LeftOut]) -> str:
    """Count the proposals that a plan carries out, and those that it leaves out, by reason.

    >>> count_proposals(3, [LeftOut("m1", "delete", "left out")])
    'In memories: of 4 proposals 3 are carried out; 1 is left for you: 1 left out.'
    """
    proposals = number_of(n_changes + len(left_out), "proposal", "proposals")
    done = number_of(n_changes, "is carried out", "are carried out")
    left = number_of(len(left_out), "is", "are")
    why = Counter(one.reason for one in left_out).most_common()
    reasons = "; ".join(f"{n:,} {reason}" for reason, n in why)
    return f"{COUNT_NOTE}{proposals} {done}; {left} left for you: {reasons}."


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


def _frame_of(records: Sequence[Struct], kind: type[Struct]) -> pd.DataFrame:
    """Return structs as a frame; without any, the frame has the same columns."""
    names = kind.__struct_fields__
    rows = [[getattr(one, name) for name in names] for one in records]
    return pd.DataFrame(rows, columns=names, dtype="str")


# -- staleness: judged by the fields in the plan, never by ``updated_at``

GONE = ("id",)
"""Stands for the fields of a memory that was deleted."""


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
    """Find the memories that a change depends on and that differ from what it needs; yield ids with fields.

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
