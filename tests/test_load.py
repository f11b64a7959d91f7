"""Loading over real HTTP from the real service: what comes back is what was stored, typed and counted."""

import gc
import json
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pandas as pd
import pytest

import memframe as mf
from memframe.errors import ConfigError
from memframe.frames import MEMORY_KINDS
from memframe.sample import load_sample, load_sample_tags
from tests.conftest import User

LOCOMO = Path(__file__).parents[2] / "shared" / "data" / "locomo_memories.jsonl"


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
    assert memories.attrs["memframe"] == {
        "n_rows": len(sample),
        "n_undecryptable": 0,
        "n_plain": 0,
        "n_repeated": 0,
        "complete": True,
    }


@pytest.mark.parametrize("page_size", [1, 7, 388, 389, 1000, "auto"])
def test_no_page_size_changes_the_frame(filled, page_size):
    whole = mf.load_memories(filled, progress=False)
    pd.testing.assert_frame_equal(mf.load_memories(filled, page_size=page_size, progress=False), whole)


def test_the_filters_of_the_service_are_sent(filled):
    memories = mf.load_memories(filled, progress=False)
    tagged = mf.load_memories(filled, tags=["boat", "garden"], progress=False)
    assert len(tagged) == sum(bool({"boat", "garden"} & set(tags)) for tags in memories.tags)
    found = mf.load_memories(filled, search="comma", progress=False)
    assert 0 < len(found) < len(memories)
    important = mf.load_memories(filled, min_importance=0.9, progress=False)
    assert len(important) == (memories.importance >= 0.9).sum()


@pytest.mark.parametrize("limit", [0, 1, 5, 389, 400])
def test_limit_cuts_and_says_so(filled, limit):
    memories = mf.load_memories(filled, limit=limit, page_size=3 if limit < 10 else "auto", progress=False)
    assert len(memories) == min(limit, 389)
    assert memories.attrs["memframe"]["complete"] == (limit >= 389)


def test_no_memories_give_the_same_columns(access):
    memories = mf.load_memories(access, progress=False)
    assert list(memories.columns) == list(MEMORY_KINDS)
    assert len(memories) == 0
    assert list(mf.iter_memories(access, progress=False)) == []


@pytest.mark.parametrize("chunk_rows", [1, 50, 100, 388, 389, 390])
def test_chunks_hold_the_same_rows(filled, chunk_rows):
    chunks = list(mf.iter_memories(filled, chunk_rows=chunk_rows, page_size=60, progress=False))
    assert [len(chunk) for chunk in chunks[:-1]] == [chunk_rows] * (len(chunks) - 1)
    assert [chunk.attrs["memframe"]["complete"] for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    whole = mf.load_memories(filled, progress=False)
    pd.testing.assert_frame_equal(pd.concat(chunks, ignore_index=True), whole)


def test_one_memory_and_the_tags(filled):
    memories = mf.load_memories(filled, limit=1, progress=False)
    one = mf.load_memory(filled, memories.id[0])
    pd.testing.assert_frame_equal(one, memories, check_like=True)
    tags = mf.load_tags(filled)
    assert set(tags.name) == {tag.name for tag in load_sample_tags()}
    pd.testing.assert_frame_equal(mf.load_tag(filled, tags.id[0]), tags.head(1))


def test_a_damaged_row_is_marked_and_the_others_load(access):
    for number in range(5):
        create(access, content=f"text {number}")
    sealed = access.envelope.seal("text 5")
    damaged = sealed[:-1] + ("A" if sealed[-1] != "A" else "B")
    # The service takes what does not authenticate for plain text, and seals it once more.
    create_raw = access.client.create_memory_blob
    create_raw(access.user_id, memory_key=access.credentials.memory_key, content=damaged)
    memories = mf.load_memories(access, progress=False)
    assert memories.content[:5].tolist() == [f"text {number}" for number in range(5)]
    assert memories.content[5] == damaged


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


def test_the_load_becomes_the_baseline_and_edits_do_not_reach_it(filled):
    memories = mf.load_memories(filled, progress=False)
    memories.loc[0, "title"] = "edited"
    memories.loc[0, "importance"] = 0.123
    baseline = filled.baseline()
    assert baseline.title.iloc[0] == load_sample()[0].title
    assert baseline.importance.iloc[0] != 0.123


def test_of_two_loads_the_newer_counts(access):
    created = create(access, title="old")
    mf.load_memories(access, progress=False)
    key = access.credentials.memory_key
    access.client.update_memory_blob(access.user_id, created.id, memory_key=key, title="new")
    mf.load_memory(access, created.id)
    assert access.baseline().title.to_dict() == {created.id: "new"}


def test_the_collector_runs_again_afterwards(filled):
    assert gc.isenabled()
    mf.load_memories(filled, progress=False)
    assert gc.isenabled()


def test_progress_is_told(filled):
    told = []
    mf.load_memories(filled, page_size=100, progress=lambda done, total, text: told.append(done))
    assert told[-1] == 389


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"tags": ["a,b"]}, "comma"),
        ({"tags": [" "]}, "tags"),
        ({"min_importance": 1.5}, "min_importance"),
        ({"min_importance": float("nan")}, "min_importance"),
        ({"limit": -1}, "limit"),
        ({"page_size": 0}, "page_size"),
        ({"on_undecryptable": "drop"}, "on_undecryptable"),
        ({"progress": "sometimes"}, "progress"),
    ],
)
def test_an_option_that_makes_no_sense_is_named(access, options, named):
    with pytest.raises(ConfigError, match=named):
        mf.load_memories(access, **{"progress": False} | options)


def test_a_revoked_access_ends_the_next_load(user):
    access = user.access()
    user.service.decide(access.request_id, "revoked")
    with pytest.raises(mf.AccessError):
        mf.load_memories(access, progress=False)


@pytest.mark.data
@pytest.mark.skipif(not LOCOMO.exists(), reason="the real input is not beside the project")
def test_real_memories_go_through_the_service_and_back_byte_for_byte(access):
    rows = [json.loads(line) for line in LOCOMO.read_text().splitlines()]
    for row in rows:
        create(access, content=row["content"], source=row["source"], tags=[row["person"]])
    memories = mf.load_memories(access, progress=False)
    assert [text.encode() for text in memories.content] == [row["content"].encode() for row in rows]
    assert memories.source.tolist() == [row["source"] for row in rows]
    assert memories.tags.tolist() == [(row["person"],) for row in rows]
