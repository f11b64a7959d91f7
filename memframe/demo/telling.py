"""A tour on a terminal: step titles, sentences, code and tables, fitted to its width."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Sequence

import click

INDENT = "   "
NARROWEST, WIDEST = 40, 110
"""Columns between which text is fitted: on less nothing can be read, and longer lines tire."""

_GAP = 2


class Telling:
    """Where a tour is told.

    Parameters
    ----------
    write : callable
        Gets every line.
    width : int
        Columns of the terminal.
    colour : bool
        Whether titles are bold and code is coloured.

    Examples
    --------
    >>> telling = Telling(print, width=40)
    >>> telling.say("Words are wrapped at the end of the line, as here.")
       Words are wrapped at the end of the
       line, as here.
    """

    def __init__(
        self, write: Callable[[str], object] = print, *, width: int = 80, colour: bool = False
    ) -> None:
        self._write = write
        self._width = min(max(width, NARROWEST), WIDEST) - 1
        self._colour = colour
        self._n_steps = 0

    def step(self, title: str) -> None:
        """The title of the next step, with its number."""
        self._n_steps += 1
        self.title(f"{self._n_steps}. {title}")

    def title(self, text: str) -> None:
        """A title, below an empty line."""
        self._write("")
        for line in textwrap.wrap(text, self._width, subsequent_indent=INDENT):
            self._write(self._styled(line, bold=True))

    def say(self, text: str) -> None:
        """A sentence or two."""
        for line in textwrap.wrap(text, self._width, initial_indent=INDENT, subsequent_indent=INDENT):
            self._write(line)

    def code(self, line: str) -> None:
        """A line of Python that is being run."""
        self._write(self._styled(f"{INDENT}{line}", fg="cyan"))

    def pairs(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Names, and beside each what belongs to it; addresses, paths and commands stay whole."""
        pairs = list(pairs)
        room = max(display_width(name) for name, _ in pairs) + _GAP
        for name, text in pairs:
            lines = textwrap.wrap(
                text, self._width - len(INDENT) - room, break_long_words=False, break_on_hyphens=False
            )
            for number, line in enumerate(lines):
                label = padded("" if number else name, room)
                self._write(f"{INDENT}{self._styled(label, dim=True)}{line}")

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Rows of cells, one line each, then an empty line; the last column is cut to what is left of the width."""
        *rooms, _ = [max(map(display_width, column)) + _GAP for column in zip(*rows, strict=True)]
        left = self._width - len(INDENT) - sum(rooms)
        for *cells, last in rows:
            start = "".join(map(padded, cells, rooms))
            self._write(f"{INDENT}{self._styled(start, dim=True)}{cut(last, left)}")
        self._write("")

    def _styled(self, text: str, **style: bool | str) -> str:
        return click.style(text, **style) if self._colour else text  # type: ignore[arg-type]  # names of its own


def display_width(text: str) -> int:
    """Columns that a terminal takes for a text.

    >>> display_width("日本"), display_width("Zoë"), display_width("Zoe\\u0308")
    (4, 3, 3)
    """
    return sum(map(_columns_of, text))


def padded(text: str, width: int) -> str:
    """Text with blanks up to a width."""
    return text + " " * (width - display_width(text))


def cut(text: str, width: int) -> str:
    """Text on one line, and what does not fit replaced by an ellipsis.

    >>> cut("a long\\n way", 9), cut("日本語です", 7)
    ('a long w…', '日本語…')
    """
    line = " ".join(text.split())
    if display_width(line) <= width:
        return line
    while line and display_width(line) >= width:
        line = line[:-1]
    return f"{line}…"


def _columns_of(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
