"""JSON Lines, one memory per line; and a JSON array of the same objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from memframe.archive.table import ARCHIVE_SCHEMA, ArchiveFormat, array_of, tuples_of, wrong_column
from memframe.errors import FrameError
from memframe.frames import NAMES, TIME

_CHUNK_LINES = 10_000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_UNITS = {"s": 1e11, "ms": 1e14, "us": 1e17, "ns": inf}
"""Of times as numbers, and where each ends: 1e11 seconds are the year 5138, 1e11 milliseconds 1973."""

HOW_PANDAS_WRITES = "write it with to_json(path, orient='records', lines=True), one memory per line"

_encoder = msgspec.json.Encoder(enc_hook=lambda moment: moment.isoformat())  # pandas' times to the nanosecond


def _write(file: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:  # noqa: ARG001 - each line names its own columns
    n_rows = 0
    for table in tables:
        file.write(_encoder.encode_lines(records_of(table)))
        n_rows += len(table)
    return n_rows


def _write_array(file: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:  # noqa: ARG001 - as above
    n_rows = 0
    for table in tables:
        for row in records_of(table):
            file.write((b",\n" if n_rows else b"[\n") + _encoder.encode(row))
            n_rows += 1
    file.write(b"\n]\n" if n_rows else b"[]\n")
    return n_rows


def records_of(table: pa.Table) -> list[dict[str, Any]]:
    """Convert a table to one dict a row, with times as text."""
    for name in table.column_names:
        if pa.types.is_floating(table[name].type) and pc.any(pc.is_inf(table[name])).as_py():
            raise FrameError(
                f"The column {name!r} contains an infinite number, which JSON cannot represent: use Parquet."
            )
    columns = [_cells(name, table[name]) for name in table.column_names]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _cells(name: str, column: pa.ChunkedArray) -> list[Any]:
    """Convert a column to Python objects, with fast paths for the types of memories."""
    kind = ARCHIVE_SCHEMA.get(name)
    if kind is None:
        return column.to_pylist()  # type: ignore[no-any-return]
    if kind == NAMES.arrow:
        return tuples_of(column)
    if kind == TIME.arrow:
        column = pc.replace_substring(column.cast(pa.large_string()), " ", "T")
    return column.to_numpy().tolist()  # type: ignore[no-any-return]


def _names(path: Path) -> list[str]:
    """Read the column names of the first row; a file without rows has the columns of memories."""
    return next((list(row) for row in _rows(path)), [*ARCHIVE_SCHEMA])


def _read(path: Path, columns: list[str]) -> Iterator[pa.Table]:
    """Read tables; extra columns may differ in type between them (nulls only, or whole numbers, in one)."""
    yield pa.schema((name, ARCHIVE_SCHEMA.get(name, pa.null())) for name in columns).empty_table()
    rows = _rows(path)
    for chunk in iter(lambda: list(islice(rows, _CHUNK_LINES)), []):
        yield table_of_records(path, chunk, columns)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """Read the rows of a file; refuse a key that the first row lacks, as it would be lost."""
    known: set[str] = set()
    for number, row in _array_rows(path) if path.suffix.lower() == ".json" else _line_rows(path):
        known = known or set(row)
        if not row.keys() <= known:
            new = next(key for key in row if key not in known)
            raise FrameError(
                f"Line {number} of {path} has the key {new!r:.60}, which the first line has not: give it to the "
                "first line, with null if need be, or load the lines that have it from a file of their own."
            )
        yield row


def _line_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    decoder = msgspec.json.Decoder(dict[str, Any])
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            bare = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
            if bare.strip():
                try:
                    yield number, decoder.decode(bare)
                except _NO_JSON:
                    raise FrameError(
                        f"Line {number} of {path} is not a JSON object: it is damaged, or no archive of memories; a "
                        f"frame: {HOW_PANDAS_WRITES}."
                    ) from None


def _array_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    text = path.read_bytes().removeprefix(_BYTE_ORDER_MARK)
    try:
        return enumerate(msgspec.json.decode(text, type=list[dict[str, Any]]), 1)
    except _NO_JSON:
        raise FrameError(
            f"{path} is not a JSON array of memories: it is damaged, or of another system."
        ) from None


_NO_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Errors of the decoder, whose messages may quote the text."""


def table_of_records(path: Path, rows: list[dict[str, Any]], columns: list[str]) -> pa.Table:
    """Convert rows to a table of the given columns; the opposite of `records_of`."""
    cells = {name: [row.get(name) for row in rows] for name in columns}
    return pa.table({name: _column(path, name, values) for name, values in cells.items()})


def _column(path: Path, name: str, values: list[Any]) -> pa.Array:
    kind = ARCHIVE_SCHEMA.get(name)
    if any(isinstance(value, dict) for value in values) and kind is not None:
        raise FrameError(f"{path} has whole columns on one line: {HOW_PANDAS_WRITES}.")
    try:
        array = _times(values) if kind == TIME.arrow else array_of(values, kind)
    except (pa.ArrowException, TypeError, ValueError):  # their messages quote cells
        if kind is None:
            raise FrameError(
                f"The column {name!r} of {path} mixes types: leave it out with columns=."
            ) from None
        raise wrong_column(path, name, "something else") from None
    if kind == TIME.arrow and array.null_count > values.count(None):
        raise wrong_column(path, name, "text that is not a time")
    return array


def _times(values: list[Any]) -> pa.Array:
    """Read times that are text, or numbers since 1970, as pandas writes them unless ``date_format="iso"`` is set.

    The unit is inferred from the size: a number of milliseconds would be centuries away in seconds.
    """
    most = max((abs(value) for value in values if isinstance(value, int)), default=0)
    if not most:
        return TIME.chunk(values)
    unit = next(unit for unit, end in _UNITS.items() if most < end)
    return pa.array(values, pa.timestamp(unit, "UTC")).cast(TIME.arrow, safe=False)


JSONL, JSON = ArchiveFormat(_names, _read, _write), ArchiveFormat(_names, _read, _write_array)
