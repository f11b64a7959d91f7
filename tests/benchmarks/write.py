"""Writing memories: memframe against the loop that everybody writes, side by side, as ratios.

    python tests/benchmarks/write.py

Each way runs in a fresh process against a server of its own process, which takes its time for every write; the
ways take turns, and the median of the rounds counts. The loop knows of no journal, no lost answer and no second
look: what memframe does beside the writes is in its time.
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
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

N_MEMORIES = 1000
IN_FLIGHT = 8


def loop(base_url, action):
    """One `requests` call after the other, on one connection."""
    import requests
    from pages import USER_ID

    session = requests.Session()
    keys = {"user_id": USER_ID, "memoryKey": "mk"}
    headers = {"Authorization": "Bearer t"}
    began = time.perf_counter()
    for number in range(N_MEMORIES):
        if action == "create":
            address, body, send = f"{base_url}/memory-blobs", {"content": f"new fact {number}"}, session.post
        else:
            address, body, send = f"{base_url}/memory-blobs/m{number}", {"title": "after"}, session.patch
        send(address, json={**keys, **body}, headers=headers).raise_for_status()
    return time.perf_counter() - began


def memframe(base_url, action):
    """`mf.push_memories`, several writes in flight."""
    return pushed(base_url, action, workers=IN_FLIGHT)


def sequential(base_url, action):
    """`mf.push_memories`, one write after the other."""
    return pushed(base_url, action, workers=1)


def pushed(base_url, action, workers):
    import pandas as pd

    import memframe as mf

    access = mf.open_access(mf.connect(base_url, api_key="mf_benchmark"), "r1")
    if action == "create":
        frame = pd.DataFrame({"content": [f"new fact {number}" for number in range(N_MEMORIES)]})
    else:
        frame = mf.load_memories(access, progress=False).assign(title="after")
    plan = mf.plan_changes(access, frame)
    began = time.perf_counter()
    run = mf.apply_plan(access, plan, workers=workers, progress=False)
    seconds = time.perf_counter() - began
    run.raise_for_failures()
    return seconds


WAYS = {way.__name__: way for way in (loop, memframe, sequential)}


@contextlib.contextmanager
def keeper(delay_ms):
    command = [sys.executable, HERE / "keeper.py", "--memories", N_MEMORIES, "--delay-ms", delay_ms]
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True) as server:
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/api/v1"
        finally:
            server.terminate()


def seconds_of(way, action, delay_ms):
    """Of one round, against a fresh server and with a journal on the disk of this folder."""
    with keeper(delay_ms) as base_url, tempfile.TemporaryDirectory(dir=HERE) as state:
        environment = os.environ | {"XDG_STATE_HOME": state}
        command = [sys.executable, __file__, "--way", way, "--action", action, "--base-url", base_url]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        return json.loads(done.stdout)


def compared(ways, action, delay_ms, rounds):
    """Median seconds of each way, measured in turns."""
    times = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            times[way].append(seconds_of(way, action, delay_ms))
    return {way: statistics.median(seconds) for way, seconds in times.items()}


def report(rounds):
    print(f"{N_MEMORIES:,} writes, median of {rounds} rounds")
    for action in ("patch", "create"):
        median = compared(["loop", "memframe"], action, 10, rounds)
        ratio = median["loop"] / median["memframe"]
        print(
            f"  {action:7} 10 ms each, {IN_FLIGHT} in flight  {median['memframe']:6.2f} s  {ratio:5.2f}x the loop"
        )
    for action in ("patch", "create"):
        seconds = compared(["sequential"], action, 0, rounds)["sequential"]
        print(f"  {action:7} one by one, at once     {seconds:6.2f} s  {N_MEMORIES / seconds:5.0f} rows/s")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--action", help=argparse.SUPPRESS)
    parser.add_argument("--base-url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(WAYS[options.way](options.base_url, options.action)))
    else:
        report(options.rounds)


if __name__ == "__main__":
    main()
