"""`memframe service`: what an operator does with accounts, while the service runs."""

import json
import stat
from urllib.parse import urlsplit

import pytest
import requests

import memframe as mf
from memframe.errors import ConfigError
from memframe.service import run_local
from memframe.service.deployment import open_deployment
from memframe.service.keys import MasterKey
from memframe.service.local import LocalService
from tests.cli.conftest import invoke
from tests.conftest import CHEAP_HASHER
from tests.pages.conftest import Browser
from tests.service.conftest import Caller, Grant


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A running service, and the folder of its data."""
    data = tmp_path_factory.mktemp("service")
    with run_local(data, password_hasher=CHEAP_HASHER, token_calls_per_minute=1_000_000) as local:
        yield local, data


@pytest.fixture
def run(served, monkeypatch):
    """Runs `memframe service` on the data of the running service."""
    _, data = served
    monkeypatch.setattr("memframe.service.tokens.PasswordHasher", lambda: CHEAP_HASHER)
    return lambda *arguments, **given: invoke("service", *arguments, "--data", data, **given)


@pytest.fixture
def local(served):
    """The running service for a developer of the test's own."""
    service, _ = served
    developer = service._deployment.add_developer("Notes")
    return LocalService(service._deployment, service._addresses, developer)


@pytest.fixture
def grant(local):
    return Grant(local, Caller(local.base_url, local.api_key))


def test_a_rotated_key_is_given_out_at_once(run, grant):
    memory_id = grant.create("Likes tea")["id"]
    old = grant.credentials()
    rotated = run("rotate-key", grant.email.upper(), "--json")
    expected = {"user_id": grant.user_id, "key_version": 2, "n_sealed": 1, "n_unreadable": 0}
    assert json.loads(rotated.output) == expected
    new = grant.credentials()
    assert (new["key_version"], new["encryption_key"] != old["encryption_key"]) == (2, True)
    assert grant.ids(searchQuery="tea") == [memory_id]
    assert run("rotate-key", grant.email).output == "key_version 3: 1 memory sealed again\n"


def test_a_rotated_api_key_replaces_the_old_one_at_once(run, local):
    def sign_in(api_key):
        mf.connect(local.base_url, api_key=api_key).sign_in()

    rotated = run("rotate-api-key", local.client_id)
    first = rotated.stdout.split()[1]
    assert rotated.stderr == "These secrets are shown only once: keep them.\n"
    second = json.loads(run("rotate-api-key", local._developer_id, "--json").output)["api_key"]
    for old in (local.api_key, first):
        with pytest.raises(mf.AuthError, match="the API key is not accepted"):
            sign_in(old)
    sign_in(second)


def test_a_rotated_client_secret_replaces_the_old_one_at_once(run, local):
    new = json.loads(run("rotate-client-secret", local.client_id, "--json").output)["client_secret"]

    def refusal(client_secret):
        body = {"grant_type": "refresh_token", "refresh_token": "none", "client_id": local.client_id}
        url = f"{local.auth_url}/oauth/token"
        return requests.post(url, data=body | {"client_secret": client_secret}, timeout=9).json()["error"]

    assert [refusal(local.client_secret), refusal(new)] == ["invalid_client", "invalid_grant"]


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (("rotate-api-key", "nobody"), "developer nobody; `memframe service list` shows all"),
        (("rotate-key", "x@y.example"), "user x@y.example; `memframe service list` shows all"),
        (("disable", "x"), "account x"),
    ],
)
def test_an_account_that_is_not_there_is_named(run, arguments, missing):
    answer = run(*arguments, input="a long password\n", code=1)
    assert answer.stderr.startswith(f"Error: there is no {missing}")


def test_a_database_that_was_not_named_is_not_made(tmp_path):
    MasterKey.generate().save(tmp_path / "master.key")
    answer = invoke("service", "list", "--data", tmp_path, code=1)
    assert f"there is no database in {tmp_path}; name the one" in answer.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["master.key"]


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("pässword in latin-1\n".encode("latin-1"), "not text in UTF-8"),
        (b"", "no password on standard input"),  # a script is not asked at a terminal
        (b"with a \x00 in it\n", "NUL"),
    ],
)
def test_a_password_that_cannot_be_one_is_named(run, typed, reason):
    for option in ((), ("--password-stdin",)):
        answer = run("add-user", "a@b.example", *option, input=typed, code=1)
        assert reason in answer.stderr
        assert "Traceback" not in answer.output


@pytest.mark.asvs("6.2.5")
def test_a_password_may_have_any_letters_and_an_address_one_user(run, local):
    run("add-user", "Any@b.example", "--password-stdin", input="pässwörd ☕\r\n".encode())
    assert is_let_in(Browser(local), "any@b.example", "pässwörd ☕")
    again = run("add-user", "any@b.example", input="long enough\n", code=1)
    assert "choose another e-mail" in again.stderr


def is_let_in(browser, email, password):
    browser.page = None
    return urlsplit(browser.sign_in(email, password).url).path in {"/dashboard", "/dashboard/password"}


@pytest.mark.asvs("6.4.3", "7.4.3", "7.4.5")
def test_a_new_password_replaces_the_old_one_and_ends_sessions(run, local):
    user_id = local.add_user("ada@example.org", "the old password")
    ada = Browser(local)
    assert is_let_in(ada, "ada@example.org", "the old password")
    reset = run("reset-password", "ADA@example.org", "--password-stdin", "--json", input="the new password\n")
    assert json.loads(reset.output) == {"user_id": user_id}
    assert ada.open("/dashboard").url.endswith("/login?next=%2Fdashboard"), "signed out"
    assert not is_let_in(ada, "ada@example.org", "the old password")
    assert is_let_in(ada, "ada@example.org", "the new password")
    assert "/dashboard/password" in ada.open("/dashboard").url, "it has to be changed first"
    asked = run("reset-password", "ada@example.org", input="asked for\nasked for\n")
    assert asked.output.endswith("ada@example.org has a new password and is signed out everywhere\n")
    assert is_let_in(Browser(local), "ada@example.org", "asked for")


def test_accounts_are_disabled_and_enabled_again(run, local, grant):
    told = run("disable", grant.email, "--json")
    assert json.loads(told.output) == {"kind": "user", "id": grant.user_id, "disabled": True}
    assert grant.list().json()["code"] == "no_grant"
    assert not is_let_in(Browser(local), grant.email, "a long password")
    assert f"user       {grant.user_id}  {grant.email}  (disabled)\n" in run("list").output
    assert run("disable", grant.user_id, "--enable").output == f"user {grant.user_id} is enabled\n"
    assert grant.list().status_code == 200
    assert is_let_in(Browser(local), grant.email, "a long password")
    assert run("disable", local.client_id[:20]).output == f"developer {local._developer_id} is disabled\n"
    assert grant.list().status_code == 401
    run("disable", local._developer_id, "--enable")
    assert Caller(local.base_url, local.api_key).get("/access-requests").status_code == 200


def test_a_tag_is_switched_off_and_on(run, grant):
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
    unknown = run("disable-tag", grant.email, "coins", code=1)
    assert unknown.stderr == "Error: this user has no tag coins\n"


def test_a_backup_serves_what_the_service_held(run, local, grant, tmp_path):
    memory_id = grant.create("Likes tea", tags=["drinks"])["id"]
    copy = tmp_path / "first"
    told = json.loads(run("backup", str(copy), "--json").output)
    assert (told["folder"], set(told["files"])) == (str(copy), {"master.key", "memframe.db"})
    assert {stat.S_IMODE(path.stat().st_mode) for path in (copy, *copy.iterdir())} == {0o700, 0o600}
    grant.create("Likes coffee")
    with run_local(copy) as restored:
        grant.call = Caller(restored.base_url, local.api_key)
        assert grant.ids() == grant.ids(searchQuery="tea") == [memory_id]
    again = run("backup", str(copy), code=1)
    assert again.stderr == f"Error: {copy} already exists; name a new folder\n"
    assert run("backup", str(tmp_path / "second"), "--without-key").output.startswith("memframe.db in ")
    with pytest.raises(ConfigError, match=r"its master key file .* is missing"):
        open_deployment(tmp_path / "second")


def test_a_backup_that_fails_leaves_nothing(run, tmp_path):
    (tmp_path / "file").write_text("")
    answer = run("backup", tmp_path / "file" / "first", code=1)
    assert "Traceback" not in answer.output
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_master_key_may_lie_elsewhere(tmp_path):
    elsewhere = tmp_path / "keys" / "memframe.key"
    elsewhere.parent.mkdir(mode=0o700)
    database = f"sqlite:///{tmp_path / 'some.db'}"
    place = ("--database", database, "--master-key-file", elsewhere, "--data", tmp_path / "none")
    open_deployment(tmp_path / "none", database_url=database, key_file=elsewhere).close()
    invoke("service", "add-user", "a@b.example", *place, input="long enough\n" * 2)
    assert elsewhere.exists()
    assert not (tmp_path / "none").exists()


def test_what_a_person_would_download_is_exported(run, local, grant, tmp_path):
    grant.create("Likes tea", title="Tea")
    for name in ("a.json", "a.md"):
        exported = run("export-user", tmp_path / name, "--user", grant.email.upper(), "--json")
        assert json.loads(exported.output)["user_id"] == grant.user_id
        assert (tmp_path / name).stat().st_mode & 0o077 == 0
    assert json.loads((tmp_path / "a.json").read_text())["memories"][0]["content"] == "Likes tea"
    assert "Likes tea" in (tmp_path / "a.md").read_text()
    for path, user, said in (
        ("a.csv", grant.email, "must end in .json or .md"),
        ("a.json", grant.email, "cannot be written (File exists)"),
        ("no/a.json", grant.email, "No such file"),
        ("b.json", "nobody@a.example", "there is no account nobody@a.example"),
        ("b.json", local.client_id, "is an application"),
    ):
        assert said in run("export-user", tmp_path / path, "--user", user, code=1).stderr
    assert not (tmp_path / "b.json").exists()


def test_an_account_is_erased_after_the_number_of_its_memories_was_confirmed(run, grant):
    grant.create()
    erase = ("erase-user", "--user", grant.email)
    for confirm, said in (((), "to continue, give --confirm 1"), (("--confirm", 2), "has 1 memories, not 2")):
        assert said in run(*erase, *confirm, code=1).stderr
    assert len(grant.ids()) == 1
    receipt = json.loads(run(*erase, "--confirm", 1, "--json").output)
    assert (receipt["user_id"], receipt["memories"], receipt["keys"]) == (grant.user_id, 1, 1)
    assert len(bytes.fromhex(receipt["receipt"])) == 32
    run(*erase, "--confirm", 0, code=1)


@pytest.mark.parametrize(
    "person", [("{email}",), ("--user", "{email}"), ("{user_id}",), ("--user", "{beginning}")]
)
def test_a_person_is_named_by_address_or_id_in_one_way_for_all_commands(run, grant, person):
    named = [
        part.format(email=grant.email, user_id=grant.user_id, beginning=grant.user_id[:13]) for part in person
    ]
    assert run("rotate-key", *named).output == "key_version 2: 0 memories sealed again\n"
    assert run("reset-password", *named, "--password-stdin", input="the new password\n").output
    assert "--confirm 0" in run("erase-user", *named, code=1).stderr
    for wrong in ((), (grant.email, "--user", grant.email)):
        assert "Give one person" in run("erase-user", *wrong, code=2).stderr
    assert run("erase-user", *named, "--confirm", 0).output
