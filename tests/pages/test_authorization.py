"""The authorization server gives codes and tokens to whom they belong, once, and to nobody else.

The names follow the RFC that asks for the behaviour: 6749 (OAuth), 7636 (PKCE), 8252 (native programs),
9207 (issuer), 9700 (best current practice).
"""

import base64
import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests

from memframe.service.store.accounts import Developer
from tests.pages.conftest import CALLBACK, Browser

VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
PKCE = {"code_challenge": CHALLENGE, "code_challenge_method": "S256"}


def fields_of(address):
    return dict(parse_qsl(urlsplit(address).query, keep_blank_values=True))


@pytest.fixture
def other_client(service):
    """What another application authenticates with."""
    other = service._deployment.add_developer("Another")
    return {"client_id": other.client_id, "client_secret": other.client_secret.reveal()}


# The whole way


@pytest.mark.asvs("7.6.2", "10.7.1")
@pytest.mark.rfc(
    "6749 3.1a", "6749 3.1b", "6749 5.1a", "6749 5.1b", "8252 8.6a", "9207 2a", "9700 2.1e", "9700 4.12a"
)
def test_the_way_from_the_link_to_the_memory_key(service, stranger, email):
    answer = stranger.ask(follow=False)
    assert answer.status_code == 303
    assert answer.headers["Location"].startswith("/login?next=%2Foauth%2Fauthorize%3F")
    assert "My application" in stranger.ask(state="where I was").text
    consent = stranger.sign_in(email)
    assert "/oauth/authorize?" in consent.url
    assert "127.0.0.1:51004" in consent.text
    answer = stranger.send(stranger.form("/oauth/authorize"), follow=False, decision="allow")
    assert answer.status_code == 303
    assert answer.headers["Location"].startswith("http://127.0.0.1:51004/callback?")
    back = fields_of(answer.headers["Location"])
    assert (back["state"], back["iss"]) == ("where I was", service.auth_url)
    tokens = stranger.exchange(back["code"])
    assert (tokens.status_code, tokens.headers["Cache-Control"]) == (200, "no-store")
    assert tokens.headers["Pragma"] == "no-cache"
    first = tokens.json()
    assert set(first) == {"access_token", "token_type", "expires_in", "refresh_token", "memory_key"}
    assert (first["token_type"], first["expires_in"]) == ("bearer", 3600)
    second = stranger.exchange(stranger.consent()["code"]).json()
    assert first["memory_key"] == second["memory_key"], "it stays the same"
    assert first["access_token"] != second["access_token"]


@pytest.mark.rfc("6749 4.1.2.1b", "9207 2a")
def test_a_user_who_refuses_is_reported_as_such(service, reader):
    back = reader.consent("deny", state="s-2")
    assert (back["error"], back["state"], back["iss"]) == ("access_denied", "s-2", service.auth_url)
    assert "code" not in back


@pytest.mark.asvs("1.2.2")
@pytest.mark.rfc("6749 3.1c", "6749 4.1.2d", "6749 10.14a")
@pytest.mark.parametrize("state", ["x" * 2000, "a b+c&d=é%00", '"><script>', "", None])
def test_rfc_6749_the_state_comes_back_as_it_was_sent(reader, state):
    assert reader.consent(state=state).get("state") == (state or None)


@pytest.mark.rfc("6749 3.1d", "6749 3.3a")
def test_unknown_parameters_and_scopes_are_ignored(reader):
    code = reader.consent(scope="memories.read", nonce="n", prompt="consent")["code"]
    assert "scope" not in reader.exchange(code).json()


# Redirect addresses

REGISTERED = "http://127.0.0.1/callback"
SAME_ADDRESSES = {
    REGISTERED: [REGISTERED, "http://127.0.0.1:1/callback", "http://127.0.0.1:65535/callback"],
    "http://127.0.0.1:8000/callback": ["http://127.0.0.1:9000/callback"],
    "http://[::1]/callback": ["http://[::1]:51004/callback"],
    "http://127.0.0.1/callback?a=1&b=2": ["http://127.0.0.1:5/callback?a=1&b=2"],
    "http://127.0.0.1": ["http://127.0.0.1:51004"],
    "https://app.example/cb?x=1": ["https://app.example/cb?x=1"],
    "http://localhost:8000/cb": ["http://localhost:8000/cb"],
}
OTHER_ADDRESSES = {
    REGISTERED: [
        "http://127.0.0.1:51004/callback?x=1", "http://127.0.0.1:51004/callback/", "http://127.0.0.1:51004/Callback",
        "http://127.0.0.1:51004/x/%2e%2e/callback", "http://127.0.0.1:51004", "http://127.0.0.1:51004/callback#part",
        "https://127.0.0.1:51004/callback", "HTTP://127.0.0.1:51004/callback", "http://localhost:51004/callback",
        "http://[::1]:51004/callback", "http://127.0.0.2:51004/callback", "http://127.1:51004/callback",
        "http://127.0.0.1:/callback", "http://127.0.0.1:0/callback", "http://127.0.0.1:65536/callback",
        "http://127.0.0.1:\u0665/callback", "http://127.0.0.1.evil.example/callback",
        "http://127.0.0.1:80@evil.example/callback", "http://127.0.0.1\\@evil.example/callback",
        " http://127.0.0.1/callback", "http://127.0.0.1/callback\n",
    ],
    "http://127.0.0.1/callback?a=1&b=2": ["http://127.0.0.1:5/callback?b=2&a=1", "http://127.0.0.1:5/callback"],
    "https://app.example/cb": [
        "https://app.example:443/cb", "https://APP.example/cb", "https://app.example./cb",
        "https://app.example.evil.example/cb", "//app.example/cb", "/cb", "javascript:alert(1)",
    ],
    "http://localhost:8000/cb": ["http://localhost:9000/cb"],
}  # fmt: skip


@pytest.mark.any_database
@pytest.mark.rfc("8252 7.3a")
@pytest.mark.parametrize("registered", SAME_ADDRESSES)
def test_rfc_8252_an_address_matches_itself_and_on_loopback_any_port(service, stranger, registered):
    client_id = service._deployment.add_developer("Notes", registered).client_id
    for sent in SAME_ADDRESSES[registered]:
        answer = stranger.ask(client_id=client_id, redirect_uri=sent, follow=False)
        assert (answer.status_code, urlsplit(answer.headers["Location"]).path) == (303, "/login")


@pytest.mark.any_database
@pytest.mark.asvs("3.7.2", "10.4.1")
@pytest.mark.rfc(
    "6749 3.1.2.3b", "6749 3.1.2.4a", "6749 4.1.2.1a", "6749 10.15a", "8252 8.4a", "9700 2.1a", "9700 2.1b"
)
@pytest.mark.parametrize("registered", OTHER_ADDRESSES)
def test_rfc_6749_nobody_is_sent_to_an_address_that_is_not_registered(service, stranger, registered):
    client_id = service._deployment.add_developer("Notes", registered).client_id
    for sent in OTHER_ADDRESSES[registered]:
        assert_link_is_refused(stranger.ask(client_id=client_id, redirect_uri=sent, follow=False))


def assert_link_is_refused(answer):
    assert (answer.status_code, "Location" in answer.headers) == (400, False)
    assert "This link does not work" in answer.text


@pytest.mark.any_database
@pytest.mark.rfc("6749 4.1.2.1a")
@pytest.mark.parametrize("client_id", [None, "", "mfc_unknown", "\0", "é"])
def test_rfc_6749_nobody_is_sent_anywhere_for_an_unknown_client(stranger, client_id):
    assert_link_is_refused(stranger.ask(client_id=client_id, follow=False))


@pytest.mark.rfc("6749 3.1.2.3a")
def test_only_a_client_with_one_address_may_leave_it_out(service, reader):
    code = reader.consent(redirect_uri=None)["code"]
    assert reader.exchange(code, redirect_uri=None).status_code == 200
    other = service._deployment.add_developer("Notes", "https://notes.example.org/cb", REGISTERED)
    assert_link_is_refused(reader.ask(client_id=other.client_id, redirect_uri=None, follow=False))


@pytest.mark.rfc("6749 3.1.2b")
def test_the_query_of_a_redirect_address_is_kept(service, reader):
    address = "https://notes.example.org/cb?from=memframe"
    other = service._deployment.add_developer("Notes", address)
    for decision, name in (("allow", "code"), ("deny", "error")):
        back = reader.consent(decision, client_id=other.client_id, redirect_uri=address)
        assert back["from"] == "memframe"
        assert back[name]


# Requests that are refused at the client


@pytest.mark.any_database
@pytest.mark.asvs("10.4.4", "10.4.6")
@pytest.mark.rfc("6749 3.1.1a", "6749 4.1.2.1b", "7636 4.4.1a", "7636 7.2a", "9207 2a", "9207 2b")
@pytest.mark.rfc("9700 2.1.1f", "9700 2.1.2a", "9700 4.11.2a")
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response_type": None}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code token"}, "unsupported_response_type"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"code_challenge": CHALLENGE}, "invalid_request"),
        ({"code_challenge": CHALLENGE, "code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": "S256"}, "invalid_request"),
        ({"code_challenge": CHALLENGE[:-1], "code_challenge_method": "S256"}, "invalid_request"),
        ({"code_challenge": "é" * 43, "code_challenge_method": "S256"}, "invalid_request"),
    ],
)
def test_other_errors_are_told_to_the_client_with_state_and_issuer(service, stranger, changes, error):
    answer = stranger.ask(**changes, follow=False)
    assert answer.status_code == 303
    assert answer.headers["Location"].startswith("http://127.0.0.1:51004/callback?")
    back = fields_of(answer.headers["Location"])
    assert (back["error"], back["state"], back["iss"]) == (error, "s-1", service.auth_url)


@pytest.mark.asvs("1.1.1", "15.3.7")
@pytest.mark.rfc("6749 3.1e")
def test_a_query_that_cannot_be_read_exactly_or_names_something_twice_is_refused(stranger):
    for query in ("state=%ff", "state=%00", "&".join(f"a{n}=1" for n in range(100))):
        assert stranger.open(f"/oauth/authorize?{query}", allow_redirects=False).status_code == 400
    for name in ("client_id", "redirect_uri", "state", "code_challenge", "response_type"):
        answer = stranger.ask(**PKCE | {name: ["once", "again"]}, follow=False)
        assert (answer.status_code, "comes more than once" in answer.text) == (400, True)


# The exchange


@pytest.mark.any_database
@pytest.mark.asvs("10.4.4", "10.4.10")
@pytest.mark.rfc("6749 3.2.1a", "6749 4.1.3a", "6749 5.2a", "6749 10.6a")
@pytest.mark.rfc("9700 2.1.1c", "9700 2.4a", "9700 2.5a", "9700 4.1.3a")
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"redirect_uri": "http://127.0.0.1:51005/callback"}, "invalid_grant"),
        ({"redirect_uri": None}, "invalid_grant"),
        ({"code": "é"}, "invalid_grant"),
        ({"code": None}, "invalid_request"),
        ({"code_verifier": VERIFIER}, "invalid_grant"),
        ({"grant_type": None}, "invalid_request"),
        ({"grant_type": "password", "username": "u", "password": "p"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, "unsupported_grant_type"),
        ({"client_secret": "wrong"}, "invalid_client"),
        ({"client_secret": None}, "invalid_client"),
        ({"client_id": None}, "invalid_client"),
        ({"client_id": "mfc_unknown"}, "invalid_client"),
    ],
)
def test_rfc_6749_a_wrong_exchange_is_refused_and_costs_the_code_nothing(reader, changes, error):
    code = reader.consent()["code"]
    refused = reader.exchange(**{"code": code, **changes})
    assert refused.status_code == (401 if error == "invalid_client" else 400)
    assert refused.json()["error"] == error
    assert refused.json()["error_description"]
    assert refused.headers["Cache-Control"] == "no-store"
    assert ("WWW-Authenticate" in refused.headers) == (error == "invalid_client")
    assert reader.exchange(code).status_code == 200


@pytest.mark.rfc("6749 4.1.2c")
def test_a_code_belongs_to_one_client_and_a_disabled_one_gets_neither_codes_nor_tokens(
    service, reader, other_client
):
    code = reader.consent()["code"]
    assert reader.exchange(code, **other_client).json()["error"] == "invalid_grant"
    assert reader.exchange(code).status_code == 200
    code = reader.consent(client_id=other_client["client_id"])["code"]
    accounts = service._deployment.store.accounts
    other = accounts.developer(client_id=other_client["client_id"])
    accounts.set_disabled(Developer, other.id, disabled=True)
    assert reader.exchange(code, **other_client).json()["error"] == "invalid_client"
    assert_link_is_refused(reader.ask(client_id=other.client_id, follow=False))


@pytest.mark.rfc("6749 2.3.1a")
def test_rfc_6749_a_client_may_authenticate_by_http_basic(service, reader):
    code = reader.consent()["code"]
    by_header = {"auth": (service.client_id, service.client_secret), "client_id": None, "client_secret": None}
    assert reader.exchange(code, **by_header).status_code == 200


@pytest.mark.rfc("6749 2.3a")
@pytest.mark.parametrize(
    ("header", "changes", "error"),
    [
        ("!!!", {"client_secret": None}, "invalid_client"),
        (base64.b64encode(b"\xff:\xff").decode(), {"client_secret": None}, "invalid_client"),
        (base64.b64encode(b"mfc_1%00:x").decode(), {"client_secret": None}, "invalid_client"),
        (base64.b64encode(b"mfc_1:x").decode(), {"client_secret": None}, "invalid_client"),
        (base64.b64encode(b"mfc_1:x").decode(), {}, "invalid_request"),
    ],
)
def test_rfc_6749_a_bad_header_or_two_ways_at_once_are_refused(stranger, header, changes, error):
    answer = stranger.exchange("c", headers={"Authorization": f"Basic {header}"}, **changes)
    assert answer.json()["error"] == error


@pytest.mark.rfc("6749 3.2a", "6749 3.2b", "6749 4.1.2.1c")
def test_a_body_that_is_no_plain_form_is_refused_and_nothing_is_given_out_by_get(service):
    form = "application/x-www-form-urlencoded"
    for body, kind in (
        (b'{"grant_type": "authorization_code"}', "application/json"), (b"grant_type=a&grant_type=a", form),
        (b"grant_type=%ff", form), (b"\xff\xfe", form), (b"", form), (b"%22%5C%C3%A9%0A=1&%22%5C%C3%A9%0A=2", form),
    ):  # fmt: skip
        answer = requests.post(
            f"{service.auth_url}/oauth/token", body, headers={"Content-Type": kind}, timeout=20
        )
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
        assert re.fullmatch(r"[\x20-\x21\x23-\x5b\x5d-\x7e]+", answer.json()["error_description"])
    assert requests.get(f"{service.auth_url}/oauth/token", timeout=20).status_code == 405


@pytest.mark.rfc("6749 2.3.1b")
def test_rfc_6749_a_client_secret_in_the_address_is_none(service, reader):
    form = {"grant_type": "authorization_code", "code": reader.consent()["code"], "redirect_uri": CALLBACK}
    secrets = {"client_id": service.client_id, "client_secret": service.client_secret}
    answer = requests.post(f"{service.auth_url}/oauth/token", data=form, params=secrets, timeout=20)
    assert answer.json()["error"] == "invalid_client"


# PKCE


@pytest.mark.any_database
@pytest.mark.asvs("10.4.6")
@pytest.mark.rfc("7636 4.4a", "7636 4.6a", "9700 2.1.1c", "9700 4.5.3a", "7636 4.2b", "9700 2.1.1b")
@pytest.mark.parametrize("verifier", [None, "w" * 43, "v" * 42, "v" * 129, VERIFIER + "é", CHALLENGE])
def test_rfc_7636_without_the_verifier_a_challenged_code_is_worth_nothing(reader, verifier):
    code = reader.consent(**PKCE)["code"]
    refused = reader.exchange(code, code_verifier=verifier)
    assert refused.status_code == 400
    assert refused.json()["error"] == ("invalid_grant" if verifier else "invalid_request")
    assert reader.exchange(code, code_verifier=VERIFIER).status_code == 200


# Once, in time, or not at all


@pytest.mark.asvs("10.4.2")
@pytest.mark.rfc("6749 4.1.2b")
def test_rfc_9700_of_fifty_exchanges_at_the_same_moment_one_wins(reader):
    code = reader.consent()["code"]
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: reader.exchange(code), range(50)))
    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 49
    assert {answer.json()["error"] for answer in answers if answer.status_code == 400} == {"invalid_grant"}


@pytest.mark.asvs("10.4.2", "10.4.5")
@pytest.mark.rfc("6749 4.1.2b", "9700 2.2.2a", "9700 4.14.2a")
def test_rfc_9700_a_code_or_refresh_token_that_comes_again_revokes_what_it_gave(reader):
    code = reader.consent()["code"]
    first = reader.exchange(code).json()
    assert reader.exchange(code).json()["error"] == "invalid_grant"
    assert reader.refresh(first["refresh_token"]).json()["error"] == "invalid_grant"
    first = reader.exchange(reader.consent()["code"]).json()
    second = reader.refresh(first["refresh_token"], scope="anything").json()
    assert second["memory_key"] == first["memory_key"]
    third = reader.refresh(second["refresh_token"]).json()
    for token in (first, second, third):
        assert reader.refresh(token["refresh_token"]).json()["error"] == "invalid_grant"


@pytest.mark.asvs("10.4.3")
@pytest.mark.rfc("6749 4.1.2a")
def test_a_code_lives_sixty_seconds(timed, set_clock):
    browser = Browser(timed)
    browser.sign_in("ada@pages.example")
    in_time, late = browser.consent()["code"], browser.consent()["code"]
    set_clock.advance(seconds=59)
    assert browser.exchange(in_time).status_code == 200
    set_clock.advance(seconds=1)
    assert browser.exchange(late).json()["error"] == "invalid_grant"


@pytest.mark.rfc("6749 2.3.1c")
def test_the_sixty_first_call_in_a_minute_has_to_wait(timed, set_clock):
    browser = Browser(timed)
    answers = [browser.exchange("c").status_code for _ in range(61)]
    assert answers == [400] * 60 + [429]
    refused = browser.exchange("c")
    assert (refused.json()["error"], refused.headers["Retry-After"]) == ("too_many_requests", "60")
    by_header = {"client_id": None, "client_secret": None, "auth": (timed.client_id, "wrong")}
    assert browser.exchange("c", **by_header).status_code == 429
    other = timed._deployment.add_developer("Another application")
    secrets = {"client_id": other.client_id, "client_secret": other.client_secret.reveal()}
    assert browser.exchange("c", **secrets).status_code == 400
    set_clock.advance(seconds=60)
    assert browser.exchange("c").status_code == 400


# Refreshing


@pytest.mark.rfc("6749 6a", "6749 10.4a")
def test_a_refresh_token_belongs_to_one_client_and_an_access_token_refreshes_nothing(reader, other_client):
    tokens = reader.exchange(reader.consent()["code"]).json()
    assert reader.refresh(tokens["refresh_token"], **other_client).json()["error"] == "invalid_grant"
    assert reader.refresh(tokens["access_token"]).json()["error"] == "invalid_grant"
    assert reader.refresh(None).json()["error"] == "invalid_request"
    assert reader.refresh(tokens["refresh_token"]).status_code == 200


@pytest.mark.asvs("10.4.8")
@pytest.mark.rfc("9700 4.14.2b")
def test_a_refresh_token_ends_after_thirty_days_and_refreshing_half_a_year_after_the_consent(
    timed, set_clock
):
    browser = Browser(timed)

    def consent():
        browser.sign_in("ada@pages.example")
        return browser.exchange(browser.consent()["code"]).json()

    def refresh_after(tokens, **passed):
        set_clock.advance(**passed)
        return browser.refresh(tokens["refresh_token"]).json()

    assert refresh_after(consent(), days=30)["error"] == "invalid_grant"
    tokens = consent()
    for _ in range(8):
        tokens = refresh_after(tokens, days=20)
    last = refresh_after(tokens, days=19, hours=23)
    assert refresh_after(last, hours=1)["error"] == "invalid_grant"
    assert "memory_key" in consent()


# What a client can read beforehand


@pytest.mark.rfc("9207 2.3a", "9700 2.1.1e", "9700 2.6a")
def test_rfc_8414_the_server_describes_itself(service):
    told = requests.get(f"{service.auth_url}/.well-known/oauth-authorization-server", timeout=20).json()
    assert told.items() >= {
        "issuer": service.auth_url, "token_endpoint": f"{service.auth_url}/oauth/token",
        "authorization_response_iss_parameter_supported": True,
    }.items()  # fmt: skip
    assert told["code_challenge_methods_supported"] == ["S256"]


@pytest.mark.rfc("6749 4.1.2f")
def test_the_sizes_of_codes_and_tokens_are_those_of_the_documentation(service, reader):
    code = reader.consent()["code"]
    made = {"code": code, "client_id": service.client_id, "client_secret": service.client_secret}
    made |= reader.exchange(code).json() | {"API key": service.api_key}
    page = (Path(__file__).parents[2] / "docs/reference/formats.md").read_text()
    sizes = dict(re.findall(r"^\| `?([^|`]+)`? \| (\d+) characters \|$", page, re.MULTILINE))
    assert sizes == {name: str(len(made[name])) for name in sizes}
    assert set(sizes) == set(made) - {"token_type", "expires_in"}
