"""The chain of pages, on page sources written by hand; tests/test_paging.py has the real service."""

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest

from memframe.errors import AnswerTooLargeError, ConfigError, InvalidError, ProtocolError, ServiceError
from memframe.listing import cursor_of, iter_pages
from memframe.secret import SecretBytes


def page(cursor):
    text = "null" if cursor is None else f'"{cursor}"'
    return SecretBytes(b'{"memoryBlobs": [], "next_cursor": %s}' % text.encode())


class Pages:
    """Pages 1 to n; remembers what it was asked, read, and let go of."""

    def __init__(self, n_pages, largest=10_000, detail=None, error=InvalidError, status=400):
        self.n_pages, self.largest, self.detail = n_pages, largest, detail
        self.error, self.status = error, status
        self.asked, self.events = [], []

    @contextmanager
    def __call__(self, size, cursor):
        self.asked.append((size, cursor))
        number = int(cursor or 1)
        self.events.append(f"ask {number}")

        def body():
            self.events.append(f"read {number}")
            if size > self.largest:
                raise self.error("refused", status=self.status, detail=self.detail)
            return page(str(number + 1) if number < self.n_pages else None)

        try:
            yield SimpleNamespace(read=body)
        finally:
            self.events.append(f"let go of {number}")


def always(cursor):
    """Pages without end, all with one cursor."""
    return lambda size, asked: nullcontext(SimpleNamespace(read=lambda: page(cursor)))


@pytest.mark.parametrize("n_pages", [1, 2, 3, 7])
def test_every_page_comes_once_and_in_order(n_pages):
    pages = Pages(n_pages)
    bodies = list(iter_pages(pages))
    assert [cursor_of(body) for body in bodies] == [*map(str, range(2, n_pages + 1)), None]
    assert [cursor for _, cursor in pages.asked] == [None, *map(str, range(2, n_pages + 1))]


def test_the_next_page_is_under_way_while_one_is_worked_on():
    pages = Pages(3)
    for number, _ in enumerate(iter_pages(pages), 1):
        pages.events.append(f"work on {number}")
    assert pages.events == [
        *("ask 1", "read 1", "let go of 1"),
        *("ask 2", "work on 1", "read 2", "let go of 2"),
        *("ask 3", "work on 2", "read 3", "let go of 3"),
        "work on 3",
    ]


def test_no_page_but_the_next_is_asked_for_ahead():
    pages = Pages(9)
    bodies = iter_pages(pages)
    for n_taken in range(1, 5):
        next(bodies)
        assert len(pages.asked) == n_taken + 1


def test_who_leaves_early_lets_go_of_the_page_that_is_under_way():
    pages = Pages(9)
    bodies = iter_pages(pages)
    next(bodies)
    bodies.close()
    assert pages.events[-2:] == ["ask 2", "let go of 2"]


def test_an_error_of_the_next_page_comes_after_this_one():
    def gone():
        raise InvalidError("gone", status=400)

    pages = iter_pages(
        lambda size, cursor: nullcontext(SimpleNamespace(read=gone if cursor else lambda: page("2")))
    )
    assert cursor_of(next(pages)) == "2"
    with pytest.raises(InvalidError, match="gone"):
        next(pages)


def test_the_size_steps_down_until_the_service_agrees_and_stays():
    pages = Pages(3, largest=200)
    list(iter_pages(pages))
    assert [size for size, _ in pages.asked] == [1000, 500, 250, 100, 100, 100]


def test_a_refusal_that_names_its_limit_is_taken_at_its_word():
    pages = Pages(2, largest=200, detail="limit must be between 1 and 200")
    list(iter_pages(pages))
    assert [size for size, _ in pages.asked] == [1000, 200, 200]


def test_a_limit_below_the_default_is_found_where_the_refusal_names_it():
    pages = Pages(2, largest=5, detail="limit must be at most 5")
    list(iter_pages(pages))
    assert [size for size, _ in pages.asked][-3:] == [10, 5, 5]


def too_large(n_pages, largest):
    """Pages of a service that can answer with so many memories at a time, and says so by 413."""
    return Pages(n_pages, largest, "413 Content Too Large", ServiceError, 413)


@pytest.mark.parametrize(("largest", "taken"), [(200, 100), (10, 10), (7, 5), (1, 1)])
def test_too_large_an_answer_is_asked_for_in_smaller_pages(largest, taken):
    pages = too_large(3, largest)
    assert len(list(iter_pages(pages))) == 3
    assert [size for size, _ in pages.asked][-3:] == [taken] * 3


def test_a_later_page_may_be_too_large_and_comes_smaller():
    pages = too_large(5, 1000)
    chain = iter_pages(pages)
    first = [next(chain), next(chain)]  # the third is under way
    pages.largest = 300
    bodies = first + list(chain)
    assert [cursor_of(body) for body in bodies] == ["2", "3", "4", "5", None]
    assert pages.asked[2:] == [(1000, "3"), (500, "3"), (250, "3"), (250, "4"), (250, "5")]


def test_a_later_page_that_is_refused_otherwise_ends_the_chain():
    pages = Pages(5)
    chain = iter_pages(pages)
    next(chain)
    pages.largest = 300
    with pytest.raises(InvalidError):
        list(chain)
    assert pages.asked == [(1000, None), (1000, "2")]


@pytest.mark.parametrize("largest", [0, 300])
def test_too_large_a_page_of_a_size_that_was_given_is_an_error(largest):
    pages = too_large(3, largest)
    with pytest.raises(ServiceError):
        list(iter_pages(pages, page_size=500))
    assert pages.asked == [(500, None)]


def test_what_is_too_large_in_whatever_size_is_an_error():
    with pytest.raises(ServiceError):
        list(iter_pages(too_large(3, 0)))


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
        list(iter_pages(always("again")))


@pytest.mark.parametrize("page_size", [0, -1, 1.5, "all", True, None])
def test_a_page_size_that_is_none_is_named(page_size):
    with pytest.raises(ConfigError, match="page_size"):
        list(iter_pages(Pages(1), page_size=page_size))


@pytest.mark.parametrize(("limit", "n_asked"), [(5, 1), (10, 1), (11, 2), (20, 2)])
def test_no_page_is_asked_for_ahead_that_the_limit_does_not_need(limit, n_asked):
    pages = Pages(9)
    bodies = iter_pages(pages, page_size=10, limit=limit)
    for _ in range(n_asked):
        next(bodies)
    bodies.close()
    assert len(pages.asked) == n_asked


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
    assert cursor_of(SecretBytes(body)) == cursor


def test_smaller_pages_than_asked_for_are_followed_as_long_as_somebody_asks():
    pages = Pages(5)  # as by a service that clamps: 5 pages where the limit asked for one
    assert len(list(iter_pages(pages, limit=30))) == 5


def test_a_later_page_that_is_too_large_for_one_answer_comes_in_smaller_ones():
    asked = []

    def ask(size, cursor):
        def body():
            if cursor and size > 100:
                raise AnswerTooLargeError("too large")
            return page(None if cursor else "2")

        asked.append((size, cursor))
        return nullcontext(SimpleNamespace(read=body))

    assert len(list(iter_pages(ask))) == 2
    assert asked == [(1000, None), (1000, "2"), (500, "2"), (250, "2"), (100, "2")]
