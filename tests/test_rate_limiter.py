"""Rate limiting: threads send together, slow down together, and give up together."""

import threading
from collections import Counter
from itertools import chain, repeat
from typing import NamedTuple

import pytest

import memframe as mf
from memframe import wire
from memframe.client.retry import RateLimiter, SharedRateLimiter
from memframe.errors import RateLimitError
from tests.faults import answered
from tests.strangers import MEMORY


class Answer(NamedTuple):
    status: int
    wait_s: float | None = None


class Time:
    """A clock that only sleeping moves."""

    def __init__(self):
        self.now = 0.0
        self.slept = []

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds

    def limiter(self, workers):
        return RateLimiter(workers, clock=lambda: self.now, sleep=self.sleep, chance=lambda: 0.5)


def test_a_limit_halves_when_it_is_too_much_and_grows_by_a_part_of_one():
    limiter = Time().limiter(8)
    limiter.slow_down(1)
    limiter.slow_down(1)  # the same moment: one word from many mouths
    assert limiter.limit == 4
    for _ in range(5):
        limiter.speed_up()
    assert limiter.limit == 5
    for _ in range(100):
        limiter.speed_up()
    assert limiter.limit == 8


def test_waits_that_nobody_asks_for_grow():
    time = Time()
    limiter = time.limiter(8)
    waits = []
    for _ in range(8):
        limiter.slow_down(None)
        waits.append(limiter.delay_s)
        limiter.wait()
    assert waits == [0.5, 1, 2, 4, 8, 10, 10, 10]
    assert limiter.limit == 1


def answers_of(*answers):
    given = chain(answers, repeat(Answer(200)))
    return lambda: next(given)


def refusing():
    """A call that is always refused, and how often it was made."""
    asked = Counter()

    def refused():
        asked["times"] += 1
        return Answer(429, 1)

    return refused, asked


def test_it_gives_up_when_the_budget_is_spent_and_goes_on_after_a_success():
    time = Time()
    shared = SharedRateLimiter(time.limiter(4))
    refused, asked = refusing()

    for n_times in (101, 102):  # 500 at 5 a repeat; then there is nothing left for another
        assert shared.call(refused, lambda answer: answer.wait_s).status == 429
        assert asked["times"] == n_times
    shared.call(answers_of(), lambda answer: answer.wait_s)
    asked.clear()
    shared.call(refused, lambda answer: answer.wait_s)
    assert asked["times"] == 101


@pytest.mark.parametrize(
    ("status", "limit", "wait_s"), [(200, 3, 0), (404, 3, 0), (500, 2, 7), (503, 2, 7), (599, 2, 7)]
)
def test_a_failure_of_the_service_makes_all_wait_and_none_faster(status, limit, wait_s):
    time = Time()
    limiter = time.limiter(8)
    for _ in range(2):
        limiter.slow_down(0)
    shared = SharedRateLimiter(limiter)
    for _ in range(3):
        assert shared.call(answers_of(Answer(status, 7)), lambda answer: answer.wait_s).status == status
    assert limiter.limit == limit
    assert limiter.delay_s == wait_s


def test_failures_use_up_the_budget_of_refusals_and_a_success_refills_it():
    time = Time()
    shared = SharedRateLimiter(time.limiter(4))
    refused, asked = refusing()

    for _ in range(36):  # 500 at 14 a failure
        shared.call(answers_of(Answer(503, 0)), lambda answer: answer.wait_s)
    shared.call(refused, lambda answer: answer.wait_s)
    assert asked["times"] == 3, "ten are left: two repeats at five"
    shared.call(answers_of(), lambda answer: answer.wait_s)
    shared.call(refused, lambda answer: answer.wait_s)
    assert asked["times"] == 3 + 101


def test_no_more_are_inside_than_the_limit_allows():
    shared = SharedRateLimiter(Time().limiter(3))
    inside, most = [], []
    three_are_in, may_leave = threading.Barrier(4), threading.Event()

    def send():
        inside.append(1)
        most.append(len(inside))
        if len(most) <= 3:
            three_are_in.wait(10)
            may_leave.wait(10)
        inside.pop()
        return Answer(200)

    threads = [threading.Thread(target=shared.call, args=(send, lambda answer: None)) for _ in range(12)]
    for thread in threads:
        thread.start()
    three_are_in.wait(10)
    may_leave.set()
    for thread in threads:
        thread.join(10)
    assert max(most) <= 3
    assert len(most) == 12


# On the wire


def test_reads_behind_a_limiter_are_repeated_by_it(stranger):
    stranger.script(wire.LIST_MEMORIES, *[answered(429, {}, Retry_After="7")] * 8)
    stranger.answer(wire.LIST_MEMORIES, memoryBlobs=[MEMORY])
    time = Time()
    client = stranger.client()
    with client.rate_limited(SharedRateLimiter(time.limiter(4))):
        access = mf.open_access(client, "r1")
        assert len(mf.load_memories(access, progress=False)) == 1
    assert time.slept == [7] * 8
    assert len(stranger.requests_to(wire.LIST_MEMORIES)) == 9


@pytest.mark.parametrize("first_out", ["inner", "outer"])
def test_the_end_of_one_block_leaves_the_limiter_of_another(stranger, first_out):
    client, times = stranger.client(), {"outer": Time(), "inner": Time()}
    blocks = {name: client.rate_limited(SharedRateLimiter(time.limiter(4))) for name, time in times.items()}
    for block in blocks.values():
        block.__enter__()
    blocks.pop(first_out).__exit__(None, None, None)
    (left,) = blocks
    stranger.script(wire.LIST_TAGS, *[answered(429, {}, Retry_After="7")] * 3)
    client.tags("u1")
    assert {name: time.slept for name, time in times.items()} == {left: [7] * 3, first_out: []}
    blocks[left].__exit__(None, None, None)
    stranger.always(wire.LIST_TAGS, answered(429))
    with pytest.raises(RateLimitError):
        client.tags("u1")
    assert times[left].slept == [7] * 3


def test_writes_are_not_repeated(stranger):
    client = stranger.client()
    stranger.always(wire.CREATE_MEMORY, answered(429, {}, Retry_After="7"))
    time = Time()
    with client.rate_limited(SharedRateLimiter(time.limiter(4))), pytest.raises(RateLimitError):
        client.create_memory_blob("u1", memory_key="mk", content="x")
    assert time.slept == []
