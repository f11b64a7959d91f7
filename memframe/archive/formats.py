"""Read and write the formats of archives as Arrow tables, by extension; check which paths may be replaced.

Parquet keeps every type, and any reader of Parquet opens it. JSON is one memory per line, or an array of them.

CSV is for spreadsheets, which run a cell that begins with ``=`` as a formula. Text that begins with ``= + - @``, their
full-width forms, a tab, a line end or NUL gets an apostrophe in front, and so does text that begins with an apostrophe,
so that loading removes exactly what was added. The same holds after a semicolon, a tab or a line end inside a text,
because a spreadsheet that splits at semicolons ignores quotes around cells that commas separate. Text is quoted, which
keeps empty text (``""``) apart from missing text. Lists are JSON. Files of `DataFrame.to_csv` are read as well. They
are recognised by an unnamed first column, the index, or by lists as Python shows them: ``('a', 'b')``.
"""

from __future__ import annotations

import csv
import io
import os
import re
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from memframe.archive.bounds import MAX_LINE_BYTES, check_holes, read_groups, read_whole
from memframe.archive.notes import read_notes
from memframe.archive.table import (
    ARCHIVE_SCHEMA,
    FIRST_COLUMNS,
    HOW_PANDAS_WRITES,
    NAMELESS,
    PANDAS,
    read_metadata,
    records_of,
    table_of_records,
    wrong_column,
)
from memframe.errors import FrameError, Hint, MemframeError
from memframe.fields import COLUMNS_VERSION
from memframe.files import raise_os_errors_as
from memframe.frames import NAMES, TEXT
from memframe.snapshots import HEADER, SNAPSHOTS, SUFFIX, SnapshotHeader


class OpenedFile(NamedTuple):
    """A file of an archive; columns of memories are read with the types of `ARCHIVE_SCHEMA`."""

    names: Sequence[str]
    """Names of the columns, without those of an index that has no name."""
    read: Callable[[Sequence[str]], Iterator[pa.Table]]
    """(names of columns) -> one or more tables."""
    metadata: Mapping[bytes, bytes] = {}


# -- JSON

_CHUNK_LINES = 10_000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NO_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Errors of the decoder, whose messages may quote the text."""

_encoder = msgspec.json.Encoder(enc_hook=lambda moment: moment.isoformat())  # pandas' times to the nanosecond

_Rows = Iterator[tuple[int, dict[str, Any]]]


def _write_lines(file: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:  # noqa: ARG001 - each line names its own columns
    for table in tables:
        file.write(_encoder.encode_lines(records_of(table)))


def _write_array(file: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:  # noqa: ARG001 - as above
    separator = b"[\n"
    for row in chain.from_iterable(map(records_of, tables)):
        file.write(separator + _encoder.encode(row))
        separator = b",\n"
    file.write(b"[]\n" if separator == b"[\n" else b"\n]\n")


def _open_json(rows_in: Callable[[Path], _Rows], path: Path) -> OpenedFile:
    """Open rows with the columns of the first one; a file without rows has the columns of memories."""
    names = next((list(row) for _, row in rows_in(path)), [*ARCHIVE_SCHEMA])

    def known_rows() -> Iterator[dict[str, Any]]:
        for number, row in rows_in(path):
            if not row.keys() <= {*names}:
                new = next(key for key in row if key not in names)
                raise FrameError(
                    f"Line {number} of {path} has the key {new!r:.60}, which the first line lacks: add it "
                    "there, with null if need be, or load the lines that have it from another file."
                )
            yield row

    def read(columns: Sequence[str]) -> Iterator[pa.Table]:
        """Read tables; the type of an extra column may differ between them (one has only nulls, or whole numbers)."""
        yield pa.schema((name, ARCHIVE_SCHEMA.get(name, pa.null())) for name in columns).empty_table()
        rows = known_rows()
        for chunk in iter(lambda: list(islice(rows, _CHUNK_LINES)), []):
            yield table_of_records(path, chunk, columns)

    return OpenedFile(names, read)


def _rows_of_lines(path: Path) -> _Rows:
    decoder = msgspec.json.Decoder(dict[str, Any])
    with path.open("rb") as file:
        for number, line in enumerate(iter(partial(file.readline, MAX_LINE_BYTES), b""), 1):
            bare = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
            if bare.strip():
                try:
                    yield number, decoder.decode(bare)
                except _NO_JSON:
                    raise FrameError(
                        f"Line {number} of {path} is not a JSON object: it is damaged, or no archive of memories. If "
                        f"it is a frame, {HOW_PANDAS_WRITES}."
                    ) from None


def _rows_of_array(path: Path) -> _Rows:
    text = read_whole(path, str(path)).removeprefix(_BYTE_ORDER_MARK)
    try:
        yield from enumerate(msgspec.json.decode(text, type=list[dict[str, Any]]), 1)
    except _NO_JSON:
        raise FrameError(
            f"{path} is not a JSON array of memories, but damaged or of another system",
            hint=Hint(
                "read_memories(path) reads those of others", "memframe audit --file reads those of others"
            ),
        ) from None


# -- CSV

_LIVE = r"^(['=+\-@\t\r\n\x00＝＋－＠])"  # noqa: RUF001 - spreadsheets obey the full-width ones too
_LIVE_INSIDE = r"([;\t\r\n])(['=+\-@＝＋－＠])"  # noqa: RUF001 - as above
_MARKED, _MARKED_INSIDE = _LIVE.replace("^", "^'", 1), _LIVE_INSIDE.replace(")(", ")'(", 1)

_WORD = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_PYTHON_LIST = re.compile(rf"[\[(]\s*(?:(?:{_WORD})\s*,?\s*)*[\])]", re.DOTALL)
"""A list or tuple of texts as Python shows it, or an array as NumPy does, without commas."""

_OF_PYTHON = re.compile(r"""\(|\[\s*'""")
"""Beginning of a CSV cell that holds a list or a tuple as Python shows it."""

_MIN_BLOCK_BYTES, _MAX_BLOCK_BYTES = 1 << 20, 1 << 30


def _write_csv(file: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    with pa.csv.CSVWriter(file, _disarm(schema.empty_table()).schema) as writer:
        for table in tables:
            writer.write_table(_disarm(table))


def csv_of(table: pa.Table) -> bytes:
    r"""Return a table as CSV in which no cell begins like a formula.

    >>> csv_of(pa.table({"text": ["=1+1", "tea"]}))
    b'"text"\n"\'=1+1"\n"tea"\n'
    """
    buffer = io.BytesIO()
    _write_csv(buffer, table.schema, [table])
    return buffer.getvalue()


def _disarm(table: pa.Table) -> pa.Table:
    columns = []
    for column in table.columns:
        kind = column.type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind):
            cells = [None if cell is None else _encoder.encode(cell).decode() for cell in column.to_pylist()]
            column = pa.chunked_array([cells], type=TEXT.arrow)  # noqa: PLW2901 - the same column
        if not pa.types.is_primitive(kind):  # numbers, times and flags are written without quotes
            inside = pc.replace_substring_regex(column.cast(TEXT.arrow), _LIVE_INSIDE, r"\1'\2")
            column = pc.replace_substring_regex(inside, _LIVE, r"'\1")  # noqa: PLW2901 - as above
        columns.append(column)
    names = [re.sub(_LIVE, r"'\1", re.sub(_LIVE_INSIDE, r"\1'\2", name)) for name in table.column_names]
    return pa.table(columns, names=names)


def _open_csv(path: Path) -> OpenedFile:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader(file), [])
    except (OSError, ValueError, csv.Error):
        raise FrameError(
            f"{path} cannot be read as CSV in UTF-8: it is damaged, or of another format."
        ) from None
    divided = re.search("[;\t|]", names[0]) if len(names) == 1 else None
    if divided and ARCHIVE_SCHEMA.keys() & names[0].split(divided[0]):
        raise FrameError(
            f"The columns of {path} are separated by {divided[0]!r}: write it with to_csv(path, sep=',')."
        )
    n_levels = 0  # an index level has no name, or one that occurs again
    while n_levels < len(names) and (not names[n_levels] or names[n_levels] in names[n_levels + 1 :]):
        n_levels += 1
    if not n_levels:
        names = [re.sub(_MARKED_INSIDE, r"\1\2", re.sub(_MARKED, r"\1", name)) for name in names]
    fields = [f"__index_level_{level}__" for level in range(n_levels)] + names[n_levels:]
    metadata = {PANDAS: msgspec.json.encode({"index_columns": fields[:n_levels]})}

    def read(columns: Sequence[str]) -> Iterator[pa.Table]:
        lists = [name for name in names if ARCHIVE_SCHEMA.get(name) == NAMES.arrow]
        table = _read_csv(path, fields, [*dict.fromkeys([*columns, *lists])])
        cells = chain.from_iterable(chunk.to_pylist() for name in lists for chunk in table[name].chunks)
        first = next((cell for cell in cells if cell and (len(cell) > 2 or cell == "()")), "")
        is_of_pandas = n_levels > 0 or _OF_PYTHON.match(first.lstrip()) is not None
        restored = [_restore(path, name, table[name], is_of_pandas) for name in columns]
        yield pa.table(restored, names=columns, metadata=metadata)

    return OpenedFile(names[n_levels:], read, metadata)


def _read_csv(path: Path, fields: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """Read some columns of a CSV file with all these fields; lists and unknown columns come as text."""
    kinds = {name: kind for name, kind in ARCHIVE_SCHEMA.items() if kind != NAMES.arrow}
    try:
        with open_by_bytes(path) as file:
            return pa.csv.read_csv(
                file,
                read_options=pa.csv.ReadOptions(
                    # in one block if possible, because no row may span two
                    block_size=min(max(path.stat().st_size, _MIN_BLOCK_BYTES), _MAX_BLOCK_BYTES),
                    column_names=fields,
                    skip_rows_after_names=1,
                ),
                parse_options=pa.csv.ParseOptions(newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(
                    column_types={f: TEXT.arrow for f in fields if not NAMELESS.fullmatch(f)} | kinds,
                    include_columns=columns,
                    null_values=[""],
                    true_values=["true"],
                    false_values=["false"],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:  # its message quotes cells
        found = re.search(r"CSV column #(\d+)|Row #\d+", str(error))
        place = found[0] if found else "a row"
        if found and found[1]:
            name = fields[int(found[1])]
            kind = "time" if name in kinds else "value"
            if kinds.get(name) == pa.float64():
                kind = "number"
            place = f"a cell of the column {name} is not a {kind}"
        raise FrameError(
            f"{path} is not as exported ({place}): another program changed or truncated it."
        ) from None


def _restore(path: Path, name: str, column: pa.ChunkedArray, is_of_pandas: bool) -> pa.ChunkedArray:
    if column.type == TEXT.arrow and not is_of_pandas:
        column = pc.replace_substring_regex(column, _MARKED, r"\1", max_replacements=1)
        column = pc.replace_substring_regex(column, _MARKED_INSIDE, r"\1\2")
    if ARCHIVE_SCHEMA.get(name) != NAMES.arrow:
        return column
    decoder = msgspec.json.Decoder(list[str] | None)
    cells: list[list[str] | None] = []
    for cell in column.to_pylist():
        if cell and _OF_PYTHON.match(cell.lstrip()) and _PYTHON_LIST.fullmatch(cell.strip()):
            # literals without a comma between them are two names, as NumPy writes them, although Python joins them
            cells.append([literal_eval(word) for word in re.findall(_WORD, cell, re.DOTALL)])
            continue
        try:
            cells.append(None if cell is None else decoder.decode(cell))
        except msgspec.MsgspecError:  # its message may quote the cell
            raise FrameError(
                f'The column {name} of {path} holds text that is not a list: write ["tea", "home"] with the quotes '
                "doubled, as CSV wants it, or let pandas write the file."
            ) from None
    return pa.chunked_array([cells], type=NAMES.arrow)


# -- Parquet

GROUP_ROWS = 10_000
"""Rows in one row group of a file, and in memory while it is written or read."""

_ROW_BYTES = 6_500
"""Bytes of a row; a longer one counts as several, so that groups stay small."""

DAMAGE = (pa.ArrowException, OSError, ValueError, LookupError, OverflowError, TypeError)
"""Errors that Arrow raises for a damaged file; an error of ours that names the file replaces them."""


class Seal(msgspec.Struct, frozen=True):
    """Key version and content format of a sealed archive.

    Attributes
    ----------
    key_version : int
        Version of the user's key.
    content_format : str or list of str
        Format in which the service stores content, as given to `open_access`; "codec" for a user-defined codec.
    check : str
        The user's id, sealed: it shows whether a key is the right one before anything else is opened.
    columns : list of str
        The sealed columns, so that a version that does not know one of them can still open it.
    """

    key_version: int
    content_format: str | list[str]
    check: str
    columns: list[str] = msgspec.field(default_factory=lambda: ["title", "summary", "content", "tags"])
    # the default is for archives that were written before the header named the columns


class ArchiveHeader(msgspec.Struct, frozen=True):
    """Owner of the memories in a file; ``seal`` is None if they are plain.

    It is JSON in the metadata of the schema. Archives made from frames have no header, because a frame may hold the
    memories of several users. ``columns`` is the version of the columns (`memframe.fields.COLUMNS_VERSION`). Only the
    files of snapshots have a ``snapshot``.
    """

    user_id: str
    seal: Seal | None = None
    columns: int = 1
    snapshot: SnapshotHeader | None = None


def header_in(metadata: Mapping[bytes, bytes]) -> ArchiveHeader | None:
    """Return the header of a file with this metadata, if it has one."""
    return read_metadata(metadata, HEADER, ArchiveHeader)


def check_not_newer(path: Path, what_fails: str) -> None:
    """Refuse to write an archive again that has columns of a newer memframe, because they would be lost."""
    file = open_archive_file(parts_of(path)[0])
    header = header_in(file.metadata)
    if header and header.columns > COLUMNS_VERSION:
        unknown = [name for name in file.names if name not in ARCHIVE_SCHEMA]
        raise FrameError(
            f"{path} is not {what_fails}, as a newer memframe wrote it, with columns that this one would lose "
            f"({', '.join(unknown)}): upgrade memframe, or choose another path."
        )


def open_by_bytes(path: Path) -> pa.NativeFile:
    """Open a file for Arrow, which refuses paths that are not UTF-8, and takes some paths with a colon for URLs."""
    return pa.OSFile(os.fsencode(path))


def read_footer(file: Path | BinaryIO) -> tuple[pa.Schema, dict[bytes, bytes]]:
    """Read the schema of a Parquet file, and the metadata in its footer."""
    try:
        with (
            open_by_bytes(file) if isinstance(file, Path) else nullcontext(file) as source,
            pq.ParquetFile(source) as opened,
        ):
            return opened.schema_arrow, opened.metadata.metadata or {}
    except DAMAGE as error:
        raise _unreadable(file, error) from None


def _unreadable(path: Path | BinaryIO, error: Exception) -> FrameError:
    cause = (isinstance(error, OSError) and error.strerror) or "it is damaged, or of another format"
    return FrameError(f"{path} cannot be read as Parquet: {cause}.")


def _open_parquet(path: Path) -> OpenedFile:
    """Open a file; files in ``user_id=...`` folders may have ``user_id`` in the header only."""
    schema, metadata = read_footer(path)
    names = [name for name in schema.names if not NAMELESS.fullmatch(name)]
    header = header_in(metadata)

    def read(columns: Sequence[str]) -> Iterator[pa.Table]:
        try:
            # not as a dataset, which would add columns from the names of folders
            with open_by_bytes(path) as source:
                stored = [name for name in columns if name in schema.names]
                for table in read_groups(source, path.stat().st_size, str(path), stored):
                    if header and "user_id" in columns and "user_id" not in stored:
                        owner = pa.repeat(header.user_id, len(table))
                        table = table.append_column("user_id", owner)  # noqa: PLW2901 - the same table
                    table.validate(full=True)  # Arrow does not verify that text is UTF-8
                    cast = [_cast(path, name, table[name]) for name in columns]
                    yield pa.table(cast, names=columns, metadata=schema.metadata)
        except MemframeError:
            raise
        except DAMAGE as error:
            raise _unreadable(path, error) from None

    return OpenedFile(names if header is None else [*dict.fromkeys([*names, "user_id"])], read, metadata)


def _cast(path: Path, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = ARCHIVE_SCHEMA.get(name, column.type)
    if column.type == kind:
        return column
    try:
        if column.type == pa.float32():  # by its digits, because widening turns 0.3 into 0.30000001192092896
            column = column.cast(pa.string())
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # their messages quote cells
        raise wrong_column(path, name, column.type) from None


def write_parquet(
    file: BinaryIO,
    schema: pa.Schema,
    tables: Iterable[pa.Table],
    make_footer: Callable[[], Mapping[bytes, bytes]] | None = None,
) -> None:
    """Write tables, which may be as small as a page, as one file, in which every page has a checksum.

    ``make_footer`` is called once all tables are written, and returns metadata for the footer.
    """
    rows = batches(tables, lambda table: max(len(table), table.nbytes // _ROW_BYTES), GROUP_ROWS)
    with pq.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer:
        for group in rows:
            writer.write_table(pa.concat_tables(group))
        if make_footer:
            writer.add_key_value_metadata(make_footer())


def batches(
    tables: Iterable[pa.Table], rows_of: Callable[[pa.Table], int], n_rows: int
) -> Iterator[Iterator[pa.Table]]:
    """Divide tables into batches of about ``n_rows`` rows; no table is taken before it is needed."""
    n_before = 0

    def batch_of(table: pa.Table) -> int:
        nonlocal n_before
        n_before += rows_of(table)
        return (n_before - rows_of(table)) // n_rows

    return (batch for _, batch in groupby(tables, batch_of))


# -- paths


def _open_notes(path: Path) -> OpenedFile:
    notes = read_notes(path)

    def read(columns: Sequence[str]) -> Iterator[pa.Table]:
        try:
            yield table_of_records(path, [*notes.values()], columns)
        except FrameError:
            for note, row in notes.items():  # one by one, so that the error names the note
                table_of_records(note, [row], columns)
            raise

    return OpenedFile([*dict.fromkeys([*ARCHIVE_SCHEMA, *chain.from_iterable(notes.values())])], read)


OPENERS: dict[str, Callable[[Path], OpenedFile]] = {
    ".parquet": _open_parquet,
    ".jsonl": partial(_open_json, _rows_of_lines),
    ".csv": _open_csv,
    ".json": partial(_open_json, _rows_of_array),
    ".md": _open_notes,
}

WRITERS: dict[str, Callable[[BinaryIO, pa.Schema, Iterable[pa.Table]], None]] = {
    ".parquet": write_parquet,
    ".jsonl": _write_lines,
    ".csv": _write_csv,
    ".json": _write_array,
}
"""Formats of one file; notes are a folder."""

SEAL_FILE = "seal.parquet"
"""File without rows with the code over all files of a sealed dataset; Parquet, as readers of a folder refuse others."""

PART_ROWS = 50_000
"""Rows in one file of a Parquet dataset; `refresh_archive` writes a whole file again when one of its rows changed."""


def raise_write_errors(target: Path) -> AbstractContextManager[None]:
    """Raise errors of the system as `FrameError`s that name the caller's path, not that of a temporary file."""
    advice = "choose another path, or correct this one. Existing files are unchanged."
    return raise_os_errors_as(FrameError, f"{target} cannot be written", advice)


def is_folder(path: Path) -> bool:
    """Return True for the path of a Parquet dataset or of notes, False for that of one file."""
    return path.is_dir() or not path.suffix or (path.suffix == ".md" and not path.is_file())


def check_suffix(path: Path) -> None:
    """Refuse a file whose extension does not name a format."""
    if path.suffix.lower() not in OPENERS:
        raise FrameError(
            f"{path} does not say by its extension what it is: use {', '.join(OPENERS)}, or a folder. pandas writes "
            "them with to_parquet, to_json(..., orient='records', lines=True) and to_csv."
        )


def open_archive_file(path: Path) -> OpenedFile:
    """Open a file of an archive, or a folder of notes."""
    if path.is_dir():
        return _open_notes(path)
    if path.suffix != SUFFIX:
        check_suffix(path)
    check_holes(path, str(path))
    return OPENERS.get(path.suffix.lower(), _open_parquet)(path)


def writer_for(path: Path) -> Callable[[BinaryIO, pa.Schema, Iterable[pa.Table]], None]:
    """Return the writer of a file, or of the files of a folder."""
    return write_parquet if is_folder(path) else WRITERS[path.suffix.lower()]


def parts_of(path: Path) -> list[Path]:
    """List the files of an archive, in order; a folder of notes counts as one file."""
    with raise_os_errors_as(FrameError, f"{path} cannot be read", "check the path"):
        if not path.exists():
            raise FrameError(
                f"There is no archive at {path}: check the path, or create it with memframe export."
            )
        if not path.is_dir():
            return [path]
    parts = sorted(part for part in path.glob("*.parquet") if part.name != SEAL_FILE)
    if not parts and not any(path.glob("*.md")):
        raise FrameError(
            f"The folder {path} contains no .parquet and no .md file: give the folder of an export."
        )
    return parts or [path]


def part_name(number: int) -> str:
    """Name a file of a dataset, so that names sort in the order of rows."""
    return f"part-{number:05}.parquet"


def in_parts(schema: pa.Schema, tables: Iterable[pa.Table]) -> Iterator[tuple[str, Iterator[pa.Table]]]:
    """Divide tables into files of a dataset; at least one, so that an empty archive has columns."""
    parts = batches(chain([schema.empty_table()], tables), len, PART_ROWS)
    return ((part_name(number), part) for number, part in enumerate(parts))


def check_target(path: Path, *, keeps_snapshots: bool = False) -> None:
    """Refuse a path where no archive can be written, or where another file or a snapshot would be lost."""
    if not is_folder(path):
        check_suffix(path)
    if not path.parent.is_dir():
        raise FrameError(f"The folder {path.parent} does not exist: create it, or choose another.")
    cause = ""
    if path.is_dir():
        if (path / SNAPSHOTS).is_dir() and not keeps_snapshots:
            raise FrameError(
                f"{path} is not replaced, as its snapshots would be lost: refresh it instead, choose another path, or "
                f"remove {path / SNAPSHOTS} yourself."
            )
        parts = (
            entry
            for entry in path.iterdir()
            if entry.name != SNAPSHOTS and (entry.suffix not in (".parquet", ".md") or not is_archive(entry))
        )
        cause = next((f"it holds {entry.name}" for entry in parts), "")
    elif path.exists() and not is_archive(path):
        cause = "it is not an archive of memories"
    if cause:
        raise FrameError(f"{path} is not replaced, as {cause}: choose another path, or remove it yourself.")
    if is_archive(path):
        check_not_newer(path, "replaced")


def is_archive(path: Path) -> bool:
    """Return True for a path with an archive of memories, complete or not; pipes are not opened, as they may block."""
    try:
        if not (path.is_file() or path.is_dir()):
            return False
        return {*open_archive_file(parts_of(path)[0]).names} >= FIRST_COLUMNS
    except (FrameError, OSError, ValueError):
        return False
