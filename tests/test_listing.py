"""Listings page by page: between a real service and the loaders, on scripted pages, and sent ahead."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

import memframe as mf
from memframe.client import Client, transport
from memframe.client.responses import decode
from memframe.client.retry import RateLimiter, SharedRateLimiter, read_retry
from memframe.client.transport import READ_ATTEMPTS, Transport
from memframe.client.validation import memory_query
from memframe.errors import AnswerTooLargeError, InvalidError, ServiceError
from memframe.listing import cursor_of, iter_pages
from memframe.sample import load_sample
from memframe.secret import Secret, SecretBytes
from memframe.wire import GET_REQUEST, ISSUE_TOKEN, LIST_MEMORIES, LIST_REQUESTS, MemoryPage
from tests.faults import answered, changed, cut, passed, shortened, truncated, without_field
from tests.strangers import MEMORY, USER_ID

MEMORIES = load_sample()[:25]


@pytest.fixture(scope="module")
def request_id(service, shared_user):
    """An approved request to a user who has `MEMORIES`."""
    service.import_memories(shared_user.user_id, MEMORIES)
    request = shared_user.ask()
    service.decide(request.id, "approved")
    return request.id


@pytest.fixture
def access(service, request_id, proxy):
    """An access through the proxy, which repeats reads at once."""
    at_once = Transport(retry=read_retry().new(backoff_factor=0, backoff_jitter=0))
    with Client(proxy.base_url, Secret(service.api_key), transport=at_once) as client:
        yield mf.open_access(client, request_id)


@pytest.fixture
def slept(monkeypatch):
    """Seconds that would have been slept."""
    seconds = []
    monkeypatch.setattr(transport, "time", SimpleNamespace(sleep=seconds.append))
    return seconds


def load(access, **options):
    return mf.load_memories(access, page_size=10, progress=False, **options)


def assert_whole(memories):
    assert list(memories["content"]) == [memory.content for memory in MEMORIES]
    assert memories.attrs["memframe"]["complete"]


def pages_asked(proxy):
    return len(proxy.requests_to(LIST_MEMORIES))


# Pages of a service that does something else than it should


def test_ids_that_come_twice_are_dropped_and_counted(access, proxy):
    first = []
    proxy.script(
        LIST_MEMORIES,
        changed(lambda page: first.extend(page["memoryBlobs"][:4])),
        changed(lambda page: page["memoryBlobs"].extend([*first, page["memoryBlobs"][0]])),
    )
    memories = load(access)
    assert_whole(memories)
    assert memories.attrs["memframe"]["n_repeated"] == 5


def test_a_cursor_that_repeats_ends_the_load_with_an_error(access, proxy):
    cursors = []
    proxy.script(
        LIST_MEMORIES,
        changed(lambda page: cursors.append(page["next_cursor"])),
        changed(lambda page: page.update(next_cursor=cursors[0])),
    )
    with pytest.raises(mf.ProtocolError, match="has no end"):
        load(access)
    assert pages_asked(proxy) == 2


def test_an_empty_page_with_a_cursor_is_not_the_end(access, proxy):
    asked = []

    def empty(request, forward):
        asked.append(request)
        return answered(200, {"memoryBlobs": [], "next_cursor": "detour"})(request, forward)

    def continued(request, forward):
        assert request.query["cursor"] == "detour"
        return forward(asked[0])

    proxy.script(LIST_MEMORIES, passed, empty, continued, without_field("next_cursor"))
    assert_whole(load(access))
    assert pages_asked(proxy) == 4


@pytest.mark.parametrize("fault", [cut, truncated(1000), answered(401)])
def test_a_page_that_breaks_off_is_asked_for_again(access, proxy, fault):
    n_before = len(proxy.requests_to(ISSUE_TOKEN))
    proxy.script(LIST_MEMORIES, passed, fault)
    assert_whole(load(access))
    assert pages_asked(proxy) == 4
    assert len(proxy.requests_to(ISSUE_TOKEN)) <= n_before + 1


@pytest.mark.parametrize(
    ("faults", "error", "says", "n_pages"),
    [
        ([cut] * 100, mf.NoAnswerError, "in the middle of an answer", 1 + READ_ATTEMPTS),
        ([shortened(1000)], mf.ProtocolError, "cut short", 2),
        ([answered(401)] * 2, mf.AuthError, "401", 3),
        ([answered(403)], mf.AccessError, "403", 2),
        ([answered(500)], mf.ServiceError, "500", 2),
        ([answered(429, Retry_After="0")] * 100, mf.RateLimitError, "429", 2 + 5),
        ([answered(503, Retry_After="0")] * 100, mf.ServiceError, "503", 2 + 5),
    ],
)
def test_what_breaks_the_chain_is_an_error_and_no_short_frame(
    access, proxy, slept, faults, error, says, n_pages
):
    proxy.script(LIST_MEMORIES, passed, *faults)
    with pytest.raises(error, match=says):
        load(access)
    assert pages_asked(proxy) == n_pages


@pytest.mark.parametrize("fault", [truncated(20), answered(503, Retry_After="0")])
def test_a_renewal_that_breaks_is_asked_for_again(access, proxy, fault):
    n_before = len(proxy.requests_to(ISSUE_TOKEN))
    proxy.script(LIST_MEMORIES, passed, answered(401))
    proxy.script(ISSUE_TOKEN, fault, fault)
    assert_whole(load(access))
    assert len(proxy.requests_to(ISSUE_TOKEN)) == n_before + 3


def test_a_service_that_wants_fewer_tokens_is_left_alone(access, proxy, slept):
    n_before = len(proxy.requests_to(ISSUE_TOKEN))
    proxy.script(LIST_MEMORIES, passed, answered(401))
    proxy.script(ISSUE_TOKEN, answered(429, Retry_After="60"))
    with pytest.raises(mf.RateLimitError):
        load(access)
    assert (len(proxy.requests_to(ISSUE_TOKEN)), slept) == (n_before + 1, [])


# Bursts


@pytest.mark.parametrize(("status", "wait"), [(429, "0"), (429, "120"), (502, "1")])
def test_a_burst_of_refusals_is_waited_out_as_the_service_asks(access, proxy, slept, status, wait):
    proxy.script(LIST_MEMORIES, passed, *[answered(status, Retry_After=wait)] * 3)
    assert_whole(load(access))
    assert [second for second in slept if second] == ([] if wait == "0" else [int(wait)] * 3)


def test_a_wait_of_no_seconds_grows_like_one_that_nobody_asks_for(service, proxy, slept):
    proxy.script(LIST_REQUESTS, *[answered(503, Retry_After="0")] * 3)
    with Client(proxy.base_url, Secret(service.api_key)) as client:
        client.access_requests()
    assert slept == [0, pytest.approx(0.7, abs=0.1), pytest.approx(1.3, abs=0.1)]


# Page sizes


def test_pages_of_which_the_answer_is_too_large_are_asked_for_in_smaller_ones(access, monkeypatch):
    monkeypatch.setattr("memframe.client.transport.MAX_RESPONSE_BYTES", 6_000)
    assert list(mf.load_memories(access)["id"]) == list(mf.load_memories(access, page_size=1)["id"])
    with pytest.raises(mf.ProtocolError, match="in one answer; request smaller pages with page_size="):
        mf.load_memories(access, page_size=25)
    monkeypatch.setattr("memframe.client.transport.MAX_RESPONSE_BYTES", 500)
    with pytest.raises(mf.ProtocolError, match="in one answer"):
        mf.load_memories(access)


# The chain, on scripted pages


class Pages:
    """Pages 1 to n; remembers what it was asked, read, and let go of."""

    def __init__(self, n_pages, largest=10_000, error=None):
        self.n_pages, self.largest = n_pages, largest
        self.error = error or InvalidError("refused", status=400)
        self.asked, self.events = [], []

    @contextmanager
    def __call__(self, size, cursor):
        self.asked.append((size, cursor))
        number = int(cursor or 1)
        self.events.append(f"ask {number}")

        def read():
            self.events.append(f"read {number}")
            if size > self.largest:
                raise self.error
            following = f'"{number + 1}"' if number < self.n_pages else "null"
            return SecretBytes(b'{"memoryBlobs": [], "next_cursor": %s}' % following.encode())

        try:
            yield read
        finally:
            self.events.append(f"let go of {number}")

    @property
    def sizes(self):
        return [size for size, _ in self.asked]


NAMED = InvalidError("refused", status=400, detail="limit must be between 1 and 200")
TINY = InvalidError("refused", status=400, detail="limit must be at most 5")
LARGE = ServiceError("refused", status=413, detail="413 Content Too Large")
ONE_ANSWER = AnswerTooLargeError("too large")


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


@pytest.mark.parametrize(
    ("pages", "sizes"),
    [
        (Pages(3, 200), [1000, 500, 250, 100, 100, 100]),
        (Pages(2, 200, NAMED), [1000, 200, 200]),
        (Pages(2, 5, TINY), [1000, 500, 250, 100, 50, 20, 10, 5, 5]),
        (Pages(1, 1, LARGE), [1000, 500, 250, 100, 50, 20, 10, 5, 2, 1]),
        (Pages(2, 100, ONE_ANSWER), [1000, 500, 250, 100, 100]),
    ],
)
def test_the_size_steps_down_until_the_service_agrees_and_stays(pages, sizes):
    assert len(list(iter_pages(pages))) == pages.n_pages
    assert pages.sizes == sizes


@pytest.mark.parametrize("error", [LARGE, ONE_ANSWER])
def test_a_later_page_may_be_too_large_and_comes_smaller(error):
    pages = Pages(5, 1000, error)
    chain = iter_pages(pages)
    first = [next(chain), next(chain)]  # the third is under way
    pages.largest = 300
    assert [cursor_of(body) for body in first + list(chain)] == ["2", "3", "4", "5", None]
    assert pages.asked[2:] == [(1000, "3"), (500, "3"), (250, "3"), (250, "4"), (250, "5")]


@pytest.mark.parametrize(("limit", "n_asked"), [(5, 1), (10, 1), (11, 2), (20, 2)])
def test_no_page_is_asked_for_ahead_that_the_limit_does_not_need(limit, n_asked):
    pages = Pages(9)
    bodies = iter_pages(pages, page_size=10, limit=limit)
    for _ in range(n_asked):
        next(bodies)
    bodies.close()
    assert len(pages.asked) == n_asked
    assert len(list(iter_pages(Pages(5), limit=30))) == 5  # smaller pages than asked for go on


@pytest.mark.parametrize(
    ("body", "cursor"),
    [
        (b'{"memoryBlobs":[],"next_cursor":"c"}', "c"),
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


# Pages sent ahead, over real connections


def requested(client, memory_id="m1"):
    """One page, which the stranger will answer with that memory."""
    return client.request_page(memory_query(USER_ID), cursor=memory_id)


@pytest.fixture
def client(stranger):
    """Of a service whose page holds the one memory that is named by the cursor."""

    def page(request, forward):
        memories = [MEMORY | {"id": request.query["cursor"]}]
        return answered(200, {"memoryBlobs": memories, "next_cursor": None})(request, forward)

    stranger.always(LIST_MEMORIES, page)
    with stranger.client() as client:
        yield client


def id_on(read):
    (memory,) = decode(read(), MemoryPage, what="a page").memory_blobs
    return memory.id


def test_responses_under_way_are_not_mixed_up_even_with_unread_ones(client):
    for number in range(4):
        with requested(client, f"unread {number}"):
            pass
        with requested(client, f"read {number}") as page:
            assert id_on(page) == f"read {number}"
    with requested(client, "one") as one, requested(client, "two") as two:
        assert (id_on(two), id_on(one)) == ("two", "one")


def test_one_connection_is_used_over_and_over(client, stranger):
    for number in range(5):
        with requested(client, f"m{number}") as page:
            page()
    assert len(stranger.ports) == 1


@pytest.mark.parametrize("fault", [truncated(20), answered(401), answered(429)])
def test_what_goes_wrong_with_it_is_asked_again(client, stranger, fault):
    stranger.script(LIST_MEMORIES, fault)
    with requested(client) as page:
        assert id_on(page) == "m1"
    assert len(stranger.requests_to(LIST_MEMORIES)) == 2


def test_a_token_that_was_renewed_meanwhile_is_not_renewed_again(client, stranger):
    stranger.script(LIST_MEMORIES, answered(401))
    stranger.script(GET_REQUEST, answered(401))
    with requested(client) as page:
        client.access_request("r1")
        assert id_on(page) == "m1"
    assert len(stranger.requests_to(ISSUE_TOKEN)) == 2


def test_behind_a_rate_limiter_nothing_is_sent_ahead(client, stranger):
    with client.rate_limited(SharedRateLimiter(RateLimiter(4))), requested(client) as page:
        client.access_request("r1")
        page()
    assert [request.path.rsplit("/", 1)[-1] for request in stranger.requests] == [
        "token",
        "r1",
        "memory-blobs",
    ]
