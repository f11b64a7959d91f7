"""Change memories in the text of their file, without changing any other character.

Each change becomes edits of spans, so that order, indentation, line ends and unknown keys stay. The result is read
again, and a text that the format would take for something else, such as a heading, is not written.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, cast

import pyarrow as pa

from memframe.archive.formats import write_parquet
from memframe.archive.notes import digest_content, find_frontmatter_values, write_value
from memframe.errors import FrameError
from memframe.readers import Reading, read_documents
from memframe.readers.entries import note_entries
from memframe.readers.formats import FORMATS, GENERIC, first_path, get_path, top_object
from memframe.readers.places import (
    At,
    Key,
    Lines,
    Node,
    Original,
    Path,
    Position,
    Span,
    find_spans,
    unquote_cell,
)
from memframe.readers.rows import Collector, is_filled
from memframe.readers.source import Document, Input, decode_document

Texts = Mapping[str, str | None]
"""New texts of a memory, by column."""


class Splice(NamedTuple):
    """Replacement of a part of a text, from ``start`` up to but without ``end``."""

    start: int
    end: int
    text: str = ""


class EditedDocument(NamedTuple):
    """A document that changes; ``edits`` are in order and do not overlap."""

    document: Document
    original: Original
    edits: list[Splice]
    is_removed: bool
    """True if the document is a single memory, which is deleted."""

    @property
    def data(self) -> bytes:
        """The new bytes of the file."""
        if self.original.table is not None:
            return _edit_parquet(self.original, self.edits)
        return self.document.begin + apply_edits(self.original.text, self.edits).encode()


def apply_edits(text: str, edits: Iterable[Splice]) -> str:
    """Replace parts of a text.

    >>> apply_edits("Likes tea", [Splice(0, 5, "Drinks"), Splice(9, 9, "!")])
    'Drinks tea!'
    """
    parts, at = [], 0
    for edit in edits:
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def explain_unwritable(reading: Reading) -> str:
    """Return the reason why no change of a file can be written back; empty if changes can be."""
    if not reading.form.is_written_back:
        return f"a file of {reading.form.name} is not changed in place"
    for document in reading.documents:
        if document.path is None:
            return f"{document.name} is packed"
        if document.original is None:
            return f"{document.name} is JSON that was encoded twice"
    return ""


def explain_undeletable(place: Position) -> str:
    """Return the reason why a memory cannot be deleted alone; empty if it can be."""
    found = place.at.entry if isinstance(place.at, Node) else place.at and cast("Lines", place.at).whole
    return "" if found else "the file has no entry that is this memory alone"


def find_writable(
    reading: Reading, changed: Mapping[int, Texts], deleted: Collection[int]
) -> dict[int, list[str]]:
    """Return the columns of each changed row that can be written: those with a place that no other row keeps unchanged.

    A text that several rows share, such as a heading, changes if all of them change it alike or are deleted.
    """
    rows_of: defaultdict[At, set[int]] = defaultdict(set)
    for row, position in enumerate(reading.places):
        for at in position.columns.values():
            if not isinstance(at, Node):
                rows_of[at].add(row)
    found = {}
    for row, texts in changed.items():
        places = reading.places[row].columns
        found[row] = [
            name
            for name, text in texts.items()
            if name in places
            and all(
                changed.get(other, {}).get(name) == text
                for other in rows_of.get(places[name], ())
                if other not in deleted
            )
        ]
    return found


def edit_documents(
    reading: Reading, changed: Mapping[int, Texts], deleted: Collection[int]
) -> list[EditedDocument]:
    """Return the documents that change, with the edits that changed and deleted rows need."""
    rows_of: defaultdict[int, list[int]] = defaultdict(list)
    for row in sorted({*changed, *deleted}):
        rows_of[id(reading.places[row].original)].append(row)
    edited = []
    for document in reading.documents:
        rows, original = rows_of.get(id(document.original), []), document.original
        if original is None or not rows:
            continue
        gone = [row for row in rows if row in deleted]
        texts = {row: changed[row] for row in rows if row not in deleted}
        edits = _join({*_iter_edits(reading, document, original, texts, gone)})
        is_removed = document.form == "markdown" and edits == [Splice(0, len(original.text))]
        edited.append(EditedDocument(document, original, edits, is_removed))
    return edited


def _iter_edits(
    reading: Reading,
    document: Document,
    original: Original,
    changed: Mapping[int, Texts],
    deleted: Sequence[int],
) -> Iterator[Splice]:
    places, rows = reading.places, [*changed, *deleted]
    count = _find_count(reading, document) if deleted else None
    digests = {row: _digests_of(document, places[row].at, changed[row]) for row in changed}
    paths = [at.path for row in rows for at in places[row].columns.values() if isinstance(at, Node)]
    paths += [path for found in digests.values() for path, _, _ in found]
    paths += [count] if count else []
    spans = find_spans(original, paths) if paths else {}
    is_of_head = any(isinstance(places[row].columns[name], Key) for row in changed for name in changed[row])
    head = find_frontmatter_values(original.text) if is_of_head else {}
    for row, texts in changed.items():
        for name, text in texts.items():
            place = places[row].columns[name]
            if isinstance(place, Lines):
                yield from _edit_lines(place, text or "")
            elif isinstance(place, Key):
                yield Splice(*head[place.key], write_value(text))
            else:
                yield Splice(*spans[place.path], _spell(original, spans[place.path], text))
        for path, _, digest in digests[row]:
            yield Splice(*spans[path], _spell(original, spans[path], digest))
    yield from _iter_removals(original, [places[row].at for row in deleted], spans)
    if count:
        yield Splice(*spans[count], str(get_path(document.value, ".".join(map(str, count))) - len(deleted)))


_LIVE = re.compile(r"[=+\-@\t\r\n＝＋－＠]")  # noqa: RUF001 - spreadsheets obey the full-width ones too


def _spell(original: Original, span: Span, text: str | None) -> str:
    """Write a text in the notation of the file: in CSV with quotes if there were some or are needed, else as JSON.

    A cell that would become a formula in a spreadsheet gets an apostrophe. It then reads back as another text, so that
    the change is left out.
    """
    if not original.separator:  # escape foreign letters if the file does
        return json.dumps(text, ensure_ascii=original.text.isascii() and "\\u" in original.text)
    was, now = original.text[slice(*span)], text or ""
    if _LIVE.match(now) and not _LIVE.match(unquote_cell(was)):
        now = f"'{now}"
    is_quoted = was.startswith('"') or any(sign in now for sign in (original.separator, '"', "\r", "\n"))
    return '"{}"'.format(now.replace('"', '""')) if is_quoted else now


def _edit_parquet(original: Original, edits: Sequence[Splice]) -> bytes:
    """Change cells of a Parquet table, or remove rows, as the edits of its text say."""
    table, lines = cast("pa.Table", original.table), re.findall(r"[^\n]*\n", original.text)
    starts = [0, *accumulate(map(len, lines))]
    of_line: defaultdict[int, list[Splice]] = defaultdict(list)
    for edit in edits:
        for row in range(bisect_right(starts, edit.start) - 1, bisect_left(starts, edit.end)):
            start, end = max(edit.start, starts[row]), min(edit.end, starts[row + 1])
            of_line[row].append(Splice(start - starts[row], end - starts[row], edit.text))
    new = {row: apply_edits(lines[row], found) for row, found in of_line.items()}
    changed: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for row, line in new.items():
        old = json.loads(lines[row])
        for name, cell in json.loads(line or "{}").items():
            if cell != old[name]:
                changed[name][row] = cell
    for name, cells in changed.items():
        column, number = table[name].to_pylist(), table.column_names.index(name)
        column = [cells.get(row, cell) for row, cell in enumerate(column)]
        table = table.set_column(number, table.schema.field(number), pa.array(column, table[name].type))
    is_left = pa.array([new.get(row) != "" for row in range(len(table))])
    buffer = io.BytesIO()
    write_parquet(buffer, table.schema, [table.filter(is_left)])
    return buffer.getvalue()


def _iter_removals(
    original: Original, places: Iterable[At | None], spans: Mapping[Path, Span]
) -> Iterator[Splice]:
    entries: set[Path] = set()
    for at in places:
        if isinstance(at, Lines) and at.whole:
            yield _remove_lines(original.text, *at.whole)
        elif isinstance(at, Node) and at.entry:
            entries.add(at.entry)
    leading: set[Path] = set()  # removed elements at the beginning of their list, with none left before them
    for entry in sorted(entries):
        *parents, number = entry
        if number == 0 or (*parents, int(number) - 1) in leading:
            leading.add(entry)
        yield _remove(original, entry, spans, is_leading=entry in leading)


def _edit_lines(at: Lines, new: str) -> Iterator[Splice]:
    """Change the lines of a text that differ; the first is never deleted, because its bullet would stay."""
    text, lines = at.original.text, new.split("\n")
    old = [text[start:end] for start, end in at.spans]
    n_same = min(len(old), len(lines))
    first = next((n for n in range(n_same) if old[n] != lines[n]), n_same)
    room = n_same - max(first, 1)
    last = next((n for n in range(room) if old[-1 - n] != lines[-1 - n]), max(room, 0))
    was, now = range(first, len(old) - last), lines[first : len(lines) - last]
    for number, line in zip(was, now, strict=False):
        if old[number] != line:
            yield Splice(*at.spans[number], line)
    for number in was[len(now) :]:
        yield _remove_line(text, *at.spans[number])
    if more := now[len(was) :]:
        _, end = at.spans[first + min(len(was), len(now)) - 1]
        end = text.find("\n", end) if text.find("\n", end) >= 0 else len(text)
        end -= text[end - 1 : end] == "\r"
        line_end = "\r\n" if "\r\n" in text else "\n"
        yield Splice(end, end, "".join(f"{line_end}{at.indent if line else ''}{line}" for line in more))


def _remove_lines(text: str, start: int, end: int) -> Splice:
    r"""Remove lines from a text, and one of the blank lines around them if there are some on both sides.

    >>> _remove_lines("- a\n\n- b\n\n- c\n", 5, 9)
    Splice(start=5, end=10, text='')
    """
    before = text.rfind("\n", 0, max(0, start - 1)) + 1
    after = text.find("\n", end) + 1
    is_apart = start == 0 or not text[before:start].strip()
    if is_apart and after and text[end - 1] == "\n" and not text[end:after].strip():
        return Splice(start, after)
    return Splice(before if is_apart and end == len(text) else start, end)


def _remove_line(text: str, start: int, end: int) -> Splice:
    begin, after = text.rfind("\n", 0, start) + 1, text.find("\n", end) + 1
    return Splice(begin, after) if after else Splice(max(0, begin - 1), len(text))


def _remove(original: Original, path: Path, spans: Mapping[Path, Span], *, is_leading: bool) -> Splice:
    """Remove an element from its list, with one comma; in JSON Lines, remove the whole line."""
    start, end = spans[path]
    *parents, number = path
    if original.separator:
        return Splice(start, end)
    if original.is_lines and not parents:
        return _remove_line(original.text, start, end)
    if not is_leading:
        return Splice(spans[*parents, int(number) - 1][1], end)
    after = spans.get((*parents, int(number) + 1))
    return Splice(start, after[0] if after else end)


def _join(edits: set[Splice]) -> list[Splice]:
    """Sort edits, and join removals that overlap."""
    joined: list[Splice] = []
    for edit in sorted(edits):
        if joined and edit.start < joined[-1].end:
            other = joined.pop()
            if edit.text or other.text:
                raise FrameError("two memories are the same text of the file, and only one of them changes")
            edit = Splice(other.start, max(edit.end, other.end))  # noqa: PLW2901 - both in one
        joined.append(edit)
    return joined


# -- statements of a file about its entries: their number, and digests of their texts


def _find_count(reading: Reading, document: Document) -> Path | None:
    path = first_path(top_object(document), reading.form.states)
    return (*path.split("."),) if path and type(get_path(document.value, path)) is int else None


_DIGESTS = (
    lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
    lambda text: hashlib.sha256(text.encode()).hexdigest(),
    digest_content,
)
"""Digests of a text that files keep with it: mem0, mcp-memory-service and Portable AI Memory."""


def _digests_of(document: Document, at: At | None, texts: Texts) -> list[tuple[Path, str, str]]:
    """Find the correct digests of a content in its entry; return the path, the old and the new value of each."""
    new = texts.get("content")
    if not isinstance(at, Node) or not at.entry or new is None:
        return []
    entry: Any = document.value
    for number, key in enumerate(at.entry):
        is_line = document.form == "lines" and not number
        entry = entry[bisect_left(document.numbers, int(key) + 1) if is_line else key]
    if not isinstance(entry, dict):
        return []
    old: Any = entry
    for key in at.path[len(at.entry) :]:
        old = old[key]
    digests = [(digest(old), digest(new)) for digest in _DIGESTS]
    return [
        ((*at.entry, key), was, now) for key, value in entry.items() for was, now in digests if value == was
    ]


# -- reading it again


def read_again(reading: Reading, edited: Sequence[EditedDocument], rows: Collector) -> Reading:
    """Read the changed documents, with those that stay as they are, in the format in which they were read."""
    new = {id(each.document): each for each in edited}
    documents = []
    for document in reading.documents:
        each = new.get(id(document))
        if each is None:
            documents.append(document)
        elif each.data.strip() or document.form not in ("json", "lines"):
            is_list = document.form == "markdown" and bool(note_entries(each.original))
            again = decode_document(each.data, document.name)._replace(path=document.path, is_list=is_list)
            documents += [] if each.is_removed else [again]
    return read_documents(Input(reading.form.name, documents), reading.form, documents, rows)


_MOVING = {"place", "file", "line", "origin_id"}
"""Columns with the place of a memory, and ``origin_id``, which may be a digest of its text."""


def find_misread(
    reading: Reading,
    edited: Sequence[EditedDocument],
    changed: Mapping[int, Texts],
    deleted: Collection[int],
    rows: Collector,
) -> int | None:
    """Read the edited documents, and return a changed or deleted row that made them read differently than decided.

    None if they read exactly as decided.
    """
    try:
        again = read_again(reading, edited, rows)
    except FrameError:
        return min({*changed, *deleted})
    marking = _find_mark(reading, edited, again, changed)
    if marking is not None:
        return marking
    found = again.frame
    document_of = {id(each.original): each.document for each in edited}
    digests = {
        was: now
        for row, texts in changed.items()
        for _, was, now in _digests_of(
            document_of[id(reading.places[row].original)], reading.places[row].at, texts
        )
    }
    names = [name for name in reading.frame.columns if name not in _MOVING]
    columns = [reading.frame[name].tolist() for name in names]
    others = [found[name].tolist() if name in found else [None] * len(found) for name in names]
    remaining = [row for row in range(len(reading.frame)) if row not in deleted]
    for place, row in enumerate(remaining):
        at, texts = reading.places[row].columns, changed.get(row, {})
        texts = {name: texts[other] for name in at for other in texts if at[name] == at[other]}
        wanted = [texts.get(name, column[row]) for name, column in zip(names, columns, strict=True)]
        wanted = [digests.get(cell, cell) if isinstance(cell, str) else cell for cell in wanted]
        reread = [column[place] for column in others] if place < len(found) else None
        if reread is None or [_filled(cell) for cell in wanted] != [_filled(cell) for cell in reread]:
            return _nearest(row, {*changed, *deleted})
    return _nearest(len(reading.frame), {*changed, *deleted}) if len(found) > len(remaining) else None


def _find_mark(
    reading: Reading, edited: Sequence[EditedDocument], again: Reading, changed: Mapping[int, Texts]
) -> int | None:
    """Return a changed row of a document that now matches the shape of another format."""
    new = {document.path: document for document in again.documents}
    for each in edited:
        document, after = each.document, new.get(each.document.path)
        rows = [row for row in changed if reading.places[row].original is each.original]
        if after is not None and rows:
            for name, form in FORMATS.items():
                if name not in GENERIC and form.matches(after) and not form.matches(document):
                    return rows[-1]
    return None


def _filled(cell: Any) -> Any:
    return cell if is_filled(cell) else None


def _nearest(row: int, rows: Collection[int]) -> int:
    """Return the last of ``rows`` up to a row, else the first one after it."""
    before = [each for each in rows if each <= row]
    return max(before) if before else min(rows)
