"""Writing memories: memframe against the loop that everybody writes, side by side, as ratios.

    python benchmarks/write.py [--server service]

Each way runs in a fresh process against a server of its own process; the ways take turns, and the median of the rounds
counts. The loop knows of no journal, no lost answer and no second look: what memframe does beside the writes is in its
time. Processor time of the client is shown for each row, as a slow disk or a busy machine blurs the other figures.

Two servers: one that keeps what it is given in a dict, after a delay for every write, so that what is measured is the
client; and the service itself, with full durability, which takes its own share of the processors.
"""

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from servers import USER_ID, Keeper, run_apart, serving

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

N_MEMORIES = 1000
IN_FLIGHT = 8


def loop(server, action):
    """One `requests` call after the other, on one connection."""
    import requests

    session = requests.Session()
    for number in range(N_MEMORIES):
        if action == "create":
            path, body, send = "", {"content": f"new fact {number}"}, session.post
        else:
            path, body, send = f"/{server['ids'][number]}", {"title": "after"}, session.patch
        address = f"{server['base_url']}/memory-blobs{path}"
        send(address, json=server["keys"] | body, headers=server["headers"]).raise_for_status()


def memframe(server, action):
    """`mf.push_memories`, several writes in flight."""
    return pushed(server, action, workers=IN_FLIGHT)


def sequential(server, action):
    """`mf.push_memories`, one write after the other."""
    return pushed(server, action, workers=1)


def pushed(server, action, workers):
    import pandas as pd

    import memframe as mf

    access = mf.open_access(mf.connect(server["base_url"], api_key=server["api_key"]), server["request_id"])
    if action == "create":
        frame = pd.DataFrame({"content": [f"new fact {number}" for number in range(N_MEMORIES)]})
    else:
        frame = mf.load_memories(access, progress=False).assign(title="after")
    plan = mf.plan_changes(access, frame)
    began = time.perf_counter(), time.process_time()
    run = mf.apply_plan(access, plan, workers=workers, progress=False)
    ended = time.perf_counter(), time.process_time()
    run.raise_for_failures()
    return [after - before for before, after in zip(began, ended, strict=True)]


WAYS = {way.__name__: way for way in (loop, memframe, sequential)}


@contextlib.contextmanager
def keeper(delay_ms):
    with serving(Keeper, N_MEMORIES, delay_ms) as base_url:
        yield {
            "base_url": base_url,
            "api_key": "mf_benchmark",
            "request_id": "r1",
            "headers": {"Authorization": "Bearer t"},
            "keys": {"user_id": USER_ID, "memoryKey": "mk"},
            "ids": [f"m{number}" for number in range(N_MEMORIES)],
        }


@contextlib.contextmanager
def service(_):
    from service import running

    with running("sqlite", 1) as service:
        service.fill(service.user_id, N_MEMORIES)
        yield {
            "base_url": f"{service.address}/api/v1",
            "api_key": service.api_key,
            "request_id": service.request_id,
            "headers": service.headers,
            "keys": service.keys,
            "ids": service.ids(),
        }


SERVERS = {server.__name__: server for server in (keeper, service)}


def measured(way, action, server, delay_ms):
    """Seconds and processor seconds of one round, with a fresh server and a journal on the disk of this folder."""
    with SERVERS[server](delay_ms) as known, tempfile.TemporaryDirectory(dir=HERE) as state:
        options = ("--way", way, "--action", action, "--on", json.dumps(known))
        return run_apart(__file__, *options, XDG_STATE_HOME=state)


def compared(ways, action, server, delay_ms, rounds):
    """Median seconds and processor seconds of each way, measured in turns."""
    times = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            times[way].append(measured(way, action, server, delay_ms))
    return {way: [statistics.median(some) for some in zip(*rows, strict=True)] for way, rows in times.items()}


def report(server, rounds):
    print(f"{N_MEMORIES:,} writes, median of {rounds} rounds, server: {server}")
    delay_ms = 10 if server == "keeper" else 0
    for action in ("patch", "create"):
        found = compared(["loop", "memframe"], action, server, delay_ms, rounds)
        (loop_s, loop_cpu_s), (seconds, cpu_s) = found["loop"], found["memframe"]
        row_ms, loop_row_ms = (1000 * used_s / N_MEMORIES for used_s in (cpu_s, loop_cpu_s))
        print(
            f"  {action:7} {IN_FLIGHT} in flight    {seconds:6.2f} s  {loop_s / seconds:5.2f}x the loop"
            f"  {row_ms:5.2f} ms of processor time a row, the loop {loop_row_ms:.2f}"
        )
    for action in ("patch", "create"):
        seconds, _ = compared(["sequential"], action, server, 0, rounds)["sequential"]
        print(f"  {action:7} one by one     {seconds:6.2f} s  {N_MEMORIES / seconds:5.0f} rows/s")


def timed(way, server, action):
    """Seconds and processor seconds of a way; those that plan before say them themselves."""
    began = time.perf_counter(), time.process_time()
    found = WAYS[way](server, action)
    return found or [time.perf_counter() - began[0], time.process_time() - began[1]]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--server", choices=SERVERS, default="keeper")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--action", help=argparse.SUPPRESS)
    parser.add_argument("--on", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(timed(options.way, json.loads(options.on), options.action)))
    else:
        report(options.server, options.rounds)


if __name__ == "__main__":
    main()
