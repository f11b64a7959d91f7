"""Markdown with YAML frontmatter: a folder of notes, one a memory, which people, Obsidian and OKF 0.2 read.

The frontmatter holds the columns that are not missing, the text below it is the content, byte for byte. Columns
beside those of a memory come back as text. Each value is JSON, on one line, so that no text can end the frontmatter;
names of files are numbers and letters of the title, so that none leads elsewhere. ``index.md``, which OKF reserves,
says what the folder is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import msgspec
import pyarrow as pa
import yaml

from memframe.archive.jsonl import records_of, table_of_records
from memframe.archive.table import ARCHIVE_SCHEMA, ArchiveFormat
from memframe.errors import FrameError
from memframe.frames import NUMBER

MAX_FRONTMATTER = 1 << 20
"""Characters."""

MAX_DEPTH = 50
"""Lists and mappings within each other, where more than `_SHORT` characters could exhaust the stack of the parser."""

_SHORT = 4096

_FRONTMATTER = re.compile(r"---[ \t]*\r?\n(.*?\n)??---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""Loader of texts, lists and mappings of them, which guesses no types; that in C is ten times as fast."""


def split_frontmatter(text: str) -> tuple[str, str]:
    r"""Return the frontmatter, without its marks, and the rest of a text.

    >>> split_frontmatter("---\ntitle: Tea\n---\nLikes it green")
    ('title: Tea\n', 'Likes it green')
    """
    found = _FRONTMATTER.match(text)
    return (found[1] or "", text[found.end() :]) if found else ("", text)


def _check_nesting(head: str) -> None:
    """Refuse what is nested too deeply, and references, by which a small text becomes a large one."""
    depth = 0
    for event in yaml.parse(head, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH or isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError("nested too deeply, or a reference")


def parse_frontmatter(head: str, place: str) -> dict[str, Any]:
    """Return the keys of a frontmatter; all values are text, or lists and mappings of it."""
    try:
        if len(head) > MAX_FRONTMATTER:
            raise yaml.YAMLError("too long")
        if len(head) > _SHORT or "*" in head:
            _check_nesting(head)
        found = _Loader(head).get_single_data()
    except (yaml.YAMLError, RecursionError, ValueError, LookupError):  # their messages quote the text
        raise FrameError(f"The frontmatter of {place} is not YAML that memframe reads: correct it.") from None
    if not isinstance(found, dict | None):
        raise FrameError(f"The frontmatter of {place} is not a list of keys and values: correct it.")
    return found or {}


_MARK = "memframe: 1\n"
"""The first line of a frontmatter of ours."""

_INDEX = b"# Memories\n\nEach other file is one memory, as memframe has exported it.\n"

_OWN = "column:"
"""Before names of columns that are keys of their own here."""

_PLAIN_KEY = re.compile(r"[A-Za-z_]\w{0,99}", re.ASCII)
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON may hold and YAML may not."""


def write_notes(folder: Path, tables: Iterable[pa.Table]) -> int:
    """Write a note for each row into an empty folder, and return their number."""
    n_rows = 0
    _write_note(folder / "index.md", _INDEX)
    for table in tables:
        for row in records_of(table):
            n_rows += 1
            words = re.sub(r"[^a-z0-9]+", "-", str(row["title"]).lower()[:60]).strip("-")
            name = words if row["title"] and words else "memory"
            _write_note(folder / f"{n_rows:06}-{name}.md", _note_of(row).encode())
    return n_rows


def _write_note(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


def _note_of(row: dict[str, Any]) -> str:
    kind = row.get("type")
    cells = {"type": kind if isinstance(kind, str) and kind.strip() else "memory"}
    for name, value in row.items():
        is_missing = value is None or value != value  # NaN is not itself
        if is_missing == (name == "content"):
            cells[f"{_OWN}{name}" if name in ("type", "memframe") or name.startswith(_OWN) else name] = value
    lines = (
        f"{name if _PLAIN_KEY.fullmatch(name) else _json(name)}: {_json(value)}\n"
        for name, value in cells.items()
    )
    return f"---\n{_MARK}{''.join(lines)}---\n{row['content'] or ''}"


def _json(value: Any) -> str:
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _row_of(path: Path) -> dict[str, Any]:
    """Read a note that was written here, also if an editor has written its frontmatter anew."""
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise FrameError(f"{path} is not UTF-8 text at byte {error.start:,}: mend it.") from None
    head, body = split_frontmatter(text)
    if _MARK not in head:
        raise FrameError(
            f"{path} is not a note of memframe, whose frontmatter has memframe: 1; read_memories reads it."
        )
    row = dict.fromkeys(ARCHIVE_SCHEMA) | {"content": body}
    for name, value in parse_frontmatter(head, str(path)).items():
        if name == "content":
            row[name] = None
        elif ARCHIVE_SCHEMA.get(name) == NUMBER.arrow:
            with suppress(TypeError, ValueError):  # what is no number is refused with its column
                value = float(value)  # noqa: PLW2901 - the cell of a column of numbers
            row[name] = value
        elif name not in ("type", "memframe"):
            is_text = name in ARCHIVE_SCHEMA or isinstance(value, str)
            row[name.removeprefix(_OWN)] = value if is_text else _json(value)
    return row


@lru_cache(maxsize=1)  # a note is asked for its columns, then for its rows
def _rows_of(path: Path, _written_at: int) -> list[dict[str, Any]]:
    return [] if path.name == "index.md" and path.read_bytes() == _INDEX else [_row_of(path)]


def _names(path: Path) -> list[str]:
    rows = _rows_of(path, path.stat().st_mtime_ns)
    return [*dict.fromkeys([*ARCHIVE_SCHEMA, *(name for row in rows for name in row)])]


def _read(path: Path, columns: list[str]) -> Iterator[pa.Table]:
    yield table_of_records(path, _rows_of(path, path.stat().st_mtime_ns), columns)


def _write(file: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table]) -> NoReturn:  # noqa: ARG001 - as other formats have it
    raise FrameError(
        "Notes are files of a folder: export to a path such as memories.md/, or with format='markdown'."
    )


MARKDOWN = ArchiveFormat(_names, _read, _write)
