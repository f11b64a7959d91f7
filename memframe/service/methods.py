"""What OPTIONS answers: the methods of a path, all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from litestar import Response, route
from litestar.handlers import HTTPRouteHandler
from litestar.types import Method


def options_of(handlers: Sequence[HTTPRouteHandler]) -> list[HTTPRouteHandler]:
    """One handler of OPTIONS for each path.

    The framework makes such handlers by itself, but where a path has several functions, it names the
    methods of the first alone.
    """
    methods: dict[str, set[Method]] = defaultdict(set)
    for handler in handlers:
        for path in handler.paths:
            methods[path] |= handler.http_methods
    return [_options_at(path, ", ".join(sorted({*found, "OPTIONS"}))) for path, found in methods.items()]


def _options_at(path: str, allowed: str) -> HTTPRouteHandler:
    @route(path, http_method="OPTIONS", status_code=204, include_in_schema=False, sync_to_thread=False)
    def tell_methods() -> Response[None]:
        return Response(None, headers={"Allow": allowed})

    return tell_methods
