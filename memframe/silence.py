"""No answer: what broke on the way, in words, and whether anything had been sent by then."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

from urllib3 import exceptions
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ProxyError, SSLError

from memframe.errors import NoAnswerError

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
