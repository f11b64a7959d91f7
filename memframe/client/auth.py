"""Bearer tokens: fetched on first use, renewed once for all threads after a 401."""

from __future__ import annotations

import re
import threading
from http import HTTPStatus
from typing import Any

import requests
from msgspec import UNSET
from requests.auth import AuthBase

from memframe.client.connections import PrefetchedRequest
from memframe.client.responses import Response, decode
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
    """A token as authentication of requests, with the number of its uses; a netrc file cannot override it."""

    def __init__(self, token: Secret, n_uses: int = 0) -> None:
        self.token = token
        self.n_uses = n_uses

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self.token.reveal()}"
        return request


class TokenProvider:
    """Fetch and renew the tokens of a client, and send requests with them."""

    def __init__(self, base_url: str, api_key: Secret, lifetime_s: int | None, transport: Transport) -> None:
        self._base_url = base_url
        self._url = base_url + ISSUE_TOKEN.path
        if lifetime_s is not None and (type(lifetime_s) is not int or lifetime_s < 1):
            raise ConfigError(
                f"token_lifetime_s={lifetime_s!r}: give whole seconds from 1, or None to leave it to the service"
            )
        self._request = TokenRequest(api_key, UNSET if lifetime_s is None else lifetime_s)
        self._transport = transport
        self._bearer: BearerAuth | None = None
        self._renewing = threading.Lock()

    def issue(self) -> TokenResponse:
        """Exchange the key for a fresh token and use it from now on."""
        token = self._fetch()
        self._bearer = BearerAuth(token.token)
        return token

    def _fetch(self) -> TokenResponse:
        body = encode(self._request)
        try:
            response = self._transport.send("POST", self._url, data=body, headers=JSON_BODY, is_read=True)
        except NoAnswerError as silent:  # the request that needs the token was not sent
            raise NoAnswerError(str(silent), sent=False) from None
        try:
            body = self._transport.require_success(response, ISSUE_TOKEN)
            token = decode(body, TokenResponse, what=ISSUE_TOKEN)
        except (ServiceError, ProtocolError) as refused:
            is_elsewhere = isinstance(refused, ProtocolError) or refused.status in {404, 405}
            api_url = self._find_api() if is_elsewhere else None
            if api_url is None:
                raise
            error = NotFoundError(
                f"{ISSUE_TOKEN}: there is no API at {self._base_url}, but there is one at {api_url}: give that as "
                "base_url",
                status=HTTPStatus.NOT_FOUND,
                endpoint=str(ISSUE_TOKEN),
            )
            error.api_url = api_url
            raise error from None
        self._transport.mask(token.token)
        if not re.fullmatch(r"[\x21-\x7e]+", token.token.reveal()):  # a line end could forge headers
            raise ProtocolError(
                f"{ISSUE_TOKEN}: the answer's token is empty or not valid in a header. Check that base_url is the "
                "address of the API; if it is, tell the operator of the service"
            )
        return token

    def _find_api(self) -> str | None:
        """Look for an API below this address, without sending a secret; return its address, or None."""
        if self._base_url.endswith(API_PATH):
            return None
        api_url = self._base_url.removesuffix(API_PATH.rpartition("/")[0]) + API_PATH
        try:
            response = self._transport.without_retries().send("GET", api_url + LIST_REQUESTS.path)
        except MemframeError:
            return None
        return api_url if response.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN} else None

    def send(
        self,
        method: str,
        url: str,
        *,
        transport: Transport,
        bearer: BearerAuth | None = None,
        prefetched: PrefetchedRequest | None = None,
        **parts: Any,
    ) -> Response:
        """Send a request with the token, and again with a renewed one after a 401.

        A second 401 is final if no other request carried that token. Otherwise the others may have used it up, because
        some services issue tokens for a few requests only: the last attempt fetches a token of its own. ``prefetched``
        is a request that was sent ahead, and ``bearer`` its token.
        """
        bearer = bearer or self.token()
        response = transport.send(method, url, auth=bearer, prefetched=prefetched, **parts)
        if response.status == HTTPStatus.UNAUTHORIZED:
            bearer = self.token(refused=bearer)
            response = transport.send(method, url, auth=bearer, **parts)
        if response.status == HTTPStatus.UNAUTHORIZED and bearer.n_uses > 1:
            bearer = BearerAuth(self._fetch().token, n_uses=1)
            response = transport.send(method, url, auth=bearer, **parts)
            self._bearer = bearer
        return response

    def token(self, *, refused: BearerAuth | None = None) -> BearerAuth:
        """Return the current token; the first thread that was refused renews it for all."""
        with self._renewing:
            if self._bearer is None or self._bearer is refused:
                self.issue()
            assert self._bearer is not None  # noqa: S101 - for the type checker: issue sets it or raises
            self._bearer.n_uses += 1
            return self._bearer


API_PATH = "/api/v1"
"""Path of the API in the addresses of the specification."""
