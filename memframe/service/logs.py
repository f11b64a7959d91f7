"""Log requests, security events and faults as lines of JSON.

A request is logged with method, path template, status, duration and network address. Queries, ids, headers and bodies
are not logged, because they contain search texts and keys.
"""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime
from typing import Any

import msgspec
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from memframe.service.clock import format_instant

LOGGERS = ("memframe", "uvicorn")

CLIENT_LEFT = 499
"""Status of a request whose client disconnected before the answer, as other servers log it."""

_log = logging.getLogger("memframe.service.requests")
_security_log = logging.getLogger("memframe.service.security")


def log_event(event: str, **fields: str | None) -> None:
    """Log a security event, such as a sign-in, a decision, or a key that was made, given out or ended.

    Fields are ids and network addresses only: no content, name, e-mail address, key or token.
    """
    _security_log.info(event, extra={"fields": {"event": event, **fields}})


class RequestLog:
    """ASGI middleware that logs each request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind: str = scope["type"]  # "lifespan" too, which the annotation leaves out
        if kind != "http":
            await self._app(scope, receive, send)
            return
        began_s, statuses = time.perf_counter(), []

        async def note_status(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            await send(message)

        async def note_disconnect() -> Any:
            message = await receive()
            if message["type"] == "http.disconnect" and not statuses:
                statuses.append(CLIENT_LEFT)
            return message

        try:
            await self._app(scope, note_disconnect, note_status)
        finally:
            client = scope.get("client")
            fields = {
                "method": scope.get("method"),
                "path": scope.get("path_template"),  # a path that matches no route may hold anything
                "status": statuses[0] if statuses else None,
                "ms": round((time.perf_counter() - began_s) * 1000, 1),
                "address": client[0] if client else None,
            }
            _log.info("request", extra={"fields": fields})


class JsonLines(logging.Formatter):
    """Format log records as lines of JSON.

    >>> record = logging.LogRecord("memframe", logging.INFO, "", 0, "started", None, None)
    >>> record.created = 0
    >>> print(JsonLines().format(record))
    {"at":"1970-01-01T00:00:00.000000Z","level":"info","logger":"memframe","message":"started"}
    """

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": format_instant(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **record.__dict__.get("fields", {}),
        }
        return msgspec.json.encode(line).decode()


def log_as_json() -> None:
    """Write the logs of the service and its server to standard error, as lines of JSON."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
