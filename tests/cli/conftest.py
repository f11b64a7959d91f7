"""What commands need: settings of the running service, and a runner."""

import pytest
from click.testing import CliRunner

from memframe.cli import main


@pytest.fixture
def settings(service, monkeypatch):
    for name in ("base_url", "auth_url", "api_key", "client_id", "client_secret", "redirect_uri"):
        monkeypatch.setenv(f"MEMFRAME_{name.upper()}", getattr(service, name))


def invoke(*arguments, code=0, **options):
    """Call `memframe` with arguments of any kind; it has to end with the exit code."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments], **options)
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def call(settings):
    return invoke
