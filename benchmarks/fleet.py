"""A fleet of 200 users of 50 memories at 20 ms a request: one worker and eight, in threads and on Dask.

    python benchmarks/fleet.py

The service is a process of its own. A cluster is a local one, as Dask makes it and once more with the settings that
docs/howto/fleet.md advises; it is warm, as it has done the fleet before, and alone. The ways take turns, and the median
of the rounds counts. Eight workers cannot be quicker than the cores carry out what all processes do for a user, which
stands beside it. Then comes what one user costs, in requests and bytes, and what that makes for a million users of a
thousand memories.
"""

import argparse
import contextlib
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from servers import Users, serving

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

N_USERS, N_MEMORIES, DELAY_MS = 200, 50, 20
MIN_RATIO = 6


# What is compared


@contextlib.contextmanager
def threads(n_workers):
    yield {"workers": n_workers}


@contextlib.contextmanager
def dask(n_workers, settings=None):
    import dask
    from distributed import Client, LocalCluster

    with (
        dask.config.set(settings or {}),
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as dask_client,
    ):
        yield {"scheduler": dask_client}


def dask_as_advised(n_workers):
    from dask.config import interpret_value

    page = (HERE.parent / "docs" / "howto" / "fleet.md").read_text()
    advised = re.findall(r"^export DASK_(\w+)=(\w+)", page, re.MULTILINE)
    return dask(
        n_workers, {name.lower().replace("__", "."): interpret_value(value) for name, value in advised}
    )


WAYS = {"threads": threads, "Dask": dask, "Dask, as advised": dask_as_advised}


class Took(NamedTuple):
    seconds: float
    worked_s: float
    """Of the cores, by all processes: workers, scheduler or threads, and the service."""


def taken(base_url, n_rows, **options):
    import memframe as mf

    with mf.connect(base_url, api_key="mf_benchmark") as client:
        before, began = worked_s(), time.perf_counter()
        fleet = mf.load_fleet(client, progress=False, **options)
        took = Took(time.perf_counter() - began, worked_s() - before)
    assert len(fleet.memories) == n_rows, fleet.outcomes.error.dropna().unique()
    return took


def worked_s():
    import psutil

    here = psutil.Process()
    return sum(sum(process.cpu_times()[:2]) for process in (here, *here.children(recursive=True)))


def compared(rounds, base_url):
    os.environ["MEMFRAME_API_KEY"] = "mf_benchmark"  # for the workers
    n_rows = N_USERS * N_MEMORIES
    times = {}
    for _ in range(rounds):
        for name, way in WAYS.items():
            for n in (1, 8):
                with way(n) as options:
                    taken(base_url, n_rows, **options)  # warms all of them
                    times.setdefault((name, n), []).append(taken(base_url, n_rows, **options))
    return {case: Took(*map(statistics.median, zip(*took, strict=True))) for case, took in times.items()}


N_PLANNED_USERS, N_PLANNED_MEMORIES = 1_000_000, 1_000


class PerUser(NamedTuple):
    requests: float
    received: float
    stored: float
    cpu_s: float


def cost_of_a_user(n_users):
    """What a user of a thousand memories costs to audit and to keep sealed."""
    import memframe as mf

    with (
        serving(Users, n_users, N_PLANNED_MEMORIES, 0) as base_url,
        tempfile.TemporaryDirectory() as folder,
        mf.connect(base_url, api_key="mf_benchmark") as client,
    ):
        mf.audit_fleet(client, Path(folder) / "warm", progress=False)
        before, began = counts(base_url), time.process_time()
        mf.audit_fleet(client, Path(folder) / "fleet", progress=False)
        cpu_s = time.process_time() - began
        n_requests, n_bytes = (now - then for now, then in zip(counts(base_url), before, strict=True))
        n_stored = sum(path.stat().st_size for path in (Path(folder) / "fleet").rglob("*.parquet"))
    return PerUser(*(total / n_users for total in (n_requests - 1, n_bytes, n_stored, cpu_s)))


def counts(base_url):
    import requests

    return requests.get(base_url.removesuffix("/api/v1") + "/counts").json()


def plan(n_users=20):
    cost = cost_of_a_user(n_users)
    n = N_PLANNED_USERS
    print(
        f"a user of {N_PLANNED_MEMORIES:,} memories, audited and kept sealed: {cost.requests:.0f} requests, "
        f"{cost.received / 1e6:.2f} MB received, {cost.stored / 1e6:.2f} MB stored, {cost.cpu_s * 1e3:.0f} ms of a core"
    )
    print(
        f"{n:,} of them: {cost.requests * n:,.0f} requests, {cost.received * n / 1e12:.2f} TB received, "
        f"{cost.stored * n / 1e12:.2f} TB stored"
    )
    for n_cores in (2, 16, 64):
        hours = n * cost.cpu_s / n_cores / 3600
        print(
            f"  {n_cores:2} cores: {hours:6.1f} hours, {cost.requests * n / hours / 3600:6.0f} requests a second"
        )


def report(rounds):
    print(f"{N_USERS} users of {N_MEMORIES} memories, {DELAY_MS} ms a request, median of {rounds} rounds")
    with serving(Users, N_USERS, N_MEMORIES, DELAY_MS) as base_url:
        median = compared(rounds, base_url)
    for name in WAYS:
        one, eight = median[name, 1], median[name, 8]
        ratio = one.seconds / eight.seconds
        most = one.seconds / (eight.worked_s / os.cpu_count())
        verdict = "" if ratio >= MIN_RATIO else f"  (at least {MIN_RATIO} is asked for)"
        print(
            f"  {name:16} 1 worker {one.seconds:5.2f} s   8 workers {eight.seconds:5.2f} s   {ratio:4.1f}x   "
            f"(its {os.cpu_count()} cores allow {most:4.1f}x){verdict}"
        )
        for n, took in ((1, one), (8, eight)):
            print(f"    {took.worked_s / N_USERS * 1000:4.1f} ms of a core a user, {n} at work")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    report(options.rounds)
    plan()


if __name__ == "__main__":
    main()
