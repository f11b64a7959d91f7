"""Two addresses for whoever watches over the service: whether it runs, and whether it can work.

They say nothing that others may not know, need no token, and answer under whatever name they are asked.
"""

from __future__ import annotations

from litestar import get

from memframe.service.api.exchange import ApiRequest, deployment_of

HEALTH, READINESS = "/healthz", "/readyz"


@get(HEALTH, include_in_schema=False, sync_to_thread=False)
def tell_health() -> dict[str, str]:
    """This process answers; one that does not may be started again."""
    return {"status": "ok"}


@get(READINESS, include_in_schema=False, sync_to_thread=True)
def tell_readiness(request: ApiRequest) -> dict[str, str]:
    """The database answers, too; while it does not, this is 503, and calls are better sent elsewhere."""
    deployment_of(request).store.is_bound()
    return {"status": "ready"}


HEALTH_ROUTES = [tell_health, tell_readiness]
