"""A plan as a table for notebooks: before and after side by side, what differs marked, everything escaped.

Colours are transparent layers over whatever the page has, so that light and dark themes both do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from memframe.change import FIELDS, Change, masked
from memframe.display import NO_FORMULAS
from memframe.plan.spans import Sides, Span, shortened, spans_of, text_of
from memframe.plan.unseen import visible
from memframe.plan.wording import UTC_MINUTE, counted, undo_note

if TYPE_CHECKING:
    from memframe.plan.plan import Plan

MAX_SHOWN = 50

_SHOWN_OF_DELETES = ("title", "content")
"""Fields by which one knows what goes."""

_STYLE = """
.memframe-plan { font-size: 13px; line-height: 1.45; }
.memframe-plan .quiet { opacity: .65; }
.memframe-plan .wide { overflow-x: auto; }
.memframe-plan table { border-collapse: collapse; width: 100%; min-width: 52em; margin: .6em 0; table-layout: fixed;
  font-size: inherit; }
.memframe-plan tr { background: none; }
.memframe-plan th, .memframe-plan td { padding: .3em .7em; text-align: left; vertical-align: top;
  border: 0; overflow-wrap: anywhere; }
.memframe-plan th { font-weight: 600; border-bottom: 1px solid rgba(128, 128, 128, .6); }
.memframe-plan tr.first td { border-top: 1px solid rgba(128, 128, 128, .25); }
.memframe-plan td.text { white-space: pre-wrap; }
.memframe-plan del { background: rgba(229, 83, 75, .22); text-decoration: line-through; border-radius: 2px; }
.memframe-plan ins { background: rgba(70, 170, 90, .25); text-decoration: none; border-radius: 2px; }
.memframe-plan .note { border-left: 3px solid rgba(128, 128, 128, .6); padding-left: .5em; margin: .3em 0; }
.memframe-plan .stop { border-left: 3px solid rgba(229, 83, 75, .9); padding-left: .5em; font-weight: 600; }
""".replace(".memframe-plan", 3 * ".memframe-plan")  # stronger than the notebook's own rules for tables

_WIDTHS = ("7.5em", "11em", "8em", "auto", "auto")
"""Of the columns."""


def html_of(plan: Plan) -> str:
    """Return the plan as HTML without scripts; beyond `MAX_SHOWN` changes the others are counted."""
    notes = "".join(f"<div class='note'>{_escaped(note)}</div>" for note in plan.notes)
    shown = sorted(plan.records, key=lambda change: change.action not in ("conflict", "invalid"))[:MAX_SHOWN]
    n_more = len(plan) - len(shown)
    more = f"<div class='quiet'>and {n_more:,} more; plan.changes has all of them</div>" if n_more else ""
    undo = undo_note(plan)
    note = f"<div class='quiet'>{_escaped(undo)}</div>" if undo else ""
    made = f"for user {plan.user_id} at {plan.base_url}, as of {plan.created_at.strftime(UTC_MINUTE)}"
    return (
        f"<div class='memframe-plan {NO_FORMULAS}'><style>{_STYLE}</style><b>{counted(plan.counts)}</b>{notes}"
        f"<div class='quiet'>{_escaped(made)}</div>{note}{_table(shown) if shown else ''}{more}</div>"
    )


def _table(changes: Iterable[Change]) -> str:
    columns = "".join(f"<col style='width: {width}'>" for width in _WIDTHS)
    heads = "".join(f"<th>{name}</th>" for name in ("action", "row", "field", "before", "after"))
    body = "".join(row for change in changes for row in _rows(masked(change)))
    head = f"<colgroup>{columns}</colgroup><thead><tr>{heads}</tr></thead>"
    return f"<div class='wide'><table>{head}<tbody>{body}</tbody></table></div>"


def _rows(change: Change) -> Iterator[str]:
    """The reason, if there is one, then a row for each field; beside all of them, what change it is."""
    lines = [f"<td colspan='3' class='quiet'>{_escaped(change.reason)}</td>"] if change.reason else []
    for name in _shown_fields(change):
        before, after = map(shortened, _sides(change, name))
        lines.append(f"<td class='quiet'>{name}</td>{_cell(before, 'del')}{_cell(after, 'ins')}")
    first, *rest = lines or ["<td colspan='3'></td>"]
    yield f"<tr class='first'>{_head(change, n_rows=1 + len(rest))}{first}</tr>"
    yield from (f"<tr>{cells}</tr>" for cells in rest)


def _sides(change: Change, name: str) -> Sides:
    before, after = change.before.get(name), change.after.get(name)
    if change.action in ("patch", "conflict"):
        return spans_of(before, after)
    return [Span(text_of(before))], [Span(text_of(after))]  # comes or goes as a whole


def _shown_fields(change: Change) -> Sequence[str]:
    given = change.before.keys() | change.after.keys()
    if change.action == "delete":
        given = {name for name in _SHOWN_OF_DELETES if change.before.get(name)}
    return [name for name in FIELDS if name in given]


def _head(change: Change, *, n_rows: int) -> str:
    """Action, label and id, beside all rows of a change."""
    kind = "stop" if change.action in ("conflict", "invalid") else "go"
    label = "" if change.row is None else _escaped(str(change.row))
    of_id = (
        f" <span class='quiet' title='{_escaped(change.id)}'>{_escaped(_brief(change.id))}</span>"
        if change.id
        else ""
    )
    return (
        f"<td rowspan='{n_rows}'><span class='{kind}'>{change.action}</span></td>"
        f"<td rowspan='{n_rows}'>{label}{of_id}</td>"
    )


def _brief(memory_id: str) -> str:
    return memory_id if len(memory_id) <= 12 else f"{memory_id[:8]}…"


def _cell(spans: Sequence[Span], mark: str) -> str:
    parts = (
        f"<{mark}>{_escaped(span.text)}</{mark}>" if span.is_changed else _escaped(span.text)
        for span in spans
    )
    return f"<td class='text'>{''.join(parts)}</td>"


def _escaped(text: str) -> str:
    return escape(visible(text))
