"""Write files as this version of memframe writes them, for `test_former` of later versions: see README.md.

python tests/former/make.py tests/former/NAME
"""

import json
import os
import sqlite3
import sys
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp

target = Path(sys.argv[1]).resolve()
os.environ["XDG_STATE_HOME"] = mkdtemp()
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"

import pandas as pd  # noqa: E402 - the state folder is chosen before

import memframe as mf  # noqa: E402
from memframe.keystore import KEY_FILE as DATA_KEY  # noqa: E402
from memframe.keystore import state_folder  # noqa: E402
from memframe.secret import Secret  # noqa: E402
from memframe.service.deployment import DATABASE_FILE  # noqa: E402
from memframe.service.keys import MASTER_KEY_FILE, MasterKey  # noqa: E402

NOW = datetime(2026, 11, 24, 2, 0, 0, 123456, tzinfo=UTC)
KEY = "0f" * 32
MEMORIES = pd.DataFrame(
    [
        {"content": "Likes green tea.", "title": "Tea", "tags": ["drinks", "home"], "importance": 4.0},
        {"content": "Lives in Genève, near the lake", "summary": "=home", "source": "chat"},
        {"content": "Rows on Sundays;\n+ swims", "confidence": 0.25, "source": "mail", "title": ""},
        {"content": "Has a cat.", "tags": []},
    ]
)


def interrupt(*_):
    """Break off a run at its first sign of progress, as Ctrl-C does."""
    raise KeyboardInterrupt


target.mkdir()
data, state = Path(mkdtemp()), state_folder()
state.mkdir(parents=True, mode=0o700)
(state / DATA_KEY).write_text(KEY)
(state / DATA_KEY).chmod(0o600)
MasterKey(Secret(KEY)).save(data / MASTER_KEY_FILE)

with mf.service.run_local(data, now=lambda: NOW) as local:
    user_id = local.add_user("ada@example.org", "a long password")
    local.import_memories(user_id, MEMORIES)
    client = mf.connect(local.base_url, api_key=local.api_key)
    request = client.create_access_request(local.memory_key(user_id), "files of this version")
    local.decide(request.id, "approved")
    access = mf.open_access(client, request.id)
    memories = mf.load_memories(access, progress=False)

    for name in (
        "memories.parquet",
        "memories",
        "memories.jsonl",
        "memories.json",
        "memories.csv",
        "notes.md",
    ):
        mf.export_memories(access, target / name, progress=False)
    for name in ("sealed.parquet", "sealed"):
        mf.export_memories(access, target / name, sealed=True, progress=False)
    for name in ("frame.parquet", "frame.jsonl", "frame.csv"):
        mf.export_memories(memories.assign(note="mine"), target / name)
    mf.audit_memories(memories, now=NOW).to_json(target / "audit.json")

    edited = memories.assign(title=memories["title"].mask(memories["content"] == "Has a cat.", "Cat"))
    mf.plan_changes(access, edited).save(target / "saved.plan")
    first = mf.plan_deletes(access, memories[:1])
    mf.apply_plan(access, first, confirm=1, journal=target / "done.journal", progress=False)
    unsent = mf.plan_changes(access, memories[2:3].assign(title="Sundays"))
    with suppress(KeyboardInterrupt):
        mf.apply_plan(access, unsent, journal=target / "broken_off.journal", progress=interrupt)
    keys = access.credentials
    (target / "known.json").write_text(
        json.dumps(
            {
                "user_id": user_id,
                "encryption_key": keys.encryption_key.reveal(),
                "key_version": keys.key_version,
                "data_key": KEY,
                "master_key": KEY,
                "memories": json.loads(memories.to_json(orient="records", date_format="iso", date_unit="us")),
            },
            indent=1,
            ensure_ascii=False,
        )
        + "\n"
    )

with closing(sqlite3.connect(data / DATABASE_FILE)) as database:
    (target / "service.sql").write_text("\n".join(database.iterdump()) + "\n")
