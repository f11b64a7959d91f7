"""Lists of changes for systems whose files nothing reads again: ids to delete, texts to set."""
# ruff: noqa: E501 - tables of files, a line each

import csv
import gzip
import json
import warnings

import pytest

import memframe as mf
from memframe.cleanup.lists import list_changes, write_changes
from tests.test_readers import BANK, CLAUDE_MEM, LETTA_2, MEM0, NOON, conversation, file_of, packed

SECRET, COPY = "The wifi password is Tr0ub4dor&3x.", "Ada drinks green tea every single morning."
BLOCKS = [
    {"id": f"block-{n}", "label": "human", "value": text} for n, text in enumerate((SECRET, COPY, COPY))
]
SAID = [{"id": f"m{n}", "recipient": "bio", "create_time": NOON + n, "content": {"parts": [text]}} for n, text in enumerate((SECRET, COPY, COPY))]  # fmt: skip
FACTS = BANK["documents/000000.json"] | {
    "facts": [{"text": text, "fact_type": "world"} for text in (SECRET, COPY, COPY)]
}
ROWS = [
    MEM0 | {"id": f"r{n}", "memory": text, "categories": []} for n, text in enumerate((SECRET, COPY, COPY))
]
MEM = [{"id": n, "memory_session_id": "s", "narrative": text} for n, text in enumerate((SECRET, COPY, COPY))]

EXPORTS = {
    # of each export: ids of memories that go, and of the one whose text is set
    "letta": (LETTA_2 | {"blocks": BLOCKS}, {"block-1", "block-2"}, "block-0"),
    "chatgpt": ([conversation(*SAID)], {"m1", "m2"}, "m0"),
    "claude": ([{"conversations_memory": SECRET, "project_memories": {"p1": COPY, "p2": COPY}}], {"p1", "p2"}, None),
    "zip": (packed(**{"memories.json": {"results": ROWS}}), {"r1", "r2"}, "r0"),
    "gzip": (gzip.compress(json.dumps(ROWS).encode()), {"r1", "r2"}, "r0"),
    "claude-mem": (CLAUDE_MEM | {"observations": MEM, "summaries": [], "totalSummaries": 0}, {"1", "2"}, "0"),
    "hindsight": (packed(**{"documents/000000.json": FACTS}), {None}, None),
}  # fmt: skip


def planned(path, content):
    path.write_bytes(file_of(content))
    with warnings.catch_warnings(action="ignore"):
        audit = mf.audit_memories(mf.read_memories(path))
    return mf.plan_cleanup(audit), audit.memories


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_gets_a_list_of_ids_and_texts(tmp_path, name):
    content, copies, with_secret = EXPORTS[name]
    plan, memories = planned(tmp_path / "export", content)
    lists = list_changes(plan, memories)
    assert [(each.id, each.text) for each in lists.set if each.field == "content"] == [
        (with_secret, "The wifi password is [redacted: password].")
    ]
    assert len(lists.delete) == 1
    assert {each.id for each in lists.delete} <= copies
    assert all(COPY[:20] in each.memory or each.id for each in lists.delete)
    for suffix in (".json", ".csv"):
        write_changes(plan, memories, tmp_path / f"changes{suffix}")
        assert "Tr0ub" not in (tmp_path / f"changes{suffix}").read_text()
    written = json.loads((tmp_path / "changes.json").read_text())
    assert [one["id"] for one in written["delete"]] == [each.id for each in lists.delete]
    with (tmp_path / "changes.csv").open(newline="") as file:
        rows = [*csv.DictReader(file)]
    assert [row["action"] for row in rows] == ["delete"] * len(lists.delete) + ["set"] * len(lists.set)
    assert {row["id"] for row in rows} == {each.id or "" for each in [*lists.delete, *lists.set]}


@pytest.mark.parametrize("sign", "=+-@\t")
def test_a_cell_of_csv_never_begins_as_a_formula_and_json_has_the_text(tmp_path, sign):
    text = f"{sign}SUM(1+1) and the wifi password is Tr0ub4dor&3x."
    plan, memories = planned(tmp_path / "a.json", [MEM0 | {"id": f"{sign}1", "memory": text}])
    write_changes(plan, memories, tmp_path / "a.csv")
    write_changes(plan, memories, tmp_path / "b.json")
    with (tmp_path / "a.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert f"'{sign}1" in cells
    assert not any(cell.startswith((*"=+-@\t\r",)) for cell in cells)
    (new,) = json.loads((tmp_path / "b.json").read_text())["set"]
    assert (new["id"], new["text"][: len(sign) + 3]) == (f"{sign}1", f"{sign}SUM")


def test_only_lists_are_replaced_and_only_plans_for_files_are_listed(tmp_path, access):
    plan, memories = planned(tmp_path / "a.json", ROWS)
    (tmp_path / "thesis.csv").write_text("ten years")
    with pytest.raises(mf.MemframeError, match="is not a list of changes and is not replaced"):
        write_changes(plan, memories, tmp_path / "thesis.csv")
    for _ in range(2):
        write_changes(plan, memories, tmp_path / "own.csv")
        write_changes(plan, memories, tmp_path / "own.json")
    with pytest.raises(mf.ConfigError, match=r"choose \.json or \.csv"):
        write_changes(plan, memories, tmp_path / "own.txt")
    of_service = mf.plan_deletes(access, [])
    with pytest.raises(mf.PlanError, match="apply_plan"):
        list_changes(of_service, memories)
