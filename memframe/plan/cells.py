"""Cells of an edited frame: what they say, and whether the service would take it."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from memframe.change import Value
from memframe.client.validation import refuse_unsendable
from memframe.errors import ConfigError
from memframe.frames import MEMORY_KINDS, NAMES, TEXT
from memframe.plan.null import NULL

TEXTS = frozenset(name for name, kind in MEMORY_KINDS.items() if kind is TEXT)
LISTS = frozenset(name for name, kind in MEMORY_KINDS.items() if kind is NAMES)
TOP_OF_SCORE = {"importance": 5.0, "confidence": 1.0}
MAX_TAGS = 100
MAX_TAG_CHARS = 200

LIST_TYPES = (tuple, list, np.ndarray, set, frozenset)


FEWER_BITS = frozenset({"float32", "float16"})
"""Dtypes whose numbers are not to be widened: 0.3 would become 0.30000001192092896."""


def cells_of(column: pd.Series[Any]) -> list[Any]:
    """The cells of a column as Python's objects."""
    if str(column.dtype) in FEWER_BITS:
        return list(column.to_numpy())
    return column.astype(object).to_numpy().tolist()


class Cell(NamedTuple):
    """What a cell says."""

    value: Value
    fault: str | None = None
    """Why it says nothing that the field can mean."""
    is_null: bool = False
    """Whether it is missing, and not cleared on purpose by `NULL`, nor an empty list."""


def read_cell(field: str, cell: Any) -> Cell:
    """A cell as a value; None, NaN, NA and NaT are None, tags each once, in their order.

    >>> read_cell("importance", np.int64(3)).value, read_cell("tags", ["a", "a", None]).value
    (3.0, ('a',))
    >>> read_cell("importance", "high").fault
    'importance is text, not a number'
    """
    if isinstance(cell, str):
        return _read_text(field, cell)
    if field in LISTS:
        return _read_names(field, cell)
    if pd.isna(cell) is True:
        return Cell(None, is_null=True)
    if field in TOP_OF_SCORE and _is_number(cell):
        return Cell(_as_float(cell))
    return Cell(None, f"{field} is {_kind(cell)}, not {'text' if field in TEXTS else 'a number'}")


def _read_text(field: str, cell: str) -> Cell:
    if cell == NULL:
        return Cell(() if field in LISTS else None)
    if field in TEXTS:
        return Cell(str(cell))
    return Cell(None, f"{field} is text, not {'a list of names' if field in LISTS else 'a number'}")


def _read_names(field: str, cell: Any) -> Cell:
    if not isinstance(cell, LIST_TYPES):
        if pd.isna(cell) is True:
            return Cell((), is_null=True)
        return Cell((), f"{field} is {_kind(cell)}, not a list of names")
    found = sorted(cell, key=str) if isinstance(cell, set | frozenset) else cell
    names = [name for name in found if isinstance(name, str) or pd.isna(name) is not True]
    strange = [name for name in names if not isinstance(name, str)]
    if strange:
        return Cell((), f"a tag is {_kind(strange[0])}, not text")
    return Cell(tuple(dict.fromkeys(map(str, names))))


def _is_number(cell: Any) -> bool:
    return isinstance(cell, numbers.Real | Decimal) and not isinstance(cell, bool | np.bool)


def _as_float(cell: Any) -> float:
    return float(str(cell) if isinstance(cell, np.float32 | np.float16) else cell)


def _kind(cell: object) -> str:
    return type(cell).__name__


def sendable(field: str, value: Value) -> Cell:
    """A value as it is sent: tags without the blanks around them; with a fault where a service refuses it.

    >>> sendable("tags", (" tea ", "tea")).value
    ('tea',)
    >>> sendable("confidence", 1.5).fault
    'confidence is 1.5, outside 0 to 1'
    """
    if isinstance(value, tuple):
        value = tuple(dict.fromkeys(name.strip() for name in value))
    return Cell(value, _fault_of(field, value))


def _fault_of(field: str, value: Value) -> str | None:
    try:
        refuse_unsendable({field: value})
    except ConfigError as refused:
        return str(refused)
    if isinstance(value, float):
        top = TOP_OF_SCORE[field]
        return None if 0 <= value <= top else f"{field} is {value:g}, outside 0 to {top:g}"
    if any("\0" in text for text in _texts_of(value)):
        return f"{field} holds the character NUL"
    return _fault_of_tags(value) if isinstance(value, tuple) else None


def _texts_of(value: Value) -> Iterable[str]:
    return (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ()


def _fault_of_tags(names: tuple[str, ...]) -> str | None:
    if len(names) > MAX_TAGS:
        return f"it has {len(names):,} tags, of which a memory can have {MAX_TAGS}"
    if "" in names:
        return "a tag is blank"
    if any("," in name for name in names):
        return "the name of a tag holds a comma, by which names are separated"
    if any(len(name) > MAX_TAG_CHARS for name in names):
        return f"the name of a tag has more than {MAX_TAG_CHARS} characters"
    return None
