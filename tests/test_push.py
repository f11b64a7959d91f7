"""Rows to service in one call: creates, patches, both; and refusals before anything is sent."""

import pandas as pd
import pytest

import memframe as mf

QUIET = {"progress": False, "settle_s": 0.0}


@pytest.fixture
def memories(access):
    mf.create_memories(
        access, pd.DataFrame({"content": ["tea", "coffee"]}), workers=1, **QUIET
    ).raise_for_failures()
    return mf.load_memories(access, progress=False)


def contents(access):
    return sorted(mf.load_memories(access, progress=False).content)


def test_creates_give_the_new_ids_in_the_order_of_the_rows(access):
    run = mf.create_memories(access, pd.DataFrame({"content": [f"memory {n}" for n in range(20)]}), **QUIET)
    loaded = mf.load_memories(access, progress=False).set_index("id")
    assert list(loaded.content[run.outcomes.id]) == [f"memory {n}" for n in range(20)]


def test_columns_that_were_not_written_are_named_by_the_run(access):
    rows = pd.DataFrame({"content": ["juice"], "created_at": "2024-05-01T00:00:00Z", "n_chars": 5})
    run = mf.create_memories(access, rows, **QUIET)
    for shown in (repr(run), run._repr_html_()):
        assert "Not written, as a memory has no such columns: n_chars" in shown
        assert (
            "Not written, as the service sets it: created_at of 1 new memory; times are those of the run"
            in shown
        )
    run.raise_for_failures()
    with pytest.raises(mf.PlanError, match="'contnet'"):
        mf.push_memories(access, pd.DataFrame({"content": ["juice"], "contnet": "milk"}), **QUIET)
    assert contents(access) == ["juice"]


def test_creating_what_has_an_id_and_updating_what_has_none_is_refused(access, memories):
    with pytest.raises(mf.PlanError, match="update_memories"):
        mf.create_memories(access, memories, **QUIET)
    with pytest.raises(mf.PlanError, match="create_memories"):
        mf.update_memories(access, pd.DataFrame({"content": ["new"]}), **QUIET)
    assert contents(access) == ["coffee", "tea"]


def test_a_frame_can_be_edited_and_pushed_again(access, memories):
    edited = memories.assign(content=["tea", "mocha"])
    mf.push_memories(access, edited, **QUIET).raise_for_failures()
    again = edited.assign(content=["tea", "espresso"], title=["a", None])
    run = mf.push_memories(access, again, **QUIET)
    assert run.counts["done"] == 2
    assert contents(access) == ["espresso", "tea"]
    assert len(mf.push_memories(access, memories, **QUIET)) == 0, "a frame of before takes nothing back"


def test_what_others_wrote_meanwhile_is_still_a_conflict_after_a_push(user, access, memories):
    theirs = mf.open_access(access.client, access.request_id)
    mf.push_memories(theirs, mf.load_memories(theirs, progress=False).assign(title="theirs"), **QUIET)
    edited = memories.assign(content=["tea", "mocha"])
    mf.push_memories(access, edited, **QUIET).raise_for_failures()
    with pytest.raises(mf.PlanError, match="title"):
        mf.push_memories(access, edited.assign(title="mine"), **QUIET)
