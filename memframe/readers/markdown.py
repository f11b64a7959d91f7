"""Read files with freely chosen names: Markdown with frontmatter, and tables with a column of texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, cast

from memframe.archive.notes import parse_frontmatter, split_frontmatter
from memframe.errors import FrameError
from memframe.fields import MEMORY_FIELDS
from memframe.frames import MEMORY_KINDS, read_moment
from memframe.readers.entries import Entry, locate_part, note_entries
from memframe.readers.places import Key, Lines, Located, Original, locate_lines
from memframe.readers.rows import TIME_NAMES, Item, Items, as_text, is_filled, read_time
from memframe.readers.source import TEXT_KEYS, Damage, Document

_NAMES = {
    "content": (*TEXT_KEYS, "memory_text", "entry", "note", "summary"),
    "title": ("title", "name"),
    "summary": ("summary", "description"),
    "tags": ("tags", "categories", "labels"),
    "source": ("source", "app", "platform", "role"),
    **TIME_NAMES,
    "origin_id": ("origin_id", "id", "uuid"),
    "entity": ("entity",),
}
"""Columns of memories, and names that people give them."""

_NAMES |= {
    field.name: (field.name,)
    for field in MEMORY_FIELDS
    if field.is_editable and field.kind == "text" and field.name not in _NAMES
}

_TAKEN = {*MEMORY_KINDS, *_NAMES}

LIST_KEYS = ("memories", "items", "results", "records", "data", "entries")

_SUBJECTS = (
    *LIST_KEYS,
    "facts",
    "preferences",
    "goals",
    "notes",
    "observations",
    "learnings",
    "insights",
    "interests",
)
"""Keys of lists whose texts are memories; other lists of texts, such as those of names or files, are not."""

_BLOCK = re.compile(r"^---[ \t]*\r?\n((?:[A-Za-z_]\w*:.*\n)+)---[ \t]*\r?$", re.MULTILINE)
_OBSERVATION = re.compile(r"\s*[-*]\s+\[([^\]\[()]{2,60})\]\s+(\S.*)")
_LINK = re.compile(r"\[[^\]\n]*\]\([^)\n]+\.md\)")
_CONTEXT = re.compile(r"\s\(([^()]*)\)\Z")
"""``- [category] content #tag (context)``; one letter or none in the brackets is a check box."""

_RELATION = re.compile(r"\s*[-*]\s+[^\s\[\]][^\[\]]*\[\[[^\]]+\]\].*")
_HASHTAG = re.compile(r"(?<!\S)#([\w/-]+)")


def name_columns(item: Mapping[str, Any], found: Item | None = None) -> Item:
    """Rename the keys of an entry to columns of memories, as far as they are known and not ``found`` yet.

    Scores, whose scale is unknown, times that cannot be read, and all other keys become extra columns. Of several
    times, one in ISO 8601 takes precedence over a number.

    >>> name_columns({"Text": "Likes tea", "importance": 7, "date": "May"})
    {'content': 'Likes tea', 'origin_importance': 7, 'date': 'May'}
    """
    rest = {str(key): value for key, value in item.items() if key and is_filled(value)}
    result: Item = {**(found or {})}
    for column, names in _NAMES.items():
        if is_filled(result.get(column)) or (found is not None and column == "content"):
            continue
        keys = [key for name in names for key in rest if key.casefold() == name]
        fits = (read_time, lambda value: read_moment(value)[0]) if column in TIME_NAMES else (is_filled,)
        key = next((key for fit in fits for key in keys if fit(rest[key])), None)
        if key is not None:
            result[column] = rest.pop(key)
    for key, value in rest.items():
        name = f"origin_{key}" if key in _TAKEN else key
        while name in result:
            name = f"origin_{name}"
        result[name] = value
    return result


def is_table(document: Document) -> bool:
    """Recognise a list of texts, or of objects of which one has a text under a usual name."""
    value = document.value
    if document.form == "table":
        return True
    if document.form not in ("json", "lines") or not isinstance(value, dict | list):
        return False
    if isinstance(value, dict) and (lists := _lists_of(value)):
        value = [entry for entries in lists.values() for entry in entries]
    if isinstance(value, list):
        return not value or any(isinstance(entry, str) or has_text(entry) for entry in value)
    return has_text(value, TEXT_KEYS)  # many objects that are no memories have a note or a summary


def has_text(entry: object, names: Sequence[str] = _NAMES["content"]) -> bool:
    """Return True for an object with a text under one of the names."""
    return isinstance(entry, dict) and any(
        isinstance(value, str) and str(key).casefold() in names for key, value in entry.items()
    )


def _lists_of(value: Item) -> dict[str, list[Any]]:
    """Return the lists of an object whose entries are memories: under a usual name, or with texts."""
    lists = {key: entries for key, entries in value.items() if isinstance(entries, list)}
    usual = next((key for key in LIST_KEYS if key in lists), None)
    found = {
        key: entries
        for key, entries in lists.items()
        if key == usual
        or (any(has_text(entry, TEXT_KEYS) for entry in entries) and not are_messages(entries))
        or (key.casefold() in _SUBJECTS and any(isinstance(entry, str) for entry in entries))
    }
    filled = {key: entries for key, entries in found.items() if entries}
    return filled or found


_SPEAKERS = {
    "role": "user assistant system human ai bot model tool developer function chatbot agent gpt",
    "sender": "user assistant human ai bot model",
    "author": "user assistant human ai bot model",
    "speaker": "user assistant human ai bot model",
    "from": "user assistant human gpt ai bot system",
}
_MACHINES = {"assistant", "ai", "bot", "model", "chatbot", "agent", "gpt", "system"}


def are_messages(entries: object) -> bool:
    """Recognise a conversation: most entries name who speaks, and one of the speakers is a machine."""
    objects = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    for key, names in _SPEAKERS.items():
        speakers = [str(entry.get(key)).casefold() for entry in objects]
        n_known = sum(speaker in names.split() for speaker in speakers)
        if n_known and 2 * n_known > len(objects) and _MACHINES & {*speakers}:
            return True
    return False


def is_conversation(document: Document) -> bool:
    """Recognise a file of messages, or of lists of them."""
    value = document.value
    if document.form in ("text", "markdown"):
        return False
    if isinstance(value, dict):
        return _is_thread(value)
    return are_messages(value) or _are_threads(value)


def _are_threads(entries: Any) -> bool:
    return bool(entries) and all(isinstance(each, dict) and _is_thread(each) for each in entries)


def _is_thread(value: Item) -> bool:
    """Return True for an object with lists of messages, but without lists of memories or a text of its own."""
    lists = [entries for entries in value.values() if isinstance(entries, list) and entries]
    is_of_messages = any(are_messages(entries) or _are_threads(entries) for entries in lists)
    return is_of_messages and not has_text(value, TEXT_KEYS) and not _lists_of(value)


def table_items(documents: list[Document]) -> Items:
    """Yield rows with their columns renamed; if an object has several lists, ``kind`` is the key of the list."""
    for document in documents:
        value = document.value
        lists = _lists_of(value) if isinstance(value, dict) else {}
        for key, entries in lists.items():
            kind = {"kind": key} if len(lists) > 1 else {}
            for number, entry in enumerate(entries, 1):
                yield f"entry {number} of {key} of {document.name}", _row_of(entry, kind)
        for key in value if lists else ():
            if key not in lists and isinstance(value[key], dict | list) and value[key]:
                reason = "message of a conversation" if are_messages(value[key]) else "not a list of memories"
                for _ in value[key] if isinstance(value[key], list) else [None]:
                    yield f"{key} of {document.name}", Damage(reason, is_entry=False)
        if not lists:
            yield from ((place, _row_of(entry, {})) for place, entry in document.items())


def _row_of(entry: Any, more: Item) -> Item | Damage:
    if isinstance(entry, str):
        return more | {"content": entry}
    if isinstance(entry, dict):
        return more | name_columns(entry)
    return entry if isinstance(entry, Damage) else Damage("not an object")


def is_mem0_markdown(document: Document) -> bool:
    """Recognise the Markdown of mem0's plugin by blocks of ``id`` and ``created_at`` between lines of ``---``."""
    blocks = _BLOCK.findall(document.value) if document.form in ("markdown", "text") else []
    return (
        bool(blocks)
        and all("id:" in block and "created_at:" in block for block in blocks)
        and (len(blocks) > 1 or "categories:" in blocks[0])
    )


def mem0_markdown_items(documents: list[Document]) -> Items:
    """Yield each block with the text after it."""
    for document in documents:
        original = document.original or Original(document.value)
        blocks = [*_BLOCK.finditer(original.text)]
        ends = [*(block.start() for block in blocks[1:]), len(original.text)]
        for number, (block, end) in enumerate(zip(blocks, ends, strict=False), 1):
            place = f"block {number} of {document.name}"
            content = locate_part(original, (block.end(), end), (block.start(), end))
            yield place, {**name_columns(parse_frontmatter(block[1], place)), "content": content}


def is_markdown(document: Document) -> bool:
    """Recognise Markdown."""
    return document.form == "markdown"


def markdown_items(documents: list[Document]) -> Items:
    """Yield notes, and the memories inside them.

    In a note without frontmatter that has bullets or dated lines, these and the paragraphs between them are memories;
    in other notes the observations are. Relations, and links to other notes, are left out.
    """
    for document in documents:
        if len(documents) > 1 and _is_index(document):
            yield document.name, Damage("index or log of a folder", is_entry=False)
            continue
        head, body = split_frontmatter(document.value)
        start, original = len(document.value) - len(body), document.original or Original(document.value)
        path = PurePosixPath(document.name)
        note: Item = {"title": path.stem} if path.suffix else {}
        note |= {"origin_id": document.name} if len(documents) > 1 else {}
        entries = note_entries(original, is_list=document.is_list) if not start else []
        if entries or (document.is_list and not start):
            yield from _entry_items(document.name, note, entries, is_alone=len(documents) == 1)
            continue
        try:
            cells = parse_frontmatter(head, document.name)
            note |= name_columns(
                {
                    key: Located(cell, Key(original, key)) if isinstance(cell, str) else cell
                    for key, cell in cells.items()
                }
            )
        except FrameError:
            if len(documents) == 1:
                raise
            yield document.name, Damage("note with damaged frontmatter")
        else:
            yield from _note_items(document.name, note, original, start)


def _entry_items(name: str, note: Item, entries: list[Entry], *, is_alone: bool) -> Items:
    is_graph = any(_OBSERVED.match(entry.content) for entry in entries if not entry.is_paragraph)
    for entry in entries:
        place, text = f"line {entry.number} of {name}", entry.content
        if not entry.is_paragraph and is_graph and _RELATION.fullmatch(f"- {text}"):
            yield place, Damage("relation", is_entry=False)
        elif not entry.is_paragraph and not is_alone and _LINK.match(text):
            yield place, Damage("link to a note", is_entry=False)
        else:
            date = entry.date or (note.get("title") if read_time(note.get("title")) else None)
            item = note | ({"title": entry.title} if entry.title else {}) | {"created_at": date}
            found = None if entry.is_paragraph else _OBSERVED.match(text)
            yield place, item | (_observe(found, text, item) if found else {"content": text})


_OBSERVED = re.compile(r"\[([^\]\[()]{2,60})\]\s+(\S.*)")


def _observe(found: re.Match[str], text: Located, note: Item) -> Item:
    """Return the cells of an observation; its category and hashtags are tags, in addition to those of the note."""
    at, first = cast("Lines", text.at), found[2].rstrip()
    context = _CONTEXT.search(first) if "\n" not in text else None
    of_note = note.get("tags")
    of_note = of_note if isinstance(of_note, list) else (as_text(of_note) or "").split(",")
    tags = [found[1], *_HASHTAG.findall(text[found.start(2) :]), *of_note]
    (start, _), *others = at.spans
    start += found.start(2)
    first = first[: context.start()] if context else first
    content = locate_lines(at.original, [(start, start + len(first)), *others], at.whole, at.indent)
    return {"content": content, "tags": tags} | ({"context": context[1]} if context else {})


def _is_index(document: Document) -> bool:
    """Recognise the index or log of a folder; a ``MEMORY.md``, which may hold memories, only if it has just links."""
    name = PurePosixPath(document.name).name
    return name in ("index.md", "log.md") or (
        name == "MEMORY.md" and _LINKS.fullmatch(document.value) is not None
    )


_LINKS = re.compile(r"(?:[ \t\r]*(?:#[^\n]*|[-*][ \t]+\[[^\]\n]*\]\([^)\n]+\.md\)[^\n]*)?(?:\n|\Z))+")
"""Headings, blank lines, and bullets that begin with a link to a note."""


def _note_items(name: str, note: Item, original: Original, start: int) -> Items:
    """Yield the observations of a note, and its other lines as one memory."""
    lines, number = [], original.text.count("\n", 0, start)
    for line in original.text[start:].split("\n"):
        number += 1
        lines.append((number, start, line.removesuffix("\r")))
        start += len(line) + 1
    found = {number: _OBSERVATION.fullmatch(line) for number, _, line in lines}
    is_graph = any(found.values()) or "permalink" in note
    rest: list[tuple[int, str]] = []
    for number, start, line in lines:
        place = f"line {number} of {name}"
        if observation := found[number]:
            first = observation.start(1) - 1
            whole = start, min(original.text.find("\n", start) + 1 or len(original.text), len(original.text))
            text = locate_lines(original, [(start + first, start + len(line.rstrip()))], whole)
            observed = _OBSERVED.match(text)
            yield place, note | {"entity": note.get("title")} | _observe(observed, text, note)  # type: ignore[arg-type]  # it is one
        elif is_graph and _RELATION.fullmatch(line):
            yield place, Damage("relation", is_entry=False)
        else:
            rest.append((start, line))
    is_filled_out = any(line.strip() and not line.lstrip().startswith("#") for _, line in rest)
    if not is_filled_out and len(rest) == len(lines):
        yield name, Damage("note without a text", is_entry=False)
    if is_filled_out:
        while rest and not rest[0][1].strip("\r"):
            del rest[0]
        while rest and not rest[-1][1].strip("\r"):
            del rest[-1]
        everything = (0, len(original.text)) if len(found) == len(lines) and not any(found.values()) else None
        spans = [(start, start + len(line)) for start, line in rest]
        yield name, note | {"content": locate_lines(original, spans, everything)}


_DOWNLOAD = re.compile(r"# Memories of .*\n\nExported \S+\n")
_DOWNLOADED = re.compile(
    r"\n## \d+\. (.*)\n\n((?:- [A-Z][a-z]+: .*\n)*)\n(?:(~{3,})\n|(The content cannot be opened\.)\n)"
)
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]<>()#+!|~&$-])")
_COLUMN_OF = {"created": "created_at", "changed": "updated_at"}


def is_download(document: Document) -> bool:
    """Recognise the Markdown that a person downloads from a service of memframe by its first lines."""
    return document.form in ("text", "markdown") and _DOWNLOAD.match(document.value) is not None


def download_items(documents: list[Document]) -> Items:
    """Yield the memories of a download; in Markdown a section each, with its text between lines of tildes."""
    for document in documents:
        text = document.value
        if isinstance(text, dict):
            yield from document.items("memories")
            continue
        head = _DOWNLOAD.match(text)
        at = head.end() if head else 0
        while text[at:].strip():
            found = _DOWNLOADED.match(text, at)
            end = found.end() if found else -1
            content = None
            if found and found[3]:
                end = text.find(f"\n{found[3]}\n", found.end())
                content = text[found.end() : end]
            line = text.count("\n", 0, at + 1) + 1
            if found is None or end < 0:
                raise FrameError(
                    f"line {line} of {document.name} is not as a service wrote it: download it again."
                )
            at = end + len(f"\n{found[3]}\n" if found[3] else "")
            pairs = (row[2:].split(": ", 1) for row in found[2].splitlines())
            cells = {name.lower(): _ESCAPED.sub(r"\1", value) for name, value in pairs}
            item: Item = {_COLUMN_OF.get(name, name): value for name, value in cells.items()}
            item |= {name: float(item[name]) for name in ("importance", "confidence") if name in item}
            title = None if found[1] == "Without a title" else _ESCAPED.sub(r"\1", found[1])
            item = {"updated_at": item.get("created_at"), **item, "title": title, "content": content}
            yield (
                f"line {line} of {document.name}",
                item if content is not None else Damage("content not opened"),
            )
