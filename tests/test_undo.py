"""Runs are taken back: patches restore, deletes are restored or made anew, creates go; what others changed stays."""

import functools
import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memframe as mf
from memframe.runtime import Runtime
from memframe.wire import (
    CREATE_MEMORY,
    DELETE_MEMORY,
    GET_CREDENTIALS,
    GET_MEMORY,
    LIST_MEMORIES,
    RESTORE_DAYS,
    RESTORES,
    UPDATE_MEMORY,
)
from tests.conftest import FEW_EXAMPLES, User, without_offer
from tests.faults import FaultProxy, answered, changed, lost
from tests.rows import held as held_in

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
    """What the memories of a user hold, whatever their ids and times."""
    return held_in(mf.load_memories(access, progress=False))


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


def whole(access):
    """What memories hold, with their ids and times."""
    return mf.load_memories(access, progress=False).sort_values("id", ignore_index=True)


def test_deletes_are_restored_under_their_ids_and_times(user, access, memories):
    mf.push_memories(access, memories.assign(title=["A", "B", "C"]), **QUIET).raise_for_failures()
    before, loaded = whole(access), mf.load_memories(access, progress=False)
    plan = mf.plan_deletes(access, memories.id[:2])
    assert "An undo within 30 days brings deleted memories back with their ids and dates" in str(plan)
    run = applied(access, plan)
    back = mf.plan_undo(access, run)
    assert back.counts == {"restore": 2}
    for memory_id, created_at, reason in zip(
        memories.id, memories.created_at, back.changes.reason, strict=False
    ):
        assert f"restores memory {memory_id}, created {created_at:%Y-%m-%d %H:%M} UTC" in reason
    again = applied(access, back)
    assert "2 restored with their ids and dates" in repr(again)
    assert list(again.outcomes.id) == list(again.outcomes.restores) == list(memories.id[:2])
    pd.testing.assert_frame_equal(whole(access), before)
    stranger = mf.open_access(user.client, access.request_id)
    for someone in (access, stranger):
        assert len(mf.plan_changes(someone, loaded)) == 0, "the frame of before is of this state again"
        assert len(mf.plan_changes(someone, loaded.assign(source="mail"))) == 3
    assert len(mf.plan_undo(access, run)) == 0
    assert len(mf.plan_deletes(stranger, loaded)) == 3


def test_where_a_service_does_not_restore_it_is_said_before_and_after(elsewhere, memories):
    before = held(elsewhere)
    plan = mf.plan_deletes(elsewhere, memories.iloc[:2])
    with pytest.raises(mf.PlanError, match=r"confirm=2\. An undo brings .* new ids and the date of that day"):
        mf.apply_plan(elsewhere, plan, **QUIET)
    run = applied(elsewhere, plan)
    plan = mf.plan_undo(elsewhere, run)
    assert plan.counts == {"restore": 2}
    for memory_id, created_at, reason in zip(
        memories.id, memories.created_at, plan.changes.reason, strict=False
    ):
        assert f"was memory {memory_id}, created {created_at:%Y-%m-%d %H:%M} UTC" in reason
        assert "new id and the date of the undo" in reason
    again = applied(elsewhere, plan)
    assert held(elsewhere) == before
    assert not set(again.outcomes.id) & set(memories.id)
    assert list(again.outcomes.restores) == list(memories.id[:2])
    assert "2 brought back with new ids and today's date" in repr(again)
    assert len(mf.plan_undo(elsewhere, run)) == 0


@pytest.mark.parametrize("said", ["soon", "-1", "99999"])
def test_an_offer_that_is_no_number_of_days_is_none(service, access, memories, said):
    def garbled(request, forward):
        return without_offer(request, forward)._replace(headers={RESTORE_DAYS: said})

    with FaultProxy(service.base_url) as proxy, mf.connect(proxy.base_url, api_key=service.api_key) as client:
        proxy.always(GET_CREDENTIALS, garbled)
        reader = mf.open_access(client, access.request_id)
        assert reader.client.restore_days == 0
        assert "does not restore" in str(mf.plan_deletes(reader, memories.id[0]))


def test_an_undo_that_broke_off_is_resumed_with_the_same_header_and_restores_each_once(
    service, access, memories
):
    run = applied(access, mf.plan_deletes(access, memories))
    with FaultProxy(service.base_url) as proxy, mf.connect(proxy.base_url, api_key=service.api_key) as client:
        proxy.script(CREATE_MEMORY, lost, answered(403, {"detail": "not now"}))
        reader = mf.open_access(client, access.request_id)
        cut = mf.apply_plan(reader, mf.plan_undo(reader, run), workers=1, **QUIET)
        assert not cut.is_complete
        with pytest.raises(mf.PlanError, match="an earlier run was interrupted"):
            mf.apply_plan(reader, mf.plan_undo(reader, run), **QUIET)
        resumed = mf.resume_run(reader, cut, **QUIET)
        sent = [request.headers for request in proxy.requests_to(CREATE_MEMORY)]
    resumed.raise_for_failures()
    assert {headers[RESTORES] for headers in sent} == set(memories.id)
    assert len({(headers[RESTORES], headers["Idempotency-Key"]) for headers in sent}) == 3
    pd.testing.assert_frame_equal(whole(access), memories.sort_values("id", ignore_index=True))


def test_of_two_undos_that_were_planned_at_once_the_second_doubles_nothing(access, memories):
    run = applied(access, mf.plan_deletes(access, memories.iloc[:2]))
    one, other = mf.plan_undo(access, run), mf.plan_undo(access, run)
    applied(access, one)
    with pytest.raises(
        mf.StalePlanError, match=f"restores memories that exist again: memory {memories.id[0]}"
    ):
        mf.apply_plan(access, other, **QUIET)
    assert len(mf.load_memories(access, progress=False)) == 3


def test_what_somebody_restores_meanwhile_is_a_conflict_and_not_doubled(service, access, memories, tmp_path):
    run = applied(access, mf.plan_deletes(access, memories.iloc[:1]))
    theirs = mf.plan_undo(access, run)

    def late(request, forward):
        applied(access, theirs)
        return forward(request)

    with FaultProxy(service.base_url) as proxy, mf.connect(proxy.base_url, api_key=service.api_key) as client:
        proxy.script(CREATE_MEMORY, late)
        client.runtime = Runtime(folder=tmp_path)
        reader = mf.open_access(client, access.request_id)
        mine = mf.plan_undo(reader, run)
        stopped = mf.apply_plan(reader, mine, **QUIET)
    assert list(stopped.outcomes.status) == ["conflict"]
    assert "exists and was not restored again" in stopped.outcomes.error[0]
    pd.testing.assert_frame_equal(whole(access), memories.sort_values("id", ignore_index=True))


def test_what_others_changed_since_is_a_conflict_and_stays(access, memories):
    rows = pd.concat([memories.assign(title=["A", "B", "C"]), pd.DataFrame({"content": ["juice"]})])
    run = mf.push_memories(access, rows, **QUIET)
    loaded = mf.load_memories(access, progress=False)
    theirs = loaded.iloc[[0, 3]].assign(title=["theirs", None], content=["tea", "orange juice"])
    mf.push_memories(access, theirs, on_null="null", **QUIET)
    applied(access, mf.plan_deletes(access, memories.id[1]))
    plan = mf.plan_undo(access, run)
    assert plan.counts == {"patch": 1, "conflict": 3}
    assert plan.changes.reason.str.contains("deleted since").sum() == 1
    with pytest.raises(mf.PlanError, match="conflict"):
        mf.apply_plan(access, plan, **QUIET)
    applied(access, plan.without("conflict"))
    after = mf.load_memories(access, progress=False)
    assert after.content.tolist() == ["tea", "water", "orange juice"]
    assert after.title.fillna("-").tolist() == ["theirs", "c", "-"]


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


def test_undoing_twice_changes_nothing_the_second_time(access, memories):
    edited = mf.push_memories(access, memories.iloc[2:].assign(title="C"), **QUIET)
    made = mf.create_memories(access, pd.DataFrame({"content": ["juice"]}), **QUIET)
    deleted = applied(access, mf.plan_deletes(access, memories.iloc[:2]))
    for run in (deleted, made, edited):
        undone(access, run)
        assert len(mf.plan_undo(access, run)) == 0


def test_a_run_that_was_undone_says_so_when_it_is_resumed(access, memories):
    rows = pd.concat([memories.assign(title="edited").head(2), pd.DataFrame({"content": ["new"]})])
    run = applied(access, mf.plan_changes(access, rows))
    undone(access, run)
    resumed = mf.resume_run(access, run.journal, progress=False, settle_s=0.0)
    assert sorted(resumed.verification.undone) == sorted(run.outcomes.id)
    assert resumed.counts["done"] == 3
    with pytest.raises(mf.IncompleteRunError, match=r"3 reverted since.*to repeat it, make a new plan"):
        resumed.raise_for_failures()


def test_an_undo_can_be_undone(access, memories):
    first = whole(access)
    run = applied(access, mf.plan_deletes(access, memories.iloc[:2]))
    after = held(access)
    undone(access, undone(access, run))
    assert held(access) == after
    assert mf.plan_undo(access, run).counts == {"restore": 2}, "it is gone again, and can be made again"
    undone(access, run)
    pd.testing.assert_frame_equal(whole(access), first)


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
    with pytest.raises(mf.PlanError, match="for user"):
        mf.plan_undo(stranger.access(), run)
    stranger.close()


def test_what_another_users_run_made_anew_is_not_taken_for_ones_own(service, elsewhere, memories):
    run = applied(elsewhere, mf.plan_deletes(elsewhere, memories.id[0]))
    (made,) = undone(elsewhere, run).outcomes.id
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


@FEW_EXAMPLES
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
