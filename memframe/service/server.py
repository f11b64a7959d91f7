"""The service on a socket: uvicorn, configured for a service of secrets.

Uvicorn bounds neither the headers of a request nor the time in which it must arrive; `BoundedProtocol` does. What
it refuses is answered in plain text (400, 408, 431 or 503), as no request has reached the application yet.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import signal
import socket
from collections.abc import Callable, Sequence
from threading import Thread

import uvicorn
from litestar.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.supervisors import Multiprocess

from memframe.errors import ConfigError

BACKLOG = 2048
STOP_TIMEOUT_S = 5

HEAD_BYTES = 65_536
"""Of request line and headers together, and of the trailers or the extension of a chunk."""

MAX_PIPELINED = 16
"""Requests that may wait on a connection for the answer to the one before them."""

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
    """Return how many connections leave half the descriptors of this process for the database and the rest."""
    try:
        import resource  # noqa: PLC0415 - Windows has none
    except ImportError:
        return 10_000
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 10_000 if soft == resource.RLIM_INFINITY else min(10_000, soft // 2)


MAX_CONNECTIONS = _affordable_connections()
"""At the same time, for each process that serves."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection, with bounds on what it may send, and on how long it may take.

    Bytes are counted until the headers are complete, and again between the chunks of a body. One timer looks at
    the connection every few seconds, so that no request pays for a timer of its own.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn does
        """Begin to wait for a request, or refuse one connection too many."""
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
        if len(self.connections) > MAX_CONNECTIONS:
            self._refuse(503, "The service has too many connections; try again later.", b"retry-after: 5\r\n")

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking at it."""
        self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has come, and refuse headers, trailers and chunk extensions without end."""
        if self._refused:
            return
        self._uncounted_bytes += len(data)
        super().data_received(data)
        if self._uncounted_bytes > HEAD_BYTES and not self.transport.is_closing():
            self._refuse_head()

    def on_message_begin(self) -> None:
        """Begin to count the bytes of a head."""
        super().on_message_begin()
        self._in_head = self._has_begun = True
        self._is_complete = False
        self._head_bytes = 0
        if self._deadline is None:  # sent before the last answer was there
            self._deadline = self.loop.time() + HEAD_TIMEOUT_S

    def on_url(self, url: bytes) -> None:
        """Count a piece of the request target."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header; leave out a trailer, which must not pass for one (RFC 9110 section 6.5.1)."""
        if self._in_head:
            self._count(len(name) + len(value) + 4)
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Hand the request on, and begin to wait for its body."""
        if len(self.pipeline) >= MAX_PIPELINED:
            raise ValueError  # the parser stops, and the connection is closed
        self._in_head = False
        self._uncounted_bytes = 0
        self._deadline = self.loop.time() + REQUEST_TIMEOUT_S
        super().on_headers_complete()

    def on_chunk_header(self) -> None:
        """Begin to count anew what is neither head nor body: the extension of a chunk, and trailers."""
        self._uncounted_bytes = 0

    def on_body(self, body: bytes) -> None:
        """Hand a piece of the body on."""
        self._uncounted_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Stop waiting for this request."""
        self._uncounted_bytes = 0
        self._has_begun, self._is_complete = False, True
        if self.cycle.response_complete:  # it was refused before its body was there
            self._await_next()
        else:
            self._deadline = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, if this one is there as a whole."""
        super().on_response_complete()
        if self._is_complete and self.cycle.response_complete:
            self._await_next()

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser or one of the bounds has stopped at."""
        if self._head_bytes > HEAD_BYTES:
            self._refuse_head()
        else:
            self._refuse(400, msg)

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: whoever offers another protocol, as some clients always do, is served in this one."""

    def _await_next(self) -> None:
        self._deadline = self.loop.time() + KEEP_ALIVE_S + HEAD_TIMEOUT_S

    def _count(self, n_bytes: int) -> None:
        self._head_bytes += n_bytes
        if self._head_bytes > HEAD_BYTES:
            raise ValueError  # the parser stops, and asks for `send_400_response`

    def _refuse_head(self) -> None:
        self._refuse(431, f"The request target and headers are longer than {HEAD_BYTES:,} bytes; send fewer.")

    def _refuse(self, status: int, said: str, header: bytes = b"") -> None:
        """Answer, unless the answer to an earlier request is under way, and close.

        What is still being sent is left to the other side's buffers for a moment: a connection that is closed at
        once, with bytes unread, may take the answer with it.
        """
        self._refused = True
        waiting: RequestResponseCycle | None = self.cycle
        if waiting and not waiting.response_complete:
            waiting.disconnected = True
            waiting.message_event.set()
            if waiting.response_started or self.pipeline:
                self.transport.close()
                return
        head = b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\nconnection: close\r\n%b\r\n"
        self.transport.write(STATUS_LINE[status] + head % (len(said), header) + said.encode())
        self.flow.pause_reading()
        self.transport.write_eof()

    def _look(self) -> None:
        """Close the connection where its time is over."""
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
        """Return True where a client has hardly taken anything of an answer for too long."""
        before, self._unsent_bytes = self._unsent_bytes, self.transport.get_write_buffer_size()
        if self._unsent_bytes == 0 or before - self._unsent_bytes >= MIN_ANSWER_BYTES_PER_S * LOOK_EVERY_S:
            self._stalled_s = 0
        else:
            self._stalled_s += LOOK_EVERY_S
        return self._stalled_s > ANSWER_TIMEOUT_S


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at a host and port; port 0 takes a free one."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # named TCP outright: only of such sockets does asyncio switch Nagle's delay of 40 ms off
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise _cannot_listen(host, port, error) from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise _cannot_listen(host, port, error) from None
    return listening


def _cannot_listen(host: str, port: int, error: OSError) -> ConfigError:
    reason = error.strerror or "the port is not free"
    return ConfigError(f"{host} port {port} cannot be listened at: {reason}; choose another host or port")


def url_of(listening: socket.socket) -> str:
    """The address of a listening socket, in plain http."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make_server(app: ASGIApp) -> uvicorn.Server:
    """A server for the application, in this process."""
    return uvicorn.Server(_config(app))


def serve_with(
    make_app: Callable[[], ASGIApp],
    listening: socket.socket,
    *,
    workers: int = 1,
    trusted_proxies: Sequence[str] = (),
) -> None:
    """Serve at a socket until a signal ends it; what is under way then is finished first.

    Parameters
    ----------
    make_app : callable
        Makes the application, once in each process; other processes must be able to import it.
    listening : socket
    workers : int, default 1
        Processes that serve. One is this process itself; of more this one watches over them, and starts
        another for one that ends.
    trusted_proxies : sequence of str
        Addresses and networks whose word about the address of a caller (``X-Forwarded-For``) is believed.
    """
    config = _config(make_app, factory=True, workers=workers, trusted_proxies=trusted_proxies)
    server = uvicorn.Server(config)
    if workers == 1:
        server.run([listening])
    else:
        Multiprocess(config, sockets=[listening]).run()


def end_with_parent() -> None:
    """In a process that serves for another one: stop once that is gone, however it ended.

    Otherwise it would go on at a port that the next start finds taken.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        Thread(target=_stop_after, args=(parent.join,), daemon=True).start()


def freeze_what_stays() -> None:
    """In a process that serves and does nothing else: whatever is there by now stays, and is no garbage.

    A full round of Python's collector walks all objects, and every request waits for it. Some hundred thousand
    belong to the libraries and the application, which made that 60 ms; what requests leave behind takes 2.
    """
    gc.collect()
    gc.freeze()


def _stop_after(wait: Callable[[], None]) -> None:
    wait()
    os.kill(os.getpid(), signal.SIGTERM)


def _config(
    app: ASGIApp | Callable[[], ASGIApp],
    *,
    factory: bool = False,
    workers: int = 1,
    trusted_proxies: Sequence[str] = (),
) -> uvicorn.Config:
    """Return the settings, without uvicorn's access log: addresses hold what people search for."""
    return uvicorn.Config(
        app,
        factory=factory,
        http=BoundedProtocol,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE_S,
        workers=workers,
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        timeout_graceful_shutdown=STOP_TIMEOUT_S,
    )
