"""Audits of a fleet: each user alone, findings and sealed archives by user, and only what is missing again."""

from datetime import UTC, datetime
from hashlib import sha256

import pandas as pd
import pyarrow.parquet as pq
import pytest

import memframe as mf
from benchmarks.pairs.corpus import corpus
from benchmarks.pairs.corpus import frame_of as frame_of_texts
from memframe import audit, wire
from memframe.archive.table import frame_of, table_of
from memframe.audit.stale import find_stale
from memframe.audit.text import with_all_columns
from memframe.errors import ConfigError, FrameError
from memframe.fleet import FleetFolder
from memframe.fleet.work import N_ROWS as N_ROWS_NAME
from memframe.fleet.work import find_dated, without_undated
from memframe.sample import load_sample
from tests.conftest import fleet_of
from tests.faults import FaultProxy, refused
from tests.strangers import REQUEST
from tests.test_fleet import N_ROWS, access_of, by_user, client

__all__ = ["client"]

NOW = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def audited(village, tmp_path_factory):
    """A finished audit of the village, which no test changes."""
    with mf.connect(village.base_url, api_key=village.api_key) as client:
        return mf.audit_fleet(client, tmp_path_factory.mktemp("audit") / "fleet", now=NOW, progress=False)


class Nightly:
    """Three users of a developer, whose memories a test changes between audits into one folder."""

    def __init__(self, local, people, client, proxy, path):
        self.local, self.proxy, self.path, self._client = local, proxy, path, client
        self.user_ids = [person.user_id for person in people[:3]]
        requests = client.access_requests()
        approved = {one.user_id: one.id for one in requests if one.status == "approved"}
        self._accesses = [mf.open_access(client, approved[user_id]) for user_id in self.user_ids]

    def audit(self, **options):
        """Audit with three checks, as all of them take three times as long."""
        chosen = {"now": NOW, "progress": False, "checks": ["secret", "stale", "exact_duplicate"]}
        return mf.audit_fleet(self._client, self.path, **chosen | options)

    def write(self, n, **columns):
        mf.create_memories(self._accesses[n], pd.DataFrame(columns), progress=False)

    def edit(self, n):
        self._push(n, lambda rows: rows.assign(content=rows.content + " And more."))

    def retag(self, n):
        self._push(n, lambda rows: rows.assign(tags=[("renamed",)] * len(rows)))

    def delete(self, n):
        access = self._accesses[n]
        rows = mf.load_memories(access, progress=False)
        mf.apply_plan(access, mf.plan_deletes(access, rows.head(1)), confirm=1, progress=False)

    def _push(self, n, change):
        rows = mf.load_memories(self._accesses[n], progress=False)
        mf.push_memories(self._accesses[n], change(rows.head(1)), progress=False)


@pytest.fixture
def nightly(developer, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with (
        fleet_of(developer, load_sample()[:N_ROWS], ["approved"] * 3 + ["revoked"]) as people,
        FaultProxy(developer.base_url) as proxy,
        mf.connect(proxy.base_url, api_key=developer.api_key) as client,
    ):
        yield Nightly(developer, people, client, proxy, tmp_path / "fleet")


def test_each_user_has_the_findings_of_an_audit_alone(village, client, audited):
    for person in village.people[:3]:
        access = access_of(client, audited.outcomes, person.user_id)
        alone = audit.audit_memories(
            mf.load_memories(access, progress=False), tags=mf.load_tags(access), now=NOW
        )
        mine = audited.findings[audited.findings.user_id == person.user_id].drop(columns="user_id")
        assert len(alone.findings) > 0
        pd.testing.assert_frame_equal(mine.reset_index(drop=True), alone.findings)


def test_findings_never_relate_memories_of_different_users(village, audited):
    """All three have the same memories: compared with each other, each would be a duplicate of two others."""
    owner = {}
    for person in village.people[:3]:
        ids = mf.load_archive(audited.archive(person.user_id), columns=["id"]).id
        owner |= dict.fromkeys(ids, person.user_id)
    findings = audited.findings
    assert {*findings.id.dropna().map(owner)} == {person.user_id for person in village.people[:3]}
    for name in ("id", "related_id"):
        known = findings[findings[name].notna()]
        assert (known[name].map(owner) == known.user_id).all()


def test_another_night_looks_at_everybody_and_audits_those_who_changed(nightly):
    """Who did not change is listed, and taken over; nobody else's file is written."""
    first = nightly.audit()
    assert first.n_before == 0
    written = {path: path.stat().st_mtime_ns for path in first.path.glob("findings/*/*")}
    nightly.write(0, content=["The wifi password is Tr0ub4dor&3x."])
    second = nightly.audit()
    assert second.n_before == 2
    assert second.outcomes.status.tolist() == ["done", "done", "done", "revoked"]
    assert by_user(second.outcomes).n_rows[nightly.user_ids].tolist() == [N_ROWS + 1, N_ROWS, N_ROWS]
    changed = [path for path, moment in written.items() if path.stat().st_mtime_ns != moment]
    assert [path.parent.name for path in changed] == [f"user_id={nightly.user_ids[0]}"]
    night = second.night
    new, gone, _ = second.compare()
    assert {*new.user_id} == {nightly.user_ids[0]}
    assert new.check[new.id.notna()].tolist() == ["secret"]
    assert gone.empty
    third = nightly.audit()
    assert third.n_before == 3
    assert third.compare().counts == {"new": 0, "gone": 0, "settled": 0, "stayed": len(third.findings)}
    assert third.compare(night).counts["new"] == len(new)
    assert nightly.audit(full=True).n_before == 0


def test_an_edit_a_delete_and_a_tag_are_changes_as_well(nightly):
    nightly.audit()
    for n, change in enumerate((nightly.edit, nightly.delete, nightly.retag)):
        change(n)
        assert nightly.audit().n_before == 2
        moved = {path.parent.name for path in nightly.path.glob("findings-before/*/*")}
        assert moved == {f"user_id={user_id}" for user_id in nightly.user_ids[: n + 1]}


def test_days_that_pass_are_a_change(nightly):
    told = {
        "content": "The dentist appointment is on 24 December 2026.",
        "created_at": "2026-10-01T10:00:00Z",
    }
    nightly.local.import_memories(nightly.user_ids[1], [told])  # a day to come was told before it
    nightly.audit()
    assert nightly.audit(now=NOW + pd.Timedelta(days=1)).n_before == 3
    later = nightly.audit(now=NOW + pd.Timedelta(days=90))
    assert later.n_before < 3
    new = later.compare().new
    assert nightly.user_ids[1] in {*new.user_id[new.check == "stale"]}


def test_other_checks_are_another_audit(nightly):
    nightly.audit(checks=["secret"])
    assert nightly.audit(checks=["secret"]).n_before == 3
    assert nightly.audit(checks=["stale"]).n_before == 0


def test_an_audit_that_failed_is_tried_again_and_one_that_was_cut_off_goes_on(nightly, monkeypatch):
    nightly.proxy.script(wire.GET_CREDENTIALS, refused)
    assert sorted(nightly.audit(workers=1).outcomes.status) == ["done", "done", "failed", "revoked"]
    assert nightly.audit().n_before == 2
    for n in (0, 1):
        nightly.write(n, content=["The wifi password is Tr0ub4dor&3x."])
    save, saved = FleetFolder.save, []

    def cut_off(folder, result):
        if len(saved) == 2:
            raise KeyboardInterrupt
        saved.append(result.user.user_id)
        save(folder, result)

    with monkeypatch.context() as patched:
        patched.setattr(FleetFolder, "save", cut_off)
        with pytest.raises(KeyboardInterrupt):
            nightly.audit(workers=1)
    night = FleetFolder(nightly.path).night
    whole = nightly.audit()
    assert whole.night == night
    assert {*whole.compare().new.user_id} == {*nightly.user_ids[:2]}
    assert nightly.audit().night > night


def test_on_every_day_the_same_is_stale_whether_undated_texts_are_read_or_not():
    """What is dated is found out once, with the audit; a night reads those texts alone."""
    texts = corpus(60, seed=11).memories["content"].tolist()
    frame = frame_of_texts([*(row.content for row in load_sample()), *texts])
    memories = table_of(frame)
    dated = find_dated(memories)
    assert 0 < len(dated) < len(memories) / 2
    n_found = 0
    for day in pd.date_range("2020-01-01", "2031-01-01", freq="397D", tz="UTC"):
        expected = find_stale(with_all_columns(frame_of(memories)), now=day)
        found = find_stale(without_undated(memories, dated), now=day)
        pd.testing.assert_frame_equal(found, expected)
        n_found += len(expected)
    assert n_found > 0


def test_a_folder_of_an_earlier_version_is_audited_again_and_compared_as_well_as_it_can_be(nightly):
    first = nightly.audit()
    for path in first.path.glob("findings/*/*"):
        table = pq.read_table(path, partitioning=None)
        pq.write_table(table.drop_columns("text_digest").replace_schema_metadata({N_ROWS_NAME: b"12"}), path)
    second = nightly.audit()
    assert second.n_before == 0
    assert second.compare().counts == {"new": 0, "gone": 0, "settled": 0, "stayed": len(first.findings)}


def test_no_text_of_a_memory_is_in_the_folder_and_no_digest_that_could_be_guessed(nightly):
    nightly.write(0, content=["The PIN of the card is 4711.", "The wifi password is Tr0ub4dor&3x."])
    folder = nightly.audit()
    stored = b"".join(path.read_bytes() for path in folder.path.rglob("*.parquet"))
    assert b"Tr0ub4dor" not in stored  # four digits may stand in a digest by chance
    for file in folder.path.glob("findings/*/*"):
        digests = {*pq.read_table(file, partitioning=None)["text_digest"].to_pylist()}
        assert not digests & {sha256(text).hexdigest()[: len(max(digests))] for text in (b"4711", b"")}


def test_an_id_that_no_folder_can_have_is_that_users_failure(stranger, tmp_path):
    long = "u" * 300
    requests = [{**REQUEST, "id": f"r{n}", "user_id": one} for n, one in enumerate([long, "u1"])]
    stranger.answer(wire.LIST_REQUESTS, items=requests)
    stranger.answer(wire.GET_CREDENTIALS, user_id=long)
    stranger.answer(wire.LIST_MEMORIES, memoryBlobs=[])
    for _ in range(2):
        outcomes = mf.audit_fleet(stranger.client(), tmp_path / "fleet", progress=False).outcomes
        assert outcomes.status.tolist()[0] == "failed"
        assert "300 characters" in outcomes.error[0]


@pytest.mark.parametrize("night", ["yesterday", 5, pd.NaT])
def test_a_night_that_is_no_time_is_refused(audited, night):
    with pytest.raises(ConfigError, match="give a time"):
        audited.compare(night)


def test_a_folder_without_an_audit_has_nothing_to_compare(tmp_path):
    with pytest.raises(FrameError, match="contains no audit"):
        FleetFolder(tmp_path).compare()


def test_a_check_that_there_is_not_is_refused_before_anything_is_asked(stranger, tmp_path):
    with pytest.raises(ConfigError, match="gossip"):
        mf.audit_fleet(stranger.client(), tmp_path / "fleet", checks=["gossip"])
    assert stranger.requests == []


def test_other_readers_take_the_user_of_a_finding_from_the_folder(audited):
    polars = pytest.importorskip("polars")
    read = polars.read_parquet(audited.path / "findings")
    assert len(read) == len(audited.findings)
    assert {*read["user_id"]} == {*audited.findings.user_id}
    assert len(pd.read_parquet(audited.path / "findings")) == len(audited.findings)
