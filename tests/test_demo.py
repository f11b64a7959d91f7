"""The guided tour, as a stranger's machine runs it: whatever is set there, and nothing left behind."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from memframe.archive import export_memories, load_archive
from memframe.audit import find_secrets
from memframe.cli import main
from memframe.demo import SampleService, compare
from memframe.frames import MEMORY_KINDS, FrameBuilder
from memframe.plan.change import FIELDS
from memframe.sample import load_sample
from tests.canaries import stands

FILES = {"memories.parquet", "timeline.png", "tags.png", "audit.html", "audit.json"}
SECONDS = 15
"""Of work; how long one waits for it is up to the machine."""

COMMAND = [sys.executable, "-m", "memframe", "demo"]
SCRIPT = Path(sys.executable).with_name("memframe")
"""With ``-m`` Python itself ends by the signal if Ctrl-C has passed through an exec of text, as in dataclasses."""

DEAD = "http://127.0.0.1:9"
POISON = {
    **dict.fromkeys(
        ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"), DEAD
    ),
    **dict.fromkeys(("MEMFRAME_BASE_URL", "MEMFRAME_AUTH_URL"), "https://elsewhere.example.org"),
    **dict.fromkeys(("MEMFRAME_API_KEY", "MEMFRAME_CLIENT_ID", "MEMFRAME_CLIENT_SECRET"), "another"),
    "MEMFRAME_REDIRECT_URI": "no address",
    "REQUESTS_CA_BUNDLE": "/no/such/file",
    "SSL_CERT_FILE": "/no/such/file",
    "PYTHON_KEYRING_BACKEND": "no.such.Keyring",
    "MPLBACKEND": "no such backend",
}


@pytest.fixture
def machine(tmp_path):
    """Empty folders for home, temporary files and work, and an environment that leads astray."""
    for name in ("home", "tmp", "work"):
        (tmp_path / name).mkdir()
    (tmp_path / "home" / ".netrc").write_text("machine 127.0.0.1 login somebody password something\n")
    places = {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")}
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH")} | places
    return {"cwd": tmp_path / "work", "env": environment | POISON}


def left_on(machine):
    root = machine["cwd"].parent
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()} - {"home/.netrc"}


def secrets_of(memories):
    found = find_secrets(memories)
    contents = memories.set_index("id").content
    return [contents[i][start:end] for i, start, end in zip(found.id, found.start, found.end, strict=True)]


@pytest.fixture
def toured(machine, monkeypatch):
    """What a tour has printed on a machine with an earlier one, in a terminal of 60 columns that knows Latin alone."""
    kept = {name: os.environ.get(name, "") for name in ("MPLCONFIGDIR", "XDG_CACHE_HOME")}  # which it sets
    for name, value in (machine["env"] | kept | {"COLUMNS": "60"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(machine["cwd"])
    monkeypatch.setattr(tempfile, "tempdir", machine["env"]["TMPDIR"])
    folder = machine["cwd"] / "memframe-demo"
    folder.mkdir()
    export_memories(FrameBuilder(MEMORY_KINDS).frame(), folder / "memories.parquet")
    (folder / "tags.png").touch()
    before = time.process_time()
    done = CliRunner(charset="latin-1").invoke(main, ["demo"])
    assert (done.exit_code, done.stderr) == (0, "")
    assert time.process_time() - before < SECONDS
    return done.stdout


def test_it_shows_the_whole_way_and_leaves_five_files(machine, toured):
    assert left_on(machine) == {f"work/memframe-demo/{name}" for name in FILES}
    assert not any((machine["cwd"].parent / "tmp").iterdir())

    folder = machine["cwd"] / "memframe-demo"
    told, page = " ".join(toured.split()), (folder / "audit.html").read_text()
    for picture in ("timeline.png", "tags.png"):
        assert (folder / picture).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    loaded = load_archive(folder / "memories.parquet")
    assert sorted(loaded.content) == sorted(memory.content for memory in load_sample())

    for number in range(1, 13):
        assert f"\n{number}. " in toured
    same = "389 memories, every text, tag and score as before; all with their original ids and dates of creation; "
    for words in (
        r"389 memories; all could be decrypted",
        r"\d+ patches, \d+ deletes",
        r"\d+ more memories look like junk and are left for review",
        r"A second audit finds no secrets, and nothing more to",
        r"An undo within 30 days brings deleted memories back with their ids and dates\.",
        same + r"\d+ that were changed twice have a new updated_at",
        re.escape(str(folder)),
    ):
        assert re.search(words, told), words
    proposed = re.search(r"proposed +delete (\d+)", told)[1]
    assert f"Proposed, each memory counted once: delete {proposed}," in page
    for n in re.findall(r"(?m)(\d+) memories \(\d+ %\)", told):
        assert f"{n} memories (" in page
    secrets = secrets_of(loaded)
    files = "".join((folder / name).read_text() for name in ("audit.html", "audit.json"))
    assert len(secrets) == 5
    assert [secret for secret in secrets if stands(secret, toured + files)] == []
    assert "\x1b" not in toured

    wide = [line for line in toured.splitlines() if len(line) >= 60]
    assert all("=" in line or line.startswith("   /") for line in wide), "only code and paths, to be copied"
    assert re.search(r"\n   2020-\d\d-\d\d  chat  .*\?", toured), "cut short, with a sign for the ellipsis"
    assert "????" in toured


def test_what_an_undo_did_not_bring_back_is_told():
    before = pd.DataFrame({"id": ["a", "b", "c"], "tags": [(), (), ()]}).reindex(columns=["id", *FIELDS])
    before = before.assign(tags=[("x", "y")] * 3, created_at=pd.Timestamp("2024-05-18", tz="UTC"))
    before["updated_at"] = before.created_at
    assert compare(before, before[::-1]).endswith("all with their original ids and dates of creation.")
    now = pd.Timestamp("2030-01-01", tz="UTC")
    anew = before.assign(id=["a", "b", "d"], created_at=[*before.created_at[:2], now], updated_at=now)
    assert compare(before, anew) == (
        "3 memories, every text, tag and score as before; 1 with a new id and today's date; 2 that were changed "
        "twice have a new updated_at."
    )
    assert "NOT all as before" in compare(before, before.assign(content="other"))
    assert "1 with a different date of creation" in compare(before, before.assign(created_at=anew.created_at))


def test_ctrl_c_leaves_nothing(machine):
    process = subprocess.Popen(
        [SCRIPT, "demo"],
        cwd=machine["cwd"],
        env=machine["env"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stdout:
        if line.startswith("3."):
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors.strip()) == (1, "Aborted!")
    assert left_on(machine) == set()
    assert not any(machine["cwd"].iterdir())
    assert not any((machine["cwd"].parent / "tmp").iterdir())


@pytest.mark.parametrize("name", sorted(FILES))
def test_files_of_others_are_not_replaced(tmp_path, name):
    (tmp_path / name).write_text("mine")
    answer = CliRunner().invoke(main, ["demo", "--folder", str(tmp_path)])
    assert answer.exit_code == 1
    assert f"{name} is not from a tour: choose another folder" in answer.stderr
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


@pytest.mark.parametrize("folder", ["file", "file/below"])
def test_a_folder_that_cannot_be_made_is_named_before_the_tour(tmp_path, folder):
    (tmp_path / "file").touch()
    answer = CliRunner().invoke(main, ["demo", "--folder", str(tmp_path / folder)])
    assert answer.exit_code == 1
    assert f"the folder {tmp_path / folder} cannot be written to" in answer.stderr
    assert answer.stdout == ""


def test_a_sample_service_stops_once_and_says_so():
    sample = SampleService()
    assert repr(sample) == "<SampleService of ilka@example.org, running>"
    sample.close()
    sample.close()
    assert repr(sample) == "<SampleService of ilka@example.org, stopped>"
