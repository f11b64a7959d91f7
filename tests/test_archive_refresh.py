"""Refreshing an archive: it says what an export of now would say, writes no more than it must, and loses nothing."""

import os
import sys
from contextlib import suppress
from itertools import count

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import memframe as mf
from memframe import files, wire
from memframe.archive import formats, is_sealed
from memframe.archive.sealing import Reader
from memframe.envelope import Envelope
from memframe.errors import AccessError, FrameError
from tests.conftest import FEW_EXAMPLES
from tests.faults import answered, clamped
from tests.rows import ROW, assert_same, memories_of, split_in_parts
from tests.strangers import MEMORY, SECRETS, USER_ID

OTHER_KEY = "11" * 31 + "12"

EXTENSIONS = ["", ".parquet", ".jsonl", ".csv"]


def memory(number, title="tea"):
    return {
        **MEMORY,
        "id": f"m{number}",
        "title": title,
        "content": f"Content {number}",
        "tags": ["a", f"t{number}"],
    }


def hold(stranger, memories):
    """What the service has from now on."""
    stranger.answer(wire.LIST_MEMORIES, memoryBlobs=list(memories))


def opened(stranger):
    return mf.open_access(stranger.client(), "r1")


def export(access, path, **options):
    mf.export_memories(access, path, progress=False, **options)
    return path


def refresh(access, path):
    return mf.refresh_archive(access, path, progress=False)


def check_like_a_load(access, path):
    key = access if is_sealed(path) else None
    assert_same(mf.load_archive(path, key=key), mf.load_memories(access, progress=False))


def files_of(path):
    """What shows whether a file was written: its name, place on the disk and time."""
    files = formats.parts_of(path)
    return [(file.name, file.stat().st_ino, file.stat().st_mtime_ns) for file in files]


def ids(changes):
    return {name: set(getattr(changes, name)) for name in ("added", "changed", "gone")}


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(formats, "PART_ROWS", 4)


# Any history


NUMBERS = st.lists(st.integers(0, 12), unique=True, max_size=12)
HISTORIES = st.lists(
    st.tuples(NUMBERS, st.sets(st.integers(0, 12)), st.sampled_from(["listed", "sorted", "reversed"])),
    min_size=2,
    max_size=4,
)


@given(history=HISTORIES, sealed=st.booleans(), extension=st.sampled_from(EXTENSIONS))
@example(history=[([], {0}, "listed"), ([1], {0}, "listed"), ([], {0}, "listed")], sealed=True, extension="")
@example(
    history=[([0, 1, 2], {9}, "listed"), ([0, 1], {9}, "listed"), ([1], {9}, "listed")],
    sealed=False,
    extension="",
)
@FEW_EXAMPLES
def test_a_refreshed_archive_is_what_the_service_holds(
    tmp_path_factory, stranger, small_parts, history, sealed, extension
):
    access = opened(stranger)
    path = tmp_path_factory.mktemp("history") / f"memories{extension}"
    before = None
    for numbers, edited, order in history:
        ordered = {"listed": list, "sorted": sorted, "reversed": lambda n: sorted(n, reverse=True)}[order](
            numbers
        )
        now = {number: memory(number, "new" if number in edited else "tea") for number in ordered}
        hold(stranger, now.values())
        if before is None:
            export(access, path, sealed=sealed and extension in ("", ".parquet"))
        else:
            assert ids(refresh(access, path)) == {
                "added": {f"m{number}" for number in now.keys() - before},
                "changed": {f"m{n}" for n in now.keys() & before.keys() if now[n] != before[n]},
                "gone": {f"m{number}" for number in before.keys() - now},
            }
        check_like_a_load(access, path)
        before = now


# What is written


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("newest_first", [False, True])
def test_only_files_that_changed_are_written(tmp_path, stranger, small_parts, sealed, newest_first):
    access, path = opened(stranger), tmp_path / "memories"

    def listed(numbers, edited=()):
        numbers = sorted(numbers, reverse=newest_first)
        hold(stranger, [memory(number, "new" if number in edited else "tea") for number in numbers])

    stranger.always(wire.LIST_MEMORIES, clamped(4))
    listed(range(14))
    export(access, path, sealed=sealed)
    split_in_parts(access, path)
    before = files_of(path)
    assert not refresh(access, path)
    assert files_of(path) == before
    listed(range(14), edited=[5])
    assert ids(refresh(access, path))["changed"] == {"m5"}
    after = files_of(path)
    assert len(set(before) - set(after)) == 1
    listed([*range(5), *range(6, 16)], edited=[5])
    assert len(refresh(access, path).added) == 2
    kept = {entry[1:] for entry in after} & {entry[1:] for entry in files_of(path)}
    assert len(kept) >= len(after) - 2
    check_like_a_load(access, path)


# A crash, and other ends


@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize("n_calls", [0, 2])
def test_whatever_breaks_leaves_the_old_archive_whole(
    tmp_path, stranger, small_parts, extension, n_calls, monkeypatch
):
    access, path = opened(stranger), tmp_path / f"memories{extension}"
    hold(stranger, map(memory, range(9)))
    export(access, path)
    memories, before = mf.load_memories(access, progress=False), files_of(path)
    stranger.script(
        wire.LIST_MEMORIES, answered(200, {"memoryBlobs": [memory(7)], "next_cursor": "c"}), answered(403)
    )
    with pytest.raises(AccessError):
        refresh(access, path)
    hold(stranger, [memory(number, "new") for number in range(12)])
    real, calls = os.fsync, []

    def full(handle):
        calls.append(handle)
        if len(calls) > n_calls:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    if extension and n_calls:  # one file, which is whole by then
        with suppress(FrameError):
            refresh(access, path)
        assert len(mf.load_archive(path)) == 12
        return
    with pytest.raises(FrameError, match=r"cannot be written \(No space left on device\)"):
        refresh(access, path)
    assert_same(mf.load_archive(path), memories)
    assert files_of(path) == before
    assert os.listdir(tmp_path) == [path.name]  # noqa: PTH208 - hidden files too


@pytest.mark.parametrize(("can_exchange", "was_there"), [(True, True), (False, True), (True, False)])
def test_ctrl_c_at_any_step_of_replacing_a_folder_is_heard_and_leaves_one_that_is_whole(
    tmp_path, can_exchange, was_there, monkeypatch
):
    """At each line of `atomic_folder`, and behind each call."""
    if not can_exchange:
        monkeypatch.setattr(files, "_exchange", lambda one, other: False)
    n_heard = 0
    for nth in count(1):
        home = tmp_path / str(nth)
        home.mkdir()
        path = home / "memories"
        if was_there:
            path.mkdir()
            (path / "rows").write_text("old")
        left = nth

        def press(frame, event, argument):
            nonlocal left
            if frame.f_code.co_filename != files.__file__:
                return None
            left -= event in {"line", "return"}
            if left == 0:
                left = -1
                sys.settrace(None)
                raise KeyboardInterrupt
            return press

        try:
            with files.atomic_folder(path) as fresh:
                (fresh / "rows").write_text("new")
                sys.settrace(press)
        except KeyboardInterrupt:
            n_heard += 1
        finally:
            sys.settrace(None)
        assert not path.exists() or (path / "rows").read_text() in {"old", "new"}
        assert path.exists() or not was_there
        if left > 0:
            break
    assert n_heard == nth - 1 > 10


def test_a_file_system_without_links_gets_copies(tmp_path, stranger, small_parts, monkeypatch):
    access, path = opened(stranger), tmp_path / "memories"
    hold(stranger, map(memory, range(4)))
    export(access, path)

    def no_links(old, new):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    hold(stranger, map(memory, range(6)))
    assert len(refresh(access, path).added) == 2
    check_like_a_load(access, path)


# Keys


def test_an_archive_under_an_older_key_is_sealed_anew(tmp_path, stranger):
    def under(key, version, titles):
        stranger.answer(wire.GET_CREDENTIALS, encryption_key=key, key_version=version)
        envelope = Envelope(mf.Secret(key), user_id=USER_ID, key_version=version)
        hold(
            stranger,
            [
                {**memory(n, title), "content": envelope.seal("x"), "importance": n}
                for n, title in titles.items()
            ],
        )
        return opened(stranger)

    first = under(SECRETS["encryption key"], 1, {1: "one", 2: "two"})
    path = export(first, tmp_path / "memories", sealed=True)
    second = under(OTHER_KEY, 2, {1: "one", 3: "three"})
    assert ids(refresh(second, path)) == {"added": {"m3"}, "changed": set(), "gone": {"m2"}}
    assert_same(mf.load_archive(path, key=second), mf.load_memories(second, progress=False))
    assert Reader(path).header.seal.key_version == 2


# Refusals


def test_an_archive_of_somebody_else_is_refused(tmp_path, stranger):
    hold(stranger, [memory(1)])
    access = opened(stranger)
    for name, sealed in (("a", False), ("b.parquet", True), ("c.csv", False)):
        export(access, tmp_path / name, sealed=sealed)
    mf.export_memories(memories_of([ROW | {"user_id": USER_ID}, ROW | {"user_id": "u2"}]), tmp_path / "d")
    stranger.answer(wire.GET_CREDENTIALS, user_id="6" + USER_ID[1:])
    stranger.answer(wire.LIST_MEMORIES, memoryBlobs=[])
    other = opened(stranger)
    for path in sorted(tmp_path.iterdir()):
        before = files_of(path)
        with pytest.raises(FrameError, match=r"holds memories of user .* this access is to user 6"):
            refresh(other, path)
        assert files_of(path) == before


def test_what_cannot_be_refreshed_is_refused(tmp_path, access):
    mf.export_memories(memories_of([]).assign(label="x", n=1), tmp_path / "a.parquet")
    export(access, tmp_path / "thesis")
    export(access, tmp_path / "notes.md")
    (tmp_path / "thesis" / "thesis.txt").touch()
    for name, says in (
        ("a.parquet", r"additional columns \(label, n\)"),
        ("memories", "There is no archive at"),
        ("notes.md", "contains notes, which cannot be refreshed"),
        ("thesis", r"holds thesis\.txt"),
    ):
        with pytest.raises(FrameError, match=says):
            refresh(access, tmp_path / name)
