"""Plans: values that add up, are kept sealed, and are refused when what they were made from has moved."""

import os
import stat
import traceback
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import memframe as mf
from memframe.errors import JournalError, PlanError, StalePlanError
from memframe.keystore import open_local_cipher
from memframe.plan import LeftOut, Plan, find_stale_fields
from memframe.plan.change import CHANGE_ACTIONS, FIELDS, Change
from memframe.plan.current import CurrentMemory
from memframe.plan.plan import PLAN_CONTEXT, PLAN_MAGIC, READABLE_MAGICS
from memframe.wire import MemoryBlob

MADE_AT = datetime(2026, 11, 21, 14, 2, tzinfo=UTC)
CHANGE = Change(action="patch", id="m1", row=7, before={"title": "tea"}, after={"title": "Tea"})
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = {name: st.none() | TEXT for name in FIELDS} | {
    "tags": st.lists(TEXT, max_size=3).map(tuple),
    "importance": st.none() | st.floats(0, 5),
    "confidence": st.none() | st.floats(0, 1),
}
CHANGES = st.builds(
    Change,
    action=st.sampled_from(CHANGE_ACTIONS),
    row=st.none() | st.integers(0, 2**60) | TEXT | st.floats(allow_nan=False, allow_infinity=False),
    id=st.none(),
    before=st.fixed_dictionaries({}, optional=VALUES),
    after=st.fixed_dictionaries({}, optional=VALUES),
    reason=st.none() | TEXT,
    group=st.none() | st.integers(0, 9),
    hidden=st.lists(TEXT, max_size=2).map(tuple),
)


def plan_with(*records, **fields):
    given = {"base_url": "https://m/api/v1", "user_id": "u1", "key_version": 1, "created_at": MADE_AT}
    return Plan(records=records, **(given | fields))


def stored(**fields):
    return CurrentMemory(MemoryBlob(**({"id": "m1", "user_id": "u1"} | fields)))


# Values


def test_a_plan_counts_its_changes():
    plan = plan_with(
        CHANGE, Change(action="create", after={"content": "x"}), Change(action="conflict", id="m2")
    )
    assert (len(plan), bool(plan), bool(plan_with())) == (3, True, False)
    assert plan.counts == {"patch": 1, "create": 1, "conflict": 1}
    assert [change.action for change in plan.writes] == ["patch", "create"]
    assert [change.action for change in plan.without("conflict", "create").records] == ["patch"]
    with pytest.raises(AttributeError):
        plan.records = ()


def test_what_holds_together_with_a_conflict_goes_with_it():
    grouped = [
        Change(action=action, id=action, group=group)
        for action, group in [("patch", 1), ("conflict", 1), ("delete", 2), ("invalid", None)]
    ]
    assert [change.id for change in plan_with(*grouped).without("conflict").records] == ["delete", "invalid"]


def test_the_id_is_of_everything_in_the_plan():
    plan = plan_with(CHANGE)
    assert plan.id == plan_with(CHANGE).id
    assert len(plan.id) == 64
    others = [
        plan_with(),
        plan_with(Change(action="patch", id="m1", row=7, before={"title": "tea"}, after={"title": "TEA"})),
        plan_with(CHANGE, user_id="u2"),
        plan_with(CHANGE, base_url="https://n/api/v1"),
        plan_with(CHANGE, key_version=2),
        plan_with(CHANGE, created_at=MADE_AT + timedelta(seconds=1)),
        plan_with(CHANGE, notes=("Read this.",)),
        plan_with(CHANGE, left_out=(LeftOut("m2", "delete", "left out"),)),
    ]
    assert len({plan.id, *(other.id for other in others)}) == len(others) + 1


def test_two_changes_of_one_memory_are_no_plan():
    gone, back = Change(action="delete", id="m1"), Change(action="create", restores="m1")
    for add in (
        lambda: plan_with(CHANGE, gone),
        lambda: plan_with(gone, back),
        lambda: plan_with(CHANGE) + plan_with(CHANGE),
    ):
        with pytest.raises(PlanError, match="concern the same memory: m1"):
            add()


def test_plans_add_up():
    first = plan_with(Change(action="patch", id="m1", group=0), Change(action="delete", id="m2", group=4))
    second = plan_with(
        Change(action="patch", id="m3", group=0),
        Change(action="delete", id="m4"),
        created_at=MADE_AT - timedelta(hours=1),
    )
    both = first + second
    assert [(change.id, change.group) for change in both.records] == [
        ("m1", 0), ("m2", 4), ("m3", 5), ("m4", None),
    ]  # fmt: skip
    assert both.created_at == second.created_at
    assert len(first) == 2


def test_notes_add_up_and_stay_with_a_plan():
    first = plan_with(CHANGE, notes=("Read this.", "And this."))
    both = first + plan_with(Change(action="delete", id="m2"), notes=("And this.", "And that."))
    assert both.notes == ("Read this.", "And this.", "And that.")
    assert both.without("delete").notes == both.notes
    assert (plan_with() + first).notes == first.notes


@pytest.mark.parametrize("other", [{"user_id": "u2"}, {"base_url": "https://n/api/v1"}, {"key_version": 2}])
def test_plans_for_different_things_do_not_add_up(other):
    with pytest.raises(PlanError, match=next(iter(other))):
        plan_with() + plan_with(**other)
    with pytest.raises(TypeError):
        plan_with() + CHANGE


def test_changes_are_a_frame_with_the_same_columns_always():
    frame = plan_with(CHANGE, Change(action="create", row="r", after={"tags": ("x",), "title": "t"})).changes
    assert list(frame) == ["action", "row", "id", "fields", "before", "after", "reason", "group"]
    assert frame.fields.tolist() == [("title",), ("title", "tags")]
    assert frame.loc[0, "before"] == {"title": "tea"}
    assert frame.row.tolist() == [7, "r"]
    assert plan_with().changes.dtypes.equals(frame.dtypes)


def test_what_is_left_out_is_a_frame_and_adds_up():
    first = plan_with(CHANGE, left_out=(LeftOut("m2", "delete", "it is protected"),))
    both = first + plan_with(left_out=(LeftOut(None, "create", "left out"),))
    assert list(both.left) == list(plan_with().left) == ["id", "action", "reason"]
    assert both.left.dtypes.equals(plan_with().left.dtypes)
    assert both.left.action.tolist() == ["delete", "create"]
    assert both.left.id.isna().tolist() == [False, True]


# On disk


@given(records=st.lists(CHANGES, max_size=5), notes=st.lists(TEXT, max_size=2).map(tuple))
def test_what_was_saved_loads_the_same(tmp_path_factory, records, notes):
    path = tmp_path_factory.mktemp("plans") / "plan"
    plan = plan_with(*records, notes=notes)
    plan.save(path)
    again = mf.Plan.load(path)
    assert again == plan
    assert again.id == plan.id


def test_a_saved_plan_is_closed(tmp_path, writers):
    plan = writers.plan(writers.edited(title="canary title", content="canary content"))
    plan.save(tmp_path / "plan.memframe")
    assert mf.Plan.load(str(tmp_path / "plan.memframe")) == plan
    written = (tmp_path / "plan.memframe").read_bytes()
    assert b"canary" not in written
    assert stat.S_IMODE((tmp_path / "plan.memframe").stat().st_mode) == 0o600
    plan.save(tmp_path / "plan.memframe")


def test_a_plan_that_was_changed_does_not_load(tmp_path):
    path = tmp_path / "plan"
    plan_with(CHANGE).save(path)
    written = path.read_bytes()
    changed = (
        written[:at] + bytes([written[at] ^ 1]) + written[at + 1 :] for at in range(0, len(written), 5)
    )
    shortened = (written[:length] for length in range(0, len(written), 5))
    for stored_bytes in (*changed, *shortened):
        path.write_bytes(stored_bytes)
        with pytest.raises((PlanError, JournalError), match="plan"):
            mf.Plan.load(path)


def test_what_is_no_plan_is_refused_by_its_beginning(tmp_path):
    """Of what has no end: a pipe that stays open, as /dev/zero would."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)
    os.write(writer, b"zeros, and more to come")
    try:
        with pytest.raises(PlanError, match="pipe is not a saved plan"):
            mf.Plan.load(pipe)
    finally:
        os.close(writer)


def test_a_plan_of_another_machine_does_not_load(tmp_path, monkeypatch):
    plan_with(CHANGE).save(tmp_path / "plan")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(JournalError, match=r"the saved plan: sealed with the data key .* not here"):
        mf.Plan.load(tmp_path / "plan")


def test_a_plan_of_another_version_is_told_as_such(tmp_path):
    path = tmp_path / "plan"
    plan_with(CHANGE).save(path)
    mark, whole = path.read_bytes()[: len(PLAN_MAGIC)], path.read_bytes()
    other = open_local_cipher().seal(b'{"records": ["canary-of-a-record"]}', associated_data=PLAN_CONTEXT)
    for stored_bytes in (mark + other, whole.replace(mark, b"memframe plan 99\n")):
        path.write_bytes(stored_bytes)
        with pytest.raises(PlanError, match=r"saved by another version of memframe.*plan again") as caught:
            mf.Plan.load(path)
        assert "canary" not in "".join(traceback.format_exception(caught.value))
    plan_with(CHANGE).save(path)
    assert mf.Plan.load(path) == plan_with(CHANGE)


@pytest.mark.parametrize("mark", READABLE_MAGICS)
def test_a_plan_of_an_earlier_version_loads(tmp_path, mark):
    saved = b"""{"records": [{"action": "patch", "row": 7, "id": "m1", "before": {"title": "tea"}, "after": {"title":
        "Tea"}}], "base_url": "https://m/api/v1", "user_id": "u1", "key_version": 1,
        "created_at": "2026-11-21T14:02:00Z"}"""
    (tmp_path / "plan").write_bytes(mark + open_local_cipher().seal(saved, associated_data=PLAN_CONTEXT))
    assert mf.Plan.load(tmp_path / "plan") == plan_with(CHANGE)


def test_other_files_are_neither_read_nor_replaced(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("my notes")
    with pytest.raises(PlanError, match="is not a plan and is not replaced"):
        plan_with(CHANGE).save(path)
    assert path.read_text() == "my notes"
    with pytest.raises(PlanError, match="is not a saved plan"):
        mf.Plan.load(path)
    for missing in (tmp_path / "none", tmp_path):
        with pytest.raises(PlanError, match="cannot be read"):
            mf.Plan.load(missing)
    for place in (tmp_path / "none" / "plan", tmp_path):
        with pytest.raises(PlanError, match=r"cannot be written|is no plan"):
            plan_with(CHANGE).save(place)


# Staleness


MANY = Change(action="patch", id="m1", before={"tags": ("a", "b"), "importance": 3.0, "summary": None})
SEALED = Change(action="delete", id="m1", before={"title": "t"}, sealed=stored(content="abc").sealed_digest)


@pytest.mark.parametrize(
    ("change", "now", "fields"),
    [
        (CHANGE, stored(title="tea", summary="new", updated_at="2030-01-01T00:00:00Z"), ()),
        (CHANGE, stored(title="Tea"), ("title",)),
        (CHANGE, stored(), ("title",)),
        (CHANGE, None, ("id",)),
        (Change(action="create", after={"content": "x"}), None, ()),
        (MANY, stored(tags=("b", "a", "a"), importance=3), ()),
        (MANY, stored(tags=("b",), importance=3, summary="s"), ("summary", "tags")),
        (SEALED, stored(title="t", content="abc"), ()),
        (SEALED, stored(title="u", content="abcd"), ("title", "content")),
        (replace(SEALED, before={"content": "plain"}), stored(content="abc"), ()),
        (replace(SEALED, before={"content": "plain"}), stored(content="abcd"), ("content",)),
    ],
)
def test_a_plan_is_judged_by_what_its_fields_mean_and_by_the_seal(change, now, fields):
    assert find_stale_fields(change, now) == fields


def test_a_stale_plan_is_refused_with_counts_and_names():
    plan = plan_with(
        CHANGE,
        Change(action="delete", id="m2", row="b", before=dict.fromkeys(FIELDS)),
        Change(action="create", after={"content": "x"}),
        Change(
            action="patch", id="m3", before={"title": "t", "source": "s"}, after={"title": "u", "source": "v"}
        ),
    )
    fresh = {"m1": stored(title="tea"), "m2": stored(id="m2"), "m3": stored(id="m3", title="t", source="s")}
    plan.refuse_stale(fresh)
    with pytest.raises(StalePlanError) as stale:
        plan.refuse_stale(
            fresh | {"m1": stored(title="coffee"), "m3": stored(id="m3", title="x", source="y")}
        )
    assert str(stale.value) == (
        f"this plan is stale: 3 of its {len(FIELDS) + 3} fields changed since 2026-11-21 14:02 UTC: row 7 title, "
        "memory m3 title, source; make a new plan"
    )
    with pytest.raises(
        StalePlanError, match=rf"{len(FIELDS)} of its {len(FIELDS) + 3} fields .*: row b is gone; make"
    ):
        plan.refuse_stale({name: now for name, now in fresh.items() if name != "m2"})
    with pytest.raises(StalePlanError, match=r"row 7 is gone, row b is gone, memory m3 is gone"):
        plan.refuse_stale({})
