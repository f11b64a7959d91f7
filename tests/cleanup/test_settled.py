"""A cleanup does what the audit proposed, keeps no planted text, and deletes no event."""

import dataclasses
import random
from collections import Counter

import pandas as pd
import pytest

import memframe as mf
from benchmarks.pairs.corpus import corpus
from memframe.audit.findings import findings_frame
from memframe.audit.merge import Merging, read_relations, settle_proposals
from memframe.plan.losses import count_holders
from tests.cleanup.conftest import NOW
from tests.rows import memories_of

TEA = "Ada drinks green tea."
HIDDEN = "".join(chr(0xE0000 + ord(letter)) for letter in "ignore all")


def ending(audit):
    return audit.findings[audit.findings.action.isin(["delete", "merge"])]


def random_memories(seed, n=60):
    rng = random.Random(seed)
    texts = corpus(n // 2, seed, copies=0.4, changes=0.2).memories.content.tolist()
    texts += [TEA, "Took 400 mg ibuprofen.", "heartbeat ok 2026-01-02T03:00:00Z", "Ada likes tea.", ""] * 3
    for _ in range(n):
        yield {
            "content": rng.choice(texts) or "...",
            "title": rng.choice([None, None, "Tea", f"Tea{HIDDEN}", "Rent of May"]),
            "tags": tuple(rng.sample(["home", "work", "tea"], rng.randrange(3))),
            "source": rng.choice(["chat", "chat", "mail", None]),
            "importance": rng.choice([None, 0.5]),
            "created_at": f"2026-03-{rng.choice([1, 1, 2]):02d}T10:00:00Z",
        }


SECRETS = (
    "Xk%9wQe!",
    "7Hk%9wQe!",
    "hunter2!xQ9",
    "2580#",
    "4711#",
    "[redacted: password]",
    "[redacted: pin 2]",
)
TOLD = (
    "The {what} of the boathouse is {secret}",
    "the {what} of the boathouse: {secret}, room {n}.",
    "Note: the {what} of the boathouse is {secret}, room {n}. Ask Ada.",
)


def store_rows(seed):
    rng = random.Random(seed)
    rows = list(random_memories(seed, rng.randrange(30, 80)))
    for _ in range(rng.randrange(10, 30)):
        what, secret = rng.choice(["wifi password", "door code", "PIN"]), rng.choice(SECRETS)
        told = rng.choice(TOLD).format(what=what, secret=secret, n=rng.randrange(3))
        rows.append(rng.choice(rows) | {"content": told, "title": rng.choice([None, told])})
    for row in rows:
        row["tags"] = tuple(dict.fromkeys([*row["tags"], *rng.choice([(), ("Family",), ("family",)])]))
    return rows


@pytest.mark.parametrize("seed", [1, 2])
def test_a_plan_does_what_the_audit_proposes_and_leaves_nothing_to_do_alone(store, seed):
    store.fill(*store_rows(seed))
    audit = store.audit()
    proposed = ending(audit)
    assert len(proposed) > 3
    assert proposed.id.is_unique
    plan = store.plan(audit)
    assert {"delete", "patch"} <= plan.counts.keys()
    assert set(plan.changes.id[plan.changes.action == "delete"]) == set(proposed.id)
    assert plan.left.empty
    assert plan.losses.empty
    for change in plan.records:
        if change.action == "delete" and change.keeps:
            assert set(change.keeps) == {proposed.related_id[proposed.id == change.id].item()}
    store.apply(plan)
    again = store.audit()
    assert ending(again).empty
    assert store.plan(again).changes[["action", "reason"]].to_numpy().tolist() == []


def test_the_number_of_a_mark_is_no_number_of_the_text():
    rows = [
        {"id": "a", "content": "The door code is [redacted: access code], room 2."},
        {"id": "b", "content": "The door code is [redacted: access code 2], room 3."},
        {"id": "c", "content": "The door code is [redacted: access code 3], room 3."},
    ]
    assert ending(mf.audit_memories(memories_of(rows))).empty
    assert count_holders(["2"], [rows[1]["content"]]) == {}


PLANTED = [
    *(("content", hidden) for hidden in (HIDDEN, "\u200b\u200b", "\u202e", "\ue042", "\u2064")),
    *((field, HIDDEN) for field in ("title", "summary", "tags")),
]


@pytest.mark.parametrize("is_first", [True, False])
def test_the_clean_memory_is_kept(is_first):
    rows = []
    for user, (field, hidden) in enumerate(PLANTED):
        clean = {"id": f"a{user}" if is_first else f"z{user}", "updated_at": "2026-01-01T00:00:00Z"}
        planted = {"id": f"m{user}", "title": "Tea", "summary": "Tea", "tags": ("tea", "home"),
                   "updated_at": "2026-02-01T00:00:00Z"}  # fmt: skip
        planted[field] = (f"te{hidden}a",) if field == "tags" else TEA.replace("tea", f"te{hidden}a")
        of_user = [clean, planted, *({"id": f"b{user}{n}"} for n in range(6))]
        rows += [{"user_id": f"u{user}", "content": TEA, "tags": ()} | row for row in of_user]
    audit = mf.audit_memories(memories_of(rows))
    found, gone = audit.findings, ending(audit)
    assert not [one for one in {*found.related_id.dropna(), *gone.id} if one.startswith("m")]
    assert {one[1] for one in gone.id} == {str(user) for user in range(len(PLANTED))}


def actions_of(*rows, **columns):
    frame = memories_of([{"id": f"m{n}", "tags": (), **row} for n, row in enumerate(rows)]).assign(**columns)
    found = mf.audit_memories(frame).findings
    return found[found.related_id.notna()]


OF_SEVERAL_DAYS = {
    "Took 400 mg ibuprofen.": "review",
    "Paid Ben 20 euros": "review",
    "Ibuprofen 400 mg genommen.": "review",
    "Ada likes tea.": "delete",
    "My name is Ada.": "delete",
    "Took 400 mg ibuprofen on 2026-05-01.": "delete",
    "The choir of the village " + "sings an old song and then another one " * 4: "delete",
}


def test_equal_texts_of_several_days():
    days = ("2026-05-01T08:00:00Z", "2026-05-03T08:00:00Z")
    rows = [{"content": text, "created_at": day} for text in OF_SEVERAL_DAYS for day in days]
    found = actions_of(*rows)
    assert found.action.tolist() == [*OF_SEVERAL_DAYS.values()]
    is_kept = found.evidence.str.contains("another day")
    assert is_kept.tolist() == [action == "review" for action in OF_SEVERAL_DAYS.values()]
    same_day = actions_of(*(row | {"created_at": days[0]} for row in rows))
    assert same_day.action.tolist() == ["delete"] * len(OF_SEVERAL_DAYS)


def test_an_event_that_is_told_every_day_is_no_repeat():
    days = [f"2026-05-{day:02d}T08:00:00Z" for day in range(1, 13)]
    found = actions_of(*({"content": "Took 400 mg ibuprofen.", "created_at": day} for day in days))
    assert set(found.action) == {"review"}


def test_a_column_that_no_service_has_keeps_copies_apart():
    rows = ({"content": TEA}, {"content": TEA})
    assert actions_of(*rows, room=["kitchen", "kitchen"]).action.tolist() == ["delete"]
    found = actions_of(*rows, room=["kitchen", "garden"])
    assert found.action.tolist() == ["review"]
    assert "differ in room" in found.evidence.item()


def test_a_memory_is_proposed_once():
    found = actions_of(*({"content": "Ada likes tea."} for _ in range(8)))
    assert set(found.check) == {"exact_duplicate", "junk"}
    assert found.id[found.action == "delete"].tolist() == sorted(set(found.id))
    assert set(found.action[found.check == "junk"]) == {"none"}


def test_settled_findings_are_settled():
    memories = memories_of([{"id": f"m{n}", **row} for n, row in enumerate(random_memories(11))])
    findings = mf.audit_memories(memories).findings
    pd.testing.assert_frame_equal(settle_proposals(findings, memories), findings)
    assert settle_proposals(findings_frame(id=[]), memories).empty


def test_what_is_hidden_comes_out_and_what_is_seen_stays(store):
    store.fill(f"Ada drinks{HIDDEN} green tea.", {"content": "The rent is due.", "title": f"Rent{HIDDEN}"})
    after = store.clean()
    assert sorted(after.content) == [TEA, "The rent is due."]
    assert set(after.title.dropna()) == {"Rent"}


# -- a second audit


WHOLE = (
    "Vera gave the accordion to a school in Leeds. Our sheepdog is called Agnes and sleeps in the sunroom."
)
TEXTS = (TEA, "Ada likes tea.", WHOLE, WHOLE[:90], f"{WHOLE} It snores.", f"Ada drinks{HIDDEN} green tea.")


def rows_with(rng, n):
    for _ in range(n):
        yield {
            "content": rng.choice(TEXTS),
            "title": rng.choice([None, "Tea", "Vera", "Rent of May"]),
            "tags": tuple(rng.sample(["tea", "home", "Home"], rng.randrange(3))),
            "source": rng.choice(["chat", "chat", None, "mail"]),
            "created_at": f"2026-03-{rng.choice([1, 1, 2]):02d}T10:00:00Z",
            "updated_at": f"2026-03-{rng.choice([2, 3, 4]):02d}T10:00:00Z",
        }


def carry_out(plan, memories):
    after = memories.set_index("origin_id", drop=False)
    for change in plan.records:
        if change.action == "delete":
            after = after.drop(change.id)
        for name, value in change.after.items():
            after.at[change.id, name] = value
            after.at[change.id, "updated_at"] = pd.Timestamp("2026-05-01", tz="UTC")
    return after.reset_index(drop=True)


def plan_twice(rows):
    """The plan of a file that holds some rows, and the plan of what it leaves."""
    places = [f"m{place:02d}" for place in range(len(rows))]
    memories = memories_of([{"id": None, "tags": (), **row} for row in rows]).assign(origin_id=places)
    plan = mf.plan_cleanup(mf.audit_memories(memories, now=NOW), max_share=1)
    assert plan.losses.empty
    return plan, mf.plan_cleanup(mf.audit_memories(carry_out(plan, memories), now=NOW), max_share=1)


def said_of(plan):
    return [*plan.changes.reason, *plan.left.reason]


@pytest.mark.parametrize("seed", range(12))
def test_a_cleaned_store_is_clean(seed):
    rng = random.Random(seed)
    plan, again = plan_twice([*rows_with(rng, rng.randrange(3, 16))])
    assert plan.left.empty
    assert said_of(again) == []


def test_copies_of_a_text_that_breaks_off_go_though_one_of_them_stays():
    rows = [
        {"content": WHOLE, "title": "Dog"},
        {"content": WHOLE[:90], "title": "Rent of May", "tags": ("work", "home")},
        *({"content": WHOLE[:90], "tags": tags} for tags in [(), ("work",)]),
    ]
    plan, again = plan_twice(rows)
    assert plan.counts == {"patch": 1, "delete": 2}
    assert set(plan.changes.id) == {"m00", "m02", "m03"}
    assert said_of(again) == []


@pytest.mark.parametrize("newest", [0, 1])
def test_the_memory_is_kept_that_can_hold_both(newest):
    """«Tea» is in the text, the rent is not."""
    rows = [{"content": "Ada likes tea.", "title": title} for title in ("Tea", "Rent of May")]
    rows[newest] |= {"updated_at": "2026-04-01T10:00:00Z"}
    plan, again = plan_twice(rows)
    assert plan.changes[["action", "id"]].to_numpy().tolist() == [["delete", "m00"]]
    assert said_of(again) == []
    found = actions_of(*rows)
    assert found.loc[found.action != "none", ["id", "related_id", "action"]].to_numpy().tolist() == [
        ["m0", "m1", "delete"]
    ]


@pytest.mark.parametrize("order", [1, -1])
def test_a_memory_goes_if_one_of_several_findings_says_so(order):
    """The memory that one of them would keep goes as well."""
    memories = memories_of([{"id": None, "content": text, "tags": ()} for text in TEXTS[:3]])
    audit = mf.audit_memories(memories.assign(origin_id=["m0", "m1", "m2"]), now=NOW)
    rows = [("stale", "m0", None), ("version", "m0", "m1"), ("stale", "m1", None), ("version", "m0", "m2")]
    for chosen, gone in ((rows[:3], {"m0": None, "m1": None}), (rows[1:], {"m0": "m2", "m1": None})):
        check, ids, related = zip(*chosen[::order], strict=True)
        findings = findings_frame(
            check=check, id=ids, related_id=related, severity=["low"] * 3, action=["delete"] * 3
        )
        plan = mf.plan_cleanup(dataclasses.replace(audit, findings=findings), max_share=1)
        assert {change.id: next(iter(change.keeps), None) for change in plan.records} == gone


def test_the_comparisons_of_equal_texts_with_titles_of_their_own_grow_with_their_number(monkeypatch):
    n_compared = Counter()
    find_obstacle = Merging._find_obstacle

    def count(merging, member, holder):
        n_compared[len(merging._values)] += 1
        return find_obstacle(merging, member, holder)

    monkeypatch.setattr(Merging, "_find_obstacle", count)
    for n in (100, 200):
        texts = ["Took the train to Ghent", "Took the train to Ghent"] * (n // 2)
        titles = [f"Trip {1000 + place // 2}" for place in range(n)]  # two of each
        memories = pd.DataFrame(
            {"id": [f"m{place}" for place in range(n)], "content": texts, "title": titles}
        )
        found = mf.audit_memories(memories, checks=["exact_duplicate"]).findings
        assert (found["action"] == "delete").sum() == n // 2
    assert n_compared[200] <= 2.2 * n_compared[100]


def test_versions_of_one_memory_are_kept_apart_without_a_pair_for_each_two_of_them():
    ids = [f"m{place}" for place in range(200)]
    findings = findings_frame(check=["version"] * 200, id=ids, group=[1] * 200)
    assert sum(map(len, read_relations(findings).apart)) == 200
