"""One HTTP exchange: send a request, read the whole response, raise failures as errors of `memframe.errors`.

Redirects are not followed, cookies not kept; timeouts are finite and the size of a response is bounded. Reads are
retried (the call for a token counts as one), writes never. No message holds a secret or query text.

The policy is urllib3's `Retry`, the loop our own: urllib3 logs each broken connection with the whole URL, which holds
the user's id and search text.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from os import PathLike
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlencode, urlsplit

import requests
from requests.auth import AuthBase
from urllib3 import BaseHTTPResponse
from urllib3.exceptions import HTTPError
from urllib3.util import Retry

from memframe.client.connections import ConnectionPool, PrefetchedRequest, check_ca_bundle, to_no_answer_error
from memframe.client.responses import Response, to_service_error
from memframe.client.retry import TOO_MANY, SharedRateLimiter, logger, read_retry, retry_after_s
from memframe.display import printable
from memframe.errors import AnswerTooLargeError, ConfigError, MemframeError, ProtocolError
from memframe.secret import Secret, SecretBytes, hide_frames
from memframe.versions import package_version

JSON_BODY = {"Content-Type": "application/json"}
FORM_BODY = {"Content-Type": "application/x-www-form-urlencoded"}

_ENCODINGS = frozenset({"identity", "gzip", "x-gzip", "deflate"})

MAX_RESPONSE_BYTES = 256 * 1024 * 1024

READ_ATTEMPTS = 3
"""Attempts of a read whose response is missing or cut off."""


class Transport:
    """HTTP by the rules of this module, with proxies and certificates of the environment."""

    def __init__(self, *, retry: Retry | None = None, ca_bundle: str | PathLike[str] | None = None) -> None:
        self._secrets: list[Secret] = []
        self._keys_in_use: list[tuple[Secret, int]] = []
        self._mutex = threading.Lock()
        trusted = None if ca_bundle is None else check_ca_bundle("ca_bundle", ca_bundle)
        self.ca_bundle = trusted
        self._headers = {
            "User-Agent": f"memframe/{package_version()}",
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
        }
        self._retry = retry or read_retry()
        self._retry_without_429 = self._retry.new(
            status_forcelist={*self._retry.status_forcelist} - {TOO_MANY}
        )
        self._limiters: list[SharedRateLimiter] = []
        self._pool_of = functools.cache(lambda _process_id: ConnectionPool(ca_bundle=trusted))

    def _pool(self) -> ConnectionPool:
        """Return the pool of this process, made at its first call.

        Two processes that share a connection after a fork would mix up responses.
        """
        return self._pool_of(os.getpid())

    @contextmanager
    def rate_limited(self, limiter: SharedRateLimiter) -> Iterator[None]:
        """Send all reads of the block through a rate limiter, which also repeats those refused with 429.

        If blocks overlap, the one entered last applies.
        """
        with self._mutex:
            self._limiters.append(limiter)
        try:
            yield
        finally:
            with self._mutex:
                self._limiters.remove(limiter)

    @property
    def _limiter(self) -> SharedRateLimiter | None:
        limiters = [*self._limiters]  # another thread may remove one meanwhile
        return limiters[-1] if limiters else None

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("open connections and keys cannot be pickled: call connect() in each process")

    def without_retries(self) -> Transport:
        """Return a transport on the same connections that neither retries refusals by status nor limits its rate."""
        twin = Transport(retry=self._retry.new(total=0))
        twin._pool_of, twin._mutex = self._pool_of, self._mutex
        twin._secrets, twin._keys_in_use = self._secrets, self._keys_in_use
        twin.ca_bundle = self.ca_bundle
        return twin

    @hide_frames
    def mask(self, *secrets: Secret | None) -> None:
        """Mask these secrets in messages from now on, because the service may echo one."""
        with self._mutex:
            self._secrets += [secret for secret in secrets if secret and secret not in self._secrets]

    @hide_frames
    def mask_until_unmasked(self, *secrets: Secret) -> None:
        """Mask these secrets in messages until `unmask` has been called as often as this method."""
        with self._mutex:
            for secret in secrets:
                self._count_use(secret, 1)

    @hide_frames
    def unmask(self, *secrets: Secret) -> None:
        """Undo one `mask_until_unmasked`: messages are searched only for keys in use, not for all keys of a fleet."""
        with self._mutex:
            for secret in secrets:
                self._count_use(secret, -1)

    def _count_use(self, secret: Secret, change: int) -> None:
        """Change the number of uses of a key, which is held once: a run fetches the same keys several times."""
        n_uses = next((n for key, n in self._keys_in_use if key == secret), 0) + change
        self._keys_in_use[:] = [(key, n) for key, n in self._keys_in_use if key != secret]
        if n_uses > 0:
            self._keys_in_use.append((secret, n_uses))

    def close(self) -> None:
        """Close all connections."""
        self._pool().close()

    @hide_frames
    def send(
        self,
        method: str,
        url: str,
        *,
        is_read: bool | None = None,
        prefetched: PrefetchedRequest | None = None,
        **parts: Any,
    ) -> Response:
        """Send one request and read the whole response, whatever its status.

        ================================  =====================  ==========================  ==================
        request                           connection lost        429                         502, 503, 504
        ================================  =====================  ==========================  ==================
        GET                               `READ_ATTEMPTS` times  retried by the policy or    retried by the
                                                                 by the rate limiter         policy
        read by another method (a token)  `READ_ATTEMPTS` times  returned                    as GET
        write                             raised                 returned                    returned
        ================================  =====================  ==========================  ==================

        Parameters
        ----------
        method, url : str
        is_read : bool, optional
            True if the request writes nothing, so that it may be sent again; by default for GET only.
        prefetched : PrefetchedRequest, optional
            Request sent by `prefetch`. Its response is the first attempt; the caller closes it.
        **parts
            ``auth``, ``params``, ``data`` and ``headers``, as in `requests`.
        """
        is_get = method == "GET"
        if is_read is None:
            is_read = is_get
        host = urlsplit(url).netloc
        limiter = self._limiter if is_get else None
        # after a 429 the limiter itself repeats a GET, and the request for a token (POST) is not repeated
        policy = self._retry if is_get and limiter is None else self._retry_without_429
        status_retries = policy
        n_broken, max_broken = 0, READ_ATTEMPTS if is_read else 1
        while True:
            attempt = functools.partial(self._attempt, method, url, prefetched, parts)
            result = _send_once(attempt, limiter, host, is_read=is_read)
            prefetched = None  # its response was read
            if isinstance(result, Response):
                is_retried = is_read and result.status in status_retries.status_forcelist
                if not is_retried or not status_retries.total:
                    return result
                status_retries = _wait(status_retries, result)
                continue
            n_broken += 1
            if result.is_repeatable:
                logger.info(
                    "No answer from %s (%s), attempt %d of %d.", host, result.cause, n_broken, max_broken
                )
            if not result.is_repeatable or n_broken == max_broken:
                raise result.error  # outside of except, because its cause would hold the URL, token and body
            status_retries = policy  # a lost connection starts the count of refusals anew

    @hide_frames
    def prefetch(self, url: str, **parts: Any) -> PrefetchedRequest | None:
        """Send a GET whose response `send` reads later, so that the service prepares it meanwhile.

        No thread waits for the response, because it would compete for the interpreter's lock with other work. Return
        None if the request could not be sent: `send` tries again and raises the error. Return None also behind a rate
        limiter, which counts the requests in flight.
        """
        if self._limiter:
            return None
        try:
            return self._pool().prefetch(self._prepare("GET", url, **parts))
        except (HTTPError, requests.RequestException, UnicodeError):
            return None

    def _attempt(
        self, method: str, url: str, prefetched: PrefetchedRequest | None, parts: Mapping[str, Any]
    ) -> Response:
        host = urlsplit(url).netloc
        if prefetched:
            with prefetched.response() as raw:
                return _read(raw, host)
        pool, request = self._pool(), self._prepare(method, url, **parts)
        # an idle connection can be used without most of urllib3's work
        if sent := pool.prefetch(request, connects=False):
            with closing(sent), sent.response() as raw:
                return _read(raw, host)
        with pool.request(request) as raw:
            return _read(raw, host)

    def _prepare(
        self,
        method: str,
        url: str,
        *,
        auth: AuthBase | None = None,
        params: Mapping[str, str] | None = None,
        data: SecretBytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> requests.PreparedRequest:
        """Build the request without the checks of `requests`, which take as long as urllib3 takes to send it."""
        request = requests.PreparedRequest()
        request.method, request.body = method, None if data is None else data.reveal()
        request.url = f"{url}?{urlencode(params)}" if params else url
        request.headers = {**self._headers, **(headers or {})}  # type: ignore[assignment]  # any mapping does
        return auth(request) if auth else request

    def require_success(self, response: Response, what: object, *, call: str | None = None) -> SecretBytes:
        """Return the body of a 2xx response to ``what``; raise any other as an error that names the ``call``."""
        if 200 <= response.status < 300:
            return response.body
        raise self.to_error(response, what, call=call)

    def to_error(self, response: Response, what: object, *, call: str | None = None) -> MemframeError:
        """Make the error for a response to ``what`` with a status outside 2xx."""
        if 300 <= response.status < 400:
            try:
                target = (
                    urlsplit(response.headers.get("Location", "")).hostname
                    or "another place on the same host"
                )
            except ValueError:
                target = "a malformed address"
            target = self.printable(target)
            return ProtocolError(
                f"{response.host} answered {response.status}, a redirect to {target}. memframe follows no "
                "redirects, because a write could get lost and a key could reach another host: use the final "
                "address as base_url or auth_url"
            )
        return to_service_error(response, what=what, printable=self.printable, call=call)

    def printable(self, text: str) -> str:
        """Make text of the service safe to print, with our secrets masked."""
        with self._mutex:
            secrets = [*self._secrets, *(key for key, _ in self._keys_in_use)]
        for secret in secrets:
            text = text.replace(secret.reveal(), "••••••")
        return printable(text)


class _NoResponse(NamedTuple):
    """Result of a request that got no response: an error that does not hold its cause."""

    error: MemframeError
    cause: str
    """Name of the class of the cause."""
    is_repeatable: bool


def _send_once(
    attempt: Callable[[], Response], limiter: SharedRateLimiter | None, host: str, *, is_read: bool
) -> Response | _NoResponse:
    """Send a request, through the limiter if there is one; return its response, or why there is none."""
    try:
        return limiter.call(attempt, lambda r: retry_after_s(r.headers)) if limiter else attempt()
    except HTTPError as broken:
        error = to_no_answer_error(host, broken, is_read=is_read)
        return _NoResponse(error, type(broken).__name__, is_repeatable=True)
    except (requests.RequestException, UnicodeError) as unfit:
        cause = type(unfit).__name__
        message = (
            f"a request to {host} could not be made ({cause}): an address, an id or a text that was passed cannot "
            "travel over HTTP. Check them for broken characters"
        )
        return _NoResponse(ConfigError(message), cause, is_repeatable=False)


def _wait(policy: Retry, refusal: Response) -> Retry:
    """Wait as a refusal asks, and return the policy for the retries that are left."""
    policy = policy.increment()
    logger.info("A read was refused with %s: retry %d.", refusal.status, len(policy.history))
    # a Retry-After of 0 may be a fraction that was rounded down: wait as the policy says
    time.sleep(retry_after_s(refusal.headers) or policy.get_backoff_time())
    return policy


def _read(response: BaseHTTPResponse, host: str) -> Response:
    """Read a response to its end, but never much more than `MAX_RESPONSE_BYTES`.

    An uncompressed body of a declared length is read in one piece. Only one layer of compression is accepted, as
    requested, because the bound would not limit what a second layer expands to.
    """
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in _ENCODINGS:
        raise ProtocolError(
            f"{host} encoded its answer as {printable(encoding)!r}, which was not asked for and is not decoded. "
            "Tell the operator of the service, or of a proxy in between"
        )
    declared_bytes = response.length_remaining if encoding == "identity" else None
    if declared_bytes is None:
        body = SecretBytes(response.read(MAX_RESPONSE_BYTES + 1))
        if len(body) > MAX_RESPONSE_BYTES:
            raise _too_large(host)
    else:
        if declared_bytes > MAX_RESPONSE_BYTES:
            raise _too_large(host)
        body = SecretBytes(response.read())
    return Response(response.status, response.headers, body, host)


def _too_large(host: str) -> AnswerTooLargeError:
    return AnswerTooLargeError(
        f"{host} sends more than {MAX_RESPONSE_BYTES >> 20} MiB in one answer; request smaller pages with page_size="
    )
