"""How fast memories become a frame: memframe and what people would write or pick instead, side by side.

    python benchmarks/load.py

Each way runs in a fresh process against a page server of its own process; the ways take turns, in another order each
round, and the median of the rounds counts. Imports are not timed. One whose library is not installed is left out, and
said so: `pip install dlt httpx` has them all.

Small pages are measured on fewer memories, 200 pages at most. The table shows milliseconds for 1,000
memories, and how often that goes into the obvious loop's.
"""

import argparse
import base64
import http.client
import importlib.util
import json
import random
import re
import resource
import statistics
import sys
import time
import urllib.request

from servers import KEY, REQUEST_ID, USER_ID, Pages, run_apart, serving

LIBRARIES = {"httpx", "dlt"}
"""Ways that need a library which memframe does not."""
PAGES_AT_MOST = 200

CASES = [(delay_ms, size) for delay_ms in (0, 20) for size in (1000, 100, 10)]


# The ways

HEADERS = {"Authorization": "Bearer t"}


def opened(pages):
    """Decrypt a row at a time, then `DataFrame(rows)`."""
    import pandas as pd
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    cipher, rows = AESGCM(KEY), []
    for page in pages:
        for row in page:
            sealed = base64.b64decode(row["content"])
            row["content"] = cipher.decrypt(sealed[:12], sealed[12:], None).decode()
            rows.append(row)
    return pd.DataFrame(rows)


def followed(get, base_url, size):
    """The pages of the loop that everybody writes first."""
    cursor = None
    while True:
        params = {"user_id": USER_ID, "limit": size} | ({"cursor": cursor} if cursor else {})
        page = get(f"{base_url}/memory-blobs", params=params, headers=HEADERS).json()
        yield page["memoryBlobs"]
        cursor = page["next_cursor"]
        if cursor is None:
            return


def obvious(base_url, size):
    """The loop over `requests.get`."""
    import requests

    return lambda: opened(followed(requests.get, base_url, size))


def session(base_url, size):
    """The loop over one `requests.Session`."""
    import requests

    return lambda: opened(followed(requests.Session().get, base_url, size))


def httpx(base_url, size):
    """The loop over one `httpx.Client`."""
    import httpx

    return lambda: opened(followed(httpx.Client().get, base_url, size))


def dlt(base_url, size):
    """The `RESTClient` of `dlt`, its pages opened likewise."""
    from dlt.sources.helpers.rest_client import RESTClient
    from dlt.sources.helpers.rest_client.auth import BearerTokenAuth
    from dlt.sources.helpers.rest_client.paginators import JSONResponseCursorPaginator

    client = RESTClient(
        base_url,
        auth=BearerTokenAuth("t"),
        paginator=JSONResponseCursorPaginator("next_cursor", "cursor"),
        data_selector="memoryBlobs",
    )
    query = {"user_id": USER_ID, "limit": size}
    return lambda: opened(client.paginate("/memory-blobs", params=query))


def memframe(base_url, size):
    """memframe: `load_memories`."""
    import memframe as mf

    load_memories = mf.load_memories
    access = mf.open_access(mf.connect(base_url, api_key="mf_benchmark"), REQUEST_ID)
    return lambda: load_memories(access, page_size=size, progress=False)


def libraries(base_url, size):
    """The libraries under memframe, by hand, without one of its checks."""
    from by_hand import frame_of

    return lambda: frame_of(followed_bare(base_url, size))


def chain(base_url, size):
    """The bare chain of pages over `http.client`.

    Its bytes are dropped: no client can be faster.
    """
    return lambda: [body for body in followed_bare(base_url, size) if not body]


def followed_bare(base_url, size):
    """The bodies of all pages over one connection; the next one is asked for before this one is worked on."""
    host, path = re.fullmatch(r"http://([^/]+)(.*)", base_url).groups()
    first = f"{path}/memory-blobs?user_id={USER_ID}&limit={size}"
    connection, target = http.client.HTTPConnection(host), first
    connection.request("GET", target, headers=HEADERS)
    while target:
        body = connection.getresponse().read()
        found = re.search(rb'"next_cursor": "(c\d+)"}', body[-40:])
        target = found and f"{first}&cursor={found[1].decode()}"
        if target:
            connection.request("GET", target, headers=HEADERS)
        yield body


WAYS = {way.__name__: way for way in (obvious, session, httpx, dlt, memframe, libraries, chain)}


def measure(way, base_url, size):
    """Seconds, rows and peak memory of one way, in this process."""
    load = WAYS[way](base_url, size)
    began = time.perf_counter()
    frame = load()
    seconds = time.perf_counter() - began
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "rows": len(frame), "peak_mb": peak_mb}


# The comparison


def n_asked(base_url):
    """Pages that the server was asked for since the last call."""
    with urllib.request.urlopen(f"{base_url}/asked") as answer:  # noqa: S310 - our own server
        return json.load(answer)


def compared(ways, *, n_memories, size, delay_ms, rounds):
    """Of each way the median of its runs, measured in turns, for each figure."""
    runs = {way: [] for way in ways}
    with serving(Pages, n_memories, size, delay_ms) as base_url:
        for _ in range(rounds):
            for way in random.sample(ways, len(ways)):
                run = run_apart(__file__, "--run", way, base_url, size)
                runs[way].append(run | {"requests": n_asked(base_url)})
    assert all(run["rows"] in (n_memories, 0) for of_way in runs.values() for run in of_way)
    return {
        way: {figure: statistics.median(run[figure] for run in of_way) for figure in of_way[0]}
        for way, of_way in runs.items()
    }


def report(cases, ways, n_memories, rounds):
    results = {}
    for delay_ms, size in cases:
        n_here = min(n_memories, PAGES_AT_MOST * size)
        started = time.monotonic()
        results[delay_ms, size] = compared(
            ways, n_memories=n_here, size=size, delay_ms=delay_ms, rounds=rounds
        )
        for figures in results[delay_ms, size].values():
            figures["ms"] = figures["seconds"] * 1e6 / n_here
        took = time.monotonic() - started
        print(f"{n_here:,} memories, {size:,} a page, {delay_ms} ms: {took:.0f} s", file=sys.stderr)
    print_table(results, ways)
    print_beside(results)


def print_table(results, ways):
    """Milliseconds for 1,000 memories in Markdown, and the peaks and requests of the first case."""
    heads = [f"{size:,} a page{f', {delay_ms} ms' if delay_ms else ''}" for delay_ms, size in results]
    print(f"| way | {' | '.join(heads)} | peak memory | requests |")
    print("|---" * (len(heads) + 3) + "|")
    first = next(iter(results.values()))
    for way in ways:
        cells = []
        for case in results.values():
            ratio = case["obvious"]["ms"] / case[way]["ms"]
            cells.append(f"{case[way]['ms']:.1f}" + (f" ({ratio:.1f}x)" if way != "obvious" else ""))
        cells += [f"{first[way]['peak_mb']:.0f} MB", f"{first[way]['requests']:.0f}"]
        print(f"| {WAYS[way].__doc__.splitlines()[0].rstrip('.')} | {' | '.join(cells)} |")


def print_beside(results):
    """What the table does not say by itself."""
    print()
    if near_chain := results.get((20, 1000)):
        over = near_chain["memframe"]["ms"] / near_chain["chain"]["ms"] - 1
        print(f"memframe over the bare chain, 1,000 a page, 20 ms: {over:+.1%}")
    if {(20, 1000), (20, 10)} <= results.keys():
        times = results[20, 10]["obvious"]["ms"] / results[20, 1000]["memframe"]["ms"]
        print(
            f"the obvious loop at the API's default page size takes {times:.0f} times as long, 20 ms a page"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page-size", type=int, action="append", help="only these; may be repeated")
    parser.add_argument("--delay-ms", type=int, action="append", help="only these; may be repeated")
    parser.add_argument(
        "--way", choices=WAYS, action="append", help="only these beside obvious, memframe, chain"
    )
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        way, base_url, size = options.run
        print(json.dumps(measure(way, base_url, int(size))))
        return
    cases = [
        (delay_ms, size)
        for delay_ms, size in CASES
        if delay_ms in (options.delay_ms or [delay_ms]) and size in (options.page_size or [size])
    ]
    wanted = {*(options.way or WAYS), "obvious", "memframe", "chain"}
    absent = {library for library in LIBRARIES & wanted if importlib.util.find_spec(library) is None}
    for library in sorted(absent):
        print(f"{library} is not installed here, and left out", file=sys.stderr)
    ways = [way for way in WAYS if way in wanted - absent]
    report(cases, ways, options.memories, options.rounds)


if __name__ == "__main__":
    main()
