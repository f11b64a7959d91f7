"""What stands between client and service: certificates, proxies, netrc files, servers that break HTTP itself."""

import datetime
import gzip
import ipaddress
import socket
import ssl
import threading
import tracemalloc
from contextlib import closing, contextmanager, suppress
from itertools import takewhile

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import memframe as mf
from memframe import wire
from memframe.audit import Question
from memframe.client import connections
from memframe.client.auth import BearerAuth
from memframe.client.transport import READ_ATTEMPTS, Transport
from memframe.secret import Secret, SecretBytes
from tests.clear_errors import Case, assert_clear
from tests.faults import cut
from tests.strangers import SECRETS, TOKEN, USER_ID, at_once, client_of


def read_request(connection):
    """The head of a request. Its body is read too: closing with something unread would reset the connection."""
    with connection.makefile("rb") as stream:
        lines = list(takewhile(bytes.strip, stream))
        fields = dict(line.lower().split(b": ", 1) for line in lines[1:])
        stream.read(int(fields.get(b"content-length", 0)))
    return b"".join(lines)


@contextmanager
def raw_server(answer, wrap=lambda connection: connection):
    """A server that reads each request, sends these bytes and closes; its port and the heads."""
    heads = []
    listening = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            try:
                with wrap(connection) as open_connection:
                    heads.append(read_request(open_connection))
                    with suppress(OSError):  # who sees enough of a long answer hangs up
                        open_connection.sendall(answer)
            except OSError:
                heads.append(b"")  # the client hung up first, which is what a test wants to see

    thread = threading.Thread(target=serve, name="raw-server")
    thread.start()
    try:
        yield listening.getsockname()[1], heads
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def no_answer(attempt, *words):
    return Case(attempt, mf.NoAnswerError, ConnectionError, words)


def tags_at(base_url):
    return lambda: client_of(base_url).tags(USER_ID)


JSON_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
"""It says that it closes, as `raw_server` does: else the next request may be sent to nobody."""

ODD_ANSWERS = {
    "no HTTP at all": b"SSH-2.0-OpenSSH_9.6\r\n",
    "nothing": b"",
    "a hundred thousand headers": b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 100_000 + b"\r\n",
    "a chunk that is cut": JSON_HEAD + b"Transfer-Encoding: chunked\r\n\r\n1000\r\n{",
    "a chunk of no size": JSON_HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}",
    "gzip that is none": JSON_HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    "two lengths that differ": JSON_HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
}


@pytest.mark.parametrize("answer", ODD_ANSWERS.values(), ids=ODD_ANSWERS)
def test_an_answer_that_breaks_http_is_one_that_broke_off(answer):
    with raw_server(answer) as (port, heads):
        attempt = tags_at(f"http://127.0.0.1:{port}/api/v1")
        assert_clear(
            no_answer(attempt, f"127.0.0.1:{port}", "closed the connection in the middle", "Try again")
        )
        assert len(heads) == READ_ATTEMPTS  # the call for a token writes nothing


@contextmanager
def endless(head, piece, pause_s=0.0):
    """A server that after a head goes on sending the same until the client hangs up; its port."""
    hung_up = threading.Event()

    def go_on(connection):
        read_request(connection)
        with suppress(OSError):
            connection.sendall(head)
            while not hung_up.wait(pause_s):
                connection.sendall(piece)
        return connection

    with raw_server(b"", go_on) as (port, _):
        try:
            yield port
        finally:
            hung_up.set()


CHUNKS = JSON_HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
WITHOUT_END = {
    "a status line": (b"HTTP/1.1 200 ", b"OK"),
    "the spaces before a status": (b"", b" "),
    "interim answers that http.client skips": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "interim answers with headers": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
    "a header": (b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x"),
    "the length of a chunk": (CHUNKS, b"0"),
    "the extension of a chunk": (CHUNKS + b"1;", b"x=y;"),
    "trailers": (CHUNKS + b"2\r\n{}\r\n0\r\n", b"X-Trailer: 1\r\n"),
    "a trailer": (CHUNKS + b"2\r\n{}\r\n0\r\n", b"x"),
}


@pytest.mark.parametrize(("head", "piece"), WITHOUT_END.values(), ids=WITHOUT_END)
def test_lines_without_end_are_not_read_on(head, piece):
    with (
        endless(head, piece * 1000) as port,
        closing(Transport()) as transport,
        pytest.raises(mf.NoAnswerError, match="without end") as caught,
    ):
        transport.send("POST", f"http://127.0.0.1:{port}/", data=SecretBytes(b""))
    assert caught.value.sent


DRIBBLED = {name: ("READ_TIMEOUT_S", *sent) for name, sent in WITHOUT_END.items() if CHUNKS not in sent[0]}
DRIBBLED |= {f"{name}, in all": ("RESPONSE_TIMEOUT_S", *sent) for name, sent in WITHOUT_END.items()}
DRIBBLED["a body"] = ("RESPONSE_TIMEOUT_S", JSON_HEAD + b"Content-Length: 100000\r\n\r\n", b"x")


@pytest.mark.parametrize(("bound", "head", "piece"), DRIBBLED.values(), ids=DRIBBLED)
def test_an_answer_that_dribbles_is_cut_off(bound, head, piece, monkeypatch):
    monkeypatch.setattr(connections, bound, 0.1)
    with (
        endless(head, piece, pause_s=0.02) as port,
        closing(Transport()) as transport,
        pytest.raises(mf.NoAnswerError, match=r"0\.1 s") as caught,
    ):
        transport.send("POST", f"http://127.0.0.1:{port}/", data=SecretBytes(b""))
    assert caught.value.sent


@pytest.mark.parametrize(("head", "piece"), [sent[1:] for sent in DRIBBLED.values()], ids=DRIBBLED)
def test_a_judge_that_dribbles_is_not_waited_for(head, piece):
    with endless(head, piece, pause_s=0.02) as port:
        judge = mf.ChatJudge(f"http://127.0.0.1:{port}/v1", model="m", timeout_s=0.1)
        assert judge([Question("worth", "Ada rows.")]) == []
    assert judge.problems == [f"127.0.0.1:{port} went silent for 0.1 s, or took longer for one answer"]


@pytest.mark.parametrize(("head", "piece"), WITHOUT_END.values(), ids=WITHOUT_END)
def test_lines_of_a_judge_without_end_are_not_read_on(head, piece):
    with endless(head, piece * 1000) as port:
        judge = mf.ChatJudge(f"http://127.0.0.1:{port}/v1", model="m")
        assert judge([Question("worth", "Ada rows.")]) == []
    assert "broke off" in judge.problems[0]


def test_an_answer_that_is_packed_twice_is_not_unpacked():
    bomb = gzip.compress(gzip.compress(bytes(64 << 20)))
    with raw_server(JSON_HEAD + measured(bomb, b"Content-Encoding: gzip, gzip\r\n")) as (port, _):
        case = Case(
            tags_at(f"http://127.0.0.1:{port}"), mf.ProtocolError, RuntimeError, ("gzip, gzip", "operator")
        )
        tracemalloc.start()
        assert_clear(case)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (b"", "closed the connection in the middle"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "closed the connection in the middle"),
        (None, "went silent for 0.3 s"),
    ],
)
def test_a_write_over_an_open_connection_is_sent_once_whatever_becomes_of_it(second, words, monkeypatch):
    monkeypatch.setattr(connections, "READ_TIMEOUT_S", 0.3)
    is_over = threading.Event()

    def answer_once(connection):
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        if second is None:
            read_request(connection)
            is_over.wait(10)
        return connection

    with raw_server(second or b"", answer_once) as (port, heads), closing(Transport()) as transport:
        request = "PATCH", f"http://127.0.0.1:{port}/"
        assert transport.send(*request, data=SecretBytes(b"{}")).status == 200
        with pytest.raises(mf.NoAnswerError, match=words) as caught:
            transport.send(*request, data=SecretBytes(b"{}"))
        is_over.set()
    assert caught.value.sent
    assert len(heads) == 1  # on the connection of the first, and no other


NOTHING_THERE = b'{"items": [], "token": "t", "expires_at": "2999-01-01T00:00:00Z"}'
"""Answers the call for a token, and the one for tags."""


def chunked(text):
    pieces = (text[at : at + 7] for at in range(0, len(text), 7))
    chunks = b"".join(b"%x;name=value\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\nX-Trailer: 1\r\n\r\n"


def measured(text, headers=b""):
    return b"%bContent-Length: %d\r\n\r\n%b" % (headers, len(text), text)


ODD_BUT_RIGHT = {
    "chunks of gzip": JSON_HEAD + b"Content-Encoding: gzip\r\n" + chunked(gzip.compress(NOTHING_THERE)),
    "HTTP/1.0, to the end": b"HTTP/1.0 200 OK\r\n\r\n" + NOTHING_THERE,
    "hints and news of its progress before": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    + b"HTTP/1.1 102 Processing\r\n\r\n" * 2
    + JSON_HEAD
    + measured(NOTHING_THERE),
    "a mark of its encoding": JSON_HEAD + measured(b"\xef\xbb\xbf" + NOTHING_THERE),
    "another type": b"HTTP/1.1 200\r\nContent-Type: text/plain\r\n" + measured(NOTHING_THERE),
}  # fmt: skip


@pytest.mark.parametrize("answer", ODD_BUT_RIGHT.values(), ids=ODD_BUT_RIGHT)
def test_whatever_http_allows_arrives_whole(answer):
    with raw_server(answer) as (port, _):
        assert tags_at(f"http://127.0.0.1:{port}/api/v1")() == []


@pytest.mark.parametrize("length", [b"1", b"-5", b"9" * 5000, b"soon"])
def test_a_length_that_is_wrong_ends_in_a_clear_error(length):
    with raw_server(JSON_HEAD + b"Content-Length: %b\r\n\r\n[]" % length) as (port, _):
        with pytest.raises((mf.ProtocolError, mf.NoAnswerError)) as caught:
            tags_at(f"http://127.0.0.1:{port}")()
        assert "127.0.0.1" in str(caught.value) or "POST /auth/token" in str(caught.value)


def test_a_declared_length_beyond_the_limit_is_refused_unread():
    with raw_server(JSON_HEAD + b"Content-Length: 99999999999\r\n\r\n") as (port, _):
        words = (f"127.0.0.1:{port}", "more than 256 MiB", "page_size=")
        case = Case(tags_at(f"http://127.0.0.1:{port}"), mf.AnswerTooLargeError, mf.ProtocolError, words)
        assert_clear(case)


# Certificates


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 that has signed itself, with its key in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "certificate.pem"
    path.write_bytes(
        signed.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return path


@pytest.fixture
def tls_server(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    answer = JSON_HEAD + measured(NOTHING_THERE)
    with raw_server(answer, lambda connection: context.wrap_socket(connection, server_side=True)) as (
        port,
        heads,
    ):
        yield f"https://127.0.0.1:{port}", heads


@pytest.mark.asvs("12.3.2")
@pytest.mark.rfc("6750 5.2c")
def test_a_certificate_that_signed_itself_is_not_trusted_and_gets_nothing(tls_server):
    base_url, heads = tls_server
    words = (
        "cannot trust 127.0.0.1",
        "certificate does not verify",
        "as ca_bundle, or set REQUESTS_CA_BUNDLE",
    )
    assert_clear(no_answer(tags_at(base_url), *words))
    assert not any(heads)


def test_a_service_that_speaks_no_tls_is_not_blamed_for_its_certificate():
    def taken_aback(connection):
        with connection:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            while connection.recv(4096):
                pass
        raise ConnectionError

    with raw_server(b"", taken_aback) as (port, _):
        words = (f"TLS with 127.0.0.1:{port} failed", "may begin with http://", "Try again later")
        assert_clear(no_answer(tags_at(f"https://127.0.0.1:{port}"), *words))


def test_one_that_is_passed_is_trusted_whatever_the_environment_says(tls_server, certificate, monkeypatch):
    base_url, _ = tls_server
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere/ca.pem")
    with mf.connect(base_url, api_key="mf_key", ca_bundle=certificate) as client:
        assert client.tags(USER_ID) == []
    flow = mf.OAuthFlow(
        "app", auth_url=base_url, redirect_uri="https://app.example/cb", ca_bundle=certificate
    )
    flow.authorization_url()
    with pytest.raises(mf.ProtocolError):  # it was asked, and knows nothing of tokens
        flow.exchange("code")
    with pytest.raises(mf.ConfigError, match=r"ca_bundle names /nowhere/ca\.pem, which does not exist"):
        mf.connect(base_url, api_key="mf_key", ca_bundle="/nowhere/ca.pem")


def test_what_is_sent_ahead_is_sent_to_nobody_who_is_not_trusted(tls_server, certificate):
    base_url, heads = tls_server
    request = {"auth": BearerAuth(Secret(SECRETS["token"])), "params": {"limit": "10"}}
    assert Transport().prefetch(base_url, **request) is None
    assert not any(heads)
    with (
        closing(Transport(ca_bundle=certificate).prefetch(base_url, **request)) as sent,
        sent.response() as response,
    ):
        assert response.status == 200
    assert heads[-1].startswith(b"GET /?limit=10 ")


def test_what_would_have_to_pass_a_proxy_first_is_not_sent_ahead(monkeypatch):
    with raw_server(b"HTTP/1.1 502 Bad Gateway\r\n\r\n") as (port, heads):
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        auth = BearerAuth(Secret(SECRETS["token"]))
        assert Transport().prefetch("https://api.example/api/v1", auth=auth, params={}) is None
        assert not heads


def test_a_file_of_certificates_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere/ca.pem")
    words = ("REQUESTS_CA_BUNDLE", "/nowhere/ca.pem, which does not exist", "correct it")
    assert_clear(Case(tags_at("https://127.0.0.1:1"), mf.ConfigError, ValueError, words))


# What the environment says


@pytest.mark.rfc("6750 2a")
def test_a_netrc_file_neither_replaces_the_token_nor_is_sent(stranger, monkeypatch, tmp_path):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password netrc-canary\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    with stranger.client() as client:
        client.tags(USER_ID)
    stranger.flow().exchange(SECRETS["code"])
    sent = [request.headers.get("Authorization") for request in stranger.requests]
    assert sent == [None, f"Bearer {TOKEN['token']}", None]


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_this_machine_is_reached_without_a_proxy_which_would_read_the_key(stranger, monkeypatch, name):
    with raw_server(b"") as (port, heads):
        monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        with stranger.client() as client:
            assert client.tags(USER_ID)
        assert not heads


def test_another_machine_is_reached_through_the_proxy_and_its_failure_is_told(monkeypatch):
    with raw_server(b"HTTP/1.1 502 Bad Gateway\r\n\r\n") as (port, heads):
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:proxy-canary@127.0.0.1:{port}")
        words = (r"cannot reach api\.example", "through the proxy", "Check that variable")
        assert_clear(no_answer(tags_at("https://api.example/api/v1"), *words))
        assert [head.split()[:2] for head in heads] == [[b"CONNECT", b"api.example:443"]] * READ_ATTEMPTS


def test_a_header_line_that_is_none_warns_nobody_of_what_was_searched_for(caplog, capfd):
    page = b'{"memoryBlobs": [], "token": "t", "expires_at": "2999-01-01T00:00:00Z"}'
    with raw_server(JSON_HEAD + b"no header at all\r\n\r\n" + page) as (port, _):
        client_of(f"http://127.0.0.1:{port}/api/v1").memory_blobs(USER_ID, search="canary")
    shown = caplog.text + "".join(capfd.readouterr())
    assert "canary" not in shown
    assert USER_ID not in shown


def test_a_broken_connection_warns_nobody_of_what_was_searched_for(stranger, caplog, capfd):
    client = stranger.client()
    client.sign_in()
    stranger.script(wire.LIST_MEMORIES, *[cut] * READ_ATTEMPTS)
    with pytest.raises(mf.NoAnswerError, match="closed the connection"):
        client.memory_blobs(USER_ID, search="an illness")
    assert len(stranger.requests_to(wire.LIST_MEMORIES)) == READ_ATTEMPTS
    assert not [record for record in caplog.records if record.levelname != "DEBUG"]
    assert capfd.readouterr() == ("", "")


# No answer: whether nothing was sent for certain, which decides whether a write may be repeated


def silent(url):
    with pytest.raises(mf.NoAnswerError) as caught:
        Transport().send("POST", url, data=SecretBytes(b"{}"))
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
