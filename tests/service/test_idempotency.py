"""``Idempotency-Key`` on creates: one record and one answer, whenever and however often it comes again."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import insert, select

from memframe.errors import ConflictError, InvalidError
from memframe.service import run_local
from memframe.service.store.memories import IdempotentRequest
from memframe.service.store.schema import idempotency_keys
from memframe.service.tokens import Bearer
from tests.conftest import CHEAP_HASHER
from tests.service.conftest import Caller, Grant, ask, memory_key


@pytest.fixture
def key():
    """A header that no other test sends: they all are one developer."""
    return {"Idempotency-Key": str(uuid4())}


@pytest.fixture
def body(grant):
    return {**grant.keys, "content": "once", "title": "Once", "tags": ["b", "a"], "importance": 4}


def test_the_first_answer_comes_again_whatever_became_of_the_memory(grant, body, refused, key):
    wrong = grant.call.post("/memory-blobs", {**body, "memoryKey": "mk_0"}, **key)
    refused(wrong, 403, "wrong_memory_key")  # and leaves the key unused
    first = grant.call.post("/memory-blobs", body, **key)
    memory_id = first.json()["id"]
    grant.patch(memory_id, title="Later", tags=["c"], importance=None)
    again = grant.call.post("/memory-blobs", body, **key)
    assert (again.status_code, again.json()) == (201, first.json())
    other = grant.call.post("/memory-blobs", {**body, "content": "twice"}, **key)
    refused(other, 422, "idempotency_key_reused")
    assert grant.ids() == [memory_id]
    grant.delete(memory_id)
    refused(grant.call.post("/memory-blobs", body, **key), 409, "idempotency_key_spent")


def test_keys_of_different_developers_are_different_keys(service, grant, body, other_call, key):
    mine = grant.call.post("/memory-blobs", body, **key).json()["id"]
    theirs = {**body, "memoryKey": memory_key(service, other_call, grant.user_id)}
    service.decide(ask(other_call, theirs["memoryKey"])["id"], "approved")
    assert other_call.post("/memory-blobs", theirs, **key).json()["id"] != mine


@pytest.mark.asvs("2.3.4")
def test_of_many_at_the_same_moment_one_makes_the_memory(grant, body, key):
    headers = {"Authorization": f"Bearer {grant.call.token}"} | key
    url = f"{grant.call.base_url}/memory-blobs"
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: grant.call.http.post(url, json=body, headers=headers), range(32)))
    assert {(answer.status_code, answer.json()["id"]) for answer in answers} == {(201, *grant.ids())}


def test_a_key_is_remembered_for_a_day(backend, key):
    time = datetime(2026, 3, 1, 12, tzinfo=UTC)
    with run_local(database=backend.new_database(), now=lambda: time, password_hasher=CHEAP_HASHER) as local:
        grant = Grant(local, Caller(local.base_url, local.api_key))
        body = {**grant.keys, "content": "once"}

        def create():
            grant.call = Caller(local.base_url, local.api_key)  # tokens run out meanwhile
            return grant.call.post("/memory-blobs", body, **key).json()["id"]

        first = create()
        time += timedelta(hours=23, minutes=59)
        assert create() == first
        time += timedelta(minutes=1)
        assert create() != first


def test_a_key_that_another_process_has_noted_meanwhile_is_in_flight(service, grant):
    developer_id = service._deployment.store.requests.get(grant.request_id).developer_id
    attempt = IdempotentRequest(uuid4().hex * 2, "b" * 64)

    def remember_twice(memories):
        memories.remember_request(attempt, "m-1")
        assert memories.find_created(attempt) == "m-1"
        with pytest.raises(InvalidError):
            memories.find_created(IdempotentRequest(attempt.key_hash, "c" * 64))
        memories.remember_request(attempt, "m-2")

    write = service._deployment.store.write(remember_twice, Bearer(developer_id, 0), grant.user_id)
    with pytest.raises(ConflictError, match="still under way"):
        write.result()


def test_nobody_waits_for_who_forgets_old_keys(backend, service, grant, body, key):
    if backend.name == "sqlite":
        pytest.skip("it has one writer at a time")
    engine = service._deployment.store.engine
    developer_id = service._deployment.store.requests.get(grant.request_id).developer_id
    old = {"developer_id": developer_id, "key_hash": uuid4().hex, "body_hash": "", "memory_id": ""}
    with engine.begin() as connection:
        connection.execute(
            insert(idempotency_keys).values(**old, created_at=datetime(2020, 1, 1, tzinfo=UTC))
        )
    query = select(idempotency_keys.c.key_hash).where(idempotency_keys.c.key_hash == old["key_hash"])
    with engine.begin() as other:
        assert other.scalar(query.with_for_update())
        assert grant.call.post("/memory-blobs", body, **key).status_code == 201
    assert grant.call.post("/memory-blobs", body, **{"Idempotency-Key": uuid4().hex}).status_code == 201
    with engine.connect() as connection:
        assert connection.scalar(query) is None
