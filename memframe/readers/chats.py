"""Read what chat assistants export: ChatGPT and Claude, and the list of dated lines that all of them write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from memframe.readers.markdown import name_columns
from memframe.readers.rows import Item, Items, read_time, text_of
from memframe.readers.source import Damage, Document

_LINE = re.compile(
    r"\s*(?:[-*•]\s+|\d{1,6}[.)]\s+)?(?:\*\*)?(?:\[([^\]\[]{0,60})\]|(?=\d{4}-\d\d-\d\d)([\dT:+.Z-]{10,35}))"
    r"(?:\*\*)?(?:\s*[-–—:.]|\s+[-–—])\s*(?:\*\*\s*)?(\S.*)"
)
"""``[date] - text``, also with a bullet or a number before, a colon or a full stop behind the date, or bold; a date in
figures needs no brackets."""

_ABOUT_USER = re.compile(r"\s*(?:the )?user(?:'s|’s)?\b", re.IGNORECASE)
"""How the lines of ChatGPT's page of memories begin, which has neither dates nor bullets."""

_BULLET = re.compile(r"\s*(?:[-*•]|\d{1,6}[.)])\s+(?!\[)(\S.*)")
_HEADING = re.compile(r"\s*(?:#{1,6}\s+(\S.*)|\*\*([^*]{1,100})\*\*:?\s*)")
_FENCE = re.compile(r"\s*(?:```|~~~)\w*\s*|\s*#{1,6}\s*")


def is_pasted(document: Document) -> bool:
    """Recognise a list by its lines: at least half of them, headings apart, are entries; in Markdown all of them."""
    is_markdown = document.form == "markdown"
    if document.form != "text" and (not is_markdown or document.value.lstrip().startswith("---")):
        return False
    lines = [line for line in document.value.split("\n") if line.strip() and not _is_frame(line)]
    dated = sum(_LINE.match(line) is not None for line in lines)
    bullets = sum(_BULLET.match(line) is not None for line in lines)
    if not dated + bullets:
        return len(lines) > 1 and all(map(_ABOUT_USER.match, lines))
    if is_markdown and 2 * dated < len(lines):
        return all(_LINE.match(line) or _BULLET.match(line) or line[0] in " \t" for line in lines)
    return 2 * (dated + bullets) >= len(lines)


def pasted_items(documents: list[Document]) -> Items:
    """Yield the entries of lists: an indented line continues the one before it, a heading is the title.

    Without dates and bullets, each line is an entry.
    """
    for document in documents:
        lines = document.value.split("\n")
        is_marked = any(_LINE.match(line) or _BULLET.match(line) for line in lines)
        yield from _list_items(document.name, document.value, is_plain=not is_marked)


def _list_items(name: str, text: str, *, goes_on: bool = False, is_plain: bool = False) -> Items:
    heading, place, indent = None, "", 0
    entry: Item | None = None
    for number, line in enumerate(text.split("\n"), 1):
        if _is_frame(line) or not line.strip():
            found = _HEADING.fullmatch(line)
            heading = (found[1] or found[2]).strip() if found else heading
            continue
        dated, bullet = _LINE.match(line), _BULLET.match(line)
        depth = len(line) - len(line.lstrip())
        is_part = depth > indent if bullet else goes_on or depth > 0
        if entry is not None and not dated and is_part:
            entry["content"] += f"\n{line.strip()}"
            continue
        if entry is not None:
            yield place, entry
        place, entry, indent = f"line {number} of {name}", None, depth
        if dated:
            date = (dated[1] or dated[2] or "").strip()
            entry = {"content": dated[3].strip(), "title": heading}
            entry["created_at" if read_time(date) else "date_saved"] = date
        elif bullet or is_plain:
            entry = {"content": (bullet[1] if bullet else line).strip(), "title": heading}
        else:
            yield place, Damage("line without an entry")
    if entry is not None:
        yield place, entry


def _is_frame(line: str) -> bool:
    return bool(_HEADING.fullmatch(line) or _FENCE.fullmatch(line))


def is_chatgpt(document: Document) -> bool:
    """Recognise ChatGPT's conversations by their graph of messages, and its list of memories by ``enabled``."""
    return document.form == "json" and any(
        isinstance(item, dict)
        and (isinstance(item.get("mapping"), dict) or {"content", "enabled"} <= item.keys())
        for _, item in document.items()
    )


def chatgpt_items(documents: list[Document]) -> Items:
    """Yield what was saved: messages to ``bio``, and the newest list of memories, profile and instructions."""
    saved: list[tuple[str, Item]] = []
    newest: dict[str, tuple[float, list[tuple[str, Any]]]] = {}
    for place, item in (pair for document in documents for pair in document.items()):
        if not isinstance(item, dict) or not ("mapping" in item or "content" in item):
            yield place, Damage("neither conversation nor memory")
        elif "mapping" not in item:
            yield place, Damage("disabled") if item.get("enabled") is False else name_columns(item)
        for message in _iter_messages(item):
            at = message.get("create_time")
            if message.get("recipient") == "bio":
                found = {"content": _read_text(message["content"]), "created_at": at}
                saved.append((place, found | {"origin_id": message.get("id")}))
            if entries := list(_context_items(place, message)):
                kind, when = message["content"]["content_type"], at if isinstance(at, int | float) else 0
                if kind in newest:
                    yield place, Damage(f"older {kind}", is_entry=False)
                if kind not in newest or when >= newest[kind][0]:
                    newest[kind] = when, entries
    listed = [pair for _, pairs in newest.values() for pair in pairs]
    texts = {text_of(entry["content"]) for _, entry in listed if isinstance(entry, dict)}
    for place, entry in saved:
        yield place, Damage("in the list of memories, too") if entry["content"] in texts else entry
    yield from listed


def _iter_messages(item: Any) -> Iterator[Item]:
    mapping = item.get("mapping") if isinstance(item, dict) else None
    for node in mapping.values() if isinstance(mapping, dict) else ():
        message = node.get("message") if isinstance(node, dict) else None
        if isinstance(message, dict) and isinstance(message.get("content"), dict):
            yield message


def _read_text(content: Item) -> str | None:
    parts = content.get("parts")
    return text_of(content.get("text")) or "\n".join(
        part for part in (parts if isinstance(parts, list) else []) if isinstance(part, str)
    )


def _context_items(place: str, message: Item) -> Items:
    """Yield the entries of a message that holds the list of memories, or the profile and instructions."""
    content, kind = message["content"], message["content"].get("content_type")
    if kind == "model_editable_context":
        text = text_of(content.get("model_set_context")) or ""
        yield from _list_items(f"the list in {place}", text, goes_on=True)
    if kind == "user_editable_context":
        metadata = message.get("metadata")
        about = metadata.get("user_context_message_data") if isinstance(metadata, dict) else None
        found = about if isinstance(about, dict) else {}
        for title, own, inner in (
            ("About the user", "about_user_message", "user_profile"),
            ("Instructions", "about_model_message", "user_instructions"),
        ):
            if profile := text_of(found.get(own)) or text_of(content.get(inner)):
                yield place, {"content": profile, "title": title}


def is_claude(document: Document) -> bool:
    """Recognise Claude's memories by their keys."""
    return document.form == "json" and any(
        isinstance(item, dict) and {"conversations_memory", "project_memories"} & item.keys()
        for _, item in document.items()
    )


def claude_items(documents: list[Document]) -> Items:
    """Yield one text for all conversations, and one for each project: they are prose."""
    for place, item in (pair for document in documents for pair in document.items()):
        if not isinstance(item, dict):
            yield place, item
            continue
        yield place, {"content": item.get("conversations_memory"), "title": "Conversations"}
        projects = item.get("project_memories")
        for project, text in projects.items() if isinstance(projects, dict) else ():
            yield place, {"content": text, "title": "Project", "origin_id": project}


def is_sections(document: Document) -> bool:
    """Recognise texts that lines of one paragraph sign divide."""
    return document.form in ("text", "markdown") and _SECTION.search(document.value) is not None


def section_items(documents: list[Document]) -> Items:
    """Yield the text of each section."""
    for document in documents:
        for number, text in enumerate(_SECTION.split(document.value), 1):
            if text.strip():
                yield f"section {number} of {document.name}", {"content": text.strip()}


_SECTION = re.compile(r"^[ \t]*§[ \t]*\r?$", re.MULTILINE)
