"""Many users on a Dask cluster: one task a user, and no key in any of them.

A task says whom and what, and nothing that opens anything. A worker connects with the API key of its own
environment, fetches the user's credentials itself, and seals what it brings for the process that asked.
Plaintext leaves it only where it was asked for by name.

What a task returns is bytes. A frame is weighed and pickled by Dask several times on its way, which took more
time for a small user than all the rest; so these are plain tasks, and no collection of Dask's.

A letterbox: whoever knows its address can put something in, and only the process that made it takes it out.

So what a worker brings is closed to the scheduler, to other workers, and to whatever they spill to disk, without
a key in any task: the address is a public key, which opens nothing. The private one goes with the run. Sealing is
HPKE (RFC 9180), with X25519 and AES-256-GCM.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from ipaddress import ip_address
from itertools import islice
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, TypeVar
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from distributed import Client as DaskClient
from distributed import Future, get_worker

from memframe.client import Client, connect
from memframe.client.retry import RateLimiter, SharedRateLimiter
from memframe.errors import ConfigError, MemframeError, NoAnswerError
from memframe.fleet.work import Haul, Member, Work, carry_out, packed, unpacked

_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
_PURPOSE = b"memframe fleet"


class Letterbox:
    """A new one with every instance.

    Examples
    --------
    >>> box = Letterbox()
    >>> letter = sealed_for(box.address, b"Likes tea")
    >>> box.opened(letter)
    b'Likes tea'
    >>> Letterbox().opened(letter) is None
    True
    """

    def __init__(self) -> None:
        self._key = X25519PrivateKey.generate()

    @property
    def address(self) -> bytes:
        """What to seal letters with."""
        return self._key.public_key().public_bytes_raw()

    def opened(self, letter: bytes) -> bytes | None:
        """What was sealed; None of a letter that is damaged, or for another box."""
        try:
            return _SUITE.decrypt(letter, self._key, _PURPOSE)
        except InvalidTag:
            return None


def sealed_for(address: bytes, data: bytes) -> bytes:
    """A letter that only the box of this address opens."""
    return _SUITE.encrypt(data, X25519PublicKey.from_public_bytes(address), _PURPOSE)


T = TypeVar("T")

BATCH = 10_000
"""Tasks that the scheduler holds at a time."""

FETCHED = 32
"""Hauls that are fetched at once, at most: a turn costs a few milliseconds, as much as the work for a small user."""

TOGETHER_S = 0.25
"""How long a haul waits for others to be fetched with; a run that breaks off loses no more."""

MAX_IN_FLIGHT = 64
"""Requests of one worker; it has rarely as many threads."""

_FOR_GOOD = ExitStack()
"""What stays open as long as a worker; a context that nobody holds would end at once."""


def on_cluster(
    dask_client: DaskClient, client: Client, members: Iterable[Member], work: Work
) -> Iterator[Haul]:
    """Hauls as they come in, in any order.

    Raises
    ------
    ConfigError
        The cluster speaks over a network without TLS, or its workers cannot sign in.
    NoAnswerError
        The cluster's scheduler went away.
    """
    with _still_there(dask_client):
        _refuse_open_network(dask_client)
        _refuse_workers_without_key(dask_client, client.base_url)
        for batch in batched(members, BATCH):
            yield from _hauls(dask_client, client.base_url, batch, work)


@contextmanager
def _still_there(dask_client: DaskClient) -> Iterator[None]:
    """What Dask raises when its scheduler is gone, in words of ours."""
    if dask_client.scheduler is None:
        raise ConfigError("This client of a Dask cluster is closed: make a new one.")
    address = dask_client.scheduler.address
    try:
        yield
    except (OSError, CancelledError) as gone:
        raise NoAnswerError(
            f"The scheduler of the cluster, {address}, does not answer any more "
            f"({type(gone).__name__}): its logs say why. Start it, and run this again; what is in a folder is kept."
        ) from None


def _hauls(dask_client: DaskClient, base_url: str, members: Sequence[Member], work: Work) -> Iterator[Haul]:
    box = Letterbox()
    address = None if work.plaintext else box.address
    futures = dask_client.map(carried_out, members, base_url=base_url, work=work, address=address, pure=False)
    member_of = {future.key: member for future, member in zip(futures, members, strict=True)}
    for finished in _finished(futures):
        brought = dask_client.gather(finished, errors="skip")
        packs = brought if work.plaintext else map(box.opened, brought)
        hauls = [unpacked(pack) for pack in packs if pack is not None]
        yield from hauls
        known = {haul.member.request_id for haul in hauls}
        others = (member_of[future.key] for future in finished)
        yield from (_lost(member) for member in others if member.request_id not in known)
        for future in finished:
            future.release()


def _finished(futures: Sequence[Future[Any]]) -> Iterator[list[Future[Any]]]:
    """Futures as they finish, those together that finish within a moment."""
    queue: SimpleQueue[Future[Any]] = SimpleQueue()
    for future in futures:
        future.add_done_callback(queue.put)
    n_left = len(futures)
    while n_left:
        together = [queue.get(), *_within(TOGETHER_S, queue, min(FETCHED, n_left) - 1)]
        n_left -= len(together)
        yield together


def _within(seconds: float, queue: SimpleQueue[T], n_items: int) -> Iterator[T]:
    """At most so many items of a queue, as far as they come in time."""
    deadline = monotonic() + seconds
    with suppress(Empty):
        for _ in range(n_items):
            yield queue.get(timeout=max(0, deadline - monotonic()))


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """As `itertools.batched` of Python 3.12.

    >>> list(batched("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _lost(member: Member) -> Haul:
    return Haul(
        member,
        "failed",
        error="the task, or what it brought, was lost on the cluster, whose logs say why: run it again",
    )


def client_at(address: str) -> DaskClient:
    """A client of the cluster whose scheduler has this address."""
    try:
        return DaskClient(address)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"there is no Dask scheduler at {address} ({type(error).__name__}): check the address"
        ) from None


# On a worker


async def carried_out(member: Member, *, base_url: str, work: Work, address: bytes | None) -> bytes:
    """The task: a pack for one user, made in a thread of the worker.

    A coroutine, as Dask reads the whole stack of a thread that carries out a task itself, a hundred times a second,
    while nearly all that our tasks do is wait. That took a sixth of what a cluster spent on a small user.
    """
    do = functools.partial(_pack_of, member, base_url, work, address)
    return await asyncio.get_running_loop().run_in_executor(get_worker().executors["default"], do)


def _pack_of(member: Member, base_url: str, work: Work, address: bytes | None) -> bytes:
    """The work for one user, packed, and sealed where there is an address to seal it for."""
    pack = packed(carry_out(_client_of_worker(base_url), member, work))
    return pack if address is None else sealed_for(address, pack)


@functools.cache
def _client_of_worker(base_url: str) -> Client:
    """One for all tasks of a worker, with the key of its environment, and slowing down for itself."""
    client = connect(base_url)
    _FOR_GOOD.enter_context(client.rate_limited(SharedRateLimiter(RateLimiter(MAX_IN_FLIGHT))))
    return client


def sign_in(base_url: str) -> str | None:
    """Why a worker cannot sign in; None if it can."""
    try:
        _client_of_worker(base_url).sign_in()
    except MemframeError as error:
        return str(error)
    return None


# Before it begins


def _refuse_workers_without_key(dask_client: DaskClient, base_url: str) -> None:
    refused = dask_client.submit(sign_in, base_url, pure=False).result()
    if refused:
        raise ConfigError(
            f"A worker of the cluster cannot sign in: {refused}. Workers take MEMFRAME_API_KEY from their own "
            "environment: set it where they are started."
        )


def _refuse_open_network(dask_client: DaskClient) -> None:
    """Findings tell about people: off this machine they travel encrypted, or not at all."""
    known: dict[str, Any] = dask_client.scheduler_info(n_workers=-1)
    for address in (known["address"], *known["workers"]):
        if not _is_closed(address):
            raise ConfigError(
                f"The cluster speaks to {address} in the open: give it TLS (tls:// addresses; see Security in the "
                "documentation of dask.distributed), or keep it on this machine."
            )


def _is_closed(address: str) -> bool:
    """Whether an address is encrypted, or of this machine.

    >>> [_is_closed(address) for address in ("tls://10.0.0.7:8786", "tcp://127.0.0.1:8786", "tcp://10.0.0.7:8786")]
    [True, True, False]
    """
    parts = urlsplit(address)
    if parts.scheme in ("tls", "wss", "inproc"):
        return True
    try:
        return ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return parts.hostname == "localhost"
