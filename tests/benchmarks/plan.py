"""Planning: what it costs to find what was edited, beside what it costs to load the memories at all; and a cleanup.

    python tests/benchmarks/plan.py

Edits against the page server of the other benchmarks, the cleanup against a service in this process, in seconds of the
thread that plans, for stores in which everything is a secret or has near-duplicates; the best of the rounds counts.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[2]))

import pandas as pd
from load import page_server

import memframe as mf


def seconds(work, rounds, clock=time.perf_counter):
    """Of the fastest round, and what it gave."""
    times = []
    for _ in range(rounds):
        began = clock()
        result = work()
        times.append(clock() - began)
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


def stores(n_memories):
    """Contents by name."""
    from tests.audit import corpora
    from tests.pairs.corpus import corpus

    draw = random.Random(5)
    maker = corpora.Maker(seed=5)
    return {
        "secrets": [maker.fill(draw.choice(corpora.secrets.TOLD)).text for _ in range(n_memories)],
        "near-duplicates": corpus(3 * n_memories, seed=9).memories["content"].tolist(),
    }


def report_cleanup(n_memories, rounds):
    with mf.service.run_local() as local, mf.connect(local.base_url, api_key=local.api_key) as client:
        for name, contents in stores(n_memories).items():
            access = access_to(contents, f"{name}@example.org", local, client)
            audit = mf.audit_memories(mf.load_memories(access, progress=False))
            n_planned = int(audit.findings["action"].isin(["delete", "merge", "redact"]).sum())
            plan_s, plan = seconds(
                lambda audit=audit, access=access: mf.plan_cleanup(access, audit), rounds, time.thread_time
            )
            print(f"  {f'cleanup, {name}':34} {plan_s:6.2f} s  {n_planned:,} findings, {len(plan):,} changes")


def access_to(contents, email, local, client):
    """A new user with such memories, who has approved."""
    user_id = local.add_user(email, "a password of nobody")
    moment = "2026-03-01T10:00:00Z"
    times = {"created_at": moment, "updated_at": moment}
    local.import_memories(user_id, [{"content": text, "source": "chat", **times} for text in contents])
    request = client.create_access_request(local.memory_key(user_id), "a benchmark")
    local.decide(request.id, "approved")
    return mf.open_access(client, request.id)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=50_000)
    parser.add_argument("--findings", type=int, default=3_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    report(options.memories, options.rounds)
    report_cleanup(options.findings, options.rounds)


if __name__ == "__main__":
    main()
