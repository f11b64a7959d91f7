"""CSV for spreadsheets, without live formulas.

A spreadsheet runs a cell that begins with ``=`` as a formula. Text that begins with ``= + - @``, their full-width
forms, a tab, a line end or NUL gets an apostrophe in front, and so does text that begins with an apostrophe, so that
loading removes exactly what was added. The same holds after a semicolon, a tab or a line end inside a text, as a
spreadsheet that splits at semicolons ignores quotes around cells that commas divide. Text is quoted, which keeps
empty text (``""``) apart from missing text. Lists are JSON.

Files of `DataFrame.to_csv` are read as well. They are recognized by an unnamed first column, the index, or by lists as
Python shows them: ``('a', 'b')``. Empty text is missing there, as pandas does not distinguish the two.
"""

from __future__ import annotations

import csv
import re
from ast import literal_eval
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from memframe.archive.table import ARCHIVE_SCHEMA, ArchiveFormat, wrong_column
from memframe.errors import FrameError
from memframe.frames import NAMES

_LIVE = r"^(['=+\-@\t\r\n\x00＝＋－＠])"  # noqa: RUF001 - spreadsheets obey the full-width ones too
_LIVE_INSIDE = r"([;\t\r\n])(['=+\-@＝＋－＠])"  # noqa: RUF001 - as above
_MARKED, _MARKED_INSIDE = _LIVE.replace("^", "^'", 1), _LIVE_INSIDE.replace(")(", ")'(", 1)

_WORD = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_PYTHON_LIST = re.compile(rf"[\[(]\s*(?:(?:{_WORD})\s*,?\s*)*[\])]", re.DOTALL)
"""A list or tuple of texts as Python shows it, or an array as NumPy does, which sets no commas."""

_OF_PYTHON = re.compile(r"""\(|\[\s*'""")
"""How lists begin that are no JSON."""

_SURE_ROWS = 1000
"""Rows to look for a list in that is not empty."""

_TEXT = pa.large_string()
_MIN_BLOCK_BYTES, _MAX_BLOCK_BYTES = 1 << 20, 1 << 30

_json = msgspec.json.Encoder()
_names_decoder = msgspec.json.Decoder(list[str] | None)


def _write(file: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:
    n_rows = 0
    with pa.csv.CSVWriter(file, _disarm(schema.empty_table()).schema) as writer:
        for table in tables:
            writer.write_table(_disarm(table))
            n_rows += len(table)
    return n_rows


def _disarm(table: pa.Table) -> pa.Table:
    names = [re.sub(_LIVE, r"'\1", re.sub(_LIVE_INSIDE, r"\1'\2", name)) for name in table.column_names]
    return pa.Table.from_arrays([_cells(column) for column in table.columns], names=names)


def _cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_primitive(kind):  # numbers, times, flags: written without quotes, and no text in them
        return column
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        cells = [None if cell is None else _json.encode(cell).decode() for cell in column.to_pylist()]
        column = pa.chunked_array([cells], type=_TEXT)
    inside = pc.replace_substring_regex(column.cast(_TEXT), _LIVE_INSIDE, r"\1'\2")
    return pc.replace_substring_regex(inside, _LIVE, r"'\1")


class _FirstRow(NamedTuple):
    """First row of a file, and the program that wrote it."""

    fields: list[str]
    """Names of all columns; those of an index that pandas wrote have no name of their own."""
    n_levels: int
    is_of_pandas: bool


def _header(path: Path) -> _FirstRow:
    limit = csv.field_size_limit()
    try:
        csv.field_size_limit(path.stat().st_size + 1)  # Python's reader takes 128 KiB a cell otherwise
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file)
            names = next(rows, [])
            found = re.search("[;\t|]", names[0]) if len(names) == 1 else None
            if found and ARCHIVE_SCHEMA.keys() & names[0].split(found[0]):
                raise FrameError(
                    f"The columns of {path} are separated by {found[0]!r}: write it with to_csv(path, sep=',')."
                )
            n_levels = 0  # an index is without a name, or with one that occurs again
            while n_levels < len(names) and (not names[n_levels] or names[n_levels] in names[n_levels + 1 :]):
                n_levels += 1
            is_of_pandas = n_levels > 0 or _has_lists_of_python(names, rows)
    except FrameError:  # a ValueError, too
        raise
    except (OSError, ValueError, csv.Error):
        raise FrameError(
            f"{path} cannot be read as CSV in UTF-8: it is damaged, or of another format."
        ) from None
    finally:
        csv.field_size_limit(limit)
    fields = [f"__index_level_{level}__" for level in range(n_levels)] + names[n_levels:]
    if not is_of_pandas:
        fields = [re.sub(_MARKED_INSIDE, r"\1\2", re.sub(_MARKED, r"\1", name)) for name in fields]
    return _FirstRow(fields, n_levels, is_of_pandas)


def _has_lists_of_python(names: Sequence[str], rows: Iterable[Sequence[str]]) -> bool:
    """Return True if lists are written as Python writes them, judged by the first list that is unambiguous."""
    places = [place for place, name in enumerate(names) if ARCHIVE_SCHEMA.get(name) == NAMES.arrow]
    some = islice(rows, _SURE_ROWS if places else 0)
    cells = (row[place].lstrip() for row in some for place in places if place < len(row))
    first = next((cell for cell in cells if len(cell) > 2 or cell == "()"), "")
    return _OF_PYTHON.match(first) is not None


def _names(path: Path) -> list[str]:
    header = _header(path)
    return header.fields[header.n_levels :]


def _read(path: Path, columns: list[str]) -> Iterator[pa.Table]:
    header = _header(path)
    twice = [name for name in columns if header.fields.count(name) > 1]
    if twice:
        raise FrameError(f"{path} has several columns named {twice[0]}: rename all but one of them.")
    text_columns = dict.fromkeys(header.fields[header.n_levels :], _TEXT)
    kinds = {name: kind for name, kind in ARCHIVE_SCHEMA.items() if kind != NAMES.arrow}
    try:
        table = pa.csv.read_csv(
            path,
            read_options=pa.csv.ReadOptions(
                # in one piece if possible, as no row may cross a block
                block_size=min(max(path.stat().st_size, _MIN_BLOCK_BYTES), _MAX_BLOCK_BYTES),
                column_names=header.fields,
                skip_rows_after_names=1,
            ),
            parse_options=pa.csv.ParseOptions(newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types=text_columns | kinds,
                include_columns=columns,
                null_values=[""],
                true_values=["true"],
                false_values=["false"],
                strings_can_be_null=True,
                quoted_strings_can_be_null=header.is_of_pandas,
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:  # its message quotes cells
        found = re.search(r"CSV column #(\d+)|Row #(\d+)", str(error))
        place = found[0] if found else "a row"
        raise FrameError(
            f"{path} is not as exported ({place}): another program changed or truncated it."
        ) from None
    yield pa.table({name: _restore(path, name, table[name], header.is_of_pandas) for name in columns})


def _restore(path: Path, name: str, column: pa.ChunkedArray, is_of_pandas: bool) -> pa.ChunkedArray:
    if column.type == _TEXT and not is_of_pandas:
        column = pc.replace_substring_regex(column, _MARKED, r"\1", max_replacements=1)
        column = pc.replace_substring_regex(column, _MARKED_INSIDE, r"\1\2")
    if ARCHIVE_SCHEMA.get(name) != NAMES.arrow:
        return column
    try:
        cells = [None if cell is None else _words_in(cell) for cell in column.to_pylist()]
    except msgspec.MsgspecError:  # its message may quote the cell
        raise wrong_column(
            path, name, 'text that is not a list, which is written ["tea", "home"] or as pandas does'
        ) from None
    return pa.chunked_array([cells], type=NAMES.arrow)


def _words_in(cell: str) -> list[str] | None:
    """Return the texts of a list; two literals without a comma are two, as NumPy writes them, not one.

    >>> _words_in('["tea"]'), _words_in("('tea',)"), _words_in("['a b' 'c']"), _words_in("()")
    (['tea'], ['tea'], ['a b', 'c'], [])
    """
    if _OF_PYTHON.match(cell.lstrip()) and _PYTHON_LIST.fullmatch(cell.strip()):
        return [literal_eval(word) for word in re.findall(_WORD, cell, re.DOTALL)]
    names: list[str] | None = _names_decoder.decode(cell)
    return names


def _labels(path: Path) -> list[str | range]:
    header = _header(path)
    return [*header.fields[: header.n_levels]]


CSV = ArchiveFormat(_names, _read, _write, labels=_labels)
