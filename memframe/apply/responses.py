"""Send the requests of a run, and classify each response, or the lack of one, as one of a few kinds.

This module only sends and receives; `memframe.apply.decisions` decides what follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Literal, NamedTuple
from urllib.parse import quote

import msgspec
from msgspec import Struct

from memframe import wire
from memframe.access import Access
from memframe.client.responses import Response, decode, same_id
from memframe.client.retry import retry_after_s
from memframe.client.transport import JSON_BODY
from memframe.errors import MemframeError, NoAnswerError, ProtocolError, RateLimitError, ServiceError
from memframe.journal import Operation
from memframe.plan.change import Action
from memframe.secret import Secret, SecretBytes
from memframe.wire import Deleted, MemoryBlobResponse

ResponseKind = Literal[
    "done",  # carried out, as the answer says
    "unsent",  # nothing was sent
    "throttled",  # 429: not carried out, to be sent again later
    "unclear",  # perhaps carried out, perhaps not
    "missing",  # 404
    "conflict",  # 409: the memory is in another state than the write needs
    "already_restored",  # 409: the memory to restore exists
    "idempotency_key_reused",  # 409: an earlier request with the same key made a memory that is gone since
    "refused",  # any other 4xx: not carried out, and never will be
    "access_denied",  # account, address or access request refused: not carried out, nor will other writes be
    "key_changed",  # not carried out: content is sealed under a new key now
    "wrong_record",  # an answer about another memory: perhaps carried out, and nothing more is sent
]


ENDPOINTS = {"create": wire.CREATE_MEMORY, "patch": wire.UPDATE_MEMORY, "delete": wire.DELETE_MEMORY}


class WriteResponse(NamedTuple):
    """The outcome of one exchange."""

    kind: ResponseKind
    id: str | None = None
    http_status: int | None = None
    error: MemframeError | None = None  # None for a success
    wait_s: float | None = None  # seconds that the service asks to wait
    record: MemoryBlobResponse | None = None  # if the answer has the whole record

    @property
    def is_http_failure(self) -> bool:
        """True without an answer or for a status outside 2xx; False for a 2xx that does not say what was done."""
        return self.http_status is None or not _is_success(self.http_status)


class Sender:
    """Send the operations of one run, from any thread."""

    def __init__(self, access: Access, run_id: str) -> None:
        self._access, self._run_id = access, run_id

    def send(self, operation: Operation, body: SecretBytes | None) -> WriteResponse:
        """Send a write; each attempt has the same idempotency key and, except for the memory key, the same bytes."""
        action, client = operation.action, self._access.client
        endpoint = ENDPOINTS[action]
        target = None if action == "create" else operation.id
        headers = {"Idempotency-Key": f"{self._run_id}-{operation.n}"}
        if operation.restores:
            headers[wire.RESTORES] = quote(operation.restores, safe="")
        request: dict[str, object] = {"params": {"user_id": self._access.user_id}, "headers": headers}
        if body is not None:
            sent = with_memory_key(body, self._access.credentials.memory_key)
            request = {"data": sent, "headers": headers | JSON_BODY}
        try:
            response = client.send(endpoint, {"memory_id": target} if target else {}, **request)
        except MemframeError as failure:
            return classify_error(failure)
        error = None if _is_success(response.status) else client.to_error(response, endpoint)
        return classify(response, error, action=action, id=target, user_id=self._access.user_id)


def with_memory_key(body: SecretBytes, memory_key: Secret) -> SecretBytes:
    """Put the memory key into a frozen body, of which no other byte changes.

    >>> with_memory_key(SecretBytes(b'{"user_id":"u1"}'), Secret("mk_1")).reveal()
    b'{"memoryKey":"mk_1","user_id":"u1"}'
    """
    return SecretBytes(b'{"memoryKey":' + msgspec.json.encode(memory_key.reveal()) + b"," + body.reveal()[1:])


# -- answers


_KIND_OF_STATUS: Mapping[int, ResponseKind] = {
    401: "access_denied",  # the token was renewed once before
    403: "access_denied",
    404: "missing",
    408: "unclear",
    409: "conflict",
    425: "unclear",
    429: "throttled",
}
_KIND_OF_CLASS: Mapping[int, ResponseKind] = {3: "access_denied", 4: "refused"}
_KIND_OF_CODE: Mapping[str | None, ResponseKind] = {
    "key_version_changed": "key_changed",
    "idempotency_key_spent": "idempotency_key_reused",
    "memory_exists": "already_restored",
}
"""Kinds by the codes of the embedded service's 409; other services need not know these codes."""

_SUCCESSES: Mapping[Action, frozenset[int]] = {
    "create": frozenset({200, 201}),
    "patch": frozenset({200, 201, 204}),
    "delete": frozenset({200, 204}),
}
"""Statuses that confirm a write; other 2xx, such as 202, only promise it."""


def _is_success(status: int) -> bool:
    return 200 <= status < 300


def classify(
    response: Response,
    error: MemframeError | None,
    *,
    action: Action,
    id: str | None,  # noqa: A002 - what it is called on the wire
    user_id: str,
) -> WriteResponse:
    """Classify the response to a write of the memory `id`, None for a create; outside 2xx `error` says why.

    >>> from memframe.secret import SecretBytes
    >>> from urllib3 import HTTPHeaderDict
    >>> def kind(status, body):
    ...     response = Response(status, HTTPHeaderDict(), SecretBytes(body), "example.org")
    ...     return classify(response, None, action="create", id=None, user_id="u1").kind
    >>> kind(201, b'{"id": "m1", "user_id": "u1"}'), kind(201, b'{"id": "m1", "us'), kind(503, b"")
    ('done', 'unclear', 'unclear')
    """
    status = response.status
    if not _is_success(status):
        code = getattr(error, "code", None) if status == HTTPStatus.CONFLICT else None
        kind = (
            _KIND_OF_CODE.get(code)
            or _KIND_OF_STATUS.get(status)
            or _KIND_OF_CLASS.get(status // 100, "unclear")
        )
        return WriteResponse(kind, None, status, error, retry_after_s(response.headers))
    try:
        is_done, record = _read_success(response, action, id)
    except ProtocolError as broken:
        return WriteResponse("unclear", None, status, broken)
    if record and not (same_id(record.user_id, user_id) and (id is None or same_id(record.id, id))):
        wrong = ProtocolError(
            f"{response.host} answered the {action} of {id or 'a new memory'} with the record of another memory or "
            "user, which was not kept: nothing more is sent. Ask the operator of the service to look at it"
        )
        return WriteResponse("wrong_record", None, status, wrong)
    found = record.id if record else id
    if is_done:
        return WriteResponse("done", found, status, record=record)
    doubt = ProtocolError(f"{response.host} answered {status}, which does not say that the {action} was done")
    return WriteResponse("unclear", found, status, doubt, record=record)


class _Part(Struct, frozen=True):
    """Part of a record, which some services return for a patch."""

    id: str | None = None
    user_id: str | None = None
    success: bool | None = None


def _read_success(
    response: Response, action: Action, asked: str | None
) -> tuple[bool, MemoryBlobResponse | None]:
    """Return True if a response says that the write is done, and the record in it.

    A patch may be answered with no content at all, ``success``, or the id with the fields that were sent.
    """
    what = f"the {action}"
    if response.status not in _SUCCESSES[action]:
        return False, None
    if action == "delete":
        return not response.body.reveal().strip() or decode(response.body, Deleted, what=what).success, None
    if action == "patch":
        if response.status == HTTPStatus.NO_CONTENT:
            return True, None
        with suppress(ProtocolError):
            part = decode(response.body, _Part, what=what)
            is_ours = part.success is True if part.id is None else same_id(part.id, str(asked))
            if is_ours and part.user_id is None and part.success is not False:
                return True, None
    record = decode(response.body, MemoryBlobResponse, what=what)
    return (True, record) if record.id.strip() else (False, None)


def classify_error(error: MemframeError) -> WriteResponse:
    """Classify an exchange that raised an error instead of returning a response.

    A write that is refused by status returns a response, so an error with a status comes from fetching the token.
    """
    status = error.status if isinstance(error, ServiceError) else None
    kind: ResponseKind = "refused"
    match error:
        case NoAnswerError():
            kind = "unclear" if error.sent else "unsent"
        case RateLimitError():
            kind = "throttled"
        case ServiceError() if error.status and error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            kind = "unsent"
        case ProtocolError():
            kind = "wrong_record"
        case ServiceError():
            kind = "access_denied"
    return WriteResponse(kind, None, status, error)
