"""Paths of archives: formats by extension, files of a dataset, and what may be replaced."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import NoReturn

from memframe.archive import csv, jsonl, parquet
from memframe.archive.table import ARCHIVE_SCHEMA, ArchiveFormat
from memframe.errors import FrameError
from memframe.files import raise_os_errors_as

FORMATS: dict[str, ArchiveFormat] = {
    ".parquet": parquet.PARQUET,
    ".jsonl": jsonl.JSONL,
    ".csv": csv.CSV,
}

SEAL_FILE = "seal.parquet"
"""File without rows that holds the code over all files of a sealed dataset: readers of a folder refuse other types."""

PART_ROWS = 50_000
"""Rows in one file of a Parquet dataset: what `refresh_archive` writes again when one of them has changed."""


def raise_write_errors(target: Path) -> AbstractContextManager[None]:
    """Raise errors of the system as `FrameError`s that name the caller's path, not that of a temporary file."""
    advice = "choose another path, or mend this one. What stood there is as it was."
    return raise_os_errors_as(FrameError, f"{target} cannot be written", advice)


def is_folder(path: Path) -> bool:
    """Return True for the path of a Parquet dataset, False for that of one file."""
    return path.is_dir() or not path.suffix


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
    if not parts:
        raise FrameError(f"The folder {path} holds no .parquet file: give the folder that was exported to.")
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
        strangers = [entry for entry in path.iterdir() if entry.suffix != ".parquet" or not is_archive(entry)]
        if strangers:
            _refuse_to_replace(path, f"it holds {strangers[0].name}")
    elif path.exists() and not is_archive(path):
        _refuse_to_replace(path, "it is no archive of memories")


def _refuse_to_replace(path: Path, cause: str) -> NoReturn:
    raise FrameError(f"{path} is not replaced, as {cause}: choose another path, or remove it yourself.")


def is_archive(path: Path) -> bool:
    """Return True for a path with an archive of memories, whole or not."""
    try:
        first = parts_of(path)[0]
        names = format_of(first).names(first)
    except (FrameError, OSError, ValueError):
        return False
    return ARCHIVE_SCHEMA.keys() <= set(names)
