"""Process all users, in threads, in processes or on a cluster, and fill a folder with their results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from itertools import islice
from os import PathLike
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack

from msgspec.structs import replace

from memframe.archive.formats import raise_write_errors
from memframe.client import Client
from memframe.client.responses import canonical_id
from memframe.client.retry import RateLimiter, SharedRateLimiter
from memframe.display import number_of
from memframe.errors import (
    ConfigError,
    FrameError,
    MemframeError,
    NotFoundError,
    check_kind,
    describe_install,
)
from memframe.files import expand_path
from memframe.fleet.folder import BEGUN, ENDED, OUTCOMES_FILE, FleetFolder, can_name_folder
from memframe.fleet.per_user import PerUser
from memframe.fleet.processes import worker_processes
from memframe.fleet.work import (
    RESULT_KINDS,
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
from memframe.wire import AccessRequest

if TYPE_CHECKING:
    from distributed import Client as DaskClient


R = TypeVar("R")


def process_in_threads(
    client: Client, users: Iterable[FleetUser], process: Callable[[FleetUser], R], *, workers: int
) -> Iterator[R]:
    """Yield results in any order. If the caller stops, running users are finished and no others begun."""
    rest = iter(users)
    running: set[Future[R]] = set()
    with (
        client.rate_limited(SharedRateLimiter(RateLimiter(workers))),
        ThreadPoolExecutor(workers, thread_name_prefix="memframe-fleet") as pool,
    ):
        try:
            while True:
                due = islice(rest, 2 * workers - len(running))  # enough to keep the threads busy
                running |= {pool.submit(process, user) for user in due}
                if not running:
                    return
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in finished)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


THREADS = 8
"""Default number of threads; the default number of processes is that of the machine's cores."""


class RunOptions(TypedDict):
    """Options of every run: where it is processed, and how progress is shown."""

    scheduler: Literal["threads", "processes"] | DaskClient
    workers: int | None
    progress: ProgressOption


def fill_folder(
    client: Client, path: str | PathLike[str], work: Work, *, full: bool = False, **how: Unpack[RunOptions]
) -> FleetFolder:
    """Process the users of a folder, delete the results of users who revoked, and record all outcomes.

    An audit lists every user and, unless ``full``, keeps the findings of those for whom nothing has changed. An export
    processes the users who are missing.
    """
    check_kind("client", client, Client)
    folder = FleetFolder(expand_path(path))
    begun_at = client.runtime.clock()
    with raise_write_errors(folder.path), ExitStack() as locked:
        folder.prepare()
        locked.enter_context(folder.lock_run())
        approved, gone = list_users(client, folder, work.policies, work.decisions)
        folder.check_form(work)
        night = folder.begin_night(client.runtime.now())
        if work.findings:
            due = approved if full else [folder.with_digest(user, work.kinds) for user in approved]
            results = []
        else:
            finished_before = folder.find_complete(approved, work.kinds)
            folder.n_before = len(finished_before)
            due = [user for user in approved if user not in finished_before]
            results = [*finished_before.values()]
        results += map(revoked_result, gone)
        state = BEGUN
        try:
            for result in process_users(client, due, replace(work, night=night), **how):
                saved = _save(folder, result)
                folder.n_before += saved.is_unchanged
                results.append(replace(saved, files={}))
            if work.findings:
                folder.record_night(results, night, client.runtime.clock() - begun_at)
            state = ENDED
        finally:  # also when the run is interrupted
            folder.write_outcomes(outcomes_frame(deduplicate([*approved, *gone], results)), night, state)
    return folder


def _save(folder: FleetFolder, result: UserResult) -> UserResult:
    """Save the files of a user; if the id cannot name a folder, this user fails, not the run."""
    user_id = result.user.user_id or ""
    if result.files and not can_name_folder(user_id):
        reason = f"the user's id has {len(user_id):,} characters, too many for the name of a folder"
        return UserResult(result.user, "failed", error=f"{reason}: load this user by the request_id instead")
    folder.save(result)
    return result


def list_users(
    client: Client, folder: FleetFolder, *per_user: PerUser[Any]
) -> tuple[list[FleetUser], list[FleetUser]]:
    """Return users who approved, and users who revoked; delete the results of the latter, and of erased users.

    Raises
    ------
    FrameError
        The account has no request of any user in the folder. It is probably another account, because it is unlikely
        that all of them were erased.
    """
    requests = client.access_requests()
    for files in per_user:
        files.warn_of_strangers(requests)
    approved, gone = approved_and_revoked(requests)
    erased = _find_erased(client, folder, requests)
    folder.forgotten = folder.forget([*(user.user_id for user in gone if user.user_id), *erased])
    return approved, gone


def _find_erased(client: Client, folder: FleetFolder, requests: Sequence[AccessRequest]) -> list[str]:
    """Return the users of a folder who have no access request of any status any more.

    It is not enough that the listing lacks them: the service must not know their requests by id either.
    """
    user_ids = {canonical_id(request.user_id) for request in requests if request.user_id}
    request_ids = {request.id for request in requests}
    named = folder.outcomes.dropna(subset=["user_id", "request_id"])
    request_of = dict(zip(map(canonical_id, named["user_id"]), named["request_id"], strict=True))
    held = sorted({folder.user_of(place) for kind in RESULT_KINDS for place in folder.folders(kind)})
    absent = [one for one in held if one not in user_ids and request_of.get(one) not in request_ids]
    if absent and absent == held:
        users = number_of(len(held), "user", "users")
        raise FrameError(
            f"{folder.path} has results of {users}, but this account has no access request of any of them: check the "
            "API key. If all of them were erased, delete the folder."
        )
    return [one for one in absent if one in request_of and _is_unknown(client, request_of[one])]


def _is_unknown(client: Client, request_id: str) -> bool:
    try:
        found = client.access_request(request_id)
    except (NotFoundError, ConfigError):  # ConfigError: several others begin with this id
        return True
    except MemframeError:  # another refusal proves nothing: the next run asks again
        return False
    return found.id != request_id


def forget_revoked(client: Client, path: str | PathLike[str]) -> FleetFolder:
    """Delete from a folder the results of users who revoked their approval or were erased, without loading anything.

    The table of outcomes keeps the rows of users who revoked, and loses those of users who were erased.

    Parameters
    ----------
    client : Client
    path : str or Path
        Folder of `audit_fleet` or `export_fleet`, which do the same whenever they run again.

    Returns
    -------
    FleetFolder
        With the ids of those users in ``forgotten``.

    Raises
    ------
    FrameError
        There is no folder of a fleet, something in it cannot be deleted, or the account knows none of its users.
    JournalError
        Another process works in this folder.

    Examples
    --------
    >>> from memframe import export_fleet
    >>> forget_revoked(client, export_fleet(client, folder / "fleet").path).forgotten
    []
    """
    check_kind("client", client, Client)
    folder = FleetFolder(path)
    if not (folder.path / OUTCOMES_FILE).is_file():
        raise FrameError(
            f"{folder.path} is not a folder of a fleet, because it has no {OUTCOMES_FILE}: check the path."
        )
    with raise_write_errors(folder.path), folder.lock_run():
        _, gone = list_users(client, folder)
        folder.drop_outcomes({*folder.forgotten} - {canonical_id(user.user_id or "") for user in gone})
    return folder


def process_users(
    client: Client, users: Sequence[FleetUser], work: Work, **how: Unpack[RunOptions]
) -> Iterator[UserResult]:
    """Yield results in any order, with a progress display."""
    scheduler, given = how["scheduler"], how["workers"]
    default = (os.cpu_count() or 1) if scheduler == "processes" else THREADS
    workers = default if given is None else check_count("workers", given, 1)
    with Progress(how["progress"], total=len(users), text="users") as bar, ExitStack() as running:
        if scheduler in ("threads", "processes"):
            process = (
                partial(process_user, client, work=work)
                if scheduler == "threads"
                else running.enter_context(worker_processes(client, work, workers))
            )
            results = process_in_threads(client, users, process, workers=workers)
        elif hasattr(scheduler, "scheduler_info"):
            results = _cluster().process_on_cluster(scheduler, client, users, work)
        else:
            raise ConfigError(
                f"scheduler={scheduler!r:.60}: give 'threads', 'processes' or a dask.distributed.Client "
                f"({describe_install('dask')})"
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
        raise ConfigError(f"a cluster needs the library {error.name}: {describe_install('dask')}") from None


def deduplicate(users: Iterable[FleetUser], results: Iterable[UserResult]) -> list[UserResult]:
    """Return results in the order of the users, without results of a user who has an earlier one."""
    found = {result.user.request_id: result for result in results}
    once: dict[str, UserResult] = {}
    for user in users:
        if result := found.get(user.request_id):
            once.setdefault(canonical_id(result.user.user_id or result.user.request_id), result)
    return list(once.values())
