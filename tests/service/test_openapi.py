"""The OpenAPI document describes the API that is served: all of it, and nothing else."""

import re

import jsonschema
import pytest
import requests

from memframe import wire

pytestmark = pytest.mark.any_database

ENDPOINTS = [value for value in vars(wire).values() if isinstance(value, wire.Endpoint)]


@pytest.fixture(scope="module")
def document(service):
    answer = requests.get(f"{service.auth_url}/schema/openapi.json", timeout=5)
    assert answer.headers["content-type"].startswith("application/json")
    assert requests.get(f"{service.base_url}/schema/openapi.json", timeout=5).content == answer.content
    return answer.json()


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield (method.upper(), path), operation


@pytest.mark.asvs("6.3.4", "8.1.1", "13.4.5")
def test_every_endpoint_is_described_once_with_all_its_answers(document, service):
    described = sorted(re.sub("{.*}", "{}", " ".join(place)) for place, _ in operations(document))
    assert described == sorted(re.sub("{.*}", "{}", str(endpoint)) for endpoint in ENDPOINTS)
    names = [operation["operationId"] for _, operation in operations(document)]
    assert len(names) == len(set(names))
    assert document["openapi"].startswith("3.1")
    assert document["servers"] == [{"url": service.base_url}]
    references = set(re.findall(r"'\$ref': '#/components/schemas/(\w+)'", str(document)))
    assert references <= set(document["components"]["schemas"])
    assert {"AccessRequest", "MemoryBlob", "MemoryCreate", "Problem", "Tag", "TokenResponse"} <= references
    for place, operation in operations(document):
        statuses = set(operation["responses"])
        assert statuses & {"200", "201"}, place
        assert place == ("POST", "/auth/token") or "401" in statuses, place
        for status, answer in operation["responses"].items():
            media_type = "application/problem+json" if status >= "400" else "application/json"
            assert list(answer["content"]) == [media_type]
        declared = {given["name"] for given in operation["parameters"] if given["in"] == "path"}
        assert declared == set(re.findall(r"{(\w+)}", place[1])) <= {"requestId", "blobId", "tagId"}


@pytest.mark.asvs("8.1.2", "15.3.1")
def test_answers_keep_what_the_document_promises(document, call, grant):
    bare, full = grant.create(), grant.create(title="T", tags=["tea"], importance=1, confidence=0, source="s")
    given = {"user_id": grant.user_id}
    tags = call.get("/tags", **given).json()
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    for name, answer in (
        ("MemoryBlobResponse", bare),
        ("MemoryBlobResponse", full),
        ("MemoryBlobResponse", grant.patch(full["id"], title=None).json()),
        ("MemoryBlob", call.get(f"/memory-blobs/{bare['id']}", **given).json()),
        ("MemoryPage", grant.list(limit=1).json()),
        ("MemoryPage", grant.list().json()),
        ("AccessRequest", call.get(f"/access-requests/{grant.request_id}").json()),
        ("AccessRequestList", call.get("/access-requests").json()),
        ("Credentials", grant.credentials()),
        ("TagList", tags),
        ("Tag", call.get(f"/tags/{tags['items'][0]['id']}", **given).json()),
        ("Problem", call.get("/tags/unknown", **given).json()),
        ("Deleted", call("DELETE", f"/memory-blobs/{bare['id']}", params=given).json()),
    ):
        schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        jsonschema.validate(answer, schema, jsonschema.Draft202012Validator, format_checker=checker)


def test_what_is_always_there_is_promised_and_nothing_else(document):
    schemas = document["components"]["schemas"]
    memory = schemas["MemoryBlob"]
    assert set(memory["required"]) == set(memory["properties"])
    assert memory["properties"]["created_at"] == {"type": "string", "format": "date-time"}
    assert memory["properties"]["user_id"] == {"type": "string", "format": "uuid"}
    assert {"type": "null"} in memory["properties"]["title"]["anyOf"]
    assert "type" not in schemas["Problem"]["required"]
    assert schemas["TokenRequest"]["required"] == ["api_key"]
    assert {"user_id", "memoryKey", "content"} == set(schemas["MemoryCreate"]["required"])
    described = [schema["description"] for schema in schemas.values()]
    assert not [words for words in described if "`" in words or "----" in words or "None" in words]


@pytest.mark.asvs("2.1.1", "2.1.3")
def test_the_bounds_of_fields_and_parameters_are_those_of_the_rules(document):
    body = document["components"]["schemas"]["MemoryPatch"]["properties"]
    assert (body["importance"]["minimum"], body["importance"]["maximum"]) == (0, 5)
    assert body["tags"]["maxItems"] == 100
    tag = re.compile(body["tags"]["items"]["pattern"])
    assert [bool(tag.search(name)) for name in ("a b", "\t", "", "a,b", "a\0")] == [True, *[False] * 4]
    assert not re.search(body["title"]["pattern"], "a\0b")
    assert "pattern" not in body["memoryKey"]
    listing = document["paths"]["/memory-blobs"]["get"]["parameters"]
    bounds = {parameter["name"]: parameter["schema"] for parameter in listing}
    assert bounds["importance"] == {"type": "number", "minimum": 0, "maximum": 1}
    assert bounds["limit"] == {"type": "integer", "minimum": 1}
    answered = document["components"]["schemas"]["MemoryBlob"]["properties"]
    assert "maximum" not in answered["importance"]


def test_restoring_is_described_as_what_the_service_adds_to_the_specification(document):
    create = document["paths"]["/memory-blobs"]["post"]
    (restores,) = [given for given in create["parameters"] if given["name"] == wire.RESTORES]
    (credentials,) = [methods["get"] for path, methods in document["paths"].items() if "credentials" in path]
    offer = credentials["responses"]["200"]["headers"][wire.RESTORE_DAYS]
    assert (restores["in"], restores["required"]) == ("header", False)
    for described in (restores, offer):
        assert "Not part of the specification" in described["description"]
