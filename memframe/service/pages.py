"""The user's pages: sessions, forms, templates and headers.

No page has a script, loads anything from elsewhere, or may be framed or cached. Templates escape all text; names and
reasons come from strangers, so `harmless` also replaces characters that reorder or hide the text around them.

Every browser has a session cookie with a random value. Signing in replaces it, and stores the hash of the new value
with the user. The token in every form, also that of the sign-in, is derived from the cookie, so that only a page served
to this browser can send the form. ``Origin`` and ``Sec-Fetch-Site`` are checked as well.

A second cookie marks a browser in which a person has signed in before. Failed sign-ins in other browsers do not count
for it, so that a stranger cannot lock the person out by guessing.
"""

from __future__ import annotations

import hmac
import re
import unicodedata
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial, wraps
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from litestar import MediaType, Request, Response
from litestar.datastructures import Cookie, Headers, State
from litestar.exceptions import HTTPException
from markupsafe import Markup

from memframe.errors import AccessError, ServiceError
from memframe.secret import Secret
from memframe.service.clock import parse_instant
from memframe.service.deployment import Addresses, Deployment
from memframe.service.http_errors import complete_allow
from memframe.service.oauth import AuthorizationServer, RedirectInstead, read_form
from memframe.service.store.accounts import User
from memframe.service.throttle import (
    DOWNLOAD_THREADS,
    DOWNLOADS_PER_USER,
    PASSWORD_CHECKS,
    PASSWORD_THREADS,
    PER_ADDRESS,
    PER_ADDRESS_AND_EMAIL,
    PER_EMAIL,
    BoundedPool,
    Keys,
    TooManyCallsError,
    address_of,
)
from memframe.service.tokens import new_secret, secret_hash
from memframe.wire import OAUTH_AUTHORIZE, OAUTH_TOKEN

DASHBOARD, PASSWORD = "/dashboard", "/dashboard/password"
MEMORIES_PAGE, TAGS_PAGE, ACTIVITY_PAGE, ACCOUNT_PAGE = (
    f"{DASHBOARD}/{name}" for name in ("memories", "tags", "activity", "account")
)

KNOWN_BROWSER_LIFETIME = timedelta(days=180)

WebRequest = Request[Any, Any, State]

_COOKIE_VALUE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_KNOWN_BROWSER = re.compile(r"([A-Za-z0-9_-]{43})\.([0-9a-f]{64})", re.ASCII)
_OWN_ADDRESS = re.compile(
    rf"{DASHBOARD}(?:/memories|/tags|/activity|/account)?|{OAUTH_AUTHORIZE}\?[!-~]*", re.ASCII
)

_PAGE_PATHS = ("/login", "/logout", DASHBOARD, "/static", OAUTH_AUTHORIZE)
_PROGRAM_PATHS = ("/api/", "/schema/", "/.well-known/", OAUTH_TOKEN)

_HEADINGS = {
    400: "This request is invalid",
    403: "This form is out of date",
    404: "Page not found",
    405: "Page not found",
    409: "Already decided",
    429: "Too many at once",
}

_JOINERS = "\u200c\u200d"
"""Joiners, which Persian, the scripts of India and family emoji need; they do not reorder text."""

_HIDDEN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}


def harmless(text: str) -> str:
    """Replace control characters, bidirectional overrides and other invisible characters with U+FFFD.

    >>> harmless("invoice\u202egpj.exe")
    'invoice�gpj.exe'
    """
    return "".join(
        "\ufffd" if letter not in _JOINERS + "\n" and unicodedata.category(letter) in _HIDDEN else letter
        for letter in text.replace("\r\n", "\n")
    )


def time_html(at: datetime | str) -> Markup:
    """Format a time, or its stored text, as HTML for people and programs, in UTC.

    >>> print(time_html(datetime(2026, 3, 9, 14, 5, tzinfo=UTC)))
    <time datetime="2026-03-09T14:05:00Z">9 March 2026, 14:05 UTC</time>
    """
    utc = (parse_instant(at) if isinstance(at, str) else at).astimezone(UTC)
    words = f"{utc.day} {utc:%B %Y, %H:%M} UTC"
    return Markup('<time datetime="{}">{}</time>').format(f"{utc:%Y-%m-%dT%H:%M:%SZ}", words)


_templates = Environment(
    loader=PackageLoader("memframe.service"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters |= {"harmless": harmless, "moment": time_html}


def page_headers(*, form_target: str | None = None) -> dict[str, str]:
    """Return the protective headers of a page.

    `form_target` is an origin to which the answer to the page's form redirects, because browsers apply ``form-action``
    to that redirect, too.
    """
    targets = "'self'" if form_target is None else f"'self' {form_target}"
    return {
        "Content-Security-Policy": (
            "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; "
            f"frame-ancestors 'none'; form-action {targets}"
        ),
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


class Site:
    """State that all pages of a service share."""

    def __init__(self, deployment: Deployment, addresses: Addresses) -> None:
        self.deployment = deployment
        self.server = AuthorizationServer(deployment, issuer=addresses.auth_url)
        self.password_checks = BoundedPool(
            "memframe-password", n_threads=PASSWORD_THREADS, per_caller=PASSWORD_CHECKS
        )
        self.downloads = BoundedPool(
            "memframe-download",
            n_threads=DOWNLOAD_THREADS,
            per_caller=DOWNLOADS_PER_USER,
            refusal=f"you already have {DOWNLOADS_PER_USER} downloads in progress: wait until one of them ends",
        )
        self.is_https = addresses.public_url.startswith("https:")
        self.cookie_name = "__Host-memframe" if self.is_https else "memframe"

    def sign_browser(self, name: str, email: str) -> str:
        """Sign the name of a browser in which a user has signed in."""
        return self.deployment.master_key.digest("known browsers", f"{name}\0{email}".encode())


class Visit:
    """A request to a page: its browser, the signed-in user, the form, and the answers.

    `address` is the network address for which the request counts; `asked` holds the query parameters.
    """

    def __init__(self, request: WebRequest) -> None:
        self.site: Site = request.app.state.site
        self.store = self.site.deployment.store
        self.address = address_of(request)
        self.user: User | None = None
        self.request, self.asked = request, request.query_params
        value = request.cookies.get(self.site.cookie_name, "")
        self._is_new = not _COOKIE_VALUE.fullmatch(value)
        self._token = new_secret() if self._is_new else Secret(value)
        if not self._is_new:
            self.user = self.store.accounts.session_user(secret_hash(self._token))

    def require_user(self, *, then: str = DASHBOARD, changes_password: bool = False) -> User:
        """Return the signed-in user; `RedirectInstead` if there is none, or the password must be changed first."""
        if self.user is None:
            raise RedirectInstead(f"/login?next={quote(then, safe='')}")
        if self.user.must_change_password and not changes_password:
            raise RedirectInstead(f"{PASSWORD}?next={quote(then, safe='')}")
        return self.user

    def sign_in(self, user: User) -> None:
        """Open a session under a new cookie."""
        self.sign_out()
        self.user = user
        self.store.accounts.open_session(token_hash=secret_hash(self._token), user_id=user.id)

    def sign_out(self) -> None:
        """End the session; the browser gets another cookie."""
        self.store.accounts.end_session(secret_hash(self._token))
        self.user, self._token, self._is_new = None, new_secret(), True

    def _form_token(self) -> str:
        return hmac.digest(self._token.reveal().encode(), b"memframe form", "sha256").hex()

    def read_form(self, body: bytes) -> dict[str, str]:
        """Parse a form that we served to this browser; `AccessError` for any other."""
        form = read_form(body)
        token = form.pop("csrf_token", "").encode()
        own = hmac.compare_digest(token, self._form_token().encode())
        if not (own and is_own_origin(self.request.headers, self.site.server.issuer)):
            raise AccessError(
                "This form is out of date or did not come from this site. Nothing was changed. "
                "Open the page again and repeat the action.",
                status=403,
                code="foreign_form",
            )
        return form

    def check_password(self, email: str, password: str, stored_hash: str | None) -> bool:
        """Count an attempt, then compare the password; success takes the attempt back.

        A browser in which the person has signed in before has its own count.
        """
        email = email.casefold()
        limits: Keys = {
            ("address and e-mail", self.address, email): PER_ADDRESS_AND_EMAIL,
            ("address", self.address): PER_ADDRESS,
            ("e-mail", email): PER_EMAIL,
        }
        if known := self._known_browser(email):
            limits = {("known browser", email, known): PER_ADDRESS_AND_EMAIL}
        deployment = self.site.deployment
        deployment.throttle.count(limits)
        if not deployment.passwords.matches(Secret(password), stored_hash):
            return False
        own = {key: limit for key, limit in limits.items() if limit == PER_ADDRESS_AND_EMAIL}
        deployment.throttle.forgive(own, {key: limit for key, limit in limits.items() if key not in own})
        return True

    def _known_browser(self, email: str) -> str | None:
        match = _KNOWN_BROWSER.fullmatch(self.request.cookies.get(f"{self.site.cookie_name}-known", ""))
        is_genuine = match and hmac.compare_digest(match[2], self.site.sign_browser(match[1], email))
        return match[1] if match and is_genuine else None

    def remember_browser(self, answer: Response[Any], user: User) -> None:
        """Set the cookie of a browser in which a user has signed in."""
        name = new_secret().reveal()
        value = f"{name}.{self.site.sign_browser(name, user.email)}"
        lifetime_s = int(KNOWN_BROWSER_LIFETIME.total_seconds())
        answer.cookies.append(self._cookie(f"{self.site.cookie_name}-known", value, lifetime_s))

    def page(
        self, template: str, *, status: int = 200, form_target: str | None = None, **values: Any
    ) -> Response[str]:
        email = self.user.email if self.user else None
        html = _templates.get_template(template).render(email=email, csrf_token=self._form_token(), **values)
        headers = page_headers(form_target=form_target)
        return Response(
            html, status_code=status, media_type=MediaType.HTML, headers=headers, cookies=self._cookies()
        )

    def form_page(self, template: str, refusal: str | None = None, **values: Any) -> Response[str]:
        """Render a page with a form and, if it was refused, the reason."""
        return self.page(template, status=403 if refusal else 200, refusal=refusal, **values)

    def redirect(self, address: str) -> Response[str]:
        """Redirect with 303: the browser follows with GET, and does not send the form again."""
        headers = page_headers() | {"Location": address}
        return Response(
            "", status_code=303, media_type=MediaType.TEXT, headers=headers, cookies=self._cookies()
        )

    def notice(self, status: int, message: str) -> Response[str]:
        """Render a page that says why something was refused."""
        heading = _HEADINGS.get(status, _HEADINGS[400])
        return self.page("notice.html", status=status, heading=heading, message=as_sentence(message))

    def _cookies(self) -> list[Cookie]:
        return [self._cookie(self.site.cookie_name, self._token.reveal())] if self._is_new else []

    def _cookie(self, name: str, value: str, max_age_s: int | None = None) -> Cookie:
        secure = self.site.is_https
        return Cookie(
            name, value=value, path="/", httponly=True, samesite="lax", secure=secure, max_age=max_age_s
        )


def own_address(address: str | None) -> str:
    """Return the address to show after the sign-in if it is a page of this service, else the dashboard."""
    return address if address and _OWN_ADDRESS.fullmatch(address) else DASHBOARD


def checks_password(handler: Callable[..., Response[Any]]) -> Callable[..., Awaitable[Response[Any]]]:
    """Wrap a handler that checks a password, so that only few run at once."""

    @wraps(handler)
    async def run(visit: Visit, **given: Any) -> Response[Any]:
        return await visit.site.password_checks.run("", partial(handler, visit, **given))

    return run


def is_own_origin(headers: Headers, public_url: str) -> bool:
    """Return True unless the browser says that a form came from another site.

    ``Origin: null`` decides nothing: browsers send it for our own pages, too, as these withhold the referrer. Programs
    and old browsers send neither header.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    origin = headers.get("origin", "null")
    _, _, host = origin.partition("://")  # `urlsplit` would raise an error if it is not an address
    return origin == "null" or host in {headers.get("host"), urlsplit(public_url).netloc}


def is_for_people(request: WebRequest) -> bool:
    """Return True if an error is answered with a page: below the pages' paths, or if a browser asks."""
    path = request.scope["path"]
    if path.startswith(_PROGRAM_PATHS):
        return False
    return path.startswith(_PAGE_PATHS) or "text/html" in request.headers.get("accept", "")


def answer_redirect(request: WebRequest, redirect: RedirectInstead) -> Response[str]:
    return Visit(request).redirect(redirect.address)


def refusal_page(request: WebRequest, error: ServiceError) -> Response[str]:
    page = Visit(request).notice(error.status or 400, str(error))
    if isinstance(error, TooManyCallsError):
        page.headers["Retry-After"] = str(error.retry_after_s)
    return page


def http_error_page(request: WebRequest, error: HTTPException) -> Response[str]:
    is_known = error.status_code in {404, 405}
    message = "there is no page at this address" if is_known else HTTPStatus(error.status_code).description
    page = Visit(request).notice(error.status_code, message)
    page.headers |= complete_allow(error.headers)
    return page


def as_sentence(text: str) -> str:
    """Write a message as a sentence.

    >>> as_sentence("the password is blank")
    'The password is blank.'
    """
    return f"{text[:1].upper()}{text[1:]}".removesuffix(".") + "."
