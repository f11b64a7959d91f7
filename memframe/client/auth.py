"""A developer's token: fetched when first needed, and renewed once for all threads together."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import requests
from msgspec import UNSET
from requests.auth import AuthBase

from memframe.client.connections import Sent
from memframe.client.responses import Answer, decoded
from memframe.client.transport import JSON_BODY, Transport
from memframe.errors import (
    ConfigError,
    MemframeError,
    NoAnswerError,
    NotFoundError,
    ProtocolError,
    ServiceError,
)
from memframe.secret import Secret
from memframe.wire import ISSUE_TOKEN, LIST_REQUESTS, TokenRequest, TokenResponse, encode


class BearerAuth(AuthBase):
    """Puts the token on a request; as an auth object it cannot be overridden by a netrc file.

    Attributes
    ----------
    token : Secret
    n_takers : int
        Requests that were given it.
    """

    def __init__(self, token: Secret, n_takers: int = 0) -> None:
        self.token = token
        self.n_takers = n_takers

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self.token.reveal()}"
        return request


class Tokens:
    """Where a client has its tokens from.

    Parameters
    ----------
    base_url : str
    api_key : Secret
    lifetime_s : int or None
        Wished lifetime in seconds; None leaves it to the service.
    transport : Transport
    """

    def __init__(self, base_url: str, api_key: Secret, lifetime_s: int | None, transport: Transport) -> None:
        self._base_url = base_url
        self._url = base_url + ISSUE_TOKEN.path
        self._request = TokenRequest(api_key, UNSET if lifetime_s is None else _checked_lifetime(lifetime_s))
        self._transport = transport
        self._bearer: BearerAuth | None = None
        self._renewing = threading.Lock()

    def issue(self) -> TokenResponse:
        """Exchange the key for a fresh token, which is used from now on."""
        token = self._issued()
        self._bearer = BearerAuth(token.token)
        return token

    def _issued(self) -> TokenResponse:
        body = encode(self._request)
        try:
            answer = self._transport.exchange("POST", self._url, data=body, headers=JSON_BODY, repeats=True)
        except NoAnswerError as silent:  # of the call that needs the token nothing was sent
            raise NoAnswerError(str(silent), sent=False) from None
        try:
            token = decoded(self._transport.checked(answer, ISSUE_TOKEN), TokenResponse, what=ISSUE_TOKEN)
        except (ServiceError, ProtocolError) as refused:
            is_elsewhere = isinstance(refused, ProtocolError) or refused.status in {404, 405}
            api_url = self._find_api() if is_elsewhere else None
            if api_url is None:
                raise
            raise _wrong_address(self._base_url, api_url) from None
        self._transport.keep_out(token.token)
        _refuse_unfit(token.token)
        return token

    def _find_api(self) -> str | None:
        """Return the address below this one where an API asks for a token; nothing secret is sent to find out."""
        if self._base_url.endswith(API_PATH):
            return None
        api_url = self._base_url.removesuffix(API_PATH.rpartition("/")[0]) + API_PATH
        try:
            answer = self._transport.without_repeats().exchange("GET", api_url + LIST_REQUESTS.path)
        except MemframeError:
            return None
        return api_url if answer.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN} else None

    def exchange(self, method: str, url: str, *, transport: Transport, **request: Any) -> Answer:
        """One request with the token on it; should it have expired, once more with a fresh one."""
        return self._exchange(self.bearer(), method, url, transport, **request)

    @contextmanager
    def asked(
        self, url: str, *, transport: Transport, params: Mapping[str, str]
    ) -> Iterator[Callable[[], Answer]]:
        """The same with a GET that is sent when the block begins, and answered when what it gives is called."""
        bearer = self.bearer()
        sent = transport.start(url, auth=bearer, params=params)
        try:
            yield lambda: self._exchange(bearer, "GET", url, transport, params=params, under_way=sent)
        finally:
            if sent:
                sent.close()

    def _exchange(
        self,
        bearer: BearerAuth,
        method: str,
        url: str,
        transport: Transport,
        *,
        under_way: Sent | None = None,
        **request: Any,
    ) -> Answer:
        """Renew what has expired; a token that nobody else was given is refused for another reason.

        Where a token is good for a few requests only, the others in flight may have used up the renewed one.
        """
        answer = transport.exchange(method, url, auth=bearer, under_way=under_way, **request)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            bearer = self.bearer(refused=bearer)
            answer = transport.exchange(method, url, auth=bearer, **request)
        if answer.status == HTTPStatus.UNAUTHORIZED and bearer.n_takers > 1:
            bearer = BearerAuth(self._issued().token, n_takers=1)
            answer = transport.exchange(method, url, auth=bearer, **request)
            self._bearer = bearer
        return answer

    def bearer(self, *, refused: BearerAuth | None = None) -> BearerAuth:
        """The token in force; a refused one is renewed by whoever comes first, and the others share it."""
        with self._renewing:
            if self._bearer is None or self._bearer is refused:
                self.issue()
            assert self._bearer is not None  # noqa: S101 - for the type checker: issue sets it or raises
            self._bearer.n_takers += 1
            return self._bearer


API_PATH = "/api/v1"
"""How the addresses of the specification end."""


def _wrong_address(base_url: str, api_url: str) -> NotFoundError:
    error = NotFoundError(
        f"{ISSUE_TOKEN}: there is no API at {base_url}, but there is one at {api_url}: give that as base_url",
        status=HTTPStatus.NOT_FOUND,
        endpoint=str(ISSUE_TOKEN),
    )
    error.api_url = api_url
    return error


_TOKEN = re.compile(r"[\x21-\x7e]+")


def _refuse_unfit(token: Secret) -> None:
    """A token with a line end in it could forge headers, and an empty one would only be refused."""
    is_fit = _TOKEN.fullmatch(token.reveal())
    if not is_fit:
        raise ProtocolError(
            f"{ISSUE_TOKEN}: the answer's token is empty or cannot stand in a header. Check that base_url is the "
            "address of the API; if it is, tell the operator of the service"
        )


def _checked_lifetime(lifetime_s: object) -> int:
    if not isinstance(lifetime_s, int) or isinstance(lifetime_s, bool) or lifetime_s < 1:
        raise ConfigError(
            f"token_lifetime_s={lifetime_s!r}: give whole seconds from 1, or None to leave it to the service"
        )
    return lifetime_s
