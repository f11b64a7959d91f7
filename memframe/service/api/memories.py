"""``/memory-blobs``: a user's memories, listed, read, written and deleted behind a live grant.

Content is stored sealed; `Keyring.as_stored` decides how. Writes that come at the same time go to the disk
together (`memframe.service.store.writers`).
"""

from __future__ import annotations

from asyncio import wrap_future
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec
from litestar import Response, delete, get, patch, post
from litestar.params import FromPath, RawBody
from msgspec import UNSET, structs

from memframe import wire
from memframe.service import rules
from memframe.service.api.exchange import (
    ApiRequest,
    answer,
    bearer_of,
    decode,
    deployment_of,
    needed_query,
    query,
    quick_read,
    route,
    written,
)
from memframe.service.api.idempotency import attempt_of, in_flight_of, keyed_hash
from memframe.service.api.requests import wrong_memory_key
from memframe.service.cursors import Filter
from memframe.service.deployment import Deployment
from memframe.service.keyring import Keyring
from memframe.service.search import search_page
from memframe.service.store import Memories
from memframe.service.throttle import Searches


@get(route(wire.LIST_MEMORIES))
async def list_memories(request: ApiRequest) -> Response[bytes]:
    """A page of a user's memories, in the order of their creation."""
    if query(request, "searchQuery"):  # may take long
        searches: Searches = request.app.state.searches
        return await searches.run(bearer_of(request), partial(_listed, request))
    return await quick_read(_listed)(request=request)


@get(route(wire.GET_MEMORY))
async def get_memory(request: ApiRequest, memory_id: FromPath[str]) -> Response[bytes]:
    """One memory of a user."""
    asking = {"developer_id": bearer_of(request), "user_id": needed_query(request, "user_id")}
    rules.checked_text(memory_id, "the memory id")
    if lookups := deployment_of(request).store.lookups:
        found = await wrap_future(lookups.submit(memory_id, **asking))
        if found:
            return answer(found)
    return await _got(request=request, memory_id=memory_id, asking=asking)  # or why it is refused


@post(route(wire.CREATE_MEMORY))
async def create_memory(request: ApiRequest, body: RawBody) -> Response[bytes]:
    """A new memory; the same ``Idempotency-Key`` once more is answered as the first time.

    With ``Restores`` it is a deleted one, which has its id and its times again where its tombstone is kept.
    """
    deployment, developer_id = deployment_of(request), bearer_of(request)
    new = decode(wire.MemoryCreate, request, body)
    fields, tag_names = _columns(new), _tag_names(new) or ()
    content = rules.checked_text(new.content, "content")
    attempt, restores = attempt_of(request, body), request.headers.get(wire.RESTORES)
    _check_user_id(new)

    def create(memories: Memories) -> wire.MemoryBlobResponse:
        _check_memory_key(deployment, developer_id, new, memories.key_generation)
        before = memories.replays.recall(attempt) if attempt else None
        if before:
            return memories.as_added(before, fields, tag_names, was_restored=before == restores)
        keyring = deployment.keyring(new.user_id, memories)
        columns = {**fields, "content": keyring.as_stored(content)}
        tombstone = memories.take_tombstone(restores) if restores else None
        if restores and tombstone:
            columns |= {"id": restores, "created_at": tombstone.created_at}
            if tombstone.digest == _digest(deployment, keyring, restores, {**columns, "tags": tag_names}):
                columns["updated_at"] = tombstone.updated_at
        created = memories.add(columns, tag_names)
        if attempt:
            memories.replays.remember(attempt, created.id)
        return created

    with in_flight_of(request).alone(developer_id, attempt):
        created = await written(request, create, developer_id=developer_id, user_id=new.user_id)
    return answer(created, status=201)


@patch(route(wire.UPDATE_MEMORY))
async def update_memory(request: ApiRequest, memory_id: FromPath[str], body: RawBody) -> Response[bytes]:
    """Change the fields that are sent, and no other."""
    deployment, developer_id = deployment_of(request), bearer_of(request)
    sent = decode(wire.MemoryPatch, request, body)
    fields, tag_names = _columns(sent), _tag_names(sent)
    content = None if sent.content is UNSET else rules.checked_text(sent.content, "content")
    rules.checked_text(memory_id, "the memory id")
    _check_user_id(sent)

    def change(memories: Memories) -> wire.MemoryBlobResponse:
        _check_memory_key(deployment, developer_id, sent, memories.key_generation)
        if content is None:
            return memories.change(memory_id, fields, tag_names)
        sealed = deployment.keyring(sent.user_id, memories).as_stored(content)
        return memories.change(memory_id, {**fields, "content": sealed}, tag_names)

    return answer(await written(request, change, developer_id=developer_id, user_id=sent.user_id))


@delete(route(wire.DELETE_MEMORY), status_code=200)
async def delete_memory(request: ApiRequest, memory_id: FromPath[str]) -> Response[bytes]:
    """Remove a memory for good; a tombstone with its times, and none of its text, is kept for a while."""
    deployment, developer_id = deployment_of(request), bearer_of(request)
    user_id = needed_query(request, "user_id")
    rules.checked_text(memory_id, "the memory id")

    def remove(memories: Memories) -> None:
        deleted = memories.delete(memory_id)
        keyring = deployment.keyring(user_id, memories)
        memories.add_tombstone(deleted, _digest(deployment, keyring, memory_id, structs.asdict(deleted)))

    await written(request, remove, developer_id=developer_id, user_id=user_id)
    return answer(wire.Deleted(success=True))


@quick_read
def _got(request: ApiRequest, memory_id: str, asking: Mapping[str, str]) -> Response[bytes]:
    return answer(deployment_of(request).store.memory(memory_id, **asking))


def _listed(request: ApiRequest) -> Response[bytes]:
    deployment, developer_id = deployment_of(request), bearer_of(request)
    chosen = _filter(request)
    limit = rules.page_limit(query(request, "limit"))
    cursor = query(request, "cursor")
    asking = {"developer_id": developer_id, "user_id": chosen.user_id}
    if chosen.search:
        with deployment.store.snapshot(**asking) as memories:
            after = deployment.cursors.open(cursor, chosen) if cursor else 0
            envelope = deployment.keyring(chosen.user_id, memories).present.envelope
            page, are_more = search_page(memories, envelope, chosen, after=after, limit=limit)
    else:
        memories = deployment.store.granted(**asking)
        after = deployment.cursors.open(cursor, chosen) if cursor else 0
        page, are_more = memories.page(chosen, after=after, limit=limit)
    further = deployment.cursors.seal(page[-1][0], chosen) if are_more else None
    return answer(wire.MemoryPage([memory for _, memory in page], further))


def _filter(request: ApiRequest) -> Filter:
    return Filter(
        user_id=needed_query(request, "user_id"),
        tags=rules.tags_filter(query(request, "tags")),
        search=(query(request, "searchQuery") or "").casefold(),
        min_importance=rules.importance_filter(query(request, "importance")),
    )


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


def _digest(deployment: Deployment, keyring: Keyring, memory_id: str, columns: Mapping[str, Any]) -> str:
    """Digest the fields of a memory, so that the same ones are known again whichever way their content is sealed."""
    plain = keyring.present.envelope.open_many([columns["content"]]).plain[0]
    texts = [columns.get(name) for name in ("title", "summary", "source")]
    scores = [columns.get(name) for name in ("importance", "confidence")]
    fields = [
        memory_id,  # so that equal memories have different digests
        columns["content"] if plain is None else plain.decode(),
        *texts,
        *(None if score is None else float(score) for score in scores),
        *sorted(columns["tags"]),
    ]
    return keyed_hash(deployment.master_key.first.derive("tombstones"), msgspec.json.encode(fields))


def _check_user_id(sent: wire.MemoryFields) -> None:
    rules.checked_text(sent.user_id, "user_id")


def _check_memory_key(
    deployment: Deployment, developer_id: str, sent: wire.MemoryFields, generation: int
) -> None:
    pair = {"user_id": sent.user_id, "developer_id": developer_id}
    if not deployment.is_memory_key(sent.memory_key, **pair, generation=generation):
        raise wrong_memory_key()


MEMORY_ROUTES = [list_memories, get_memory, create_memory, update_memory, delete_memory]
