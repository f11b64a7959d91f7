"""Which requests a service refuses before it routes them, and which headers protect every answer.

A browser that was told that ``evil.example`` is 127.0.0.1 (DNS rebinding) sends that name along; so
the name is looked at before anything else. A slash or backslash that is percent-encoded in a path would reach
another route once it is decoded, past whatever a proxy in front allows.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from urllib.parse import urlsplit

from litestar.types import ASGIApp, Message, Receive, Scope, Send

from memframe import wire
from memframe.address import is_loopback
from memframe.service.health import HEALTH, READINESS
from memframe.service.problems import PROBLEM_TYPE

OPEN_PATHS = {HEALTH, READINESS}
"""Whoever watches over a service may know it by the address of its machine alone."""

_ENCODED_SLASH = re.compile(rb"%(2f|5c)", re.IGNORECASE)
_POLICY = b"content-security-policy"
_CLOSED_POLICY = b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_HEADERS = [(b"x-content-type-options", b"nosniff")]
_HTTPS_HEADERS = [*_HEADERS, (b"strict-transport-security", b"max-age=31536000")]


class RequestGuard:
    """An ASGI application that is reached by its public name, or by this machine's own.

    Every answer says that it is what its ``Content-Type`` names; unless it is a page with a policy of its own, that
    it may load and do nothing; and where the public address is https, that browsers are to insist on it.

    Parameters
    ----------
    app : ASGIApp
    public_url : str
        Its host is the public name.
    """

    def __init__(self, app: ASGIApp, *, public_url: str) -> None:
        self._app = app
        self._public_host = urlsplit(public_url).hostname
        self._headers = _HTTPS_HEADERS if public_url.startswith("https:") else _HEADERS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 421 or 400."""
        kind: str = scope["type"]  # "lifespan" too, which the annotation leaves out
        if kind != "http":
            await self._app(scope, receive, send)
            return

        async def send_protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message["headers"], *self._headers]
                if not any(name == _POLICY for name, _ in headers):
                    headers.append((_POLICY, _CLOSED_POLICY))
                message["headers"] = headers
            await send(message)

        if scope["path"] not in OPEN_PATHS and not self._is_ours(_host(scope)):
            detail = "this service is not known by the name in the Host header; use its public address"
            await _refuse(send_protected, 421, "unknown_host", detail)
        elif _ENCODED_SLASH.search(scope["raw_path"]):
            detail = "the path has an encoded slash or backslash, which no address of this service has; leave it out"
            await _refuse(send_protected, 400, "encoded_slash", detail)
        else:
            await self._app(scope, receive, send_protected)

    def _is_ours(self, host: str | None) -> bool:
        return host is not None and (host == self._public_host or is_loopback(host))


async def _refuse(send: Send, status: int, code: str, detail: str) -> None:
    """Answer with a problem document."""
    problem = wire.Problem(HTTPStatus(status).phrase, status, detail, code=code)
    body = wire.encode(problem).reveal()
    headers = [
        (b"content-type", PROBLEM_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _host(scope: Scope) -> str | None:
    values = [value for name, value in scope["headers"] if name == b"host"]
    if len(values) != 1 or b"@" in values[0]:
        return None
    try:
        return urlsplit(f"//{values[0].decode('ascii')}").hostname
    except ValueError:
        return None
