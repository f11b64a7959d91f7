"""The API of the specification, one function per endpoint: tokens, access requests, memories and tags.

Searches run in their own threads, and writes in those of the group commit (`memframe.service.store.batching`). Short
reads run on the event loop with SQLite, which answers at once, and otherwise in threads.

Every call for memories or tags needs a live grant. Content is stored sealed: see `Memories.seal`.

An ``Idempotency-Key`` is stored in the transaction that creates the memory. For 24 hours the same key with the same
body gets the first answer again, and with another body 422. While the first request is being processed, a second one
waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from functools import partial, wraps
from typing import Any, TypeVar

import msgspec
from litestar import Request, Response, Router, delete, get, patch, post
from litestar.datastructures import State
from litestar.params import FromPath, RawBody
from msgspec import UNSET, Struct

from memframe import wire
from memframe.errors import AccessError, AuthError, InvalidError
from memframe.secret import Secret, secret_from_wire
from memframe.service import validation
from memframe.service.deployment import API_PREFIX, Deployment
from memframe.service.logs import log_event
from memframe.service.store.accounts import StoredRequest
from memframe.service.store.activity import AccessKind
from memframe.service.store.batching import WakeUps
from memframe.service.store.listing import MemoryFilter
from memframe.service.store.memories import RESTORABLE, IdempotentRequest, Memories, wrong_key_error
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


class Call:
    """A call of the API by a developer; `AuthError` without a valid bearer token.

    The query for a grant also checks the token's epoch, and that the account is enabled. Calls that need no grant use
    `check_account`.
    """

    def __init__(self, request: ApiRequest) -> None:
        self.request = request
        self.deployment = deployment_of(request)
        self.store = self.deployment.store
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.casefold() != "bearer" or not token:
            raise bad_token()
        tokens: BearerTokens = request.app.state.bearer_tokens
        self.bearer = tokens.check(Secret(token.strip()))

    def check_account(self) -> str:
        """Check that the account is enabled; return the developer's id."""
        self.store.check_bearer(self.bearer)
        return self.bearer.developer_id

    def query(self, name: str) -> str | None:
        """Return a query parameter, None if it is absent or empty; `InvalidError` if it comes twice."""
        values = self.request.query_params.getall(name, [])
        if len(values) > 1:
            raise invalid(f"the query parameter {name} is given {len(values)} times; give it once")
        return check_text(values[0], name) if values and values[0] else None

    @property
    def user_id(self) -> str:
        """The query parameter of this name; `InvalidError` if it is absent."""
        value = self.query("user_id")
        if value is None:
            raise invalid("the query parameter user_id is missing", "missing_parameter")
        return value

    async def wait(self, answer: Future[Result]) -> Result:
        """Wait for the result of a batch, such as a write that reaches the disk."""
        wake_ups: WakeUps = self.request.app.state.wake_ups
        return await wake_ups.wait(answer)

    def count(self, user_id: str, action: AccessKind, n: int = 1) -> None:
        """Count memories that the developer has read or changed."""
        self.store.activity.count(user_id, self.bearer.developer_id, action, n)


def deployment_of(request: ApiRequest) -> Deployment:
    deployment: Deployment = request.app.state.deployment
    return deployment


def decode_body(kind: type[Body], request: ApiRequest, body: bytes) -> Body:
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


async def read(request: ApiRequest, do: Callable[[], Result]) -> Result:
    """Run a short read: on the event loop with SQLite, otherwise in a thread."""
    threads = deployment_of(request).store.reading_threads
    if threads is None:
        return do()
    return await asyncio.get_running_loop().run_in_executor(threads, do)


def quick_read(handler: Callable[..., Response[bytes]]) -> Callable[..., Awaitable[Response[bytes]]]:
    """Wrap a handler that reads little, so that `read` runs it."""

    @wraps(handler)
    async def run(**given: Any) -> Response[bytes]:
        return await read(given["request"], partial(handler, **given))

    return run


def answer(body: Struct, status: int = 200, *, headers: Mapping[str, str] | None = None) -> Response[bytes]:
    """Encode a struct as JSON, secrets included."""
    content = wire.encode(body).reveal()
    return Response(content, status_code=status, media_type="application/json", headers=headers)


# Tokens and access requests


@post(route_of(wire.ISSUE_TOKEN), status_code=200, sync_to_thread=True)
def issue_token(request: ApiRequest, body: RawBody) -> Response[bytes]:
    """Exchange an API key for a bearer token."""
    deployment, address = deployment_of(request), address_of(request)
    asked = decode_body(wire.TokenRequest, request, body)
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
    call = Call(request)
    developer_id = call.check_account()
    asked = decode_body(wire.AccessRequestCreate, request, body)
    reason = check_text(asked.reason, "reason", max_chars=validation.MAX_REASON_CHARS)
    user_id = call.store.accounts.connected_user(
        developer_id=developer_id, memory_key_hash=secret_hash(asked.memory_key)
    )
    if user_id is None:
        raise wrong_key_error()
    stored = call.store.requests.add(developer_id=developer_id, user_id=user_id, reason=reason)
    return answer(_to_wire(call, stored), status=201)


@get(route_of(wire.LIST_REQUESTS))
@quick_read
def list_requests(request: ApiRequest) -> Response[bytes]:
    """List the access requests of this developer.

    The specification has no parameters for this list; ``limit`` (by default the maximum) and ``cursor`` work as for
    memories.
    """
    call = Call(request)
    developer_id = call.check_account()
    limit = validation.parse_limit(call.query("limit"), default=validation.MAX_LIMIT)
    found, total, has_more = call.store.requests.page(
        developer_id=developer_id, behind=call.query("cursor"), limit=limit
    )
    items = [_to_wire(call, stored) for stored in found]
    return answer(wire.AccessRequestList(items, total, items[-1].id if has_more else None))


@get(route_of(wire.GET_REQUEST))
@quick_read
def get_request(request: ApiRequest, request_id: FromPath[str]) -> Response[bytes]:
    """Read one access request."""
    call = Call(request)
    return answer(_to_wire(call, _own_request(call, request_id)))


@get(route_of(wire.GET_CREDENTIALS))
@quick_read
def get_credentials(request: ApiRequest, request_id: FromPath[str]) -> Response[bytes]:
    """Fetch the keys of an approved access request."""
    call = Call(request)
    stored = _own_request(call, request_id)
    if stored.status != "approved":
        message = (
            f"the access request is {stored.status}; credentials are available only while it is approved"
        )
        raise AccessError(message, status=403, code="not_approved")
    key = call.store.memories_of(call.bearer, stored.user_id).key
    pair = {"developer_id": stored.developer_id, "user_id": stored.user_id}
    log_event("keys given", request_id=stored.id, **pair, address=address_of(request))
    keys = wire.Credentials(stored.user_id, _memory_key(call, stored), key.key, key.version)
    return answer(keys, headers={wire.RESTORE_DAYS: str(RESTORABLE.days)})


def _own_request(call: Call, request_id: str) -> StoredRequest:
    developer_id = call.check_account()
    stored = call.store.requests.get(check_text(request_id, "the request id"))
    if stored.developer_id != developer_id:
        message = "this access request was made by another developer account"
        raise AccessError(message, status=403, code="not_your_request")
    return stored


def _memory_key(call: Call, stored: StoredRequest) -> Secret:
    pair = {"user_id": stored.user_id, "developer_id": stored.developer_id}
    return call.store.master_key.memory_key(**pair, generation=stored.generation)


def _to_wire(call: Call, stored: StoredRequest) -> wire.AccessRequest:
    return wire.AccessRequest(
        id=stored.id,
        status=stored.status,
        reason=stored.reason,
        memory_key=_memory_key(call, stored),
        user_id=stored.user_id,
        ai_connector_id=stored.developer_id,
        created_at=stored.created_at,
        updated_at=stored.updated_at,
    )


# Memories and tags


@get(route_of(wire.LIST_MEMORIES))
async def list_memories(request: ApiRequest) -> Response[bytes]:
    """List a user's memories, a page at a time, in the order of creation."""
    call = Call(request)
    if call.query("searchQuery"):  # may take long
        searches: BoundedPool = request.app.state.searches
        return await searches.run(call.bearer.developer_id, partial(_list, call))
    return await read(request, partial(_list, call))


def _list(call: Call) -> Response[bytes]:
    chosen = MemoryFilter(
        user_id=call.user_id,
        tags=validation.parse_tags(call.query("tags")),
        search=(call.query("searchQuery") or "").casefold(),
        min_importance=validation.parse_importance(call.query("importance")),
    )
    limit, cursor = validation.parse_limit(call.query("limit")), call.query("cursor")
    with call.store.reading(call.bearer, chosen.user_id, in_snapshot=bool(chosen.search)) as memories:
        page = memories.page(chosen, cursor=cursor, limit=limit)
    call.count(chosen.user_id, "reads", len(page.memory_blobs))
    return answer(page)


@get(route_of(wire.GET_MEMORY))
async def get_memory(request: ApiRequest, memory_id: FromPath[str]) -> Response[bytes]:
    """Read one memory."""
    call = Call(request)
    store, bearer, user_id = call.store, call.bearer, call.user_id
    check_text(memory_id, "the memory id")
    found = None
    if store.lookups:
        found = await call.wait(store.lookups.submit(memory_id, **bearer._asdict(), user_id=user_id))
    if found is None:  # the database is SQLite; or PostgreSQL found none, and this raises the reason
        found = await read(request, partial(store.memory, memory_id, bearer, user_id))
    call.count(user_id, "reads")
    return answer(found)


@post(route_of(wire.CREATE_MEMORY))
async def create_memory(request: ApiRequest, body: RawBody) -> Response[bytes]:
    """Write a new memory.

    With the header ``Restores`` it restores a deleted one, under its id and times if its tombstone still exists.
    """
    call = Call(request)
    new = decode_body(wire.MemoryCreate, request, body)
    fields, tag_names = validation.check_columns(new), _tag_names(new) or ()
    content = check_text(new.content, "content")
    attempt, restores = _idempotent_request(call, body), request.headers.get(wire.RESTORES)
    check_text(new.user_id, "user_id")

    def create(memories: Memories) -> tuple[wire.MemoryBlobResponse, bool]:
        memories.check_memory_key(new.memory_key)
        return memories.create(content, fields, tag_names, request=attempt, restores=restores)

    created, is_new = await call.wait(call.store.write(create, call.bearer, new.user_id))
    call.count(new.user_id, "creates", int(is_new))
    return answer(created, status=201)


@patch(route_of(wire.UPDATE_MEMORY))
async def update_memory(request: ApiRequest, memory_id: FromPath[str], body: RawBody) -> Response[bytes]:
    """Change the fields of a memory that are sent."""
    call = Call(request)
    sent = decode_body(wire.MemoryPatch, request, body)
    fields, tag_names = validation.check_columns(sent), _tag_names(sent)
    content = None if sent.content is UNSET else check_text(sent.content, "content")
    check_text(memory_id, "the memory id")
    check_text(sent.user_id, "user_id")

    def change(memories: Memories) -> wire.MemoryBlobResponse:
        memories.check_memory_key(sent.memory_key)
        sealed = {} if content is None else {"content": memories.seal(content)}
        return memories.change(memory_id, {**fields, **sealed}, tag_names)

    changed = await call.wait(call.store.write(change, call.bearer, sent.user_id))
    call.count(sent.user_id, "patches")
    return answer(changed)


@delete(route_of(wire.DELETE_MEMORY), status_code=200)
async def delete_memory(request: ApiRequest, memory_id: FromPath[str]) -> Response[bytes]:
    """Delete a memory for good."""
    call = Call(request)
    user_id = call.user_id
    check_text(memory_id, "the memory id")

    def remove(memories: Memories) -> None:
        memories.delete(memory_id, is_restorable=True)

    await call.wait(call.store.write(remove, call.bearer, user_id))
    call.count(user_id, "deletes")
    return answer(wire.Deleted(success=True))


@get(route_of(wire.LIST_TAGS))
@quick_read
def list_tags(request: ApiRequest) -> Response[bytes]:
    """List the tags of a user."""
    call = Call(request)
    return answer(wire.TagList(call.store.memories_of(call.bearer, call.user_id).all_tags()))


@get(route_of(wire.TAG))
@quick_read
def get_tag(request: ApiRequest, tag_id: FromPath[str]) -> Response[bytes]:
    """Read one tag."""
    call = Call(request)
    memories = call.store.memories_of(call.bearer, call.user_id)
    return answer(memories.get_tag(check_text(tag_id, "the tag id")))


def _tag_names(sent: wire.MemoryFields) -> tuple[str, ...] | None:
    """Return the new list of tags; None if it was not sent."""
    return None if sent.tags is UNSET else validation.check_tag_names(sent.tags or ())


def _idempotent_request(call: Call, body: bytes) -> IdempotentRequest | None:
    key = call.request.headers.get("idempotency-key")
    if key is None:
        return None
    if not 0 < len(key) <= validation.MAX_IDEMPOTENCY_KEY_CHARS:
        message = f"Idempotency-Key must have 1 to {validation.MAX_IDEMPOTENCY_KEY_CHARS} characters"
        raise invalid(message, "invalid_idempotency_key")
    restores = call.request.headers.get(wire.RESTORES)
    asked = body if restores is None else b"\0".join((body, restores.encode()))  # JSON has no NUL
    digest = partial(call.store.master_key.digest, "idempotency")
    return IdempotentRequest(digest(key.encode()), digest(asked))


API_ROUTES = [
    issue_token, create_request, list_requests, get_request, get_credentials,
    list_memories, get_memory, create_memory, update_memory, delete_memory, list_tags, get_tag,
]  # fmt: skip


def make_api_router() -> Router:
    return Router(API_PREFIX, route_handlers=API_ROUTES, response_headers={"Cache-Control": "no-store"})
