"""A fleet that is killed at random while it audits, plans and applies: nothing lost, nothing twice, one balance."""

from pathlib import Path

import pytest

from tests.apply.test_kills import killed

KILL = Path(__file__).with_name("fleet_kill.py")


def assert_whole(found):
    assert (found["lost"], found["unplanned"]) == (0, 0), found
    assert found["balance"]["done"] + found["balance"]["recovered"] == found["planned"] > 0
    assert sum(found["balance"].values()) == found["planned"] == found["written"]
    assert found["runs"] == found["users"]


def test_a_few_kills():
    found = killed(KILL, users=2, client_kills=3, service_kills=1)
    assert_whole(found)
    assert found["client_kills"] > 0


@pytest.mark.campaign
def test_many_kills():
    found = killed(KILL, users=20, client_kills=120, service_kills=30)
    assert_whole(found)
    assert found["client_kills"] >= 60
