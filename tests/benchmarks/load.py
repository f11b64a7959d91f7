"""Loading memories: memframe against the loop that everybody writes, side by side, as ratios.

    python tests/benchmarks/load.py

Each way runs in a fresh process against a page server of its own process; the ways take turns, and the
median of the rounds counts.
"""

import argparse
import base64
import contextlib
import http.client
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

USER_QUERY = "user_id=0b5e9e9c-3d1f-4c55-9a53-6f5d4a1b2c3d"


def obvious(base_url, size):
    """`requests.get` a page, `.json()`, decrypt a row at a time, `DataFrame(rows)`."""
    import pandas as pd
    import requests
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from pages import KEY, USER_ID

    began = time.perf_counter()
    cipher, rows, cursor = AESGCM(KEY), [], None
    while True:
        params = {"user_id": USER_ID, "limit": size} | ({"cursor": cursor} if cursor else {})
        page = requests.get(
            f"{base_url}/memory-blobs", params=params, headers={"Authorization": "Bearer t"}
        ).json()
        for row in page["memoryBlobs"]:
            sealed = base64.b64decode(row["content"])
            row["content"] = cipher.decrypt(sealed[:12], sealed[12:], None).decode()
            rows.append(row)
        cursor = page["next_cursor"]
        if cursor is None:
            break
    frame = pd.DataFrame(rows)
    return time.perf_counter() - began, len(frame)


def chain(base_url, size):
    """The page chain alone: one connection, bytes dropped. No client can be faster."""
    host, path = re.fullmatch(r"http://([^/]+)(.*)", base_url).groups()
    connection, cursor, n_pages = http.client.HTTPConnection(host), None, 0
    began = time.perf_counter()
    while n_pages == 0 or cursor:
        target = f"{path}/memory-blobs?{USER_QUERY}&limit={size}" + (f"&cursor={cursor}" if cursor else "")
        connection.request("GET", target, headers={"Authorization": "Bearer t"})
        tail = connection.getresponse().read()[-40:]
        found = re.search(rb'"next_cursor": "(c\d+)"}', tail)
        cursor, n_pages = found and found[1].decode(), n_pages + 1
    return time.perf_counter() - began, n_pages * size


def memframe(base_url, size):
    """`mf.load_memories`."""
    import memframe as mf

    load_memories = mf.load_memories  # imported now: the other ways import before their clock runs, too
    access = mf.open_access(mf.connect(base_url, api_key="mf_benchmark"), "r1")
    began = time.perf_counter()
    frame = load_memories(access, page_size=size, progress=False)
    return time.perf_counter() - began, len(frame)


WAYS = {way.__name__: way for way in (obvious, chain, memframe)}


@contextlib.contextmanager
def page_server(n_memories, size, delay_ms):
    command = [
        sys.executable,
        HERE / "pages.py",
        "--memories",
        n_memories,
        "--page-size",
        size,
        "--delay-ms",
        delay_ms,
    ]
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True) as server:
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/api/v1"
        finally:
            server.terminate()


def seconds_of(way, base_url, size):
    command = [sys.executable, __file__, "--way", way, "--base-url", base_url, "--page-size", str(size)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[0]


def compared(ways, *, n_memories, size, delay_ms, rounds):
    """Median seconds of each way, measured in turns."""
    times = {way: [] for way in ways}
    with page_server(n_memories, size, delay_ms) as base_url:
        for _ in range(rounds):
            for way in ways:
                times[way].append(seconds_of(way, base_url, size))
    return {way: statistics.median(seconds) for way, seconds in times.items()}


def report(n_memories, rounds):
    print(f"{n_memories:,} memories, 1,000 a page, median of {rounds} rounds")
    for delay_ms, against in ((0, "obvious"), (20, "chain")):
        median = compared(
            [against, "memframe"], n_memories=n_memories, size=1000, delay_ms=delay_ms, rounds=rounds
        )
        for way, seconds in median.items():
            print(
                f"  {delay_ms:2} ms a page  {way:9} {seconds:6.2f} s  {median[against] / seconds:5.2f}x {against}"
            )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--base-url", help=argparse.SUPPRESS)
    parser.add_argument("--page-size", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(WAYS[options.way](options.base_url, options.page_size)))
    else:
        report(options.memories, options.rounds)


if __name__ == "__main__":
    main()
