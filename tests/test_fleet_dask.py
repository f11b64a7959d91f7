"""Fleets on a Dask cluster: one task a user, keys only where they belong, nothing in the open over a network."""

import json
import os
import threading
from datetime import UTC, datetime

import cloudpickle
import pandas as pd
import pytest
from click.testing import CliRunner
from distributed import CancelledError, LocalCluster
from distributed import Client as DaskClient
from distributed.comm import CommClosedError

import memframe as mf
from memframe import wire
from memframe.cli import main
from memframe.errors import ConfigError, NoAnswerError
from memframe.fleet import dask
from memframe.fleet.work import Work, approved_and_revoked
from tests.faults import FaultProxy, passed
from tests.rows import assert_same
from tests.test_fleet import N_ROWS, client, load

__all__ = ["client"]


@pytest.fixture(scope="module")
def dask_client(village):
    """Two worker processes, which know the key of the village from their environment."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("MEMFRAME_API_KEY", village.api_key)
        with (
            LocalCluster(
                n_workers=2, threads_per_worker=2, processes=True, dashboard_address="127.0.0.1:0"
            ) as local,
            DaskClient(local) as dask_client,
        ):
            yield dask_client


@pytest.mark.parametrize("plaintext", [False, True])
def test_a_cluster_brings_what_threads_bring(client, dask_client, plaintext):
    here, there = load(client), load(client, scheduler=dask_client, plaintext=plaintext)
    assert_same(there.memories, here.memories)
    assert there.outcomes.equals(here.outcomes)


def test_a_cluster_audits_as_threads_do(tmp_path, client, dask_client):
    run = {"progress": False, "now": datetime(2026, 11, 1, tzinfo=UTC)}
    here = mf.audit_fleet(client, tmp_path / "here", **run)
    there = mf.audit_fleet(client, tmp_path / "there", scheduler=dask_client, **run)
    pd.testing.assert_frame_equal(there.findings, here.findings)
    assert there.outcomes.equals(here.outcomes)


def test_a_cluster_is_given_to_the_command_by_its_address(tmp_path, village, dask_client, monkeypatch):
    monkeypatch.setenv("MEMFRAME_BASE_URL", village.base_url)
    monkeypatch.setenv("MEMFRAME_API_KEY", village.api_key)
    export = ["fleet", "export", str(tmp_path / "fleet"), "--dask", dask_client.scheduler.address, "--json"]
    assert json.loads(CliRunner().invoke(main, export).stdout)["n_rows"] == 3 * N_ROWS


# Trouble


def test_who_is_done_is_brought_home_while_others_are_at_work(village, dask_client):
    """However long those take: a run that breaks off keeps what was done."""
    others_are_home = threading.Event()
    waited = []

    def held(request, forward):
        waited.append(others_are_home.wait(timeout=20))
        return forward(request)

    with FaultProxy(village.base_url) as proxy, mf.connect(proxy.base_url, api_key=village.api_key) as client:
        proxy.script(wire.LIST_MEMORIES, passed, passed, held)
        approved, _ = approved_and_revoked(client.access_requests())
        hauls = dask.process_on_cluster(dask_client, client, approved[:3], Work(table=True))
        home = [next(hauls), next(hauls)]
        others_are_home.set()
        home += hauls
    assert [haul.status for haul in home] == ["done"] * 3
    assert waited == [True]


@pytest.mark.parametrize("gone", [OSError("Timed out"), CommClosedError("reset"), CancelledError("lost")])
def test_a_scheduler_that_goes_away_is_told_of(client, dask_client, monkeypatch, gone):
    def gather(dask_client, *futures, **options):
        raise gone

    monkeypatch.setattr(DaskClient, "gather", gather)
    with pytest.raises(
        NoAnswerError, match=r"scheduler of the cluster, tcp://127\.0\.0\.1:\d+, no longer answers"
    ):
        load(client, scheduler=dask_client)


def test_a_task_that_dies_is_a_row_of_a_user_who_failed(client, dask_client, monkeypatch):
    monkeypatch.setattr(dask, "run_task", lambda member, **options: 1 / 0)
    outcomes = load(client, scheduler=dask_client).outcomes
    assert outcomes.status.tolist() == ["failed"] * 3 + ["revoked"]
    assert outcomes.error[0].startswith("the task or its result was lost")


# Keys and plaintext


@pytest.fixture
def tasks(monkeypatch):
    """All that the scheduler is given, as it travels."""
    tasks = []
    submit = DaskClient.map

    def recorded(dask_client, *work, **options):
        tasks.append(cloudpickle.dumps((work, options)))
        return submit(dask_client, *work, **options)

    monkeypatch.setattr(DaskClient, "map", recorded)
    return tasks


def test_no_key_is_in_any_task(village, client, dask_client, tasks):
    fleet = load(client, scheduler=dask_client, plaintext=True)
    access = mf.open_access(client, fleet.outcomes.request_id[0])
    (sent,) = tasks
    assert client.base_url.encode() in sent
    for key in (
        village.api_key,
        access.credentials.encryption_key.reveal(),
        access.credentials.memory_key.reveal(),
    ):
        assert key.encode() not in sent


@pytest.fixture
def brought(monkeypatch):
    """All that comes from the workers, as it travels."""
    brought = []
    gather = DaskClient.gather

    def recorded(dask_client, *futures, **options):
        messages = gather(dask_client, *futures, **options)
        brought.extend(messages)
        return messages

    monkeypatch.setattr(DaskClient, "gather", recorded)
    return brought


@pytest.mark.parametrize("plaintext", [False, True])
def test_what_workers_bring_is_sealed_unless_plaintext_is_asked_for(client, dask_client, brought, plaintext):
    fleet = load(client, scheduler=dask_client, plaintext=plaintext)
    assert len(fleet.memories) == 3 * N_ROWS
    assert [b"content_error" in message for message in brought] == [plaintext] * 3


def test_a_message_that_is_damaged_is_a_row_of_a_user_who_failed(client, dask_client, monkeypatch):
    gather, is_spoilt = DaskClient.gather, []

    def spoilt(dask_client, *futures, **options):  # it is called for each batch that is done
        first, *others = gather(dask_client, *futures, **options)
        damaged = first if is_spoilt else first[:-1] + bytes([first[-1] ^ 1])
        is_spoilt.append(True)
        return [damaged, *others]

    monkeypatch.setattr(DaskClient, "gather", spoilt)
    outcomes = load(client, scheduler=dask_client).outcomes
    assert sorted(outcomes.status) == ["done", "done", "failed", "revoked"]
    assert (
        "the task or its result was lost on the cluster" in outcomes.error[outcomes.status == "failed"].item()
    )


def test_a_cluster_asks_no_more_of_a_service_than_threads_do(village, dask_client):
    n_asked = []
    for scheduler in ("threads", dask_client):
        with (
            FaultProxy(village.base_url) as proxy,
            mf.connect(proxy.base_url, api_key=village.api_key) as client,
        ):
            assert load(client, scheduler=scheduler).outcomes.status.tolist() == ["done"] * 3 + ["revoked"]
            reads = (wire.GET_CREDENTIALS, wire.LIST_MEMORIES)
            n_asked.append([len(proxy.requests_to(endpoint)) for endpoint in reads])
    assert n_asked == [[3, 3]] * 2


def test_workers_without_a_key_are_named_before_anything_is_done(village, dask_client):
    with FaultProxy(village.base_url) as proxy:  # an address to which no worker has a connection yet
        client = mf.connect(proxy.base_url, api_key=village.api_key)
        try:
            dask_client.run(lambda: os.environ.pop("MEMFRAME_API_KEY"))
            with pytest.raises(
                ConfigError, match=r"A worker of the cluster cannot sign in: .*MEMFRAME_API_KEY"
            ):
                load(client, scheduler=dask_client)
        finally:
            dask_client.run(lambda key: os.environ.update(MEMFRAME_API_KEY=key), village.api_key)


@pytest.mark.parametrize(
    ("scheduler", "workers", "is_refused"),
    [
        ("tcp://127.0.0.1:1", ["tcp://127.0.0.1:2", "tcp://[::1]:2", "inproc://1/2"], False),
        ("tls://10.0.0.7:1", ["tls://10.0.0.8:2"], False),
        ("tcp://10.0.0.7:1", [], True),
        ("tcp://127.0.0.1:1", ["tcp://127.0.0.1:2", "tcp://10.0.0.8:2"], True),
        ("ws://scheduler.example:1", [], True),
        ("ucx://10.0.0.7:1", [], True),
    ],
)
def test_a_cluster_in_the_open_is_refused(scheduler, workers, is_refused):
    seen = SeenCluster(scheduler, workers)
    if not is_refused:
        dask._refuse_open_network(seen)
        return
    with pytest.raises(ConfigError, match=r"uses \w+://[\w.]+:\d without encryption: give it TLS"):
        dask._refuse_open_network(seen)


class SeenCluster:
    """What a cluster says about itself; one off this machine cannot be had in a test."""

    def __init__(self, address, workers):
        self.info = {"address": address, "workers": dict.fromkeys(workers)}

    def scheduler_info(self, n_workers):
        assert n_workers == -1  # all of them
        return self.info
