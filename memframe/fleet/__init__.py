"""Many users at once: every user who approved a developer's request, in threads here or on a Dask cluster.

Each user is done for alone: nothing of one is ever compared with anything of another, and what goes wrong
with one is a row in the table of outcomes. Requests that are not approved are skipped, and a user who approved
twice counts once; one who approved and took it back is a row as well, as what was kept of them should go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING, Literal

import pandas as pd
import pyarrow as pa

from memframe.archive.table import ARCHIVE_SCHEMA, frame_of
from memframe.audit import audit_memories
from memframe.audit.findings import Check
from memframe.client import Client
from memframe.display import number_of
from memframe.errors import check_kind
from memframe.fleet.run import FleetFolder, each_once, filled, hauls_of
from memframe.fleet.work import Work, approved_and_revoked, joined, outcomes_frame, revoked
from memframe.progress import ProgressOption

if TYPE_CHECKING:
    from distributed import Client as DaskClient

__all__ = ["Fleet", "FleetFolder", "audit_fleet", "export_fleet", "load_fleet"]


@dataclass(frozen=True, eq=False)
class Fleet:
    """The memories of many users.

    Attributes
    ----------
    memories : DataFrame
        As of `load_memories`, of all users one after the other.
    outcomes : DataFrame
        One row a user: ``user_id request_id status n_rows error``; ``status`` is done, revoked or failed.
        ``error`` says why, and of a user who is done how many memories could not be opened.
    """

    memories: pd.DataFrame
    outcomes: pd.DataFrame

    def __repr__(self) -> str:
        counts = self.outcomes["status"].value_counts()
        told = ", ".join(f"{count:,} {status}" for status, count in counts.items())
        return f"<memframe.Fleet of {number_of(len(self.memories), 'memory', 'memories')}; users: {told or 'none'}>"


def load_fleet(
    client: Client,
    *,
    scheduler: Literal["threads"] | DaskClient = "threads",
    workers: int = 8,
    plaintext: bool = False,
    progress: ProgressOption = "auto",
) -> Fleet:
    """All memories of every user who has approved, in one frame.

    Parameters
    ----------
    client : Client
    scheduler : "threads" or dask.distributed.Client
        Threads of this process, or the workers of a Dask cluster, one task a user. Workers connect with the
        ``MEMFRAME_API_KEY`` of their own environment.
    workers : int
        Threads.
    plaintext : bool
        Let decrypted memories travel from the workers of a cluster in the open. Otherwise they travel sealed
        for this process alone.
    progress : {"auto", True, False} or callable
        Counts users.

    Returns
    -------
    Fleet
        Users in the order of their requests. Those who failed, or took their approval back, are in
        ``outcomes`` alone.

    Raises
    ------
    ConfigError
        The cluster speaks over a network without TLS, or its workers have no key.

    Examples
    --------
    >>> import memframe as mf
    >>> with mf.service.run_local() as local, mf.connect(local.base_url, api_key=local.api_key) as client:
    ...     mf.load_fleet(client)
    <memframe.Fleet of 0 memories; users: none>
    """
    check_kind("client", client, Client)
    work = Work(table=True, plaintext=plaintext)
    approved, gone = approved_and_revoked(client.access_requests())
    hauls = hauls_of(client, approved, work, scheduler=scheduler, workers=workers, progress=progress)
    found = each_once(approved, hauls)
    tables = [haul.table for haul in found if haul.table is not None]
    memories = frame_of(joined(tables))
    return Fleet(memories, outcomes_frame([*found, *map(revoked, gone)]))


def audit_fleet(
    client: Client,
    path: str | PathLike[str],
    *,
    scheduler: Literal["threads"] | DaskClient = "threads",
    workers: int = 8,
    archives: bool = True,
    checks: Sequence[Check] | None = None,
    now: datetime | None = None,
    progress: ProgressOption = "auto",
) -> FleetFolder:
    """Audit the memories of every user who has approved, each alone, into a folder.

    A run that is started again does only what is missing: users who failed, whose audit a crash prevented, or
    who approved since. Another folder audits all of them anew.

    Parameters
    ----------
    client : Client
    path : str or path
        A new folder, or one of an earlier run: Parquet datasets ``findings`` and ``memories``, partitioned by
        user, and ``outcomes.parquet``. Closed to everybody else.
    scheduler, workers, progress
        As in `load_fleet`. What leaves a worker is sealed.
    archives : bool
        Also keep what was audited: an archive of each user, sealed with their own key (see `load_archive`).
    checks : sequence of str, optional
    now : datetime, optional
        As in `audit_memories`.

    Returns
    -------
    FleetFolder
        With ``outcomes`` and ``findings`` as frames.

    Raises
    ------
    ConfigError
        There is no such check, the cluster speaks over a network without TLS, or its workers have no key.
    FrameError
        The folder holds something else, or cannot be written.

    Examples
    --------
    >>> folder_of_june = audit_fleet(client, folder / "2026-06")
    >>> folder_of_june.outcomes.status.unique().tolist()
    ['done']
    >>> folder_of_june.findings.check.nunique() > 5
    True
    """
    nobody = frame_of(pa.schema(ARCHIVE_SCHEMA).empty_table())
    audit_memories(nobody, checks=checks, now=now)  # what is wrong with the options is said now, and once
    work = Work(
        archive="sealed" if archives else None,
        findings=True,
        checks=None if checks is None else tuple(checks),
        now=now,
    )
    return filled(client, path, work, scheduler=scheduler, workers=workers, progress=progress)


def export_fleet(
    client: Client,
    path: str | PathLike[str],
    *,
    sealed: bool = True,
    scheduler: Literal["threads"] | DaskClient = "threads",
    workers: int = 8,
    progress: ProgressOption = "auto",
) -> FleetFolder:
    """Export the memories of every user who has approved, an archive each, into a folder.

    Parameters
    ----------
    client : Client
    path : str or path
        A new folder, or one of an earlier run, of which only what is missing is done.
    sealed : bool
        Seal each archive with the key of its user; otherwise whoever can read the folder can read them all.
    scheduler, workers, progress
        As in `load_fleet`.

    Returns
    -------
    FleetFolder
        With ``outcomes`` as a frame, and ``archive(user_id)`` for `load_archive`.

    Raises
    ------
    ConfigError
        The cluster speaks over a network without TLS, or its workers have no key.
    FrameError
        The folder holds something else, or cannot be written.

    Examples
    --------
    >>> archives = export_fleet(client, folder / "2026-06")
    >>> archives.outcomes.status.unique().tolist()
    ['done']
    """
    work = Work(archive="sealed" if sealed else "plain")
    return filled(client, path, work, scheduler=scheduler, workers=workers, progress=progress)
