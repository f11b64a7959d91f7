"""The database goes away under a service and comes back: whoever asks meanwhile is told to come again."""

import pytest
import requests

from tests.conftest import serving_tests
from tests.service.conftest import Caller, Grant


@pytest.fixture
def local(backend):
    if backend.name == "sqlite":
        pytest.skip("a file that is open does not go away")
    with serving_tests(backend.new_database()) as local:
        yield local


@pytest.fixture
def grant(local):
    return Grant(local, Caller(local.base_url, local.api_key))


@pytest.fixture
def asked(local, grant):
    """Calls of every kind, as often as there are threads that may answer them; their answers by name."""
    memory_id = grant.create("Likes tea", tags=["tea"])["id"]
    call, mine = grant.call, {"user_id": grant.user_id}
    (tag,) = call.get("/tags", **mine).json()["items"]
    calls = {
        "token": lambda: call.post("/auth/token", {"api_key": local.api_key}),
        "ask": lambda: call.post("/access-requests", {"memoryKey": grant.memory_key, "reason": ""}),
        "requests": lambda: call.get("/access-requests"),
        "request": lambda: call.get(f"/access-requests/{grant.request_id}"),
        "credentials": lambda: call.get(f"/access-requests/{grant.request_id}/credentials"),
        "list": grant.list,
        "under a tag": lambda: grant.list(tags="tea"),
        "search": lambda: grant.list(searchQuery="tea"),
        "get": lambda: call.get(f"/memory-blobs/{memory_id}", **mine),
        "create": lambda: call.post("/memory-blobs", {**grant.keys, "content": "Likes trams"}),
        "patch": lambda: grant.patch(memory_id, title="Tea", tags=["tea", "habits"]),
        "tags": lambda: call.get("/tags", **mine),
        "tag": lambda: call.get(f"/tags/{tag['id']}", **mine),
        "readiness": lambda: requests.get(local.auth_url + "/readyz", timeout=20),
    }
    return lambda: {(name, number): ask() for name, ask in calls.items() for number in range(4)}


def test_every_call_is_told_to_come_again_and_then_all_is_well(backend, local, asked, refused):
    assert all(answer.ok for answer in asked().values())
    with backend.away(local._deployment.store._engine):
        for answer in asked().values():
            refused(answer, 503, "database_unavailable")
            assert answer.headers["retry-after"] == "1"
        assert requests.get(local.auth_url + "/healthz", timeout=20).status_code == 200
    assert {name: answer.status_code for name, answer in asked().items() if not answer.ok} == {}


def test_a_restart_between_two_calls_costs_nobody_anything(backend, local, asked):
    asked()
    backend.end_connections(local._deployment.store._engine)
    assert {name: answer.status_code for name, answer in asked().items() if not answer.ok} == {}


def test_a_replica_that_takes_no_writes_is_told_like_an_outage(local, grant, refused):
    engine = local._deployment.store._engine
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(
            f"ALTER DATABASE {engine.url.database} SET default_transaction_read_only = on"
        )
    engine.dispose()
    refused(grant.call.post("/memory-blobs", {**grant.keys, "content": "x"}), 503, "database_unavailable")
    assert grant.ids() == []
