"""How much: the scores that memories carry, and how long their contents are."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from memframe.columns import numbers, ranked, texts
from memframe.plot.bins import length_edges
from memframe.plot.lettering import label, plain_text
from memframe.plot.paper import (
    BLUE,
    GREY,
    SMALL,
    SOFT,
    VERMILION,
    blank,
    count_axis,
    note,
    prepare,
)
from memframe.plot.wording import left_out, nothing

_HIGHEST_SCORE = 5.0
_GRID = (40, 20)
"""Places that are told apart along importance and along confidence."""


def scores(memories: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Importance against confidence: a dot for each place, as large as memories are many there.

    What stands right of 1 was scored on another scale than 0 to 1; it is drawn in another colour, with
    the names of its sources. A row of dots at one height is a source that is always equally sure.

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
    inside = _between(importance, _HIGHEST_SCORE) & _between(confidence, 1)
    if not inside.any():
        return blank(ax, "Importance and confidence", nothing(memories, "none has both scores in range"))
    ax = prepare(ax, f"Importance and confidence, n = {inside.sum():,}", grid="both")
    _dots(ax, importance[inside], confidence[inside])
    ax.set_yticks(np.arange(0, 1.1, 0.2))
    ax.set_ylabel("confidence", fontsize=SMALL, alpha=SOFT)
    _name_high(ax, texts(memories, "source")[inside & (importance > 1)])
    odd = ~inside & ~missing
    note(ax, left_out(missing, "without both scores"), left_out(odd, "out of range"), axis="importance")
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
        return blank(ax, "Length of content", nothing(memories, "none has content that can be read"))
    ax = prepare(ax, f"Length of content, n = {filled.sum():,}", grid="y")
    edges = length_edges(n_chars[filled])
    ax.hist(n_chars[filled], bins=edges.tolist(), color=BLUE, rwidth=0.92)
    _log_axis(ax, edges)
    _mark_median(ax, float(np.median(n_chars[filled])))
    missing, empty = np.isnan(n_chars), n_chars == 0
    note(ax, left_out(missing, "without content"), left_out(empty, "empty"), axis="characters")
    return ax


def _between(values: NDArray[np.float64], highest: float) -> NDArray[np.bool_]:
    return (values >= 0) & (values <= highest)


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
    """Say beside a line at 1 how many lie beyond it, and from which sources."""
    if source.empty:
        return
    ax.axvline(1, color=GREY, linewidth=1, linestyle="--")
    names = [label(name, 14) for name in ranked(source.fillna("no source")).names]
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
