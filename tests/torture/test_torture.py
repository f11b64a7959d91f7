"""Processes that are killed at random moments lose nothing and write nothing twice."""

import sys
from collections import Counter

import pandas as pd
import pytest

import memframe as mf
from tests.torture.killing import Killer, approved, environment, serving


@pytest.mark.parametrize(
    ("n_rows", "client_kills", "service_kills"),
    [
        pytest.param(200, 3, 1, id="short"),
        pytest.param(4_000, 100, 30, id="long", marks=pytest.mark.campaign),
    ],
)
def test_killed_writers_and_services_lose_and_double_nothing(
    tmp_path, monkeypatch, n_rows, client_kills, service_kills
):
    data, home = tmp_path / "data", tmp_path / "home"
    home.mkdir()
    with serving(data) as service, approved(data, service) as access:
        env = environment(service.first, home)
        for name in ("HOME", "XDG_STATE_HOME", "PYTHON_KEYRING_BACKEND"):
            monkeypatch.setenv(name, env[name])
        killer = Killer(20, service, client_kills=client_kills, service_kills=service_kills)
        n_rounds = 0
        while killer.has_victims:  # a machine that writes all before anybody is killed writes once more
            n_rounds += 1
            path, journal = home / f"{n_rounds}.plan", home / f"{n_rounds}.journal"
            wanted = begin(access, path, n_rows)
            command = [sys.executable, "-m", "tests.torture.writer", path, journal, access.request_id]
            killer.work([str(part) for part in command], env)
            found = Counter(mf.load_memories(access, progress=False).content)
            assert found - wanted == Counter(), "doubled, or never asked for"
            assert wanted - found == Counter(), "lost"


def begin(access, path, n_rows):
    """Memories to change and to delete, a saved plan for them and for new ones; what must be there in the end."""
    half, tenth = n_rows // 2, n_rows // 10
    old = pd.DataFrame({"content": [f"old {row}" for row in range(half)]})
    mf.create_memories(access, old, progress=False).raise_for_failures()
    loaded = mf.load_memories(access, progress=False)
    kept = loaded.assign(content=loaded.content + ", changed").iloc[tenth:]
    new = pd.DataFrame({"content": [f"new {row // 2}" for row in range(n_rows - half)]})  # each text twice
    plan = mf.plan_changes(access, pd.concat([kept, new], ignore_index=True))
    plan += mf.plan_deletes(access, loaded.iloc[:tenth])
    plan.save(path)
    return Counter([*kept.content, *new.content])
