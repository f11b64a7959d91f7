"""The desk's answers to its page, without a browser."""

import pandas as pd
import pytest
from ipywidgets import Widget

import memframe as mf
from memframe.cleanup.proposals import PLANNED
from memframe.review.detail import ACCEPTING, show_proposal
from memframe.review.widget import Desk

CANARY = "Canary 81"


@pytest.fixture
def review():
    contents = [
        f"{CANARY} likes tea",
        f"{CANARY} likes tea",
        f"{CANARY} likes tea",
        "Door code: 2580#",
        "mail a@b.example",
    ]
    return mf.review(mf.audit_memories(pd.DataFrame({"id": list("abcde"), "content": contents})))


@pytest.fixture
def ask(review):
    """Send what a page would send; return the answer to it, or the error."""
    desk = Desk(review)
    sent = []
    desk.send = sent.append

    def make(what, /, **details):
        desk._receive(desk, {"ask": what, "view": "v", "to": 1, **details}, [])
        (back,) = (each for each in sent if each.get("to") == 1)
        sent.clear()
        return back.get("answer") or back["error"]

    def make_about(what, place=0, **details):
        shown = make("show", place=place)
        return make(what, proposal=shown["id"], seen=shown["seen"], **details)

    make.desk, make.about = desk, make_about
    make("settle", filter={}, search="")
    yield make
    Widget.close_all()


def test_what_accepting_does_is_said_of_every_action():
    assert {*PLANNED, "none"} <= ACCEPTING.keys()


def test_a_list_keeps_its_order_until_it_is_settled(review, ask):
    rows = ask("page", start=0, n=50)["rows"]
    ask.about("accept", note="")
    again = ask("page", start=0, n=50)["rows"]
    assert [row["id"] for row in again] == [row["id"] for row in rows]
    assert again[0]["decision"] == "accepted"
    ask("settle", filter={}, search="")
    assert ask("page", start=0, n=50)["rows"][-1]["id"] == rows[0]["id"]


def test_a_group_that_is_opened_takes_its_place_in_the_list(review, ask):
    rows = ask("page", start=0, n=50)["rows"]
    place = next(n for n, row in enumerate(rows) if "2 memories" in row["label"])
    assert ask.about("split", place)["n"] == len(rows) + 1
    again = ask("page", start=0, n=50)["rows"]
    assert [row["label"][-8:] for row in again[place : place + 2]] == ["1 memory"] * 2


def test_filters_and_words_find_and_count(ask):
    summary = ask("settle", filter={"check": ["secret"]}, search="")
    assert summary["n_shown"] == 1
    checks = next(group for group in summary["facets"] if group["name"] == "check")
    assert sum(value["n"] for value in checks["values"]) == summary["n_total"]
    assert ask("settle", filter={}, search="DOOR code")["n_shown"] == 1


def test_secrets_are_masked_until_they_are_asked_for_and_texts_are_no_state(ask):
    ask("settle", filter={"check": ["secret"]}, search="")
    assert "2580" not in str(ask("show", place=0))
    assert "2580" in str(ask.about("describe", reveal=True))
    assert CANARY not in str(ask.desk.get_state())


def test_all_that_a_filter_shows_is_decided_once_somebody_says_yes_and_undone_by_one_call(review, ask):
    review.reject(review.queue[review.queue.check == "personal_data"])
    ask("settle", filter={"decision": ["open"]}, search="")
    asked = ask("weigh_all", what="reject")
    assert (asked["n"], asked["heading"]) == (2, "Reject 2 proposals about 3 memories?")
    assert ask("decide_all", what="reject", note="", seen="0") == (
        "what would be decided has changed since you were asked: ask again"
    )
    assert sorted(review.queue.decision) == ["", "", "rejected"]
    assert "Rejected 2" in ask("decide_all", what="reject", note="noise", seen=asked["seen"])["sentence"]
    assert review.queue.decision.tolist() == ["rejected"] * 3
    assert ask("weigh_all", what="reject")["n"] == 0
    ask("undo")
    assert sorted(review.queue.decision) == ["", "", "rejected"]
    asked = ask("weigh_all", what="accept")
    assert asked["lines"][0] == "Exact duplicates (copy): 1"
    assert asked["lines"][1].startswith("1 others stay open")
    ask("decide_all", what="accept", note="", seen=asked["seen"])
    assert review.queue[review.queue.decision == "accepted"].check.tolist() == ["exact_duplicate"]


def test_equal_texts_are_shown_once_and_what_would_be_lost_is_named(review, ask):
    ask("settle", filter={"check": ["exact_duplicate"]}, search="")
    stays, goes = ask("show", place=0)["members"]
    assert (len(stays["ids"]), len(goes["ids"])) == (1, 2)
    assert ask("show", place=0)["losses"] == ""
    memories = pd.DataFrame(
        {"id": ["a"], "content": ["The parcel 4711 arrives on 5 August."], "created_at": "2023-08-01"}
    )
    memories["created_at"] = pd.to_datetime(memories["created_at"], utc=True)
    other = mf.review(mf.audit_memories(memories))
    assert show_proposal(other, other.queue.proposal[0]).losses == "No other memory holds: 4711; 5 August."


def test_errors_are_sentences(ask):
    assert "nothing to undo" in ask("undo")
    assert "reload the page" in ask("dance")


def show_only(contents, check, **options):
    memories = pd.DataFrame(
        {
            "id": [f"m{n}" for n in range(len(contents))],
            "content": contents,
            "created_at": pd.date_range("2024-01-01", periods=len(contents), freq="MS", tz="UTC"),
        }
    )
    desk = mf.review(mf.audit_memories(memories))
    (one, *_) = [one for one in desk.proposals if one.first.check == check]
    return show_proposal(desk, one.id, **options)


def texts_of(shown, *kinds):
    return [
        "".join(piece.text for piece in field.pieces if not kinds or piece.kind in kinds)
        for member in shown.members
        for field in member.fields
    ]


def test_a_secret_of_which_only_a_part_differs_is_masked_as_a_whole():
    contents = [
        f"My credit card {number} is for the travel to the lake and the boat, and is paid by the bank."
        for number in ("4539 1488 0343 6467", "4539 1488 9999 1110")
    ]
    for text in texts_of(show_only(contents, "version")):
        assert not any(letter.isdigit() for letter in text)


def test_texts_that_differ_in_a_masked_secret_are_not_said_to_be_the_same():
    contents = [
        f"My credit card {number} has been lost, Can I request you to block it."
        for number in ("4539148803436467", "4539148899991110", "4539148812345675")
    ]
    shown = show_only(contents, "version")
    assert len({*texts_of(shown)}) == 1
    assert [len(member.ids) for member in shown.members] == [1, 1, 1]


LONG = "The lake is calm in the morning, and the boat of Ada waits for her. " * 20


def test_a_long_text_is_folded_around_what_changes_until_it_is_asked_for():
    content = f"{LONG}Write to ada@lake.example. {LONG}"
    (folded,) = texts_of(show_only([content], "personal_data"))
    assert len(folded) < 700
    assert folded.count("characters") == 2
    (whole,) = texts_of(show_only([content], "personal_data", whole=True), "same", "removed")
    assert whole == content


def test_a_text_that_goes_for_what_it_says_is_shown_as_a_whole_with_what_was_found():
    content = f"The order arrives on 24 June 2024. {LONG}"
    shown = show_only([content], "stale")
    assert texts_of(shown) == [content]
    assert texts_of(shown, "found") == ["24 June 2024"]


def test_all_that_was_found_in_a_memory_is_said():
    shown = show_only(
        ["The order arrives on 24 June 2024.", "Orders arrive", "The order arrives on 24 June 2024."],
        "exact_duplicate",
    )
    assert any("Stale memories" in sentence for sentence in shown.others)


def test_kinds_beyond_those_that_are_listed_are_counted(monkeypatch, ask):
    monkeypatch.setattr("memframe.review.detail.MAX_KINDS", 1)
    assert ask("weigh_all", what="reject")["lines"][1] == "other kinds: 2"


def test_a_reason_that_is_a_value_alone_is_a_sentence():
    shown = show_only(
        ["The rent of the flat in Leeds is 640 pounds.", "The rent of the flat in Leeds is 665 pounds."],
        "version",
    )
    assert shown.reason == "The newer memory has another value: 640 → 665"


def test_of_many_tags_the_first_are_named():
    memories = pd.DataFrame(
        {"id": ["m1"], "content": ["mail a@b.example"], "tags": [tuple(f"tag{n}" for n in range(1_000))]}
    )
    desk = mf.review(mf.audit_memories(memories))
    (member,) = show_proposal(desk, desk.queue.proposal[0]).members
    assert member.facts[0].endswith("tag11, and 988 more")


def test_the_desk_says_what_follows_once_all_are_decided(review, ask):
    assert len(ask("settle", filter={}, search="")["preview"]) == 1
    review.reject(review.queue)
    summary = ask("summary", filter={}, search="", proposal="")
    assert summary["preview"][-1] == "All are decided: review.plan(access) makes the plan."
