"""How many: memories over time, under each tag, from each source."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import numpy as np
import pandas as pd
from matplotlib import dates as mdates
from matplotlib.axes import Axes
from numpy.typing import NDArray

from memframe.columns import name_cells, ranked, texts, times
from memframe.plot.bins import FIRST, LAST, TimeBins, bin_times
from memframe.plot.pairs import draw_pairs
from memframe.plot.paper import SERIES, blank, count_axis, legend, note, prepare, ranked_bars
from memframe.plot.wording import left_out, more, nothing

_MAX_ROWS = 15
_NO_SOURCE = "(no source)"


def timeline(memories: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """When memories were created: a bar per day, week, month, quarter or year, stacked by source.

    Times that no memory can have, such as the zero of some clock, are counted below and not drawn.

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
    missing = np.isnat(moments)
    drawn = (moments >= FIRST) & (moments < LAST)  # False where there is none
    if not drawn.any():
        return blank(ax, "Memories over time", nothing(memories, "none has a time that can be"))
    bins = bin_times(moments[drawn])
    names, series = _series_of(texts(memories, "source")[drawn])
    heights = np.zeros((len(names), len(bins.edges) - 1), dtype=np.int64)
    np.add.at(heights, (series, bins.place), 1)
    ax = prepare(ax, f"Memories per {bins.unit}, n = {drawn.sum():,}", grid="y")
    _stack(ax, bins, heights, names)
    _calendar_axis(ax, bins)
    odd = ~drawn & ~missing
    note(ax, left_out(missing, "without a time"), left_out(odd, "before 1971 or after 2099"))
    return ax


def tags(memories: pd.DataFrame, *, together: bool = False, ax: Axes | None = None) -> Axes:
    """The most frequent tags, by how many memories carry them, or which of them occur together.

    Parameters
    ----------
    memories : DataFrame
        Needs ``tags``, tuples of names.
    together : bool
        Whether to draw, for each two of the tags, how many memories carry both.
    ax : Axes, optional
        Where to draw; new axes otherwise.

    Returns
    -------
    Axes
    """
    cells = name_cells(memories, "tags")
    ranking = _by_count(Counter(chain.from_iterable(map(set, cells))))
    if not ranking:
        return blank(ax, "Tags", nothing(memories, "none has a tag"))
    if together:
        return draw_pairs(cells, [name for name, _ in ranking], ax=ax)
    ax = prepare(ax, f"Memories per tag, n = {len(cells):,}")
    names, counts = zip(*ranking[:_MAX_ROWS], strict=True)
    ranked_bars(ax, names, counts, [f"{count:,}" for count in counts])
    untagged = np.array([len(cell) == 0 for cell in cells])
    note(ax, more(len(ranking) - len(names), "tag"), left_out(untagged, "without tags"))
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
    'Memories per source, n = 3'
    """
    ranking = ranked(texts(memories, "source").fillna(_NO_SOURCE))
    if not ranking.names:
        return blank(ax, "Sources", nothing(memories, ""))
    ax = prepare(ax, f"Memories per source, n = {len(memories):,}")
    counts = ranking.counts[:_MAX_ROWS]
    values = [f"{count:,} ({count / len(memories):.0%})" for count in counts]
    ranked_bars(ax, ranking.names[:_MAX_ROWS], counts, values)
    note(ax, more(len(ranking.names) - len(counts), "source"))
    return ax


def _by_count(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _series_of(source: pd.Series[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Names of the series, largest first and what is too much for the palette together; each row's series."""
    ranking = ranked(source.fillna(_NO_SOURCE))
    n_names = len(ranking.names)
    n_shown = n_names if n_names <= len(SERIES) else len(SERIES) - 1
    rest = [f"{n_names - n_shown} others"] if n_shown < n_names else []
    return ranking.names[:n_shown] + rest, np.minimum(ranking.place, n_shown)


def _stack(ax: Axes, bins: TimeBins, heights: NDArray[np.int64], names: list[str]) -> None:
    edges = _date_numbers(bins.edges)
    widths = 0.9 * np.diff(edges)
    bars = []
    for tall, top, color in zip(heights, heights.cumsum(axis=0), SERIES, strict=False):
        some = tall > 0  # thousands of bars without height would take most of the time
        bottom = (top - tall)[some]
        bars.append(ax.bar(edges[:-1][some], tall[some], widths[some], bottom, align="edge", color=color))
    if len(names) > 1:
        legend(ax, bars, names)


def _calendar_axis(ax: Axes, bins: TimeBins) -> None:
    edges = _date_numbers(bins.edges)
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
