"""One HTTP exchange: send, read whole, and turn every failure into an error of the tree.

Sits under `client` and `oauth`, which differ in what they say and not in how it travels: never a
redirect followed, never a cookie kept, finite timeouts, reads tried again (the call for a token is one
of them) and writes never, an answer of a bounded size, and no secret or query text in any message.

What the connection does is tried again here, and refusals by status in urllib3, which waits as the
service asks. It could do both, but warns of each broken connection with the whole address, and with it
the user's id and search text in every notebook.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from os import PathLike
from typing import Any, NoReturn
from urllib.parse import urlencode, urlsplit

import requests
from requests.auth import AuthBase
from requests.structures import CaseInsensitiveDict
from urllib3 import BaseHTTPResponse
from urllib3.exceptions import HTTPError

from memframe.client.connections import Sent, Way, checked_bundle, no_answer
from memframe.client.responses import Answer, error_of
from memframe.client.retry import TOO_MANY, Gate, ReadRetry, read_retry, retry_after_s
from memframe.display import printable
from memframe.errors import AnswerTooLargeError, ConfigError, MemframeError, ProtocolError
from memframe.secret import Secret, SecretBytes, hide_frames

JSON_BODY = {"Content-Type": "application/json"}
FORM_BODY = {"Content-Type": "application/x-www-form-urlencoded"}

MAX_ANSWER_BYTES = 256 * 1024 * 1024


READ_ATTEMPTS = 3
"""How often a read is asked whose answer does not come or breaks off."""


class Transport:
    """Exchanges by the rules of this module.

    Parameters
    ----------
    retry : ReadRetry, optional
        Policy for GET.
    trust_env : bool
        Whether proxies and certificates may come from the environment.
    ca_bundle : str or path, optional
        File or folder with the root certificates that are trusted instead of the usual ones.

    Raises
    ------
    ConfigError
        There is nothing at `ca_bundle`.
    """

    def __init__(
        self,
        *,
        retry: ReadRetry | None = None,
        trust_env: bool = True,
        ca_bundle: str | PathLike[str] | None = None,
    ) -> None:
        self._secrets: list[Secret] = []
        self._mutex = threading.Lock()
        trusted = None if ca_bundle is None else checked_bundle("ca_bundle", ca_bundle)
        self._headers = {
            "User-Agent": f"memframe/{version('memframe')}",
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
        }
        self._retry = retry or read_retry()
        self._paced_retry = self._retry.new(status_forcelist={*self._retry.status_forcelist} - {TOO_MANY})
        self._gates: list[Gate] = []
        self._way_of = functools.cache(lambda _process: Way(trust_env=trust_env, ca_bundle=trusted))

    def _way(self) -> Way:
        """One for each process: two that share a connection after a fork would read each other's answers."""
        return self._way_of(os.getpid())

    @contextmanager
    def paced(self, gate: Gate) -> Iterator[None]:
        """Within the block all reads go through a gate, which also repeats those that are refused with 429.

        Of several blocks the one that was begun last counts, in whichever order they end.
        """
        with self._mutex:
            self._gates.append(gate)
        try:
            yield
        finally:
            with self._mutex:
                self._gates.remove(gate)

    @property
    def _gate(self) -> Gate | None:
        return next(reversed([*self._gates]), None)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "open connections, and the keys beside them, are not pickled: connect() in each process"
        )

    def without_repeats(self) -> Transport:
        """The same rules for callers that ask again by themselves: a refusal by status is raised at once."""
        twin = Transport(retry=self._retry.new(total=0))
        twin._way_of, twin._secrets, twin._mutex = self._way_of, self._secrets, self._mutex
        return twin

    @hide_frames
    def keep_out(self, *secrets: Secret | None) -> None:
        """Never repeat these in a message, should the service echo one."""
        with self._mutex:
            self._secrets += [secret for secret in secrets if secret and secret not in self._secrets]

    @hide_frames
    def hold(self, *secrets: Secret) -> None:
        """Keep these out of messages until `forget` was called as often as this."""
        with self._mutex:
            self._secrets += secrets

    @hide_frames
    def forget(self, *secrets: Secret) -> None:
        """Undo one `hold`: of a million users, only the keys at hand are looked for in messages."""
        with self._mutex:
            for secret in secrets:
                if secret in self._secrets:
                    self._secrets.remove(secret)

    def close(self) -> None:
        """Close all connections."""
        self._way().close()

    @hide_frames
    def exchange(
        self,
        method: str,
        url: str,
        *,
        auth: AuthBase | None = None,
        params: Mapping[str, str] | None = None,
        data: SecretBytes | None = None,
        headers: Mapping[str, str] | None = None,
        repeats: bool | None = None,
        under_way: Sent | None = None,
    ) -> Answer:
        """Send one request and read the whole answer, whatever its status.

        ``repeats`` says whether the request may be sent again, as it writes nothing; None, if it is a GET. What `start`
        has sent is the first attempt, and still to be closed.

        Raises
        ------
        NoAnswerError
            Not reached, cut off or silent. What may be sent again has been before.
        ProtocolError
            The answer is larger than `MAX_ANSWER_BYTES`.
        ConfigError
            The request cannot be made of what was given.
        """
        failure: MemframeError
        repeats = method == "GET" if repeats is None else repeats
        n_attempts = READ_ATTEMPTS if repeats else 1
        for sent in [under_way, *[None] * (n_attempts - 1)]:
            try:
                answer = self._sent(
                    method, url, repeats, sent, auth=auth, params=params, data=data, headers=headers
                )
            except HTTPError as broken:
                failure = no_answer(url, broken, repeats=repeats)
            except (requests.RequestException, UnicodeError) as unfit:
                failure = _not_sent(url, unfit)
                break
            else:
                return answer
        raise failure  # out here, as what it came from holds the address, the token and the body

    @hide_frames
    def start(self, url: str, *, auth: AuthBase, params: Mapping[str, str]) -> Sent | None:
        """Send a GET, whose answer `exchange` reads later; until then the service works and the socket takes it in.

        No thread waits for it. One that did would wake in the middle of other work and fight for the interpreter's
        lock: loads of many pages took half as long again. None where it could not be sent, which `exchange` then
        tries again and tells; and behind a gate, which counts what is in flight.
        """
        if self._gate:
            return None
        try:
            request = self._prepared("GET", url, auth=auth, params=params, data=None, headers=None)
            return self._way().start(request)
        except (HTTPError, requests.RequestException, UnicodeError):
            return None

    def _sent(self, method: str, url: str, repeats: bool, under_way: Sent | None, **request: Any) -> Answer:
        send = functools.partial(self._once, method, url, self._policy(method, repeats), under_way, **request)
        gate = self._gate if method == "GET" else None
        return gate.ask(send, _asked_wait_s) if gate else send()

    def _once(self, method: str, url: str, policy: ReadRetry, under_way: Sent | None, **parts: Any) -> Answer:
        whole = functools.partial(_whole, host=_host(url))
        if under_way:
            answer = under_way.read(whole)
            if not (policy.total and policy.is_retry(method, answer.status)):
                return answer
            policy = policy.waited(answer.headers)
        request = self._prepared(method, url, **parts)
        with self._way().go(request, retries=policy) as response:
            return whole(response)

    def _prepared(
        self,
        method: str,
        url: str,
        *,
        auth: AuthBase | None,
        params: Mapping[str, str] | None,
        data: SecretBytes | None,
        headers: Mapping[str, str] | None,
    ) -> requests.PreparedRequest:
        """By hand, as all parts are fit already: requests takes as long to look at them as urllib3 to send them."""
        request = requests.PreparedRequest()
        request.method, request.body = method, None if data is None else data.reveal()
        request.url = f"{url}?{urlencode(params)}" if params else url
        request.headers = CaseInsensitiveDict({**self._headers, **(headers or {})})
        return auth(request) if auth else request

    def _policy(self, method: str, repeats: bool) -> ReadRetry:
        """What is asked again by urllib3: a gate has a policy of its own for 429, and so has whoever signs in."""
        if repeats and method != "GET":
            return self._paced_retry.new(allowed_methods={method})
        return self._retry if self._gate is None else self._paced_retry

    def checked(self, answer: Answer, what: object, *, call: str | None = None) -> SecretBytes:
        """The body of a 2xx answer to ``what``; any other status is raised as its error, which names the ``call``."""
        if 200 <= answer.status < 300:
            return answer.body
        raise self.error_of(answer, what, call=call)

    def error_of(self, answer: Answer, what: object, *, call: str | None = None) -> MemframeError:
        """The error that an answer outside 2xx to ``what`` stands for."""
        if 300 <= answer.status < 400:
            target = self.scrubbed(_target_of(answer))
            return ProtocolError(
                f"{answer.host} answered {answer.status}, a redirect to {target}. memframe follows none, as a "
                "write would be lost and a key could go astray; use the final address as base_url or auth_url"
            )
        return error_of(answer, what=what, said=self.scrubbed, call=call)

    def scrubbed(self, text: str) -> str:
        """Text of the service made fit to print, with our secrets masked."""
        with self._mutex:
            secrets = [*self._secrets]
        for secret in secrets:
            text = text.replace(secret.reveal(), "••••••")
        return printable(text)


def _asked_wait_s(answer: Answer) -> float | None:
    return retry_after_s(answer.headers)


def _whole(response: BaseHTTPResponse, host: str) -> Answer:
    return Answer(response.status, response.headers, _body_of(response, host), host)


def _body_of(answer: BaseHTTPResponse, host: str) -> SecretBytes:
    """The whole body, never much more than `MAX_ANSWER_BYTES` of it.

    In one piece where its length is declared and not that of something compressed.
    """
    declared = None if "Content-Encoding" in answer.headers else answer.length_remaining
    if declared is not None and declared <= MAX_ANSWER_BYTES:
        return SecretBytes(answer.read())
    is_known = declared is not None
    body = SecretBytes(b"" if is_known else answer.read(MAX_ANSWER_BYTES + 1))
    if is_known or len(body) > MAX_ANSWER_BYTES:
        raise AnswerTooLargeError(
            f"{host} sends more than {MAX_ANSWER_BYTES >> 20} MiB in one answer; "
            "ask for smaller pages with page_size="
        )
    return body


def _target_of(redirect: Answer) -> str:
    try:
        return urlsplit(redirect.headers.get("Location", "")).hostname or "another place on the same host"
    except ValueError:
        return "a malformed address"


def _not_sent(url: str, unfit: Exception) -> ConfigError:
    return ConfigError(
        f"a request to {_host(url)} could not be made ({type(unfit).__name__}): an address, an id or a text "
        "that was passed cannot travel over HTTP. Check them for broken characters"
    )


def _host(url: str) -> str:
    return urlsplit(url).netloc
