"""Every failure of a sign-in, on a real service: what it is called, what is said, and how it goes on."""

from typing import get_args
from urllib.parse import parse_qs, urlsplit

import pytest

import memframe as mf
from memframe.client import Client
from memframe.secret import Secret
from memframe.signin.state import FAILURE_WORDS, FailureKind, SignInStep, describe_failure
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


def redirected(sign_in, user, **options):
    return user.person.authorize(sign_in.authorize(), **options)


def use_a_code_twice(sign_in, user):
    answer = redirected(sign_in, user)
    sign_in.finish(answer)
    sign_in.authorize()
    sign_in.finish(parse_qs(urlsplit(answer).query)["code"][0])


def connect_an_unknown_application(sign_in, user):
    service = user.service
    sign_in.authorize(
        service.client_id, "mfs_wrong", auth_url=service.auth_url, redirect_uri=service.redirect_uri
    )
    sign_in.finish(user.person.authorize(sign_in.snapshot.address))


FAILURES = {
    "refused_key": lambda sign_in, user: sign_in.sign_in(
        mf.connect(user.service.base_url, api_key="mf_live_wrong")
    ),
    "unreachable": lambda sign_in, user: sign_in.sign_in(mf.connect(NOWHERE, api_key="mf_live_x")),
    "state_mismatch": lambda sign_in, user: sign_in.finish(
        redirected(sign_in, user).replace("state=", "state=x")
    ),
    "used_code": use_a_code_twice,
    "denied": lambda sign_in, user: sign_in.finish(redirected(sign_in, user, allow=False)),
    "link_pasted": lambda sign_in, user: sign_in.finish(sign_in.authorize()),
    "not_an_answer": lambda sign_in, user: sign_in.finish(sign_in.authorize() and "Please see my notes"),
    "no_code": lambda sign_in, user: sign_in.finish(sign_in.authorize() and ""),
    "refused_client": connect_an_unknown_application,
    "gone": lambda sign_in, user: sign_in.choose("00000000-0000-0000-0000-000000000000"),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_a_step_that_fails_says_why_and_can_be_repeated(sign_in, user, kind):
    fails(FAILURES[kind], sign_in, user)
    assert (sign_in.failure.kind, sign_in.failure.is_transient) == (kind, kind == "unreachable")
    assert sign_in.failure.text
    assert sign_in.state == ("signed_in" if kind in {"refused_key", "unreachable", "gone"} else "authorizing")
    if kind == "refused_client":
        sign_in.go_back()
    elif sign_in.state == "authorizing":
        sign_in.finish(user.person.authorize(sign_in.snapshot.address))  # a new link, where one was used
    sign_in.sign_in(user.client)
    assert (sign_in.state, sign_in.failure) == ("signed_in", None)


def test_a_setting_that_is_missing_is_named(monkeypatch):
    monkeypatch.delenv("MEMFRAME_BASE_URL", raising=False)
    sign_in = mf.SignIn()
    fails(sign_in.sign_in, "mf_live_x")
    assert (sign_in.failure.kind, "MEMFRAME_BASE_URL" in sign_in.failure.text) == ("other", True)


def test_a_request_without_its_key_says_that_the_user_is_to_be_authorized(far_sign_in, user, proxy):
    request = user.ask()
    user.service.decide(request.id, "rejected")
    proxy.always(GET_REQUEST, without_field("memoryKey"))
    far_sign_in.choose(request.id)
    assert isinstance(fails(far_sign_in.ask, "x"), mf.ConfigError)
    assert "authorize() the user again" in far_sign_in.failure.text


@pytest.mark.parametrize(
    ("fault", "state"),
    [
        (answered(403), "signed_in"),
        (answered(404), "signed_in"),
        (answered(422), "rejected"),
        (cut, "rejected"),
    ],
)
def test_only_a_memory_key_that_is_refused_leads_back_to_the_authorization(
    far_sign_in, user, proxy, fault, state
):
    user.service.decide(pending(far_sign_in, user).request.id, "rejected")
    far_sign_in.check()
    proxy.script(CREATE_REQUEST, fault)
    fails(far_sign_in.ask, "a better reason")
    assert far_sign_in.state == state
    assert (far_sign_in.failure.kind == "refused_memory_key") == (state == "signed_in")
    far_sign_in.ask("a better reason") if state == "rejected" else pending(far_sign_in, user)
    assert far_sign_in.state == "pending"


def test_a_token_is_renewed_without_a_word_until_the_key_is_withdrawn(far_sign_in, user, proxy):
    pending(far_sign_in, user)
    proxy.script(GET_REQUEST, answered(401))
    far_sign_in.check()
    assert (far_sign_in.state, far_sign_in.failure) == ("pending", None)
    assert len(proxy.requests_to(ISSUE_TOKEN)) == 2
    proxy.script(GET_REQUEST, answered(401))
    proxy.script(ISSUE_TOKEN, answered(401))
    fails(far_sign_in.check)
    assert (far_sign_in.failure.kind, far_sign_in.failure.is_transient) == ("refused_token", False)
    assert far_sign_in.state == "pending"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (answered(429, Retry_After="20"), "Try again in 20 s."),
        (answered(503, Retry_After="soon"), "Try again in a minute."),
        (answered(500), "Try again in a minute."),
    ],
)
def test_a_busy_service_is_reported_at_once(far_sign_in, user, proxy, fault, said):
    pending(far_sign_in, user)
    proxy.script(GET_REQUEST, fault)
    fails(far_sign_in.check)
    assert (far_sign_in.failure.kind, far_sign_in.failure.is_transient) == ("busy", True)
    assert far_sign_in.failure.next_step == said
    assert len(proxy.requests_to(GET_REQUEST)) == 1
    far_sign_in.check()
    assert (far_sign_in.state, far_sign_in.failure) == ("pending", None)


STEPS = {
    "sign_in": (ISSUE_TOKEN, lambda sign_in: sign_in.sign_in(sign_in.client)),
    "refresh": (LIST_REQUESTS, lambda sign_in: sign_in.refresh()),
    "ask": (CREATE_REQUEST, lambda sign_in: sign_in.ask("a test")),
    "choose": (GET_REQUEST, lambda sign_in: sign_in.choose("r1")),
    "open": (GET_CREDENTIALS, lambda sign_in: sign_in.open()),
    "load": (LIST_MEMORIES, lambda sign_in: sign_in.load(progress=False)),
}


@pytest.mark.parametrize("fault", [html, answered(302), cut])
@pytest.mark.parametrize("name", STEPS)
def test_whatever_breaks_leaves_the_state_as_it_was(far_sign_in, user, proxy, name, fault):
    endpoint, step = STEPS[name]
    if name == "ask":
        far_sign_in.finish(user.person.authorize(far_sign_in.authorize()))
    if name in {"open", "load"}:
        approved(far_sign_in, user)
    if name == "load":
        far_sign_in.open()
    before = far_sign_in.state
    proxy.script(endpoint, *[fault] * 3)
    fails(step, far_sign_in)
    assert (far_sign_in.state, far_sign_in.failure.step, far_sign_in.snapshot.doing) == (before, name, None)
    assert far_sign_in.failure.text
    assert (far_sign_in.memories, far_sign_in.tags) == (None, None)


def test_an_unforeseen_error_is_named_without_its_text():
    failure = describe_failure("load", KeyError("a private text"))
    assert failure.kind == "fault"
    assert "KeyError" in failure.text
    assert "private" not in repr(failure)


def test_a_secret_is_in_no_failure(sign_in):
    secret = "mf_live_a-canary-that-is-not-shown"
    for step in (
        lambda: mf.SignIn().sign_in(Client(NOWHERE, Secret(secret))),
        lambda: sign_in.finish(f"http://127.0.0.1/callback?code={secret}&state=x"),
        lambda: sign_in.finish(secret),
    ):
        sign_in.authorize()
        fails(step)
        assert secret not in repr(sign_in.failure)


def test_every_kind_has_words():
    own_words = {"unreachable", "no_access", "other", "fault"}
    assert set(FAILURE_WORDS) | own_words == set(get_args(FailureKind))
    assert not set(FAILURE_WORDS) & own_words
    for step in get_args(SignInStep):
        assert describe_failure(step, mf.ConfigError("a is missing")).text == "A is missing."
        assert describe_failure(step, mf.ConfigError("base_url is missing")).text == "base_url is missing."
