"""Recognise memories that their own system marks as outdated: by a time, a state, a flag or a successor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache

from memframe.frames import read_moment

ENDS = (
    "invalid_at", "expired_at", "expires_at", "expiration_date", "valid_until", "valid_to", "superseded_at",
    "archived_at", "deleted_at", "forgotten_at",
)  # fmt: skip
"""Names of columns with a time from which on a memory no longer holds."""

STATES = {
    "status": "archived deleted deprecated disabled expired forgotten inactive invalid obsolete outdated paused "
    "replaced retracted superseded",
}
STATES["state"] = STATES["status"]
"""Names of columns with a state, and the states in which a memory no longer holds."""

FLAGS = {
    **dict.fromkeys(["is_latest", "is_active", "is_current", "is_valid", "active", "enabled"], False),
    **dict.fromkeys(
        [
            "is_forgotten",
            "is_deleted",
            "is_archived",
            "archived",
            "deleted",
            "forgotten",
            "obsolete",
            "superseded",
        ],
        True,
    ),
}
"""Names of columns with a flag, and the value with which a memory no longer holds."""

SUCCESSORS = ("replaced_by", "superseded_by")
"""Names of columns with the memory that replaces this one."""


@lru_cache(maxsize=1024)
def _fold(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")


_ENDS, _STATES = {*map(_fold, ENDS)}, {name: {*states.split()} for name, states in STATES.items()}
_FLAGS = {_fold(name): value for name, value in FLAGS.items()}
_SUCCESSORS = {*map(_fold, SUCCESSORS)}
_KNOWN = {*_ENDS, *_STATES, *_FLAGS, *_SUCCESSORS}


def declaring(names: Iterable[object]) -> list[str]:
    """Return the names of columns that may declare a memory outdated; case, hyphens and underscores do not matter.

    >>> declaring(["content", "invalidAt", "status", 3])
    ['invalidAt', 'status']
    """
    return [name for name in names if isinstance(name, str) and _fold(name) in _KNOWN]


def declared_outdated(cells: Mapping[str, object], now: datetime) -> str | None:
    """Return the cell that declares a memory outdated, with its name; None if none does.

    >>> at = datetime(2026, 5, 1, tzinfo=UTC)
    >>> declared_outdated({"content": "Lives in Lyon", "invalid_at": "2024-05-01T10:00:00Z"}, at)
    'invalid_at: 2024-05-01T10:00:00Z'
    >>> declared_outdated({"status": "active", "valid_until": "2030-01-01", "isLatest": "True"}, at)
    """
    for name in declaring(cells):
        value, folded = cells[name], _fold(name)
        value = value.item() if hasattr(value, "item") else value  # a NumPy scalar
        text = str(value).strip()
        if value is None or value != value or text.casefold() in ("", "none", "null", "nan", "nat", "<na>"):
            continue
        word = text.casefold()
        if folded in _ENDS:
            is_outdated = _is_past(value, now)
        elif folded in _STATES:
            is_outdated = word in _STATES[folded]
        elif folded in _FLAGS:
            is_outdated = word in _FLAG_WORDS[_FLAGS[folded]]
        else:
            is_outdated = word not in _FLAG_WORDS[False]  # any successor
        if is_outdated:
            return f"{name}: {text[:60]}"
    return None


_FLAG_WORDS = {True: {"true", "1", "1.0", "yes"}, False: {"false", "0", "0.0", "no"}}


def _is_past(value: object, now: datetime) -> bool:
    """Return True for a time that has passed. A time that cannot be read counts as passed, because it is an end."""
    moment, _ = read_moment(value)
    if moment is None:
        return str(value).strip().casefold() not in _FLAG_WORDS[False]
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) <= now
