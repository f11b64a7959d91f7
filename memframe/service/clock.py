"""Read the clock; format and parse instants as they are stored: UTC, RFC 3339, always 27 characters.

The fixed width makes text order equal time order in every database.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Returns the current time. It is an argument everywhere, so that tests can set it."""


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def format_instant(when: datetime) -> str:
    """Format an aware datetime as 27 characters.

    >>> format_instant(datetime(2026, 3, 1, 8, 30, tzinfo=UTC))
    '2026-03-01T08:30:00.000000Z'
    """
    return when.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def parse_instant(text: str) -> datetime:
    """Parse the output of `format_instant` into an aware datetime.

    >>> parse_instant("2026-03-01T08:30:00.000000Z")
    datetime.datetime(2026, 3, 1, 8, 30, tzinfo=datetime.timezone.utc)
    """
    return datetime.fromisoformat(text)
