"""How fast memories become a frame: memframe and what people would write or pick instead, side by side.

    python tests/benchmarks/load.py

Each way of `ways.py` runs in a fresh process against a page server of its own process; the ways take turns,
in another order each round, and the median of the rounds counts. One whose library is not installed is left
out, and said so: `pip install dlt httpx` has them all.

Small pages are measured on fewer memories, 200 pages at most. The table shows milliseconds for 1,000
memories, and how often that goes into the obvious loop's.
"""

import argparse
import contextlib
import importlib.util
import json
import random
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from ways import WAYS

HERE = Path(__file__).parent
LIBRARIES = {"httpx", "dlt"}
"""Ways that need a library which memframe does not."""
PAGES_AT_MOST = 200

CASES = [(delay_ms, size) for delay_ms in (0, 20) for size in (1000, 100, 10)]


@contextlib.contextmanager
def page_server(n_memories, size, delay_ms):
    options = {"--memories": n_memories, "--page-size": size, "--delay-ms": delay_ms}
    command = [sys.executable, HERE / "pages.py", *(part for option in options.items() for part in option)]
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True) as server:
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/api/v1"
        finally:
            server.terminate()


def n_asked(base_url):
    """Pages that the server was asked for since the last call."""
    with urllib.request.urlopen(f"{base_url}/asked") as answer:  # noqa: S310 - our own server
        return json.load(answer)


def measured(way, base_url, size):
    command = [sys.executable, HERE / "ways.py", way, base_url, str(size)]
    run = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return run | {"requests": n_asked(base_url)}


def compared(ways, *, n_memories, size, delay_ms, rounds):
    """Of each way the median of its runs, measured in turns, for each figure."""
    runs = {way: [] for way in ways}
    with page_server(n_memories, size, delay_ms) as base_url:
        for _ in range(rounds):
            for way in random.sample(ways, len(ways)):
                runs[way].append(measured(way, base_url, size))
    assert all(run["rows"] in (n_memories, 0) for of_way in runs.values() for run in of_way)
    return {
        way: {figure: statistics.median(run[figure] for run in of_way) for figure in of_way[0]}
        for way, of_way in runs.items()
    }


def import_seconds(statement, rounds):
    """Median of fresh processes, the interpreter's own start not counted."""
    code = f"import time; began = time.perf_counter(); {statement}; print(time.perf_counter() - began)"
    runs = [
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        for _ in range(rounds)
    ]
    return statistics.median(float(run.stdout) for run in runs)


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
    pandas = import_seconds("import pandas", 5)
    for statement in ("import memframe", "import memframe; memframe.load_memories"):
        ratio = import_seconds(statement, 5) / pandas
        print(f"`{statement}`: {ratio:.2f} times `import pandas` ({pandas:.2f} s)")


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
    options = parser.parse_args()
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
