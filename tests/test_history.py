"""States of the past in an archive: each is what was exported then, none needs another, and erasure reaches all."""

import io
import os
import shutil
import signal
import sys
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memframe as mf
from memframe import plot, wire
from memframe.archive import formats
from memframe.errors import ConfigError, FrameError, PlanError, SealError
from memframe.fleet.run import forget_revoked
from memframe.history import trace_memory
from memframe.runtime import Runtime
from memframe.snapshots import PERIODS, SNAPSHOTS, choose_kept, name_snapshot
from tests.conftest import User
from tests.rows import assert_same, memories_of
from tests.strangers import MEMORY

NO_ARCHIVE = {"notes.txt": "Ada likes tea", "plan.bin": "memframe plan 1"}

START = datetime(2026, 11, 1, 2, tzinfo=UTC)


def memory(number, title="tea", source="chat"):
    return {
        **MEMORY,
        "id": f"m{number}",
        "title": title,
        "content": f"Content {number} {title}",
        "tags": ["a", f"t{number}"],
        "source": source,
    }


class Kept:
    """An archive that keeps its states, of a service that has what a test says, on nights that it chooses."""

    def __init__(self, stranger, path, *, sealed=False):
        self.stranger, self.path, self.sealed, self.now = stranger, path, sealed, datetime.now(UTC)
        client = stranger.client()
        client.runtime = Runtime(now=lambda: self.now)
        self.access = mf.open_access(client, "r1")

    def export(self, memories):
        self.stranger.answer(wire.LIST_MEMORIES, memoryBlobs=memories)
        mf.export_memories(self.access, self.path, sealed=self.sealed, progress=False)
        return self

    def refresh(self, memories, *, keep=True, after=timedelta(days=1)):
        self.now += after
        self.stranger.answer(wire.LIST_MEMORIES, memoryBlobs=memories)
        return mf.refresh_archive(self.access, self.path, keep=keep, progress=False)

    @property
    def key(self):
        return self.access if self.sealed else None

    def load(self, as_of=None, **options):
        return mf.load_archive(self.path, key=self.key, as_of=as_of, **options)

    @property
    def snapshots(self):
        return mf.list_snapshots(self.path)

    @property
    def files(self):
        return sorted((self.path / SNAPSHOTS).iterdir())


@pytest.fixture
def kept(stranger, tmp_path):
    return Kept(stranger, tmp_path / "memories")


@pytest.fixture(params=[False, True], ids=["plain", "sealed"])
def either(request, stranger, tmp_path):
    return Kept(stranger, tmp_path / "memories", sealed=request.param)


# Any history

STATES = st.lists(
    st.tuples(
        st.lists(st.integers(0, 9), unique=True, max_size=10),
        st.sets(st.integers(0, 9)),
        st.sampled_from(["listed", "sorted"]),
    ),
    min_size=2,
    max_size=6,
)


@given(states=STATES, sealed=st.booleans())
@settings(max_examples=8)
def test_every_state_is_what_was_exported_then(tmp_path_factory, stranger, monkeypatch, states, sealed):
    monkeypatch.setattr(formats, "PART_ROWS", 4)
    kept = Kept(stranger, tmp_path_factory.mktemp("states") / "memories", sealed=sealed)
    exported = []
    for numbers, edited, order in states:
        ordered = sorted(numbers) if order == "sorted" else numbers
        memories = [memory(number, "new" if number in edited else "tea") for number in ordered]
        if exported:
            kept.refresh(memories)
        else:
            kept.export(memories)
        exported.append((kept.now, kept.load()))
    for moment, frame in exported[1:]:
        assert_same(kept.load(as_of=moment), frame)
    assert_same(kept.load(as_of=exported[0][0] + timedelta(hours=1)), exported[0][1])


def test_snapshots_are_listed_with_counts_by_source(either):
    either.export([memory(1), memory(2, source="notes")])
    assert either.snapshots.empty
    either.refresh([memory(2, "new", source="notes"), memory(3, source="notes"), memory(4, source=None)])
    found = either.snapshots
    assert found[["n_rows", "added", "changed", "gone"]].to_numpy().tolist() == [[2, 0, 0, 0], [3, 2, 1, 1]]
    assert found["sources"].tolist() == [{"chat": 1, "notes": 1}, {"notes": 2, None: 1}]
    assert found["taken_at"].is_monotonic_increasing
    assert found["taken_at"].iloc[-1] == either.now
    assert found["error"].isna().all()


def test_a_refresh_without_a_change_adds_no_snapshot(either):
    either.export([memory(1)])
    either.refresh([memory(1)])
    (before,) = either.files
    either.refresh([memory(1)])
    assert either.files == [before]
    assert len(either.load(as_of=either.now)) == 1


def test_an_archive_goes_on_keeping(kept):
    kept.export([memory(1)]).refresh([memory(2)])
    kept.refresh([memory(3)], keep=None)
    assert [kept.load(as_of=moment)["id"].tolist() for moment in kept.snapshots["taken_at"]] == [
        ["m1"],
        ["m2"],
        ["m3"],
    ]
    with pytest.raises(FrameError, match=r"keeps snapshots: remove .*_history yourself"):
        kept.refresh([memory(3)], keep=False)


def test_two_refreshes_at_the_same_moment_are_two_snapshots(kept):
    kept.export([memory(1)]).refresh([memory(2)])
    kept.refresh([memory(3)], after=timedelta(0))
    kept.refresh([memory(4)], after=-timedelta(days=3))
    found = [kept.load(as_of=moment)["id"].tolist() for moment in kept.snapshots["taken_at"]]
    assert found == [["m1"], ["m2"], ["m3"], ["m4"]]


def test_a_text_means_the_end_of_what_it_names(kept):
    kept.now = START + timedelta(days=300)
    kept.export([memory(1)])
    kept.refresh([memory(2)])
    kept.refresh([memory(3)], after=timedelta(minutes=30))
    day = kept.now.date()
    assert kept.load(as_of=str(day))["id"].tolist() == ["m3"]
    assert kept.load(as_of=day)["id"].tolist() == ["m3"]
    assert kept.load(as_of=f"{day} 02:00")["id"].tolist() == ["m2"]
    assert kept.load(as_of=f"{day} 04:10+02:00")["id"].tolist() == ["m2"]
    with pytest.raises(FrameError, match=r"The first snapshot was taken at .* after '2020'"):
        kept.load(as_of="2020")
    with pytest.raises(ConfigError, match="as_of='noon': give a time such as"):
        kept.load(as_of="noon")


def test_chosen_columns_of_a_state_are_read_alone(either):
    either.export([memory(1), memory(2)]).refresh([memory(1, "new"), memory(2)])
    first = either.snapshots["taken_at"].iloc[0]
    assert either.load(as_of=first, columns=["title"]).to_dict("list") == {"title": ["tea", "tea"]}
    assert mf.load_archive(either.path, columns=["id", "source"], as_of=first)["id"].tolist() == ["m1", "m2"]


def test_other_programs_read_the_present_alone(kept):
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    kept.export([memory(1), memory(2)]).refresh([memory(2, "new")])
    assert len(pd.read_parquet(kept.path)) == 1
    assert len(polars.read_parquet(kept.path / "*.parquet")) == 1
    with duckdb.connect() as other:
        assert other.read_parquet(str(kept.path)).project("id").fetchall() == [("m2",)]
        assert other.read_parquet(f"{kept.path}/*.parquet").project("id").fetchall() == [("m2",)]


# What changed


def test_changes_between_two_states_are_those_of_a_plan(either):
    either.export([memory(1), memory(2), memory(3)])
    first = either.now
    either.refresh([memory(1), memory(2, "chai"), memory(4)])
    either.refresh([memory(2, "coffee"), memory(4), memory(5)])
    diff = mf.diff_archives(either.path, first + timedelta(hours=1), key=either.key)
    assert (diff.added, diff.changed, diff.gone) == (("m4", "m5"), ("m2",), ("m1", "m3"))
    assert sorted(diff.before["title"]) == sorted(memory(n)["title"] for n in (1, 2, 3))
    assert dict(zip(diff.after["id"], diff.after["title"], strict=True))["m2"] == "coffee"
    found = diff.changes
    assert list(zip(found["action"], found["id"], strict=True)) == [
        ("delete", "m1"),
        ("delete", "m3"),
        ("patch", "m2"),
        ("create", "m4"),
        ("create", "m5"),
    ]
    patch = found.iloc[2]
    assert patch["fields"] == ("title", "content")
    assert (patch["before"], patch["after"]) == (
        {"title": "tea", "content": "Content 2 tea"},
        {"title": "coffee", "content": "Content 2 coffee"},
    )
    assert found["before"].iloc[0]["content"] == "Content 1 tea"
    assert found["after"].iloc[3]["tags"] == ("a", "t4")
    assert {*found.columns} <= {*mf.plan_deletes(either.access, either.load()[:0]).changes.columns}
    until = mf.diff_archives(
        either.path, first + timedelta(hours=1), either.now - timedelta(hours=1), key=either.key
    )
    assert until.changes["after"].iloc[1] == {"title": "chai", "content": "Content 2 chai"}
    assert not mf.diff_archives(either.path, either.now, key=either.key)


def test_a_change_of_times_alone_is_shown_as_such(kept):
    kept.export([memory(1)])
    first = kept.now
    kept.refresh([memory(1) | {"updated_at": "2026-03-01T00:00:00Z"}])
    (change,) = mf.diff_archives(kept.path, first + timedelta(hours=1)).changes.to_dict("records")
    assert (change["fields"], change["after"]) == (
        ("updated_at",),
        {"updated_at": "2026-03-01T00:00:00+00:00"},
    )


def test_secrets_are_masked_as_in_a_plan(kept):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    kept.export([memory(1, f"The token is {token[:40]}")])
    first = kept.now
    kept.refresh([memory(1, "The token was removed")])
    diff = mf.diff_archives(kept.path, first + timedelta(hours=1))
    assert token[:40] not in f"{diff} {diff.changes.to_dict()}"


def test_the_life_of_one_memory(either):
    either.export([memory(1)])
    either.refresh([memory(1), memory(2)])
    either.refresh([memory(1, "new"), memory(2)])
    either.refresh([memory(2)])
    either.refresh([memory(1, "back"), memory(2)])
    life = [*trace_memory(either.path, "m1", key=either.key)]
    assert [change.action for _, change in life] == ["create", "patch", "delete", "create"]
    assert [moment for moment, _ in life] == either.snapshots["taken_at"].iloc[[0, 2, 3, 4]].tolist()
    damage(either.files[2])
    reason = either.snapshots["error"].iloc[2]
    life = [change for _, change in trace_memory(either.path, "m1", key=either.key)]
    found = [change if change == reason else change.action for change in life]
    assert found == ["create", reason, "delete", "create"]
    life = [*trace_memory(either.path, "nobody", key=either.key)]
    assert life == [(either.snapshots["taken_at"].iloc[2], reason)]


@pytest.mark.parametrize("sealed", [False, True])
def test_a_state_of_the_past_is_restored(access, tmp_path, sealed):
    run = mf.create_memories(access, pd.DataFrame({"content": ["Likes tea", "Has a boat"]}), progress=False)
    run.raise_for_failures()
    path, memories = tmp_path / "kept", mf.load_memories(access, progress=False)
    mf.export_memories(access, path, sealed=sealed, progress=False)
    mf.update_memories(access, memories.iloc[:1].assign(content="Likes coffee"), progress=False)
    mf.apply_plan(access, mf.plan_deletes(access, memories.iloc[1:]), confirm=1, progress=False)
    mf.refresh_archive(access, path, keep=True, progress=False)
    first = mf.list_snapshots(path)["taken_at"].iloc[0]
    assert mf.plan_restore(access, path).counts == {}
    plan = mf.plan_restore(access, path, as_of=first, on_conflict="mine")
    assert plan.counts == {"restore": 1, "patch": 1}
    mf.apply_plan(access, plan, progress=False).raise_for_failures()
    back = mf.load_memories(access, progress=False)
    assert sorted(back["content"]) == ["Has a boat", "Likes tea"]
    assert mf.plan_restore(access, path, as_of=first, on_conflict="mine").counts == {}
    with pytest.raises(PlanError, match="as_of= is about an archive"):
        mf.plan_restore(access, memories, as_of=first)


# Refusals


def test_a_file_keeps_no_states(stranger, tmp_path):
    kept = Kept(stranger, tmp_path / "memories.parquet").export([memory(1)])
    with pytest.raises(FrameError, match="is one file, and states of the past are kept in a folder"):
        kept.refresh([memory(2)])
    kept.refresh([memory(2)], keep=None)
    with pytest.raises(FrameError, match="keeps no snapshots, so its past is not known"):
        kept.load(as_of="2026")


def test_an_export_does_not_destroy_the_past(kept):
    kept.export([memory(1)]).refresh([memory(2)])
    with pytest.raises(FrameError, match="its snapshots would be lost: refresh it instead"):
        kept.export([memory(3)])
    assert len(kept.snapshots) == 2


@pytest.mark.parametrize("keep", [{}, {"daily": 0}, {"dayly": 7}, {"daily": "7"}, {"daily": -1}, 7, "daily"])
def test_what_is_no_retention_is_refused(kept, keep):
    kept.export([memory(1)])
    with pytest.raises(ConfigError, match="give True, or numbers by period"):
        kept.refresh([memory(2)], keep=keep)


def test_states_under_an_older_key_are_not_continued(stranger, tmp_path):
    kept = Kept(stranger, tmp_path / "memories", sealed=True).export([memory(1)])
    kept.refresh([memory(2)])
    stranger.answer(wire.GET_CREDENTIALS, encryption_key="11" * 31 + "12", key_version=2)
    old, new = kept.access, Kept(stranger, kept.path, sealed=True)
    with pytest.raises(SealError, match=r"sealed with another key.*export to another path, and keep both"):
        new.refresh([memory(3)])
    assert mf.load_archive(kept.path, key=old, as_of=kept.snapshots["taken_at"].iloc[0])["id"].tolist() == [
        "m1"
    ]


# Retention


def plain_retention(moments, keep):
    """Restic's loop (`ApplyPolicy`): newest first, a counter and the last value of each bucket."""
    buckets = {name: [number, None] for name, number in keep.items()}
    kept, newest_first = set(), sorted(moments, reverse=True)
    for place, moment in enumerate(newest_first):
        for name, bucket in buckets.items():
            value = moment.strftime(PERIODS[name].name)
            is_oldest = place == len(newest_first) - 1
            if bucket[0] > 0 and (value != bucket[1] or is_oldest):
                kept.add(moment)
                bucket[:] = [bucket[0] - 1, value]
    return kept


@given(
    hours=st.sets(st.integers(0, 24 * 800), min_size=1, max_size=60),
    keep=st.dictionaries(st.sampled_from([*PERIODS]), st.integers(1, 9), min_size=1),
)
def test_retention_is_that_of_restic(hours, keep):
    moments = [START + timedelta(hours=hour) for hour in hours]
    assert choose_kept(moments, keep) == plain_retention(moments, keep)


def test_retention_is_applied_at_each_refresh(kept):
    keep, titles = {"daily": 3, "weekly": 2}, {}
    kept.export([memory(0)])
    for night in range(1, 15):
        kept.refresh([memory(night)], keep=keep)
        titles |= dict.fromkeys({*kept.snapshots["taken_at"]} - titles.keys(), f"m{night}")
        assert len(kept.files) == len(kept.snapshots) <= 5
    assert {*kept.snapshots["taken_at"]} == choose_kept(kept.snapshots["taken_at"], keep)
    for moment in kept.snapshots["taken_at"]:
        assert kept.load(as_of=moment)["id"].tolist() == [titles[moment]]


# Erasure


def search(path, *texts):
    """Find texts in all bytes of a folder and beside it, and in all cells and metadata of what is Parquet there.

    Sealed cells are opened by the key of the archive's own reader elsewhere; here they are searched as they stand.
    """
    found = set()
    for file in filter(Path.is_file, path.parent.rglob("*")):
        data = file.read_bytes()
        if data.startswith(b"PAR1"):  # pages are compressed
            table = pq.read_table(pa.BufferReader(data))
            data += repr(table.to_pylist()).encode() + repr(table.schema.metadata).encode()
        found |= {text for text in texts if text.encode() in data}
    return found


def test_what_is_forgotten_is_in_no_snapshot(either):
    """In the open by all bytes; sealed, by what each state shows to the key."""
    secret = [memory(1, "PIN 4711", source="clinic"), memory(2), memory(3)]
    either.export(secret)
    either.refresh([memory(4), *secret])
    either.refresh([memory(1, "redacted"), memory(2, "new"), memory(5), memory(3)])
    either.refresh([memory(2, "newer"), memory(1, "redacted"), memory(3)])
    before = [either.load(as_of=moment) for moment in either.snapshots["taken_at"]]
    if not either.sealed:
        assert search(either.path, "PIN 4711", "clinic") == {"PIN 4711", "clinic"}
    access = either.access if either.sealed else None
    assert mf.forget_memories(either.path, ["m1", "nobody"], access=access) == 2
    assert search(either.path, "PIN 4711", "clinic") == set()
    assert_same(either.load(), before[-1])
    for moment, frame, n_rows in zip(
        either.snapshots["taken_at"], before, either.snapshots["n_rows"], strict=True
    ):
        state = either.load(as_of=moment)
        assert_same(state, frame[frame["title"] != "PIN 4711"].reset_index(drop=True))
        assert len(state) == n_rows
    either.refresh([memory(3)])
    assert "m2" in either.load(as_of=either.snapshots["taken_at"].iloc[0])["id"].tolist()
    assert "m1" not in either.load(as_of=either.snapshots["taken_at"].iloc[0])["id"].tolist()


def test_what_retention_drops_is_on_no_disk(kept):
    kept.export([memory(1, "PIN 4711")])
    for night in range(2, 5):
        kept.refresh([memory(night)], keep={"last": 2})
    assert search(kept.path, "PIN 4711") == set()
    assert search(kept.path, "m3", "m4") == {"m3", "m4"}


def test_forgetting_needs_a_key_snapshots_and_sound_ones(either, tmp_path):
    either.export([memory(1)])
    with pytest.raises(FrameError, match="keeps no snapshots"):
        mf.forget_memories(either.path, ["m1"])
    either.refresh([memory(2)])
    with pytest.raises(FrameError, match="is a single text: pass a list of ids"):
        mf.forget_memories(either.path, "m1")
    if either.sealed:
        with pytest.raises(SealError, match="pass access="):
            mf.forget_memories(either.path, ["m1"])
    damage(either.files[0])
    before = either.files
    with pytest.raises(FrameError, match=f"{either.files[0].name}.* is damaged"):
        mf.forget_memories(either.path, ["m1"], access=either.access if either.sealed else None)
    assert either.files == before
    assert list(tmp_path.iterdir()) == [either.path]


def test_what_a_user_revoked_is_in_no_state_of_a_fleet(developer, tmp_path):
    """Nor in what a killed process has left beside the archive."""
    user = User(developer, "ada@example.org")
    access, content = user.access(), pd.DataFrame({"content": ["The PIN is 4711"], "source": ["clinic"]})
    mf.create_memories(access, content, progress=False).raise_for_failures()
    fleet = mf.export_fleet(user.client, tmp_path / "fleet", sealed=False, progress=False)
    archive = fleet.archive(user.user_id)
    memories = mf.load_memories(access, progress=False)
    mf.update_memories(access, memories.assign(content="removed", source="chat"), progress=False)
    mf.refresh_archive(access, archive, keep=True, progress=False)
    shutil.copytree(archive, archive.with_name(f".{archive.name}.0123abcd"))
    assert search(archive, "PIN is 4711", "clinic") == {"PIN is 4711", "clinic"}
    developer.decide(access.request_id, "revoked")
    assert forget_revoked(user.client, fleet.path).forgotten == [user.user_id]
    assert search(archive, "PIN is 4711", "clinic", "removed") == set()
    user.close()


# The picture


def heights_of(ax):
    return sorted(round(bar.get_height()) for bars in ax.containers for bar in bars)


def test_the_states_are_drawn_by_source(either):
    assert [text.get_text() for text in plot.history(either.export([memory(1)]).path).axes[0].texts] == [
        "No snapshots"
    ]
    hostile = ["$\\frac{1}{0}$", "a" * 500, "_hidden", None, "", "日本語", "<script>", "\u202eevil"]
    either.refresh([memory(number, source=source) for number, source in enumerate(hostile)])
    either.refresh([memory(number, "new", source="$\\frac{1}{0}$") for number in range(3)])
    figure = plot.history(either.path)
    upper, lower = figure.axes
    figure.savefig(io.BytesIO(), dpi=50)
    assert upper.get_title(loc="left") == "Memories in 3 states"
    assert len(upper.get_legend().get_texts()) == 6
    assert max(band.get_datalim(upper.transData).y1 for band in upper.collections) == 8
    n_up, n_down = (sum(filter(sign, heights_of(lower))) for sign in ((0).__lt__, (0).__gt__))
    assert (n_up, n_down) == (7 + 1 + 3, -5)
    damage(either.files[1])
    figure = plot.history(either.path)
    assert figure.axes[1].get_xlabel() == "1 state cannot be read"
    figure.savefig(io.BytesIO(), dpi=50)


# Kills

STEPS = {"open", "os.link", "os.mkdir", "os.rename", "os.chmod", "os.scandir", "tempfile.mkdtemp"}
REMOVALS = {"os.remove", "os.rmdir"}
"""Steps on the disk, as Python's audit hooks name them; those that name a file by a descriptor of its folder."""


def refresh_until(stranger, path, *, sealed, nth):
    """Refresh an archive in a process that is killed at its nth step on the disk; return True if it came to its end."""
    child = os.fork()
    if child == 0:
        left = nth

        def step(event, arguments):
            nonlocal left
            if event in REMOVALS or (event in STEPS and str(path.parent) in str(arguments[:1])):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            kept = Kept(stranger, path, sealed=sealed)
            kept.now += timedelta(days=9)
            sys.addaudithook(step)
            mf.refresh_archive(kept.access, path, keep={"last": 3}, progress=False)
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return not os.WIFSIGNALED(status)


def kill_at_steps(stranger, folder, steps, *, sealed):
    """Kill a refresh at each of these steps, until one comes to its end; return the number of kills."""
    kept = Kept(stranger, folder / "first" / "memories", sealed=sealed)
    kept.path.parent.mkdir()
    kept.export([memory(1, "PIN 4711"), memory(2)])
    kept.refresh([memory(1), memory(2)])
    kept.refresh([memory(1), memory(2, "new")])
    now = [memory(2, "newer"), memory(3)]
    stranger.answer(wire.LIST_MEMORIES, memoryBlobs=now)
    before = [(moment, kept.load(as_of=moment)) for moment in kept.snapshots["taken_at"]]
    for n_kills, nth in enumerate(steps):
        path = folder / str(nth) / "memories"
        shutil.copytree(kept.path, path)
        is_done = refresh_until(stranger, path, sealed=sealed, nth=nth)
        found = Kept(stranger, path, sealed=sealed)
        is_new = "m3" in found.load()["id"].tolist()
        assert_same(found.load(), mf.load_memories(found.access, progress=False) if is_new else before[-1][1])
        assert len(found.snapshots) == 3
        for moment, state in before[is_new:]:
            assert_same(found.load(as_of=moment), state)
        assert is_new or not is_done
        found.refresh(now, keep={"last": 3}, after=timedelta(days=20))
        assert len(found.snapshots) == 3
        assert os.listdir(path.parent) == ["memories"]  # noqa: PTH208 - hidden files too
        assert sealed or search(path, "PIN 4711") == set()
        shutil.rmtree(path.parent)
        if is_done:
            return n_kills
    return n_kills


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that begin as copies")
def test_a_killed_refresh_leaves_the_states_of_before_or_the_new_ones(stranger, tmp_path):
    assert kill_at_steps(stranger, tmp_path, count(3, 9), sealed=False) >= 4


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.campaign
@pytest.mark.parametrize("sealed", [False, True])
def test_a_refresh_that_is_killed_at_any_step(stranger, tmp_path, sealed):
    assert kill_at_steps(stranger, tmp_path, count(1), sealed=sealed) > 30


# Damage


def damage(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_damage_of_one_snapshot_costs_that_one(either, place):
    either.export([memory(1), memory(2)])
    either.refresh([memory(1, "new"), memory(2)])
    either.refresh([memory(2), memory(3)])
    moments = either.snapshots["taken_at"].tolist()
    states = [either.load(as_of=moment) for moment in moments]
    damage(either.files[place])
    found = either.snapshots
    assert found["error"].notna().tolist() == [number == place for number in range(3)]
    for number, moment in enumerate(moments):
        if number == place:
            with pytest.raises(FrameError, match=rf"{either.files[place].name}.* is damaged.*The other snap"):
                either.load(as_of=moment)
        else:
            assert_same(either.load(as_of=moment), states[number])
    assert_same(either.load(), states[-1])
    with pytest.warns(UserWarning, match=f"{either.files[place].name}.* is damaged"):
        either.refresh([memory(4)])
    assert either.snapshots["error"].notna().tolist() == [number == place for number in range(4)]
    for number, moment in enumerate(moments):
        if number != place:
            assert_same(either.load(as_of=moment), states[number])


def test_an_older_copy_of_a_snapshot_is_not_taken_for_the_state(either):
    either.export([memory(1)]).refresh([memory(2)])
    older = either.files[0]
    copy = older.read_bytes()
    either.refresh([memory(3)])
    either.files[0].unlink()
    older.write_bytes(copy)
    assert either.snapshots["error"].iloc[0] == "belongs to another state of this archive"
    with pytest.raises(FrameError, match="belongs to another state of this archive"):
        either.load(as_of=either.snapshots["taken_at"].iloc[0])


def test_a_snapshot_that_was_written_by_others_is_refused(stranger, tmp_path):
    """A right name is no seal: the key has the last word."""
    kept = Kept(stranger, tmp_path / "memories", sealed=True).export([memory(1), memory(2)])
    kept.refresh([memory(2)])
    first, moment = kept.files[0], kept.snapshots["taken_at"].iloc[0]
    table = pq.read_table(pa.BufferReader(first.read_bytes()))
    forged = io.BytesIO()
    pq.write_table(table.set_column(table.column_names.index("importance"), "importance", [[1.0]]), forged)
    first.unlink()
    (first.parent / name_snapshot(moment.to_pydatetime(), forged.getvalue())).write_bytes(forged.getvalue())
    with pytest.raises(SealError, match=r"authentication code|changed or damaged"):
        kept.load(as_of=moment)


def test_an_archive_that_another_program_changed_does_not_fit_its_snapshots(kept):
    kept.export([memory(1), memory(2)]).refresh([memory(2)])
    moment = kept.snapshots["taken_at"].iloc[0]
    (part,) = formats.parts_of(kept.path)
    table = pq.read_table(part)
    pq.write_table(pa.concat_tables([table, table]), part)
    with pytest.raises(FrameError, match="does not fit the archive"):
        kept.load(as_of=moment)


def test_what_is_no_archive_has_no_snapshots(tmp_path):
    memories = memories_of([{"id": "m1", "content": "Ada likes tea"}])
    for name, text in NO_ARCHIVE.items():
        (tmp_path / name).write_text(text)
    for path in (tmp_path, *(tmp_path / name for name in NO_ARCHIVE)):
        with pytest.raises(FrameError, match=f"{path.name} is not an archive"):
            mf.list_snapshots(path)
    for name in ("a.jsonl", "a.parquet", "folder"):
        mf.export_memories(memories, tmp_path / name, progress=False)
        assert mf.list_snapshots(tmp_path / name).empty
