"""Places of texts in their file, so that a finding can name the line, and a cleanup can change only that text.

A reader moves texts from keys to columns, and a `Located` text keeps its place: the lines of a text, or the path in
JSON. A text that a reader puts together from others has no place. Spans in JSON are found after everything is read,
because only those of the resulting rows are needed.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, chain
from typing import Any, NamedTuple, Self, cast

import pyarrow as pa

Span = tuple[int, int]
"""Positions in the text of a file: the first character, and the one after the last."""

Path = tuple[str | int, ...]
"""Keys and positions that lead from the value of a JSON file to one inside. In JSON Lines the first is the number of
the line, from 0; in a table, that of the row, not counting the header and blank lines."""


class Original:
    """The text of a file, without a byte-order mark; ``is_lines`` for JSON Lines.

    ``separator`` separates the cells of CSV. A Parquet table is not text: ``table`` holds it, and ``text`` has its rows
    as JSON Lines, with only those cells that are texts.
    """

    __slots__ = ("is_lines", "separator", "table", "text")

    def __init__(
        self, text: str, *, is_lines: bool = False, separator: str = "", table: pa.Table | None = None
    ) -> None:
        self.text, self.is_lines, self.separator, self.table = text, is_lines, separator, table


class Lines(NamedTuple):
    """Position of a text that is the lines at ``spans``, joined.

    ``whole`` is the span that a delete removes, None if it is unknown; ``indent`` begins each further line.
    """

    original: Original
    spans: tuple[Span, ...]
    whole: Span | None = None
    indent: str = ""


class Node(NamedTuple):
    """Position of a text in JSON: the key under which it stands in its parent."""

    parent: Node | Original
    key: str | int

    @property
    def path(self) -> Path:
        """The keys from the outermost value to this one.

        >>> Node(Node(Original("[{}]"), 0), "memory").path
        (0, 'memory')
        """
        keys: list[str | int] = []
        place: Node | Original = self
        while isinstance(place, Node):
            keys.append(place.key)
            place = place.parent
        return (*reversed(keys),)

    @property
    def original(self) -> Original:
        """The text of the file."""
        place: Node | Original = self
        while isinstance(place, Node):
            place = place.parent
        return place

    @property
    def entry(self) -> Path | None:
        """The path of the innermost element of a list around it, which is what a delete removes.

        >>> Node(Node(Original("[{}]"), 0), "memory").entry, Node(Original("{}"), "memory").entry
        ((0,), None)
        """
        path = self.path
        last = max((n for n, key in enumerate(path, 1) if isinstance(key, int)), default=0)
        return path[:last] or None


class Key(NamedTuple):
    """Position of a text that is the value of a key in the frontmatter of a note."""

    original: Original
    key: str


At = Lines | Node | Key
"""Position of a text in its file."""


class Located(str):
    """A text with its place in a file; a part of it, or a changed text, is an ordinary ``str``."""

    __slots__ = ("at",)
    at: At

    def __new__(cls, text: str, at: At) -> Self:
        """Make one of a text and its place."""
        located = super().__new__(cls, text)
        located.at = at
        return located


def locate_lines(original: Original, spans: Iterable[Span], whole: Span | None, indent: str = "") -> Located:
    r"""Return the lines at some spans as one text.

    >>> text = locate_lines(Original("- Likes tea\n  with milk\n"), [(2, 11), (14, 23)], (0, 24), "  ")
    >>> text, text.at.whole
    ('Likes tea\nwith milk', (0, 24))
    """
    at = Lines(original, tuple(spans), whole, indent)
    return Located("\n".join(original.text[start:end] for start, end in at.spans), at)


def locate_values(value: Any, root: Node | Original) -> Any:
    """Replace each text of a parsed value by one with its place, in the same lists and objects.

    >>> locate_values([{"memory": "Likes tea"}], Original("..."))[0]["memory"].at.path
    (0, 'memory')
    """
    if not isinstance(value, dict | list):
        return Located(value, root) if isinstance(value, str) and isinstance(root, Node) else value
    inner: list[tuple[Any, Node | Original]] = [(value, root)]
    while inner:
        holder, place = inner.pop()
        for key, each in holder.items() if isinstance(holder, dict) else enumerate(holder):
            if isinstance(each, str):
                holder[key] = Located(each, Node(place, key))
            elif isinstance(each, dict | list):
                inner.append((each, Node(place, key)))
    return value


def find_spans(original: Original, paths: Iterable[Path]) -> dict[Path, Span]:
    """Find the spans of the values at some paths, and of the values next to and around them.

    >>> find_spans(Original('{"a": ["x", "y"]}'), [("a", 1)])
    {('a',): (6, 16), ('a', 0): (7, 10), ('a', 1): (12, 15)}
    """
    wanted: dict[Any, Any] = {}
    for path in paths:
        branch = wanted
        for key in path:
            branch = branch.setdefault(key, {})
    text, found = original.text, dict[Path, Span]()
    if original.separator:
        return dict(_find_cells(original, wanted))
    members = _lines_of(text) if original.is_lines else _members_of(text, _skip(text, 0))
    inner: list[tuple[Path, Iterator[tuple[str | int, int, int]], Any]] = [((), members, wanted)]
    while inner:
        path, members, branch = inner.pop()
        for key, start, end in members:
            found[(*path, key)] = start, end
            if branch.get(key):
                inner.append(((*path, key), _members_of(text, start), branch[key]))
    return found


def _lines_of(text: str) -> Iterator[tuple[int, int, int]]:
    at = 0
    for number, line in enumerate(text.split("\n")):
        start = at + len(line) - len(line.lstrip())
        yield number, start, max(start, at + len(line.rstrip()))
        at += len(line) + 1


def _find_cells(original: Original, wanted: Mapping[Any, Any]) -> Iterator[tuple[Path, Span]]:
    """Find the wanted cells of a table, and the rows around them with their line ends."""
    rows = iter_rows(original.text, original.separator)
    (_, names), number = next(rows, ((0, 0), ())), 0
    header = [unquote_cell(original.text[start:end]) for start, end in names]
    for row, cells in rows:
        if len(cells) > 1 or cells[0][0] < cells[0][1]:  # a blank line is no row
            if number in wanted:
                yield (number,), row
                yield from (
                    ((number, name), span)
                    for name, span in zip(header, cells, strict=False)
                    if name in wanted[number]
                )
            number += 1


def iter_rows(text: str, separator: str) -> Iterator[tuple[Span, list[Span]]]:
    r"""Yield the span of each row of CSV with its line end, and those of its cells with their quotes.

    >>> [*iter_rows('a,b\n"x,\n",y', ",")]
    [((0, 4), [(0, 1), (2, 3)]), ((4, 11), [(4, 9), (10, 11)])]
    """
    divider = re.escape(separator)
    cell = re.compile(rf'("[^"]*(?:""[^"]*)*"|[^{divider}\r\n]*)({divider}|\r\n|[\r\n]|\Z)')
    start, spans = 0, list[Span]()
    while start < len(text) or spans:
        found = cell.match(text, spans[-1][1] + 1 if spans else start)
        if found is None:
            raise ValueError("no CSV")  # cannot happen, because the module `csv` has read the text before
        spans.append(found.span(1))
        if found[2] != separator:
            yield (start, found.end()), spans
            start, spans = found.end(), []


def unquote_cell(cell: str) -> str:
    """Return the text of a cell of CSV.

    >>> unquote_cell('"say ""x"" now"'), unquote_cell("x")
    ('say "x" now', 'x')
    """
    return cell[1:-1].replace('""', '"') if cell.startswith('"') else cell


_DECODER = json.JSONDecoder()


def _members_of(text: str, at: int) -> Iterator[tuple[str | int, int, int]]:
    """Yield the keys or positions of the members of an object or list that begins at a place, and their spans."""
    is_object, number = text[at] == "{", 0
    at = _skip(text, at + 1)
    while text[at] not in "]}":
        key: str | int = number
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)  # the colon
        _, end = _DECODER.raw_decode(text, at)
        yield key, at, end
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at
        number += 1


def _skip(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


class Position(NamedTuple):
    """Places of the columns of a memory, and their file; there are none if its text was put together."""

    original: Original | None
    columns: Mapping[str, At]

    @property
    def at(self) -> At | None:
        """The place of the memory's content."""
        return self.columns.get("content")


def position_of(cells: Mapping[str, Any]) -> Position:
    """Return the places of the texts of one memory; in JSON, only those inside its own entry."""
    found = {name: cell.at for name, cell in cells.items() if isinstance(cell, Located)}
    content = found.get("content")
    if isinstance(content, Node):
        in_entry = {
            name: at for name, at in found.items() if isinstance(at, Node) and _has_entry(at, content)
        }
        return Position(content.original, in_entry)
    if content is None:
        return Position(None, {})
    return Position(
        content.original, {name: at for name, at in found.items() if at.original is content.original}
    )


def _has_entry(at: Node, content: Node) -> bool:
    return at.original is content.original and at.entry == content.entry


def lines_of(places: Iterable[Position]) -> list[int | None]:
    """Return the line of each memory in its file, from 1; None if it is unknown."""
    places = [*places]
    starts: dict[int, list[int]] = {}
    spans: dict[int, dict[Path, Span]] = {}
    originals = {
        id(place.original): place.original
        for place in places
        if place.original is not None and place.original.table is None
    }
    for key, original in originals.items():
        ends = (len(line) + 1 for line in original.text.split("\n"))
        starts[key] = [*accumulate(chain([0], ends))]
        values = (place.at for place in places if place.original is original)
        paths = [at.path for at in values if isinstance(at, Node)]
        spans[key] = find_spans(original, paths) if paths else {}
    lines: list[int | None] = []
    for place in places:
        key, at = id(place.original), place.at
        if at is None or key not in originals:
            lines.append(None)
        else:
            start = spans[key][at.path][0] if isinstance(at, Node) else cast("Lines", at).spans[0][0]
            lines.append(bisect_right(starts[key], start))
    return lines
