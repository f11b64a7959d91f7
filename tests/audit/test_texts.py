"""Checks that read one memory at a time: figures on corpora that others could have written, and exact places."""

import time
import timeit
from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memframe as mf
from memframe.audit import find_junk, find_personal_data, find_secrets
from memframe.audit.junk.moments import _TECHNICAL
from tests.audit import adversarial, junk_corpus, personal_corpus, secret_corpus, seen, unseen
from tests.audit.figures import frame_of, record_figures, span_figures
from tests.pairs.corpus import corpus as facts

FILE_NAME = _TECHNICAL[0]
LISTS = adversarial.read_lists()
LOCOMO = Path(__file__).parents[3] / "shared" / "data" / "locomo_memories.jsonl"
PROJECT_NOTES = Path(__file__).with_name("project_notes.txt").read_text("utf-8").splitlines()
"""What agents and developers note down about their work; written to measure with, no rule was made for a line."""

BY_WORDING = (
    "status_report", "system_prompt", "feedback_loop", "task_state", "session_noise", "tool_output", "template",
    "near_empty",
)  # fmt: skip
SEED_WORDS = files("memframe.audit").joinpath("rules", "seed_words.txt").read_text("ascii").split()


def found_in(find, texts):
    """Which of the texts anything is found in."""
    texts = list(texts)
    return {texts[int(place)] for place in find(frame_of(texts))["id"]}


@pytest.mark.parametrize("module", [seen, unseen], ids=["seen", "unseen"])
@pytest.mark.parametrize(("part", "recall"), [("told", 0.85), ("keys", 0.95)])
def test_secrets_are_found_and_clean_memories_left_alone(module, part, recall):
    made = secret_corpus.make_corpus(
        module.TOLD, module.KEYS, module.CLEAN, seed=3, seed_words=SEED_WORDS, rounds=2
    )
    texts = made[part] + made["clean"]
    figures = record_figures(
        [bool(text.secrets) for text in texts], find_secrets(frame_of(t.text for t in texts))
    )
    assert figures.precision() >= 0.97
    assert figures.recall() >= recall


def test_keys_of_many_makers_are_found():
    keys = adversarial.vendor_keys(1)
    found = found_in(find_secrets, keys.values())
    assert {name for name, text in keys.items() if text not in found} <= adversarial.NOT_FOUND


@pytest.mark.parametrize("name", ["clean", "code"])
def test_what_only_speaks_of_secrets_holds_none(name):
    assert found_in(find_secrets, LISTS[name]) == set()


def test_secrets_told_in_odd_ways_are_found_where_they_stand():
    told = adversarial.pairs(LISTS["told"])
    found = find_secrets(frame_of(text for text, _ in told))
    values = [told[int(row.id)][0][row.start : row.end] for row in found.itertuples()]
    hits = {
        int(place) for place, value in zip(found["id"], values, strict=True) if told[int(place)][1] in value
    }
    assert hits == set(range(len(told)))


def test_personal_data_is_found_by_its_place():
    texts = personal_corpus.make_corpus(unseen.PERSONAL, unseen.NOT_PERSONAL, seed=7, rounds=4)
    figures = span_figures(
        [text.spans for text in texts], find_personal_data(frame_of(t.text for t in texts))
    )
    assert figures.f1() >= 0.97
    assert figures.f1("phone") >= 0.88


def test_telephone_numbers_of_many_countries_are_found_where_the_text_says_so():
    found = find_personal_data(frame_of(f"Tel: {phone}" for phone in LISTS["phones"]))
    assert found["kind"].eq("phone").all()
    assert [LISTS["phones"][int(row.id)] for row in found.itertuples()] == LISTS["phones"]
    assert {(row.start, row.end - len(LISTS["phones"][int(row.id)])) for row in found.itertuples()} == {
        (5, 5)
    }


def test_other_numbers_are_no_personal_data():
    assert found_in(find_personal_data, LISTS["not_personal"]) == set()


def test_each_kind_of_number_is_told_from_the_others():
    labelled = adversarial.pairs(LISTS["personal"])
    texts = [text for text, _, _ in labelled]
    found = find_personal_data(frame_of(texts))
    spans = {
        (texts[int(row.id)], row.kind, texts[int(row.id)][row.start : row.end]) for row in found.itertuples()
    }
    assert set(labelled) <= spans


@pytest.mark.parametrize("module", [seen, unseen], ids=["seen", "unseen"])
def test_junk_is_told_from_good_memories_that_look_like_it(module):
    store = junk_corpus.make_store(module.JUNK, module.GOOD, seed=1)
    found = find_junk(frame_of(text for text, _ in store))
    figures = record_figures([is_junk for _, is_junk in store], found)
    assert figures.precision() >= 0.98
    assert figures.recall() >= 0.8


def test_only_what_shows_without_understanding_is_proposed_for_deletion():
    texts = [text for corpus in (junk_corpus, seen, unseen) for some in corpus.JUNK.values() for text in some]
    texts += [text for name, some in LISTS.items() if name.startswith("junk_") for text in some]
    found = find_junk(frame_of(texts))
    assert {*zip(found["kind"], found["action"], strict=True)} == {
        ("empty", "delete"), ("heartbeat", "delete"), *((kind, "review") for kind in BY_WORDING)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("HEARTBEAT_OK", "delete"),
        ("heartbeat ok 2026-01-02T03:00:00Z", "delete"),
        ("[2025-02-03 10:00] heartbeat", "delete"),
        ("NO_REPLY", "delete"),
        ("Heartbeat failed at 03:00", "review"),
        ("Heartbeat 30 s", "review"),
        ("heartbeat", "review"),
        ("ping pong", "review"),
        ("...", "delete"),
        ("  \n-----", "delete"),
        ("🥜", "review"),
        ("n/a", "review"),
    ],
)
def test_heartbeats_and_empty_rows_are_told_from_what_may_say_something(text, action):
    found = find_junk(frame_of([text]))
    assert [*found["action"]] in ([action], [] if action == "review" else None)


@pytest.mark.parametrize(
    "beside", [{"title": "Vegetarian"}, {"summary": "Allergic to nuts"}, {"tags": ("nut allergy",)}]
)
def test_a_row_without_content_that_says_something_elsewhere_is_not_deleted(beside):
    frame = pd.DataFrame([{"id": "m1", "content": "-", "title": None, "summary": None, "tags": ()} | beside])
    assert find_junk(frame)["action"].tolist() == ["review"]
    assert find_junk(frame.assign(title=None, summary=None, tags=[()]))["action"].tolist() == ["delete"]


@pytest.mark.parametrize("name", ["output", "manners", "elsewhere", "sayings", "asked"])
def test_what_machines_print_and_people_say_in_passing_is_junk(name):
    texts = LISTS[f"junk_{name}"]
    assert found_in(find_junk, texts) == set(texts)


def test_good_memories_close_to_junk_survive():
    assert found_in(find_junk, LISTS["good"]) == set()


def test_a_store_that_is_nearly_all_junk_keeps_its_good_memories():
    store = junk_corpus.overrun_store(seed=1, n=1200)
    found = find_junk(frame_of(text for text, _ in store))
    named = {int(place) for place in found["id"]}
    assert not named & {row for row, (_, junk) in enumerate(store) if not junk}
    assert len(named) >= 0.95 * sum(junk for _, junk in store)
    assert "repeated" in set(found["kind"])


def test_one_of_many_equal_memories_stays():
    found = find_junk(frame_of(["User prefers Vim and lives in Hull"] * 668))
    assert (found["action"] == "review").sum() == 1
    assert (found["action"] == "merge").sum() == 667
    assert found["related_id"].dropna().nunique() == 1


@pytest.mark.parametrize(
    "other", ["Ada is in Hull at +4", "Ada is in Hull at 4!", "ADA IS IN HULL AT 4", "Ada is in Kent at 4"]
)
def test_what_differs_from_a_repeat_in_a_sign_is_for_review(other):
    found = find_junk(frame_of(["Ada is in Hull at 4"] * 9 + [other] * 2))
    assert set(found["action"][found["id"].isin(["9", "10"])]) <= {"review"}


def test_no_project_note_is_proposed_for_deletion():
    audit = mf.audit_memories(frame_of(PROJECT_NOTES))
    assert len(audit.memories) >= 90
    assert not audit.findings["action"].isin(["delete", "merge"]).any()


def test_no_project_note_is_a_secret():
    assert found_in(find_secrets, PROJECT_NOTES) == set()


@pytest.mark.skipif(not LOCOMO.exists(), reason="the LoCoMo memories are not beside the project")
def test_facts_that_people_told_are_neither_deleted_by_wording_nor_secrets():
    memories = pd.read_json(LOCOMO, lines=True)
    memories.insert(0, "id", memories.index.astype(str))
    audit = mf.audit_memories(memories)
    assert len(memories) == 1210
    assert audit.rows("junk").empty
    assert audit.rows("secret").empty
    assert set(audit.findings["check"][audit.findings["action"] == "delete"]) <= {"exact_duplicate"}


def test_nothing_is_found_in_facts_about_people():
    memories = facts(1000, seed=3, copies=0, changes=0).memories
    for find in (find_secrets, find_personal_data, find_junk):
        assert find(memories).empty, find


LETTERS = st.text(st.sampled_from("aé👩‍🌾🎻ñ\u0301\r\n中 .,"), max_size=12)


@given(LETTERS, LETTERS)
@settings(max_examples=25)
def test_places_count_characters_whatever_stands_around(before, after):
    texts = [f"{before} Password: Hunter2!x\n{after}", f"{before} mail ada@example.org\n{after}"]
    for find, text, value in zip(
        (find_secrets, find_personal_data), texts, ("Hunter2!x", "ada@example.org"), strict=True
    ):
        assert value in {text[row.start : row.end] for row in find(frame_of([text])).itertuples()}


def test_lone_surrogates_keep_the_places():
    text = "\ud83d Password: Hunter2!x"
    found = find_secrets(pd.DataFrame({"id": ["m1"], "content": pd.Series([text], dtype=object)}))
    assert text[found["start"].item() : found["end"].item()] == "Hunter2!x"


def test_titles_and_summaries_are_read_too():
    rows = {"id": ["m1"], "title": ["PIN 4711"], "summary": ["call 030 23125 066"], "content": ["hunter2"]}
    assert find_secrets(pd.DataFrame(rows))[["field", "kind"]].values.tolist() == [["title", "pin"]]
    assert find_personal_data(pd.DataFrame(rows))["field"].tolist() == ["summary"]


def test_a_title_says_what_the_content_is():
    found = find_secrets(pd.DataFrame({"id": ["m1"], "title": ["Wifi password"], "content": ["hunter2"]}))
    assert found[["field", "start", "end"]].values.tolist() == [["content", 0, 7]]


def test_long_texts_take_time_in_proportion():
    """Patterns that go back over a text again and again would not come to an end here."""
    for piece in (
        "password ",
        "1 ",
        "a@",
        "://:",
        "(",
        "-----BEGIN ",
        "is is is ",
        "You are ",
        "Memory stored: ",
        "0x",
        "+1-",
        "word ",
        "Preference: undefined ",
    ):
        frame = frame_of([piece * 3_000])
        for find in (find_secrets, find_personal_data, find_junk):
            find(frame)


def test_a_gap_behind_a_secret_takes_time_in_proportion():
    def seconds(n_blanks):
        value = Value(" " * n_blanks + "x", None, "is", "password", "", "")
        return min(timeit.repeat(lambda: is_amount(value, 0), number=10, repeat=3))

    assert seconds(240) < 50 * seconds(24), (
        "twice as many would take eight times as long, if all ways were tried"
    )


def test_of_a_long_text_the_beginning_is_read_and_the_rest_is_said_to_be_unread():
    beginning, fact = "the password is hunter2-Blue9. ", " Allergic to penicillin."
    texts = [
        beginning + "a " * 60_000 + fact,
        "heartbeat ok " * 9_000 + fact,
        "b " * 60_000,
        "b " * 60_000 + "c",
    ]
    audit = mf.audit_memories(frame_of(texts))
    assert set(audit.rows("secret")["id"]) == {"0"}
    assert audit.rows("junk").empty, "the fact at the end would go with the rest"
    assert audit.rows("near_duplicate").empty
    assert "Text beyond the first 100,000 characters of a field, in 4 memories." in audit.not_checked
    assert any(
        words.startswith("Contents longer than 100,000 characters, in 4") for words in audit.not_checked
    )


def test_equal_long_texts_are_copies_and_longer_ones_are_none():
    long = "likes tea " * 12_000
    found = mf.audit_memories(frame_of([long, long, long + "and milk"])).rows("exact_duplicate")
    assert found["id"].tolist() == ["0", "1"]


def test_a_run_of_hyphens_is_no_name_of_a_file_sought_from_each_of_them():
    def seconds(n):
        return min(
            timeit.repeat(lambda: FILE_NAME.search("-" * n), number=1, repeat=3, timer=time.process_time)
        )

    assert seconds(32_000) <= 3 * seconds(16_000) + 0.02
