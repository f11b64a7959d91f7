"""Planning: what it costs to find what was edited, beside what it costs to load the memories at all.

    python tests/benchmarks/plan.py

Against the page server of the other benchmarks; the best of the rounds counts.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pandas as pd
from load import page_server

import memframe as mf


def seconds(work, rounds):
    """Of the fastest round, and what it gave."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - began)
    return min(times), result


def through_parquet(memories):
    with tempfile.TemporaryDirectory() as folder:
        memories.to_parquet(f"{folder}/memories.parquet")
        return pd.read_parquet(f"{folder}/memories.parquet")


def edited(memories, every):
    frame = memories.copy()
    frame.loc[::every, "title"] = "Another title"
    frame.loc[::every, "importance"] = 0.123
    return frame


def report(n_memories, rounds):
    with page_server(n_memories, 1000, 0) as base_url:
        access = mf.open_access(mf.connect(base_url, api_key="mf_benchmark"), "r1")
        load_s, memories = seconds(lambda: mf.load_memories(access, progress=False), rounds)
        print(f"{n_memories:,} memories, best of {rounds} rounds")
        print(f"  {'load':34} {load_s:6.2f} s")
        frames = {
            "unchanged": memories,
            "unchanged, shuffled": memories.sample(frac=1, random_state=1),
            "unchanged, through pandas' Parquet": through_parquet(memories),
            "every tenth row edited": edited(memories, 10),
        }
        plan_changes = mf.plan_changes
        for name, frame in frames.items():
            plan_s, plan = seconds(lambda frame=frame: plan_changes(access, frame), rounds)
            print(f"  {name:34} {plan_s:6.2f} s  {plan_s / load_s:5.2f}x the load, {len(plan):,} changes")
        stranger = mf.open_access(mf.connect(base_url, api_key="mf_benchmark"), "r1")
        plan_s, plan = seconds(lambda: plan_changes(stranger, frames["every tenth row edited"]), rounds)
        print(f"  {'the same, nothing loaded':34} {plan_s:6.2f} s  {plan_s / load_s:5.2f}x the load")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    report(options.memories, options.rounds)


if __name__ == "__main__":
    main()
