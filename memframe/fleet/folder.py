"""Keep the results of all users in a folder.

::

    outcomes.parquet
    nights.jsonl
    findings/user_id=5f0c9b1e-.../findings.parquet
    findings-before/user_id=5f0c9b1e-.../findings.parquet
    memories/user_id=5f0c9b1e-.../part-00000.parquet
    plans/user_id=5f0c9b1e-.../cleanup.plan

Each kind of result except plans (`plans`) is a Parquet dataset, partitioned by user. Readers of Parquet take
``user_id`` from the names of folders; `load_archive` opens each folder of memories by itself. The files of one user
are written completely or not at all, findings last, so that an existing folder is complete.

Findings name their run, which is called a night, and the digest of what was audited (`work.digest_listing`). The next
night lists every user again, and audits those whose digest differs; the previous audit is kept for
`FleetFolder.compare`.
"""

from __future__ import annotations

import io
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from memframe.archive.formats import open_by_bytes
from memframe.archive.sealing import Reader
from memframe.audit.result import Comparison
from memframe.client.responses import canonical_id
from memframe.decisions import Settled
from memframe.display import html_card, number_of
from memframe.errors import (
    FrameError,
    Hint,
)
from memframe.files import atomic_file, atomic_folder, expand_path, process_lock, write_own_file
from memframe.fleet.nights import (
    NIGHTS,
    Night,
    NightChanges,
    compare_findings,
    count_findings,
    join_users,
    metadata_of,
    night_of,
    nights_frame,
    parse_night,
    read_all_findings,
    read_findings,
    read_nights,
    write_night,
)
from memframe.fleet.work import (
    BEFORE,
    DATED,
    FINDINGS,
    FINDINGS_FILE,
    LISTING,
    MEMORIES,
    NIGHT,
    OUTCOME_DTYPES,
    RESULT_KINDS,
    SETTLED_COUNTS,
    FleetUser,
    UserResult,
    Work,
    outcomes_frame,
)

OUTCOMES_FILE = "outcomes.parquet"
_PREFIX = "user_id="


def describe_outcomes(outcomes: pd.DataFrame) -> str:
    """Count users by status, in words."""
    counts = outcomes["status"].value_counts()
    return ", ".join(f"{count:,} {status}" for status, count in counts.items()) or "none"


_MAX_NAME_BYTES = 230
"""Most bytes of a folder's name: file systems allow 255, and a folder that is being written has a longer name."""


def _folder_name(user_id: str) -> str:
    return f"{_PREFIX}{quote(canonical_id(user_id), safe='')}"


def can_name_folder(user_id: str) -> bool:
    """Return True if file systems allow the name of this user's folders.

    >>> can_name_folder("5f0c9b1e-0000-4000-8000-00000000000a"), can_name_folder("a" * 300)
    (True, False)
    """
    return len(_folder_name(user_id)) <= _MAX_NAME_BYTES


AUDIT_FIRST = Hint(
    "check the path, or run audit_fleet first", "check the path, or run memframe fleet audit first"
)
"""The next step if a folder has no audit."""


class FleetFolder:
    """The results of a fleet in a folder.

    Parameters
    ----------
    path : str or Path

    Attributes
    ----------
    path : Path
    n_before : int
        Users whose earlier results the run kept, because they were already exported or nothing has changed since their
        audit; 0 for a folder that was only opened.
    forgotten : list of str
        Ids of users whose results the run deleted, because they had revoked their approval or were erased.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = expand_path(path)
        self.n_before = 0
        self.forgotten: list[str] = []

    def __repr__(self) -> str:
        return f"<memframe.FleetFolder {self.path}>"

    def _repr_html_(self) -> str:
        return html_card("Fleet folder", {"path": self.path, "users": describe_outcomes(self.outcomes)})

    @property
    def outcomes(self) -> pd.DataFrame:
        """One row per user: ``user_id request_id status n_rows error``, as of the last run."""
        path = self.path / OUTCOMES_FILE
        if not path.exists():
            return outcomes_frame([])
        with path.open("rb") as file:
            return pd.read_parquet(file).astype(OUTCOME_DTYPES)

    @property
    def findings(self) -> pd.DataFrame:
        """The last findings of each user, with ``user_id`` as the first column; read from the files each time.

        If a user's last audit failed, they are those of the last one that succeeded.
        """
        return read_all_findings((self.user_of(place), place) for place in self.folders(FINDINGS))

    def severities(self, user_ids: Iterable[str] | None = None) -> Counter[str]:
        """Count findings by severity, of some users or of all."""
        counts: Counter[str] = Counter()
        for severity, n in self.tally(user_ids)[["severity", "n"]].itertuples(index=False, name=None):
            counts[severity] += n
        return counts

    @property
    def nights(self) -> pd.DataFrame:
        """One row per night: ``night done failed revoked audited seconds new gone settled high medium low info``.

        ``done``, ``failed``, ``revoked`` and ``audited`` (users with a change) count users; ``new`` and the
        following columns count findings.
        """
        return nights_frame(read_nights(self.path / NIGHTS))

    def tally(self, user_ids: Iterable[str] | None = None) -> pd.DataFrame:
        """Count findings of some users or of all, without reading them: ``user_id check severity source n``."""
        places = (
            self.folders(FINDINGS) if user_ids is None else [self.place(FINDINGS, one) for one in user_ids]
        )
        rows = [(self.user_of(place), *count) for place in places for count in count_findings(place)]
        names = ["user_id", "check", "severity", "source", "n"]
        return pd.DataFrame(rows, columns=names).astype({**dict.fromkeys(names, "str"), "n": "int64"})

    @property
    def settled(self) -> Settled:
        """Count the findings that the last audits left out, because decisions about existing memories settle them."""
        each = [metadata_of(place).get(SETTLED_COUNTS) for place in self.folders(FINDINGS)]
        counts = [msgspec.json.decode(one, type=Settled) for one in each if one is not None]
        names = Settled.__struct_fields__
        return Settled(**{name: sum(getattr(one, name) for one in counts) for name in names})

    def compare(self, night: datetime | str | None = None) -> Comparison:
        """Compare the last audit of each user with the one before: new, gone, settled and remaining findings.

        Parameters
        ----------
        night : datetime or str, optional
            Compare users who were audited since this time (ISO 8601, UTC if it names no zone); by default those
            of the last run. The findings of all others count as remaining.

        Returns
        -------
        Comparison
            Four frames with ``user_id`` as the first column.

        Raises
        ------
        ConfigError
            ``night`` is not a time.
        FrameError
            The folder has no audit.

        Examples
        --------
        >>> from memframe import audit_fleet
        >>> nights = audit_fleet(client, folder / "nightly", checks=["secret"])
        >>> nights.compare().counts["stayed"]
        0
        >>> nights = audit_fleet(client, folder / "nightly", checks=["secret"])  # nothing has changed since
        >>> nights.compare().counts["new"]
        0
        """
        changes = self.find_changes(night)
        stayed = pd.concat([changes.stayed, read_all_findings(changes.unchanged)], ignore_index=True)
        return Comparison(changes.new, changes.gone, stayed, changes.settled, changes.note)

    def find_changes(self, night: datetime | str | None = None) -> NightChanges:
        """Compare as `compare` does, without reading the findings of users who were not audited since."""
        since = self.night if night is None else parse_night(night)
        places = self.folders(FINDINGS)
        if not places or since is None:
            raise FrameError(f"{self.path} contains no audit of a fleet", hint=AUDIT_FIRST)
        parts: list[list[tuple[str, pd.DataFrame]]] = [[], [], [], []]
        unchanged, first, n_skipped = [], [], 0
        for place in places:
            user_id = self.user_of(place)
            before = self.place(BEFORE, user_id)
            if night_of(place) < since:
                unchanged.append((user_id, place))
            elif not before.is_dir():
                first.append((user_id, place))
            else:
                n_skipped += night_of(before) >= since
                changed = compare_findings(read_findings(place), read_findings(before))
                for part, frame in zip(parts, changed, strict=True):
                    part.append((user_id, frame))
        skipped = number_of(n_skipped, "user was", "users were")
        note = f"{skipped} audited several times since: only the last two audits of each are kept"
        new, gone, stayed, settled = map(join_users, parts)
        if first:  # all their findings are new, and are not compared
            new = pd.concat([new, read_all_findings(first)], ignore_index=True)
        n_audited = len(parts[0]) + len(first)
        return NightChanges(new, gone, stayed, settled, unchanged, n_audited, note if n_skipped else "")

    def to_html(self, path: str | PathLike[str], night: datetime | str | None = None) -> None:
        """Write one page: new findings first, users by their worst findings, checks over time, sources; no texts.

        An earlier report at `path` is replaced, any other file is not.

        Parameters
        ----------
        path : str or Path
        night : datetime or str, optional
            As in `compare`.

        Raises
        ------
        ConfigError
            ``night`` is not a time.
        FrameError
            The folder has no audit; or the file cannot be written, or is not a report.

        Examples
        --------
        >>> from memframe import audit_fleet
        >>> audit_fleet(client, folder / "nightly", checks=["secret"]).to_html(folder / "nightly.html")
        """
        write_own_file(path, self.html(night).encode(), "report", error=FrameError)

    def html(self, night: datetime | str | None = None) -> str:
        """Return the page that `to_html` writes."""
        from memframe.fleet.page import page_html  # noqa: PLC0415 - a run does not need matplotlib

        return page_html(
            self.find_changes(night), self.tally(), self.outcomes, read_nights(self.path / NIGHTS)
        )

    @property
    def night(self) -> str | None:
        """Start of the last run, as ISO 8601 in UTC; None if it is unknown."""
        night = self._about_run.get(NIGHT)
        return None if night is None else night.decode()

    @property
    def _about_run(self) -> Mapping[bytes, bytes]:
        path = self.path / OUTCOMES_FILE
        return (_read_metadata(path).metadata or {}) if path.exists() else {}

    @staticmethod
    def user_of(place: Path) -> str:
        """Return the id of the user whose results are in this folder."""
        return unquote(place.name.removeprefix(_PREFIX))

    def forget(self, user_ids: Iterable[str]) -> list[str]:
        """Delete the findings, memories and plans of users; return the ids of users who had any.

        Findings are deleted first, so that an interrupted deletion leaves nothing complete; the next call deletes the
        rest. Rows of `outcomes` stay.
        """
        forgotten = []
        for user_id in filter(can_name_folder, user_ids):
            places = [self.place(kind, user_id) for kind in RESULT_KINDS]
            half_written = [one for place in places for one in place.parent.glob(f".{place.name}.????????*")]
            existing = [place for place in (*places, *half_written) if place.is_dir()]
            for place in existing:
                shutil.rmtree(place)
            if existing:
                forgotten.append(user_id)
        return forgotten

    def archive(self, user_id: str) -> Path:
        """Return the folder of a user's memories, for `load_archive`."""
        return self.place(MEMORIES, user_id)

    def place(self, kind: str, user_id: str) -> Path:
        """Return the folder of one kind of result of a user."""
        return self.path / kind / _folder_name(user_id)

    def _has(self, user_id: str, kinds: Iterable[str]) -> bool:
        return can_name_folder(user_id) and all(self.place(kind, user_id).is_dir() for kind in kinds)

    def folders(self, kind: str) -> list[Path]:
        """Return the folders of one kind of result, one per user."""
        return sorted((self.path / kind).glob(f"{_PREFIX}*"))

    # -- for runs

    def lock_run(self) -> AbstractContextManager[None]:
        """Let one process work in the folder."""
        return process_lock(self.path / ".run.lock", what=f"the folder {self.path}")

    def prepare(self) -> None:
        """Create the folder, private to its owner; refuse one that holds other files."""
        if not self.path.parent.is_dir():
            raise FrameError(f"The folder {self.path.parent} does not exist: create it, or choose another.")
        if os.path.lexists(self.path) and not self.path.is_dir():
            raise FrameError(f"{self.path} is not a folder, and a fleet needs one: choose another path.")
        self.path.mkdir(mode=0o700, exist_ok=True)
        ours = {OUTCOMES_FILE, NIGHTS, *RESULT_KINDS}
        strange = [
            entry.name for entry in self.path.iterdir() if entry.name not in ours and entry.name[0] != "."
        ]
        if strange:
            raise FrameError(
                f"{self.path} holds {strange[0]}, which is not a result of a fleet: choose another folder."
            )

    def check_form(self, work: Work) -> None:
        """Refuse plain archives in a folder of sealed ones, and the reverse."""
        for archive in self.folders(MEMORIES)[:1] if work.archive else ():
            header = Reader(archive).header
            found = "sealed" if header and header.seal else "plain"
            if work.archive != found:
                raise FrameError(
                    f"{self.path} holds {found} archives, and {work.archive} ones are asked for: choose another folder."
                )

    def find_complete(self, users: Iterable[FleetUser], kinds: Sequence[str]) -> dict[FleetUser, UserResult]:
        """Return users with complete files, and their outcomes; a run that was killed has written no outcomes."""
        before: dict[Any, Any] = {
            row.user_id: row for row in self.outcomes.itertuples() if row.status == "done"
        }
        found = {}
        for user in users:
            user_id = user.user_id
            if user_id and self._has(user_id, kinds):
                row = before.get(user_id)
                error = row.error if row and isinstance(row.error, str) else None
                found[user] = UserResult(
                    user, "done", row.n_rows if row else self._count(user_id), error=error
                )
        return found

    def _count(self, user_id: str) -> int:
        """Count the memories of a user from the files alone."""
        parts = self.place(MEMORIES, user_id).glob("*.parquet")
        return sum(_read_metadata(part).num_rows for part in parts)

    def with_digest(self, user: FleetUser, kinds: Sequence[str]) -> FleetUser:
        """Return the user with the digest of the audited listing, if the folder has all results of the user."""
        if not user.user_id or not self._has(user.user_id, kinds):
            return user
        about = metadata_of(self.place(FINDINGS, user.user_id))
        dated = frozenset(msgspec.json.decode(about.get(DATED, b"[]"), type=list[str]))
        return replace(user, digest=about.get(LISTING, b"").decode() or None, dated=dated)

    def begin_night(self, moment: datetime) -> str:
        """Return the name of a new run, or of an interrupted one that now continues."""
        about = self._about_run
        night = about[NIGHT].decode() if about.get(RUN_STATE) == BEGUN else moment.astimezone(UTC).isoformat()
        self.write_outcomes(self.outcomes, night, BEGUN)
        return night

    def write_outcomes(self, outcomes: pd.DataFrame, night: str, state: bytes) -> None:
        """Write the table of outcomes, which names the run and says whether it has ended."""
        table = pa.Table.from_pandas(outcomes, preserve_index=False)
        metadata = {**(table.schema.metadata or {}), NIGHT: night.encode(), RUN_STATE: state}
        with atomic_file(self.path / OUTCOMES_FILE) as file:
            pq.write_table(table.replace_schema_metadata(metadata), file)

    def drop_outcomes(self, user_ids: Iterable[str]) -> None:
        """Remove the rows of users from the table of outcomes."""
        outcomes = self.outcomes
        is_named = outcomes["user_id"].fillna("").map(canonical_id).isin({*user_ids})
        if is_named.any():
            about = self._about_run
            night, state = about.get(NIGHT, b"").decode(), about.get(RUN_STATE, ENDED)
            self.write_outcomes(outcomes[~is_named].reset_index(drop=True), night, state)

    def record_night(self, results: Iterable[UserResult], night: str, seconds: float) -> None:
        """Add the numbers of a run that has ended, unless the folder has no audit."""
        if not self.folders(FINDINGS):
            return
        changes, counts = self.find_changes(night), self.tally()
        by_kind: Counter[tuple[str, str]] = Counter()
        for check, severity, n in counts[["check", "severity", "n"]].itertuples(index=False, name=None):
            by_kind[check, severity] += n
        users = Counter(result.status for result in results)
        numbers = Night(
            night=night,
            done=users["done"],
            failed=users["failed"],
            revoked=users["revoked"],
            audited=changes.n_audited,
            seconds=round(seconds, 3),
            new=len(changes.new),
            gone=len(changes.gone),
            settled=len(changes.settled),
            findings=tuple((*kind, n) for kind, n in sorted(by_kind.items())),
        )
        write_night(self.path / NIGHTS, numbers)

    def save(self, result: UserResult) -> None:
        """Save the files of a user, findings last; findings of another night are kept as the previous ones."""
        user_id = result.user.user_id
        for kind in (MEMORIES, FINDINGS):
            files = {
                place.removeprefix(f"{kind}/"): data
                for place, data in result.files.items()
                if place.startswith(f"{kind}/")
            }
            if files and user_id is not None:
                place = self.place(kind, user_id)
                if kind == FINDINGS and place.is_dir() and night_of(place) != _night_in(files[FINDINGS_FILE]):
                    self._fill(BEFORE, user_id, {FINDINGS_FILE: (place / FINDINGS_FILE).read_bytes()})
                self._fill(kind, user_id, files)

    def _fill(self, kind: str, user_id: str, files: Mapping[str, bytes]) -> None:
        (self.path / kind).mkdir(mode=0o700, exist_ok=True)
        with atomic_folder(self.place(kind, user_id)) as fresh:
            for name, data in files.items():
                with atomic_file(fresh / name) as file:
                    file.write(data)


RUN_STATE, BEGUN, ENDED = b"memframe.run", b"begun", b"ended"
"""Metadata of outcomes: whether the run has ended."""


def _read_metadata(path: Path) -> pq.FileMetaData:
    with open_by_bytes(path) as file:
        return pq.read_metadata(file)


def _night_in(file: bytes) -> str:
    return str(pq.read_metadata(io.BytesIO(file)).metadata.get(NIGHT, b""), "ascii")
