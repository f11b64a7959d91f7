"""Columns and dtypes of frames: records to a frame, and columns of a frame to arrays.

A frame is built column by column from chunks, one chunk per page, so that a load of any length keeps no list of
dicts and concatenates no frames. Text and times stay in Arrow memory, which pandas takes over without a copy.

Decisions where the specification is silent: a missing list of tags is the empty tuple; a time
without a zone is read as UTC; a time that is not ISO 8601 becomes NaT.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.pandas_compat  # Arrow would import these two at the first conversion, in the middle of a load
import pyarrow.vendored.version
from msgspec import Struct
from msgspec.structs import astuple
from numpy.typing import NDArray

from memframe.errors import FrameError, check_kind
from memframe.fields import MEMORY_FIELDS, FieldKind
from memframe.wire import AccessRequest, Tag

if int(pd.__version__.partition(".")[0]) < 3:
    raise ImportError(
        f"memframe needs pandas 3, for its str dtype and copy-on-write, and this is pandas {pd.__version__}: "
        "pip install 'pandas>=3,<4'"
    )

TIME_DTYPE = "datetime64[us, UTC]"

READ = "memframe_read"
"""Key in ``frame.attrs`` of the report of `memframe.read_memories`."""

_POOL = pa.system_memory_pool()
"""Reuses memory. Arrow's default allocator maps new pages for each chunk, which took longer than decrypting."""

_ARROW_TEXT = pa.large_string()
_ARROW_TIME = pa.timestamp("us", tz="UTC")


class Kind(NamedTuple):
    """Builder of one kind of column: values to a chunk, chunks to the column."""

    arrow: pa.DataType
    """Type of the column in an Arrow table (archives)."""
    chunk: Callable[[Sequence[Any]], Any]
    """Values of one page -> chunk."""
    join: Callable[[list[Any]], pd.Series[Any]]
    """Chunks -> column."""


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(values, type=kind, memory_pool=_POOL)


def _text_chunk(values: Sequence[str | bytes | None]) -> pa.Array:
    """Make text from ``str`` or from UTF-8 bytes, which Arrow checks faster than Python decodes them."""
    if isinstance(next((value for value in values if value is not None), None), bytes):
        return _array(values, pa.large_binary()).cast(_ARROW_TEXT, memory_pool=_POOL)
    return _array(values, _ARROW_TEXT)


def _time_chunk(values: Sequence[str | None]) -> pa.Array:
    text = _array(values, _ARROW_TEXT)
    try:
        return text.cast(_ARROW_TIME, memory_pool=_POOL)
    except pa.ArrowInvalid:  # no zone, nanoseconds, damage: pandas reads more spellings, one by one
        capital = text.to_pandas().str.upper()  # RFC 3339 allows a small t and z
        times = pd.to_datetime(capital, format="ISO8601", utc=True, errors="coerce")
        return pa.array(times.astype(TIME_DTYPE), type=_ARROW_TIME)


def _join_arrow(chunks: list[pa.Array], kind: pa.DataType) -> pd.Series[Any]:
    column: pd.Series[Any] = pa.chunked_array(chunks, type=kind).to_pandas()
    return column


def _names_chunk(values: Sequence[Sequence[str] | None]) -> NDArray[np.object_]:
    return np.fromiter((tuple(names) if names else () for names in values), object, len(values))


def _join_copied(chunks: list[Any], dtype: Any) -> pd.Series[Any]:
    return pd.Series(np.concatenate([np.array([], dtype), *chunks]), copy=False)


TEXT = Kind(_ARROW_TEXT, _text_chunk, partial(_join_arrow, kind=_ARROW_TEXT))
NUMBER = Kind(pa.float64(), partial(_array, kind=pa.float64()), partial(_join_copied, dtype=np.float64))
FLAG = Kind(pa.bool_(), partial(_array, kind=pa.bool_()), partial(_join_arrow, kind=pa.bool_()))
TIME = Kind(_ARROW_TIME, _time_chunk, partial(_join_arrow, kind=_ARROW_TIME))
NAMES = Kind(pa.list_(pa.string()), _names_chunk, partial(_join_copied, dtype=object))
"""Tuples of text: they compare, hash and cannot be changed in place, which no list type does."""

_TIMES = {"created_at": TIME, "updated_at": TIME}

_KINDS: Mapping[FieldKind, Kind] = {"text": TEXT, "names": NAMES, "number": NUMBER, "time": TIME}

MEMORY_KINDS: Mapping[str, Kind] = {
    **{field.name: _KINDS[field.kind] for field in MEMORY_FIELDS},
    "content_error": TEXT,
}
TAG_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(["id", "name", "color", "description"], TEXT),
    "is_enabled": FLAG,
    **_TIMES,
}
REQUEST_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(["id", "status", "reason", "user_id", "ai_connector_id"], TEXT),
    **_TIMES,
}
"""Columns of access requests; the memory key is left out, because these frames are for display."""


class FrameBuilder:
    """Collect chunks of columns and join them to one frame with the columns of ``kinds``.

    >>> builder = FrameBuilder({"id": TEXT, "tags": NAMES})
    >>> builder.add({"id": ["m1", "m2"], "tags": [("work",), None]})
    2
    >>> builder.frame()
       id     tags
    0  m1  (work,)
    1  m2       ()
    """

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = kinds
        self._chunks: dict[str, list[Any]] = {name: [] for name in kinds}
        self.n_rows = 0

    def add(self, columns: Mapping[str, Sequence[Any]]) -> int:
        """Append rows, given as one sequence per column, and return their number."""
        for name, kind in self._kinds.items():
            self._chunks[name].append(kind.chunk(columns[name]))
        n_rows = len(columns["id"])
        self.n_rows += n_rows
        return n_rows

    def frame(self, report: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """Join all rows so far under a fresh ``RangeIndex``; the dtypes are the same without rows.

        ``report`` becomes ``attrs["memframe"]``.
        """
        columns = {name: kind.join(self._chunks[name]) for name, kind in self._kinds.items()}
        frame = pd.DataFrame(columns, copy=False)  # each column has memory of its own already
        if report is not None:
            frame.attrs["memframe"] = dict(report)
        return frame


def columns_of(records: Sequence[Struct], names: Iterable[str]) -> dict[str, Sequence[Any]]:
    """Turn records into one tuple per field; ``astuple`` and ``zip`` keep the loop out of Python code.

    >>> columns_of([Tag(id="t1", name="work"), Tag(id="t2", name="home")], ["id", "name"])
    {'id': ('t1', 't2'), 'name': ('work', 'home')}
    """
    names = tuple(names)
    if not records:
        return dict.fromkeys(names, ())
    columns = dict(zip(records[0].__struct_fields__, zip(*map(astuple, records), strict=True), strict=True))
    return {name: columns[name] for name in names}


def tags_frame(tags: Sequence[Tag]) -> pd.DataFrame:
    """Build a frame of tags with the columns ``id name color description is_enabled created_at updated_at``."""
    builder = FrameBuilder(TAG_KINDS)
    builder.add(replace_surrogates(columns_of(tags, TAG_KINDS)))
    return builder.frame()


def requests_frame(requests: Sequence[AccessRequest]) -> pd.DataFrame:
    """Build a frame of access requests, without their memory keys."""
    builder = FrameBuilder(REQUEST_KINDS)
    columns = columns_of(requests, REQUEST_KINDS)
    for name in ("created_at", "updated_at"):
        columns[name] = [moment and moment.isoformat() for moment in columns[name]]
    builder.add(replace_surrogates(columns))
    return builder.frame()


def replace_surrogates(columns: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """Replace lone surrogates, which JSON may hold and Arrow cannot, by U+FFFD.

    ``content_error`` names the field, so that no plan writes the replacement back.
    """
    whole: dict[str, list[Any]] = {name: list(map(to_encodable, cells)) for name, cells in columns.items()}
    errors = whole.get("content_error")
    for name, cells in columns.items() if errors is not None else ():
        for row, (was, now) in enumerate(zip(cells, whole[name], strict=True)):
            if errors and was is not now and errors[row] is None:
                errors[row] = f"{name} contains a lone surrogate, shown as U+FFFD"
    return {**whole}


def to_encodable(cell: Any) -> Any:
    """Return the cell, or a copy in which lone surrogates became U+FFFD."""
    if isinstance(cell, str) and not _is_encodable(cell):
        return cell.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(cell, tuple) and not all(map(_is_encodable, cell)):
        return tuple(map(to_encodable, cell))
    return cell


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_times(memories: pd.DataFrame, name: str) -> NDArray[np.datetime64]:
    """Read a column of times in UTC; missing ones are ``NaT``."""
    column = require_column(memories, name)
    try:
        return parse_column_of_times(column)
    except (TypeError, ValueError) as error:
        raise _unreadable(name, "times") from error


def parse_column_of_times(
    column: pd.Series[Any], *, errors: Literal["raise", "coerce"] = "raise"
) -> NDArray[np.datetime64]:
    """Convert a column of times, or of whatever spells them, to UTC.

    A number is read as the text that it makes: of ``20260131`` pandas would make a moment of 1970.

    >>> parse_column_of_times(pd.Series([20260131, "2026-01-31T09:30+01:00", None]))
    array(['2026-01-31T00:00:00.000000', '2026-01-31T08:30:00.000000',
           'NaT'], dtype='datetime64[us]')
    """
    dtype = column.dtype
    is_number = pd.api.types.is_numeric_dtype(dtype)
    if is_number or pd.api.types.is_object_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        column = column.astype(object).map(str, na_action="ignore").astype(object)
    moments = pd.to_datetime(column, utc=True, format="ISO8601", errors=errors)
    return np.asarray(moments.astype(pd.DatetimeTZDtype("us", "UTC")).to_numpy("datetime64[us]"))


def read_numbers(memories: pd.DataFrame, name: str) -> NDArray[np.float64]:
    """Read a column of numbers; missing ones are ``NaN``."""
    column = require_column(memories, name)
    try:
        numbers = pd.to_numeric(column)
        if pd.api.types.is_complex_dtype(numbers.dtype):
            raise TypeError("complex numbers")
        return numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise _unreadable(name, "numbers") from error


def read_texts(memories: pd.DataFrame, name: str) -> pd.Series[str]:
    """Read a column of text; lone surrogates become U+FFFD."""
    column = require_column(memories, name)
    if column.map(pd.api.types.is_list_like).any() if column.dtype == object else False:
        raise _unreadable(name, "text")
    try:
        return column.astype("str")
    except UnicodeEncodeError:
        return column.map(to_encodable).astype("str")


def read_names(memories: pd.DataFrame, name: str) -> list[Collection[str]]:
    """Read a column of tuples of names; missing ones are empty tuples."""
    cells = require_column(memories, name).tolist()
    lists = (tuple, list, np.ndarray)
    # only scalars are tested, because pd.isna of an array is an array
    if any(
        not isinstance(cell, lists) and not (pd.api.types.is_scalar(cell) and pd.isna(cell)) for cell in cells
    ):
        raise _unreadable(name, "tuples of names")
    names: list[Collection[str]] = [cell if isinstance(cell, lists) else () for cell in cells]
    if not all(isinstance(one, str) for cell in names for one in cell):
        raise _unreadable(name, "tuples of text: some hold numbers, nothing or other things")
    return names


class Ranking(NamedTuple):
    """Distinct values of a column, the most frequent first."""

    names: list[str]
    counts: list[int]
    place: NDArray[np.int64]
    """Position in ``names`` of the value of each row."""


def rank_values(column: pd.Series[str]) -> Ranking:
    """Rank distinct values by count, then by name; no value may be missing.

    >>> ranking = rank_values(pd.Series(["chat", "mail", "mail"], dtype="str"))
    >>> ranking.names, ranking.counts, ranking.place
    (['mail', 'chat'], [2, 1], array([1, 0, 0]))
    """
    codes, values = pd.factorize(column)
    counts = np.bincount(codes, minlength=len(values))
    names = values.tolist()
    order = sorted(range(len(names)), key=lambda code: (-counts[code], names[code]))
    return Ranking([names[code] for code in order], counts[order].tolist(), np.argsort(order)[codes])


def require_column(
    memories: pd.DataFrame, name: str, *, of: str = "pass memories as load_memories returns them"
) -> pd.Series[Any]:
    """Return a column; raise `FrameError` if `memories` is not a frame, lacks the column, or has it several times."""
    check_kind("memories", memories, pd.DataFrame, error=FrameError)
    if name not in memories.columns:
        raise FrameError(
            f"the frame has no column {name!r}, which is needed here; {of}, with that column kept"
        )
    column = memories[name]
    if not isinstance(column, pd.Series):
        raise FrameError(f"the frame has several columns {name!r}: rename or drop all but one")
    return column


def _unreadable(name: str, expected: str) -> FrameError:
    return FrameError(
        f"column {name!r} does not hold {expected}; "
        "pass memories as load_memories or load_archive returns them"
    )


_has_frozen = False
"""True once frozen objects of the caller were counted, which takes 60 ms for a million of them."""


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector, which would walk the new objects of a load again and again.

    At the end all objects are moved to the oldest generation, so that the next collection does not walk them either;
    not if the caller has frozen some, because these would be moved as well.

    >>> with gc_paused():
    ...     gc.isenabled()
    False
    """
    global _has_frozen  # noqa: PLW0603 - the collector is one for the process, too
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        _has_frozen = _has_frozen or (was_enabled and gc.get_freeze_count() > 0)
        if was_enabled and not _has_frozen:
            gc.freeze()
            gc.unfreeze()
        if was_enabled:
            gc.enable()


_TIME_UNITS = (
    ("seconds", 1e8, 1),  # from 1973 on, to the year 5138
    ("milliseconds", 1e11, 10**3),
    ("microseconds", 1e14, 10**6),
    ("nanoseconds", 1e17, 10**9),
)
"""Units of a time since 1970: name, smallest number that is read in the unit, and units per second."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMERAL = re.compile(r"\d{9,19}(?:\.\d*)?")


def read_moment(value: object) -> tuple[datetime | None, str | None]:
    """Return a time, and its unit if it is a number since 1970; (None, None) if the value is no time.

    The unit of a number, also of one in text, follows from its size.

    >>> read_moment("2024-05-01"), read_moment("1714557600")[0].isoformat(), read_moment(1714557600000)[1]
    ((datetime.datetime(2024, 5, 1, 0, 0), None), '2024-05-01T10:00:00+00:00', 'milliseconds')
    """
    if isinstance(value, datetime):
        return value, None
    if isinstance(value, str):
        text = value.strip()
        if not _NUMERAL.fullmatch(text):
            with suppress(ValueError):
                return datetime.fromisoformat(text), None
            return None, None
        value = float(text) if "." in text else int(text)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None, None
    for unit, least, n in reversed(_TIME_UNITS):
        if least <= value < 1000 * _TIME_UNITS[-1][1]:
            exact = value * 10**6 // n if isinstance(value, int) else round(value * 10**6 / n)
            return _EPOCH + timedelta(microseconds=exact), unit
    return None, None
