"""A listener on this machine for one OAuth answer (RFC 8252, section 7.3)."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from memframe.errors import ConfigError, OAuthError

_PAGE = (
    b"<!doctype html><html lang=en><meta charset=utf-8><meta name=color-scheme content='light dark'>"
    b"<title>memframe</title><body style='font:1.1rem system-ui;max-width:30rem;margin:20vh auto;padding:0 1rem'>"
    b"<h1 style='font-size:1.3rem'>Thank you.</h1><p>You can close this page and go back to Python."
)

_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Length": str(len(_PAGE)),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
}


SIGNS_OF_ELSEWHERE = (
    "BINDER_SERVICE_HOST",
    "CODESPACES",
    "COLAB_RELEASE_TAG",
    "DATABRICKS_RUNTIME_VERSION",
    "JUPYTERHUB_API_URL",
    "KAGGLE_KERNEL_RUN_TYPE",
    "KUBERNETES_SERVICE_HOST",
    "SSH_CONNECTION",
)
"""Variables that tell of a machine with nobody in front of it."""

LOOK_EVERY_S = 0.2
"""How soon a listener notices that its answer is not wanted any more."""


class RedirectListener(HTTPServer):
    """Takes the first GET of one path with one state and remembers its address; everything else is 404.

    Whoever else asks for the path, such as a page that guesses, can neither answer nor spoil the attempt.
    """

    def __init__(self, redirect_uri: str, timeout_s: float, clock: Callable[[], float]) -> None:
        parts = urlsplit(redirect_uri)
        self._path = parts.path or "/"
        self._timeout_s = timeout_s
        self._deadline = clock() + timeout_s
        self._clock = clock
        self._state = ""
        self.answered: str | None = None
        try:
            super().__init__(("127.0.0.1", parts.port or 0), _Handler)
        except OSError as taken:
            raise ConfigError(
                f"cannot listen on port {parts.port} of redirect_uri ({taken.strerror}): close the program that "
                "holds it, or register http://127.0.0.1/... without a port, which lets memframe take a free one"
            ) from None
        self.redirect_uri = urlunsplit(parts._replace(netloc=f"{parts.hostname}:{self.server_port}"))

    def accepts(self, target: str) -> bool:
        """Whether a request's target is the answer to this attempt, and the first one."""
        parts = urlsplit(target)
        is_ours = parse_qs(parts.query).get("state") == [self._state]
        return self.answered is None and parts.path == self._path and is_ours

    def wait(self, state: str, *, is_wanted: Callable[[], bool] = lambda: True) -> str:
        """Serve until the answer is there: the redirected address.

        Parameters
        ----------
        state : str
            Of the attempt whose answer this is.
        is_wanted : callable
            Asked now and then; after False nothing is waited for.

        Raises
        ------
        OAuthError
            Nobody came in time, or nobody wants to know.
        """
        self._state = state
        while self.answered is None:
            left_s = self._deadline - self._clock()
            self.timeout = min(left_s, LOOK_EVERY_S)
            if left_s <= 0 or not is_wanted():
                raise OAuthError(
                    f"no answer within {self._timeout_s:g} s: open the address and decide, or raise timeout_s",
                    code="no_answer",
                )
            self.handle_request()
        return self.answered


class _Handler(BaseHTTPRequestHandler):
    server: RedirectListener
    timeout = 5  # seconds for a client that connects and says nothing

    def do_GET(self) -> None:
        if not self.server.accepts(self.path):
            self.send_error(404)
            return
        self.server.answered = self.path
        self.send_response(200)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(_PAGE)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is BaseHTTPRequestHandler's
        """Silent: the request line holds the code."""


def can_listen(redirect_uri: str, environ: Mapping[str, str]) -> bool:
    """Whether a browser in front of this machine could bring the answer here.

    A guess by what the environment tells: a listener that nobody reaches does no harm, as the answer can
    still be pasted.

    >>> can_listen("http://127.0.0.1/callback", {}), can_listen("http://127.0.0.1/", {"CODESPACES": "true"})
    (True, False)
    """
    is_elsewhere = any(name in environ for name in SIGNS_OF_ELSEWHERE)
    return _is_of_this_machine(redirect_uri) and not is_elsewhere


def is_port_free(redirect_uri: str) -> bool:
    """Return whether a listener gets the port of a redirect address; without a port it takes a free one.

    >>> is_port_free("http://127.0.0.1/callback")
    True
    """
    try:
        with socket.create_server(("127.0.0.1", urlsplit(redirect_uri).port or 0)):
            return True
    except (OSError, ValueError):
        return False


def _is_of_this_machine(redirect_uri: str) -> bool:
    parts = urlsplit(redirect_uri)
    return parts.scheme == "http" and parts.hostname in {"127.0.0.1", "localhost"}


@contextmanager
def await_redirect(
    redirect_uri: str, timeout_s: float, *, clock: Callable[[], float] = time.monotonic
) -> Iterator[RedirectListener]:
    """Listen for the answer to a redirect address of this machine.

    Parameters
    ----------
    redirect_uri : str
        ``http://127.0.0.1[:port]/path`` or the same with ``localhost``; without a port a free one is
        taken, which RFC 8252 lets the server accept.
    timeout_s : float
        Seconds until `RedirectListener.wait` gives up.

    Raises
    ------
    ConfigError
        The address is not one of this machine, or its port is taken.
    """
    if not _is_of_this_machine(redirect_uri):
        raise ConfigError(
            f"redirect_uri {redirect_uri} is not an http address of this machine, so no listener can receive its "
            "answer: use http://127.0.0.1/callback, or paste the redirected address into exchange()"
        )
    with RedirectListener(redirect_uri, timeout_s, clock) as listener:
        yield listener
