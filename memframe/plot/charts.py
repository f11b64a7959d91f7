"""Draw memories, and the findings of an audit, with one function per chart."""

from __future__ import annotations

from collections import Counter
from itertools import chain, pairwise
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from matplotlib import dates as mdates
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from memframe.display import number_of
from memframe.errors import FrameError, check_kind
from memframe.frames import rank_values, read_names, read_numbers, read_texts, read_times, require_column
from memframe.plot.axes import (
    BLUE,
    GREY,
    SERIES,
    SMALL,
    SOFT,
    VERMILION,
    blank,
    count_axis,
    label,
    legend,
    new_figure,
    note,
    plain_text,
    prepare,
    ranked_bars,
)


def describe_empty(memories: pd.DataFrame, why: str) -> str:
    """Say why there is nothing to draw.

    >>> describe_empty(pd.DataFrame({"tags": [()]}), "none has a tag")
    '1 memory, none has a tag'
    """
    return "No memories" if memories.empty else f"{number_of(len(memories), 'memory', 'memories')}, {why}"


def count_omitted(rows: NDArray[np.bool_], why: str) -> str:
    """Count the rows that are not drawn, with the reason.

    >>> count_omitted(np.array([True, False, True]), "without a time")
    '2 without a time'
    """
    n_rows = int(np.count_nonzero(rows))
    return f"{n_rows:,} {why}" if n_rows else ""


def count_hidden(n_hidden: int, thing: str) -> str:
    """Count the names that are not drawn.

    >>> count_hidden(1, "tag"), count_hidden(0, "tag")
    ('1 more tag', '')
    """
    return number_of(n_hidden, f"more {thing}", f"more {thing}s") if n_hidden else ""


_MAX_ROWS = 15
_NO_SOURCE = "(no source)"

_MAX_BARS = 80
_UNITS = {"day": "D", "week": "W", "month": "M", "quarter": "Q", "year": "Y"}
"""Codes of pandas periods; weeks begin on Monday."""

FIRST, LAST = np.datetime64("1971-01-01", "us"), np.datetime64("2100-01-01", "us")
"""Bounds of possible times; the zeros of clocks (year 1, 1970) and their largest values are outside."""


def timeline(memories: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw when memories were created: a bar per day, week, month, quarter or year, stacked by source.

    Impossible times, such as the zero of a clock, are counted below the chart.

    Parameters
    ----------
    memories : DataFrame
        Needs ``created_at`` and ``source``.
    ax : Axes, optional
        Axes to draw into; new ones by default.

    Returns
    -------
    Axes
    """
    moments = read_times(memories, "created_at")
    missing = np.isnat(moments)
    drawn = (moments >= FIRST) & (moments < LAST)  # False for missing times
    if not drawn.any():
        return blank(ax, "Memories over time", describe_empty(memories, "none has a possible time"))
    unit, edges = _calendar_edges(moments[drawn])
    days = _date_numbers(moments[drawn])
    names, series = _series_of(read_texts(memories, "source")[drawn])
    heights = np.array([np.histogram(days[series == place], edges)[0] for place in range(len(names))])
    ax = prepare(ax, f"Memories per {unit}, n = {drawn.sum():,}", grid="y")
    _stack(ax, edges, heights, names)
    _calendar_axis(ax, edges)
    out_of_range = ~drawn & ~missing
    note(
        ax, count_omitted(missing, "without a time"), count_omitted(out_of_range, "before 1971 or after 2099")
    )
    return ax


def tags(memories: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the number of memories with each of the most frequent tags.

    Parameters
    ----------
    memories : DataFrame
        Needs ``tags``, tuples of names.
    ax : Axes, optional
        Axes to draw into; new ones by default.

    Returns
    -------
    Axes
    """
    cells = read_names(memories, "tags")
    counted = Counter(chain.from_iterable(map(set, cells)))
    ranking = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    if not ranking:
        return blank(ax, "Tags", describe_empty(memories, "none has a tag"))
    ax = prepare(ax, f"Memories per tag, n = {len(cells):,}")
    names, counts = zip(*ranking[:_MAX_ROWS], strict=True)
    ranked_bars(ax, names, [(counts, BLUE)], [f"{count:,}" for count in counts])
    untagged = np.array([len(cell) == 0 for cell in cells])
    note(ax, count_hidden(len(ranking) - len(names), "tag"), count_omitted(untagged, "without tags"))
    return ax


def sources(memories: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the number of memories from each source.

    Parameters
    ----------
    memories : DataFrame
        Needs ``source``.
    ax : Axes, optional
        Axes to draw into; new ones by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = sources(pd.DataFrame({"source": ["chat", "chat", "mail"]}))
    >>> ax.get_title(loc="left")
    'Memories per source, n = 3'
    """
    ranking = rank_values(read_texts(memories, "source").fillna(_NO_SOURCE))
    if not ranking.names:
        return blank(ax, "Sources", describe_empty(memories, ""))
    ax = prepare(ax, f"Memories per source, n = {len(memories):,}")
    counts = ranking.counts[:_MAX_ROWS]
    values = [f"{count:,} ({count / len(memories):.0%})" for count in counts]
    ranked_bars(ax, ranking.names[:_MAX_ROWS], [(counts, BLUE)], values)
    note(ax, count_hidden(len(ranking.names) - len(counts), "source"))
    return ax


def _series_of(source: pd.Series[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of series, largest first (those beyond the palette as one), and the series of each row."""
    ranking = rank_values(source.fillna(_NO_SOURCE))
    n_names = len(ranking.names)
    n_shown = n_names if n_names <= len(SERIES) else len(SERIES) - 1
    rest = [f"{n_names - n_shown} others"] if n_shown < n_names else []
    return ranking.names[:n_shown] + rest, np.minimum(ranking.place, n_shown)


def _calendar_edges(moments: NDArray[np.datetime64]) -> tuple[str, NDArray[np.float64]]:
    """Choose the finest unit that needs few bars, or else years; return its name and the starts of its periods."""
    for unit, code in _UNITS.items():  # noqa: B007 - the last unit is returned
        first, last = (pd.Period(pd.Timestamp(moment), code) for moment in (moments.min(), moments.max()))
        if last.ordinal - first.ordinal < _MAX_BARS:
            break
    return unit, _date_numbers(pd.period_range(first, last + 1).start_time.to_numpy())


def _stack(ax: Axes, edges: NDArray[np.float64], heights: NDArray[np.int64], names: list[str]) -> None:
    widths = 0.9 * np.diff(edges)
    bars = []
    for tall, top, color in zip(heights, heights.cumsum(axis=0), SERIES, strict=False):
        some = tall > 0  # bars without height would take most of the time
        bottom = (top - tall)[some]
        bars.append(ax.bar(edges[:-1][some], tall[some], widths[some], bottom, align="edge", color=color))
    if len(names) > 1:
        legend(ax, bars, names)


def _calendar_axis(ax: Axes, edges: NDArray[np.float64]) -> None:
    span, widest = np.ptp(edges), np.diff(edges).max()
    margin = max(0.01 * span, (12 * widest - span) / 2)  # few bars stay slim
    ax.set_xlim(edges[0] - margin, edges[-1] + margin)
    locator = mdates.AutoDateLocator()  # type: ignore[no-untyped-call] # matplotlib.dates has no types yet
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call] # as above
    count_axis(ax)


def _date_numbers(dates: NDArray[np.datetime64]) -> NDArray[np.float64]:
    numbers: NDArray[np.float64] = mdates.date2num(dates)  # type: ignore[no-untyped-call] # as above
    return numbers


SEVERITY_COLOURS = {"high": VERMILION, "medium": SERIES[1], "low": BLUE, "info": GREY}
"""Colours of severities, the worst first."""

_DUPLICATES = {"exact_duplicate": BLUE, "near_duplicate": SERIES[1], "version": VERMILION}
_SIZES = (2, 3, 4, 5, 10, 20, 50)
"""Smallest cluster of each bar."""

_FEWEST_BARS = 4


@runtime_checkable
class DrawnAudit(Protocol):
    """The parts of a `memframe.audit.Audit` that are drawn."""

    @property
    def findings(self) -> pd.DataFrame: ...


@runtime_checkable
class SourcedAudit(Protocol):
    """The part of a `memframe.audit.Audit` that is drawn by source."""

    @property
    def by_source(self) -> pd.DataFrame: ...


def findings(
    audit: DrawnAudit | pd.DataFrame, *, by: Literal["check", "source"] = "check", ax: Axes | None = None
) -> Axes:
    """Draw the number of memories with findings of each check or source, by their worst severity.

    Parameters
    ----------
    audit : Audit or DataFrame
        The audit, or findings with ``check``, ``severity`` and ``id``. Rows without an id, such as the figures of
        an audit, are left out.
    by : {"check", "source"}
        What a bar stands for; sources need the whole audit.
    ax : Axes, optional
        Axes to draw into; new ones by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> found = pd.DataFrame({"check": ["junk"], "severity": ["low"], "id": ["m1"]})
    >>> findings(found).get_title(loc="left")
    'Memories by check'
    """
    if by == "source":
        if not isinstance(audit, SourcedAudit):
            raise FrameError("by='source' needs the whole audit: pass an Audit from audit_memories(memories)")
        return _draw_by_source(audit.by_source, ax)
    if by != "check":
        raise FrameError(f"by={by!r}: give check or source")
    check_kind("audit", audit, DrawnAudit, pd.DataFrame, error=FrameError)
    frame = _findings_of(audit, "check", "severity", "id")
    frame = frame[frame["id"].notna() & frame["check"].notna()]
    title = "Memories by check"
    if frame.empty:
        return blank(ax, title, "No findings")
    table = _worst_by_check(frame)
    totals = [f"{total:,}" for total in table.sum(axis=1)]
    return _draw_severities(ax, title, [name.replace("_", " ") for name in table.index], table, totals)


def _draw_by_source(by_source: pd.DataFrame, ax: Axes | None) -> Axes:
    title = "Memories with findings by source"
    found = by_source[by_source["n_found"] > 0]
    if found.empty:
        return blank(ax, title, "No findings")
    shown = found.head(_MAX_ROWS)
    totals = [
        f"{n_found:,} of {n_memories:,}"
        for n_found, n_memories in zip(shown["n_found"], shown["n_memories"], strict=True)
    ]
    table = shown[list(SEVERITY_COLOURS)]
    ax = _draw_severities(
        ax, title, shown["source"].fillna(_NO_SOURCE).tolist(), table.loc[:, table.any()], totals
    )
    note(ax, count_hidden(len(found) - len(shown), "source"))
    return ax


def _draw_severities(
    ax: Axes | None, title: str, names: list[str], table: pd.DataFrame, values: list[str]
) -> Axes:
    """Draw a bar for each row of a table, stacked by the severities that are its columns."""
    ax = prepare(ax, title)
    shown = [name for name in SEVERITY_COLOURS if name in table.columns]
    parts = [(table[severity].tolist(), SEVERITY_COLOURS[severity]) for severity in shown]
    legend(ax, ranked_bars(ax, names, parts, values), shown)
    return ax


def duplicates(audit: DrawnAudit | pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw clusters of duplicates by their size.

    Parameters
    ----------
    audit : Audit or DataFrame
        The audit, or its findings: needs ``check``, ``group`` and ``id``.
    ax : Axes, optional
        Axes to draw into; new ones by default.

    Returns
    -------
    Axes
    """
    check_kind("audit", audit, DrawnAudit, pd.DataFrame, error=FrameError)
    frame = _findings_of(audit, "check", "group", "id")
    title = "Clusters of duplicates by size"
    frame = frame[frame["check"].isin(list(_DUPLICATES)) & frame["group"].notna()]
    sizes = frame.groupby(["check", "group"])["id"].nunique().reset_index(name="size").query("size > 1")
    if sizes.empty:
        return blank(ax, title, "No duplicates")
    ax = prepare(ax, f"{title}, n = {len(sizes):,}", grid="y")
    shown = [check for check in _DUPLICATES if check in set(sizes["check"])]
    width = 0.8 / len(shown)
    n_bars = max(_FEWEST_BARS, int(np.flatnonzero(_by_size(sizes["size"].to_numpy()))[-1]) + 1)
    bars = []
    for place, check in enumerate(shown):
        heights = _by_size(sizes["size"][sizes["check"] == check].to_numpy())[:n_bars]
        offsets = np.arange(n_bars) + (place - (len(shown) - 1) / 2) * width
        bars.append(ax.bar(offsets, heights, 0.92 * width, color=_DUPLICATES[check]))
    names = [_name_sizes(*span) for span in pairwise(_SIZES)] + [f"{_SIZES[-1]}+"]
    ax.set_xticks(range(n_bars), labels=names[:n_bars])
    ax.set_xlim(-0.6, n_bars - 0.4)
    count_axis(ax)
    note(ax, axis="memories in a cluster")
    legend(ax, bars, [check.replace("_", " ") for check in shown])
    return ax


def _findings_of(audit: DrawnAudit | pd.DataFrame, *names: str) -> pd.DataFrame:
    frame = audit if isinstance(audit, pd.DataFrame) else audit.findings
    if "check" not in frame:
        raise FrameError("the frame contains no findings: pass an Audit from audit_memories(memories)")
    for name in names:
        require_column(frame, name, of="audit.findings has them")
    if "severity" in names and len(
        wrong := frame["severity"][~frame["severity"].isin(list(SEVERITY_COLOURS))]
    ):
        raise FrameError(
            f"the findings have the severity {wrong.iloc[0]!r:.60}: give one of {', '.join(SEVERITY_COLOURS)}"
        )
    return frame


def _worst_by_check(frame: pd.DataFrame) -> pd.DataFrame:
    """Count memories by check and worst severity, the checks with the worst first."""
    order = list(SEVERITY_COLOURS)
    ranks = read_texts(frame, "severity").map({name: rank for rank, name in enumerate(order)})
    worst = ranks.groupby([frame["check"], frame["id"]]).min()
    table: pd.DataFrame = worst.groupby(level=0).value_counts().unstack(fill_value=0)
    table = table.reindex(columns=[rank for rank in range(len(order)) if rank in table.columns])
    table.columns = pd.Index([order[int(rank)] for rank in table.columns])
    return table.sort_values(list(table.columns), ascending=False)


def _by_size(sizes: NDArray[Any]) -> NDArray[np.int64]:
    return np.bincount(np.searchsorted(_SIZES, sizes, side="right") - 1, minlength=len(_SIZES))


def _name_sizes(low: int, following: int) -> str:
    """Name the sizes of a bar, which ends before the next one begins."""
    return f"{low}" if following == low + 1 else f"{low}-{following - 1}"


_BARS_PER_DECADE = 6  # on a logarithmic axis, where whole numbers from 1 on lie farther apart
_HIGHEST_SCORE = 5.0
_GRID = (40, 20)
"""Cells along importance and along confidence."""


def scores(memories: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw importance against confidence; the area of a dot is the number of memories.

    Dots right of 1 are on another scale than 0 to 1; they have another colour, and their sources are named. A row of
    dots at one height is a source whose confidence never changes.

    Parameters
    ----------
    memories : DataFrame
        Needs ``importance``, ``confidence`` and ``source``.
    ax : Axes, optional
        Axes to draw into; new ones by default.

    Returns
    -------
    Axes
    """
    importance, confidence = read_numbers(memories, "importance"), read_numbers(memories, "confidence")
    missing = np.isnan(importance) | np.isnan(confidence)
    inside = (importance >= 0) & (importance <= _HIGHEST_SCORE) & (confidence >= 0) & (confidence <= 1)
    if not inside.any():
        return blank(
            ax, "Importance and confidence", describe_empty(memories, "none has both scores in range")
        )
    ax = prepare(ax, f"Importance and confidence, n = {inside.sum():,}", grid="both")
    _dots(ax, importance[inside], confidence[inside])
    ax.set_yticks(np.arange(0, 1.1, 0.2))
    ax.set_ylabel("confidence", fontsize=SMALL, alpha=SOFT)
    _name_high(ax, read_texts(memories, "source")[inside & (importance > 1)])
    out_of_range = ~inside & ~missing
    note(
        ax,
        count_omitted(missing, "without both scores"),
        count_omitted(out_of_range, "out of range"),
        axis="importance",
    )
    return ax


def lengths(memories: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the lengths of contents, in characters, on a logarithmic scale.

    Parameters
    ----------
    memories : DataFrame
        Needs ``content``.
    ax : Axes, optional
        Axes to draw into; new ones by default.

    Returns
    -------
    Axes
    """
    n_chars = read_texts(memories, "content").str.len().to_numpy(dtype=np.float64, na_value=np.nan)
    filled = n_chars > 0  # False for missing content
    if not filled.any():
        return blank(ax, "Length of content", describe_empty(memories, "none has content that can be read"))
    ax = prepare(ax, f"Length of content, n = {filled.sum():,}", grid="y")
    steps = np.floor(_BARS_PER_DECADE * np.log10([n_chars[filled].min(), n_chars[filled].max()]) + 1e-9)
    edges = 10 ** (np.arange(steps[0], steps[1] + 2) / _BARS_PER_DECADE)
    ax.hist(n_chars[filled], bins=edges.tolist(), color=BLUE, rwidth=0.92)
    _log_axis(ax, edges)
    median = float(np.median(n_chars[filled]))
    ax.axvline(median, color=VERMILION, linewidth=1.2)
    ax.annotate(
        f"median {median:,.0f}",
        (median, 1),
        xycoords=("data", "axes fraction"),
        xytext=(4, -2),
        textcoords="offset points",
        va="top",
        fontsize=SMALL,
        color=VERMILION,
    )
    missing, empty = np.isnan(n_chars), n_chars == 0
    note(ax, count_omitted(missing, "without content"), count_omitted(empty, "empty"), axis="characters")
    return ax


def _dots(ax: Axes, importance: NDArray[np.float64], confidence: NDArray[np.float64]) -> None:
    widest = max(1.0, float(np.ceil(importance.max())))
    cells = np.column_stack([np.round(importance / widest * _GRID[0]), np.round(confidence * _GRID[1])])
    places, counts = np.unique(cells, axis=0, return_counts=True)
    x, y = (places / _GRID).T * [[widest], [1]]
    area = np.maximum(14, 80 * counts / counts.max())
    ax.scatter(x, y, area, np.where(x > 1, VERMILION, BLUE), linewidths=0, alpha=0.75)
    ax.set_xlim(-0.05 * widest, 1.05 * widest)
    ax.set_ylim(-0.06, 1.06)


def _name_high(ax: Axes, source: pd.Series[str]) -> None:
    """Draw a line at importance 1, and name the number and sources of the memories above it."""
    if source.empty:
        return
    ax.axvline(1, color=GREY, linewidth=1, linestyle="--")
    names = [label(name, 14) for name in rank_values(source.fillna("no source")).names]
    words = f" {len(source):,} above 1: {', '.join(names[:2])}{', …' if len(names) > 2 else ''}"
    ax.text(1, 1.12, words, va="center", in_layout=False, fontsize=SMALL, color=VERMILION, **plain_text())
    ax.set_ylim(top=1.2)


def _log_axis(ax: Axes, edges: NDArray[np.float64]) -> None:
    n_decades = np.log10(edges[-1] / edges[0])
    margin = 10 ** max(0.05, (1 - n_decades) / 2)  # few bars stay slim
    ax.set_xscale("log")
    ax.set_xlim(edges[0] / margin, edges[-1] * margin)
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if n_decades < 2 else (1,)))
    ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    ax.xaxis.set_minor_locator(NullLocator())
    count_axis(ax)


def overview(memories: pd.DataFrame) -> Figure:
    """Draw all charts of memories on one page.

    Parameters
    ----------
    memories : DataFrame
        As `memframe.load_memories` returns them.

    Returns
    -------
    Figure
    """
    figure = new_figure(10.5, 10.5)
    panels = figure.subplot_mosaic(
        [["timeline", "timeline"], ["tags", "sources"], ["scores", "lengths"]], height_ratios=[3, 4, 4]
    )
    for draw in (timeline, tags, sources, scores, lengths):
        draw(memories, ax=panels[draw.__name__])
    moments = read_times(memories, "created_at")
    days = np.unique(moments[(moments >= FIRST) & (moments < LAST)].astype("datetime64[D]"))
    span = f", {days[0]} to {days[-1]}" if len(days) > 1 else ""
    headline = f"{number_of(len(memories), 'memory', 'memories')}{span}"
    figure.suptitle(headline, x=0.01, ha="left", fontsize=14, fontweight="bold")
    return figure
