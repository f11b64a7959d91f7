"""``/memory-blobs``: a user's memories, listed, read, written and deleted behind a live grant.

Content is stored sealed; `Keyring.as_stored` decides how.
"""

from __future__ import annotations

from typing import Any

from litestar import Response, delete, get, patch, post
from litestar.params import FromPath, RawBody
from msgspec import UNSET

from memframe import wire
from memframe.service import rules
from memframe.service.api.exchange import (
    ApiRequest,
    answer,
    decode,
    deployment_of,
    developer_of,
    needed_query,
    query,
    route,
)
from memframe.service.api.idempotency import attempt_of, in_flight_of
from memframe.service.api.requests import wrong_memory_key
from memframe.service.cursors import Filter
from memframe.service.deployment import Deployment
from memframe.service.store import Memories


@get(route(wire.LIST_MEMORIES), sync_to_thread=True)  # a search may take long
def list_memories(request: ApiRequest) -> Response[bytes]:
    """A page of a user's memories, in the order of their creation."""
    deployment, developer_id = deployment_of(request), developer_of(request)
    chosen = _filter(request)
    limit = rules.page_limit(query(request, "limit"))
    cursor = query(request, "cursor")
    with deployment.store.granted(developer_id=developer_id, user_id=chosen.user_id) as memories:
        after = deployment.cursors.open(cursor, chosen) if cursor else 0
        found = _matching(deployment, memories, chosen, after=after, limit=limit + 1)
    page = found[:limit]
    further = deployment.cursors.seal(page[-1][0], chosen) if len(found) > limit else None
    return answer(wire.MemoryPage([memory for _, memory in page], further))


@get(route(wire.GET_MEMORY), sync_to_thread=False)
def get_memory(request: ApiRequest, memory_id: FromPath[str]) -> Response[bytes]:
    """One memory of a user."""
    deployment, developer_id = deployment_of(request), developer_of(request)
    user_id = needed_query(request, "user_id")
    with deployment.store.granted(developer_id=developer_id, user_id=user_id) as memories:
        return answer(memories.get(rules.checked_text(memory_id, "the memory id")))


@post(route(wire.CREATE_MEMORY), sync_to_thread=True)
def create_memory(request: ApiRequest, body: RawBody) -> Response[bytes]:
    """A new memory; the same ``Idempotency-Key`` once more is answered as the first time."""
    deployment, developer_id = deployment_of(request), developer_of(request)
    new = decode(wire.MemoryCreate, request, body)
    fields, tag_names = _columns(new), _tag_names(new) or ()
    content = rules.checked_text(new.content, "content")
    attempt = attempt_of(request, body)
    _check_user_id(new)
    with (
        in_flight_of(request).alone(developer_id, attempt),
        deployment.store.granted(developer_id=developer_id, user_id=new.user_id, writes=True) as memories,
    ):
        _check_memory_key(deployment, developer_id, new)
        before = memories.replays.recall(attempt) if attempt else None
        if before:
            return answer(memories.as_added(before, fields, tag_names), status=201)
        fields["content"] = deployment.keyring(new.user_id, memories).as_stored(content)
        created = memories.add(fields, tag_names)
        if attempt:
            memories.replays.remember(attempt, created.id)
    return answer(created, status=201)


@patch(route(wire.UPDATE_MEMORY), sync_to_thread=True)
def update_memory(request: ApiRequest, memory_id: FromPath[str], body: RawBody) -> Response[bytes]:
    """Change the fields that are sent, and no other."""
    deployment, developer_id = deployment_of(request), developer_of(request)
    change = decode(wire.MemoryPatch, request, body)
    fields, tag_names = _columns(change), _tag_names(change)
    rules.checked_text(memory_id, "the memory id")
    _check_user_id(change)
    with deployment.store.granted(developer_id=developer_id, user_id=change.user_id, writes=True) as memories:
        _check_memory_key(deployment, developer_id, change)
        if change.content is not UNSET:
            content = rules.checked_text(change.content, "content")
            fields["content"] = deployment.keyring(change.user_id, memories).as_stored(content)
        changed = memories.change(memory_id, fields, tag_names)
    return answer(changed)


@delete(route(wire.DELETE_MEMORY), status_code=200, sync_to_thread=True)
def delete_memory(request: ApiRequest, memory_id: FromPath[str]) -> Response[bytes]:
    """Remove a memory for good."""
    deployment, developer_id = deployment_of(request), developer_of(request)
    user_id = needed_query(request, "user_id")
    rules.checked_text(memory_id, "the memory id")
    with deployment.store.granted(developer_id=developer_id, user_id=user_id, writes=True) as memories:
        memories.delete(memory_id)
    return answer(wire.Deleted(success=True))


def _filter(request: ApiRequest) -> Filter:
    return Filter(
        user_id=needed_query(request, "user_id"),
        tags=rules.tags_filter(query(request, "tags")),
        search=(query(request, "searchQuery") or "").casefold(),
        min_importance=rules.importance_filter(query(request, "importance")),
    )


def _matching(
    deployment: Deployment, memories: Memories, chosen: Filter, *, after: int, limit: int
) -> list[tuple[int, wire.MemoryBlob]]:
    """Records of a filter; for a search, batches are opened and looked through until there are enough."""
    if not chosen.search:
        return memories.page(chosen, after=after, limit=limit)
    envelope = deployment.keyring(chosen.user_id, memories).envelope
    found: list[tuple[int, wire.MemoryBlob]] = []
    while len(found) < limit:
        batch = memories.page(chosen, after=after, limit=rules.MAX_LIMIT)
        contents = envelope.open_many([memory.content for _, memory in batch]).plain
        found += [
            placed
            for placed, content in zip(batch, contents, strict=True)
            if _has_text(placed[1], content, chosen.search)
        ]
        if len(batch) < rules.MAX_LIMIT:
            break
        after = batch[-1][0]
    return found[:limit]


def _has_text(memory: wire.MemoryBlob, content: bytes | None, casefolded: str) -> bool:
    """Whether a memory has the words; content that does not open (None) has none."""
    texts = (memory.title, memory.summary, content.decode() if content else None)
    return any(casefolded in text.casefold() for text in texts if text)


def _columns(sent: wire.MemoryFields) -> dict[str, Any]:
    """The plain columns that were sent, checked."""
    texts = {name: getattr(sent, name) for name in ("title", "summary", "source")}
    scores = {name: getattr(sent, name) for name in ("importance", "confidence")}
    return {
        name: rules.checked_text(text, name) if text else text
        for name, text in texts.items()
        if text is not UNSET
    } | {name: rules.score(value, name) for name, value in scores.items() if value is not UNSET}


def _tag_names(sent: wire.MemoryFields) -> tuple[str, ...] | None:
    """The whole new list of tags; None where it was not sent."""
    return None if sent.tags is UNSET else rules.tag_names(sent.tags or ())


def _check_user_id(sent: wire.MemoryFields) -> None:
    rules.checked_text(sent.user_id, "user_id")


def _check_memory_key(deployment: Deployment, developer_id: str, sent: wire.MemoryFields) -> None:
    key = deployment.master_key.memory_key(user_id=sent.user_id, developer_id=developer_id)
    if key != sent.memory_key:
        raise wrong_memory_key()


MEMORY_ROUTES = [list_memories, get_memory, create_memory, update_memory, delete_memory]
