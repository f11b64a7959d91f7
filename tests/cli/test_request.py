"""`memframe login`, `request` and `export`, as a script calls them."""

import functools
import json
import os
import select
import subprocess
import sys

import keyring
import pandas as pd
import pytest
import requests
from click import ClickException

import memframe as mf
from memframe.cli import main
from memframe.client.responses import full_id
from memframe.wire import GET_REQUEST
from tests.cli.conftest import invoke
from tests.faults import FaultProxy, changed
from tests.keyrings import MemoryKeyring


@pytest.fixture
def asking(settings):
    """Starts `memframe request new` with more options, its outputs piped as a script has them."""
    begun = []

    def asking(*options):
        command = [sys.executable, "-m", "memframe", "request", "new", "--reason", "Weekly review"]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        begun.append(subprocess.Popen([*command, *options], **pipes, text=True))
        return begun[-1]

    yield asking
    for one in begun:
        one.kill()
        one.communicate()


def next_line(command):
    """A line of standard error, which must come while the command waits for an answer."""
    assert select.select([command.stderr], [], [], 30)[0], "nothing was printed, or it was not flushed"
    return command.stderr.readline()


def test_a_user_is_asked_from_a_shell(user, asking):
    command = asking("--json")
    assert "browser" in next_line(command)
    redirected = user.person.authorize(command.stderr.readline().strip())
    out, err = command.communicate(redirected + "\n", timeout=60)
    assert command.returncode == 0, err
    asked = json.loads(out)
    assert (asked["status"], asked["reason"]) == ("pending", "Weekly review")
    assert "memory_key" not in out
    assert user.client.access_request(asked["id"]).status == "pending"


def test_a_rejection_ends_the_wait_for_a_new_request_with_5(service, user, asking, monkeypatch):
    with FaultProxy(service.base_url) as proxy:
        monkeypatch.setenv("MEMFRAME_BASE_URL", proxy.base_url)
        proxy.always(GET_REQUEST, changed(lambda request: request.update(status="rejected")))
        command = asking("--local", "--wait", "60")
        assert "browser" in next_line(command)
        requests.get(user.person.authorize(command.stderr.readline().strip()), timeout=30)
        request_id = next_line(command).partition(":")[0]
        out, err = command.communicate(timeout=60)
    assert (command.returncode, out.split()[:2]) == (5, [request_id, "rejected"]), err


@pytest.mark.parametrize(("status", "code"), [("approved", 0), ("rejected", 5)])
def test_a_decision_is_waited_for_and_shown(service, user, call, tmp_path, status, code):
    request = user.ask("to be decided")
    refused = call("export", tmp_path / "mine.parquet", "--request", request.id, code=5)
    assert "pending" in refused.output
    service.decide(request.id, status)
    beginning = request.id[:13].upper()
    waited = call("request", "wait", beginning, "--timeout", "5", "--json", code=code)
    assert json.loads(waited.stdout)["status"] == status
    shown = call("request", "show", beginning)
    assert shown.stdout.startswith(request.id)
    assert status in shown.stdout
    call("export", tmp_path / "mine.parquet", "--request", beginning, code=code)


def test_an_id_that_nobody_knows_is_named(call, user, tmp_path):
    whole = "00000000-0000-4000-8000-000000000000"
    for given in ("0000000g", whole):
        assert given in call("export", tmp_path / "x.csv", "--request", given, code=1).stderr
    with pytest.raises(mf.NotFoundError, match=whole):
        mf.open_access(user.client, whole)
    for take in (user.client.access_request, functools.partial(mf.open_access, user.client)):
        with pytest.raises(mf.NotFoundError, match=r"'0000000g': client.access_requests\(\) shows the ids"):
            take("0000000g")


def test_the_beginning_of_an_id_is_enough_in_python_as_in_the_shell(user):
    ids = [
        user.client.create_access_request(user.service.memory_key(user.user_id), f"No. {n}").id
        for n in range(17)
    ]
    whole = ids[-1]
    length = next(n for n in range(1, 37) if sum(one.startswith(whole[:n]) for one in ids) == 1)
    beginning = whole[: length + 4]
    assert user.client.access_request(beginning.upper()).id == whole
    with pytest.raises(mf.DecisionTimeout):
        mf.wait_for_decision(user.client, beginning, timeout_s=0)
    user.service.decide(whole, "approved")
    assert mf.open_access(user.client, beginning).request_id == whole
    several = next(one[0] for one in ids if sum(other[0] == one[0] for other in ids) > 1)
    with pytest.raises(mf.ConfigError, match=f"{several} is the beginning of .* access requests, {several}"):
        mf.open_access(user.client, several)


def test_a_beginning_of_several_ids_names_them():
    ids, nouns = ["7c9e6679", "7c9e", "7c9e11aa", "5f0c"], ("memory", "memories")
    assert full_id("7c9e", ids, nouns, shown_by="x") == "7c9e", "one of them is just that"
    with pytest.raises(mf.ConfigError, match="7c is the beginning of 3 memories, 7c9e, 7c9e11aa, 7c9e6679"):
        full_id("7c", ids, nouns, shown_by="x")
    with pytest.raises(mf.NotFoundError, match="''"):
        full_id("", ids, nouns, shown_by="x")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("request", "wait", "7c9e", "--timeout", "-5"), 2, "-5"),
        (("export", "mine.parquet"), 2, "--request"),
        (("export", "mine", "--refresh", "--format", "pam", "--request", "7c9e"), 2, "leave out --format"),
        (("apply", "gone.plan"), 2, "--request"),
        (("request", "new", "--reason", "x"), 1, "standard input"),
        (("request", "new", "--reason", " "), 2, "--reason is empty"),
    ],
)
def test_what_is_missing_or_impossible_is_named(call, arguments, code, says):
    done = call(*arguments, input="", code=code)
    assert says in done.output


def test_a_closed_standard_input_has_no_line(settings, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(ClickException, match="standard input has no more lines"):
        main(["request", "new", "--reason", "x"], standalone_mode=False)


def test_settings_that_do_not_fit_are_named(service, call, monkeypatch):
    with monkeypatch.context() as wrong:
        wrong.setenv("MEMFRAME_BASE_URL", service.auth_url)
        done = call("request", "list", code=1)
        assert f"there is one at {service.base_url}: give that as base_url" in done.stderr
    monkeypatch.setenv("MEMFRAME_REDIRECT_URI", "https://app.example/callback")
    done = call("request", "new", "--reason", "x", "--local", code=1)
    assert "or leave out --local and paste the redirected address" in done.stderr


def test_requests_are_listed_newest_first_and_fit_to_print(service, user, call, monkeypatch):
    older, newer = user.ask("older \x1b[2J"), user.ask("newer")
    lines = call("request", "list").stdout.splitlines()
    places = [next(n for n, line in enumerate(lines) if line.startswith(r.id)) for r in (newer, older)]
    assert places == sorted(places)
    assert "\x1b" not in "".join(lines)
    ids = [each["id"] for each in json.loads(call("request", "list", "--json").stdout)]
    assert {older.id, newer.id} <= set(ids)
    beginner = service._deployment.add_developer("A beginner")
    monkeypatch.setenv("MEMFRAME_API_KEY", beginner.api_key.reveal())
    assert call("request", "list").stdout == "no requests\n"
    assert call("request", "list", "--json").stdout == "[]\n"


def test_ctrl_c_while_the_command_is_still_loading_ends_it_quietly(tmp_path):
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt")
    path = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    command = [sys.executable, "-m", "memframe", "runs"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"Aborted!\n")


def test_a_name_of_a_file_does_not_steer_the_terminal(call):
    refused = call("apply", "\x1b]0;x\x07.plan", "--request", "7c9e", code=1)
    assert "the plan \\x1b]0;x\\x07.plan cannot be read" in refused.stderr


def test_a_refresh_exports_on_the_first_night(user, call, tmp_path):
    access = user.access()
    (tmp_path / "made-before").mkdir()
    for name in ("nights", "made-before"):
        line = ("export", tmp_path / name, "--sealed", "--refresh", "--keep", "--request", access.request_id)
        assert "0 memories in" in call(*line).stdout
        assert "0 added, 0 changed, 0 gone in" in call(*line).stdout
    mf.export_memories(access, tmp_path / "plain")
    refused = call(
        "export", tmp_path / "plain", "--sealed", "--refresh", "--request", access.request_id, code=1
    )
    assert "is not sealed, and would stay so" in refused.stderr


def test_an_archive_is_exported_and_refreshed(user, call, tmp_path):
    access, path = user.access(), tmp_path / "mine"
    arguments = ("export", path, "--request", access.request_id)
    assert "0 memories in" in call(*arguments, "--sealed").stdout
    mf.create_memories(access, pd.DataFrame({"content": ["Likes tea"]}), progress=False)
    told = json.loads(call(*arguments, "--refresh", "--json").stdout)
    assert told == {"path": str(path), "added": 1, "changed": 0, "gone": 0}
    assert list(mf.load_archive(path, key=access).content) == ["Likes tea"]
    assert "0 added, 0 changed, 0 gone in" in call(*arguments, "--refresh").stdout
    plain = tmp_path / "mine.jsonl"
    refused = call("export", tmp_path / "notes.md", "--refresh", "--request", access.request_id, code=1)
    assert "contains notes, which cannot be refreshed" in refused.stderr
    refused = call("export", plain, "--refresh", "--keep", "--request", access.request_id, code=1)
    assert "states of the past are kept in a folder" in refused.stderr
    done = call("export", plain, "--request", access.request_id)
    assert done.stdout == f"1 memory in {plain}, readable only by you\n"
    plain.write_text(plain.read_text().replace("tea", "juice"))
    refused = call("plan", plain, "--request", access.request_id, "--max-changes", "0", code=1)
    assert "would change 1 row, and 0 are allowed: look" in refused.stderr


# Logging in: a key is verified before it is kept, and never shown


@pytest.fixture
def backend():
    before = keyring.get_keyring()
    keyring.set_keyring(MemoryKeyring())
    yield keyring.get_keyring()
    keyring.set_keyring(before)


def log_in(*options, typed, code=0):
    return invoke("login", *options, input="".join(f"{line}\n" for line in typed), code=code)


def test_a_good_key_is_kept_and_found_again(service, backend, monkeypatch):
    monkeypatch.setenv("MEMFRAME_BASE_URL", service.base_url.removesuffix("/api/v1"))
    application = ("--auth-url", service.auth_url, "--client-id", service.client_id)
    done = log_in(*application, typed=[service.api_key, service.client_secret])
    assert f"Signed in at {service.base_url}. The key is in your keyring." in done.output
    assert "Address" not in done.output  # which the environment has
    assert service.api_key not in done.output
    monkeypatch.delenv("MEMFRAME_BASE_URL")
    assert mf.connect().access_requests() is not None
    kept = {"base_url": service.base_url, "client_secret": service.client_secret}
    assert {name: backend.get_password("memframe", name) for name in kept} == kept


def test_a_refused_key_is_not_kept(service, backend):
    done = log_in("--base-url", service.base_url, typed=["mfk_wrong_canary"], code=5)
    assert "401" in done.output
    assert "canary" not in done.output
    assert backend.get_password("memframe", "api_key") is None


def test_logging_out_removes_all_that_was_kept(service, backend):
    log_in("--base-url", service.base_url, typed=[service.api_key])
    shown = [invoke("logout") for _ in range(2)]
    assert [done.output for done in shown] == [
        "Removed from the keyring: api_key, base_url.\n",
        "The keyring was empty.\n",
    ]
    assert backend.entries == {}
