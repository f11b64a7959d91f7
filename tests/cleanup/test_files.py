"""Plans for a file: an audit without a service is planned, reviewed, protected and displayed as one of a service."""

import pytest

import memframe as mf
from memframe.clean.patch import make_search, mask_texts
from memframe.secret import MASK

NOTES = """\
# Ada
- Likes green tea with milk
- Door code: 2580#
- Rows on the lake on Sundays
- Likes green tea with milk
"""


@pytest.fixture
def audit(tmp_path):
    path = tmp_path / "MEMORY.md"
    path.write_text(NOTES)
    return mf.audit_memories(mf.read_memories(path))


def test_an_audit_of_a_file_is_planned_without_an_access(audit, tmp_path):
    plan = mf.plan_cleanup(audit)
    assert plan.changes[["action", "row", "id"]].values.tolist() == [
        ["patch", 1, "row 1"],
        ["delete", 3, "row 3"],
    ]
    assert plan.records[0].after == {"content": "Door code: [redacted: access code]"}
    assert plan.file == str(tmp_path / "MEMORY.md")
    assert f"for {plan.file}, as of" in str(plan)
    assert plan.n_compared == 4
    assert plan.losses.empty
    for shown in (plan.diff(color=False), plan._repr_html_(), plan.to_json()):
        assert "2580" not in shown
        assert "undo" not in shown.lower().replace('"undo":null', "").replace('"undo": null', "")
    plan.save(tmp_path / "clean.plan")
    assert mf.Plan.load(tmp_path / "clean.plan") == plan


def test_what_a_file_would_lose_is_what_no_other_memory_of_it_holds(tmp_path):
    path = tmp_path / "MEMORY.md"
    for others, lost in (("- Anna moved on 2024-05-03\n", []), ("- Bert rows\n", ["2024-05-03", "Anna"])):
        path.write_text(f"- Anna, 2024-05-03. Door code: 2580#\n{others}")
        audit = mf.audit_memories(mf.read_memories(path, format="markdown"))
        plan = mf.plan_cleanup(audit, actions={"secret": "delete"}, max_share=1)
        assert plan.counts == {"delete": 1}
        assert [one for one in sorted(plan.losses["value"]) if one != MASK] == lost


def test_a_review_of_a_file_plans_what_was_accepted_and_edited(audit):
    desk = mf.review(audit)
    copies, secret = desk.queue.sort_values("check")["proposal"]
    desk.accept(copies)
    desk.edit(secret, content="Has a door with a code")
    plan = desk.plan()
    assert plan.counts == {"patch": 1, "delete": 1}
    assert next(one.after for one in plan.records if one.id == "row 1") == {
        "content": "Has a door with a code"
    }
    assert next(one.before for one in plan.records if one.id == "row 1") == {"content": "Door code: 2580#"}


def test_a_policy_protects_memories_of_a_file(audit, tmp_path):
    (tmp_path / "memframe.toml").write_text('[protect]\nids = ["row 3"]\n')
    plan = mf.plan_cleanup(audit, policy=tmp_path / "memframe.toml")
    assert plan.counts == {"patch": 1}
    desk = mf.review(audit, policy=tmp_path / "memframe.toml")
    desk.accept(desk.queue)
    assert desk.plan().counts == {"patch": 1}
    assert desk.plan().left["id"].tolist() == ["row 3"]
    (tmp_path / "limits.toml").write_text("[limits]\ndelete_share = 0.1\n")
    desk = mf.review(audit, policy=tmp_path / "limits.toml")
    desk.accept(desk.queue)
    with pytest.raises(mf.PlanError, match="deletes of 1 of 4 memories"):
        desk.plan()


def test_a_plan_for_a_file_is_not_applied_to_a_service(audit, access):
    plan = mf.plan_cleanup(audit)
    with pytest.raises(
        mf.PlanError, match=r"is for .*MEMORY\.md, which no service holds: .*clean_file\(path, plan=plan\)"
    ):
        mf.apply_plan(access, plan, confirm=1)
    with pytest.raises(
        mf.PlanError, match=r"the audit is of a file.*plan_cleanup\(audit\), without an access"
    ):
        mf.plan_cleanup(access, audit)
    with pytest.raises(mf.PlanError, match=r"memories of a service: plan_cleanup\(access, audit\)"):
        mf.plan_cleanup(mf.audit_memories(mf.load_memories(access)))
    with pytest.raises(mf.PlanError, match="audit is"):
        mf.plan_cleanup(access)
    with pytest.raises(mf.PlanError, match="audit is a str"):
        mf.plan_cleanup("audit.json")


def test_a_patch_is_searched_for_thousands_of_secrets_without_a_comparison_of_each_at_each_place():
    class Counted(str):
        n_compared = 0

        def startswith(self, *args):
            Counted.n_compared += 1
            return super().startswith(*args)

    secrets = [f"{number:04d}x" for number in range(2000)]
    patch = Counted(" ".join(secrets))
    assert [text for _, text in make_search(secrets)(patch)] == secrets
    assert Counted.n_compared < 2 * len(patch)
    assert mask_texts(patch, secrets) == " ".join([MASK] * len(secrets))
