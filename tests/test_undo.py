"""Undo: the inverse plan of a run, compared three ways."""

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memframe as mf
from memframe.change import FIELDS
from memframe.wire import CREATE_MEMORY, LIST_MEMORIES
from tests.conftest import User
from tests.faults import FaultProxy, answered, lost, passed

CONTENTS = ["Ada likes tea", "Ada lives in Kyiv", "Ada has two cats"]


@pytest.fixture
def memories(access):
    """Three memories, as they were loaded."""
    frame = pd.DataFrame(
        {"content": CONTENTS, "title": ["Tea", None, "Cats"], "tags": [("food",), (), ("pets", "home")]}
    )
    mf.create_memories(access, frame, progress=False).raise_for_failures()
    return mf.load_memories(access).sort_values("content", ignore_index=True)


def applied(access, plan):
    run = mf.apply_plan(access, plan, confirm=plan.counts.get("delete"), progress=False)
    run.raise_for_failures()
    return run


def edited(memories):
    frame = memories.copy()
    frame.loc[0, "title"] = "Tea!"
    frame.at[1, "tags"] = ("city",)
    frame.loc[2, ["content", "importance"]] = ["Ada has three cats", 0.5]
    return frame


def fields_of(memories):
    """What is left when ids and times are forgotten, in an order of its own."""
    columns = memories[list(FIELDS)].astype(object)
    columns = columns.where(columns.notna(), None)
    return sorted(map(repr, columns.itertuples(index=False, name=None)))


def test_patches_get_their_old_values_back(access, memories):
    run = applied(access, mf.plan_changes(access, edited(memories)))
    plan = mf.plan_undo(access, run)
    assert plan.counts == {"patch": 3}
    assert set(plan.changes.row) == {0, 1, 2}
    assert plan.changes.reason.str.startswith("undoes run ").all()
    applied(access, plan)
    after = mf.load_memories(access)
    assert set(after.id) == set(memories.id)
    assert fields_of(after) == fields_of(memories)


def test_deletes_become_new_memories_and_the_old_id_is_named(access, memories):
    run = applied(access, mf.plan_deletes(access, memories.iloc[1:]))
    plan = mf.plan_undo(access, run.journal)
    assert plan.counts == {"create": 2}
    assert set(plan.changes.reason) == {f"was memory {old}, which was deleted" for old in memories.id[1:]}
    undone = applied(access, plan)
    assert fields_of(mf.load_memories(access)) == fields_of(memories)
    assert not set(undone.outcomes.id) & set(memories.id)


def test_creates_become_deletes_which_are_confirmed(access, memories):
    run = mf.create_memories(access, pd.DataFrame({"content": ["Ada rows"]}), progress=False)
    plan = mf.plan_undo(access, run)
    with pytest.raises(mf.PlanError, match="confirm=1"):
        mf.apply_plan(access, plan)
    applied(access, plan)
    assert fields_of(mf.load_memories(access)) == fields_of(memories)


def test_an_undo_can_be_undone(access, memories):
    frame = edited(memories)
    run = applied(access, mf.plan_changes(access, frame) + mf.plan_deletes(access, []))
    undone = applied(access, mf.plan_undo(access, run))
    applied(access, mf.plan_undo(access, undone))
    assert fields_of(mf.load_memories(access)) == fields_of(frame)


def test_what_is_undone_already_is_left_out(access, memories):
    run = applied(access, mf.plan_changes(access, edited(memories)))
    applied(access, mf.plan_undo(access, run))
    assert len(mf.plan_undo(access, run)) == 0


def test_a_created_memory_that_is_gone_needs_no_delete(access):
    run = mf.create_memories(access, pd.DataFrame({"content": ["Ada rows"]}), progress=False)
    applied(access, mf.plan_deletes(access, run.outcomes.id))
    assert len(mf.plan_undo(access, run)) == 0


def test_rows_are_chosen_by_their_labels(access, memories):
    run = applied(access, mf.plan_changes(access, edited(memories)))
    assert set(mf.plan_undo(access, run, rows=[0, 2]).changes.row) == {0, 2}
    assert len(mf.plan_undo(access, run, rows=[])) == 0
    with pytest.raises(mf.PlanError, match="no row 7"):
        mf.plan_undo(access, run, rows=[1, 7])


def test_what_somebody_else_changed_since_is_a_conflict_and_not_overwritten(access, user, memories):
    run = applied(access, mf.plan_changes(access, edited(memories)))
    changed, deleted = memories.id[0], memories.id[1]
    keys = access.credentials
    user.client.update_memory_blob(user.user_id, changed, memory_key=keys.memory_key, title="Coffee")
    user.client.delete_memory_blob(user.user_id, deleted)
    plan = mf.plan_undo(access, run)
    assert plan.counts == {"conflict": 2, "patch": 1}
    reasons = plan.changes.set_index("id").reason
    assert reasons[changed] == "title changed at the service since the run"
    assert reasons[deleted] == "it was deleted at the service since the run"
    with pytest.raises(mf.PlanError, match="2 conflicts"):
        mf.apply_plan(access, plan)
    applied(access, plan.without("conflict"))
    titles = mf.load_memories(access).set_index("id").title
    assert titles[changed] == "Coffee"


def test_another_field_of_the_same_memory_that_somebody_changed_is_none_of_its_business(
    access, user, memories
):
    run = applied(access, mf.plan_changes(access, edited(memories)))
    key = access.credentials.memory_key
    user.client.update_memory_blob(user.user_id, memories.id[0], memory_key=key, summary="By somebody else")
    applied(access, mf.plan_undo(access, run))
    row = mf.load_memory(access, memories.id[0]).iloc[0]
    assert (row.title, row.summary) == ("Cats", "By somebody else")


def test_a_created_memory_that_was_changed_since_is_a_conflict(access, user):
    run = mf.create_memories(access, pd.DataFrame({"content": ["Ada rows"]}), progress=False)
    key = access.credentials.memory_key
    user.client.update_memory_blob(user.user_id, run.outcomes.id[0], memory_key=key, content="Ada sails")
    assert mf.plan_undo(access, run).counts == {"conflict": 1}


def test_the_journal_of_another_user_is_refused(access, memories, service):
    run = applied(access, mf.plan_changes(access, edited(memories)))
    other = User(service, "somebody-else@example.org")
    try:
        with pytest.raises(mf.PlanError, match="for the user"):
            mf.plan_undo(other.access(), run)
    finally:
        other.close()


def test_a_run_with_unknown_rows_is_resumed_before_it_is_undone(access, user):
    with FaultProxy(access.client.base_url) as proxy:
        proxy.always(CREATE_MEMORY, lost)
        proxy.script(LIST_MEMORIES, passed)
        proxy.always(LIST_MEMORIES, answered(404))
        broken = mf.open_access(mf.connect(proxy.base_url, api_key=user.service.api_key), access.request_id)
        run = mf.create_memories(broken, pd.DataFrame({"content": ["Ada rows"]}), progress=False, settle_s=0)
    assert run.counts["unknown"] == 1
    with pytest.raises(mf.PlanError, match=r"row 0 nobody knows.*resume_run"):
        mf.plan_undo(access, run)
    run = mf.resume_run(access, run, settle_s=0)
    assert run.counts["recovered"] == 1
    applied(access, mf.plan_undo(access, run))
    assert mf.load_memories(access).empty


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
rows = st.fixed_dictionaries(
    {
        "content": texts,
        "title": st.none() | texts,
        "tags": st.lists(st.sampled_from(["tea", "home", "work"]), unique=True).map(tuple),
        "importance": st.none() | st.floats(0, 1),
    }
)
edits = st.tuples(st.sampled_from(["patch", "delete", "leave"]), rows)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    before=st.lists(rows, min_size=1, max_size=4),
    changes=st.lists(edits, min_size=4, max_size=4),
    new=st.lists(rows, max_size=2),
)
def test_apply_then_undo_is_the_identity_on_everything_but_ids_and_times(access, before, changes, new):
    """And applying what was planned for an edited frame gives that frame."""
    clear(access)
    mf.create_memories(access, frame_of(before), progress=False).raise_for_failures()
    memories = mf.load_memories(access)
    plan, wanted = planned(access, memories, changes[: len(before)], new)
    run = applied(access, plan)
    assert fields_of(mf.load_memories(access)) == fields_of(wanted)
    if run.journal:
        applied(access, mf.plan_undo(access, run))
    assert fields_of(mf.load_memories(access)) == fields_of(memories)


def clear(access):
    there = mf.load_memories(access)
    if len(there):
        mf.apply_plan(access, mf.plan_deletes(access, there), confirm=len(there), progress=False)


def frame_of(rows):
    return pd.DataFrame(rows, columns=["content", "title", "tags", "importance"]).astype(
        {"importance": "float64"}
    )


def planned(access, memories, changes, new):
    """A plan of edits, deletes and creates, and the frame that it must end in."""
    wanted = memories.copy()
    kept = [action != "delete" for action, _ in changes]
    for row, (action, values) in enumerate(changes):
        if action == "patch":
            for name, value in values.items():
                wanted.at[row, name] = value
    deletes = mf.plan_deletes(access, memories[[not keep for keep in kept]])
    wanted = pd.concat([wanted[kept], frame_of(new)], ignore_index=True) if new else wanted[kept]
    return mf.plan_changes(access, wanted, on_null="null") + deletes, wanted
