"""Decode what was given: a file, a folder, an archive or a text, each file as far as its form shows.

Nothing is extracted to the disk, archives within archives are not opened, links are not followed, and sizes are
bounded. Damage is an error that names its place; a damaged line of JSON Lines is handed on, to be counted.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import pyarrow.parquet as pq

from memframe.archive.formats import DAMAGE
from memframe.display import printable
from memframe.errors import FrameError
from memframe.files import raise_os_errors_as
from memframe.frames import to_encodable

MAX_BYTES = 1 << 30
"""Of a file, or of the files of a folder or archive together, when they are unpacked."""

MAX_MEMBERS = 50_000
"""Files of a folder or archive."""

MAX_RATIO, RATIO_BYTES = 200, 1 << 20
"""Largest growth when unpacked, for files above so many bytes: text grows twentyfold, a bomb a thousandfold."""

TEXT_KEYS = ("content", "memory", "text", "data", "fact", "value", "observation")
"""Names under which memory systems keep the text of a memory."""

_MARKDOWN = {".md", ".markdown"}
_OPENED = {".json", ".jsonl", ".ndjson", ".gz", ".af", ".txt", ".csv", ".tsv", ".parquet"} | _MARKDOWN
"""Types of files that are opened in folders and archives: exports bring pictures and pages along."""

_JSON = ("{", "[", '"{', '"[')

_DATED_LINE = re.compile(r"""\[[^\[\]{}"\n]*\][ \t]*[^\s,\]]""")
"""A line of a list such as ``[2024-05-01] - Likes tea``, which is no JSON."""

Form = Literal["json", "lines", "table", "markdown", "text"]


class Damage(NamedTuple):
    """Something that becomes no row, and why; ``is_entry`` is False for what is no memory."""

    reason: str
    is_entry: bool = True


class Document(NamedTuple):
    """One decoded file.

    Attributes
    ----------
    name : str
        Printable; within a folder or archive, the path there.
    form : str
        Of ``value``: the value of a JSON file; the values of JSON Lines, or the rows of a table as dicts, in a list
        with `Damage` for those that are none; the text of Markdown or of anything else.
    value : Any
    numbers : list of int
        Of the lines, where form is "lines".
    """

    name: str
    form: Form
    value: Any
    numbers: Sequence[int] = ()

    def items(self, *keys: str) -> Iterator[tuple[str, Any]]:
        """Yield the entries of a list, lines or rows with their places; of an object the list under the first key."""
        entries = self.value
        if isinstance(entries, dict):
            entries = next((entries[key] for key in keys if isinstance(entries.get(key), list)), [entries])
        if self.form == "json":
            return zip((f"entry {number} of {self.name}" for number in count(1)), entries, strict=False)
        word = "row" if self.form == "table" else "line"
        return zip((f"{word} {number} of {self.name}" for number in self.numbers), entries, strict=True)


class Input(NamedTuple):
    """All that was given; ``unread`` counts files that were not opened: of other types, hidden, links."""

    name: str
    documents: list[Document]
    unread: int = 0


def is_text(given: object) -> bool:
    """Tell a text from a path: a text holds a line end, begins with a bracket or brace, or is empty.

    >>> is_text("export.json"), is_text("[2024-05-01] - Likes tea"), is_text(Path("[1].json")), is_text("")
    (False, True, False, True)
    """
    return isinstance(given, str) and ("\n" in given or not given.strip() or given.lstrip().startswith(_JSON))


def open_text(text: str) -> Input:
    """Decode a text."""
    return Input("the text", [_decode_text(to_encodable(text), "the text")])


def open_path(path: Path) -> Input:
    """Decode a file, or the files of a folder or archive."""
    name = printable(str(path))
    advice = "check the path. What is not a path but a text has a line end."
    with raise_os_errors_as(FrameError, f"{name} cannot be read", advice):
        if "\0" not in str(path) and path.is_dir():
            return _open_folder(path, name)
        if "\0" in str(path) or not path.is_file():
            raise FrameError(f"There is no file at {name}: {advice}")
        _check_size(path.stat().st_size, 1, name)
        data = path.read_bytes()
    if data.startswith(b"PK\x03\x04"):
        return _open_zip(data, name)
    return Input(name, [_decode(data, name)._replace(name=printable(path.name))])


def _open_folder(folder: Path, name: str) -> Input:
    documents: list[Document] = []
    unread = n_bytes = 0
    for here, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        unread += sum((Path(here) / each).is_symlink() for each in folders)
        for path in (Path(here) / file for file in sorted(files)):
            if not _is_opened(path.name) or path.is_symlink() or not path.is_file():
                unread += 1
                continue
            n_bytes += path.stat().st_size
            _check_size(n_bytes, len(documents) + 1, name)
            documents.append(_decode(path.read_bytes(), printable(path.relative_to(folder).as_posix())))
    return Input(name, documents, unread)


def _open_zip(data: bytes, name: str) -> Input:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            opened = [member for member in members if _is_opened(member.filename)]
            if any(member.filename == "xl/workbook.xml" for member in members):
                raise FrameError(f"{name} is an Excel workbook: save its sheet as CSV UTF-8.")
            _check_size(sum(member.file_size for member in opened), len(members), name)
            for member in opened:
                _check_ratio(member.file_size, member.compress_size, name)
            contents = [(printable(member.filename), archive.read(member)) for member in opened]
    except FrameError:
        raise
    except RuntimeError as error:  # of passwords, and of methods that Python does not know
        raise FrameError(
            f"{name} cannot be unpacked ({printable(str(error))}): unpack it yourself."
        ) from None
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, LookupError):
        raise FrameError(f"{name} is a damaged archive: download it again.") from None
    return Input(name, [_decode(data, place) for place, data in contents], len(members) - len(opened))


def _is_opened(name: str) -> bool:
    parts = name.replace("\\", "/").split("/")
    is_hidden = any(part.startswith((".", "__MACOSX")) and part not in (".", "..") for part in parts)
    return not is_hidden and Path(parts[-1]).suffix.lower() in _OPENED


def _check_size(n_bytes: int, n_files: int, name: str) -> None:
    if n_bytes > MAX_BYTES or n_files > MAX_MEMBERS:
        raise FrameError(
            f"{name} is too large: more than {MAX_BYTES >> 20:,} MiB or {MAX_MEMBERS:,} files are not read at once. "
            "Read it in parts."
        )


def _check_ratio(n_bytes: int, n_packed: int, name: str) -> None:
    if n_bytes > RATIO_BYTES and n_bytes > MAX_RATIO * n_packed:
        raise FrameError(
            f"{name} grows more than {MAX_RATIO} times when it is unpacked, as no text does: unpack it "
            "yourself if you know what it is."
        )


def _decode(data: bytes, name: str) -> Document:
    if data.startswith(b"\x1f\x8b"):
        data = _unpack_gzip(data, name)
    if data.startswith(b"PAR1"):
        return _decode_parquet(data, name)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FrameError(f"{name} is text in UTF-16: save it as UTF-8.")
    try:
        return _decode_text(data.decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        raise FrameError(f"{name} is not UTF-8 text at byte {error.start:,}: save it as UTF-8.") from None


def _unpack_gzip(data: bytes, name: str) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    limit = max(RATIO_BYTES, min(MAX_BYTES, MAX_RATIO * len(data)))
    try:
        unpacked = unpacker.decompress(data, limit + 1)
    except zlib.error:
        raise FrameError(f"{name} is a damaged archive: download it again.") from None
    _check_ratio(len(unpacked), len(data), name)
    if not unpacker.eof:
        raise FrameError(f"{name} is a gzip file that is too large, or was cut off: download it again.")
    return unpacked


def _decode_parquet(data: bytes, name: str) -> Document:
    try:
        with pq.ParquetFile(io.BytesIO(data)) as file:
            groups = (file.metadata.row_group(number) for number in range(file.num_row_groups))
            _check_size(sum(group.total_byte_size for group in groups), 1, name)
            table = file.read()
        table.validate(full=True)
        rows = table.to_pylist()
    except FrameError:
        raise
    except DAMAGE:
        raise FrameError(f"{name} is a damaged Parquet file: write it again.") from None
    return Document(name, "table", rows, [*range(1, len(rows) + 1)])


def _decode_text(text: str, name: str) -> Document:
    begin, is_note = text.lstrip(), Path(name).suffix.lower() in _MARKDOWN
    if begin.startswith(_JSON[2:]) and not is_note:  # encoded twice, as some of Letta's own agent files are
        text = _decode_json(text, name).value
        begin = text.lstrip()
    if begin.startswith(_JSON[:2]) and not _DATED_LINE.match(begin):
        try:
            return _decode_json(text, name)
        except FrameError:
            if not is_note:  # a note may begin with a link, such as [[Tea]]
                raise
    if begin.startswith("---") or is_note:
        return Document(name, "markdown", text)
    return _decode_table(text, name) or Document(name, "text", text)


def _decode_json(text: str, name: str) -> Document:
    try:
        return Document(name, "json", parse_json(text))
    except json.JSONDecodeError as error:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        values = [_parse_line(line) for _, line in lines]
        if 2 * sum(isinstance(value, dict) for value in values) > len(values) and text.lstrip()[0] == "{":
            return Document(name, "lines", values, [number for number, _ in lines])
        raise FrameError(
            f"{name} is not JSON from line {error.lineno:,}, column {error.colno:,} on: it was cut off or changed. "
            "Get it again."
        ) from None
    except (RecursionError, ValueError) as error:
        cause = (
            "is nested too deeply"
            if isinstance(error, RecursionError)
            else "contains a number with too many digits"
        )
        raise FrameError(f"{name} {cause} to be an export of memories.") from None


def parse_json(text: str) -> Any:
    """Parse JSON, also with what Python's own writer adds to it: NaN, lone surrogates, numbers of any length."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError):
        return json.loads(text)


def _parse_line(line: str) -> Any:
    try:
        return parse_json(line)
    except (ValueError, RecursionError):
        return Damage("damaged line")


def _decode_table(text: str, name: str) -> Document | None:
    """Decode CSV, which shows by a column of texts in its first row."""
    first = text[: text.find("\n") + 1 or None]
    separator = max(",;\t", key=first.count)
    limit = csv.field_size_limit()
    try:
        csv.field_size_limit(len(text) + 1)
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        header = next(rows, [])
        if not {column.strip().casefold() for column in header} & {*TEXT_KEYS}:
            return None
        numbered = [(rows.line_num, row) for row in rows if row]
    except csv.Error as error:
        raise FrameError(f"{name} is not CSV at line {rows.line_num:,} ({error}): write it again.") from None
    finally:
        csv.field_size_limit(limit)
    if len({*header}) < len(header):
        raise FrameError(f"{name} has several columns with the same name: rename them.")
    cells = [
        dict(zip(header, row, strict=True)) if len(row) == len(header) else Damage("row of another length")
        for _, row in numbered
    ]
    return Document(name, "table", cells, [number for number, _ in numbered])
