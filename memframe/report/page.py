"""Build the report of an audit as one page without scripts and external links, which loads nothing."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple

import pandas as pd

from memframe import plot
from memframe.display import Markup, format_memories, join, number_of, table, tag
from memframe.files import REPORT_MARK
from memframe.frames import read_times
from memframe.plot.axes import inline_svg
from memframe.report.overview import Overview, counts_table, sources_table
from memframe.report.verdict import count_by_worst
from memframe.report.words import PROPOSAL_WORDS, WORST_FIRST, check_words_of, describe_times, name_kind

MAX_ROWS, MAX_WORST = 20, 10
"""Most rows of a check, and most rows of "To decide first"; the other findings are counted."""

_HALF, _WHOLE = {"width": 5.6, "height": 3.2}, {"width": 11.4, "height": 3.0}
"""Sizes of pictures, in inches of matplotlib, so that all letters are the same size."""


class _Names(NamedTuple):
    """Labels and days of memories, by id, and the words around secrets."""

    labels: Mapping[str, str]
    days: Mapping[str, str]
    quotes: Mapping[tuple[str, str, int], str]

    def of(self, memory_id: str) -> Markup:
        """Return the day, the title or first words, and the whole id of a memory."""
        words = " ".join(filter(None, [self.days.get(memory_id), self.labels.get(memory_id)]))
        return join([words, " ", tag("code", memory_id)])


class PageFindings(NamedTuple):
    """Findings of an audit as the page shows them, with masked evidence."""

    all: pd.DataFrame
    """One row for each finding, figures included."""
    listed: pd.DataFrame
    """One row for each value, without figures."""
    worst: pd.DataFrame
    """The first rows of ``listed`` that need a decision."""
    by_source: pd.DataFrame


def report_html(
    overview: Overview,
    findings: PageFindings,
    memories: pd.DataFrame,
    *,
    labels: Mapping[str, str],
    quotes: Mapping[tuple[str, str, int], str],
) -> str:
    """Return the report of an audit: findings to decide first, then all findings by check, then figures.

    Parameters
    ----------
    overview : Overview
    findings : PageFindings
    memories : DataFrame
        The memories that were audited, for their number and times.
    labels : mapping of str to str
        Labels of memories, by id; apart from these, the evidence and quotes none of their texts is shown.
    quotes : mapping of (str, str, int) to str
        Words around secrets, with these masked, by id, field and start.
    """
    names = _Names(labels, _days(memories), quotes)
    listed = findings.listed
    sections = (
        part
        for count in overview.counts
        for part in _section(listed[listed["check"] == count.check], count.check, names)
    )
    body = [
        *_head(overview, findings.all, names.days),
        *_worst(findings, names),
        _open_points("Not looked for", overview.not_checked),
        _open_points("Judged", overview.by_judge),
        *_contents(overview, findings.by_source),
        _pictures(findings.all, memories, names.days),
        *sections,
        *_figures(overview.figures),
        tag("footer", "Written by memframe on the machine that loaded the memories. Evidence is masked."),
    ]
    return document_html(f"Audit of {format_memories(overview.n_memories)}", body)


def document_html(title: str, body: Sequence[Markup | None]) -> str:
    """Wrap a body in a page whose content security policy allows its own style and nothing else."""
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


def _head(overview: Overview, findings: pd.DataFrame, days: Mapping[str, str]) -> Iterator[Markup]:
    yield tag("h1", f"Audit of {format_memories(overview.n_memories)}")
    span = f"memories from {min(days.values())} to {max(days.values())}" if days else ""
    if subject := ", ".join(filter(None, [overview.subject, span])):
        yield tag("p", subject[:1].upper() + subject[1:], class_="soft subject")
    first, *others = overview.verdict
    yield tag("p", first, class_="verdict")
    yield from (tag("p", sentence, class_="more") for sentence in others)
    if overview.proposed:
        yield tag("p", overview.proposed, class_="more soft")
    yield tag("p", "Memories by their worst finding", class_="soft tally")
    worst = count_by_worst(findings)  # figures are not counted: most memories of most stores have one
    tiles = (tag("li", tag("b", f"{worst.get(name, 0):,}"), name, class_=name) for name in WORST_FIRST)
    yield tag("ul", *tiles, class_="tiles")


def _worst(findings: PageFindings, names: _Names) -> Iterator[Markup]:
    """Yield the findings to decide first, unless there are no others."""
    if 0 < len(findings.worst) < len(findings.listed):
        yield tag("h2", "To decide first")
        yield _table(findings.worst, names, title=_title_and_kind)


def _title_and_kind(finding: dict[Hashable, Any]) -> str:
    return f"{check_words_of(str(finding['check'])).title}: {name_kind(finding['kind'])}"


def _days(memories: pd.DataFrame) -> dict[str, str]:
    """Map ids of memories to their days."""
    if "created_at" not in memories.columns:
        return {}
    moments = pd.Series(read_times(memories, "created_at"))
    days = zip(memories["id"], moments.dt.strftime("%Y-%m-%d"), strict=True)
    return {memory_id: day for memory_id, day in days if isinstance(day, str) and isinstance(memory_id, str)}


def _open_points(title: str, sentences: Sequence[str]) -> Markup | None:
    items = tag("ul", *(tag("li", sentence) for sentence in sentences))
    return tag("div", tag("h2", title), items, class_="open") if sentences else None


def _contents(overview: Overview, by_source: pd.DataFrame) -> Iterator[Markup]:
    """Yield the figures of all checks, each with a link to its findings."""
    yield tag("h2", "Contents")
    if overview.counts:
        about = "Memories by check, each counted at its worst severity. The names link to the findings."
        yield tag("p", about, class_="about")
        yield tag("nav", counts_table(overview.counts, overview.n_memories, has_links=True))
    if overview.none_found:
        yield tag("p", f"None found: {overview.none_found}.", class_="soft")
    if len(by_source) > 1 and by_source["n_found"].any():
        yield tag("h3", "By source")
        yield tag("p", "Memories of each source, counted at their worst severity.", class_="about")
        yield sources_table(by_source.head(MAX_ROWS))
        if (n_more := len(by_source) - MAX_ROWS) > 0:
            yield tag("p", f"and {number_of(n_more, 'more source', 'more sources')}", class_="soft")


_CLUSTERED = ("exact_duplicate", "near_duplicate", "version")


def _pictures(findings: pd.DataFrame, memories: pd.DataFrame, days: Mapping[str, str]) -> Markup:
    """Draw the findings, and the store over time, in the text colour of the page; leave out empty pictures."""
    drawn = [inline_svg(lambda ax: plot.findings(findings, ax=ax), words="Memories by check", **_HALF)]
    if (findings["check"].isin(_CLUSTERED) & findings["group"].notna()).any():
        words = "Clusters of duplicates by size"
        drawn.append(inline_svg(lambda ax: plot.duplicates(findings, ax=ax), words=words, **_HALF))
    pictures = [tag("div", svg) for svg in drawn]
    if {"created_at", "source"} <= set(memories.columns) and len({*days.values()}) > 1:
        svg = inline_svg(lambda ax: plot.timeline(memories, ax=ax), words="Memories over time", **_WHOLE)
        pictures.append(tag("div", svg, class_="wide"))
    return tag("div", *pictures, class_="pictures")


def _section(listed: pd.DataFrame, check: str, names: _Names) -> Iterator[Markup]:
    words = check_words_of(check)
    yield tag("h2", words.title, id=check)
    yield tag("p", words.about, class_="about")
    yield _table(listed.head(MAX_ROWS), names, title=lambda finding: name_kind(finding["kind"]))
    if n_more := int(listed["n_times"].iloc[MAX_ROWS:].sum()):
        json, command = tag("code", "audit.to_json(path)"), tag("code", "memframe audit --out PATH")
        more = number_of(n_more, "finding", "findings")
        yield tag("p", f"and {more} more: ", json, " and ", command, " write all of them", class_="soft")


def _figures(sentences: Sequence[str]) -> Iterator[Markup]:
    """Yield the figures, which are only counted."""
    if sentences:
        yield tag("h2", "Counted")
        about = "These need no decision about single memories; the methods of the audit list them."
        yield tag("p", about, class_="about")
        yield tag("ul", *(tag("li", sentence) for sentence in sentences))


def _table(listed: pd.DataFrame, names: _Names, *, title: Callable[[dict[Hashable, Any]], str]) -> Markup:
    rows = (_row(finding, names, title(finding)) for finding in listed.astype(object).to_dict("records"))
    return table(("severity", "kind", "memory", "evidence", "proposed"), rows, class_="findings")


_MAX_IDS = 3
"""Most memories that a row names; the others are counted."""


def _row(finding: dict[Hashable, Any], names: _Names, title: str) -> Markup:
    severity, action, ids = str(finding["severity"]), str(finding["action"]), finding["ids"]
    where = f" in {finding['field']}" if pd.notna(finding["start"]) else ""
    first_of = {names.labels.get(one): one for one in reversed(ids[:MAX_ROWS])}  # equal texts have one label
    named = [tag("div", names.of(one)) for one in [*reversed(first_of.values())][:_MAX_IDS]]
    if n_more := len(ids) - len(named):
        named.append(tag("div", f"and {number_of(n_more, 'more memory', 'more memories')}", class_="soft"))
    if isinstance(finding["related_id"], str):
        named.append(tag("div", "→ ", names.of(finding["related_id"])))
    times = describe_times(finding["n_times"], len(ids))
    quote = names.quotes.get((finding["id"], finding["field"], finding["start"]))
    beneath = [tag("div", words, class_="soft") for words in (quote, times) if words]
    return tag(
        "tr",
        tag("td", severity, class_=severity),
        tag("td", title + where),
        tag("td", *named, class_="id"),
        tag("td", finding["evidence"], *beneath, class_="evidence"),
        tag("td", PROPOSAL_WORDS.get(action, "")),
    )
