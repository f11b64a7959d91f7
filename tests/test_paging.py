"""Every way in which a listing can go wrong between a real service and the loaders."""

from types import SimpleNamespace
from uuid import uuid4

import pytest
import urllib3.util.retry

import memframe as mf
from memframe.client import Client
from memframe.client.retry import MAX_RETRY_AFTER_S, read_retry
from memframe.client.transport import READ_ATTEMPTS, Transport
from memframe.listing import MAX_EMPTY_PAGES
from memframe.sample import load_sample
from memframe.secret import Secret
from memframe.wire import ISSUE_TOKEN, LIST_MEMORIES
from tests.faults import (
    FaultProxy,
    answered,
    changed,
    clamped,
    cut,
    html,
    passed,
    refused_above,
    shortened,
    truncated,
    without_field,
)


@pytest.fixture
def proxy(service):
    with FaultProxy(service.base_url) as proxy:
        yield proxy


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
    """Seconds that urllib3 would have slept."""
    seconds = []
    monkeypatch.setattr(urllib3.util.retry, "time", SimpleNamespace(sleep=seconds.append))
    return seconds


def load(access, **options):
    return mf.load_memories(access, page_size=10, progress=False, **options)


def assert_whole(memories):
    assert list(memories["content"]) == [memory.content for memory in MEMORIES]
    assert memories.attrs["memframe"]["complete"]


def pages_asked(proxy):
    return len(proxy.requests_to(LIST_MEMORIES))


# The chain


def test_without_a_fault_all_memories_come_in_as_many_pages_as_needed(access, proxy):
    assert_whole(load(access))
    assert pages_asked(proxy) == 3


def test_ids_that_come_twice_are_dropped_and_counted(access, proxy):
    first = []
    proxy.script(
        LIST_MEMORIES,
        changed(lambda page: first.extend(page["memoryBlobs"][:4])),
        changed(lambda page: page["memoryBlobs"].extend(first)),
    )
    memories = load(access)
    assert_whole(memories)
    assert memories.attrs["memframe"]["n_repeated"] == 4


def test_an_id_that_comes_twice_on_one_page_is_dropped_and_counted(access, proxy):
    proxy.script(LIST_MEMORIES, changed(lambda page: page["memoryBlobs"].append(page["memoryBlobs"][0])))
    memories = load(access)
    assert_whole(memories)
    assert memories.attrs["memframe"]["n_repeated"] == 1


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

    proxy.script(LIST_MEMORIES, passed, empty, continued)
    assert_whole(load(access))
    assert pages_asked(proxy) == 4


def endless(request, forward):
    """An empty page, and a cursor that was never there before."""
    return answered(200, {"memoryBlobs": [], "next_cursor": str(uuid4())})(request, forward)


def test_empty_pages_without_an_end_are_an_error(access, proxy):
    proxy.always(LIST_MEMORIES, endless)
    with pytest.raises(mf.ProtocolError, match="has no end"):
        load(access)
    assert pages_asked(proxy) <= MAX_EMPTY_PAGES + 3


def test_a_page_without_a_cursor_field_is_the_last(access, proxy):
    proxy.script(LIST_MEMORIES, passed, passed, without_field("next_cursor"))
    assert_whole(load(access))


def test_a_page_without_memories_field_is_an_error(access, proxy):
    proxy.script(LIST_MEMORIES, passed, without_field("memoryBlobs"))
    with pytest.raises(mf.ProtocolError, match="memoryBlobs"):
        load(access)


def test_memories_of_another_user_are_an_error(access, proxy):
    proxy.script(LIST_MEMORIES, changed(lambda page: page["memoryBlobs"][3].update(user_id=str(uuid4()))))
    with pytest.raises(mf.ProtocolError, match="another user"):
        load(access)


# Answers that break off


@pytest.mark.parametrize("fault", [cut, truncated(0), truncated(1), truncated(1000)])
def test_a_page_that_breaks_off_is_asked_for_again(access, proxy, fault):
    proxy.script(LIST_MEMORIES, passed, fault)
    assert_whole(load(access))
    assert pages_asked(proxy) == 4


@pytest.mark.parametrize("fault", [cut, truncated(1000)])
def test_a_page_that_always_breaks_off_is_an_error_and_no_short_frame(access, proxy, fault):
    proxy.script(LIST_MEMORIES, passed, *[fault] * 100)
    with pytest.raises(mf.NoAnswerError, match="broke off"):
        load(access)
    assert pages_asked(proxy) == 1 + READ_ATTEMPTS


@pytest.mark.parametrize("sent_bytes", [0, 1, 1000])
def test_part_of_a_page_that_passes_for_the_whole_is_an_error(access, proxy, sent_bytes):
    proxy.script(LIST_MEMORIES, passed, shortened(sent_bytes))
    with pytest.raises(mf.ProtocolError, match=r"empty|cut short"):
        load(access)


def test_a_chain_that_breaks_in_the_middle_gives_an_error_after_the_frames_before(access, proxy):
    proxy.script(LIST_MEMORIES, passed, *[cut] * 100)
    frames = mf.iter_memories(access, chunk_rows=10, page_size=10, progress=False)
    with pytest.raises(mf.NoAnswerError):
        list(frames)


# Answers of others


def test_a_sign_in_page_in_the_place_of_json_is_named(access, proxy):
    proxy.script(LIST_MEMORIES, passed, html)
    with pytest.raises(mf.ProtocolError, match="an HTML page, not JSON") as caught:
        load(access)
    assert "hotel" not in str(caught.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(access, proxy, status):
    proxy.script(LIST_MEMORIES, passed, answered(status, Location="https://evil.example/?x=1"))
    with pytest.raises(mf.ProtocolError, match=r"a redirect to evil\.example\."):
        load(access)
    assert pages_asked(proxy) == 2


# Tokens


def test_a_token_that_expires_between_pages_is_renewed_once(access, proxy):
    n_before = len(proxy.requests_to(ISSUE_TOKEN))
    proxy.script(LIST_MEMORIES, passed, answered(401))
    assert_whole(load(access))
    assert len(proxy.requests_to(ISSUE_TOKEN)) == n_before + 1
    tokens = [request.headers["Authorization"] for request in proxy.requests_to(LIST_MEMORIES)]
    assert len(tokens) == 4


def test_a_fresh_token_that_is_refused_ends_the_load(access, proxy):
    n_before = len(proxy.requests_to(ISSUE_TOKEN))
    proxy.script(LIST_MEMORIES, passed, answered(401), answered(401))
    with pytest.raises(mf.AuthError):
        load(access)
    assert len(proxy.requests_to(ISSUE_TOKEN)) == n_before + 1


@pytest.mark.parametrize(
    "fault", [cut, truncated(20), answered(502), answered(503, Retry_After="0"), answered(504)]
)
def test_a_renewal_that_breaks_is_asked_for_again_as_it_writes_nothing(access, proxy, fault):
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


def test_access_that_is_taken_back_between_pages_ends_the_load(access, proxy):
    proxy.script(LIST_MEMORIES, passed, answered(403))
    with pytest.raises(mf.AccessError):
        load(access)


# Bursts


@pytest.mark.parametrize("status", [429, 502, 503, 504])
@pytest.mark.parametrize("wait", ["0", "1", "120"])
def test_a_burst_of_refusals_is_waited_out_as_the_service_asks(access, proxy, slept, status, wait):
    proxy.script(LIST_MEMORIES, passed, *[answered(status, Retry_After=wait)] * 3)
    assert_whole(load(access))
    assert [second for second in slept if second] == ([] if wait == "0" else [int(wait)] * 3)


@pytest.mark.parametrize(
    "wait", ["1000000000", "9" * 400, "Fri, 31 Dec 2999 23:59:59 GMT", "Fri, 99 Dec 9999 99:99:99 GMT"]
)
def test_a_wait_of_years_is_cut_to_five_minutes(access, proxy, slept, monkeypatch, wait):
    monkeypatch.setattr(urllib3.util.retry.time, "time", lambda: 0.0, raising=False)
    proxy.script(LIST_MEMORIES, answered(503, Retry_After=wait))
    assert_whole(load(access))
    assert max(slept, default=0) <= MAX_RETRY_AFTER_S


@pytest.mark.parametrize("wait", ["soon", "", "-1", "1.5", "NaN", "Thu, 01 Jan 1970 00:00:00 GMT", "٣"])
def test_a_wait_that_is_garbage_counts_as_nothing_said(access, proxy, slept, monkeypatch, wait):
    monkeypatch.setattr(urllib3.util.retry.time, "time", lambda: 1e9, raising=False)
    proxy.script(LIST_MEMORIES, answered(429, Retry_After=wait), answered(503, Retry_After=wait))
    assert_whole(load(access))
    assert max(slept, default=0) < 2


@pytest.mark.parametrize(("status", "error"), [(429, mf.RateLimitError), (503, mf.ServiceError)])
def test_refusals_without_end_are_an_error(access, proxy, status, error):
    proxy.script(LIST_MEMORIES, passed, *[answered(status, Retry_After="0")] * 100)
    with pytest.raises(error) as caught:
        load(access)
    assert caught.value.status == status


def test_an_error_of_the_service_is_not_asked_for_again(access, proxy):
    proxy.script(LIST_MEMORIES, passed, answered(500))
    with pytest.raises(mf.ServiceError):
        load(access)
    assert pages_asked(proxy) == 2


# Page sizes


def test_pages_smaller_than_asked_for_are_all_loaded(access, proxy):
    proxy.always(LIST_MEMORIES, clamped(4))
    assert_whole(load(access))
    assert pages_asked(proxy) == 7


@pytest.mark.parametrize("status", [400, 413, 422])
def test_auto_takes_the_size_that_the_refusal_names(access, proxy, status):
    proxy.always(LIST_MEMORIES, refused_above(20, status))
    assert_whole(mf.load_memories(access, progress=False))
    sizes = [int(request.query["limit"]) for request in proxy.requests_to(LIST_MEMORIES)]
    assert sizes == [1000, 20, 20]  # the refusal names its limit


@pytest.mark.parametrize("status", [400, 422])
def test_auto_goes_below_the_default_where_the_service_does_not_say_its_limit(access, proxy, status):
    def above_seven(request, forward):
        return (answered(status) if int(request.query["limit"]) > 7 else passed)(request, forward)

    proxy.always(LIST_MEMORIES, above_seven)
    assert_whole(mf.load_memories(access, progress=False))


def test_a_page_size_that_is_too_large_is_an_error_that_says_what_to_do(access, proxy):
    proxy.always(LIST_MEMORIES, refused_above(5, 413))
    with pytest.raises(mf.ServiceError, match=r"answered 413: .* ask for smaller pages with page_size="):
        load(access)
    assert pages_asked(proxy) == 1


def test_auto_asks_for_a_big_page_at_once(access, proxy):
    assert_whole(mf.load_memories(access, progress=False))
    assert [request.query["limit"] for request in proxy.requests_to(LIST_MEMORIES)] == ["1000"]


def test_pages_of_which_the_answer_is_too_large_are_asked_for_in_smaller_ones(access, monkeypatch):
    monkeypatch.setattr("memframe.client.transport.MAX_RESPONSE_BYTES", 6_000)
    assert list(mf.load_memories(access)["id"]) == list(mf.load_memories(access, page_size=1)["id"])
    with pytest.raises(mf.ProtocolError, match="in one answer; ask for smaller pages with page_size="):
        mf.load_memories(access, page_size=25)
    monkeypatch.setattr("memframe.client.transport.MAX_RESPONSE_BYTES", 500)
    with pytest.raises(mf.ProtocolError, match="in one answer"):
        mf.load_memories(access)
