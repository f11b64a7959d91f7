"""The checks that relate memories: what they find and miss in labelled stores.

    python tests/benchmarks/audit_pairs.py

The stores are those of `tests/pairs`; the half that the checks were written with and the half that they were not, and
pairs of one user each in three other voices. What the checks cost is in `audit_whole.py`.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memframe.audit.changed_values import find_changed_values
from memframe.audit.duplicates import find_exact_duplicates, find_near_duplicates
from memframe.audit.similarity.cluster import similar_pairs
from memframe.audit.superseded import find_superseded
from tests.audit.figures import Figures
from tests.audit.test_pairs import judged
from tests.pairs import scoring
from tests.pairs.corpus import corpus, frame_of
from tests.pairs.families import families
from tests.pairs.updates import updates
from tests.pairs.voices import VOICES, pairs

SEEDS = (1, 2, 3)
REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "locomo_memories.jsonl"


def report_store(half, n):
    """Print figures of duplicates and changed values in stores of ``n`` memories, of all seeds together."""
    near, values = ([Counter(), Counter(), Counter()] for _ in range(2))
    made, lost, n_changed, n_merged = Counter(), Counter(), 0, 0
    for seed in SEEDS if n < 10_000 else SEEDS[:1]:
        store = corpus(n, seed, half)
        similar = similar_pairs(store.memories)
        duplicates = find_near_duplicates(store.memories, pairs=similar)
        merged = scoring.merged(store, find_exact_duplicates(store.memories), duplicates)
        changed, _ = scoring.changed(store, find_changed_values(store.memories, pairs=similar))
        for sums, figures in ((near, merged.figures), (values, changed)):
            for total, part in zip(sums, figures, strict=True):
                total.update(part)
        made.update(store.made)
        lost.update(merged.lost)
        n_changed += len(store.changed)
        n_merged += merged.n_changed_merged
    print_row("near_duplicate", f"{half}, {n:,}", Figures(*near))
    print_row("changed_value", f"{half}, {n:,}", Figures(*values))
    print(f"  changed values merged: {n_merged} of {n_changed}")
    print("  copies lost: " + (", ".join(f"{kind} {lost[kind]} of {made[kind]}" for kind in lost) or "none"))


def report_voice(name, n=2000):
    """Print figures of pairs of memories in one voice, each pair of a user of its own."""
    said = judged(list(pairs(name, 1, n)))
    for check, verdict in (("near_duplicate", "same"), ("changed_value", "changed")):
        told = {n for n, (pair, _) in enumerate(said) if pair.verdict == verdict}
        found = {n for n, (_, seen) in enumerate(said) if seen == verdict}
        hits, false, missed = (Counter(pair=len(ns)) for ns in (told & found, found - told, told - found))
        print_row(check, f"pairs, {name}", Figures(hits, false, missed))
    merged = sum(pair.verdict == "changed" and found == "same" for pair, found in said)
    print(f"  changed values merged: {merged} of {sum(pair.verdict == 'changed' for pair, _ in said)}")


def report_updates(half):
    """Print figures of superseded facts."""
    stores = [updates(seed, half) for seed in SEEDS]
    results = [scoring.ranked(store, find_superseded(store.memories)) for store in stores]
    sums = [sum((result.cued[part] for result in results), Counter()) for part in range(3)]
    print_row("superseded", f"{half}, with a cue", Figures(*sums))
    first = np.mean([result.first_three for result in results])
    uncued = np.mean([result.uncued_recall for result in results])
    beside = sum(result.beside for result in results), sum(len(store.beside) for store in stores)
    print(f"  replaced memory among the first three: {first:.3f}; recall without a cue: {uncued:.3f}")
    print(f"  still true, and proposed all the same: {beside[0]} of {beside[1]}")


def report_nothing(name, memories):
    """Print what is found where nothing is said twice."""
    similar = similar_pairs(memories)
    merge = find_near_duplicates(memories, pairs=similar)
    changed = find_changed_values(memories, pairs=similar)
    superseded = find_superseded(memories, pairs=similar)
    print(
        f"  {name}, {len(memories):,}: {(merge['action'] == 'merge').sum()} to merge, {len(changed)} changed values, "
        f"{(superseded['action'] == 'review').sum()} superseded"
    )


def locomo():
    rows = [json.loads(line) for line in REAL.read_text().splitlines()]
    times = [said["created_at"] for said in rows]
    owners = [f"{said['person']} of {said['source'].split('/')[0]}" for said in rows]
    return frame_of([said["content"] for said in rows], user_id=owners, created_at=times, updated_at=times)


def print_row(check, name, figures):
    print(f"| `{check}` | {name} | {figures.precision():.3f} | {figures.recall():.3f} | {figures.f1():.3f} |")


def main():
    print("| check | corpus | precision | recall | F1 |\n|---|---|---|---|---|")
    for half in ("develop", "held_out"):
        for n in (1_000, 10_000):
            report_store(half, n)
        report_updates(half)
    for name in VOICES:
        report_voice(name)
    print("Where nothing is said twice:")
    report_nothing("families of facts", families(1000, 1))
    if REAL.exists():
        report_nothing("LoCoMo", locomo())


if __name__ == "__main__":
    main()
