"""The verdict: what an audit comes to, the worst first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pandas as pd

from memframe.report.wording import CHECKS, PROPOSALS, SEVERITIES, memories, share, words_of

_TELLING = ("high", "medium")
"""Severities that the verdict speaks of; the others are in the table."""

_IN_LARGE_NUMBERS = ("exact_duplicate", "near_duplicate", "junk")
"""Checks whose findings weigh by their number, whatever the severity of each."""


class Count(NamedTuple):
    """Memories that one check concerns, in sum and by the worst severity that it gives each."""

    check: str
    n_findings: int
    n_memories: int
    by_severity: dict[str, int]

    @property
    def worst(self) -> str:
        """The worst severity of all."""
        return next(severity for severity in SEVERITIES if self.by_severity.get(severity))


def counts_of(findings: pd.DataFrame) -> list[Count]:
    """What was found by check, those with the worst first."""
    found = [_count(check, findings[findings["check"] == check]) for check in findings["check"].unique()]
    order = {check: place for place, check in enumerate(CHECKS)}
    return sorted(
        found, key=lambda count: (SEVERITIES.index(count.worst), order.get(count.check, len(order)))
    )


def headline(counts: Sequence[Count], n_memories: int) -> str:
    """The verdict in one sentence."""
    if not n_memories:
        return "There are no memories to look at."
    said = list(_sentences(counts, n_memories))
    if said:
        return said[0]
    return "Small things only." if counts else "Nothing of what was looked for was found."


def details(counts: Sequence[Count], n_memories: int) -> list[str]:
    """The other sentences of the verdict."""
    return list(_sentences(counts, n_memories))[1:]


def proposals(findings: pd.DataFrame) -> list[str]:
    """What could be done, as counts of memories."""
    counts = findings.groupby("action")["id"].nunique()
    return [f"{words} {counts[action]:,}" for action, words in PROPOSALS.items() if counts.get(action)]


def none_found(counts: Sequence[Count], checks: Sequence[str]) -> str:
    """The checks that found nothing, in words; that is no proof that there is nothing."""
    found = {count.check for count in counts}
    return ", ".join(words_of(check).title.lower() for check in checks if check not in found)


def _sentences(counts: Sequence[Count], n_memories: int) -> Iterator[str]:
    """What is grave first, then what is much."""
    weighed = [(count, _weight(count)) for count in counts]
    for count, weight in sorted(weighed, key=lambda pair: (pair[0].worst != _TELLING[0], -pair[1])):
        if weight:
            words = words_of(count.check)
            part = f" ({share(weight, n_memories)})" if n_memories > 1 else ""
            yield f"{memories(weight)}{part} {words.one if weight == 1 else words.many}."


def _weight(count: Count) -> int:
    """Of how many memories the verdict speaks."""
    if count.check in _IN_LARGE_NUMBERS:
        return count.n_memories
    return sum(count.by_severity.get(severity, 0) for severity in _TELLING)


def _count(check: str, found: pd.DataFrame) -> Count:
    subjects = found["id"].fillna("")  # what is about no memory counts as one
    ranks = found["severity"].map(SEVERITIES.index).groupby(subjects).min().value_counts()
    by_severity = {name: int(ranks[rank]) for rank, name in enumerate(SEVERITIES) if rank in ranks.index}
    return Count(check, len(found), int(found["id"].nunique()), by_severity)
