"""`memframe reseal`: what a change of key has left under older ones is planned, and applied as any other plan."""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest

import memframe as mf

pty = pytest.importorskip("pty", reason="terminals of this kind are POSIX's")

TEXTS = ["tea", "coffee", "Zoë schläft"]


@pytest.fixture
def old_key(service, user, access, tmp_path, monkeypatch):
    """The key before the last: the service has changed it, and left the contents as they were."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    mf.create_memories(access, pd.DataFrame({"content": TEXTS}), progress=False)
    store = service._deployment.store
    with store.owned(user.user_id) as memories:
        stored = dict(row for batch in memories.contents(at_a_time=10) for row in batch)
    service.rotate_key(user.user_id)
    with store.owned(user.user_id) as memories:
        memories.replace_contents(stored)
    return access.credentials.encryption_key.reveal()


@pytest.fixture
def reseal(call, access):
    return lambda *options, **given: call("reseal", "--request", access.request_id, *options, **given)


def renewed(access):
    return mf.open_access(access.client, access.request_id)


def test_older_content_is_planned_and_applied(reseal, call, access, old_key, tmp_path):
    (tmp_path / "old keys.txt").write_text(f"{'ab' * 31}01\n\n{old_key}\n")
    assert mf.load_memories(renewed(access), progress=False).content.isna().all()
    planned = reseal("--old-keys", "old keys.txt", "--out", "reseal.plan")
    assert planned.exit_code == 0, planned.output
    assert planned.stdout.splitlines()[:2] == ["Plan: 3 patches", "  fields to write: content 3"]
    assert f"memframe apply reseal.plan --request {access.request_id}\n" in planned.stderr
    assert not any(text in planned.output for text in [old_key, *TEXTS])
    assert call("apply", "reseal.plan", "--request", access.request_id).exit_code == 0
    assert sorted(mf.load_memories(renewed(access), progress=False).content) == sorted(TEXTS)
    again = reseal(input=old_key)
    assert (again.exit_code, again.stdout.splitlines()[0]) == (0, "Plan: nothing to do")


def test_keys_come_as_lines_of_standard_input(reseal, access, old_key):
    planned = reseal("--json", input=f"\n{'ab' * 31}01\r\n{old_key}")
    assert planned.exit_code == 0, planned.output
    told = json.loads(planned.stdout)
    assert told["counts"] == {"patch": 3}
    assert sorted(change["after"]["content"] for change in told["changes"]) == sorted(TEXTS)


def test_keys_are_asked_for_at_a_terminal_until_there_are_no_more():
    code = (
        "from memframe.cli import options as a; print([key.reveal() for key in a.ask_secrets('Older key')])"
    )
    keyboard, terminal = map(os.fdopen, pty.openpty(), ("wb", "rb"), (0, 0))
    pipes = {"stdin": terminal, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    asking = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, **pipes)
    with asking, keyboard, terminal:  # whatever happens, it is hung up first
        for line in (b"one", b"two", b""):
            question = b"Older key (empty: no more): "
            assert asking.stderr.read(len(question)) == question  # what is typed before is dropped
            keyboard.write(line + b"\n")
            asking.stderr.readline()
        assert asking.stdout.read() == b"['one', 'two']\n"


def test_what_no_key_opens_ends_with_3_and_is_left_if_one_says_so(reseal, call, access, old_key, tmp_path):
    wrong = f"{'ab' * 31}01"
    refused = reseal("--out", "reseal.plan", input=wrong)
    assert refused.exit_code == 3
    assert "Plan: 3 invalid" in refused.stdout
    assert "none of the older keys opens it either" in refused.stdout
    assert "--leave-unopened" in refused.stderr
    assert not (tmp_path / "reseal.plan").exists()
    left = reseal("--out", "reseal.plan", "--leave-unopened", input=wrong)
    assert left.exit_code == 0, left.output
    assert json.loads(call("plan", "--show", "reseal.plan", "--json").stdout)["counts"] == {}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", "there is no key on standard input"),
        (f"{'ab' * 31}01\n0f1e", "number 2 of the older keys: the encryption key has 4 characters"),
    ],
)
def test_what_is_no_key_is_named_and_not_shown(reseal, typed, said):
    answer = reseal(input=typed)
    assert answer.exit_code == 1
    assert said in answer.stderr
    assert "0f1e" not in answer.output


def test_a_key_in_the_place_of_the_file_is_not_repeated(reseal, old_key, tmp_path):
    (tmp_path / "picture").write_bytes(b"\xff\xd8")
    (tmp_path / "empty").write_text("\n")
    for given, said in [
        (old_key, "No such file"),
        (tmp_path, "Is a directory"),
        ("picture", "UTF-8"),
        ("empty", "no key in empty"),
    ]:
        answer = reseal("--old-keys", given)
        assert answer.exit_code == 1
        assert said in answer.stderr
        assert old_key not in answer.output
