"""Plans as people see them: what differs is marked, what is long is cut, and nothing in a memory gets its way."""

import json
import random
import re
from html.parser import HTMLParser

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

import memframe as mf
from memframe.plan.change import MASK, Change
from memframe.plan.plan import undo_note
from memframe.plan.render import MAX_CHANGED_CHARS, MAX_SHOWN, DiffSpan, shorten, spans_of
from tests.plan.test_plan import CHANGES, TEXT, plan_with

WORDS = st.lists(st.sampled_from(["tea", "boat", " ", " ", ".", "\n", "Ada"]), max_size=12).map("".join)
OUR_TAGS = {*re.findall(r"\w+", "div style b span table colgroup col thead tbody tr th td del ins")}
OUR_ATTRIBUTES = {"class", "style", "rowspan", "colspan", "title"}
SGR = re.compile(r"\x1b\[(?:1|7|27|31|32|33|36|0)m")
NASTY = "<script>alert('x')</script> & \"quoted\" \x1b[2Jcleared \u202eturned \x07 \U000e0041"


class Page(HTMLParser):
    """The tags, attributes and text of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.texts = set(), set(), []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.texts.append(data)


def patch(before, after, **fields):
    return Change(action="patch", id="m1", row=1, before=before, after=after, **fields)


# What differs


@given(before=WORDS | TEXT, after=WORDS | TEXT)
def test_spans_are_the_text_and_what_is_the_same_is_the_same_on_both_sides(before, after):
    was, becomes = spans_of(before, after)
    assert "".join(span.text for span in was) == before
    assert "".join(span.text for span in becomes) == after
    same = ["".join(span.text for span in side if not span.is_changed) for side in (was, becomes)]
    assert same[0] == same[1]
    assert (before == after) == (not any(span.is_changed for span in was + becomes))


@pytest.mark.parametrize(
    ("before", "after", "gone", "come"),
    [
        ("Ada likes tea.", "Ada likes green tea.", [], ["green "]),
        ("She paid 40 euros", "She paid 45 euros", ["40"], ["45"]),
        ("one two three", "one 2 3", ["two three"], ["2 3"]),
        (("tea", "home"), ("boat", "home"), ["tea"], ["boat"]),
        (0.1 + 0.2, 0.3, ["0.30000000000000004"], ["0.3"]),
        (None, 3.0, [], ["3"]),
        ("猫が好き", "犬が好き", ["猫が好き"], ["犬が好き"]),
    ],
)
def test_the_words_that_differ_are_marked(before, after, gone, come):
    was, becomes = spans_of(before, after)
    assert [span.text for span in was if span.is_changed] == gone
    assert [span.text for span in becomes if span.is_changed] == come


def test_long_text_is_cut_around_the_difference():
    words = [f"word{number}" for number in range(3000)]
    before = " ".join(words)
    after = " ".join([*words[:1500], "NEW", *words[1501:]])
    was, becomes = map(shorten, spans_of(before, after))
    assert [span.text for span in becomes if span.is_changed] == ["NEW"]
    shown = "".join(span.text for span in was)
    assert "word1499 word1500 word1501" in shown
    assert len(shown) < 160
    assert shown.startswith("…")
    assert shown.endswith("…")


def test_a_long_difference_is_cut_in_its_middle():
    ((gone,), _) = map(shorten, spans_of("a" * 2000, "b"))
    assert gone.text.startswith("a" * 100)
    assert "1,600 characters" in gone.text
    assert len(gone.text) < MAX_CHANGED_CHARS + 50


def test_long_texts_that_have_nothing_in_common_differ_as_a_whole():
    rng = random.Random(1)
    one, other = (" ".join(f"{rng.random()}" for _ in range(20_000)) for _ in range(2))
    assert spans_of(one, other) == ([DiffSpan(one, True)], [DiffSpan(other, True)])


# The table


@given(records=st.lists(CHANGES, max_size=4))
@example(records=[patch({"title": NASTY, "tags": (NASTY,)}, {"title": "<b>x", "tags": ()}, reason=NASTY)])
@example(
    records=[
        Change(action="delete", id="'><img src=x onerror=alert(1)>", row="<i>'\"", before={"content": NASTY})
    ]
)
def test_the_table_holds_our_tags_only(records):
    page = Page(plan_with(*records)._repr_html_())
    assert page.tags <= OUR_TAGS
    assert page.attributes <= OUR_ATTRIBUTES
    assert not set("".join(page.texts)) & set("\x1b\x07\u202e\U000e0041\r\x00")


def test_the_table_shows_both_sides_with_the_difference_marked():
    html = plan_with(patch({"title": "Ada likes tea"}, {"title": "Ada loves tea"}))._repr_html_()
    assert "<b>1 patch</b>" in html
    assert "Ada <del>likes</del> tea" in html
    assert "Ada <ins>loves</ins> tea" in html
    assert "None" not in html


def test_the_table_ends_and_says_how_many_there_are():
    records = [Change(action="patch", id=f"m{number}", after={"title": "t"}) for number in range(1283)]
    problem = Change(action="conflict", id="last", reason="changed meanwhile", after={"title": "t"})
    html = plan_with(*records, problem)._repr_html_()
    assert html.count('<tr class="first">') == MAX_SHOWN
    assert "and 1,234 more" in html
    assert "1,283 patches, 1 conflict" in html
    assert "changed meanwhile" in html  # what stops the plan comes first
    assert "more" not in Page(plan_with(*records[:50])._repr_html_()).texts[-1]


def test_an_empty_plan_says_so():
    assert "nothing to do" in plan_with()._repr_html_()
    assert str(plan_with()).startswith("Plan: nothing to do")
    assert plan_with().diff(color=False) == "nothing to do"


# The diff


def test_the_diff_reads_like_gits():
    lines = "one\ntwo\nthree\nfour\nfive\nsix"
    before, after = (
        {"title": "Tea", "content": lines},
        {"title": "Green tea", "content": lines.replace("five", "FIVE")},
    )
    plan = plan_with(
        patch(before, after, reason="said so"),
        Change(action="create", row="r", after={"content": "new"}),
        Change(action="delete", id="m3", before={"title": "gone", "summary": None}),
    )
    assert plan.diff(color=False).splitlines() == [
        "# Loses nothing that no other memory holds.",
        "",
        "patch memory m1 (row 1)",
        "# said so",
        "@@ title @@",
        "-Tea",
        "+Green tea",
        "@@ content @@",
        " three",
        " four",
        "-five",
        "+FIVE",
        " six",
        "",
        "create a new memory (row r)",
        "@@ content @@",
        "+new",
        "",
        "delete memory m3",
        "@@ title @@",
        "-gone",
        "",
        "1 patch, 1 create, 1 delete",
    ]


def test_an_emptied_field_is_told_from_an_empty_one():
    assert "-\n\n1 patch" in plan_with(patch({"title": ""}, {"title": None})).diff(color=False)
    assert "@@ tags @@\n-a\n\n1 patch" in plan_with(patch({"tags": ("a",)}, {"tags": ()})).diff(color=False)


def test_colours_mark_lines_and_words():
    coloured = plan_with(patch({"title": "Ada likes tea"}, {"title": "Ada loves tea"})).diff(color=True)
    assert "\x1b[31m-Ada \x1b[7mlikes\x1b[27m tea\x1b[0m" in coloured
    assert "\x1b[32m+Ada \x1b[7mloves\x1b[27m tea\x1b[0m" in coloured


@given(records=st.lists(CHANGES, max_size=4))
@example(
    records=[
        patch({"title": NASTY, "tags": ("a\n+forged",)}, {"title": "\r\x9b31m", "tags": ()}, reason="r\n-s")
    ]
)
@example(records=[Change(action="delete", id="m1\n-forged", row="r\n+forged", before={"title": "t"})])
def test_nothing_in_a_memory_steers_the_terminal_or_forges_a_line(records):
    plan = plan_with(*records)
    plain = plan.diff(color=False)
    assert not set(plain) & {chr(code) for code in [*range(9), *range(11, 32), 127, *range(128, 160)]}
    assert SGR.sub("", plan.diff(color=True)) == plain
    assert "\x1b" not in SGR.sub("", plan.diff(color=True))
    assert not re.search(r"^[+-]forged", plain, re.MULTILINE)


@pytest.mark.parametrize(
    ("is_terminal", "no_color", "coloured"), [(True, "", True), (True, "1", False), (False, "", False)]
)
def test_colours_are_for_terminals_that_want_them(monkeypatch, is_terminal, no_color, coloured):
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal, raising=False)
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    plan = plan_with(patch({"title": "a"}, {"title": "b"}))
    assert ("\x1b" in plan.diff()) == coloured
    monkeypatch.setattr("sys.stdout", None)
    assert "\x1b" not in plan.diff()


# For programs, and for everybody


def test_every_display_begins_with_the_notes():
    plan = plan_with(patch({"title": "a"}, {"title": "b"}), notes=("Read <this>\x1b[2J\nfirst.", "And this."))
    assert plan.diff(color=False).splitlines()[:6] == [
        "# Loses nothing that no other memory holds.",
        r"# Read <this>\x1b[2J\nfirst.", "# And this.", "", "patch memory m1 (row 1)", "@@ title @@",
    ]  # fmt: skip
    assert str(plan).splitlines()[:4] == [
        "Plan: 1 patch", "  note: Loses nothing that no other memory holds.",
        r"  note: Read <this>\x1b[2J\nfirst.", "  note: And this.",
    ]  # fmt: skip
    html = plan._repr_html_()
    assert (
        html.index("Loses nothing")
        < html.index("Read &lt;this&gt;")
        < html.index("And this.")
        < html.index("<table")
    )
    assert json.loads(plan.to_json())["notes"] == list(plan.notes)


def test_json_is_for_programs():
    document = json.loads(plan_with(patch({"tags": ("a",)}, {"tags": ()})).to_json())
    assert document["counts"] == {"patch": 1}
    assert document["created_at"] == "2026-11-21T14:02:00Z"
    (change,) = document["changes"]
    assert change == {
        "action": "patch", "row": 1, "id": "m1", "fields": ["tags"], "before": {"tags": ["a"]},
        "after": {"tags": []}, "reason": None, "group": None,
    }  # fmt: skip


def test_no_display_shows_what_is_hidden():
    change = patch(
        {"content": "my pin is 4711-canary, yes", "tags": ("4711-canary",), "title": "4711-canary-long"},
        {"content": "my pin is gone", "tags": (), "title": None},
        reason="found 4711-canary",
        hidden=("4711-canary", "4711-canary-long", ""),
    )
    plan = plan_with(change)
    shown = [
        str(plan), repr(plan), plan._repr_html_(), plan.diff(color=True), plan.diff(color=False),
        plan.to_json(), plan.changes.to_json(), repr(plan.changes.to_dict("list")), repr(plan.records),
    ]  # fmt: skip
    assert not [text for text in shown if "4711" in text or "canary" in text]
    # two are summaries, and one JSON spells the mask in ASCII
    assert sum(MASK in text for text in shown) == len(shown) - 3
    assert plan.records[0].before["content"] == "my pin is 4711-canary, yes"


def test_a_summary_shows_nothing_that_stands_in_a_memory():
    plan = plan_with(patch({"title": "canary"}, {"title": "canaries"}))
    assert "canar" not in str(plan) + repr(plan)
    assert str(plan).splitlines() == [
        "Plan: 1 patch",
        "  note: Loses nothing that no other memory holds.",
        "  fields to write: title 1",
        "  for user u1 at https://m/api/v1, as of 2026-11-21 14:02 UTC",
    ]


# What an undo brings back is said before it is too late


@pytest.mark.parametrize(
    ("restore_days", "words"),
    [
        (0, "with new ids and the date of that day"),
        (1, "An undo within 1 day brings deleted memories back with their ids and dates"),
        (30, "An undo within 30 days brings"),
    ],
)
def test_a_plan_of_deletes_says_what_an_undo_of_it_brings_back(restore_days, words):
    gone = Change(action="delete", id="m3", before={"title": "gone"})
    plan = plan_with(gone, patch({"title": "a"}, {"title": "b"}), notes=[undo_note(restore_days), "another"])
    for shown in (str(plan), plan._repr_html_(), plan.diff(color=False), json.loads(plan.to_json())["undo"]):
        assert words in shown
    rest = plan.without("delete")
    assert rest.notes == ("another",)
    assert json.loads(rest.to_json())["undo"] is None


def test_creates_that_bring_back_what_was_deleted_are_counted_as_restores():
    back = Change(action="create", after={"content": "tea"}, restores="m3")
    new = Change(action="create", after={"content": "coffee"})
    plan = plan_with(back, new)
    assert repr(plan) == "<memframe.Plan: 1 create, 1 restore>"
    assert plan.counts == {"create": 1, "restore": 1}


# Names of memories, and changes that are equal


def retagged(*tags, **more):
    return [
        Change(
            action="patch",
            id=f"m{n}",
            row=n,
            before={"tags": old},
            after={"tags": ("recipes", *old[1:])},
            **more,
        )
        for n, old in enumerate(tags)
    ]


def test_equal_changes_of_several_memories_are_shown_once():
    records = retagged(
        ("recipe", "tea"), ("recipe",), ("recipe", "oats"), ("home",), reason="one name for both"
    )
    plan = plan_with(*records)
    assert plan.diff(color=False).splitlines() == [
        "# Loses nothing that no other memory holds.",
        "",
        "patch 3 memories",
        "# one name for both",
        "@@ tags @@",
        "-recipe",
        "+recipes",
        "@@ memories @@",
        " memory m0 (row 0)",
        " memory m1 (row 1)",
        " memory m2 (row 2)",
        "",
        "patch memory m3 (row 3)",
        "# one name for both",
        "@@ tags @@",
        "-home",
        "+recipes",
        "",
        "4 patches",
    ]
    assert "    tags: recipe -> recipes, 3 memories" in str(plan).splitlines()
    html = plan._repr_html_()
    assert html.count('<tr class="first">') == 2
    assert "<b>3 memories</b>" in html
    assert "<del>recipe</del>" in html


@pytest.mark.parametrize(
    "more", [{"group": 1}, {"action": "conflict"}, {"after": {"tags": ("recipes",), "title": "Tea"}}]
)
def test_changes_that_hold_together_stop_or_change_a_text_are_shown_one_by_one(more):
    records = [replace(change, **more) for change in retagged(*[("recipe",)] * 4)]
    assert plan_with(*records).diff(color=False).count("@@ tags @@") == 4


def test_many_equal_changes_leave_room_for_others():
    other = patch({"title": "a"}, {"title": "b"})
    records = [replace(change, id=f"n{change.id}") for change in retagged(*[("recipe",)] * 500)]
    plan = plan_with(*records, other)
    assert "memory m1 (row 1)" in plan.diff(color=False, limit=2)
    assert "and 495 more" in plan.diff(color=False, limit=2)
    assert plan.diff(color=False).count("memory nm") == 500
    assert "and 495 more" in plan._repr_html_()


def test_a_memory_is_named_where_the_change_shows_none_of_its_texts(access):
    secret = "Door code: 2580#"
    frame = pd.DataFrame({"title": ["Green tea", None, None], "content": ["x", secret, "Rows on the lake"]})
    mf.create_memories(access, frame, progress=False)
    loaded = mf.load_memories(access, progress=False).sort_values("content")
    plan = mf.plan_changes(access, loaded.assign(source=["a", "b", "c"]))
    names = [change.name for change in plan.records]
    assert names == ["Door code: (5 characters)", "Rows on the lake", "Green tea"]
    for shown in (plan.diff(color=False), plan._repr_html_()):
        assert all(name in shown for name in names)
        assert "2580" not in shown
    assert mf.plan_changes(access, loaded.assign(title="Tea")).records[0].name is None
    run = mf.apply_plan(access, plan, progress=False)
    assert [change.name for change in mf.plan_undo(access, run).records] == names


def test_the_counts_of_an_undo_are_those_of_its_displays(access):
    mf.create_memories(access, pd.DataFrame({"content": ["tea", "oats"]}), progress=False)
    plan = mf.plan_deletes(access, mf.load_memories(access, progress=False))
    back = mf.plan_undo(access, mf.apply_plan(access, plan, confirm=2, progress=False))
    assert back.counts == json.loads(back.to_json())["counts"] == {"restore": 2}
    assert repr(back) == "<memframe.Plan: 2 restores>"
