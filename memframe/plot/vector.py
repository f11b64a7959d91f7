"""Pictures as SVG that stands in the middle of an HTML page, in the page's own ink and letters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from io import StringIO
from itertools import chain
from typing import Any
from xml.etree.ElementTree import Element, fromstring, tostring

import matplotlib as mpl
from matplotlib.axes import Axes

from memframe.plot.paper import new_figure

_INK = "#010203"
"""A colour that nothing else has; in the page it becomes that of the text."""

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


def inline_svg(draw: Callable[[Axes], object], *, width: float, height: float, words: str) -> str:
    """A picture as an ``svg`` element without styles, scripts or links.

    What it draws is set by attributes alone, which a strict content security policy lets through.

    Parameters
    ----------
    draw : callable
        Draws into the axes that it is given.
    width, height : float
        In inches of matplotlib; in the page it takes the width that there is.
    words : str
        What is to be seen, for those who do not see it.
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
    return tostring(picture, encoding="unicode").replace(_INK, "currentColor")


def _plain(element: Element) -> Element:
    """An element without names of spaces, styles, white space, and parts that draw nothing."""
    element.tag = _NAMESPACE.sub("", element.tag)
    named = {_NAMESPACE.sub("", name): value for name, value in element.attrib.items()}
    styles = named.pop("style", "").split(";")
    element.attrib = dict(_kept(named)) | dict(chain.from_iterable(map(_attribute, styles)))
    element.text, element.tail = (element.text or "").strip() or None, None
    children = [_plain(child) for child in element]
    element[:] = [child for child in children if child.tag not in _LEFT_OUT and not _is_empty(child)]
    return element


def _is_empty(element: Element) -> bool:
    is_shapeless = element.tag in ("g", "defs") and not len(element)
    return is_shapeless or (
        element.tag == "path" and element.get("fill") == "none" and "stroke" not in element.attrib
    )


def _kept(named: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in named.items():
        if not (name == "transform" and _UPRIGHT.match(value)) and not (name == "id" and "_" in value):
            yield name, " ".join(value.split())


def _attribute(style: str) -> list[tuple[str, str]]:
    """A declaration of a style as attributes of their own; letters are those of the page."""
    name, _, value = (part.strip() for part in style.partition(":"))
    if name == "font":
        font = _FONT.fullmatch(value)
        weight = [("font-weight", font["weight"])] if font and font["weight"] else []
        return [("font-size", font["size"]), *weight] if font else []
    return [(name, value)] if name and name != "font-family" else []
