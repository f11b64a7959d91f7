"""Assemble the ASGI application of the service.

`RequestGuard` checks requests before they are routed. It checks the host because of DNS rebinding: a browser that has
resolved ``evil.example`` to 127.0.0.1 sends ``evil.example`` as ``Host``. It refuses a percent-encoded slash or
backslash in a path, because decoding it could lead to a route that a proxy in front does not allow.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from litestar import Litestar, Request, Response, get
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from sqlalchemy.exc import InterfaceError, InternalError, OperationalError

from memframe.address import is_loopback
from memframe.errors import ServiceError
from memframe.service.api import ApiRequest, deployment_of, make_api_router
from memframe.service.dashboard import make_site_router
from memframe.service.deployment import Addresses, Deployment, ServiceConfig
from memframe.service.http_errors import (
    CLOSED_POLICY,
    PROBLEM_TYPE,
    DatabaseErrorLog,
    answer_database_error,
    answer_failure,
    answer_http_error,
    answer_service_error,
    problem_body,
    protective_headers,
)
from memframe.service.logs import RequestLog, log_as_json
from memframe.service.openapi import get_openapi_document
from memframe.service.pages import Site, http_error_page, is_for_people
from memframe.service.server import end_with_parent, freeze_objects
from memframe.service.store import is_bound
from memframe.service.store.batching import WakeUps
from memframe.service.store.engine import name_of
from memframe.service.throttle import SEARCH_THREADS, SEARCHES_PER_DEVELOPER, BoundedPool

MAX_BODY_BYTES = 1_000_000
MAX_HOSTS = 100
"""Number of Host headers whose check is cached."""

HEALTH, READINESS = "/healthz", "/readyz"
"""Paths that are answered under any host name, because a monitor may know only the machine's address."""

UNAVAILABLE = (OperationalError, InterfaceError, InternalError)
"""Errors of a database that is unreachable, busy, full or a read-only replica."""

_SERVED_AS = {"HEAD": "GET", "OPTIONS": "TRACE"}
"""Methods that are handled as another one; uvicorn omits the body of an answer to HEAD."""

_ENCODED_SLASH = re.compile(rb"%(2f|5c)", re.IGNORECASE)


class AppFactory(NamedTuple):
    """Make the application in each process that serves."""

    config: ServiceConfig
    addresses: Addresses
    log_json: bool

    def make(self) -> ASGIApp:
        """Open the service again for this process."""
        if self.log_json:
            log_as_json()
        end_with_parent()
        app = create_app(self.config.open(), self.addresses)
        freeze_objects()
        return RequestLog(app) if self.log_json else app


def create_app(deployment: Deployment, addresses: Addresses) -> ASGIApp:
    """Return the service at its public addresses as an ASGI application."""
    searches = BoundedPool("memframe-search", n_threads=SEARCH_THREADS, per_caller=SEARCHES_PER_DEVELOPER)
    site = Site(deployment, addresses)
    app = Litestar(
        [make_api_router(), get_openapi_document, make_site_router(), check_health, check_readiness],
        state=State(
            {
                "deployment": deployment,
                "addresses": addresses,
                "bearer_tokens": deployment.bearer_tokens(addresses),
                "wake_ups": WakeUps(),
                "database_errors": DatabaseErrorLog(name_of(deployment.store.engine), now=deployment.now),
                "searches": searches,
                "site": site,
            }
        ),
        exception_handlers={
            ServiceError: answer_service_error,
            HTTPException: _answer_http_error,
            **dict.fromkeys(UNAVAILABLE, answer_database_error),
            Exception: answer_failure,
        },
        on_shutdown=[searches.close, site.downloads.close, site.password_checks.close, deployment.close],
        request_max_body_size=MAX_BODY_BYTES,
        openapi_config=None,
        logging_config=None,
    )
    return RequestGuard(app, public_url=addresses.public_url)


@get(HEALTH, sync_to_thread=False)
def check_health() -> dict[str, str]:
    """Answer 200 while this process runs."""
    return {"status": "ok"}


@get(READINESS, sync_to_thread=True)
def check_readiness(request: ApiRequest) -> dict[str, str]:
    """Answer 200 if the database answers, else 503."""
    is_bound(deployment_of(request).store.engine)
    return {"status": "ready"}


def _answer_http_error(request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    return http_error_page(request, error) if is_for_people(request) else answer_http_error(request, error)


class RequestGuard:
    """ASGI middleware that checks host and path, adds protective headers to every answer, and serves HEAD as GET.

    Requests must name the host of the public address, or a loopback address.

    OPTIONS gets the same 405 as TRACE, which lists all methods: Litestar's own answer to OPTIONS lists only some.
    """

    def __init__(self, app: ASGIApp, *, public_url: str) -> None:
        self._app = app
        self._public_host = urlsplit(public_url).hostname
        self._is_own = lru_cache(MAX_HOSTS)(self._check_host)  # parsing costs more than the rest of the guard
        self._headers = protective_headers(public_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind: str = scope["type"]  # "lifespan" too, which the annotation leaves out
        if kind != "http":
            await self._app(scope, receive, send)
            return

        async def send_protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message["headers"], *self._headers]
                if not any(name == b"content-security-policy" for name, _ in headers):
                    headers.append((b"content-security-policy", CLOSED_POLICY.encode()))
                message["headers"] = headers
            await send(message)

        hosts = [value for name, value in scope["headers"] if name == b"host"]
        is_own = scope["path"] in {HEALTH, READINESS} or (len(hosts) == 1 and self._is_own(hosts[0]))
        if not is_own:
            detail = "this service is not known by the name in the Host header; use its public address"
            await _refusal(421, "unknown_host", detail)(scope, receive, send_protected)
        elif _ENCODED_SLASH.search(scope["raw_path"]):
            detail = "the path has an encoded slash or backslash, which no address of this service has; leave it out"
            await _refusal(400, "encoded_slash", detail)(scope, receive, send_protected)
        else:
            if method := _SERVED_AS.get(str(scope.get("method"))):
                scope = cast("Scope", {**scope, "method": method})
            await self._app(scope, receive, send_protected)

    def _check_host(self, value: bytes) -> bool:
        if b"@" in value:
            return False
        try:
            host = urlsplit(f"//{value.decode('ascii')}").hostname
        except ValueError:
            return False
        return host is not None and (host == self._public_host or is_loopback(host))


def _refusal(status: int, code: str, detail: str) -> ASGIResponse:
    body, headers = problem_body(status, code, detail), {"Cache-Control": "no-store"}
    return ASGIResponse(body=body, status_code=status, media_type=PROBLEM_TYPE, headers=headers)
