"""Show an audit in short: the verdict, the counts of each check, and what was not looked for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import pandas as pd

from memframe.display import (
    Markup,
    format_memories,
    format_share,
    format_time,
    notebook_html,
    printable,
    table,
    tag,
)
from memframe.frames import READ
from memframe.report.verdict import Count
from memframe.report.words import WORST_FIRST, check_words_of, name_source


class Overview(NamedTuple):
    """Facts and sentences about an audit, without its findings."""

    n_memories: int
    subject: str
    """User, service and time of the audit."""
    verdict: Sequence[str]
    """Sentences, of which the first is the most important."""
    proposed: str
    """Sentence about the cleanup; empty if nothing is proposed."""
    counts: Sequence[Count]
    none_found: str
    """Titles of the checks without findings."""
    figures: Sequence[str]
    """Sentences about findings that are only counted."""
    by_judge: Sequence[str]
    not_checked: Sequence[str]


def describe_subject(memories: pd.DataFrame, made_at: datetime | None) -> str:
    """Name the user, the service and the time of an audit, as far as they are known.

    >>> from datetime import UTC
    >>> memories = pd.DataFrame({"id": ["m1"], "user_id": ["4f0c"]})
    >>> describe_subject(memories, datetime(2026, 11, 21, 14, 2, tzinfo=UTC))
    'of user 4f0c, as of 21 November 2026, 14:02 UTC'
    """
    users = memories["user_id"].dropna().unique().tolist() if "user_id" in memories.columns else []
    service = memories.attrs.get("memframe", {}).get("base_url")
    read_as = memories.attrs.get(READ, {}).get("format")
    of_users = f"of {len(users):,} users" if users else ""
    parts = [
        f"of user {users[0]}" if len(users) == 1 else of_users,
        f"at {service}" if service else "",
        f"read as {read_as}" if read_as else "",
        f"as of {format_time(made_at)}" if made_at else "",
    ]
    return ", ".join(filter(None, parts)).replace(", at ", " at ")


def describe_proposals(proposals: Sequence[str], *, is_stored: bool) -> str:
    """Say what the cleanup would do, and how to apply it to a file; empty if nothing is proposed.

    >>> describe_proposals(["delete 1", "review 2"], is_stored=True)
    'Proposed, each memory counted once: delete 1, review 2. Nothing has been changed.'
    """
    if not proposals:
        return ""
    done = (
        "Nothing has been changed."
        if is_stored
        else "Nothing has been changed; `memframe clean` applies this to the file."
    )
    return f"Proposed, each memory counted once: {', '.join(proposals)}. {done}"


def overview_html(overview: Overview) -> str:
    """Return an overview for a notebook."""
    first, *others = overview.verdict
    title = f"Audit of {format_memories(overview.n_memories)} {overview.subject}".strip()
    counts = counts_table(overview.counts, overview.n_memories) if overview.counts else None
    open_points = [tag("li", sentence) for sentence in overview.not_checked]
    return notebook_html(
        _quiet(title),
        tag("div", first, class_="verdict"),
        *(tag("div", sentence) for sentence in others),
        _quiet(overview.proposed) if overview.proposed else None,
        tag("div", counts, class_="wide") if counts else None,
        _quiet(f"None found: {overview.none_found}") if overview.none_found else None,
        _quiet("Counted: ", "; ".join(overview.figures)) if overview.figures else None,
        *map(_quiet, overview.by_judge),
        _quiet("Not looked for:", tag("ul", *open_points)) if open_points else None,
    )


def _quiet(*content: object) -> Markup:
    return tag("div", *content, class_="quiet")


def sources_table(by_source: pd.DataFrame) -> Markup:
    """Tabulate the memories with findings of each source by severity."""
    heads = [tag("th", name, class_="n") for name in (*WORST_FIRST, "with findings", "memories")]
    rows = [
        tag(
            "tr",
            tag("td", printable(name_source(row["source"]))),
            *(tag("td", f"{row[name]:,}" if row[name] else None, class_=f"n {name}") for name in WORST_FIRST),
            *(tag("td", f"{row[name]:,}", class_="n") for name in ("n_found", "n_memories")),
        )
        for row in by_source.to_dict("records")
    ]
    return table(["Source", *heads], rows)


def counts_table(counts: Sequence[Count], n_memories: int, *, has_links: bool = False) -> Markup:
    """Tabulate the memories of each check by severity; a check can link to its section of the report."""
    heads = [tag("th", name, class_="n") for name in (*WORST_FIRST, "memories", "of all")]
    rows = []
    for count in counts:
        title = check_words_of(count.check).title
        n_of = ((name, count.by_severity.get(name)) for name in WORST_FIRST)
        row = tag(
            "tr",
            tag("td", tag("a", title, href=f"#{count.check}") if has_links else title),
            *(tag("td", f"{n:,}", class_=f"n {name}") if n else tag("td", class_="n") for name, n in n_of),
            tag("td", f"{count.n_memories:,}", class_="n"),
            tag("td", format_share(count.n_memories, n_memories), class_="n"),
        )
        rows.append(row)
    return table(["Check", *heads], rows)
