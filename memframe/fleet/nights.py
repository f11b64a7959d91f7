"""Compare the nights of a fleet: findings that are new, gone, settled or stayed, and their counts over time.

``nights.jsonl`` has a line for each run of an audit, with numbers over all users only. So it is kept when the results
of users who revoked are deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from memframe.archive.formats import open_by_bytes
from memframe.audit.findings import findings_frame
from memframe.audit.identity import keys_of, split_by_keys
from memframe.errors import ConfigError, FrameError
from memframe.files import atomic_file
from memframe.fleet.work import COUNTS, FINDINGS_FILE, NIGHT, REJECTED, TEXT_DIGEST, FindingCount

NIGHTS = "nights.jsonl"

MAX_NIGHTS = 1_000
"""Most lines that are kept, the newest ones."""


class Night(Struct, frozen=True, kw_only=True):
    """The numbers of one run of an audit."""

    night: str
    """Start of the night, as ISO 8601 in UTC."""
    done: int = 0
    failed: int = 0
    revoked: int = 0
    """Numbers of users that are done, failed or revoked."""
    audited: int = 0
    """Number of users with a change, or audited for the first time."""
    seconds: float = 0.0
    """Duration of the run; if it was interrupted and continued, of its last part."""
    new: int = 0
    gone: int = 0
    settled: int = 0
    """Numbers of findings that are new, gone or settled."""
    findings: tuple[tuple[str, str, int], ...] = ()
    """Check, severity, and the number of findings over all users."""

    def count(self, severity: str) -> int:
        """Count the findings of one severity."""
        return sum(n for _, name, n in self.findings if name == severity)


def read_nights(path: Path) -> list[Night]:
    """Read the nights of a folder, the oldest first.

    Raises
    ------
    FrameError
        A line is damaged.
    """
    if not path.exists():
        return []
    nights = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            nights.append(msgspec.json.decode(line, type=Night))
        except msgspec.DecodeError as fault:
            raise FrameError(f"{path}: line {number} is damaged ({fault}): delete that line") from None
    return nights


def write_night(path: Path, night: Night) -> None:
    """Add a night; it replaces an earlier part of the same run."""
    nights = [*(one for one in read_nights(path) if one.night != night.night), night][-MAX_NIGHTS:]
    with atomic_file(path) as file:
        file.writelines(msgspec.json.encode(one) + b"\n" for one in nights)


def nights_frame(nights: Iterable[Night]) -> pd.DataFrame:
    """Return nights as a frame, with a column of findings for each severity.

    >>> nights_frame([Night(night="2026-11-24T02:00:00+00:00", done=3, findings=(("secret", "high", 2),))]).high.item()
    2
    """
    numbers = ("done", "failed", "revoked", "audited", "seconds", "new", "gone", "settled")
    severities = ("high", "medium", "low", "info")
    nights = [*nights]
    columns = {name: [getattr(one, name) for one in nights] for name in numbers}
    columns |= {name: [one.count(name) for one in nights] for name in severities}
    begun = pd.to_datetime([one.night for one in nights], utc=True, format="ISO8601").as_unit("us")
    return pd.DataFrame({"night": begun, **columns}).astype(
        {name: "float64" if name == "seconds" else "int64" for name in columns}
    )


def parse_night(night: object) -> str:
    """Return a moment as the name of a run that began then.

    >>> parse_night("2026-11-23")
    '2026-11-23T00:00:00+00:00'
    """
    try:
        moment = datetime.fromisoformat(night) if isinstance(night, str) else night
        if isinstance(moment, datetime) and pd.notna(moment):
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except ValueError:
        pass  # the refusal is below
    raise ConfigError(
        f"night={night!r:.60}: give a time such as '2026-11-23' or '2026-11-23T02:00', or a datetime"
    )


# -- the findings of one user


def metadata_of(place: Path) -> Mapping[bytes, bytes]:
    """Read the metadata of the findings in a folder, without the findings."""
    with open_by_bytes(place / FINDINGS_FILE) as file:
        return pq.read_metadata(file).metadata or {}


def night_of(place: Path) -> str:
    """Return the run of findings; for those of earlier versions an empty text, which is older than any run."""
    return metadata_of(place).get(NIGHT, b"").decode("ascii")


def count_findings(place: Path) -> list[FindingCount]:
    """Return the counts of findings; those of earlier versions are counted here, without sources."""
    if (counts := metadata_of(place).get(COUNTS)) is not None:
        return msgspec.json.decode(counts, type=list[FindingCount])
    found = _read_table(place)
    kinds = Counter(zip(found["check"].to_pylist(), found["severity"].to_pylist(), strict=True))
    return [(check, severity, None, n) for (check, severity), n in kinds.items()]


class FindingsOfUser(NamedTuple):
    """The findings of one audit of a user."""

    frame: pd.DataFrame
    digests: list[str] | None
    """Digests of the texts that they judge; None if an earlier version has stored none."""
    rejected: list[tuple[object, ...]]
    """Identities of the findings that a person has rejected."""

    @property
    def keys(self) -> list[tuple[object, ...]]:
        """Identities of the findings."""
        return keys_of(self.frame, self.digests)


def read_findings(place: Path) -> FindingsOfUser:
    """Read the findings in a folder."""
    table = _read_table(place)
    digests = table[TEXT_DIGEST].to_pylist() if TEXT_DIGEST in table.column_names else None
    frame = _without_digests(table).to_pandas()
    rejected = (table.schema.metadata or {}).get(REJECTED, b"[]")
    keys = [tuple(key) for key in msgspec.json.decode(rejected)]
    return FindingsOfUser(frame, None if digests is None or None in digests else digests, keys)


def compare_findings(later: FindingsOfUser, earlier: FindingsOfUser) -> tuple[pd.DataFrame, ...]:
    """Return new, gone, remaining and settled findings; texts are compared if both audits have their digests."""
    if later.digests is None or earlier.digests is None:
        later, earlier = later._replace(digests=None), earlier._replace(digests=None)
    rejected = later.rejected if later.digests is not None else []
    return split_by_keys(later.frame, later.keys, earlier.frame, earlier.keys, rejected)


# -- of many users


class NightChanges(NamedTuple):
    """New, gone, remaining and settled findings of the users who were audited since a night."""

    new: pd.DataFrame
    gone: pd.DataFrame
    stayed: pd.DataFrame
    settled: pd.DataFrame
    unchanged: list[tuple[str, Path]]
    """The other users, and the folders of their findings."""
    n_audited: int
    note: str


def join_users(frames: Iterable[tuple[str, pd.DataFrame]]) -> pd.DataFrame:
    """Join findings of users, with ``user_id`` as the first column; without any, return an empty frame with it."""
    filled = [(user_id, frame) for user_id, frame in frames if len(frame)] or [("", findings_frame(id=[]))]
    joined = pd.concat([frame for _, frame in filled], ignore_index=True)
    users = [user_id for user_id, frame in filled for _ in range(len(frame))]
    joined.insert(0, "user_id", pd.Series(users, index=joined.index, dtype="str"))
    return joined


def read_all_findings(places: Iterable[tuple[str, Path]]) -> pd.DataFrame:
    """Read the findings of users as `join_users` returns them; files are joined as tables, before they are a frame."""
    tables, users = [], []
    for user_id, place in places:
        table = _without_digests(_read_table(place))
        if len(table):
            tables.append(table)
            users += [user_id] * len(table)
    if not tables:
        return join_users([])
    joined: pd.DataFrame = pa.concat_tables(tables, promote_options="permissive").to_pandas()
    joined.insert(0, "user_id", pd.Series(users, index=joined.index, dtype="str"))
    return joined


def _read_table(place: Path) -> pa.Table:
    with open_by_bytes(place / FINDINGS_FILE) as file:
        return pq.ParquetFile(file).read()


def _without_digests(table: pa.Table) -> pa.Table:
    return table.drop_columns([TEXT_DIGEST]) if TEXT_DIGEST in table.column_names else table
