"""Read what people and tools name freely: Markdown with frontmatter, and tables with a column of texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from memframe.archive.notes import parse_frontmatter, split_frontmatter
from memframe.errors import FrameError
from memframe.fields import MEMORY_FIELDS
from memframe.frames import MEMORY_KINDS
from memframe.readers.rows import Item, Items, is_filled, read_time, text_of
from memframe.readers.source import TEXT_KEYS, Damage, Document

_NAMES = {
    "content": (*TEXT_KEYS, "memory_text", "entry", "note", "summary"),
    "title": ("title", "name"),
    "summary": ("summary", "description"),
    "tags": ("tags", "categories", "labels"),
    "source": ("source", "app", "platform", "role"),
    "created_at": ("created_at", "createdat", "created", "timestamp", "ts", "time", "date"),
    "updated_at": ("updated_at", "updatedat", "updated", "modified"),
    "origin_id": ("origin_id", "id", "uuid"),
}
"""Columns of memories, and names that people give them."""

_NAMES |= {
    field.name: (field.name,)
    for field in MEMORY_FIELDS
    if field.is_editable and field.kind == "text" and field.name not in _NAMES
}

_TAKEN = {*MEMORY_KINDS, *_NAMES}

_LISTS = ("memories", "items", "results", "records", "data", "entries")

_BLOCK = re.compile(r"^---[ \t]*\r?\n((?:[A-Za-z_]\w*:.*\n)+)---[ \t]*\r?$", re.MULTILINE)
_OBSERVATION = re.compile(r"\s*[-*]\s+\[([^\]\[()]{2,60})\]\s+(\S.*)")
_CONTEXT = re.compile(r"\s\(([^()]*)\)\Z")
"""``- [category] content #tag (context)``; one letter or none in the brackets is a check box."""

_RELATION = re.compile(r"\s*[-*]\s+[^\s\[\]][^\[\]]*\[\[[^\]]+\]\].*")
_HASHTAG = re.compile(r"(?<!\S)#([\w/-]+)")


def name_columns(item: Mapping[str, Any]) -> Item:
    """Rename the keys of an entry to columns of memories, as far as they are known.

    Scores, whose scale is unknown, times that are not in ISO 8601, and all other keys become extra columns.

    >>> name_columns({"Text": "Likes tea", "importance": 7, "date": "May"})
    {'content': 'Likes tea', 'origin_importance': '7', 'date': 'May'}
    """
    rest = {str(key): value for key, value in item.items() if key and is_filled(value)}
    found: Item = {}
    for column, names in _NAMES.items():
        keys = [key for name in names for key in rest if key.casefold() == name]
        is_fit = read_time if column.endswith("_at") else is_filled
        key = next((key for key in keys if is_fit(rest[key])), None)
        if key is not None:
            found[column] = rest.pop(key)
    return found | {f"origin_{key}" if key in _TAKEN else key: text_of(value) for key, value in rest.items()}


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
        return not value or any(isinstance(entry, str) or _has_text(entry) for entry in value)
    return _has_text(value, TEXT_KEYS)  # much that is no memory has a note or a summary


def _has_text(entry: object, names: Sequence[str] = _NAMES["content"]) -> bool:
    return isinstance(entry, dict) and any(
        isinstance(value, str) and str(key).casefold() in names for key, value in entry.items()
    )


def _lists_of(value: Item) -> dict[str, list[Any]]:
    """Return the list of an object under a usual name, or else all its lists of objects with a text."""
    lists = {key: entries for key, entries in value.items() if isinstance(entries, list)}
    usual = next((key for key in _LISTS if key in lists), None)
    if usual is not None:
        return {usual: lists[usual]}
    return {
        key: entries
        for key, entries in lists.items()
        if any(_has_text(entry, TEXT_KEYS) for entry in entries)
    }


def table_items(documents: list[Document]) -> Items:
    """Yield rows with their columns renamed; of an object with several lists, ``kind`` is the key of the list."""
    for document in documents:
        value = document.value
        lists = _lists_of(value) if isinstance(value, dict) else {}
        for key, entries in lists.items():
            kind = {"kind": key} if len(lists) > 1 else {}
            for number, entry in enumerate(entries, 1):
                yield f"entry {number} of {key} in {document.name}", _row_of(entry, kind)
        for key in value if lists else ():
            if key not in lists and isinstance(value[key], dict | list) and value[key]:
                yield f"{key} of {document.name}", Damage("not a list of memories", is_entry=False)
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
    """Yield each block with the text behind it."""
    for document in documents:
        _, *parts = _BLOCK.split(document.value)
        for number, (head, text) in enumerate(zip(parts[::2], parts[1::2], strict=True), 1):
            place = f"block {number} of {document.name}"
            yield place, {**name_columns(parse_frontmatter(head, place)), "content": text.strip()}


def is_markdown(document: Document) -> bool:
    """Recognise Markdown."""
    return document.form == "markdown"


def markdown_items(documents: list[Document]) -> Items:
    """Yield notes; the observations of a note are memories of their own, and its relations are left out."""
    for document in documents:
        if PurePosixPath(document.name).name in ("index.md", "log.md") and len(documents) > 1:
            yield document.name, Damage("index or log of a folder", is_entry=False)
            continue
        head, body = split_frontmatter(document.value)
        try:
            path = PurePosixPath(document.name)
            note: Item = {"title": path.stem} if path.suffix else {}
            note |= {"origin_id": document.name} if len(documents) > 1 else {}
            note |= name_columns(parse_frontmatter(head, document.name))
        except FrameError:
            if len(documents) == 1:
                raise
            yield document.name, Damage("note with damaged frontmatter")
        else:
            yield from _note_items(
                document.name, note, body, 1 + document.value[: -len(body) or None].count("\n")
            )


def _note_items(name: str, note: Item, body: str, first: int) -> Items:
    lines = body.split("\n")
    found = {number: _OBSERVATION.fullmatch(line) for number, line in enumerate(lines)}
    is_graph = any(found.values()) or "permalink" in note
    rest = []
    for number, line in enumerate(lines):
        place = f"line {first + number} of {name}"
        if observation := found[number]:
            text = observation[2].rstrip()
            context = _CONTEXT.search(text)
            of_note = note.get("tags")
            of_note = of_note if isinstance(of_note, list) else (text_of(of_note) or "").split(",")
            tags = [observation[1], *_HASHTAG.findall(text), *of_note]
            text_and_context = (
                {"content": text[: context.start()], "context": context[1]} if context else {"content": text}
            )
            yield place, note | text_and_context | {"tags": tags}
        elif is_graph and _RELATION.fullmatch(line):
            yield place, Damage("relation", is_entry=False)
        else:
            rest.append(line)
    if len(rest) == len(lines) or any(line.strip() and not line.lstrip().startswith("#") for line in rest):
        yield name, note | {"content": "\n".join(rest).strip("\r\n")}
