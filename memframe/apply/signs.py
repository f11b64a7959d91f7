"""What an exchange says about a write: one sign out of a few, whatever the service answered or did not.

The first half of a decision, without any effect; the second is `memframe.apply.verdicts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Literal, NamedTuple

from msgspec import Struct

from memframe.change import Action
from memframe.client.responses import Response, decode, same_id
from memframe.client.retry import retry_after_s
from memframe.errors import (
    AccessError,
    AuthError,
    MemframeError,
    NoAnswerError,
    ProtocolError,
    RateLimitError,
    ServiceError,
)
from memframe.wire import Deleted, MemoryBlobResponse

Sign = Literal[
    "done",  # carried out, and said so
    "unsent",  # nothing left for the service, or nothing that writes
    "throttled",  # 429: not carried out, come again later
    "unclear",  # perhaps carried out, perhaps not
    "missing",  # 404
    "taken",  # 409: not in a state for this
    "present",  # 409: the memory that was to be restored is there
    "spent",  # 409: an earlier request with the same idempotency key made a memory that is gone since
    "refused",  # any other 4xx: not carried out, and never will be
    "unread",  # a refusal of the reading before a write, which says nothing about what was sent earlier
    "barred",  # the account, the address or the request for access: not carried out, nor will others be
    "rekeyed",  # not carried out: content is sealed under another key by now
    "foreign",  # an answer about something else: perhaps carried out, and nothing more is sent there
]


class Seen(NamedTuple):
    """What was seen of one exchange.

    Attributes
    ----------
    sign : str
    id : str or None
        Of the memory that was written, where the answer names one.
    http_status : int or None
    error : MemframeError or None
        In words for people; None where all is well.
    wait_s : float or None
        How long the service asks to be left alone.
    record : MemoryBlobResponse or None
        The memory as the answer has it, whole.
    """

    sign: Sign
    id: str | None = None
    http_status: int | None = None
    error: MemframeError | None = None
    wait_s: float | None = None
    record: MemoryBlobResponse | None = None

    @property
    def is_trouble(self) -> bool:
        """Whether the service has trouble; one that answers with a success in words of its own has none."""
        return self.http_status is None or not _is_success(self.http_status)


def _is_success(status: int) -> bool:
    return 200 <= status < 300


_OF_STATUS: Mapping[int, Sign] = {
    401: "barred",  # the token was renewed once before
    403: "barred",
    404: "missing",
    408: "unclear",
    409: "taken",
    425: "unclear",
    429: "throttled",
}
_OF_CLASS: Mapping[int, Sign] = {3: "barred", 4: "refused"}
_OF_CODE: Mapping[str | None, Sign] = {
    "key_version_changed": "rekeyed",
    "idempotency_key_spent": "spent",
    "memory_exists": "present",
}
"""Codes of the embedded service's 409; others need not know them."""

_SUCCESSES: Mapping[Action, frozenset[int]] = {
    "create": frozenset({200, 201}),
    "patch": frozenset({200, 201, 204}),
    "delete": frozenset({200, 204}),
}
"""What means that it is done: another 2xx, such as 202, promises it at most."""


def seen_in(
    answer: Response,
    *,
    action: Action,
    id: str | None,  # noqa: A002 - what it is called on the wire
    user_id: str,
    error_of: Callable[[Response], MemframeError],
) -> Seen:
    """The sign in an answer to a write of the memory `id`, None for a create.

    >>> from memframe.secret import SecretBytes
    >>> from urllib3 import HTTPHeaderDict
    >>> def sign(status, body):
    ...     answer = Response(status, HTTPHeaderDict(), SecretBytes(body), "example.org")
    ...     return seen_in(answer, action="create", id=None, user_id="u1", error_of=lambda answer: None).sign
    >>> sign(201, b'{"id": "m1", "user_id": "u1"}'), sign(201, b'{"id": "m1", "us'), sign(503, b"")
    ('done', 'unclear', 'unclear')
    """
    wait_s = retry_after_s(answer.headers)
    if not _is_success(answer.status):
        error = error_of(answer)
        return Seen(_sign_of_refusal(answer.status, error), None, answer.status, error, wait_s)
    try:
        sign, written = _read_success(answer, action, id)
    except ProtocolError as broken:
        return Seen("unclear", None, answer.status, broken)
    if written and not (same_id(written.user_id, user_id) and (id is None or same_id(written.id, id))):
        return Seen("foreign", None, answer.status, _foreign(answer, action, id))
    doubt = _promised(answer, action) if sign == "unclear" else None
    return Seen(sign, written.id if written else id, answer.status, doubt, record=written)


def _sign_of_refusal(status: int, error: MemframeError) -> Sign:
    code = getattr(error, "code", None) if status == 409 else None
    return _OF_CODE.get(code) or _OF_STATUS.get(status) or _OF_CLASS.get(status // 100, "unclear")


def _read_success(
    answer: Response, action: Action, asked: str | None
) -> tuple[Sign, MemoryBlobResponse | None]:
    what = f"the {action}"
    if answer.status not in _SUCCESSES[action]:
        return "unclear", None
    if action == "delete":
        is_done = not answer.body.reveal().strip() or decode(answer.body, Deleted, what=what).success
        return ("done" if is_done else "unclear"), None
    if action == "patch" and _says_patched(answer, str(asked)):
        return "done", None
    written = decode(answer.body, MemoryBlobResponse, what=what)
    return ("done", written) if written.id.strip() else ("unclear", None)


class _Part(Struct, frozen=True):
    """As much of a record as some services answer a patch with."""

    id: str | None = None
    user_id: str | None = None
    success: bool | None = None


def _says_patched(answer: Response, asked: str) -> bool:
    """Whether a patch is answered with less than the whole record, but with enough to believe it.

    That is no content at all, ``success``, or the id with the fields that were sent.
    """
    if answer.status == HTTPStatus.NO_CONTENT:
        return True
    try:
        part = decode(answer.body, _Part, what="the patch")
    except ProtocolError:
        return False
    if part.user_id is not None or part.success is False:
        return False
    return part.success is True if part.id is None else same_id(part.id, asked)


def _promised(answer: Response, action: Action) -> ProtocolError:
    return ProtocolError(
        f"{answer.host} answered {answer.status}, which does not say that the {action} was done"
    )


def _foreign(answer: Response, action: Action, asked: str | None) -> ProtocolError:
    return ProtocolError(
        f"{answer.host} answered the {action} of {asked or 'a new memory'} with the record of another memory or "
        "user, which was not kept: nothing more is sent. Ask the operator of the service to look at it"
    )


def seen_in_error(error: MemframeError, *, wrote: bool) -> Seen:
    """The sign in an exchange that ended without an answer to judge.

    Parameters
    ----------
    error : MemframeError
        As the client raised it.
    wrote : bool
        Whether the exchange was a write; its refusals by status are answers, so that an error with a status
        is about the token without which it could not be sent.
    """
    status = error.status if isinstance(error, ServiceError) else None
    return Seen(_sign_of_error(error, wrote), None, status, error)


def _sign_of_error(error: MemframeError, wrote: bool) -> Sign:
    if isinstance(error, NoAnswerError):
        return "unclear" if wrote and error.sent else "unsent"
    if isinstance(error, RateLimitError):
        return "throttled"
    if isinstance(error, AuthError | AccessError):
        return "barred"
    if isinstance(error, ServiceError) and (error.status or 0) >= 500:
        return "unsent"
    if isinstance(error, ProtocolError):
        return "foreign" if wrote else "barred"
    if not wrote:
        return "unread"
    return "barred" if isinstance(error, ServiceError) else "refused"
