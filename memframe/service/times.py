"""Instants as the service writes them: UTC, RFC 3339, always 27 characters.

A fixed width makes text order and time order the same in every database, and the spelling of a time
never changes between two reads of a record.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Whatever tells the time; it is an argument everywhere, so that tests own it."""

Seconds = Callable[[], float]
"""A clock that only goes forward, such as `time.monotonic`: for durations."""


def utc_now() -> datetime:
    """The time of this machine, in UTC."""
    return datetime.now(UTC)


def instant_text(when: datetime) -> str:
    """An aware datetime as 27 characters.

    >>> instant_text(datetime(2026, 3, 1, 8, 30, tzinfo=UTC))
    '2026-03-01T08:30:00.000000Z'
    """
    return when.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def parse_instant(text: str) -> datetime:
    """What `instant_text` wrote, as an aware datetime.

    >>> parse_instant("2026-03-01T08:30:00.000000Z")
    datetime.datetime(2026, 3, 1, 8, 30, tzinfo=datetime.timezone.utc)
    """
    return datetime.fromisoformat(text)
