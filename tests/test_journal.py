"""The journal: closed, whole, for one process; and when it cannot be kept, nothing is sent."""

import errno
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import contextmanager
from copy import copy
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from uuid import uuid4

import msgspec
import pandas as pd
import pytest
from msgspec.structs import replace

import memframe as mf
from memframe.journal import Header, Journal, Operation, RunDirectory
from memframe.keystore import DataKey, LocalCipher
from memframe.plan.change import Change
from memframe.runtime import Runtime
from memframe.secret import Secret
from memframe.wire import MemoryBlob
from tests.canaries import spellings
from tests.simulation.scenario import STAGE, deletes, patches
from tests.simulation.world import KEYS, World

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
VAULT = LocalCipher((DataKey(Secret("3c" * 32)),))
HEADER = Header(
    run_id="0b5e9e9c-3d1f-4c55-9a53-6f5d4a1b2c3d",
    base_url="https://memories.example.org/api/v1",
    user_id="5f0c9b1e-93f3-4b6c-8c0a-0a4c6b8d2e11",
    request_id="r1",
    key_version=1,
    plan_id="ab" * 32,
    created_at=NOW,
    memframe="0.1.0",
    n_changes=2,
)
OLD = MemoryBlob(id="m1", user_id=HEADER.user_id, title="canary-of-the-old-title", content="mf1.1.sealed")
ENTRIES = (
    (
        Change(action="create", row=3, after={"content": "canary-of-the-content"}),
        b'{"content":"canary-of-the-body"}',
        None,
    ),
    (Change(action="delete", row=4, id="m1", before={"title": "canary-of-the-old-title"}), None, OLD),
)


def operation(n, **standing):
    return Operation(n=n, change=ENTRIES[n][0], **standing)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.journal"


@pytest.fixture
def journal(path):
    with Journal.create(path, HEADER, ENTRIES, VAULT, ids_before=["m1", "m2"]) as journal:
        yield journal


def reopened(path, **options):
    return Journal.open(path, VAULT, **options)


# What stands in it


def test_half_a_surrogate_pair_is_kept_as_it_came(path):
    odd = MemoryBlob(id="m1", user_id=HEADER.user_id, title="half \ud83d of a pair", tags=("\ude00",))
    with Journal.create(path, HEADER, [ENTRIES[0], (ENTRIES[1][0], None, odd)], VAULT) as journal:
        assert journal.backup(1) == odd


def test_the_file_is_for_its_owner_alone_also_while_it_is_written(journal, path):
    journal.record([operation(0, state="sending")])
    files = list(path.parent.iterdir())
    assert len(files) > 1  # what SQLite keeps beside it
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_neither_plaintext_nor_any_secret_is_in_a_journal():
    world = World()
    ending = STAGE.play(world, deletes(world))
    assert ending.run.is_complete
    raw = STAGE.journal.read_bytes()
    assert b"mk_1" not in raw
    for secret in ("fact 0", KEYS[1], "mf_key_of_the_simulation"):
        assert not any(spelling.encode() in raw for spelling in spellings(secret)), secret


# Who may write it


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")  # from Python 3.12 on
def test_a_fork_cannot_write_to_it(journal):
    if (child := os.fork()) == 0:
        try:
            journal.record([operation(0)])
        except mf.JournalError as refused:
            os._exit(0 if "fork" in str(refused) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


# What is no journal, or not as it was


def test_no_journal_is_told_from_a_damaged_one(tmp_path):
    with pytest.raises(mf.JournalError, match=r"there is no journal .*list_runs"):
        reopened(tmp_path / "nothing")
    empty, foreign, text = tmp_path / "empty", tmp_path / "foreign", tmp_path / "text"
    empty.touch()
    with sqlite3.connect(foreign) as database:
        database.execute("CREATE TABLE t (x)")
    database.close()
    text.write_text("Dear diary, " * 999)
    for file, words in ((empty, "never began"), (foreign, "not a journal"), (text, "damaged|not a database")):
        with pytest.raises(mf.JournalError, match=words):
            reopened(file)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("PRAGMA user_version = 99", "format 99"),
        ("DELETE FROM header WHERE name = 'mark'", "header cannot be authenticated"),
        ("DELETE FROM operations WHERE n = 1", "1 of 2 changes"),
        ("DELETE FROM entries WHERE n = 1", "change 1 is missing"),
        ("UPDATE operations SET state = 'done' WHERE n = 1", "state of change 1 was changed"),
        (
            "UPDATE entries SET change = (SELECT change FROM entries WHERE n = 0) WHERE n = 1",
            "change of change 1",
        ),
    ],
)
def test_a_journal_of_another_form_or_that_was_changed_is_refused(journal, path, statement, words):
    journal.close()
    with sqlite3.connect(path) as database:
        database.execute(statement)
    database.close()
    with pytest.raises(mf.JournalError, match=words), reopened(path) as again:
        again.operations()


def test_whatever_byte_is_changed_it_is_refused_or_reads_as_it_was():
    """Every 64th byte of a journal, one at a time: in the head, in the middle, at the end."""
    world = World()
    STAGE.play(world, patches(world))
    whole = STAGE.journal.read_bytes()
    wanted = reading(STAGE.journal, STAGE.vault)
    n_refused = 0
    for place in range(0, len(whole), 64):
        changed = bytearray(whole)
        changed[place] ^= 0x55
        STAGE.journal.write_bytes(changed)
        try:
            found = reading(STAGE.journal, STAGE.vault)
        except mf.JournalError:
            n_refused += 1
        else:
            assert found == wanted, place
    STAGE.clear()
    assert n_refused > 10


def reading(path, vault):
    """All that is read of a journal when it is resumed, but for what is there to be shown."""
    with Journal.open(path, vault) as journal:
        operations = journal.operations()
        return [(op, journal.requests([op.n]), journal.backup(op.n)) for op in operations], journal.ids_before


def test_a_journal_that_was_cut_short_or_ends_within_a_page_is_refused(journal, path):
    """SQLite reads zeros for what is missing, and one byte may be one."""
    journal.close()
    whole = path.read_bytes()
    for changed in (whole[:100], whole[:5000], whole[:-16], whole + bytes(4095)):
        path.write_bytes(changed)
        with pytest.raises(mf.JournalError):
            reading(path, VAULT)


# When it cannot be kept, nothing is sent


FULL = """
import sys
from resource import RLIM_INFINITY, RLIMIT_FSIZE, setrlimit
from memframe import JournalError
from tests.simulation.scenario import STAGE, creates
from tests.simulation.world import World
from memframe.apply import apply_plan, resume_run

for n_bytes in map(int, sys.argv[1:]):
    world = World()
    plan = creates(world, 40)
    STAGE.clear()
    options = {"progress": False, "workers": 1, "settle_s": 6}
    STAGE.enter(world)
    setrlimit(RLIMIT_FSIZE, (n_bytes, RLIM_INFINITY))
    try:
        fault = None
        apply_plan(STAGE.access(), plan, journal=STAGE.journal, **options)
    except JournalError as full:
        fault = full
    setrlimit(RLIMIT_FSIZE, (RLIM_INFINITY, RLIM_INFINITY))
    n_sent, is_begun = len(world.sent("POST")), STAGE.journal.exists()
    if fault and is_begun:
        assert resume_run(STAGE.access(), STAGE.journal, **options).is_complete
        assert len({row["content"] for row in world.rows.values()}) == len(world.rows) == 41
    print(n_sent, is_begun, fault)
"""
"""Runs on a disk that takes files of so many bytes only, which are then resumed on one that takes any."""


def filled_at(*n_bytes):
    command = [sys.executable, "-c", FULL, *map(str, n_bytes)]
    done = subprocess.run(command, capture_output=True, check=False, text=True, cwd=Path(__file__).parents[1])
    assert done.returncode == 0, done.stderr
    return [line.split(maxsplit=2) for line in done.stdout.splitlines()]


def test_a_disk_that_is_full_sends_nothing_more_and_the_run_can_be_resumed():
    at_once, soon, later, never = filled_at(3000, 20_000, 150_000, 10_000_000)
    assert at_once[:2] == soon[:2] == ["0", "False"]  # nothing was sent, and nothing is left behind
    assert soon[2].endswith("apply the plan again: nothing was sent")
    assert 0 < int(later[0]) < 40
    assert "resume_run(" in later[2]
    assert all("free some space" in fault for _, _, fault in (at_once, soon, later))
    assert never[2] == "None"


@pytest.mark.campaign
def test_a_disk_that_is_full_at_any_moment_loses_nothing():
    assert len(filled_at(*range(4096, 500_000, 4096))) == 122


def test_a_folder_that_cannot_be_written_is_named_before_anything_is_sent(tmp_path):
    world = World()
    plan = patches(world)
    STAGE.enter(world)
    with pytest.raises(mf.JournalError, match=r"no journal can be made at .*missing/run.journal"):
        mf.apply_plan(STAGE.access(), plan, journal=tmp_path / "missing" / "run.journal", progress=False)
    assert not world.sent("PATCH")


def test_a_journal_that_became_read_only_sends_nothing(journal, path, monkeypatch):
    journal.close()
    path.chmod(0o400)
    if os.access(path, os.W_OK):
        pytest.skip("the superuser may write everything")
    with pytest.raises(mf.JournalError, match=r"read-only|permissions"):
        reopened(path, writes=True)


def done(*command):
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_disk_that_became_read_only_is_named(journal, path):
    journal.close()
    folder = str(path.parent)
    if os.name != "posix" or not done("mount", "--bind", folder, folder):
        pytest.skip("only the superuser may mount")
    try:
        assert done("mount", "-o", "remount,bind,ro", folder)
        for writes in (True, False):
            with pytest.raises(mf.JournalError, match=r"is read-only: .* copy it to another disk") as refused:
                reopened(path, writes=writes)
            assert refused.value.errno == errno.EROFS
    finally:
        assert done("umount", folder)


# The run directory


@pytest.fixture
def directory(tmp_path):
    return RunDirectory(tmp_path / "runs")


def stood(directory, days_ago=0, state="done", run_id="0b5e9e9c"):
    header = replace(HEADER, run_id=run_id, created_at=NOW - timedelta(days=days_ago))
    path = directory.path_of(header)
    with Journal.create(path, header, ENTRIES, VAULT) as journal:
        journal.record([operation(n, state=state) for n in range(2)])
    return path


def test_runs_are_listed_with_their_state_and_counts(directory):
    none = directory.list_runs()
    states = {"a": "done", "b": "sending", "c": "planned", "d": "planned", "e": "done"}
    paths = [stood(directory, 5, state, run_id) for run_id, state in states.items()]
    paths[4].write_bytes(b"not any more" * 999)
    with Journal.open(paths[3], VAULT, writes=True) as journal:
        journal.record([operation(0)])
        runs = directory.list_runs().set_index("journal").loc[paths].reset_index()
    assert runs.state.tolist() == ["finished", "open", "open", "running", "unreadable"]
    counts = runs[["done", "unknown", "planned"]].head(3).to_numpy().tolist()
    assert counts == [[2, 0, 0], [0, 2, 0], [0, 0, 2]]
    assert none.empty
    pd.testing.assert_series_equal(none.dtypes, directory.list_runs().dtypes)


def test_old_runs_are_purged_with_all_that_lay_beside_them(directory):
    old, young = stood(directory, 31), stood(directory, 29, run_id="second")
    directory.mark_unfinished(replace(HEADER, run_id="second"), young)
    directory.mark_unfinished(replace(HEADER, run_id="0b5e9e9c"), old)
    gone = directory.purge_runs(NOW)
    assert gone.journal.tolist() == [old]
    assert [path.name for path in directory.folder.iterdir() if path.is_file()] == [young.name]
    assert [note.journal for note in directory.notes()] == [young]
    assert directory.purge_runs(NOW, float("inf")).empty
    assert directory.purge_runs(NOW, 0).journal.tolist() == [young]


@pytest.mark.parametrize("days", [-1, float("nan")])
def test_days_are_a_number_from_0(directory, days):
    with pytest.raises(mf.ConfigError, match="older_than_days"):
        mf.purge_runs(days)


def test_a_note_that_disappears_while_runs_are_listed_is_no_fault(directory, monkeypatch):
    """Another process purges: after the names were read, and after the files were seen."""
    path = stood(directory, 40)
    directory.mark_unfinished(HEADER, path)
    listed = type(path).glob

    def purged_meanwhile(folder, pattern):
        names = [*listed(folder, pattern)]
        monkeypatch.undo()
        directory.purge_runs(NOW)
        return iter(names)

    monkeypatch.setattr(type(path), "glob", purged_meanwhile)
    assert directory.list_runs().empty
    path = stood(directory, 40)

    def removed_meanwhile(path, *arguments, **options):
        if path.name.endswith(".journal"):
            path.unlink(missing_ok=True)
        return opened(path, *arguments, **options)

    opened = Journal.open
    monkeypatch.setattr(Journal, "open", removed_meanwhile)
    assert directory.list_runs().empty
    assert directory.purge_runs(NOW).empty


# What an earlier run leaves to the next one


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The folder of journals, of a state folder that nobody else uses."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "memframe" / "runs"


def facts(n=2, name="fact"):
    return pd.DataFrame({"content": [f"{name} {row}" for row in range(n)]})


def write(access, frame, **options):
    return mf.create_memories(access, frame, progress=False, settle_s=0.0, **options)


def cut_short(access, journal=None, **past):
    """The journal of a run of two creates that was interrupted behind the first."""
    runtime = Runtime(clock=map(float, count()).__next__, **past)  # no step of progress is too soon

    def stop(done, total, text):
        if done:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(access.client, "runtime", runtime)
        with pytest.raises(KeyboardInterrupt):
            mf.create_memories(access, facts(), journal=journal, progress=stop, workers=1)
    (found,) = mf.list_runs().query("state == 'open'").journal
    return found


def note_of(runs):
    (note,) = (runs / "open").iterdir()
    return note


@pytest.mark.parametrize(
    ("of_note", "damage"),
    [
        *[(True, text) for text in (b"\xff\xfe", b"{}", b'{"journal": 3}')],
        (False, b"no database any more" * 999),
    ],
)
def test_a_note_or_journal_that_cannot_be_read_stops_its_own_user_alone(
    user, access, runs, tmp_path, of_note, damage
):
    journal = cut_short(access, journal=tmp_path / "elsewhere.journal")
    file = note_of(runs) if of_note else journal
    file.write_bytes(damage)
    with pytest.raises(mf.JournalError) as caught:
        write(access, facts(1, "something else"))
    for words in (user.user_id, access.client.base_url, str(file), "resume_run", "purge_runs(journals="):
        assert words in str(caught.value)
    assert mf.list_runs().state.tolist() == ["unreadable"]
    with mine_and_another(user) as other:
        assert write(other, facts()).is_complete
    mf.purge_runs(journals=[file])
    assert write(access, facts(1, "something else")).is_complete


@contextmanager
def mine_and_another(user):
    other = type(user)(user.service, f"{uuid4()}@example.org")
    yield other.access()
    other.close()


def test_where_the_journal_stands_in_its_own_place_an_empty_note_is_not_missed(access, runs):
    journal = cut_short(access)
    note_of(runs).write_bytes(b"")
    with pytest.raises(mf.PlanError, match=r"interrupted.*2 changes.*resume_run"):
        write(access, facts())
    mf.resume_run(access, journal, progress=False, settle_s=0.0).raise_for_failures()
    assert len(mf.load_memories(access)) == 2


def test_a_run_at_another_service_with_the_same_user_id_is_none_of_ours(directory):
    elsewhere = replace(HEADER, base_url="https://elsewhere.example.org/api/v1")
    directory.mark_unfinished(HEADER, directory.path_of(HEADER))
    assert len(directory.unfinished(HEADER.base_url, HEADER.user_id.upper())) == 1
    assert not directory.unfinished(elsewhere.base_url, elsewhere.user_id)


def name_of(handle):
    return str(Path(f"/proc/self/fd/{handle}").readlink())


def test_a_note_is_on_the_disk_whole_before_anything_is_sent_or_nothing_is(access, runs, monkeypatch):
    """The disk is full when the note is written: after the journal, before the first request."""
    synced, really = [], os.fsync

    def full(handle):
        synced.append(name_of(handle))
        if f"{runs}/open/" in synced[-1]:
            raise OSError(errno.ENOSPC, "No space left on device")
        really(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(mf.JournalError, match=r"nothing is sent.*No space left"):
            write(access, facts())
    assert not [*(runs / "open").iterdir()]
    assert mf.load_memories(access).empty
    (run,) = mf.list_runs().to_dict("records")
    assert run["planned"] == 2
    synced.clear()
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(name_of(handle)))
    assert mf.resume_run(access, run["journal"], progress=False, settle_s=0.0).is_complete
    note, folder = synced
    assert note.startswith(f"{runs}/open/.")
    assert folder == str(runs / "open")


def test_a_plan_is_not_carried_out_twice_while_the_disk_with_its_journal_is_away(access, runs, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    plan = mf.plan_changes(access, facts())
    apply = partial(mf.apply_plan, access, plan, progress=False, settle_s=0.0)
    apply(journal=disk / "run.journal").raise_for_failures()
    away = disk.rename(tmp_path / "away")
    assert mf.list_runs().state.tolist() == ["missing"]
    assert mf.purge_runs(0).empty
    for options in ({}, {"journal": tmp_path / "another.journal"}):
        with pytest.raises(mf.PlanError) as caught:
            apply(**options)
        for words in (
            "applied, or its run",
            str(disk / "run.journal"),
            "connecting its disk",
            "purge_runs(journals=",
        ):
            assert words in str(caught.value)
    away.rename(disk)
    assert mf.list_runs().state.tolist() == ["finished"]
    with pytest.raises(mf.PlanError, match="already applied: plan_undo"):
        apply()
    assert len(mf.load_memories(access)) == 2
    (disk / "run.journal").unlink()
    assert mf.purge_runs(journals=[disk / "run.journal"]).state.tolist() == ["missing"]
    assert mf.list_runs().empty
    assert apply().is_complete  # who says that it is gone can have it twice


def test_rows_of_a_run_whose_journal_is_away_are_not_planned_anew(access, runs, tmp_path):
    journal = cut_short(access, journal=tmp_path / "run.journal")
    away = journal.rename(tmp_path / "away.journal")
    with pytest.raises(mf.JournalError, match=rf"interrupted.* not at {journal}.*connecting its disk"):
        write(access, facts())
    mf.resume_run(access, away, progress=False, settle_s=0.0).raise_for_failures()
    assert write(access, facts()).is_complete
    assert len(mf.load_memories(access)) == 4


def test_what_is_given_up_must_be_a_run_and_not_running(runs, directory, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    for path in (notes, tmp_path / "nothing"):
        with pytest.raises(mf.JournalError, match="no run is known"):
            directory.purge_runs(NOW, journals=[path])
    assert notes.exists()
    running = stood(directory)
    with Journal.open(running, VAULT, writes=True), pytest.raises(mf.JournalError, match="is running"):
        directory.purge_runs(NOW, journals=[running])
    assert running.exists()


@pytest.mark.parametrize(
    "changed",
    [
        {"user_id": "0b5e9e9c-3d1f-4c55-9a53-6f5d4a1b2c3d"},
        {"base_url": "https://elsewhere.example.org/api/v1"},
        {"encrypt": False},
    ],
)
def test_a_header_that_was_changed_on_the_disk_is_refused(access, user, runs, changed):
    """Also towards the user whom it names then: their memories would get what was meant for another one."""
    journal = cut_short(access)
    with sqlite3.connect(journal) as database:
        ((text,),) = database.execute("SELECT value FROM header WHERE name = 'header'")
        header = msgspec.json.decode(text, type=Header)
        named = replace(header, **changed)
        database.execute("UPDATE header SET value = ? WHERE name = 'header'", (msgspec.json.encode(named),))
    database.close()
    theirs = copy(access)
    theirs.credentials = replace(access.credentials, user_id=named.user_id)
    for opened in (access, theirs):
        for go_on in (mf.resume_run, mf.plan_undo):
            with pytest.raises(mf.JournalError, match="header"):
                go_on(opened, journal)
    assert len(mf.load_memories(access)) == 1


def test_finished_journals_go_with_age_when_a_run_begins_and_open_ones_stay(
    access, runs, tmp_path, monkeypatch
):
    plan = mf.plan_changes(access, facts())
    year_ago = datetime.now(UTC) - timedelta(days=365)
    with monkeypatch.context() as past:
        past.setattr(access.client, "runtime", Runtime(now=lambda: year_ago))
        finished = mf.apply_plan(access, plan, progress=False, settle_s=0.0).journal
        kept = write(access, facts(1, "kept"), journal=tmp_path / "run.journal")
    unfinished = cut_short(access, now=lambda: year_ago)
    for path in (finished, kept.journal, unfinished):
        os.utime(path, (year_ago.timestamp(), year_ago.timestamp()))
    young = write(access, facts(1, "something else")).journal
    assert not finished.exists()
    assert set(mf.list_runs().journal) == {kept.journal, unfinished, young}
    with pytest.raises(mf.PlanError, match=r"purged since.*a new plan"):
        mf.apply_plan(access, plan, progress=False)
    (note,) = [note for note in (runs / "plans").iterdir() if plan.id in note.name]
    assert access.user_id not in note.name + note.read_text()
    mf.purge_runs()
    assert note.exists()  # it was made just now
    mf.purge_runs(0)
    assert not note.exists()
