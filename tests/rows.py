"""Frames of memories for tests, made without a service."""

import pandas as pd
import pyarrow.parquet as pq

from memframe.archive import formats
from memframe.archive.sealing import Plain, Reader, Sealed
from memframe.files import atomic_file
from memframe.frames import MEMORY_KINDS, FrameBuilder
from memframe.plan.change import FIELDS
from memframe.sample import load_sample

ROW = {"id": "m1", "user_id": "u1", "content": "Ada likes tea", "tags": ("tea",), "importance": 0.5}


def memories_of(rows):
    builder = FrameBuilder(MEMORY_KINDS)
    if rows:
        builder.add({name: [row.get(name) for row in rows] for name in MEMORY_KINDS})
    return builder.frame()


def sample_frame():
    """The memories of the sample as a frame, with their places as ids."""
    names = load_sample()[0].__struct_fields__
    rows = [{name: getattr(memory, name) for name in names} for memory in load_sample()]
    return memories_of([row | {"id": str(place)} for place, row in enumerate(rows)])


def held(memories):
    """What memories hold, whatever their ids and times."""
    rows = memories[list(FIELDS)].astype("object").where(memories[list(FIELDS)].notna(), None)
    cells = (
        [tuple(sorted(cell)) if isinstance(cell, tuple) else cell for cell in row] for row in rows.to_numpy()
    )
    return sorted(map(tuple, cells), key=repr)


def assert_same(loaded, memories):
    pd.testing.assert_frame_equal(loaded, memories, check_exact=True)
    for name in ("tags", "tag_ids"):  # assert_frame_equal takes an array for a tuple
        assert [type(cell) for cell in loaded[name]] == [tuple] * len(loaded)


def split_in_parts(access, path):
    """Write an archive again in parts of four rows, as a longer listing would have made it."""
    (part,) = formats.parts_of(path)
    reader, table = Reader(path), pq.read_table(part)
    form = Sealed(access, reader.header) if reader.is_sealed else Plain(table.schema)
    part.unlink()
    for number, start in enumerate(range(0, len(table), 4)):
        with atomic_file(path / formats.part_name(number)) as file:
            form.write(file, [table.slice(start, 4)])
    form.seal_folder(path)
