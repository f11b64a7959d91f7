"""Read memories from the lines of a text: pasted lists, bullets and paragraphs of notes, and sections."""

from __future__ import annotations

import os.path
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from memframe.readers.places import Located, Original, Span, locate_lines
from memframe.readers.rows import Item, Items, read_time
from memframe.readers.source import Damage, Document

_LINE = re.compile(
    r"\s*(?:[-*•]\s+|\d{1,6}[.)]\s+)?(?:\*\*)?(?:\[([^\]\[]{0,60})\]|(?=\d{4}-\d\d-\d\d)([\dT:+.Z-]{10,35}))"
    r"(?:\*\*)?(?:\s*[-–—:.]|\s+[-–—])\s*(?:\*\*\s*)?(\S.*)"
)
"""``[date] - text``, also with a bullet or number before it, a colon or full stop after the date, or in bold; a numeric
date needs no brackets."""

_USER = re.compile(
    r"\s*(?:the |der |die |el |la |l['’]|o |a )?(?:user|nutzer|benutzer|usuari[oa]|usuári[oa]|utilisat(?:eur|rice)|"
    r"utente|пользователь|用户|使用者|ユーザー)|"
    r"\s*(?:Also |Currently |Often |Usually )?(?:Is|Are|Was|Has|Owns|Likes|Loves|Enjoys|Prefers|Wants|Needs|Uses|Works|"
    r"Worked|Lives|Lived|Plans|Speaks|Studies|Studied|Learns|Knows|Asked|Aims|Hopes|Dislikes|Avoids|Hates|Runs|Writes|"
    r"Reads|Plays|Thinks|Believes|Values|Intends|Seeks|Drives|Tends) ",
    re.IGNORECASE,
)
"""Beginning of the lines of ChatGPT's page of memories, which has neither dates nor bullets."""

_NAMED = re.compile(r"\s*([^\W\d_a-z][\w.-]*)(?:['’]s? | (?:also |currently |often |usually )?[a-z]+s )")
"""A line about somebody whose name is known: a verb in the third person follows."""

_PRONOUNS = "A An He Her His It Its She That The There These They This Those What"

_BULLET = re.compile(r"\s*(?:[-*•]|\d{1,6}[.)])\s+(?!\[)(\S.*)")
_HEADING = re.compile(r"\s*(?:#{1,6}\s+(\S.*)|\*\*([^*]{1,100})\*\*:?\s*)")
_FENCE = re.compile(r"\s*(?:```|~~~)\w*\s*|\s*#{1,6}\s*")


def is_pasted(document: Document) -> bool:
    """Recognise a list by its lines: at least half, not counting headings, are entries; in Markdown, dated ones."""
    is_markdown = document.form == "markdown"
    if document.form != "text" and (not is_markdown or document.value.lstrip().startswith("---")):
        return False
    lines = [line for line in document.value.split("\n") if line.strip() and not _is_frame(line)]
    dated = sum(_LINE.match(line) is not None for line in lines)
    bullets = sum(_BULLET.match(line) is not None for line in lines)
    if not dated + bullets:
        return _are_about_one(lines, share=1 if is_markdown else 2 / 3)
    return 2 * (dated + (0 if is_markdown else bullets)) >= len(lines)


def _are_about_one(lines: list[str], share: float) -> bool:
    """Return True if a share of lines, and at least two, are about the user, or about one person by name."""
    names = Counter(found[1] for line in lines if (found := _NAMED.match(line)))
    n_named = max((n for name, n in names.items() if name not in _PRONOUNS.split()), default=0)
    n_about = max(sum(_USER.match(line) is not None for line in lines), n_named if share < 1 else 0)
    return n_about > 1 and n_about >= share * len(lines)


def pasted_items(documents: list[Document]) -> Items:
    """Yield the entries of lists: an indented line continues the one before it, a heading is the title.

    Without dates and bullets, each line is an entry.
    """
    for document in documents:
        lines = document.value.split("\n")
        is_marked = any(_LINE.match(line) or _BULLET.match(line) for line in lines)
        original = document.original or Original(document.value)
        yield from list_items(document.name, original, is_plain=not is_marked)


def list_items(name: str, original: Original, *, goes_on: bool = False, is_plain: bool = False) -> Items:
    """Yield the entries of one list; with ``goes_on``, lines that are not indented continue an entry, too."""
    heading: str | None = None
    number = indent = 0
    entry: Item | None = None
    parts: list[Span] = []
    lines: list[_TextLine] = []

    def close() -> Items:
        if entry is not None:
            content = locate_lines(original, parts, (lines[0].start, lines[-1].next), " " * (indent + 2))
            yield f"line {number} of {name}", entry | {"content": content}

    for line in _iter_lines(original.text):
        text = line.text
        if _is_frame(text) or not text.strip():
            found = _HEADING.fullmatch(text)
            heading = line.locate(original, *found.span(found.lastindex or 0)) if found else heading
            continue
        dated, bullet = _LINE.match(text), _BULLET.match(text)
        is_part = line.depth > indent if bullet else goes_on or line.depth > 0
        if entry is not None and not dated and is_part:
            parts.append(line.span(line.depth))
            lines.append(line)
            continue
        yield from close()
        entry, number, indent, lines = None, line.number, line.depth, [line]
        if dated:
            date = (dated[1] or dated[2] or "").strip()
            entry, parts = {"title": heading}, [line.span(dated.start(3))]
            entry["created_at" if read_time(date) else "date_saved"] = date
        elif bullet or is_plain:
            entry, parts = {"title": heading}, [line.span(bullet.start(1) if bullet else line.depth)]
        else:
            yield f"line {number} of {name}", Damage("line without an entry")
    yield from close()


def _is_frame(line: str) -> bool:
    return bool(_HEADING.fullmatch(line) or _FENCE.fullmatch(line))


class _TextLine(NamedTuple):
    number: int
    start: int
    next: int
    """Start of the next line."""
    text: str

    @property
    def depth(self) -> int:
        """Number of blanks before the text."""
        return len(self.text) - len(self.text.lstrip())

    def locate(self, original: Original, start: int, end: int) -> Located:
        """Return a part of the line that is not a memory but belongs to some, such as a heading."""
        return locate_part(original, (self.start + start, self.start + end), None)

    def span(self, first: int) -> Span:
        """Return the span of the text from its character ``first`` on, without blanks at the end."""
        end = len(self.text.rstrip())
        return self.start + min(first, end), self.start + end


def _iter_lines(text: str, start: int = 0) -> Iterator[_TextLine]:
    first = text.count("\n", 0, start)
    for number, line in enumerate(text[start:].split("\n"), first + 1):
        after = min(start + len(line) + 1, len(text))
        yield _TextLine(number, start, after, line.removesuffix("\r"))
        start = after


# -- notes: each bullet with what is indented below it, each dated line, and each paragraph beside them

_TOP_BULLET = re.compile(r"(\s*(?:[-*+•]|\d{1,6}[.)])[ \t]+)(\S.*)")
_TITLE = re.compile(r" {0,3}#{1,6}(?:\s+(.*?))?(?:\s+#+)?\s*")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}\s*")
_FENCED = re.compile(r"\s*(`{3,}|~{3,})")
_FENCE_END = re.compile(r"\s*(?:`{3,}|~{3,})\s*")
_LEAD = re.compile(r"\**([^\s*][^\n]{0,98}?)\**:\**")
"""A line of its own before bullets, such as ``Rules:``, which says what they are about."""


class Entry(NamedTuple):
    """One entry of a note: a bullet, a dated line, or a paragraph."""

    number: int
    """Number of its first line, from 1."""
    content: Located
    title: str | None
    """The heading above it, or the line that leads to its list."""
    date: str | None
    """Date of its line, or of the heading."""
    is_paragraph: bool


def note_entries(original: Original, *, is_list: bool = False) -> list[Entry]:
    r"""Return the entries of a note; a note without a bullet or dated line has none, unless it is known as a list.

    >>> note = Original("# Food\n- Likes tea\n  - green\n\nKeeps it\nin a tin.\n")
    >>> [(entry.number, entry.title, entry.content) for entry in note_entries(note)]
    [(2, 'Food', 'Likes tea\n- green'), (5, 'Food', 'Keeps it\nin a tin.')]
    """
    blocks = [*_iter_blocks(original)]
    if not is_list and all(isinstance(block, str) or block.mark is None for block in blocks):
        return []
    entries: list[Entry] = []
    heading: str | None = None
    lead: str | None = None
    for block, after in zip(blocks, [*blocks[1:], ""], strict=True):
        if isinstance(block, str):
            heading, lead = block or None, None
            continue
        is_paragraph = block.mark is None
        if is_paragraph:
            leads = len(block.lines) == 1 and isinstance(after, _Block) and after.mark is not None
            found = _LEAD.fullmatch(block.lines[0].text.rstrip(), block.lines[0].depth) if leads else None
            lead = block.lines[0].locate(original, *found.span(1)) if found else None
            if found:
                continue
        date = heading if heading and len(heading) <= len("2024-05-01") and read_time(heading) else None
        content = locate_lines(
            original, block.spans(), (block.lines[0].start, block.lines[-1].next), block.indent
        )
        entries.append(
            Entry(block.lines[0].number, content, lead or heading, block.date or date, is_paragraph)
        )
    return entries


_common = os.path.commonprefix


class _Block:
    """Lines that belong together; ``mark`` is the length of the bullet or date before the text, None in a paragraph."""

    def __init__(self, line: _TextLine, mark: int | None, date: str | None) -> None:
        self.lines, self.mark, self.date = [line], mark, date

    @property
    def indent(self) -> str:
        """The blanks before further lines."""
        if self.mark is None:
            return ""
        deeper = [line.text[: line.depth] for line in self.lines[1:] if line.depth and line.text.strip()]
        return _common(deeper) if deeper else " " * (self.lines[0].depth + 2)

    def spans(self) -> Iterable[Span]:
        """Return the span of each line, without the indentation that all further lines share."""
        (first, *others), indent = self.lines, self.indent
        yield first.span(first.depth if self.mark is None else self.mark)
        for line in others:
            yield line.span(len(_common([indent, line.text])))

    def takes(self, line: _TextLine, *, is_bullet: bool, is_loose: bool) -> bool:
        """Return True if a line continues this block; ``is_loose`` is True if blank lines come before it."""
        if self.mark is None:
            return not is_bullet and not is_loose
        return line.depth > self.lines[0].depth or not (is_bullet or is_loose)


def _begin_block(line: _TextLine, dated: re.Match[str] | None, mark: re.Match[str] | None) -> _Block:
    """Begin a block with a dated line, a bullet, or the first line of a paragraph."""
    if dated:
        return _Block(line, dated.start(3), _date_of(dated))
    return _Block(line, mark.end(1) if mark else None, None)


def _match_dated(text: str) -> re.Match[str] | None:
    """Match a line that begins with a time."""
    dated = _LINE.match(text)
    return dated if dated and read_time(_date_of(dated)) else None


def _date_of(dated: re.Match[str]) -> str:
    return (dated[1] or dated[2] or "").strip()


def _iter_blocks(original: Original) -> Iterator[_Block | str]:
    """Yield headings as text, and blocks; blank lines within a block belong to it."""
    lines = [*_iter_lines(original.text)]
    ends = {line.text.strip()[:3]: line.number for line in lines if _FENCE_END.fullmatch(line.text)}
    block: _Block | None = None
    fence: str | None = None
    blank: list[_TextLine] = []
    for line in lines:
        text = line.text
        if fence is not None and block is not None:
            block.lines += [*blank, line]
            blank = []
            fence = None if text.strip().startswith(fence) and not text.strip().strip(fence[0]) else fence
            continue
        if not text.strip():
            blank.append(line)
            continue
        title, mark = _TITLE.fullmatch(text), _TOP_BULLET.match(text)
        dated = _match_dated(text)
        is_bullet = bool(mark or dated)
        if title or _RULE.fullmatch(text):
            if block:
                yield block
            block = None
            if title:
                yield line.locate(original, *title.span(1)) if title[1] else ""
        elif block and block.takes(line, is_bullet=is_bullet, is_loose=bool(blank)):
            block.lines += [*blank, line]
        else:
            if block:
                yield block
            block = _begin_block(line, dated, mark)
        blank = []
        opened = _FENCED.match(text if mark is None else mark[2])
        is_closed = opened is not None and line.number < ends.get(opened[1][:3], 0)
        # a fence that is never closed would turn all that follows into code
        fence = opened[1] if opened and block and is_closed else None
    if block:
        yield block


def is_sections(document: Document) -> bool:
    """Recognise texts that are divided by lines with a single paragraph sign."""
    return document.form in ("text", "markdown") and _SECTION.search(document.value) is not None


def section_items(documents: list[Document]) -> Items:
    """Yield the text of each section; a delete removes one of the signs next to it."""
    for document in documents:
        original = document.original or Original(document.value)
        signs = [found.span() for found in _SECTION.finditer(original.text)]
        starts, ends = [0, *(end for _, end in signs)], [*(start for start, _ in signs), len(original.text)]
        spans = [_strip(original.text, *span) for span in zip(starts, ends, strict=True)]
        for number, (start, end) in enumerate(spans, 1):
            if start == end:
                continue
            if number < len(spans):
                whole = (start, spans[number][0])  # with the sign after it
            elif number > 1:
                whole = (spans[number - 2][1], end)  # with the sign before it
            else:
                whole = (start, end)
            yield (
                f"section {number} of {document.name}",
                {"content": locate_part(original, (start, end), whole)},
            )


def locate_part(original: Original, part: Span, whole: Span | None) -> Located:
    """Return the part of a text that is a memory, without the blanks around it."""
    start, end = _strip(original.text, *part)
    spans = []
    for line in original.text[start:end].split("\n"):
        spans.append((start, start + len(line.removesuffix("\r"))))
        start += len(line) + 1
    return locate_lines(original, spans, whole)


def section_files(given: list[Document]) -> list[Document]:
    """Return the documents with sections, and Hermes' other file next to one, which may hold a single section."""
    found = [document for document in given if is_sections(document)]
    folders = {PurePosixPath(document.name).parent for document in found}
    names = {(folder / name).as_posix() for folder in folders for name in ("MEMORY.md", "USER.md")}
    return [each for each in given if is_sections(each) or (each.form == "markdown" and each.name in names)]


def _strip(text: str, start: int, end: int) -> Span:
    """Return a span without the blanks around its text."""
    part = text[start:end]
    first = start + len(part) - len(part.lstrip())
    return first, max(first, start + len(part.rstrip()))


_SECTION = re.compile(r"^[ \t]*§[ \t]*\r?$", re.MULTILINE)
