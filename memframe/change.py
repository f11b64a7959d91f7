"""Change: one write that shall happen, from which state of a memory to which.

What plans consist of, journals record and undo turns around. Values are plain, as people read them:
content is sealed when a run begins, not before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, get_args

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict, replace

Action = Literal["create", "patch", "delete", "conflict", "invalid"]
ACTIONS: tuple[Action, ...] = get_args(Action)
WRITES: frozenset[Action] = frozenset({"create", "patch", "delete"})
"""Actions that send something; the others are there to be looked at and stop a run before it begins."""

FIELDS = ("title", "summary", "content", "tags", "importance", "confidence", "source")
"""What a write may set; everything else about a memory belongs to the service."""

Value = str | float | tuple[str, ...] | None
"""Content of a field; None where there is none."""

MASK = "••••••"
"""What stands for a hidden text."""

Label = str | int | float | None
"""Label of a row in the edited frame, as far as JSON has it; others are kept as their text."""


class Change(Struct, frozen=True, kw_only=True):
    """One write that shall happen to one memory.

    Attributes
    ----------
    action : {"create", "patch", "delete", "conflict", "invalid"}
    row : str, int, float or None
        Label of the row in the frame that the plan was made from.
    id : str or None
        Of the memory; None for creates.
    before : dict of str to value
        The state that the plan was made from: of the fields in ``after`` for a patch, of all `FIELDS` for a
        delete, nothing for a create. The change is stale where the service holds something else.
        Content that could not be opened is left out; ``sealed`` stands for it.
    after : dict of str to value
        The fields to send, None clears one; empty for a delete.
    reason : str or None
        Why, in words for people: the finding, the conflict, or what makes it invalid.
    group : int or None
        Changes of one group hold together: its deletes wait until everything else of it is done.
    sealed : str or None
        SHA-256, hexadecimal, of the stored content, where that rather than the plain text shall be compared:
        it could not be opened, or is about to be sealed anew.
    verbatim : bool
        Whether the content in ``after`` is sealed already and is sent as it is: that of a memory that no key has
        opened, when it is made anew.
    hidden : tuple of str
        Texts, such as a password that is about to be redacted, that no display of the change shows.
    relies_on : dict of str to dict of str to value
        Other memories, by id, and what of each must still be so: the change is stale where it is not. Of a copy that
        is deleted, the one that holds from then on alone what it said.
    restores : str, optional
        Of a create, the id of the deleted memory that it brings back. A service that kept the times of that memory
        gives the new one its id and times; another one gives it an id of its own, and dates it of now.

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
    relies_on: dict[str, dict[str, Value]] = {}
    restores: str | UnsetType = UNSET  # left out of the JSON: plans and journals of before keep their form

    def __repr__(self) -> str:
        shown = asdict(masked(self))
        return f"Change({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @property
    def legible(self) -> dict[str, Value]:
        """The fields to send whose values are as people read them."""
        return {
            name: value for name, value in self.after.items() if not (self.verbatim and name == "content")
        }


def masked(change: Change) -> Change:
    """The change as it may be shown: with a mask for each of its hidden texts, in every text of it.

    >>> masked(Change(action="patch", id="m1", after={"title": "my pin is 4711"}, hidden=("4711",))).after
    {'title': 'my pin is ••••••'}
    """
    hidden = sorted(filter(None, change.hidden), key=len, reverse=True)  # a longer one may hold a shorter
    if not hidden:
        return replace(change, hidden=())
    pattern = re.compile("|".join(map(re.escape, hidden)))
    return replace(
        change,
        before=_masked_values(change.before, pattern),
        after=_masked_values(change.after, pattern),
        reason=change.reason and pattern.sub(MASK, change.reason),
        relies_on={
            memory_id: _masked_values(values, pattern) for memory_id, values in change.relies_on.items()
        },
        hidden=(),
    )


def _masked_values(values: Mapping[str, Value], pattern: re.Pattern[str]) -> dict[str, Value]:
    return {name: _masked_value(value, pattern) for name, value in values.items()}


def _masked_value(value: Value, pattern: re.Pattern[str]) -> Value:
    if isinstance(value, tuple):
        return tuple(pattern.sub(MASK, name) for name in value)
    return pattern.sub(MASK, value) if isinstance(value, str) else value


def same_value(field: str, one: Value, other: Value) -> bool:
    """Whether a field holds the same: numbers by value, text to the letter, tags as a set.

    >>> same_value("importance", 3, 3.0), same_value("tags", ("a", "b"), ("b", "a", "a")), same_value("tags", (), None)
    (True, True, True)
    >>> same_value("title", "é", "e\u0301"), same_value("title", "", None)
    (False, False)
    """
    if field == "tags":
        return set(one or ()) == set(other or ())  # type: ignore[arg-type]  # names or None
    return one == other
