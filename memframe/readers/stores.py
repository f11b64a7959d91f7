"""Read what stores of agents export in lists of several kinds: claude-mem, Hindsight's bank, Letta's agents."""

from __future__ import annotations

from typing import Any

from memframe.readers.rows import Item, Items, is_filled
from memframe.readers.source import Document, parse_json


def claude_mem_items(documents: list[Document]) -> Items:
    """Yield observations and summaries of sessions; ids of summaries begin with S, as in claude-mem's display."""
    for document in documents:
        for place, item in document.items("observations", "summaries"):
            if not isinstance(item, dict):
                yield place, item
            elif "learned" in item and "narrative" not in item:
                yield place, item | {"id": f"S{item.get('id')}", "type": "summary"}
            else:
                facts = [fact for fact in _read_list(item.get("facts")) if isinstance(fact, str)]
                has_text = is_filled(item.get("narrative")) or is_filled(item.get("text"))
                text = {} if has_text else {"text": "\n".join(facts)}
                yield place, item | text | {"concepts": _read_list(item.get("concepts"))}


def _read_list(value: Any) -> list[Any]:
    """Return the list in a text of JSON, as columns of a database hold it; put any other value into a list."""
    try:
        found = parse_json(value) if isinstance(value, str) and value else value
    except (ValueError, RecursionError):
        found = value
    if isinstance(found, list):
        return found
    return [found] if is_filled(found) else []


def bank_items(documents: list[Document]) -> Items:
    """Yield the facts of each document, and the observations that the bank drew from them."""
    for document in documents:
        is_object = isinstance(document.value, dict)
        more = {"document_id": document.value.get("id")} if is_object else {"fact_type": "observation"}
        for place, item in document.items("facts") if not is_object or "facts" in document.value else ():
            yield place, item | more if isinstance(item, dict) else item


_PASSAGES = ("passages", "archival_memory")


def agent_items(documents: list[Document]) -> Items:
    """Yield the blocks and passages of agents; some dumps have them as plain texts, or blocks under their labels."""
    for document in documents:
        value = document.value
        if not isinstance(value, dict):
            yield from document.items()
            continue
        agents = value.get("agents")
        holders = [
            value,
            *(each for each in (agents if isinstance(agents, list) else []) if isinstance(each, dict)),
        ]
        found = [entry for holder in holders for entry in _iter_entries(holder, document.name)]
        yield from found or ([] if agents or value.keys() & {*_BLOCKS, *_PASSAGES} else document.items())


_BLOCKS = ("blocks", "core_memory", "memory_blocks")


def _iter_entries(holder: Item, name: str) -> Items:
    inner = holder.get("memory")
    for key in (*_BLOCKS, *_PASSAGES):
        entries = holder.get(key)
        if key == "blocks" and entries is None and isinstance(inner, dict):
            entries = inner.get("blocks")
        if isinstance(entries, dict):
            entries = [{"label": label, "value": text} for label, text in entries.items()]
        for number, entry in enumerate(entries if isinstance(entries, list) else [], 1):
            yield f"entry {number} of {key} of {name}", {"text": entry} if isinstance(entry, str) else entry
