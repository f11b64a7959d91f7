"""Markdown with YAML frontmatter: a folder of notes, one a memory, which people, Obsidian and OKF 0.2 read.

The frontmatter holds the columns that are not missing, the text below it is the content, byte for byte. Columns
beside those of a memory come back as text. Each value is JSON, on one line, so that no text can end the frontmatter;
names of files are numbers and letters of the title, so that none leads elsewhere. ``index.md``, which OKF reserves,
says what the folder is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import msgspec
import pyarrow as pa
import yaml

from memframe.archive.jsonl import records_of, table_of_records
from memframe.archive.table import ARCHIVE_SCHEMA, ArchiveFormat
from memframe.errors import FrameError
from memframe.frames import NUMBER

MAX_FRONTMATTER = 1 << 16
"""Characters: a parser in Python is slow, and no note needs more."""

_FRONTMATTER = re.compile(r"---[ \t]*\r?\n(.*?\n)??---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


class _PlainLoader(yaml.BaseLoader):  # type: ignore[misc]  # the library has no types
    """Load texts, lists and mappings of them; no types are guessed, and nothing is repeated by reference."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("a reference")
        return super().compose_node(parent, index)


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
        found = _PlainLoader(head).get_single_data()
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
            words = (
                re.sub(r"[^a-z0-9]+", "-", str(row["title"] or "memory").lower()[:60]).strip("-") or "memory"
            )
            _write_note(folder / f"{n_rows:06}-{words}.md", _note_of(row).encode())
    return n_rows


def _write_note(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


def _note_of(row: dict[str, Any]) -> str:
    kind = row.get("type")
    cells = {name: value for name, value in row.items() if value is not None and name != "content"}
    if row["content"] is None:
        cells["content"] = None
    lines = [f"{_key(name)}: {_json(value)}\n" for name, value in cells.items()]
    type_line = f"type: {_json(kind if isinstance(kind, str) and kind.strip() else 'memory')}\n"
    return f"---\n{_MARK}{type_line}{''.join(lines)}---\n{row['content'] or ''}"


def _key(name: str) -> str:
    name = f"{_OWN}{name}" if name in ("type", "memframe") or name.startswith(_OWN) else name
    return name if _PLAIN_KEY.fullmatch(name) else _json(name)


def _json(value: Any) -> str:
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _row_of(path: Path) -> dict[str, Any]:
    """Read a note that was written here, also if an editor has written its frontmatter anew."""
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise FrameError(f"{path} is no text in UTF-8 at byte {error.start:,}: mend it.") from None
    head, body = split_frontmatter(text)
    if _MARK not in head:
        raise FrameError(
            f"{path} is no note of memframe, whose frontmatter has memframe: 1; read_memories reads it."
        )
    cells = _json_lines(head)
    if cells is None:
        cells = parse_frontmatter(head, str(path))
        cells |= {name: _number(cells[name]) for name in _NUMBERS & cells.keys()}
    row = {
        name: None if name == "content" else value
        for name, value in cells.items()
        if name not in ("type", "memframe")
    }
    texts = {name.removeprefix(_OWN): _as_text(name, value) for name, value in row.items()}
    return dict.fromkeys(ARCHIVE_SCHEMA) | {"content": body} | texts


_NUMBERS = {name for name, kind in ARCHIVE_SCHEMA.items() if kind == NUMBER.arrow}


def _as_text(name: str, value: Any) -> Any:
    return value if name in ARCHIVE_SCHEMA or value is None or isinstance(value, str) else _json(value)


def _number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def _json_lines(head: str) -> dict[str, Any] | None:
    """Return the keys of a frontmatter as it was written here; None for one of anybody else."""
    decoder = msgspec.json.Decoder()
    cells = {}
    try:
        for line in head.split("\n")[:-1]:
            found = _LINE.fullmatch(line)
            if found is None:
                return None
            key = decoder.decode(found[1]) if found[1].startswith('"') else found[1]
            cells[key] = decoder.decode(found[2])
    except msgspec.MsgspecError:
        return None
    return cells


_LINE = re.compile(r'("(?:[^"\\]|\\.)*"|\w+): (.*)', re.DOTALL)


def _rows_of(path: Path) -> list[dict[str, Any]]:
    return [] if path.name == "index.md" and path.read_bytes() == _INDEX else [_row_of(path)]


def _names(path: Path) -> list[str]:
    return [*dict.fromkeys([*ARCHIVE_SCHEMA, *(name for row in _rows_of(path) for name in row)])]


def _read(path: Path, columns: list[str]) -> Iterator[pa.Table]:
    yield table_of_records(path, _rows_of(path), columns)


def _write(file: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table]) -> NoReturn:  # noqa: ARG001 - as other formats have it
    raise FrameError(
        "Notes are files of a folder: export to a path such as memories.md/, or with format='markdown'."
    )


MARKDOWN = ArchiveFormat(_names, _read, _write)
