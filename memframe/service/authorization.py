"""The web side of the authorization server: consent page and token endpoint.

``GET /oauth/authorize`` asks the signed-in user, whoever is not signed in does so first and comes back.
``POST /oauth/token`` is for programs: its answers and errors are the JSON of RFC 6749 section 5.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
from litestar import MediaType, Response, get, post
from litestar.params import RawBody

from memframe.address import is_loopback
from memframe.service.oauth_server import BadLink, SendBack
from memframe.service.redirects import form_target
from memframe.service.rules import invalid
from memframe.service.site import Site, Visitor, WebRequest, site_of
from memframe.service.throttle import address_of
from memframe.service.validator import client_id_of
from memframe.wire import OAUTH_AUTHORIZE, OAUTH_TOKEN

_FORM = "application/x-www-form-urlencoded"


@get(OAUTH_AUTHORIZE, include_in_schema=False, sync_to_thread=True)
def ask_consent(request: WebRequest) -> Response[Any]:
    """The question, or the way to the sign-in."""
    site, query = site_of(request), request.scope["query_string"]
    visitor = site.visitor(request)
    try:
        question = site.server.question(query)
    except (BadLink, SendBack) as refused:
        return _refused(refused, site, visitor)
    if visitor.user is None:
        return site.redirect(_sign_in_first(query), visitor)
    target = urlsplit(question.redirect_uri)
    return site.page(
        "consent.html",
        visitor,
        form_target=form_target(question.redirect_uri),
        client_name=question.client.name,
        redirect_host=target.netloc,
        on_this_machine=is_loopback(target.hostname or ""),
        has_access=site.store.requests.is_approved(developer_id=question.client.id, user_id=visitor.user.id),
        action=f"{OAUTH_AUTHORIZE}?{query.decode('ascii')}",
    )


@post(OAUTH_AUTHORIZE, include_in_schema=False, sync_to_thread=True)
def take_consent(request: WebRequest, body: RawBody) -> Response[Any]:
    """The user's decision, carried back to the client."""
    site, query = site_of(request), request.scope["query_string"]
    visitor = site.visitor(request)
    form = site.checked_form(request, visitor, body)
    if visitor.user is None:
        return site.redirect(_sign_in_first(query), visitor)
    try:
        if form.get("decision") == "allow":
            return site.redirect(site.server.allow(query, visitor.user), visitor)
        if form.get("decision") == "deny":
            return site.redirect(site.server.deny(query, visitor.user), visitor)
    except (BadLink, SendBack) as refused:
        return _refused(refused, site, visitor)
    raise invalid("the form says neither allow nor deny")


@post(OAUTH_TOKEN, include_in_schema=False, status_code=200, sync_to_thread=True)
def exchange_code(request: WebRequest, body: RawBody) -> Response[bytes]:
    """Tokens and memory key for a code or a refresh token."""
    site = site_of(request)
    authorization = request.headers.get("authorization")
    wait_s = site.token_calls.seconds_to_wait(address_of(request), client_id_of(body, authorization))
    if wait_s:
        words = f"Too many calls; try again in {wait_s} s."
        return _token_response(429, _error_body("too_many_requests", words), {"Retry-After": str(wait_s)})
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        return _token_response(400, _error_body("invalid_request", f"The body must be {_FORM}."), {})
    answer = site.server.exchange(body, authorization=authorization)
    challenge = {"WWW-Authenticate": 'Basic realm="memframe"'} if answer.status == 401 else {}
    return _token_response(answer.status, answer.body, challenge)


@get("/.well-known/oauth-authorization-server", include_in_schema=False, sync_to_thread=False)
def describe_server(request: WebRequest) -> dict[str, Any]:
    """What a client may want to know beforehand (RFC 8414)."""
    return site_of(request).server.metadata()


def _sign_in_first(query: bytes) -> str:
    return f"/login?next={quote(OAUTH_AUTHORIZE.encode() + b'?' + query, safe='')}"


def _refused(refused: BadLink | SendBack, site: Site, visitor: Visitor) -> Response[Any]:
    if isinstance(refused, SendBack):
        return site.redirect(refused.address, visitor)
    return site.page(
        "bad_link.html",
        visitor,
        status=400,
        said=str(refused),
    )


def _token_response(status: int, body: bytes, headers: dict[str, str]) -> Response[bytes]:
    never_kept = {"Cache-Control": "no-store", "Pragma": "no-cache"}
    return Response(body, status_code=status, media_type=MediaType.JSON, headers=never_kept | headers)


def _error_body(code: str, description: str) -> bytes:
    return msgspec.json.encode({"error": code, "error_description": description})


AUTHORIZATION_ROUTES = [ask_consent, take_consent, exchange_code, describe_server]
