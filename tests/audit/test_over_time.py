"""Superseded and stale memories: what a newer memory takes back, and what has passed."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.pairs import scoring
from benchmarks.pairs.corpus import frame_of
from benchmarks.pairs.updates import updates
from memframe.audit.stale import find_stale
from memframe.audit.versions import find_versions
from tests.audit.corpora import rows_of

ROOT = Path(__file__).parents[2]
NOW = pd.Timestamp("2026-06-01", tz="UTC")
UNRELATED = "The boiler is serviced by a company from Graz every autumn"


def memories(*texts, first="2026-01-01"):
    """One memory a text, a day apart, of one user."""
    days = [day.isoformat() for day in pd.date_range(first, periods=len(texts), freq="D", tz="UTC")]
    return frame_of(texts, created_at=days, updated_at=days)


# ---- superseded

REPLACED = """
no_longer | Ada lives in Leeds. | Ada no longer lives in Leeds.
no_longer | The wifi at Ada's place is called lizard9. | Ada's wifi is no longer lizard9.
no_longer | Tom rents a flat in Leeds | Tom, who no longer rents a flat in Leeds, is looking for work
no_longer | Ich arbeite bei Siemens | Ich arbeite nicht mehr bei Siemens, sondern bei Bosch
switched | The workshop is in Hull | The workshop has relocated to Leeds from Hull
switched | User is on the free plan. | Customer upgraded to the Pro plan from the free plan.
switched | The rent of the flat is 640 euros | The rent of the flat was raised from 640 to 665 euros
instead | The landlord is Mr Okoro | The landlord is not Mr Okoro but Mrs Reyes
replaced | phone: Pixel 6 | phone: Pixel 9, replaced Pixel 6
replaced | city: Hull | city: Leeds, was Hull
used_to | Ada is vegetarian and asks for dishes without meat. | Ada used to be vegetarian.
ended | Ada rents a room in Riga near the station. | Ada gave up the room in Riga.
ended | User is on the waiting list for a flat. | User is off the waiting list.
changed_to | My name is Melvin. | My name has changed to Michael.
"""
CORRECTED = [
    "correction",
    "Parents' evening at Ada's school is on 23 May at 18:50.",
    "Correction: parents' evening at Ada's school is on 19 January.",
]
BOTH_TRUE = """
User likes the marathon of Berlin. | User finished the marathon of Berlin.
User uses a Framework 13 | User used to be shy
Tom no longer lives in Leeds | Ada no longer lives in Leeds
Tom drinks tea in the morning | Ada switched from tea to coffee in the morning
Ada no longer lives in Leeds | Ada moved from Leeds to Ghent
The server uses STDIO transport | The server could be switched from STDIO to HTTP
Do not change files without permission | Make small changes instead of rewriting entire files
Ada lives in Leeds | Ada moved last week
Update the relevant notes in MEMORY.md | Remove notes from MEMORY.md that are no longer relevant
The flats of Leeds have gardens | Tom writes to all tenants who no longer rent flats in Leeds
"""


@pytest.mark.parametrize(("kind", "older", "newer"), [*rows_of(REPLACED), CORRECTED])
def test_what_was_so_before_is_proposed_for_review(kind, older, newer):
    found = find_versions(memories(older, UNRELATED, newer))
    assert found[["kind", "id", "action"]].values.tolist() == [
        ["newest", "m2", "none"],
        ["replaced", "m0", "review"],
    ]
    assert found["related_id"].tolist()[1] == "m2"


@pytest.mark.parametrize(("older", "newer"), rows_of(BOTH_TRUE))
def test_what_may_still_hold_is_not_proposed(older, newer):
    assert scoring.replacements(memories(older, UNRELATED, newer)).empty


def test_what_a_later_memory_says_is_not_known_yet():
    frame = memories(*rows_of(REPLACED)[0][1:])
    assert len(find_versions(frame)) == 2
    assert find_versions(frame, now=pd.Timestamp("2026-01-01T12:00Z")).empty


def test_a_document_is_not_taken_back_by_a_sentence():
    long = "Ada lives in Leeds. " + "The notes of the day go on and on, about everything else. " * 20
    assert find_versions(memories(long, "Ada no longer lives in Leeds.")).empty


def test_what_is_proposed_in_a_store_is_right():
    told = updates(11)
    found = scoring.ranked(told, scoring.replacements(told.memories))
    assert found.cued.precision() >= 0.85
    assert found.cued.recall() >= 0.4
    assert found.beside == 0


def exact_scores():
    return [*scoring.replacements(updates(1, rounds=2).memories)["score"].map(float.hex)]


def test_scores_are_the_same_to_the_last_bit_in_whichever_order_sets_are_walked():
    command = [sys.executable, "-c", "from tests.audit.test_over_time import *; print(*exact_scores())"]
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"  # not that of this process
    other = subprocess.check_output(command, env=os.environ | {"PYTHONHASHSEED": seed}, cwd=ROOT, text=True)
    assert other.split() == exact_scores()


# ---- stale


EXPIRES = """
Call the vet on Friday. | 2024-03-05 | 2024-03-08
The tax return is due next month. | 2024-01-10 | 2024-02-29
Parking permit valid until March 2022. | 2021-06-01 | 2022-03-31
Moves to Ghent in three weeks | 2024-03-05 | 2024-03-27
Jeudi prochain, visite chez le notaire | 2024-03-05 | 2024-03-07
Cita el 3 de mayo | 2024-03-05 | 2024-05-03
The demo is due 2026-01-15 | 2025-12-01 | 2026-01-15
Away until 7/2/2026 | 2026-05-25 | 2026-07-02
Open 5/25/2026, due 6/2/2026 | 2026-05-25 | 2026-06-02
"""
TO_COME = r"""
Has a dentist appointment tomorrow
Morgen Zahnarzt um neun
Übermorgen kommt der Klempner
Mañana cita con la pediatra
The voucher is good until 30.06.2026
Passport photos are due in June
Grant deadline 15/06/2026
Trip on 3 May\n- Pack the blue bag\n- Tickets are in the drawer
Dates of the club\n- Garden party on 3 May\n- Choir on 8 May
"""
NOT_TO_COME = r"""
Was born in 1984
Guten Morgen sagt sie auf Dänisch
Por la mañana corre
On Saturday mornings she bakes
His motto is "tomorrow we sail"
Never leaves for tomorrow what can wait until Friday
The lease runs from 1 September
Third alert of the queue tonight
Third time this week that the bus is late
Total calls in 5 days: 766
No event in the calendar for 2026-05-02
See you tomorrow, and thanks
The new office has two floors.\n- The kitchen is on the left\n- The painter comes tomorrow
"""


@pytest.mark.parametrize(("text", "created", "until"), rows_of(EXPIRES))
def test_a_memory_is_stale_from_the_day_after_what_it_speaks_of(text, created, until):
    frame = memories(text, first=created)
    last = pd.Timestamp(until, tz="UTC")
    assert find_stale(frame, now=last).empty
    found = find_stale(frame, now=last + pd.Timedelta(days=1))
    assert found["kind"].tolist() == ["expired"]
    assert until in found["evidence"].iloc[0]


@pytest.mark.parametrize(("table", "kinds"), [(TO_COME, ["expired"]), (NOT_TO_COME, [])])
def test_times_to_come_expire_and_not_what_recurs_begins_or_is_over(table, kinds):
    for (text,) in rows_of(table):
        frame = memories(text.replace("\\n", "\n"))
        assert find_stale(frame, now=NOW + pd.Timedelta(days=400))["kind"].tolist() == kinds, text


def test_what_nobody_changed_for_years_is_counted_and_proposes_nothing():
    found = find_stale(memories("Likes tea", first="2020-01-01"), now=NOW)
    assert found[["kind", "severity", "action"]].values.tolist() == [["never_updated", "info", "none"]]


# ---- versions that are only reworded

REWORDED = (
    "Deploys run from main at 9:00, Ada approves them, rollback with the red button in the console.",
    "Deploys run from main at 10:30 now, Ada or Tom approve them, rollback with the red button in the console.",
)


def test_wordings_of_one_memory_are_a_group_with_the_newest_named():
    third = "Deploys run from main at noon, Tom approves them, rollback with the red button in the console."
    found = find_versions(memories(*REWORDED, UNRELATED, third))
    assert found["kind"].tolist()[0] == "newest"
    assert found["id"].tolist() == ["m3", "m1", "m0"]
    assert set(found["related_id"].dropna()) == {"m3"}
    assert found["group"].nunique() == 1
    assert found["action"].tolist() == ["none", "review", "review"]
    assert found["evidence"].str.contains(" has «").tolist() == [False, True, True]


def test_of_texts_that_speak_of_a_secret_no_words_are_shown():
    told = "The password hint for the boat is the lizard that mother kept beside the old stone well"
    found = find_versions(memories(told, UNRELATED, told.replace("lizard", "ferret") + " in Graz"))
    assert found["kind"].tolist() == ["newest", "rewritten"]
    assert not found["evidence"].str.contains("lizard|ferret").any()


LABELLED = """
SIP server: call.example.org (once the DNS record is there) | SIP server: **tel.example.org**
**Timezone:** EST, from Philadelphia | - **Timezone:** CET, moved from Philadelphia
| Web search | Brave, 2 keys, limited | | Web search | Ollama, Brave is free
Vista — movie rating app, waiting for review | Vista — movie rating app, live since March 2026
登录方式：微信扫码 | 登录方式：微信密码
"""


@pytest.mark.parametrize("pair", LABELLED.split("\n")[1:-1])
def test_another_text_behind_the_same_label_is_a_newer_version(pair):
    older, newer = pair.split(" | ", 1) if not pair.startswith("|") else pair.split(" | | ")
    frame = memories(older, UNRELATED, newer)
    found = find_versions(frame)
    assert found[["kind", "id"]].values.tolist() == [["newest", "m2"], ["value", "m0"]]
    assert older[found["start"][1] : found["end"][1]].strip() in older.partition(":")[2] or ":" not in older


NO_LABELS = {
    "a list of days": [f"Done: the {what} of the workshop" for what in ("roof", "door", "gate", "wall")],
    "another subject": ["Name: Ada Bell", "Name: the two words that a ship is painted with"],
    "an address": ["https://example.org/a b", "https://example.org/a c"],
}


@pytest.mark.parametrize("texts", NO_LABELS.values(), ids=NO_LABELS.keys())
def test_a_common_beginning_alone_makes_no_version(texts):
    assert find_versions(memories(*texts)).empty


@pytest.mark.parametrize(("title", "n_found"), [("About the user", 2), ("User", 2), ("Agent", 0), (None, 2)])
def test_one_label_under_titles_that_name_different_things_has_two_values(title, n_found):
    frame = memories("Name: Ada Bell", "Name: Ada Blum").assign(title=["User", title])
    assert len(find_versions(frame)) == n_found


@pytest.mark.parametrize(("title", "n_found"), [("Agents", 2), ("Rooms", 0), (None, 0)])
def test_a_label_under_one_heading_is_a_field_whatever_its_texts_say(title, n_found):
    older, newer = (
        "**Model:** Sparrow 3 by the cloud",
        "**Model:** a small local Falcon, Sparrow only for pictures",
    )
    frame = memories(older, newer).assign(title=["Agents", title])
    assert len(find_versions(frame)) == n_found


def test_states_of_one_label_are_versions_up_to_eight():
    state = "Feishu: tables of at most {} rows, plain words, links by {} and never by hand, drafts kept in {}"
    names = ("amber", "birch", "cedar", "damson", "elder", "fir", "gorse", "hazel", "ivy", "juniper")
    texts = [state.format(n, name, name) for n, name in enumerate(names, 11)]
    assert set(find_versions(memories(*texts[:6]))["kind"]) == {"newest", "value"}
    assert find_versions(memories(*texts)).empty


@pytest.mark.parametrize(("title", "kinds"), [("Desk", ["newest", "rewritten"]), ("Feeding", [])])
def test_under_headings_of_other_things_a_wording_has_to_be_closer(title, kinds):
    older = "The automatic feeder of the cat Theo runs by the button in the kitchen at noon and evening"
    newer = "The automatic feeder of the cat Theo runs by the button, pressed at noon through some phone"
    frame = memories(older, UNRELATED, newer).assign(title=["Desk", "Other", title])
    assert find_versions(frame)["kind"].tolist() == kinds


def test_what_has_no_word_with_a_value_is_no_version_of_its_label():
    assert find_versions(memories("Is: was", "Is: the")).empty


def test_two_texts_of_one_moment_with_one_label_are_a_list():
    frame = memories("SIP server: call.example.org", "SIP server: **tel.example.org**")
    assert len(find_versions(frame)) == 2
    assert find_versions(frame.assign(created_at=frame["created_at"][0])).empty
    assert find_versions(frame.assign(created_at=frame["created_at"].where(frame["id"].isna()))).empty


LOOKS_REWORDED = {
    "of one moment": pd.Timestamp("2026-01-01", tz="UTC"),
    "without a time": pd.NaT,
}


@pytest.mark.parametrize("moment", LOOKS_REWORDED.values(), ids=LOOKS_REWORDED.keys())
def test_items_of_one_list_are_no_versions(moment):
    one, other = (text.replace(" now", "").replace("10:30", "9:00") for text in REWORDED)
    frame = memories(one, other).assign(created_at=moment, updated_at=moment)
    assert find_versions(frame).empty


def test_what_is_said_of_another_person_or_in_few_words_is_no_version():
    of_two = [
        text.replace("Ada", name).replace(" or Tom", "")
        for text, name in zip(REWORDED, ("Ada", "Tom"), strict=True)
    ]
    assert find_versions(memories(*of_two)).empty
    assert find_versions(memories("i like to read books", "i like to read old books")).empty
    address = "Clone https://git.example.org/ada-bell/workshop-tools/{}"
    assert find_versions(memories(address.format("lathe"), address.format("saws"))).empty


def test_a_log_is_no_memory_with_many_versions():
    lines = [
        f"Checked the {door} door of the workshop in Leeds: lock fine, light fine, alarm armed, camera {n}."
        for n, door in enumerate(
            [
                "north",
                "south",
                "east",
                "west",
                "front",
                "back",
                "side",
                "upper",
                "lower",
                "cellar",
                "garden",
                "roof",
            ]
        )
    ]
    assert find_versions(memories(*lines)).empty


def test_headings_do_not_make_bullets_alike():
    heading = "Major achievement of the quarter, dashboard context switching fully implemented everywhere"
    bullets = [
        "the tabs reload",
        "tests were green on Monday",
        "Ada wrote the migration",
        "cache keys hold the user",
    ]
    assert find_versions(memories(*(f"{heading}: {bullet}" for bullet in bullets))).empty


def test_times_at_both_ends_of_nanoseconds_are_read():
    far = [pd.Timestamp.max.tz_localize("UTC"), pd.Timestamp.min.tz_localize("UTC") + pd.Timedelta(days=1)]
    frame = memories("Likes tea").assign(created_at=far[0], updated_at=far[1])
    assert find_stale(frame, now=NOW).empty
