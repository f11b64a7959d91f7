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
WRONG_KEY = f"{'ab' * 31}01"


@pytest.fixture
def old_key(service, user, access, folder):
    """The key before the last: the service has changed it, and left the contents as they were."""
    mf.create_memories(access, pd.DataFrame({"content": TEXTS}), progress=False)
    store = service._deployment.store
    with store.transaction_of(user.user_id) as memories:
        stored = dict(row for batch in memories.contents() for row in batch)
    service.rotate_key(user.user_id)
    with store.transaction_of(user.user_id) as memories:
        memories.replace_contents(stored)
    return access.credentials.encryption_key.reveal()


@pytest.fixture
def reseal(on_request):
    return lambda *options, **given: on_request("reseal", *options, **given)


def contents(access):
    renewed = mf.open_access(access.client, access.request_id)
    return mf.load_memories(renewed, progress=False).content


def test_older_content_is_planned_and_applied(reseal, call, access, old_key, tmp_path):
    (tmp_path / "old keys.txt").write_text(f"{WRONG_KEY}\n\n{old_key}\n")
    assert contents(access).isna().all()
    planned = reseal("--old-keys", "old keys.txt", "--out", "reseal.plan")
    assert planned.stdout.splitlines()[0] == "Plan: 3 patches"
    assert "  fields to write: content 3" in planned.stdout.splitlines()
    assert f"memframe apply reseal.plan --request {access.request_id}\n" in planned.stderr
    assert not any(text in planned.output for text in [old_key, *TEXTS])
    piped = json.loads(reseal("--json", input=f"\n{WRONG_KEY}\r\n{old_key}").stdout)
    assert piped["counts"] == {"patch": 3}
    assert sorted(change["after"]["content"] for change in piped["changes"]) == sorted(TEXTS)
    call("apply", "reseal.plan", "--request", access.request_id)
    assert sorted(contents(access)) == sorted(TEXTS)
    again = reseal(input=old_key)
    assert again.stdout.splitlines()[0] == "Plan: nothing to do"


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


def test_what_no_key_opens_ends_with_3_and_is_left_if_one_says_so(reseal, call, old_key, tmp_path):
    refused = reseal("--out", "reseal.plan", input=WRONG_KEY, code=3)
    assert "Plan: 3 invalid" in refused.stdout
    assert "none of the older keys opens it either" in refused.stdout
    assert "--leave-unopened" in refused.stderr
    assert not (tmp_path / "reseal.plan").exists()
    reseal("--out", "reseal.plan", "--leave-unopened", input=WRONG_KEY)
    assert json.loads(call("plan", "--show", "reseal.plan", "--json").stdout)["counts"] == {}


def test_what_is_no_key_is_named_and_not_shown(reseal, old_key, tmp_path):
    (tmp_path / "picture").write_bytes(b"\xff\xd8")
    (tmp_path / "empty").write_text("\n")
    for options, typed, says in (
        ((), "", "there is no key on standard input"),
        ((), f"{WRONG_KEY}\n0f1e", "number 2 of the older keys: the encryption key has 4 characters"),
        (("--old-keys", old_key), None, "No such file"),
        (("--old-keys", tmp_path), None, "Is a directory"),
        (("--old-keys", "picture"), None, "UTF-8"),
        (("--old-keys", "empty"), None, "no key in empty"),
    ):
        answer = reseal(*options, input=typed, code=1)
        assert says in answer.stderr
        assert not [key for key in ("0f1e", old_key) if key in answer.output]
