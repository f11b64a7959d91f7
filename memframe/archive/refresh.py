"""Refresh of an archive: write only the files in which a memory changed, and say what changed.

The service cannot tell what changed, so all memories are listed; only the writing of unchanged files is avoided. Rows
stay in their file, and a new row goes into the file of the row that is listed before it, up to `PART_ROWS`, so that a
refreshed archive keeps the order of the service. Unchanged files are linked into a folder beside the archive, which
replaces it when it is complete; a crash before leaves the old archive.

Rows are compared by hashes of their id and all cells (`_ListedChanges`), and then divided into files (`_divide`). Both
go page by page, and the rows of one file are held at a time. Python chooses the key of its hashes anew for each
process, so nobody can prepare two texts with the same hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import inf
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from memframe.access import Access
from memframe.archive import formats
from memframe.archive.formats import (
    check_not_newer,
    check_target,
    is_folder,
    open_archive_file,
    part_name,
    parts_of,
    raise_write_errors,
)
from memframe.archive.history import Changes, carry_snapshots, remove_leftovers
from memframe.archive.sealing import IN_THE_OPEN, Plain, Reader, Sealed, tables_of_access
from memframe.archive.table import ARCHIVE_SCHEMA, tuples_of
from memframe.client.responses import same_id
from memframe.errors import FrameError, check_kind
from memframe.files import atomic_file, atomic_folder, expand_path, link_or_copy
from memframe.progress import ProgressOption
from memframe.snapshots import SNAPSHOTS, Keep, check_keep

RowHashes = NDArray[np.int64]

_NO_HASHES: RowHashes = np.empty(0, np.int64)


def _hash_rows(table: pa.Table) -> RowHashes:
    """Hash each row over all its cells."""
    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            # as numbers, because a Python object for each time would take longer to make and to hash
            column = column.cast(pa.int64())  # noqa: PLW2901 - the same column
        columns.append(tuples_of(column) if pa.types.is_list(column.type) else column.to_pylist())
    return np.fromiter(map(hash, zip(*columns, strict=True)), np.int64, len(table))


class _Archived(NamedTuple):
    """The rows of an archive, file after file, as hashes."""

    row_of: pd.Series[int]
    """Number of a row by the hash of its id; of the first row if an id is repeated."""
    hashes: RowHashes
    file_of: NDArray[np.int64]
    """Number of the file of each row."""

    @classmethod
    def read(cls, reader: Reader, columns: list[str]) -> _Archived:
        """Read the rows of an archive, to compare them in some columns."""
        ids, hashes, n_rows = [_NO_HASHES], [_NO_HASHES], []
        for part in reader.parts:
            tables = list(reader.tables(columns, parts=[part]))
            ids += [_hash_rows(table.select(["id"])) for table in tables]
            hashes += map(_hash_rows, tables)
            n_rows.append(sum(map(len, tables)))
        row_of = pd.Series(np.arange(sum(n_rows)), index=np.concatenate(ids))
        file_of = np.repeat(np.arange(len(n_rows)), n_rows)
        return cls(row_of[~row_of.index.duplicated()], np.concatenate(hashes), file_of)

    def find(self, ids: pa.Table) -> NDArray[np.int64]:
        """Return the number of the row with each id, -1 if there is none."""
        found = self.row_of.index.get_indexer(pd.Index(_hash_rows(ids)))
        return _take_or(-1, self.row_of.to_numpy(), found)

    def hashes_of(self, file: int) -> RowHashes:
        """Return the hashes of the rows of a file."""
        begin, end = np.searchsorted(self.file_of, [file, file + 1])
        return self.hashes[begin:end]


def _take_or(default: int, values: NDArray[Any], positions: NDArray[Any]) -> NDArray[np.int64]:
    """Take the values at some positions, and the default where a position is -1."""
    taken: NDArray[np.int64] = np.append(values, default)[positions]
    return taken


class _Segment(NamedTuple):
    """Memories that are listed one after the other, and stay in the same file, or in none."""

    table: pa.Table
    hashes: RowHashes
    old_file: int
    """Number of the archive's file in which they stay; -1 if they are new, or changed and moved."""


class _ListedChanges:
    """Changes that a listing shows in the rows of an archive; complete once all `segments` were taken."""

    def __init__(self, archived: _Archived) -> None:
        self._archived = archived
        self.added: list[str] = []
        self.changed: list[str] = []
        self.is_gone = np.ones(len(archived.hashes), dtype=bool)
        """True for each archived row whose memory was not listed."""

    def segments(self, listed: Iterable[pa.Table], columns: list[str]) -> Iterator[_Segment]:
        """Yield the listed memories, page after page, divided by the files of the archive. No page may be empty."""
        last_row = -1
        for table in listed:
            rows = self._archived.find(table.select(["id"]))
            hashes = _hash_rows(table.select(columns))
            is_old = rows >= 0
            is_same = is_old & (hashes == _take_or(0, self._archived.hashes, rows))
            self.added += table["id"].filter(pa.array(~is_old)).to_pylist()
            self.changed += table["id"].filter(pa.array(is_old & ~is_same)).to_pylist()
            self.is_gone[rows[is_old]] = False
            # an unchanged row stays in its file wherever it is listed, so that the file can be copied; a changed row
            # stays only if it is still listed right after the same row
            listed_before = np.concatenate([[last_row], rows[:-1]])
            stays_in_file = is_same | (is_old & (rows == listed_before + 1))
            old_files = np.where(stays_in_file, _take_or(-1, self._archived.file_of, rows), -1)
            edges = [0, *(np.flatnonzero(np.diff(old_files)) + 1).tolist(), len(table)]
            for begin, end in pairwise(edges):
                yield _Segment(table.slice(begin, end - begin), hashes[begin:end], int(old_files[begin]))
            last_row = rows[-1]


class _File(NamedTuple):
    """A file of the refreshed archive."""

    copy_of: int
    """Number of the file of the old archive to copy; -1 if the file has to be written."""
    tables: list[pa.Table]


def _divide(
    segments: Iterable[_Segment], archived: _Archived, *, part_rows: float, can_copy: bool
) -> Iterator[_File]:
    """Divide the listed memories into files, at least one, so that an archive without memories keeps its columns.

    A segment begins a new file in two cases:

    1. It begins the next file of the old archive, which stays a file, so that it need not be written if it is the same.
       But it joins a current file that has only new memories, if both fit together.
    2. The current file has ``part_rows`` rows. Only memories from the same file of the old archive still join it.

    Without ``can_copy`` no file of the old archive can be used again, so all files are written.
    """
    current: list[_Segment] = []
    n_rows = 0
    current_old_file = -1  # the old file with which the current one began
    last_old_file = -1  # the last old file that was reached

    def finish() -> _File:
        hashes = np.concatenate([_NO_HASHES, *(segment.hashes for segment in current)])
        is_copy = current_old_file >= 0 and np.array_equal(hashes, archived.hashes_of(current_old_file))
        return _File(current_old_file if is_copy else -1, [segment.table for segment in current])

    for segment in segments:
        begins_old_file = segment.old_file > last_old_file
        if begins_old_file:
            n_together = n_rows + len(archived.hashes_of(segment.old_file))
            joins_current = current_old_file < 0 and n_together <= part_rows
        else:
            was_in_same_file = current_old_file >= 0 and segment.old_file == current_old_file
            joins_current = n_rows < part_rows or was_in_same_file
        if current and not joins_current:
            yield finish()
            current, n_rows = [], 0
        if not current:
            current_old_file = segment.old_file if begins_old_file and can_copy else -1
        last_old_file = max(last_old_file, segment.old_file)
        current.append(segment)
        n_rows += len(segment.table)
    yield finish()


def refresh_archive(
    access: Access,
    path: str | PathLike[str],
    *,
    keep: Keep | None = None,
    progress: ProgressOption = "auto",
) -> Changes:
    """Bring an archive up to date and return what changed since it was written.

    Only changed files are written. A sealed archive stays sealed; after a change of key it is written again,
    and changes are then detected by the unsealed columns, such as ``updated_at``.

    Parameters
    ----------
    access : Access
        Access to the user whose memories the archive holds.
    path : str or Path
        An archive that `export_memories` wrote.
    keep : bool or dict of str to int, optional
        Keep past states inside the archive, as small files (`list_snapshots`): True for all, or numbers by period as in
        restic, such as ``{"daily": 7, "weekly": 4, "monthly": 12}``: the last state of each of the last seven days that
        have one, and so on. Other periods are ``last``, ``hourly`` and ``yearly``. The archive must be a folder. By
        default an archive that has past states keeps them; False is refused for it.
    progress : {"auto", True, False} or callable
        Shown while the memories are listed.

    Returns
    -------
    Changes
        The ids of memories as ``added``, ``changed`` and ``gone``; false if nothing changed.

    Raises
    ------
    FrameError
        There is no archive of this user at `path`, it has additional columns, or it cannot keep states.
    ConfigError
        ``keep`` is not a valid retention.

    Warns
    -----
    UserWarning
        A snapshot is damaged; only its state is lost.

    Examples
    --------
    >>> import pandas as pd
    >>> from memframe import create_memories, export_memories
    >>> n_rows = export_memories(access, folder / "memories")
    >>> run = create_memories(access, pd.DataFrame({"content": ["Likes green tea."]}))
    >>> refresh_archive(access, folder / "memories")
    <memframe.Changes: 1 added, 0 changed, 0 gone>
    """
    check_kind("access", access, Access)
    target = expand_path(path)
    with raise_write_errors(target):
        reader = Reader(target)
        check_refreshable(target, keep)
        check_target(target, keeps_snapshots=True)
        _check_owner(reader, target, access)
        return _refresh(access, target, reader, keep, progress)


def check_refreshable(path: Path, keep: Keep | None) -> bool:
    """Return True if a path can be refreshed, False if nothing is there, so that an export has to come first.

    In both cases, refuse a path that could never be refreshed, or that could not keep states.
    """
    check_keep(keep)
    exists = any(path.iterdir()) if path.is_dir() else path.exists()
    if path.suffix.lower() == ".md" or (exists and path.is_dir() and parts_of(path) == [path]):
        raise FrameError(f"{path} contains notes, which cannot be refreshed: export them again.")
    if keep and not is_folder(path):
        raise FrameError(
            f"{path} is one file, and states of the past are kept in a folder: export to a path without an extension."
        )
    if keep is False and (path / SNAPSHOTS).is_dir():
        raise FrameError(f"{path} keeps snapshots: remove {path / SNAPSHOTS} yourself if you want none.")
    return exists


def _refresh(
    access: Access, target: Path, reader: Reader, keep: Keep | None, progress: ProgressOption
) -> Changes:
    header = reader.header
    seal = header.seal if header else None
    if seal is None:
        form = Plain.of(access, formats.writer_for(target))
        columns = list(ARCHIVE_SCHEMA)
        archived = _Archived.read(Reader(target), columns)
    elif seal.key_version == access.credentials.key_version:
        form = Sealed(access, header)
        columns = list(ARCHIVE_SCHEMA)
        archived = _Archived.read(Reader(target, access), columns)
    else:  # sealed with a former key, which this access lacks
        form = Sealed(access, header)
        columns = [name for name in ARCHIVE_SCHEMA if name in IN_THE_OPEN]
        archived = _Archived.read(Reader(target), columns)
    listed = _ListedChanges(archived)
    files = _divide(
        listed.segments(tables_of_access(access, progress=progress), columns),
        archived,
        part_rows=formats.PART_ROWS if target.is_dir() else inf,  # an archive of one file stays one file
        # a file that is sealed with a former key, or lacks a present column, is written again
        can_copy=form.continues and not reader.missing_columns,
    )

    def write(path: Path, tables: list[pa.Table]) -> None:
        with atomic_file(path) as file:
            form.write(file, map(form.prepare, tables))

    def list_changes() -> Changes:  # only after all files were taken, because that lists the memories
        gone = _list_gone(reader, listed.is_gone)
        return Changes(tuple(listed.added), tuple(listed.changed), tuple(gone))

    if not target.is_dir():
        (file,) = files
        changes = list_changes()
        if file.copy_of < 0:
            write(target, file.tables)
        return changes
    with atomic_folder(target) as fresh:
        for number, file in enumerate(files):
            if file.copy_of < 0:
                write(fresh / part_name(number), file.tables)
            else:
                link_or_copy(reader.parts[file.copy_of], fresh / part_name(number))
        form.seal_folder(fresh)
        changes = list_changes()
        carry_snapshots(target, fresh, form, access, changes, keep)
    if (target / SNAPSHOTS).is_dir():
        remove_leftovers(target)
    return changes


def _check_owner(reader: Reader, path: Path, access: Access) -> None:
    """Refuse an archive that holds more than the memories of this user, which a refresh would lose."""
    check_not_newer(path, "refreshed")
    names = [
        name for part in reader.parts for name in open_archive_file(part).names if name not in ARCHIVE_SCHEMA
    ]
    if names:
        raise FrameError(
            f"{path} has additional columns ({', '.join(names[:3])}), which the service does not know and a "
            "refresh would lose: export the access to another path, and keep both."
        )
    header = reader.header
    owners: list[str | None]
    if header:
        owners = [header.user_id]
    else:
        tables = reader.tables(["user_id"])
        owners = [owner for table in tables for owner in table["user_id"].unique().to_pylist()]
    others = [owner for owner in owners if owner is None or not same_id(owner, access.user_id)]
    if others:
        raise FrameError(
            f"{path} holds memories of user {others[0]}, and this access is to user {access.user_id}: give each "
            "user an archive of their own."
        )


def _list_gone(reader: Reader, is_gone: NDArray[np.bool]) -> Iterator[str]:
    """Yield the ids of archived rows whose memories were not listed; the ids are read from the files again."""
    if not is_gone.any():
        return
    row = 0
    for table in reader.tables(["id"]):
        yield from table["id"].filter(pa.array(is_gone[row : row + len(table)])).to_pylist()
        row += len(table)
