"""Parquet: every type as it is, and any reader of Parquet can open it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from memframe.archive.table import HEADER, PANDAS, ArchiveFormat, ArchiveHeader, Level, cast_column, header_in
from memframe.errors import FrameError, MemframeError

GROUP_ROWS = 10_000
"""Rows in one group of a file, and in memory while it is written or read."""

DAMAGE = (pa.ArrowException, OSError, ValueError, LookupError, OverflowError, TypeError)
"""Errors of Arrow where a file is damaged: an error of ours names the file."""

GROUP_BYTES = 64 * 1024 * 1024
"""Enough for a group of fewer rows."""


def _schema(path: Path) -> pa.Schema:
    try:
        return pq.read_schema(path)
    except DAMAGE as error:
        raise _unreadable(path, error) from None


def footer(file: Path | BinaryIO) -> dict[bytes, bytes]:
    """Return the metadata in a file's footer."""
    try:
        return pq.read_metadata(file).metadata or {}
    except DAMAGE as error:
        raise _unreadable(file, error) from None


def header_bytes(schema: pa.Schema) -> bytes:
    """Return the header of a schema as it stands in a file."""
    found: bytes = (schema.metadata or {}).get(HEADER, b"")
    return found


def column_names(path: Path) -> list[str]:
    """Return the columns that are stored in a file."""
    return list(_schema(path).names)


def _names(path: Path) -> list[str]:
    """List the columns of a file; ``user_id`` may stand in the header alone, as beside ``user_id=...`` folders."""
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
    except (msgspec.MsgspecError, UnicodeDecodeError):
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
    """Description of a frame by pandas, as far as it is used."""

    index_columns: list[str | _Range] = []
    columns: list[_Column] = []


def _header(path: Path) -> ArchiveHeader | None:
    return header_in(_schema(path))


def _unreadable(path: Path | BinaryIO, error: Exception) -> FrameError:
    cause = "it is damaged, or of another format"
    if isinstance(error, OSError):
        cause = error.strerror or "it is damaged"
    return FrameError(f"{path} cannot be read as Parquet: {cause}.")


def _read(path: Path, columns: list[str]) -> Iterator[pa.Table]:
    try:
        # not as a dataset, which takes folder names for columns
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield from (_fit(path, table, columns, file.schema_arrow) for table in _groups(file, columns))
    except MemframeError:
        raise
    except DAMAGE as error:
        raise _unreadable(path, error) from None


def _groups(file: pq.ParquetFile, columns: list[str]) -> Iterator[pa.Table]:
    stored = [name for name in columns if name in file.schema_arrow.names]
    for group in range(file.num_row_groups):
        yield file.read_row_group(group, columns=stored)
    if not file.num_row_groups:
        yield file.read(columns=stored)


def _fit(path: Path, table: pa.Table, columns: list[str], schema: pa.Schema) -> pa.Table:
    header = header_in(schema)
    if header is not None and "user_id" in columns and "user_id" not in table.column_names:
        table = table.append_column("user_id", pa.repeat(header.user_id, len(table)))
    table.validate(full=True)  # Arrow does not verify that text is UTF-8
    cast = [cast_column(path, name, table[name]) for name in columns]
    return pa.Table.from_arrays(cast, names=columns).replace_schema_metadata(schema.metadata)


def write(
    file: BinaryIO,
    schema: pa.Schema,
    tables: Iterable[pa.Table],
    footer_of: Callable[[], Mapping[bytes, bytes]] | None = None,
) -> int:
    """Write tables as one file, every page with its checksum, and return the number of rows.

    Parameters
    ----------
    footer_of : callable, optional
        Called once all tables are written: what the footer shall say beside the schema.
    """
    n_rows = 0
    with pq.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer:
        for group in _gather(tables):
            writer.write_table(group)
            n_rows += len(group)
        if footer_of:
            writer.add_key_value_metadata(footer_of())
    return n_rows


def _gather(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Combine tables, which may be as small as a page, into row groups."""
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
    """Divide tables into files; yield at least one, so that an empty archive has its columns."""
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


PARQUET = ArchiveFormat(_names, _read, write, _header, _labels)
