"""The report as one page: no scripts, no links, nothing that is loaded from elsewhere."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Hashable, Iterator, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any

import pandas as pd

from memframe import plot
from memframe.plot.vector import inline_svg
from memframe.report.markup import attribute, escaped
from memframe.report.verdict import Count, counts_of, details, headline, none_found, proposals
from memframe.report.wording import PROPOSALS, SEVERITIES, memories, share, words_of

MAX_SHOWN = 20
"""Findings of a check that are listed; the others are counted."""

_HALF, _WHOLE = (5.6, 3.2), (11.4, 3.0)
"""Sizes of pictures, in inches of matplotlib, so that letters come out alike."""

_BRIEF_ID = 13


def page_html(
    findings: pd.DataFrame, audited: pd.DataFrame, *, checks: Sequence[str], not_checked: Sequence[str]
) -> str:
    """The report of an audit.

    Parameters
    ----------
    findings : DataFrame
        With masked evidence.
    audited : DataFrame
        The memories; none of their texts is shown but as evidence.
    checks : sequence of str
        What was looked for.
    not_checked : sequence of str
        What was not, in sentences: always shown.
    """
    style = files(__package__).joinpath("page.css").read_text("utf-8")
    counts = counts_of(findings)
    body = "\n".join(
        [
            *_head(findings, audited, counts),
            _open_questions(not_checked),
            _table(counts, len(audited), checks),
            _pictures(findings, audited),
            *(_section(findings[findings["check"] == count.check], count) for count in counts),
            "<footer>Written by memframe on the machine that the memories were read on. Evidence is masked.</footer>",
        ]
    )
    return _document(style, f"Audit of {memories(len(audited))}", body)


def _document(style: str, title: str, body: str) -> str:
    """A page that loads nothing and runs nothing: the policy lets through its own style and no more."""
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="robots" content="noindex">\n'
        f"<title>{escaped(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _head(findings: pd.DataFrame, audited: pd.DataFrame, counts: Sequence[Count]) -> Iterator[str]:
    n = len(audited)
    yield f"<h1>Audit of {memories(n)}{escaped(_span(audited))}</h1>"
    yield f'<p class="verdict">{escaped(headline(counts, n))}</p>'
    yield from (f'<p class="more">{escaped(sentence)}</p>' for sentence in details(counts, n))
    if done := proposals(findings):
        yield f'<p class="more soft">Proposed, and nothing done yet: {escaped(", ".join(done))}.</p>'
    tiles = "".join(
        f'<li class="{severity}"><b>{(findings["severity"] == severity).sum():,}</b>{severity}</li>'
        for severity in SEVERITIES
    )
    yield f'<ul class="tiles" aria-label="Findings by severity">{tiles}</ul>'


def _span(audited: pd.DataFrame) -> str:
    """From when to when the memories are."""
    if "created_at" not in audited.columns or audited["created_at"].isna().all():
        return ""
    days = pd.to_datetime(audited["created_at"], utc=True).dt.strftime("%Y-%m-%d")
    return f", {days.min()} to {days.max()}"


def _open_questions(not_checked: Sequence[str]) -> str:
    items = "".join(f"<li>{escaped(sentence)}</li>" for sentence in not_checked)
    return f'<div class="open"><h2>Not looked for</h2><ul>{items}</ul></div>' if items else ""


def _table(counts: Sequence[Count], n_memories: int, checks: Sequence[str]) -> str:
    rows = "".join(_figures(count, n_memories) for count in counts)
    heads = "".join(f'<th class="n">{name}</th>' for name in (*SEVERITIES, "findings", "of all"))
    table = f"<table><thead><tr><th>Memories by check</th>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    clean = none_found(counts, checks)
    nothing = f'<p class="soft">Looked for, and none found: {escaped(clean)}.</p>' if clean else ""
    return f"<h2>Figures</h2>{table if counts else ''}{nothing}"


def _figures(count: Count, n_memories: int) -> str:
    cells = "".join(
        f'<td class="n {severity}">{count.by_severity[severity]:,}</td>'
        if severity in count.by_severity
        else '<td class="n"></td>'
        for severity in SEVERITIES
    )
    return (
        f'<tr><td>{escaped(words_of(count.check).title)}</td>{cells}<td class="n">{count.n_findings:,}</td>'
        f'<td class="n">{share(count.n_memories, n_memories)}</td></tr>'
    )


def _pictures(findings: pd.DataFrame, audited: pd.DataFrame) -> str:
    """What was found, and the store that it was found in; in the ink of the page."""
    found = _picture(lambda ax: plot.findings(findings, ax=ax), "Memories by check", _HALF)
    repeated = _picture(lambda ax: plot.duplicates(findings, ax=ax), "Clusters of duplicates by size", _HALF)
    drawn = [f"<div>{found}</div>", f"<div>{repeated}</div>"]
    if {"created_at", "source"} <= set(audited.columns):
        when = _picture(lambda ax: plot.timeline(audited, ax=ax), "Memories over time", _WHOLE)
        drawn.append(f'<div class="wide">{when}</div>')
    return f'<div class="pictures">{"".join(drawn)}</div>'


def _picture(draw: Callable[[Any], object], words: str, size: tuple[float, float]) -> str:
    return inline_svg(draw, width=size[0], height=size[1], words=words)


def _section(found: pd.DataFrame, count: Count) -> str:
    words = words_of(count.check)
    rows = "".join(map(_row, found.head(MAX_SHOWN).astype(object).to_dict("records")))
    n_more = len(found) - MAX_SHOWN
    more = f'<p class="soft">and {n_more:,} more in the JSON of the audit</p>' if n_more > 0 else ""
    heads = "<th>severity</th><th>kind</th><th>memory</th><th>evidence</th><th>proposed</th>"
    return (
        f'<h2>{escaped(words.title)}</h2><p class="about">{escaped(words.about)}</p>'
        f'<table class="findings"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{more}'
    )


def _row(finding: dict[Hashable, Any]) -> str:
    """One finding as a row of a table."""
    severity, action = str(finding["severity"]), str(finding["action"])
    where = f", {finding['field']}" if pd.notna(finding["start"]) else ""
    ids = [str(finding[name]) for name in ("id", "related_id") if isinstance(finding[name], str)]
    named = " → ".join(f'<span title="{attribute(name)}">{escaped(_brief(name))}</span>' for name in ids)
    return (
        f'<tr><td class="{severity if severity in SEVERITIES else ""}">{escaped(severity)}</td>'
        f"<td>{escaped(str(finding['kind']).replace('_', ' '))}</td>"
        f'<td class="id">{named}{escaped(where)}</td>'
        f'<td class="evidence">{escaped(str(finding["evidence"]))}</td>'
        f"<td>{escaped(PROPOSALS.get(action, ''))}</td></tr>"
    )


def _brief(memory_id: str) -> str:
    return memory_id if len(memory_id) <= _BRIEF_ID else f"{memory_id[: _BRIEF_ID - 1]}…"
