"""What commands need: settings of the running service, and a runner."""

import pytest
from click.testing import CliRunner

from memframe.cli import main


@pytest.fixture
def settings(service, monkeypatch):
    for name in ("base_url", "auth_url", "api_key", "client_id", "client_secret", "redirect_uri"):
        monkeypatch.setenv(f"MEMFRAME_{name.upper()}", getattr(service, name))


@pytest.fixture
def call(settings):
    """Calls ``memframe`` with arguments of any kind."""

    def call(*arguments, **options):
        return CliRunner().invoke(main, [str(argument) for argument in arguments], **options)

    return call
