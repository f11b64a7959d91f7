"""Loading over real HTTP from the real service: what comes back is what was stored, typed and counted."""

import json
import re
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pandas as pd
import pytest

import memframe as mf
from memframe.envelope import Envelope
from memframe.errors import ConfigError, SealError
from memframe.sample import SampleMemory, load_sample, load_sample_tags
from memframe.wire import GET_CREDENTIALS, LIST_MEMORIES
from tests.conftest import User
from tests.faults import changed

LOCOMO = Path(__file__).parents[2] / "shared" / "data" / "locomo_memories.jsonl"
N_POSTED = 100
"""Of the real memories so many are sealed here and sent; the others the service takes over and seals itself."""


@pytest.fixture(scope="module")
def filled(service):
    """An access to the sample person's memories, which the tests only read."""
    with closing(User(service, f"{uuid4()}@example.org")) as user:
        service.import_memories(user.user_id, load_sample(), load_sample_tags())
        yield user.access()


def create(access, **fields):
    sealed = access.envelope.seal(fields.pop("content", "text"))
    memory_key = access.credentials.memory_key
    return access.client.create_memory_blob(access.user_id, memory_key=memory_key, content=sealed, **fields)


def test_the_sample_comes_back_as_it_was_stored(filled):
    memories = mf.load_memories(filled, progress=False)
    sample = load_sample()
    assert memories.content.tolist() == [memory.content for memory in sample]
    assert memories.tags.tolist() == [memory.tags for memory in sample]
    assert memories.title.isna().tolist() == [memory.title is None for memory in sample]
    assert memories.created_at.tolist() == [pd.Timestamp(memory.created_at) for memory in sample]
    assert memories.importance.isna().tolist() == [memory.importance is None for memory in sample]
    assert memories.content_error.isna().all()
    counts = {"n_rows": len(sample), "n_undecryptable": 0, "n_plain": 0, "n_repeated": 0, "complete": True}
    assert memories.attrs["memframe"] == counts | {"base_url": filled.client.base_url}


def test_no_page_size_changes_the_frame_and_a_limit_cuts_it(filled):
    whole = mf.load_memories(filled, progress=False)
    for page_size in (7, 388, 389, "auto"):
        loaded = mf.load_memories(filled, page_size=page_size, progress=False)
        pd.testing.assert_frame_equal(loaded, whole)
    for limit in (0, 1, 5, 389, 400):
        page_size = 3 if limit < 10 else "auto"
        memories = mf.load_memories(filled, limit=limit, page_size=page_size, progress=False)
        pd.testing.assert_frame_equal(memories, whole[:limit])
        assert memories.attrs["memframe"]["complete"] == (limit >= 389)


def test_one_memory_and_the_tags(filled):
    memories = mf.load_memories(filled, limit=1, progress=False)
    one = mf.load_memory(filled, memories.id[0])
    pd.testing.assert_frame_equal(one, memories, check_like=True)
    tags = mf.load_tags(filled)
    assert set(tags.name) == {tag.name for tag in load_sample_tags()}
    pd.testing.assert_frame_equal(mf.load_tag(filled, tags.id[0]), tags.head(1))


def test_the_filters_of_the_service_are_sent(filled):
    memories = mf.load_memories(filled, progress=False)
    tagged = mf.load_memories(filled, tags=["boat", "garden"], progress=False)
    assert len(tagged) == sum(bool({"boat", "garden"} & set(tags)) for tags in memories.tags)
    found = mf.load_memories(filled, search="comma", progress=False)
    assert 0 < len(found) < len(memories)
    important = mf.load_memories(filled, min_importance=0.9, progress=False)
    assert len(important) == (memories.importance >= 0.9).sum()


@pytest.mark.parametrize(
    ("chunk_rows", "query"),
    [(1, {"tags": ["boat"]}), *((chunk_rows, {}) for chunk_rows in (50, 100, 388, 389, 390))],
)
def test_chunks_hold_the_same_rows(filled, access, chunk_rows, query):
    assert list(mf.iter_memories(access, progress=False)) == []
    page_size = 60 if chunk_rows > 1 else 7
    chunks = list(
        mf.iter_memories(filled, chunk_rows=chunk_rows, page_size=page_size, progress=False, **query)
    )
    assert [len(chunk) for chunk in chunks[:-1]] == [chunk_rows] * (len(chunks) - 1)
    assert [chunk.attrs["memframe"]["complete"] for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    whole = mf.load_memories(filled, progress=False, **query)
    pd.testing.assert_frame_equal(pd.concat(chunks, ignore_index=True), whole)


@pytest.fixture
def proxied(access, proxy):
    """A proxy, and an access through it to five memories."""
    for number in range(5):
        create(access, content=f"text {number}")
    access.client.base_url = proxy.base_url
    return proxy, access


def flipped(sealed):
    """Sealed content in which one character of the middle is another."""
    middle = len(sealed) // 2
    return sealed[:middle] + ("A" if sealed[middle] != "A" else "B") + sealed[middle + 1 :]


def of_version(access, key_version):
    key = access.credentials.encryption_key
    return Envelope(key, user_id=access.user_id, key_version=key_version)


def test_rows_that_cannot_be_opened_are_marked_and_the_others_load(proxied):
    proxy, access = proxied
    other_version = of_version(access, 7).seal("x")

    def damage(page):
        for row, change in ((0, flipped), (2, lambda _: other_version)):
            blob = page["memoryBlobs"][row]
            blob["content"] = change(blob["content"])

    proxy.script(LIST_MEMORIES, changed(damage))
    memories = mf.load_memories(access, progress=False)
    whole = memories[memories.content_error.isna()]
    assert whole.content.tolist() == ["text 1", "text 3", "text 4"]
    assert memories.content.isna().tolist() == [True, False, True, False, False]
    assert "did not authenticate" in memories.content_error[0]
    assert "sealed with key_version 7" in memories.content_error[2]
    assert (memories.attrs["memframe"]["n_rows"], memories.attrs["memframe"]["n_undecryptable"]) == (5, 2)


def test_with_a_wrong_key_every_row_is_marked_or_one_error_says_so(proxied):
    proxy, access = proxied
    proxy.script(GET_CREDENTIALS, changed(lambda document: document.update(encryption_key="0f1e" * 16)))
    stranger = mf.open_access(access.client, access.request_id)
    memories = mf.load_memories(stranger, progress=False)
    assert memories.content.isna().all()
    assert memories.content_error.notna().all()
    assert memories.attrs["memframe"]["n_undecryptable"] == memories.attrs["memframe"]["n_rows"] == 5
    first = re.escape(f"5 of 5 memories of a page cannot be opened; the first, {memories.id[0]}: ")
    with pytest.raises(SealError, match=f"^{first}[^;]*$") as caught:
        mf.load_memories(stranger, on_undecryptable="raise", progress=False)
    assert str(caught.value).count(memories.content_error[0]) == 1


def test_odd_but_legal_text_survives(access):
    texts = [
        "",
        " ",
        "\t",
        "=1+1",
        "null",
        "NaN",
        "😀 Ünïcödé",
        "日本語",
        "a\nb\r\nc",
        '{"json": [1]}',
        "x" * 100_000,
    ]
    for text in texts:
        create(access, content=text, title=text[:100])
    memories = mf.load_memories(access, progress=False)
    assert memories.content.tolist() == texts
    assert memories.title.tolist() == [text[:100] for text in texts]


def test_an_option_that_makes_no_sense_is_named(access):
    odd = {
        "limit": [-1, 1.5],
        "page_size": [0, 1.5, "all", True, None],
        "on_undecryptable": ["drop"],
        "progress": ["x"],
    }
    for name, options in ((name, {name: value}) for name, values in odd.items() for value in values):
        with pytest.raises(ConfigError, match=name):
            mf.load_memories(access, **{"progress": False} | options)


@pytest.mark.data
@pytest.mark.skipif(not LOCOMO.exists(), reason="the real input is not beside the project")
def test_real_memories_go_through_the_service_and_back_byte_for_byte(user):
    rows = [json.loads(line) for line in LOCOMO.read_text().splitlines()]
    access = user.access()
    for row in rows[:N_POSTED]:
        create(access, content=row["content"], source=row["source"], tags=[row["person"]])
    user.service.import_memories(user.user_id, [as_sample(row) for row in rows[N_POSTED:]])
    memories = mf.load_memories(access, progress=False)
    assert [text.encode() for text in memories.content] == [row["content"].encode() for row in rows]
    assert memories.source.tolist() == [row["source"] for row in rows]
    assert memories.tags.tolist() == [(row["person"],) for row in rows]


def as_sample(row):
    nothing = dict.fromkeys(["title", "summary", "importance"])
    given = {name: row[name] for name in ("content", "source", "created_at")}
    return SampleMemory(
        **nothing, **given, tags=(row["person"],), confidence=1.0, updated_at=row["created_at"]
    )
