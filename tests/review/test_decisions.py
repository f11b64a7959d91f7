"""Decisions that last: what was written before a crash, by two desks, about texts that changed or did not."""

import json
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest

import memframe as mf
from memframe.decisions import Decisions
from tests.rows import memories_of

NOW = datetime.now(UTC)
ROOT = Path(__file__).parents[2]
TEXTS = [
    "Likes tea with honey",
    "Likes tea with honey",
    "The door code is 2580#",
    "GitHub password: hunter2!xQ9",
]


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ilka.decisions"


def frame(*texts):
    return pd.DataFrame({"id": [f"m{n}" for n in range(len(texts))], "content": texts})


def audit_of(memories=None, **options):
    return mf.audit_memories(frame(*TEXTS) if memories is None else memories, **options)


def decide(path, memories=None):
    desk = mf.review(audit_of(memories), decisions=path)
    queue = desk.queue
    desk.reject(queue[queue.check == "secret"], note="not mine")
    desk.accept(queue[queue.check == "exact_duplicate"])
    return desk


def decided(path, memories):
    queue = mf.review(audit_of(memories), decisions=path).queue
    return queue.decision.tolist()


def test_the_file_has_no_text_of_a_memory_and_is_private(path):
    desk = decide(path)
    desk.edit(desk.queue.proposal[desk.queue.check == "exact_duplicate"].iloc[0], content="Likes green tea")
    written = path.read_text()
    for word in ("tea", "honey", "2580", "hunter2", "green"):
        assert word not in written
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    head, *lines = map(json.loads, written.splitlines())
    assert head["format"] == "memframe-decisions/1"
    assert {line["decision"] for line in lines} == {"rejected", "accepted", "edited"}


def test_what_is_settled_is_counted_and_not_listed(path):
    decide(path)
    audit = audit_of(decisions=path)
    assert "secret" not in set(audit.findings["check"])
    assert str(audit.settled) == "2 settled: 2 rejected, 0 accepted and applied"
    assert "2 settled: 2 rejected, 0 accepted and applied." in audit.verdict
    assert json.loads(audit.json())["settled"] == {"n_rejected": 2, "n_applied": 0, "n_expired": 0}
    applied = audit_of(frame(*TEXTS).drop(index=1), decisions=path)
    assert str(applied.settled) == "3 settled: 2 rejected, 1 accepted and applied"
    assert "settled" in applied.html()


def test_a_decision_that_ended_is_asked_again_and_counted(path):
    desk = mf.review(audit_of(), decisions=path, now=NOW - timedelta(days=3))
    secret = desk.queue[desk.queue.check == "secret"]
    desk.reject(secret, until=NOW - timedelta(days=1))
    audit = audit_of(decisions=path)
    assert (audit.findings["check"] == "secret").sum() == 2
    assert str(audit.settled).endswith("; 2 expired")


@pytest.mark.parametrize("changed", ["The door code is 2581#", "The door code is 2580#, and 9"])
def test_a_memory_that_changed_is_asked_again(path, changed):
    decide(path)
    queue = mf.review(audit_of(frame(*TEXTS[:2], changed, TEXTS[3])), decisions=path).queue
    assert queue.decision[queue.check == "secret"].tolist() == ["", "rejected"]


def test_one_that_did_not_change_is_known_in_another_order_and_after_an_export(path, tmp_path):
    decide(path)
    memories = frame(*TEXTS)
    before = sorted(decided(path, memories))
    assert before == ["accepted", "rejected", "rejected"]
    assert sorted(decided(path, memories.iloc[::-1])) == before
    memories.to_json(tmp_path / "memories.jsonl", orient="records", lines=True)
    again = pd.read_json(tmp_path / "memories.jsonl", orient="records", lines=True)
    assert sorted(decided(path, again.assign(title="of another program"))) == before
    elsewhere = tmp_path / "copied"
    elsewhere.write_bytes(path.read_bytes())
    assert sorted(decided(elsewhere, memories)) == before


def test_memories_of_a_file_are_known_by_their_text(path):
    foreign = pd.DataFrame({"id": None, "content": TEXTS})
    decide(path, foreign)
    moved = pd.DataFrame({"id": None, "content": ["Plays the cello", *TEXTS[::-1]]})
    assert sorted(decided(path, moved)) == ["accepted", "rejected", "rejected"]


KILLED = """
import os, sys
import memframe as mf
from tests.review.test_decisions import audit_of

desk = mf.review(audit_of(), decisions=sys.argv[1])
for proposal in desk.queue.proposal[:2]:
    desk.reject(proposal)
os.kill(os.getpid(), 9)
"""


def test_a_killed_process_loses_no_decision(path):
    done = subprocess.run([sys.executable, "-c", KILLED, path], check=False, cwd=ROOT)
    assert done.returncode == -9
    assert sorted(mf.review(audit_of(), decisions=path).queue.decision) == ["", "rejected", "rejected"]


def test_wherever_a_crash_ends_the_file_the_whole_lines_count(path):
    decide(path)
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole)):
        path.write_bytes(whole[:end])
        assert len(Decisions(path).last) == whole[first:end].count(b"\n")


def test_decisions_outlast_a_new_key_an_export_and_an_undone_delete(user, path, tmp_path):
    user.service.import_memories(user.user_id, [{"content": text} for text in (*TEXTS, "Rows on the lake")])
    access = user.access()
    decide(path, mf.load_memories(access, progress=False))

    def states(memories):
        desk = mf.review(audit_of(memories), decisions=path)
        return sorted((one.id, desk.state(one)) for one in desk.proposals)

    before = states(mf.load_memories(access, progress=False))
    assert sorted(state for _, state in before) == ["accepted", "rejected", "rejected"]
    user.service.rotate_key(user.user_id)
    rotated = user.access()
    mf.apply_plan(rotated, mf.plan_reseal(rotated), progress=False)
    memories = mf.load_memories(rotated, progress=False)
    assert states(memories) == before
    mf.export_memories(memories, tmp_path / "memories.jsonl", progress=False)
    assert states(mf.load_archive(tmp_path / "memories.jsonl")) == before
    plan = mf.plan_deletes(rotated, memories[memories.content == TEXTS[2]])
    run = mf.apply_plan(rotated, plan, confirm=1, progress=False)
    mf.apply_plan(rotated, mf.plan_undo(rotated, run), progress=False)
    assert states(mf.load_memories(rotated, progress=False)) == before


def test_what_was_rejected_or_applied_stays_settled_with_a_new_key(user, path):
    user.service.import_memories(user.user_id, [{"content": text} for text in TEXTS])
    access = user.access()
    plan = decide(path, mf.load_memories(access, progress=False)).plan(access)
    assert plan.counts == {"delete": 1}
    mf.apply_plan(access, plan, confirm=1, progress=False).raise_for_failures()
    user.service.rotate_key(user.user_id)
    rotated = user.access()
    again = audit_of(mf.load_memories(rotated, progress=False), decisions=path)
    assert str(again.settled) == "3 settled: 2 rejected, 1 accepted and applied"
    assert again.findings["action"].isin(["delete", "merge", "redact"]).sum() == 0


def test_a_line_that_a_crash_cut_short_was_not_decided(path):
    decide(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    desk = mf.review(audit_of(), decisions=path)
    assert sorted(desk.queue.decision) == ["", "rejected", "rejected"]
    desk.accept(desk.queue[desk.queue.decision == ""])
    assert [json.loads(line)["decision"] for line in path.read_text().splitlines()[1:]] == [
        "rejected",
        "rejected",
        "accepted",
    ]


@pytest.mark.parametrize(
    "damage", [b"{}\n", b"nonsense\n", b'{"key": "a", "decision": "maybe"}\n', b"\xff\n"]
)
def test_a_damaged_line_is_named_and_nothing_is_decided(path, damage):
    decide(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], damage, *lines[2:]]))
    for attempt in (lambda: mf.review(audit_of(), decisions=path), lambda: audit_of(decisions=path)):
        with pytest.raises(mf.JournalError, match="line 3 is damaged"):
            attempt()


def test_another_file_is_not_taken_for_decisions(path):
    for content in (b"a,b\n", b'{"format": "memframe-decisions/9", "version": "9", "salt": ""}\n'):
        path.write_bytes(content)
        with pytest.raises(mf.JournalError):
            mf.review(audit_of(), decisions=path)
        assert path.read_bytes() == content


def test_two_desks_see_each_other_and_the_later_decision_counts(path):
    one, other = (mf.review(audit_of(), decisions=path) for _ in range(2))
    first, second, third = [proposal.id for proposal in one.proposals]
    one.accept(first)
    other.reject(first)  # it has read nothing of the other
    one.reject(second)
    assert one.state(one.find(first)) == "rejected"
    assert len(path.read_text().splitlines()) == 4
    other.decisions.refresh()
    assert other.state(other.find(second)) == "rejected"
    assert other.state(other.find(third)) == ""


def test_an_edited_text_opens_again_only_here(path, tmp_path, monkeypatch):
    desk = decide(path)
    secret = next(one for one in desk.proposals if one.first.check == "secret")
    desk.edit(secret.id, content="The code is in the safe")
    again = mf.review(audit_of(), decisions=path)
    decision = again.decision(again.find(secret.id))
    assert again.decisions.open(decision)["fields"] == {"content": "The code is in the safe"}
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    with pytest.raises(mf.JournalError):
        again.decisions.open(decision)


def test_a_file_that_cannot_be_written_says_so(tmp_path):
    with pytest.raises(mf.JournalError, match="nowhere"):
        mf.review(audit_of(), decisions=tmp_path / "nowhere" / "decisions")
    assert not (tmp_path / "nowhere").exists()


def test_the_page_lists_what_was_accepted_and_is_no_longer_found(tmp_path):
    memories = memories_of([{"id": f"m{n}", "content": "Likes tea"} for n in range(3)])
    desk = mf.review(mf.audit_memories(memories), decisions=tmp_path / "decisions")
    desk.accept(desk.queue, note="said twice")
    desk.to_html(tmp_path / "before.html")
    left = mf.audit_memories(memories.head(1))
    mf.review(left, decisions=tmp_path / "decisions").to_html(tmp_path / "after.html")
    before, after = ((tmp_path / name).read_text() for name in ("before.html", "after.html"))
    assert "no longer found" not in before
    assert "no longer found" in after
    assert after.count("said twice") == 2
    assert "Likes tea" not in after


def test_the_page_begins_with_what_was_accepted_and_counts_what_is_open(tmp_path):
    memories = memories_of([{"id": f"m{n}", "content": f"mail to ada{n}@lake{n}.example"} for n in range(3)])
    desk = mf.review(mf.audit_memories(memories), decisions=tmp_path / "decisions")
    put_off, accepted, _ = desk.queue.proposal
    desk.later(put_off)
    desk.accept(accepted)
    desk.to_html(tmp_path / "review.html")
    page = (tmp_path / "review.html").read_text()
    assert "3 proposals: 1 accepted, 1 later, 1 open." in page
    assert page.index(accepted) < page.index(put_off)
