"""The sign-in as a state machine: the walk, steps out of turn or two at once, and what is kept at its end."""

from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import pytest

import memframe as mf
from memframe.errors import ConfigError
from memframe.sample import load_sample, load_sample_tags
from memframe.signin.state import DUE, State
from memframe.wire import CREATE_REQUEST, GET_REQUEST, LIST_REQUESTS
from tests.signin.conftest import approved, pending


def test_the_whole_walk(user):
    user.service.import_memories(user.user_id, load_sample()[:30], load_sample_tags())
    sign_in, states = mf.SignIn(user.client, flow=user.flow()), []

    def took(result):
        states.append(sign_in.state)
        return result

    took(None)
    address = took(sign_in.authorize())
    took(sign_in.finish(user.person.authorize(address)))
    took(sign_in.ask("weekly review"))
    took(sign_in.check())
    user.service.decide(sign_in.request.id, "approved")
    took(sign_in.check())
    access = took(sign_in.open())
    took(sign_in.load(progress=False))
    took(sign_in.check())
    walk = "signed_in authorizing authorized pending pending approved ready loaded loaded"
    assert states == walk.split()
    assert sign_in.access is access
    assert (len(sign_in.memories), len(sign_in.tags)) == (30, len(load_sample_tags()))
    assert repr(sign_in.snapshot) == "<SignInState loaded>"
    user.service.decide(sign_in.request.id, "revoked")
    sign_in.check()
    assert (sign_in.state, sign_in.access) == ("revoked", None)
    assert sign_in.memories is not None
    sign_in.sign_out()
    names = ("client", "tokens", "request", "access", "memories", "tags")
    assert (sign_in.state, {getattr(sign_in, name) for name in names}) == ("signed_out", {None})


@pytest.mark.parametrize(
    ("step", "argument"), [("finish", ["x"]), ("ask", ["x"]), ("check", []), ("open", []), ("load", [])]
)
def test_a_step_out_of_turn_names_the_one_that_is_due(sign_in, step, argument):
    with pytest.raises(ConfigError, match=r"authorize\(\) for a new user"):
        getattr(sign_in, step)(*argument)
    assert sign_in.state == "signed_in"


def test_every_state_says_what_is_due():
    assert list(DUE) == list(get_args(State))
    assert repr(mf.SignIn()) == "<memframe.SignIn signed_out: sign_in() with the API key>"


def test_settings_that_are_given_make_another_flow(user):
    service = user.service
    sign_in = mf.SignIn()
    sign_in.sign_in(
        service.api_key, base_url=service.base_url.removesuffix("/api/v1"), auth_url=service.auth_url
    )
    assert sign_in.client.base_url == service.base_url
    first = sign_in.authorize(service.client_id, service.client_secret, redirect_uri=service.redirect_uri)
    assert sign_in.authorize() != first
    sign_in.finish(user.person.authorize(sign_in.snapshot.address))
    assert sign_in.state == "authorized"
    sign_in.sign_out()
    assert sign_in.snapshot.flow is None


@pytest.mark.parametrize("status", ["rejected", "revoked"])
def test_a_user_who_says_no_is_left_or_asked_again(sign_in, user, status):
    approved(sign_in, user) if status == "revoked" else sign_in.choose(user.ask().id)
    first = sign_in.request
    user.service.decide(first.id, status)
    sign_in.check()
    assert (sign_in.state, sign_in.failure) == (status, None)
    sign_in.ask("a better reason")  # with the key that is known, without another authorization
    assert (sign_in.state, sign_in.request.reason) == ("pending", "a better reason")
    assert (sign_in.request.id != first.id, sign_in.request.memory_key) == (True, first.memory_key)
    sign_in.go_back()
    assert (sign_in.state, sign_in.request) == ("signed_in", None)


@pytest.mark.parametrize("step", ["open", "load"])
def test_a_revocation_is_noticed_by_the_step_that_it_stops(sign_in, user, step):
    approved(sign_in, user)
    if step == "load":
        sign_in.open()
    user.service.decide(sign_in.request.id, "revoked")
    with pytest.raises(mf.AccessError):
        getattr(sign_in, step)()
    assert (sign_in.state, sign_in.access, sign_in.failure) == ("revoked", None, None)


# Two steps at once: the later one counts, and polls give way to steps


@pytest.fixture
def background():
    with ThreadPoolExecutor(1) as background:
        yield background


STEPS = {
    "ask": (CREATE_REQUEST, lambda sign_in, user: sign_in.ask("a test")),
    "choose": (GET_REQUEST, lambda sign_in, user: sign_in.choose(user.ask().id)),
    "check": (GET_REQUEST, lambda sign_in, user: sign_in.check()),
}


@pytest.mark.parametrize(
    ("step", "meanwhile", "state"),
    [
        ("ask", mf.SignIn.sign_out, "signed_out"),
        ("choose", mf.SignIn.cancel, "signed_in"),
        ("check", mf.SignIn.go_back, "signed_in"),
    ],
)
def test_a_later_step_drops_the_result_of_an_earlier_one(
    far_sign_in, user, proxy, held, background, step, meanwhile, state
):
    if step == "ask":
        far_sign_in.finish(user.person.authorize(far_sign_in.authorize()))
    if step == "check":
        pending(far_sign_in, user)
    endpoint, take = STEPS[step]
    proxy.script(endpoint, held)
    taken = background.submit(take, far_sign_in, user)
    assert held.came.wait(20)
    assert far_sign_in.snapshot.doing == step
    meanwhile(far_sign_in)
    assert (far_sign_in.state, far_sign_in.snapshot.doing) == (state, None)
    held.release.set()
    with pytest.raises(mf.ConfigError, match="overtaken"):
        taken.result(20)
    assert (far_sign_in.state, far_sign_in.request, far_sign_in.snapshot.doing) == (state, None, None)


def test_a_poll_gives_way_to_a_step(far_sign_in, user, proxy, held, background):
    far_sign_in.finish(user.person.authorize(far_sign_in.authorize()))
    proxy.script(CREATE_REQUEST, held)
    asking = background.submit(far_sign_in.ask, "a test")
    assert held.came.wait(20)
    far_sign_in.refresh()
    assert proxy.requests_to(LIST_REQUESTS) == []
    held.release.set()
    asking.result(20)
    assert far_sign_in.state == "pending"


def test_a_poll_keeps_the_error_of_a_step_in_view(sign_in):
    with pytest.raises(mf.NotFoundError):
        sign_in.choose("nobody")
    sign_in.refresh()
    assert sign_in.failure.kind == "gone"
    sign_in.authorize()
    assert sign_in.failure is None


def test_subscribers_hear_of_every_change(user):
    heard = []
    sign_in = mf.SignIn()
    sign_in.subscribe(lambda: heard.append((sign_in.state, sign_in.snapshot.doing)))
    sign_in.sign_in(user.client)
    with pytest.raises(mf.NotFoundError):
        sign_in.choose("nobody")
    sign_in.sign_out()
    assert heard == [
        ("signed_out", "sign_in"),
        ("signed_in", None),
        ("signed_in", "choose"),
        ("signed_in", None),
        ("signed_out", None),
    ]


def test_a_step_that_is_interrupted_is_not_under_way_any_more(sign_in, user):
    def interrupt(*_):
        raise KeyboardInterrupt

    approved(sign_in, user).open()
    with pytest.raises(KeyboardInterrupt):
        sign_in.load(progress=interrupt)
    assert (sign_in.state, sign_in.snapshot.doing, sign_in.failure) == ("ready", None, None)


def test_a_listener_that_hears_nothing_leaves_a_link_to_paste_from(sign_in, user):
    with pytest.raises(mf.OAuthError):
        sign_in.receive(0.01)
    assert (sign_in.state, sign_in.failure.kind) == ("authorizing", "no_answer")
    sign_in.finish(user.person.authorize(sign_in.snapshot.address))
    assert sign_in.state == "authorized"
