"""Export memories to Parquet, JSON, CSV and Markdown, and load them without a change.

The extension decides: ``.parquet``, ``.jsonl``, ``.json`` (an array), ``.csv``, and ``.md`` for a folder of notes
(`memframe.archive.notes`); any other folder holds a Parquet dataset, which DuckDB, Polars and every other reader of
Parquet can read. An export loads as the same frame with a fresh index: nulls, empty text and words such as "NA" stay
apart, tags are tuples, times are UTC to the microsecond, an empty frame keeps its dtypes.

Columns other than those of a memory are kept as well: unchanged in Parquet, as far as JSON can hold them in JSON Lines
(times come back as text), as text in CSV and Markdown. ``format="pam"`` writes Portable AI Memory, which
`memframe.read_memories` reads. Indexes and ``attrs`` are not kept; a missing list of tags becomes the empty tuple, as
in every frame.

Files that pandas itself wrote from such a frame, by ``to_parquet``, ``to_csv`` or ``to_json(orient="records",
lines=True)``, load too. If such a file has an index, it is restored, because plans name rows by it. Index levels that
are columns of memories, such as ``id``, become columns.

An archive holds memories as plain text, unless it is sealed: then what people wrote opens only with the user's key
(`memframe.archive.sealing` says which columns that is). Either kind is readable by its owner alone (mode 0600), written
next to its path and moved there when it is complete. It replaces another archive, and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Literal

import pandas as pd
import pyarrow as pa

from memframe.access import Access
from memframe.archive import formats
from memframe.archive.formats import check_target, is_folder, raise_write_errors
from memframe.archive.history import Changes, forget_memories, read_as_of
from memframe.archive.notes import write_notes, write_pam
from memframe.archive.refresh import refresh_archive
from memframe.archive.sealing import Key, Plain, Reader, Sealed, tables_of_access
from memframe.archive.table import frame_of, table_of
from memframe.errors import ConfigError, FrameError, check_kind
from memframe.files import atomic_file, atomic_folder, expand_path
from memframe.progress import ProgressOption
from memframe.secret import as_secret_if_text

__all__ = ["Changes", "export_memories", "forget_memories", "load_archive", "refresh_archive"]


def export_memories(
    access_or_frame: Access | pd.DataFrame,
    path: str | PathLike[str],
    *,
    sealed: bool = False,
    format: Literal["markdown", "pam"] | None = None,  # noqa: A002 - the word of pandas
    progress: ProgressOption = "auto",
) -> int:
    """Write memories to a file or folder, decrypted or sealed.

    Parameters
    ----------
    access_or_frame : Access or DataFrame
        For an access, all memories are loaded and written page by page, in bounded memory. A frame needs the
        columns of `load_memories` and may have more.
    path : str or Path
        The extension selects the format: ``.parquet``, ``.jsonl``, ``.json``, ``.csv``, or ``.md`` for a folder
        of notes; without one, a folder with a Parquet dataset. An existing archive is replaced, any other file
        is not.
    sealed : bool
        Encrypt title, summary, content and tags with the user's key; ids, times, scores and source are not
        encrypted. The header and all rows are authenticated with that key. Requires an access and Parquet.
    format : {"markdown", "pam"}, optional
        For a folder of notes with any name, or for a ``.json`` file: Portable AI Memory 1.0, which is never
        replaced and cannot hold memories without content.
    progress : {"auto", True, False} or callable
        Shown while an access is loaded.

    Returns
    -------
    int
        The number of memories written.

    Raises
    ------
    FrameError
        The path is unsuitable or cannot be written, or the frame lacks the columns of memories.

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
    target = expand_path(path)
    notes = format == "markdown" or (format is None and target.suffix == ".md")
    n_rows = 0

    def prepare(table: pa.Table) -> pa.Table:
        nonlocal n_rows
        n_rows += len(table)
        return form.prepare(table)

    with raise_write_errors(target):
        check_target(target)
        _check_options(access_or_frame, target, sealed, format, notes=notes)
        form, source = _form_and_tables(access_or_frame, target, sealed, progress)
        tables = map(prepare, source)
        if not is_folder(target):
            with atomic_file(target, may_replace=format != "pam") as file:
                if format == "pam":
                    return write_pam(file, tables)
                form.write(file, tables)
            return n_rows
        with atomic_folder(target) as fresh:
            if notes:
                write_notes(fresh, tables)
                return n_rows
            for name, part in formats.in_parts(form.schema, tables):
                with atomic_file(fresh / name) as file:
                    form.write(file, part)
            form.seal_folder(fresh)
        return n_rows


def load_archive(
    path: str | PathLike[str],
    *,
    key: Key | None = None,
    columns: Sequence[str] | None = None,
    as_of: str | date | None = None,
) -> pd.DataFrame:
    """Load an archive from `export_memories`, or a frame of memories that pandas wrote with all columns.

    Parameters
    ----------
    path : str or Path
        A file, or the folder of a Parquet dataset.
    key : str, Secret, Credentials, Access, or dict of int to key, optional
        The key to a sealed archive: the user's ``encryption_key``, an object that holds it, or several keys by
        ``key_version`` if some content is sealed with older ones. With a key, an archive is refused if it is
        not sealed, or if a cell, row or file was altered, moved, added or removed. Without a key, columns that
        are not sealed can be read but are not verified.
    columns : sequence of str, optional
        Only these, in this order; by default all.
    as_of : str, datetime or date, optional
        The state at that moment, of an archive that keeps its states (`refresh_archive`): the last snapshot that was
        taken at or before it. A text or date stands for the end of what it names: "2026-11-24" is that day's last
        state. Times are in UTC unless they name a zone.

    Returns
    -------
    DataFrame
        With the columns and dtypes of `load_memories`, then any others of the archive.

    Raises
    ------
    FrameError
        There is no archive of memories at `path`, it is damaged, or it lacks the columns.
    SealError
        The key is missing or wrong (the message says which one is needed); the archive was changed after
        sealing; or a key was given for an archive that is not sealed.

    Examples
    --------
    >>> export_memories(access, folder / "memories", sealed=True)
    389
    >>> load_archive(folder / "memories", key=access, columns=["title", "source"]).head(2)
             title source
    0  Who Ilka is   chat
    1    Home city   chat
    """
    key = as_secret_if_text(key)
    if isinstance(columns, str):
        raise FrameError(f"columns={columns!r} is a single text: pass a list of names, [{columns!r}].")
    given: object = columns
    if not (
        given is None or (isinstance(given, Collection) and all(isinstance(name, str) for name in given))
    ):
        raise FrameError(
            f"columns is {type(given).__name__}, not a list of names: pass one, or leave it out."
        )
    if as_of is not None:
        return frame_of(read_as_of(expand_path(path), key, columns, as_of))
    reader = Reader(expand_path(path), key)
    has_index = len(reader.parts) == 1  # the files of a dataset have no common index
    table = pa.concat_tables(reader.tables(columns, with_index=has_index), promote_options="permissive")
    if not has_index:
        return frame_of(table, table.column_names)
    return frame_of(table, [] if columns is None else columns)


def is_sealed(path: str | PathLike[str]) -> bool:
    """Return True if the header of an archive says that it is sealed, so that reading all of it needs a key."""
    return Reader(expand_path(path)).is_sealed


def missing_columns(path: str | PathLike[str]) -> set[str]:
    """Return the columns that an archive lacks because they were introduced later; they load as null."""
    return Reader(expand_path(path)).missing_columns


def _check_options(source: object, target: Path, sealed: bool, name: object, *, notes: bool) -> None:
    """Refuse a format that does not fit the path, and what cannot be sealed."""
    is_parquet = is_folder(target) or target.suffix.lower() == ".parquet"
    if name not in (None, "markdown", "pam"):
        raise ConfigError(f"format={name!r:.60}: give 'markdown', 'pam', or a path whose suffix says it")
    if name == "pam" and (is_folder(target) or target.suffix != ".json"):
        raise FrameError(
            f"Portable AI Memory is a .json file, and {target} does not have this suffix: add it."
        )
    if notes and not is_folder(target):
        raise FrameError(
            f"Notes are files of a folder, and {target} is a file: give a path without a suffix, or .md."
        )
    if sealed and (notes or name or not is_parquet):
        raise FrameError(
            f"A sealed archive is Parquet, and {target} is not: use .parquet, or a folder, and leave out format=."
        )
    if sealed and not isinstance(source, Access):
        raise FrameError(
            f"sealed=True needs the user's key, which {type(source).__name__} does not hold: pass the Access, or "
            "export without sealing."
        )


def _form_and_tables(
    source: Access | pd.DataFrame, target: Path, sealed: bool, progress: ProgressOption
) -> tuple[Plain, Iterator[pa.Table]]:
    write = formats.writer_for(target)
    if isinstance(source, pd.DataFrame):
        table = table_of(source)
        starts = range(0, len(table), formats.GROUP_ROWS)
        return Plain(table.schema, write), (table.slice(start, formats.GROUP_ROWS) for start in starts)
    check_kind("access_or_frame, if no Access,", source, pd.DataFrame, Access, error=FrameError)
    form = Sealed(source) if sealed else Plain.of(source, write)
    return form, tables_of_access(source, progress=progress)
