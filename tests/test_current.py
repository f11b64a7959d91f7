"""What the service holds now: whole or not at all, and asked for in the way that is sooner."""

from contextlib import closing
from uuid import uuid4

import pytest

import memframe as mf
from memframe.errors import NoAnswerError
from memframe.plan.current import iter_current, read_current
from memframe.sample import load_sample
from memframe.wire import GET_MEMORY, LIST_MEMORIES
from tests.conftest import User
from tests.faults import answered, clamped, cut
from tests.strangers import MEMORY

N_MEMORIES = 60
FIELDS = ("title", "summary", "content", "tags", "importance", "confidence", "source")


@pytest.fixture(scope="module")
def filled(service):
    with closing(User(service, f"{uuid4()}@example.org")) as user:
        service.import_memories(user.user_id, load_sample()[:N_MEMORIES])
        request = user.ask()
        service.decide(request.id, "approved")
        yield request.id, mf.load_memories(mf.open_access(user.client, request.id), progress=False)


@pytest.fixture
def proxied(service, proxy, filled):
    request_id, memories = filled
    client = mf.connect(proxy.base_url, api_key=service.api_key)
    return mf.open_access(client, request_id), memories, proxy


def values_of(stored):
    return {field: stored.value(field) for field in FIELDS}


def row_values(memories, row):
    return {
        field: memories[field][row] if field == "tags" or memories[field].notna()[row] else None
        for field in FIELDS
    }


@pytest.mark.parametrize("n_known", [None, N_MEMORIES, 10_000_000])
@pytest.mark.parametrize("n_wanted", [0, 8, 9])
def test_chosen_memories_are_what_a_load_says(proxied, n_wanted, n_known):
    access, memories, _ = proxied
    found = read_current(access, [*memories.id[:n_wanted], "nobody"], n_known=n_known)
    assert sorted(found) == sorted(memories.id[:n_wanted])
    for row in range(n_wanted):
        assert values_of(found[memories.id[row]]) == row_values(memories, row)


@pytest.mark.parametrize(
    ("n_wanted", "n_known", "n_gets", "n_lists"),
    [
        (1, None, 1, 0),
        (8, None, 8, 0),
        (9, None, 0, 1),
        (60, 60, 0, 1),
        (60, 100_000, 60, 0),
        (60, 8_000, 60, 0),
    ],
)
def test_the_way_that_is_sooner_is_taken(proxied, n_wanted, n_known, n_gets, n_lists):
    access, memories, proxy = proxied
    read_current(access, memories.id[:n_wanted], n_known=n_known)
    assert len(proxy.requests_to(GET_MEMORY)) == n_gets
    assert len(proxy.requests_to(LIST_MEMORIES)) == n_lists


def test_a_listing_that_is_longer_than_thought_is_left_for_the_other_way(proxied):
    access, memories, proxy = proxied
    proxy.always(LIST_MEMORIES, clamped(5))
    last = memories.id[-17:]
    assert set(read_current(access, last)) == set(last)
    assert 0 < len(proxy.requests_to(LIST_MEMORIES)) <= 5
    assert len(proxy.requests_to(GET_MEMORY)) == 17


@pytest.mark.parametrize(("fault", "error"), [(answered(403), mf.AccessError), (cut, NoAnswerError)])
def test_a_listing_that_breaks_off_is_an_error(proxied, fault, error):
    access, memories, proxy = proxied
    proxy.always(LIST_MEMORIES, fault)
    proxy.script(LIST_MEMORIES, clamped(20), clamped(20))
    with pytest.raises(error):
        list(iter_current(access))
    proxy.always(GET_MEMORY, fault)
    for some in (memories.id, memories.id[:3]):
        with pytest.raises(error):
            read_current(access, some)


def test_half_characters_are_shown_as_in_frames_and_named(stranger):
    odd = {"title": "\ud83d", "tags": ["a\ud83d"]}
    stranger.answer(LIST_MEMORIES, memoryBlobs=[MEMORY | odd])
    stranger.answer(GET_MEMORY, **odd)
    access = mf.open_access(stranger.client(), "r1")
    for stored in (*iter_current(access), *read_current(access, ["m1"]).values()):
        assert (stored.value("title"), stored.value("tags")) == ("\ufffd", ("a\ufffd",))
        assert stored.blob.title == "\ud83d"
        assert "lone surrogate" in stored.error
        assert "Likes tea" not in repr(stored)
