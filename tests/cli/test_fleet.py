"""`memframe fleet`, as a script calls it."""

import json
import signal
import threading

import pytest

import memframe as mf
from memframe import wire
from memframe.audit.findings import SEVERITIES
from memframe.fleet import FleetFolder
from tests.cli.conftest import invoke
from tests.faults import answered, changed, refused
from tests.test_fleet import N_ROWS


@pytest.fixture
def proxy(proxy, village, monkeypatch):
    monkeypatch.setenv("MEMFRAME_BASE_URL", proxy.base_url)
    monkeypatch.setenv("MEMFRAME_API_KEY", village.api_key)
    return proxy


def call(*arguments, **given):
    return invoke("fleet", *arguments, **given)


def test_all_users_are_exported_sealed_unless_plaintext_is_asked_for(proxy, tmp_path):
    path = tmp_path / "fleet"
    done = call("export", path, "--json")
    counts = {"done": 3, "failed": 0, "revoked": 1, "n_rows": 3 * N_ROWS, "n_before": 0}
    assert json.loads(done.stdout) == {"path": str(path), **counts}
    again = call("export", path, "--workers", "2")
    assert "3 users done, 0 failed, 1 revoked, 36 memories; in " in again.stdout
    assert again.stdout.endswith("readable only by you; done before: 3\n")
    archive = next((path / "memories").iterdir())
    assert mf.load_archive(archive, columns=["id"]).shape == (N_ROWS, 1)
    with pytest.raises(mf.SealError):
        mf.load_archive(archive)
    call("export", tmp_path / "plain", "--plaintext")
    archives = (tmp_path / "plain" / "memories").iterdir()
    assert sum(len(mf.load_archive(archive)) for archive in archives) == 3 * N_ROWS


def test_an_audit_counts_its_findings_and_may_end_with_6(proxy, tmp_path):
    done = call("audit", tmp_path / "fleet", "--json")
    findings = FleetFolder(tmp_path / "fleet").findings
    assert json.loads(done.stdout)["n_findings"] == len(findings)
    worst = next(severity for severity in reversed(SEVERITIES) if severity in {*findings.severity})
    call("audit", tmp_path / "fleet", "--fail-on", worst, code=6)


def test_another_night_ends_with_what_it_knows_to_be_there(proxy, tmp_path):
    path = tmp_path / "fleet"
    call("audit", path, "--no-archives")
    done = call("audit", path, "--no-archives", "--fail-on", "low", code=6)
    assert "3 users unchanged; in " in done.stdout
    compared = call("compare", path, "--fail-on", "info")
    assert compared.stdout.startswith("Findings: 0 new, 0 gone, ")
    everything = call("compare", path, "--since", "2020-01-01", "--json", "--fail-on", "low", code=6)
    values = json.loads(everything.stdout)
    assert values["counts"]["gone"] == 0
    assert {row["user_id"] for row in values["new"]} == {*FleetFolder(path).findings.user_id}
    assert sum(row["n"] for row in values["new"]) == len(FleetFolder(path).findings)

    proxy.always(wire.GET_CREDENTIALS, refused)  # nobody is reached: the findings of before are no news
    failed = call("audit", path, "--no-archives", "--fail-on", "low", "--json", code=1)
    assert json.loads(failed.stdout)["n_findings"] == 0
    assert len(FleetFolder(path).findings)
    assert "give a time" in call("compare", path, "--since", "yesterday", code=1).stderr
    assert "contains no audit" in call("compare", tmp_path, code=1).stderr


def test_a_path_that_is_not_utf_8_is_one_like_any_other(proxy, latin_folder):
    for command in ("export", "audit"):
        for n_before in (0, 3):
            done = call(command, latin_folder / command, "--json")
            assert json.loads(done.stdout)["n_before"] == n_before
    call("forget", latin_folder / "audit")
    assert len(FleetFolder(latin_folder / "audit").findings)


def test_what_goes_wrong_is_named(village, proxy, tmp_path):
    def interrupted(request, forward):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return forward(request)

    path = tmp_path / "fleet"
    proxy.script(wire.GET_CREDENTIALS, interrupted)
    done = call("export", path, "--workers", "1", code=1)
    assert "stopped; 0 users are done in " in done.stderr
    assert "the same command again for the others" in done.stderr

    proxy.script(wire.GET_CREDENTIALS, answered(422, {"title": "out of\x1b[2J order"}))
    done = call("export", path, "--workers", "1", code=1)
    assert "2 users done, 1 failed, 1 revoked" in done.stdout
    assert "out of\\x1b[2J order" in done.stderr
    assert done.stderr.endswith("Run the command again to process the users who are missing.\n")

    gone = village.people[0].user_id

    def revoke(document):
        for request in document["items"]:
            request["status"] = "revoked" if request["user_id"] == gone else request["status"]

    assert "delete" not in call("export", path).stderr
    assert call("forget", path).stdout.endswith(
        "holds nothing of users who revoked their approval or were erased\n"
    )
    kept = path / "memories" / f"user_id={gone}"
    assert kept.is_dir()
    proxy.always(wire.LIST_REQUESTS, changed(revoke))
    done = call("forget", path, "--json")
    assert json.loads(done.stdout) == {"path": str(path), "forgotten": [gone]}
    assert not kept.exists()
    kept.mkdir()
    done = call("export", path)
    assert "2 users done, 0 failed, 2 revoked" in done.stdout
    assert done.stderr == f"1 user revoked or erased: findings and memories deleted from {path}\n"
    assert not kept.exists()
    assert "not a folder of a fleet" in call("forget", path.parent, code=1).output

    done = call("export", path, "--dask", "nonsense://x", code=1)
    assert "there is no Dask scheduler at nonsense://x" in done.output
