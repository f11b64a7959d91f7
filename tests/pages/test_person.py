"""People see their memories, search them, take them along, delete them, and see who used them; nobody else does."""

import asyncio
import re
import socket
import tracemalloc
from collections import Counter
from contextlib import ExitStack, closing
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import OperationalError

from memframe.secret import Secret
from memframe.service import run_local
from memframe.service.deployment import DATABASE_FILE
from memframe.service.store.schema import erasures, metadata, users
from memframe.service.throttle import DOWNLOADS_PER_USER, BoundedPool
from tests.conftest import CHEAP_HASHER
from tests.pages.conftest import PASSWORD, Browser
from tests.service.conftest import Caller, Grant

HOSTILE = "~~~~\n# Not a heading\n</p><script>alert(1)</script>\n~~~~~"


class Person(Grant):
    """A user who has approved an application, and has signed in."""

    def __init__(self, local, call):
        super().__init__(local, call)
        self.browser = Browser(local)
        self.browser.sign_in(self.email, "a long password")

    def titles(self, path="/dashboard/memories"):
        return re.findall(r"<h3><bdi>(.*?)</bdi>", self.browser.open(path).text)

    def send(self, path, **fields):
        """Open the page that asks, and send its form."""
        self.browser.open(path)
        return self.browser.send(self.browser.form(path), **fields)

    def row(self):
        """The numbers of the latest row of the activity page."""
        page = self.browser.open("/dashboard/activity").text
        return [int(number) for number in re.findall(r'<td data-label="\w+"[^>]*>([\d,]+)</td>', page)[:4]]


@pytest.fixture
def person(service, call):
    return Person(service, call)


def test_people_see_their_own_memories_latest_first_in_pages(service, call, person, monkeypatch):
    monkeypatch.setattr("memframe.service.person_pages.MEMORIES_PER_PAGE", 3)
    Person(service, call).create(title="of another")
    for number in range(7):
        person.create(f"text {number}", title=f"title {number}", tags=["tea"], importance=0.5)
    assert person.titles() == ["title 6", "title 5", "title 4"]
    text = person.browser.page.text
    assert ("text 6" in text, "Importance <bdi>0.5</bdi>" in text, ">tea<" in text) == (True, True, True)
    for expected in (["title 3", "title 2", "title 1"], ["title 0"]):
        (older,) = re.findall(r'href="([^"]+)">Older', person.browser.page.text)
        assert person.titles(older.replace("&amp;", "&")) == expected
    assert ">Older" not in person.browser.page.text
    assert person.browser.open("/dashboard/memories?after=x").status_code == 400


def test_a_search_and_a_tag_choose(person):
    person.create("Plays the cello", title="a")
    person.create("Lives in the Straße", title="b", tags=["tea"])
    person.create("Likes it", title="c", tags=["tea"])
    for asked, found in (("q=strasse", ["b"]), ("tag=tea", ["c", "b"]), ("tag=tea&q=lives", ["b"])):
        assert person.titles(f"/dashboard/memories?{asked}") == found


def test_tags_come_in_pages_and_lead_to_their_memories(person, monkeypatch):
    monkeypatch.setattr("memframe.service.person_pages.TAGS_PER_PAGE", 2)
    person.create(title="t", tags=["b c", "a&d", "e"])
    pages = [person.browser.open(f"/dashboard/tags?page={number}").text for number in (1, 2)]
    links = [re.findall(r'href="(/dashboard/memories\?tag=[^"]+)"', page) for page in pages]
    assert [len(found) for found in links] == [2, 1]
    assert [person.titles(link) for found in links for link in found] == [["t"]] * 3
    assert person.browser.open("/dashboard/tags?page=0x").status_code == 200


@pytest.mark.any_database
@pytest.mark.asvs("1.2.1", "3.2.2")
def test_words_of_applications_stay_text(person):
    plain = person.create("x", title="x", summary="x", tags=["x"], source="x")
    before = person.browser.open("/dashboard/memories").text
    person.patch(
        plain["id"], **dict.fromkeys(("content", "title", "summary", "source"), HOSTILE), tags=[HOSTILE[-30:]]
    )
    after = person.browser.open("/dashboard/memories").text
    assert re.findall("<(?!time|/time)[^>]*?[ >]", after) == re.findall("<(?!time|/time)[^>]*?[ >]", before)
    assert "&lt;script&gt;" in after


# Downloads


@pytest.mark.asvs("5.4.1")
@pytest.mark.parametrize("asked", ["?filename=x.exe", "?name=%22;a.html", ";x.exe", "/../x.exe"])
def test_a_download_has_the_name_that_the_service_gives_it(person, asked):
    answer = person.browser.open(f"/dashboard/memories.json{asked}")
    names = {'attachment; filename="memories.json"'} if asked.startswith("?") else {None}
    assert {answer.headers.get("Content-Disposition")} == names


def test_all_memories_are_downloaded_as_json(person, monkeypatch):
    monkeypatch.setattr("memframe.service.person_pages.EXPORT_BATCH", 2)
    assert person.browser.open("/dashboard/memories.json").json()["memories"] == []
    assert person.browser.open("/dashboard/memories.md").text.startswith("# Memories of ")
    contents = [f"{HOSTILE} {number}" for number in range(5)]
    made = [person.create(text, title="T", tags=["a"], importance=n) for n, text in enumerate(contents)]
    answer = person.browser.open("/dashboard/memories.json")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="memories.json"'
    assert answer.headers["Cache-Control"] == "no-store"
    told = answer.json()
    assert (told["email"], [tag["name"] for tag in told["tags"]]) == (person.email, ["a"])
    assert [memory["content"] for memory in told["memories"]] == contents
    for memory, was in zip(told["memories"], made, strict=True):
        for name in ("id", "title", "tags", "importance", "created_at", "updated_at"):
            assert memory[name] == was[name]


def test_all_memories_are_downloaded_as_markdown_out_of_which_no_text_breaks(person):
    person.create(HOSTILE, title="# One\n## Two", summary="*s*", tags=["[x](y)"])
    person.create("Likes tea")
    text = person.browser.open("/dashboard/memories.md").text
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        r"## 1. \# One \#\# Two", "## 2. Without a title",
    ]  # fmt: skip
    assert f"\n~~~~~~\n{HOSTILE}\n~~~~~~\n" in text
    assert r"- Tags: \[x\]\(y\)" in text


def test_each_page_of_a_download_is_made_when_it_is_asked_for():
    made = []

    async def take(n):
        pieces = pool.iterate(made.append(number) or b"x" for number in range(9))
        return [await anext(pieces) for _ in range(n)]

    with closing(BoundedPool("test", n_threads=1, per_caller=1)) as pool:
        assert asyncio.run(take(2)) == [b"x", b"x"]
    assert made == [0, 1]


@pytest.fixture
def unread(service, person):
    """Downloads that a person has begun, of which nothing is read beyond the status."""
    service.import_memories(person.user_id, [{"content": "x" * 30_000}] * 300)
    address, cookies = urlsplit(service.auth_url), person.browser.session.cookies
    head = f"Host: {address.netloc}\r\nCookie: {'; '.join(f'{one.name}={one.value}' for one in cookies)}"
    with ExitStack() as stack:

        def begin():
            connection = stack.enter_context(socket.create_connection((address.hostname, address.port)))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(f"GET /dashboard/memories.json HTTP/1.1\r\n{head}\r\n\r\n".encode())
            answer = connection.makefile("rb", 0)
            return connection, int(answer.readline().split()[1])

        yield begin


@pytest.mark.asvs("2.4.1", "15.2.2")
def test_downloads_that_nobody_reads_take_little_memory_and_no_more_than_two_places(person, unread):
    tracemalloc.start()
    connections, statuses = zip(*[unread() for _ in range(20)], strict=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert Counter(statuses) == {200: DOWNLOADS_PER_USER, 429: 20 - DOWNLOADS_PER_USER}
    assert peak < 16 << 20
    refused = person.browser.open("/dashboard/memories.md")
    assert refused.status_code == 429
    assert "You already have 2 downloads in progress: wait until one of them ends" in refused.text
    assert refused.headers["Retry-After"] == "1"
    for connection in connections:
        connection.close()
    while person.browser.open("/dashboard/memories.json").status_code == 429:
        pass  # until the service has noticed
    assert len(person.browser.page.json()["memories"]) == 300


# Deleting


@pytest.mark.asvs("8.2.2")
def test_one_memory_is_deleted_after_a_question_and_not_restored(service, call, person):
    kept, gone = person.create(title="kept"), person.create(title="gone")
    other = Person(service, call).create(title="of another")
    path = f"/dashboard/memories/{gone['id']}/delete"
    assert "gone" in person.browser.open(path).text
    assert person.titles() == ["gone", "kept"], "a question deletes nothing"
    assert person.send(path).url.endswith("/dashboard/memories")
    assert person.ids() == [kept["id"]]
    restored = call.post("/memory-blobs", {**person.keys, "content": "x"}, Restores=gone["id"])
    assert (restored.status_code, restored.json()["id"] == gone["id"]) == (201, False)
    for foreign in (gone["id"], other["id"], "nothing"):
        assert person.browser.open(f"/dashboard/memories/{foreign}/delete").status_code == 404
        person.browser.open(f"/dashboard/memories/{kept['id']}/delete")
        form = person.browser.form("/delete")
        form.action = f"/dashboard/memories/{foreign}/delete"
        assert person.browser.send(form).status_code == 404


def test_all_memories_are_deleted_if_their_number_is_typed(person):
    gone = person.create(tags=["a"])["id"]
    person.delete(gone)
    for number in range(3):
        person.create(str(number), tags=["a"])
    for typed in ("", "2", "4", "three", "-3", "²"):
        assert person.send("/dashboard/memories/delete-all", number=typed).status_code == 403
    assert len(person.ids()) == 3
    assert person.send("/dashboard/memories/delete-all", number=" 3 ").url.endswith("/dashboard/memories")
    assert "No memories" in person.browser.page.text
    assert person.call.get("/tags", user_id=person.user_id).json() == {"items": []}
    restored = person.call.post("/memory-blobs", {**person.keys, "content": "x"}, Restores=gone).json()
    assert restored["id"] != gone, "nor what was deleted before comes back under its id"


@pytest.mark.asvs("3.5.1", "3.5.3")
def test_no_other_site_deletes_anything(person):
    memory_id = person.create()["id"]
    for page in (f"memories/{memory_id}/delete", "memories/delete-all", "account/delete"):
        for wrong in ({"csrf_token": "0" * 64}, {"headers": {"Sec-Fetch-Site": "cross-site"}}):
            sent = person.send(f"/dashboard/{page}", number="1", password="a long password", **wrong)
            assert sent.status_code == 403
    assert person.ids() == [memory_id]


@pytest.mark.any_database
def test_whoever_is_not_signed_in_or_has_a_password_of_the_operator_sees_nothing(
    service, stranger, new_email
):
    def redirects():
        paths = ["", "?q=x", ".json", ".md", "/x/delete", "/delete-all"]
        paths = [f"memories{path}" for path in paths] + ["tags", "activity", "account", "account/delete"]
        pages = [stranger.open(f"/dashboard/{path}", allow_redirects=False) for path in paths]
        return {page.headers["Location"].partition("?")[0] for page in pages}

    assert redirects() == {"/login"}
    user_id = service.add_user(address := new_email(), PASSWORD)
    service._deployment.reset_password(user_id, Secret(PASSWORD))
    stranger.open("/login")
    stranger.sign_in(address)
    assert redirects() == {"/dashboard/password"}


# Who used them


def test_the_record_counts_what_applications_did_and_nothing_else(person):
    assert "No application has read or changed" in person.browser.open("/dashboard/activity").text
    made = [person.create("a secret text", title="a title") for _ in range(3)]
    key = {"Idempotency-Key": made[0]["id"]}
    for _ in range(2):  # the second is answered, and creates nothing
        assert person.call.post("/memory-blobs", {**person.keys, "content": "x"}, **key).status_code == 201
    person.list(limit=2)
    person.list(searchQuery="secret")
    person.get(made[0]["id"])
    person.patch(made[0]["id"], title="b")
    person.patch("unknown", title="b")
    person.delete(made[1]["id"])
    person.browser.open("/dashboard/memories")  # what the person reads is nobody's business
    assert person.row() == [2 + 3 + 1, 4, 1, 1]
    assert "My application" in person.browser.page.text
    assert not re.search("secret text|a title", person.browser.page.text)


def test_counts_of_all_processes_add_up_by_day_and_outlive_a_restart(
    backend, tmp_path, set_clock, monkeypatch
):
    monkeypatch.setattr("memframe.service.store.activity.FLUSH_EVERY_S", 3600)
    database = backend.new_database() or f"sqlite:///{tmp_path / 'service.db'}"
    options = {"database": database, "now": set_clock, "password_hasher": CHEAP_HASHER}
    with run_local(tmp_path, **options) as one, run_local(tmp_path, **options) as other:
        person = Person(one, Caller(one.base_url, one.api_key))
        person.create()
        person.call = Caller(other.base_url, one.api_key)
        for _ in range(3):
            person.list()
        set_clock.advance(days=1)
        person.call = Caller(other.base_url, one.api_key)
        person.create()
    with run_local(tmp_path, **options) as again:
        person.browser = Browser(again)
        person.browser.sign_in(person.email, "a long password")
        assert person.row() == [0, 1, 0, 0]
        days = re.findall(r'<time datetime="([\d-]+)">', person.browser.page.text)
        assert days == ["2026-03-02", "2026-03-01"]
        assert re.findall(r'"Read"[^>]*>(\d+)<', person.browser.page.text) == ["0", "3"]


def test_counts_that_cannot_be_stored_are_kept_and_those_of_erased_users_dropped(
    backend, service, person, monkeypatch
):
    activity, engine = service._deployment.store.activity, service._deployment.store.engine
    developer_id = service._deployment.store.requests.get(person.request_id).developer_id
    activity.count("erased", developer_id, "reads")
    activity.count(person.user_id, developer_id, "deletes", 7)
    with monkeypatch.context() as impatient:
        impatient.setattr(backend.lock_timeout, 1)
        engine.dispose()  # new connections do not wait
        with backend.holding_writes(engine, person.user_id), pytest.raises(OperationalError):
            activity.flush()
        engine.dispose()
    assert person.row() == [0, 0, 0, 7]


# The account


def left_of(local, user_id):
    """Numbers of rows of a user by table."""
    with local._deployment.store.engine.connect() as connection:
        tables = [table for table in metadata.sorted_tables if "user_id" in table.c]
        left = {
            table.name: connection.scalar(select(func.count()).where(table.c.user_id == user_id))
            for table in tables
        }
        left["users"] = connection.scalar(select(func.count()).where(users.c.id == user_id))
    return {name: number for name, number in left.items() if number}


@pytest.mark.asvs("7.4.2")
def test_an_account_is_deleted_with_everything_in_it_and_leaves_a_receipt(backend, tmp_path):
    database = backend.new_database()
    with run_local(tmp_path, database=database, password_hasher=CHEAP_HASHER) as local:
        call = Caller(local.base_url, local.api_key)
        person, other = Person(local, call), Person(local, call)
        ids = {}
        for each in (person, other):
            key = {"Idempotency-Key": each.user_id}
            assert call.post("/memory-blobs", {**each.keys, "content": "x", "tags": ["a"]}, **key).ok
            gone = each.create("Likes tea", tags=["tea"])["id"]
            each.delete(gone)
            for delete in (
                each.delete,
                lambda memory_id, each=each: each.send(f"/dashboard/memories/{memory_id}/delete"),
            ):
                key = {"Idempotency-Key": uuid4().hex}
                created = call.post("/memory-blobs", {**each.keys, "content": "y"}, **key).json()["id"]
                delete(created)
                ids.setdefault(each.user_id, {each.user_id, gone}).add(created)
            assert each.row()
            assert each.browser.consent(redirect_uri=local.redirect_uri)["code"]
        local.rotate_key(person.user_id)
        before = left_of(local, other.user_id)
        assert before == left_of(local, person.user_id) | {"user_keys": 1}
        assert set(before) >= {
            "users", "user_keys", "memories", "tags", "tombstones", "connections", "access_requests", "sessions",
            "access_counts", "authorization_codes",
        }  # fmt: skip
        refused = person.send("/dashboard/account/delete", password="wrong")
        assert (refused.status_code, "Nothing was deleted" in refused.text) == (403, True)
        assert left_of(local, person.user_id)
        receipt = person.send("/dashboard/account/delete", password="a long password")
        assert (receipt.status_code, "Your account is deleted" in receipt.text) == (200, True)
        assert left_of(local, person.user_id) == {}
        assert left_of(local, other.user_id) == before
        with local._deployment.store.engine.connect() as connection:
            ((digest, _),) = connection.execute(select(erasures)).all()
        assert digest in receipt.text
        assert person.user_id in receipt.text
        assert person.list().status_code == 403
        assert call.get(f"/access-requests/{person.request_id}").status_code == 404
        assert "/login" in person.browser.open("/dashboard").url
        assert Browser(local).sign_in(person.email, "a long password").status_code == 403
        assert call.post("/memory-blobs", {**other.keys, "content": "y"}).status_code == 201
        if not database:
            kept = b"".join(file.read_bytes() for file in tmp_path.glob(f"{DATABASE_FILE}*"))
            assert [one for one in ids[other.user_id] if one.encode() not in kept] == []
            assert [one for one in (*ids[person.user_id], person.email) if one.encode() in kept] == []
        local.add_user(person.email, "a long password")
