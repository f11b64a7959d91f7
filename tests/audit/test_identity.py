"""Findings are known again by what they judge: a week of changes, files of every kind, and copies that remain."""

import json
import re
from hashlib import sha256

import pandas as pd
import pytest

import memframe as mf
from memframe.audit.findings import are_figures
from memframe.errors import FrameError
from tests.rows import sample_frame

NOW = pd.Timestamp("2026-06-01", tz="UTC")


def rows(*contents, **columns):
    ids = [f"m{place}" for place in range(len(contents))]
    return pd.DataFrame({"id": ids, "content": list(contents)} | columns)


def audit(memories, **options):
    return mf.audit_memories(memories, now=NOW, **options)


def listed(found):
    """Check and memory of findings that are about one."""
    found = found[~are_figures(found) & found["id"].notna()]
    return sorted(zip(found["check"], found["id"], strict=True))


class Store:
    """A part of the sample, changed day by day; each change says which findings come and go with it."""

    def __init__(self):
        self.memories = sample_frame().iloc[::6].reset_index(drop=True)
        self.n_new = 0

    def add(self, content, **fields):
        self.n_new += 1
        fields = {
            "title": "A title",
            "summary": "A summary",
            "source": "chat",
            "tags": (),
            "tag_ids": (),
        } | fields
        row = dict.fromkeys(self.memories.columns) | fields
        row |= {"id": f"new{self.n_new}", "content": content, "created_at": NOW, "updated_at": NOW}
        added = pd.DataFrame([row]).astype(self.memories.dtypes.to_dict())
        self.memories = pd.concat([self.memories, added], ignore_index=True)
        return row["id"]

    def edit(self, memory_id, **fields):
        self.memories = self.memories.copy()
        (place,) = self.memories.index[self.memories["id"] == memory_id]
        for name, value in fields.items():
            self.memories.at[place, name] = value

    def delete(self, memory_id):
        self.memories = self.memories[self.memories["id"] != memory_id].reset_index(drop=True)

    def holders(self, check, kind=None):
        found = audit(self.memories, checks=[check]).findings
        found = found[found["id"].notna()]
        return found["id"][found["kind"] == kind].tolist() if kind else found["id"].tolist()


def test_a_week_of_changes_is_told_as_it_was(tmp_path):
    """Seven planted changes in a store of 65: nothing else is new, nothing else is gone."""
    store = Store()
    plain = store.memories["content"].str.len().sub(80).abs().sort_values().index
    untouched = iter(store.memories["id"][plain])
    found = {*audit(store.memories).findings["id"]}
    calm = (one for one in untouched if one not in found)
    secret = store.holders("secret")[0]
    slip = store.holders("tags", "near_identical")[0]
    later_secret = store.add("The gate of the allotment opens with the code 83#17*, says Ilka.")
    days = [
        # (change, findings that come, findings that go)
        (lambda: store.add("The wifi password is Tr0ub4dor&3x."), [("secret", "new2")], []),
        (lambda: store.edit(next(calm), importance=0.35), [], []),
        (
            lambda: store.edit(later_secret, content=store_text(store, later_secret) + " It was oiled."),
            [],
            [],
        ),
        (lambda: store.add("Reach Bo at bo.lindqvist@example.org."), [("personal_data", "new3")], []),
        (lambda: store.delete(secret), [], [("secret", secret)]),
        (lambda: store.edit(slip, tags=("choir",)), [], [("tags", slip)]),
        (lambda: store.add("The rowing club meets at the northern pier."), [], []),
    ]
    before = audit(store.memories)
    for change, comes, goes in days:
        before.to_json(tmp_path / "audit.json")
        change()
        after = audit(store.memories)
        planted = {check for check, _ in goes}
        for previous in (before, tmp_path / "audit.json"):
            new, gone, stayed = comparison = after.compare(previous)
            assert not comparison.note
            assert listed(new) == sorted(comes)
            assert [one for one in listed(gone) if one[0] in planted or not goes] == sorted(goes)
            assert len(new) + len(stayed) == len(after.findings)
        before = after


def store_text(store, memory_id):
    return store.memories.set_index("id").content[memory_id]


def test_counts_groups_and_offsets_are_no_part_of_a_finding():
    first = audit(
        rows("Ada rows on the lake every Sunday.", "Ada rows on the lake every Sunday.", "PIN 4711")
    )
    more = audit(
        rows(
            "Ada rows on the lake every Sunday.",
            "Ada rows on the lake every Sunday.",
            "Written down in the kitchen: PIN 4711",
            "Ada rows on the lake every Sunday.",
        )
    )
    new, gone, _ = more.compare(first)
    assert listed(new) == [("exact_duplicate", "m3")]
    assert listed(gone) == []


def test_copies_that_remain_after_a_cleanup_are_not_new():
    text = "Ada rows on the lake every Sunday."
    memories = rows(*[text] * 4, "Likes tea")
    before = audit(memories)
    for gone_id in ("m0", "m3"):  # the keeper, or a copy
        after = audit(memories[memories["id"] != gone_id])
        new, gone, stayed = after.compare(before)
        assert listed(new) == []
        assert listed(gone) == [("exact_duplicate", gone_id)]
        assert len(listed(stayed)) == 3


def test_another_value_in_the_same_place_is_another_finding():
    new, gone, _ = audit(rows("PIN 4712"), checks=["secret"]).compare(
        audit(rows("PIN 4711"), checks=["secret"])
    )
    assert (len(new), len(gone)) == (1, 1)


def test_a_value_that_stands_twice_and_then_once_is_gone_once():
    twice, once = "PIN 4711, and again: PIN 4711", "PIN 4711"
    new, gone, stayed = audit(rows(once), checks=["secret"]).compare(audit(rows(twice), checks=["secret"]))
    assert (len(new), len(gone), len(stayed)) == (0, 1, 1)


# Files


def test_a_saved_audit_holds_nothing_by_which_a_short_secret_can_be_guessed(tmp_path):
    found = audit(rows("PIN 4711"))
    found.to_json(tmp_path / "audit.json")
    text = (tmp_path / "audit.json").read_text()
    saved = json.loads(text)
    assert "4711" not in json.dumps(saved | {"digests": None})  # in which it may stand by chance
    salts = {"", *re.findall(r'"([^"]{4,})"', text)}
    digests = {one for one in saved["digests"]["texts"] if one}
    assert digests
    assert all(len(one) == 32 for one in digests)
    guesses = (sha256(part.encode()).hexdigest() for salt in salts for part in (f"{salt}4711", f"4711{salt}"))
    assert not digests & {guess[:32] for guess in guesses}


@pytest.mark.parametrize("how", ["earlier", "elsewhere"])
def test_files_without_digests_that_can_be_read_are_compared_as_well_as_they_can(tmp_path, monkeypatch, how):
    path = tmp_path / "audit.json"
    before = rows("PIN 4711", "Ada rows on the lake every Sunday.", "Ada rows on the lake every Sunday.")
    audit(before).to_json(path)
    if how == "earlier":
        saved = json.loads(path.read_bytes())
        del saved["digests"]
        path.write_text(json.dumps(saved))
    else:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    comparison = audit(pd.concat([before, rows(*"abc", "PIN 4799").tail(1)])).compare(path)
    assert listed(comparison.new) == [("secret", "m3")]
    assert comparison.gone.empty
    assert "compared by check, kind, memory and field alone" in comparison.note
    assert comparison.note in repr(comparison)
    assert comparison.note in comparison._repr_html_()


def test_an_audit_is_saved_where_there_can_be_no_key(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    found = audit(rows("PIN 4711"))
    found.to_json(tmp_path / "audit.json")
    comparison = found.compare(tmp_path / "audit.json")
    assert comparison.new.empty
    assert comparison.note


# One row for each value


def test_a_value_is_listed_once_however_many_memories_hold_it(tmp_path):
    memories = rows(
        *[
            "Reach Bo at bo@example.org.",
            "bo@example.org has the keys",
            "Write bo@example.org about the boat",
        ],
        *["Memory updated successfully."] * 27,
    )
    found = audit(memories)
    listed_once = found.listed.set_index("check")
    assert listed_once.loc["personal_data", "ids"] == ("m0", "m1", "m2")
    found.to_html(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text()
    assert page.count("in 3 memories") == 1 + ("To decide first" in page)
    groups = found.groups("personal_data")
    assert groups[["n_memories", "ids"]].values.tolist() == [[3, ("m0", "m1", "m2")]]
    assert found.listed["n_times"].sum() == (~are_figures(found.findings)).sum()


def test_secrets_are_grouped_by_their_value():
    found = audit(rows("The PIN is 4711.", "The PIN is 4712.", "PIN of the card: 4711"))
    groups = found.groups("secret")
    assert groups["ids"].tolist() == [("m0", "m2"), ("m1",)]
    assert "4711" not in groups.to_string()


def test_constant_scores_are_one_figure_for_each_source_and_fill_nothing(tmp_path):
    memories = rows(*(f"Ada likes tea number {n}" for n in range(30)), title=None, confidence=0.9).assign(
        source=["chat"] * 15 + ["mail"] * 15
    )
    found = audit(memories, checks=["scores", "missing"])
    assert found.findings["id"].isna().all()
    assert found.figures["evidence"].tolist()[-2:] == [
        "15 of 30 memories: confidence is 0.9 in all memories of the source 'chat'",
        "15 of 30 memories: confidence is 0.9 in all memories of the source 'mail'",
    ]
    assert repr(found) == "<memframe.Audit of 30 memories: no findings>"
    assert found.verdict == ["Nothing is to be decided."]
    found.to_html(tmp_path / "audit.html")
    assert "<table" not in (tmp_path / "audit.html").read_text()
    one_source = audit(memories.assign(source="chat"), checks=["scores", "missing"])
    new, gone, _ = found.compare(one_source)
    assert (len(new), len(gone)) == (1, 0)
    with pytest.raises(FrameError):
        found.compare(tmp_path / "audit.html")
