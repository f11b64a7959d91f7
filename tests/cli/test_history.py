"""`memframe export --keep`, `history` and `restore --as-of`: the states of the past from a shell."""

import json

import pandas as pd
import pytest

import memframe as mf

QUIET = {"progress": False, "settle_s": 0.0}


@pytest.fixture
def kept(access, on_request, folder):
    """A sealed archive of which a memory was deleted and another one was edited."""
    texts = pd.DataFrame({"content": ["Likes tea", "Has a boat"], "source": ["chat", None]})
    mf.create_memories(access, texts, workers=1, **QUIET).raise_for_failures()
    memories = mf.load_memories(access, progress=False)
    on_request("export", "archive", "--sealed")
    mf.update_memories(access, memories.iloc[:1].assign(content="Likes coffee"), **QUIET)
    mf.apply_plan(access, mf.plan_deletes(access, memories.iloc[1:]), confirm=1, **QUIET)
    done = on_request("export", "archive", "--refresh", "--keep-daily", 7, "--keep-last", 5)
    assert done.stdout.startswith("0 added, 1 changed, 1 gone in archive")
    return memories


def test_states_are_listed_with_counts_by_source(call, kept):
    head, first, last = call("history", "archive").stdout.splitlines()
    assert head.split() == ["state", "of", "(UTC)", "memories", "added", "changed", "gone", "sources"]
    assert first.split()[2:] == ["2", "0", "0", "0", "(no", "source)", "1,", "chat", "1"]
    assert last.split()[2:] == ["1", "0", "1", "1", "chat", "1"]
    rows = json.loads(call("history", "archive", "--json").stdout)
    assert [row["n_rows"] for row in rows] == [2, 1]
    moments = mf.list_snapshots("archive")["taken_at"].tolist()
    assert [pd.Timestamp(row["taken_at"]) for row in rows] == moments


def test_changes_are_shown_as_those_of_a_plan(on_request, kept):
    first = str(mf.list_snapshots("archive")["taken_at"].iloc[0])
    shown = on_request("history", "archive", "--since", first).stdout
    assert f"delete memory {kept.id[1]}" in shown
    assert "-Likes tea\n+Likes coffee" in shown
    assert shown.splitlines()[-1] == "1 patch, 1 delete"
    assert on_request("history", "archive", "--since", first, "--until", first).stdout == "nothing to do\n"
    rows = json.loads(on_request("history", "archive", "--since", first, "--json").stdout)
    assert [row["action"] for row in rows] == ["delete", "patch"]


def test_the_life_of_a_memory_is_shown_and_forgotten(on_request, kept):
    shown = on_request("history", "archive", "--id", kept.id[0]).stdout
    assert [line[1:] for line in shown.splitlines() if "Likes" in line] == [
        "Likes tea",
        "Likes tea",
        "Likes coffee",
    ]
    assert on_request("history", "archive", "--id", "nobody").stdout.startswith("No state in archive has")
    rows = json.loads(on_request("history", "archive", "--id", kept.id[1], "--json").stdout)
    assert [row["action"] for row in rows] == ["create", "delete"]
    assert on_request("history", "archive", "--forget", kept.id[1]).stdout == "1 row deleted from archive\n"
    assert json.loads(on_request("history", "archive", "--id", kept.id[1], "--json").stdout) == []


def test_a_state_of_the_past_is_restored(on_request, access, kept):
    first = str(mf.list_snapshots("archive")["taken_at"].iloc[0])
    assert on_request("restore", "archive").stdout.splitlines()[-1] == "nothing to do"
    on_request("restore", "archive", "--as-of", first, "--out", "back.plan", code=3)
    on_request("apply", "back.plan")
    contents = mf.load_memories(access, progress=False)["content"]
    assert sorted(contents) == ["Has a boat", "Likes coffee"]


def test_usage_is_checked(call, on_request, kept):
    for options, says in (
        (["--id", "m1", "--since", "2026"], "Give one of --id, --since and --forget"),
        (["--until", "2026"], "--until needs --since"),
    ):
        assert says in call("history", "archive", *options, code=2).output
    assert "--keep needs --refresh" in on_request("export", "archive", "--keep", code=2).output
    assert (
        "leave out --as-of" in on_request("restore", "archive", "--check", "--as-of", "2026", code=2).output
    )
    assert "give a time such as" in on_request("restore", "archive", "--as-of", "noon", code=1).output
    on_request("export", "memories.csv")
    assert (
        "has no past states. To keep them from now on: memframe export FOLDER"
        in call("history", "memories.csv").stdout
    )


def test_a_damaged_snapshot_is_said(on_request, call, access, kept, folder):
    file = min((folder / "archive" / "_history").iterdir())
    file.write_bytes(file.read_bytes()[:-9])
    assert "is damaged" in call("history", "archive").stdout.splitlines()[1]
    mf.create_memories(access, pd.DataFrame({"content": ["Has a dog"]}), **QUIET)
    assert f"{file.name}) is damaged" in on_request("export", "archive", "--refresh").stderr
