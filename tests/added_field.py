"""Use a field that the recipe of CONTRIBUTING added: `test_fields` runs this with a copy of memframe that has it."""

import re
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import requests

import memframe as mf
from memframe.archive.formats import HEADER
from memframe.service.person_pages import export_json, export_markdown

former, folder = map(Path, sys.argv[1:])
TEXT = "Ada likes green tea in Graz."
SECRET = "My wifi password is Tr0ub4dor&3x."
ROWS = {"content": [TEXT, TEXT, TEXT, "Ben rows."], "language": ["de", "fr", None, SECRET]}

with mf.service.run_local() as local, mf.connect(local.base_url, api_key=local.api_key) as client:
    user_id = local.add_user("ada@example.org", "a long password")
    request = client.create_access_request(local.memory_key(user_id), "a test")
    local.decide(request.id, "approved")
    access = mf.open_access(client, request.id)
    mf.create_memories(access, pd.DataFrame(ROWS)).raise_for_failures()

    # a cleanup keeps memories that differ in it, and redacts it
    plan = mf.plan_cleanup(access, mf.audit_memories(mf.load_memories(access)), max_share=1)
    mf.apply_plan(access, plan, confirm=1).raise_for_failures()
    memories = mf.load_memories(access)
    left = sorted(memories["language"].tolist(), key=str)  # four workers create them in any order
    assert left == ["My wifi password is [redacted: password].", "de", "fr"], left

    # a delete is undone whole, at the same time
    gone = mf.apply_plan(access, mf.plan_deletes(access, memories[:1]), confirm=1)
    mf.apply_plan(access, mf.plan_undo(access, gone)).raise_for_failures()
    again = mf.load_memories(access).set_index("id").loc[memories["id"]].reset_index()
    pd.testing.assert_frame_equal(again[memories.columns], memories)

    # archives have it, and seal it
    for name in ("a.parquet", "a.jsonl", "a.csv", "a.md", "folder"):
        mf.export_memories(memories, folder / name)
        pd.testing.assert_frame_equal(mf.load_archive(folder / name), memories)
    mf.export_memories(access, folder / "sealed", sealed=True)
    assert set(mf.load_archive(folder / "sealed", key=access)["language"]) == set(memories["language"])
    mf.export_memories(access, folder / "sealed.parquet", sealed=True)
    assert not set(pd.read_parquet(folder / "sealed.parquet")["language"]) & set(memories["language"])
    (folder / "key").write_text(access.credentials.encryption_key.reveal())
    mf.export_memories(access, folder / "plain.parquet")
    mf.export_memories(memories, folder / "pam.json", format="pam")
    assert mf.read_memories(folder / "pam.json")["language"].tolist() == memories["language"].tolist()

    # what was exported before has none, and a restore of it clears none
    assert mf.load_archive(former / "memories.parquet")["language"].isna().all()
    before = folder / "before.parquet"
    mf.export_memories(access, before)
    table = pq.read_table(before).drop_columns("language")
    header = re.sub(rb'"columns":\d+', b'"columns":1', table.schema.metadata[HEADER])
    pq.write_table(table.replace_schema_metadata({HEADER: header}), before)
    assert not mf.plan_restore(access, before)
    assert set(mf.refresh_archive(access, before).changed) == set(memories["id"])
    assert set(mf.load_archive(before)["language"]) == set(memories["language"])

    # files of other systems are read
    foreign = folder / "foreign.json"
    foreign.write_text('[{"content": "Likes tea", "language": "de"}]')
    assert mf.read_memories(foreign)["language"].tolist() == ["de"]

    # the person sees it, and the document says that it may be null
    deployment = local._deployment
    (user,) = deployment.store.accounts.users()
    assert b'"language":"de"' in b"".join(export_json(deployment, user))
    assert b"- Language: de" in b"".join(export_markdown(deployment, user))
    document = requests.get(f"{local.auth_url}/schema/openapi.json", timeout=5).json()
    for name in ("MemoryBlob", "MemoryPatch"):
        assert {"type": "null"} in document["components"]["schemas"][name]["properties"]["language"]["anyOf"]
