"""Writing memories: memframe against the loop that everybody writes, side by side, as ratios.

    python tests/benchmarks/write.py

Each way writes 1,000 new memories and changes 1,000 others, in a fresh process, against a service of its
own process that keeps them in memory; the ways take turns, and the median of the rounds counts. memframe's
time has all in it: the plan, the journal on the disk, the writes, and the reading back.
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

DELAY_MS = 10
WORKERS = 8


def serial(base_url, n_rows):
    """`requests.post` and `requests.patch` a row, one after the other, sealed by AES-GCM."""
    import base64

    import requests
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from pages import KEY, USER_ID

    cipher, headers = AESGCM(KEY), {"Authorization": "Bearer t"}

    def body(text):
        nonce = os.urandom(12)
        sealed = base64.b64encode(nonce + cipher.encrypt(nonce, text.encode(), None)).decode()
        return {"user_id": USER_ID, "memoryKey": "mk", "content": sealed}

    began = time.perf_counter()
    for row in range(n_rows):
        requests.post(f"{base_url}/memory-blobs", json=body(f"new {row}"), headers=headers).raise_for_status()
    for row in range(n_rows):
        url = f"{base_url}/memory-blobs/mem_{row:012d}"
        requests.patch(url, json=body(f"changed {row}"), headers=headers).raise_for_status()
    return time.perf_counter() - began


def memframe(base_url, n_rows, workers=WORKERS):
    """`mf.push_memories` of both at once."""
    import pandas as pd

    import memframe as mf

    push_memories = mf.push_memories  # imported now: the other way imports before its clock runs, too
    access = mf.open_access(mf.connect(base_url, api_key="mf_benchmark"), "r1")
    loaded = mf.load_memories(access, limit=n_rows, progress=False)
    began = time.perf_counter()
    changed = loaded.assign(content=[f"changed {row}" for row in range(n_rows)])
    new = pd.DataFrame({"content": [f"new {row}" for row in range(n_rows)]})
    rows = pd.concat([changed, new], ignore_index=True)
    with tempfile.TemporaryDirectory() as folder:
        run = push_memories(access, rows, journal=f"{folder}/run.journal", workers=workers, progress=False)
    run.raise_for_failures()
    return time.perf_counter() - began


def sequential(base_url, n_rows):
    """`mf.push_memories` with one write in flight."""
    return memframe(base_url, n_rows, workers=1)


WAYS = {way.__name__: way for way in (serial, memframe, sequential)}


@contextlib.contextmanager
def record_server(n_memories, delay_ms):
    command = [sys.executable, HERE / "records.py", "--memories", n_memories, "--delay-ms", delay_ms]
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True) as server:
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/api/v1"
        finally:
            server.terminate()


def seconds_of(way, n_rows, delay_ms):
    with record_server(n_rows, delay_ms) as base_url:
        command = [sys.executable, __file__, "--way", way, "--base-url", base_url, "--rows", str(n_rows)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def compared(ways, *, n_rows, delay_ms, rounds):
    """Median seconds of each way, measured in turns."""
    times = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            times[way].append(seconds_of(way, n_rows, delay_ms))
    return {way: statistics.median(seconds) for way, seconds in times.items()}


def report(n_rows, rounds):
    print(f"{n_rows:,} creates and {n_rows:,} patches, median of {rounds} rounds")
    for delay_ms, ways in ((DELAY_MS, ["serial", "memframe"]), (0, ["serial", "sequential", "memframe"])):
        median = compared(ways, n_rows=n_rows, delay_ms=delay_ms, rounds=rounds)
        for way, seconds in median.items():
            print(
                f"  {delay_ms:2} ms a request  {way:10} {seconds:6.2f} s  {2 * n_rows / seconds:6,.0f} rows/s"
                f"  {median['serial'] / seconds:5.2f}x serial"
            )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--base-url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(WAYS[options.way](options.base_url, options.rows)))
    else:
        report(options.rows, options.rounds)


if __name__ == "__main__":
    main()
