"""Two steps at once: the later one counts, and looks are in nobody's way."""

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


def test_whoever_signs_out_meanwhile_hears_nothing_more(far_way, user, proxy, held, background):
    far_way.finish(user.person.authorize(far_way.authorize()))
    proxy.script(CREATE_REQUEST, held)
    asking = background.submit(far_way.ask, "a test")
    assert held.came.wait(20)
    assert far_way.snapshot.doing == "ask"
    far_way.sign_out()
    held.release.set()
    with pytest.raises(mf.ConfigError, match="overtaken"):
        asking.result(20)
    assert (far_way.state, far_way.request, far_way.snapshot.doing) == ("signed_out", None, None)


def test_a_step_that_is_cancelled_leaves_one_where_one_was(far_way, user, proxy, held, background):
    proxy.script(GET_REQUEST, held)
    choosing = background.submit(far_way.choose, user.ask().id)
    assert held.came.wait(20)
    far_way.cancel()
    assert (far_way.state, far_way.snapshot.doing) == ("signed_in", None)
    held.release.set()
    with pytest.raises(mf.ConfigError, match="overtaken"):
        choosing.result(20)
    assert far_way.state == "signed_in"


def test_a_step_overtakes_a_look(far_way, user, proxy, held, background):
    pending(far_way, user)
    proxy.script(GET_REQUEST, held)
    looking = background.submit(far_way.check)
    assert held.came.wait(20)
    far_way.go_back()
    held.release.set()
    with pytest.raises(mf.ConfigError, match="overtaken"):
        looking.result(20)
    assert (far_way.state, far_way.request) == ("signed_in", None)


def test_a_look_gives_way_to_a_step(far_way, user, proxy, held, background):
    far_way.finish(user.person.authorize(far_way.authorize()))
    proxy.script(CREATE_REQUEST, held)
    asking = background.submit(far_way.ask, "a test")
    assert held.came.wait(20)
    far_way.refresh()
    assert proxy.requests_to(LIST_REQUESTS) == []
    held.release.set()
    asking.result(20)
    assert far_way.state == "pending"


def test_a_look_keeps_the_trouble_of_a_step_before_the_eyes(way):
    with pytest.raises(mf.NotFoundError):
        way.choose("nobody")
    way.refresh()
    assert way.trouble.kind == "gone"
    way.authorize()
    assert way.trouble is None


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
    assert (way.state, way.snapshot.doing, way.trouble) == ("ready", None, None)


@pytest.fixture
def receiving(way, background):
    """A listener that waits for an answer: what will become of it, and the address that the user opens."""
    shown = Event()
    way.subscribe(lambda: way.snapshot.address and shown.set())
    future = background.submit(way.receive, 20)
    assert shown.wait(20)
    return future, way.snapshot.address


def test_a_listener_receives_the_answer(way, user, receiving):
    received, address = receiving
    assert requests.get(user.person.authorize(address), timeout=5).ok
    received.result(20)
    assert way.state == "authorized"


def test_an_answer_may_be_pasted_while_a_listener_waits(way, user, receiving):
    received, address = receiving
    way.finish(user.person.authorize(address))
    assert way.state == "authorized"
    with pytest.raises(mf.OAuthError):
        received.result(20)
    assert way.state == "authorized"


def test_a_listener_that_hears_nothing_leaves_a_link_to_paste_from(way, user):
    with pytest.raises(mf.OAuthError):
        way.receive(0.01)
    assert (way.state, way.trouble.kind) == ("authorizing", "no_answer")
    way.finish(user.person.authorize(way.snapshot.address))
    assert way.state == "authorized"
