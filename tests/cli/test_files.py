"""`memframe audit` and `report` of files that no service holds."""

import json

import pytest

import memframe as mf

EXPORT = {
    "results": [
        {"id": "7", "memory": "The wifi password is Tr0ub4dor&3x.", "user_id": "ada"},
        {"id": "8", "memory": "Ada drinks green tea every morning.", "user_id": "ada"},
        {
            "id": "9",
            "memory": "Ada drinks green tea every morning.",
            "user_id": "ada",
            "created_at": "2024-05-01T09:00",
        },
    ],
    "relations": [{}],
}


@pytest.fixture
def export(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "export.json").write_text(json.dumps(EXPORT))
    return ("--file", "export.json", "--zone", "Europe/Paris")


def test_a_file_is_audited_without_a_service(call, export, tmp_path, monkeypatch):
    monkeypatch.setenv("MEMFRAME_REQUEST", "of somebody")
    audited = call(
        "audit", *export, "--out", "audit.json", "--html", "audit.html", "--fail-on", "high", code=6
    )
    assert "3 memories read as mem0, as of" in audited.stdout
    assert "Left out: relation (1, first at " in audited.stderr
    assert "What was left out of the file: relation (1)." in audited.stdout
    assert "write these memories to a service first" in audited.stdout
    assert "write these memories to a service first" in (tmp_path / "audit.html").read_text()
    found = json.loads((tmp_path / "audit.json").read_text())["findings"]
    assert {one["id"] for one in found if one["check"] == "exact_duplicate"} <= {"8", "9"}
    assert "Tr0ub" not in audited.output + (tmp_path / "audit.html").read_text()
    call("report", "page.html", *export)
    by_json = call("audit", *export, "--json")
    assert json.loads(by_json.stdout)["n_memories"] == 3


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--file", "export.json"], 1, "is a time without a zone"),
        (["--file", "export.json", "--format", "letta"], 1, "is not of the format 'letta'"),
        (["--file", "gone.json"], 2, "does not exist"),
        (["--file", "export.json", "--request", "7c9e"], 2, "Give one of"),
        (["--request", "7c9e", "--zone", "UTC"], 2, "--format and --zone are about a file"),
        ([], 2, "--file PATH"),
    ],
)
def test_wrong_options_are_refused(call, export, arguments, code, words):
    refused = call("audit", *arguments, code=code)
    assert words in refused.stderr


def test_a_cleanup_needs_a_service(call, export, access, tmp_path):
    memories = mf.read_memories("[2024-05-01] - Likes tea\n[2024-05-02] - Likes tea\n")
    audit = mf.audit_memories(memories)
    assert memories["id"].isna().all()
    assert set(audit.findings["id"].dropna()) <= {"row 0", "row 1"}
    with pytest.raises(mf.PlanError, match=r"not of memories in a service.*push_memories"):
        mf.plan_cleanup(access, audit)
    call("audit", *export, "--out", "audit.json")
    planned = call("plan", "--from-audit", "audit.json", "--request", access.request_id, code=1)
    assert "not of memories in a service" in planned.stderr
    mf.push_memories(access, memories, progress=False)
    stored = mf.audit_memories(mf.load_memories(access, progress=False))
    assert mf.plan_cleanup(access, stored).counts == {"delete": 1}
