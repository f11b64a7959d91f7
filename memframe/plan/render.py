"""Render plans for people: a diff for terminals, HTML for notebooks, and counts.

Untrusted text is escaped, in HTML by `memframe.display`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple

from rapidfuzz.distance import Indel

from memframe.display import Markup, escape_invisible, join, notebook_html, number_of, table, tag
from memframe.fields import TEXT_FIELDS
from memframe.plan.change import FIELDS, MAX_LISTED, WRITES, Change, Value, format_counts, list_some, mask
from memframe.plan.losses import Loss

CONTEXT_CHARS = 60
"""Characters of equal text that are shown next to a change."""

MAX_CHANGED_CHARS = 400
"""Characters that are shown of one changed span."""

MAX_PLAIN_CHARS = 240
"""Characters that are shown of a text that is not compared with another."""

MAX_COMPARED = 400_000_000
"""Pairs of words, an eighth of a byte each, beyond which comparing would take too much memory; then all is changed."""

N_CONTEXT_LINES = 2
MAX_SHOWN = 50
"""Changes of a plan in a notebook; equal ones count once."""

FEWEST_EQUAL = 3
"""Equal changes that are shown together; two are read as quickly one by one."""

_COLORS = {"head": "1", "note": "33", "hunk": "36", "-": "31", "+": "32", " ": ""}
_WORD = re.compile(r"\w+|\s+|[^\w\s]")


class DiffSpan(NamedTuple):
    """A span of text; `is_changed` if the other side has other text in its place."""

    text: str
    is_changed: bool = False


Sides = tuple[list[DiffSpan], list[DiffSpan]]
DiffLine = tuple[str, Sequence[DiffSpan]]
"""The kind of a line, and its text in spans."""


def spans_of(before: Value, after: Value) -> Sides:
    """Split both values, as text, into equal and changed spans; a single blank between two changes joins them.

    >>> was, becomes = spans_of("Ada likes tea", "Ada loves tea")
    >>> [span.text for span in was if span.is_changed], [span.text for span in becomes if span.is_changed]
    (['likes'], ['loves'])
    >>> spans_of(("tea", "home"), ("home",))[0][0]
    DiffSpan(text='tea', is_changed=True)
    """
    if isinstance(before, tuple) and isinstance(after, tuple):
        return _name_spans(before, after), _name_spans(after, before)
    if isinstance(before, float) or isinstance(after, float):
        old, new = ([] if value is None else [DiffSpan(text_of(value), True)] for value in (before, after))
        return old, new
    was, becomes = (_WORD.findall(text_of(value)) for value in (before, after))
    if was != becomes and len(was) * len(becomes) > MAX_COMPARED:
        return [DiffSpan("".join(was), True)], [DiffSpan("".join(becomes), True)]
    cuts = [
        (code.tag != "equal", was[code.src_start : code.src_end], becomes[code.dest_start : code.dest_end])
        for code in Indel.opcodes(was, becomes)
    ]
    joined = [
        (is_changed or (0 < place < len(cuts) - 1 and "".join(words).isspace()), words, others)
        for place, (is_changed, words, others) in enumerate(cuts)
    ]
    sides: Sides = [], []
    for is_changed, stretch in groupby(joined, key=itemgetter(0)):
        _, *both = zip(*stretch, strict=True)
        for side, words in zip(sides, both, strict=True):
            text = "".join(chain.from_iterable(words))
            if text:
                side.append(DiffSpan(text, is_changed))
    return sides


def text_of(value: Value) -> str:
    """Format a value for people; None is empty.

    >>> text_of(3.0), text_of(("tea", "home")), text_of(None)
    ('3', 'tea, home', '')
    """
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return ", ".join(value) if isinstance(value, tuple) else value or ""


def _name_spans(names: Sequence[str], others: Sequence[str]) -> list[DiffSpan]:
    pairs = ((DiffSpan(", "), DiffSpan(name, name not in others)) for name in names)
    return [span for pair in pairs for span in pair][1:]


def shorten(spans: Sequence[DiffSpan]) -> list[DiffSpan]:
    """Cut long stretches: of equal text all but the ends beside a difference, of changed text the middle.

    >>> [span.text for span in shorten([DiffSpan("so " * 40), DiffSpan("tea", True)])]
    ['… so so so so so so so so so so so so so so so so so so so ', 'tea']
    """
    short, last = [], len(spans) - 1
    for place, (whole, is_changed) in enumerate(spans):
        text, n_cut = whole, len(whole) - MAX_CHANGED_CHARS
        if is_changed and n_cut > CONTEXT_CHARS:
            half = MAX_CHANGED_CHARS // 2
            text = f"{whole[:half]} […{n_cut:,} characters…] {whole[-half:]}"
        elif not is_changed and last == 0:  # nothing differs: the beginning says most
            text = whole if len(whole) <= MAX_PLAIN_CHARS else f"{_head(whole, MAX_PLAIN_CHARS)}…"
        elif not is_changed:
            head = _head(whole, CONTEXT_CHARS) if place else ""
            tail = "" if place == last else re.sub(r"^\S*\s+", "", whole[-CONTEXT_CHARS:])
            if len(whole) > max(CONTEXT_CHARS, len(head) + len(tail) + CONTEXT_CHARS // 4):
                cut = "…" if place == last else "… "
                text = f"{head} {cut}{tail}" if head and tail else f"{head}{cut}{tail}"
        short.append(DiffSpan(text, is_changed))
    return short


def _head(text: str, n_chars: int) -> str:
    """Return the beginning of a text, cut between words if it has any."""
    return re.sub(r"(?<=\s)\S*$", "", text[:n_chars]) if len(text) > n_chars else text


def render_diff(
    records: Sequence[Change], notes: Iterable[str], *, color: bool, limit: int | None = None
) -> str:
    """Render notes, changes (within a limit conflicts come first) and their counts, like a diff of git."""
    shown = group_equal(records)
    if limit is not None and len(shown) > limit:
        shown = sorted(shown, key=lambda equal: equal[0].action in WRITES)[:limit]
    parts: list[Iterable[DiffLine]] = [[("note", [DiffSpan(f"# {note}")]) for note in notes]]
    parts += [
        _diff_lines(mask(equal[0])) if len(equal) == 1 else _equal_lines(equal, limit) for equal in shown
    ]
    texts = ["\n".join(_render_line(*line, color=color) for line in lines) for lines in parts]
    n_more = len(records) - sum(map(len, shown))
    more = f"and {n_more:,} more" if n_more else ""
    return "\n\n".join(filter(None, [*texts, more, format_counts(count_actions(records))]))


def has_texts(change: Change) -> bool:
    """Return True if a change shows texts of its memory, by which people know it."""
    return not (change.before.keys() | change.after.keys()).isdisjoint(TEXT_FIELDS)


def group_equal(records: Sequence[Change]) -> list[list[Change]]:
    """Group patches that do the same to the fields of several memories, other than their texts; others stay alone.

    >>> tags = [("recipe", "tea"), ("recipe",), ("recipe", "oats"), ("home",)]
    >>> records = [
    ...     Change(action="patch", id=f"m{n}", before={"tags": old}, after={"tags": ("recipes", *old[1:])})
    ...     for n, old in enumerate(tags)
    ... ]
    >>> [[change.id for change in equal] for equal in group_equal(records)]
    [['m0', 'm1', 'm2'], ['m3']]
    """
    groups: dict[Hashable, list[Change]] = {}
    for place, change in enumerate(records):
        is_alone = change.action != "patch" or change.group is not None or has_texts(change)
        key = place if is_alone else (change.reason, *_replaced_values(change))
        groups.setdefault(key, []).append(change)
    parts = ([equal] if len(equal) >= FEWEST_EQUAL else [[one] for one in equal] for equal in groups.values())
    return [equal for part in parts for equal in part]


def _replaced_values(change: Change) -> list[tuple[str, Value, Value]]:
    """List the values of each field that go and come; of names only those that differ."""
    replaced: list[tuple[str, Value, Value]] = []
    for name in change.after:
        old, new = change.before.get(name), change.after[name]
        if isinstance(old, tuple) and isinstance(new, tuple):
            old, new = (tuple(sorted(set(some) - set(others))) for some, others in ((old, new), (new, old)))
        replaced.append((name, old, new))
    return replaced


def describe_equal(records: Sequence[Change]) -> list[str]:
    """Describe the most frequent changes that are equal for several memories.

    >>> records = [
    ...     Change(action="patch", id=f"m{n}", before={"tags": ("recipe",)}, after={"tags": ("recipes",)})
    ...     for n in range(16)
    ... ]
    >>> describe_equal(records)
    ['tags: recipe -> recipes, 16 memories']
    """
    groups = sorted((equal for equal in group_equal(records) if len(equal) > 1), key=len, reverse=True)
    return [
        f"{'; '.join(_describe_replaced(*one) for one in _replaced_values(mask(equal[0])))}, {len(equal):,} memories"
        for equal in groups[:MAX_LISTED]
    ]


def _describe_replaced(name: str, old: Value, new: Value) -> str:
    return f"{name}: {text_of(old) or '(none)'} -> {text_of(new) or '(none)'}"


def count_actions(records: Iterable[Change]) -> dict[str, int]:
    """Count changes by action, as displays do: creates that bring back a deleted memory are restores."""
    return dict(Counter("restore" if change.restores else change.action for change in records))


def describe_losses(losses: Sequence[Loss], n_compared: int, *, with_texts: bool = True) -> str:
    """Say which values no memory would hold any more: the first few of them, or how many of each kind."""
    if not losses:
        return "Loses nothing that no other memory holds."
    values = number_of(len(losses), "value", "values")
    of_which = "holds" if n_compared else "of this plan holds (the others were not loaded)"
    some = [f"{loss.value} ({loss.kind}, {loss.field} of memory {loss.id})" for loss in losses]
    if not with_texts:
        some = [f"{n:,} {kind}" for kind, n in Counter(loss.kind for loss in losses).most_common()]
    return f"Loses {values} that no other memory {of_which}: {list_some(some)}."


def _diff_lines(change: Change) -> Iterator[DiffLine]:
    memory = f"memory {change.id}" if change.id else "a new memory"
    name = f": {change.name}" if change.name else ""
    yield "head", [DiffSpan(f"{change.action} {memory}{_row_of(change)}{name}")]
    if change.reason:
        yield "note", [DiffSpan(f"# {change.reason}")]
    for name in FIELDS:
        lines = list(_field_lines(change.before.get(name), change.after.get(name)))
        if lines:
            yield "hunk", [DiffSpan(f"@@ {name} @@")]
            yield from lines
    for memory_id, text in change.keeps.items():
        yield "hunk", [DiffSpan(f"@@ kept by memory {memory_id} @@")]
        yield from ((" ", shorten([DiffSpan(line)])) for line in text.split("\n"))


def _row_of(change: Change) -> str:
    """Name the row of a change, unless the memory of a file is known by nothing else."""
    return "" if change.row is None or change.id == f"row {change.row}" else f" (row {change.row})"


def _equal_lines(equal: Sequence[Change], limit: int | None) -> Iterator[DiffLine]:
    """Yield what changes once for all memories, then the memories: all, or the first few if there is a limit."""
    first = mask(equal[0])
    yield "head", [DiffSpan(f"{first.action} {len(equal):,} memories")]
    if first.reason:
        yield "note", [DiffSpan(f"# {first.reason}")]
    for name, old, new in _replaced_values(first):
        yield "hunk", [DiffSpan(f"@@ {name} @@")]
        yield from _replaced_lines([spans_of(old, new)])
    listed = equal if limit is None else equal[:MAX_LISTED]
    yield "hunk", [DiffSpan("@@ memories @@")]
    for change in map(mask, listed):
        name = f": {change.name}" if change.name else ""
        yield " ", [DiffSpan(f"memory {change.id}{_row_of(change)}{name}")]
    if len(listed) < len(equal):
        yield " ", [DiffSpan(f"and {len(equal) - len(listed):,} more")]


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
                yield from ((" ", shorten([DiffSpan(text)])) for text in removed)
            elif len(removed) == len(added):  # compared line by line
                yield from _replaced_lines([spans_of(*pair) for pair in zip(removed, added, strict=True)])
            else:
                yield from _replaced_lines([([DiffSpan(text)], []) for text in removed])
                yield from _replaced_lines([([], [DiffSpan(text)]) for text in added])


def _replaced_lines(pairs: Sequence[Sides]) -> Iterator[DiffLine]:
    yield from (("-", shorten(old)) for old, _ in pairs if old)
    yield from (("+", shorten(new)) for _, new in pairs if new)


def _render_line(kind: str, spans: Sequence[DiffSpan], *, color: bool) -> str:
    marks = color and not all(span.is_changed for span in spans)
    texts = ((on_one_line(span.text), marks and span.is_changed) for span in spans)
    text = "".join(f"\x1b[7m{text}\x1b[27m" if is_marked else text for text, is_marked in texts)
    line = (kind if len(kind) == 1 else "") + text
    return f"\x1b[{_COLORS[kind]}m{line}\x1b[0m" if color and _COLORS[kind] else line


def on_one_line(text: str) -> str:
    r"""Escape text with line ends, such as an odd tag, so that it cannot imitate a line of the diff."""
    return escape_invisible(text).replace("\n", r"\n")


# -- HTML


def render_plan_html(records: Sequence[Change], notes: Iterable[str], made: str) -> str:
    """Render changes for a notebook; beyond `MAX_SHOWN` they are counted."""
    shown = sorted(group_equal(records), key=lambda equal: equal[0].action in WRITES)[:MAX_SHOWN]
    rows = [row for equal in shown for row in _change_rows([mask(change) for change in equal])]
    return notebook_html(
        tag("b", format_counts(count_actions(records))),
        *(tag("div", note, class_="note") for note in notes),
        tag("div", made, class_="quiet"),
        wide_table(
            {"action": "7.5em", "row": "11em", "field": "8em", "before": "auto", "after": "auto"}, rows
        ),
        count_more(len(records) - sum(map(len, shown)), "plan.changes"),
    )


def wide_table(widths: Mapping[str, str], rows: Sequence[Markup]) -> Markup | None:
    """Build a table of columns with given widths, which scrolls by itself; None if there are no rows."""
    heads = (tag("th", name, style=f"width: {width}") for name, width in widths.items())
    return tag("div", table(heads, rows, class_="diff"), class_="wide") if rows else None


def count_more(n_more: int, where: str) -> Markup | None:
    """Build the line that counts what is not shown, and says where it is; None if all of it is."""
    return tag("div", f"and {n_more:,} more; {where} has all of them", class_="quiet") if n_more > 0 else None


def _name_memory(change: Change) -> Iterator[object]:
    """Yield row, id and name of the memory of a change."""
    memory_id = change.id or ""
    short = memory_id if len(memory_id) <= 12 else f"{memory_id[:8]}…"
    yield change.row
    yield tag("span", f" {short}", class_="quiet", title=memory_id) if change.id else None
    yield tag("div", change.name) if change.name else None


def _change_rows(equal: Sequence[Change]) -> Iterator[Markup]:
    """Render the reason, if there is one, then a row for each field; beside all of them, action and memories."""
    change, *others = equal
    lines = [tag("td", change.reason, colspan=3, class_="quiet")] if change.reason else []
    shown = change.before.keys() | change.after.keys()
    if change.action == "delete":  # by which one knows what goes
        shown = {name for name in ("title", "content") if change.before.get(name)}
    values = {name: (change.before.get(name), change.after.get(name)) for name in FIELDS if name in shown}
    if others:
        values = {name: (old, new) for name, old, new in _replaced_values(change)}
    for name, (before, after) in values.items():
        sides: Sides = [DiffSpan(text_of(before))], [DiffSpan(text_of(after))]
        if change.action in ("patch", "conflict"):  # others come or go as a whole
            sides = spans_of(before, after)
        lines.append(tag("td", name, class_="quiet"))
        for spans, mark in zip(sides, ("del", "ins"), strict=True):
            parts = (tag(mark, text) if is_changed else text for text, is_changed in spans)
            lines[-1] += tag("td", *parts, class_="text")
    for memory_id, text in change.keeps.items():
        kept = tag("td", text, tag("div", f"memory {memory_id}", class_="quiet"), class_="text")
        lines.append(tag("td", "kept", class_="quiet") + tag("td") + kept)
    first, *rest = lines or [tag("td", colspan=3)]
    kind = "go" if change.action in WRITES else "stop"
    n_rows = len(rest) + 1
    action = tag("td", tag("span", change.action, class_=kind), rowspan=n_rows)
    named = [tag("b", f"{len(equal):,} memories")] if others else []
    named += [
        tag("div", *_name_memory(one)) if others else join(_name_memory(one)) for one in equal[:MAX_LISTED]
    ]
    if len(equal) > MAX_LISTED:
        named.append(tag("div", f"and {len(equal) - MAX_LISTED:,} more", class_="quiet"))
    yield tag("tr", action + tag("td", *named, rowspan=n_rows) + first, class_="first")
    yield from (tag("tr", cells) for cells in rest)
