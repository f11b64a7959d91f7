"""Memories from elsewhere keep their times, and come whole or not at all."""

import json
import subprocess
import sys
import warnings
from contextlib import closing

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

import memframe as mf
from memframe.cli import main
from memframe.errors import InvalidError
from memframe.sample import load_sample, load_sample_tags
from memframe.service import importing, run_local
from tests.conftest import CHEAP_HASHER
from tests.service.conftest import Caller, Grant

TEA = {"content": "Likes tea", "created_at": "2024-05-01T10:00:00+02:00"}


def test_a_memory_needs_no_more_than_its_content_and_times_are_kept_in_utc(service, grant):
    later = {"updated_at": "2024-06-01T00:00:00Z"}
    records = [TEA, TEA | later, {"content": "Likes trams"}]
    service.import_memories(grant.user_id, records, [{"name": "drinks", **later}])
    first, second, bare = grant.list().json()["memoryBlobs"]
    assert first["created_at"] == first["updated_at"] == "2024-05-01T08:00:00.000000Z"
    assert second["updated_at"] == "2024-06-01T00:00:00.000000Z"
    assert (bare["title"], bare["tags"], bare["importance"]) == (None, [], None)
    assert bare["created_at"] == bare["updated_at"] > "2026"


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (TEA | {"created_at": "2024-05-01T10:00:00"}, r"memory 1 .*timezone.*created_at"),
        (TEA | {"created_at": "yesterday"}, "memory 1 .*created_at"),
        (TEA | {"importance": 7}, "memory 1 .*importance must be a number"),
        (TEA | {"tags": ["a,b"]}, "memory 1 .*comma"),
        ({"title": "no content"}, "memory 1 .*content"),
        ("Likes tea", "memory 1"),
    ],
)
def test_a_record_of_another_form_is_named_and_nothing_is_taken_over(service, grant, wrong, said):
    with pytest.raises(InvalidError, match=said):
        service.import_memories(grant.user_id, [TEA, wrong], [{"name": "drinks"}])
    assert grant.ids() == []
    assert grant.call.get("/tags", user_id=grant.user_id).json()["items"] == []


# Frames


@pytest.fixture
def loaded(service, grant):
    """The frames of a user who has memories with and without everything, and tags."""
    service.import_memories(grant.user_id, [*load_sample()[:5], TEA], load_sample_tags())
    client = mf.connect(service.base_url, api_key=service.api_key)
    with closing(client):
        request = client.create_access_request(service.memory_key(grant.user_id), "a test")
        service.decide(request.id, "approved")
        access = mf.open_access(client, request.id)
        yield mf.load_memories(access, progress=False), mf.load_tags(access)


FORMS = {
    "a frame": lambda frame: frame,
    "records": lambda frame: frame.to_dict("records"),
    "by id": lambda frame: frame.set_index("id"),
    "nullable dtypes": lambda frame: frame.convert_dtypes(),
    "Arrow dtypes": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "fewer bits": lambda frame: frame.astype({"importance": "float32"}) if "importance" in frame else frame,
    "objects with None": lambda frame: frame.astype(object).where(frame.notna(), None),
    "arrays for tags": lambda frame: (
        frame.assign(tags=frame.tags.map(np.array)) if "tags" in frame else frame
    ),
}


@pytest.mark.any_database
def test_frames_and_their_records_are_taken_over(service, loaded, call):
    memories, tags = loaded
    was = memories.sort_values("created_at").to_dict("records")
    for form in FORMS.values():
        other = Grant(service, call)
        service.import_memories(other.user_id, form(memories), form(tags))
        taken = sorted(other.list(limit=1000).json()["memoryBlobs"], key=lambda blob: blob["created_at"])
        for blob, row in zip(taken, was, strict=True):
            for name in ("title", "summary", "source"):
                assert blob[name] == (None if pd.isna(row[name]) else row[name])
            assert blob["tags"] == list(row["tags"])
            importance = None if pd.isna(row["importance"]) else pytest.approx(row["importance"], rel=1e-6)
            assert blob["importance"] == importance
            for name in ("created_at", "updated_at"):
                assert pd.Timestamp(blob[name]) == row[name]
        assert not {blob["id"] for blob in taken} & set(memories.id)
        names = {tag["name"] for tag in other.call.get("/tags", user_id=other.user_id).json()["items"]}
        assert names == set(tags.name)


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m.assign(importance=[0.5, 7]), "the memory in row b .*importance"),
        (lambda m: m.assign(content=["x", None]), "the memory in row b .*missing required field `content`"),
        (lambda m: m.assign(created_at=[None, pd.Timestamp("2024-05-01")]), "the memory in row b .*timezone"),
        (lambda m: m.assign(tags=[(), ("a,b",)]).to_dict("records"), "memory 1 .*comma"),
        (lambda m: m.to_dict(), "a dict is not a list of records: .*to_dict"),
        (lambda m: "memories.parquet", "a str is not a list of records: pass a DataFrame"),
        (lambda m: pl.DataFrame({"content": ["x"]}), r"a polars.DataFrame is not .*\.to_pandas\(\)"),
    ],
)
def test_a_row_of_another_form_is_named_by_its_label(service, grant, change, said):
    frame = pd.DataFrame({"content": ["one", "two"]}, index=["a", "b"])
    with pytest.raises(InvalidError, match=said):
        service.import_memories(grant.user_id, change(frame))
    assert grant.ids() == []


# Files, by the command


@pytest.fixture
def imported(tmp_path):
    """A user of a running service, and a way to run `memframe service` on its data."""
    with run_local(tmp_path / "data", password_hasher=CHEAP_HASHER) as local:

        def run(*arguments):
            given = ["service", *map(str, arguments), "--data", str(tmp_path / "data"), "--json"]
            answer = CliRunner().invoke(main, given)
            return json.loads(answer.output) if answer.exit_code == 0 else answer

        yield Grant(local, Caller(local.base_url, local.api_key)), run


@pytest.fixture
def pasted(tmp_path):
    file = tmp_path / "pasted.txt"
    file.write_text("".join(f"[2024-05-{day:02}] - Likes tea {day}\n" for day in range(1, 8)))
    return file


def test_a_file_is_counted_first_and_then_imported_once_with_its_times(imported, pasted):
    grant, run = imported
    command = ("import", pasted, "--user", grant.email)
    preview = run(*command)
    assert (preview["id"], preview["n_rows"], preview["n_new"], preview["n_known"]) == (None, 7, 7, 0)
    assert preview["read"] == "7 memories read as pasted."
    assert grant.ids() == []
    done = run(*command, "--apply")
    assert (done["n_new"], len(done["id"])) == (7, 36)
    first = grant.list().json()["memoryBlobs"][0]
    assert first["created_at"] == first["updated_at"] == "2024-05-01T00:00:00.000000Z"
    again = run(*command, "--apply")
    assert (again["id"], again["n_new"], again["n_known"]) == (None, 0, 7)
    pasted.write_text(pasted.read_text() + "[2024-05-08] - Likes trams\n[2024-05-08] - Likes trams\n")
    more = run(*command, "--apply")
    assert (more["n_new"], more["n_known"], more["n_repeated"], more["id"] != done["id"]) == (1, 7, 1, True)
    assert len(grant.ids(limit=100)) == 8
    assert [run["n_memories"] for run in run("imports")] == [1, 7]


def test_an_import_that_is_broken_off_goes_on_under_its_id(imported, pasted, monkeypatch):
    grant, run = imported
    monkeypatch.setattr("memframe.service.importing.IMPORT_BATCH", 3)
    begun, commit = [], importing._import_batch

    def stop_at_the_third(*arguments):
        begun.append(arguments)
        if len(begun) == 3:
            raise KeyboardInterrupt
        return commit(*arguments)

    with monkeypatch.context() as breaking:
        breaking.setattr(importing, "_import_batch", stop_at_the_third)
        assert run("import", pasted, "--user", grant.email, "--apply").exit_code == 1
    (broken,) = run("imports")
    assert (broken["finished_at"], broken["n_memories"], len(grant.ids())) == (None, 6, 6)
    done = run("import", pasted, "--user", grant.email, "--apply")
    assert (done["id"], done["n_new"], done["n_known"]) == (broken["id"], 1, 6)
    assert run("imports")[0]["finished_at"]
    assert len(grant.ids()) == 7


def test_an_import_is_undone_but_for_what_was_changed_since(imported, pasted):
    grant, run = imported
    own = grant.create("Likes tea 1")["id"]
    import_id = run("import", pasted, "--user", grant.email, "--apply")["id"]
    changed, gone = grant.ids()[1:3]
    grant.patch(changed, title="Tea")
    grant.delete(gone)
    for wrong in ((), ("--confirm", 6)):
        refused = run("undo-import", import_id[:8], *wrong)
        assert (refused.exit_code, "to continue, give --confirm 7" in refused.stderr) == (1, True)
    undone = run("undo-import", import_id[:8], "--confirm", 7)
    assert {**undone, "id": ""} == {"id": "", "n_deleted": 5, "n_changed": 1, "n_gone": 1}
    assert grant.ids() == [own, changed]
    again = run("import", pasted, "--user", grant.email, "--apply")
    assert (again["n_new"], again["n_known"]) == (6, 1), "what was kept is not doubled"
    unknown = run("undo-import", "x", "--confirm", 1)
    assert (unknown.exit_code, "no import has an id" in unknown.stderr) == (1, True)


KILLED = """
import os, sys
from pathlib import Path
from sqlalchemy import event
from memframe.service import importing
from memframe.service.deployment import open_deployment

importing.IMPORT_BATCH = 2

def undo(n_commits):
    deployment = open_deployment(Path(sys.argv[1]))
    run = importing.list_imports(deployment)[0]

    @event.listens_for(deployment.store.engine, "commit")
    def kill_before_a_commit(connection):
        nonlocal n_commits
        if connection.get_execution_options().get("writes"):
            if not n_commits:
                os._exit(9)
            n_commits -= 1

    importing.undo_import(deployment, run)

for line in sys.stdin:  # a process for each undo, of one that has imported all
    child = os.fork()
    if not child:
        undo(int(line))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_an_undo_that_is_killed_has_deleted_what_it_forgot_and_goes_on(imported, pasted, tmp_path):
    grant, run = imported
    command = [sys.executable, "-c", KILLED, tmp_path / "data"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as killing:
        for n_commits in range(5):
            import_id = run("import", pasted, "--user", grant.email, "--apply")["id"]
            print(n_commits, file=killing.stdin, flush=True)
            assert killing.stdout.readline() == "9\n"
            (left,) = run("imports")
            assert left["n_memories"] == len(grant.ids()) == max(0, 7 - 2 * n_commits)
            undone = run("undo-import", import_id, "--confirm", left["n_memories"])
            assert (undone["n_deleted"], undone["n_changed"], undone["n_gone"]) == (left["n_memories"], 0, 0)
            assert (grant.ids(), run("imports")) == ([], [])


def test_a_file_with_a_row_that_cannot_be_stored_changes_nothing(imported, tmp_path):
    grant, run = imported
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps([{"content": "Likes tea"}, {"content": "Likes\0trams"}]))
    for extra in ((), ("--apply",)):
        refused = run("import", file, "--user", grant.email, *extra)
        assert refused.exit_code == 1
        assert "in row 1 cannot be imported: content must not" in refused.stderr
    (tmp_path / "none.txt").write_text("{")
    assert run("import", tmp_path / "none.txt", "--user", grant.email).exit_code == 1
    assert (grant.ids(), run("imports")) == ([], [])


def test_what_a_service_cannot_hold_is_named_before_anything_is_written(imported, tmp_path):
    grant, run = imported
    file = tmp_path / "memories.json"
    rows = [
        {"content": "Likes tea", "importance": 0.2, "context": "since 2019", "created_at": 1714557600},
        {"content": "Lives in Lyon", "importance": 0.9, "metadata": {"a": 1}, "status": "superseded"},
        {"content": "Likes tea", "importance": 0.2, "created_at": 1714557600},
        {"content": "Lives in Oslo", "metadata": {"a": 2}},
    ]
    file.write_text(json.dumps(rows))
    command = ("import", file, "--user", grant.email)
    said = {"n_rows": 4, "n_new": 2, "n_known": 0, "n_repeated": 1, "n_outdated": 1, "n_undated": 1}
    preview = run(*command)
    assert preview | said | {"id": None, "not_stored": {"context": 1, "metadata": 1}} == preview
    assert grant.ids() == []
    done = run(*command, "--apply")
    assert done | said | {"not_stored": preview["not_stored"]} == done
    tea, oslo = sorted(grant.list().json()["memoryBlobs"], key=lambda blob: blob["created_at"])
    assert (tea["importance"], tea["created_at"]) == (0.2, "2024-05-01T10:00:00.000000Z")
    assert (oslo["importance"], oslo["created_at"] > "2026") == (None, True)
    more = run(*command, "--with-outdated", "--apply")
    assert (more["n_new"], more["n_known"], more["n_outdated"]) == (1, 3, 0)
    assert more["not_stored"] == {"metadata": 1, "status": 1}
    assert len(grant.ids()) == 3


def test_an_import_says_in_words_what_it_leaves_out(imported, tmp_path):
    grant, _ = imported
    file = tmp_path / "facts.json"
    facts = [
        {"uuid": f"e{n}", "fact": f"Fact {n}", "invalid_at": end}
        for n, end in enumerate(["2024-05-01T10:00:00Z", None])
    ]
    file.write_text(json.dumps({"episodes": [], "entities": [], "facts": facts}))
    data = str(tmp_path / "data")
    said = (
        CliRunner()
        .invoke(main, ["service", "import", str(file), "--user", grant.email, "--data", data])
        .output
    )
    assert (
        "Left out, as their source calls them outdated: 1 memory. To import them, add --with-outdated."
        in said
    )
    assert "Without a date, so the time of the import is stored: 1 memory." in said
    assert "To write them, add --apply." in said


@pytest.mark.parametrize("ending", [".json", ".md"])
def test_the_own_download_of_a_person_reads_back_whole(imported, tmp_path, ending):
    grant, run = imported
    grant.create(
        "Likes tea\n~~~\n## 2. Not a memory\n",
        title="*Tea* & more",
        summary="# Tea",
        tags=["food", "hot drinks"],
        importance=4,
    )
    grant.create("Rows\r\non Sunday", source="chat", confidence=0.25)
    path = tmp_path / f"ada{ending}"
    run("export-user", path, "--user", grant.email)
    blobs = {blob["id"]: blob for blob in grant.list().json()["memoryBlobs"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = mf.read_memories(path)
    assert frame.attrs["memframe_read"]["format"] == "download"
    assert len(frame) == len(blobs) == 2
    for row in frame.to_dict("records"):
        blob = blobs[row["origin_id"]]
        for name in ("title", "summary", "source", "importance", "confidence"):
            assert (None if pd.isna(row[name]) else row[name]) == blob[name], name
        assert row["tags"] == tuple(blob["tags"])
        for name in ("created_at", "updated_at"):
            assert row[name] == pd.Timestamp(blob[name])
    assert sorted(frame["content"]) == ["Likes tea\n~~~\n## 2. Not a memory\n", "Rows\r\non Sunday"]
