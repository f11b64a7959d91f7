"""Checks that relate memories to each other: what is the same, what only looks so, and what replaces what."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memframe as mf
from memframe.audit.changed_value import find_changed_values
from memframe.audit.exact_duplicate import find_exact_duplicates
from memframe.audit.near_duplicate import find_near_duplicates
from memframe.audit.stale import find_stale
from memframe.audit.superseded import find_superseded
from memframe.frames import MEMORY_KINDS, FrameBuilder

NOW = pd.Timestamp("2026-06-01", tz="UTC")
UNRELATED = "The boiler is serviced by a company from Graz every autumn"


def memories(*texts, first="2026-01-01"):
    """One memory a text, a day apart, of one user."""
    created = pd.date_range(first, periods=len(texts), freq="D", tz="UTC").as_unit("us")
    frame = FrameBuilder(MEMORY_KINDS).frame().reindex(range(len(texts)))
    ids = pd.Series([f"m{n}" for n in range(len(texts))], dtype="str")
    frame = frame.assign(
        id=ids, content=pd.Series(texts, dtype="str"), user_id=pd.Series("u1", frame.index, dtype="str")
    )
    tags = pd.Series([()] * len(texts), index=frame.index, dtype=object)
    return frame.assign(created_at=created, updated_at=created, tags=tags, tag_ids=tags)


def related(findings):
    return {
        frozenset(pair) for pair in zip(findings.id, findings.related_id, strict=True) if pair[1] == pair[1]
    }


SAME = [
    ("Prefers green tea in the morning", "prefers GREEN tea in the morning!"),
    ("Prefers green tea in the morning", "Prefers green tea in the mornign"),
    (
        "Plays the cello in a string quartet on Thursdays",
        "User said that plays the cello in a string quartet on Thursdays",
    ),
    ("Has two cats, and works from home on Fridays", "Works from home on Fridays, and has two cats"),
    ("Spielt donnerstags Cello im Streichquartett", "spielt donnerstags Cello im Streichquartett."),
]
CHANGED = [
    ("Pays 950 euros of rent each month", "Pays 1150 euros of rent each month"),
    ("The flight to Lisbon leaves on 3 May", "The flight to Lisbon leaves on 13 May"),
    ("Her sister Anna lives in Graz", "Her sister Maria lives in Graz"),
    ("Likes olives on pizza", "Does not like olives on pizza"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_says_the_same_is_a_near_duplicate_and_no_changed_value(one, other):
    frame = memories(one, UNRELATED, other)
    assert related(find_near_duplicates(frame)) == {frozenset({"m0", "m2"})}
    assert find_changed_values(frame).empty


@pytest.mark.parametrize(("one", "other"), CHANGED)
def test_another_value_is_never_merged(one, other):
    frame = memories(one, UNRELATED, other)
    assert find_near_duplicates(frame).empty
    found = find_changed_values(frame)
    assert frozenset({"m0", "m2"}) in related(found)
    assert not {"merge", "delete"} & set(found.action)


def test_equal_texts_are_exact_duplicates_of_which_one_is_kept():
    found = find_exact_duplicates(memories("Likes tea", UNRELATED, "Likes tea", "Likes tea"))
    assert sorted(found.action) == ["delete", "delete", "none"]
    assert set(found.id) == {"m0", "m2", "m3"}
    assert find_exact_duplicates(memories("Likes tea", "Likes coffee")).empty


def test_a_newer_fact_with_a_cue_replaces_the_older_one():
    found = find_superseded(
        memories("Lives in Vienna", UNRELATED, "Moved from Vienna to Graz, no longer lives in Vienna")
    )
    assert ("m0", "m2") in set(zip(found.id, found.related_id, strict=True))
    assert set(found.action) <= {"review", "none"}


def test_a_time_that_passed_is_stale():
    found = find_stale(memories("Has a dentist appointment tomorrow", "Was born in 1984"), now=NOW)
    assert "m0" in set(found.id)
    assert "m1" not in set(found.id[found.severity != "info"])


@pytest.mark.parametrize(
    "text",
    [
        "Morgen Zahnarzt um neun",
        "Übermorgen kommt der Klempner",
        "Mañana cita con la pediatra",
        "Jeudi prochain, visite chez le notaire",
        "The voucher is good until 30.06.2026",
        "Passport photos are due in June",
        "Grant deadline 15/06/2026",
    ],
)
def test_times_to_come_are_understood_in_some_languages_and_in_digits(text):
    later = NOW + pd.Timedelta(days=400)
    assert set(find_stale(memories(text), now=later).kind) == {"expired"}


@pytest.mark.parametrize(
    "text",
    [
        "Guten Morgen sagt sie auf Dänisch",
        "Por la mañana corre",
        "On Saturday mornings she bakes",
        'His motto is "tomorrow we sail"',
        "Never leaves for tomorrow what can wait until Friday",
    ],
)
def test_what_recurs_or_is_a_saying_does_not_expire(text):
    later = NOW + pd.Timedelta(days=400)
    assert find_stale(memories(text), now=later).kind.tolist() == []


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("User's landlord is Mr. Okoro", "Correction: user's landlord is not Mr. Okoro but Mrs. Reyes"),
        ("Ich arbeite bei Siemens", "Ich arbeite nicht mehr bei Siemens, sondern bei Bosch"),
        ("User has a tortoise named Hektor", "Hektor, the tortoise, died in March"),
        ("The workshop is in Hull", "The workshop has relocated to Leeds from Hull"),
        ("phone: Pixel 6", "phone: Pixel 9, replaced Pixel 6"),
        ("city: Hull", "city: Leeds, was Hull"),
        ("manager: Dana", "manager: Ulf (Dana left)"),
        ("User is on the waiting list for a flat.", "User is off the waiting list."),
        ("User is on the free plan.", "Customer upgraded to the Pro plan from the free plan."),
        ("User will start at Acme in June.", "User started at Acme."),
        ("User is looking for a flat in Ghent.", "User found a flat in Ghent and signed the lease."),
    ],
)
def test_what_was_so_before_is_suggested_for_review(older, newer):
    found = find_superseded(memories(older, UNRELATED, newer))
    assert found.loc[found.id == "m0", "action"].tolist() == ["review"]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("User likes the marathon of Berlin.", "User finished the marathon of Berlin."),
        ("User worked at Nokia from 2001 to 2008.", "User works at Ericsson now."),
    ],
)
def test_no_deed_ends_a_liking_and_nothing_ends_the_past(older, newer):
    found = find_superseded(memories(older, UNRELATED, newer))
    assert "review" not in set(found["action"])


def test_a_former_habit_replaces_no_use_of_something_else():
    assert find_superseded(memories("User uses a Framework 13", UNRELATED, "User used to be shy")).empty


def test_a_mere_plan_is_superseded_when_it_is_done():
    assert find_superseded(memories("Engaged.", UNRELATED, "Got married."))["kind"].tolist() == ["fulfilled"]


def test_nothing_is_related_across_users():
    frame = memories("Likes tea", "Likes tea").assign(user_id=["u1", "u2"])
    assert find_exact_duplicates(frame).empty
    assert find_near_duplicates(frame).empty


texts = st.lists(
    st.sampled_from([text for pair in SAME + CHANGED for text in pair] + [UNRELATED]), max_size=7
)


@settings(max_examples=12)
@given(texts, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(some, chance):
    frame = memories(*some)
    shuffled = frame.sample(frac=1, random_state=chance.randrange(1000))
    before = frame.copy()
    for find in (find_exact_duplicates, find_near_duplicates, find_changed_values):
        assert related(find(frame)) == related(find(shuffled)), find
    pd.testing.assert_frame_equal(frame, before)


def test_an_audit_holds_all_of_them_and_an_empty_frame_none():
    audit = mf.audit_memories(
        memories(*SAME[0], *CHANGED[0], "Likes tea", "Likes tea"), now=NOW.to_pydatetime()
    )
    assert {"exact_duplicate", "near_duplicate", "changed_value"} <= set(audit.findings.check)
    assert mf.audit_memories(FrameBuilder(MEMORY_KINDS).frame()).findings.empty
