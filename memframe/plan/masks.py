"""Texts that no display of a plan shows, such as a password that is about to be redacted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from memframe.change import Change, Value

MASK = "••••••"


def masked(change: Change) -> Change:
    """The change as it may be shown.

    >>> change = Change(action="patch", id="m1", after={"title": "my pin is 4711"}, hidden=("4711",))
    >>> masked(change).after
    {'title': 'my pin is ••••••'}
    """
    hidden = sorted(filter(None, change.hidden), key=len, reverse=True)  # a longer one may hold a shorter
    if not hidden:
        return change
    pattern = re.compile("|".join(map(re.escape, hidden)))
    return replace(
        change,
        before=_masked_values(change.before, pattern),
        after=_masked_values(change.after, pattern),
        reason=change.reason and pattern.sub(MASK, change.reason),
        hidden=(),
    )


def _masked_values(values: Mapping[str, Value], pattern: re.Pattern[str]) -> dict[str, Value]:
    return {name: _masked_value(value, pattern) for name, value in values.items()}


def _masked_value(value: Value, pattern: re.Pattern[str]) -> Value:
    if isinstance(value, str):
        return pattern.sub(MASK, value)
    if isinstance(value, tuple):
        return tuple(pattern.sub(MASK, name) for name in _texts(value))
    return value


def _texts(value: Sequence[str]) -> Sequence[str]:
    return value
