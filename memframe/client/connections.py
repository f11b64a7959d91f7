"""The way to a service: through which proxies, whose certificates are trusted, and the connections that are kept.

`requests` finds the way and keeps the connections; from there on urllib3, on which it stands, takes the request.
A Session's own `send` would look after redirects, cookies, hooks and histories, none of which memframe has, at
each request anew: for a chain of pages that was a twentieth of its time.

No answer: what broke on the way, in words, and whether anything had been sent by then.
"""

from __future__ import annotations

import functools
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse, parse_headers
from os import PathLike
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3 import BaseHTTPResponse, HTTPConnectionPool, Retry, Timeout, exceptions
from urllib3.connection import HTTPConnection
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ProtocolError, ProxyError, SSLError

from memframe.errors import ConfigError, NoAnswerError
from memframe.files import expand_path

CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 60.0

_BEFORE_SENDING = (
    ConnectTimeoutError,  # among them NewConnectionError: refused, or no such host
    ProxyError,  # the proxy itself, or the tunnel through it
    ssl.SSLCertVerificationError,
)
"""What ends an exchange before a byte of the request has left. Of anything else that is not certain: a TLS
error, say, can also come in the middle of an answer."""

_ADVICE = {
    True: "Try again later",
    False: "Try again later; a write may have been carried out, so read before you repeat one",
}
"""After an answer that did not come: by whether the request may be sent again."""


def no_answer(url: str, broken: Exception, *, repeats: bool) -> NoAnswerError:
    """What broke, in words: the texts of urllib3 hold the address, with search text and ids.

    ``repeats`` says whether the request may be sent again, as it writes nothing.
    """
    is_certain = any(isinstance(cause, _BEFORE_SENDING) for cause in _causes(broken))
    return NoAnswerError(_told(urlsplit(url).netloc, broken, _ADVICE[repeats]), sent=not is_certain)


def _causes(broken: BaseException | None) -> Iterator[BaseException]:
    """An error and what it was made of: urllib3 wraps what it caught, in ``reason`` or in ``args``."""
    while broken is not None:
        yield broken
        inner = (getattr(broken, "reason", None), *broken.args, broken.__cause__, broken.__context__)
        broken = next((cause for cause in inner if isinstance(cause, BaseException)), None)


def _is_distrusted(broken: Exception) -> bool:
    return any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(broken))


def _told(host: str, broken: Exception, advice: str) -> str:
    cause = getattr(broken, "reason", broken)
    if isinstance(cause, SSLError) and not _is_distrusted(broken):
        return (
            f"TLS with {host} failed or broke. Check the port, and that it speaks https: a service on this machine "
            f"may have an address with http://. {advice}"
        )
    if isinstance(cause, SSLError):
        return (
            f"cannot trust {host}: its TLS certificate does not verify. If your organisation signs its own, "
            "pass the file with its root certificate as ca_bundle, or set REQUESTS_CA_BUNDLE to it"
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
        return f"{host} went silent for {READ_TIMEOUT_S:g} s. {advice}"
    return f"{host} broke off in the middle of an answer ({type(cause).__name__}). {advice}"


A = TypeVar("A")

MAX_CONNECTIONS = 64
"""Kept open to one service; they are opened as they are needed."""


class Sent:
    """A request that was sent on a connection, which is its own until it is closed.

    urllib3's pools send and receive in one go. To do something between the two, the connection is taken from
    the pool and given back by hand, by the methods which the pool itself uses, and which have been the same since
    its first version.
    """

    def __init__(self, pool: HTTPConnectionPool, connection: HTTPConnection) -> None:
        self._pool, self._connection = pool, connection
        self._is_under_way = True

    def read(self, whole: Callable[[BaseHTTPResponse], A]) -> A:
        """What ``whole`` makes of the answer, which it reads to its end; once.

        Raises
        ------
        urllib3.exceptions.HTTPError
            No answer came, or not all of it.
        """
        with _broken_alike(), self._connection.getresponse() as response:
            answer = whole(response)
        self._is_under_way = False
        return answer

    def close(self) -> None:
        """Give the connection back, once; what is still to come on it is nobody's answer, so it is cut."""
        if self._is_under_way:
            self._connection.close()
        self._pool._put_conn(self._connection)  # noqa: SLF001 - as the class says


class FinalAnswer(HTTPResponse):
    """An answer of http.client that passes over those before it: of these (RFC 9110, 15.2) it knows 100 alone.

    Header lines that are none are passed over, too: urllib3 would warn of them with the whole address, and with it
    the user's id and search text.
    """

    def begin(self) -> None:
        super().begin()
        self.msg.defects.clear()
        self.msg.set_payload("")

    def _read_status(self) -> tuple[str, int, str]:
        while True:
            told: tuple[str, int, str] = super()._read_status()  # type: ignore[misc]  # the stubs leave it out
            if not HTTPStatus.SWITCHING_PROTOCOLS < told[1] < HTTPStatus.OK:
                return told
            parse_headers(self.fp)


@contextmanager
def _broken_alike() -> Iterator[None]:
    """What breaks on a connection, as the error that a pool makes of it."""
    try:
        yield
    except (OSError, HTTPException) as broken:
        raise ProtocolError("Connection aborted.", broken) from broken


class Way(HTTPAdapter):
    """The ways to all services that a client speaks to, each looked for once.

    Parameters
    ----------
    trust_env : bool
        Whether proxies and certificates may come from the environment.
    ca_bundle : str or None
        File or folder with the root certificates that are trusted instead of the usual ones.
    """

    def __init__(self, *, trust_env: bool, ca_bundle: str | None) -> None:
        super().__init__(pool_maxsize=MAX_CONNECTIONS)
        self._options_to = functools.partial(options_of, trust_env=trust_env, ca_bundle=ca_bundle)
        self._pool_to = functools.cache(self._pool)

    def go(self, request: requests.PreparedRequest, *, retries: Retry) -> BaseHTTPResponse:
        """Send a request whose address and headers are fit to travel; the body of the answer is still to be read.

        Raises
        ------
        urllib3.exceptions.HTTPError
            No answer came.
        """
        pool, target = self._found(request)
        return pool.urlopen(
            str(request.method),
            target,
            body=request.body,
            headers=request.headers,
            retries=retries,
            timeout=Timeout(connect=CONNECT_TIMEOUT_S, read=READ_TIMEOUT_S),
            redirect=False,
            assert_same_host=False,  # the pool was chosen by the host
            preload_content=False,
        )

    def start(self, request: requests.PreparedRequest) -> Sent | None:
        """Send a request without a body, whose answer is read later; None where a proxy has to be asked first.

        Raises
        ------
        urllib3.exceptions.HTTPError
            It could not be sent.
        """
        pool, target = self._found(request)
        connection = cast("HTTPConnection", pool._get_conn())  # noqa: SLF001 - see Sent
        sent = Sent(pool, connection)
        if connection.is_closed and pool.proxy:
            sent.close()
            return None
        connection.timeout = CONNECT_TIMEOUT_S if connection.is_closed else READ_TIMEOUT_S
        try:
            with _broken_alike():
                connection.request(
                    str(request.method), target, headers=request.headers, preload_content=False
                )
        except BaseException:  # Ctrl-C as well: the pool gets its connection back
            sent.close()
            raise
        connection.timeout = READ_TIMEOUT_S
        return sent

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        self._pool_to.cache_clear()
        super().close()

    def _found(self, request: requests.PreparedRequest) -> tuple[HTTPConnectionPool, str]:
        """The connections to where a request goes, and what it asks there."""
        parts = urlsplit(str(request.url))
        origin, path = f"{parts.scheme}://{parts.netloc}", parts.path or "/"
        return self._pool_to(origin), f"{path}?{parts.query}" if parts.query else path

    def _pool(self, origin: str) -> HTTPConnectionPool:
        options = self._options_to(origin)
        verify, cert = options["verify"], options["cert"]
        request = requests.PreparedRequest()
        request.prepare_url(origin, None)
        found = self.get_connection_with_tls_context(request, verify, proxies=options["proxies"], cert=cert)
        pool = cast("HTTPConnectionPool", found)
        self.cert_verify(pool, origin, verify, cert)  # type: ignore[no-untyped-call]  # the stubs forgot it
        pool.ConnectionCls = _waiting_for_the_end(pool.ConnectionCls)
        return pool


@functools.cache
def _waiting_for_the_end(kind: type[HTTPConnection]) -> type[HTTPConnection]:
    return type(kind.__name__, (kind,), {"response_class": FinalAnswer})


def options_of(origin: str, *, trust_env: bool, ca_bundle: str | None) -> dict[str, Any]:
    """Options of `requests` for an origin: what was given, else what the environment says.

    The environment does not count for plain http, which is spoken to this machine only; passwords of a netrc file
    are no part of it.

    Raises
    ------
    ConfigError
        The environment names certificates that are not there.

    Examples
    --------
    >>> options_of("https://m.example", trust_env=False, ca_bundle="root.pem")
    {'proxies': {}, 'verify': 'root.pem', 'cert': None}
    """
    if not trust_env or origin.startswith("http://"):
        return {"proxies": {}, "verify": ca_bundle or True, "cert": None}
    found = requests.Session().merge_environment_settings(origin, {}, None, ca_bundle, None)
    if isinstance(found["verify"], str):
        checked_bundle("REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE", found["verify"])
    return {name: found[name] for name in ("proxies", "verify", "cert")}


def checked_bundle(name: str, ca_bundle: str | PathLike[str]) -> str:
    """The path of root certificates, which must be there; ``name`` is where it was said.

    Raises
    ------
    ConfigError
    """
    path = expand_path(ca_bundle)
    if not path.exists():
        raise ConfigError(
            f"{name} names {ca_bundle}, which is not there: correct it, or leave it out to trust the usual certificates"
        )
    return str(path)
