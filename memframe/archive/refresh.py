"""Refresh of an archive: write only the files in which a memory changed, and say what changed.

The service cannot say what changed, so all memories are listed; what is saved is the writing. Rows stay in their
file, and new ones join the file after which they are listed, up to `PART_ROWS`, so that a refreshed archive keeps the
order of the service. Unchanged files are linked into a folder beside the archive, which replaces it when it is
complete; a crash before leaves the old archive.

Rows are compared by hashes of their id and all cells, 25 bytes a row, so that an archive of any size is compared in
bounded memory. Python chooses the key of its hashes anew for each process, so nobody can prepare two texts that
share one.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from math import inf
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from memframe.access import Access
from memframe.archive import places
from memframe.archive.places import check_target, format_of, is_folder, part_name, raise_write_errors
from memframe.archive.sealing import IN_THE_OPEN, Plain, Reader, Sealed, tables_of_access
from memframe.archive.table import ARCHIVE_SCHEMA, ArchiveHeader, tuples_of
from memframe.client.responses import same_id
from memframe.display import html_card
from memframe.errors import FrameError, check_kind
from memframe.files import atomic_folder, expand_path
from memframe.progress import ProgressOption

Hashes = NDArray[np.int64]


class Changes(Struct, frozen=True):
    """Ids of memories that were added to, changed in and removed from an archive.

    >>> Changes(added=("m7",), changed=(), gone=("m1", "m2"))
    <memframe.Changes: 1 added, 0 changed, 2 gone>
    >>> bool(Changes())
    False
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.gone)

    def __repr__(self) -> str:
        return f"<memframe.Changes: {', '.join(f'{n:,} {name}' for name, n in self._counts.items())}>"

    def _repr_html_(self) -> str:
        return html_card("Changes", self._counts)

    @property
    def _counts(self) -> dict[str, int]:
        return {name: len(getattr(self, name)) for name in self.__struct_fields__}


class Segment(NamedTuple):
    """Consecutive rows of one file of the refreshed archive."""

    file: int
    """Number of that file."""
    base: int
    """Number of the old file that it continues, -1 if none."""
    table: pa.Table
    hashes: Hashes

    def after(self, n_rows: int) -> Segment:
        """Return the segment without its first rows."""
        return self._replace(table=self.table.slice(n_rows), hashes=self.hashes[n_rows:])


class ArchivedRows:
    """Rows of the archive before the refresh.

    Parameters
    ----------
    files : iterable of iterables of tables
        Its files, with the columns that are compared.
    """

    def __init__(self, files: Iterable[Iterable[pa.Table]]) -> None:
        ids, hashes, sizes = [_NO_HASHES], [_NO_HASHES], []
        for tables in files:
            n_before = len(hashes)
            for table in tables:
                ids.append(_hashes(table.select(["id"])))
                hashes.append(_hashes(table))
            sizes.append(sum(map(len, hashes[n_before:])))
        self.starts = np.cumsum([0, *sizes])
        self.hashes = np.concatenate(hashes)
        all_ids = np.concatenate(ids)
        self._order = np.argsort(all_ids, kind="stable")
        self._ids = all_ids[self._order]
        self.is_seen = np.zeros(len(all_ids), dtype=bool)

    def rows_of(self, table: pa.Table) -> NDArray[np.int64]:
        """Return the archive row of each memory, -1 if it is new, and mark those rows as seen."""
        if not len(self._ids):
            return np.full(len(table), -1)
        ids = _hashes(table.select(["id"]))
        at = np.searchsorted(self._ids, ids).clip(max=len(self._ids) - 1)
        rows = np.where(self._ids[at] == ids, self._order[at], -1)
        self.is_seen[rows[rows >= 0]] = True
        return rows

    def files_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the file numbers of rows; -1 for new ones."""
        return np.searchsorted(self.starts, rows, side="right") - 1

    def hashes_of(self, file: int) -> Hashes:
        """Return the hashes of a file's rows."""
        return self.hashes[self.starts[file] : self.starts[file + 1]]


_NO_HASHES: Hashes = np.empty(0, np.int64)


def _hashes(table: pa.Table) -> Hashes:
    """Hash each row over all its cells."""
    cells = [_cells(column) for column in table.columns]
    return np.fromiter(map(hash, zip(*cells, strict=True)), np.int64, len(table))


def _cells(column: pa.ChunkedArray) -> Sequence[object]:
    if pa.types.is_list(column.type):
        return tuples_of(column)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    cells: list[object] = column.to_pylist()
    return cells


class RowComparison:
    """Compare current memories with an archive, and assign them to files.

    Parameters
    ----------
    known : ArchivedRows
    columns : sequence of str
        What is compared.
    part_rows : float
        Rows after which new memories begin a file of their own.
    continues : bool
        Continue the files of the archive; otherwise all are written anew.
    """

    def __init__(
        self, known: ArchivedRows, columns: Sequence[str], *, part_rows: float, continues: bool
    ) -> None:
        self._known = known
        self._columns = list(columns)
        self._part_rows = part_rows
        self._continues = continues
        self._file, self._base, self._last, self._n_rows = -1, -1, -1, 0
        self._row = -1
        self.added: list[str] = []
        self.changed: list[str] = []
        self.gone: list[str] = []

    def changes(self) -> Changes:
        """Return the changes found."""
        return Changes(tuple(self.added), tuple(self.changed), tuple(self.gone))

    def segments(self, tables: Iterable[pa.Table]) -> Iterator[Segment]:
        """Divide the rows of tables into segments, each for one file."""
        for table in tables:
            hashes = _hashes(table.select(self._columns))
            for begin, end, old_file in _runs(self._old_files(table, hashes)):
                self._place(old_file, end - begin)
                yield Segment(self._file, self._base, table.slice(begin, end - begin), hashes[begin:end])

    def _old_files(self, table: pa.Table, hashes: Hashes) -> NDArray[np.int64]:
        """Return the file of each row that keeps its place; -1 for one that is new, or changed and moved."""
        known = self._known
        rows = known.rows_of(table)
        is_old = rows >= 0
        is_same = is_old.copy()
        is_same[is_old] = known.hashes[rows[is_old]] == hashes[is_old]
        follows = rows == np.concatenate([[self._row], rows[:-1]]) + 1
        self._row = rows[-1]
        self.added += table["id"].filter(pa.array(~is_old)).to_pylist()
        self.changed += table["id"].filter(pa.array(is_old & ~is_same)).to_pylist()
        return np.where(is_same | (is_old & follows), known.files_of(rows), -1)

    def _place(self, old_file: int, n_rows: int) -> None:
        """Continue the current file, or begin the next: where an old file begins, or this one is full."""
        is_next = old_file > self._last
        if self._file < 0 or (self._begins(old_file) if is_next else self._is_full(old_file)):
            self._file += 1
            self._base = old_file if is_next and self._continues else -1
            self._n_rows = 0
        self._last = max(self._last, old_file)
        self._n_rows += n_rows

    def _begins(self, old_file: int) -> bool:
        """Return True if an old file stays separate; new memories before it join it while they fit."""
        together = self._n_rows + len(self._known.hashes_of(old_file))
        return self._base >= 0 or together > self._part_rows

    def _is_full(self, old_file: int) -> bool:
        return self._n_rows >= self._part_rows and (old_file < 0 or old_file != self._base)


def _runs(values: NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """Yield begin, end and value of each run of equal values.

    >>> list(_runs(np.array([3, 3, -1])))
    [(0, 2, 3), (2, 3, -1)]
    """
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    for begin, end in itertools.pairwise(edges):
        yield begin, end, int(values[begin])


def refresh_archive(
    access: Access, path: str | PathLike[str], *, progress: ProgressOption = "auto"
) -> Changes:
    """Bring an archive up to date and return what changed since it was written.

    Only changed files are written. A sealed archive stays sealed; after a change of key it is written again,
    and changes are then detected by the unsealed columns, such as ``updated_at``.

    Parameters
    ----------
    access : Access
        To the user whose memories the archive holds.
    path : str or path
        What `export_memories` wrote.
    progress : {"auto", True, False} or callable
        Shown while the memories are listed.

    Returns
    -------
    Changes
        Ids: ``added``, ``changed``, ``gone``. False where nothing changed.

    Raises
    ------
    FrameError
        There is no archive of this user at `path`, or it has additional columns.

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
        if reader.parts[0].suffix == ".md":
            raise FrameError(f"{target} contains notes, which cannot be refreshed: export them again.")
        check_target(target)
        _check_owner(reader, target, access)
        return _Refresh(access, target, reader.header()).carry_out(target, progress)


def _check_owner(reader: Reader, path: Path, access: Access) -> None:
    """Refuse an archive that holds more than the memories of this user, which a refresh would lose."""
    for part in reader.parts:
        own = [name for name in format_of(part).names(part) if name not in ARCHIVE_SCHEMA]
        if own:
            raise FrameError(
                f"{path} has additional columns ({', '.join(own[:3])}), which the service does not know and a "
                "refresh would lose: export the access to another path, and keep both."
            )
    header = reader.header()
    owners = {header.user_id} if header else _owners(reader)
    others = [owner for owner in owners if owner is None or not same_id(owner, access.user_id)]
    if others:
        raise FrameError(
            f"{path} holds memories of user {others[0]}, and this access is to user {access.user_id}: give each "
            "user an archive of their own."
        )


def _owners(reader: Reader) -> set[str | None]:
    found: set[str | None] = set()
    for table in reader.tables(["user_id"]):
        found.update(table["user_id"].unique().to_pylist())
    return found


class _Refresh:
    """State of one refresh: how the archive is sealed, which rows can be compared, which files can stay."""

    def __init__(self, access: Access, path: Path, header: ArchiveHeader | None) -> None:
        self._access = access
        seal = header.seal if header else None
        self._form: Plain | Sealed = Sealed(access) if seal else Plain.of(access)
        self._continues = seal is None or (isinstance(self._form, Sealed) and self._form.continues(seal))
        if seal and self._continues:
            self._form = Sealed(access, header)
        can_open = seal is None or seal.key_version == access.credentials.key_version
        self._reader = Reader(path, access if can_open else None)
        self._columns = [name for name in ARCHIVE_SCHEMA if can_open or name in IN_THE_OPEN]
        parts = self._reader.parts
        self._known = ArchivedRows(self._reader.tables_of_part(part, self._columns) for part in parts)

    def carry_out(self, target: Path, progress: ProgressOption) -> Changes:
        in_folder = is_folder(target)
        comparison = RowComparison(
            self._known,
            self._columns,
            part_rows=places.PART_ROWS if in_folder else inf,
            continues=self._continues,
        )
        segments = self._segments(comparison, progress)
        files = (
            (base, group)
            for (_, base), group in groupby(segments, key=lambda segment: (segment.file, segment.base))
        )
        if in_folder:
            with atomic_folder(target) as fresh:
                for number, (base, group) in enumerate(_at_least_one(files)):
                    self._write_file(fresh / part_name(number), base, group)
                self._form.seal_folder(fresh)
        else:
            for base, group in _at_least_one(files):
                self._write_file(target, base, group)
        return comparison.changes()

    def _segments(self, comparison: RowComparison, progress: ProgressOption) -> Iterator[Segment]:
        """Yield all segments, then record which rows of the old files are gone."""
        yield from comparison.segments(tables_of_access(self._access, progress=progress))
        comparison.gone += self._gone()

    def _write_file(self, path: Path, base: int, segments: Iterator[Segment]) -> None:
        """Write a file, or keep an old one with the same rows."""
        n_same, others = _divergence(segments, self._hashes_of(base))
        if others is not None:
            tables = chain(
                self._old_rows(base, n_same), (self._form.prepare(segment.table) for segment in others)
            )
            self._form.write(path, tables)
        elif not path.exists():
            _link(self._reader.parts[base], path)

    def _hashes_of(self, base: int) -> Hashes:
        return self._known.hashes_of(base) if base >= 0 else np.empty(0, np.int64)

    def _old_rows(self, base: int, n_rows: int) -> Iterator[pa.Table]:
        """Yield the first rows of an old file as stored, so that sealed cells are not sealed again."""
        if n_rows:
            part = self._reader.parts[base]
            for table in format_of(part).read(part, [*ARCHIVE_SCHEMA]):
                yield table.slice(0, n_rows)
                n_rows = max(0, n_rows - len(table))

    def _gone(self) -> Iterator[str]:
        is_gone = ~self._known.is_seen
        if is_gone.any():
            row = 0
            for table in self._reader.tables(["id"]):
                yield from table["id"].filter(pa.array(is_gone[row : row + len(table)])).to_pylist()
                row += len(table)


_Files = Iterator[tuple[int, Iterator[Segment]]]


def _at_least_one(files: _Files) -> _Files:
    """Yield the files to write; an empty one if there are no memories, so that the archive keeps its columns."""
    n_files = 0
    for n_files, file in enumerate(files, 1):  # noqa: B007 - the count is what is asked for
        yield file
    if not n_files:
        yield -1, iter(())


def _divergence(segments: Iterator[Segment], hashes: Hashes) -> tuple[int, Iterable[Segment] | None]:
    """Count the rows that are unchanged, and return the segments after them; None if all are."""
    n_same = 0
    for segment in segments:
        n_equal = _n_equal(segment.hashes, hashes[n_same:])
        n_same += n_equal
        if n_equal < len(segment.hashes):
            return n_same, chain([segment.after(n_equal)], segments)
    return n_same, None if 0 < n_same == len(hashes) else ()


def _n_equal(these: Hashes, those: Hashes) -> int:
    n_rows = min(len(these), len(those))
    differ = np.flatnonzero(these[:n_rows] != those[:n_rows])
    return int(differ[0]) if len(differ) else n_rows


def _link(old: Path, new: Path) -> None:
    """Link a file under another name, or copy it where the file system has no links."""
    try:
        os.link(old, new)
    except OSError:
        shutil.copy2(old, new)
