"""Losses: values that no memory would hold any more, whatever the plan, and no other spelling of a value that stays."""

from itertools import pairwise

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memframe as mf
from memframe.plan.change import Change
from memframe.plan.losses import count_holders, find_keys, find_values
from memframe.secret import MASK

from .test_plan import TEXT, plan_with

BIRTH = "Emma was born at 3:26 on 5 May 2024 and weighed 3410 g."


def delete(text, memory_id="m1", **fields):
    return Change(action="delete", id=memory_id, before={"content": text}, **fields)


def patch(before, after, memory_id="m2", **fields):
    return Change(
        action="patch", id=memory_id, before={"content": before}, after={"content": after}, **fields
    )


def lost(*records):
    return plan_with(*records).losses.value.tolist()


def test_each_value_of_a_memory_that_goes_is_named_with_its_kind_and_its_memory():
    losses = plan_with(delete(BIRTH)).losses
    assert list(losses) == ["value", "kind", "field", "id"]
    assert losses[["value", "kind"]].to_numpy().tolist() == [
        ["Emma", "name"], ["3:26", "time"], ["5 May 2024", "date"], ["3410 g", "amount"],
    ]  # fmt: skip
    assert {*losses.field}, {*losses.id} == ({"content"}, {"m1"})
    assert plan_with().losses.dtypes.equals(losses.dtypes)


@pytest.mark.parametrize(
    ("gone", "stays"),
    [
        ("It weighs 3410 g.", "The weight: 3,410 grams"),
        ("Up at 3:26", "up at 03:26 a.m."),
        ("Sync at 2026-02-05T18:48:01.799Z done", "Sync at 2026-02-05T18:48:01.799Z done"),
        ("Moved on 5 May 2024", "moved 2024-05-05"),
        ("Pays $1,250", "pays 1250 dollars"),
        ("Lives with José Núñez", "Jose Nunez, with whom she lives"),
        ("Read 'Blue Nights'", "She has read \u201cBlue Nights\u201d"),
        ("Write to ada@example.com", "ADA@EXAMPLE.COM is her address"),
        ("5 km a day", "five kilometres a day"),
        ("The rent is 50%", "50 percent"),
    ],
)
def test_another_spelling_of_a_value_is_no_loss(gone, stays):
    assert lost(delete(gone))
    assert lost(delete(gone), patch("-", stays)) == []
    assert lost(delete(gone), Change(action="create", after={"title": stays})) == []


@pytest.mark.parametrize(
    ("gone", "stays"),
    [
        ("It weighs 3410 g", "It weighs 3401 g"),
        ("It weighs 3410 g", "It costs 3410 kroner"),
        ("Up at 3:26", "Up at 3:26 pm"),
        ("Moved on 5 May 2024", "Moved on 6 May 2024, called on 5 June"),
        ("Lives with Maria Lopez", "Lives with Maria Gomez; the Lopez shop is near"[:22]),
        ("Read 'Blue Nights'", "Read 'Blue Days'"),
        ("Write to ada@example.com", "Write to bob@example.com"),
        ("Lives at 12 Baker Street", "Lives at 14 Baker Street"),
        ("The dentist is Dr. Wells", "The dentist is Dr. Lennox"),
        ("Works for Mrs. Novotny", "Works for Mrs. Sedlak"),
    ],
)
def test_another_value_is_a_loss(gone, stays):
    assert lost(delete(gone), patch("-", stays))


def test_what_an_edit_replaces_is_listed_and_retagging_loses_nothing():
    assert lost(patch("Moved to Berlin", "Moved to Leipzig")) == ["Berlin"]
    retag = Change(action="patch", id="m1", before={"tags": ("Rome",)}, after={"tags": ()})
    assert lost(retag, Change(action="conflict", id="m2", before={"content": BIRTH})) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("It is for Marta", "It is for Maria"),
        ("The trip is to Kiel", "The trip is to Keil"),
        ("The trip is to Vienna", "The trip is to Vienne"),
        ("With Petersen and Pedersen", "With Pedersen"),
        ("In May 2023", "In May 2024"),
    ],
)
def test_a_name_that_is_changed_to_a_similar_one_is_a_loss(before, after):
    assert lost(patch(before, after))


def test_a_corrected_name_is_no_loss():
    assert lost(patch("The trip is to Stuttgrat", "The trip is to Stuttgart")) == []
    assert lost(patch("From Stuttgart to Stuttgrat", "From Stuttgart to Stuttgart")) == []


def test_what_is_redacted_on_purpose_is_no_loss():
    before, after = "The PIN 4711 is Ada's", "The PIN [redacted: pin] is Ada's"
    assert lost(patch(before, after)) == []
    assert lost(patch(before, after.replace("Ada", "Bob"))) == ["4711", "Ada"]
    copy = delete(before, hidden=("4711",), keeps={"m2": after}, group=1)
    assert lost(copy, patch(before, after, hidden=("4711",), group=1)) == []
    assert lost(patch(after, "The PIN is Ada's")) == []


def test_a_secret_in_place_of_which_another_one_stays_is_lost():
    gone = delete("The PIN is 4711", hidden=("4711",), keeps={"m2": "The PIN is 2580"})
    assert lost(gone) == [MASK]


def test_a_secret_that_goes_with_its_memory_is_listed_and_not_shown():
    plan = plan_with(delete("The PIN is 4711 0815", hidden=("4711 0815",)))
    assert MASK in plan.losses.value.tolist()
    for shown in (plan.diff(color=False), str(plan), plan._repr_html_(), plan.to_json()):
        assert "4711" not in shown


def test_a_heartbeat_holds_nothing():
    assert lost(delete("heartbeat ok 2026-01-02T03:00:00Z")) == []


def test_every_display_says_what_would_be_lost():
    lossy, safe = plan_with(delete("Paid 17 €")), plan_with(delete("nothing of note"))
    for plan, words in ((lossy, "Loses 1 value that no other memory"), (safe, "Loses nothing that no other")):
        assert plan.diff(color=False).startswith(f"# {words}")
        assert words in str(plan).splitlines()[1]
        assert plan._repr_html_().index(words) < plan._repr_html_().index("<table")
    assert "17 € (amount, content of memory m1)" in lossy.diff(color=False)
    assert "17" not in str(lossy)
    assert '"value": "17 €"' in lossy.to_json()


def test_what_the_access_has_loaded_may_hold_a_value(user):
    copies = [BIRTH, "On 2024-05-05, 03:26: Emma, 3,410 g"]
    user.service.import_memories(user.user_id, [{"content": text} for text in copies])
    access, stranger = user.access(), user.access()
    ids = mf.load_memories(access, progress=False).id.tolist()
    one, other = (mf.plan_deletes(access, [memory_id]) for memory_id in ids)
    assert one.losses.empty
    assert other.losses.empty
    assert len((one + other).losses) == 4
    assert (one + other).leave_out(ids[0]).losses.empty
    assert (one + other).only(ids[0]).losses.empty
    unloaded = mf.plan_deletes(stranger, ids[:1])
    assert len(unloaded.losses) == 4
    assert "no other memory of this plan holds (the others were not loaded)" in unloaded.diff(color=False)


@given(text=TEXT | st.text(alphabet="aZé5 .:-,'\"€@\n", max_size=60))
def test_a_text_holds_its_own_values(text):
    spans = list(find_values(text))
    assert all(start < end for start, end, _ in spans)
    assert all(end <= start for (_, end, _), (start, _, _) in pairwise(spans))
    keys = find_keys([delete(text)])
    assert count_holders(keys, [text]) == dict.fromkeys(keys, 1)


def test_a_copy_that_is_deleted_loses_nothing(writers):
    frame = pd.DataFrame({"content": [BIRTH, BIRTH]})
    run = mf.create_memories(writers.access, frame, progress=False)
    mf.load_memories(writers.access, progress=False)
    assert mf.plan_deletes(writers.access, run.outcomes.id[:1]).losses.empty
