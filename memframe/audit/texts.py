"""The texts of memories, and those among them that are worth a closer look.

A closer look costs tens of microseconds a text; most memories deserve none. Whether they do is asked of
Arrow, whose regular expressions (RE2) run over a whole column in linear time, whatever is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memframe.errors import FrameError
from memframe.frames import replace_surrogates

TEXT_FIELDS = ("title", "summary", "content")
"""Columns of a frame of memories in which people write; a frame may have fewer of them."""

FEW = 1_000
"""Memories whose texts are searched all at once."""

MAX_CHARACTERS = 100_000
"""Characters of a field that a check reads; whoever writes a memory does not decide how long an audit takes."""

MANY = 100
"""Texts that are worth a sieve: making one ready takes as long as looking at some dozens."""


class Text(NamedTuple):
    """One text of a frame, and where it stands."""

    row: int
    """Position in the frame."""
    field: str
    text: str


def text_column(memories: pd.DataFrame, name: str) -> pa.Array:
    """A column as Arrow text, null where there is none; lone surrogates become U+FFFD, which keeps offsets."""
    if name not in memories.columns:
        raise FrameError(
            f"the frame has no column {name!r}, which is needed here; "
            "pass memories as load_memories returns them, with that column kept"
        )
    column = memories[name]
    try:
        return _arrow(column)
    except UnicodeEncodeError:
        return _arrow(pd.Series(replace_surrogates({name: column.tolist()})[name], dtype=object))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise FrameError(
            f"column {name!r} does not hold text; pass memories as load_memories or load_archive returns them"
        ) from error


def first_characters(texts: pa.Array) -> pa.Array:
    """Cut texts of a column off behind the characters that a check reads; offsets stay what they are.

    >>> len(first_characters(pa.array(["a" * 300_000]))[0].as_py())
    100000
    """
    if not (pc.max(pc.binary_length(texts)).as_py() or 0) > MAX_CHARACTERS:  # bytes are at least as many
        return texts
    return pc.utf8_slice_codeunits(texts, 0, MAX_CHARACTERS)


def are_too_long(memories: pd.DataFrame, name: str = "content") -> NDArray[np.bool_]:
    """Return by row whether a field is longer than what a check reads."""
    lengths = pc.fill_null(pc.utf8_length(text_column(memories, name)), 0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False) > MAX_CHARACTERS, bool)


def without_long_contents(memories: pd.DataFrame) -> pd.DataFrame:
    """Return the memories with contents emptied that are too long for a verdict about the whole text.

    What is said of a memory by its beginning alone could cost the rest: a long content is neither a copy nor junk.
    """
    too_long = are_too_long(memories)
    return memories.assign(content=memories["content"].mask(too_long)) if too_long.any() else memories


def texts_with(
    memories: pd.DataFrame, pattern: str, *sieves: str, fields: Iterable[str] = TEXT_FIELDS
) -> Iterator[Text]:
    """Texts of the frame in which a pattern of RE2 occurs; where they are many, those that pass some sieves as well.

    Of a long text only the beginning is searched and returned (`MAX_CHARACTERS`).

    >>> frame = pd.DataFrame({"title": ["Tea", None], "content": ["likes it green", "the PIN is 4711"]})
    >>> list(texts_with(frame, r"[0-9]{4}"))
    [Text(row=1, field='content', text='the PIN is 4711')]
    """
    columns = {
        name: first_characters(text_column(memories, name)) for name in fields if name in memories.columns
    }
    for names, texts in _together(columns, len(memories)):
        places = pc.indices_nonzero(pc.match_substring_regex(texts, pattern))
        found = texts.take(places)
        for sieve in sieves:
            if len(found) > MANY:
                passed = pc.match_substring_regex(found, sieve)
                places, found = places.filter(passed), found.filter(passed)
        for place, text in zip(places.to_pylist(), found.to_pylist(), strict=True):
            which, row = divmod(place, len(memories))
            yield Text(row, names[which], text)


def _together(columns: Mapping[str, pa.Array], n_rows: int) -> list[tuple[list[str], pa.Array]]:
    """Columns to search, with their names; few texts one after the other, as making a pattern ready costs more."""
    if columns and n_rows <= FEW:
        return [([*columns], pa.concat_arrays(columns.values()))]
    return [([name], texts) for name, texts in columns.items()]


def _arrow(column: pd.Series[Any]) -> pa.Array:
    if not column.notna().any():
        return pa.nulls(len(column), pa.large_string())  # whatever the dtype of nothing is
    array = pa.array(column, type=pa.large_string(), from_pandas=True)
    if isinstance(array, pa.ChunkedArray):
        return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    return array
