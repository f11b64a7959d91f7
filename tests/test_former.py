"""Files of every earlier version open with this one: see ``former/README.md``."""

import json
import shutil
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path

import pandas as pd
import pytest

import memframe as mf
from memframe.fields import MEMORY_FIELDS
from memframe.frames import MEMORY_KINDS, FrameBuilder
from memframe.keystore import KEY_FILE as DATA_KEY
from memframe.keystore import state_folder
from memframe.secret import Secret
from memframe.service.deployment import DATABASE_FILE
from memframe.service.keys import MASTER_KEY_FILE, MasterKey

FOLDERS = sorted(path.parent for path in Path(__file__).parent.glob("former/*/known.json"))
ARCHIVES = (
    "memories.parquet", "memories", "memories.jsonl", "memories.json", "memories.csv", "notes.md",
    "sealed.parquet", "sealed", "frame.parquet", "frame.jsonl", "frame.csv",
)  # fmt: skip
REFRESHED = [name for name in ARCHIVES if not name.startswith(("notes", "frame"))]


class Former:
    """The files of one version, copied, as refreshing and undoing change them."""

    def __init__(self, folder, scratch):
        self.path = shutil.copytree(folder, scratch / "former")
        self.known = json.loads((folder / "known.json").read_text())
        state_folder().mkdir(parents=True, mode=0o700)
        (state_folder() / DATA_KEY).write_text(self.known["data_key"])
        (state_folder() / DATA_KEY).chmod(0o600)

    def memories(self):
        builder, rows = FrameBuilder(MEMORY_KINDS), self.known["memories"]
        builder.add({name: [row.get(name) for row in rows] for name in MEMORY_KINDS})
        return builder.frame()

    def key_of(self, name):
        return self.known["encryption_key"] if name.startswith("sealed") else None

    @contextmanager
    def access(self):
        """Open the access to the memories in the database of the service, as it was when the files were made."""
        data = self.path / "data"
        data.mkdir(mode=0o700)
        MasterKey(Secret(self.known["master_key"])).save(data / MASTER_KEY_FILE)
        with closing(sqlite3.connect(data / DATABASE_FILE)) as database:
            database.executescript((self.path / "service.sql").read_text())
        with mf.service.run_local(data) as local, mf.connect(local.base_url, api_key=local.api_key) as client:
            request = client.create_access_request(local.memory_key(self.known["user_id"]), "a test")
            local.decide(request.id, "approved")
            yield mf.open_access(client, request.id)


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def former(request, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Former(request.param, tmp_path)


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_opens(former, name):
    loaded = mf.load_archive(former.path / name, key=former.key_of(name))
    extra = {"note": "mine"} if name.startswith("frame") else {}
    pd.testing.assert_frame_equal(
        loaded, former.memories().assign(**extra).astype(dict.fromkeys(extra, "str"))
    )
    later = [field.name for field in MEMORY_FIELDS if field.since > 1]
    assert loaded[later].isna().all().all()


def test_archives_are_refreshed_and_replaced(former):
    deleted, *_ = former.known["memories"]
    with former.access() as access:
        stored = mf.load_memories(access)
        for name in REFRESHED:
            path, key = former.path / name, access if former.key_of(name) else None
            assert mf.refresh_archive(access, path) == mf.archive.Changes(gone=(deleted["id"],)), name
            pd.testing.assert_frame_equal(mf.load_archive(path, key=key), stored, check_like=True)
            assert mf.export_memories(access, path, sealed=key is not None) == len(stored)
            pd.testing.assert_frame_equal(mf.load_archive(path, key=key), stored)


def test_the_database_of_the_service_a_saved_plan_and_journals_are_used(former):
    ids = {row["content"]: row["id"] for row in former.known["memories"]}
    with former.access() as access:
        stored = mf.load_memories(access)
        pd.testing.assert_frame_equal(stored, former.memories()[1:].reset_index(drop=True))
        mf.apply_plan(access, mf.Plan.load(former.path / "saved.plan")).raise_for_failures()
        mf.resume_run(access, former.path / "broken_off.journal").raise_for_failures()
        mf.apply_plan(access, mf.plan_undo(access, former.path / "done.journal")).raise_for_failures()
        titles = mf.load_memories(access).set_index("content")["title"]
    assert titles[next(text for text in ids if "cat" in text)] == "Cat"
    assert titles[next(text for text in ids if "Sundays" in text)] == "Sundays"
    assert set(titles.index) == set(ids)


def test_a_saved_audit_is_compared(former):
    audit = mf.audit_memories(former.memories())
    assert audit.compare(former.path / "audit.json").new.empty
