"""The way to a service: through which proxies, whose certificates are trusted, and the connections that are kept.

`requests` finds the way and keeps the connections; from there on urllib3, on which it stands, takes the request.
A Session's own `send` would look after redirects, cookies, hooks and histories, none of which memframe has, at
each request anew: for a chain of pages that was a twentieth of its time.
"""

from __future__ import annotations

import functools
from os import PathLike
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3 import BaseHTTPResponse, HTTPConnectionPool, Retry, Timeout

from memframe.errors import ConfigError

MAX_CONNECTIONS = 64
"""Kept open to one service; they are opened as they are needed."""


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
        self._pool_to = functools.cache(self._found)

    def go(self, request: requests.PreparedRequest, *, retries: Retry, timeout: Timeout) -> BaseHTTPResponse:
        """Send a request whose address and headers are fit to travel; the body of the answer is still to be read.

        Raises
        ------
        urllib3.exceptions.HTTPError
            No answer came.
        """
        parts = urlsplit(str(request.url))
        pool = self._pool_to(f"{parts.scheme}://{parts.netloc}")
        return pool.urlopen(
            str(request.method),
            f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/",
            body=request.body,
            headers=request.headers,
            retries=retries,
            timeout=timeout,
            redirect=False,
            assert_same_host=False,  # the pool was chosen by the host
            preload_content=False,
        )

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        self._pool_to.cache_clear()
        super().close()

    def _found(self, origin: str) -> HTTPConnectionPool:
        options = self._options_to(origin)
        verify, cert = options["verify"], options["cert"]
        request = requests.PreparedRequest()
        request.prepare_url(origin, None)
        pool = self.get_connection_with_tls_context(request, verify, proxies=options["proxies"], cert=cert)
        self.cert_verify(pool, origin, verify, cert)  # type: ignore[no-untyped-call]  # the stubs forgot it
        return cast("HTTPConnectionPool", pool)


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
    path = Path(ca_bundle).expanduser()
    if not path.exists():
        raise ConfigError(
            f"{name} names {ca_bundle}, which is not there: correct it, or leave it out to trust the usual certificates"
        )
    return str(path)
