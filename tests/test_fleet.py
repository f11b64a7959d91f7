"""Fleets: every user who approved, each alone and each once; trouble is a row, and a second run does the rest."""

import os
import stat

import msgspec
import pandas as pd
import pytest

import memframe as mf
from memframe import wire
from memframe.errors import ConfigError, FrameError
from memframe.fleet.work import approved_and_revoked
from memframe.wire import AccessRequest
from tests.faults import answered, changed, refused
from tests.rows import assert_same
from tests.strangers import REQUEST

N_ROWS = 12


@pytest.fixture
def client(village):
    with mf.connect(village.base_url, api_key=village.api_key) as client:
        yield client


@pytest.fixture
def approved(village):
    return [person.user_id for person in village.people[:3]]


def load(client, **options):
    return mf.load_fleet(client, progress=False, **options)


def export(client, path, **options):
    return mf.export_fleet(client, path, progress=False, **options)


def by_user(outcomes):
    return outcomes.set_index("user_id")


def access_of(client, outcomes, user_id):
    return mf.open_access(client, by_user(outcomes).loc[user_id, "request_id"])


# Who


def test_every_approved_user_is_loaded_once(village, client, approved):
    seen = []
    fleet = mf.load_fleet(client, progress=lambda done, total, text: seen.append((done, total, text)))
    assert (seen[0], seen[-1]) == ((0, 3, "users"), (3, 3, "users"))
    assert fleet.memories.groupby("user_id").size().to_dict() == dict.fromkeys(approved, N_ROWS)
    outcomes = by_user(fleet.outcomes)
    assert outcomes.loc[approved, "status"].tolist() == ["done"] * 3
    assert outcomes.loc[approved, "n_rows"].tolist() == [N_ROWS] * 3
    assert repr(fleet) == "<memframe.Fleet of 36 memories; users: 3 done, 1 revoked>"
    for user_id in approved:
        mine = fleet.memories[fleet.memories.user_id == user_id].reset_index(drop=True)
        assert_same(mine, mf.load_memories(access_of(client, fleet.outcomes, user_id), progress=False))


def test_one_who_took_the_approval_back_is_a_row_and_others_are_none(village, client):
    outcomes = load(client).outcomes
    _, _, _, dan, eve, fay = village.people
    assert by_user(outcomes).loc[fay.user_id, "status"] == "revoked"
    assert "is revoked" in by_user(outcomes).loc[fay.user_id, "error"]
    assert not {dan.user_id, eve.user_id} & {*outcomes.user_id}
    assert outcomes.dtypes.astype(str).tolist() == ["str", "str", "str", "int64", "str"]


USER_ID = "5f0c9b1e-0000-4000-8000-00000000000a"


def test_of_several_requests_the_newest_approved_one_counts():
    def request(request_id, status, user_id, day):
        decided = None if day is None else f"2026-01-0{day}T00:00:00Z"
        return msgspec.convert(
            {"id": request_id, "status": status, "user_id": user_id, "updatedAt": decided}, AccessRequest
        )

    requests = [
        request("r1", "approved", USER_ID, 3),
        request("r2", "approved", USER_ID.upper(), 1),
        request("r3", "revoked", USER_ID, 5),
        request("r4", "revoked", "u2", None),
        request("r5", "pending", "u3", 1),
        request("r6", "approved", None, 1),
        request("r7", "approved", "ada", 1),
        request("r8", "approved", "Ada", 1),  # no UUID, so somebody else
    ]
    approved, revoked = approved_and_revoked(requests)
    assert [member.request_id for member in approved] == ["r1", "r6", "r7", "r8"]
    assert [member.request_id for member in revoked] == ["r4"]


def test_a_user_whom_only_the_credentials_name_is_loaded_once_too(stranger):
    unnamed = [{**REQUEST, "id": f"r{n}", "user_id": None} for n in range(2)]
    stranger.answer(wire.LIST_REQUESTS, items=unnamed)
    fleet = load(stranger.client())
    assert len(fleet.memories) == 1
    assert fleet.outcomes.status.tolist() == ["done"]


# Trouble


@pytest.fixture
def proxied(village, proxy):
    """A client whose answers a test may spoil."""
    with mf.connect(proxy.base_url, api_key=village.api_key) as client:
        client.proxy = proxy
        yield client


def revoke(proxy, request_id):
    """The user takes the approval back after the requests were listed."""
    credentials = wire.Endpoint("GET", f"/access-requests/{request_id}/credentials")
    proxy.always(credentials, answered(403, {"title": "not approved"}))
    state = {**REQUEST, "id": request_id, "status": "revoked"}
    proxy.always(wire.Endpoint("GET", f"/access-requests/{request_id}"), answered(200, state))


def test_trouble_with_one_user_is_a_row_and_no_loss_to_others(proxied, approved):
    requests = by_user(load(proxied).outcomes).request_id
    revoke(proxied.proxy, requests[approved[0]])
    broken = wire.Endpoint("GET", f"/access-requests/{requests[approved[1]]}/credentials")
    proxied.proxy.always(broken, refused)
    fleet = load(proxied)
    outcomes = by_user(fleet.outcomes)
    assert outcomes.loc[approved, "status"].tolist() == ["revoked", "failed", "done"]
    assert outcomes.loc[approved, "n_rows"].tolist() == [0, 0, N_ROWS]
    assert "is revoked" in outcomes.loc[approved[0], "error"]
    assert "out of order" in outcomes.loc[approved[1], "error"]
    assert {*fleet.memories.user_id} == {approved[2]}


def test_memories_that_cannot_be_opened_are_told_and_told_again(tmp_path, proxied, approved):
    requests = by_user(load(proxied).outcomes).request_id
    credentials = wire.Endpoint("GET", f"/access-requests/{requests[approved[0]]}/credentials")
    other_key = changed(lambda keys: keys.update(encryption_key="0f1e" * 16))
    proxied.proxy.script(credentials, other_key, other_key)
    outcomes = [load(proxied).outcomes, *(export(proxied, tmp_path / "fleet").outcomes for _ in range(2))]
    for outcome in map(by_user, outcomes):
        assert outcome.status[approved[0]] == "done"
        assert outcome.error[approved[0]] == "12 of 12 memories cannot be opened: see content_error"
        assert outcome.error[approved[1:]].isna().all()


def test_a_fault_of_our_own_is_a_row_without_a_word_of_the_memory(client, approved, monkeypatch):
    from memframe.fleet import work  # noqa: PLC0415

    def broken(access):
        raise ValueError("hunter2")

    monkeypatch.setattr(work, "tables_of_access", broken)
    error = by_user(load(client).outcomes).loc[approved[0], "error"]
    assert error.startswith("ValueError at test_fleet.py:")
    assert "hunter2" not in error


# The folder


@pytest.mark.parametrize("sealed", [True, False])
def test_archives_land_by_user(tmp_path, village, client, approved, sealed):
    folder = export(client, tmp_path / "fleet", sealed=sealed)
    assert sorted(os.listdir(folder.path)) == [".run.lock", "memories", "outcomes.parquet"]  # noqa: PTH208 - hidden files too
    for user_id in approved:
        access = access_of(client, folder.outcomes, user_id)
        loaded = mf.load_archive(folder.archive(user_id), key=access if sealed else None)
        assert_same(loaded, mf.load_memories(access, progress=False))
    everything = [folder.path, *folder.path.rglob("*")]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in everything if path.is_file()}
    assert modes == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in everything if path.is_dir()} == {0o700}


def test_other_readers_take_the_user_from_the_folder(tmp_path, client, approved):
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    folder = export(client, tmp_path / "fleet").path / "memories"
    counts = dict.fromkeys(approved, N_ROWS)
    assert pd.read_parquet(folder).astype({"user_id": "str"}).groupby("user_id").size().to_dict() == counts
    assert dict(polars.read_parquet(folder).group_by("user_id").len().rows()) == counts
    count = "select user_id::varchar, count(*) from read_parquet(?, hive_partitioning=true) group by 1"
    with duckdb.connect() as other:
        assert dict(other.execute(count, [f"{folder}/*/*.parquet"]).fetchall()) == counts


def test_a_second_run_does_only_what_is_missing(tmp_path, proxied, approved):
    requests = by_user(load(proxied).outcomes).request_id
    broken = wire.Endpoint("GET", f"/access-requests/{requests[approved[1]]}/credentials")
    proxied.proxy.script(broken, refused)
    first = export(proxied, tmp_path / "fleet")
    assert by_user(first.outcomes).loc[approved, "status"].tolist() == ["done", "failed", "done"]
    before = [first.archive(user_id).stat().st_mtime_ns for user_id in (approved[0], approved[2])]
    n_requests = len(proxied.proxy.requests_to(wire.GET_CREDENTIALS))
    second = export(proxied, tmp_path / "fleet")
    assert len(proxied.proxy.requests_to(wire.GET_CREDENTIALS)) == n_requests + 1
    assert by_user(second.outcomes).loc[approved, "status"].tolist() == ["done"] * 3
    assert by_user(second.outcomes).loc[approved, "n_rows"].tolist() == [N_ROWS] * 3
    assert [second.archive(user_id).stat().st_mtime_ns for user_id in (approved[0], approved[2])] == before


def test_a_run_that_was_killed_goes_on_where_it_was(tmp_path, client, approved):
    folder = export(client, tmp_path / "fleet")
    (folder.path / "outcomes.parquet").unlink()
    for part in folder.archive(approved[0]).iterdir():
        part.unlink()
    folder.archive(approved[0]).rmdir()
    outcomes = by_user(export(client, tmp_path / "fleet").outcomes)
    assert outcomes.loc[approved, "n_rows"].tolist() == [N_ROWS] * 3


def test_a_run_that_ends_early_keeps_what_came_of_it(tmp_path, client, approved, monkeypatch):
    from memframe.fleet.folder import FleetFolder  # noqa: PLC0415

    save, saved = FleetFolder.save, []

    def full(folder, result):
        if saved:
            raise OSError(28, "No space left on device")
        saved.append(result.user.user_id)
        save(folder, result)

    monkeypatch.setattr(FleetFolder, "save", full)
    with pytest.raises(FrameError, match=r"fleet cannot be written \(No space left"):
        export(client, tmp_path / "fleet")
    outcomes = FleetFolder(tmp_path / "fleet").outcomes
    assert outcomes[outcomes.status == "done"].user_id.tolist() == saved


def test_an_id_that_is_a_path_stays_in_the_folder(tmp_path, stranger):
    stranger.answer(wire.LIST_REQUESTS, items=[{**REQUEST, "user_id": "../../x"}])
    stranger.answer(wire.GET_CREDENTIALS, user_id="../../x")
    stranger.answer(wire.LIST_MEMORIES, memoryBlobs=[])
    folder = export(stranger.client(), tmp_path / "fleet")
    assert os.listdir(tmp_path) == ["fleet"]  # noqa: PTH208 - hidden files too
    assert folder.archive("../../x").is_relative_to(tmp_path / "fleet")
    assert len(mf.load_archive(folder.archive("../../x"), key=mf.open_access(stranger.client(), "r1"))) == 0


def test_a_folder_that_does_not_fit_is_refused(tmp_path, client):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "ten-years.txt").touch()
    export(client, tmp_path / "plain", sealed=False)
    for name, says in (
        ("missing/fleet", "does not exist"),
        ("thesis", r"holds ten-years\.txt"),
        ("thesis/ten-years.txt", "is not a folder, and a fleet needs one"),
        ("plain", "holds plain archives, and sealed ones are asked for"),
    ):
        with pytest.raises(FrameError, match=says):
            export(client, tmp_path / name)
    assert len(export(client, tmp_path / "plain", sealed=False).outcomes) == 4


def test_options_that_make_no_sense_are_refused(client):
    for scheduler in ("fibres", None, 8):
        with pytest.raises(ConfigError, match="give 'threads', 'processes' or a dask"):
            load(client, scheduler=scheduler)
    for workers in (0, True, 2.5):
        with pytest.raises(ConfigError, match="give a whole number from 1"):
            load(client, workers=workers)
