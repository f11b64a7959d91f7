"""`memframe show`, `list` and `search`: texts only where they are asked for."""

import json

import pandas as pd
import pytest
from click.testing import CliRunner

import memframe as mf
from memframe.cli import main

ROWS = {
    "title": ["Morning tea", "Door", None],
    "content": ["Ada drinks green tea.", "The door opens with Tr0ub4dor&3x.", "Rows\x1b[2J on Sundays"],
    "tags": [("tea", "morning"), (), ("sport",)],
    "source": ["chat", "mail\nx", None],
}


@pytest.fixture
def look(access, on_request):
    mf.create_memories(access, pd.DataFrame(ROWS), progress=False)
    return on_request


def test_lists_show_texts_only_where_they_are_asked_for(look):
    masked = look("list")
    assert len(masked.stdout.splitlines()) == 3
    assert not any(word in masked.stdout for word in ("tea", "Tr0ub", "Rows", "Door"))
    assert "3 memories" in masked.stderr
    shown = look("list", "--with-text")
    assert "Morning tea" in shown.stdout
    assert "Rows\\x1b[2J on Sundays" in shown.stdout
    assert len(shown.stdout.splitlines()) == 3
    one = look("list", "--tag", "sport", "--json", "--with-text")
    assert [each["tags"] for each in json.loads(one.stdout)] == [["sport"]]
    assert "beyond --limit" in look("list", "--limit", "2").stderr


@pytest.mark.parametrize(("text", "n"), [("GREEN TEA", 1), ("door", 1), ("nothing", 0)])
def test_a_search_is_the_services(look, text, n):
    found = json.loads(look("search", text, "--json").stdout)
    assert len(found) == n
    assert all(each["content"].endswith("characters)") for each in found)
    assert len(look("search", text).stdout.splitlines()) == n


def test_one_memory_is_shown_by_the_beginning_of_its_id(look):
    door = json.loads(look("search", "door", "--json").stdout)[0]["id"]
    for given in (door, door[:12].upper()):
        masked = look("show", given)
        assert door in masked.stdout
        assert "Tr0ub" not in masked.stdout
    shown = look("show", door, "--with-text")
    assert "The door opens with Tr0ub4dor&3x." in shown.stdout
    assert json.loads(look("show", door, "--json").stdout)["n_tags"] == 0
    missing = look("show", "zzz", code=1)
    assert "`memframe list` shows the ids" in missing.stderr


def test_letters_that_an_output_has_not_are_escaped(settings, access, tmp_path):
    mf.create_memories(
        access, pd.DataFrame({"title": ["Tea \u2603"], "content": ["Likes it"]}), progress=False
    )
    mf.export_memories(access, tmp_path / "all.csv")
    of_request = ["--request", access.request_id]
    runner = CliRunner(charset="cp1252")
    shown = runner.invoke(main, ["list", "--with-text", *of_request])
    assert "Tea \\u2603" in shown.stdout
    planned = runner.invoke(main, ["plan", "--delete", str(tmp_path / "all.csv"), "--json", *of_request])
    assert json.loads(planned.stdout_bytes)["changes"][0]["before"]["title"] == "Tea \u2603"


def test_quiet_leaves_results_and_errors(call, look, access):
    memories = look("list")
    quiet = call("-q", "list", "--request", access.request_id)
    assert (quiet.stdout, quiet.stderr) == (memories.stdout, "")
    missing = call("--quiet", "show", "zzz", "--request", access.request_id, code=1)
    assert missing.stderr == look("show", "zzz", code=1).stderr
    assert "-q, --quiet" in call("--help").stdout


def test_the_completion_that_help_names_completes_commands(call):
    assert 'eval "$(_MEMFRAME_COMPLETE=bash_source memframe)"' in call("--help").stdout
    for wanted, shown in (
        ({"_MEMFRAME_COMPLETE": "bash_source"}, "_memframe_completion"),
        (
            {"_MEMFRAME_COMPLETE": "bash_complete", "COMP_WORDS": "memframe au", "COMP_CWORD": "1"},
            "plain,audit\n",
        ),
    ):
        assert shown in call(env=wanted, prog_name="memframe").stdout
