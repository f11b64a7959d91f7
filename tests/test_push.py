"""Rows written in one call."""

import pandas as pd
import pytest

import memframe as mf

QUIET = {"progress": False}


@pytest.fixture
def memories(access):
    frame = pd.DataFrame({"content": ["Ada likes tea", "Ada rows"]}, index=["first", "second"])
    mf.create_memories(access, frame, **QUIET).raise_for_failures()
    return mf.load_memories(access)


def test_new_rows_get_ids_in_their_order(access):
    frame = pd.DataFrame({"content": ["Ada likes tea", "Ada rows"]}, index=["first", "second"])
    run = mf.create_memories(access, frame, **QUIET)
    assert run.outcomes.row.tolist() == ["first", "second"]
    contents = mf.load_memories(access).set_index("id").content
    assert contents[run.outcomes.id].tolist() == frame.content.tolist()
    assert list(frame.columns) == ["content"]


def test_edited_and_new_rows_in_one_call(access, memories):
    memories.loc[0, "title"] = "Tea"
    frame = pd.concat([memories, pd.DataFrame({"content": ["Ada has two cats"]}, index=[9])])
    run = mf.push_memories(access, frame, **QUIET)
    assert run.outcomes[["row", "action", "status"]].values.tolist() == [
        [0, "patch", "done"],
        [9, "create", "done"],
    ]
    after = mf.load_memories(access)
    assert sorted(after.content) == ["Ada has two cats", "Ada likes tea", "Ada rows"]
    assert after.title.dropna().tolist() == ["Tea"]


def test_a_frame_that_nobody_edited_writes_nothing(access, memories):
    run = mf.push_memories(access, memories, **QUIET)
    assert (len(run), run.journal, repr(run)) == (0, None, "<memframe.Run: nothing to do>")
    run.raise_for_failures()
    assert run.outcomes.empty


def test_create_refuses_rows_that_are_there_by_their_labels(access, memories):
    memories.index = ["a", "b"]
    with pytest.raises(mf.PlanError, match=r"2 rows have an id.*update_memories.*row a, row b"):
        mf.create_memories(access, memories)


def test_update_refuses_rows_without_an_id_by_their_labels(access, memories):
    frame = pd.concat([memories, pd.DataFrame({"content": ["new"]}, index=[7])])
    with pytest.raises(mf.PlanError, match=r"1 rows have no id.*create_memories.*row 7"):
        mf.update_memories(access, frame)


def test_update_changes_what_was_edited(access, memories):
    memories["summary"] = ["a drink", None]
    run = mf.update_memories(access, memories, **QUIET)
    assert run.outcomes.row.tolist() == [0]
    assert mf.load_memories(access).summary.dropna().tolist() == ["a drink"]


def test_plain_text_goes_to_a_service_that_seals_by_itself(access, user):
    mf.create_memories(access, pd.DataFrame({"content": ["Ada likes tea"]}), encrypt=False, **QUIET)
    (blob,) = user.client.memory_blobs(user.user_id).memory_blobs
    assert blob.content != "Ada likes tea"
    assert access.envelope.open(blob.content) == "Ada likes tea"
