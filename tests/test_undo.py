"""Runs are taken back: patches restore, deletes are made anew, creates go; what others changed stays."""

import functools
import json

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memframe as mf
from memframe.change import FIELDS
from memframe.wire import CREATE_MEMORY, DELETE_MEMORY, GET_MEMORY, LIST_MEMORIES, UPDATE_MEMORY
from tests.conftest import User
from tests.faults import FaultProxy, changed

QUIET = {"progress": False, "settle_s": 0.0}


@pytest.fixture
def memories(access):
    rows = {
        "content": ["tea", "coffee", "water"],
        "title": ["a", None, "c"],
        "tags": [("hot", "drink"), (), ("cold",)],
        "importance": [0.5, None, 1.0],
    }
    run = mf.create_memories(access, pd.DataFrame(rows), workers=1, **QUIET)
    run.raise_for_failures()
    return mf.load_memories(access, progress=False)


def held(access):
    """What memories hold, whatever their ids and times."""
    frame = mf.load_memories(access, progress=False)
    records = frame[list(FIELDS)].astype("object").where(frame[list(FIELDS)].notna(), None)
    return sorted(
        [
            tuple(tuple(sorted(cell)) if isinstance(cell, tuple) else cell for cell in row)
            for row in records.values
        ],
        key=repr,
    )


def applied(access, plan):
    run = mf.apply_plan(access, plan, confirm=plan.counts.get("delete", 0), **QUIET)
    run.raise_for_failures()
    return run


def undone(access, run, **options):
    return applied(access, mf.plan_undo(access, run, **options))


def test_patches_restore_the_old_values_and_no_other(access, memories):
    before = held(access)
    edited = memories.assign(title=["A", "B", None], tags=[("x",), ("y",), ()])
    run = mf.push_memories(access, edited, on_null="null", **QUIET)
    plan = mf.plan_undo(access, run.journal)
    assert plan.counts == {"patch": 3}
    assert set().union(*plan.changes.fields) == {"title", "tags"}
    applied(access, plan)
    assert held(access) == before


def test_deletes_are_made_anew_and_name_the_old_id(access, memories):
    before = held(access)
    run = applied(access, mf.plan_deletes(access, memories.iloc[:2]))
    plan = mf.plan_undo(access, run)
    assert plan.counts == {"create": 2}
    for memory_id, reason in zip(memories.id[:2], plan.changes.reason, strict=True):
        assert memory_id in reason
    again = applied(access, plan)
    assert held(access) == before
    assert not set(again.outcomes.id) & set(memories.id)


def test_creates_are_deleted_once_confirmed(access, memories):
    before = held(access)
    run = mf.create_memories(access, pd.DataFrame({"content": ["juice", "milk"]}), **QUIET)
    plan = mf.plan_undo(access, run)
    with pytest.raises(mf.PlanError, match="confirm=2"):
        mf.apply_plan(access, plan, **QUIET)
    applied(access, plan)
    assert held(access) == before


def test_what_others_changed_since_is_a_conflict_and_stays(access, memories):
    run = mf.push_memories(access, memories.assign(title=["A", "B", "C"]), **QUIET)
    mf.push_memories(
        access, mf.load_memories(access, progress=False).iloc[:1].assign(title="theirs"), **QUIET
    )
    plan = mf.plan_undo(access, run)
    assert plan.counts == {"patch": 2, "conflict": 1}
    with pytest.raises(mf.PlanError, match="conflict"):
        mf.apply_plan(access, plan, **QUIET)
    applied(access, plan.without("conflict"))
    assert sorted(mf.load_memories(access, progress=False).title.fillna("-")) == ["-", "c", "theirs"]


def test_another_field_that_others_changed_is_left_alone(access, memories):
    run = mf.push_memories(access, memories.assign(title=["A", "B", "C"]), **QUIET)
    mf.push_memories(access, mf.load_memories(access, progress=False).assign(source="phone"), **QUIET)
    undone(access, run)
    after = mf.load_memories(access, progress=False)
    assert set(after.source) == {"phone"}
    assert sorted(after.title.fillna("-")) == ["-", "a", "c"]


def in_small_letters(request, forward):
    """A service that keeps titles and tags in its own way."""
    body = json.loads(request.body)
    body |= {"title": body["title"].lower().strip(), "tags": [tag.lower() for tag in body["tags"]]}
    return forward(request._replace(body=json.dumps(body).encode()))


def test_what_the_service_made_of_it_is_not_taken_for_somebody_elses_change(service, access, memories):
    before = held(access)
    new = pd.DataFrame({"content": ["juice"], "title": ["Juice "], "tags": [("Drink",)]})
    both = pd.concat([memories.assign(title="New ", tags=[("Hot",)] * 3), new], ignore_index=True)
    with FaultProxy(service.base_url) as proxy, mf.connect(proxy.base_url, api_key=service.api_key) as client:
        for endpoint in (CREATE_MEMORY, UPDATE_MEMORY):
            proxy.always(endpoint, in_small_letters)
        run = mf.push_memories(mf.open_access(client, access.request_id), both, **QUIET)
    assert len(run.verification.unlike) == 4
    mf.push_memories(
        access, mf.load_memories(access, progress=False).iloc[:1].assign(title="theirs"), **QUIET
    )
    assert mf.plan_undo(access, run).counts == {"patch": 2, "delete": 1, "conflict": 1}
    mf.push_memories(access, mf.load_memories(access, progress=False).iloc[:1].assign(title="new"), **QUIET)
    undone(access, run)
    assert held(access) == before


def test_a_memory_that_somebody_deleted_since_is_not_recreated_by_undoing_a_patch(access, memories):
    run = mf.push_memories(access, memories.assign(title=["A", "B", "C"]), **QUIET)
    applied(access, mf.plan_deletes(access, memories.id[0]))
    plan = mf.plan_undo(access, run)
    assert plan.counts == {"patch": 2, "conflict": 1}
    assert "deleted" in plan.changes.set_index("action").reason["conflict"]


def test_a_created_memory_that_somebody_wrote_on_is_a_conflict(access, memories):
    run = mf.create_memories(access, pd.DataFrame({"content": ["juice"]}), **QUIET)
    loaded = mf.load_memories(access, progress=False)
    mf.push_memories(access, loaded.assign(content=loaded.content.replace("juice", "orange juice")), **QUIET)
    assert mf.plan_undo(access, run).counts == {"conflict": 1}


def test_undoing_twice_changes_nothing_the_second_time(access, memories):
    edited = mf.push_memories(access, memories.iloc[2:].assign(title="C"), **QUIET)
    made = mf.create_memories(access, pd.DataFrame({"content": ["juice"]}), **QUIET)
    deleted = applied(access, mf.plan_deletes(access, memories.iloc[:2]))
    for run in (deleted, made, edited):
        undone(access, run)
        assert len(mf.plan_undo(access, run)) == 0


def test_an_undo_can_be_undone(access, memories):
    run = applied(access, mf.plan_deletes(access, memories.iloc[:2]))
    after = held(access)
    undone(access, undone(access, run))
    assert held(access) == after
    assert mf.plan_undo(access, run).counts == {"create": 2}, "it is gone again, and can be made again"


def test_of_a_run_with_nothing_to_do_nothing_is_to_be_undone(access, memories):
    assert len(mf.plan_undo(access, mf.push_memories(access, memories, **QUIET))) == 0


def test_rows_can_be_chosen(access, memories):
    run = mf.push_memories(access, memories.assign(title=["A", "B", "C"]), **QUIET)
    plan = mf.plan_undo(access, run, rows=[2])
    assert list(plan.changes.id) == [memories.id[2]]
    with pytest.raises(mf.PlanError, match="row 7"):
        mf.plan_undo(access, run, rows=[7])


def test_content_that_no_key_opens_comes_back_as_it_was_stored(service, access, memories):
    closed = f"mf1.9.{'A' * 60}"

    def close(document):
        for blob in document.get("memoryBlobs", [document]):
            blob["content"] = closed

    with FaultProxy(service.base_url) as proxy, mf.connect(proxy.base_url, api_key=service.api_key) as client:
        for endpoint in (LIST_MEMORIES, GET_MEMORY):
            proxy.always(endpoint, changed(close))
        reader = mf.open_access(client, access.request_id)
        undone(reader, applied(reader, mf.plan_deletes(reader, memories.id[0])))
        sent = json.loads(proxy.requests_to(CREATE_MEMORY)[0].body)
    assert sent["content"] == closed
    assert sent["title"] == memories.title[0]


def test_a_run_of_another_user_is_refused(access, memories, service):
    run = mf.push_memories(access, memories.assign(title=["A", "B", "C"]), **QUIET)
    stranger = User(service, "someone-else@example.org")
    with pytest.raises(mf.PlanError, match="for the user"):
        mf.plan_undo(stranger.access(), run)
    stranger.close()


def test_what_another_users_run_made_anew_is_not_taken_for_ones_own(service, access, memories):
    run = applied(access, mf.plan_deletes(access, memories.id[0]))
    (made,) = undone(access, run).outcomes.id
    namesake = User(service, "namesake@example.org")
    mf.create_memories(
        namesake.access(), pd.DataFrame({"content": ["bread", "cake"]}), **QUIET
    ).raise_for_failures()
    named = dict(
        zip(mf.load_memories(namesake.access(), progress=False).id, (memories.id[0], made), strict=True)
    )
    with (
        FaultProxy(service.base_url) as proxy,
        mf.connect(proxy.base_url, api_key=service.api_key) as client,
    ):
        for endpoint in (LIST_MEMORIES, GET_MEMORY, DELETE_MEMORY):
            proxy.always(endpoint, renamed(named))
        reader = mf.open_access(client, namesake.access().request_id)
        before = held(reader)
        undone(reader, applied(reader, mf.plan_deletes(reader, memories.id[0])))
        assert held(reader) == before
    namesake.close()


def renamed(named):
    """A service with other ids, as two services that count theirs have the same."""

    def fault(request, forward):
        path = functools.reduce(lambda path, pair: path.replace(*pair[::-1]), named.items(), request.path)
        reply = forward(request._replace(path=path))
        body = functools.reduce(lambda body, pair: body.replace(*pair), named.items(), reply.body.decode())
        return reply._replace(body=body.encode())

    return fault


texts = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
ROW = st.fixed_dictionaries(
    {
        "content": st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8),
        "title": texts,
        "tags": st.lists(st.sampled_from(["a", "b", "ü"]), max_size=2, unique=True).map(tuple),
        "importance": st.none() | st.floats(0, 5),
    }
)


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(ROW, min_size=2, max_size=5), edits=st.lists(ROW, min_size=5, max_size=5), data=st.data()
)
def test_applying_and_undoing_is_the_identity_but_for_ids_and_times(user, rows, edits, data):
    access = user.access()
    applied(access, mf.plan_deletes(access, mf.load_memories(access, progress=False)))
    mf.create_memories(access, pd.DataFrame(rows), **QUIET).raise_for_failures()
    loaded, before = mf.load_memories(access, progress=False), held(access)
    n_edited = data.draw(st.integers(0, len(loaded) - 1))
    edited = pd.concat([pd.DataFrame(edits[:n_edited]), pd.DataFrame(edits[n_edited:])], ignore_index=True)
    edited["id"] = [*loaded.id[:n_edited], *[None] * (len(edits) - n_edited)]
    plan = mf.plan_changes(access, edited, on_null="null") + mf.plan_deletes(access, loaded.iloc[n_edited:])
    run = applied(access, plan)
    undone(access, run)
    assert held(access) == before
