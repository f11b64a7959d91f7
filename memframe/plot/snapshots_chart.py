"""Draw the states that an archive keeps: memories over time by source, and what the refreshes changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from os import PathLike

import numpy as np
from matplotlib import dates as mdates
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from numpy.typing import NDArray

from memframe.display import number_of
from memframe.files import expand_path
from memframe.plot.axes import SERIES, blank, count_axis, legend, new_figure, note, prepare
from memframe.snapshots import SnapshotHeader, find_snapshots

_SIZE = (7.2, 4.8)
_LEAST_WIDTH = 1 / 120
"""Least width of a bar, as a share of the time axis."""

_Counts = NDArray[np.int64]


def history(path: str | PathLike[str]) -> Figure:
    """Draw the states that an archive keeps (`memframe.refresh_archive`).

    The upper chart shows the memories of each state, stacked by source. The lower one shows what each refresh changed:
    added and changed memories upwards, gone ones downwards. Snapshots that cannot be read are counted below the chart.

    Parameters
    ----------
    path : str or Path
        The folder of an archive.

    Returns
    -------
    Figure
    """
    found = find_snapshots(expand_path(path))
    states = [one.header for one in found if one.header]
    figure = new_figure(*_SIZE)
    if not states:
        blank(figure.add_subplot(), "Memories over time", "No snapshots")
        return figure
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    names, series = _rank_sources(states)
    moments = mdates.date2num([state.taken_at for state in states])  # type: ignore[no-untyped-call] # no types yet
    _draw_memories(upper, states, moments, names, series)
    _draw_changes(lower, states, moments, series, len(names))
    n_damaged = len(found) - len(states)
    note(lower, number_of(n_damaged, "state", "states") + " cannot be read" if n_damaged else "")
    return figure


def _rank_sources(states: Sequence[SnapshotHeader]) -> tuple[list[str], dict[str | None, int]]:
    """Return the names of series, largest first (those beyond the palette as one), and the series of each source."""
    totals: Counter[str | None] = Counter()
    for state in states:
        totals.update({one.source: one.n_rows for one in state.sources})
    ranking = [source for source, _ in totals.most_common()]
    n_shown = len(ranking) if len(ranking) <= len(SERIES) else len(SERIES) - 1
    rest = [f"{len(ranking) - n_shown} others"] if n_shown < len(ranking) else []
    names = [source or "(no source)" for source in ranking[:n_shown]] + rest
    return names, {source: min(place, n_shown) for place, source in enumerate(ranking)}


def _sum_series(
    states: Sequence[SnapshotHeader], series: dict[str | None, int], n_series: int, *fields: str
) -> _Counts:
    """Return the sum of some counts, by series and state."""
    heights = np.zeros((n_series, len(states)), np.int64)
    for place, state in enumerate(states):
        for one in state.sources:
            heights[series[one.source], place] += sum(getattr(one, field) for field in fields)
    return heights


def _draw_memories(
    ax: Axes,
    states: Sequence[SnapshotHeader],
    moments: NDArray[np.float64],
    names: list[str],
    series: dict[str | None, int],
) -> None:
    prepare(ax, f"Memories in {number_of(len(states), 'state', 'states')}", grid="y")
    heights = _sum_series(states, series, len(names), "n_rows")
    tops = heights.cumsum(axis=0)
    ends = np.append(
        moments, moments[-1] + _width_of(moments)
    )  # the last state is drawn as long as a bar is wide
    bands = [
        ax.fill_between(
            ends, np.append(top - tall, 0), np.append(top, 0), step="post", color=color, linewidth=0
        )
        for tall, top, color in zip(heights, tops, SERIES, strict=False)
    ]
    count_axis(ax)
    if len(names) > 1:
        legend(ax, bands, names)


def _draw_changes(
    ax: Axes,
    states: Sequence[SnapshotHeader],
    moments: NDArray[np.float64],
    series: dict[str | None, int],
    n_series: int,
) -> None:
    prepare(ax, "Changes at each refresh: added and changed above, gone below", grid="y")
    width = 0.8 * _width_of(moments)
    for fields, sign in ((("added", "changed"), 1), (("gone",), -1)):
        heights = _sum_series(states, series, n_series, *fields)
        for tall, top, color in zip(heights, heights.cumsum(axis=0), SERIES, strict=False):
            some = tall > 0
            ax.bar(
                moments[some], sign * tall[some], width, sign * (top - tall)[some], align="edge", color=color
            )
    ax.axhline(0, linewidth=0.8, color=ax.xaxis.label.get_color(), alpha=0.3)
    ax.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, min_n_ticks=1))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    locator = mdates.AutoDateLocator()  # type: ignore[no-untyped-call] # as above
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call] # as above


def _width_of(moments: NDArray[np.float64]) -> float:
    """Return the width of a state in days: the shortest time between two states, but enough to be visible."""
    span = float(np.ptp(moments)) or 1.0
    return max(float(np.diff(moments).min(initial=span)), _LEAST_WIDTH * span)
