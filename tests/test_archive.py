"""Archives: what was exported loads without a change, lies open to its owner only, and bites nobody."""
# ruff: noqa: E501 - tables of odd texts and of a schema

import csv
import json
import os
import re
import stat
import warnings
from datetime import UTC, datetime

import jsonschema
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from memframe import archive
from memframe.archive import export_memories, formats, load_archive
from memframe.archive.table import ARCHIVE_SCHEMA
from memframe.errors import AccessError, ConfigError, FrameError
from memframe.load import load_memories
from memframe.readers import read_memories
from memframe.sample import load_sample
from memframe.wire import LIST_MEMORIES
from tests.conftest import FEW_EXAMPLES
from tests.faults import FaultProxy, answered, clamped
from tests.rows import ROW, assert_same, memories_of

FORMATS = [".parquet", ".jsonl", ".csv", ".json", ".md", ""]

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


@pytest.mark.parametrize("extension", FORMATS)
@given(rows=ROWS)
@example(rows=[])
@example(
    rows=[ROW | dict.fromkeys(["id", "title", "content"], word) | {"tags": (word,)} for word in ODD_WORDS]
)
@FEW_EXAMPLES
def test_what_was_exported_loads_without_a_change(tmp_path, extension, rows):
    path = tmp_path / f"memories{extension}"
    memories = memories_of(rows)
    assert export_memories(memories, path) == len(rows)
    assert_same(load_archive(path), memories)


AS_PANDAS_HOLDS_THEM = {
    "a column of no texts as numbers": lambda frame: frame.assign(title=np.nan, summary=np.nan),
    "Arrow": lambda frame: pa.Table.from_pandas(frame).to_pandas(types_mapper=pd.ArrowDtype),
    "objects": lambda frame: frame.astype(object),
}


@pytest.mark.parametrize("extension", FORMATS)
@pytest.mark.parametrize("held_as", AS_PANDAS_HOLDS_THEM)
def test_other_dtypes_of_the_same_cells_make_the_same_archive(tmp_path, extension, held_as):
    path, memories = tmp_path / f"memories{extension}", memories_of([ROW, ROW | {"id": "m2", "tags": ()}])
    export_memories(AS_PANDAS_HOLDS_THEM[held_as](memories), path)
    assert_same(load_archive(path), memories)


def test_a_column_of_ones_own_whose_dtype_pandas_cannot_read_is_read(tmp_path):
    lists = pd.Series([["a"], None], dtype=pd.ArrowDtype(pa.list_(pa.string())))
    memories = memories_of([ROW, ROW | {"id": "m2"}]).assign(own=lists)
    export_memories(memories, tmp_path / "a.parquet")
    memories.to_parquet(tmp_path / "b.parquet")
    for name in ("a.parquet", "b.parquet"):
        assert load_archive(tmp_path / name)["own"].tolist()[0].tolist() == ["a"]
    assert len(pd.read_parquet(tmp_path / "a.parquet")) == 2


@pytest.mark.parametrize("extension", FORMATS)
def test_many_rows_and_large_cells_keep_their_order_whatever_the_index(tmp_path, extension, monkeypatch):
    monkeypatch.setattr(formats, "GROUP_ROWS", 3)
    monkeypatch.setattr(formats, "PART_ROWS", 2)
    path = tmp_path / f"memories{extension}"
    rows = [ROW | {"id": f"m{number}"} for number in range(40)]
    rows[7] |= {"content": 'line "one"\n' * 300_000}
    memories = memories_of(rows)
    indexed = memories.set_index(pd.Index([f"r{number}" for number in range(40)], name="label"))
    indexed.attrs = {"anything": object()}
    before = indexed.copy()
    export_memories(indexed, path)
    pd.testing.assert_frame_equal(indexed, before)
    assert_same(load_archive(path), memories)
    assert extension or len(list(path.iterdir())) == 14
    chosen = load_archive(path, columns=pd.Index(["tags", "id"]))
    assert chosen.to_dict("list") == {"tags": [("tea",)] * 40, "id": memories.id.tolist()}
    with pytest.raises(FrameError, match="has no column nope: it has id, user_id"):
        load_archive(path, columns=["id", "nope"])


# From the service


@pytest.fixture(scope="module")
def sample_access(service, shared_user):
    """An access to a user with the first memories of the sample, which no test changes."""
    service.import_memories(shared_user.user_id, load_sample()[:40])
    return shared_user.access()


@pytest.mark.parametrize("extension", FORMATS)
def test_an_access_is_exported_in_chunks(tmp_path, sample_access, access, extension, monkeypatch):
    monkeypatch.setattr(formats, "GROUP_ROWS", 7)
    path = tmp_path / f"memories{extension}"
    assert export_memories(access, path, progress=False) == 0
    assert_same(load_archive(path), memories_of([]))
    assert export_memories(sample_access, path, progress=False) == 40
    assert_same(load_archive(path), load_memories(sample_access, progress=False))


@pytest.mark.parametrize("extension", FORMATS)
def test_a_listing_that_breaks_off_leaves_the_archive_that_was_there(
    tmp_path, sample_access, extension, monkeypatch
):
    path = tmp_path / f"memories{extension}"
    export_memories(memories_of([ROW]), path)
    monkeypatch.setattr(formats, "GROUP_ROWS", 7)
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


@pytest.mark.parametrize("extension", FORMATS)
def test_other_columns_are_kept_as_far_as_the_format_goes(tmp_path, extension):
    path = tmp_path / f"memories{extension}"
    frame = own_columns().rename(columns={"code": "=code"})
    export_memories(frame, path)
    loaded = load_archive(path)
    if extension in ("", ".parquet"):
        pd.testing.assert_frame_equal(loaded, frame)
        return
    assert loaded["=code"].tolist() == ["007", "=1+1"]
    assert loaded["label"].tolist() == ["x", "y"]
    assert loaded["n"].tolist() == ([1, 2] if extension in (".jsonl", ".json") else ["1", "2"])
    if extension == ".jsonl":
        assert loaded["flag"].tolist() == [True, False]
        assert loaded["seen"].tolist()[0].startswith("2024-05-01T12:00:00.123456")


def test_json_lines_with_a_column_that_is_empty_at_first_are_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "_CHUNK_LINES", 1)
    frame = memories_of([ROW, ROW | {"id": "m2"}]).assign(note=[None, "x"], score=[1, 2.5])
    export_memories(frame, tmp_path / "memories.jsonl")
    pd.testing.assert_frame_equal(load_archive(tmp_path / "memories.jsonl"), frame)


# Readers of other people


def test_other_readers_take_tags_as_lists_and_a_line_for_each_memory(tmp_path):
    memories = memories_of([ROW | {"title": "two\nlines"}])
    export_memories(memories, tmp_path / "memories.parquet")
    frame = pd.read_parquet(tmp_path / "memories.parquet")
    assert frame["content"].tolist() == ["Ada likes tea"]
    assert [list(tags) for tags in frame["tags"]] == [["tea"]]
    schema = pq.read_schema(tmp_path / "memories.parquet")
    assert schema.field("tags").type == pa.list_(pa.string())
    assert schema.field("created_at").type == pa.timestamp("us", tz="UTC")
    export_memories(memories, tmp_path / "memories.jsonl")
    (line,) = (tmp_path / "memories.jsonl").read_text().splitlines()
    assert json.loads(line)["title"] == "two\nlines"


def test_parquet_that_another_program_saved_with_other_types_is_loaded(tmp_path):
    table = archive.table_of(memories_of([ROW]))
    table = table.set_column(5, "tags", table["tags"].cast(pa.large_list(pa.large_string())))
    table = table.set_column(2, "title", pa.array(["tea"]).dictionary_encode())
    pq.write_table(table.replace_schema_metadata(), tmp_path / "memories.parquet")
    assert_same(load_archive(tmp_path / "memories.parquet"), memories_of([ROW | {"title": "tea"}]))
    single = memories_of([ROW | {"importance": 0.3}]).astype({"importance": "float32"})
    single.to_parquet(tmp_path / "single.parquet")
    assert load_archive(tmp_path / "single.parquet").importance.tolist() == [0.3], "no more digits"


# What pandas wrote itself


INDEXES = {
    "a range that begins later": lambda m: m[1:],
    "a name": lambda m: m.set_axis(pd.Index([f"p{number}" for number in range(len(m))], name="project")),
    "the name of a column": lambda m: m.rename_axis("title"),
    "months": lambda m: m.set_axis(pd.period_range("2026-01", periods=len(m), freq="M")),
    "several levels": lambda m: m.set_axis(
        pd.MultiIndex.from_arrays([["a"] * len(m), range(len(m))], names=["part", "row"])
    ),
    "the id beside the column": lambda m: m.set_index("id", drop=False),
    "the id": lambda m: m.set_index("id"),
    "the id beside a label": lambda m: m.set_index("id", append=True),
}
"""Frames of the same memories, under every kind of index that pandas can write."""


def written_by_pandas(memories, path, **options):
    if path.suffix == ".parquet":
        memories.to_parquet(path, **options)
    elif path.suffix == ".csv":
        memories.to_csv(path, **options)
    else:
        memories.to_json(path, orient="records", lines=True, **options)
    return path


def check_cells(loaded, frame, cut=lambda column: column):
    assert loaded.dtypes.to_dict() == dict(zip(ARCHIVE_SCHEMA, memories_of([]).dtypes, strict=True))
    for name in loaded:
        was = cut(frame[name])
        assert loaded[name].isna().tolist() == was.isna().tolist(), name
        assert loaded[name].dropna().tolist() == was.dropna().tolist(), name


PLAIN_ROWS = [
    ROW | {"id": "m1", "tags": ("a b", "c'd", 'e"f', "g\\n", "h,i"), "title": "'tis", "content": "a\r\n'b"},
    ROW | {"id": "m2", "tags": (), "content": "=1+1", "title": "''", "source": "'=x", "summary": "NA"},
    ROW | {"id": "m3", "tags": ("猫", "('x',)", "['y']"), "title": "null", "importance": 1 / 3},
    ROW | {"id": "m4", "created_at": "2026-01-02T03:04:05.123456Z", "updated_at": "2026-01-02T03:04:06Z"},
    ROW | {"id": "m5", "created_at": "1965-01-02T03:04:05.000Z", "confidence": 1e-7},
]


@pytest.mark.parametrize("name", ["mine.parquet", "mine.csv"])
@pytest.mark.parametrize("index", INDEXES)
def test_a_file_that_pandas_wrote_is_read_under_every_index(tmp_path, index, name):
    frame = INDEXES[index](memories_of(PLAIN_ROWS))
    loaded = load_archive(written_by_pandas(frame, tmp_path / name))
    check_cells(loaded[[*ARCHIVE_SCHEMA]], frame.reset_index("id") if "id" not in frame else frame)
    assert loaded.columns.difference([*ARCHIVE_SCHEMA, *filter(None, frame.index.names)]).empty


@pytest.mark.parametrize("tags", [list, np.array, tuple])
def test_a_csv_of_pandas_without_its_index_is_read_however_tags_are_held(tmp_path, tags):
    memories = memories_of(PLAIN_ROWS)
    frame = memories.assign(tags=memories.tags.map(lambda names: tags([*names])))
    check_cells(load_archive(written_by_pandas(frame, tmp_path / "mine.csv", index=False)), memories)


@pytest.mark.parametrize(
    ("options", "unit"),
    [
        ({}, "ms"),
        ({"date_unit": "s"}, "s"),
        ({"date_unit": "us"}, "us"),
        ({"date_unit": "ns"}, "us"),
        ({"date_format": "iso"}, "ms"),
    ],
)
@pytest.mark.filterwarnings("ignore:The default formatting of datetime")  # pandas says what it will change
@pytest.mark.filterwarnings("ignore:The default .epoch. date format")  # pandas 3.0 said it so
def test_json_lines_that_pandas_wrote_are_read(tmp_path, options, unit):
    def cut(column):
        if column.name in ("created_at", "updated_at"):
            return column.dt.floor(unit)
        return column.round(10) if column.dtype == "float64" else column

    memories = memories_of(PLAIN_ROWS[:4])
    loaded = load_archive(written_by_pandas(memories[::2], tmp_path / "mine.jsonl", **options))
    check_cells(loaded, memories[::2], cut)


def test_own_columns_and_a_named_index_of_a_frame_that_pandas_wrote_stay_in_their_rows(tmp_path):
    frame = memories_of(PLAIN_ROWS)[::-2].assign(n=[1, 2, 3])
    frame = frame.set_axis(pd.Index(["x", "y", "z"], name="project"))
    frame.to_parquet(tmp_path / "mine.parquet")
    pd.testing.assert_frame_equal(load_archive(tmp_path / "mine.parquet"), frame)
    chosen = load_archive(tmp_path / "mine.parquet", columns=["project", "n", "id"])
    assert chosen.to_dict("list") == {"project": ["x", "y", "z"], "n": [1, 2, 3], "id": ["m5", "m3", "m1"]}


# Spreadsheets


LIVE = "=+-@\t\r\n\x00＝＋－＠"  # noqa: RUF001 - what is tested


STARTS = [mark + rest for mark in LIVE for rest in ("1+1", "", "cmd|' /C calc'!A0")]
AFTER_SPLITS = [f"Likes tea{split}{mark}1+1" for split in ";\t\r\n" for mark in "=+-@'＝"]  # noqa: RUF001
AFTER_SPLITS += ["a;'=b", "a;''b", "it's;'s", "a;;=b;=c", ";=", "\n\n- one\n- two"]


@pytest.mark.parametrize(("texts", "delimiter"), [(STARTS, ","), (AFTER_SPLITS, ";")])
def test_no_cell_and_no_header_of_a_csv_is_live(tmp_path, texts, delimiter):
    frame = memories_of(
        [ROW | {"id": str(n), "title": text, "tags": (text,)} for n, text in enumerate(texts)]
    )
    frame[texts if delimiter == "," else ["=x"]] = "x"
    frame["of;=mine"] = frame["title"]
    export_memories(frame, tmp_path / "memories.csv")
    with (tmp_path / "memories.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file, delimiter=delimiter) for cell in row]
    assert delimiter == ";" or len(cells) == (len(texts) + 1) * len(frame.columns)
    assert not [cell for cell in cells if cell[:1] and cell[0] in LIVE]
    loaded = load_archive(tmp_path / "memories.csv")
    assert loaded.title.tolist() == loaded["of;=mine"].tolist() == texts
    assert loaded.tags.tolist() == [(text,) for text in texts]


# Files


@pytest.mark.parametrize("extension", FORMATS)
def test_an_archive_is_for_its_owner_alone_and_replaced_by_a_whole_one(tmp_path, extension, monkeypatch):
    path = tmp_path / f"memories{extension}"
    for n_rows in (3, 1):
        export_memories(memories_of([ROW | {"id": str(number)} for number in range(n_rows)]), path)
        assert len(load_archive(path)) == n_rows
    modes = {stat.S_IMODE(file.stat().st_mode) for file in (path.iterdir() if path.is_dir() else [path])}
    assert modes == {0o600}

    def no_space(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(FrameError, match=rf"{path.name} cannot be written \(No space") as caught:
        export_memories(memories_of([]), path)
    assert caught.value.__cause__.errno == 28
    assert load_archive(path).id.tolist() == ["0"]
    assert os.listdir(tmp_path) == [path.name]  # noqa: PTH208 - hidden files too


def test_a_path_that_does_not_fit_is_refused_before_anything_is_written(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.txt").write_text("ten years of work")
    (tmp_path / "vault.md").mkdir()
    (tmp_path / "vault.md" / "mine.md").write_text("---\ntitle: x\n---\nmine")
    for name in ("mine.csv", "mine.jsonl", "mine.parquet", "mine.json"):
        (tmp_path / name).write_text("id,price\n1,2\n")
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    for name, says in (
        *(
            (f"mine{extension}", r"mine\.\w+ is not replaced, as it is not an archive")
            for extension in FORMATS[:4]
        ),
        ("vault.md", "is not replaced"),
        ("thesis", r"is not replaced, as it holds thesis\.txt"),
        ("memories.xlsx", "use .parquet, .jsonl, .csv, .json, .md, or a folder"),
        ("none/memories.csv", "does not exist: create it"),
        *(
            (f"{extension:x>250}", r"/x{242,}\S* cannot be written \(File name too long\)")
            for extension in FORMATS
        ),
    ):
        with pytest.raises(FrameError, match=says):
            export_memories(memories_of([ROW]), tmp_path / name)
    for name, form in (("mine.json", "pam"), ("vault.md", "markdown")):
        with pytest.raises(FrameError, match="is not replaced"):
            export_memories(memories_of([ROW]), tmp_path / name, format=form)
    assert {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()} == before


# For people and other systems

HOSTILE = [
    "---\ntitle: mine\n---\nx", "a: b # c", "!!python/object/apply:os.system [ls]", "&a *a", "[x", "{y", "> z", "'", '"', "\\",
    "../../etc/passwd", "C:\\con", "index", "log.md", "a/b\x00c", "\x85\u2028\ufeff\x7f", "t" * 100_000, "null", "~", "\r\n---\r\n",
]  # fmt: skip


def hostile_rows():
    cells = dict.fromkeys(["id", "user_id", "title", "summary", "content", "source"])
    return [ROW | dict.fromkeys(cells, text) | {"tags": (text,), "importance": None} for text in HOSTILE]


def test_notes_are_okf_and_hold_strangers_texts_in_their_places(tmp_path):
    extra = {"type": HOSTILE, "x: y\n---": HOSTILE, "n": range(len(HOSTILE))}
    memories = memories_of(hostile_rows()).assign(**extra)
    assert export_memories(memories, tmp_path / "notes", format="markdown") == len(HOSTILE)
    names = sorted(path.name for path in (tmp_path / "notes").rglob("*"))
    assert len(names) == len(HOSTILE) + 1
    assert all(re.fullmatch(r"[0-9]{6}-[a-z0-9-]{1,60}\.md|index\.md", name) for name in names)
    assert os.listdir(tmp_path) == ["notes"]  # noqa: PTH208 - hidden files too
    for path, text in zip(sorted((tmp_path / "notes").glob("0*.md")), HOSTILE, strict=True):
        _, head, body = path.read_bytes().decode().split("---\n", 2)
        cells = yaml.safe_load(head)
        assert cells["type"].strip()
        assert (cells["title"], cells["tags"], body) == (text, [text], text)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = load_archive(tmp_path / "notes")
    assert_same(again[[*ARCHIVE_SCHEMA]], memories[[*ARCHIVE_SCHEMA]])
    assert again["type"].tolist() == again["x: y\n---"].tolist() == HOSTILE
    assert again["n"].tolist() == [str(n) for n in range(len(HOSTILE))]
    assert_same(read_memories(tmp_path / "notes"), again)


def test_a_note_that_an_editor_has_written_anew_is_read(tmp_path):
    export_memories(memories_of([ROW | {"created_at": "2024-05-01T10:00:00Z"}]), tmp_path / "notes.md")
    note = next((tmp_path / "notes.md").glob("0*.md"))
    note.write_text(
        "---\nmemframe: 1\ntype: memory\nid: m1\ntitle: 'Tea: green'\ntags:\n  - tea\n  - hot\nimportance: 0.75\n"
        "created_at: 2024-05-01T10:00:00+00:00\n---\nAda likes tea\n"
    )
    row = load_archive(tmp_path / "notes.md").iloc[0]
    assert (row["title"], row["tags"], row["importance"], row["content"]) == (
        "Tea: green", ("tea", "hot"), 0.75, "Ada likes tea\n"
    )  # fmt: skip


PAM_SCHEMA = {
    "type": "object",
    "required": ["schema", "schema_version", "owner", "memories"],
    "properties": {
        "exported_by": {"pattern": "^[a-zA-Z0-9_-]+/[0-9]+\\.[0-9]+\\.[0-9]+$"},
        "owner": {"required": ["id"], "properties": {"id": {"type": "string", "minLength": 1}}},
        "memories": {"items": {
            "required": ["id", "type", "content", "content_hash", "temporal", "provenance"],
            "additionalProperties": False,
            "properties": {
                "id": {"type": "string", "minLength": 1}, "content": {"type": "string", "minLength": 1}, "summary": {}, "metadata": {},
                "type": {"enum": ["fact", "preference", "custom"]}, "custom_type": {"type": ["string", "null"], "minLength": 1},
                "content_hash": {"pattern": "^sha256:[a-f0-9]{64}$"}, "status": {"enum": ["active", "superseded"]},
                "tags": {"uniqueItems": True, "items": {"pattern": "^[a-z0-9][a-z0-9_-]*$"}},
                "confidence": {"properties": {"initial": {"minimum": 0, "maximum": 1}}},
                "temporal": {"required": ["created_at"]},
                "provenance": {"properties": {"platform": {"pattern": "^[a-z0-9_-]{2,32}$"}}},
            },
        }},
    },
}  # fmt: skip
"""What the published schema demands of the fields that are written."""

SAID_BY_PAM = ARCHIVE_SCHEMA.keys() - {"id", "user_id", "tag_ids", "content_error"}


@given(rows=ROWS)
@example(rows=hostile_rows())
@FEW_EXAMPLES
def test_portable_ai_memory_is_valid_and_comes_back(tmp_path, rows):
    path = tmp_path / "store.json"
    path.unlink(missing_ok=True)
    frame = memories_of(rows)
    held = frame[frame["content"].fillna("").str.strip() != ""].reset_index(drop=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export_memories(frame, path, format="pam")
        again = read_memories(path)
    jsonschema.validate(json.loads(path.read_bytes()), PAM_SCHEMA)
    for name in SAID_BY_PAM:
        cells = held[name].astype(object).where(held[name].notna(), None).tolist()
        if name == "tags":
            cells = list(map(as_a_service_takes, cells))
        elif name in ("title", "summary", "source"):
            cells = [cell if cell and cell.strip() else None for cell in cells]
        assert again[name].astype(object).where(again[name].notna(), None).tolist() == cells, name


def test_ids_of_portable_ai_memory_are_unique_and_come_back(tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    for name in ("tea", "boats"):
        (notes / f"{name}.md").write_text("- [fact] One\n- [fact] Two\n")
    frame = read_memories(notes)
    path = tmp_path / "store.json"
    export_memories(frame, path, format="pam")
    store = json.loads(path.read_bytes())
    jsonschema.validate(store, PAM_SCHEMA)
    ids = [memory["id"] for memory in store["memories"]]
    assert len({*ids}) == len(ids) == 4
    assert read_memories(path)["origin_id"].tolist() == frame["origin_id"].tolist()


def as_a_service_takes(tags):
    names = [part.strip()[:200].strip() for tag in tags for part in tag.strip().split(",")]
    return tuple(name for name in dict.fromkeys(names) if name)


@pytest.mark.parametrize(
    ("path", "options", "words"),
    [
        ("a.json", {"format": "xml"}, "format='xml': give"),
        ("a.csv", {"format": "pam"}, "is a .json file"),
        ("a", {"format": "pam"}, "is a .json file"),
        ("a.json", {"format": "markdown"}, "Notes are files of a folder"),
    ],
)
def test_formats_that_do_not_fit_are_refused(tmp_path, path, options, words):
    with pytest.raises((FrameError, ConfigError), match=words):
        export_memories(memories_of([ROW]), tmp_path / path, **options)
