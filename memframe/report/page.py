"""Build the report of an audit as one page: no scripts, no links to elsewhere, nothing that is loaded."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple

import pandas as pd

from memframe import plot
from memframe.display import Markup, join, number_of, table, tag
from memframe.files import REPORT_MARK
from memframe.frames import read_times
from memframe.plot.axes import inline_svg
from memframe.report import (
    PROPOSALS,
    SEVERITIES,
    ReportedAudit,
    describe_proposals,
    describe_times,
    figures_table,
    memories,
    none_found,
    sources_table,
    subject_of,
    words_of,
    worst_of,
)

MAX_SHOWN, MAX_WORST = 20, 10
"""Rows of a check that are listed, and rows to begin with; the other findings are counted."""

_HALF, _WHOLE = {"width": 5.6, "height": 3.2}, {"width": 11.4, "height": 3.0}
"""Sizes of pictures, in inches of matplotlib, so that all letters are the same size."""


class _Names(NamedTuple):
    """Labels and days of memories, by id."""

    labels: Mapping[str, str]
    days: Mapping[str, str]

    def of(self, memory_id: str) -> Markup:
        """Return the day, the title or first words, and the whole id of a memory."""
        words = " ".join(filter(None, [self.days.get(memory_id), self.labels.get(memory_id)]))
        return join([words, " ", tag("code", memory_id)])


def page_html(audit: ReportedAudit, *, labels: Mapping[str, str]) -> str:
    """Return the report of an audit: first what is to be decided, then all of it by check, figures last.

    Parameters
    ----------
    audit : ReportedAudit
        With masked evidence.
    labels : mapping of str to str
        Labels of memories, by id; apart from these and the evidence none of their texts is shown.
    """
    counts, names = audit.counts, _Names(labels, _days(audit.memories))
    sections = (
        part
        for count in counts
        for part in _section(audit.listed[audit.listed["check"] == count.check], count.check, names)
    )
    body = [
        *_head(audit),
        *_worst(audit, names),
        _open_points("Not looked for", audit.not_checked),
        _open_points("Judged", audit.by_judge),
        *_contents(audit),
        _pictures(audit),
        *sections,
        *_figures(audit),
        tag("footer", "Written by memframe on the machine that loaded the memories. Evidence is masked."),
    ]
    return document_html(f"Audit of {memories(len(audit.memories))}", body)


def document_html(title: str, body: Sequence[Markup | None]) -> str:
    """Wrap a body in a report, a page whose policy lets through its own style and nothing else."""
    rules = files(__package__).joinpath("page.css").read_text("utf-8")
    digest = b64encode(sha256(rules.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="robots", content="noindex"),
        tag("title", title),
        tag("style", Markup(rules)),
    )
    return f"<!DOCTYPE html>\n{REPORT_MARK}\n{tag('html', head, tag('body', *body), lang='en')}\n"


def _head(audit: ReportedAudit) -> Iterator[Markup]:
    yield tag("h1", f"Audit of {memories(len(audit.memories))}")
    days = _days(audit.memories).values()
    span = f"memories from {min(days)} to {max(days)}" if days else ""
    if subject := ", ".join(filter(None, [subject_of(audit), span])):
        yield tag("p", subject[:1].upper() + subject[1:], class_="soft subject")
    first, *others = audit.verdict
    yield tag("p", first, class_="verdict")
    yield from (tag("p", sentence, class_="more") for sentence in others)
    if sentence := describe_proposals(audit):
        yield tag("p", sentence, class_="more soft")
    yield tag("p", "Memories by their worst finding", class_="soft tally")
    worst = worst_of(audit.findings)  # without figures, of which most stores are full
    tiles = (tag("li", tag("b", f"{worst.get(name, 0):,}"), name, class_=name) for name in SEVERITIES)
    yield tag("ul", *tiles, class_="tiles")


def _worst(audit: ReportedAudit, names: _Names) -> Iterator[Markup]:
    """Yield the findings to begin with, unless they are all that there is."""
    worst = audit.worst(MAX_WORST)
    if 0 < len(worst) < len(audit.listed):
        yield tag("h2", "To decide first")
        yield _table(worst, names, title=_title_and_kind)


def _title_and_kind(finding: dict[Hashable, Any]) -> str:
    return f"{words_of(str(finding['check'])).title}: {finding['kind']}".replace("_", " ")


def _days(audited: pd.DataFrame) -> dict[str, str]:
    """Map ids of memories to their days."""
    if "created_at" not in audited.columns:
        return {}
    moments = pd.Series(read_times(audited, "created_at"))
    days = zip(audited["id"], moments.dt.strftime("%Y-%m-%d"), strict=True)
    return {memory_id: day for memory_id, day in days if isinstance(day, str) and isinstance(memory_id, str)}


def _open_points(title: str, sentences: Sequence[str]) -> Markup | None:
    items = tag("ul", *(tag("li", sentence) for sentence in sentences))
    return tag("div", tag("h2", title), items, class_="open") if sentences else None


def _contents(audit: ReportedAudit) -> Iterator[Markup]:
    """Yield the figures of all checks, each with a link to its findings."""
    yield tag("h2", "Contents")
    if audit.counts:
        about = "Memories by check, each counted at its worst severity. The names link to the findings."
        yield tag("p", about, class_="about")
        yield tag("nav", figures_table(audit.counts, len(audit.memories), has_links=True))
    if clean := none_found(audit.findings, audit.checks):
        yield tag("p", f"No findings: {clean}.", class_="soft")
    by_source = audit.by_source
    if len(by_source) > 1 and by_source["n_found"].any():
        yield tag("h3", "By source")
        yield tag("p", "Memories of each source, counted at their worst severity.", class_="about")
        yield sources_table(by_source.head(MAX_SHOWN))
        if (n_more := len(by_source) - MAX_SHOWN) > 0:
            yield tag("p", f"and {number_of(n_more, 'more source', 'more sources')}", class_="soft")


def _pictures(audit: ReportedAudit) -> Markup:
    """Draw the findings, and the store over time, in the ink of the page."""
    audited = audit.memories
    drawn = [
        inline_svg(lambda ax: plot.findings(audit.findings, ax=ax), words="Memories by check", **_HALF),
        inline_svg(lambda ax: plot.duplicates(audit, ax=ax), words="Clusters of duplicates by size", **_HALF),
    ]
    pictures = [tag("div", svg) for svg in drawn]
    if {"created_at", "source"} <= set(audited.columns):
        svg = inline_svg(lambda ax: plot.timeline(audited, ax=ax), words="Memories over time", **_WHOLE)
        pictures.append(tag("div", svg, class_="wide"))
    return tag("div", *pictures, class_="pictures")


def _section(listed: pd.DataFrame, check: str, names: _Names) -> Iterator[Markup]:
    words = words_of(check)
    yield tag("h2", words.title, id=check)
    yield tag("p", words.about, class_="about")
    yield _table(listed.head(MAX_SHOWN), names, title=lambda finding: str(finding["kind"]).replace("_", " "))
    if n_more := int(listed["n_times"].iloc[MAX_SHOWN:].sum()):
        json, command = tag("code", "audit.to_json(path)"), tag("code", "memframe audit --out PATH")
        more = number_of(n_more, "finding", "findings")
        yield tag("p", f"and {more} more: ", json, " and ", command, " write all of them", class_="soft")


def _figures(audit: ReportedAudit) -> Iterator[Markup]:
    """Yield what is counted only."""
    if len(audit.figures):
        yield tag("h2", "Counted")
        about = "Nothing is to be decided about the single memory; the methods of the audit list them."
        yield tag("p", about, class_="about")
        yield tag("ul", *(tag("li", sentence) for sentence in audit.figures["evidence"]))


def _table(listed: pd.DataFrame, names: _Names, *, title: Callable[[dict[Hashable, Any]], str]) -> Markup:
    rows = (_row(finding, names, title(finding)) for finding in listed.astype(object).to_dict("records"))
    return table(("severity", "kind", "memory", "evidence", "proposed"), rows, class_="findings")


_MAX_IDS = 3
"""Memories that a row names; the others it counts."""


def _row(finding: dict[Hashable, Any], names: _Names, title: str) -> Markup:
    severity, action, ids = str(finding["severity"]), str(finding["action"]), finding["ids"]
    where = f" in {finding['field']}" if pd.notna(finding["start"]) else ""
    first_of = {names.labels.get(one): one for one in reversed(ids[:MAX_SHOWN])}  # equal texts have one label
    named = [tag("div", names.of(one)) for one in [*reversed(first_of.values())][:_MAX_IDS]]
    if n_more := len(ids) - len(named):
        named.append(tag("div", f"and {number_of(n_more, 'more memory', 'more memories')}", class_="soft"))
    if isinstance(finding["related_id"], str):
        named.append(tag("div", "→ ", names.of(finding["related_id"])))
    times = describe_times(finding["n_times"], len(ids))
    return tag(
        "tr",
        tag("td", severity, class_=severity),
        tag("td", title + where),
        tag("td", *named, class_="id"),
        tag(
            "td", finding["evidence"], tag("div", times, class_="soft") if times else None, class_="evidence"
        ),
        tag("td", PROPOSALS.get(action, "")),
    )
