"""Frames: columns and dtypes that never depend on the data, and rows that survive odd text."""

import pandas as pd
import pytest

from memframe.frames import (
    MEMORY_KINDS,
    TAG_KINDS,
    FrameBuilder,
    columns_of,
    replace_surrogates,
    requests_frame,
    tags_frame,
)
from memframe.secret import Secret
from memframe.wire import AccessRequest, MemoryBlob, Tag

DTYPES = {
    **dict.fromkeys(["id", "user_id", "title", "summary", "content"], "str"),
    **dict.fromkeys(["tags", "tag_ids"], "object"),
    **dict.fromkeys(["importance", "confidence"], "float64"),
    "source": "str",
    **dict.fromkeys(["created_at", "updated_at"], "datetime64[us, UTC]"),
    "content_error": "str",
}


def frame_of(*blobs):
    builder = FrameBuilder(MEMORY_KINDS)
    columns = columns_of(blobs, [name for name in MEMORY_KINDS if name != "content_error"])
    builder.add({**columns, "content_error": [None] * len(blobs)})
    return builder.frame()


def blob(**fields):
    return MemoryBlob(**{"id": "m1", "user_id": "u1", **fields})


@pytest.mark.parametrize(
    "blobs",
    [
        [],
        [blob()],
        [blob(importance=1, created_at="2024-05-01T10:11:12Z")],
        [blob(created_at="2024-05-01T10:11:12.123456789Z"), blob(id="m2", tags=("a", "b"))],
    ],
    ids=["no rows", "all null", "whole numbers", "nanoseconds"],
)
def test_columns_and_dtypes_never_depend_on_the_data(blobs):
    frame = frame_of(*blobs)
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == DTYPES
    assert list(frame.columns) == list(DTYPES)
    assert frame.index.equals(pd.RangeIndex(len(blobs)))


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("2024-05-01T10:11:12Z", 0),
        ("2024-05-01T10:11:12.5Z", 500_000),
        ("2024-05-01T12:11:12+02:00", 0),
        ("2024-05-01T10:11:12", 0),
        ("2024-05-01T10:11:12.123456789Z", 123_456),
        ("2024-05-01t10:11:12.5z", 500_000),
    ],
)
def test_every_iso_8601_spelling_of_a_time_is_read(text, microseconds):
    frame = frame_of(blob(created_at=text), blob(id="m2", created_at="2024-05-01T10:11:12Z"))
    assert frame.created_at[0] == pd.Timestamp("2024-05-01T10:11:12Z") + pd.Timedelta(microseconds, "us")


def test_a_time_that_nobody_can_read_becomes_nat_and_its_neighbours_stay():
    frame = frame_of(blob(created_at="yesterday"), blob(id="m2", created_at="2024-05-01T10:11:12Z"))
    assert frame.created_at.isna().tolist() == [True, False]


def test_tags_are_tuples_that_compare_group_and_cannot_be_changed_in_place():
    frame = frame_of(blob(tags=("a", "b")), blob(id="m2", tags=("a", "b")), blob(id="m3"))
    assert [type(cell) for cell in frame.tags] == [tuple] * 3
    assert frame.groupby("tags").size().to_dict() == {(): 1, ("a", "b"): 2}


def test_a_lone_surrogate_is_replaced_and_named_and_other_rows_stay():
    columns = {
        "title": ["fine 😀", "bad \ud800 half"],
        "tags": [("a",), ("b",)],
        "content_error": [None, None],
    }
    mended = replace_surrogates(columns)
    assert mended["title"] == ["fine 😀", "bad � half"]
    assert mended["content_error"] == [None, "title holds a lone surrogate, shown as U+FFFD"]


def test_frames_of_tags_and_requests():
    tags = tags_frame([Tag(id="t1", name="work", color="#aabbcc", created_at="2024-05-01T10:11:12Z")])
    assert list(tags.columns) == list(TAG_KINDS)
    assert tags.is_enabled.dtype == bool
    requests = requests_frame([AccessRequest(id="r1", status="pending", memory_key=Secret("mk_secret"))])
    assert "memory_key" not in requests
    assert str(requests.created_at.dtype) == "datetime64[us, UTC]"
    assert list(tags_frame([]).dtypes) == list(tags.dtypes)
