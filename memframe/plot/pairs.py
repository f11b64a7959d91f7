"""Which tags occur together: a table of shades."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from numpy.typing import NDArray

from memframe.plot.lettering import labels, plain_text
from memframe.plot.paper import BLUE, SMALL, blank, note, prepare
from memframe.plot.wording import more

_MAX_TAGS = 12
_DARK = 0.55
"""Shade from which on white letters are read better than those of the style."""


def draw_pairs(cells: Sequence[Collection[str]], names: Sequence[str], *, ax: Axes | None) -> Axes:
    """How many memories carry each two of the first names.

    The darker, the larger their share of the memories with the rarer of the two tags.
    """
    shown = names[:_MAX_TAGS]
    counts = _together(cells, shown)
    if not np.tril(counts, k=-1).any():
        return blank(ax, "Memories with both tags", "No memory carries two of the frequent tags")
    rarer = np.minimum.outer(counts.diagonal(), counts.diagonal())
    pairs = np.tril(np.ones_like(counts, dtype=bool), k=-1)
    shades = np.ma.masked_where(~pairs, counts / np.maximum(rarer, 1))
    ax = prepare(ax, f"Memories with both tags, n = {len(cells):,}")
    ax.imshow(shades, cmap=_SHADES, vmin=0, vmax=1, aspect="auto")
    for row, column in zip(*np.nonzero(pairs & (counts > 0)), strict=True):
        colour: dict[str, Any] = {"color": "white"} if shades[row, column] > _DARK else {}
        ax.text(column, row, f"{counts[row, column]:,}", ha="center", va="center", fontsize=SMALL, **colour)
    ax.set_yticks(range(1, len(shown)), labels=labels(shown[1:]), **plain_text())
    ax.set_xticks(
        range(len(shown) - 1), labels=labels(shown[:-1], 14), rotation=35, ha="right", **plain_text()
    )
    ax.set_xlim(-0.5, len(shown) - 1.5)
    ax.set_ylim(len(shown) - 0.5, 0.5)
    ax.spines["bottom"].set_visible(False)
    note(ax, more(len(names) - len(shown), "tag"))
    return ax


_SHADES = LinearSegmentedColormap.from_list("shades", [to_rgba(BLUE, 0.07), to_rgba(BLUE, 1.0)])


def _together(cells: Sequence[Collection[str]], names: Sequence[str]) -> NDArray[np.int64]:
    """Memories by two tags; on the diagonal those with one."""
    place = {name: column for column, name in enumerate(names)}
    carried = np.zeros((len(cells), len(names)), dtype=np.int64)
    for row, cell in enumerate(cells):
        carried[row, [place[name] for name in set(cell) if name in place]] = 1
    table: NDArray[np.int64] = carried.T @ carried
    return table
