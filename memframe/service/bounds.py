"""Bound what a client may send, hold and delay on its connections.

Uvicorn limits neither the size of a request's headers, nor the time in which a request must arrive, nor the
connections of one address. A middleware cannot limit them, because it sees a request only after its last header. Of
the 19 tests of ``tests/service/test_server.py``, 16 fail with uvicorn's protocol on httptools and 14 with its protocol
on h11: silent, slow and endless clients get through. `BoundedProtocol` takes up to 4 % of the processor time of a
request to SQLite (``benchmarks/service.py``); h11 would add 20 to 70 %.

Its refusals (400, 408, 431, 503) are problems like those of the application, with the same protective headers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from typing import Any, Literal

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from memframe.service.http_errors import CLOSED_POLICY, PROBLEM_TYPE, problem_body, protective_headers
from memframe.service.throttle import group_address

MAX_REQUEST_HEAD_BYTES = 65_536
"""Most bytes of request line and headers together; also of trailers, and of the extension of a chunk."""

REFUSAL_CODES = {
    400: "invalid_http",
    408: "request_timeout",
    431: "headers_too_large",
    503: "too_many_connections",
}

MAX_PIPELINED = 16
"""Most pipelined requests that wait on one connection."""

KEEP_ALIVE_S = 5
"""Time from an answer to the next request."""

HEAD_TIMEOUT_S = 20
"""Time from the connection, or from the end of `KEEP_ALIVE_S`, to the last header."""

REQUEST_TIMEOUT_S = 60
"""Time from the last header to the last byte of the body: a megabyte at 17 KB per second."""

ANSWER_TIMEOUT_S = 30
MIN_ANSWER_BYTES_PER_S = 1000
"""A client that reads an answer more slowly than this for `ANSWER_TIMEOUT_S` is disconnected."""

CHECK_EVERY_S = 5
"""Time between two checks of a connection; a timer for each request would cost more."""


def _affordable_connections() -> int:
    """Return half the file descriptors of this process, at most 10,000; the rest is for files such as the database."""
    try:
        import resource  # noqa: PLC0415 - Windows has none
    except ImportError:
        return 10_000
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 10_000 if soft == resource.RLIM_INFINITY else min(10_000, soft // 2)


MAX_CONNECTIONS = _affordable_connections()
"""Most open connections of each process that serves."""

CONNECTIONS_PER_ADDRESS = max(32, MAX_CONNECTIONS // 4)
"""Most open connections of one network address (IPv6: of one /64), in each process that serves."""


class ConnectionBounds:
    """Connections of a process by network address, and the headers of refusals.

    `trusted_proxies` (addresses and networks) have no limit, because they connect on behalf of many clients.
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
        except ValueError:  # a Unix socket has no address
            return True


class StallWatch:
    """Time for which a client has read hardly anything of an answer."""

    def __init__(self) -> None:
        self.unsent_bytes = 0
        self._stalled_s = 0.0

    def has_stalled(self, unsent_bytes: int) -> bool:
        """Compare with the last check, `CHECK_EVERY_S` ago; True once the client has stalled for `ANSWER_TIMEOUT_S`.

        More unsent bytes than before also show that the client reads, because the next part of a streamed answer is
        written only after most of the part before has been sent.
        """
        change, self.unsent_bytes = abs(self.unsent_bytes - unsent_bytes), unsent_bytes
        is_reading = unsent_bytes == 0 or change >= MIN_ANSWER_BYTES_PER_S * CHECK_EVERY_S
        self._stalled_s = 0.0 if is_reading else self._stalled_s + CHECK_EVERY_S
        return self._stalled_s > ANSWER_TIMEOUT_S


class BoundedProtocol(HttpToolsProtocol):
    """A connection, with bounds on what it may send, and on how long it may take.

    ========  ==============================  ===========================================  ==================
    phase     begins with                     ends at the latest after                     then
    ========  ==============================  ===========================================  ==================
    waiting   the connection, or an answer    `HEAD_TIMEOUT_S`, after an answer with       is closed
                                              `KEEP_ALIVE_S` on top
    head      the first byte of a request     the deadline of the waiting phase            is refused with 408
    body      the last header                 `REQUEST_TIMEOUT_S`                          is refused with 408
    waiting   the last byte of the body       no deadline until the answer is complete     see `StallWatch`
    ========  ==============================  ===========================================  ==================

    Bytes are counted until the headers are complete, and again between the chunks of a body. Only methods that uvicorn
    and httptools call are overridden; the only private one is `_unsupported_upgrade_warning`.
    """

    def __init__(self, *args: Any, bounds: ConnectionBounds, **options: Any) -> None:
        super().__init__(*args, **options)
        self._bounds = bounds

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn does
        """Wait for a request, or refuse one connection too many."""
        super().connection_made(transport)
        self._phase: Literal["waiting", "head", "body"] = "waiting"
        self._refused = False
        self._head_bytes = 0
        self._uncounted_bytes = 0  # received since a header, chunk or body was last complete
        self._stall_watch = StallWatch()
        self._deadline: float | None = self.loop.time() + HEAD_TIMEOUT_S
        self._timer = self.loop.call_later(CHECK_EVERY_S, self._check)
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
        if self._uncounted_bytes > MAX_REQUEST_HEAD_BYTES and not self.transport.is_closing():
            self._refuse_head()

    def on_message_begin(self) -> None:
        """Start counting the bytes of the headers."""
        super().on_message_begin()
        self._phase = "head"
        self._head_bytes = 0
        if self._deadline is None:  # it came before the answer to the last request was complete
            self._deadline = self.loop.time() + HEAD_TIMEOUT_S

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header; ignore a trailer, which must not count as one (RFC 9110 section 6.5.1)."""
        if self._phase == "head":
            self._count(len(name) + len(value) + 4)
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Pass the request on, and wait for its body."""
        if len(self.pipeline) >= MAX_PIPELINED:
            raise ValueError  # the parser stops, and the connection is closed
        self._phase = "body"
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
        self._phase = "waiting"
        if self.cycle.response_complete:  # it was refused before its body had arrived
            self._await_next()
        else:
            self._deadline = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, if this one was received completely."""
        super().on_response_complete()
        if self._phase == "waiting" and self.cycle.response_complete:
            self._await_next()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request at which the parser or a bound stopped."""
        if self._head_bytes > MAX_REQUEST_HEAD_BYTES:
            self._refuse_head()
        else:
            self._refuse(400, msg)

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: some clients always offer to upgrade."""

    def _await_next(self) -> None:
        self._deadline = self.loop.time() + KEEP_ALIVE_S + HEAD_TIMEOUT_S

    def _count(self, n_bytes: int) -> None:
        self._head_bytes += n_bytes
        if self._head_bytes > MAX_REQUEST_HEAD_BYTES:
            raise ValueError  # the parser stops, and asks for `send_400_response`

    def _refuse_head(self) -> None:
        self._refuse(
            431,
            f"The request target and headers are longer than {MAX_REQUEST_HEAD_BYTES:,} bytes; send fewer.",
        )

    def _refuse(self, status: int, message: str, header: bytes = b"") -> None:
        """Answer once, unless an earlier answer is being sent, and close.

        The timer closes the connection: closing at once, with bytes unread, could lose the answer.
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

    def _check(self) -> None:
        """Close the connection after its deadline, after a refusal was sent, or if the client has stalled."""
        self._timer = self.loop.call_later(CHECK_EVERY_S, self._check)
        has_stalled = self._stall_watch.has_stalled(self.transport.get_write_buffer_size())
        if has_stalled or (self._refused and not self._stall_watch.unsent_bytes):
            self.transport.abort()
        elif self._deadline is not None and self.loop.time() > self._deadline and not self._refused:
            if self.flow.read_paused:  # the service is slow, not the client
                self._deadline = self.loop.time() + REQUEST_TIMEOUT_S
            elif self._phase == "waiting":
                self.transport.close()
            else:
                self._refuse(408, "The request did not arrive in time.")
