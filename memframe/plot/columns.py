"""Draw counts of some days as columns, their parts upon each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from memframe.plot.axes import SMALL, label, legend, prepare
from memframe.plot.charts import SEVERITY_COLOURS

MAX_NAMED = 10
"""Columns with a name below them, and at most three times as many with a number above."""


def stacked_columns(
    ax: Axes, title: str, names: Sequence[str], parts: Mapping[str, Sequence[int]], added: Sequence[int]
) -> None:
    """Draw a column for each name, of one part for each severity, and above it how many were added.

    Parameters
    ----------
    ax : Axes
    title : str
    names : sequence of str
        One a column.
    parts : mapping of str to sequence of int
        By severity, a number for each column.
    added : sequence of int
    """
    ax = prepare(ax, title, grid="y")
    places, tops = range(len(names)), [0] * len(names)
    shown = [name for name, heights in parts.items() if any(heights)]
    handles = []
    for name in shown:
        handles.append(ax.bar(places, parts[name], 0.7, bottom=tops, color=SEVERITY_COLOURS[name]))
        tops = [top + height for top, height in zip(tops, parts[name], strict=True)]
    for place, top, n in zip(places, tops, added, strict=True):
        if n and len(names) <= 3 * MAX_NAMED:
            ax.annotate(f"+{n:,}", (place, top), ha="center", va="bottom", fontsize=SMALL)
    every = -(-len(names) // MAX_NAMED)
    ax.set_xticks(places[::every], [label(name) for name in names[::every]])
    legend(ax, handles, shown)
