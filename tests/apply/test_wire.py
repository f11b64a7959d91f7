"""Writes over real sockets: cut at every byte, several at a time, interrupted, and from two processes."""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path

import pandas as pd
import pytest

import memframe as mf
from memframe import wire
from memframe.apply import apply_plan
from memframe.apply.workers import WorkerPool
from memframe.runtime import Runtime
from tests.apply.cutting import CuttingProxy
from tests.faults import FaultProxy, answered, passed

QUIET = {"progress": False, "settle_s": 0.0}
A_RUN = 30
"""Cuts in one run: more in a row would be taken for a service that is down."""


def through(proxy, access, user):
    """The same access, by way of a proxy."""
    return mf.open_access(mf.connect(proxy.base_url, api_key=user.service.api_key), access.request_id)


def at_once(access):
    """The access, of whose client no run sleeps any more."""
    access.client.runtime = Runtime(sleep=lambda seconds: None)
    return access


def new_rows(n, name="fact"):
    return pd.DataFrame({"content": [f"{name} {row}" for row in range(n)]})


# Every byte


def cut_everywhere(access, user, cuts, *, uploads=False):
    """Creates whose answers are cut, one place each; how long the longest answer was."""
    longest = 0
    for first in range(0, len(cuts), A_RUN):
        some = cuts[first : first + A_RUN]
        with CuttingProxy(access.client.base_url, some, uploads=uploads) as proxy:
            mine = through(proxy, access, user)
            plan = mf.plan_changes(mine, new_rows(len(some), f"cut {first}"))
            run = apply_plan(at_once(mine), plan, workers=1, **QUIET)
        run.raise_for_failures()
        longest = max([longest, *proxy.n_bytes])
    held = Counter(mf.load_memories(access, progress=False).content)
    assert len(held) == len(cuts)
    assert set(held.values()) == {1}
    return longest


def test_an_answer_that_is_cut_at_any_byte_loses_nothing_and_doubles_nothing(access, user):
    longest = cut_everywhere(access, user, list(range(0, 800, 17)))
    assert longest < 800  # so that some came whole


@pytest.mark.campaign
def test_an_answer_that_is_cut_at_every_byte_loses_nothing_and_doubles_nothing(access, user):
    longest = cut_everywhere(access, user, list(range(800)))
    assert longest < 800


def test_a_request_that_is_cut_on_its_way_up_is_sent_again(access, user):
    cut_everywhere(access, user, [*range(0, 900, 97)], uploads=True)


@pytest.mark.parametrize("plan", ["patches", "deletes"])
def test_patches_and_deletes_whose_answers_are_cut_are_done_once_they_are_read(access, user, plan):
    mf.create_memories(access, new_rows(20), **QUIET).raise_for_failures()
    with CuttingProxy(access.client.base_url, range(0, 600, 30)) as proxy:
        mine = through(proxy, access, user)
        memories = mf.load_memories(mine, progress=False)
        memories["title"] = "after"
        planned = mf.plan_changes(mine, memories) if plan == "patches" else mf.plan_deletes(mine, memories)
        run = apply_plan(at_once(mine), planned, confirm=planned.counts.get("delete"), **QUIET)
    run.raise_for_failures()
    assert run.counts["recovered"] > 0
    after = mf.load_memories(access, progress=False)
    assert len(after) == (20 if plan == "patches" else 0)
    assert set(after.title) <= {"after"}


def test_a_connection_that_the_service_closed_while_it_was_idle_loses_nothing(access, user):
    """Whether the request arrived is not known then: it is looked for."""
    with CuttingProxy(access.client.base_url, [10_000] * 8) as proxy:  # answers come whole, then the end
        mine = through(proxy, access, user)
        run = apply_plan(at_once(mine), mf.plan_changes(mine, new_rows(8)), **QUIET)
    run.raise_for_failures()
    assert len(mf.load_memories(access, progress=False)) == 8


# Several at a time


class Gate:
    """A fault that lets requests through together, and counts how many are in flight."""

    def __init__(self, n, then=passed):
        self._together = threading.Barrier(n, timeout=10)
        self._then = then

    def __call__(self, request, forward):
        self._together.wait()
        return self._then(request, forward)


def test_as_many_requests_are_in_flight_as_there_are_workers(access, user):
    with FaultProxy(access.client.base_url) as proxy:
        gate = Gate(6)
        proxy.script(wire.CREATE_MEMORY, *[gate] * 6)
        run = mf.create_memories(through(proxy, access, user), new_rows(6), workers=6, **QUIET)
    run.raise_for_failures()


def test_a_service_that_throttles_has_fewer_in_flight_afterwards(access, user):
    with FaultProxy(access.client.base_url) as proxy:
        gate = Gate(4, answered(429, Retry_After="0"))
        proxy.script(wire.CREATE_MEMORY, *[gate] * 4)
        run = mf.create_memories(through(proxy, access, user), new_rows(12), workers=4, **QUIET)
    run.raise_for_failures()
    assert sorted(run.outcomes.attempts) == [1] * 8 + [2] * 4


@pytest.mark.parametrize("refusal", [answered(403), answered(302, Location="https://elsewhere.example.org")])
def test_what_waits_for_a_worker_is_not_sent_once_the_run_stops(access, user, refusal):
    """Intents are on the disk for more operations than there are workers; those that never left stay planned."""
    with FaultProxy(access.client.base_url) as proxy:
        proxy.script(wire.CREATE_MEMORY, *[passed] * 4, *[refusal] * 60)
        mine = through(proxy, access, user)
        run = mf.create_memories(mine, new_rows(60), workers=4, **QUIET)
        n_sent = len([one for one in proxy.requests if one.method == "POST" and "memory-blobs" in one.path])
    assert run.stopped
    assert n_sent <= 4 + 4
    attempted = run.outcomes.attempts > 0
    assert attempted.sum() == n_sent
    assert set(run.outcomes.status[~attempted]) == {"planned"}
    assert set(run.outcomes.status[attempted]) <= {"done", "planned"}
    mf.resume_run(access, run, **QUIET).raise_for_failures()
    assert len(mf.load_memories(access, progress=False)) == 60


class Once(Gate):
    """Takes each token once, after letting the first few requests in together."""

    def __init__(self, n):
        super().__init__(n)
        self._left = n
        self._tokens = set()
        self._lock = threading.Lock()

    def __call__(self, request, forward):
        with self._lock:
            self._left -= 1
            is_among_the_first = self._left >= 0
        if is_among_the_first:
            self._together.wait()
        with self._lock:
            token = request.headers["Authorization"]
            is_new = token not in self._tokens
            self._tokens.add(token)
        return (passed if is_new else answered(401))(request, forward)


def test_a_token_that_others_in_flight_have_used_up_is_renewed_once_more(access, user):
    with FaultProxy(access.client.base_url) as proxy:
        proxy.always(wire.CREATE_MEMORY, Once(4))
        run = mf.create_memories(through(proxy, access, user), new_rows(12), workers=4, **QUIET)
    run.raise_for_failures()
    assert run.counts["done"] == 12


def test_what_breaks_a_task_breaks_the_run():
    def broken():
        raise ZeroDivisionError

    with WorkerPool(2) as pool:
        pool.submit(1, broken)
        with pytest.raises(ZeroDivisionError):
            pool.completed(timeout_s=10)


# Interrupted


WRITER = """
import sys
import pandas as pd
import memframe as mf

base_url, api_key, request_id, journal = sys.argv[1:5]
access = mf.open_access(mf.connect(base_url, api_key=api_key), request_id)
frame = pd.DataFrame({"content": [f"fact {row}" for row in range(40)]})
print("ready", flush=True)
mf.create_memories(access, frame, journal=journal, workers=4, settle_s=0.0, progress=False)
"""


@contextmanager
def writer(access, user, proxy, journal):
    """Another process that writes 40 rows, each taking its time."""
    arguments = [proxy.base_url, user.service.api_key, access.request_id, str(journal)]
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def slow(access):
    """A proxy in which the twelfth write waits until it is let go."""
    let_go = threading.Event()
    reached = threading.Event()

    def waiting(request, forward):
        reached.set()
        let_go.wait(20)
        return forward(request)

    with FaultProxy(access.client.base_url) as proxy:
        proxy.script(wire.CREATE_MEMORY, *[passed] * 11, waiting)
        proxy.reached, proxy.let_go = reached, let_go
        yield proxy
        let_go.set()


def test_ctrl_c_waits_for_what_is_in_flight_and_the_run_can_be_resumed(access, user, slow, tmp_path):
    journal = tmp_path / "run.journal"
    with writer(access, user, slow, journal) as process:
        assert slow.reached.wait(20)
        process.send_signal(signal.SIGINT)
        slow.let_go.set()
        _, errors = process.communicate(timeout=20)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    assert f"resume_run(access, '{journal}')" in errors
    with mf.journal.Journal.open(journal, mf.keystore.open_local_cipher()) as record:
        counts = record.counts()
    assert counts.keys() == {"done", "planned"}
    assert counts["done"] >= 11
    assert counts["planned"] > 0
    mf.resume_run(access, journal, **QUIET).raise_for_failures()
    assert sorted(mf.load_memories(access).content) == sorted(new_rows(40).content)


def test_a_second_ctrl_c_does_not_wait(access, user, slow, tmp_path):
    journal = tmp_path / "run.journal"
    with writer(access, user, slow, journal) as process:
        assert slow.reached.wait(20)
        for _ in range(50):  # the first may not have been noticed yet
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.3)
                break
        assert process.returncode is not None  # though the service is still silent
    slow.let_go.set()
    mf.resume_run(access, journal, settle_s=1.0, progress=False).raise_for_failures()
    assert sorted(mf.load_memories(access).content) == sorted(new_rows(40).content)


# Two processes


def test_rows_of_another_process_are_not_written_while_it_runs_or_was_cut_short(access, user, slow, tmp_path):
    journal = tmp_path / "run.journal"
    with writer(access, user, slow, journal) as process:
        assert slow.reached.wait(20)
        named = rf"in use by process {process.pid} on {os.uname().nodename}, since 20"
        with pytest.raises(mf.JournalError, match=named):
            mf.create_memories(access, new_rows(1, "mine"), **QUIET)
        with pytest.raises(mf.JournalError, match=named):
            mf.resume_run(access, journal, **QUIET)
        process.send_signal(signal.SIGKILL)
        process.wait()
    slow.let_go.set()
    with pytest.raises(mf.PlanError, match=rf"interrupted.* 40 changes.*resume_run\(access, '{journal}'\)"):
        mf.create_memories(access, new_rows(40), **QUIET)
    mf.create_memories(access, new_rows(1, "something else"), **QUIET).raise_for_failures()
    mf.resume_run(access, journal, settle_s=1.0, progress=False).raise_for_failures()
    assert len(mf.load_memories(access)) == 41
    again = mf.create_memories(access, new_rows(40), **QUIET)  # who wants them twice can have them
    assert again.is_complete


def test_a_journal_is_not_written_over(access, tmp_path):
    mf.create_memories(access, new_rows(1), journal=tmp_path / "run.journal", **QUIET)
    with pytest.raises(mf.JournalError, match="already exists"):
        mf.create_memories(access, new_rows(1, "other"), journal=tmp_path / "run.journal", **QUIET)
    assert len(mf.load_memories(access)) == 1


def test_a_port_that_changed_with_a_restart_is_the_same_service(access, user, tmp_path):
    plan = mf.plan_changes(access, new_rows(2))
    with FaultProxy(access.client.base_url) as proxy:
        run = apply_plan(through(proxy, access, user), plan, **QUIET)
    run.raise_for_failures()
    assert Path(run.journal).exists()
    assert mf.resume_run(access, run, **QUIET).is_complete
