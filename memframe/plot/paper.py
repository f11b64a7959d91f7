"""What the pictures are drawn on: axes and figures that notebooks show, titled and without clutter."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from memframe.plot.lettering import label, labels, plain_text

BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#999999"
SERIES = (BLUE, "#E69F00", "#009E73", "#56B4E9", VERMILION, GREY)

SMALL = 8.5
"""Points of every text but the title."""

SOFT = 0.65
"""Opacity of secondary text, so that it follows the ink of the style in use."""

_AXES_SIZE = (7.2, 3.6)
_LEGEND_CHARS = 70
_SHARPNESS = 2  # pixels of the picture for each pixel on a plain screen


class NotebookFigure(Figure):
    """A ``Figure`` that notebooks show though pyplot does not know it."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return _png(self)


class NotebookAxes(Axes):
    """``Axes`` that notebooks show as the figure that they are in."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return _png(self.get_figure(root=True))


def _png(figure: Figure | None) -> tuple[bytes, dict[str, int]]:
    if figure is None:
        raise RuntimeError("these axes were removed from their figure; draw them anew")
    width, height = figure.get_size_inches() * figure.dpi
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=_SHARPNESS * figure.dpi)
    return picture.getvalue(), {"width": round(width), "height": round(height)}


def new_figure(width: float, height: float) -> NotebookFigure:
    """An empty figure of that many inches, which lays itself out."""
    return NotebookFigure(figsize=(width, height), layout=ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.1))


def prepare(ax: Axes | None, title: str, *, grid: Literal["x", "y", "both"] | None = None) -> Axes:
    """`ax`, or new axes, with the title and without frame and ticks."""
    if ax is None:
        ax = new_figure(*_AXES_SIZE).add_subplot(axes_class=NotebookAxes)
    _entitle(ax, title, pad=8)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_alpha(0.3)
    ax.tick_params(labelsize=SMALL, length=0)
    ax.set_axisbelow(True)
    if grid:
        ax.grid(axis=grid, alpha=0.2, linewidth=0.8)
    return ax


def _entitle(ax: Axes, title: str, *, pad: float) -> None:
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold", pad=pad)


def blank(ax: Axes | None, title: str, words: str) -> Axes:
    """Axes that say in words why there is nothing to see."""
    ax = prepare(ax, title)
    ax.set_axis_off()
    ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center", alpha=SOFT)
    return ax


def note(ax: Axes, *sentences: str, axis: str = "") -> None:
    """Small print below the axes, after the name of the axis; empty sentences are left out."""
    text = "; ".join(filter(None, sentences))
    if axis and text:
        text = f"{axis}  ({text})"
    ax.set_xlabel(text or axis, loc="left", fontsize=SMALL, alpha=SOFT, labelpad=6)


def count_axis(ax: Axes) -> None:
    """Whole numbers from zero up, few of them, and room above the highest."""
    ax.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, min_n_ticks=1))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.margins(y=0.1)
    ax.set_ylim(bottom=0)


def ranked_bars(ax: Axes, names: Sequence[str], counts: Sequence[int], values: Sequence[str]) -> None:
    """Horizontal bars, the first on top, each with its value written at its end."""
    rows = range(len(names))
    bars = ax.barh(rows, counts, height=0.7, color=BLUE)
    ax.bar_label(bars, values, padding=4, fontsize=SMALL, alpha=SOFT)
    ax.set_yticks(rows, labels=labels(names), **plain_text())
    ax.set_ylim(max(len(names), 6) - 0.4, -0.6)  # few bars stay slim
    ax.set_xlim(0, 1.15 * max(counts))
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)


def legend(ax: Axes, handles: Sequence[Any], names: Sequence[str]) -> None:
    """The names in one line between title and axes, each beside its colour."""
    shown = labels(names)
    if sum(map(len, shown)) > _LEGEND_CHARS:
        shown = [label(name, _LEGEND_CHARS // len(names)) for name in names]
    box = ax.legend(
        handles,
        [str(number) for number in range(len(names))],  # a label that begins with "_" would be left out
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=len(names),
        frameon=False,
        fontsize=SMALL,
        handlelength=0.8,
        handleheight=0.8,
        handletextpad=0.4,
        columnspacing=1.2,
        borderpad=0,
        borderaxespad=0.3,
    )
    for entry, name in zip(box.get_texts(), shown, strict=True):
        entry.set(text=name, **plain_text())
    _entitle(ax, ax.get_title(loc="left"), pad=22)
