"""A run over a fleet: hauls in whatever order they come, landed in a folder, each user once."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from os import PathLike
from types import ModuleType
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack, cast

from msgspec.structs import replace

from memframe.archive.places import naming
from memframe.client import Client
from memframe.errors import ConfigError, check_kind
from memframe.fleet.folder import FleetFolder
from memframe.fleet.haul import Haul
from memframe.fleet.members import Member, approved_and_revoked, key_of
from memframe.fleet.outcomes import outcomes_frame, revoked
from memframe.fleet.threads import in_threads
from memframe.fleet.work import Work
from memframe.paging import is_count
from memframe.private_file import expand_path
from memframe.progress import Progress, ProgressOption

if TYPE_CHECKING:
    from distributed import Client as DaskClient


class How(TypedDict):
    """How the work is shared out, and shown."""

    scheduler: Literal["threads"] | DaskClient
    workers: int
    progress: ProgressOption


def filled(client: Client, path: str | PathLike[str], work: Work, **how: Unpack[How]) -> FleetFolder:
    """A folder in which everything that was missing of the work is there, or why it is not."""
    check_kind("client", client, Client)
    folder = FleetFolder(expand_path(path))
    with naming(folder.path):
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
        return import_module("memframe.fleet.cluster")
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
