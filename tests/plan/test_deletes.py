"""Deletes: what is seen is what goes, and what somebody went on writing does not."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import memframe as mf
from memframe.errors import PlanError
from memframe.plan.change import FIELDS


def ids_of(plan):
    return [change.id for change in plan.records if change.action == "delete"]


def test_a_delete_holds_all_that_goes(writers):
    (change,) = mf.plan_deletes(writers.access, writers.memories[:1]).records
    assert (change.action, change.row, change.id, change.after) == ("delete", "a", writers.ids[0], {})
    assert tuple(change.before) == FIELDS
    assert change.before["content"] == "Ada likes tea."
    assert change.before["tags"] == ("food", "home")
    assert (change.sealed, change.reason) == (None, None)


@pytest.mark.parametrize(
    "given",
    [
        lambda m: m[:2],
        lambda m: m[["id"]][:2],
        lambda m: m.id[:2],
        lambda m: list(m.id[:2]),
        lambda m: np.array(m.id[:2]),
        lambda m: (memory_id for memory_id in m.id[:2]),
        lambda m: pd.concat([m[:2], m[:1]]),
        lambda m: [*m.id[:2], m.id.iloc[0]],
        lambda m: m[:2].rename(columns={"title": "Titel"}),
        lambda m: m[:2].explode("tags"),
    ],
)
def test_frames_and_ids_are_taken_in_any_form(writers, given):
    assert ids_of(mf.plan_deletes(writers.access, given(writers.memories))) == writers.ids[:2]


def test_one_id_and_one_row_are_taken(writers):
    assert ids_of(mf.plan_deletes(writers.access, writers.ids[1])) == [writers.ids[1]]
    plan = mf.plan_deletes(writers.access, writers.memories.loc["b"])
    assert [(change.row, change.id) for change in plan.records] == [("b", writers.ids[1])]


@pytest.mark.parametrize(
    "nothing", [[], pd.DataFrame({"id": []}), pd.DataFrame(columns=["id"], dtype="str"), ()]
)
def test_nothing_to_delete_is_an_empty_plan(access, nothing):
    assert not mf.plan_deletes(access, nothing)


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ("nobody", "there is no memory with the id nobody"),
        (["nobody", "none"], "row 0: there is no memory with the id nobody; row 1: "),
        (pd.Series(["Ada likes tea. " * 40]), r"id (Ada likes tea\. ){5}A.{0,4}…$"),
        (pd.Series(["nobody"], index=["r"]), "row r: there is no memory"),
        (pd.DataFrame({"id": ["nobody", None]}, index=["r", "s"]), "row s: it has no id"),
        (pd.DataFrame({"ID": ["t"]}), "'ID' and no 'id'"),
        ([1, 2], "id is text, not int"),
        (pd.DataFrame({"id": ["t"]}).groupby("id"), "id is text, not tuple"),
        (pd.Series([True, False]), r"a mask does not identify .*: pass the rows, memories\[mask\]"),
        (np.array([True, False]), "a mask does not identify"),
        ([{"id": "x"}], r"is a list, not a pandas DataFrame: pd\.DataFrame\(records\)"),
        (pl.DataFrame({"id": ["x"]}), r"is a polars DataFrame, not a pandas DataFrame: \.to_pandas\(\)"),
    ],
)
def test_what_is_no_memory_is_refused(access, given, cause):
    with pytest.raises(PlanError, match=cause):
        mf.plan_deletes(access, given)


def test_rows_of_somebody_else_are_refused(writers):
    with pytest.raises(PlanError, match="row b: it belongs to another user"):
        mf.plan_deletes(
            writers.access, writers.memories.assign(user_id=[writers.access.user_id, "x", *"yz"])[:2]
        )


def test_a_memory_that_is_gone_is_refused(writers):
    writers.gone(0)
    with pytest.raises(PlanError, match="row a: there is no memory"):
        mf.plan_deletes(writers.access, writers.memories)


def test_what_somebody_went_on_writing_is_a_conflict(writers):
    writers.theirs(0, title="Theirs", tags=["theirs"])
    some = writers.memories[:2]
    with pytest.raises(PlanError, match=r"1 row conflicts .*row a: title, tags changed at the service"):
        mf.plan_deletes(writers.access, some)
    conflict, delete = mf.plan_deletes(writers.access, some, on_conflict="mark").records
    assert (conflict.action, conflict.before) == ("conflict", {"title": "Theirs", "tags": ("theirs",)})
    assert delete.action == "delete"
    assert ids_of(mf.plan_deletes(writers.access, some, on_conflict="mine")) == writers.ids[:2]
    assert ids_of(mf.plan_deletes(writers.access, some, on_conflict="theirs")) == writers.ids[1:2]
    assert ids_of(mf.plan_deletes(writers.access, writers.ids[0])) == writers.ids[:1]


def test_the_baseline_is_what_was_seen_and_not_the_frames_own_edits(writers):
    assert ids_of(mf.plan_deletes(writers.access, writers.edited(title="Mine")[:1])) == writers.ids[:1]


def test_rows_that_were_not_loaded_are_what_was_seen(writers):
    assert len(mf.plan_deletes(writers.stranger(), writers.memories)) == 4
    writers.theirs(0, title="Theirs")
    edited = writers.edited(summary="mine")
    with pytest.raises(PlanError, match="row a: title, summary differ from what the service holds"):
        mf.plan_deletes(writers.stranger(), edited)
    writers.load()
    with pytest.raises(PlanError, match="row a: title, summary differ from what the service holds"):
        mf.plan_deletes(writers.access, edited)
    assert len(mf.plan_deletes(writers.access, writers.load())) == 4


def test_what_cannot_be_opened_can_be_deleted(writers):
    later = writers.after_rotation()
    (change,) = mf.plan_deletes(later, writers.ids[0]).records
    assert set(change.before) == set(FIELDS) - {"content"}
    assert len(change.sealed) == 64
    assert "key_version 1" in change.reason
    memories = mf.load_memories(later, progress=False)
    assert len(mf.plan_deletes(later, memories)) == 4


def test_the_frame_is_not_modified(writers):
    before = writers.memories.copy(deep=True)
    mf.plan_deletes(writers.access, writers.memories)
    pd.testing.assert_frame_equal(writers.memories, before)
