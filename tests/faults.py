"""A proxy between client and service that breaks what a test tells it to break, and records the rest.

::

    with FaultProxy(service.base_url) as proxy:
        proxy.script(LIST_MEMORIES, passed, truncated(100))
        client = connect(proxy.base_url, api_key=...)

A fault is a function from the request and a way to forward it to a `Reply`. Each request to an endpoint
takes the next fault of its script; when there are none left, requests pass.
"""

import json
import re
import socket
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from memframe.wire import Endpoint

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "host", "accept-encoding", "content-length"}
HTML = b"<!doctype html><html><title>Sign in to the hotel's network</title></html>"


class Request(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


class Reply(NamedTuple):
    """What goes back: whole, or the first `sent_bytes` of the body before the connection is cut.

    Without a `status` it is cut before anything was sent.
    """

    status: int | None
    headers: Mapping[str, str] = {}
    body: bytes = b""
    sent_bytes: int | None = None

    def with_body(self, body: bytes, content_type: str = "application/json") -> Self:
        headers = {name: text for name, text in self.headers.items() if name.lower() != "content-type"}
        return self._replace(body=body, headers={**headers, "Content-Type": content_type})


Forward = Callable[[Request], Reply]
Fault = Callable[[Request, Forward], Reply]


# Faults


def passed(request: Request, forward: Forward) -> Reply:
    """No fault."""
    return forward(request)


def cut(request: Request, forward: Forward) -> Reply:
    """The connection breaks before the service has seen the request."""
    return Reply(None)


def lost(request: Request, forward: Forward) -> Reply:
    """The service does what it was asked, and the connection breaks before its answer."""
    forward(request)
    return Reply(None)


def answered(status: int, body: Any = None, **headers: str) -> Fault:
    """An answer that the service did not give; ``Retry_After="0"`` names a header."""
    content = b"" if body is None else json.dumps(body).encode()
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return lambda request, forward: Reply(status, {"Content-Type": "application/json", **named}, content)


refused = answered(422, {"title": "out of order"})
"""Some failure, where it does not matter which: one that nobody takes for passing and sends again."""


def truncated(sent_bytes: int) -> Fault:
    """The answer breaks off in the middle of its body."""
    return lambda request, forward: forward(request)._replace(sent_bytes=sent_bytes)


def shortened(sent_bytes: int) -> Fault:
    """Part of the body, passed off as the whole: what a broken proxy makes of a broken connection."""

    def fault(request: Request, forward: Forward) -> Reply:
        reply = forward(request)
        return reply._replace(body=reply.body[:sent_bytes])

    return fault


def html(request: Request, forward: Forward) -> Reply:
    """A sign-in page of some network in the place of the answer, with status 200."""
    return Reply(200).with_body(HTML, "text/html")


def changed(change: Callable[[dict[str, Any]], object]) -> Fault:
    """The answer's JSON after `change`, which works in place."""

    def fault(request: Request, forward: Forward) -> Reply:
        reply = forward(request)
        document = json.loads(reply.body)
        change(document)
        return reply.with_body(json.dumps(document).encode())

    return fault


def without_field(name: str) -> Fault:
    """The answer without a field."""
    return changed(lambda document: document.pop(name))


def clamped(limit: int) -> Fault:
    """The service gives smaller pages than were asked for."""
    return lambda request, forward: forward(request._replace(query={**request.query, "limit": str(limit)}))


# The proxy


class FaultProxy:
    """Listens on a free port of this machine and forwards to `target`, unless the script says otherwise."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._target = parts.netloc
        self._prefix = parts.path.rstrip("/")
        self._scripts: dict[Endpoint, deque[Fault]] = defaultdict(deque)
        self._standing: dict[Endpoint, Fault] = {}
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self.requests: list[Request] = []
        self.ports: set[int] = set()
        """Of all connections that were opened to it."""
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="fault-proxy")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        with self._lock:
            for connection in self._connections:
                _shut(connection)
        self._server.server_close()
        self._thread.join()

    @property
    def base_url(self) -> str:
        """The target's address, with this proxy in the place of its host."""
        return f"http://127.0.0.1:{self._server.server_port}{self._prefix}"

    def script(self, endpoint: Endpoint, *faults: Fault) -> None:
        """One fault for each of the next requests to `endpoint`."""
        self._scripts[endpoint].extend(faults)

    def always(self, endpoint: Endpoint, fault: Fault) -> None:
        """A fault for every request to `endpoint` that is not scripted."""
        self._standing[endpoint] = fault

    def requests_to(self, endpoint: Endpoint) -> list[Request]:
        """The requests to an endpoint so far, in order."""
        return [request for request in self.requests if self._is_to(request, endpoint)]

    def _is_to(self, request: Request, endpoint: Endpoint) -> bool:
        path = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(self._prefix + endpoint.path))
        return request.method == endpoint.method and re.fullmatch(path, request.path) is not None

    def _reply(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            fault = self._next_fault(request)
        return fault(request, self._forwarded)

    def _next_fault(self, request: Request) -> Fault:
        for endpoint, faults in self._scripts.items():
            if faults and self._is_to(request, endpoint):
                return faults.popleft()
        standing = (fault for endpoint, fault in self._standing.items() if self._is_to(request, endpoint))
        return next(standing, passed)

    def _forwarded(self, request: Request) -> Reply:
        connection = HTTPConnection(self._target, timeout=30)
        try:
            headers = {name: text for name, text in request.headers.items() if name.lower() not in HOP_BY_HOP}
            connection.request(
                request.method, f"{request.path}?{urlencode(request.query)}", request.body, headers
            )
            answer = connection.getresponse()
            kept = {name: text for name, text in answer.getheaders() if name.lower() not in HOP_BY_HOP}
            return Reply(answer.status, kept, answer.read())
        finally:
            connection.close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body leave together; apart, each answer would wait 40 ms for an ACK

            def setup(self) -> None:
                with proxy._lock:
                    proxy._connections.add(self.request)
                    proxy.ports.add(self.client_address[1])
                super().setup()

            def finish(self) -> None:
                super().finish()
                with proxy._lock:
                    proxy._connections.discard(self.request)

            def answer(self) -> None:
                url = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                query = dict(parse_qsl(url.query, keep_blank_values=True))
                reply = proxy._reply(Request(self.command, url.path, query, dict(self.headers), body))
                self.send(reply)

            def send(self, reply: Reply) -> None:
                if reply.status is not None:
                    self.send_response_only(reply.status)
                    for name, text in {**reply.headers, "Content-Length": str(len(reply.body))}.items():
                        self.send_header(name, text)
                    self.end_headers()
                    self.wfile.write(reply.body[: reply.sent_bytes])
                if reply.status is None or reply.sent_bytes is not None:
                    self.wfile.flush()
                    self.close_connection = True
                    _shut(self.request)

            do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - the names that http.server calls

        return Handler


class _Server(ThreadingHTTPServer):
    """Does not complain of clients that hang up, as those do who need no more pages."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the other end was faster
