"""The OpenAPI document at ``/schema/openapi.json``, made from the endpoints, their handlers and the structs of `wire`.

The document is served at this path of the host, and also below the API's path.

Summaries are the first lines of the handlers' docstrings. `OPERATIONS` has what the handlers do not tell. The tables
below it have what the structs do not tell: the bounds of bodies and parameters, and the fields that answers always have
(the structs allow more, because they also read other services' answers).
"""

from __future__ import annotations

import re
from functools import cache
from http import HTTPStatus
from itertools import starmap
from typing import Any, NamedTuple

import msgspec
from litestar import MediaType, Response, get
from litestar.handlers import HTTPRouteHandler
from msgspec import Struct

from memframe import wire
from memframe.fields import MEMORY_FIELDS, TEXT_FIELDS
from memframe.secret import Secret
from memframe.service import validation
from memframe.service.api import API_ROUTES, ApiRequest, route_of
from memframe.service.deployment import API_PREFIX
from memframe.service.http_errors import PROBLEM_TYPE
from memframe.service.store.memories import RESTORABLE

OPENAPI_PATH = "/schema/openapi.json"
REFERENCE = "#/components/schemas/{name}"

ABOUT = (
    "Long-term memories of AI tools about a person, for applications that this person lets read them. "
    "The OAuth endpoints are described by /.well-known/oauth-authorization-server (RFC 8414)."
)

_PATH_PARAMETERS = {"{request_id}": "{requestId}", "{memory_id}": "{blobId}", "{tag_id}": "{tagId}"}
"""Names of path parameters in the specification, which generated clients take over."""

_ANY_TEXT: dict[str, Any] = {"pattern": r"^[^\u0000]*$"}
_TIME = {"format": "date-time"}


def _parameter(name: str, description: str, *, place: str = "query", **schema: Any) -> dict[str, Any]:
    required = schema.pop("required", False)
    return {"name": name, "in": place, "required": required, "description": description, "schema": schema}


def _limit(records: str, default: str) -> dict[str, Any]:
    description = f"Largest number of {records} on the page, 1 to {validation.MAX_LIMIT}{default}"
    return _parameter("limit", description, type="integer", minimum=1)


_TEXT: dict[str, Any] = {"type": "string", **_ANY_TEXT}
USER_ID = _parameter("user_id", "The user whose memories these are.", **_TEXT, minLength=1, required=True)
CURSOR = _parameter("cursor", "next_cursor of the previous page.", type="string")
_SCORES: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": validation.MAX_IMPORTANCE_FILTER}
_SEARCHED = f"{', '.join(TEXT_FIELDS[:-1])} or {TEXT_FIELDS[-1]}"
LISTING_PARAMETERS = (
    USER_ID,
    _parameter("tags", "Tag names separated by commas; a memory with any of them is listed.", **_TEXT),
    _parameter("searchQuery", f"Text to find in {_SEARCHED}, ignoring case.", **_TEXT),
    _parameter("importance", "Lowest importance, 0.0 to 1.0.", **_SCORES),
    _limit("records", "; 10 by default."),
    CURSOR,
)
REQUEST_LISTING = (_limit("requests", "; the maximum by default."), CURSOR)
CREATE_HEADERS = (
    _parameter(
        "Idempotency-Key",
        "The same key and body within 24 hours create no second record: they receive the first answer again. The same "
        "key with another body is refused with 422.",
        place="header",
        type="string",
        minLength=1,
        maxLength=validation.MAX_IDEMPOTENCY_KEY_CHARS,
    ),
    _parameter(
        wire.RESTORES,
        f"Id of a memory that this developer has deleted less than {RESTORABLE.days} days ago: the new one gets its id "
        "and created_at and, if its fields are the same, its updated_at. 409 if that memory exists. If there is no "
        "memory to restore, this is a normal create. Not part of the specification.",
        place="header",
        type="string",
    ),
)
RESTORE_DAYS_HEADER = {
    wire.RESTORE_DAYS: {
        "description": f"Days for which a deleted memory can be restored, with {wire.RESTORES}. "
        "Not part of the specification.",
        "schema": {"type": "integer"},
    }
}


class ApiOperation(NamedTuple):
    """An endpoint: its operation id, answer, errors, body, parameters, headers and status of the answer."""

    endpoint: wire.Endpoint
    name: str
    answer: type[Struct]
    errors: tuple[int, ...]
    body: type[Struct] | None = None
    parameters: tuple[dict[str, Any], ...] = ()
    headers: dict[str, Any] = {}  # noqa: RUF012 - of a tuple, which nobody changes
    status: int = 200


_READ, _ONE, _BODY = (400, 401, 403), (400, 401, 403, 404), (413, 415)
_NEW, _PATCHED = wire.MemoryCreate, wire.MemoryPatch
_ASKED, _REQUEST, _MEMORY = wire.AccessRequestCreate, wire.AccessRequest, wire.MemoryBlobResponse

OPERATIONS = list(starmap(ApiOperation, (
    (wire.ISSUE_TOKEN, "issueToken", wire.TokenResponse, (400, 401, *_BODY, 429), wire.TokenRequest),
    (wire.CREATE_REQUEST, "createAccessRequest", _REQUEST, (*_READ, 409, *_BODY), _ASKED, (), {}, 201),
    (wire.LIST_REQUESTS, "listAccessRequests", wire.AccessRequestList, (400, 401), None, REQUEST_LISTING),
    (wire.GET_REQUEST, "getAccessRequest", _REQUEST, _ONE),
    (wire.GET_CREDENTIALS, "getCredentials", wire.Credentials, _ONE, None, (), RESTORE_DAYS_HEADER),
    (wire.LIST_MEMORIES, "listMemoryBlobs", wire.MemoryPage, (*_READ, 429), None, LISTING_PARAMETERS),
    (wire.GET_MEMORY, "getMemoryBlob", wire.MemoryBlob, _ONE, None, (USER_ID,)),
    (wire.CREATE_MEMORY, "createMemoryBlob", _MEMORY, (*_READ, 409, *_BODY, 422), _NEW, CREATE_HEADERS, {}, 201),
    (wire.UPDATE_MEMORY, "updateMemoryBlob", _MEMORY, (*_ONE, 409, *_BODY), _PATCHED),
    (wire.DELETE_MEMORY, "deleteMemoryBlob", wire.Deleted, _ONE, None, (USER_ID,)),
    (wire.LIST_TAGS, "listTags", wire.TagList, _READ, None, (USER_ID,)),
    (wire.TAG, "getTag", wire.Tag, _ONE, None, (USER_ID,)),
)))  # fmt: skip
"""Every endpoint of the specification."""

BODY_BOUNDS: dict[str, dict[str, Any]] = {
    "expires_in": {"minimum": validation.MIN_TOKEN_LIFETIME_S, "maximum": validation.MAX_TOKEN_LIFETIME_S},
    "reason": {**_ANY_TEXT, "maxLength": validation.MAX_REASON_CHARS},
    **dict.fromkeys(("user_id", "content", *validation.PLAIN_TEXTS), _ANY_TEXT),
    **{name: {"minimum": 0, "maximum": highest} for name, highest in wire.MAX_SCORES.items()},
    "tags": {
        "maxItems": wire.MAX_TAGS,
        "items": {"pattern": r"^[^,\u0000]*[^,\s\u0000][^,\u0000]*$", "maxLength": wire.MAX_TAG_CHARS},
    },
}
"""Bounds of the fields of bodies. A keyword applies only to values of its type, so that null stays allowed."""

NULLABLE = {"next_cursor", *(field.name for field in MEMORY_FIELDS if field.is_optional)}
"""Fields of answers that may be null."""

NEVER_SENT = {"type"}
"""Fields of answers that only other services send."""

STRING_FORMATS: dict[str, dict[str, str]] = {
    "user_id": {"format": "uuid"},
    **dict.fromkeys(("created_at", "updated_at", "createdAt", "updatedAt", "expires_at"), _TIME),
}
"""Formats of the fields of answers."""


def path_of(endpoint: wire.Endpoint) -> str:
    """Return the path of an endpoint as the specification writes it.

    >>> path_of(wire.TAG)
    '/tags/{tagId}'
    """
    return "/".join(_PATH_PARAMETERS.get(segment, segment) for segment in endpoint.path.split("/"))


def make_openapi_document(base_url: str) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        method = operation.endpoint.method.lower()
        paths.setdefault(path_of(operation.endpoint), {})[method] = _describe(operation)
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


def _describe(operation: ApiOperation) -> dict[str, Any]:
    handler = _handler_of(operation.endpoint)
    path = path_of(operation.endpoint)
    ids = [
        _parameter(name, "Its id.", place="path", type="string", required=True)
        for name in re.findall(r"{(\w+)}", path)
    ]
    success: dict[str, Any] = {"description": "Success.", "content": _content(operation.answer)}
    if operation.headers:
        success["headers"] = operation.headers
    errors = {
        str(status): {
            "description": HTTPStatus(status).phrase,
            "content": _content(wire.Problem, PROBLEM_TYPE),
        }
        for status in operation.errors
    }
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": (handler.fn.__doc__ or "").partition("\n")[0],
        "parameters": [*ids, *operation.parameters],
        "responses": {str(operation.status): success, **errors},
    }
    if operation.body:
        described["requestBody"] = {"required": True, "content": _content(operation.body)}
    if operation.endpoint == wire.ISSUE_TOKEN:
        described["security"] = []
    return described


def _handler_of(endpoint: wire.Endpoint) -> HTTPRouteHandler:
    method, path = endpoint.method, route_of(endpoint)
    return next(each for each in API_ROUTES if path in each.paths and method in each.http_methods)


def _content(kind: type[Struct], media_type: str = "application/json") -> dict[str, Any]:
    return {media_type: {"schema": {"$ref": REFERENCE.format(name=kind.__name__)}}}


def _schemas() -> dict[str, Any]:
    bodies = {operation.body for operation in OPERATIONS if operation.body}
    kinds = bodies | {wire.Problem, *(operation.answer for operation in OPERATIONS)}
    _, schemas = msgspec.json.schema_components(
        sorted(kinds, key=lambda kind: kind.__name__), schema_hook=_secret_schema, ref_template=REFERENCE
    )
    names = {kind.__name__ for kind in bodies}
    for name, schema in schemas.items():
        schema["description"] = _summary(schema["description"])
        fields = schema["properties"]
        if name in names:
            for field in fields.keys() & BODY_BOUNDS.keys():
                fields[field] |= BODY_BOUNDS[field]
            continue
        for field, described in fields.items():
            described.pop("default", None)
            if field not in NULLABLE:  # of "anyOf", the alternative before null
                described.update(next(iter(described.pop("anyOf", [{}]))))
            described.update(STRING_FORMATS.get(field, {}))
        schema["required"] = [field for field in fields if field not in NEVER_SENT]
    return schemas


def _summary(docstring: str) -> str:
    """Return the first paragraph of a docstring, with endpoints by method and path."""

    def spell(name: re.Match[str]) -> str:
        endpoint: wire.Endpoint = getattr(wire, name[1])
        return f"{endpoint.method} {path_of(endpoint)}"

    return re.sub("`([A-Z_]+)`", spell, docstring.partition("\n\n")[0].replace("``", ""))


def _secret_schema(kind: type) -> dict[str, Any]:
    if kind is Secret:
        return {"type": "string"}
    raise NotImplementedError(f"no schema for {kind.__name__}")


@cache
def _encode_document(base_url: str) -> bytes:
    return msgspec.json.encode(make_openapi_document(base_url))


@get([OPENAPI_PATH, API_PREFIX + OPENAPI_PATH], sync_to_thread=False)
def get_openapi_document(request: ApiRequest) -> Response[bytes]:
    return Response(_encode_document(request.app.state.addresses.base_url), media_type=MediaType.JSON)
