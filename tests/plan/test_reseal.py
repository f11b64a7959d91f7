"""Sealing anew: everything under an older key is planned, whatever is not is left alone, what no key opens is said."""

import pytest

import memframe as mf
from memframe.errors import PlanError, SealError
from memframe.plan.current import read_current
from memframe.secret import Secret

CONTENTS = ["Ada likes tea.", "The boat is called Ida.", "Zoë schläft, 猫も。", "Line one\nline two"]


@pytest.mark.parametrize(
    "keys",
    [
        lambda key: [key],
        lambda key: (Secret("ab" * 31 + "01"), key),
        lambda key: {1: key},
        lambda key: {7: "ab" * 31 + "01", 1: key.reveal()},
    ],
)
def test_what_an_older_key_opens_is_planned(writers, keys):
    later = writers.after_rotation()
    plan = mf.plan_reseal(later, old_keys=keys(writers.access.credentials.encryption_key))
    assert [change.after for change in plan.records] == [{"content": content} for content in CONTENTS]
    assert [change.id for change in plan.records] == writers.ids
    assert {change.action for change in plan.records} == {"patch"}
    assert all(change.before == {} for change in plan.records)
    assert plan.key_version == 2


def test_what_is_under_the_newest_key_is_left_alone(writers):
    assert not mf.plan_reseal(writers.access)
    assert not mf.plan_reseal(writers.access, old_keys=[Secret("0f1e" * 16)])


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (lambda key: None, "pass the older key in old_keys"),
        (lambda key: ["ab" * 31 + "01"], "none of the older keys opens it"),
        (lambda key: {3: key}, "none of the older keys opens it"),  # under another version
    ],
)
def test_what_no_key_opens_is_said(writers, keys, said):
    plan = mf.plan_reseal(writers.after_rotation(), old_keys=keys(writers.access.credentials.encryption_key))
    assert plan.counts == {"invalid": 4}
    reason = plan.records[0].reason
    assert "key_version 1, these credentials hold 2" in reason
    assert said in reason
    assert not plan.without("invalid")


def test_what_is_stored_is_known_again_by_its_seal(writers):
    later = writers.after_rotation()
    plan = mf.plan_reseal(later, old_keys=[writers.access.credentials.encryption_key])
    plan.refuse_stale(read_current(later, writers.ids))
    writers.theirs(0, content="Ada likes tea.")
    with pytest.raises(mf.StalePlanError, match="1 of its 4 fields changed"):
        plan.refuse_stale(read_current(later, writers.ids))


@pytest.mark.parametrize("key", ["not a key", "0f1e"])
def test_what_is_no_key_is_refused_and_not_shown(writers, key):
    with pytest.raises(SealError) as refused:
        mf.plan_reseal(writers.access, old_keys=[key])
    assert key not in str(refused.value)
    with pytest.raises(PlanError, match="old_keys is a single key"):
        mf.plan_reseal(writers.access, old_keys=key)
