"""CSV: for spreadsheets, which take a cell that begins with ``=`` for a formula and run it.

No text is left to them as such: one that begins with ``= + - @``, their full-width forms, a tab, a line
end or NUL gets an apostrophe in front, and so does one that begins with an apostrophe, so that loading
takes away exactly what was added. The same goes for what follows a semicolon, a tab or a line end inside a
text: a spreadsheet that splits at semicolons heeds no quotes around cells that commas divide. Text stands in
quotes, which also keeps empty text (``""``) apart from a missing one. Lists are JSON.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from memframe.archive.table import ARCHIVE_SCHEMA, ArchiveFormat, wrong_column
from memframe.errors import FrameError
from memframe.frames import NAMES

_LIVE = r"^(['=+\-@\t\r\n\x00＝＋－＠])"  # noqa: RUF001 - spreadsheets obey the full-width ones too
_LIVE_INSIDE = r"([;\t\r\n])(['=+\-@＝＋－＠])"  # noqa: RUF001
_MARKED, _MARKED_INSIDE = "^'", r"([;\t\r\n])'"

_TEXT = pa.large_string()
_MIN_BLOCK_BYTES, _MAX_BLOCK_BYTES = 1 << 20, 1 << 30

_json = msgspec.json.Encoder()
_names_decoder = msgspec.json.Decoder(list[str] | None)


def _write(file: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:
    n_rows = 0
    with pa.csv.CSVWriter(file, _disarmed(schema.empty_table()).schema) as writer:
        for table in tables:
            writer.write_table(_disarmed(table))
            n_rows += len(table)
    return n_rows


def _disarmed(table: pa.Table) -> pa.Table:
    names = [_disarmed_name(name) for name in table.column_names]
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


def _disarmed_name(name: str) -> str:
    return re.sub(_LIVE, r"'\1", re.sub(_LIVE_INSIDE, r"\1'\2", name))


def _names(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = next(csv.reader(file), [])
    except (OSError, ValueError, csv.Error):
        raise FrameError(
            f"{path} cannot be read as CSV in UTF-8: it is damaged, or something else."
        ) from None
    return [re.sub(_MARKED_INSIDE, r"\1", re.sub(_MARKED, "", name)) for name in header]


def _read(path: Path, columns: list[str]) -> Iterator[pa.Table]:
    written = {name: _disarmed_name(name) for name in columns}
    try:
        table = pa.csv.read_csv(
            path,
            read_options=pa.csv.ReadOptions(block_size=_block_bytes(path)),
            parse_options=pa.csv.ParseOptions(newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types={written[name]: _type_in_file(name) for name in columns},
                include_columns=list(written.values()),
                null_values=[""],
                true_values=["true"],
                false_values=["false"],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:  # its message quotes cells
        raise _damaged(path, str(error)) from None
    yield pa.table({name: _restored(path, name, table[written[name]]) for name in columns})


def _block_bytes(path: Path) -> int:
    """The file in one piece if that can be, as no row may reach over the edge of a block."""
    return min(max(path.stat().st_size, _MIN_BLOCK_BYTES), _MAX_BLOCK_BYTES)


def _type_in_file(name: str) -> pa.DataType:
    kind = ARCHIVE_SCHEMA.get(name, _TEXT)
    return _TEXT if kind == NAMES.arrow else kind


def _restored(path: Path, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.type != _TEXT:
        return column
    text = pc.replace_substring_regex(column, _MARKED, "", max_replacements=1)
    text = pc.replace_substring_regex(text, _MARKED_INSIDE, r"\1")
    if ARCHIVE_SCHEMA.get(name) != NAMES.arrow:
        return text
    try:
        cells = [None if cell is None else _names_decoder.decode(cell) for cell in text.to_pylist()]
    except msgspec.MsgspecError:  # its message may quote the cell
        raise wrong_column(path, name, "text that is no JSON list") from None
    return pa.chunked_array([cells], type=NAMES.arrow)


def _damaged(path: Path, message: str) -> FrameError:
    found = re.search(r"CSV column #(\d+)|Row #(\d+)", message)
    place = found[0] if found else "a row"
    return FrameError(f"{path} is not as it was exported ({place}): another program changed or cut it.")


CSV = ArchiveFormat(_names, _read, _write)
