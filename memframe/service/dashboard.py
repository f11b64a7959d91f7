"""Handlers of the user's pages and of the OAuth endpoints.

Pages: sign in and out, decide on requests, disconnect applications, change the password, consent. A decision follows
the same rules as one made by a program. GET changes nothing; every accepted form is answered with a redirect.

``POST /oauth/token`` is for programs: its answers and errors are the JSON of RFC 6749 section 5.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from litestar import MediaType, Response, Router, get, post
from litestar.di import NamedDependency, Provide
from litestar.exceptions import NotFoundException
from litestar.params import FromPath, RawBody

from memframe.address import is_loopback
from memframe.errors import ConfigError, ConflictError, InvalidError, ServiceError
from memframe.secret import Secret
from memframe.service.logs import log_event
from memframe.service.oauth import InvalidClientLink, RedirectInstead, form_target
from memframe.service.pages import (
    DASHBOARD,
    PASSWORD,
    Site,
    Visit,
    WebRequest,
    answer_redirect,
    as_sentence,
    checks_password,
    own_address,
    refusal_page,
)
from memframe.service.person_pages import PERSON_ROUTES
from memframe.service.throttle import address_of
from memframe.service.validation import check_new_password, check_text, invalid
from memframe.wire import OAUTH_AUTHORIZE, OAUTH_TOKEN, RequestStatus

REQUESTS_PER_PAGE = 20

_SECTIONS: dict[str, tuple[RequestStatus, ...]] = {
    "pending": ("pending",),
    "approved": ("approved",),
    "past": ("rejected", "revoked"),
}
_REFUSAL = "The e-mail address or the password is wrong. Check both and try again."
_STATIC = Path(__file__).with_name("static")
_FILES = {
    "style.css": ((_STATIC / "style.css").read_bytes(), "text/css"),
    "mark.svg": ((_STATIC / "mark.svg").read_bytes(), "image/svg+xml"),
}


@get("/", sync_to_thread=True)
def show_start(visit: NamedDependency[Visit]) -> Response[Any]:
    return visit.redirect(DASHBOARD)


@get("/login", sync_to_thread=True)
def show_sign_in(visit: NamedDependency[Visit]) -> Response[Any]:
    then = own_address(visit.asked.get("next"))
    return _sign_in_page(visit, then) if visit.user is None else visit.redirect(then)


@post("/login")
@checks_password
def sign_in(visit: NamedDependency[Visit], body: RawBody) -> Response[Any]:
    form = visit.read_form(body)
    then, email = own_address(form.get("next")), form.get("email", "").strip()
    user = visit.store.accounts.user_by_email(email)
    stored = user.password_hash if user and not user.disabled else None
    if not visit.check_password(email, form.get("password", ""), stored) or user is None:
        log_event("sign-in failed", user_id=user.id if user else None, address=visit.address)
        return _sign_in_page(visit, then, entered_email=email, refusal=_REFUSAL)
    log_event("signed in", user_id=user.id, address=visit.address)
    visit.sign_in(user)
    answer = visit.redirect(then)
    visit.remember_browser(answer, user)
    return answer


@post("/logout", sync_to_thread=True)
def sign_out(visit: NamedDependency[Visit], body: RawBody) -> Response[Any]:
    visit.read_form(body)
    if visit.user:
        log_event("signed out", user_id=visit.user.id, address=visit.address)
    visit.sign_out()
    answer = visit.redirect("/login")
    answer.headers["Clear-Site-Data"] = '"cache", "storage"'  # not the cookie, which is a new one
    return answer


@get(DASHBOARD, sync_to_thread=True)
def show_dashboard(visit: NamedDependency[Visit]) -> Response[Any]:
    """Show who asks, who has access, and what was decided earlier, each in pages with the latest first."""
    user = visit.require_user()
    sections = {}
    for name, statuses in _SECTIONS.items():
        before = check_text(visit.asked[name], "the place in the list") if name in visit.asked else None
        found, total, has_more = visit.store.requests.page(
            *statuses, user_id=user.id, behind=before, limit=REQUESTS_PER_PAGE, newest_first=True
        )
        older = found[-1].id if has_more else None
        sections[name] = {"requests": found, "total": total, "older": older, "is_later": before is not None}
    developers = visit.store.accounts.connected_developers(user.id)
    return visit.page("dashboard.html", sections=sections, developers=developers)


@post("/dashboard/requests/{request_id:str}", sync_to_thread=True)
def decide_request(visit: NamedDependency[Visit], request_id: FromPath[str], body: RawBody) -> Response[Any]:
    form, user = visit.read_form(body), visit.require_user()
    try:
        status = msgspec.convert(form.get("status"), RequestStatus)
        visit.store.requests.decide(check_text(request_id, "the request id"), status, user_id=user.id)
    except msgspec.ValidationError:
        raise invalid("the form has no decision") from None
    except ConflictError as conflict:
        message = "The request was already decided elsewhere; your dashboard shows the current state"
        raise ConflictError(message, status=409, code=conflict.code) from None
    return visit.redirect(DASHBOARD)


@post("/dashboard/developers/{developer_id:str}/disconnect", sync_to_thread=True)
def disconnect(visit: NamedDependency[Visit], developer_id: FromPath[str], body: RawBody) -> Response[Any]:
    """End all access of an application."""
    _, user = visit.read_form(body), visit.require_user()
    application = check_text(developer_id, "the application's id")
    visit.store.accounts.disconnect(user_id=user.id, developer_id=application)
    return visit.redirect(DASHBOARD)


@get(PASSWORD, sync_to_thread=True)
def show_password_form(visit: NamedDependency[Visit]) -> Response[Any]:
    visit.require_user(changes_password=True)
    return _password_page(visit, own_address(visit.asked.get("next")))


@post(PASSWORD)
@checks_password
def change_password(visit: NamedDependency[Visit], body: RawBody) -> Response[Any]:
    """Change the user's password and end all other sessions."""
    form, user = visit.read_form(body), visit.require_user(changes_password=True)
    then, current = own_address(form.get("next")), form.get("current", "")
    try:
        if not visit.check_password(user.email, current, user.password_hash):
            log_event("password change refused", user_id=user.id, address=visit.address)
            raise InvalidError("the current password is wrong")
        new = check_new_password(form.get("new", ""))
        if new == current:
            raise InvalidError("the new password is the same as the current one; choose another one")
        if new != form.get("again", ""):
            raise InvalidError("the two new passwords differ; type the same password twice")
    except (InvalidError, ConfigError) as refusal:
        return _password_page(visit, then, as_sentence(str(refusal)))
    new_hash = visit.site.deployment.passwords.hash(Secret(new))
    visit.store.accounts.set_password(user.id, new_hash, must_change=False)
    log_event("password changed", user_id=user.id, address=visit.address)
    visit.sign_in(user)
    return visit.redirect(then)


@get("/static/{name:str}", sync_to_thread=False)
def serve_file(name: FromPath[str]) -> Response[bytes]:
    if name not in _FILES:
        raise NotFoundException
    content, media_type = _FILES[name]
    return Response(content, media_type=media_type, headers={"Cache-Control": "max-age=3600"})


@get(OAUTH_AUTHORIZE, sync_to_thread=True)
def ask_consent(visit: NamedDependency[Visit]) -> Response[Any]:
    """Show the consent page of an authorization request, after the sign-in."""
    query = visit.request.scope["query_string"]
    asked = visit.site.server.check_request(query)
    user = visit.require_user(then=_authorize_address(query))
    target = urlsplit(asked.redirect_uri)
    return visit.page(
        "consent.html",
        form_target=form_target(asked.redirect_uri),
        client_name=asked.client.name,
        redirect_host=target.netloc,
        on_this_machine=is_loopback(target.hostname or ""),
        has_access=visit.store.requests.is_approved(developer_id=asked.client.id, user_id=user.id),
        action=_authorize_address(query),
    )


@post(OAUTH_AUTHORIZE, sync_to_thread=True)
def take_consent(visit: NamedDependency[Visit], body: RawBody) -> Response[Any]:
    """Redirect to the client with the user's decision."""
    query = visit.request.scope["query_string"]
    form, user = visit.read_form(body), visit.require_user(then=_authorize_address(query))
    if form.get("decision") == "allow":
        return visit.redirect(visit.site.server.allow(query, user))
    if form.get("decision") == "deny":
        return visit.redirect(visit.site.server.deny(query, user))
    raise invalid("the form says neither allow nor deny")


@post(OAUTH_TOKEN, status_code=200, sync_to_thread=True)
def exchange_code(request: WebRequest, body: RawBody) -> Response[bytes]:
    """Exchange a code or a refresh token for tokens and the memory key."""
    answer = _site_of(request).server.exchange(body, request.headers, address=address_of(request))
    headers = {"Cache-Control": "no-store", "Pragma": "no-cache", **answer.headers}
    return Response(answer.body, status_code=answer.status, media_type=MediaType.JSON, headers=headers)


@get("/.well-known/oauth-authorization-server", sync_to_thread=False)
def describe_server(request: WebRequest) -> dict[str, Any]:
    return _site_of(request).server.metadata()


def _site_of(request: WebRequest) -> Site:
    site: Site = request.app.state.site
    return site


def _sign_in_page(
    visit: Visit, then: str, *, entered_email: str = "", refusal: str | None = None
) -> Response[str]:
    _, _, query = then.partition("?")
    try:  # the application on whose behalf somebody is asked to sign in
        client_name = visit.site.server.check_request(query.encode()).client.name if query else None
    except (InvalidClientLink, RedirectInstead):
        client_name = None
    shown = {"next": then, "client_name": client_name, "entered_email": entered_email}
    return visit.form_page("sign_in.html", refusal, **shown)


def _password_page(visit: Visit, then: str, refusal: str | None = None) -> Response[str]:
    must_change = visit.user is not None and visit.user.must_change_password
    return visit.form_page("password.html", refusal, next=then, must_change=must_change)


def _authorize_address(query: bytes) -> str:
    return f"{OAUTH_AUTHORIZE}?{query.decode('ascii', 'replace')}"


def _answer_bad_link(request: WebRequest, refused: InvalidClientLink) -> Response[Any]:
    return Visit(request).page("bad_link.html", status=400, message=str(refused))


ROUTES = [
    show_start, show_sign_in, sign_in, sign_out, show_dashboard, decide_request, disconnect, show_password_form,
    change_password, serve_file, ask_consent, take_consent, exchange_code, describe_server, *PERSON_ROUTES,
]  # fmt: skip


def make_site_router() -> Router:
    """Return all pages, and the OAuth endpoints."""
    return Router(
        "/",
        route_handlers=ROUTES,
        dependencies={"visit": Provide(Visit, sync_to_thread=True)},
        exception_handlers={
            ServiceError: refusal_page,
            RedirectInstead: answer_redirect,
            InvalidClientLink: _answer_bad_link,
        },
    )
