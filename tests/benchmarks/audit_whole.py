"""The whole audit: seconds, peak memory, and what each check has of it, beside the near-duplicates alone.

    python tests/benchmarks/audit_whole.py
    python tests/benchmarks/audit_whole.py --million      # near-duplicates alone, up to a million rows

Each size runs in fresh processes, the audit as it is, that in one process, and the near-duplicates taking turns; the
median of the rounds counts. Seconds are of the clock, and in brackets those of all processors together, which hang
less on what else the machine does; memory is that of the process, and of the second one where there is one. The store
is made up: facts of some 50 words, a quarter of them copies, some with a secret, personal data or junk, with titles,
tags, sources and scores.
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
PROCESSES = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
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
    junk = [text for texts in junk_corpus.JUNK.values() for text in texts]
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


def whole(memories):
    """Every check, as `audit_memories` runs them."""
    from memframe.audit import audit_memories

    return {"findings": len(audit_memories(memories).findings)}


def alone(memories):
    """The same in one process."""
    from memframe.audit import audit_memories

    return {"findings": len(audit_memories(memories, workers=1).findings)}


def parts(memories):
    """The same one by one; seconds of each."""
    from memframe.audit.run import all_checks

    seconds = {}
    for check, find in all_checks(memories).items():
        timed(check, find, seconds, memories)
    return seconds


def timed(check, find, seconds, memories):
    began = time.perf_counter()
    find(memories)
    seconds[check] = time.perf_counter() - began


def near(memories):
    """Near-duplicates alone."""
    from memframe.audit.duplicates import find_near_duplicates
    from memframe.audit.similarity.cluster import similar_pairs

    pairs = similar_pairs(memories)
    findings = find_near_duplicates(memories, pairs=pairs)
    n_groups = int(findings["group"].nunique())
    return {"findings": len(findings), "pairs": len(pairs.pairs.left), "groups": n_groups}


WAYS = {"whole": whole, "alone": alone, "near": near, "parts": parts}
MEASURES = ("s", "cpu_s", "mb", "second_mb")


def measured(way, n_rows):
    """Seconds, peak memory with that of the store, and what the way tells, in this process."""
    import memframe.audit  # noqa: F401 - its import is not what is measured

    memories = store(n_rows)
    began, cpu_began = time.perf_counter(), cpu_seconds()
    told = WAYS[way](memories)
    taken = {"s": time.perf_counter() - began, "cpu_s": cpu_seconds() - cpu_began}
    mb, second_mb = (resource.getrusage(who).ru_maxrss / 1024 for who in PROCESSES)
    return {**taken, "mb": mb, "second_mb": second_mb, **told}


def cpu_seconds():
    """Of this process and those that it started and that have ended."""
    used = [resource.getrusage(who) for who in PROCESSES]
    return sum(one.ru_utime + one.ru_stime for one in used)


def in_fresh_process(way, n_rows):
    command = [sys.executable, __file__, "--way", way, "--rows", str(n_rows)]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def report(n_rows, rounds):
    results = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, done in results.items():
            done.append(in_fresh_process(way, n_rows))
    median = {
        way: {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        for way, runs in results.items()
    }
    all_of_it, one, near_ones = median["whole"], median["alone"], median["near"]
    ratio = statistics.median(a["s"] / b["s"] for a, b in zip(results["whole"], results["near"], strict=True))
    print(
        f"{n_rows:>9,} {times(all_of_it)} {all_of_it['mb']:5,.0f} + {all_of_it['second_mb']:3,.0f} MB   "
        f"in one process {times(one)} {one['mb']:5,.0f} MB   near-duplicates alone {times(near_ones)}: "
        f"{ratio:.1f} times (at most {MAX_RATIO})   {all_of_it['findings']:,.0f} findings"
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
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    if options().way:
        print(json.dumps(measured(options().way, options().rows[0])))
        return
    if options().million:
        report_million()
        return
    print(f"{'rows':>9} {'seconds':>9} {'(of cpu)':>8} {'peak':>11}")
    for n_rows in options().rows:
        report(n_rows, options().rounds)


if __name__ == "__main__":
    main()
