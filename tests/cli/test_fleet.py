"""`memframe fleet`, as a script calls it."""

import json

import pytest
from click.testing import CliRunner

import memframe as mf
from memframe import wire
from memframe.cli import main
from tests.faults import FaultProxy, answered
from tests.test_fleet import N_ROWS, village

__all__ = ["village"]


@pytest.fixture
def settings(village, monkeypatch):
    monkeypatch.setenv("MEMFRAME_BASE_URL", village.base_url)
    monkeypatch.setenv("MEMFRAME_API_KEY", village.api_key)


def call(*arguments):
    return CliRunner().invoke(main, ["fleet", *map(str, arguments)])


def test_all_users_are_exported_and_told(village, settings, tmp_path):
    done = call("export", tmp_path / "fleet", "--json")
    told = {"path": str(tmp_path / "fleet"), "done": 3, "failed": 0, "revoked": 1, "n_rows": 3 * N_ROWS}
    assert (done.exit_code, json.loads(done.stdout)) == (0, told)
    again = call("export", tmp_path / "fleet", "--workers", "2")
    assert "3 users done, 0 failed, 1 revoked, 36 memories; in " in again.stdout
    assert mf.load_archive(next((tmp_path / "fleet" / "memories").iterdir()), columns=["id"]).shape == (
        N_ROWS,
        1,
    )


def test_plaintext_is_asked_for_by_name(village, settings, tmp_path):
    assert call("export", tmp_path / "fleet", "--plaintext").exit_code == 0
    archives = (tmp_path / "fleet" / "memories").iterdir()
    assert sum(len(mf.load_archive(archive)) for archive in archives) == 3 * N_ROWS


def test_a_user_who_failed_ends_it_with_1(village, settings, tmp_path, monkeypatch):
    with FaultProxy(village.base_url) as proxy:
        monkeypatch.setenv("MEMFRAME_BASE_URL", proxy.base_url)
        proxy.script(wire.GET_CREDENTIALS, answered(500, {"title": "out of\x1b[2J order"}))
        done = call("export", tmp_path / "fleet", "--workers", "1")
    assert done.exit_code == 1
    assert "2 users done, 1 failed, 1 revoked" in done.stdout
    assert "out of [2J order" in done.stderr


def test_a_scheduler_that_is_not_there_is_named(settings, tmp_path):
    done = call("export", tmp_path / "fleet", "--dask", "nonsense://x")
    assert done.exit_code == 1
    assert "there is no Dask scheduler at nonsense://x" in done.output
