"""The whole audit: seconds and peak memory.

    python benchmarks/audit_whole.py

Each size runs in fresh processes that take turns; the median of the rounds counts. Seconds are of the processor, which
hang less on what else the machine does, and in brackets those of the clock. Stores are made up: facts of some 50 words,
a quarter of them copies, some with a secret, personal data or junk, with titles, tags, sources and scores. In a hard
one, every second memory is a restated boot file, a heartbeat or a filled template.
"""

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

CHUNK = 10_000
"""Rows of one made-up store; larger ones are several of them."""

TAGS = ["work", "home", "family", "Family", "health", "travel", "recipes", "recipe", "music", "garden"]


def store(n_rows):
    """Memories of one user, of which something is wrong with every twentieth."""
    import pandas as pd

    from benchmarks.pairs.corpus import corpus
    from tests.audit import corpora

    draw = random.Random(5)
    parts = [corpus(min(CHUNK, n_rows - start), seed=9 + start).memories for start in range(0, n_rows, CHUNK)]
    memories = pd.concat(parts, ignore_index=True).assign(id=[f"m{row}" for row in range(n_rows)])
    maker = corpora.Maker(seed=5)
    junk = [text for store in corpora.junk_stores().values() for text, is_junk in store if is_junk]
    contents = memories["content"].tolist()
    for row in range(0, n_rows, 20):
        contents[row] = draw.choice([draw.choice(junk), maker.fill(draw.choice(corpora.secrets.TOLD)).text])
    return memories.assign(
        content=contents,
        title=[" ".join(text.split()[:5]) or None for text in contents],
        tags=[tuple(draw.sample(TAGS, k=draw.randint(0, 3))) for _ in contents],
        source=[draw.choice(["chat", "mail", "notes"]) for _ in contents],
        importance=[draw.choice([0.2, 0.5, 0.8, 4.0]) for _ in contents],
        confidence=[draw.random() for _ in contents],
    )


def hard_store(n_rows):
    """The same, with a half that is not worth keeping, or hard to tell apart."""
    from tests.audit import corpora

    memories, draw = store(n_rows), random.Random(3)
    lines = corpora.read_lists("junk")["made with: system_prompt"]
    contents = memories["content"].tolist()
    for row in range(0, n_rows, 2):
        contents[row] = draw.choice([restated, restated, heartbeat, filled])(draw, lines)
    return memories.assign(content=contents)


def restated(draw, lines):
    return " ".join(draw.sample(lines, k=draw.randint(1, 6)))


def heartbeat(draw, _):
    return f"heartbeat ok 2026-03-{draw.randint(10, 28)}T{draw.randint(10, 23)}:{draw.randint(10, 59)}:00Z"


def filled(draw, _):
    who, what = draw.choice(["Ada", "Bram", "Ilka", "Otto"]), draw.choice(["apples", "pears", "books"])
    where, day = draw.choice(["Hull", "Kent"]), draw.randint(1, 300)
    return f"User {who} bought {draw.randint(1, 99)} {what} at {where}, day {day}"


STORES = {"natural": store, "hard": hard_store}


def measure(kind, n_rows):
    """Seconds of the processor and the clock, peak memory with that of the store, and findings, in this process."""
    from memframe.audit import audit_memories  # its import is not what is measured

    memories = STORES[kind](n_rows)
    began, cpu_began = time.perf_counter(), time.process_time()
    n_found = len(audit_memories(memories).findings)
    seconds = time.process_time() - cpu_began, time.perf_counter() - began
    return *seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, n_found


def measure_apart(kind, n_rows):
    command = [sys.executable, __file__, "--here", "--kind", kind, "--rows", str(n_rows)]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kind", choices=STORES, nargs="+", default=[*STORES], help="of stores")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.here:
        print(json.dumps(measure(chosen.kind[0], chosen.rows[0])))
        return
    for n_rows, kind in product(chosen.rows, chosen.kind):
        runs = [measure_apart(kind, n_rows) for _ in range(chosen.rounds)]
        cpu_s, wall_s, mb, n_found = map(statistics.median, zip(*runs, strict=True))
        print(
            f"{n_rows:>9,} {kind:8} {cpu_s:7.2f} s ({wall_s:7.2f}) {mb:6,.0f} MB {n_found:>9,.0f} findings",
            flush=True,
        )


if __name__ == "__main__":
    main()
