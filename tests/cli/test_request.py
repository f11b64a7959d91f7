"""`memframe request` and `memframe export`, as a script calls them."""

import json
import select
import subprocess
import sys

import pytest
import requests

import memframe as mf
from memframe.cli.options import full_id


def test_a_user_is_asked_from_a_shell(user, settings):
    command = [sys.executable, "-m", "memframe", "request", "new", "--reason", "Weekly review", "--json"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as asking:
        assert "browser" in asking.stderr.readline()
        redirected = user.person.authorize(asking.stderr.readline().strip())
        out, err = asking.communicate(redirected + "\n", timeout=60)
    assert asking.returncode == 0, err
    asked = json.loads(out)
    assert (asked["status"], asked["reason"]) == ("pending", "Weekly review")
    assert "memory_key" not in out
    assert user.client.access_request(asked["id"]).status == "pending"


@pytest.fixture
def asking(settings):
    """Starts `memframe request new --local` with more options, its outputs piped as a script has them."""
    begun = []

    def asking(*options):
        command = [sys.executable, "-m", "memframe", "request", "new", "--reason", "A look", "--local"]
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


def test_a_local_request_tells_its_address_at_once_and_apart_from_what_a_script_reads(user, asking):
    command = asking("--json")
    assert "browser" in command.stderr.readline()
    requests.get(user.person.authorize(command.stderr.readline().strip()), timeout=30)
    out, err = command.communicate(timeout=60)
    assert command.returncode == 0, err
    assert json.loads(out)["status"] == "pending"


def test_a_rejection_ends_the_wait_for_a_new_request_with_5(service, user, asking):
    command = asking("--wait", "60")
    assert "browser" in next_line(command)
    requests.get(user.person.authorize(command.stderr.readline().strip()), timeout=30)
    request_id = next_line(command).partition(":")[0]
    service.decide(request_id, "rejected")
    out, err = command.communicate(timeout=60)
    assert (command.returncode, out.split()[:2]) == (5, [request_id, "rejected"]), err


@pytest.mark.parametrize(("status", "code"), [("approved", 0), ("rejected", 5)])
def test_a_decision_is_waited_for_and_shown(service, user, call, status, code):
    request = user.ask("to be decided")
    service.decide(request.id, status)
    waited = call("request", "wait", request.id, "--timeout", "5", "--json")
    assert (waited.exit_code, json.loads(waited.stdout)["status"]) == (code, status)
    shown = call("request", "show", request.id)
    assert (shown.exit_code, status in shown.stdout) == (0, True)


def test_the_beginning_of_an_id_is_enough(user, call, tmp_path):
    access = user.access()
    beginning = access.request_id[:13].upper()
    assert call("request", "show", beginning).stdout.startswith(access.request_id)
    assert call("request", "wait", beginning, "--timeout", "0").exit_code == 0
    done = call("export", tmp_path / "mine.parquet", "--request", beginning)
    assert done.exit_code == 0, done.output


def test_an_id_that_nobody_knows_is_named(call, user, tmp_path):
    whole = "00000000-0000-4000-8000-000000000000"
    for given in ("0000000g", whole):
        for arguments in (("request", "show", given), ("export", tmp_path / "x.csv", "--request", given)):
            done = call(*arguments)
            assert (done.exit_code, given in done.stderr) == (1, True), done.output
    with pytest.raises(mf.NotFoundError, match=whole):
        mf.open_access(user.client, whole)
    with pytest.raises(mf.NotFoundError, match=r"/access-requests/7c9e:.*whole"):
        user.client.access_request("7c9e")


def test_a_beginning_of_several_ids_names_them():
    ids = ["7c9e6679", "7c9e", "7c9e11aa", "5f0c"]
    nouns = ("memory", "memories")
    assert full_id("7c9e", ids, nouns, shown_by="x") == "7c9e", "one of them is just that"
    with pytest.raises(mf.ConfigError, match="7c is the beginning of 3 memories, 7c9e, 7c9e11aa, 7c9e6679"):
        full_id("7c", ids, nouns, shown_by="x")
    with pytest.raises(mf.NotFoundError, match="''"):
        full_id("", ids, nouns, shown_by="x")


def test_a_wait_of_no_possible_length_is_wrong_usage(user, call):
    assert call("request", "wait", user.ask("x").id, "--timeout", "-5").exit_code == 2


def test_who_has_asked_nobody_is_told_so(service, call, monkeypatch):
    developer = service._deployment.add_developer("A beginner")
    monkeypatch.setenv("MEMFRAME_API_KEY", developer.api_key.reveal())
    assert call("request", "list").stdout == "no requests\n"
    assert call("request", "list", "--json").stdout == "[]\n"


def test_requests_are_listed_newest_first_and_fit_to_print(user, call):
    older, newer = user.ask("older \x1b[2J"), user.ask("newer")
    lines = call("request", "list").stdout.splitlines()
    places = [next(n for n, line in enumerate(lines) if line.startswith(r.id)) for r in (newer, older)]
    assert places == sorted(places)
    assert "\x1b" not in "".join(lines)
    ids = [each["id"] for each in json.loads(call("request", "list", "--json").stdout)]
    assert {older.id, newer.id} <= set(ids)


def test_without_a_redirected_address_nothing_is_asked(service, user, call):
    done = call("request", "new", "--reason", "x", input="")
    assert done.exit_code == 1
    assert "standard input" in done.output


def test_memories_are_exported(service, user, call, tmp_path):
    access = user.access()
    access.client.create_memory_blob(
        access.user_id, memory_key=access.credentials.memory_key, content=access.envelope.seal("Likes tea")
    )
    target = tmp_path / "mine.parquet"
    done = call("export", str(target), "--request", access.request_id, "--json")
    assert json.loads(done.stdout) == {"path": str(target), "n_rows": 1}
    assert list(mf.load_archive(target).content) == ["Likes tea"]


def test_a_sealed_archive_is_refreshed(user, call, tmp_path):
    access = user.access()
    arguments = ("export", tmp_path / "mine", "--request", access.request_id)
    assert "0 memories in" in call(*arguments, "--sealed").stdout
    access.client.create_memory_blob(
        access.user_id, memory_key=access.credentials.memory_key, content=access.envelope.seal("Likes tea")
    )
    told = json.loads(call(*arguments, "--refresh", "--json").stdout)
    assert told == {"path": str(tmp_path / "mine"), "added": 1, "changed": 0, "gone": 0}
    assert list(mf.load_archive(tmp_path / "mine", key=access).content) == ["Likes tea"]
    assert "0 added, 0 changed, 0 gone in" in call(*arguments, "--refresh").stdout


def test_a_request_that_is_not_approved_ends_with_5(user, call, tmp_path):
    done = call("export", str(tmp_path / "mine.parquet"), "--request", user.ask().id)
    assert done.exit_code == 5
    assert "pending" in done.output


def test_a_command_without_its_request_is_a_matter_of_usage(call, tmp_path):
    done = call("export", str(tmp_path / "mine.parquet"))
    assert done.exit_code == 2
    assert "--request" in done.output


def test_one_of_something_is_told_in_the_singular(user, call, tmp_path):
    access = user.access()
    access.client.create_memory_blob(
        access.user_id,
        memory_key=access.credentials.memory_key,
        content=access.envelope.seal("Likes tea"),
        tags=["drinks"],
    )
    target = tmp_path / "mine.jsonl"
    request = ("--request", access.request_id)
    assert call("export", target, *request).stdout.startswith("1 memory in ")
    target.write_text(target.read_text().replace("tea", "juice"))
    refused = call("plan", target, *request, "--max-changes", "0")
    assert "would change 1 row, --max-changes 0: look" in refused.stderr
    with pytest.raises(mf.PlanError, match=r"^1 row has an id"):
        mf.create_memories(access, mf.load_memories(access, progress=False))


def test_a_wrong_address_of_the_api_is_no_wrong_id(service, call, monkeypatch):
    monkeypatch.setenv("MEMFRAME_BASE_URL", service.auth_url)
    done = call("request", "list")
    assert done.exit_code == 1
    assert f"there is one at {service.base_url}: give that as base_url" in done.stderr
    assert "id," not in done.stderr


def test_where_no_listener_can_be_the_way_round_is_named(call, monkeypatch):
    monkeypatch.setenv("MEMFRAME_REDIRECT_URI", "https://app.example/callback")
    done = call("request", "new", "--reason", "x", "--local")
    assert "or leave out --local and paste the redirected address" in done.stderr
