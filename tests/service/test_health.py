"""Whoever watches over the service learns whether it runs and whether it can work, and nothing else."""

import pytest
import requests

from tests.conftest import serving_tests


@pytest.mark.parametrize(("path", "status"), [("/healthz", "ok"), ("/readyz", "ready")])
@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.7:8080", "evil.example"])
def test_it_is_well_under_whatever_name(service, path, status, host):
    answer = requests.get(service.auth_url + path, headers={"Host": host}, timeout=20)
    assert (answer.status_code, answer.json()) == (200, {"status": status})


def test_other_addresses_are_not_open_to_other_names(service):
    for path in ("/healthz/", "/healthz/x", "/", "/dashboard"):
        answer = requests.get(service.auth_url + path, headers={"Host": "evil.example"}, timeout=20)
        assert answer.status_code == 421


def test_without_its_database_it_runs_but_is_not_ready(backend, refused):
    if backend.name == "sqlite":
        pytest.skip("a file that is open does not go away")
    with serving_tests(backend.new_database()) as local:
        assert requests.get(local.auth_url + "/readyz", timeout=20).status_code == 200
        backend.drop_database(local._deployment.store._engine)
        answer = requests.get(local.auth_url + "/readyz", timeout=20)
        refused(answer, 503, "database_unavailable")
        assert requests.get(local.auth_url + "/healthz", timeout=20).status_code == 200
