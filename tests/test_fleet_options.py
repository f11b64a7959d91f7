"""Options of a fleet's audit: own checks, a judge, and a policy for all users or for one of them."""

import threading

import pandas as pd
import pytest

import memframe as mf
from memframe.audit import CHECKS
from memframe.audit.judge import VERDICTS, Answer
from memframe.errors import ConfigError
from tests.chat_stub import ChatStub, said
from tests.cli.conftest import invoke
from tests.test_fleet_audit import nightly
from tests.test_fleet_nights import WHOLE, reject

__all__ = ["nightly"]

RULE = """
[[rule]]
group = "own"
kind = "project_name"
words = "aurora"
finds = ["The Aurora launch is in May"]
misses = ["An auroral light over Tromsø"]
"""


def rhymes(memories: pd.DataFrame) -> pd.DataFrame:
    found = memories[memories.content.str.contains("Aurora", na=False)]
    return pd.DataFrame({"id": found.id, "kind": "rhyme", "evidence": "it rhymes"})


def test_a_check_of_ones_own_runs_for_every_user_and_is_known_again(nightly):
    nightly.write(1, content=["The Aurora launch is in May."])
    folder = nightly.audit(checks=["secret", rhymes])
    own = folder.findings[folder.findings.check == "rhymes"]
    assert own.user_id.tolist() == [nightly.user_ids[1]]
    assert nightly.audit(checks=["secret", rhymes]).n_before == 3
    assert nightly.audit(checks=["secret"]).n_before == 0


def test_a_folder_of_policies_has_one_for_all_and_others_for_some(nightly, tmp_path):
    """The rules of a user's own count in place of those of all, in the audit, the plan and the run."""
    policies = tmp_path / "policies"
    policies.mkdir()
    for n in range(3):
        nightly.write(n, content=["The Aurora launch is in May."] * 2)
    (policies / "memframe.toml").write_text('[allow]\nactions = ["delete"]\n')
    (policies / f"{nightly.user_ids[1]}.toml").write_text(RULE)
    folder = nightly.audit(policy=policies)
    own = folder.findings[folder.findings.check == "policy"]
    assert {*own.user_id} == {nightly.user_ids[1]}
    plans = mf.plan_fleet(nightly._client, folder.path, policy=policies, progress=False).outcomes
    assert {*plans.user_id[plans.status == "planned"]} == {nightly.user_ids[0], nightly.user_ids[2]}
    (policies / f"{nightly.user_ids[2]}.toml").write_text('[allow]\nactions = ["retag"]\n')
    run = mf.apply_fleet(nightly._client, folder.path, policy=policies, settle_s=0.1, progress=False).outcomes
    by_user = run.set_index("user_id")
    assert by_user.status.to_dict() == {nightly.user_ids[0]: "done", nightly.user_ids[2]: "failed"}
    assert "does not allow now" in by_user.error[nightly.user_ids[2]]


def test_a_policy_for_nobody_is_said(nightly, tmp_path):
    (tmp_path / "b7e0c9b1-0000-4000-8000-00000000000a.toml").write_text("[limits]\ndeletes = 0\n")
    with pytest.warns(UserWarning, match="000a.toml applies to nobody"):
        nightly.audit(policy=tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ConfigError, match="has no policy: put"):
        nightly.audit(policy=empty)


def test_a_folder_of_decisions_has_those_of_all_and_others_for_some(nightly, tmp_path):
    """Both files about one user would hide what one of them rejects, so that user fails."""
    folder = tmp_path / "decisions"
    folder.mkdir()
    for n, name in enumerate(("memframe", nightly.user_ids[1])):
        nightly.write(n, **WHOLE)
        reject(nightly, n, folder / f"{name}.decisions", "secret")
    options = {"decisions": folder, "checks": ["secret"]}
    found = nightly.audit(**options).findings
    assert not {*nightly.user_ids[:2]} & {*found.user_id[found.check == "secret"]}
    reject(nightly, 1, folder / "memframe.decisions", "secret")
    outcomes = nightly.audit(**options).outcomes.set_index("user_id")
    assert outcomes.status[[*nightly.user_ids]].tolist() == ["done", "failed", "done"]
    assert "both decide about memories of this user" in outcomes.error[nightly.user_ids[1]]
    (folder / "memframe.decisions").rename(folder / "b7e0c9b1-0000-4000-8000-00000000000a.decisions")
    with pytest.warns(UserWarning, match="000a.decisions applies to nobody"):
        nightly.audit(**options)


class Judge:
    """Answers the same to every question, and counts the texts that it was asked about."""

    def __init__(self, model):
        self.model, self.asked, self._lock = model, [], threading.Lock()

    def __call__(self, questions):
        with self._lock:
            self.asked += [question.newer for question in questions]
        return [Answer(n, VERDICTS[one.kind][0]) for one in questions for n in one.numbers]


def test_a_judge_is_asked_about_users_with_a_change_alone(nightly):
    first, second = Judge("first"), Judge("second")
    nightly.audit(judge=first)
    assert first.asked
    first.asked.clear()
    for content in ("My dentist is Dr. Moss.", "My dentist is no longer Dr. Moss but Dr. Reed."):
        nightly.write(0, content=[content])  # one write after the other: of one write, either may come first
    assert nightly.audit(judge=first).n_before == 2
    assert any("Reed" in text for text in first.asked)
    nightly.audit(judge=second, judge_limit=1)
    assert second.asked
    with pytest.raises(ConfigError, match="a judge runs only in threads of this process"):
        nightly.audit(judge=first, scheduler=object())


def test_the_command_asks_a_judge_and_runs_some_checks(nightly, tmp_path, monkeypatch):
    monkeypatch.setenv("MEMFRAME_BASE_URL", nightly.local.base_url)
    monkeypatch.setenv("MEMFRAME_API_KEY", nightly.local.api_key)
    with ChatStub(otherwise=said(lambda newer, older: "unrelated")) as stub:
        invoke(
            "fleet", "audit", tmp_path / "judged", "--judge", stub.base_url, "--model", "m", "--no-archives"
        )
        assert stub.bodies
    folder = tmp_path / "some"
    invoke("fleet", "audit", folder, "--check", "secret", "--no-archives")
    assert {*mf.FleetFolder(folder).findings.check} <= {"secret"}
    assert len(CHECKS) > 1
    refused = invoke("fleet", "audit", folder, "--judge", "http://127.0.0.1:9/v1", code=2).stderr
    assert "give both --judge URL and --model NAME" in refused
