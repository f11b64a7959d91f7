"""Nothing of the user's is replaced: what writes where a person says replaces a file of its own kind, and no other."""

import os
from pathlib import Path

import pandas as pd
import pytest

import memframe as mf
from memframe.errors import FrameError, MemframeError
from memframe.files import FIRST_BYTES, check_replaceable, write_own_file
from tests.cli.conftest import invoke

FORMER_REPORT = (
    b'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
    b'content="default-src &#39;none&#39;; style-src &#39;sha256-AAAA=&#39;; base-uri &#39;none&#39;; form-action '
    b'&#39;none&#39;"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" '
    b'content="no-referrer"><meta name="robots" content="noindex"><title>Audit of 389 memories</title>'
)
STRANGE = {
    "thesis.txt": b"ten years",
    "clean.py": b"print(1)\n",
    "memories.parquet": b"PAR1\0\0",
    "page.html": b"<!DOCTYPE html>\n<html><head><title>Audit of a bank</title>",
    "settings.json": b'{"format": "other/1"}',
    "binary": bytes(range(256)),
}


@pytest.fixture(scope="module")
def audit():
    return mf.audit_memories(pd.DataFrame({"id": ["m1"], "content": ["PIN 4711"]}))


@pytest.mark.parametrize("write", ["to_html", "to_json"])
@pytest.mark.parametrize("name", STRANGE)
def test_a_file_of_something_else_is_refused_and_stays(audit, tmp_path, write, name):
    path = tmp_path / name
    path.write_bytes(STRANGE[name])
    with pytest.raises(FrameError, match="is not replaced: choose another path, or delete it"):
        getattr(audit, write)(path)
    assert path.read_bytes() == STRANGE[name]
    assert os.listdir(tmp_path) == [name]  # noqa: PTH208 - hidden files too


def test_files_of_the_same_kind_and_empty_ones_are_replaced(audit, tmp_path):
    for write, former in (("to_html", FORMER_REPORT), ("to_json", b'{"format":"memframe-audit/1"}')):
        path = tmp_path / write
        for before in (former, b"", None):  # None: what was just written
            if before is not None:
                path.write_bytes(before)
            getattr(audit, write)(path)
            assert path.read_bytes() != before
    with pytest.raises(FrameError, match="is not an audit"):
        audit.to_json(tmp_path / "to_html")
    with pytest.raises(FrameError, match="is not a report"):
        audit.to_html(tmp_path / "to_json")


@pytest.mark.parametrize("force", [False, True])
def test_what_is_no_file_is_never_replaced(tmp_path, force):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "link", Path(os.devnull)):
        for kind in FIRST_BYTES:
            with pytest.raises(FrameError, match="it is not a file"):
                check_replaceable(path, kind, error=FrameError, force=force)


@pytest.mark.parametrize("path", [None, 5, b"x", "a\0b", "", "missing/folder/a.html"])
def test_what_is_no_path_is_refused_by_name(audit, tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    for write in (audit.to_html, audit.to_json):
        with pytest.raises(MemframeError, match=r"path is|cannot be written"):
            write(path)
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_is_forced_replaces(tmp_path):
    path = tmp_path / "thesis.txt"
    path.write_text("ten years")
    write_own_file(path, b"new", "report", error=FrameError, force=True)
    assert path.read_bytes() == b"new"


# The command line


@pytest.fixture
def archive(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memories.json").write_text(
        '{"results": [{"id": "7", "memory": "The wifi password is Tr0ub4dor&3x."}]}'
    )
    return "--file", "memories.json"


def test_commands_refuse_before_they_audit_and_replace_with_force(archive, tmp_path, monkeypatch):
    written = {option: tmp_path / f"thesis{option}.txt" for option in ("--html", "--out", "--sarif")}
    for path in written.values():
        path.write_text("ten years")
    with monkeypatch.context() as patched:
        patched.setattr("memframe.cli.read.read_memories", lambda *_, **__: 1 / 0)  # not reached
        for option, path in written.items():
            refused = invoke("audit", option, path, *archive, code=1)
            assert "is not replaced: choose another path, or give --force" in refused.stderr
            assert path.read_text() == "ten years"
    everything = [part for pair in written.items() for part in pair]
    invoke("audit", *everything, *archive, "--force")
    assert not any("ten years" in path.read_text() for path in written.values())
    invoke("audit", *everything, *archive)  # now they are its own


def test_the_memories_that_are_audited_are_not_replaced_by_the_audit(archive, tmp_path):
    before = (tmp_path / "memories.json").read_bytes()
    for option in ("--out", "--html", "--sarif"):
        invoke("audit", *archive, option, "memories.json", code=1)
    assert (tmp_path / "memories.json").read_bytes() == before


def test_a_terminal_names_the_worst_findings_and_no_secret(archive):
    printed = invoke("audit", *archive).stdout
    assert "To decide first:\nhigh    Secrets, password: Tr… (12 characters)\n        " in printed
    assert "The wifi password is Tr… (12 characters)." in printed
    assert "Tr0ub" not in printed
