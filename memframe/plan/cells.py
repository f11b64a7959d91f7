"""Cells of an edited frame: read them as values, check them against what services accept, compare with the baseline.

Whole columns are compared with Arrow; only cells that differ are read one by one.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memframe.client.validation import refuse_unsendable
from memframe.errors import ConfigError
from memframe.frames import MEMORY_KINDS, NAMES, NUMBER, TEXT, TIME, parse_column_of_times
from memframe.plan.change import Value, same_value
from memframe.wire import MAX_SCORES, MAX_TAG_CHARS, MAX_TAGS

Mask = NDArray[np.bool_]

STRING_FIELDS = frozenset(name for name, kind in MEMORY_KINDS.items() if kind is TEXT)
LIST_FIELDS = frozenset(name for name, kind in MEMORY_KINDS.items() if kind is NAMES)

LIST_TYPES = (tuple, list, np.ndarray, set, frozenset)


FEWER_BITS = frozenset({"float32", "float16"})
"""Dtypes whose numbers are not widened: 0.3 would become 0.30000001192092896."""


def cells_of(column: pd.Series[Any]) -> list[Any]:
    """Convert a column to Python objects."""
    if str(column.dtype) in FEWER_BITS:
        return list(column.to_numpy())
    return column.astype(object).to_numpy().tolist()


class Cell(NamedTuple):
    """The meaning of a cell."""

    value: Value
    error: str | None = None
    """Reason why the field cannot hold the cell."""
    is_null: bool = False
    """True if the cell is NaN, None or NA: neither `NULL` nor an empty list."""

    @property
    def is_given(self) -> bool:
        """True if the cell has a value, valid or not; an empty list is not a value."""
        return self.error is not None or self.value not in (None, ())


def read_cell(field: str, cell: Any) -> Cell:
    """Read a cell: None, NaN, NA and NaT become None; repeated tags are dropped, the others keep their order.

    >>> read_cell("importance", np.int64(3)).value, read_cell("tags", ["a", "a", None]).value
    (3.0, ('a',))
    >>> read_cell("importance", "high").error
    'importance is text, not a number'
    """
    is_list = field in LIST_FIELDS
    kind, hint = "a number", ""
    if field in STRING_FIELDS:
        kind = "text"
    elif is_list:
        kind, hint = "a list of names", " such as ('tea',); load_archive reads the lists in CSV files"
    nothing: Value = () if is_list else None
    if isinstance(cell, str):
        if cell == NULL:
            return Cell(nothing)
        return (
            Cell(str(cell)) if field in STRING_FIELDS else Cell(nothing, f"{field} is text, not {kind}{hint}")
        )
    if is_list and isinstance(cell, LIST_TYPES):
        found = sorted(cell, key=str) if isinstance(cell, set | frozenset) else cell
        names = [name for name in found if isinstance(name, str) or pd.isna(name) is not True]
        strange = [name for name in names if not isinstance(name, str)]
        if strange:
            return Cell((), f"a tag is {type(strange[0]).__name__}, not text")
        return Cell(tuple(dict.fromkeys(map(str, names))))
    if pd.isna(cell) is True:
        return Cell(nothing, is_null=True)
    is_number = isinstance(cell, numbers.Real | Decimal) and not isinstance(cell, bool | np.bool)
    if field in MAX_SCORES and is_number:
        return Cell(float(str(cell) if isinstance(cell, np.float32 | np.float16) else cell))
    return Cell(nothing, f"{field} is {type(cell).__name__}, not {kind}")


def normalize_field(field: str, value: Value) -> Cell:
    """Prepare a value for sending: strip blanks around tags; the cell has an error if services refuse the value.

    >>> normalize_field("tags", (" tea ", "tea")).value
    ('tea',)
    >>> normalize_field("confidence", 1.5).error
    'confidence is 1.5, outside 0 to 1'
    """
    if isinstance(value, tuple):
        value = tuple(dict.fromkeys(name.strip() for name in value))
    return Cell(value, _value_error(field, value))


def _value_error(field: str, value: Value) -> str | None:
    try:
        refuse_unsendable({field: value})
    except ConfigError as refused:
        return str(refused)
    if isinstance(value, float):
        top = MAX_SCORES[field]
        return None if 0 <= value <= top else f"{field} is {value:g}, outside 0 to {top:g}"
    names = value if isinstance(value, tuple) else ()
    if "\0" in (value if isinstance(value, str) else "".join(names)):
        return f"{field} contains the character NUL"
    if len(names) > MAX_TAGS:
        return f"it has {len(names):,} tags, of which a memory can have {MAX_TAGS}"
    if "" in names:
        return "a tag is blank"
    if any("," in name for name in names):
        return "the name of a tag contains a comma, which separates names"
    if any(len(name) > MAX_TAG_CHARS for name in names):
        return f"the name of a tag has more than {MAX_TAG_CHARS} characters"
    return None


# -- columns compared with the baseline


def differs_in(name: str, mine: pd.Series[Any], base: pd.Series[Any]) -> Mask:
    """Find the cells of an edited column that differ from the baseline, row by row.

    All spellings of a missing value are equal; a cell that the column cannot hold counts as different.

    >>> differs_in("tags", pd.Series([["a", "b"], None, "a"]), pd.Series([("b", "a"), (), ("a",)]))
    array([False, False,  True])
    """
    kind = MEMORY_KINDS[name]
    if kind is TIME:
        return _differ(column_times(mine), column_times(base))
    if kind is TEXT:
        with suppress(pa.ArrowException, TypeError, ValueError):  # a cell or a category is not text
            texts = pa.array(mine, type=pa.large_string(), from_pandas=True)
            base_texts = pa.array(base, type=pa.large_string(), from_pandas=True)
            both_missing = pc.and_(pc.is_null(texts), pc.is_null(base_texts))
            return ~np.asarray(pc.or_(pc.fill_null(pc.equal(texts, base_texts), False), both_missing))
    if kind is not NUMBER:
        return _cells_differ(name, mine, base)
    if not pd.api.types.is_numeric_dtype(mine.dtype) or pd.api.types.is_bool_dtype(mine.dtype):
        return _cells_differ(name, mine, base)
    scores, base_scores = mine.to_numpy(dtype="float64", na_value=np.nan), base.to_numpy(dtype="float64")
    if str(mine.dtype) in FEWER_BITS:  # compare with the precision of the column
        base_scores = base_scores.astype(str(mine.dtype)).astype("float64")
    return _differ(scores, base_scores) & ~np.asarray(is_rounded(scores, base_scores))


def column_times(column: pd.Series[Any]) -> NDArray[np.datetime64]:
    """Convert a column of times to UTC, ``NaT`` for what is none."""
    return parse_column_of_times(column, errors="coerce")


def parse_times(texts: Sequence[str | None] | pd.Series[Any]) -> NDArray[np.datetime64]:
    """Parse times as the service spells them, or as a frame holds them."""
    return column_times(texts if isinstance(texts, pd.Series) else TIME.join([TIME.chunk(texts)]))


def _differ(mine: NDArray[Any], base: NDArray[Any]) -> Mask:
    return np.asarray((mine != base) & ~(pd.isna(mine) & pd.isna(base)))


def is_rounded(mine: NDArray[Any] | float, held: NDArray[Any] | float) -> Mask | np.bool:
    """Find scores that differ from those held only by what pandas does to numbers in files.

    `DataFrame.to_json` cuts numbers to ten decimals, and `read_json` gets the last bits of some wrong.

    >>> is_rounded(np.array([0.3333333333, 0.333, 0.5]), np.array([1 / 3, 1 / 3, np.nan]))
    array([ True, False, False])
    >>> is_rounded(0.6000000000000001, 0.6), is_rounded(1e308, 0.5)
    (np.True_, np.False_)
    """
    apart = np.abs(np.subtract(mine, held))
    with np.errstate(over="ignore"):  # rounding multiplies first
        is_cut = np.round(mine, 10) == mine
    rounded: Mask | np.bool = ((apart < 1.01e-10) & is_cut) | (apart <= 5e-16 * np.abs(held))
    return rounded


def is_held(name: str, cell: Cell, held: Value) -> bool:
    """Return True if a cell equals the value that the service holds, but for decimals that a file has changed."""
    is_score = isinstance(cell.value, float) and isinstance(held, float | int)
    return same_value(name, cell.value, held) or (is_score and bool(is_rounded(cell.value, held)))  # type: ignore[arg-type]


_LISTS = {tuple, list, np.ndarray}


def _cells_differ(name: str, mine: pd.Series[Any], base: pd.Series[Any]) -> Mask:
    """Compare cell by cell; unedited lists are the same objects as in the baseline, or equal."""
    pairs = zip(cells_of(mine), cells_of(base), strict=True)
    differ = (
        not (cell is was or (type(cell) in _LISTS and (*cell,) == was) or _same_cell(name, cell, was))
        for cell, was in pairs
    )
    return np.fromiter(differ, dtype=bool, count=len(mine))


def _same_cell(name: str, cell: object, was: object) -> bool:
    read = read_cell(name, cell)
    return read.error is None and is_held(name, read, read_cell(name, was).value)


# -- clearing


class Null(str):
    """The type of `NULL`, its only value.

    It is text, so that a column of pandas' ``str`` accepts it. It contains the character NUL, which no memory can
    hold, so that it is still recognised after a column, a file or a process has turned it into plain text.
    """

    __slots__ = ()
    _only: Self

    def __new__(cls) -> Self:
        """Return the only instance."""
        if "_only" not in cls.__dict__:
            cls._only = super().__new__(cls, "\0memframe.NULL")
        return cls._only

    def __repr__(self) -> str:
        return "memframe.NULL"

    def __reduce_ex__(self, protocol: object) -> str:
        return "NULL"


NULL = Null()
"""Put into a cell, it clears that field of the memory.

>>> import pandas as pd
>>> titles = pd.Series(["Tea", "Boat"])
>>> titles[0] = NULL
>>> titles[0] == NULL
True
"""
