"""``/auth/token`` exchanges API keys for bearer tokens; ``/access-requests`` asks for access and gives the keys."""

from __future__ import annotations

from litestar import Response, get, post
from litestar.params import FromPath, RawBody
from msgspec import UNSET

from memframe import wire
from memframe.errors import AccessError, AuthError
from memframe.secret import Secret
from memframe.service import validation
from memframe.service.api.exchange import (
    ApiRequest,
    answer,
    bearer_of,
    decode,
    deployment_of,
    developer_of,
    query,
    quick_read,
    route_of,
)
from memframe.service.deployment import Deployment
from memframe.service.logs import log_event
from memframe.service.store import RESTORABLE, StoredRequest
from memframe.service.throttle import address_of
from memframe.service.tokens import Bearer, secret_hash


@post(route_of(wire.ISSUE_TOKEN), status_code=200, sync_to_thread=True)
def issue_token(request: ApiRequest, body: RawBody) -> Response[bytes]:
    """Exchange an API key for a bearer token."""
    deployment, address = deployment_of(request), address_of(request)
    asked = decode(wire.TokenRequest, request, body)
    key_hash = secret_hash(asked.api_key)
    deployment.count_token_call(address, key_hash)
    developer = deployment.store.accounts.developer_by_api_key(key_hash)
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
    reason = validation.check_text(asked.reason, "reason", max_chars=validation.MAX_REASON_CHARS)
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
        message = f"the access request is {stored.status}; keys are given while it is approved"
        raise AccessError(message, status=403, code="not_approved")
    memories = deployment.store.granted(bearer, stored.user_id)
    key = deployment.keyring(stored.user_id, memories).present
    pair = {"developer_id": stored.developer_id, "user_id": stored.user_id}
    log_event("keys given", request_id=stored.id, **pair, address=address_of(request))
    keys = wire.Credentials(stored.user_id, _memory_key(deployment, stored), key.key, key.version)
    return answer(keys, headers={wire.RESTORE_DAYS: str(RESTORABLE.days)})


def wrong_memory_key() -> AccessError:
    """Make the refusal of a memory key that is not this developer's for this user."""
    message = "the memory key is not one that was given to you for this user"
    return AccessError(message, status=403, code="wrong_memory_key")


def _own_request(request: ApiRequest, developer_id: str, request_id: str) -> StoredRequest:
    stored = deployment_of(request).store.requests.get(validation.check_text(request_id, "the request id"))
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


ACCOUNT_ROUTES = [issue_token, create_request, list_requests, get_request, get_credentials]
