"""Sealed archives: only the key opens what people wrote, and nothing of it is lost or changed on the way."""

import base64
import os

import pandas as pd
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import memframe as mf
from memframe import wire
from memframe.archive import places
from memframe.archive.sealing import AS_STORED
from memframe.envelope import Envelope
from memframe.errors import FrameError, SealError
from memframe.sample import load_sample
from memframe.wire import Credentials
from tests.rows import ROW, assert_same, memories_of
from tests.strangers import MEMORY, SECRETS, USER_ID

KEY = SECRETS["encryption key"]
OTHER_KEY = "11" * 31 + "12"
WROTE = ["title", "summary", "content", "tags"]
"""Columns in which people wrote something."""


@pytest.fixture(scope="module")
def sample_access(service, shared_user):
    """An access to a user with the first memories of the sample, which no test changes."""
    service.import_memories(shared_user.user_id, load_sample()[:40])
    return shared_user.access()


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
        (credentials_of(version=2), r"these credentials hold key_version 2: pass the older key as key=\{1: "),
        (Credentials("somebody", mf.Secret("mk"), mf.Secret(KEY), 1), "this is a key of user somebody"),
        ({2: OTHER_KEY, 3: OTHER_KEY}, r"of the versions given \(3, 2\) none is that one"),
        ({}, r"of the versions given \(none\)"),
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


def test_an_archive_without_memories_is_as_closed_as_any(tmp_path, access):
    path = sealed_archive(access, tmp_path / "memories")
    with pytest.raises(SealError, match="does not open"):
        mf.load_archive(path, key=OTHER_KEY)
    assert_same(mf.load_archive(path, key=access), memories_of([]))


def test_columns_in_the_open_are_read_without_a_key(tmp_path, sample_access):
    path = sealed_archive(sample_access, tmp_path / "memories")
    columns = ["created_at", "id", "importance", "tag_ids"]
    memories = mf.load_memories(sample_access, progress=False)
    pd.testing.assert_frame_equal(mf.load_archive(path, columns=columns), memories[columns])
    chosen = mf.load_archive(path, key=sample_access, columns=["content_error", "title"])
    pd.testing.assert_frame_equal(chosen, memories[["content_error", "title"]])


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

    def open(self, text):
        return text[::-1]


def test_a_codec_of_ones_own_comes_with_the_access(tmp_path, stranger):
    access = opened(stranger, "aet sekiL", content_format=Backwards())
    path = sealed_archive(access, tmp_path / "memories")
    assert mf.load_archive(path, key=access).content.tolist() == ["Likes tea"]
    with pytest.raises(SealError, match="by a codec of your own: pass key=access"):
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


def test_a_cell_that_was_changed_is_not_opened(tmp_path, sample_access):
    path = sealed_archive(sample_access, tmp_path / "a.parquet")
    table = pq.read_table(path)
    titles = table["title"].to_pylist()
    changed = [titles[0][:-8] + ("AAAAAAA=" if titles[0][-8:] != "AAAAAAA=" else "BBBBBBA="), *titles[1:]]
    pq.write_table(table.set_column(2, "title", [changed]), path)
    with pytest.raises(SealError, match=r"1 text of title in .*a\.parquet cannot be opened") as caught:
        mf.load_archive(path, key=sample_access)
    assert titles[1] not in str(caught.value)


# Readers of other people


@pytest.mark.parametrize("sealed", [False, True])
def test_duckdb_and_polars_read_the_dataset(tmp_path, sample_access, sealed, monkeypatch):
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    monkeypatch.setattr(places, "PART_ROWS", 15)
    mf.export_memories(sample_access, tmp_path / "memories", sealed=sealed, progress=False)
    ids = mf.load_memories(sample_access, progress=False).id.tolist()
    read = polars.read_parquet(tmp_path / "memories")
    assert read["id"].to_list() == ids
    count = "select count(*), min(len(tags)) from read_parquet(?) where importance is not null"
    found = duckdb.execute(count, [f"{tmp_path}/memories/*.parquet"]).fetchone()
    assert found == (
        read["importance"].count(),
        read.filter(polars.col("importance").is_not_null())["tags"].list.len().min(),
    )
    assert read["title"].str.starts_with("mf1.").all() == sealed
