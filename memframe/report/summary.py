"""An audit in a notebook: the verdict, the figures, and what was not looked for.

Colours are transparent layers over whatever the page has, so that light and dark themes both do.

The verdict: what an audit comes to, the worst first.

Words of the report: what each check looks for, and what its findings come to in a sentence.

Markup: text of memories as it may stand in a page, which shows all of it and obeys none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape
from typing import NamedTuple, Protocol

import pandas as pd

from memframe.display import NO_FORMULAS, moment, number_of


class Words(NamedTuple):
    """A check in words for people."""

    title: str
    about: str
    """What it looks for."""
    one: str
    """What is wrong with one memory, after "1 memory"."""
    many: str
    """The same of several, after "12 memories"."""


CHECKS = {
    "secret": Words(
        "Secrets",
        "Keys and tokens of machines, and passwords, PINs, codes and answers that somebody told.",
        "holds a secret in the open",
        "hold a secret in the open",
    ),
    "personal_data": Words(
        "Personal data",
        "How people are reached and numbered: mail, telephone, cards, accounts, national numbers, networks.",
        "holds a number or address of somebody",
        "hold numbers or addresses of somebody",
    ),
    "sealed": Words(
        "Sealed content",
        "Content that could not be opened, or is not sealed as the rest.",
        "could not be opened, or is not sealed as the rest",
        "could not be opened, or are not sealed as the rest",
    ),
    "junk": Words(
        "Junk",
        "Restated prompts, reports of machines, the memory tool's own words, moments of a task, repeats, emptiness.",
        "may say nothing about anybody",
        "may say nothing about anybody",
    ),
    "exact_duplicate": Words(
        "Exact duplicates",
        "Memories with the same text.",
        "has the same text as another",
        "have the same text as another",
    ),
    "near_duplicate": Words(
        "Near duplicates",
        "Memories that say the same in nearly the same words.",
        "says nearly the same as another",
        "say nearly the same as another",
    ),
    "changed_value": Words(
        "Changed values",
        "The same sentence with another number, date, name or a “not”; never to be merged.",
        "differs from another in one value",
        "differ from another in one value",
    ),
    "superseded": Words(
        "Superseded facts",
        "Older facts that a newer one seems to replace.",
        "seems to be replaced by a newer one",
        "seem to be replaced by newer ones",
    ),
    "stale": Words(
        "Stale memories",
        "What was about to happen and has passed, and what has long not been touched.",
        "may be out of date",
        "may be out of date",
    ),
    "scores": Words(
        "Scores",
        "Importance on two scales, scores out of range, confidence that never changes.",
        "has a score that does not compare",
        "have scores that do not compare",
    ),
    "tags": Words(
        "Tags",
        "Names that mean the same, and tags that are disabled, unknown or without a memory.",
        "carries a tag that another name stands for",
        "carry tags that other names stand for",
    ),
    "missing": Words(
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
    "retag": "tag anew",
    "rescale": "bring to one scale",
    "review": "look at",
}
"""What is proposed, in words; where nothing is, nothing is said."""


def words_of(check: str) -> Words:
    """The words for a check; a check that is new here is called by its name."""
    name = check.replace("_", " ")
    return CHECKS.get(
        check, Words(name.capitalize(), "", f"has a finding of {name}", f"have findings of {name}")
    )


def memories(n: int) -> str:
    """A count of memories.

    >>> memories(1), memories(1200)
    ('1 memory', '1,200 memories')
    """
    return number_of(n, "memory", "memories")


def share(part: int, whole: int) -> str:
    """A share in per cent; neither nothing nor everything where it is not.

    >>> share(1, 1000), share(999, 1000), share(1, 4), share(0, 0)
    ('under 1 %', 'over 99 %', '25 %', '0 %')
    """
    per_cent = 100 * part / whole if whole else 0.0
    if 0 < per_cent < 1:
        return "under 1 %"
    return "over 99 %" if 99 < per_cent < 100 else f"{per_cent:.0f} %"


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
    def by_judge(self) -> Sequence[str]: ...
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


_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls but tab and line end
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction
    "\u200b\u2028\u2029\u2060-\u2064\ufeff"  # no width, other line ends
    "\ud800-\udfff\U000e0000-\U000e0fff]"  # halves of pairs, tags
)


def escaped(text: str) -> str:
    """Return text for HTML: no tags, nothing invisible.

    >>> escaped("<b>5 $</b>")
    '&lt;b&gt;5 $&lt;/b&gt;'
    """
    return escape(_visible(text))


def attribute(text: str) -> str:
    """Text for the value of an attribute between double quotation marks."""
    return escape(_visible(text))


def _visible(text: str) -> str:
    r"""Text without characters that turn, hide or break what stands around them.

    >>> _visible("a\u202eb\x00c\nd")
    'a�b�c d'
    """
    return " ".join(_UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text).split())


_STYLE = """
.memframe-audit { font-size: 13px; line-height: 1.45; max-width: 60em; }
.memframe-audit .verdict { font-size: 1.25em; font-weight: 600; margin: .1em 0; }
.memframe-audit .quiet { opacity: .65; }
.memframe-audit table { border-collapse: collapse; margin: .8em 0; font-size: inherit; }
.memframe-audit tr { background: none; }
.memframe-audit th, .memframe-audit td { padding: .2em 1.2em .2em 0; text-align: left; border: 0; }
.memframe-audit thead th { font-weight: 500; opacity: .65; border-bottom: 1px solid rgba(128, 128, 128, .6); }
.memframe-audit .n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; padding-right: .8em; }
.memframe-audit td.high { background: rgba(213, 94, 0, .28); }
.memframe-audit td.medium { background: rgba(230, 159, 0, .22); }
.memframe-audit ul { margin: .2em 0 0 1.2em; padding: 0; }
""".replace(".memframe-audit", 3 * ".memframe-audit")  # stronger than the notebook's own rules for tables


def brief_html(audit: Audited) -> str:
    """Return an audit for a notebook, as HTML without scripts."""
    counts, n = audit.counts, len(audit.memories)
    subject = f"Audit of {memories(n)} {subject_of(audit)}".strip()
    sentences = "".join(f"<div>{escaped(sentence)}</div>" for sentence in details(counts, n))
    done = ", ".join(audit.proposals)
    proposed = f"<div class='quiet'>Proposed, each memory counted once: {escaped(done)}</div>" if done else ""
    clean = none_found(counts, audit.checks)
    nothing = f"<div class='quiet'>None found: {escaped(clean)}</div>" if clean else ""
    items = "".join(f"<li>{escaped(sentence)}</li>" for sentence in audit.not_checked)
    judged = "".join(f"<div class='quiet'>{escaped(sentence)}</div>" for sentence in audit.by_judge)
    unseen = f"<div class='quiet'>Not looked for:<ul>{items}</ul></div>" if items else ""
    return (
        f"<div class='memframe-audit {NO_FORMULAS}'><style>{_STYLE}</style><div class='quiet'>{escaped(subject)}</div>"
        f"<div class='verdict'>{escaped(headline(counts, n))}</div>{sentences}{proposed}"
        f"{_table(counts, n)}{nothing}{judged}{unseen}</div>"
    )


def _table(counts: Sequence[Count], n_memories: int) -> str:
    if not counts:
        return ""
    heads = "".join(f"<th class='n'>{name}</th>" for name in (*SEVERITIES, "memories", "of all"))
    rows = "".join(
        f"<tr><td>{escaped(words_of(count.check).title)}</td>{''.join(_cell(count, name) for name in SEVERITIES)}"
        f"<td class='n'>{count.n_memories:,}</td><td class='n'>{share(count.n_memories, n_memories)}</td></tr>"
        for count in counts
    )
    head = f"<thead><tr><th>check</th>{heads}</tr></thead>"
    return f"<div style='overflow-x: auto'><table>{head}<tbody>{rows}</tbody></table></div>"


def _cell(count: Count, severity: str) -> str:
    n = count.by_severity.get(severity, 0)
    return f"<td class='n {severity}'>{n:,}</td>" if n else "<td class='n'></td>"
