"""Write a review as one page: the decisions with person, time and reason, and no texts of memories."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import pandas as pd

from memframe.audit.evidence import MASKED
from memframe.decisions import Decision, Verdict
from memframe.display import Markup, format_time, join, number_of, table, tag
from memframe.files import REPORT_MARK
from memframe.report.words import check_words_of
from memframe.review.proposals import ORIGIN_PLAN, Proposal

ORDER_OF_PAGE: tuple[Verdict, ...] = ("accepted", "edited", "rejected", "later")
"""Order of the decisions on the page."""

MAX_DECIDED = 2_000
"""Decisions that the page lists; the others are counted."""

_STYLE = Markup("""
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 64rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }
table { border-collapse: collapse; width: 100%; min-width: 46rem; margin: .5rem 0 2rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; }
tr { border-bottom: 1px solid color-mix(in srgb, currentColor 18%, transparent); }
td.by { white-space: nowrap; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.soft { opacity: .72; }
div.wide { overflow-x: auto; }
@media (max-width: 40rem) { th, td { padding: .25rem .35rem; } }
""")


def review_html(
    decided: Sequence[tuple[Proposal, Decision]],
    applied: Sequence[Decision],
    progress: pd.DataFrame,
    now: datetime,
) -> str:
    """Return the page of a review: its decisions, earlier accepted findings that are no longer found, and counts."""
    decided = sorted(decided, key=lambda each: ORDER_OF_PAGE.index(each[1].decision))
    n_of = Counter(found.decision for _, found in decided)
    counts = [f"{n_of[name]:,} {name}" for name in ORDER_OF_PAGE if n_of[name]] or ["nothing decided yet"]
    n_all = int(progress["proposals"].sum())
    if n_open := n_all - len(decided):
        counts.append(f"{n_open:,} open")
    body = [
        tag("h1", "Review of memories"),
        tag("p", f"{number_of(n_all, 'proposal', 'proposals')}: {', '.join(counts)}. {format_time(now)}."),
        tag("h2", "Decisions"),
        tag("div", _decisions(decided[:MAX_DECIDED]), class_="wide"),
    ]
    if len(decided) > MAX_DECIDED:
        body.append(tag("p", f"And {len(decided) - MAX_DECIDED:,} more, in the file of decisions."))
    if applied:
        body += [
            tag("h2", "Accepted earlier, and no longer found"),
            tag("div", _applied(applied[:MAX_DECIDED]), class_="wide"),
        ]
    body += [
        tag("h2", "By check"),
        tag("div", _progress(progress), class_="wide"),
        tag(
            "p",
            "“Right” is the share of accepted ones among the proposals that were decided one by one; those decided "
            "together are not counted. “Wrong at most” is the largest share of wrong ones that is plausible (95 % "
            "confidence); it says nothing about the harm that a wrong one does.",
            class_="soft",
        ),
    ]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width"),
        tag("title", "Review of memories"),
        tag("style", _STYLE),
    )
    return f"<!DOCTYPE html>\n{REPORT_MARK}\n{tag('html', head, tag('body', *body), lang='en')}\n"


def _applied(decisions: Sequence[Decision]) -> Markup:
    rows = [
        tag(
            "tr",
            tag("td", one.decision),
            tag("td", _name(one.check, one.kind)),
            tag("td", one.id),
            tag("td", one.note),
            _by(one),
        )
        for one in decisions
    ]
    return table(("decision", "proposal", "memory", "note", "by"), rows)


def _name(check: str, kind: str) -> str:
    return f"{'Planned' if check == ORIGIN_PLAN else check_words_of(check).title} ({kind})"


def _by(decision: Decision) -> Markup:
    return tag("td", decision.by, tag("div", format_time(decision.at), class_="soft"), class_="by")


def _progress(progress: pd.DataFrame) -> Markup:
    rows = []
    for row in progress.to_dict("records"):
        bound = row["bound"]
        counts = [
            row[name] or "" for name in ("proposals", "left", "accepted", "edited", "rejected", "later")
        ]
        right = row["right"] / row["judged"] if row["judged"] else None
        cells = [
            *counts,
            "" if right is None else f"{100 * right:.0f} %",
            "" if math.isnan(bound) else f"{100 * bound:.1f} %",
        ]
        rows.append(
            tag(
                "tr",
                tag("td", _name(row["check"], row["kind"])),
                *(tag("td", cell, class_="n") for cell in cells),
            )
        )
    heads = ("proposals", "left", "accepted", "edited", "rejected", "later", "right", "wrong at most")
    return table(["kind", *(tag("th", head, class_="n") for head in heads)], rows)


def _decisions(decided: Sequence[tuple[Proposal, Decision]]) -> Markup:
    rows = []
    for one, found in decided:
        until = f"until {format_time(found.until)}" if found.until else None
        # the evidence of other checks may quote memories
        reason = one.first.reason if one.first.check in MASKED else ""
        why = join([found.note, tag("div", until, class_="soft") if until else ""])
        rows.append(
            tag(
                "tr",
                tag("td", found.decision),
                tag(
                    "td",
                    _name(one.first.check, one.first.kind),
                    tag("div", f"{one.id} {reason}", class_="soft"),
                ),
                tag("td", one.action),
                tag("td", one.n_members, class_="n"),
                tag("td", why),
                _by(found),
            )
        )
    heads = ("decision", "proposal", "accepting does", tag("th", "memories", class_="n"), "note", "by")
    return table(heads, rows)
