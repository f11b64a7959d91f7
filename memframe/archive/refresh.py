"""Refresh of an archive: write only the files in which a memory changed, and say what changed.

The service cannot say what changed, so all memories are listed; what is saved is the writing. Rows stay in their
file, and new ones join the file after which they are listed, up to `PART_ROWS`, so that a refreshed archive keeps the
order of the service. Unchanged files are linked into a folder beside the archive, which replaces it when it is
complete; a crash before leaves the old archive.

Rows are compared by hashes of their id and all cells, and the rows of one file are held at a time.
Python chooses the key of its hashes anew for each process, so nobody can prepare two texts that share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import inf
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from memframe.access import Access
from memframe.archive import formats
from memframe.archive.formats import check_not_newer, check_target, open_file, part_name, raise_write_errors
from memframe.archive.history import carry_snapshots, remove_leftovers
from memframe.archive.sealing import IN_THE_OPEN, Plain, Reader, Sealed, tables_of_access
from memframe.archive.table import ARCHIVE_SCHEMA, tuples_of
from memframe.client.responses import same_id
from memframe.display import html_card
from memframe.errors import FrameError, check_kind
from memframe.files import atomic_file, atomic_folder, expand_path, link_or_copy
from memframe.progress import ProgressOption
from memframe.snapshots import SNAPSHOTS, Keep, check_keep

Hashes = NDArray[np.int64]

_NO_HASHES: Hashes = np.empty(0, np.int64)


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
        return f"<memframe.{type(self).__name__}: {', '.join(f'{n:,} {name}' for name, n in self._counts.items())}>"

    def _repr_html_(self) -> str:
        return html_card(type(self).__name__, self._counts)

    @property
    def _counts(self) -> dict[str, int]:
        return {name: len(getattr(self, name)) for name in Changes.__struct_fields__}


def _hashes(table: pa.Table) -> Hashes:
    """Hash each row over all its cells."""
    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())  # noqa: PLW2901 - the same column
        columns.append(tuples_of(column) if pa.types.is_list(column.type) else column.to_pylist())
    return np.fromiter(map(hash, zip(*columns, strict=True)), np.int64, len(table))


class RowComparison:
    """Compare the memories that are listed with the rows of an archive, and divide them into files.

    ``archived`` are the files of the archive, as tables of the columns that are compared. New memories begin a file of
    their own after ``part_rows``; unless it ``continues`` the archive, all files are new.
    """

    def __init__(
        self, archived: Iterable[Iterable[pa.Table]], columns: list[str], *, part_rows: float, continues: bool
    ) -> None:
        ids, self._files = [_NO_HASHES], []
        for tables in archived:
            hashes = [_NO_HASHES]
            for table in tables:
                ids.append(_hashes(table.select(["id"])))
                hashes.append(_hashes(table))
            self._files.append(np.concatenate(hashes))
        rows = pd.Series(np.arange(sum(map(len, ids))), index=np.concatenate(ids))
        self._rows = rows[~rows.index.duplicated()]
        self._hashes = np.concatenate([_NO_HASHES, *self._files])
        self._file_of = np.repeat(np.arange(len(self._files)), [len(hashes) for hashes in self._files])
        self._columns, self._part_rows, self._continues = columns, part_rows, continues
        self._last_row = -1
        self.is_gone = np.ones(len(rows), dtype=bool)
        """True for each archived row whose memory is gone, once all is listed."""
        self.added: list[str] = []
        self.changed: list[str] = []

    def files(self, listed: Iterable[pa.Table]) -> Iterator[tuple[int, list[pa.Table]]]:
        """Yield the old file that each file continues, -1 for none, and its tables; none if nothing changed.

        There is at least one file, so that an archive without memories keeps its columns.
        """
        base, last, n_rows = -1, -1, 0
        held: list[tuple[pa.Table, Hashes]] = []
        for table in listed:
            hashes = _hashes(table.select(self._columns))
            files_of = self._files_of(table, hashes)
            edges = [0, *(np.flatnonzero(np.diff(files_of)) + 1).tolist(), len(table)]
            for begin, end in pairwise(edges):
                old_file = int(files_of[begin])
                is_next = old_file > last
                if is_next:  # an old file stays separate; new memories before it join it while they fit
                    ends = base >= 0 or n_rows + len(self._files[old_file]) > self._part_rows
                else:
                    ends = n_rows >= self._part_rows and (old_file < 0 or old_file != base)
                if held and ends:
                    yield self._file(base, held)
                    held, n_rows = [], 0
                if not held:
                    base = old_file if is_next and self._continues else -1
                last, n_rows = max(last, old_file), n_rows + end - begin
                held.append((table.slice(begin, end - begin), hashes[begin:end]))
        yield self._file(base, held)

    def _file(self, base: int, held: list[tuple[pa.Table, Hashes]]) -> tuple[int, list[pa.Table]]:
        hashes = np.concatenate([_NO_HASHES, *(some for _, some in held)])
        is_same = base >= 0 and np.array_equal(hashes, self._files[base])
        return base, [] if is_same else [table for table, _ in held]

    def _files_of(self, table: pa.Table, hashes: Hashes) -> NDArray[np.int64]:
        """Return the old file of each memory that keeps its place; -1 for one that is new, or changed and moved."""
        at = self._rows.index.get_indexer(pd.Index(_hashes(table.select(["id"]))))
        is_old = at >= 0
        rows = np.where(is_old, np.append(self._rows.to_numpy(), -1)[at], -1)
        self.is_gone[rows[is_old]] = False
        is_same = is_old.copy()
        is_same[is_old] = self._hashes[rows[is_old]] == hashes[is_old]
        follows = rows == np.concatenate([[self._last_row], rows[:-1]]) + 1
        self._last_row = rows[-1]
        self.added += table["id"].filter(pa.array(~is_old)).to_pylist()
        self.changed += table["id"].filter(pa.array(is_old & ~is_same)).to_pylist()
        return np.where(is_same | (is_old & follows), np.append(self._file_of, -1)[rows], -1)


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
        To the user whose memories the archive holds.
    path : str or Path
        What `export_memories` wrote.
    keep : bool or dict of str to int, optional
        Keep the states of the past inside the archive, as small files (`list_snapshots`): True for all, or the number
        by period as in restic, such as ``{"daily": 7, "weekly": 4, "monthly": 12}``: the last of each of the last seven
        days that have one, and so on; other periods are ``last``, ``hourly`` and ``yearly``. The archive must be a
        folder. By default an archive keeps its states if it has some, and False is refused then.
    progress : {"auto", True, False} or callable
        Shown while the memories are listed.

    Returns
    -------
    Changes
        Ids: ``added``, ``changed``, ``gone``. False if nothing changed.

    Raises
    ------
    FrameError
        There is no archive of this user at `path`, it has additional columns, or it cannot keep states.
    ConfigError
        ``keep`` is no retention.

    Warns
    -----
    UserWarning
        A snapshot is damaged, which costs that one alone.

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
        if reader.parts == [target] and (target.is_dir() or target.suffix.lower() == ".md"):
            raise FrameError(f"{target} contains notes, which cannot be refreshed: export them again.")
        check_target(target, keeps_snapshots=True)
        _check_keep(target, keep)
        _check_owner(reader, target, access)
        return _refresh(access, target, reader, keep, progress)


def _check_keep(path: Path, keep: Keep | None) -> None:
    check_keep(keep)
    if keep and not path.is_dir():
        raise FrameError(
            f"{path} is one file, and states of the past are kept in a folder: export to a path without an extension."
        )
    if keep is False and (path / SNAPSHOTS).is_dir():
        raise FrameError(f"{path} keeps snapshots: remove {path / SNAPSHOTS} yourself if you want none.")


def _refresh(
    access: Access, target: Path, reader: Reader, keep: Keep | None, progress: ProgressOption
) -> Changes:
    header = reader.header
    seal = header and header.seal
    form = Sealed(access, header) if seal else Plain.of(access, formats.writer_for(target))
    can_open = not seal or seal.key_version == access.credentials.key_version
    columns = [name for name in ARCHIVE_SCHEMA if can_open or name in IN_THE_OPEN]
    archived = Reader(target, access if seal and can_open else None)
    comparison = RowComparison(
        (archived.tables(columns, parts=[part]) for part in reader.parts),
        columns,
        part_rows=formats.PART_ROWS if target.is_dir() else inf,
        continues=not reader.missing_columns and (not isinstance(form, Sealed) or form.continues),
    )
    files = comparison.files(tables_of_access(access, progress=progress))

    def write(path: Path, base: int, tables: list[pa.Table]) -> None:
        if tables or base < 0:
            with atomic_file(path) as file:
                form.write(file, map(form.prepare, tables))
        elif path != target:
            link_or_copy(reader.parts[base], path)

    def found() -> Changes:
        gone = _gone(reader, comparison.is_gone)
        return Changes(tuple(comparison.added), tuple(comparison.changed), tuple(gone))

    if not target.is_dir():
        for base, tables in files:
            changes = found()
            write(target, base, tables)
        return changes
    with atomic_folder(target) as fresh:
        for number, (base, tables) in enumerate(files):
            write(fresh / part_name(number), base, tables)
        form.seal_folder(fresh)
        changes = found()
        carry_snapshots(target, fresh, form, access, changes, keep)
    if (target / SNAPSHOTS).is_dir():
        remove_leftovers(target)
    return changes


def _check_owner(reader: Reader, path: Path, access: Access) -> None:
    """Refuse an archive that holds more than the memories of this user, which a refresh would lose."""
    check_not_newer(path, "refreshed")
    names = [name for part in reader.parts for name in open_file(part).names if name not in ARCHIVE_SCHEMA]
    if names:
        raise FrameError(
            f"{path} has additional columns ({', '.join(names[:3])}), which the service does not know and a "
            "refresh would lose: export the access to another path, and keep both."
        )
    header = reader.header
    tables = [] if header else reader.tables(["user_id"])
    owners = (
        [header.user_id]
        if header
        else [one for table in tables for one in table["user_id"].unique().to_pylist()]
    )
    others = [owner for owner in owners if owner is None or not same_id(owner, access.user_id)]
    if others:
        raise FrameError(
            f"{path} holds memories of user {others[0]}, and this access is to user {access.user_id}: give each "
            "user an archive of their own."
        )


def _gone(reader: Reader, is_gone: NDArray[np.bool]) -> Iterator[str]:
    """Yield the ids of archived rows that are not there any more."""
    row = 0
    for table in reader.tables(["id"]) if is_gone.any() else ():
        yield from table["id"].filter(pa.array(is_gone[row : row + len(table)])).to_pylist()
        row += len(table)
