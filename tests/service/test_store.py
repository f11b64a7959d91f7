"""The database keeps what it was told, decides races once, and refuses data that is not its own."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, select
from sqlalchemy.exc import IntegrityError

from memframe.errors import ConfigError, ConflictError
from memframe.secret import Secret
from memframe.service.deployment import open_deployment
from memframe.service.keys import MASTER_KEY_FILE, MasterKey
from memframe.service.store import Store, migrations
from memframe.service.store.accounts import UserToken
from memframe.service.store.engine import open_engine, sqlite_url
from memframe.service.store.listing import MemoryFilter
from memframe.service.store.memories import IdempotentRequest, Memories
from memframe.service.store.schema import REVISION, idempotency_keys, metadata
from memframe.service.tokens import Bearer, secret_hash
from tests.pages.conftest import SetClock

FORMER = Path(__file__).with_name("former")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def clock():
    return SetClock()


@pytest.fixture
def store(backend, tmp_path, clock):
    url = backend.new_database() or sqlite_url(tmp_path / "service.db")
    store = Store(open_engine(url), MasterKey.generate(), now=clock)
    yield store
    store.close()


@pytest.fixture
def developer(store):
    return store.accounts.add_developer(
        name="Notes",
        api_key_hash="a" * 64,
        client_id="mfc_1",
        client_secret_hash="b" * 64,
        redirect_uris=("http://127.0.0.1/callback",),
    )


@pytest.fixture
def user(store):
    return store.accounts.add_user(
        id="u-1", email="Ada@Example.org", password_hash="-", wrapped_key=b"wrapped"
    )


@pytest.fixture
def request_id(store, developer, user):
    store.accounts.connect(user_id=user.id, developer_id=developer.id, key_hash=lambda _: "c" * 64)
    return store.requests.add(developer_id=developer.id, user_id=user.id, reason="why").id


@pytest.mark.asvs("2.3.1", "2.3.4")
def test_of_approve_and_reject_at_the_same_moment_one_wins(store, developer, user, request_id):
    def decide(status):
        try:
            return store.requests.decide(request_id, status).status
        except ConflictError:
            return None

    with ThreadPoolExecutor(8) as pool:
        outcomes = [won for won in pool.map(decide, ["approved", "rejected"] * 8) if won]
    assert outcomes == [store.requests.get(request_id).status]


@pytest.fixture
def add_code(store, clock, developer, user):
    """Add an authorization code that ends in a minute."""

    def add(name):
        store.authorizations.add_code(
            code_hash=name * 64,
            developer_id=developer.id,
            user_id=user.id,
            redirect_uri=None,
            code_challenge=None,
            expires_at=clock() + timedelta(seconds=60),
        )
        return store.authorizations.code(code_hash=name * 64)

    return add


def token_of(code, token_hash):
    return UserToken(
        token_hash, "refresh", code.id, code.developer_id, code.user_id, NOON + timedelta(days=30)
    )


def test_a_code_whose_tokens_cannot_be_noted_stays_unused(store, add_code):
    code = add_code("a")
    with pytest.raises(IntegrityError):
        store.authorizations.redeem(code, (token_of(code, None),))
    assert store.authorizations.redeem(code, (token_of(code, "1" * 64),))


def test_codes_and_tokens_that_are_over_are_forgotten_when_a_new_code_is_made(store, clock, add_code):
    used = add_code("a")
    token = token_of(used, "1" * 64)
    assert store.authorizations.redeem(used, (token,))
    add_code("b")
    clock.advance(minutes=11)
    add_code("c")
    kept = [store.authorizations.code(code_hash=name * 64) is not None for name in "abc"]
    assert kept == [True, False, True], "a code lives while a token of it does, so that a replay is seen"
    clock.advance(days=30)
    add_code("d")
    assert store.authorizations.token(token.token_hash) is None
    assert store.authorizations.code(code_hash="a" * 64) is None


def test_a_user_connected_twice_at_the_same_moment_is_connected_once(store, developer, user):
    pair = {"user_id": user.id, "developer_id": developer.id}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: store.accounts.connect(**pair, key_hash=lambda _: "c" * 64), range(16)))
    assert store.accounts.connected_user(developer_id=developer.id, memory_key_hash="c" * 64) == user.id


def test_of_many_writers_in_one_process_none_waits_for_the_lock_in_vain(store, developer, user, monkeypatch):
    monkeypatch.setattr("memframe.service.store.engine.BUSY_TIMEOUT_MS", 0)
    pair = {"user_id": user.id, "developer_id": developer.id}
    store.accounts.connect(**pair, key_hash=lambda _: "c" * 64)
    with ThreadPoolExecutor(16) as pool:
        added = list(pool.map(lambda n: store.requests.add(**pair, reason=str(n)), range(64)))
    assert store.requests.page("pending", user_id=user.id, behind=None, limit=1)[1] == len(added) == 64


def restore(url, version=2):
    """Make a database as the memframe of an earlier schema wrote it: see ``former``."""
    engine = create_engine(url)
    script = (FORMER / f"schema_{version}_{engine.dialect.name}.sql").read_text()
    with engine.begin() as connection:
        driver = connection.connection.driver_connection
        (driver.executescript if engine.dialect.name == "sqlite" else driver.execute)(script)
    engine.dispose()


def test_data_of_an_earlier_schema_is_upgraded(backend, tmp_path):
    url = backend.new_database() or sqlite_url(tmp_path / "memframe.db")
    restore(url)
    tmp_path.chmod(0o700)
    MasterKey(Secret("0f" * 32)).save(tmp_path / MASTER_KEY_FILE)
    for _ in range(2):
        with closing(open_deployment(tmp_path, database_url=url)) as deployment:
            assert differences(deployment.store.engine) == []
            ada, _ = sorted(deployment.store.accounts.users(), key=lambda user: user.email)
            assert not ada.must_change_password
            with deployment.store.transaction_of(ada.id) as mine:
                page = mine.page(MemoryFilter(ada.id), limit=10)
                assert mine.open_contents(page.memory_blobs) == ["Likes tea", "Lives in Oslo"]
                assert [tag.name for tag in mine.all_tags()] == ["drinks", "home", "stamps"]
            (developer,) = deployment.store.accounts.developers()
            assert (developer.api_key_hash, developer.token_epoch) == (secret_hash(Secret("mfk_former")), 0)
            assert deployment.store.authorizations.token(secret_hash(Secret("mfr_former")))


def test_idempotency_keys_of_schema_5_get_the_user_of_their_memory(backend, tmp_path):
    url = backend.new_database() or sqlite_url(tmp_path / "memframe.db")
    restore(url, 5)
    tmp_path.chmod(0o700)
    MasterKey(Secret("0f" * 32)).save(tmp_path / MASTER_KEY_FILE)
    written = datetime(2026, 11, 24, 3, tzinfo=UTC)  # keys are kept for a day, and the file is of this one
    with closing(open_deployment(tmp_path, database_url=url, now=lambda: written)) as deployment:
        store = deployment.store
        assert differences(store.engine) == []
        (ada,), (developer,) = store.accounts.users(), store.accounts.developers()
        with store.engine.connect() as connection:
            keys = connection.execute(select(idempotency_keys).order_by(idempotency_keys.c.key_hash)).all()
        assert [(key.user_id, bool(key.memory_id)) for key in keys] == [
            (ada.id, True),
            (ada.id, True),  # of a memory that can be restored
            (None, False),
        ]
        for number in range(3):  # a key that was used is used, whatever became of its memory
            request = IdempotentRequest(f"{number}" * 64, "b" * 64)
            create = partial(Memories.create, content="tea", fields={}, tag_names=(), request=request)
            repeated = store.write(create, Bearer(developer.id, 0), ada.id)
            if number:
                with pytest.raises(ConflictError, match="was deleted since"):
                    repeated.result()
            else:
                assert not repeated.result()[1]
        deployment.erase_user(ada.id)
        with store.engine.connect() as connection:
            (left,) = connection.execute(select(idempotency_keys)).all()
        assert (left.user_id, left.memory_id) == (None, "")


def differences(engine):
    """What alembic would change to make the tables those of `schema`."""
    with engine.connect() as connection:
        return compare_metadata(MigrationContext.configure(connection), metadata)


def test_a_new_database_is_as_the_scripts_would_make_it(store):
    assert differences(store.engine) == []
    scripts = sorted(Path(migrations.__file__).parent.glob("versions/schema_*.py"))
    assert scripts[-1].stem == f"schema_{REVISION}"


def test_of_processes_that_upgrade_at_the_same_moment_one_does(backend, tmp_path):
    url = backend.new_database() or sqlite_url(tmp_path / "service.db")
    restore(url)
    with ThreadPoolExecutor(4) as pool:
        for engine in pool.map(lambda _: open_engine(url), range(4)):
            assert differences(engine) == []
            engine.dispose()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            "UPDATE alembic_version SET version_num = '0099'",
            rf"version 99; this memframe reads 2, 5(, \d)* and {int(REVISION)};",
        ),
        ("DROP TABLE alembic_version; UPDATE meta SET value = '1'", "version 1;"),
    ],
    ids=["newer", "oldest"],
)
def test_data_of_an_unknown_schema_is_refused(tmp_path, change, said):
    path = tmp_path / "service.db"
    open_engine(sqlite_url(path)).dispose()
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute("SELECT value FROM meta").fetchone() == ("4",), "former versions refuse it"
        connection.executescript(change)
    with pytest.raises(ConfigError, match=said):
        open_engine(sqlite_url(path))


def test_sqlite_sees_every_commit_through_to_the_disk(tmp_path):
    engine = open_engine(sqlite_url(tmp_path / "service.db"))
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
    engine.dispose()
