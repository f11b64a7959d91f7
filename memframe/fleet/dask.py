"""Process users on a Dask cluster: one task per user, and no key in any of them.

A task names a user and the work. A worker connects with the API key of its own environment, fetches the user's
credentials itself, and encrypts its result for the process that asked (HPKE, RFC 9180, with X25519 and AES-256-GCM).
So the scheduler, other workers and their spill files see no plaintext, unless the run asks for unencrypted results.
The private key stays in the process of the run.

A task returns bytes, because Dask measures and pickles a frame several times on its way, which costs more than the work
for a user with few memories. So these are plain tasks, not Dask collections.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from ipaddress import ip_address
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from distributed import Client as DaskClient
from distributed import as_completed, get_worker

from memframe.client import Client, connect
from memframe.client.retry import RateLimiter, SharedRateLimiter
from memframe.errors import ConfigError, MemframeError, NoAnswerError
from memframe.fleet.work import FleetUser, UserResult, Work, pack, process_user, unpack

_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
_PURPOSE = b"memframe fleet"


TASKS_AT_ONCE = 10_000
"""Most tasks that the scheduler holds at a time."""

MAX_IN_FLIGHT = 64
"""Most concurrent requests of one worker."""

_WORKER_LIFETIME = ExitStack()
"""Contexts that stay open as long as the worker."""


def process_on_cluster(
    dask_client: DaskClient, client: Client, users: Iterable[FleetUser], work: Work
) -> Iterator[UserResult]:
    """Yield results in any order.

    Raises
    ------
    ConfigError
        The cluster uses a network without TLS, or its workers cannot sign in.
    NoAnswerError
        The scheduler of the cluster is gone.
    """
    if dask_client.scheduler is None:
        raise ConfigError("This client of a Dask cluster is closed: make a new one.")
    try:
        _refuse_open_network(dask_client)
        refused = dask_client.submit(sign_in_worker, client.base_url, pure=False).result()
        if refused:
            raise ConfigError(
                f"A worker of the cluster cannot sign in: {refused}. Workers take MEMFRAME_API_KEY from their own "
                "environment: set it where the workers start."
            )
        rest = iter(users)
        while batch := list(islice(rest, TASKS_AT_ONCE)):
            yield from _results(dask_client, client.base_url, batch, work)
    except MemframeError:  # some are also an OSError
        raise
    except (OSError, CancelledError) as gone:
        raise NoAnswerError(
            f"The scheduler of the cluster, {dask_client.scheduler.address}, no longer answers "
            f"({type(gone).__name__}): check its logs. Restart it and run the command again; results in a "
            "folder are kept."
        ) from None


def _results(
    dask_client: DaskClient, base_url: str, users: Sequence[FleetUser], work: Work
) -> Iterator[UserResult]:
    key = X25519PrivateKey.generate()
    address = None if work.plaintext else key.public_key().public_bytes_raw()
    futures = dask_client.map(run_task, users, base_url=base_url, work=work, address=address, pure=False)
    user_of_task = {future.key: user for future, user in zip(futures, users, strict=True)}
    for finished in as_completed(futures).batches():  # all finished ones are fetched together
        known = set()
        for message in dask_client.gather(finished, errors="skip"):
            with suppress(InvalidTag):  # a damaged message counts as lost
                result = unpack(message if work.plaintext else _SUITE.decrypt(message, key, _PURPOSE))
                known.add(result.user.request_id)
                yield result
        for future in finished:
            user = user_of_task[future.key]
            if user.request_id not in known:
                lost = "the task or its result was lost on the cluster: check its logs and run it again"
                yield UserResult(user, "failed", error=lost)
            future.release()


def client_at(address: str) -> DaskClient:
    """Connect to the cluster whose scheduler has this address."""
    try:
        return DaskClient(address)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"there is no Dask scheduler at {address} ({type(error).__name__}): check the address"
        ) from None


# On a worker


async def run_task(user: FleetUser, *, base_url: str, work: Work, address: bytes | None) -> bytes:
    """Process one user in a thread of the worker, and return the packed result.

    It is a coroutine because Dask samples the stacks of threads that run tasks, which is costly for tasks that wait.
    """

    def process() -> bytes:
        data = pack(process_user(_client_of_worker(base_url), user, work))
        if address is None:
            return data
        return _SUITE.encrypt(data, X25519PublicKey.from_public_bytes(address), _PURPOSE)

    return await asyncio.get_running_loop().run_in_executor(get_worker().executors["default"], process)


@functools.cache
def _client_of_worker(base_url: str) -> Client:
    """Return the only client of a worker, with the API key of its environment and its own rate limit."""
    client = connect(base_url)
    _WORKER_LIFETIME.enter_context(client.rate_limited(SharedRateLimiter(RateLimiter(MAX_IN_FLIGHT))))
    return client


def sign_in_worker(base_url: str) -> str | None:
    """Return the error of a worker that cannot sign in, else None."""
    try:
        _client_of_worker(base_url).sign_in()
    except MemframeError as error:
        return str(error)
    return None


def _refuse_open_network(dask_client: DaskClient) -> None:
    """Refuse a cluster that would send findings, which are about people, unencrypted over a network."""
    known: dict[str, Any] = dask_client.scheduler_info(n_workers=-1)
    for address in (known["address"], *known["workers"]):
        if not _is_protected(address):
            raise ConfigError(
                f"The cluster uses {address} without encryption: give it TLS (tls:// addresses; see Security in the "
                "documentation of dask.distributed), or keep it on this machine."
            )


def _is_protected(address: str) -> bool:
    """Return True if an address is encrypted, or on this machine.

    >>> [_is_protected(address) for address in ("tls://10.0.0.7:8786", "tcp://127.0.0.1:8786", "tcp://10.0.0.7:8786")]
    [True, True, False]
    """
    parts = urlsplit(address)
    if parts.scheme in ("tls", "wss", "inproc"):
        return True
    try:
        return ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return parts.hostname == "localhost"
