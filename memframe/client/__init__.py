"""One method for each call of the API, for one developer account.

Arguments and settings to a client: where the service is, with which key, and whom to trust on the way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from os import PathLike
from typing import Any, Self, TypeVar, Unpack

from msgspec import UNSET, Struct, UnsetType

from memframe import wire
from memframe.client.auth import Tokens
from memframe.client.responses import Answer, about, decoded
from memframe.client.retry import Gate
from memframe.client.transport import JSON_BODY, Transport
from memframe.client.validation import checked_id, memory_query, of_user, refuse_unsendable
from memframe.display import card
from memframe.errors import MemframeError, NotFoundError, ProtocolError
from memframe.runtime import Runtime
from memframe.secret import Secret, SecretBytes, as_secret, closed
from memframe.settings import find_client_settings
from memframe.wire import AccessRequest, Credentials, MemoryBlob, MemoryBlobResponse

T = TypeVar("T")


class Client:
    """The HTTP side of one developer account. Made by `memframe.connect`.

    The token is fetched when first needed and renewed once, for all threads together, when the service
    says that it has expired. Reads are tried again on passing trouble, writes never.

    Parameters
    ----------
    base_url : str
        Address of the API, with ``/api/v1``.
    api_key : Secret
        The developer's permanent key.
    auth_url : str, optional
        Address of the OAuth server.
    token_lifetime_s : int, optional
        Wished lifetime of tokens in seconds; None leaves it to the service.
    transport : Transport, optional
        How requests travel.

    Attributes
    ----------
    restore_days : int
        For how many days the service restores deleted memories under their ids and times, as it said beside the
        credentials; 0 where it does not offer that, which is no part of the specification.
    runtime : Runtime
        For tests: the clock, chance and places of all that is done with this client.

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
        self._transport.keep_out(api_key)
        self._tokens = Tokens(base_url, api_key, token_lifetime_s, self._transport)
        self.restore_days = 0
        self.runtime = Runtime()

    def __repr__(self) -> str:
        return f"<memframe.Client {self.base_url}>"

    def _repr_html_(self) -> str:
        return card("Client", {"API": self.base_url, "OAuth server": self.auth_url})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the client can be used again and opens new ones."""
        self._transport.close()

    def paced(self, gate: Gate) -> AbstractContextManager[None]:
        """Within the block all reads of this client go through a gate, whoever makes them."""
        return self._transport.paced(gate)

    def without_repeats(self) -> Client:
        """This client, token included, for callers that ask again themselves: no refusal is waited out."""
        twin = copy(self)
        twin._transport = self._transport.without_repeats()  # noqa: SLF001 - of the same class
        return twin

    def sign_in(self) -> wire.TokenResponse:
        """Exchange the API key for a fresh token, which all further calls use.

        Nobody needs to call this: the first call does. It is there to find out whether the key is good.

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

    def exchange(self, endpoint: wire.Endpoint, ids: Mapping[str, str], **request: Any) -> Answer:
        """One call and its answer, whatever its status; a 401 renews the token and sends it once more.

        `apply` writes with it, as an answer that is an error to everybody else is news to a run.
        """
        url = self.base_url + endpoint.fill(**{name: checked_id(name, value) for name, value in ids.items()})
        return self._tokens.exchange(endpoint.method, url, transport=self._transport, **request)

    def error_of(self, answer: Answer, endpoint: wire.Endpoint) -> MemframeError:
        """The error that an answer outside 2xx stands for."""
        return self._transport.error_of(answer, endpoint)

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
        answer = self.exchange(endpoint, ids, **request)
        return decoded(
            self._transport.checked(answer, endpoint, call=_named(endpoint, ids)), kind, what=endpoint
        )

    def _checked(self, memory_key: Secret, **fields: Any) -> dict[str, Any]:
        """Fields of a body that may be sent; the key among them is kept out of messages."""
        fields["memory_key"] = memory_key
        refuse_unsendable(fields)
        self._transport.keep_out(memory_key)
        return fields

    # -- access requests

    def create_access_request(self, memory_key: Secret | str, reason: str) -> AccessRequest:
        """Ask a user for access to their memories.

        Parameters
        ----------
        memory_key : Secret or str
            The user's memory key, from the OAuth exchange.
        reason : str
            What the user reads before deciding.
        """
        memory_key = as_secret(memory_key)
        body = wire.AccessRequestCreate(**self._checked(memory_key, reason=reason))
        return self._call(wire.CREATE_REQUEST, AccessRequest, body=body)

    def access_requests(self) -> list[AccessRequest]:
        """Return all access requests of this developer account; a list in pages is followed to its end."""
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

    def access_request(self, request_id: str) -> AccessRequest:
        """One access request, with its status of this moment."""
        request = self._call(wire.GET_REQUEST, AccessRequest, request_id=request_id)
        return about(request, what=wire.GET_REQUEST, id=request_id)

    def credentials(self, request_id: str) -> Credentials:
        """The keys to the memories of an approved request.

        Raises
        ------
        AccessError
            The request is not approved, or belongs to another developer.
        """
        ids = {"request_id": request_id}
        answer = self.exchange(wire.GET_CREDENTIALS, ids)
        body = self._transport.checked(answer, wire.GET_CREDENTIALS, call=_named(wire.GET_CREDENTIALS, ids))
        keys = decoded(body, Credentials, what=wire.GET_CREDENTIALS)
        self.restore_days = _restore_days(answer)
        self._transport.hold(keys.memory_key, keys.encryption_key)
        return keys

    def forget(self, keys: Credentials) -> None:
        """Stop keeping the keys of one call of `credentials` out of messages; those of its other calls are kept out."""
        self._transport.forget(keys.memory_key, keys.encryption_key)

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
        """One page of a user's memories, content sealed.

        The filters are those of `load_memories`. ``limit`` is how many memories the page shall have, 10 where
        nothing is said; ``cursor`` is ``next_cursor`` of the page before.
        """
        query = memory_query(user_id, tags=tags, search=search, min_importance=min_importance)
        with self.memory_page(query, limit=limit, cursor=cursor) as body:
            return decoded(body(), wire.MemoryPage, what=wire.LIST_MEMORIES)

    @contextmanager
    def memory_page(
        self, query: Mapping[str, str], *, limit: int | None = None, cursor: str | None = None
    ) -> Iterator[Callable[[], SecretBytes]]:
        """Ask for a page, whose JSON is what the callable gives; `memory_query` makes the query.

        The request leaves when the block begins and its answer is read when it is called for, so that the loaders
        decode one page while the next is under way.
        """
        paging = {"limit": None if limit is None else str(limit), "cursor": cursor}
        params = {**query, **{name: value for name, value in paging.items() if value is not None}}
        url = self.base_url + wire.LIST_MEMORIES.path
        with self._tokens.asked(url, transport=self._transport, params=params) as answer:
            yield lambda: self._transport.checked(answer(), wire.LIST_MEMORIES)

    def memory_blob(self, user_id: str, memory_id: str) -> MemoryBlob:
        """One memory, content sealed."""
        blob = self._call(wire.GET_MEMORY, MemoryBlob, params=of_user(user_id), memory_id=memory_id)
        return about(blob, what=wire.GET_MEMORY, id=memory_id, user_id=user_id)

    def create_memory_blob(
        self, user_id: str, *, memory_key: Secret | str, content: str, **fields: Unpack[wire.MemoryEdits]
    ) -> MemoryBlobResponse:
        """Create one memory; ``content`` is sent as it is, as this call does not seal."""
        memory_key = as_secret(memory_key)
        body = wire.MemoryCreate(**of_user(user_id), **self._checked(memory_key, content=content, **fields))
        created = self._call(wire.CREATE_MEMORY, MemoryBlobResponse, body=body)
        return about(created, what=wire.CREATE_MEMORY, user_id=user_id)

    def update_memory_blob(
        self,
        user_id: str,
        memory_id: str,
        *,
        memory_key: Secret | str,
        content: str | UnsetType = UNSET,
        **fields: Unpack[wire.MemoryEdits],
    ) -> MemoryBlobResponse:
        """Change the fields that are given, and no other; None clears one. ``tags`` replaces the whole list."""
        memory_key = as_secret(memory_key)
        body = wire.MemoryPatch(**of_user(user_id), **self._checked(memory_key, content=content, **fields))
        changed = self._call(wire.UPDATE_MEMORY, MemoryBlobResponse, body=body, memory_id=memory_id)
        return about(changed, what=wire.UPDATE_MEMORY, id=memory_id, user_id=user_id)

    def delete_memory_blob(self, user_id: str, memory_id: str) -> None:
        """Delete one memory for good."""
        endpoint = wire.DELETE_MEMORY
        ids = {"memory_id": memory_id}
        answer = self.exchange(endpoint, ids, params=of_user(user_id))
        body = self._transport.checked(answer, endpoint, call=_named(endpoint, ids))
        if body.reveal().strip() and not decoded(body, wire.Deleted, what=endpoint).success:
            raise ProtocolError(
                f"{endpoint}: answered {answer.status} but not success; read the memory again"
            )

    # -- tags

    def tags(self, user_id: str) -> list[wire.Tag]:
        """All tags of a user."""
        return self._call(wire.LIST_TAGS, wire.TagList, params=of_user(user_id)).items

    def tag(self, user_id: str, tag_id: str) -> wire.Tag:
        """One tag of a user."""
        tag = self._call(wire.TAG, wire.Tag, params=of_user(user_id), tag_id=tag_id)
        return about(tag, what=wire.TAG, id=tag_id)


def _named(endpoint: wire.Endpoint, ids: Mapping[str, str]) -> str:
    """Return a call as messages name it: with the ids that were asked for, as one of them may be wrong."""
    return f"{endpoint.method} {endpoint.fill(**ids)}"


def _restore_days(answer: Answer) -> int:
    said = answer.headers.get(wire.RESTORE_DAYS, "")
    return int(said) if re.fullmatch(r"[0-9]{1,4}", said) else 0


def connect(
    base_url: str | None = None,
    *,
    api_key: str | Secret | None = None,
    auth_url: str | None = None,
    token_lifetime_s: int | None = None,
    ca_bundle: str | PathLike[str] | None = None,
) -> Client:
    """A client for one developer account.

    What is not given comes from ``MEMFRAME_BASE_URL``, ``MEMFRAME_API_KEY`` and ``MEMFRAME_AUTH_URL``,
    then from the OS keyring, then (addresses only) from the user's config file. Nothing is sent yet.

    Parameters
    ----------
    base_url : str, optional
        Address of the API, with ``/api/v1``; https, or http to this machine.
    api_key : str or Secret, optional
        The developer's permanent key.
    auth_url : str, optional
        Address of the OAuth server, which may be another.
    token_lifetime_s : int, optional
        Wished lifetime of tokens in seconds.
    ca_bundle : str or path, optional
        File or folder with the root certificates that are trusted instead of the usual ones, where an organisation
        signs its own. Otherwise ``REQUESTS_CA_BUNDLE`` may name one. Proxies come from ``HTTPS_PROXY`` and
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
    api_key = closed(api_key)
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
    """Return a client whose key was proved; an address without ``/api/v1`` is tried with it.

    The parameters are those of `connect`. The key goes to the longer address of the same host only after that
    has answered as an API does.

    Raises
    ------
    ConfigError, AuthError, NoAnswerError
        As in `connect` and `Client.sign_in`.
    """
    api_key = closed(api_key)
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
