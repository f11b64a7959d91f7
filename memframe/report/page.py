"""The report as one page: no scripts, no links to elsewhere, nothing that is loaded."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple

import pandas as pd

from memframe import plot
from memframe.display import number_of
from memframe.plot.axes import inline_svg
from memframe.report.summary import (
    PROPOSALS,
    SEVERITIES,
    Audited,
    Count,
    attribute,
    details,
    escaped,
    headline,
    memories,
    none_found,
    share,
    subject_of,
    words_of,
    worst_of,
)

_HALF, _WHOLE = (5.6, 3.2), (11.4, 3.0)
"""Sizes of pictures, in inches of matplotlib, so that letters come out alike."""


def page_html(audit: Audited, shown: pd.DataFrame, *, labels: Mapping[str, str]) -> str:
    """Return the report of an audit.

    Parameters
    ----------
    audit : Audited
        With masked evidence.
    shown : DataFrame
        The findings that are listed; the others are counted.
    labels : mapping of str to str
        What memories are called, by id; beside these and the evidence none of their texts is shown.
    """
    style = files(__package__).joinpath("page.css").read_text("utf-8")
    counts, names = audit.counts, _Names(labels, _days(audit.memories))
    n_of = audit.findings["check"].value_counts()
    body = "\n".join(
        [
            *_head(audit, counts),
            _listed("Not looked for", audit.not_checked),
            _listed("Judged", audit.by_judge),
            _table(counts, len(audit.memories), audit.checks),
            _pictures(audit),
            *(
                _section(shown[shown["check"] == count.check], count, int(n_of[count.check]), names)
                for count in counts
            ),
            "<footer>Written by memframe on the machine that the memories were read on. Evidence is masked.</footer>",
        ]
    )
    return _document(style, f"Audit of {memories(len(audit.memories))}", body)


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


def _head(audit: Audited, counts: Sequence[Count]) -> Iterator[str]:
    n = len(audit.memories)
    yield f"<h1>Audit of {memories(n)}</h1>"
    subject = ", ".join(filter(None, [subject_of(audit), _span(audit.memories)]))
    yield f'<p class="soft subject">{escaped(subject[:1].upper() + subject[1:])}</p>' if subject else ""
    yield f'<p class="verdict">{escaped(headline(counts, n))}</p>'
    yield from (f'<p class="more">{escaped(sentence)}</p>' for sentence in details(counts, n))
    if done := audit.proposals:
        yield (
            '<p class="more soft">Proposed, in memories, each counted once, and nothing done yet: '
            f"{escaped(', '.join(done))}.</p>"
        )
    worst = worst_of(audit.by_memory)
    tiles = "".join(f'<li class="{name}"><b>{worst.get(name, 0):,}</b>{name}</li>' for name in SEVERITIES)
    yield f'<p class="soft tally">Memories by the worst that was found in each</p><ul class="tiles">{tiles}</ul>'


def _days(audited: pd.DataFrame) -> dict[str, str]:
    """The day of each memory, by id."""
    if "created_at" not in audited.columns:
        return {}
    dated = audited[["id", "created_at"]].dropna()
    days = pd.to_datetime(dated["created_at"], utc=True).dt.strftime("%Y-%m-%d")
    return dict(zip(dated["id"], days, strict=True))


def _span(audited: pd.DataFrame) -> str:
    """From when to when the memories are."""
    days = _days(audited).values()
    return f"memories from {min(days)} to {max(days)}" if days else ""


def _listed(title: str, sentences: Sequence[str]) -> str:
    items = "".join(f"<li>{escaped(sentence)}</li>" for sentence in sentences)
    return f'<div class="open"><h2>{title}</h2><ul>{items}</ul></div>' if items else ""


def _table(counts: Sequence[Count], n_memories: int, checks: Sequence[str]) -> str:
    """Figures of all checks, each with a link to its findings: the table of contents."""
    rows = "".join(_figures(count, n_memories) for count in counts)
    heads = "".join(f'<th class="n">{name}</th>' for name in (*SEVERITIES, "memories", "of all"))
    table = f"<table><thead><tr><th>Check</th>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    clean = none_found(counts, checks)
    nothing = f'<p class="soft">Looked for, and none found: {escaped(clean)}.</p>' if clean else ""
    about = '<p class="about">Memories by check, each counted where it is worst. The names lead to the findings.</p>'
    return f"<h2>Contents</h2>{f'{about}<nav>{table}</nav>' if counts else ''}{nothing}"


def _figures(count: Count, n_memories: int) -> str:
    cells = "".join(
        f'<td class="n {severity}">{count.by_severity[severity]:,}</td>'
        if severity in count.by_severity
        else '<td class="n"></td>'
        for severity in SEVERITIES
    )
    link = f'<a href="#{attribute(count.check)}">{escaped(words_of(count.check).title)}</a>'
    return (
        f'<tr><td>{link}</td>{cells}<td class="n">{count.n_memories:,}</td>'
        f'<td class="n">{share(count.n_memories, n_memories)}</td></tr>'
    )


def _pictures(audit: Audited) -> str:
    """What was found, and the store that it was found in; in the ink of the page."""
    audited = audit.memories
    found = _picture(lambda ax: plot.findings(audit, ax=ax), "Memories by check", _HALF)
    repeated = _picture(lambda ax: plot.duplicates(audit, ax=ax), "Clusters of duplicates by size", _HALF)
    drawn = [f"<div>{found}</div>", f"<div>{repeated}</div>"]
    if {"created_at", "source"} <= set(audited.columns):
        when = _picture(lambda ax: plot.timeline(audited, ax=ax), "Memories over time", _WHOLE)
        drawn.append(f'<div class="wide">{when}</div>')
    return f'<div class="pictures">{"".join(drawn)}</div>'


def _picture(draw: Callable[[Any], object], words: str, size: tuple[float, float]) -> str:
    return inline_svg(draw, width=size[0], height=size[1], words=words)


class _Names(NamedTuple):
    """Labels and days of memories, by id."""

    labels: Mapping[str, str]
    days: Mapping[str, str]

    def of(self, memory_id: str) -> str:
        """Return the day, the title or first words, and the whole id of a memory."""
        named = " ".join(filter(None, [self.days.get(memory_id), self.labels.get(memory_id)]))
        return f"{escaped(named)} <code>{escaped(memory_id)}</code>"


def _section(shown: pd.DataFrame, count: Count, n_findings: int, names: _Names) -> str:
    words = words_of(count.check)
    rows = "".join(_row(finding, names) for finding in shown.astype(object).to_dict("records"))
    n_more = n_findings - len(shown)
    more = (
        f'<p class="soft">and {number_of(n_more, "finding", "findings")} more: <code>audit.to_json(path)</code> and '
        "<code>memframe audit --out PATH</code> write all of them</p>"
        if n_more
        else ""
    )
    heads = "<th>severity</th><th>kind</th><th>memory</th><th>evidence</th><th>proposed</th>"
    return (
        f'<h2 id="{attribute(count.check)}">{escaped(words.title)}</h2><p class="about">{escaped(words.about)}</p>'
        f'<table class="findings"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{more}'
    )


def _row(finding: dict[Hashable, Any], names: _Names) -> str:
    """One finding as a row of a table."""
    severity, action = str(finding["severity"]), str(finding["action"])
    where = f"in {finding['field']}" if pd.notna(finding["start"]) else ""
    ids = [str(finding[name]) for name in ("id", "related_id") if isinstance(finding[name], str)]
    named = "".join(f"<div>{'→ ' if place else ''}{names.of(name)}</div>" for place, name in enumerate(ids))
    return (
        f'<tr><td class="{severity if severity in SEVERITIES else ""}">{escaped(severity)}</td>'
        f"<td>{escaped(str(finding['kind']).replace('_', ' '))} {escaped(where)}</td>"
        f'<td class="id">{named}</td>'
        f'<td class="evidence">{escaped(str(finding["evidence"]))}</td>'
        f"<td>{escaped(PROPOSALS.get(action, ''))}</td></tr>"
    )
