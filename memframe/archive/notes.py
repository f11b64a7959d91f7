"""Formats for people and other systems: notes in Markdown, and Portable AI Memory.

Notes are a folder with a file for each memory, which people, Obsidian and OKF 0.2 read. The YAML frontmatter holds the
columns that are not missing, and the text below it is the content, byte for byte. Columns other than those of a memory
come back as text. Each value is JSON, on one line, so that no text can end the frontmatter. File names consist of
numbers and letters of the title, so that none leads to another folder. ``index.md``, which OKF reserves, describes the
folder.

Portable AI Memory 1.0 has no titles, importance, or tags with capitals and blanks, and requires a time, a type and a
platform for each memory. Values that it cannot hold exactly are under ``metadata.memframe``, from where
`memframe.read_memories` reads them back.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from itertools import chain, count
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
import yaml

from memframe.archive.bounds import read_whole
from memframe.archive.table import ARCHIVE_SCHEMA, records_of
from memframe.display import number_of
from memframe.errors import FrameError
from memframe.fields import MEMORY_FIELDS
from memframe.frames import NUMBER

MAX_FRONTMATTER = 1 << 20
"""Most characters of a frontmatter."""

MAX_DEPTH = 50
"""Most lists and mappings within each other; only more than `_SHORT` characters could exhaust the parser's stack."""

_SHORT = 4096

_FRONTMATTER = re.compile(r"---[ \t]*\r?\n(.*?\n)??---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""Loader of texts, lists and mappings, which guesses no types; the one in C is ten times as fast."""


def split_frontmatter(text: str) -> tuple[str, str]:
    r"""Return the frontmatter, without its marks, and the rest of a text.

    >>> split_frontmatter("---\ntitle: Tea\n---\nLikes it green")
    ('title: Tea\n', 'Likes it green')
    """
    found = _FRONTMATTER.match(text)
    return (found[1] or "", text[found.end() :]) if found else ("", text)


def parse_frontmatter(head: str, place: str) -> dict[str, Any]:
    """Return the keys of a frontmatter; all values are text, or lists and mappings of it."""
    try:
        if len(head) > MAX_FRONTMATTER:
            raise yaml.YAMLError("too long")
        depth = 0  # references are refused as well, because they can expand a small text to a large one
        for event in yaml.parse(head, _Loader) if len(head) > _SHORT or "*" in head else ():
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH or isinstance(event, yaml.AliasEvent):
                raise yaml.YAMLError("nested too deeply, or a reference")
        found = _Loader(head).get_single_data()
    except (yaml.YAMLError, RecursionError, ValueError, LookupError):  # their messages quote the text
        raise FrameError(f"The frontmatter of {place} is not YAML that memframe reads: correct it.") from None
    if not isinstance(found, dict | None):
        raise FrameError(f"The frontmatter of {place} is not a list of keys and values: correct it.")
    return found or {}


def find_frontmatter_values(text: str) -> dict[str, tuple[int, int]]:
    r"""Find the spans of the values of a frontmatter that are single texts, with their quotes or marks.

    >>> find_frontmatter_values("---\ntitle: 'Tea'\ntags: [a]\n---\n")
    {'title': (11, 16)}
    """
    found = _FRONTMATTER.match(text)
    head = _Loader(found[1] or "").get_single_node() if found else None
    start = found.start(1) if found else 0
    nodes = head.value if isinstance(head, yaml.MappingNode) else ()
    spans = {
        key.value: (start + node.start_mark.index, start + node.end_mark.index)
        for key, node in nodes
        if isinstance(node, yaml.ScalarNode)
    }
    # a text of several lines includes its last line end, which must stay
    return {key: (first, first + len(text[first:end].rstrip())) for key, (first, end) in spans.items()}


_MARK = "memframe: 1\n"
"""First line of a frontmatter that memframe wrote."""

_INDEX = b"# Memories\n\nEach other file is one memory, as memframe has exported it.\n"

_OWN = "column:"
"""Prefix of extra columns whose names have another meaning in a note."""

_PLAIN_KEY = re.compile(r"[A-Za-z_]\w{0,99}", re.ASCII)
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that are valid in JSON, but not in YAML."""


def write_notes(folder: Path, tables: Iterable[pa.Table]) -> None:
    """Write a note for each row into an empty folder."""
    for number, row in enumerate(chain([None], chain.from_iterable(map(records_of, tables)))):
        name, text = "index.md", _INDEX
        if row is not None:
            words = re.sub(r"[^a-z0-9]+", "-", (row["title"] or "").lower()[:60]).strip("-")
            name, text = f"{number:06}-{words or 'memory'}.md", _note_of(row)
        note = folder / name
        note.touch(mode=0o600)
        note.write_bytes(text)


def _note_of(row: dict[str, Any]) -> bytes:
    kind = row.get("type")
    cells = {"type": kind if isinstance(kind, str) and kind.strip() else "memory"}
    for name, value in row.items():
        is_missing = value is None or value != value  # NaN is not itself
        if is_missing == (name == "content"):
            cells[f"{_OWN}{name}" if name in ("type", "memframe") or name.startswith(_OWN) else name] = value
    lines = (
        f"{name if _PLAIN_KEY.fullmatch(name) else write_value(name)}: {write_value(value)}\n"
        for name, value in cells.items()
    )
    return f"---\n{_MARK}{''.join(lines)}---\n{row['content'] or ''}".encode()


def write_value(value: Any) -> str:
    r"""Return a value of a frontmatter as JSON that is also YAML.

    >>> print(write_value('Tea: "green"\x85'))
    "Tea: \"green\"\u0085"
    """
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def read_notes(path: Path) -> dict[Path, dict[str, Any]]:
    """Read the notes of memframe in a folder, or a single one, also if an editor has saved them again."""
    notes = sorted(note for note in path.glob("*.md") if note.is_file()) if path.is_dir() else [path]
    return {note: _row_of(note) for note in notes if note.name != "index.md" or note.read_bytes() != _INDEX}


def _row_of(path: Path) -> dict[str, Any]:
    try:
        head, body = split_frontmatter(read_whole(path, str(path)).decode())
    except UnicodeDecodeError as error:
        raise FrameError(f"{path} is not UTF-8 text at byte {error.start:,}: correct it.") from None
    if _MARK not in head:
        raise FrameError(
            f"{path} is not a note of memframe, whose frontmatter has memframe: 1; read_memories reads it."
        )
    row: dict[str, Any] = dict.fromkeys(ARCHIVE_SCHEMA) | {"content": body}
    for name, value in parse_frontmatter(head, str(path)).items():
        if name == "content":
            row[name] = None
        elif ARCHIVE_SCHEMA.get(name) == NUMBER.arrow:
            with suppress(TypeError, ValueError):  # a cell that is not a number is refused with its column
                value = float(value)  # noqa: PLW2901 - the cell of a column of numbers
            row[name] = value
        elif name not in ("type", "memframe"):
            is_text = name in ARCHIVE_SCHEMA or isinstance(value, str)
            row[name.removeprefix(_OWN)] = value if is_text else write_value(value)
    return row


# -- Portable AI Memory

_TYPES = {
    "fact", "preference", "skill", "context", "relationship", "goal", "instruction", "identity", "environment",
    "project",
}  # fmt: skip
_STATES = ("active", "superseded", "deprecated", "archived")


def write_pam(file: BinaryIO, tables: Iterable[pa.Table]) -> int:
    """Write memories as one document, and return their number; memories without content are left out."""
    at = datetime.now(UTC).isoformat()
    rows = [row for table in tables for row in records_of(table)]
    with_content = [row for row in rows if row["content"]]
    if len(with_content) < len(rows):
        skipped = number_of(len(rows) - len(with_content), "memory", "memories")
        warnings.warn(
            f"{skipped} without content left out: Portable AI Memory cannot hold them", stacklevel=4
        )
    document = {
        "schema": "portable-ai-memory",
        "schema_version": "1.0",
        "exported_by": f"memframe/{version('memframe')}",
        "export_date": at,
        "owner": {"id": next((row["user_id"] for row in with_content if row["user_id"]), "unknown")},
        "memories": [
            _memory(pam_id, row, at)
            for pam_id, row in zip(_unique_ids(with_content), with_content, strict=True)
        ],
    }
    file.write(msgspec.json.encode(document, enc_hook=str))
    return len(with_content)


def _unique_ids(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a unique id for each row: its own or that of its source, with a number appended if it was used before."""
    given: set[str] = set()
    for number, row in enumerate(rows, 1):
        name = row["id"] or row.get("origin_id") or f"row-{number}"
        each = next(each for each in chain([name], (f"{name}-{n}" for n in count(2))) if each not in given)
        given.add(each)
        yield each


def _memory(pam_id: str, row: dict[str, Any], at: str) -> dict[str, Any]:
    kind, status = row.get("kind"), row.get("status")
    tags = [re.sub(r"[^a-z0-9_-]+", "-", tag.lower()).strip("-_") for tag in row["tags"] or ()]
    platform = re.sub(r"[^a-z0-9_-]+", "-", (row["source"] or "").lower()).strip("-")[:32]
    extra = {name: value for name, value in row.items() if value not in (None, (), "") and name not in _HELD}
    if row.get("origin_id") not in (None, pam_id):
        extra["origin_id"] = row["origin_id"]
    memory = {
        "id": pam_id,
        "type": kind if kind in _TYPES else "custom",
        "custom_type": None if kind in _TYPES else kind or "memory",
        "content": row["content"],
        "content_hash": digest_content(row["content"]),
        "tags": [*dict.fromkeys(filter(None, tags))],
        "temporal": {"created_at": at} | {pam: row[name] for name, pam in _TIMES.items() if row.get(name)},
        "provenance": {"platform": platform if len(platform) > 1 else "unknown"},
        "metadata": {"memframe": extra | ({} if row["created_at"] else {"is_undated": True})},
    }
    if row["summary"] is not None:
        memory["summary"] = row["summary"]
    if status in _STATES:
        memory["status"] = status
    if row["confidence"] is not None and 0 <= row["confidence"] <= 1:
        memory["confidence"] = {"initial": row["confidence"]}
    return memory


_TIMES = {name: name for name in ("created_at", "updated_at", "valid_from", "valid_until")}
_TIMES |= {"replaced_by": "superseded_by"}


def digest_content(content: str) -> str:
    """Compute the ``content_hash`` of a text, which ignores case and the kind and number of blanks.

    >>> digest_content("Likes  Tea ") == digest_content("likes tea")
    True
    """
    text = re.sub(r"\s+", " ", unicodedata.normalize("NFC", content.strip().lower()))
    return f"sha256:{sha256(text.encode()).hexdigest()}"


_HELD = {
    *(field.name for field in MEMORY_FIELDS if not field.is_editable),
    *("content", "summary", "content_error", *_TIMES, "kind", "status", "metadata", "origin_id"),
}
"""Columns that have a place in the format, or that only a service sets."""
