"""Decode the input: a file, a folder, an archive or a text; each file in the form that it shows.

Nothing is extracted to the disk, archives within archives are not opened, links are not followed, and sizes are
bounded. Damage is an error that names its place; only a damaged line of JSON Lines is passed on, to be counted.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import pyarrow as pa

from memframe.archive.bounds import (
    MAX_BYTES,
    RATIO_BYTES,
    TABLE_BYTES,
    check_growth,
    check_size,
    check_values,
    read_groups,
    read_whole,
)
from memframe.archive.formats import DAMAGE
from memframe.display import printable
from memframe.errors import FrameError
from memframe.files import raise_os_errors_as
from memframe.frames import to_encodable
from memframe.readers.places import Node, Original, locate_values

TEXT_KEYS = ("content", "memory", "text", "data", "fact", "value", "observation")
"""Names under which memory systems keep the text of a memory."""

END_A_TEXT = "To pass a text instead of a path, end it with a line break."

_MARKDOWN = {".md", ".markdown"}
_OPENED = {".json", ".jsonl", ".ndjson", ".gz", ".af", ".txt", ".csv", ".tsv", ".parquet"} | _MARKDOWN
"""Types of files that are opened in folders and archives; exports also contain pictures and pages."""

_JSON = ("{", "[", '"{', '"[')

_DATED_LINE = re.compile(r"""\[[^\[\]{}"\n]*\][ \t]*[^\s,\]]""")
"""A line of a list such as ``[2024-05-01] - Likes tea``, which is no JSON."""

Form = Literal["json", "lines", "table", "markdown", "text"]


class Damage(NamedTuple):
    """Something that becomes no row, with the reason; ``is_entry`` is False if it never was a memory."""

    reason: str
    is_entry: bool = True


class Document(NamedTuple):
    """One decoded file.

    Attributes
    ----------
    name : str
        Printable name; within a folder or archive, the path there.
    form : {"json", "lines", "table", "markdown", "text"}
        Form of ``value``.
    value : Any
        The value of a JSON file; the values of JSON Lines or the rows of a table as dicts, in a list with a `Damage`
        for each line that is none; the text of Markdown or of anything else.
    numbers : list of int
        Numbers of the lines or rows, for "lines" and "table".
    original : Original, optional
        The text of the file, to which the places of its memories refer; None for JSON that was encoded twice.
    begin : bytes
        The byte-order mark before the text, if any.
    path : Path, optional
        The file; None for a packed file, and for a text that was passed as such.
    is_list : bool
        True for a note that is read as a list of entries even if none of them is a bullet.
    """

    name: str
    form: Form
    value: Any
    numbers: Sequence[int] = ()
    original: Original | None = None
    begin: bytes = b""
    path: Path | None = None
    is_list: bool = False

    def items(self, *keys: str) -> Iterator[tuple[str, Any]]:
        """Yield the entries of a list, lines or rows with their places; of an object, those of its lists ``keys``."""
        value = self.value
        if isinstance(value, dict):
            lists = {key: value[key] for key in keys if isinstance(value.get(key), list)}
            for key, entries in (lists or {"": [value]}).items():
                within = f" of {key}" if len(lists) > 1 else ""
                for number, entry in enumerate(entries, 1):
                    yield f"entry {number}{within} of {self.name}", entry
        elif self.form == "json":
            yield from zip((f"entry {number} of {self.name}" for number in count(1)), value, strict=False)
        else:
            word = "row" if self.form == "table" else "line"
            yield from zip((f"{word} {number} of {self.name}" for number in self.numbers), value, strict=True)


class Input(NamedTuple):
    """The whole input; ``unread`` counts the files that were not opened: of other types, hidden, or links."""

    name: str
    documents: list[Document]
    unread: int = 0
    is_folder: bool = False


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
    advice = f"check the path. {END_A_TEXT}"
    with raise_os_errors_as(FrameError, f"{name} cannot be read", advice):
        if path.is_dir():
            return _open_folder(path, name)
        if not path.is_file():
            raise FrameError(f"There is no file at {name}: {advice}")
        with path.open("rb") as file:
            if file.read(4) == b"PK\x03\x04":
                return _open_zip(file, name)
        data = read_whole(path, name)
    unpacked = _unpack_gzip(data, name, MAX_BYTES)
    document = decode_document(unpacked, name)._replace(name=printable(path.name))
    return Input(name, [document._replace(path=path) if unpacked is data else document])


def _open_folder(folder: Path, name: str) -> Input:
    documents: list[Document] = []
    unread = n_bytes = n_packed = 0
    for here, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        unread += sum((Path(here) / each).is_symlink() for each in folders)
        for path in (Path(here) / file for file in sorted(files)):
            if not _is_opened(path.name) or path.is_symlink() or not path.is_file():
                unread += 1
                continue
            check_size(n_bytes + path.stat().st_size, len(documents) + 1, name)
            packed = read_whole(path, name)
            data = _unpack_gzip(packed, name, MAX_BYTES - n_bytes)
            n_bytes, n_packed = n_bytes + len(data), n_packed + len(packed)
            check_growth(n_bytes, n_packed, name, least=TABLE_BYTES)
            document = decode_document(data, printable(path.relative_to(folder).as_posix()))
            documents.append(document._replace(path=path) if data is packed else document)
    return Input(name, documents, unread, is_folder=True)


def _open_zip(file: BinaryIO, name: str) -> Input:
    documents = []
    try:
        with zipfile.ZipFile(file) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            opened = [member for member in members if _is_opened(member.filename) and not _is_link(member)]
            if any(member.filename == "xl/workbook.xml" for member in members):
                raise FrameError(f"{name} is an Excel workbook: save its sheet as CSV UTF-8.")
            _check_members(opened, name)
            check_size(sum(member.file_size for member in opened), len(members), name)
            n_bytes = 0
            for member in opened:
                data = _unpack_gzip(_unpack_member(archive, member), name, MAX_BYTES - n_bytes)
                n_bytes += len(data)
                documents.append(decode_document(data, printable(member.filename)))
    except FrameError:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        OSError,
        ValueError,
        LookupError,
        RuntimeError,
    ):
        raise FrameError(f"{name} is a damaged archive: download it again.") from None
    return Input(name, documents, len(members) - len(opened))


def _is_link(member: zipfile.ZipInfo) -> bool:
    return stat.S_ISLNK(member.external_attr >> 16)


def _check_members(members: list[zipfile.ZipInfo], name: str) -> None:
    """Refuse members that cannot be unpacked within bounds, and names that occur twice."""
    for member in members:
        place = f"{printable(member.filename)} in {name}"
        if member.flag_bits & 1:
            raise FrameError(f"{place} is locked with a password: unpack it yourself.")
        if member.compress_type not in (
            zipfile.ZIP_STORED,
            zipfile.ZIP_DEFLATED,
        ):  # others are unpacked in one piece, so they cannot be bounded
            raise FrameError(
                f"{place} is packed with a method that memframe does not support: unpack it yourself."
            )
        check_growth(member.file_size, member.compress_size, name)
    sizes = (sum(member.file_size for member in members), sum(member.compress_size for member in members))
    check_growth(*sizes, name)  # many small files add up
    twice = [file for file, number in Counter(member.filename for member in members).items() if number > 1]
    if twice:
        raise FrameError(
            f"{name} holds several files named {printable(twice[0])}: unpack it yourself, and keep the right one."
        )


def _unpack_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Unpack a file piece by piece, so that it takes no more memory than the directory says, which may be wrong."""
    with archive.open(member) as unpacked:
        return b"".join(iter(lambda: unpacked.read(RATIO_BYTES), b""))


def _is_opened(name: str) -> bool:
    parts = name.replace("\\", "/").split("/")
    is_hidden = any(part.startswith((".", "__MACOSX")) and part not in (".", "..") for part in parts)
    return not is_hidden and Path(parts[-1]).suffix.lower() in _OPENED


def decode_document(data: bytes, name: str) -> Document:
    """Decode the bytes of one file in the form that it shows."""
    if data.startswith(b"PAR1"):
        return _decode_parquet(data, name)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FrameError(f"{name} is text in UTF-16: save it as UTF-8.")
    for begin, what in _BINARY.items():
        if data.startswith(begin):
            raise FrameError(f"{name} is {what}, not a list of memories: pass the exported file.")
    try:
        begin = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        return _decode_text(data.decode("utf-8-sig"), name)._replace(begin=begin)
    except UnicodeDecodeError as error:
        if name.lower().endswith(".parquet"):
            raise FrameError(f"{name} is not Parquet: it was cut off or changed. Export it again.") from None
        if b"\0" in data[:_SAMPLE_BYTES]:
            raise FrameError(
                f"{name} is not text: pass the export itself, in a format such as JSON or CSV."
            ) from None
        raise FrameError(f"{name} is not UTF-8 text at byte {error.start:,}: save it as UTF-8.") from None


_BINARY = {
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"%PDF-": "a PDF document",
    b"SQLite format 3\0": "a database of SQLite",
    b"7z\xbc\xaf": "an archive of 7-Zip",
    b"Rar!": "an archive of RAR",
    b"\xd0\xcf\x11\xe0": "an old document of Office",
}
"""Beginnings of files that people take for an export."""

_SAMPLE_BYTES = 4096


def _unpack_gzip(data: bytes, name: str, limit: int) -> bytes:
    """Unpack a gzip file, all its members one after the other; return anything else unchanged."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    pieces: list[bytes] = []
    n_bytes, packed = 0, data
    while packed:
        unpacker = zlib.decompressobj(wbits=31)
        while not unpacker.eof:
            try:
                piece = unpacker.decompress(packed, RATIO_BYTES)
            except zlib.error:
                raise FrameError(f"{name} is a damaged archive: download it again.") from None
            packed = unpacker.unconsumed_tail
            if not (piece or packed or unpacker.eof):
                raise FrameError(
                    f"{name} is a gzip file that is too large, or was cut off: download it again."
                )
            n_bytes += len(piece)
            check_growth(n_bytes, len(data), name)
            check_size(n_bytes + MAX_BYTES - limit, 1, name)
            pieces.append(piece)
        packed = unpacker.unused_data.lstrip(b"\0")  # some tools pad files to whole blocks
    return b"".join(pieces)


def _decode_parquet(data: bytes, name: str) -> Document:
    try:
        table = pa.concat_tables(read_groups(io.BytesIO(data), len(data), name))
        table.validate(full=True)
        rows = table.to_pylist()
    except FrameError:
        raise
    except DAMAGE:
        raise FrameError(f"{name} is a damaged Parquet file: write it again.") from None
    texts = [{key: cell for key, cell in row.items() if isinstance(cell, str)} for row in rows]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in texts)
    original = Original(lines, is_lines=True, table=table)
    located = (locate_values(row, Node(original, number)) for number, row in enumerate(texts))
    cells = [row | found for row, found in zip(rows, located, strict=True)]
    return Document(name, "table", cells, [*range(1, len(rows) + 1)], original)


def _decode_text(text: str, name: str) -> Document:
    check_values(text, name)
    begin, is_note = text.lstrip(), Path(name).suffix.lower() in _MARKDOWN
    if begin.startswith(_JSON[2:]) and not is_note:  # encoded twice, as some of Letta's own agent files are
        inner = _decode_text(_decode_json(text, name).value, name)
        return inner._replace(original=None)
    if begin.startswith(_JSON[:2]) and not _DATED_LINE.match(begin):
        try:
            return _decode_json(text, name)
        except FrameError:
            if not is_note:  # a note may begin with a link, such as [[Tea]]
                raise
    if begin.startswith("---") or is_note:
        return Document(name, "markdown", text, original=Original(text))
    return _decode_table(text, name) or Document(name, "text", text, original=Original(text))


def _decode_json(text: str, name: str) -> Document:
    try:
        original = Original(text)
        return Document(name, "json", locate_values(parse_json(text), original), original=original)
    except (json.JSONDecodeError, RepeatedKeyError) as error:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        values = [_parse_line(line) for _, line in lines]
        if 2 * sum(isinstance(value, dict) for value in values) > len(values) and text.lstrip()[0] == "{":
            original, numbers = Original(text, is_lines=True), [number for number, _ in lines]
            for number, value in zip(numbers, values, strict=True):
                locate_values(value, Node(original, number - 1))
            return Document(name, "lines", values, numbers, original)
        if isinstance(error, RepeatedKeyError):
            raise FrameError(
                f"{name} has an object with two values of one key, {error}: only one of them would be read. Correct "
                "it, or export it again."
            ) from None
        raise FrameError(
            f"{name} is not valid JSON at line {error.lineno:,}, column {error.colno:,}: it was cut off or changed. "
            "Export it again."
        ) from None
    except (RecursionError, ValueError) as error:
        cause = (
            "is nested too deeply"
            if isinstance(error, RecursionError)
            else "contains a number with too many digits"
        )
        raise FrameError(f"{name} {cause} to be an export of memories.") from None


class RepeatedKeyError(ValueError):
    """An object of JSON names a key twice; the text of the error is that key."""


def parse_json(text: str) -> Any:
    """Parse JSON with the extensions of Python's own writer: NaN, lone surrogates, numbers of any length."""
    return json.loads(text, object_pairs_hook=_object_of)


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        key = next(key for key, number in Counter(key for key, _ in pairs).items() if number > 1)
        raise RepeatedKeyError(repr(printable(to_encodable(key))[:60]))
    return found


def _parse_line(line: str) -> Any:
    try:
        return parse_json(line)
    except RepeatedKeyError:
        return Damage("line with a repeated key")
    except (ValueError, RecursionError):
        return Damage("damaged line")


_LINE_END = re.compile(r"[\r\n]")


def _decode_table(text: str, name: str) -> Document | None:
    """Decode CSV, which is recognised by the name of a text column in its first row; None for anything else."""
    separator = _separator_of(text)
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
    original = Original(text, separator=separator)
    cells = [
        locate_values(dict(zip(header, row, strict=True)), Node(original, number))
        if len(row) == len(header)
        else Damage("row of another length")
        for number, (_, row) in enumerate(numbered)
    ]
    return Document(name, "table", cells, [number for number, _ in numbered], original)


def _separator_of(text: str) -> str:
    r"""Return the separator that is most frequent in the first line, for all kinds of line ends.

    >>> _separator_of("content\tname\rTea; cake; jam\tAda\r")
    '\t'
    """
    line_end = _LINE_END.search(text)
    first = text[: line_end.start()] if line_end else text
    return max(",;\t", key=first.count)


def read_header(text: str) -> list[str]:
    r"""Return the columns of a text that looks like CSV: its first two lines have as many separators.

    >>> read_header("name,age\nAda,36\n"), read_header("Ada rows, and swims.\nShe is 36.")
    (['name', 'age'], [])
    """
    lines, separator = text.split("\n", 2)[:2], _separator_of(text)
    n_separators = {line.count(separator) for line in lines}
    is_table = len(lines) > 1 and len(n_separators) == 1 and n_separators != {0}
    return [name.strip().strip('"') for name in lines[0].split(separator)] if is_table else []
