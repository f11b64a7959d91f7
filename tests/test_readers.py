"""Files of other memory systems: what each format says is in the frame, and what is not is counted."""
# ruff: noqa: E501 - tables of shapes, a line each

import csv
import gzip
import io
import json
import os
import warnings
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memframe as mf
from memframe.archive import bounds
from memframe.frames import MEMORY_KINDS
from memframe.readers.formats import FORMATS
from tests.conftest import FEW_EXAMPLES
from tests.rows import memories_of

DAY, LATER = "2024-05-01T10:00:00Z", "2024-06-01T10:00:00+02:00"
NOON = 1714557600  # 2024-05-01T10:00:00Z

MEM0 = {
    "id": "m1", "memory": "Likes tea", "hash": "h", "user_id": "ada", "app_id": "chat", "metadata": {"a": 1},
    "categories": ["food", "a, b"], "created_at": DAY, "updated_at": LATER, "replaced_by": None,
}  # fmt: skip
POINT = {"id": "p1", "payload": {"data": "Likes tea", "hash": "h", "user_id": "ada", "created_at": DAY}}
OPENMEMORY = {
    "user": {"id": "u"},
    "apps": [{"id": "a1", "name": "cursor"}],
    "categories": [{"id": "c1", "name": "food"}],
    "memories": [
        {"id": "m1", "app_id": "a1", "content": "Likes tea", "state": "paused", "created_at": DAY, "category_ids": ["c1"]},
        {"id": "m2", "content": "Gone", "state": "deleted", "created_at": DAY},
    ],
    "memory_categories": [],
}  # fmt: skip
OPENMEMORY_LINE = {
    "id": "m1",
    "content": "Likes tea",
    "state": "active",
    "app": "cursor",
    "categories": ["food"],
}
BLOCK = {"id": "block-0", "label": "human", "value": "Likes tea", "description": "About Ada", "limit": 5000}
LETTA_2 = {"agents": [{"name": "x", "messages": [{}, {}]}], "blocks": [BLOCK], "files": [], "tools": []}
LETTA_1 = {
    "agent_type": "memgpt",
    "core_memory": [BLOCK | {"created_at": "2024-05-01T12:00:00"}],
    "messages": [{}],
}
PASSAGE = {
    "id": "p1",
    "text": "Likes tea",
    "tags": ["food"],
    "archive_id": "a",
    "created_at": DAY,
    "is_deleted": False,
}
BIO = {
    "id": "m1", "author": {"role": "assistant"}, "recipient": "bio", "create_time": NOON + 0.5,
    "content": {"content_type": "text", "parts": ["User likes tea."]},
}  # fmt: skip
LISTS = [
    {"id": f"l{n}", "create_time": NOON + n, "content": {"content_type": "model_editable_context", "model_set_context": text}}
    for n, text in enumerate(["1. [2024-04-01]. Old", "1. [2024-04-01]. User likes tea.\n2. [2024-05-01]. Has a cat,\nTom"])
]  # fmt: skip
PROFILE = {
    "id": "p", "content": {"content_type": "user_editable_context", "user_profile": "x", "user_instructions": "Be brief"},
    "metadata": {"user_context_message_data": {"about_user_message": "I row"}},
}  # fmt: skip


OBSERVATION = {
    "id": 1, "memory_session_id": "s", "project": "boat", "text": None, "type": "decision", "title": "Tea", "subtitle": "Hot",
    "facts": '["in a tin", "green"]', "narrative": "Likes tea", "concepts": '["gotcha", "pattern"]', "files_read": "[]",
    "created_at": DAY, "created_at_epoch": NOON * 1000,
}  # fmt: skip
CLAUDE_MEM = {
    "exportedAt": DAY, "exportedAtEpoch": NOON * 1000, "query": "tea", "totalObservations": 3, "totalSessions": 1,
    "totalSummaries": 1, "totalPrompts": 2,
    "observations": [OBSERVATION, OBSERVATION | {"id": 2, "narrative": "", "text": "Swims"}, {"id": 3, "title": "x", "facts": "[]"}],
    "sessions": [{"id": 1, "user_prompt": "Hi"}],
    "summaries": [{"id": 1, "memory_session_id": "s", "request": "Row", "learned": "Rows", "created_at": DAY}],
    "prompts": [{"id": 1, "prompt_text": "Hi"}, {"id": 2, "prompt_text": "Go"}],
}  # fmt: skip
BANK = {
    "manifest.json": {"schema_version": 1, "source_bank_id": "ada", "document_count": 1, "fact_count": 2, "observation_count": 1},
    "documents/000000.json": {
        "id": "chat", "original_text": "I like tea", "tags": [], "chunks": [{"chunk_index": 0, "chunk_text": "I like tea"}],
        "facts": [{"text": "Likes tea", "fact_type": "world", "mentioned_at": DAY, "tags": ["food"], "entities": ["Ada"]},
                  {"text": "Rows", "fact_type": "experience", "created_at": LATER, "mentioned_at": DAY}],
    },
    "observations.json": [{"text": "Drinks tea daily", "proof_count": 2, "sources": [{"document_id": "chat", "fact_index": 0}]}],
    "banks.json": [{"bank_id": "ada", "name": "Ada"}],
}  # fmt: skip
USER_PROFILE = {
    "name": "Ada", "age": 36, "preferences": {"drink": "Green tea", "since": "2019-05-01", "off": False},
    "interests": ["Rowing", {"content": "Tea", "created_at": DAY}, {"id": 3}], "notes": "",
    "history": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}],
}  # fmt: skip


def conversation(*messages):
    return {
        "title": "Tea",
        "mapping": {str(n): {"message": each} for n, each in enumerate([None, *messages])},
    }


CLAUDE = [{"conversations_memory": "Ada rows.", "project_memories": {"p1": "A boat."}, "account_uuid": "u"}]
LANGGRAPH = [
    {
        "namespace": ["m", "ada"],
        "key": "k1",
        "value": {"content": "Likes tea"},
        "created_at": DAY,
        "updated_at": DAY,
    },
    {
        "namespace": [],
        "key": "k2",
        "value": {"kind": "Memory", "content": {"content": "Rows"}},
        "created_at": DAY,
    },
    {"namespace": [], "key": "k3", "value": {"kind": "Food", "content": {"dish": "soup"}}, "created_at": DAY},
]
EDGE = {"uuid": "e1", "name": "LIKES", "fact": "Ada likes tea", "created_at": DAY, "invalid_at": LATER}
GRAPHITI = {"episodes": [{}], "entities": [{}, {}], "facts": [EDGE]}
ENTITIES = [
    {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["likes tea", "rows"]},
    {"type": "relation", "from": "Ada", "to": "Bo", "relationType": "knows"},
    {"type": "entity", "name": "Bo", "entityType": "person", "observations": []},
]
SERVICE = {
    "export_metadata": {"total_memories": 1, "exporter_version": "8"},
    "memories": [{
        "content": "Likes tea", "content_hash": "h", "tags": ["food"], "memory_type": "note", "created_at": NOON + 0.5,
        "updated_at": NOON, "metadata": {}, "export_source": "laptop",
    }],
}  # fmt: skip
SUPERMEMORY = {
    "memoryEntries": [
        {
            "id": "s1",
            "memory": "Likes tea",
            "isLatest": True,
            "version": 2,
            "createdAt": DAY,
            "updatedAt": DAY,
        },
        {"id": "s2", "memory": "Likes milk", "isForgotten": True},
    ],
    "pagination": {"totalItems": 2},
}
PAM = {
    "schema": "portable-ai-memory", "schema_version": "1.0", "owner": {"id": "u"},
    "memories": [
        {
            "id": "p1", "type": "fact", "content": "Likes tea", "content_hash": "sha256:0", "summary": "Tea", "tags": ["food"],
            "confidence": {"initial": 0.5, "current": 0.75}, "temporal": {"created_at": DAY}, "status": "superseded",
            "provenance": {"platform": "chatgpt"},
        },
        {"id": "p2", "type": "fact", "content": "No", "status": "retracted", "temporal": {"created_at": DAY}},
    ],
    "relations": [{}], "integrity": {"total_memories": 2},
}  # fmt: skip
PASTED = """\
Here is what I remember:

```
## Food
[2024-05-01] - Likes tea
  with milk
- [May 2023] – Hates soup: all of it
2. [unknown]: Rows
```
"""
NOTE = """\
---
title: Tea
type: note
tags: [drink, hot]
permalink: food/tea
created: 2024-05-01T12:00:00+02:00
importance: 7
---
# Tea

Ada keeps it in a tin.

- [fact] Likes tea #green (since 2019)
- [x] buy more
- [[Milk]]
- goes_with [[Milk]]
"""
PLUGIN = """\
# Memories of a project

---
id: m1
created_at: 2024-05-01T10:00:00Z
type: decision
confidence: 0.9
categories: food, tools
---

Likes tea

---
id: m2
created_at: 2024-05-02T10:00:00Z
---
Rows
"""


def lines(*values):
    return "\n".join(map(json.dumps, values))


def packed(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            text = content if isinstance(content, str | bytes) else json.dumps(content)
            archive.writestr(name, text)
    return buffer.getvalue()


def parquet(rows):
    buffer = io.BytesIO()
    pd.DataFrame(rows).to_parquet(buffer)
    return buffer.getvalue()


TEA = {"content": "Likes tea"}
AT = {"created_at": pd.Timestamp(DAY)}
SAID = TEA | AT

SHAPES = [
    # name, file, format, rows (of each the cells that are said), left out
    ("mem0 platform", {"count": 1, "next": None, "previous": None, "results": [MEM0]}, "mem0",
     [SAID | {"origin_id": "m1", "source": "chat", "tags": ("food", "a", "b"), "origin_user_id": "ada", "metadata": '{"a": 1}',
              "updated_at": pd.Timestamp(LATER)}], {}),
    ("mem0 get_all", {"results": [MEM0, None], "relations": [{}]}, "mem0", [SAID], {"not an object": 1, "relation": 1}),
    ("mem0 list", [MEM0 | {"memory": " ", "text": "Likes tea"}], "mem0", [SAID], {}),
    ("mem0 points", [POINT, {"id": "p2", "payload": {"data": "", "hash": "h"}}], "mem0", [SAID], {"without a text": 1}),
    ("mem0 migration", {"version": 1, "kind": "mem0_oss_qdrant_export", "record_count": 1, "records": [MEM0]}, "mem0",
     [SAID], {}),
    ("mem0 plugin", PLUGIN, "mem0-markdown",
     [SAID | {"tags": ("food", "tools"), "origin_confidence": "0.9", "type": "decision"}, {"content": "Rows"}], {}),
    ("openmemory zip", packed(**{"memories.json": OPENMEMORY, "memories.jsonl.gz": gzip.compress(lines(OPENMEMORY_LINE).encode())}),
     "openmemory", [SAID | {"tags": ("food",), "source": "cursor", "status": "paused"}], {"deleted": 1}),
    ("openmemory lines", gzip.compress(lines(OPENMEMORY_LINE, OPENMEMORY_LINE).encode()), "openmemory",
     [TEA | {"tags": ("food",), "source": "cursor"}] * 2, {}),
    ("letta 2", LETTA_2, "letta", [TEA | {"title": "human", "summary": "About Ada", "limit": "5000"}], {"message": 2}),
    ("letta passages", [PASSAGE, PASSAGE | {"is_deleted": True}], "letta", [SAID | {"tags": ("food",)}], {"deleted": 1}),
    ("chatgpt", [conversation(BIO)], "chatgpt",
     [{"content": "User likes tea.", "created_at": pd.Timestamp("2024-05-01T10:00:00.5Z"), "origin_id": "m1"}], {}),
    ("chatgpt zip", packed(**{"conversations-000.json": [conversation(LISTS[1], BIO)], "user.json": {"id": "u"}, "chat.html": "<p>",
                              "conversations-001.json": [conversation(LISTS[0], PROFILE)]}), "chatgpt",
     [{"content": "User likes tea."}, {"content": "Has a cat,\nTom"}, {"content": "I row", "title": "About the user"},
      {"content": "Be brief"}], {"older model_editable_context": 1, "in the list of memories, too": 1}),
    ("chatgpt memories", [{"content": "Likes tea", "enabled": True, "created_at": DAY}, {"content": "x", "enabled": False}],
     "chatgpt", [SAID], {"disabled": 1}),
    ("claude zip", packed(**{"memories.json": CLAUDE, "conversations.json": [{"uuid": "c", "chat_messages": []}]}), "claude",
     [{"content": "Ada rows."}, {"content": "A boat.", "origin_id": "p1"}], {}),
    ("pasted", PASTED, "pasted",
     [{"content": "Likes tea\nwith milk", "created_at": pd.Timestamp("2024-05-01T00:00Z"), "title": "Food"},
      {"content": "Hates soup: all of it", "date_saved": "May 2023"}, {"content": "Rows", "date_saved": "unknown"}],
     {"line without an entry": 1}),
    ("langgraph", LANGGRAPH, "langgraph",
     [SAID | {"origin_id": "k1", "namespace": '["m", "ada"]'}, {"content": "Rows", "kind": "Memory"}, {"content": '{"dish": "soup"}'}], {}),
    ("letta, encoded twice", json.dumps(json.dumps(LETTA_2)), "letta", [TEA | {"title": "human"}], {"message": 2}),
    ("graphiti", GRAPHITI, "graphiti", [AT | {"content": "Ada likes tea", "title": "LIKES", "invalid_at": LATER}],
     {"episode": 1, "entity": 2}),
    ("mcp lines", lines(*ENTITIES) + '\n{"type": "ent', "mcp-memory",
     [{"content": "likes tea", "title": "Ada", "tags": ("person",)}, {"content": "rows"}],
     {"relation": 1, "entity without observations": 1, "damaged line": 1}),
    ("mcp one line", lines(ENTITIES[0]), "mcp-memory", [{"content": "likes tea"}, {"content": "rows"}], {}),
    ("mcp-memory-service", SERVICE, "mcp-memory-service",
     [TEA | {"created_at": pd.Timestamp("2024-05-01T10:00:00.5Z"), "tags": ("food",), "source": "laptop", "kind": "note"}], {}),
    ("supermemory", SUPERMEMORY, "supermemory", [SAID | {"is_latest": "True", "version": "2"}], {"forgotten": 1}),
    ("pam", PAM, "pam", [SAID | {"confidence": 0.75, "source": "chatgpt", "summary": "Tea", "status": "superseded", "kind": "fact"}],
     {"retracted": 1, "relation": 1}),
    ("basic-memory note", NOTE, "markdown",
     [AT | {"content": "Likes tea #green", "tags": ("fact", "green", "drink", "hot"), "context": "since 2019", "title": "Tea"},
      {"content": "# Tea\n\nAda keeps it in a tin.\n\n- [x] buy more\n- [[Milk]]", "origin_importance": "7"}], {"relation": 1}),
    ("csv", "\ufeffid,Text,tags,importance,created\r\n7,Likes tea,\"a,b\",9,2024-05-01T10:00:00Z\r\n8,,,,\r\nx\r\n", "table",
     [SAID | {"origin_id": "7", "tags": ("a", "b"), "origin_importance": "9"}],
     {"without a text": 1, "row of another length": 1}),
    ("csv with semicolons", "text;date\n\"Likes; tea\";someday\n", "table", [{"content": "Likes; tea", "date": "someday"}], {}),
    ("json list", {"data": [{"fact": "Likes tea", "createdAt": DAY, "created_at": NOON}]}, "table",
     [SAID | {"origin_created_at": str(NOON)}], {}),
    ("json lines", lines({"content": "", "observation": "Likes tea", "who": "Ada"}, TEA), "table", [TEA | {"who": "Ada"}, TEA], {}),
    ("parquet", parquet([{"memory": "Likes tea", "at": 3, "created": pd.Timestamp(DAY)}]), "table", [SAID | {"at": "3"}], {}),
    ("json list of texts", ["Likes tea", {"memory_text": "Likes tea", "timestamp": DAY}, 3], "table",
     [{"content": "Likes tea"}, SAID], {"not an object": 1}),
    ("json lists by subject", {"facts": [{"text": "Likes tea", "ts": DAY}], "goals": [{"entry": "Row", "fact": "Rows"}],
                               "version": 2, "people": ["Ada"]}, "table",
     [SAID | {"kind": "facts"}, {"content": "Rows", "kind": "goals"}], {"not a list of memories": 1}),
    ("json list of summaries", {"memories": [{"summary": "Likes tea", "title": "Tea", "time": DAY}]}, "table",
     [SAID | {"title": "Tea"}], {}),
    ("nothing", [], "table", [], {}),
    ("mcp observations as objects", lines({"name": "Ada", "entityType": "person", "createdAt": DAY, "weight": 2, "observations": [
        {"text": "Likes tea", "timestamp": LATER, "version": "1"}, "Rows"]}), "mcp-memory",
     [TEA | {"entity": "Ada", "tags": ("person",), "created_at": pd.Timestamp(LATER), "version": "1", "weight": "2"},
      AT | {"content": "Rows", "place": "observation 2 in entry 1"}], {}),
    ("mcp with a type of its own", lines({"name": "Ada", "type": "person", "observations": [{"content": "Likes tea", "added_at": DAY}]}),
     "mcp-memory", [SAID | {"tags": ("person",), "entity": "Ada"}], {}),
    ("mcp with a loose text", lines(*ENTITIES, {"text": "Likes tea", "timestamp": DAY}), "mcp-memory",
     [{"content": "likes tea"}, {"content": "rows"}, SAID], {"relation": 1, "entity without observations": 1}),
    ("mem0 with a time of another name", [{"user_id": "j", "memory": "Likes tea", "timestamp": DAY, "score": 0.5}], "mem0",
     [SAID | {"origin_user_id": "j", "score": "0.5"}], {}),
    ("open webui", [{"id": "1", "user_id": "u", "content": "Likes tea", "created_at": NOON, "updated_at": NOON * 1000}], "table",
     [SAID | {"origin_user_id": "u", "updated_at": pd.Timestamp(DAY)}], {}),
    ("a second list", {"memories": [TEA], "notes": [TEA, TEA]}, "table", [TEA | {"kind": "memories"}, *[TEA | {"kind": "notes"}] * 2], {}),
    ("a profile", {"name": "Ada", "facts": ["Likes tea"], "preferences": ["Green"], "files": ["a.txt"], "chat": [
        {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]}, "table",
     [TEA | {"kind": "facts"}, {"content": "Green", "kind": "preferences"}],
     {"not a list of memories": 1, "message of a conversation": 2}),
    ("letta with passages", LETTA_2 | {"archival_memory": [{"text": "Rows", "created_at": DAY}]}, "letta",
     [TEA, AT | {"content": "Rows"}], {"message": 2}),
    ("another list in a known format", GRAPHITI | {"summaries": [TEA, TEA]}, "graphiti", [{"content": "Ada likes tea"}],
     {"episode": 1, "entity": 2, "entry of summaries": 2}),
    ("lines as ChatGPT's page has them", "User likes tea\nUser's cat is Tom\n", "pasted",
     [{"content": "User likes tea"}, {"content": "User's cat is Tom"}], {}),
    ("lines of ChatGPT's page about a name", "Ada likes tea.\nAda's cat is Tom.\n\nPrefers short answers\nAda also rows on Sundays.\n", "pasted",
     [{"content": "Ada likes tea."}, {"content": "Ada's cat is Tom."}, {"content": "Prefers short answers"}, {"content": "Ada also rows on Sundays."}], {}),
    ("lines of ChatGPT's page without a subject", "Is learning Spanish\nHas a cat\nUser lives in Lyon\nGoogle Maps, not Apple\n", "pasted",
     [{"content": "Is learning Spanish"}, {"content": "Has a cat"}, {"content": "User lives in Lyon"}, {"content": "Google Maps, not Apple"}], {}),
    ("lines of ChatGPT's page in other languages", "用户喜欢茶。\n用户住在里昂。\nDer Nutzer rudert.\n", "pasted",
     [{"content": "用户喜欢茶。"}, {"content": "用户住在里昂。"}, {"content": "Der Nutzer rudert."}], {}),
    ("dates without brackets", "2024-05-01 - Likes tea\n**[2024-05-02]** - Rows\n**2024-05-03**: Swims\n", "pasted",
     [{"content": "Likes tea", "created_at": pd.Timestamp("2024-05-01T00:00Z")}, {"content": "Rows"},
      {"content": "Swims", "created_at": pd.Timestamp("2024-05-03T00:00Z")}], {}),
    ("bullets within bullets", "- Food\n  - Likes tea\n- Rows\n", "pasted", [{"content": "Food\n- Likes tea"}, {"content": "Rows"}], {}),
    ("hermes", "Likes tea\n§\nRows\non Sunday\n", "sections", [TEA | {"place": "section 1"}, {"content": "Rows\non Sunday"}], {}),
    ("claude-mem", CLAUDE_MEM, "claude-mem",
     [SAID | {"title": "Tea", "summary": "Hot", "tags": ("gotcha", "pattern"), "kind": "decision", "origin_id": "1", "project": "boat"},
      AT | {"content": "Swims"}, AT | {"content": "Rows", "kind": "summary", "origin_id": "S1", "request": "Row"}],
     {"without a text": 1, "session": 1, "prompt of a person": 2}),
    ("claude-mem, a list that was cut out", [OBSERVATION | {"concepts": "gotcha"}], "claude-mem", [SAID | {"tags": ("gotcha",)}], {}),
    ("hindsight", packed(**BANK), "hindsight",
     [SAID | {"tags": ("food",), "kind": "world", "document_id": "chat", "entities": '["Ada"]', "file": "documents/000000.json"},
      {"content": "Rows", "kind": "experience", "created_at": pd.Timestamp(LATER)},
      {"content": "Drinks tea daily", "kind": "observation", "proof_count": "2"}], {"piece of a document": 1}),
    ("a profile of keys and values", USER_PROFILE, "profile",
     [{"content": "Ada", "entity": "name"}, {"content": "Green tea", "entity": "preferences.drink", "title": "preferences.drink"},
      {"content": "Rowing", "entity": "interests"}, AT | {"content": "Tea"}],
     {"number or time of a profile": 3, "not a list of memories": 1, "message of a conversation": 2}),
    ("a profile of single values", {"name": "Ada", "city": "Lyon", "hobby": "rowing", "age": 36}, "profile",
     [{"content": "Ada"}, {"content": "Lyon"}, {"content": "rowing"}], {"number or time of a profile": 1}),
    ("entries under names of their own", {"tea": TEA | {"created_at": DAY}, "boat": {"value": "Rows"}}, "profile",
     [SAID | {"entity": "tea"}, {"content": "Rows", "entity": "boat"}], {}),
    ("letta, blocks and passages of one agent", {"id": "a", "memory_blocks": [BLOCK], "archival_memory": ["Rows", {"text": "Swims", "id": "p"}],
     "messages": [{}]}, "letta", [TEA, {"content": "Rows"}, {"content": "Swims", "origin_id": "p"}], {"message": 1}),
    ("letta, passages of each agent", {"agents": [{"core_memory": {"human": "Likes tea"}, "archival_memory": [{"text": "Rows"}]}], "blocks": []},
     "letta", [TEA | {"title": "human"}, {"content": "Rows"}], {}),
    ("own download", {"user_id": "u", "email": "a@b.c", "exported_at": DAY, "tags": [{"name": "food"}], "memories": [
        {"id": "m1", "title": None, "summary": "Tea", "content": "Likes tea", "tags": ["food"], "importance": 4.5, "confidence": 0.5,
         "source": "chat", "created_at": DAY, "updated_at": DAY}]}, "download",
     [SAID | {"origin_id": "m1", "summary": "Tea", "tags": ("food",), "importance": 4.5, "confidence": 0.5, "source": "chat"}],
     {"definition of a tag": 1}),
]  # fmt: skip


def file_of(content):
    if isinstance(content, bytes):
        return content
    return (content if isinstance(content, str) else json.dumps(content)).encode()


def read(given, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mf.read_memories(given, **options)


@pytest.mark.parametrize(
    ("name", "content", "form", "rows", "left_out"), SHAPES, ids=[shape[0] for shape in SHAPES]
)
def test_each_format_is_known_by_its_shape(tmp_path, name, content, form, rows, left_out):
    path = tmp_path / "anything"
    path.write_bytes(file_of(content))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        frame = mf.read_memories(path)
    assert [
        {key: row[key] for key in cells} for row, cells in zip(frame.to_dict("records"), rows, strict=True)
    ] == rows
    report = frame.attrs["memframe_read"]
    assert (report["format"], report["rows"], report["left_out"]) == (form, len(rows), left_out)
    assert len(said) == bool(left_out or report["tags_cut"] or FORMATS[form].note)
    assert all(report["summary"] in str(each.message) and each.filename == __file__ for each in said)
    assert list(frame.columns[: len(MEMORY_KINDS)]) == list(MEMORY_KINDS)
    assert frame["id"].isna().all()
    empty = memories_of([])
    assert (frame.dtypes[list(MEMORY_KINDS)] == empty.dtypes).all()
    assert all(type(tags) is tuple for tags in frame["tags"])
    pd.testing.assert_frame_equal(read(str(path), format=form), frame)
    if not isinstance(content, bytes) and len(file_of(content)) > 2:
        pd.testing.assert_frame_equal(read(file_of(content).decode("utf-8-sig")), frame)


def test_an_observation_of_facts_alone_is_their_lines():
    frame = read(
        json.dumps([OBSERVATION | {"narrative": None}, OBSERVATION | {"narrative": "", "facts": "in a tin"}])
    )
    assert frame["content"].tolist() == ["in a tin\ngreen", "in a tin"]


def test_every_format_has_its_shape_and_its_row_in_the_documents():
    assert {shape[2] for shape in SHAPES} == FORMATS.keys()
    for page in ("howto/bring-memories-in.md", "reference/formats.md"):
        text = (Path(__file__).parent.parent / "docs" / page).read_text()
        assert [name for name in FORMATS if f"\n| `{name}` |" not in text] == []


def test_a_folder_of_notes_is_read_without_what_is_hidden_or_elsewhere(tmp_path):
    vault, elsewhere = tmp_path / "vault", tmp_path / "elsewhere"
    for folder in (vault / "food", vault / ".obsidian", elsewhere):
        folder.mkdir(parents=True)
    (vault / "food" / "tea.md").write_text(NOTE)
    (vault / "rows.md").write_bytes(b"Rows on [[Sunday]].\r\n")
    (vault / "broken.md").write_text("---\na: [\n---\nText")
    (vault / "index.md").write_text("# Index")
    (vault / ".obsidian" / "app.md").write_text("hidden")
    (vault / "picture.png").write_bytes(b"\x89PNG")
    (elsewhere / "secret.md").write_text("not ours")
    (vault / "link.md").symlink_to(elsewhere / "secret.md")
    (vault / "links").symlink_to(elsewhere)
    frame = read(vault)
    assert frame["content"].tolist()[:2] == ["Rows on [[Sunday]].", "Likes tea #green"]
    assert frame["title"].tolist() == ["rows", "Tea", "Tea"]
    assert frame["origin_id"].tolist() == ["rows.md", "food/tea.md", "food/tea.md"]
    report = frame.attrs["memframe_read"]
    assert report["left_out"] == {
        "relation": 1, "note with damaged frontmatter": 1, "index or log of a folder": 1
    }  # fmt: skip
    assert report["unread_files"] == 3


@pytest.mark.parametrize("text", ["[[Sunday]] rows", "{{date}} tea", '"[Tea](x)" is good', "[", '"{'])
def test_a_note_that_begins_like_json_is_a_note(tmp_path, text):
    (tmp_path / "a.md").write_text(text + "\n")
    (tmp_path / "b.md").write_text("Likes tea")
    assert read(tmp_path)["content"].tolist() == [text, "Likes tea"]


def test_our_own_archives_come_back_as_they_are(tmp_path):
    memories = memories_of([{"id": "m1", "user_id": "u1", "content": "Likes tea", "tags": ("tea",)}])
    for name in ("a.parquet", "a.csv", "a.jsonl", "folder"):
        mf.export_memories(memories, tmp_path / name)
        frame = mf.read_memories(tmp_path / name)
        pd.testing.assert_frame_equal(frame, memories)
        assert frame.attrs["memframe_read"]["format"] == "memframe"


def test_times_without_a_zone_need_one(tmp_path):
    path = tmp_path / "agent.af"
    path.write_text(json.dumps(LETTA_1))
    with pytest.raises(
        mf.FrameError, match=r"created_at in entry 1 of .*agent.af is a time without a zone.*zone="
    ):
        mf.read_memories(path)
    frame = read(path, zone="Europe/Paris")
    assert frame["created_at"][0] == pd.Timestamp("2024-05-01T10:00Z")
    assert frame.attrs["memframe_read"]["times"]["zone"] == "Europe/Paris"
    assert "no archival passages" in frame.attrs["memframe_read"]["summary"]
    assert read("[2024-05-01] - x\n", zone="Europe/Paris")["created_at"][0] == pd.Timestamp(
        "2024-04-30T22:00Z"
    )


def test_tags_are_cut_to_what_a_service_takes_and_counted():
    row = MEM0 | {"categories": ["a", " a ", "b, c", "x" * 300, "", None, {"d": 1}, *map(str, range(200))]}
    frame = read(json.dumps([row]))
    tags = frame["tags"][0]
    assert tags[:4] == ("a", "b", "c", "x" * 200)
    assert len(tags) == 100
    assert frame.attrs["memframe_read"]["tags_cut"] == 2 + 200 - 95
    assert "107 tags" in frame.attrs["memframe_read"]["summary"]


def test_odd_characters_are_kept_and_lone_surrogates_marked():
    content = "a\x00b\x1b[2J\u202e=1+1\ud800"
    frame = read(json.dumps([MEM0 | {"memory": content, "metadata": {"score": float("nan")}}]))
    assert frame["content"][0] == "a\x00b\x1b[2J\u202e=1+1\ufffd"
    assert "lone surrogate" in frame["content_error"][0]
    assert read("[2024-05-01] - a\ud800b\n")["content"][0] == "a\ufffdb"
    assert read('[{"content": "Likes tea", "\\ud800": "x"}]')["\ufffd"][0] == "x"


BOMB = packed(**{"memories.json": b" " * 3_000_000})
MANY = packed(**{f"{n}.json": b"[]" for n in range(30)})
DEEP = "[" * 100_000
BAD = [
    ("truncated", json.dumps({"results": [MEM0, MEM0]}, indent=1)[:-40], r"given is not valid JSON at line \d\d, column"),
    ("lines of a list", "[\n" + lines(MEM0) + ",\n" + lines(MEM0), "is not valid JSON at line 3"),
    ("deep", DEEP, "nested too deeply"),
    ("digits", '[{"memory": ' + "9" * 5_000 + "}]", "too many digits"),
    ("utf-16", "content\nLikes tea\n".encode("utf-16"), "UTF-16: save it as UTF-8"),
    ("latin-1", "content\nLikes café\n".encode("latin-1"), "not UTF-8 text at byte 17"),
    ("count", {"count": 3, "next": "page2", "previous": None, "results": [MEM0]}, "states 3 entries and holds 1.*one page"),
    ("record_count", {"kind": "mem0_oss", "record_count": 2, "records": [MEM0]}, "states 2 entries and holds 1"),
    ("total_memories", SERVICE | {"export_metadata": {"total_memories": 9}}, "states 9 entries and holds 1"),
    ("numbers of two kinds", CLAUDE_MEM | {"totalSummaries": 9}, "states 12 entries and holds 4"),
    ("one number of two of text", CLAUDE_MEM | {"totalSummaries": "x"}, "an invalid number of entries"),
    ("a bank without its documents", packed(**{"manifest.json": BANK["manifest.json"]}), "states 3 entries and holds 0"),
    ("an object without keys", {}, "of no known format .*needs lines such as"),
    ("a package", {"name": "tea", "version": "1.0", "description": "Of tea", "language": "en", "repository": {"url": "x"}}, "of no known format: its keys are name, version"),
    ("a profile of numbers", {"preferences": {"a": 1, "since": "2019-05-01"}}, "its keys are preferences"),
    ("count of text", SERVICE | {"export_metadata": {"total_memories": "x"}}, "an invalid number of entries"),
    ("not a time", [MEM0 | {"created_at": "yesterday"}], "created_at in entry 1 of .* is not a time in ISO 8601"),
    ("out of range", [MEM0 | {"created_at": "0001-01-01T00:00:00+14:00"}], "out of the range of times"),
    ("seconds", SERVICE | {"memories": [SERVICE["memories"][0] | {"created_at": 1e300}]}, "is not a time"),
    ("shaped by a model", {"name": "Ada", "likes": {"drink": "tea"}}, "language model's? |answer of a language model"),
    ("any graph", {"nodes": [{"id": 1, "summary": "x"}], "edges": [{"source": 1, "target": 2}]}, "its keys are nodes, edges"),
    ("objects without a text", [{"sku": 1, "price": 2}], "its keys are sku, price.*rename the key of their text to `content`"),
    ("documents", {"memories": [{"id": "d", "title": "x", "content": "y"}], "pagination": {}}, "list of documents"),
    ("gemini", [{"header": "Gemini Apps", "title": "Asked", "time": DAY}], "record of activity"),
    ("claude without memories", packed(**{"conversations.json": [{"uuid": "c", "chat_messages": []}]}), "but no memories.json"),
    ("a conversation", [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello!"}], "is a conversation"),
    ("lines of a conversation", lines({"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello!"}), "format='table'"),
    ("conversations of an object", {"conversations": [{"id": 1, "messages": [{"role": "user", "content": "hi"}, {"role": "ai", "content": "x"}]}]},
     "is a conversation"),
    ("conversations", [{"id": 1, "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "x"}]}], "is a conversation"),
    ("a picture", b"\x89PNG\r\n\x1a\n\0\0", "is a picture, not a list of memories"),
    ("a database", b"SQLite format 3\0" + bytes(90), "is a database of SQLite"),
    ("bytes", bytes(range(256)), "is not text"),
    ("csv without texts", "name,age\nAda,36\n", r"no column that is known to hold texts \(name, age\): rename the one"),
    ("prose", "Once upon a time\nthere was tea.\n", "of no known format"),
    ("a manual", "User guide\nClick the button.\nThe light is green.\n", "of no known format"),
    ("a story", "This is tea.\nThis was water.\nIt boils slowly, as it must.\n", "of no known format"),
    ("empty", "", "is empty"),
    ("workbook", packed(**{"xl/workbook.xml": "<workbook/>"}), "an Excel workbook: save its sheet as CSV"),
    ("mixed", [MEM0, SUPERMEMORY["memoryEntries"][0]], "fits several formats, mem0 and supermemory: choose one with format="),
    ("two exports", packed(**{"a.json": [MEM0], "b.json": CLAUDE}), "fits several formats, mem0 and claude"),
    ("several columns", "content,content\na,b\n", "several columns with the same name"),
    ("open quote", 'content\n"Likes tea\n', "is not CSV at line"),
    ("many columns", [{"content": "x"} | {f"c{n}": "x" for n in range(300)}], "more than 200 columns"),
    ("damaged zip", packed(**{"memories.json": CLAUDE})[:-30], "is a damaged archive"),
    ("damaged gzip", gzip.compress(b"[]" * 99)[:-9], "gzip file that is too large, or was cut off"),
    ("damaged parquet", parquet([TEA])[:-9], "is a damaged Parquet file"),
    ("bomb", BOMB, "grows more than 200 times"),
    ("bomb in gzip", gzip.compress(b" " * 3_000_000), "grows more than 200 times"),
    ("archive in an archive", packed(**{"inner.zip": packed(**{"memories.json": CLAUDE})}), "holds no file that can be read"),
    ("references", "---\na: &a [x]\nb: *a\n---\ntext", "frontmatter of .* is not YAML"),
    ("a list as frontmatter", "---\n- a\n---\ntext", "not a list of keys and values"),
    ("python in YAML", "---\na: !!python/object/apply:os.system [ls]\nb: ]\n---\n", "is not YAML"),
    ("deep frontmatter", f"---\na: {'[' * 400_000}\n---\ntext", "is not YAML"),
    ("long frontmatter", f"---\na: {'x' * 1_100_000}\n---\ntext", "is not YAML"),
]  # fmt: skip


def test_an_empty_folder_and_a_damaged_parquet_file_are_refused_for_what_they_are(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.parquet").write_bytes(b"\xc3\x28\x00")
    for name, words in (
        ("empty", "holds no file that can be read"),
        ("a.parquet", "is not Parquet: it was cut off"),
    ):
        with pytest.raises(mf.FrameError, match=words):
            mf.read_memories(tmp_path / name)


@pytest.mark.parametrize(("name", "content", "words"), BAD, ids=[case[0] for case in BAD])
def test_bad_input_is_refused_with_its_place(tmp_path, name, content, words):
    path = tmp_path / "given"
    path.write_bytes(file_of(content))
    with pytest.raises(mf.FrameError, match=words):
        mf.read_memories(path)


@pytest.mark.asvs("5.2.1")
def test_sizes_are_bounded(tmp_path, monkeypatch):
    (tmp_path / "a.zip").write_bytes(MANY)
    (tmp_path / "b.json").write_text(json.dumps([MEM0]))
    monkeypatch.setattr(bounds, "MAX_FILES", 10)
    monkeypatch.setattr(bounds, "MAX_BYTES", 100)
    for path in (tmp_path / "a.zip", tmp_path / "b.json", tmp_path):
        with pytest.raises(mf.FrameError, match="too large"):
            mf.read_memories(path)


def test_names_that_lead_out_of_an_archive_are_names(tmp_path):
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a.zip"
    path.write_bytes(packed(**{"../../evil.md": "Likes tea", "/etc/passwd.md": "Rows", "C:\\x.md": "Swims"}))
    before = sorted(tmp_path.rglob("*"))
    assert read(path)["content"].tolist() == ["Likes tea", "Rows", "Swims"]
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("given", "options", "error", "words"),
    [
        ({"a": 1}, {}, mf.FrameError, "is a dict: pass a path"),
        ("a\0b", {}, mf.FrameError, "no path has a NUL in it"),
        ("Likes tea. " * 40, {}, mf.FrameError, r"no file can have \(File name too long\): correct it\. To pass a text"),
        ("x" * 300, {"format": "memframe"}, mf.FrameError, r"no file can have \(File name too long\)"),
        (Path("[1].json"), {}, mf.FrameError, "There is no file at"),
        ("[]", {"format": "mem1"}, mf.ConfigError, "format='mem1' is unknown: choose 'auto', 'memframe', 'mem0'"),
        ("[]", {"format": "letta"}, mf.FrameError, "not of the format 'letta', which is an agent file"),
        ("[]", {"zone": "Mars/Base"}, mf.ConfigError, "zone='Mars/Base': give a name such as"),
        ("[]", {"zone": "../etc"}, mf.ConfigError, "zone="),
    ],
)  # fmt: skip
def test_arguments_are_checked(given, options, error, words):
    with pytest.raises(error, match=words):
        mf.read_memories(given, **options)


def test_a_format_that_is_named_decides(tmp_path):
    mixed = json.dumps([MEM0, SUPERMEMORY["memoryEntries"][0]])
    assert read(mixed, format="supermemory")["origin_id"].tolist() == ["m1", "s1"]
    assert read("Once upon a time\nthere was tea.\n", format="markdown")["content"][0].startswith("Once")
    assert read("~/nowhere\n- tea\n", format="pasted")["content"].tolist() == ["tea"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes are of POSIX")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.json")
    os.mkfifo(tmp_path / "b.md")
    with pytest.raises(mf.FrameError, match="There is no file"):
        mf.read_memories(tmp_path / "a.json")
    (tmp_path / "c.md").write_text("Likes tea")
    assert len(mf.read_memories(tmp_path)) == 1


def test_a_cell_of_a_megabyte_is_read_and_the_limit_of_csv_is_as_it_was(tmp_path):
    limit = csv.field_size_limit()
    frame = mf.read_memories(f"content\n{'x' * 1_000_000}\n")
    assert (len(frame["content"][0]), csv.field_size_limit()) == (1_000_000, limit)


def test_what_a_reader_does_not_know_is_kept_beside():
    frame = read(
        json.dumps([MEM0 | {"weight": 3, "created_at": None, "date": "May", "embedding": [0.5] * 100}])
    )
    assert frame["weight"].tolist() == ["3"]
    assert frame["date"].tolist() == ["May"]
    assert "embedding" not in frame
    report = frame.attrs["memframe_read"]
    assert report["not_kept"] == {"embedding": 1}
    assert (report["times"]["missing"], report["times"]["unreadable"]) == (1, 1)
    assert "None of them has a date." in report["summary"]
    assert "Kept as text, as they are no times such as 2026-02-01: 1 value." in report["summary"]


@pytest.mark.parametrize(("factor", "unit"), [(1, "seconds"), (10**3, "milliseconds"), (10**6, "microseconds"), (10**9, "nanoseconds")])  # fmt: skip
def test_numbers_are_read_as_times_by_their_size(factor, unit):
    for value in (NOON * factor, str(NOON * factor), float(NOON * factor)):
        frame = read(json.dumps([{"content": "Likes tea", "created_at": value}]))
        assert frame["created_at"].tolist() == [pd.Timestamp(DAY)]
        assert frame.attrs["memframe_read"]["times"]["numbers"] == {unit: 1}
    assert read(f"content,created\nLikes tea,{NOON * factor}\n")["created_at"].tolist() == [pd.Timestamp(DAY)]


@pytest.mark.parametrize("value", [0, 7, 2024, -5, True, 1e30, "12345678901234567890123"])
def test_other_numbers_are_no_times_and_stay(value):
    frame = read(json.dumps([{"content": "Likes tea", "created_at": value}]))
    assert frame["created_at"].isna().all()
    assert frame["origin_created_at"].tolist() == [str(value)]


def test_a_score_is_taken_over_where_its_scale_shows():
    def scores(*values):
        frame = read(json.dumps([{"content": f"x{value}", "importance": value} for value in values]))
        assert frame["origin_importance"].tolist() == [str(value) for value in values]
        return frame["importance"].tolist()

    assert scores(0.2, 0.9) == [0.2, 0.9]
    for unknown in ((0, 1), (1, 5), (0.5, 7), (0.5, "high")):
        assert pd.isna(scores(*unknown)).all()


def test_each_row_knows_its_file_and_place(tmp_path):
    path = tmp_path / "memory.jsonl"
    path.write_text(lines(*ENTITIES))
    frame = read(path)
    assert frame["entity"].tolist() == ["Ada", "Ada"]
    assert frame["place"].tolist() == ["observation 1 in line 1", "observation 2 in line 1"]
    assert frame.attrs["memframe_read"]["file"].endswith("memory.jsonl")
    (tmp_path / "more.jsonl").write_text(lines(*ENTITIES))
    assert read(tmp_path)["place"][3] == "observation 2 in line 1 of more.jsonl"
    assert read(NOTE)["entity"].tolist()[0] == "Tea"


def test_a_fact_is_a_copy_only_of_a_fact_of_the_same_entity(tmp_path):
    said_of = {
        "Ada": ["Works at Acme", "Lives in Lyon"],
        "Bob": ["Works at Acme", "Lives in Lyon", "Works at Acme"],
    }
    said_of |= {f"Person {number}": ["Works at Acme"] for number in range(9)}
    entities = [
        {"name": name, "entityType": "person", "observations": said} for name, said in said_of.items()
    ]
    path = tmp_path / "memory.jsonl"
    path.write_text(lines(*entities))
    audit = mf.audit_memories(read(path))
    found = audit.findings[audit.findings["related_id"].notna()]
    assert {*found["id"], *found["related_id"]} == {"row 2", "row 4"}
    page = tmp_path / "audit.html"
    audit.to_html(page)
    assert "Bob: Works at Acme (observation 3 in line 2 of memory.jsonl)" in page.read_text()


OUTDATED = [
    {"invalid_at": DAY}, {"validUntil": "2024-05-01"}, {"status": "superseded"}, {"state": "Paused"}, {"isLatest": False},
    {"is_archived": True}, {"replaced_by": "m2"}, {"deleted_at": NOON}, {"is_active": "no"}, {"expiration_date": "2024-05-01"},
]  # fmt: skip
CURRENT = [
    {"invalid_at": None}, {"valid_until": "2999-01-01"}, {"status": "active"}, {"isLatest": True}, {"archived": False},
    {"replaced_by": ""}, {"status": "married"}, {"superseded_by": "null"}, {"expires_at": 0},
]  # fmt: skip


@pytest.mark.parametrize("cells", OUTDATED + CURRENT, ids=str)
def test_what_its_source_calls_outdated_is_marked_and_proposed_for_review(cells):
    frame = read(json.dumps([{"content": "Lives in Lyon", **cells}]))
    is_outdated = cells in OUTDATED
    assert frame["outdated"].notna().tolist() == [is_outdated]
    assert frame.attrs["memframe_read"]["outdated"] == is_outdated
    for memories in (frame, frame.drop(columns="outdated")):
        found = mf.audit_memories(memories, checks=["stale"]).findings
        assert found[found["kind"] == "declared"]["action"].tolist() == ["review"] * is_outdated


def test_files_of_another_format_in_a_folder_are_named(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps([TEA]))
    (tmp_path / "memory.jsonl").write_text(lines(*ENTITIES))
    with pytest.warns(UserWarning, match=r"another format: a\.json\. Read each separately"):
        frame = mf.read_memories(tmp_path)
    assert frame.attrs["memframe_read"]["unread_files"] == 1


def test_texts_beside_notes_are_notes(tmp_path):
    (tmp_path / "a.md").write_text("Likes tea")
    (tmp_path / "b.txt").write_text("Rows on Sunday")
    assert read(tmp_path)["content"].tolist() == ["Likes tea", "Rows on Sunday"]
    (tmp_path / "a.md").unlink()
    (tmp_path / "c.txt").write_text("- Swims\n")
    assert read(tmp_path)["content"].tolist() == ["Rows on Sunday", "Swims"]


def test_a_folder_of_texts_is_one_of_notes(tmp_path):
    (tmp_path / "preferences.txt").write_text("She keeps her tea\nin a tin.\n")
    frame = read(tmp_path)
    assert frame[["title", "content"]].values.tolist() == [["preferences", "She keeps her tea\nin a tin."]]
    (tmp_path / "boats").mkdir()
    (tmp_path / "boats" / "plans.txt").write_text("- Row on Sunday\n- Paint the oars\n")
    frame = read(tmp_path)
    assert sorted(frame["content"]) == ["Paint the oars", "Row on Sunday", "She keeps her tea\nin a tin."]
    assert {*frame["file"]} == {"boats/plans.txt", "preferences.txt"}


def test_a_single_section_is_read_beside_the_other_file_of_hermes(tmp_path):
    (tmp_path / "memories").mkdir()
    (tmp_path / "memories" / "MEMORY.md").write_text("Likes tea\n§\nRows\n")
    (tmp_path / "memories" / "USER.md").write_text("- Is Ada\n- Has a cat")
    (tmp_path / "USER.md").write_text("Of another program")
    frame = read(tmp_path)
    assert frame["content"].tolist() == ["Likes tea", "Rows", "- Is Ada\n- Has a cat"]
    assert "another format: USER.md. Read each separately" in frame.attrs["memframe_read"]["summary"]


def test_an_empty_list_has_a_whole_report(tmp_path):
    (tmp_path / "a.json").write_text("[]")
    assert read(tmp_path / "a.json").attrs["memframe_read"]["times"]["missing"] == 0


# Whatever comes: an error of ours, or a frame whose counts balance

JSONS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
VALUES = [shape for shape in SHAPES if isinstance(shape[1], list | dict)]


def check(given):
    try:
        frame = read(given)
    except (mf.FrameError, mf.ConfigError):
        return None
    report = frame.attrs["memframe_read"]
    assert len(frame) == report["rows"]
    assert list(frame.columns[: len(MEMORY_KINDS)]) == list(MEMORY_KINDS)
    return report


@pytest.mark.parametrize(
    "content", [file_of(shape[1]) for shape in SHAPES], ids=[shape[0] for shape in SHAPES]
)
@given(data=st.data())
@FEW_EXAMPLES
def test_damaged_files_raise_no_other_error(tmp_path, content, data):
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 40)))
    junk = data.draw(
        st.binary(max_size=8)
        | st.sampled_from([b"\xff", b"\x00", b'"', b"}", b"\n---\n", b"\\ud800", b"9" * 30])
    )
    changed = data.draw(
        st.sampled_from(
            [content[:start], content[:start] + junk + content[end:], content[:start] + content[start:] * 2]
        )
    )
    path = tmp_path / "given"
    path.write_bytes(changed)
    check(path)


def places_of(value, place=()):
    yield place
    for key in range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ():
        yield from places_of(value[key], (*place, key))


@pytest.mark.parametrize("shape", VALUES, ids=[shape[0] for shape in VALUES])
@given(data=st.data())
@FEW_EXAMPLES
def test_values_of_other_types_are_read_left_out_or_refused(shape, data):
    value = json.loads(json.dumps(shape[1]))
    *parents, last = data.draw(st.sampled_from([place for place in places_of(value) if place] or [(None,)]))
    holder = value
    for key in parents:
        holder = holder[key]
    if last is not None:
        holder[last] = data.draw(JSONS)
    report = check(json.dumps(value))
    key = FORMATS[shape[2]].lists.split() if isinstance(value, dict) else []
    entries = next((value[name] for name in key if isinstance(value.get(name), list)), value)
    if report and report["format"] == shape[2] and isinstance(entries, list) and shape[2] != "chatgpt":
        assert report["rows"] + sum(report["left_out"].values()) >= len(entries)


def test_a_memory_file_of_links_alone_is_an_index(tmp_path):
    (tmp_path / "tea.md").write_text("Likes tea")
    (tmp_path / "boat.md").write_text("Rows on the lake")
    index = tmp_path / "MEMORY.md"
    index.write_bytes(b"# Memory\r\n\r\n- [Tea](tea.md) - what she drinks\r\n- [Boat](boat.md)\r\n")
    with pytest.warns(UserWarning, match="index or log of a folder"):
        frame = mf.read_memories(tmp_path)
    assert sorted(frame["content"]) == ["Likes tea", "Rows on the lake"]
    index.write_text("- [Tea](tea.md)\n- Has a cat\n")
    with pytest.warns(UserWarning, match=r"link to a note \(1, first at line 1 of MEMORY.md\)"):
        frame = mf.read_memories(tmp_path)
    assert sorted(frame["content"]) == ["Has a cat", "Likes tea", "Rows on the lake"]
