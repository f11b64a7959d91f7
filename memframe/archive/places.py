"""Paths of archives: formats by extension, files of a dataset, and what may be replaced."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import NoReturn

from memframe.archive import csv, jsonl, markdown, parquet
from memframe.archive.table import ARCHIVE_SCHEMA, ArchiveFormat
from memframe.errors import FrameError
from memframe.files import raise_os_errors_as

FORMATS: dict[str, ArchiveFormat] = {
    ".parquet": parquet.PARQUET,
    ".jsonl": jsonl.JSONL,
    ".csv": csv.CSV,
    ".json": jsonl.JSON,
    ".md": markdown.MARKDOWN,
}

SEAL_FILE = "seal.parquet"
"""File without rows that holds the code over all files of a sealed dataset: readers of a folder refuse other types."""

PART_ROWS = 50_000
"""Rows in one file of a Parquet dataset: what `refresh_archive` writes again when one of them has changed."""


def raise_write_errors(target: Path) -> AbstractContextManager[None]:
    """Raise errors of the system as `FrameError`s that name the caller's path, not that of a temporary file."""
    advice = "choose another path, or correct this one. Existing files are unchanged."
    return raise_os_errors_as(FrameError, f"{target} cannot be written", advice)


def is_folder(path: Path) -> bool:
    """Return True for the path of a Parquet dataset or of notes, False for that of one file."""
    return path.is_dir() or not path.suffix or (path.suffix == ".md" and not path.is_file())


def format_of(path: Path) -> ArchiveFormat:
    """Return the format of a file by its extension."""
    found = FORMATS.get(path.suffix.lower())
    if found is None:
        raise FrameError(
            f"{path} does not say by its extension what it is: use {', '.join(FORMATS)}, or a folder. pandas writes "
            "them with to_parquet, to_json(..., orient='records', lines=True) and to_csv."
        )
    return found


def parts_of(path: Path) -> list[Path]:
    """List the files of an archive, in order."""
    if not path.exists():
        raise FrameError(f"There is no archive at {path}: check the path.")
    if not is_folder(path):
        return [path]
    parts = sorted(part for part in path.glob("*.parquet") if part.name != SEAL_FILE)
    parts = parts or sorted(note for note in path.glob("*.md") if note.is_file())
    if not parts:
        raise FrameError(
            f"The folder {path} contains no .parquet and no .md file: give the folder of an export."
        )
    return parts


def part_name(number: int) -> str:
    """Name a file of a dataset, so that names sort in the order of rows."""
    return f"part-{number:05}.parquet"


def check_target(path: Path) -> None:
    """Refuse a path where no archive can be written, or where another file would be lost."""
    if not is_folder(path):
        format_of(path)
    if not path.parent.is_dir():
        raise FrameError(f"The folder {path.parent} does not exist: create it, or choose another.")
    if path.is_dir():
        strangers = [
            entry
            for entry in path.iterdir()
            if entry.suffix not in (".parquet", ".md") or not entry.is_file() or not is_archive(entry)
        ]
        if strangers:
            _refuse_to_replace(path, f"it holds {strangers[0].name}")
    elif path.exists() and not is_archive(path):
        _refuse_to_replace(path, "it is not an archive of memories")


def _refuse_to_replace(path: Path, cause: str) -> NoReturn:
    raise FrameError(f"{path} is not replaced, as {cause}: choose another path, or remove it yourself.")


def is_archive(path: Path) -> bool:
    """Return True for a path with an archive of memories, whole or not; a pipe is not waited for."""
    if not (path.is_file() or path.is_dir()):
        return False
    try:
        first = parts_of(path)[0]
        names = format_of(first).names(first)
    except (FrameError, OSError, ValueError):
        return False
    return ARCHIVE_SCHEMA.keys() <= set(names)
