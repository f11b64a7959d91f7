"""What changed since an archive was written, and which of its files a row belongs to.

Rows are known by hashes of their id and of all they say, 25 bytes a row, so that an archive of any size is
compared in bounded memory. Python draws the key of its hashes anew for each process; that two texts share one
of 64 bits is less likely than a broken disk, and would only spoil the counts: what is written is what came.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from memframe.archive.table import tuples_of

Hashes = NDArray[np.int64]


class Changes(Struct, frozen=True):
    """Ids of memories that an archive did not have, had otherwise, and has no longer.

    >>> Changes(added=("m7",), changed=(), gone=("m1", "m2"))
    Changes(added=1, changed=0, gone=2)
    >>> bool(Changes())
    False
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.gone)

    def __repr__(self) -> str:
        return f"Changes(added={len(self.added)}, changed={len(self.changed)}, gone={len(self.gone)})"


class Piece(NamedTuple):
    """Rows that follow each other in one file of the refreshed archive."""

    file: int
    """Number of that file."""
    base: int
    """Number of the old file that it continues, -1 if none."""
    table: pa.Table
    prints: Hashes

    def after(self, n_rows: int) -> Piece:
        """The piece without its first rows."""
        return self._replace(table=self.table.slice(n_rows), prints=self.prints[n_rows:])


class Known:
    """The rows of an archive as it stands.

    Parameters
    ----------
    files : iterable of iterables of tables
        Its files, with the columns that are compared.
    """

    def __init__(self, files: Iterable[Iterable[pa.Table]]) -> None:
        ids, prints, sizes = [_NONE], [_NONE], []
        for tables in files:
            n_before = len(prints)
            for table in tables:
                ids.append(_hashes(table.select(["id"])))
                prints.append(_hashes(table))
            sizes.append(sum(map(len, prints[n_before:])))
        self.starts = np.cumsum([0, *sizes])
        self.prints = np.concatenate(prints)
        all_ids = np.concatenate(ids)
        self._order = np.argsort(all_ids, kind="stable")
        self._ids = all_ids[self._order]
        self.is_seen = np.zeros(len(all_ids), dtype=bool)

    def rows_of(self, table: pa.Table) -> NDArray[np.int64]:
        """The row of the archive that each memory was, -1 where it is new; they count as seen."""
        if not len(self._ids):
            return np.full(len(table), -1)
        ids = _hashes(table.select(["id"]))
        at = np.searchsorted(self._ids, ids).clip(max=len(self._ids) - 1)
        rows = np.where(self._ids[at] == ids, self._order[at], -1)
        self.is_seen[rows[rows >= 0]] = True
        return rows

    def files_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of the files in which rows stand; -1 for those that are new."""
        return np.searchsorted(self.starts, rows, side="right") - 1

    def prints_of(self, file: int) -> Hashes:
        """What each row of a file says."""
        return self.prints[self.starts[file] : self.starts[file + 1]]


_NONE: Hashes = np.empty(0, np.int64)


def _hashes(table: pa.Table) -> Hashes:
    """One for each row, of all its cells."""
    cells = [_cells(column) for column in table.columns]
    return np.fromiter(map(hash, zip(*cells, strict=True)), np.int64, len(table))


def _cells(column: pa.ChunkedArray) -> Sequence[object]:
    if pa.types.is_list(column.type):
        return tuples_of(column)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    cells: list[object] = column.to_pylist()
    return cells


class Comparison:
    """Lays the memories of now beside an archive, and out over files.

    Parameters
    ----------
    known : Known
    columns : sequence of str
        What is compared.
    part_rows : float
        Rows after which new memories begin a file of their own.
    continues : bool
        Whether files of the archive can be continued; otherwise all are written anew.
    """

    def __init__(self, known: Known, columns: Sequence[str], *, part_rows: float, continues: bool) -> None:
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
        """What was found."""
        return Changes(tuple(self.added), tuple(self.changed), tuple(self.gone))

    def pieces(self, tables: Iterable[pa.Table]) -> Iterator[Piece]:
        """The rows of tables in order, each piece for one file."""
        for table in tables:
            prints = _hashes(table.select(self._columns))
            for begin, end, old_file in _runs(self._old_files(table, prints)):
                self._place(old_file, end - begin)
                yield Piece(self._file, self._base, table.slice(begin, end - begin), prints[begin:end])

    def _old_files(self, table: pa.Table, prints: Hashes) -> NDArray[np.int64]:
        """The file of each row that stands where it stood; -1 for one that is new, or changed and elsewhere."""
        known = self._known
        rows = known.rows_of(table)
        is_old = rows >= 0
        is_same = is_old.copy()
        is_same[is_old] = known.prints[rows[is_old]] == prints[is_old]
        follows = rows == np.concatenate([[self._row], rows[:-1]]) + 1
        self._row = rows[-1]
        self.added += table["id"].filter(pa.array(~is_old)).to_pylist()
        self.changed += table["id"].filter(pa.array(is_old & ~is_same)).to_pylist()
        return np.where(is_same | (is_old & follows), known.files_of(rows), -1)

    def _place(self, old_file: int, n_rows: int) -> None:
        """Go on with the file at hand, or begin one: where the next old file begins, or this one is full."""
        is_next = old_file > self._last
        if self._file < 0 or (self._begins(old_file) if is_next else self._is_full(old_file)):
            self._file += 1
            self._base = old_file if is_next and self._continues else -1
            self._n_rows = 0
        self._last = max(self._last, old_file)
        self._n_rows += n_rows

    def _begins(self, old_file: int) -> bool:
        """Whether an old file stays one: it is joined to new memories before it while they fit into one."""
        together = self._n_rows + len(self._known.prints_of(old_file))
        return self._base >= 0 or together > self._part_rows

    def _is_full(self, old_file: int) -> bool:
        return self._n_rows >= self._part_rows and (old_file < 0 or old_file != self._base)


def _runs(values: NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """Begin, end and value of each run of equal values.

    >>> list(_runs(np.array([3, 3, -1])))
    [(0, 2, 3), (2, 3, -1)]
    """
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    for begin, end in itertools.pairwise(edges):
        yield begin, end, int(values[begin])
