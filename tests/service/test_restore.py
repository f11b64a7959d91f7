"""A deleted memory comes back under its id and times, once, to whoever deleted it; nothing of its text is kept."""

import re
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import func, select

from memframe.service import run_local
from memframe.service.store.schema import tombstones
from tests.conftest import CHEAP_HASHER
from tests.service.conftest import Caller, Grant, ask, memory_key

FIELDS = {"title": "Tea", "summary": None, "tags": ["b", "a"], "importance": 4, "source": "chat"}


class Clock:
    """Time that moves with every look at it, and further when it is told to."""

    def __init__(self):
        self.time = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self):
        self.time += timedelta(milliseconds=1)
        return self.time


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def local(backend, clock):
    options = {"now": clock, "password_hasher": CHEAP_HASHER, "token_calls_per_minute": 1_000_000}
    with run_local(database=backend.new_database(), **options) as local:
        yield local


@pytest.fixture
def grant(local):
    return Grant(local, Caller(local.base_url, local.api_key))


@pytest.fixture
def memory(grant, clock):
    """A memory as it is listed; it was changed once, half an hour after it was made."""
    memory_id = grant.create("Likes tea", **FIELDS | {"title": "Coffee"})["id"]
    clock.time += timedelta(minutes=30)
    assert grant.patch(memory_id, title="Tea").status_code == 200
    return grant.get(memory_id).json()


def restore(grant, memory_id, content="Likes tea", **headers):
    body = {**grant.keys, **FIELDS, "content": content}
    return grant.call.post("/memory-blobs", body, Restores=memory_id, **headers)


def without_content(memory):
    return {name: value for name, value in memory.items() if name != "content"}


def test_a_deleted_memory_comes_back_under_its_id_and_times(grant, memory, refused):
    credentials = grant.call.get(f"/access-requests/{grant.request_id}/credentials")
    assert credentials.headers["Restore-Days"] == "30"
    other = grant.create("Another")["id"]
    grant.delete(memory["id"])
    answer = restore(grant, memory["id"])
    assert (answer.status_code, answer.json()) == (201, without_content(memory))
    assert without_content(grant.get(memory["id"]).json()) == without_content(memory)
    refused(restore(grant, memory["id"]), 409, "memory_exists")
    assert grant.ids(tags="a") == [memory["id"]]
    assert set(grant.ids()) == {memory["id"], other}


def test_it_comes_back_as_often_as_it_was_deleted(local, grant, memory):
    for _ in range(3):
        grant.delete(memory["id"])
        local.rotate_key(grant.user_id)  # the digest is of the text, not of how it was sealed
        assert restore(grant, memory["id"]).json() == without_content(memory)


def test_an_answer_that_got_lost_comes_again_under_its_idempotency_key(grant, memory, refused):
    grant.delete(memory["id"])
    key = {"Idempotency-Key": uuid4().hex}
    first, again = (restore(grant, memory["id"], **key) for _ in range(2))
    assert (again.status_code, again.json()) == (201, first.json())
    body = {**grant.keys, **FIELDS, "content": "Likes tea"}
    refused(grant.call.post("/memory-blobs", body, **key), 422, "idempotency_key_reused")


def test_what_comes_back_otherwise_is_dated_as_changed_now(grant, memory, clock):
    grant.delete(memory["id"])
    before = clock.time
    restored = restore(grant, memory["id"], content="Hates tea").json()
    assert (restored["id"], restored["created_at"]) == (memory["id"], memory["created_at"])
    assert datetime.fromisoformat(restored["updated_at"]) > before


def test_where_there_is_nothing_to_restore_it_is_a_create_like_any_other(grant, memory):
    grant.delete(memory["id"])
    for restores in ("", "nothing of this name", "x" * 5000, "é"):
        answer = restore(grant, restores.encode())
        assert answer.status_code == 201
        assert answer.json()["id"] not in {memory["id"], restores}


def test_nobody_restores_what_another_deleted(local, grant, memory):
    grant.delete(memory["id"])
    stranger = Grant(local, grant.call)
    theirs = local._deployment.add_developer("Another application")
    other = Grant(local, Caller(local.base_url, theirs.api_key.reveal()))
    other.user_id, other.memory_key = grant.user_id, memory_key(local, other.call, grant.user_id)
    local.decide(ask(other.call, other.memory_key)["id"], "approved")
    for someone in (stranger, other):
        made = restore(someone, memory["id"]).json()
        assert made["id"] != memory["id"]
        assert made["created_at"] > memory["updated_at"]
    assert restore(grant, memory["id"]).json() == without_content(memory)


def kept(local):
    with local._deployment.store.engine.connect() as connection:
        return connection.scalar(select(func.count()).select_from(tombstones))


def test_a_tombstone_is_kept_for_thirty_days(local, grant, memory, clock):
    other = grant.create("Another")["id"]
    grant.delete(memory["id"])
    clock.time += timedelta(days=30)
    grant.call = Caller(local.base_url, local.api_key)  # tokens run out meanwhile
    assert restore(grant, memory["id"]).json()["id"] != memory["id"]
    grant.delete(other)
    assert kept(local) == 1, "of the first one nothing is kept any more"
    clock.time += timedelta(days=30)
    grant.call = Caller(local.base_url, local.api_key)
    grant.create("Whatever")
    assert kept(local) == 0


def test_nothing_of_the_text_is_kept(local, grant):
    for _ in range(2):
        grant.delete(grant.create("Likes tea", **FIELDS)["id"])
    with local._deployment.store.engine.connect() as connection:
        rows = [dict(row) for row in connection.execute(select(tombstones)).mappings()]
    assert not re.search("tea|chat", str(rows), re.IGNORECASE)
    assert len({row["digest"] for row in rows}) == 2, "whether two memories were equal is nobody's business"
