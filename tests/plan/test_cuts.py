"""Plans that are cut and corrected: groups stay whole, notes and losses stay true, and what was cut is named."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memframe as mf
from memframe.errors import PlanError
from memframe.plan import LeftOut
from memframe.plan.change import Change, same_value
from memframe.plan.plan import COUNT_NOTE, count_proposals, undo_note
from memframe.secret import MASK

from .test_plan import plan_with

KEEPER = "Emma lives in Leeds since 2019."
COPY = "Emma lives in Leeds since 2019"


def merge(group, keeper="k", *, text=KEEPER, copies=("c1", "c2"), patch=None, hidden=()):
    """The changes of a merge, as a cleanup plans them: without a patch the keeper is only depended on."""
    holds = {"title": None, "content": text, "tags": ("home",)}
    if patch:
        yield Change(
            action="patch", id=keeper, before={name: holds[name] for name in patch}, after=patch, group=group,
            reason="takes in row 2", hidden=hidden,
        )  # fmt: skip
    needed = {name: value for name, value in holds.items() if name not in (patch or {})}
    for copy in copies:
        yield Change(
            action="delete", id=copy, before={"content": COPY}, group=group, depends_on={keeper: needed},
            keeps={keeper: text}, hidden=hidden,
        )  # fmt: skip


def groups_of(plan):
    return {change.id: change.group for change in plan.records}


MERGES = plan_with(
    *merge(0, "k", copies=("c1", "c2")),
    *merge(1, "j", text="Ada paid 17 €", copies=("d1",), patch={"tags": ("home", "tea")}),
    Change(action="patch", id="p", before={"title": "tea"}, after={"title": "Tea"}),
    Change(action="conflict", id="x", reason="changed"),
    Change(action="create", after={"content": "new"}),
    notes=(undo_note(30), f"{COUNT_NOTE}8 proposals 7 are carried out; 1 is left for you: 1 kept."),
    left_out=(LeftOut("z", "merge", "kept"),),
)


def test_a_group_is_cut_and_kept_as_a_whole():
    assert [*groups_of(MERGES.only("c1"))] == ["c1", "c2"]
    assert [*groups_of(MERGES.only(["d1", "p"]))] == ["j", "d1", "p"]
    assert {"c1", "c2"}.isdisjoint(groups_of(MERGES.leave_out(pd.DataFrame({"id": ["c2"]}))))
    cut = MERGES.leave_out(["c2", "p"])
    assert cut.left.to_numpy().tolist() == [
        ["z", "merge", "kept"],
        ["c1", "delete", "left out"],
        ["c2", "delete", "left out"],
        ["p", "patch", "left out"],
    ]
    assert MERGES.leave_out([]) == MERGES.leave_out(()) == MERGES
    assert MERGES.leave_out("p", reason="protected").left.reason.tolist() == ["kept", "protected"]


def test_notes_that_count_are_counted_again():
    rest = MERGES.without("delete")
    assert rest.counts == {"patch": 1, "conflict": 1, "create": 1}
    assert rest.notes == (count_proposals(3, rest.left_out),)
    assert (
        rest.notes[0]
        == "In memories: of 8 proposals 3 are carried out; 5 are left for you: 4 left out; 1 kept."
    )
    only = plan_with(*MERGES.records).leave_out("p")
    assert only.notes == ()
    assert count_proposals(len(only), only.left_out) in only.diff(color=False)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda plan: plan.without("abc"), r"no action 'abc': the nearest is '\w+'"),
        (lambda plan: plan.without("deletes"), "no action 'deletes': the nearest is 'delete'"),
        (lambda plan: plan.only(["c1", "nobody"]), "not in this plan: nobody"),
        (lambda plan: plan.leave_out("nobody"), "not in this plan: nobody"),
        (lambda plan: plan.leave_out([None]), "a create has none"),
        (lambda plan: plan.leave_out(7), "pass ids"),
        (lambda plan: plan.edit("nobody", title="x"), "not in this plan: nobody"),
        (lambda plan: plan.edit("p"), "name the fields"),
        (lambda plan: plan.edit("p", titel="x"), "the nearest is 'title'"),
        (lambda plan: plan.edit("p", title="tea"), "leave the change out"),
        (lambda plan: plan.edit("p", content="x"), "does not know what it holds: edit it in the frame"),
        (lambda plan: plan.edit("p", importance="high"), "importance is text, not a number"),
        (lambda plan: plan.edit("k", content=None), "content cannot be cleared"),
        (lambda plan: plan.edit("c1", content="x"), "or edit memory k, which keeps what it says"),
        (lambda plan: plan.edit("x", title="x"), "cannot be edited, as it is 'conflict': changed"),
    ],
)
def test_what_cannot_be_done_is_refused_by_its_name(act, words):
    with pytest.raises(PlanError, match=words):
        act(MERGES)


def test_an_edit_replaces_what_a_patch_writes():
    edited = MERGES.edit("p", title=" Green tea")
    (change,) = edited.only("p").records
    assert (change.before, change.after) == ({"title": "tea"}, {"title": " Green tea"})
    assert change.reason == "edited by hand"
    assert edited.edit("p", title="Black tea").only("p").records[0].reason == "edited by hand"


def test_the_text_of_a_merge_is_edited_by_the_memory_that_is_kept():
    edited = MERGES.edit("k", content="Emma lives in Leeds.", tags=["home"])
    patch, *deletes = edited.only("k").records
    assert (patch.action, patch.group, patch.after) == ("patch", 0, {"content": "Emma lives in Leeds."})
    assert patch.before == {"content": KEEPER}
    assert [one.keeps for one in deletes] == [{"k": "Emma lives in Leeds."}] * 2
    assert [one.depends_on for one in deletes] == [{"k": {"title": None, "tags": ("home",)}}] * 2
    assert edited.losses.value.tolist() == ["2019"]
    back = edited.edit("k", content=KEEPER)
    assert [change.depends_on for change in back.records] == [change.depends_on for change in MERGES.records]
    assert back.losses.empty
    tags = MERGES.edit("j", tags=("home",)).only("d1")
    assert [change.action for change in tags.records] == ["delete"]
    assert tags.records[0].depends_on["j"]["tags"] == ("home",)


def test_what_is_hidden_stays_hidden_after_an_edit():
    plan = plan_with(*merge(0, text="Emma's PIN is 4711", hidden=("4711",)))
    edited = plan.edit("k", content="Emma's PIN was 4711 once", title="PIN 4711")
    assert MASK in edited.diff(color=False)
    for shown in (
        edited.diff(color=False),
        str(edited),
        edited._repr_html_(),
        edited.to_json(),
        repr(edited.records),
    ):
        assert "4711" not in shown


def test_a_delete_shows_what_stays():
    plan = plan_with(*merge(0, text="Emma's PIN is 4711", copies=("c1",), hidden=("4711",)))
    kept = f"Emma's PIN is {MASK}"
    assert f"@@ kept by memory k @@\n {kept}\n" in plan.diff(color=False)
    for shown in (plan._repr_html_().replace("&#39;", "'"), plan.to_json().encode().decode("unicode_escape")):
        assert "kept" in shown or "keeps" in shown
        assert "PIN is" in shown
        assert "4711" not in shown


# Any sequence of cuts and edits


ACTS = ["patch", "delete", "create", "conflict"]
CUTS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["only", "leave_out"]), st.lists(st.sampled_from("kjcdpxz"), max_size=3)),
        st.tuples(st.just("without"), st.lists(st.sampled_from(ACTS), max_size=2)),
        st.tuples(
            st.just("edit"), st.tuples(st.sampled_from("kjp"), st.sampled_from(["Tea", "Emma", "17 €"]))
        ),
    ),
    max_size=6,
)


def cut_or_edit(plan, step, given_with):
    """The plan after one cut or edit of what it has."""
    if step == "without":
        return plan.without(*given_with)
    if step == "edit":
        memory_id, text = given_with
        held = {change.id for change in plan.records} | {
            one for change in plan.records for one in change.keeps
        }
        field = "title" if memory_id == "p" else "content"
        return plan.edit(memory_id, **{field: text}) if memory_id in held else plan
    return getattr(plan, step)(
        [one.id for one in plan.records if (one.id or "-")[0] in given_with and one.id]
    )


@given(steps=CUTS)
def test_any_sequence_of_cuts_and_edits_leaves_a_true_plan(steps):
    plan = MERGES
    for step, given_with in steps:
        plan = cut_or_edit(plan, step, given_with)
    check_groups_and_notes(plan)
    check_states(plan)


def check_groups_and_notes(plan):
    present, left = {change.id for change in plan.records}, {one.id for one in plan.left_out}
    for members in ({"c1", "c2"}, {"j", "d1"}):
        assert present & members in (set(), members)
    assert present | left == {change.id for change in MERGES.records} | {"z"} | (present | left) & {"k"}
    assert not present & left
    assert (undo_note(30) in plan.notes) == ("delete" in plan.counts)
    assert len(left) == 1 or count_proposals(len(plan), plan.left_out) in plan.notes


def check_states(plan):
    """What is not edited is as it was; deletes depend on what their keeper holds and its patch does not compare."""
    whole = {change.id: change for change in MERGES.records}
    patches = {change.id: change for change in plan.records if change.action == "patch"}
    for change in plan.records:
        if change.action != "patch":
            assert (change.before, change.after) == (whole[change.id].before, whole[change.id].after)
        for keeper, needed in change.depends_on.items():
            patch = patches.get(keeper, Change(action="patch"))
            assert sorted([*needed, *patch.before]) == ["content", "tags", "title"]
            assert change.keeps[keeper] == patch.after.get("content", needed.get("content"))
    for change in patches.values():
        assert change.before.keys() == change.after.keys()
        assert not any(same_value(name, change.before[name], change.after[name]) for name in change.after)


def test_what_is_applied_is_what_was_left(writers):
    memories = writers.memories
    plan = mf.plan_changes(writers.access, memories.assign(title="Green tea"))
    cut = plan.leave_out(writers.ids[0]).edit(writers.ids[1], title="Boat")
    assert cut.counts == {"patch": 3}
    mf.apply_plan(writers.access, cut, progress=False).raise_for_failures()
    assert writers.load().title.tolist() == [memories.title.iloc[0], "Boat", "Green tea", "Green tea"]
