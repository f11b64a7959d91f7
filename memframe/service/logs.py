"""Logs for machines: a line of JSON for each request, each security event and each fault.

A request is known by method, path template, status, duration and address. Queries, ids, headers and bodies
are not there: they hold what people search for, and keys. A client that leaves before its request is there as a
whole has the status 499.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

import msgspec
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from memframe.service.times import Seconds, instant_text

LOGGERS = ("memframe", "uvicorn")

CLIENT_LEFT = 499
"""Status of a request whose client left before the answer, as other servers log it, too."""

_log = logging.getLogger("memframe.service.requests")
_security_log = logging.getLogger("memframe.service.security")


def log_event(event: str, **known: str | None) -> None:
    """Log a sign-in, a decision, or keys that were made, given out or ended.

    What is known are ids and network addresses: no content, name, e-mail address, key or token.
    """
    _security_log.info(event, extra={"fields": {"event": event, **known}})


class RequestLog:
    """An ASGI application that notes each request to another one.

    Parameters
    ----------
    app : ASGIApp
    seconds : Seconds
    """

    def __init__(self, app: ASGIApp, *, seconds: Seconds) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and note it once it is answered."""
        kind: str = scope["type"]  # "lifespan" too, which the annotation leaves out
        if kind != "http":
            await self._app(scope, receive, send)
            return
        began, statuses = self._seconds(), []

        async def note_status(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            await send(message)

        async def note_leaving() -> Any:
            message = await receive()
            if message["type"] == "http.disconnect" and not statuses:
                statuses.append(CLIENT_LEFT)
            return message

        try:
            await self._app(scope, note_leaving, note_status)
        finally:
            _log.info("request", extra={"fields": self._described(scope, statuses, began)})

    def _described(self, scope: Scope, statuses: list[int], began: float) -> dict[str, Any]:
        client = scope.get("client")
        return {
            "method": scope.get("method"),
            "path": scope.get("path_template"),  # none where no path fits: what was sent may be anything
            "status": statuses[0] if statuses else None,
            "ms": round((self._seconds() - began) * 1000, 1),
            "address": client[0] if client else None,
        }


class JsonLines(logging.Formatter):
    """Log records as lines of JSON.

    >>> record = logging.LogRecord("memframe", logging.INFO, "", 0, "started", None, None)
    >>> record.created = 0
    >>> print(JsonLines().format(record))
    {"at":"1970-01-01T00:00:00.000000Z","level":"info","logger":"memframe","message":"started"}
    """

    def format(self, record: logging.LogRecord) -> str:
        """One record."""
        line = {
            "at": instant_text(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **record.__dict__.get("fields", {}),
        }
        return msgspec.json.encode(line).decode()


def log_as_json() -> None:
    """Write what the service and its server log to standard error, as lines of JSON."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
