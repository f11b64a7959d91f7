"""Writes whose request or answer is cut after every single byte are neither lost nor doubled."""

from collections import Counter

import pandas as pd
import pytest

import memframe as mf
from memframe.apply import Surroundings
from tests.torture.cutting import Cut, CuttingProxy

MAX_RESUMES = 50
"""A run whose every answer breaks off stops when its budget of retries is used up; it is then resumed."""

STEPS = [pytest.param(7, id="every 7th byte"), pytest.param(1, id="every byte", marks=pytest.mark.campaign)]

AT_ONCE = Surroundings(chance=lambda: 0.0)
"""Without the waits between repeats, which are drawn by chance from 0 up."""


@pytest.fixture
def proxy(service):
    with CuttingProxy(service.base_url) as proxy:
        yield proxy


@pytest.fixture
def access(user, service, proxy):
    request = user.ask()
    service.decide(request.id, "approved")
    with mf.connect(proxy.url, api_key=service.api_key) as client:
        yield mf.open_access(client, request.id)


def carry_out(access, plan, journal):
    options = {"settle_s": 0, "progress": False, "surroundings": AT_ONCE}
    run = mf.apply_plan(access, plan, confirm=plan.counts.get("delete", 0), journal=journal, **options)
    for _ in range(MAX_RESUMES):
        if not run.counts.get("unknown") and not run.counts.get("planned"):
            break
        run = mf.resume_run(access, journal, **options)
    run.raise_for_failures()
    return run


def contents(access):
    return Counter(mf.load_memories(access, progress=False).content)


def created(access, texts):
    mf.create_memories(access, pd.DataFrame({"content": texts}), progress=False).raise_for_failures()
    return mf.load_memories(access, progress=False)


def length_of_answer(access, proxy):
    created(access, ["the first, to learn how long an answer is"])
    return max(proxy.answer_lengths)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("side", ["request", "answer"])
def test_a_create_that_is_cut_anywhere_is_there_once(access, proxy, tmp_path, side, step):
    n_bytes = length_of_answer(access, proxy) if side == "answer" else 1_000  # more than a request has
    places = range(0, n_bytes, step)
    texts = [f"memory {n:04}" for n in places]
    plan = mf.plan_changes(access, pd.DataFrame({"content": texts}))
    proxy.script.extend(Cut(**{side: n}) for n in places)
    before = contents(access)
    carry_out(access, plan, tmp_path / "run.journal")
    assert contents(access) - before == Counter(texts)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("action", ["patch", "delete"])
def test_patches_and_deletes_that_are_cut_anywhere_hold(access, proxy, tmp_path, action, step):
    places = range(0, length_of_answer(access, proxy), step)
    loaded = created(access, [f"memory {n:04}" for n in places])
    edited = loaded.assign(content=loaded.content + ", changed")
    plan = mf.plan_changes(access, edited) if action == "patch" else mf.plan_deletes(access, loaded)
    proxy.script.extend(Cut(answer=n) for n in places)
    carry_out(access, plan, tmp_path / "run.journal")
    assert contents(access) == (Counter(edited.content) if action == "patch" else Counter())
