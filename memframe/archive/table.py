"""Arrow tables of memories, and their conversion from and to frames and records."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from memframe.errors import FrameError
from memframe.fields import MEMORY_FIELDS
from memframe.frames import MEMORY_KINDS, NAMES, TEXT, TIME, FrameBuilder

ARCHIVE_SCHEMA: dict[str, pa.DataType] = {name: kind.arrow for name, kind in MEMORY_KINDS.items()}
"""Columns of an archive, and their types."""

FIRST_COLUMNS = ARCHIVE_SCHEMA.keys() - {field.name for field in MEMORY_FIELDS if field.since > 1}
"""Columns that every archive has; later columns are missing in older archives, and read from them as null."""

NAMELESS = re.compile("__index_level_[0-9]+__")
"""Names of columns that hold an index without a name."""

PANDAS = b"pandas"
"""Key of the description of a frame by pandas in the metadata of a schema."""

T = TypeVar("T")


def read_metadata(metadata: Mapping[bytes, bytes] | None, key: bytes, kind: type[T]) -> T | None:
    """Decode an entry of metadata; None if there is none, or it is unreadable."""
    try:
        return msgspec.json.decode((metadata or {}).get(key, b""), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


# -- frames


def table_of(frame: pd.DataFrame) -> pa.Table:
    """Convert a frame of memories to a table with the types of the archive."""
    later = [name for name in ARCHIVE_SCHEMA if name not in FIRST_COLUMNS and name not in frame.columns]
    frame = frame.assign(**dict.fromkeys(later)) if later else frame
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
    arrays = []
    for name, column in frame.items():
        try:
            array = array_of(column, ARCHIVE_SCHEMA.get(str(name)))
            array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        except (pa.ArrowException, TypeError, ValueError):  # their messages quote cells
            wanted = ARCHIVE_SCHEMA.get(str(name), "one type for all cells")
            raise FrameError(
                f"The column {name!r} (dtype {column.dtype}) cannot be archived, which needs {wanted}: "
                "correct its cells, or drop the column if you added it."
            ) from None
        arrays.append(array)
    bare = frame.head(0).assign(**FrameBuilder(MEMORY_KINDS).frame())
    bare = bare.astype({name: object for name, dtype in bare.dtypes.items() if not _is_named(dtype)})
    bare.attrs = {}
    # The description restores extra columns with pandas' own dtypes; it is JSON, never a pickle.
    metadata = pa.Schema.from_pandas(bare, preserve_index=False).metadata
    return pa.table(arrays, names=list(frame.columns), metadata=metadata)


def _is_named(dtype: Any) -> bool:
    """Return True if pandas can make the dtype from its name, which it cannot for lists of Arrow."""
    try:
        return not isinstance(dtype, pd.ArrowDtype) or bool(pd.api.types.pandas_dtype(str(dtype)))
    except (TypeError, NotImplementedError):
        return False


def table_of_page(columns: Mapping[str, Sequence[Any]], names: Iterable[str]) -> pa.Table:
    """Convert the columns of a page to a table; extra columns of text keep their names."""
    kinds = {name: MEMORY_KINDS.get(name, TEXT) for name in names}
    return pa.table(
        {
            name: array_of([cell or () for cell in columns[name]], NAMES.arrow)
            if kind is NAMES
            else kind.chunk(columns[name])
            for name, kind in kinds.items()
        }
    )


def add_columns(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the named columns of a table, in this order; columns of memories that it lacks are null."""
    for name in names:
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(len(table), ARCHIVE_SCHEMA[name]))
    return table.select(names)


class _Range(msgspec.Struct, frozen=True):
    """An index that is a range of numbers, in pandas' description of a frame."""

    start: int
    stop: int
    step: int


class _Described(msgspec.Struct):
    """The part of pandas' description of a frame that is used."""

    index_columns: list[str | _Range] = []


def index_columns(metadata: Mapping[bytes, bytes] | None) -> list[str]:
    """List the columns that were the index of the frame when pandas wrote a file."""
    described = read_metadata(metadata, PANDAS, _Described) or _Described()
    return [level for level in described.index_columns if isinstance(level, str)]


def frame_of(table: pa.Table, columns: Collection[str] = ()) -> pd.DataFrame:
    """Return the frame from which a table was made, with its index if pandas described one, else with a fresh one.

    Index levels that are columns of memories, such as ``id``, or among ``columns``, become columns.
    """
    metadata = {**(table.schema.metadata or {})}
    described = read_metadata(metadata, PANDAS, _Described) or _Described()
    if raw := read_metadata(metadata, PANDAS, dict[str, Any]):  # read the index as ordinary columns first
        metadata[PANDAS] = msgspec.json.encode({"columns": [], **raw, "index_columns": []})
    others = [name for name in table.column_names if name not in ARCHIVE_SCHEMA]
    extras = table.select(others).replace_schema_metadata(metadata)
    try:
        frame = extras.to_pandas().set_axis(others, axis="columns")
    except (TypeError, NotImplementedError):  # pandas wrote the name of a dtype that it cannot read back
        frame = extras.to_pandas(ignore_metadata=True)
    cells = {}
    for name in table.column_names:
        kind, column = MEMORY_KINDS.get(name), table[name]
        if kind is None:
            cells[name] = frame[name]
        else:
            cells[name] = kind.join([kind.chunk(tuples_of(column))] if kind is NAMES else column.chunks)
    loaded = pd.DataFrame(cells, index=pd.RangeIndex(len(table)), copy=False)
    levels = [
        level
        for level in described.index_columns
        if isinstance(level, _Range) or (level in others and level not in columns)
    ]
    fields = [level for level in levels if isinstance(level, str)]
    if fields and fields == levels:
        return loaded.set_index(fields).rename_axis(
            [None if NAMELESS.fullmatch(name) else name for name in fields]
        )
    match levels:
        case [_Range(start, stop, step)] if len(range(start, stop, step)) == len(table):
            loaded.index = pd.RangeIndex(start, stop, step)
    return loaded.drop(columns=fields)


def array_of(cells: Iterable[Any], kind: pa.DataType | None) -> pa.Array:
    """Convert cells to an Arrow array; refuse text in place of a list of names, and a list with a missing name."""
    if isinstance(cells, pd.Series) and kind is not None and cells.isna().all():
        # pandas gives a column without a text another dtype, which Arrow does not convert to text
        return pa.nulls(len(cells), kind)
    if kind == NAMES.arrow and any(_is_no_list_of_names(cell) for cell in cells):
        raise TypeError("something else where a list of names belongs")
    return pa.array(cells, type=kind, from_pandas=True)


def _is_no_list_of_names(cell: Any) -> bool:
    return isinstance(cell, str) or (isinstance(cell, tuple | list) and None in cell)


def tuples_of(column: pa.ChunkedArray) -> list[tuple[str, ...]]:
    """Convert a list column to tuples; all names at once, because Arrow is slow cell by cell."""
    names = iter(pc.list_flatten(column).to_numpy().tolist())
    lengths = pc.list_value_length(column).fill_null(0).to_pylist()
    return [tuple(islice(names, length)) for length in lengths]


def wrong_column(path: Path, name: str, found: object) -> FrameError:
    """Make the error for a column of a wrong type."""
    return FrameError(
        f"The column {name} of {path} holds {found} where {ARCHIVE_SCHEMA[name]} belongs: "
        "it was changed by another program, or is not an archive of memories."
    )


# -- records

HOW_PANDAS_WRITES = "write it with to_json(path, orient='records', lines=True), one memory per line"

_UNITS = {"s": 1e11, "ms": 1e14, "us": 1e17, "ns": inf}
"""Units of times as numbers, each with its upper end: 1e11 seconds are the year 5138, 1e11 milliseconds 1973."""


def records_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Convert a table to one dict per row, with times of memories as text."""
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = MEMORY_KINDS.get(name)
        if pa.types.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py():
            raise FrameError(
                f"The column {name!r} contains an infinite number, which JSON cannot represent: use Parquet."
            )
        if kind is TIME:
            column = pc.replace_substring(column.cast(TEXT.arrow), " ", "T")  # noqa: PLW2901 - the same column
        if kind is None:
            columns.append(column.to_pylist())
        else:  # faster, for the types of memories
            columns.append(tuples_of(column) if kind is NAMES else column.to_numpy().tolist())
    return (dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True))


def table_of_records(path: Path, rows: Sequence[Mapping[str, Any]], columns: Iterable[str]) -> pa.Table:
    """Convert rows to a table of the given columns; the opposite of `records_of`."""
    return pa.table({name: _array(path, name, [row.get(name) for row in rows]) for name in columns})


def _array(path: Path, name: str, values: list[Any]) -> pa.Array:
    kind = ARCHIVE_SCHEMA.get(name)
    if kind is not None and any(isinstance(value, dict) for value in values):
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
    """Read times that are text, or numbers since 1970, as pandas writes them without ``date_format="iso"``.

    The unit of numbers follows from their size: milliseconds read as seconds would be centuries away.
    """
    most = max((abs(value) for value in values if isinstance(value, int)), default=0)
    if not most:
        return TIME.chunk(values)
    unit = next(unit for unit, end in _UNITS.items() if most < end)
    return pa.array(values, pa.timestamp(unit, "UTC")).cast(TIME.arrow, safe=False)
