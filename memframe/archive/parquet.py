"""Parquet: every type as it is, and any reader of Parquet can open it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from memframe.archive.header import Header, header_in
from memframe.archive.table import PANDAS, ArchiveFormat, Level, cast_column
from memframe.errors import FrameError

GROUP_ROWS = 10_000
"""Rows in one group of a file, and in memory while it is written or read."""

GROUP_BYTES = 64 * 1024 * 1024
"""Enough for a group of fewer rows."""


def _schema(path: Path) -> pa.Schema:
    try:
        return pq.read_schema(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise _unreadable(path, error) from None


def _names(path: Path) -> list[str]:
    """Those of the file; ``user_id`` is one also where the header alone says it, as beside ``user_id=...`` folders."""
    schema = _schema(path)
    nameless = {level.field for level in _levels(schema) if level.field != level.name}
    names = [name for name in schema.names if name not in nameless]
    return names if header_in(schema) is None else [*dict.fromkeys([*names, "user_id"])]


def _labels(path: Path) -> list[Level]:
    return _levels(_schema(path))


def _levels(schema: pa.Schema) -> list[Level]:
    """Return the levels of the index of a frame that pandas wrote; our own archives keep none."""
    try:
        found = msgspec.json.decode((schema.metadata or {}).get(PANDAS, b"{}"), type=_Described)
    except msgspec.MsgspecError:
        return []
    name_of = {column.field_name: column.name for column in found.columns}
    return [
        Level(None, level.name, range(level.start, level.stop, level.step))
        if isinstance(level, _Range)
        else Level(level, name_of.get(level))
        for level in found.index_columns
        if isinstance(level, _Range) or level in schema.names
    ]


class _Column(msgspec.Struct):
    """One column as pandas describes it."""

    field_name: str | None = None
    name: str | None = None


class _Range(msgspec.Struct):
    """An index that is a range, which has no column."""

    start: int
    stop: int
    step: int
    name: str | None = None


class _Described(msgspec.Struct):
    """pandas' description of a frame, as far as it is read here."""

    index_columns: list[str | _Range] = []
    columns: list[_Column] = []


def _header(path: Path) -> Header | None:
    return header_in(_schema(path))


def _unreadable(path: Path, error: Exception) -> FrameError:
    cause = "it is damaged, or something else"
    if isinstance(error, OSError):
        cause = error.strerror or "it is damaged"
    return FrameError(f"{path} cannot be read as Parquet: {cause}.")


def _read(path: Path, columns: list[str]) -> Iterator[pa.Table]:
    try:
        with pq.ParquetFile(path) as file:  # not as a dataset, which takes folder names for columns
            yield from (_fitted(path, table, columns, file.schema_arrow) for table in _groups(file, columns))
    except (pa.ArrowInvalid, OSError) as error:
        raise _unreadable(path, error) from None


def _groups(file: pq.ParquetFile, columns: list[str]) -> Iterator[pa.Table]:
    stored = [name for name in columns if name in file.schema_arrow.names]
    for group in range(file.num_row_groups):
        yield file.read_row_group(group, columns=stored)
    if not file.num_row_groups:
        yield file.read(columns=stored)


def _fitted(path: Path, table: pa.Table, columns: list[str], schema: pa.Schema) -> pa.Table:
    header = header_in(schema)
    if header is not None and "user_id" in columns and "user_id" not in table.column_names:
        table = table.append_column("user_id", pa.repeat(header.user_id, len(table)))
    cast = [cast_column(path, name, table[name]) for name in columns]
    return pa.Table.from_arrays(cast, names=columns).replace_schema_metadata(schema.metadata)


def _write(file: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:
    n_rows = 0
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for group in _gathered(tables):
            writer.write_table(group)
            n_rows += len(group)
    return n_rows


def _gathered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Tables, which may be as small as a page, as groups that are worth the name."""
    gathered: list[pa.Table] = []
    n_rows = n_bytes = 0
    for table in tables:
        gathered.append(table)
        n_rows += len(table)
        n_bytes += table.nbytes
        if n_rows >= GROUP_ROWS or n_bytes >= GROUP_BYTES:
            yield pa.concat_tables(gathered)
            gathered, n_rows, n_bytes = [], 0, 0
    if gathered:
        yield pa.concat_tables(gathered)


def in_parts(schema: pa.Schema, tables: Iterable[pa.Table], part_rows: int) -> Iterator[Iterator[pa.Table]]:
    """The tables of one file after the other, each to be taken whole; at least one, so that none lacks columns."""
    rest = iter(tables)
    first = next(rest, schema.empty_table())
    while first is not None:
        yield _until_full(first, rest, part_rows)
        first = next(rest, None)


def _until_full(first: pa.Table, others: Iterator[pa.Table], part_rows: int) -> Iterator[pa.Table]:
    n_rows = len(first)
    yield first
    while n_rows < part_rows and (table := next(others, None)) is not None:
        n_rows += len(table)
        yield table


PARQUET = ArchiveFormat(_names, _read, _write, _header, _labels)
