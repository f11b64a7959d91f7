"""Whatever a frame of memories or of findings holds, an audit works or names what is wrong in a clear error."""

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest

import memframe as mf
from memframe import plot
from memframe.errors import ConfigError, FrameError

LONE = "a \ud800 b"


def frame(**columns):
    return pd.DataFrame({"id": ["m1", "m2"], "content": ["Door code: 2580#", "Likes tea"]} | columns)


def whole(*cells):
    return pd.Series(list(cells), dtype=object)


def named(audit, folder):
    """Everything that an audit returns, shows and writes."""
    audit.to_html(folder / "audit.html")
    audit.to_json(folder / "audit.json")
    return [
        repr(audit),
        audit._repr_html_(),
        audit.summary,
        audit.candidates,
        *audit.compare(folder / "audit.json"),
        *(
            each(check)
            for check in {"sealed", *audit.findings["check"]}
            for each in (audit.groups, audit.rows)
        ),
    ]


WORKS = {
    **{
        f"a lone surrogate in {name}": frame(**{name: whole(LONE, None)})
        for name in ("title", "summary", "source")
    },
    "a lone surrogate in content": frame(content=whole(LONE, "PIN 4711")),
    "a lone surrogate in an id": frame(id=whole("m\ud800", "m2")),
    "a lone surrogate in a tag": frame(tags=[(LONE,), ()]),
    "a lone surrogate in an error": frame(content_error=whole(LONE, None)),
    "numbers as ids": frame(id=[1, 2]),
    "numbers as sources": frame(source=[1, 2]),
    "no tags": frame(tags=[None, ("tea",)]),
    "lists of tags": frame(tags=[["tea"], []]),
    "ids twice": frame(id=["m1", "m1"]),
    "some ids": frame(id=["m1", None]),
    "labels twice": frame().set_axis([0, 0]),
    "days as times": frame(created_at=pd.period_range("2024-01-01", periods=2)),
    "no times as numbers": frame(created_at=[np.nan, np.nan]),
    "two zones": frame(created_at=["2024-01-01", "2024-01-01T00:00:00+02:00"]),
    "infinite scores": frame(importance=[np.inf, -np.inf]),
    "categories": frame(title=pd.Categorical(["a", "b"]), source=pd.Categorical(["a", "b"])),
    "other columns": frame(thing=[{}, []]),
    "control characters": frame(content=["\0", "\x1b[2J"]),
}


@pytest.mark.parametrize("case", WORKS)
def test_odd_memories_are_audited(case, tmp_path):
    memories = WORKS[case]
    before = memories.copy(deep=True)
    assert all(part is not None for part in named(mf.audit_memories(memories), tmp_path))
    pd.testing.assert_frame_equal(memories, before)


REFUSED = {
    "content twice": (pd.concat([frame(), frame()[["content"]]], axis=1), "several columns 'content'"),
    "ids twice as a column": (pd.concat([frame(), frame()[["id"]]], axis=1), "several columns 'id'"),
    "tags of numbers": (frame(tags=[(None, 1), ()]), "column 'tags' does not hold tuples of text"),
    "tags of mappings": (frame(tags=[({},), ()]), "column 'tags' does not hold tuples of text"),
    "a mapping as tags": (frame(tags=[{}, ()]), "column 'tags' does not hold tuples"),
    "a text as tags": (frame(tags="tea"), "column 'tags' does not hold tuples"),
    "numeric titles": (frame(title=[1, 2], summary=[["a"], ["b"]]), "column 'title' does not contain text"),
    "lists as summaries": (frame(summary=[["a"], ["b"]]), "column 'summary' does not contain text"),
    "lists as contents": (frame(content=[["a"], ["b"]]), "column 'content' does not contain text"),
    "numbers as contents": (frame(content=[1, 2]), "column 'content' does not contain text"),
    "bytes as contents": (frame(content=[b"a", b"b"]), "column 'content' holds bytes, not text: decode"),
    "lists as ids": (frame(id=[["a"], ["b"]]), "column 'id' holds lists"),
    "lists as users": (frame(user_id=[["a"], ["b"]]), "column 'user_id' holds lists"),
    "lists as sources": (frame(source=[["a"], 3]), "column 'source' holds lists"),
    "words as times": (frame(created_at=["yesterday", None]), "column 'created_at' does not hold times"),
    "numbers as times": (frame(created_at=[1714557600000000, 0]), "column 'created_at' does not hold times"),
    "complex scores": (frame(importance=[1j, 0]), "column 'importance' does not hold numbers"),
    "words as scores": (frame(importance=["high", None]), "column 'importance' does not hold numbers"),
    "lists as scores": (frame(confidence=[[1], 2]), "column 'confidence' does not hold numbers"),
    "columns of two levels": (
        frame().set_axis(pd.MultiIndex.from_tuples([("id", "a"), ("content", "b")]), axis=1), "several columns 'id'"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_memories_that_are_none_are_refused_by_the_name_of_the_column(case):
    memories, words = REFUSED[case]
    with pytest.raises(FrameError, match=words):
        mf.audit_memories(memories)


def test_attributes_of_something_else_are_refused():
    memories = frame()
    memories.attrs["memframe"] = "mine"
    with pytest.raises(FrameError, match=r"attrs\['memframe'\]"):
        mf.audit_memories(memories)


@pytest.mark.parametrize(
    "options",
    [
        {"now": "2024"},
        {"now": 1},
        {"now": pd.NaT},
        {"checks": 5},
        {"checks": [5]},
        {"checks": {"secret": 3}},
        {"judge_limit": "x"},
        {"judge_limit": -1},
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ConfigError):
        mf.audit_memories(frame(), **options)


@pytest.mark.parametrize(
    ("tags", "words"),
    [
        (pd.DataFrame(), "no column 'name'.*load_tags"),
        (pd.DataFrame({"name": ["tea"]}), "'is_enabled'"),
        (["tea"], "tags is a list, not a pandas DataFrame"),
    ],
    ids=["no columns", "names alone", "a list"],
)
def test_tags_that_are_no_frame_of_tags_are_refused(tags, words):
    with pytest.raises(FrameError, match=words):
        mf.audit_memories(frame(), tags=tags)


# Findings that somebody replaced


@pytest.fixture(scope="module")
def audit():
    return mf.audit_memories(frame())


def test_findings_without_a_column_are_refused_by_its_name(audit):
    for name in audit.findings.columns:
        with pytest.raises(FrameError, match=f"no column '{name}': keep all columns"):
            dataclasses.replace(audit, findings=audit.findings.drop(columns=name))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda found: None, "findings is None|findings"),
        (lambda found: [1], "findings"),
        (lambda found: found.assign(severity="awful"), "severity 'awful': there is info"),
        (lambda found: found.assign(severity=None), "severity"),
        (lambda found: found.assign(action="burn"), "action 'burn': there is delete"),
        (lambda found: found.assign(check=None), "each needs the name of a check"),
        (lambda found: pd.concat([found, found[["id"]]], axis=1), "2 columns 'id'"),
        (lambda found: found.set_index("id"), "no column 'id'"),
    ],
)
def test_findings_that_are_none_are_refused(audit, change, words):
    with pytest.raises(FrameError, match=words):
        dataclasses.replace(audit, findings=change(audit.findings))


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.head(0),
        lambda found: found.assign(note=1),
        lambda found: found.assign(id="of nobody"),
        lambda found: found.assign(start=10**6, end=10**7),
        lambda found: found.assign(field="nothing", start=0, end=3),
    ],
)
def test_chosen_findings_are_shown_like_others(audit, change, tmp_path):
    assert named(dataclasses.replace(audit, findings=change(audit.findings)), tmp_path)


def test_plots_draw_findings_as_they_draw_an_audit(audit):
    for draw in (plot.findings, plot.duplicates):
        from_audit, from_frame = draw(audit), draw(audit.findings)
        assert from_audit.get_title(loc="left") == from_frame.get_title(loc="left")
        assert [text.get_text() for text in from_audit.texts] == [
            text.get_text() for text in from_frame.texts
        ]


@pytest.mark.parametrize("draw", [plot.findings, plot.duplicates])
@pytest.mark.parametrize(
    "wrong",
    [None, "x", [1], frame(), pd.DataFrame(), lambda found: found.drop(columns="id"),
     lambda found: found.drop(columns=["group", "severity"]), lambda found: pd.concat([found, found[["id"]]], axis=1)],
)  # fmt: skip
def test_what_no_plot_of_findings_can_draw_is_refused(audit, draw, wrong):
    with pytest.raises(FrameError):
        draw(wrong(audit.findings) if callable(wrong) else wrong)


@pytest.mark.parametrize("case", [*WORKS, *REFUSED])
def test_plots_of_odd_memories_are_drawn_or_refused(case):
    memories, refusals = WORKS[case] if case in WORKS else REFUSED[case][0], []
    with warnings.catch_warnings(action="ignore"):
        for draw in (plot.timeline, plot.tags, plot.sources, plot.scores, plot.lengths):
            try:
                assert draw(memories).get_title(loc="left")
            except FrameError as error:
                refusals.append(str(error))
    assert all("column" in refusal for refusal in refusals)
