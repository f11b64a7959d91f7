"""One HTTP exchange: send, read whole, and turn every failure into an error of the tree.

Sits under `client` and `oauth`, which differ in what they say and not in how it travels: never a
redirect followed, never a cookie kept, finite timeouts, reads retried by urllib3 and writes never,
an answer of a bounded size, and no secret or query text in any message.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from importlib.metadata import version
from typing import Any, NoReturn
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from urllib3.exceptions import HTTPError, InvalidHeader
from urllib3.util import Retry

from memframe.address import is_loopback
from memframe.answers import Answer, error_of, printable
from memframe.errors import NoAnswerError, ProtocolError
from memframe.secret import Secret

JSON_BODY = {"Content-Type": "application/json"}

CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 60.0
MAX_RETRY_AFTER_S = 300
MAX_ANSWER_BYTES = 256 * 1024 * 1024
_TIMEOUT = (CONNECT_TIMEOUT_S, READ_TIMEOUT_S)
READ_ATTEMPTS = 3
"""How often a read whose answer broke off is asked again; refusals by status are urllib3's business."""


class ReadRetry(Retry):
    """urllib3's policy, but garbage in Retry-After counts as nothing said instead of ending the read."""

    def parse_retry_after(self, retry_after: str) -> float:
        """Seconds to wait, from 0 to ``retry_after_max``."""
        try:
            return super().parse_retry_after(retry_after)
        except (InvalidHeader, ValueError, OverflowError):
            return 0


def read_retry() -> ReadRetry:
    """The default policy: at most 5 repeats of a GET, from 0.3 s doubling to 20 s, or as Retry-After says."""
    return ReadRetry(
        total=5,
        connect=2,
        read=2,
        allowed_methods={"GET"},
        status_forcelist={429, 502, 503, 504},
        backoff_factor=0.3,
        backoff_max=20,
        backoff_jitter=0.2,
        retry_after_max=MAX_RETRY_AFTER_S,
        redirect=False,
        raise_on_status=False,
    )


class Transport:
    """A `requests.Session` with the rules of this module.

    Parameters
    ----------
    retry : ReadRetry, optional
        Policy for GET.
    trust_env : bool
        Whether proxies and certificates may come from the environment.
    """

    def __init__(self, *, retry: ReadRetry | None = None, trust_env: bool = True) -> None:
        self._secrets: list[Secret] = []
        self._environment_of = functools.cache(_environment_of if trust_env else _no_environment)
        self._session = requests.Session()
        self._session.trust_env = False  # else each call reads the environment anew, a quarter of its time
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        self._headers = {
            "User-Agent": f"memframe/{version('memframe')}",
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
        }
        adapter = HTTPAdapter(max_retries=retry or read_retry(), pool_maxsize=16)
        self._session.mount("https://", adapter)
        self._session.mount("http://", adapter)

    def keep_out(self, *secrets: Secret) -> None:
        """Never repeat these in a message, should the service echo one."""
        self._secrets += [secret for secret in secrets if secret and secret not in self._secrets]

    def close(self) -> None:
        """Close all connections."""
        self._session.close()

    def exchange(
        self,
        method: str,
        url: str,
        *,
        auth: AuthBase | None = None,
        params: Mapping[str, str] | None = None,
        data: bytes | Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request and read the whole answer, whatever its status.

        Raises
        ------
        NoAnswerError
            Not reached, cut off or silent. A GET has been tried again before.
        ProtocolError
            The answer is a redirect or larger than `MAX_ANSWER_BYTES`.
        """
        attempts = READ_ATTEMPTS if method == "GET" else 1
        for attempt in range(1, attempts + 1):
            try:
                answer = self._once(method, url, auth=auth, params=params, data=data, headers=headers)
                return _refuse_redirect(answer)
            except (requests.RequestException, HTTPError, OSError) as broken:
                if attempt == attempts or not isinstance(broken, HTTPError):
                    _raise_no_answer(url, broken)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _once(self, method: str, url: str, *, headers: Mapping[str, str] | None, **content: Any) -> Answer:
        request = requests.PreparedRequest()  # by hand, as a Session merges its own settings into each anew
        request.prepare(method, url, headers={**self._headers, **(headers or {})}, **content)
        with self._session.send(
            request,
            timeout=_TIMEOUT,
            stream=True,
            allow_redirects=False,
            **self._environment_of(_origin(url)),
        ) as response:
            return Answer(response.status_code, response.headers, _body_of(response), _host(url))

    def checked(self, answer: Answer, what: object) -> bytes:
        """The body of a 2xx answer to ``what``; any other status is raised as its error."""
        if 200 <= answer.status < 300:
            return answer.body
        raise error_of(answer, what=what, said=self.scrubbed)

    def scrubbed(self, text: str) -> str:
        """Text of the service made fit to print, with our secrets masked."""
        for secret in self._secrets:
            text = text.replace(secret.reveal(), "••••••")
        return printable(text)


def _body_of(response: requests.Response) -> bytes:
    """The whole body, never much more than `MAX_ANSWER_BYTES` of it.

    Read from below requests, whose ``content`` takes 10 KB at a time, a third as fast on large pages; and
    in one piece where its length is declared and not that of something compressed.
    """
    declared = response.headers.get("Content-Length", "")
    is_exact = declared.isdigit() and "Content-Encoding" not in response.headers
    if is_exact and int(declared) <= MAX_ANSWER_BYTES:
        return response.raw.read(decode_content=True)
    body: bytes = b"" if is_exact else response.raw.read(MAX_ANSWER_BYTES + 1, decode_content=True)
    if is_exact or len(body) > MAX_ANSWER_BYTES:
        raise ProtocolError(
            f"{_host(response.url)} sends more than {MAX_ANSWER_BYTES >> 20} MiB in one answer; "
            "ask for smaller pages with page_size="
        )
    return body


def _environment_of(origin: str) -> dict[str, Any]:
    """Proxies and certificates that the environment has for an origin; passwords of a netrc file are no part.

    This machine is spoken to directly: plain http is allowed only here, and a proxy may be elsewhere.
    """
    found = requests.Session().merge_environment_settings(origin, {}, None, None, None)
    if is_loopback(urlsplit(origin).hostname or ""):
        found["proxies"] = {}
    return {name: found[name] for name in ("proxies", "verify", "cert")}


def _no_environment(origin: str) -> dict[str, Any]:  # noqa: ARG001 - stands in for the function above
    return {"proxies": {}, "verify": True, "cert": None}


def _refuse_redirect(answer: Answer) -> Answer:
    if 300 <= answer.status < 400:
        target = urlsplit(answer.headers.get("Location", "")).hostname or "another place on the same host"
        raise ProtocolError(
            f"{answer.host} answered {answer.status}, a redirect to {target}. memframe follows none, as a "
            "write would be lost and a key could go astray; use the final address as base_url or auth_url"
        )
    return answer


def _raise_no_answer(url: str, broken: Exception) -> NoReturn:
    """From None: the chain of requests and urllib3 prints the URL, and with it search text and ids."""
    host = _host(url)
    if isinstance(broken, requests.exceptions.SSLError):
        raise NoAnswerError(
            f"cannot trust {host}: its TLS certificate does not verify. If your organisation signs its own, "
            "set REQUESTS_CA_BUNDLE to the file with its root certificate"
        ) from None
    if isinstance(broken, requests.exceptions.ConnectTimeout):
        raise NoAnswerError(
            f"cannot reach {host}: no connection within {CONNECT_TIMEOUT_S:g} s. Check address and network"
        ) from None
    if isinstance(broken, requests.exceptions.Timeout):
        raise NoAnswerError(f"{host} went silent for {READ_TIMEOUT_S:g} s. Try again later") from None
    if isinstance(broken, requests.exceptions.ConnectionError) and "NewConnectionError" in repr(broken):
        raise NoAnswerError(
            f"cannot reach {host}. Check the address, and that the service is running"
        ) from None
    raise NoAnswerError(
        f"{host} broke off in the middle of an answer ({type(broken).__name__}). Try again"
    ) from None


def _host(url: str) -> str:
    return urlsplit(url).netloc


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
