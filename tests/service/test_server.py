"""A process that serves for days does for each request what has to be done, and keeps nothing for silent clients."""

import gc
import json
import socket
from contextlib import ExitStack, closing, contextmanager
from urllib.parse import urlsplit

import pytest
import requests

from memframe.service import bounds
from memframe.service.app import AppFactory, create_app
from memframe.service.deployment import Addresses, ServiceConfig, open_deployment
from memframe.service.local import serving_in_thread
from memframe.service.server import listen, make_server
from tests.conftest import serving_tests
from tests.service.conftest import Caller, Grant


@pytest.fixture
def unfrozen():
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("unfrozen")
def test_a_round_of_the_collector_leaves_out_what_was_there_when_it_began_to_serve(tmp_path):
    open_deployment(tmp_path).close()
    app = AppFactory(ServiceConfig(tmp_path), Addresses("http://127.0.0.1:8765"), log_json=False).make()
    assert len(gc.get_objects()) < 1000 < gc.get_freeze_count()
    app._app.state.deployment.close()


# --- what a connection may send before it has asked for anything

HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
MIB = b"x" * 1_048_576


@pytest.fixture(scope="module")
def local():
    """A service on SQLite: connections do not depend on the database."""
    with pytest.MonkeyPatch.context() as monkeypatch, serving_tests() as local:
        monkeypatch.setattr(bounds, "CHECK_EVERY_S", 0.2)
        yield local


@contextmanager
def connected(local, timeout=20):
    with socket.create_connection(("127.0.0.1", urlsplit(local.auth_url).port), timeout) as connection:
        yield connection


def answered(connection):
    """Everything that comes until the service closes the connection; nothing where a reset may have cut it."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:  # it was closed while it was still being sent to
        return b""
    return b"".join(parts)


def status_of(answer):
    return int(answer.split(maxsplit=2)[1]) if answer else None


def send_all(connection, *parts):
    """Send until everything is sent or the other side has had enough; the bytes that went."""
    n_sent = 0
    try:
        for part in parts:
            connection.sendall(part)
            n_sent += len(part)
    except OSError:
        pass
    return n_sent


CHUNKED = HEAD.replace(b"GET", b"POST") + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "a header": [HEAD, b"X-Long: ", MIB],
    "a request target": [b"GET /", MIB],
    "blank lines": [b"\r\n" * 524_288],
    "trailers": [CHUNKED + b"0\r\n", b"X-Some: thing\r\n" * 70_000],
    "a chunk extension": [CHUNKED + b"1;", MIB],
}  # fmt: skip


@pytest.mark.parametrize("parts", ENDLESS.values(), ids=ENDLESS)
def test_headers_trailers_and_targets_beyond_the_bound_are_refused(local, parts):
    first, *rest = parts
    with connected(local) as connection:
        n_sent = send_all(connection, first, *rest * 64)
        answer = answered(connection)
    assert n_sent < 32 * 2**20, "the service went on reading"
    assert answer == b"" or status_of(answer) in {405, 431}, answer[:200]
    assert status_of(answer) != 431 or (b"connection: close" in answer and b"65,536 bytes" in answer)


def test_a_trailer_does_not_pass_for_a_header(local):
    token = Caller(local.base_url, local.api_key).token
    lines = [
        "POST /api/v1/access-requests HTTP/1.1", "Host: localhost", "Connection: close",
        "Transfer-Encoding: chunked", "", "2", "{}", "0", f"Authorization: Bearer {token}", "", "",
    ]  # fmt: skip
    with connected(local) as connection:
        send_all(connection, "\r\n".join(lines).encode())
        assert status_of(answered(connection)) == 401


def test_requests_in_advance_are_few(local):
    with connected(local) as connection:
        send_all(connection, (HEAD + b"\r\n") * 5)
        seen = b""
        while seen.count(b"HTTP/1.1 200") < 5:
            seen += connection.recv(65536)
        send_all(connection, (HEAD + b"\r\n") * 5000)
        assert answered(connection).count(b"HTTP/1.1 200") < 5000


# --- who sends nothing, or hardly anything

POST = b"POST /api/v1/auth/token HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture
def impatient(monkeypatch):
    """A service that waits for tenths of what it usually does."""
    for name, seconds in {
        "CHECK_EVERY_S": 0.02, "HEAD_TIMEOUT_S": 0.6, "REQUEST_TIMEOUT_S": 1.0, "KEEP_ALIVE_S": 0.2,
    }.items():  # fmt: skip
        monkeypatch.setattr(bounds, name, seconds)
    with serving_tests() as local:
        yield local


SILENT = {
    b"": None,
    b"GET /healthz HT": 408,
    HEAD + b"X-Some: thi": 408,
    POST + b"Content-Length: 100\r\n\r\n{": 408,
    POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n": 408,
    HEAD + b"\r\n": 200,
    HEAD + b"\r\nGET /heal": 200,
}
"""What may come before a silence, and the status of the answer."""


def test_who_falls_silent_is_let_go(impatient):
    with ExitStack() as stack:
        connections = {sent: stack.enter_context(connected(impatient)) for sent in SILENT}
        for sent, connection in connections.items():
            send_all(connection, sent)
        assert {sent: status_of(answered(connection)) for sent, connection in connections.items()} == SILENT


def test_who_sends_a_byte_now_and_then_is_let_go_too(impatient):
    begun = {HEAD + b"X-Some: ": b"x", POST + b"Content-Length: 1000000\r\n\r\n": b"x", b"\r\n": b"\r\n"}
    with ExitStack() as stack:
        waited_for = {sent: stack.enter_context(connected(impatient, timeout=0.02)) for sent in begun}
        for sent, connection in waited_for.items():
            connection.sendall(sent)
        for _ in range(400):  # 8 seconds of it
            waited_for = {
                sent: connection
                for sent, connection in waited_for.items()
                if is_waited_for(connection, begun[sent])
            }
        assert waited_for == {}


def is_waited_for(connection, drip):
    """Send a little more; whether the service has not closed the connection."""
    try:
        connection.sendall(drip)
        return bool(connection.recv(65536))
    except TimeoutError:
        return True
    except OSError:
        return False


def test_who_does_not_read_the_answer_is_let_go(monkeypatch, impatient):
    monkeypatch.setattr(bounds, "ANSWER_TIMEOUT_S", 0.8)
    grant = Grant(impatient, Caller(impatient.base_url, impatient.api_key))
    for _ in range(16):
        grant.create("x" * 900_000)
    grant.call.http.close()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", urlsplit(impatient.auth_url).port))
        path = f"/api/v1/memory-blobs?user_id={grant.user_id}&limit=16"
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {grant.call.token}\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(12) == b"HTTP/1.1 200"
        monkeypatch.setattr(
            bounds, "MAX_CONNECTIONS", 1
        )  # not before: that of the grant is closed a moment later
        tries = until_let_in(impatient)
    assert tries > 1, "the answer was never in anybody's way"


@pytest.mark.parametrize(
    ("unsent", "has_stalled"),
    [
        ([60_000] * 12, True),
        (range(60_000, 48_000, -1000), True),
        (range(900_000, 0, -75_000), False),
        (range(20_000, 260_000, 20_000), False),
        ([60_000] * 5 + [0] + [60_000] * 5, False),
    ],
    ids=[
        "takes nothing",
        "takes hardly anything",
        "takes a long answer",
        "takes a stream",
        "takes all of it",
    ],
)
def test_who_takes_an_answer_has_not_stalled(monkeypatch, unsent, has_stalled):
    monkeypatch.setattr(bounds, "CHECK_EVERY_S", 5)  # which the service of this module shortens
    watch = bounds.StallWatch()
    assert any(watch.has_stalled(n_bytes) for n_bytes in unsent) == has_stalled


def until_let_in(local, tries=2000):
    """Ask until a connection is not refused; how many it took."""
    for n in range(tries):
        if requests.get(f"{local.auth_url}/healthz", headers={"Connection": "close"}, timeout=20).ok:
            return n + 1
    pytest.fail("the service still holds the connection")


def test_a_crowd_of_connections_is_told_so_and_those_that_are_there_go_on(monkeypatch, local):
    monkeypatch.setattr(bounds, "MAX_CONNECTIONS", 20)
    with ExitStack() as stack:
        many = [stack.enter_context(connected(local)) for _ in range(20)]
        for connection in many:
            connection.sendall(HEAD + b"\r\n")
            assert status_of(connection.recv(65536)) == 200
        with connected(local) as one_more:
            answer = answered(one_more)
        assert status_of(answer) == 503
        assert b"retry-after: " in answer
        many[0].sendall(HEAD + b"\r\n")
        assert status_of(many[0].recv(65536)) == 200
    until_let_in(local)


@pytest.mark.parametrize(
    ("networks", "passes"), [((), 2), (("127.0.0.0/8",), 5)], ids=["counted", "of a proxy"]
)
def test_one_address_holds_a_bounded_number_of_connections_and_a_proxy_any(tmp_path, networks, passes):
    deployment = open_deployment(tmp_path)
    with closing(deployment), listen("127.0.0.1", 0) as listening, ExitStack() as stack:
        app = create_app(deployment, Addresses("https://memories.example"))
        options = {"trusted_proxies": networks, "connections_per_address": 2}
        few = make_server(app, "https://memories.example", **options)
        stack.enter_context(serving_in_thread(few, listening))
        address = listening.getsockname()
        answers = []
        for _ in range(5):
            connection = stack.enter_context(socket.create_connection(address, 20))
            connection.sendall(HEAD + b"\r\n")
            answers.append(connection.recv(65536))
        assert [status_of(answer) for answer in answers] == [200] * passes + [503] * (5 - passes)
        assert passes == 5 or b"Your address has too many connections" in answers[-1]
        assert all(b"strict-transport-security: " in answer for answer in answers)


@pytest.mark.asvs("3.4.1", "3.4.3", "3.4.4")
@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (HEAD + b"x: " + b"y" * 70_000, 431),
        (HEAD + b"x: " + b"y" * 70_000 + b"\r\n\r\n", 431),
        (b"nonsense\r\n\r\n", 400),
        (HEAD, 408),
    ],
)
def test_a_refusal_before_the_application_is_like_every_other(local, monkeypatch, caplog, sent, status):
    monkeypatch.setattr(bounds, "HEAD_TIMEOUT_S", 0.3)
    with connected(local) as connection:
        connection.sendall(sent)
        answer = answered(connection)
    assert status_of(answer) == status
    assert b"content-type: application/problem+json" in answer
    problem = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert (problem["status"], set(problem)) == (status, {"title", "status", "detail", "code"})
    assert "Fatal error" not in caplog.text
    assert b"content-security-policy: default-src 'none'; " in answer
    assert b"x-content-type-options: nosniff" in answer
    assert b"strict-transport-security" not in answer, "over plain http it would be ignored"


# --- health


@pytest.mark.any_database
def test_it_is_well_under_whatever_name_and_no_other_page_is_open_to_all_names(service):
    for path, status in (("/healthz", "ok"), ("/readyz", "ready")):
        for host in ("127.0.0.1", "10.0.0.7:8080", "evil.example"):
            answer = requests.get(service.auth_url + path, headers={"Host": host}, timeout=20)
            assert (answer.status_code, answer.json()) == (200, {"status": status})
    for path in ("/healthz/", "/healthz/x", "/", "/dashboard"):
        answer = requests.get(service.auth_url + path, headers={"Host": "evil.example"}, timeout=20)
        assert answer.status_code == 421
