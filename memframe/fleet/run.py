"""Process all users, in threads or on a cluster, and keep their results in a folder.

::

    outcomes.parquet
    findings/user_id=5f0c9b1e-.../findings.parquet
    memories/user_id=5f0c9b1e-.../part-00000.parquet

Each kind of result is a Parquet dataset, partitioned by user. Readers of Parquet take ``user_id`` from the names of
folders; `load_archive` opens each folder of memories by itself. The files of one user arrive whole or not at all,
findings last: an existing folder is complete.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from importlib import import_module
from itertools import islice
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack
from urllib.parse import quote, unquote

import pandas as pd
import pyarrow.parquet as pq
from msgspec.structs import replace

from memframe.archive.formats import open_by_bytes, raise_write_errors
from memframe.archive.sealing import Reader
from memframe.audit.findings import findings_frame
from memframe.client import Client
from memframe.client.responses import canonical_id
from memframe.client.retry import RateLimiter, SharedRateLimiter
from memframe.display import html_card
from memframe.errors import ConfigError, FrameError, check_kind
from memframe.files import atomic_file, atomic_folder, expand_path
from memframe.fleet.work import (
    DTYPES,
    FINDINGS,
    FINDINGS_FILE,
    MEMORIES,
    N_ROWS,
    FleetUser,
    UserResult,
    Work,
    approved_and_revoked,
    outcomes_frame,
    process_user,
    revoked_result,
)
from memframe.listing import check_count
from memframe.progress import Progress, ProgressOption

if TYPE_CHECKING:
    from distributed import Client as DaskClient


def process_in_threads(
    client: Client, users: Iterable[FleetUser], work: Work, *, workers: int
) -> Iterator[UserResult]:
    """Yield results in any order. If the caller stops, running users are finished and no others begun."""
    rest = iter(users)
    running: set[Future[UserResult]] = set()
    with (
        client.rate_limited(SharedRateLimiter(RateLimiter(workers))),
        ThreadPoolExecutor(workers, thread_name_prefix="memframe-fleet") as pool,
    ):
        try:
            while True:
                due = islice(rest, 2 * workers - len(running))  # threads are busy, and no more is in memory
                running |= {pool.submit(process_user, client, user, work) for user in due}
                if not running:
                    return
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in finished)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


_OUTCOMES = "outcomes.parquet"
_PREFIX = "user_id="


def describe_outcomes(outcomes: pd.DataFrame) -> str:
    """Count users by status, in words."""
    counts = outcomes["status"].value_counts()
    return ", ".join(f"{count:,} {status}" for status, count in counts.items()) or "none"


class FleetFolder:
    """The results of a fleet in a folder.

    Parameters
    ----------
    path : str or path

    Attributes
    ----------
    path : Path
    n_before : int
        Users that were complete before the run; 0 for a folder that was only opened.
    forgotten : list of str
        Ids of users whose results the run deleted because they had revoked their approval.
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
        path = self.path / _OUTCOMES
        if not path.exists():
            return outcomes_frame([])
        with path.open("rb") as file:
            return pd.read_parquet(file).astype(DTYPES)

    @property
    def findings(self) -> pd.DataFrame:
        """The findings of all users, with ``user_id`` as the first column; read from the files each time."""
        frames = []
        for folder in self._folders(FINDINGS):
            with open_by_bytes(folder / FINDINGS_FILE) as file:
                frame = pq.ParquetFile(file).read().to_pandas()
            user_id = unquote(folder.name.removeprefix(_PREFIX))
            frame.insert(0, "user_id", pd.Series(user_id, index=frame.index, dtype="str"))
            frames.append(frame)
        empty = findings_frame(id=[])
        empty.insert(0, "user_id", pd.Series(dtype="str"))
        return pd.concat(frames, ignore_index=True) if frames else empty

    def severities(self) -> Counter[str]:
        """Count findings by severity, without having all of them in memory."""
        counts: Counter[str] = Counter()
        for folder in self._folders(FINDINGS):
            with open_by_bytes(folder / FINDINGS_FILE) as file:
                counts.update(pq.ParquetFile(file).read(["severity"])["severity"].to_pylist())
        return counts

    def forget(self, user_ids: Iterable[str]) -> list[str]:
        """Delete the findings and memories of users, and return the ids of those of whom there were any.

        Findings go first: what is interrupted is not complete, and is deleted by the next call. Rows of `outcomes`
        stay.
        """
        forgotten = []
        for user_id in user_ids:
            places = (self._place(kind, user_id) for kind in (FINDINGS, MEMORIES))
            there = [place for place in places if place.is_dir()]
            for place in there:
                shutil.rmtree(place)
            forgotten += [user_id] if there else []
        return forgotten

    def archive(self, user_id: str) -> Path:
        """Return the folder of a user's memories, for `load_archive`."""
        return self._place(MEMORIES, user_id)

    def _place(self, kind: str, user_id: str) -> Path:
        return self.path / kind / f"{_PREFIX}{quote(canonical_id(user_id), safe='')}"

    def _folders(self, kind: str) -> list[Path]:
        return sorted((self.path / kind).glob(f"{_PREFIX}*"))

    # -- for runs

    def prepare(self) -> None:
        """Create the folder, private to its owner; refuse one that holds other files."""
        if not self.path.parent.is_dir():
            raise FrameError(f"The folder {self.path.parent} does not exist: create it, or choose another.")
        self.path.mkdir(mode=0o700, exist_ok=True)
        ours = {_OUTCOMES, FINDINGS, MEMORIES}
        strange = [
            entry.name for entry in self.path.iterdir() if entry.name not in ours and entry.name[0] != "."
        ]
        if strange:
            raise FrameError(
                f"{self.path} holds {strange[0]}, which is not a result of a fleet: choose another folder."
            )

    def check_form(self, work: Work) -> None:
        """Refuse archives of another form than those that are there."""
        for archive in self._folders(MEMORIES)[:1] if work.archive else ():
            header = Reader(archive).header
            found = "sealed" if header and header.seal else "plain"
            if work.archive != found:
                raise FrameError(
                    f"{self.path} holds {found} archives, and {work.archive} ones are asked for: choose another folder."
                )

    def find_complete(self, users: Iterable[FleetUser], kinds: Sequence[str]) -> dict[FleetUser, UserResult]:
        """Return complete users, with their results of earlier runs; a run that was killed has written none."""
        before: dict[Any, Any] = {
            row.user_id: row for row in self.outcomes.itertuples() if row.status == "done"
        }
        found = {}
        for user in users:
            user_id = user.user_id
            if user_id and all(self._place(kind, user_id).is_dir() for kind in kinds):
                row = before.get(user_id)
                error = row.error if row and isinstance(row.error, str) else None
                found[user] = UserResult(
                    user, "done", row.n_rows if row else self._count(user_id), error=error
                )
        return found

    def _count(self, user_id: str) -> int:
        """Count the memories of a user from the files alone."""
        findings = self._place(FINDINGS, user_id) / FINDINGS_FILE
        if findings.exists():
            return int(_read_metadata(findings).metadata[N_ROWS])
        parts = self._place(MEMORIES, user_id).glob("*.parquet")
        return sum(_read_metadata(part).num_rows for part in parts)

    def save(self, result: UserResult) -> None:
        """Move the files of a user to their place, findings last."""
        user_id = result.user.user_id
        for kind in (MEMORIES, FINDINGS):
            files = {place: data for place, data in result.files.items() if place.startswith(f"{kind}/")}
            if files and user_id is not None:
                (self.path / kind).mkdir(mode=0o700, exist_ok=True)
                with atomic_folder(self._place(kind, user_id)) as fresh:
                    for place, data in files.items():
                        with atomic_file(fresh / place.removeprefix(f"{kind}/")) as file:
                            file.write(data)


def _read_metadata(path: Path) -> pq.FileMetaData:
    with open_by_bytes(path) as file:
        return pq.read_metadata(file)


class RunOptions(TypedDict):
    """Options of every run: where it is processed, and how progress is shown."""

    scheduler: Literal["threads"] | DaskClient
    workers: int
    progress: ProgressOption


def fill_folder(
    client: Client, path: str | PathLike[str], work: Work, **how: Unpack[RunOptions]
) -> FleetFolder:
    """Process the users who are missing in a folder, delete what is of users who revoked, and record all outcomes."""
    check_kind("client", client, Client)
    folder = FleetFolder(expand_path(path))
    with raise_write_errors(folder.path):
        folder.prepare()
        approved, gone = approved_and_revoked(client.access_requests())
        folder.forgotten = folder.forget(user.user_id for user in gone if user.user_id)
        folder.check_form(work)
        finished_before = folder.find_complete(approved, work.kinds)
        folder.n_before = len(finished_before)
        missing = [user for user in approved if user not in finished_before]
        results = [*finished_before.values(), *map(revoked_result, gone)]
        try:
            for result in process_users(client, missing, work, **how):
                folder.save(result)
                results.append(replace(result, files={}))
        finally:  # also when the run is interrupted
            outcomes = outcomes_frame(deduplicate([*approved, *gone], results))
            with atomic_file(folder.path / _OUTCOMES) as file:
                outcomes.to_parquet(file, index=False)
    return folder


def forget_revoked(client: Client, path: str | PathLike[str]) -> FleetFolder:
    """Delete from a folder what is of users who revoked their approval; nothing is loaded.

    Parameters
    ----------
    client : Client
    path : str or path
        Of an earlier run of `audit_fleet` or `export_fleet`, which do the same when they run again.

    Returns
    -------
    FleetFolder
        With the ids of those users in ``forgotten``.

    Raises
    ------
    FrameError
        There is no folder of a fleet, or something in it cannot be deleted.

    Examples
    --------
    >>> from memframe import export_fleet
    >>> forget_revoked(client, export_fleet(client, folder / "fleet").path).forgotten
    []
    """
    check_kind("client", client, Client)
    folder = FleetFolder(path)
    if not (folder.path / _OUTCOMES).is_file():
        raise FrameError(
            f"{folder.path} is not a folder of a fleet, as it has no {_OUTCOMES}: check the path."
        )
    with raise_write_errors(folder.path):
        _, gone = approved_and_revoked(client.access_requests())
        folder.forgotten = folder.forget(user.user_id for user in gone if user.user_id)
    return folder


def process_users(
    client: Client, users: Sequence[FleetUser], work: Work, **how: Unpack[RunOptions]
) -> Iterator[UserResult]:
    """Yield results in any order, with a progress display."""
    scheduler, workers = how["scheduler"], check_count("workers", how["workers"], 1)
    with Progress(how["progress"], total=len(users), text="users") as bar:
        if scheduler == "threads":
            results = process_in_threads(client, users, work, workers=workers)
        elif hasattr(scheduler, "scheduler_info"):
            results = _cluster().process_on_cluster(scheduler, client, users, work)
        else:
            raise ConfigError(
                f"scheduler={scheduler!r:.60}: give 'threads', or a dask.distributed.Client (pip install "
                "'memframe[dask]')"
            )
        for result in results:
            yield result
            bar.step()


def dask_client_at(address: str) -> DaskClient:
    """Connect to the Dask cluster whose scheduler has this address."""
    found: DaskClient = _cluster().client_at(address)
    return found


def _cluster() -> ModuleType:
    """Import the module for Dask, which is an extra."""
    try:
        return import_module("memframe.fleet.dask")
    except ModuleNotFoundError as error:
        raise ConfigError(f"a cluster needs the library {error.name}: pip install 'memframe[dask]'") from None


def deduplicate(users: Iterable[FleetUser], results: Iterable[UserResult]) -> list[UserResult]:
    """Order results as their users, and drop a user who turned out to be an earlier one."""
    found = {result.user.request_id: result for result in results}
    once: dict[str, UserResult] = {}
    for user in users:
        if result := found.get(user.request_id):
            once.setdefault(canonical_id(result.user.user_id or result.user.request_id), result)
    return list(once.values())
