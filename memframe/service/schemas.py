"""The records of the API as JSON Schema: what may be asked, and what is always answered."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct

from memframe import wire
from memframe.secret import Secret
from memframe.service import bounds

REFERENCE = "#/components/schemas/{name}"

_SPELLED = {"{request_id}": "{requestId}", "{memory_id}": "{blobId}", "{tag_id}": "{tagId}"}
"""Parameters of a path by the names of the specification, which generated clients take over."""


def path_of(endpoint: wire.Endpoint) -> str:
    """The path of a call as the specification writes it.

    >>> path_of(wire.TAG)
    '/tags/{tagId}'
    """
    return "/".join(_SPELLED.get(segment, segment) for segment in endpoint.path.split("/"))


def schemas_of(bodies: set[type[Struct]], answers: set[type[Struct]]) -> dict[str, Any]:
    """Bodies within the bounds of the rules, and answers as this service gives them."""
    _, schemas = msgspec.json.schema_components(
        sorted(bodies | answers, key=lambda kind: kind.__name__),
        schema_hook=_secret_schema,
        ref_template=REFERENCE,
    )
    names = {kind.__name__ for kind in bodies}
    for name, schema in schemas.items():
        schema["description"] = _summary(schema["description"])
        if name in names:
            _bound(schema["properties"])
        else:
            schema["required"] = _promise(schema["properties"])
    return schemas


def _summary(docstring: str) -> str:
    """What a record is, with calls by their paths; the rest of a docstring is for readers of the code."""
    first = docstring.partition("\n\n")[0].replace("``", "")
    return re.sub("`([A-Z_]+)`", lambda name: _call(getattr(wire, name[1])), first)


def _call(endpoint: wire.Endpoint) -> str:
    return f"{endpoint.method} {path_of(endpoint)}"


def _bound(fields: dict[str, Any]) -> None:
    """Write the bounds of its fields into the schema of a body."""
    for name in fields.keys() & bounds.OF_FIELD.keys():
        fields[name] |= bounds.OF_FIELD[name]


def _promise(fields: dict[str, Any]) -> list[str]:
    """Write what the service always does into the schema of an answer; the fields that are always there.

    The structs allow more than that, as they read other services, too.
    """
    for name, schema in fields.items():
        schema.pop("default", None)
        if name not in bounds.NULLABLE:
            schema.update(next(iter(schema.pop("anyOf", [{}]))))
        schema.update(bounds.FORMAT_OF.get(name, {}))
    return [name for name in fields if name not in bounds.NEVER_SENT]


def _secret_schema(kind: type) -> dict[str, Any]:
    if kind is Secret:
        return {"type": "string"}
    raise NotImplementedError(f"no schema for {kind.__name__}")
