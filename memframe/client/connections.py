"""Connection pool: proxies, trusted certificates, open connections, and the messages of network errors.

`requests` chooses proxy and certificates and holds the pools; urllib3 sends the request. `requests.Session.send` is
not used, because it spends time on redirects, cookies and hooks, which memframe does not need.
"""

from __future__ import annotations

import functools
import io
import math
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse, parse_headers
from os import PathLike
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3 import BaseHTTPResponse, HTTPConnectionPool, Timeout, exceptions
from urllib3.connection import HTTPConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    NewConnectionError,
    ProtocolError,
    ProxyError,
    ReadTimeoutError,
    SSLError,
)

from memframe.address import is_loopback
from memframe.errors import ConfigError, NoAnswerError
from memframe.files import expand_path

CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 60.0
"""Longest time from the end of a request to the last header of its response, and longest silence within its body."""

RESPONSE_TIMEOUT_S = 300.0
"""Longest time from the end of a request to the last byte of its response."""

MAX_RESPONSE_HEAD_BYTES = 65_536
"""Most bytes of status line and headers, with all interim responses before them; also of trailers or a chunk's line."""


class Deadlines(NamedTuple):
    """Seconds from the end of a request to the last header of its response, and to its last byte."""

    head_s: float
    response_s: float


class EndlessLinesError(HTTPException):
    """A response has more bytes of status, header or trailer lines than `MAX_RESPONSE_HEAD_BYTES`."""


_BEFORE_SENDING = (
    ConnectTimeoutError,  # among them NewConnectionError: refused, or no such host
    ProxyError,  # the proxy itself, or the tunnel through it
    ssl.SSLCertVerificationError,
)
"""Errors that are raised before a byte of the request was sent. Others may come later: a TLS error can come in the
middle of a response."""

_READ_FIRST = "; a write may have been carried out, so read before you repeat one"


def to_no_answer_error(host: str, broken: Exception, *, is_read: bool) -> NoAnswerError:
    """Describe a network error without urllib3's own text, which holds the URL with search text and ids.

    ``is_read`` is True if the request writes nothing, so that it may be sent again.
    """
    advice = "Try again later" + ("" if is_read else _READ_FIRST)
    unsent = any(isinstance(cause, _BEFORE_SENDING) for cause in _causes(broken))
    return NoAnswerError(_message(host, broken, advice), sent=not unsent)


def _causes(broken: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes: urllib3 keeps what it caught in ``reason`` or in ``args``."""
    while broken is not None:
        yield broken
        inner = (getattr(broken, "reason", None), *broken.args, broken.__cause__, broken.__context__)
        broken = next((cause for cause in inner if isinstance(cause, BaseException)), None)


def _message(host: str, broken: Exception, advice: str) -> str:
    cause = getattr(broken, "reason", broken)
    if isinstance(cause, SSLError) and any(
        isinstance(each, ssl.SSLCertVerificationError) for each in _causes(broken)
    ):
        return (
            f"cannot trust {host}: its TLS certificate does not verify. If your organisation signs its own, "
            "pass the file with its root certificate as ca_bundle, or set REQUESTS_CA_BUNDLE to it"
        )
    if isinstance(cause, SSLError):
        return (
            f"TLS with {host} failed. Check the port, and that it serves https: the address of a service on this "
            f"machine may begin with http://. {advice}"
        )
    if isinstance(cause, ProxyError):
        return (
            f"cannot reach {host} through the proxy that HTTPS_PROXY or ALL_PROXY names. Check that variable, or "
            "name the host in NO_PROXY"
        )
    if isinstance(cause, NewConnectionError):
        return f"cannot reach {host}. Check the address, and that the service is running"
    if isinstance(cause, ConnectTimeoutError):
        return f"cannot reach {host}: no connection within {CONNECT_TIMEOUT_S:g} s. Check address and network"
    if isinstance(cause, exceptions.TimeoutError):
        return (
            f"{host} went silent for {READ_TIMEOUT_S:g} s, took longer than that for the headers of an answer, or more "
            f"than {RESPONSE_TIMEOUT_S:g} s for a whole answer. {advice}"
        )
    if any(isinstance(each, EndlessLinesError) for each in _causes(broken)):
        return (
            f"{host} sent headers, interim answers or trailers without end: more than {MAX_RESPONSE_HEAD_BYTES:,} "
            f"bytes of them are not read. {advice}"
        )
    return f"{host} closed the connection in the middle of an answer ({type(cause).__name__}). {advice}"


POOL_SIZE = 64
"""Most idle connections that are kept open to one service."""


class PrefetchedRequest:
    """A request that was sent ahead of reading its response; it owns its connection until `close`.

    urllib3 has no public way to send now and read later, so this class takes a connection from the pool and
    returns it with two of the pool's private methods. This is the only place that calls them;
    `test_a_request_is_sent_ahead_of_its_response` fails if urllib3 changes them. Through urllib3's own `urlopen` a load
    takes 1.2 times as long from a nearby service, and 1.4 to 1.5 times as long if a page of 1,000 memories takes 20 ms
    (``benchmarks/load.py``).
    """

    def __init__(self, pool: HTTPConnectionPool) -> None:
        self._pool = pool
        self._connection = cast("HTTPConnection", pool._get_conn())  # noqa: SLF001 - as the class says
        self._is_unread = True

    @property
    def is_connected(self) -> bool:
        """True if the connection is open already, so that sending needs neither proxy nor handshake."""
        return not self._connection.is_closed

    def send(self, request: requests.PreparedRequest, target: str) -> None:
        """Send the request."""
        connection = self._connection
        connection.timeout = CONNECT_TIMEOUT_S if connection.is_closed else READ_TIMEOUT_S
        # a service that closes the connection early may have sent its response before
        with self._raise_as_urllib3(), suppress(BrokenPipeError, ConnectionResetError):
            connection.request(
                str(request.method), target, body=request.body, headers=request.headers, preload_content=False
            )
        connection.timeout = READ_TIMEOUT_S

    @contextmanager
    def response(self) -> Iterator[BaseHTTPResponse]:
        """Give the response, once; the block must read it to its end. Raise urllib3's errors if there is none."""
        with self._raise_as_urllib3(), self._connection.getresponse() as response:
            yield response
        self._is_unread = False

    @contextmanager
    def _raise_as_urllib3(self) -> Iterator[None]:
        """Raise errors of a connection as `urllib3.HTTPConnectionPool.urlopen` does."""
        try:
            yield
        except TimeoutError as silent:
            raise ReadTimeoutError(self._pool, None, "Read timed out.") from silent
        except (OSError, HTTPException) as broken:
            raise ProtocolError("Connection aborted.", broken) from broken

    def close(self) -> None:
        """Return the connection to its pool, once; an unread response is cut off."""
        if self._is_unread:
            self._connection.close()
        self._pool._put_conn(self._connection)  # noqa: SLF001 - as the class says


class TimedBytes(io.RawIOBase):
    """Bytes of one response, read until a deadline, because a socket's timeout starts again with each piece."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, due_at: float) -> None:
        self._raw, self._socket, self.due_at = raw, sock, due_at

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        remaining_s = self.due_at - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError("the response took too long")
        if remaining_s < (self._socket.gettimeout() or math.inf):
            self._socket.settimeout(remaining_s)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _BoundedLines(io.BufferedReader):
    """Reader of one response that gives at most `MAX_RESPONSE_HEAD_BYTES` of lines without data between them.

    Lines are status lines, headers, interim responses, chunk sizes and trailers; http.client does not bound their sum.
    """

    _n_bytes = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        remaining = MAX_RESPONSE_HEAD_BYTES - self._n_bytes
        line = super().readline(remaining + 1 if size is None or size < 0 else min(size, remaining + 1))
        self._n_bytes += len(line)
        if len(line) > remaining:
            raise EndlessLinesError(f"more than {MAX_RESPONSE_HEAD_BYTES:,} bytes of lines")
        return line

    def read(self, size: int | None = -1, /) -> bytes:
        self._n_bytes = 0
        return super().read(size)

    def readinto(self, buffer: Any, /) -> int:
        self._n_bytes = 0
        return super().readinto(buffer)


class FinalResponse(HTTPResponse):
    """Response of http.client with deadlines, without interim responses and malformed header lines.

    http.client skips only interim responses with status 100, not all of them (RFC 9110, 15.2). urllib3 logs malformed
    header lines together with the whole URL, which holds the user's id and search text.
    """

    def __init__(self, sock: socket.socket, *args: Any, deadlines: Deadlines, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        now = time.monotonic()
        self._due_at = now + deadlines.response_s
        self._bytes = TimedBytes(self.fp.detach(), sock, now + min(deadlines))
        self.fp = _BoundedLines(self._bytes)

    def begin(self) -> None:
        super().begin()
        self._bytes.due_at = self._due_at
        self.msg.defects.clear()
        self.msg.set_payload("")

    def _read_status(self) -> tuple[str, int, str]:
        while True:
            line: tuple[str, int, str] = super()._read_status()  # type: ignore[misc]  # the stubs leave it out
            if not HTTPStatus.SWITCHING_PROTOCOLS < line[1] < HTTPStatus.OK:
                return line
            parse_headers(self.fp)


class ConnectionPool(HTTPAdapter):
    """Connections to all services that a client speaks to, by origin."""

    def __init__(self, *, ca_bundle: str | None, deadlines: Deadlines | None = None) -> None:
        super().__init__(pool_maxsize=POOL_SIZE)
        self._ca_bundle = ca_bundle
        self._deadlines = deadlines or Deadlines(READ_TIMEOUT_S, RESPONSE_TIMEOUT_S)
        self._pool_to = functools.cache(self._pool)

    def request(self, request: requests.PreparedRequest) -> BaseHTTPResponse:
        """Send a request whose URL and headers are encoded; the body of the response is still to be read."""
        pool, target = self._route(request)
        return pool.urlopen(
            str(request.method),
            target,
            body=request.body,
            headers=request.headers,
            retries=False,
            timeout=Timeout(connect=CONNECT_TIMEOUT_S, read=self._deadlines.head_s),
            redirect=False,
            assert_same_host=False,  # the pool was chosen by the host
            preload_content=False,
        )

    def prefetch(
        self, request: requests.PreparedRequest, *, connects: bool = True
    ) -> PrefetchedRequest | None:
        """Send a request whose response is read later.

        Return None if no connection is open and either ``connects`` is False or a proxy must be asked first. Over an
        open connection this takes half as long as `request`, because it skips urllib3's retries and proxies.
        """
        pool, target = self._route(request)
        prefetched = PrefetchedRequest(pool)
        if not (prefetched.is_connected or (connects and not pool.proxy)):
            prefetched.close()
            return None
        try:
            prefetched.send(request, target)
        except BaseException:  # Ctrl-C as well: the pool gets its connection back
            prefetched.close()
            raise
        return prefetched

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        self._pool_to.cache_clear()
        super().close()

    def _route(self, request: requests.PreparedRequest) -> tuple[HTTPConnectionPool, str]:
        """Return the pool of a request's origin, and its path with the query."""
        parts = urlsplit(str(request.url))
        origin, path = f"{parts.scheme}://{parts.netloc}", parts.path or "/"
        return self._pool_to(origin), f"{path}?{parts.query}" if parts.query else path

    def _pool(self, origin: str) -> HTTPConnectionPool:
        options = connection_options(origin, self._ca_bundle)
        verify, cert = options["verify"], options["cert"]
        request = requests.PreparedRequest()
        request.prepare_url(origin, None)
        found = self.get_connection_with_tls_context(request, verify, proxies=options["proxies"], cert=cert)
        pool = cast("HTTPConnectionPool", found)
        self.cert_verify(pool, origin, verify, cert)  # type: ignore[no-untyped-call]  # the stubs forgot it
        pool.ConnectionCls = _with_final_responses(pool.ConnectionCls, self._deadlines)
        return pool


@functools.cache
def _with_final_responses(kind: type[HTTPConnection], deadlines: Deadlines) -> type[HTTPConnection]:
    make = functools.partial(FinalResponse, deadlines=deadlines)
    return type(kind.__name__, (kind,), {"response_class": staticmethod(make)})


def connection_options(origin: str, ca_bundle: str | None) -> dict[str, Any]:
    """Choose proxy and certificates for an origin: from the arguments, else from the environment.

    For plain http, which is allowed to this machine only, the environment is ignored. A loopback address is never
    reached through a proxy. A netrc file is never read.

    >>> connection_options("http://127.0.0.1:8000", "root.pem")
    {'proxies': {}, 'verify': 'root.pem', 'cert': None}
    """
    if origin.startswith("http://"):
        return {"proxies": {}, "verify": ca_bundle or True, "cert": None}
    found = requests.Session().merge_environment_settings(origin, {}, None, ca_bundle, None)
    if isinstance(found["verify"], str):
        check_ca_bundle("REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE", found["verify"])
    if is_loopback(urlsplit(origin).hostname or ""):
        found["proxies"] = {}
    return {name: found[name] for name in ("proxies", "verify", "cert")}


def check_ca_bundle(name: str, ca_bundle: str | PathLike[str]) -> str:
    """Return the path of root certificates, which must exist; ``name`` is the setting for the error message."""
    path = expand_path(ca_bundle)
    if not path.exists():
        raise ConfigError(
            f"{name} names {ca_bundle}, which does not exist: correct it, or leave it out to trust the usual "
            "certificates"
        )
    return str(path)
