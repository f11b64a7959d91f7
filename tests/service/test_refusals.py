"""What the API refuses, it refuses with a problem document: who may not, what is malformed or too much."""

import http.client
import json
import socket
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from urllib.parse import quote, urlsplit

import pytest
import requests
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from memframe.secret import Secret
from memframe.service import run_local
from memframe.service.app import create_app
from memframe.service.deployment import Addresses, open_deployment
from memframe.service.local import serving_in_thread
from memframe.service.server import listen, make_server, url_of
from memframe.service.store.accounts import Developer, User
from memframe.service.tokens import Bearer
from tests.conftest import serving_tests
from tests.pages.conftest import Browser
from tests.service.conftest import Caller, Grant, ask, memory_key

ENDPOINTS = [
    ("POST", "/access-requests"),
    ("GET", "/access-requests"),
    ("GET", "/access-requests/x"),
    ("GET", "/access-requests/x/credentials"),
    ("GET", "/memory-blobs?user_id=x"),
    ("GET", "/memory-blobs/x?user_id=x"),
    ("POST", "/memory-blobs"),
    ("PATCH", "/memory-blobs/x"),
    ("DELETE", "/memory-blobs/x?user_id=x"),
    ("GET", "/tags?user_id=x"),
    ("GET", "/tags/x?user_id=x"),
]


# --- who may not


@pytest.mark.any_database
@pytest.mark.asvs("6.3.4", "8.2.1", "10.3.2", "14.2.1")
@pytest.mark.rfc(
    "6750 2.1a",
    "6750 2.3a",
    "6750 3a",
    "6750 3b",
    "6750 3.1a",
    "6750 3.1b",
    "9457 3a",
    "9457 3.1.2a",
    "9457 3.1.3a",
    "9457 3.1.4a",
)
def test_every_endpoint_needs_a_good_token(service, call, refused):
    for method, path in ENDPOINTS:
        for header in (None, "", "Bearer", "Bearer ", "Bearer x.y.z", "Basic eDp5", "Bearer é"):
            headers = {"Authorization": header and header.encode()}
            answer = call(method, path, headers=headers, json={})
            refused(answer, 401, "invalid_token")
            fault = ', error="invalid_token"' if header is not None else ""
            assert answer.headers["www-authenticate"] == f'Bearer realm="memframe"{fault}'
    for name in ("access_token", "token", "Authorization"):  # one in the address is none
        answer = requests.get(f"{service.base_url}/access-requests", {name: call.token}, timeout=5)
        assert answer.status_code == 401
    assert call("GET", "/access-requests", headers={"Authorization": f"bEARER {call.token}"}).ok


@pytest.mark.asvs("9.2.3", "9.2.4", "10.3.1", "10.3.3")
@pytest.mark.rfc("6750 5.3b", "9700 2.3a", "8725 3.8a", "8725 3.9a")
def test_a_token_of_another_service_or_of_nobody_is_refused(service, call, refused):
    deployment = service._deployment
    tokens = deployment.bearer_tokens(service._addresses)
    bearer = tokens.check(Secret(call.token))
    elsewhere = deployment.bearer_tokens(Addresses("https://elsewhere.example.org"))
    for issuer, whose in (
        (elsewhere, bearer),
        (tokens, Bearer("nobody", 0)),
        (tokens, Bearer(bearer.developer_id, bearer.epoch + 1)),
    ):
        token, _ = issuer.issue(whose, 600)
        answer = call("GET", "/access-requests", headers={"Authorization": f"Bearer {token.reveal()}"})
        refused(answer, 401, "invalid_token")


@pytest.mark.asvs("8.2.2")
def test_another_developers_request_is_403_and_an_unknown_one_404(call, other_call, grant, refused):
    for path in (f"/access-requests/{grant.request_id}", f"/access-requests/{grant.request_id}/credentials"):
        refused(other_call.get(path), 403, "not_your_request")
        refused(call.get(path.replace(grant.request_id, "unknown")), 404, "not_found")
    listed = other_call.get("/access-requests").json()["items"]
    assert grant.request_id not in {asked["id"] for asked in listed}
    for key in (grant.memory_key, "mk_made_up", ""):
        asked = other_call.post("/access-requests", {"memoryKey": key, "reason": ""})
        refused(asked, 403, "wrong_memory_key")


def blob_calls(caller, keys, memory_id, tag_id):
    """Every call on a user's data, for one user, memory and tag."""
    user_id = keys["user_id"]
    return {
        "list": caller.get("/memory-blobs", user_id=user_id),
        "get": caller.get(f"/memory-blobs/{memory_id}", user_id=user_id),
        "create": caller.post("/memory-blobs", {**keys, "content": "x"}),
        "patch": caller("PATCH", f"/memory-blobs/{memory_id}", json={**keys, "title": "x"}),
        "delete": caller("DELETE", f"/memory-blobs/{memory_id}", params={"user_id": user_id}),
        "tags": caller.get("/tags", user_id=user_id),
        "tag": caller.get(f"/tags/{tag_id}", user_id=user_id),
    }


@pytest.mark.asvs("8.2.2", "8.3.1", "10.3.2")
def test_nothing_of_a_user_is_reached_by_others(service, call, other_call, grant, refused):
    memory = grant.create(tags=["t"])
    everything = (memory["id"], memory["tag_ids"][0])
    stranger = {**grant.keys, "memoryKey": memory_key(service, other_call, grant.user_id)}
    nobody = {**grant.keys, "user_id": "00000000-0000-4000-8000-000000000000"}
    for caller, keys in ((other_call, grant.keys), (other_call, stranger), (call, nobody)):
        for answer in blob_calls(caller, keys, *everything).values():
            refused(answer, 403, "no_grant")
    assert grant.ids() == [memory["id"]]


@pytest.mark.asvs("8.2.1", "8.2.3")
def test_only_an_approved_request_opens_the_memories(service, call, grant, refused):
    """A decision holds for the very next call; of several requests one that is approved is enough."""
    memory = grant.create(tags=["t"])
    first = grant.request_id
    for steps in ([], ["rejected"], ["approved", "revoked"]):
        asked = ask(call, grant.memory_key)["id"]
        for step in steps:
            service.decide(asked, step)
            assert grant.ids() == [memory["id"]], "the first request is still approved"
        answer = call.get(f"/access-requests/{asked}/credentials")
        refused(answer, 403, "not_approved")
        assert (steps or ["pending"])[-1] in answer.json()["detail"]
    service.decide(first, "revoked")
    for answer in blob_calls(call, grant.keys, memory["id"], memory["tag_ids"][0]).values():
        refused(answer, 403, "no_grant")
    service.decide(ask(call, grant.memory_key)["id"], "approved")
    assert grant.ids() == [memory["id"]]


@pytest.mark.asvs("8.2.2", "8.4.1")
def test_another_users_memory_and_tag_are_unknown(service, call, refused):
    mine, theirs = Grant(service, call), Grant(service, call)
    foreign = theirs.create(tags=["t"])
    answers = blob_calls(call, mine.keys, foreign["id"], foreign["tag_ids"][0])
    for name in ("get", "patch", "delete", "tag"):
        refused(answers[name], 404, "not_found")
    assert answers["tags"].json() == {"items": []}
    assert mine.ids(tags="t") == []
    unknown = blob_calls(call, mine.keys, "unknown", "unknown")
    assert all(answers[name].content == unknown[name].content for name in ("get", "patch", "delete", "tag"))
    assert theirs.ids() == [foreign["id"]]


@pytest.mark.asvs("2.2.3")
def test_writes_need_the_memory_key(service, call, grant, refused):
    memory_id = grant.create()["id"]
    for key in ("", "mk_wrong", Grant(service, call).memory_key, grant.memory_key.upper()):
        keys = {**grant.keys, "memoryKey": key}
        refused(call.post("/memory-blobs", {**keys, "content": "x"}), 403, "wrong_memory_key")
        refused(call("PATCH", f"/memory-blobs/{memory_id}", json=keys), 403, "wrong_memory_key")


# --- what is malformed


@pytest.mark.any_database
@pytest.mark.asvs("1.4.2", "15.3.5")
@pytest.mark.rfc("6750 5.2b", "6750 5.3a")
def test_a_token_call_needs_the_key_and_a_lifetime_within_its_bounds(service, call, refused):
    for value in ("60", True, 60.5, 59, 86_401, -1, 10**30, None, [60]):
        answer = call.post("/auth/token", {"api_key": service.api_key, "expires_in": value})
        assert answer.status_code == 400
        assert answer.json()["code"] in {"invalid_body", "invalid_expires_in"}
    for known in ({"expires_in": 60}, {"expires_in": 86_400}, {"unknown": {"version": 2}}):
        assert call.post("/auth/token", {"api_key": service.api_key, **known}).ok
    refused(call.post("/auth/token", {"api_key": service.api_key[:-1] + "!"}), 401, "invalid_api_key")
    for value in (None, 5, ["x"]):
        said = call.post("/auth/token", {"api_key": value}).json()["detail"]
        assert said == "the body is not as specified: Expected `str` - at `$.api_key`"


@pytest.mark.any_database
@pytest.mark.asvs("1.4.2", "2.2.1", "2.2.2", "15.3.5")
def test_fields_are_of_their_type_and_within_their_bounds(grant, refused):
    memory_id = grant.create()["id"]
    for field, values in {
        "content": (None, 5, "a\0b"), "title": (5, "a\0b"), "summary": (["x"],), "source": ({},),
        "importance": ("1", True, -0.1, 5.1, 10**400), "confidence": (1.01, -1, "0.5"),
        "tags": ("a,b", [None], ["  "], ["a,b"], ["a\0"], ["x" * 201], [str(n) for n in range(101)]),
        "user_id": (None,), "memoryKey": (5,),
    }.items():  # fmt: skip
        for value in values:
            body = {**grant.keys, "content": "x", field: value}
            for method, path in (("POST", "/memory-blobs"), ("PATCH", f"/memory-blobs/{memory_id}")):
                answer = grant.call(method, path, json=body)
                assert answer.status_code == 400, (field, value, answer.text)
                assert answer.headers["content-type"] == "application/problem+json"
                assert grant.memory_key not in answer.text
    for missing in ("user_id", "memoryKey", "content"):
        body = {**grant.keys, "content": "x"}
        del body[missing]
        refused(grant.call.post("/memory-blobs", body), 400, "invalid_body")
    assert grant.ids() == [memory_id]


BODIES = [
    b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"a": NaN}', b'{"user_id": "\\ud800"}',
    b'{"user_id": "\xed\xa0\x80"}', b'{"x":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
]  # fmt: skip


@pytest.mark.any_database
@pytest.mark.asvs("1.5.2")
@pytest.mark.parametrize("path", ["/auth/token", "/access-requests", "/memory-blobs"])
def test_a_body_that_is_not_the_json_it_should_be(call, refused, path):
    for body in BODIES:
        answer = call("POST", path, data=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 400
        assert answer.json()["code"] in {"malformed_json", "invalid_body"}
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = call("POST", path, data=b"{}", headers={"Content-Type": media_type})
        refused(answer, 415, "unsupported_media_type")


@pytest.mark.any_database
@pytest.mark.asvs("2.2.1", "2.2.2", "2.3.2", "15.3.7")
def test_query_parameters_are_strict(call, grant, refused):
    for name, code, values in (
        ("limit", "invalid_limit", ("0", "-1", "1.0", "ten", "1e2", "\uff15", "+5")),
        ("importance", "invalid_importance", ("1.1", "-0.1", "nan", "inf", "1e400")),
        ("cursor", "invalid_cursor", ("x", "AAAA", "ü", "=", "a" * 5000)),
        ("searchQuery", "invalid_text", ("a\0b",)),
        ("tags", "invalid_text", ("a\0b",)),
        ("tags", "too_many_tags", (",".join(map(str, range(101))),)),
    ):
        for value in values:
            refused(grant.list(**{name: value}), 400, code)
    for path in ("/memory-blobs", "/memory-blobs/x", "/tags", "/tags/x"):
        for query in ("", "user_id=", "user_id=a&user_id=b"):
            assert call("GET", f"{path}?{query}").status_code == 400


@pytest.mark.any_database
@pytest.mark.asvs("2.2.3")
def test_a_cursor_belongs_to_its_user_and_filter(service, call, other_call, grant, refused):
    for _ in range(3):
        grant.create("tea", tags=["t"], importance=1)
    cursor = grant.list(limit=1).json()["next_cursor"]
    assert grant.list(limit=2, cursor=cursor).ok
    for other in ({"tags": "t"}, {"searchQuery": "tea"}, {"importance": "0"}):
        refused(grant.list(cursor=cursor, **other), 400, "invalid_cursor")
    refused(Grant(service, call).list(cursor=cursor), 400, "invalid_cursor")
    refused(other_call.get("/memory-blobs", user_id=grant.user_id, cursor="x"), 403, "no_grant")
    for respelled in (cursor + "=", cursor + "==", cursor.rstrip("=") + "=A", f" {cursor}", cursor * 2):
        refused(grant.list(cursor=respelled), 400, "invalid_cursor")
    for position in range(len(cursor)):
        tampered = cursor[:position] + ("A" if cursor[position] != "A" else "B") + cursor[position + 1 :]
        refused(grant.list(cursor=tampered), 400, "invalid_cursor")


@pytest.mark.asvs("2.3.2")
def test_a_long_reason_is_refused(grant, refused):
    body = {"memoryKey": grant.memory_key, "reason": "x" * 2001}
    refused(grant.call.post("/access-requests", body), 400, "too_long")


# --- paths, methods, sizes, hosts


@pytest.mark.any_database
@pytest.mark.asvs("13.4.4")
@pytest.mark.rfc("9457 3a", "9457 3.2b")
def test_unknown_paths_and_methods_are_problems_too(service, call, refused):
    for path in ("", "/", "/nope", "/memory-blobs/a/b", "/access-requests/x/keys"):
        refused(call.get(path), 404, "no_such_path")
    for method, path, allowed in (
        ("GET", "/auth/token", {"POST"}), ("PUT", "/memory-blobs", {"GET", "POST"}),
        ("POST", "/memory-blobs/x", {"GET", "PATCH", "DELETE"}), ("DELETE", "/tags/x", {"GET", "HEAD"}),
        ("PATCH", "/access-requests/x", {"GET"}), ("OPTIONS", "/memory-blobs/x", {"GET", "HEAD", "PATCH", "DELETE"}),
    ):  # fmt: skip
        answer = call(method, path)
        refused(answer, 405, "method_not_allowed")
        assert allowed <= set(answer.headers["allow"].split(", "))
    for path in ("/", "/login", "/api/v1/tags"):
        answer = requests.request("TRACE", service.auth_url + path, headers={"X-Canary": "sung"}, timeout=5)
        assert (answer.status_code, "sung" in answer.text) == (405, False)


@pytest.mark.any_database
@pytest.mark.parametrize(
    "path",
    ["/healthz", "/readyz", "/login", "/dashboard", "/schema/openapi.json", "/api/v1/access-requests", "/no"],
)
def test_head_answers_what_get_would_without_a_body(service, call, path):
    """Whoever watches a service, and previews of links, ask so."""
    given = {"headers": {"Authorization": f"Bearer {call.token}"}, "allow_redirects": False}
    head = requests.head(service.auth_url + path, timeout=5, **given)
    got = requests.get(service.auth_url + path, timeout=5, **given)
    assert (head.status_code, head.content) == (got.status_code, b"")
    for name in ("content-type", "content-length", "cache-control"):
        assert head.headers.get(name) == got.headers.get(name)


@pytest.mark.asvs("3.2.1", "3.3.1", "3.3.3", "3.4.1", "3.4.2", "3.4.3", "3.4.4", "3.4.6")
@pytest.mark.rfc("9700 2.6c")
@pytest.mark.parametrize("public_url", ["https://memories.example", "http://127.0.0.1:1"])
def test_every_answer_tells_browsers_how_to_treat_it(tmp_path, public_url):
    """Pages of other origins read none, nothing is taken for another type, and TLS is insisted on."""
    app = create_app(open_deployment(tmp_path), Addresses(public_url))
    foreign = {"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}
    with listen("127.0.0.1", 0) as listening, serving_in_thread(make_server(app, public_url), listening):
        for method, path, host, status in (
            ("GET", "/healthz", "localhost", 200), ("GET", "/static/style.css", "localhost", 200),
            ("GET", "/login", "localhost", 200), ("PUT", "/login", "localhost", 405),
            ("POST", "/login", "localhost", 403), ("GET", "/api/v1/tags", "localhost", 401),
            ("OPTIONS", "/api/v1/access-requests", "localhost", 405), ("GET", "/nowhere", "localhost", 404),
            ("GET", "/login", "evil.example", 421), ("GET", "/x%2Fy", "localhost", 400),
            ("GET", "/schema/openapi.json", "localhost", 200),
        ):  # fmt: skip
            headers = {"Host": host, **foreign}
            answer = requests.request(method, url_of(listening) + path, headers=headers, timeout=20)
            assert answer.status_code == status
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers.get("content-type", "").count("charset") <= 1
            assert answer.ok or answer.headers["cache-control"] == "no-store"
            assert answer.headers["content-security-policy"].startswith("default-src 'none'; ")
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
            assert [name for name in answer.headers if name.lower().startswith("access-control-")] == []
            is_secure = public_url.startswith("https:")
            insisted = answer.headers.get("strict-transport-security")
            assert insisted == ("max-age=31536000" if is_secure else None)
            if is_secure and answer.cookies:
                cookie = answer.headers["set-cookie"]
                assert cookie.startswith("__Host-memframe=")
                assert {"Secure", "Path=/", "HttpOnly"} <= set(cookie.split("; "))
                assert "Domain" not in cookie


@pytest.mark.asvs("14.2.2", "14.3.2")
def test_answers_with_data_are_not_kept_on_the_way(service, call, grant):
    memory_id, mine = grant.create(tags=["t"])["id"], {"user_id": grant.user_id}
    for answer in (
        grant.list(),
        call.get(f"/memory-blobs/{memory_id}", **mine),
        call.get("/access-requests"),
        call.get(f"/access-requests/{grant.request_id}/credentials"),
        call.get("/tags", **mine),
        call.post("/auth/token", {"api_key": service.api_key}),
    ):
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")


@pytest.mark.any_database
@pytest.mark.asvs("4.2.1", "5.3.2", "13.4.1", "13.4.3", "13.4.5")
def test_no_other_file_is_served_and_no_message_whose_end_is_ambiguous_taken(service):
    for path in (
        "/.git/config", "/.env", "/metrics", "/docs", "/schema", "/schema/swagger", "/static", "/static/",
        "/static/../pages.py", "/static/%2e%2e/pages.py", "/static//etc/passwd", "/static/pages.py",
    ):  # fmt: skip
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert raw_exchange(service, request.encode()).split()[1] == b"404"
    for framing in (
        "Content-Length: 2\r\nTransfer-Encoding: chunked", "Content-Length: 2\r\nContent-Length: 3",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "Transfer-Encoding: xchunked",
        "Transfer-Encoding : chunked", "Content-Length: +2",
    ):  # fmt: skip
        head = f"POST /api/v1/auth/token HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n"
        assert raw_exchange(service, f"{head}0\r\n\r\n".encode()).split()[1] == b"400"


@pytest.mark.asvs("1.2.4")
def test_sql_is_text(call, grant, refused):
    made = [grant.create("Likes tea", tags=["tea"])["id"]]
    for words in ("' OR '1'='1", "'; DROP TABLE memories; --", "%", "_", "\\' UNION SELECT 1 --"):
        made.append(grant.create(words, title=words, tags=[words], source=words)["id"])
        assert grant.ids(searchQuery=words) == made[-1:]
        assert grant.ids(tags=words) == made[-1:]
        assert call.get(f"/memory-blobs/{quote(words)}", user_id=grant.user_id).status_code in {400, 404}
        refused(call.get("/memory-blobs", user_id=words), 403, "no_grant")
    assert grant.ids() == made


@pytest.mark.any_database
@pytest.mark.asvs("5.2.1", "2.3.2")
def test_a_body_over_one_megabyte_is_too_large(grant, refused):
    assert grant.call.post("/memory-blobs", {**grant.keys, "content": "x" * 900_000}).status_code == 201
    answer = grant.call.post("/memory-blobs", {**grant.keys, "content": "x" * 1_000_001})
    refused(answer, 413, "body_too_large")


def ask_raw(service, method, path, **headers):
    """Status and code of the answer to a request whose path and host are sent as they are."""
    host = urlsplit(service.auth_url).netloc
    with closing(http.client.HTTPConnection(host, timeout=20)) as connection:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())["code"]


@pytest.mark.any_database
@pytest.mark.asvs("1.1.1", "5.3.2")
def test_a_foreign_host_or_a_path_with_an_encoded_slash_reaches_no_route(service, call):
    for host in ("evil.example", "127.0.0.1.evil.example", "me@localhost", "[::", ""):
        assert ask_raw(service, "GET", "/schema/openapi.json", Host=host) == (421, "unknown_host")
    known = {"Authorization": f"Bearer {call.token}"}
    for method, path in (
        ("GET", "/api/v1/memory-blobs/%2Fx"), ("DELETE", "/api/v1%5cmemory-blobs/x"),
        ("GET", "/static%2f..%2Fstyle.css"), ("POST", "/%2Flogin"), ("GET", "/healthz%5c"),
    ):  # fmt: skip
        assert ask_raw(service, method, path, **known) == (400, "encoded_slash")


def raw_exchange(service, request):
    """Bytes to the service, and the status line that comes back."""
    port = urlsplit(service.auth_url).port
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(request)
        return connection.recv(4096).split(b"\r\n", 1)[0]


@pytest.mark.any_database
def test_odd_bytes_in_an_address_are_the_clients_fault(service, call, grant):
    for target in ("/%00", "/%ff%fe", "/%ed%a0%80", "/x?user_id=%00", "/x?user_id=%ff", "/x?%zz=%"):
        head = f"GET /api/v1/memory-blobs{target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        request = head + f"Authorization: Bearer {call.token}\r\n\r\n"
        assert raw_exchange(service, request.encode()).split()[1].startswith(b"4")
    assert grant.list(searchQuery="tea/coffee\\milk").ok, "an encoded slash in a query is text"


@pytest.mark.asvs("1.2.3")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=st.dictionaries(
        st.sampled_from(["content", "title", "summary", "tags", "importance", "confidence", "source", "x"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
            max_leaves=5,
        ),
    ),
    name=st.sampled_from(["tags", "searchQuery", "limit", "cursor", "importance"]),
    value=st.text(max_size=20),
)
def test_nothing_that_a_client_sends_is_the_services_fault(service, call, shared_grant, body, name, value):
    sent = json.dumps({**shared_grant.keys, "content": "x", **body}).encode()
    created = call("POST", "/memory-blobs", data=sent)
    assert created.status_code in {201, 400}
    address = quote(value, safe="", errors="surrogatepass")
    listed = call("GET", f"/memory-blobs?user_id={shared_grant.user_id}&{name}={address}")
    assert listed.status_code in {200, 400}


@pytest.fixture(scope="module")
def shared_grant(service, call):
    return Grant(service, call)


# --- too much


@pytest.mark.asvs("2.4.1")
def test_token_calls_are_throttled_by_address_and_key(backend, refused):
    time = datetime(2026, 3, 1, tzinfo=UTC)
    with run_local(database=backend.new_database(), now=lambda: time, token_calls_per_minute=5) as local:
        other = local._deployment.add_developer("Another").api_key.reveal()
        caller = Caller(local.base_url, local.api_key)

        def issue(key=local.api_key):
            return caller.post("/auth/token", {"api_key": key})

        assert [issue().status_code for _ in range(5)] == [200] * 4 + [429]
        refused(issue(), 429, "too_many_requests")
        assert issue().headers["retry-after"] == "60"
        assert issue(other).ok
        time += timedelta(seconds=59)
        assert issue().status_code == 429
        time += timedelta(seconds=1)
        assert issue().ok
        time -= timedelta(hours=2)
        assert issue().ok, "a clock that is set back locks nobody out"
        assert [issue(f"mfk_{n}").status_code for n in range(50)] == [401] * 49 + [429], (
            "for all keys together"
        )
        refused(issue(other), 429, "too_many_requests")


@pytest.fixture
def searching(backend):
    """A service, and a block in which its searches do not come to an end."""
    if backend.name == "sqlite":
        pytest.skip("readers of a file never wait")

    @contextmanager
    def holding():
        engine = create_engine(local._deployment.store.engine.url)
        with engine.begin() as connection:
            connection.execute(text("LOCK TABLE memories IN ACCESS EXCLUSIVE MODE"))
            yield lambda: backend.is_somebody_waiting(engine)
        engine.dispose()

    with serving_tests(backend.new_database()) as local:
        yield local, holding


@pytest.mark.asvs("15.2.2")
def test_signing_in_revoking_and_readiness_do_not_wait_behind_searches(searching):
    local, holding = searching
    keys = [local.api_key, *(local._deployment.add_developer(f"No. {n}").api_key.reveal() for n in range(6))]
    grants = [Grant(local, Caller(local.base_url, key)) for key in keys]
    with ThreadPoolExecutor(len(grants) * 6) as pool:
        with holding() as is_somebody_waiting:
            asked = [pool.submit(grant.list, searchQuery="tea") for grant in grants for _ in range(6)]
            while not is_somebody_waiting():
                pass
            assert requests.get(local.auth_url + "/readyz", timeout=5).ok
            browser = Browser(local)
            browser.sign_in(grants[0].email, "a long password")
            browser.send(browser.form(grants[0].request_id, "revoked"), status="revoked")
            assert grants[1].call.get("/access-requests").ok
        statuses = [future.result().status_code for future in asked]
    assert set(statuses[6:]) == {200}
    assert set(statuses[:6]) <= {200, 403}, "those that had not begun see the revocation"


@pytest.mark.asvs("2.4.1", "15.2.2")
def test_one_developer_may_have_a_few_searches_under_way(searching, refused):
    local, holding = searching
    grant = Grant(local, Caller(local.base_url, local.api_key))
    with ThreadPoolExecutor(12) as pool:
        with holding():
            asked = [pool.submit(grant.list, searchQuery="tea") for _ in range(12)]
            for future in islice(as_completed(asked, timeout=30), 4):  # the others are held
                refused(future.result(), 429, "too_many_requests")
                assert future.result().headers["retry-after"] == "1"
        statuses = [future.result().status_code for future in asked]
    assert sorted(statuses) == [200] * 8 + [429] * 4
    assert grant.list(searchQuery="tea").ok


# --- accounts that were closed


def test_a_disabled_user_is_closed_to_everybody(service, call, grant, refused):
    memory = grant.create(tags=["t"])
    service._deployment.store.accounts.set_disabled(User, grant.user_id, disabled=True)
    for answer in blob_calls(call, grant.keys, memory["id"], memory["tag_ids"][0]).values():
        refused(answer, 403, "no_grant")
    refused(call.get(f"/access-requests/{grant.request_id}/credentials"), 403, "no_grant")
    body = {"memoryKey": grant.memory_key, "reason": ""}
    refused(call.post("/access-requests", body), 403, "wrong_memory_key")


@pytest.mark.asvs("7.4.1", "10.4.9")
def test_a_disabled_developer_is_locked_out_and_old_tokens_stay_dead(service, refused):
    developer = service._deployment.add_developer("Closed soon")
    grant = Grant(service, Caller(service.base_url, developer.api_key.reveal()))
    memory = grant.create(tags=["t"])
    set_disabled = service._deployment.store.accounts.set_disabled

    def read():
        credentials = f"/access-requests/{grant.request_id}/credentials"
        return {path: grant.call.get(path) for path in ("/access-requests", credentials)}

    assert all(answer.ok for answer in read().values())
    for disabled in (True, False):
        set_disabled(Developer, developer.id, disabled=disabled)
        blobs = blob_calls(grant.call, grant.keys, memory["id"], memory["tag_ids"][0])
        for answer in (*read().values(), *blobs.values()):
            refused(answer, 401, "invalid_token")
        token = grant.call.post("/auth/token", {"api_key": developer.api_key.reveal()})
        assert token.ok is not disabled
    grant.call.token = token.json()["token"]
    assert grant.ids() == [memory["id"]]
