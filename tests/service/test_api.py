"""Every endpoint does what the specification says, over real HTTP."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

import memframe as mf
from memframe.service.store.engine import writing
from memframe.service.store.schema import memories
from tests.service.conftest import Caller, Grant


def test_a_token_lives_as_long_as_was_asked_for(service, call):
    body = {"api_key": service.api_key, "expires_in": 120}
    answer = call("POST", "/auth/token", json=body, headers={"Authorization": ""})
    assert answer.status_code == 200
    assert answer.json()["token_type"] == "Bearer"
    left = datetime.fromisoformat(answer.json()["expires_at"]) - datetime.now(UTC)
    assert timedelta(seconds=110) < left <= timedelta(seconds=120)
    assert answer.headers["cache-control"] == "no-store"


def test_access_requests_and_credentials_are_as_specified(service, call, grant):
    answer = call.post("/access-requests", {"memoryKey": grant.memory_key, "reason": "to tidy up"})
    assert answer.status_code == 201
    asked = answer.json()
    given = {"reason": "to tidy up", "memoryKey": grant.memory_key, "user_id": grant.user_id}
    assert asked.items() >= {**given, "status": "pending"}.items()
    assert asked.keys() - given == {"id", "status", "aiConnectorId", "createdAt", "updatedAt"}
    assert call.get(f"/access-requests/{asked['id']}").json() == asked
    listed = call.get("/access-requests").json()
    assert asked in listed["items"]
    assert listed["total"] == len(listed["items"])
    service.decide(asked["id"], "rejected")
    decided = call.get(f"/access-requests/{asked['id']}").json()
    assert decided["createdAt"] == asked["createdAt"]
    assert decided["updatedAt"] > asked["updatedAt"]
    credentials = grant.credentials()
    assert (credentials["user_id"], credentials["memory_key"]) == (grant.user_id, grant.memory_key)
    assert (len(bytes.fromhex(credentials["encryption_key"])), credentials["key_version"]) == (32, 1)


@pytest.mark.asvs("1.2.3")
def test_a_memory_comes_back_as_it_was_written(grant):
    fields = {
        "title": "Tea", "summary": "What she drinks", "tags": ["drinks", "habits"],
        "importance": 4, "confidence": 0.5, "source": "chat",
    }  # fmt: skip
    created = grant.create("Likes tea ☕ 😀", **fields)
    assert "content" not in created
    read = grant.get(created["id"]).json()
    content = read.pop("content")
    assert read == created
    assert {name: created[name] for name in fields} == fields
    assert len(created["tag_ids"]) == 2
    assert grant.envelope().open(content) == "Likes tea ☕ 😀"
    bare = grant.create()
    assert {name: bare[name] for name in fields} == {**dict.fromkeys(fields), "tags": []}


@pytest.mark.parametrize("layout", [0, 1], ids=["base64", "hex"])
def test_sealed_content_is_kept_byte_for_byte(service, call, grant, layout):
    sealed, foreign = (each.seal_by_hand("Plays the cello")[layout] for each in (grant, Grant(service, call)))
    memory_id = grant.create(sealed)["id"]
    grant.create(foreign)
    assert grant.ids(searchQuery="CELLO") == [memory_id]
    own, other = (memory["content"] for memory in grant.list().json()["memoryBlobs"])
    assert (own, grant.envelope().open(other)) == (sealed, foreign), "what another key sealed is only text"


def test_patch_changes_what_is_sent_and_nothing_else(grant):
    created = grant.create(title="Tea", summary="Drinks", tags=["a", "b", " a "], importance=1, source="chat")
    assert created["tags"] == ["a", "b"]
    assert grant.patch(created["id"]).json() == created
    before = grant.list().json()["memoryBlobs"][0]
    changed = grant.patch(created["id"], title="Green tea", tags=["b", "c"]).json()
    assert changed["title"] == "Green tea"
    assert changed["tags"] == ["b", "c"]
    assert changed["tag_ids"][0] == created["tag_ids"][1]
    assert changed["updated_at"] > created["updated_at"]
    kept = {"summary", "importance", "confidence", "source", "created_at", "user_id", "id"}
    assert {name: changed[name] for name in kept} == {name: created[name] for name in kept}
    assert grant.list().json()["memoryBlobs"][0]["content"] == before["content"]


def test_patch_with_null_clears_and_one_of_content_seals_it_anew(grant):
    created = grant.create(
        "old", title="Tea", summary="s", tags=["a"], importance=1, confidence=1, source="c"
    )
    cleared = dict.fromkeys(("title", "summary", "tags", "importance", "confidence", "source"))
    changed = grant.patch(created["id"], **cleared, content="brand-new").json()
    assert {name: changed[name] for name in cleared} == {**cleared, "tags": []}
    assert grant.ids(searchQuery="brand-new") == [created["id"]]
    assert grant.ids(searchQuery="old") == []


@pytest.mark.asvs("8.2.3", "15.3.3")
def test_what_the_service_owns_is_not_set_by_callers(grant):
    own = {"id": "mine", "created_at": "1999-01-01T00:00:00Z", "tag_ids": ["x"], "key_version": 9}
    created = grant.create(**own)
    assert created["id"] != "mine"
    assert created["created_at"] > "2000"
    assert created["tag_ids"] == []
    assert grant.patch(created["id"], **own).json() == created


def test_delete_is_for_good(grant, refused):
    memory_id = grant.create(tags=["a"])["id"]
    answer = grant.delete(memory_id)
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    for again in (grant.delete(memory_id), grant.get(memory_id), grant.patch(memory_id, title="x")):
        refused(again, 404, "not_found")


def test_tags_are_listed_in_one_order_whatever_the_database(grant):
    names = ["Zoo", "art", "Ärger", "10", "9", "_", "zoo", "art-2", "art 1"]
    created = grant.create(tags=names)
    grant.create(tags=["art", "music"])
    tags = grant.call.get("/tags", user_id=grant.user_id).json()["items"]
    assert [tag["name"] for tag in tags] == sorted([*names, "music"])
    assert created["tag_ids"] == [tag["id"] for name in names for tag in tags if tag["name"] == name]
    assert grant.call.get(f"/tags/{tags[0]['id']}", user_id=grant.user_id).json() == tags[0]
    assert set(tags[0]) == {"id", "name", "color", "description", "is_enabled", "created_at", "updated_at"}
    assert (tags[0]["color"][0], tags[0]["is_enabled"]) == ("#", True)


def test_filters_choose(grant):
    tea = grant.create("Likes tea", title="Drinks", tags=["home"], importance=0.2)["id"]
    run = grant.create("Runs 10% faster", summary="SPORT", tags=["out"], importance=0.8)["id"]
    both = grant.create("Straße", tags=["home", "out"])["id"]
    for asked, found in (
        ({}, [tea, run, both]),
        ({"tags": "home"}, [tea, both]),
        ({"tags": "out, home"}, [tea, run, both]),
        ({"tags": "nothing"}, []),
        ({"importance": "0.5"}, [run]),
        ({"importance": "0"}, [tea, run]),
        ({"searchQuery": "TEA"}, [tea]),
        ({"searchQuery": "drink"}, [tea]),
        ({"searchQuery": "sport"}, [run]),
        ({"searchQuery": "1_%"}, []),
        ({"searchQuery": "STRASSE"}, [both]),
        ({"searchQuery": "s", "tags": "out", "importance": "0.5"}, [run]),
    ):
        assert grant.ids(**asked) == found, asked


def test_the_page_is_ten_long_unless_asked_otherwise(grant):
    ids = [grant.create()["id"] for _ in range(12)]
    page = grant.list().json()
    assert [memory["id"] for memory in page["memoryBlobs"]] == ids[:10]
    rest = grant.list(cursor=page["next_cursor"]).json()
    assert [memory["id"] for memory in rest["memoryBlobs"]] == ids[10:]
    assert rest["next_cursor"] is None
    assert grant.list(limit=12).json()["next_cursor"] is None
    assert grant.list(limit=5000).status_code == 200
    assert grant.list(limit=10**30).status_code == 200


@pytest.mark.parametrize("search", [{}, {"searchQuery": "tea"}, {"tags": "t"}], ids=str)
def test_pages_neither_skip_nor_repeat_what_was_there_throughout(grant, search):
    ids = [grant.create(f"tea {n}", tags=["t"])["id"] for n in range(9)]
    seen, cursor, doomed = [], None, ids[4]
    while True:
        page = grant.list(limit=2, **search, **({"cursor": cursor} if cursor else {})).json()
        seen += [memory["id"] for memory in page["memoryBlobs"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        grant.delete(seen[0])
        grant.delete(doomed)
        if len(seen) < 5:
            grant.create("tea, late", tags=["t"])
    assert len(seen) == len(set(seen))
    assert [memory_id for memory_id in seen if memory_id in ids] == [i for i in ids if i != doomed]


def test_a_search_looks_through_more_than_one_batch(grant, monkeypatch):
    monkeypatch.setattr("memframe.service.store.memories.MEMORIES_PER_QUERY", 4)
    ids = [grant.create("needle" if n % 6 == 5 else "hay")["id"] for n in range(13)]
    assert grant.ids(searchQuery="needle") == [ids[5], ids[11]]


def test_damaged_content_is_listed_but_never_found(service, grant):
    damaged, sound = grant.create("Likes tea", title="first")["id"], grant.create("Likes tea")["id"]
    with writing(service._deployment.store.engine) as connection:
        connection.execute(update(memories).where(memories.c.id == damaged).values(content="mf1.1.AAAA"))
    assert grant.ids() == [damaged, sound]
    assert grant.ids(searchQuery="tea") == [sound]
    assert grant.ids(searchQuery="first") == [damaged]


# Pages by bytes


@pytest.mark.parametrize("asked", [{}, {"searchQuery": "tea"}, {"tags": "t"}, {"importance": 0.5}], ids=repr)
def test_pages_by_bytes_leave_nothing_out_and_are_never_empty(grant, monkeypatch, asked):
    monkeypatch.setattr("memframe.service.store.listing.MAX_PAGE_BYTES", 10_000)
    sizes = [10, 10, 20_000, 10, 3000, 3000, 3000, 3000, 3000, 20_000, 20_000, 9000, 10]
    fields = {"tags": ["t"], "importance": 0.7}
    made = [grant.create("tea " + "x" * size, **fields)["id"] for size in sizes]
    made.append(grant.create("tea", title="\u00e9" * 20_000, **fields)["id"])
    pages, more = [], {}
    while more is not None:
        page = grant.list(limit=1000, **asked, **more).json()
        pages.append(page["memoryBlobs"])
        more = {"cursor": page["next_cursor"]} if page["next_cursor"] else None
    assert [memory["id"] for page in pages for memory in page] == made
    assert all(pages)
    kept = [sum(len(memory["content"]) for memory in page[:-1]) for page in pages]
    assert max(kept) < 10_000, "only the last of a page may go beyond the bound"


@pytest.mark.asvs("2.3.2", "2.4.1")
def test_pending_requests_of_a_pair_are_bounded(service, call, grant, refused, monkeypatch):
    monkeypatch.setattr("memframe.service.store.accounts.MAX_PENDING", 5)
    body = {"memoryKey": grant.memory_key, "reason": "once more"}
    asked = [call.post("/access-requests", body).json()["id"] for _ in range(5)]
    refused(call.post("/access-requests", body), 409, "too_many_pending")
    service.decide(asked[0], "rejected")
    assert call.post("/access-requests", body).status_code == 201


def test_the_list_of_access_requests_comes_in_pages_that_the_client_follows(service, refused, monkeypatch):
    monkeypatch.setattr("memframe.service.validation.MAX_LIMIT", 10)
    developer = service._deployment.add_developer("Has many users")
    caller = Caller(service.base_url, developer.api_key.reveal())
    first, second = (Grant(service, caller) for _ in range(2))
    requests = service._deployment.store.requests
    for grant in (first, second):
        for number in range(6):
            requested = requests.add(developer_id=developer.id, user_id=grant.user_id, reason=str(number))
            requests.decide(requested.id, "rejected")
    page = caller.get("/access-requests").json()
    assert (len(page["items"]), page["total"]) == (10, 14)
    rest = caller.get("/access-requests", cursor=page["next_cursor"], limit=3).json()
    assert (len(rest["items"]), rest["total"]) == (3, 14)
    last = caller.get("/access-requests", cursor=rest["next_cursor"]).json()
    every = [item["id"] for item in page["items"] + rest["items"] + last["items"]]
    assert (len(set(every)), last["next_cursor"]) == (14, None)
    with mf.connect(service.base_url, api_key=developer.api_key.reveal()) as client:
        assert [request.id for request in client.access_requests()] == every
    refused(caller.get("/access-requests", cursor="of-nobody"), 400, "invalid_cursor")
    refused(caller.get("/access-requests", limit=0), 400, "invalid_limit")


def test_the_tags_of_a_user_are_bounded(grant, refused, monkeypatch):
    monkeypatch.setattr("memframe.service.store.memories.MAX_USER_TAGS", 200)
    for number in range(2):
        grant.create(tags=[f"{number}-{place}" for place in range(100)])
    body = {**grant.keys, "content": "Likes tea", "tags": ["0-0", "one too many"]}
    refused(grant.call.post("/memory-blobs", body), 409, "too_many_tags")
    grant.create(tags=["0-0", "1-99"])
