"""Unified patches of edited files, in the format of `git apply` and `patch`, with secrets masked."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from memframe.readers.edits import EditedDocument, Splice, apply_edits
from memframe.secret import MASK

CONTEXT = 3
"""Unchanged lines around a change."""


class _Hunk(NamedTuple):
    """Consecutive lines that change."""

    first: int
    """Number of the first changed line of the old text, from 0."""
    end: int
    """Number behind the last one."""
    new: list[str]
    """Lines of the new text."""


def patch_of(each: EditedDocument) -> str:
    """Return the change of one document as a unified patch."""
    name = each.document.name
    old = [*_split(each.original.text)]
    head = f"--- a/{name}\n+++ {'/dev/null' if each.is_removed else f'b/{name}'}\n"
    return head + "".join(_iter_hunks(old, [*_regions(each.original.text, each.edits)]))


def _split(text: str) -> Iterator[str]:
    """Split a text into lines with their line feeds; a patch knows no other line end."""
    yield from re.findall(r"[^\n]*\n|[^\n]+\Z", text)


def _regions(text: str, edits: Sequence[Splice]) -> Iterator[_Hunk]:
    """Yield the changed lines with their new text; several edits of one line are one change."""
    counted_to, n_lines = 0, 0  # the lines before this place are counted
    group: list[Splice] = []
    begin = end = 0
    for edit in [*edits, None]:
        if group and (edit is None or edit.start >= end):
            first = n_lines + text.count("\n", counted_to, begin)
            last = first + len([*_split(text[begin:end])])
            moved = [Splice(one.start - begin, one.end - begin, one.text) for one in group]
            yield _Hunk(first, last, [*_split(apply_edits(text[begin:end], moved))])
            n_lines, counted_to, group = first + text.count("\n", begin, end), end, []
        if edit is not None:
            begin = begin if group else text.rfind("\n", 0, edit.start) + 1
            group.append(edit)
            is_whole = (
                edit.end > begin and text[edit.end - 1] == "\n" and edit.start == begin and not edit.text
            )
            end = max(end, edit.end if is_whole else (text.find("\n", edit.end) + 1 or len(text)))


def _iter_hunks(old: Sequence[str], regions: Sequence[_Hunk]) -> Iterator[str]:
    shift = 0
    place = 0
    while place < len(regions):
        last = place
        while last + 1 < len(regions) and regions[last + 1].first - regions[last].end <= 2 * CONTEXT:
            last += 1
        chosen = regions[place : last + 1]
        first = max(0, chosen[0].first - CONTEXT)
        end = min(len(old), chosen[-1].end + CONTEXT)
        lines, n_written = list[str](), first
        for each in chosen:
            lines += [_line(" ", text) for text in old[n_written : each.first]]
            lines += [_line("-", text) for text in old[each.first : each.end]]
            lines += [_line("+", text) for text in each.new]
            n_written = each.end
        lines += [_line(" ", text) for text in old[n_written:end]]
        n_old = end - first
        n_new = n_old + sum(len(each.new) - (each.end - each.first) for each in chosen)
        # lines are counted from 1, and an empty range has the number of the line before it
        starts = [start + (n > 0) for start, n in ((first, n_old), (first + shift, n_new))]
        yield f"@@ -{starts[0]},{n_old} +{starts[1]},{n_new} @@\n{''.join(lines)}"
        shift += n_new - n_old
        place = last + 1


def _line(sign: str, text: str) -> str:
    return f"{sign}{text}" if text.endswith("\n") else f"{sign}{text}\n\\ No newline at end of file\n"


def mask_texts(patch: str, hidden: Iterable[str]) -> str:
    r"""Mask secrets in a patch, also those in JSON strings.

    >>> mask_texts('-pin 4711\n-"say \\"x1y2\\""\n', ["4711", 'say "x1y2"'])
    '-pin ••••••\n-"••••••"\n'
    """
    parts = {part.strip() for text in hidden for part in text.split("\n")}
    masked, n_read = [], 0
    for start, text in make_search(spelled for part in parts for spelled in ways_to_write(part))(patch):
        if start >= n_read:
            masked += [patch[n_read:start], MASK]
            n_read = start + len(text)
    return "".join([*masked, patch[n_read:]])


def make_search(sought: Iterable[str]) -> Callable[[str], Iterator[tuple[int, str]]]:
    """Return a function that finds some texts in another one: each with its place, at one place the longest first.

    The texts are looked up by their beginning, because a plan may hide thousands.

    >>> list(make_search(["4711", "47110", "x1"])("pin 47110"))
    [(4, '47110'), (4, '4711')]
    """
    longest_first = sorted({*sought} - {""}, key=len, reverse=True)
    n = min(map(len, longest_first), default=0)
    beginning: defaultdict[str, list[str]] = defaultdict(list)
    for text in longest_first:
        beginning[text[:n]].append(text)

    def search(within: str) -> Iterator[tuple[int, str]]:
        for start in range(len(within) - n + 1) if n else ():
            for text in beginning.get(within[start : start + n], ()):
                if within.startswith(text, start):
                    yield start, text

    return search


def ways_to_write(text: str) -> set[str]:
    """Return the spellings of a text in a file: unchanged, and as a JSON string; nothing for an empty text."""
    written = {text, *(json.dumps(text, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False))}
    return written - {""}
