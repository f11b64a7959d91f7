"""`memframe audit`, `report` and `plan --from-audit`, of a service, an archive or a file."""

import json
from pathlib import Path

import pandas as pd
import pytest

import memframe as mf
from tests.audit.test_judge import knowing
from tests.chat_stub import ChatStub, said

TEA = "Ada has drunk green tea every morning since 2019."
WIFI = "The wifi password is Tr0ub4dor&3x."
HEART = "heartbeat ok 2026-01-02T03:00:00Z"


@pytest.fixture
def request_of(access, folder):
    """The options that name a user with something of everything."""
    rows = {
        "content": [TEA, TEA, WIFI, HEART, "Reach Bo at bo@example.org."],
        "tags": [("tea",), ("morning",), (), (), ()],
        "source": "chat",
    }
    mf.create_memories(access, pd.DataFrame(rows), progress=False)
    return "--request", access.request_id


@pytest.fixture
def plan(call, request_of):
    """Plans the proposals of an audit of now with more options, and returns what is printed as JSON."""
    call("audit", *request_of, "--out", "audit.json")
    from_audit = ("--from-audit", "audit.json")
    return lambda *options, **given: call("plan", *from_audit, *request_of, "--json", *options, **given)


def counts_of(planned):
    return json.loads(planned.stdout)["counts"]


def contents(access):
    return sorted(mf.load_memories(access, progress=False).content)


def test_an_audit_is_kept_planned_applied_and_taken_back(call, access, request_of):
    before = contents(access)
    audited = call(
        "audit", *request_of, "--out", "audit.json", "--html", "audit.html", "--fail-on", "high", code=6
    )
    planned = call("plan", "--from-audit", "audit.json", *request_of, "--out", "cleanup.plan")
    assert "+The wifi password is [redacted: password]." in planned.stdout
    assert "--confirm 2" in planned.stderr
    assert contents(access) == before
    applied = call("apply", "cleanup.plan", "--confirm", 2, *request_of, "--journal", "run.journal", "--json")
    left = [TEA, "Reach Bo at bo@example.org.", "The wifi password is [redacted: password]."]
    assert contents(access) == left
    call("audit", *request_of, "--fail-on", "high")
    undone = call("undo", "run.journal", *request_of, "--out", "undo.plan")
    assert "Tr0ub" not in audited.output + planned.output + applied.output + undone.output
    call("apply", "undo.plan", *request_of)
    assert contents(access) == before


def test_json_of_an_audit_is_as_good_and_fails_as_it_should(call, plan, request_of, tmp_path):
    audited = call("audit", *request_of, "--json", "--fail-on", "medium", code=6)
    (tmp_path / "audit.json").write_bytes(audited.stdout_bytes)
    assert json.loads(audited.stdout)["n_memories"] == 5
    planned = plan("--actions", "personal_data=redact, junk=review")
    assert counts_of(planned) == {"patch": 3, "delete": 1}
    assert "Tr0ub" not in planned.output


def test_deleting_on_wording_alone_needs_the_share_as_its_confirmation(access, request_of, call, plan):
    noise = {"content": ["Memory updated successfully.", "Cron job nightly-sync completed successfully."]}
    mf.create_memories(access, pd.DataFrame(noise), progress=False)
    call("audit", *request_of, "--out", "audit.json")
    refused = plan("--actions", "junk=delete", code=1)
    assert "2 of 7 memories (28.6 %)" in refused.stderr
    assert "confirm with --max-share 0.29 (now it is 0.05)" in refused.stderr
    plan("--max-share", "29", code=2)


def test_what_changed_since_the_audit_is_planned_as_it_is_now(call, access, request_of, plan):
    mf.create_memories(access, pd.DataFrame({"content": ["The alarm PIN is 4071.", "ok"]}), progress=False)
    assert counts_of(plan()) == {"patch": 2, "delete": 2}, "what is new was not audited"
    memories = mf.load_memories(access, progress=False)
    edits = {WIFI: f"New router! {WIFI}", HEART: "Ada listens to her heart."}
    mf.push_memories(access, memories.assign(content=memories.content.replace(edits)), progress=False)
    planned = plan("--out", "cleanup.plan")
    assert "1 finding left out: not found any more" in planned.stderr
    call("apply", "cleanup.plan", "--confirm", "1", *request_of)
    moved = {"New router! The wifi password is [redacted: password].", "Ada listens to her heart."}
    assert moved <= {*contents(access)}


def test_an_archive_is_audited_plain_or_sealed(call, access, request_of, monkeypatch, tmp_path):
    call("export", "mine.csv", *request_of)
    said = call("audit", "--archive", "mine.csv", "--check", "tags", "--check", "personal_data").output
    listed = said[said.index("Not looked for") :]
    assert "Names and postal addresses" in listed
    assert "they need the user's list of tags" in listed
    assert "(" not in listed, "no call of Python's"
    both = call("audit", "--archive", "mine.csv", *request_of, code=2)
    assert "not both" in both.stderr

    call("export", "mine", "--sealed", *request_of)
    closed = call("audit", "--archive", "mine", code=1)
    assert "give the user's --request, or the encryption_key in a --key-file." in closed.stderr
    by_request = call("audit", "--archive", "mine", *request_of, "--json")
    assert json.loads(by_request.stdout)["n_memories"] == 5, by_request.output
    (tmp_path / "key").write_text(access.credentials.encryption_key.reveal() + "\n")
    by_key = call("audit", "--archive", "mine", "--key-file", "key", "--fail-on", "high", code=6)
    assert by_key.stdout.startswith("5 memories of user")
    call("audit", "--key-file", "key", *request_of, code=2)
    (tmp_path / "key").write_text("ab\ncd\n")
    for file in ("key", "abcdef0123456789"):
        refused = call("audit", "--archive", "mine", "--key-file", file, code=1)
        assert "the file of --key-file" in refused.stderr
        assert "abcdef0123456789" not in refused.stderr
    monkeypatch.setenv("MEMFRAME_REQUEST", access.request_id)
    call("audit", "--archive", "mine.csv")


def test_what_cannot_be_is_said(call, request_of, plan, tmp_path):
    (tmp_path / "none.json").write_text("{}")
    from_audit = ("plan", "--from-audit", "audit.json")
    for arguments, code, says in (
        (("plan", "--from-audit", "none.json", *request_of), 1, "none.json"),
        ((*from_audit, *request_of, "--actions", "delte"), 1, "delete, merge, redact, strip, retag, rescale"),
        ((*from_audit, "edited.csv", *request_of), 2, "EDITED or --from-audit"),
        (from_audit, 2, "give --request"),
        (("plan", "edited.csv", *request_of, "--actions", "delete"), 2, "--from-audit"),
        ((*from_audit, *request_of, "--actions", "delete,junk=review"), 2, "either names"),
        ((*from_audit, *request_of, "--max-changes", "1"), 1, "1 are allowed: look at what was given"),
        (("audit", *request_of, "--judge", "http://127.0.0.1:9/v1"), 2, "--model"),
        (("audit", *request_of, "--send"), 2, "--judge"),
        (("audit", *request_of, "--judge", "https://example.com/v1", "--model", "m"), 1, "--send"),
    ):
        answer = call(*arguments, code=code)
        assert says in answer.output


def test_a_judge_is_asked_and_counts_only_where_it_is_told_to(call, request_of, access, tmp_path):
    steak = ["Bo eats steak every Friday.", "Bo has never in his life had a steak."]
    mf.create_memories(access, pd.DataFrame({"content": steak, "source": "chat"}), workers=1, progress=False)
    key = tmp_path / "key"
    key.write_text("sesame-9f8e7d6c5b4a\n")
    key.chmod(0o600)

    def verdict_of(newer, older):
        return "contradicts" if older and "Bo eats" in older else knowing(newer, older)

    with ChatStub(otherwise=said(verdict_of)) as stub:
        judge = ("--judge", stub.base_url, "--model", "m", "--judge-key-file", str(key))
        audit = ("audit", *request_of, *judge, "--check", "version", "--fail-on", "low")
        quiet = call(*audit, "--html", "a.html")
        for page in (quiet.output, (tmp_path / "a.html").read_text()):
            assert "it answered 20 of 20 questions right" in page
        assert stub.requests[0].headers["Authorization"] == "Bearer sesame-9f8e7d6c5b4a"
        counted = call(*audit, "--count-judged", "--json", code=6)
        assert {"contradicts"} <= {one["verdict"] for one in json.loads(counted.stdout)["judged"]}


# Files that no service holds

EXPORT = {
    "results": [
        {"id": "7", "memory": "The wifi password is Tr0ub4dor&3x.", "user_id": "ada"},
        {"id": "8", "memory": "Ada drinks green tea every morning.", "user_id": "ada"},
        {"id": "9", "memory": "Ada drinks green tea every morning.", "created_at": "2024-05-01T09:00"},
    ],
    "relations": [{}],
}


@pytest.fixture
def export(folder):
    (folder / "export.json").write_text(json.dumps(EXPORT))
    return ("--file", "export.json", "--zone", "Europe/Paris")


def test_a_file_is_audited_without_a_service(call, export, tmp_path, monkeypatch):
    monkeypatch.setenv("MEMFRAME_REQUEST", "of somebody")
    wanted = ("--out", "audit.json", "--html", "audit.html", "--fail-on", "high")
    audited = call("audit", *export, *wanted, code=6)
    assert "3 memories read as mem0, as of" in audited.stdout
    assert "read as mem0" not in audited.stderr
    assert "Left out: relation (1, first at " in audited.stderr
    assert "What was left out of the file: relation (1)." in audited.stdout
    assert "`memframe clean` applies this to the file" in audited.stdout
    assert "`memframe clean` applies this to the file" in (tmp_path / "audit.html").read_text()
    found = json.loads((tmp_path / "audit.json").read_text())["findings"]
    assert {one["id"] for one in found if one["check"] == "exact_duplicate"} <= {"8", "9"}
    assert "Tr0ub" not in audited.output + (tmp_path / "audit.html").read_text()
    by_json = call("audit", *export, "--json")
    assert json.loads(by_json.stdout)["n_memories"] == 3


def test_several_files_are_audited_together_and_findings_name_file_and_line(call, folder):
    (folder / "MEMORY.md").write_text(f"# Rules\n\n- Rows on Sunday\n- {WIFI}\n")
    (folder / "notes").mkdir()
    (folder / "notes" / "a.md").write_text("- Has a cat\n- Rows on Sunday\n")
    (folder / "notes" / "b.md").write_text("- Swims\n- Sings\n")
    (folder / "memory.jsonl").write_text('{"content": "Eats"}\n{"content": "PIN 4711"}\n')
    files = ("MEMORY.md", "notes", "memory.jsonl")
    audited = call("audit", *files, "--fail-on", "medium", "--sarif", "a.sarif", code=6)
    assert "8 memories read as markdown and table, as of" in audited.stdout
    assert f"\n        {Path('MEMORY.md')}:4 " in audited.stdout
    assert "\n        memory.jsonl:2 " in audited.stdout
    results = json.loads((folder / "a.sarif").read_text())["runs"][0]["results"]
    uris = {
        (each["ruleId"], each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
        for each in results
    }
    assert {("secret", "MEMORY.md"), ("secret", "memory.jsonl"), ("exact_duplicate", "notes/a.md")} <= uris
    found = json.loads(call("audit", *files, "--json").stdout)["findings"]
    places = {(one["check"], one["file"], one["line"]) for one in found}
    assert {
        ("secret", "MEMORY.md", 4),
        ("exact_duplicate", str(Path("notes/a.md")), 2),
        ("missing", None, None),
    } <= places
    both = call("audit", "--file", "MEMORY.md", "--file", "memory.jsonl", "--json", "--check", "secret")
    assert json.loads(both.stdout)["n_memories"] == 4
    call("audit", "notes", "--fail-on", "medium")


def test_an_archive_is_audited_by_itself(call, folder):
    mf.export_memories(mf.read_memories("- Likes tea\n- Rows\n"), folder / "a.jsonl")
    (folder / "MEMORY.md").write_text("- Swims\n- Sings\n")
    assert "read it separately" in call("audit", "MEMORY.md", "a.jsonl", code=1).stderr
    call("audit", "--file", "a.jsonl")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--file", "export.json"], 1, "is a time without a zone"),
        (["--file", "gone.json"], 2, "does not exist"),
        (["--file", "export.json", "--request", "7c9e"], 2, "Give one of"),
        (["--request", "7c9e", "--sarif", "a.sarif"], 2, "give the files with --file PATH"),
        (["--request", "7c9e", "--zone", "UTC"], 2, "--format and --zone describe a file"),
        ([], 2, "--file PATH"),
    ],
)
def test_wrong_options_are_refused(call, export, arguments, code, words):
    refused = call("audit", *arguments, code=code)
    assert words in refused.stderr


def test_the_former_command_names_the_new_one(call, export):
    refused = call("report", "page.html", *export, code=1)
    assert "is now `memframe audit --html PATH`" in refused.stderr


@pytest.mark.parametrize(("wrong", "nearest"), [(["audt"], "audit"), (["service", "lst"], "list")])
def test_an_unknown_command_is_refused_with_the_nearest(call, wrong, nearest):
    assert f"There is no command '{wrong[-1]}'. The nearest is '{nearest}'." in call(*wrong, code=2).stderr


def test_sources_are_listed_where_there_are_several(call, folder):
    def lines_of(*sources):
        rows = [{"memory": f"Door code: 258{n}#", "source": source} for n, source in enumerate(sources)]
        (folder / "export.json").write_text(json.dumps([*rows, {"memory": "Likes tea", "source": "tidy"}]))
        return call("audit", "--file", "export.json", "--check", "secret").stdout.splitlines()

    lines = lines_of("chat", "chat", *(f"app {n}" for n in range(9)))
    place = lines.index("Memories with findings by source, the worst first:")
    assert lines[place + 1] == "chat                              2 of 2   2 high"
    assert lines[place + 9] == "and 2 more sources"
    assert "tidy" not in "".join(lines)
    assert "by source" not in "".join(lines_of("tidy"))


def test_an_audit_of_a_file_is_not_planned_at_a_service(call, export, access):
    call("audit", *export, "--out", "audit.json")
    planned = call("plan", "--from-audit", "audit.json", "--request", access.request_id, code=1)
    assert "not of memories in a service" in planned.stderr
    with pytest.raises(mf.PlanError, match=r"not of memories in a service.*plan_cleanup\(audit\)"):
        mf.plan_cleanup(access, "audit.json")
