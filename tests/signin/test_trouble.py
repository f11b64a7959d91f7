"""Every side road of the sign-in, on a real service: what it is called, what is said, and how it goes on."""

import json
from typing import get_args
from urllib.parse import parse_qs, urlsplit

import pytest

import memframe as mf
from memframe.client import Client
from memframe.secret import Secret
from memframe.signin.state import TEXTS, Kind, Step, trouble_of
from memframe.wire import (
    CREATE_REQUEST,
    GET_CREDENTIALS,
    GET_REQUEST,
    ISSUE_TOKEN,
    LIST_MEMORIES,
    LIST_REQUESTS,
    LIST_TAGS,
)
from tests.faults import answered, cut, html, without_field
from tests.signin.conftest import approved, pending

NOWHERE = "http://127.0.0.1:9/api/v1"


def fails(step, *arguments):
    with pytest.raises(mf.MemframeError) as failed:
        step(*arguments)
    return failed.value


def test_a_key_that_is_refused(service, user):
    way = mf.SignIn()
    fails(way.sign_in, mf.connect(service.base_url, api_key="mf_live_wrong"))
    assert way.trouble.kind == "refused_key"
    assert "does not accept this API key" in way.trouble.text
    assert way.state == "signed_out"
    way.sign_in(user.client)
    assert (way.state, way.trouble) == ("signed_in", None)


def test_a_service_that_cannot_be_reached():
    way = mf.SignIn()
    fails(way.sign_in, mf.connect(NOWHERE, api_key="mf_live_x"))
    assert way.trouble.kind == "unreachable"
    assert way.trouble.is_passing
    assert way.trouble.text.startswith("Cannot reach 127.0.0.1:9.")


def test_a_setting_that_is_missing_is_named(monkeypatch):
    monkeypatch.delenv("MEMFRAME_BASE_URL", raising=False)
    way = mf.SignIn()
    fails(way.sign_in, "mf_live_x")
    assert way.trouble.kind == "other"
    assert "MEMFRAME_BASE_URL" in way.trouble.text


def test_an_address_of_another_attempt(way, user):
    redirected = user.person.authorize(way.authorize())
    fails(way.finish, redirected.replace("state=", "state=x"))
    assert way.trouble.kind == "state_mismatch"
    way.finish(redirected)
    assert (way.state, way.trouble) == ("authorized", None)


def test_a_code_that_was_used_leads_to_a_new_link(way, user):
    redirected = user.person.authorize(way.authorize())
    code = parse_qs(urlsplit(redirected).query)["code"][0]
    way.finish(redirected)
    first = way.authorize()
    fails(way.finish, code)
    assert way.trouble.kind == "used_code"
    assert way.state == "authorizing"
    assert way.stand.address != first
    way.finish(user.person.authorize(way.stand.address))
    assert way.state == "authorized"


def test_a_consent_that_is_denied(way, user):
    fails(way.finish, user.person.authorize(way.authorize(), allow=False))
    assert way.trouble.kind == "denied"
    assert way.state == "authorizing"
    way.finish(user.person.authorize(way.stand.address))
    assert way.state == "authorized"


@pytest.mark.parametrize("pasted", ["", "http://127.0.0.1/callback?state={}"])
def test_something_pasted_without_a_code(way, pasted):
    state = parse_qs(urlsplit(way.authorize()).query)["state"][0]
    fails(way.finish, pasted.format(state))
    assert way.trouble.kind == "no_code"


def test_an_application_that_is_not_known(user):
    flow = mf.OAuthFlow(
        user.service.client_id,
        "mfs_wrong",
        auth_url=user.service.auth_url,
        redirect_uri=user.service.redirect_uri,
    )
    way = mf.SignIn(user.client, flow=flow)
    first = way.authorize()
    fails(way.finish, user.person.authorize(first))
    assert way.trouble.kind == "refused_client"
    assert way.state == "authorizing"
    assert way.stand.address != first


@pytest.mark.parametrize("status", ["rejected", "revoked"])
def test_a_user_who_says_no(way, user, status):
    pending(way, user)
    if status == "revoked":
        user.service.decide(way.request.id, "approved")
    user.service.decide(way.request.id, status)
    way.check()
    assert (way.state, way.trouble) == (status, None)
    way.go_back()
    assert (way.state, way.request) == ("signed_in", None)


@pytest.mark.parametrize("status", ["rejected", "revoked"])
def test_a_user_who_said_no_is_asked_again_without_another_authorization(far_way, user, proxy, status):
    first = approved(far_way, user).request if status == "revoked" else pending(far_way, user).request
    user.service.decide(first.id, status)
    far_way.check()
    far_way.ask("a better reason")
    assert (far_way.state, far_way.request.reason) == ("pending", "a better reason")
    assert far_way.request.id != first.id
    asked = [json.loads(request.body)["memoryKey"] for request in proxy.requests_to(CREATE_REQUEST)]
    assert asked[0] == asked[1]


def test_a_request_that_was_chosen_is_asked_again_with_the_key_that_the_service_tells(way, user):
    user.service.decide(user.ask().id, "rejected")
    way.refresh()
    way.choose(next(request.id for request in way.requests if request.user_id == user.user_id))
    way.ask("a better reason")
    assert way.state == "pending"


def test_a_request_without_its_key_says_that_the_user_is_to_be_authorized(far_way, user, proxy):
    request = user.ask()
    user.service.decide(request.id, "rejected")
    proxy.always(GET_REQUEST, without_field("memoryKey"))
    far_way.choose(request.id)
    assert isinstance(fails(far_way.ask, "x"), mf.ConfigError)
    assert "authorize() the user again" in far_way.trouble.text


@pytest.mark.parametrize("status", [403, 404])
def test_a_memory_key_that_is_not_accepted_any_more_leads_back_to_the_authorization(
    far_way, user, proxy, status
):
    user.service.decide(pending(far_way, user).request.id, "rejected")
    far_way.check()
    proxy.script(CREATE_REQUEST, answered(status))
    fails(far_way.ask, "a better reason")
    assert (far_way.state, far_way.trouble.kind) == ("signed_in", "refused_memory_key")
    pending(far_way, user)


@pytest.mark.parametrize("fault", [answered(422), answered(429), cut])
def test_a_refusal_that_is_not_about_the_key_leaves_one_where_one_was(far_way, user, proxy, fault):
    user.service.decide(pending(far_way, user).request.id, "rejected")
    far_way.check()
    proxy.script(CREATE_REQUEST, fault)
    fails(far_way.ask, "x" * 10)
    assert far_way.state == "rejected"
    far_way.ask("a better reason")
    assert far_way.state == "pending"


def test_an_address_without_the_path_of_the_api_is_tried_with_it(user):
    way = mf.SignIn()
    way.sign_in(user.service.api_key, base_url=user.service.base_url.removesuffix("/api/v1"))
    assert way.client.base_url == user.service.base_url


def test_a_revocation_is_noticed_when_the_memories_are_to_be_loaded(way, user):
    approved(way, user).open()
    user.service.decide(way.request.id, "revoked")
    assert isinstance(fails(lambda: way.load(progress=False)), mf.AccessError)
    assert (way.state, way.access, way.trouble) == ("revoked", None, None)


def test_a_revocation_is_noticed_when_the_access_is_to_be_opened(way, user):
    approved(way, user)
    user.service.decide(way.request.id, "revoked")
    fails(way.open)
    assert (way.state, way.trouble) == ("revoked", None)


def test_what_was_loaded_stays_after_a_revocation_and_goes_with_the_sign_out(way, user):
    approved(way, user).open()
    way.load(progress=False)
    user.service.decide(way.request.id, "revoked")
    way.check()
    assert way.state == "revoked"
    assert way.memories is not None
    way.sign_out()
    assert (way.memories, way.tags) == (None, None)


def test_a_token_that_expires_is_renewed_without_a_word(far_way, user, proxy):
    pending(far_way, user)
    proxy.script(GET_REQUEST, answered(401))
    far_way.check()
    assert (far_way.state, far_way.trouble) == ("pending", None)
    assert len(proxy.requests_to(ISSUE_TOKEN)) == 2


def test_a_key_that_is_withdrawn_later(far_way, user, proxy):
    pending(far_way, user)
    proxy.script(GET_REQUEST, answered(401))
    proxy.script(ISSUE_TOKEN, answered(401))
    fails(far_way.check)
    assert far_way.trouble.kind == "refused_token"
    assert not far_way.trouble.is_passing
    assert far_way.state == "pending"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (answered(429, Retry_After="20"), "Try again in 20 s."),
        (answered(429), "Try again in a minute."),
        (answered(503, Retry_After="soon"), "Try again in a minute."),
        (answered(500), "Try again in a minute."),
    ],
)
def test_a_busy_service_is_told_of_at_once(far_way, user, proxy, fault, said):
    pending(far_way, user)
    proxy.script(GET_REQUEST, fault)
    fails(far_way.check)
    assert far_way.trouble.kind == "busy"
    assert far_way.trouble.is_passing
    assert far_way.trouble.way_out == said
    assert len(proxy.requests_to(GET_REQUEST)) == 1
    far_way.check()
    assert (far_way.state, far_way.trouble) == ("pending", None)


def test_a_request_that_is_gone(way):
    fails(way.choose, "00000000-0000-0000-0000-000000000000")
    assert way.trouble.kind == "gone"
    assert way.state == "signed_in"


STEPS = {
    "sign_in": (ISSUE_TOKEN, lambda way: way.sign_in(way.client)),
    "refresh": (LIST_REQUESTS, lambda way: way.refresh()),
    "ask": (CREATE_REQUEST, lambda way: way.ask("a test")),
    "choose": (GET_REQUEST, lambda way: way.choose("r1")),
    "open": (GET_CREDENTIALS, lambda way: way.open()),
    "load": (LIST_TAGS, lambda way: way.load(progress=False)),
}


@pytest.mark.parametrize("fault", [html, answered(404), answered(302), cut])
@pytest.mark.parametrize("name", STEPS)
def test_whatever_breaks_is_told_and_leaves_one_where_one_was(far_way, user, proxy, name, fault):
    endpoint, step = STEPS[name]
    if name == "ask":
        far_way.finish(user.person.authorize(far_way.authorize()))
    if name in {"open", "load"}:
        approved(far_way, user)
    if name == "load":
        far_way.open()
    before = far_way.state
    proxy.script(endpoint, *[fault] * 3)
    fails(step, far_way)
    assert far_way.state == before
    assert far_way.trouble.step == name
    assert far_way.trouble.text
    assert far_way.stand.doing is None


def test_a_load_that_breaks_off_keeps_nothing(far_way, user, proxy):
    approved(far_way, user).open()
    proxy.script(LIST_MEMORIES, *[cut] * 3)
    fails(lambda: far_way.load(progress=False))
    assert (far_way.state, far_way.memories, far_way.tags) == ("ready", None, None)
    far_way.load(progress=False)
    assert far_way.state == "loaded"


def test_what_nobody_foresaw_is_named_without_its_text():
    trouble = trouble_of("load", KeyError("a private text"))
    assert trouble.kind == "fault"
    assert "KeyError" in trouble.text
    assert "private" not in repr(trouble)


def test_a_secret_is_in_no_trouble(user, way):
    secret = "mf_live_a-canary-that-is-not-shown"
    for step in (
        lambda: mf.SignIn().sign_in(Client(NOWHERE, Secret(secret))),
        lambda: way.finish(f"http://127.0.0.1/callback?code={secret}&state=x"),
        lambda: way.finish(secret),
    ):
        way.authorize()
        fails(step)
        assert secret not in repr(way.trouble)


def test_every_kind_has_words():
    own_words = {"unreachable", "no_access", "other", "fault"}
    assert set(TEXTS) | own_words == set(get_args(Kind))
    assert not set(TEXTS) & own_words
    for step in get_args(Step):
        assert trouble_of(step, mf.ConfigError("a is missing")).text == "A is missing."
        assert trouble_of(step, mf.ConfigError("base_url is missing")).text == "base_url is missing."
