"""Parquet: every type as it is, and any reader of Parquet can open it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from memframe.archive.table import (
    HEADER,
    NAMELESS,
    PANDAS,
    ArchiveFormat,
    ArchiveHeader,
    cast_column,
    read_metadata,
)
from memframe.errors import FrameError, MemframeError

GROUP_ROWS = 10_000
"""Rows in one group of a file, and in memory while it is written or read."""

DAMAGE = (pa.ArrowException, OSError, ValueError, LookupError, OverflowError, TypeError)
"""Errors of Arrow where a file is damaged: an error of ours names the file."""

GROUP_BYTES = 64 * 1024 * 1024
"""Enough for a group of fewer rows."""


def schema_of(path: Path) -> pa.Schema:
    """Read the schema of a file."""
    try:
        return pq.read_schema(path)
    except DAMAGE as error:
        raise _unreadable(path, error) from None


def footer_of(file: Path | BinaryIO) -> dict[bytes, bytes]:
    """Read the metadata in the footer of a file."""
    try:
        return pq.read_metadata(file).metadata or {}
    except DAMAGE as error:
        raise _unreadable(file, error) from None


def _names(path: Path) -> list[str]:
    """List the columns of a file; ``user_id`` may stand in the header alone, as beside ``user_id=...`` folders."""
    schema = schema_of(path)
    names = [name for name in schema.names if not NAMELESS.fullmatch(name)]
    return names if _header_in(schema) is None else [*dict.fromkeys([*names, "user_id"])]


class _Range(msgspec.Struct):
    """An index that is a range of numbers, in pandas' description of a frame."""

    start: int
    stop: int
    step: int


class _Described(msgspec.Struct):
    """Description of a frame by pandas, as far as it is used."""

    index_columns: list[str | _Range] = []


def _labels(path: Path) -> list[str | range]:
    schema = schema_of(path)
    found = read_metadata(schema.metadata, PANDAS, _Described) or _Described()
    return [
        level if isinstance(level, str) else range(level.start, level.stop, level.step)
        for level in found.index_columns
        if isinstance(level, _Range) or level in schema.names
    ]


def _header_in(schema: pa.Schema) -> ArchiveHeader | None:
    return read_metadata(schema.metadata, HEADER, ArchiveHeader)


def _unreadable(path: Path | BinaryIO, error: Exception) -> FrameError:
    cause = "it is damaged, or of another format"
    if isinstance(error, OSError):
        cause = error.strerror or "it is damaged"
    return FrameError(f"{path} cannot be read as Parquet: {cause}.")


def _read(path: Path, columns: list[str]) -> Iterator[pa.Table]:
    try:
        # not as a dataset, which takes folder names for columns
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            stored = [name for name in columns if name in file.schema_arrow.names]
            groups = (file.read_row_group(at, columns=stored) for at in range(file.num_row_groups))
            for table in groups if file.num_row_groups else [file.read(columns=stored)]:
                yield _fit(path, table, columns, file.schema_arrow)
    except MemframeError:
        raise
    except DAMAGE as error:
        raise _unreadable(path, error) from None


def _fit(path: Path, table: pa.Table, columns: list[str], schema: pa.Schema) -> pa.Table:
    header = _header_in(schema)
    if header is not None and "user_id" in columns and "user_id" not in table.column_names:
        table = table.append_column("user_id", pa.repeat(header.user_id, len(table)))
    table.validate(full=True)  # Arrow does not verify that text is UTF-8
    cast = [cast_column(path, name, table[name]) for name in columns]
    return pa.Table.from_arrays(cast, names=columns).replace_schema_metadata(schema.metadata)


def write(
    file: BinaryIO,
    schema: pa.Schema,
    tables: Iterable[pa.Table],
    make_footer: Callable[[], Mapping[bytes, bytes]] | None = None,
) -> int:
    """Write tables as one file, every page with its checksum, and return the number of rows.

    ``make_footer`` is called once all tables are written: what the footer shall hold beside the schema.
    """
    n_rows = 0
    with pq.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer:
        for group in _gather(tables):
            writer.write_table(group)
            n_rows += len(group)
        if make_footer:
            writer.add_key_value_metadata(make_footer())
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

    def until_full(table: pa.Table | None) -> Iterator[pa.Table]:
        n_rows = 0
        while table is not None:
            yield table
            n_rows += len(table)
            table = next(rest, None) if n_rows < part_rows else None

    while first is not None:
        yield until_full(first)
        first = next(rest, None)


PARQUET = ArchiveFormat(_names, _read, write, lambda path: _header_in(schema_of(path)), _labels)
