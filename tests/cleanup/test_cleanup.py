"""From an audit to a store that is clean: nothing is lost, no secret is seen, and all of it can be taken back."""

import dataclasses
import re
from types import SimpleNamespace

import msgspec
import numpy as np
import pandas as pd
import pytest

import memframe as mf
from memframe.audit.findings import findings_frame
from memframe.cleanup.proposals import PLANNED
from memframe.sample import load_sample, load_sample_tags
from memframe.wire import GET_MEMORY, LIST_MEMORIES, UPDATE_MEMORY
from tests.canaries import stands
from tests.cleanup.conftest import NOW, QUIET, Store
from tests.conftest import User
from tests.faults import FaultProxy, answered, changed, passed
from tests.rows import held

TEA = "Ada has drunk green tea every morning since 2019."


def ids_of(memories):
    return dict(zip(memories.content, memories.id, strict=True))


# -- deletes and merges


def test_copies_that_hold_nothing_of_their_own_are_deleted(store):
    store.fill(TEA, TEA, TEA, "Ada lives in Leeds.")
    assert store.plan(actions={"exact_duplicate": "delete"}, max_share=0).counts == {"delete": 2}
    plan = store.plan()
    assert plan.counts == {"delete": 2}
    assert plan.changes.reason.str.contains("exact_duplicate").all()
    store.apply(plan)
    assert sorted(store.load().content) == [TEA, "Ada lives in Leeds."]


def test_what_a_copy_has_and_its_keeper_lacks_is_merged_into_it(store):
    store.fill(
        {"content": TEA, "title": "Tea", "tags": ("drinks", "home"), "importance": 0.4},
        {"content": TEA, "tags": ("Morning",), "summary": "Drinks green tea.", "confidence": 0.5},
    )
    audit = store.audit(checks=["exact_duplicate"])
    assert sorted(audit.findings.action) == ["merge", "none"]
    plan = store.plan(audit, actions=["delete", "merge"])
    assert plan.counts == {"patch": 1, "delete": 1}
    assert plan.changes.group.tolist() == [0, 0]
    store.apply(plan)
    (kept,) = store.load().itertuples()
    assert set(kept.tags) == {"drinks", "home", "Morning"}
    assert (kept.title, kept.summary, kept.importance) == ("Tea", "Drinks green tea.", 0.4)


def test_near_duplicates_are_merged_into_the_one_that_says_most(store):
    store.fill(
        {"content": "Note: ada has drunk green tea every morning since 2019", "tags": ("a",)},
        {"content": TEA[:-1] + ", with honey.", "tags": ("b",)},
        {"content": "The user said that Ada has drunk green tea every morning since 2019.", "tags": ("c",)},
    )
    (kept,) = store.clean().itertuples()
    assert kept.content.endswith("with honey.")
    assert set(kept.tags) == {"a", "b", "c"}


@pytest.mark.parametrize(
    "other",
    [
        {"content": TEA, "source": "mail"},
        {"content": TEA, "title": "What Marta told"},
        {"content": TEA, "summary": "Two cups, from 07:30."},
        {"content": TEA.replace("green", "gren") + " 🍵", "title": "Since Assam"},
    ],
)
def test_what_would_lose_a_value_stays(store, other):
    store.fill({"content": TEA + " ☕", "title": "Tea", "summary": "Green tea.", "tags": ("x", "y")}, other)
    before = held(store.load())
    assert len(store.plan()) == 0
    assert held(store.load()) == before


def test_changed_values_are_never_merged(store):
    pairs = [
        ("The rent of the flat is 640 pounds.", "The rent of the flat is 665 pounds."),
        ("Ada's dentist is Dr. Kim.", "Ada's dentist is Dr. Lee."),
        ("Ada eats meat.", "Ada does not eat meat."),
        ("The appointment is on 3 May 2026 at noon.", "The appointment is on 4 May 2026 at noon."),
    ]
    store.fill(*(text for one, other in pairs for text in (one, other, one)))
    assert sorted(store.clean().content) == sorted(text for pair in pairs for text in pair)


def test_copies_of_several_sources_leave_one_for_each(store):
    store.fill(
        *[{"content": TEA, "source": source} for source in ("chat", "mail", "chat", "mail", "mail", None)]
    )
    assert sorted(store.clean().source) == ["chat", "mail"]
    assert len(store.plan()) == 0


def test_more_tags_than_a_memory_can_have_stay_on_two(store):
    tags = [
        tuple(f"topic {chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(*span))
        for span in ((60,), (60, 101))
    ]
    store.fill(*[{"content": TEA, "tags": some} for some in tags])
    assert len(store.plan(actions=["delete", "merge"])) == 0


def test_heartbeats_and_empty_rows_go_and_what_is_told_by_wording_stays(store):
    kept = [
        "Ada is a cron expert and runs heartbeat checks at work.",
        "Memory updated successfully.",
        "Migrating 30 of 50 services to the new logging library.",
    ]
    store.fill("heartbeat ok 2026-01-02T03:00:00Z", "...", *kept)
    plan = store.plan()
    assert plan.counts == {"delete": 2}
    assert plan.changes.reason.str.startswith("junk (").all()
    assert sorted(store.clean().content) == sorted(kept)


def test_deleting_on_wording_alone_needs_the_share_as_its_confirmation(store):
    noise = [f"Memory updated successfully to version {n}." for n in range(3)]
    facts = [f"Ada keeps {n} hens." for n in range(2, 8)]
    store.fill(*noise, *facts, "heartbeat ok 2026-01-02T03:00:00Z", "...")
    audit = store.audit(checks=["junk"])
    assert store.plan(audit).counts == {"delete": 2}
    named = r"3 of 11 memories \(27\.3 %\).*wording alone \(junk 3\).*max_share=0\.28"
    with pytest.raises(mf.PlanError, match=named):
        store.plan(audit, actions={"junk": "delete"})
    with pytest.raises(mf.PlanError, match=named):
        store.plan(audit, actions={"junk": "delete"}, max_share=0.27)
    assert store.plan(audit, actions={"junk": "delete"}, max_share=0.28).counts == {"delete": 5}
    with pytest.raises(mf.ConfigError, match="max_share=28: a share is a number from 0 to 1"):
        store.plan(audit, max_share=28)


def test_a_few_deletes_on_wording_need_no_share(store):
    store.fill(*[f"Ada keeps {n} hens." for n in range(2, 21)], "Memory updated successfully.")
    audit = store.audit(checks=["junk"])
    assert store.plan(audit, actions={"junk": "delete"}).counts == {"delete": 1}
    told = findings_frame(
        id=audit.memories.id.tolist()[:2], check="version", kind="-", evidence="-", score=1.0,
        severity="low", action="review",
    )  # fmt: skip
    audit = dataclasses.replace(audit, findings=pd.concat([audit.findings, told], ignore_index=True))
    with pytest.raises(mf.PlanError, match=r"junk 1, version 2.*max_share=0\.15"):
        store.plan(audit, actions={"junk": "delete", "version": "delete"})


def test_a_keeper_that_is_junk_does_not_take_its_copies_with_it(store):
    memories = store.fill(TEA, TEA, TEA)
    audit = store.audit()
    keeper = audit.findings.related_id.dropna().iloc[0]
    junk = findings_frame(
        id=[keeper], check="junk", kind="template", severity="low", score=1.0, evidence="-", action="delete"
    )
    audit = dataclasses.replace(audit, findings=pd.concat([audit.findings, junk], ignore_index=True))
    plan = store.plan(audit, max_share=1)
    assert keeper in set(plan.changes.id)
    store.apply(plan)
    assert len(store.load()) == 1
    assert set(store.load().id) < set(memories.id) - {keeper}


def test_what_goes_because_another_memory_says_it_stays_when_that_one_goes(store):
    memories = store.fill("Ada likes tea.", "Memory saved: Ada likes tea.")
    fact, loop = memories.id[memories.content == "Ada likes tea."].item(), memories.id.iloc[-1]
    audit = dataclasses.replace(
        store.audit(),
        findings=findings_frame(
            id=[fact, loop], check=["stale", "junk"], kind="-", evidence="-", related_id=[None, fact],
            score=1.0, severity="low", action=["review", "delete"],
        ),
    )  # fmt: skip
    assert store.plan(audit, max_share=1).changes.id.tolist() == [loop]
    plan = store.plan(audit, actions={"stale": "delete"}, max_share=1)
    assert plan.changes.id.tolist() == [fact]
    assert plan.left.values.tolist() == [
        [loop, "delete", "kept, because the memory that it repeats is deleted or may be"]
    ]


# -- redaction


def test_secrets_are_cut_out_wherever_they_stand_in_their_memory(store):
    word = "Tr0ub4dor&3x"
    store.fill(
        {
            "content": f"The 👩‍👩‍👧 wifi password is {word}.\r\nTell Zoë́: {word}!",
            "title": f"Wifi {word}",
            "summary": "How to get online",
            "tags": ("wifi", word),
        }
    )
    plan = store.plan()
    shown = [plan.diff(), plan._repr_html_(), plan.to_json(), repr(plan), str(plan), repr(plan.records)]
    shown += [plan.changes.to_string(max_colwidth=None), repr(plan.changes.to_dict())]
    run = store.apply(plan)
    shown += [run.outcomes.to_string(max_colwidth=None), repr(run), run._repr_html_()]
    assert not any(word in text for text in shown)
    (kept,) = store.load().itertuples()
    assert kept.content == (
        "The 👩‍👩‍👧 wifi password is [redacted: password].\r\nTell Zoë́: [redacted: password]!"
    )
    assert (kept.title, kept.tags) == ("Wifi [redacted: password]", ("wifi", "[redacted: password]"))
    again = store.audit()
    assert not (again.findings.check == "secret").any()
    assert len(store.plan(again)) == 0


def test_a_secret_is_cut_out_of_all_memories_that_show_it(store):
    word = "Xk%9wQe!mvSG42"
    store.fill(
        f"VM password: {word}",
        f"Deploy script uses {word} for the VM",
        {"content": "The VM is in the cellar", "tags": ("vm", word), "source": f"chat {word}"},
    )
    plan = store.plan()
    assert not plan.notes
    assert plan.counts == {"patch": 3}
    assert word not in store.clean().to_string(max_colwidth=None)


def test_a_plan_says_which_memories_still_show_what_is_redacted(store):
    store.fill("VM password: hunter2boat", "The myhunter2boats are new")
    loaded = store.load().set_index("content")
    plan = store.plan()
    assert plan.counts == {"patch": 1}
    (note,) = plan.notes
    assert note.startswith("1 memory still shows what is redacted in others")
    assert loaded.loc["The myhunter2boats are new", "id"] in note
    categorical = store.load().astype({"content": "category"})
    assert store.plan(mf.audit_memories(categorical, now=NOW)).notes == plan.notes


def test_a_secret_in_a_copy_goes_with_it_and_is_not_shown(store):
    text = "The wifi password is Tr0ub4dor&3x."
    store.fill(text, text, {"content": text, "tags": ("home",), "title": "wifi Tr0ub4dor&3x"})
    plan = store.plan()
    assert plan.counts == {"patch": 1, "delete": 2}
    assert "Tr0ub" not in plan.diff() + plan.to_json() + plan._repr_html_() + str(plan.changes.to_dict())
    (kept,) = store.clean().itertuples()
    assert "Tr0ub" not in f"{kept.content} {kept.title}"


def test_secrets_are_not_shown_where_nothing_is_redacted(store):
    text = "The wifi password is Tr0ub4dor&3x."
    store.fill(text, {"content": text}, "Door code: 2580#")
    audit = store.audit(checks=["exact_duplicate"])
    for actions in (["delete"], ["merge", "delete"], {"secret": "review"}):
        plan = store.plan(audit, actions=actions)
        assert plan.counts == {"delete": 1}
        assert "Tr0ub" not in plan.diff() + plan.to_json() + plan._repr_html_() + str(plan.changes.to_dict())


def test_two_secrets_that_alone_told_texts_apart_leave_two_texts(store):
    store.fill("The padlock opens with the PIN 4071.", "The padlock opens with the PIN 5522.")
    assert sorted(store.clean().content) == [
        "The padlock opens with the PIN [redacted: pin 1].",
        "The padlock opens with the PIN [redacted: pin 2].",
    ]
    assert len(store.plan()) == 0


def test_personal_data_is_redacted_only_when_asked_for(store):
    text = "Reach Ada at ada@example.org, card 4111 1111 1111 1111."
    store.fill(text)
    assert len(store.plan()) == 0
    assert len(store.plan(actions=["redact"])) == 0
    plan = store.plan(actions={"personal_data": "redact"})
    shown = plan.diff() + str(plan.changes.to_dict())
    assert not re.search(r"(?<![\w-])4111", shown), "not counting a part of an id"
    store.apply(plan)
    assert store.load().content[0] == "Reach Ada at [redacted: email], card [redacted: card]."


def test_personal_data_is_proposed_for_what_the_plan_does(store):
    """A number that only a person can judge is to be looked at: the report must not promise that it goes."""
    store.fill("Card 4111 1111 1111 1111.", "SSN 078-05-1120", "See http://ada:Hf7-kQ29@db.example.org")
    audit = store.audit(checks=["personal_data"])
    high = audit.findings[audit.findings.severity == "high"]
    assert (high.id.nunique(), set(high.action)) == (3, {"review"})
    assert len(store.plan(audit)) == 0
    assert store.plan(audit, actions={"personal_data": "redact"}).counts == {"patch": 3}


# -- what is proposed, and what is done


def rows_of_everything():
    """Memories of which a part of what is proposed cannot be done, by the check that proposes it."""
    return [
        TEA,
        {"content": TEA, "source": "mail"},  # a copy of another source stays
        "Ada lives in Leeds with two cats and a dog.",
        "ada lives in leeds with two cats and a dog",
        {"content": "Note: Ada lives in Leeds with two cats and a dog!", "title": "As Marta told"},
        "The wifi password is Tr0ub4dor&3x.",
        "Card 4111 1111 1111 1111.",
        "heartbeat ok 2026-01-02T03:00:00Z",
        *[{"content": f"Recipe {n}: it takes {n} eggs.", "tags": ("recipe",)} for n in (3, 5, 8)],
        {"content": "Soup of leek and potato.", "tags": ("Recipes", "stamps"), "importance": 4.0},
        {"content": "A cake of three layers.", "tags": ("stamp",), "importance": 0.5},
        *[{"content": f"Shelf {n} holds {n} jars.", "tags": ("stamps",)} for n in (2, 4, 6)],
    ]


def test_proposals_and_changes_balance_in_memories(store):
    store.fill(*rows_of_everything(), tags=[{"name": "stamps", "is_enabled": False}])
    audit = store.audit()
    for actions in (None, ["delete"], ["redact", "retag"], {"personal_data": "redact"}, {"secret": "review"}):
        check_balance(audit, store.plan(audit, actions=actions), actions)


def check_balance(audit, plan, actions):
    proposed = audit.findings[audit.findings.action.isin(PLANNED)]
    wanted = set(proposed.id) | (
        set(audit.rows("personal_data").id) if actions == {"personal_data": "redact"} else set()
    )
    changed = set(plan.changes.id)
    assert set(plan.left.id) == wanted - changed
    assert plan.left.id.is_unique
    assert plan.left.reason.str.len().gt(0).all()
    assert set(plan.left.action) <= set(PLANNED)


def test_a_plan_that_does_all_that_is_proposed_needs_no_note(store):
    store.fill(TEA, TEA, "The wifi password is Tr0ub4dor&3x.")
    plan = store.plan()
    assert plan.counts == {"patch": 1, "delete": 1}
    assert plan.notes == (plan.undo_note,)


def test_no_tag_is_proposed_that_comes_off_itself(store):
    store.fill(*[{"content": f"Shelf {n} holds {n} jars.", "tags": ("stamps",)} for n in (2, 4, 6)],
               {"content": "A cake of three layers.", "tags": ("Stamp",)},
               tags=[{"name": "stamps", "is_enabled": False}])  # fmt: skip
    audit = store.audit(checks=["tags"])
    assert set(audit.findings[audit.findings.kind == "near_identical"].action) == {"review"}
    assert store.plan(audit).notes == ()


def test_findings_that_were_left_out_of_the_audit_are_left_alone(store):
    memories = store.fill("The wifi password is Tr0ub4dor&3x.", "The alarm PIN is 4071.")
    audit = store.audit()
    chosen = audit.findings[audit.findings.kind == "pin"]
    plan = store.plan(dataclasses.replace(audit, findings=chosen))
    assert plan.changes.id.tolist() == [memories.id[memories.content.str.contains("PIN")].item()]


# -- tags and scores


def test_tags_get_one_spelling_and_disabled_ones_come_off(store):
    store.fill(*[{"content": f"Recipe {n}: it takes {n} eggs.", "tags": ("recipe",)} for n in (3, 5, 8)],
               {"content": "Soup of leek and potato.", "tags": ("Recipes", "stamps", "recipe")},
               tags=[{"name": "stamps", "is_enabled": False}])  # fmt: skip
    plan = store.plan(actions=["retag"])
    assert [change.after for change in plan.records] == [{"tags": ("recipe",)}]
    assert "near_identical" in plan.records[0].reason
    assert "disabled" in plan.records[0].reason
    store.apply(plan)
    assert set(store.load().tags) == {("recipe",)}
    assert len(store.plan(actions=["retag"])) == 0


@pytest.mark.parametrize(
    ("importance", "becomes"),
    [
        ([0.4, 4.0, None, 5.0, 1.0], [0.4, 0.8, np.nan, 1.0, 1.0]),  # of two scales, a 1 stays a 1
        ([1.0, 2.0, None, 5.0], [0.2, 0.4, np.nan, 1.0]),
    ],
)
def test_importance_comes_to_one_scale(store, importance, becomes):
    texts = ["Ada sails.", "Bo paints the hull blue.", "Cy ate soup.", "Di owns two mules.", "Ed left Rome."]
    store.fill(*[{"content": text, "importance": i} for text, i in zip(texts, importance, strict=False)])
    after = store.clean(actions=["rescale"])
    np.testing.assert_array_equal(after.sort_values("content").importance, becomes)
    assert len(store.plan()) == 0


# -- what is asked for


def test_only_what_is_asked_for_is_planned(store):
    text = {"content": TEA, "tags": ("tea",)}
    others = "Door code: 2580#", "heartbeat ok 2026-01-02T03:00:00Z"
    store.fill(text | {"title": "Tea"}, text | {"tags": ("Tea",)}, text, *others)
    audit = store.audit()
    counts = {
        name: store.plan(audit, actions=[name]).counts for name in ("delete", "merge", "redact", "retag")
    }
    assert counts == {"delete": {"delete": 2}, "merge": {"patch": 1, "delete": 1}, "redact": {"patch": 1},
                      "retag": {"patch": 1}}  # fmt: skip
    assert store.plan(audit, actions=[]).counts == {}
    decided = store.plan(audit, actions={"junk": "review", "secret": "none", "tags": "review"})
    assert decided.counts == {"patch": 1, "delete": 2}
    assert store.plan(audit, actions={"secret": "delete"}, max_share=0.2).counts == {"delete": 4}


def test_an_empty_store_needs_nothing_and_unknown_actions_are_refused_by_name(store):
    audit = store.audit()
    assert store.plan(audit).counts == {}
    for actions, named in (
        (["delte"], "delete, merge, redact, strip, retag, rescale"),
        ("delete", "pass a list"),
        ({"junkk": "delete"}, "exact_duplicate, near_duplicate"),
        ({"version": "merge"}, "delete, review, none"),
        ({"missing": "delete"}, "review, none"),
        (3, "pass a list"),
    ):
        with pytest.raises(mf.ConfigError, match=re.escape(named)):
            store.plan(audit, actions=actions)


# -- what a judge has said


def test_what_only_a_judge_has_found_is_planned_by_no_decision(store):
    memories = store.fill("Ada lives in Leeds.", "Ada bought a house by the sea.")
    found = findings_frame(
        id=memories.id.tolist(), check=["version", "near_duplicate"], kind=["judged_replaced", "judged_same"],
        related_id=memories.id.tolist()[::-1], severity="low", score=1.0, evidence="-", action="review",
    )  # fmt: skip
    audit = dataclasses.replace(store.audit(), findings=found)
    actions = {"version": "delete", "near_duplicate": "merge"}
    assert len(store.plan(audit, actions=actions, max_share=1)) == 0
    told = dataclasses.replace(audit, findings=found.assign(kind="uncued"))
    assert len(store.plan(told, actions=actions, max_share=1)) == 1


def test_a_merge_that_a_judge_objected_to_is_none_when_the_audit_is_made_again(store, tmp_path):
    store.fill(TEA, "Note: ada has drunk green tea every morning since 2019")
    audit = store.audit()
    for action, n_changes in (("merge", 1), ("review", 0)):
        findings = audit.findings.assign(action=audit.findings.action.replace("merge", action))
        dataclasses.replace(audit, findings=findings).to_json(tmp_path / action)
        assert store.plan(tmp_path / action).counts.get("delete", 0) == n_changes


# -- whose memories, and which state


def test_of_several_users_only_the_ones_of_the_access_are_planned(store, service, shared_user):
    store.fill(TEA, TEA)
    other = Store(shared_user)
    if other.load().empty:
        other.fill(TEA, TEA)
    both = pd.concat([store.load(), other.load()], ignore_index=True)
    audit = mf.audit_memories(both, now=NOW)
    assert len(store.plan(audit)) == 1
    assert set(store.plan(audit).changes.id) < set(store.load().id)
    with pytest.raises(mf.PlanError, match="open that user's access"):
        store.plan(other.audit())


def test_a_row_twice_in_the_frame_is_one_memory(store):
    memories = store.fill(TEA, "Ada lives in Leeds.")
    audit = mf.audit_memories(pd.concat([memories, memories, memories]), now=NOW)
    assert (audit.findings.check == "exact_duplicate").any()
    assert len(store.plan(audit)) == 0
    odd = pd.concat([memories, memories.assign(title="another")], ignore_index=True)
    with pytest.raises(mf.PlanError, match="more than one state"):
        store.plan(mf.audit_memories(odd, now=NOW))


def test_frames_with_fewer_rows_and_columns_do(store):
    memories = store.fill(TEA, {"content": TEA, "tags": ("tea",)}, "The alarm PIN is 4071.")
    some = memories[memories.content.str.contains("PIN")][["id", "content"]]
    plan = store.plan(mf.audit_memories(some, checks=["secret", "junk"]))
    assert plan.counts == {"patch": 1}
    assert plan.changes.row.tolist() == some.index.tolist()


def test_what_moved_since_the_audit_is_a_conflict(store):
    memories = store.fill(TEA, TEA, "The alarm PIN is 4071.", "heartbeat ok 2026-01-02T03:00:00Z")
    audit = store.audit()
    by_content = ids_of(memories)
    store.edit(by_content["The alarm PIN is 4071."], content="By now the alarm PIN is 4071.")
    store.delete(by_content["heartbeat ok 2026-01-02T03:00:00Z"])
    with pytest.raises(mf.PlanError, match="2 rows conflict"):
        store.plan(audit)
    plan = store.plan(audit, on_conflict="mark")
    assert plan.counts == {"conflict": 2, "delete": 1}
    assert not stands("4071", plan.diff() + str(plan.changes.to_dict()))
    theirs = store.plan(audit, on_conflict="theirs")
    assert theirs.counts == {"delete": 1}
    assert theirs.left.reason.tolist() == ["changed or deleted at the service since the audit"] * 2
    assert plan.left.empty
    with pytest.raises(mf.PlanError, match="were not audited"):
        store.plan(audit, on_conflict="mine")
    another = memories[memories.content == TEA].id.iloc[0]
    store.edit(another, title="Looked at by somebody")
    assert "conflict" in store.plan(audit, on_conflict="mark").counts


def test_a_keeper_that_moved_since_the_audit_is_a_conflict_and_its_copy_stays(store):
    store.fill(TEA, TEA)
    audit = store.audit()
    keeper = audit.findings.related_id.dropna().iloc[0]
    store.edit(keeper, content="Ada drinks coffee.")
    plan = store.plan(audit, on_conflict="mark")
    assert plan.changes[["action", "id"]].to_numpy().tolist() == [["conflict", keeper]]


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_copy_is_not_deleted_once_its_keeper_says_something_else(store, is_deleted):
    store.fill(TEA, TEA)
    plan = store.plan()
    (doomed,) = plan.changes.id
    (keeper,) = set(store.load().id) - {doomed}
    if is_deleted:
        store.delete(keeper)
    else:
        store.edit(keeper, content="Ada drinks coffee.")
    with pytest.raises(mf.StalePlanError, match=keeper):
        store.apply(plan)
    assert doomed in set(store.load().id)


def test_deletes_of_a_group_wait_for_a_patch_that_fails(store, service):
    store.fill({"content": TEA, "title": "Tea", "summary": "Tea."}, {"content": TEA, "tags": ("a",)})
    with FaultProxy(service.base_url) as proxy:
        through = store.through(proxy)
        proxy.always(UPDATE_MEMORY, answered(422))
        plan = through.plan(actions=["merge"])
        run = mf.apply_plan(through.access, plan, confirm=1, **QUIET)
        through.access.client.close()
    assert run.outcomes.set_index("action").status.to_dict() == {"patch": "rejected", "delete": "planned"}
    assert len(store.load()) == 2


def test_a_keeper_without_a_patch_is_read_once_more_before_its_copies_go(store, service):
    store.fill(TEA, TEA)
    with FaultProxy(service.base_url) as proxy:
        through = store.through(proxy)
        plan = through.plan()
        (keeper,) = plan.records[0].depends_on

        def edited(document):
            if document["id"] == keeper:
                document["title"] = "another"

        proxy.script(GET_MEMORY, passed, passed, changed(edited))
        run = mf.apply_plan(through.access, plan, confirm=1, **QUIET)
        through.access.client.close()
    assert run.outcomes.status.tolist() == ["planned"]
    assert keeper in run.outcomes.error[0]
    assert len(store.load()) == 2


def test_what_cannot_be_opened_is_left_alone_but_may_be_deleted(store, service):
    text = {
        "content": "The PIN is 4071.",
        "title": "The alarm PIN is 4071",
        "tags": ("Home",),
        "importance": 4.0,
    }
    tags = [{"content": f"{n} eggs in the cake", "tags": ("home",), "importance": 0.5} for n in (1, 2, 3)]
    memories = store.fill(text, *tags)
    damaged = memories.id[memories.content == text["content"]].item()

    def close(document):
        for blob in document.get("memoryBlobs", [document]):
            if blob.get("id") == damaged:
                blob["content"] = "mf1.1." + "A" * 60

    with FaultProxy(service.base_url) as proxy:
        for endpoint in (LIST_MEMORIES, GET_MEMORY):
            proxy.always(endpoint, changed(close))
        through = store.through(proxy)
        audit = through.audit()
        assert set(audit.rows("sealed").id) == {damaged}
        assert len(through.plan(audit)) == 0
        assert set(audit.findings[audit.findings.id == damaged].action) <= {"review", "none"}
        assert damaged in set(audit.rows("secret").id)
        asked = through.plan(audit, actions={"secret": "delete"})
        assert (len(asked), asked.left.reason.tolist()) == (0, ["its content cannot be opened"])
        plan = through.plan(audit, actions={"sealed": "delete"})
        assert plan.changes[["action", "id"]].to_numpy().tolist() == [["delete", damaged]]
        through.apply(plan)
        through.access.client.close()
    assert damaged not in set(store.load().id)


# -- the whole of a made-up person


@pytest.fixture(scope="module")
def ilka(service):
    """The sample's person, cleaned up: before, what was planned and done, and after."""
    person = User(service, "ilka-to-clean@example.org")
    store = Store(person)
    before = store.fill(*map(msgspec.structs.asdict, load_sample()), tags=load_sample_tags())
    audit = store.audit()
    plan = store.plan(audit)
    run = store.apply(plan)
    yield SimpleNamespace(store=store, before=before, audit=audit, plan=plan, run=run, after=store.load())
    person.close()


def test_all_that_was_told_of_the_sample_is_still_there(ilka):
    of_keeper = {}
    for change in ilka.plan.records:
        for keeper in change.depends_on:
            of_keeper.setdefault(keeper, [keeper]).append(change.id)
    merged = {keeper: ids for keeper, ids in of_keeper.items() if len(ids) > 1}
    assert len(merged) > 8
    before, after = ilka.before.set_index("id"), ilka.after.set_index("id")
    spelled = {"recipes": "recipe"}
    for keeper, ids in merged.items():
        tags = {spelled.get(tag, tag) for cell in before.loc[ids].tags for tag in cell}
        assert set(after.tags[keeper]) == tags
        assert {after.source[keeper]} == set(before.source[ids].dropna())
        said = after.loc[keeper, ["title", "summary", "content"]].str.cat(sep=" ").lower()
        for text in before.loc[ids, ["title", "summary", "content"]].stack().dropna():
            assert [
                n for n in re.findall(r"\d+", text) if n not in re.sub(r"(?<=\d)[ ,](?=\d)", "", said)
            ] == []


def test_the_cleanup_of_the_sample_loses_no_value_that_no_other_memory_holds(ilka):
    assert ilka.plan.counts["delete"] > 10
    assert ilka.plan.losses.to_dict("records") == []


def test_nothing_is_left_to_plan_for_the_sample(ilka):
    again = ilka.store.audit()
    assert len(ilka.store.plan(again)) == 0
    proposed = ilka.audit.findings[ilka.audit.findings.action.isin(["redact", "rescale", "retag"])]
    proposed = proposed[proposed.check != "personal_data"]
    left = again.findings[again.findings.check.isin(proposed.check.unique())]
    assert left.merge(proposed, on=["check", "kind", "id"]).empty


def test_changed_values_of_the_sample_are_both_still_there(ilka):
    changed = ilka.audit.findings[
        (ilka.audit.findings.check == "version") & (ilka.audit.findings.kind == "value")
    ]
    junk = set(ilka.audit.rows("junk").id)
    together = {
        frozenset((change.id, keeper)) for change in ilka.plan.records for keeper in change.depends_on
    }
    assert not together & {frozenset(pair) for pair in zip(changed.id, changed.related_id, strict=True)}
    assert {*changed.id, *changed.related_id} - junk


def test_no_secret_of_the_sample_is_seen(ilka):
    spans = ilka.audit.findings[ilka.audit.findings.check == "secret"]
    before, after = ilka.before.set_index("id"), ilka.after.set_index("id")
    secrets = {
        before.loc[i, field][start:end]
        for i, field, start, end in zip(spans.id, spans.field, spans.start, spans.end, strict=True)
    }
    assert len(secrets) == 5
    plan, run = ilka.plan, ilka.run
    shown = [plan.diff(), plan._repr_html_(), plan.to_json(), repr(plan.records), str(plan.changes.to_dict())]
    shown += [str(run.outcomes.to_dict()), repr(run), run._repr_html_()]
    stored = after.loc[after.index.intersection(spans.id), ["title", "summary", "content"]].to_string()
    for secret in secrets:
        assert not any(stands(secret, text) for text in [*shown, stored])


def test_the_sample_comes_back_whole(ilka):
    plan = mf.plan_undo(ilka.store.access, ilka.run)
    assert "conflict" not in plan.counts
    ilka.store.apply(plan)
    assert held(ilka.store.load()) == held(ilka.before)
