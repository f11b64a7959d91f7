"""The decisions of the service as tables."""

from pathlib import Path

import pytest
from litestar import Request

from memframe.errors import ConfigError, MemframeError
from memframe.service import throttle, validation
from memframe.service.deployment import TOKEN_CALLS_PER_MINUTE
from memframe.service.throttle import address_of
from memframe.wire import REQUEST_STATUSES


@pytest.mark.asvs("2.3.1")
def test_there_are_three_moves_and_no_other():
    moves = {(before, after) for after in REQUEST_STATUSES for before in validation.states_before(after)}
    assert moves == {("pending", "approved"), ("pending", "rejected"), ("approved", "revoked")}


@pytest.mark.parametrize(
    ("check", "refused", "said"),
    [
        (validation.check_public_url, "https://a.example.org/path", "^the public address "),
        (validation.check_public_url, "http://a.example.org", "^the public address "),
        *(
            (validation.check_email, email, "must look like")
            for email in ("", "ada@", "@b", "a b@c", "a@b@c", "a\n@b", "a" * 320 + "@b")
        ),
        *((validation.check_developer_name, name, "developer's name") for name in ("", "  ", "x" * 201)),
        (validation.check_developer_name, "Notes\ud800", "must"),
        (validation.check_new_password, "\0 a long password", "must"),
    ],
)
def test_what_an_operator_enters_is_checked(check, refused, said):
    with pytest.raises(MemframeError, match=said):
        check(refused)


@pytest.mark.asvs("6.1.1")
def test_the_limits_are_documented():
    page = (Path(__file__).parents[2] / "docs" / "howto" / "deploy.md").read_text()
    documented = [
        f"| {throttle.PER_ADDRESS_AND_EMAIL.n} failed sign-ins per hour | network address and e-mail",
        f"| {throttle.PER_ADDRESS.n} failed sign-ins per hour | network address |",
        f"| {throttle.PER_EMAIL.n:,} failed sign-ins per hour | e-mail",
        (
            f"| {TOKEN_CALLS_PER_MINUTE} token calls per minute | network address and account; "
            f"{throttle.ACCOUNTS_PER_ADDRESS * TOKEN_CALLS_PER_MINUTE} per network address"
        ),
        f"| {throttle.SEARCHES_PER_DEVELOPER} simultaneous searches | developer",
        f"| {throttle.DOWNLOADS_PER_USER} simultaneous downloads | person",
    ]
    assert [line for line in documented if line not in page] == []


@pytest.mark.parametrize(
    ("client", "address"),
    [
        (("10.0.0.7", 51004), "10.0.0.7"),
        (("2001:db8:1:2:3:4:5:6", 51004), "2001:db8:1:2::/64"),
        (("fe80::1%eth0", 51004), "fe80::/64"),
        (None, ""),
    ],
)
def test_a_site_with_many_addresses_is_one(client, address):
    assert address_of(Request({"type": "http", "client": client})) == address


KNOWN = (
    "password",
    "12345678",
    "qwertyuiop",
    "iloveyou",
    "sunshine",
    "1q2w3e4r",
    "baseball",
    "trustno1",
    "superman",
)


@pytest.mark.asvs("6.2.4")
def test_the_most_common_passwords_are_refused_however_they_are_written():
    page = Path(validation.__file__).with_name("common_passwords.txt").read_text("utf-8")
    listed = [line for line in page.splitlines() if not line.startswith("#")]
    allowed = [word for word in listed if len(word) >= validation.MIN_PASSWORD_CHARS]
    assert len(allowed) >= 3000, "of those that the least length leaves"
    for word in {*allowed, *KNOWN}:
        for text in (word, word.upper(), f" {word}\t"):
            with pytest.raises(ConfigError, match="most common"):
                validation.check_new_password(text)
