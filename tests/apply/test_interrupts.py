"""Ctrl-C is put off where something could be lost, and never for good."""

import signal
import threading

import pytest

from memframe.apply.workers import Interrupts


def press():
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def _as_python_begins():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def pressed(course, **options):
    """How far a course gets in which Ctrl-C is pressed."""
    reached = []
    with pytest.raises(KeyboardInterrupt):
        course(Interrupts(**options), reached.append)
    return reached


def test_the_first_waits_until_it_is_heeded():
    def course(interrupts, reach):
        with interrupts.defer():
            press()
            reach("behind it")
            interrupts.raise_if_any()
            reach("never")

    assert pressed(course) == ["behind it"]


def test_it_waits_no_longer_than_the_block():
    def course(interrupts, reach):
        with interrupts.defer():
            press()
            reach("the end of the block")
        reach("never")

    assert pressed(course) == ["the end of the block"]


def test_the_second_does_not_wait():
    def course(interrupts, reach):
        with interrupts.defer():
            press()
            reach("the first")
            press()
            reach("never")

    assert pressed(course) == ["the first"]


def test_where_it_is_welcome_it_does_not_wait_either():
    def course(interrupts, reach):
        with interrupts.defer(), interrupts.allow():
            press()
            reach("never")

    assert not pressed(course)


def test_one_that_was_put_off_is_heeded_where_it_is_allow():
    def course(interrupts, reach):
        with interrupts.defer():
            press()
            reach("behind it")
            with interrupts.allow():
                reach("never")

    assert pressed(course) == ["behind it"]


def test_with_nothing_to_lose_it_does_not_wait():
    def course(interrupts, reach):
        with interrupts.defer():
            press()
            reach("never")

    assert not pressed(course, defers=False)


def test_an_error_is_not_lost_behind_it():
    def course():
        with Interrupts().defer():
            press()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        course()


def test_what_a_program_does_by_itself_stays():
    reached = []
    signal.signal(signal.SIGINT, lambda *_: reached.append("its own"))
    with Interrupts().defer():
        press()
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
