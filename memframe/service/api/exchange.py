"""Shared by all endpoints: decode requests strictly, authenticate the developer, encode answers."""

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
from memframe.service.store import Memories
from memframe.service.tokens import Bearer, BearerTokens, bad_token
from memframe.service.validation import check_text, invalid

Body = TypeVar("Body", bound=Struct)
Result = TypeVar("Result")
ApiRequest = Request[Any, Any, State]


def route_of(endpoint: wire.Endpoint) -> str:
    """Return the path of an endpoint as Litestar writes it.

    >>> route_of(wire.TAG)
    '/tags/{tag_id:str}'
    """
    return endpoint.path.replace("}", ":str}")


def deployment_of(request: ApiRequest) -> Deployment:
    """Return the service of a request."""
    deployment: Deployment = request.app.state.deployment
    return deployment


def bearer_of(request: ApiRequest) -> Bearer:
    """Check the bearer token of a request; `AuthError` where it has none that is valid.

    The query for the grant checks that the account is enabled, and the token's epoch.
    """
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.casefold() != "bearer" or not token:
        raise bad_token()
    tokens: BearerTokens = request.app.state.bearer_tokens
    return tokens.check(Secret(token.strip()))


def developer_of(request: ApiRequest) -> str:
    """Check the bearer token and the account where no grant is queried; return the developer's id."""
    bearer = bearer_of(request)
    deployment_of(request).store.check_bearer(bearer)
    return bearer.developer_id


def decode(kind: type[Body], request: ApiRequest, body: bytes) -> Body:
    """Decode a JSON body with strict types; `InvalidError` says what is wrong and where."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if media_type and media_type != "application/json" and not media_type.endswith("+json"):
        message = "send the body as Content-Type: application/json"
        raise InvalidError(message, status=415, code="unsupported_media_type")
    try:
        return msgspec.json.decode(body, type=kind, dec_hook=secret_from_wire)
    except msgspec.ValidationError as error:
        raise invalid(f"the body is not as specified: {error}", "invalid_body") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise invalid("the body is not JSON in UTF-8", "malformed_json") from None
    except RecursionError:
        raise invalid("the body is nested too deeply", "malformed_json") from None


def query(request: ApiRequest, name: str) -> str | None:
    """Return a query parameter, None where it is absent or empty; `InvalidError` where it comes twice."""
    values = request.query_params.getall(name, [])
    if len(values) > 1:
        raise invalid(f"the query parameter {name} is given {len(values)} times; give it once")
    return check_text(values[0], name) if values and values[0] else None


def required_query(request: ApiRequest, name: str) -> str:
    """Return a query parameter; `InvalidError` where it is absent."""
    value = query(request, name)
    if value is None:
        raise invalid(f"the query parameter {name} is missing", "missing_parameter")
    return value


def quick_read(handler: Callable[..., Response[bytes]]) -> Callable[..., Awaitable[Response[bytes]]]:
    """Run a handler that reads little on the event loop with SQLite, else in a thread."""

    @wraps(handler)
    async def run(**given: Any) -> Response[bytes]:
        threads = deployment_of(given["request"]).store.reading_threads
        if threads is None:
            return handler(**given)
        return await asyncio.get_running_loop().run_in_executor(threads, partial(handler, **given))

    return run


async def write(
    request: ApiRequest, do: Callable[[Memories], Result], bearer: Bearer, user_id: str
) -> Result:
    """Write to one user's memories, and wait until it is on the disk."""
    return await asyncio.wrap_future(deployment_of(request).store.write(do, bearer, user_id))


def answer(body: Struct, status: int = 200, *, headers: Mapping[str, str] | None = None) -> Response[bytes]:
    """Encode a struct as JSON, secrets included."""
    content = wire.encode(body).reveal()
    return Response(content, status_code=status, media_type="application/json", headers=headers)
