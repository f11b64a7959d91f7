"""Bounds for foreign files, checked before and while they are read, because a small file may be huge in memory.

Honest files grow, too: text about twentyfold when it is unpacked, a column that repeats one word a hundredfold. A bomb
grows a thousandfold. So growth is bounded relative to the size on disk, but only above a size that could do harm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from memframe.errors import FrameError

MAX_BYTES = 1 << 30
"""Most unpacked bytes of a file, or of all files of a folder or archive together."""

MAX_FILES = 50_000
"""Most files of a folder or archive."""

MAX_RATIO = 200
"""Largest ratio of the unpacked size to the size on disk."""

RATIO_BYTES = 1 << 20
"""Size from which on the growth of a file is bounded."""

TABLE_BYTES = 64 << 20
"""Size from which on the growth of a table is bounded: a few kilobytes of Parquet hold a million rows of one word."""

MAX_LINE_BYTES = 64 << 20
"""Most bytes of one line of JSON Lines."""

MAX_VALUES = 50_000_000
"""Most cells, elements and lines of one text, because the shortest take fifty times their size in memory."""

_INDEX_BYTES, _ROW_BYTES = 4, 400
"""Bytes in memory of a cell of text, which is read as an index of a dictionary, and of a row without any value."""


def check_growth(n_bytes: int, n_stored: int, name: str, *, least: int = RATIO_BYTES) -> None:
    """Refuse data that grows more than any file of memories does.

    >>> check_growth(3_000_000, 3_000, "a.zip")
    Traceback (most recent call last):
    memframe.errors.FrameError: a.zip grows more than 200 times when it is unpacked, ...
    """
    if n_bytes > least and n_bytes > MAX_RATIO * n_stored:
        raise FrameError(
            f"{name} grows more than {MAX_RATIO} times when it is unpacked, as no text does: unpack it "
            "yourself if you know what it is."
        )


def check_size(n_bytes: int, n_files: int, name: str) -> None:
    """Refuse more bytes or files than are read at once."""
    if n_bytes > MAX_BYTES or n_files > MAX_FILES:
        raise FrameError(
            f"{name} is too large: more than {MAX_BYTES >> 20:,} MiB or {MAX_FILES:,} files are not read at once. "
            "Read it in parts."
        )


def check_values(text: str, name: str) -> None:
    """Refuse a text of more values than are read at once; they are counted by commas and line ends."""
    if text.count(",") + text.count("\n") > MAX_VALUES:
        raise FrameError(
            f"{name} is too large: more than {MAX_VALUES:,} values are not read at once. Read it in parts."
        )


def check_holes(path: Path, name: str) -> None:
    """Refuse a sparse file, whose size is mostly holes that take no space on the disk."""
    status = path.stat()
    blocks = getattr(status, "st_blocks", None)  # of 512 bytes; not on Windows
    if blocks is not None:
        check_growth(status.st_size, 512 * blocks, name, least=TABLE_BYTES)


def read_whole(path: Path, name: str) -> bytes:
    """Return the bytes of a file that is not too large to be read at once."""
    check_size(path.stat().st_size, 1, name)
    check_holes(path, name)
    return path.read_bytes()


def read_groups(
    source: Path | BinaryIO | pa.NativeFile, n_stored: int, name: str, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """Yield the row groups of a Parquet file of ``n_stored`` bytes; at least one, which may have no rows.

    The sizes in the footer are checked before a group is read. Texts are read as dictionaries first, which hold a
    repeated text once, so that the size of the texts is checked before they are decoded.
    """
    with pq.ParquetFile(source) as plain:
        metadata, schema = plain.metadata, plain.schema_arrow
        leaves = [plain.schema.column(number) for number in range(len(plain.schema))]
        texts = [
            leaf.path
            for leaf in leaves
            if leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type != "DECIMAL"
        ]
        wanted = [field for field in schema if columns is None or field.name in columns]
        target = pa.schema(wanted, schema.metadata)
        file = pq.ParquetFile(
            source, metadata=metadata, read_dictionary=texts, page_checksum_verification=True
        )
        n_bytes = n_unpacked = 0
        for number in range(metadata.num_row_groups):
            # only sizes of the group, because Arrow ends the process when asked for the columns of a damaged footer
            group = metadata.row_group(number)
            n_unpacked += group.total_byte_size
            n_bytes += _ROW_BYTES * group.num_rows
            n_cells = group.num_rows * len(texts)
            check_growth(max(n_unpacked, n_bytes + _INDEX_BYTES * n_cells), n_stored, name, least=TABLE_BYTES)
            table = file.read_row_group(number, columns=target.names)
            n_bytes += sum(_decoded_bytes(chunk) for column in table.columns for chunk in column.iterchunks())
            check_growth(n_bytes, n_stored, name, least=TABLE_BYTES)
            yield table.select(target.names).cast(target)
        if not metadata.num_row_groups:
            yield target.empty_table()


def _decoded_bytes(array: pa.Array) -> int:
    """Return the size of an array after its dictionaries are decoded to texts."""
    if pa.types.is_dictionary(array.type):
        lengths = pc.binary_length(array.dictionary).take(array.indices)
        return len(array) * _INDEX_BYTES + (pc.sum(lengths).as_py() or 0)
    if pa.types.is_struct(array.type):
        return sum(map(_decoded_bytes, array.flatten()))
    if pa.types.is_map(array.type):
        return _decoded_bytes(array.keys) + _decoded_bytes(array.items)
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return len(array) * _INDEX_BYTES + _decoded_bytes(array.flatten())
    return int(array.nbytes)
