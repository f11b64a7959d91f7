"""The pictures: what is drawn is what is in the frame, whatever is in the frame."""

from datetime import timedelta
from io import BytesIO

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter
from matplotlib.dates import date2num
from matplotlib.figure import Figure

from memframe import plot
from memframe.audit import audit_memories
from memframe.errors import FrameError
from memframe.frames import MEMORY_KINDS
from memframe.plot.axes import label
from memframe.plot.charts import FIRST, LAST
from tests.rows import memories_of, sample_frame

ONE_PICTURE = [plot.timeline, plot.tags, plot.sources, plot.scores, plot.lengths]
ALL = [*ONE_PICTURE, plot.overview]

HOSTILE = [
    "$\\frac{1}{0}$ and $x^2",
    "a" * 500,
    "日本語のタグ",
    "🎻 cello",
    "\u202eevil\u0000\n\ttab",
    "_hidden",
    "<script>alert(1)</script>",
    "\\input{secrets}",
    "",
]


def frame_of(*rows):
    return memories_of(rows)


def drawn(shown):
    """Everything of a figure through a renderer, as saving does; warnings are errors here."""
    figure = shown if isinstance(shown, Figure) else shown.get_figure(root=True)
    figure.savefig(BytesIO(), format="png", dpi=50)


def words(ax):
    return [text.get_text() for text in ax.texts]


def bar_values(ax):
    return {
        tick.get_text(): bar.get_width()
        for tick, bar in zip(ax.get_yticklabels(), ax.containers[0], strict=True)
    }


@pytest.fixture(scope="module")
def sample():
    return sample_frame()


@pytest.fixture(scope="module")
def overview(sample):
    """All pictures of the sample, in a figure that tests only look at."""
    return plot.overview(sample)


def test_timeline_stacks_every_memory_in_its_month_by_source(sample):
    ax = plot.timeline(sample)
    assert ax.get_title(loc="left") == "Memories per month, n = 389"
    heights = {
        text.get_text(): sum(bar.get_height() for bar in bars)
        for text, bars in zip(ax.get_legend().get_texts(), ax.containers, strict=True)
    }
    assert heights == sample["source"].value_counts().to_dict()
    tops = {}
    for bar in (bar for bars in ax.containers for bar in bars):
        tops[bar.get_x()] = max(tops.get(bar.get_x(), 0), bar.get_y() + bar.get_height())
    by_month = sample["created_at"].dt.strftime("%Y-%m").value_counts().sort_index()
    assert [tops[x] for x in sorted(tops)] == by_month.tolist()


def test_timeline_puts_what_the_palette_cannot_tell_apart_together():
    ax = plot.timeline(
        frame_of(*({"source": f"app {n % 9}", "created_at": "2026-01-02T03:04:05Z"} for n in range(90)))
    )
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["app 0", "app 1", "app 2", "app 3", "app 4", "4 others"]
    assert [sum(bar.get_height() for bar in bars) for bars in ax.containers] == [10, 10, 10, 10, 10, 40]


def test_timeline_takes_other_zones_as_the_same_moment_in_utc():
    memories = frame_of({"created_at": "2026-01-01T23:30:00Z"}, {"created_at": "2026-01-02T00:30:00Z"})
    elsewhere = memories.assign(created_at=memories["created_at"].dt.tz_convert("Asia/Tokyo"))
    written = memories.assign(created_at=["2026-01-02T08:30:00+09:00", "2026-01-01T19:30:00-05:00"])
    pictures = [plot.timeline(frame) for frame in (memories, elsewhere, written)]
    places = [[(bar.get_x(), bar.get_height()) for bar in ax.containers[0]] for ax in pictures]
    assert len(places[0]) == 2
    assert places[0] == places[1] == places[2]


def test_timeline_counts_what_it_does_not_draw():
    far = ("0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z")
    moments = [None, *far, "2026-04-25T11:20:00Z"]
    ax = plot.timeline(frame_of(*({"created_at": moment} for moment in moments)))
    assert ax.get_title(loc="left") == "Memories per day, n = 1"
    assert ax.get_xlabel() == "1 without a time; 3 before 1971 or after 2099"
    drawn(ax)


@pytest.mark.parametrize(
    ("last", "unit"),
    [
        ("2026-03-21", "day"),
        ("2026-03-22", "week"),
        ("2030-01-01", "month"),
        ("2040-01-01", "quarter"),
        ("2099-12-31", "year"),
    ],
)
def test_periods_grow_with_the_span(last, unit):
    ax = plot.timeline(frame_of(*({"created_at": f"{day}T12:00:00Z"} for day in ("2026-01-01", last))))
    assert ax.get_title(loc="left") == f"Memories per {unit}, n = 2"


@settings(max_examples=15)
@given(st.lists(st.datetimes(FIRST.item(), LAST.item() - timedelta(microseconds=1)), min_size=1))
def test_every_time_lies_in_its_bar(times):
    created_at = pd.Series(times).dt.tz_localize("UTC")
    ax = plot.timeline(pd.DataFrame({"created_at": created_at, "source": "chat"}))
    days = date2num(times)
    for bar in ax.containers[0]:
        inside = (days >= bar.get_x()) & (days < bar.get_x() + bar.get_width() / 0.9 - 1e-9)
        assert inside.sum() == bar.get_height()
    assert sum(bar.get_height() for bar in ax.containers[0]) == len(times)


@settings(max_examples=15)
@given(st.lists(st.integers(1, 10**5), min_size=1, max_size=10))
def test_every_length_lies_within_the_edges(n_chars):
    ax = plot.lengths(pd.DataFrame({"content": ["x" * n for n in n_chars]}))
    assert sum(bar.get_height() for bar in ax.containers[0]) == len(n_chars)


def test_tags_are_counted_once_a_memory_and_ranked():
    ax = plot.tags(frame_of({"tags": ("a", "b")}, {"tags": ("b", "b")}, {"tags": ("b", "c")}, {}))
    assert bar_values(ax) == {"b": 3, "a": 1, "c": 1}
    assert list(bar_values(ax)) == ["b", "a", "c"]
    assert words(ax) == ["3", "1", "1"]
    assert ax.get_xlabel() == "1 without tags"


def test_sources_show_counts_and_shares_and_memories_without_one():
    ax = plot.sources(frame_of({"source": "chat"}, {"source": "chat"}, {}, {"source": "mail"}))
    assert bar_values(ax) == {"chat": 2, "(no source)": 1, "mail": 1}
    assert words(ax) == ["2 (50%)", "1 (25%)", "1 (25%)"]


def test_scores_name_the_sources_of_another_scale(sample):
    ax = plot.scores(sample)
    assert words(ax) == [" 18 above 1: mail-helper"]
    assert ax.get_xlabel() == "importance  (3 without both scores)"
    assert ax.collections[0].get_offsets()[:, 0].max() == 5


def test_scores_of_one_scale_have_no_line_and_equal_ones_share_a_dot():
    rows = [{"importance": 0.5, "confidence": 1}] * 3 + [{"importance": 1, "confidence": 0}]
    ax = plot.scores(frame_of(*rows))
    assert ax.collections[0].get_offsets().tolist() == [[0.5, 1], [1, 0]]
    large, small = ax.collections[0].get_sizes()
    assert (large > small, words(ax), list(ax.lines)) == (True, [], [])


def test_scores_out_of_range_are_counted_and_not_drawn():
    rows = [{"importance": value, "confidence": 0.5} for value in (1e308, -1, np.inf, -np.inf, 5)]
    ax = plot.scores(frame_of(*rows, {"importance": 1, "confidence": 1.5}, {"importance": 1}))
    assert ax.get_title(loc="left").endswith("n = 1")
    assert ax.get_xlabel() == "importance  (1 without both scores; 5 out of range)"
    drawn(ax)


def test_lengths_count_every_content_once(sample):
    ax = plot.lengths(sample)
    assert sum(bar.get_height() for bar in ax.containers[0]) == 389
    assert words(ax) == [f"median {sample['content'].str.len().median():.0f}"]


def test_lengths_tell_empty_from_missing():
    ax = plot.lengths(frame_of({"content": "Feed Gerald"}, {"content": ""}, {"content_error": "wrong key"}))
    assert ax.get_title(loc="left") == "Length of content, n = 1"
    assert ax.get_xlabel() == "characters  (1 without content; 1 empty)"


def test_overview_has_all_pictures_and_says_of_what(overview, sample):
    assert isinstance(overview, Figure)
    assert overview.get_suptitle() == "389 memories, 2020-02-03 to 2026-05-02"
    assert len(overview.axes) == 5
    zero = pd.to_datetime(["1970-01-01", "2026-01-01", "2026-01-02"], utc=True).as_unit("us")
    assert (
        plot.overview(sample.head(3).assign(created_at=zero))
        .get_suptitle()
        .endswith("2026-01-01 to 2026-01-02")
    )


@pytest.mark.parametrize("draw", ALL)
def test_it_draws_where_it_is_told_and_changes_no_frame(draw, sample):
    before = sample.copy(deep=True)
    if draw is plot.overview:
        draw(sample)
    else:
        ax = Figure().subplots()
        assert draw(sample, ax=ax) is draw(sample.iloc[:0], ax=ax) is ax
    pd.testing.assert_frame_equal(sample, before)
    assert (sample["tags"] == before["tags"]).all()


def test_no_memories_are_said_in_words():
    for ax in plot.overview(frame_of()).axes:
        assert (words(ax), ax.containers) == (["No memories"], [])
    figure = plot.overview(frame_of({}, {}))
    drawn(figure)
    of_sources = figure.axes[2]
    assert bar_values(of_sources) == {"(no source)": 2}
    for ax in {*figure.axes} - {of_sources}:
        assert words(ax)[0].startswith("2 memories, none has ")


def test_one_memory_and_a_frame_out_of_order_can_be_drawn(sample):
    for frame in (sample.iloc[[7]], sample.iloc[::-40], pd.DataFrame(columns=list(MEMORY_KINDS))):
        drawn(plot.overview(frame))


def test_hostile_names_are_drawn_as_plain_short_text():
    rows = [
        {
            "tags": (name,),
            "source": name,
            "importance": 5,
            "confidence": 0.5,
            "created_at": "2026-01-02T03:04:05Z",
        }
        for name in HOSTILE
    ]
    drawn(figure := plot.overview(frame_of(*rows)))
    for ax in figure.axes:
        legend = ax.get_legend()
        for text in [*ax.texts, *ax.get_yticklabels(), *(legend.get_texts() if legend else ())]:
            assert text.get_text().isprintable()
            assert len(text.get_text()) < 60
            if any(mark in text.get_text() for mark in "$\\_<"):
                assert not text.get_parse_math()
                assert not text.get_usetex()


def test_a_letter_that_no_font_has_becomes_a_square():
    assert label("\U000e0fff\U0010ffff x") == "x"  # not letters at all
    assert label("\U0001d800 x") == "□ x"  # sign writing: in no common font


def test_style_of_the_user_is_followed_and_left_alone(sample):
    before = dict(mpl.rcParams)
    with mpl.rc_context({"figure.facecolor": "black", "text.color": "white"}):
        ax = plot.tags(sample)
    assert ax.get_figure().get_facecolor() == (0, 0, 0, 1)
    assert dict(mpl.rcParams) == before


def test_notebooks_show_the_picture(overview, sample):
    for shown in (overview, plot.sources(sample)):
        data, metadata = DisplayFormatter().format(shown)
        assert data["image/png"].startswith(b"\x89PNG")
        assert metadata["image/png"]["width"] < 1200


def test_findings_by_source_are_those_of_the_audit(sample):
    audit = audit_memories(sample, checks=["secret", "junk"])
    ax = plot.findings(audit, by="source")
    found = audit.by_source.query("n_found > 0")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == found["source"].tolist()
    assert [text.get_text() for text in ax.texts][: len(found)] == [
        f"{row.n_found} of {row.n_memories}" for row in found.itertuples()
    ]
    empty = plot.findings(audit_memories(sample.head(0)), by="source")
    assert "No findings" in words(empty)
    with pytest.raises(FrameError, match="by='tag': give check or source"):
        plot.findings(audit, by="tag")
    with pytest.raises(FrameError, match="audit"):
        plot.findings(audit.findings, by="source")


@pytest.mark.parametrize("draw", ONE_PICTURE)
def test_a_frame_of_something_else_is_refused_with_the_name_of_the_column(draw):
    with pytest.raises(
        FrameError, match=r"the frame has no column '(created_at|tags|source|importance|content)'"
    ):
        draw(pd.DataFrame({"x": [1]}))


def test_a_column_of_something_else_is_refused():
    for draw, column, value in (
        (plot.timeline, "created_at", "yesterday"),
        (plot.scores, "importance", "high"),
        (plot.tags, "tags", "work, home"),
    ):
        memories = frame_of({"source": "chat"}).assign(**{column: value})
        with pytest.raises(FrameError, match=f"column '{column}' does not hold"):
            draw(memories)
