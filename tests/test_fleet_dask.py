"""Fleets on a Dask cluster: one task a user, keys only where they belong, nothing in the open over a network."""

import io
import json
import os
import pickle
from datetime import UTC, datetime

import cloudpickle
import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from distributed import Client as DaskClient
from distributed import LocalCluster
from msgspec.structs import replace

import memframe as mf
from memframe.cli import main
from memframe.errors import ConfigError
from memframe.fleet import cluster
from memframe.fleet.members import approved_and_revoked
from memframe.fleet.opening import opened
from memframe.fleet.work import Work
from memframe.sample import load_sample
from tests.faults import FaultProxy
from tests.rows import assert_same
from tests.test_fleet import N_ROWS, by_user, load, village

__all__ = ["village"]


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


@pytest.fixture
def client(village):
    with mf.connect(village.base_url, api_key=village.api_key) as client:
        yield client


@pytest.mark.parametrize("plaintext", [False, True])
def test_a_cluster_brings_what_threads_bring(client, dask_client, plaintext):
    here, there = load(client), load(client, scheduler=dask_client, plaintext=plaintext)
    assert_same(there.memories, here.memories)
    assert there.outcomes.equals(here.outcomes)


def test_a_cluster_exports_sealed(tmp_path, village, client, dask_client):
    folder = mf.export_fleet(client, tmp_path / "fleet", scheduler=dask_client, progress=False)
    for person in village.people[:3]:
        access = mf.open_access(client, by_user(folder.outcomes).loc[person.user_id, "request_id"])
        loaded = mf.load_archive(folder.archive(person.user_id), key=access)
        assert_same(loaded, mf.load_memories(access, progress=False))


def test_a_cluster_audits_as_threads_do(tmp_path, client, dask_client):
    run = {"progress": False, "now": datetime(2026, 11, 1, tzinfo=UTC)}
    here = mf.audit_fleet(client, tmp_path / "here", **run)
    there = mf.audit_fleet(client, tmp_path / "there", scheduler=dask_client, **run)
    pd.testing.assert_frame_equal(there.findings, here.findings)
    assert there.outcomes.equals(here.outcomes)


def test_a_cluster_is_given_to_the_command_by_its_address(tmp_path, village, dask_client, monkeypatch):
    monkeypatch.setenv("MEMFRAME_BASE_URL", village.base_url)
    monkeypatch.setenv("MEMFRAME_API_KEY", village.api_key)
    arguments = [
        "fleet",
        "export",
        str(tmp_path / "fleet"),
        "--dask",
        dask_client.scheduler.address,
        "--json",
    ]
    assert json.loads(CliRunner().invoke(main, arguments).stdout)["n_rows"] == 3 * N_ROWS


# Trouble


def test_a_task_that_dies_is_a_row_of_a_user_who_failed(client, dask_client, monkeypatch):
    monkeypatch.setattr(cluster, "haul_of", lambda member, **options: 1 / 0)
    outcomes = load(client, scheduler=dask_client).outcomes
    assert outcomes.status.tolist() == ["failed"] * 3 + ["revoked"]
    assert outcomes.error[0].startswith("the task was lost on the cluster")


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


def hauls_of(client, dask_client, **work):
    members, _ = approved_and_revoked(client.access_requests())
    return list(cluster.on_cluster(dask_client, client, members, Work(**work)))


def test_only_sealed_memories_leave_a_worker(client, dask_client):
    texts = [memory.content for memory in load_sample()[:N_ROWS]]
    for kind, is_open in (("sealed", False), ("plain", True)):
        for haul in hauls_of(client, dask_client, table=kind, archive=kind):
            assert (haul.table is not None) == is_open
            archive = pq.read_table(io.BytesIO(haul.files["memories/part-00000.parquet"]))
            for table in filter(None, (archive, haul.table)):
                assert [text in table["content"].to_pylist() for text in texts] == [is_open] * N_ROWS
            assert [text[:6] for text in haul.sealed] == ([] if is_open else ["mf1.1."])


def test_what_the_present_key_does_not_open_is_a_row_of_a_user_who_failed(client, dask_client):
    one, other, third = hauls_of(client, dask_client, table="sealed")
    mixed = [
        replace(one, sealed=other.sealed),
        replace(other, sealed=[f"{other.sealed[0][:-8]}AAAAAAA="]),
        third,
    ]
    found = list(opened(client, mixed, workers=2))
    assert [haul.status for haul in found] == ["failed", "failed", "done"]
    assert [haul.table is None for haul in found] == [True, True, False]
    assert "does not open: the user's key was changed in the meantime" in found[0].error


def test_nothing_with_a_key_in_it_can_become_part_of_a_task(village, client):
    access = village.people[0].access()
    for thing in (client, access, access.credentials, access.credentials.encryption_key):
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(thing)


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
        cluster._refuse_open_network(seen)
        return
    with pytest.raises(ConfigError, match=r"speaks to \w+://[\w.]+:\d in the open: give it TLS"):
        cluster._refuse_open_network(seen)


class SeenCluster:
    """What a cluster says about itself; one off this machine cannot be had in a test."""

    def __init__(self, address, workers):
        self.info = {"address": address, "workers": dict.fromkeys(workers)}

    def scheduler_info(self, n_workers):
        assert n_workers == -1  # all of them
        return self.info
