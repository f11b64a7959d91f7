"""Writes that come together go to the disk together, and each is answered for itself."""

from contextlib import closing, contextmanager
from threading import Event

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from memframe.errors import NotFoundError
from memframe.service.store import Store, batching, sqlite_url
from memframe.service.store.memories import MemoryFilter
from memframe.service.tokens import Bearer


class Line:
    """One thread that writes, for two users who have approved."""

    def __init__(self, url):
        self.store = Store(url)
        self.developer_id = self.store.accounts.add_developer(
            name="Notes", api_key_hash="a" * 64, client_id="c", client_secret_hash="b" * 64, redirect_uris=()
        ).id
        self.requests = {user_id: self._approved(user_id) for user_id in ("u-1", "u-2")}
        self.commits, self.rollbacks = [], []
        event.listen(self.store.engine, "commit", self.commits.append)
        event.listen(self.store.engine, "rollback", self.rollbacks.append)

    def _approved(self, user_id):
        accounts, pair = self.store.accounts, {"user_id": user_id, "developer_id": self.developer_id}
        accounts.add_user(user_id=user_id, email=f"{user_id}@a.example", password_hash="", wrapped_key=b"")
        accounts.connect(**pair, key_hash=lambda _: user_id)
        request = self.store.requests.add(**pair, reason="")
        return self.store.requests.decide(request.id, "approved").id

    def write(self, do, user_id="u-1"):
        return self.store.write(do, Bearer(self.developer_id, 0), user_id)

    def titles(self, user_id="u-1"):
        with self.store.owned(user_id) as mine:
            return [memory.title for _, memory in mine.page(MemoryFilter(user_id), after=0, limit=1000)[0]]

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
    with line.store.owned("u-1") as mine:
        assert [tag.name for tag in mine.tags.all()] == ["0", "1", "2", "tea"]


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
    with line.store.owned("u-1") as mine:
        assert [tag.name for tag in mine.tags.all()] == ["tea"]


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


def test_while_another_process_writes_all_wait_and_are_told_at_last(backend, line):
    with backend.holding_writes(line.store.engine, "u-1"):
        answers = [line.write(adding("a")) for _ in range(3)]
        for answer in answers:
            with pytest.raises(OperationalError):
                answer.result()
    assert line.write(adding("a")).result()
    assert line.titles() == ["a"]
