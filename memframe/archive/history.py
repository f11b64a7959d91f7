"""Past states inside an archive: write them at a refresh, read one, and erase memories from all.

The file of a snapshot (`memframe.snapshots`) holds the difference between its state and the present one: the rows of
the state that the archive no longer has, with their number in the state (`ROW`), and rows without a number for the ids
that the state did not have. All other rows of the present belong to the state, in the same order.

So a refresh adds the rows that it replaces to the file of every state that had them, and each state is read from only
two things, its file and the present. That takes more bytes than a chain of differences, but in a chain one damaged file
would cost all states before it. Rows are copied as they are stored: sealed rows stay sealed, and are verified.
"""

from __future__ import annotations

import io
import re
import shutil
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from memframe.access import Access
from memframe.archive.formats import ArchiveHeader, raise_write_errors
from memframe.archive.sealing import Key, Plain, Reader, Sealed, schema_for
from memframe.archive.table import ARCHIVE_SCHEMA, add_columns
from memframe.display import html_card
from memframe.errors import FrameError, Hint, SealError, check_kind
from memframe.files import atomic_file, atomic_folder, expand_path, link_or_copy
from memframe.snapshots import (
    SNAPSHOTS,
    Keep,
    Snapshot,
    SnapshotHeader,
    SourceCounts,
    choose_kept,
    find_as_of,
    find_snapshots,
    name_snapshot,
    next_moment,
)

ROW = "row"
"""Column of a snapshot with the number of a row in its state; null for an id that the state does not have."""

_ROW_SCHEMA = {ROW: pa.int64()}


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


class _State(NamedTuple):
    """A state, as rows of the present and rows of its snapshot."""

    rows: NDArray[np.int64]
    """Number in the state of each row of the present; -1 if the row is not part of the state."""
    own: pa.Table
    """Rows of the snapshot that are part of the state."""
    n_rows: int


def _divide(snapshot: Snapshot, table: pa.Table, present: pa.ChunkedArray) -> _State:
    """Find the rows of a snapshot's state: those of its ``table``, and the rows of the present, given by their ids."""
    own = table.filter(pc.is_valid(table[ROW]))
    is_shared = pc.invert(pc.is_in(present, table["id"])).to_numpy()
    n_rows = int(is_shared.sum()) + len(own)
    free = np.setdiff1d(np.arange(n_rows), own[ROW].to_numpy())
    if len(free) != is_shared.sum() or n_rows != snapshot.read_header().n_rows:
        raise snapshot.to_error("does not fit the archive, because another program changed it")
    rows = np.full(len(present), -1)
    rows[is_shared] = free
    return _State(rows, own, n_rows)


# -- reading


def read_as_of(path: Path, key: Key | None, columns: Sequence[str] | None, as_of: object) -> pa.Table:
    """Return the state of an archive at a moment, as a table."""
    wanted = [*ARCHIVE_SCHEMA] if columns is None else [*columns]
    needed = [*dict.fromkeys([*wanted, "id"])]
    snapshots = find_snapshots(path)
    if not snapshots:
        raise FrameError(
            f"{path} keeps no snapshots, so its past is not known",
            hint=Hint(
                "leave out as_of=; refresh_archive(..., keep=True) keeps them from now on.",
                "leave out --as-of, --since and --until; memframe export --refresh --keep keeps them from now on.",
            ),
        )
    snapshot = find_as_of(snapshots, as_of)
    snapshot.read_header()
    present = pa.concat_tables(Reader(path, key).tables(needed))
    found = pa.concat_tables(Reader(snapshot.file, key).tables([ROW, *needed]))
    state = _divide(snapshot, found, present["id"])
    is_shared = state.rows >= 0
    order = np.argsort(np.concatenate([state.rows[is_shared], state.own[ROW].to_numpy()]))
    both = [present.filter(pa.array(is_shared)), state.own.select(needed)]
    return pa.concat_tables(both, promote_options="permissive").take(pa.array(order)).select(wanted)


# -- a refresh


class _Replaced(NamedTuple):
    """The rows of the present that a refresh replaces, and the ids that it adds."""

    ids: pa.ChunkedArray
    """Ids of the present before the refresh."""
    is_replaced: NDArray[np.bool]
    """True for each of these rows that the new present lacks, or has in another order relative to the others."""
    rows: pa.Table
    """The replaced rows, as they are stored."""
    added: pa.Array
    new_ids: pa.ChunkedArray
    """Ids of the new present."""


def carry_snapshots(
    old: Path, fresh: Path, form: Plain, access: Access, changes: Changes, keep: Keep | None
) -> None:
    """Write the snapshots of an archive, and one of the new state, into the folder that will replace it.

    A damaged snapshot is copied unchanged, with a warning, until the retention drops it.
    """
    snapshots = find_snapshots(old)
    if not (snapshots or keep):
        return
    _check_continues(form, old)
    key = access if isinstance(form, Sealed) else None
    before, after = (pa.concat_tables(Reader(path).tables(["id", "source"])) for path in (old, fresh))
    replaced = _find_replaced(old, key, before["id"], after["id"], changes)
    is_new, is_first = bool(len(replaced.rows) or len(replaced.added)), not snapshots
    now = access.client.runtime.now()
    if is_first:
        taken_at = min(_written_at(old), now - timedelta(microseconds=1))
        header = SnapshotHeader(taken_at, taken_at, len(before), _count_sources(before))
        snapshots = [Snapshot(old, taken_at, header)]
    moment = next_moment(now, snapshots) if is_new else snapshots[-1].taken_at
    moments = {*(one.taken_at for one in snapshots), moment}
    kept = choose_kept(moments, keep) if isinstance(keep, Mapping) else moments
    (fresh / SNAPSHOTS).mkdir(mode=0o700)
    for one in snapshots:
        if one.taken_at not in kept:
            continue
        if not (is_new or is_first):
            link_or_copy(one.file, fresh / SNAPSHOTS / one.file.name)
            continue
        try:
            table = _amend(one, _EMPTY if is_first else _read_stored(one, key), replaced)
        except (FrameError, SealError) as error:  # only this snapshot is lost
            warnings.warn(str(error), stacklevel=2)
            link_or_copy(one.file, fresh / SNAPSHOTS / one.file.name)
        else:
            _write_snapshot(fresh, form, replace(one.read_header(), present=moment), table)
    if is_new:
        counts = _count_sources(after, changes, before)
        _write_snapshot(fresh, form, SnapshotHeader(moment, moment, len(after), counts), _EMPTY)


def _check_continues(form: Plain, path: Path) -> None:
    if not form.continues:
        raise SealError(
            f"The snapshots of {path} are sealed with another key, or hold content in another layout, than this "
            "access has, and cannot be continued: export to another path, and keep both."
        )


def _written_at(path: Path) -> datetime:
    """Return the time of the files of an archive, for one without a snapshot that states its time."""
    newest = max(file.stat().st_mtime_ns for file in path.glob("*.parquet"))
    return datetime.fromtimestamp(newest // 1000 / 1e6, UTC)


def _find_replaced(
    old: Path, key: Key | None, ids: pa.ChunkedArray, new_ids: pa.ChunkedArray, changes: Changes
) -> _Replaced:
    before, after = pd.Index(ids.to_numpy()), pd.Index(new_ids.to_numpy())
    is_replaced = before.isin([*changes.changed, *changes.gone]) | before.isna()
    is_replaced |= before.duplicated(keep=False) | ~before.isin(after)
    rest = np.flatnonzero(~is_replaced)
    places = before[rest].get_indexer(after)
    places = places[places >= 0]
    is_replaced[rest[places[places < np.maximum.accumulate(places)]]] = True  # rows that moved before others
    tables = Reader(old, key).tables([*ARCHIVE_SCHEMA], as_stored=True) if is_replaced.any() else ()
    rows, n_before = [_EMPTY.drop_columns(ROW)], 0
    for table in tables:
        rows.append(table.filter(pa.array(is_replaced[n_before : n_before + len(table)])))
        n_before += len(table)
    found = pa.concat_tables(one.replace_schema_metadata(None) for one in rows)
    return _Replaced(ids, is_replaced, found, pa.array(changes.added, ids.type), new_ids)


_EMPTY = pa.schema(_ROW_SCHEMA | ARCHIVE_SCHEMA).empty_table()


def _read_stored(snapshot: Snapshot, key: Key | None) -> pa.Table:
    """Read the rows of a snapshot as they are stored, verified if they are sealed."""
    snapshot.read_header()
    return pa.concat_tables(Reader(snapshot.file, key).tables(_EMPTY.column_names, as_stored=True))


def _amend(snapshot: Snapshot, table: pa.Table, replaced: _Replaced) -> pa.Table:
    """Return the rows of a snapshot, changed so that they give the same state with the new present."""
    state = _divide(snapshot, table, replaced.ids)
    rows = state.rows[replaced.is_replaced]
    is_own = pa.array(rows >= 0)
    more = replaced.rows.append_column(ROW, pa.array(rows)).filter(is_own).select(_EMPTY.column_names)
    is_needed = pc.or_(pc.is_valid(table[ROW]), pc.is_in(table["id"], replaced.new_ids))
    absent = replaced.added.filter(pc.invert(pc.is_in(replaced.added, table["id"])))
    tables = [table.filter(is_needed), more, _mark_absent(absent)]
    return pa.concat_tables(one.replace_schema_metadata(None) for one in tables)


def _mark_absent(ids: pa.Array) -> pa.Table:
    """Return rows that mark ids which a state does not have."""
    marks = pa.table({ROW: pa.nulls(len(ids), pa.int64()), "id": ids})
    return add_columns(marks, _EMPTY.column_names)


def _count_sources(
    table: pa.Table, changes: Changes | None = None, before: pa.Table | None = None
) -> list[SourceCounts]:
    """Count the memories of a state by source, and the changes that led to it."""

    def count(rows: pa.Table, ids: Collection[str]) -> Counter[str | None]:
        chosen = rows.filter(pc.is_in(rows["id"], pa.array(ids, rows["id"].type)))
        return Counter(chosen["source"].to_pylist())

    n_rows = Counter(table["source"].to_pylist())
    found = [n_rows]
    if changes is not None and before is not None:
        found += [count(table, changes.added), count(table, changes.changed), count(before, changes.gone)]
    sources = sorted({name for counts in found for name in counts}, key=lambda name: (name is None, name))
    return [SourceCounts(name, *(counts[name] for counts in found)) for name in sources]


def _write_snapshot(folder: Path, form: Plain, header: SnapshotHeader, table: pa.Table) -> None:
    data = io.BytesIO()
    form.for_snapshot(header, _ROW_SCHEMA).write(data, [table])
    with atomic_file(folder / SNAPSHOTS / name_snapshot(header.taken_at, data.getvalue())) as file:
        file.write(data.getvalue())


# -- erasure


def forget_memories(path: str | PathLike[str], ids: Collection[str], *, access: Access | None = None) -> int:
    """Delete the rows of some memories from the snapshots of an archive, and return how many rows that were.

    Their present state stays; a refresh removes from the archive what is gone from the service. Past states show such a
    memory only if it is the same as at present.

    Parameters
    ----------
    path : str or Path
        The folder of an archive.
    ids : collection of str
        Ids of the memories, such as those that a person deleted or from which a secret was redacted.
    access : Access, optional
        Access to the user of a sealed archive.

    Raises
    ------
    FrameError
        The archive has no snapshots, or one is damaged and cannot be searched: it is named. Nothing is deleted.
    SealError
        The archive is sealed, and no access was given.

    Examples
    --------
    >>> from memframe import export_memories, load_memories, refresh_archive, update_memories
    >>> n_rows = export_memories(access, folder / "redacted")
    >>> redacted = load_memories(access, limit=1).assign(content="The PIN was removed")
    >>> run = update_memories(access, redacted)
    >>> changes = refresh_archive(access, folder / "redacted", keep=True)
    >>> forget_memories(folder / "redacted", redacted["id"])
    1
    """
    target = expand_path(path)
    if isinstance(ids, str):
        raise FrameError(f"ids={ids!r:.60} is a single text: pass a list of ids.")
    reader, snapshots = Reader(target), find_snapshots(target)
    if not snapshots:
        raise FrameError(f"{target} keeps no snapshots, so it holds the present state alone.")
    if reader.is_sealed and access is None:
        raise SealError(
            f"{target} is sealed, and its snapshots are sealed again without those rows",
            hint=Hint("pass access=, the Access to that user.", "give the --request of that user."),
        )
    header = reader.header or ArchiveHeader("")
    key = access if header.seal else None
    if key is not None:
        check_kind("access", key, Access)
    form = Sealed(key, header) if key else Plain(schema_for(header))
    _check_continues(form, target)
    present = pa.concat_tables(reader.tables(["id", "source"]))
    n_forgotten = 0
    with raise_write_errors(target):
        with atomic_folder(target) as fresh:
            for file in target.glob("*.parquet"):
                link_or_copy(file, fresh / file.name)
            (fresh / SNAPSHOTS).mkdir(mode=0o700)
            for one in snapshots:
                new_header, rows = _leave_out(one, _read_stored(one, key), present, [*ids])
                n_forgotten += one.read_header().n_rows - new_header.n_rows
                _write_snapshot(fresh, form, new_header, rows)
        remove_leftovers(target)
    return n_forgotten


def _leave_out(
    snapshot: Snapshot, table: pa.Table, present: pa.Table, ids: Sequence[str]
) -> tuple[SnapshotHeader, pa.Table]:
    """Return the header and rows of a snapshot, without its rows of some memories."""
    state = _divide(snapshot, table, present["id"])
    chosen = pa.array(ids, table["id"].type)
    is_chosen = pc.is_in(table["id"], chosen)
    forgotten = table.filter(pc.and_(is_chosen, pc.is_valid(table[ROW])))
    kept = table.filter(pc.invert(is_chosen))
    numbers = kept[ROW].to_numpy()  # floats, because some are missing
    # each number less the forgotten rows before it
    numbers = numbers - np.searchsorted(np.sort(forgotten[ROW].to_numpy()), numbers)
    kept = kept.set_column(0, ROW, pa.array(numbers, pa.int64(), from_pandas=True))
    known = table.filter(is_chosen)["id"].unique()
    marks = _mark_absent(known.filter(pc.is_in(known, present["id"])))
    shared = present.filter(pa.array(state.rows >= 0))
    of_source = Counter(shared["source"].to_pylist())
    of_source.update(kept.filter(pc.is_valid(kept[ROW]))["source"].to_pylist())
    unnamed = {*forgotten["source"].to_pylist()} - of_source.keys()
    header = snapshot.read_header()
    counts = [
        replace(one, n_rows=of_source[one.source]) for one in header.sources if one.source not in unnamed
    ]
    shown = replace(header, n_rows=of_source.total(), sources=counts)
    return shown, pa.concat_tables(one.replace_schema_metadata(None) for one in (kept, marks))


def remove_leftovers(path: Path) -> None:
    """Delete the folders that a process left beside an archive when it was killed while writing: old or partial states.

    Another process that is writing the same archive at this moment then fails with an error.
    """
    name = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}(\.before)?")
    for folder in path.parent.glob(".*"):
        is_ours = name.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink()
        if is_ours and all(_LEFT.fullmatch(entry.name) for entry in folder.iterdir()):
            shutil.rmtree(folder)


_LEFT = re.compile(rf"\.?(part-[0-9]+|seal)\.parquet(\.[a-z0-9_]{{8}})?|{SNAPSHOTS}")
"""Names in the folder of an archive, written completely or in part."""
