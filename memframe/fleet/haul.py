"""What came of one user, and how it travels between processes: packed, and memories sealed as a whole.

A table of memories that leaves a worker is one text in memframe's own layout (see
`memframe.envelope.layouts.Own`), under the user's key: whoever opens it fetches that key for themselves. To
seal each cell would take both ends ten times as long, and leave more of it in the open.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec
import pyarrow as pa
from msgspec import Struct

from memframe.access import Access
from memframe.archive.table import ARCHIVE_SCHEMA
from memframe.envelope.formats import OWN, bind
from memframe.envelope.layouts import Authenticated
from memframe.errors import SealError
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
        Why it is not done.
    files : dict of str to bytes
        Parquet files by their place, such as ``memories/part-00000.parquet``.
    table : pyarrow.Table or None
        Memories in the open, if they were asked for.
    sealed : list of str
        The same, sealed: a text for each table that `sealed_table` was given.
    """

    member: Member
    status: Outcome
    n_rows: int = 0
    error: str | None = None
    files: Mapping[str, bytes] = {}
    table: pa.Table | None = None
    sealed: Sequence[str] = ()


def joined(tables: Iterable[pa.Table]) -> pa.Table:
    """Tables of memories as one, of none an empty one."""
    return pa.concat_tables([pa.schema(ARCHIVE_SCHEMA).empty_table(), *tables])


def packed(haul: Haul) -> bytes:
    """A haul as it travels between processes."""
    return msgspec.msgpack.encode(haul, enc_hook=_bytes_of)


def unpacked(data: bytes) -> Haul:
    """The haul that was packed."""
    return msgspec.msgpack.decode(data, type=Haul, dec_hook=lambda _kind, data: _table_in(data))


def sealed_table(access: Access, table: pa.Table) -> str:
    """A table that only the user's key opens."""
    return _layout_of(access).seal(_bytes_of(table), None)


def opened_table(access: Access, sealed: str) -> pa.Table:
    """The table that was sealed.

    Raises
    ------
    SealError
        The key is another one by now, or what was brought was damaged.
    """
    data = _layout_of(access).open(sealed)
    if data is None:
        raise SealError(
            f"what a worker brought of user {access.user_id} does not open: the user's key was changed in the "
            "meantime, or the way from the worker is not to be trusted. Run it again"
        )
    return _table_in(data)


def _layout_of(access: Access) -> Authenticated:
    keys = access.credentials
    layout = bind(OWN, keys.encryption_key, keys.user_id, keys.key_version)
    assert isinstance(layout, Authenticated)  # noqa: S101 - for the type checker: ours is
    return layout


def _bytes_of(table: pa.Table) -> bytes:
    """Compressed in the quickest way, in this thread: most tables are small."""
    file = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.ipc.new_stream(file, table.schema, options=options) as stream:
        stream.write_table(table)
    return file.getvalue()


def _table_in(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data, options=pa.ipc.IpcReadOptions(use_threads=False)).read_all()
