"""`memframe request` and `memframe export`, as a script calls them."""

import json
import subprocess
import sys

import memframe as mf


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


def test_a_decision_is_waited_for_and_shown(service, user, call):
    request = user.ask("to be decided")
    service.decide(request.id, "rejected")
    waited = call("request", "wait", request.id, "--timeout", "5", "--json")
    assert json.loads(waited.stdout)["status"] == "rejected"
    assert "rejected" in call("request", "show", request.id).stdout


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
