"""The tables that must be complete: fields of a memory, checks and actions. Leaving out a row fails here at once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields as struct_fields

from memframe import wire
from memframe.archive.sealing import SEALED
from memframe.audit.evidence import HOLDS_WORDS
from memframe.audit.findings import CHECKS, PROPOSALS
from memframe.audit.merge import Copy, Merging
from memframe.audit.run import all_checks
from memframe.cleanup.plan import EDITORS
from memframe.cleanup.proposals import ENDING, PLANNED, POSSIBLE
from memframe.fields import MEMORY_FIELDS, TEXT_FIELDS
from memframe.frames import MEMORY_KINDS
from memframe.plan.change import FIELDS, same_value
from memframe.report import CHECKS as CHECK_WORDS
from memframe.report import PROPOSALS as PROPOSAL_WORDS
from memframe.service.importing import ForeignMemory
from memframe.service.openapi import BODY_BOUNDS, NULLABLE
from memframe.service.store.schema import memories as stored_memories
from tests.rows import memories_of

NAMES = {field.name for field in MEMORY_FIELDS}
WIRE_TYPES = {"text": str, "names": tuple[str, ...], "number": float, "time": str}


def names_of(struct):
    return set(struct.__struct_fields__)


def test_the_structs_of_the_wire_have_the_fields_of_the_table():
    keys = {"user_id", "memory_key"}
    assert names_of(wire.MemoryBlob) == NAMES
    assert names_of(wire.MemoryBlobResponse) == NAMES - {"content"}
    assert names_of(wire.MemoryCreate) == names_of(wire.MemoryPatch) == {*FIELDS, *keys}
    assert set(wire.MemoryEdits.__annotations__) == {*FIELDS} - {"content"}
    types = {field.name: field.type for field in struct_fields(wire.MemoryBlob)}
    for field in MEMORY_FIELDS:
        assert types[field.name] in (WIRE_TYPES[field.kind], WIRE_TYPES[field.kind] | None), field.name


def test_frames_and_the_service_have_the_fields_of_the_table():
    assert list(MEMORY_KINDS) == [*(field.name for field in MEMORY_FIELDS), "content_error"]
    assert names_of(ForeignMemory) == {*FIELDS, "origin_id", "created_at", "updated_at"}
    assert {column.name for column in stored_memories.columns} == NAMES | {"seq"}
    assert BODY_BOUNDS.keys() >= {*FIELDS}
    assert {field.name for field in MEMORY_FIELDS if field.is_optional} == {
        column.name for column in stored_memories.columns if column.nullable
    }
    assert {field.name for field in MEMORY_FIELDS if field.is_optional} | {"next_cursor"} == NULLABLE


def test_each_row_says_what_its_kind_needs():
    for field in MEMORY_FIELDS:
        assert (field.kind == "number") == (field.highest is not None), f"{field.name}: scores have a limit"
        assert not field.is_sealed or field.kind in ("text", "names"), f"{field.name} cannot be sealed"
        assert field.on_merge != "join" or field.kind == "names"
        assert field.on_merge != "compare words" or field.name in TEXT_FIELDS
        if not field.is_editable:
            assert not field.is_sealed
    assert "content" in SEALED


def test_every_check_has_its_words_actions_function_and_evidence():
    for table in (CHECK_WORDS, POSSIBLE, HOLDS_WORDS, all_checks(memories_of([]), tags=None, now=None)):
        assert table.keys() == {*CHECKS}


def test_every_action_has_its_words_and_an_editor():
    assert PROPOSAL_WORDS.keys() == {*PROPOSALS} - {"none"}
    assert EDITORS.keys() | ENDING == {*PLANNED} <= {*PROPOSALS}
    assert EDITORS.keys().isdisjoint(ENDING)
    assert {action for actions in POSSIBLE.values() for action in actions} == {*PLANNED}


# -- merging, over all fields

VALUES = {
    "text": st.sampled_from([None, "", "Graz", "Ghent 1999", "31 cats"]),
    "names": st.sampled_from([(), ("a",), ("b", "c")]),
    "number": st.sampled_from([None, 0.25, 1.0]),
}
MEMORY = st.fixed_dictionaries(
    {field.name: VALUES[field.kind] for field in MEMORY_FIELDS if field.is_editable}
    | {"content": st.sampled_from(["Ada likes tea.", "Ada likes tea"])}
)


@settings(max_examples=200)
@given(st.lists(MEMORY, min_size=2, max_size=4), st.data())
def test_in_whatever_two_memories_differ_both_stay_or_it_is_carried_over(memories, data):
    rows = {f"m{n}": memory for n, memory in enumerate(memories)}
    frame = memories_of([{"id": memory_id, **row} for memory_id, row in rows.items()])
    kind = data.draw(st.sampled_from([("exact_duplicate", "delete"), ("near_duplicate", "merge")]))
    copies = [Copy(memory_id, "m0", kind[0], "typing", kind[1]) for memory_id in rows]
    for merge in Merging(frame, rows, taken={"delete", "merge"}, apart=set()).merges(copies):
        for member in (merge.keeper, *merge.copies):
            for field in (field for field in MEMORY_FIELDS if field.is_editable):
                lost = find_loss(field, rows[member][field.name], merge.values)
                assert not lost, f"{field.name} of {member}: {lost!r}"


def find_loss(field, value, kept):
    """Return the part of a value that the merged memory has not, by the rule of its row."""
    match field.on_merge:
        case "join":
            return {*value} - {*kept[field.name]}
        case "compare words":
            said = " ".join(kept[name] or "" for name in TEXT_FIELDS).lower()
            return [word for word in (value or "").lower().split() if word.strip(".") not in said]
        case "keep own":
            return value if value is not None and kept[field.name] is None else None
        case "keep both":
            return None if value in (None, "") or same_value(field.name, value, kept[field.name]) else value


@pytest.mark.parametrize("field", [field for field in MEMORY_FIELDS if field.on_merge == "keep both"])
def test_a_field_that_keeps_both_keeps_two_memories_apart(field):
    if not field.is_editable or field.kind != "text":
        return
    plain = dict.fromkeys(FIELDS) | {"content": "Ada likes tea.", "tags": ()}
    rows = {"m1": plain | {field.name: "one"}, "m2": plain | {field.name: "two"}, "m3": plain}
    frame = memories_of([{"id": memory_id, **row} for memory_id, row in rows.items()])
    copies = [Copy(memory_id, "m1", "exact_duplicate", "typing", "delete") for memory_id in rows]
    (merge,) = Merging(frame, rows, taken={"delete", "merge"}, apart=set()).merges(copies)
    assert merge.copies == ("m3",)
