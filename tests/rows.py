"""Frames of memories for tests, made without a service."""

import pandas as pd

from memframe.frames import MEMORY_KINDS, FrameBuilder

ROW = {"id": "m1", "user_id": "u1", "content": "Ada likes tea", "tags": ("tea",), "importance": 0.5}


def memories_of(rows):
    builder = FrameBuilder(MEMORY_KINDS)
    if rows:
        builder.add({name: [row.get(name) for row in rows] for name in MEMORY_KINDS})
    return builder.frame()


def assert_same(loaded, memories):
    pd.testing.assert_frame_equal(loaded, memories, check_exact=True)
    for name in ("tags", "tag_ids"):  # assert_frame_equal takes an array for a tuple
        assert [type(cell) for cell in loaded[name]] == [tuple] * len(loaded)
