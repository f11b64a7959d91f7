"""Portable AI Memory 1.0, a format for exchange; `memframe.read_memories` reads it back.

The format has no titles, importance, or tags with capitals and blanks, and wants a time, a type and a platform of each
memory. What it cannot say exactly stands under ``metadata.memframe``, from where it is read back.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa

from memframe.archive.jsonl import records_of
from memframe.display import number_of
from memframe.frames import MEMORY_KINDS

_TYPES = {
    "fact", "preference", "skill", "context", "relationship", "goal", "instruction", "identity", "environment",
    "project",
}  # fmt: skip
_STATES = ("active", "superseded", "deprecated", "archived")


def write_pam(file: BinaryIO, tables: Iterable[pa.Table], *, now: datetime | None = None) -> int:
    """Write memories as one document, and return their number; those without a content cannot be in it."""
    at = (now or datetime.now(UTC)).isoformat()
    rows = [row for table in tables for row in records_of(table)]
    told = [row for row in rows if row["content"]]
    if len(told) < len(rows):
        left = number_of(len(rows) - len(told), "memory", "memories")
        warnings.warn(f"{left} without a content left out: Portable AI Memory has none such", stacklevel=4)
    document = {
        "schema": "portable-ai-memory",
        "schema_version": "1.0",
        "exported_by": f"memframe/{version('memframe')}",
        "export_date": at,
        "owner": {"id": next((row["user_id"] for row in told if row["user_id"]), "unknown")},
        "memories": [_memory(number, row, at) for number, row in enumerate(told, 1)],
    }
    file.write(msgspec.json.encode(document, enc_hook=str))
    return len(told)


def _memory(number: int, row: dict[str, Any], at: str) -> dict[str, Any]:
    kind, status = row.get("kind"), row.get("status")
    tags = [re.sub(r"[^a-z0-9_-]+", "-", tag.lower()).strip("-_") for tag in row["tags"] or ()]
    platform = re.sub(r"[^a-z0-9_-]+", "-", (row["source"] or "").lower()).strip("-")[:32]
    times = {name: row[name] for name in ("created_at", "updated_at") if row[name]}
    valid = {"replaced_by": "superseded_by", "valid_from": "valid_from", "valid_until": "valid_until"}
    own = {name: value for name, value in row.items() if value not in (None, (), "") and name not in _SAID}
    memory = {
        "id": row["id"] or row.get("origin_id") or f"row-{number}",
        "type": kind if kind in _TYPES else "custom",
        "custom_type": None if kind in _TYPES else kind or "memory",
        "content": row["content"],
        "content_hash": f"sha256:{_hash(row['content'])}",
        "tags": [*dict.fromkeys(filter(None, tags))],
        "temporal": {"created_at": at}
        | times
        | {pam: row[name] for name, pam in valid.items() if row.get(name)},
        "provenance": {"platform": platform if len(platform) > 1 else "unknown"},
        "metadata": {"memframe": own | ({} if row["created_at"] else {"is_undated": True})},
    }
    if row["summary"] is not None:
        memory["summary"] = row["summary"]
    if status in _STATES:
        memory["status"] = status
    if row["confidence"] is not None and 0 <= row["confidence"] <= 1:
        memory["confidence"] = {"initial": row["confidence"]}
    return memory


_SAID = {*MEMORY_KINDS, "kind", "status", "replaced_by", "valid_from", "valid_until", "metadata", "origin_id"} - {
    "title", "importance", "confidence", "tags", "source"
}  # fmt: skip
"""Columns that a memory of the format holds, or that only a service gives."""


def _hash(content: str) -> str:
    text = re.sub(r"\s+", " ", unicodedata.normalize("NFC", content.strip().lower()))
    return sha256(text.encode()).hexdigest()
