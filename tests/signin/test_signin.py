"""The sign-in as a state machine: the walk, steps out of turn, and what is kept at its end."""

from typing import get_args

import pytest

import memframe as mf
from memframe.errors import ConfigError
from memframe.sample import load_sample, load_sample_tags
from memframe.signin.state import DUE, State
from tests.signin.conftest import approved


def test_the_whole_walk(user):
    user.service.import_memories(user.user_id, load_sample()[:30], load_sample_tags())
    sign_in, states, heard = mf.SignIn(user.client, flow=user.flow()), [], []

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
    took(sign_in.load(progress=lambda *state: heard.append(state)))
    took(sign_in.check())
    walk = "signed_in authorizing authorized pending pending approved ready loaded loaded"
    assert states == walk.split()
    assert sign_in.access is access
    assert (len(sign_in.memories), len(sign_in.tags)) == (30, len(load_sample_tags()))
    assert heard[-1] == (30, None, "memories")
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
