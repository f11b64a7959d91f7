"""A policy at the last door: nothing protected is deleted, redacted or retagged, and no limit exceeded."""

import time

import pandas as pd
import pytest

import memframe as mf
from memframe.audit.policy import STEPS, Policy, read_policy
from memframe.cleanup.proposals import PLANNED
from memframe.errors import ConfigError, PlanError
from memframe.plan.change import Change
from memframe.plan.permitted import find_steps, leave_out_unallowed

LEGAL = {"content": "The contract 4711 ends in May 2027.", "tags": ("Legal", "home")}
TEA = {"content": "Likes green tea.", "tags": ("food",)}
PROTECT = '[protect]\ntags = ["legal"]\nsources = ["passport-app"]\nimportance_from = 0.95\n'
RULE = """
[[rule]]
group = "own"
kind = "project"
pattern = '''\\baurora\\b'''
finds = ["The Aurora launch"]
misses = ["auroral light"]
"""


@pytest.fixture
def policy_of(tmp_path):
    def write(text):
        path = tmp_path / "memframe.toml"
        path.write_text(text, "utf-8")
        return path

    return write


@pytest.fixture
def store(user):
    def fill(*rows):
        user.service.import_memories(user.user_id, list(rows))
        access = user.access()
        return access, mf.load_memories(access, progress=False)

    return fill


def contents(access):
    return sorted(mf.load_memories(access, progress=False).content)


@pytest.mark.parametrize(
    ("row", "plan_of", "reason"),
    [
        (LEGAL, mf.plan_deletes, r"its tag 'Legal' and would be deleted"),
        (
            LEGAL,
            lambda access, one: mf.plan_changes(access, one.assign(tags=[("home",)])),
            "and would be retagged",
        ),
        (
            TEA | {"source": "Passport-App"},
            lambda access, one: mf.plan_changes(access, one.assign(content="[redacted: name] likes tea")),
            "its source 'Passport-App' and would be redacted",
        ),
        (
            TEA | {"source": "passport-app"},
            lambda access, one: mf.plan_changes(access, one.assign(source="chat")),
            "and would be left without protection",
        ),
        (
            TEA | {"importance": 0.97},
            mf.plan_deletes,
            "its importance of 0.97",
        ),
    ],
)
def test_what_is_protected_is_refused_by_name_before_anything_is_sent(store, policy_of, row, plan_of, reason):
    access, memories = store(row | {"title": "Mine"}, TEA)
    before = contents(access)
    own = memories.title == "Mine"
    chosen = memories[own]
    plan = plan_of(access, chosen)
    other = mf.plan_changes(access, memories[~own].assign(title="Tea"))
    confirm = plan.counts.get("delete")
    with pytest.raises(PlanError, match=reason) as refused:
        mf.apply_plan(access, plan + other, confirm=confirm, policy=policy_of(PROTECT), progress=False)
    assert chosen.id.iloc[0] in str(refused.value)
    assert contents(access) == before
    assert mf.load_memories(access, progress=False).title.isna().sum() == 1
    mf.apply_plan(access, plan, confirm=confirm, progress=False).raise_for_failures()


def test_other_edits_of_what_is_protected_are_applied(store, policy_of):
    access, memories = store(LEGAL)
    plan = mf.plan_changes(access, memories.assign(title="Contract"))
    mf.apply_plan(access, plan, policy=Policy.load(policy_of(PROTECT)), progress=False).raise_for_failures()


def test_what_was_tagged_since_is_protected_and_what_was_untagged_since_too(store, user, policy_of):
    access, memories = store(LEGAL, TEA)
    untagged = mf.plan_deletes(access, memories[memories.content == LEGAL["content"]].id)
    tagged = mf.plan_deletes(access, memories[memories.content == TEA["content"]].id)
    elsewhere = user.access()
    theirs = mf.load_memories(elsewhere, progress=False)
    tags = [("home",) if text == LEGAL["content"] else ("legal",) for text in theirs.content]
    mf.push_memories(elsewhere, theirs.assign(tags=tags), progress=False)
    for plan in (untagged, tagged):
        with pytest.raises(PlanError, match="stale"):
            mf.apply_plan(access, plan, confirm=1, policy=policy_of(PROTECT), progress=False)
    again = mf.plan_deletes(access, memories.id.tolist(), on_conflict="mine")
    with pytest.raises(PlanError, match="breaks the policy") as refused:
        mf.apply_plan(access, again, confirm=2, policy=policy_of(PROTECT), progress=False)
    assert all(one in str(refused.value) for one in memories.id)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ("deletes = 1", r"2 deletes \(deletes = 1\)"),
        ("changes = 1", r"2 changes \(changes = 1\)"),
        ("delete_share = 0.5", r"2 of 3 memories \(delete_share = 0.5\)"),
    ],
)
def test_a_plan_beyond_the_limits_is_refused(store, policy_of, limits, words):
    access, memories = store(TEA, TEA | {"content": "x"}, LEGAL)
    plan = mf.plan_deletes(access, memories.iloc[:2])
    with pytest.raises(PlanError, match=words):
        mf.apply_plan(access, plan, confirm=2, policy=policy_of(f"[limits]\n{limits}\n"), progress=False)
    assert len(contents(access)) == 3
    once = mf.plan_deletes(access, memories.iloc[:1])
    mf.apply_plan(access, once, confirm=1, policy=policy_of(f"[limits]\n{limits}\n"), progress=False)


def test_a_cleanup_leaves_out_what_is_protected_with_its_group(store, policy_of):
    access, memories = store(
        TEA, TEA, LEGAL, LEGAL, {"content": "The wifi password is Tr0ub4dor&3x.", "tags": ("legal",)}
    )
    audit = mf.audit_memories(memories)
    path = policy_of(PROTECT)
    plan = mf.plan_cleanup(access, audit, policy=path)
    free = mf.plan_cleanup(access, audit)
    assert len(plan) < len(free)
    assert {*plan.left.id} == {*free.changes.id} - {*plan.changes.id}
    assert plan.left.reason.str.contains("protected by its tag").all()
    mf.apply_plan(
        access, plan, confirm=plan.counts["delete"], policy=path, progress=False
    ).raise_for_failures()


def test_a_cleanup_beyond_the_limits_is_no_plan(store, policy_of):
    access, memories = store(TEA, TEA)
    with pytest.raises(PlanError, match=r"1 delete \(deletes = 0\)"):
        mf.plan_cleanup(access, mf.audit_memories(memories), policy=policy_of("[limits]\ndeletes = 0\n"))


def test_a_job_applies_only_what_is_allowed_and_loses_nothing(store, policy_of):
    access, memories = store(
        TEA,
        TEA,
        {"content": "heartbeat ok 2026-01-02T03:00:00Z"},
        {"content": "The wifi password is Tr0ub4dor&3x."},
    )
    audit = mf.audit_memories(memories)
    plan = mf.plan_cleanup(access, audit)
    policy = read_policy(policy_of('[allow]\nactions = ["delete", "merge"]\nchecks = ["exact_duplicate"]\n'))
    cut = leave_out_unallowed(plan, policy)
    assert cut.counts == {"delete": 1}
    assert sorted(cut.left.reason) == ["not in actions of [allow]: redact", "not in checks of [allow]: junk"]
    assert len(leave_out_unallowed(plan, Policy())) == 0
    by_hand = mf.plan_deletes(access, memories[memories.content.str.contains("wifi")])
    assert leave_out_unallowed(by_hand, policy).left.reason.tolist() == [
        "not in checks of [allow]: planned by hand"
    ]
    all_checks = read_policy(policy_of('[allow]\nactions = ["delete"]\n'))
    lossy = mf.plan_deletes(access, memories[memories.content == TEA["content"]]) + by_hand
    lossy = lossy + mf.plan_changes(access, pd.DataFrame({"content": ["Paid 17 €"]}))
    assert leave_out_unallowed(lossy, all_checks).counts == {"delete": 2}


def test_steps_are_named_as_people_speak_of_them():
    assert find_steps(Change(action="create", after={"content": "x"}), is_merge=False) == ("create",)
    assert find_steps(Change(action="patch", id="m", after={"title": "x"}), is_merge=False) == ("edit",)
    scale = Change(action="patch", id="m", after={"importance": 0.5, "tags": ()}, checks=("scores",))
    assert find_steps(scale, is_merge=False) == ("rescale", "retag")
    assert find_steps(Change(action="conflict", id="m"), is_merge=False) == ()


HIDDEN = "Likes\u200b\u200b tea"
OF_STEP = {
    "create": Change(action="create", after={"content": "x"}),
    "edit": Change(action="patch", id="m", before={"title": HIDDEN}, after={"title": "Likes rain"}),
    "delete": Change(action="delete", id="m"),
    "merge": Change(action="patch", id="m", after={"title": "x"}),
    "redact": Change(action="patch", id="m", before={"title": "x"}, after={"title": "[redacted: pin]"}),
    "strip": Change(action="patch", id="m", before={"title": HIDDEN}, after={"title": "Likes tea"}),
    "retag": Change(action="patch", id="m", after={"tags": ("x",)}),
    "rescale": Change(action="patch", id="m", after={"importance": 0.5}, checks=("scores",)),
}


def test_each_step_of_a_cleanup_can_be_allowed_and_is_recognised():
    assert OF_STEP.keys() == {*STEPS}
    assert {*PLANNED} <= {*STEPS}
    for step, change in OF_STEP.items():
        assert find_steps(change, is_merge=step == "merge") == (step,)


# The file


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[protekt]\n", r"memframe\.toml: the file has no key 'protekt'; the nearest is 'protect'"),
        ("[protect]\ntag = []\n", r"\[protect\] has no key 'tag'; the nearest is 'tags'"),
        ("[limits]\ndelete = 3\n", "the nearest is 'deletes'"),
        ("[limits]\ndeletes = -1\n", "deletes"),
        ("[limits]\ndelete_share = 5\n", "delete_share"),
        ("[limits]\ndeletes = '3'\n", "limits.deletes"),
        ("[protect]\ntags = 'legal'\n", "protect.tags"),
        ("[allow]\nactions = ['drop']\n", "allow.actions"),
        ("[allow]\nchecks = ['exact_duplicates']\n", "the nearest is 'exact_duplicate'"),
        ("[fail]\nseverity = 'severe'\n", "fail.severity"),
        ("protect = 3\n", "protect"),
        ("[protect\n", "cannot be read"),
        (RULE.replace("finds", "find"), r"\[\[rule\]\] has no key 'find'; the nearest is 'finds'"),
        (
            RULE.replace("The Aurora launch", "The launch"),
            r"\[\[rule\]\] 1: the pattern does not find 'The launch'",
        ),
        (RULE.replace("auroral", "aurora"), "the pattern finds 'aurora light', one of misses"),
        (RULE.replace('misses = ["auroral light"]', "misses = []"), "misses needs an example"),
        (RULE.replace("aurora\\b'", "aurora(\\b'"), "is not a pattern"),
        (RULE.replace("\\b'''", "(a)\\\\1'''").replace("\\\\", "\\"), "refer to groups|does not find"),
        (RULE.replace("pattern", "words = 'aurora'\npattern"), "either a pattern or words"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_the_file(policy_of, text, words):
    with pytest.raises(ConfigError, match=words) as refused:
        Policy.load(policy_of(text))
    assert "memframe.toml" in str(refused.value)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(?:a|a)*b", r"(\w+\s?)*\Z(?<=!!)", ".*.*aurora", "a.*b.*c"])
def test_a_pattern_that_some_text_makes_slow_is_refused_soon(policy_of, pattern):
    text = RULE.replace(r"\baurora\b", f"aurora|{pattern}")
    begun = time.process_time()
    with pytest.raises(ConfigError, match="takes too long on texts that repeat"):
        Policy.load(policy_of(text))
    assert time.process_time() - begun < 20


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        Policy.load(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="policy"):
        read_policy(7)
    assert read_policy(None) is None


def test_rules_are_a_check_of_ones_own(policy_of):
    policy = Policy.load(policy_of(RULE))
    memories = pd.DataFrame({"id": ["m1", "m2"], "content": ["Aurora starts in May", "auroral light"]})
    audit = mf.audit_memories(memories, checks=["junk", policy.check])
    (finding,) = audit.findings[audit.findings.check == "policy"].to_dict("records")
    assert (finding["id"], finding["kind"], finding["field"]) == ("m1", "project", "content")
    assert (finding["start"], finding["end"]) == (0, 6)
