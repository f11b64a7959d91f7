"""The worker beside the notebook: what it looks after by itself, when it stops, and that it leaves nothing behind."""

import logging
import threading
from datetime import UTC, datetime, timedelta
from threading import Event

import pytest

import memframe as mf
from memframe.signin.poller import LONGEST_S, Pace, Worker
from memframe.signin.state import trouble_of
from memframe.wire import CREATE_REQUEST, GET_REQUEST, ISSUE_TOKEN
from tests.faults import answered, cut
from tests.signin.conftest import approved, pending

SOON_S = 20


class Watched:
    """A worker on a way, and a way to wait until something is so."""

    def __init__(self, way, **options):
        self.way = way
        self.worker = Worker(way, self._changed, **{"poll_s": 0.1} | options)
        self._condition = threading.Condition()
        way.subscribe(self._changed)

    def _changed(self):
        with self._condition:
            self._condition.notify_all()

    def until(self, is_so):
        with self._condition:
            assert self._condition.wait_for(is_so, SOON_S)

    def until_state(self, state):
        self.until(lambda: self.way.state == state)

    def do(self, errand):
        self.worker.start(errand)
        assert self.worker.idle.wait(SOON_S)


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "memframe-panel"]


def all_gone():
    for thread in threads():
        thread.join(SOON_S)
    return not threads()


@pytest.fixture
def watch():
    """Make workers, which end with the test."""
    made = []

    def make(way, **options):
        made.append(Watched(way, **options))
        return made[-1]

    yield make
    for watched in made:
        watched.worker.stop()
    assert all_gone()


def test_an_errand_is_taken_elsewhere(user, watch):
    done_in = []
    watched = watch(mf.SignIn(flow=user.flow()))
    watched.do(lambda: (done_in.append(threading.current_thread()), watched.way.sign_in(user.client)))
    assert watched.way.state == "signed_in"
    assert done_in[0] is not threading.current_thread()
    assert done_in[0].daemon


def test_a_decision_is_noticed_without_anybody_asking(way, user, watch):
    watched = watch(way)
    watched.do(lambda: pending(way, user))
    user.service.decide(way.request.id, "approved")
    watched.until_state("approved")
    assert watched.worker.is_watching


@pytest.mark.parametrize("decision", ["rejected", "revoked"])
def test_after_the_end_nobody_looks_any_more(way, user, watch, decision):
    watched = watch(way)
    watched.do(lambda: pending(way, user))
    if decision == "revoked":
        user.service.decide(way.request.id, "approved")
    user.service.decide(way.request.id, decision)
    watched.until(lambda: not watched.worker.is_watching)
    assert way.state == decision
    assert watched.worker.next_look_at is None
    assert all_gone()


def test_a_step_that_somebody_else_takes_is_looked_after(way, user, watch):
    watched = watch(way)
    assert not watched.worker.is_watching
    pending(way, user)
    user.service.decide(way.request.id, "approved")
    watched.until_state("approved")


def test_a_service_that_is_away_for_a_while_is_asked_again(far_way, user, proxy, watch):
    watched = watch(far_way)
    proxy.script(GET_REQUEST, *[cut] * 3, answered(502, Retry_After="0"))
    watched.do(lambda: pending(far_way, user))
    watched.until(lambda: far_way.trouble and far_way.trouble.kind == "unreachable")
    watched.until(lambda: far_way.trouble and far_way.trouble.kind == "busy")
    user.service.decide(far_way.request.id, "approved")
    watched.until_state("approved")
    assert far_way.trouble is None


def test_a_busy_service_is_asked_when_it_wants_to_be(far_way, user, proxy, watch):
    watched = watch(far_way)
    proxy.script(GET_REQUEST, answered(429, Retry_After="120"))
    watched.do(lambda: pending(far_way, user))
    watched.until(lambda: far_way.trouble and watched.worker.next_look_at)
    watched.until(lambda: watched.worker.next_look_at > datetime.now(UTC) + timedelta(seconds=100))


def test_a_key_that_is_withdrawn_ends_the_looking(far_way, user, proxy, watch):
    watched = watch(far_way)
    watched.do(lambda: pending(far_way, user))
    proxy.always(GET_REQUEST, answered(401))
    proxy.always(ISSUE_TOKEN, answered(401))
    watched.until(lambda: not watched.worker.is_watching)
    assert far_way.trouble.kind == "refused_token"
    assert all_gone()


def test_a_new_errand_lets_go_of_the_one_before(far_way, user, proxy, held, watch):
    watched = watch(far_way)
    far_way.finish(user.person.authorize(far_way.authorize()))
    proxy.script(CREATE_REQUEST, held)
    watched.worker.start(lambda: far_way.ask("a test"))
    assert held.came.wait(SOON_S)
    watched.do(far_way.sign_out)
    assert far_way.state == "signed_out"
    held.release.set()
    assert all_gone()
    assert far_way.state == "signed_out"


def test_a_look_under_way_is_let_go_of_by_the_sign_out(far_way, user, proxy, held, watch):
    watched = watch(far_way)
    proxy.script(GET_REQUEST, held)
    watched.do(lambda: pending(far_way, user))
    assert held.came.wait(SOON_S)
    watched.worker.stop()
    far_way.sign_out()
    held.release.set()
    assert all_gone()
    assert (far_way.state, far_way.request) == ("signed_out", None)


def test_looking_ends_with_the_time_that_was_given_and_can_be_asked_for(way, user, watch):
    watched = watch(way, watch_s=0)
    watched.do(lambda: pending(way, user))
    watched.until(lambda: not watched.worker.is_watching)
    assert all_gone()
    user.service.decide(way.request.id, "approved")
    watched.do(way.check)
    assert way.state == "approved"


def test_whoever_stops_it_is_not_overruled_by_a_change(way, user, watch):
    watched = watch(way)
    watched.worker.stop()
    pending(way, user)
    assert not watched.worker.is_watching
    assert threads() == []


def test_what_goes_wrong_in_an_unforeseen_way_stops_nothing_and_is_logged(way, user, watch, caplog):
    caplog.set_level(logging.DEBUG, "memframe")
    watched = watch(way)
    watched.do(lambda: {}["nothing"])
    assert "KeyError" in caplog.text
    watched.do(lambda: approved(way, user))
    assert way.state == "approved"


def test_a_step_that_fails_is_the_trouble_of_the_stand(user, watch):
    watched = watch(mf.SignIn())
    watched.do(lambda: watched.way.sign_in(mf.connect(user.service.base_url, api_key="mf_wrong")))
    assert watched.way.trouble.kind == "refused_key"


def test_nothing_runs_before_it_is_asked_to(user):
    changed = Event()
    Worker(mf.SignIn(), changed.set)
    assert threads() == []


@pytest.mark.parametrize("poll_s", [0, -1, float("nan"), 0.01])
def test_nobody_polls_too_fast(poll_s):
    with pytest.raises(mf.ConfigError, match="poll_s"):
        Worker(mf.SignIn(), print, poll_s=poll_s)


def test_looks_come_ever_more_slowly_up_to_half_a_minute():
    pace = Pace.of(5)
    waits = []
    for _ in range(8):
        waits.append(pace.wait_s)
        pace = pace.slower()
    assert waits == sorted(waits)
    assert waits[-1] == LONGEST_S
    assert Pace.of(60).slower().wait_s == 60


@pytest.mark.parametrize(("retry_after_s", "wait_s"), [(120, 120), (1, 7.5), (None, 10)])
def test_a_service_that_wants_to_be_left_alone_is(retry_after_s, wait_s):
    error = mf.RateLimitError("slow down", status=429, retry_after_s=retry_after_s)
    assert Pace.of(5).slower(trouble_of("check", error)).wait_s == wait_s


def test_waits_vary_by_a_tenth():
    assert [Pace.of(10).jittered(lambda value=value: value) for value in (0, 0.5, 1)] == [9, 10, 11]
