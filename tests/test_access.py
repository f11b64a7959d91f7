"""From request to access: every status says where one stands, and waiting is patient and bounded."""

import pytest

import memframe as mf
from memframe.access import MAX_KEPT_LOADS
from memframe.errors import AccessError, DecisionTimeout
from memframe.runtime import Runtime
from memframe.sample import load_sample


class Time:
    """A clock that only passes when somebody sleeps, and what happens meanwhile."""

    def __init__(self, meanwhile=None):
        self.now = 0.0
        self.slept = []
        self.meanwhile = meanwhile or {}

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds
        self.meanwhile.get(len(self.slept), lambda: None)()


def test_a_memory_key_that_is_not_accepted_is_named_with_the_way_to_a_new_one(user):
    with pytest.raises(
        AccessError, match="The memory key is not accepted: let the user connect again"
    ) as asked:
        user.client.create_access_request("mk_of_nobody", "weekly review")
    request = user.ask()
    user.service.decide(request.id, "approved")
    key = {"user_id": request.user_id, "memory_key": "mk_of_nobody"}
    with pytest.raises(
        AccessError, match="The memory key is not accepted: let the user connect again"
    ) as wrote:
        user.client.create_memory_blob(**key, content="Likes tea")
    for refused in (asked, wrote):
        assert "status" not in str(refused.value)


@pytest.mark.parametrize("decision", ["approved", "rejected"])
def test_waiting_ends_with_any_decision(user, decision, monkeypatch):
    request = user.ask()
    time = Time({3: lambda: user.service.decide(request.id, decision)})
    monkeypatch.setattr(user.client, "runtime", Runtime(clock=time.clock, sleep=time.sleep))
    decided = mf.wait_for_decision(user.client, request.id, timeout_s=60, poll_s=5)
    assert decided.status == decision
    assert time.slept == [5, 5, 5]


@pytest.mark.parametrize(
    ("timeout_s", "poll_s", "slept"), [(12, 5, [5, 5, 2]), (0.25, 0.01, [0.1, 0.1, 0.05])]
)
def test_only_time_running_out_raises(timeout_s, poll_s, slept, user, monkeypatch):
    request = user.ask()
    time = Time()
    monkeypatch.setattr(user.client, "runtime", Runtime(clock=time.clock, sleep=time.sleep))
    with pytest.raises(DecisionTimeout, match="stays open") as late:
        mf.wait_for_decision(user.client, request.id, timeout_s=timeout_s, poll_s=poll_s)
    assert time.slept == pytest.approx(slept)
    assert isinstance(late.value, TimeoutError)


def test_baselines_of_many_loads_are_kept_once(user):
    user.service.import_memories(user.user_id, load_sample()[:20])
    access = user.access()
    for _ in range(3):
        mf.load_memories(access, progress=False)
    assert len(access._loads) == 1
    for number in range(MAX_KEPT_LOADS + 3):
        mf.load_memory(access, access.baseline().id.iloc[number])
    assert len(access._loads) <= MAX_KEPT_LOADS
    assert len(access.baseline()) == 20
