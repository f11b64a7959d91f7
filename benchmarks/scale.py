"""A million memories in bounded memory: the cost of a row and peak memory, at 50,000 and at 1,000,000 rows.

    python benchmarks/scale.py

Each way runs in a fresh process against a page server of its own process; the sizes take turns, and the
median of the rounds counts.
"""

import argparse
import contextlib
import json
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from servers import EndlessPages, run_apart, serving

N_FEW, N_MANY = 50_000, 1_000_000
MAX_RATIO, MAX_PEAK_MB = 1.15, 600


# The ways


def export(access, path):
    """`mf.export_memories` to a folder of Parquet files."""
    import memframe as mf

    return mf.export_memories(access, path, progress=False)


def sealed(access, path):
    """The same, sealed with the user's key."""
    import memframe as mf

    return mf.export_memories(access, path, sealed=True, progress=False)


def iterate(access, path):
    """`mf.iter_memories`, frames dropped."""
    import memframe as mf

    return sum(len(frame) for frame in mf.iter_memories(access, progress=False))


WAYS = {way.__name__: way for way in (export, sealed, iterate)}


def measured(way, base_url):
    """Seconds, seconds of the processor, rows and peak memory of one way, in this process."""
    import memframe as mf

    access = mf.open_access(mf.connect(base_url, api_key="mf_benchmark"), "r1")
    with tempfile.TemporaryDirectory() as folder:
        began, cpu_began = time.perf_counter(), time.process_time()
        n_rows = WAYS[way](access, Path(folder) / "memories")
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    return seconds, cpu_seconds, n_rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# The comparison


class Cost(NamedTuple):
    us: float
    cpu_us: float
    peak_mb: float


def compared(way, sizes, rounds):
    """Median microseconds a row and highest peak for each number of rows, measured in turns."""
    found = {size: [] for size in sizes}
    with contextlib.ExitStack() as services:
        base_urls = {size: services.enter_context(serving(EndlessPages, size)) for size in sizes}
        for _ in range(rounds):
            for size in sizes:
                seconds, cpu_seconds, n_rows, peak_mb = run_apart(
                    __file__, "--way", way, "--base-url", base_urls[size]
                )
                assert n_rows == size, (way, n_rows)
                found[size].append(Cost(seconds / n_rows * 1e6, cpu_seconds / n_rows * 1e6, peak_mb))
    return [
        Cost(
            statistics.median(run.us for run in runs),
            statistics.median(run.cpu_us for run in runs),
            max(run.peak_mb for run in runs),
        )
        for runs in found.values()
    ]


def report(sizes, rounds):
    print(f"{sizes[0]:,} and {sizes[1]:,} memories, {EndlessPages.SIZE:,} a page, median of {rounds} rounds")
    for way in WAYS:
        few, many = compared(way, sizes, rounds)
        print(
            f"  {way:8} {few.us:5.1f} and {many.us:5.1f} us a row, {many.us / few.us:4.2f}x (at most {MAX_RATIO});"
            f" of the processor {few.cpu_us:5.1f} and {many.cpu_us:5.1f}, {many.cpu_us / few.cpu_us:4.2f}x;"
            f" peak {few.peak_mb:3.0f} and {many.peak_mb:3.0f} MB (at most {MAX_PEAK_MB})"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=N_MANY)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--base-url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measured(options.way, options.base_url)))
    else:
        report((N_FEW, options.memories), options.rounds)


if __name__ == "__main__":
    main()
