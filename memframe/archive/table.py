"""Arrow tables of memories and their frames, and the header of an archive's files.

The header says whose memories a file holds and under which key they are sealed. It is JSON in the metadata of the
schema, under ``memframe``. Archives made of frames have none, as a frame may hold the memories of several users.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from memframe.errors import FrameError
from memframe.frames import MEMORY_KINDS, NAMES, TEXT

HEADER, MAC, PANDAS = b"memframe", b"memframe.mac", b"pandas"
"""Metadata of a schema or footer: our header, our authentication code, and pandas' own description of a frame."""

T = TypeVar("T")


def read_metadata(metadata: Mapping[bytes, bytes] | None, key: bytes, kind: type[T]) -> T | None:
    """Decode an entry of metadata; None if there is none, or it is unreadable."""
    try:
        return msgspec.json.decode((metadata or {}).get(key, b""), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


class Seal(Struct, frozen=True):
    """Key version and content format of a sealed archive.

    Attributes
    ----------
    key_version : int
        Of the user's key.
    content_format : str or list of str
        How the service stores the content, as given to `open_access`; "codec" for a user-defined codec.
    check : str
        The user's id, sealed: it shows whether a key is the right one before anything else is opened.
    """

    key_version: int
    content_format: str | list[str]
    check: str


class ArchiveHeader(Struct, frozen=True):
    """Owner of the memories in a file; ``seal`` is None if they are plain."""

    user_id: str
    seal: Seal | None = None


class Mac(Struct, frozen=True):
    """The authentication code of a file of a sealed archive, in the metadata of its footer.

    Attributes
    ----------
    columns : dict of str to str
        A digest of all cells of each column, keyed like the code.
    n_rows : int
    parts : list of str
        In the file that seals a folder: the codes of the others, in order.
    code : str
        HMAC-SHA-256 over the header and all of the above, in hexadecimal.
    """

    columns: dict[str, str]
    n_rows: int
    parts: list[str] = []
    code: str = ""


ARCHIVE_SCHEMA: dict[str, pa.DataType] = {name: kind.arrow for name, kind in MEMORY_KINDS.items()}
"""Columns that every archive has, and their types."""


def schema_for(header: ArchiveHeader) -> pa.Schema:
    """Return the schema of an archive with this header."""
    return pa.schema(ARCHIVE_SCHEMA, {HEADER: msgspec.json.encode(header)})


class ArchiveFormat(NamedTuple):
    """Functions of one file format."""

    names: Callable[[Path], list[str]]
    """Path -> names of the columns, from as little of the file as can be."""
    read: Callable[[Path, list[str]], Iterator[pa.Table]]
    """Path, columns -> one table or more; columns of memories have the types of `ARCHIVE_SCHEMA`."""
    write: Callable[[BinaryIO, pa.Schema, Iterable[pa.Table]], int]
    """File, schema, tables -> number of rows."""
    header: Callable[[Path], ArchiveHeader | None] = lambda _path: None
    """Path -> header, where such files have one."""
    labels: Callable[[Path], Sequence[str | range]] = lambda _path: ()
    """Path -> the index that a frame had when pandas wrote it: the columns that hold it, or a range of numbers."""


def table_of(frame: pd.DataFrame) -> pa.Table:
    """Convert a frame of memories to a table with the types of the archive."""
    _check_columns(frame)
    arrays = [_array(name, frame[name]) for name in frame.columns]
    bare = frame.head(0).copy()
    bare.attrs = {}
    # The description of pandas' own dtypes brings back extra columns of them; it is JSON, never a pickle.
    metadata = pa.Schema.from_pandas(bare, preserve_index=False).metadata
    fields = [pa.field(name, array.type) for name, array in zip(frame, arrays, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=metadata))


def table_of_page(columns: Mapping[str, Sequence[Any]], names: Iterable[str]) -> pa.Table:
    """Convert the columns of a page to a table; extra columns of text keep their names."""
    return pa.table(
        {
            name: pa.array([cell or () for cell in columns[name]], NAMES.arrow)
            if MEMORY_KINDS.get(name) is NAMES
            else MEMORY_KINDS.get(name, TEXT).chunk(columns[name])
            for name in names
        }
    )


def frame_of(table: pa.Table, labels: Iterable[str | range] = ()) -> pd.DataFrame:
    """Return the frame that a table was made of, under a fresh index or these labels.

    Labels that are columns of memories, such as ``id``, stay columns.
    """
    others = [name for name in table.column_names if name not in ARCHIVE_SCHEMA]
    metadata = table.schema.metadata or {}
    if PANDAS in metadata:  # what was an index is a column like any other
        described = msgspec.json.decode(metadata[PANDAS]) | {"index_columns": []}
        table = table.replace_schema_metadata(metadata | {PANDAS: msgspec.json.encode(described)})
    frame = table.select(others).to_pandas().set_axis(others, axis="columns")
    cells = {}
    for name in table.column_names:
        kind, column = MEMORY_KINDS.get(name), table[name]
        if kind is None:
            cells[name] = frame[name]
        else:
            cells[name] = kind.join([kind.chunk(tuples_of(column))] if kind is NAMES else column.chunks)
    loaded = pd.DataFrame(cells, index=pd.RangeIndex(len(table)), copy=False)
    levels = [level for level in labels if level not in ARCHIVE_SCHEMA]
    fields = [level for level in levels if isinstance(level, str)]
    if fields and len(fields) == len(levels) and not loaded[fields].isna().any(axis=None):
        names = [None if NAMELESS.fullmatch(field) else field for field in fields]
        return loaded.set_index(fields).rename_axis(names)
    if len(levels) == 1 and isinstance(levels[0], range) and len(levels[0]) == len(table):
        loaded.index = pd.RangeIndex(levels[0])
    return loaded.drop(columns=fields)


NAMELESS = re.compile("__index_level_[0-9]+__")
"""Columns in which an index stands that has no name."""


def array_of(cells: Iterable[Any], kind: pa.DataType | None) -> pa.Array:
    """Convert cells to an Arrow array; refuse one text in place of a list of names."""
    if kind == NAMES.arrow and any(isinstance(cell, str) for cell in cells):
        raise TypeError("text where a list of names belongs")
    return pa.array(cells, type=kind, from_pandas=True)


def cast_column(path: Path, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cast a column to its type in the archive; extra columns stay as they are."""
    kind = ARCHIVE_SCHEMA.get(name)
    if kind is None or column.type == kind:
        return column
    try:
        if column.type == pa.float32():  # by its digits: wider bits would make 0.30000001192092896 of 0.3
            column = column.cast(pa.string())
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # their messages quote cells
        raise wrong_column(path, name, column.type) from None


def wrong_column(path: Path, name: str, found: object) -> FrameError:
    """Make the error for a column of a wrong type."""
    return FrameError(
        f"The column {name} of {path} holds {found} where {ARCHIVE_SCHEMA[name]} belongs: "
        "it was changed by another program, or is not an archive of memories."
    )


def _check_columns(frame: pd.DataFrame) -> None:
    names: list[object] = list(frame.columns)
    strange = [name for name in names if not isinstance(name, str)]
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    missing = [name for name in ARCHIVE_SCHEMA if name not in frame.columns]
    if strange:
        raise FrameError(f"The frame has column names that are not text: {strange[:3]}. Rename them.")
    if twice:
        raise FrameError(f"The frame has several columns named {', '.join(twice)}: rename or drop them.")
    if missing:
        raise FrameError(
            f"The frame lacks {', '.join(missing)}: export all columns of load_memories(), or write a part of "
            "them with pandas itself."
        )


def _array(name: str, column: pd.Series[Any]) -> pa.Array:
    try:
        array = array_of(column, ARCHIVE_SCHEMA.get(name))
    except (pa.ArrowException, TypeError, ValueError):  # their messages quote cells
        wanted = ARCHIVE_SCHEMA.get(name, "one type for all cells")
        raise FrameError(
            f"The column {name!r} (dtype {column.dtype}) cannot be archived, which needs {wanted}: "
            "correct its cells, or drop the column if you added it."
        ) from None
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def tuples_of(column: pa.ChunkedArray) -> list[tuple[str, ...]]:
    """Convert a list column to tuples; all names at once, as Arrow converts cell by cell slowly."""
    names = iter(pc.list_flatten(column).to_numpy().tolist())
    lengths = pc.list_value_length(column).fill_null(0).to_pylist()
    return [tuple(islice(names, length)) for length in lengths]
