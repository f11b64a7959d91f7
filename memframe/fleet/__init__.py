"""Load, audit or export the memories of every user who approved, in threads, in processes or on a Dask cluster.

Each user is processed alone: memories of different users are never compared, and an error ends up in the user's row of
the table of outcomes. Requests that are not approved are skipped, and a user who approved twice counts once. If a user
has revoked the approval, the table says so, and the user's results are deleted from the folder. If the service knows no
request of a user any more, because the account was erased, results and row are deleted.
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
from memframe.audit.judge import JUDGE_LIMIT, JudgeFunction
from memframe.audit.policy import PolicyOption
from memframe.audit.run import OwnCheck
from memframe.client import Client
from memframe.display import html_card, number_of
from memframe.errors import ConfigError, check_kind
from memframe.fleet.folder import FleetFolder, describe_outcomes
from memframe.fleet.per_user import read_fleet_decisions, read_policies
from memframe.fleet.plans import FleetPlans, FleetRun, apply_fleet, plan_fleet
from memframe.fleet.run import deduplicate, fill_folder, process_users
from memframe.fleet.work import Work, approved_and_revoked, concat_tables, outcomes_frame, revoked_result
from memframe.progress import ProgressOption

if TYPE_CHECKING:
    from distributed import Client as DaskClient

__all__ = [
    "Fleet",
    "FleetFolder",
    "FleetPlans",
    "FleetRun",
    "apply_fleet",
    "audit_fleet",
    "export_fleet",
    "load_fleet",
    "plan_fleet",
]


@dataclass(frozen=True, eq=False)
class Fleet:
    """The memories of many users.

    Attributes
    ----------
    memories : DataFrame
        Columns as of `load_memories`, user by user.
    outcomes : DataFrame
        One row per user: ``user_id request_id status n_rows error``; ``status`` is done, revoked or failed.
        ``error`` is the reason or, with status done, the number of memories that could not be decrypted.
    """

    memories: pd.DataFrame
    outcomes: pd.DataFrame

    def __repr__(self) -> str:
        memories = number_of(len(self.memories), "memory", "memories")
        return f"<memframe.Fleet of {memories}; users: {describe_outcomes(self.outcomes)}>"

    def _repr_html_(self) -> str:
        return html_card("Fleet", {"memories": len(self.memories), "users": describe_outcomes(self.outcomes)})


def load_fleet(
    client: Client,
    *,
    scheduler: Literal["threads", "processes"] | DaskClient = "threads",
    workers: int | None = None,
    plaintext: bool = False,
    progress: ProgressOption = "auto",
) -> Fleet:
    """Load the memories of every approved user into one frame.

    Parameters
    ----------
    client : Client
    scheduler : "threads", "processes" or dask.distributed.Client
        Threads of this process; processes of this machine, for audits on idle cores (beside other work they are
        slower); or the workers of a Dask cluster, with one task per user. The workers use the ``MEMFRAME_API_KEY`` of
        their own environment.
    workers : int, optional
        Threads (8 by default), or processes (as many as there are cores).
    plaintext : bool
        Send decrypted memories from cluster workers unencrypted; by default they are encrypted for this
        process.
    progress : {"auto", True, False} or callable
        Progress display, counted in users.

    Returns
    -------
    Fleet
        Users in the order of their requests. Those who failed or revoked their approval are in ``outcomes`` only.

    Raises
    ------
    ConfigError
        The cluster uses a network without TLS, or its workers have no API key.

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
    results = process_users(client, approved, work, scheduler=scheduler, workers=workers, progress=progress)
    found = deduplicate(approved, results)
    tables = [result.table for result in found if result.table is not None]
    memories = frame_of(concat_tables(tables))
    return Fleet(memories, outcomes_frame([*found, *map(revoked_result, gone)]))


def audit_fleet(
    client: Client,
    path: str | PathLike[str],
    *,
    scheduler: Literal["threads", "processes"] | DaskClient = "threads",
    workers: int | None = None,
    archives: bool = True,
    checks: Sequence[Check | OwnCheck] | None = None,
    decisions: str | PathLike[str] | None = None,
    policy: PolicyOption = None,
    judge: JudgeFunction | None = None,
    judge_limit: int = JUDGE_LIMIT,
    now: datetime | None = None,
    full: bool = False,
    progress: ProgressOption = "auto",
) -> FleetFolder:
    """Audit the memories of every approved user separately, and write the results to a folder.

    Another run on the same folder lists every user again. It keeps the findings of users about whom nothing has changed
    since: memories, tags, decisions, memories that are stale by now, checks, rules and version. It audits all others.
    The previous audit is kept for `FleetFolder.compare`. An interrupted run is continued.

    Parameters
    ----------
    client : Client
    path : str or Path
        A new folder, or that of an earlier run. It contains the Parquet datasets ``findings``, ``findings-before``
        and ``memories``, partitioned by user, and ``outcomes.parquet``. Only its owner can read it.
    scheduler, workers, progress
        As in `load_fleet`. Workers encrypt their results.
    archives : bool
        Also archive the audited memories, sealed with the key of each user (see `load_archive`).
    checks : sequence of str or callable, optional
        A check of your own is recognised by its source text; use ``full`` after changing a function that it calls.
    decisions : str or Path, optional
        One file, with decisions about the memories of any users; or a folder with ``memframe.decisions`` for all users
        and ``USER_ID.decisions`` instead of it for some. Rejected findings are only counted, in ``settled``.
    policy : Policy, Path or None
        Its rules run as the check ``policy``. The path of a folder means ``memframe.toml`` in it for all users, and
        ``USER_ID.toml`` instead of it for some.
    judge : callable, optional
        Called for users with a change, from several threads at once; only with threads.
    judge_limit : int
        Most questions about one user.
    now : datetime, optional
        All three as in `audit_memories`.
    full : bool
        Audit all users again, changed or not.

    Returns
    -------
    FleetFolder
        With ``outcomes`` and ``findings`` as frames.

    Raises
    ------
    ConfigError
        A check does not exist, the policy cannot be read, the cluster uses a network without TLS, or its workers have
        no API key.
    FrameError
        The folder holds other files, or cannot be written.
    JournalError
        The file of decisions cannot be read, or one of its lines is damaged; or another process works in this folder.

    Examples
    --------
    >>> folder_of_june = audit_fleet(client, folder / "2026-06")
    >>> folder_of_june.outcomes.status.unique().tolist()
    ['done']
    >>> folder_of_june.findings.check.nunique() > 5
    True
    """
    empty = frame_of(pa.schema(ARCHIVE_SCHEMA).empty_table())
    policies = read_policies(policy)
    audit_memories(
        empty, checks=checks, now=now, judge_limit=judge_limit
    )  # refuse wrong options before the run
    if judge is not None and scheduler != "threads":
        raise ConfigError(
            "judge: a judge runs only in threads of this process, because its key stays here: leave out scheduler"
        )
    work = Work(
        archive="sealed" if archives else None,
        findings=True,
        checks=None if checks is None else tuple(checks),
        decisions=read_fleet_decisions(decisions),
        policies=policies,
        judge=judge,
        judge_limit=judge_limit,
        now=now,
    )
    return fill_folder(client, path, work, full=full, scheduler=scheduler, workers=workers, progress=progress)


def export_fleet(
    client: Client,
    path: str | PathLike[str],
    *,
    sealed: bool = True,
    scheduler: Literal["threads", "processes"] | DaskClient = "threads",
    workers: int | None = None,
    progress: ProgressOption = "auto",
) -> FleetFolder:
    """Export the memories of every approved user to a folder, one archive per user.

    Parameters
    ----------
    client : Client
    path : str or Path
        A new folder, or one of an earlier run, which is completed.
    sealed : bool
        Seal each archive with the key of its user; otherwise anyone who can read the folder can read the
        memories.
    scheduler, workers, progress
        As in `load_fleet`.

    Returns
    -------
    FleetFolder
        With ``outcomes`` as a frame, and ``archive(user_id)`` for `load_archive`.

    Raises
    ------
    ConfigError
        The cluster uses a network without TLS, or its workers have no API key.
    FrameError
        The folder holds other files, or cannot be written.
    JournalError
        Another process works in this folder.

    Examples
    --------
    >>> archives = export_fleet(client, folder / "2026-06")
    >>> archives.outcomes.status.unique().tolist()
    ['done']
    """
    work = Work(archive="sealed" if sealed else "plain")
    return fill_folder(client, path, work, scheduler=scheduler, workers=workers, progress=progress)
