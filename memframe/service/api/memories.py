"""``/memory-blobs`` and ``/tags``: one user's memories, behind a live grant.

Content is stored sealed: see `UserKeyring.seal`. Writes are committed in groups: see
`memframe.service.store.batching`.

An ``Idempotency-Key`` is stored in the transaction that creates the memory. For 24 hours the same key with the same
body gets the first answer again, and with another body 422. While the first request is being processed, a second one
gets 409; if another process works on the first, it waits instead.
"""

from __future__ import annotations

import hmac
from asyncio import wrap_future
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any

import msgspec
from litestar import Response, delete, get, patch, post
from litestar.params import FromPath, RawBody
from msgspec import UNSET, structs

from memframe import wire
from memframe.service import validation
from memframe.service.api.accounts import wrong_memory_key
from memframe.service.api.exchange import (
    ApiRequest,
    answer,
    bearer_of,
    decode,
    deployment_of,
    query,
    quick_read,
    required_query,
    route_of,
    write,
)
from memframe.service.deployment import Deployment
from memframe.service.listing import search_page
from memframe.service.store import Memories
from memframe.service.store.memories import IdempotentRequest, MemoryFilter, still_in_flight
from memframe.service.throttle import SearchPool
from memframe.service.user_keyring import UserKeyring


@get(route_of(wire.LIST_MEMORIES))
async def list_memories(request: ApiRequest) -> Response[bytes]:
    """List a user's memories, a page at a time, in the order of creation."""
    if query(request, "searchQuery"):  # may take long
        searches: SearchPool = request.app.state.searches
        return await searches.run(bearer_of(request).developer_id, partial(_list, request))
    return await quick_read(_list)(request=request)


@get(route_of(wire.GET_MEMORY))
async def get_memory(request: ApiRequest, memory_id: FromPath[str]) -> Response[bytes]:
    """Read one memory."""
    bearer, user_id = bearer_of(request), required_query(request, "user_id")
    validation.check_text(memory_id, "the memory id")
    if lookups := deployment_of(request).store.lookups:
        found = await wrap_future(lookups.submit(memory_id, **bearer._asdict(), user_id=user_id))
        if found:
            return answer(found)
    # from SQLite; or from PostgreSQL, to find out why there was none
    return await quick_read(_get)(request=request, grant=(memory_id, bearer, user_id))


@post(route_of(wire.CREATE_MEMORY))
async def create_memory(request: ApiRequest, body: RawBody) -> Response[bytes]:
    """Write a new memory.

    With ``Restores`` it is a deleted one, with its id and times where its tombstone is kept.
    """
    deployment, bearer = deployment_of(request), bearer_of(request)
    new = decode(wire.MemoryCreate, request, body)
    fields, tag_names = _columns(new), _tag_names(new) or ()
    content = validation.check_text(new.content, "content")
    attempt, restores = _idempotent_request(request, body), request.headers.get(wire.RESTORES)
    validation.check_text(new.user_id, "user_id")

    def create(memories: Memories) -> wire.MemoryBlobResponse:
        _check_memory_key(deployment, bearer.developer_id, new, memories.key_generation)
        before = memories.idempotency.find(attempt) if attempt else None
        if before:
            return memories.repeat_added(before, fields, tag_names, was_restored=before == restores)
        keyring = deployment.keyring(new.user_id, memories)
        columns = {**fields, "content": keyring.seal(content)}
        tombstone = memories.take_tombstone(restores) if restores else None
        if restores and tombstone:
            columns |= {"id": restores, "created_at": tombstone.created_at}
            if tombstone.digest == _digest(deployment, keyring, restores, {**columns, "tags": tag_names}):
                columns["updated_at"] = tombstone.updated_at
        created = memories.add(columns, tag_names)
        if attempt:
            memories.idempotency.add(attempt, created.id)
        return created

    in_flight: InFlightKeys = request.app.state.in_flight
    with in_flight.hold(bearer.developer_id, attempt):
        created = await write(request, create, bearer, new.user_id)
    return answer(created, status=201)


@patch(route_of(wire.UPDATE_MEMORY))
async def update_memory(request: ApiRequest, memory_id: FromPath[str], body: RawBody) -> Response[bytes]:
    """Change the fields of a memory that are sent."""
    deployment, bearer = deployment_of(request), bearer_of(request)
    sent = decode(wire.MemoryPatch, request, body)
    fields, tag_names = _columns(sent), _tag_names(sent)
    content = None if sent.content is UNSET else validation.check_text(sent.content, "content")
    validation.check_text(memory_id, "the memory id")
    validation.check_text(sent.user_id, "user_id")

    def change(memories: Memories) -> wire.MemoryBlobResponse:
        _check_memory_key(deployment, bearer.developer_id, sent, memories.key_generation)
        if content is None:
            return memories.change(memory_id, fields, tag_names)
        sealed = deployment.keyring(sent.user_id, memories).seal(content)
        return memories.change(memory_id, {**fields, "content": sealed}, tag_names)

    return answer(await write(request, change, bearer, sent.user_id))


@delete(route_of(wire.DELETE_MEMORY), status_code=200)
async def delete_memory(request: ApiRequest, memory_id: FromPath[str]) -> Response[bytes]:
    """Delete a memory for good."""
    deployment, bearer = deployment_of(request), bearer_of(request)
    user_id = required_query(request, "user_id")
    validation.check_text(memory_id, "the memory id")

    def remove(memories: Memories) -> None:
        deleted = memories.delete(memory_id)
        keyring = deployment.keyring(user_id, memories)
        memories.add_tombstone(deleted, _digest(deployment, keyring, memory_id, structs.asdict(deleted)))

    await write(request, remove, bearer, user_id)
    return answer(wire.Deleted(success=True))


@get(route_of(wire.LIST_TAGS))
@quick_read
def list_tags(request: ApiRequest) -> Response[bytes]:
    """List the tags of a user."""
    memories = deployment_of(request).store.granted(bearer_of(request), required_query(request, "user_id"))
    return answer(wire.TagList(memories.tags.all()))


@get(route_of(wire.TAG))
@quick_read
def get_tag(request: ApiRequest, tag_id: FromPath[str]) -> Response[bytes]:
    """Read one tag."""
    memories = deployment_of(request).store.granted(bearer_of(request), required_query(request, "user_id"))
    return answer(memories.tags.get(validation.check_text(tag_id, "the tag id")))


def _get(request: ApiRequest, grant: tuple[Any, ...]) -> Response[bytes]:
    return answer(deployment_of(request).store.memory(*grant))


def _list(request: ApiRequest) -> Response[bytes]:
    deployment, bearer = deployment_of(request), bearer_of(request)
    chosen = MemoryFilter(
        user_id=required_query(request, "user_id"),
        tags=validation.parse_tags(query(request, "tags")),
        search=(query(request, "searchQuery") or "").casefold(),
        min_importance=validation.parse_importance(query(request, "importance")),
    )
    limit = validation.parse_limit(query(request, "limit"))
    cursor = query(request, "cursor")
    if chosen.search:
        with deployment.store.snapshot(bearer, chosen.user_id) as memories:
            after = deployment.cursors.open(cursor, chosen) if cursor else 0
            envelope = deployment.keyring(chosen.user_id, memories).present.envelope
            page, has_more = search_page(memories, envelope, chosen, after=after, limit=limit)
    else:
        memories = deployment.store.granted(bearer, chosen.user_id)
        after = deployment.cursors.open(cursor, chosen) if cursor else 0
        page, has_more = memories.page(chosen, after=after, limit=limit)
    further = deployment.cursors.seal(page[-1][0], chosen) if has_more else None
    return answer(wire.MemoryPage([memory for _, memory in page], further))


def _columns(sent: wire.MemoryFields) -> dict[str, Any]:
    """Check and return the sent fields, tags and content apart."""
    texts = {name: getattr(sent, name) for name in ("title", "summary", "source")}
    scores = {name: getattr(sent, name) for name in ("importance", "confidence")}
    return {
        name: validation.check_text(text, name) if text else text
        for name, text in texts.items()
        if text is not UNSET
    } | {name: validation.check_score(value, name) for name, value in scores.items() if value is not UNSET}


def _tag_names(sent: wire.MemoryFields) -> tuple[str, ...] | None:
    """Return the new list of tags; None where it was not sent."""
    return None if sent.tags is UNSET else validation.check_tag_names(sent.tags or ())


def _digest(deployment: Deployment, keyring: UserKeyring, memory_id: str, columns: Mapping[str, Any]) -> str:
    """Make a keyed digest of a memory's fields, which does not depend on how the content is sealed."""
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
    return _keyed_hash(deployment.master_key.first.derive("tombstones"), msgspec.json.encode(fields))


def _check_memory_key(
    deployment: Deployment, developer_id: str, sent: wire.MemoryFields, generation: int
) -> None:
    pair = {"user_id": sent.user_id, "developer_id": developer_id}
    if not deployment.is_memory_key(sent.memory_key, **pair, generation=generation):
        raise wrong_memory_key()


def _idempotent_request(request: ApiRequest, body: bytes) -> IdempotentRequest | None:
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    if not 0 < len(key) <= validation.MAX_IDEMPOTENCY_KEY_CHARS:
        message = f"Idempotency-Key must have 1 to {validation.MAX_IDEMPOTENCY_KEY_CHARS} characters"
        raise validation.invalid(message, "invalid_idempotency_key")
    hash_key = deployment_of(request).master_key.first.derive("idempotency")
    restores = request.headers.get(wire.RESTORES)
    asked = body if restores is None else b"\0".join((body, restores.encode()))  # no JSON has a NUL
    return IdempotentRequest(_keyed_hash(hash_key, key.encode()), _keyed_hash(hash_key, asked))


def _keyed_hash(hash_key: bytes, value: bytes) -> str:
    """Hash plaintext so that the database alone reveals nothing of it."""
    return hmac.digest(hash_key, value, "sha256").hex()


class InFlightKeys:
    """Idempotency keys that this process is working on."""

    def __init__(self) -> None:
        self._keys: set[tuple[str, str]] = set()
        self._lock = Lock()

    @contextmanager
    def hold(self, developer_id: str, attempt: IdempotentRequest | None) -> Iterator[None]:
        """Refuse other requests of the developer with this key during the block."""
        if attempt is None:
            yield
            return
        key = (developer_id, attempt.key_hash)
        with self._lock:
            if key in self._keys:
                raise still_in_flight()
            self._keys.add(key)
        try:
            yield
        finally:
            with self._lock:
                self._keys.remove(key)


MEMORY_ROUTES = [list_memories, get_memory, create_memory, update_memory, delete_memory, list_tags, get_tag]
