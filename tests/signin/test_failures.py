"""Every failure of a sign-in, on a real service: what it is called, what is said, and how it goes on."""

from typing import get_args
from urllib.parse import parse_qs, urlsplit

import pytest

import memframe as mf
from memframe.client import Client
from memframe.secret import Secret
from memframe.signin.failures import TEXTS, Kind, Step, describe_failure
from memframe.wire import (
    CREATE_REQUEST,
    GET_CREDENTIALS,
    GET_REQUEST,
    ISSUE_TOKEN,
    LIST_MEMORIES,
    LIST_REQUESTS,
)
from tests.faults import answered, cut, html, without_field
from tests.signin.conftest import approved, pending

NOWHERE = "http://127.0.0.1:9/api/v1"


def fails(step, *arguments):
    with pytest.raises(mf.MemframeError) as failed:
        step(*arguments)
    return failed.value


def redirected(way, user, **options):
    return user.person.authorize(way.authorize(), **options)


def use_a_code_twice(way, user):
    answer = redirected(way, user)
    way.finish(answer)
    way.authorize()
    way.finish(parse_qs(urlsplit(answer).query)["code"][0])


def connect_an_unknown_application(way, user):
    service = user.service
    way.authorize(
        service.client_id, "mfs_wrong", auth_url=service.auth_url, redirect_uri=service.redirect_uri
    )
    way.finish(user.person.authorize(way.snapshot.address))


FAILURES = {
    "refused_key": lambda way, user: way.sign_in(mf.connect(user.service.base_url, api_key="mf_live_wrong")),
    "unreachable": lambda way, user: way.sign_in(mf.connect(NOWHERE, api_key="mf_live_x")),
    "state_mismatch": lambda way, user: way.finish(redirected(way, user).replace("state=", "state=x")),
    "used_code": use_a_code_twice,
    "denied": lambda way, user: way.finish(redirected(way, user, allow=False)),
    "link_pasted": lambda way, user: way.finish(way.authorize()),
    "no_code": lambda way, user: way.finish(way.authorize() and ""),
    "refused_client": connect_an_unknown_application,
    "gone": lambda way, user: way.choose("00000000-0000-0000-0000-000000000000"),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_a_step_that_fails_says_why_and_can_be_repeated(way, user, kind):
    fails(FAILURES[kind], way, user)
    assert (way.failure.kind, way.failure.is_transient) == (kind, kind == "unreachable")
    assert way.failure.text
    assert way.state == ("signed_in" if kind in {"refused_key", "unreachable", "gone"} else "authorizing")
    if kind == "refused_client":
        way.go_back()
    elif way.state == "authorizing":
        way.finish(user.person.authorize(way.snapshot.address))  # which is a new link, where one was used
    way.sign_in(user.client)
    assert (way.state, way.failure) == ("signed_in", None)


def test_a_setting_that_is_missing_is_named(monkeypatch):
    monkeypatch.delenv("MEMFRAME_BASE_URL", raising=False)
    way = mf.SignIn()
    fails(way.sign_in, "mf_live_x")
    assert (way.failure.kind, "MEMFRAME_BASE_URL" in way.failure.text) == ("other", True)


def test_a_request_without_its_key_says_that_the_user_is_to_be_authorized(far_way, user, proxy):
    request = user.ask()
    user.service.decide(request.id, "rejected")
    proxy.always(GET_REQUEST, without_field("memoryKey"))
    far_way.choose(request.id)
    assert isinstance(fails(far_way.ask, "x"), mf.ConfigError)
    assert "authorize() the user again" in far_way.failure.text


@pytest.mark.parametrize(
    ("fault", "state"),
    [
        (answered(403), "signed_in"),
        (answered(404), "signed_in"),
        (answered(422), "rejected"),
        (answered(429), "rejected"),
        (cut, "rejected"),
    ],
)
def test_only_a_memory_key_that_is_refused_leads_back_to_the_authorization(
    far_way, user, proxy, fault, state
):
    user.service.decide(pending(far_way, user).request.id, "rejected")
    far_way.check()
    proxy.script(CREATE_REQUEST, fault)
    fails(far_way.ask, "a better reason")
    assert (far_way.state, far_way.failure.kind == "refused_memory_key") == (state, state == "signed_in")
    far_way.ask("a better reason") if state == "rejected" else pending(far_way, user)
    assert far_way.state == "pending"


def test_a_token_is_renewed_without_a_word_until_the_key_is_withdrawn(far_way, user, proxy):
    pending(far_way, user)
    proxy.script(GET_REQUEST, answered(401))
    far_way.check()
    assert (far_way.state, far_way.failure) == ("pending", None)
    assert len(proxy.requests_to(ISSUE_TOKEN)) == 2
    proxy.script(GET_REQUEST, answered(401))
    proxy.script(ISSUE_TOKEN, answered(401))
    fails(far_way.check)
    assert (far_way.failure.kind, far_way.failure.is_transient) == ("refused_token", False)
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
def test_a_busy_service_is_reported_at_once(far_way, user, proxy, fault, said):
    pending(far_way, user)
    proxy.script(GET_REQUEST, fault)
    fails(far_way.check)
    assert (far_way.failure.kind, far_way.failure.is_transient) == ("busy", True)
    assert far_way.failure.next_step == said
    assert len(proxy.requests_to(GET_REQUEST)) == 1
    far_way.check()
    assert (far_way.state, far_way.failure) == ("pending", None)


STEPS = {
    "sign_in": (ISSUE_TOKEN, lambda way: way.sign_in(way.client)),
    "refresh": (LIST_REQUESTS, lambda way: way.refresh()),
    "ask": (CREATE_REQUEST, lambda way: way.ask("a test")),
    "choose": (GET_REQUEST, lambda way: way.choose("r1")),
    "open": (GET_CREDENTIALS, lambda way: way.open()),
    "load": (LIST_MEMORIES, lambda way: way.load(progress=False)),
}


@pytest.mark.parametrize("fault", [html, answered(302), cut])
@pytest.mark.parametrize("name", STEPS)
def test_whatever_breaks_leaves_the_state_as_it_was(far_way, user, proxy, name, fault):
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
    assert (far_way.state, far_way.failure.step, far_way.snapshot.doing) == (before, name, None)
    assert far_way.failure.text
    assert (far_way.memories, far_way.tags) == (None, None)


def test_an_unforeseen_error_is_named_without_its_text():
    failure = describe_failure("load", KeyError("a private text"))
    assert failure.kind == "fault"
    assert "KeyError" in failure.text
    assert "private" not in repr(failure)


def test_a_secret_is_in_no_failure(way):
    secret = "mf_live_a-canary-that-is-not-shown"
    for step in (
        lambda: mf.SignIn().sign_in(Client(NOWHERE, Secret(secret))),
        lambda: way.finish(f"http://127.0.0.1/callback?code={secret}&state=x"),
        lambda: way.finish(secret),
    ):
        way.authorize()
        fails(step)
        assert secret not in repr(way.failure)


def test_every_kind_has_words():
    own_words = {"unreachable", "no_access", "other", "fault"}
    assert set(TEXTS) | own_words == set(get_args(Kind))
    assert not set(TEXTS) & own_words
    for step in get_args(Step):
        assert describe_failure(step, mf.ConfigError("a is missing")).text == "A is missing."
        assert describe_failure(step, mf.ConfigError("base_url is missing")).text == "base_url is missing."
