"""How requests travel, whatever the environment says."""

import pytest

import memframe as mf
from memframe import wire
from tests.canaries import found_in
from tests.faults import answered
from tests.strangers import SECRETS


def test_keys_of_an_open_access_stay_masked_after_a_fleet_forgot_them(stranger):
    client = stranger.client()
    mf.open_access(client, "r1")
    fleet = mf.load_fleet(client, progress=False)
    assert fleet.outcomes["status"].tolist() == ["done"], fleet.outcomes
    for name in ("memory key", "encryption key"):
        stranger.always(wire.LIST_TAGS, answered(400, {"detail": f"no tags for {SECRETS[name]}"}))
        with pytest.raises(mf.InvalidError, match="no tags for ••••••") as caught:
            client.tags("u1")
        assert not found_in(str(caught.value), SECRETS)


def test_keys_that_nobody_uses_any_more_are_not_looked_for_in_messages(stranger):
    client = stranger.client()
    mf.load_fleet(client, progress=False)
    assert client._transport._keys_in_use == []


def test_keys_that_are_fetched_again_and_again_are_looked_for_once(stranger):
    client = stranger.client()
    access = mf.open_access(client, "r1")
    for _ in range(3):
        access = access.renew()
    assert [n_uses for _, n_uses in client._transport._keys_in_use] == [4, 4]


@pytest.mark.parametrize("registering", ["client", "twin"])
def test_secrets_registered_again_are_masked_for_client_and_twin(stranger, registering):
    client = stranger.client()
    twin = client.without_retries()
    client.unmask(client.credentials("r1"))
    {"client": client, "twin": twin}[registering].credentials("r1")
    stranger.always(wire.LIST_TAGS, answered(400, {"detail": f"no tags for {SECRETS['encryption key']}"}))
    for one in (client, twin):
        with pytest.raises(mf.InvalidError) as caught:
            one.tags("u1")
        assert "no tags for ••••••" in str(caught.value)
        assert not found_in(str(caught.value), SECRETS)
