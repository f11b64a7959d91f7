"""What cells mean: emptied, cleared on purpose, new, or nothing that could be sent."""

import copy
import math
import pickle
from contextlib import closing
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import memframe as mf
from memframe.errors import PlanError
from memframe.plan.change import FIELDS
from memframe.wire import GET_MEMORY, LIST_MEMORIES
from tests.faults import FaultProxy
from tests.plan.conftest import Writers, sent, with_cells
from tests.strangers import MEMORY

NOTHING = [None, pd.NA, pd.NaT, np.float32("nan"), Decimal("NaN")]


@pytest.fixture(scope="module")
def watched(shared_user):
    """Memories that no test of this file changes, and a proxy that records what is asked about them."""
    with closing(Writers(shared_user)) as writers, FaultProxy(shared_user.service.base_url) as proxy:
        writers.access.client.base_url = proxy.base_url
        yield writers, proxy


@pytest.fixture
def writers(watched):
    return watched[0]


# Emptied cells


@pytest.mark.parametrize("nothing", NOTHING, ids=repr)
@pytest.mark.parametrize("name", ["title", "tags", "importance", "source"])
def test_an_emptied_cell_is_what_on_null_says(writers, name, nothing):
    edited = writers.edited(**{name: nothing}, summary="mine")
    with pytest.raises(PlanError, match=rf"row a: {name} was emptied.*on_null.*memframe.NULL"):
        writers.plan(edited)
    assert sent(writers.plan(edited, on_null="skip")) == {"a": {"summary": "mine"}}
    cleared = () if name == "tags" else None
    assert sent(writers.plan(edited, on_null="null")) == {"a": {name: cleared, "summary": "mine"}}


@pytest.mark.parametrize("on_null", ["raise", "null", "skip"])
def test_what_was_missing_before_is_not_emptied(writers, on_null):
    assert len(writers.plan(writers.memories, on_null=on_null)) == 0
    assert sent(writers.plan(with_cells(writers.memories, "b", title="Boat"), on_null=on_null)) == {
        "b": {"title": "Boat"}
    }


@pytest.mark.parametrize("was_loaded", [True, False])
def test_empty_text_that_a_file_made_missing_was_not_emptied(writers, was_loaded):
    """A CSV that pandas wrote has nothing for both."""
    access = writers.access if was_loaded else writers.stranger()
    edited = with_cells(writers.memories, "c", title=None)
    assert sent(mf.plan_changes(access, edited)) == {}
    assert sent(mf.plan_changes(access, edited, on_null="null")) == {"c": {"title": None}}
    assert sent(mf.plan_changes(access, with_cells(edited, "c", title=mf.NULL))) == {"c": {"title": None}}


def test_an_empty_list_of_tags_is_cleared_on_purpose(writers):
    assert sent(writers.plan(writers.edited(tags=[]))) == {"a": {"tags": ()}}


@pytest.mark.parametrize("on_null", ["raise", "null", "skip"])
def test_null_always_clears(writers, on_null):
    edited = writers.edited(title=mf.NULL, tags=mf.NULL, importance=mf.NULL, summary=mf.NULL)
    plan = writers.plan(edited, on_null=on_null)
    assert sent(plan) == {"a": {"title": None, "tags": (), "importance": None}}


def test_null_fits_into_a_column_of_text(writers):
    edited = writers.memories.copy()
    edited.loc["a", "title"] = mf.NULL
    assert edited.title.dtype == "str"
    assert sent(writers.plan(edited)) == {"a": {"title": None}}
    assert sent(mf.plan_changes(writers.stranger(), edited)) == {"a": {"title": None}}


def test_null_is_the_only_one(writers):
    assert repr(mf.NULL) == "memframe.NULL"
    for again in (
        copy.copy(mf.NULL),
        copy.deepcopy(mf.NULL),
        pickle.loads(pickle.dumps(mf.NULL)),  # noqa: S301 - our own
        type(mf.NULL)(),
    ):
        assert again is mf.NULL
    assert not pd.isna(mf.NULL)


@pytest.mark.parametrize("nothing", [None, mf.NULL])
@pytest.mark.parametrize("on_null", ["raise", "null"])
def test_content_is_never_cleared(writers, nothing, on_null):
    with pytest.raises(PlanError, match=r"row a: content (cannot be cleared|was emptied)"):
        writers.plan(writers.edited(content=nothing), on_null=on_null)


def test_content_may_be_empty_text(writers):
    assert sent(writers.plan(writers.edited(content=""))) == {"a": {"content": ""}}


# New memories


def test_rows_without_an_id_are_new_memories(writers):
    new = pd.DataFrame([{"content": "New", "title": "t", "tags": ["x", "x"], "importance": 1}], index=["new"])
    plan = writers.plan(pd.concat([writers.memories, new]))
    (change,) = plan.records
    assert (change.action, change.id, change.row, change.before) == ("create", None, "new", {})
    assert change.after == {"title": "t", "content": "New", "tags": ("x",), "importance": 1.0}


def test_a_table_of_texts_is_new_memories(writers):
    table = pd.DataFrame({"content": ["one", "two"], "summary": [None, mf.NULL], "created_at": "2020-01-01"})
    plan = mf.plan_changes(writers.access, table)
    assert sent(plan) == {0: {"content": "one"}, 1: {"content": "two"}}
    assert plan.counts == {"create": 2}


@pytest.mark.parametrize("nothing", [None, mf.NULL, pd.NA])
def test_a_new_memory_needs_content(writers, nothing):
    with pytest.raises(PlanError, match="row 1: a new memory needs"):
        mf.plan_changes(writers.access, pd.DataFrame({"content": ["one", nothing], "title": "t"}))
    with pytest.raises(PlanError, match="rows 0, 1: a new memory needs content"):
        mf.plan_changes(writers.access, pd.DataFrame({"title": ["t", "u"]}))


# What cannot be sent


INVALID = {
    "a number in text": ({"title": 5}, "title is int, not text"),
    "text in a number": ({"importance": "high"}, "importance is text, not a number"),
    "a number as text": ({"importance": "0.5"}, "importance is text, not a number"),
    "NumPy's flag in a number": ({"confidence": np.True_}, "confidence is bool"),
    "infinity": ({"importance": math.inf}, "importance=inf is not a JSON number"),
    "too much": ({"importance": 5.5}, "importance is 5.5, outside 0 to 5"),
    "too sure": ({"confidence": 1.01}, "confidence is 1.01, outside 0 to 1"),
    "less than nothing": ({"importance": -0.1}, "importance is -0.1, outside 0 to 5"),
    "tags as one text": ({"tags": "food"}, "tags is text, not a list of names"),
    "a number among tags": ({"tags": ["a", 3]}, "a tag is int, not text"),
    "a blank tag": ({"tags": ["a", " "]}, "a tag is blank"),
    "a comma in a tag": ({"tags": ["a,b"]}, "a tag contains a comma"),
    "too many tags": ({"tags": [f"t{number}" for number in range(101)]}, "101 tags, of which .* 100"),
    "a tag without end": ({"tags": ["x" * 201]}, "more than 200 characters"),
    "NUL": ({"content": "a\0b"}, "content contains the character NUL"),
    "NUL in a tag": ({"tags": ["a\0b"]}, "tags contains the character NUL"),
    "half a character": ({"title": "\ud83d"}, "title contains half of a surrogate pair"),
    "half a character in a tag": ({"tags": ["\ud83d"]}, "tags contains half of a surrogate pair"),
    "another user": ({"user_id": "somebody else"}, "it belongs to another user"),
    "another time of creation": (
        {"created_at": pd.Timestamp("2020-01-01", tz="UTC")},
        "created_at is read-only",
    ),
    "no time of creation": ({"created_at": pd.NaT}, "created_at is read-only"),
    "other ids of tags": ({"tag_ids": ("x",)}, "tag_ids is read-only"),
    "another error": ({"content_error": "none"}, "content_error is read-only"),
    "no id": ({"id": " "}, "id=' ' is not the id of anything"),
    "a number as id": ({"id": 17}, "id is text, not int"),
    "NULL as id": ({"id": mf.NULL}, "id contains the character NUL"),
}


@pytest.mark.parametrize("case", INVALID)
def test_what_cannot_be_sent_is_said_before_anything_is_asked(watched, case):
    """Nor can it be new, or be sent for rows that were not loaded."""
    cells, cause = INVALID[case]
    writers, proxy = watched
    edited = writers.edited(**cells)
    n_asked = len(proxy.requests)
    for options in ({}, {"on_null": "null", "on_conflict": "mine"}):
        with pytest.raises(PlanError, match=rf"cannot be planned: row a: .*{cause}"):
            writers.plan(edited, **options)
    assert len(proxy.requests) == n_asked
    if cells.keys() <= {*FIELDS, "user_id"}:
        new = pd.DataFrame([{"content": "new"} | cells], index=["a"], dtype=object)
        with pytest.raises(PlanError, match=rf"row a: .*{cause}"):
            mf.plan_changes(writers.access, new)
    if cells.keys() <= {*FIELDS, "user_id", "id"}:
        with pytest.raises(PlanError, match=rf"row a: .*{cause}"):
            mf.plan_changes(writers.stranger(), edited)


@pytest.mark.parametrize("tag_ids", [("another",), ()])
def test_ids_of_tags_of_rows_that_were_not_loaded_are_named(writers, tag_ids):
    plan = mf.plan_changes(writers.stranger(), writers.edited(tag_ids=tag_ids, title="Green tea"))
    assert sent(plan) == {"a": {"title": "Green tea"}}
    assert plan.notes == ("Not written, as the service derives it from the tags: tag_ids of 1 memory",)
    assert mf.plan_changes(writers.stranger(), writers.edited(title="Green tea")).notes == ()
    tagged = writers.edited(tags=["new"])[["id", "tags", "tag_ids"]]
    assert mf.plan_changes(writers.stranger(), tagged).notes == ()


@pytest.mark.parametrize("moment", ["2020-01-01T00:00:00Z", "2050-01-01T00:00:00Z"])
@pytest.mark.parametrize("name", ["created_at", "updated_at"])
@pytest.mark.parametrize("was_loaded", [True, False])
def test_times_are_read_only(writers, moment, name, was_loaded):
    edited = writers.edited(**{name: pd.Timestamp(moment)})
    access = writers.access if was_loaded else writers.stranger()
    with pytest.raises(PlanError, match=f"row a: {name} is read-only"):
        mf.plan_changes(access, edited)


@pytest.mark.parametrize("dtype", ["int64", "period[D]"])
def test_times_of_another_dtype_are_compared_as_their_texts(writers, dtype):
    moments = writers.memories["created_at"].dt.tz_localize(None)
    edited = writers.memories.assign(created_at=moments.astype(dtype))
    with pytest.raises(PlanError, match="created_at is read-only"):
        mf.plan_changes(writers.access, edited)


@pytest.mark.parametrize("moment", ["2020-01-01T00:00:00Z", "2050-01-01T00:00:00Z"])
@pytest.mark.parametrize("was_loaded", [True, False])
def test_a_row_of_any_other_time_than_the_service_has_conflicts_where_it_differs(writers, moment, was_loaded):
    edited = writers.edited(title="Green tea", updated_at=pd.Timestamp(moment))
    access = writers.access if was_loaded else writers.stranger()
    plan = mf.plan_changes(access, edited, on_conflict="mark")
    assert plan.changes[["row", "action"]].to_numpy().tolist() == [["a", "conflict"]]
    assert "it is not known which side changed it" in plan.changes.reason[0]


@pytest.mark.parametrize("was_loaded", [True, False])
def test_times_may_be_cut_to_milliseconds_as_json_has_them(writers, was_loaded):
    edited = writers.edited(title="green")
    assert edited.created_at.dt.microsecond.mod(1000).any(), "else there is nothing to cut"
    for name in ("created_at", "updated_at"):
        edited[name] = edited[name].dt.floor("ms")
    plan = mf.plan_changes(writers.access if was_loaded else writers.stranger(), edited)
    assert plan.changes[["row", "fields"]].to_numpy().tolist() == [["a", ("title",)]]


def test_all_faults_are_named_at_once_and_with_all_rows(writers):
    edited = writers.memories.assign(importance=9.0)
    edited.loc["b", "title"] = "a\0b"
    with pytest.raises(PlanError, match=r"rows a, b, c, d: importance is 9.* row b: title contains"):
        writers.plan(edited)
    many = pd.DataFrame({"title": ["t"] * 1200})
    with pytest.raises(PlanError, match="rows 0, 1, 2, 3, 4 and 1,195 more: a new memory needs content"):
        writers.plan(many)


def test_no_message_holds_what_stands_in_a_memory(writers):
    with pytest.raises(PlanError) as refused:
        writers.plan(writers.edited(content="canary\0", title="canary\ud83d", source=["canary"]))
    assert "canary" not in str(refused.value)


def test_values_outside_the_bounds_that_nobody_touched_are_left_alone(stranger):
    """A service of somebody else may hold more than ours would take."""
    odd = {"importance": 10, "confidence": 80, "tags": ["a,b", " x "], "title": "t"}
    stranger.answer(LIST_MEMORIES, memoryBlobs=[MEMORY | odd])
    stranger.answer(GET_MEMORY, **odd)
    theirs = mf.open_access(stranger.client(), "r1")
    memories = mf.load_memories(theirs, progress=False)
    assert len(mf.plan_changes(theirs, memories)) == 0
    assert sent(mf.plan_changes(theirs, memories.assign(title="u"))) == {0: {"title": "u"}}
    fresh = mf.open_access(stranger.client(), "r1")
    assert sent(mf.plan_changes(fresh, memories.assign(title="u"))) == {0: {"title": "u"}}
    with pytest.raises(PlanError, match="importance is 11, outside"):
        mf.plan_changes(theirs, memories.assign(importance=11))


# Frames that do not say what they are


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda m: m.set_index("id"), "id is the index"),
        (lambda m: m.rename(columns={"title": "Titel"}), "'Titel' and no 'title'"),
        (lambda m: m.rename(columns={"id": "ID"}), "'ID' and no 'id'"),
        (lambda m: m.merge(m[["id", "title"]], on="id"), "'title_x' and no 'title'"),
        (lambda m: m.assign(titel="x"), "'titel', which is not written; 'title' may be meant"),
        (lambda m: m.assign(Content="x"), "'Content', which is not written; 'content'"),
        (lambda m: pd.concat([m, m[["title"]]], axis=1), "several columns named title"),
        (lambda m: pd.concat([m, m.loc[["b"]]]), "rows b, b: the id .* occurs 2 times"),
        (lambda m: pd.DataFrame({"text": ["tea"]}), "none of the columns of memories; it has text: rename"),
        (lambda m: m.title, "a pandas Series, not a pandas DataFrame: select rows with"),
        (lambda m: m.to_dict(), r"a dict, not a pandas DataFrame: pd\.DataFrame"),
    ],
)
def test_a_frame_that_does_not_say_what_it_is_is_refused(writers, change, cause):
    with pytest.raises(PlanError, match=cause):
        writers.plan(change(writers.memories))


def test_other_columns_say_nothing(writers):
    frame = writers.memories.assign(title_old="x", n_tags=3, title2="z", ids="i")
    frame[17] = "a column with a number for a name"
    plan = writers.plan(frame)
    assert len(plan) == 0
    assert plan.notes == ("Not written, as a memory has no such columns: title_old, n_tags, title2, ids, 17",)
    assert writers.plan(writers.memories).notes == ()


def test_own_columns_that_a_new_memory_cannot_set_are_named(writers):
    copies = writers.memories.assign(id=None)
    assert writers.plan(copies).notes == (
        (
            "Not written, as the service sets them: created_at, tag_ids, updated_at of 4 new memories; "
            "times are those of the run"
        ),
    )
    tagged = with_cells(copies, "a", tag_ids=("t1",)).drop(columns=["created_at", "updated_at"])
    assert writers.plan(tagged[:1]).notes == ("Not written, as the service sets it: tag_ids of 1 new memory",)
    empty = copies.drop(columns="tag_ids").assign(created_at=pd.NaT, updated_at=None)
    assert writers.plan(empty).notes == ()
    assert writers.plan(pd.concat([writers.memories, empty])).notes == ()


@pytest.mark.parametrize("columns", [["id", "title"], ["id", "title", "updated_at"]])
def test_an_unknown_id_is_said(writers, columns):
    with pytest.raises(PlanError, match="row a: there is no memory with the id 0000"):
        writers.plan(writers.edited(id="0000")[columns])


def test_an_unknown_id_of_a_row_without_times_is_said_even_if_the_service_is_to_win(writers):
    frame = writers.edited(id="0000", created_at=pd.NaT, updated_at=pd.NaT)
    with pytest.raises(PlanError, match=r"row a: there is no memory with the id 0000$"):
        writers.plan(frame, on_conflict="theirs")


@pytest.mark.parametrize(
    "options", [{"on_null": "drop"}, {"on_conflict": None}, {"on_conflict": "ours"}, {"on_null": ["null"]}]
)
def test_unknown_options_are_refused(writers, options):
    with pytest.raises(PlanError, match="give one of 'raise'"):
        writers.plan(writers.memories, **options)


def test_max_changes_guards_against_surprises(writers):
    edited = writers.memories.assign(source="all of them")
    with pytest.raises(PlanError, match="would change 4 rows, and 3 are allowed"):
        writers.plan(edited, max_changes=3)
    assert len(writers.plan(edited, max_changes=4)) == 4


# Rows that could not be opened


def test_rows_that_could_not_be_opened_are_read_only(writers):
    later = writers.after_rotation()
    memories = mf.load_memories(later, progress=False)
    assert memories.content_error.notna().all()
    assert len(mf.plan_changes(later, memories)) == 0
    for cells in ({"title": "t"}, {"content": "mended"}):
        edited = with_cells(memories, 2, **cells)
        for access in (later, writers.after_rotation()):
            with pytest.raises(PlanError, match=r"row 2: its? .*could not be decrypted"):
                mf.plan_changes(access, edited)


def test_rows_that_cannot_be_opened_any_more_are_read_only(writers):
    later = writers.after_rotation()
    later.keep_baseline(writers.memories)
    with pytest.raises(
        PlanError, match=r"row a: .* decrypted \(sealed with key_version 1.*open the access again"
    ):
        mf.plan_changes(later, writers.edited(title="t"))
