"""One function a picture, from a frame of memories to matplotlib Axes."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import numpy as np
import pandas as pd
from matplotlib import dates as mdates
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from memframe.plot.bins import CALENDAR, TimeBins, bin_times, length_edges
from memframe.plot.columns import name_cells, numbers, texts, times
from memframe.plot.lettering import label, lettering
from memframe.plot.paper import (
    BLUE,
    GREY,
    SERIES,
    SMALL,
    SOFT,
    VERMILION,
    blank,
    legend,
    new_figure,
    note,
    prepare,
    ranked_bars,
)

_MAX_ROWS = 15
_NO_SOURCE = "(no source)"
_HIGHEST_SCORE = 5.0


def timeline(memories: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """When memories were created: a bar a day, week, month, quarter or year, stacked by source.

    Parameters
    ----------
    memories : DataFrame
        Needs ``created_at`` and ``source``.
    ax : Axes, optional
        Where to draw; new axes otherwise.

    Returns
    -------
    Axes
    """
    moments = times(memories, "created_at")
    known = ~np.isnat(moments)
    if not known.any():
        return blank(ax, "Memories over time", _nothing(memories, "none has a time"))
    bins = bin_times(moments[known])
    names, series = _series_of(texts(memories, "source")[known])
    heights = np.zeros((len(names), len(bins.edges) - 1), dtype=np.int64)
    np.add.at(heights, (series, bins.place), 1)
    ax = prepare(ax, f"Memories a {bins.unit}, n = {known.sum():,}", grid="y")
    _stack(ax, bins, heights, names)
    _calendar_axis(ax, bins)
    note(ax, _left_out(~known, "without a time"))
    return ax


def tags(memories: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """The most frequent tags, by how many memories carry them.

    Parameters
    ----------
    memories : DataFrame
        Needs ``tags``, tuples of names.
    ax : Axes, optional
        Where to draw; new axes otherwise.

    Returns
    -------
    Axes
    """
    cells = name_cells(memories, "tags")
    ranking = _ranked(Counter(chain.from_iterable(map(set, cells))))
    if not ranking:
        return blank(ax, "Tags", _nothing(memories, "none has a tag"))
    ax = prepare(ax, f"Memories a tag, n = {len(cells):,}")
    names, counts = zip(*ranking[:_MAX_ROWS], strict=True)
    ranked_bars(ax, names, counts, [f"{count:,}" for count in counts])
    note(ax, _more(len(ranking), "tag"), _left_out(np.array([not cell for cell in cells]), "without tags"))
    return ax


def sources(memories: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Which applications the memories come from.

    Parameters
    ----------
    memories : DataFrame
        Needs ``source``.
    ax : Axes, optional
        Where to draw; new axes otherwise.

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = sources(pd.DataFrame({"source": ["chat", "chat", "mail"]}))
    >>> ax.get_title(loc="left")
    'Memories a source, n = 3'
    """
    if memories.empty:
        return blank(ax, "Sources", "No memories")
    ranking = _ranked(Counter(texts(memories, "source").fillna(_NO_SOURCE)))
    ax = prepare(ax, f"Memories a source, n = {len(memories):,}")
    names, counts = zip(*ranking[:_MAX_ROWS], strict=True)
    ranked_bars(ax, names, counts, [f"{count:,} ({count / len(memories):.0%})" for count in counts])
    note(ax, _more(len(ranking), "source"))
    return ax


def scores(memories: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Importance against confidence: a dot for each place, as large as memories are many there.

    What stands right of 1 was scored on another scale than 0 to 1 and is drawn in another colour, with
    the names of its sources. A line across at one height is a source that is always equally sure.

    Parameters
    ----------
    memories : DataFrame
        Needs ``importance``, ``confidence`` and ``source``.
    ax : Axes, optional
        Where to draw; new axes otherwise.

    Returns
    -------
    Axes
    """
    importance, confidence = numbers(memories, "importance"), numbers(memories, "confidence")
    missing = np.isnan(importance) | np.isnan(confidence)
    with np.errstate(invalid="ignore"):
        inside = (importance >= 0) & (importance <= _HIGHEST_SCORE) & (confidence >= 0) & (confidence <= 1)
    if not inside.any():
        return blank(ax, "Scores", _nothing(memories, "none has both scores in range"))
    ax = prepare(ax, f"Importance and confidence, n = {inside.sum():,}", grid="both")
    _dots(ax, importance[inside], confidence[inside])
    _name_high(ax, texts(memories, "source")[inside & (importance > 1)])
    ax.set_ylabel("confidence", fontsize=SMALL, alpha=SOFT)
    outside = ~inside & ~missing
    note(ax, "importance", _left_out(missing, "without both"), _left_out(outside, "outside 0 to 5 or 0 to 1"))
    return ax


def lengths(memories: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """How long the contents are, in characters, on a logarithmic scale.

    Parameters
    ----------
    memories : DataFrame
        Needs ``content``.
    ax : Axes, optional
        Where to draw; new axes otherwise.

    Returns
    -------
    Axes
    """
    n_chars = texts(memories, "content").str.len().to_numpy(dtype=np.float64, na_value=np.nan)
    filled = n_chars > 0  # False where there is none
    if not filled.any():
        return blank(ax, "Length of content", _nothing(memories, "none has content that can be read"))
    ax = prepare(ax, f"Length of content, n = {filled.sum():,}", grid="y")
    ax.hist(n_chars[filled], bins=length_edges(n_chars[filled]).tolist(), color=BLUE, rwidth=0.92)
    _log_axis(ax)
    _mark_median(ax, float(np.median(n_chars[filled])))
    note(ax, "characters", _left_out(np.isnan(n_chars), "without content"), _left_out(n_chars == 0, "empty"))
    return ax


def overview(memories: pd.DataFrame) -> Figure:
    """All pictures of memories on one page.

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
        [["timeline", "timeline"], ["tags", "sources"], ["scores", "lengths"]],
        height_ratios=[3, 4, 4],
    )
    for draw in (timeline, tags, sources, scores, lengths):
        draw(memories, ax=panels[draw.__name__])
    figure.suptitle(_headline(memories), x=0.01, ha="left", fontsize=14, fontweight="bold")
    figure.get_layout_engine().set(hspace=0.06, wspace=0.06)  # type: ignore[union-attr, call-arg]
    return figure


def _headline(memories: pd.DataFrame) -> str:
    moments = times(memories, "created_at")
    known = np.sort(moments[~np.isnat(moments)]).astype("datetime64[D]")
    span = f", {known[0]} to {known[-1]}" if known.size else ""
    return f"{len(memories):,} memories{span}"


def _series_of(source: pd.Series[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Names of the series, largest first and the rest together, and the series of each row."""
    filled = source.fillna(_NO_SOURCE)
    names = [name for name, _ in _ranked(Counter(filled))]
    n_shown = len(names) if len(names) <= len(SERIES) else len(SERIES) - 1
    place = {name: min(rank, n_shown) for rank, name in enumerate(names)}
    series = np.asarray(filled.map(place), dtype=np.int64)
    rest = [f"{len(names) - n_shown} others"] if n_shown < len(names) else []
    return names[:n_shown] + rest, series


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _stack(ax: Axes, bins: TimeBins, heights: NDArray[np.int64], names: list[str]) -> None:
    edges, gap = _date_numbers(bins.edges), 0.9
    floors = heights.cumsum(axis=0) - heights
    bars = [
        ax.bar(
            edges[:-1][tall > 0],
            tall[tall > 0],
            gap * np.diff(edges)[tall > 0],
            floor[tall > 0],
            align="edge",
            color=color,
        )
        for tall, floor, color in zip(heights, floors, SERIES, strict=False)
    ]
    if len(names) > 1:
        legend(ax, bars, names)


def _date_numbers(dates: NDArray[np.datetime64]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = mdates.date2num(dates)  # type: ignore[no-untyped-call] # no types yet
    return result


def _calendar_axis(ax: Axes, bins: TimeBins) -> None:
    edges = _date_numbers(bins.edges)
    margin = max(0.01 * np.ptp(edges), (12 * np.diff(edges).max() - np.ptp(edges)) / 2)  # few bars stay slim
    ax.set_xlim(np.clip([edges[0] - margin, edges[-1] + margin], *_date_numbers(CALENDAR)))
    locator = mdates.AutoDateLocator()  # type: ignore[no-untyped-call] # matplotlib.dates has no types yet
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call] # as above
    ax.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, min_n_ticks=1))


def _dots(ax: Axes, importance: NDArray[np.float64], confidence: NDArray[np.float64]) -> None:
    widest = max(1.0, float(np.ceil(importance.max())))
    grid = np.column_stack([np.round(importance * 40 / widest), np.round(confidence * 20)])
    places, counts = np.unique(grid, axis=0, return_counts=True)
    x, y = places[:, 0] * widest / 40, places[:, 1] / 20
    size = 10 + 150 * counts / counts.max()
    ax.scatter(x, y, size, np.where(x > 1, VERMILION, BLUE), linewidths=0, alpha=0.75)
    ax.set_xlim(-0.05 * widest, 1.05 * widest)
    ax.set_ylim(-0.06, 1.06)


def _name_high(ax: Axes, source: pd.Series[str]) -> None:
    """Say above the line at 1 how many lie beyond it, and from which sources."""
    if source.empty:
        return
    ax.axvline(1, color=GREY, linewidth=1, linestyle="--")
    ranking = _ranked(Counter(source.fillna(_NO_SOURCE)))
    names = ", ".join(label(name, 18) for name, _ in ranking[:2]) + (", …" if len(ranking) > 2 else "")
    words = f"{len(source):,} above 1: {names}"
    ax.text(
        1,
        1,
        f" {words}",
        transform=ax.transAxes,
        ha="right",
        va="bottom",
        fontsize=SMALL,
        color=VERMILION,
        **lettering(),
    )


def _log_axis(ax: Axes) -> None:
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator())
    ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, min_n_ticks=1))


def _mark_median(ax: Axes, median: float) -> None:
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


def _nothing(memories: pd.DataFrame, why: str) -> str:
    return "No memories" if memories.empty else f"{len(memories):,} memories, {why}"


def _left_out(rows: NDArray[np.bool_], why: str) -> str:
    n_rows = int(np.count_nonzero(rows))
    return f"{n_rows:,} {why}" if n_rows else ""


def _more(n_names: int, what: str) -> str:
    hidden = n_names - _MAX_ROWS
    return f"{hidden:,} more {what}{'s' * (hidden > 1)}" if hidden > 0 else ""
