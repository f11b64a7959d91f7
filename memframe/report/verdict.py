"""The verdict: what an audit comes to, the worst first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

import pandas as pd

from memframe.report.wording import CHECKS, PROPOSALS, SEVERITIES, memories, share, words_of
from memframe.showing import moment

_TELLING = ("high", "medium")
"""Severities that the verdict speaks of; the others are in the table."""

_IN_LARGE_NUMBERS = ("exact_duplicate", "near_duplicate", "junk")
"""Checks whose findings weigh by their number, whatever the severity of each."""


class Audited(Protocol):
    """An audit, as far as it is shown: a `memframe.audit.Audit`."""

    @property
    def memories(self) -> pd.DataFrame: ...
    @property
    def findings(self) -> pd.DataFrame: ...
    @property
    def by_memory(self) -> pd.DataFrame: ...
    @property
    def counts(self) -> list[Count]: ...
    @property
    def proposals(self) -> list[str]: ...
    @property
    def checks(self) -> Sequence[str]: ...
    @property
    def not_checked(self) -> Sequence[str]: ...
    @property
    def made_at(self) -> datetime | None: ...


class Count(NamedTuple):
    """Memories that one check concerns: each once, by the worst severity that it gives it."""

    check: str
    worst: str
    """Of all its findings."""
    n_memories: int
    by_severity: dict[str, int]


def counts_of(findings: pd.DataFrame, by_memory: pd.DataFrame) -> list[Count]:
    """Count the memories of each check, those with the worst first; a check that is about none counts 0."""
    found = [_count(check, findings, by_memory) for check in findings["check"].unique()]
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


def worst_of(by_memory: pd.DataFrame) -> dict[str, int]:
    """Count memories by their worst severity, the worst first.

    >>> worst_of(pd.DataFrame({"id": ["m1", "m1", "m2"], "severity": ["low", "high", "low"]}))
    {'high': 1, 'low': 1}
    """
    counts = by_memory["severity"].map(SEVERITIES.index).groupby(by_memory["id"]).min().value_counts()
    return {name: int(counts[rank]) for rank, name in enumerate(SEVERITIES) if rank in counts.index}


def proposals(by_memory: pd.DataFrame) -> list[str]:
    """Say what the cleanup would do to how many memories; of several things to one memory the first counts.

    >>> proposals(pd.DataFrame({"id": ["m1", "m1", "m2"], "action": ["redact", "delete", "review"]}))
    ['delete 1', 'look at 1']
    """
    rank = {action: place for place, action in enumerate(PROPOSALS)}
    counts = by_memory["action"].map(rank).groupby(by_memory["id"]).min().value_counts()
    return [
        f"{words} {counts[rank[action]]:,}"
        for action, words in PROPOSALS.items()
        if rank[action] in counts.index
    ]


def subject_of(audit: Audited) -> str:
    """Say whose memories were audited, at which service, and as of when, as far as the frame tells.

    >>> from datetime import UTC
    >>> from types import SimpleNamespace
    >>> memories = pd.DataFrame({"id": ["m1"], "user_id": ["4f0c"]})
    >>> subject_of(SimpleNamespace(memories=memories, made_at=datetime(2026, 11, 21, 14, 2, tzinfo=UTC)))
    'of user 4f0c, as of 21 November 2026, 14:02 UTC'
    """
    frame = audit.memories
    users = frame["user_id"].dropna().unique().tolist() if "user_id" in frame.columns else []
    service = frame.attrs.get("memframe", {}).get("base_url")
    parts = [
        f"of user {users[0]}" if len(users) == 1 else f"of {len(users):,} users" if len(users) else "",
        f"at {service}" if service else "",
        f"as of {moment(audit.made_at)}" if audit.made_at else "",
    ]
    return ", ".join(filter(None, parts)).replace(", at ", " at ")


def none_found(counts: Sequence[Count], checks: Sequence[str]) -> str:
    """The checks that found nothing, in words; that is no proof that there is nothing."""
    found = {count.check for count in counts}
    return ", ".join(words_of(check).title.lower() for check in checks if check not in found)


def _sentences(counts: Sequence[Count], n_memories: int) -> Iterator[str]:
    """What is grave first, then what is much."""
    weighed = [(count, _weight(count)) for count in counts]
    for count, weight in sorted(weighed, key=lambda pair: (pair[0].worst != _TELLING[0], -pair[1])):
        if weight:
            words, n = words_of(count.check), count.n_memories
            part = f" ({share(n, n_memories)})" if n_memories > 1 else ""
            yield f"{memories(n)}{part} {words.one if n == 1 else words.many}{_by_severity(count)}."


def _by_severity(count: Count) -> str:
    """Say how many of a check's memories are how bad, where that differs: not all of them are as bad as the worst."""
    parts = [f"{n:,} {severity}" for severity, n in count.by_severity.items()]
    return f": {', '.join(parts)}" if len(parts) > 1 else ""


def _weight(count: Count) -> int:
    """How much a check weighs in the verdict; nothing where it has small things only."""
    if count.check in _IN_LARGE_NUMBERS:
        return count.n_memories
    return sum(count.by_severity.get(severity, 0) for severity in _TELLING)


def _count(check: str, findings: pd.DataFrame, by_memory: pd.DataFrame) -> Count:
    worst = min(findings["severity"][findings["check"] == check], key=SEVERITIES.index)
    by_severity = worst_of(by_memory[by_memory["check"] == check])
    return Count(check, worst, sum(by_severity.values()), by_severity)
