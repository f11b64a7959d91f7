"""The sample person: an audit finds in it what was planted there."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

import memframe as mf
from benchmarks.pairs.scoring import related
from memframe.sample import load_sample
from tests.rows import sample_frame

PLANTED = json.loads(Path(__file__).with_name("sample_truth.json").read_text())
"""By place in the order of `load_sample`; near-duplicates and changed values without those of the junk."""


@pytest.fixture(scope="module")
def findings():
    return mf.audit_memories(sample_frame()).findings


def test_it_is_one_life_in_order_and_the_same_each_time():
    created = [memory.created_at for memory in load_sample()]
    assert load_sample() == load_sample()
    assert len(created) == 389
    assert all(earlier < later for earlier, later in pairwise(created))


def rows_of(findings, by):
    return {
        name: sorted({int(row) for row in some})
        for name, some in findings.dropna(subset="id").groupby(by)["id"]
    }


def test_secrets_personal_data_and_exact_copies_are_found_and_nothing_else_is(findings):
    assert rows_of(findings, "check")["secret"] == PLANTED["secret"]
    personal = rows_of(findings[findings["check"] == "personal_data"], "kind")
    assert personal == {kind.lower(): rows for kind, rows in PLANTED["personal_data"].items()}
    copies = rows_of(findings[findings["check"] == "exact_duplicate"], "group")
    assert sorted(copies.values()) == PLANTED["exact_duplicate"]


def test_most_near_duplicates_changed_values_and_junk_are_found(findings):
    for check, planted in (("near_duplicate", "near_duplicate"), ("version", "changed_value")):
        found = related(findings[findings["check"] == check])
        missed = [pair for pair in PLANTED[planted] if frozenset(map(str, pair)) not in found]
        assert len(missed) <= len(PLANTED[planted]) / 4, missed
    junk = set(rows_of(findings, "check")["junk"])
    assert junk <= set(PLANTED["junk"])
    assert len(junk) >= 0.9 * len(PLANTED["junk"])
