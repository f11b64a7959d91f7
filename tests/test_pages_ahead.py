"""Pages that are asked for before they are wanted, over real connections."""

import threading

import pytest

import memframe as mf
from memframe.client.responses import decode
from memframe.client.retry import RateLimiter, SharedRateLimiter
from memframe.client.validation import memory_query
from memframe.wire import GET_REQUEST, ISSUE_TOKEN, LIST_MEMORIES, MemoryPage
from tests.faults import answered, cut, truncated
from tests.strangers import MEMORY, USER_ID


def asked(client, memory_id="m1"):
    """One page, which a stranger will answer with that memory."""
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


def id_in(body):
    (memory,) = decode(body, MemoryPage, what="a page").memory_blobs
    return memory.id


def endpoints(stranger):
    return [request.path.rsplit("/", 1)[-1] for request in stranger.requests]


def test_the_request_leaves_before_its_answer_is_wanted(client, stranger):
    arrived = threading.Event()
    stranger.script(
        LIST_MEMORIES, lambda request, forward: arrived.set() or answered(200, {})(request, forward)
    )
    with asked(client):
        assert arrived.wait(10)


def test_an_answer_that_nobody_read_is_not_taken_for_the_next(client):
    for number in range(4):
        with asked(client, f"unread {number}"):
            pass
        with asked(client, f"read {number}") as page:
            assert id_in(page.read()) == f"read {number}"


def test_answers_that_are_under_way_together_are_not_mixed_up(client):
    with asked(client, "one") as one, asked(client, "two") as two:
        assert id_in(two.read()) == "two"
        assert id_in(one.read()) == "one"


def test_one_connection_is_used_over_and_over(client, stranger):
    for number in range(5):
        with asked(client, f"m{number}") as page:
            page.read()
    assert len(stranger.ports) == 1


@pytest.mark.parametrize("fault", [cut, truncated(20), answered(401), answered(429), answered(503)])
def test_what_goes_wrong_with_it_is_asked_again(client, stranger, fault):
    stranger.script(LIST_MEMORIES, fault)
    with asked(client) as page:
        assert id_in(page.read()) == "m1"
    assert len(stranger.requests_to(LIST_MEMORIES)) == 2


def test_a_token_that_was_renewed_meanwhile_is_not_renewed_again(client, stranger):
    stranger.script(LIST_MEMORIES, answered(401))
    stranger.script(GET_REQUEST, answered(401))
    with asked(client) as page:
        client.access_request("r1")
        assert id_in(page.read()) == "m1"
    assert len(stranger.requests_to(ISSUE_TOKEN)) == 2


def test_a_refusal_that_is_final_is_not_asked_again(client, stranger):
    stranger.script(LIST_MEMORIES, answered(403))
    with asked(client) as page, pytest.raises(mf.AccessError):
        page.read()
    assert len(stranger.requests_to(LIST_MEMORIES)) == 1


def test_behind_a_gate_nothing_is_asked_ahead(client, stranger):
    with client.rate_limited(SharedRateLimiter(RateLimiter(4))), asked(client) as page:
        client.access_request("r1")
        page.read()
    assert endpoints(stranger) == ["token", "r1", "memory-blobs"]


def test_a_service_that_went_away_is_told_when_its_answer_is_wanted(client, stranger):
    client.sign_in()
    stranger.__exit__()
    with asked(client) as page, pytest.raises(mf.NoAnswerError, match="cannot reach"):
        page.read()
