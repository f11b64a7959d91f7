"""Whoever watches over the service learns whether it runs and whether it can work, and nothing else."""

import pytest
import requests


@pytest.mark.parametrize(("path", "status"), [("/healthz", "ok"), ("/readyz", "ready")])
@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.7:8080", "evil.example"])
def test_it_is_well_under_whatever_name(service, path, status, host):
    answer = requests.get(service.auth_url + path, headers={"Host": host}, timeout=20)
    assert (answer.status_code, answer.json()) == (200, {"status": status})


def test_other_addresses_are_not_open_to_other_names(service):
    for path in ("/healthz/", "/healthz/x", "/", "/dashboard"):
        answer = requests.get(service.auth_url + path, headers={"Host": "evil.example"}, timeout=20)
        assert answer.status_code == 421
