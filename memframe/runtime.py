"""Clock, randomness and folders, held by `Client` so that tests can replace them."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memframe.keystore import LocalCipher, open_local_cipher


def utc_now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Runtime:
    """Clock, randomness and folders, which tests replace.

    Attributes
    ----------
    clock : callable
        A monotonic clock, in seconds.
    sleep : callable
        Waits a number of seconds.
    now : callable
        The time of day, in UTC.
    chance : callable
        A number from 0 to 1.
    open_local_cipher : callable
        Returns the cipher that seals journals and saved plans.
    folder : Path or None
        Folder of the journals; None is the user's state folder.
    connect : callable
        Opens the journal's database, as `sqlite3.connect` does.
    """

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = utc_now
    chance: Callable[[], float] = random.random
    open_local_cipher: Callable[[], LocalCipher] = open_local_cipher
    folder: Path | None = None
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect
