"""Frames of what a service sends: columns and dtypes that never depend on it, and rows that survive odd text."""

import gc
import os
import subprocess
import sys

import pandas as pd
import pytest

import memframe as mf
from memframe import frames, wire
from memframe.frames import gc_paused
from tests.strangers import TAG, USER_ID

DTYPES = {
    **dict.fromkeys(["id", "user_id", "title", "summary", "content"], "str"),
    **dict.fromkeys(["tags", "tag_ids"], "object"),
    **dict.fromkeys(["importance", "confidence"], "float64"),
    "source": "str",
    **dict.fromkeys(["created_at", "updated_at"], "datetime64[us, UTC]"),
    "content_error": "str",
}
TIMES = {
    "2024-05-01T10:11:12Z": 0,
    "2024-05-01T10:11:12.5Z": 500_000,
    "2024-05-01T12:11:12+02:00": 0,
    "2024-05-01T10:11:12": 0,
    "2024-05-01T10:11:12.123456789Z": 123_456,
    "2024-05-01t10:11:12.5z": 500_000,
}
"""Spellings of one time, and the microseconds that each has beside."""


@pytest.fixture
def load(stranger):
    def load_rows(*rows):
        blobs = [{"id": f"m{number}", "user_id": USER_ID, **row} for number, row in enumerate(rows)]
        stranger.answer(wire.LIST_MEMORIES, memoryBlobs=blobs)
        return mf.load_memories(mf.open_access(stranger.client(), "r1"), progress=False)

    return load_rows


@pytest.mark.parametrize(
    "row", [None, {}, {"importance": 1}, {"created_at": "2024-05-01T10:11:12.123456789Z"}]
)
def test_columns_and_dtypes_never_depend_on_the_data(load, row):
    frame = load() if row is None else load(row)
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == DTYPES
    assert list(frame.columns) == list(DTYPES)
    assert frame.index.equals(pd.RangeIndex(int(row is not None)))


def test_every_iso_8601_spelling_of_a_time_is_read_and_what_nobody_can_read_is_nat(load):
    frame = load(*({"created_at": text} for text in [*TIMES, "yesterday"]))
    expected = [
        pd.Timestamp("2024-05-01T10:11:12Z") + pd.Timedelta(beside, "us") for beside in TIMES.values()
    ]
    assert frame.created_at.tolist() == [*expected, pd.NaT]


def test_tags_are_tuples_that_compare_group_and_cannot_be_changed_in_place(load):
    frame = load({"tags": ["a", "b"]}, {"tags": ["a", "b"]}, {})
    assert [type(cell) for cell in frame.tags] == [tuple] * 3
    assert frame.groupby("tags").size().to_dict() == {(): 1, ("a", "b"): 2}


def test_a_lone_surrogate_is_replaced_and_named_and_other_rows_stay(load):
    frame = load({"title": "fine 😀"}, {"title": "bad \ud800 half"})
    assert frame.title.tolist() == ["fine 😀", "bad � half"]
    assert frame.content_error[1] == "title contains a lone surrogate, shown as U+FFFD"
    assert frame.content_error.isna().tolist() == [True, False]


def test_frames_of_tags_and_requests(stranger):
    access = mf.open_access(stranger.client(), "r1")
    tags = mf.load_tags(access)
    assert list(tags.columns) == [*TAG, "created_at", "updated_at"]
    assert tags.is_enabled.dtype == bool
    stranger.answer(wire.LIST_TAGS, items=[])
    assert list(mf.load_tags(access).dtypes) == list(tags.dtypes)
    requests = mf.load_access_requests(access.client)
    assert "memory_key" not in requests
    assert str(requests.created_at.dtype) == "datetime64[us, UTC]"


def test_pandas_2_is_refused_with_the_way_out(tmp_path):
    (tmp_path / "pandas.py").write_text("__version__ = '2.3.3'")
    path = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, "-c", "import memframe.frames"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert done.returncode == 1
    assert "ImportError: memframe needs pandas 3" in done.stderr
    assert "this is pandas 2.3.3: pip install 'pandas>=3,<4'" in done.stderr


def test_frozen_objects_of_the_caller_stay_frozen_and_are_counted_once(monkeypatch):
    """To count a million of them takes longer than a key of the review desk may."""
    counted, count = [], gc.get_freeze_count
    monkeypatch.setattr(frames, "_has_frozen", False)
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counted.append(1) or count())
    gc.freeze()
    try:
        for _ in range(3):
            with gc_paused():
                pass
        assert len(counted) == 1
        assert count()
    finally:
        gc.unfreeze()
