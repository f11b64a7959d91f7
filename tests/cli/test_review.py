"""`memframe review`: one by one in a terminal, and by ids in a script."""

import json
import re
import sys
from contextlib import contextmanager

import pexpect
import pytest

import memframe as mf
from tests.cli.conftest import invoke
from tests.rows import memories_of

HOSTILE = "Likes tea\x1b[2J\u202eevil and <script>alert(1)</script>"
ROWS = [
    {"memory": "GitHub password: hunter2!xQ9"},
    {"memory": "Ada has drunk green tea every morning since 2019."},
    {"memory": "Ada has drunk green tea every morning since 2019."},
    {"memory": f"password: 7Hk%9wQe!{HOSTILE}"},
]


@pytest.fixture
def foreign(folder):
    path = folder / "memories.json"
    path.write_text(json.dumps([{"id": f"x{n}", **row} for n, row in enumerate(ROWS)]))
    return path


def queue_of(*options):
    return json.loads(invoke("review", *options, "--json").stdout)


def test_a_script_lists_decides_and_resumes(foreign):
    options = ("--file", foreign, "--decisions", "ilka.decisions")
    queue = queue_of(*options)["queue"]
    (copy,) = [row["proposal"] for row in queue if row["check"] == "exact_duplicate"]
    invoke("review", *options, "--accept", copy, "--reject", "secret/password", "--note", "ours")
    invoke("review", *options, "--reject", "planted/bidirectional")
    again = {row["proposal"]: (row["decision"], row["note"]) for row in queue_of(*options)["queue"]}
    assert again[copy] == ("accepted", "ours")
    assert sorted({decision for decision, _ in again.values()}) == ["accepted", "rejected"]
    listed = invoke("review", *options, "--list").stdout
    assert "hunter2" not in listed
    assert "\x1b" not in listed
    assert "100 % of 1 right" in invoke("review", *options, "--stats").stdout


@pytest.mark.parametrize("name", ["exact_duplicate", "exact_duplicate/copy", None])
def test_proposals_are_named_by_check_kind_or_id_as_in_clean(foreign, name):
    options = ("--file", foreign)
    (copy,) = [row["proposal"] for row in queue_of(*options)["queue"] if row["check"] == "exact_duplicate"]
    invoke("review", *options, "--accept", name or copy, "--out", "one.plan")
    cleaned = invoke("clean", foreign, "--accept", name or copy, "--diff", "--json").stdout
    assert mf.Plan.load("one.plan").counts == {"delete": 1}
    assert json.loads(cleaned)


def test_what_is_not_there_is_named(foreign):
    done = invoke("review", "--file", foreign, "--decisions", "d", "--accept", "nothing", code=1)
    assert "there is no check 'nothing': the nearest is" in done.output
    done = invoke("review", "--file", foreign, "--decisions", "d", "--accept", "0f0f", code=1)
    assert "there is no proposal '0f0f'" in done.output
    done = invoke("review", "--file", foreign, "--accept", "nothing", code=2)
    assert "--decisions" in done.output


def test_a_plan_is_saved_with_what_was_accepted(on_request, access, folder):
    mf.create_memories(
        access, mf.read_memories(json.dumps([{"memory": row["memory"]} for row in ROWS[:3]])), progress=False
    )
    done = on_request(
        "review", "--decisions", "d", "--accept", "exact_duplicate/copy", "--out", "cleanup.plan"
    )
    command = f"memframe apply cleanup.plan --confirm 1 --request {access.request_id}"
    assert f"Saved to cleanup.plan: 1 change. To apply it: {command}\n" in done.stdout
    plan = mf.Plan.load("cleanup.plan")
    assert plan.counts == {"delete": 1}
    on_request("review", "--plan", "cleanup.plan", "--accept", "plan/delete", "--out", "again.plan")
    assert mf.Plan.load("again.plan").records == plan.records


def test_a_person_decides_by_keys_in_a_terminal(foreign):
    command = ["-m", "memframe", "review", "--file", str(foreign), "--decisions", "ilka.decisions"]
    env = {
        "TERM": "xterm",
        "HOME": str(foreign.parent),
        "XDG_STATE_HOME": str(foreign.parent / "state"),
        "PATH": "/usr/bin:/bin",
    }
    with pexpect.spawn(
        sys.executable, command, encoding="utf-8", timeout=60, env=env, dimensions=(50, 200)
    ) as terminal:
        terminal.expect(r"4 proposals left")
        terminal.expect(r"\?\]")
        assert "since 2019" in terminal.before
        terminal.sendline("?")
        terminal.expect("explain the keys")
        terminal.expect(r"\?\]")
        terminal.sendline("y\ny\ny")  # typed ahead: nobody has seen what the second would accept
        terminal.expect(r"3 proposals left")
        terminal.expect(r"\?\]")
        assert "hunter2" not in terminal.before
        assert "7Hk" not in terminal.before
        assert "\x1b[2J" not in terminal.before
        terminal.sendline("n")
        terminal.expect(r"2 proposals left")
        terminal.expect(r"\?\]")
        terminal.sendline("u")
        terminal.expect(r"3 proposals left")
        terminal.expect(r"\?\]")
        terminal.sendline("s")
        terminal.expect(r"hunter2!xQ9|7Hk%9wQe!")
        terminal.expect(r"\?\]")
        assert "\x1b[2J" not in terminal.before
        terminal.sendline("q")
        terminal.expect(pexpect.EOF)
    decisions = [
        row["decision"] for row in queue_of("--file", foreign, "--decisions", "ilka.decisions")["queue"]
    ]
    assert sorted(decisions) == ["", "", "", "accepted"]


def test_the_page_names_decisions_and_no_text(foreign):
    invoke(
        "review",
        "--file",
        foreign,
        "--decisions",
        "d",
        "--reject",
        "secret/password",
        "--note",
        "<b>ours</b>",
        "--html",
        "review.html",
    )
    page = (foreign.parent / "review.html").read_text()
    assert "&lt;b&gt;ours&lt;/b&gt;" in page
    for text in ("hunter2", "green tea", "<script"):
        assert text not in page


def test_editing_opening_a_group_and_putting_off_by_keys_in_a_narrow_terminal(folder):
    said = "Key {n} of the bridge is ssh password: 7Hk%9wQe! as Ada said\x1b[2J, {n} times in the long year of the lake"
    path = folder / "memories.json"
    path.write_text(json.dumps([{"id": f"x{n}", "memory": said.format(n=n)} for n in range(3)]))
    editor = folder / "editor"
    editor.write_text("#!/bin/sh\necho Corrected > $1\n")
    editor.chmod(0o700)
    command = ("review", "--file", path, "--decisions", "ilka.decisions")
    env = {"COLUMNS": "50", "EDITOR": str(editor)}
    seen = invoke(*command, input="g\nl\ne\nu\ne\nq\n", env=env, color=True).output
    plain = re.sub(r"\x1b\[[\d;]*m", "", seen)
    assert "\x1b" not in plain  # colours alone
    assert r"\x1b[2J" in plain
    assert max(map(len, plain.splitlines())) <= 50
    queue = queue_of("--file", path, "--decisions", "ilka.decisions")["queue"]
    assert sorted(row["decision"] for row in queue)[-2:] == ["edited", "later"]


def test_words_choose_proposals_and_all_of_them_are_decided_once_confirmed(folder):
    rows = [{"id": f"x{n}", "memory": f"Write to ada{n}@lake{n}.example"} for n in range(4)]
    rows += [{"id": f"y{n}", "memory": "Likes rowing on the lake"} for n in range(3)]
    path = folder / "memories.json"
    path.write_text(json.dumps(rows))
    options = ("review", "--file", path, "--decisions", "d")

    def decisions():
        return [row["decision"] for row in queue_of("--file", path, "--decisions", "d")["queue"]]

    shown = invoke(*options, input="/\npersonal_data/email\nR\nn\nR\ny\nq\n").output
    assert "4 proposals left with 'personal_data/email'" in shown
    assert shown.count("Reject 4 proposals about 4 memories?") == 2
    assert sorted(decisions()) == ["", *["rejected"] * 4]
    shown = invoke(*options, input="/\nno such words\nA\ny\nu\nA\ny\nq\n").output
    assert "no open proposal with these words" in shown
    assert shown.count("Accept 1 proposal about 2 memories?") == 2
    assert "Exact duplicates (copy): 1" in shown
    assert sorted(decisions()) == ["accepted", *["rejected"] * 4]


def test_memories_of_a_file_are_named_by_their_lines(folder):
    (folder / "MEMORY.md").write_text("- Ada has drunk green tea since 2019.\n" * 2)
    shown = invoke("review", "--file", "MEMORY.md", "--decisions", "d", input="q\n").output
    assert "stays: MEMORY.md:1" in shown
    assert "goes: MEMORY.md:2" in shown


@pytest.mark.parametrize("n_copies", [1, 2])
def test_the_rest_of_a_kind_is_offered_where_there_is_one(folder, n_copies):
    texts = [f"Ada has drunk {kind} tea every morning.\n" for kind in ("green", "black")[:n_copies]]
    (folder / "MEMORY.md").write_text("".join(f"- {text}" for text in (*texts, *texts)))
    shown = invoke("review", "--file", "MEMORY.md", "--decisions", "d", input="q\n").output
    assert ("a: accept 2 of this kind" in shown) == (n_copies > 1)


def test_a_plan_from_an_audit_holds_what_was_accepted_and_says_what_was_left(on_request, access, folder):
    rows = [*ROWS[:3], {"memory": "Likes rowing"}, {"memory": "Likes rowing"}]
    mf.create_memories(access, mf.read_memories(json.dumps(rows)), progress=False)
    on_request("audit", "--out", "audit.json")
    on_request("review", "--audit", "audit.json", "--decisions", "d", "--reject", "secret/password")
    (first, _) = [
        row["proposal"]
        for row in json.loads(on_request("review", "--decisions", "d", "--json").stdout)["queue"]
        if row["check"] == "exact_duplicate"
    ]
    on_request("review", "--decisions", "d", "--accept", first)
    shown = on_request("plan", "--from-audit", "audit.json", "--decisions", "d", "--out", "cleanup.plan")
    assert "leaves out: 1 not decided, 1 rejected" in shown.stdout
    assert mf.Plan.load("cleanup.plan").counts == {"delete": 1}
    (folder / "memframe.toml").write_text(
        f'[protect]\nids = ["{mf.Plan.load("cleanup.plan").records[0].id}"]\n'
    )
    shown = on_request(
        "plan",
        "--from-audit",
        "audit.json",
        "--decisions",
        "d",
        "--policy",
        "memframe.toml",
        "--out",
        "p.plan",
    )
    assert "protected by its id" in shown.stdout
    assert not mf.Plan.load("p.plan").records
    on_request("plan", "--from-audit", "audit.json", "--decisions", "d", "--actions", "delete", code=2)
    audited = on_request("audit", "--decisions", "d", "--fail-on", "high")
    assert "1 settled: 1 rejected" in audited.stdout
    assert "1 accepted, and not applied yet." in audited.stdout


def test_a_policy_makes_an_audit_fail_for_what_is_open_or_for_all(foreign, folder):
    policy = folder / "memframe.toml"
    policy.write_text('[fail]\nseverity = "high"\n')
    options = ("--file", foreign, "--check", "secret", "--policy", policy)
    invoke("audit", *options, code=6)
    invoke("review", "--file", foreign, "--decisions", "d", "--reject", "secret/password")
    invoke("audit", *options, "--decisions", "d")
    policy.write_text('[fail]\nseverity = "high"\nonly_open = false\n')
    invoke("audit", *options, "--decisions", "d", code=6)


ODD = "\x1b[2J\x1b]0;gone\x07\u202etxt\u200b\u2066"


def test_hostile_texts_in_every_field_reach_no_terminal(folder):
    rows = [
        {
            "id": f"x{n}{ODD}",
            "content": f"Ada {ODD} password: 7Hk%9wQe!{n % 4}{ODD}",
            "title": f"title{ODD}",
            "summary": f"summary{ODD}",
            "source": f"source{ODD}",
            "tags": (f"tag{ODD}", "work"),
        }
        for n in range(8)
    ]
    mf.export_memories(memories_of(rows), folder / "memories.jsonl", progress=False)
    keys = "".join(f"{key}\n" for key in "?sglun" * 12)
    for options in ((), ("--list",), ("--stats",), ("--json",)):
        shown = invoke(
            "review", "--file", "memories.jsonl", "--decisions", f"d{len(options)}", *options,
            input=keys if not options else None, color=True,
        ).output  # fmt: skip
        plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
        assert not {*"\x1b\x07\u202e\u200b\u2066"} & {*plain}, options
        if not options:
            assert all(spelled in plain for spelled in (r"\x1b[2J", r"\u202e", r"\u200b", r"\u2066"))
            assert all(name in plain for name in ("title", "summary", "source", "tag"))


@pytest.mark.parametrize("columns", [30, 80])
def test_wide_letters_and_very_long_lines_stay_within_the_terminal(folder, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    content = "記憶" * 300 + " Ada e\u0301" + "x" * 20_000 + "\tend"
    rows = [{"id": name, "content": content, "source": "郵" * 200, "tags": ("茶" * 60,)} for name in "abc"]
    mf.export_memories(memories_of(rows), folder / "wide.jsonl", progress=False)
    lines = invoke(
        "review", "--file", "wide.jsonl", "--decisions", "d", input="g\ny\nn\n"
    ).output.splitlines()
    shown = [line for line in lines if "記" in line or "郵" in line or "xxx" in line or "茶" in line]
    assert len(shown) > 2 * 20_000 / columns  # equal texts are shown once
    widths = [sum(2 if ord(letter) > 0x2E80 else letter != "\u0301" for letter in line) for line in shown]
    assert max(widths) <= columns
    assert "end" in "".join(lines)


@contextmanager
def terminal_of(path, *options, rows=24):
    env = {
        "TERM": "xterm",
        "HOME": str(path.parent),
        "XDG_STATE_HOME": str(path.parent / "state"),
        "PATH": "/usr/bin:/bin",
    }
    command = ["-m", "memframe", "review", "--file", str(path), "--decisions", "d", *options]
    with pexpect.spawn(
        sys.executable, command, encoding="utf-8", timeout=60, env=env, cwd=path.parent, dimensions=(rows, 80)
    ) as terminal:
        yield terminal


def test_a_proposal_fits_into_the_terminal_until_all_of_it_is_asked_for(folder):
    path = folder / "memories.json"
    said = (
        "Key {n} of the bridge is ssh password: 7Hk%9wQe! as Ada said, in the long year of the lake. "
        + "The lake is calm. " * 60
    )
    path.write_text(json.dumps([{"id": f"x{n}", "memory": said.format(n=n)} for n in range(12)]))
    with terminal_of(path) as terminal:
        terminal.expect(r"\?\]")
        assert len(terminal.before.splitlines()) <= 24
        assert "other memories" in terminal.before
        terminal.sendline("w")
        terminal.expect(r"\?\]\S* $")
        assert "other memories" not in terminal.before
        assert terminal.before.count("Key ") == 12
        terminal.sendline("q")
        terminal.expect(pexpect.EOF)


def test_one_goes_on_without_a_decision_and_what_is_put_off_is_asked_again_at_the_end(folder):
    path = folder / "memories.json"
    path.write_text(
        json.dumps([{"id": f"x{n}", "memory": f"Write to ada{n}@lake{n}.example"} for n in range(3)])
    )
    shown = invoke("review", "--file", path, "--decisions", "d", input="l\nj\ny\nq\n").output
    asked = re.findall(r"1 memory +(\w+)", shown)
    assert asked == [asked[0], asked[1], asked[2], asked[1]]  # put off comes last
    assert re.findall(r"(\d) proposals? left\n", shown) == ["3", "3", "3", "2"]
    queue = {
        row["proposal"]: row["decision"] for row in queue_of("--file", path, "--decisions", "d")["queue"]
    }
    assert [queue[one] for one in asked[:3]] == ["later", "", "accepted"]


def test_the_page_is_written_after_the_last_decision(foreign, folder):
    invoke("review", "--file", foreign, "--decisions", "d", "--html", "review.html", input="n\nq\n")
    assert "1 rejected" in (folder / "review.html").read_text()


def test_what_was_read_is_a_sentence_and_no_warning_of_python(folder):
    (folder / "notes.json").write_text(json.dumps([{"memory": "Likes tea", "tags": ["x" * 900]}]))
    shown = invoke("review", "--file", "notes.json", "--list")
    assert shown.stderr.startswith("notes.json: 1 memory read")
    assert "UserWarning" not in shown.stderr
