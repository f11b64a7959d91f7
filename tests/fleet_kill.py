"""A fleet whose audit, planning and runs are killed at random, and the service too, until all is done.

    python tests/fleet_kill.py --users 20 --client-kills 60 --service-kills 10 --seed 1

Prints one line of JSON. Each life of the client is a fork, which knows of earlier ones what is on the disk.
"""

import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import pandas as pd

import memframe as mf
from memframe.audit.policy import Allow, Policy
from memframe.service import run_local
from tests.apply.kill import HASHER, PASSWORD, Service, forked, run_program, waited

POLICY = Policy(allow=Allow(actions=("delete", "merge", "redact"), checks=("exact_duplicate", "secret")))
QUIET = {"progress": False}
MAX_ALONE = 5  # lives that nothing kills: one may find a service that is just starting
TOPICS = [
    "cello", "harbour", "bakery", "telescope", "orchard", "library",
    "tram", "glacier", "violin", "market", "meadow", "lantern",
]  # fmt: skip


def prepared(data, n_users):
    """Users who have approved, each with copies and passwords of their own; return the API key."""
    with run_local(data, password_hasher=HASHER) as local:
        for n in range(n_users):
            user_id = local.add_user(f"user{n}@example.org", PASSWORD)
            local.import_memories(user_id, rows_of(n))
            with mf.connect(local.base_url, api_key=local.api_key, auth_url=local.auth_url) as client:
                local.decide(
                    client.create_access_request(local.memory_key(user_id), "torture").id, "approved"
                )
        return local.api_key


def rows_of(n):
    facts = [{"content": f"User {n} spends Sundays at the {topic} with a friend."} for topic in TOPICS]
    secrets = [{"content": f"The {topic} wifi password is Tr0ub4dor&{n}{topic}."} for topic in TOPICS[:3]]
    return [*facts, *facts, *secrets]


def live(step, port, api_key, path):
    """One life of the client; ends with 0 when the step is done."""
    with mf.connect(f"http://127.0.0.1:{port}/api/v1", api_key=api_key) as client:
        try:
            return 0 if step(client, path) else 1
        except (mf.NoAnswerError, mf.ServiceError):
            return 1


def audit(client, path):
    return set(mf.audit_fleet(client, path, **QUIET).outcomes.status) == {"done"}


def plan(client, path):
    plans = mf.plan_fleet(client, path, policy=POLICY, **QUIET)
    Path(f"{path}.planned").write_text(json.dumps(plans.counts["n_changes"]))
    return set(plans.users) == {"planned"}


def apply(client, path):
    run = mf.apply_fleet(client, path, policy=POLICY, settle_s=0.3, **QUIET)
    Path(f"{path}.balance").write_text(json.dumps(run.counts))
    return set(run.users) == {"done"}


def torture(folder, chance, n_users, n_client_kills, n_service_kills):
    api_key = prepared(folder / "data", n_users)
    one = pd.DataFrame([{"id": "m", **rows_of(0)[0]}])
    mf.audit_memories(one)  # rules are read once, and not in each of the short lives
    service, path, kills = Service(folder / "data"), folder / "fleet", Counter()
    steps = [audit, plan, apply]
    life_s = 0.02, 0.05 * n_users
    try:
        for number, step in enumerate(steps, start=1):
            left = Counter(
                client=n_client_kills * number // len(steps) - kills["client"],
                service=n_service_kills * number // len(steps) - kills["service"],
            )
            status, n_alone = None, 0
            while status != 0:
                victims = [*left.elements()]
                child = forked(live, step, service.port, api_key, path)
                if not victims:
                    n_alone += 1
                    status = waited(child, 120)
                    if status is None:
                        os.kill(child, signal.SIGKILL)
                    if status is None or (status and n_alone == MAX_ALONE):
                        raise SystemExit(f"{step.__name__} does not come to its end, though nothing kills it")
                    continue
                victim = chance.choice(victims)
                status = waited(child, chance.uniform(*life_s))
                if status == 0:
                    break
                if victim == "service":
                    service.kill()
                    service.start()
                    status = waited(child, chance.uniform(0.1, 2.0)) if status is None else status
                if status is None:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                left[victim] -= 1
                kills[victim] += 1
        with mf.connect(f"http://127.0.0.1:{service.port}/api/v1", api_key=api_key) as client:
            n_lost, n_unplanned = compared(client)
            journals = mf.list_runs()
    finally:
        service.kill()
    return {
        "users": n_users,
        "client_kills": kills["client"],
        "service_kills": kills["service"],
        "lost": n_lost,
        "unplanned": n_unplanned,
        "planned": json.loads(Path(f"{path}.planned").read_text()),
        "balance": json.loads(Path(f"{path}.balance").read_text()),
        "runs": len(journals),
        "written": int(journals[["done", "recovered"]].sum().sum()),
    }


def compared(client):
    """Count the memories that are missing, and those that should not be there."""
    n_lost = n_unplanned = 0
    for request in client.access_requests():
        held = Counter(mf.load_memories(mf.open_access(client, request.id), progress=False).content)
        n = next(int(text.split()[1]) for text in held if text.startswith("User "))
        wanted = Counter(dict.fromkeys([row["content"] for row in rows_of(n)[: len(TOPICS)]], 1))
        for topic in TOPICS[:3]:
            wanted[f"The {topic} wifi password is [redacted: password]."] += 1
        n_lost += (wanted - held).total()
        n_unplanned += (held - wanted).total()
    return n_lost, n_unplanned


if __name__ == "__main__":
    run_program(__doc__, torture, users=6, client_kills=12, service_kills=3)
