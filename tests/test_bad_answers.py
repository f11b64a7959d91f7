"""Whatever is wrong with an answer, the error names thing, cause and next step, and no secret.

One case a line: what is wrong, and words that the message must have: the thing, the cause, the next step.
"""

import gzip
import json

import pytest

import memframe as mf
from memframe import wire
from memframe.client import retry, transport
from tests.clear_errors import Case, assert_clear, refused_setting
from tests.faults import FaultProxy, Reply, answered, html
from tests.strangers import CREDENTIALS, EXCHANGE_CODE, MEMORY, PAGE, SECRETS, TAG, TOKEN, USER_ID, client_of

MEMORY_KEY = SECRETS["memory key"]
HEX = SECRETS["encryption key"]
LIST, GET = wire.LIST_MEMORIES, wire.GET_MEMORY


# Answers that break the specification


def replied(body, status=200, **headers):
    """Bytes as they are, where `answered` would make JSON of them."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return lambda request, forward: Reply(status, {"Content-Type": "application/json", **named}, body)


def load(stranger, **options):
    access = mf.open_access(stranger.client(), "r1")
    return mf.load_memories(access, progress=False, **options)


def answering(endpoint, fault, attempt):
    def prepared(stranger):
        stranger.always(endpoint, fault)
        return attempt(stranger)

    return prepared


def broken(endpoint, fault, attempt, *words):
    return Case(answering(endpoint, fault, attempt), mf.ProtocolError, RuntimeError, words)


def broken_page(body, *words):
    return broken(LIST, replied(body), load, "GET /memory-blobs", *words)


def page(**fields):
    return json.dumps({"memoryBlobs": [{**MEMORY, **fields}], "next_cursor": None}).encode()


def sign_in(stranger):
    return stranger.client().sign_in()


def call(name, *args, **options):
    return lambda stranger: getattr(stranger.client(), name)(*args, **options)


def create_one(stranger):
    return stranger.client().create_memory_blob(USER_ID, memory_key=MEMORY_KEY, content="x")


TELL = "tell its operator"
ADDRESS = "Check the address"
OTHER_USER = "00000000-0000-4000-8000-000000000000"
OTHERS = (f"another one|another user than {USER_ID}", "not kept|nothing was kept", "operator")


RECORDS = {
    wire.ISSUE_TOKEN: TOKEN,
    wire.GET_CREDENTIALS: CREDENTIALS,
    wire.GET_REQUEST: {"id": "r1", "status": "approved"},
    GET: MEMORY,
    wire.TAG: TAG,
    wire.CREATE_MEMORY: MEMORY,
}


def odd(endpoint, attempt, *words, **fields):
    """A record of which some fields are not as they should be."""
    return broken(endpoint, answered(200, {**RECORDS[endpoint], **fields}), attempt, *words)


def odd_key(words, **fields):
    return odd(wire.GET_CREDENTIALS, load, "credentials", words, TELL, **fields)


def undeleted(body, *words):
    attempt = call("delete_memory_blob", USER_ID, "m1")
    return broken(wire.DELETE_MEMORY, answered(200, body), attempt, "DELETE", *words)


def moved(endpoint, status, location, attempt, words):
    fault = answered(status, Location=location)
    return broken(
        endpoint, fault, attempt, f"answered {status}", f"a redirect to {words}", "use the final address"
    )


def exchange(stranger):
    return stranger.flow().exchange(SECRETS["code"])


def endless(stranger):
    count = iter(range(10_000))

    def another(request, forward):
        return answered(200, {**PAGE, "next_cursor": f"c{next(count)}"})(request, forward)

    stranger.always(LIST, another)
    return load(stranger)


ANSWERS = {
    "page: empty body": broken_page(b"", "empty, not JSON", ADDRESS),
    "page: HTML": broken(LIST, html, load, "GET /memory-blobs", "an HTML page, not JSON", ADDRESS),
    "page: NaN": broken_page(page(importance=float("nan")), "not JSON", ADDRESS),
    "page: number beyond all": broken_page(
        page().replace(b"0.5", b"1e999"), r"out of range - at `\$\.memoryBlobs", TELL
    ),
    "page: broken UTF-8": broken_page(page().replace(b"Tea", b"\xff\xfe"), "not JSON", ADDRESS),
    "page: nested for ever": broken_page(b'{"x":' * 50_000, "not JSON", ADDRESS),
    "page: a list": broken_page(b"[]", "Expected `object`, got `array`", TELL),
    "page: an error with status 200": broken_page(b'{"error": "boom"}', "missing required field `memoryBlobs`", TELL),
    "page: id of 2^63": broken_page(page(id=2**63), r"Expected `str`, got `int` - at `\$\.memoryBlobs.*id", TELL),
    "page: score as text": broken_page(page(importance="high"), r"`float \| null`, got `str`", TELL),
    "page: cursor a number": broken_page(
        json.dumps({**PAGE, "next_cursor": 5}).encode(), r"got `int` - at `\$\.next_cursor`", TELL
    ),
    "page: cursor broken UTF-8": broken_page(b'{"memoryBlobs":[],"next_cursor":"\xff"}', "not JSON", ADDRESS),
    "page: of another user": broken_page(page(user_id=OTHER_USER), *OTHERS),
    "pages without an end": Case(
        endless, mf.ProtocolError, RuntimeError, ("GET /memory-blobs", "without a new memory", "has no end")
    ),
    "token: with a line end": odd(
        wire.ISSUE_TOKEN, sign_in, "/auth/token", "not valid in a header", "Check", token="t\r\nX-Evil: 1"
    ),
    "token: empty": odd(wire.ISSUE_TOKEN, sign_in, "POST /auth/token", "empty", "Check", token=""),
    "token: expiry in words": odd(wire.ISSUE_TOKEN, sign_in, r"at `\$\.expires_at`", TELL, expires_at="soon"),
    "credentials: key a number": odd_key(r"Expected `str` - at `\$\.encryption_key`", encryption_key=5),
    "credentials: version below 0": odd_key(r"`int` >= 0 - at `\$\.key_version`", key_version=-1),
    "credentials: of nobody": odd_key(r"`str` of length >= 1 - at `\$\.user_id`", user_id=""),
    "request: of no known status": odd(
        wire.GET_REQUEST, call("access_request", "r1"), "GET /access-requests/{request_id}",
        r"Invalid enum value - at `\$\.status`", TELL, status=f"{SECRETS['token']}\x1b[2J"
    ),
    "memory: another id": odd(GET, call("memory_blob", USER_ID, "m1"), "for id m1", *OTHERS, id="m2"),
    "memory: another user": odd(
        GET, lambda stranger: mf.load_memory(mf.open_access(stranger.client(), "r1"), "m1"), f"for user_id {USER_ID}",
        *OTHERS, user_id=OTHER_USER
    ),
    "create: no body": broken(wire.CREATE_MEMORY, replied(b"", 204), create_one, "POST", "empty, not JSON", ADDRESS),
    "delete: not done": undeleted({"success": False}, "not success", "read the memory again"),
    "delete: an error with status 200": undeleted({"error": "locked"}, "missing required field `success`", TELL),
    "redirect: elsewhere": moved(wire.ISSUE_TOKEN, 308, "https://evil.example/", sign_in, r"evil\.example\."),
    "redirect: with a key in its host": moved(LIST, 302, f"https://{HEX}.example/", load, "••••••"),
    "redirect: to a broken address": moved(LIST, 302, "http://[", load, "a malformed address"),
    "redirect: of OAuth": moved(EXCHANGE_CODE, 307, "https://evil.example/", exchange, "evil"),
    "OAuth: without a memory key": broken(
        EXCHANGE_CODE, answered(200, {"access_token": SECRETS["access token"], "token_type": "bearer"}), exchange,
        "POST /oauth/token", "missing required field `memory_key`", TELL
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_that_breaks_the_specification(case, stranger):
    assert_clear(case, stranger)


def test_a_bomb_is_not_unpacked_beyond_the_limit(stranger, monkeypatch):
    monkeypatch.setattr(transport, "MAX_RESPONSE_BYTES", 1 << 20)
    bomb = gzip.compress(bytes(32 << 20))
    for status in (200, 302):
        fault = replied(bomb, status, Content_Encoding="gzip", Location="https://example.com/")
        words = ("1 MiB in one answer", "page_size=")
        kind = mf.AnswerTooLargeError
        assert_clear(Case(answering(LIST, fault, load), kind, mf.ProtocolError, words), stranger)


def test_of_a_key_that_comes_twice_in_json_the_last_counts_everywhere(stranger):
    body = b'{"memoryBlobs":[],"next_cursor":"c1","next_cursor":null,"memoryBlobs":[%b]}'
    stranger.always(LIST, replied(body % json.dumps(MEMORY).encode()))
    assert list(load(stranger)["id"]) == ["m1"]


# Refusals of the service, which may repeat what it was sent


def refused(status, kind, attempt, endpoint, *words):
    def fault(request, forward):
        echo = " ".join([*request.headers.values(), request.body.decode()])
        return answered(status, {"detail": f"no\x1b[2J\n{echo}", "code": echo, "title": echo})(
            request, forward
        )

    builtin = LookupError if status == 404 else RuntimeError
    return Case(answering(endpoint, fault, attempt), kind, builtin, (f"answered {status}: no", *words))


REFUSED = [
    (400, mf.InvalidError, create_one, wire.CREATE_MEMORY, "POST", "Check what was"),
    (401, mf.AuthError, sign_in, wire.ISSUE_TOKEN, "/auth/token", "Check the API key"),
    (403, mf.AccessError, load, LIST, "GET", "Look at the access request's status"),
    (404, mf.NotFoundError, call("tag", USER_ID, "t1"), wire.TAG, "tags", "Check the id"),
    (409, mf.ConflictError, create_one, wire.CREATE_MEMORY, "POST", "It has changed in the meantime"),
    (413, mf.ServiceError, create_one, wire.CREATE_MEMORY, "POST", "send less at once"),
    (413, mf.ServiceError, load, LIST, "GET", "smaller pages with page_size="),
    (414, mf.ServiceError, load, LIST, "GET", "search for a shorter text"),
    (431, mf.ServiceError, load, LIST, "GET", "tell the operator"),
    (429, mf.RateLimitError, create_one, wire.CREATE_MEMORY, "POST", "Wait a minute"),
    (500, mf.ServiceError, load, LIST, "GET /memory-blobs", "Try again later"),
]
REFUSALS = {f"{row[0]}: {row[-1]}": refused(*row) for row in REFUSED}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_is_told_without_what_it_repeats(case, stranger):
    assert_clear(case, stranger)


@pytest.mark.rfc("9457 3.1a", "9457 3.2a")
def test_members_of_a_problem_that_are_unknown_or_of_another_type_are_ignored(stranger):
    body = {"status": "400", "title": 5, "detail": {"a": 1}, "code": ["x"], "later": True}
    fault = answered(400, body)
    case = Case(
        answering(LIST, fault, load), mf.InvalidError, RuntimeError, ("answered 400: no reason given",)
    )
    assert_clear(case, stranger)


REQUEST_STATES = {
    "pending": "the user has not decided yet: wait_for_decision",
    "rejected": "the user declined; you can ask again",
    "revoked": "revoked the approval.*ask again with a new request",
    "approved": "still refuses it; ask the operator",
}


@pytest.mark.parametrize("status", REQUEST_STATES)
def test_a_request_in_another_state_opens_nothing(status, stranger):
    stranger.always(wire.GET_CREDENTIALS, answered(403, {"detail": "no"}))
    stranger.answer(wire.GET_REQUEST, status=status, updatedAt="2026-01-02T01:30:00+02:00")
    words = ("access request r1", f"is {status} since 2026-01-01 23:30 UTC", REQUEST_STATES[status])
    case = Case(lambda: mf.open_access(stranger.client(), "r1"), mf.AccessError, RuntimeError, words)
    assert_clear(case)


DATES = ["Fri, 31 Dec 2999 23:59:59 GMT", "Fri, 99 Dec 9999 99:99:99 GMT"]


@pytest.mark.parametrize("wait", ["-1", "1000000000", "soon", "9" * 5000, "\xb2", *DATES])
def test_a_wait_that_makes_no_sense_ends_in_the_refusal(stranger, wait, monkeypatch):
    slept = []
    monkeypatch.setattr("urllib3.util.retry.time.sleep", slept.append)
    fault = answered(429, {"detail": "slow down"}, Retry_After=wait)
    case = Case(
        answering(LIST, fault, load),
        mf.RateLimitError,
        RuntimeError,
        ("GET /memory-blobs", "slow down", "Wait"),
    )
    assert_clear(case, stranger)
    assert max(slept, default=0) <= retry.MAX_RETRY_AFTER_S


# The user's answer to an authorization


def pasted(text, **attempt):
    def exchange(stranger):
        flow = stranger.flow(**attempt)
        flow.authorization_url(state="s1")
        flow.exchange(text)

    return exchange


def refused_consent(text, *words):
    return Case(pasted(text), mf.OAuthError, ValueError, words)


CODE = SECRETS["code"].replace("+", "%2B")

CONSENTS = {
    "nothing": refused_consent(" \n", "nothing was pasted", "paste the redirected address"),
    "two states": refused_consent(
        f"http://127.0.0.1/callback?code={CODE}&state=s1&state=s1", "state is missing", "paste the whole address"
    ),
    "the link itself": refused_consent(
        "https://auth.example/oauth/authorize?response_type=code&client_id=a1&state=s1", "the link itself",
        "open it, and paste the address"
    ),
    "no code": refused_consent("http://127.0.0.1/callback?state=s1", "no code", "copy the address"),
    "two codes": refused_consent(f"?code={CODE}&code={CODE}&state=s1", "no code", "copy the address"),
    "denied": refused_consent("?error=access_denied&state=s1", "did not allow access", "open the link again"),
    "denied without a state": refused_consent("?error=access_denied", "did not allow access", "open the link again"),
    "denied with another state": refused_consent("?error=access_denied&state=s2", "state is missing", "newest link"),
    "an error nobody knows": refused_consent(
        "?error=%1b[2Jodd&error_description=why&state=s1", "odd", "why", "Open the link again"
    ),
    "two servers": Case(
        pasted(
            f"?code={CODE}&state=s1&iss=https://auth.example&iss=https://evil.example",
            auth_url="https://auth.example",
        ),
        mf.OAuthError,
        ValueError,
        ("a different OAuth server",),
    ),
    "a server that is no address": refused_consent(
        f"?code={CODE}&state=s1&iss=http://[", "a different OAuth server", "check auth_url"
    ),
    "a broken address": refused_consent(f"http://[?code={CODE}", "state is missing", "paste the whole address"),
}  # fmt: skip


@pytest.mark.rfc("9207 2.4a", "9207 2.4d")
@pytest.mark.parametrize("case", CONSENTS.values(), ids=CONSENTS)
def test_an_answer_of_the_user_that_is_refused(case, stranger):
    assert_clear(case, stranger)
    assert not stranger.requests


def test_an_address_without_the_path_of_the_api_is_told_with_it(service):
    base_url = service.base_url.removesuffix("/api/v1")
    with pytest.raises(mf.NotFoundError) as failed:
        mf.connect(base_url, api_key=service.api_key).access_requests()
    assert f"there is no API at {base_url}, but there is one at {service.base_url}: give that" in str(
        failed.value
    )


@pytest.mark.asvs("10.1.1")
@pytest.mark.parametrize("status", [200, 302, 404, 500])
def test_where_no_api_is_found_the_key_is_sent_nowhere_else(status):
    """Only an API asks for a token; any other page below the address gets no key."""
    below = wire.Endpoint("GET", "/api/v1" + wire.LIST_REQUESTS.path)
    with FaultProxy("http://127.0.0.1:9/web") as site:
        site.always(wire.ISSUE_TOKEN, answered(404))
        site.always(below, answered(status))
        with pytest.raises(mf.NotFoundError, match="with /api/v1"):
            client_of(site.base_url).sign_in()
    post, probe = site.requests
    assert (post.method, probe.path) == ("POST", "/web/api/v1/access-requests")
    assert SECRETS["api key"] not in str(probe)
    assert "Authorization" not in probe.headers


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "http://login.example/", "https://me:pw@login.example/"]
)
def test_the_page_that_asks_the_user_is_checked_too(address, stranger):
    words = ("authorize_url", "does not begin|plain http|user name", "give|use https|remove")
    assert_clear(refused_setting(lambda: stranger.flow(authorize_url=address), *words))
