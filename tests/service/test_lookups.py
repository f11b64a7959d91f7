"""Memories that are looked for at the same time are found together, each behind its own grant."""

from contextlib import closing, contextmanager

import psycopg
import pytest
from msgspec import DecodeError
from sqlalchemy import create_engine, event, text
from sqlalchemy.exc import OperationalError

from tests.service.test_batching import Line, adding


class Desk(Line):
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


def test_a_lost_connection_is_replaced_and_nobody_is_told(backend, desk):
    backend.end_connections(desk.store.engine)
    assert [desk.look("u-1").result().title for _ in range(2)] == ["u-1"] * 2


def test_a_statement_that_is_cancelled_costs_nobody_who_did_not_share_it(backend, desk):
    cancelled = text("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    with desk.holding_one(backend) as (first, connection):
        answers = [desk.look(user) for user in ("u-1", "u-2")]
        connection.execute(cancelled)
        with pytest.raises(OperationalError):
            first.result()
    assert [answer.result().title for answer in answers] == ["u-1", "u-2"]


def test_a_memory_that_cannot_be_read_costs_only_whoever_asked_for_it(backend, desk):
    with desk.store.engine.begin() as connection:
        connection.execute(text("UPDATE memories SET tags = 'no JSON' WHERE user_id = 'u-1'"))
    with desk.gathering(backend):
        answers = [desk.look("u-2"), desk.look("u-1"), desk.look("u-2")]
    with pytest.raises(DecodeError):
        answers[1].result()
    assert [answers[place].result().title for place in (0, 2)] == ["u-2", "u-2"]


def test_whoever_was_waiting_when_a_grant_was_revoked_finds_nothing_of_that_user(backend, desk):
    with desk.gathering(backend):
        answers = [desk.look("u-1"), desk.look("u-2")]
        desk.store.requests.decide(desk.requests["u-1"], "revoked")
    assert answers[0].result() is None
    assert answers[1].result().title == "u-2"


def test_whoever_leaves_while_waiting_leaves_the_others_in_line(backend, desk):
    with desk.gathering(backend):
        answers = [desk.look("u-1"), desk.look("u-2"), desk.look("u-1")]
        assert answers[1].cancel()
    assert [answers[place].result().title for place in (0, 2)] == ["u-1", "u-1"]
