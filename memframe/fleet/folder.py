"""The folder of a fleet: a Parquet dataset for each kind of thing, partitioned by user, and the outcomes.

::

    outcomes.parquet
    findings/user_id=5f0c9b1e-.../findings.parquet
    memories/user_id=5f0c9b1e-.../part-00000.parquet

Readers of Parquet take ``user_id`` from the folders' names; `load_archive` opens each folder of memories by
itself. An id that is too long for a name has a digest in its place, and stands in the files. What belongs to one
user arrives whole or not at all, findings last: what is there is done.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pandas as pd
import pyarrow.parquet as pq

from memframe.archive.reading import Reader
from memframe.audit.findings import findings_frame
from memframe.errors import FrameError
from memframe.fleet.haul import Haul
from memframe.fleet.members import Member
from memframe.fleet.outcomes import DTYPES, outcomes_frame
from memframe.fleet.work import FINDINGS, FINDINGS_FILE, MEMORIES, N_ROWS, USER_ID, Form, Work
from memframe.private_file import expand_path, filling_privately, writing_privately

_OUTCOMES = "outcomes.parquet"
_PREFIX = "user_id="

_MAX_NAME = 230
"""Of 255 bytes in a file's name: there are the prefix, and 17 of `filling_privately`."""


class FleetFolder:
    """What runs over a fleet have left in a folder.

    Parameters
    ----------
    path : str or path

    Attributes
    ----------
    path : Path
    n_before : int
        Users of whom everything was there before the run that returned this; 0 of a folder that is only read.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = expand_path(path)
        self.n_before = 0

    def __repr__(self) -> str:
        return f"<memframe.FleetFolder {self.path}>"

    @property
    def outcomes(self) -> pd.DataFrame:
        """One row a user: ``user_id request_id status n_rows error``, as the last run left it."""
        path = self.path / _OUTCOMES
        return pd.read_parquet(path).astype(DTYPES) if path.exists() else outcomes_frame([])

    @property
    def findings(self) -> pd.DataFrame:
        """The findings of all users, with ``user_id`` as the first column; read from the files each time."""
        frames = []
        for folder in self._folders(FINDINGS):
            file = pq.ParquetFile(folder / FINDINGS_FILE)
            frame = file.read().to_pandas()
            user_id = user_of(folder, file.metadata.metadata)
            frame.insert(0, "user_id", pd.Series(user_id, index=frame.index, dtype="str"))
            frames.append(frame)
        empty = findings_frame(id=[])
        empty.insert(0, "user_id", pd.Series(dtype="str"))
        return pd.concat(frames, ignore_index=True) if frames else empty

    def severities(self) -> Counter[str]:
        """How many findings there are of each severity, counted without having all of them in memory."""
        counts: Counter[str] = Counter()
        for folder in self._folders(FINDINGS):
            counts.update(pq.ParquetFile(folder / FINDINGS_FILE).read(["severity"])["severity"].to_pylist())
        return counts

    def kept(self, user_id: str) -> list[Path]:
        """Folders with what was kept of a user."""
        return [place for kind in (FINDINGS, MEMORIES) if (place := self._place(kind, user_id)).is_dir()]

    def archive(self, user_id: str) -> Path:
        """Where the memories of a user are, for `load_archive`."""
        return self._place(MEMORIES, user_id)

    def _place(self, kind: str, user_id: str) -> Path:
        return self.path / kind / f"{_PREFIX}{name_of(user_id)}"

    def _folders(self, kind: str) -> Iterator[Path]:
        return iter(sorted((self.path / kind).glob(f"{_PREFIX}*")))

    # -- for runs

    def prepare(self, work: Work) -> None:
        """Make the folder, closed to others; refuse one in which something else stands."""
        if not self.path.parent.is_dir():
            raise FrameError(f"The folder {self.path.parent} does not exist: create it, or choose another.")
        self.path.mkdir(mode=0o700, exist_ok=True)
        ours = {_OUTCOMES, FINDINGS, MEMORIES}
        strange = [
            entry.name for entry in self.path.iterdir() if entry.name not in ours and entry.name[0] != "."
        ]
        if strange:
            raise FrameError(
                f"{self.path} holds {strange[0]}, which is not of a fleet: choose another folder."
            )
        first = next(self._folders(MEMORIES), None)
        if first and work.archive and work.archive != (found := _form_of(first)):
            raise FrameError(
                f"{self.path} holds {found} archives, and {work.archive} ones are asked for: choose another folder."
            )

    def done(self, members: Iterable[Member], kinds: Iterable[str]) -> dict[Member, Haul]:
        """Members of whom everything is there, with the outcome of the run that brought it."""
        before = {row.user_id: row for row in self.outcomes.itertuples() if row.status == "done"}
        kinds = tuple(kinds)
        return {
            member: self._haul_of(member, before.get(member.user_id))
            for member in members
            if member.user_id and all(self._place(kind, member.user_id).is_dir() for kind in kinds)
        }

    def land(self, haul: Haul) -> None:
        """Put the files of a user in their place, findings last."""
        user_id = haul.member.user_id
        for kind in (MEMORIES, FINDINGS):
            files = _files_of(kind, haul.files)
            if files and user_id is not None:
                (self.path / kind).mkdir(mode=0o700, exist_ok=True)
                with filling_privately(self._place(kind, user_id)) as fresh:
                    for name, data in files.items():
                        with writing_privately(fresh / name) as file:
                            file.write(data)

    def keep_outcomes(self, outcomes: pd.DataFrame) -> None:
        """Replace the table of outcomes."""
        with writing_privately(self.path / _OUTCOMES) as file:
            outcomes.to_parquet(file, index=False)

    def _haul_of(self, member: Member, row: Any) -> Haul:
        """What an earlier run said of a user; one that was killed said nothing."""
        if row is None:
            return Haul(member, "done", self._n_rows_of(member.user_id or ""))
        return Haul(member, "done", row.n_rows, error=row.error if isinstance(row.error, str) else None)

    def _n_rows_of(self, user_id: str) -> int:
        """Memories of a user whose row a run that was killed could not write."""
        findings = self._place(FINDINGS, user_id) / FINDINGS_FILE
        if findings.exists():
            return int(pq.read_metadata(findings).metadata[N_ROWS])
        parts = self._place(MEMORIES, user_id).glob("*.parquet")
        return sum(pq.read_metadata(part).num_rows for part in parts)


def _form_of(archive: Path) -> Form:
    header = Reader(archive).header()
    return "sealed" if header and header.seal else "plain"


def _files_of(kind: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {
        name.removeprefix(f"{kind}/"): data for name, data in files.items() if name.startswith(f"{kind}/")
    }


def name_of(user_id: str) -> str:
    """Return an id as part of a file's name: percent-encoded, or a digest of one that would be too long.

    >>> name_of("a/b")
    'a%2Fb'
    >>> name_of("x" * 300)[:9]
    '@0d4e2ca9'
    """
    quoted = quote(user_id, safe="")
    return quoted if len(quoted) <= _MAX_NAME else f"@{hashlib.sha256(user_id.encode()).hexdigest()}"


def user_of(folder: Path, metadata: Mapping[bytes, bytes]) -> str:
    """Return the user whose folder it is, which the metadata of a file in it says, or in older ones only its name.

    >>> user_of(Path("findings/user_id=a%2Fb"), {})
    'a/b'
    """
    return metadata[USER_ID].decode() if USER_ID in metadata else unquote(folder.name.removeprefix(_PREFIX))
