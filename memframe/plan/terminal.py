"""A plan as a diff for terminals, like git's: lines that go and lines that come, coloured if asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from memframe.change import FIELDS, WRITES, Change, Value, masked
from memframe.plan.spans import Span, shortened, spans_of, text_of
from memframe.plan.unseen import visible
from memframe.plan.wording import counted, undo_note

if TYPE_CHECKING:
    from memframe.plan.plan import Plan

N_CONTEXT_LINES = 2

_COLOURS = {"head": "1", "note": "33", "hunk": "36", "-": "31", "+": "32", " ": ""}
_MARKED, _UNMARKED = "\x1b[7m", "\x1b[27m"
_RESET = "\x1b[0m"


class Line(NamedTuple):
    """One line of a diff: what kind it is, and its text in spans."""

    kind: str
    spans: Sequence[Span]


def wants_colour() -> bool:
    """Whether standard output is a terminal that shows colours (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def diff_of(plan: Plan, *, color: bool, limit: int | None = None) -> str:
    """Return the notes of a plan, its changes (within a limit conflicts come first), and their counts."""
    show = _coloured if color else _plain
    notes = ["\n".join(show(Line("note", [Span(f"# {note}")])) for note in plan.notes)] if plan.notes else []
    records = plan.records
    if limit is not None and len(records) > limit:
        records = tuple(sorted(records, key=lambda change: change.action in WRITES))[:limit]
    parts = ["\n".join(map(show, _lines(masked(change)))) for change in records]
    more = [f"and {len(plan) - len(records):,} more"] if len(records) < len(plan) else []
    note = undo_note(plan)
    return "\n\n".join([*notes, *parts, *more, counted(plan.counts) + (f"\n{note}" if note else "")])


def _lines(change: Change) -> Iterator[Line]:
    yield Line("head", [Span(_title(change))])
    if change.reason:
        yield Line("note", [Span(f"# {change.reason}")])
    for name in FIELDS:
        if name in change.before or name in change.after:
            field = list(_field_lines(change.before.get(name), change.after.get(name)))
            if field:
                yield Line("hunk", [Span(f"@@ {name} @@")])
                yield from field


def _title(change: Change) -> str:
    of_id = f"memory {change.id}" if change.id else "a new memory"
    return f"{change.action} {of_id}" + ("" if change.row is None else f" (row {change.row})")


def _field_lines(before: Value, after: Value) -> Iterator[Line]:
    if isinstance(before, str) or isinstance(after, str):
        yield from _text_lines(_lines_of(before), _lines_of(after))
        return
    was, becomes = spans_of(before, after)
    yield from _pair(was, becomes)


def _pair(was: Sequence[Span], becomes: Sequence[Span]) -> Iterator[Line]:
    if was:
        yield Line("-", shortened(was))
    if becomes:
        yield Line("+", shortened(becomes))


def _lines_of(value: Value) -> list[str]:
    return [] if value is None else text_of(value).split("\n")


def _text_lines(was: Sequence[str], becomes: Sequence[str]) -> Iterator[Line]:
    matcher = SequenceMatcher(None, was, becomes, autojunk=False)
    for group in matcher.get_grouped_opcodes(N_CONTEXT_LINES):
        for tag, begin, end, other_begin, other_end in group:
            gone, come = was[begin:end], becomes[other_begin:other_end]
            if tag == "equal":
                yield from (Line(" ", shortened([Span(text)])) for text in gone)
            else:
                yield from _replaced(gone, come)


def _replaced(gone: Sequence[str], come: Sequence[str]) -> Iterator[Line]:
    """Lines in the place of others; as many as before are compared one by one."""
    if len(gone) == len(come):
        pairs = [spans_of(was, becomes) for was, becomes in zip(gone, come, strict=True)]
    else:
        pairs = [*(([Span(was)], []) for was in gone), *(([], [Span(becomes)]) for becomes in come)]
    yield from (Line("-", shortened(was)) for was, _ in pairs if was)
    yield from (Line("+", shortened(becomes)) for _, becomes in pairs if becomes)


def _plain(line: Line) -> str:
    return _sign(line) + "".join(_on_one_line(span.text) for span in line.spans)


def _coloured(line: Line) -> str:
    is_whole = all(span.is_changed for span in line.spans)
    text = "".join(_on_one_line(span.text) if is_whole else _span(span) for span in line.spans)
    colour = _COLOURS[line.kind]
    return f"\x1b[{colour}m{_sign(line)}{text}{_RESET}" if colour else _sign(line) + text


def _span(span: Span) -> str:
    text = _on_one_line(span.text)
    return f"{_MARKED}{text}{_UNMARKED}" if span.is_changed else text


def _on_one_line(text: str) -> str:
    r"""What came with a line end, such as an odd tag, must not pass for a line of the diff."""
    return visible(text).replace("\n", r"\n")


def _sign(line: Line) -> str:
    return line.kind if len(line.kind) == 1 else ""
