"""Draw counts of several days as columns."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from memframe.plot.axes import SMALL, label, prepare

MAX_LABELS = 5
"""Most columns with a name below them."""

MAX_DIGITS = 60
"""Most characters of the numbers above all columns; if there are more, only the last column has its number."""


def draw_columns(ax: Axes, title: str, names: Sequence[str], heights: Sequence[int], color: str) -> None:
    """Draw a column for each name."""
    ax = prepare(ax, title, grid="y")
    bars = ax.bar(range(len(names)), heights, 0.7, color=color)
    numbers = [f"{n:,}" if n else "" for n in heights]
    if len(names) * max(map(len, numbers)) > MAX_DIGITS:
        numbers[:-1] = [""] * (len(names) - 1)
    ax.bar_label(bars, numbers, fontsize=SMALL, padding=1)
    every = -(-len(names) // MAX_LABELS)
    shown = range((len(names) - 1) % every, len(names), every)  # the last one always
    ax.set_xticks(shown, [label(names[place]) for place in shown])
    ax.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.set_ylim(0, 1.15 * max(*heights, 1))
