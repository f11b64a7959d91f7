"""Send requests to a service that is being checked, and keep the facts that its answers have shown.

Requests do not use `Client`, because it tolerates and repairs answers, and a check must see them unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, NamedTuple, NoReturn
from uuid import UUID, uuid4

import msgspec
from urllib3 import HTTPHeaderDict

from memframe.client.auth import BearerAuth
from memframe.client.responses import Response, same_id
from memframe.client.transport import JSON_BODY, Transport
from memframe.envelope import Envelope
from memframe.errors import MemframeError
from memframe.oauth import OAuthFlow
from memframe.secret import Secret, SecretBytes
from memframe.wire import CREATE_MEMORY, DELETE_MEMORY, GET_MEMORY, LIST_MEMORIES, REQUEST_STATUSES, Endpoint

JsonObject = Mapping[str, Any]

MAX_PAGES = 50
"""Pages read of one listing, so that a check of a large store ends soon."""

PAGE = 100
"""Memories requested per page where the page size does not matter."""


class UnmetError(Exception):
    """A requirement does not hold; the text says what was found instead, and quotes no value."""


class NotTriedError(Exception):
    """A requirement could not be tried; the text says why, and what would make it possible."""


class Reply(NamedTuple):
    """One response: its JSON, or None if its body is not JSON."""

    status: int
    headers: HTTPHeaderDict
    document: Any

    @property
    def is_success(self) -> bool:
        """Return True for 2xx."""
        return 200 <= self.status < 300

    def require(self, *statuses: int) -> Reply:
        """Return the answer if its status is one of these."""
        if self.status not in statuses:
            raise UnmetError(f"answered {self.status}, not {' or '.join(map(str, statuses))}")
        return self

    def require_success(self) -> Reply:
        """Return the answer if its status is 2xx."""
        if not self.is_success:
            raise UnmetError(f"answered {self.status}")
        return self

    def require_refusal(self) -> str:
        """Return words for the status if it is 4xx."""
        if not 400 <= self.status < 500:
            raise UnmetError(f"answered {self.status}")
        return f"refused with {self.status}"

    def record(self, fields: Mapping[str, str]) -> JsonObject:
        """Return the JSON object if it has these fields, each of its kind."""
        return require_record(self.document, fields)

    def records(self, name: str, fields: Mapping[str, str]) -> list[JsonObject]:
        """Return the list of that name, whose records have these fields."""
        listed = self.record({name: "list"})[name]
        return [require_record(record, fields, where=f"{name}[{n}]: ") for n, record in enumerate(listed)]


def _is_uuid(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(UUID(value))
    except ValueError:
        return False


def _is_date_time(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(
            _DATE_TIME.fullmatch(value) and datetime.fromisoformat(value.upper())
        )
    except ValueError:
        return False


_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.IGNORECASE)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


JSON_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "text": lambda value: isinstance(value, str) and value != "",
    "uuid": _is_uuid,
    "date-time": _is_date_time,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": _is_number,
    "0 to 1": lambda value: _is_number(value) and 0 <= value <= 1,
    "boolean": lambda value: isinstance(value, bool),
    "list": lambda value: isinstance(value, list),
    "strings": lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    "hexadecimal text": lambda value: (
        isinstance(value, str) and re.fullmatch("([0-9a-fA-F]{2})+", value) is not None
    ),
    "colour": lambda value: isinstance(value, str) and re.fullmatch("#[0-9a-fA-F]{3,8}", value) is not None,
    "status": lambda value: value in REQUEST_STATUSES,
    "Bearer": lambda value: isinstance(value, str) and value.lower() == "bearer",
    "true": lambda value: value is True,
}
"""Kinds of fields. ``?`` after the name of a kind: the field may be null or missing."""

TOKEN_FIELDS = {"token": "text", "expires_at": "date-time", "token_type": "Bearer"}
REQUEST_FIELDS = {
    "id": "text",
    "status": "status",
    "reason": "string?",
    "memoryKey": "text",
    "user_id": "uuid?",
    "aiConnectorId": "text",
    "createdAt": "date-time",
    "updatedAt": "date-time",
}
CREDENTIALS_FIELDS = {
    "user_id": "uuid",
    "memory_key": "text",
    "encryption_key": "hexadecimal text",
    "key_version": "integer",
}
BLOB_RESPONSE_FIELDS = {
    "id": "text",
    "user_id": "uuid",
    "title": "string?",
    "summary": "string?",
    "tags": "strings?",
    "tag_ids": "strings?",
    "importance": "number?",
    "confidence": "0 to 1?",
    "source": "string?",
    "created_at": "date-time",
    "updated_at": "date-time",
}
BLOB_FIELDS = {**BLOB_RESPONSE_FIELDS, "content": "string"}
TAG_FIELDS = {
    "id": "text",
    "name": "text",
    "color": "colour?",
    "description": "string?",
    "is_enabled": "boolean",
    "created_at": "date-time",
    "updated_at": "date-time",
}


def require_record(document: Any, fields: Mapping[str, str], *, where: str = "") -> JsonObject:
    """Return a JSON object if it has these fields, each of its kind."""
    if not isinstance(document, dict):
        raise UnmetError(f"{where}not a JSON object")
    faults = []
    for name, kind in fields.items():
        value = document.get(name)
        if value is None and not kind.endswith("?"):
            faults.append(f"{name} is {'null' if name in document else 'missing'}")
        elif value is not None and not JSON_KINDS[kind.rstrip("?")](value):
            faults.append(f"{name} is not of the kind {kind.rstrip('?')}")
    if faults:
        raise UnmetError(where + ", ".join(faults))
    return document


class Probe:
    """A service that is being checked: how to call it, and the facts known about it so far.

    A fact is None until the requirement that finds it has held. Requirements that need a fact read it by a property,
    such as `token_auth`, `request` or `keys`, which raises `NotTriedError` if the fact is unknown.
    """

    def __init__(
        self,
        base_url: str,
        api_key: Secret,
        *,
        request_id: str | None = None,
        other_request_id: str | None = None,
        memory_key: Secret | None = None,
        flow: OAuthFlow | None = None,
        redirected: Secret | None = None,
        writes: bool = False,
        new_tag: str | None = None,
        wait_s: float | None = None,
        transport: Transport,
    ) -> None:
        self.base_url = base_url
        self.api_key = api_key
        self.request_id = request_id
        self.other_request_id = other_request_id
        self.memory_key = memory_key
        self.flow = flow
        self.redirected = redirected
        self.writes = writes
        self.new_tag = new_tag
        self.wait_s = wait_s
        self.transport = transport
        self.transport.mask(api_key, memory_key)
        self.bearer: BearerAuth | None = None
        self.requests: list[JsonObject] | None = None
        self.access_request: JsonObject | None = None
        self.credentials: JsonObject | None = None
        self.memories: list[JsonObject] | None = None
        self.tags: list[JsonObject] | None = None
        self.refusals: list[Reply] = []
        self.paged: list[list[JsonObject]] | None = None
        self.tag_names: list[str] = []
        """Names of up to two tags that the user already has."""
        self.new_request_id: str | None = None
        self.marker = f"memframecheck{uuid4().hex[:12]}"
        """Word in all texts of memories that the check creates."""
        self.created: dict[str, JsonObject] = {}
        """Memories that the check has created and not yet deleted: id, and the fields that were sent."""
        self._may_have_created_more = False
        self.left_behind: list[str] = []
        """Sentences about traces that could not be removed."""

    # -- facts

    @property
    def token_auth(self) -> BearerAuth:
        """Return the developer's bearer token, as an authorization for requests."""
        return self.bearer or _miss("no token was given")

    @property
    def request(self) -> JsonObject:
        """Return the approved access request."""
        return self.access_request or _miss(
            "no approved access request is known: give --request ID once a user has approved, or --memory-key-file "
            "and --wait with --write"
        )

    @property
    def keys(self) -> JsonObject:
        """Return the credentials of the approved request."""
        return self.credentials or _miss(
            "no credentials are known: they need an approved access request (--request)"
        )

    @property
    def user(self) -> dict[str, str]:
        """Return the query that names the user."""
        return {"user_id": self.keys["user_id"]}

    @property
    def identity(self) -> dict[str, str]:
        """Return the fields of a body that name the user."""
        return {**self.user, "memoryKey": self.keys["memory_key"]}

    @property
    def known_memories(self) -> list[JsonObject]:
        """Return the memories that the first listing gave."""
        if self.memories is None:
            raise NotTriedError("the memories could not be listed")
        return self.memories or _miss("the user has no memories; --write creates some")

    def require_writing(self) -> None:
        """Raise `NotTriedError` unless the check may write."""
        if not self.writes:
            raise NotTriedError("it writes: give --write")

    @property
    def own_memory(self) -> JsonObject:
        """Return the memory that the check created first, with the fields that were sent."""
        self.require_writing()
        return next(iter(self.created.values()), None) or _miss("no memory could be created")

    def envelope(self) -> Envelope:
        """Return an envelope under the user's key."""
        keys = self.keys
        return Envelope(
            Secret(keys["encryption_key"]), user_id=keys["user_id"], key_version=keys["key_version"]
        )

    # -- requests

    def send(
        self,
        endpoint: Endpoint,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        auth: BearerAuth | None = None,
        is_anonymous: bool = False,
        **ids: str,
    ) -> Reply:
        """Send one request with the developer's token, or with another one, or without any."""
        parts: dict[str, Any] = {"params": params}
        if body is not None:
            parts |= {"data": SecretBytes(msgspec.json.encode(body)), "headers": JSON_BODY}
        if not is_anonymous:
            parts["auth"] = auth or self.token_auth
        url = self.base_url + endpoint.fill(**ids)
        return self._keep(self.transport.send(endpoint.method, url, **parts))

    def _keep(self, response: Response) -> Reply:
        try:
            document = msgspec.json.decode(response.body.reveal())
        except (ValueError, RecursionError):
            document = None
        answer = Reply(response.status, response.headers, document)
        if answer.status >= 400:
            self.refusals.append(answer)
        return answer

    def create(self, body: Mapping[str, Any], *, is_anonymous: bool = False) -> Reply:
        """Create a memory, and keep its id so that it is deleted later, even if it should have been refused.

        An id that does not lead to a memory of this check is not kept: otherwise a memory of the user could be deleted.
        """
        answer = self.send(CREATE_MEMORY, body=body, is_anonymous=is_anonymous)
        memory_id = answer.document.get("id") if isinstance(answer.document, dict) else None
        if isinstance(memory_id, str) and self._is_own(memory_id):
            sent = {name: value for name, value in body.items() if name not in self.identity}
            self.created[memory_id] = {**sent, "id": memory_id}
        elif not 400 <= answer.status < 500:
            self._may_have_created_more = True
        return answer

    def _is_own(self, memory_id: str) -> bool:
        read = self.send(GET_MEMORY, params=self.user, memory_id=memory_id).document
        return isinstance(read, dict) and self.marker in str(read.get("title"))

    def list_page(self, **params: str) -> Reply:
        """Fetch one page of the user's memories."""
        return self.send(LIST_MEMORIES, params={**self.user, **params})

    def find(self, **params: str) -> list[JsonObject]:
        """Return the first page of the memories that match a filter."""
        return self.list_page(limit=str(PAGE), **params).require(200).records("memoryBlobs", BLOB_FIELDS)

    def pages(self, limit: int) -> Iterator[list[JsonObject]]:
        """Yield pages of the user's memories up to the last one, or `MAX_PAGES` of them."""
        cursor, seen = None, set[str]()
        for _ in range(MAX_PAGES):
            answer = self.list_page(limit=str(limit), **({"cursor": cursor} if cursor is not None else {}))
            page = answer.require(200).records("memoryBlobs", {"id": "text"})
            cursor = answer.record({"next_cursor": "string?"}).get("next_cursor")
            yield page
            if cursor is None:
                return
            if cursor in seen:
                raise UnmetError(
                    f"the cursor of page {len(seen) + 1} was given before, so that the listing never ends"
                )
            seen.add(cursor)

    # -- traces

    def remove_traces(self) -> None:
        """Delete the memories that the check has created, also those whose ids no answer gave."""
        for memory_id in self._find_own() if self._may_have_created_more else [*self.created]:
            try:
                answer = self.send(DELETE_MEMORY, params=self.user, memory_id=memory_id)
                is_gone = answer.is_success or answer.status == HTTPStatus.NOT_FOUND
            except MemframeError:
                is_gone = False
            if not is_gone:
                self.left_behind.append(
                    f"the memory {self.transport.printable(memory_id)} could not be deleted"
                )

    def _find_own(self) -> set[str]:
        """Return the ids of all memories with the marker in the title."""
        found = {*self.created}
        try:
            for page in self.pages(PAGE):
                found |= {each["id"] for each in page if self.marker in str(each.get("title"))}
        except (MemframeError, UnmetError):
            self.left_behind.append(f"memories may be left: look for {self.marker} in the title")
        return found


def require_same(record: JsonObject, **ids: str) -> JsonObject:
    """Return a record if it has these ids."""
    for name, value in ids.items():
        if not same_id(str(record.get(name)), value):
            raise UnmetError(f"the answer has another {name} than the one asked for")
    return record


def _miss(why: str) -> NoReturn:
    raise NotTriedError(why)
