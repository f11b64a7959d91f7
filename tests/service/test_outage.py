"""The database goes away under a service and comes back: whoever asks meanwhile is told to come again."""

from datetime import UTC, datetime, timedelta

import pytest
import requests
from sqlalchemy.exc import OperationalError

from memframe.service.http_errors import DatabaseErrorLog
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


@pytest.mark.asvs("16.5.2")
def test_every_call_is_told_to_come_again_and_then_all_is_well(backend, local, asked, refused, caplog):
    assert all(answer.ok for answer in asked().values())
    with backend.away(local._deployment.store.engine):
        answers = asked().values()
        for answer in answers:
            refused(answer, 503, "database_unavailable")
            assert answer.headers["retry-after"] == "1"
        assert requests.get(local.auth_url + "/healthz", timeout=20).status_code == 200
    assert {name: answer.status_code for name, answer in asked().items() if not answer.ok} == {}
    lines = [record.getMessage() for record in caplog.records]
    assert 1 <= len(lines) <= 3, "a line every few seconds, however many calls there are"
    assert local._deployment.store.engine.url.database in lines[0]
    assert "not currently accepting connections" in lines[-1]
    assert not any("\n" in line for line in lines)


def test_a_restart_between_two_calls_costs_nobody_anything(backend, local, asked):
    asked()
    backend.end_connections(local._deployment.store.engine)
    assert {name: answer.status_code for name, answer in asked().items() if not answer.ok} == {}


def test_a_replica_that_takes_no_writes_is_told_like_an_outage(local, grant, refused):
    engine = local._deployment.store.engine
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(
            f"ALTER DATABASE {engine.url.database} SET default_transaction_read_only = on"
        )
    engine.dispose()
    refused(grant.call.post("/memory-blobs", {**grant.keys, "content": "x"}), 503, "database_unavailable")
    assert grant.ids() == []


# What the log hears of it


def error(said):
    return OperationalError(None, None, Exception(said))


@pytest.fixture
def watch(caplog):
    """The lines that a refused call makes the log hear at a second."""
    now = datetime(2026, 11, 22, tzinfo=UTC)
    log = DatabaseErrorLog("the database db", now=lambda: now)

    def at(seconds, error):
        nonlocal now
        now = datetime(2026, 11, 22, tzinfo=UTC) + timedelta(seconds=seconds)
        caplog.clear()
        log.log(error)
        return [record.getMessage() for record in caplog.records]

    return at


def test_an_outage_is_told_at_once_and_every_few_seconds(watch):
    gone = error("connection refused\nDETAIL: and more")
    said = "the database db cannot be used: connection refused; calls answered 503: "
    assert [watch(second, gone) for second in (1, 2, 5.9, 6, 6.1)] == [[f"{said}1"], [], [], [f"{said}3"], []]
