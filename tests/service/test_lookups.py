"""Memories that are looked for at the same time are found together, each behind its own grant."""

from contextlib import closing, contextmanager

import psycopg
import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.exc import OperationalError

from tests.service.test_writers import Line, adding


class Desk(Line):
    """A store with two users who have approved and have a memory each; it counts what it is asked by."""

    def __init__(self, url):
        super().__init__(url)
        self.statements = heard = []

        class Listening(psycopg.Cursor):
            def execute(self, query, params=None, **options):
                heard.append(query)
                return super().execute(query, params, **options)

        event.listen(self.store._engine, "connect", lambda connection, _: _listen(connection, Listening))
        self.store._engine.dispose()  # those that are open already are not listened to
        self.memory_ids = {user: self.write(adding(user), user).result() for user in ("u-1", "u-2")}
        self.look("u-1").result()  # from now on its connection is there
        heard.clear()

    def look(self, user_id, memory_id=None, developer_id=None):
        found = memory_id or self.memory_ids[user_id]
        return self.store.lookups.submit(
            found, developer_id=developer_id or self.developer_id, user_id=user_id
        )

    @contextmanager
    def gathering(self, backend):
        """A block whose lookups wait until it ends, for one that is under way."""
        other = create_engine(self.store._engine.url)
        with other.begin() as connection:
            connection.execute(text("LOCK TABLE memories IN ACCESS EXCLUSIVE MODE"))
            first = self.look("u-2")
            while not backend.is_somebody_waiting(other):
                pass
            yield
        assert first.result().title == "u-2"
        other.dispose()


def _listen(connection, cursors):
    connection.cursor_factory = cursors


@pytest.fixture
def desk(backend):
    if backend.name == "sqlite":
        pytest.skip("it answers at once, one by one")
    desk = Desk(backend.new_database())
    with closing(desk.store):
        yield desk


def test_those_who_come_meanwhile_are_answered_by_one_statement(backend, desk):
    with desk.gathering(backend):
        answers = [desk.look(user) for user in ("u-1", "u-2", "u-2", "u-1") * 5]
    assert [answer.result().title for answer in answers] == ["u-1", "u-2", "u-2", "u-1"] * 5
    assert len(desk.statements) == 2


def test_each_is_found_behind_a_grant_of_its_own(backend, desk):
    other = desk.store.accounts.add_developer(
        name="Other", api_key_hash="c" * 64, client_id="o", client_secret_hash="d" * 64, redirect_uris=()
    )
    with desk.gathering(backend):
        answers = [
            desk.look("u-1"),
            desk.look("u-1", memory_id=desk.memory_ids["u-2"]),
            desk.look("u-1", memory_id="unknown"),
            desk.look("u-1", developer_id=other.id),
            desk.look("u-1", developer_id="{}'\",\\ nobody"),
            desk.look("u-2"),
        ]
    found = [answer.result() for answer in answers]
    assert [memory and memory.title for memory in found] == ["u-1", None, None, None, None, "u-2"]


def test_whoever_approved_twice_and_took_one_back_is_still_open(desk):
    again = desk.store.requests.add(user_id="u-1", developer_id=desk.developer_id, reason="")
    desk.store.requests.decide(again.id, "approved")
    desk.store.requests.decide(desk.requests["u-1"], "revoked")
    assert desk.look("u-1").result().title == "u-1"


def test_whoever_comes_after_a_revocation_finds_nothing_of_that_user(backend, desk):
    with desk.gathering(backend):
        desk.store.requests.decide(desk.requests["u-1"], "revoked")
        answers = [desk.look("u-1"), desk.look("u-2")]
    assert answers[0].result() is None
    assert answers[1].result().title == "u-2"


def test_a_lost_connection_costs_those_who_were_waiting_and_nobody_else(desk):
    ended = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    with desk.store._engine.begin() as connection:
        connection.execute(ended)
    with pytest.raises(OperationalError):
        desk.look("u-1").result()
    assert desk.look("u-1").result().title == "u-1"
