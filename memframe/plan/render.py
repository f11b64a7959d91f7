"""Render plans for people: a diff for terminals, HTML for notebooks, and counts.

Both begin with `group_equal`, which shows equal patches of several memories once, and compare two values by words with
`spans_of`. The terminal gets lines (`DiffLine`) that `_render_line` colours; the notebook gets rows of a table.

Untrusted text is escaped, in HTML by `memframe.display`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from rapidfuzz.distance import Indel

from memframe.display import Markup, escape_invisible, notebook_html, number_of, table, tag
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
"""Most pairs of words to compare, one bit of memory each: 50 MB. Longer texts are shown as changed throughout."""

N_CONTEXT_LINES = 2
"""Equal lines that are shown before and after a changed one."""

MAX_SHOWN = 50
"""Changes of a plan in a notebook; equal ones count once."""

MIN_GROUP = 3
"""Fewest equal changes that are shown together; two are read as quickly one by one."""

_COLORS = {"head": "1", "note": "33", "hunk": "36", "-": "31", "+": "32", " ": ""}
"""ANSI colours by the kind of a line, those of git: bold, yellow, cyan, red, green, none."""

_WORD = re.compile(r"\w+|\s+|[^\w\s]")


class DiffSpan(NamedTuple):
    """A span of text; `is_changed` if the other side has other text in its place."""

    text: str
    is_changed: bool = False


Sides = tuple[list[DiffSpan], list[DiffSpan]]
"""The spans of a value before and after a change."""

DiffLine = tuple[str, Sequence[DiffSpan]]
"""The kind of a line (a key of `_COLORS`), and its text in spans."""


class _AlignedWords(NamedTuple):
    """Words that are equal on both sides, or that replace one another."""

    is_changed: bool
    old: str
    new: str


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
        return _changed_throughout(before), _changed_throughout(after)
    old_words = _WORD.findall(format_value(before))
    new_words = _WORD.findall(format_value(after))
    if old_words != new_words and len(old_words) * len(new_words) > MAX_COMPARED:
        return _changed_throughout(before), _changed_throughout(after)
    sides: Sides = [], []
    for is_changed, group in groupby(_align(old_words, new_words), key=attrgetter("is_changed")):
        aligned = list(group)
        old_text = "".join(each.old for each in aligned)
        new_text = "".join(each.new for each in aligned)
        for side, text in zip(sides, (old_text, new_text), strict=True):
            if text:
                side.append(DiffSpan(text, is_changed))
    return sides


def _align(old_words: Sequence[str], new_words: Sequence[str]) -> Iterator[_AlignedWords]:
    """Align two lists of words; a blank between two changes counts as changed, so that they are one."""
    opcodes = Indel.opcodes(old_words, new_words)
    for place, code in enumerate(opcodes):
        old = "".join(old_words[code.src_start : code.src_end])
        new = "".join(new_words[code.dest_start : code.dest_end])
        is_between = 0 < place < len(opcodes) - 1
        yield _AlignedWords(code.tag != "equal" or (is_between and old.isspace()), old, new)


def _changed_throughout(value: Value) -> list[DiffSpan]:
    return [] if value is None else [DiffSpan(format_value(value), True)]


def _name_spans(names: Sequence[str], others: Sequence[str]) -> list[DiffSpan]:
    """Return the spans of a list of names, in which those are changed that the other list lacks."""
    spans: list[DiffSpan] = []
    for name in names:
        if spans:
            spans.append(DiffSpan(", "))
        spans.append(DiffSpan(name, name not in others))
    return spans


def format_value(value: Value) -> str:
    """Format a value for people; None is empty.

    >>> format_value(3.0), format_value(("tea", "home")), format_value(None)
    ('3', 'tea, home', '')
    """
    match value:
        case float():
            return repr(value).removesuffix(".0")
        case tuple():
            return ", ".join(value)
        case _:
            return value or ""


def shorten(spans: Sequence[DiffSpan]) -> list[DiffSpan]:
    """Shorten long spans: equal text to the ends next to a difference, changed text by its middle.

    >>> [span.text for span in shorten([DiffSpan("so " * 40), DiffSpan("tea", True)])]
    ['… so so so so so so so so so so so so so so so so so so so ', 'tea']
    """
    if len(spans) == 1 and not spans[0].is_changed:
        return [DiffSpan(_cut_end(spans[0].text))]
    short = []
    last = len(spans) - 1
    for place, (whole, is_changed) in enumerate(spans):
        if is_changed:
            text = _cut_middle(whole)
        else:
            text = _cut_context(whole, follows_change=place > 0, precedes_change=place < last)
        short.append(DiffSpan(text, is_changed))
    return short


def _cut_end(text: str) -> str:
    """Cut a text in which nothing differs: its beginning says most."""
    return text if len(text) <= MAX_PLAIN_CHARS else f"{_head(text, MAX_PLAIN_CHARS)}…"


def _cut_middle(text: str) -> str:
    """Cut a changed text, both ends of which show how it differs."""
    n_cut = len(text) - MAX_CHANGED_CHARS
    if n_cut <= CONTEXT_CHARS:  # to cut less saves no line
        return text
    half = MAX_CHANGED_CHARS // 2
    return f"{text[:half]} […{n_cut:,} characters…] {text[-half:]}"


def _cut_context(text: str, *, follows_change: bool, precedes_change: bool) -> str:
    """Cut equal text to what is next to the changes before and after it."""
    head = _head(text, CONTEXT_CHARS) if follows_change else ""
    tail = re.sub(r"^\S*\s+", "", text[-CONTEXT_CHARS:]) if precedes_change else ""
    is_worth_cutting = len(text) > max(CONTEXT_CHARS, len(head) + len(tail) + CONTEXT_CHARS // 4)
    if not is_worth_cutting:
        return text
    if not precedes_change:
        return f"{head}…"
    return f"{head} … {tail}" if head and tail else f"{head}… {tail}"


def _head(text: str, n_chars: int) -> str:
    """Return the beginning of a text, cut between words if it has any."""
    return re.sub(r"(?<=\s)\S*$", "", text[:n_chars]) if len(text) > n_chars else text


# -- Equal changes


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
    >>> [[change.id for change in group] for group in group_equal(records)]
    [['m0', 'm1', 'm2'], ['m3']]
    """
    groups: dict[Hashable, list[Change]] = {}
    for place, change in enumerate(records):
        # texts are read one by one, and the changes of a merge are decided together with that of its keeper
        is_alone = change.action != "patch" or change.group is not None or has_texts(change)
        key = place if is_alone else (change.reason, *_replaced_values(change))
        groups.setdefault(key, []).append(change)
    shown: list[list[Change]] = []
    for group in groups.values():
        if len(group) >= MIN_GROUP:
            shown.append(group)
        else:
            shown += [[change] for change in group]
    return shown


def _conflicts_first(group: Sequence[Change]) -> bool:
    """Return the sort key of a group: False, which comes first, for what will not be written."""
    return group[0].action in WRITES


def _replaced_values(change: Change) -> list[tuple[str, Value, Value]]:
    """List the old and the new value of each field; of names only those that differ."""
    replaced: list[tuple[str, Value, Value]] = []
    for name, new in change.after.items():
        old = change.before.get(name)
        if isinstance(old, tuple) and isinstance(new, tuple):
            replaced.append((name, _without(old, new), _without(new, old)))
        else:
            replaced.append((name, old, new))
    return replaced


def _without(names: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(names) - set(others)))


def describe_equal(records: Sequence[Change]) -> list[str]:
    """Describe the most frequent changes that are equal for several memories.

    >>> records = [
    ...     Change(action="patch", id=f"m{n}", before={"tags": ("recipe",)}, after={"tags": ("recipes",)})
    ...     for n in range(16)
    ... ]
    >>> describe_equal(records)
    ['tags: recipe -> recipes, 16 memories']
    """
    groups = [group for group in group_equal(records) if len(group) > 1]
    described = []
    for group in sorted(groups, key=len, reverse=True)[:MAX_LISTED]:
        replaced = "; ".join(_describe_replaced(*values) for values in _replaced_values(mask(group[0])))
        described.append(f"{replaced}, {len(group):,} memories")
    return described


def _describe_replaced(name: str, old: Value, new: Value) -> str:
    return f"{name}: {format_value(old) or '(none)'} -> {format_value(new) or '(none)'}"


# -- Counts and losses


def count_actions(records: Iterable[Change]) -> dict[str, int]:
    """Count changes by action, as displays do: creates that bring back a deleted memory are restores."""
    return dict(Counter("restore" if change.restores else change.action for change in records))


def describe_losses(losses: Sequence[Loss], n_compared: int, *, with_texts: bool = True) -> str:
    """Say which values no memory would hold any more: the first few of them, or how many of each kind."""
    if not losses:
        return "Loses nothing that no other memory holds."
    values = number_of(len(losses), "value", "values")
    if with_texts:
        examples = [f"{loss.value} ({loss.kind}, {loss.field} of memory {loss.id})" for loss in losses]
    else:
        examples = [f"{n:,} {kind}" for kind, n in Counter(loss.kind for loss in losses).most_common()]
    if n_compared:
        return f"Loses {values} that no other memory holds: {list_some(examples)}."
    return (
        f"Loses {values} that no other memory of this plan holds (the others were not loaded): "
        f"{list_some(examples)}."
    )


# -- Terminal


def render_diff(
    records: Sequence[Change], notes: Iterable[str], *, color: bool, limit: int | None = None
) -> str:
    """Render notes, changes (within a limit conflicts come first) and their counts, like a diff of git."""
    groups = group_equal(records)
    if limit is not None and len(groups) > limit:
        groups = sorted(groups, key=_conflicts_first)[:limit]
    parts: list[Iterable[DiffLine]] = [[("note", [DiffSpan(f"# {note}")]) for note in notes]]
    parts += [_group_lines(each, limit) if len(each) > 1 else _change_lines(mask(each[0])) for each in groups]
    texts = ["\n".join(_render_line(*line, color=color) for line in lines) for lines in parts]
    n_more = len(records) - sum(map(len, groups))
    more = f"and {n_more:,} more" if n_more else ""
    return "\n\n".join(filter(None, [*texts, more, format_counts(count_actions(records))]))


def _change_lines(change: Change) -> Iterator[DiffLine]:
    """Yield the lines of one change: action and memory, reason, then each field that differs, and what is kept."""
    memory = f"memory {change.id}" if change.id else "a new memory"
    yield "head", [DiffSpan(f"{change.action} {memory}{_row_and_name(change)}")]
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


def _row_and_name(change: Change) -> str:
    """Return the row and the name of a change; no row if the id says it: memories of a file may be named "row n"."""
    row = "" if change.row is None or change.id == f"row {change.row}" else f" (row {change.row})"
    return f"{row}: {change.name}" if change.name else row


def _group_lines(group: Sequence[Change], limit: int | None) -> Iterator[DiffLine]:
    """Yield what changes once for all memories, then the memories: all, or the first few if there is a limit."""
    first = mask(group[0])
    yield "head", [DiffSpan(f"{first.action} {len(group):,} memories")]
    if first.reason:
        yield "note", [DiffSpan(f"# {first.reason}")]
    for name, old, new in _replaced_values(first):
        yield "hunk", [DiffSpan(f"@@ {name} @@")]
        yield from _replaced_lines([spans_of(old, new)])
    listed = group if limit is None else group[:MAX_LISTED]
    yield "hunk", [DiffSpan("@@ memories @@")]
    for change in map(mask, listed):
        yield " ", [DiffSpan(f"memory {change.id}{_row_and_name(change)}")]
    if len(listed) < len(group):
        yield " ", [DiffSpan(f"and {len(group) - len(listed):,} more")]


def _field_lines(before: Value, after: Value) -> Iterator[DiffLine]:
    """Yield the lines of a field: names and numbers on one line each, texts as a diff of their lines."""
    if not (isinstance(before, str) or isinstance(after, str)):
        yield from _replaced_lines([spans_of(before, after)])
        return
    old, new = _lines_of(before), _lines_of(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(N_CONTEXT_LINES):
        for kind, begin, end, new_begin, new_end in group:
            removed, added = old[begin:end], new[new_begin:new_end]
            if kind == "equal":
                yield from ((" ", shorten([DiffSpan(text)])) for text in removed)
            elif len(removed) == len(added):  # as many lines as before: each is compared with its successor
                yield from _replaced_lines([spans_of(*pair) for pair in zip(removed, added, strict=True)])
            else:
                yield from _replaced_lines([([DiffSpan(text)], []) for text in removed])
                yield from _replaced_lines([([], [DiffSpan(text)]) for text in added])


def _lines_of(value: Value) -> list[str]:
    return [] if value is None else format_value(value).split("\n")


def _replaced_lines(pairs: Sequence[Sides]) -> Iterator[DiffLine]:
    """Yield all removed lines, then all added ones, as git does."""
    yield from (("-", shorten(old)) for old, _ in pairs if old)
    yield from (("+", shorten(new)) for _, new in pairs if new)


def _render_line(kind: str, spans: Sequence[DiffSpan], *, color: bool) -> str:
    # inverse video shows the words that differ: in a line that differs throughout it would show nothing
    has_marks = color and not all(span.is_changed for span in spans)
    text = ""
    for span in spans:
        shown = on_one_line(span.text)
        text += f"\x1b[7m{shown}\x1b[27m" if has_marks and span.is_changed else shown
    line = f"{kind}{text}" if kind in {"-", "+", " "} else text
    return f"\x1b[{_COLORS[kind]}m{line}\x1b[0m" if color and _COLORS[kind] else line


def on_one_line(text: str) -> str:
    r"""Escape text with line ends, such as an odd tag, so that it cannot imitate a line of the diff."""
    return escape_invisible(text).replace("\n", r"\n")


# -- HTML


def render_plan_html(records: Sequence[Change], notes: Iterable[str], made: str) -> str:
    """Render changes for a notebook; beyond `MAX_SHOWN` they are counted."""
    groups = sorted(group_equal(records), key=_conflicts_first)[:MAX_SHOWN]
    rows = [row for group in groups for row in _table_rows([mask(change) for change in group])]
    return notebook_html(
        tag("b", format_counts(count_actions(records))),
        *(tag("div", note, class_="note") for note in notes),
        tag("div", made, class_="quiet"),
        wide_table(
            {"action": "7.5em", "row": "11em", "field": "8em", "before": "auto", "after": "auto"}, rows
        ),
        count_more(len(records) - sum(map(len, groups)), "plan.changes"),
    )


def wide_table(widths: Mapping[str, str], rows: Sequence[Markup]) -> Markup | None:
    """Build a table of columns with given widths, in a scrolling box of its own; None if there are no rows."""
    heads = (tag("th", name, style=f"width: {width}") for name, width in widths.items())
    return tag("div", table(heads, rows, class_="diff"), class_="wide") if rows else None


def count_more(n_more: int, where: str) -> Markup | None:
    """Build the line that counts what is not shown and says where it is; None if everything is shown."""
    return tag("div", f"and {n_more:,} more; {where} has all of them", class_="quiet") if n_more > 0 else None


def _table_rows(group: Sequence[Change]) -> Iterator[Markup]:
    """Render equal changes: a row for the reason, if there is one, and for each field and text that is kept.

    Action and memories are in cells that span all of these rows.
    """
    change = group[0]
    rows = [tag("td", change.reason, colspan=3, class_="quiet")] if change.reason else []
    for name, before, after in _shown_values(group):
        rows.append(_field_cells(change, name, before, after))
    for memory_id, text in change.keeps.items():
        kept = tag("td", text, tag("div", f"memory {memory_id}", class_="quiet"), class_="text")
        rows.append(tag("td", "kept", class_="quiet") + tag("td") + kept)
    if not rows:
        rows = [tag("td", colspan=3)]
    kind = "go" if change.action in WRITES else "stop"
    action = tag("td", tag("span", change.action, class_=kind), rowspan=len(rows))
    memories = tag("td", *_name_memories(group), rowspan=len(rows))
    yield tag("tr", action + memories + rows[0], class_="first")
    yield from (tag("tr", cells) for cells in rows[1:])


def _shown_values(group: Sequence[Change]) -> list[tuple[str, Value, Value]]:
    """List the fields that are shown of equal changes, with the values before and after."""
    change = group[0]
    if len(group) > 1:
        return _replaced_values(change)
    shown = change.before.keys() | change.after.keys()
    if change.action == "delete":  # only what people recognise a memory by
        shown = {name for name in ("title", "content") if change.before.get(name)}
    return [(name, change.before.get(name), change.after.get(name)) for name in FIELDS if name in shown]


def _field_cells(change: Change, name: str, before: Value, after: Value) -> Markup:
    """Render the cells of a field: its name, and both values with the words that differ marked."""
    if change.action in ("patch", "conflict"):
        old, new = spans_of(before, after)
    else:  # the memory comes or goes as a whole
        old, new = [DiffSpan(format_value(before))], [DiffSpan(format_value(after))]
    return tag("td", name, class_="quiet") + _value_cell(old, "del") + _value_cell(new, "ins")


def _value_cell(spans: Sequence[DiffSpan], mark: str) -> Markup:
    return tag("td", *(tag(mark, text) if is_changed else text for text, is_changed in spans), class_="text")


def _name_memories(group: Sequence[Change]) -> list[object]:
    """Name the memory of a change, or count those of several and name the first few."""
    if len(group) == 1:
        return list(_name_memory(group[0]))
    named: list[object] = [tag("b", f"{len(group):,} memories")]
    named += [tag("div", *_name_memory(change)) for change in group[:MAX_LISTED]]
    if len(group) > MAX_LISTED:
        named.append(tag("div", f"and {len(group) - MAX_LISTED:,} more", class_="quiet"))
    return named


def _name_memory(change: Change) -> Iterator[object]:
    """Yield row, id and name of the memory of a change."""
    memory_id = change.id or ""
    short = memory_id if len(memory_id) <= 12 else f"{memory_id[:8]}…"
    yield change.row
    yield tag("span", f" {short}", class_="quiet", title=memory_id) if change.id else None
    yield tag("div", change.name) if change.name else None
