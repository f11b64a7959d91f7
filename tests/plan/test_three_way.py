"""Baseline, edited frame, service now: every line of the table of three-way decisions, a field at a time."""

import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memframe as mf
from memframe.errors import PlanError
from memframe.plan.change import FIELDS, same_value
from memframe.plan.changes import three_way
from tests.plan.conftest import sent, with_cells

VALUES = st.one_of(st.none(), st.sampled_from(["a", "b", ""]), st.sampled_from([0.0, 1.0, 3.0]))
TAGS = st.lists(st.sampled_from("abc"), max_size=3).map(tuple)
STATES = st.fixed_dictionaries({name: TAGS if name == "tags" else VALUES for name in FIELDS})


# In pure form


@given(base=STATES, mine=STATES, theirs=STATES)
def test_nothing_that_somebody_else_wrote_is_overwritten(base, mine, theirs):
    sent, conflicts = three_way(mine, base, theirs)
    for name in FIELDS:
        mine_same, theirs_same = (same_value(name, base[name], side[name]) for side in (mine, theirs))
        assert (name in sent) == (not mine_same and theirs_same)
        both_same = same_value(name, mine[name], theirs[name])
        assert (name in conflicts) == (not mine_same and not theirs_same and not both_same)


@given(mine=STATES, theirs=STATES)
def test_without_a_known_base_whatever_differs_is_a_conflict(mine, theirs):
    sent, conflicts = three_way(mine, None, theirs)
    assert not sent
    assert set(conflicts) == {name for name in FIELDS if not same_value(name, mine[name], theirs[name])}


# Against the real service


def test_mine_same_theirs_changed_is_not_sent(writers):
    writers.theirs(0, title="Their tea")
    assert len(writers.plan(writers.memories)) == 0
    assert sent(writers.plan(writers.edited(summary="mine"))) == {"a": {"summary": "mine"}}


def test_mine_changed_theirs_same_is_a_patch_with_what_was_before(writers):
    (change,) = writers.plan(writers.edited(title="My tea")).records
    assert (change.action, change.id, change.row) == ("patch", writers.ids[0], "a")
    assert (change.before, change.after) == ({"title": "Tea"}, {"title": "My tea"})


@pytest.mark.parametrize(
    ("name", "cell"),
    [("tags", ("x", "y")), ("content", "Ada loves tea.")],
)
def test_both_changed_to_the_same_is_dropped(writers, name, cell):
    writers.theirs(0, **{name: cell})
    mine = tuple(reversed(cell)) if name == "tags" else cell
    assert len(writers.plan(writers.edited(**{name: mine}))) == 0


@pytest.mark.parametrize(
    ("name", "theirs", "mine"),
    [
        ("content", "Ada loathes tea.", "Ada loves tea."),
        ("tags", ("x",), ("y",)),
        ("source", None, "mail"),
    ],
)
def test_both_changed_differently_is_a_conflict(writers, name, theirs, mine):
    writers.theirs(0, **{name: theirs})
    edited = writers.edited(**{name: mine})
    with pytest.raises(PlanError, match=rf"1 row conflicts .*row a: {name} changed at the service"):
        writers.plan(edited)
    marked = writers.plan(edited, on_conflict="mark")
    (conflict,) = marked.records
    assert (conflict.action, conflict.before, conflict.after) == ("conflict", {name: theirs}, {name: mine})
    assert marked.writes == ()
    assert sent(writers.plan(edited, on_conflict="mine")) == {"a": {name: mine}}
    assert writers.plan(edited, on_conflict="mine").records[0].before == {name: theirs}
    assert len(writers.plan(edited, on_conflict="theirs")) == 0


def test_a_new_seal_of_the_same_content_is_no_change(writers):
    writers.theirs(0, content="Ada likes tea.")
    assert sent(writers.plan(writers.edited(content="Ada likes cocoa."))) == {
        "a": {"content": "Ada likes cocoa."}
    }


def test_an_edited_row_whose_memory_is_gone_is_a_conflict(writers):
    writers.gone(0)
    assert len(writers.plan(writers.memories)) == 0
    edited = writers.edited(title="Mine")
    with pytest.raises(PlanError, match="row a: it was deleted at the service"):
        writers.plan(edited)
    (conflict,) = writers.plan(edited, on_conflict="mark").records
    assert (conflict.action, conflict.id, conflict.after) == ("conflict", writers.ids[0], {"title": "Mine"})
    assert len(writers.plan(edited, on_conflict="theirs")) == 0
    with pytest.raises(PlanError, match="empty its id"):
        writers.plan(edited, on_conflict="mine")


@pytest.mark.parametrize("column", ["created_at", "updated_at"])
def test_a_row_that_was_not_loaded_and_whose_memory_is_gone_is_a_conflict(writers, column):
    writers.gone(0)
    frame = writers.memories.drop(columns=column)
    with pytest.raises(PlanError, match=r"row a: there is no memory .* or it was deleted"):
        mf.plan_changes(writers.stranger(), frame)
    assert mf.plan_changes(writers.stranger(), frame, on_conflict="mark").counts == {"conflict": 1}
    assert len(mf.plan_changes(writers.stranger(), frame, on_conflict="theirs")) == 0


def test_rows_that_are_not_in_the_frame_are_left_alone(writers):
    edited = writers.edited(title="Mine").loc[["a"]]
    assert sent(writers.plan(edited)) == {"a": {"title": "Mine"}}


def test_the_index_names_rows_and_identifies_none(writers):
    edited = writers.edited(title="Mine").set_axis(list("dabc"))
    (change,) = writers.plan(edited).records
    assert (change.row, change.id) == ("d", writers.ids[0])


# Several loads


def test_of_two_loads_the_newer_counts(writers):
    writers.theirs(0, title="Theirs")
    newer = writers.load()
    assert sent(writers.plan(with_cells(newer, "a", title="Mine"))) == {"a": {"title": "Mine"}}
    assert writers.plan(with_cells(newer, "a", title="Mine")).records[0].before == {"title": "Theirs"}


def test_what_nobody_touched_in_a_frame_of_an_earlier_load_is_not_sent(writers):
    writers.theirs(0, title="Theirs", tags=["theirs"])
    writers.load()
    assert len(writers.plan(writers.memories)) == 0
    edited = writers.edited(summary="mine")
    assert sent(writers.plan(edited)) == {"a": {"summary": "mine"}}
    assert sent(writers.plan(pd.concat([edited[:1], writers.load()[1:]]))) == {"a": {"summary": "mine"}}


def test_an_earlier_state_is_kept_through_many_loads(writers):
    writers.theirs(0, title="Theirs")
    for _ in range(10):
        mf.load_memory(writers.access, writers.ids[0])
        mf.load_memory(writers.access, writers.ids[1])
        writers.load()
    assert len(writers.access.states()) == 5
    assert sent(writers.plan(writers.edited(summary="mine"))) == {"a": {"summary": "mine"}}


def test_a_row_of_a_state_that_was_never_loaded_is_no_edit_of_the_newest(writers):
    old = writers.memories
    writers.theirs(0, title="Theirs")
    stranger = writers.stranger()
    mf.load_memories(stranger, progress=False)
    with pytest.raises(PlanError, match="row a: title differs from what the service holds"):
        mf.plan_changes(stranger, old)
    assert len(mf.plan_changes(stranger, old, on_conflict="theirs")) == 0


def test_an_edit_that_was_written_already_is_no_change(writers):
    edited = writers.edited(title="Mine", summary="mine")
    writers.theirs(0, title="Mine", summary="mine")
    assert len(writers.plan(edited)) == 0
    writers.load()
    assert len(writers.plan(edited)) == 0
    assert sent(writers.plan(with_cells(edited, "a", title="Mine again"))) == {"a": {"title": "Mine again"}}


# Without a baseline


def test_a_row_that_was_not_loaded_is_a_change_if_it_is_of_now(writers):
    stranger = writers.stranger()
    assert len(mf.plan_changes(stranger, writers.memories)) == 0
    edited = writers.edited(title="Mine", tags=["mine"])
    assert sent(mf.plan_changes(stranger, edited)) == {"a": {"title": "Mine", "tags": ("mine",)}}
    chunk = next(mf.iter_memories(stranger, progress=False))
    assert sent(mf.plan_changes(stranger, chunk.replace({"title": {"Tea": "Mine"}}))) == {
        0: {"title": "Mine"}
    }


def test_a_row_that_was_not_loaded_and_is_older_conflicts_where_it_differs(writers):
    writers.theirs(0, summary="theirs")
    edited = writers.edited(title="Mine")
    written = writers.load().updated_at["a"]
    words = (
        "row a: title, summary differ from what the service holds: the memory was written there at "
        f"{written:%F %T.%f} UTC, after the state of this row ({writers.memories.updated_at['a']:%F %T.%f} UTC); "
    )
    with pytest.raises(PlanError, match=re.escape(words)) as refused:
        mf.plan_changes(writers.stranger(), edited)
    assert "changed at the service" not in str(refused.value), "who changed title is not known: nobody did"
    (conflict,) = mf.plan_changes(writers.stranger(), edited, on_conflict="mark").records
    assert conflict.before == {"title": "Tea", "summary": "theirs"}
    assert conflict.after == {"title": "Mine", "summary": None}


def test_rows_of_several_kinds_keep_their_own_times(writers):
    writers.theirs(0, summary="theirs")
    memories = writers.load().iloc[:2]
    writers.theirs(1, title="Theirs")
    stranger = writers.stranger()
    mf.load_memory(stranger, writers.ids[1])  # row a was not loaded, row b is of a state before that one
    edited = with_cells(memories, "a", title="Mine")
    assert sent(mf.plan_changes(stranger, edited, on_conflict="theirs")) == {"a": {"title": "Mine"}}


def test_a_table_of_ids_and_texts_is_a_change_against_this_moment(writers):
    table = pd.DataFrame(
        {
            "id": writers.ids,
            "title": ["Tea", "Boat", None, "Lines"],
            "content": ["x", *writers.memories.content[1:]],
        }
    )
    plan = mf.plan_changes(writers.stranger(), table)
    assert sent(plan) == {0: {"content": "x"}, 1: {"title": "Boat"}}
    assert plan.records[0].before == {"content": "Ada likes tea."}
    cleared = mf.plan_changes(writers.stranger(), table, on_null="null")
    assert sent(cleared)[2] == {"title": None}


def test_the_same_table_is_judged_by_the_baseline_where_there_is_one(writers):
    writers.theirs(0, title="Theirs")
    table = pd.DataFrame({"id": writers.ids[:2], "title": ["Tea", "Boat"]})
    assert sent(writers.plan(table)) == {1: {"title": "Boat"}}
