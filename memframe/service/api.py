"""The API of the specification, one function an endpoint: tokens, access requests, memories and tags.

Searches run in threads of their own, writes in those of the group commit; short reads run on the event loop only with
SQLite, which answers at once.

Memories are behind a live grant. Content is stored sealed: see `UserKeyring.seal`. Writes are committed in groups: see
`memframe.service.store.batching`.

An ``Idempotency-Key`` is stored in the transaction that creates the memory. For 24 hours the same key with the same
body gets the first answer again, and with another body 422. While the first request is being processed, a second one
waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial, wraps
from typing import Any, TypeVar

import msgspec
from litestar import Request, Response, Router, delete, get, patch, post
from litestar.datastructures import State
from litestar.params import FromPath, RawBody
from msgspec import UNSET, Struct, structs

from memframe import wire
from memframe.errors import AccessError, AuthError, InvalidError
from memframe.secret import Secret, secret_from_wire
from memframe.service import validation
from memframe.service.deployment import API_PREFIX, Deployment
from memframe.service.keys import UserKeyring
from memframe.service.logs import log_event
from memframe.service.store.accounts import StoredRequest
from memframe.service.store.activity import Action
from memframe.service.store.batching import WakeUps
from memframe.service.store.listing import MemoryFilter
from memframe.service.store.memories import RESTORABLE, IdempotentRequest, Memories
from memframe.service.throttle import BoundedPool, address_of
from memframe.service.tokens import Bearer, BearerTokens, bad_token, secret_hash
from memframe.service.validation import check_text, invalid

Body = TypeVar("Body", bound=Struct)
Result = TypeVar("Result")
ApiRequest = Request[Any, Any, State]


# Requests and answers


def route_of(endpoint: wire.Endpoint) -> str:
    """Return the path of an endpoint as Litestar writes it.

    >>> route_of(wire.TAG)
    '/tags/{tag_id:str}'
    """
    return endpoint.path.replace("}", ":str}")


def deployment_of(request: ApiRequest) -> Deployment:
    deployment: Deployment = request.app.state.deployment
    return deployment


def bearer_of(request: ApiRequest) -> Bearer:
    """Check the bearer token of a request; `AuthError` where it has none that is valid.

    The query for the grant checks that the account is enabled, and the token's epoch.
    """
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.casefold() != "bearer" or not token:
        raise bad_token()
    tokens: BearerTokens = request.app.state.bearer_tokens
    return tokens.check(Secret(token.strip()))


def developer_of(request: ApiRequest) -> str:
    """Check the bearer token and the account where no grant is queried; return the developer's id."""
    bearer = bearer_of(request)
    deployment_of(request).store.check_bearer(bearer)
    return bearer.developer_id


def decode(kind: type[Body], request: ApiRequest, body: bytes) -> Body:
    """Decode a JSON body with strict types; `InvalidError` says what is wrong and where."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if media_type and media_type != "application/json" and not media_type.endswith("+json"):
        message = "send the body as Content-Type: application/json"
        raise InvalidError(message, status=415, code="unsupported_media_type")
    try:
        return msgspec.json.decode(body, type=kind, dec_hook=secret_from_wire)
    except msgspec.ValidationError as error:
        raise invalid(f"the body is not as specified: {error}", "invalid_body") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise invalid("the body is not JSON in UTF-8", "malformed_json") from None
    except RecursionError:
        raise invalid("the body is nested too deeply", "malformed_json") from None


def query(request: ApiRequest, name: str) -> str | None:
    """Return a query parameter, None where it is absent or empty; `InvalidError` where it comes twice."""
    values = request.query_params.getall(name, [])
    if len(values) > 1:
        raise invalid(f"the query parameter {name} is given {len(values)} times; give it once")
    return check_text(values[0], name) if values and values[0] else None


def required_query(request: ApiRequest, name: str) -> str:
    """Return a query parameter; `InvalidError` where it is absent."""
    value = query(request, name)
    if value is None:
        raise invalid(f"the query parameter {name} is missing", "missing_parameter")
    return value


async def read(request: ApiRequest, do: Callable[[], Result]) -> Result:
    """Read little: on the event loop with SQLite, else in a thread."""
    threads = deployment_of(request).store.reading_threads
    if threads is None:
        return do()
    return await asyncio.get_running_loop().run_in_executor(threads, do)


def quick_read(handler: Callable[..., Response[bytes]]) -> Callable[..., Awaitable[Response[bytes]]]:
    """Make a handler of one that reads little."""

    @wraps(handler)
    async def run(**given: Any) -> Response[bytes]:
        return await read(given["request"], partial(handler, **given))

    return run


async def write(
    request: ApiRequest, do: Callable[[Memories], Result], bearer: Bearer, user_id: str
) -> Result:
    """Write to one user's memories, and wait until it is on the disk."""
    wake_ups: WakeUps = request.app.state.wake_ups
    return await wake_ups.wait(deployment_of(request).store.write(do, bearer, user_id))


def answer(body: Struct, status: int = 200, *, headers: Mapping[str, str] | None = None) -> Response[bytes]:
    """Encode a struct as JSON, secrets included."""
    content = wire.encode(body).reveal()
    return Response(content, status_code=status, media_type="application/json", headers=headers)


# Tokens and access requests


@post(route_of(wire.ISSUE_TOKEN), status_code=200, sync_to_thread=True)
def issue_token(request: ApiRequest, body: RawBody) -> Response[bytes]:
    """Exchange an API key for a bearer token."""
    deployment, address = deployment_of(request), address_of(request)
    asked = decode(wire.TokenRequest, request, body)
    key_hash = secret_hash(asked.api_key)
    deployment.count_token_call(address, key_hash)
    developer = deployment.store.accounts.developer(api_key_hash=key_hash)
    if developer is None or developer.disabled:
        log_event("API key refused", developer_id=developer.id if developer else None, address=address)
        raise AuthError("the API key is not accepted", status=401, code="invalid_api_key")
    lifetime_s = validation.check_token_lifetime(None if asked.expires_in is UNSET else asked.expires_in)
    bearer = Bearer(developer.id, developer.token_epoch)
    token, expires_at = request.app.state.bearer_tokens.issue(bearer, lifetime_s)
    log_event("token given", developer_id=developer.id, address=address)
    return answer(wire.TokenResponse(token, expires_at))


@post(route_of(wire.CREATE_REQUEST), sync_to_thread=True)
def create_request(request: ApiRequest, body: RawBody) -> Response[bytes]:
    """Ask a user for access to the memories."""
    deployment, developer_id = deployment_of(request), developer_of(request)
    asked = decode(wire.AccessRequestCreate, request, body)
    reason = check_text(asked.reason, "reason", max_chars=validation.MAX_REASON_CHARS)
    user_id = deployment.store.accounts.connected_user(
        developer_id=developer_id, memory_key_hash=secret_hash(asked.memory_key)
    )
    if user_id is None:
        raise wrong_memory_key()
    stored = deployment.store.requests.add(developer_id=developer_id, user_id=user_id, reason=reason)
    return answer(_to_wire(deployment, stored), status=201)


@get(route_of(wire.LIST_REQUESTS))
@quick_read
def list_requests(request: ApiRequest) -> Response[bytes]:
    """List the access requests of this developer.

    The specification gives this list no parameters; ``limit`` (by default the maximum) and ``cursor`` are those of the
    memories.
    """
    deployment, developer_id = deployment_of(request), developer_of(request)
    size = validation.parse_limit(query(request, "limit"), default=validation.MAX_LIMIT)
    after = query(request, "cursor")
    found, total, has_more = deployment.store.requests.of_developer(developer_id, after=after, limit=size)
    items = [_to_wire(deployment, stored) for stored in found]
    return answer(wire.AccessRequestList(items, total, items[-1].id if has_more else None))


@get(route_of(wire.GET_REQUEST))
@quick_read
def get_request(request: ApiRequest, request_id: FromPath[str]) -> Response[bytes]:
    """Read one access request."""
    stored = _own_request(request, developer_of(request), request_id)
    return answer(_to_wire(deployment_of(request), stored))


@get(route_of(wire.GET_CREDENTIALS))
@quick_read
def get_credentials(request: ApiRequest, request_id: FromPath[str]) -> Response[bytes]:
    """Fetch the keys of an approved access request."""
    deployment, bearer = deployment_of(request), bearer_of(request)
    deployment.store.check_bearer(bearer)
    stored = _own_request(request, bearer.developer_id, request_id)
    if stored.status != "approved":
        message = (
            f"the access request is {stored.status}; credentials are available only while it is approved"
        )
        raise AccessError(message, status=403, code="not_approved")
    memories = deployment.store.granted(bearer, stored.user_id)
    key = deployment.keyring(memories).present
    pair = {"developer_id": stored.developer_id, "user_id": stored.user_id}
    log_event("keys given", request_id=stored.id, **pair, address=address_of(request))
    keys = wire.Credentials(stored.user_id, _memory_key(deployment, stored), key.key, key.version)
    return answer(keys, headers={wire.RESTORE_DAYS: str(RESTORABLE.days)})


def wrong_memory_key() -> AccessError:
    """Make the refusal of a memory key that is not this developer's for this user."""
    message = "the memory key was not issued to you for this user"
    return AccessError(message, status=403, code="wrong_memory_key")


def _own_request(request: ApiRequest, developer_id: str, request_id: str) -> StoredRequest:
    stored = deployment_of(request).store.requests.get(check_text(request_id, "the request id"))
    if stored.developer_id != developer_id:
        message = "this access request was made by another developer account"
        raise AccessError(message, status=403, code="not_your_request")
    return stored


def _memory_key(deployment: Deployment, stored: StoredRequest) -> Secret:
    return deployment.master_key.memory_key(
        user_id=stored.user_id, developer_id=stored.developer_id, generation=stored.generation
    )


def _to_wire(deployment: Deployment, stored: StoredRequest) -> wire.AccessRequest:
    return wire.AccessRequest(
        id=stored.id,
        status=stored.status,
        reason=stored.reason,
        memory_key=_memory_key(deployment, stored),
        user_id=stored.user_id,
        ai_connector_id=stored.developer_id,
        created_at=stored.created_at,
        updated_at=stored.updated_at,
    )


# Memories and tags


@get(route_of(wire.LIST_MEMORIES))
async def list_memories(request: ApiRequest) -> Response[bytes]:
    """List a user's memories, a page at a time, in the order of creation."""
    list_page = partial(_list, request)
    if query(request, "searchQuery"):  # may take long
        searches: BoundedPool = request.app.state.searches
        return await searches.run(bearer_of(request).developer_id, list_page)
    return await read(request, list_page)


@get(route_of(wire.GET_MEMORY))
async def get_memory(request: ApiRequest, memory_id: FromPath[str]) -> Response[bytes]:
    """Read one memory."""
    store, bearer, user_id = (
        deployment_of(request).store,
        bearer_of(request),
        required_query(request, "user_id"),
    )
    check_text(memory_id, "the memory id")
    found = None
    if store.lookups:
        wake_ups: WakeUps = request.app.state.wake_ups
        found = await wake_ups.wait(store.lookups.submit(memory_id, **bearer._asdict(), user_id=user_id))
    if found is None:  # it is read from SQLite; or from PostgreSQL, to find out why there was none
        found = await read(request, partial(store.memory, memory_id, bearer, user_id))
    _count(request, bearer, user_id, "reads")
    return answer(found)


@post(route_of(wire.CREATE_MEMORY))
async def create_memory(request: ApiRequest, body: RawBody) -> Response[bytes]:
    """Write a new memory.

    With ``Restores`` it is a deleted one, with its id and times where its tombstone is kept.
    """
    deployment, bearer = deployment_of(request), bearer_of(request)
    new = decode(wire.MemoryCreate, request, body)
    fields, tag_names = validation.check_columns(new), _tag_names(new) or ()
    content = check_text(new.content, "content")
    attempt, restores = _idempotent_request(request, body), request.headers.get(wire.RESTORES)
    check_text(new.user_id, "user_id")

    def create(memories: Memories) -> tuple[wire.MemoryBlobResponse, bool]:
        _check_memory_key(deployment, bearer.developer_id, new, memories.key_generation)
        before = memories.find_repeated(attempt) if attempt else None
        if before:
            was_restored = before == restores
            return memories.repeat_added(before, fields, tag_names, was_restored=was_restored), False
        keyring = deployment.keyring(memories)
        columns = {**fields, "content": keyring.seal(content)}
        tombstone = memories.take_tombstone(restores) if restores else None
        if restores and tombstone:
            columns |= {"id": restores, "created_at": tombstone.created_at}
            if tombstone.digest == _digest(deployment, keyring, restores, {**columns, "tags": tag_names}):
                columns["updated_at"] = tombstone.updated_at
        created = memories.add(columns, tag_names)
        if attempt:
            memories.remember_request(attempt, created.id)
        return created, True

    created, is_new = await write(request, create, bearer, new.user_id)
    _count(request, bearer, new.user_id, "creates", int(is_new))
    return answer(created, status=201)


@patch(route_of(wire.UPDATE_MEMORY))
async def update_memory(request: ApiRequest, memory_id: FromPath[str], body: RawBody) -> Response[bytes]:
    """Change the fields of a memory that are sent."""
    deployment, bearer = deployment_of(request), bearer_of(request)
    sent = decode(wire.MemoryPatch, request, body)
    fields, tag_names = validation.check_columns(sent), _tag_names(sent)
    content = None if sent.content is UNSET else check_text(sent.content, "content")
    check_text(memory_id, "the memory id")
    check_text(sent.user_id, "user_id")

    def change(memories: Memories) -> wire.MemoryBlobResponse:
        _check_memory_key(deployment, bearer.developer_id, sent, memories.key_generation)
        if content is None:
            return memories.change(memory_id, fields, tag_names)
        sealed = deployment.keyring(memories).seal(content)
        return memories.change(memory_id, {**fields, "content": sealed}, tag_names)

    changed = await write(request, change, bearer, sent.user_id)
    _count(request, bearer, sent.user_id, "patches")
    return answer(changed)


@delete(route_of(wire.DELETE_MEMORY), status_code=200)
async def delete_memory(request: ApiRequest, memory_id: FromPath[str]) -> Response[bytes]:
    """Delete a memory for good."""
    deployment, bearer = deployment_of(request), bearer_of(request)
    user_id = required_query(request, "user_id")
    check_text(memory_id, "the memory id")

    def remove(memories: Memories) -> None:
        deleted = memories.delete(memory_id)
        keyring = deployment.keyring(memories)
        memories.add_tombstone(deleted, _digest(deployment, keyring, memory_id, structs.asdict(deleted)))

    await write(request, remove, bearer, user_id)
    _count(request, bearer, user_id, "deletes")
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
    return answer(memories.tags.get(check_text(tag_id, "the tag id")))


def _count(request: ApiRequest, bearer: Bearer, user_id: str, action: Action, n: int = 1) -> None:
    deployment_of(request).store.activity.count(user_id, bearer.developer_id, action, n)


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
            after = deployment.cursors.open(cursor, chosen)
            envelope = deployment.keyring(memories).present.envelope
            page, has_more = memories.search(envelope, chosen, after=after, limit=limit)
    else:
        memories = deployment.store.granted(bearer, chosen.user_id)
        after = deployment.cursors.open(cursor, chosen)
        page, has_more = memories.page(chosen, after=after, limit=limit)
    _count(request, bearer, chosen.user_id, "reads", len(page))
    further = deployment.cursors.seal(page[-1][0], chosen) if has_more else None
    return answer(wire.MemoryPage([memory for _, memory in page], further))


def _tag_names(sent: wire.MemoryFields) -> tuple[str, ...] | None:
    """Return the new list of tags; None where it was not sent."""
    return None if sent.tags is UNSET else validation.check_tag_names(sent.tags or ())


def _digest(deployment: Deployment, keyring: UserKeyring, memory_id: str, columns: Mapping[str, Any]) -> str:
    """Make a keyed digest of a memory's fields, which does not depend on how the content is sealed."""
    plain = keyring.present.envelope.open_many([columns["content"]]).plain[0]
    scores = [columns.get(name) for name in ("importance", "confidence")]
    fields = [
        memory_id,  # so that equal memories have different digests
        columns["content"] if plain is None else plain.decode(),
        *(columns.get(name) for name in ("title", "summary", "source")),
        *(None if score is None else float(score) for score in scores),
        *sorted(columns["tags"]),
    ]
    return deployment.master_key.digest("tombstones", msgspec.json.encode(fields))


def _check_memory_key(
    deployment: Deployment, developer_id: str, sent: wire.MemoryFields, generation: int
) -> None:
    pair = {"user_id": sent.user_id, "developer_id": developer_id}
    if deployment.master_key.memory_key(**pair, generation=generation) != sent.memory_key:
        raise wrong_memory_key()


def _idempotent_request(request: ApiRequest, body: bytes) -> IdempotentRequest | None:
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    if not 0 < len(key) <= validation.MAX_IDEMPOTENCY_KEY_CHARS:
        message = f"Idempotency-Key must have 1 to {validation.MAX_IDEMPOTENCY_KEY_CHARS} characters"
        raise invalid(message, "invalid_idempotency_key")
    restores = request.headers.get(wire.RESTORES)
    asked = body if restores is None else b"\0".join((body, restores.encode()))  # no JSON has a NUL
    digest = partial(deployment_of(request).master_key.digest, "idempotency")
    return IdempotentRequest(digest(key.encode()), digest(asked))


API_ROUTES = [
    issue_token, create_request, list_requests, get_request, get_credentials,
    list_memories, get_memory, create_memory, update_memory, delete_memory, list_tags, get_tag,
]  # fmt: skip


def make_api_router() -> Router:
    return Router(
        API_PREFIX,
        route_handlers=API_ROUTES,
        response_headers={"Cache-Control": "no-store"},
    )
