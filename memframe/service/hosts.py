"""Which names a service answers to: a page of another site must not reach it by a name of its own.

A browser that was told that ``evil.example`` is 127.0.0.1 (DNS rebinding) sends that name along; so
the name is looked at before anything else.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from litestar.types import ASGIApp, Receive, Scope, Send

from memframe import wire
from memframe.address import is_loopback
from memframe.service.health import HEALTH, READINESS
from memframe.service.problems import PROBLEM_TYPE

OPEN_PATHS = {HEALTH, READINESS}
"""Whoever watches over a service may know it by the address of its machine alone."""


class HostGuard:
    """An ASGI application that is reached by its public name, or by this machine's own.

    Parameters
    ----------
    app : ASGIApp
    public_url : str
        Its host is the public name.
    """

    def __init__(self, app: ASGIApp, *, public_url: str) -> None:
        self._app = app
        self._public_host = urlsplit(public_url).hostname

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 421."""
        kind: str = scope["type"]  # "lifespan" too, which the annotation leaves out
        if kind != "http" or scope["path"] in OPEN_PATHS or self._is_ours(_host(scope)):
            await self._app(scope, receive, send)
            return
        detail = "this service is not known by the name in the Host header; use its public address"
        problem = wire.Problem("Misdirected Request", 421, detail, code="unknown_host")
        headers = [(b"content-type", PROBLEM_TYPE.encode())]
        await send({"type": "http.response.start", "status": 421, "headers": headers})
        body = wire.encode(problem).reveal()
        await send({"type": "http.response.body", "body": body, "more_body": False})

    def _is_ours(self, host: str | None) -> bool:
        return host is not None and (host == self._public_host or is_loopback(host))


def _host(scope: Scope) -> str | None:
    values = [value for name, value in scope["headers"] if name == b"host"]
    if len(values) != 1 or b"@" in values[0]:
        return None
    try:
        return urlsplit(f"//{values[0].decode('ascii')}").hostname
    except ValueError:
        return None
