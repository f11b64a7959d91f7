"""Plans and runs for people: a diff for terminals, HTML for notebooks, and the words around both.

Texts of strangers are escaped, in HTML by `memframe.display`.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from operator import itemgetter
from os.path import commonprefix
from typing import NamedTuple

from memframe.display import Markup, escape_invisible, notebook_html, number_of, table, tag
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
    first = len(commonprefix([was, becomes]))  # noqa: RUF071 - of words, not of paths
    last = len(commonprefix([was[first:][::-1], becomes[first:][::-1]]))  # noqa: RUF071 - likewise
    middle = _cuts(was[first : len(was) - last], becomes[first : len(becomes) - last])
    cuts = [(first, first, False), *middle, (last, last, False)]
    return (
        _spans(was, [(n_was, is_changed) for n_was, _, is_changed in cuts]),
        _spans(becomes, [(n_becomes, is_changed) for _, n_becomes, is_changed in cuts]),
    )


def _cuts(was: Sequence[str], becomes: Sequence[str]) -> Iterator[tuple[int, int, bool]]:
    """Stretches of both sides: how many words on each, and whether they differ; a lone blank joins its neighbours."""
    if len(was) * len(becomes) > MAX_COMPARED:
        yield len(was), len(becomes), True
        return
    matcher = SequenceMatcher(None, was, becomes, autojunk=False)
    for kind, begin, end, other_begin, other_end in matcher.get_opcodes():
        is_same = kind == "equal" and not "".join(was[begin:end]).isspace()
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
        for kind, begin, end, new_begin, new_end in group:
            removed, added = old[begin:end], new[new_begin:new_end]
            if kind == "equal":
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
    """Render changes for a notebook; beyond `MAX_SHOWN` they are counted."""
    shown = sorted(records, key=lambda change: change.action in WRITES)[:MAX_SHOWN]
    rows = [row for change in shown for row in _change_rows(mask(change))]
    return notebook_html(
        tag("b", format_counts(count_actions(records))),
        *(tag("div", note, class_="note") for note in notes),
        tag("div", made, class_="quiet"),
        wide_table(
            {"action": "7.5em", "row": "11em", "field": "8em", "before": "auto", "after": "auto"}, rows
        ),
        count_more(len(records) - len(shown), "plan.changes"),
    )


def wide_table(widths: Mapping[str, str], rows: Sequence[Markup]) -> Markup | None:
    """Build a table of columns with given widths, which scrolls by itself; None where there are no rows."""
    heads = (tag("th", name, style=f"width: {width}") for name, width in widths.items())
    return tag("div", table(heads, rows, class_="diff"), class_="wide") if rows else None


def count_more(n_more: int, where: str) -> Markup | None:
    """Build the line that counts what is not shown, and says where it is; None where all of it is."""
    return tag("div", f"and {n_more:,} more; {where} has all of them", class_="quiet") if n_more > 0 else None


def _change_rows(change: Change) -> Iterator[Markup]:
    """Render the reason, if there is one, then a row for each field; beside all of them, action, label and id."""
    lines = [tag("td", change.reason, colspan=3, class_="quiet")] if change.reason else []
    for name in _shown_fields(change):
        before, after = change.before.get(name), change.after.get(name)
        sides: Sides = [DiffSpan(text_of(before))], [DiffSpan(text_of(after))]
        if change.action in ("patch", "conflict"):  # others come or go as a whole
            sides = spans_of(before, after)
        old, new = (_marked(side, mark) for side, mark in zip(sides, ("del", "ins"), strict=True))
        lines.append(tag("td", name, class_="quiet") + old + new)
    first, *rest = lines or [tag("td", colspan=3)]
    kind = "go" if change.action in WRITES else "stop"
    memory_id = change.id or ""
    short = memory_id if len(memory_id) <= 12 else f"{memory_id[:8]}…"
    memory = tag("span", f" {short}", class_="quiet", title=memory_id) if change.id else None
    n_rows = len(rest) + 1
    beside = tag("td", tag("span", change.action, class_=kind), rowspan=n_rows) + tag(
        "td", change.row, memory, rowspan=n_rows
    )
    yield tag("tr", beside + first, class_="first")
    yield from (tag("tr", cells) for cells in rest)


def _shown_fields(change: Change) -> Sequence[str]:
    given = change.before.keys() | change.after.keys()
    if change.action == "delete":  # by which one knows what goes
        given = {name for name in ("title", "content") if change.before.get(name)}
    return [name for name in FIELDS if name in given]


def _marked(spans: Sequence[DiffSpan], name: str) -> Markup:
    parts = (tag(name, span.text) if span.is_changed else span.text for span in spans)
    return tag("td", *parts, class_="text")


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
