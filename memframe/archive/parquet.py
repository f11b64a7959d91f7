"""Parquet: every type as it is, and any reader of Parquet can open it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from memframe.archive.table import ArchiveFormat, cast_column
from memframe.errors import FrameError


def _names(path: Path) -> list[str]:
    try:
        return list(pq.read_schema(path).names)
    except (pa.ArrowInvalid, OSError) as error:
        raise FrameError(f"{path} cannot be read as Parquet: {_cause(error)}.") from None


def _cause(error: Exception) -> str:
    return (
        error.strerror or "it is damaged"
        if isinstance(error, OSError)
        else "it is damaged, or something else"
    )


def _read(path: Path, columns: list[str]) -> pa.Table:
    try:
        # Not as a dataset, which would take folder names such as user_id=1 for columns.
        table = pq.ParquetFile(path).read(columns=columns).select(columns)
    except (pa.ArrowInvalid, OSError) as error:
        raise FrameError(f"{path} cannot be read as Parquet: {_cause(error)}.") from None
    cast = [cast_column(path, name, table[name]) for name in columns]
    return pa.Table.from_arrays(cast, names=columns).replace_schema_metadata(table.schema.metadata)


def _write(file: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:
    n_rows = 0
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table)
            n_rows += len(table)
    return n_rows


PARQUET = ArchiveFormat(_names, _read, _write)
