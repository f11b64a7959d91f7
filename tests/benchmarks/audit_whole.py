"""The whole audit: seconds, peak memory, and what each check has of it, beside the near-duplicates alone.

    python tests/benchmarks/audit_whole.py
    python tests/benchmarks/audit_whole.py --million      # near-duplicates alone, up to a million rows

Each size runs in fresh processes, the audit and the near-duplicates taking turns; the median of the rounds counts.
Seconds are of the clock, and in brackets those of the processor, which hang less on what else the machine does. Stores
are made up: facts of some 50 words, a quarter of them copies, some with a secret, personal data or junk, with titles,
tags, sources and scores. In a hard one, every second memory is a restated boot file, a heartbeat or a filled template.
"""

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

MAX_RATIO = 6
CHUNK = 10_000
"""Rows of one made-up store; larger ones are several of them."""

MILLION = 10_000, 100_000, 1_000_000

TAGS = ["work", "home", "family", "Family", "health", "travel", "recipes", "recipe", "music", "garden"]


def store(n_rows):
    """Memories of one user, of which something is wrong with every twentieth."""
    import pandas as pd

    from tests.audit import junk_corpus, secret_corpus
    from tests.pairs.corpus import corpus

    draw = random.Random(5)
    parts = [corpus(min(CHUNK, n_rows - start), seed=9 + start).memories for start in range(0, n_rows, CHUNK)]
    memories = pd.concat(parts, ignore_index=True).assign(id=[f"m{row}" for row in range(n_rows)])
    maker = secret_corpus.Maker(seed=5, seed_words=["abandon", "ability", "able"] * 8)
    junk = junk_corpus.junk()
    contents = memories["content"].tolist()
    for row in range(0, n_rows, 20):
        contents[row] = draw.choice([draw.choice(junk), maker.fill(draw.choice(secret_corpus.TOLD)).text])
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
    from tests.audit import junk_corpus

    memories, draw = store(n_rows), random.Random(3)
    lines = junk_corpus.read_lists()["made with", "system_prompt"]
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


def whole(memories):
    """Every check, as `audit_memories` runs them."""
    from memframe.audit import audit_memories

    return {"findings": len(audit_memories(memories).findings)}


def parts(memories):
    """The checks one by one; seconds of each."""
    from memframe.audit.run import all_checks

    seconds = {}
    checks = all_checks(memories)
    for check, find in {
        "junk": checks["junk"],
        **checks,
    }.items():  # the search for pairs leaves out what it deletes
        timed(check, find, seconds, memories)
    return seconds


def timed(check, find, seconds, memories):
    began = time.perf_counter()
    find(memories)
    seconds[check] = time.perf_counter() - began


def near(memories):
    """Near-duplicates alone."""
    from memframe.audit.likeness.similar import similar_pairs
    from memframe.audit.near_duplicate import find_near_duplicates

    pairs = similar_pairs(memories)
    findings = find_near_duplicates(memories, pairs=pairs)
    n_groups = int(findings["group"].nunique())
    return {"findings": len(findings), "pairs": len(pairs.pairs.left), "groups": n_groups}


WAYS = {"whole": whole, "near": near, "parts": parts}
STORES = {"natural": store, "hard": hard_store}
MEASURES = ("s", "cpu_s", "mb")


def measured(way, kind, n_rows):
    """Seconds, peak memory with that of the store, and what the way tells, in this process."""
    import memframe.audit  # noqa: F401 - its import is not what is measured

    memories = STORES[kind](n_rows)
    began, cpu_began = time.perf_counter(), time.process_time()
    told = WAYS[way](memories)
    taken = {"s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu_began}
    return {**taken, "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, **told}


def in_fresh_process(way, n_rows, kind="natural"):
    command = [sys.executable, __file__, "--way", way, "--kind", kind, "--rows", str(n_rows)]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def report(kind, n_rows, rounds):
    results = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, done in results.items():
            done.append(in_fresh_process(way, n_rows, kind))
    median = {
        way: {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        for way, runs in results.items()
    }
    all_of_it, near_ones = median["whole"], median["near"]
    ratio = statistics.median(a["s"] / b["s"] for a, b in zip(results["whole"], results["near"], strict=True))
    print(
        f"{n_rows:>9,} {kind:8} {times(all_of_it)} {all_of_it['mb']:5,.0f} MB   near-duplicates alone "
        f"{times(near_ones)}: {ratio:.1f} times (at most {MAX_RATIO})   {all_of_it['findings']:,.0f} findings"
    )
    shares = {name: value for name, value in median["parts"].items() if name not in MEASURES}
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    total = sum(shares.values())
    print(" " * 10 + ", ".join(f"{name} {value / total:.0%}" for name, value in ranked), flush=True)


def report_million():
    """Near-duplicates of stores up to a million rows, once each: what a row costs, and how that grows."""
    print(
        f"{'rows':>9} {'seconds':>10} {'(of cpu)':>10} {'peak':>9} {'pairs':>11} {'groups':>9} {'cpu a row':>10}"
    )
    for n_rows in MILLION:
        done = in_fresh_process("near", n_rows)
        print(
            f"{n_rows:>9,} {times(done)} {done['mb']:6,.0f} MB {done['pairs']:>11,} {done['groups']:>9,} "
            f"{done['cpu_s'] / n_rows * 1e6:7.0f} us",
            flush=True,
        )


def times(done):
    return f"{done['s']:7.2f} s ({done['cpu_s']:6.2f})"


@cache
def options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--million", action="store_true", help="near-duplicates alone, up to 1,000,000 rows")
    parser.add_argument("--kind", choices=STORES, nargs="+", default=[*STORES], help="of stores")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    if options().way:
        print(json.dumps(measured(options().way, options().kind[0], options().rows[0])))
        return
    if options().million:
        report_million()
        return
    print(f"{'rows':>9} {'store':8} {'seconds':>9} {'(of cpu)':>8} {'peak':>11}")
    for n_rows in options().rows:
        for kind in options().kind:
            report(kind, n_rows, options().rounds)


if __name__ == "__main__":
    main()
