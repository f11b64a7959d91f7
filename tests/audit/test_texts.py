"""Checks that read one memory at a time: figures on corpora that others could have written, and exact places."""

import timeit
from importlib.resources import files

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memframe.audit import find_junk, find_personal_data, find_secrets
from memframe.audit.secret.values import Value, is_amount
from tests.audit import adversarial, junk_corpus, personal_corpus, secret_corpus, seen, unseen
from tests.audit.figures import frame_of, record_figures, span_figures
from tests.pairs.corpus import corpus as facts

LISTS = adversarial.read_lists()
SEED_WORDS = files("memframe.audit.secret").joinpath("seed_words.txt").read_text("ascii").split()


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
    assert record_figures([is_junk for _, is_junk in store], found).precision() >= 0.98
    gone = {int(place) for place in found["id"][found["action"].isin(["delete", "merge"])]}
    assert len(gone & {row for row, (_, junk) in enumerate(store) if junk}) >= 0.8 * sum(
        junk for _, junk in store
    )
    assert not gone & {row for row, (_, junk) in enumerate(store) if not junk}


@pytest.mark.parametrize("name", ["output", "manners", "elsewhere", "sayings", "asked"])
def test_what_machines_print_and_people_say_in_passing_is_junk(name):
    texts = LISTS[f"junk_{name}"]
    assert found_in(find_junk, texts) == set(texts)


def test_good_memories_close_to_junk_survive():
    assert found_in(find_junk, LISTS["good"]) == set()


def test_a_store_that_is_nearly_all_junk_keeps_its_good_memories():
    store = junk_corpus.overrun_store(seed=1, n=1200)
    found = find_junk(frame_of(text for text, _ in store))
    gone = {int(place) for place in found["id"][found["action"].isin(["delete", "merge"])]}
    assert not gone & {row for row, (_, junk) in enumerate(store) if not junk}
    assert len(gone) >= 0.95 * sum(junk for _, junk in store)
    assert "repeated" in set(found["kind"])


def test_one_of_many_equal_memories_stays():
    found = find_junk(frame_of(["User prefers Vim and lives in Hull"] * 668))
    assert (found["action"] == "review").sum() == 1
    assert (found["action"] == "merge").sum() == 667
    assert found["related_id"].dropna().nunique() == 1


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
