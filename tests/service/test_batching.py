"""Writes that come together are committed together, reads are found together; each is answered for itself."""

from contextlib import closing, contextmanager
from threading import Event

import psycopg
import pytest
from msgspec import DecodeError
from sqlalchemy import create_engine, event, text
from sqlalchemy.exc import OperationalError

from memframe.errors import NotFoundError
from memframe.service.keys import MasterKey
from memframe.service.store import Store, batching
from memframe.service.store.engine import open_engine, sqlite_url
from memframe.service.store.listing import MemoryFilter
from memframe.service.tokens import Bearer


class Line:
    """One thread that writes, for two users who have approved."""

    def __init__(self, url):
        self.store = Store(open_engine(url), MasterKey.generate())
        self.developer_id = self.store.accounts.add_developer(
            name="Notes", api_key_hash="a" * 64, client_id="c", client_secret_hash="b" * 64, redirect_uris=()
        ).id
        self.requests = {user_id: self._approved(user_id) for user_id in ("u-1", "u-2")}
        self.commits, self.rollbacks = [], []
        event.listen(self.store.engine, "commit", self.commits.append)
        event.listen(self.store.engine, "rollback", self.rollbacks.append)

    def _approved(self, user_id):
        accounts, pair = self.store.accounts, {"user_id": user_id, "developer_id": self.developer_id}
        accounts.add_user(id=user_id, email=f"{user_id}@a.example", password_hash="", wrapped_key=b"")
        accounts.connect(**pair, key_hash=lambda _: user_id)
        request = self.store.requests.add(**pair, reason="")
        return self.store.requests.decide(request.id, "approved").id

    def write(self, do, user_id="u-1"):
        return self.store.write(do, Bearer(self.developer_id, 0), user_id)

    def titles(self, user_id="u-1"):
        with self.store.transaction_of(user_id) as mine:
            return [memory.title for memory in mine.page(MemoryFilter(user_id), limit=1000).memory_blobs]

    @contextmanager
    def gathering(self):
        """A block whose writes wait until it ends."""
        arrived, goes_on = Event(), Event()
        self.write(lambda _: arrived.set() or goes_on.wait(), "u-2")
        arrived.wait()
        try:
            yield
        finally:
            goes_on.set()


@pytest.fixture
def line(backend, tmp_path, monkeypatch):
    monkeypatch.setattr(batching, "N_WRITERS", dict.fromkeys(batching.N_WRITERS, 1))
    monkeypatch.setattr(backend.lock_timeout, 200)
    line = Line(backend.new_database() or sqlite_url(tmp_path / "service.db"))
    with closing(line.store):
        yield line


def adding(title, *tags):
    return lambda memories: memories.add({"title": title, "content": ""}, tags).id


def test_what_waits_is_committed_at_once(line):
    with line.gathering():
        answers = [line.write(adding(str(number), "tea", str(number % 3))) for number in range(40)]
    assert len({answer.result() for answer in answers}) == 40
    assert len(line.commits) == 2, "the one that they waited for, and theirs"
    assert line.titles() == [str(number) for number in range(40)], "in the order in which they came"
    with line.store.transaction_of("u-1") as mine:
        assert [tag.name for tag in mine.all_tags()] == ["0", "1", "2", "tea"]


def test_nobody_is_answered_before_the_commit(line):
    answers, before = [], []
    with line.gathering():
        event.listen(line.store.engine, "commit", lambda _: before.append([a.done() for a in answers]))
        answers += [line.write(adding(str(number))) for number in range(3)]
    assert [answer.result() for answer in answers]
    assert before == [[False] * 3] * 2


def refused(memories):
    memories.add({"title": "refused", "content": ""}, ["of nobody"])
    memories.delete("unknown")


@pytest.mark.asvs("2.3.3", "16.5.3")
def test_a_write_that_is_refused_takes_nothing_of_the_others_with_it(line):
    with line.gathering():
        answers = [
            line.write(do) for do in (adding("a", "tea"), refused, adding("b"), refused, adding("c", "tea"))
        ]
    for place in (1, 3):
        with pytest.raises(NotFoundError):
            answers[place].result()
    assert all(answers[place].result() for place in (0, 2, 4))
    assert line.titles() == ["a", "b", "c"]
    with line.store.transaction_of("u-1") as mine:
        assert [tag.name for tag in mine.all_tags()] == ["tea"]


def test_a_user_whose_lock_is_held_holds_up_nobody_else(backend, line):
    if backend.name == "sqlite":
        pytest.skip("its lock is one for all")
    with backend.holding_writes(line.store.engine, "u-1"):
        with line.gathering():
            held = [line.write(adding("a")) for _ in range(3)]
            free = [line.write(adding("b"), "u-2") for _ in range(3)]
        assert len({answer.result() for answer in free}) == 3
        for answer in held:
            with pytest.raises(OperationalError):
                answer.result()
        assert len(line.rollbacks) == 1, "the lock was waited for once"
    assert line.write(adding("a")).result()
    assert (line.titles("u-1"), line.titles("u-2")) == (["a"], ["b"] * 3)


# Lookups, of a database server


class LookupLine(Line):
    """A store with two users who have approved and have a memory each; it counts what it is asked by."""

    def __init__(self, url):
        super().__init__(url)
        self.statements = heard = []

        class Listening(psycopg.Cursor):
            def execute(self, query, params=None, **options):
                heard.append(query)
                return super().execute(query, params, **options)

        event.listen(self.store.engine, "connect", lambda connection, _: _listen(connection, Listening))
        self.store.engine.dispose()  # those that are open already are not listened to
        self.memory_ids = {user: self.write(adding(user), user).result() for user in ("u-1", "u-2")}
        self.look("u-1").result()  # from now on its connection is there
        heard.clear()

    def look(self, user_id, memory_id=None, developer_id=None):
        found = memory_id or self.memory_ids[user_id]
        return self.store.lookups.submit(
            found, developer_id=developer_id or self.developer_id, epoch=0, user_id=user_id
        )

    @contextmanager
    def gathering(self, backend):
        """A block whose lookups wait until it ends, for one that is under way."""
        with self.holding_one(backend) as (first, _):
            yield
        assert first.result().title == "u-2"

    @contextmanager
    def holding_one(self, backend):
        """A block in which a lookup is under way, and a way to the database beside it."""
        other = create_engine(self.store.engine.url)
        with other.begin() as connection:
            connection.execute(text("LOCK TABLE memories IN ACCESS EXCLUSIVE MODE"))
            first = self.look("u-2")
            while not backend.is_somebody_waiting(other):
                pass
            yield first, connection
        other.dispose()


def _listen(connection, cursors):
    connection.cursor_factory = cursors


@pytest.fixture
def lookups(backend):
    if backend.name == "sqlite":
        pytest.skip("it answers at once, one by one")
    lookups = LookupLine(backend.new_database())
    with closing(lookups.store):
        yield lookups


def test_those_who_come_meanwhile_are_answered_by_one_statement(backend, lookups):
    with lookups.gathering(backend):
        answers = [lookups.look(user) for user in ("u-1", "u-2", "u-2", "u-1") * 5]
    assert [answer.result().title for answer in answers] == ["u-1", "u-2", "u-2", "u-1"] * 5
    assert len(lookups.statements) == 2


def test_each_is_found_behind_a_grant_of_its_own(backend, lookups):
    other = lookups.store.accounts.add_developer(
        name="Other", api_key_hash="c" * 64, client_id="o", client_secret_hash="d" * 64, redirect_uris=()
    )
    with lookups.gathering(backend):
        answers = [
            lookups.look("u-1"),
            lookups.look("u-1", memory_id=lookups.memory_ids["u-2"]),
            lookups.look("u-1", memory_id="unknown"),
            lookups.look("u-1", developer_id=other.id),
            lookups.look("u-1", developer_id="{}'\",\\ nobody"),
            lookups.look("u-2"),
        ]
    found = [answer.result() for answer in answers]
    assert [memory and memory.title for memory in found] == ["u-1", None, None, None, None, "u-2"]


@pytest.mark.parametrize("is_first", [True, False], ids=["before they came", "while they waited"])
def test_who_waits_when_a_grant_is_revoked_finds_nothing_of_that_user(backend, lookups, is_first):
    with lookups.gathering(backend):
        if is_first:
            lookups.store.requests.decide(lookups.requests["u-1"], "revoked")
        answers = [lookups.look("u-1"), lookups.look("u-2")]
        if not is_first:
            lookups.store.requests.decide(lookups.requests["u-1"], "revoked")
    assert answers[0].result() is None
    assert answers[1].result().title == "u-2"


def test_a_statement_that_is_cancelled_costs_nobody_who_did_not_share_it(backend, lookups):
    cancelled = text("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    with lookups.holding_one(backend) as (first, connection):
        answers = [lookups.look(user) for user in ("u-1", "u-2")]
        connection.execute(cancelled)
        with pytest.raises(OperationalError):
            first.result()
    assert [answer.result().title for answer in answers] == ["u-1", "u-2"]


def test_a_memory_that_cannot_be_read_costs_only_whoever_asked_for_it(backend, lookups):
    with lookups.store.engine.begin() as connection:
        connection.execute(text("UPDATE memories SET tags = 'no JSON' WHERE user_id = 'u-1'"))
    with lookups.gathering(backend):
        answers = [lookups.look("u-2"), lookups.look("u-1"), lookups.look("u-2")]
    with pytest.raises(DecodeError):
        answers[1].result()
    assert [answers[place].result().title for place in (0, 2)] == ["u-2", "u-2"]
