"""No answer: whether it is certain that nothing was sent, which decides whether a write may be repeated."""

import socket

import pytest

import memframe as mf
from memframe import wire
from memframe.client import connections
from memframe.client.transport import Transport
from memframe.secret import SecretBytes
from tests.faults import cut
from tests.strangers import USER_ID, at_once

BODY = SecretBytes(b"{}")


def silent(url):
    with pytest.raises(mf.NoAnswerError) as caught:
        Transport().send("POST", url, data=BODY)
    return caught.value


@pytest.fixture
def closed_port():
    """A port at which nobody listens, and which nobody is given meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.mark.parametrize("has_proxy", [False, True])
def test_refused_unknown_or_behind_no_proxy_nothing_was_sent(monkeypatch, closed_port, has_proxy):
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{closed_port}" if has_proxy else "")
    for url in (f"http://127.0.0.1:{closed_port}/", "https://no-such-host.invalid/"):
        assert not silent(url).sent


def test_no_connection_in_time_nothing_was_sent(monkeypatch):
    monkeypatch.setattr(connections, "CONNECT_TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = full.getsockname()
        with socket.create_connection(address):  # its queue is full now
            error = silent(f"http://127.0.0.1:{address[1]}/")
    assert "no connection within" in str(error)
    assert not error.sent


def test_a_token_that_could_not_be_had_is_not_a_write_that_was_sent(stranger):
    stranger.always(wire.ISSUE_TOKEN, cut)
    client = mf.Client(stranger.base_url, mf.Secret("mf_key"), transport=at_once())
    with pytest.raises(mf.NoAnswerError) as caught:
        client.delete_memory_blob(USER_ID, "m1")
    assert not caught.value.sent
    assert not stranger.requests_to(wire.DELETE_MEMORY)
