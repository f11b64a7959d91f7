"""`memframe login` tries a key before it keeps it, and shows neither."""

import keyring
import pytest
from click.testing import CliRunner

import memframe as mf
from memframe.cli import main
from tests.test_settings import MemoryKeyring


@pytest.fixture
def backend():
    before = keyring.get_keyring()
    keyring.set_keyring(MemoryKeyring())
    yield keyring.get_keyring()
    keyring.set_keyring(before)


def log_in(*options, typed):
    return CliRunner().invoke(main, ["login", *options], input="".join(f"{line}\n" for line in typed))


def test_a_good_key_is_kept_and_found_again(service, backend):
    address = [
        "--base-url",
        service.base_url,
        "--auth-url",
        service.auth_url,
        "--client-id",
        service.client_id,
    ]
    done = log_in(*address, typed=[service.api_key, service.client_secret])
    assert done.exit_code == 0, done.output
    assert "kept in the keyring" in done.output
    assert service.api_key not in done.output
    assert mf.connect().access_requests() is not None
    assert backend.get_password("memframe", "client_secret") == service.client_secret


def test_the_address_of_the_environment_is_not_asked_for(service, backend, monkeypatch):
    monkeypatch.setenv("MEMFRAME_BASE_URL", service.base_url)
    done = log_in(typed=[service.api_key])
    assert done.exit_code == 0, done.output
    assert "Address" not in done.output
    assert backend.get_password("memframe", "base_url") == service.base_url


def test_an_address_without_the_path_of_the_api_is_kept_with_it(service, backend):
    done = log_in("--base-url", service.base_url.removesuffix("/api/v1"), typed=[service.api_key])
    assert done.exit_code == 0, done.output
    assert f"Signed in at {service.base_url}" in done.output
    assert backend.get_password("memframe", "base_url") == service.base_url
    assert mf.connect().access_requests() is not None


def test_a_refused_key_is_not_kept(service, backend):
    done = log_in("--base-url", service.base_url, typed=["mfk_wrong_canary"])
    assert done.exit_code == 5
    assert "401" in done.output
    assert "canary" not in done.output
    assert backend.get_password("memframe", "api_key") is None
