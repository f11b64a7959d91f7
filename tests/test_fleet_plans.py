"""Plans and runs of a fleet: only what a policy allows, one balance, and a repeated call does what is left."""

import json

import pandas as pd
import pytest

import memframe as mf
from memframe import wire
from memframe.audit.policy import Policy
from memframe.errors import ConfigError, FrameError
from tests.cli.conftest import invoke
from tests.conftest import fleet_of
from tests.faults import FaultProxy, answered

COPY = {"content": "Ada plays the cello in the town orchestra."}
SECRET = {"content": "The wifi password is Tr0ub4dor&3x."}
LEGAL = {"content": "The contract ends in May 2027 without notice.", "tags": ["legal"]}
ROWS = [COPY, COPY, SECRET, LEGAL, LEGAL]
ALLOWED = (
    '[protect]\ntags = ["legal"]\n[allow]\nactions = ["delete", "merge"]\nchecks = ["exact_duplicate"]\n'
)


class Town:
    """Users of a developer with an audit of all of them, and a policy."""

    def __init__(self, people, proxy, local, path):
        self.people, self.proxy, self.path, self.local = people, proxy, path, local
        self.client = mf.connect(proxy.base_url, api_key=local.api_key)
        self.policy = path.parent / "memframe.toml"
        self.policy.write_text(ALLOWED)

    def audit(self):
        return mf.audit_fleet(self.client, self.path, checks=["exact_duplicate", "secret"], progress=False)

    def plan(self, **options):
        return mf.plan_fleet(self.client, self.path, **{"policy": self.policy, "progress": False} | options)

    def apply(self, **options):
        how = {"policy": self.policy, "progress": False, "settle_s": 0.0} | options
        return mf.apply_fleet(self.client, self.path, **how)

    def access(self, n):
        user_id = self.people[n].user_id
        requests = self.client.access_requests()
        return mf.open_access(
            self.client, next(r.id for r in requests if r.user_id == user_id and r.status == "approved")
        )

    def contents(self, n):
        return sorted(mf.load_memories(self.access(n), progress=False).content)

    @property
    def writes(self):
        return self.proxy.requests_to(wire.DELETE_MEMORY) + self.proxy.requests_to(wire.UPDATE_MEMORY)


@pytest.fixture
def town(developer, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with (
        fleet_of(developer, ROWS, ["approved"] * 2) as two,
        fleet_of(developer, [LEGAL], ["approved"]) as one,
        FaultProxy(developer.base_url) as proxy,
    ):
        town = Town([*two, *one], proxy, developer, tmp_path / "fleet")
        town.audit()
        yield town
        town.client.close()


CLEANED = sorted(row["content"] for row in [COPY, SECRET, LEGAL, LEGAL])


def test_what_the_policy_allows_is_planned_and_applied_and_nothing_else(town):
    """A copy goes; the secret is not allowed, the copy of a legal memory is protected, and one user has nothing."""
    plans = town.plan()
    assert plans.users == {"planned": 2}
    assert plans.counts["n_changes"] == plans.counts["n_deletes"] == 2
    assert plans.counts["n_left"] >= 4
    assert town.writes == []
    run = town.apply()
    assert run.users == {"done": 2}
    assert run.counts == dict.fromkeys(mf.journal.STATUSES, 0) | {"done": 2}
    assert [town.contents(n) for n in (0, 1)] == [CLEANED] * 2
    assert town.contents(2) == [LEGAL["content"]]


def test_a_repeated_run_sends_nothing_and_has_the_same_balance(town):
    town.plan()
    first, n_writes = town.apply(), len(town.writes)
    again = town.apply()
    pd.testing.assert_frame_equal(again.outcomes, first.outcomes)
    assert len(town.writes) == n_writes
    assert town.plan().users == {"nothing": 2}
    assert town.apply().outcomes.empty
    run = mf.list_runs()
    assert sorted(run.user_id) == sorted(person.user_id for person in town.people[:2])


def test_trouble_with_one_user_is_a_row_and_its_plan_waits(town):
    town.plan()
    town.proxy.script(wire.DELETE_MEMORY, *[answered(403, {"title": "not now"})])
    run = town.apply(workers=1)
    assert run.users == {"open": 1, "done": 1}
    assert run.counts["planned"] == 1
    assert run.counts["done"] == 1
    assert town.plan().users == {"unfinished": 1, "nothing": 1}
    assert town.apply().counts == dict.fromkeys(mf.journal.STATUSES, 0) | {"done": 1}
    assert [town.contents(n) for n in (0, 1)] == [CLEANED] * 2


def test_a_stale_plan_is_refused_and_the_next_one_is_made_of_what_is_there(town):
    town.plan()
    rows = mf.load_memories(town.access(0), progress=False)
    copies = rows[rows.content == COPY["content"]]
    mf.push_memories(town.access(0), copies.assign(content=copies.content + " And sings."), progress=False)
    run = town.apply()
    assert run.users == {"failed": 1, "done": 1}
    assert run.counts["planned"] == 1
    assert "stale" in run.outcomes.error.dropna().item()
    assert town.plan().users == {"planned": 1, "nothing": 1}
    assert town.apply().users == {"done": 1}


def test_a_plan_beyond_the_limits_is_that_users_failure(town):
    town.local.import_memories(town.people[0].user_id, [COPY])
    town.audit()
    town.policy.write_text(ALLOWED + "[limits]\ndeletes = 1\n")
    plans = town.plan()
    assert plans.users == {"failed": 1, "planned": 1}
    assert "exceeds [limits]" in plans.outcomes.error.dropna().item()
    assert town.apply().counts["done"] == 1


def test_what_the_policy_allows_no_more_is_not_applied(town):
    town.plan()
    town.policy.write_text(ALLOWED.replace('"delete", "merge"', '"redact"'))
    run = town.apply()
    assert run.users == {"failed": 2}
    assert run.outcomes.error.str.contains("does not allow now").all()
    assert town.writes == []


def test_what_a_person_rejected_is_not_planned(town):
    """As a file of all users says, or a folder with one of that user."""
    decisions = town.path.parent / "decisions" / f"{town.people[0].user_id}.decisions"
    decisions.parent.mkdir()
    access = town.access(0)
    audit = mf.audit_memories(mf.load_memories(access, progress=False), tags=mf.load_tags(access))
    desk = mf.review(audit, decisions=decisions)
    desk.reject(desk.queue.proposal[desk.queue.check == "exact_duplicate"].tolist())
    for given in (decisions, decisions.parent):
        plans = town.plan(decisions=given)
        assert dict(zip(plans.outcomes.user_id, plans.outcomes.n_changes, strict=True)) == {
            town.people[0].user_id: 0,
            town.people[1].user_id: 1,
        }


def test_who_revoked_is_left_alone_and_the_plan_is_deleted(town):
    town.plan()
    place = next(town.path.glob(f"plans/user_id={town.people[0].user_id}"))
    revoked = town.access(0).request_id
    town.local.decide(revoked, "revoked")
    run = town.apply()
    assert run.users == {"revoked": 1, "done": 1}
    assert run.counts["done"] == 1
    assert not place.exists()


def test_no_text_is_in_the_open_in_a_plan(town):
    town.plan()
    files = [*town.path.glob("plans/*/*")]
    assert len(files) == 2
    assert not any(b"cello" in file.read_bytes() for file in files)
    assert {oct(file.stat().st_mode & 0o777) for file in files} == {"0o600"}
    assert {oct(file.parent.stat().st_mode & 0o777) for file in files} == {"0o700"}


def test_a_policy_that_allows_nothing_is_refused_and_so_is_a_folder_without_an_audit(town, tmp_path):
    for call in (town.plan, town.apply):
        for policy in (None, Policy()):
            with pytest.raises(ConfigError, match="it names no actions"):
                call(policy=policy)
    with pytest.raises(FrameError, match="contains no audit of a fleet"):
        mf.plan_fleet(town.client, tmp_path, policy=town.policy)
    with pytest.raises(FrameError, match="there is no folder"):
        mf.apply_fleet(town.client, tmp_path / "none", policy=town.policy)


def test_the_command_line_plans_and_applies_with_one_balance(town, monkeypatch):
    monkeypatch.setenv("MEMFRAME_BASE_URL", town.proxy.base_url)
    monkeypatch.setenv("MEMFRAME_API_KEY", town.local.api_key)
    given = town.path, "--policy", town.policy
    planned = invoke("fleet", "plan", *given)
    assert planned.stdout.startswith("2 changes planned (2 deletes), ")
    assert "To apply them: memframe fleet apply " in planned.stderr
    town.proxy.script(wire.DELETE_MEMORY, answered(409, {"title": "in use"}))
    done = json.loads(
        invoke("fleet", "apply", *given, "--workers", "1", "--settle", "0", "--json", code=3).stdout
    )
    assert done["counts"]["done"] == 1
    assert sum(done["counts"].values()) == 2
    assert done["users"] == {"refused": 1, "done": 1}
    again = invoke("fleet", "apply", *given, code=3)
    assert "1 done" in again.stdout
    assert "--policy" in invoke("fleet", "apply", town.path, code=2).output


def test_a_journal_that_was_cut_short_before_anything_was_sent_does_not_block_its_plan(town, tmp_path):
    town.plan()
    file = next(town.path.glob(f"plans/user_id={town.people[0].user_id}/*"))
    runs = tmp_path / "state" / "memframe" / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    half = runs / f"20261124T020000Z-{mf.Plan.load(file).id[:12]}-0badc0de.journal"
    half.touch()
    assert town.apply().counts["done"] == 2
    assert not half.exists()
