"""The tables that must be complete: fields of a memory, checks and actions. Leaving out a row fails here at once."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields as struct_fields

import memframe as mf
from memframe import wire
from memframe.archive.sealing import SEALED
from memframe.audit.evidence import HOLDS_WORDS
from memframe.audit.findings import CHECKS, ENDING, PROPOSALS
from memframe.audit.merge import Copy, Merging, Relations
from memframe.audit.run import all_checks
from memframe.cleanup.plan import EDITORS
from memframe.cleanup.proposals import PLANNED, POSSIBLE
from memframe.errors import FrameError
from memframe.fields import COLUMNS_VERSION, MEMORY_FIELDS, TEXT_FIELDS
from memframe.frames import MEMORY_KINDS
from memframe.plan.change import FIELDS, same_value
from memframe.report.words import CHECK_WORDS, PROPOSAL_WORDS
from memframe.service.importing import ForeignMemory
from memframe.service.openapi import BODY_BOUNDS, NULLABLE
from memframe.service.store.schema import REVISION
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


# -- the recipe

MIGRATION = """import sqlalchemy as sa
from alembic import op

revision, down_revision = {new!r}, {old!r}


def upgrade() -> None:
    op.add_column("memories", sa.Column("language", sa.Text))
"""


@pytest.fixture(scope="module")
def with_language(tmp_path_factory):
    """Files that a memframe with one more field has written, which was added as CONTRIBUTING says."""
    root, here = tmp_path_factory.mktemp("added"), Path(__file__).parent
    package = shutil.copytree(here.parent / "memframe", root / "memframe")

    def edit(path, *pairs):
        text = (package / path).read_text()
        for pattern, new in pairs:
            text, n_found = re.subn(pattern, new, text, count=1)
            assert n_found, pattern
        (package / path).write_text(text)

    row = f'    MemoryField("language", since={COLUMNS_VERSION + 1}),\n'
    edit("fields.py", (r'(?=    _of_service\("created_at")', row))
    kinds = (r"str \| None = None", r"str \| UnsetType \| None = UNSET", r"str \| None(?=\n)")
    edit("wire.py", *((rf"(    source: ({kind}))", r"\1\n    language: \2") for kind in kinds))
    new = f"{int(REVISION) + 1:04}"
    edit("service/store/schema.py", (f'REVISION = "{REVISION}"', f'REVISION = "{new}"'))
    script = package / "service/store/migrations/versions" / f"schema_{new}.py"
    script.write_text(MIGRATION.format(new=new, old=REVISION))

    folder = root / "files"
    folder.mkdir()
    command = [sys.executable, here / "added_field.py", here / "former/columns_1", folder]
    environment = os.environ | {"PYTHONPATH": str(root), "XDG_STATE_HOME": str(root / "state")}
    done = subprocess.run(command, check=False, env=environment, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_a_field_that_is_added_by_the_recipe_is_treated_well_everywhere(with_language):
    assert (with_language / "sealed.parquet").exists()


@pytest.mark.parametrize(
    "name", ["a.parquet", "a.jsonl", "a.csv", "a.md", "folder", "plain.parquet", "sealed.parquet", "sealed"]
)
def test_a_column_of_a_newer_version_is_kept(with_language, name):
    key = (with_language / "key").read_text() if name.startswith("sealed") else None
    loaded = mf.load_archive(with_language / name, key=key)
    assert {"de", "fr"} <= {*loaded["language"]}
    assert list(loaded.columns[:-1]) == list(MEMORY_KINDS)


@pytest.mark.parametrize("name", ["plain.parquet", "sealed.parquet", "sealed"])
def test_an_archive_of_a_newer_version_is_neither_replaced_nor_refreshed(with_language, name, access):
    for write in (mf.export_memories, mf.refresh_archive):
        with pytest.raises(FrameError, match=r"not replaced, as a newer memframe .*\(language\): upgrade"):
            write(access, with_language / name)


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


@settings(max_examples=60)
@given(st.lists(MEMORY, min_size=2, max_size=4), st.data())
def test_in_whatever_two_memories_differ_both_stay_or_it_is_carried_over(memories, data):
    rows = {f"m{n}": memory for n, memory in enumerate(memories)}
    frame = memories_of([{"id": memory_id, **row} for memory_id, row in rows.items()])
    kind = data.draw(st.sampled_from([("exact_duplicate", "delete"), ("near_duplicate", "merge")]))
    copies = [Copy(memory_id, "m0", kind[0], "typing", kind[1]) for memory_id in rows]
    for merge in Merging(frame, rows, taken={"delete", "merge"}, relations=Relations()).merges(copies):
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
        case "take highest":
            return value if value is not None and not (kept[field.name] or 0) >= value else None
        case "keep both":
            return None if value in (None, "") or same_value(field.name, value, kept[field.name]) else value


@pytest.mark.parametrize(
    "field", [field for field in MEMORY_FIELDS if (field.is_editable, field.on_merge) == (True, "keep both")]
)
def test_a_field_that_keeps_both_keeps_two_memories_apart(field):
    plain = dict.fromkeys(FIELDS) | {"content": "Ada likes tea.", "tags": ()}
    rows = {"m1": plain | {field.name: "one"}, "m2": plain | {field.name: "two"}, "m3": plain}
    frame = memories_of([{"id": memory_id, **row} for memory_id, row in rows.items()])
    copies = [Copy(memory_id, "m1", "exact_duplicate", "typing", "delete") for memory_id in rows]
    (merge,) = Merging(frame, rows, taken={"delete", "merge"}, relations=Relations()).merges(copies)
    assert merge.copies == ("m3",)
