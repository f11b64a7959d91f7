"""Sealed archives: only the key opens what people wrote, and nothing of it is lost or changed on the way."""

import base64
import json
import os
import random
from contextlib import suppress

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import memframe as mf
from memframe import wire
from memframe.archive import formats
from memframe.archive.sealing import AS_STORED
from memframe.envelope import Envelope
from memframe.errors import FrameError, SealError
from memframe.wire import Credentials
from tests.rows import ROW, assert_same, memories_of, split_in_parts
from tests.strangers import MEMORY, SECRETS, USER_ID
from tests.test_archive import sample_access

__all__ = ["sample_access"]

KEY = SECRETS["encryption key"]
OTHER_KEY = "11" * 31 + "12"


def sealed_archive(access, path):
    mf.export_memories(access, path, sealed=True, progress=False)
    return path


def credentials_of(key=KEY, version=1):
    return Credentials(USER_ID, mf.Secret("mk"), mf.Secret(key), version)


def envelope_of(key=KEY, version=1, **options):
    return Envelope(mf.Secret(key), user_id=USER_ID, key_version=version, **options)


def opened(stranger, *contents, **options):
    """An access to memories with these contents, as the service stores them."""
    memories = [{**MEMORY, "id": f"m{row}", "content": content} for row, content in enumerate(contents)]
    stranger.answer(wire.LIST_MEMORIES, memoryBlobs=memories)
    return mf.open_access(stranger.client(), "r1", **options)


# What opens it, and what does not


@pytest.mark.parametrize("name", ["memories", "memories.parquet"])
@pytest.mark.parametrize(
    "key_of",
    [
        lambda access: access,
        lambda access: access.credentials,
        lambda access: access.credentials.encryption_key,
        lambda access: access.credentials.encryption_key.reveal(),
        lambda access: {1: access.credentials.encryption_key, 0: OTHER_KEY},
    ],
    ids=["access", "credentials", "secret", "text", "by version"],
)
def test_the_key_opens_what_was_sealed_without_a_change(tmp_path, sample_access, name, key_of):
    path = sealed_archive(sample_access, tmp_path / name)
    assert_same(
        mf.load_archive(path, key=key_of(sample_access)), mf.load_memories(sample_access, progress=False)
    )


@pytest.mark.parametrize(
    ("key", "says"),
    [
        (None, f"sealed with key_version 1 of user {USER_ID}: pass key=, the Access to that user"),
        (OTHER_KEY, "This key does not open .*memories, which is sealed with key_version 1"),
        (credentials_of(version=2), r"the key_version that was given is 2: pass the older key as key=\{1: "),
        (Credentials("somebody", mf.Secret("mk"), mf.Secret(KEY), 1), "this is a key of user somebody"),
        ({2: OTHER_KEY, 3: OTHER_KEY}, "the key_version that was given is 2, 3: pass the older key"),
        ({}, "that was given is none"),
        ("0x" + KEY[2:], "the encryption key begins with 0x"),
    ],
)
def test_nothing_else_opens_it(tmp_path, stranger, key, says):
    path = sealed_archive(opened(stranger, envelope_of().seal("Likes tea")), tmp_path / "memories")
    for columns in (None, ["title"], ["content_error"]):
        with pytest.raises(SealError, match=says) as caught:
            mf.load_archive(path, key=key, columns=columns)
        assert KEY not in str(caught.value)
        assert OTHER_KEY not in str(caught.value)


def test_columns_in_the_open_are_read_without_a_key(tmp_path, sample_access, access):
    path = sealed_archive(sample_access, tmp_path / "memories")
    columns = ["created_at", "id", "importance", "tag_ids"]
    memories = mf.load_memories(sample_access, progress=False)
    pd.testing.assert_frame_equal(mf.load_archive(path, columns=columns), memories[columns])
    chosen = mf.load_archive(path, key=sample_access, columns=["content_error", "title"])
    pd.testing.assert_frame_equal(chosen, memories[["content_error", "title"]])
    empty = sealed_archive(access, tmp_path / "empty")
    with pytest.raises(SealError, match="does not open"):
        mf.load_archive(empty, key=OTHER_KEY)
    assert_same(mf.load_archive(empty, key=access), memories_of([]))


# What stands in the file


def cells_of(path):
    """All that stands in the files of an archive: every text, and the schema with its metadata."""
    table = pq.read_table(path)
    return str(table.to_pydict()) + str(table.schema.metadata)


def test_nothing_that_people_wrote_stands_in_the_open(tmp_path, sample_access):
    path = sealed_archive(sample_access, tmp_path / "memories.parquet")
    written = cells_of(path)
    memories = mf.load_memories(sample_access, progress=False)
    columns = [memories.title, memories.summary, memories.content, memories.tags.explode()]
    texts = {text for text in pd.concat(columns).dropna() if len(text) > 5} - {*memories.source}
    assert len(texts) > 70
    assert not [text for text in texts if text in written]
    assert sample_access.credentials.encryption_key.reveal() not in written
    assert sample_access.credentials.memory_key.reveal() not in written


def test_content_stays_as_the_service_stores_it(tmp_path, stranger):
    theirs = [envelope_of(write_format=name).seal("Likes tea") for name in ("gcm-iv:tag:ct", "memframe")]
    path = sealed_archive(opened(stranger, *theirs), tmp_path / "memories.parquet")
    assert pq.read_table(path)["content"].to_pylist() == theirs
    assert mf.load_archive(path, key=KEY).content.tolist() == ["Likes tea", "Likes tea"]


@pytest.mark.parametrize(
    "content",
    ["Likes tea", "", "as-stored:x", None, envelope_of(OTHER_KEY, 7).seal("Likes tea")],
    ids=["plain", "empty", "as an archive marks it", "none", "under another key"],
)
def test_content_that_the_key_does_not_open_is_sealed_as_it_stands(tmp_path, stranger, content):
    access = opened(stranger, envelope_of().seal("first"), content)
    path = sealed_archive(access, tmp_path / "memories.parquet")
    in_file = pq.read_table(path)["content"].to_pylist()[1]
    assert in_file is content if content is None else in_file.startswith(AS_STORED + "mf1.1.")
    assert_same(mf.load_archive(path, key=access), mf.load_memories(access, progress=False))


def test_content_under_an_older_key_is_opened_where_that_is_given_too(tmp_path, stranger):
    access = opened(stranger, envelope_of().seal("new"), envelope_of(OTHER_KEY, 0).seal("old"))
    path = sealed_archive(access, tmp_path / "memories")
    assert mf.load_archive(path, key=KEY).content_error[1].startswith("sealed with key_version 0")
    both = mf.load_archive(path, key={0: OTHER_KEY, 1: KEY})
    assert both.content.tolist() == ["new", "old"]
    assert both.content_error.isna().all()


def test_a_lone_surrogate_is_marked_as_in_a_load(tmp_path, stranger):
    memories = [{**MEMORY, "title": "tea \ud800", "content": envelope_of().seal("Likes tea")}]
    memories += [{**MEMORY, "id": "m2", "content": "half \ud800"}]
    stranger.answer(wire.LIST_MEMORIES, memoryBlobs=memories)
    access = mf.open_access(stranger.client(), "r1", content_format=["memframe", "plain"])
    path = sealed_archive(access, tmp_path / "memories")
    loaded, memories = mf.load_archive(path, key=access), mf.load_memories(access, progress=False)
    assert_same(loaded.head(1), memories.head(1))
    assert loaded.content_error.tolist() == memories.content_error.tolist()


# How the service stores content


class Backwards:
    """A codec that nobody else has."""

    def seal(self, text):
        return text[::-1]

    open = seal


def test_a_codec_of_ones_own_comes_with_the_access(tmp_path, stranger):
    access = opened(stranger, "aet sekiL", content_format=Backwards())
    path = sealed_archive(access, tmp_path / "memories")
    assert mf.load_archive(path, key=access).content.tolist() == ["Likes tea"]
    with pytest.raises(SealError, match="by your own codec: pass key=access"):
        mf.load_archive(path, key=KEY)


@pytest.mark.parametrize("content_format", ["gcm-iv-ct-tag", ["memframe", "gcm-iv-ct-tag"], "auto"])
def test_the_archive_knows_how_the_service_stores_content(tmp_path, stranger, content_format):
    nonce = os.urandom(12)
    stored = nonce + AESGCM(bytes.fromhex(KEY)).encrypt(nonce, b"Likes tea", None)
    access = opened(stranger, base64.b64encode(stored).decode(), content_format=content_format)
    path = sealed_archive(access, tmp_path / "memories")
    assert mf.load_archive(path, key=KEY).content.tolist() == ["Likes tea"]


# Refusals


def test_a_frame_holds_no_key_and_other_formats_no_seal(tmp_path, sample_access):
    with pytest.raises(FrameError, match="which DataFrame does not hold: pass the Access"):
        mf.export_memories(memories_of([ROW]), tmp_path / "a.parquet", sealed=True)
    for name in ("a.csv", "a.jsonl"):
        with pytest.raises(FrameError, match=r"A sealed archive is Parquet, and .* is not"):
            sealed_archive(sample_access, tmp_path / name)
    assert not any(tmp_path.iterdir())


# What somebody changed


def rewritten(path, change):
    """Write a file of an archive again after a change of its table, all metadata kept."""
    footer = pq.read_metadata(path).metadata
    table = change(pq.read_table(path))
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({name: footer[name] for name in footer if name != b"ARROW:schema"})


def with_cell(name, row, value_of):
    def change(table):
        cells = table[name].to_pylist()
        cells[row] = value_of(cells)
        field = table.schema.field(name)
        return table.set_column(table.schema.get_field_index(name), field, pa.array(cells, field.type))

    return change


CHANGES = {
    "cells exchanged": with_cell("title", 0, lambda cells: cells[1]),
    "a tag added": with_cell("tags", 0, lambda cells: [*cells[0], *cells[1]]),
    "a score": with_cell("importance", 3, lambda cells: 0.123),
    "a score gone": with_cell("importance", 3, lambda cells: None),
    "a time": with_cell("created_at", 3, lambda cells: cells[4]),
    "an id": with_cell("id", 3, lambda cells: cells[4]),
    "marked as sealed": with_cell("content", 3, lambda cells: "as-stored:plain"),
    "plain content": with_cell("content", 3, lambda cells: "Send all money to Mallory"),
    "a row dropped": lambda table: table.slice(1),
    "all rows dropped": lambda table: table.slice(0, 0),
    "a row repeated": lambda table: pa.concat_tables([table, table.slice(3, 1)]),
    "a column added": lambda table: table.append_column("note", pa.array(["x"] * len(table))),
    "a column dropped": lambda table: table.drop_columns("source"),
}


def test_what_was_changed_in_a_sealed_archive_is_refused(tmp_path, sample_access):
    path = sealed_archive(sample_access, tmp_path / "a.parquet")
    whole, before = path.read_bytes(), mf.load_archive(path, key=sample_access)
    rewritten(path, lambda table: pa.concat_tables([table.slice(0, 7), table.slice(7)]))
    assert_same(mf.load_archive(path, key=sample_access), before)  # rows divided otherwise are the same
    title = pq.read_table(path)["title"].to_pylist()[1]
    for name, change in CHANGES.items():
        path.write_bytes(whole)
        rewritten(path, change)
        with pytest.raises((SealError, FrameError), match=r"a\.parquet") as caught:
            mf.load_archive(path, key=sample_access)
        assert title not in str(caught.value), name


def test_columns_in_the_open_are_verified_with_the_key(tmp_path, sample_access):
    path = sealed_archive(sample_access, tmp_path / "a.parquet")
    rewritten(path, with_cell("importance", 3, lambda cells: 0.123))
    assert 0.123 in set(mf.load_archive(path, columns=["importance"]).importance)
    with pytest.raises(SealError, match=r"a\.parquet was changed or damaged since it was sealed"):
        mf.load_archive(path, key=sample_access, columns=["importance"])
    assert len(mf.load_archive(path, key=sample_access, columns=["title"])) == 40


@pytest.mark.parametrize(
    ("is_sealed", "says"),
    [
        (True, "has no authentication code: it was removed, or memframe"),
        (False, "is not sealed, and a key was given: leave the key out"),
    ],
)
def test_taking_the_seal_away_is_noticed(tmp_path, sample_access, is_sealed, says):
    path = sealed_archive(sample_access, tmp_path / "a.parquet")
    table = pq.read_table(path)
    if not is_sealed:
        user_id = json.loads(table.schema.metadata[b"memframe"])["user_id"]
        table = table.replace_schema_metadata({"memframe": json.dumps({"user_id": user_id})})
    pq.write_table(table, path)
    with pytest.raises(SealError, match=says):
        mf.load_archive(path, key=sample_access)


@pytest.mark.parametrize("change", ["drop", "drop the last", "exchange", "rename", "add", "unseal", "mix"])
def test_files_of_a_sealed_dataset_belong_together(tmp_path, sample_access, change):
    path = sealed_archive(sample_access, tmp_path / "memories")
    split_in_parts(sample_access, path)
    first, *_, last = formats.parts_of(path)
    match change:
        case "drop":
            first.unlink()
        case "drop the last":
            last.unlink()
        case "exchange":
            other = path / "other"
            first.rename(other)
            last.rename(first)
            other.rename(last)
        case "rename":
            first.rename(path / "part-99999.parquet")
        case "add":
            (path / "part-00077.parquet").write_bytes(first.read_bytes())
        case "unseal":
            (path / formats.SEAL_FILE).unlink()
        case "mix":
            older = sealed_archive(sample_access, tmp_path / "older")
            first.write_bytes(formats.parts_of(older)[0].read_bytes())
    with pytest.raises(SealError, match=r"not those that were sealed together|were not sealed together"):
        mf.load_archive(path, key=sample_access)


def test_a_flipped_bit_is_an_error_or_makes_no_difference(tmp_path, sample_access):
    for name, options in (("plain.parquet", {}), ("sealed.parquet", {"key": sample_access})):
        path = tmp_path / name
        mf.export_memories(sample_access, path, sealed=bool(options), progress=False)
        whole, before = path.read_bytes(), mf.load_archive(path, **options)
        chance, silent = random.Random(name), []
        for _ in range(40):
            bit = chance.randrange(len(whole) * 8)
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            with suppress(FrameError, SealError):
                if not mf.load_archive(path, **options).equals(before):
                    silent.append(bit)
        assert len(silent) <= (0 if options else 1), silent  # the footer of a plain archive has no checksum


# Readers of other people


@pytest.mark.parametrize("sealed", [False, True])
def test_duckdb_and_polars_read_the_dataset(tmp_path, sample_access, sealed, monkeypatch):
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    monkeypatch.setattr(formats, "PART_ROWS", 15)
    mf.export_memories(sample_access, tmp_path / "memories", sealed=sealed, progress=False)
    ids = mf.load_memories(sample_access, progress=False).id.tolist()
    read = polars.read_parquet(tmp_path / "memories")
    assert read["id"].to_list() == ids
    count = "select count(*), min(len(tags)) from read_parquet(?) where importance is not null"
    with duckdb.connect() as other:  # of its own: a result that is not read to its end blocks the common one
        found = other.execute(count, [f"{tmp_path}/memories/*.parquet"]).fetchone()
    assert found == (
        read["importance"].count(),
        read.filter(polars.col("importance").is_not_null())["tags"].list.len().min(),
    )
    assert read["title"].str.starts_with("mf1.").all() == sealed
