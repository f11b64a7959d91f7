"""Count findings, and sum them up in sentences: how many memories have them, and how severe they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from memframe.display import format_memories, format_share
from memframe.report.words import CHECK_WORDS, PROPOSAL_WORDS, WORST_FIRST, check_words_of

_NAMED = ("high", "medium")
"""Severities that the verdict names; the others are in the table."""

_NO_ACTION = "info"
"""Severity of findings that need no action, such as the kept one of several copies; the verdict does not name it."""

_COUNTED = ("exact_duplicate", "near_duplicate", "version", "stale", "junk")
"""Checks whose findings weigh by their number, even if the severity of each is low."""


class Count(NamedTuple):
    """Memories with findings of one check, each counted once, at its worst severity."""

    check: str
    worst: str
    """Worst severity of its findings."""
    n_memories: int
    by_severity: dict[str, int]


def counts_of(findings: pd.DataFrame, by_memory: pd.DataFrame) -> list[Count]:
    """Count the memories of each check, the worst check first; a check whose findings name no memory counts 0."""
    found = []
    for check, severities in findings.groupby("check")["severity"]:
        by_severity = count_by_worst(by_memory[by_memory["check"] == check])
        worst = min(severities, key=WORST_FIRST.index)
        found.append(Count(str(check), worst, sum(by_severity.values()), by_severity))
    order = [*CHECK_WORDS, *sorted(count.check for count in found if count.check not in CHECK_WORDS)]
    return sorted(found, key=lambda count: (WORST_FIRST.index(count.worst), order.index(count.check)))


def sources_of(memories: pd.DataFrame, by_memory: pd.DataFrame) -> pd.DataFrame:
    """Count the memories of each source by their worst severity, the sources with the worst first.

    >>> memories = pd.DataFrame({"id": ["m1", "m2", "m3"], "source": ["chat", "mail", "chat"]})
    >>> sources_of(memories, pd.DataFrame({"id": ["m1", "m1"], "severity": ["low", "high"]}))
      source  n_memories  n_found  high  medium  low  info
    0   chat           2        1     1       0    0     0
    1   mail           1        0     0       0    0     0
    """
    columns = ["source", "n_memories", "n_found", *WORST_FIRST]
    if "source" not in memories.columns:
        return pd.DataFrame(columns=columns)
    source = memories["source"].astype("str")
    worst = by_memory["severity"].map(WORST_FIRST.index).groupby(by_memory["id"]).min()
    ranks = memories["id"].map(worst)
    found = pd.DataFrame({name: ranks.eq(rank) for rank, name in enumerate(WORST_FIRST)})
    counts = (
        found.assign(n_memories=1, n_found=ranks.notna()).groupby(source, dropna=False).sum().astype("int64")
    )
    order = [*WORST_FIRST, "n_memories"]
    return counts.sort_values(order, ascending=False, kind="stable").reset_index()[columns]


def count_by_worst(by_memory: pd.DataFrame) -> dict[str, int]:
    """Count memories by their worst severity, the worst first.

    >>> count_by_worst(pd.DataFrame({"id": ["m1", "m1", "m2"], "severity": ["low", "high", "low"]}))
    {'high': 1, 'low': 1}
    """
    counts = by_memory["severity"].map(WORST_FIRST.index).groupby(by_memory["id"]).min().value_counts()
    return {name: int(counts[rank]) for rank, name in enumerate(WORST_FIRST) if rank in counts.index}


def verdict_of(counts: Sequence[Count], n_memories: int) -> list[str]:
    """Return the verdict in sentences: severe findings first, then frequent ones; minor checks have no sentence."""
    if not n_memories:
        return ["There are no memories."]
    weighed = []
    for count in counts:
        named = sum(count.by_severity.get(severity, 0) for severity in _NAMED)
        weighs_by_number = count.check in _COUNTED and count.worst != _NO_ACTION
        weighed.append((count, count.n_memories if weighs_by_number else named))
    sentences = []
    for count, weight in sorted(weighed, key=lambda pair: (pair[0].worst != _NAMED[0], -pair[1])):
        if weight:
            words, n = check_words_of(count.check), count.n_memories
            part = f" ({format_share(n, n_memories)})" if n_memories > 1 else ""
            graded = [
                f"{n_of:,} {severity}"
                for severity, n_of in count.by_severity.items()
                if severity != _NO_ACTION
            ]
            detail = f": {', '.join(graded)}" if len(graded) > 1 else ""
            sentences.append(f"{format_memories(n)}{part} {words.one if n == 1 else words.many}{detail}.")
    return sentences or ["Only minor findings." if counts else "None of the checks found anything."]


def list_proposals(by_memory: pd.DataFrame) -> list[str]:
    """Count memories by what the cleanup would do to them; each is counted once, for the action that changes most.

    >>> list_proposals(pd.DataFrame({"id": ["m1", "m1", "m2"], "action": ["redact", "delete", "review"]}))
    ['delete 1', 'review 1']
    """
    rank = {action: place for place, action in enumerate(PROPOSAL_WORDS)}
    counts = by_memory["action"].map(rank).groupby(by_memory["id"]).min().value_counts()
    return [
        f"{words} {counts[rank[action]]:,}"
        for action, words in PROPOSAL_WORDS.items()
        if rank[action] in counts.index
    ]
