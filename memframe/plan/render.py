"""Plans and runs for people: a diff for terminals, HTML for notebooks, and the words around both.

Texts of strangers are escaped. Colours of the HTML are transparent layers over whatever the page has, so that light and
dark themes both do.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from html import escape
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from memframe.display import NO_FORMULAS, number_of
from memframe.plan.change import FIELDS, WRITES, Change, Value, format_counts, mask

CONTEXT_CHARS = 60
"""Characters of equal text that are left beside a difference."""

MAX_CHANGED_CHARS = 400
"""Characters that are shown of one stretch that differs."""

MAX_PLAIN_CHARS = 240
"""Characters that are shown of a text that is not compared with another."""

MAX_COMPARED = 2_000_000
"""Pairs of words beyond which comparing would take too long; then all between the equal ends counts as changed."""

N_CONTEXT_LINES = 2
MAX_SHOWN = 50
"""Changes of a plan in a notebook."""

_COLORS = {"head": "1", "note": "33", "hunk": "36", "-": "31", "+": "32", " ": ""}
_WORD = re.compile(r"\w+|\s+|[^\w\s]")


class DiffSpan(NamedTuple):
    """A stretch of text, and whether the other side has something else in its place."""

    text: str
    is_changed: bool = False


Sides = tuple[list[DiffSpan], list[DiffSpan]]


def spans_of(before: Value, after: Value) -> Sides:
    """Both values as text, cut where they differ.

    >>> was, becomes = spans_of("Ada likes tea", "Ada loves tea")
    >>> [span.text for span in was if span.is_changed], [span.text for span in becomes if span.is_changed]
    (['likes'], ['loves'])
    >>> spans_of(("tea", "home"), ("home",))[0][0]
    DiffSpan(text='tea', is_changed=True)
    """
    if isinstance(before, tuple) and isinstance(after, tuple):
        return _name_spans(before, after), _name_spans(after, before)
    if isinstance(before, float) or isinstance(after, float):
        return _whole(before), _whole(after)
    return _text_spans(text_of(before), text_of(after))


def text_of(value: Value) -> str:
    """A value as people read it; None is empty.

    >>> text_of(3.0), text_of(("tea", "home")), text_of(None)
    ('3', 'tea, home', '')
    """
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return ", ".join(value) if isinstance(value, tuple) else value or ""


def _whole(value: Value) -> list[DiffSpan]:
    return [] if value is None else [DiffSpan(text_of(value), True)]


def _name_spans(names: Sequence[str], others: Sequence[str]) -> list[DiffSpan]:
    pairs = ((DiffSpan(", "), DiffSpan(name, name not in others)) for name in names)
    return [span for pair in pairs for span in pair][1:]


def _text_spans(before: str, after: str) -> Sides:
    was, becomes = _WORD.findall(before), _WORD.findall(after)
    first = _n_equal(was, becomes)
    last = _n_equal(reversed(was[first:]), reversed(becomes[first:]))
    ends = len(was) - last, len(becomes) - last
    cuts = [
        (first, first, False),
        *_cuts(was[first : ends[0]], becomes[first : ends[1]]),
        (last, last, False),
    ]
    return _spans(was, [(n_was, is_changed) for n_was, _, is_changed in cuts]), _spans(
        becomes, [(n_becomes, is_changed) for _, n_becomes, is_changed in cuts]
    )


def _n_equal(some: Iterable[str], others: Iterable[str]) -> int:
    """Count the words that are the same from the beginning on."""
    n_equal = 0
    for one, other in zip(some, others, strict=False):
        if one != other:
            break
        n_equal += 1
    return n_equal


def _cuts(was: Sequence[str], becomes: Sequence[str]) -> Iterator[tuple[int, int, bool]]:
    """Stretches of both sides: how many words on each, and whether they differ; a lone blank joins its neighbours."""
    if len(was) * len(becomes) > MAX_COMPARED:
        yield len(was), len(becomes), True
        return
    matcher = SequenceMatcher(None, was, becomes, autojunk=False)
    for tag, begin, end, other_begin, other_end in matcher.get_opcodes():
        is_same = tag == "equal" and not "".join(was[begin:end]).isspace()
        yield end - begin, other_end - other_begin, not is_same


def _spans(words: Sequence[str], cuts: Iterable[tuple[int, bool]]) -> list[DiffSpan]:
    spans, begin = [], 0
    for is_changed, stretch in groupby(cuts, key=itemgetter(1)):
        end = begin + sum(n_words for n_words, _ in stretch)
        if end > begin:
            spans.append(DiffSpan("".join(words[begin:end]), is_changed))
        begin = end
    return spans


def shorten(spans: Sequence[DiffSpan]) -> list[DiffSpan]:
    """Long stretches cut: of what is the same, all but the ends beside a difference; of what differs, the middle.

    >>> [span.text for span in shorten([DiffSpan("so " * 40), DiffSpan("tea", True)])]
    ['… so so so so so so so so so so so so so so so so so so so ', 'tea']
    """
    last = len(spans) - 1
    return [
        span._replace(text=_cut_changed(span.text))
        if span.is_changed
        else span._replace(text=_cut_same(span.text, is_first=place == 0, is_last=place == last))
        for place, span in enumerate(spans)
    ]


def _cut_changed(text: str) -> str:
    n_cut = len(text) - MAX_CHANGED_CHARS
    if n_cut <= CONTEXT_CHARS:
        return text
    half = MAX_CHANGED_CHARS // 2
    return f"{text[:half]} […{n_cut:,} characters…] {text[-half:]}"


def _cut_same(text: str, *, is_first: bool, is_last: bool) -> str:
    if is_first and is_last:  # nothing differs: the beginning says most
        return text if len(text) <= MAX_PLAIN_CHARS else f"{_head(text, MAX_PLAIN_CHARS)}…"
    head = "" if is_first else _head(text, CONTEXT_CHARS)
    tail = "" if is_last else _tail(text, CONTEXT_CHARS)
    is_short = len(text) <= len(head) + len(tail) + CONTEXT_CHARS // 4
    return text if is_short else f"{head}{'…' if is_last else ' … ' if head else '… '}{tail}"


def _head(text: str, n_chars: int) -> str:
    """The beginning, cut between words where there is a gap."""
    return re.sub(r"(?<=\s)\S*$", "", text[:n_chars]) if len(text) > n_chars else text


def _tail(text: str, n_chars: int) -> str:
    return re.sub(r"^\S*\s+", "", text[-n_chars:]) if len(text) > n_chars else text


class DiffLine(NamedTuple):
    """One line of a diff: its kind, and its text in spans."""

    kind: str
    spans: Sequence[DiffSpan]


def wants_color() -> bool:
    """Tell whether standard output is a terminal that shows colours (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def render_diff(
    records: Sequence[Change], notes: Iterable[str], *, color: bool, limit: int | None = None
) -> str:
    """Render notes, changes (within a limit conflicts come first) and their counts, like a diff of git."""
    show = _color_line if color else _plain_line
    shown = records
    if limit is not None and len(records) > limit:
        shown = sorted(records, key=lambda change: change.action in WRITES)[:limit]
    head = "\n".join(show(DiffLine("note", [DiffSpan(f"# {note}")])) for note in notes)
    parts = ["\n".join(map(show, _diff_lines(mask(change)))) for change in shown]
    more = f"and {len(records) - len(shown):,} more" if len(shown) < len(records) else ""
    return "\n\n".join(filter(None, [head, *parts, more, format_counts(count_actions(records))]))


def count_actions(records: Iterable[Change]) -> dict[str, int]:
    """Count changes by action, as displays do: creates that bring back a deleted memory are restores."""
    return dict(Counter("restore" if change.restores else change.action for change in records))


def _diff_lines(change: Change) -> Iterator[DiffLine]:
    memory = f"memory {change.id}" if change.id else "a new memory"
    row = "" if change.row is None else f" (row {change.row})"
    yield DiffLine("head", [DiffSpan(f"{change.action} {memory}{row}")])
    if change.reason:
        yield DiffLine("note", [DiffSpan(f"# {change.reason}")])
    for name in FIELDS:
        if name in change.before or name in change.after:
            field = list(_field_lines(change.before.get(name), change.after.get(name)))
            if field:
                yield DiffLine("hunk", [DiffSpan(f"@@ {name} @@")])
                yield from field


def _field_lines(before: Value, after: Value) -> Iterator[DiffLine]:
    if not (isinstance(before, str) or isinstance(after, str)):
        yield from _replaced_lines([spans_of(before, after)])
        return
    old, new = ([] if value is None else text_of(value).split("\n") for value in (before, after))
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(N_CONTEXT_LINES):
        for tag, begin, end, new_begin, new_end in group:
            removed, added = old[begin:end], new[new_begin:new_end]
            if tag == "equal":
                yield from (DiffLine(" ", shorten([DiffSpan(text)])) for text in removed)
            elif len(removed) == len(added):  # compared line by line
                yield from _replaced_lines([spans_of(*pair) for pair in zip(removed, added, strict=True)])
            else:
                yield from _replaced_lines([([DiffSpan(text)], []) for text in removed])
                yield from _replaced_lines([([], [DiffSpan(text)]) for text in added])


def _replaced_lines(pairs: Sequence[Sides]) -> Iterator[DiffLine]:
    yield from (DiffLine("-", shorten(old)) for old, _ in pairs if old)
    yield from (DiffLine("+", shorten(new)) for _, new in pairs if new)


def _plain_line(line: DiffLine) -> str:
    return _sign(line) + "".join(_on_one_line(span.text) for span in line.spans)


def _color_line(line: DiffLine) -> str:
    is_whole = all(span.is_changed for span in line.spans)
    parts = (
        f"\x1b[7m{_on_one_line(span.text)}\x1b[27m"
        if span.is_changed and not is_whole
        else _on_one_line(span.text)
        for span in line.spans
    )
    text, color = _sign(line) + "".join(parts), _COLORS[line.kind]
    return f"\x1b[{color}m{text}\x1b[0m" if color else text


def _on_one_line(text: str) -> str:
    r"""Escape what came with a line end, such as an odd tag: it must not pass for a line of the diff."""
    return escape_invisible(text).replace("\n", r"\n")


def _sign(line: DiffLine) -> str:
    return line.kind if len(line.kind) == 1 else ""


# -- HTML


def render_plan_html(records: Sequence[Change], notes: Iterable[str], made: str) -> str:
    """Render changes as HTML without scripts; beyond `MAX_SHOWN` they are counted.

    Parameters
    ----------
    records : sequence of Change
    notes : iterable of str
    made : str
        For whom and when.
    """
    shown = sorted(records, key=lambda change: change.action in WRITES)[:MAX_SHOWN]
    rows = [row for change in shown for row in _change_rows(mask(change))]
    n_more = len(records) - len(shown)
    return _block(
        format_counts(count_actions(records)),
        *(f"<div class='note'>{_escape(note)}</div>" for note in notes),
        _quiet(made),
        _table(("action", "row", "field", "before", "after"), rows, _WIDTHS),
        _quiet(f"and {n_more:,} more; plan.changes has all of them") if n_more else "",
    )


def render_run_html(
    summary: Sequence[str], rows: Sequence[Sequence[object]], journal: object, n_more: int
) -> str:
    """Render a run as HTML without scripts.

    Parameters
    ----------
    summary : sequence of str
        The run in sentences, the counts first.
    rows : sequence of sequence
        Of what is not written: status, row, action, memory and why.
    journal : path or None
    n_more : int
        Rows that are not shown.
    """
    first, *rest = summary
    cells = (
        "".join(f"<td>{'' if cell is None else _escape(str(cell))}</td>" for cell in row) for row in rows
    )
    return _block(
        _escape(first),
        *(f"<div>{_escape(line)}</div>" for line in rest),
        _table(
            ("status", "row", "action", "memory", "why"),
            [f"<tr class='first'>{row}</tr>" for row in cells],
            (*_WIDTHS[:1], "6em", "6em", "12em", "auto"),
        ),
        _quiet(f"and {n_more:,} more; run.outcomes has all of them") if n_more > 0 else "",
        _quiet(f"journal: {journal}") if journal else "",
    )


def _block(title: str, *parts: str) -> str:
    return f"<div class='memframe-plan {NO_FORMULAS}'><style>{_STYLE}</style><b>{title}</b>{''.join(parts)}</div>"


def _quiet(text: str) -> str:
    return f"<div class='quiet'>{_escape(text)}</div>"


def _table(heads: Iterable[str], rows: Sequence[str], widths: Iterable[str]) -> str:
    if not rows:
        return ""
    columns = "".join(f"<col style='width: {width}'>" for width in widths)
    head = "".join(f"<th>{name}</th>" for name in heads)
    return (
        f"<div class='wide'><table><colgroup>{columns}</colgroup><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _change_rows(change: Change) -> Iterator[str]:
    """Render the reason, if there is one, then a row for each field; beside all of them, action, label and id."""
    lines = [f"<td colspan='3' class='quiet'>{_escape(change.reason)}</td>"] if change.reason else []
    for name in _shown_fields(change):
        before, after = change.before.get(name), change.after.get(name)
        sides: Sides = [DiffSpan(text_of(before))], [DiffSpan(text_of(after))]
        if change.action in ("patch", "conflict"):  # others come or go as a whole
            sides = spans_of(before, after)
        old, new = (_marked(side, mark) for side, mark in zip(sides, ("del", "ins"), strict=True))
        lines.append(f"<td class='quiet'>{name}</td>{old}{new}")
    first, *rest = lines or ["<td colspan='3'></td>"]
    kind = "go" if change.action in WRITES else "stop"
    label = "" if change.row is None else _escape(str(change.row))
    memory_id = change.id or ""
    short = memory_id if len(memory_id) <= 12 else f"{memory_id[:8]}…"
    memory = f" <span class='quiet' title='{_escape(memory_id)}'>{_escape(short)}</span>" if change.id else ""
    yield (
        f"<tr class='first'><td rowspan='{len(rest) + 1}'><span class='{kind}'>{change.action}</span></td>"
        f"<td rowspan='{len(rest) + 1}'>{label}{memory}</td>{first}</tr>"
    )
    yield from (f"<tr>{cells}</tr>" for cells in rest)


def _shown_fields(change: Change) -> Sequence[str]:
    given = change.before.keys() | change.after.keys()
    if change.action == "delete":  # by which one knows what goes
        given = {name for name in ("title", "content") if change.before.get(name)}
    return [name for name in FIELDS if name in given]


def _marked(spans: Sequence[DiffSpan], tag: str) -> str:
    parts = (
        f"<{tag}>{_escape(span.text)}</{tag}>" if span.is_changed else _escape(span.text) for span in spans
    )
    return f"<td class='text'>{''.join(parts)}</td>"


def _escape(text: str) -> str:
    return escape(escape_invisible(text))


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


# -- words


def summarize(records: Sequence[Change], notes: Iterable[str], made: str) -> str:
    """Describe a plan in a few lines, without any text of its memories."""
    n_of = Counter(name for change in records if change.action in WRITES for name in change.after)
    fields = ", ".join(f"{name} {n_of[name]:,}" for name in FIELDS if n_of[name])
    return "\n".join(
        [
            f"Plan: {format_counts(count_actions(records))}",
            *(f"  note: {_on_one_line(note)}" for note in notes),
            *([f"  fields to write: {fields}"] if fields else []),
            f"  {made}",
        ]
    )


def undo_note(restore_days: int) -> str:
    """Say what an undo of deletes brings back, before it is too late."""
    if restore_days:
        days = number_of(restore_days, "day", "days")
        return f"{UNDO_NOTE} within {days} brings deleted memories back with their ids and dates."
    return (
        f"{UNDO_NOTE} brings deleted memories back with new ids and the date of that day: this service does not "
        "restore them."
    )


UNDO_NOTE = "An undo"
"""Beginning of such a note."""


_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls but tab and line end
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction
    "\u200b\u2028\u2029\u2060-\u2064\ufeff"  # no width, other line ends
    "\ud800-\udfff\U000e0000-\U000e0fff]"  # halves of pairs, tags
)


def escape_invisible(text: str) -> str:
    r"""Spell out characters that would not be seen, or would steer the display.

    Such as controls, which a terminal obeys; marks that turn the direction of writing, by which a text can read
    otherwise than it is; and characters without a shape, in which instructions to a language model hide.

    >>> print(escape_invisible("done\x1b[2J, \u202eeman"))
    done\x1b[2J, \u202eeman
    """
    return _INVISIBLE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
