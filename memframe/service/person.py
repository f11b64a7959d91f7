"""List, search, export and delete a person's own memories.

It needs no grant: it is for the signed-in user, and for the operator on the user's behalf. What the user deletes leaves
no tombstone, so that no application restores it under its id.

A download is made while it is sent, some memories at a time: what is created meanwhile may be missing. Text is given as
it is stored; in Markdown it stands in fences that are longer than any within it, so that it cannot break out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Struct, structs

from memframe.service.clock import format_instant
from memframe.service.deployment import Deployment
from memframe.service.store.accounts import User
from memframe.service.store.listing import MemoryFilter
from memframe.wire import MemoryBlob, Tag

EXPORT_BATCH = 500

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$-])")


class OwnMemory(Struct, frozen=True, kw_only=True):
    """A memory as its owner reads it: `content` is plain, and None where no key opens it."""

    id: str
    title: str | None
    summary: str | None
    content: str | None
    tags: tuple[str, ...]
    importance: float | None
    confidence: float | None
    source: str | None
    created_at: str
    updated_at: str


def list_memories(
    deployment: Deployment, chosen: MemoryFilter, *, after: int, limit: int
) -> tuple[list[tuple[int, OwnMemory]], bool]:
    """Return a page of memories with their `seq`, content opened; True where more follow."""
    with deployment.store.own(chosen.user_id) as mine:
        envelope = deployment.keyring(mine).present.envelope
        if chosen.search:
            page, has_more = mine.search(envelope, chosen, after=after, limit=limit)
        else:
            page, has_more = mine.page(chosen, after=after, limit=limit)
        plain = envelope.open_many([memory.content or "" for _, memory in page]).plain
    return [
        (seq, _open(memory, content)) for (seq, memory), content in zip(page, plain, strict=True)
    ], has_more


def find_memory(deployment: Deployment, user_id: str, memory_id: str) -> OwnMemory:
    """Return one memory; `NotFoundError` where the user has none with this id."""
    with deployment.store.own(user_id) as mine:
        memory = mine.get(memory_id)
        envelope = deployment.keyring(mine).present.envelope
        return _open(memory, envelope.open_many([memory.content or ""]).plain[0])


def _open(memory: MemoryBlob, content: bytes | None) -> OwnMemory:
    fields = structs.asdict(memory)
    plain = None if content is None else content.decode()
    kept = {name: fields[name] for name in OwnMemory.__struct_fields__ if name != "content"}
    return OwnMemory(**kept, content=plain)


def count_memories(deployment: Deployment, user_id: str) -> int:
    """Return the number of a user's memories."""
    with deployment.store.own(user_id) as mine:
        return mine.count()


def list_tags(deployment: Deployment, user_id: str) -> list[Tag]:
    """Return all tags of a user, by name."""
    with deployment.store.own(user_id) as mine:
        return mine.tags.all()


def delete_memory(deployment: Deployment, user_id: str, memory_id: str) -> None:
    """Delete one memory; `NotFoundError` where the user has none with this id."""
    with deployment.store.owned(user_id) as mine:
        mine.delete(memory_id)


def delete_memories(deployment: Deployment, user_id: str, *, expected: int) -> bool:
    """Delete all memories and tags; False, with nothing deleted, where there are not as many as expected."""
    with deployment.store.owned(user_id) as mine:
        return mine.count() == expected and mine.delete_all() == expected


# Downloads


def export_json(deployment: Deployment, user: User) -> Iterator[bytes]:
    """Yield a JSON document with all memories and tags."""
    head = {"user_id": user.id, "email": user.email, "exported_at": format_instant(deployment.now())}
    tags = list_tags(deployment, user.id)
    yield msgspec.json.encode({**head, "tags": tags})[:-1] + b',"memories":['
    separator = b"\n"
    for memory in _all_memories(deployment, user.id):
        yield separator + msgspec.json.encode(memory)
        separator = b",\n"
    yield b"\n]}\n"


def export_markdown(deployment: Deployment, user: User) -> Iterator[bytes]:
    """Yield a Markdown document with all memories, a section each."""
    exported_at = format_instant(deployment.now())
    yield f"# Memories of {_escape(user.email)}\n\nExported {exported_at}.\n".encode()
    for number, memory in enumerate(_all_memories(deployment, user.id), 1):
        yield _as_section(number, memory).encode("utf-8", "surrogatepass")


EXPORTS: dict[str, Callable[[Deployment, User], Iterator[bytes]]] = {
    ".json": export_json,
    ".md": export_markdown,
}
"""By the ending of the file's name."""


def _all_memories(deployment: Deployment, user_id: str) -> Iterator[OwnMemory]:
    after, has_more = 0, True
    while has_more:
        page, has_more = list_memories(deployment, MemoryFilter(user_id), after=after, limit=EXPORT_BATCH)
        for after, memory in page:  # noqa: B007 - of the last one
            yield memory


def _as_section(number: int, memory: OwnMemory) -> str:
    fields: dict[str, Any] = {
        "Summary": memory.summary,
        "Tags": ", ".join(memory.tags),
        "Importance": memory.importance,
        "Confidence": memory.confidence,
        "Source": memory.source,
        "Created": memory.created_at,
        "Changed": memory.updated_at if memory.updated_at != memory.created_at else None,
        "Id": memory.id,
    }
    listed = "".join(
        f"- {name}: {_escape(str(value))}\n" for name, value in fields.items() if value not in (None, "")
    )
    title = _escape(memory.title or "Without a title")
    if memory.content is None:
        return f"\n## {number}. {title}\n\n{listed}\nThe content cannot be opened.\n"
    fence = "~" * (1 + max(2, *map(len, re.findall("~+", memory.content)), 2))
    return f"\n## {number}. {title}\n\n{listed}\n{fence}\n{memory.content}\n{fence}\n"


def _escape(text: str) -> str:
    """Write a text on one line, without a meaning in Markdown.

    >>> print(_escape("# not a *heading*"))
    \\# not a \\*heading\\*
    """
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))
