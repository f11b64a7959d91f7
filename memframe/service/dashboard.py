"""The user's pages: signing in and out, and the dashboard where access is decided.

A decision here goes through the same rules as one by a program: what is no longer pending cannot be
approved, whoever asks. GET changes nothing, every form is answered by a redirect.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from litestar import Response, Router, get, post
from litestar.concurrency import sync_to_thread
from litestar.exceptions import NotFoundException
from litestar.params import FromPath, RawBody

from memframe.errors import ConfigError, ConflictError, InvalidError, ServiceError
from memframe.secret import Secret
from memframe.service.authorization import AUTHORIZATION_ROUTES
from memframe.service.logs import log_event
from memframe.service.methods import options_of
from memframe.service.oauth_server import BadLink, SendBack
from memframe.service.rules import checked_text, new_password
from memframe.service.site import Site, Visitor, WebRequest, refusal_page, site_of
from memframe.service.throttle import address_of
from memframe.wire import OAUTH_AUTHORIZE, Status

DASHBOARD = "/dashboard"

REQUESTS_A_PAGE = 20

_SECTIONS: dict[str, tuple[Status, ...]] = {
    "pending": ("pending",),
    "approved": ("approved",),
    "past": ("rejected", "revoked"),
}
_OWN_ADDRESS = re.compile(rf"{DASHBOARD}|{OAUTH_AUTHORIZE}\?[!-~]*", re.ASCII)
_REFUSAL = "That e-mail and password do not go together. Check both and try again."
_SIGN_IN = f"/login?next={quote(DASHBOARD, safe='')}"
_STATIC = Path(__file__).with_name("static")
_FILES = {
    "style.css": ((_STATIC / "style.css").read_bytes(), "text/css"),
    "mark.svg": ((_STATIC / "mark.svg").read_bytes(), "image/svg+xml"),
}


@get("/", include_in_schema=False, sync_to_thread=True)
def enter(request: WebRequest) -> Response[Any]:
    """The front door leads to the dashboard."""
    site = site_of(request)
    return site.redirect(DASHBOARD, site.visitor(request))


@get("/login", include_in_schema=False, sync_to_thread=True)
def show_sign_in(request: WebRequest) -> Response[Any]:
    """The sign-in form."""
    site = site_of(request)
    visitor = site.visitor(request)
    way_on = _own_address(request.query_params.get("next", DASHBOARD))
    if visitor.user is not None:
        return site.redirect(way_on, visitor)
    return _sign_in_page(site, visitor, way_on)


@post("/login", include_in_schema=False)
async def sign_in(request: WebRequest, body: RawBody) -> Response[Any]:
    """Check e-mail and password, of few browsers at once."""
    async with site_of(request).password_checks.turn():
        return await sync_to_thread(_sign_in, request, body)


def _sign_in(request: WebRequest, body: bytes) -> Response[Any]:
    """The refusal is one and the same for whoever is not let in."""
    site, address = site_of(request), address_of(request)
    visitor = site.visitor(request)
    form = site.checked_form(request, visitor, body)
    way_on, email = _own_address(form.get("next", DASHBOARD)), form.get("email", "").strip()
    site.failed_sign_ins.check(address, counts=False)
    site.sign_ins.check((address, email.casefold()))
    user = site.store.accounts.user_by_email(email)
    stored = user.password_hash if user and not user.disabled else None
    if not site.passwords.matches(Secret(form.get("password", "")), stored) or user is None:
        site.failed_sign_ins.seconds_to_wait(address)
        log_event("sign-in failed", user_id=user.id if user else None, address=address)
        return _sign_in_page(site, visitor, way_on, entered_email=email, refusal=_REFUSAL)
    log_event("signed in", user_id=user.id, address=address)
    return site.redirect(way_on, site.signed_in(visitor, user))


@post("/logout", include_in_schema=False, sync_to_thread=True)
def sign_out(request: WebRequest, body: RawBody) -> Response[Any]:
    """End the session."""
    site = site_of(request)
    visitor = site.visitor(request)
    site.checked_form(request, visitor, body)
    if visitor.user:
        log_event("signed out", user_id=visitor.user.id, address=address_of(request))
    answer = site.redirect("/login", site.signed_out(visitor))
    answer.headers["Clear-Site-Data"] = '"cache", "storage"'  # not the cookie, which is a new one
    return answer


@get(DASHBOARD, include_in_schema=False, sync_to_thread=True)
def show_dashboard(request: WebRequest) -> Response[Any]:
    """Show who asks, who has access, and what was decided earlier, each in pages with the latest first."""
    site = site_of(request)
    visitor = site.visitor(request)
    if visitor.user is None:
        return site.redirect(_SIGN_IN, visitor)
    sections = {}
    for name, statuses in _SECTIONS.items():
        before = request.query_params.get(name)
        found, total, are_more = site.store.requests.of_user(
            visitor.user.id, *statuses, before=before, limit=REQUESTS_A_PAGE
        )
        older = found[-1].id if are_more else None
        sections[name] = {"requests": found, "total": total, "older": older, "is_later": before is not None}
    return site.page(
        "dashboard.html",
        visitor,
        sections=sections,
        developers=site.store.accounts.connected_developers(visitor.user.id),
        of_operator=visitor.user.password_of_operator,
    )


@get("/dashboard/password", include_in_schema=False, sync_to_thread=True)
def show_password_form(request: WebRequest) -> Response[Any]:
    """Show the form with which people change their password."""
    site = site_of(request)
    visitor = site.visitor(request)
    if visitor.user is None:
        return site.redirect(_SIGN_IN, visitor)
    return site.page("password.html", visitor, refusal=None)


@post("/dashboard/password", include_in_schema=False)
async def change_password(request: WebRequest, body: RawBody) -> Response[Any]:
    """Change the user's own password, of few browsers at once; every other session ends."""
    async with site_of(request).password_checks.turn():
        return await sync_to_thread(_change_password, request, body)


def _change_password(request: WebRequest, body: bytes) -> Response[Any]:
    site, address = site_of(request), address_of(request)
    visitor = site.visitor(request)
    form = site.checked_form(request, visitor, body)
    if visitor.user is None:
        return site.redirect(_SIGN_IN, visitor)
    user = visitor.user
    site.failed_sign_ins.check(address, counts=False)
    site.sign_ins.check((address, user.email))
    try:
        if not site.passwords.matches(Secret(form.get("current", "")), user.password_hash):
            site.failed_sign_ins.seconds_to_wait(address)
            log_event("password change refused", user_id=user.id, address=address)
            raise InvalidError("the current password is not this one")
        new = new_password(form.get("new", ""))
        if new != form.get("again", ""):
            raise InvalidError("the new password was not repeated as it is; type it twice")
    except (InvalidError, ConfigError) as refusal:
        message = str(refusal)
        return site.page("password.html", visitor, status=403, refusal=f"{message[:1].upper()}{message[1:]}.")
    site.store.accounts.set_password(user.id, site.passwords.hash(Secret(new)), of_operator=False)
    log_event("password changed", user_id=user.id, address=address)
    return site.redirect(DASHBOARD, site.signed_in(visitor, user))


@post("/dashboard/developers/{developer_id:str}/disconnect", include_in_schema=False, sync_to_thread=True)
def disconnect(request: WebRequest, developer_id: FromPath[str], body: RawBody) -> Response[Any]:
    """End all that an application has of the user."""
    site = site_of(request)
    visitor = site.visitor(request)
    site.checked_form(request, visitor, body)
    if visitor.user is None:
        return site.redirect(_SIGN_IN, visitor)
    site.store.accounts.disconnect(
        user_id=visitor.user.id, developer_id=checked_text(developer_id, "the application's id")
    )
    return site.redirect(DASHBOARD, visitor)


@post("/dashboard/requests/{request_id:str}", include_in_schema=False, sync_to_thread=True)
def decide(request: WebRequest, request_id: FromPath[str], body: RawBody) -> Response[Any]:
    """The user's decision on a request."""
    site = site_of(request)
    visitor = site.visitor(request)
    form = site.checked_form(request, visitor, body)
    if visitor.user is None:
        return site.redirect(_SIGN_IN, visitor)
    try:
        status = msgspec.convert(form.get("status"), Status)
        site.store.requests.decide(request_id, status, user_id=visitor.user.id)
    except msgspec.ValidationError:
        raise InvalidError("the form has no decision", status=400, code="invalid_request") from None
    except ConflictError as conflict:
        message = (
            "The request was decided in another window or elsewhere before; your dashboard shows what holds"
        )
        raise ConflictError(message, status=409, code=conflict.code) from None
    return site.redirect(DASHBOARD, visitor)


@get("/static/{name:str}", include_in_schema=False, sync_to_thread=False)
def serve_file(name: FromPath[str]) -> Response[bytes]:
    """What the pages are dressed in."""
    if name not in _FILES:
        raise NotFoundException
    content, media_type = _FILES[name]
    return Response(content, media_type=media_type, headers={"Cache-Control": "max-age=3600"})


def _own_address(address: str) -> str:
    """Where to go after the sign-in: only to pages of ours, whoever wrote the link."""
    return address if _OWN_ADDRESS.fullmatch(address) else DASHBOARD


def _sign_in_page(
    site: Site, visitor: Visitor, way_on: str, *, entered_email: str = "", refusal: str | None = None
) -> Response[str]:
    return site.page(
        "sign_in.html",
        visitor,
        status=403 if refusal else 200,
        next=way_on,
        client_name=_client_name(site, way_on),
        entered_email=entered_email,
        refusal=refusal,
    )


def _client_name(site: Site, way_on: str) -> str | None:
    """The application on whose behalf somebody is asked to sign in."""
    _, _, query = way_on.partition("?")
    try:
        return site.server.question(query.encode()).client.name if query else None
    except (BadLink, SendBack):
        return None


def site_router() -> Router:
    """Every page for people, and the authorization server."""
    pages = [
        enter,
        show_sign_in,
        sign_in,
        sign_out,
        show_dashboard,
        decide,
        disconnect,
        show_password_form,
        change_password,
        serve_file,
    ]
    routes = [*pages, *AUTHORIZATION_ROUTES]
    return Router(
        "/",
        route_handlers=[*options_of(routes), *routes],
        exception_handlers={ServiceError: refusal_page},
    )
