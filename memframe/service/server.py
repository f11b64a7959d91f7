"""Serve the application with uvicorn, with bounds on what a client may send, hold and delay.

Uvicorn bounds neither the headers of a request, nor the time in which it must arrive, nor the connections of one
address; `BoundedProtocol` does. Its refusals (400, 408, 431, 503) are problems like those of the application, with the
same protective headers.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import signal
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from ipaddress import ip_address, ip_network
from threading import Thread
from typing import Any

import uvicorn
from litestar.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.supervisors import Multiprocess

from memframe.errors import ConfigError
from memframe.service.http_errors import CLOSED_POLICY, PROBLEM_TYPE, problem_body, protective_headers
from memframe.service.throttle import group_address

BACKLOG = 2048
STOP_TIMEOUT_S = 5

HEAD_BYTES = 65_536
"""Most bytes of request line and headers together; also of trailers, and of the extension of a chunk."""

REFUSAL_CODES = {
    400: "invalid_http",
    408: "request_timeout",
    431: "headers_too_large",
    503: "too_many_connections",
}

MAX_PIPELINED = 16
"""Requests of a connection that wait for the answer to the one before them."""

KEEP_ALIVE_S = 5
HEAD_TIMEOUT_S = 20
"""From the connection, or the end of the time that it is kept alive, to the last header."""

REQUEST_TIMEOUT_S = 60
"""From the last header to the last byte of the body: a megabyte at 17 KB a second."""

ANSWER_TIMEOUT_S = 30
MIN_ANSWER_BYTES_PER_S = 1000
"""A client that takes less than that for so long is disconnected."""

LOOK_EVERY_S = 5


def _affordable_connections() -> int:
    """Return half the file descriptors of this process: the rest is for the database, and the like."""
    try:
        import resource  # noqa: PLC0415 - Windows has none
    except ImportError:
        return 10_000
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 10_000 if soft == resource.RLIM_INFINITY else min(10_000, soft // 2)


MAX_CONNECTIONS = _affordable_connections()
"""Open connections of each process that serves."""

CONNECTIONS_PER_ADDRESS = max(32, MAX_CONNECTIONS // 4)
"""Open connections of one network address, for each process that serves; of IPv6 of a /64."""


class ConnectionBounds:
    """Connections of a process by network address, and the headers of refusals.

    Those of `trusted_proxies` (addresses and networks) are not counted: theirs are the connections of many clients.
    """

    def __init__(self, public_url: str, per_address: int, trusted_proxies: Sequence[str]) -> None:
        policy = (b"content-security-policy", CLOSED_POLICY.encode())
        headers = [*protective_headers(public_url), policy, (b"cache-control", b"no-store")]
        self.headers = b"".join(b"%b: %b\r\n" % header for header in headers)
        self._per_address = per_address
        self._trusted = [ip_network(proxy) for proxy in trusted_proxies]
        self._open: Counter[str] = Counter()

    def open(self, address: str) -> bool:
        """Count a connection; False if it is one too many."""
        group = group_address(address)
        self._open[group] += 1
        return self._open[group] <= self._per_address or self._is_trusted(address)

    def close(self, address: str) -> None:
        """Stop counting a connection."""
        group = group_address(address)
        self._open[group] -= 1
        if not self._open[group]:
            del self._open[group]

    def _is_trusted(self, address: str) -> bool:
        try:
            return any(ip_address(address) in network for network in self._trusted)
        except ValueError:  # of a Unix socket
            return True


class BoundedProtocol(HttpToolsProtocol):
    """A connection, with bounds on what it may send, and on how long it may take.

    Bytes are counted until the headers are complete, and again between the chunks of a body. One timer checks the
    connection every few seconds: one for each request would cost more.
    """

    def __init__(self, *args: Any, bounds: ConnectionBounds, **options: Any) -> None:
        super().__init__(*args, **options)
        self._bounds = bounds

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn does
        """Wait for a request, or refuse one connection too many."""
        super().connection_made(transport)
        self._in_head = True
        self._has_begun = False
        self._is_complete = True  # the request that was received last
        self._refused = False
        self._head_bytes = 0
        self._uncounted_bytes = 0
        self._unsent_bytes = 0
        self._stalled_s = 0.0
        self._deadline: float | None = self.loop.time() + HEAD_TIMEOUT_S
        self._timer = self.loop.call_later(LOOK_EVERY_S, self._look)
        self._address = self.client[0] if self.client else ""
        if not self._bounds.open(self._address):
            self._refuse(503, "Your address has too many connections; close some.", b"retry-after: 5\r\n")
        elif len(self.connections) > MAX_CONNECTIONS:
            self._refuse(503, "The service has too many connections; try again later.", b"retry-after: 5\r\n")

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._bounds.close(self._address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; refuse endless headers, trailers and chunk extensions."""
        if self._refused:
            return
        self._uncounted_bytes += len(data)
        super().data_received(data)
        if self._uncounted_bytes > HEAD_BYTES and not self.transport.is_closing():
            self._refuse_head()

    def on_message_begin(self) -> None:
        """Start counting the bytes of the headers."""
        super().on_message_begin()
        self._in_head = self._has_begun = True
        self._is_complete = False
        self._head_bytes = 0
        if self._deadline is None:  # sent before the last answer was there
            self._deadline = self.loop.time() + HEAD_TIMEOUT_S

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header; ignore a trailer, which must not count as one (RFC 9110 section 6.5.1)."""
        if self._in_head:
            self._count(len(name) + len(value) + 4)
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Pass the request on, and wait for its body."""
        if len(self.pipeline) >= MAX_PIPELINED:
            raise ValueError  # the parser stops, and the connection is closed
        self._in_head = False
        self._uncounted_bytes = 0
        self._deadline = self.loop.time() + REQUEST_TIMEOUT_S
        super().on_headers_complete()

    def on_chunk_header(self) -> None:
        self._uncounted_bytes = 0

    def on_body(self, body: bytes) -> None:
        self._uncounted_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the deadline of this request."""
        self._uncounted_bytes = 0
        self._has_begun, self._is_complete = False, True
        if self.cycle.response_complete:  # it was refused before its body was there
            self._await_next()
        else:
            self._deadline = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, if this one was received completely."""
        super().on_response_complete()
        if self._is_complete and self.cycle.response_complete:
            self._await_next()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request at which the parser or a bound stopped."""
        if self._head_bytes > HEAD_BYTES:
            self._refuse_head()
        else:
            self._refuse(400, msg)

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: some clients always offer to upgrade."""

    def _await_next(self) -> None:
        self._deadline = self.loop.time() + KEEP_ALIVE_S + HEAD_TIMEOUT_S

    def _count(self, n_bytes: int) -> None:
        self._head_bytes += n_bytes
        if self._head_bytes > HEAD_BYTES:
            raise ValueError  # the parser stops, and asks for `send_400_response`

    def _refuse_head(self) -> None:
        self._refuse(431, f"The request target and headers are longer than {HEAD_BYTES:,} bytes; send fewer.")

    def _refuse(self, status: int, message: str, header: bytes = b"") -> None:
        """Answer once, unless an earlier answer is being sent, and close.

        The connection is closed by the timer: one that is closed at once, with bytes unread, may lose the answer.
        """
        if self._refused:
            return
        self._refused = True
        waiting: RequestResponseCycle | None = self.cycle
        if waiting and not waiting.response_complete:
            waiting.disconnected = True
            waiting.message_event.set()
            if waiting.response_started or self.pipeline:
                self.transport.close()
                return
        body = problem_body(status, REFUSAL_CODES[status], message)
        head = b"content-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n%b%b\r\n"
        headers = head % (PROBLEM_TYPE.encode(), len(body), header, self._bounds.headers)
        self.transport.write(STATUS_LINE[status] + headers + body)
        self.flow.pause_reading()
        self.transport.write_eof()

    def _look(self) -> None:
        """Close the connection after its deadline."""
        self._timer = self.loop.call_later(LOOK_EVERY_S, self._look)
        if self._has_stalled() or (self._refused and not self._unsent_bytes):
            self.transport.abort()
        elif self._deadline is not None and self.loop.time() > self._deadline and not self._refused:
            if self.flow.read_paused:  # it is the service that is slow
                self._deadline = self.loop.time() + REQUEST_TIMEOUT_S
            elif self._has_begun:
                self._refuse(408, "The request did not arrive in time.")
            else:
                self.transport.close()

    def _has_stalled(self) -> bool:
        """Return True if a client has hardly read anything of an answer for too long."""
        before, self._unsent_bytes = self._unsent_bytes, self.transport.get_write_buffer_size()
        if self._unsent_bytes == 0 or before - self._unsent_bytes >= MIN_ANSWER_BYTES_PER_S * LOOK_EVERY_S:
            self._stalled_s = 0
        else:
            self._stalled_s += LOOK_EVERY_S
        return self._stalled_s > ANSWER_TIMEOUT_S


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 takes a free one."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # named TCP outright: only of such sockets does asyncio switch Nagle's delay of 40 ms off
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((host, port))
            listening.listen(BACKLOG)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        reason = error.strerror or "the port is not free"
        message = f"{host} port {port} cannot be used: {reason}; choose another host or port"
        raise ConfigError(message) from None
    return listening


def url_of(listening: socket.socket) -> str:
    """Return the http address of a listening socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make_server(
    app: ASGIApp | Callable[[], ASGIApp],
    public_url: str,
    *,
    trusted_proxies: Sequence[str] = (),
    connections_per_address: int = CONNECTIONS_PER_ADDRESS,
    **options: Any,
) -> uvicorn.Server:
    """Make a server of the application; `options` are uvicorn's.

    The ``X-Forwarded-For`` of `trusted_proxies` (addresses and networks) is believed, and their connections are not
    counted.
    """
    bounds = ConnectionBounds(public_url, connections_per_address, trusted_proxies)
    protocol: Any = partial(BoundedProtocol, bounds=bounds)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE_S,
        access_log=False,  # addresses hold what people search for
        log_config=None,
        server_header=False,
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        timeout_graceful_shutdown=STOP_TIMEOUT_S,
        **options,
    )
    return uvicorn.Server(config)


def serve_with(
    make_app: Callable[[], ASGIApp],
    listening: socket.socket,
    *,
    public_url: str,
    workers: int = 1,
    **options: Any,
) -> None:
    """Serve at a socket until a signal; requests that are being processed are finished.

    `make_app` makes the application, once in each process; other processes must be able to import it. One of `workers`
    is this process itself; with more, it supervises and restarts them. `options` are those of `make_server`.
    """
    server = make_server(make_app, public_url, factory=True, workers=workers, **options)
    if workers == 1:
        server.run([listening])
    else:
        Multiprocess(server.config, sockets=[listening]).run()


def end_with_parent() -> None:
    """Stop this process when the one that started it has ended; else it would keep the port."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def stop_after_parent() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=stop_after_parent, daemon=True).start()


def freeze_objects() -> None:
    """Exempt all present objects from garbage collection: a full collection would walk them and delay requests."""
    gc.collect()
    gc.freeze()
