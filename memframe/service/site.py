"""What all pages for people share: who sits at the browser, whether a form is our own, how an answer looks.

A browser has one cookie, a random name that says nothing. Before the sign-in it is known to nobody; at
the sign-in it is replaced, and the hash of the new one is stored with the user. The token in every form
is derived from the cookie, so that only a page which was served to this browser can send one, the
sign-in form included. Browsers that say where a form comes from are believed on top of that.
"""

from __future__ import annotations

import hmac
import re
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from litestar import MediaType, Request, Response
from litestar.datastructures import Cookie, Headers, State
from litestar.exceptions import HTTPException
from msgspec import Struct

from memframe.errors import AccessError, ServiceError
from memframe.secret import Secret
from memframe.service.deployment import Addresses, Deployment
from memframe.service.forms import read_form
from memframe.service.methods import completed
from memframe.service.oauth_server import AuthorizationServer
from memframe.service.pages import page_headers, render_page
from memframe.service.store import User
from memframe.service.throttle import Throttle, TooManyCallsError, Turnstile
from memframe.service.tokens import new_secret, secret_hash
from memframe.wire import OAUTH_AUTHORIZE, OAUTH_TOKEN

SIGN_INS_PER_MINUTE = 20
"""Of one e-mail address from one network address."""

FAILED_SIGN_INS_PER_MINUTE = 100
"""Of whatever e-mail addresses from one network address."""

PASSWORD_CHECKS_AT_ONCE, PASSWORD_CHECKS_WAITING = 2, 50
"""Each takes the memory and the time that argon2id is meant to take: whoever asks, the machine has enough left."""

_COOKIE_VALUE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)

WebRequest = Request[Any, Any, State]


class Visitor(Struct, frozen=True):
    """The browser behind a request, and the user who is signed in there."""

    token: Secret
    user: User | None = None
    is_new: bool = False

    @property
    def form_token(self) -> str:
        """What every form of this browser's pages carries."""
        return hmac.digest(self.token.reveal().encode(), b"memframe form", "sha256").hex()


class Site:
    """The user's side of a service: its authorization server, and the look of its answers.

    Parameters
    ----------
    deployment : Deployment
    addresses : Addresses
    """

    def __init__(self, deployment: Deployment, addresses: Addresses) -> None:
        self.store = deployment.store
        self.passwords = deployment.passwords
        self.server = AuthorizationServer(deployment, issuer=addresses.auth_url)
        self.sign_ins = Throttle(SIGN_INS_PER_MINUTE, seconds=deployment.seconds)
        self.failed_sign_ins = Throttle(FAILED_SIGN_INS_PER_MINUTE, seconds=deployment.seconds)
        self.password_checks = Turnstile(PASSWORD_CHECKS_AT_ONCE, PASSWORD_CHECKS_WAITING)
        self.token_calls = deployment.token_calls
        self._https = addresses.public_url.startswith("https:")
        self._cookie_name = "__Host-memframe" if self._https else "memframe"

    def visitor(self, request: WebRequest) -> Visitor:
        """Who asks; a browser that was never here gets a name."""
        value = request.cookies.get(self._cookie_name, "")
        if not _COOKIE_VALUE.fullmatch(value):
            return Visitor(new_secret(), is_new=True)
        token = Secret(value)
        return Visitor(token, self.store.sessions.user(secret_hash(token)))

    def signed_in(self, visitor: Visitor, user: User) -> Visitor:
        """Sign a user in, under a new name."""
        self.store.sessions.end(secret_hash(visitor.token))
        fresh = Visitor(new_secret(), user, is_new=True)
        self.store.sessions.open(token_hash=secret_hash(fresh.token), user_id=user.id)
        return fresh

    def signed_out(self, visitor: Visitor) -> Visitor:
        """End the session; the browser gets another name."""
        self.store.sessions.end(secret_hash(visitor.token))
        return Visitor(new_secret(), is_new=True)

    def checked_form(self, request: WebRequest, visitor: Visitor, body: bytes) -> dict[str, str]:
        """The fields of a form that this browser was given by us; `AccessError` for any other."""
        form = read_form(body)
        token = form.pop("csrf_token", "").encode()
        own = hmac.compare_digest(token, visitor.form_token.encode())
        if not (own and is_own_origin(request.headers, self.server.issuer)):
            raise AccessError(
                "This form is out of date, or did not come from this site. Nothing was changed. "
                "Open the page again and repeat what you did.",
                status=403,
                code="foreign_form",
            )
        return form

    def page(
        self,
        template: str,
        visitor: Visitor,
        *,
        status: int = 200,
        form_target: str | None = None,
        **values: Any,
    ) -> Response[str]:
        """The answer that shows a page."""
        html = render_page(
            template,
            email=visitor.user.email if visitor.user else None,
            csrf_token=visitor.form_token,
            **values,
        )
        return Response(
            html,
            status_code=status,
            media_type=MediaType.HTML,
            headers=page_headers(form_target=form_target),
            cookies=self._cookies(visitor),
        )

    def redirect(self, address: str, visitor: Visitor) -> Response[str]:
        """The answer that leads on; 303, so that no form travels along."""
        headers = page_headers() | {"Location": address}
        return Response(
            "", status_code=303, media_type=MediaType.TEXT, headers=headers, cookies=self._cookies(visitor)
        )

    def _cookies(self, visitor: Visitor) -> list[Cookie]:
        if not visitor.is_new:
            return []
        return [
            Cookie(
                self._cookie_name,
                value=visitor.token.reveal(),
                path="/",
                httponly=True,
                samesite="lax",
                secure=self._https,
            )
        ]


def site_of(request: WebRequest) -> Site:
    """The site that a request has reached."""
    site: Site = request.app.state.site
    return site


def is_own_origin(headers: Headers, public_url: str) -> bool:
    """Whether a form came from a page of ours, as far as the browser says.

    ``Origin: null`` decides nothing: browsers send it for our own pages, too, as these withhold the
    referrer. Programs, and old browsers, say nothing at all.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    origin = headers.get("origin", "null")
    return origin == "null" or urlsplit(origin).netloc in {headers.get("host"), urlsplit(public_url).netloc}


_PAGE_PATHS = ("/login", "/logout", "/dashboard", "/static", OAUTH_AUTHORIZE)
_PROGRAM_PATHS = ("/api/", "/schema/", "/.well-known/", OAUTH_TOKEN)

_HEADINGS = {
    400: "This cannot be read",
    403: "This form is out of date",
    404: "There is nothing here",
    405: "There is nothing here",
    409: "This was decided meanwhile",
    429: "Too many attempts",
}


def refusal_page(request: WebRequest, error: ServiceError) -> Response[str]:
    """An error that is told to a person: what happened, and the way on."""
    page = _notice(request, error.status or 400, str(error))
    if isinstance(error, TooManyCallsError):
        page.headers["Retry-After"] = str(error.retry_after_s)
    return page


def lost_page(request: WebRequest, error: HTTPException) -> Response[str]:
    """A refusal of the web framework, told to a person: no such page, another method, too long a form."""
    known = error.status_code in {404, 405}
    said = "this address has no page" if known else HTTPStatus(error.status_code).description
    page = _notice(request, error.status_code, said)
    page.headers |= completed(error.headers)
    return page


def is_for_people(request: WebRequest) -> bool:
    """Whether a page is the answer to expect: below the pages' own paths, or where a browser asks."""
    path = request.scope["path"]
    if path.startswith(_PROGRAM_PATHS):
        return False
    return path.startswith(_PAGE_PATHS) or "text/html" in request.headers.get("accept", "")


def _notice(request: WebRequest, status: int, said: str) -> Response[str]:
    site = site_of(request)
    heading = _HEADINGS.get(status, _HEADINGS[400])
    return site.page(
        "notice.html", site.visitor(request), status=status, heading=heading, said=_sentence(said)
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}".removesuffix(".") + "."
