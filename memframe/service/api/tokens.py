"""``/auth/token``: a developer's API key against a short-lived bearer token."""

from __future__ import annotations

from litestar import Response, post
from litestar.params import RawBody
from msgspec import UNSET

from memframe import wire
from memframe.errors import AuthError
from memframe.service.api.exchange import ApiRequest, answer, decode, deployment_of, route
from memframe.service.logs import log_event
from memframe.service.rules import token_lifetime
from memframe.service.throttle import TooManyCallsError, address_of
from memframe.service.tokens import secret_hash


@post(route(wire.ISSUE_TOKEN), status_code=200, sync_to_thread=False)
def issue_token(request: ApiRequest, body: RawBody) -> Response[bytes]:
    """A bearer token for an API key."""
    deployment = deployment_of(request)
    asked = decode(wire.TokenRequest, request, body)
    key_hash = secret_hash(asked.api_key)
    address = address_of(request)
    wait_s = deployment.token_calls.seconds_to_wait(address, key_hash)
    if wait_s:
        raise TooManyCallsError(wait_s)
    developer = deployment.store.accounts.developer_by_api_key(key_hash)
    if developer is None or developer.disabled:
        log_event("API key refused", developer_id=developer.id if developer else None, address=address)
        raise AuthError("the API key is not accepted", status=401, code="invalid_api_key")
    lifetime_s = token_lifetime(None if asked.expires_in is UNSET else asked.expires_in)
    token, expires_at = request.app.state.bearer_tokens.issue(developer.id, lifetime_s)
    log_event("token given", developer_id=developer.id, address=address)
    return answer(wire.TokenResponse(token, expires_at))


TOKEN_ROUTES = [issue_token]
