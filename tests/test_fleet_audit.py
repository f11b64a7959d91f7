"""Audits of a fleet: each user alone, findings and sealed archives by user, and only what is missing again."""

from datetime import UTC, datetime

import pandas as pd
import pytest

import memframe as mf
from memframe import audit, wire
from memframe.errors import ConfigError
from tests.faults import FaultProxy, answered
from tests.test_fleet import N_ROWS, access_of, by_user, client, village

__all__ = ["client", "village"]

NOW = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def audited(village, tmp_path_factory):
    """A finished audit of the village, which no test changes."""
    with mf.connect(village.base_url, api_key=village.api_key) as client:
        return mf.audit_fleet(client, tmp_path_factory.mktemp("audit") / "fleet", now=NOW, progress=False)


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


def test_a_second_audit_does_only_what_is_missing(village, tmp_path):
    with FaultProxy(village.base_url) as proxy, mf.connect(proxy.base_url, api_key=village.api_key) as client:
        proxy.script(wire.GET_CREDENTIALS, answered(500))
        run = {"now": NOW, "progress": False, "workers": 1, "archives": False}
        first = mf.audit_fleet(client, tmp_path / "fleet", **run)
        assert first.outcomes.status.tolist() == ["failed", "done", "done", "revoked"]
        proxy.requests.clear()
        second = mf.audit_fleet(client, tmp_path / "fleet", **run)
        assert second.outcomes.status.tolist() == ["done", "done", "done", "revoked"]
        assert second.outcomes.n_rows.tolist() == [N_ROWS, N_ROWS, N_ROWS, 0]
        assert len(proxy.requests_to(wire.LIST_MEMORIES)) == 1
    assert not (tmp_path / "fleet" / "memories").exists()
    (tmp_path / "fleet" / "outcomes.parquet").unlink()
    with mf.connect(village.base_url, api_key=village.api_key) as client:
        third = mf.audit_fleet(client, tmp_path / "fleet", **run)
    assert by_user(third.outcomes).n_rows.max() == N_ROWS


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
