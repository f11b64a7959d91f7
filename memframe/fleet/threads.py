"""Many users from one machine: threads, which wait for the service together and slow down together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice

from memframe.client import Client
from memframe.fleet.haul import Haul
from memframe.fleet.members import Member
from memframe.fleet.work import Work, carry_out
from memframe.pacing import Gate, Pace


def in_threads(client: Client, members: Iterable[Member], work: Work, *, workers: int) -> Iterator[Haul]:
    """Hauls as they come in, in any order. What is under way when the caller leaves is finished, no more begun."""
    with client.paced(Gate(Pace(workers))), _pool(workers) as pool:
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
