"""What every endpoint does with a request and an answer: decode strictly, know who asks, encode."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial, wraps
from typing import Any, TypeVar

import msgspec
from litestar import Request, Response
from litestar.datastructures import State
from msgspec import Struct

from memframe import wire
from memframe.errors import InvalidError
from memframe.secret import Secret, secret_from_wire
from memframe.service.deployment import Deployment
from memframe.service.rules import checked_text, invalid
from memframe.service.store import Memories
from memframe.service.tokens import BearerTokens, bad_token

Body = TypeVar("Body", bound=Struct)
Result = TypeVar("Result")
ApiRequest = Request[Any, Any, State]


def route(endpoint: wire.Endpoint) -> str:
    """The path of an endpoint as the web framework writes it.

    >>> route(wire.TAG)
    '/tags/{tag_id:str}'
    """
    return endpoint.path.replace("}", ":str}")


def deployment_of(request: ApiRequest) -> Deployment:
    """The service that a request has reached."""
    deployment: Deployment = request.app.state.deployment
    return deployment


def bearer_of(request: ApiRequest) -> str:
    """Id of the developer whose bearer token came with a request; `AuthError` where none is good.

    Whether the account is still open, the database says along with the grant.
    """
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.casefold() != "bearer" or not token:
        raise bad_token()
    tokens: BearerTokens = request.app.state.bearer_tokens
    return tokens.developer_id(Secret(token.strip()))


def developer_of(request: ApiRequest) -> str:
    """The same where no grant is asked for: `AuthError` for an account that was closed, too."""
    developer_id = bearer_of(request)
    developer = deployment_of(request).store.accounts.developer(developer_id)
    if developer is None or developer.disabled:
        raise bad_token()
    return developer_id


def decode(kind: type[Body], request: ApiRequest, body: bytes) -> Body:
    """A JSON body as a struct, with strict types; `InvalidError` says what is wrong and where."""
    _check_media_type(request.headers.get("content-type", ""))
    try:
        return msgspec.json.decode(body, type=kind, dec_hook=secret_from_wire)
    except msgspec.ValidationError as error:
        raise invalid(f"the body is not as specified: {error}", "invalid_body") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise invalid("the body is not JSON in UTF-8", "malformed_json") from None
    except RecursionError:
        raise invalid("the body is nested too deeply", "malformed_json") from None


def _check_media_type(content_type: str) -> None:
    media_type = content_type.partition(";")[0].strip().casefold()
    if media_type and media_type != "application/json" and not media_type.endswith("+json"):
        message = "send the body as Content-Type: application/json"
        raise InvalidError(message, status=415, code="unsupported_media_type")


def query(request: ApiRequest, name: str) -> str | None:
    """A query parameter; None where it is absent or empty, refused where it comes twice."""
    values = request.query_params.getall(name, [])
    if len(values) > 1:
        raise invalid(f"the query parameter {name} is given {len(values)} times; give it once")
    return checked_text(values[0], name) if values and values[0] else None


def needed_query(request: ApiRequest, name: str) -> str:
    """A query parameter that must be there."""
    value = query(request, name)
    if value is None:
        raise invalid(f"the query parameter {name} is missing", "missing_parameter")
    return value


def quick_read(handler: Callable[..., Response[bytes]]) -> Callable[..., Awaitable[Response[bytes]]]:
    """A handler that reads little: on the event loop where the database answers at once, else in a thread."""

    @wraps(handler)
    async def answered(**given: Any) -> Response[bytes]:
        threads = deployment_of(given["request"]).store.reading_threads
        if threads is None:
            return handler(**given)
        return await asyncio.get_running_loop().run_in_executor(threads, partial(handler, **given))

    return answered


async def written(
    request: ApiRequest, do: Callable[[Memories], Result], *, developer_id: str, user_id: str
) -> Result:
    """The result of a write to one user's memories, once it is on the disk."""
    store = deployment_of(request).store
    return await asyncio.wrap_future(store.write(do, developer_id=developer_id, user_id=user_id))


def answer(body: Struct, status: int = 200, *, headers: Mapping[str, str] | None = None) -> Response[bytes]:
    """A struct as JSON; the only place where a secret of an answer is in the open."""
    content = wire.encode(body).reveal()
    return Response(content, status_code=status, media_type="application/json", headers=headers)
