"""The poller beside the notebook: what it does by itself, when it stops, and that it leaves nothing behind."""

import logging
import threading
from datetime import UTC, datetime, timedelta

import pytest

import memframe as mf
from memframe.signin.poller import MAX_WAIT_S, Poller, next_wait_s
from memframe.signin.state import describe_failure
from memframe.wire import GET_REQUEST, ISSUE_TOKEN
from tests.faults import answered, cut
from tests.signin.conftest import approved, pending

SOON_S = 20


class Watched:
    """A poller on a sign-in, and a way to wait until something is so."""

    def __init__(self, sign_in, **options):
        self.sign_in = sign_in
        self.poller = Poller(sign_in, self._changed, **{"poll_s": 0.1} | options)
        self._condition = threading.Condition()
        sign_in.subscribe(self._changed)

    def _changed(self):
        with self._condition:
            self._condition.notify_all()

    def until(self, is_so):
        with self._condition:
            assert self._condition.wait_for(is_so, SOON_S)

    def until_state(self, state):
        self.until(lambda: self.sign_in.state == state)

    def until_it_rests(self):
        self.until(lambda: not self.poller.is_watching)
        assert self.poller.next_check_at is None
        assert all_gone()

    def do(self, task):
        self.poller.start(task)
        assert self.poller.idle.wait(SOON_S)


def now():
    return datetime.now(UTC)


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "memframe-panel"]


def all_gone():
    for thread in threads():
        thread.join(SOON_S)
    return not threads()


@pytest.fixture
def watch():
    """Make pollers, which end with the test."""
    made = []

    def make(sign_in, **options):
        made.append(Watched(sign_in, **options))
        return made[-1]

    yield make
    for watched in made:
        watched.poller.stop()
    assert all_gone()


def test_a_task_runs_elsewhere_and_what_others_do_is_followed(user, watch):
    done_in, sign_in = [], mf.SignIn(flow=user.flow())
    watched = watch(sign_in)
    assert (threads(), watched.poller.is_watching) == ([], False)
    watched.do(lambda: (done_in.append(threading.current_thread()), sign_in.sign_in(user.client)))
    assert sign_in.state == "signed_in"
    assert done_in[0] is not threading.current_thread()
    assert done_in[0].daemon
    watched.poller.stop()
    pending(sign_in, user)
    assert not watched.poller.is_watching  # whoever stops it is not overruled by a change
    assert all_gone()
    watched.do(sign_in.check)
    user.service.decide(sign_in.request.id, "approved")
    watched.until_state("approved")


@pytest.mark.parametrize("decision", ["approved", "rejected", "revoked"])
def test_a_decision_is_noticed_and_the_end_of_all_ends_the_polls(sign_in, user, watch, decision):
    watched = watch(sign_in)
    pending(sign_in, user)  # taken by a script: it is looked after all the same
    if decision == "revoked":
        user.service.decide(sign_in.request.id, "approved")
    user.service.decide(sign_in.request.id, decision)
    watched.until_state(decision)
    if decision == "approved":
        assert watched.poller.is_watching
    else:
        watched.until_it_rests()


def test_a_service_that_is_away_for_a_while_is_asked_again_when_it_wants_to_be(
    far_sign_in, user, proxy, watch
):
    watched = watch(far_sign_in)
    proxy.script(GET_REQUEST, *[cut] * 3, answered(502, Retry_After="0"))
    watched.do(lambda: pending(far_sign_in, user))
    for kind in ("unreachable", "busy"):
        watched.until(lambda kind=kind: far_sign_in.failure and far_sign_in.failure.kind == kind)
    user.service.decide(far_sign_in.request.id, "approved")
    watched.until_state("approved")
    assert far_sign_in.failure is None
    proxy.script(GET_REQUEST, answered(429, Retry_After="120"))
    watched.do(lambda: None)
    watched.until(lambda: (watched.poller.next_check_at or now()) > now() + timedelta(seconds=100))


def test_a_key_that_is_withdrawn_ends_the_polls(far_sign_in, user, proxy, watch):
    watched = watch(far_sign_in)
    watched.do(lambda: pending(far_sign_in, user))
    proxy.always(GET_REQUEST, answered(401))
    proxy.always(ISSUE_TOKEN, answered(401))
    watched.until_it_rests()
    assert far_sign_in.failure.kind == "refused_token"


def test_a_poll_that_is_under_way_is_dropped_by_the_sign_out(far_sign_in, user, proxy, held, watch):
    watched = watch(far_sign_in)
    proxy.script(GET_REQUEST, held)
    watched.poller.start(lambda: pending(far_sign_in, user))
    assert held.came.wait(SOON_S)
    watched.do(far_sign_in.sign_out)
    held.release.set()
    assert all_gone()
    assert (far_sign_in.state, far_sign_in.request) == ("signed_out", None)


def test_polls_end_with_the_time_that_was_given_and_can_be_asked_for(sign_in, user, watch):
    watched = watch(sign_in, watch_s=0)
    watched.do(lambda: pending(sign_in, user))
    watched.until_it_rests()
    user.service.decide(sign_in.request.id, "approved")
    watched.do(sign_in.check)
    assert sign_in.state == "approved"


def test_an_error_stops_nothing_and_is_logged(sign_in, user, watch, caplog):
    caplog.set_level(logging.DEBUG, "memframe")
    watched = watch(sign_in)
    watched.do(lambda: {}["nothing"])
    assert "KeyError" in caplog.text
    watched.do(lambda: sign_in.sign_in(mf.connect(user.service.base_url, api_key="mf_wrong")))
    assert sign_in.failure.kind == "refused_key"
    watched.do(lambda: approved(sign_in, user))
    assert sign_in.state == "approved"


def test_polls_come_ever_more_slowly_and_as_the_service_asks():
    waits = [5.0]
    for _ in range(8):
        waits.append(next_wait_s(waits[-1], 5))
    assert waits == sorted(waits)
    assert waits[-1] == MAX_WAIT_S
    assert next_wait_s(60, 60) == 60
    for retry_after_s, wait_s in ((120, 120), (1, 7.5), (None, 10)):
        error = mf.RateLimitError("slow down", status=429, retry_after_s=retry_after_s)
        assert next_wait_s(5, 5, describe_failure("check", error)) == wait_s
