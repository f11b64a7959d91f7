"""Seconds for the queue of many findings, and for one decision among 10,000 proposals.

python benchmarks/review.py [--findings 100000]
"""

import argparse
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import pandas as pd

import memframe as mf
from memframe.audit import Audit
from memframe.audit.findings import findings_frame
from memframe.review.detail import show_proposal, shown_ids
from memframe.review.widget import N_SEARCHED


def make_audit(n_findings):
    """An audit with findings of four checks, one in five of a group of four."""
    ids = [f"m{n}" for n in range(n_findings)]
    contents = [
        f"Note {n}: met Ada at the harbour, code {n % 5_000:04}#, and talked about the boat"
        for n in range(n_findings)
    ]
    memories = pd.DataFrame({"id": ids, "content": contents, "source": "chat"})
    checks = ["junk", "stale", "secret", "near_duplicate"]
    findings = findings_frame(
        id=ids,
        check=[checks[n % 4] for n in range(n_findings)],
        kind=["status_report", "expired", "pin", "spelling"] * (n_findings // 4),
        severity="medium",
        field="content",
        start=[text.index("code ") + 5 for text in contents],
        end=[text.index("#") for text in contents],
        related_id=[ids[n - 1] if n % 4 == 3 else None for n in range(n_findings)],
        group=[n // 16 if n % 4 == 3 else None for n in range(n_findings)],
        score=1.0,
        evidence="for a benchmark",
        action=[("review", "review", "redact", "merge")[n % 4] for n in range(n_findings)],
    )
    return Audit(memories=memories, findings=findings, checks=tuple(checks), not_checked=())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--findings", type=int, default=100_000)
    n_findings = parser.parse_args().findings // 4 * 4
    audit = make_audit(n_findings)
    times = [(perf_counter(), process_time())]
    desk = mf.review(audit)
    times.append((perf_counter(), process_time()))
    queue = desk.queue
    times.append((perf_counter(), process_time()))
    for name, (wall, cpu), (wall_end, cpu_end) in zip(("review", "queue"), times, times[1:], strict=False):
        print(
            f"{n_findings:,} findings, {len(queue):,} proposals, {name}: {wall_end - wall:.2f} s, "
            f"{cpu_end - cpu:.2f} s of a core"
        )

    audit = make_audit(16_000)
    with tempfile.TemporaryDirectory() as folder:
        desk = mf.review(audit, decisions=Path(folder) / "decisions")
        ids = [one.id for one in desk.proposals]
        decided, shown, listed = [], [], []
        for number in range(50):
            start = perf_counter()
            desk.accept(ids[number])
            decided.append(perf_counter() - start)
            start = perf_counter()
            one, *others = map(desk.find, ids[number + 1 : number + 1 + N_SEARCHED])
            desk.texts.hidden_of(shown_ids(one), following=(i for other in others for i in shown_ids(other)))
            show_proposal(desk, ids[number + 1])
            shown.append(perf_counter() - start)
            start = perf_counter()
            desk.proposals  # noqa: B018 - sorts
            listed.append(perf_counter() - start)
    times = (1_000 * median(some) for some in (decided, shown, listed))
    print(
        f"{len(ids):,} proposals, medians in ms: decide {{:.1f}}, show {{:.1f}}, sort {{:.1f}}".format(*times)
    )


if __name__ == "__main__":
    main()
