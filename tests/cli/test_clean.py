"""`memframe clean`: from a person's file to a clean one, by a script, by a plan, in place and back."""

import json
import re
import shlex
import shutil
import subprocess
import sys

import pexpect
import pytest

import memframe as mf
from tests.cli.conftest import invoke
from tests.rows import assert_same, memories_of

NOTES = """\
# Ada
- Likes green tea with milk
- Door code: 2580#
- Rows on the lake on Sundays
- Likes green tea with milk
"""
CLEAN = NOTES.replace("2580#", "[redacted: access code]").replace(
    "Sundays\n- Likes green tea with milk\n", "Sundays\n"
)


@pytest.fixture
def notes(folder):
    path = folder / "MEMORY.md"
    path.write_text(NOTES)
    path.chmod(0o640)
    return path


def test_a_copy_is_written_beside_and_the_file_stays(notes, folder):
    done = invoke("clean", "MEMORY.md")
    assert notes.read_text() == NOTES
    copy = folder / "MEMORY.cleaned.md"
    assert copy.read_text() == CLEAN
    assert copy.stat().st_mode & 0o777 == 0o640
    assert "Clean copy: MEMORY.cleaned.md" in done.stdout
    assert "2580" not in done.output
    assert "already exists" in invoke("clean", "MEMORY.md", code=1).stderr
    invoke("clean", "MEMORY.md", "--force")
    invoke("clean", "MEMORY.md", "--out", "clean.md", "--accept", "exact_duplicate")
    assert (folder / "clean.md").read_text() == CLEAN.replace("[redacted: access code]", "2580#")
    assert "Nothing to clean" in invoke("clean", "MEMORY.cleaned.md").stdout


@pytest.mark.skipif(not shutil.which("git"), reason="git applies the patch")
def test_a_patch_applies_and_shows_no_secret(notes, folder):
    shown = invoke("clean", "MEMORY.md", "--diff")
    assert "2580" not in shown.output
    assert shown.stdout.startswith("--- a/MEMORY.md\n+++ b/MEMORY.md\n@@ -1,5 +1,4 @@\n # Ada\n")
    assert "1 patch, 1 delete; nothing was written." in shown.stderr
    assert [path.name for path in folder.iterdir() if path.is_file()] == ["MEMORY.md"]
    notes.write_text(NOTES.replace("2580#", "unknown"))
    (folder / "a.patch").write_text(invoke("clean", "MEMORY.md", "--diff").stdout)
    subprocess.run([shutil.which("git"), "apply", "a.patch"], check=True, cwd=folder)
    assert notes.read_text() == CLEAN.replace("[redacted: access code]", "unknown")


def test_on_a_terminal_a_patch_is_in_colours_and_nothing_in_it_is_obeyed(notes):
    notes.write_text(NOTES + "- Sings\x1b[2J on Mondays\n")
    command = ["-m", "memframe", "clean", str(notes), "--diff"]
    shown, status = pexpect.run(shlex.join([sys.executable, *command]), withexitstatus=True, timeout=60)
    assert status == 0
    assert b"\x1b[31m-- Door code: " in shown
    assert b"\x1b[32m+- Door code: [redacted: access code]\x1b[0m" in shown
    assert b"\x1b[2J" not in shown
    assert b"- Sings\\x1b[2J on Mondays" in shown


def test_a_file_is_changed_in_place_and_taken_back(notes, folder):
    done = invoke("clean", "MEMORY.md", "--in-place", "--json")
    backup = json.loads(done.stdout)["backup"]
    assert notes.read_text() == CLEAN
    assert notes.stat().st_mode & 0o777 == 0o640
    assert b"2580" not in (folder / backup).read_bytes()
    invoke("undo", backup)
    assert notes.read_text() == NOTES
    invoke("clean", "MEMORY.md", "--in-place")
    notes.write_text(CLEAN + "- new\n")
    assert (
        "changed since it was cleaned"
        in invoke("undo", sorted((folder / "state").rglob("*.backup"))[-1], code=3).stderr
    )
    assert notes.read_text() == CLEAN + "- new\n"
    assert "2 backups of files removed" in invoke("runs", "--purge", "0").stderr


def test_a_saved_plan_is_carried_out_unless_the_file_changed(notes, folder):
    done = invoke("review", "--file", "MEMORY.md", "--accept", "secret/access_code", "--out", "clean.plan")
    assert re.search(r"To apply it: memframe clean \S*MEMORY.md --plan clean.plan\n", done.stdout)
    invoke("clean", "MEMORY.md", "--plan", "clean.plan")
    assert (folder / "MEMORY.cleaned.md").read_text() == NOTES.replace("2580#", "[redacted: access code]")
    notes.write_text(NOTES.replace("Door", "Cellar door"))
    assert (
        "this plan is stale" in invoke("clean", "MEMORY.md", "--plan", "clean.plan", "--force", code=3).stderr
    )
    (folder / "b.md").write_text(NOTES)
    assert "is for " in invoke("clean", "b.md", "--plan", "clean.plan", code=1).stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("MEMORY.md", "--accept", "nonsense"), 1, "there is no check 'nonsense': the nearest is"),
        (("MEMORY.md", "--in-place", "--out", "x"), 2, "--out writes a copy and --in-place"),
        (("MEMORY.md", "--plan", "x", "--accept", "secret"), 2, "--plan is already decided"),
        (("MEMORY.md", "--out", "MEMORY.md"), 1, "is the file itself"),
        (("a.json",), 1, "is JSON that was encoded twice"),
        (("link.md", "--in-place"), 1, "is a link"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name(notes, folder, arguments, code, words):
    (folder / "a.json").write_text(json.dumps('[{"content": "Likes tea"}]'))
    (folder / "link.md").symlink_to("MEMORY.md")
    assert words in invoke("clean", *arguments, code=code).output
    assert notes.read_text() == NOTES


def test_undo_of_a_run_needs_its_request(folder, monkeypatch):
    monkeypatch.delenv("MEMFRAME_REQUEST", raising=False)
    assert "Missing option '--request'" in invoke("undo", "x.journal", code=2).stderr


def test_python_cleans_a_file_as_the_command_does(notes, folder):
    clean = mf.clean_file(notes, dry_run=True)
    assert (clean.out, clean.plan.counts) == (None, {"patch": 1, "delete": 1})
    assert clean.diff == invoke("clean", "MEMORY.md", "--diff").stdout
    desk = mf.review(mf.audit_memories(mf.read_memories(notes)))
    desk.accept(desk.queue[desk.queue["check"] == "secret"])
    clean = mf.clean_file(notes, plan=desk.plan(), in_place=True)
    assert notes.read_text() == NOTES.replace("2580#", "[redacted: access code]")
    clean.undo()
    assert notes.read_text() == NOTES


@pytest.mark.parametrize("other", ["[{t!r}]", '["{t} again"]'])
def test_a_redacted_text_that_stands_beside_the_memories_is_named(folder, other):
    note = other.format(t="Xk%9wQe!mvSG42").replace("'", '"')
    (folder / "a.jsonl").write_text(
        '{"content": "Likes tea"}\n{"content": "VM password: Xk%9wQe!mvSG42", "notes": ' + note + "}\n"
    )
    said = invoke("clean", "a.jsonl").stdout
    assert "1 redacted text is still in another place, such as line 2 of a.jsonl" in said
    audit = mf.audit_memories(mf.read_memories(folder / "a.jsonl"))
    assert "Columns that are no fields of a memory: notes." in audit.not_checked
    assert "Xk%9" not in said


def test_nothing_else_is_named_once_all_is_redacted(notes, folder):
    assert "in another place" not in invoke("clean", "MEMORY.md").stdout


def test_an_export_that_nothing_reads_again_gets_a_list_of_changes(call, folder):
    blocks = [
        {"id": f"block-{n}", "label": "human", "value": text} for n, text in enumerate(["PIN 4711", "Rows"])
    ]
    (folder / "agent.af").write_text(json.dumps({"agents": [{"name": "x"}], "blocks": blocks}))
    refused = call("clean", "agent.af", code=1)
    assert "a file of letta is not changed in place" in refused.stderr
    assert "--changes FILE lists what to change" in refused.stderr
    listed = call("clean", "agent.af", "--changes", "a.json", "--changes", "a.csv", "--json")
    assert json.loads(listed.stdout)["changes"] == ["a.json", "a.csv"]
    (new,) = json.loads((folder / "a.json").read_text())["set"]
    assert (new["id"], new["field"]) == ("block-0", "content")
    assert "4711" not in (folder / "a.csv").read_text() + (folder / "a.json").read_text() + listed.output
    call("clean", "agent.af", "--changes", "agent.af", code=1)
    call("clean", "agent.af", "--changes", "b.csv", "--diff", code=2)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.parquet", "folder", "notes.md"])
def test_an_archive_of_memframe_is_cleaned_as_what_it_is(folder, name):
    texts = ["Door code: 2580#", "Likes tea, and soup", "=x;'=y", None, "Likes tea, and soup"]
    rows = [
        {"id": f"m{n}", "user_id": "u", "content": text, "tags": [f"a{n}"][: n % 4]}
        for n, text in enumerate(texts)
    ]
    memories = memories_of([row | {"title": "=1", "created_at": "2026-01-02T03:04:05Z"} for row in rows])
    mf.export_memories(memories, folder / name)
    clean = mf.clean_file(folder / name)
    assert clean.plan.counts == {"patch": 1, "delete": 1}
    wanted = memories[:-1].copy()
    wanted.loc[0, "content"] = "Door code: [redacted: access code]"
    assert_same(mf.load_archive(clean.out), wanted)
    (folder / "folder" / "_history").mkdir(parents=True)
    if name == "folder":
        with pytest.raises(mf.FrameError, match="keeps states of the past"):
            mf.clean_file(folder / name, in_place=True)


def test_a_sealed_archive_is_cleaned_at_its_service(folder, access):
    mf.export_memories(access, folder / "sealed.parquet", sealed=True)
    with pytest.raises(mf.FrameError, match="clean the memories of the service, and refresh the archive"):
        mf.clean_file(folder / "sealed.parquet")


def test_a_folder_of_notes_is_cleaned_as_one(folder):
    (folder / "notes" / "deep").mkdir(parents=True)
    for name, text in (("a.md", "Likes tea"), ("deep/b.md", "Likes tea"), ("c.md", "- Rows\n- Swims\n")):
        (folder / "notes" / name).write_text(f"---\ntitle: x\n---\n{text}" if text == "Likes tea" else text)
    (folder / "notes" / "a.md").chmod(0o600)
    clean = mf.clean_file(folder / "notes")
    assert clean.out == folder / "notes.cleaned"
    assert sorted(str(path.relative_to(clean.out)) for path in clean.out.rglob("*.md")) == ["a.md", "c.md"]
    assert (clean.out / "a.md").stat().st_mode & 0o777 == 0o600
    clean = mf.clean_file(folder / "notes", in_place=True)
    assert not (folder / "notes" / "deep" / "b.md").exists()
    clean.undo()
    assert (folder / "notes" / "deep" / "b.md").read_text() == "---\ntitle: x\n---\nLikes tea"


def test_a_file_with_another_name_is_not_replaced(notes, folder):
    (folder / "other.md").hardlink_to(notes)
    with pytest.raises(mf.FrameError, match="has other names"):
        mf.clean_file(notes, in_place=True)
    assert (folder / "other.md").read_text() == NOTES


def test_a_secret_in_a_heading_or_frontmatter_goes(folder):
    key = "sk-ant-api03-" + "aB3dE5gH7jK9" * 7
    (folder / "a.md").write_text(f"# Key: {key}\n- Rows\n- Swims\n# Tea\n- Likes tea\n")
    clean = mf.clean_file(folder / "a.md")
    assert clean.plan.left.empty
    assert clean.out.read_text() == "# Key: [redacted: token]\n- Rows\n- Swims\n# Tea\n- Likes tea\n"
    assert key not in clean.diff
    (folder / "b.md").write_text(f"---\ntitle: Key {key}\n---\nRows\n")
    assert (
        mf.clean_file(folder / "b.md").out.read_text() == '---\ntitle: "Key [redacted: token]"\n---\nRows\n'
    )


def test_what_the_file_has_no_text_for_is_left_and_named(folder):
    entity = {
        "name": "Key sk-ant-api03-" + "aB3dE5gH7jK9" * 7,
        "entityType": "p",
        "observations": ["Rows", "PIN 4711"],
    }
    (folder / "a.jsonl").write_text(json.dumps(entity))
    clean = mf.clean_file(folder / "a.jsonl")
    assert "4711" not in (folder / "a.cleaned.jsonl").read_text()
    assert clean.plan.left["reason"].str.contains("no text of this memory alone for title").any()
    assert "aB3dE5gH7jK9" not in clean.diff
