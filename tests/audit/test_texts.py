"""Checks that read one memory at a time: figures on corpora that others could have written, and exact places."""

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memframe as mf
from benchmarks.pairs.corpus import corpus as facts
from memframe.audit import find_junk, find_personal_data, find_secrets
from memframe.audit.text import fold
from tests.audit import corpora
from tests.audit.figures import frame_of, record_figures, span_figures
from tests.timing import grows_with

LISTS = corpora.ADVERSARIAL
LOCOMO = Path(__file__).parents[3] / "shared" / "data" / "locomo_memories.jsonl"


def found_in(find, texts):
    """Which of the texts anything is found in."""
    texts = list(texts)
    return {texts[int(place)] for place in find(frame_of(texts))["id"]}


@pytest.mark.parametrize("group", [corpora.seen, corpora.unseen], ids=["seen", "unseen"])
@pytest.mark.parametrize(("part", "recall"), [("told", 0.85), ("keys", 0.95)])
def test_secrets_are_found_and_clean_memories_left_alone(group, part, recall):
    made = corpora.make_secrets(group, seed=3, rounds=2)
    texts = made[part] + made["clean"]
    figures = record_figures(
        [bool(text.spans) for text in texts], find_secrets(frame_of(t.text for t in texts))
    )
    assert figures.precision() >= 0.97
    assert figures.recall() >= recall


@pytest.mark.parametrize(
    ("name", "recall"), [("one", 0.93), ("two", 0.86), ("three", 0.92), ("four", 0.84), ("five", 0.97)]
)
def test_secrets_of_a_batch_are_found_however_they_are_told(name, recall):
    texts = corpora.read_batch(name).secrets()
    figures = record_figures([told for _, told in texts], find_secrets(frame_of(text for text, _ in texts)))
    assert figures.precision() >= 0.99
    assert figures.recall() >= recall


@pytest.mark.parametrize("name", corpora.BATCHES)
def test_personal_data_of_a_batch_is_found(name):
    batch = corpora.read_batch(name)
    texts = batch.personal + batch.nothing
    figures = span_figures(
        [text.spans for text in texts], find_personal_data(frame_of(text.text for text in texts))
    )
    assert figures.f1() >= 0.97
    assert figures.f1("phone") >= 0.88


def test_keys_of_many_makers_are_found():
    keys = corpora.vendor_keys(1)
    found = found_in(find_secrets, keys.values())
    assert {name for name, text in keys.items() if text not in found} <= {*LISTS["keys not found"]}


@pytest.mark.parametrize("name", ["clean", "code"])
def test_what_only_speaks_of_secrets_holds_none(name):
    assert found_in(find_secrets, LISTS[name]) == set()


def test_secrets_told_in_odd_ways_are_found_where_they_stand():
    told = corpora.pairs(LISTS["told"])
    found = find_secrets(frame_of(text for text, _ in told))
    values = [told[int(row.id)][0][row.start : row.end] for row in found.itertuples()]
    hits = {
        int(place) for place, value in zip(found["id"], values, strict=True) if told[int(place)][1] in value
    }
    assert hits == set(range(len(told)))


def test_personal_data_is_found_by_its_place():
    texts = corpora.make_personal(corpora.unseen.PERSONAL, corpora.unseen.NOT_PERSONAL, seed=7, rounds=4)
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
    labelled = corpora.pairs(LISTS["personal"])
    texts = [text for text, _, _ in labelled]
    found = find_personal_data(frame_of(texts))
    spans = {
        (texts[int(row.id)], row.kind, texts[int(row.id)][row.start : row.end]) for row in found.itertuples()
    }
    assert set(labelled) <= spans


def test_no_project_note_is_a_secret():
    assert found_in(find_secrets, corpora.PROJECT_NOTES) == set()


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


PIECES = """password |1 |a@|://:|(|-----BEGIN |is is is |0x|+1-|word |key=|door code |one |abandon |You are |\
security question |what is your first pet |curl -u a:|user: a, pass: |1.1.1.1 |0041 |Memory stored: |the pin is"""


@pytest.mark.parametrize("find", [find_secrets, find_personal_data, find_junk])
def test_twice_as_long_a_text_takes_twice_as_long(find):
    for piece in (*PIECES.split("|"), "the pin is " + " " * 60):
        short, long = (frame_of([(piece * n)[:n]]) for n in (3_000, 6_000))
        assert grows_with(find, short, long, most=2.8, floor_s=0.01), piece


def test_of_a_long_text_the_beginning_is_read_and_the_rest_is_said_to_be_unread():
    beginning, fact = "the password is hunter2-Blue9. ", " Allergic to penicillin."
    texts = [
        beginning + "a " * 60_000 + fact,
        "heartbeat ok " * 9_000 + fact,
        "b " * 60_000,
        "b " * 60_000 + "c",
    ]
    audit = mf.audit_memories(frame_of(texts), checks=["secret", "junk", "near_duplicate"])
    assert set(audit.rows("secret")["id"]) == {"0"}
    assert audit.rows("junk").empty, "the fact at the end would go with the rest"
    assert audit.rows("near_duplicate").empty
    copies = mf.audit_memories(frame_of([*texts[2:], texts[2]]), checks=["exact_duplicate"])
    assert copies.rows("exact_duplicate")["id"].tolist() == ["0", "2"]
    assert "Text beyond the first 100,000 characters of a field, in 4 memories." in audit.not_checked
    assert any(
        words.startswith("Contents longer than 100,000 characters, in 4") for words in audit.not_checked
    )


@given(st.text(st.sampled_from("aé\uff14@\uff20\ufb01½㍿\u200b\u00ad\ufe0f\U000e0041ガ가 .")))
def test_each_character_of_a_folded_text_leads_back_to_the_one_that_it_comes_from(text):
    folded = fold(text)
    assert len(folded.offsets) == len(folded.text)
    assert all(
        letter in fold(text[slice(*folded.span(place, place + 1))]).text
        for place, letter in enumerate(folded.text)
    )
    kept = {*folded.offsets}
    assert all(not fold(letter).text for place, letter in enumerate(text) if place not in kept)
