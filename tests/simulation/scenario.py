"""One scenario: a plan, what goes wrong, the death of the client, and what must hold at the end of it all."""

import sqlite3
import tempfile
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from msgspec.structs import replace

import memframe as mf
from memframe.access import Access
from memframe.apply import Run, apply_plan, resume_run
from memframe.envelope import Envelope
from memframe.journal import RunDirectory
from memframe.keystore import DataKey, LocalCipher
from memframe.plan import Plan, current
from memframe.plan.change import Change
from memframe.runtime import Runtime
from memframe.secret import Secret
from memframe.wire import Credentials
from tests.simulation import world as wire_faults
from tests.simulation.world import (
    BASE_URL,
    KEYS,
    LATE_S,
    USER_ID,
    Database,
    Killed,
    World,
    client_of,
    stamp,
)

SETTLE_S = LATE_S + 1
MAX_LIVES = 5
"""Processes that a scenario may take: one kill or two, and a resume for what was stopped by trouble."""
NOW = datetime(2030, 1, 1, tzinfo=UTC)
TMPFS = "/dev/shm"  # noqa: S108 - folders in it are made closed to others


@dataclass
class Ending:
    """What stands at the end of a scenario; `world.n_steps` are those of the last process."""

    world: World
    plan: Plan
    run: Run


class Stage:
    """What scenarios have in common and need not make anew: a client, keys, a folder."""

    def __init__(self):
        self.client, self.wire = client_of()
        place = TMPFS if Path(TMPFS).is_dir() else None
        self.home = tempfile.TemporaryDirectory(prefix="memframe-simulation-", dir=place)
        self.folder = Path(self.home.name) / "runs"
        self.journal = Path(self.home.name) / "run.journal"
        self.vault = LocalCipher((DataKey(Secret("5a" * 32)),))
        self.envelopes = {version: envelope_of(version) for version in KEYS}

    def clear(self):
        """No journal of an earlier scenario."""
        RunDirectory(self.folder).forget(self.journal)

    def access(self, version=1):
        credentials = Credentials(USER_ID, Secret("mk_1"), Secret(KEYS[version]), version)
        return Access(self.client, "r1", credentials, self.envelopes[version])

    def enter(self, world):
        """Give the client the time, chance and places of a world."""
        Database.world = self.wire.world = world
        self.client.runtime = Runtime(
            clock=world.clock,
            sleep=world.sleep,
            now=lambda: NOW,
            chance=lambda: 0.5,
            open_local_cipher=lambda: self.vault,
            folder=self.folder,
            connect=partial(sqlite3.connect, factory=Database),
        )

    def play(self, world, plan, *, settle_s=SETTLE_S, **options) -> Ending:
        """Apply a plan; after the client's death, and until nothing is left to do, resume.

        Memories are read one after the other, so that a scenario plays the same way each time.
        """
        with patch.object(current, "N_PARALLEL_READS", 1):
            return self._play(world, plan, settle_s, options)

    def _play(self, world, plan, settle_s, options):
        self.clear()
        common = {
            "settle_s": settle_s,
            "workers": 1,
            "progress": False,
        }
        self.enter(world)
        confirm = plan.counts.get("delete", 0)
        run = None
        for _ in range(MAX_LIVES):
            try:
                run = self._resumed(common) or apply_plan(
                    self.access(), plan, confirm=confirm, journal=self.journal, **common, **options
                )
            except Killed:
                world.restart()
            if run is not None and run.is_complete:
                break
        return Ending(world, plan, run)

    def _resumed(self, options):
        """The run gone on with; None where no process got as far as to write all of a journal."""
        if not self.journal.exists():
            return None
        try:
            return resume_run(self.access(), self.journal, **options)
        except mf.JournalError as refused:
            if "never began" not in str(refused):
                raise
            self.clear()


def envelope_of(version):
    return Envelope(Secret(KEYS[version]), user_id=USER_ID, key_version=version)


def plan_of(*records):
    return Plan(records=records, base_url=BASE_URL, user_id=USER_ID, key_version=1, created_at=NOW)


STAGE = Stage()
BORN = stamp(0.0)
"""When memories were made that were there before."""


# Plans, each with the state that it begins from


def creates(world, n=2):
    there_before(world, "something else")
    return plan_of(*(Change(action="create", row=row, after={"content": f"fact {row}"}) for row in range(n)))


def twins(world, n=2):
    """Creates that are equal, as one that was there before."""
    there_before(world, "the same")
    return plan_of(*(Change(action="create", row=row, after={"content": "the same"}) for row in range(n)))


def patches(world, n=2):
    rows = [there_before(world, f"fact {row}") for row in range(n)]
    return plan_of(
        *(
            Change(
                action="patch",
                row=row,
                id=there["id"],
                before={"title": "before"},
                after={"title": f"after {row}"},
            )
            for row, there in enumerate(rows)
        )
    )


def deletes(world, n=2):
    rows = [there_before(world, f"fact {row}") for row in range(n)]
    return plan_of(
        *(
            Change(
                action="delete", row=row, id=there["id"], before={"title": "before", "content": f"fact {row}"}
            )
            for row, there in enumerate(rows)
        )
    )


def merge(world):
    """A group: the keeper gets a title, its two duplicates go."""
    changes = (*patches(world, 1).records, *deletes(world, 2).records)
    return plan_of(*(replace(change, group=1) for change in changes))


def restores(world, n=2):
    """Creates that bring back what was deleted, of a service that keeps ids and times for them."""
    there_before(world, "something else")
    gone = [world.add(content="", title="before") for _ in range(n)]
    for row in gone:
        world.bury(row)
    return plan_of(
        *(
            Change(action="create", row=row, restores=one["id"], after={"content": f"fact {row}"})
            for row, one in enumerate(gone)
        )
    )


def there_before(world, text):
    world.texts_before.append(text)
    return world.add(content=world.stored_as(STAGE.envelopes[1].seal(text)), title="before")


PLANS = {plan.__name__: plan for plan in (creates, twins, patches, deletes, merge, restores)}


# The oracle


def faults_in(ending):
    """What does not hold; nothing of it for a client that is right."""
    return [*_unbalanced(ending), *_lost_or_double(ending), *_untrue(ending)]


def _unbalanced(ending):
    counts = ending.run.counts
    total = sum(counts[status] for status in ("done", "recovered", "rejected", "conflict", "unknown"))
    if counts["attempted"] != total or total + counts["planned"] != len(ending.plan.writes):
        yield f"unbalanced: {counts}"


def _lost_or_double(ending):
    """Texts of which the service holds more than were planned, or fewer than the run says it has made."""
    results = zip(ending.plan.writes, ending.run.results, strict=True)
    creates = [(change.after["content"], result) for change, result in results if change.action == "create"]
    planned = Counter(text for text, _ in creates)
    claimed = Counter(text for text, result in creates if result.status in {"done", "recovered"})
    held = Counter(content_of(row) for row in ending.world.rows.values()) - Counter(ending.world.texts_before)
    for text, n in planned.items():
        if held[text] > n:
            yield f"duplicated: {text!r} {held[text]} times, planned {n}"
        if held[text] < claimed[text]:
            yield f"lost: {text!r} {held[text]} times, said to be written {claimed[text]}"


def _untrue(ending):
    """Outcomes that say something else than the service holds."""
    rows = ending.world.rows
    for change, result in zip(ending.plan.writes, ending.run.results, strict=True):
        row = rows.get(result.id)
        if result.status in {"done", "recovered"} and not is_written(change, row):
            yield f"untrue: {change.action} of row {change.row} is {result.status}, the service holds {row}"
        if (
            result.status in {"rejected", "conflict", "planned"}
            and is_written(change, row)
            and change.action != "create"
        ):
            yield f"untrue: {change.action} of row {change.row} is {result.status}, but was written"


def is_written(change, row):
    if change.action == "delete":
        return row is None
    if change.restores and row and (row["id"], row["created_at"]) != (change.restores, BORN):
        return False
    return row is not None and all(
        (content_of(row) if name == "content" else row.get(name)) == value
        for name, value in change.after.items()
    )


def content_of(row):
    for envelope in STAGE.envelopes.values():
        with suppress(mf.SealError):
            return envelope.open(row["content"])
    return row["content"]


class Scenario(NamedTuple):
    """A scenario by its name, with which a failure can be played again.

    >>> Scenario("creates", ("reset_after", "ok"), (12,)).ending().run.is_complete
    True
    """

    plan: str
    faults: tuple[str, ...] = ()
    kills: tuple[int, ...] = ()

    def ending(self, *, encrypt=True, settle_s=SETTLE_S, **world):
        faults = deque(getattr(wire_faults, name) for name in self.faults)
        world = World(faults=faults, kills=deque(self.kills), **world)
        plan = PLANS[self.plan](world)
        world.pass_time(world.lag_s)
        return STAGE.play(world, plan, settle_s=settle_s, encrypt=encrypt)


def wrong_in(scenario, **world):
    """What does not hold at the end of a scenario."""
    ending = scenario.ending(**world)
    if ending.run is None:
        return ["no process came to its end"]
    return [*faults_in(ending), *([] if ending.run.is_complete else [f"unfinished: {ending.run}"])]
