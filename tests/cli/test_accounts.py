"""`memframe service`: what an operator does with accounts, while the service runs."""

import json

import pytest
from click.testing import CliRunner

from memframe.cli import main
from memframe.secret import Secret
from memframe.service import run_local
from tests.conftest import CHEAP_HASHER
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
    assert run("rotate-key", grant.email).output == "key_version 3: 1 memories sealed again\n"


def test_a_user_who_is_not_there_is_named(running):
    _, run = running
    answer = run("rotate-key", "nobody@example.org")
    assert answer.exit_code == 1
    assert answer.stderr == "Error: there is no user nobody@example.org; `memframe service list` shows all\n"


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


def test_a_password_may_have_any_letters(running):
    local, run = running
    assert run("add-user", "a@b.example", "--password-stdin", input="pässwörd ☕\n".encode()).exit_code == 0
    stored = local._deployment.store.accounts.user_by_email("a@b.example").password_hash
    assert local._deployment.passwords.matches(Secret("pässwörd ☕"), stored)
