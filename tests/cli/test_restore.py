"""`memframe restore`: an archive is checked, planned, applied and undone from a shell."""

import json
import shlex

import pandas as pd
import pytest

import memframe as mf

QUIET = {"progress": False, "settle_s": 0.0}


@pytest.fixture
def memories(access, folder):
    mf.create_memories(access, pd.DataFrame({"content": ["tea", "boat", "home"]}), **QUIET)
    mf.export_memories(access, "backup.parquet", progress=False)
    mf.export_memories(access, "sealed", sealed=True, progress=False)
    return mf.load_memories(access, progress=False)


@pytest.fixture
def restore(on_request):
    return lambda *options, **given: on_request("restore", *options, **given)


def gone(access, memories):
    mf.apply_plan(access, mf.plan_deletes(access, memories), confirm=len(memories), **QUIET)


@pytest.mark.parametrize("archive", ["backup.parquet", "sealed"])
def test_what_is_gone_is_planned_applied_and_undone(restore, on_request, call, access, memories, archive):
    gone(access, memories.iloc[:2])
    planned = restore(archive, "--out", "restore.plan")
    assert planned.stdout.splitlines()[-1] == "2 restores"
    assert f"memframe apply restore.plan --request {access.request_id}\n" in planned.stderr
    applied = on_request("apply", "restore.plan")
    assert "2 restored with their ids and dates" in applied.stdout
    assert sorted(mf.load_memories(access, progress=False).id) == sorted(memories.id)
    again = restore(archive, "--json")
    assert json.loads(again.stdout)["counts"] == {}
    undo = shlex.split(applied.stderr.split("memframe ")[1])
    call(*undo, "--out", "undo.plan")
    on_request("apply", "undo.plan", "--confirm", 2)
    assert mf.load_memories(access, progress=False).id.tolist() == [memories.id[2]]


def test_conflicts_are_shown_and_decided_by_options(restore, access, memories):
    mf.update_memories(access, memories.iloc[:1].assign(title="edited"), **QUIET)
    gone(access, memories.iloc[2:])
    shown = restore("backup.parquet", "--out", "restore.plan", code=3)
    assert "without 1 conflict" in shown.stderr
    assert "title not as archived" in shown.stdout
    assert mf.Plan.load("restore.plan").counts == {"restore": 1}
    restore("backup.parquet", "--out", "restore.plan", "--on-conflict", "mine")
    assert mf.Plan.load("restore.plan").counts == {"restore": 1, "patch": 1}
    restore("backup.parquet", "--on-conflict", "mine", "--max-changes", 1, code=1)


def test_what_cannot_be_created_is_left_out_with_the_reason(restore, access, memories):
    gone(access, memories)
    memories.assign(tags=[("a,b",), (), ()]).to_parquet("odd.parquet")
    planned = restore("odd.parquet", "--out", "restore.plan", code=3)
    assert "contains a comma" in planned.stdout
    assert "without 1 invalid" in planned.stderr
    assert mf.Plan.load("restore.plan").counts == {"restore": 2}


def test_a_rehearsal_ends_with_0_only_where_everything_is_held(restore, access, memories):
    proven = restore("sealed", "--check")
    assert proven.stdout == "the archive contains all of the 3 memories that the service lists, as they are\n"
    mf.create_memories(access, pd.DataFrame({"content": ["new"]}), **QUIET)
    gone(access, memories.iloc[:1])
    missing = restore("sealed", "--check", "--json", code=3)
    found = json.loads(missing.stdout)
    assert (found["n_listed"], found["n_archived"], len(found["missing"])) == (3, 3, 1)
    assert found["gone"] == [memories.id[0]]
    assert "1 missing" in restore("sealed", "--check", code=3).stdout


def test_an_archive_of_another_account_needs_its_key(call, service, user, access, memories, folder):
    other = type(user)(service, f"other-{user.user_id}@example.org")
    theirs = other.access()
    (folder / "key.txt").write_text(access.credentials.encryption_key.reveal())
    refused = call("restore", "sealed", "--request", theirs.request_id, code=1)
    assert "is sealed with key_version 1 of user" in refused.stderr
    planned = call("restore", "sealed", "--request", theirs.request_id, "--key-file", "key.txt")
    assert planned.stdout.splitlines()[-1] == "3 creates"
    other.close()


def test_an_archive_that_is_not_there_is_named(restore, memories):
    restore("nothing.parquet", code=2)
