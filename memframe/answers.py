"""What an answer of the service means: a struct of the wire, or an error of the tree."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple, NoReturn, TypeVar

import msgspec
from requests.structures import CaseInsensitiveDict

from memframe.errors import (
    AccessError,
    AuthError,
    ConflictError,
    InvalidError,
    NotFoundError,
    ProtocolError,
    RateLimitError,
    ServiceError,
)
from memframe.wire import Problem, secret_from_wire

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
    401: "Check the API key, and that it belongs to this address.",
    403: "Look at the access request's status: the user may have rejected or revoked it.",
    429: "Wait a minute and try again.",
}


class Answer(NamedTuple):
    """An HTTP answer, read to its end."""

    status: int
    headers: CaseInsensitiveDict[str]
    body: bytes
    host: str


def error_of(answer: Answer, *, what: object, said: Callable[[str], str]) -> ServiceError:
    """The error that an answer outside 2xx stands for.

    Parameters
    ----------
    what : object
        What was asked, for the message: an `Endpoint`.
    said : callable
        Makes the service's own words fit to print.
    """
    problem = _problem(answer.body)
    reason = said(problem.detail or problem.title or "no reason given")
    message = f"{what}: {answer.host} answered {answer.status}: {reason}"
    next_step = _NEXT_STEP.get(answer.status)
    return _ERROR_OF_STATUS.get(answer.status, ServiceError)(
        f"{message}. {next_step}" if next_step else message,
        status=answer.status,
        code=problem.code,
        endpoint=str(what),
        detail=reason,
    )


def decoded(body: bytes, kind: type[T], *, what: object) -> T:
    """The body as a struct of `memframe.wire`.

    Raises
    ------
    ProtocolError
        Not JSON, or not of that form; the message says where, and quotes no value.
    """
    try:
        try:
            decoder: msgspec.json.Decoder[T] = _decoder(kind)  # type: ignore[arg-type]  # mypy: a type is hashable
            return decoder.decode(body)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            return _decoded_leniently(body, kind)
    except msgspec.ValidationError as wrong:
        raise ProtocolError(f"{what}: the answer breaks the specification: {wrong}") from None
    except (ValueError, RecursionError):
        raise ProtocolError(
            f"{what}: the answer is {_looks_like(body)}, not JSON. {_CHECK_ADDRESS}"
        ) from None


def _decoded_leniently(body: bytes, kind: type[T]) -> T:
    """Python's own reader: it takes a lone surrogate, which JSON allows and msgspec refuses."""
    return msgspec.convert(json.loads(body, parse_constant=_refuse), kind, dec_hook=secret_from_wire)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_CHECK_ADDRESS = (
    "Check the address: base_url ends with /api/v1, and no sign-in page or proxy may stand between."
)


@functools.cache
def _decoder(kind: Hashable) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind, dec_hook=secret_from_wire)


def _problem(body: bytes) -> Problem:
    """The problem document of an error answer; the bodies of strangers give an empty one."""
    try:
        return msgspec.json.decode(body, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Problem()


def _looks_like(body: bytes) -> str:
    start = body[:200].lstrip().lower()
    if not start:
        return "empty"
    if start.startswith((b"<!doctype html", b"<html")):
        return "an HTML page"
    return f"{len(body):,} bytes of something else, or cut short"


def printable(text: str) -> str:
    r"""A stranger's text as one line of at most 300 marks, without controls that a terminal would obey.

    >>> printable("done\x1b[2J\nnext")
    'done [2J next'
    """
    line = "".join(mark if mark.isprintable() else " " for mark in text)
    return line if len(line) <= 300 else f"{line[:299]}…"
