"""`memframe plan`, `apply`, `resume`, `undo` and `runs`, as a script calls them."""

import json
import re
import signal
import threading
from pathlib import Path

import pandas as pd
import pytest

import memframe as mf
from memframe.wire import CREATE_MEMORY, LIST_MEMORIES
from tests.faults import FaultProxy, answered, lost, passed


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for files; journals and the data key are in it, too."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def memories(access, folder):
    """Three memories, exported to edit them."""
    mf.create_memories(access, pd.DataFrame({"content": ["tea", "coffee", "water"]}), progress=False)
    memories = mf.load_memories(access, progress=False)
    mf.export_memories(memories, folder / "mine.parquet")
    return memories


def edit(memories, path, old, new):
    """An archive in which one text was replaced."""
    mf.export_memories(replaced(memories, old, new), path)
    return path


def replaced(memories, old, new):
    return memories.assign(content=memories.content.replace(old, new))


def contents(access):
    return set(mf.load_memories(access, progress=False).content)


def test_edits_are_planned_applied_and_taken_back(call, access, memories, folder):
    edited = edit(memories, "edited.jsonl", "tea", "green tea")
    request = ("--request", access.request_id)
    planned = call("plan", edited, *request, "--out", "edits.plan")
    assert planned.exit_code == 0, planned.output
    assert "+green tea" in planned.stdout
    assert f"memframe apply edits.plan --request {access.request_id}\n" in planned.stderr
    assert contents(access) == {"tea", "coffee", "water"}, "planning writes nothing"

    applied = call("apply", "edits.plan", *request, "--journal", "edits.journal", "--json")
    assert applied.exit_code == 0, applied.output
    told = json.loads(applied.stdout)
    assert told["counts"]["done"] == told["counts"]["attempted"] == 1
    assert [each["status"] for each in told["outcomes"]] == ["done"]
    assert contents(access) == {"green tea", "coffee", "water"}

    undone = call("undo", "edits.journal", *request, "--out", "undo.plan", "--json")
    assert json.loads(undone.stdout)["counts"] == {"patch": 1}
    assert call("apply", "undo.plan", *request).exit_code == 0
    assert contents(access) == {"tea", "coffee", "water"}


def test_a_table_of_ones_own_becomes_new_memories(call, access, memories, folder):
    (folder / "notes.csv").write_text('content,title,tags\nlikes juice,A title,"[""drink""]"\nlikes milk,,\n')
    request = ("--request", access.request_id)
    planned = call("plan", "notes.csv", *request, "--out", "notes.plan", "--json")
    assert json.loads(planned.stdout)["counts"] == {"create": 2}
    assert call("apply", "notes.plan", *request).exit_code == 0
    loaded = mf.load_memories(access, progress=False).set_index("content")
    assert loaded.title["likes juice"] == "A title"
    assert loaded.tags["likes juice"] == ("drink",)
    assert pd.isna(loaded.title["likes milk"])


def by_pandas(frame, path):
    if path.endswith(".jsonl"):
        frame.to_json(path, orient="records", lines=True, date_format="iso", date_unit="us")
    else:
        frame.to_parquet(path) if path.endswith(".parquet") else frame.to_csv(path)


@pytest.mark.parametrize("name", ["mine.parquet", "mine.csv", "mine.jsonl"])
@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.sort_values("content", ascending=False),
        lambda m: m[m.content != "coffee"],
        lambda m: m.set_axis(["one", "two", "three"]),
        lambda m: pd.concat([m[2:], m[:2]]),
        lambda m: m.set_index("id"),
    ],
)
def test_a_file_that_pandas_wrote_is_planned_by_the_labels_of_the_frame(
    call, access, memories, folder, name, change
):
    edited = change(replaced(memories, "tea", "green tea"))
    has_labels = edited.index.name != "id" and name != "mine.jsonl"
    if name == "mine.jsonl" and edited.index.name == "id":  # which keeps no index
        edited = edited.reset_index()
    place = edited.content.tolist().index("green tea")
    by_pandas(edited, name)
    planned = call("plan", name, "--request", access.request_id)
    assert planned.exit_code == 0, planned.output
    memory_id = memories.id[memories.content == "tea"].item()
    assert f"patch memory {memory_id} (row {edited.index[place] if has_labels else place})" in planned.stdout
    assert planned.stdout.endswith("+green tea\n\n1 patch\n")


def test_a_column_with_a_typo_is_refused_and_others_are_listed(call, access, memories, folder):
    request = ("--request", access.request_id)
    replaced(memories, "tea", "green tea").assign(n_chars=3, note="x").to_csv("edited.csv")
    planned = call("plan", "edited.csv", *request, "--out", "edits.plan")
    told = "# Not written, as a memory has no such columns: n_chars, note"
    assert planned.stdout.startswith(f"{told}\n\npatch memory ")
    assert call("plan", "--show", "edits.plan").stdout.startswith(told)
    memories.assign(titel="x").to_parquet("edited.parquet")
    refused = call("plan", "edited.parquet", *request)
    assert refused.exit_code == 1
    assert "'titel'" in refused.stderr
    assert "'title'" in refused.stderr


@pytest.mark.parametrize(
    ("write", "advice"),
    [
        (lambda m: m.to_json("x.json", orient="records", date_format="iso"), "lines=True"),
        (lambda m: m.to_json("x.jsonl", orient="records", date_format="iso"), "lines=True"),
        (lambda m: m.to_json("x.jsonl", date_format="iso"), "lines=True"),
        (lambda m: m.to_csv("x.csv", sep=";"), "sep=','"),
        (lambda m: m.to_pickle("x.pkl"), "to_parquet"),
        (
            lambda m: m.assign(tags=m.tags.map(";".join)).replace("", "x").to_csv("x.csv"),
            r'\["tea", "home"\]',
        ),
    ],
)
def test_a_file_that_cannot_be_read_says_how_pandas_writes_one(call, access, memories, write, advice, folder):
    write(memories)
    (path,) = folder.glob("x.*")
    refused = call("plan", path.name, "--request", access.request_id)
    assert refused.exit_code == 1, refused.output
    assert re.search(advice, refused.stderr), refused.stderr


def test_deletes_need_their_number(call, access, memories):
    request = ("--request", access.request_id)
    ids = "\n".join(memories.id[memories.content != "water"])
    planned = call("plan", "-", "--delete", *request, "--out", "deletes.plan", input=ids)
    assert planned.exit_code == 0, planned.output
    assert "--confirm 2" in planned.stderr
    refused = call("apply", "deletes.plan", *request)
    assert refused.exit_code == 1
    assert "give --confirm 2 to go on" in refused.output
    assert len(contents(access)) == 3
    applied = call("apply", "deletes.plan", "--confirm", "2", *request)
    assert applied.exit_code == 0, applied.output
    assert contents(access) == {"water"}


def test_deletes_take_beginnings_of_ids(call, access, memories, folder):
    plan = ("plan", "-", "--delete", "--request", access.request_id)
    planned = call(*plan, "--json", input=memories.id[0][:18])
    assert [change["id"] for change in json.loads(planned.stdout)["changes"]] == [memories.id[0]]
    unknown = call(*plan, input="0000000g\n")
    assert (unknown.exit_code, "no memory whose id is or begins with '0000000g'" in unknown.stderr) == (
        1,
        True,
    )
    missing = call("plan", "ids.txt", "--delete", "--request", access.request_id)
    assert "the ids in ids.txt cannot be read (No such file or directory)" in missing.stderr


def test_what_an_undo_brings_back_is_told_before_the_delete_and_after_it(call, access, memories):
    request = ("--request", access.request_id)
    planned = call("plan", "-", "--delete", *request, "--out", "deletes.plan", input=memories.id[0])
    assert planned.stdout.startswith(
        "# An undo within 30 days brings deleted memories back with their ids and dates.\n"
    )
    assert "An undo within 30 days" in call("apply", "deletes.plan", *request).output
    call("apply", "deletes.plan", "--confirm", "1", *request, "--journal", "deletes.journal")
    undone = call("undo", "deletes.journal", *request, "--out", "undo.plan")
    created = f"{memories.created_at[0]:%Y-%m-%d %H:%M} UTC"
    assert f"# restores memory {memories.id[0]}, created {created}, with its id and dates" in undone.stdout
    assert "1 restored with their ids and dates" in call("apply", "undo.plan", *request).stdout
    again = mf.load_memories(access, progress=False).set_index("id").sort_index()
    pd.testing.assert_frame_equal(again, memories.set_index("id").sort_index())


def test_conflicts_are_shown_not_kept_and_end_with_3(call, access, memories, folder):
    edited = edit(memories, "edited.parquet", "tea", "green tea")
    mf.push_memories(access, replaced(memories, "tea", "black tea"), progress=False)
    request = ("--request", access.request_id)
    planned = call("plan", edited, *request, "--out", "edits.plan")
    assert planned.exit_code == 3, planned.output
    assert "conflict" in planned.stdout
    assert not (folder / "edits.plan").exists()
    assert "1 conflict with what the service holds now, so edits.plan was not written." in planned.stderr
    assert "--on-conflict mine" in planned.stderr
    assert call("plan", edited, *request, "--on-conflict", "mine", "--out", "edits.plan").exit_code == 0
    assert (folder / "edits.plan").exists()


def test_what_does_not_conflict_is_kept_and_can_be_applied(call, access, memories, folder):
    edited = replaced(memories, "tea", "green tea")
    mf.export_memories(replaced(edited, "coffee", "mocha"), "edited.parquet")
    mf.push_memories(access, replaced(memories, "tea", "black tea"), progress=False)
    request = ("--request", access.request_id)
    planned = call("plan", "edited.parquet", *request, "--on-conflict", "mark", "--out", "edits.plan")
    assert (planned.exit_code, "Kept in edits.plan without 1 conflict." in planned.stderr) == (3, True)
    assert call("apply", "edits.plan", *request, "--journal", "edits.journal").exit_code == 0
    assert contents(access) == {"black tea", "mocha", "water"}
    loaded = mf.load_memories(access, progress=False)
    mf.push_memories(access, replaced(loaded, "mocha", "latte"), progress=False)
    undone = call("undo", "edits.journal", *request, "--out", "undo.plan")
    assert undone.exit_code == 3
    assert "1 conflict, and nothing else to do, so undo.plan was not written." in undone.stderr


def test_a_long_plan_prints_its_first_changes_and_the_totals(call, access, memories, folder):
    pd.DataFrame({"content": [f"note {n}" for n in range(23)]}).to_csv("notes.csv", index=False)
    plan = ("plan", "notes.csv", "--request", access.request_id)
    shown = call(*plan)
    assert shown.stdout.count("create a new memory") == 20
    assert shown.stdout.endswith("\n\nand 3 more\n\n23 creates\n")
    assert shown.stderr == "These are the first 20 of 23 changes; --full prints all.\n"
    full = call(*plan, "--full")
    assert (full.stdout.count("create a new memory"), full.stderr) == (23, "")
    assert len(json.loads(call(*plan, "--json").stdout)["changes"]) == 23


def test_conflicts_come_first_in_a_long_plan(access, memories):
    edited = memories.assign(content=memories.content + ", please")
    last = memories.content[2]
    mf.push_memories(access, replaced(memories, last, "juice"), progress=False)
    elsewhere = mf.open_access(access.client, access.request_id)
    plan = mf.plan_changes(elsewhere, edited, on_conflict="mark")
    assert plan.diff(color=False).startswith("patch memory ")
    first = plan.diff(color=False, limit=1)
    assert first.startswith("conflict memory ")
    assert first.endswith("\n\nand 2 more\n\n2 patches, 1 conflict")


def test_a_stale_plan_ends_with_3(call, access, memories):
    edited = edit(memories, "edited.parquet", "tea", "green tea")
    request = ("--request", access.request_id)
    call("plan", edited, *request, "--out", "edits.plan")
    mf.push_memories(access, replaced(memories, "tea", "black tea"), progress=False)
    applied = call("apply", "edits.plan", *request)
    assert applied.exit_code == 3
    assert "stale" in applied.output


def test_a_kept_plan_is_shown_without_the_service(call, access, memories):
    edited = edit(memories, "edited.parquet", "tea", "green tea")
    call("plan", edited, "--request", access.request_id, "--out", "edits.plan")
    shown = call("plan", "--show", "edits.plan", "--json")
    assert json.loads(shown.stdout)["changes"][0]["after"] == {"content": "green tea"}
    assert call("plan", edited).exit_code == 2, "neither --request nor --show"


def test_advice_is_in_the_words_of_the_command_line(call, access, memories, folder):
    mf.push_memories(access, memories.assign(source="mail"), progress=False)
    loaded = mf.load_memories(access, progress=False)
    mf.export_memories(loaded.assign(source=None), "emptied.jsonl")
    refused = call("plan", "emptied.jsonl", "--request", access.request_id)
    assert refused.exit_code == 1
    assert "source was emptied: say by on_null (--on-null) what that means" in refused.stderr


def test_runs_are_listed_and_purged(call, access, memories):
    edited = edit(memories, "edited.parquet", "tea", "green tea")
    request = ("--request", access.request_id)
    call("plan", edited, *request, "--out", "edits.plan")
    journal = json.loads(call("apply", "edits.plan", *request, "--json").stdout)["journal"]
    listed = json.loads(call("runs", "--json").stdout)
    assert journal in {run["journal"] for run in listed}
    lines = call("runs").stdout.splitlines()
    (shown,) = [line for line in lines if line.endswith(f"  {journal}")]
    assert shown[16:].startswith("  finished    1 done    ")
    Path(journal).with_name("torn.journal").write_text("no journal")
    assert "  unreadable  -  " in call("runs").stdout
    Path(journal).with_name("torn.journal").unlink()
    assert call("resume", journal, *request).exit_code == 0, "a run that is through has nothing left to do"
    purged = call("runs", "--purge", "0", "--json")
    assert (json.loads(purged.stdout), purged.stderr) == ([], "2 runs removed\n")


def test_a_plan_whose_journal_is_missing_is_refused_until_the_run_is_forgotten(call, access, memories):
    edited = edit(memories, "edited.parquet", "tea", "green tea")
    request = ("--request", access.request_id)
    call("plan", edited, *request, "--out", "edits.plan")
    journal = json.loads(call("apply", "edits.plan", *request, "--journal", "e.journal", "--json").stdout)[
        "journal"
    ]
    place = Path(journal).absolute()
    place.unlink()
    assert f"  missing     -         {place}" in call("runs").stdout
    refused = call("apply", "edits.plan", *request)
    assert refused.exit_code == 1
    for words in (
        "begun already",
        f"not at {place}",
        f"memframe resume {place}",
        f"memframe runs --forget {place}",
    ):
        assert words in refused.stderr
    assert call("runs", "--forget", str(place)).stderr == "1 removed\n"
    assert str(place) not in call("runs").stdout
    assert call("runs", "--forget", str(place)).exit_code == 1


def test_refused_access_ends_with_5(call, service, access, memories):
    edited = edit(memories, "edited.parquet", "tea", "green tea")
    request = ("--request", access.request_id)
    call("plan", edited, *request, "--out", "edits.plan")
    service.decide(access.request_id, "revoked")
    applied = call("apply", "edits.plan", *request)
    assert applied.exit_code == 5
    assert "revoked" in applied.output


# What became of a run


@pytest.fixture
def through(call, access, memories, service, monkeypatch):
    """Calls a command on the user's memories through a proxy that breaks what a test tells it to break."""
    with FaultProxy(service.base_url) as proxy:
        monkeypatch.setenv("MEMFRAME_BASE_URL", proxy.base_url)
        call.proxy = proxy
        yield lambda *arguments: call(*arguments, "--request", access.request_id)


@pytest.fixture
def notes(through, folder):
    """A plan of twelve new memories."""
    pd.DataFrame({"content": [f"note {n}" for n in range(12)]}).to_csv("notes.csv", index=False)
    assert through("plan", "notes.csv", "--out", "notes.plan").exit_code == 0
    return "notes.plan"


def test_a_run_that_is_stopped_says_how_to_go_on(call, through, notes, access):
    def interrupted(request, forward):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return forward(request)

    call.proxy.script(CREATE_MEMORY, passed, interrupted)
    stopped = through("apply", notes, "--journal", "notes.journal", "--workers", "1")
    way_on = "memframe resume notes.journal goes on with it"
    assert (stopped.exit_code, stopped.stderr) == (1, f"Error: stopped: {way_on}\n")
    assert through("resume", "notes.journal").exit_code == 0
    assert contents(access) == {"tea", "coffee", "water", *(f"note {n}" for n in range(12))}


def test_rows_that_were_refused_are_told_with_the_reason_and_the_way_back(call, through, notes, access):
    call.proxy.always(CREATE_MEMORY, answered(400, {"detail": "no room"}))
    applied = through("apply", notes, "--journal", "my notes.journal")
    assert applied.exit_code == 3
    lines = applied.stdout.splitlines()
    assert lines[0].startswith("12 rejected")
    assert lines[1].startswith("row 0: create rejected: POST /memory-blobs: 127.0.0.1:")
    assert "answered 400: no room" in lines[1]
    assert lines[-1] == "and 2 more, which --json shows"
    way_back = f"To undo it: memframe undo 'my notes.journal' --request {access.request_id}\n"
    assert applied.stderr == way_back


def test_rows_of_which_nobody_knows_end_with_4_whatever_ended_the_run(call, through, notes):
    call.proxy.script(CREATE_MEMORY, passed, lost, answered(302, Location="https://elsewhere.example/"))
    call.proxy.always(LIST_MEMORIES, answered(302, Location="https://elsewhere.example/"))
    call.proxy.script(LIST_MEMORIES, passed)
    applied = through("apply", notes, "--workers", "1", "--settle", "0")
    assert applied.exit_code == 4, applied.output
    assert "create unknown" in applied.stdout
    assert "To resume: memframe resume " in applied.stderr


def test_a_create_that_was_delivered_twice_ends_with_3_and_is_told_to_scripts(call, through, notes):
    def delivered_twice(request, forward):
        forward(request._replace(headers={**request.headers, "Idempotency-Key": "of-a-proxy"}))
        return forward(request)

    call.proxy.script(CREATE_MEMORY, delivered_twice)
    applied = through("apply", notes, "--json")
    assert applied.exit_code == 3, applied.output
    told = json.loads(applied.stdout)
    assert told["counts"]["done"] == 12
    assert len(told["verification"]["duplicates"]) == 1
    assert told["stopped"] is None


def test_a_tilde_that_the_shell_left_alone_is_the_home_folder(call, access, memories, folder, monkeypatch):
    home = folder / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    edit(memories, home / "edited.jsonl", "tea", "green tea")
    request = ("--request", access.request_id)
    assert call("plan", "~/edited.jsonl", *request, "--out=~/edits.plan").exit_code == 0
    assert call("apply", "~/edits.plan", *request, "--journal=~/edits.journal").exit_code == 0
    assert call("undo", "~/edits.journal", *request).exit_code == 0
    assert call("audit", "--archive=~/edited.jsonl", "--html=~/audit.html").exit_code == 0
    names = {"edited.jsonl", "edits.plan", "edits.journal", "audit.html"}
    assert {path.name for path in home.iterdir()} >= names


def test_a_sealed_archive_is_planned_with_the_key_of_a_file(call, access, memories):
    mf.export_memories(access, "sealed.parquet", sealed=True)
    Path("key.txt").write_text(access.credentials.encryption_key.reveal())
    Path("other.txt").write_text("0123456789abcdef" * 4)
    planned = ("plan", "sealed.parquet", "--request", access.request_id, "--key-file")
    assert "nothing to do" in call(*planned, "key.txt").stdout
    assert "does not open" in call(*planned, "other.txt").stderr
