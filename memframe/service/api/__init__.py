"""The API of the specification, one function an endpoint.

Searches run in threads of their own, writes in those of the group commit; short reads run on the event loop only with
SQLite, which answers at once.
"""

from __future__ import annotations

from litestar import Router

from memframe.service.api.accounts import ACCOUNT_ROUTES
from memframe.service.api.memories import MEMORY_ROUTES
from memframe.service.deployment import API_PREFIX
from memframe.service.http_errors import options_handlers


def make_api_router() -> Router:
    """Return all endpoints, below the prefix of this version."""
    routes = [*ACCOUNT_ROUTES, *MEMORY_ROUTES]
    return Router(
        API_PREFIX,
        route_handlers=[*options_handlers(routes), *routes],
        response_headers={"Cache-Control": "no-store"},
    )
