"""What HEAD and OPTIONS answer: the headers of GET, and the methods of a path, all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import cast

from litestar import Response, route
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp, Method, Receive, Scope, Send


class HeadAsGet:
    """An ASGI application that does for HEAD what it does for GET; the server leaves the body out.

    Parameters
    ----------
    app : ASGIApp
        Knows nothing of HEAD.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope.get("method") == "HEAD":
            scope = cast("Scope", {**scope, "method": "GET"})
        await self._app(scope, receive, send)


def allowed(methods: Collection[str]) -> str:
    """Methods as the header ``Allow`` names them.

    >>> allowed(["POST", "GET"])
    'GET, HEAD, OPTIONS, POST'
    """
    head = {"HEAD"} if "GET" in methods else set()
    return ", ".join(sorted({*methods, *head, "OPTIONS"}))


def completed(headers: Mapping[str, str] | None) -> dict[str, str]:
    """The headers of a refusal, ``Allow`` with the methods that the framework does not know of.

    >>> completed({"Allow": "GET, POST"})
    {'Allow': 'GET, HEAD, OPTIONS, POST'}
    """
    found = dict(headers or {})
    return found | {
        name: allowed(value.split(", ")) for name, value in found.items() if name.lower() == "allow"
    }


def options_of(handlers: Sequence[HTTPRouteHandler]) -> list[HTTPRouteHandler]:
    """One handler of OPTIONS for each path.

    The framework makes such handlers by itself, but where a path has several functions, it names the
    methods of the first alone.
    """
    methods: dict[str, set[Method]] = defaultdict(set)
    for handler in handlers:
        for path in handler.paths:
            methods[path] |= handler.http_methods
    return [_options_at(path, allowed(found)) for path, found in methods.items()]


def _options_at(path: str, allow: str) -> HTTPRouteHandler:
    @route(path, http_method="OPTIONS", status_code=204, include_in_schema=False, sync_to_thread=False)
    def tell_methods() -> Response[None]:
        return Response(None, headers={"Allow": allow})

    return tell_methods
