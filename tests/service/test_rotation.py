"""A new encryption key: content, credentials and writes follow at once, and nothing is lost on the way."""

import base64
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import update

from memframe.cli import main
from memframe.envelope.detect import Rekeying
from memframe.errors import ConfigError, NotFoundError
from memframe.secret import Secret
from memframe.service import run_local
from memframe.service.deployment import open_deployment
from memframe.service.keys import MasterKey
from memframe.service.store.engine import writing
from memframe.service.store.listing import MemoryFilter
from memframe.service.store.schema import memories
from memframe.service.tokens import Bearer
from tests.conftest import CHEAP_HASHER
from tests.service.conftest import Caller, Grant


def contents(grant):
    return [memory["content"] for memory in grant.list(limit=100).json()["memoryBlobs"]]


def rotate(folder, database=None):
    where = ["--data", str(folder)] + (["--database", database] if database else [])
    return CliRunner().invoke(main, ["service", "rotate-master-key", "--json", *where])


@pytest.mark.asvs("11.2.2")
def test_a_new_master_key_changes_nothing_that_applications_hold(backend, tmp_path):
    database, repeated = backend.new_database(), {"Idempotency-Key": "once"}
    with run_local(tmp_path, database=database, password_hasher=CHEAP_HASHER) as local:
        grant = Grant(local, Caller(local.base_url, local.api_key))
        local.rotate_key(grant.user_id)
        body = {**grant.keys, "content": "Plays the cello"}
        kept = grant.call.post("/memory-blobs", body, **repeated).json()
        gone = grant.create("Likes tea", title="Tea")
        grant.delete(gone["id"])
        before, api_key = grant.credentials(), local.api_key
        with pytest.MonkeyPatch.context() as impatient:
            impatient.setattr("memframe.service.store.engine.SESSION_END_POLLS", 1)
            refused = rotate(tmp_path, database)
        assert refused.exit_code == 1
        assert "the database is in use; stop the service" in refused.stderr
        assert grant.ids(searchQuery="cello") == [kept["id"]], "and it goes on"
    old = (tmp_path / "master.key").read_text()
    for _ in range(2):
        rotated = rotate(tmp_path, database)
        assert rotated.exit_code == 0, rotated.output
        assert json.loads(rotated.stdout) == {"n_keys": 2, "master_key_file": str(tmp_path / "master.key")}
    assert (tmp_path / "master.key").read_text() != old
    assert old in [file.read_text() for file in tmp_path.glob("master.key.*.old")]
    assert not (tmp_path / "master.key.next").exists()
    with run_local(tmp_path, database=database, password_hasher=CHEAP_HASHER) as local:
        call = grant.call = Caller(local.base_url, api_key)
        assert grant.credentials() == before, "memory key and encryption key"
        assert call.post("/memory-blobs", body, **repeated).json() == kept, "not created twice"
        restoring = {**grant.keys, "content": "Likes tea", "title": "Tea"}
        restored = call.post("/memory-blobs", restoring, Restores=gone["id"]).json()
        assert {**restored, "content": ""} == {**gone, "content": ""}, "the id and all times"
        assert grant.ids(searchQuery="cello") == [kept["id"]]
        assert local.rotate_key(grant.user_id) == 3


KILLED_AT = """
import os, sys
from memframe.cli import main
import memframe.cli.service  # which the command would import each time
folder, seen = sys.argv[1], 0
def rotate(number):
    def count(event, arguments):
        global seen
        if event in {"open", "os.rename", "os.link", "os.remove"} and "master.key" in str(arguments[:2]):
            seen += 1
            if seen == number:
                os._exit(99)
    sys.addaudithook(count)
    main(["service", "rotate-master-key", "--data", folder, "--json"])
for line in sys.stdin:  # a process for each rotation, of one that has imported all
    child = os.fork()
    if not child:
        os.dup2(2, 1)
        rotate(int(line))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_a_rotation_of_the_master_key_that_is_killed_at_any_step_leaves_a_service_that_opens(tmp_path):
    with run_local(tmp_path, password_hasher=CHEAP_HASHER) as local:
        grant = Grant(local, Caller(local.base_url, local.api_key))
        expected, fingerprints = grant.credentials(), set()
    command = [sys.executable, "-c", KILLED_AT, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, **pipes) as rotating:
        number = rotate_until_done(rotating, tmp_path, grant, expected, fingerprints)
    assert number > 8
    assert 2 < len(fingerprints) < number, "some were broken off before the database changed, some after"


def rotate_until_done(rotating, tmp_path, grant, expected, fingerprints):
    """Kill rotations ever later, until one gets through; its number."""
    for number in range(1, 100):
        print(number, file=rotating.stdin, flush=True)
        status = int(rotating.stdout.readline())
        assert status in {0, 99}
        with closing(open_deployment(tmp_path)) as deployment:
            fingerprints.add(deployment.master_key.fingerprint())
            with deployment.store.transaction_of(grant.user_id) as memories:
                key = memories.key.key
            assert key.reveal() == expected["encryption_key"]
        assert MasterKey.load(tmp_path / "master.key").fingerprint() in fingerprints
        if status == 0:
            return number
    pytest.fail("no rotation got through")


def test_a_process_with_the_old_master_key_gets_no_new_connection(backend, tmp_path):
    database = backend.new_database()
    with closing(open_deployment(tmp_path, database_url=database)) as before:
        before.store.engine.dispose()
        assert rotate(tmp_path, database).exit_code == 0
        with pytest.raises(ConfigError, match="another master key"), before.store.naming_errors():
            before.add_user("ada@example.org", Secret("a long password"))


@pytest.mark.asvs("11.2.2")
def test_credentials_and_content_are_of_the_new_key_at_once(service, grant):
    grant.create("Likes tea", title="Tea", tags=["drinks"])
    grant.create("Plays the cello")
    before, old = grant.list().json()["memoryBlobs"], grant.credentials()
    old_envelope = grant.envelope()
    assert service.rotate_key(grant.user_id) == 2
    new, after = grant.credentials(), grant.list().json()["memoryBlobs"]
    assert new["key_version"] == 2
    assert new["encryption_key"] != old["encryption_key"]
    assert new["memory_key"] == old["memory_key"]
    assert list(map(grant.envelope().open, contents(grant))) == ["Likes tea", "Plays the cello"]
    assert old_envelope.open_many(contents(grant)).plain == [None, None]
    for memory in (*before, *after):
        memory.pop("content")
    assert after == before, "nothing but the sealing has changed"
    assert grant.ids(searchQuery="cello") == [before[1]["id"]]


def test_sealed_writes_keep_their_layout_and_spelling(service, grant):
    for iv_bytes in (12, 16):
        for sealed in grant.seal_by_hand("Plays the cello", iv_bytes):
            grant.create(sealed)
    before = contents(grant)
    service.rotate_key(grant.user_id)
    after = contents(grant)
    key = AESGCM(bytes.fromhex(grant.credentials()["encryption_key"]))
    for iv_bytes, joined, parted in ((12, *after[:2]), (16, *after[2:])):
        raw = base64.b64decode(joined)
        assert key.decrypt(raw[:iv_bytes], raw[iv_bytes:], None) == b"Plays the cello"
        iv, tag, data = (bytes.fromhex(part) for part in parted.split(":"))
        assert len(iv) == iv_bytes
        assert key.decrypt(iv, data + tag, None) == b"Plays the cello"
    assert list(map(len, after)) == list(map(len, before))


def test_writes_sealed_with_an_older_key_are_refused(service, grant, refused):
    stale = [grant.envelope().seal("Likes tea"), *grant.seal_by_hand("Likes tea", 12)]
    memory_id = grant.create("Likes coffee")["id"]
    service.rotate_key(grant.user_id)
    service.rotate_key(grant.user_id)
    before = contents(grant)
    for content in stale:
        create = grant.call.post("/memory-blobs", {**grant.keys, "content": content})
        refused(create, 409, "key_version_changed")
        assert "version 1 of the user's key" in create.json()["detail"]
        refused(grant.patch(memory_id, content=content), 409, "key_version_changed")
    assert contents(grant) == before
    sealed = grant.envelope().seal("Likes tea")
    grant.create(sealed)
    assert contents(grant)[1] == sealed


def test_a_create_repeated_after_the_rotation_is_answered_as_the_first_time(service, grant, refused):
    body = {**grant.keys, "content": grant.envelope().seal("Likes tea")}
    first = grant.call.post("/memory-blobs", body, **{"Idempotency-Key": "arrived"})
    service.rotate_key(grant.user_id)
    again = grant.call.post("/memory-blobs", body, **{"Idempotency-Key": "arrived"})
    assert (again.status_code, again.json()) == (201, first.json())
    for _ in range(2):  # one that had not arrived is refused, and refused again
        late = grant.call.post("/memory-blobs", body, **{"Idempotency-Key": "late"})
        refused(late, 409, "key_version_changed")
    assert len(contents(grant)) == 1


def test_what_the_old_key_does_not_open_stays_and_is_counted(service, grant):
    damaged, _ = grant.create("Likes tea")["id"], grant.create("Likes tea")
    with writing(service._deployment.store.engine) as connection:
        connection.execute(update(memories).where(memories.c.id == damaged).values(content="mf1.1.AAAA"))
    rotation = service._deployment.rotate_key(grant.user_id)
    assert (rotation.key_version, rotation.n_sealed, rotation.n_unreadable) == (2, 1, 1)
    assert contents(grant)[0] == "mf1.1.AAAA"
    assert contents(grant)[1].startswith("mf1.2.")


def test_a_rotation_goes_on_over_many_batches_of_one_user(service, call, grant, monkeypatch):
    other = Grant(service, call)
    other.create("Likes tea")
    before = (other.credentials(), contents(other))
    monkeypatch.setattr("memframe.service.store.memories.MEMORIES_PER_QUERY", 2)
    for number in range(5):
        grant.create(f"memory {number}")
    assert service._deployment.rotate_key(grant.user_id).n_sealed == 5
    opened = grant.envelope().open_many(contents(grant)).plain
    assert opened == [f"memory {number}".encode() for number in range(5)]
    assert (other.credentials(), contents(other)) == before
    with pytest.raises(NotFoundError, match="no user nobody"):
        service.rotate_key("nobody")


@pytest.mark.asvs("2.3.3")
def test_a_rotation_that_is_broken_off_has_not_happened(service, grant, monkeypatch):
    for number in range(4):
        grant.create(f"memory {number}")
    before = (grant.credentials(), contents(grant))
    monkeypatch.setattr("memframe.service.store.memories.MEMORIES_PER_QUERY", 2)
    reseal, seen = Rekeying.reseal, []

    def fail_at_the_third(self, sealed):
        seen.append(sealed)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return reseal(self, sealed)

    monkeypatch.setattr(Rekeying, "reseal", fail_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        service._deployment.rotate_key(grant.user_id)
    assert (grant.credentials(), contents(grant)) == before


def test_writes_during_rotations_are_sealed_with_the_key_that_holds(service, grant):
    with ThreadPoolExecutor(4) as pool:
        creates = [pool.submit(grant.create, f"memory {number}") for number in range(40)]
        rotations = [pool.submit(service.rotate_key, grant.user_id) for _ in range(3)]
        assert sorted(rotation.result() for rotation in rotations) == [2, 3, 4]
        for create in creates:
            create.result()
    opened = grant.envelope().open_many(contents(grant))
    assert (len(opened.plain), opened.errors) == (40, {})


def test_what_was_begun_before_a_rotation_sees_one_moment(service, grant):
    grant.create("Likes tea")
    deployment = service._deployment
    developer_id = deployment.store.requests.get(grant.request_id).developer_id
    bearer = Bearer(developer_id, 0)
    with deployment.store.reading(bearer, grant.user_id, in_snapshot=True) as before:
        service.rotate_key(grant.user_id)
        grant.create("Likes coffee", tags=["drinks"])
        found = before.page(MemoryFilter(grant.user_id), limit=10).memory_blobs
        assert (before.key.version, before.open_contents(found)) == (1, ["Likes tea"])
        assert before.all_tags() == []
