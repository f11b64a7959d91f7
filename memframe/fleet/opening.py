"""Sealed hauls of a cluster, opened in this process with keys that it fetches itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from msgspec.structs import replace

from memframe.access import Access
from memframe.archive.header import Header, header_in
from memframe.archive.sealing import Opener
from memframe.client import Client
from memframe.fleet.work import Haul, attempted


def opened(client: Client, hauls: Iterable[Haul], *, workers: int) -> Iterator[Haul]:
    """Hauls with their memories in the open; some threads fetch keys while others are awaited."""
    with ThreadPoolExecutor(workers, thread_name_prefix="memframe-open") as pool:
        opening = [pool.submit(_opened, client, haul) for haul in hauls]
        yield from (one.result() for one in opening)


def _opened(client: Client, haul: Haul) -> Haul:
    header = header_in(haul.table.schema) if haul.table is not None else None
    if header is None or header.seal is None:
        return haul
    return attempted(client, haul.member, partial(_unsealed, haul, header))


def _unsealed(haul: Haul, header: Header, access: Access) -> Haul:
    opener = Opener(f"What a worker brought of user {access.user_id}", header, access)
    return replace(haul, table=opener.opened(haul.table))
