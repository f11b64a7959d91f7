"""A fleet of 200 users of 50 memories at 20 ms a request: one worker and eight, threads and Dask.

    python tests/benchmarks/fleet.py

The service is a process of its own; the cluster is warm, as it has done a smaller fleet before. The numbers
of workers take turns, and the median of the rounds counts. Eight workers cannot be quicker than the cores carry
out what all processes do for a user, so that this stands beside it. Then comes what one user costs, in requests
and bytes, and what that makes for a million users of a thousand memories.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

N_USERS, N_MEMORIES, DELAY_MS = 200, 50, 20
MIN_RATIO = 6


def user_id(number):
    return f"{number:08x}-5f6d-4a1b-8c3d-6f5d4a1b2c3d"


class Users:
    """Answers for many users by turning the ids in one prepared page into theirs."""

    def __init__(self, n_users, n_memories, delay_s):
        from pages import KEY, USER_ID, memory, rendered

        from tests.pairs.corpus import corpus

        self._n_users, self._delay_s, self._any, self._key = n_users, delay_s, USER_ID.encode(), KEY.hex()
        memories = map(memory, count(), corpus(n_memories, seed=7).memories["content"])
        (self._page,) = rendered(memories, n_memories).values()
        self.n_requests = self.n_bytes = 0

    def answer(self, method, target, _body):
        time.sleep(self._delay_s)
        body = self._body(method, urlsplit(target))
        if not target.endswith("/counts"):
            self.n_requests += 1
            self.n_bytes += len(body)
        return body

    def _body(self, method, parts):
        if method == "POST":
            return b'{"token": "t", "expires_at": "2099-01-01T00:00:00Z", "token_type": "Bearer"}'
        if parts.path == "/counts":
            return json.dumps([self.n_requests, self.n_bytes]).encode()
        if parts.path.endswith("/access-requests"):
            items = [
                {"id": f"r{n}", "status": "approved", "user_id": user_id(n)} for n in range(self._n_users)
            ]
            return json.dumps({"items": items}).encode()
        if parts.path.endswith("/credentials"):
            number = int(parts.path.split("/")[-2][1:])
            keys = {
                "user_id": user_id(number),
                "memory_key": "mk",
                "encryption_key": self._key,
                "key_version": 1,
            }
            return json.dumps(keys).encode()
        if parts.path.endswith("/tags"):
            return b'{"items": []}'
        return self._page.replace(self._any, parse_qs(parts.query)["user_id"][0].encode())


# What is compared


@contextlib.contextmanager
def service(n_users, n_memories, delay_ms):
    command = [sys.executable, __file__, "--serve", n_users, n_memories, delay_ms]
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True) as server:
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/api/v1"
        finally:
            server.terminate()


def serve(n_users, n_memories, delay_ms):
    from pages import Handler, Server

    with Server(("127.0.0.1", 0), Handler) as server:
        server.pages = Users(n_users, n_memories, delay_ms / 1000)
        print(server.server_address[1], flush=True)
        server.serve_forever()


@contextlib.contextmanager
def dask_cluster(n_workers):
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as dask_client,
    ):
        yield dask_client


class Took(NamedTuple):
    seconds: float
    worked_s: float
    """Of the cores, by this process, the service and the workers: idle ones, too."""


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

    this = psutil.Process()
    times = [process.cpu_times() for process in (this, *this.children(recursive=True))]
    return sum(time.user + time.system for time in times)


def compared(rounds):
    os.environ["MEMFRAME_API_KEY"] = "mf_benchmark"  # for the workers
    n_rows = N_USERS * N_MEMORIES
    times = {}
    with service(N_USERS, N_MEMORIES, DELAY_MS) as base_url, contextlib.ExitStack() as clusters:
        dask = {n: clusters.enter_context(dask_cluster(n)) for n in (1, 8)}
        for number in range(rounds + 1):
            for n in (1, 8):
                for name, options in (("threads", {"workers": n}), ("dask", {"scheduler": dask[n]})):
                    took = taken(base_url, n_rows, **options)
                    if number:  # the first round warms all of them
                        times.setdefault(name, {}).setdefault(n, []).append(took)
    return {
        name: {n: Took(*map(statistics.median, zip(*took, strict=True))) for n, took in of_n.items()}
        for name, of_n in times.items()
    }


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
        service(n_users, N_PLANNED_MEMORIES, 0) as base_url,
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
    for name, median in compared(rounds).items():
        one, eight = median[1].seconds, median[8].seconds
        ratio = one / eight
        cost_ms = median[8].worked_s / N_USERS * 1000
        verdict = "" if ratio >= MIN_RATIO else f"  (at least {MIN_RATIO} is asked for)"
        print(
            f"  {name:8} 1 worker {one:5.2f} s   8 workers {eight:5.2f} s   {ratio:4.1f}x   "
            f"{cost_ms:4.1f} ms of {os.cpu_count()} cores a user{verdict}"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", type=int, nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(*options.serve)
    else:
        report(options.rounds)
        plan()


if __name__ == "__main__":
    main()
