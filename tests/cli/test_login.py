"""`memframe login` verifies a key before it keeps it, and never shows one."""

import keyring
import pytest

import memframe as mf
from tests.cli.conftest import invoke
from tests.keyrings import MemoryKeyring


@pytest.fixture
def backend():
    before = keyring.get_keyring()
    keyring.set_keyring(MemoryKeyring())
    yield keyring.get_keyring()
    keyring.set_keyring(before)


def log_in(*options, typed, code=0):
    return invoke("login", *options, input="".join(f"{line}\n" for line in typed), code=code)


def test_a_good_key_is_kept_and_found_again(service, backend, monkeypatch):
    monkeypatch.setenv("MEMFRAME_BASE_URL", service.base_url.removesuffix("/api/v1"))
    application = ("--auth-url", service.auth_url, "--client-id", service.client_id)
    done = log_in(*application, typed=[service.api_key, service.client_secret])
    assert f"Signed in at {service.base_url}; the key is kept in the keyring." in done.output
    assert "Address" not in done.output  # which the environment has
    assert service.api_key not in done.output
    monkeypatch.delenv("MEMFRAME_BASE_URL")
    assert mf.connect().access_requests() is not None
    kept = {"base_url": service.base_url, "client_secret": service.client_secret}
    assert {name: backend.get_password("memframe", name) for name in kept} == kept


def test_a_refused_key_is_not_kept(service, backend):
    done = log_in("--base-url", service.base_url, typed=["mfk_wrong_canary"], code=5)
    assert "401" in done.output
    assert "canary" not in done.output
    assert backend.get_password("memframe", "api_key") is None


def test_logging_out_removes_all_that_was_kept(service, backend):
    log_in("--base-url", service.base_url, typed=[service.api_key])
    shown = [invoke("logout") for _ in range(2)]
    assert [done.output for done in shown] == [
        "Removed from the keyring: api_key, base_url.\n",
        "The keyring held nothing.\n",
    ]
    assert backend.entries == {}
