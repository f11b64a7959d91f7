"""`memframe restore`: an archive is checked, planned, applied and undone from a shell."""

import json
import shlex

import pandas as pd
import pytest

import memframe as mf

QUIET = {"progress": False, "settle_s": 0.0}


@pytest.fixture
def memories(access, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    mf.create_memories(access, pd.DataFrame({"content": ["tea", "boat", "home"]}), **QUIET)
    mf.export_memories(access, "backup.parquet", progress=False)
    mf.export_memories(access, "sealed", sealed=True, progress=False)
    return mf.load_memories(access, progress=False)


@pytest.fixture
def restore(call, access):
    return lambda *options: call("restore", "--request", access.request_id, *options)


def gone(access, memories):
    mf.apply_plan(access, mf.plan_deletes(access, memories), confirm=len(memories), **QUIET)


@pytest.mark.parametrize("archive", ["backup.parquet", "sealed"])
def test_what_is_gone_is_planned_applied_and_undone(restore, call, access, memories, archive):
    gone(access, memories.iloc[:2])
    planned = restore(archive, "--out", "restore.plan")
    assert planned.exit_code == 0, planned.output
    assert planned.stdout.splitlines()[-1] == "2 restores"
    assert f"memframe apply restore.plan --request {access.request_id}\n" in planned.stderr
    applied = call("apply", "restore.plan", "--request", access.request_id)
    assert applied.exit_code == 0, applied.output
    assert "2 restored with their ids and dates" in applied.stdout
    assert sorted(mf.load_memories(access, progress=False).id) == sorted(memories.id)
    again = restore(archive, "--json")
    assert json.loads(again.stdout)["counts"] == {}
    undo = shlex.split(applied.stderr.split("memframe ")[1])
    assert call(*undo, "--out", "undo.plan").exit_code == 0
    assert call("apply", "undo.plan", "--request", access.request_id, "--confirm", 2).exit_code == 0
    assert mf.load_memories(access, progress=False).id.tolist() == [memories.id[2]]


def test_conflicts_are_shown_and_decided_by_options(restore, access, memories, tmp_path):
    mf.update_memories(access, memories.iloc[:1].assign(title="edited"), **QUIET)
    gone(access, memories.iloc[2:])
    shown = restore("backup.parquet", "--out", "restore.plan")
    assert (shown.exit_code, "without 1 conflict" in shown.stderr) == (3, True)
    assert "title not as archived" in shown.stdout
    assert mf.Plan.load("restore.plan").counts == {"create": 1}
    mine = restore("backup.parquet", "--out", "restore.plan", "--on-conflict", "mine")
    assert (mine.exit_code, mf.Plan.load("restore.plan").counts) == (0, {"create": 1, "patch": 1})
    assert restore("backup.parquet", "--on-conflict", "mine", "--max-changes", 1).exit_code == 1


def test_what_cannot_be_created_is_left_out_with_the_reason(restore, access, memories):
    gone(access, memories)
    memories.assign(tags=[("a,b",), (), ()]).to_parquet("odd.parquet")
    planned = restore("odd.parquet", "--out", "restore.plan")
    assert planned.exit_code == 3
    assert "contains a comma" in planned.stdout
    assert "without 1 invalid" in planned.stderr
    assert mf.Plan.load("restore.plan").counts == {"create": 2}


@pytest.mark.parametrize("archive", ["backup.parquet", "sealed"])
def test_a_rehearsal_ends_with_0_only_where_everything_is_held(restore, access, memories, archive):
    proven = restore(archive, "--check")
    assert (proven.exit_code, proven.stdout) == (
        0,
        "the archive contains all of the 3 memories that the service lists, as they are\n",
    )
    mf.create_memories(access, pd.DataFrame({"content": ["new"]}), **QUIET)
    gone(access, memories.iloc[:1])
    missing = restore(archive, "--check", "--json")
    assert missing.exit_code == 3
    found = json.loads(missing.stdout)
    assert (found["n_listed"], found["n_archived"], len(found["missing"])) == (3, 3, 1)
    assert found["gone"] == [memories.id[0]]
    assert "1 missing" in restore(archive, "--check").stdout


def test_an_archive_of_another_account_needs_its_key(call, service, user, access, memories, tmp_path):
    other = type(user)(service, f"other-{user.user_id}@example.org")
    theirs = other.access()
    (tmp_path / "key.txt").write_text(access.credentials.encryption_key.reveal())
    refused = call("restore", "sealed", "--request", theirs.request_id)
    assert refused.exit_code == 1
    assert "is sealed with key_version 1 of user" in refused.stderr
    planned = call("restore", "sealed", "--request", theirs.request_id, "--key-file", "key.txt")
    assert (planned.exit_code, planned.stdout.splitlines()[-1]) == (0, "3 creates")
    other.close()


def test_an_archive_that_is_not_there_is_named(restore, memories):
    assert restore("nothing.parquet").exit_code == 2
