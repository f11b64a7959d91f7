"""Show the findings of an audit as one self-contained page, and as a few lines for a notebook.

Here are its figures and sentences; `page` draws them, and is loaded when a page is wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

import pandas as pd

from memframe.display import Markup, format_time, notebook_html, number_of, printable, table, tag
from memframe.frames import READ


class CheckWords(NamedTuple):
    """Words for a check."""

    title: str
    about: str
    """The things that it looks for."""
    one: str
    """The predicate after "1 memory"."""
    many: str
    """The predicate after "12 memories"."""


CHECKS = {
    "secret": CheckWords(
        "Secrets",
        "Keys and tokens of machines, and people's passwords, PINs, codes and security answers.",
        "contains an exposed secret",
        "contain an exposed secret",
    ),
    "personal_data": CheckWords(
        "Personal data",
        "E-mail addresses, telephone, card, bank account and national id numbers, and network addresses.",
        "contains personal data",
        "contain personal data",
    ),
    "planted": CheckWords(
        "Planted text",
        "Text that is hidden from people or speaks to the machine that reads it.",
        "contains text that is hidden or speaks to a machine",
        "contain text that is hidden or speaks to a machine",
    ),
    "sealed": CheckWords(
        "Sealed content",
        "Content that could not be decrypted, or is sealed differently from the rest.",
        "could not be decrypted, or is sealed differently from the rest",
        "could not be decrypted, or are sealed differently from the rest",
    ),
    "junk": CheckWords(
        "Junk",
        "Restated prompts, machine reports, the memory tool's own messages, task states, repeats and empty rows.",
        "may say nothing about the user",
        "may say nothing about the user",
    ),
    "exact_duplicate": CheckWords(
        "Exact duplicates",
        "Memories with the same text.",
        "has the same text as another",
        "have the same text as another",
    ),
    "near_duplicate": CheckWords(
        "Near duplicates",
        "Memories that say the same in nearly the same words.",
        "says nearly the same as another",
        "say nearly the same as another",
    ),
    "version": CheckWords(
        "Versions",
        "Older wordings and states of a memory, with the newest of each; never merged.",
        "has an older or newer version",
        "have older or newer versions",
    ),
    "stale": CheckWords(
        "Stale memories",
        "Announcements whose date has passed, and memories that have not been updated for a long time.",
        "may be out of date",
        "may be out of date",
    ),
    "scores": CheckWords(
        "Scores",
        "Importance on two scales, scores out of range, confidence that is the same everywhere.",
        "has a score that cannot be compared",
        "have scores that cannot be compared",
    ),
    "tags": CheckWords(
        "Tags",
        "Names that mean the same, and tags that are disabled, unknown or unused.",
        "has a tag that duplicates another",
        "have tags that duplicate others",
    ),
    "missing": CheckWords(
        "Missing fields",
        "Memories without a title, a summary, a tag, a source or content.",
        "lacks a field",
        "lack a field",
    ),
}
"""Checks in the order in which the report shows them."""

SEVERITIES = ("high", "medium", "low", "info")

PROPOSALS = {
    "delete": "delete",
    "merge": "merge into another",
    "redact": "redact",
    "strip": "remove hidden characters",
    "retag": "change tags",
    "rescale": "convert the scale",
    "review": "review",
}
"""Actions in words."""


def words_of(check: str) -> CheckWords:
    """Return the words for a check; an unknown one is called by its name."""
    name = check.replace("_", " ")
    return CHECKS.get(
        check, CheckWords(name.capitalize(), "", f"has a finding of {name}", f"have findings of {name}")
    )


def memories(n: int) -> str:
    """Write a count of memories.

    >>> memories(1), memories(1200)
    ('1 memory', '1,200 memories')
    """
    return number_of(n, "memory", "memories")


def format_share(part: int, whole: int) -> str:
    """Write a share in per cent; 0 % and 100 % mean none and all.

    >>> format_share(1, 1000), format_share(999, 1000), format_share(1, 4), format_share(0, 0)
    ('under 1 %', 'over 99 %', '25 %', '0 %')
    """
    per_cent = 100 * part / whole if whole else 0.0
    if 0 < per_cent < 1:
        return "under 1 %"
    return "over 99 %" if 99 < per_cent < 100 else f"{per_cent:.0f} %"


_NAMED = ("high", "medium")
"""Severities that the verdict names; the others are in the table."""

_COUNTED = ("exact_duplicate", "near_duplicate", "junk")
"""Checks whose findings weigh by their number, whatever the severity of each."""


class ReportedAudit(Protocol):
    """The parts of a `memframe.audit.Audit` that are shown."""

    @property
    def memories(self) -> pd.DataFrame: ...
    @property
    def findings(self) -> pd.DataFrame: ...
    @property
    def by_memory(self) -> pd.DataFrame: ...
    @property
    def counts(self) -> list[Count]: ...
    @property
    def by_source(self) -> pd.DataFrame: ...
    @property
    def listed(self) -> pd.DataFrame: ...
    @property
    def figures(self) -> pd.DataFrame: ...
    def worst(self, n: int) -> pd.DataFrame: ...
    @property
    def proposals(self) -> list[str]: ...
    @property
    def verdict(self) -> list[str]: ...
    @property
    def checks(self) -> Sequence[str]: ...
    @property
    def not_checked(self) -> Sequence[str]: ...
    @property
    def by_judge(self) -> Sequence[str]: ...
    @property
    def made_at(self) -> datetime | None: ...
    @property
    def is_stored(self) -> bool: ...


class Count(NamedTuple):
    """Memories with findings of one check, each counted once, at its worst severity."""

    check: str
    worst: str
    """Worst severity of its findings."""
    n_memories: int
    by_severity: dict[str, int]


def counts_of(findings: pd.DataFrame, by_memory: pd.DataFrame) -> list[Count]:
    """Count the memories of each check, those with the worst first; a check that is about none counts 0."""
    found = []
    for check, severities in findings.groupby("check")["severity"]:
        by_severity = worst_of(by_memory[by_memory["check"] == check])
        worst = min(severities, key=SEVERITIES.index)
        found.append(Count(str(check), worst, sum(by_severity.values()), by_severity))
    order = [*CHECKS, *sorted(count.check for count in found if count.check not in CHECKS)]
    return sorted(found, key=lambda count: (SEVERITIES.index(count.worst), order.index(count.check)))


def sources_of(memories: pd.DataFrame, by_memory: pd.DataFrame) -> pd.DataFrame:
    """Count the memories of each source by their worst severity, the sources with the worst first.

    >>> memories = pd.DataFrame({"id": ["m1", "m2", "m3"], "source": ["chat", "mail", "chat"]})
    >>> sources_of(memories, pd.DataFrame({"id": ["m1", "m1"], "severity": ["low", "high"]}))
      source  n_memories  n_found  high  medium  low  info
    0   chat           2        1     1       0    0     0
    1   mail           1        0     0       0    0     0
    """
    columns = ["source", "n_memories", "n_found", *SEVERITIES]
    if "source" not in memories.columns:
        return pd.DataFrame(columns=columns)
    source = memories["source"].astype("str")
    worst = by_memory["severity"].map(SEVERITIES.index).groupby(by_memory["id"]).min()
    ranks = memories["id"].map(worst)
    found = pd.DataFrame({name: ranks.eq(rank) for rank, name in enumerate(SEVERITIES)})
    counts = (
        found.assign(n_memories=1, n_found=ranks.notna()).groupby(source, dropna=False).sum().astype("int64")
    )
    order = [*SEVERITIES, "n_memories"]
    return counts.sort_values(order, ascending=False, kind="stable").reset_index()[columns]


def name_source(source: object) -> str:
    """Return the name of a source for people."""
    return source if isinstance(source, str) and source else "(no source)"


def verdict_of(counts: Sequence[Count], n_memories: int) -> list[str]:
    """Return the verdict in sentences: severe findings first, then frequent ones; minor ones alone have none."""
    if not n_memories:
        return ["There are no memories."]
    weighed = []
    for count in counts:
        named = sum(count.by_severity.get(severity, 0) for severity in _NAMED)
        weighed.append((count, count.n_memories if count.check in _COUNTED else named))
    sentences = []
    for count, weight in sorted(weighed, key=lambda pair: (pair[0].worst != _NAMED[0], -pair[1])):
        if weight:
            words, n = words_of(count.check), count.n_memories
            part = f" ({format_share(n, n_memories)})" if n_memories > 1 else ""
            by_severity = ", ".join(f"{n_of:,} {severity}" for severity, n_of in count.by_severity.items())
            detail = f": {by_severity}" if len(count.by_severity) > 1 else ""
            sentences.append(f"{memories(n)}{part} {words.one if n == 1 else words.many}{detail}.")
    return sentences or ["Only minor findings." if counts else "None of the checks found anything."]


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
    ['delete 1', 'review 1']
    """
    rank = {action: place for place, action in enumerate(PROPOSALS)}
    counts = by_memory["action"].map(rank).groupby(by_memory["id"]).min().value_counts()
    return [
        f"{words} {counts[rank[action]]:,}"
        for action, words in PROPOSALS.items()
        if rank[action] in counts.index
    ]


def describe_times(n_times: int, n_memories: int) -> str:
    """Say how often a row that stands for several findings was found; nothing if it was once.

    >>> describe_times(27, 14), describe_times(2, 1), describe_times(1, 1)
    ('in 14 memories', '2 times', '')
    """
    return f"in {memories(n_memories)}" if n_memories > 1 else f"{n_times:,} times" if n_times > 1 else ""


def describe_proposals(audit: ReportedAudit) -> str:
    """Say what the cleanup would do, and what it needs; nothing where nothing is proposed."""
    if not audit.proposals:
        return ""
    done = (
        "Nothing has been changed."
        if audit.is_stored
        else "Nothing has been changed; `memframe clean` applies this to the file."
    )
    return f"Proposed, each memory counted once: {', '.join(audit.proposals)}. {done}"


def subject_of(audit: ReportedAudit) -> str:
    """Name the user, the service and the time of an audit, as far as the frame has them.

    >>> from datetime import UTC
    >>> from types import SimpleNamespace
    >>> memories = pd.DataFrame({"id": ["m1"], "user_id": ["4f0c"]})
    >>> subject_of(SimpleNamespace(memories=memories, made_at=datetime(2026, 11, 21, 14, 2, tzinfo=UTC)))
    'of user 4f0c, as of 21 November 2026, 14:02 UTC'
    """
    frame = audit.memories
    users = frame["user_id"].dropna().unique().tolist() if "user_id" in frame.columns else []
    service = frame.attrs.get("memframe", {}).get("base_url")
    read_as = frame.attrs.get(READ, {}).get("format")
    parts = [
        f"of user {users[0]}" if len(users) == 1 else f"of {len(users):,} users" if len(users) else "",
        f"at {service}" if service else "",
        f"read as {read_as}" if read_as else "",
        f"as of {format_time(audit.made_at)}" if audit.made_at else "",
    ]
    return ", ".join(filter(None, parts)).replace(", at ", " at ")


def none_found(findings: pd.DataFrame, checks: Sequence[str]) -> str:
    """List the checks without findings, which is no proof that there is nothing."""
    found = {*findings["check"]}
    return ", ".join(words_of(check).title.lower() for check in checks if check not in found)


def brief_html(audit: ReportedAudit) -> str:
    """Return an audit for a notebook: the verdict, the figures, and what was not looked for."""
    counts, n = audit.counts, len(audit.memories)
    first, *others = audit.verdict
    clean = none_found(audit.findings, audit.checks)
    sentences = [tag("li", sentence) for sentence in audit.not_checked]
    return notebook_html(
        tag("div", f"Audit of {memories(n)} {subject_of(audit)}".strip(), class_="quiet"),
        tag("div", first, class_="verdict"),
        *(tag("div", sentence) for sentence in others),
        _quiet(proposed) if (proposed := describe_proposals(audit)) else None,
        tag("div", figures_table(counts, n), class_="wide") if counts else None,
        _quiet(f"None found: {clean}") if clean else None,
        _quiet("Counted: ", "; ".join(audit.figures["evidence"])) if len(audit.figures) else None,
        *map(_quiet, audit.by_judge),
        _quiet("Not looked for:", tag("ul", *sentences)) if sentences else None,
    )


def _quiet(*content: object) -> Markup:
    return tag("div", *content, class_="quiet")


def sources_table(by_source: pd.DataFrame) -> Markup:
    """Tabulate the memories with findings of each source by severity."""
    heads = [tag("th", name, class_="n") for name in (*SEVERITIES, "with findings", "memories")]
    rows = [
        tag(
            "tr",
            tag("td", printable(name_source(row["source"]))),
            *(tag("td", f"{row[name]:,}" if row[name] else None, class_=f"n {name}") for name in SEVERITIES),
            *(tag("td", f"{row[name]:,}", class_="n") for name in ("n_found", "n_memories")),
        )
        for row in by_source.to_dict("records")
    ]
    return table(["Source", *heads], rows)


def figures_table(counts: Sequence[Count], n_memories: int, *, has_links: bool = False) -> Markup:
    """Tabulate the memories of each check by severity; a check can link to its section of the report."""
    heads = [tag("th", name, class_="n") for name in (*SEVERITIES, "memories", "of all")]
    rows = []
    for count in counts:
        title = words_of(count.check).title
        n_of = ((name, count.by_severity.get(name)) for name in SEVERITIES)
        row = tag(
            "tr",
            tag("td", tag("a", title, href=f"#{count.check}") if has_links else title),
            *(tag("td", f"{n:,}", class_=f"n {name}") if n else tag("td", class_="n") for name, n in n_of),
            tag("td", f"{count.n_memories:,}", class_="n"),
            tag("td", format_share(count.n_memories, n_memories), class_="n"),
        )
        rows.append(row)
    return table(["Check", *heads], rows)
