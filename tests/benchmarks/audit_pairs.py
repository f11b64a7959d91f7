"""The checks that relate memories: what they find and miss in labelled stores, and what they cost.

    python tests/benchmarks/audit_pairs.py
    python tests/benchmarks/audit_pairs.py --rows 1000000

The stores are those of `tests/pairs`; the half that the checks were written with and the half that they were not, and
pairs of one user each in three other voices. Costs are of a fresh process for each size, beside a bare MinHash index of
the same texts (`rensa`, else `datasketch`; neither is needed otherwise) in another one; they take turns, and the
fastest of the rounds counts. Ratios are of seconds of the processor, which hang less on what else the machine does.
"""

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

SIZES = (1_000, 10_000, 100_000)
SEEDS = (1, 2, 3)
REAL = ROOT.parent / "shared" / "data" / "locomo_memories.jsonl"
SHINGLE, PERMUTATIONS, BANDS = 5, 128, 32


# What is found


def found_pairs(half, n):
    """Figures of duplicates and changed values in stores of ``n`` memories, of all seeds together."""
    from memframe.audit.changed_values import find_changed_values
    from memframe.audit.duplicates import find_exact_duplicates, find_near_duplicates
    from memframe.audit.similarity.cluster import similar_pairs
    from tests.audit.figures import Figures
    from tests.pairs import scoring
    from tests.pairs.corpus import corpus

    near, values = ([Counter(), Counter(), Counter()] for _ in range(2))
    made, lost, n_changed, n_merged = Counter(), Counter(), 0, 0
    for seed in SEEDS if n < 10_000 else SEEDS[:1]:
        store = corpus(n, seed, half)
        pairs = similar_pairs(store.memories)
        merged = scoring.merged(
            store,
            find_exact_duplicates(store.memories),
            find_near_duplicates(store.memories, pairs=pairs),
        )
        changed, _ = scoring.changed(store, find_changed_values(store.memories, pairs=pairs))
        for sums, figures in ((near, merged.figures), (values, changed)):
            for total, part in zip(sums, figures, strict=True):
                total.update(part)
        made.update(store.made)
        lost.update(merged.lost)
        n_changed += len(store.changed)
        n_merged += merged.n_changed_merged
    corpus_name = f"{half}, {n:,}"
    row("near_duplicate", corpus_name, Figures(*near))
    row("changed_value", corpus_name, Figures(*values))
    print(f"  changed values merged: {n_merged} of {n_changed}")
    print("  copies lost: " + (", ".join(f"{kind} {lost[kind]} of {made[kind]}" for kind in lost) or "none"))


def found_pairs_of_one_user(name, n=2000):
    """Figures of pairs of memories in one voice, each pair of a user of its own."""
    from tests.audit.figures import Figures
    from tests.audit.test_pairs import judged
    from tests.pairs.voices import pairs

    said = judged(list(pairs(name, 1, n)))
    for check, verdict in (("near_duplicate", "same"), ("changed_value", "changed")):
        told = {n for n, (pair, _) in enumerate(said) if pair.verdict == verdict}
        found = {n for n, (_, seen) in enumerate(said) if seen == verdict}
        hits, false, missed = (Counter(pair=len(ns)) for ns in (told & found, found - told, told - found))
        row(check, f"pairs, {name}", Figures(hits, false, missed))
    merged = sum(pair.verdict == "changed" and found == "same" for pair, found in said)
    print(f"  changed values merged: {merged} of {sum(pair.verdict == 'changed' for pair, _ in said)}")


def found_updates(half):
    """Figures of superseded facts."""
    import numpy as np

    from memframe.audit.superseded import find_superseded
    from tests.audit.figures import Figures
    from tests.pairs import scoring
    from tests.pairs.updates import updates

    stores = [updates(seed, half) for seed in SEEDS]
    results = [scoring.ranked(store, find_superseded(store.memories)) for store in stores]
    sums = [sum((result.cued[part] for result in results), Counter()) for part in range(3)]
    row("superseded", f"{half}, with a cue", Figures(*sums))
    first = np.mean([result.first_three for result in results])
    uncued = np.mean([result.uncued_recall for result in results])
    beside = sum(result.beside for result in results), sum(len(store.beside) for store in stores)
    print(f"  replaced memory among the first three: {first:.3f}; recall without a cue: {uncued:.3f}")
    print(f"  still true, and proposed all the same: {beside[0]} of {beside[1]}")


def found_nothing(n=1000):
    """What is found where nothing is said twice."""
    from tests.pairs.families import families

    told(f"families of facts, {n:,}", families(n, 1))
    if REAL.exists():
        told(f"LoCoMo, {sum(1 for _ in REAL.open()):,}", real_memories())


def real_memories():
    from tests.pairs.corpus import frame_of

    rows = [json.loads(line) for line in REAL.read_text().splitlines()]
    times = [said["created_at"] for said in rows]
    owners = [f"{said['person']} of {said['source'].split('/')[0]}" for said in rows]
    return frame_of([said["content"] for said in rows], user_id=owners, created_at=times, updated_at=times)


def told(name, memories):
    from memframe.audit.changed_values import find_changed_values
    from memframe.audit.duplicates import find_near_duplicates
    from memframe.audit.similarity.cluster import similar_pairs
    from memframe.audit.superseded import find_superseded

    pairs = similar_pairs(memories)
    merge = find_near_duplicates(memories, pairs=pairs)
    changed = find_changed_values(memories, pairs=pairs)
    superseded = find_superseded(memories, pairs=pairs)
    print(
        f"  {name}: {(merge['action'] == 'merge').sum()} to merge, {len(changed)} changed values, "
        f"{(superseded['action'] == 'review').sum()} superseded"
    )


def row(check, corpus_name, figures):
    print(
        f"| `{check}` | {corpus_name} | {figures.precision():.3f} | {figures.recall():.3f} | {figures.f1():.3f} |"
    )


# What it costs


def near_duplicates(memories):
    """`find_near_duplicates`, from the frame to the findings."""
    from memframe.audit.duplicates import find_near_duplicates

    return len(find_near_duplicates(memories))


def relations(memories):
    """All five checks that relate memories, on one search for similar pairs, as an audit runs them."""
    from memframe.audit import audit_memories

    checks = ["exact_duplicate", "near_duplicate", "changed_value", "superseded", "stale"]
    return len(audit_memories(memories, checks=checks).findings)


def rensa(memories):
    """The bare index: shingles of five characters, 128 permutations, each text asked for its like."""
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=0.5, num_perm=PERMUTATIONS, num_bands=BANDS)
    hashes = []
    for place, text in enumerate(memories["content"].tolist()):
        hashed = RMinHash(num_perm=PERMUTATIONS, seed=1)
        hashed.update(shingles(text))
        index.insert(place, hashed)
        hashes.append(hashed)
    return sum(len(index.query(hashed)) for hashed in hashes)


def datasketch(memories):
    """The same, by another library."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(num_perm=PERMUTATIONS, params=(BANDS, PERMUTATIONS // BANDS))
    hashes = []
    for place, text in enumerate(memories["content"].tolist()):
        hashed = MinHash(num_perm=PERMUTATIONS)
        hashed.update_batch([shingle.encode() for shingle in shingles(text)])
        index.insert(place, hashed)
        hashes.append(hashed)
    return sum(len(index.query(hashed)) for hashed in hashes)


def shingles(text):
    text = text.lower()
    return [text[at : at + SHINGLE] for at in range(max(1, len(text) - SHINGLE + 1))]


WAYS = {way.__name__: way for way in (near_duplicates, relations, rensa, datasketch)}


def measured(way, path):
    """Seconds of the processor, seconds and peak memory of one way, in this process."""
    import memframe as mf

    memories = mf.load_archive(path)
    WAYS[way](memories.head(10))  # imports do not count
    began, cpu_began = time.perf_counter(), time.process_time()
    WAYS[way](memories)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    return cpu_seconds, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write_store(n, path):
    """Stores of 100,000 at most, one after the other, of one user."""
    import pandas as pd

    import memframe as mf
    from tests.pairs.corpus import corpus

    most = 100_000
    parts = [corpus(min(most, n - start), 1 + start // most).memories for start in range(0, n, most)]
    memories = pd.concat(parts, ignore_index=True)
    memories["id"] = [f"m{place}" for place in range(len(memories))]
    mf.export_memories(memories, path, progress=False)


def costs(sizes, rounds):
    index = next((name for name in ("rensa", "datasketch") if importlib.util.find_spec(name)), None)
    ways = [way for way in WAYS if way in {index, "near_duplicates", "relations"}]
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "store.parquet")
            in_a_fresh_process("--write", path, "--rows", str(n))
            found = {way: [] for way in ways}
            for _ in range(rounds if n <= 100_000 else 1):
                for way in ways:
                    found[way].append(json.loads(in_a_fresh_process("--way", way, "--store", path)))
        cpu = {way: min(run[0] for run in runs) for way, runs in found.items()}
        for way, runs in found.items():
            ratio = f", {cpu[way] / cpu[index]:.2f}x the bare index" if index else ""
            print(
                f"{n:>9,} {way:16} {cpu[way]:7.2f} s of the processor, {min(run[1] for run in runs):7.2f} s, "
                f"peak {max(run[2] for run in runs):5.0f} MB{ratio}",
                flush=True,
            )


def in_a_fresh_process(*options):
    command = [sys.executable, __file__, *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, help="only the costs, at this size")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--figures", action="store_true", help="only what is found")
    parser.add_argument("--write", help=argparse.SUPPRESS)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write_store(options.rows, options.write)
    elif options.way:
        print(json.dumps(measured(options.way, options.store)))
    else:
        if not options.rows:
            report()
        if not options.figures:
            costs([options.rows] if options.rows else SIZES, options.rounds)


def report():
    print("| check | corpus | precision | recall | F1 |\n|---|---|---|---|---|")
    for half in ("develop", "held_out"):
        for n in (1_000, 10_000):
            found_pairs(half, n)
        found_updates(half)
    for name in ("notes", "chat", "household"):
        found_pairs_of_one_user(name)
    print("Where nothing is said twice:")
    found_nothing()


if __name__ == "__main__":
    main()
