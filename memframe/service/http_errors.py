"""Answer errors as ``application/problem+json`` (RFC 9457) with a stable ``code``; headers of every answer."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from threading import Lock
from typing import Any

from litestar import Request, Response
from litestar.exceptions import HTTPException
from sqlalchemy.exc import DBAPIError

from memframe import wire
from memframe.errors import ServiceError
from memframe.service.clock import Clock
from memframe.service.store.engine import cause_of
from memframe.service.throttle import TooManyCallsError

PROBLEM_TYPE = "application/problem+json"
CLOSED_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

DATABASE_LOG_INTERVAL = timedelta(seconds=5)

_log = logging.getLogger("memframe.service")

_CODES = {404: "no_such_path", 405: "method_not_allowed", 413: "body_too_large"}


def protective_headers(public_url: str) -> list[tuple[bytes, bytes]]:
    """Return the headers of every answer, except the content security policy, for which pages have their own."""
    headers = [(b"x-content-type-options", b"nosniff")]
    if public_url.startswith("https:"):
        headers.append((b"strict-transport-security", b"max-age=31536000"))
    return headers


def problem_body(status: int, code: str, detail: str) -> bytes:
    problem = wire.Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, code=code)
    return wire.encode(problem).reveal()


def problem_response(
    status: int, code: str, detail: str, headers: Mapping[str, str] | None = None
) -> Response[bytes]:
    body = problem_body(status, code, detail)
    headers = {"Cache-Control": "no-store", **(headers or {})}
    return Response(body, status_code=status, media_type=PROBLEM_TYPE, headers=headers)


def answer_service_error(request: Request[Any, Any, Any], error: ServiceError) -> Response[bytes]:
    headers = {}
    if error.status == HTTPStatus.UNAUTHORIZED:
        fault = ', error="invalid_token"' if "authorization" in request.headers else ""
        headers["WWW-Authenticate"] = f'Bearer realm="memframe"{fault}'
    if isinstance(error, TooManyCallsError):
        headers["Retry-After"] = str(error.retry_after_s)
    return problem_response(error.status or 400, error.code or "invalid_request", str(error), headers)


def answer_http_error(_: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    """Answer a refusal of the web framework: no such path, another method, too long a body."""
    status = error.status_code
    detail = HTTPStatus(status).description or error.detail
    return problem_response(
        status, _CODES.get(status, "invalid_request"), detail, complete_allow(error.headers)
    )


def answer_database_error(request: Request[Any, Any, Any], error: DBAPIError) -> Response[bytes]:
    """Answer 503: the database is locked, full or unreachable. An interrupted commit may have taken effect."""
    errors: DatabaseErrorLog = request.app.state.database_errors
    errors.log(error)
    detail = "the database does not answer at the moment; try again, a create with the same Idempotency-Key"
    return problem_response(503, "database_unavailable", detail, {"Retry-After": "1"})


def answer_failure(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Answer 500; log the type and the place of the error, but not its message, which could quote a memory."""
    place = "".join(traceback.format_tb(error.__traceback__))
    _log.error("%s in %s %s\n%s", type(error).__name__, request.method, request.scope["path"], place)
    return problem_response(500, "internal_error", "the service has failed; its log says where")


class DatabaseErrorLog:
    """Log errors of the database every few seconds, because a line for each refused call would fill the disk."""

    def __init__(self, database: str, *, now: Clock) -> None:
        self._database = database
        self._now = now
        self._lock = Lock()
        self._logged_at: datetime | None = None
        self._n_refused = 0

    def log(self, error: DBAPIError) -> None:
        """Count a call that was refused because of an error; log it, unless one was logged a moment ago."""
        now = self._now()
        with self._lock:
            self._n_refused += 1
            if self._logged_at is not None and now - self._logged_at < DATABASE_LOG_INTERVAL:
                return
            n_refused, self._n_refused, self._logged_at = self._n_refused, 0, now
        log_fields = (self._database, cause_of(error), n_refused)
        _log.error("%s cannot be used: %s; calls answered 503: %d", *log_fields)


def complete_allow(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return the headers of a refusal, with the methods that `RequestGuard` allows: HEAD if GET is, and no OPTIONS.

    >>> complete_allow({"Allow": "GET, OPTIONS"})
    {'allow': 'GET, HEAD'}
    """
    kept = {name.lower(): value for name, value in (headers or {}).items()}
    methods = set(kept.get("allow", "").split(", ")) - {"", "OPTIONS"}
    if methods:
        kept["allow"] = ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))
    return kept
