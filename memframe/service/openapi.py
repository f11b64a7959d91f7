"""The OpenAPI document of the service, drawn from the same structs and endpoints that it speaks.

It stands at ``/schema/openapi.json``, outside the version prefix, and needs no token.
"""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import MediaType, Response, get
from msgspec import Struct

from memframe import wire
from memframe.service import bounds
from memframe.service.api.exchange import ApiRequest
from memframe.service.problems import PROBLEM_TYPE
from memframe.service.rules import MAX_LIMIT
from memframe.service.schemas import REFERENCE, path_of, schemas_of
from memframe.service.store import RESTORABLE

OPENAPI_PATH = "/schema/openapi.json"

ABOUT = (
    "Long-term memories of AI tools about a person, for applications that this person lets read them. "
    "The OAuth endpoints are described by /.well-known/oauth-authorization-server (RFC 8414)."
)


class Parameter(Struct, frozen=True):
    """A query parameter or header of an endpoint."""

    name: str
    type: str
    meaning: str
    required: bool = False
    place: str = "query"


class Operation(Struct, frozen=True):
    """What the document says about an endpoint."""

    endpoint: wire.Endpoint
    name: str
    summary: str
    answers: type[Struct]
    success: int = 200
    body: type[Struct] | None = None
    parameters: tuple[Parameter, ...] = ()
    refusals: tuple[int, ...] = ()
    headers: tuple[Parameter, ...] = ()


USER_ID = Parameter("user_id", "string", "The user whose memories these are.", required=True)
LISTING = (
    USER_ID,
    Parameter("tags", "string", "Tag names between commas; a memory with any of them is listed."),
    Parameter("searchQuery", "string", "Text to find in title, summary or content, whatever its case."),
    Parameter("importance", "number", "Least importance, 0.0 to 1.0."),
    Parameter("limit", "integer", f"Most records on the page, 1 to {MAX_LIMIT}; 10 where it is absent."),
    Parameter("cursor", "string", "next_cursor of the page before."),
)
IDEMPOTENCY_KEY = Parameter(
    "Idempotency-Key",
    "string",
    "The same key and body within 24 hours make no second record: they get the first answer again, or 409 while "
    "the first is under way. The same key with another body is refused with 422.",
    place="header",
)
RESTORES = Parameter(
    wire.RESTORES,
    "string",
    f"Id of a memory that this developer has deleted less than {RESTORABLE.days} days ago: the new one has its id and "
    "created_at and, where it holds the same, its updated_at. 409 where that memory is there; without a memory to "
    "restore it is a create like any other. Not part of the specification.",
    place="header",
)
RESTORE_DAYS = Parameter(
    wire.RESTORE_DAYS,
    "integer",
    f"For how many days a deleted memory can be restored, by {wire.RESTORES}. Not part of the specification.",
    place="header",
)

OPERATIONS = (
    Operation(
        wire.ISSUE_TOKEN,
        "issueToken",
        "Exchange an API key for a bearer token.",
        wire.TokenResponse,
        body=wire.TokenRequest,
        refusals=(400, 401, 413, 415, 429),
    ),
    Operation(
        wire.CREATE_REQUEST,
        "createAccessRequest",
        "Ask a user for access to the memories.",
        wire.AccessRequest,
        201,
        wire.AccessRequestCreate,
        refusals=(400, 401, 403, 409, 413, 415),
    ),
    Operation(
        wire.LIST_REQUESTS,
        "listAccessRequests",
        "List the access requests of this developer.",
        wire.AccessRequestList,
        parameters=(
            Parameter(
                "limit", "integer", f"Most requests on the page, 1 to {MAX_LIMIT}, which is the default."
            ),
            Parameter("cursor", "string", "next_cursor of the page before."),
        ),
        refusals=(400, 401),
    ),
    Operation(
        wire.GET_REQUEST,
        "getAccessRequest",
        "Read one access request.",
        wire.AccessRequest,
        refusals=(400, 401, 403, 404),
    ),
    Operation(
        wire.GET_CREDENTIALS,
        "getCredentials",
        "Fetch the keys of an approved access request.",
        wire.Credentials,
        refusals=(400, 401, 403, 404),
        headers=(RESTORE_DAYS,),
    ),
    Operation(
        wire.LIST_MEMORIES,
        "listMemoryBlobs",
        "List a user's memories, a page at a time.",
        wire.MemoryPage,
        parameters=LISTING,
        refusals=(400, 401, 403, 429),
    ),
    Operation(
        wire.GET_MEMORY,
        "getMemoryBlob",
        "Read one memory.",
        wire.MemoryBlob,
        parameters=(USER_ID,),
        refusals=(400, 401, 403, 404),
    ),
    Operation(
        wire.CREATE_MEMORY,
        "createMemoryBlob",
        "Write a new memory.",
        wire.MemoryBlobResponse,
        201,
        wire.MemoryCreate,
        (IDEMPOTENCY_KEY, RESTORES),
        (400, 401, 403, 409, 413, 415, 422),
    ),
    Operation(
        wire.UPDATE_MEMORY,
        "updateMemoryBlob",
        "Change the fields of a memory that are sent.",
        wire.MemoryBlobResponse,
        body=wire.MemoryPatch,
        refusals=(400, 401, 403, 404, 409, 413, 415),
    ),
    Operation(
        wire.DELETE_MEMORY,
        "deleteMemoryBlob",
        f"Delete a memory for good; what is kept for {RESTORABLE.days} days are its id and times, by which it can be "
        "restored, and none of its text.",
        wire.Deleted,
        parameters=(USER_ID,),
        refusals=(400, 401, 403, 404),
    ),
    Operation(
        wire.LIST_TAGS,
        "listTags",
        "List the tags of a user.",
        wire.TagList,
        parameters=(USER_ID,),
        refusals=(400, 401, 403),
    ),
    Operation(
        wire.TAG,
        "getTag",
        "Read one tag.",
        wire.Tag,
        parameters=(USER_ID,),
        refusals=(400, 401, 403, 404),
    ),
)  # fmt: skip - one operation reads best as two or three lines
"""Every endpoint of the specification."""


def openapi_document(base_url: str) -> dict[str, Any]:
    """The whole document, for a service at this address."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        path = paths.setdefault(path_of(operation.endpoint), {})
        path[operation.endpoint.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Memory Access Service", "version": "1.0.0", "description": ABOUT},
        "servers": [{"url": base_url}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }


def _described(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [*_path_parameters(operation.endpoint), *map(_parameter, operation.parameters)],
        "responses": _responses(operation),
    }
    if operation.body:
        described["requestBody"] = {"required": True, "content": _content(operation.body)}
    if operation.endpoint == wire.ISSUE_TOKEN:
        described["security"] = []
    return described


def _responses(operation: Operation) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "Success.", "content": _content(operation.answers)}
    if operation.headers:
        success["headers"] = {
            header.name: {"description": header.meaning, "schema": {"type": header.type}}
            for header in operation.headers
        }
    refusals = {
        str(status): {
            "description": HTTPStatus(status).phrase,
            "content": _content(wire.Problem, PROBLEM_TYPE),
        }
        for status in operation.refusals
    }
    return {str(operation.success): success, **refusals}


def _content(kind: type[Struct], media_type: str = "application/json") -> dict[str, Any]:
    return {media_type: {"schema": {"$ref": REFERENCE.format(name=kind.__name__)}}}


def _path_parameters(endpoint: wire.Endpoint) -> list[dict[str, Any]]:
    names = [segment[1:-1] for segment in path_of(endpoint).split("/") if segment.startswith("{")]
    return [_parameter(Parameter(name, "string", "Its id.", required=True, place="path")) for name in names]


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required,
        "description": parameter.meaning,
        "schema": {"type": parameter.type, **bounds.OF_PARAMETER.get(parameter.name, {})},
    }


def _schemas() -> dict[str, Any]:
    bodies = {operation.body for operation in OPERATIONS if operation.body}
    return schemas_of(bodies, {wire.Problem, *(operation.answers for operation in OPERATIONS)})


@cache
def _encoded_document(base_url: str) -> bytes:
    return msgspec.json.encode(openapi_document(base_url))


@get(OPENAPI_PATH, sync_to_thread=False)
def get_openapi_document(request: ApiRequest) -> Response[bytes]:
    """The document as JSON."""
    return Response(_encoded_document(request.app.state.addresses.base_url), media_type=MediaType.JSON)
