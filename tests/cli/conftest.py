"""What commands need: settings of the running service, a folder for files, and a runner."""

import os
import sys

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


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for files; journals and the data key are in it, too."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def on_request(call, access):
    """Calls a command on the user's memories."""
    return lambda *arguments, **given: call(*arguments, "--request", access.request_id, **given)


@pytest.fixture
def latin_folder(folder, monkeypatch):
    """A folder whose name is in Latin-1, as old disks have them; commands run in it."""
    if sys.platform != "linux":
        pytest.skip("names of files are UTF-8 here")
    path = folder / os.fsdecode(b"M\xfcnchen")
    path.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(path / "state"))
    monkeypatch.chdir(path)
    return path
