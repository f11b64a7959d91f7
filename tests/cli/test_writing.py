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
from tests.faults import answered, lost, passed


@pytest.fixture
def memories(access, folder):
    """Three memories."""
    mf.create_memories(access, pd.DataFrame({"content": ["tea", "coffee", "water"]}), progress=False)
    return mf.load_memories(access, progress=False)


@pytest.fixture
def edited(memories):
    """An archive in which tea was replaced by green tea."""
    mf.export_memories(replaced(memories, "tea", "green tea"), "edited.parquet")
    return "edited.parquet"


def replaced(memories, old, new):
    return memories.assign(content=memories.content.replace(old, new))


def contents(access):
    return set(mf.load_memories(access, progress=False).content)


def test_edits_are_planned_applied_and_taken_back(on_request, access, edited):
    planned = on_request("plan", edited, "--out", "edits.plan")
    assert "+green tea" in planned.stdout
    assert f"memframe apply edits.plan --request {access.request_id}\n" in planned.stderr
    assert contents(access) == {"tea", "coffee", "water"}, "planning writes nothing"

    applied = on_request("apply", "edits.plan", "--journal", "edits.journal", "--json")
    told = json.loads(applied.stdout)
    assert told["counts"]["done"] == told["counts"]["attempted"] == 1
    assert [each["status"] for each in told["outcomes"]] == ["done"]
    assert contents(access) == {"green tea", "coffee", "water"}

    undone = on_request("undo", "edits.journal", "--out", "undo.plan", "--json")
    assert json.loads(undone.stdout)["counts"] == {"patch": 1}
    on_request("apply", "undo.plan")
    assert contents(access) == {"tea", "coffee", "water"}

    resumed = on_request("resume", "edits.journal", "--settle", 0, code=3)
    assert "1 reverted since" in resumed.stdout
    assert resumed.stderr == "The run was undone since. To repeat it, make a new plan.\n"
    assert contents(access) == {"tea", "coffee", "water"}


def test_a_table_of_ones_own_becomes_new_memories(on_request, access, memories, folder):
    (folder / "notes.csv").write_text('content,title,tags\nlikes juice,A title,"[""drink""]"\nlikes milk,,\n')
    planned = on_request("plan", "notes.csv", "--out", "notes.plan", "--json")
    assert json.loads(planned.stdout)["counts"] == {"create": 2}
    on_request("apply", "notes.plan")
    loaded = mf.load_memories(access, progress=False).set_index("content")
    assert loaded.title["likes juice"] == "A title"
    assert loaded.tags["likes juice"] == ("drink",)
    assert pd.isna(loaded.title["likes milk"])


@pytest.mark.parametrize("name", ["m.parquet", "m.csv", "m.jsonl", "m.json", "m", "m.md"])
def test_a_path_that_is_not_utf_8_is_one_like_any_other(on_request, call, memories, latin_folder, name):
    path = latin_folder / name
    on_request("export", path)
    on_request("restore", path, "--check")
    if path.suffix != ".md":
        on_request("export", path, "--refresh")
        call("audit", "--archive", path)
    on_request("plan", path, "--delete", "--out", latin_folder / "a.plan")
    done = on_request(
        "apply", latin_folder / "a.plan", "--confirm", 3, "--journal", latin_folder / "j", "--json"
    )
    assert json.loads(done.stdout)["journal"] == str(latin_folder / "j")
    assert [run["journal"] for run in json.loads(call("runs", "--json").stdout)] == [str(latin_folder / "j")]
    assert "3 done" in call("runs").stdout
    on_request("undo", latin_folder / "j", "--out", latin_folder / "u.plan")


def by_pandas(frame, path):
    if path.endswith(".jsonl"):
        frame.to_json(path, orient="records", lines=True, date_format="iso", date_unit="us")
    else:
        frame.to_parquet(path) if path.endswith(".parquet") else frame.to_csv(path)


def test_a_file_that_pandas_wrote_is_planned_by_the_labels_of_the_frame(on_request, memories):
    tea = memories.id[memories.content == "tea"].item()
    edited = replaced(memories, "tea", "green tea").sort_values("content")  # coffee, green tea, water
    labelled, by_id = edited.set_axis(["one", "two", "three"]), edited[1:].set_index("id")
    for name, frame, row in (
        ("mine.parquet", labelled, "two"),
        ("mine.parquet", by_id, 0),
        ("mine.csv", labelled, "two"),
        ("mine.csv", by_id, 0),
        ("mine.jsonl", labelled, 1),  # which keeps no index
    ):
        by_pandas(frame, name)
        planned = on_request("plan", name)
        assert f"patch memory {tea} (row {row})" in planned.stdout
        assert planned.stdout.endswith("+green tea\n\n1 patch\n")


def test_a_column_with_a_typo_is_refused_and_others_are_listed(call, on_request, memories, folder):
    replaced(memories, "tea", "green tea").assign(n_chars=3, note="x").to_csv("edited.csv")
    planned = on_request("plan", "edited.csv", "--out", "edits.plan")
    told = "# Loses nothing that no other memory holds.\n# Not written, as a memory has no such columns: n_chars, note"
    assert planned.stdout.startswith(f"{told}\n\npatch memory ")
    assert call("plan", "--show", "edits.plan").stdout.startswith(told)
    (folder / "sheet.csv").write_text("Name;Text\nAda;Tea\n")
    assert "no column of a memory, such as id or content" in on_request("plan", "sheet.csv", code=1).stderr
    memories.assign(titel="x").to_parquet("edited.parquet")
    refused = on_request("plan", "edited.parquet", code=1)
    assert "'titel'" in refused.stderr
    assert "'title'" in refused.stderr


def test_a_file_that_cannot_be_read_says_how_pandas_writes_one(on_request, memories, folder):
    for write, advice in (
        (lambda m: m.to_json("x.jsonl", orient="records", date_format="iso"), "lines=True"),
        (lambda m: m.to_csv("x.csv", sep=";"), "sep=','"),
        (lambda m: m.to_pickle("x.pkl"), "to_parquet"),
        (lambda m: m.assign(tags="tea;home").to_csv("x.csv"), r'\["tea", "home"\]'),
    ):
        write(memories)
        (path,) = folder.glob("x.*")
        refused = on_request("plan", path.name, code=1)
        assert re.search(advice, refused.stderr), refused.stderr
        path.unlink()


def test_a_run_that_went_well_is_told_in_one_sentence(on_request, folder, edited):
    on_request("plan", edited, "--out", "edits.plan")
    assert on_request("apply", "edits.plan").stdout == "1 change written and verified\n"


def test_deletes_need_their_number_and_say_what_an_undo_brings_back(on_request, access, memories):
    deleted = memories[memories.content != "water"]
    planned = on_request("plan", "-", "--delete", "--out", "deletes.plan", input="\n".join(deleted.id))
    undo = "An undo within 30 days brings deleted memories back with their ids and dates."
    assert planned.stdout.startswith(f"# Loses nothing that no other memory holds.\n# {undo}\n")
    assert "--confirm 2" in planned.stderr
    refused = on_request("apply", "deletes.plan", code=1)
    assert "to continue, give --confirm 2" in refused.output
    assert "An undo within 30 days" in refused.output
    assert len(contents(access)) == 3
    on_request("apply", "deletes.plan", "--confirm", "2", "--journal", "deletes.journal")
    assert contents(access) == {"water"}
    undone = on_request("undo", "deletes.journal", "--out", "undo.plan")
    first = deleted.iloc[0]
    created = f"{first.created_at:%Y-%m-%d %H:%M} UTC"
    assert f"# restores memory {first.id}, created {created}, with its id and dates" in undone.stdout
    assert "2 restored with their ids and dates" in on_request("apply", "undo.plan").stdout
    again = mf.load_memories(access, progress=False).set_index("id").sort_index()
    pd.testing.assert_frame_equal(again, memories.set_index("id").sort_index())


def test_deletes_take_beginnings_of_ids(on_request, memories):
    plan = ("plan", "-", "--delete")
    planned = on_request(*plan, "--json", input=memories.id[0][:18])
    assert [change["id"] for change in json.loads(planned.stdout)["changes"]] == [memories.id[0]]
    unknown = on_request(*plan, input="0000000g\n", code=1)
    assert "no memory has an id that is or begins with '0000000g'" in unknown.stderr
    missing = on_request("plan", "ids.txt", "--delete", code=1)
    assert "the ids in ids.txt cannot be read (No such file or directory)" in missing.stderr


def test_conflicts_are_shown_and_decided_by_an_option(on_request, access, memories, folder):
    edited = replaced(replaced(memories, "tea", "green tea"), "coffee", "mocha")
    mf.export_memories(edited, "edited.parquet")
    mf.push_memories(access, replaced(memories, "tea", "black tea"), progress=False)
    plan = ("plan", "edited.parquet", "--out", "edits.plan")
    planned = on_request(*plan, code=3)
    assert "conflict" in planned.stdout
    assert not (folder / "edits.plan").exists()
    assert "1 conflict with what the service holds now, so edits.plan was not written." in planned.stderr
    assert "--on-conflict mine" in planned.stderr
    mine = on_request(*plan, "--on-conflict", "mine", "--json")
    assert json.loads(mine.stdout)["counts"] == {"patch": 2}
    marked = on_request(*plan, "--on-conflict", "mark", code=3)
    assert "Saved to edits.plan without 1 conflict." in marked.stderr
    on_request("apply", "edits.plan", "--journal", "edits.journal")
    assert contents(access) == {"black tea", "mocha", "water"}
    loaded = mf.load_memories(access, progress=False)
    mf.push_memories(access, replaced(loaded, "mocha", "latte"), progress=False)
    undone = on_request("undo", "edits.journal", "--out", "undo.plan", code=3)
    assert "1 conflict, and nothing else to do, so undo.plan was not written." in undone.stderr


def test_a_long_plan_prints_its_first_changes_and_the_totals(on_request, memories):
    pd.DataFrame({"content": [f"note {n}" for n in range(23)]}).to_csv("notes.csv", index=False)
    shown = on_request("plan", "notes.csv")
    assert shown.stdout.count("create a new memory") == 20
    assert shown.stdout.endswith("\n\nand 3 more\n\n23 creates\n")
    assert shown.stderr == "Shown: 20 of 23 changes; --full prints all.\n"
    full = on_request("plan", "notes.csv", "--full")
    assert (full.stdout.count("create a new memory"), full.stderr) == (23, "")
    assert len(json.loads(on_request("plan", "notes.csv", "--json").stdout)["changes"]) == 23


def test_conflicts_come_first_in_a_long_plan(access, memories):
    edited = memories.assign(content=memories.content + ", please")
    mf.push_memories(access, replaced(memories, memories.content[2], "juice"), progress=False)
    elsewhere = mf.open_access(access.client, access.request_id)
    plan = mf.plan_changes(elsewhere, edited, on_conflict="mark")
    told = "# Loses nothing that no other memory holds.\n\n"
    assert plan.diff(color=False).startswith(f"{told}patch memory ")
    first = plan.diff(color=False, limit=1)
    assert first.startswith(f"{told}conflict memory ")
    assert first.endswith("\n\nand 2 more\n\n2 patches, 1 conflict")


def test_what_a_plan_loses_is_named_compared_with_all_and_can_be_confirmed(
    on_request, call, access, memories
):
    texts = ["Emma pays 17 \u20ac", "The rent: 17 \u20ac, for Emma", "The code is 4711"]
    mf.create_memories(access, pd.DataFrame({"content": texts}), progress=False)
    ids = mf.load_memories(access, progress=False).set_index("content").id
    planned = on_request("plan", "-", "--delete", "--out", "x.plan", input="\n".join(ids[texts[::2]]))
    assert planned.stdout.startswith(
        "# Loses 1 value that no other memory holds: 4711 (number, content of memory "
    )
    assert "memframe apply x.plan --confirm 2 --confirm-losses 1 --request" in planned.stderr
    assert "loses" not in planned.stdout
    assert call("plan", "--show", "x.plan").stdout.startswith("# Loses 1 value")
    document = json.loads(call("plan", "--show", "x.plan", "--json").stdout)
    assert [loss["value"] for loss in document["losses"]] == ["4711"]
    assert document["left"] == []
    refused = on_request("apply", "x.plan", "--confirm", "2", "--confirm-losses", "2", code=1)
    assert "the plan loses 1 value that no other memory holds, and 2 was confirmed" in refused.stderr
    assert "and with them 1 value" in on_request("apply", "x.plan", code=1).stderr
    applied = on_request("apply", "x.plan", "--confirm", "2", "--confirm-losses", "1")
    assert "Loses 1 value" in applied.stderr


def test_a_policy_is_kept_when_planning_and_when_applying(on_request, access, folder, memories):
    (folder / "memframe.toml").write_text(f'[protect]\nids = ["{memories.id[0]}"]\n[limits]\nchanges = 2\n')
    lines = "\n".join(memories.id[:2])
    on_request("plan", "-", "--delete", "--out", "all.plan", input=lines)
    refused = on_request("apply", "all.plan", "--confirm", "2", "--policy", "memframe.toml", code=1)
    assert f"memory {memories.id[0]} is protected by its id and would be deleted" in refused.stderr
    planned = on_request(
        "plan", "-", "--delete", "--policy", "memframe.toml", "--out", "some.plan", input=lines
    )
    assert "1 left out" not in planned.stdout
    assert "1 is left for you: 1 protected by its id" in planned.stdout
    applied = on_request("apply", "some.plan", "--confirm", "1", "--policy", "memframe.toml")
    assert "1 is left for you" in applied.stderr
    memories.assign(title="x").iloc[[0, 2]].to_csv("edited.csv")
    (folder / "memframe.toml").write_text("[limits]\nchanges = 1\n")
    refused = on_request("plan", "edited.csv", "--policy", "memframe.toml", code=1)
    assert "2 changes (changes = 1)" in refused.stderr


def test_an_undo_does_not_replace_the_plan_that_it_undoes(on_request, edited, folder):
    on_request("plan", edited, "--out", "edits.plan")
    on_request("apply", "edits.plan", "--journal", "edits.journal")
    before = (folder / "edits.plan").read_bytes()
    refused = on_request("undo", "edits.journal", "--out", "edits.plan", code=1)
    assert "edits.plan is the plan of this run" in refused.stderr
    assert (folder / "edits.plan").read_bytes() == before
    for _ in range(2):
        on_request("undo", "edits.journal", "--out", "undo.plan")


def test_a_kept_plan_is_shown_without_the_service_and_refused_once_it_is_stale(
    call, on_request, service, access, memories, edited
):
    on_request("plan", edited, "--out", "edits.plan")
    shown = call("plan", "--show", "edits.plan", "--json")
    assert json.loads(shown.stdout)["changes"][0]["after"] == {"content": "green tea"}
    call("plan", edited, code=2)
    mf.push_memories(access, replaced(memories, "tea", "black tea"), progress=False)
    applied = on_request("apply", "edits.plan", code=3)
    assert "stale" in applied.output
    service.decide(access.request_id, "revoked")
    applied = on_request("apply", "edits.plan", code=5)
    assert "revoked" in applied.output


def test_advice_is_in_the_words_of_the_command_line(on_request, access, memories):
    mf.push_memories(access, memories.assign(source="mail"), progress=False)
    loaded = mf.load_memories(access, progress=False)
    mf.export_memories(loaded.assign(source=None), "emptied.jsonl")
    refused = on_request("plan", "emptied.jsonl", code=1)
    assert "source was emptied: say with on_null (--on-null) what that means" in refused.stderr


def test_runs_are_listed_and_purged(call, on_request, edited):
    on_request("plan", edited, "--out", "edits.plan")
    journal = json.loads(on_request("apply", "edits.plan", "--json").stdout)["journal"]
    assert journal in {run["journal"] for run in json.loads(call("runs", "--json").stdout)}
    (shown,) = [line for line in call("runs").stdout.splitlines() if line.endswith(f"  {journal}")]
    assert shown[16:].startswith("  finished    1 done    ")
    torn = Path(journal).with_name("torn.journal")
    torn.write_text("no journal")
    assert "  unreadable  -  " in call("runs").stdout
    torn.unlink()
    on_request("resume", journal)
    purged = call("runs", "--purge", "0", "--json")
    assert (json.loads(purged.stdout), purged.stderr) == ([], "2 runs removed\n")


def test_a_plan_whose_journal_is_missing_is_refused_until_the_run_is_forgotten(call, on_request, edited):
    on_request("plan", edited, "--out", "edits.plan")
    on_request("apply", "edits.plan", "--journal", "e.journal")
    place = Path("e.journal").absolute()
    place.unlink()
    assert f"  missing     -         {place}" in call("runs").stdout
    refused = on_request("apply", "edits.plan", code=1)
    advice = (f"memframe resume {place}", f"memframe runs --forget {place}")
    for words in ("applied, or its run", f"not at {place}", *advice):
        assert words in refused.stderr
    assert call("runs", "--forget", str(place)).stderr == "1 removed\n"
    assert str(place) not in call("runs").stdout
    call("runs", "--forget", str(place), code=1)


# The outcome of a run


@pytest.fixture
def notes(on_request, proxy, memories, monkeypatch):
    """A plan of twelve new memories, beside three, for commands that go through the proxy."""
    monkeypatch.setenv("MEMFRAME_BASE_URL", proxy.base_url)
    pd.DataFrame({"content": [f"note {n}" for n in range(12)]}).to_csv("notes.csv", index=False)
    on_request("plan", "notes.csv", "--out", "notes.plan")
    return "notes.plan"


def test_a_run_that_is_stopped_says_how_to_go_on(on_request, proxy, notes, access, folder):
    def interrupted(request, forward):
        answer = forward(request)  # before, so that the service has all that it will have
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return answer

    proxy.script(CREATE_MEMORY, passed, interrupted)
    stopped = on_request("apply", notes, "--journal", "notes.journal", "--workers", "1", code=1)
    way_on = "memframe resume notes.journal continues it"
    stand, _, rest = stopped.stderr.removeprefix("Error: stopped: ").partition("; ")
    assert rest == f"{way_on}\n"
    counts = {status: int(n) for n, status in (part.split() for part in stand.split(", "))}
    assert (sum(counts.values()), counts["done"] >= 1, counts["planned"] > 0) == (12, True, True)
    (folder / "memframe.toml").write_text("[limits]\nchanges = 0\n")
    before = contents(access)
    refused = on_request("resume", "notes.journal", "--policy", "memframe.toml", code=1)
    assert "(changes = 0)" in refused.stderr
    assert contents(access) == before
    on_request("resume", "notes.journal")
    assert contents(access) == {"tea", "coffee", "water", *(f"note {n}" for n in range(12))}


def test_rows_that_were_refused_are_named_with_the_reason_and_the_way_back(on_request, proxy, notes, access):
    proxy.always(CREATE_MEMORY, answered(400, {"detail": "no room"}))
    applied = on_request("apply", notes, "--journal", "my notes.journal", code=3)
    lines = applied.stdout.splitlines()
    assert lines[0].startswith("12 rejected")
    assert lines[1].startswith("row 0: create rejected: POST /memory-blobs: 127.0.0.1:")
    assert "answered 400: no room" in lines[1]
    assert lines[-1] == "and 2 more; --json lists them"
    way_back = f"To undo it: memframe undo 'my notes.journal' --request {access.request_id}\n"
    assert applied.stderr == way_back


def test_rows_with_an_unknown_outcome_end_with_4_whatever_ended_the_run(on_request, proxy, notes):
    proxy.script(CREATE_MEMORY, passed, lost, answered(302, Location="https://elsewhere.example/"))
    proxy.always(LIST_MEMORIES, answered(302, Location="https://elsewhere.example/"))
    proxy.script(LIST_MEMORIES, passed)
    applied = on_request("apply", notes, "--workers", "1", "--settle", "0", code=4)
    assert "create unknown" in applied.stdout
    assert "To resume: memframe resume " in applied.stderr


def test_a_create_that_was_delivered_twice_ends_with_3_and_scripts_see_it(on_request, proxy, notes):
    def delivered_twice(request, forward):
        forward(request._replace(headers={**request.headers, "Idempotency-Key": "of-a-proxy"}))
        return forward(request)

    proxy.script(CREATE_MEMORY, delivered_twice)
    applied = on_request("apply", notes, "--json", code=3)
    told = json.loads(applied.stdout)
    assert (told["counts"]["done"], told["stopped"]) == (12, None)
    assert len(told["verification"]["duplicates"]) == 1


def test_a_tilde_that_the_shell_left_alone_is_the_home_folder(call, on_request, folder, edited, monkeypatch):
    home = folder / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    Path(edited).rename(home / edited)
    on_request("plan", f"~/{edited}", "--out=~/edits.plan")
    on_request("apply", "~/edits.plan", "--journal=~/edits.journal")
    on_request("undo", "~/edits.journal")
    call("audit", f"--archive=~/{edited}", "--html=~/audit.html")
    assert {path.name for path in home.iterdir()} >= {edited, "edits.plan", "edits.journal", "audit.html"}


def test_a_sealed_archive_is_planned_with_the_key_of_a_file(on_request, access, memories):
    mf.export_memories(access, "sealed.parquet", sealed=True)
    Path("key.txt").write_text(access.credentials.encryption_key.reveal())
    Path("other.txt").write_text("0123456789abcdef" * 4)
    planned = ("plan", "sealed.parquet", "--key-file")
    unedited = on_request(*planned, "key.txt", "--out", "none.plan")
    assert "nothing to do" in unedited.stdout
    assert unedited.stderr == "Saved to none.plan. It changes nothing.\n"
    assert "does not open" in on_request(*planned, "other.txt", code=1).stderr
