"""Responses of the service: structs of `memframe.wire`, or errors."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn, TypeVar

import msgspec
from urllib3 import HTTPHeaderDict

from memframe.client.retry import retry_after_s
from memframe.display import printable
from memframe.errors import (
    AccessError,
    AuthError,
    ConfigError,
    ConflictError,
    InvalidError,
    NotFoundError,
    ProtocolError,
    RateLimitError,
    ServiceError,
)
from memframe.secret import SecretBytes, hide_frames, secret_from_wire
from memframe.wire import CREATE_REQUEST

T = TypeVar("T")

_ERROR_OF_STATUS: Mapping[int, type[ServiceError]] = {
    400: InvalidError,
    401: AuthError,
    403: AccessError,
    404: NotFoundError,
    409: ConflictError,
    412: ConflictError,
    422: InvalidError,
    429: RateLimitError,
}

_NEXT_STEP: Mapping[int, str] = {
    400: "Check what was passed against the specification of the service.",
    401: "Check the API key, and that it belongs to this address.",
    403: "Look at the access request's status: the user may have rejected or revoked it.",
    404: "Check that base_url is the address of the API, with /api/v1.",
    409: "It has changed in the meantime: read it again.",
    412: "It has changed in the meantime: read it again.",
    413: "Too large for this service: send less at once, or request smaller pages with page_size=.",
    414: "The address is too long for the service: search for a shorter text, or for fewer tags.",
    422: "Check what was passed against the specification of the service.",
    431: "The token or a cookie is too long for the service or a proxy: tell the operator of the service.",
    429: "Wait a minute and try again.",
}

_TRY_LATER = "Try again later; if this persists, tell the operator of the service."


class Response(NamedTuple):
    """An HTTP response, read to its end."""

    status: int
    headers: HTTPHeaderDict
    body: SecretBytes
    host: str

    def __repr__(self) -> str:
        return f"<Response {self.status} of {self.host}>"  # a hostile service may echo secrets in its headers


def to_service_error(
    response: Response, *, what: object, printable: Callable[[str], str], call: str | None = None
) -> ServiceError:
    """Make the error for a response with a status outside 2xx; the message names the request ``call``, else ``what``.

    ``printable`` makes the service's own words safe to print.
    """
    texts = read_error_texts(response.body.reveal())
    reason = printable(next((texts[name] for name in _REASONS if name in texts), "no reason given"))
    next_step = _NEXT_STEP.get(response.status, _TRY_LATER)
    if response.status == 404 and "{" in str(what):  # the address of this endpoint holds an id
        next_step = "Check the id, and give all of it. " + next_step
    if response.status == 403 and (
        str(what) == str(CREATE_REQUEST) or texts.get("code") == "wrong_memory_key"
    ):
        next_step = "The memory key is not accepted: let the user connect again, and use the new one."
    refused = f"{printable(call or str(what))}: {response.host} answered {response.status}"
    return _ERROR_OF_STATUS.get(response.status, ServiceError)(
        f"{refused}: {reason.rstrip(' .')}. {next_step}",
        status=response.status,
        code=printable(texts["code"]) if "code" in texts else None,
        endpoint=str(what),
        detail=reason,
        retry_after_s=retry_after_s(response.headers),
    )


_REASONS = ("detail", "message", "msg", "error_description", "error", "title")
"""Fields in which services give the reason of an error (RFC 9457, RFC 6749, custom): the specification names none."""


def read_error_texts(body: bytes) -> dict[str, str]:
    """Read the texts of an error's JSON object, and of an ``error`` object or a list of errors in it.

    >>> read_error_texts(b'{"error": {"code": "gone", "message": "no such thing"}, "status": 404}')
    {'code': 'gone', 'message': 'no such thing'}
    >>> read_error_texts(b'{"detail": [{"loc": ["query", "limit"], "msg": "at most 100"}, {"msg": "another"}]}')
    {'msg': 'limit: at most 100'}
    """
    try:
        document = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(document, dict):
        return {}
    parts = (_first_listed(document), document, document.get("error"))
    found = {name: text for part in parts if isinstance(part, dict) for name, text in part.items()}
    return {name: text for name, text in found.items() if isinstance(text, str)}


def _first_listed(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the first of several errors that a web framework lists in ``detail`` or ``errors``, with its field."""
    lists = (document.get(name) for name in ("detail", "errors"))
    first = next((errors[0] for errors in lists if isinstance(errors, list) and errors), None)
    if not isinstance(first, dict):
        return {}
    texts = {name: text for name, text in first.items() if name in _REASONS and isinstance(text, str)}
    place = first.get("loc")
    field = f"{place[-1]}: " if isinstance(place, list) and place else ""
    return {name: field + text for name, text in texts.items()}


@hide_frames
def decode(body: SecretBytes, kind: type[T], *, what: object) -> T:
    """Decode a body as a struct of `memframe.wire`; the error names the place of a mismatch, but quotes no value."""
    try:
        return _decode(body, kind)
    except msgspec.ValidationError as wrong:
        # msgspec quotes an unknown value of an enum: leave it out
        where = re.sub(r"enum value .*(?= - at `)", "enum value", str(wrong), flags=re.DOTALL)
        fault = (
            f"breaks the specification: {where}. If base_url is the address of a Memory Access Service, version 1, "
            "tell its operator."
        )
    except (ValueError, RecursionError):
        fault = (
            f"is {_looks_like(body.reveal())}, not JSON. Check the address: base_url ends with /api/v1, and no sign-in "
            "page or proxy may be in between."
        )
    # outside of except, because the cause would quote the body
    raise ProtocolError(f"{what}: the answer {fault}")


def _decode(body: SecretBytes, kind: type[T]) -> T:
    decoder: msgspec.json.Decoder[T] = _decoder(kind)  # type: ignore[arg-type]  # mypy: a type is hashable
    try:
        return decoder.decode(body.reveal())
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # Python's reader accepts lone surrogates, which JSON allows and msgspec refuses
        return msgspec.convert(
            json.loads(body.reveal(), parse_constant=_refuse), kind, dec_hook=secret_from_wire
        )


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


@functools.cache
def _decoder(kind: Hashable) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind, dec_hook=secret_from_wire)


def _looks_like(body: bytes) -> str:
    start = body[:200].lstrip().lower()
    if not start:
        return "empty"
    if start.startswith((b"<!doctype html", b"<html")):
        return "an HTML page"
    return f"{len(body):,} bytes of something else, or cut short"


def require_same_id(record: T, *, what: object, **asked: str) -> T:
    """Return a record that has the ids asked for; refuse another, which may hold another person's data."""
    for name, value in asked.items():
        if not same_id(getattr(record, name), value):
            raise ProtocolError(
                f"{what}: the service was asked for {name} {value} and returned another one, which was not kept. Do "
                "not use this service before its operator has looked at it"
            )
    return record


def same_id(one: str, other: str) -> bool:
    """Return True for equal ids, and for two spellings of one UUID.

    >>> same_id("5F0C9B1E-93F3-4B6C-8C0A-0A4C6B8D2E11", "5f0c9b1e-93f3-4b6c-8c0a-0a4c6b8d2e11")
    True
    >>> same_id("m1", "M1")
    False
    """
    return one == other or canonical_id(one) == canonical_id(other)


def canonical_id(text: str) -> str:
    """Return a UUID in small letters, so that its spellings become equal, and any other id unchanged.

    >>> canonical_id("5F0C9B1E-93F3-4B6C-8C0A-0A4C6B8D2E11"), canonical_id("Ada")
    ('5f0c9b1e-93f3-4b6c-8c0a-0a4c6b8d2e11', 'Ada')
    """
    return text.lower() if is_uuid(text) else text


def is_uuid(text: str) -> bool:
    """Return True for a whole UUID, with its hyphens.

    >>> is_uuid("5F0C9B1E-93F3-4B6C-8C0A-0A4C6B8D2E11"), is_uuid("5F0C9B1E")
    (True, False)
    """
    return _UUID.fullmatch(text) is not None


_UUID = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


_MAX_LISTED = 5


def full_id(given: str, ids: Iterable[str], nouns: tuple[str, str], *, shown_by: str) -> str:
    """Return the id out of `ids` that equals `given`, or the only one that begins with it.

    ``shown_by`` tells in the message where the ids are listed.

    >>> full_id("7C9", ["7c9e6679", "5f0c9b1e"], ("memory", "memories"), shown_by="`memframe export`")
    '7c9e6679'

    Raises
    ------
    NotFoundError
        No id begins with it.
    ConfigError
        Several ids begin with it; the message names them.
    """
    beginning = given.strip().lower()
    found = sorted(one for one in ids if beginning and one.lower().startswith(beginning))
    if given in found or len(found) == 1:
        return given if given in found else found[0]
    if found:
        some = ", ".join(found[:_MAX_LISTED]) + (", ..." if len(found) > _MAX_LISTED else "")
        raise ConfigError(
            f"{printable(given)} is the beginning of {len(found):,} {nouns[1]}, {some}: give more of the id"
        )
    raise NotFoundError(
        f"no {nouns[0]} has an id that is or begins with {printable(given)!r}: {shown_by} shows the ids",
        status=404,
    )
