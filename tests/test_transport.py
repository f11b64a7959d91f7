"""How requests travel, whatever the environment says."""

import pytest

from memframe.transport import Transport

DEAD = "http://127.0.0.1:9"


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_no_proxy_stands_before_this_machine(service, monkeypatch, variable):
    monkeypatch.setenv(variable, DEAD)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    answer = Transport().exchange("GET", f"{service.auth_url}/schema/openapi.json")
    assert answer.status == 200
