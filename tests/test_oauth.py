"""The OAuth flow against the real authorization server, and every way in which a pasted answer can be wrong."""

import queue
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

import pytest
import requests

import memframe as mf
from memframe import oauth
from memframe.errors import ConfigError, OAuthError
from memframe.oauth import challenge_of
from memframe.secret import Secret
from tests.strangers import EXCHANGE_CODE


def query_of(address):
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


def test_the_whole_redirected_address_is_exchanged_for_tokens(user):
    flow = user.flow()
    tokens = flow.exchange(user.person.authorize(flow.authorization_url()))
    assert tokens.memory_key.reveal()
    assert tokens.memory_key == user.service.memory_key(user.user_id), (
        "what a test may take without the exchange"
    )
    assert tokens.token_type == "bearer"
    assert "Secret(••••••)" in repr(tokens)
    assert tokens.memory_key.reveal() not in repr(tokens)


def test_a_bare_code_is_exchanged_too(user):
    flow = user.flow()
    redirected = user.person.authorize(flow.authorization_url())
    assert flow.exchange(f"  {query_of(redirected)['code']}\n").memory_key


@pytest.mark.asvs("10.2.1")
@pytest.mark.rfc(
    "6749 4.1.1a", "6749 10.12a", "7636 4.2a", "7636 4.3a", "8252 6a", "9700 2.1.1a", "9700 2.1.1d"
)
def test_each_attempt_has_its_own_state_and_challenge(user):
    flow = user.flow()
    first, second = (query_of(flow.authorization_url()) for _ in range(2))
    assert first["state"] != second["state"]
    assert first["code_challenge"] != second["code_challenge"]
    assert first["code_challenge_method"] == "S256"
    assert len(first["state"]) >= 22  # 128 bits


def test_a_state_of_ones_own_comes_back(user):
    flow = user.flow()
    redirected = user.person.authorize(flow.authorization_url(state="my state/1?"))
    assert query_of(redirected)["state"] == "my state/1?"
    assert flow.exchange(redirected).memory_key


@pytest.mark.parametrize("around", ["<{}>", '"{}"', " {}#_=_\n"])
def test_an_address_may_be_pasted_as_a_mail_or_a_terminal_quotes_and_wraps_it(around, user):
    flow = user.flow()
    redirected = user.person.authorize(flow.authorization_url())
    wrapped = redirected.replace("&", "&\r\n  ", 1)
    assert flow.exchange(around.format(wrapped)).memory_key


def test_without_pkce_a_client_with_a_secret_still_gets_its_tokens(user):
    flow = user.flow(pkce=False)
    address = flow.authorization_url()
    assert "code_challenge" not in address
    assert flow.exchange(user.person.authorize(address)).memory_key


@pytest.mark.asvs("10.1.2", "10.2.1")
@pytest.mark.rfc("6749 10.12a", "9700 2.1c", "9700 4.7.1a")
def test_the_answer_to_an_older_attempt_is_refused(user):
    flow = user.flow()
    redirected = user.person.authorize(flow.authorization_url())
    flow.authorization_url()
    with pytest.raises(OAuthError, match="another attempt") as mixed:
        flow.exchange(redirected)
    assert mixed.value.code == "state_mismatch"
    assert query_of(redirected)["code"] not in str(mixed.value)


@pytest.mark.asvs("10.1.2")
@pytest.mark.rfc("8252 8.9a", "8252 8.10a", "9700 2.1c")
def test_an_address_without_state_is_refused(user):
    flow = user.flow()
    redirected = user.person.authorize(flow.authorization_url())
    with pytest.raises(OAuthError, match="state is missing"):
        flow.exchange(redirected.replace("state=", "other="))


@pytest.mark.rfc("9700 4.2.4b")
def test_a_code_works_once(user):
    flow = user.flow()
    redirected = user.person.authorize(flow.authorization_url())
    flow.exchange(redirected)
    with pytest.raises(OAuthError):
        flow.exchange(redirected)
    with pytest.raises(OAuthError) as used:
        flow.exchange(query_of(redirected)["code"])
    assert used.value.code == "invalid_grant"


@pytest.mark.rfc("6749 4.1.2e", "6749 5.1c", "7636 4.1a", "7636 4.5a", "7636 7.2b")
def test_what_is_unknown_in_an_answer_is_ignored_and_the_verifier_goes_with_the_code(stranger):
    flow = stranger.flow()
    asked = query_of(flow.authorization_url(state="s1"))
    stranger.answer(EXCHANGE_CODE, scope="all", later={"version": 2})
    assert flow.exchange("http://127.0.0.1/callback?code=c&state=s1&later=1").memory_key
    sent = query_of(f"?{stranger.requests[-1].body.decode()}")
    assert re.fullmatch(r"[A-Za-z0-9._~-]{43,128}", sent["code_verifier"])
    assert challenge_of(Secret(sent["code_verifier"])) == asked["code_challenge"]


@pytest.mark.parametrize(
    ("pasted", "code"),
    [
        ("Please see my notes", "not_an_answer"),
        ("def f(): pass", "not_an_answer"),
        ("übersicht", "not_an_answer"),
        ("x" * 5000, "not_an_answer"),
        ("http://127.0.0.1:8888/lab/tree/notes.ipynb", "code_missing"),
        ("https://memory.example/dashboard?tab=2", "code_missing"),
    ],
)
def test_nonsense_that_is_pasted_is_not_sent_and_has_a_reason_of_its_own(user, pasted, code):
    flow = user.flow()
    address = flow.authorization_url()
    with pytest.raises(OAuthError) as refused:
        flow.exchange(pasted)
    assert refused.value.code == code
    assert pasted not in str(refused.value)
    assert flow.exchange(user.person.authorize(address)).memory_key, "the attempt is still open"


@pytest.mark.asvs("10.2.2")
@pytest.mark.rfc("9207 2.4a", "9207 2.4b", "9700 2.1d")
def test_an_answer_of_another_server_is_refused(user):
    flow = user.flow()
    state = query_of(flow.authorization_url())["state"]
    with pytest.raises(OAuthError, match="a different OAuth server"):
        flow.exchange(f"http://127.0.0.1/callback?code=c&state={state}&iss=https%3A%2F%2Fevil.example")


class Printed(queue.SimpleQueue):
    """Standard output whose text another thread can wait for."""

    def write(self, text):
        self.put(text)

    def flush(self):
        pass


@pytest.mark.rfc("6749 3.1.2.5a", "8252 7.3b", "8252 8.3a", "8252 8.10a", "8252 8.12a")
def test_a_listener_on_this_machine_takes_the_answer(user, monkeypatch):
    printed = Printed()
    monkeypatch.setattr("sys.stdout", printed)
    flow = user.flow()
    with ThreadPoolExecutor(1) as background:
        exchanged = background.submit(flow.run_local, timeout_s=20)
        redirected = user.person.authorize(printed.get(timeout=20).split()[-1])
        callback = urlsplit(redirected)
        assert (callback.hostname, callback.port > 1024) == ("127.0.0.1", True)
        for stranger in ("/other", "/callback", "/callback?code=c&state=guessed"):
            assert requests.get(f"http://{callback.netloc}{stranger}", timeout=5).status_code == 404
        page = requests.get(redirected, timeout=5)
        assert exchanged.result(20).memory_key
    with pytest.raises(requests.ConnectionError):  # it listens no longer than it waits
        requests.get(redirected, timeout=5)
    assert query_of(redirected)["code"] not in page.text
    assert "no-store" in page.headers["Cache-Control"]


def dribble(port, hung_up):
    """Send a header, a byte at a time, until the listener hangs up."""
    with socket.create_connection(("127.0.0.1", port)) as connection, suppress(OSError):
        connection.sendall(b"GET /callback HTTP/1.1\r\nX-Slow: ")
        while True:
            connection.sendall(b"x")
            connection.settimeout(0.05)
            with suppress(TimeoutError):
                if not connection.recv(1):
                    break
    hung_up.set()


def test_a_client_that_dribbles_does_not_keep_the_answer_waiting(monkeypatch):
    monkeypatch.setattr(oauth, "CALLBACK_TIMEOUT_S", 0.3)
    hung_up = threading.Event()
    with (
        oauth.RedirectListener("http://127.0.0.1/callback", 20) as listener,
        ThreadPoolExecutor(3) as background,
    ):
        background.submit(dribble, listener.server_port, hung_up)
        waiting = background.submit(listener.wait, "s1", is_wanted=lambda: not hung_up.is_set())
        assert hung_up.wait(10)
        with pytest.raises(OAuthError, match="no answer"):
            waiting.result(10)


def test_a_listener_needs_an_address_of_this_machine():
    flow = mf.OAuthFlow(
        "app", "secret", auth_url="https://auth.example", redirect_uri="https://app.example/cb"
    )
    with pytest.raises(ConfigError, match="not an http address of this machine"):
        flow.run_local()
