"""Services of other people, who read the specification in their own way and stay within it, all work."""

from datetime import UTC, datetime
from urllib.parse import parse_qs

import pytest

import memframe as mf
from memframe import wire
from memframe.envelope import LAYOUTS, Envelope
from memframe.secret import Secret
from tests.faults import answered
from tests.strangers import CREDENTIALS, EXCHANGE_CODE, MEMORY, PAGE, SECRETS, TAG, USER_ID


def opened(stranger):
    return mf.open_access(stranger.client(), "r1")


def load(stranger, **options):
    return mf.load_memories(opened(stranger), progress=False, **options)


def memory(**fields):
    return {**MEMORY, **fields}


def page(stranger, *memories, **fields):
    stranger.answer(wire.LIST_MEMORIES, memoryBlobs=list(memories), **fields)


# Times


@pytest.mark.parametrize(
    "text",
    [
        "2999-01-01T00:00:00",
        "2999-01-01T02:00:00+02:00",
        "2999-01-01T00:00:00.000000000Z",
        "2999-01-01 00:00:00Z",
    ],
)
def test_a_token_expires_in_utc_however_the_service_writes_it(stranger, text):
    stranger.answer(wire.ISSUE_TOKEN, expires_at=text, token_type="bearer")
    expires_at = stranger.client().sign_in().expires_at
    assert (expires_at, expires_at.tzinfo) == (datetime(2999, 1, 1, tzinfo=UTC), UTC)


# Fields that are missing, null, or more than expected


def test_fields_that_nobody_knows_are_ignored_everywhere(stranger):
    for endpoint in (wire.ISSUE_TOKEN, wire.GET_REQUEST, wire.GET_CREDENTIALS, wire.GET_MEMORY, wire.TAG):
        stranger.answer(endpoint, links={"self": "x"}, version=[1])
    page(stranger, memory(embedding=[0.1]), total=1, took_ms=3)
    assert list(load(stranger)["id"]) == ["m1"]
    assert mf.load_memory(opened(stranger), "m1")["title"][0] == "Tea"
    assert stranger.client().tag(USER_ID, "t1").name == "food"


def test_a_tag_may_be_nothing_but_an_id_and_a_name(stranger):
    nulls = dict.fromkeys(("color", "description", "is_enabled", "created_at", "updated_at"))
    items = [{"id": "t1", "name": "food"}, {"id": "t2", "name": "work", **nulls}]
    stranger.always(wire.LIST_TAGS, answered(200, {"items": items}))
    tags = mf.load_tags(opened(stranger))
    assert (tags["is_enabled"].tolist(), tags["is_enabled"].dtype) == ([True, True], bool)


def test_a_memory_may_be_nothing_but_an_id_and_an_owner(stranger):
    page(stranger, {"id": "m1", "user_id": USER_ID}, memory(id="m2", tags=None, tag_ids=None, content=None))
    rows = load(stranger)
    assert rows["tags"].tolist() == [(), ()]
    assert rows["content"].isna().all()
    assert rows["content_error"].isna().all()


def test_a_request_needs_no_key_nor_user_nor_times(stranger):
    stranger.always(
        wire.LIST_REQUESTS, answered(200, {"items": [{"id": "r1", "status": "pending", "memoryKey": None}]})
    )
    (request,) = stranger.client().access_requests()
    assert (request.memory_key, request.user_id, request.created_at) == (None, None, None)
    assert list(mf.load_access_requests(stranger.client())["status"]) == ["pending"]


@pytest.mark.parametrize("fields", [{}, {"next_cursor": None}, {"next_cursor": ""}])
def test_a_listing_ends_without_a_cursor_with_null_and_with_an_empty_one(stranger, fields):
    stranger.always(wire.LIST_MEMORIES, answered(200, {"memoryBlobs": [MEMORY], **fields}))
    rows = load(stranger)
    assert rows.attrs["memframe"] == {
        "n_rows": 1, "n_undecryptable": 0, "n_plain": 1, "n_repeated": 0, "complete": True,
        "base_url": stranger.client().base_url,
    }  # fmt: skip
    assert stranger.client().memory_blobs(USER_ID).next_cursor is None


# Ids


def test_one_user_may_be_spelled_in_capitals_in_one_place_and_small_in_another(stranger):
    page(stranger, memory(user_id=USER_ID.upper()))
    assert len(load(stranger)) == 1
    stranger.answer(wire.GET_MEMORY, user_id=USER_ID.upper())
    assert len(mf.load_memory(opened(stranger), "m1")) == 1


@pytest.mark.parametrize("memory_id", ["a/b", "a?b", "a#b", "%2F", "ü", "...", "a+b"])
def test_an_odd_id_stays_one_segment_of_the_path(stranger, memory_id):
    stranger.answer(wire.GET_MEMORY, id=memory_id)
    assert stranger.client().memory_blob(USER_ID, memory_id).id == memory_id
    assert len(stranger.requests_to(wire.GET_MEMORY)) == 1


@pytest.mark.parametrize(
    "cursor", ["a+b/c==", "a&limit=1", "100%25", "two words", "ü\U0001f600", '"quoted"', "\\"]
)
def test_a_cursor_comes_back_to_the_service_as_it_was_given(stranger, cursor):
    stranger.script(wire.LIST_MEMORIES, answered(200, {**PAGE, "next_cursor": cursor}))
    page(stranger, memory(id="m2"))
    assert list(load(stranger)["id"]) == ["m1", "m2"]
    assert stranger.requests_to(wire.LIST_MEMORIES)[-1].query["cursor"] == cursor


@pytest.mark.parametrize("largest", [37, 100])
def test_pages_that_are_cut_smaller_than_asked_for_come_whole(stranger, largest):
    ids = [f"m{number}" for number in range(250)]

    def listing(request, forward):
        start = int(request.query.get("cursor", 0))
        stop = start + min(int(request.query["limit"]), largest)
        rows = [memory(id=memory_id) for memory_id in ids[start:stop]]
        return answered(200, {"memoryBlobs": rows, "next_cursor": str(stop) if stop < 250 else None})(
            request, forward
        )

    stranger.always(wire.LIST_MEMORIES, listing)
    assert list(load(stranger)["id"]) == ids


def test_a_refusal_that_lists_its_reasons_says_how_large_a_page_may_be(stranger):
    said = {"loc": ["query", "limit"], "msg": "Input should be less than or equal to 60", "ctx": {"le": 60}}
    stranger.script(wire.LIST_MEMORIES, answered(422, {"detail": [said]}))
    assert len(load(stranger)) == 1
    asked = [request.query["limit"] for request in stranger.requests_to(wire.LIST_MEMORIES)]
    assert asked == ["1000", "60"]


# Statuses of success


@pytest.mark.parametrize("status", [200, 201])
def test_a_create_is_answered_with_either_success(stranger, status):
    stranger.always(wire.CREATE_MEMORY, answered(status, MEMORY))
    stranger.always(wire.CREATE_REQUEST, answered(status, {"id": "r2", "status": "pending"}))
    client = stranger.client()
    assert client.create_memory_blob(USER_ID, memory_key="mk", content="x").id == "m1"
    assert client.create_access_request("mk", "why").id == "r2"


@pytest.mark.parametrize(("status", "body"), [(204, None), (200, None), (200, {"success": True, "id": "m1"})])
def test_a_delete_is_answered_with_or_without_a_body(stranger, status, body):
    stranger.always(wire.DELETE_MEMORY, answered(status, body))
    stranger.client().delete_memory_blob(USER_ID, "m1")
    (request,) = stranger.requests_to(wire.DELETE_MEMORY)
    assert request.query == {"user_id": USER_ID}


def test_credentials_of_any_version_open(stranger):
    for version in (0, 1, 7, 2**63):
        stranger.answer(
            wire.GET_CREDENTIALS, key_version=version, encryption_key=CREDENTIALS["encryption_key"].upper()
        )
        access = opened(stranger)
        assert access.envelope.open(access.envelope.seal("Likes tea")) == "Likes tea"


# Addresses


def test_the_address_may_end_with_a_slash_and_have_any_prefix(stranger):
    with mf.connect(f"{stranger.base_url}/", api_key=SECRETS["api key"]) as client:
        assert client.tags(USER_ID)[0].id == TAG["id"]
    assert stranger.requests[-1].path == "/somewhere/else/api/v1/tags"


def test_the_page_that_asks_the_user_may_be_on_another_host_with_a_query(stranger):
    flow = stranger.flow(authorize_url="https://login.example/consent?tenant=a%20b")
    address = flow.authorization_url(state="s1")
    assert address.startswith("https://login.example/consent?tenant=a%20b&response_type=code&client_id=app&")
    tokens = flow.exchange(f"http://127.0.0.1/callback?code=c&state=s1&iss={stranger.base_url}")
    assert tokens.memory_key.reveal() == SECRETS["memory key"]


# OAuth


def test_the_exchange_is_the_form_of_the_specification(stranger):
    flow = stranger.flow(pkce=False)
    flow.exchange(SECRETS["code"])
    (request,) = stranger.requests
    assert request.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert parse_qs(request.body.decode(), strict_parsing=True) == {
        "grant_type": ["authorization_code"],
        "code": [SECRETS["code"]],
        "client_id": ["app"],
        "client_secret": [SECRETS["client secret"]],
        "redirect_uri": ["http://127.0.0.1/callback"],
    }


def test_the_tokens_need_no_refresh_token_and_no_lifetime(stranger):
    stranger.answer_without(EXCHANGE_CODE, "refresh_token", "expires_in", "token_type")
    tokens = stranger.flow().exchange("c")
    assert (tokens.refresh_token, tokens.expires_in) == (None, None)


@pytest.mark.parametrize(
    ("status", "error", "kind", "words"),
    [
        (400, "invalid_grant", mf.OAuthError, "already used, has expired"),
        (400, "invalid_request", mf.OAuthError, "'invalid_request': why. Open the link again"),
        (400, "unauthorized_client", mf.AuthError, "check client_id and client_secret"),
        (401, "invalid_client", mf.AuthError, "check client_id and client_secret"),
        (403, "access_denied", mf.OAuthError, "did not allow access"),
        (429, "slow_down", mf.RateLimitError, "429: why. Wait a minute"),
        (500, "server_error", mf.ServiceError, "500: why. Try again later"),
    ],
)
def test_every_refusal_of_rfc_6749_is_told_in_its_words(stranger, status, error, kind, words):
    stranger.always(EXCHANGE_CODE, answered(status, {"error": error, "error_description": "why."}))
    with pytest.raises(kind, match=words):
        stranger.flow().exchange("a-code")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"detail": "no room"}, "no room"),
        ({"title": "Bad Request", "detail": "no room"}, "no room"),
        ({"message": "no room", "statusCode": 400, "error": "Bad Request"}, "no room"),
        ({"error": "no room"}, "no room"),
        ({"error": {"message": "no room", "code": 17}}, "no room"),
        ({"detail": [{"loc": ["query", "limit"], "msg": "no room"}, {"msg": "else"}]}, "limit: no room"),
        ({"errors": [{"detail": "no room", "status": "400"}]}, "no room"),
        ({"message": "no room", "errors": [{"message": "this"}, 1]}, "no room"),
        ({"detail": [[{"msg": "x"}]], "errors": []}, "no reason given"),
        ({"detail": [{"loc": [], "msg": 7}]}, "no reason given"),
        (["no room"], "no reason given"),
        (None, "no reason given"),
    ],
)
def test_the_reason_of_a_refusal_is_found_in_the_shapes_that_services_use(stranger, body, reason):
    stranger.always(wire.LIST_TAGS, answered(400, body))
    with pytest.raises(mf.InvalidError, match=f"answered 400: {reason}"):
        stranger.client().tags(USER_ID)


def test_a_service_may_date_an_update_before_the_creation(stranger):
    times = {"created_at": "2026-02-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}
    page(stranger, memory(**times))
    stranger.answer(wire.GET_MEMORY, **times)
    edited = load(stranger).assign(title="Green tea")
    assert list(mf.plan_changes(opened(stranger), edited).changes.action) == ["patch"]


# Content


def test_each_row_of_a_store_that_several_programs_sealed_is_read_in_its_own_layout(stranger):
    names = [name for name in LAYOUTS if name not in {"cbc-iv:ct", "openssl-salted"}]
    keys = {"user_id": USER_ID, "key_version": CREDENTIALS["key_version"]}
    writers = [Envelope(Secret(CREDENTIALS["encryption_key"]), **keys, write_format=name) for name in names]
    page(stranger, *(memory(id=f"m{n}", content=writers[n % 9].seal(f"note {n}")) for n in range(27)))
    loaded = load(stranger)
    assert list(loaded["content"]) == [f"note {n}" for n in range(27)]
    assert loaded["content_error"].isna().all()
