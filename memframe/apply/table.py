"""A run in a notebook: what happened in a few lines, and the rows that are not written, all escaped.

Colours are transparent layers over whatever the page has, so that light and dark themes both do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from memframe.apply.outcome import Outcome
from memframe.display import NO_FORMULAS

MAX_SHOWN = 20

_STYLE = """
.memframe-run { font-size: 13px; line-height: 1.45; }
.memframe-run .quiet { opacity: .65; }
.memframe-run table { border-collapse: collapse; margin: .6em 0; font-size: inherit; }
.memframe-run tr { background: none; }
.memframe-run th, .memframe-run td { padding: .3em .7em; text-align: left; vertical-align: top; border: 0;
  white-space: nowrap; }
.memframe-run th { font-weight: 600; border-bottom: 1px solid rgba(128, 128, 128, .6); }
.memframe-run td:last-child { white-space: normal; overflow-wrap: anywhere; }
.memframe-run td { border-top: 1px solid rgba(128, 128, 128, .25); }
""".replace(".memframe-run", 3 * ".memframe-run")  # stronger than the notebook's own rules for tables

_HEADS = ("status", "row", "action", "memory", "why")


def html_of(told: Sequence[str], unwritten: Sequence[Outcome], journal: Path | None) -> str:
    """A run as HTML without scripts; beyond `MAX_SHOWN` rows the others are counted.

    Parameters
    ----------
    told : sequence of str
        The run in sentences, the counts first.
    unwritten : sequence of Outcome
    journal : Path or None
    """
    first, *rest = map(escape, told)
    lines = "".join(f"<div>{line}</div>" for line in rest)
    n_more = len(unwritten) - MAX_SHOWN
    more = f"<div class='quiet'>and {n_more:,} more; run.outcomes has all of them</div>" if n_more > 0 else ""
    place = f"<div class='quiet'>journal: {escape(str(journal))}</div>" if journal else ""
    table = _table(unwritten[:MAX_SHOWN]) if unwritten else ""
    style = f"<style>{_STYLE}</style>"
    return f"<div class='memframe-run {NO_FORMULAS}'>{style}<b>{first}</b>{lines}{table}{more}{place}</div>"


def _table(rows: Iterable[Outcome]) -> str:
    head = "".join(f"<th>{name}</th>" for name in _HEADS)
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: Outcome) -> str:
    cells = (row.status, row.row, row.action, row.id, row.error)
    return "".join(f"<td>{'' if cell is None else escape(str(cell))}</td>" for cell in cells)
