"""Memories from elsewhere keep their times, and come whole or not at all."""

from datetime import datetime

import pytest

from memframe.errors import InvalidError, NotFoundError
from memframe.sample import load_sample, load_sample_tags

TEA = {"content": "Likes tea", "created_at": "2024-05-01T10:00:00+02:00"}


def test_a_memory_needs_no_more_than_its_content(service, grant):
    service.import_memories(grant.user_id, [{"content": "Likes tea"}])
    (memory,) = grant.list(searchQuery="tea").json()["memoryBlobs"]
    assert (memory["title"], memory["tags"], memory["importance"]) == (None, [], None)
    assert memory["created_at"] == memory["updated_at"] > "2026"


def test_times_are_kept_in_utc(service, grant):
    later = {"updated_at": "2024-06-01T00:00:00Z"}
    service.import_memories(grant.user_id, [TEA, TEA | later], [{"name": "drinks", **later}])
    first, second = grant.list().json()["memoryBlobs"]
    assert first["created_at"] == first["updated_at"] == "2024-05-01T08:00:00.000000Z"
    assert second["updated_at"] == "2024-06-01T00:00:00.000000Z"


def test_what_the_api_has_answered_can_be_taken_over(service, grant, call, new_grant):
    grant.create("sealed elsewhere", title="Tea", tags=["drinks"], importance=3)
    (told,) = grant.list().json()["memoryBlobs"]
    tags = grant.call.get("/tags", user_id=grant.user_id).json()["items"]
    other = new_grant(service, call)
    service.import_memories(other.user_id, [told | {"content": "Likes tea"}], tags)
    (taken,) = other.list().json()["memoryBlobs"]
    own = {"id", "user_id", "tag_ids", "content"}
    assert {k: v for k, v in taken.items() if k not in own} == {k: v for k, v in told.items() if k not in own}


def test_the_sample_is_taken_over_whole(service, grant):
    service.import_memories(grant.user_id, load_sample(), load_sample_tags())
    page = grant.list(limit=1000).json()["memoryBlobs"]
    assert [memory["title"] for memory in page] == [memory.title for memory in load_sample()]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (TEA | {"created_at": "2024-05-01T10:00:00"}, r"memory 1 .*timezone.*created_at"),
        (TEA | {"created_at": datetime(2024, 5, 1)}, r"memory 1 .*timezone.*created_at"),  # noqa: DTZ001 - to be refused
        (TEA | {"created_at": "yesterday"}, "memory 1 .*created_at"),
        (TEA | {"importance": "high"}, "memory 1 .*importance"),
        (TEA | {"importance": 7}, "importance must be a number"),
        (TEA | {"tags": ["a,b"]}, "comma"),
        ({"title": "no content"}, "memory 1 .*content"),
        ("Likes tea", "memory 1"),
    ],
)
def test_a_record_of_another_form_is_named_and_nothing_is_taken_over(service, grant, wrong, said):
    with pytest.raises(InvalidError, match=said):
        service.import_memories(grant.user_id, [TEA, wrong], [{"name": "drinks"}])
    assert grant.ids() == []
    assert grant.call.get("/tags", user_id=grant.user_id).json()["items"] == []


def test_nobodys_memories_are_refused(service):
    with pytest.raises(NotFoundError, match="no user nobody"):
        service.import_memories("nobody", [TEA])
