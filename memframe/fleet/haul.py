"""What came of one user, and how it is packed for its way between processes."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec
import pyarrow as pa
from msgspec import Struct

from memframe.archive.table import ARCHIVE_SCHEMA
from memframe.fleet.members import Member

Outcome = Literal["done", "revoked", "failed"]


class Haul(Struct, frozen=True):
    """What came of one user.

    Attributes
    ----------
    member : Member
        With the user's id, if it came to be known.
    status : {"done", "revoked", "failed"}
    n_rows : int
        Memories that were read.
    error : str or None
        Why it is not done, or how many memories could not be opened.
    files : dict of str to bytes
        Parquet files by their place, such as ``memories/part-00000.parquet``.
    table : pyarrow.Table or None
        Memories, if they were asked for.
    """

    member: Member
    status: Outcome
    n_rows: int = 0
    error: str | None = None
    files: Mapping[str, bytes] = {}
    table: pa.Table | None = None


def joined(tables: Iterable[pa.Table]) -> pa.Table:
    """Tables of memories as one, of none an empty one."""
    return pa.concat_tables([*tables] or [pa.schema(ARCHIVE_SCHEMA).empty_table()])


def packed(haul: Haul) -> bytes:
    """A haul as it travels between processes."""
    return msgspec.msgpack.encode(haul, enc_hook=_bytes_of)


def unpacked(data: bytes) -> Haul:
    """The haul that was packed."""
    return msgspec.msgpack.decode(data, type=Haul, dec_hook=lambda _kind, data: _table_in(data))


def _bytes_of(table: pa.Table) -> bytes:
    """Compressed in the quickest way, in this thread: most tables are small."""
    file = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.ipc.new_stream(file, table.schema, options=options) as stream:
        stream.write_table(table)
    return file.getvalue()


def _table_in(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data, options=pa.ipc.IpcReadOptions(use_threads=False)).read_all()
