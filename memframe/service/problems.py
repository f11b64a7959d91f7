"""Errors as the API answers them: ``application/problem+json`` (RFC 9457) with a stable ``code``."""

from __future__ import annotations

import logging
import traceback
from http import HTTPStatus
from typing import Any

from litestar import Request, Response
from litestar.exceptions import HTTPException
from sqlalchemy.exc import DBAPIError

from memframe import wire
from memframe.errors import ServiceError
from memframe.service.methods import completed
from memframe.service.outage import Outage
from memframe.service.throttle import TooManyCallsError

PROBLEM_TYPE = "application/problem+json"

_log = logging.getLogger("memframe.service")

_CODES = {404: "no_such_path", 405: "method_not_allowed", 413: "body_too_large"}


def problem_response(
    status: int, code: str, detail: str, headers: dict[str, str] | None = None
) -> Response[bytes]:
    """One problem document."""
    problem = wire.Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, code=code)
    headers = {"Cache-Control": "no-store", **(headers or {})}
    return Response(
        wire.encode(problem).reveal(), status_code=status, media_type=PROBLEM_TYPE, headers=headers
    )


def answer_service_error(_: Request[Any, Any, Any], error: ServiceError) -> Response[bytes]:
    """A refusal of ours."""
    headers = {}
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, TooManyCallsError):
        headers["Retry-After"] = str(error.retry_after_s)
    return problem_response(error.status or 400, error.code or "invalid_request", str(error), headers)


def answer_http_error(_: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    """A refusal of the web framework: no such path, another method, too long a body."""
    status = error.status_code
    code = _CODES.get(status, "invalid_request")
    detail = HTTPStatus(status).description or error.detail
    return problem_response(status, code, detail, completed(error.headers))


def answer_database_error(request: Request[Any, Any, Any], error: DBAPIError) -> Response[bytes]:
    """The database is locked, full or away. If that was in the middle of a commit, nobody knows what became of it."""
    outage: Outage = request.app.state.outage
    outage.refused(error)
    detail = "the database does not answer at the moment; try again, a create under the same Idempotency-Key"
    return problem_response(503, "database_unavailable", detail, {"Retry-After": "1"})


def answer_failure(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """A fault of the service itself."""
    _log_failure(request, error)
    return problem_response(500, "internal_error", "the service has failed; its log says where")


def _log_failure(request: Request[Any, Any, Any], error: Exception) -> None:
    """Where it failed and in which way; never the message, which could quote what was to be stored."""
    place = "".join(traceback.format_tb(error.__traceback__))
    _log.error("%s in %s %s\n%s", type(error).__name__, request.method, request.scope["path"], place)
