"""The chain of pages, on page sources written by hand; tests/test_paging.py has the real service."""

import threading

import pytest

from memframe.errors import ConfigError, InvalidError, ProtocolError
from memframe.paging import PROBED_PAGES, Clock, cursor_of, iter_pages


def page(cursor):
    text = "null" if cursor is None else f'"{cursor}"'
    return b'{"memoryBlobs": [], "next_cursor": %s}' % text.encode()


class Pages:
    """Pages 1 to n; remembers what it was asked, and in which thread."""

    def __init__(self, n_pages, largest=10_000):
        self.n_pages, self.largest = n_pages, largest
        self.asked, self.threads = [], []

    def __call__(self, size, cursor):
        self.asked.append((size, cursor))
        self.threads.append(threading.current_thread())
        if size > self.largest:
            raise InvalidError(f"limit must be at most {self.largest}", status=400)
        number = int(cursor or 1)
        return page(str(number + 1) if number < self.n_pages else None)


def still_clock():
    return Clock(wall=lambda: 0.0, work=lambda: 0.0)


def slow_clock():
    """A second passes whenever somebody looks, and none of it is this thread's work."""
    seconds = iter(range(1_000_000))
    return Clock(wall=lambda: float(next(seconds)), work=lambda: 0.0)


@pytest.mark.parametrize("clock", [still_clock, slow_clock])
@pytest.mark.parametrize("n_pages", [1, 2, 3, 7])
def test_every_page_comes_once_and_in_order(n_pages, clock):
    pages = Pages(n_pages)
    bodies = list(iter_pages(pages, clock=clock()))
    assert [cursor_of(body) for body in bodies] == [*map(str, range(2, n_pages + 1)), None]
    assert [cursor for _, cursor in pages.asked] == [None, *map(str, range(2, n_pages + 1))]


def test_quick_pages_are_fetched_in_turn_and_slow_ones_ahead():
    quick, slow = Pages(6), Pages(6)
    list(iter_pages(quick, clock=still_clock()))
    list(iter_pages(slow, clock=slow_clock()))
    assert set(quick.threads) == {threading.current_thread()}
    assert threading.current_thread() not in slow.threads[PROBED_PAGES:]


def test_the_size_steps_down_until_the_service_agrees_and_stays():
    pages = Pages(3, largest=200)
    list(iter_pages(pages))
    assert [size for size, _ in pages.asked] == [1000, 500, 250, 100, 100, 100]


def test_a_size_that_was_given_is_not_stepped_down():
    with pytest.raises(InvalidError):
        list(iter_pages(Pages(3, largest=200), page_size=500))


def test_a_refusal_for_another_reason_comes_through():
    with pytest.raises(InvalidError):
        list(iter_pages(Pages(1, largest=0)))


def test_a_small_limit_asks_for_a_small_page():
    pages = Pages(1)
    list(iter_pages(pages, limit=30))
    assert pages.asked == [(30, None)]


def test_a_cursor_that_repeats_is_an_error_and_not_an_endless_loop():
    with pytest.raises(ProtocolError, match="has no end"):
        list(iter_pages(lambda size, cursor: page("again")))


@pytest.mark.parametrize("page_size", [0, -1, 1.5, "all", True, None])
def test_a_page_size_that_is_none_is_named(page_size):
    with pytest.raises(ConfigError, match="page_size"):
        list(iter_pages(Pages(1), page_size=page_size))


def test_leaving_early_leaves_no_thread_behind():
    before = threading.active_count()
    pages = iter_pages(Pages(50), clock=slow_clock())
    for _ in range(5):
        next(pages)
    pages.close()
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("body", "cursor"),
    [
        (b'{"memoryBlobs":[],"next_cursor":"c"}', "c"),
        (b'{"memoryBlobs":[],"next_cursor":"c"}\n', "c"),
        (b'{"next_cursor":"c","memoryBlobs":[]}', "c"),
        (b'{"memoryBlobs":[],"next_cursor":"a\\"b"}', 'a"b'),
        (b'{"memoryBlobs":[],"next_cursor":null}', None),
        (b'{"memoryBlobs":[]}', None),
        (b'{"next_cursor":"c","memoryBlobs":[{"id":"x","next_cursor":"evil"}]}', "c"),
        (b'{"next_cursor":"c","memoryBlobs":[],"more":{"next_cursor":"evil"}}', "c"),
        (b'{"next_cursor":"c","memoryBlobs":[],"title":", \\"next_cursor\\":\\"evil\\"}"}', "c"),
    ],
)
def test_the_cursor_is_the_pages_own(body, cursor):
    assert cursor_of(body) == cursor
