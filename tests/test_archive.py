"""Archives: what was exported loads without a change, lies open to its owner only, and bites nobody."""

import csv
import json
import os
import stat
from datetime import UTC, datetime

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memframe import archive
from memframe.archive import export_memories, load_archive, parquet, places
from memframe.errors import AccessError, FrameError
from memframe.load import load_memories
from memframe.sample import load_sample
from memframe.wire import LIST_MEMORIES
from tests.faults import FaultProxy, answered, clamped
from tests.rows import ROW, assert_same, memories_of

FORMATS = [".parquet", ".jsonl", ".csv", ""]

ODD_WORDS = (
    ["", "NA", "null", "None", "nan", "NaN", "true", "007", "1e5", "2020-01-01", "'", "''", "'=x", '"', '""']
    + [mark + "cmd|' /C calc'!A0" for mark in "=+-@\t\r\n\x00＝＋－＠"]  # noqa: RUF001 - what is tested
    + ["a\r\nb", "a,b;c\td", " pad ", "\ufeffmark", "🜁", "\u2028", "\\N", "x" * 5000, "[]", "{}"]
)
WORDS = st.sampled_from(ODD_WORDS)
TEXTS = st.none() | WORDS | st.text(st.characters(exclude_categories=["Cs"]))
NAMES = st.lists(WORDS | st.text(st.characters(exclude_categories=["Cs"])), max_size=4).map(tuple)
NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
TIMES = st.none() | st.datetimes(datetime(1600, 1, 1), timezones=st.just(UTC)).map(datetime.isoformat)  # noqa: DTZ001 - bounds are naive
ROWS = st.lists(
    st.fixed_dictionaries(
        {"id": st.uuids().map(str), "user_id": st.just("u1")}
        | dict.fromkeys(["title", "summary", "content", "source", "content_error"], TEXTS)
        | dict.fromkeys(["tags", "tag_ids"], NAMES)
        | dict.fromkeys(["importance", "confidence"], NUMBERS)
        | dict.fromkeys(["created_at", "updated_at"], TIMES)
    ),
    max_size=6,
)


def examples(n):
    return settings(
        suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=n
    )


@pytest.mark.parametrize("extension", FORMATS)
@given(rows=ROWS)
@example(rows=[])
@example(
    rows=[ROW | dict.fromkeys(["id", "title", "content"], word) | {"tags": (word,)} for word in ODD_WORDS]
)
@examples(15)
def test_what_was_exported_loads_without_a_change(tmp_path, extension, rows):
    check_round_trip(tmp_path, extension, rows)


@pytest.mark.campaign
@pytest.mark.parametrize("extension", FORMATS)
@given(rows=ROWS)
@examples(500)
def test_whatever_was_exported_loads_without_a_change(tmp_path, extension, rows):
    check_round_trip(tmp_path, extension, rows)


def check_round_trip(tmp_path, extension, rows):
    path = tmp_path / f"memories{extension}"
    memories = memories_of(rows)
    assert export_memories(memories, path) == len(rows)
    assert_same(load_archive(path), memories)


@pytest.mark.parametrize("extension", FORMATS)
def test_many_chunks_and_parts_keep_their_order(tmp_path, extension, monkeypatch):
    monkeypatch.setattr(parquet, "GROUP_ROWS", 3)
    monkeypatch.setattr(places, "PART_ROWS", 2)
    memories = memories_of([ROW | {"id": f"m{number}"} for number in range(40)])
    export_memories(memories, tmp_path / f"memories{extension}")
    assert_same(load_archive(tmp_path / f"memories{extension}"), memories)
    assert extension or len(list((tmp_path / "memories").iterdir())) == 14


@pytest.mark.parametrize("extension", FORMATS)
def test_a_cell_of_a_megabyte_is_kept(tmp_path, extension):
    memories = memories_of([ROW, ROW | {"id": "m2", "content": 'line "one"\n' * 300_000}, ROW | {"id": "m3"}])
    export_memories(memories, tmp_path / f"memories{extension}")
    assert_same(load_archive(tmp_path / f"memories{extension}"), memories)


@pytest.mark.parametrize("extension", FORMATS)
def test_the_frame_is_not_modified_and_its_index_and_attrs_do_not_matter(tmp_path, extension):
    memories = memories_of([ROW, ROW | {"id": "m2"}])
    edited = memories.set_index(pd.Index(["b", "a"], name="label"))
    edited.attrs = {"anything": object()}
    before = edited.copy()
    export_memories(edited, tmp_path / f"memories{extension}")
    pd.testing.assert_frame_equal(edited, before)
    assert_same(load_archive(tmp_path / f"memories{extension}"), memories)


@pytest.mark.parametrize("extension", FORMATS)
def test_columns_are_chosen_and_ordered(tmp_path, extension):
    path = tmp_path / f"memories{extension}"
    export_memories(memories_of([ROW]), path)
    chosen = load_archive(path, columns=pd.Index(["tags", "id"]))
    assert chosen.to_dict("list") == {"tags": [("tea",)], "id": ["m1"]}
    with pytest.raises(FrameError, match="has no column nope: it has id, user_id"):
        load_archive(path, columns=["id", "nope"])


# From the service


@pytest.fixture(scope="module")
def sample_access(service, shared_user):
    """An access to a user with the first memories of the sample, which no test changes."""
    service.import_memories(shared_user.user_id, load_sample()[:40])
    return shared_user.access()


@pytest.mark.parametrize("extension", FORMATS)
def test_an_access_is_exported_in_chunks(tmp_path, sample_access, extension, monkeypatch):
    monkeypatch.setattr(parquet, "GROUP_ROWS", 7)
    path = tmp_path / f"memories{extension}"
    assert export_memories(sample_access, path, progress=False) == 40
    assert_same(load_archive(path), load_memories(sample_access, progress=False))


@pytest.mark.parametrize("extension", FORMATS)
def test_an_access_without_memories_is_exported_with_all_columns(tmp_path, access, extension):
    assert export_memories(access, tmp_path / f"memories{extension}", progress=False) == 0
    assert_same(load_archive(tmp_path / f"memories{extension}"), memories_of([]))


@pytest.mark.parametrize("extension", FORMATS)
def test_a_listing_that_breaks_off_leaves_the_archive_that_was_there(
    tmp_path, sample_access, extension, monkeypatch
):
    path = tmp_path / f"memories{extension}"
    export_memories(memories_of([ROW]), path)
    monkeypatch.setattr(parquet, "GROUP_ROWS", 7)
    with FaultProxy(sample_access.client.base_url) as proxy:
        monkeypatch.setattr(sample_access.client, "base_url", proxy.base_url)
        proxy.script(LIST_MEMORIES, clamped(10), answered(403))
        with pytest.raises(AccessError):
            export_memories(sample_access, path, progress=False)
    assert_same(load_archive(path), memories_of([ROW]))
    assert os.listdir(tmp_path) == [path.name]  # noqa: PTH208 - hidden files too


# Columns of the user's own


def own_columns():
    return memories_of([ROW, ROW | {"id": "m2"}]).assign(
        n=[1, 2],
        maybe=pd.array([None, 2], dtype="Int64"),
        label=pd.Categorical(["x", "y"]),
        seen=pd.to_datetime(["2024-05-01T12:00:00.123456789", None], format="ISO8601"),
        code=["007", "=1+1"],
        flag=[True, False],
    )


@pytest.mark.parametrize("extension", [".parquet", ""])
def test_parquet_keeps_other_columns_as_they_are(tmp_path, extension):
    frame = own_columns()
    export_memories(frame, tmp_path / f"memories{extension}")
    pd.testing.assert_frame_equal(load_archive(tmp_path / f"memories{extension}"), frame)


def test_json_lines_keep_other_columns_as_far_as_json_goes(tmp_path):
    export_memories(own_columns(), tmp_path / "memories.jsonl")
    loaded = load_archive(tmp_path / "memories.jsonl")
    assert loaded["n"].tolist() == [1, 2]
    assert loaded["code"].tolist() == ["007", "=1+1"]
    assert loaded["label"].tolist() == ["x", "y"]
    assert loaded["flag"].tolist() == [True, False]
    assert loaded["seen"].tolist()[0].startswith("2024-05-01T12:00:00.123456")


def test_csv_keeps_other_columns_as_text(tmp_path):
    export_memories(own_columns().rename(columns={"code": "=code"}), tmp_path / "memories.csv")
    loaded = load_archive(tmp_path / "memories.csv")
    assert loaded["=code"].tolist() == ["007", "=1+1"]
    assert loaded["n"].tolist() == ["1", "2"]
    assert loaded["label"].tolist() == ["x", "y"]


def test_json_lines_with_a_column_that_is_empty_at_first_are_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(archive.jsonl, "_CHUNK_LINES", 1)
    frame = memories_of([ROW, ROW | {"id": "m2"}]).assign(note=[None, "x"], score=[1, 2.5])
    export_memories(frame, tmp_path / "memories.jsonl")
    pd.testing.assert_frame_equal(load_archive(tmp_path / "memories.jsonl"), frame)


# Readers of other people


def test_pandas_reads_the_parquet_with_tags_as_lists(tmp_path):
    export_memories(memories_of([ROW]), tmp_path / "memories.parquet")
    frame = pd.read_parquet(tmp_path / "memories.parquet")
    assert frame["content"].tolist() == ["Ada likes tea"]
    assert [list(tags) for tags in frame["tags"]] == [["tea"]]
    schema = pq.read_schema(tmp_path / "memories.parquet")
    assert schema.field("tags").type == pa.list_(pa.string())
    assert schema.field("created_at").type == pa.timestamp("us", tz="UTC")


def test_json_reads_each_line(tmp_path):
    export_memories(memories_of([ROW | {"title": "two\nlines"}]), tmp_path / "memories.jsonl")
    (line,) = (tmp_path / "memories.jsonl").read_text().splitlines()
    assert json.loads(line)["title"] == "two\nlines"


def test_what_another_program_saved_with_other_types_is_loaded(tmp_path):
    table = archive.table_of(memories_of([ROW]))
    table = table.set_column(5, "tags", table["tags"].cast(pa.large_list(pa.large_string())))
    table = table.set_column(2, "title", pa.array(["tea"]).dictionary_encode())
    pq.write_table(table.replace_schema_metadata(), tmp_path / "memories.parquet")
    assert_same(load_archive(tmp_path / "memories.parquet"), memories_of([ROW | {"title": "tea"}]))


# Spreadsheets


LIVE = "=+-@\t\r\n\x00＝＋－＠"  # noqa: RUF001 - what is tested


def test_no_cell_and_no_header_of_a_csv_is_live(tmp_path):
    texts = [mark + rest for mark in LIVE for rest in ("1+1", "", "cmd|' /C calc'!A0")]
    frame = memories_of([ROW | {"id": text, "title": text, "tags": (text,)} for text in texts])
    frame[texts] = "x"
    export_memories(frame, tmp_path / "memories.csv")
    with (tmp_path / "memories.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert len(cells) == (len(texts) + 1) * len(frame.columns)
    assert not [cell for cell in cells if cell[:1] and cell[0] in LIVE]


def test_no_cell_is_live_where_a_spreadsheet_splits_at_semicolons(tmp_path):
    texts = [f"Likes tea{split}{mark}1+1" for split in ";\t\r\n" for mark in "=+-@'＝"]  # noqa: RUF001
    texts += ["a;'=b", "a;''b", "it's;'s", "a;;=b;=c", ";=", "\n\n- one\n- two"]
    frame = memories_of(
        [ROW | {"id": str(n), "title": text, "tags": (text,)} for n, text in enumerate(texts)]
    )
    frame["of;=mine"] = frame["title"]
    export_memories(frame, tmp_path / "memories.csv")
    with (tmp_path / "memories.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file, delimiter=";") for cell in row]
    assert not [cell for cell in cells if cell[:1] and cell[0] in LIVE]
    loaded = load_archive(tmp_path / "memories.csv")
    assert loaded.title.tolist() == loaded["of;=mine"].tolist() == texts
    assert loaded.tags.tolist() == [(text,) for text in texts]


# Files


@pytest.mark.parametrize("extension", FORMATS)
def test_an_archive_is_for_its_owner_alone_and_replaces_an_archive(tmp_path, extension):
    path = tmp_path / f"memories{extension}"
    for n_rows in (3, 1):
        export_memories(memories_of([ROW | {"id": str(number)} for number in range(n_rows)]), path)
        assert len(load_archive(path)) == n_rows
        assert os.listdir(tmp_path) == [path.name]  # noqa: PTH208 - hidden files too
    modes = {stat.S_IMODE(file.stat().st_mode) for file in (path.iterdir() if path.is_dir() else [path])}
    assert modes == {0o600}


@pytest.mark.parametrize("extension", FORMATS)
def test_an_export_that_fails_leaves_what_was_there(tmp_path, extension, monkeypatch):
    path = tmp_path / f"memories{extension}"
    export_memories(memories_of([ROW]), path)

    def no_space(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(FrameError, match=rf"{path.name} cannot be written \(No space") as caught:
        export_memories(memories_of([]), path)
    assert caught.value.__cause__.errno == 28
    assert_same(load_archive(path), memories_of([ROW]))
    assert os.listdir(tmp_path) == [path.name]  # noqa: PTH208 - hidden files too


@pytest.mark.parametrize("name", ["mine.csv", "mine.jsonl", "mine.parquet"])
def test_another_file_is_not_replaced(tmp_path, name):
    (tmp_path / name).write_text("id,price\n1,2\n")
    with pytest.raises(FrameError, match=f"{name} is not replaced, as it is no archive"):
        export_memories(memories_of([ROW]), tmp_path / name)
    assert (tmp_path / name).read_text() == "id,price\n1,2\n"


def test_a_folder_with_other_files_is_not_replaced(tmp_path):
    (tmp_path / "thesis.txt").write_text("ten years of work")
    with pytest.raises(FrameError, match=r"is not replaced, as it holds thesis\.txt"):
        export_memories(memories_of([ROW]), tmp_path)
    assert (tmp_path / "thesis.txt").exists()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("memories.xlsx", "use .parquet, .jsonl, .csv, or a folder"),
        ("none/memories.csv", "does not exist: create it"),
    ],
)
def test_a_path_that_does_not_fit_is_refused_before_anything_is_written(tmp_path, name, says):
    with pytest.raises(FrameError, match=says):
        export_memories(memories_of([ROW]), tmp_path / name)
    assert not any(tmp_path.iterdir())
