"""Frames to Parquet, JSON Lines and CSV, and back without a change.

The extension decides: ``.parquet``, ``.jsonl``, ``.csv``; a folder holds a Parquet dataset. What was
exported loads as the same frame with a fresh index: nulls, empty text and words such as "NA" stay apart,
tags are tuples, times are UTC to the microsecond, an empty frame keeps its dtypes.

Columns beside those of a memory are kept as well: in Parquet as they are, in JSON Lines as far as JSON
goes (times come back as text), in CSV as text. Indexes and ``attrs`` are not kept; a missing list of
tags becomes the empty tuple, as in every frame.

An archive is the plaintext of people's memories in the open. It is readable by its owner alone (mode
0600), written beside its place and moved there when it is whole. It replaces another archive, and
nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import NoReturn

import pandas as pd
import pyarrow as pa

from memframe.access import Access
from memframe.archive import csv, jsonl, parquet
from memframe.archive.table import ARCHIVE_SCHEMA, ArchiveFormat, frame_of, table_of
from memframe.errors import FrameError, MemframeError
from memframe.load import iter_memories
from memframe.private_file import filling_privately, writing_privately
from memframe.progress import ProgressOption

CHUNK_ROWS = 10_000
"""Rows in memory at a time while an `Access` is exported."""

PART_ROWS = 100_000
"""Rows in one file of a Parquet dataset."""

_FORMATS: dict[str, ArchiveFormat] = {
    ".parquet": parquet.PARQUET,
    ".jsonl": jsonl.JSONL,
    ".csv": csv.CSV,
}


def export_memories(
    access_or_frame: Access | pd.DataFrame,
    path: str | PathLike[str],
    *,
    progress: ProgressOption = "auto",
) -> int:
    """Write memories to a file or folder, decrypted: whoever can read it can read them.

    Parameters
    ----------
    access_or_frame : Access or DataFrame
        An access has all its memories loaded and written in chunks, in bounded memory. A frame needs the
        columns of `load_memories` and may have more.
    path : str or path
        By extension ``.parquet``, ``.jsonl`` or ``.csv``; without one, a folder for a Parquet dataset.
        An archive that stands there is replaced, another file is not.
    progress : {"auto", True, False} or callable
        Shown while an access is loaded.

    Returns
    -------
    int
        Memories that were written.

    Raises
    ------
    FrameError
        The path does not fit or cannot be written, or the frame has not the columns of memories.

    Examples
    --------
    >>> import tempfile
    >>> from memframe.frames import MEMORY_KINDS, FrameBuilder
    >>> memories = FrameBuilder(MEMORY_KINDS).frame()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_memories(memories, f"{folder}/mine.parquet")
    ...     load_archive(f"{folder}/mine.parquet").equals(memories)
    0
    True
    """
    target = Path(path).expanduser()
    with _naming(target):
        _check_target(target)
        schema, tables = _tables_of(access_or_frame, progress)
        if _is_folder(target):
            return _write_dataset(target, schema, tables)
        with writing_privately(target) as file:
            return _FORMATS[target.suffix.lower()].write(file, schema, tables)


def load_archive(path: str | PathLike[str], *, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read back what `export_memories` wrote.

    Parameters
    ----------
    path : str or path
        A file, or the folder of a Parquet dataset.
    columns : sequence of str, optional
        Only these, in this order; by default all.

    Returns
    -------
    DataFrame
        With the columns and dtypes of `load_memories`, then any others of the archive.

    Raises
    ------
    FrameError
        There is no archive of memories at `path`, or it has not these columns.
    """
    _check_names(columns)
    source = Path(path).expanduser()
    if not source.exists():
        raise FrameError(f"There is no archive at {source}: check the path.")
    if _is_folder(source):
        return frame_of(pa.concat_tables([_read(part, columns) for part in _parts_of(source)]))
    return frame_of(_read(source, columns))


@contextmanager
def _naming(target: Path) -> Iterator[None]:
    """The system's errors in words that name the path of the caller, not of a temporary file beside it."""
    try:
        yield
    except MemframeError:  # some of them are the system's too, and say what they have to say
        raise
    except OSError as error:
        raise FrameError(
            f"{target} cannot be written ({error.strerror or error}): choose another path, or mend this one. "
            "What stood there is as it was."
        ) from error


def _check_names(columns: object) -> None:
    if isinstance(columns, str):
        raise FrameError(f"columns={columns!r} is one text: pass a list of names, [{columns!r}].")
    if columns is not None and not (
        isinstance(columns, Collection) and all(isinstance(name, str) for name in columns)
    ):
        raise FrameError(
            f"columns is {type(columns).__name__}, not a list of names: pass one, or leave it out."
        )


def _is_folder(path: Path) -> bool:
    return path.is_dir() or not path.suffix


def _format_of(path: Path) -> ArchiveFormat:
    found = _FORMATS.get(path.suffix.lower())
    if found is None:
        raise FrameError(
            f"{path} does not say by its extension what it is: use {', '.join(_FORMATS)}, or a folder."
        )
    return found


def _check_target(path: Path) -> None:
    if not _is_folder(path):
        _format_of(path)
    if not path.parent.is_dir():
        raise FrameError(f"The folder {path.parent} does not exist: create it, or choose another.")
    if path.is_dir():
        strangers = [
            entry for entry in path.iterdir() if entry.suffix != ".parquet" or not _is_archive(entry)
        ]
        if strangers:
            _refuse_to_replace(path, f"it holds {strangers[0].name}")
    elif path.exists() and not _is_archive(path):
        _refuse_to_replace(path, "it is no archive of memories")


def _refuse_to_replace(path: Path, cause: str) -> NoReturn:
    raise FrameError(f"{path} is not replaced, as {cause}: choose another path, or remove it yourself.")


def _is_archive(path: Path) -> bool:
    try:
        names = _format_of(path).names(path)
    except FrameError:
        return False
    return ARCHIVE_SCHEMA.keys() <= set(names)


def _parts_of(folder: Path) -> list[Path]:
    parts = sorted(folder.glob("*.parquet"))
    if not parts:
        raise FrameError(f"The folder {folder} holds no .parquet file: give the folder that was exported to.")
    return parts


def _read(path: Path, columns: Sequence[str] | None) -> pa.Table:
    found = _format_of(path)
    names = found.names(path)
    wanted = [*ARCHIVE_SCHEMA] if columns is None else list(columns)
    missing = [name for name in wanted if name not in names]
    if missing:
        raise FrameError(
            f"{path} has no column {', '.join(missing)}: "
            + (
                "it is no archive of memories; read it with pandas."
                if columns is None
                else f"it has {', '.join(names)}."
            )
        )
    others = [name for name in names if name not in ARCHIVE_SCHEMA] if columns is None else []
    return found.read(path, wanted + others)


def _tables_of(
    source: Access | pd.DataFrame, progress: ProgressOption
) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """The schema, and the rows in tables of it, of which there may be none."""
    if isinstance(source, pd.DataFrame):
        table = table_of(source)
        starts = range(0, len(table), CHUNK_ROWS)
        return table.schema, (table.slice(start, CHUNK_ROWS) for start in starts)
    if not isinstance(source, Access):
        raise FrameError(
            f"export_memories() was given {type(source).__name__}, not memories: pass an Access, or a frame of "
            "load_memories()."
        )
    chunks = iter_memories(source, chunk_rows=CHUNK_ROWS, progress=progress)
    return pa.schema(ARCHIVE_SCHEMA), (table_of(chunk).replace_schema_metadata() for chunk in chunks)


def _write_dataset(folder: Path, schema: pa.Schema, tables: Iterator[pa.Table]) -> int:
    n_rows = 0
    with filling_privately(folder) as fresh:
        for number, part in enumerate(_in_parts(schema, tables)):
            with writing_privately(fresh / f"part-{number:05}.parquet") as file:
                n_rows += parquet.PARQUET.write(file, schema, part)
    return n_rows


def _in_parts(schema: pa.Schema, tables: Iterator[pa.Table]) -> Iterator[list[pa.Table]]:
    """Tables gathered into parts; at least one part, so that an empty dataset has its columns."""
    part: list[pa.Table] = []
    n_parts = 0
    for table in tables:
        part.append(table)
        if sum(map(len, part)) >= PART_ROWS:
            yield part
            part, n_parts = [], n_parts + 1
    if part or not n_parts:
        yield part or [schema.empty_table()]
