"""``/access-requests``: developers ask for access, and fetch the keys once it was given."""

from __future__ import annotations

from litestar import Response, get, post
from litestar.params import FromPath, RawBody

from memframe import wire
from memframe.errors import AccessError
from memframe.secret import Secret
from memframe.service import rules
from memframe.service.api.exchange import (
    ApiRequest,
    answer,
    decode,
    deployment_of,
    developer_of,
    query,
    quick_read,
    route,
)
from memframe.service.deployment import Deployment
from memframe.service.logs import log_event
from memframe.service.store import RESTORABLE, StoredRequest
from memframe.service.throttle import address_of
from memframe.service.tokens import secret_hash


@post(route(wire.CREATE_REQUEST), sync_to_thread=True)
def create_request(request: ApiRequest, body: RawBody) -> Response[bytes]:
    """A new access request, pending until the user decides."""
    deployment, developer_id = deployment_of(request), developer_of(request)
    asked = decode(wire.AccessRequestCreate, request, body)
    reason = rules.checked_text(asked.reason, "reason", max_chars=rules.MAX_REASON_CHARS)
    user_id = deployment.store.accounts.connected_user(
        developer_id=developer_id, memory_key_hash=secret_hash(asked.memory_key)
    )
    if user_id is None:
        raise wrong_memory_key()
    stored = deployment.store.requests.add(developer_id=developer_id, user_id=user_id, reason=reason)
    return answer(_on_wire(deployment, stored), status=201)


@get(route(wire.LIST_REQUESTS))
@quick_read
def list_requests(request: ApiRequest) -> Response[bytes]:
    """Return access requests of the developer, oldest first: `rules.MAX_LIMIT` at most, and where the rest begins.

    The specification gives this list no parameters; ``limit`` and ``cursor`` are those of the memories, and the
    first page without them is all that most developers have.
    """
    deployment, developer_id = deployment_of(request), developer_of(request)
    limit, cursor = query(request, "limit"), query(request, "cursor")
    size = rules.MAX_LIMIT if limit is None else rules.page_limit(limit)
    found, total, are_more = deployment.store.requests.of_developer(developer_id, after=cursor, limit=size)
    items = [_on_wire(deployment, stored) for stored in found]
    return answer(wire.AccessRequestList(items, total, items[-1].id if are_more else None))


@get(route(wire.GET_REQUEST))
@quick_read
def get_request(request: ApiRequest, request_id: FromPath[str]) -> Response[bytes]:
    """One access request and where it stands."""
    deployment = deployment_of(request)
    return answer(_on_wire(deployment, _own_request(request, request_id)))


@get(route(wire.GET_CREDENTIALS))
@quick_read
def get_credentials(request: ApiRequest, request_id: FromPath[str]) -> Response[bytes]:
    """The keys to the memories of a user who has approved."""
    deployment, stored = deployment_of(request), _own_request(request, request_id)
    if stored.status != "approved":
        message = f"the access request is {stored.status}; keys are given while it is approved"
        raise AccessError(message, status=403, code="not_approved")
    memories = deployment.store.granted(developer_id=stored.developer_id, user_id=stored.user_id)
    key = deployment.keyring(stored.user_id, memories).present
    memory_key = _memory_key(deployment, stored)
    pair = {"developer_id": stored.developer_id, "user_id": stored.user_id}
    log_event("keys given", request_id=stored.id, **pair, address=address_of(request))
    keys = wire.Credentials(stored.user_id, memory_key, key.key, key.version)
    return answer(keys, headers={wire.RESTORE_DAYS: str(RESTORABLE.days)})


def wrong_memory_key() -> AccessError:
    """The refusal of a memory key that is not this developer's for this user."""
    message = "the memory key is not one that was given to you for this user"
    return AccessError(message, status=403, code="wrong_memory_key")


def _own_request(request: ApiRequest, request_id: str) -> StoredRequest:
    developer_id = developer_of(request)
    stored = deployment_of(request).store.requests.get(rules.checked_text(request_id, "the request id"))
    if stored.developer_id != developer_id:
        message = "this access request was made by another developer account"
        raise AccessError(message, status=403, code="not_your_request")
    return stored


def _memory_key(deployment: Deployment, stored: StoredRequest) -> Secret:
    return deployment.master_key.memory_key(
        user_id=stored.user_id, developer_id=stored.developer_id, generation=stored.generation
    )


def _on_wire(deployment: Deployment, stored: StoredRequest) -> wire.AccessRequest:
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


REQUEST_ROUTES = [create_request, list_requests, get_request, get_credentials]
