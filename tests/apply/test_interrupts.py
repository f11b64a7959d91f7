"""Ctrl-C is put off where something could be lost, and never for good."""

import signal
import threading
from contextlib import ExitStack

import pytest

from memframe.apply.workers import Interrupts

PRESS, HEED = "Ctrl-C", "a look for it"
DEFER, ALLOW = "a block that defers it", "one in it that allows it"


@pytest.fixture(autouse=True)
def _as_python_begins():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("course", "n_reached"),
    [
        pytest.param([DEFER, PRESS, HEED], 2, id="the first waits until it is looked for"),
        pytest.param([DEFER, PRESS], 2, id="and no longer than the block"),
        pytest.param([DEFER, PRESS, PRESS], 2, id="the second does not wait"),
        pytest.param([DEFER, ALLOW, PRESS], 2, id="nor does the first where it is allowed"),
        pytest.param([DEFER, PRESS, ALLOW], 2, id="one that was put off breaks in where it is allowed"),
        pytest.param([PRESS], 0, id="outside of a block it is not put off"),
    ],
)
def test_ctrl_c_breaks_in_where_nothing_is_lost_by_it(course, n_reached):
    reached = walk(Interrupts(), course)
    assert len(reached) == n_reached


def test_with_nothing_to_lose_it_does_not_wait():
    assert walk(Interrupts(defers=False), [DEFER, PRESS]) == [DEFER]


def walk(interrupts, course):
    """The steps that were taken before Ctrl-C broke in."""
    reached = []
    with pytest.raises(KeyboardInterrupt):
        take(interrupts, course, reached)
    return reached


def take(interrupts, course, reached):
    steps = {PRESS: lambda: signal.raise_signal(signal.SIGINT), HEED: interrupts.raise_if_any}
    with ExitStack() as blocks:
        for step in course:
            if step in steps:
                steps[step]()
            else:
                blocks.enter_context(interrupts.defer() if step == DEFER else interrupts.allow())
            reached.append(step)


def test_an_error_is_not_lost_behind_it():
    def broken():
        with Interrupts().defer():
            signal.raise_signal(signal.SIGINT)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()


def test_what_a_program_does_by_itself_stays():
    reached = []
    signal.signal(signal.SIGINT, lambda *_: reached.append("its own"))
    with Interrupts().defer():
        signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert reached == ["its own"]


def test_other_threads_are_left_alone():
    broken = []

    def work():
        try:
            with Interrupts().defer():
                pass
        except BaseException as error:
            broken.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not broken
