"""`memframe serve` as a team runs it: several processes, behind a proxy, watched over, logged and stopped."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
from sqlalchemy import create_engine, text

from memframe.errors import ConflictError
from memframe.secret import Secret
from memframe.service.deployment import Addresses, NewDeveloper, open_deployment
from memframe.service.local import LocalService
from tests.backends import Sqlite
from tests.browser.lab import free_port
from tests.cli.conftest import invoke
from tests.cli.test_serve import COMMAND, serving
from tests.pages.conftest import Browser
from tests.service.conftest import Caller, Grant, ask

AT_ANY_PORT = ("--port", "0")
FORWARDED = {"X-Forwarded-For": "203.0.113.9, 198.51.100.7"}


def mostly_on(name):
    """Run a test, which starts many processes, on one database always and on the other in a campaign."""
    (other,) = {"sqlite", "postgresql"} - {name}
    databases = [name, pytest.param(other, marks=pytest.mark.campaign)]
    return pytest.mark.parametrize("backend", databases, indirect=True)


@pytest.fixture
def place(backend, tmp_path):
    """The options that say where the data is."""
    database = backend.new_database()
    return ("--data", tmp_path, *(("--database", database) if database else ()))


def wait_until_ready(shown, process):
    while process.poll() is None:
        try:
            if requests.get(shown["auth_url"] + "/readyz", timeout=20).ok:
                return
        except requests.ConnectionError:
            continue
    pytest.fail("the service has ended")


def opened(place):
    """The same service as that of these options, for its operator."""
    return closing(open_deployment(place[1], database_url=place[3] if len(place) > 2 else None))


def granted(deployment, process, shown):
    """A user of a running service who has approved."""
    wait_until_ready(shown, process)
    developer = NewDeveloper("", Secret(shown["api_key"]), shown["client_id"], Secret(""))
    local = LocalService(deployment, Addresses(shown["auth_url"]), developer)
    return Grant(local, Caller(shown["base_url"], shown["api_key"]))


def logged(process, what):
    """Lines of the log until one fits."""
    for line in process.stderr:
        entry = json.loads(line)
        yield entry
        if what(entry):
            return
    pytest.fail("the log has ended")


@mostly_on("postgresql")
def test_several_processes_serve_as_one(place):
    """They stop and are replaced together, and a revocation holds in each from the next request on."""

    def worker_started(entry):
        return entry["message"].startswith("Started server process")

    with (
        serving(*place, *AT_ANY_PORT, "--workers", "2", "--log-json") as (process, shown),
        opened(place) as deployment,
        ThreadPoolExecutor(8) as pool,
    ):
        *_, started = logged(process, worker_started)
        *_, _ = logged(process, worker_started)
        callers = list(pool.map(lambda _: Caller(shown["base_url"], shown["api_key"]), range(16)))
        assert {caller.get("/access-requests").json()["total"] for caller in callers} == {0}
        os.kill(int(re.search("[0-9]+", started["message"])[0]), signal.SIGKILL)
        *_, another = logged(process, worker_started)
        assert another["message"] != started["message"]

        grant = granted(deployment, process, shown)
        url = f"{shown['base_url']}/memory-blobs/{grant.create()['id']}?user_id={grant.user_id}"
        headers = {"Authorization": f"Bearer {grant.call.token}"}

        def asked(n_times):  # each on a connection of its own, that some process takes
            return [pool.submit(requests.get, url, headers=headers, timeout=20) for _ in range(n_times)]

        for _ in range(3):
            open_to_all, under_way = asked(16), asked(16)
            assert {answer.result().status_code for answer in open_to_all} == {200}
            deployment.store.requests.decide(grant.request_id, "revoked")
            assert {answer.result().status_code for answer in asked(32)} == {403}
            assert {answer.result().status_code for answer in under_way} <= {200, 403}
            grant.request_id = ask(grant.call, grant.memory_key)["id"]
            deployment.store.requests.decide(grant.request_id, "approved")
        process.send_signal(signal.SIGTERM)
        rest, errors = process.communicate(timeout=20)
        assert (process.returncode, rest) == (0, "")
        assert {json.loads(line)["level"] for line in errors.splitlines()} == {"info"}


@pytest.mark.asvs("4.1.3", "15.3.4")
@pytest.mark.rfc("9700 4.13a")
def test_as_documented_it_believes_its_proxy_and_no_process_outlives_the_one_that_watches_over_it(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "howto" / "deploy.md").read_text()
    command = re.search("ExecStart=.*/memframe serve (.*)", page)[1]
    options = command.replace("/var/lib/memframe", str(tmp_path)).split()
    database = options.index("--database")
    assert {"--workers", "--trusted-proxy", "--log-json"} < {*options}
    port = free_port()
    here = f"http://127.0.0.1:{port}"
    with serving(*options[:database], *options[database + 2 :], "--port", str(port)) as (process, shown):
        assert shown["base_url"] == "https://memories.example.org/api/v1"
        wait_until_ready({"auth_url": here}, process)
        requests.get(f"{here}/healthz", headers=FORWARDED, timeout=20)
        *_, entry = logged(process, lambda entry: entry.get("path") == "/healthz")
        assert entry["address"] == "198.51.100.7"
        process.kill()
        process.communicate(timeout=20)  # ends when the last of them has closed its end
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{here}/healthz", timeout=20)


def test_what_is_under_way_when_it_is_stopped_is_finished(tmp_path):
    with (
        serving("--data", tmp_path, *AT_ANY_PORT) as (process, shown),
        opened(("--data", tmp_path)) as deployment,
        ThreadPoolExecutor(1) as pool,
    ):
        grant = granted(deployment, process, shown)
        with Sqlite().holding_writes(deployment.store.engine, grant.user_id):
            create = pool.submit(grant.create, "Likes tea")
            for _ in range(3):  # what is answered later was read later
                requests.get(shown["auth_url"] + "/healthz", timeout=20)
            process.send_signal(signal.SIGTERM)
        memory = create.result()
        assert process.wait(timeout=20) == 0
        with deployment.store.transaction_of(grant.user_id) as memories:
            assert memories.get(memory["id"]).id == memory["id"]


@mostly_on("sqlite")
def test_a_kill_loses_nothing_that_was_acknowledged_and_doubles_nothing_that_is_sent_again(place):
    """The process is killed while many writes go to the disk together; key and memory are there or neither."""
    numbers, n_at_once = range(400), 16
    with serving(*place, *AT_ANY_PORT) as (process, shown), opened(place) as deployment:
        grant = granted(deployment, process, shown)
        with ThreadPoolExecutor(n_at_once) as pool:
            answers = [pool.submit(create_under_key, grant, number) for number in numbers]
            list(islice(as_completed(answers), 60))
            process.kill()
        acknowledged = [answer.result() for answer in answers if not answer.exception()]
    assert 60 <= len(acknowledged) < len(numbers)
    begun = numbers[: len(acknowledged) + n_at_once]  # the others came when it was gone
    with serving(*place, *AT_ANY_PORT) as (process, again):
        wait_until_ready(again, process)
        grant.call = Caller(again["base_url"], shown["api_key"])
        assert set(acknowledged) <= set(grant.ids(limit=1000))
        with ThreadPoolExecutor(n_at_once) as pool:
            made = list(pool.map(lambda number: create_under_key(grant, number), begun))
        assert set(acknowledged) < set(made) == set(grant.ids(limit=1000))
        assert len(set(made)) == len(begun)


def create_under_key(grant, number):
    body = {**grant.keys, "content": f"memory {number}", "tags": ["tea"]}
    return grant.call.post("/memory-blobs", body, **{"Idempotency-Key": str(number)}).json()["id"]


def events(entries, names):
    """What the log calls events, with ids by their names."""
    kept = ("event", "developer_id", "user_id", "by")
    told = [[entry.get(name) for name in kept] for entry in entries if "event" in entry]
    return [tuple(names.get(value, value) for value in one) for one in told]


@pytest.mark.asvs("16.2.1", "16.2.2", "16.2.4", "16.2.5", "16.3.1", "16.3.2", "16.3.3")
def test_the_log_has_requests_and_events_and_nothing_of_what_they_hold(tmp_path):
    with serving("--data", tmp_path, *AT_ANY_PORT, "--log-json") as (process, shown):
        with opened(("--data", tmp_path)) as deployment:
            grant = granted(deployment, process, shown)
            asked = ask(grant.call, grant.memory_key, "her diary")
            (developer,) = deployment.store.accounts.developers()
        names = {grant.user_id: "user", developer.id: "developer"}
        browser = Browser(grant.local)
        for email, password in (
            (grant.email, "wrong"),
            ("nobody@example.org", "wrong"),
            (grant.email, "a long password"),
        ):
            browser.sign_in(email, password)
        browser.send(browser.form(asked["id"], "approved"), status="approved")
        grant.credentials()
        grant.call.post("/auth/token", {"api_key": "mfk_wrong"})
        browser.send(browser.form(asked["id"], "revoked"), status="revoked")
        browser.send(browser.form("/logout"))
        requests.get(shown["auth_url"] + "/healthz", timeout=20)
        first = list(logged(process, lambda entry: entry.get("path") == "/healthz"))
        grant.call.get("/memory-blobs/her-diary", user_id="lovelace")
        grant.call.get("/her-diary")
        where = urlsplit(shown["auth_url"])
        lines = ["POST /api/v1/auth/token HTTP/1.1", f"Host: {where.netloc}", "Content-Length: 100", "", "{"]
        with socket.create_connection((where.hostname, where.port), timeout=20) as connection:
            connection.sendall("\r\n".join(lines).encode())  # and leaves before the request is there
        second = list(logged(process, lambda entry: entry.get("path") == "/api/v1/auth/token"))
        requests.get(shown["auth_url"] + "/healthz", headers=FORWARDED, timeout=20)
        second += logged(process, lambda entry: entry.get("path") == "/healthz")
    assert events(first, names) == [
        ("developer added", "developer", None, None),
        ("token given", "developer", None, None),
        ("sign-in failed", None, "user", None),
        ("sign-in failed", None, None, None),
        ("signed in", None, "user", None),
        ("access approved", "developer", "user", "user"),
        ("keys given", "developer", "user", None),
        ("API key refused", None, None, None),
        ("access revoked", "developer", "user", "user"),
        ("signed out", None, "user", None),
    ]
    requested = [entry for entry in second if entry["message"] == "request"]
    assert [(entry["method"], entry["path"], entry["status"]) for entry in requested] == [
        ("GET", "/api/v1/memory-blobs/{memory_id}", 403),
        ("GET", None, 404),
        ("POST", "/api/v1/auth/token", 499),
        ("GET", "/healthz", 200),
    ]
    assert {entry["level"] for entry in second} == {"info"}
    assert all(entry["ms"] > 0 and entry["at"].endswith("Z") for entry in requested)
    assert {entry["address"] for entry in requested} == {"127.0.0.1"}, "nobody is believed unasked"
    command = [*COMMAND, "service", "--log-json", "disable", grant.email, "--data", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    closed = [json.loads(line) for line in done.stderr.splitlines()]
    assert events(closed, names) == [("account closed", None, "user", None)]
    written = json.dumps([first, second, closed])
    canaries = [
        grant.email,
        "nobody@",
        "her diary",
        "her-diary",
        "lovelace",
        "password",
        grant.memory_key,
        "mfk_",
    ]
    canaries += [shown["api_key"], shown["client_secret"], grant.call.token]
    assert [canary for canary in canaries if canary in written] == []


def test_two_first_starts_at_once_make_one_developer(postgres, tmp_path):
    database = postgres.new_database()
    open_deployment(tmp_path, database_url=database).close()
    engine = create_engine(database, isolation_level="AUTOCOMMIT")
    waiting = text(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )

    def start():
        with closing(open_deployment(tmp_path, database_url=database)) as deployment:
            deployment.add_developer("My application", only_first=True)

    with ThreadPoolExecutor(2) as pool, engine.connect() as holding, engine.connect() as looking:
        with holding.execution_options(isolation_level="READ COMMITTED").begin():
            holding.execute(text("LOCK TABLE developers IN SHARE MODE"))  # nobody adds one, all may look
            starts = [pool.submit(start) for _ in range(2)]
            while looking.scalar(waiting) < 2:
                assert not any(one.done() for one in starts)
        failures = [one.exception() for one in starts]
    engine.dispose()
    assert {type(failure) for failure in failures} == {ConflictError, type(None)}
    with closing(open_deployment(tmp_path, database_url=database)) as deployment:
        assert len(deployment.store.accounts.developers()) == 1


def test_the_documented_commands_work(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "howto" / "deploy.md").read_text()
    blocks = re.findall(r"```sh\n(memframe service .*?)```", page, re.DOTALL)
    deployment = open_deployment(tmp_path / "data")
    for line in "".join(blocks).splitlines():
        arguments = shlex.split(line)[1:]
        if arguments[1] == "disable-tag":
            user_id = deployment.user_id("ada@example.org")
            with deployment.store.transaction_of(user_id) as memories:
                memories.add({"content": ""}, ["stamps"])
        if arguments[2:3] and arguments[2].startswith("mfc_"):  # as add-developer prints it
            arguments[2] = deployment.store.accounts.developers()[-1].client_id
        if arguments[1] in {"backup", "export-user"}:
            arguments[2] = str(tmp_path / arguments[2])
        arguments = ["1" if argument == "128" else argument for argument in arguments]
        invoke(*arguments, "--data", tmp_path / "data", input="a long password\n" * 2)
    deployment.close()
    assert (tmp_path / "backups" / "monday" / "memframe.db").exists()
