"""`memframe service`: what an operator does with accounts, while the service runs."""

import json
import stat
from urllib.parse import urlsplit

import pytest
import requests
from click.testing import CliRunner

import memframe as mf
from memframe.cli import main
from memframe.errors import ConfigError
from memframe.secret import Secret
from memframe.service import run_local
from memframe.service.deployment import open_deployment
from memframe.service.keys import MasterKey
from tests.conftest import CHEAP_HASHER
from tests.pages.conftest import Browser
from tests.service.conftest import Caller, Grant


@pytest.fixture
def running(tmp_path):
    """A running service, and a way to run `memframe service` on its data."""
    with run_local(tmp_path, password_hasher=CHEAP_HASHER) as local:

        def run(*arguments, **given):
            return CliRunner().invoke(main, ["service", *arguments, "--data", str(tmp_path)], **given)

        yield local, run


def test_a_rotated_key_is_given_out_at_once(running):
    local, run = running
    grant = Grant(local, Caller(local.base_url, local.api_key))
    memory_id = grant.create("Likes tea")["id"]
    old = grant.credentials()
    rotated = run("rotate-key", grant.email.upper(), "--json")
    assert rotated.exit_code == 0, rotated.output
    assert json.loads(rotated.output) == {
        "user_id": grant.user_id, "key_version": 2, "n_sealed": 1, "n_unreadable": 0,
    }  # fmt: skip
    new = grant.credentials()
    assert new["key_version"] == 2
    assert new["encryption_key"] != old["encryption_key"]
    assert grant.ids(searchQuery="tea") == [memory_id]
    assert run("rotate-key", grant.email).output == "key_version 3: 1 memory sealed again\n"


def test_a_rotated_api_key_replaces_the_old_one_at_once(running):
    local, run = running
    rotated = run("rotate-api-key", local.client_id)
    new = rotated.stdout.split()[1]
    assert (rotated.exit_code, rotated.stderr) == (0, "These secrets are shown only now; keep them.\n")
    with pytest.raises(mf.AuthError, match="the API key is not accepted"):
        mf.connect(local.base_url, api_key=local.api_key).sign_in()
    mf.connect(local.base_url, api_key=new).sign_in()
    (developer,) = json.loads(run("list", "--json").output)["developers"]
    newest = json.loads(run("rotate-api-key", developer["id"], "--json").output)["api_key"]
    with pytest.raises(mf.AuthError, match="the API key is not accepted"):
        mf.connect(local.base_url, api_key=new).sign_in()
    mf.connect(local.base_url, api_key=newest).sign_in()


def test_a_rotated_client_secret_replaces_the_old_one_at_once(running):
    local, run = running
    new = json.loads(run("rotate-client-secret", local.client_id, "--json").output)["client_secret"]

    def refusal(client_secret):
        body = {"grant_type": "refresh_token", "refresh_token": "none", "client_id": local.client_id}
        url = f"{local.auth_url}/oauth/token"
        return requests.post(url, data=body | {"client_secret": client_secret}, timeout=9).json()["error"]

    assert [refusal(local.client_secret), refusal(new)] == ["invalid_client", "invalid_grant"]


@pytest.mark.parametrize("command", ["rotate-api-key", "rotate-client-secret"])
def test_a_developer_who_is_not_there_is_named(running, command):
    _, run = running
    answer = run(command, "nobody")
    assert answer.exit_code == 1
    assert answer.stderr == "Error: there is no developer nobody; `memframe service list` shows all\n"


def test_a_user_who_is_not_there_is_named(running):
    _, run = running
    answer = run("rotate-key", "nobody@example.org")
    assert answer.exit_code == 1
    assert answer.stderr == "Error: there is no user nobody@example.org; `memframe service list` shows all\n"


def test_a_database_that_was_not_named_is_not_made(tmp_path):
    MasterKey.generate().save(tmp_path / "master.key")
    answer = CliRunner().invoke(main, ["service", "list", "--data", str(tmp_path)])
    assert answer.exit_code == 1
    assert f"there is no database in {tmp_path}; name the one" in answer.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["master.key"]


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("pässword in latin-1\n".encode("latin-1"), "not text in UTF-8"),
        (b"\xff\xfe\n", "not text in UTF-8"),
        (b"", "8 to 1024 characters"),
        (b"with a \x00 in it\n", "NUL"),
    ],
)
def test_a_password_that_cannot_be_one_is_named(running, typed, reason):
    _, run = running
    answer = run("add-user", "a@b.example", "--password-stdin", input=typed)
    assert answer.exit_code == 1
    assert reason in answer.stderr
    assert "Traceback" not in answer.output


@pytest.mark.asvs("6.2.5")
def test_a_password_may_have_any_letters(running):
    local, run = running
    assert run("add-user", "a@b.example", "--password-stdin", input="pässwörd ☕\n".encode()).exit_code == 0
    stored = local._deployment.store.accounts.user_by_email("a@b.example").password_hash
    assert local._deployment.passwords.matches(Secret("pässwörd ☕"), stored)


class Person(Browser):
    """Somebody who signs in at the dashboard."""

    def is_let_in(self, email, password):
        self.page = None
        return urlsplit(self.sign_in(email, password).url).path in {"/dashboard", "/dashboard/password"}


@pytest.mark.asvs("6.4.3", "7.4.3", "7.4.5")
def test_a_new_password_replaces_the_old_one_and_ends_sessions(running):
    local, run = running
    user_id = local.add_user("ada@example.org", "the old password")
    ada = Person(local)
    assert ada.is_let_in("ada@example.org", "the old password")
    reset = run("reset-password", "ADA@example.org", "--password-stdin", "--json", input="the new password\n")
    assert (reset.exit_code, json.loads(reset.output)) == (0, {"user_id": user_id})
    assert ada.open("/dashboard").url.endswith("/login?next=%2Fdashboard"), "signed out"
    assert not ada.is_let_in("ada@example.org", "the old password")
    assert ada.is_let_in("ada@example.org", "the new password")
    assert "/dashboard/password" in ada.open("/dashboard").url, "it has to be changed first"
    assert "8 to 1024" in run("reset-password", "ada@example.org", "--password-stdin", input="short\n").stderr
    asked = run("reset-password", "ada@example.org", input="asked for\nasked for\n")
    assert asked.output.endswith("ada@example.org has a new password and is signed out everywhere\n")
    assert Person(local).is_let_in("ada@example.org", "asked for")


def test_a_closed_person_is_out_until_opened_again(running):
    local, run = running
    grant = Grant(local, Caller(local.base_url, local.api_key))
    told = run("disable", grant.email, "--json")
    assert json.loads(told.output) == {"kind": "user", "id": grant.user_id, "disabled": True}
    assert grant.list().json()["code"] == "no_grant"
    assert not Person(local).is_let_in(grant.email, "a long password")
    assert f"user       {grant.user_id}  {grant.email}  (disabled)\n" in run("list").output
    assert run("disable", grant.user_id, "--enable").output == f"user {grant.user_id} is enabled\n"
    assert grant.list().status_code == 200
    assert Person(local).is_let_in(grant.email, "a long password")


@pytest.mark.parametrize("name", ["id", "client_id"])
def test_a_closed_application_is_locked_out_with_its_tokens(running, name):
    local, run = running
    caller = Caller(local.base_url, local.api_key)
    (developer,) = json.loads(run("list", "--json").output)["developers"]
    assert run("disable", developer[name][:14]).output == f"developer {developer['id']} is disabled\n"
    assert caller.get("/access-requests").status_code == 401
    assert run("disable", developer[name], "--enable").exit_code == 0
    assert caller.get("/access-requests").status_code == 401, "tokens of before stay dead"
    assert Caller(local.base_url, local.api_key).get("/access-requests").status_code == 200


def test_a_tag_is_switched_off_and_on(running):
    local, run = running
    grant = Grant(local, Caller(local.base_url, local.api_key))
    grant.create(tags=["stamps", "letters"])
    off = json.loads(run("disable-tag", grant.email, "stamps", "--json").output)
    assert (off["name"], off["is_enabled"]) == ("stamps", False)

    def enabled():
        tags = grant.call.get("/tags", user_id=grant.user_id).json()["items"]
        return {tag["name"]: tag["is_enabled"] for tag in tags}

    assert enabled() == {"letters": True, "stamps": False}
    assert grant.list(tags="stamps").json()["memoryBlobs"][0]["tags"] == ["stamps", "letters"]
    on = run("disable-tag", grant.email, "stamps", "--enable")
    assert (on.output, enabled()["stamps"]) == ("the tag stamps is enabled\n", True)
    unknown = run("disable-tag", grant.email, "coins")
    assert (unknown.exit_code, unknown.stderr) == (1, "Error: this user has no tag coins\n")


def test_a_backup_serves_what_the_service_held(running, tmp_path_factory):
    local, run = running
    grant = Grant(local, Caller(local.base_url, local.api_key))
    memory_id = grant.create("Likes tea", tags=["drinks"])["id"]
    copy = tmp_path_factory.mktemp("backups") / "first"
    told = json.loads(run("backup", str(copy), "--json").output)
    assert told["folder"] == str(copy)
    assert set(told["files"]) == {"master.key", "memframe.db"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (copy, *copy.iterdir())} == {0o700, 0o600}
    grant.create("Likes coffee")
    with run_local(copy) as restored:
        grant.call = Caller(restored.base_url, local.api_key)
        assert grant.ids() == grant.ids(searchQuery="tea") == [memory_id]
    again = run("backup", str(copy))
    assert (again.exit_code, again.stderr) == (1, f"Error: {copy} is there already; name a new folder\n")


def test_a_backup_may_leave_the_key_out(running, tmp_path_factory):
    _, run = running
    copy = tmp_path_factory.mktemp("backups") / "first"
    assert run("backup", str(copy), "--without-key").output.startswith("memframe.db in ")
    with pytest.raises(ConfigError, match=r"its master key file .* is not"), run_local(copy):
        pass


def test_a_backup_that_fails_leaves_nothing(running, tmp_path_factory):
    _, run = running
    folder = tmp_path_factory.mktemp("backups")
    (folder / "file").write_text("")
    answer = run("backup", str(folder / "file" / "first"))
    assert (answer.exit_code, "Traceback" in answer.output) == (1, False)
    assert [path.name for path in folder.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "arguments",
    [("disable", "x"), ("reset-password", "x@y.example", "--password-stdin"), ("disable-tag", "x", "stamps")],
)
def test_whoever_is_not_there_is_named(running, arguments):
    _, run = running
    answer = run(*arguments, input="a long password\n")
    assert answer.exit_code == 1
    assert answer.stderr.startswith(
        f"Error: there is no {'account' if arguments[0] == 'disable' else 'user'} x"
    )


def test_the_master_key_may_lie_elsewhere(tmp_path):
    elsewhere = tmp_path / "keys" / "memframe.key"
    elsewhere.parent.mkdir(mode=0o700)
    database = f"sqlite:///{tmp_path / 'some.db'}"
    place = ("--database", database, "--master-key-file", str(elsewhere), "--data", str(tmp_path / "none"))
    open_deployment(tmp_path / "none", database_url=database, key_file=elsewhere).close()
    added = CliRunner().invoke(
        main, ["service", "add-user", "a@b.example", *place], input="long enough\n" * 2
    )
    assert added.exit_code == 0, added.output
    assert elsewhere.exists()
    assert not (tmp_path / "none").exists()
