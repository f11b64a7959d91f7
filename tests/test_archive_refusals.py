"""What archives refuse: by path, column or line, and never with the text of a memory."""

import csv
import json
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from memframe import archive
from memframe.archive import export_memories, load_archive
from memframe.errors import FrameError
from tests.rows import ROW, assert_same, memories_of


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda frame: frame.drop(columns=["id", "tags"]), "lacks id, tags"),
        (lambda frame: frame.rename(columns={"source": 5}), "not text"),
        (lambda frame: pd.concat([frame, frame[["title"]]], axis=1), "several columns named title"),
        (lambda frame: frame.assign(title=[object()]), "'title'"),
        (lambda frame: frame.assign(tags=["hunter2"]), "'tags'"),
        (lambda frame: frame.assign(tags=[("hunter2", None)]), "'tags'"),
        (lambda frame: frame.assign(importance=["hunter2"]), "'importance'"),
        (lambda frame: frame.assign(created_at=["hunter2"]), "'created_at'"),
        (lambda frame: frame.assign(own=[object()]), "'own'"),
    ],
)
def test_a_frame_that_does_not_fit_is_refused_by_column_without_its_cells(tmp_path, change, says):
    with pytest.raises(FrameError, match=says) as caught:
        export_memories(change(memories_of([ROW])), tmp_path / "memories.parquet")
    assert "hunter2" not in str(caught.value)
    assert not any(tmp_path.iterdir())


def test_infinity_is_refused_where_json_cannot_say_it_and_arrays_of_tags_are_taken(tmp_path):
    memories = memories_of([ROW | {"importance": math.inf}])
    memories["tags"] = pd.Series([np.array(["tea"], dtype=object)])
    with pytest.raises(FrameError, match="infinite"):
        export_memories(memories, tmp_path / "memories.jsonl")
    for extension in (".parquet", ".csv"):
        export_memories(memories, tmp_path / f"memories{extension}")
        assert_same(
            load_archive(tmp_path / f"memories{extension}"), memories_of([ROW | {"importance": math.inf}])
        )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.parquet", b"PAR1 hunter2"),
        ("a.jsonl", b'{"id": "m1", "content": "hunter2"\n'),
        ("a.jsonl", b'["hunter2"]\n'),
        ("a.jsonl", b"\xff\xfe hunter2\n"),
        ("a.csv", b""),
        ("a.csv", b"\xff\xfehunter2\n"),
        ("a.csv", b"name;hunter\nx;hunter2\n"),
    ],
)
def test_a_foreign_or_damaged_file_is_refused_without_its_text(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FrameError, match=name) as caught:
        load_archive(tmp_path / name)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("extension", [".parquet", ".jsonl", ".csv"])
def test_an_archive_that_was_cut_or_is_not_there_is_refused(tmp_path, extension):
    path = tmp_path / f"memories{extension}"
    with pytest.raises(FrameError, match=r"[Nn]o archive at|no \.parquet"):
        load_archive(path)
    export_memories(memories_of([ROW, ROW]), path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(FrameError, match=path.name):
        load_archive(path)


@pytest.mark.parametrize("extension", [".jsonl", ".csv"])
@pytest.mark.parametrize("column", ["importance", "created_at", "tags"])
def test_a_cell_that_was_changed_is_refused_without_its_text(tmp_path, extension, column):
    path = tmp_path / f"memories{extension}"
    export_memories(memories_of([ROW]), path)
    for cell in ("hunter2", "[1, 2]") if column == "tags" else ("hunter2",):
        if extension == ".jsonl":
            path.write_text(json.dumps(json.loads(path.read_text()) | {column: cell}))
        else:
            with path.open(newline="") as file:
                header, row = csv.reader(file)
            row[header.index(column)] = cell
            with path.open("w", newline="") as file:
                csv.writer(file).writerows([header, row])
        with pytest.raises(FrameError, match=path.name) as caught:
            load_archive(path)
        assert "hunter2" not in str(caught.value)
        assert f"column {column}" in str(caught.value)


def test_a_parquet_with_wrong_types_is_refused_by_column(tmp_path):
    table = archive.table_of(memories_of([ROW]))
    pq.write_table(table.set_column(7, "importance", pa.array(["hunter2"])), tmp_path / "a.parquet")
    with pytest.raises(FrameError, match=r"column importance of .* holds string where double belongs"):
        load_archive(tmp_path / "a.parquet")


def test_a_key_that_the_first_line_lacks_is_not_dropped(tmp_path):
    path = tmp_path / "memories.jsonl"
    export_memories(memories_of([ROW]), path)
    line = path.read_text()
    path.write_text(line + "\n" + line + json.dumps(json.loads(line) | {"note": "hunter2"}))
    for columns in (None, ["id"]):
        with pytest.raises(FrameError, match=r"Line 4 of .*memories\.jsonl has the key 'note'") as caught:
            load_archive(path, columns=columns)
        assert "hunter2" not in str(caught.value)


def test_what_is_no_frame_and_no_list_of_columns_is_named(tmp_path):
    path = tmp_path / "memories.csv"
    for source, kind in (([1], "a list"), (None, "None"), ("memories", "a str"), ({}, "a dict")):
        with pytest.raises(FrameError, match=f"if no Access, is {kind}, not a pandas DataFrame: "):
            export_memories(source, path)
    assert not any(tmp_path.iterdir())
    export_memories(memories_of([ROW]), path)
    for columns, says in (
        ("id", r"pass a list of names, \['id'\]"),
        ([1], "not a list"),
        (5, "int, not a list"),
    ):
        with pytest.raises(FrameError, match=says):
            load_archive(path, columns=columns)
