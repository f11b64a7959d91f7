"""Build the page of a fleet: new findings first, users by their worst findings, checks over time, sources; no texts.

Besides numbers it has the ids of users and the names of checks and sources, but no evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial

import pandas as pd

from memframe.display import Markup, format_time, number_of, table, tag
from memframe.fleet.nights import Night, NightChanges
from memframe.plot.axes import SERIES, inline_svg
from memframe.plot.charts import SEVERITY_COLOURS
from memframe.plot.columns import draw_columns
from memframe.report.page import document_html
from memframe.report.words import WORST_FIRST, check_words_of

MAX_FINDING_ROWS = 30
"""Most rows of a table; the page says how many more there are."""

MAX_NIGHTS_DRAWN = 60

_RANK = {severity: place for place, severity in enumerate(WORST_FIRST)}


def page_html(
    changes: NightChanges, tally: pd.DataFrame, outcomes: pd.DataFrame, nights: Sequence[Night]
) -> str:
    """Return the page."""
    body = [
        *_head(changes, tally, outcomes, nights),
        *_changed("New", "new", changes.new),
        *_users(tally),
        *_over_time(nights),
        *_sources(tally),
        *_changed("Gone", "gone", changes.gone),
        *_changed("Settled by a person", "settled", changes.settled),
        tag(
            "footer",
            "Written by memframe. The page has no texts of memories. Checks find only what they look for: "
            "no finding does not mean that nothing is there.",
        ),
    ]
    return document_html("Nights of a fleet", body)


def _head(
    changes: NightChanges, tally: pd.DataFrame, outcomes: pd.DataFrame, nights: Sequence[Night]
) -> Iterator[Markup]:
    yield tag("h1", "Memories of all users")
    if nights:
        begun = format_time(datetime.fromisoformat(nights[-1].night))
        took = f"{nights[-1].seconds:,.0f} s, {number_of(nights[-1].audited, 'user', 'users')} with a change"
        yield tag("p", f"Last night: {begun}, {took}", class_="soft subject")
    n_users = changes.new["user_id"].nunique()
    new = number_of(len(changes.new), "new finding", "new findings")
    users = f", of {number_of(n_users, 'user', 'users')}" if n_users else ""
    yield tag("p", f"{new}{users}.", class_="verdict")
    of_new = changes.new["severity"].value_counts()
    severities = [f"{of_new[name]:,} {name}" for name in WORST_FIRST if name in of_new]
    parts = {"gone": changes.gone, "settled by a person": changes.settled}
    others = ", ".join(f"{len(found):,} {name}" for name, found in parts.items())
    yield tag("p", f"New: {', '.join(severities)}. {others}." if severities else f"{others}.", class_="more")
    n_failed = int((outcomes["status"] == "failed").sum())
    if n_failed:
        failed = number_of(n_failed, "user", "users")
        yield tag("p", f"{failed} could not be audited; their earlier findings are counted.", class_="more")
    if changes.note:
        yield tag("p", f"{changes.note}.", class_="more soft")
    yield tag("p", "Users by their worst finding", class_="soft tally")
    worst = _worst_of(tally).value_counts()
    tiles = (tag("li", tag("b", f"{worst.get(name, 0):,}"), name, class_=name) for name in WORST_FIRST)
    yield tag("ul", *tiles, class_="tiles")


def _worst_of(tally: pd.DataFrame) -> pd.Series[str]:
    """Return the worst severity of each user."""
    ranks = tally["severity"].map(_RANK).groupby(tally["user_id"]).min()
    return ranks.map(dict(enumerate(WORST_FIRST)))


def _changed(title: str, anchor: str, found: pd.DataFrame) -> Iterator[Markup]:
    """Yield findings counted by user, check and severity, the most severe first."""
    if found.empty:
        return
    counted = found.groupby(["user_id", "check", "severity"], observed=True).size().reset_index(name="n")
    counted = counted.assign(rank=counted["severity"].map(_RANK))
    counted = counted.sort_values(["rank", "n", "user_id"], ascending=[True, False, True])
    rows = [
        tag(
            "tr",
            tag("td", row.severity, class_=str(row.severity)),
            tag("td", check_words_of(str(row.check)).title),
            tag("td", tag("code", row.user_id), class_="id"),
            tag("td", f"{row.n:,}", class_="n"),
        )
        for row in counted.head(MAX_FINDING_ROWS).itertuples()
    ]
    yield tag("h2", title, id=anchor)
    yield table(["severity", "check", "user", tag("th", "findings", class_="n")], rows)
    if len(counted) > MAX_FINDING_ROWS:
        command = tag("code", "memframe fleet compare --json")
        yield tag(
            "p",
            f"and {len(counted) - MAX_FINDING_ROWS:,} more rows: ",
            command,
            " has all of them",
            class_="soft",
        )


def _count_more(n_rows: int, noun: str) -> Iterator[Markup]:
    if n_rows > MAX_FINDING_ROWS:
        yield tag(
            "p", f"and {number_of(n_rows - MAX_FINDING_ROWS, f'more {noun}', f'more {noun}s')}", class_="soft"
        )


def _by_severity(tally: pd.DataFrame, by: str) -> pd.DataFrame:
    """Count findings by a column and by severity, the worst first."""
    counted = tally.pivot_table("n", by, "severity", "sum", fill_value=0)
    counted = counted.reindex(columns=[*WORST_FIRST], fill_value=0).astype("int64")
    return counted.sort_values([*WORST_FIRST], ascending=False)


def _numbers(row: pd.Series[int]) -> list[Markup]:
    return [
        tag("td", f"{row[name]:,}", class_=f"n {name}") if row[name] else tag("td", class_="n")
        for name in WORST_FIRST
    ]


def _heads(first: str) -> list[object]:
    return [first, *(tag("th", name, class_="n") for name in WORST_FIRST)]


def _users(tally: pd.DataFrame) -> Iterator[Markup]:
    if tally.empty:
        return
    counted = _by_severity(tally, "user_id")
    rows = [
        tag("tr", tag("td", tag("code", user_id), class_="id"), *_numbers(row))
        for user_id, row in counted.head(MAX_FINDING_ROWS).iterrows()
    ]
    yield tag("h2", "Users by their worst findings", id="users")
    yield table(_heads("user"), rows)
    yield from _count_more(len(counted), "user")


def _over_time(nights: Sequence[Night]) -> Iterator[Markup]:
    """Yield charts of the nights, and a table that compares the checks with the night before."""
    if not nights:
        return
    drawn = nights[-MAX_NIGHTS_DRAWN:]
    yield tag("h2", "Checks over time", id="checks")
    if len(drawn) > 1:
        yield tag("div", *_pictures(drawn, is_first=drawn[0] is nights[0]), class_="pictures")
    last, before = nights[-1], nights[-2] if len(nights) > 1 else None
    rows = []
    for check in dict.fromkeys(check for check, _, _ in last.findings + (before.findings if before else ())):
        n = sum(n for name, _, n in last.findings if name == check)
        earlier = sum(n for name, _, n in before.findings if name == check) if before else n
        cells = (f"{n:,}", f"{earlier:,}" if before else "", f"{n - earlier:+,}" if n != earlier else "")
        rows.append(
            (n, tag("tr", tag("td", check_words_of(check).title), *(tag("td", c, class_="n") for c in cells)))
        )
    heads = (tag("th", name, class_="n") for name in ("last night", "the night before", "change"))
    yield table(["check", *heads], [row for _, row in sorted(rows, key=lambda one: -one[0])])


def _pictures(nights: Sequence[Night], *, is_first: bool) -> Iterator[Markup]:
    """Yield a chart of the new findings of each night, and one of each severity.

    Each chart has its own scale, because few findings are high. Severity info has none, because these findings need no
    action.
    """
    days = [f"{datetime.fromisoformat(one.night):%d %b}" for one in nights]
    new = [one.new for one in nights]
    drawn = [("New findings", new[is_first:], SERIES[2])]  # in the first night all are new
    drawn += [
        (f"Findings of severity {name}", [one.count(name) for one in nights], SEVERITY_COLOURS[name])
        for name in ("high", "medium", "low")
    ]
    for title, heights, color in drawn:
        if any(heights):
            shown = days[-len(heights) :]
            svg = inline_svg(
                partial(draw_columns, title=title, names=shown, heights=heights, color=color),
                words=f"{title} by night: {', '.join(f'{n:,}' for n in heights)}",
                width=5.4,
                height=2.0,
            )
            yield tag("div", svg)


def _sources(tally: pd.DataFrame) -> Iterator[Markup]:
    if tally.empty:
        return
    counted = _by_severity(tally.assign(source=tally["source"].fillna("no source")), "source")
    rows = [
        tag("tr", tag("td", source, class_="evidence"), *_numbers(row))
        for source, row in counted.head(MAX_FINDING_ROWS).iterrows()
    ]
    yield tag("h2", "Sources", id="sources")
    yield tag("p", "Findings by the source of the memory.", class_="about")
    yield table(_heads("source"), rows)
    yield from _count_more(len(counted), "source")
