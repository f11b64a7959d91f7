"""The web application: every part of the service that answers HTTP, put together in one place."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from litestar import Litestar, Request, Response
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp
from sqlalchemy.exc import InterfaceError, InternalError, OperationalError

from memframe.errors import ServiceError
from memframe.service.api import api_router
from memframe.service.api.idempotency import InFlight
from memframe.service.dashboard import site_router
from memframe.service.deployment import Addresses, Deployment, Place
from memframe.service.health import HEALTH_ROUTES
from memframe.service.hosts import RequestGuard
from memframe.service.logs import RequestLog, log_as_json
from memframe.service.methods import HeadAsGet
from memframe.service.openapi import get_openapi_document
from memframe.service.outage import Outage
from memframe.service.problems import (
    answer_database_error,
    answer_failure,
    answer_http_error,
    answer_service_error,
)
from memframe.service.server import end_with_parent, freeze_what_stays
from memframe.service.site import Site, is_for_people, lost_page
from memframe.service.throttle import Searches

MAX_BODY_BYTES = 1_000_000

UNAVAILABLE = (OperationalError, InterfaceError, InternalError)
"""Errors of a database that is away, busy, full or, as a replica, read-only: it will be well again."""


class AppMaker(NamedTuple):
    """Makes the application in each process that serves it."""

    place: Place
    addresses: Addresses
    log_json: bool

    def make(self) -> ASGIApp:
        """A service that has been started before, opened again for this process."""
        if self.log_json:
            log_as_json()
        end_with_parent()
        app = create_app(self.place.open(), self.addresses)
        freeze_what_stays()
        return RequestLog(app, seconds=time.perf_counter) if self.log_json else app


def create_app(deployment: Deployment, addresses: Addresses) -> ASGIApp:
    """The service at its public addresses, as an ASGI application."""
    searches = Searches()
    outage = Outage(deployment.store.name, now=deployment.now)
    deployment.store.when_connected(outage.connected)
    app = Litestar(
        [api_router(), get_openapi_document, site_router(), *HEALTH_ROUTES],
        state=State(
            {
                "deployment": deployment,
                "addresses": addresses,
                "bearer_tokens": deployment.bearer_tokens(addresses),
                "in_flight": InFlight(),
                "outage": outage,
                "searches": searches,
                "site": Site(deployment, addresses),
            }
        ),
        exception_handlers={
            ServiceError: answer_service_error,
            HTTPException: _answer_http_error,
            **dict.fromkeys(UNAVAILABLE, answer_database_error),
            Exception: answer_failure,
        },
        on_shutdown=[searches.close, deployment.close],
        request_max_body_size=MAX_BODY_BYTES,
        openapi_config=None,
        logging_config=None,
    )
    return RequestGuard(HeadAsGet(app), public_url=addresses.public_url)


def _answer_http_error(request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    """To people a page, to programs a problem document."""
    return lost_page(request, error) if is_for_people(request) else answer_http_error(request, error)
