"""Sealed hauls of a cluster, opened in this process with keys that it fetches itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from msgspec.structs import replace

from memframe.access import Access
from memframe.client import Client
from memframe.fleet.haul import Haul, joined, opened_table
from memframe.fleet.work import attempted


def opened(client: Client, hauls: Iterable[Haul], *, workers: int) -> Iterator[Haul]:
    """Hauls with their memories in the open; some threads fetch keys while others are awaited."""
    with ThreadPoolExecutor(workers, thread_name_prefix="memframe-open") as pool:
        opening = [pool.submit(_opened, client, haul) for haul in hauls]
        yield from (one.result() for one in opening)


def _opened(client: Client, haul: Haul) -> Haul:
    if not haul.sealed:
        return haul

    def unseal(access: Access) -> Haul:
        return replace(haul, table=joined(opened_table(access, one) for one in haul.sealed), sealed=())

    return attempted(client, haul.member, unseal)
