"""No call reads a table, or more of one than it answers with: each statement of the API finds by an index.

What a service really sends to its database is listened to, and then explained.
"""

import re
import sqlite3
from contextlib import closing
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import event
from sqlalchemy.pool import Pool

from memframe.service.importing import import_memories
from memframe.service.store.schema import metadata
from tests.conftest import serving_tests
from tests.service.conftest import Caller, Grant

TABLES = set(metadata.tables)
EXPLAINED = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
OVERDUE = ("created_at", "expires_at", "deleted_at")
"""Rows that are over are found by the end of their time, and forgotten: all that are read are deleted."""


class SqlitePlans:
    """Listens to SQLite, and says which statements read more than they find."""

    def __init__(self):
        self.heard = []

    def listen(self, connection, _):
        connection.set_trace_callback(self.heard.append)

    def faults(self, engine):
        with closing(sqlite3.connect(engine.url.database)) as connection:
            steps = {
                (text, step)
                for text in self.heard
                if text.startswith(EXPLAINED)
                for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {text}")
            }
        return {(text, step) for text, step in steps if self._is_fault(step)}

    def _is_fault(self, step):
        kind, _, rest = step.partition(" ")
        if kind == "SCAN":
            return rest.split()[0] in TABLES
        return kind == "SEARCH" and "=?" not in rest and not any(f"({name}<?" in rest for name in OVERDUE)


class PostgresqlPlans:
    """The same of PostgreSQL, told to read all of a table, small as it is here, only where no index leads on."""

    def __init__(self):
        self.heard = heard = []

        class Listening(psycopg.Cursor):
            def execute(self, query, params=None, **options):
                heard.append((query, params))
                return super().execute(query, params, **options)

        self._cursors = Listening

    def listen(self, connection, _):
        connection.cursor_factory = self._cursors

    def faults(self, engine):
        address = engine.url.set(drivername="postgresql").render_as_string()
        with psycopg.connect(address) as connection:
            for way in ("seqscan", "mergejoin", "hashjoin"):
                connection.execute(f"SET enable_{way} = off")
            first_columns = dict(connection.execute(FIRST_COLUMNS).fetchall())
            plans = [
                (text, *connection.execute(f"EXPLAIN (FORMAT JSON) {text}", parameters).fetchone())
                for text, parameters in self.heard
                if text.startswith(EXPLAINED) and "pg_catalog" not in text
            ]
        return {
            (text, str(node))
            for text, (plan,) in plans
            for node in _nodes(plan["Plan"])
            if self._is_fault(node, first_columns)
        }

    def _is_fault(self, node, first_columns):
        if "Index Name" not in node:
            return node["Node Type"] == "Seq Scan"
        column = first_columns[node["Index Name"]]
        comparison = "<=?" if column in OVERDUE else "="
        known = rf"ROW\(\(?{column}\b|\b{column}\)?(::text)? {comparison} "
        return not re.search(known, node.get("Index Cond", ""))


FIRST_COLUMNS = """
SELECT name.relname, attname FROM pg_index JOIN pg_class AS name ON name.oid = indexrelid
JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
"""
"""Of each index: what has to be known of what is looked for."""


def _nodes(plan):
    yield {name: value for name, value in plan.items() if name != "Plans"}
    for below in plan.get("Plans", ()):
        yield from _nodes(below)


COUNTED = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"
STRANGERS = {
    "developers (id, name, api_key_hash, client_id, client_secret_hash, redirect_uris, disabled, created_at)":
        "'d-' || i, '', 'd-' || i, 'd-' || i, '', '[]', false, ''",
    "users (id, email, password_hash, key_version, disabled, created_at)":
        "'u-' || i, 'u-' || i, '', 1, false, ''",
    "connections (user_id, developer_id, memory_key_hash, created_at)":
        "'u-' || i, 'd-' || i, 'u-' || i, ''",
    "access_requests (id, developer_id, user_id, reason, status, created_at, updated_at)":
        "'r-' || i, 'd-' || i, 'u-' || i, '', 'approved', '', ''",
    "memories (id, user_id, content, tags, tag_ids, created_at, updated_at)":
        "'m-' || i, 'u-' || i, '', '[]', '[]', '', ''",
    "tags (id, user_id, name, color, description, is_enabled, created_at, updated_at)":
        "'t-' || i, 'u-' || i, '', '', '', true, '', ''",
}  # fmt: skip
"""Others in every table, with one row each."""


@pytest.fixture(scope="module")
def plans(backend):
    plans = {"sqlite": SqlitePlans, "postgresql": PostgresqlPlans}[backend.name]()
    event.listen(Pool, "connect", plans.listen)
    yield plans
    event.remove(Pool, "connect", plans.listen)


@pytest.fixture(scope="module")
def engine(backend, plans):
    """Of a service with many users, which one of them has asked for everything."""
    with serving_tests(backend.new_database()) as local:
        engine = local._deployment.store.engine
        with engine.begin() as connection:
            for table, values in STRANGERS.items():
                connection.exec_driver_sql(f"INSERT INTO {table} {COUNTED} SELECT {values} FROM n")  # noqa: S608 - our own words
        call = Caller(local.base_url, local.api_key)
        grant = Grant(local, call)
        texts = [{"content": f"{number}", "tags": ["tea", f"{number % 3}"]} for number in range(300)]
        import_memories(local._deployment, grant.user_id, texts)
        plans.heard.clear()
        ask_for_everything(grant, call)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("ANALYZE")
        yield engine


def ask_for_everything(grant, call):
    keyed = {"Idempotency-Key": uuid4().hex}
    memory_id = grant.call.post("/memory-blobs", {**grant.keys, "content": "tea"}, **keyed).json()["id"]
    cursor = grant.list().json()["next_cursor"]
    tag = call.get("/tags", user_id=grant.user_id).json()["items"][0]
    filters = ({}, {"tags": "tea"}, {"tags": "tea,1"}, {"importance": 0.5})
    answers = [
        *[grant.list(**chosen) for chosen in filters],
        *[grant.list(**chosen, searchQuery="4") for chosen in filters],
        grant.list(cursor=cursor),
        grant.patch(memory_id, title="Tea", content="green tea"),
        grant.patch(memory_id, tags=["tea", "green"]),
        call.get(f"/memory-blobs/{memory_id}", user_id=grant.user_id),
        call.get(f"/tags/{tag['id']}", user_id=grant.user_id),
        call.get("/access-requests"),
        call.get(f"/access-requests/{grant.request_id}/credentials"),
        grant.delete(memory_id),
    ]
    assert {answer.status_code for answer in answers} == {200}
    keyed = {"Idempotency-Key": uuid4().hex, "Restores": memory_id}
    restored = grant.call.post("/memory-blobs", {**grant.keys, "content": "tea"}, **keyed)
    assert (restored.status_code, restored.json()["id"]) == (201, memory_id)


def test_every_statement_finds_by_an_index(plans, engine):
    assert len(plans.heard) > 20
    assert plans.faults(engine) == set()


def test_a_missing_index_would_be_seen(plans, engine):
    (index,) = [each for each in metadata.tables["memories"].indexes if each.name == "memories_by_user"]
    index.drop(engine)
    try:
        assert plans.faults(engine)
    finally:
        index.create(engine)
