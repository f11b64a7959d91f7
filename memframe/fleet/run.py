"""A run over a fleet: hauls in whatever order they come, landed in a folder, each user once.

Many users from one machine: threads, which wait for the service together and slow down together.

The folder of a fleet: a Parquet dataset for each kind of thing, partitioned by user, and the outcomes.

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
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, cast
from urllib.parse import quote, unquote

import pandas as pd
import pyarrow.parquet as pq
from msgspec.structs import replace

from memframe.archive.places import raise_write_errors
from memframe.archive.sealing import Reader
from memframe.audit.findings import findings_frame
from memframe.client import Client
from memframe.client.retry import RateLimiter, SharedRateLimiter
from memframe.errors import ConfigError, FrameError, check_kind
from memframe.files import atomic_file, atomic_folder, expand_path
from memframe.fleet.work import (
    DTYPES,
    FINDINGS,
    FINDINGS_FILE,
    MEMORIES,
    N_ROWS,
    USER_ID,
    Form,
    Haul,
    Member,
    Work,
    approved_and_revoked,
    carry_out,
    key_of,
    outcomes_frame,
    revoked,
)
from memframe.listing import is_count
from memframe.progress import Progress, ProgressOption

if TYPE_CHECKING:
    from distributed import Client as DaskClient


def in_threads(client: Client, members: Iterable[Member], work: Work, *, workers: int) -> Iterator[Haul]:
    """Hauls as they come in, in any order. What is under way when the caller leaves is finished, no more begun."""
    with client.rate_limited(SharedRateLimiter(RateLimiter(workers))), _pool(workers) as pool:
        rest = iter(members)
        under_way: set[Future[Haul]] = set()
        while True:
            due = islice(rest, 2 * workers - len(under_way))  # no more in memory than keeps all of them busy
            under_way |= {pool.submit(carry_out, client, member, work) for member in due}
            if not under_way:
                return
            finished, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in finished)


@contextmanager
def _pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Threads, which leave what waits for them undone when the block ends."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="memframe-fleet")
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


_OUTCOMES = "outcomes.parquet"
_PREFIX = "user_id="

_MAX_NAME = 230
"""Of 255 bytes in a file's name: there are the prefix, and 17 of `atomic_folder`."""


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
                with atomic_folder(self._place(kind, user_id)) as fresh:
                    for name, data in files.items():
                        with atomic_file(fresh / name) as file:
                            file.write(data)

    def keep_outcomes(self, outcomes: pd.DataFrame) -> None:
        """Replace the table of outcomes."""
        with atomic_file(self.path / _OUTCOMES) as file:
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


class How(TypedDict):
    """How the work is shared out, and shown."""

    scheduler: Literal["threads"] | DaskClient
    workers: int
    progress: ProgressOption


def filled(client: Client, path: str | PathLike[str], work: Work, **how: Unpack[How]) -> FleetFolder:
    """A folder in which everything that was missing of the work is there, or why it is not."""
    check_kind("client", client, Client)
    folder = FleetFolder(expand_path(path))
    with raise_write_errors(folder.path):
        folder.prepare(work)
        approved, gone = approved_and_revoked(client.access_requests())
        there = folder.done(approved, work.kinds)
        folder.n_before = len(there)
        missing = [member for member in approved if member not in there]
        hauls = [*there.values(), *map(revoked, gone)]
        try:
            for haul in hauls_of(client, missing, work, **how):
                folder.land(haul)
                hauls.append(replace(haul, files={}))
        finally:  # also of a run that was stopped
            folder.keep_outcomes(outcomes_frame(each_once([*approved, *gone], hauls)))
    return folder


def hauls_of(client: Client, members: Sequence[Member], work: Work, **how: Unpack[How]) -> Iterator[Haul]:
    """Hauls as they come in, counted for whoever looks."""
    scheduler, workers = how["scheduler"], how["workers"]
    if not is_count(workers, at_least=1):
        raise ConfigError(f"workers={workers!r}: give a whole number from 1")
    with Progress(how["progress"], total=len(members), text="users") as bar:
        if scheduler == "threads":
            hauls = in_threads(client, members, work, workers=operator.index(workers))
        else:
            dask_client = _checked(scheduler)
            hauls = _cluster().on_cluster(dask_client, client, members, work)
        for haul in hauls:
            yield haul
            bar.step()


def dask_client_at(address: str) -> DaskClient:
    """A client of the Dask cluster whose scheduler has this address."""
    found: DaskClient = _cluster().client_at(address)
    return found


def _cluster() -> ModuleType:
    """The module that knows Dask, loaded by whoever needs it."""
    try:
        return import_module("memframe.fleet.dask")
    except ModuleNotFoundError as error:
        raise ConfigError(f"a cluster needs the library {error.name}: pip install 'memframe[dask]'") from None


def _checked(scheduler: object) -> DaskClient:
    if hasattr(scheduler, "scheduler_info"):
        return cast("DaskClient", scheduler)
    raise ConfigError(
        f"scheduler={scheduler!r:.60}: give 'threads', or a dask.distributed.Client (pip install 'memframe[dask]')"
    )


def each_once(members: Iterable[Member], hauls: Iterable[Haul]) -> list[Haul]:
    """Hauls in the order of members, without a user who turned out to be one that came before."""
    found = {haul.member.request_id: haul for haul in hauls}
    once: dict[str, Haul] = {}
    for member in members:
        if haul := found.get(member.request_id):
            once.setdefault(key_of(haul.member.user_id or haul.member.request_id), haul)
    return list(once.values())
