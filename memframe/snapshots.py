"""The snapshots of an archive: their files, moments and counts, and which of them a retention keeps.

`refresh_archive` with ``keep`` writes a file for each state of the archive into its folder `SNAPSHOTS`::

    part-00000.parquet
    _history/2026-11-23T020000.000000Z-6b1f0c2d9a7e4b35.snapshot
    _history/2026-11-24T020000.000000Z-0d4c8e1f2a3b5c6d.snapshot

Each file says how its state differs from the present one (`memframe.archive.history`), so that none needs another: a
damaged file loses one state, and to drop a state is to delete its file. The newest snapshot is the present state. The
name has the moment and the beginning of the file's SHA-256, by which damage is found before Arrow reads the file. The
files are Parquet under another extension, so that programs that read ``*.parquet`` of a folder find the present only.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from memframe.errors import ConfigError, FrameError, Hint
from memframe.files import expand_path, raise_os_errors_as

SNAPSHOTS = "_history"
"""Folder of the snapshots inside an archive."""

SUFFIX = ".snapshot"
"""Extension of the files of snapshots, which are Parquet."""

HEADER = b"memframe"
"""Key of the header in the metadata of a file."""

_MOMENT = "%Y-%m-%dT%H%M%S.%fZ"
_NAME = re.compile(r"(\d{4}-\d\d-\d\dT\d{6}\.\d{6}Z)-([0-9a-f]{16})\.snapshot")


class SourceCounts(Struct, frozen=True, array_like=True):
    """Number of memories of one source in a state, and numbers of changes by the refresh that took the snapshot."""

    source: str | None
    n_rows: int = 0
    added: int = 0
    changed: int = 0
    gone: int = 0


class SnapshotHeader(Struct, frozen=True):
    """Header of the file of a snapshot.

    Attributes
    ----------
    taken_at : datetime
        Moment when the memories were listed.
    present : datetime
        Moment of the state that the file is compared with, the newest one when it was written.
    n_rows : int
    sources : list of SourceCounts
    """

    taken_at: datetime
    present: datetime
    n_rows: int
    sources: list[SourceCounts]


class _HeaderOfFile(Struct):
    """Part of the header of a file of an archive that is about snapshots."""

    snapshot: SnapshotHeader | None = None


class Snapshot(Struct, frozen=True):
    """The file of a snapshot: its header, or the reason why it cannot be used."""

    file: Path
    taken_at: datetime
    header: SnapshotHeader | None = None
    error: str | None = None

    def read_header(self) -> SnapshotHeader:
        """Return the header; raise `FrameError` if the snapshot cannot be used."""
        if self.header is None:
            raise self.to_error(str(self.error))
        return self.header

    def to_error(self, fault: str) -> FrameError:
        """Make the error for a snapshot that cannot be used."""
        return FrameError(
            f"The snapshot of {format_moment(self.taken_at)} ({self.file}) {fault}. The other snapshots and the "
            "archive itself can be read: restore this one from a copy, or delete it."
        )


def format_moment(moment: datetime) -> str:
    """Return a moment in UTC as text that `parse_moment` understands.

    >>> format_moment(datetime(2026, 11, 24, 2, tzinfo=UTC))
    '2026-11-24 02:00:00'
    """
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def parse_moment(moment: object, name: str) -> datetime:
    """Read an argument as a moment; a text stands for the end of the day, minute or second that it names.

    >>> parse_moment("2026-11-24", "as_of")
    datetime.datetime(2026, 11, 24, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc)
    >>> parse_moment("2026-11-24 02:00+01:00", "as_of")
    datetime.datetime(2026, 11, 24, 1, 0, 59, 999999, tzinfo=datetime.timezone.utc)
    """
    try:
        if isinstance(moment, str) and not pd.isna(start := pd.Timestamp(moment)):
            length = pd.Period(moment).end_time - pd.Period(moment).start_time
            found = (start + length).floor("us").to_pydatetime(warn=False)
        elif isinstance(moment, datetime) and not pd.isna(moment):
            found = moment.to_pydatetime(warn=False) if isinstance(moment, pd.Timestamp) else moment
        elif isinstance(moment, date) and not pd.isna(moment):
            found = datetime.combine(moment, time.max)
        else:
            raise TypeError
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(
            f"{name}={moment!r:.60}: give a time such as '2026-11-24' or '2026-11-24 02:00', or a datetime"
        ) from None


# -- files


def name_snapshot(taken_at: datetime, data: bytes) -> str:
    """Return the name of the file of a snapshot with these bytes."""
    return f"{taken_at.astimezone(UTC):{_MOMENT}}-{_digest(data)}{SUFFIX}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def find_snapshots(path: Path) -> list[Snapshot]:
    """Return the snapshots of an archive, oldest first; those that cannot be used have the reason in ``error``."""
    with raise_os_errors_as(FrameError, f"{path / SNAPSHOTS} cannot be read", "check its permissions"):
        files = sorted((path / SNAPSHOTS).iterdir()) if (path / SNAPSHOTS).is_dir() else []
        found = [
            _read_snapshot(file, match[1], match[2])
            for file in files
            if (match := _NAME.fullmatch(file.name))
        ]
    present = max((one.header.present for one in found if one.header), default=None)
    return [
        Snapshot(one.file, one.taken_at, error="belongs to another state of this archive")
        if one.header and one.header.present != present
        else one
        for one in found
    ]


def _read_snapshot(file: Path, moment: str, digest: str) -> Snapshot:
    taken_at = datetime.strptime(moment, _MOMENT).replace(tzinfo=UTC)
    data = file.read_bytes()
    if _digest(data) != digest:
        return Snapshot(file, taken_at, error="is damaged: its bytes are not those that were written")
    try:
        metadata = pq.read_metadata(io.BytesIO(data)).metadata or {}
        header = msgspec.json.decode(metadata.get(HEADER, b"{}"), type=_HeaderOfFile).snapshot
    except (pa.ArrowException, OSError, ValueError):  # undamaged, but written by another program
        header = None
    if header is None or header.taken_at != taken_at:
        return Snapshot(file, taken_at, error="is not a snapshot of memframe, or was renamed")
    return Snapshot(file, taken_at, header)


def list_snapshots(path: str | PathLike[str]) -> pd.DataFrame:
    """List the snapshots of an archive, which `refresh_archive` keeps with ``keep``.

    Parameters
    ----------
    path : str or Path
        The folder of an archive.

    Returns
    -------
    DataFrame
        One row per snapshot, oldest first; the last one is the present state. ``taken_at``; ``n_rows``, the number of
        memories; ``added``, ``changed`` and ``gone`` by the refresh that took it; ``sources``, the number of memories
        by source; ``n_bytes`` of its file; ``error``, why a snapshot cannot be read. Empty if none was kept.

    Raises
    ------
    FrameError
        There is no archive at `path`, or something else.

    Examples
    --------
    >>> from memframe import export_memories, load_memories, refresh_archive, update_memories
    >>> n_rows = export_memories(access, folder / "kept")
    >>> run = update_memories(access, load_memories(access, limit=1).assign(title="Who Ilka was"))
    >>> changes = refresh_archive(access, folder / "kept", keep=True)
    >>> list_snapshots(folder / "kept")[["n_rows", "added", "changed", "gone"]]
       n_rows  added  changed  gone
    0     389      0        0     0
    1     389      0        1     0
    """
    target = expand_path(path)
    if not target.exists():
        raise FrameError(f"There is no archive at {target}: check the path.")
    rows = [_describe(one) for one in find_snapshots(target)]
    if not rows and not _is_archive(target):
        raise FrameError(f"{target} is not an archive: give the path of an export.")
    return pd.DataFrame(rows, columns=[*_COLUMNS]).astype(_COLUMNS)


def _is_archive(path: Path) -> bool:
    """Return True for a folder with a file of memories, and for a file with the extension of an archive."""
    if path.is_dir():
        return any(file.suffix in (".parquet", ".md") for file in path.iterdir())
    return path.suffix.lower() in (".parquet", ".jsonl", ".json", ".csv")


_COLUMNS = {
    "taken_at": "datetime64[us, UTC]",
    **dict.fromkeys(("n_rows", "added", "changed", "gone"), "Int64"),
    "sources": "object",
    "n_bytes": "Int64",
    "error": "str",
}


def _describe(one: Snapshot) -> dict[str, object]:
    row = {"taken_at": one.taken_at, "n_bytes": one.file.stat().st_size, "error": one.error}
    if one.header is None:
        return row
    counts = one.header.sources
    sums = {name: sum(getattr(each, name) for each in counts) for name in ("added", "changed", "gone")}
    sources = {each.source: each.n_rows for each in counts if each.n_rows}
    return {**row, "n_rows": one.header.n_rows, **sums, "sources": sources}


# -- retention

Keep = bool | Mapping[str, int]
"""True to keep every snapshot, or numbers by period, such as ``{"daily": 7, "weekly": 4, "monthly": 12}``."""


class Period(NamedTuple):
    """Period of a retention."""

    noun: str
    """Noun for the period, in the plural."""
    name: str
    """Format in which all moments of one period give the same text."""


PERIODS = {
    "last": Period("moments", _MOMENT),
    "hourly": Period("hours", "%Y-%m-%d %H"),
    "daily": Period("days", "%Y-%m-%d"),
    "weekly": Period("weeks", "%G-%V"),
    "monthly": Period("months", "%Y-%m"),
    "yearly": Period("years", "%Y"),
}
"""Periods by the words of restic; in UTC, weeks begin on Monday."""


def check_keep(keep: object) -> None:
    """Refuse a retention other than a bool, None, or numbers by period."""
    if isinstance(keep, bool | None):
        return
    if (
        not isinstance(keep, Mapping)
        or not keep.keys() <= PERIODS.keys()
        or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in keep.values())
        or not any(keep.values())
    ):
        raise ConfigError(
            f"keep={keep!r:.80}: give True, or numbers by period, such as keep={{'daily': 7}}; periods are "
            f"{', '.join(PERIODS)}"
        )


def choose_kept(moments: Iterable[datetime], keep: Mapping[str, int]) -> set[datetime]:
    """Choose the snapshots to keep, as ``restic forget`` does.

    In each of the last n periods that have a snapshot, the last snapshot is kept; if there are fewer than n, the oldest
    snapshot is kept as well. The newest of all is always kept, because it is the present state.

    >>> days = [datetime(2026, 11, day, hour, tzinfo=UTC) for day in (1, 5, 6) for hour in (2, 14)]
    >>> [f"{moment:%d. %H}" for moment in sorted(choose_kept(days, {"daily": 2}))]
    ['05. 14', '06. 14']
    >>> [f"{moment:%d. %H}" for moment in sorted(choose_kept(days, {"daily": 9}))]
    ['01. 02', '01. 14', '05. 14', '06. 14']
    """
    newest_first = sorted(moments, reverse=True)
    kept = set(newest_first[:1])
    for name, number in keep.items():
        last_of: dict[str, datetime] = {}
        for moment in newest_first:
            last_of.setdefault(moment.astimezone(UTC).strftime(PERIODS[name].name), moment)
        kept.update([*last_of.values()][:number])
        if len(last_of) < number:
            kept.update(newest_first[-1:])
    return kept


def find_as_of(snapshots: Sequence[Snapshot], as_of: object) -> Snapshot:
    """Return the last snapshot that was taken at or before a moment."""
    moment = parse_moment(as_of, "as_of")
    before = [one for one in snapshots if one.taken_at <= moment]
    if not before:
        raise FrameError(
            f"The first snapshot was taken at {format_moment(snapshots[0].taken_at)}, after {str(as_of)!r:.60}",
            hint=Hint(
                "choose a later time; list_snapshots shows them all",
                "choose a later time; memframe history shows them all",
            ),
        )
    return before[-1]


def next_moment(now: datetime, snapshots: Sequence[Snapshot]) -> datetime:
    """Return the moment of a snapshot that is taken now: after all others, whatever the clock says."""
    later = [one.taken_at + timedelta(microseconds=1) for one in snapshots[-1:]]
    return max([now.astimezone(UTC), *later])
