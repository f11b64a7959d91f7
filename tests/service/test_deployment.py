"""The data folder: private, kept over restarts, tied to its key, and without a secret in the open."""

import base64
import json
import logging
import re
import socket
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import requests
from sqlalchemy import Engine, create_engine, event, insert, make_url, text
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.exc import DBAPIError

from memframe.errors import ConfigError
from memframe.service import run_local
from memframe.service.deployment import DATABASE_FILE, open_deployment
from memframe.service.keys import MASTER_KEY_FILE, MasterKey, is_open_to_others
from memframe.service.local import serving_in_thread
from memframe.service.logs import JsonLines
from memframe.service.server import listen
from memframe.service.store.engine import open_engine, sqlite_url, writing
from memframe.service.store.memories import Memories
from memframe.service.store.schema import memories
from tests.conftest import CHEAP_HASHER
from tests.pages.conftest import Browser
from tests.service.conftest import Caller, Grant


@pytest.mark.asvs("13.3.1", "13.3.2")
def test_new_files_and_folders_are_closed_to_others_wherever_they_are(tmp_path):
    folder, elsewhere = tmp_path / "a" / "data", tmp_path / "elsewhere"
    open_deployment(folder).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    elsewhere.mkdir(mode=0o755)
    deployment = open_deployment(tmp_path / "data", database_url=sqlite_url(elsewhere / "notes.db"))
    with closing(deployment):
        deployment.add_developer("Notes")
        files = [*folder.iterdir(), *elsewhere.iterdir()]
        assert {file.name: stat.S_IMODE(file.stat().st_mode) for file in files} == dict.fromkeys(
            [MASTER_KEY_FILE, DATABASE_FILE, "notes.db", "notes.db-wal", "notes.db-shm"], 0o600
        )


def test_what_is_deleted_is_overwritten_whatever_sqlite_does_by_itself(tmp_path):
    @event.listens_for(Engine, "connect")
    def as_most_builds(connection, record):
        connection.execute("PRAGMA secure_delete=OFF")

    with run_local(tmp_path, password_hasher=CHEAP_HASHER) as local:
        grant = Grant(local, Caller(local.base_url, local.api_key))
        ids = [grant.create(title=f"her diary, page {n}")["id"] for n in range(50)]
        for memory_id in ids[:-1]:
            grant.delete(memory_id)
    event.remove(Engine, "connect", as_most_builds)
    assert (tmp_path / DATABASE_FILE).read_bytes().count(b"her diary, page") == 1


def test_an_empty_folder_is_closed_and_a_full_one_refused(tmp_path):
    empty, full = tmp_path / "empty", tmp_path / "full"
    for folder in (empty, full):
        folder.mkdir(mode=0o755)
    (full / "letter.txt").write_text("dear")
    open_deployment(empty).close()
    assert stat.S_IMODE(empty.stat().st_mode) == 0o700
    for place, said in ((full, "chmod 700"), (full / "letter.txt", "cannot be used")):
        with pytest.raises(ConfigError, match=said):
            open_deployment(place)
    assert is_open_to_others(full, system="posix")
    assert not is_open_to_others(full, system="nt"), "where mode bits mean nothing"


@pytest.mark.asvs("13.3.2")
def test_a_master_key_file_that_others_can_read_or_that_is_damaged_is_refused(tmp_path):
    open_deployment(tmp_path).close()
    file = tmp_path / MASTER_KEY_FILE
    file.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        open_deployment(tmp_path)
    assert not (tmp_path / f"{DATABASE_FILE}-wal").exists()  # the store was closed
    file.chmod(0o600)
    for damage in (b"", b"\xff\xfe", b"0f0f"):
        file.write_bytes(damage)
        with pytest.raises(ConfigError, match="master key"):
            open_deployment(tmp_path)


def test_data_whose_key_is_gone_is_refused_and_stays_as_it_was(tmp_path):
    open_deployment(tmp_path).close()
    key = (tmp_path / MASTER_KEY_FILE).read_text()
    (tmp_path / MASTER_KEY_FILE).unlink()
    with pytest.raises(ConfigError, match=r"master key file .*master\.key is missing; restore it"):
        open_deployment(tmp_path)
    assert not (tmp_path / MASTER_KEY_FILE).exists()
    MasterKey.generate().save(tmp_path / MASTER_KEY_FILE)
    with pytest.raises(ConfigError, match="belongs to another master key"):
        open_deployment(tmp_path)
    (tmp_path / MASTER_KEY_FILE).write_text(key)
    open_deployment(tmp_path).close()


def test_of_many_who_start_at_the_same_moment_all_have_one_key(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        deployments = list(pool.map(lambda _: open_deployment(tmp_path), range(16)))
    assert len({deployment.master_key.fingerprint() for deployment in deployments}) == 1
    for deployment in deployments:
        deployment.close()
    assert {file.name for file in tmp_path.iterdir()} == {MASTER_KEY_FILE, DATABASE_FILE}


def test_a_database_that_cannot_be_opened_is_named_without_its_password(tmp_path, monkeypatch):
    class Other(SQLiteDialect_pysqlite):
        name = "other"

    monkeypatch.setitem(registry.impls, "other", lambda: Other)
    at_socket = r"the database postgresql\+psycopg://me@/x\?host=.* cannot be opened"
    hidden = r"\*\*\*.* cannot be opened or used"
    (tmp_path / "letter").write_text(
        "this is a letter, not a database, and it is long enough to look at" * 20
    )
    for url, said in {
        f"sqlite:///{tmp_path / 'letter'}": "letter cannot be opened", "nonsense": "database",
        "mysterydb://x": "database", "sqlite:////no/such/folder/x.db": "database",
        "other:///x.db": "in SQLite or PostgreSQL, not in other", f"postgres://me@/x?host={tmp_path}": at_socket,
        f"postgresql://me@/x?host={tmp_path}": at_socket, f"postgresql+psycopg://me@/x?host={tmp_path}": at_socket,
        "postgresql+psycopg://u:hunter2@localhost:1/db": hidden,
        "postgresql+psycopg://u@localhost:1/db?password=hunter2&sslpassword=hunter2": hidden,
    }.items():  # fmt: skip
        with pytest.raises(ConfigError, match=said) as refusal:
            open_deployment(tmp_path, database_url=url)
        assert "hunter2" not in str(refusal.value)


def test_a_silent_network_is_not_waited_for_longer_than_the_address_says(backend):
    if backend.name == "sqlite":
        pytest.skip("a file needs no network")
    address = backend.new_database()
    for own, waited in (("", {"connect_timeout": "10"}), ("&connect_timeout=7", {"connect_timeout": "7"})):
        engine = open_engine(address + own)
        with engine.connect() as connection:
            parameters = connection.connection.driver_connection.info.get_parameters()
        engine.dispose()
        assert parameters.items() >= {**waited, "tcp_user_timeout": "10000"}.items()


def test_a_temporary_service_leaves_nothing_behind():
    with run_local() as local:
        folder = Path(local._deployment.store.engine.url.database).parent
        assert folder.exists()
        url = local.auth_url
    assert not folder.exists()
    with pytest.raises(requests.ConnectionError):
        requests.get(url, timeout=1)


def test_a_taken_port_is_named_and_small_answers_are_not_held_back(service):
    port = int(service.auth_url.rpartition(":")[2])
    with pytest.raises(ConfigError, match=f"port {port} cannot be used"), run_local(port=port):
        pass
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP  # what asyncio asks before it turns Nagle's delay off


class BrokenServer:
    """What uvicorn's server is to a thread that runs it, and then is not."""

    def __init__(self, *, starts):
        self.started, self.should_exit, self._starts = False, False, starts

    def run(self, _):
        self.started = self._starts
        raise RuntimeError("the event loop is broken")


@pytest.mark.parametrize(("starts", "what"), [(False, "did not start"), (True, "has stopped unexpectedly")])
def test_what_ends_the_servers_thread_is_named(starts, what):
    with (
        pytest.raises(ConfigError, match=f"the service {what}: RuntimeError: the event loop is broken"),
        serving_in_thread(BrokenServer(starts=starts), None),
    ):
        assert starts


def test_a_local_service_shows_no_secret(service):
    shown = repr(service) + str(service)
    assert service.base_url in shown
    assert service.api_key not in shown
    assert service.client_secret not in shown


def spellings(secret):
    """Raw, hexadecimal and base64 (in its three alignments)."""
    raw = secret.encode()
    yield raw
    yield raw.hex().encode()
    for shift in range(3):
        text = base64.b64encode(b"\0" * shift + raw)
        yield text[4 if shift else 0 : -4]


@pytest.mark.asvs("13.3.1", "16.2.5")
@pytest.mark.rfc("6749 10.3a", "9700 4.9a")
def test_no_secret_and_no_plaintext_is_in_the_data_or_the_logs(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    password, content = "a long password", "Her cat is called Schroedinger, and lives"
    with run_local(tmp_path, password_hasher=CHEAP_HASHER) as local:
        grant = Grant(local, Caller(local.base_url, local.api_key))
        memory_id = grant.create(content)["id"]
        grant.patch(memory_id, content=content + " happily")
        grant.list(searchQuery="Schroedinger")
        browser = Browser(local)
        browser.sign_in(grant.email, password)
        code = browser.consent(redirect_uri=local.redirect_uri)["code"]
        tokens = browser.exchange(code, redirect_uri=local.redirect_uri).json()
        secrets = [
            password, content, local.api_key, local.client_secret, grant.call.token, grant.memory_key,
            grant.memory_key.removeprefix("mk_"), grant.credentials()["encryption_key"],
            (tmp_path / MASTER_KEY_FILE).read_text().strip(), browser.session.cookies["memframe"], code,
            tokens["access_token"], tokens["refresh_token"],
        ]  # fmt: skip
        stored = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.name != MASTER_KEY_FILE}
    stored["after the end"] = (tmp_path / DATABASE_FILE).read_bytes()
    stored["logs"] = caplog.text.encode()
    binary = [bytes.fromhex(secret) for secret in secrets if re.fullmatch("[0-9a-f]{64}", secret)]
    needles = [spelling for secret in secrets for spelling in spellings(secret)] + binary
    assert any(memory_id.encode() in data for data in stored.values())
    found = [(name, needle) for name, data in stored.items() for needle in needles if needle in data]
    assert found == []


@pytest.mark.asvs("13.4.2", "16.3.4", "16.5.1")
@pytest.mark.rfc("9457 5a")
def test_a_fault_is_logged_by_its_place_and_answered_without_its_words(grant, refused, caplog, monkeypatch):
    def fail(memories, content):
        raise RuntimeError(f"INSERT of {content} failed")

    monkeypatch.setattr(Memories, "seal", fail)
    answer = grant.call.post("/memory-blobs", {**grant.keys, "content": "Likes tea"})
    refused(answer, 500, "internal_error")
    assert "RuntimeError in POST /api/v1/memory-blobs" in caplog.text
    assert "Likes tea" not in caplog.text + answer.text


@pytest.mark.asvs("16.4.1")
def test_what_is_logged_as_json_stays_one_line():
    forged = 'lost\r\n{"event":"signed in"}\u2028\x1b[31m'
    record = logging.LogRecord("memframe", logging.INFO, "", 0, forged, None, None)
    record.fields = {"path": forged}
    line = JsonLines().format(record)
    assert len(line.encode().splitlines()) == 1
    assert "\x1b" not in line
    assert [json.loads(line)[name] for name in ("message", "path")] == [forged] * 2


def test_an_error_of_sqlite_does_not_quote_what_was_to_be_stored(tmp_path):
    engine = open_engine(sqlite_url(tmp_path / "service.db"))
    with pytest.raises(DBAPIError) as failure, writing(engine) as connection:
        connection.execute(insert(memories).values(id="x", content="Likes tea"))
    engine.dispose()
    assert "NOT NULL" in str(failure.value)
    assert "Likes tea" not in str(failure.value)


@pytest.mark.asvs("16.5.2", "16.5.3")
def test_a_locked_database_is_answered_with_come_again(backend, service, grant, refused, monkeypatch):
    monkeypatch.setattr(backend.lock_timeout, 1)
    engine = service._deployment.store.engine
    engine.dispose()  # new connections do not wait
    with backend.holding_writes(engine, grant.user_id):
        answer = grant.call.post("/memory-blobs", {**grant.keys, "content": "x"})
    engine.dispose()
    refused(answer, 503, "database_unavailable")
    assert answer.headers["retry-after"] == "1"
    assert grant.ids() == []


def test_reads_answer_while_a_write_waits_for_another_process(backend, service, grant):
    engine = service._deployment.store.engine
    engine.dispose()  # connections of the test before do not wait
    with ThreadPoolExecutor(1) as pool:
        with backend.holding_writes(engine, grant.user_id):
            waiting = pool.submit(grant.create)
            while not (backend.is_somebody_waiting(engine) or waiting.done()):
                pass
            for path in ("/tags", "/access-requests"):
                assert grant.call("GET", path, params={"user_id": grant.user_id}, timeout=5).ok
            assert not waiting.done()
        waiting.result()
    assert grant.ids() == [waiting.result()["id"]]


def test_a_database_that_cannot_keep_every_text_is_refused(tmp_path, postgres, monkeypatch):
    address = make_url(postgres.new_database())
    beside = create_engine(address.set(database="postgres"), isolation_level="AUTOCOMMIT")
    kept = "LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    with beside.connect() as connection:
        for encoding in ("LATIN1", "SQL_ASCII"):
            connection.execute(text(f"CREATE DATABASE is_{encoding} ENCODING '{encoding}' {kept}"))
            url = address.set(database=f"is_{encoding.lower()}").render_as_string(hide_password=False)
            with pytest.raises(ConfigError, match=f"is in the encoding {encoding}, .* UTF8") as refusal:
                open_deployment(tmp_path, database_url=url)
        command = "CREATE DATABASE" + str(refusal.value).partition("CREATE DATABASE")[2]
        connection.execute(text(command))
    beside.dispose()
    monkeypatch.setenv("PGCLIENTENCODING", "latin1")
    url = address.set(database="memframe_utf8").render_as_string(hide_password=False)
    url += "&client_encoding=latin1"
    with run_local(tmp_path, database=url, password_hasher=CHEAP_HASHER) as local:
        grant = Grant(local, Caller(local.base_url, local.api_key))
        grant.create(title="зелёный 茶 🍵")
        assert grant.list().json()["memoryBlobs"][0]["title"] == "зелёный 茶 🍵"
