"""The API of the specification: one function an endpoint, one file a subject.

Nothing that waits stands in the way of whoever else is waiting: a search runs in a thread, writes have
threads of their own, which wait for the database's lock and for the disk, and short reads stay on the event
loop only where the database is a file of this machine.
"""

from __future__ import annotations

from litestar import Router

from memframe.service.api.memories import MEMORY_ROUTES
from memframe.service.api.requests import REQUEST_ROUTES
from memframe.service.api.tags import TAG_ROUTES
from memframe.service.api.tokens import TOKEN_ROUTES
from memframe.service.deployment import API_PREFIX
from memframe.service.methods import options_of


def api_router() -> Router:
    """Every endpoint, below the prefix of this version."""
    routes = [*TOKEN_ROUTES, *REQUEST_ROUTES, *MEMORY_ROUTES, *TAG_ROUTES]
    return Router(
        API_PREFIX,
        route_handlers=[*options_of(routes), *routes],
        response_headers={"Cache-Control": "no-store"},
    )
