"""Axes, labels and SVG for the charts: titled, uncluttered, and in fonts that have the letters of memories."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from io import BytesIO, StringIO
from itertools import chain
from typing import Any, Literal
from xml.etree.ElementTree import Element, fromstring, tostring

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from memframe.display import Markup

MAX_LABEL_CHARS = 24

_FALLBACKS = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Noto Sans JP",
    "Hiragino Sans",
    "PingFang SC",
    "Yu Gothic",
    "Microsoft YaHei",
    "Malgun Gothic",
    "Apple SD Gothic Neo",
    "WenQuanYi Zen Hei",
    "Noto Sans Arabic",
    "Noto Sans Devanagari",
    "Noto Emoji",
    "Segoe UI Emoji",
    "Symbola",
)
"""Outline fonts that are common on some system; matplotlib cannot draw colour bitmap fonts."""

_MISSING = "□"


def plain_text() -> dict[str, Any]:
    """Return properties of a ``Text`` that holds strangers' words: without formulas and TeX."""
    return {"parse_math": False, "usetex": False, "fontfamily": list(_families(_own_families()))}


def label(text: str, max_chars: int = MAX_LABEL_CHARS) -> str:
    r"""Put text on one line of at most `max_chars` characters, without invisible ones.

    A letter that is in no installed font is replaced by an open square, because matplotlib would warn about it.

    >>> label("recipes\n\u202efor winter")
    'recipes for winter'
    >>> label("everything that has to do with soup", 12)
    'everything …'
    >>> label(" ")
    '(empty)'
    """
    spaced = "".join(" " if letter.isspace() else letter for letter in text[: 20 * max_chars])
    visible = "".join(letter for letter in spaced if unicodedata.category(letter)[0] != "C")
    line = " ".join(visible.split())
    line = line if len(line) <= max_chars else line[: max_chars - 1] + "…"
    if not line.isascii():
        letters = _letters(_families(_own_families()))
        line = "".join(letter if ord(letter) in letters else _MISSING for letter in line)
    return line or "(empty)"


def labels(texts: Iterable[str]) -> list[str]:
    """Apply `label` to each text."""
    return [label(text) for text in texts]


def _own_families() -> tuple[str, ...]:
    return tuple(mpl.rcParams["font.family"])


@cache
def _families(own: tuple[str, ...]) -> tuple[str, ...]:
    installed = set(fontManager.get_font_names())
    return (*own, *(name for name in _FALLBACKS if name in installed))


@cache
def _letters(families: tuple[str, ...]) -> frozenset[int]:
    fonts = (get_font(findfont(FontProperties(family=[name]))) for name in families)
    return frozenset().union(*(font.get_charmap() for font in fonts))


BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#999999"
SERIES = (BLUE, "#E69F00", "#009E73", "#56B4E9", VERMILION, GREY)

SMALL = 8.5
"""Font size of all text but the title."""

SOFT = 0.65
"""Opacity of secondary text, so that it keeps the text colour of the style in use."""

_AXES_SIZE = (7.2, 3.6)
_LEGEND_CHARS = 70
_SHARPNESS = 2  # pixels of the picture for each pixel on a plain screen


class NotebookFigure(Figure):
    """A ``Figure`` that notebooks show without pyplot."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return _png(self)


class NotebookAxes(Axes):
    """``Axes`` that notebooks show as their figure."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return _png(self.get_figure(root=True))


def _png(figure: Figure | None) -> tuple[bytes, dict[str, int]]:
    if figure is None:
        raise RuntimeError("these axes were removed from their figure; draw them again")
    width, height = figure.get_size_inches() * figure.dpi
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=_SHARPNESS * figure.dpi)
    return picture.getvalue(), {"width": round(width), "height": round(height)}


def new_figure(width: float, height: float) -> NotebookFigure:
    """Make an empty figure of a size in inches, with a constrained layout."""
    return NotebookFigure(figsize=(width, height), layout=ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.1))


def prepare(ax: Axes | None, title: str, *, grid: Literal["x", "y", "both"] | None = None) -> Axes:
    """Give `ax`, or new axes, a title, and remove frame and ticks."""
    if ax is None:
        ax = new_figure(*_AXES_SIZE).add_subplot(axes_class=NotebookAxes)
    _set_title(ax, title, pad=8)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_alpha(0.3)
    ax.tick_params(labelsize=SMALL, length=0)
    ax.set_axisbelow(True)
    if grid:
        ax.grid(axis=grid, alpha=0.2, linewidth=0.8)
    return ax


def _set_title(ax: Axes, title: str, *, pad: float) -> None:
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold", pad=pad)


def blank(ax: Axes | None, title: str, words: str) -> Axes:
    """Make axes that say why there is nothing to draw."""
    ax = prepare(ax, title)
    ax.set_axis_off()
    ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center", alpha=SOFT)
    return ax


def note(ax: Axes, *sentences: str, axis: str = "") -> None:
    """Write sentences in small print below the axes, after the name of the axis; leave out empty ones."""
    text = "; ".join(filter(None, sentences))
    if axis and text:
        text = f"{axis}  ({text})"
    ax.set_xlabel(text or axis, loc="left", fontsize=SMALL, alpha=SOFT, labelpad=6)


def count_axis(ax: Axes) -> None:
    """Scale the axis from zero, with few whole numbers and room above the highest."""
    ax.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, min_n_ticks=1))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.margins(y=0.1)
    ax.set_ylim(bottom=0)


def ranked_bars(
    ax: Axes, names: Sequence[str], parts: Sequence[tuple[Sequence[float], str]], values: Sequence[str]
) -> list[Any]:
    """Draw horizontal bars, the first on top, of stacked parts with their colours; each with its value at the end."""
    rows, left = range(len(names)), np.zeros(len(names))
    bars = []
    for widths, color in parts:
        bars.append(ax.barh(rows, widths, 0.7, left, color=color))
        left += widths
    ax.bar_label(bars[-1], values, padding=4, fontsize=SMALL, alpha=SOFT)
    ax.set_yticks(rows, labels=labels(names), **plain_text())
    ax.set_ylim(max(len(names), 6) - 0.4, -0.6)  # few bars stay slim
    ax.set_xlim(0, 1.15 * left.max())
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    return bars


def legend(ax: Axes, handles: Sequence[Any], names: Sequence[str]) -> None:
    """Write the names in one line between title and axes, each beside its colour."""
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
    _set_title(ax, ax.get_title(loc="left"), pad=22)


_INK = "#010203"
"""A colour that nothing else has; it is replaced by the colour of the page's text."""

_SETTINGS: dict[Any, Any] = {
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "memframe",
}
_LEFT_OUT = {"metadata", "style", "title"}
_NAMESPACE = re.compile(r"\{[^}]*\}")
_FONT = re.compile(r"(?:(?P<weight>bold|[0-9]{3}) )?(?P<size>[0-9.]+)px .*")
_UPRIGHT = re.compile(r"rotate\(-?0 ")


def inline_svg(draw: Callable[[Axes], object], *, width: float, height: float, words: str) -> Markup:
    """Draw a picture as an ``svg`` element without styles, scripts or links.

    It uses only attributes, which a strict content security policy allows.

    Parameters
    ----------
    draw : callable
        Function that draws into given axes.
    width, height : float
        Size in inches of matplotlib; on the page, the picture takes the available width.
    words : str
        Alternative text.
    """
    with mpl.rc_context(_SETTINGS):
        figure = new_figure(width, height)
        draw(figure.add_subplot())
        file = StringIO()
        figure.savefig(
            file,
            format="svg",
            transparent=True,
            metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")),
        )
    picture = _plain(fromstring(file.getvalue()))  # noqa: S314 - our own drawing, not a stranger's
    del picture.attrib["width"], picture.attrib["height"]
    picture.attrib |= {"role": "img", "aria-label": words}
    return Markup(tostring(picture, encoding="unicode").replace(_INK, "currentColor"))


def _plain(element: Element) -> Element:
    """Remove namespaces, styles, white space, and parts that draw nothing."""
    element.tag = _NAMESPACE.sub("", element.tag)
    named = {_NAMESPACE.sub("", name): " ".join(value.split()) for name, value in element.attrib.items()}
    styles = named.pop("style", "").split(";")
    if _UPRIGHT.match(named.get("transform", "")):
        del named["transform"]
    if "_" in named.get("id", ""):  # a name of matplotlib, to which nothing refers
        del named["id"]
    element.attrib = named | dict(chain.from_iterable(map(_attribute, styles)))
    element.text, element.tail = (element.text or "").strip() or None, None
    children = [_plain(child) for child in element]
    element[:] = [child for child in children if child.tag not in _LEFT_OUT and not _is_empty(child)]
    return element


def _is_empty(element: Element) -> bool:
    is_shapeless = element.tag in ("g", "defs") and not len(element)
    is_unpainted = element.get("fill") == "none" and "stroke" not in element.attrib
    return is_shapeless or (element.tag == "path" and is_unpainted)


def _attribute(style: str) -> list[tuple[str, str]]:
    """Convert a style declaration into attributes; fonts are those of the page."""
    name, _, value = (part.strip() for part in style.partition(":"))
    if name == "font":
        font = _FONT.fullmatch(value)
        weight = [("font-weight", font["weight"])] if font and font["weight"] else []
        return [("font-size", font["size"]), *weight] if font else []
    return [(name, value)] if name and name != "font-family" else []
