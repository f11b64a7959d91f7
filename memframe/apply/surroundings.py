"""What a run has from its surroundings: time, chance, and its places on the disk."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memframe.journal import Connect
from memframe.vault import Vault, open_vault


@dataclass(frozen=True)
class Surroundings:
    """Time, chance and places; tests bring their own.

    Attributes
    ----------
    clock : callable
        Seconds that only grow.
    sleep : callable
        Waits so many seconds.
    now : callable
        The time of day, in UTC.
    chance : callable
        A number from 0 to 1.
    open_vault : callable
        Gives the vault that seals the journal.
    folder : Path or None
        Where journals stand; None is the user's state folder.
    connect : callable
        Opens the journal's database, as `sqlite3.connect` does.
    """

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    chance: Callable[[], float] = random.random
    open_vault: Callable[[], Vault] = open_vault
    folder: Path | None = None
    connect: Connect = sqlite3.connect
