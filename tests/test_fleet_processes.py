"""A fleet in processes of this machine: the same results, and no key where another program could read it."""

import json
import subprocess
import sys
import textwrap

import pandas as pd
import pytest

import memframe as mf
from memframe.errors import ConfigError
from tests.cli.conftest import invoke
from tests.own_checks import die, find_apart
from tests.test_fleet_audit import nightly

__all__ = ["nightly"]

APART = {"scheduler": "processes", "workers": 2}


def test_processes_find_what_threads_find(nightly, tmp_path):
    nightly.write(1, content=["The wifi password is Tr0ub4dor&3x."])
    apart = nightly.audit(**APART)
    assert nightly.audit().n_before == 3
    nightly.path = tmp_path / "threads"
    pd.testing.assert_frame_equal(apart.findings, nightly.audit().findings)
    loaded = mf.load_fleet(nightly._client, progress=False, scheduler="processes", workers=1)
    expected = mf.load_fleet(nightly._client, progress=False)
    pd.testing.assert_frame_equal(loaded.memories, expected.memories)


def test_no_key_is_in_the_arguments_the_environment_or_a_file(nightly, tmp_path, monkeypatch):
    monkeypatch.setenv("MEMFRAME_API_KEY", nightly.local.api_key)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    nightly.write(0, content=[f"Dump {tmp_path / 'seen.json'}"])
    folder = nightly.audit(checks=["secret", find_apart], archives=False, scheduler="processes", workers=1)
    assert folder.outcomes.error.dropna()[folder.outcomes.status == "failed"].empty
    seen = (tmp_path / "seen.json").read_text()
    keys = [access.credentials.encryption_key.reveal() for access in nightly._accesses]
    for secret in (nightly.local.api_key, *keys):
        assert secret not in seen
        assert not any(secret.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert [*(tmp_path / "tmp").iterdir()] == []


def test_a_process_that_dies_costs_its_user_alone(nightly):
    nightly.write(1, content=["Farewell."])
    folder = nightly.audit(checks=["secret", die], scheduler="processes", workers=1)
    by_user = folder.outcomes.set_index("user_id")
    assert by_user.status[nightly.user_ids].tolist() == ["done", "failed", "done"]
    assert "died (exit code 5)" in by_user.error[nightly.user_ids[1]]


def test_what_cannot_be_sent_to_a_process_is_refused(nightly):
    def local(memories: pd.DataFrame) -> pd.DataFrame:
        return memories.head(0)[["id"]]

    with pytest.raises(ConfigError, match="put it into a module"):
        nightly.audit(checks=["secret", local], **APART)


def test_a_check_of_a_script_is_refused_by_name_and_the_script_is_not_run_again(nightly, tmp_path):
    script = tmp_path / "nightly.py"
    script.write_text(
        textwrap.dedent(f"""
        import memframe as mf
        print("started")
        def own(memories): return memories.head(0)[['id']]
        client = mf.connect({nightly.local.base_url!r}, api_key={nightly.local.api_key!r})
        how = {{"scheduler": "processes", "workers": 1}}
        try:
            mf.audit_fleet(client, {str(tmp_path / "fleet")!r}, checks=["secret", own], **how)
        except mf.ConfigError as error:
            print(error)
        folder = mf.audit_fleet(client, {str(tmp_path / "fleet")!r}, checks=["secret"], **how)
        print(folder.outcomes.status.tolist())
        """)
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout.count("started") == 1
    assert "another process cannot read a check of your own" in done.stdout
    assert done.stdout.count("'done'") == 3


def test_the_command_uses_processes(nightly, tmp_path, monkeypatch):
    monkeypatch.setenv("MEMFRAME_BASE_URL", nightly.local.base_url)
    monkeypatch.setenv("MEMFRAME_API_KEY", nightly.local.api_key)
    path = tmp_path / "fleet"
    done = invoke("fleet", "audit", path, "--processes", "--workers", "1", "--check", "secret", "--json")
    assert json.loads(done.stdout)["done"] == 3
    refused = invoke("fleet", "audit", path, "--processes", "--dask", "tcp://127.0.0.1:1", code=2)
    assert "leave them out with --dask" in refused.stderr
