"""Read what chat assistants export: ChatGPT and Claude."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memframe.readers.entries import list_items
from memframe.readers.markdown import name_columns
from memframe.readers.places import Original
from memframe.readers.rows import Item, Items, as_text
from memframe.readers.source import Damage, Document


def is_chatgpt(document: Document) -> bool:
    """Recognise ChatGPT's conversations by their graph of messages, and its list of memories by ``enabled``."""
    return document.form == "json" and any(
        isinstance(item, dict)
        and (isinstance(item.get("mapping"), dict) or {"content", "enabled"} <= item.keys())
        for _, item in document.items()
    )


def chatgpt_items(documents: list[Document]) -> Items:
    """Yield saved memories: messages to ``bio``, and the newest list of memories, profile and instructions."""
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
    texts = {as_text(entry["content"]) for _, entry in listed if isinstance(entry, dict)}
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
    return as_text(content.get("text")) or "\n".join(
        part for part in (parts if isinstance(parts, list) else []) if isinstance(part, str)
    )


def _context_items(place: str, message: Item) -> Items:
    """Yield the entries of a message that holds the list of memories, or the profile and instructions."""
    content, kind = message["content"], message["content"].get("content_type")
    if kind == "model_editable_context":
        text = as_text(content.get("model_set_context")) or ""
        for at, entry in list_items(f"the list in {place}", Original(text), goes_on=True):
            yield at, {**entry, "content": str(entry["content"])} if isinstance(entry, dict) else entry
    if kind == "user_editable_context":
        metadata = message.get("metadata")
        about = metadata.get("user_context_message_data") if isinstance(metadata, dict) else None
        found = about if isinstance(about, dict) else {}
        for title, own, inner in (
            ("About the user", "about_user_message", "user_profile"),
            ("Instructions", "about_model_message", "user_instructions"),
        ):
            if profile := as_text(found.get(own)) or as_text(content.get(inner)):
                yield place, {"content": profile, "title": title}


def is_claude(document: Document) -> bool:
    """Recognise Claude's memories by their keys."""
    return document.form == "json" and any(
        isinstance(item, dict) and {"conversations_memory", "project_memories"} & item.keys()
        for _, item in document.items()
    )


def claude_items(documents: list[Document]) -> Items:
    """Yield one text for all conversations, and one for each project, because Claude's memories are prose."""
    for place, item in (pair for document in documents for pair in document.items()):
        if not isinstance(item, dict):
            yield place, item
            continue
        yield place, {"content": item.get("conversations_memory"), "title": "Conversations"}
        projects = item.get("project_memories")
        for project, text in projects.items() if isinstance(projects, dict) else ():
            yield place, {"content": text, "title": "Project", "origin_id": project}
