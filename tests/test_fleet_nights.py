"""Nights of a fleet: what is new, gone and settled, how it goes over time, and a page without texts."""

import json
import os

import pyarrow.parquet as pq
import pytest
import requests

import memframe as mf
from benchmarks.servers import Nights, serving, user_id
from memframe import wire
from memframe.cli.options import FOUND
from memframe.errors import FrameError
from memframe.fleet import FleetFolder
from memframe.fleet.run import forget_revoked
from tests.cli.conftest import invoke
from tests.faults import changed
from tests.test_fleet_audit import NOW, nightly

__all__ = ["nightly"]

PASSWORD = "The wifi password is Tr0ub4dor&3x."
WHOLE = {"content": [PASSWORD], "title": ["Wifi"], "tags": [("home",)], "source": ["mail-helper"]}


def reject(nightly, n, decisions, check):
    access = nightly._accesses[n]
    memories = mf.load_memories(access, progress=False)
    desk = mf.review(mf.audit_memories(memories, tags=mf.load_tags(access), now=NOW), decisions=decisions)
    desk.reject(desk.queue.proposal[desk.queue.check == check].tolist())
    return memories


def test_what_a_person_rejected_is_settled_and_neither_gone_nor_new(nightly, tmp_path):
    nightly.write(0, **WHOLE)
    first = nightly.audit().findings  # now, as it is read from the files each time
    n_secrets = int((first[first.user_id == nightly.user_ids[0]].check == "secret").sum())
    decisions = tmp_path / "ilka.decisions"
    reject(nightly, 0, decisions, "secret")
    second = nightly.audit(decisions=decisions)
    assert second.n_before == 2
    compared = second.compare()
    assert compared.counts == {
        "new": 0,
        "gone": 0,
        "settled": n_secrets,
        "stayed": len(first) - n_secrets,
    }
    assert {*compared.settled.check} == {"secret"}
    assert {*compared.settled.user_id} == {nightly.user_ids[0]}


def test_a_saved_audit_knows_what_was_rejected_since(nightly, tmp_path):
    nightly.write(0, **WHOLE)
    memories = mf.load_memories(nightly._accesses[0], progress=False)
    before = mf.audit_memories(memories, now=NOW)
    before.to_json(tmp_path / "audit.json")
    reject(nightly, 0, tmp_path / "ilka.decisions", "secret")
    after = mf.audit_memories(memories, now=NOW, decisions=tmp_path / "ilka.decisions")
    n_secrets = int((before.findings.check == "secret").sum())
    for earlier in (before, tmp_path / "audit.json"):
        counts = after.compare(earlier).counts
        assert (counts["new"], counts["gone"], counts["settled"]) == (0, 0, n_secrets)


def test_each_night_has_a_line_of_numbers(nightly):
    nightly.audit()
    nightly.write(0, **WHOLE)
    nightly.delete(1)
    folder = nightly.audit()
    nights = folder.nights
    assert nights.audited.tolist() == [3, 2]
    assert nights[["done", "failed", "revoked"]].to_numpy().tolist() == [[3, 0, 1]] * 2
    new, gone, _ = folder.compare()
    assert (nights.new.iloc[-1], nights.gone.iloc[-1]) == (len(new), len(gone))
    severities = folder.findings.severity.value_counts().to_dict()
    assert {
        name: n for name in ("high", "medium", "low", "info") if (n := int(nights[name].iloc[-1]))
    } == severities
    assert FleetFolder(nightly.path).severities() == severities
    assert str(nights.night.dtype) == "datetime64[us, UTC]"
    lines = (nightly.path / "nights.jsonl").read_text()
    assert not any(user_id in lines for user_id in nightly.user_ids)


def test_a_night_that_was_cut_off_and_went_on_is_one_line(nightly, monkeypatch):
    nightly.audit()
    nightly.write(0, **WHOLE)
    write = FleetFolder.write_outcomes

    def cut_off(folder, outcomes, night, state):
        if len(outcomes) and state == b"ended":
            raise KeyboardInterrupt
        write(folder, outcomes, night, state)

    with monkeypatch.context() as patched:
        patched.setattr(FleetFolder, "write_outcomes", cut_off)
        with pytest.raises(KeyboardInterrupt):
            nightly.audit()
    folder = nightly.audit()
    assert folder.nights.new.tolist()[1:] == [1]
    assert folder.nights.audited.tolist() == [3, 1]


def test_findings_are_counted_by_source_without_being_read(nightly):
    nightly.write(0, **WHOLE)
    folder = nightly.audit()
    tally = folder.tally()
    assert tally.n.sum() == len(folder.findings)
    mine = tally[(tally.user_id == nightly.user_ids[0]) & (tally.source == "mail-helper")]
    assert mine[mine.check == "secret"].n.tolist() == [1]


def test_the_page_has_what_is_new_first_and_no_text(nightly, tmp_path):
    nightly.audit()
    nightly.write(0, **WHOLE | {"source": ["<mail> & helper"]})
    folder = nightly.audit()
    folder.to_html(tmp_path / "nights.html")
    page = (tmp_path / "nights.html").read_text()
    assert (
        page.index(">New<") < page.index(">Users by their worst findings<") < page.index(">Checks over time<")
    )
    assert "1 new finding, of 1 user." in page
    assert "&lt;mail&gt; &amp; helper" in page
    assert "<svg" in page
    texts = [
        text for access in nightly._accesses for text in mf.load_memories(access, progress=False).content
    ]
    assert not any(text in page for text in [*texts, "Tr0ub4dor"])
    for evidence in folder.findings.evidence.dropna():
        assert evidence not in page or len(evidence) < 12
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")
    (tmp_path / "other.html").write_text("mine")
    with pytest.raises(FrameError, match="is not a report"):
        folder.to_html(tmp_path / "other.html")


def test_a_damaged_line_is_named_and_no_audit_is_lost(nightly):
    nightly.audit()
    with (nightly.path / "nights.jsonl").open("ab") as file:
        file.write(b'{"night": 5}\n')
    with pytest.raises(FrameError, match="line 2 is damaged"):
        nightly.audit()
    (nightly.path / "nights.jsonl").unlink()
    assert nightly.audit().n_before == 3


def test_the_command_writes_the_page_and_fails_on_what_is_new(nightly, tmp_path):
    nightly.audit()
    page = tmp_path / "nights.html"
    done = invoke("fleet", "compare", nightly.path, "--html", page, "--fail-on", "info", "--json", code=FOUND)
    values = json.loads(done.stdout)
    _, *lines = invoke("fleet", "compare", nightly.path).stdout.splitlines()
    assert (
        len({line.index(user_id) for line in lines for user_id in nightly.user_ids if user_id in line}) == 1
    )
    assert {*values["counts"]} == {"new", "gone", "settled", "stayed"}
    assert len(values["nights"]) == 1
    assert page.exists()
    nightly.audit()
    invoke("fleet", "compare", nightly.path, "--html", page, "--fail-on", "info")
    page.write_text("mine")
    assert "is not a report" in invoke("fleet", "compare", nightly.path, "--html", page, code=1).stderr


def test_an_audit_is_compared_with_the_newest_one_of_a_folder_or_with_a_file(tmp_path):
    """The first night everything is new; the next only what came."""
    rows = [{"id": "m1", "memory": PASSWORD}, {"id": "m2", "memory": "Likes tea."}]
    audits, memories = tmp_path / "audits", tmp_path / "memories.json"
    audits.mkdir()
    (audits / "notes.txt").write_text("not an audit")

    def audit(night, *options, code=0):
        memories.write_text(json.dumps(rows))
        given = "--file", memories, "--compare", audits, "--fail-on", "high", *options
        done = invoke("audit", *given, "--out", audits / f"{night}.json", code=code)
        os.utime(audits / f"{night}.json", ns=(night, night))
        return done

    assert "contains no audit yet, so every finding counts as new" in audit(1, code=FOUND).stdout
    assert "0 new, 0 gone" in audit(2).stdout
    rows.append({"id": "m3", "memory": "The door code is 2580#."})
    assert f"Compared with {audits / '2.json'}: 1 new" in audit(3, code=FOUND).stdout
    values = json.loads(audit(4, "--json").stdout)["compared"]
    assert values["path"] == str(audits / "3.json")
    assert (values["counts"]["new"], values["new"]) == (0, [])
    since = invoke(
        "audit", "--file", memories, "--compare", audits / "2.json", "--fail-on", "high", code=FOUND
    )
    assert f"Compared with {audits / '2.json'}: 1 new" in since.stdout


def test_nothing_is_kept_of_a_user_who_was_erased(nightly):
    """The service no longer lists the request: the folder has no row, no finding and no memory of that user."""
    gone, *others = nightly.user_ids
    nightly.audit()
    nightly.edit(0)
    nightly.audit()
    nightly.local._deployment.erase_user(gone)
    folder = nightly.audit()
    assert folder.forgotten == [gone]
    assert sorted(folder.findings.user_id.unique()) == sorted(others)
    left = [path for path in nightly.path.rglob("*") if gone in str(path)]
    assert left == []
    assert not holds(nightly.path, gone)
    assert folder.compare().counts["gone"] == 0
    nightly.local._deployment.erase_user(others[0])
    assert forget_revoked(nightly._client, nightly.path).forgotten == [others[0]]
    assert not holds(nightly.path, others[0])
    assert nightly.audit().n_before == 1


def holds(path, text):
    """Search for a text in all bytes of a folder, as they are stored and unpacked."""
    tables = map(pq.read_table, path.rglob("*.parquet"))
    files = (one.read_bytes() for one in path.rglob("*") if one.is_file())
    return any(text in repr(table.to_pylist()) for table in tables) or any(
        text.encode() in data for data in files
    )


def test_another_account_deletes_nothing(nightly):
    """It knows none of the users, and so the folder is not taken for one of erased people."""
    nightly.audit()
    held = sorted(nightly.path.rglob("*.parquet"))
    stranger = nightly.local._deployment.add_developer("another")
    with (
        mf.connect(nightly.local.base_url, api_key=stranger.api_key.reveal()) as client,
        pytest.raises(FrameError, match="check the API key"),
    ):
        mf.audit_fleet(client, nightly.path, progress=False)
    assert sorted(nightly.path.rglob("*.parquet")) == held


def test_a_listing_that_lacks_a_user_whose_request_still_answers_deletes_nothing(nightly):
    nightly.audit()
    held = sorted(nightly.path.rglob("*.parquet"))
    nightly.proxy.always(wire.LIST_REQUESTS, changed(lambda page: page["items"].pop(0)))
    folder = nightly.audit()
    assert folder.forgotten == []
    assert sorted(nightly.path.rglob("*.parquet")) == held


def test_an_erased_user_is_told_from_others_whose_requests_begin_with_the_same_id(tmp_path):
    """Of a service whose ids are short: r1 is erased, r10 and r11 are there."""
    with serving(Nights, 12, 2, 0) as base_url, mf.connect(base_url, api_key="mf_benchmark") as client:
        options = {"checks": ["secret"], "archives": False, "progress": False}
        mf.audit_fleet(client, tmp_path / "fleet", **options)
        requests.post(
            f"{base_url.removesuffix('/api/v1')}/act", json={"user": 1, "status": "erased"}, timeout=10
        )
        folder = mf.audit_fleet(client, tmp_path / "fleet", **options)
    assert folder.forgotten == [user_id(1)]
    assert len(folder.outcomes) == 11
