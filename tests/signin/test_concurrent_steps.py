"""Two steps at once: the later one counts, and polls give way to steps."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
import requests

import memframe as mf
from memframe.wire import CREATE_REQUEST, GET_REQUEST, LIST_REQUESTS
from tests.signin.conftest import approved, pending


@pytest.fixture
def background():
    with ThreadPoolExecutor(1) as background:
        yield background


STEPS = {
    "ask": (CREATE_REQUEST, lambda way, user: way.ask("a test")),
    "choose": (GET_REQUEST, lambda way, user: way.choose(user.ask().id)),
    "check": (GET_REQUEST, lambda way, user: way.check()),
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
    far_way, user, proxy, held, background, step, meanwhile, state
):
    if step == "ask":
        far_way.finish(user.person.authorize(far_way.authorize()))
    if step == "check":
        pending(far_way, user)
    endpoint, take = STEPS[step]
    proxy.script(endpoint, held)
    taken = background.submit(take, far_way, user)
    assert held.came.wait(20)
    assert far_way.snapshot.doing == step
    meanwhile(far_way)
    assert (far_way.state, far_way.snapshot.doing) == (state, None)
    held.release.set()
    with pytest.raises(mf.ConfigError, match="overtaken"):
        taken.result(20)
    assert (far_way.state, far_way.request, far_way.snapshot.doing) == (state, None, None)


def test_a_poll_gives_way_to_a_step(far_way, user, proxy, held, background):
    far_way.finish(user.person.authorize(far_way.authorize()))
    proxy.script(CREATE_REQUEST, held)
    asking = background.submit(far_way.ask, "a test")
    assert held.came.wait(20)
    far_way.refresh()
    assert proxy.requests_to(LIST_REQUESTS) == []
    held.release.set()
    asking.result(20)
    assert far_way.state == "pending"


def test_a_poll_keeps_the_error_of_a_step_in_view(way):
    with pytest.raises(mf.NotFoundError):
        way.choose("nobody")
    way.refresh()
    assert way.failure.kind == "gone"
    way.authorize()
    assert way.failure is None


def test_subscribers_hear_of_every_change(user):
    heard = []
    way = mf.SignIn()
    way.subscribe(lambda: heard.append((way.state, way.snapshot.doing)))
    way.sign_in(user.client)
    with pytest.raises(mf.NotFoundError):
        way.choose("nobody")
    way.sign_out()
    assert heard == [
        ("signed_out", "sign_in"),
        ("signed_in", None),
        ("signed_in", "choose"),
        ("signed_in", None),
        ("signed_out", None),
    ]


def test_a_step_that_is_interrupted_is_not_under_way_any_more(way, user):
    def interrupt(*_):
        raise KeyboardInterrupt

    approved(way, user).open()
    with pytest.raises(KeyboardInterrupt):
        way.load(progress=interrupt)
    assert (way.state, way.snapshot.doing, way.failure) == ("ready", None, None)


@pytest.mark.parametrize("is_pasted", [False, True])
def test_a_listener_receives_the_answer_unless_it_is_pasted_meanwhile(way, user, background, is_pasted):
    shown = Event()
    way.subscribe(lambda: way.snapshot.address and shown.set())
    received = background.submit(way.receive, 20)
    assert shown.wait(20)
    answer = user.person.authorize(way.snapshot.address)
    if is_pasted:
        way.finish(answer)
        with pytest.raises(mf.OAuthError):
            received.result(20)
    else:
        assert requests.get(answer, timeout=5).ok
        received.result(20)
    assert way.state == "authorized"


def test_a_listener_that_hears_nothing_leaves_a_link_to_paste_from(way, user):
    with pytest.raises(mf.OAuthError):
        way.receive(0.01)
    assert (way.state, way.failure.kind) == ("authorizing", "no_answer")
    way.finish(user.person.authorize(way.snapshot.address))
    assert way.state == "authorized"
