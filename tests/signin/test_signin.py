"""The sign-in as a state machine: the walk, every side road, and steps out of turn."""

from typing import get_args

import pytest

import memframe as mf
from memframe.errors import AuthError, ConfigError, OAuthError
from memframe.sample import load_sample, load_sample_tags
from memframe.signin.state import DUE, State


@pytest.fixture
def way(user):
    return mf.SignIn(user.client, flow=user.flow())


def authorized(way, user):
    way.finish(user.person.authorize(way.authorize()))
    return way


def test_the_whole_walk(way, user):
    assert way.state == "signed_in"
    address = way.authorize()
    assert way.state == "authorizing"
    way.finish(user.person.authorize(address))
    assert way.state == "authorized"
    way.ask("weekly review")
    assert way.state == "pending"
    way.check()
    assert way.state == "pending"
    user.service.decide(way.request.id, "approved")
    way.check()
    assert way.state == "approved"
    access = way.open()
    assert way.state == "ready"
    assert way.access is access
    assert mf.load_memories(access, progress=False).empty


def test_a_revocation_closes_the_access(way, user):
    authorized(way, user).ask("x")
    user.service.decide(way.request.id, "approved")
    way.check()
    way.open()
    way.check()
    assert way.state == "ready"
    user.service.decide(way.request.id, "revoked")
    way.check()
    assert (way.state, way.access) == ("revoked", None)


def test_a_rejection_leads_to_a_new_attempt(way, user):
    authorized(way, user).ask("x")
    user.service.decide(way.request.id, "rejected")
    way.check()
    assert way.state == "rejected"
    assert way.authorize()


def test_an_existing_request_is_chosen_without_asking_again(way, user):
    request = user.ask()
    user.service.decide(request.id, "approved")
    way.choose(request.id)
    assert way.state == "approved"
    assert way.open().user_id == user.user_id


def test_a_step_that_fails_can_be_tried_again(way, user):
    address = way.authorize()
    with pytest.raises(OAuthError):
        way.finish("http://127.0.0.1/callback?code=c&state=wrong")
    assert way.state == "authorizing"
    way.finish(user.person.authorize(address))
    assert way.state == "authorized"


def test_a_refused_key_leaves_one_signed_out(user):
    way = mf.SignIn()
    with pytest.raises(AuthError):
        way.sign_in(mf.connect(user.service.base_url, api_key="mf_wrong"))
    assert way.state == "signed_out"


def test_signing_out_forgets(way, user):
    authorized(way, user)
    way.sign_out()
    assert (way.state, way.client, way.tokens, way.request, way.access) == (
        "signed_out",
        None,
        None,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("step", "argument"), [("finish", "x"), ("ask", "x"), ("check", None), ("open", None)]
)
def test_a_step_out_of_turn_names_the_one_that_is_due(way, step, argument):
    with pytest.raises(ConfigError, match=r"authorize\(\) for a new user"):
        getattr(way, step)(*([argument] if argument else []))
    assert way.state == "signed_in"


def test_every_state_says_what_is_due():
    assert list(DUE) == list(get_args(State))
    assert repr(mf.SignIn()) == "<memframe.SignIn signed_out: sign_in() with the API key>"


def test_existing_requests_are_listed_with_the_newest_first_and_refreshed(way, user):
    assert way.requests == ()
    older, newer = user.ask("the first"), user.ask("the second")
    way.refresh()
    ours = [request for request in way.requests if request.user_id == user.user_id]
    assert [(request.id, request.status) for request in ours] == [
        (newer.id, "pending"),
        (older.id, "pending"),
    ]
    user.service.decide(older.id, "rejected")
    way.refresh()
    assert {request.id: request.status for request in way.requests}[older.id] == "rejected"
    assert way.stand.looked_at


def test_memories_and_tags_are_loaded_with_progress(way, user):
    user.service.import_memories(user.user_id, load_sample()[:30], load_sample_tags())
    heard = []
    authorized(way, user).ask("x")
    user.service.decide(way.request.id, "approved")
    way.check()
    way.open()
    way.load(progress=lambda *state: heard.append(state))
    assert way.state == "loaded"
    assert len(way.memories) == 30
    assert len(way.tags) == len(load_sample_tags())
    assert heard[-1] == (30, None, "memories")
    way.check()
    assert way.state == "loaded"


def test_a_stand_shows_nothing_of_what_it_holds(way, user):
    authorized(way, user)
    assert repr(way.stand) == "<Stand authorized>"


def test_settings_that_are_given_make_another_flow(user):
    service = user.service
    way = mf.SignIn(user.client)
    first = way.authorize(service.client_id, service.client_secret, redirect_uri=service.redirect_uri)
    assert way.authorize() != first
    way.finish(user.person.authorize(way.stand.address))
    assert way.state == "authorized"
    way.sign_out()
    assert way.stand.flow is None
