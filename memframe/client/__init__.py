"""`Client`: one method for each call of the API, for one developer account; `connect` makes it from the settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from os import PathLike
from typing import Any, Self, TypeVar, Unpack

from msgspec import UNSET, Struct, UnsetType

from memframe import wire
from memframe.client.auth import TokenProvider
from memframe.client.responses import Response, decode, full_id, is_uuid, require_same_id
from memframe.client.retry import SharedRateLimiter
from memframe.client.transport import JSON_BODY, Transport
from memframe.client.validation import check_id, memory_query, of_user, refuse_unsendable
from memframe.display import html_card
from memframe.errors import (
    ConfigError,
    DecisionTimeout,
    MemframeError,
    NotFoundError,
    ProtocolError,
    check_kind,
)
from memframe.runtime import Runtime
from memframe.secret import Secret, SecretBytes, as_secret, as_secret_if_text
from memframe.settings import find_client_settings
from memframe.wire import AccessRequest, Credentials, MemoryBlob, MemoryBlobResponse

MIN_POLL_S = 0.1
"""Minimum seconds between polls: the service throttles more frequent ones."""

T = TypeVar("T")


class Client:
    """The HTTP side of one developer account. Made by `memframe.connect`.

    The token is fetched when first needed. When it expires, it is renewed once for all threads. Reads are
    retried after temporary failures, writes never.

    Parameters
    ----------
    base_url : str
        Address of the API, with ``/api/v1``.
    api_key : Secret
        The developer's permanent key.
    auth_url : str, optional
        Address of the OAuth server.
    token_lifetime_s : int, optional
        Requested lifetime of tokens in seconds; None leaves it to the service.
    transport : Transport, optional
        Sends the requests; a new one by default.

    Attributes
    ----------
    options : Mapping
        The arguments of `connect` that make the same client in another process; the key in it is a `Secret`.
    restore_days : int
        Days for which the service can restore deleted memories with their ids and times, as stated with the
        credentials; 0 if it does not offer this. The specification does not name it.
    runtime : Runtime
        For tests: clock, randomness and folders used by everything done with this client.

    Examples
    --------
    >>> client.access_request(request_id).status
    'approved'
    >>> client.tags(access.user_id)[0].name
    'birds'
    """

    def __init__(
        self,
        base_url: str,
        api_key: Secret,
        *,
        auth_url: str | None = None,
        token_lifetime_s: int | None = None,
        transport: Transport | None = None,
    ) -> None:
        self.base_url = base_url
        self.auth_url = auth_url
        self._transport = transport or Transport()
        self._transport.mask(api_key)
        self.options: Mapping[str, Any] = {
            "base_url": base_url,
            "api_key": api_key,
            "auth_url": auth_url,
            "token_lifetime_s": token_lifetime_s,
            "ca_bundle": self._transport.ca_bundle,
        }
        self._tokens = TokenProvider(base_url, api_key, token_lifetime_s, self._transport)
        self.restore_days = 0
        self.runtime = Runtime()

    def __repr__(self) -> str:
        return f"<memframe.Client {self.base_url}>"

    def _repr_html_(self) -> str:
        return html_card("Client", {"API": self.base_url, "OAuth server": self.auth_url})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the client can be used again and opens new ones."""
        self._transport.close()

    def rate_limited(self, limiter: SharedRateLimiter) -> AbstractContextManager[None]:
        """Send all reads of the block through a rate limiter, in every thread."""
        return self._transport.rate_limited(limiter)

    def without_retries(self) -> Client:
        """Return this client, token included, without retries of refused reads."""
        twin = copy(self)
        twin._transport = self._transport.without_retries()  # noqa: SLF001 - of the same class
        return twin

    def sign_in(self) -> wire.TokenResponse:
        """Exchange the API key for a fresh token, which all further calls use.

        Optional: the first call does this. Use it to check the key.

        Returns
        -------
        wire.TokenResponse
            With ``expires_at`` in UTC.

        Raises
        ------
        AuthError
            The service refuses the key.
        """
        return self._tokens.issue()

    def send(self, endpoint: wire.Endpoint, ids: Mapping[str, str], **parts: Any) -> Response:
        """Send one request and return its response, whatever its status; after a 401, again with a renewed token.

        `apply` writes with it, because it decides by the status.
        """
        url = self.base_url + endpoint.fill(**{name: check_id(name, value) for name, value in ids.items()})
        return self._tokens.send(endpoint.method, url, transport=self._transport, **parts)

    def to_error(self, response: Response, endpoint: wire.Endpoint) -> MemframeError:
        """Make the error for a response with a status outside 2xx."""
        return self._transport.to_error(response, endpoint)

    def _call(
        self,
        endpoint: wire.Endpoint,
        kind: type[T],
        *,
        params: Mapping[str, str] | None = None,
        body: Struct | None = None,
        **ids: str,
    ) -> T:
        request = {"params": params} if body is None else {"data": wire.encode(body), "headers": JSON_BODY}
        return decode(self._send_checked(endpoint, ids, **request).body, kind, what=endpoint)

    def _send_checked(self, endpoint: wire.Endpoint, ids: Mapping[str, str], **parts: Any) -> Response:
        response = self.send(endpoint, ids, **parts)
        named = f"{endpoint.method} {endpoint.fill(**ids)}"  # with the ids, as one may be wrong
        self._transport.require_success(response, endpoint, call=named)
        return response

    def _body_fields(self, memory_key: Secret, **fields: Any) -> dict[str, Any]:
        """Check the fields of a body, and mask the memory key in messages."""
        fields["memory_key"] = memory_key
        refuse_unsendable(fields)
        self._transport.mask(memory_key)
        return fields

    # -- access requests

    def create_access_request(self, memory_key: Secret | str, reason: str) -> AccessRequest:
        """Ask a user for access to their memories.

        Parameters
        ----------
        memory_key : Secret or str
            The user's memory key, from the OAuth exchange.
        reason : str
            Text that the user reads before deciding.
        """
        memory_key = as_secret(memory_key)
        body = wire.AccessRequestCreate(**self._body_fields(memory_key, reason=reason))
        return self._call(wire.CREATE_REQUEST, AccessRequest, body=body)

    def access_requests(self) -> list[AccessRequest]:
        """Return all access requests of this developer account, from all pages."""
        page = self._call(wire.LIST_REQUESTS, wire.AccessRequestList)
        found, cursors = page.items, set()
        while page.next_cursor:
            if page.next_cursor in cursors:
                raise ProtocolError(f"{wire.LIST_REQUESTS}: the service gave the same cursor twice")
            cursors.add(page.next_cursor)
            params = {"cursor": page.next_cursor}
            page = self._call(wire.LIST_REQUESTS, wire.AccessRequestList, params=params)
            found = [*found, *page.items]
        return found

    def full_request_id(self, given: str, *, shown_by: str = "client.access_requests()") -> str:
        """Complete the id of an access request from its beginning; a whole UUID is returned unchanged.

        Raises
        ------
        NotFoundError
            No id begins with it.
        ConfigError
            Several ids begin with it; the message names them.
        """
        if is_uuid(given):
            return given
        ids = (request.id for request in self.access_requests())
        return full_id(given, ids, ("access request", "access requests"), shown_by=shown_by)

    def access_request(self, request_id: str) -> AccessRequest:
        """Fetch one access request, by its id or the beginning of it, with its current status."""
        _, request = self.with_full_id(request_id, self._access_request)
        return request

    def _access_request(self, request_id: str) -> AccessRequest:
        request = self._call(wire.GET_REQUEST, AccessRequest, request_id=request_id)
        return require_same_id(request, what=wire.GET_REQUEST, id=request_id)

    def with_full_id(self, given: str, fetch: Callable[[str], T]) -> tuple[str, T]:
        """Fetch something of an access request by its id or the beginning of its id; return the whole id as well.

        The requests are listed only if none has this id, because most ids are whole and not all services use UUIDs.
        """
        try:
            return given, fetch(given)
        except NotFoundError:
            request_id = self.full_request_id(given)
            if request_id == given:
                raise
        return request_id, fetch(request_id)

    def credentials(self, request_id: str) -> Credentials:
        """Fetch the keys to the memories of an approved request.

        Raises
        ------
        AccessError
            The request is not approved, or belongs to another developer.
        """
        response = self._send_checked(wire.GET_CREDENTIALS, {"request_id": request_id})
        keys = decode(response.body, Credentials, what=wire.GET_CREDENTIALS)
        days = response.headers.get(wire.RESTORE_DAYS, "")
        self.restore_days = int(days) if re.fullmatch(r"[0-9]{1,4}", days) else 0
        self._transport.mask_until_unmasked(keys.memory_key, keys.encryption_key)
        return keys

    def unmask(self, keys: Credentials) -> None:
        """Stop masking the keys of one call of `credentials` in messages; those of its other calls stay masked."""
        self._transport.unmask(keys.memory_key, keys.encryption_key)

    # -- memories

    def memory_blobs(
        self,
        user_id: str,
        *,
        tags: Iterable[str] | None = None,
        search: str | None = None,
        min_importance: float | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> wire.MemoryPage:
        """Fetch one page of a user's memories, content sealed.

        The filters are those of `load_memories`. ``limit`` is the size of the page, by default 10; ``cursor``
        is ``next_cursor`` of the previous page.
        """
        query = memory_query(user_id, tags=tags, search=search, min_importance=min_importance)
        with self.request_page(query, limit, cursor) as read:
            return decode(read(), wire.MemoryPage, what=wire.LIST_MEMORIES)

    @contextmanager
    def request_page(
        self, query: Mapping[str, str], limit: int | None = None, cursor: str | None = None
    ) -> Iterator[Callable[[], SecretBytes]]:
        """Request a page of memories, and give a function that waits for its JSON; call it once at most.

        `memory_query` makes the query. The loaders decode one page while the service prepares the next.
        """
        paging = {"limit": None if limit is None else str(limit), "cursor": cursor}
        params = {**query, **{name: value for name, value in paging.items() if value is not None}}
        url = self.base_url + wire.LIST_MEMORIES.path
        bearer = self._tokens.token()
        prefetched = self._transport.prefetch(url, auth=bearer, params=params)

        def read() -> SecretBytes:
            response = self._tokens.send(
                "GET", url, transport=self._transport, bearer=bearer, prefetched=prefetched, params=params
            )
            return self._transport.require_success(response, wire.LIST_MEMORIES)

        try:
            yield read
        finally:
            if prefetched:
                prefetched.close()

    def memory_blob(self, user_id: str, memory_id: str) -> MemoryBlob:
        """Fetch one memory, content sealed."""
        blob = self._call(wire.GET_MEMORY, MemoryBlob, params=of_user(user_id), memory_id=memory_id)
        return require_same_id(blob, what=wire.GET_MEMORY, id=memory_id, user_id=user_id)

    def create_memory_blob(
        self, user_id: str, *, memory_key: Secret | str, content: str, **fields: Unpack[wire.MemoryEdits]
    ) -> MemoryBlobResponse:
        """Create one memory; ``content`` is sent unchanged, not sealed."""
        memory_key = as_secret(memory_key)
        body = wire.MemoryCreate(
            **of_user(user_id), **self._body_fields(memory_key, content=content, **fields)
        )
        created = self._call(wire.CREATE_MEMORY, MemoryBlobResponse, body=body)
        return require_same_id(created, what=wire.CREATE_MEMORY, user_id=user_id)

    def update_memory_blob(
        self,
        user_id: str,
        memory_id: str,
        *,
        memory_key: Secret | str,
        content: str | UnsetType = UNSET,
        **fields: Unpack[wire.MemoryEdits],
    ) -> MemoryBlobResponse:
        """Change the given fields only; None clears one. ``tags`` replaces the whole list."""
        memory_key = as_secret(memory_key)
        body = wire.MemoryPatch(
            **of_user(user_id), **self._body_fields(memory_key, content=content, **fields)
        )
        changed = self._call(wire.UPDATE_MEMORY, MemoryBlobResponse, body=body, memory_id=memory_id)
        return require_same_id(changed, what=wire.UPDATE_MEMORY, id=memory_id, user_id=user_id)

    def delete_memory_blob(self, user_id: str, memory_id: str) -> None:
        """Delete one memory permanently."""
        endpoint = wire.DELETE_MEMORY
        response = self._send_checked(endpoint, {"memory_id": memory_id}, params=of_user(user_id))
        body = response.body
        if body.reveal().strip() and not decode(body, wire.Deleted, what=endpoint).success:
            raise ProtocolError(
                f"{endpoint}: answered {response.status} but not success; read the memory again"
            )

    # -- tags

    def tags(self, user_id: str) -> list[wire.Tag]:
        """Fetch all tags of a user."""
        return self._call(wire.LIST_TAGS, wire.TagList, params=of_user(user_id)).items

    def tag(self, user_id: str, tag_id: str) -> wire.Tag:
        """Fetch one tag of a user."""
        tag = self._call(wire.TAG, wire.Tag, params=of_user(user_id), tag_id=tag_id)
        return require_same_id(tag, what=wire.TAG, id=tag_id)


def connect(
    base_url: str | None = None,
    *,
    api_key: str | Secret | None = None,
    auth_url: str | None = None,
    token_lifetime_s: int | None = None,
    ca_bundle: str | PathLike[str] | None = None,
) -> Client:
    """Make a client for one developer account.

    Missing arguments are taken from ``MEMFRAME_BASE_URL``, ``MEMFRAME_API_KEY`` and ``MEMFRAME_AUTH_URL``, then
    from the OS keyring, then (addresses only) from the user's config file. Nothing is sent yet.

    Parameters
    ----------
    base_url : str, optional
        Address of the API, with ``/api/v1``; https, or http to this machine.
    api_key : str or Secret, optional
        The developer's permanent key.
    auth_url : str, optional
        Address of the OAuth server, which may differ.
    token_lifetime_s : int, optional
        Requested lifetime of tokens in seconds.
    ca_bundle : str or Path, optional
        File or folder with the root certificates to trust instead of the usual ones, for organisations that
        sign their own. ``REQUESTS_CA_BUNDLE`` works too. Proxies are taken from ``HTTPS_PROXY`` and
        ``NO_PROXY``.

    Raises
    ------
    ConfigError
        A setting is missing, malformed or unsafe.

    Examples
    --------
    >>> connect("http://127.0.0.1:8000/api/v1/", api_key="mf_key_of_this_example")
    <memframe.Client http://127.0.0.1:8000/api/v1>
    """
    api_key = as_secret_if_text(api_key)
    settings = find_client_settings(base_url=base_url, api_key=api_key, auth_url=auth_url)
    return Client(
        settings.base_url,
        settings.api_key,
        auth_url=settings.auth_url,
        token_lifetime_s=token_lifetime_s,
        transport=Transport(ca_bundle=ca_bundle),
    )


def connect_and_sign_in(
    base_url: str | None = None, *, api_key: str | Secret | None = None, auth_url: str | None = None
) -> Client:
    """Make a client and sign in; if the address lacks ``/api/v1``, try it with that path as well.

    The parameters are those of `connect`. The key is sent to the longer address, on the same host, only after an API
    has answered there.

    Raises
    ------
    ConfigError, AuthError, NoAnswerError
        As in `connect` and `Client.sign_in`.
    """
    api_key = as_secret_if_text(api_key)
    client = connect(base_url, api_key=api_key, auth_url=auth_url)
    try:
        client.sign_in()
    except NotFoundError as error:
        client.close()
        if error.api_url is None:
            raise
        client = connect(error.api_url, api_key=api_key, auth_url=auth_url)
        client.sign_in()
    return client


def id_of(request: str | AccessRequest) -> str:
    """Return the id of an access request; an id is returned unchanged."""
    check_kind("request_id", request, AccessRequest, str)
    return request.id if isinstance(request, AccessRequest) else request


def wait_for_decision(
    client: Client, request_id: str | AccessRequest, *, timeout_s: float, poll_s: float = 5
) -> AccessRequest:
    """Poll an access request until the user has decided.

    Parameters
    ----------
    client : Client
    request_id : str or AccessRequest
    timeout_s : float
        Seconds after which to give up; 0 polls once.
    poll_s : float
        Seconds between polls; fewer than 0.1 count as 0.1.

    Returns
    -------
    AccessRequest
        The request with its decision: approved, rejected or revoked.

    Raises
    ------
    DecisionTimeout
        The request is still pending after ``timeout_s``. It stays open.

    Examples
    --------
    >>> wait_for_decision(client, request_id, timeout_s=600).status
    'approved'
    """
    check_kind("client", client, Client)
    request_id = id_of(request_id)
    if not timeout_s >= 0:  # instead of "timeout_s < 0", which is False for NaN
        raise ConfigError(f"timeout_s={timeout_s!r}: give seconds from 0")
    poll_s = bound_poll(poll_s)
    runtime = client.runtime
    deadline = runtime.clock() + timeout_s
    while (request := client.access_request(request_id)).status == "pending":
        remaining_s = deadline - runtime.clock()
        if remaining_s <= 0:
            raise DecisionTimeout(
                f"access request {request_id} is still pending after {timeout_s:g} s: the request stays "
                "open. Ask the user to decide on the dashboard, then wait again"
            )
        runtime.sleep(min(poll_s, remaining_s))
    return request


def bound_poll(poll_s: float) -> float:
    """Return the seconds between polls, at least `MIN_POLL_S`; refuse 0, negative numbers and NaN."""
    if not poll_s > 0:  # instead of "poll_s <= 0", which is False for NaN
        raise ConfigError(f"poll_s={poll_s!r}: give seconds above 0")
    return max(poll_s, MIN_POLL_S)
