"""`memframe serve` and `memframe service`, as a shell or a supervisor runs them."""

import io
import json
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager

import pexpect
import pytest
import requests

from memframe.cli import COMMANDS, main
from memframe.cli.options import Group
from memframe.service import run_local
from memframe.service.deployment import open_deployment
from tests.cli.conftest import invoke

COMMAND = [sys.executable, "-c", "from memframe.cli import main; main(prog_name='memframe')"]


@contextmanager
def serving(*options):
    """A running `memframe serve`, and the first line that it printed."""
    command = [*COMMAND, "serve", "--json", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


@pytest.mark.asvs("6.3.2")
@pytest.mark.skipif(sys.platform == "win32", reason="lines for a POSIX shell")
def test_first_start_prints_secrets_to_be_pasted_into_a_shell_and_a_later_one_only_addresses(tmp_path):
    data = tmp_path / "my data"
    command = [*COMMAND, "serve", "--data", data, "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True) as process:
        lines = [process.stdout.readline() for _ in range(6)]
        code = "import memframe as mf; print(mf.connect().access_requests(), mf.OAuthFlow().redirect_uri)"
        script = "".join([*lines, f'"{sys.executable}" -c "{code}"'])
        pasted = subprocess.run(["/bin/sh", "-euc", script], check=False, capture_output=True, text=True)
        assert pasted.stdout == "[] http://127.0.0.1/callback\n", pasted.stderr

        add_user = ("service", "add-user", "Ada@example.org", "--password-stdin", "--data", data)
        added = invoke(*add_user, input="a long one\n")
        redirect = ("--redirect-uri", "https://a.example.org/cb")
        developer = invoke("service", "add-developer", "Notes", *redirect, "--data", data, "--json")
        other = json.loads(developer.output)
        assert set(other) == {"api_key", "client_id", "client_secret"}
        base_url = lines[0].strip().removeprefix("export MEMFRAME_BASE_URL=")
        body = {"api_key": other["api_key"]}
        assert requests.post(f"{base_url}/auth/token", json=body, timeout=20).ok

        process.send_signal(signal.SIGTERM)
        rest, remarks = process.communicate(timeout=20)
        assert (process.returncode, rest) == (0, "")
    assert "These secrets are shown only once: keep them." in remarks
    assert f"Dashboard, where users approve requests: {base_url.removesuffix('/api/v1')}" in remarks
    public = ("--public-url", "https://memories.example.org/")
    with serving("--data", data, "--port", "0", *public) as (process, shown):
        assert set(shown) == {"base_url", "auth_url", "dashboard_url"}
        assert shown["base_url"] == "https://memories.example.org/api/v1"
        assert "`memframe service add-developer` makes new ones" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0

    listed = json.loads(invoke("service", "list", "--data", data, "--json").output)
    assert [user["email"] for user in listed["users"]] == ["ada@example.org"]
    assert [user["id"] for user in listed["users"]] == [added.output.strip()]
    assert {developer["name"] for developer in listed["developers"]} == {"My application", "Notes"}
    assert "hash" not in str(listed)


@pytest.fixture
def data(tmp_path):
    """A folder that a service has made."""
    open_deployment(tmp_path).close()
    return tmp_path


def test_a_folder_without_a_service_does_not_become_one(tmp_path):
    answer = invoke("service", "list", "--data", tmp_path, code=1)
    assert "start it once with `memframe serve`" in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_errors_are_messages_without_a_traceback_and_signals_are_left_as_they_were(data):
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    (data / "master.key").unlink()
    answer = invoke("serve", "--data", data, "--port", "0", code=1)
    assert answer.stderr.startswith("Error: the data exists, but its master key file")
    assert "Traceback" not in answer.output
    assert [signal.getsignal(number) for number in numbers] == before


def test_an_error_of_database_or_system_is_a_message(data, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    def list_fails(words):
        return words in invoke("service", "list", "--data", data, code=1).stderr

    monkeypatch.setattr("memframe.service.store.engine.BUSY_TIMEOUT_MS", 0)
    with closing(sqlite3.connect(data / "memframe.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        assert list_fails("database is locked")
    monkeypatch.setattr("memframe.cli.service._read_accounts", full)
    assert list_fails("No space left")


def test_the_password_is_asked_for_twice_at_a_terminal_and_not_echoed(data):
    command = ["-m", "memframe", "service", "add-user", "a@b.example", "--data", str(data)]
    with pexpect.spawn(sys.executable, command, encoding="utf-8", timeout=20) as terminal:
        terminal.logfile_read = seen = io.StringIO()
        for prompt in ("Password (8 to 1024 characters): ", "Repeat for confirmation: "):
            terminal.expect_exact(prompt)
            terminal.sendline("long enough")
        terminal.expect(pexpect.EOF)
    assert terminal.exitstatus == 0
    assert "long enough" not in seen.getvalue()


@pytest.mark.asvs("1.2.2")
@pytest.mark.rfc("6749 3.1.2a", "6749 3.1.2.1a", "9700 2.6b")
def test_redirect_addresses_are_safe_and_kept_and_names_do_not_command_the_terminal(data):
    def add(name, *uris, **given):
        options = [option for uri in uris for option in ("--redirect-uri", uri)]
        return invoke("service", "add-developer", name, *options, "--data", data, **given)

    for uri, reason in (("http://a.example.org/", "plain http"), ("https://a.example.org/#x", "fragment")):
        assert reason in add("Notes", uri, code=1).stderr
    uris = ["https://a.example.org/cb", "http://127.0.0.1/cb"]
    add("Notes\x1b[2J\u202e", *uris)
    (developer,) = json.loads(invoke("service", "list", "--data", data, "--json").output)["developers"]
    assert developer["redirect_uris"] == uris
    listed = invoke("service", "list", "--data", data).output
    assert r"Notes\x1b[2J\u202e" in listed
    assert not {"\x1b", "\u202e"} & set(listed)


@pytest.mark.asvs("12.2.1")
@pytest.mark.rfc("6749 3.2a")
def test_an_address_that_cannot_be_served_at_is_named_and_no_data_is_made(tmp_path):
    anywhere = ("--host", "0.0.0.0", "--port", "0")  # noqa: S104 - to be refused
    for options, reason in (
        (anywhere, "https"),
        ((*anywhere, "--public-url", "http://memories.example.org"), "https"),
        (
            ("--trusted-proxy", "proxy.example"),
            "--trusted-proxy proxy.example is not an IP address or network",
        ),
    ):
        answer = invoke("serve", "--data", tmp_path / "data", *options, code=1)
        assert reason in answer.stderr
        assert not (tmp_path / "data").exists()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        answer = invoke("serve", "--data", tmp_path / "data", "--port", taken.getsockname()[1], code=1)
    assert "choose another host or port" in answer.stderr


def commands(command, path=()):
    yield path, command
    for name in getattr(command, "commands", {}):
        yield from commands(command.commands[name], (*path, name))


def test_every_command_has_help_with_an_example():
    for name in COMMANDS:
        for path, command in commands(main.get_command(None, name), (name,)):
            answer = invoke(*path, "--help")
            assert f"memframe {name}" in answer.output, path
            assert command.help


@pytest.mark.parametrize("path", [(), ("service",), ("request",), ("fleet",)])
def test_help_lists_commands_with_whole_sentences(path):
    _, _, listed = invoke(*path, "--help").output.partition("Commands:\n")
    assert listed.rstrip().endswith(".")
    assert "..." not in listed


def test_help_and_completion_read_the_sentences_of_the_commands():
    assert main.list_summaries(None) == Group.list_summaries(main, None)


def test_a_command_whose_libraries_are_missing_says_what_to_install(monkeypatch):
    invoke("serve", "--port", "seventy", code=2)
    invoke("nonsense", code=2)
    monkeypatch.setitem(COMMANDS, "serve", "no_such_library.serve:run")
    assert "serve" in invoke("--help").output
    for options in ([], ["--data", "here", "extra"]):
        answer = invoke("serve", *options, code=1)
        assert "pip install '.[service]' in a clone" in answer.stderr
    code = """
import sys
sys.modules["uvicorn"] = None
import memframe
for start in ("memframe.service.run_local()", "from memframe.demo import SampleService"):
    try:
        exec(start)
    except ModuleNotFoundError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.count("needs the library uvicorn: pip install '.[service]' in a clone") == 2


def test_data_may_lie_in_a_folder_whose_name_is_not_utf_8(latin_folder):
    with run_local(data=latin_folder / "data") as local:
        assert local.base_url
    assert "developer" in invoke("service", "list", "--data", latin_folder / "data").stdout
