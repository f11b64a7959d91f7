"""Two steps at once: the later one counts, and polls give way to steps."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import memframe as mf
from memframe.wire import CREATE_REQUEST, GET_REQUEST, LIST_REQUESTS
from tests.signin.conftest import approved, pending


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
