"""Change: one planned write, from one state of a memory to another.

Plans consist of changes, journals record them, and undo inverts them. Values are plain: content is sealed when a run
begins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import asdict, replace

from memframe.display import number_of
from memframe.fields import MEMORY_FIELDS, NAMES_FIELDS
from memframe.secret import MASK

Action = Literal["create", "patch", "delete", "conflict", "invalid"]
CHANGE_ACTIONS: tuple[Action, ...] = get_args(Action)
WRITES: frozenset[Action] = frozenset({"create", "patch", "delete"})
"""Actions that send a request; a plan with any of the others is refused by `apply_plan`."""

FIELDS = tuple(field.name for field in MEMORY_FIELDS if field.is_editable)
"""Fields that a write may set; all others belong to the service."""

Value = str | float | tuple[str, ...] | None
Fields = Mapping[str, Value]
Label = str | int | float | None
"""Label of a row in the edited frame; a label that JSON cannot hold is kept as text."""

MAX_LISTED = 5
"""Rows or ids that a message names before it counts the others."""


class Change(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One planned write to one memory.

    Attributes
    ----------
    action : {"create", "patch", "delete", "conflict", "invalid"}
    row : str, int, float or None
        Label of the row in the frame that the plan was made from.
    id : str or None
        Id of the memory; None for creates.
    before : dict of str to value
        The values from which the plan was made: of the fields in ``after`` for a patch, of all `FIELDS` for a
        delete, none for a create. The change is stale if the service holds other values.
        Content that could not be opened is left out; ``sealed`` stands for it.
    after : dict of str to value
        The values to send, of which None clears a field; empty for a delete.
    reason : str or None
        Reason in words for people: the finding, the conflict, or what makes it invalid.
    group : int or None
        Number of the group. Changes of one group hold together: its deletes wait until its other changes are done.
    sealed : str or None
        SHA-256, hexadecimal, of the stored content, if that is compared instead of the plain text: the content
        could not be opened, or will be sealed again.
    verbatim : bool
        True if the content in ``after`` is sealed already and is sent unchanged, because a memory that no key opened
        is created again.
    hidden : tuple of str
        Texts that no display of the change shows, such as a password that will be redacted.
    depends_on : dict of str to dict of str to value
        Fields of other memories, by id, that must be unchanged, or else the change is stale. A copy that is deleted
        depends on the memory that is kept.
    keeps : dict of str to str
        For a delete, the content (after the plan) of the memory that keeps what the deleted one says, by its id.
    checks : tuple of str
        Checks of the audit that proposed the change.
    restores : str or None
        For a create, the id of the deleted memory that it brings back. A service that can restore it keeps its id and
        times; otherwise the memory gets a new id and the current date.
    name : str or None
        For a change without texts, the title or first words of the memory, secrets masked.

    Examples
    --------
    >>> Change(action="patch", id="m1", row=4, before={"title": "tea"}, after={"title": "Tea"})  # doctest: +ELLIPSIS
    Change(action='patch', row=4, id='m1', before={'title': 'tea'}, after={'title': 'Tea'}, ...)
    """

    action: Action
    row: Label = None
    id: str | None = None
    before: dict[str, Value] = {}
    after: dict[str, Value] = {}
    reason: str | None = None
    group: int | None = None
    sealed: str | None = None
    verbatim: bool = False
    hidden: tuple[str, ...] = ()
    depends_on: dict[str, dict[str, Value]] = {}
    keeps: dict[str, str] = {}
    checks: tuple[str, ...] = ()
    restores: str | None = None
    name: str | None = None

    def __repr__(self) -> str:
        shown = asdict(mask(self))
        return f"Change({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @property
    def plain(self) -> dict[str, Value]:
        """The fields to send whose values are plain."""
        return {
            name: value for name, value in self.after.items() if not (self.verbatim and name == "content")
        }

    @property
    def compares_content(self) -> bool:
        """True if the content of a memory must be opened to compare it with the change."""
        compared = (self.before, self.after, *self.depends_on.values())
        return any("content" in fields for fields in compared)

    @property
    def label(self) -> str:
        """Name of the change for messages: its row, or its memory if there is no row.

        >>> Change(action="delete", id="m1", row=7).label, Change(action="delete", id="m1").label
        ('row 7', 'memory m1')
        """
        return f"memory {self.id}" if self.row is None else f"row {self.row}"


def mask(change: Change) -> Change:
    """Replace the hidden texts of a change everywhere in it, so that it may be shown.

    >>> mask(Change(action="patch", id="m1", after={"title": "my pin is 4711"}, hidden=("4711",))).after
    {'title': 'my pin is ••••••'}
    """
    hidden = sorted(filter(None, change.hidden), key=len, reverse=True)  # one may contain a shorter one
    if not hidden:
        return replace(change, hidden=())
    pattern = re.compile("|".join(map(re.escape, hidden)))

    def mask_fields(fields: Fields) -> dict[str, Value]:
        masked = dict(fields)
        for name, value in fields.items():
            if isinstance(value, str):
                masked[name] = pattern.sub(MASK, value)
            elif isinstance(value, tuple):
                masked[name] = tuple(pattern.sub(MASK, one) for one in value)
        return masked

    return replace(
        change,
        before=mask_fields(change.before),
        after=mask_fields(change.after),
        reason=change.reason and pattern.sub(MASK, change.reason),
        depends_on={memory_id: mask_fields(fields) for memory_id, fields in change.depends_on.items()},
        keeps={memory_id: pattern.sub(MASK, text) for memory_id, text in change.keeps.items()},
        hidden=(),
    )


def same_value(field: str, one: Value, other: Value) -> bool:
    """Compare two values of a field: numbers by value, text exactly, tags as a set.

    >>> same_value("importance", 3, 3.0), same_value("tags", ("a", "b"), ("b", "a", "a")), same_value("tags", (), None)
    (True, True, True)
    >>> same_value("title", "é", "e\u0301"), same_value("title", "", None)
    (False, False)
    """
    if field in NAMES_FIELDS:
        return set(one or ()) == set(other or ())  # type: ignore[arg-type]  # names or None
    return one == other


def in_order(fields: Fields) -> dict[str, Value]:
    """Sort fields in the order of the columns of frames."""
    return {name: fields[name] for name in FIELDS if name in fields}


_NOUNS = {
    "patch": ("patch", "patches"),
    "create": ("create", "creates"),
    "restore": ("restore", "restores"),
    "delete": ("delete", "deletes"),
    "conflict": ("conflict", "conflicts"),
    "invalid": ("invalid", "invalid"),
}


def format_counts(n_of: Mapping[str, int]) -> str:
    """Format counts of actions for people.

    >>> format_counts({"create": 3, "patch": 1200})
    '1,200 patches, 3 creates'
    >>> format_counts({})
    'nothing to do'
    """
    parts = [number_of(n_of[name], *noun) for name, noun in _NOUNS.items() if n_of.get(name)]
    return ", ".join(parts) or "nothing to do"


def list_some(parts: Sequence[str], between: str = ", ") -> str:
    """List the first few of many and count the rest.

    >>> list_some(["row 1", "row 2"])
    'row 1, row 2'
    >>> list_some([f"row {number}" for number in range(1200)])
    'row 0, row 1, row 2, row 3, row 4 and 1,195 more'
    """
    n_more = len(parts) - MAX_LISTED
    return between.join(parts[:MAX_LISTED]) + (f" and {n_more:,} more" if n_more > 0 else "")
